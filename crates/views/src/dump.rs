//! Every call of the ranks asked for, with every argument by name, one a line.

mod line;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::io::Write;
use std::ops::Range;

use refrain_encode::Reader;
use refrain_fold::bundle::Bundle;
use refrain_model::{Call, Function};
use refrain_sites::{Location, Names};
use refrain_times::{CALLS, CallTime};
use refrain_tracefile::Trace;

use crate::error::Error;
use crate::json;
use crate::select::{Between, Numbers};
use crate::timed::{Timed, Times};
use crate::value;

pub(crate) use line::{At, Line, at};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `[rank] number  MPI_Send(buf=heap#3+0, ...) = 0`
    Text,
    /// `{"rank":0,"thread":0,"number":12,"call":"MPI_Send","args":{...},"result":0}`
    Json,
}

/// Which calls; by default all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    pub ranks: Option<Numbers>,
    pub threads: Option<Numbers>,
    /// Positions in a thread's sequence of calls, from 0.
    pub calls: Range<u64>,
    /// Only calls of these functions; they keep their positions.
    pub only: Option<Vec<&'static Function>>,
    /// Only calls that overlap this time.
    pub between: Option<Between>,
}

impl Default for Selection {
    fn default() -> Self {
        Selection { ranks: None, threads: None, calls: 0..u64::MAX, only: None, between: None }
    }
}

/// Where calls came from is shown too.
#[derive(Clone, Copy)]
pub struct From<'n> {
    pub names: &'n dyn Names,
    /// All frames, not only that of the call.
    pub stacks: bool,
}

/// How calls are shown.
#[derive(Clone, Copy)]
pub struct How<'a> {
    pub format: Format,
    /// With the call site of each.
    pub from: Option<From<'a>>,
    /// With when each began and ended.
    pub times: Option<&'a Times>,
    /// All threads of all ranks together, in the order in which calls began.
    pub merged: bool,
}

/// Rank by rank, thread by thread, in the order in which the calls happened.
pub fn dump(trace: &Trace, which: &Selection, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    dump_as(trace, which, &How { format, from: None, times: None, merged: false }, out)
}

