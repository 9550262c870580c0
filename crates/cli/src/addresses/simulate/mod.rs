//! `refrain simulate`: caches, from an address trace in any format.

pub mod caches;
mod curve;
mod feed;
mod json;
mod places;
mod runs;
mod systems;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use refrain_addresses::simulate::{
    Curve, Misplaced, Pages, Policy, Protocol, Region, Streams, Tallies, Tlbs, Write,
};
use refrain_addresses::{Batch, Error, Format};

use super::files::{Source, is_dash, is_recorded, print};
use super::flags;
use crate::args::Modules;
use crate::failure::Failure;
use crate::{references, say};
use caches::{Coherence, Spec};
use feed::{Cores, Sink, Window};
use places::{By, Places, Program, Sources};
use runs::Runs;
use systems::systems;

#[derive(Debug, Args)]
#[group(id = "simulate-flags")]
pub struct Simulate {
    /// The trace; - is standard input
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// First-level cache for reads and writes
    #[arg(long, value_name = "CACHE", value_parser = caches::specs)]
    l1d: Vec<Vec<Spec>>,
    /// First-level cache for fetches
    #[arg(long, value_name = "CACHE", value_parser = caches::specs)]
    l1i: Vec<Vec<Spec>>,
    /// One first-level cache for all
    #[arg(long, value_name = "CACHE", value_parser = caches::specs, conflicts_with_all = ["l1d", "l1i"])]
    l1: Vec<Vec<Spec>>,
    /// Second level, for all
    #[arg(long, value_name = "CACHE", value_parser = caches::specs, conflicts_with_all = ["l2d", "l2i"])]
    l2: Vec<Vec<Spec>>,
    /// Second level, for reads and writes
    #[arg(long, value_name = "CACHE", value_parser = caches::specs, hide_short_help = true)]
    l2d: Vec<Vec<Spec>>,
    /// Second level, for fetches
    #[arg(long, value_name = "CACHE", value_parser = caches::specs, hide_short_help = true)]
    l2i: Vec<Vec<Spec>>,
    /// Third level, for all
    #[arg(long, value_name = "CACHE", value_parser = caches::specs, conflicts_with_all = ["l3d", "l3i"])]
    l3: Vec<Vec<Spec>>,
    /// Third level, for reads and writes
    #[arg(long, value_name = "CACHE", value_parser = caches::specs, hide_short_help = true)]
    l3d: Vec<Vec<Spec>>,
    /// Third level, for fetches
    #[arg(long, value_name = "CACHE", value_parser = caches::specs, hide_short_help = true)]
    l3i: Vec<Vec<Spec>>,
    /// Fourth level, for all
    #[arg(long, value_name = "CACHE", value_parser = caches::specs, conflicts_with_all = ["l4d", "l4i"], hide_short_help = true)]
    l4: Vec<Vec<Spec>>,
    /// Fourth level, for reads and writes
    #[arg(long, value_name = "CACHE", value_parser = caches::specs, hide_short_help = true)]
    l4d: Vec<Vec<Spec>>,
    /// Fourth level, for fetches
    #[arg(long, value_name = "CACHE", value_parser = caches::specs, hide_short_help = true)]
    l4i: Vec<Vec<Spec>>,
    /// Fifth level, for all
    #[arg(long, value_name = "CACHE", value_parser = caches::specs, conflicts_with_all = ["l5d", "l5i"], hide_short_help = true)]
    l5: Vec<Vec<Spec>>,
    /// Fifth level, for reads and writes
    #[arg(long, value_name = "CACHE", value_parser = caches::specs, hide_short_help = true)]
    l5d: Vec<Vec<Spec>>,
    /// Fifth level, for fetches
    #[arg(long, value_name = "CACHE", value_parser = caches::specs, hide_short_help = true)]
    l5i: Vec<Vec<Spec>>,
    /// Which line leaves a full set: lru, fifo, random, plru [default: lru]
    #[arg(long, value_name = "WHICH", value_parser = caches::policy)]
    policy: Option<Policy>,
    /// When writes go to the next level: back (when the line leaves), through (at once) [default: back]
    #[arg(long, value_name = "WHEN", value_parser = caches::write)]
    write: Option<Write>,
    /// Whether a write that misses brings its line in, and fetches it for that [default: on]
    #[arg(long, value_enum, value_name = "ON")]
    allocate: Option<Switch>,
    /// Where the dice for random start [default: 0]
    #[arg(long, value_name = "N", hide_short_help = true)]
    seed: Option<u64>,
    /// Instead of caches: the miss ratios of fully associative LRU caches of all sizes, in one pass;
    /// =unified for fetches and data in one
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "split",
          conflicts_with_all = ["l1", "l1d", "l1i", "l2", "l2d", "l2i", "l3", "l3d", "l3i", "l4", "l4d", "l4i", "l5", "l5d", "l5i", "policy", "write", "allocate", "seed"])]
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
    /// Several threads are simulated in turns of so many references [default: 1000; with --coherence 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    turn: Option<u64>,
    /// How the private caches of several cores hear of writes: none, msi, mesi, moesi [default: none]
    #[arg(long, value_name = "HOW", value_parser = caches::coherence, conflicts_with = "curve")]
    coherence: Option<Coherence>,
    /// Run threads on so many cores, round robin [default: a core for each]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), conflicts_with = "curve", hide_short_help = true)]
    cores: Option<u16>,
    /// Run threads on these cores, in their order: 0,0,1,1
    #[arg(long, value_name = "CORES", value_parser = caches::pins, conflicts_with_all = ["curve", "cores"], hide_short_help = true)]
    pin: Option<Cores>,
    /// Each core has so many levels for itself, from the first on [default: all but the last; of one level, that one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5), conflicts_with = "curve", hide_short_help = true)]
    private: Option<u8>,
    /// Begin after so many references, with empty caches; in an rfa file they need not be read
    #[arg(long, value_name = "N")]
    skip: Option<u64>,
    /// Simulate so many references before anything is counted, to warm the caches
    #[arg(long, value_name = "N", conflicts_with = "curve")]
    warmup: Option<u64>,
    /// Stop after so many references that count
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Also tell what happened in every N references
    #[arg(long, value_name = "N", conflicts_with = "curve", value_parser = clap::value_parser!(u64).range(1..))]
    interval: Option<u64>,
    /// TLB for reads and writes: ENTRIES,WAYS,PAGE, as 64,4,4K
    #[arg(long, value_name = "TLB", value_parser = caches::pages, conflicts_with = "curve")]
    dtlb: Option<Pages>,
    /// TLB for fetches
    #[arg(long, value_name = "TLB", value_parser = caches::pages, conflicts_with = "curve", hide_short_help = true)]
    itlb: Option<Pages>,
    /// TLB behind both
    #[arg(long, value_name = "TLB", value_parser = caches::pages, conflicts_with = "curve", hide_short_help = true)]
    l2tlb: Option<Pages>,
    /// Tell misses apart: compulsory, capacity and conflict
    #[arg(long, conflicts_with = "curve")]
    classes: bool,
    /// Tell whose misses they are: by pc, function, line or region
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "curve")]
    by: Option<By>,
    /// Part of memory, for --by region: a=0x4c060..0x6c060
    #[arg(long, value_name = "NAME=FROM..TO", value_parser = places::region)]
    region: Vec<Region>,
    /// The program that a trace with addresses of instructions is of, and where it was loaded: ./app@0x108000
    #[arg(long, value_name = "FILE@ADDRESS", value_parser = places::program)]
    program: Vec<Program>,
    #[command(flatten)]
    modules: Modules,
    /// One JSON object with exact numbers; with --curve, every distance
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
    /// On, without fetching it
    NoFetch,
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
  lru, fifo, random, plru           which line leaves; plru is a tree of bits
  back, through                     when writes go down
  allocate, no-fetch, no-allocate   a write that misses brings its line in, does so without fetching it, or does not
  sector=32                         parts of a line come and go by themselves
  victims=8                         so many lines are kept for a while when they have left (a victim cache)
  prefetch-miss, -always, -tagged   fetch the next line too: after a miss, after every reference, or after a miss and at the
                                    first use of a line that was prefetched
  prefetch-stride                   fetch where an instruction will be if it goes on by the same distance; in a trace without
                                    instructions, each page of 4 KiB is taken for one
  inclusive, exclusive              has all lines of the levels above; has none of the level above, takes what leaves it
