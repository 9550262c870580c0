//! The timeline of a trace that tells when each call began and ended.

use std::collections::HashMap;

use refrain_encode::Reader;
use refrain_views::Error;
use refrain_views::happenings::{Moment, Walk, When};
use refrain_views::human::{duration, plural, thousands};
use refrain_views::info;
use refrain_views::loops::Outline;
use refrain_views::select::Between;
use refrain_views::timed::{Timed, Times};
use serde_json::{Value, json};

use super::lines::Lines;
use super::{COLUMNS, Detail, Functions, MOST_CALLS, MOST_ROWS, bands, legend};
use crate::{Input, Progress};

/// Calls that are gone through for the overview, and to find out which send belongs to which receive.
const MOST_WALKED: u64 = 20_000_000;
const MOST_MATCHED: u64 = 4_000_000;

/// Time by column and function, in columns that become wider as the run goes on.
struct Bins {
    width: i64,
    functions: usize,
    /// By row, column and function.
    rows: Vec<Vec<u64>>,
    /// Calls by column, of the ranks that are shown closely.
    calls: Vec<u64>,
}

impl Bins {
    fn new(rows: usize, functions: usize, wall: u64) -> Bins {
        let width = i64::try_from(wall / COLUMNS as u64).unwrap_or(1).max(1);
        Bins { width, functions, rows: vec![vec![0; COLUMNS * functions]; rows], calls: vec![0; COLUMNS] }
    }

    fn reach(&mut self, end: i64) {
        while end / self.width >= COLUMNS as i64 {
            self.width *= 2;
            for row in &mut self.rows {
                for column in 0..COLUMNS {
                    for f in 0..self.functions {
                        let at = |c: usize| if c < COLUMNS { row[c * self.functions + f] } else { 0 };
                        let sum = at(2 * column) + at(2 * column + 1);
                        row[column * self.functions + f] = sum;
                    }
                }
            }
            for column in 0..COLUMNS {
                let at = |c: usize| self.calls.get(c).copied().unwrap_or(0);
                self.calls[column] = at(2 * column) + at(2 * column + 1);
            }
        }
    }

    fn add(&mut self, row: usize, (start, end): (i64, i64), function: usize, close: bool) {
        let (start, end) = (start.max(0), end.max(0));
        self.reach(end);
        let (first, last) = ((start / self.width) as usize, (end / self.width) as usize);
        for column in first..=last.min(COLUMNS - 1) {
            let (from, to) = (column as i64 * self.width, (column as i64 + 1) * self.width);
            let part = end.min(to) - start.max(from);
            self.rows[row][column * self.functions + function] += part.max(0) as u64;
        }
        if close {
            self.calls[first.min(COLUMNS - 1)] += 1;
        }
    }
}

/// A thread of a rank, and the row it is in; `close`: its calls are shown one by one.
struct Member {
    rank: u32,
    thread: u32,
    row: usize,
    close: bool,
}

/// And the labels of rows, and whether there are threads without one.
fn members(input: &Input<'_>, reader: &Reader<'_>) -> (Vec<Member>, Vec<String>, bool) {
    let ranks = input.trace.meta.ranks;
    let mut all: Vec<(u32, u32)> = Vec::new();
    for rank in 0..ranks {
        all.extend(reader.threads(rank).into_iter().map(|thread| (rank, thread)));
    }
    let several = all.iter().any(|(_, thread)| *thread > 0);
    let first_only = several && all.len() > MOST_ROWS;
    if first_only {
        all.retain(|(_, thread)| *thread == 0);
    }
    let each = all.len().div_ceil(MOST_ROWS).max(1);
    let mut labels = Vec::new();
    let mut members = Vec::new();
    for (row, chunk) in all.chunks(each).enumerate() {
        labels.push(match chunk {
            [(rank, thread)] if several && !first_only => format!("rank {rank}.{thread}"),
            [(rank, _)] => format!("rank {rank}"),
            [(first, _), .., (last, _)] => format!("{first} - {last}"),
            [] => String::new(),
        });
        for (at, (rank, thread)) in chunk.iter().enumerate() {
            members.push(Member { rank: *rank, thread: *thread, row, close: at == 0 });
        }
    }
    (members, labels, first_only)
}

