//! Numbers by static bins: a few nanoseconds each, where [`encode`](super::encode) takes a hundred.
//!
//! Each number is told by its distance from the number some places before, or from one number for all. Distances fall
//! into bins that grow with them; how many fall into each bin is told first, then for each number its bin, in the share
//! of the range that the bin's count gives it, and its place within the bin in plain bits.
//!
//! ```
//! use refrain_fold::entropy::bins::{decode, encode};
//! let numbers: Vec<i64> = (0..1000).map(|i: i64| 7 * i + i * i % 17).collect();
//! let (mut bytes, mut again) = (encode(&numbers), Vec::new());
//! decode(&bytes, numbers.len(), &mut again).unwrap();
//! assert_eq!(again, numbers);
//! bytes.extend([1; 16]);
//! assert!(decode(&bytes, numbers.len(), &mut again).is_err());
//! ```

use super::plan::{LONGEST_LAG, best_lag, entropy};
use super::range::{Bit, Coder, Decoder, Encoder};
use super::{Damaged, bits, direct_number, number, unzigzag, zigzag};

/// More numbers than this are not one block.
pub const LONGEST: usize = 1 << 20;

/// The counts of all bins add up to 2 to this power.
const SCALE: u32 = 14;
/// Most bits below the highest that choose a bin.
const FINEST: u32 = 8;
/// Bins that are used at most; each needs a part of the scale.
const MOST_BINS: usize = 1 << 12;
/// How many numbers are looked at to choose what distances are measured from.
const SAMPLE: usize = 1 << 10;

/// What distances are and how they fall into bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan {
    /// Distances are from so many places before; from 0 if it is zero.
    lag: usize,
    /// The least distance, or if `around` is set one in the middle, below and above which the others are.
    base: i64,
    around: bool,
    /// Bits below the highest that choose a bin.
    fine: u32,
}

impl Plan {
    #[inline]
    fn residual(&self, value: i64, origin: i64) -> u64 {
        let distance = value.wrapping_sub(origin).wrapping_sub(self.base);
        if self.around { zigzag(distance) } else { distance as u64 }
    }

    #[inline]
    fn value(&self, residual: u64, origin: i64) -> i64 {
        let distance = if self.around { unzigzag(residual) } else { residual as i64 };
        origin.wrapping_add(self.base).wrapping_add(distance)
    }
}

/// The bin of a residual, and how many bits are below it.
#[inline]
fn bin(residual: u64, fine: u32) -> (usize, u32) {
    let below = bits(residual >> fine).saturating_sub(1);
    // Residuals below 2^(fine + 1) have a bin each.
    let bin = (u64::from(below) << fine) + (residual >> below);
    (bin as usize, below)
}

/// The least residual of a bin, and how many bits are below it.
#[inline]
fn start(bin: usize, fine: u32) -> (u64, u32) {
    let below = (bin as u64 >> fine).saturating_sub(1);
    (((bin as u64) - (below << fine)) << below, below as u32)
}

fn bins(fine: u32) -> usize {
    bin(u64::MAX, fine).0 + 1
}

/// The bytes of a block. At most [`LONGEST`] numbers.
pub fn encode(values: &[i64]) -> Vec<u8> {
    let mut encoder = Encoder::default();
    let Some((&first, _)) = values.split_first() else { return Vec::new() };
    let mut plan = choose(values);
    let residual = |plan: &Plan, i: usize| {
        let origin = if plan.lag == 0 { 0 } else { values[i.saturating_sub(plan.lag)] };
        plan.residual(values[i], origin)
    };
    // With distances from earlier numbers the first is told as it is.
    let told = usize::from(plan.lag > 0);
    let residuals: Vec<u64> = (told..values.len()).map(|i| residual(&plan, i)).collect();
    let (fine, counts) = coarsen(count(&residuals));
    plan.fine = fine;
    let shares = shares(&counts, residuals.len());
    code_plan(&mut encoder, &plan);
    if told > 0 {
        direct_number(&mut encoder, zigzag(first));
    }
    code_shares(&mut encoder, &shares, bins(fine));
    // By bin, from the first that is used.
    let least = shares.first().map_or(0, |share| share.0);
    let mut places = vec![(0u32, 0u32); shares.last().map_or(0, |share| share.0 + 1 - least)];
    let mut low = 0;
    for &(bin, share) in &shares {
        places[bin - least] = (low, share);
        low += share;
    }
    for residual in residuals {
        let (bin, below) = bin(residual, fine);
        let (low, share) = places[bin - least];
        encoder.share(low, share, SCALE);
        rest(&mut encoder, residual, below);
    }
    encoder.finish()
}

