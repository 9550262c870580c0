//! The lines that are in a cache, and which of them leaves for another.

use super::plru::Tree;
use super::{Geometry, Policy};

/// A place that no line is in. Lines have four bytes at least, so no line's number, doubled, comes to this.
const EMPTY: u64 = u64::MAX;

/// The lines. Those of a set are together: by last use (LRU) or by arrival (FIFO), latest first, and empty places last.
#[derive(Debug)]
pub(super) struct Lines {
    /// Twice the line's number, plus one if it is dirty.
    places: Vec<u64>,
    ways: usize,
    /// Of the bits of a line's number that tell its set.
    mask: u64,
    policy: Policy,
    random: Random,
    /// One for each set, with [`Policy::Plru`].
    trees: Vec<Tree>,
}

impl Lines {
    pub(super) fn new(geometry: &Geometry, policy: Policy, seed: u64) -> Lines {
        // `Geometry` bounds the lines to far less than what any machine can count.
        let ways = geometry.ways() as usize;
        Lines {
            places: vec![EMPTY; geometry.sets() as usize * ways],
            ways,
            mask: geometry.sets() - 1,
            policy,
            random: Random::new(seed),
            trees: match policy {
                Policy::Plru => vec![Tree::default(); geometry.sets() as usize],
                _ => Vec::new(),
            },
        }
    }

    #[inline]
    fn set(&mut self, line: u64) -> &mut [u64] {
        let from = (line & self.mask) as usize * self.ways;
        &mut self.places[from..from + self.ways]
    }

    /// Whether the line is the first of its set; then it was written to if `dirty`, and nothing else changes.
    #[inline(always)]
    pub(super) fn is_front(&mut self, line: u64, dirty: bool) -> bool {
        let place = &mut self.places[(line & self.mask) as usize * self.ways];
        let found = *place >> 1 == line;
        if found && dirty {
            *place |= 1;
        }
        found
    }

    /// Whether the line is there; then it was used, and written to if `dirty`.
    #[inline]
    pub(super) fn find(&mut self, line: u64, dirty: bool) -> bool {
        let moves = self.policy == Policy::Lru;
        let set = self.set(line);
        let Some(at) = set.iter().position(|place| place >> 1 == line) else { return false };
        let place = set[at] | u64::from(dirty);
        if moves {
            set.copy_within(..at, 1);
            set[0] = place;
        } else {
            set[at] = place;
            self.touch(line, at);
        }
        true
    }

    /// As [`Lines::find`], and then as [`Lines::insert`] if the line is not there: what left for it, if it was not there.
    #[inline(always)]
    pub(super) fn find_or_insert(&mut self, line: u64, dirty: bool) -> Option<Option<(u64, bool)>> {
        if self.policy != Policy::Lru {
            return (!self.find(line, dirty)).then(|| self.insert(line, dirty));
        }
        let new = line << 1 | u64::from(dirty);
        let set = self.set(line);
        let (found, last) = push(set, line, new);
        if found {
            set[0] |= last & 1;
            return None;
        }
        Some((last != EMPTY).then_some((last >> 1, last & 1 == 1)))
    }

    /// A way of the line's set was used.
    fn touch(&mut self, line: u64, way: usize) {
        if let Some(tree) = self.trees.get_mut((line & self.mask) as usize) {
            tree.touch(way, self.ways);
        }
    }

    /// Whether the line is there; nothing changes.
    pub(super) fn contains(&self, line: u64) -> bool {
        let from = (line & self.mask) as usize * self.ways;
        self.places[from..from + self.ways].iter().any(|place| place >> 1 == line)
    }

    /// Whether the line is there, and dirty.
    pub(super) fn is_dirty(&self, line: u64) -> bool {
        let from = (line & self.mask) as usize * self.ways;
        self.places[from..from + self.ways].contains(&(line << 1 | 1))
    }

    /// The line is not dirty any more, if it is there; whether it was.
    pub(super) fn clean(&mut self, line: u64) -> bool {
        let place = self.set(line).iter_mut().find(|place| **place == (line << 1 | 1));
        place.map(|place| *place &= !1).is_some()
    }

