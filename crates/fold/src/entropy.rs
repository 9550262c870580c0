//! Entropy coding of numbers that have no shape: blocks of a few thousand, each decodable alone.
//!
//! A block begins with a plan, chosen from its own numbers: whether what followed the same four numbers last time is
//! guessed first, which numbers are frequent enough for a list of their own, and what the others are measured from
//! (the least of the block, or the number some places before). Then every number is a few binary decisions with
//! adaptive probabilities and a rest of plain bits. Where numbers stand several times in a row, each is told once, with how
//! often. All arithmetic is in integers: equal numbers give equal bytes on every machine.
//!
//! ```
//! use refrain_fold::entropy::{decode, encode};
//! // Each number with how often it stands: 1998 in all.
//! let numbers: Vec<(i64, u64)> = (0..999).map(|i: i64| (7 * i % 17, 1 + i as u64 % 3)).collect();
//! assert_eq!(decode(&encode(&numbers), 1998).unwrap(), numbers);
//! ```

pub mod bins;
mod plan;
pub mod range;

use plan::{Guess, Plan};
use range::{Bit, Coder, Decoder, Encoder};

/// More numbers than this, equal neighbours taken once, are not one block.
pub const LONGEST: usize = 1 << 13;
/// From so many equal numbers in a row on, on average, they are counted.
const COUNTED: u64 = 16;
/// By the lowest bits of the number: how often it stands is told by tables of its own.
const REPEATS: usize = 4;
/// Of how often a number stands, less one: its length takes so many decisions.
const REPEATS_DEPTH: u32 = 6;

/// How many bits below the highest are modelled; the rest is plain.
const MODELLED: u32 = 4;
/// Runs of right guesses are told apart up to this length.
const RUNS: usize = 15;

/// The bytes are not those of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged;

/// The bytes of a block: numbers with how often each stands in a row. At most [`LONGEST`] of these and 2^32 - 1 numbers.
pub fn encode(runs: &[(i64, u64)]) -> Vec<u8> {
    let total: u64 = runs.iter().map(|run| run.1).sum();
    if total >= COUNTED * runs.len() as u64 || total > LONGEST as u64 {
        return encode_best(runs, true);
    }
    let singles: Vec<(i64, u64)> =
        runs.iter().flat_map(|&(value, count)| (0..count).map(move |_| (value, 1))).collect();
    encode_best(&singles, false)
}

fn encode_best(runs: &[(i64, u64)], counted: bool) -> Vec<u8> {
    let (shift, low) = alike(runs);
    let values: Vec<i64> = runs.iter().map(|run| run.0 >> shift).collect();
    let (plan, other) = Plan::of(&values);
    let encode_as = |plan: Plan| {
        let mut encoder = Encoder::default();
        let plan = Plan { counted, shift, low, ..plan };
        code_plan(&mut encoder, &plan);
        let total = runs.iter().map(|run| run.1).sum();
        code(&mut encoder, &plan, total, |i| (values[i], runs[i].1));
        encoder.finish()
    };
    let bytes = encode_as(plan);
    match other.map(encode_as) {
        Some(other) if other.len() < bytes.len() => other,
        _ => bytes,
    }
}

/// How many of the lowest bits are the same in all numbers, and these: addresses and sizes are multiples of something. None where
/// it would not pay.
fn alike(runs: &[(i64, u64)]) -> (u32, u64) {
    let Some(&(first, _)) = runs.first().filter(|_| runs.len() >= FEWEST_SHIFTED) else { return (0, 0) };
    let differ = runs.iter().fold(0, |differ, run| differ | (run.0 ^ first));
    let shift = if differ == 0 { 0 } else { differ.trailing_zeros().min(MOST_SHIFTED) };
    (shift, first as u64 & ((1 << shift) - 1))
}

/// The numbers again, each with how often it stands in a row. Whatever the bytes, at most [`LONGEST`] of them, which stand
/// for `count` numbers.
pub fn decode(bytes: &[u8], count: u64) -> Result<Vec<(i64, u64)>, Damaged> {
    let mut decoder = Decoder::new(bytes);
    let plan = code_plan(&mut decoder, &Plan::default());
    if !plan.counted && count > LONGEST as u64 {
        return Err(Damaged);
    }
    let (values, counts) = code(&mut decoder, &plan, count, |_| (0, 0));
    let total = counts.iter().try_fold(0u64, |sum, count| sum.checked_add(*count));
    if decoder.overrun() || plan.counted && total != Some(count) {
        return Err(Damaged);
    }
    let mut runs: Vec<(i64, u64)> = Vec::with_capacity(values.len());
    for (at, value) in values.into_iter().enumerate() {
        let value = value << plan.shift | plan.low as i64;
        let count = counts.get(at).copied().unwrap_or(1);
        match runs.last_mut() {
            Some(last) if last.0 == value => last.1 += count,
            _ => runs.push((value, count)),
        }
    }
    Ok(runs)
}

