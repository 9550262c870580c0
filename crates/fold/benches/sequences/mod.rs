//! Sequences from regular to random, to be folded: what `benches/push.rs` times and `examples/folded.rs` weighs.

use std::fmt;
use std::sync::LazyLock;

pub const EVENTS: u64 = 1_000_000;

/// The symbol or number at each place.
#[derive(Clone, Copy)]
pub struct Sequence<T> {
    pub name: &'static str,
    pub at: fn(u64) -> T,
}

impl<T> Sequence<T> {
    pub fn all(&self) -> Vec<T> {
        (0..EVENTS).map(self.at).collect()
    }
}

impl<T> fmt::Display for Sequence<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name)
    }
}

static NOISE: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut seed = 88172645463325252u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    (0..EVENTS).map(|_| random()).collect()
});

static WALK: LazyLock<Vec<i64>> = LazyLock::new(|| {
    let step = |at: &mut i64, i: u64| {
        *at += (noise(i) % 17) as i64 - 8;
        Some(*at)
    };
    (0..EVENTS).scan(0, step).collect()
});

fn noise(i: u64) -> u64 {
    NOISE[i as usize]
}

/// How often the golden ratio's square fits below `n`; its differences spell a word in which squares end everywhere.
fn golden(n: u64) -> u64 {
    (n as f64 * 0.381_966_011_250_105_1) as u64
}

const fn order(name: &'static str, at: fn(u64) -> u64) -> Sequence<u64> {
    Sequence { name, at }
}

const fn numbers(name: &'static str, at: fn(u64) -> i64) -> Sequence<i64> {
    Sequence { name, at }
}

/// Orders of symbols.
pub const ORDERS: [Sequence<u64>; 19] = [
    order("constant", |_| 7),
    order("loop of 20", |i| i % 20),
    order("nest of 2: (20)x10 1", |i| if i % 201 == 200 { 99 } else { i % 201 % 20 }),
    order("nest of 3: ((20)x10 1)x10 1", |i| match i % 2011 {
        2010 => 98,
        j if j % 201 == 200 => 99,
        j => j % 201 % 20,
    }),
    order("nest of 3, short: ((2)x3 1)x3 1", |i| match i % 22 {
        21 => 98,
        j if j % 7 == 6 => 99,
        j => j % 7 % 2,
    }),
    order("loop of 1000 x 100, in a loop", |i| if i % 100_001 == 0 { 2000 } else { i % 100_001 % 1000 }),
    order("loop of 20, one in 100 disturbed", |i| if noise(i).is_multiple_of(100) { 30 } else { i % 20 }),
    order("random trips: (a b)x1-9 c", |i| {
        let (block, at) = (i / 19, i % 19);
        if at < 2 * (1 + (noise(block) >> 11) % 9) { at % 2 } else { 7 + at.min(1) }
    }),
    order("conditionals: 1 of 10 in each", |i| if i % 3 == 1 { 10 + (noise(i) >> 11) % 10 } else { i % 3 }),
    order("random of 2", |i| noise(i) % 2),
    order("random of 3", |i| (noise(i) >> 11) % 3),
    order("random of 400", |i| (noise(i) >> 11) % 400),
    order("random of 1000", |i| noise(i) % 1000),
    order("400 shuffled each time", |i| {
        // A different step through the residues each time, all of them coprime to 400.
        let round = noise(i / 400) >> 11;
        ((i % 400) * (2 * (round % 200) + 1 - u64::from(round % 5 == 2) * 2) + round / 400) % 400
    }),
    order("all different", |i| i),
    order("drifting period", |i| (i * i / 5000) % 50),
    order("growing: a b, a b c, a b c d ...", |i| {
        let block = (((8 * i + 1) as f64).sqrt() as u64 - 1) / 2;
        i - block * (block + 1) / 2
    }),
    order("ruler: 0 1 0 2 0 1 0 3 ...", |i| (i + 1).trailing_zeros().into()),
    order("Fibonacci word", |i| golden(i + 2) - golden(i + 1)),
];

/// Numbers for a stream.
pub const NUMBERS: [Sequence<i64>; 13] = [
    numbers("constant", |_| 7),
    numbers("stride", |i| 8 * i as i64),
    numbers("period of 4", |i| [1, 5, 2, 9][i as usize % 4]),
    numbers("period of 4, one in 100 disturbed", |i| {
        if noise(i).is_multiple_of(100) { 3 } else { [1, 5, 2, 9][i as usize % 4] }
    }),
    numbers("random of 1000", |i| (noise(i) % 1000) as i64),
    numbers("random", |i| noise(i) as i64),
    numbers("random of 2", |i| (noise(i) % 2) as i64),
    numbers("geometric", |i| noise(i).trailing_zeros().into()),
    numbers("walk of -8..8", |i| WALK[i as usize]),
    numbers("four odd numbers", |i| [7, 1 << 40, -3, 9_999_999][noise(i) as usize % 4]),
    numbers("mostly one number", |i| if noise(i).is_multiple_of(10) { noise(i) as i64 >> 47 } else { 1024 }),
    numbers("list of 5000, over and over", |i| noise(i % 5000) as i64 >> 44),
    numbers("nest of 10 x 20 x 30 x ...", |i| {
        (i % 10 + i / 10 % 20 * 100 + i / 200 % 30 * 5000 + i / 6000 * 1_000_000) as i64
    }),
];
