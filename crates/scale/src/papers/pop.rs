//! `tests/programs/pop_like.c`: an ocean model with land, and a solver that takes as long as the data need.

use std::cell::RefCell;
use std::collections::HashMap;

use super::mixture::drawn;
use super::stencils::Field;
use super::{barrier, broadcast, into, out, sum_all, sum_at_root};
use crate::rank::Rank;

/// Ten settings: integers, reals, truths are one number each; the seventh is a name of 16 characters.
const TEN: [u32; 10] = [1, 1, 1, 1, 1, 1, 16, 1, 1, 1];
const POINTS: u32 = 12;

fn is_land(rank: u32) -> bool {
    rank > 0 && drawn(5, [rank, 0, 11]) == 0
}

/// Peers with the number of the side.
fn neighbours(r: &mut Rank<'_>) -> Vec<(u32, i32)> {
    let field = Field::new(r, 2);
    let (rank, around, first) = (r.rank, field.extent(0) as i32, field.coords(r.rank)[0] as i32);
    let beside = |side: i32| {
        let step = if side % 2 == 1 { 1 } else { -1 };
        let by = match side / 2 {
            0 => [(first + step).rem_euclid(around) - first, 0],
            _ => [0, step],
        };
        let other = field.neighbour(rank, &by)?;
        (other != rank && !is_land(rank) && !is_land(other)).then_some((other, side))
    };
    (0..4).filter_map(beside).collect()
}

fn halo(r: &mut Rank<'_>, near: &[(u32, i32)]) {
    let world = r.world();
    near.iter().for_each(|&(other, side)| r.irecv(into(POINTS), other, side ^ 1, world));
    near.iter().for_each(|&(other, side)| r.isend(out(POINTS), other, side, world));
    r.waitall();
}

/// How many iterations the solver takes: half the worst residual of all ranks each, until it is small.
fn iterations(size: u32, step: u32) -> u32 {
    thread_local! {
        static KNOWN: RefCell<HashMap<(u32, u32), u32>> = RefCell::default();
    }
    let most = 20 << drawn(6, [step, 0, 8]);
    let count = || {
        let worst = (0..size).map(|rank| 20 + drawn(most, [step, rank, 7])).max().unwrap_or(0);
        (1..).find(|trips| worst >> trips <= 10).unwrap_or(1)
    };
    KNOWN.with_borrow_mut(|known| *known.entry((size, step)).or_insert_with(count))
}

pub(super) fn run(r: &mut Rank<'_>, steps: u32) {
    for _ in 0..40 {
        TEN.into_iter().for_each(|count| broadcast(r, count));
    }
    let near = neighbours(r);
    for step in 0..steps {
        if step % 5 == 0 {
            broadcast(r, 1);
        }
        halo(r, &near);
        halo(r, &near);
        for _ in 0..iterations(r.size, step) {
            halo(r, &near);
            sum_all(r, 1);
        }
        if step % 7 == 3 {
            sum_at_root(r, 1);
        }
        if drawn(4, [step, 0, 12]) == 0 {
            barrier(r);
        }
    }
    sum_at_root(r, 1);
}
