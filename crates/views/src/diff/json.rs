//! What was found, as JSON.

use std::io::Write;

use refrain_fold::ranks::RankList;
use serde::Serialize;

use super::write::{Report, each_gave};
use super::{CallsOfRank, First, FunctionRow, Moved, OfRank, Row, Told, Which};
use crate::error::Error;
use crate::json;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    equal: bool,
    files: Both<&'a str>,
    ranks: Both<u32>,
    calls: Both<u64>,
    not_compared: &'a [&'static str],
    notes: &'a [String],
    first: Vec<FirstCall<'a>>,
    alone: Vec<Alone<'a>>,
    functions: Vec<OfFunction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<OfRow<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<OfTimes<'a>>,
}

/// The same of both traces.
#[derive(Serialize)]
struct Both<T> {
    a: T,
    b: T,
}

impl<T> From<(T, T)> for Both<T> {
    fn from((a, b): (T, T)) -> Both<T> {
        Both { a, b }
    }
}

#[derive(Serialize)]
struct FirstCall<'a> {
    #[serde(serialize_with = "json::shown")]
    ranks: &'a RankList,
    thread: u32,
    rank: u32,
    number: Both<u64>,
    function: Both<Option<&'static str>>,
    at: Both<Option<String>>,
    changes: Vec<Changed>,
}

#[derive(Serialize)]
struct Changed {
    what: String,
    a: String,
    b: String,
}

#[derive(Serialize)]
struct Alone<'a> {
    r#in: &'static str,
    thread: u32,
    #[serde(serialize_with = "json::shown")]
    ranks: &'a RankList,
}

#[derive(Serialize)]
struct OfFunction {
    function: &'static str,
    a: u64,
    b: u64,
    differ: Option<u64>,
}

#[derive(Serialize)]
struct OfRow<'a> {
    function: &'static str,
    at: Option<&'a str>,
    alike: bool,
    calls: Both<CallsOfRank>,
    bytes_a_call: Both<Option<u128>>,
    loops: Both<&'a [u64]>,
}

#[derive(Serialize)]
struct OfTimes<'a> {
    /// Null where a trace does not tell them.
    ranks: Option<Vec<OfRankTimes>>,
    ranks_changed: Option<&'a [u32]>,
    within_noise: usize,
    /// Call sites whose times are kept together with those of others that are not in both.
    #[serde(skip_serializing_if = "is_none")]
    left_out: usize,
    changed: Vec<OfMoved<'a>>,
}

#[derive(Serialize)]
struct OfRankTimes {
    rank: u32,
    run_ns: Both<u64>,
    run_error_ns: Both<u64>,
    outside_ns: Both<u64>,
    outside_error_ns: Both<u64>,
}

impl OfRankTimes {
    fn of(one: &OfRank) -> OfRankTimes {
        let both = |(a, b): (Told, Told), of: fn(Told) -> u64| Both { a: of(a), b: of(b) };
        OfRankTimes {
            rank: one.rank,
            run_ns: both(one.run, |told| told.ns),
            run_error_ns: both(one.run, |told| told.error),
            outside_ns: both(one.outside, |told| told.ns),
            outside_error_ns: both(one.outside, |told| told.error),
        }
    }
}

#[derive(Serialize)]
struct OfMoved<'a> {
    function: &'static str,
    at: Option<&'a str>,
    /// Of so many call sites, whose times are kept together.
    #[serde(skip_serializing_if = "Option::is_none")]
    sites_together: Option<usize>,
    mean_ns: Both<u64>,
    mean_error_ns: Both<u64>,
    calls: Both<u64>,
    noise_ns: u64,
}

fn is_none(number: &usize) -> bool {
    *number == 0
}

impl<'a> FirstCall<'a> {
    fn of(report: &Report<'_>, first: &'a First) -> FirstCall<'a> {
        let changes = report.changes(first).into_iter().map(|(what, a, b)| Changed { what, a, b });
        FirstCall {
            ranks: &first.ranks,
            thread: first.thread,
            rank: first.rank,
            number: first.number.into(),
            function: first.function.into(),
            at: report.places(first).into(),
            changes: changes.collect(),
        }
    }
}

impl<'a> Alone<'a> {
    fn of((which, thread, ranks): &'a (Which, u32, RankList)) -> Alone<'a> {
        Alone { r#in: if *which == Which::A { "a" } else { "b" }, thread: *thread, ranks }
    }
}

impl OfFunction {
    fn of(row: &FunctionRow) -> OfFunction {
        OfFunction { function: row.name, a: row.calls.0, b: row.calls.1, differ: row.differ }
    }
}

impl<'a> OfRow<'a> {
    fn of(report: &Report<'_>, row: &'a Row) -> OfRow<'a> {
        let (a, b) = (&row.calls.0, &row.calls.1);
        OfRow {
            function: row.function,
            at: row.at.as_deref(),
            alike: row.is_alike(report.diff.ranks),
            calls: (*a, *b).into(),
            bytes_a_call: (each_gave(row.payload.0, a), each_gave(row.payload.1, b)).into(),
            loops: (&row.turns.0[..], &row.turns.1[..]).into(),
        }
    }
}

impl<'a> OfMoved<'a> {
    fn of(moved: &'a Moved) -> OfMoved<'a> {
        let (a, b) = (moved.a.told(), moved.b.told());
        OfMoved {
            function: moved.function,
            at: moved.at.as_deref(),
            sites_together: moved.together,
            mean_ns: (a.ns, b.ns).into(),
            mean_error_ns: (a.error, b.error).into(),
            calls: (moved.a.calls, moved.b.calls).into(),
            noise_ns: moved.noise.round() as u64,
        }
    }
}

pub fn write_json(report: &Report<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let diff = report.diff;
    let document = Document {
        schema: "refrain-diff-1",
        equal: report.is_equal(),
        files: report.files.into(),
        ranks: diff.ranks.into(),
        calls: diff.calls.into(),
        not_compared: &diff.ignored,
        notes: &diff.notes,
        first: diff.firsts.iter().map(|first| FirstCall::of(report, first)).collect(),
        alone: diff.alone.iter().map(Alone::of).collect(),
        functions: diff.functions.iter().map(OfFunction::of).collect(),
        rows: report.rows.map(|rows| rows.iter().map(|row| OfRow::of(report, row)).collect()),
        times: report.slower.map(|slower| OfTimes {
            ranks: slower.lasted.as_ref().map(|lasted| lasted.ranks.iter().map(OfRankTimes::of).collect()),
            ranks_changed: slower.lasted.as_ref().map(|lasted| &lasted.moved[..]),
            within_noise: slower.within,
            left_out: slower.left,
            changed: slower.moved.iter().map(OfMoved::of).collect(),
        }),
    };
    Ok(json::document(&document, out)?)
}