8K..1M,1..16,64 is a cache for each power of two in the ranges. An option may be given several times. All combinations of
all options are simulated in one pass, and are one table.

Examples:
  refrain simulate app.pdt64 --l1i 32K,8,64 --l1d 48K,12,64 --l2 1280K,10,64 --l3 24M,12,64
  refrain simulate app.din.gz --l1 8K,1,32 --policy fifo           one cache for fetches and data
  refrain simulate app.pdt64 --l1d 16K,4,32,through,no-allocate --l2 1M,8,64,back,allocate
  refrain simulate app.pdt64 --l1d 32K,8,64,plru,prefetch-tagged --l2 1M,16,64,inclusive
  refrain simulate app.pdt64 --l1i 32K,4,64 --l1d 8K,1,32,victims=4 --l2i 256K,8,64 --l2d 256K,8,64,sector=32 --l3 4M,16,64
  refrain simulate app.rfa --l1d 8K..1M,1..16,64    many caches in one pass: 40 rows, one for each
  refrain simulate app.rfa --l1d 32K,8,64 --l1d 48K,12,64 --l2 1M,16,64        two
  refrain simulate app.rfa --l1d 32K,8,64 --skip 5000000 --warmup 100000 --limit 1000000
                                                    passes over 5 million, warms the caches, counts a million
  refrain simulate app.rfa --l1d 32K,8,64 --interval 100000        how misses change over time
  refrain simulate app.rfa --l1d 32K,8,64 --dtlb 64,4,4K --itlb 128,8,4K --l2tlb 1536,12,4K
  refrain simulate app.rfn --l1d 32K,8,64 --l2 1M,16,64 --coherence mesi --by line     which line shares falsely?
  refrain simulate app.rfn --l1d 32K,8,64 --l2 256K,8,64 --l3 8M,16,64 --cores 4 --private 2 --coherence moesi --turn 100
  refrain simulate app.rfa --l1d 32K,8,64 --classes        which misses are for want of size, which for want of ways?
  refrain simulate app.rfn --l1d 32K,8,64 --by line        which line of the source misses?
  refrain simulate app.lackey --l1d 32K,8,64 --by function --program ./app@0x108000
  refrain simulate app.rfn --l1d 32K,8,64 --by region --region a=0x4c060..0x6c060 --region b=0x6c060..0x8c060
  refrain simulate app.pdt64 --curve                how large would be large enough?
  refrain simulate app.pdt64 --curve=unified --line 128 --json
  valgrind --tool=lackey --trace-mem=yes --log-fd=9 ./app 9>&1 >/dev/null |
    refrain simulate --from lackey - --l1i 32K,8,64 --l1d 32K,8,64

