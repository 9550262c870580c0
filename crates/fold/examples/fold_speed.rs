//! Nanoseconds a push takes, for sequences from regular to random.
//!
//!     cargo run --release -p refrain-fold --example fold_speed

use fastrand::Rng;
use refrain_fold::stream::Block;
use refrain_fold::{grammar, stream};
use std::time::{Duration, Instant};

const PUSHES: u64 = 1_000_000;

fn main() {
    let mut random = Rng::with_seed(1);
    let noise: Vec<u64> = (0..PUSHES).map(|_| random.u64(..)).collect();
    let noise = |i: u64| noise[i as usize];

    structure("constant", |_| 7);
    structure("loop of 20", |i| i % 20);
    structure("loop of 20 x 10, in a loop", |i| if i % 201 == 200 { 99 } else { i % 201 % 20 });
    structure("loop of 1000 x 100, in a loop", |i| if i % 100_001 == 0 { 2000 } else { i % 100_001 % 1000 });
    structure("loop of 20, one in 100 disturbed", |i| if noise(i) % 100 == 0 { 30 } else { i % 20 });
    structure("random over 2", |i| noise(i) % 2);
    structure("random over 1000", |i| noise(i) % 1000);
    structure("all different", |i| i);
    structure("ruler: 0 1 0 2 0 1 0 3 ...", |i| (i + 1).trailing_zeros().into());
    structure("Fibonacci word", |i| golden(i + 2) - golden(i + 1));
    numbers("constant", |_| 7);
    numbers("stride", |i| 8 * i as i64);
    numbers("period of 4", |i| [1, 5, 2, 9][i as usize % 4]);
    numbers("period of 4, one in 100 disturbed", |i| {
        if noise(i) % 100 == 0 { 3 } else { [1, 5, 2, 9][i as usize % 4] }
    });
    numbers("random over 1000", |i| (noise(i) % 1000) as i64);
    numbers("random", |i| noise(i) as i64);
    numbers("random over 2", |i| (noise(i) % 2) as i64);
    numbers("geometric", |i| noise(i).trailing_zeros().into());
    let mut walk: Vec<i64> = Vec::new();
    for i in 0..PUSHES {
        walk.push(walk.last().unwrap_or(&0) + (noise(i) % 17) as i64 - 8);
    }
    numbers("walk of -8..8", |i| walk[i as usize]);
    numbers("four odd numbers", |i| [7, 1 << 40, -3, 9_999_999][noise(i) as usize % 4]);
    numbers("mostly one number", |i| if noise(i) % 10 == 0 { noise(i) as i64 >> 47 } else { 1024 });
    numbers("list of 5000, over and over", |i| noise(i % 5000) as i64 >> 44);
    numbers("nest of 10 x 20 x 30 x ...", |i| {
        (i % 10 + i / 10 % 20 * 100 + i / 200 % 30 * 5000 + i / 6000 * 1_000_000) as i64
    });
}

/// How often the golden ratio's square fits below `n`; its differences spell a word in which squares end everywhere.
fn golden(n: u64) -> u64 {
    (n as f64 * 0.381_966_011_250_105_1) as u64
}

fn structure(name: &str, symbol: impl Fn(u64) -> u64) {
    let symbols: Vec<u32> = (0..PUSHES).map(|i| symbol(i) as u32).collect();
    report("structure", name, || {
        let mut folder = grammar::Folder::new();
        let begin = Instant::now();
        symbols.iter().for_each(|&symbol| folder.push(symbol));
        (begin.elapsed(), folder.finish().items())
    });
}

fn numbers(name: &str, value: impl Fn(u64) -> i64) {
    let values: Vec<i64> = (0..PUSHES).map(value).collect();
    let mut folder = stream::Folder::new();
    report("stream", name, || {
        let mut folder = stream::Folder::new();
        let begin = Instant::now();
        values.iter().for_each(|&value| folder.push(value));
        (begin.elapsed(), folder.finish().shape.items())
    });
    values.iter().for_each(|&value| folder.push(value));
    let begin = Instant::now();
    let stream = folder.finish();
    let finish = begin.elapsed();
    let begin = Instant::now();
    assert!(stream.iter().take(values.len()).eq(values.iter().copied()));
    let read = begin.elapsed().as_nanos() as f64 / PUSHES as f64;
    let packed: usize = stream
        .blocks
        .iter()
        .map(|block| match block {
            Block::Packed { bytes, .. } => bytes.len(),
            Block::Running { steps, .. } => 4 * steps.shape.items(),
            Block::Rows { rows, .. } => 4 * (rows.starts.shape.items() + rows.counts.shape.items()),
        })
        .sum();
    let bits = packed as f64 * 8.0 / PUSHES as f64;
    println!("{:46} finish {finish:9.1?}  read {read:6.1} ns  blocks {bits:7.3} bits a number", "");
}

/// The best of a few, as other work on the machine only ever adds.
fn report(kind: &str, name: &str, run: impl Fn() -> (Duration, usize)) {
    let Some((time, items)) = (0..5).map(|_| run()).min() else { return };
    let each = time.as_nanos() as f64 / PUSHES as f64;
    println!("{kind:9}  {name:34} {each:8.1} ns/push  {items:8} items");
}
