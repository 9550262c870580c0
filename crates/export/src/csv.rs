//! The rows of a table as text with commas. Lists and statuses are JSON.

use std::fmt::Write;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use ::csv::Writer;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::{DataType, SchemaRef};
use refrain_views::json;

use crate::out::written;
use crate::table::{self, Sink};
use crate::{Error, Input, Output, Report};

pub fn write(input: &mut Input, out: &Output) -> Result<Report, Error> {
    table::write(input, out, &begin)
}

struct Text {
    writer: Writer<BufWriter<File>>,
    path: PathBuf,
    cell: String,
}

fn begin(schema: SchemaRef, out: &Output) -> Result<Box<dyn Sink>, Error> {
    let mut writer = Writer::from_writer(out.file()?);
    let names = schema.fields().iter().map(|field| field.name());
    writer.write_record(names).map_err(|error| written(&out.path)(error.into()))?;
    Ok(Box::new(Text { writer, path: out.path.clone(), cell: String::new() }))
}

impl Sink for Text {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let mut all = || -> Result<(), ::csv::Error> {
            for row in 0..batch.num_rows() {
                for column in batch.columns() {
                    self.cell.clear();
                    cell_text(column, row, &mut self.cell);
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

/// A cell: nothing where there is no value.
fn cell_text(column: &dyn Array, row: usize, out: &mut String) {
    if column.is_null(row) {
        return;
    }
    match column.data_type() {
        DataType::Utf8 => out.push_str(column.as_string::<i32>().value(row)),
        DataType::Dictionary(..) => {
            let column = column.as_dictionary::<Int32Type>();
            cell_text(column.values(), column.keys().value(row) as usize, out);
        }
        _ => as_json(column, row, out),
    }
}

fn as_json(column: &dyn Array, row: usize, out: &mut String) {
    if column.is_null(row) {
        out.push_str("null");
        return;
    }
    let _ = match column.data_type() {
        DataType::Int32 => write!(out, "{}", column.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => write!(out, "{}", column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => write!(out, "{:?}", column.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => write!(out, "{}", column.as_boolean().value(row)),
        DataType::List(_) => {
            let values = column.as_list::<i32>().value(row);
            json::array(0..values.len(), out, |i, out| as_json(&values, i, out));
            Ok(())
        }
        DataType::Struct(_) => {
            status(column.as_struct(), row, out);
            Ok(())
        }
        _ => {
            let mut text = String::new();
            cell_text(column, row, &mut text);
            json::string(&text, out);
            Ok(())
        }
    };
}

/// As `dump --json` has it: a name stands where the number would.
fn status(fields: &StructArray, row: usize, out: &mut String) {
    let mut object = json::Object::new(out);
    let names = fields.column_names();
    for (name, column) in names.iter().zip(fields.columns()).filter(|(name, _)| !name.ends_with("_name")) {
        let named = fields.column_by_name(&format!("{name}_name")).filter(|named| named.is_valid(row));
        as_json(named.unwrap_or(column), row, object.key(name));
    }
    object.end();
}
