//! One row of a table for each pattern: `scale [--threads N] [--fold grammar|loops] [--sections] [--out FILE] PATTERN...
//! RANKS STEPS`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use refrain_encode::Folding;
use refrain_scale::{Meter, Options, Pattern, Report, simulate};

/// The system's allocator, counted.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn more(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    if live > PEAK.load(Relaxed) {
        PEAK.fetch_max(live, Relaxed);
    }
}

// SAFETY: every request goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above; `pointer` came from `alloc` or `realloc` here, which are the system's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        more(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Measured;

impl Meter for Measured {
    fn now(&self) -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a place for the answer.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    fn restart(&self) {
        PEAK.store(LIVE.load(Relaxed), Relaxed);
    }

    fn peak(&self) -> usize {
        PEAK.load(Relaxed)
    }
}

struct Arguments {
    threads: u32,
    sections: bool,
    folding: Folding,
    out: Option<String>,
    patterns: Vec<Pattern>,
    ranks: u32,
    steps: u32,
}

fn parse(words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut words = words.peekable();
    let (mut threads, mut sections, mut out, mut rest) = (1, false, None, Vec::new());
    let mut folding = Folding::default();
    let number = |word: Option<String>, what: &str| -> Result<u32, String> {
        let word = word.ok_or(format!("{what} is missing"))?;
        word.parse().map_err(|_| format!("{what} is not a number: {word}"))
    };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--threads" => threads = number(words.next(), "the number of threads")?,
            "--sections" => sections = true,
            "--fold" => folding = words.next().ok_or("--fold needs a word")?.parse()?,
            "--out" => out = Some(words.next().ok_or("--out needs a file")?),
            _ => rest.push(word),
        }
    }
    let steps = number(rest.pop(), "the number of steps")?;
    let ranks = number(rest.pop(), "the number of ranks")?;
    let patterns =
        rest.iter().map(|name| name.parse().map_err(|e: refrain_scale::UnknownPattern| e.to_string()));
    let patterns: Vec<Pattern> = patterns.collect::<Result<_, _>>()?;
    if patterns.is_empty() {
        return Err("no pattern is named".into());
    }
    Ok(Arguments { threads, sections, folding, out, patterns, ranks, steps })
}

fn row(report: &Report) {
    let Report {
        pattern,
        ranks,
        steps,
        calls,
        bytes,
        symbols,
        structures,
        streams,
        kinds,
        seconds,
        peak,
        ..
    } = report;
    println!(
        "{:<16} {ranks:>8} {steps:>6} {calls:>11} {bytes:>9} {symbols:>8} {structures:>7} {streams:>8} {kinds:>7} \
         {:>8.2} {:>8.2} {:>8.3} {:>8.3} {:>9.2}",
        pattern.to_string(),
        seconds.ranks,
        seconds.merge,
        seconds.path,
        seconds.write,
        *peak as f64 / f64::from(1 << 20)
    );
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!(
                "{problem}\nusage: scale [--threads N] [--fold grammar|loops] [--sections] [--out FILE] PATTERN... RANKS STEPS"
            );
            return ExitCode::from(2);
        }
    };
    println!(
        "{:<16} {:>8} {:>6} {:>11} {:>9} {:>8} {:>7} {:>8} {:>7} {:>8} {:>8} {:>8} {:>8} {:>9}",
        "pattern",
        "ranks",
        "steps",
        "calls",
        "bytes",
        "symbols",
        "structs",
        "streams",
        "kinds",
        "ranks s",
        "merge s",
        "path s",
        "write s",
        "peak MiB"
    );
    for pattern in arguments.patterns {
        let options = Options { threads: arguments.threads, meter: &Measured, folding: arguments.folding };
        let done = match simulate(pattern, arguments.ranks, arguments.steps, &options) {
            Ok(done) => done,
            Err(error) => {
                eprintln!("{pattern}: {error}");
                return ExitCode::FAILURE;
            }
        };
        row(&done.report);
        if arguments.sections {
            let sections: Vec<String> =
                done.report.sections.iter().map(|(name, bytes)| format!("{name} {bytes}")).collect();
            println!("    {}", sections.join(", "));
        }
        if let Some(out) = &arguments.out
            && let Err(error) = std::fs::write(out, &done.bytes)
        {
            eprintln!("{out}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
