//! One column while its rows come. Rows without a value are only counted until one has some.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, ListBuilder, StringBuilder,
    StringDictionaryBuilder, StructBuilder,
};
use arrow_array::types::Int32Type;
use arrow_schema::{DataType, Field, Fields};
use refrain_model::{Status, Value};
use refrain_views::{json, value};

use super::names::Form;

pub enum Cells {
    /// Ranks, threads and lines.
    Small(Int32Builder),
    Int(Int64Builder),
    Bool(BooleanBuilder),
    Real(Float64Builder),
    Text(StringDictionaryBuilder<Int32Type>),
    Json(StringBuilder),
    Status(StructBuilder),
    Ints(ListBuilder<Int64Builder>),
    Bools(ListBuilder<BooleanBuilder>),
    Texts(ListBuilder<StringBuilder>),
    Statuses(ListBuilder<StructBuilder>),
}

/// What a status has, in the order of its fields. Sources and tags that have a name instead of a number have that beside it.
const STATUS: [(&str, DataType); 7] = [
    ("source", DataType::Int64),
    ("source_name", DataType::Utf8),
    ("tag", DataType::Int64),
    ("tag_name", DataType::Utf8),
    ("bytes", DataType::Int64),
    ("cancelled", DataType::Boolean),
    ("error", DataType::Int64),
];

fn status_fields() -> Fields {
    STATUS.iter().map(|(name, of)| Field::new(*name, of.clone(), true)).collect()
}

/// The name of a value, as `dump` has it; the program's own strings as they are.
pub fn text<'t>(of: &'t Value, buffer: &'t mut String) -> &'t str {
    match of {
        Value::Name(name) => name,
        Value::Text(text) | Value::Comm(text) => text,
        other => {
            buffer.clear();
            value::text(other, buffer);
            buffer
        }
    }
}

impl Cells {
    pub fn of(form: Form) -> Cells {
        match form {
            Form::Int => Cells::Int(Int64Builder::new()),
            Form::Bool => Cells::Bool(BooleanBuilder::new()),
            Form::Real => Cells::Real(Float64Builder::new()),
            Form::Text => Cells::Text(StringDictionaryBuilder::new()),
            Form::Json => Cells::Json(StringBuilder::new()),
            Form::Status => Cells::Status(StructBuilder::from_fields(status_fields(), 0)),
            Form::Ints => Cells::Ints(ListBuilder::new(Int64Builder::new())),
            Form::Bools => Cells::Bools(ListBuilder::new(BooleanBuilder::new())),
            Form::Texts => Cells::Texts(ListBuilder::new(StringBuilder::new())),
            Form::Statuses => {
                Cells::Statuses(ListBuilder::new(StructBuilder::from_fields(status_fields(), 0)))
            }
        }
    }

    pub fn data_type(&self) -> DataType {
        let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
        match self {
            Cells::Small(_) => DataType::Int32,
            Cells::Int(_) => DataType::Int64,
            Cells::Bool(_) => DataType::Boolean,
            Cells::Real(_) => DataType::Float64,
            Cells::Text(_) => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Cells::Json(_) => DataType::Utf8,
            Cells::Status(_) => DataType::Struct(status_fields()),
            Cells::Ints(_) => list(DataType::Int64),
            Cells::Bools(_) => list(DataType::Boolean),
            Cells::Texts(_) => list(DataType::Utf8),
            Cells::Statuses(_) => list(DataType::Struct(status_fields())),
        }
    }

    fn builder(&mut self) -> &mut dyn ArrayBuilder {
        match self {
            Cells::Small(cells) => cells,
            Cells::Int(cells) => cells,
            Cells::Bool(cells) => cells,
            Cells::Real(cells) => cells,
            Cells::Text(cells) => cells,
            Cells::Json(cells) => cells,
            Cells::Status(cells) => cells,
            Cells::Ints(cells) => cells,
            Cells::Bools(cells) => cells,
            Cells::Texts(cells) => cells,
            Cells::Statuses(cells) => cells,
        }
    }

