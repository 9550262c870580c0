//! Calls and time by function and arguments, of a trace in which calls with different numbers are different (`run --split off`).

use std::io::Write;

use refrain_encode::{Decoder, Layout};
use refrain_model::{Class, Dir, Kind, Param, Value};
use refrain_tracefile::Trace;
use serde::Serialize;

use super::kept::Timing;
use super::sites::{Alike, Line, alike, heading, write_lines};
use crate::error::Error;
use crate::json;
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
    let line = |row: &SignatureRow| Line {
        function: row.function,
        ranks: row.calls.ranks.clone(),
        calls: row.calls.calls,
        time: row.calls.time,
        last: row.arguments.clone(),
    };
    let table = Table::new(heading("arguments")).with_prose();
    let about = "Peers are told from the caller: +1 is the next rank. ";
    write_lines(trace, table, rows.iter().map(line), about, out)
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
