//! The tables of `stats`, for people and for programs.

use std::collections::HashMap;
use std::io::Write;

use refrain_fold::bundle::Tally;
use refrain_tracefile::Trace;
use refrain_tracefile::profile::{Profile, Spent};
use serde::Serialize;

use super::times::{self, Times};
use super::{Amount, DEFINITION, FunctionRow, RankRow, Stats, Timing};
use crate::error::Error;
use crate::human::{duration, ranks as rank_list, size, thousands};
use crate::json;
use crate::table::Table;

/// Which tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    Function,
    Rank,
    Both,
}

pub fn write_text(trace: &Trace, stats: &Stats, per: Per, out: &mut dyn Write) -> Result<(), Error> {
    let mut text = String::new();
    if per != Per::Rank {
        functions(trace, stats, &mut text);
    }
    if per == Per::Both {
        text.push('\n');
    }
    if per != Per::Function {
        ranks(trace, stats, per == Per::Rank, &mut text);
    }
    text.push('\n');
    text.push_str(DEFINITION);
    text.push('\n');
    if stats.functions.iter().any(|row| row.payload.is_some_and(|p| !p.exact)) {
        text.push_str(
            "A payload with a + is at least that: the trace does not say how large some of it was.\n",
        );
    }
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn functions(trace: &Trace, stats: &Stats, text: &mut String) {
    let mut table = Table::new(["function", "calls", "payload", "time", "mean", "min", "max", "share"]);
    let timed = trace.meta.timed;
    let all =
        stats.functions.iter().filter_map(|row| row.time).fold(0u64, |sum, t| sum.saturating_add(t.total));
    for row in &stats.functions {
        let payload = row.payload.map_or("-".into(), shown);
        let [time, mean, min, max, share] = match measured(row) {
            Some(t) => [
                duration(t.total),
                duration(mean(row).unwrap_or(0)),
                duration(t.min),
                duration(t.max),
                format!("{:.1}%", if all == 0 { 0.0 } else { t.total as f64 / all as f64 * 100.0 }),
            ],
            None => std::array::from_fn(|_| "-".into()),
        };
        table.row([row.name.into(), thousands(row.calls), payload, time, mean, min, max, share]);
    }
    let total = total(&stats.ranks);
    let time = if timed { duration(all) } else { "-".into() };
    let dash = || "-".to_string();
    table.row([
        "all".into(),
        thousands(total.calls),
        shown(total.payload),
        time,
        dash(),
        dash(),
        dash(),
        dash(),
    ]);
    text.push_str(&table.render());
    if !timed {
        text.push_str("\nTime was not kept (--time off).\n");
    } else if stats.functions.iter().any(|row| row.name == "MPI_Finalize") {
        text.push_str("\nMPI_Finalize has no time: the trace is written in it.\n");
    }
}

/// Ranks that made as many calls and gave as much share a line.
fn ranks(trace: &Trace, stats: &Stats, all: bool, text: &mut String) {
    let mut alike: Vec<(RankRow, Vec<u32>)> = Vec::new();
    let mut line_of: HashMap<RankRow, usize> = HashMap::new();
    for (rank, row) in (0u32..).zip(&stats.ranks) {
        let line = *line_of.entry(*row).or_insert_with(|| {
            alike.push((*row, Vec::new()));
            alike.len() - 1
        });
        alike[line].1.push(rank);
    }
    let mut table = Table::new(["ranks", "number", "calls each", "payload each"]);
    for (row, ranks) in &alike {
        let number = thousands(ranks.len() as u64);
        table.row([rank_list(ranks), number, thousands(row.calls), shown(row.payload)]);
    }
    text.push_str(&table.render());
    text.push('\n');
    match &trace.meta.profile {
        Some(profile) => times::text(trace, profile, all, text),
        None => text.push_str("Time by rank was not kept.\n"),
    }
}

/// Exact numbers, nanoseconds and bytes.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    ranks: u32,
    #[serde(flatten)]
    total: RankRow,
    #[serde(skip_serializing_if = "Option::is_none")]
    functions: Option<Vec<Function>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by_rank: Option<Vec<OfRank>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mpi_time: Option<MpiTime>,
}

#[derive(Serialize)]
struct Function {
    function: &'static str,
    calls: u64,
    #[serde(flatten)]
    payload: Option<Amount>,
    #[serde(flatten)]
    time: Option<Timing>,
}

#[derive(Serialize)]
struct OfRank {
    rank: u32,
    #[serde(flatten)]
    row: RankRow,
    #[serde(flatten)]
    times: Option<times::RankTimesRow>,
}

#[derive(Serialize)]
struct MpiTime {
    total_ns: u64,
    min_ns: u64,
    min_rank: u32,
    max_ns: u64,
    max_rank: u32,
    by_rank_least_told_ns: u64,
}

impl Function {
    fn of(row: &FunctionRow) -> Function {
        let time = measured(row).map(|time| Timing::of(time, mean(row).unwrap_or(0)));
        Function { function: row.name, calls: row.calls, payload: row.payload, time }
    }
}

impl MpiTime {
    fn of(profile: &Profile, stats: &Stats) -> Option<MpiTime> {
        let inside = profile.row(Spent::Inside)?;
        let times = stats.functions.iter().filter_map(measured);
        Some(MpiTime {
            total_ns: times.fold(0u64, |sum, time| sum.saturating_add(time.total)),
            min_ns: inside.least.1,
            min_rank: inside.least.0,
            max_ns: inside.most.1,
            max_rank: inside.most.0,
            by_rank_least_told_ns: profile.least_told(),
        })
    }
}

fn by_rank(stats: &Stats, times: &Times) -> Vec<OfRank> {
    // Both are in order.
    let mut next = times.ranks.iter().peekable();
    let of_rank = |(rank, row): (u32, &RankRow)| OfRank {
        rank,
        row: *row,
        times: next.next_if(|of| of.rank == rank).map(|of| times::RankTimesRow::of(&times.functions, of)),
    };
    (0u32..).zip(&stats.ranks).map(of_rank).collect()
}

pub fn write_json(trace: &Trace, stats: &Stats, per: Per, out: &mut dyn Write) -> Result<(), Error> {
    let profile = trace.meta.profile.as_ref();
    let times = (per != Per::Function).then(|| profile.map(Times::of).unwrap_or_default());
    let document = Document {
        schema: "refrain-stats-1",
        ranks: trace.meta.ranks,
        total: total(&stats.ranks),
        functions: (per != Per::Rank).then(|| stats.functions.iter().map(Function::of).collect()),
        by_rank: times.as_ref().map(|times| by_rank(stats, times)),
        verdict: times.as_ref().and_then(Times::verdict),
        mpi_time: profile.and_then(|profile| MpiTime::of(profile, stats)),
    };
    Ok(json::document(&document, out)?)
}

fn shown(amount: Amount) -> String {
    size(amount.bytes) + if amount.exact { "" } else { "+" }
}

/// `MPI_Finalize` has not ended when the trace is written, so its time is not known.
fn measured(row: &FunctionRow) -> Option<Tally> {
    row.time.filter(|time| time.max > 0)
}

fn mean(row: &FunctionRow) -> Option<u64> {
    row.time?.total.checked_div(row.calls)
}

fn total(rows: &[RankRow]) -> RankRow {
    rows.iter().fold(RankRow::default(), |mut sum, row| {
        sum.calls = sum.calls.saturating_add(row.calls);
        sum.payload.add(row.payload, 1);
        sum
    })
}
