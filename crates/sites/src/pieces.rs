//! Which pieces of code are one function: compilers move what is seldom needed away from the rest.
//!
//! A piece has an entry in the tables for unwinding, as a function has. But code jumps into the middle of no other function,
//! so two pieces that jump to each other, one of them past where the other begins, are one. Where one of them is entered
//! otherwise (by exceptions) or never left, its name says so: `main.cold`.

use std::ops::Range;
use std::rc::Rc;

use crate::functions::Functions;

/// A function that is in more pieces than this is not brought together.
const MOST_PIECES: usize = 64;

/// All of a function.
#[derive(Debug, PartialEq, Eq)]
pub struct Whole {
    pub entry: u64,
    /// In the order of addresses.
    pub pieces: Vec<Range<u64>>,
}

/// The function around an address. `jumps`: where a piece jumps to, outside of it, in the order of addresses.
pub fn whole(functions: &Functions, address: u64, jumps: &dyn Fn(&Range<u64>) -> Rc<[u64]>) -> Option<Whole> {
    let first = functions.range(address)?;
    let between = |from: &Range<u64>, start: u64, end: u64| {
        let targets = jumps(from);
        let at = targets.partition_point(|&target| target < start);
        targets.get(at).is_some_and(|&target| target < end)
    };
    let into = |from: &Range<u64>, to: &Range<u64>| between(from, to.start, to.end);
    let past = |from: &Range<u64>, to: &Range<u64>| between(from, to.start.saturating_add(1), to.end);
    let is_one = |a: &Range<u64>, b: &Range<u64>| {
        let both = into(a, b) && into(b, a);
        let named = functions.is_cold_of(b.start, a.start) || functions.is_cold_of(a.start, b.start);
        both && (past(a, b) || past(b, a)) || named && (into(a, b) || into(b, a))
    };
    let mut pieces = vec![first.clone()];
    let mut at = 0;
    while let Some(piece) = pieces.get(at).cloned() {
        let targets = jumps(&piece);
        let named = functions.namesakes(piece.start);
        let mut others: Vec<Range<u64>> =
            targets.iter().chain(&named).filter_map(|&target| functions.range(target)).collect();
        others.sort_by_key(|other| (other.start, other.end));
        others.dedup();
        for other in others {
            if pieces.len() < MOST_PIECES && !pieces.contains(&other) && is_one(&piece, &other) {
                pieces.push(other);
            }
        }
        at += 1;
    }
    // What is jumped to is no entry, unless nothing else is left.
    let entered = |piece: &&Range<u64>| {
        let is_target =
            pieces.iter().any(|other| other != *piece && jumps(other).binary_search(&piece.start).is_ok());
        // At last where it is, or it would depend on where the search began.
        (functions.is_cold(piece.start), is_target, u64::MAX - (piece.end - piece.start), piece.start)
    };
    let entry = pieces.iter().min_by_key(entered).unwrap_or(&first).start;
    pieces.sort_by_key(|piece| piece.start);
    Some(Whole { entry, pieces })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of ten bytes from 0, 10, 20 ..., some of them with a name, and jumps from one to an address.
    #[track_caller]
    fn check(names: &[(u64, &str)], jumps: &[(u64, u64)], address: u64, entry: u64, pieces: &[u64]) {
        let ranges = (0..8).map(|i| 10 * i..10 * i + 10).collect();
        let functions = Functions::test(ranges, names);
        let from = |piece: &Range<u64>| {
            let mut targets: Vec<u64> =
                jumps.iter().filter(|(from, _)| piece.contains(from)).map(|(_, to)| *to).collect();
            targets.sort_unstable();
            targets.into()
        };
        let expected = Whole { entry, pieces: pieces.iter().map(|&start| start..start + 10).collect() };
        assert_eq!(whole(&functions, address, &from), Some(expected), "{names:?} {jumps:?} {address}");
    }

    #[test]
    fn pieces_that_jump_to_each_other_are_one() {
        let named = [(0, "f.cold"), (10, "f"), (20, "g")];
        for names in [&named[..], &[]] {
            for address in [5, 15] {
                check(names, &[(12, 0), (7, 14)], address, 10, &[0, 10]);
            }
            check(names, &[(12, 0), (7, 14)], 25, 20, &[20]);
        }
        // Three of them, the last of which only the second has to do with.
        check(&[], &[(12, 30), (31, 14), (34, 45), (47, 36)], 11, 10, &[10, 30, 40]);
    }

    #[test]
    fn other_functions_are_others() {
        // Calls at the end of a function are jumps: to another, to each other, into the table of links.
        check(&[], &[(12, 20)], 12, 10, &[10]);
        check(&[], &[(12, 20), (22, 10)], 12, 10, &[10]);
        check(&[], &[(12, 24), (32, 27)], 12, 10, &[10]);
        // As they are named, but nothing leads from one to the other.
        check(&[(0, "f.cold"), (10, "f")], &[], 12, 10, &[10]);
    }

    #[test]
    fn the_entry_is_the_same_from_everywhere() {
        // Each is jumped to by the other, and neither is longer.
        for address in [15, 25] {
            check(&[], &[(12, 20), (13, 24), (22, 10)], address, 10, &[10, 20]);
        }
    }

    #[test]
    fn names_say_what_jumps_do_not() {
        // Never left; never entered by a jump; by both names that compilers give.
        for name in ["f.cold", "f.cold.3"] {
            for jump in [(12, 0), (2, 14)] {
                for address in [3, 13] {
                    check(&[(0, name), (10, "f")], &[jump], address, 10, &[0, 10]);
                }
            }
        }
        check(&[(0, "g.cold"), (10, "f")], &[(12, 0)], 12, 10, &[10]);
    }
}
