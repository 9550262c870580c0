//! A range coder with adaptive probabilities. Encoder and decoder are one trait, so that the model is written once and the
//! two cannot drift apart.

/// How likely it is that a bit is set: the chance in the upper 22 bits, how often it was asked for in the lower 10.
pub(crate) type Chance = u32;

/// Nothing is known.
pub(crate) const EVEN: Chance = 1 << 31;

/// Chances count so far; then they move by the same part each time.
const PATIENCE: u32 = 250;

/// How far a chance moves the `n`th time, in 65,536ths.
const RATES: [u32; 256] = {
    let mut rates = [0; 256];
    let mut n = 0;
    while n < 256 {
        // Of n + 1.6, as whole numbers.
        rates[n] = (655_360 / (10 * n + 16)) as u32;
        n += 1;
    }
    rates
};

#[inline(always)]
fn learn(chance: &mut Chance, bit: bool) {
    let count = *chance & 1023;
    let p = i64::from(*chance >> 10);
    let target = if bit { (1 << 22) - 1 } else { 0 };
    let moved = p + (((target - p) * i64::from(RATES[(count & 255) as usize])) >> 16);
    *chance = (moved as u32) << 10 | (count + u32::from(count < PATIENCE));
}

/// Sixteen symbols: the sum of the chances of those before each. The first, always 0, counts how often it was asked for.
pub(crate) type Sums = [i16; 16];

/// All sums together; each symbol has one 32,768th besides, so that it can be coded at all.
const WHOLE: i16 = i16::MAX - 15;

pub(crate) const FLAT: Sums = {
    let mut sums = [0; 16];
    let mut at = 1;
    while at < 16 {
        sums[at] = at as i16 * (WHOLE / 16);
        at += 1;
    }
    sums
};

/// How far sums move the `n`th time: by one part in two to the power of this.
const SHIFTS: [u8; 64] = {
    let mut shifts = [6; 64];
    let mut n = 0;
    while n < 40 {
        shifts[n] = if n == 0 {
            1
        } else if n < 3 {
            2
        } else if n < 7 {
            3
        } else if n < 16 {
            4
        } else {
            5
        };
        n += 1;
    }
    shifts
};

/// What the sums would be if only one symbol ever came.
const TARGETS: [Sums; 16] = {
    let mut targets = [[0; 16]; 16];
    let mut symbol = 0;
    while symbol < 16 {
        let mut at = symbol + 1;
        while at < 16 {
            targets[symbol][at] = WHOLE;
            at += 1;
        }
        symbol += 1;
    }
    targets
};

#[inline(always)]
fn learn_symbol(sums: &mut Sums, symbol: usize) {
    let count = sums[0];
    let shift = SHIFTS[(count & 63) as usize];
    let targets = &TARGETS[symbol & 15];
    for at in 0..16 {
        sums[at] += (targets[at] - sums[at]) >> shift;
    }
    sums[0] = (count + 1).min(63);
}

/// Of two contexts, in 32,768ths.
#[inline(always)]
fn joined(one: &Sums, other: &Sums) -> [u16; 16] {
    let mut sums = [0; 16];
    for at in 1..16 {
        // Two of them fit in 16 bits, as both are below 2^15.
        sums[at] = ((one[at] as u16 + other[at] as u16) >> 1) + at as u16;
    }
    sums
}

pub(crate) trait Coder {
    /// A bit that is set with a probability of `p` in 65,536. A decoder does not look at `bit`; both return it.
    fn code(&mut self, p: u32, bit: bool) -> bool;

    /// One of sixteen symbols, likewise.
    fn code_symbol(&mut self, sums: &[u16; 16], symbol: usize) -> usize;

    #[inline(always)]
    fn bit(&mut self, chance: &mut Chance, bit: bool) -> bool {
        let bit = self.code((*chance >> 16).clamp(1, 65_535), bit);
        learn(chance, bit);
        bit
    }

    /// A bit of which two contexts know something.
    #[inline(always)]
    fn bit_of_two(&mut self, one: &mut Chance, other: &mut Chance, bit: bool) -> bool {
        let p = ((*one >> 16) + (*other >> 16)) >> 1;
        let bit = self.code(p.clamp(1, 65_535), bit);
        learn(one, bit);
        learn(other, bit);
        bit
    }

    #[inline(always)]
    fn symbol(&mut self, one: &mut Sums, other: &mut Sums, symbol: usize) -> usize {
        let symbol = self.code_symbol(&joined(one, other), symbol) & 15;
        learn_symbol(one, symbol);
        learn_symbol(other, symbol);
        symbol
    }
}

/// What is left of the interval is `range` from `low`; below 2^32 the next four bytes of `low` are settled, but for a carry.
pub(crate) struct Encoder {
    low: u64,
    range: u64,
    bytes: Vec<u8>,
}

impl Encoder {
    /// Puts its bytes after those that are there.
    pub(crate) fn new(bytes: Vec<u8>) -> Encoder {
        Encoder { low: 0, range: u64::MAX, bytes }
    }

    #[inline(always)]
    fn narrow(&mut self, by: u64, range: u64) {
        let (low, carry) = self.low.overflowing_add(by);
        self.low = low;
        self.range = range;
        if carry {
            self.carry();
        }
        if self.range < 1 << 32 {
            self.bytes.extend_from_slice(&((self.low >> 32) as u32).to_be_bytes());
            self.low <<= 32;
            self.range <<= 32;
        }
    }

    #[cold]
    fn carry(&mut self) {
        for byte in self.bytes.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }

