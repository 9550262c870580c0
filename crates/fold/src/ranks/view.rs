//! The ranks of a square grid in another order: what runs along its diagonals, and wraps around, is boxes there.
//!
//! ```
//! use refrain_fold::ranks::RankMap;
//! // On a grid of 8 x 8 ranks, whether i + j, taken around the grid, is less than 3.
//! let band = |rank: u32| (rank, i64::from((rank % 8 + rank / 8) % 8 < 3));
//! let band = RankMap::loose((0..64).map(band).collect());
//! assert_eq!((band.parts.len(), band.get(9), band.get(27)), (2, Some(1), Some(0)));
//! ```

use std::fmt;

use super::MOST_HOLES;
use super::map::{Dim, MapPart, Point};

/// An order of the ranks below `side * side`; all others stay where they are. With the outer coordinate o and the inner
/// one i, the rank is seen as `side * o + (i + skew * o) mod side`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct View {
    /// Ranks in a row, and rows.
    pub side: u32,
    /// By how much each row is turned further than the one before.
    pub skew: u32,
    /// Whether the outer coordinate is `rank mod side`; otherwise it is `rank / side`.
    pub columns: bool,
}

/// What a view takes to write down, as [`super::map::price`] counts.
pub(super) const PRICE: u64 = 4;
/// Rows times columns of a grid, once equal ones are one. With more there is no pattern in this order.
const MOST_CELLS: usize = 64;

impl View {
    /// Whether it is an order of ranks.
    pub fn is_sound(self) -> bool {
        (2..=u32::from(u16::MAX)).contains(&self.side) && self.skew < self.side
    }

    fn ranks(self) -> u32 {
        self.side * self.side
    }

    fn turn(self, outer: u32) -> u32 {
        (u64::from(self.skew) * u64::from(outer) % u64::from(self.side)) as u32
    }

    /// Where a rank is seen.
    pub fn seen(self, rank: u32) -> u32 {
        if rank >= self.ranks() {
            return rank;
        }
        let (low, high) = (rank % self.side, rank / self.side);
        let (outer, inner) = if self.columns { (low, high) } else { (high, low) };
        self.side * outer + (inner + self.turn(outer)) % self.side
    }

    /// Which rank is seen there.
    pub fn rank(self, seen: u32) -> u32 {
        if seen >= self.ranks() {
            return seen;
        }
        let outer = seen / self.side;
        let inner = (seen % self.side + self.side - self.turn(outer)) % self.side;
        if self.columns { self.side * inner + outer } else { self.side * outer + inner }
    }

    /// Orders in which the ranks up to `last` may be worth looking at: along both diagonals, by rows and by columns.
    fn of(last: u32) -> impl Iterator<Item = View> {
        let side = (u64::from(last) + 1).isqrt() as u32;
        let square = side > 2 && u64::from(side) * u64::from(side) == u64::from(last) + 1;
        let all = [(1, false), (1, true), (side.wrapping_sub(1), false), (side.wrapping_sub(1), true)];
        let view = move |(skew, columns)| View { side, skew, columns };
        all.into_iter().map(view).filter(move |view| square && view.is_sound())
    }
}

/// `8r1`: side, rows or columns outside, skew.
impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}{}{}", self.side, if self.columns { 'c' } else { 'r' }, self.skew)
    }
}

/// The points, by rank, as few boxes with a number each in the order that has the fewest, if they cost less than `most`.
/// Takes a few steps for each point.
pub(super) fn seen(points: &[Point], most: u64) -> Option<(View, Vec<MapPart>)> {
    let last = points.last()?.0;
    if u64::from(last) >= MOST_HOLES * points.len() as u64 {
        return None;
    }
    let ways = View::of(last).filter_map(|view| Some((view, boxes(view, points)?)));
    let price = |parts: &[MapPart]| PRICE + super::map::price(parts);
    ways.map(|(view, parts)| (price(&parts), view, parts))
        .filter(|(price, ..)| *price < most)
        .min_by_key(|(price, ..)| *price)
        .map(|(_, view, parts)| (view, parts))
}

/// Fewer points than these are folded in a moment.
const MANY_POINTS: usize = 256;
/// So many boxes are few.
const FEW_BOXES: usize = 16;

