//! All ranks of a pattern, one after the other, merged as `fold::bundle::gather` would merge them, and written.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use refrain_encode::Folding;
use refrain_fold::bundle::{self, Bundle, merge};
use refrain_tracefile::{Meta, Trace};

use crate::pattern::Pattern;
use crate::rank::{Rank, Template};

/// Whoever counts time and allocations; see `examples/scale.rs`.
pub trait Meter: Sync {
    /// Time this thread has had a processor for: on a busy machine the only time that means something.
    fn now(&self) -> Duration;
    /// From here on.
    fn restart(&self);
    /// The most bytes that were in use at once since then.
    fn peak(&self) -> usize;
}

/// Counts nothing.
#[derive(Debug)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn restart(&self) {}

    fn peak(&self) -> usize {
        0
    }
}

pub struct Options<'a> {
    /// 1, or 2: the upper half of the ranks (a whole branch of the tree) on a thread of its own.
    pub threads: u32,
    /// Right with one thread; with two it sees the other's memory as well.
    pub meter: &'a dyn Meter,
    pub folding: Folding,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { threads: 1, meter: &NoMeter, folding: Folding::default() }
    }
}

/// Of processor time; 0 without a meter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seconds {
    /// All calls of all ranks, encoded and folded.
    pub ranks: f64,
    /// All merges.
    pub merge: f64,
    /// The merges on the longest way up the tree: how long the ranks of a real machine would wait for each other.
    pub path: f64,
    pub write: f64,
}

#[derive(Debug, Clone)]
pub struct Report {
    pub pattern: Pattern,
    pub ranks: u32,
    pub steps: u32,
    pub calls: u64,
    /// Of the file.
    pub bytes: usize,
    /// Name and stored bytes of each section.
    pub sections: Vec<(&'static str, usize)>,
    pub symbols: usize,
    pub structures: usize,
    pub streams: usize,
    /// Kinds of ranks: cohorts.
    pub kinds: usize,
    pub seconds: Seconds,
    /// Bytes in use at rank 0 while it merged, put in order and wrote, at most. 0 without a meter.
    pub peak: usize,
}

#[derive(Debug)]
pub struct Simulation {
    pub report: Report,
    pub trace: Trace,
    pub bytes: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a simulation needs at least one rank")]
    NoRanks,
    /// What it must be for the pattern, and what it is.
    #[error("the number of ranks must be {0}, not {1}")]
    WrongRanks(&'static str, u32),
    #[error("the ranks do not merge: {0}")]
    Bundle(#[from] bundle::Error),
    #[error("the file written cannot be read: {0}")]
    File(refrain_tracefile::Error),
    /// The file cannot be written.
    #[error("a temporary file cannot be written or read: {0}")]
    Scratch(io::Error),
}

/// What a branch of the tree has done.
#[derive(Default)]
struct Branch {
    bundle: Bundle,
    calls: u64,
    ranks: Duration,
    merge: Duration,
    path: Duration,
    peak: usize,
}

struct Job<'a> {
    pattern: Pattern,
    size: u32,
    steps: u32,
    template: &'a Template,
    meter: &'a dyn Meter,
}

impl Job<'_> {
    fn leaf(&self, rank: u32) -> Result<Branch, Error> {
        let start = self.meter.now();
        let mut process = Rank::new(self.template, rank, self.size);
        self.pattern.run(&mut process, self.steps);
        let done = process.finish()?;
        Ok(Branch {
            bundle: done.bundle,
            calls: done.calls,
            ranks: self.meter.now() - start,
            ..Branch::default()
        })
    }

    /// `left` takes `right` in.
    fn join(&self, left: Branch, right: Branch, at_root: bool) -> Result<Branch, Error> {
        if at_root {
            self.meter.restart();
        }
        let start = self.meter.now();
        let bundle = merge(left.bundle, right.bundle)?;
        let took = self.meter.now() - start;
        let peak = if at_root { self.meter.peak() } else { 0 };
        Ok(Branch {
            bundle,
            calls: left.calls + right.calls,
            ranks: left.ranks + right.ranks,
            merge: left.merge + right.merge + took,
            path: left.path.max(right.path) + took,
            peak: peak.max(left.peak),
        })
    }

