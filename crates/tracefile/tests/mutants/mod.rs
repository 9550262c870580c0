//! Traces that somebody changed: real ones, with bytes of their unpacked sections (or of the packed ones) changed and the
//! checksums made right again. A panic, more memory or more time than a reader may take is a finding. A number stands for a
//! mutant: the same number, the same bytes.

#![allow(dead_code)] // Each crate that has readers uses what it needs.

#[path = "../seal/mod.rs"]
pub mod seal;

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use fastrand::Rng;
use refrain_tracefile::{SectionInfo, Trace};

use seal::reseal;

/// What one command may hold at a time: the seeds are some kilobytes each.
const MEMORY: u64 = 1 << 30;
/// What it may write: as if it were piped to `head`, it ends then.
pub const OUTPUT: usize = 1 << 18;
/// How long `verify` is waited for, which reads every call; it would go on and show how far it is.
pub const READING: Duration = Duration::from_millis(20);

/// Counts what is held, and the most that was.
pub struct Counting;

static HELD: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);
static MUTANT: AtomicU64 = AtomicU64::new(0);
/// When the command at hand began, in milliseconds after the start; 0 if there is none.
static BEGAN: AtomicU64 = AtomicU64::new(0);

// SAFETY: the system's allocator does all the work; this counts beside it, in atomics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size() as u64;
        let held = HELD.fetch_add(size, Relaxed).wrapping_add(size);
        MOST.fetch_max(held, Relaxed);
        if held > 4 * MEMORY {
            // Nothing may be allocated here, and the machine has other users.
            stop("holds more than 4 GiB");
        }
        // SAFETY: what was promised to us is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: as above; all memory of ours is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Says which mutant it is, without allocating, and ends the process.
fn stop(why: &str) -> ! {
    let mut digits = [0u8; 20];
    let (mut number, mut at) = (MUTANT.load(Relaxed), digits.len());
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    let mut err = io::stderr();
    for text in [&b"mutant "[..], &digits[at..], b": ", why.as_bytes(), b"\n"] {
        let _ = err.write_all(text);
    }
    std::process::abort()
}

/// A thread that ends the process when a command takes longer than this.
pub fn watch(start: Instant, longest: Duration) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let (began, now) = (BEGAN.load(Relaxed), start.elapsed().as_millis() as u64);
            if began != 0 && now.saturating_sub(began) > longest.as_millis() as u64 {
                stop("takes too long");
            }
        }
    });
}

pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|p| p.is_file()).collect();
    paths.sort();
    paths
}

/// Stored traces: of real runs, and fixtures. Called from a crate beside this one.
pub fn stored() -> Vec<Trace> {
    let paths = [files(&folder("../views/tests/seeds")), files(&folder("../tracefile/tests/fixtures"))];
    let open = |path: &PathBuf| {
        refrain_tracefile::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    paths.concat().iter().map(open).collect()
}

/// Runs commands in their bounds.
pub struct Bounds {
    start: Instant,
    /// How often each was run, and how long it took at most.
    pub commands: BTreeMap<String, (u64, Duration)>,
}

impl Bounds {
    pub fn new() -> Bounds {
        Bounds { start: Instant::now(), commands: BTreeMap::new() }
    }

    /// Of the mutant with this number. `Err` is what went wrong.
    pub fn command<T>(&mut self, name: &str, run: impl FnOnce() -> T) -> Result<Option<T>, String> {
        let began = Instant::now();
        let before = HELD.load(Relaxed);
        MOST.store(before, Relaxed);
        BEGAN.store(self.start.elapsed().as_millis() as u64 + 1, Relaxed);
        let outcome = catch_unwind(AssertUnwindSafe(run));
        BEGAN.store(0, Relaxed);
        let (times, longest) = self.commands.entry(name.to_owned()).or_default();
        (*times, *longest) = (*times + 1, began.elapsed().max(*longest));
        let more = MOST.load(Relaxed).saturating_sub(before);
        if more > MEMORY {
            return Err(format!("{name}: holds {} MiB", more >> 20));
        }
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(thrown) if thrown.is::<Enough>() => Ok(None),
            Err(_) => Err(format!("{name}: panics")),
        }
    }
}

/// The number that a failure is told with.
pub fn begin(number: u64) {
    MUTANT.store(number, Relaxed);
}

