//! How a block is coded: chosen once, from the numbers themselves.

use super::{bits, unzigzag, zigzag};

/// Longest distance at which a number is compared with an earlier one.
pub const LONGEST_LAG: usize = 64;
/// How many numbers are looked at to find that distance.
const SAMPLE: usize = 256;
/// The most numbers with a place in the list.
const LONGEST_LIST: usize = 255;
/// With more symbols than this the one before is no help: there are too few numbers to learn from.
const LONGEST_CHAIN: usize = 31;
/// Numbers that must agree before the one after them is guessed.
const CONTEXT: usize = 4;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Each number is told with how often it stands in a row.
    pub counted: bool,
    /// So many of the lowest bits are the same in all numbers, and told once. All else is said of what is above them.
    pub shift: u32,
    pub low: u64,
    /// What followed the last four numbers before is tried first.
    pub guess: bool,
    /// Frequent distances, ascending: told by their place.
    pub list: Vec<u64>,
    /// The place depends on the place before.
    pub chain: bool,
    /// Numbers are told by their distance from that many places before; from `base` if it is zero.
    pub lag: usize,
    pub base: i64,
    /// The length of a distance depends on the length before.
    pub linked: bool,
    /// The length of the longest distance, in bits.
    pub widest: u32,
}

impl Plan {
    /// The plan that promises least. Guessing may only seem to pay: then there is a second one without it.
    pub fn of(values: &[i64]) -> (Plan, Option<Plan>) {
        let all: Vec<usize> = (0..values.len()).collect();
        let without = || Plan::cheapest(values, &all);
        match unguessed(values) {
            Some((rest, sure)) => {
                let with = Plan { guess: true, ..Plan::cheapest(values, &rest) };
                (with, (!sure).then(without))
            }
            None => (without(), None),
        }
    }

    fn cheapest(values: &[i64], rest: &[usize]) -> Plan {
        let base = rest.iter().map(|&i| values[i]).min().unwrap_or(0);
        let mut plan = Plan { base, ..Plan::default() };
        let cost = plan.complete(values, rest);
        if let Some(lag) = best_lag(values, rest) {
            let mut other = Plan { lag, ..Plan::default() };
            if other.complete(values, rest) < cost {
                return other;
            }
        }
        plan
    }

    /// Chooses everything but where distances are measured from. Returns the cost in bits, times 2^16.
    fn complete(&mut self, values: &[i64], rest: &[usize]) -> u64 {
        let residuals: Vec<u64> =
            rest.iter().map(|&i| self.residual(values[i], self.origin(&values[..i]))).collect();
        let each = self.cost_of_distances(&residuals);
        let Some(cost) = self.choose_list(&residuals, each) else { return each * residuals.len() as u64 };
        // What is in the list is no distance any more.
        let outside: Vec<u64> =
            residuals.into_iter().filter(|residual| self.list.binary_search(residual).is_err()).collect();
        cost + self.cost_of_distances(&outside) * outside.len() as u64
    }

    /// What the next number is measured from, `history` being all before it.
    #[inline]
    pub fn origin(&self, history: &[i64]) -> i64 {
        match history.len().checked_sub(self.lag.max(1)) {
            Some(before) if self.lag > 0 => history[before],
            _ => self.base,
        }
    }

    #[inline]
    pub fn residual(&self, value: i64, origin: i64) -> u64 {
        let distance = value.wrapping_sub(origin);
        if self.lag == 0 { distance as u64 } else { zigzag(distance) }
    }

    #[inline]
    pub fn value(&self, residual: u64, origin: i64) -> i64 {
        origin.wrapping_add(if self.lag == 0 { residual as i64 } else { unzigzag(residual) })
    }

    /// Bits a number costs as a distance, times 2^16. Notes the widest, and whether one length tells of the next.
    fn cost_of_distances(&mut self, residuals: &[u64]) -> u64 {
        let mut counts = [0u32; 65];
        let mut pairs = vec![0u32; 65 * 65];
        let (mut before, mut below) = (0, 0u64);
        for &residual in residuals {
            let class = bits(residual) as usize;
            counts[class] += 1;
            pairs[before * 65 + class] += 1;
            below += class.saturating_sub(1) as u64;
            before = class;
        }
        self.widest = counts.iter().rposition(|&n| n > 0).unwrap_or(0) as u32;
        let alone = entropy(&counts);
        let linked: u64 = pairs.chunks(65).map(entropy).sum();
        let used = pairs.iter().filter(|&&n| n > 0).count() as u64;
        // Every length in every context has to be learnt.
        self.linked = linked + (used << 16) * 6 < alone;
        let total = alone.min(linked) + (below << 16);
        total / (residuals.len() as u64).max(1)
    }