    /// Ranks `from..to`, as `gather` pairs them: whole powers of two first, what is left over last. At any time there
    /// is at most one branch of each size, as on the ranks of one way up.
    fn branch(&self, from: u32, to: u32) -> Result<Branch, Error> {
        let mut stack: Vec<(u32, Branch)> = Vec::new();
        for rank in from..to {
            let mut size = 1;
            let mut branch = self.leaf(rank)?;
            while let Some((_, left)) = stack.pop_if(|(left, _)| *left == size) {
                branch = self.join(left, branch, from == 0 && stack.is_empty())?;
                size *= 2;
            }
            stack.push((size, branch));
        }
        let (_, mut last) = stack.pop().ok_or(Error::NoRanks)?;
        while let Some((_, left)) = stack.pop() {
            last = self.join(left, last, from == 0 && stack.is_empty())?;
        }
        Ok(last)
    }

    fn all(&self, threads: u32) -> Result<Branch, Error> {
        if threads < 2 || self.size < 4 {
            return self.branch(0, self.size);
        }
        // The last pair that meets at rank 0.
        let half = 1 << (self.size - 1).ilog2();
        let (left, right) = std::thread::scope(|scope| {
            let right = scope.spawn(|| self.branch(half, self.size));
            let left = self.branch(0, half);
            (left, right.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        self.join(left?, right?, true)
    }
}

/// A file without a name.
fn scratch() -> io::Result<File> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Relaxed);
    let path = std::env::temp_dir().join(format!("refrain-scale-{}-{number}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// Runs `pattern` for `steps` steps on each of `ranks` ranks.
pub fn simulate(
    pattern: Pattern,
    ranks: u32,
    steps: u32,
    options: &Options<'_>,
) -> Result<Simulation, Error> {
    if let Some(what) = pattern.refuses(ranks) {
        return Err(Error::WrongRanks(what, ranks));
    }
    let mut template = Template::new();
    template.folding = options.folding;
    let job = Job { pattern, size: ranks, steps, template: &template, meter: options.meter };
    let Branch { mut bundle, calls, ranks: in_ranks, merge, path, peak } = job.all(options.threads)?;
    options.meter.restart();
    let start = options.meter.now();
    if matches!(options.folding, Folding::Loops { together: true, .. }) {
        bundle.score()?;
    }
    bundle.canonical()?;
    let meta = Meta {
        refrain_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: vec![pattern.to_string(), steps.to_string()],
        library: "simulated".to_owned(),
        ranks,
        split: true,
        complete: true,
        ..Meta::default()
    };
    let trace = Trace { meta, bundle };
    // As rank 0 does: what is written is not held.
    let mut file = scratch().map_err(Error::Scratch)?;
    refrain_tracefile::write_to(&trace, BufWriter::new(&mut file)).map_err(Error::Scratch)?;
    let write = options.meter.now() - start;
    let peak = peak.max(options.meter.peak());
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map_err(Error::Scratch)?;
    let sections = refrain_tracefile::outline(&bytes).map_err(Error::File)?.sections;
    let report = Report {
        pattern,
        ranks,
        steps,
        calls,
        bytes: bytes.len(),
        sections: sections.into_iter().map(|section| (section.name, section.stored)).collect(),
        symbols: trace.bundle.symbols.len(),
        structures: trace.bundle.structures.len(),
        streams: trace.bundle.streams.len(),
        kinds: trace.bundle.cohorts.len(),
        seconds: Seconds {
            ranks: in_ranks.as_secs_f64(),
            merge: merge.as_secs_f64(),
            path: path.as_secs_f64(),
            write: write.as_secs_f64(),
        },
        peak,
    };
    Ok(Simulation { report, trace, bytes })
}
