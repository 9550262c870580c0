//! The tables of `stats`, for people and for programs.

use std::collections::HashMap;
use std::io::Write;

use refrain_tracefile::Trace;
use refrain_tracefile::profile::{Profile, Spent};
use serde::Serialize;

use super::kept::{self, Timing};
use super::times::{self, Times};
use super::{Amount, DEFINITION, FunctionRow, RankRow, Stats};
use crate::cores;
use crate::error::Error;
use crate::human::{ranks as rank_list, size, thousands};
use crate::json;
use crate::length::{self, Length};
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
    let mut table = Table::new(["function", "calls", "payload", "time", "mean", "min", "max", "of run"]);
    let (timed, length) = (trace.meta.timed, Length::of(trace));
    for row in &stats.functions {
        let payload = row.payload.map_or("-".into(), shown);
        let [time, mean, min, max, share] = kept::cells(row.time, row.calls, length.as_ref());
        table.row([row.name.into(), thousands(row.calls), payload, time, mean, min, max, share]);
    }
    let total = total(&stats.ranks);
    let all = stats.time();
    let time = if timed { all.to_string() } else { "-".into() };
    let dash = || "-".to_string();
    table.row([
        "all".into(),
        thousands(total.calls),
        shown(total.payload),
        time,
        dash(),
        dash(),
        dash(),
        if timed { length::share(length.as_ref(), all) } else { dash() },
    ]);
    let table = table.render();
    text.push_str(&table);
    if timed {
        let legend = kept::legend(&table, length.as_ref());
        text.push_str(&if legend.is_empty() { legend } else { format!("\n{legend}\n") });
    }
    if !timed {
        text.push_str("\nTime was not kept (--time off).\n");
    } else if stats.functions.iter().any(|row| row.name == "MPI_Finalize") {
        text.push_str("MPI_Finalize has no time: the trace is written in it.\n");
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
    match Times::of(trace, stats) {
        Some(times) => times::text(trace, &times, all, text),
        None => text.push_str("Time by rank was not kept.\n"),
    }
}

/// Nanoseconds and bytes; what is rounded has its error beside it.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    ranks: u32,
    /// How long the run lasted.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_error_ns: Option<u64>,
    /// The times of all ranks together.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_ranks_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    all_ranks_error_ns: Option<u64>,
    #[serde(flatten)]
    total: RankRow,
    #[serde(skip_serializing_if = "Option::is_none")]
    functions: Option<Vec<Function>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by_rank: Option<Vec<OfRank>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
    /// What may be the fault of a rank less than of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    oversubscribed: Option<String>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    total_error_ns: Option<u64>,
    min_ns: u64,
    min_rank: u32,
    max_ns: u64,
    max_rank: u32,
    by_rank_least_told_ns: u64,
}

impl Function {
    fn of(row: &FunctionRow) -> Function {
        let time = Timing::of(row.time, row.calls);
        Function { function: row.name, calls: row.calls, payload: row.payload, time }
    }
}

impl MpiTime {
    fn of(profile: &Profile, stats: &Stats) -> Option<MpiTime> {
        let inside = profile.row(Spent::Inside)?;
        Some(MpiTime {
            total_ns: stats.time().ns,
            total_error_ns: stats.time().open(),
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
    let times = (per != Per::Function).then(|| Times::of(trace, stats).unwrap_or_default());
    let length = Length::of(trace);
    let document = Document {
        schema: "refrain-stats-1",
        ranks: trace.meta.ranks,
        run_ns: length.map(|length| length.run.ns),
        run_error_ns: length.and_then(|length| length.run.open()),
        all_ranks_ns: length.map(|length| length.all.ns),
        all_ranks_error_ns: length.and_then(|length| length.all.open()),
        total: total(&stats.ranks),
        functions: (per != Per::Rank).then(|| stats.functions.iter().map(Function::of).collect()),
        by_rank: times.as_ref().map(|times| by_rank(stats, times)),
        verdict: times.as_ref().and_then(Times::verdict),
        oversubscribed: times.as_ref().and_then(|_| cores::crowded(&trace.meta)),
        mpi_time: profile.and_then(|profile| MpiTime::of(profile, stats)),
    };
    Ok(json::document(&document, out)?)
}

fn shown(amount: Amount) -> String {
    size(amount.bytes) + if amount.exact { "" } else { "+" }
}

fn total(rows: &[RankRow]) -> RankRow {
    rows.iter().fold(RankRow::default(), |mut sum, row| {
        sum.calls = sum.calls.saturating_add(row.calls);
        sum.payload.add(row.payload, 1);
        sum
    })
}
