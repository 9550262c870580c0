//! Numbers that are sums: on a square grid of ranks, a function of the row, the column or the diagonal, and boxes beside it.
//!
//! ```
//! use refrain_fold::ranks::RankMap;
//! // On a grid of 32 x 32 ranks, a number that rises and falls with the row, and more for columns and diagonals below 5.
//! let number = |rank: u32| {
//!     let (i, j) = (rank % 32, rank / 32);
//!     i64::from(7 * j.min(31 - j)) + i64::from(i < 5) * i64::from(4 + (i + j) % 32 / 27)
//! };
//! let map = RankMap::loose((0..1024).map(|rank| (rank, number(rank))).collect());
//! assert!(map.plus.is_some() && map.cost() < 50);
//! assert!((0..1024).all(|rank| map.get(rank) == Some(number(rank))));
//! ```

use super::map::{Dim, MapPart, Point, RankMap, nest};
use super::view::{View, boxes, grid_of};

/// What costs less is no sum that would cost less still.
const LITTLE: u64 = 24;

/// Lines of a grid, each of which has a number.
#[derive(Clone, Copy)]
enum Lines {
    Rows,
    Columns,
    /// i + j is the same along each.
    Falling,
    /// i - j is the same along each.
    Rising,
}

impl Lines {
    const ALL: [Lines; 4] = [Lines::Rows, Lines::Columns, Lines::Falling, Lines::Rising];

    /// The line through column i and row j.
    fn through(self, i: usize, j: usize, side: usize) -> usize {
        match self {
            Lines::Rows => j,
            Lines::Columns => i,
            Lines::Falling => (i + j) % side,
            Lines::Rising => (i + side - j) % side,
        }
    }

    /// From each line to the next: by how much most numbers grow, where most grow by the same. The first line has 0.
    fn numbers(self, grid: &[Option<i64>], side: usize) -> Vec<i64> {
        let mut votes = vec![(0i64, 0u32); side];
        for (at, number) in grid.iter().enumerate() {
            let (i, j) = (at % side, at / side);
            let next = match self {
                Lines::Rows => (j + 1) % side * side + i,
                _ => j * side + (i + 1) % side,
            };
            let (Some(next), Some(number)) = (grid[next], *number) else { continue };
            let grown = next.wrapping_sub(number);
            let (step, lead) = &mut votes[self.through(i, j, side)];
            match *lead {
                0 => (*step, *lead) = (grown, 1),
                _ if *step == grown => *lead += 1,
                _ => *lead -= 1,
            }
        }
        let mut number = 0i64;
        let mut numbers = vec![0];
        for (step, _) in &votes[..side - 1] {
            number = number.wrapping_add(*step);
            numbers.push(number);
        }
        numbers
    }

    /// A function that has these numbers.
    fn function(self, numbers: &[i64]) -> RankMap {
        let side = numbers.len() as u32;
        let points: Vec<Point> = (0u32..).zip(numbers.iter().copied()).collect();
        let mut parts = nest(&points, 0);
        parts.sort_by_key(|part| part.start);
        let across = |stride| Dim { count: side, stride, step: 0 };
        for part in &mut parts {
            match self {
                Lines::Rows => {
                    part.start *= side;
                    part.dims.iter_mut().for_each(|dim| dim.stride *= side);
                    part.dims.push(across(1));
                }
                _ => part.dims.insert(0, across(side)),
            }
        }
        let view = match self {
            Lines::Rows | Lines::Columns => None,
            Lines::Falling => Some(View::new(side, 1, false)),
            Lines::Rising => Some(View::new(side, side - 1, false)),
        };
        RankMap { parts, view, plus: None }
    }
}

