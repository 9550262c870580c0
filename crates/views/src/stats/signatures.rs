//! Calls and time by function and arguments, of a trace in which calls with different numbers are different (`run --split off`).

use std::io::Write;

use refrain_encode::{Decoder, Layout};
use refrain_model::{Class, Dir, Kind, Param, Value};
use refrain_tracefile::Trace;
use serde::Serialize;

use super::kept::{self, Timing};
use super::sites::{Alike, alike};
use crate::error::Error;
use crate::human::thousands;
use crate::json;
use crate::length::Length;
use crate::table::Table;
use crate::value;

/// The calls of one function with the same arguments, from all places.
pub struct SignatureRow {
    pub function: &'static str,
    /// What the program gave, but for buffers and requests. Peers are told from the caller: `dest=+1`.
    pub arguments: String,
    calls: Alike,
}

/// What one call has in common with others: buffers and requests are each its own.
fn is_told(param: &Param) -> bool {
    let own =
        matches!(param.kind, Kind::Buffer | Kind::Handle(Class::Request) | Kind::Status | Kind::ArgVector);
    !own && param.dir != Dir::Out
}

/// A communicator that the program made has its number, as what it is called is for each rank to find.
fn arguments(index: u32, layout: &Layout) -> Result<String, Error> {
    let call = Decoder::new(0).call(layout, &mut |_| 0);
    let call = call.map_err(|error| Error::Symbol { index, error })?;
    let mut text = String::new();
    for (param, value) in call.function.params.iter().zip(&call.args) {
        if !is_told(param) || *value == Value::Unset {
            continue;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(param.name);
        text.push('=');
        if let (Kind::Peer(_), Value::Int(0..)) = (param.kind, value) {
            text.push('+');
        }
        value::text(value, &mut text);
    }
    Ok(text)
}

/// The most time first; without time, the most calls first. The trace is one of `--split off`.
pub fn signatures(trace: &Trace) -> Result<Vec<SignatureRow>, Error> {
    let layouts = super::layouts(&trace.bundle)?;
    let said = |(index, layout): (u32, &Layout)| Ok((layout.function.name, arguments(index, layout)?));
    let keys = (0..).zip(&layouts).map(said).collect::<Result<Vec<_>, Error>>()?;
    let row = |((function, arguments), calls)| SignatureRow { function, arguments, calls };
    Ok(alike(trace, &layouts, keys.into_iter()).into_iter().map(row).collect())
}

pub fn write_signatures_text(trace: &Trace, rows: &[SignatureRow], out: &mut dyn Write) -> Result<(), Error> {
    let mut table =
        Table::new(["function", "calls", "time", "mean", "min", "max", "of run", "ranks", "arguments"]);
    let length = Length::of(trace);
    for SignatureRow { function, arguments, calls: Alike { ranks, calls, time } } in rows {
        let [time, mean, min, max, share] = kept::cells(*time, *calls, length.as_ref());
        let ranks = match ranks.len() {
            all if all == u64::from(trace.meta.ranks) => "all".to_owned(),
            _ => ranks.to_string(),
        };
        let calls = thousands(*calls);
        table.row([(*function).into(), calls, time, mean, min, max, share, ranks, arguments.clone()]);
    }
    let timed = rows.iter().filter_map(|row| Some((row.function, row.calls.calls, row.calls.time?)));
    for (function, calls, spent) in kept::together(timed) {
        let [time, mean, min, max, share] = kept::cells(Some(spent), calls, length.as_ref());
        let all = kept::ALL_TOGETHER.to_owned();
        table.row([function.into(), thousands(calls), time, mean, min, max, share, String::new(), all]);
    }
    let table = table.render();
    out.write_all(table.as_bytes())?;
    let why = match trace.meta.timed {
        true => format!(
            "Time is that of the calls on all ranks together. Peers are told from the caller: +1 is the next rank. {}",
            kept::legend(&table, length.as_ref())
        ),
        false => "Time was not kept (--time off).".to_owned(),
    };
    writeln!(out, "\n{}", why.trim_end())?;
    Ok(out.flush()?)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    ranks: u32,
    signatures: Vec<Signature<'a>>,
}

#[derive(Serialize)]
struct Signature<'a> {
    function: &'static str,
    arguments: &'a str,
    calls: u64,
    ranks: String,
    #[serde(flatten)]
    time: Option<Timing>,
}

impl<'a> Signature<'a> {
    fn of(row: &'a SignatureRow) -> Signature<'a> {
        let SignatureRow { function, arguments, calls: Alike { ranks, calls, time } } = row;
        let time = Timing::of(*time, *calls);
        Signature { function, arguments, calls: *calls, ranks: ranks.to_string(), time }
    }
}

pub fn write_signatures_json(trace: &Trace, rows: &[SignatureRow], out: &mut dyn Write) -> Result<(), Error> {
    let signatures = rows.iter().map(Signature::of).collect();
    let document = Document { schema: "refrain-signatures-1", ranks: trace.meta.ranks, signatures };
    Ok(json::document(&document, out)?)
}
