//! Binary decisions as bytes: a range coder. Writing and reading are one trait, so that the model is written once.

/// Probabilities have so many bits.
pub(crate) const PROBABILITY_BITS: u32 = 16;

/// Bytes that a reader has in hand, and that end a block.
const AHEAD: usize = 4;
const SMALLEST: u32 = 1 << 24;

pub(crate) trait Coder {
    /// One decision, `one` with this probability of 1 to 65,535. A reader does not look at `one`; both return it.
    fn decide(&mut self, probability: u32, one: bool) -> bool;
}

/// Neither nothing nor all of a range.
#[inline(always)]
fn part(range: u32, probability: u32) -> u32 {
    ((u64::from(range) * u64::from(probability)) >> PROBABILITY_BITS) as u32
}

pub(crate) struct Writing {
    bytes: Vec<u8>,
    low: u64,
    range: u32,
    /// The last byte, and how many of ff follow it, which a carry may still change.
    held: u8,
    full: u64,
    /// The first byte is always 0, and left out.
    begun: bool,
}

impl Writing {
    pub(crate) fn new() -> Writing {
        Writing { bytes: Vec::new(), low: 0, range: u32::MAX, held: 0, full: 0, begun: false }
    }

    /// Bytes so far, about.
    pub(crate) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes of a block; another begins.
    pub(crate) fn end(&mut self) -> Vec<u8> {
        for _ in 0..=AHEAD {
            self.shift();
        }
        std::mem::replace(self, Writing::new()).bytes
    }

    fn shift(&mut self) {
        let carry = (self.low >> 32) as u8;
        if carry == 1 || self.low < 0xff00_0000 {
            if self.begun {
                self.bytes.push(self.held.wrapping_add(carry));
            }
            self.bytes.extend((0..self.full).map(|_| 0xffu8.wrapping_add(carry)));
            (self.begun, self.full, self.held) = (true, 0, (self.low >> 24) as u8);
        } else {
            self.full += 1;
        }
        self.low = (self.low & 0x00ff_ffff) << 8;
    }
}

impl Coder for Writing {
    #[inline(always)]
    fn decide(&mut self, probability: u32, one: bool) -> bool {
        let bound = part(self.range, probability);
        if one {
            self.range = bound;
        } else {
            self.low += u64::from(bound);
            self.range -= bound;
        }
        while self.range < SMALLEST {
            self.range <<= 8;
            self.shift();
        }
        one
    }
}

#[derive(Default)]
pub(crate) struct Reading {
    bytes: Vec<u8>,
    at: usize,
    code: u32,
    range: u32,
}

impl Reading {
    /// Begins a block.
    pub(crate) fn begin(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        (self.at, self.code, self.range) = (0, 0, u32::MAX);
        (0..AHEAD).for_each(|_| self.next());
    }

    /// More bytes were asked for than there are, which no writer makes.
    pub(crate) fn lacking(&self) -> bool {
        self.at > self.bytes.len()
    }

    /// All bytes were used, and no more, as after the last reference of a block.
    pub(crate) fn spent(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn next(&mut self) {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        self.code = self.code << 8 | u32::from(byte);
    }
}

impl Coder for Reading {
    #[inline(always)]
    fn decide(&mut self, probability: u32, _: bool) -> bool {
        let bound = part(self.range, probability);
        let one = self.code < bound;
        if one {
            self.range = bound;
        } else {
            self.code = self.code.wrapping_sub(bound);
            self.range -= bound;
        }
        while self.range < SMALLEST {
            self.range <<= 8;
            self.next();
        }
        one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_come_back_and_use_all_bytes() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut writing = Writing::new();
        for round in 0..50 {
            let decisions: Vec<(u32, bool)> = (0..random.usize(..3000))
                .map(|_| {
                    let probability = match round % 3 {
                        0 => random.u32(1..65_536),
                        1 => 65_535,
                        _ => 1,
                    };
                    (probability, random.u32(..65_536) < probability)
                })
                .collect();
            decisions
                .iter()
                .for_each(|(probability, one)| assert_eq!(writing.decide(*probability, *one), *one));
            let bytes = writing.end();
            let mut reading = Reading::default();
            reading.begin(&bytes);
            for (probability, one) in &decisions {
                assert_eq!(reading.decide(*probability, false), *one);
            }
            assert!(reading.spent() && !reading.lacking(), "round {round}");
        }
    }

    /// Carries go through bytes of ff.
    #[test]
    fn what_is_least_probable() {
        let mut writing = Writing::new();
        let ones = |at: u32| at.is_multiple_of(3);
        (0..5000).for_each(|at| assert_eq!(writing.decide(1, ones(at)), ones(at)));
        let bytes = writing.end();
        let mut reading = Reading::default();
        reading.begin(&bytes);
        assert!((0..5000).all(|at| reading.decide(1, false) == ones(at)));
        assert!(reading.spent());
    }
}
