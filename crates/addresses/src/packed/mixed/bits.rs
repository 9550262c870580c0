//! A number told bit by bit, from the highest, each in several contexts.

use super::coder::Coder;
use super::logistic::{Chances, Curve, INPUTS, Inputs, Mixer, error};
use super::{mix, spread};

const WEIGHT: i32 = 65_536 / 3;
const RATE: i32 = 10;
const SEEN: u32 = 127;
/// One input is always this.
const CONSTANT: i32 = 256;
/// What was seen less often counts half.
const FEW: u32 = 3;

pub(crate) struct Bits {
    bits: u32,
    chances: Chances,
    mixer: Mixer,
}

impl Bits {
    /// In so many contexts, each with a table of 2^`bits`.
    pub(crate) fn new(contexts: usize, bits: u32) -> Bits {
        assert!(contexts < INPUTS);
        Bits { bits, chances: Chances::new(contexts << bits), mixer: Mixer::new(64, WEIGHT, RATE) }
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
        // What is known of it, behind a leading 1 while there is room for one.
        let mut known = 1;
        for bit in (0..bits).rev() {
            let one = self.bit(curve, coder, contexts, known, bit, number >> bit & 1 != 0);
            known = known << 1 | u64::from(one);
        }
        if bits == 64 { known } else { known & ((1 << bits) - 1) }
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
        let mut used = [0; INPUTS];
        let prefix = mix(known, u64::from(bit));
        for (at, context) in contexts.iter().enumerate() {
            used[at] = at << self.bits | spread(mix(mix(*context, prefix), at as u64 + 1), self.bits);
            let chance = self.chances.at(used[at]);
            inputs[at] = match chance.seen() {
                0 => 0,
                seen if seen < FEW => curve.stretch(chance) >> 1,
                _ => curve.stretch(chance),
            };
        }
        inputs[contexts.len()] = CONSTANT;
        let set = bit as usize;
        let probability = curve.squash(self.mixer.mix(&inputs, set));
        let one = coder.decide(probability, one);
        self.mixer.learn(&inputs, set, error(one, probability));
        used[..contexts.len()].iter().for_each(|at| self.chances.learn(*at, one, SEEN));
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
