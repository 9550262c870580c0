//! What each pattern does on one rank. Block 0 of the heap is what it sends from, block 1 what it receives into.

use crate::grid::Grid;
use crate::papers::mixed;
use crate::pattern::Pattern;
use crate::rank::{Comm, Data, Peer, Rank};

/// Doubles in a message, unless the pattern is about sizes.
const LENGTH: i32 = 128;

fn out(slot: usize, count: i32) -> Data {
    Data::new(0, 8 * LENGTH as u32 * slot as u32, count)
}

fn into(slot: usize, count: i32) -> Data {
    Data::new(1, 8 * LENGTH as u32 * slot as u32, count)
}

/// Between `MPI_Init` and `MPI_Finalize`.
pub(crate) fn run(pattern: Pattern, r: &mut Rank<'_>, steps: u32) {
    let world = r.world();
    r.comm_rank(world);
    r.comm_size(world);
    match pattern {
        Pattern::Stencil { dimensions, periodic, cart, corners } => {
            let grid = Grid::balanced(r.size, dimensions as usize, periodic);
            stencil(r, &grid, cart, corners, steps);
        }
        Pattern::Ring => ring(r, steps),
        Pattern::Butterfly => butterfly(r, steps),
        Pattern::Transpose => transpose(r, steps),
        Pattern::Pipeline => pipeline(r, steps),
        Pattern::Tree => tree(r, steps),
        Pattern::MasterWorker => master_worker(r, steps),
        Pattern::RowColumn => row_column(r, steps),
        Pattern::Alltoallv => alltoallv(r, steps),
        Pattern::Behaviours(k) => behaviours(r, k, steps),
        Pattern::Values(k) => values(r, k, steps),
        Pattern::Random => random(r, steps),
        Pattern::Paper(paper) => paper.run(r, steps),
    }
}

fn stencil(r: &mut Rank<'_>, grid: &Grid, cart: bool, corners: bool, steps: u32) {
    let (comm, neighbours) =
        if cart { cart_neighbours(r, grid) } else { (r.world(), by_hand(r, grid, corners)) };
    for _ in 0..steps {
        // The message that leaves through one side comes in through the opposite one: sides stand in pairs.
        for &(side, peer) in &neighbours {
            r.irecv(into(side, LENGTH), peer, (side ^ 1) as i32, comm);
        }
        for &(side, peer) in &neighbours {
            r.isend(out(side, LENGTH), peer, side as i32, comm);
        }
        r.waitall();
        r.allreduce(Data::new(2, 0, 1), Data::new(2, 8, 1), comm);
    }
}

fn cart_neighbours(r: &mut Rank<'_>, grid: &Grid) -> (Comm, Vec<(usize, Peer)>) {
    let world = r.world();
    let comm = r.cart_create(world, grid);
    let me = r.comm_rank(comm);
    r.cart_coords(comm, grid, me);
    let mut neighbours = Vec::new();
    for dimension in 0..grid.dims.len() {
        let (source, dest) = r.cart_shift(comm, grid, dimension);
        neighbours.extend([(2 * dimension, source), (2 * dimension + 1, dest)]);
    }
    (comm, neighbours)
}

fn by_hand(r: &Rank<'_>, grid: &Grid, corners: bool) -> Vec<(usize, Peer)> {
    let there = directions(grid.dims.len(), corners).into_iter().enumerate();
    there.filter_map(|(side, by)| Some((side, Peer::Rank(grid.neighbour(r.rank, &by)?)))).collect()
}

/// Each direction next to its opposite.
fn directions(dimensions: usize, corners: bool) -> Vec<Vec<i32>> {
    let mut all = Vec::new();
    for number in 0..3i32.pow(dimensions as u32) {
        let by: Vec<i32> = (0..dimensions as u32).map(|d| number / 3i32.pow(d) % 3 - 1).collect();
        let length = by.iter().filter(|step| **step != 0).count();
        // Of each pair the one that goes down first.
        let down = by.iter().find(|step| **step != 0) == Some(&-1);
        if down && (corners || length == 1) {
            all.push(by.clone());
            all.push(by.iter().map(|step| -step).collect());
        }
    }
    all
}

fn ring(r: &mut Rank<'_>, steps: u32) {
    let (world, size) = (r.world(), r.size);
    for _ in 0..steps {
        let (left, right) = ((r.rank + size - 1) % size, (r.rank + 1) % size);
        r.sendrecv(out(0, LENGTH), right, into(0, LENGTH), left, 7, world);
    }
}

fn butterfly(r: &mut Rank<'_>, steps: u32) {
    let (world, size) = (r.world(), r.size);
    for _ in 0..steps {
        for bit in (0..31).map(|k| 1u32 << k).take_while(|bit| *bit < size) {
            let partner = r.rank ^ bit;
            if partner < size {
                r.sendrecv(out(0, LENGTH), partner, into(0, LENGTH), partner, 11, world);
            }
        }
    }
}

fn transpose(r: &mut Rank<'_>, steps: u32) {
    let (world, side) = (r.world(), r.size.isqrt());
    let (row, column) = (r.rank / side, r.rank % side);
    for _ in 0..steps {
        if row < side && row != column {
            let partner = column * side + row;
            r.sendrecv(out(0, LENGTH), partner, into(0, LENGTH), partner, 13, world);
        }
        r.barrier(world);
    }
}

fn pipeline(r: &mut Rank<'_>, steps: u32) {
    let world = r.world();
    for _ in 0..steps {
        if r.rank > 0 {
            r.recv(into(0, LENGTH), r.rank - 1, 17, world);
        }
        if r.rank + 1 < r.size {
            r.send(out(0, LENGTH), r.rank + 1, 17, world);
        }
    }
}