    fn nothing(&mut self, rows: usize) {
        match self {
            Cells::Small(cells) => cells.append_nulls(rows),
            Cells::Int(cells) => cells.append_nulls(rows),
            Cells::Bool(cells) => cells.append_nulls(rows),
            Cells::Real(cells) => cells.append_nulls(rows),
            Cells::Text(cells) => cells.append_nulls(rows),
            Cells::Json(cells) => (0..rows).for_each(|_| cells.append_null()),
            Cells::Status(cells) => (0..rows).for_each(|_| push_status(cells, None)),
            Cells::Ints(cells) => (0..rows).for_each(|_| cells.append_null()),
            Cells::Bools(cells) => (0..rows).for_each(|_| cells.append_null()),
            Cells::Texts(cells) => (0..rows).for_each(|_| cells.append_null()),
            Cells::Statuses(cells) => (0..rows).for_each(|_| cells.append_null()),
        }
    }

    /// Room for a value in this row: those before have none if they were not said to have one.
    pub fn up_to(&mut self, row: usize) -> &mut Cells {
        let missing = row.saturating_sub(self.builder().len());
        if missing > 0 {
            self.nothing(missing);
        }
        self
    }

    /// So many rows, and then none again.
    pub fn finish(&mut self, rows: usize) -> ArrayRef {
        self.up_to(rows).builder().finish()
    }

    pub fn push_text(&mut self, text: &str) {
        match self {
            Cells::Text(cells) => cells.append_value(text),
            Cells::Json(cells) => cells.append_value(text),
            _ => {}
        }
    }

    pub fn push_int(&mut self, number: i64) {
        match self {
            Cells::Int(cells) => cells.append_value(number),
            // Ranks, threads and lines have 32 bits.
            Cells::Small(cells) => cells.append_value(i32::try_from(number).unwrap_or(i32::MAX)),
            _ => {}
        }
    }

    pub fn push_real(&mut self, number: f64) {
        if let Cells::Real(cells) = self {
            cells.append_value(number);
        }
    }

    /// A value of this form. Of a list of mixed forms what has this one, and nothing in the other places.
    pub fn push(&mut self, of: &Value, buffer: &mut String) {
        match (self, of) {
            (Cells::Int(cells), Value::Int(number)) => cells.append_value(*number),
            (Cells::Bool(cells), Value::Bool(flag)) => cells.append_value(*flag),
            (Cells::Text(cells), of) => cells.append_value(text(of, buffer)),
            (Cells::Status(cells), Value::Status(status)) => push_status(cells, Some(status)),
            (Cells::Ints(cells), Value::List(values)) => {
                let numbers = values.iter().map(|v| if let Value::Int(n) = v { Some(*n) } else { None });
                cells.append_value(numbers);
            }
            (Cells::Bools(cells), Value::List(values)) => {
                let flags = values.iter().map(|v| if let Value::Bool(b) = v { Some(*b) } else { None });
                cells.append_value(flags);
            }
            (Cells::Texts(cells), Value::List(values)) => {
                for value in values {
                    match value {
                        Value::Unset | Value::Int(_) => cells.values().append_null(),
                        value => cells.values().append_value(text(value, buffer)),
                    }
                }
                cells.append(true);
            }
            (Cells::Statuses(cells), Value::List(values)) => {
                for value in values {
                    let status = if let Value::Status(status) = value { Some(status) } else { None };
                    push_status(cells.values(), status);
                }
                cells.append(true);
            }
            (Cells::Json(cells), of) => {
                cells.append_value(json::text(&value::Json(of)));
            }
            _ => {}
        }
    }
}

fn push_status(cells: &mut StructBuilder, status: Option<&Status>) {
    let number = |value: &Value| if let Value::Int(number) = value { Some(*number) } else { None };
    let name = |value: &Value| if let Value::Name(name) = value { Some(*name) } else { None };
    let (source, tag) = (status.map(|s| &*s.source), status.map(|s| &*s.tag));
    let numbers = [
        (0, source.and_then(number)),
        (2, tag.and_then(number)),
        (4, status.and_then(|s| s.bytes)),
        (6, status.and_then(|s| s.error)),
    ];
    for (at, number) in numbers {
        if let Some(cells) = cells.field_builder::<Int64Builder>(at) {
            cells.append_option(number);
        }
    }
    for (at, name) in [(1, source.and_then(name)), (3, tag.and_then(name))] {
        if let Some(cells) = cells.field_builder::<StringBuilder>(at) {
            cells.append_option(name);
        }
    }
    if let Some(cells) = cells.field_builder::<BooleanBuilder>(5) {
        cells.append_option(status.and_then(|s| s.cancelled));
    }
    cells.append(status.is_some());
}