/// The numbers again, behind what is there. Whatever the bytes, at most `count` of them.
pub fn decode(bytes: &[u8], count: usize, into: &mut Vec<i64>) -> Result<(), Damaged> {
    if count > LONGEST {
        return Err(Damaged);
    }
    if count == 0 {
        return if bytes.is_empty() { Ok(()) } else { Err(Damaged) };
    }
    let mut decoder = Decoder::new(bytes);
    let plan = code_plan(&mut decoder, &Plan { lag: 0, base: 0, around: false, fine: 0 });
    let begin = into.len();
    if plan.fine > FINEST {
        return Err(Damaged);
    }
    if plan.lag > 0 {
        into.push(unzigzag(direct_number(&mut decoder, 0)));
    }
    let shares = code_shares(&mut decoder, &[], bins(plan.fine));
    let mut table: Vec<u16> = Vec::with_capacity(1 << SCALE);
    let mut parts = Vec::with_capacity(shares.len());
    for &(bin, share) in &shares {
        // What is left of the scale; a file may say anything.
        let share = (share as usize).min((1 << SCALE) - table.len());
        let (least, below) = start(bin, plan.fine);
        let part = parts.len() as u16;
        parts.push((table.len() as u32, share as u32, least, below));
        table.extend(std::iter::repeat_n(part, share));
    }
    if table.len() != 1 << SCALE && count > into.len() - begin {
        into.truncate(begin);
        return Err(Damaged);
    }
    for i in into.len() - begin..count {
        let part = table[decoder.target(SCALE) as usize];
        let (low, share, least, below) = parts[usize::from(part)];
        decoder.share(low, share);
        let residual = least.wrapping_add(rest(&mut decoder, 0, below));
        let origin = if plan.lag == 0 { 0 } else { into[begin + i.saturating_sub(plan.lag)] };
        into.push(plan.value(residual, origin));
    }
    if decoder.overrun() {
        into.truncate(begin);
        return Err(Damaged);
    }
    Ok(())
}

fn code_plan(coder: &mut impl Coder, plan: &Plan) -> Plan {
    let lag = coder.direct(plan.lag as u64, 7) as usize;
    let around = coder.direct(plan.around.into(), 1) == 1;
    let fine = coder.direct(plan.fine.into(), 4) as u32;
    let base = unzigzag(direct_number(coder, zigzag(plan.base)));
    Plan { lag, base, around, fine }
}

/// Which bins are used, and what part of the scale each has.
fn code_shares(coder: &mut impl Coder, shares: &[(usize, u32)], bins: usize) -> Vec<(usize, u32)> {
    let mut gaps = vec![Bit::default(); 128];
    let mut sizes = vec![Bit::default(); 128];
    let count = (coder.direct(shares.len() as u64, 13) as usize).min(MOST_BINS);
    let mut read = Vec::with_capacity(count);
    let mut next = 0usize;
    for i in 0..count {
        let &(bin, share) = shares.get(i).unwrap_or(&(0, 1));
        let gap = number(coder, &mut gaps, None, 7, (bin.saturating_sub(next)) as u64);
        let share = number(coder, &mut sizes, None, 7, u64::from(share) - 1);
        let bin = next.saturating_add(usize::try_from(gap).unwrap_or(usize::MAX)).min(bins - 1);
        read.push((bin, share.saturating_add(1).min(1 << SCALE) as u32));
        next = bin + 1;
    }
    read
}

