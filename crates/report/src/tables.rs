//! Functions, call sites, messages and loops.

use std::collections::HashMap;

use refrain_tracefile::Trace;
use refrain_views::Error;
use refrain_views::loops::{Outline, outline};
use refrain_views::stats::{By, Matrix, SiteRow, Size, Stats, What, classes};
use serde_json::{Value, json};

use crate::ranks::shortened;
use crate::{Input, number};

/// Call sites that are listed.
const MOST_SITES: usize = 150;
/// Runs of the matrix that go into the page as they are: with more it is cells.
const MOST_RUNS: usize = 6000;
/// Cells a side of a matrix that is not told exactly.
const CELLS: u32 = 96;
/// Kinds of ranks whose loops are shown, and lines of each.
const KINDS: usize = 6;
const LINES: usize = 250;
/// Loops of traces that have only rules are looked for in so many calls.
const MOST_CALLS: u64 = 2_000_000;
/// Rows of sizes.
const MOST_CLASSES: usize = 400;

/// Name, calls, payload, and time: total, shortest, longest.
pub fn functions(stats: &Stats) -> Value {
    let row = |row: &refrain_views::stats::FunctionRow| {
        let time = row.time.filter(|time| time.max > 0);
        json!([
            row.name,
            row.calls,
            row.payload.map(|payload| number(payload.bytes)),
            time.map(|time| time.total),
            time.map(|time| time.min),
            time.map(|time| time.max),
        ])
    };
    stats.functions.iter().map(row).collect()
}

pub fn sites(trace: &Trace, rows: &[SiteRow]) -> Value {
    let row = |row: &SiteRow| {
        let time = row.time.filter(|time| time.max > 0);
        let all = row.ranks.len() == u64::from(trace.meta.ranks);
        let ranks = if all { "all".into() } else { shortened(&row.ranks.to_string()) };
        let place = row.place.as_ref().map_or("?".into(), ToString::to_string);
        json!([
            row.function,
            place,
            row.calls,
            time.map(|t| t.total),
            time.map(|t| t.min),
            time.map(|t| t.max),
            ranks,
            time.is_some_and(|t| t.together)
        ])
    };
    let shown: Vec<Value> = rows.iter().take(MOST_SITES).map(row).collect();
    json!({ "all": rows.len(), "rows": shown })
}

/// As stretches of ranks that send the same to the rank so far away, or as cells.
pub fn matrix(matrix: &Matrix) -> Value {
    let total = matrix.runs.iter().fold((0u128, 0u128), |(messages, bytes), run| {
        let n = u128::from(run.last - run.first + 1);
        (messages + n * u128::from(run.sent.messages), bytes.saturating_add(run.sent.bytes.saturating_mul(n)))
    });
    let (runs, cells) = if matrix.runs.len() <= MOST_RUNS {
        let row = |run: &refrain_views::stats::Run| {
            json!([run.offset, run.first, run.last, run.sent.messages, number(run.sent.bytes)])
        };
        (matrix.runs.iter().map(row).collect::<Vec<_>>(), Value::Null)
    } else {
        (Vec::new(), cells(matrix))
    };
    json!({
        "ranks": matrix.ranks,
        "messages": number(total.0),
        "bytes": number(total.1),
        "runs": runs,
        "cells": cells,
        "about": matrix.about,
        "left_out": matrix.left_out,
    })
}

fn cells(matrix: &Matrix) -> Value {
    let each = matrix.ranks.div_ceil(CELLS).max(1);
    let mut cells: HashMap<(u32, u32), (u128, u128)> = HashMap::new();
    for run in &matrix.runs {
        for rank in run.first..=run.last {
            let Ok(to) = u32::try_from(i64::from(rank) + run.offset) else { continue };
            let cell = cells.entry((rank / each, to / each)).or_default();
            cell.0 += u128::from(run.sent.messages);
            cell.1 = cell.1.saturating_add(run.sent.bytes);
        }
    }
    let mut rows: Vec<_> = cells.into_iter().collect();
    rows.sort_unstable_by_key(|(at, _)| *at);
    let rows: Vec<Value> =
        rows.into_iter().map(|((from, to), (m, b))| json!([from, to, number(m), number(b)])).collect();
    json!({ "each": each, "rows": rows })
}

