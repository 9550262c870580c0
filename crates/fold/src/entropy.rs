//! Entropy coding of numbers that have no shape: blocks of a few thousand, each decodable alone.
//!
//! A block begins with a plan, chosen from its own numbers: whether what followed the same four numbers last time is
//! guessed first, which numbers are frequent enough for a list of their own, and what the others are measured from
//! (the least of the block, or the number some places before). Then every number is a few binary decisions with
//! adaptive probabilities and a rest of plain bits. All arithmetic is in integers: equal numbers give equal bytes on
//! every machine.
//!
//! ```
//! use refrain_fold::entropy::{decode, encode};
//! let numbers: Vec<i64> = (0..1000).map(|i: i64| i * i % 17).collect();
//! assert_eq!(decode(&encode(&numbers), numbers.len()).unwrap(), numbers);
//! ```

pub mod bins;
mod plan;
mod range;

use plan::{Guess, Plan};
use range::{Bit, Coder, Decoder, Encoder};

/// More numbers than this are not one block.
pub const LONGEST: usize = 1 << 13;

/// How many bits below the highest are modelled; the rest is plain.
const MODELLED: u32 = 4;
/// Runs of right guesses are told apart up to this length.
const RUNS: usize = 15;

/// The bytes are not those of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged;

/// The bytes of a block. At most [`LONGEST`] numbers.
pub fn encode(values: &[i64]) -> Vec<u8> {
    let (plan, other) = Plan::of(values);
    let bytes = encode_as(&plan, values);
    match other.map(|plan| encode_as(&plan, values)) {
        Some(other) if other.len() < bytes.len() => other,
        _ => bytes,
    }
}

fn encode_as(plan: &Plan, values: &[i64]) -> Vec<u8> {
    let mut encoder = Encoder::default();
    code_plan(&mut encoder, plan);
    let mut history = Vec::with_capacity(values.len());
    code(&mut encoder, plan, values.len(), &mut history, |i| values[i]);
    encoder.finish()
}

/// The numbers again. Whatever the bytes, at most `count` of them.
pub fn decode(bytes: &[u8], count: usize) -> Result<Vec<i64>, Damaged> {
    if count > LONGEST {
        return Err(Damaged);
    }
    let mut decoder = Decoder::new(bytes);
    let plan = code_plan(&mut decoder, &Plan::default());
    let mut values = Vec::with_capacity(count);
    code(&mut decoder, &plan, count, &mut values, |_| 0);
    if decoder.overrun() { Err(Damaged) } else { Ok(values) }
}

/// Writes the plan, or reads it and ignores the one given.
fn code_plan(coder: &mut impl Coder, plan: &Plan) -> Plan {
    let mut flag = |on: bool| coder.plain(u64::from(on), 1) == 1;
    let (guess, chain, linked) = (flag(plan.guess), flag(plan.chain), flag(plan.linked));
    let lag = coder.plain(plan.lag as u64, 7) as usize;
    let base = unzigzag(plain_number(coder, zigzag(plan.base)));
    let widest = coder.plain(plan.widest.into(), 7) as u32;
    let len = coder.plain(plan.list.len() as u64, 8) as usize;
    let mut list = Vec::with_capacity(len);
    let mut classes = vec![Bit::default(); 128];
    let mut before = 0u64;
    for i in 0..len {
        let gap = plan.list.get(i).map_or(0, |distance| distance.wrapping_sub(before));
        before = before.wrapping_add(number(coder, &mut classes, None, 7, gap));
        list.push(before);
    }
    Plan { guess, chain, linked, lag, base, widest: widest.min(64), list }
}

/// The numbers in order; what is written, or read, ends up in `history`.
fn code(
    coder: &mut impl Coder,
    plan: &Plan,
    count: usize,
    history: &mut Vec<i64>,
    value: impl Fn(usize) -> i64,
) {
    let depth = bits(plan.widest.into());
    let width = bits(plan.list.len() as u64);
    let escape = plan.list.len();
    let links = if plan.linked { 65 } else { 1 };
    let chains = if plan.chain { escape + 1 } else { 1 };
    let mut hits = [Bit::default(); RUNS + 1];
    let mut symbols = vec![Bit::default(); chains << width];
    let mut classes = vec![Bit::default(); links << depth];
    let mut mantissas = vec![Bit::default(); 65 << MODELLED];
    let mut guess = Guess::new(plan.guess);
    let (mut symbol, mut class) = (0, 0);
    for i in 0..count {
        let value = value(i);
        let guessed = guess.next(history);
        let right = guessed.filter(|&(guessed, run)| coder.bit(guessed == value, &mut hits[run.min(RUNS)]));
        let mut told = |coder: &mut _| {
            let origin = plan.origin(history);
            let residual = plan.residual(value, origin);
            if escape > 0 {
                let known = plan.list.binary_search(&residual).unwrap_or(escape);
                let from = if plan.chain { symbol << width } else { 0 };
                let place = tree(coder, &mut symbols[from..from + (1 << width)], width, known as u64);
                symbol = (place as usize).min(escape);
                if symbol < escape {
                    return plan.value(plan.list[symbol], origin);
                }
            }
            let from = if plan.linked { class << depth } else { 0 };
            let table = &mut classes[from..from + (1 << depth)];
            let residual = number(coder, table, Some(&mut mantissas), depth, residual);
            class = bits(residual) as usize;
            plan.value(residual, origin)
        };
        let value = match right {
            Some((guessed, _)) => guessed,
            None => told(coder),
        };
        guess.learn(history, value, right.is_some());
        history.push(value);
    }
}

/// How long the number is, by a tree of `depth` decisions; then the bits below its highest.
fn number(
    coder: &mut impl Coder,
    classes: &mut [Bit],
    mantissas: Option<&mut Vec<Bit>>,
    depth: u32,
    value: u64,
) -> u64 {
    let class = (tree(coder, classes, depth, bits(value).into()) as u32).min(64);
    let Some(mut left) = class.checked_sub(1) else { return 0 };
    let mut sum = 1u64;
    if let Some(mantissas) = mantissas {
        let modelled = left.min(MODELLED);
        left -= modelled;
        let from = (class as usize) << MODELLED;
        let part = value >> left & ((1 << modelled) - 1);
        let part = tree(coder, &mut mantissas[from..from + (1 << MODELLED)], modelled, part);
        sum = sum << modelled | part;
    }
    while left > 0 {
        let piece = left.min(32);
        left -= piece;
        sum = sum << piece | coder.plain(value >> left & ((1 << piece) - 1), piece);
    }
    sum
}

fn plain_number(coder: &mut impl Coder, value: u64) -> u64 {
    let class = coder.plain(bits(value).into(), 7).min(64) as u32;
    let (high, low) = (class / 2, class - class / 2);
    let top = coder.plain(value.checked_shr(low).unwrap_or(0) & mask(high), high);
    top.checked_shl(low).unwrap_or(0) | coder.plain(value & mask(low), low)
}

fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// The lowest `depth` bits, highest first, each decision knowing those before.
#[inline]
fn tree(coder: &mut impl Coder, bits: &mut [Bit], depth: u32, value: u64) -> u64 {
    let mut node = 1usize;
    for i in (0..depth).rev() {
        let bit = coder.bit(value >> i & 1 == 1, &mut bits[node]);
        node = node << 1 | usize::from(bit);
    }
    node as u64 ^ 1 << depth
}

/// The length of a number in bits; none for zero.
#[inline]
fn bits(value: u64) -> u32 {
    64 - value.leading_zeros()
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests;
