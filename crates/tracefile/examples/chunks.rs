//! A long stream of times through a chunked section, in bounded memory: `chunks [NUMBERS [FILE]]` (default 100000000).
//! Written to a file as a rank would, merged into a trace, read from the middle, cut at random places. Prints bytes a
//! number, numbers a second of processor time beside copying them, and the most memory the process ever had.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::time::Instant;

use refrain_fold::pack::Kind;
use refrain_tracefile::chunks::{Key, Merger, Section, Settings, Writer};
use refrain_tracefile::{Meta, Trace, append, load, write};

const KEY: Key = Key { member: 1, lane: 5 };
const BATCH: usize = 1 << 12;
const CUTS: u64 = 20;

/// Start times of a program that calls in turn four functions of different length, each with noise, and now and then is
/// interrupted. Number N can be had only by going through those before, so a second walk is compared with the file.
struct Times {
    random: fastrand::Rng,
    time: i64,
    count: u64,
}

impl Times {
    fn new() -> Times {
        Times { random: fastrand::Rng::with_seed(1), time: 1_700_000_000_000_000_000, count: 0 }
    }

    fn next(&mut self) -> i64 {
        let usual = [1500, 300, 12_000, 800][self.count as usize % 4];
        // Four draws together are near enough to what clocks show.
        let noise: i64 = (0..4).map(|_| self.random.i64(0..usual / 4)).sum();
        let late = if self.random.i64(0..5000) == 0 { self.random.i64(0..50_000) } else { 0 };
        self.count += 1;
        self.time += usual + noise + late;
        self.time
    }

    fn fill(&mut self, batch: &mut Vec<i64>, count: usize) {
        batch.clear();
        batch.extend((0..count).map(|_| self.next()));
    }
}

/// The most memory this process had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Processor time of this process, in seconds, to a hundredth.
fn seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    (ticks(11) + ticks(12)) as f64 / 100.0
}

/// Makes all times, in batches, and hands them on. Returns what that took.
fn each_batch(count: u64, mut take: impl FnMut(&[i64])) -> f64 {
    let begin = seconds();
    let (mut times, mut batch, mut left) = (Times::new(), Vec::new(), count);
    while left > 0 {
        let now = left.min(BATCH as u64) as usize;
        times.fill(&mut batch, now);
        take(&batch);
        left -= now as u64;
    }
    seconds() - begin
}

fn main() {
    let mut words = std::env::args().skip(1);
    let count: u64 = words.next().map_or(100_000_000, |word| word.parse().expect("a number of numbers"));
    let path: PathBuf =
        words.next().map_or_else(|| std::env::temp_dir().join("refrain-chunks.part"), PathBuf::from);
    let merged = path.with_extension("merged");
    let trace_path = path.with_extension("rfn");
    let tell = |what: &str, seconds: f64| {
        let (each, speed) = (seconds * 1e9 / count as f64, count as f64 / 1e6 / seconds);
        println!("{what:<28} {each:>8.1} ns a number {speed:>9.1} million/s, peak memory {} KiB", peak());
    };
    let at_first = peak();

    // The same numbers only made: what is to be taken off.
    let making = each_batch(count, |batch| {
        std::hint::black_box(batch);
    });
    tell("made, not counted below", making);
    let mut copy = vec![0i64; BATCH];
    let copying = each_batch(count, |batch| {
        copy[..batch.len()].copy_from_slice(batch);
        std::hint::black_box(&mut copy);
    });
    tell("copied", copying - making);

    let settings = Settings::default();
    let mut writer = Writer::new(File::create(&path).expect("a file"), settings);
    let stream = writer.stream(KEY, Kind::TIME);
    let writing = each_batch(count, |batch| writer.push(stream, batch).expect("room on the disk"));
    let begin = seconds();
    drop(writer.finish().expect("room on the disk"));
    tell("packed and written", writing + seconds() - begin - making);
    let bytes = std::fs::metadata(&path).map_or(0, |about| about.len());
    println!(
        "{count} times: {bytes} bytes, {:.4} a number; the writer's budget is {} KiB, the process had {at_first} KiB at first",
        bytes as f64 / count as f64,
        settings.budget >> 10,
    );

    let begin = seconds();
    let mut merger = Merger::new(std::io::BufWriter::new(File::create(&merged).expect("a file")));
    let open = |path: &PathBuf| {
        Section::open(BufReader::new(File::open(path).expect("it is there"))).expect("it opens")
    };
    let name = |key: Key| Some(Key { member: 7, lane: key.lane + 1 });
    merger.add(&mut open(&path), name).expect("it is whole");
    drop(merger.finish().expect("room on the disk"));
    let trace = Trace { meta: Meta { ranks: 1, ..Meta::default() }, bundle: Default::default() };
    let out = std::io::BufWriter::new(File::create(&trace_path).expect("a file"));
    append(&write(&trace), File::open(&merged).expect("it is there"), out).expect("room on the disk");
    tell("merged into a trace", seconds() - begin);

    let loaded = load(File::open(&trace_path).expect("it is there")).expect("it is read");
    let range = loaded.chunks.expect("it has chunks");
    let file = BufReader::new(File::open(&trace_path).expect("it is there"));
    let start = Instant::now();
    let mut section = Section::within(file, range).expect("it opens");
    let key = Key { member: 7, lane: 6 };
    assert_eq!((section.is_whole(), section.len(key)), (true, count));
    let mut some = Vec::new();
    let middle = count / 2;
    section.read(key, middle..(middle + 1000).min(count), &mut some).expect("it is there");
    println!("a thousand from the middle: {:.1} ms, opening included", start.elapsed().as_secs_f64() * 1e3);

    let begin = seconds();
    let (mut times, mut batch, mut there, mut at) = (Times::new(), Vec::new(), Vec::new(), 0);
    while at < count {
        there.clear();
        let read = section.read_on(key, at, &mut there).expect("it is whole");
        times.fill(&mut batch, read);
        assert!(batch == there, "numbers {at}.. are not those written");
        let from = middle.max(at);
        for place in from..(at + read as u64).min(middle + some.len() as u64) {
            assert_eq!(some[(place - middle) as usize], batch[(place - at) as usize], "number {place}");
        }
        at += read as u64;
    }
    tell("read back, all the same", seconds() - begin - making);

    // Longest first, so that one file serves for all.
    let mut random = fastrand::Rng::with_seed(1);
    let mut cuts: Vec<u64> = (0..CUTS).map(|_| random.u64(..bytes)).collect();
    cuts.sort_unstable_by(|a, b| b.cmp(a));
    let whole = open(&path);
    let ends: Vec<(u64, u64)> = whole.ends(KEY).collect();
    for cut in cuts {
        let file = OpenOptions::new().write(true).open(&path).expect("it is there");
        file.set_len(cut).expect("it can be cut");
        let mut left = open(&path);
        let expected =
            ends.iter().take_while(|(end, _)| *end <= cut).last().map_or(0, |(_, numbers)| *numbers);
        assert_eq!(left.len(KEY), expected, "cut at byte {cut}");
        let last: Vec<i64> =
            left.iter(KEY, expected.saturating_sub(5)).map(|number| number.expect("it is whole")).collect();
        assert_eq!(last.len() as u64, expected.min(5));
    }
    println!("cut at {CUTS} random places: every chunk that ended before the cut is there");
    println!("peak memory {} KiB", peak());
    for path in [path, merged, trace_path] {
        let _ = std::fs::remove_file(path);
    }
    std::io::stdout().flush().expect("someone listens");
}
