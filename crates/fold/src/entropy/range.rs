//! A binary range coder with adaptive probabilities.

/// Ranges are kept at least this wide.
const LEAST: u64 = 1 << 56;
/// Counters stop slowing down after this many decisions.
const LIMIT: u8 = 250;

/// The chance of a one in one place.
#[derive(Debug, Clone, Copy)]
pub struct Bit {
    /// Of 2^32.
    p: u32,
    seen: u8,
}

impl Default for Bit {
    fn default() -> Bit {
        Bit { p: 1 << 31, seen: 0 }
    }
}

/// 2^16 / (n + 1.6): how far the n-th decision moves a counter.
const RATES: [u32; LIMIT as usize + 1] = {
    let mut rates = [0; LIMIT as usize + 1];
    let mut n = 0;
    while n < rates.len() {
        rates[n] = 655_360 / (10 * n as u32 + 16);
        n += 1;
    }
    rates
};

impl Bit {
    #[inline]
    fn learn(&mut self, bit: bool) {
        let target = if bit { i64::from(u32::MAX) } else { 0 };
        let rate = i64::from(RATES[usize::from(self.seen)]);
        let change = ((target - i64::from(self.p)) * rate) >> 16;
        self.p = (i64::from(self.p) + change) as u32;
        self.seen += u8::from(self.seen < LIMIT);
    }

    /// The part of `range` that means a one: never nothing, never all.
    #[inline]
    fn share(&self, range: u64) -> u64 {
        (range >> 16) * u64::from((self.p >> 16).clamp(1, 65535))
    }
}

/// Where decisions go to, or come from: given what to write, returns what was written or read.
pub trait Coder {
    /// A decision, with a chance that learns from it.
    fn bit(&mut self, bit: bool, chance: &mut Bit) -> bool;
    /// The same with a chance that the caller keeps: of 2^16, neither 0 nor all.
    fn given(&mut self, bit: bool, chance: u32) -> bool;
    /// Up to 32 bits that nothing predicts.
    fn direct(&mut self, value: u64, bits: u32) -> u64;
}

#[derive(Debug, Clone)]
/// Writes decisions into bytes.
pub struct Encoder {
    low: u64,
    range: u64,
    bytes: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder { low: 0, range: u64::MAX, bytes: Vec::new() }
    }
}

impl Encoder {
    #[inline]
    fn raise(&mut self, by: u64) {
        let (low, carry) = self.low.overflowing_add(by);
        self.low = low;
        if carry {
            self.carry();
        }
    }

    #[cold]
    fn carry(&mut self) {
        for byte in self.bytes.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                return;
            }
        }
    }

    #[inline]
    fn settle(&mut self) {
        while self.range < LEAST {
            self.bytes.push((self.low >> 56) as u8);
            self.low <<= 8;
            self.range <<= 8;
        }
    }

    /// One of the two parts of the range: a one has the lower `share` of it.
    #[inline]
    fn part(&mut self, bit: bool, share: u64) {
        if bit {
            self.range = share;
        } else {
            self.raise(share);
            self.range -= share;
        }
        self.settle();
    }

    /// A choice whose part of the range is `share` of 2^scale, behind `low` of others.
    #[inline]
    pub fn share(&mut self, low: u32, share: u32, scale: u32) {
        self.range >>= scale;
        self.raise(self.range * u64::from(low));
        self.range *= u64::from(share);
        self.settle();
    }

    /// As few bytes as lead a decoder, which reads zeros after the end, into the range that is left.
    pub fn finish(mut self) -> Vec<u8> {
        for kept in 0..8 {
            let below = u64::MAX >> (8 * kept);
            let up = below - (self.low.wrapping_sub(1) & below);
            if up < self.range {
                self.raise(up);
                self.bytes.extend(&self.low.to_be_bytes()[..kept]);
                break;
            }
        }
        while self.bytes.last() == Some(&0) {
            self.bytes.pop();
        }
        self.bytes
    }
}

impl Coder for Encoder {
    #[inline]
    fn bit(&mut self, bit: bool, chance: &mut Bit) -> bool {
        self.part(bit, chance.share(self.range));
        chance.learn(bit);
        bit
    }

    #[inline]
    fn given(&mut self, bit: bool, chance: u32) -> bool {
        self.part(bit, (self.range >> 16) * u64::from(chance));
        bit
    }

    #[inline]
    fn direct(&mut self, value: u64, bits: u32) -> u64 {
        self.range >>= bits;
        self.raise(self.range * value);
        self.settle();
        value
    }
}

#[derive(Debug, Clone)]
/// Reads decisions from bytes. Behind their end it reads zeros.
pub struct Decoder<B> {
    /// Relative to the low end.
    code: u64,
    range: u64,
    bytes: B,
    at: usize,
}

impl<B: AsRef<[u8]>> Decoder<B> {
    /// From the first byte on.
    pub fn new(bytes: B) -> Decoder<B> {
        let mut decoder = Decoder { code: 0, range: u64::MAX, bytes, at: 0 };
        for _ in 0..8 {
            decoder.shift();
        }
        decoder
    }

    #[inline]
    fn shift(&mut self) {
        self.code = self.code << 8 | u64::from(self.bytes.as_ref().get(self.at).copied().unwrap_or(0));
        self.at += 1;
    }

    #[inline]
    fn settle(&mut self) {
        while self.range < LEAST {
            self.shift();
            self.range <<= 8;
        }
    }

    /// In which of the two parts of the range the code is: a one has the lower `share` of it.
    #[inline]
    fn part(&mut self, share: u64) -> bool {
        let bit = self.code < share;
        if bit {
            self.range = share;
        } else {
            self.code -= share;
            self.range -= share;
        }
        self.settle();
        bit
    }

    /// Where of 2^scale a choice points; [`share`](Decoder::share) says next which one it was.
    #[inline]
    pub fn target(&mut self, scale: u32) -> u64 {
        self.range >>= scale;
        (self.code / self.range).min((1 << scale) - 1)
    }

    #[inline]
    /// Takes the choice that has this share of 2^scale from `low` on.
    pub fn share(&mut self, low: u32, share: u32) {
        self.code = self.code.wrapping_sub(self.range * u64::from(low));
        self.range *= u64::from(share);
        self.settle();
    }

    /// Whether there were more bytes than were needed. (Fewer may be there: an encoder leaves zeros at the end out.)
    pub fn overrun(&self) -> bool {
        self.at < self.bytes.as_ref().len()
    }
}

impl<B: AsRef<[u8]>> Coder for Decoder<B> {
    #[inline]
    fn bit(&mut self, _: bool, chance: &mut Bit) -> bool {
        let bit = self.part(chance.share(self.range));
        chance.learn(bit);
        bit
    }

    #[inline]
    fn given(&mut self, _: bool, chance: u32) -> bool {
        self.part((self.range >> 16) * u64::from(chance))
    }

    #[inline]
    fn direct(&mut self, _: u64, bits: u32) -> u64 {
        self.range >>= bits;
        // Bytes that no encoder wrote may point beyond the last part.
        let value = (self.code / self.range).min((1 << bits) - 1);
        self.code = self.code.wrapping_sub(value * self.range);
        self.settle();
        value
    }
}
