//! Tallies that are a small share of all time. Those of one function are told together: one sum, one least, one most.

use std::collections::HashMap;

use refrain_fold::bundle::{SymbolEntry, Tally};

use crate::sections::symbols::head;
use crate::token::bits;

/// A tally is light if it is below the power of two that is so many bits shorter than all time: 1/1024 to 1/2048 of it.
const SHORTER: u32 = 11;

/// Light tallies of one function.
pub struct Group {
    pub tally: Tally,
    /// How many calls they are of.
    pub count: u64,
    members: usize,
}

impl Group {
    pub const NONE: Group = Group { tally: Tally::NONE, count: 0, members: 0 };

    pub fn add(&mut self, tally: Tally, count: u64) {
        self.tally.add(tally);
        self.grow(count);
    }

    /// One member more, of which only the calls are known.
    pub fn grow(&mut self, count: u64) {
        self.count = self.count.saturating_add(count);
        self.members += 1;
    }

    /// What the calls `from..to` of the group have of its total: all of them together have all of it.
    pub fn share(&self, from: u64, to: u64) -> u64 {
        let until = |calls: u64| match self.count {
            0 => 0,
            count => (u128::from(self.tally.total) * u128::from(calls.min(count)) / u128::from(count)) as u64,
        };
        until(to) - until(from)
    }
}

/// Of a symbol the tally of each class, or its own.
pub fn tallies(symbol: &SymbolEntry, count: u64) -> Vec<(Tally, u64)> {
    match symbol.classes.list() {
        [] => vec![(symbol.tally, count)],
        list => list.iter().map(|class| (class.tally, class.count)).collect(),
    }
}

/// Which tallies are light, for each symbol in the order of [`tallies`]. What each member does only once (starting up, ending)
/// is no part of all time. None is where that is not `wanted`.
pub fn find(symbols: &[SymbolEntry], counts: &[u64], members: u64, wanted: bool) -> Vec<Vec<bool>> {
    let each: Vec<(u32, Vec<(Tally, u64)>)> =
        symbols.iter().zip(counts).map(|(s, &n)| (head(&s.bytes), tallies(s, n))).collect();
    let often = symbols.iter().zip(counts).filter(|(_, count)| **count > members);
    let all = often.fold(0u64, |sum, (symbol, _)| sum.saturating_add(symbol.tally.total));
    let least = bits(all).checked_sub(SHORTER).filter(|_| wanted).map_or(0, |by| 1u64 << by);
    let mut light: Vec<Vec<bool>> =
        each.iter().map(|(_, list)| list.iter().map(|(tally, _)| tally.total < least).collect()).collect();
    // What would get more than is light is told alone, so that the same is light when the trace is written again.
    loop {
        let mut groups: HashMap<u32, Group> = HashMap::new();
        for ((head, list), light) in each.iter().zip(&light) {
            for ((tally, count), _) in list.iter().zip(light).filter(|(_, light)| **light) {
                groups.entry(*head).or_insert(Group::NONE).add(*tally, *count);
            }
        }
        let mut changed = false;
        for ((head, list), light) in each.iter().zip(&mut light) {
            for ((_, count), light) in list.iter().zip(light).filter(|(_, light)| **light) {
                let stays =
                    groups.get(head).is_some_and(|group| group.members > 1 && group.share(0, *count) < least);
                changed |= !stays;
                *light = stays;
            }
        }
        if !changed {
            return light;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(function: u8, total: u64) -> SymbolEntry {
        let tally = Tally { total, min: 1, max: total };
        SymbolEntry { bytes: [function, 0].into(), site: 0, lanes: 0, tally, classes: Default::default() }
    }

    fn found(symbols: &[(u8, u64, u64)]) -> String {
        let entries: Vec<SymbolEntry> = symbols.iter().map(|&(f, total, _)| symbol(f, total)).collect();
        let counts: Vec<u64> = symbols.iter().map(|(.., count)| *count).collect();
        find(&entries, &counts, 4, true).iter().map(|light| if light[0] { 'l' } else { '.' }).collect()
    }

    #[test]
    fn what_is_little_of_all_time_is_light() {
        assert_eq!(found(&[(1, 1 << 20, 100), (2, 100, 8), (2, 200, 8), (2, 2000, 8)]), ".ll.");
        // One alone loses nothing where it is.
        assert_eq!(found(&[(1, 1 << 20, 100), (2, 100, 8), (3, 200, 8)]), "...");
        // What each member does once is no part of all time.
        assert_eq!(found(&[(1, 1 << 20, 4), (2, 100, 8), (2, 200, 8)]), "...");
        assert_eq!(found(&[]), "");
        assert_eq!(found(&[(1, 0, 9), (1, 0, 9)]), "..");
        let entries = [symbol(1, 1 << 20), symbol(2, 100), symbol(2, 200)];
        assert!(find(&entries, &[100, 8, 8], 4, false).iter().all(|light| !light[0]));
    }

    #[test]
    fn what_would_get_more_than_is_light_stays_alone() {
        // Most of the calls have most of the time of all three.
        assert_eq!(found(&[(1, 1 << 21, 100), (2, 1000, 10), (2, 900, 1_000), (2, 900, 10)]), ".l.l");
    }

    #[test]
    fn shares_add_up() {
        let mut group = Group::NONE;
        for count in [3, 0, 7, 1] {
            group.add(Tally { total: 1001, min: 1, max: 9 }, count);
        }
        let shares: Vec<u64> =
            [(0, 3), (3, 3), (3, 10), (10, 11)].iter().map(|&(from, to)| group.share(from, to)).collect();
        assert_eq!((shares.iter().sum::<u64>(), shares), (4004, vec![1092, 0, 2548, 364]));
        assert_eq!(Group::NONE.share(0, 5), 0);
    }
}