Traces are read as they are, packed and compressed, in every format of `refrain convert`; nothing is unpacked to disk.
At the first level references are counted; one that straddles lines touches all of them, and misses if any was missing.
Where the trace has no sizes each reference is in one line. Below, lines are counted that the level above lacked, by
the type of reference they were missing for; `written` is what came down: dirty lines that left, and writes passed on.
Without a cache for fetches (--l1d alone) or for data (--l1i alone) such references are passed over; so are those of
unknown type. The supervisor's count as the user's. Without a word,
no level keeps its lines out of another or forces them into one.
DineroIV's copy-backs and invalidations (`dinero` 4 and 5, `xdin` c and v) are done at every level, to the line of their address,
or to all lines if the size is 0. A copy-back sends a dirty line down and keeps it. What is invalidated is not written back.
Both count as references, for --skip, --warmup, --limit and --interval too.

--classes: a miss is compulsory if its line was never brought in before, a conflict if a fully associative LRU cache of as many lines
would have had it, and for want of capacity otherwise.

A TLB is ENTRIES,WAYS,PAGE and LRU; --l2tlb has what both lack. Each core has its own. Addresses are taken as they are: TLBs
change nothing for caches.

--by: a trace of memory references has the addresses of instructions and knows the programs; `rfa`, `rawp` files may have addresses;
of others each reference is of the last fetch before it. --program says where a program was loaded, --modules where to look for
debug information and sources. The misses of a level below are lines that it lacked for references of that instruction.

Of a trace of memory references (`refrain memory run`) all threads of a rank are simulated, each on a core of its own, or on
--cores N round robin, or as --pin says. Each core has caches of its own but for the last level below the first, which they share;
--private says how many levels are its own. The trace does not say in which order threads ran beside each other: they all begin at
once and take turns of --turn references. Numbers of shared caches and of coherence depend on that. Text of drmemtrace has
threads too, in the order of its lines: say --cores or --pin. A curve is of all threads as one. --thread chooses one thread, --rank
the rank.

--coherence: a write takes the line away from all other cores. Without it no cache hears of what others write.
  msi     a line is modified, shared or invalid: a first write to a line that was read is told (an upgrade)
  mesi    and exclusive: who alone read a line writes without a word (silent)
  moesi   and owned: what is dirty is given to readers, and written back when it leaves its owner's caches for want of room
