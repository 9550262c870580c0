//! The Python module `refrain`: a trace as Python's own values, iterators and tables.
//!
//! Owns: types of Python and what crosses between threads. Does not own: what a trace says (`refrain-views`), tables
//! (`refrain-export`). What Python does better is in `python/refrain/__init__.py`, which wraps this.
//!
//! A trace is read by one thread, and what that needs cannot move to another. So iterators and streams have a thread of their own
//! that reads ahead ([`ahead`]); Python waits for it without holding its lock.

mod ahead;
mod calls;
mod opened;
mod table;
mod values;

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use refrain_model::choice;
use refrain_sites::Binaries;
use refrain_views::dump::Selection;
use refrain_views::select;
use refrain_views::{flight, info, loops, stats, waits};

use calls::{Call, Calls, Site};
use opened::Opened;
use table::Table;

create_exception!(
    refrain,
    Error,
    PyException,
    "A trace that cannot be read, or a question that it has no answer to."
);

/// An error of ours, in the words of the command.
fn failed(what: impl std::fmt::Display) -> PyErr {
    Error::new_err(what.to_string())
}

/// Which calls, as the words of the command line.
type Asked = (Option<String>, Option<String>, Option<String>, Option<String>, Option<String>);

fn selection((ranks, threads, calls, only, between): Asked) -> PyResult<Selection> {
    let numbers = |text: Option<String>| text.map(|text| text.parse().map_err(failed)).transpose();
    let calls = calls.map(|text| select::positions(&text).map_err(failed)).transpose()?;
    Ok(Selection {
        ranks: numbers(ranks)?,
        threads: numbers(threads)?,
        calls: calls.unwrap_or(0..u64::MAX),
        only: only.map(|text| choice::chosen(&text).map_err(failed)).transpose()?,
        between: between.map(|text| select::between(&text).map_err(failed)).transpose()?,
    })
}

/// A trace file. The whole of it is read at once, but for times of single calls.
#[pyclass(frozen, subclass, module = "refrain._refrain", name = "Trace")]
struct Trace {
    opened: Arc<Opened>,
}

impl Trace {
    /// A document of the command, as JSON.
    fn document(
        &self,
        py: Python<'_>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), refrain_views::Error> + Send,
    ) -> PyResult<String> {
        let mut text = Vec::new();
        py.detach(|| write(&mut text)).map_err(|error| self.opened.failed(error))?;
        String::from_utf8(text).map_err(failed)
    }
}

#[pymethods]
impl Trace {
    #[new]
    #[pyo3(signature = (path, modules = Vec::new(), elements = None))]
    fn new(py: Python<'_>, path: PathBuf, modules: Vec<PathBuf>, elements: Option<usize>) -> PyResult<Trace> {
        let mut opened = py.detach(|| Opened::read(path, modules)).map_err(failed)?;
        opened.trace.bundle.most_elements = elements;
        Ok(Trace { opened: Arc::new(opened) })
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.opened.path.clone()
    }

    #[getter]
    fn ranks(&self) -> u32 {
        self.opened.trace.meta.ranks
    }

    fn _info(&self, py: Python<'_>) -> PyResult<String> {
        let opened = &self.opened;
        self.document(py, |out| {
            let name = opened.path.to_string_lossy();
            let (bytes, sections) = (opened.length, &opened.sections);
            let names = Binaries::new(&flight::modules(&opened.trace), &opened.modules);
            let flight = flight::picture(&opened.trace, &names);
            let timed = opened.times()?.map(|times| times.count());
            let file = info::File { name: &name, bytes, sections, references: None, timed, flight };
            info::write_json(&opened.trace, &file, out)
        })
    }

