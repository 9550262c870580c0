//! Sets of ranks as starts, strides and counts in several dimensions.
//!
//! ```
//! use refrain_fold::ranks::RankList;
//! let interior = RankList::from_iter([5, 6, 9, 10]); // of a 4 x 4 grid
//! assert_eq!(interior.parts[0].dims, [(2, 4), (2, 1)]);
//! assert_eq!(RankList::from_iter([0, 1, 2, 3, 7, 10, 20, 30]).to_string(), "0-3,7,10-30:10");
//! ```

mod boxes;
mod checks;
mod curve;
mod cut;
mod holes;
mod map;
mod sum;
mod view;

pub use checks::{Checks, TooMuch};
pub use curve::Curve;
pub use holes::MOST_HOLES;
pub use map::{Dim, MapPart, RankMap};
pub use view::{View, Wheel};

use std::fmt;

/// A set of ranks, kept folded. Equal sets have equal representations.
///
/// Parts do not interleave: each starts after the last rank of the one before, and within a part every stride leads
/// past all of the inner dimensions, so that walking parts in order meets the ranks in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RankList {
    /// In ascending order.
    pub parts: Vec<Part>,
}

/// `start + i0*stride0 + i1*stride1 + ...` for every `0 <= ik < countk`; a single rank has no dimensions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Part {
    /// The lowest rank.
    pub start: u32,
    /// (count, stride), outermost first.
    pub dims: Vec<(u32, u32)>,
}

/// Why parts from a file are not a rank list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A dimension of fewer than two.
    #[error("part {part} of a rank list has a dimension of {count}; two is the least")]
    ShortDimension {
        /// Which part.
        part: usize,
        /// How many.
        count: u32,
    },
    /// A stride that does not lead past the inner dimensions.
    #[error("stride {stride} in part {part} of a rank list does not lead past the dimensions inside it")]
    Overlap {
        /// Which part.
        part: usize,
        /// The stride.
        stride: u32,
    },
    /// A part that does not start after the end of the one before.
    #[error("part {part} of a rank list starts at {start}, before the end of the part before it")]
    Disorder {
        /// Which part.
        part: usize,
        /// Where it starts.
        start: u32,
    },
    /// A rank of 2^32 or more.
    #[error("part {part} of a rank list goes beyond rank 2^32 - 1")]
    TooLarge {
        /// Which part.
        part: usize,
    },
}

impl RankList {
    /// One rank.
    pub fn single(rank: u32) -> RankList {
        RankList { parts: vec![Part { start: rank, dims: Vec::new() }] }
    }

    /// Ranks in ascending order; repeated ones count once. (`from_iter` takes any order.)
    pub fn from_sorted(ranks: &[u32]) -> RankList {
        if !ranks.is_sorted() {
            return ranks.iter().copied().collect();
        }
        let single = |chunk: &[u32]| Part { start: chunk[0], dims: Vec::new() };
        let mut parts: Vec<Part> = ranks.chunk_by(|a, b| a == b).map(single).collect();
        // Each pass adds a dimension to neighbours that repeat at equal distances. The last leaves all as they were.
        loop {
            let before = parts.len();
            parts = add_dimension(parts);
            if parts.len() == before {
                return RankList { parts };
            }
        }
    }

    /// The ranks in ascending order.
    pub fn iter(&self) -> Iter<'_> {
        Iter { parts: self.parts.iter(), part: None }
    }

    /// How many ranks.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(Part::len).fold(0, u64::saturating_add)
    }

    /// No rank.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether a rank is in it. Takes time in the logarithm of the parts.
    pub fn contains(&self, rank: u32) -> bool {
        let after = self.parts.partition_point(|part| part.start <= rank);
        after > 0 && self.parts[after - 1].contains(rank)
    }

    /// Those that are in one of the two, or in both.
    pub fn union(&self, other: &RankList) -> RankList {
        let (mut a, mut b) = (self.iter().peekable(), other.iter().peekable());
        let mut ranks = Vec::new();
        loop {
            let from_a = match (a.peek(), b.peek()) {
                (Some(x), Some(y)) => x <= y,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => return RankList::from_sorted(&ranks),
            };
            ranks.extend(if from_a { a.next() } else { b.next() });
        }
    }

    /// Those that are not in `other`.
    pub fn without(&self, other: &RankList) -> RankList {
        let mut other = other.iter().peekable();
        let mut ranks = Vec::new();
        for rank in self {
            while other.next_if(|o| *o < rank).is_some() {}
            if other.peek() != Some(&rank) {
                ranks.push(rank);
            }
        }
        RankList::from_sorted(&ranks)
    }

    /// One box and what is missing from it, at most [`MOST_HOLES`] times the ranks, where that is less to say.
    pub fn all_but(&self) -> Option<(RankList, RankList)> {
        holes::all_but(self)
    }

    /// What a list from a file must satisfy before anything else is done with it.
    pub fn validate(&self) -> Result<(), Error> {
        let mut end = None;
        for (at, part) in self.parts.iter().enumerate() {
            if end.is_some_and(|end| part.start <= end) {
                return Err(Error::Disorder { part: at, start: part.start });
            }
            let mut span = 0u32;
            for &(count, stride) in part.dims.iter().rev() {
                if count < 2 {
                    return Err(Error::ShortDimension { part: at, count });
                }
                if stride <= span {
                    return Err(Error::Overlap { part: at, stride });
                }
                let outer = (count - 1).checked_mul(stride).and_then(|outer| outer.checked_add(span));
                span = outer.ok_or(Error::TooLarge { part: at })?;
            }
            end = Some(part.start.checked_add(span).ok_or(Error::TooLarge { part: at })?);
        }
        Ok(())
    }
}

