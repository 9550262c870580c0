//! How long a simulator waits for its trace, and how long it takes in all: `reading TRACE...`, the same trace in several
//! forms. Nanoseconds of processor time for a reference, the kernel's included, best of seven, and how many times faster than
//! the first file. All must come to the same misses; the last line on standard error has them: of fetches, of data, of the
//! level behind.

use std::fs::File;

use refrain_addresses::simulate::{Config, Counts, Geometry, Hierarchy, Level};
use refrain_addresses::{Batch, open};

const ROUNDS: usize = 7;

fn main() {
    let files: Vec<String> = std::env::args().skip(1).collect();
    assert!(!files.is_empty(), "reading TRACE...");
    let mut least = vec![(f64::INFINITY, f64::INFINITY); files.len()];
    let mut outcome: Option<Outcome> = None;
    // In turns, so that what else the machine does meets all of them.
    for _ in 0..ROUNDS {
        for (name, (read, simulate)) in files.iter().zip(&mut least) {
            let begin = seconds();
            let mut sum = 0u64;
            each(name, |batch| sum = sum.wrapping_add(batch.addresses[0]));
            std::hint::black_box(sum);
            *read = read.min(seconds() - begin);
            let begin = seconds();
            let mut caches = caches();
            each(name, |batch| caches.add(batch));
            *simulate = simulate.min(seconds() - begin);
            assert_eq!(outcome.get_or_insert_with(|| of(&caches)), &of(&caches), "{name} is another trace");
        }
    }
    let (references, misses) = outcome.expect("there were rounds");
    // Lines that were sent down and found no place are no misses of a reference.
    let misses: Vec<String> =
        misses.iter().map(|by| by.misses[..3].iter().sum::<u64>().to_string()).collect();
    eprintln!("{}", misses.join(" "));
    println!(
        "{:<12} {:>12} {:>9} {:>8} {:>13} {:>8}",
        "trace", "bytes", "read, ns", "faster", "simulate, ns", "faster"
    );
    for (name, (read, simulate)) in files.iter().zip(&least) {
        let file = name.rsplit('/').next().unwrap_or(name);
        println!(
            "{:<12} {:>12} {:>9.2} {:>7.2}x {:>13.2} {:>7.2}x",
            file.split_once('.').map_or(file, |(_, extension)| extension),
            std::fs::metadata(name).expect("it was read").len(),
            1e9 * read / references as f64,
            least[0].0 / read,
            1e9 * simulate / references as f64,
            least[0].1 / simulate
        );
    }
}

fn each(name: &str, mut with: impl FnMut(&Batch)) {
    let file = File::open(name).expect("the trace opens");
    let mut reader = open(Box::new(file), name, None).expect("the trace is one");
    let mut batch = Batch::new();
    while reader.read(&mut batch).expect("the trace is whole") {
        with(&batch);
    }
}

/// Split first level and one behind it, as the machines of the day have.
fn caches() -> Hierarchy {
    let config = |size, ways| Config::new(Geometry::new(size, ways, 64).expect("there is such a cache"));
    let first = Level::Split { instructions: Some(config(32 << 10, 8)), data: Some(config(32 << 10, 8)) };
    Hierarchy::new(first, &[config(1 << 20, 16)], 0).expect("lines are alike")
}

/// References, and what each cache has counted.
type Outcome = (u64, Vec<Counts>);

fn of(caches: &Hierarchy) -> Outcome {
    (caches.references(), caches.caches().iter().map(|(_, cache)| cache.counts().clone()).collect())
}

/// Of this thread, on a processor: others may be busy too.
fn seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to `time`, which outlives the call.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "threads have clocks");
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