    fn _stats(&self, py: Python<'_>, per: Option<&str>) -> PyResult<String> {
        let opened = &self.opened;
        let folders = &self.opened.modules;
        let per = match per {
            None => stats::Per::Both,
            Some("function") => stats::Per::Function,
            Some("rank") => stats::Per::Rank,
            Some(by @ ("size" | "peer")) => {
                let by = if by == "size" { stats::By::Size } else { stats::By::Peer };
                return self.document(py, move |out| {
                    let trace = &opened.summed_up()?;
                    let rows = stats::classes(trace, by)?;
                    stats::write_classes_json(trace, by, &rows, out)
                });
            }
            Some("site") => {
                return self.document(py, move |out| {
                    let trace = &opened.summed_up()?;
                    let names = Binaries::new(&trace.bundle.sites, folders);
                    let rows = stats::sites(trace, &names)?;
                    stats::write_sites_json(trace, &rows, out)
                });
            }
            Some("signature") => {
                if opened.trace.meta.split {
                    let why = "calls are not told apart by all their arguments; trace the run with --time mean=signature";
                    return Err(failed(why));
                }
                return self.document(py, move |out| {
                    let trace = &opened.summed_up()?;
                    stats::write_signatures_json(trace, &stats::signatures(trace)?, out)
                });
            }
            Some("path") => {
                return self.document(py, move |out| {
                    let trace = &opened.trace;
                    let names = Binaries::new(&trace.bundle.sites, folders);
                    let rows = stats::paths(trace, &names)?;
                    stats::write_paths_json(trace, &rows, out)
                });
            }
            Some(other) => {
                let known = "function, rank, size, peer, signature, site, path";
                return Err(failed(format!("'{other}' is none of: {known}")));
            }
        };
        self.document(py, move |out| {
            let trace = &opened.summed_up()?;
            let all = stats::stats(trace)?;
            stats::write_json(trace, &all, per, out)
        })
    }

    fn _waits(&self, py: Python<'_>) -> PyResult<String> {
        let opened = &self.opened;
        self.document(py, move |out| {
            let times = opened.times()?.ok_or(refrain_views::Error::NoTimes)?;
            let all = waits::waits(&opened.trace, &times)?;
            let names = Binaries::new(&opened.trace.bundle.sites, &opened.modules);
            waits::write_json(&all, &names, out)
        })
    }

    fn _loops(&self, py: Python<'_>, ranks: Option<String>) -> PyResult<String> {
        let opened = &self.opened;
        let ranks = ranks.map(|text| text.parse().map_err(failed)).transpose()?;
        let options = loops::Options { ranks, threads: None, depth: None, all: false, folded: false };
        self.document(py, move |out| {
            let names = Binaries::new(&opened.trace.bundle.sites, &opened.modules);
            loops::write_json(&opened.trace, &names, &options, out)
        })
    }

    /// Who sends how much to whom, whether some of it is not exact, and how many messages are left out.
    fn _matrix(&self, py: Python<'_>) -> PyResult<(Vec<Run>, bool, u64)> {
        let opened = &self.opened;
        let matrix = py.detach(|| stats::matrix(&opened.trace)).map_err(|error| opened.failed(error))?;
        let run = |run: &stats::Run| (run.offset, run.first, run.last, run.sent.messages, run.sent.bytes);
        Ok((matrix.runs.iter().map(run).collect(), matrix.about, matrix.left_out))
    }

    fn _calls(&self, asked: Asked) -> PyResult<Calls> {
        Ok(Calls::new(self.opened.clone(), selection(asked)?))
    }

    fn _table(&self, asked: Asked) -> PyResult<Table> {
        Ok(Table::new(self.opened.clone(), selection(asked)?))
    }
}

/// What ranks in a row send to the rank that is so far away: offset, first, last, messages, bytes.
type Run = (i64, u32, u32, u64, u128);

/// What `refrain` is made of: see its `__init__.py`.
#[pymodule]
fn _refrain(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Error", module.py().get_type::<Error>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Trace>()?;
    module.add_class::<Call>()?;
    module.add_class::<Site>()?;
    module.add_class::<Calls>()?;
    module.add_class::<Table>()
}
