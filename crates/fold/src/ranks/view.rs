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
use super::map::{Dim, MapPart, Point, RankMap};

/// An order of the ranks below `side * side`; all others stay where they are. With the outer coordinate o, the inner one i
/// and a turn of (a, b), the rank is seen as `side * ((o + a) mod side) + (i + skew * o + b) mod side`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct View {
    /// Ranks in a row, and rows.
    pub side: u32,
    /// By how much each row is turned further than the one before.
    pub skew: u32,
    /// Whether the outer coordinate is `rank mod side`; otherwise it is `rank / side`.
    pub columns: bool,
    /// By how much the whole grid is turned, along both coordinates.
    pub turn: [u32; 2],
}

/// What a view takes to write down, as [`super::map::price`] counts.
pub(super) const PRICE: u64 = 4;
/// Rows times columns of a grid, once equal ones are one. With more there is no pattern in this order.
const MOST_CELLS: usize = 64;

impl View {
    /// Whether it is an order of ranks.
    pub fn is_sound(self) -> bool {
        let inside = |turn: &u32| *turn < self.side;
        (2..=u32::from(u16::MAX)).contains(&self.side)
            && self.skew < self.side
            && self.turn.iter().all(inside)
    }

    /// An order of the ranks of a grid that is not turned.
    pub fn new(side: u32, skew: u32, columns: bool) -> View {
        View { side, skew, columns, turn: [0; 2] }
    }

    /// The same, turned further.
    pub fn turned(self, by: [i64; 2]) -> View {
        let side = i64::from(self.side.max(1));
        let further = |at: usize| (i64::from(self.turn[at]) + by[at] % side).rem_euclid(side) as u32;
        View { turn: [further(0), further(1)], ..self }
    }

    fn ranks(self) -> u32 {
        self.side * self.side
    }

    fn skewed(self, outer: u32) -> u32 {
        (u64::from(self.skew) * u64::from(outer) % u64::from(self.side)) as u32
    }

    /// Where a rank is seen.
    pub fn seen(self, rank: u32) -> u32 {
        if rank >= self.ranks() {
            return rank;
        }
        let (low, high) = (rank % self.side, rank / self.side);
        let (outer, inner) = if self.columns { (low, high) } else { (high, low) };
        let [a, b] = self.turn;
        self.side * ((outer + a) % self.side) + (inner + self.skewed(outer) + b) % self.side
    }

    /// Which rank is seen there.
    pub fn rank(self, seen: u32) -> u32 {
        if seen >= self.ranks() {
            return seen;
        }
        let [a, b] = self.turn;
        let outer = (seen / self.side + self.side - a) % self.side;
        let inner = (seen % self.side + 2 * self.side - self.skewed(outer) - b) % self.side;
        if self.columns { self.side * inner + outer } else { self.side * outer + inner }
    }

    /// Orders in which the ranks up to `last` may be worth looking at: along both diagonals, by rows and by columns.
    fn of(last: u32) -> impl Iterator<Item = View> {
        let side = side_of(last);
        let all = move |side: u32| [(1, false), (1, true), (side - 1, false), (side - 1, true)];
        let views = move |side| all(side).map(|(skew, columns)| View::new(side, skew, columns));
        side.into_iter().flat_map(views)
    }
}

/// The side of the square of all ranks up to `last`, if they are one and it is worth looking at.
fn side_of(last: u32) -> Option<u32> {
    let ranks = u64::from(last) + 1;
    let side = ranks.isqrt();
    let square = side > 2 && side * side == ranks;
    u32::try_from(side).ok().filter(|side| square && *side <= u32::from(u16::MAX))
}

/// The side of the square grid that the points, by rank, are numbers on; some ranks may be missing.
pub(super) fn grid_of(points: &[Point]) -> Option<u32> {
    let last = points.last()?.0;
    side_of(last).filter(|_| u64::from(last) < MOST_HOLES * points.len() as u64)
}

/// `8r1`: side, rows or columns outside, skew; and if it is turned `8r1+2+7`.
impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}{}{}", self.side, if self.columns { 'c' } else { 'r' }, self.skew)?;
        match self.turn {
            [0, 0] => Ok(()),
            [a, b] => write!(f, "+{a}+{b}"),
        }
    }
}

/// The points, by rank, as few boxes with a number each in the order that has the fewest, if they cost less than `most`.
/// Takes a few steps for each point.
pub(super) fn seen(points: &[Point], most: u64) -> Option<(View, Vec<MapPart>)> {
    let side = grid_of(points)?;
    let ways = View::of(side * side - 1).filter_map(|view| Some((view, boxes(view, points)?)));
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
    let as_they_are = boxes(View::new(view.side, 0, false), points);
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

/// A grid whose rows and columns are alike but for a few, once equal neighbours are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Cells {
    /// How many rows each row stands for.
    heights: Vec<u32>,
    /// How many columns each column stands for.
    widths: Vec<u32>,
    /// Row by row; none where no rank is.
    numbers: Vec<Option<i64>>,
}

