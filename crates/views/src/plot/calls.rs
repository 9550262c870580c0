//! Of a trace of MPI calls: time by function and by rank, messages by size, who sends how much to whom.

use std::fmt::Write as _;
use std::io::Write;

use refrain_tracefile::Trace;

use super::{Canvas, MOST, Row, bars, longest, part, percent};
use crate::cores;
use crate::error::Error;
use crate::human::{plural, size, thousands};
use crate::length::{Length, Told, share};
use crate::stats::{
    FunctionRow, Matrix, RankTimes, Stats, TIMES_OF_RANKS, Times, kept, matrix, of_wall, stats,
};

pub fn calls(trace: &Trace, canvas: &Canvas, out: &mut dyn Write) -> Result<(), Error> {
    let mut text = String::new();
    let stats = stats(trace)?;
    functions(trace, &stats, canvas, &mut text);
    text.push('\n');
    match Times::of(trace, &stats) {
        Some(times) if !times.ranks.is_empty() => {
            ranks(&times, cores::crowded(&trace.meta), canvas, &mut text)
        }
        _ => text.push_str("Time by rank was not kept.\n"),
    }
    let matrix = matrix(trace)?;
    text.push('\n');
    if matrix.sizes.is_empty() {
        text.push_str(
            "No messages from one rank to another were recorded, or none that the trace tells of.\n",
        );
    } else {
        sizes(&matrix, canvas, &mut text);
        text.push('\n');
        heat(&matrix, canvas, &mut text);
    }
    if matrix.left_out > 0 {
        let _ = writeln!(
            text,
            "Not here: {}, of which only a reading of all calls would tell whom they go to.",
            plural(matrix.left_out, "message")
        );
    }
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// A function's time and calls.
struct Spent {
    name: String,
    time: Told,
    calls: u64,
}

fn functions(trace: &Trace, stats: &Stats, canvas: &Canvas, text: &mut String) {
    let (timed, length) = (trace.meta.timed, Length::of(trace));
    let spent = |row: &FunctionRow| Spent {
        name: row.name.to_owned(),
        time: kept::measured(row.time, row.calls).map_or(Told::default(), |time| time.total()),
        calls: row.calls,
    };
    let all: Vec<Spent> = stats.functions.iter().map(spent).filter(|row| !timed || row.time.ns > 0).collect();
    let amount = |row: &Spent| if timed { row.time.ns } else { row.calls };
    let sum = |rows: &[Spent]| {
        (
            Told::sum(rows.iter().map(|row| row.time)),
            rows.iter().fold(0u64, |n, row| n.saturating_add(row.calls)),
        )
    };
    let (time, calls) = sum(&all);
    let (mut shown, rest) = longest(all, amount);
    if let Some((count, _)) = rest {
        let (told, of) = sum(&shown);
        let time = Told { ns: time.ns.saturating_sub(told.ns), error: time.error.saturating_sub(told.error) };
        shown.push(Spent { name: plural(count as u64, "other"), time, calls: calls.saturating_sub(of) });
    }
    let most = shown.iter().map(amount).max().unwrap_or(0) as f64;
    let row = |row: &Spent| {
        let told = match timed {
            true => vec![row.time.to_string(), share(length.as_ref(), row.time), plural(row.calls, "call")],
            false => vec![percent(part(row.calls as f64, calls as f64)), plural(row.calls, "call")],
        };
        Row::new(row.name.clone(), part(amount(row) as f64, most), told)
    };
    let rows: Vec<Row> = shown.iter().map(row).collect();
    let title = match timed {
        true => "time by function, of all ranks together: time, of run, calls",
        false => "calls by function (time was not kept)",
    };
    let mut drawn = String::new();
    bars(canvas, title, &rows, &mut drawn);
    let legend = if timed { kept::legend(&drawn, length.as_ref()) } else { String::new() };
    text.push_str(&drawn);
    if !legend.is_empty() {
        let _ = writeln!(text, "\n{legend}");
    }
}

/// Ranks next to each other share a row where there are many.
fn ranks(times: &Times, crowded: Option<String>, canvas: &Canvas, text: &mut String) {
    let groups: Vec<&[RankTimes]> = times.ranks.chunks(times.ranks.len().div_ceil(MOST)).collect();
    let mean = |group: &[RankTimes], of: fn(&RankTimes) -> Told| {
        Told::sum(group.iter().map(of)).mean(group.len() as u64)
    };
    let spent =
        |group: &&[RankTimes]| (mean(group, RankTimes::told_inside), mean(group, RankTimes::told_outside));
    let whole = |(inside, outside): (Told, Told)| inside.plus(outside).ns;
    let most = groups.iter().map(|group| whole(spent(group))).max().unwrap_or(0) as f64;
    let row = |group: &&[RankTimes]| {
        let (inside, outside) = spent(group);
        let name = match group {
            [one] => one.rank.to_string(),
            [first, .., last] => format!("{}-{}", first.rank, last.rank),
            [] => String::new(),
        };
        let told = vec![outside.to_string(), inside.to_string(), of_wall(inside, inside.plus(outside))];
        Row { name, parts: [part(inside.ns as f64, most), part(outside.ns as f64, most)], told }
    };
    let rows: Vec<Row> = groups.iter().map(row).collect();
    let [one, other] = canvas.pair();
    let many = if groups.iter().any(|group| group.len() > 1) { ", means of several ranks" } else { "" };
    let title = format!("time by rank{many}: {one} in MPI, {other} outside; outside, in MPI, share of it");
    let mut drawn = String::new();
    bars(canvas, &title, &rows, &mut drawn);
    text.push_str(&drawn);
    if drawn.contains('~') {
        let _ = writeln!(text, "\n~: {TIMES_OF_RANKS}.");
    }
    if let Some(verdict) = times.verdict() {
        let _ = writeln!(
            text,
            "\n{}",
            [crowded, Some(verdict)].into_iter().flatten().collect::<Vec<_>>().join("\n")
        );
    }
}

fn sizes(matrix: &Matrix, canvas: &Canvas, text: &mut String) {
    let (Some(least), Some(most)) = (matrix.sizes.keys().next(), matrix.sizes.keys().next_back()) else {
        return;
    };
    let of = |bits: u32| matrix.sizes.get(&bits).copied().unwrap_or_default();
    let highest = matrix.sizes.values().map(|sent| sent.messages).max().unwrap_or(0) as f64;
    let name = |bits: u32| match bits {
        0 => "0 B".into(),
        1 => "1 B".into(),
        bits => format!("from {}", size(1u128 << (bits - 1))),
    };
    let rows: Vec<Row> = (*least..=*most)
        .map(|bits| {
            let sent = of(bits);
            let told = match sent.messages {
                0 => Vec::new(),
                messages => vec![thousands(messages), size(sent.bytes)],
            };
            Row::new(name(bits), part(sent.messages as f64, highest), told)
        })
        .collect();
    bars(canvas, "messages by size: how many, and the bytes in all", &rows, text);
}

/// More cells than this are not told apart by eye.
const CELLS: usize = 32;

fn heat(matrix: &Matrix, canvas: &Canvas, text: &mut String) {
    let ranks = matrix.ranks as usize;
    let label = ranks.saturating_sub(1).to_string().len() * 2 + 3;
    let room = (canvas.width.saturating_sub(label + 2) / 2).clamp(4, CELLS);
    let each = ranks.div_ceil(room.min(ranks).max(1)).max(1);
    let cells = ranks.div_ceil(each);
    let mut bytes = vec![vec![0u128; cells]; cells];
    for run in &matrix.runs {
        for rank in run.first..=run.last {
            let to = i64::from(rank) + run.offset;
            if let Some(to) = usize::try_from(to).ok().filter(|to| *to < ranks) {
                let cell = &mut bytes[rank as usize / each][to / each];
                *cell = cell.saturating_add(run.sent.bytes);
            }
        }
    }
    let most = bytes.iter().flatten().copied().max().unwrap_or(0);
    let group = |cell: usize| {
        let (first, last) = (cell * each, (cell * each + each).min(ranks) - 1);
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let names = (0..cells).map(|cell| group(cell).len()).max().unwrap_or(0);
    let many = if each > 1 { format!(", {each} ranks a cell") } else { String::new() };
    let _ = writeln!(text, "bytes of messages: senders downwards, receivers to the right{many}");
    for (cell, row) in bytes.iter().enumerate() {
        let line: String = row
            .iter()
            .map(|&n| canvas.shade(part(n as f64, most as f64)))
            .flat_map(|shade| [shade, if canvas.unicode && shade != '·' { shade } else { ' ' }])
            .collect();
        let _ = writeln!(text, "  {:>names$}  {}", group(cell), line.trim_end());
    }
    let shades = canvas.shades();
    let [_, low, .., high] = shades;
    let _ = writeln!(
        text,
        "  {:>names$}  {} none  {low} up to {}  {high} up to {}",
        "",
        shades[0],
        size(most / 4),
        size(most)
    );
    if matrix.about {
        text.push_str("Some numbers are about so: not every message was looked at, or a datatype's size is not known.\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Run, Sent};

    fn ring(ranks: u32) -> Matrix {
        let sent = Sent { messages: 10, bytes: 80 };
        let mut matrix = Matrix { ranks, ..Matrix::default() };
        if ranks > 1 {
            matrix.runs.push(Run { offset: 1, first: 0, last: ranks - 2, sent });
        }
        matrix.runs.push(Run { offset: 1 - i64::from(ranks), first: ranks - 1, last: ranks - 1, sent });
        matrix.sizes.insert(4, Sent { messages: 10 * u64::from(ranks), bytes: 80 * u128::from(ranks) });
        matrix
    }

    #[test]
    fn a_ring_is_a_diagonal() {
        let mut text = String::new();
        heat(&ring(4), &Canvas { width: 60, unicode: false }, &mut text);
        let rows: Vec<&str> = text.lines().skip(1).take(4).collect();
        assert_eq!(rows, ["  0  . # . .", "  1  . . # .", "  2  . . . #", "  3  # . . ."]);
        assert!(text.contains("# up to 80 B"), "{text}");
    }

    #[test]
    fn many_ranks_share_cells() {
        let mut text = String::new();
        heat(&ring(4096), &Canvas { width: 80, unicode: true }, &mut text);
        assert!(text.contains("128 ranks a cell"), "{text}");
        assert_eq!(text.lines().count(), 1 + 32 + 1);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let mut text = String::new();
        heat(&ring(1), &Canvas { width: 20, unicode: true }, &mut text);
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn sizes_without_messages_are_seen_as_gaps() {
        let mut matrix = ring(2);
        matrix.sizes.insert(7, Sent { messages: 5, bytes: 500 });
        let mut text = String::new();
        sizes(&matrix, &Canvas { width: 50, unicode: false }, &mut text);
        let names: Vec<&str> =
            text.lines().skip(1).map(|line| line[2..].split("  ").next().unwrap().trim()).collect();
        assert_eq!(names, ["from 8 B", "from 16 B", "from 32 B", "from 64 B"]);
        assert!(!text.lines().nth(2).unwrap().contains('#'), "{text}");
    }
}
