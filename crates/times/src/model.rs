//! How likely is a one? Asked for every binary decision that a block's numbers are told by.
//!
//! Every context keeps what it has seen of a decision; a mixer weighs what the contexts say. All arithmetic is in integers,
//! so that every machine decodes the same. Every constant here is part of the file format.

use refrain_fold::entropy::range::Coder;

/// What a number is looked up by.
pub const CONTEXTS: usize = 4;
/// The contexts, a constant, and nothing: so many numbers fill a vector register.
const INPUTS: usize = 8;
/// Counters stop slowing down after so many decisions.
const LIMIT: u32 = 60;
/// What a new mixer makes of each input, of 2^13.
const START_WEIGHT: i16 = 2000;
/// No decision is surer than so much of 2^16.
const LEAST: i32 = 24;
/// A context that has seen a decision more often than this knows it well.
const YOUNG: u32 = 8;
/// Mixers for each kind of number: by how far into the number a decision is,
const DEPTHS: usize = 16;
/// and by how many contexts know it well.
const OLD: usize = CONTEXTS + 1;
/// Of a number so many bits below the highest are decisions.
const MODELLED: u32 = 6;
/// Numbers of this length and longer ones tell it in two steps: those of more than a second.
const LONG: u32 = 31;
/// What is said instead of the length of a number that is negative or longer than any time.
const OTHER: u32 = 62;

/// One context's experience with up to three decisions in a row. First what tells apart contexts that share the place;
/// then, by the decisions before as a binary number with a one in front, the chance of a one, of 2^16, above a count.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct Bucket([u32; 8]);

const fn empty(check: u32) -> Bucket {
    let even = 1 << 31;
    Bucket([check, even, even, even, even, even, even, even])
}

/// 2^15 / (n + 1.5): how far a counter goes towards what it sees.
static RATES: [i32; 64] = {
    let mut rates = [0; 64];
    let mut n = 0;
    while n < 64 {
        rates[n] = (1 << 16) / (2 * n as i32 + 3);
        n += 1;
    }
    rates
};

/// 2^16 / (1 + e^(-x / 256)) of x from -2048 to 2047, by linear interpolation between multiples of 16.
static SQUASH: [i32; 4096] = {
    let mut steps = [0; 129];
    // 2^32 e^(-i / 16).
    let mut power: u64 = 1 << 32;
    let mut i = 0;
    while i < steps.len() {
        steps[i] = ((1u64 << 48) / ((1 << 32) + power)) as i32;
        power = (power * 4_034_748_020) >> 32;
        i += 1;
    }
    let mut table = [0; 4096];
    let mut x = 0;
    while x < 2048 {
        let (i, part) = (x >> 4, (x & 15) as i32);
        let y = (steps[i] * (16 - part) + steps[i + 1] * part) >> 4;
        table[2048 + x] = y;
        table[2047 - x] = 65536 - y;
        x += 1;
    }
    table
};

/// The inverse of it, of chances of 2^12: the first x whose chance is at least in the middle.
static STRETCH: [i16; 4096] = {
    let mut table = [0; 4096];
    let (mut x, mut p) = (0, 0);
    while p < 4096 {
        while x < 4095 && SQUASH[x] < p as i32 * 16 + 8 {
            x += 1;
        }
        table[p] = x as i16 - 2048;
        p += 1;
    }
    table
};

#[derive(Debug, Clone)]
pub struct Model {
    buckets: Vec<Bucket>,
    shift: u32,
    mixers: Vec<[i16; INPUTS]>,
    contexts: [u64; CONTEXTS],
    kind: usize,
    depth: usize,
}

/// What a mixer makes of its inputs.
#[inline]
fn dot(weights: &[i16; INPUTS], inputs: &[i16; INPUTS]) -> i32 {
    let sum: i32 = (0..INPUTS).map(|i| i32::from(weights[i]) * i32::from(inputs[i])).sum();
    (sum >> 13).clamp(-2048, 2047)
}

/// Moves weights so that the next answer is nearer; `error` is how far off this one was, of 2^16.
#[inline]
fn train(weights: &mut [i16; INPUTS], inputs: &[i16; INPUTS], error: i32) {
    // So that it fits 16 bits.
    let error = (error >> 2) as i16;
    for i in 0..INPUTS {
        let change = ((i32::from(inputs[i] << 2) * i32::from(error)) >> 16) as i16;
        weights[i] = weights[i].saturating_add((change + 1) >> 1);
    }
}