impl Cells {
    fn of(view: View, points: &[Point]) -> Option<Cells> {
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
        let numbers = (0..rows.len()).flat_map(|row| columns.iter().map(move |(_, column)| column[row]));
        Some(Cells {
            numbers: numbers.collect(),
            heights: rows.iter().map(|row| row.0).collect(),
            widths: columns.iter().map(|column| column.0).collect(),
        })
    }

    fn row(&self, at: usize) -> &[Option<i64>] {
        &self.numbers[at * self.widths.len()..][..self.widths.len()]
    }

    /// As few boxes on a grid with this side.
    fn parts(&self, side: u32) -> Vec<MapPart> {
        let mut parts: Vec<Cell> = Vec::new();
        let mut top = 0;
        for (row, &height) in self.heights.iter().enumerate() {
            let mut left = 0;
            let from = parts.len();
            for (&width, number) in self.widths.iter().zip(self.row(row)) {
                if let Some(value) = *number {
                    match parts[from..].last_mut() {
                        Some(before) if before.value == value && before.left + before.width == left => {
                            before.width += width;
                        }
                        _ => parts.push(Cell { top, left, height, width, value }),
                    }
                }
                left += width;
            }
            join_rows(&mut parts, from, top);
            top += height;
        }
        let mut parts: Vec<MapPart> = parts.iter().map(|cell| cell.part(side)).collect();
        parts.sort_by_key(|part| part.start);
        parts
    }

    /// The same seen across the diagonal.
    fn transposed(&self) -> Cells {
        let (rows, columns) = (self.heights.len(), self.widths.len());
        let numbers = (0..columns).flat_map(|x| (0..rows).map(move |y| self.numbers[y * columns + x]));
        Cells { numbers: numbers.collect(), heights: self.widths.clone(), widths: self.heights.clone() }
    }

    /// With the first row after so many others, which come last.
    fn rotated(&self, first: usize) -> Cells {
        let mut cells = self.clone();
        cells.heights.rotate_left(first);
        cells.numbers.rotate_left(first * self.widths.len());
        cells
    }

    /// The last rows go on as the first ones: they are one, and this says how many of them came last.
    fn around(&mut self) -> u32 {
        let last = self.heights.len() - 1;
        let same = |(a, b): (&Option<i64>, &Option<i64>)| a.is_none() || b.is_none() || a == b;
        if last == 0 || !self.row(0).iter().zip(self.row(last)).all(same) {
            return 0;
        }
        for (known, here) in self.numbers.split_off(last * self.widths.len()).into_iter().enumerate() {
            self.numbers[known] = self.numbers[known].or(here);
        }
        let came_last = self.heights.pop().unwrap_or(0);
        self.heights[0] += came_last;
        came_last
    }
}

/// Of a grid whose rows and columns are alike but for a few.
pub(super) fn boxes(view: View, points: &[Point]) -> Option<Vec<MapPart>> {
    Some(Cells::of(view, points)?.parts(view.side))
}

/// A function on a square grid, whatever way the grid is turned: two functions of which one is the other one turned have the
/// same wheel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wheel {
    /// Not turned.
    view: View,
    cells: Cells,
}

impl Wheel {
    /// Of the numbers of ranks on a square grid, by rank, and how far that is turned; none where it has no few cells. Takes a
    /// few steps for each point.
    pub fn of(points: &[(u32, i64)]) -> Option<(Wheel, [u32; 2])> {
        let side = grid_of(points)?;
        let plain = View::new(side, 0, false);
        let all = std::iter::once(plain).chain(View::of(side * side - 1));
        let ways = all.filter_map(|view| Some((view, Cells::of(view, points)?)));
        let around = ways.map(|(view, mut cells)| {
            let outer = cells.around();
            let mut across = cells.transposed();
            let inner = across.around();
            (view, across.transposed(), [outer, inner])
        });
        let (view, cells, turn) = around.min_by_key(|(_, cells, _)| cells.numbers.len())?;
        // Where to begin is free: as long as turned grids begin at the same place.
        let mut best: Option<(usize, Cells, [u32; 2])> = None;
        let mut above = 0;
        for row in 0..cells.heights.len() {
            let across = cells.rotated(row).transposed();
            let mut before = 0;
            for column in 0..cells.widths.len() {
                let here = across.rotated(column).transposed();
                let parts = here.parts(side).len();
                let key =
                    |cells: &Cells| (cells.heights.clone(), cells.widths.clone(), cells.numbers.clone());
                let less = best.as_ref().is_none_or(|(least, known, _)| {
                    parts < *least || parts == *least && key(&here) < key(known)
                });
                if less {
                    let turn = [(turn[0] + side - above) % side, (turn[1] + side - before) % side];
                    best = Some((parts, here, turn));
                }
                before += cells.widths[column];
            }
            above += cells.heights[row];
        }
        best.map(|(_, cells, turn)| (Wheel { view, cells }, turn))
    }

