//! Tokens to and from bits: binary decisions through an arithmetic coder, with the probabilities of [`Model`].
//!
//! One model runs through all sections of a file: a small file cannot afford to learn the same things six times.

use crate::model::Model;
use crate::token::{Coding, Field, Token};

/// Lengths from this on are told in six more decisions.
const LONG: u32 = 7;

/// Where decisions go to, or come from.
trait Coder {
    /// Codes one decision that is a one with probability `p` of 65536. Given the bit when writing; returns it.
    fn bit(&mut self, bit: bool, p: u32) -> bool;
}

/// Codes one token; `value` is ignored when reading.
fn code(coder: &mut impl Coder, model: &mut Model, field: Field, hint: u64, value: u64) -> u64 {
    if field.coding() == Coding::Direct {
        return (0..hint.min(64))
            .rev()
            .fold(0, |sum, i| sum << 1 | u64::from(coder.bit(value >> i & 1 == 1, 1 << 15)));
    }
    model.start(field, hint);
    // Codes the lowest `count` bits of `value`, highest first, three at a time; `node` tells the token's trees apart.
    let mut tree = |node: u64, count: u32, value: u64| {
        let (mut left, mut sum) = (count, 0);
        while left > 0 {
            let end = left.saturating_sub(3);
            model.open(node ^ (1 << (count - left) | sum));
            let mut path = 1;
            while left > end {
                left -= 1;
                let p = model.predict(path);
                let bit = coder.bit(value >> left & 1 == 1, p);
                model.update(bit);
                path = path << 1 | usize::from(bit);
                sum = sum << 1 | u64::from(bit);
            }
        }
        sum
    };
    let value = match field.coding() {
        Coding::Byte => tree(0, 8, value),
        _ => {
            let bits = crate::token::bits(value);
            let mut length = tree(0, 3, bits.min(LONG).into()) as u32;
            if length == LONG {
                length += tree(1 << 8, 6, bits.saturating_sub(LONG).into()) as u32;
            }
            // 64 is the longest there is; what a damaged file says beyond it is cut off.
            let length = length.min(64);
            match length {
                0 => 0,
                _ => 1 << (length - 1) | mantissa(&mut tree, length, value),
            }
        }
    };
    model.finish(value);
    value
}

/// The bits below the highest, in pieces: a decision knows the bits of its own piece only and the piece before, or
/// long numbers would never meet the same decision twice.
fn mantissa(tree: &mut impl FnMut(u64, u32, u64) -> u64, length: u32, value: u64) -> u64 {
    let mut left = length - 1;
    let mut sum = 0;
    let mut before = 0;
    while left > 0 {
        let piece = left.min(8);
        left -= piece;
        let node = u64::from(length) << 40 | u64::from(left) << 32 | before << 16 | 1 << 15;
        let bits = tree(node, piece, value >> left);
        sum = sum << piece | bits;
        before = bits;
    }
    sum
}

/// The interval that is left, as in any arithmetic coder; 32 bits, no carry: a byte leaves when both ends agree on it.
struct Interval {
    low: u32,
    high: u32,
}

impl Interval {
    const ALL: Interval = Interval { low: 0, high: u32::MAX };

    /// The last number that means a one.
    fn middle(&self, p: u32) -> u32 {
        self.low + ((u64::from(self.high - self.low) * u64::from(p)) >> 16) as u32
    }

    fn narrow(&mut self, bit: bool, middle: u32) {
        if bit {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
    }

    /// A byte both ends agree on, taken off.
    fn settled(&mut self) -> Option<u8> {
        if (self.low ^ self.high) >> 24 != 0 {
            return None;
        }
        let byte = (self.low >> 24) as u8;
        self.low <<= 8;
        self.high = self.high << 8 | 0xff;
        Some(byte)
    }
}

pub struct Encoder {
    model: Model,
    sink: Sink,
}

struct Sink {
    interval: Interval,
    bytes: Vec<u8>,
}

impl Coder for Sink {
    fn bit(&mut self, bit: bool, p: u32) -> bool {
        let middle = self.interval.middle(p);
        self.interval.narrow(bit, middle);
        while let Some(byte) = self.interval.settled() {
            self.bytes.push(byte);
        }
        bit
    }
}

impl Encoder {
    pub fn new(model: Model) -> Encoder {
        Encoder { model, sink: Sink { interval: Interval::ALL, bytes: Vec::new() } }
    }

    pub fn token(&mut self, token: &Token) {
        code(&mut self.sink, &mut self.model, token.field, token.hint, token.value);
    }

    /// Bytes that are settled so far.
    pub fn len(&self) -> usize {
        self.sink.bytes.len()
    }

    /// As few bytes as tell the decoder, which reads zeros after the end, where in the interval to be.
    pub fn finish(self) -> Vec<u8> {
        let mut bytes = self.sink.bytes;
        if self.sink.interval.low > 0 {
            bytes.push((self.sink.interval.low >> 24) as u8 + 1);
        }
        bytes
    }

    /// What was learnt, for coding something else.
    pub fn into_model(self) -> Model {
        self.model
    }
}

pub struct Decoder {
    model: Model,
    source: Source,
}

struct Source {
    interval: Interval,
    code: u32,
    bytes: Vec<u8>,
    at: usize,
}

impl Source {
    fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        byte
    }
}

impl Coder for Source {
    fn bit(&mut self, _: bool, p: u32) -> bool {
        let middle = self.interval.middle(p);
        let bit = self.code <= middle;
        self.interval.narrow(bit, middle);
        while self.interval.settled().is_some() {
            self.code = self.code << 8 | u32::from(self.byte());
        }
        bit
    }
}

impl Decoder {
    pub fn new(model: Model, bytes: Vec<u8>) -> Decoder {
        let mut source = Source { interval: Interval::ALL, code: 0, bytes, at: 0 };
        for _ in 0..4 {
            source.code = source.code << 8 | u32::from(source.byte());
        }
        Decoder { model, source }
    }

    pub fn token(&mut self, field: Field, hint: u64) -> u64 {
        code(&mut self.source, &mut self.model, field, hint, 0)
    }
}