pub fn timeline(
    input: &Input<'_>,
    times: &Times,
    functions: &Functions,
    outlines: &[Outline],
    progress: Progress<'_>,
) -> Result<Value, Error> {
    let bundle = &input.trace.bundle;
    let reader = Reader::new(bundle);
    let (members, labels, first_only) = members(input, &reader);
    let all = info::calls(bundle);
    let quota = MOST_WALKED / (members.len() as u64).max(1);
    let mut bins = Bins::new(labels.len(), functions.names.len(), input.trace.meta.wall_ns);
    let mut in_row = vec![0u64; labels.len()];
    let (mut end, mut done, mut cut) = (0i64, 0u64, false);
    // When the first rank has started.
    let mut started = i64::MAX;
    for member in &members {
        let mut calls = Timed::new(bundle, &reader, Some(times), (member.rank, member.thread), 0)?;
        in_row[member.row] += 1;
        let mut own = 0;
        while let Some((_, told)) = calls.next_call()? {
            done += 1;
            own += 1;
            if done.is_multiple_of(1 << 14) {
                progress("drawing", done, all);
            }
            if let Some(told) = told {
                end = end.max(told.span.end);
                if own == 1
                    && functions
                        .names
                        .get(functions.number(calls.symbol()))
                        .is_some_and(|name| name.starts_with("MPI_Init"))
                {
                    started = started.min(told.span.end);
                }
                bins.add(
                    member.row,
                    (told.span.start, told.span.end),
                    functions.number(calls.symbol()),
                    member.close,
                );
            }
            if own == quota {
                cut = true;
                break;
            }
        }
    }
    if let Some(between) = input.between.filter(|between| between.from >= end) {
        return Err(beyond(between.from, end));
    }
    let window = window(input, &bins, end);
    let (detail, window, marks) = closely(input, times, functions, outlines, &members, window, end)?;

    let mut spent = vec![0u128; functions.names.len()];
    let rows: Vec<String> = bins
        .rows
        .iter()
        .zip(&in_row)
        .map(|(row, members)| encoded(row, &bins, *members, &mut spent))
        .collect();
    let columns = usize::try_from(end / bins.width + 1).unwrap_or(COLUMNS).min(COLUMNS);
    let rows: Vec<&str> = rows.iter().map(|row| &row[..2 * columns]).collect();
    let everything = window.0 <= 0 && window.1 >= end;
    let grouped = members.len() > labels.len();
    let matched = !grouped && all <= MOST_MATCHED;
    let (lines, unclear) = if matched { lines(input, times, &members, window)? } else { Default::default() };

    let mut notes = Vec::new();
    if !everything {
        notes.push(format!(
            "\"Every call\" shows {} to {}; `refrain report {} --between T1..T2` chooses another stretch.",
            duration(window.0.max(0) as u64),
            duration(window.1.max(0) as u64),
            input.file
        ));
    }
    if grouped {
        notes.push(
            "A row of the overview is the mean of several ranks; call by call it is the first of them."
                .into(),
        );
    } else if !matched {
        notes
            .push(format!("Lines of messages are left out: {} calls are too many to match.", thousands(all)));
    } else if unclear > 0 {
        notes.push(format!(
            "{} without a line: the trace does not say who sent the message.",
            plural(unclear, "receive")
        ));
    }
    if first_only {
        notes.push("Shown is thread 0 of each rank.".into());
    }
    if cut {
        notes.push(format!("Of each rank the first {} calls are drawn.", thousands(quota)));
    }
    if times.has_errors() {
        notes.push("Times are binned: each may be off by the error that `refrain dump` tells.".into());
    }
    if times.some_lost() {
        notes.push("Some calls have no times and are not drawn.".into());
    }
    Ok(json!({
        "how": "recorded",
        "read": "One row a rank, time from left to right; a colour is a function of MPI, grey is the program's own work. Long bars on all \
                 rows but one are ranks that wait for that one.",
        "note": notes.join(" "),
        "lost": times.some_lost(),
        "functions": functions.names,
        "legend": legend(functions, &spent),
        "rows": labels,
        "span": [0, end.max(1)],
        "home": [if started < end { started.max(0) } else { 0 }, end.max(1)],
        "overview": { "start": 0, "end": columns as i64 * bins.width, "columns": columns, "rows": rows },
        "detail": detail.value(window.0, window.1),
        "messages": lines.value(1),
        "bands": bands(&marks, window.1),
    }))
}

/// Each column in two characters: the function with the most time, and how much of the time is in MPI, in 32 parts.
fn encoded(row: &[u64], bins: &Bins, members: u64, spent: &mut [u128]) -> String {
    let mut text = String::with_capacity(2 * COLUMNS);
    for column in row.chunks(bins.functions.max(1)) {
        let all: u64 = column.iter().sum();
        column.iter().zip(spent.iter_mut()).for_each(|(ns, spent)| *spent += u128::from(*ns));
        let most = column.iter().enumerate().max_by_key(|(_, ns)| **ns).map_or(0, |(at, _)| at);
        let share = u128::from(all) * 32 / u128::from(members.max(1) * bins.width as u64);
        let letter = |n: u8| char::from(b'0' + n);
        match all {
            0 => text.push_str("/0"),
            _ => {
                text.push(letter(most as u8));
                text.push(letter(share.clamp(1, 32) as u8));
            }
        }
    }
    text
}

