//! The page of a trace of memory references: working set, miss ratios, strides, false sharing.

use std::collections::HashSet;

use refrain_addresses::simulate::{Curve, Streams};
use refrain_addresses::{BATCH, Batch, Format, Reference, kind};
use refrain_references::Access;
use refrain_sites::{Names, printable};
use refrain_views::Error;
use refrain_views::human::{date, plural, size, thousands};
use refrain_views::references::{Recorded, Stats, counts, stats};
use serde_json::{Value, json};

use crate::{Progress, html, run};

/// A trace of references, and what is known beside it.
pub struct Memory<'a> {
    pub recorded: &'a Recorded,
    pub names: &'a dyn Names,
    pub file: &'a str,
    /// Of the file, or of the part of it that has references.
    pub bytes: u64,
}

const LINE: u64 = 64;
/// Stretches of the run.
const SLICES: u64 = 90;
/// A cache of the first level has as many bytes.
const SMALL: u64 = 32 << 10;
/// References of a rank that the working set and the curve are made from.
const MOST_WALKED: u64 = 30_000_000;
/// With more references than these, reading them takes minutes.
const LONG: u64 = 200_000_000;
/// Lines that are told apart.
const MOST_LINES: usize = 1 << 22;
/// References of a thread before the next one has its turn.
const TURN: usize = 1000;
/// Rows of tables.
const MOST_ROWS: usize = 120;

pub fn memory_page(input: &Memory<'_>, progress: Progress<'_>) -> Result<String, Error> {
    let total = counts(input.recorded)?.references;
    let what = if total > LONG { "reading all references, which takes minutes" } else { "reading" };
    let stats = stats(input.recorded, input.names, &mut |done| progress(what, done, total.max(done)))?;
    let walk = walk(input, &stats, progress)?;
    let meta = &input.recorded.trace.meta;
    let all: u64 = stats.threads.iter().map(|thread| thread.counts.references).sum();
    let title = run::title(&meta.command);
    let sum = |of: fn(&refrain_views::references::Counts) -> u64| {
        stats.threads.iter().fold(0u64, |sum, thread| sum.saturating_add(of(&thread.counts)))
    };
    let instructions = stats.instructions.iter().take(MOST_ROWS).map(|row| {
        json!([
            row.place,
            row.access,
            row.size,
            row.references,
            row.bytes,
            row.stride,
            row.strides,
            row.highest - row.lowest + 1
        ])
    });
    let threads = stats.threads.iter().take(MOST_ROWS).map(|row| {
        json!([
            row.rank,
            row.thread,
            row.counts.references,
            row.counts.loads,
            row.counts.stores,
            row.counts.updates,
            row.counts.loaded,
            row.counts.stored,
            row.lines * LINE,
            row.pages
        ])
    });
    let shared = stats.shared.iter().map(|row| {
        let mut places = row.places.clone();
        places.dedup();
        json!([row.rank, format!("{:#x}", row.line), row.references, row.threads, places])
    });
    let notes: Vec<String> = meta.notes.iter().take(20).map(|note| printable(note).into_owned()).collect();
    let data = json!({
        "kind": "memory",
        "flags": flags(&stats, all, meta.complete, &notes, misses(&walk, &stats)),
        "run": {
            "title": title, "command": meta.command.join(" "), "recorder": printable(&meta.library), "ranks": meta.ranks,
            "threads": stats.threads.len(), "started": date(i64::try_from(meta.started).unwrap_or(i64::MAX)),
            "wall_ns": meta.wall_ns, "complete": meta.complete, "file": input.file, "bytes": input.bytes,
            "references": all, "loads": sum(|c| c.loads), "stores": sum(|c| c.stores), "updates": sum(|c| c.updates),
            "fetches": sum(|c| c.fetches),
            "loaded": sum(|c| c.loaded), "stored": sum(|c| c.stored), "notes": notes, "version": meta.refrain_version,
        },
        "instructions": { "all": stats.instructions.len(), "rows": instructions.collect::<Vec<_>>() },
        "threads": { "all": stats.threads.len(), "rows": threads.collect::<Vec<_>>() },
        "shared": { "all": stats.falsely_shared, "rows": shared.collect::<Vec<_>>() },
        "bounded": stats.bounded,
        "walk": walk,
    });
    Ok(html::page(&title, &data))
}

