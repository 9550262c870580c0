//! Kernels whose references are known, recorded on several threads: bytes of the file, nanoseconds a reference.
//!
//!     cargo run --release -p refrain-references --example kernels [SIZE] [rules|loops]

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use refrain_fold::bundle::{Bundle, Sites};
use refrain_references::{Access, Block, Folding, Reference, Thread, check, join};
use refrain_tracefile::{Meta, Trace, write};

fn block(pc: u64, accesses: &[Access]) -> Block {
    let reference =
        |(at, access): (usize, &Access)| Reference { at: 4 * at as u32, access: *access, size: 8 };
    Block { pc, references: accesses.iter().enumerate().map(reference).collect() }
}

/// `c[i] = a[i] + b[i]`, each thread a part of its own.
fn vector_add(recording: &mut Thread, size: u64, thread: u64) {
    let body = recording.symbol(&block(0x1000, &[Access::Load, Access::Load, Access::Store]), 0);
    for i in thread * size..(thread + 1) * size {
        recording.push(body, &[0x10_0000_0000 + 8 * i, 0x20_0000_0000 + 8 * i, 0x30_0000_0000 + 8 * i]);
    }
}

/// Rows of `c = a b`, each thread some of them.
fn multiply(recording: &mut Thread, size: u64, thread: u64) {
    let inner = recording.symbol(&block(0x2000, &[Access::Load, Access::Load]), 0);
    let store = recording.symbol(&block(0x2040, &[Access::Store]), 0);
    let rows = size / 4;
    for i in thread * rows..(thread + 1) * rows {
        for j in 0..size {
            for k in 0..size {
                recording
                    .push(inner, &[0x10_0000_0000 + 8 * (i * size + k), 0x20_0000_0000 + 8 * (k * size + j)]);
            }
            recording.push(store, &[0x30_0000_0000 + 8 * (i * size + j)]);
        }
    }
}

/// The lower half of a matrix.
fn triangle(recording: &mut Thread, size: u64, thread: u64) {
    let inner = recording.symbol(&block(0x3000, &[Access::Load, Access::Update]), 0);
    let outer = recording.symbol(&block(0x3040, &[Access::Store]), 0);
    for i in 0..size {
        for j in 0..i {
            recording
                .push(inner, &[0x10_0000_0000 + 8 * (i * size + j), 0x20_0000_0000 + 8 * j + thread * 4096]);
        }
        recording.push(outer, &[0x30_0000_0000 + 8 * i]);
    }
}

/// A list that is followed from place to place.
fn chase(recording: &mut Thread, size: u64, thread: u64) {
    let body = recording.symbol(&block(0x4000, &[Access::Load]), 0);
    let mut random = fastrand::Rng::with_seed(thread);
    for _ in 0..size * size {
        recording.push(body, &[0x10_0000_0000 + 64 * random.u64(..1 << 20)]);
    }
}

/// Counts what goes aside.
struct Counted(Arc<AtomicU64>);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

type Kernel = fn(&mut Thread, u64, u64);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let size: u64 = words.first().and_then(|word| word.parse().ok()).unwrap_or(128);
    let folding = if words.iter().any(|word| word == "loops") { Folding::Loops } else { Folding::Rules };
    println!(
        "{:12} {:>8} {:>12} {:>10} {:>8} {:>8} {:>8}",
        "kernel", "threads", "references", "bytes", "fold ns", "join ms", "check ns"
    );
    let kernels: [(&str, Kernel, u64); 4] = [
        ("vector add", vector_add, size * size),
        ("multiply", multiply, size),
        ("triangle", triangle, size),
        ("chase", chase, size),
    ];
    for (name, kernel, size) in kernels {
        for threads in [1, 2, 3, 4, 8, 16, 32] {
            let began = Instant::now();
            let mut references = 0;
            let aside = Arc::new(AtomicU64::new(0));
            let record = |thread: u32| -> Bundle {
                let sink = Box::new(Counted(aside.clone()));
                let mut recording = Thread::new(folding, (0, 1), thread).bounded(sink, 64 << 20);
                kernel(&mut recording, size, thread.into());
                references += recording.len();
                recording.bundle(&Sites::default()).expect("a sound recording")
            };
            let bundles: Vec<Bundle> = (0..threads).map(record).collect();
            let folded = began.elapsed();
            let began = Instant::now();
            let bundle = join(bundles).expect("recordings that fit");
            let joined = began.elapsed();
            let began = Instant::now();
            let aside = aside.load(Ordering::Relaxed);
            if aside > 0 {
                let each = |time: std::time::Duration| time.as_nanos() as f64 / references as f64;
                println!("{name:12} {threads:8} {references:12} {aside:10} {:8.1} aside", each(folded));
                continue;
            }
            let checked = check(&bundle, || Ok(None), |_| {}).expect("a bundle that is whole");
            assert_eq!((checked.references, checked.wrong), (references, Vec::new()));
            let reading = began.elapsed();
            let meta = Meta { ranks: 1, complete: true, split: true, ..Meta::default() };
            let bytes = write(&Trace { meta, bundle }).len();
            let each = |time: std::time::Duration| time.as_nanos() as f64 / references as f64;
            println!(
                "{name:12} {threads:8} {references:12} {bytes:10} {:8.1} {:8.1} {:8.1}",
                each(folded),
                joined.as_secs_f64() * 1e3,
                each(reading)
            );
        }
    }
}