/// What [`seen`] finds, if it is so little that no other way need be tried: a few boxes with few numbers, in an order in which
/// they are fewer than in that of the ranks. A row of many ranks whose numbers go up would have many numbers.
pub(super) fn plainly_better(points: &[Point]) -> Option<(View, Vec<MapPart>)> {
    if points.len() < MANY_POINTS {
        return None;
    }
    let (view, parts) = seen(points, u64::MAX).filter(|(_, parts)| parts.len() <= FEW_BOXES)?;
    let as_they_are = boxes(View { skew: 0, columns: false, ..view }, points);
    let price = |parts: &[MapPart]| PRICE + super::map::price(parts);
    let better = as_they_are.is_none_or(|other| price(&parts) < super::map::price(&other));
    better.then_some((view, parts))
}

/// Neighbours that do not differ where both are known are one.
fn joined(lines: impl Iterator<Item = Vec<Option<i64>>>) -> Option<Vec<(u32, Vec<Option<i64>>)>> {
    let mut all: Vec<(u32, Vec<Option<i64>>)> = Vec::new();
    for line in lines {
        let same = |(a, b): (&Option<i64>, &Option<i64>)| a.is_none() || b.is_none() || a == b;
        match all.last_mut().filter(|(_, known)| known.iter().zip(&line).all(same)) {
            Some((count, known)) => {
                *count += 1;
                known.iter_mut().zip(line).for_each(|(known, here)| *known = known.or(here));
            }
            None => all.push((1, line)),
        }
        if all.len() > MOST_CELLS {
            return None;
        }
    }
    Some(all)
}

/// Of a grid whose rows and columns are alike but for a few.
fn boxes(view: View, points: &[Point]) -> Option<Vec<MapPart>> {
    let side = view.side as usize;
    let mut grid = vec![None; side * side];
    for &(rank, number) in points {
        grid[view.seen(rank) as usize] = Some(number);
    }
    let rows = joined(grid.chunks(side).map(<[_]>::to_vec))?;
    let columns = joined((0..side).map(|at| rows.iter().map(|(_, row)| row[at]).collect()))?;
    if rows.len() * columns.len() > MOST_CELLS {
        return None;
    }
    let mut parts: Vec<Cell> = Vec::new();
    let mut top = 0;
    for (row, &(height, _)) in rows.iter().enumerate() {
        let mut left = 0;
        let from = parts.len();
        for (width, column) in &columns {
            if let Some(value) = column[row] {
                match parts[from..].last_mut() {
                    Some(before) if before.value == value && before.left + before.width == left => {
                        before.width += width;
                    }
                    _ => parts.push(Cell { top, left, height, width: *width, value }),
                }
            }
            left += width;
        }
        join_rows(&mut parts, from, top);
        top += height;
    }
    let mut parts: Vec<MapPart> = parts.iter().map(|cell| cell.part(view.side)).collect();
    parts.sort_by_key(|part| part.start);
    Some(parts)
}

struct Cell {
    top: u32,
    left: u32,
    height: u32,
    width: u32,
    value: i64,
}

impl Cell {
    fn part(&self, side: u32) -> MapPart {
        let dim = |count, stride| Dim { count, stride, step: 0 };
        let dims = match (self.height, self.width) {
            (height, width) if width == side => vec![dim(height * width, 1)],
            (height, width) => vec![dim(height, side), dim(width, 1)],
        };
        let dims = dims.into_iter().filter(|dim| dim.count > 1).collect();
        MapPart { start: self.top * side + self.left, value: self.value, dims }
    }
}

