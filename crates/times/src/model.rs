//! How likely is a one? Asked for every binary decision that a block's numbers are told by.
//!
//! Every context keeps what it has seen of a decision; mixers weigh what the contexts say. All arithmetic is in integers,
//! so that every machine decodes the same. Every constant here is part of the file format.

use refrain_fold::entropy::range::Coder;

/// What a number is looked up by.
pub const CONTEXTS: usize = 6;
/// The contexts, a constant, and nothing: so many numbers fill vector registers.
const INPUTS: usize = 8;
/// Counters stop slowing down after so many decisions.
const LIMIT: u32 = 255;
/// So many bits of a counter count; the others are a chance.
const COUNT_BITS: u32 = 10;
/// What a new mixer makes of each input, of 2^16.
const START_WEIGHT: i32 = 20000;
/// Decisions that a bucket holds, of three in a row.
const GROUP: u32 = 3;
/// Mixers for each kind of number: by how far into the number a decision is.
const DEPTHS: usize = 32;

/// Of a number so many bits below the highest are decisions.
const MODELLED: u32 = 8;

/// A counter that has seen nothing: even chances.
const EVEN: u32 = 1 << 31;

/// One context's experience with up to three decisions in a row.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
struct Bucket {
    /// Tells contexts that share the bucket apart.
    check: u32,
    /// By the decisions before, as a binary number with a one in front, less one.
    slots: [u32; 7],
}

const EMPTY: Bucket = Bucket { check: 0, slots: [EVEN; 7] };

/// 2^16 / (n + 1.5): how far a counter goes towards what it sees.
const RATES: [u32; LIMIT as usize + 1] = {
    let mut rates = [0; LIMIT as usize + 1];
    let mut n = 0;
    while n < rates.len() {
        rates[n] = (1 << 17) / (2 * n as u32 + 3);
        n += 1;
    }
    rates
};

/// 2^16 / (1 + e^(-i / 16)).
const LOGISTIC: [i32; 130] = {
    let mut table = [0; 130];
    // 2^32 e^(-i / 16).
    let mut power: u64 = 1 << 32;
    let mut i = 0;
    while i < table.len() {
        table[i] = ((1u64 << 48) / ((1 << 32) + power)) as i32;
        power = (power * 4_034_748_020) >> 32;
        i += 1;
    }
    table
};

/// 2^16 / (1 + e^(-x / 256)), by linear interpolation.
#[inline]
fn squash(x: i32) -> i32 {
    let far = x.unsigned_abs().min(2047) as usize;
    let (i, part) = (far >> 4, (far & 15) as i32);
    let y = (LOGISTIC[i] * (16 - part) + LOGISTIC[i + 1] * part) >> 4;
    if x < 0 { 65536 - y } else { y }
}

/// Bits that nothing predicts.
pub fn plain<C: Coder>(coder: &mut C, value: u64, bits: u32) -> u64 {
    let upper = if bits > 32 { coder.plain(value >> 32, bits - 32) << 32 } else { 0 };
    upper | coder.plain(value & 0xffff_ffff, bits.min(32))
}

#[derive(Debug, Clone)]
pub struct Model {
    buckets: Vec<Bucket>,
    shift: u32,
    /// The inverse of [`squash`], of chances of 2^12.
    stretch: Vec<i16>,
    by_depth: Vec<[i32; INPUTS]>,
    by_age: Vec<[i32; INPUTS]>,
    contexts: [u64; CONTEXTS],
    kind: usize,
    depth: usize,
}

