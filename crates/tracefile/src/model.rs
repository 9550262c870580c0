//! The probability model behind the packed form: for every binary decision of every token, how likely is a one?
//!
//! Eleven contexts each look their own counter up in one hashed table; two small mixers weigh the counters' opinions
//! in the logistic domain, and their outputs are averaged. All arithmetic is in integers, so that every machine
//! decodes the same. Every constant here is part of the file format.

use crate::token::{FIELDS, Field};

const CONTEXTS: usize = 11;
/// Contexts, a constant, and nothing: so many 16-bit numbers fill vector registers.
const INPUTS: usize = 16;
/// Counters stop slowing down after this many observations.
const LIMIT: u16 = 60;

/// What a new mixer believes of each input, of 8192.
const START_WEIGHT: i16 = 1250;

/// 65536 / (1 + e^-x) for x = -8, -7.5, ... 8.
const LOGISTIC: [u16; 33] = [
    22, 36, 60, 98, 162, 267, 439, 720, 1179, 1921, 3108, 4971, 7812, 11955, 17625, 24743, 32768, 40793,
    47911, 53581, 57724, 60565, 62428, 63615, 64357, 64816, 65097, 65269, 65374, 65438, 65476, 65500, 65514,
];

/// One context's experience with one decision.
#[derive(Clone, Copy)]
struct Slot {
    /// Probability of a one, of 65536.
    p: u16,
    /// Observations, up to `LIMIT`.
    n: u16,
}

/// One context's experience with up to three decisions in a row: half a cache line, fetched once for all of them.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Bucket {
    /// Tells contexts that share the bucket apart.
    check: u32,
    /// By the decisions before, as a binary number with a one in front, less one.
    slots: [Slot; 7],
}

impl Bucket {
    const fn new(check: u32) -> Bucket {
        Bucket { check, slots: [Slot { p: 1 << 15, n: 0 }; 7] }
    }
}

/// 1 / (n + 1.5), of 32768: how far a counter goes towards what it observes.
const RATES: [i32; LIMIT as usize + 1] = {
    let mut rates = [0; LIMIT as usize + 1];
    let mut n = 0;
    while n < rates.len() {
        rates[n] = (65536 / (2 * n + 3)) as i32;
        n += 1;
    }
    rates
};

pub struct Model {
    buckets: Vec<Bucket>,
    shift: u32,
    stretch: Box<[i16; 4096]>,
    by_field: Vec<[i16; INPUTS]>,
    by_age: Vec<[i16; INPUTS]>,
    /// The last three values of each field, newest first.
    of_field: [[u64; 3]; FIELDS],
    /// The last two tokens of any field, hashed.
    of_all: [u64; 2],
    // What `start`, `open` and `predict` leave for those after.
    contexts: [u64; CONTEXTS],
    field: usize,
    at: [usize; CONTEXTS],
    slot: usize,
    inputs: [i16; INPUTS],
    age: usize,
    mixed: [i32; 2],
}

