//! Parquet: one row a call, one or more row groups a rank.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::out::written;
use crate::table::{self, ROWS, Sink};
use crate::{Error, Input, Output, Report};

pub fn write(input: &mut Input, out: &Output) -> Result<Report, Error> {
    table::write(input, out, &begin)
}

struct Groups {
    writer: ArrowWriter<BufWriter<File>>,
    path: PathBuf,
}

fn begin(schema: SchemaRef, out: &Output) -> Result<Box<dyn Sink>, Error> {
    let mut said: Vec<KeyValue> =
        schema.metadata().iter().map(|(name, text)| KeyValue::new(name.clone(), text.clone())).collect();
    said.sort_by(|a, b| a.key.cmp(&b.key));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(format!("refrain {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(said))
        .build();
    let writer = ArrowWriter::try_new(out.file()?, schema, Some(properties));
    let path = out.path.clone();
    Ok(Box::new(Groups { writer: writer.map_err(|error| failed(&path, error))?, path }))
}

fn failed(path: &std::path::Path, error: ParquetError) -> Error {
    let error = match error {
        ParquetError::External(error) => error.downcast().map_or_else(std::io::Error::other, |error| *error),
        error => std::io::Error::other(error),
    };
    written(path)(error)
}

impl Sink for Groups {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        // A row group has rows of one rank.
        let done = self.writer.write(batch).and_then(|()| self.writer.flush());
        done.map_err(|error| failed(&self.path, error))
    }

    fn end(self: Box<Self>) -> Result<(), Error> {
        let Groups { writer, path } = *self;
        writer.close().map(drop).map_err(|error| failed(&path, error))
    }
}
