//! Tallies of a symbol's occurrences apart by what two of their numbers are.

use super::Tally;

/// Of a symbol with more different classes the second number does not count.
pub const MOST: usize = 16;

/// So many classes there are at most where the second number does not count: one for each length.
pub const LENGTHS: usize = 65;

/// Occurrences of a symbol that are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// What the occurrences have in common.
    pub kind: Kind,
    /// How many occurrences there are.
    pub count: u64,
    /// What was measured of them.
    pub tally: Tally,
}

/// In what they are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Kind {
    /// How many bits the first number has (for MPI: a count of elements).
    pub bits: u8,
    /// The second number (for MPI: a peer); 0 where it does not count.
    pub value: i64,
}

impl Kind {
    /// Numbers below zero have no bits.
    #[inline]
    pub fn new(first: i64, value: i64) -> Kind {
        Kind { bits: (64 - first.max(0).leading_zeros()) as u8, value }
    }
}

/// The classes of one symbol. None is there where they are not known, or where all occurrences are alike and their
/// numbers say how.
///
/// Which classes there are does not depend on the order in which occurrences come or recordings are joined: the second
/// number stops to count where all together have more than [`MOST`] classes, and a part has no more than the whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Classes {
    /// Whether the second number does not count.
    pub together: bool,
    /// In order of kind, none twice.
    list: Vec<Class>,
}

impl Tally {
    /// Of no occurrence.
    pub const NONE: Tally = Tally { total: 0, min: u64::MAX, max: 0 };
}

impl Classes {
    /// What may be in any order.
    pub fn new(together: bool, list: impl IntoIterator<Item = Class>) -> Classes {
        let mut classes = Classes { together, list: Vec::new() };
        list.into_iter().for_each(|class| classes.add(class));
        classes
    }

    /// In order of kind, none twice.
    pub fn list(&self) -> &[Class] {
        &self.list
    }

    /// Nothing is known of classes.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds occurrences to the class of their kind.
    pub fn add(&mut self, mut class: Class) {
        if self.together {
            class.kind.value = 0;
        }
        match self.list.binary_search_by_key(&class.kind, |known| known.kind) {
            Ok(at) => {
                let known = &mut self.list[at];
                known.count = known.count.saturating_add(class.count);
                known.tally.add(class.tally);
            }
            Err(at) => {
                self.list.insert(at, class);
                if self.list.len() > MOST {
                    self.put_together();
                }
            }
        }
    }

    fn put_together(&mut self) {
        if !self.together {
            self.together = true;
            std::mem::take(&mut self.list).into_iter().for_each(|class| self.add(class));
        }
    }

    /// With those of other occurrences of the symbol. If either are not known, all are not.
    pub fn join(&mut self, other: &Classes) {
        if self.is_empty() || other.is_empty() {
            *self = Classes::default();
            return;
        }
        if other.together {
            self.put_together();
        }
        other.list.iter().for_each(|class| self.add(*class));
    }

    /// Of all of them together; `None` if there is none.
    pub fn whole(&self) -> Option<Tally> {
        let all = self.list.iter().map(|class| class.tally);
        all.reduce(|mut sum, one| {
            sum.add(one);
            sum
        })
    }

    /// The same with every time changed.
    pub fn map_times(&self, change: impl Fn(u64) -> u64) -> Classes {
        let tally =
            |Tally { total, min, max }| Tally { total: change(total), min: change(min), max: change(max) };
        let list = self.list.iter().map(|class| Class { tally: tally(class.tally), ..*class });
        Classes { together: self.together, list: list.collect() }
    }

    /// The final form: what is alone, or where nothing was measured, is not told.
    pub(super) fn settle(&mut self) {
        let alone = !self.together && self.list.len() < 2;
        if alone || self.whole().is_none_or(|whole| whole.max == 0) {
            *self = Classes::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(first: i64, value: i64, time: u64) -> Class {
        Class { kind: Kind::new(first, value), count: 1, tally: Tally { total: time, min: time, max: time } }
    }

    #[test]
    fn kinds_are_lengths_and_values() {
        let bits = |first| Kind::new(first, 0).bits;
        assert_eq!([-7, 0, 1, 2, 3, 4, 1023, 1024, i64::MAX].map(bits), [0, 0, 1, 2, 2, 3, 10, 11, 63]);
        assert_ne!(Kind::new(1, -1), Kind::new(1, 1));
    }

    /// Every order and every way to cut a list of calls into recordings gives the same.
    #[test]
    fn the_order_of_joining_does_not_matter() {
        for (sizes, peers) in [(4i64, 4i64), (1, 16), (1, 17), (3, 6), (40, 2), (30, 30)] {
            let all: Vec<Class> = (0..sizes * peers)
                .map(|k| class(1 << (k % sizes), k / sizes * 7 % peers - 3, 100 + k as u64 * k as u64 % 37))
                .collect();
            let whole = Classes::new(false, all.iter().copied());
            assert_eq!(whole.together, sizes * peers > MOST as i64, "{sizes} {peers}");
            let told = if whole.together { sizes } else { sizes * peers };
            assert_eq!(whole.list.len() as i64, told);
            assert_eq!(whole.list.iter().map(|class| class.count).sum::<u64>(), all.len() as u64);
            assert_eq!(whole, Classes::new(false, all.iter().rev().copied()));
            for parts in [2, 3, 5, all.len()] {
                let cut: Vec<Classes> = (0..parts.min(all.len()))
                    .map(|part| Classes::new(false, all.iter().skip(part).step_by(parts).copied()))
                    .collect();
                let forwards = cut[1..].iter().fold(cut[0].clone(), |mut sum, one| {
                    sum.join(one);
                    sum
                });
                let backwards = cut.iter().rev().cloned().reduce(|mut sum, one| {
                    sum.join(&one);
                    sum
                });
                assert_eq!((&forwards, backwards.as_ref()), (&whole, Some(&whole)), "{parts} parts");
            }
        }
    }

    #[test]
    fn what_is_not_known_stays_so() {
        let one = Classes::new(false, [class(1, 1, 5)]);
        for (mut a, b) in [(one.clone(), Classes::default()), (Classes::default(), one.clone())] {
            a.join(&b);
            assert_eq!(a, Classes::default());
        }
        assert_eq!(Classes::default().whole(), None);
    }

    #[test]
    fn what_is_alone_is_not_told() {
        let settled = |together, list: &[Class]| {
            let mut classes = Classes::new(together, list.iter().copied());
            classes.settle();
            classes.list.len()
        };
        assert_eq!(settled(false, &[class(1, 1, 5), class(1, 1, 7)]), 0);
        assert_eq!(settled(false, &[class(1, 1, 5), class(1, 2, 7)]), 2);
        // That the second number does not count is something to tell.
        assert_eq!(settled(true, &[class(1, 1, 5), class(1, 2, 7)]), 1);
        assert_eq!(settled(false, &[class(1, 1, 0), class(1, 2, 0)]), 0);
    }
}
