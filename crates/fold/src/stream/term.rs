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
            Term::Stride { step, count, .. } => step != 0 && count >= MIN_STRIDE,
        }
    }

    /// Its number at a place, also beyond its count.
    #[inline]
    pub(super) fn at(&self, place: u64) -> i64 {
        match *self {
            Term::Value(value) => value,
            Term::Block(_) => 0,
            Term::Stride { start, step, .. } => start.wrapping_add(step.wrapping_mul(place as i64)),
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
            Term::Stride { start, step, .. } => Summary::progression(start, step, n),
        }
    }
}