/// The points, by rank, as a sum that costs less than `most`. Takes a few steps for each point.
pub(super) fn found(points: &[Point], most: u64) -> Option<RankMap> {
    let side = grid_of(points).filter(|_| most > LITTLE)?;
    let width = side as usize;
    let mut grid = vec![None; width * width];
    points.iter().for_each(|&(rank, number)| grid[rank as usize] = Some(number));
    let mut least = most;
    let mut best = None;
    for lines in Lines::ALL {
        let numbers = lines.numbers(&grid, width);
        let plus = lines.function(&numbers);
        if numbers.iter().all(|number| *number == 0) || plus.cost() >= least {
            continue;
        }
        let rest = |&(rank, number): &Point| {
            let line = numbers[lines.through(rank as usize % width, rank as usize / width, width)];
            (rank, number.wrapping_sub(line))
        };
        let rest: Vec<Point> = points.iter().map(rest).collect();
        for (parts, view) in ways(side, &rest) {
            let sum = RankMap { parts, view, plus: Some(Box::new(plus.clone())) };
            if sum.cost() < least {
                least = sum.cost();
                best = Some(sum);
            }
        }
    }
    best
}

/// What is left as boxes, in the order of the ranks and in others.
fn ways(side: u32, rest: &[Point]) -> impl Iterator<Item = (Vec<MapPart>, Option<View>)> {
    let orders = [(0, false), (1, false), (1, true), (side - 1, false), (side - 1, true)];
    orders.into_iter().filter_map(move |(skew, columns)| {
        let view = View::new(side, skew, columns);
        Some((boxes(view, rest)?, (skew > 0).then_some(view)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::{Checks, RankList};
    use crate::testing::{cases, stays};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases(300))]
        /// Lines of all kinds, boxes of two more, and some numbers changed.
        #[test]
        fn sums_stay_what_they_are(
            side in 3..20u32,
            along in 0..4usize,
            slope in -5..6i64,
            cuts in (0..20u32, 0..20u32),
            changed in proptest::collection::vec(0..400u32, 0..3),
            without in proptest::collection::vec(0..400u32, 0..3),
        ) {
            let number = |rank: u32| {
                let (i, j) = (rank % side, rank / side);
                let line = Lines::ALL[along].through(i as usize, j as usize, side as usize) as i64;
                let own = if changed.contains(&rank) { i64::from(rank) } else { 0 };
                let boxes = i64::from(i < cuts.0) * (1 + i64::from((i + j) % side < cuts.1));
                slope * line.min(i64::from(side) - line) + 100 * boxes + own
            };
            let ranks: Vec<u32> = (0..side * side).filter(|rank| !without.contains(rank)).collect();
            let pairs: Vec<Point> = ranks.iter().map(|&rank| (rank, number(rank))).collect();
            stays(&pairs, side);
        }
    }

    #[test]
    fn sums_cost_the_same_on_grids_of_any_size() {
        // Often rank 0 does something else.
        for (side, first) in [(24u32, 0), (64, 1), (128, 1)] {
            for along in [Lines::Rows, Lines::Columns, Lines::Falling, Lines::Rising] {
                let number = |rank: u32| {
                    let (i, j) = (rank % side, rank / side);
                    let line = along.through(i as usize, j as usize, side as usize) as i64;
                    let (first, second) = match along {
                        Lines::Rows => (i, (i + j) % side),
                        Lines::Columns => (j, (i + j) % side),
                        _ => (i, j),
                    };
                    let thick = |slice: u32| 1 + i64::from(slice < 9);
                    3 * (line.min(10) - line.max(side as i64 - 8)) - thick(first) * thick(second)
                };
                let map = RankMap::loose((first..side * side).map(|rank| (rank, number(rank))).collect());
                assert!(map.plus.is_some() && map.cost() <= 60, "{side}: {map:?}");
            }
        }
    }

    /// Each of the two must tell of all ranks, and the second is no sum.
    #[test]
    fn sums_of_other_ranks_are_refused() {
        let ranks = RankList::from_iter(0..16);
        let of = |ranks: &RankList, plus: Option<RankMap>| RankMap {
            plus: plus.map(Box::new),
            ..RankMap::constant(ranks, 2)
        };
        let is_over = |map: &RankMap| Checks::unbounded().is_over(map, &ranks);
        let sum = of(&ranks, Some(of(&ranks, None)));
        assert_eq!((is_over(&sum), sum.get(3), sum.as_constant()), (Ok(true), Some(4), Some(4)));
        let fewer = of(&ranks, Some(of(&RankList::from_iter(0..15), None)));
        assert_eq!((is_over(&fewer), fewer.get(15), fewer.pairs().len()), (Ok(false), None, 15));
        assert_eq!(is_over(&of(&ranks, Some(sum))), Ok(false));
    }
}