/// One pass over the parts: runs of parts with equal dimensions and equally distant starts become one part each.
fn add_dimension(parts: Vec<Part>) -> Vec<Part> {
    let run_at = |from: usize| -> usize {
        let follows = |a: usize, b: usize| {
            parts.get(b).filter(|b| b.dims == parts[a].dims).map(|b| b.start - parts[a].start)
        };
        let Some(stride) = follows(from, from + 1) else { return 1 };
        let mut count = 2;
        while follows(from + count - 1, from + count) == Some(stride) {
            count += 1;
        }
        count
    };
    let mut folded = Vec::new();
    let mut at = 0;
    while at < parts.len() {
        let mut count = run_at(at);
        // Two are a run of sorts; the second is better off at the head of a longer one.
        if count == 2 && run_at(at + 1) > 2 {
            count = 1;
        }
        let mut part = parts[at].clone();
        if count > 1 {
            // At most 2^32 ranks are in order below 2^32, and a run of that many would need 2^32 parts in memory.
            part.dims.insert(0, (count as u32, parts[at + 1].start - part.start));
        }
        folded.push(part);
        at += count;
    }
    folded
}

impl Part {
    /// In ascending order.
    fn ranks(&self) -> Iter<'_> {
        Iter { parts: std::slice::from_ref(self).iter(), part: None }
    }

    fn len(&self) -> u64 {
        self.dims.iter().fold(1, |product, &(count, _)| u64::saturating_mul(product, count.into()))
    }

    fn contains(&self, rank: u32) -> bool {
        let Some(mut rest) = rank.checked_sub(self.start) else { return false };
        for &(count, stride) in &self.dims {
            rest -= (rest / stride.max(1)).min(count.saturating_sub(1)) * stride;
        }
        rest == 0
    }
}

impl FromIterator<u32> for RankList {
    fn from_iter<I: IntoIterator<Item = u32>>(ranks: I) -> RankList {
        let mut ranks: Vec<u32> = ranks.into_iter().collect();
        ranks.sort_unstable();
        RankList::from_sorted(&ranks)
    }
}

impl<'a> IntoIterator for &'a RankList {
    type Item = u32;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The ranks of a [`RankList`], ascending.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    parts: std::slice::Iter<'a, Part>,
    /// The part being walked, how far in each of its dimensions, and the rank there.
    part: Option<(&'a Part, Vec<u32>, u32)>,
}

impl Iterator for Iter<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let Some((part, at, rank)) = &mut self.part else {
            let part = self.parts.next()?;
            self.part = Some((part, vec![0; part.dims.len()], part.start));
            return Some(part.start);
        };
        for (at, &(count, stride)) in at.iter_mut().zip(&part.dims).rev() {
            if *at + 1 < count {
                *at += 1;
                *rank = rank.wrapping_add(stride);
                return Some(*rank);
            }
            *rank = rank.wrapping_sub(stride.wrapping_mul(*at));
            *at = 0;
        }
        self.part = None;
        self.next()
    }
}

