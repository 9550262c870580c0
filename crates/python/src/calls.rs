//! Calls, one after the other.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use refrain_encode::Reader;
use refrain_model::{Call as Made, Value};
use refrain_sites::{Binaries, Location, Names};
use refrain_times::CallTime;
use refrain_views::dump::{Lines, Selection, call_text, chosen};

use crate::ahead::{Ahead, Gone, LOST, Sender, Taken};
use crate::opened::Opened;
use crate::values::python;

/// Calls that travel together.
const BLOCK: usize = 256;
/// Blocks that are read ahead.
const ROOM: usize = 8;
/// After so many calls, what was found among them travels, and the reader looks whether anybody waits for it.
const STRETCH: u32 = 4096;
/// So often Python is asked whether it was interrupted.
const PATIENCE: Duration = Duration::from_millis(100);

/// A call with all that is known of it.
struct Item {
    place: (u32, u32),
    number: u64,
    call: Made,
    told: Option<CallTime>,
    sites: Option<Arc<[Location]>>,
}

/// Where a call was made: a place in the program.
#[pyclass(frozen, get_all, module = "refrain", name = "Site")]
pub struct Site {
    /// None where nothing says so.
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    module: String,
    offset: u64,
    text: String,
}

#[pymethods]
impl Site {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<refrain.Site {}>", self.text)
    }
}

/// One call of one rank.
#[pyclass(frozen, module = "refrain", name = "Call")]
pub struct Call {
    item: Item,
}

#[pymethods]
impl Call {
    #[getter]
    fn rank(&self) -> u32 {
        self.item.place.0
    }

    #[getter]
    fn thread(&self) -> u32 {
        self.item.place.1
    }

    /// Its position among the calls of its thread, from 0.
    #[getter]
    fn number(&self) -> u64 {
        self.item.number
    }

    /// The function, such as "MPI_Send".
    #[getter]
    fn name(&self) -> &'static str {
        self.item.call.function.name
    }

    /// All arguments by name.
    #[getter]
    fn args<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (param, value) in self.item.call.function.params.iter().zip(&self.item.call.args) {
            dict.set_item(param.name, python(py, value)?)?;
        }
        Ok(dict)
    }

    /// What was observed beside the arguments: the group of a new communicator, the size of a new datatype.
    #[getter]
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let facts = &self.item.call.facts;
        for (name, value) in facts {
            let mut same = facts.iter().filter(|(other, _)| other == name).map(|(_, value)| value.clone());
            match same.clone().count() {
                1 => dict.set_item(name, python(py, value)?)?,
                _ => dict.set_item(name, python(py, &Value::List(same.by_ref().collect()))?)?,
            }
        }
        Ok(dict)
    }

    /// When it began, in nanoseconds since the first call of the trace; None where the trace does not say so.
    #[getter]
    fn start(&self) -> Option<i64> {
        self.item.told.map(|told| told.span.start)
    }

    /// When it ended.
    #[getter]
    fn end(&self) -> Option<i64> {
        self.item.told.map(|told| told.span.end)
    }

    /// How wrong start and end may be, in nanoseconds: (0, 0) if they are exact.
    #[getter]
    fn errors(&self) -> Option<(u64, u64)> {
        self.item.told.map(|told| (told.start_error, told.end_error))
    }

    /// The error code; an address of MPI_Aint_add and its kin; seconds of MPI_Wtime.
    #[getter]
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.item.told.and_then(|told| told.result) {
            Some(bits) => f64::from_bits(bits).into_bound_py_any(py),
            None => python(py, &self.item.call.result),
        }
    }

    /// Where it was made; None in traces without call sites.
    #[getter]
    fn site(&self) -> Option<Site> {
        self.item.sites.as_ref()?.last().map(site)
    }

    /// All places from `main` to the call; empty in traces without call sites.
    #[getter]
    fn stack(&self) -> Vec<Site> {
        self.item.sites.iter().flat_map(|places| places.iter().map(site)).collect()
    }

    fn __repr__(&self) -> String {
        let (rank, thread) = self.item.place;
        let mut text = String::new();
        call_text(&self.item.call, self.item.told.and_then(|told| told.result), &mut text);
        match thread {
            0 => format!("[{rank}] {}  {text}", self.item.number),
            _ => format!("[{rank}.{thread}] {}  {text}", self.item.number),
        }
    }
}

