//! The rows, rank by rank, some ten thousand at a time.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use refrain_encode::Reader;
use refrain_model::{Call, Value};
use refrain_sites::{Location, Names};
use refrain_times::CallTime;
use refrain_tracefile::Trace;
use refrain_views::dump::{Lines, Selection, chosen};
use refrain_views::stats::{Given, Payloads};
use refrain_views::timed::Times;

use super::schema::{About, Columns, Misfit};
use super::shapes::Shapes;

/// The most rows of a batch: what is held in memory.
pub const ROWS: usize = 100_000;
/// About so many bytes of values end a batch before that: there are calls with ten thousand requests.
const BYTES: usize = 64 << 20;

/// About the bytes of a value.
fn weight(value: &Value) -> usize {
    match value {
        Value::List(all) => all.iter().map(weight).sum(),
        Value::InOut(before, after) => weight(before) + weight(after),
        Value::Status(_) => 40,
        _ => 8,
    }
}

/// Which rows, and what is known of them.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub trace: &'a Trace,
    pub times: Option<&'a Times>,
    pub names: &'a dyn Names,
    /// Of `calls` the first must be 0.
    pub which: &'a Selection,
}

/// Why there is no next batch.
#[derive(Debug)]
pub enum Stop {
    Trace(refrain_views::Error),
    /// The table needs one column more. Begin again with it: see [`Batches::again`].
    Misfit(Misfit),
    Arrow(ArrowError),
}

impl From<refrain_views::Error> for Stop {
    fn from(error: refrain_views::Error) -> Stop {
        Stop::Trace(error)
    }
}

impl From<Misfit> for Stop {
    fn from(misfit: Misfit) -> Stop {
        Stop::Misfit(misfit)
    }
}

/// Where calls came from, in words.
#[derive(Debug, Default)]
struct Where {
    text: String,
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    stack: Option<String>,
}

/// The rows of a table, as batches. None has rows of two ranks.
pub struct Batches<'a> {
    rows: Rows<'a>,
    shapes: Shapes,
    columns: Columns,
    reader: Reader<'a>,
    payloads: Rc<Payloads>,
    places: VecDeque<(u32, u32)>,
    at: Option<((u32, u32), Lines<'a>, Given)>,
    /// By symbol.
    sites: HashMap<u32, Rc<Where>>,
    /// Whose rows are in the batch at hand.
    rank: u32,
    read: u64,
    /// Bytes of values in the batch at hand.
    held: usize,
}

