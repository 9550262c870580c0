//! `refrain simulate`: caches, from an address trace in any format.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use refrain_addresses::simulate::{
    Config, Curve, First, Hierarchy, Policy, SmallerLines, Streams, Threads, Write,
};
use refrain_addresses::{Batch, Error, Format, Reader};

use super::caches::{self, Spec};
use super::files::{Source, is_recorded, print};
use super::{flags, simulate_text};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::references;

#[derive(Debug, Args)]
#[group(id = "simulate-flags")]
pub struct Simulate {
    /// The trace; - is standard input
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// First-level cache for reads and writes
    #[arg(long, value_name = "CACHE", value_parser = caches::spec)]
    l1d: Option<Spec>,
    /// First-level cache for fetches
    #[arg(long, value_name = "CACHE", value_parser = caches::spec)]
    l1i: Option<Spec>,
    /// One first-level cache for all
    #[arg(long, value_name = "CACHE", value_parser = caches::spec, conflicts_with_all = ["l1d", "l1i"])]
    l1: Option<Spec>,
    /// Second level, for all
    #[arg(long, value_name = "CACHE", value_parser = caches::spec)]
    l2: Option<Spec>,
    /// Third level, for all
    #[arg(long, value_name = "CACHE", value_parser = caches::spec, requires = "l2")]
    l3: Option<Spec>,
    /// Which line leaves a full set: lru, fifo, random [default: lru]
    #[arg(long, value_name = "WHICH", value_parser = caches::policy)]
    policy: Option<Policy>,
    /// When writes go to the next level: back (when the line leaves), through (at once) [default: back]
    #[arg(long, value_name = "WHEN", value_parser = caches::write)]
    write: Option<Write>,
    /// Whether a write that misses brings its line in [default: on]
    #[arg(long, value_enum, value_name = "ON")]
    allocate: Option<Switch>,
    /// Where the dice for random start [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Instead of caches: the miss ratios of fully associative LRU caches of all sizes, in one pass;
    /// =unified for fetches and data in one
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "split",
          conflicts_with_all = ["l1", "l1d", "l1i", "l2", "l3", "policy", "write", "allocate", "seed"])]
    curve: Option<Share>,
    /// Bytes of a line for --curve [default: 64]
    #[arg(long, value_name = "BYTES", value_parser = caches::line)]
    line: Option<u64>,
    /// Its format [default: what its bytes and its name say]
    #[arg(long, value_name = "FORMAT", value_parser = flags::format)]
    from: Option<Format>,
    /// Of a trace of memory references: this rank
    #[arg(long, value_name = "R")]
    rank: Option<u32>,
    /// and this thread
    #[arg(long, value_name = "T")]
    thread: Option<u32>,
    /// Several threads are simulated in turns of so many references [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    turn: Option<u64>,
    /// Stop after so many references
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// One JSON object with exact numbers; with --curve, every distance
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Share {
    Split,
    Unified,
}

pub fn simulate_help() -> String {
    "\
A CACHE is SIZE,WAYS,LINE: 32K,8,64 has 32 KiB, 8 ways and lines of 64 bytes; 4K,full,64 is fully associative.
Words after that are for this cache alone: 1M,16,64,random,through,no-allocate.

Examples:
  refrain simulate app.pdt64 --l1i 32K,8,64 --l1d 48K,12,64 --l2 1280K,10,64 --l3 24M,12,64
  refrain simulate app.din.gz --l1 8K,1,32 --policy fifo           one cache for fetches and data
  refrain simulate app.pdt64 --l1d 16K,4,32,through,no-allocate --l2 1M,8,64,back,allocate
  refrain simulate app.pdt64 --curve                how large would be large enough?
  refrain simulate app.pdt64 --curve=unified --line 128 --json
  valgrind --tool=lackey --trace-mem=yes --log-fd=9 ./app 9>&1 >/dev/null |
    refrain simulate --from lackey - --l1i 32K,8,64 --l1d 32K,8,64

Traces are read as they are, packed and compressed, in every format of `refrain convert`; nothing is unpacked to disk.
At the first level references are counted; one that straddles lines touches all of them, and misses if any was missing.
Where the trace has no sizes each reference is in one line. Below, lines are counted that the level above lacked, by
the type of reference they were missing for; `written` is what came down: dirty lines that left, and writes passed on.
Without a cache for fetches (--l1d alone) or for data (--l1i alone) such references are passed over; so are those of
unknown type. The supervisor's count as the user's. No level keeps its lines out of another or forces them into one.

Of a trace of memory references (`refrain memory run`) all threads of a rank are simulated, in turns (--turn): each has caches of
its own but for the last level below the first, which they share. No cache hears of what others write. A curve is of all of them
as one. --thread chooses one thread, --rank the rank.

Where the trace is damaged, the numbers are of what stands before; the error says which record and byte, and the exit
code is 2."
        .to_owned()
}

