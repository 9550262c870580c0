//! Mutants of traces, of their text and of parts, through everything of this crate that reads them. The proxy too.

#[path = "../../../tracefile/tests/mutants/mod.rs"]
mod maker;

use std::ffi::OsStr;
use std::io::Cursor;
use std::path::PathBuf;

use fastrand::Rng;
use refrain_encode::{Folding, Reader, Tape, hash_symbol};
use refrain_fold::bundle::Bundle;
use refrain_fold::pack::{Kind, number};
use refrain_model::time::Time;
use refrain_sites::Binaries;
use refrain_times::{Packer, Span};
use refrain_tracefile::Trace;
use refrain_tracefile::chunks::{Key, Settings, Writer};
use refrain_tracefile::part::{self, Part};
use refrain_tracefile::private::Private;
use refrain_views::diff::{self, Ignore, Report};
use refrain_views::dump::{Format, From, How, Selection, dump, dump_as};
use refrain_views::timed::Times;
use refrain_views::{info, loops, proxy, select, stats, verify, waits, written};

use maker::seal::crc;
use maker::{Bounds, Head, Seeds, begin, change, files, folder, for_a_while};
pub use maker::{Counting, watch};

pub struct Fuzz {
    seeds: Seeds,
    texts: Vec<String>,
    /// Headers with journals, and snapshots without their checksum.
    parts: Vec<Vec<u8>>,
    snapshots: Vec<Vec<u8>>,
    scratch: PathBuf,
    pub bounds: Bounds,
    number: u64,
    /// Mutants that were read, by at least the reader of files.
    pub read: u64,
}

