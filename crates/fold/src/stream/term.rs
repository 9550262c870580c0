//! What one term holds.

use super::summary::{Join, Summary};
use super::{MIN_STRIDE, Term};

impl Term {
    /// How many numbers; a block knows for itself.
    pub(super) fn len(&self) -> u64 {
        match *self {
            Term::Value(_) => 1,
            Term::Stride { count, .. } => count,
            Term::Block(_) => 0,
        }
    }

    pub(super) fn is_sound(&self) -> bool {
        match *self {
            Term::Value(_) | Term::Block(_) => true,
            Term::Stride { start, step, count } => {
                let end = i128::from(count.saturating_sub(1)).checked_mul(step.into());
                let end = end.and_then(|end| end.checked_add(start.into()));
                step != 0 && count >= MIN_STRIDE && end.is_some_and(|end| i64::try_from(end).is_ok())
            }
        }
    }

    /// Its number at a place, also beyond its count.
    #[inline]
    pub(super) fn at(&self, place: u64) -> i64 {
        match *self {
            Term::Value(value) => value,
            Term::Block(_) => 0,
            Term::Stride { start, step, .. } => {
                // |place * step| is at most 2^127 - 2^63, so the sum is within i128.
                let exact = i128::from(start) + i128::from(place) * i128::from(step);
                exact.clamp(i64::MIN.into(), i64::MAX.into()) as i64
            }
        }
    }

    /// Of its first `n` numbers, also beyond its count.
    pub(super) fn summary(&self, n: u64) -> Summary {
        if n == 0 {
            return Summary::default();
        }
        match *self {
            Term::Block(_) => Summary::default(),
            Term::Value(value) => Summary::of(value).times(n),
            Term::Stride { start, step, .. } => {
                // Beyond `climbing` numbers it stays at the end of i64.
                let end = if step > 0 { i64::MAX } else { i64::MIN };
                let room = i128::from(end) - i128::from(start);
                let climbing = if step == 0 { n.into() } else { (room / i128::from(step) + 1).min(n.into()) };
                let top = i128::from(start) + (climbing - 1) * i128::from(step);
                let flat = i128::from(n) - climbing;
                let sum = (i128::from(start) + top) * climbing / 2 + i128::from(end) * flat;
                let last = self.at(n - 1);
                Summary { len: n, sum, min: start.min(last), max: start.max(last) }
            }
        }
    }
}
