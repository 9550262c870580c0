//! How long each rank ran in both runs, and how long of that outside MPI: there a change in the program itself shows first.

use std::cmp::Reverse;

use refrain_tracefile::profile::{Profile, Spent};

use crate::length::{self, Told};

/// One rank in A and in B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfRank {
    pub rank: u32,
    /// From `MPI_Init` to `MPI_Finalize`.
    pub run: (Told, Told),
    /// Of that in no call.
    pub outside: (Told, Told),
}

impl OfRank {
    /// How much the larger change is, at the least.
    fn change(&self) -> u64 {
        let sure = |(a, b): (Told, Told)| a.ns.abs_diff(b.ns).saturating_sub(a.error.saturating_add(b.error));
        sure(self.run).max(sure(self.outside))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lasted {
    /// Those that both have, in order.
    pub ranks: Vec<OfRank>,
    /// Of these, by number, the ones whose time changed by more than one part in [`MATTERS`] of the shorter run; the largest
    /// change first.
    pub moved: Vec<u32>,
}

/// Less than such a part of a run is not told as a change.
pub const MATTERS: u64 = 20;

impl Lasted {
    /// None where one of the traces does not tell the times of its ranks, or they have no rank in common.
    pub fn of(a: Option<&Profile>, b: Option<&Profile>) -> Option<Lasted> {
        let [a, b] = [of_ranks(a?), of_ranks(b?)];
        let mut others = b.iter().peekable();
        let mut ranks = Vec::new();
        for &(rank, run, outside) in &a {
            while others.next_if(|other| other.0 < rank).is_some() {}
            if let Some(other) = others.next_if(|other| other.0 == rank) {
                ranks.push(OfRank { rank, run: (run, other.1), outside: (outside, other.2) });
            }
        }
        let run =
            ranks.iter().map(|one| one.run.0.ns).max()?.min(ranks.iter().map(|one| one.run.1.ns).max()?);
        let mut moved: Vec<_> = ranks.iter().filter(|one| one.change() > run / MATTERS).collect();
        moved.sort_by_key(|one| (Reverse(one.outside.0.ns.abs_diff(one.outside.1.ns)), one.rank));
        let moved = moved.iter().map(|one| one.rank).collect();
        Some(Lasted { ranks, moved })
    }

    /// The one that ran longest, in each run.
    pub fn longest(&self) -> (Told, Told) {
        let longest = |of: fn(&OfRank) -> Told| {
            Told::longest(&self.ranks.iter().map(of).collect::<Vec<_>>()).unwrap_or_default()
        };
        (longest(|one| one.run.0), longest(|one| one.run.1))
    }
}

fn of_ranks(profile: &Profile) -> Vec<(u32, Told, Told)> {
    let outside = profile.by_rank_within(Spent::Outside);
    let pairs = length::times(profile).into_iter().zip(outside);
    pairs.map(|((rank, run), (_, outside))| (rank, run, outside.into())).collect()
}
