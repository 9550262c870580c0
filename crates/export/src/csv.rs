//! The rows of a table as text with commas. Lists and statuses are JSON.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use ::csv::Writer;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::{DataType, SchemaRef};
use refrain_views::json;
use serde::{Serialize, Serializer};

use crate::out::written;
use crate::table::{self, Sink};
use crate::{Error, Input, Output, Report};

pub fn write(input: &mut Input, out: &Output) -> Result<Report, Error> {
    table::write(input, out, &begin)
}

struct Text {
    writer: Writer<BufWriter<File>>,
    path: PathBuf,
    cell: Vec<u8>,
}

fn begin(schema: SchemaRef, out: &Output) -> Result<Box<dyn Sink>, Error> {
    let mut writer = Writer::from_writer(out.file()?);
    let names = schema.fields().iter().map(|field| field.name());
    writer.write_record(names).map_err(|error| written(&out.path)(error.into()))?;
    Ok(Box::new(Text { writer, path: out.path.clone(), cell: Vec::new() }))
}

impl Sink for Text {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let mut all = || -> Result<(), ::csv::Error> {
            for row in 0..batch.num_rows() {
                for column in batch.columns() {
                    self.cell.clear();
                    cell_text(column, row, &mut self.cell)?;
                    self.writer.write_field(&self.cell)?;
                }
                self.writer.write_record(None::<&[u8]>)?;
            }
            Ok(())
        };
        all().map_err(|error| written(&self.path)(error.into()))
    }

    fn end(mut self: Box<Self>) -> Result<(), Error> {
        self.writer.flush().map_err(written(&self.path))
    }
}

/// A spreadsheet takes a cell that begins like this for a formula, and does what it says. Behind an apostrophe it is text.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// A cell: nothing where there is no value.
fn cell_text(column: &dyn Array, row: usize, out: &mut Vec<u8>) -> io::Result<()> {
    match column.data_type() {
        _ if column.is_null(row) => Ok(()),
        DataType::Utf8 | DataType::Dictionary(..) => {
            let text = text(column, row);
            if text.starts_with(FORMULA) {
                out.push(b'\'');
            }
            out.write_all(text.as_bytes())
        }
        DataType::Float64 => write!(out, "{:?}", column.as_primitive::<Float64Type>().value(row)),
        _ => json::write(&Cell(column, row), out),
    }
}

fn text(column: &dyn Array, row: usize) -> &str {
    match column.as_any_dictionary_opt() {
        None => column.as_string::<i32>().value(row),
        Some(_) => {
            let column = column.as_dictionary::<Int32Type>();
            column.values().as_string::<i32>().value(column.keys().value(row) as usize)
        }
    }
}

/// A value of a column, as JSON.
struct Cell<'a>(&'a dyn Array, usize);

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Cell(column, row) = *self;
        match column.data_type() {
            _ if column.is_null(row) => to.serialize_unit(),
            DataType::Int32 => to.serialize_i32(column.as_primitive::<Int32Type>().value(row)),
            DataType::Int64 => to.serialize_i64(column.as_primitive::<Int64Type>().value(row)),
            DataType::Float64 => to.serialize_f64(column.as_primitive::<Float64Type>().value(row)),
            DataType::Boolean => to.serialize_bool(column.as_boolean().value(row)),
            DataType::List(_) => {
                let values = column.as_list::<i32>().value(row);
                to.collect_seq((0..values.len()).map(|i| Cell(&values, i)))
            }
            DataType::Struct(_) => status(column.as_struct(), row, to),
            _ => to.serialize_str(text(column, row)),
        }
    }
}

/// As `dump --json` has it: a name stands where the number would.
fn status<S: Serializer>(fields: &StructArray, row: usize, to: S) -> Result<S::Ok, S::Error> {
    let names = fields.column_names();
    let all = names.into_iter().zip(fields.columns()).filter(|(name, _)| !name.ends_with("_name"));
    to.collect_map(all.map(|(name, column)| {
        let named = fields.column_by_name(&format!("{name}_name")).filter(|named| named.is_valid(row));
        (name, Cell(named.unwrap_or(column), row))
    }))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray};

    use super::*;

    #[test]
    fn no_text_is_a_formula() {
        let texts = ["=HYPERLINK(\"x\")", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a=1", "", "'=1"];
        let column = StringArray::from(texts.to_vec());
        let cell = |column: &dyn Array, row| {
            let mut cell = Vec::new();
            cell_text(column, row, &mut cell).unwrap();
            String::from_utf8(cell).unwrap()
        };
        for (row, text) in texts.iter().enumerate() {
            let safe = if row < 6 { format!("'{text}") } else { (*text).to_owned() };
            assert_eq!(cell(&column, row), safe);
        }
        // Numbers are no texts.
        assert_eq!(cell(&Int64Array::from(vec![-1]), 0), "-1");
    }
}