    /// Takes a line out; whether it was dirty, if it was there.
    pub(super) fn remove(&mut self, line: u64) -> Option<bool> {
        let ordered = matches!(self.policy, Policy::Lru | Policy::Fifo);
        let set = self.set(line);
        let at = set.iter().position(|place| place >> 1 == line)?;
        let dirty = set[at] & 1 == 1;
        match ordered {
            // Empty places are last.
            true => {
                set.copy_within(at + 1.., at);
                set[set.len() - 1] = EMPTY;
            }
            false => set[at] = EMPTY,
        }
        Some(dirty)
    }

    /// Puts in a line that is not there; the one that leaves for it, and whether it is dirty.
    pub(super) fn insert(&mut self, line: u64, dirty: bool) -> Option<(u64, bool)> {
        let new = line << 1 | u64::from(dirty);
        let last = self.ways - 1;
        let old = match self.policy {
            Policy::Lru | Policy::Fifo => {
                let set = self.set(line);
                let old = set[last];
                set.copy_within(..last, 1);
                set[0] = new;
                old
            }
            Policy::Random | Policy::Plru => {
                let empty = self.set(line).iter().position(|place| *place == EMPTY);
                let at = empty.unwrap_or_else(|| match self.trees.get((line & self.mask) as usize) {
                    Some(tree) => tree.oldest(self.ways),
                    None => self.random.below(self.ways),
                });
                self.touch(line, at);
                std::mem::replace(&mut self.set(line)[at], new)
            }
        };
        (old != EMPTY).then_some((old >> 1, old & 1 == 1))
    }

    /// All that are there, from the last place on.
    pub(super) fn all(&self) -> Vec<u64> {
        let there = self.places.iter().rev().filter(|place| **place != EMPTY);
        there.map(|place| place >> 1).collect()
    }

    pub(super) fn dirty(&self) -> u64 {
        self.places.iter().filter(|place| **place != EMPTY && **place & 1 == 1).count() as u64
    }
}

/// Puts a place in front of all, and moves those before the line back by one. If the line is not there, all of them move, and
/// the last leaves. Whether it was there, and its place or the last one.
#[inline(always)]
fn push(set: &mut [u64], line: u64, new: u64) -> (bool, u64) {
    let mut last = new;
    let mut is_found = |place: &mut u64| {
        std::mem::swap(place, &mut last);
        last >> 1 == line
    };
    // By fours, which costs fewer steps: most sets have 4, 8 or 16.
    let mut fours = set.chunks_exact_mut(4);
    let found = fours.any(|four| four.iter_mut().any(&mut is_found))
        || fours.into_remainder().iter_mut().any(&mut is_found);
    (found, last)
}

