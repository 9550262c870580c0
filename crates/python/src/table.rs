//! The calls as a table, handed over through Arrow's C stream interface: whoever takes it reads our memory.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use refrain_export::table::{Batches, Rows, Stop};
use refrain_sites::Binaries;
use refrain_views::dump::Selection;

use crate::ahead::{Ahead, Sender};
use crate::opened::Opened;

/// Batches that are read ahead.
const ROOM: usize = 2;

/// Calls as rows. Anything that takes `__arrow_c_stream__` reads it, as often as it likes.
#[pyclass(frozen, module = "refrain", name = "Table")]
pub struct Table {
    opened: Arc<Opened>,
    which: Selection,
}

impl Table {
    pub fn new(opened: Arc<Opened>, which: Selection) -> Table {
        Table { opened, which }
    }
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Who asks for another schema gets ours and casts: the interface allows that.
        let _ = requested_schema;
        let (opened, which) = (self.opened.clone(), self.which.clone());
        let stream = py.detach(|| Stream::new(opened, which)).map_err(|error| self.opened.failed(error))?;
        let stream = FFI_ArrowArrayStream::new(Box::new(stream));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

enum Part {
    Schema(SchemaRef),
    Batch(RecordBatch),
    Failed(String),
}

/// Batches as another thread reads them.
struct Stream {
    schema: SchemaRef,
    ahead: Ahead<Part>,
}

impl Stream {
    fn new(opened: Arc<Opened>, which: Selection) -> Result<Stream, String> {
        let ahead = Ahead::new(ROOM, move |sender| {
            if let Err(Some(error)) = read(&opened, &which, sender) {
                let _ = sender.put(Part::Failed(error));
            }
        });
        match ahead.wait()? {
            Some(Part::Schema(schema)) => Ok(Stream { schema, ahead }),
            Some(Part::Failed(error)) => Err(error),
            _ => Err("its calls cannot be read".into()),
        }
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.ahead.wait() {
            Ok(Some(Part::Batch(batch))) => Some(Ok(batch)),
            Ok(Some(Part::Failed(error))) => Some(Err(ArrowError::ExternalError(error.into()))),
            Ok(None | Some(Part::Schema(_))) => None,
            Err(lost) => Some(Err(ArrowError::ExternalError(lost.into()))),
        }
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The error is nothing if nobody takes what is read.
fn read(opened: &Opened, which: &Selection, sender: &Sender<Part>) -> Result<(), Option<String>> {
    let failed = |error: refrain_views::Error| Some(error.to_string());
    let times = opened.times().map_err(failed)?;
    let names = Binaries::new(&opened.trace.bundle.sites, &opened.modules);
    let rows = Rows { trace: &opened.trace, times: times.as_ref(), names: &names, which };
    let mut batches = Batches::with_all_columns(rows).map_err(failed)?;
    sender.put(Part::Schema(batches.schema())).map_err(|_| None)?;
    loop {
        match batches.next_batch() {
            Ok(None) => return Ok(()),
            Ok(Some(batch)) => sender.put(Part::Batch(batch)).map_err(|_| None)?,
            Err(Stop::Trace(error)) => return Err(failed(error)),
            Err(Stop::Arrow(error)) => return Err(Some(error.to_string())),
            Err(Stop::Misfit(misfit)) => {
                let what = format!("{misfit:?} has no column; `refrain export --to parquet` makes one");
                return Err(Some(what));
            }
        }
    }
}