/// The bits below a bin.
#[inline]
fn rest(coder: &mut impl Coder, residual: u64, below: u32) -> u64 {
    let (mut left, mut sum) = (below, 0);
    while left > 0 {
        let piece = left.min(32);
        left -= piece;
        sum = sum << piece | coder.direct(residual >> left & ((1 << piece) - 1), piece);
    }
    sum
}

/// What distances are measured from, decided by a sample.
fn choose(values: &[i64]) -> Plan {
    let every = values.len().div_ceil(SAMPLE / 16).max(1);
    // Runs of sixteen, spread over all.
    let sample: Vec<usize> = (0..values.len())
        .step_by(every)
        .flat_map(|from| from..(from + 16.min(every)).min(values.len()))
        .filter(|&i| i > 0)
        .collect();
    let mut lags = vec![0, 1];
    lags.extend(best_lag(values, &sample).filter(|&lag| lag > 1));
    let mut best = (u64::MAX, Plan { lag: 0, base: 0, around: false, fine: 0 });
    for lag in lags {
        let distance = |i: usize| {
            let origin = if lag == 0 { 0 } else { values[i.saturating_sub(lag)] };
            values[i].wrapping_sub(origin)
        };
        let mut distances: Vec<i64> = sample.iter().map(|&i| distance(i)).collect();
        distances.sort_unstable();
        let middle = distances.get(distances.len() / 2).copied().unwrap_or(values[0]);
        // A block has the first number as it is if distances are from earlier ones.
        let least = (usize::from(lag > 0)..values.len()).map(distance).min().unwrap_or(0);
        for (base, around) in [(least, false), (middle, true)] {
            let plan = Plan { lag, base, around, fine: 0 };
            let cost = cost(distances.iter().map(|&distance| plan.residual(distance, 0)));
            if cost < best.0 {
                best = (cost, plan);
            }
        }
    }
    best.1
}

/// Bits of so many residuals, times 2^16.
fn cost(residuals: impl Iterator<Item = u64>) -> u64 {
    const FINE: u32 = 3;
    let mut counts = vec![0u32; bins(FINE)];
    let mut plain = 0u64;
    for residual in residuals {
        let (bin, below) = bin(residual, FINE);
        counts[bin] += 1;
        plain += u64::from(below);
    }
    entropy(&counts) + (plain << 16)
}

/// Bins that are used, in order, and how many fall into each.
type Counts = Vec<(usize, u32)>;

/// How many fall into each of the finest bins, of those that are used, in order.
fn count(residuals: &[u64]) -> Counts {
    let of = |&residual: &u64| bin(residual, FINEST).0;
    // A table for few would cost more than to sort them.
    if residuals.len() < bins(FINEST) / 8 {
        let mut sorted: Vec<usize> = residuals.iter().map(of).collect();
        sorted.sort_unstable();
        return sorted.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect();
    }
    let mut counts = vec![0u32; bins(FINEST)];
    residuals.iter().for_each(|residual| counts[of(residual)] += 1);
    counts.into_iter().enumerate().filter(|&(_, count)| count > 0).collect()
}

/// Joins bins until telling their counts costs no more than it saves. The counts are of the finest bins.
fn coarsen(mut counts: Counts) -> (u32, Counts) {
    /// Bits to tell of one bin that it is used, and its count.
    const BIN: u64 = 12 << 16;
    let mut best: Option<(u64, u32, Counts)> = None;
    for fine in (0..=FINEST).rev() {
        let plain: u64 =
            counts.iter().map(|&(bin, count)| u64::from(count) * u64::from(start(bin, fine).1)).sum();
        let alone: Vec<u32> = counts.iter().map(|&(_, count)| count).collect();
        let cost = entropy(&alone) + (plain << 16) + counts.len() as u64 * BIN;
        if counts.len() <= MOST_BINS && best.as_ref().is_none_or(|best| cost < best.0) {
            best = Some((cost, fine, counts.clone()));
        }
        if fine > 0 {
            counts.iter_mut().for_each(|(at, _)| *at = bin(start(*at, fine).0, fine - 1).0);
            // Bins that have become one stand side by side.
            counts.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                kept.1 += if same { next.1 } else { 0 };
                same
            });
        }
    }
    // The coarsest are few enough.
    best.map_or((0, counts), |(_, fine, counts)| (fine, counts))
}