impl Fuzz {
    pub fn new() -> Fuzz {
        let traces = maker::stored();
        let text = |trace: &Trace| {
            let mut text = Vec::new();
            written::write(trace, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        let (seeds, texts) = (Seeds::new(&traces), traces.iter().map(text).collect());
        let of_parts = |is: fn(&str) -> bool| -> Vec<Vec<u8>> {
            let paths = files(&folder("tests/seeds/parts")).into_iter();
            let paths = paths.filter(|path| is(&path.to_string_lossy()));
            paths.map(|path| std::fs::read(path).unwrap()).collect()
        };
        let parts = of_parts(|name| name.ends_with(".part"));
        let snapshots = of_parts(|name| !name.ends_with(".part"));
        let scratch = std::env::temp_dir().join(format!("refrain-fuzz-{}", std::process::id()));
        Private::make(&scratch).unwrap();
        Fuzz { seeds, texts, parts, snapshots, scratch, bounds: Bounds::new(), number: 0, read: 0 }
    }

    /// Everything that reads, on one mutant. `Err` is what went wrong.
    pub fn round(&mut self, number: u64) -> Result<(), String> {
        begin(number);
        self.number = number;
        let mut random = Rng::with_seed(number);
        match random.usize(..16) {
            0..4 => self.text(&mut random),
            4 => self.part(&mut random),
            _ => self.file(&mut random),
        }
    }

    fn command<T>(&mut self, name: &str, run: impl FnOnce() -> T) -> Result<Option<T>, String> {
        self.bounds.command(name, run)
    }

    fn file(&mut self, random: &mut Rng) -> Result<(), String> {
        let (bytes, whole) = self.seeds.mutant(random);
        let whole = whole.to_vec();
        let read = self.command("read", || refrain_tracefile::read(&bytes).ok())?.flatten();
        self.command("info", || refrain_tracefile::outline(&bytes).ok())?;
        let Some(trace) = read else { return Ok(()) };
        self.read += 1;
        self.views(&trace)?;
        self.diff(&trace, &refrain_tracefile::read(&whole).unwrap())?;
        self.diff(&trace, &trace)
    }

    /// One that was changed against what it was.
    fn diff(&mut self, a: &Trace, b: &Trace) -> Result<(), String> {
        let names = (Binaries::new(&a.bundle.sites, &[]), Binaries::new(&b.bundle.sites, &[]));
        for ignore in [Ignore::default(), Ignore { pointers: true, sites: true, polls: true, requests: true }]
        {
            self.command("diff", || {
                let mut enough = for_a_while();
                let found = diff::diff(a, b, ignore, &mut |_| enough());
                let Ok(found) = found else { return };
                let (Ok(rows), Ok(slower)) =
                    (diff::rows((a, &names.0), (b, &names.1)), diff::slower((a, &names.0), (b, &names.1)))
                else {
                    return;
                };
                let report = Report {
                    diff: &found,
                    traces: (a, b),
                    files: ("a", "b"),
                    names: (&names.0, &names.1),
                    rows: Some(&rows),
                    slower: Some(&slower),
                    all: true,
                };
                let _ = diff::write_text(&report, &mut Head::new());
                let _ = diff::write_json(&report, &mut Head::new());
            })?;
        }
        Ok(())
    }

    fn views(&mut self, trace: &Trace) -> Result<(), String> {
        let file = info::File { name: "t.rfn", bytes: 0, sections: &[], ..Default::default() };
        self.command("info", || {
            let _ = info::write_text(trace, &file, &mut Head::new());
            let _ = info::write_json(trace, &file, &mut Head::new());
        })?;
        self.command("stats", || {
            if let Ok(rows) = stats::stats(trace) {
                let _ = stats::write_text(trace, &rows, stats::Per::Both, &mut Head::new());
                let _ = stats::write_json(trace, &rows, stats::Per::Rank, &mut Head::new());
            }
        })?;
        let names = Binaries::new(&trace.bundle.sites, &[]);
        self.command("stats --per site", || {
            if let Ok(rows) = stats::sites(trace, &names) {
                let _ = stats::write_sites_text(trace, &rows, &mut Head::new());
                let _ = stats::write_sites_json(trace, &rows, &mut Head::new());
            }
        })?;
        self.command("stats --per path", || {
            if let Ok(rows) = stats::paths(trace, &names) {
                let _ = stats::write_paths_text(&rows, &mut Head::new());
                let _ = stats::write_paths_json(trace, &rows, &mut Head::new());
            }
        })?;
        let all = Selection::default();
        self.command("dump", || drop(dump(trace, &all, Format::Text, &mut Head::new())))?;
        self.command("dump --format json", || drop(dump(trace, &all, Format::Json, &mut Head::new())))?;
        self.command("dump --stacks", || {
            let from = From { names: &names, stacks: true };
            let how = How { format: Format::Text, from: Some(from), times: None, merged: false };
            let _ = dump_as(trace, &all, &how, &mut Head::new());
        })?;
        let folded = loops::Options { folded: true, all: true, ..loops::Options::default() };
        for options in [loops::Options::default(), folded] {
            self.command("loops", || drop(loops::write_text(trace, &names, &options, &mut Head::new())))?;
            self.command("loops --json", || {
                drop(loops::write_json(trace, &names, &options, &mut Head::new()))
            })?;
        }
        self.command("loops --events", || {
            drop(loops::write_events(trace, &loops::Options::default(), &mut Head::new()))
        })?;
        self.command("loops --text", || drop(written::write(trace, &mut Head::new())))?;
        self.command("verify", || {
            let mut enough = for_a_while();
            verify::verify(trace, &mut |_, _| enough())
        })?;
        self.command("write", || refrain_tracefile::write(trace))?;
        self.proxy(trace)?;
        self.timed(trace)
    }

    /// As a program, also of one that a user would be refused.
    fn proxy(&mut self, trace: &Trace) -> Result<(), String> {
        let calls = info::calls(&trace.bundle);
        // All are gone through for that; of a run that is too long it would take too long to see it.
        if calls < 1 << 18 {
            self.command("proxy: obstacles", || drop(proxy::obstacles(trace)))?;
        }
        let names = Binaries::new(&trace.bundle.sites, &[]);
        for any in [false, true] {
            self.command("proxy", || {
                let options = proxy::Options { any, file: "t.rfn".into() };
                let mut enough = for_a_while();
                let _ = proxy::program(trace, &names, &options, &mut |_| enough());
            })?;
        }
        Ok(())
    }

    /// With times of every call that nobody wrote so, or that are far off, in chunks with right checksums.
    fn timed(&mut self, trace: &Trace) -> Result<(), String> {
        let mut random = Rng::with_seed(self.number ^ 0x7100);
        // One in three: it takes as long as all else together.
        if random.usize(..3) > 0 {
            return Ok(());
        }
        let word = ["exact", "binned", "binned=1.001", "binned=16,MPI_Send=1.001"][random.usize(..4)];
        let mut trace = trace.clone();
        trace.meta.options.retain(|(name, _)| name != "time");
        trace.meta.options.push(("time".into(), word.into()));
        let chunks = self.command("times", || chunks(&trace, &Time::read(word).unwrap(), &mut random))?;
        let Some(chunks) = chunks else { return Ok(()) };
        let range = Some(0..chunks.len() as u64);
        let opened = self.command("times", || Times::open(&trace, Cursor::new(chunks), range))?;
        let Some(Ok(Some(times))) = opened else { return Ok(()) };
        // What goes through all calls does so of a run that is not too long.
        let calls: u64 = trace.bundle.cohorts.iter().fold(0, |sum, cohort| {
            let each = |rank| refrain_encode::calls_of(&trace.bundle, cohort, rank);
            let most = if cohort.is_uniform() { 1 } else { 64 };
            let longest = cohort.ranks.iter().take(most).map(each).max().unwrap_or(0);
            sum.saturating_add(longest.saturating_mul(cohort.ranks.len()))
        });
        let short = calls < 1 << 18;
        let all = Selection::default;
        let between = Selection { between: Some(select::between("1..2").unwrap()), ..all() };
        let between = short.then(|| (between, random.usize(..2) == 0));
        for (which, merged) in [(all(), false), (all(), true)].into_iter().chain(between) {
            self.command("dump with times", || {
                let how = How { format: Format::Json, from: None, times: Some(&times), merged };
                let _ = dump_as(&trace, &which, &how, &mut Head::new());
            })?;
        }
        if short {
            let names = Binaries::new(&trace.bundle.sites, &[]);
            self.command("stats --waits", || {
                if let Ok(waits) = waits::waits(&trace, &times) {
                    let _ = waits::write_text(&waits, &names, &mut Head::new());
                    let _ = waits::write_json(&waits, &names, &mut Head::new());
                }
            })?;
        }
        Ok(())
    }

    /// `import`.
    fn text(&mut self, random: &mut Rng) -> Result<(), String> {
        let mut bytes = self.texts[random.usize(..self.texts.len())].clone().into_bytes();
        for _ in 0..1 + random.usize(..4) {
            let at = random.usize(..bytes.len());
            // Of a text, numbers are what matters.
            match random.usize(..3) {
                0 => bytes[at] = b"0123456789 x:-|r\n"[random.usize(..17)],
                1 => {
                    let digits = format!("{}", random.u64(..) >> random.usize(..64));
                    bytes.splice(at..at, digits.into_bytes());
                }
                _ => change(&mut bytes, at, random),
            }
        }
        let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
        let read = self.command("import", || written::read(&text).ok())?.flatten();
        let Some(trace) = read else { return Ok(()) };
        let saved = self.command("import", || refrain_tracefile::write(&trace))?.unwrap_or_default();
        let read = self.command("read", || refrain_tracefile::read(&saved).ok())?.flatten();
        let Some(trace) = read else { return Ok(()) };
        self.read += 1;
        self.views(&trace)
    }

    /// `recover`.
    fn part(&mut self, random: &mut Rng) -> Result<(), String> {
        if self.parts.is_empty() {
            return Ok(());
        }
        let mut part = self.parts[random.usize(..self.parts.len())].clone();
        let mut snapshot = self.snapshots[random.usize(..self.snapshots.len())].clone();
        for _ in 0..1 + random.usize(..4) {
            let bytes = if random.usize(..2) == 0 { &mut part } else { &mut snapshot };
            // A header is mostly zeros.
            let (from, to) = match random.usize(..4) {
                0 => (0, 256),
                _ => (
                    bytes.len().saturating_sub(if bytes.len() > part::HEADER { 300 } else { 1 << 20 }),
                    bytes.len(),
                ),
            };
            let at = (from + random.usize(..to - from)).min(bytes.len() - 1);
            change(bytes, at, random);
        }
        let sum = crc(&snapshot[4..]);
        snapshot[..4].copy_from_slice(&sum);
        let name = OsStr::new("a.part");
        let put = |name: &OsStr, bytes: &[u8]| std::fs::write(self.scratch.join(name), bytes).unwrap();
        put(name, &part);
        (1..4).for_each(|number| put(&part::snapshot_name(name, number), &snapshot));
        let directory = Private::open_to_read(&self.scratch).unwrap();
        let read = self.command("recover: a part", || Part::read(&directory, name).ok())?.flatten();
        let Some(part) = read else { return Ok(()) };
        self.read += 1;
        let bundle = self.command("recover", || {
            let folding = part.text("option fold").and_then(|fold| fold.parse::<Folding>().ok());
            let folding = folding.unwrap_or_default();
            let mut tape = match &part.snapshot {
                Some(snapshot) => Tape::resume(snapshot, folding).ok()?,
                None => Tape::new(folding),
            };
            let _ = refrain_encode::replay(&part.journal, &mut tape);
            Tape::bundle((0, 1), [(0, &mut tape)], |ticks| ticks).ok()
        })?;
        let Some(Some(bundle)) = bundle else { return Ok(()) };
        self.whole(bundle)
    }

    fn whole(&mut self, bundle: Bundle) -> Result<(), String> {
        let mut trace = Trace { bundle, ..Trace::default() };
        trace.meta.ranks = 1;
        self.command("canonical", || drop(trace.bundle.canonical()))?;
        let saved = self.command("write", || refrain_tracefile::write(&trace))?.unwrap_or_default();
        self.command("read", || refrain_tracefile::read(&saved).map(drop))?;
        self.views(&trace)
    }
}

impl Drop for Fuzz {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

/// Times of the first calls of the first threads: whatever bytes, or numbers from one end to the other.
fn chunks(trace: &Trace, time: &Time, random: &mut Rng) -> Vec<u8> {
    let reader = Reader::new(&trace.bundle);
    let mut writer = Writer::new(Cursor::new(Vec::new()), Settings::default());
    for rank in 0..trace.meta.ranks.min(40) {
        for thread in reader.threads(rank).into_iter().take(4) {
            let (Some(member), Ok(mut calls)) =
                (trace.bundle.member(rank, thread), reader.calls(rank, thread))
            else {
                continue;
            };
            let mut packer = Packer::new(time).unwrap();
            let each = packer.numbers();
            let mut block = None;
            let mut at = random.u64(..) as i64 >> 16;
            for _ in 0..1 + random.usize(..300) {
                let Some(Ok(call)) = calls.next() else { break };
                let symbol = calls.symbol().map(|symbol| &trace.bundle.symbols[symbol as usize]);
                let signature = symbol.map_or(0, |symbol| hash_symbol(&symbol.bytes, symbol.site));
                let mut far = || random.u64(..) as i64 >> random.usize(..64);
                at = at.wrapping_add(far());
                let span = Span { start: at, end: at.wrapping_add(far()) };
                block = packer.push(signature, call.function.id, span, random.u64(..)).or(block);
            }
            let Some(mut block) = packer.finish().or(block) else { continue };
            if random.usize(..2) == 0 {
                for _ in 0..1 + random.usize(..4) {
                    let at = random.usize(..block.bytes.len());
                    change(&mut block.bytes, at, random);
                }
                if random.usize(..4) == 0 {
                    block.calls += random.usize(..40_000) as u32;
                }
            }
            let key = Key { member: member.into(), lane: 0 };
            let numbers = (u64::from(each) * block.first, each * block.calls);
            let _ = writer.put_packed((key, Kind::TIME), number::SPANS, numbers, &block.bytes);
        }
    }
    writer.finish().unwrap().into_inner()
}
