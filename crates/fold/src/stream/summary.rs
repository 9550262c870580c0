//! Sums and extremes of a sequence without expanding it.

use crate::grammar::{Item, Symbol, bottom_up};

/// Something that is known of a stretch of numbers and can be joined.
pub(crate) trait Join: Copy + Default {
    fn len(&self) -> u64;
    fn then(self, next: Self) -> Self;
    fn times(self, count: u64) -> Self;
}

/// What is asked of a stretch of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Summary {
    pub len: u64,
    pub sum: i128,
    pub min: i64,
    pub max: i64,
}

impl Default for Summary {
    fn default() -> Summary {
        Summary { len: 0, sum: 0, min: i64::MAX, max: i64::MIN }
    }
}

impl Summary {
    pub fn of(value: i64) -> Summary {
        Summary { len: 1, sum: value.into(), min: value, max: value }
    }

    /// Of `start, start + step, ...`, which wrap: `n` numbers, one at least.
    pub fn progression(start: i64, step: i64, n: u64) -> Summary {
        // |n * step| is at most 2^127 - 2^63, so that this is within i128.
        let last = i128::from(start) + i128::from(n - 1) * i128::from(step);
        if let Ok(last) = i64::try_from(last) {
            let sum = (i128::from(start) + i128::from(last)) * i128::from(n) / 2;
            return Summary { len: n, sum, min: start.min(last), max: start.max(last) };
        }
        // From here on numbers are told by how far they are above the least of i64.
        let (a, b, n) = (u128::from(step as u64), u128::from(start as u64 ^ LEAST), u128::from(n));
        // The numbers without their wraps, less 2^64 for each. What these have too many of 2^128 cancels out.
        let wraps = floor_sum(n, ALL, a, b);
        let sum = n.wrapping_mul(b).wrapping_add(a.wrapping_mul(pairs(n))).wrapping_sub(wraps << 64);
        let sum = sum.wrapping_sub(n.wrapping_mul(LEAST.into())) as i128;
        // How many numbers are below.
        let below = |end: u128| wraps.wrapping_sub(floor_sum(n, ALL, a, b + ALL - end)).wrapping_add(n);
        let lowest = least_that(|end| below(end + 1) > 0);
        let highest = least_that(|end| below(end + 1) == n);
        let value = |above: u64| (above ^ LEAST) as i64;
        Summary { len: n as u64, sum, min: value(lowest), max: value(highest) }
    }
}

/// How many numbers there are, and how far zero is above the least.
const ALL: u128 = 1 << 64;
const LEAST: u64 = 1 << 63;

/// The sum of `(a * i + b) / m`, rounded down, for i from 0 to n - 1, but for whole 2^128. `n` and `a` are below 2^64 and `m`
/// is at most that. As in Euclid's algorithm: what is under a line is what is beside it, with axes changed.
fn floor_sum(mut n: u128, mut m: u128, mut a: u128, mut b: u128) -> u128 {
    let mut sum = 0u128;
    loop {
        sum = sum.wrapping_add(pairs(n).wrapping_mul(a / m)).wrapping_add(n.wrapping_mul(b / m));
        (a, b) = (a % m, b % m);
        let end = a * n + b;
        if end < m {
            return sum;
        }
        (n, b) = (end / m, end % m);
        (m, a) = (a, m);
    }
}

/// How many pairs there are of so many, at most 2^64.
fn pairs(n: u128) -> u128 {
    if n.is_multiple_of(2) { n / 2 * n.wrapping_sub(1) } else { (n - 1) / 2 * n }
}