#[inline]
pub fn hash(a: u64, b: u64) -> u64 {
    let x = (a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ x >> 32
}

/// Bits that nothing predicts.
pub fn direct<C: Coder>(coder: &mut C, value: u64, bits: u32) -> u64 {
    let upper = if bits > 32 { coder.direct(value >> 32, bits - 32) << 32 } else { 0 };
    upper | coder.direct(value & 0xffff_ffff, bits.min(32))
}

impl Model {
    /// For a block of so many calls.
    pub fn new(kinds: usize, calls: u32) -> Model {
        let bits = (calls.max(1).ilog2() + 1).clamp(8, 16);
        Model {
            buckets: vec![empty(0); 1 << bits],
            shift: 64 - bits,
            mixers: vec![[START_WEIGHT; INPUTS]; kinds * DEPTHS * OLD],
            contexts: [0; CONTEXTS],
            kind: 0,
            depth: 0,
        }
    }

    /// Begins a number.
    #[inline]
    pub fn start(&mut self, kind: usize, contexts: [u64; CONTEXTS]) {
        (self.kind, self.depth) = (kind, 0);
        for (i, context) in contexts.into_iter().enumerate() {
            self.contexts[i] = hash(context, (kind * CONTEXTS + i) as u64);
        }
    }

    /// A number: small ones in few decisions, and of large ones the upper bits; the others are plain.
    pub fn number<C: Coder>(&mut self, coder: &mut C, value: i64) -> i64 {
        match self.natural(coder, 0, value) {
            Some(value) => value,
            None => match self.natural(coder, 1, !value) {
                Some(value) => !value,
                None => direct(coder, value as u64, 64) as i64,
            },
        }
    }

    /// One from 0 to 2^61 - 1. `None`: it is another.
    fn natural<C: Coder>(&mut self, coder: &mut C, node: u64, value: i64) -> Option<i64> {
        let length = if value < 0 { OTHER } else { (64 - value.leading_zeros()).min(OTHER) };
        let mut told = self.tree(coder, node, 5, length.min(LONG).into()) as u32;
        if told == LONG {
            told += self.tree(coder, node | 2, 5, length.saturating_sub(LONG).into()) as u32;
        }
        let length = told;
        if length < 2 || length == OTHER {
            return (length != OTHER).then_some(length.into());
        }
        let (below, value) = (length - 1, value as u64);
        let top = below.min(MODELLED);
        let left = below - top;
        let node = node | u64::from(length) << 2;
        let upper = self.tree(coder, node, top, value >> left & ((1 << top) - 1)) | 1 << top;
        Some((upper << left | direct(coder, value & ((1 << left) - 1), left)) as i64)
    }

    /// The lowest `bits` bits of `value`, highest first, three at a time; `node` says which bits of the number.
    pub fn tree<C: Coder>(&mut self, coder: &mut C, node: u64, bits: u32, value: u64) -> u64 {
        let mut prefix = 1;
        let mut left = bits;
        while left > 0 {
            let size = left.min(3);
            left -= size;
            prefix = self.group(coder, node << 16 | prefix, size, value >> left) | prefix << size;
        }
        prefix ^ 1 << bits
    }

    /// Up to three decisions.
    #[inline]
    fn group<C: Coder>(&mut self, coder: &mut C, node: u64, size: u32, value: u64) -> u64 {
        let places = self.contexts.map(|context| hash(context, node).wrapping_mul(0xa24b_aed4_963e_e407));
        let mut buckets = places.map(|place| self.buckets[(place >> self.shift) as usize]);
        for (bucket, place) in buckets.iter_mut().zip(places) {
            if bucket.0[0] != place as u32 {
                *bucket = empty(place as u32);
            }
        }
        let mut path = 1;
        for step in (0..size).rev() {
            let bit = self.decide(coder, &mut buckets, path & 7, value >> step & 1 != 0);
            path = path << 1 | usize::from(bit);
        }
        for (bucket, place) in buckets.into_iter().zip(places) {
            self.buckets[(place >> self.shift) as usize] = bucket;
        }
        (path ^ 1 << size) as u64
    }

    #[inline]
    fn decide<C: Coder>(
        &mut self,
        coder: &mut C,
        buckets: &mut [Bucket; CONTEXTS],
        path: usize,
        bit: bool,
    ) -> bool {
        let mut inputs = [0; INPUTS];
        let mut old = 0;
        for (input, bucket) in inputs.iter_mut().zip(&*buckets) {
            let state = bucket.0[path & 7];
            *input = STRETCH[(state >> 20) as usize];
            old += usize::from(state & 0xffff > YOUNG);
        }
        inputs[CONTEXTS] = 256;
        let weights = &mut self.mixers[(self.kind * DEPTHS + self.depth) * OLD + old];
        let mixed = SQUASH[(dot(weights, &inputs) + 2048) as usize & 4095];
        let bit = coder.given(bit, mixed.clamp(LEAST, 65536 - LEAST) as u32);
        self.depth = (self.depth + 1).min(DEPTHS - 1);
        let target = if bit { 65535 } else { 0 };
        train(weights, &inputs, target - mixed);
        for bucket in buckets {
            let state = &mut bucket.0[path & 7];
            let (p, n) = ((*state >> 16) as i32, *state & 0xffff);
            let p = p + (((target - p) * RATES[n as usize & 63]) >> 15);
            *state = (p as u32) << 16 | (n + u32::from(n < LIMIT));
        }
        bit
    }
}