/// A window in which there is nothing.
fn beyond(from: i64, end: i64) -> Error {
    let (what, unit) = match from / 1000 {
        micros if micros <= i64::from(u32::MAX) && from % 1_000_000_000 != 0 => {
            ("call after microsecond", 1000)
        }
        _ => ("call after second", 1_000_000_000),
    };
    let number = u32::try_from(from / unit).unwrap_or(u32::MAX);
    Error::NoSuch { what, number, have: format!("calls up to {}", duration(end.max(0) as u64)) }
}

/// What is shown call by call: what was asked for, or as much of the middle of the run as there is room for.
fn window(input: &Input<'_>, bins: &Bins, end: i64) -> (i64, i64) {
    if let Some(between) = input.between {
        return (between.from.max(0), between.to.min(end).max(between.from.max(0)));
    }
    let all: u64 = bins.calls.iter().sum();
    if all <= MOST_CALLS as u64 {
        return (0, end);
    }
    let last = usize::try_from(end / bins.width).unwrap_or(0).min(COLUMNS - 1);
    // The middle by calls, so that a long start does not count.
    let mut sum = 0;
    let middle = bins.calls.iter().position(|calls| {
        sum += calls;
        sum * 2 >= all
    });
    let (first, mut to, mut room) = (middle.unwrap_or(0), middle.unwrap_or(0), MOST_CALLS as u64);
    while to <= last && bins.calls[to] <= room {
        room -= bins.calls[to];
        to += 1;
    }
    (first as i64 * bins.width, (to.max(first + 1) as i64 * bins.width).min(end))
}

type Closely = (Detail, (i64, i64), Vec<(i64, u64)>);

/// Every call of the window, as far as there is room: if some row is cut, the window ends there.
fn closely(
    input: &Input<'_>,
    times: &Times,
    functions: &Functions,
    outlines: &[Outline],
    members: &[Member],
    (from, to): (i64, i64),
    end: i64,
) -> Result<Closely, Error> {
    let bundle = &input.trace.bundle;
    let reader = Reader::new(bundle);
    let rows = members.iter().filter(|member| member.close).count();
    let quota = (MOST_CALLS / rows.max(1)).max(40);
    let mut marks = Vec::new();
    let mut detail = Detail { rows: vec![Vec::new(); rows] };
    let mut until = to;
    for member in members.iter().filter(|member| member.close) {
        let mut calls = Timed::new(bundle, &reader, Some(times), (member.rank, member.thread), 0)?;
        let step = outlines.iter().find(|o| o.thread == member.thread && o.ranks.contains(member.rank));
        let step = step.and_then(|outline| outline.step).filter(|_| member.row == 0);
        let mut steps = 0;
        while let Some((_, told)) = calls.next_call()? {
            let Some(told) = told else { continue };
            let (start, end) = (told.span.start, told.span.end);
            if start > until {
                break;
            }
            let seen = end >= from;
            if step.is_some() && step == calls.symbol() {
                steps += 1;
                if seen {
                    marks.push((start, steps));
                }
            }
            if seen {
                let row = &mut detail.rows[member.row];
                if row.len() == quota {
                    until = until.min(start);
                    break;
                }
                row.push((start, end, functions.number(calls.symbol())));
            }
        }
    }
    for row in &mut detail.rows {
        row.retain(|(start, ..)| *start <= until);
    }
    marks.retain(|(start, _)| *start <= until);
    let from = if from <= 0 { 0 } else { from };
    Ok((detail, (from, until.clamp(from + 1, end.max(from + 1))), marks))
}

/// Of messages that were sent and got in a window, and how many receives have none.
fn lines(
    input: &Input<'_>,
    times: &Times,
    members: &[Member],
    (from, to): (i64, i64),
) -> Result<(Lines, u64), Error> {
    let row_of: HashMap<(u32, u32), usize> = members.iter().map(|m| ((m.rank, m.thread), m.row)).collect();
    let mut ranks: Vec<u32> = members.iter().map(|member| member.rank).collect();
    ranks.dedup();
    let when = When::of(input.trace, Some(times))?;
    let mut walk = Walk::new(input.trace, &when, &ranks, Some(Between { from, to }))?;
    let mut lines = Lines::default();
    while let Some(moment) = walk.next()? {
        let (Moment::Begins(call) | Moment::Ends(call, _)) = &moment;
        if let Some(row) = row_of.get(&(call.rank, call.thread)) {
            lines.take_in(*row, &moment);
        }
        if lines.are_enough() {
            break;
        }
    }
    Ok((lines, walk.unclear()))
}