    /// Takes in what is cheaper told by its place than by a distance, which costs `each`. Returns what all places and
    /// the list itself cost, if there is one.
    fn choose_list(&mut self, residuals: &[u64], each: u64) -> Option<u64> {
        let mut sorted = residuals.to_vec();
        sorted.sort_unstable();
        let total = residuals.len() as u64;
        let mut runs: Vec<(u64, u64)> = sorted
            .chunk_by(|a, b| a == b)
            .map(|run| (run.len() as u64, run[0]))
            .filter(|&(count, _)| count >= 3)
            .collect();
        runs.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        runs.truncate(LONGEST_LIST);
        let entry = each.max(4 << 16);
        runs.retain(|&(count, _)| count * each > count * (lg(total) - lg(count)) + entry);
        let inside: u64 = runs.iter().map(|run| run.0).sum();
        let outside = total - inside;
        let counts: Vec<u32> = runs.iter().map(|run| run.0 as u32).chain([outside as u32]).collect();
        let list = runs.len() as u64 * entry + (8 << 16);
        let alone = entropy(&counts);
        if runs.is_empty() || alone + list + outside * each >= total * each {
            return None;
        }
        self.list = runs.into_iter().map(|run| run.1).collect();
        self.list.sort_unstable();
        let symbols = self.list.len() + 1;
        if symbols > LONGEST_CHAIN {
            return Some(alone + list);
        }
        let mut pairs = vec![0u32; symbols * symbols];
        let mut before = 0;
        for residual in residuals {
            let symbol = self.list.binary_search(residual).unwrap_or(symbols - 1);
            pairs[before * symbols + symbol] += 1;
            before = symbol;
        }
        let used = pairs.iter().filter(|&&n| n > 0).count() as u64;
        let chained: u64 = pairs.chunks(symbols).map(entropy).sum::<u64>() + (used << 16) * 4;
        self.chain = chained < alone;
        Some(chained.min(alone) + list)
    }
}

/// The numbers that a guess does not get right, if guessing is right most of the time; and whether it is nearly always.
fn unguessed(values: &[i64]) -> Option<(Vec<usize>, bool)> {
    let mut guess = Guess::new(true);
    let (mut tries, mut hits) = (0, 0);
    let mut rest = Vec::new();
    for (i, &value) in values.iter().enumerate() {
        let guessed = guess.next(&values[..i]);
        let hit = guessed.is_some_and(|(guessed, _)| guessed == value);
        guess.learn(&values[..i], value, hit);
        tries += usize::from(guessed.is_some());
        hits += usize::from(hit);
        if !hit {
            rest.push(i);
        }
    }
    (hits >= 8 && hits * 3 >= tries * 2).then_some((rest, hits * 50 >= tries * 49))
}

/// The distance at which numbers are nearest to each other.
pub fn best_lag(values: &[i64], rest: &[usize]) -> Option<usize> {
    let sample = &rest[..rest.len().min(SAMPLE)];
    let apart = |&lag: &usize| -> u64 {
        let (mut sum, mut before) = (0, 0);
        for &i in sample {
            let distance = values[i].wrapping_sub(if i < lag { 0 } else { values[i - lag] });
            // A distance that comes again and again is as good as none.
            if distance != before {
                sum += u64::from(bits(zigzag(distance)));
            }
            before = distance;
        }
        sum
    };
    (1..=LONGEST_LAG.min(values.len() / 8)).min_by_key(apart)
}

/// Bits, times 2^16, of telling apart that many of each.
pub fn entropy(counts: &[u32]) -> u64 {
    let total: u64 = counts.iter().map(|&n| u64::from(n)).sum();
    let parts: u64 = counts.iter().map(|&n| u64::from(n) * lg(n.into())).sum();
    (total * lg(total)).saturating_sub(parts)
}

/// The binary logarithm times 2^16, to a hundredth of a bit; 0 for 0.
fn lg(x: u64) -> u64 {
    let Some(whole) = x.checked_ilog2() else { return 0 };
    let part = if whole > 16 { x >> (whole - 16) } else { x << (16 - whole) } & 0xffff;
    // log2(1 + f) is close to f + 0.344 f (1 - f).
    let bend = (((part * (65536 - part)) >> 16) * 22_545) >> 16;
    (u64::from(whole) << 16) + part + bend
}

/// Guesses that what followed the same numbers last time follows again.
pub struct Guess {
    /// By hash of four numbers: one more than where what followed them last stands.
    after: Vec<u16>,
    next: Option<usize>,
    run: usize,
    on: bool,
}

impl Guess {
    const TABLE: u32 = 12;

    pub fn new(on: bool) -> Guess {
        Guess { after: if on { vec![0; 1 << Guess::TABLE] } else { Vec::new() }, next: None, run: 0, on }
    }

    /// The guess, and how many in a row were right.
    #[inline]
    pub fn next(&self, history: &[i64]) -> Option<(i64, usize)> {
        let at = self.next.filter(|_| self.on)?;
        history.get(at).map(|&value| (value, self.run))
    }

    /// `history` is without the new `value`.
    #[inline]
    pub fn learn(&mut self, history: &[i64], value: i64, hit: bool) {
        if !self.on {
            return;
        }
        self.run = if hit { self.run + 1 } else { 0 };
        let len = history.len() + 1;
        if len < CONTEXT {
            return;
        }
        let tail = &history[len - CONTEXT..];
        let mix = |hash: u64, &v: &i64| (hash ^ v as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let hash = mix(tail.iter().fold(0, mix), &value);
        let slot =
            &mut self.after[(hash.wrapping_mul(0xd6e8_feb8_6659_fd93) >> (64 - Guess::TABLE)) as usize];
        let known = usize::from(*slot);
        self.next = match self.next {
            Some(at) if hit => Some(at + 1),
            _ if known >= CONTEXT
                && history.get(known - CONTEXT..known - 1) == Some(tail)
                && history.get(known - 1) == Some(&value) =>
            {
                Some(known)
            }
            _ => None,
        };
        *slot = len as u16;
    }
}
