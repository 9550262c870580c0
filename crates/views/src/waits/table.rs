//! Sums by place and rank, as they grow.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::blocked::{Blocked, Cause};
use super::{CallSite, Imbalance, Left, OnPath, Pattern, RankTimes, Row, Sum, Waiter, Waits};
use crate::length::{Length, Told};
use crate::timed::Times;
use crate::waits::path::Path;

type ByRank = HashMap<u32, Sum>;

pub(super) struct Sums {
    waits: HashMap<(Pattern, u32), HashMap<u32, ByRank>>,
    imbalances: HashMap<u32, ByRank>,
    pub(super) ranks: Vec<RankTimes>,
    pub(super) left: Left,
    pub(super) notes: Vec<String>,
}

/// Sums with one rank each, those of a rank together; the longest first.
pub(super) fn joined(all: impl IntoIterator<Item = (u32, Sum)>) -> Vec<(u32, Sum)> {
    let mut by_rank: HashMap<u32, Sum> = HashMap::new();
    for (rank, sum) in all {
        by_rank.entry(rank).or_default().join(sum);
    }
    let mut all: Vec<(u32, Sum)> = by_rank.into_iter().collect();
    all.sort_by_key(|(rank, sum)| (Reverse(sum.total), *rank));
    all
}

fn sum_of<'s>(all: impl IntoIterator<Item = &'s (u32, Sum)>) -> Sum {
    all.into_iter().fold(Sum::default(), |mut sum, (_, other)| {
        sum.join(*other);
        sum
    })
}

impl Sums {
    pub(super) fn new(ranks: usize) -> Sums {
        Sums {
            waits: HashMap::new(),
            imbalances: HashMap::new(),
            ranks: vec![RankTimes::default(); ranks],
            left: Left::default(),
            notes: Vec::new(),
        }
    }

    /// What a call waited for and how long, if that is more than the times may be wrong.
    pub(super) fn counts<'b>(blocked: &'b Blocked, times: &Times) -> Option<(&'b Cause, Told)> {
        let cause = blocked.cause()?;
        let error = blocked.start.error.saturating_add(cause.at.error);
        let error = error.saturating_add(times.clock_error(blocked.rank, cause.rank));
        let waited = blocked.waited(cause);
        (waited > error).then_some((cause, Told { ns: waited, error }))
    }

    pub(super) fn waited(&mut self, blocked: &Blocked, times: &Times) {
        let Some((cause, Told { ns: waited, error })) = Sums::counts(blocked, times) else { return };
        let row = self.waits.entry((cause.pattern, blocked.place)).or_default();
        row.entry(blocked.rank).or_default().entry(cause.rank).or_default().add(waited, error);
        if let Some(rank) = self.ranks.get_mut(blocked.rank as usize) {
            rank.waiting = rank.waiting.saturating_add(waited);
            rank.communicating = rank.communicating.saturating_sub(waited);
        }
        if let Some(rank) = self.ranks.get_mut(cause.rank as usize) {
            rank.caused = rank.caused.saturating_add(waited);
        }
    }

    pub(super) fn imbalance(&mut self, place: u32, rank: u32, time: u64) {
        if time > 0 {
            self.imbalances.entry(place).or_default().entry(rank).or_default().add(time, 0);
        }
    }

    pub(super) fn finish(self, places: &[CallSite], length: Length, path: &Path) -> Waits {
        let place = |place: u32| {
            places.get(place as usize).copied().unwrap_or(CallSite { function: "?", frame: None })
        };
        let mut rows: Vec<(u32, Row)> = Vec::new();
        for ((pattern, number), ranks) in self.waits {
            let mut ranks: Vec<Waiter> = ranks
                .into_iter()
                .map(|(rank, causes)| {
                    let causes = joined(causes);
                    Waiter { rank, all: sum_of(&causes), causes }
                })
                .collect();
            ranks.sort_by_key(|waiter| (Reverse(waiter.all.total), waiter.rank));
            let sums: Vec<(u32, Sum)> = ranks.iter().map(|waiter| (waiter.rank, waiter.all)).collect();
            rows.push((number, Row { pattern, place: place(number), all: sum_of(&sums), ranks }));
        }
        rows.sort_by_key(|(number, row)| (Reverse(row.all.total), row.pattern, *number));
        let mut imbalances: Vec<(u32, Imbalance)> = Vec::new();
        for (number, ranks) in self.imbalances {
            let ranks = joined(ranks);
            imbalances.push((number, Imbalance { place: place(number), all: sum_of(&ranks), ranks }));
        }
        imbalances.sort_by_key(|(number, row)| (Reverse(row.all.total), *number));
        let mut path: Vec<_> = path.table().into_iter().collect();
        path.sort_by_key(|(step, time)| (Reverse(*time), *step));
        let on_path = |(step, time): (super::path::Step, u64)| OnPath {
            rank: step.rank,
            place: place(step.place),
            computing: step.computing,
            time,
        };
        Waits {
            length,
            rounded: false,
            rows: rows.into_iter().map(|(_, row)| row).collect(),
            imbalances: imbalances.into_iter().map(|(_, row)| row).collect(),
            ranks: self.ranks,
            path: path.into_iter().map(on_path).collect(),
            left: self.left,
            crowded: None,
            notes: self.notes,
        }
    }
}
