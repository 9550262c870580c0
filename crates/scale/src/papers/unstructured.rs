//! Raptor and UMT2k: receives that complete in any order. Here the order is drawn; on a machine no run has that of another.

use super::{broadcast, into, mixed, out, start_receive, start_send, sum_all};
use crate::grid::Grid;
use crate::rank::Rank;

/// Where each of 27 directions leads.
fn way(direction: u32) -> [i32; 3] {
    [direction / 9, direction / 3 % 3, direction % 3].map(|by| by as i32 - 1)
}

const HERE: u32 = 13;

fn touching(grid: &Grid, rank: u32) -> Vec<(u32, u32)> {
    let ways = (0..27).filter(|direction| *direction != HERE);
    ways.filter_map(|direction| Some((direction, grid.neighbour(rank, &way(direction))?))).collect()
}

/// The first `count` requests in an order that is drawn from `seed`, up to four at a time.
fn wait_some(r: &mut Rank<'_>, count: usize, seed: [u32; 2]) {
    let rank = r.rank;
    let drawn = |at: usize| mixed(&[seed[0], seed[1], rank, at as u32]);
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|slot| drawn(*slot));
    let mut calls = count;
    r.wait_some(&order, || {
        calls += 1;
        1 + (drawn(calls) % 4) as usize
    });
}

pub(super) fn raptor(r: &mut Rank<'_>, steps: u32) {
    let grid = Grid::balanced(r.size, 3, false);
    let near = touching(&grid, r.rank);
    let count = |direction| way(direction).iter().map(|by| if *by == 0 { 24 } else { 2 }).product::<u32>();
    let world = r.world();
    broadcast(r, 10);
    for step in 0..steps {
        for phase in 1..=2 {
            for &(direction, other) in &near {
                start_receive(r, count(direction), other, 100 * phase + 26 - direction);
            }
            // The program keeps these in an array of their own.
            for (place, &(direction, other)) in near.iter().enumerate() {
                let tag = (100 * phase + direction) as i32;
                r.isend_in(near.len() + place, out(count(direction)), other, tag, world);
            }
            wait_some(r, near.len(), [step, phase]);
            r.waitall_range(near.len(), near.len());
        }
        r.allreduce(out(1), into(1), world);
    }
}

/// Whether photons of this octant fly towards that direction.
fn is_downstream(direction: u32, octant: u32) -> bool {
    let towards = |(axis, by): (usize, i32)| {
        let along = if octant >> axis & 1 == 1 { by } else { -by };
        along * (4 - axis as i32)
    };
    let sum: i32 = way(direction).into_iter().enumerate().map(towards).sum();
    sum > 0 || (sum == 0 && direction > HERE)
}

pub(super) fn umt2k(r: &mut Rank<'_>, steps: u32) {
    let (grid, rank) = (Grid::balanced(r.size, 3, false), r.rank);
    let pair = |other: u32| (rank.min(other), rank.max(other));
    let near: Vec<(u32, u32)> = touching(&grid, rank)
        .into_iter()
        .filter(|&(_, other)| mixed(&[pair(other).0, pair(other).1, 5]) % 8 < 5)
        .collect();
    let surface = |other, octant| 10 + (mixed(&[pair(other).0, pair(other).1, octant]) % 400) as u32;
    (0..5).for_each(|_| broadcast(r, 20));
    for step in 0..steps {
        for octant in 0..8 {
            let (down, up): (Vec<_>, Vec<_>) =
                near.iter().partition(|(direction, _)| is_downstream(*direction, octant));
            up.iter().for_each(|(_, other)| start_receive(r, surface(*other, octant), *other, octant));
            wait_some(r, up.len(), [step, octant]);
            down.iter().for_each(|(_, other)| start_send(r, surface(*other, octant), *other, octant));
            r.waitall_told();
        }
        sum_all(r, 1);
        sum_all(r, 3);
    }
}