/// The same with what else is known of each call, and in another order.
pub fn dump_as(trace: &Trace, which: &Selection, how: &How, out: &mut dyn Write) -> Result<(), Error> {
    let bundle = &trace.bundle;
    let ranks = trace.meta.ranks;
    let threads = bundle.most_threads();
    let reader = Reader::new(bundle);
    let chosen = chosen(trace, &reader, which, how.times)?;
    if how.merged && how.times.is_none() {
        return Err(Error::NoTimes);
    }
    let columns = Columns {
        rank: ranks.saturating_sub(1).to_string().len(),
        number: longest(bundle).saturating_sub(1).to_string().len(),
        threads: threads > 1,
        seconds: (trace.meta.wall_ns / SECOND).to_string().len(),
    };
    let compared = |times: &Times| times.comparable(chosen.iter().map(|(rank, _)| *rank));
    if how.merged && !how.times.is_none_or(compared) {
        return Err(Error::NoCommonClock);
    }
    let at_once = if how.merged { chosen.len() } else { 1 };
    let lines = |place| Lines::new(trace, &reader, which, how.times, (place, at_once));
    let mut shown = Shown { bundle, how, columns, text: String::new(), json: Vec::new(), out };
    if how.merged {
        let mut all: Vec<Lines> = chosen.into_iter().map(lines).collect::<Result<_, _>>()?;
        // By when the next call of each began; those that are not known come where the thread is.
        let mut heap = BinaryHeap::new();
        for (at, lines) in all.iter_mut().enumerate() {
            heap.extend(lines.advance()?.then_some(Reverse((lines.reached, at))));
        }
        while let Some(Reverse((_, at))) = heap.pop() {
            let lines = &mut all[at];
            shown.show(lines)?;
            heap.extend(lines.advance()?.then_some(Reverse((lines.reached, at))));
        }
    } else {
        for place in chosen {
            let mut lines = lines(place)?;
            while lines.advance()? {
                shown.show(&lines)?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// The threads that were asked for, as rank and thread. A rank or thread that is not there is an error.
pub fn chosen(
    trace: &Trace,
    reader: &Reader,
    which: &Selection,
    times: Option<&Times>,
) -> Result<Vec<(u32, u32)>, Error> {
    let beyond = |asked: &Option<Numbers>, what, there: u32| {
        let number = asked.as_ref().and_then(|asked| asked.beyond(there));
        let have = format!("0 to {}", there.saturating_sub(1));
        number.map_or(Ok(()), |number| Err(Error::NoSuch { what, number, have }))
    };
    let ranks = trace.meta.ranks;
    beyond(&which.ranks, "rank", ranks)?;
    beyond(&which.threads, "thread", trace.bundle.most_threads())?;
    if times.is_none() && which.between.is_some() {
        return Err(Error::NoTimes);
    }
    let asked = |asked: &Option<Numbers>, number| asked.as_ref().is_none_or(|asked| asked.contains(number));
    let ranks = (0..ranks).filter(|rank| asked(&which.ranks, *rank));
    let threads = |rank| reader.threads(rank).into_iter().map(move |thread| (rank, thread));
    Ok(ranks.flat_map(threads).filter(|(_, thread)| asked(&which.threads, *thread)).collect())
}

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// The calls of a thread that were asked for, one after the other.
pub struct Lines<'a> {
    calls: Timed<'a>,
    which: &'a Selection,
    place: (u32, u32),
    call: Option<(u64, Call, Option<CallTime>)>,
    /// So many calls in a row began after the time that was asked for.
    later: u32,
    /// When the last of its calls began that has a time.
    reached: i64,
}

impl<'a> Lines<'a> {
    /// Those of a thread of a rank, which is one of so many that are read at the same time.
    pub fn new(
        trace: &'a Trace,
        reader: &Reader<'a>,
        which: &'a Selection,
        times: Option<&'a Times>,
        (place, at_once): ((u32, u32), usize),
    ) -> Result<Lines<'a>, Error> {
        let from = which.calls.start;
        let calls = Timed::among(&trace.bundle, reader, times, place, from, at_once)?;
        Ok(Lines { calls, which, place, call: None, later: 0, reached: i64::MIN })
    }

    /// The call it is at: its number, what it was, and when.
    pub fn call(&self) -> Option<&(u64, Call, Option<CallTime>)> {
        self.call.as_ref()
    }

    /// The same, given away.
    pub fn take(&mut self) -> Option<(u64, Call, Option<CallTime>)> {
        self.call.take()
    }

    /// The symbol of the call it is at.
    pub fn symbol(&self) -> Option<u32> {
        self.calls.symbol()
    }

    /// Goes to the next one, if there is one.
    pub fn advance(&mut self) -> Result<bool, Error> {
        self.advance_past(&mut |_| ())
    }

    /// The same. Every call that is read on the way is shown to `seen`, whether it was asked for or not.
    pub fn advance_past(&mut self, seen: &mut dyn FnMut(&Call)) -> Result<bool, Error> {
        let which = self.which;
        self.call = None;
        while self.calls.number() < which.calls.end {
            let position = self.calls.number();
            let Some((call, told)) = self.calls.next_call()? else { break };
            seen(&call);
            if let Some(told) = told {
                self.reached = self.reached.max(told.span.start);
            }
            if let Some(between) = &which.between {
                // Calls are in the order in which they returned: one whose callback made others comes after these, and
                // began before them.
                match told.is_some_and(|told| between.is_before(&told)) {
                    true if self.later == CALLS => break,
                    true => self.later += 1,
                    false => self.later = 0,
                }
                if !told.is_some_and(|told| between.overlaps(&told)) {
                    continue;
                }
            }
            if which.only.as_ref().is_none_or(|only| only.iter().any(|f| f.id == call.function.id)) {
                self.call = Some((position, call, told));
                return Ok(true);
            }
        }
        Ok(false)
    }
}

struct Shown<'a> {
    bundle: &'a Bundle,
    how: &'a How<'a>,
    columns: Columns,
    /// The line that is made, in either format.
    text: String,
    json: Vec<u8>,
    out: &'a mut dyn Write,
}

impl Shown<'_> {
    fn show(&mut self, lines: &Lines) -> Result<(), Error> {
        let Some((position, call, told)) = &lines.call else { return Ok(()) };
        let how = self.how;
        let site = how.from.map(|from| site(self.bundle, lines.calls.symbol(), from));
        let time = how.times.map(|times| (told.as_ref(), times.has_errors()));
        match how.format {
            Format::Text => {
                self.text.clear();
                as_text(call, lines.place, *position, time, &self.columns, &mut self.text);
                site_text(site.as_deref().unwrap_or_default(), &mut self.text);
                self.text.push('\n');
                self.out.write_all(self.text.as_bytes())?;
            }
            Format::Json => {
                self.json.clear();
                let line = Line::of(call, lines.place, *position, time, site.as_deref());
                json::write(&line, &mut self.json)?;
                self.json.push(b'\n');
                self.out.write_all(&self.json)?;
            }
        }
        Ok(())
    }
}

