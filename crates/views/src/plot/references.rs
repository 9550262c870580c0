//! Of a trace of memory references: bytes by place, by thread, and by how far apart references are.

use std::collections::BTreeMap;
use std::io::Write;

use super::{Canvas, MOST, Row, bars, longest, part, percent};
use crate::error::Error;
use crate::human::{plural, size};
use crate::references::{Instruction, Stats, Thread};

pub fn references(stats: &Stats, canvas: &Canvas, out: &mut dyn Write) -> Result<(), Error> {
    let mut text = String::new();
    instructions(stats, canvas, &mut text);
    text.push('\n');
    strides(stats, canvas, &mut text);
    text.push('\n');
    threads(stats, canvas, &mut text);
    if stats.falsely_shared > 0 {
        text.push_str(&format!(
            "\nThreads use different bytes of {} of 64 bytes, and write them: `refrain stats` says where.\n",
            plural(stats.falsely_shared, "line")
        ));
    }
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn sum(rows: &[Instruction]) -> u64 {
    rows.iter().map(|row| row.bytes).fold(0, u64::saturating_add)
}

/// The instructions of a line of the source are one; its stride is that of the one with the most bytes.
fn places(stats: &Stats) -> Vec<(&str, u64, Option<i64>)> {
    let mut places: BTreeMap<&str, (u64, Option<i64>)> = BTreeMap::new();
    // Those with the most bytes come first.
    for row in &stats.instructions {
        let stride = (row.references > 1).then_some(row.stride);
        places.entry(&row.place).or_insert((0, stride)).0 += row.bytes;
    }
    places.into_iter().map(|(place, (bytes, stride))| (place, bytes, stride)).collect()
}

fn instructions(stats: &Stats, canvas: &Canvas, text: &mut String) {
    let all = sum(&stats.instructions) as f64;
    let (shown, rest) = longest(places(stats), |place| place.1);
    let most = shown.iter().map(|place| place.1).max().unwrap_or(0) as f64;
    // Names of places may be long: a bar beside them must still be seen.
    let longest_name = (canvas.width / 3).max(16);
    let mut rows: Vec<Row> = shown
        .iter()
        .map(|(place, bytes, stride)| {
            let told = vec![
                size((*bytes).into()),
                percent(part(*bytes as f64, all)),
                stride.map_or(String::new(), |stride| format!("stride {stride}")),
            ];
            Row::new(cut(place, longest_name), part(*bytes as f64, most), told)
        })
        .collect();
    if let Some((count, bytes)) = rest {
        // The rest may be more than any of these; the bars are theirs.
        let told = vec![size(bytes.into()), percent(part(bytes as f64, all))];
        rows.push(Row::new(plural(count as u64, "other"), 0.0, told));
    }
    bars(canvas, "bytes by place, and how far it mostly goes from one reference to the next", &rows, text);
}

/// The end tells more: file and line.
fn cut(name: &str, most: usize) -> String {
    let letters = name.chars().count();
    match letters > most {
        true => format!("...{}", name.chars().skip(letters - most + 3).collect::<String>()),
        false => name.to_owned(),
    }
}

/// Strides by what they mean to a cache.
const CLASSES: [(&str, u64); 6] = [
    ("the same place", 0),
    ("up to 8 bytes", 8),
    ("up to 16 bytes", 16),
    ("up to 64, a line", 64),
    ("up to 4096, a page", 4096),
    ("further", u64::MAX),
];

fn strides(stats: &Stats, canvas: &Canvas, text: &mut String) {
    let mut bytes = [0u64; CLASSES.len()];
    for row in stats.instructions.iter().filter(|row| row.references > 1) {
        let at = CLASSES
            .iter()
            .position(|(_, most)| row.stride.unsigned_abs() <= *most)
            .unwrap_or(CLASSES.len() - 1);
        bytes[at] = bytes[at].saturating_add(row.bytes);
    }
    let (all, most) = (bytes.iter().sum::<u64>() as f64, bytes.iter().copied().max().unwrap_or(0) as f64);
    let rows: Vec<Row> = CLASSES
        .iter()
        .zip(bytes)
        .map(|((name, _), bytes)| {
            let told = vec![size(bytes.into()), percent(part(bytes as f64, all))];
            Row::new(*name, part(bytes as f64, most), told)
        })
        .collect();
    bars(canvas, "bytes by the most frequent stride of their instruction", &rows, text);
}

fn threads(stats: &Stats, canvas: &Canvas, text: &mut String) {
    let moved = |thread: &Thread| thread.counts.loaded.saturating_add(thread.counts.stored);
    let all: Vec<&Thread> = stats.threads.iter().collect();
    let most = all.iter().map(|thread| moved(thread)).max().unwrap_or(0) as f64;
    let rows: Vec<Row> = all
        .iter()
        .take(MOST)
        .map(|thread| Row {
            name: format!("{}.{}", thread.rank, thread.thread),
            parts: [part(thread.counts.loaded as f64, most), part(thread.counts.stored as f64, most)],
            told: vec![
                size(thread.counts.loaded.into()),
                size(thread.counts.stored.into()),
                format!("touches {}", size((thread.lines * 64).into())),
            ],
        })
        .collect();
    let [one, other] = canvas.pair();
    bars(canvas, &format!("bytes by rank.thread: {one} loaded, {other} stored"), &rows, text);
    if all.len() > MOST {
        text.push_str(&format!(
            "  and {} more (without --plot all are there)\n",
            plural((all.len() - MOST) as u64, "thread")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_in_front() {
        assert_eq!(cut("load main (matmul.c:12)", 14), "...atmul.c:12)");
        assert_eq!(cut("load main", 14), "load main");
    }
}
