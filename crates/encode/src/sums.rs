//! Displacements that follow from the counts beside them (`sdispls` of `MPI_Alltoallv`): each is the one before, plus that one's
//! count times a unit, plus a gap. Three numbers tell all of them, and a length below 0 says so; so the symbol is the same
//! whether they follow or not.

use crate::wire;

/// How displacements follow from counts. All arithmetic wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) first: i64,
    pub(crate) gap: i64,
    /// 1 where displacements are counted as counts are, the size of an element where they are bytes.
    pub(crate) unit: i64,
}

impl Rule {
    /// The rule of `n` displacements, if there is one.
    pub(crate) fn of(
        n: usize,
        count: impl Fn(usize) -> i64,
        displacement: impl Fn(usize) -> i64,
    ) -> Option<Rule> {
        if n == 0 || (0..n).any(|k| wire::as_named(count(k)).is_some()) {
            return None;
        }
        let first = displacement(0);
        if n == 1 {
            return Some(Rule { first, gap: 0, unit: 1 });
        }
        let rise = |k: usize| displacement(k + 1).wrapping_sub(displacement(k));
        let unit = match (1..n - 1).find(|&k| count(k) != count(0)) {
            Some(k) => {
                let (rises, counts) = (rise(k).wrapping_sub(rise(0)), count(k).wrapping_sub(count(0)));
                quotient(rises, counts)?
            }
            None => quotient(rise(0), count(0)).unwrap_or(1),
        };
        let gap = rise(0).wrapping_sub(unit.wrapping_mul(count(0)));
        let rule = Rule { first, gap, unit };
        (0..n - 1).all(|k| displacement(k + 1) == rule.after(displacement(k), count(k))).then_some(rule)
    }

    /// The displacement after one that has so many elements.
    pub(crate) fn after(&self, displacement: i64, count: i64) -> i64 {
        displacement.wrapping_add(self.unit.wrapping_mul(count)).wrapping_add(self.gap)
    }
}

/// Without a rest.
fn quotient(a: i64, b: i64) -> Option<i64> {
    (a.checked_rem(b)? == 0).then_some(a / b)
}

/// What stands for the length of `n` displacements that follow a rule.
pub(crate) fn length(n: usize) -> i64 {
    -1 - n as i64
}

/// How many displacements follow a rule, if that is what the length says.
pub(crate) fn summed(length: i64) -> Option<i64> {
    (length < 0).then_some(-1 - length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counts: &[i64], displacements: &[i64]) -> Option<(i64, i64, i64)> {
        let rule = Rule::of(counts.len(), |k| counts[k], |k| displacements[k])?;
        Some((rule.first, rule.gap, rule.unit))
    }

    #[test]
    fn sums_are_found() {
        assert_eq!(of(&[3, 1, 4, 1], &[0, 3, 4, 8]), Some((0, 0, 1)));
        assert_eq!(of(&[0, 0, 4, 1], &[7, 7, 7, 11]), Some((7, 0, 1)));
        // In bytes, with a gap, and with both.
        assert_eq!(of(&[3, 1, 4, 1], &[0, 12, 16, 32]), Some((0, 0, 4)));
        assert_eq!(of(&[3, 1, 4, 1], &[0, 5, 8, 14]), Some((0, 2, 1)));
        assert_eq!(of(&[3, 1, 4, 1], &[8, 8 + 13, 8 + 18, 8 + 35]), Some((8, 1, 4)));
        assert_eq!(of(&[2, 2, 2], &[0, 2, 4]), Some((0, 0, 1)));
        assert_eq!(of(&[2, 2, 2], &[0, 8, 16]), Some((0, 0, 4)));
        assert_eq!(of(&[2, 2, 2], &[0, 5, 10]), Some((0, 3, 1)));
        assert_eq!(of(&[1, 2, 3], &[6, 5, 3]), Some((6, 0, -1)));
        assert_eq!(of(&[9], &[5]), Some((5, 0, 1)));
    }

    #[test]
    fn what_is_no_sum_has_no_rule() {
        assert_eq!(of(&[], &[]), None);
        assert_eq!(of(&[3, 1, 4, 1], &[0, 3, 4, 9]), None);
        assert_eq!(of(&[3, 1, 4, 1], &[0, 0, 5, 5]), None);
        // A reader takes such a count for a constant.
        assert_eq!(of(&[wire::named_value(3), 1], &[0, wire::named_value(3)]), None);
        assert_eq!(of(&[1, wire::named_value(3)], &[0, 1]), None);
    }

    #[test]
    fn sums_wrap() {
        let (counts, displacements) = ([i64::MAX, i64::MAX, 1], [i64::MAX, -2, i64::MAX - 2]);
        assert_eq!(of(&counts, &displacements), Some((i64::MAX, 0, 1)));
        assert_eq!(of(&[-1, 1, 0], &[i64::MIN, 0, i64::MIN]), Some((i64::MIN, i64::MIN, 0)));
    }

    #[test]
    fn lengths_tell_them_apart() {
        assert_eq!(summed(length(0)), Some(0));
        assert_eq!(summed(length(64)), Some(64));
        assert_eq!(summed(64), None);
        assert_eq!(summed(0), None);
    }
}
