//! Every call of the ranks asked for, with every argument by name, one a line.

use std::fmt::Write as _;
use std::io::Write;
use std::ops::Range;

use refrain_encode::Reader;
use refrain_fold::bundle::Bundle;
use refrain_model::{Call, Function, Value};
use refrain_sites::{Names, Place};
use refrain_tracefile::Trace;

use crate::error::Error;
use crate::json;
use crate::select::Numbers;
use crate::value;

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
}

impl Default for Selection {
    fn default() -> Self {
        Selection { ranks: None, threads: None, calls: 0..u64::MAX, only: None }
    }
}

/// Where calls came from is shown too.
#[derive(Clone, Copy)]
pub struct From<'n> {
    pub names: &'n dyn Names,
    /// All frames, not only that of the call.
    pub stacks: bool,
}

/// Rank by rank, thread by thread, in the order in which the calls happened.
pub fn dump(trace: &Trace, which: &Selection, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    dump_from(trace, which, format, None, out)
}

/// The same with the call site of each call.
pub fn dump_from(
    trace: &Trace,
    which: &Selection,
    format: Format,
    from: Option<From>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let bundle = &trace.bundle;
    let ranks = trace.meta.ranks;
    if let Some(rank) = which.ranks.as_ref().and_then(|r| r.beyond(ranks)) {
        let have = format!("0 to {}", ranks.saturating_sub(1));
        return Err(Error::NoSuch { what: "rank", number: rank, have });
    }
    let threads = bundle.most_threads();
    if let Some(thread) = which.threads.as_ref().and_then(|t| t.beyond(threads)) {
        let have = format!("0 to {}", threads.saturating_sub(1));
        return Err(Error::NoSuch { what: "thread", number: thread, have });
    }
    let columns = Columns {
        rank: ranks.saturating_sub(1).to_string().len(),
        number: longest(bundle).saturating_sub(1).to_string().len(),
        threads: threads > 1,
    };
    let reader = Reader::new(bundle);
    let mut line = String::new();
    for rank in (0..ranks).filter(|r| which.ranks.as_ref().is_none_or(|w| w.contains(*r))) {
        for thread in reader.threads(rank) {
            if which.threads.as_ref().is_some_and(|w| !w.contains(thread)) {
                continue;
            }
            let failed = |position| move |error| Error::Call { rank, thread, position, error };
            let Range { start, end } = which.calls;
            let mut calls = reader.calls_from(rank, thread, start).map_err(failed(start))?;
            for position in start..end {
                let Some(call) = calls.next() else { break };
                let call = call.map_err(failed(position))?;
                let wanted =
                    which.only.as_ref().is_none_or(|only| only.iter().any(|f| f.id == call.function.id));
                if !wanted {
                    continue;
                }
                line.clear();
                let symbol = calls.symbol();
                let site = from.map(|from| site(bundle, symbol, from));
                match format {
                    Format::Text => {
                        as_text(&call, rank, thread, position, &columns, &mut line);
                        site_text(site.as_deref().unwrap_or_default(), &mut line);
                    }
                    Format::Json => as_json(&call, rank, thread, position, site.as_deref(), &mut line),
                }
                line.push('\n');
                out.write_all(line.as_bytes())?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// The frames of a symbol by name, outermost first: all of them, or that of the call.
fn site(bundle: &Bundle, symbol: Option<u32>, from: From) -> Vec<Place> {
    let site = symbol.and_then(|symbol| bundle.symbols.get(symbol as usize)).map_or(0, |entry| entry.site);
    let frames = bundle.sites.frames(site);
    let first = if from.stacks { 0 } else { frames.len().saturating_sub(1) };
    frames[first..].iter().flat_map(|frame| from.names.places(*frame).to_vec()).collect()
}

fn site_text(places: &[Place], line: &mut String) {
    for (i, place) in places.iter().rev().enumerate() {
        let _ = write!(line, "{}{place}", if i == 0 { "  at " } else { ", in " });
    }
}

struct Columns {
    rank: usize,
    number: usize,
    threads: bool,
}

/// The most calls that any thread made.
fn longest(bundle: &Bundle) -> u64 {
    let most = |cohort: &refrain_fold::bundle::Cohort| {
        let calls = cohort.ranks.iter().map(|rank| refrain_encode::calls_of(bundle, cohort, rank));
        if cohort.is_uniform() { calls.take(1).max() } else { calls.max() }.unwrap_or(0)
    };
    bundle.cohorts.iter().map(most).max().unwrap_or(0)
}

fn as_text(call: &Call, rank: u32, thread: u32, position: u64, columns: &Columns, line: &mut String) {
    let (rank_width, width) = (columns.rank, columns.number);
    let _ = match columns.threads {
        true => write!(line, "[{rank:>rank_width$}.{thread}] {position:>width$}  "),
        false => write!(line, "[{rank:>rank_width$}] {position:>width$}  "),
    };
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
    value::text(&call.result, line);
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

fn as_json(call: &Call, rank: u32, thread: u32, position: u64, site: Option<&[Place]>, line: &mut String) {
    let mut object = json::Object::new(line);
    object.plain("rank", rank).plain("thread", thread).plain("number", position);
    object.text("call", call.function.name);
    let mut args = json::Object::new(object.key("args"));
    for (param, value) in call.function.params.iter().zip(&call.args) {
        value::json(value, args.key(param.name));
    }
    args.end();
    value::json(&call.result, object.key("result"));
    if !call.facts.is_empty() {
        let mut facts = json::Object::new(object.key("facts"));
        for (i, (name, _)) in call.facts.iter().enumerate() {
            let known = call.facts[..i].iter().any(|(earlier, _)| earlier == name);
            let all: Vec<&Value> = call.facts.iter().filter(|(n, _)| n == name).map(|(_, v)| v).collect();
            match all.as_slice() {
                _ if known => {}
                [one] => value::json(one, facts.key(name)),
                // A call that makes two types (MPI_File_get_view): in the order of its parameters.
                several => json::array(several, facts.key(name), |v, out| value::json(v, out)),
            }
        }
        facts.end();
    }
    if let Some(site) = site {
        json::array(site, object.key("site"), place_json);
    }
    object.end();
}

/// A frame by name, as far as there is one.
pub(crate) fn place_json(place: &Place, out: &mut String) {
    let mut object = json::Object::new(out);
    if let Some(function) = &place.function {
        object.text("function", function);
    }
    if let Some(source) = &place.source {
        object.text("file", &source.file).plain("line", source.line);
    }
    object.text("module", &place.module).plain("offset", place.offset);
    object.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_model::{Address, Area, function};

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

    #[test]
    fn one_call_as_in_the_design() {
        let mut line = String::new();
        as_json(&send(), 0, 0, 12, None, &mut line);
        assert_eq!(
            line,
            r#"{"rank":0,"thread":0,"number":12,"call":"MPI_Send","args":{"buf":"heap#3+0","count":1,"datatype":"MPI_INT","dest":1,"tag":9,"comm":"world"},"result":0}"#
        );
        let text = |columns: Columns, thread| {
            let mut line = String::new();
            as_text(&send(), 3, thread, 12, &columns, &mut line);
            line
        };
        let call = "MPI_Send(buf=heap#3+0, count=1, datatype=MPI_INT, dest=1, tag=9, comm=world) = 0";
        assert_eq!(text(Columns { rank: 1, number: 2, threads: false }, 0), format!("[3] 12  {call}"));
        assert_eq!(text(Columns { rank: 2, number: 5, threads: true }, 1), format!("[ 3.1]    12  {call}"));
    }

    #[test]
    fn facts_only_where_there_are_some() {
        let mut call = send();
        call.facts =
            vec![("size", Value::Int(16)), ("group", Value::List(vec![Value::Int(0), Value::Int(2)]))];
        let mut line = String::new();
        as_json(&call, 0, 0, 0, None, &mut line);
        assert!(line.ends_with(r#","result":0,"facts":{"size":16,"group":[0,2]}}"#), "{line}");
        line.clear();
        as_text(&call, 0, 0, 0, &Columns { rank: 1, number: 1, threads: false }, &mut line);
        assert!(line.ends_with(" = 0 {size=16, group=[0, 2]}"), "{line}");
    }

    #[test]
    fn no_key_stands_twice() {
        let mut call = send();
        let two = [("size", 12), ("lb", 0), ("size", 4), ("lb", 0)];
        call.facts = two.map(|(name, value)| (name, Value::Int(value))).to_vec();
        let mut line = String::new();
        as_json(&call, 0, 0, 0, None, &mut line);
        assert!(line.ends_with(r#""facts":{"size":[12,4],"lb":[0,0]}}"#), "{line}");
    }
}