/// Xorshift with a multiplied output: even enough to pick lines, and the same in every run.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        // Mixed, so that seeds side by side differ; never 0, which would stay.
        Random((seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1)
    }

    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((high * most as u64) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(ways: u64, sets: u64, policy: Policy) -> Lines {
        Lines::new(&Geometry::new(ways * sets * 16, ways, 16).unwrap(), policy, 7)
    }

    /// References to lines of one set: what leaves, in order; `.` is a hit, `+` a miss that nothing leaves for.
    fn check(policy: Policy, ways: u64, references: &str, expected: &str) {
        let mut lines = lines(ways, 1, policy);
        let found: String = references
            .bytes()
            .map(|name| match lines.find(name.into(), false) {
                true => '.',
                false => lines.insert(name.into(), false).map_or('+', |(line, _)| line as u8 as char),
            })
            .collect();
        assert_eq!(found, expected, "{policy:?} {references}");
    }

    #[test]
    fn by_hand() {
        check(Policy::Lru, 2, "abacab", "++.b.c");
        check(Policy::Fifo, 2, "abacab", "++.abc");
        check(Policy::Lru, 1, "aabba", "+.a.b");
        // Cyclic use of one line too many: LRU and FIFO keep the wrong ones.
        check(Policy::Lru, 3, "abcdabcd", "+++abcda");
        check(Policy::Fifo, 3, "abcdabcd", "+++abcda");
        // Belady's anomaly: FIFO with more ways misses more often, 10 times and not 9.
        check(Policy::Fifo, 3, "abcdabeabcde", "+++abcd..ab.");
        check(Policy::Fifo, 4, "abcdabeabcde", "++++..abcdea");
    }

    #[test]
    fn a_tree_of_bits_by_hand() {
        // a, b, c and d fill the ways 0 to 3, and the bits lead to a. Using a makes them lead to c; after b still to c.
        check(Policy::Plru, 4, "abcdae", "++++.c");
        check(Policy::Plru, 4, "abcdabe", "++++..c");
        // LRU would let c leave too; but after c it would be d, and here it is a, which is younger than d.
        check(Policy::Plru, 4, "abcdabce", "++++...a");
        check(Policy::Lru, 4, "abcdabce", "++++...d");
        // Two ways are LRU.
        check(Policy::Plru, 2, "abacab", "++.b.c");
    }

    #[test]
    fn what_is_taken_out_leaves_room() {
        for policy in Policy::ALL {
            let mut lines = lines(4, 1, policy);
            (1..5).for_each(|line| assert_eq!(lines.insert(line, line == 2), None));
            assert_eq!((lines.remove(2), lines.remove(2), lines.remove(3)), (Some(true), None, Some(false)));
            assert!(lines.contains(1) && !lines.contains(2) && lines.contains(4));
            assert_eq!((lines.insert(6, false), lines.insert(7, true)), (None, None), "{policy:?}");
            assert!(lines.insert(8, false).is_some(), "{policy:?}");
            assert_eq!(lines.dirty(), u64::from(lines.contains(7)));
        }
    }

    #[test]
    fn dirt_stays_with_its_line() {
        for policy in Policy::ALL {
            let mut lines = lines(1, 2, policy);
            assert_eq!(lines.insert(4, false), None);
            assert_eq!(lines.insert(5, true), None);
            assert!(lines.find(4, true) && lines.find(4, false));
            assert_eq!(lines.dirty(), 2);
            assert_eq!(lines.insert(6, false), Some((4, true)));
            assert_eq!(lines.insert(8, false), Some((6, false)));
            assert_eq!(lines.dirty(), 1);
        }
    }

    #[test]
    fn random_as_a_plain_model_with_the_same_dice() {
        let (ways, sets) = (4, 8);
        let mut cache = lines(ways, sets, Policy::Random);
        let mut dice = Random::new(7);
        let mut model: Vec<Vec<u64>> = vec![Vec::new(); sets as usize];
        let mut choice = Random::new(99);
        for _ in 0..20_000 {
            let line = choice.below(64) as u64;
            let set = &mut model[(line % sets) as usize];
            let expected = match set.iter().position(|have| *have == line) {
                Some(_) => None,
                None if set.len() < ways as usize => {
                    set.push(line);
                    Some(None)
                }
                None => {
                    let at = dice.below(ways as usize);
                    Some(Some((std::mem::replace(&mut set[at], line), false)))
                }
            };
            let found = (!cache.find(line, false)).then(|| cache.insert(line, false));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn in_one_pass_as_in_two() {
        for policy in Policy::ALL {
            for ways in [1, 2, 3, 4, 5, 7, 8, 9, 16] {
                if policy == Policy::Plru && !u64::is_power_of_two(ways) {
                    continue;
                }
                let [mut one, mut two] = [(); 2].map(|()| lines(ways, 2, policy));
                let mut choice = Random::new(3);
                for _ in 0..3000 {
                    let (line, dirty) = (choice.below(3 * ways as usize) as u64, choice.below(4) == 0);
                    let expected = (!two.find(line, dirty)).then(|| two.insert(line, dirty));
                    assert_eq!(one.find_or_insert(line, dirty), expected, "{policy:?}, {ways} ways");
                    assert_eq!(one.places, two.places, "{policy:?}, {ways} ways");
                }
            }
        }
    }

    #[test]
    fn dice_are_even() {
        let mut dice = Random::new(0);
        let mut counts = [0u32; 6];
        (0..60_000).for_each(|_| counts[dice.below(6)] += 1);
        assert!(counts.iter().all(|n| (9_500..10_500).contains(n)), "{counts:?}");
    }

    #[test]
    fn the_highest_line_is_no_empty_place() {
        let mut lines = Lines::new(&Geometry::new(4, 1, 4).unwrap(), Policy::Lru, 0);
        let highest = u64::MAX >> 2;
        assert!(!lines.find(highest, false));
        lines.insert(highest, true);
        assert!(lines.find(highest, true));
        assert_eq!(lines.insert(0, false), Some((highest, true)));
    }
}
