//! LU, CG, MG, FT, IS and EP of NPB.

use super::{
    along, barrier, broadcast, into, mixed, out, receive, send, share, start_receive, sum_all, sum_at_root,
};
use crate::grid::Grid;
use crate::rank::Rank;

struct Wavefront {
    north: Option<u32>,
    south: Option<u32>,
    west: Option<u32>,
    east: Option<u32>,
    width: u32,
    height: u32,
}

impl Wavefront {
    const GRID: u32 = 162;
    const PLANES: u32 = 20;

    fn of(r: &Rank<'_>) -> Wavefront {
        let rows = 1u32 << (r.size.ilog2() / 2);
        let columns = r.size / rows;
        let (row, column) = (r.rank % rows, r.rank / rows);
        Wavefront {
            north: (row > 0).then(|| r.rank - 1),
            south: (row < rows - 1).then(|| r.rank + 1),
            west: (column > 0).then(|| r.rank - rows),
            east: (column < columns - 1).then(|| r.rank + rows),
            width: share(Wavefront::GRID, columns, column),
            height: share(Wavefront::GRID, rows, row),
        }
    }

    fn sweep(&self, r: &mut Rank<'_>, from: [Option<u32>; 2], to: [Option<u32>; 2], tag: u32) {
        let counts = [5 * self.width, 5 * self.height];
        for _ in 0..Wavefront::PLANES {
            for side in 0..2 {
                if let Some(from) = from[side] {
                    receive(r, counts[side], from, tag + side as u32);
                }
            }
            for side in 0..2 {
                if let Some(to) = to[side] {
                    send(r, counts[side], to, tag + side as u32);
                }
            }
        }
    }

    fn exchange_faces(&self, r: &mut Rank<'_>) {
        let (width, height) = (10 * self.width * Wavefront::PLANES, 10 * self.height * Wavefront::PLANES);
        shift(r, self.north, self.south, width, 5);
        shift(r, self.south, self.north, width, 6);
        shift(r, self.west, self.east, height, 7);
        shift(r, self.east, self.west, height, 8);
    }
}

fn shift(r: &mut Rank<'_>, from: Option<u32>, to: Option<u32>, count: u32, tag: u32) {
    if let Some(from) = from {
        start_receive(r, count, from, tag);
    }
    if let Some(to) = to {
        send(r, count, to, tag);
    }
    r.wait_each();
}

pub(super) fn lu(r: &mut Rank<'_>, steps: u32) {
    let w = Wavefront::of(r);
    (0..5).for_each(|_| broadcast(r, 1));
    w.exchange_faces(r);
    sum_all(r, 5);
    barrier(r);
    for _ in 0..steps {
        w.sweep(r, [w.north, w.west], [w.south, w.east], 1);
        w.sweep(r, [w.south, w.east], [w.north, w.west], 3);
        w.exchange_faces(r);
    }
    sum_all(r, 5);
    sum_all(r, 1);
}

struct Matrix {
    rows: u32,
    columns: u32,
    transposed: u32,
}

impl Matrix {
    const LENGTH: u32 = 14_000;
    const ITERATIONS: u32 = 25;

    fn of(r: &Rank<'_>) -> Matrix {
        let rows = 1u32 << (r.size.ilog2() / 2);
        let columns = r.size / rows;
        let ratio = columns / rows;
        let half = r.rank / ratio;
        let transposed = ratio * (half % rows * rows + half / rows) + r.rank % ratio;
        Matrix { rows, columns, transposed }
    }

    fn columns_of(&self, rank: u32) -> u32 {
        share(Matrix::LENGTH, self.columns, rank % self.columns)
    }

    fn sum_row(&self, r: &mut Rank<'_>, count: u32) {
        let (row, column) = (r.rank / self.columns, r.rank % self.columns);
        let mut group = self.columns;
        while group > 1 {
            let partner = row * self.columns + (column % group + group / 2) % group + column / group * group;
            start_receive(r, count, partner, 1);
            send(r, count, partner, 1);
            r.wait_each();
            group /= 2;
        }
    }

    fn multiply(&self, r: &mut Rank<'_>) {
        self.sum_row(r, share(Matrix::LENGTH, self.rows, r.rank / self.columns));
        if self.columns > 1 {
            start_receive(r, self.columns_of(r.rank), self.transposed, 2);
            send(r, self.columns_of(self.transposed), self.transposed, 2);
            r.wait_each();
        }
    }
}

pub(super) fn cg(r: &mut Rank<'_>, steps: u32) {
    let m = Matrix::of(r);
    barrier(r);
    for _ in 0..steps {
        m.sum_row(r, 1);
        for _ in 0..Matrix::ITERATIONS {
            m.multiply(r);
            m.sum_row(r, 1);
            m.sum_row(r, 1);
        }
        m.multiply(r);
        m.sum_row(r, 1);
        m.sum_row(r, 2);
    }
    sum_at_root(r, 1);
}

struct Multigrid {
    grid: Grid,
    at: Vec<u32>,
}

impl Multigrid {
    const LEVELS: u32 = 8;

    fn of(r: &Rank<'_>) -> Multigrid {
        let grid = Grid::balanced(r.size, 3, true);
        let at = grid.coords(r.rank);
        Multigrid { grid, at }
    }

    fn apart(&self, axis: usize, level: u32) -> u32 {
        (self.grid.dims[axis] >> level).max(1)
    }

    fn holds(&self, axis: usize, level: u32) -> bool {
        self.at[axis].is_multiple_of(self.apart(axis, level))
    }

