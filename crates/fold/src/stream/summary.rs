//! Sums and extremes of a sequence without expanding it.

use crate::grammar::{Item, Symbol, bottom_up};

/// Something that is known of a stretch of numbers and can be joined.
pub(super) trait Join: Copy + Default {
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

/// The same of running sums: all relative to where the stretch begins. Exact as long as nothing leaves 127 bits.
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

    /// As numbers; those beyond `i64` are taken to its ends.
    pub fn summary(self) -> Summary {
        let clamp = |x: i128| x.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        if self.len == 0 {
            return Summary::default();
        }
        Summary { len: self.len, sum: self.sum, min: clamp(self.min), max: clamp(self.max) }
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
    let Some((&last, before)) = rules.first().and_then(|start| start.split_last()) else {
        return S::default();
    };
    let mut bodies = vec![S::default(); rules.len()];
    let one = |bodies: &[S], symbol| match symbol {
        Symbol::Terminal(t) => whole(t),
        Symbol::Rule(r) => bodies.get(r as usize).copied().unwrap_or_default(),
    };
    for rule in bottom_up(rules, [0]) {
        let body = rules[rule as usize].iter();
        bodies[rule as usize] =
            body.fold(S::default(), |sum, item| sum.then(one(&bodies, item.symbol).times(item.count)));
    }
    let mut total = S::default();
    let mut items = before;
    let mut open = Some(last);
    // Each round takes all that fits whole and goes one level down into what does not.
    while total.len() < n {
        let mut cut = None;
        for item in items {
            let (left, part) = (n - total.len(), one(&bodies, item.symbol));
            let fits = left.checked_div(part.len()).unwrap_or(u64::MAX).min(item.count);
            total = total.then(part.times(fits));
            if fits < item.count {
                cut = Some(item.symbol);
                break;
            }
        }
        if let (None, Some(last)) = (cut, open) {
            let (left, round) = (n - total.len(), one(&bodies, last.symbol));
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
