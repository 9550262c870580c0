//! Tables: what each instruction refers to and how far apart, how much memory each thread touches, which lines threads share
//! without need.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use refrain_fold::bundle::sites::Frame;
use refrain_references::{Access, Event};
use refrain_sites::Names;
use serde::Serialize;

use super::{Counts, Recorded, shown};
use crate::error::Error;
use crate::human::{plural, size, thousands};
use crate::json;
use crate::table::Table;

const LINE: u64 = 64;
const PAGE: u64 = 4096;
/// Pages of a thread, and lines of a process, that are kept: beyond that numbers are at least these.
const MOST_PAGES: usize = 1 << 21;
const MOST_LINES: usize = 1 << 20;
/// Different distances of an instruction that are told apart.
const MOST_DISTANCES: usize = 64;

/// One instruction, whatever called it.
#[derive(Debug, Clone, Serialize)]
pub struct Instruction {
    pub place: String,
    pub access: &'static str,
    pub size: u32,
    pub references: u64,
    pub bytes: u64,
    pub lowest: u64,
    pub highest: u64,
    /// The distance from one of its references to the next that is met most often, and how often.
    pub stride: i64,
    pub strides: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Thread {
    pub rank: u32,
    pub thread: u32,
    #[serde(flatten)]
    pub counts: Counts,
    /// Of 64 bytes, and of 4 KiB.
    pub lines: u64,
    pub pages: u64,
}

/// A line of memory of which threads use different bytes, and at least one writes.
#[derive(Debug, Clone, Serialize)]
pub struct Shared {
    pub rank: u32,
    pub line: u64,
    pub references: u64,
    pub threads: Vec<u32>,
    /// Where each of them last wrote to it, or read it.
    pub places: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Stats {
    schema: &'static str,
    pub instructions: Vec<Instruction>,
    pub threads: Vec<Thread>,
    /// Of all processes.
    pub falsely_shared: u64,
    /// Those with the most references.
    pub shared: Vec<Shared>,
    /// Not all lines or pages could be kept.
    pub bounded: bool,
}

#[derive(Default)]
struct Seen {
    references: u64,
    bytes: u64,
    range: Option<(u64, u64)>,
    distances: HashMap<i64, u64>,
}

/// What threads do with a line: who, which bytes they read and write, how often, and where last.
#[derive(Default)]
struct Line {
    users: Vec<(u32, u64, u64, Frame)>,
    references: u64,
}

/// Told how many references have been read, from time to time.
pub fn stats(recorded: &Recorded, names: &dyn Names, progress: &mut dyn FnMut(u64)) -> Result<Stats, Error> {
    let mut instructions: BTreeMap<(Frame, Access, u32), Seen> = BTreeMap::new();
    let (mut threads, mut shared, mut falsely, mut bounded) = (Vec::new(), Vec::new(), 0, false);
    let mut done = 0u64;
    let all = recorded.threads(None, None)?;
    for of_rank in all.chunk_by(|a, b| a.0 == b.0) {
        let mut lines: HashMap<u64, Line> = HashMap::new();
        for &(rank, thread) in of_rank {
            let mut counts = Counts::default();
            let mut pages: HashMap<u64, u64> = HashMap::new();
            let mut lanes: HashMap<(u32, u16), (Seen, u64, Event)> = HashMap::new();
            for event in recorded.references((rank, thread))? {
                let event = event?;
                counts.add(event.access, event.size, 1);
                done += 1;
                if done.is_multiple_of(1 << 16) {
                    progress(done);
                }
                if event.access == Access::Fetch {
                    continue;
                }
                let last = lanes
                    .entry((event.symbol, event.nth))
                    .or_insert_with(|| (Seen::default(), event.address, event));
                last.0.see(&event, last.1);
                last.1 = event.address;
                touch(&event, &mut pages, &mut bounded);
                if of_rank.len() > 1 {
                    share(thread, &event, &mut lines, &mut bounded);
                }
            }
            for (seen, _, event) in lanes.into_values() {
                instructions.entry((event.place, event.access, event.size)).or_default().join(seen);
            }
            let lines = pages.values().map(|lines| u64::from(lines.count_ones())).sum();
            threads.push(Thread { rank, thread, counts, lines, pages: pages.len() as u64 });
        }
        for (line, used) in lines.into_iter().filter(|(_, used)| used.is_shared_in_vain()) {
            falsely += 1;
            shared.push((of_rank[0].0, line, used));
        }
    }
    shared.sort_by_key(|(rank, line, used)| (std::cmp::Reverse(used.references), *rank, *line));
    shared.truncate(20);
    let shared = shared.into_iter().map(|(rank, line, used)| Shared {
        rank,
        line: line * LINE,
        references: used.references,
        threads: used.users.iter().map(|user| user.0).collect(),
        places: used.users.iter().map(|user| shown(names, user.3)).collect(),
    });
    let mut instructions: Vec<Instruction> = instructions
        .into_iter()
        .map(|((frame, access, size), seen)| {
            let stride = seen.distances.iter().max_by_key(|(step, count)| (**count, -step.abs()));
            let (stride, strides) = stride.map_or((0, 0), |(step, count)| (*step, *count));
            let (lowest, highest) = seen.range.unwrap_or_default();
            let place = shown(names, frame);
            let (references, bytes) = (seen.references, seen.bytes);
            Instruction {
                place,
                access: access.name(),
                size,
                references,
                bytes,
                lowest,
                highest,
                stride,
                strides,
            }
        })
        .collect();
    instructions.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    Ok(Stats {
        schema: "refrain-memory-stats-1",
        instructions,
        threads,
        falsely_shared: falsely,
        shared: shared.collect(),
        bounded,
    })
}

impl Seen {
    fn see(&mut self, event: &Event, last: u64) {
        self.references += 1;
        self.bytes += u64::from(event.size);
        let end = event.address.saturating_add(u64::from(event.size).saturating_sub(1));
        let (low, high) = self.range.unwrap_or((event.address, end));
        self.range = Some((low.min(event.address), high.max(end)));
        if self.references > 1 {
            let step = event.address.wrapping_sub(last) as i64;
            if let Some(count) = self.distances.get_mut(&step) {
                *count += 1;
            } else if self.distances.len() < MOST_DISTANCES {
                self.distances.insert(step, 1);
            }
        }
    }