pub fn simulate(flags: &Simulate) -> Result<ExitCode, Failure> {
    if is_recorded(&flags.file, flags.from) {
        let readers = references::readers(&flags.file, flags.rank, flags.thread)?;
        if readers.len() > 1 {
            return of_threads(flags, readers);
        }
    }
    if flags.turn.is_some() {
        return Err(Failure::new(format!(
            "--turn is for several threads, and {} has one",
            flags.file.display()
        )));
    }
    match flags.curve {
        Some(share) => {
            let streams = if share == Share::Unified { Streams::Unified } else { Streams::Split };
            let mut curve = Curve::new(flags.line.unwrap_or(64), streams);
            let mut source = Source::of_thread(&flags.file, flags.from, flags.rank, flags.thread)?;
            let damage = feed(&mut source, flags.limit, |batch| curve.add(batch));
            let format = source.reader.format();
            let text = match flags.json {
                true => simulate_text::curve_json(&curve, format),
                false => simulate_text::curve_table(&curve, format),
            };
            print(&flags.file, &text, damage)
        }
        None => {
            if flags.line.is_some() {
                return Err(
                    Failure::new("--line is for --curve").help("caches have their own: `--l1d 32K,8,64`")
                );
            }
            let mut caches = hierarchy(flags)?;
            let mut source = Source::of_thread(&flags.file, flags.from, flags.rank, flags.thread)?;
            let damage = feed(&mut source, flags.limit, |batch| caches.add(batch));
            let format = source.reader.format();
            let text = match flags.json {
                true => simulate_text::json(&caches, format),
                false => simulate_text::table(&caches, format, source.reader.fields().sizes),
            };
            print(&flags.file, &text, damage)
        }
    }
}

/// Threads of memory references, in turns.
fn of_threads(flags: &Simulate, readers: Vec<Reader>) -> Result<ExitCode, Failure> {
    let threads = readers.len();
    let turn = flags.turn.unwrap_or(1000);
    let (format, sizes) = (Format::Rfn, true);
    let (text, damage) = match flags.curve {
        Some(share) => {
            let streams = if share == Share::Unified { Streams::Unified } else { Streams::Split };
            let mut curve = Curve::new(flags.line.unwrap_or(64), streams);
            let damage = in_turns(readers, turn, flags.limit, |_, batch| curve.add(batch));
            let write = if flags.json { simulate_text::curve_json } else { simulate_text::curve_table };
            (write(&curve, format), damage)
        }
        None => {
            let (first, mut below, seed) = caches(flags)?;
            let shared = below.pop();
            let mut caches = Threads::new(first, &below, shared, threads, seed).map_err(smaller_lines)?;
            let damage = in_turns(readers, turn, flags.limit, |thread, batch| caches.add(thread, batch));
            let all = caches.together().ok_or_else(|| Failure::new("there are no threads"))?;
            let text = match flags.json {
                true => simulate_text::json(&all, format),
                false => simulate_text::table(&all, format, sizes),
            };
            (text, damage)
        }
    };
    print(&flags.file, &text, damage)
}