/// The least number of which that is so, if it is so of all above.
fn least_that(is_so: impl Fn(u128) -> bool) -> u64 {
    let (mut low, mut high) = (0, ALL - 1);
    while low < high {
        let middle = (low + high) / 2;
        match is_so(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    low as u64
}

impl Join for Summary {
    fn len(&self) -> u64 {
        self.len
    }

    fn then(self, next: Summary) -> Summary {
        Summary {
            len: self.len.saturating_add(next.len),
            sum: self.sum.saturating_add(next.sum),
            min: self.min.min(next.min),
            max: self.max.max(next.max),
        }
    }

    fn times(self, count: u64) -> Summary {
        if count == 0 {
            return Summary::default();
        }
        Summary { len: self.len.saturating_mul(count), sum: self.sum.saturating_mul(count.into()), ..self }
    }
}

/// The same of running sums that do not wrap: all relative to where the stretch begins. Exact as long as nothing leaves 127
/// bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Climb {
    pub len: u64,
    /// Where it ends.
    pub total: i128,
    pub sum: i128,
    pub min: i128,
    pub max: i128,
}

impl Default for Climb {
    fn default() -> Climb {
        Climb { len: 0, total: 0, sum: 0, min: i128::MAX, max: i128::MIN }
    }
}

impl Climb {
    pub fn of(delta: i64) -> Climb {
        let delta = delta.into();
        Climb { len: 1, total: delta, sum: delta, min: delta, max: delta }
    }

    /// As numbers, unless some are beyond `i64`.
    pub fn summary(self) -> Option<Summary> {
        if self.len == 0 {
            return Some(Summary::default());
        }
        let (min, max) = (i64::try_from(self.min).ok()?, i64::try_from(self.max).ok()?);
        Some(Summary { len: self.len, sum: self.sum, min, max })
    }
}

impl Join for Climb {
    fn len(&self) -> u64 {
        self.len
    }

    fn then(self, next: Climb) -> Climb {
        if self.len == 0 || next.len == 0 {
            return if self.len == 0 { next } else { self };
        }
        let lift = self.total.saturating_mul(next.len.into());
        Climb {
            len: self.len.saturating_add(next.len),
            total: self.total.saturating_add(next.total),
            sum: self.sum.saturating_add(next.sum).saturating_add(lift),
            min: self.min.min(next.min.saturating_add(self.total)),
            max: self.max.max(next.max.saturating_add(self.total)),
        }
    }

    fn times(self, count: u64) -> Climb {
        if count == 0 {
            return Climb::default();
        }
        let n = i128::from(count);
        let highest = self.total.saturating_mul(n - 1);
        let pairs = if n % 2 == 0 { n / 2 * (n - 1) } else { (n - 1) / 2 * n };
        let lifts = pairs.saturating_mul(self.total).saturating_mul(self.len.into());
        Climb {
            len: self.len.saturating_mul(count),
            total: self.total.saturating_mul(n),
            sum: self.sum.saturating_mul(n).saturating_add(lifts),
            // From round to round it moves one way.
            min: self.min.saturating_add(highest.min(0)),
            max: self.max.saturating_add(highest.max(0)),
        }
    }
}

/// Of the first `n` numbers of an endless sequence. `whole` is what each terminal holds, `part` the beginning of one;
/// `endless` goes on where the last item of the start rule is one that does not repeat.
pub(super) fn summary<S: Join>(
    rules: &[Vec<Item>],
    n: u64,
    whole: impl Fn(u32) -> S,
    part: impl Fn(u32, u64) -> S,
    endless: impl Fn(u32, u64) -> Option<S>,
) -> S {
    of_first(rules, &of_rules(rules, &whole), n, whole, part, endless)
}

fn one<S: Join>(bodies: &[S], whole: impl Fn(u32) -> S, symbol: Symbol) -> S {
    match symbol {
        Symbol::Terminal(t) => whole(t),
        Symbol::Rule(r) => bodies.get(r as usize).copied().unwrap_or_default(),
    }
}

/// By rule, of all that it stands for.
pub(crate) fn of_rules<S: Join>(rules: &[Vec<Item>], whole: impl Fn(u32) -> S) -> Vec<S> {
    let mut bodies = vec![S::default(); rules.len()];
    for rule in bottom_up(rules, [0]) {
        let body = rules[rule as usize].iter();
        bodies[rule as usize] = body
            .fold(S::default(), |sum, item| sum.then(one(&bodies, &whole, item.symbol).times(item.count)));
    }
    bodies
}

/// The same as [`summary`], for who has what the rules stand for and asks more than once. Of a sequence that ends, `n` must
/// not be beyond its end.
pub(crate) fn of_first<S: Join>(
    rules: &[Vec<Item>],
    bodies: &[S],
    n: u64,
    whole: impl Fn(u32) -> S,
    part: impl Fn(u32, u64) -> S,
    endless: impl Fn(u32, u64) -> Option<S>,
) -> S {
    let Some((&last, before)) = rules.first().and_then(|start| start.split_last()) else {
        return S::default();
    };
    let mut total = S::default();
    let mut items = before;
    let mut open = Some(last);
    // Each round takes all that fits whole and goes one level down into what does not.
    while total.len() < n {
        let mut cut = None;
        for item in items {
            let (left, part) = (n - total.len(), one(bodies, &whole, item.symbol));
            let fits = left.checked_div(part.len()).unwrap_or(u64::MAX).min(item.count);
            total = total.then(part.times(fits));
            if fits < item.count {
                cut = Some(item.symbol);
                break;
            }
        }
        if let (None, Some(last)) = (cut, open) {
            let (left, round) = (n - total.len(), one(bodies, &whole, last.symbol));
            if let Symbol::Terminal(t) = last.symbol
                && let Some(rest) = endless(t, left)
            {
                return total.then(rest);
            }
            if round.len() == 0 {
                return total;
            }
            total = total.then(round.times(left / round.len()));
            cut = Some(last.symbol);
        }
        open = None;
        match cut {
            Some(Symbol::Rule(r)) => items = &rules[r as usize],
            Some(Symbol::Terminal(t)) => return total.then(part(t, n - total.len())),
            None => return total,
        }
    }
    total
}