    fn join(&mut self, other: Seen) {
        self.references += other.references;
        self.bytes += other.bytes;
        self.range = match (self.range, other.range) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
        for (step, count) in other.distances {
            *self.distances.entry(step).or_default() += count;
        }
    }
}

/// The lines of a reference, and which of their bytes.
fn lines(event: &Event) -> impl Iterator<Item = (u64, u64)> {
    let (first, size) = (event.address, u64::from(event.size.max(1)));
    let last = first.saturating_add(size - 1);
    (first / LINE..=last / LINE).map(move |line| {
        let from = first.max(line * LINE) - line * LINE;
        let to = last.min(line * LINE + (LINE - 1)) - line * LINE;
        (line, u64::MAX >> (LINE - 1 - to) & u64::MAX << from)
    })
}

fn touch(event: &Event, pages: &mut HashMap<u64, u64>, bounded: &mut bool) {
    for (line, _) in lines(event) {
        let (page, bit) = (line / (PAGE / LINE), 1 << (line % (PAGE / LINE)));
        if let Some(lines) = pages.get_mut(&page) {
            *lines |= bit;
        } else if pages.len() < MOST_PAGES {
            pages.insert(page, bit);
        } else {
            *bounded = true;
        }
    }
}

fn share(thread: u32, event: &Event, all: &mut HashMap<u64, Line>, bounded: &mut bool) {
    for (line, bytes) in lines(event) {
        if all.len() >= MOST_LINES && !all.contains_key(&line) {
            *bounded = true;
            continue;
        }
        let used = all.entry(line).or_default();
        used.references += 1;
        let user = match used.users.iter_mut().find(|user| user.0 == thread) {
            Some(user) => user,
            None => {
                used.users.push((thread, 0, 0, event.place));
                used.users.last_mut().expect("it was just put there")
            }
        };
        if event.access != Access::Store {
            user.1 |= bytes;
        }
        if event.access != Access::Load {
            user.2 |= bytes;
            user.3 = event.place;
        }
    }
}

impl Line {
    /// Somebody writes bytes that nobody else uses, and others use the rest.
    fn is_shared_in_vain(&self) -> bool {
        let apart = |at: usize| {
            let (thread, _, written, _) = self.users[at];
            let others = self.users.iter().filter(|user| user.0 != thread);
            let used = others.fold(0, |used, user| used | user.1 | user.2);
            written != 0 && used != 0 && used & written == 0
        };
        self.users.len() > 1 && (0..self.users.len()).any(apart)
    }
}

pub fn write_json(stats: &Stats, out: &mut dyn Write) -> Result<(), Error> {
    Ok(json::document(stats, out)?)
}

/// Rows of instructions that are shown.
const MOST_ROWS: usize = 40;

pub fn write_text(stats: &Stats, out: &mut dyn Write) -> Result<(), Error> {
    let mut table =
        Table::new(["thread", "references", "loads", "stores", "updates", "loaded", "stored", "touched"]);
    for row in &stats.threads {
        let Counts { references, loads, stores, updates, loaded, stored, .. } = row.counts;
        table.row([
            format!("{}.{}", row.rank, row.thread),
            thousands(references),
            thousands(loads),
            thousands(stores),
            thousands(updates),
            size(loaded.into()),
            size(stored.into()),
            size((row.lines * LINE).into()),
        ]);
    }
    writeln!(out, "{}", table.render())?;
    let mut table =
        Table::new(["instruction", "access", "references", "bytes", "stride", "of these", "from", "to"]);
    for row in stats.instructions.iter().take(MOST_ROWS) {
        let share = 100.0 * row.strides as f64 / row.references.saturating_sub(1).max(1) as f64;
        table.row([
            row.place.clone(),
            format!("{} {}", row.access, row.size),
            thousands(row.references),
            size(row.bytes.into()),
            if row.references > 1 { row.stride.to_string() } else { "-".into() },
            if row.references > 1 { format!("{share:.0}%") } else { "-".into() },
            format!("{:#x}", row.lowest),
            format!("{:#x}", row.highest),
        ]);
    }
    write!(out, "{}", table.render())?;
    if let Some(more) = stats.instructions.len().checked_sub(MOST_ROWS).filter(|more| *more > 0) {
        writeln!(out, "and {} more (--json has all)", thousands(more as u64))?;
    }
    if stats.falsely_shared > 0 {
        let lines = plural(stats.falsely_shared, "line");
        writeln!(out, "\nfalse sharing: threads use different bytes of {lines} of 64 bytes, and write them")?;
        for shared in stats.shared.iter().take(5) {
            let threads: Vec<String> = shared.threads.iter().map(u32::to_string).collect();
            let mut places = shared.places.clone();
            places.dedup();
            writeln!(
                out,
                "  {:#x} of rank {}: threads {}, {}, at {}",
                shared.line,
                shared.rank,
                threads.join(" "),
                plural(shared.references, "reference"),
                places.join(", ")
            )?;
        }
    }
    if stats.bounded {
        writeln!(
            out,
            "\nmore memory is touched than is kept track of: touched bytes and shared lines are at least these"
        )?;
    }
    out.flush()?;
    Ok(())
}