/// Ends a command that has read for a while and would go on, where it tells how far it is.
pub fn for_a_while() -> impl FnMut() {
    let began = Instant::now();
    move || {
        if began.elapsed() > READING {
            resume_unwind(Box::new(Enough));
        }
    }
}

/// A good trace, and where its sections are.
struct Seed {
    bytes: Vec<u8>,
    sections: Vec<SectionInfo>,
}

/// What mutants are made of.
pub struct Seeds(Vec<Seed>);

impl Seeds {
    pub fn new(traces: &[Trace]) -> Seeds {
        let both = |trace: &Trace| [refrain_tracefile::write_plain(trace), refrain_tracefile::write(trace)];
        let seed = |bytes: Vec<u8>| Seed { sections: refrain_tracefile::sections(&bytes).unwrap(), bytes };
        Seeds(traces.iter().flat_map(both).map(seed).collect())
    }

    /// One that was changed, and what it was.
    pub fn mutant(&self, random: &mut Rng) -> (Vec<u8>, &[u8]) {
        // Plain ones stand at even places; of a packed one everything after the change is another thing.
        let packed = usize::from(random.usize(..4) == 0);
        let seed = &self.0[random.usize(..self.0.len() / 2) * 2 + packed];
        let mut bytes = seed.bytes.clone();
        for _ in 0..1 + random.usize(..2) * random.usize(..4) {
            // Not the header: its lengths say where sections are.
            let section = &seed.sections[1 + random.usize(..seed.sections.len() - 1)];
            if section.stored > 0 {
                let at = section.offset + random.usize(..section.stored);
                change(&mut bytes, at, random);
            }
        }
        reseal(&mut bytes, &seed.sections);
        (bytes, &seed.bytes)
    }
}

/// Thrown by what need not go on.
pub struct Enough;

/// A reader that has seen enough after a while.
pub struct Head(usize);

impl Head {
    pub fn new() -> Head {
        Head(OUTPUT)
    }
}

impl Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A byte, or a few, become something else. The length stays.
pub fn change(bytes: &mut [u8], at: usize, random: &mut Rng) {
    match random.usize(..6) {
        0 => bytes[at] ^= 1 << random.usize(..8),
        1 => bytes[at] = random.u8(..),
        2 => bytes[at] = [0, 1, 2, 3, 0x7f, 0x80, 0xfe, 0xff][random.usize(..8)],
        3 => bytes[at] = bytes[at].wrapping_add(1),
        // A large number, as varints go.
        4 => {
            let length = 1 + random.usize(..9);
            let end = (at + length).min(bytes.len());
            bytes[at..end].fill(0xff);
            bytes[end - 1] = 0x7f;
        }
        _ => {
            let other = random.usize(..bytes.len());
            let length = 1 + random.usize(..8).min(bytes.len() - other.max(at) - 1);
            let copy = bytes[other..other + length].to_vec();
            bytes[at..at + length].copy_from_slice(&copy);
        }
    }
}

/// Tries so many mutants, or from `REFRAIN_MUTANTS_FROM` on for `REFRAIN_MUTANTS_SECONDS`, as `scripts/fuzz` does. Gives how many.
pub fn try_each(usual: u64, mut one: impl FnMut(u64) -> Result<(), String>) -> u64 {
    let variable = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let from = variable("REFRAIN_MUTANTS_FROM").unwrap_or(0);
    let seconds = variable("REFRAIN_MUTANTS_SECONDS");
    let start = Instant::now();
    // The longest that one command may take; where other tests run beside it, that says nothing.
    watch(start, Duration::from_secs(if seconds.is_some() { 10 } else { 300 }));
    let (mut tried, mut failed) = (0, Vec::new());
    let goes_on = |tried: u64| match seconds {
        Some(seconds) => start.elapsed() < Duration::from_secs(seconds),
        None => tried < usual,
    };
    while goes_on(tried) {
        let number = from + tried;
        begin(number);
        if let Err(why) = one(number) {
            println!("mutant {number}: {why}");
            failed.push(format!("mutant {number}: {why}"));
        }
        tried += 1;
    }
    assert!(failed.is_empty(), "{} of {tried} mutants: {failed:#?}", failed.len());
    tried
}

/// What `scripts/fuzz` shows at the end.
pub fn report(tried: u64, read: u64, bounds: &Bounds) {
    for (command, (times, longest)) in &bounds.commands {
        println!("{times:8} {command}, {} ms at most", longest.as_millis());
    }
    println!("{tried} mutants, {read} of them read");
}