/// What the threads of the first rank touch as time goes on, and how often a cache would miss.
fn walk(input: &Memory<'_>, stats: &Stats, progress: Progress<'_>) -> Result<Value, Error> {
    let Some(first) = stats.threads.first().map(|thread| thread.rank) else { return Ok(Value::Null) };
    let own = stats.threads.iter().filter(|thread| thread.rank == first);
    let total: u64 = own.clone().map(|thread| thread.counts.references).sum();
    let walked = total.min(MOST_WALKED);
    let each = walked.div_ceil(SLICES).max(1);
    let mut threads = Vec::new();
    for thread in own {
        threads.push(input.recorded.references((first, thread.thread))?);
    }
    let fields = Format::Rfn.keeps();
    let mut curve = Curve::new(LINE, Streams::Unified);
    let (mut batch, mut slice, mut ever) = (Batch::new(), HashSet::new(), HashSet::new());
    let (mut slices, mut done, mut bounded) = (Vec::new(), 0u64, false);
    let (mut loads, mut stores) = (0u64, 0u64);
    'all: while !threads.is_empty() {
        let mut over = Vec::new();
        for (at, thread) in threads.iter_mut().enumerate() {
            for _ in 0..TURN {
                let Some(event) = thread.next() else {
                    over.push(at);
                    break;
                };
                let event = event?;
                done += 1;
                // Instructions are no data: they count, and no more.
                if event.access != Access::Fetch {
                    let kind = if event.access == Access::Store { kind::WRITE } else { kind::READ };
                    *if event.access == Access::Load { &mut loads } else { &mut stores } +=
                        u64::from(event.size);
                    let size = u16::try_from(event.size).unwrap_or(u16::MAX);
                    batch.push(
                        fields,
                        Reference { address: event.address, size, kind, ..Reference::default() },
                    );
                    if batch.len() >= BATCH - 1 {
                        curve.add(&batch);
                        batch.clear();
                    }
                    let last = event.address.saturating_add(u64::from(event.size.max(1)) - 1) / LINE;
                    for line in event.address / LINE..=last {
                        slice.insert(line);
                        if ever.len() < MOST_LINES {
                            ever.insert(line);
                        } else {
                            bounded |= !ever.contains(&line);
                        }
                    }
                }
                if done.is_multiple_of(each) {
                    slices.push(json!([slice.len() as u64 * LINE, ever.len() as u64 * LINE, loads, stores]));
                    slice.clear();
                    (loads, stores) = (0, 0);
                    progress("following the working set", done, walked);
                }
                if done >= walked {
                    break 'all;
                }
            }
        }
        for at in over.into_iter().rev() {
            drop(threads.remove(at));
        }
    }
    if !done.is_multiple_of(each) {
        slices.push(json!([slice.len() as u64 * LINE, ever.len() as u64 * LINE, loads, stores]));
    }
    curve.add(&batch);
    let touched = ever.len() as u64 * LINE;
    // From one line to more than is touched.
    let sizes: Vec<u64> =
        (0..48).map(|bits| 1u64 << bits).take_while(|lines| lines / 2 * LINE <= touched.max(1024)).collect();
    let points: Vec<Value> = match curve.caches().first() {
        Some((_, distances)) => {
            let all: u64 = distances.references().iter().sum();
            let misses = distances.misses(sizes.iter().copied());
            let ratio = |misses: &[u64; 3]| misses.iter().sum::<u64>() as f64 / all.max(1) as f64;
            sizes.iter().zip(&misses).map(|(lines, misses)| json!([lines * LINE, ratio(misses)])).collect()
        }
        None => Vec::new(),
    };
    Ok(json!({
        "rank": first, "references": done, "of": total, "each": each, "touched": touched, "slices": slices, "points": points,
        "bounded": bounded,
    }))
}

/// A rank, and how many of a thousand of its references miss a small cache: nothing where that is known of some references only.
fn misses(walk: &Value, stats: &Stats) -> Option<(u64, u64)> {
    let rank = walk["rank"].as_u64()?;
    if walk["references"] != walk["of"] || stats.threads.iter().any(|row| u64::from(row.rank) != rank) {
        return None;
    }
    let points = walk["points"].as_array()?;
    // The curve ends where all that is touched fits.
    let small = points.iter().find(|point| point[0].as_u64() >= Some(SMALL)).or(points.last())?;
    Some((rank, (small[1].as_f64()? * 1000.0).round() as u64))
}