/// Cells from `from` on, which begin at `top`, go on with those above where these are as wide.
fn join_rows(cells: &mut Vec<Cell>, from: usize, top: u32) {
    for cell in cells.split_off(from) {
        let above = cells[..from].iter_mut().find(|above| {
            above.top + above.height == top
                && (above.left, above.width, above.value) == (cell.left, cell.width, cell.value)
        });
        match above {
            Some(above) => above.height += cell.height,
            None => cells.push(cell),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::{Checks, RankList, RankMap};
    use crate::testing::cases;
    use proptest::prelude::*;

    fn any_view() -> impl Strategy<Value = View> {
        let side = prop_oneof![2..40u32, Just(65_535)];
        side.prop_flat_map(|side| {
            (0..side, any::<bool>()).prop_map(move |(skew, columns)| View { side, skew, columns })
        })
    }

    proptest! {
        #![proptest_config(cases(500))]
        #[test]
        fn a_view_is_an_order_of_the_ranks(view in any_view(), rank in prop_oneof![0..2000u32, any::<u32>()]) {
            assert!(view.is_sound());
            assert_eq!(view.rank(view.seen(rank)), rank);
            assert_eq!(view.seen(view.rank(rank)), rank);
            assert_eq!(view.seen(rank) < view.ranks(), rank < view.ranks());
        }

        /// Bands along two coordinates, with some ranks missing, and some numbers changed.
        #[test]
        fn functions_stay_what_they_are(
            side in 3..14u32,
            cuts in (0..14u32, 0..14u32),
            along in 0..4u32,
            without in proptest::collection::vec(0..196u32, 0..4),
            changed in proptest::collection::vec(0..196u32, 0..3),
        ) {
            let number = |rank: u32| {
                let (i, j) = (rank % side, rank / side);
                let around = [i + j, i + side - j, 2 * i + j, i][along as usize] % side;
                let own = if changed.contains(&rank) { i64::from(rank) } else { 0 };
                i64::from(around < cuts.0) + 2 * i64::from(j < cuts.1) + 10 * own
            };
            let ranks: Vec<u32> = (0..side * side).filter(|rank| !without.contains(rank)).collect();
            let pairs: Vec<Point> = ranks.iter().map(|&rank| (rank, number(rank))).collect();
            let map = RankMap::loose(pairs.clone());
            let list = RankList::from_sorted(&ranks);
            assert_eq!(map.pairs_of(&list), pairs);
            pairs.iter().for_each(|&(rank, number)| assert_eq!(map.get(rank), Some(number)));
            assert_eq!(Checks::unbounded().is_over(&map, &list), Ok(true));
            assert_eq!(map.plain().pairs_of(&list), pairs);
            let half = u64::from(side)..u64::from(side * side / 2);
            let kept: Vec<Point> = pairs.iter().copied().filter(|p| half.contains(&p.0.into())).collect();
            let only = RankList::from_iter(kept.iter().map(|p| p.0));
            assert_eq!(map.within(half).pairs_of(&only), kept);
            // Nothing is said of one rank more.
            if map.view.is_some() {
                let more = list.union(&RankList::single(side * side + 7));
                assert_eq!(Checks::unbounded().is_over(&map, &more), Ok(false));
            }
        }
    }

    #[test]
    fn diagonals_of_grids_of_any_size_cost_the_same() {
        for side in [5u32, 8, 31, 128] {
            for along in 0..3 {
                let number = |rank: u32| {
                    let (i, j) = (rank % side, rank / side);
                    let (a, b) = [(i, i + j), (j, i + j), (i, i + side - j)][along];
                    i64::from(a < 2) * 3 + i64::from(b % side < 3)
                };
                let map = RankMap::loose((0..side * side).map(|rank| (rank, number(rank))).collect());
                // One that begins before the edge is two.
                assert!(map.parts.len() <= 6, "{side} {along}: {map:?}");
            }
        }
    }

    #[test]
    fn views_that_are_none_are_refused() {
        let ranks = RankList::from_iter(0..16);
        let map = RankMap::constant(&ranks, 1);
        let with = |side, skew| RankMap { view: Some(View { side, skew, columns: false }), ..map.clone() };
        let is_over = |map: &RankMap| Checks::unbounded().is_over(map, &ranks);
        assert_eq!(is_over(&with(4, 1)), Ok(true));
        // It takes ranks from beyond the sixteen into them.
        assert_eq!(is_over(&with(5, 1)), Ok(false));
        for (side, skew) in [(0, 0), (1, 0), (4, 4), (65_536, 1), (u32::MAX, 3)] {
            assert_eq!(is_over(&with(side, skew)), Ok(false), "{side} {skew}");
        }
        // What is seen of many ranks takes as long as they are many.
        let most = RankList::from_iter(1..30_000);
        let wide =
            RankMap { view: Some(View { side: 174, skew: 1, columns: true }), ..RankMap::constant(&most, 1) };
        assert!(Checks::within(30_000).is_over(&wide, &most).is_err());
    }
}
