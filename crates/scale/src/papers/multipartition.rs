//! BT and SP of NPB: p slices along each axis of a cube, p² ranks, each with the p cells (i+c, j-c, c).

use super::{into, out};
use crate::rank::{Comm, Rank};

const GRID: u32 = 162;

/// Places of the requests of a stage in the program.
const SENT: usize = 0;
const RECEIVED: usize = 1;

struct Partition {
    slices: u32,
    at: [u32; 2],
    comm: Comm,
    next: [u32; 3],
    before: [u32; 3],
}

impl Partition {
    fn begin(r: &mut Rank<'_>) -> Partition {
        let p = r.size.isqrt();
        let (i, j) = (r.rank % p, r.rank / p);
        let (up, down) = (|at: u32| (at + 1) % p, |at: u32| (at + p - 1) % p);
        let world = r.world();
        let comm = r.dup(world);
        for count in [1, 1, 3] {
            r.bcast(out(count), 0, comm);
        }
        r.barrier(comm);
        Partition {
            slices: p,
            at: [i, j],
            comm,
            next: [up(i) + p * j, i + p * up(j), down(i) + p * up(j)],
            before: [down(i) + p * j, i + p * down(j), up(i) + p * down(j)],
        }
    }

    fn conclude(&self, r: &mut Rank<'_>) {
        r.allreduce(out(5), into(5), self.comm);
        r.allreduce(out(5), into(5), self.comm);
        r.reduce(out(1), into(1), 0, self.comm);
    }

    fn cell(&self, c: u32) -> [u32; 3] {
        let p = self.slices;
        [(self.at[0] + c) % p, (self.at[1] + p - c) % p, c]
    }

    fn thickness(&self, slice: u32) -> u32 {
        super::share(GRID, self.slices, slice)
    }

    fn face(&self, axis: usize, cell: [u32; 3]) -> u32 {
        self.thickness(cell[(axis + 1) % 3]) * self.thickness(cell[(axis + 2) % 3])
    }

    /// Of all cells that are not in this slice.
    fn faces(&self, axis: usize, but: u32) -> u32 {
        let cells = (0..self.slices).map(|c| self.cell(c)).filter(|cell| cell[axis] != but);
        cells.map(|cell| self.face(axis, cell)).sum()
    }

    fn face_in_slice(&self, axis: usize, slice: u32) -> u32 {
        let p = self.slices;
        let c = match axis {
            0 => (slice + p - self.at[0]) % p,
            1 => (self.at[1] + p - slice) % p,
            _ => slice,
        };
        self.face(axis, self.cell(c))
    }
}

/// What [`Partition::faces`] says of all axes: to the next rank and to the one before.
type Faces = [[u32; 2]; 3];

fn copy_faces(r: &mut Rank<'_>, p: &Partition, faces: &Faces) {
    if p.slices == 1 {
        return;
    }
    let sides = || faces.iter().zip(p.next).zip(p.before).zip([2, 4, 6]);
    for (((faces, next), before), tag) in sides() {
        r.irecv(into(10 * faces[0]), next, tag, p.comm);
        r.irecv(into(10 * faces[1]), before, tag + 1, p.comm);
    }
    for (((faces, next), before), tag) in sides() {
        r.isend(out(10 * faces[0]), next, tag + 1, p.comm);
        r.isend(out(10 * faces[1]), before, tag, p.comm);
    }
    r.waitall_told();
}

fn steps_of(r: &mut Rank<'_>, steps: u32, solve: impl Fn(&mut Rank<'_>, &Partition, usize)) {
    let p = Partition::begin(r);
    let faces = [0, 1, 2].map(|axis| [p.faces(axis, p.slices - 1), p.faces(axis, 0)]);
    for _ in 0..steps {
        copy_faces(r, &p, &faces);
        (0..3).for_each(|axis| solve(r, &p, axis));
    }
    p.conclude(r);
}

pub(super) fn bt(r: &mut Rank<'_>, steps: u32) {
    steps_of(r, steps, |r, p, axis| {
        let (last, square, tag) = (p.slices - 1, p.thickness(0).pow(2), axis as i32 + 1);
        let wait = |r: &mut Rank<'_>| {
            r.wait(SENT);
            r.wait(RECEIVED);
        };
        for stage in 0..p.slices {
            if stage != 0 {
                r.irecv_in(RECEIVED, into(30 * square), p.before[axis], 10 + tag, p.comm);
                wait(r);
            }
            if stage != last {
                r.isend_in(SENT, out(30 * square), p.next[axis], 10 + tag, p.comm);
            }
        }
        for stage in (0..p.slices).rev() {
            if stage != last {
                r.irecv_in(RECEIVED, into(5 * square), p.next[axis], 20 + tag, p.comm);
                wait(r);
            }
            if stage != 0 {
                r.isend_in(SENT, out(5 * square), p.before[axis], 20 + tag, p.comm);
            }
        }
    });
}

pub(super) fn sp(r: &mut Rank<'_>, steps: u32) {
    // Both in one array, which is waited for as a whole: what is received first.
    const RECEIVED: usize = 0;
    const SENT: usize = 1;
    steps_of(r, steps, |r, p, axis| {
        let (last, tag) = (p.slices - 1, axis as i32 + 1);
        for stage in 0..p.slices {
            let points = p.face_in_slice(axis, stage);
            if stage != 0 {
                r.irecv_in(RECEIVED, into(22 * points), p.before[axis], 10 + tag, p.comm);
                r.waitall_first(2);
            }
            if stage != last {
                r.isend_in(SENT, out(22 * points), p.next[axis], 10 + tag, p.comm);
            }
        }
        for stage in (0..p.slices).rev() {
            let points = p.face_in_slice(axis, stage);
            if stage != last {
                r.irecv_in(RECEIVED, into(10 * points), p.next[axis], 20 + tag, p.comm);
                r.waitall_first(2);
            }
            if stage != 0 {
                r.isend_in(SENT, out(10 * points), p.before[axis], 20 + tag, p.comm);
            }
        }
    });
}
