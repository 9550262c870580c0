//! The 5-point, 9-point, 27-point and recursive stencils of `tests/programs`.

use super::{into, out, sum_at_root};
use crate::grid::Grid;
use crate::rank::Rank;

/// A grid that does not wrap around, the first coordinate fastest, as `tests/programs/grid.h` has it.
pub(super) struct Field {
    /// Its dimensions in the opposite order.
    reversed: Grid,
}

impl Field {
    pub(super) fn new(r: &mut Rank<'_>, dimensions: usize) -> Field {
        let grid = Grid::balanced(r.size, dimensions, false);
        r.dims_create(&grid);
        Field { reversed: Grid { dims: grid.dims.into_iter().rev().collect(), ..grid } }
    }

    pub(super) fn extent(&self, dimension: usize) -> u32 {
        self.reversed.dims[self.reversed.dims.len() - 1 - dimension]
    }

    pub(super) fn coords(&self, rank: u32) -> Vec<u32> {
        self.reversed.coords(rank).into_iter().rev().collect()
    }

    pub(super) fn neighbour(&self, rank: u32, by: &[i32]) -> Option<u32> {
        let by: Vec<i32> = by.iter().rev().copied().collect();
        self.reversed.neighbour(rank, &by)
    }
}

/// `count`: numbers in a message to a neighbour that differs in so many coordinates.
pub(super) fn run(r: &mut Rank<'_>, dimensions: usize, count: impl Fn(usize) -> u32, steps: u32) {
    let field = Field::new(r, dimensions);
    let directions = 3i32.pow(dimensions as u32);
    let mut near = Vec::new();
    for there in 0..directions {
        let by: Vec<i32> = (0..dimensions as u32).map(|d| there / 3i32.pow(d) % 3 - 1).collect();
        let axes = by.iter().filter(|step| **step != 0).count();
        if let Some(other) = field.neighbour(r.rank, &by).filter(|_| axes > 0) {
            near.push((other, there, count(axes)));
        }
    }
    exchange(r, &near, directions - 1, steps);
}

/// Two neighbours on either side.
pub(super) fn in_a_line(r: &mut Rank<'_>, steps: u32) {
    let there = |away: i32| r.rank.checked_add_signed(away).filter(|other| *other < r.size);
    let sides = (0..).zip([-2, -1, 1, 2]);
    let near: Vec<_> = sides.filter_map(|(side, away)| Some((there(away)?, side, 16))).collect();
    exchange(r, &near, 3, steps);
}

/// With each neighbour, a tag that says where it is, and a count. What comes from there was sent the opposite way: the two tags
/// add up to `both`.
fn exchange(r: &mut Rank<'_>, near: &[(u32, i32, u32)], both: i32, steps: u32) {
    let world = r.world();
    for _ in 0..steps {
        for &(other, there, count) in near {
            r.irecv(into(count), other, both - there, world);
        }
        for &(other, there, count) in near {
            r.isend(out(count), other, there, world);
        }
        r.waitall();
    }
    sum_at_root(r, 1);
}
