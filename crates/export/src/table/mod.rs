//! Calls as rows of a table with typed columns, for Parquet, CSV and Arrow.
//!
//! A parameter of MPI becomes a column of its name, with one type in all traces: see [`names`]. What does not have that type
//! (`dest=MPI_PROC_NULL`) has a column of its own beside it. Which columns a trace needs is known from its symbols
//! ([`shapes`]) before any call is read. No value is lost: the rows can be turned back into what `refrain dump --json` prints,
//! and what one needs for that is in the schema's metadata ([`schema`]).

mod batches;
mod builder;
mod names;
mod schema;
mod shapes;

pub use batches::{Batches, ROWS, Rows, Stop};
pub use schema::Misfit;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use refrain_views::timed::time_of;

use crate::{Error, Input, Output, Report};

/// Where rows go.
pub(crate) trait Sink {
    /// Rows of one rank.
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Error>;
    fn end(self: Box<Self>) -> Result<(), Error>;
}

/// A file that takes rows with these columns.
pub(crate) type Begin<'b> = &'b dyn Fn(SchemaRef, &Output) -> Result<Box<dyn Sink>, Error>;

/// All rows that were asked for.
pub(crate) fn write(input: &mut Input, out: &Output, begin: Begin) -> Result<Report, Error> {
    let which = input.selection();
    let rows = Rows { trace: input.trace, times: input.times, names: input.names, which: &which };
    let mut batches = Batches::new(rows)?;
    let mut out = out.clone();
    let mut sink = begin(batches.schema(), &out)?;
    let mut calls = 0;
    loop {
        match batches.next_batch() {
            Ok(None) => break,
            Ok(Some(batch)) => {
                calls += batch.num_rows() as u64;
                sink.batch(&batch)?;
                (input.progress)(batches.read());
            }
            Err(Stop::Misfit(misfit)) => {
                batches = batches.again(misfit)?;
                // What is there now is ours.
                out.force = true;
                drop(sink);
                sink = begin(batches.schema(), &out)?;
                calls = 0;
            }
            Err(Stop::Trace(error)) => return Err(Error::Trace(error)),
            Err(Stop::Arrow(error)) => {
                let (what, help) =
                    (format!("the table cannot be made: {error}"), "please report this".into());
                return Err(Error::Refused { what, help });
            }
        }
    }
    sink.end()?;
    let mut notes = Vec::new();
    if input.times.is_none() {
        let how = if input.trace.meta.timed { time_of(input.trace)?.to_string() } else { "off".into() };
        notes.push(match input.trace.meta.extrapolated() {
            Some(from) => {
                format!("start_ns and end_ns are empty: the trace was extrapolated {from}, nobody recorded it")
            }
            None => format!(
                "start_ns and end_ns are empty: the run was recorded with --time {how}; --time exact keeps them"
            ),
        });
    }
    Ok(Report { calls, notes })
}