/// The frames of a symbol by name, outermost first: all of them, or that of the call.
fn site(bundle: &Bundle, symbol: Option<u32>, from: From) -> Vec<Location> {
    let site = symbol.and_then(|symbol| bundle.symbols.get(symbol as usize)).map_or(0, |entry| entry.site);
    let frames = bundle.sites.frames(site);
    let first = if from.stacks { 0 } else { frames.len().saturating_sub(1) };
    frames[first..].iter().flat_map(|frame| from.names.places(*frame).to_vec()).collect()
}

fn site_text(places: &[Location], line: &mut String) {
    for (i, place) in places.iter().rev().enumerate() {
        let _ = write!(line, "{}{place}", if i == 0 { "  at " } else { ", in " });
    }
}

struct Columns {
    rank: usize,
    number: usize,
    threads: bool,
    /// Digits of times before the point.
    seconds: usize,
}

/// What is shown of a call's time, and whether with how wrong it may be; nothing of a trace without times.
pub(crate) type Time<'t> = Option<(Option<&'t CallTime>, bool)>;

/// The most calls that any thread made.
fn longest(bundle: &Bundle) -> u64 {
    let most = |cohort: &refrain_fold::bundle::Cohort| {
        let calls = cohort.ranks.iter().map(|rank| refrain_encode::calls_of(bundle, cohort, rank));
        if cohort.is_uniform() { calls.take(1).max() } else { calls.max() }.unwrap_or(0)
    };
    bundle.cohorts.iter().map(most).max().unwrap_or(0)
}

/// `1.000000205`, from nanoseconds, with spaces before it as long as it is shorter than that.
fn seconds(time: i64, digits: usize, line: &mut String) {
    let (sign, time) = (if time < 0 { "-" } else { "" }, time.unsigned_abs());
    let before = format!("{sign}{}", time / SECOND);
    let _ = write!(line, "{before:>digits$}.{:09}", time % SECOND);
}

fn time_text(told: Option<&CallTime>, errors: bool, columns: &Columns, line: &mut String) {
    let Some(CallTime { span, start_error, end_error, .. }) = told else {
        line.push_str("-  ");
        return;
    };
    let mut one = |before: &str, time: i64, error: u64, digits: usize| {
        line.push_str(before);
        seconds(time, digits, line);
        if errors {
            line.push_str("+-");
            seconds(i64::try_from(error).unwrap_or(i64::MAX), 0, line);
        }
    };
    one("", span.start, *start_error, columns.seconds);
    one("..", span.end, *end_error, 0);
    line.push_str("  ");
}

fn as_text(
    call: &Call,
    (rank, thread): (u32, u32),
    position: u64,
    time: Time,
    columns: &Columns,
    line: &mut String,
) {
    let (rank_width, width) = (columns.rank, columns.number);
    let _ = match columns.threads {
        true => write!(line, "[{rank:>rank_width$}.{thread}] {position:>width$}  "),
        false => write!(line, "[{rank:>rank_width$}] {position:>width$}  "),
    };
    if let Some((told, errors)) = time {
        time_text(told, errors, columns, line);
    }
    call_text(call, time.and_then(|(told, _)| told?.result), line);
}