impl<'a> Batches<'a> {
    pub fn new(rows: Rows<'a>) -> Result<Batches<'a>, refrain_views::Error> {
        let shapes = Shapes::of(rows.trace, rows.which.only.as_deref(), false)?;
        Batches::with(rows, shapes)
    }

    /// For those who cannot begin again: with a column for everything that is possible, also if it is rare.
    pub fn with_all_columns(rows: Rows<'a>) -> Result<Batches<'a>, refrain_views::Error> {
        let shapes = Shapes::of(rows.trace, rows.which.only.as_deref(), true)?;
        Batches::with(rows, shapes)
    }

    fn with(rows: Rows<'a>, shapes: Shapes) -> Result<Batches<'a>, refrain_views::Error> {
        let bundle = &rows.trace.bundle;
        let reader = Reader::new(bundle);
        let places = chosen(rows.trace, &reader, rows.which, rows.times)?.into();
        let deep = bundle.symbols.iter().any(|symbol| bundle.sites.frames(symbol.site).len() > 1);
        let about = About {
            errors: rows.times.is_some_and(Times::has_errors),
            sites: !bundle.sites.is_empty(),
            stacks: deep,
        };
        let columns = Columns::new(rows.trace, &shapes, about);
        let payloads = Rc::new(Payloads::new(rows.trace)?);
        Ok(Batches {
            rows,
            shapes,
            columns,
            reader,
            payloads,
            places,
            at: None,
            sites: HashMap::new(),
            rank: 0,
            read: 0,
            held: 0,
        })
    }

    /// From the first row on, with room for what did not fit.
    pub fn again(mut self, misfit: Misfit) -> Result<Batches<'a>, refrain_views::Error> {
        self.shapes.admit(misfit.of, misfit.form);
        Batches::with(self.rows, self.shapes)
    }

    pub fn schema(&self) -> SchemaRef {
        self.columns.schema()
    }

    /// Calls that were read so far, whether they are rows or not.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// The next rows, if there are more.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, Stop> {
        while self.columns.rows() < ROWS && self.held < BYTES {
            let Some((place, lines, given)) = &mut self.at else {
                // The threads of a rank may share a batch.
                let Some(next) = self.places.front() else { break };
                if self.columns.rows() > 0 && next.0 != self.rank {
                    break;
                }
                self.begin()?;
                continue;
            };
            let (place, read) = (*place, &mut self.read);
            let more = lines.advance_past(&mut |call| {
                *read += 1;
                given.see(call);
            })?;
            let symbol = lines.symbol();
            let Some((number, call, told)) = lines.take().filter(|_| more) else {
                self.at = None;
                continue;
            };
            let bytes = given.amount(&call).filter(|amount| amount.exact);
            let bytes = bytes.and_then(|amount| i64::try_from(amount.bytes).ok());
            self.held += call.args.iter().map(weight).sum::<usize>();
            self.row(place, number, &call, told.as_ref(), bytes, symbol)?;
        }
        self.held = 0;
        match self.columns.rows() {
            0 => Ok(None),
            _ => self.columns.take().map(Some).map_err(Stop::Arrow),
        }
    }

    fn begin(&mut self) -> Result<(), refrain_views::Error> {
        let Some(place) = self.places.pop_front() else { return Ok(()) };
        let Rows { trace, times, which, .. } = self.rows;
        let lines = Lines::new(trace, &self.reader, which, times, (place, 1))?;
        self.rank = place.0;
        self.at = Some((place, lines, self.payloads.of_thread(place.1)));
        Ok(())
    }

    fn row(
        &mut self,
        (rank, thread): (u32, u32),
        number: u64,
        call: &Call,
        told: Option<&CallTime>,
        bytes: Option<i64>,
        symbol: Option<u32>,
    ) -> Result<(), Misfit> {
        let place = self.columns.own.site.zip(symbol).map(|(columns, symbol)| (columns, self.place(symbol)));
        let columns = &mut self.columns;
        let own = columns.own;
        columns.cell(own.rank).push_int(rank.into());
        columns.cell(own.thread).push_int(thread.into());
        columns.cell(own.number).push_int(number as i64);
        if let Some(told) = told {
            columns.cell(own.start).push_int(told.span.start);
            columns.cell(own.end).push_int(told.span.end);
            if let Some((start, end)) = own.errors {
                let number = |error: u64| i64::try_from(error).unwrap_or(i64::MAX);
                columns.cell(start).push_int(number(told.start_error));
                columns.cell(end).push_int(number(told.end_error));
            }
        }
        columns.cell(own.call).push_text(call.function.name);
        if let Some(bytes) = bytes {
            columns.cell(own.bytes).push_int(bytes);
        }
        if let Some((at, place)) = place {
            columns.cell(at.text).push_text(&place.text);
            let texts = [
                (Some(at.function), &place.function),
                (Some(at.file), &place.file),
                (at.stack, &place.stack),
            ];
            for (column, text) in texts {
                if let (Some(column), Some(text)) = (column, text) {
                    columns.cell(column).push_text(text);
                }
            }
            if let Some(line) = place.line {
                columns.cell(at.line).push_int(line.into());
            }
        }
        columns.arguments(call.function, &call.args)?;
        columns.result(&call.result, told.and_then(|told| told.result).map(f64::from_bits))?;
        for (i, (name, value)) in call.facts.iter().enumerate() {
            let same = || call.facts.iter().filter(|(other, _)| other == name).map(|(_, value)| value);
            match same().count() {
                1 => columns.fact(name, value)?,
                // A call that makes two types: in the order of its parameters.
                _ if call.facts[..i].iter().any(|(earlier, _)| earlier == name) => {}
                _ => columns.fact(name, &Value::List(same().cloned().collect()))?,
            }
        }
        columns.end_row();
        Ok(())
    }

    /// Where the calls of a symbol came from.
    fn place(&mut self, symbol: u32) -> Rc<Where> {
        if let Some(known) = self.sites.get(&symbol) {
            return known.clone();
        }
        let bundle = &self.rows.trace.bundle;
        let site = bundle.symbols.get(symbol as usize).map_or(0, |entry| entry.site);
        let frames = bundle.sites.frames(site);
        let places: Vec<Location> =
            frames.iter().flat_map(|frame| self.rows.names.places(*frame).to_vec()).collect();
        let stack = (frames.len() > 1)
            .then(|| places.iter().map(Location::to_string).collect::<Vec<_>>().join(" > "));
        let place = match places.last() {
            None => Where { text: "?".into(), ..Where::default() },
            Some(place) => Where {
                text: place.to_string(),
                function: place.function.clone(),
                file: place.source.as_ref().map(|source| source.file.clone()),
                line: place.source.as_ref().map(|source| source.line),
                stack,
            },
        };
        let place = Rc::new(place);
        self.sites.insert(symbol, place.clone());
        place
    }
}