    fn side(&self, axis: usize, level: u32) -> u32 {
        ((1 << level) / self.grid.dims[axis]).max(1) + 2
    }

    fn face(&self, axis: usize, level: u32) -> u32 {
        self.side((axis + 1) % 3, level) * self.side((axis + 2) % 3, level)
    }

    fn beside(&self, rank: u32, axis: usize, level: u32) -> Option<(u32, u32)> {
        let away = self.apart(axis, level) as i32;
        Some((along(&self.grid, rank, axis, -away)?, along(&self.grid, rank, axis, away)?))
    }

    fn halo(&self, r: &mut Rank<'_>, level: u32) {
        if !(0..3).all(|axis| self.holds(axis, level)) {
            return;
        }
        for axis in (0..3).filter(|axis| self.apart(*axis, level) != self.grid.dims[*axis]) {
            let Some((left, right)) = self.beside(r.rank, axis, level) else { continue };
            let (count, tag) = (self.face(axis, level), 2 * axis as u32);
            start_receive(r, count, left, tag);
            start_receive(r, count, right, tag + 1);
            send(r, count, right, tag);
            send(r, count, left, tag + 1);
            r.wait_each();
        }
    }

    fn extend(&self, r: &mut Rank<'_>, level: u32) {
        for axis in 0..3 {
            // Axes before this one are extended already.
            let level_of = |other| if other < axis { level } else { level - 1 };
            let there = (0..3).all(|other| other == axis || self.holds(other, level_of(other)));
            let same = self.apart(axis, level) == self.apart(axis, level - 1);
            if same || !there || !self.holds(axis, level) {
                continue;
            }
            let Some((left, right)) = self.beside(r.rank, axis, level) else { continue };
            let count = self.face(axis, level);
            if self.holds(axis, level - 1) {
                send(r, count, right, 6);
                send(r, count, left, 7);
            } else {
                start_receive(r, count, left, 6);
                start_receive(r, count, right, 7);
                r.wait_each();
            }
        }
    }
}

pub(super) fn mg(r: &mut Rank<'_>, steps: u32) {
    let m = Multigrid::of(r);
    (0..4).for_each(|_| broadcast(r, 1));
    m.halo(r, Multigrid::LEVELS);
    sum_all(r, 1);
    sum_all(r, 1);
    barrier(r);
    for _ in 0..steps {
        (1..Multigrid::LEVELS).rev().for_each(|level| m.halo(r, level));
        m.halo(r, 1);
        for level in 2..=Multigrid::LEVELS {
            m.extend(r, level);
            m.halo(r, level);
            m.halo(r, level);
        }
        m.halo(r, Multigrid::LEVELS);
    }
    sum_all(r, 1);
    sum_all(r, 1);
    sum_at_root(r, 1);
}

pub(super) fn ft(r: &mut Rank<'_>, steps: u32) {
    const PLANES: u32 = 256;
    const POINTS: u32 = 1 << 18;
    let (world, size) = (r.world(), r.size);
    let rows = if size > PLANES { 1u32 << (size.ilog2() / 2) } else { 1 };
    let columns = size / rows;
    let (mine, place) = (r.rank / columns, r.rank % columns);
    broadcast(r, 3);
    broadcast(r, 1);
    let of_row = (0..columns).map(|column| mine * columns + column).collect();
    let of_column = (0..rows).map(|row| row * columns + place).collect();
    let row = r.split(world, Some(mine as i32), place as i32, of_row);
    let column = r.split(world, Some(place as i32), mine as i32, of_column);
    let (Some(row), Some(column)) = (row, column) else { return };
    barrier(r);
    for _ in 0..steps {
        for (comm, members) in [(row, columns), (column, rows)] {
            if comm == row || rows > 1 {
                let count = (POINTS / size / members).max(1);
                r.alltoall(out(count), into(count), comm);
            }
        }
        sum_at_root(r, 2);
        broadcast(r, 1);
    }
    r.free(row);
    r.free(column);
}

/// How many keys a rank has for another in a step.
fn keys(from: u32, to: u32, step: u32, size: u32) -> i32 {
    let mean = (4096 / size).max(8);
    let spread = (1..).find(|spread| spread * spread >= mean).unwrap_or(1);
    let mut count = (mean - spread) as i32 + (mixed(&[from, to, 1]) % u64::from(2 * spread + 1)) as i32;
    if size > 1 {
        for changed in 1..=step {
            count += i32::from(to == 0) + i32::from(to == size - 1);
            let lost = |what: u32| mixed(&[from, changed, what]) % u64::from(size) == u64::from(to);
            count -= i32::from(lost(2)) + i32::from(lost(3));
        }
    }
    count.max(0)
}

pub(super) fn is(r: &mut Rank<'_>, steps: u32) {
    let (world, size, rank) = (r.world(), r.size, r.rank);
    for step in 0..steps {
        let sent: Vec<i32> = (0..size).map(|to| keys(rank, to, step, size)).collect();
        let received: Vec<i32> = (0..size).map(|from| keys(from, rank, step, size)).collect();
        sum_all(r, 1024);
        r.alltoall(out(1), into(1), world);
        r.alltoallv(out(0), &sent, into(0), &received, world);
    }
    if rank > 0 {
        start_receive(r, 1, rank - 1, 1);
    }
    if rank + 1 < size {
        send(r, 1, rank + 1, 1);
    }
    r.wait_each();
    sum_at_root(r, 1);
}

pub(super) fn ep(r: &mut Rank<'_>) {
    barrier(r);
    sum_all(r, 1);
    sum_all(r, 1);
    sum_all(r, 10);
    sum_at_root(r, 1);
}