fn hash(a: u64, b: u64) -> u64 {
    let x = (a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ x >> 32
}

/// 65536 / (1 + e^(-x / 256)), by linear interpolation.
fn squash(x: i32) -> i32 {
    let x = x.clamp(-2047, 2047) + 2048;
    let (i, part) = ((x >> 7) as usize, x & 127);
    (i32::from(LOGISTIC[i]) * (128 - part) + i32::from(LOGISTIC[i + 1]) * part + 64) >> 7
}

/// What a mixer makes of its inputs. At most 12 * 2^15 * 2^11.
fn dot(weights: &[i16; INPUTS], inputs: &[i16; INPUTS]) -> i32 {
    let sum: i32 = (0..INPUTS).map(|i| i32::from(weights[i]) * i32::from(inputs[i])).sum();
    (sum >> 13).clamp(-2047, 2047)
}

/// Moves weights so that the next answer is nearer; `error` is how far off this one was, of 24576.
fn train(weights: &mut [i16; INPUTS], inputs: &[i16; INPUTS], error: i16) {
    for i in 0..INPUTS {
        let change = ((i32::from(inputs[i] << 2) * i32::from(error)) >> 16) as i16;
        weights[i] = weights[i].saturating_add((change + 1) >> 1);
    }
}

impl Model {
    /// `size` is the number of bytes the tokens would take unpacked; it decides the size of the table.
    pub fn new(size: usize) -> Model {
        let bits = (size.max(1).ilog2() + 3).clamp(14, 20);
        // The inverse of `squash`, for probabilities of 4096.
        let mut stretch = Box::new([0; 4096]);
        let mut x = -2047;
        for (p, entry) in (0..).zip(stretch.iter_mut()) {
            while x < 2047 && squash(x) < p * 16 + 8 {
                x += 1;
            }
            *entry = x as i16;
        }
        let mut inputs = [0; INPUTS];
        inputs[CONTEXTS] = 256;
        Model {
            buckets: vec![Bucket::new(0); 1 << bits],
            shift: 64 - bits,
            stretch,
            by_field: vec![[START_WEIGHT; INPUTS]; FIELDS],
            by_age: vec![[START_WEIGHT; INPUTS]; 1 << CONTEXTS.ilog2() << 1],
            of_field: [[0; 3]; FIELDS],
            of_all: [0; 2],
            contexts: [0; CONTEXTS],
            field: 0,
            at: [0; CONTEXTS],
            slot: 0,
            inputs,
            age: 0,
            mixed: [0; 2],
        }
    }

    /// Begins a token.
    pub fn start(&mut self, field: Field, hint: u64) {
        self.field = field as usize;
        let [h1, h2, h3] = self.of_field[self.field];
        let [g1, g2] = self.of_all;
        let (hint, other) = (hint & 0xffff_ffff, hint >> 32);
        let base = hash(0, self.field as u64);
        let one = hash(hash(base, 1), h1);
        let two = hash(hash(one, 2), h2);
        let near = hash(hash(base, 4), g1);
        let hinted = hash(hash(base, 6), hint);
        self.contexts = [
            base,
            one,
            two,
            hash(hash(two, 3), h3),
            near,
            hash(hash(near, 5), g2),
            hinted,
            hash(hash(hinted, 7), h1),
            hash(hash(hinted, 8), g1),
            hash(hash(base, 9), other),
            hash(hash(hinted, 10), other),
        ];
    }

    /// Ends a token.
    pub fn finish(&mut self, value: u64) {
        let [h1, h2, _] = self.of_field[self.field];
        self.of_field[self.field] = [value, h1, h2];
        self.of_all = [hash(self.field as u64 + 1, value), self.of_all[0]];
    }

    /// Begins up to three decisions in a row; `node` says which of the token's.
    pub fn open(&mut self, node: u64) {
        let mut checks = [0; CONTEXTS];
        let mut differ = false;
        for ((at, check), &context) in self.at.iter_mut().zip(&mut checks).zip(&self.contexts) {
            let place = hash(context, node).wrapping_mul(0xa24b_aed4_963e_e407);
            (*at, *check) = ((place >> self.shift) as usize, place as u32);
            // No branch yet, so that the buckets are fetched side by side.
            differ |= self.buckets[*at].check != *check;
        }
        if differ {
            for (at, check) in self.at.into_iter().zip(checks) {
                if self.buckets[at].check != check {
                    self.buckets[at] = Bucket::new(check);
                }
            }
        }
    }

    /// The probability that the next decision is a one, of 65536. `path` is the decisions since `open`, as a binary
    /// number with a one in front.
    pub fn predict(&mut self, path: usize) -> u32 {
        self.slot = path - 1;
        let mut known = 0;
        for (input, &at) in self.inputs.iter_mut().zip(&self.at) {
            let slot = self.buckets[at].slots[self.slot];
            *input = self.stretch[usize::from(slot.p >> 4)];
            known += usize::from(slot.n > 0);
        }
        self.age = known;
        self.mixed = [dot(&self.by_field[self.field], &self.inputs), dot(&self.by_age[known], &self.inputs)];
        let p = squash((self.mixed[0] + self.mixed[1]) >> 1);
        p.clamp(16, 65520) as u32
    }

    /// Learns what the decision was.
    pub fn update(&mut self, bit: bool) {
        let target = if bit { 65535 } else { 0 };
        let both = [&mut self.by_field[self.field], &mut self.by_age[self.age]];
        for (weights, mixed) in both.into_iter().zip(self.mixed) {
            // At most 24576, so that it fits 16 bits.
            let error = ((target - squash(mixed)) * 3 / 8) as i16;
            train(weights, &self.inputs, error);
        }
        for at in self.at {
            let slot = &mut self.buckets[at].slots[self.slot];
            let p = i32::from(slot.p);
            slot.p = (p + (((target - p) * RATES[usize::from(slot.n)]) >> 15)) as u16;
            slot.n += u16::from(slot.n < LIMIT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::hash;
    use crate::token::pair;

    /// What FORMAT.md says of the coder's own hashes.
    #[test]
    fn the_vectors_of_the_format() {
        let document = include_str!("../../../FORMAT.md").split_once("### Test vectors").unwrap().1;
        let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let mut done = 0;
        for line in document.lines().filter_map(|line| line.strip_prefix("    ")) {
            let Some((call, result)) = line.split_once(" = ") else { continue };
            let found = match call.split(' ').collect::<Vec<_>>()[..] {
                ["pair", a, b] => pair(a.parse().unwrap(), b.parse().unwrap()).into(),
                ["hash", a, b] => hash(hex(a), hex(b)),
                _ => continue,
            };
            assert_eq!(found, hex(result), "{line}");
            done += 1;
        }
        assert!(done >= 6, "{done}");
    }
}
