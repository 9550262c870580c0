//! Who waits for whom, and what the run took as long as: of traces that tell when each call was.

use refrain_views::info;
use refrain_views::waits::{CallSite, Sum, Waits, unmatched, waits};
use serde_json::{Value, json};

use crate::{Input, Progress};

/// Rows of each table.
const ROWS: usize = 30;
/// Ranks with a bar of their own.
const RANKS: usize = 256;
/// More calls than these are not gone through.
const MOST_CALLS: u64 = 20_000_000;

/// What is found; nothing where the trace does not tell times, an error where they do not help.
pub fn found(input: &Input<'_>, progress: Progress<'_>) -> Result<Option<Waits>, String> {
    let Some(times) = input.times else { return Ok(None) };
    let calls = info::calls(&input.trace.bundle);
    if calls > MOST_CALLS {
        return Err(format!(
            "Waits are found by going through all calls, and {} are many. `refrain stats {} --waits` does it.",
            refrain_views::human::thousands(calls),
            input.file
        ));
    }
    progress("looking for waits", 0, 1);
    waits(input.trace, times).map(Some).map_err(|error| error.to_string())
}

pub fn place(input: &Input<'_>, place: &CallSite) -> Option<String> {
    input.names.places(place.frame?).last().map(ToString::to_string)
}

/// A rank, and its part of the whole in percent.
fn most(all: &[(u32, Sum)]) -> Value {
    let total: u64 = all.iter().map(|(_, sum)| sum.total).sum();
    let part = |sum: &Sum| (sum.total as f64 / total.max(1) as f64 * 100.0).round();
    all.iter().take(3).map(|(rank, sum)| json!([rank, part(sum)])).collect()
}

pub fn value(input: &Input<'_>, found: &Result<Option<Waits>, String>) -> Value {
    let waits = match found {
        Err(why) => return json!({ "why": why }),
        Ok(None) => return Value::Null,
        Ok(Some(waits)) => waits,
    };
    let large = |time: u64| time.saturating_mul(500) >= waits.length.all.ns && time > 0;
    let rows = waits.rows.iter().filter(|row| large(row.all.total)).take(ROWS).map(|row| {
        let waiters: Vec<(u32, Sum)> = row.ranks.iter().map(|waiter| (waiter.rank, waiter.all)).collect();
        json!([
            row.pattern.name(),
            row.place.function,
            place(input, &row.place),
            row.all.total,
            row.all.count,
            row.all.longest,
            most(&waiters),
            most(&row.causes()),
        ])
    });
    let path = waits.path.iter().take(ROWS);
    let path = path.map(|step| {
        json!([step.rank, step.place.function, place(input, &step.place), step.computing, step.time])
    });
    let each = waits.ranks.len().div_ceil(RANKS).max(1);
    let ranks = waits.ranks.chunks(each).enumerate().map(|(at, chunk)| {
        let mean = |of: fn(&refrain_views::waits::RankTimes) -> u64| {
            chunk.iter().map(|rank| u128::from(of(rank))).sum::<u128>() / chunk.len() as u128
        };
        let of = [
            mean(|r| r.computing),
            mean(|r| r.communicating),
            mean(|r| r.waiting),
            mean(|r| r.setup),
            mean(|r| r.caused),
        ];
        json!([at * each, at * each + chunk.len() - 1, of.map(crate::number)])
    });
    let of_path = |computing: bool| {
        waits.path.iter().filter(|step| step.computing == computing).map(|step| step.time).sum::<u64>()
    };
    json!({
        "rows": rows.collect::<Vec<_>>(),
        "path": path.collect::<Vec<_>>(),
        "path_computing": of_path(true),
        "path_calls": of_path(false),
        "ranks": ranks.collect::<Vec<_>>(),
        "notes": waits.notes.iter().cloned().chain(unmatched(&waits.left)).collect::<Vec<_>>(),
    })
}
