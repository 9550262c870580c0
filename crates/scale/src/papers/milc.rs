//! MILC su3_rmd on a 4-D torus.

use super::{along, barrier, broadcast, mixed, start_receive, start_send, sum_all};
use crate::grid::Grid;
use crate::rank::Rank;

const AXES: usize = 4;

struct Lattice {
    grid: Grid,
    /// Of one rank.
    sites: [u32; AXES],
}

pub(super) fn weak(r: &mut Rank<'_>, steps: u32) {
    let lattice = Lattice { grid: Grid::balanced(r.size, AXES, true), sites: [16, 16, 16, 32] };
    trajectory(r, &lattice, steps);
}

/// One lattice, cut in two along its longest side until there is a part for each rank.
pub(super) fn strong(r: &mut Rank<'_>, steps: u32) {
    let (mut sites, mut dims) = ([64, 64, 64, 32], vec![1; AXES]);
    for _ in 0..r.size.ilog2() {
        // The first of those that are equally long.
        let longest = (0..AXES).rev().max_by_key(|axis| sites[*axis]).unwrap_or(0);
        sites[longest] /= 2;
        dims[longest] *= 2;
    }
    trajectory(r, &Lattice { grid: Grid { dims, periodic: true }, sites }, steps);
}

impl Lattice {
    /// Sites of one parity next to the neighbour along the axis.
    fn boundary(&self, axis: usize) -> u32 {
        (0..AXES).filter(|other| *other != axis).map(|other| self.sites[other]).product::<u32>() / 2
    }

    fn start_gather(&self, r: &mut Rank<'_>, direction: usize, numbers: u32) {
        let (axis, by) = (direction % AXES, if direction < AXES { 1 } else { -1 });
        if self.grid.dims[axis] == 1 {
            return;
        }
        let count = self.boundary(axis) * numbers;
        if let (Some(from), Some(to)) =
            (along(&self.grid, r.rank, axis, by), along(&self.grid, r.rank, axis, -by))
        {
            start_receive(r, count, from, direction as u32);
            start_send(r, count, to, direction as u32);
        }
    }

    /// The operator on the sites of one parity.
    fn apply(&self, r: &mut Rank<'_>) {
        (0..2 * AXES).for_each(|direction| self.start_gather(r, direction, 3));
        r.wait_each();
    }

    fn solve(&self, r: &mut Rank<'_>, step: u32) {
        for _ in 0..10 + mixed(&[step, 0, 1]) % 6 {
            (0..4).for_each(|_| self.apply(r));
            sum_all(r, 1);
            sum_all(r, 1);
        }
    }

    fn gather_links(&self, r: &mut Rank<'_>) {
        for axis in 0..AXES {
            for other in (0..AXES).filter(|other| *other != axis) {
                self.start_gather(r, other, 18);
                r.wait_each();
            }
        }
    }
}

fn trajectory(r: &mut Rank<'_>, lattice: &Lattice, steps: u32) {
    (0..6).for_each(|_| broadcast(r, 8));
    for step in 0..steps {
        lattice.gather_links(r);
        lattice.solve(r, step);
        sum_all(r, 2);
    }
    barrier(r);
}