/// Hands over what threads do, `turn` references at a time, until the last has ended.
fn in_turns(
    readers: Vec<Reader>,
    turn: u64,
    limit: Option<u64>,
    mut add: impl FnMut(usize, &Batch),
) -> Option<Error> {
    // What was read of each and is not simulated yet, from where on.
    let mut threads: Vec<Option<(Reader, Batch, usize)>> =
        readers.into_iter().map(|reader| Some((reader, Batch::new(), 0))).collect();
    let mut left = limit.unwrap_or(u64::MAX);
    let (mut some, mut damage) = (Batch::new(), None);
    while left > 0 && threads.iter().any(Option::is_some) {
        for (number, thread) in threads.iter_mut().enumerate() {
            let mut now = turn.min(left);
            while now > 0 {
                let Some((reader, batch, from)) = thread else { break };
                if *from == batch.len() {
                    *from = 0;
                    match reader.read(batch) {
                        Ok(true) => {}
                        end => {
                            damage = damage.or(end.err());
                            *thread = None;
                            break;
                        }
                    }
                }
                let count = now.min((batch.len() - *from) as u64);
                some.clear();
                let to = *from + count as usize;
                some.kinds.extend_from_slice(&batch.kinds[*from..to]);
                some.addresses.extend_from_slice(&batch.addresses[*from..to]);
                some.sizes.extend_from_slice(&batch.sizes[*from..to]);
                some.pcs.extend_from_slice(&batch.pcs[*from..to]);
                add(number, &some);
                *from = to;
                now -= count;
                left -= count;
            }
        }
    }
    damage
}

fn hierarchy(flags: &Simulate) -> Result<Hierarchy, Failure> {
    let (first, below, seed) = caches(flags)?;
    Hierarchy::new(first, &below, seed).map_err(smaller_lines)
}

fn smaller_lines(wrong: SmallerLines) -> Failure {
    let (below, above) = (wrong.below, wrong.above);
    Failure::new(format!("the lines of level {below} are smaller than those of level {above}"))
        .help("lines may stay as long or get longer from level to level")
}

/// The first level, those below, and where dice start.
fn caches(flags: &Simulate) -> Result<(First, Vec<Config>, u64), Failure> {
    let policy = flags.policy.unwrap_or(Policy::Lru);
    let write = flags.write.unwrap_or(Write::Back);
    let allocate = flags.allocate != Some(Switch::Off);
    let config = |spec: &Spec| spec.config(policy, write, allocate);
    let first = match (&flags.l1, &flags.l1i, &flags.l1d) {
        (Some(unified), _, _) => First::Unified(config(unified)),
        (None, None, None) => {
            return Err(Failure::new("there is no first-level cache").help(
                "say which: `--l1d 32K,8,64 --l1i 32K,8,64`, or `--l1 32K,8,64` for all; `--curve` does all sizes at once",
            ));
        }
        (None, instructions, data) => {
            First::Split { instructions: instructions.as_ref().map(config), data: data.as_ref().map(config) }
        }
    };
    let below: Vec<_> = [&flags.l2, &flags.l3].into_iter().flatten().map(config).collect();
    let dice = match first {
        First::Unified(config) => vec![config],
        First::Split { instructions, data } => instructions.into_iter().chain(data).collect(),
    };
    if flags.seed.is_some() && !dice.iter().chain(&below).any(|config| config.policy == Policy::Random) {
        return Err(Failure::new("--seed is for random caches, and none of these is"));
    }
    Ok((first, below, flags.seed.unwrap_or(0)))
}

/// All references, or the first so many; what stopped it.
fn feed(source: &mut Source, limit: Option<u64>, mut add: impl FnMut(&Batch)) -> Option<Error> {
    let mut bar = Bar::new("simulating");
    let mut batch = Batch::new();
    let mut left = limit.unwrap_or(u64::MAX);
    while left > 0 {
        match source.next(&mut batch) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return Some(error),
        }
        if batch.len() as u64 > left {
            batch.truncate(left as usize);
        }
        left -= batch.len() as u64;
        add(&batch);
        if let Some((done, all)) = source.progress() {
            bar.show(done, all);
        }
    }
    None
}