fn flags(stats: &Stats, all: u64, complete: bool, notes: &[String], misses: Option<(u64, u64)>) -> Value {
    let mut flags = Vec::new();
    let mut add = |level: &str, head: String, text: String, help: &str, see: &str| {
        flags.push(json!({ "level": level, "head": head, "text": text, "help": help, "see": see }));
    };
    if !complete {
        let why = if notes.is_empty() {
            "The trace has what was recorded until then.".into()
        } else {
            notes.join(". ")
        };
        add(
            "bad",
            "The run did not finish".into(),
            why,
            "What stands here is of the part that was recorded.",
            "run",
        );
    }
    if let Some(first) = stats.shared.first() {
        let references: u64 = stats.shared.iter().map(|line| line.references).sum();
        let mut places = first.places.clone();
        places.sort();
        places.dedup();
        add(
            match references {
                many if many.saturating_mul(50) >= all => "bad",
                some if some.saturating_mul(1000) >= all => "warning",
                _ => "note",
            },
            format!("False sharing on {}", plural(stats.falsely_shared, "cache line")),
            format!(
                "{} use different bytes of the same 64, and write them: {} at {}.",
                plural(first.threads.len() as u64, "thread"),
                plural(first.references, "reference"),
                places.join(", ")
            ),
            "Every write takes the line away from the other threads' caches. Give each thread a line of its own: pad or align its \
             data to 64 bytes, or count in a local variable.",
            "sharing",
        );
    }
    let matters = |references: u64| references.saturating_mul(20) >= all;
    for row in stats.instructions.iter().filter(|row| matters(row.references)).take(8) {
        let share = row.strides.saturating_mul(100) / row.references.saturating_sub(1).max(1);
        let step = row.stride.unsigned_abs();
        let part = row.references.saturating_mul(100) / all.max(1);
        let of_all = format!(
            "{} of {} bytes, {part} % of all references",
            plural(row.references, row.access),
            row.size
        );
        let range = row.highest - row.lowest;
        if share >= 50 && step >= LINE {
            // If all misses of the rank were its own, it would still find half of its lines in the cache.
            let again = misses.is_some_and(|(_, misses)| {
                misses.saturating_mul(2 * all) <= row.strides.saturating_mul(1000)
            });
            let found = match misses {
                Some((rank, misses)) if again => format!(
                    " But only {}.{} % of rank {rank}'s references miss a cache of {}: these lines are used again while they are there.",
                    misses / 10,
                    misses % 10,
                    size(SMALL.into())
                ),
                _ => String::new(),
            };
            add(
                if again { "note" } else { "warning" },
                format!("{} steps over whole cache lines", row.place),
                format!(
                    "It goes on by {} bytes most times ({of_all}), so each of these times it uses {} of another line.{found}",
                    thousands(step),
                    size(row.size.into())
                ),
                match again {
                    true => {
                        "Such a cache holds what is used again. Other orders of the loops matter only for smaller ones."
                    }
                    false => {
                        "Change the order of the loops or of the array's dimensions, so that the innermost loop goes from one element \
                         to the next; or work in blocks that fit into the cache."
                    }
                },
                "instructions",
            );
        } else if share < 10 && range > 1 << 18 {
            add(
                "note",
                format!("{} jumps through memory", row.place),
                format!("No step is common ({of_all}), over {} of memory.", size(range.into())),
                "Indirect or random accesses are hard to prefetch: sort indices, or keep what is used together together.",
                "instructions",
            );
        }
    }
    if flags.is_empty() {
        flags.push(json!({
            "level": "good", "head": "Nothing stands out",
            "text": "No instruction with many references steps over cache lines, and threads share no line without need.",
            "help": "", "see": "instructions",
        }));
    }
    let rank =
        |flag: &Value| ["bad", "warning", "note", "good"].iter().position(|level| flag["level"] == *level);
    flags.sort_by_key(rank);
    Value::Array(flags)
}

#[cfg(test)]
mod tests {
    use refrain_views::references::Instruction;

    use super::*;

    /// An instruction that steps over lines, where so many of a thousand references miss a small cache.
    fn told(misses: u64) -> Value {
        let mut stats = Stats::default();
        stats.instructions.push(Instruction {
            place: "main (a.c:3)".into(),
            access: "load",
            size: 8,
            references: 1000,
            bytes: 8000,
            lowest: 0,
            highest: 1 << 20,
            stride: 4096,
            strides: 900,
        });
        flags(&stats, 2000, true, &[], Some((3, misses)))[0].clone()
    }

    #[test]
    fn lines_that_are_used_again_are_no_fault() {
        let (bad, good) = (told(400), told(60));
        assert_eq!((&bad["level"], &good["level"]), (&json!("warning"), &json!("note")));
        assert!(!bad["text"].as_str().unwrap().contains("But"), "{bad}");
        let text = good["text"].as_str().unwrap();
        assert!(text.contains("But only 6.0 % of rank 3's references miss a cache of 32"), "{text}");
    }
}
