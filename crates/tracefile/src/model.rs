//! The probability model behind the packed form: for every binary decision of every token, how likely is a one?
//!
//! Eleven contexts each look their own counter up in one hashed table; two small mixers weigh the counters' opinions
//! in the logistic domain, and their outputs are averaged. All arithmetic is in integers, so that every machine
//! decodes the same. Every constant here is part of the file format.

use crate::token::{FIELDS, Field};

const CONTEXTS: usize = 11;
/// Contexts and a constant.
const INPUTS: usize = CONTEXTS + 1;
/// Counters stop slowing down after this many observations.
const LIMIT: u8 = 60;

/// What a new mixer believes of each input, and how fast it changes its mind; weights are of 65536.
const START_WEIGHT: i32 = 10000;
const LEARNING: i32 = 24;
/// Weights stay within 16 either way, so that no input, however odd, can make them overflow.
const MOST_WEIGHT: i32 = 16 << 16;

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
    n: u8,
    /// Tells most contexts that share the slot apart.
    check: u8,
}

pub struct Model {
    slots: Vec<Slot>,
    shift: u32,
    stretch: Vec<i16>,
    by_field: Vec<[i32; INPUTS]>,
    by_age: Vec<[i32; INPUTS]>,
    /// The last three values of each field, newest first.
    of_field: [[u64; 3]; FIELDS],
    /// The last two tokens of any field, hashed.
    of_all: [u64; 2],
    // What `start` and `predict` leave for `update`.
    contexts: [u64; CONTEXTS],
    field: usize,
    at: [usize; CONTEXTS],
    inputs: [i32; INPUTS],
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

impl Model {
    /// `size` is the number of bytes the tokens would take unpacked; it decides the size of the table.
    pub fn new(size: usize) -> Model {
        let bits = (size.max(1).ilog2() + 5).clamp(16, 22);
        // The inverse of `squash`, for probabilities of 4096.
        let mut stretch = Vec::with_capacity(4096);
        let mut x = -2047;
        for p in 0..4096 {
            while x < 2047 && squash(x) < p * 16 + 8 {
                x += 1;
            }
            stretch.push(x as i16);
        }
        Model {
            slots: vec![Slot { p: 1 << 15, n: 0, check: 0 }; 1 << bits],
            shift: 64 - bits,
            stretch,
            by_field: vec![[START_WEIGHT; INPUTS]; FIELDS],
            by_age: vec![[START_WEIGHT; INPUTS]; 1 << CONTEXTS.ilog2() << 1],
            of_field: [[0; 3]; FIELDS],
            of_all: [0; 2],
            contexts: [0; CONTEXTS],
            field: 0,
            at: [0; CONTEXTS],
            inputs: [0; INPUTS],
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

    /// The probability that the decision at `node` of the token is a one, of 65536.
    pub fn predict(&mut self, node: u64) -> u32 {
        let mut known = 0;
        for i in 0..CONTEXTS {
            let place = hash(self.contexts[i], node).wrapping_mul(0xa24b_aed4_963e_e407);
            let at = (place >> self.shift) as usize;
            let check = place as u8;
            let slot = &mut self.slots[at];
            if slot.check != check {
                *slot = Slot { p: 1 << 15, n: 0, check };
            }
            self.at[i] = at;
            self.inputs[i] = i32::from(self.stretch[usize::from(slot.p >> 4)]);
            known += usize::from(slot.n > 0);
        }
        self.inputs[CONTEXTS] = 256;
        self.age = known;
        let dot = |weights: &[i32; INPUTS], inputs: &[i32; INPUTS]| {
            let sum: i64 = weights.iter().zip(inputs).map(|(&w, &x)| i64::from(w) * i64::from(x)).sum();
            (sum >> 16).clamp(-2047, 2047) as i32
        };
        self.mixed = [dot(&self.by_field[self.field], &self.inputs), dot(&self.by_age[known], &self.inputs)];
        let p = squash((self.mixed[0] + self.mixed[1]) >> 1);
        p.clamp(16, 65520) as u32
    }

    /// Learns what the decision was.
    pub fn update(&mut self, bit: bool) {
        let target = if bit { 65535 } else { 0 };
        let both = [&mut self.by_field[self.field], &mut self.by_age[self.age]];
        for (weights, mixed) in both.into_iter().zip(self.mixed) {
            let error = (target - squash(mixed)) * LEARNING;
            for (weight, input) in weights.iter_mut().zip(self.inputs) {
                let change = (i64::from(input) * i64::from(error) + (1 << 17)) >> 18;
                *weight = (*weight + change as i32).clamp(-MOST_WEIGHT, MOST_WEIGHT);
            }
        }
        for at in self.at {
            let slot = &mut self.slots[at];
            let p = i32::from(slot.p);
            // 1 / (n + 1.5) of the way.
            slot.p = (p + (target - p) * 2 / (2 * i32::from(slot.n) + 3)) as u16;
            if slot.n < LIMIT {
                slot.n += 1;
            }
        }
    }
}