fn site(place: &Location) -> Site {
    Site {
        function: place.function.clone(),
        file: place.source.as_ref().map(|source| source.file.clone()),
        line: place.source.as_ref().map(|source| source.line),
        module: place.module.clone(),
        offset: place.offset,
        text: place.to_string(),
    }
}

type Block = Result<Vec<Item>, String>;

/// An iterator over calls. They are read as they are asked for.
#[pyclass(frozen, module = "refrain", name = "Calls")]
pub struct Calls {
    opened: Arc<Opened>,
    ahead: Ahead<Block>,
    block: Mutex<VecDeque<Item>>,
}

impl Calls {
    pub fn new(opened: Arc<Opened>, which: Selection) -> Calls {
        let reading = opened.clone();
        let ahead = Ahead::new(ROOM, move |sender| {
            if let Err(Stop::Failed(error)) = read(&reading, &which, sender) {
                let _ = sender.put(Err(format!("{}: {error}", reading.path.display())));
            }
        });
        Calls { opened, ahead, block: Mutex::default() }
    }
}

#[pymethods]
impl Calls {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Call>> {
        let next = || self.block.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop_front();
        loop {
            if let Some(item) = next() {
                return Ok(Some(Call { item }));
            }
            let block = match py.detach(|| self.ahead.take(PATIENCE)) {
                Taken::Item(block) => block.map_err(crate::failed)?,
                Taken::Done => return Ok(None),
                Taken::Lost => return Err(self.opened.failed(LOST)),
                Taken::Waiting => {
                    py.check_signals()?;
                    continue;
                }
            };
            self.block.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend(block);
        }
    }
}

enum Stop {
    Gone,
    Failed(refrain_views::Error),
}

impl From<refrain_views::Error> for Stop {
    fn from(error: refrain_views::Error) -> Stop {
        Stop::Failed(error)
    }
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Stop {
        Stop::Gone
    }
}

fn read(opened: &Opened, which: &Selection, sender: &Sender<Block>) -> Result<(), Stop> {
    let trace = &opened.trace;
    let times = opened.times()?;
    let reader = Reader::new(&trace.bundle);
    let names = Binaries::new(&trace.bundle.sites, &opened.modules);
    let mut sites: HashMap<u32, Arc<[Location]>> = HashMap::new();
    let mut block = Vec::new();
    // Functions are looked at here, so that a long way to the next one has stops.
    let every = Selection { only: None, ..which.clone() };
    let wanted = |call: &Made| {
        which.only.as_ref().is_none_or(|only| only.iter().any(|function| function.id == call.function.id))
    };
    let mut passed = 0;
    for place in chosen(trace, &reader, which, times.as_ref())? {
        let mut lines = Lines::new(trace, &reader, &every, times.as_ref(), (place, 1))?;
        while lines.advance()? {
            passed += 1;
            if passed == STRETCH {
                passed = 0;
                sender.still_wanted()?;
                if !block.is_empty() {
                    sender.put(Ok(std::mem::take(&mut block)))?;
                }
            }
            if !lines.call().is_some_and(|(_, call, _)| wanted(call)) {
                continue;
            }
            let symbol = lines.symbol().filter(|_| !trace.bundle.sites.is_empty());
            let Some((number, call, told)) = lines.take() else { continue };
            let sites = symbol.map(|symbol| {
                let of_symbol = || {
                    let site = trace.bundle.symbols.get(symbol as usize).map_or(0, |entry| entry.site);
                    let frames = trace.bundle.sites.frames(site);
                    frames.iter().flat_map(|frame| names.places(*frame).to_vec()).collect()
                };
                sites.entry(symbol).or_insert_with(of_symbol).clone()
            });
            block.push(Item { place, number, call, told, sites });
            if block.len() == BLOCK {
                sender.put(Ok(std::mem::take(&mut block)))?;
            }
        }
    }
    sender.put(Ok(block))?;
    Ok(())
}