    /// As few bytes as say which interval is left, where zeros follow.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let high = u128::from(self.low) + u128::from(self.range) - 1;
        for kept in 0..=8 {
            let rest = (1u128 << (64 - 8 * kept)) - 1;
            let value = (u128::from(self.low) + rest) & !rest;
            if value <= high {
                if value >> 64 != 0 {
                    self.carry();
                }
                self.bytes.extend_from_slice(&(value as u64).to_be_bytes()[..kept]);
                break;
            }
        }
        self.bytes
    }
}

impl Coder for Encoder {
    #[inline(always)]
    fn code(&mut self, p: u32, bit: bool) -> bool {
        let bound = (self.range >> 16) * u64::from(p);
        if bit {
            self.narrow(0, bound);
        } else {
            self.narrow(bound, self.range - bound);
        }
        bit
    }

    #[inline(always)]
    fn code_symbol(&mut self, sums: &[u16; 16], symbol: usize) -> usize {
        let part = self.range >> 15;
        let before = u64::from(sums[symbol & 15]);
        let after = if symbol < 15 { u64::from(sums[symbol + 1]) } else { 1 << 15 };
        self.narrow(part * before, part * (after - before));
        symbol
    }
}

/// Past the end of its bytes there are zeros.
pub(crate) struct Decoder {
    /// The bytes' number, less what the encoder's `low` was.
    code: u64,
    range: u64,
    at: usize,
}

/// The bytes are not the decoder's own: it stays while a block is read piece by piece.
pub(crate) struct Decoding<'a> {
    pub decoder: &'a mut Decoder,
    pub bytes: &'a [u8],
}

impl Decoder {
    pub(crate) fn new(bytes: &[u8]) -> Decoder {
        let code = u64::from(word(bytes, 0)) << 32 | u64::from(word(bytes, 4));
        Decoder { code, range: u64::MAX, at: 8 }
    }
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u32 {
    match bytes.get(at..at + 4) {
        Some(four) => u32::from_be_bytes(four.try_into().expect("four bytes")),
        None => {
            let mut four = [0; 4];
            let left = bytes.get(at..).unwrap_or(&[]);
            four[..left.len()].copy_from_slice(left);
            u32::from_be_bytes(four)
        }
    }
}

impl Decoding<'_> {
    #[inline(always)]
    fn narrow(&mut self, by: u64, range: u64) {
        let decoder = &mut *self.decoder;
        decoder.code = decoder.code.wrapping_sub(by);
        decoder.range = range;
        if decoder.range < 1 << 32 {
            decoder.code = decoder.code << 32 | u64::from(word(self.bytes, decoder.at));
            decoder.at += 4;
            decoder.range <<= 32;
        }
    }
}

impl Coder for Decoding<'_> {
    #[inline(always)]
    fn code(&mut self, p: u32, _: bool) -> bool {
        let bound = (self.decoder.range >> 16) * u64::from(p);
        let bit = self.decoder.code < bound;
        if bit {
            self.narrow(0, bound);
        } else {
            self.narrow(bound, self.decoder.range - bound);
        }
        bit
    }

    #[inline(always)]
    fn code_symbol(&mut self, sums: &[u16; 16], _: usize) -> usize {
        let part = self.decoder.range >> 15;
        // Bytes that no encoder wrote may say more than there is.
        let value = (self.decoder.code / part).min((1 << 15) - 1) as u16;
        let symbol = sums[1..].iter().map(|sum| usize::from(*sum <= value)).sum::<usize>();
        let before = u64::from(sums[symbol & 15]);
        let after = if symbol < 15 { u64::from(sums[symbol + 1]) } else { 1 << 15 };
        self.narrow(part * before, part * (after - before));
        symbol
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script<C: Coder>(coder: &mut C, bits: &mut [bool], symbols: &mut [usize]) {
        let (mut one, mut other) = (EVEN, EVEN);
        let (mut low, mut high) = (FLAT, FLAT);
        for (bit, symbol) in bits.iter_mut().zip(symbols) {
            *bit = coder.bit_of_two(&mut one, &mut other, *bit);
            *symbol = coder.symbol(&mut low, &mut high, *symbol);
        }
    }

    #[track_caller]
    fn check(count: usize, bit: impl Fn(u64) -> bool, symbol: impl Fn(u64) -> usize) -> usize {
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let mut bits: Vec<bool> = (0..count).map(|_| bit(draw())).collect();
        let mut symbols: Vec<usize> = (0..count).map(|_| symbol(draw())).collect();
        let (wanted, wanted_symbols) = (bits.clone(), symbols.clone());
        let mut encoder = Encoder::new(Vec::new());
        script(&mut encoder, &mut bits, &mut symbols);
        let bytes = encoder.finish();
        bits.fill(false);
        symbols.fill(0);
        let mut decoder = Decoder::new(&bytes);
        script(&mut Decoding { decoder: &mut decoder, bytes: &bytes }, &mut bits, &mut symbols);
        assert!(bits == wanted && symbols == wanted_symbols);
        bytes.len()
    }

    #[test]
    fn what_is_coded_comes_back() {
        for count in [0, 1, 2, 3, 10, 1000, 100_000] {
            check(count, |n| n % 2 == 0, |n| n as usize % 16);
            check(count, |n| n % 100 == 0, |n| if n % 50 == 0 { 15 } else { 0 });
            check(count, |_| true, |_| 15);
            check(count, |_| false, |_| 0);
        }
    }

    #[test]
    fn what_is_certain_costs_next_to_nothing() {
        assert!(check(100_000, |_| true, |_| 3) < 150);
        // A bit and four.
        let random = check(100_000, |n| n % 2 == 0, |n| n as usize % 16);
        assert!((62_500..64_500).contains(&random), "{random}");
    }
}