fn tree(r: &mut Rank<'_>, steps: u32) {
    let world = r.world();
    let parent = r.rank.checked_sub(1).map(|above| above / 2);
    let children: Vec<u32> = [2 * r.rank + 1, 2 * r.rank + 2].into_iter().filter(|c| *c < r.size).collect();
    for _ in 0..steps {
        for (slot, &child) in children.iter().enumerate() {
            r.recv(into(slot, LENGTH), child, 19, world);
        }
        if let Some(parent) = parent {
            r.send(out(0, LENGTH), parent, 19, world);
            r.recv(into(0, LENGTH), parent, 23, world);
        }
        for &child in &children {
            r.send(out(0, LENGTH), child, 23, world);
        }
    }
}

/// Each step every worker asks for a piece of work, in turn, and gets it.
fn master_worker(r: &mut Rank<'_>, steps: u32) {
    let world = r.world();
    for _ in 0..steps {
        if r.rank == 0 {
            for worker in 1..r.size {
                r.recv_any(into(0, LENGTH), worker, 29, world);
                r.send(out(0, LENGTH), worker, 31, world);
            }
        } else {
            r.send(out(0, LENGTH), 0, 29, world);
            r.recv(into(0, LENGTH), 0, 31, world);
        }
    }
}

fn row_column(r: &mut Rank<'_>, steps: u32) {
    let world = r.world();
    let grid = Grid::balanced(r.size, 2, false);
    let (rows, columns) = (grid.dims[0], grid.dims[1]);
    let (row, column) = (r.rank / columns, r.rank % columns);
    let of_row = (0..columns).map(|c| row * columns + c).collect();
    let of_column = (0..rows).map(|r| r * columns + column).collect();
    let along = r.split(world, Some(row as i32), column as i32, of_row);
    let across = r.split(world, Some(column as i32), row as i32, of_column);
    let (Some(along), Some(across)) = (along, across) else { return };
    for step in 0..steps {
        r.allreduce(out(0, LENGTH), into(0, LENGTH), along);
        r.bcast(out(1, LENGTH), step % rows, across);
        r.reduce(out(2, LENGTH), into(2, LENGTH), 0, along);
    }
    r.free(along);
    r.free(across);
}

fn alltoallv(r: &mut Rank<'_>, steps: u32) {
    let world = r.world();
    for step in 0..steps {
        let count = |from: u32, to: u32| (mixed(&[step, from, to]) % 97) as i32;
        let sent: Vec<i32> = (0..r.size).map(|to| count(r.rank, to)).collect();
        let received: Vec<i32> = (0..r.size).map(|from| count(from, r.rank)).collect();
        r.allreduce(Data::new(2, 0, r.size as i32), Data::new(3, 0, r.size as i32), world);
        r.alltoall(Data::new(4, 0, 1), Data::new(5, 0, 1), world);
        r.alltoallv(Data::new(0, 0, 0), &sent, Data::new(1, 0, 0), &received, world);
    }
}

/// The kind of a rank is written into its calls bit by bit, so each kind has another structure.
fn behaviours(r: &mut Rank<'_>, kinds: u32, steps: u32) {
    let (world, kind) = (r.world(), r.rank % kinds);
    let bits = u32::BITS - (kinds - 1).leading_zeros();
    for _ in 0..steps {
        let (left, right) = ((r.rank + r.size - 1) % r.size, (r.rank + 1) % r.size);
        r.irecv(into(0, LENGTH), left, 3, world);
        r.isend(out(0, LENGTH), right, 3, world);
        r.waitall();
        for bit in 0..bits {
            if kind >> bit & 1 == 0 {
                r.send(out(1, 64 + kind as i32), right, 5, world);
            } else {
                r.ssend(out(1, 64 + kind as i32), right, 5, world);
            }
        }
        r.allreduce(Data::new(2, 0, 1), Data::new(2, 8, 1), world);
    }
}

fn values(r: &mut Rank<'_>, kinds: u32, steps: u32) {
    let (world, kind) = (r.world(), r.rank % kinds);
    let number = |what: u32, most: u64| (mixed(&[kind, what]) % most) as i32;
    for _ in 0..steps {
        let (left, right) = ((r.rank + r.size - 1) % r.size, (r.rank + 1) % r.size);
        r.irecv(into(0, 4096), left, 3, world);
        r.isend(out(0, number(0, 4096)), right, 3, world);
        r.waitall();
        for what in 1..5 {
            r.send(out(1, number(what, 4096)), right, number(what + 8, 100), world);
        }
        r.allreduce(Data::new(2, 0, 1), Data::new(2, 8, 1), world);
    }
}

/// One call a step.
fn random(r: &mut Rank<'_>, steps: u32) {
    let (world, rank) = (r.world(), r.rank);
    for step in 0..steps {
        let number = |what: u32, most: u64| mixed(&[rank, step, what]) % most;
        let data = out(number(0, 4) as usize, number(1, 4096) as i32);
        let (peer, tag) = (number(2, r.size.into()) as u32, number(3, 100) as i32);
        match number(4, 3) {
            0 => r.send(data, peer, tag, world),
            1 => r.ssend(data, peer, tag, world),
            _ => r.allreduce(Data::new(2, 0, tag), Data::new(2, 8, tag), world),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_come_in_opposite_pairs() {
        for (dimensions, corners, count) in
            [(1, false, 2), (3, false, 6), (3, true, 26), (4, false, 8), (2, true, 8)]
        {
            let all = directions(dimensions, corners);
            assert_eq!(all.len(), count);
            for pair in all.chunks(2) {
                assert!(pair[0].iter().zip(&pair[1]).all(|(a, b)| *a == -b));
            }
        }
    }
}
