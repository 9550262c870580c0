//! What the tests of this crate share.

/// A xorshift generator: the same numbers on every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }
}

/// Places at which a sequence of this length is looked into.
pub fn probes(len: usize) -> [u64; 7] {
    [0, 1, len / 3, len / 2 + 1, len.saturating_sub(1), len, len + 7].map(|place| place as u64)
}

thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Called by what takes a number or a run of them in hand.
pub fn step() {
    STEPS.set(STEPS.get() + 1);
}

/// Steps that were taken in something.
pub fn steps(work: impl FnOnce()) -> u64 {
    let before = STEPS.get();
    work();
    STEPS.get() - before
}

/// A program-like sequence: nested loops over few symbols, with now and then a disturbance.
pub fn loops(random: &mut Random, symbols: u64, limit: usize) -> Vec<u32> {
    let mut out = Vec::new();
    while out.len() < limit {
        let block = nest(random, symbols, 3);
        for _ in 0..1 + random.below(4) {
            out.extend(&block);
            if random.below(8) == 0 {
                out.push(random.below(symbols) as u32);
            }
        }
    }
    out.truncate(limit);
    out
}

fn nest(random: &mut Random, symbols: u64, depth: u32) -> Vec<u32> {
    let mut body = Vec::new();
    for _ in 0..1 + random.below(4) {
        if depth > 0 && random.below(2) == 0 {
            body.extend(nest(random, symbols, depth - 1));
        } else {
            body.push(random.below(symbols) as u32);
        }
    }
    body.repeat(1 + random.below(6) as usize)
}