Who has a line alone, dirty or owned gives it to others from cache to cache. Then the level below is not asked. msi and mesi write
a dirty line back when another core reads it. A miss on a line that a write of another core took away is true sharing if the
reference uses a byte that others wrote since, false sharing if not. Caches of one core do not hear of each other: a write leaves the
line in the core's own instruction cache. Private levels then have lines of one length, without sectors and no-fetch; the last of them
is back and allocate. The first shared level is not exclusive. There are up to 64 cores. --classes then has a fourth class, coherence.

Where the trace is damaged, the numbers are of what stands before; the error says which record and byte, and the exit
code is 2."
        .to_owned()
}

pub fn simulate(flags: &Simulate) -> Result<ExitCode, Failure> {
    if is_recorded(&flags.file, flags.from) {
        let readers = references::readers(&flags.file, flags.rank, flags.thread)?;
        if readers.len() > 1 {
            let cores = cores(flags).unwrap_or_else(|| Cores::round(readers.len()));
            // Caches that hear of each other hear at once.
            let turn = flags.turn.unwrap_or(if flags.protocol().is_some() { 1 } else { 1000 });
            let window = window(flags);
            let order = Some(Order::Turns { threads: readers.len(), turn });
            let traced = Traced { format: Format::Rfn, sizes: true, order };
            return run(flags, traced, cores.count(), |sink| {
                feed::of_threads(readers, &cores, turn, window, sink)
            });
        }
    }
    let cores = cores(flags);
    let file = flags.file.display();
    // What is not there has no threads either, and that is said below.
    let there = is_dash(&flags.file) || flags.file.exists();
    if there && flags.turn.is_some() {
        if is_recorded(&flags.file, flags.from) {
            return Err(Failure::new(format!(
                "--turn is for several threads, and one of {file} is simulated"
            )));
        }
        return Err(Failure::new("--turn is for traces of `refrain memory run`").help(
            "text of drmemtrace says the order of its threads itself; other address traces know no threads",
        ));
    }
    let for_cores = [("--coherence", flags.protocol().is_some()), ("--private", flags.private.is_some())];
    if there && let (None, Some((option, _))) = (&cores, for_cores.iter().find(|(_, given)| *given)) {
        return Err(Failure::new(format!("{option} is for several cores, and {file} is simulated on one")).help(
            "traces of `refrain memory run` have threads; text of drmemtrace has them if you say how many cores: `--cores 4`",
        ));
    }
    let count = cores.as_ref().map_or(1, Cores::count);
    // Before the trace is opened, which may be a pipe.
    if there && flags.curve.is_none() {
        runs(flags, count)?;
    }
    let mut source = Source::of_thread(&flags.file, flags.from, flags.rank, flags.thread)?;
    if cores.is_some() && source.reader.format() != Format::Drmemtrace {
        let format = source.reader.format().name();
        return Err(Failure::new(format!(
            "{file} has one thread, or does not tell them apart (it is read as {format})"
        ))
        .help(
            "--cores and --pin are for several threads: of `refrain memory run`, or in text of drmemtrace",
        ));
    }
    if flags.curve.is_none() {
        source.reader.tell_caches();
    }
    let order = cores.is_some().then_some(Order::Trace);
    let traced = Traced { format: source.reader.format(), sizes: source.reader.fields().sizes, order };
    let mut window = window(flags);
    if window.skip > 0 {
        source.skip(&flags.file, window.skip)?;
        window.skip = 0;
    }
    let cores = cores.unwrap_or_else(|| Cores::round(1));
    run(flags, traced, count, |sink| feed::of_one(&mut source, &cores, window, sink))
}

impl Simulate {
    fn protocol(&self) -> Option<Protocol> {
        self.coherence.and_then(|Coherence(protocol)| protocol)
    }
}

/// Which thread runs on which core, if that was said.
fn cores(flags: &Simulate) -> Option<Cores> {
    flags.pin.clone().or_else(|| flags.cores.map(|count| Cores::round(count.into())))
}

/// What is known of the trace.
#[derive(Debug, Clone, Copy)]
struct Traced {
    format: Format,
    sizes: bool,
    /// Of references of several threads.
    order: Option<Order>,
}

/// In which order threads come to the caches.
#[derive(Debug, Clone, Copy)]
enum Order {
    Turns {
        threads: usize,
        turn: u64,
    },
    /// As the trace has them.
    Trace,
}

fn window(flags: &Simulate) -> Window {
    Window {
        skip: flags.skip.unwrap_or(0),
        warmup: flags.warmup.unwrap_or(0),
        limit: flags.limit.unwrap_or(u64::MAX),
        interval: flags.interval,
    }
}