/// What stands for the lag where numbers are counted; the lag follows.
const LAG_IF_COUNTED: u64 = 127;
/// What stands for it where the lowest bits are told once; how many, these, and the lag or the above follow.
const LAG_IF_SHIFTED: u64 = 126;
/// Less numbers have their lowest bits each, and more bits than these are not told once.
const FEWEST_SHIFTED: usize = 64;
const MOST_SHIFTED: u32 = 32;

/// Writes the plan, or reads it and ignores the one given.
fn code_plan(coder: &mut impl Coder, plan: &Plan) -> Plan {
    let mut flag = |on: bool| coder.direct(u64::from(on), 1) == 1;
    let (guess, chain, linked) = (flag(plan.guess), flag(plan.chain), flag(plan.linked));
    let next = if plan.counted { LAG_IF_COUNTED } else { plan.lag as u64 };
    let mut word = coder.direct(if plan.shift > 0 { LAG_IF_SHIFTED } else { next }, 7);
    let (mut shift, mut low) = (0, 0);
    if word == LAG_IF_SHIFTED {
        shift = (coder.direct(plan.shift.into(), 6) as u32).min(MOST_SHIFTED);
        low = coder.direct(plan.low, shift);
        word = coder.direct(next, 7);
    }
    let (counted, lag) = match word {
        LAG_IF_COUNTED => (true, coder.direct(plan.lag as u64, 7)),
        lag => (false, lag),
    };
    let lag = lag as usize;
    let base = unzigzag(direct_number(coder, zigzag(plan.base)));
    let widest = coder.direct(plan.widest.into(), 7) as u32;
    let len = coder.direct(plan.list.len() as u64, 8) as usize;
    let mut list = Vec::with_capacity(len);
    let mut classes = vec![Bit::default(); 128];
    let mut before = 0u64;
    for i in 0..len {
        let gap = plan.list.get(i).map_or(0, |distance| distance.wrapping_sub(before));
        before = before.wrapping_add(number(coder, &mut classes, None, 7, gap));
        list.push(before);
    }
    Plan { counted, shift, low, guess, chain, linked, lag, base, widest: widest.min(64), list }
}

/// The numbers in order, and how often each stands if the plan says so: what is written, or read.
fn code(
    coder: &mut impl Coder,
    plan: &Plan,
    total: u64,
    run: impl Fn(usize) -> (i64, u64),
) -> (Vec<i64>, Vec<u64>) {
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
    let repeats = if plan.counted { REPEATS } else { 0 };
    let mut lengths = vec![Bit::default(); repeats << REPEATS_DEPTH];
    let mut details = vec![vec![Bit::default(); 65 << MODELLED]; repeats];
    let (mut symbol, mut class) = (0, 0);
    let mut counts: Vec<u64> = Vec::new();
    let mut history: Vec<i64> = Vec::with_capacity(total.min(LONGEST as u64) as usize);
    let mut left = total;
    while left > 0 && history.len() < LONGEST {
        let (value, count) = run(history.len());
        let guessed = guess.next(&history);
        let right = guessed.filter(|&(guessed, run)| coder.bit(guessed == value, &mut hits[run.min(RUNS)]));
        let mut told = |coder: &mut _| {
            let origin = plan.origin(&history);
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
        guess.learn(&history, value, right.is_some());
        history.push(value);
        let mut often = 1;
        if plan.counted {
            let by = value as usize % REPEATS;
            let table = &mut lengths[by << REPEATS_DEPTH..(by + 1) << REPEATS_DEPTH];
            let more = number(coder, table, Some(&mut details[by]), REPEATS_DEPTH, count.wrapping_sub(1));
            often = more.saturating_add(1);
            counts.push(often);
        }
        left = left.saturating_sub(often);
    }
    (history, counts)
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
        sum = sum << piece | coder.direct(value >> left & ((1 << piece) - 1), piece);
    }
    sum
}

fn direct_number(coder: &mut impl Coder, value: u64) -> u64 {
    let class = coder.direct(bits(value).into(), 7).min(64) as u32;
    let (high, low) = (class / 2, class - class / 2);
    let top = coder.direct(value.checked_shr(low).unwrap_or(0) & mask(high), high);
    top.checked_shl(low).unwrap_or(0) | coder.direct(value & mask(low), low)
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