/// `MPI_Send(buf=heap#3+0, ...) = 0`. `returned`: by its bits, what a clock of MPI returned.
pub fn call_text(call: &Call, returned: Option<u64>, line: &mut String) {
    line.push_str(call.function.name);
    line.push('(');
    for (i, (param, value)) in call.function.params.iter().zip(&call.args).enumerate() {
        if i > 0 {
            line.push_str(", ");
        }
        line.push_str(param.name);
        line.push('=');
        value::text(value, line);
    }
    line.push_str(") = ");
    match returned {
        // As few digits as give back all bits.
        Some(bits) => drop(write!(line, "{:?}", f64::from_bits(bits))),
        None => value::text(&call.result, line),
    }
    for (i, (name, value)) in call.facts.iter().enumerate() {
        line.push_str(if i == 0 { " {" } else { ", " });
        line.push_str(name);
        line.push('=');
        value::text(value, line);
    }
    if !call.facts.is_empty() {
        line.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_model::{Address, Area, Value, function};

    fn send() -> Call {
        Call {
            function: function("MPI_Send").unwrap(),
            args: vec![
                Value::Address(Address { area: Area::Heap, device: 0, segment: 3, offset: 0 }),
                Value::Int(1),
                Value::Name("MPI_INT"),
                Value::Int(1),
                Value::Int(9),
                Value::Comm("world".into()),
            ],
            result: Value::Int(0),
            facts: vec![],
        }
    }

    fn columns(rank: usize, number: usize, threads: bool) -> Columns {
        Columns { rank, number, threads, seconds: 2 }
    }

    #[test]
    fn times_of_a_call() {
        let shown = |errors, start| {
            let span = refrain_times::Span { start, end: 2_000_000_003 };
            let told = CallTime { span, start_error: 7, end_error: 1_500_000_000, result: None };
            let (mut text, time) = (String::new(), Some((Some(&told), errors)));
            as_text(&send(), (3, 0), 12, time, &columns(1, 2, false), &mut text);
            let json = json::text(&Line::of(&send(), (3, 0), 12, time, None));
            let json =
                json.split_once(r#""number":12,"#).unwrap().1.split_once(r#","call""#).unwrap().0.to_owned();
            (text.split_once("MPI_Send").unwrap().0.to_owned(), json)
        };
        let (text, json) = shown(false, 205);
        assert_eq!(text, "[3] 12   0.000000205..2.000000003  ");
        assert_eq!(json, r#""start":205,"end":2000000003"#);
        let (text, json) = shown(true, -5);
        assert_eq!(text, "[3] 12  -0.000000005+-0.000000007..2.000000003+-1.500000000  ");
        assert_eq!(json, r#""start":-5,"end":2000000003,"start_error":7,"end_error":1500000000"#);
        let mut line = String::new();
        as_text(&send(), (3, 0), 12, Some((None, false)), &columns(1, 2, false), &mut line);
        assert!(line.starts_with("[3] 12  -  MPI_Send"), "{line}");
    }

    #[test]
    fn one_call_as_in_the_design() {
        let line = json::text(&Line::of(&send(), (0, 0), 12, None, None));
        assert_eq!(
            line,
            r#"{"rank":0,"thread":0,"number":12,"call":"MPI_Send","args":{"buf":"heap#3+0","count":1,"datatype":"MPI_INT","dest":1,"tag":9,"comm":"world"},"result":0}"#
        );
        let text = |columns: Columns, thread| {
            let mut line = String::new();
            as_text(&send(), (3, thread), 12, None, &columns, &mut line);
            line
        };
        let call = "MPI_Send(buf=heap#3+0, count=1, datatype=MPI_INT, dest=1, tag=9, comm=world) = 0";
        assert_eq!(text(columns(1, 2, false), 0), format!("[3] 12  {call}"));
        assert_eq!(text(columns(2, 5, true), 1), format!("[ 3.1]    12  {call}"));
    }

    #[test]
    fn facts_only_where_there_are_some() {
        let mut call = send();
        call.facts =
            vec![("size", Value::Int(16)), ("group", Value::List(vec![Value::Int(0), Value::Int(2)]))];
        let mut line = json::text(&Line::of(&call, (0, 0), 0, None, None));
        assert!(line.ends_with(r#","result":0,"facts":{"size":16,"group":[0,2]}}"#), "{line}");
        line.clear();
        as_text(&call, (0, 0), 0, None, &columns(1, 1, false), &mut line);
        assert!(line.ends_with(" = 0 {size=16, group=[0, 2]}"), "{line}");
    }

    #[test]
    fn no_key_stands_twice() {
        let mut call = send();
        let two = [("size", 12), ("lb", 0), ("size", 4), ("lb", 0)];
        call.facts = two.map(|(name, value)| (name, Value::Int(value))).to_vec();
        let line = json::text(&Line::of(&call, (0, 0), 0, None, None));
        assert!(line.ends_with(r#""facts":{"size":[12,4],"lb":[0,0]}}"#), "{line}");
    }
}