fn runs(flags: &Simulate, cores: usize) -> Result<Runs, Failure> {
    if flags.line.is_some() {
        return Err(Failure::new("--line is for --curve").help("caches have their own: `--l1d 32K,8,64`"));
    }
    let by_region = flags.by == Some(By::Region);
    if by_region == flags.region.is_empty() {
        return Err(Failure::new(match by_region {
            true => "there is no region to tell misses by",
            false => "--region is for --by region",
        })
        .help("`--by region --region a=0x4c060..0x6c060`"));
    }
    if flags.by.is_none() && !(flags.program.is_empty() && flags.modules.folders.is_empty()) {
        return Err(Failure::new("--program and --modules are for --by"));
    }
    let mut runs = Runs::new(&systems(flags, cores)?).map_err(misplaced)?;
    if flags.l2tlb.is_some() && flags.itlb.is_none() && flags.dtlb.is_none() {
        return Err(Failure::new("--l2tlb is behind --itlb and --dtlb, and there is neither"));
    }
    if flags.itlb.is_some() || flags.dtlb.is_some() {
        let tlbs = (0..cores).map(|_| Tlbs::new(flags.itlb, flags.dtlb, flags.l2tlb));
        runs.tlbs = tlbs.collect::<Result<_, _>>().map_err(|misfit| Failure::new(misfit.to_string()))?;
    }
    if flags.by.is_some() {
        runs.all.iter_mut().for_each(|run| run.caches.tally(Tallies::new(!by_region, &flags.region)));
    }
    Ok(runs)
}

/// Simulates what `feed` gives, and prints what came of it.
fn run(
    flags: &Simulate,
    traced: Traced,
    cores: usize,
    feed: impl FnOnce(&mut dyn Sink) -> Option<Error>,
) -> Result<ExitCode, Failure> {
    let (text, damage) = match flags.curve {
        Some(share) => {
            let streams = if share == Share::Unified { Streams::Unified } else { Streams::Split };
            let mut curve = Curve::new(flags.line.unwrap_or(64), streams);
            let damage = feed(&mut curve);
            let write = if flags.json { curve::json } else { curve::table };
            (write(&curve, traced.format), damage)
        }
        None => {
            let mut runs = runs(flags, cores)?;
            // Names that cannot be told are known before hours are spent.
            let places = flags.by.map(|by| Ok((by, places(flags)?))).transpose()?;
            let damage = feed(&mut runs);
            let mut whose = places.as_ref().map(|(by, places)| Whose {
                by: *by,
                places,
                sources: Sources::new(&flags.modules.folders),
            });
            let text = match flags.json {
                true => json::json(&runs, traced, whose.as_ref()),
                false => text::table(&runs, traced, whose.as_mut()),
            };
            places.iter().flat_map(|(_, places)| places.warnings()).for_each(|warning| say(&warning));
            (text, damage)
        }
    };
    print(&flags.file, &text, damage)
}

/// How misses are put together, and named.
struct Whose<'a> {
    by: By,
    places: &'a Places,
    sources: Sources,
}

fn places(flags: &Simulate) -> Result<Places, Failure> {
    let folders = &flags.modules.folders;
    if is_recorded(&flags.file, flags.from) {
        if !flags.program.is_empty() {
            return Err(Failure::new(
                "--program is for address traces: this one says itself which programs ran",
            ));
        }
        return Ok(Places::recorded(&references::sites(&flags.file)?, folders));
    }
    if flags.program.is_empty() && matches!(flags.by, Some(By::Function | By::Line)) {
        return Err(Failure::new("nothing says which program the trace is of")
            .help("`--program ./app@0x108000` does, with the address where it was loaded (0x108000 under Valgrind, none if it is not relocatable); or `--by pc`"));
    }
    Places::programs(&flags.program, folders)
}

impl Sink for Curve {
    fn add(&mut self, _: usize, batch: &Batch) {
        Curve::add(self, batch);
    }
}

fn misplaced(wrong: Misplaced) -> Failure {
    let failure = Failure::new(wrong.to_string());
    match wrong {
        Misplaced::SmallerLines { .. } => {
            failure.help("lines may stay as long or get longer from level to level")
        }
        Misplaced::Cores(_) => failure.help("`--cores 8` runs all threads on 8 cores"),
        // Caches of the first level are private, whatever is said.
        Misplaced::DifferentLines { other, .. } if other.level > 1 => {
            let (shared, private) = (other.level, other.level - 1);
            failure.help(format!("`--private {private}` shares level {shared} and those below it"))
        }
        _ => failure,
    }
}
