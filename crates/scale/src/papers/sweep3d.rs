//! Sweep3D: wavefronts from each of 8 corners.

use super::{along, barrier, broadcast, receive, send, share, sum_all};
use crate::grid::Grid;
use crate::rank::Rank;

const LINE: u32 = 200;
/// Blocks of angles times blocks of planes.
const BLOCKS: u32 = 2 * 10;
const DEEP: u32 = 6;

fn sweep(r: &mut Rank<'_>, grid: &Grid, down: i32, right: i32) {
    let (rank, at) = (r.rank, grid.coords(r.rank));
    let [height, width] = [0, 1].map(|axis| DEEP * share(LINE, grid.dims[axis], at[axis]));
    let ways = [(1, right, height, 1), (0, down, width, 2)];
    for _ in 0..BLOCKS {
        for (axis, by, count, tag) in ways {
            if let Some(from) = along(grid, rank, axis, -by) {
                receive(r, count, from, tag);
            }
        }
        for (axis, by, count, tag) in ways {
            if let Some(to) = along(grid, rank, axis, by) {
                send(r, count, to, tag);
            }
        }
    }
}

pub(super) fn run(r: &mut Rank<'_>, steps: u32) {
    let grid = Grid::balanced(r.size, 2, false);
    let way = |towards: bool| if towards { 1 } else { -1 };
    broadcast(r, 20);
    barrier(r);
    for _ in 0..steps {
        for octant in 0..8 {
            sweep(r, &grid, way(octant & 2 != 0), way(octant & 1 != 0));
        }
        sum_all(r, 1);
    }
    (0..3).for_each(|_| sum_all(r, 1));
    barrier(r);
}