    /// The function, turned so far.
    pub fn turned(&self, turn: [u32; 2]) -> RankMap {
        RankMap {
            parts: self.cells.parts(self.view.side),
            view: Some(View { turn, ..self.view }),
            plus: None,
        }
    }
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
    use crate::testing::{cases, stays};
    use proptest::prelude::*;

    fn any_view() -> impl Strategy<Value = View> {
        let side = prop_oneof![2..40u32, Just(65_535)];
        side.prop_flat_map(|side| {
            let turn = [0..side, 0..side];
            let view = move |(skew, columns, turn)| View { side, skew, columns, turn };
            (0..side, any::<bool>(), turn).prop_map(view)
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
            let (map, list) = stays(&pairs, side);
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
    fn a_function_that_is_turned_has_the_same_wheel() {
        for side in [3u32, 6, 11] {
            // In turned coordinates: a corner, bands along the diagonals, and stripes.
            for kind in 0..4 {
                let number = |i: u32, j: u32| match kind {
                    0 => i64::from(i < 2 && j < 2),
                    1 => i64::from((i + j) % side < 2) + 2 * i64::from(i < 1),
                    2 => i64::from((i + side - j) % side < 1) + 2 * i64::from(j < 2),
                    _ => i64::from(i < 2),
                };
                let turned = |a: u32, b: u32| -> Vec<Point> {
                    let at = |rank: u32| number((rank % side + a) % side, (rank / side + b) % side);
                    (0..side * side).map(|rank| (rank, at(rank))).collect()
                };
                let (wheel, _) = Wheel::of(&turned(0, 0)).unwrap();
                for (a, b) in (0..side).flat_map(|a| (0..side).map(move |b| (a, b))) {
                    let points = turned(a, b);
                    let (other, turn) = Wheel::of(&points).unwrap();
                    assert_eq!(other, wheel, "{side} {kind} {a} {b}");
                    let map = other.turned(turn);
                    assert_eq!(map.pairs(), points, "{side} {kind} {a} {b}");
                    // The same without the first rank, where a row and a column tell what it would have.
                    let (other, turn) = Wheel::of(&points[1..]).unwrap();
                    let fewer = RankList::from_iter(1..side * side);
                    assert_eq!(other.turned(turn).pairs_of(&fewer), points[1..], "{side} {kind} {a} {b}");
                    assert!(other == wheel || [1, 2].contains(&kind) || side < 6, "{side} {kind} {a} {b}");
                    let further = wheel.turned([0, 0]);
                    let by = map.turned_from(&further).unwrap();
                    assert_eq!(further.view.unwrap().turned(by), map.view.unwrap());
                }
            }
        }
        // Ranks that are no grid.
        assert_eq!(Wheel::of(&[(0, 1), (1, 0), (2, 0)]), None);
        assert_eq!(Wheel::of(&(1..10).map(|rank| (rank, 1)).collect::<Vec<_>>()), None);
    }

    #[test]
    fn views_that_are_none_are_refused() {
        let ranks = RankList::from_iter(0..16);
        let map = RankMap::constant(&ranks, 1);
        let with = |side, skew| RankMap { view: Some(View::new(side, skew, false)), ..map.clone() };
        let is_over = |map: &RankMap| Checks::unbounded().is_over(map, &ranks);
        assert_eq!(is_over(&with(4, 1)), Ok(true));
        // It takes ranks from beyond the sixteen into them.
        assert_eq!(is_over(&with(5, 1)), Ok(false));
        for (side, skew) in [(0, 0), (1, 0), (4, 4), (65_536, 1), (u32::MAX, 3)] {
            assert_eq!(is_over(&with(side, skew)), Ok(false), "{side} {skew}");
        }
        for (turn, sound) in [([3, 3], true), ([4, 0], false), ([0, 4], false)] {
            let view = View { turn, ..View::new(4, 1, false) };
            assert_eq!(is_over(&RankMap { view: Some(view), ..map.clone() }), Ok(sound), "{turn:?}");
        }
        // What is seen of many ranks takes as long as they are many.
        let most = RankList::from_iter(1..30_000);
        let wide = RankMap { view: Some(View::new(174, 1, true)), ..RankMap::constant(&most, 1) };
        assert!(Checks::within(30_000).is_over(&wide, &most).is_err());
    }
}