/// `0-3,7,10-50:10`; a block that repeats has the repetitions behind it: `7-10+6x4` is 7-10, 13-16, 19-22, 25-28.
impl fmt::Display for RankList {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (at, part) in self.parts.iter().enumerate() {
            if at > 0 {
                write!(f, ",")?;
            }
            let start = part.start;
            write!(f, "{start}")?;
            let Some((&(count, stride), outer)) = part.dims.split_last() else { continue };
            let last = u64::from(start) + u64::from(count.saturating_sub(1)) * u64::from(stride);
            match (stride, count) {
                (1, _) => write!(f, "-{last}")?,
                (_, 2) if outer.is_empty() => write!(f, ",{last}")?,
                _ => write!(f, "-{last}:{stride}")?,
            }
            for (count, stride) in outer.iter().rev() {
                write!(f, "+{stride}x{count}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cases;
    use proptest::collection::btree_set;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn check(ranks: &[u32], text: &str) {
        let list = RankList::from_sorted(ranks);
        assert_eq!(list.to_string(), text);
        assert_sound(&list, ranks);
    }

    fn assert_sound(list: &RankList, ranks: &[u32]) {
        assert_eq!(list.validate(), Ok(()));
        assert!(list.iter().eq(ranks.iter().copied()), "{ranks:?} -> {list:?}");
        assert_eq!(list.len(), ranks.len() as u64);
        assert_eq!(list.is_empty(), ranks.is_empty());
        for &rank in ranks {
            assert!(list.contains(rank), "{rank} in {list:?}");
            for near in [rank.wrapping_sub(1), rank.wrapping_add(1)] {
                assert_eq!(list.contains(near), ranks.binary_search(&near).is_ok(), "{near} in {list:?}");
            }
        }
    }

    #[test]
    fn small_sets() {
        check(&[], "");
        check(&[7], "7");
        check(&[0, 1], "0-1");
        check(&[0, 5], "0,5");
        check(&[0, 1, 2, 3, 7, 10, 20, 30, 40, 50], "0-3,7,10-50:10");
        check(&[0, 5, 6, 7, 8], "0,5-8");
        check(&[0, 5, 30, 35], "0-5:5+30x2");
        check(&[7, 8, 9, 10, 13, 14, 15, 16, 19, 20, 21, 22, 25, 26, 27, 28], "7-10+6x4");
        check(&[6, 11, 12, 17, 18, 23, 24, 29], "6-11:5+6x4");
        check(&[u32::MAX - 1, u32::MAX], "4294967294-4294967295");
        check(&[0, u32::MAX], "0,4294967295");
    }

    /// Where a rank stands in a grid, by its coordinates: at the low edge, inside, at the high edge.
    fn classes(side: u32, dimensions: u32) -> Vec<RankList> {
        let mut ranks = vec![Vec::new(); 3usize.pow(dimensions)];
        for rank in 0..side.pow(dimensions) {
            let class = (0..dimensions).fold(0, |class, d| match rank / side.pow(d) % side {
                0 => 3 * class,
                x if x == side - 1 => 3 * class + 2,
                _ => 3 * class + 1,
            });
            ranks[class].push(rank);
        }
        ranks.iter().for_each(|class| assert_sound(&RankList::from_sorted(class), class));
        ranks.iter().map(|class| RankList::from_sorted(class)).collect()
    }

    #[test]
    fn grids_of_any_size_fold_alike() {
        let shape = |side, dimensions| -> Vec<Vec<usize>> {
            let dims = |class: &RankList| class.parts.iter().map(|part| part.dims.len()).collect();
            classes(side, dimensions).iter().map(dims).collect()
        };
        for side in 4..40 {
            assert_eq!(shape(side, 2), shape(4, 2));
        }
        assert_eq!(shape(4, 2), [[0], [1], [0], [1], [2], [1], [0], [1], [0]]);
        for side in 5..10 {
            assert_eq!(shape(side, 3), shape(4, 3));
        }
        assert_eq!(classes(6, 2)[4].parts, [Part { start: 7, dims: vec![(4, 6), (4, 1)] }]);
        for side in 3..20 {
            let corners = RankList::from_iter([0, side - 1, side * (side - 1), side * side - 1]);
            assert_eq!(corners.parts, [Part { start: 0, dims: vec![(2, side * (side - 1)), (2, side - 1)] }]);
        }
    }

    /// Two of them, as near each other as the limit says, which is often in them.
    fn some_sets() -> impl Strategy<Value = [BTreeSet<u32>; 2]> {
        let limit = prop_oneof![Just(8), Just(30), Just(200), Just(u32::MAX)];
        let rank = |limit| prop_oneof![20 => 0..=limit, 1 => Just(limit)];
        limit.prop_flat_map(move |limit| [(); 2].map(|()| btree_set(rank(limit), 0..40)))
    }

    proptest! {
        #![proptest_config(cases(2000))]
        #[test]
        fn random_sets_and_unions(sets in some_sets()) {
            let [a, b] = sets.map(Vec::from_iter);
            let mut both = [&a[..], &b].concat();
            let union = RankList::from_sorted(&a).union(&RankList::from_sorted(&b));
            assert_eq!(union, both.iter().copied().collect());
            both.sort();
            both.dedup();
            assert_eq!(union, RankList::from_sorted(&both));
            assert_sound(&union, &both);
        }
    }

    #[test]
    fn bad_lists_are_refused() {
        let error = |parts: &[(u32, &[(u32, u32)])]| {
            let part = |&(start, dims): &(u32, &[_])| Part { start, dims: dims.to_vec() };
            RankList { parts: parts.iter().map(part).collect() }.validate()
        };
        assert_eq!(error(&[(0, &[(1, 1)])]), Err(Error::ShortDimension { part: 0, count: 1 }));
        assert_eq!(error(&[(0, &[(2, 0)])]), Err(Error::Overlap { part: 0, stride: 0 }));
        assert_eq!(error(&[(0, &[(2, 3), (4, 1)])]), Err(Error::Overlap { part: 0, stride: 3 }));
        assert_eq!(error(&[(0, &[(4, 1)]), (3, &[])]), Err(Error::Disorder { part: 1, start: 3 }));
        assert_eq!(error(&[(5, &[]), (5, &[])]), Err(Error::Disorder { part: 1, start: 5 }));
        assert_eq!(error(&[(9, &[(2, u32::MAX)])]), Err(Error::TooLarge { part: 0 }));
        assert_eq!(error(&[(0, &[(u32::MAX, u32::MAX)])]), Err(Error::TooLarge { part: 0 }));
    }
}
