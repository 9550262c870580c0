//! A number told bit by bit, from the highest, each in several contexts.

use std::ops::Range;

use super::chain::{RECORDS, recorded};
use super::coder::Coder;
use super::logistic::{Chance, Chances, Curve, INPUTS, Inputs, Mixer, error};
use super::{mix, spread};

/// How much an input weighs at first, and how fast that changes.
const WEIGHT: i32 = 1 << 14;
const RATE: i32 = 10;
/// Chances are means of so many.
const SEEN: u32 = 127;
const RECORD_SEEN: u32 = 400;
/// One input is always this.
const CONSTANT: i16 = 256;
/// What was seen less often counts half.
const FEW: u32 = 3;

/// Contexts at most: each has two inputs.
const MOST: usize = (INPUTS - 1) / 2;

pub(crate) struct Bits {
    bits: u32,
    /// A chance, the record of what came, and bits of the context's hash.
    slots: Box<[u64]>,
    /// By context and record.
    chances: Chances,
    by_bit: Mixer,
    by_known: Mixer,
}

impl Bits {
    /// In so many contexts, each with a table of 2^`bits`.
    pub(crate) fn new(contexts: usize, bits: u32) -> Bits {
        assert!(contexts <= MOST);
        Bits {
            bits,
            slots: vec![0; contexts << bits].into(),
            chances: Chances::new(contexts * RECORDS),
            by_bit: Mixer::new(64, WEIGHT, RATE),
            by_known: Mixer::new(64 * (MOST + 1), WEIGHT, RATE),
        }
    }

    /// A number of so many bits.
    pub(crate) fn code<C: Coder>(
        &mut self,
        curve: &Curve,
        coder: &mut C,
        contexts: &[u64],
        bits: u32,
        number: u64,
    ) -> u64 {
        self.part(curve, coder, contexts, 0..bits, number)
    }

    /// These bits of a number; the others are not looked at.
    pub(crate) fn part<C: Coder>(
        &mut self,
        curve: &Curve,
        coder: &mut C,
        contexts: &[u64],
        bits: Range<u32>,
        number: u64,
    ) -> u64 {
        // What is known of it, behind a leading 1 while there is room for one.
        let mut known = 1;
        for bit in bits.clone().rev() {
            let one = self.bit(curve, coder, contexts, known, bit, number >> bit & 1 != 0);
            known = known << 1 | u64::from(one);
        }
        let count = bits.end - bits.start;
        (if count == 64 { known } else { known & ((1 << count) - 1) }) << bits.start
    }

    #[inline(always)]
    fn bit<C: Coder>(
        &mut self,
        curve: &Curve,
        coder: &mut C,
        contexts: &[u64],
        known: u64,
        bit: u32,
        one: bool,
    ) -> bool {
        let mut inputs: Inputs = [0; INPUTS];
        let mut used = [0; MOST];
        let mut found = [(Chance::default(), 0, 0); MOST];
        let mut count = 0;
        let prefix = mix(known, u64::from(bit));
        for (at, context) in contexts.iter().enumerate() {
            let hash = mix(mix(*context, prefix), at as u64 + 1);
            used[at] = at << self.bits | spread(hash, self.bits);
            let slot = self.slots[used[at]];
            let tag = hash >> 24 & 0xff_ffff;
            let (chance, record) = if slot >> 40 == tag {
                (Chance::of(slot as u32), (slot >> 32) as u8)
            } else {
                (Chance::default(), 0)
            };
            found[at] = (chance, record, tag);
            if record != 0 {
                count += 1;
                inputs[2 * at] =
                    if chance.seen() < FEW { curve.stretch(chance) >> 1 } else { curve.stretch(chance) };
                inputs[2 * at + 1] = curve.stretch(self.chances.at(at * RECORDS + usize::from(record)));
            }
        }
        inputs[INPUTS - 1] = CONSTANT;
        let sets = (bit as usize, bit as usize * (MOST + 1) + count);
        let mixed = (self.by_bit.mix(&inputs, sets.0), self.by_known.mix(&inputs, sets.1));
        let one = coder.decide(curve.squash((mixed.0 + mixed.1) >> 1), one);
        self.by_bit.learn(&inputs, sets.0, error(one, curve.squash(mixed.0)));
        self.by_known.learn(&inputs, sets.1, error(one, curve.squash(mixed.1)));
        for at in 0..contexts.len() {
            let (mut chance, record, tag) = found[at];
            if record != 0 {
                self.chances.learn(at * RECORDS + usize::from(record), one, RECORD_SEEN);
            }
            chance.learn(one, SEEN);
            let record = if record == 0 { 2 | u8::from(one) } else { recorded(record, one) };
            self.slots[used[at]] = tag << 40 | u64::from(record) << 32 | u64::from(chance.stored());
        }
        one
    }

    /// A number of which mostly few bits are used: how many, and these.
    pub(crate) fn short<C: Coder, const N: usize>(
        &mut self,
        curve: &Curve,
        coder: &mut C,
        contexts: &[u64; N],
        number: u64,
    ) -> u64 {
        let length =
            self.code(curve, coder, contexts, 7, u64::from(64 - number.leading_zeros())).min(64) as u32;
        if length < 2 {
            return u64::from(length);
        }
        let contexts = contexts.map(|context| mix(context, u64::from(length)));
        1 << (length - 1) | self.code(curve, coder, &contexts, length - 1, number & !(1 << (length - 1)))
    }

    /// Where a number is from another, near it on either side.
    pub(crate) fn near<C: Coder, const N: usize>(
        &mut self,
        curve: &Curve,
        coder: &mut C,
        contexts: &[u64; N],
        base: u64,
        number: u64,
    ) -> u64 {
        let offset = number.wrapping_sub(base) as i64;
        let folded = self.short(curve, coder, contexts, (offset << 1 ^ offset >> 63) as u64);
        base.wrapping_add(folded >> 1 ^ (folded & 1).wrapping_neg())
    }
}