/// Messages by size; and where time was kept, calls of functions by size.
pub fn sizes(trace: &Trace, matrix: &Matrix) -> Result<Value, Error> {
    let messages = matrix.sizes.iter();
    let messages: Vec<Value> =
        messages.map(|(bits, sent)| json!([bits, sent.messages, number(sent.bytes)])).collect();
    let rows = classes(trace, By::Size)?;
    let rows: Vec<Value> = rows
        .iter()
        .take(MOST_CLASSES)
        .filter_map(|row| match row.what {
            What::Size(Size::Bytes(least, most)) => Some(json!([
                row.function,
                number(least),
                number(most),
                row.calls,
                row.time.total,
                row.time.max,
                null,
                row.time.together
            ])),
            _ => None,
        })
        .collect();
    Ok(json!({ "messages": messages, "classes": rows }))
}

/// The loops, or why they are not shown.
pub fn outlines(input: &Input<'_>) -> Result<Vec<Outline>, String> {
    let bundle = &input.trace.bundle;
    let folded = |cohort: &refrain_fold::bundle::OfThread<'_>| {
        bundle.structures.get(cohort.structure as usize).is_some_and(|structure| structure.loops().is_some())
    };
    // One rank of each kind is gone through where there are only rules.
    let calls =
        bundle.of_threads().iter().filter(|cohort| !folded(cohort)).take(KINDS).fold(0u64, |sum, cohort| {
            let first = cohort.ranks.first().unwrap_or(0);
            bundle.counts(cohort, first).iter().fold(sum, |sum, (_, times)| sum.saturating_add(*times))
        });
    if calls > MOST_CALLS {
        return Err(format!(
            "This trace keeps rules instead of loops, and finding loops means going through {} calls. `refrain loops {}` \
             does it. A run recorded with `refrain run --fold loops` has its loops in the trace.",
            refrain_views::human::thousands(calls),
            input.file
        ));
    }
    outline(input.trace, input.names, KINDS, LINES).map_err(|error| error.to_string())
}

/// Lines with the time of their calls: that of the call site, or without one that of the function.
pub fn loops(outlines: &Result<Vec<Outline>, String>, sites: &[SiteRow], stats: &Stats) -> Value {
    let outlines = match outlines {
        Err(why) => return json!({ "why": why }),
        Ok(outlines) => outlines,
    };
    let mut by_place: HashMap<(&str, String), u64> = HashMap::new();
    for row in sites {
        if let (Some(time), Some(place)) = (row.time.filter(|time| time.max > 0), &row.place) {
            *by_place.entry((row.function, place.to_string())).or_default() += time.total;
        }
    }
    let by_function: HashMap<&str, u64> = stats
        .functions
        .iter()
        .filter_map(|row| Some((row.name, row.time.filter(|time| time.max > 0)?.total)))
        .collect();
    let time = |text: &str| -> Option<u64> {
        let (function, _) = text.split_once('(')?;
        match text.rsplit_once("  at ") {
            Some((_, place)) => {
                let place = place.split(" < ").next().unwrap_or(place);
                by_place.iter().find(|((f, p), _)| *f == function && p == place).map(|(_, time)| *time)
            }
            None => by_function.get(function).copied(),
        }
    };
    let kinds = outlines.iter().map(|outline| {
        let lines = outline.lines.iter().map(|(depth, text)| json!([depth, text, time(text)]));
        json!({
            "ranks": shortened(&outline.ranks.to_string()),
            "thread": outline.thread,
            "heading": outline.heading,
            "lines": lines.collect::<Vec<_>>(),
        })
    });
    json!({ "kinds": kinds.collect::<Vec<_>>(), "by_site": !by_place.is_empty() })
}