/// The counts as parts of the scale, none without a part.
fn shares(counts: &[(usize, u32)], total: usize) -> Vec<(usize, u32)> {
    let mut shares: Vec<(usize, u32)> = counts
        .iter()
        .map(|&(bin, count)| (bin, ((u64::from(count) << SCALE) / total as u64).max(1) as u32))
        .collect();
    let sum: u32 = shares.iter().map(|share| share.1).sum();
    let mut left = (1i64 << SCALE) - i64::from(sum);
    // What rounding left over or took too much goes to the largest, which notice it least.
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(shares[i].1), i));
    while left != 0 && !order.is_empty() {
        for &i in &order {
            let part = i64::from(shares[i].1);
            let change = if left > 0 { (part / 64 + 1).min(left) } else { -(part / 2).min(-left) };
            shares[i].1 = (part + change) as u32;
            left -= change;
            if left == 0 {
                break;
            }
        }
    }
    shares
}

const _: () = assert!(LONGEST_LAG < 128, "a lag has seven bits");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_every_number_once() {
        for fine in 0..=FINEST {
            for residual in (0..5000).chain((0..64).flat_map(|b| [(1u64 << b) - 1, 1 << b, u64::MAX >> b])) {
                let (at, below) = bin(residual, fine);
                let (least, again) = start(at, fine);
                assert_eq!(below, again, "{residual} {fine}");
                assert!(least <= residual && residual - least < 1 << below, "{residual} {fine}");
                assert!(at < bins(fine));
            }
        }
    }

    #[test]
    fn numbers_come_back() {
        let mut random = fastrand::Rng::with_seed(5);
        let shapes: [&dyn Fn(u64, u64) -> i64; 8] = [
            &|_, _| 7,
            &|i, _| i as i64 * 8,
            &|_, r| r as i64,
            &|_, r| (r % 1000) as i64 - 500,
            &|i, r| (1_700_000_000_000_000_000 + i * 5000 + r % 700) as i64,
            &|i, r| if i % 3 == 0 { i64::MIN } else { i64::MAX - (r % 3) as i64 },
            &|i, _| (i % 5 * 1000 + i) as i64,
            &|_, r| 1 << (r % 63),
        ];
        for (at, shape) in shapes.iter().enumerate() {
            for count in [0usize, 1, 2, 3, 15, 16, 17, 300, 5000, 40_000] {
                let numbers: Vec<i64> = (0..count as u64).map(|i| shape(i, random.u64(..))).collect();
                let bytes = encode(&numbers);
                let mut again = vec![9];
                decode(&bytes, count, &mut again).unwrap();
                assert!(again[0] == 9 && again[1..] == numbers, "shape {at}, {count} numbers");
            }
        }
    }

    #[test]
    fn random_numbers_take_little_more_than_they_hold() {
        let mut random = fastrand::Rng::with_seed(6);
        let numbers: Vec<i64> = (0..32_768).map(|_| (random.u64(..) >> 44) as i64).collect();
        assert!(encode(&numbers).len() < 32_768 * 20 / 8 + 300, "20 bits each");
        let times: Vec<i64> = numbers
            .iter()
            .scan(0, |time, number| {
                *time += 5000 + number % 256;
                Some(*time)
            })
            .collect();
        assert!(encode(&times).len() < 32_768 + 700, "8 bits each");
    }

    #[test]
    fn damaged_bytes_give_an_error_or_numbers() {
        let mut random = fastrand::Rng::with_seed(8);
        let numbers: Vec<i64> = (0..500).map(|i| i * 3 + (random.u64(..) % 9) as i64).collect();
        let good = encode(&numbers);
        for at in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            let mut into = Vec::new();
            let _ = decode(&bytes, 500, &mut into);
            assert!(into.len() <= 500);
        }
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..random.u64(..) % 60).map(|_| random.u64(..) as u8).collect();
            let _ = decode(&bytes, 1000, &mut Vec::new());
        }
    }
}