#[inline]
pub fn hash(a: u64, b: u64) -> u64 {
    let x = (a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ x >> 32
}

impl Model {
    pub fn new(kinds: usize, calls: u32) -> Model {
        let bits = (calls.max(1).ilog2() + 3).clamp(8, 17);
        let mut stretch = vec![0; 4096];
        let mut x = -2047;
        for (p, entry) in (0..).zip(stretch.iter_mut()) {
            while x < 2047 && squash(x) < p * 16 + 8 {
                x += 1;
            }
            *entry = x as i16;
        }
        Model {
            buckets: vec![EMPTY; 1 << bits],
            shift: 64 - bits,
            stretch,
            by_depth: vec![[START_WEIGHT; INPUTS]; kinds * DEPTHS],
            by_age: vec![[START_WEIGHT; INPUTS]; kinds << CONTEXTS],
            contexts: [0; CONTEXTS],
            kind: 0,
            depth: 0,
        }
    }

    /// Begins a number.
    pub fn start(&mut self, kind: usize, contexts: [u64; CONTEXTS]) {
        (self.kind, self.depth) = (kind, 0);
        for (i, context) in contexts.into_iter().enumerate() {
            self.contexts[i] = hash(context, (kind * CONTEXTS + i) as u64);
        }
    }

    /// The lowest `bits` bits of `value`, highest first; `node` says which bits of the number.
    pub fn tree<C: Coder>(&mut self, coder: &mut C, node: u64, bits: u32, value: u64) -> u64 {
        let mut prefix = 1;
        let mut left = bits;
        while left > 0 {
            let size = left.min(GROUP);
            left -= size;
            prefix = self.group(coder, node << 16 ^ prefix, size, value >> left) | (prefix << size);
        }
        prefix ^ 1 << bits
    }

    /// A number: small ones in few decisions, and of large ones the upper bits; the others are plain.
    pub fn number<C: Coder>(&mut self, coder: &mut C, value: i64) -> i64 {
        match self.natural(coder, 0, value) {
            Some(value) => value,
            None => match self.natural(coder, 1, !value) {
                Some(value) => !value,
                None => plain(coder, value as u64, 64) as i64,
            },
        }
    }

    /// One from 0 to 2^62 - 1. `None`: it is another.
    fn natural<C: Coder>(&mut self, coder: &mut C, node: u64, value: i64) -> Option<i64> {
        let length = if value < 0 { 63 } else { 64 - value.leading_zeros() };
        let length = self.tree(coder, node, 6, length.min(63).into()) as u32;
        if length < 2 || length == 63 {
            return (length != 63).then_some(length.into());
        }
        let (below, value) = (length - 1, value as u64);
        let top = below.min(MODELLED);
        let left = below - top;
        let node = node | u64::from(length) << 1;
        let upper = self.tree(coder, node, top, value >> left & ((1 << top) - 1)) | 1 << top;
        Some((upper << left | plain(coder, value & ((1 << left) - 1), left)) as i64)
    }

    /// Up to three decisions.
    #[inline]
    fn group<C: Coder>(&mut self, coder: &mut C, node: u64, size: u32, value: u64) -> u64 {
        let mut at = [0; CONTEXTS];
        for (at, &context) in at.iter_mut().zip(&self.contexts) {
            let place = hash(context, node).wrapping_mul(0xa24b_aed4_963e_e407);
            *at = (place >> self.shift) as usize;
            let bucket = &mut self.buckets[*at];
            if bucket.check != place as u32 {
                *bucket = Bucket { check: place as u32, ..EMPTY };
            }
        }
        let mut path = 1;
        for step in (0..size).rev() {
            let bit = self.decide(coder, &at, path - 1, value >> step & 1 != 0);
            path = path << 1 | usize::from(bit);
        }
        (path ^ 1 << size) as u64
    }

    #[inline]
    fn decide<C: Coder>(&mut self, coder: &mut C, at: &[usize; CONTEXTS], slot: usize, bit: bool) -> bool {
        let mut inputs = [0i32; INPUTS];
        let mut age = 0;
        for i in 0..CONTEXTS {
            let state = self.buckets[at[i]].slots[slot];
            let n = state & ((1 << COUNT_BITS) - 1);
            inputs[i] = i32::from(self.stretch[(state >> 20) as usize]);
            age |= usize::from(n > 2) << i;
        }
        inputs[CONTEXTS] = 256;
        let sets = [
            &mut self.by_depth[self.kind * DEPTHS + self.depth.min(DEPTHS - 1)],
            &mut self.by_age[self.kind << CONTEXTS | age],
        ];
        let mut mixed = [0; 2];
        for (mixed, weights) in mixed.iter_mut().zip(&sets) {
            let sum: i64 = (0..INPUTS).map(|i| i64::from(weights[i]) * i64::from(inputs[i])).sum();
            *mixed = (sum >> 16).clamp(-2047, 2047) as i32;
        }
        let chance = squash((mixed[0] + mixed[1]) >> 1).clamp(24, 65536 - 24);
        let bit = coder.given(bit, chance as u32);
        self.depth += 1;
        let target = if bit { 65536 } else { 0 };
        for (mixed, weights) in mixed.into_iter().zip(sets) {
            let error = target - squash(mixed);
            for i in 0..INPUTS {
                weights[i] += (inputs[i] * error + (1 << 13)) >> 14;
            }
        }
        for at in at {
            let state = &mut self.buckets[*at].slots[slot];
            let n = *state & ((1 << COUNT_BITS) - 1);
            let p = i64::from(*state >> COUNT_BITS);
            let goal = if bit { (1 << 22) - 1 } else { 0 };
            let p = p + (((goal - p) * i64::from(RATES[n as usize])) >> 16);
            *state = (p as u32) << COUNT_BITS | (n + u32::from(n < LIMIT));
        }
        bit
    }
}
