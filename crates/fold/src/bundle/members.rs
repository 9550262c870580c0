//! Who recorded: ranks and their threads as one number each.
//!
//! A *member* is `thread * world + rank`, the world being how many ranks there are. So rank lists and functions are of rank
//! and thread at once: threads 0 to 3 of all ranks are one box, and a number that goes by rank and thread is one affine
//! function. Where every rank has one thread a member is a rank.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Deref;

use crate::ranks::RankList;

use super::lanes::StreamSet;
use super::{Bundle, Cohort, Lane, Side, Variant};

/// A cohort as one thread has it: its lists and functions are of ranks. The digest is that of the whole cohort.
#[derive(Debug, Clone)]
pub struct OfThread<'a> {
    /// Which thread.
    pub thread: u32,
    cohort: Cow<'a, Cohort>,
}

impl Deref for OfThread<'_> {
    type Target = Cohort;

    fn deref(&self) -> &Cohort {
        &self.cohort
    }
}

/// The member that a thread of a rank is, if there is one: in a world of no known size only first threads are.
pub fn member(world: u32, rank: u32, thread: u32) -> Option<u32> {
    match thread {
        0 if world == 0 || rank < world => Some(rank),
        _ if rank < world => thread.checked_mul(world)?.checked_add(rank),
        _ => None,
    }
}

impl Bundle {
    /// The member that a thread of a rank is; see [`member`].
    pub fn member(&self, rank: u32, thread: u32) -> Option<u32> {
        member(self.world, rank, thread)
    }

    /// Rank and thread of a member.
    pub fn place_of(&self, member: u32) -> (u32, u32) {
        match self.world {
            0 => (member, 0),
            world => (member % world, member / world),
        }
    }

    /// The members of a thread.
    fn members_of(&self, thread: u32) -> std::ops::Range<u64> {
        match u64::from(self.world) {
            0 => 0..1 << 32,
            world => u64::from(thread) * world..(u64::from(thread) + 1) * world,
        }
    }

    /// The threads that a list of members has, lowest first.
    pub(super) fn threads_in(&self, members: &RankList) -> Vec<u32> {
        let mut threads = Vec::new();
        let mut next = members.first();
        while let Some(first) = next {
            let thread = self.place_of(first).1;
            threads.push(thread);
            next = members.within(self.members_of(thread).end..1 << 32).first();
        }
        threads
    }

    /// The ranks of a cohort, whichever of their threads are in it.
    pub fn ranks_of(&self, cohort: &Cohort) -> RankList {
        let threads = self.threads_in(&cohort.ranks);
        let of = |&thread: &u32| self.ranks_in(&cohort.ranks, thread);
        threads.iter().map(of).reduce(|a, b| if a == b { a } else { a.union(&b) }).unwrap_or_default()
    }

    /// Those of the members that are of a thread, as ranks.
    fn ranks_in(&self, members: &RankList, thread: u32) -> RankList {
        let range = self.members_of(thread);
        let by = -(range.start as i64);
        let ranks = members.within(range).moved(by).unwrap_or_default();
        if ranks.parts.len() < 2 { ranks } else { ranks.iter().collect() }
    }

    /// All cohorts, each once for every thread in it, by lowest rank and thread.
    pub fn of_threads(&self) -> Vec<OfThread<'_>> {
        let mut all = Vec::new();
        for cohort in &self.cohorts {
            let last = cohort.ranks.last().unwrap_or(0);
            if self.place_of(last).1 == 0 {
                all.push(OfThread { thread: 0, cohort: Cow::Borrowed(cohort) });
                continue;
            }
            for thread in self.threads_in(&cohort.ranks) {
                let ranks = self.ranks_in(&cohort.ranks, thread);
                let lanes = cohort.lanes.iter().map(|lane| self.lane_in(lane, thread, &ranks)).collect();
                let side = |side: &Side| {
                    let lane = |lane: &Option<Lane>| Some(self.lane_in(lane.as_ref()?, thread, &ranks));
                    Side { kind: side.kind, lanes: side.lanes.iter().map(lane).collect() }
                };
                let sides = cohort.sides.iter().map(side).collect();
                let cohort = Cohort { ranks, lanes, sides, ..*cohort };
                all.push(OfThread { thread, cohort: Cow::Owned(cohort) });
            }
        }
        all.sort_by_key(|cohort| (cohort.ranks.first(), cohort.thread));
        all
    }

    /// One more than the highest number of a thread.
    pub fn most_threads(&self) -> u32 {
        let last = self.cohorts.iter().filter_map(|cohort| cohort.ranks.last()).max();
        last.map_or(0, |last| self.place_of(last).1.saturating_add(1))
    }

    /// The threads of a rank, lowest first.
    pub fn threads(&self, rank: u32) -> Vec<u32> {
        let has = |cohort: &Cohort, thread: &u32| {
            self.member(rank, *thread).is_some_and(|member| cohort.ranks.contains(member))
        };
        let mut threads = Vec::new();
        for cohort in &self.cohorts {
            threads.extend(self.threads_in(&cohort.ranks).into_iter().filter(|thread| has(cohort, thread)));
        }
        threads.sort_unstable();
        threads
    }

    fn lane_in(&self, lane: &Lane, thread: u32, ranks: &RankList) -> Lane {
        let Lane::Varied(variants) = lane else { return lane.clone() };
        let range = self.members_of(thread);
        let by = -(range.start as i64);
        let mut own = Vec::new();
        for variant in variants {
            let ranks = self.ranks_in(&variant.ranks, thread);
            if ranks.is_empty() {
                continue;
            }
            let mut numbers = variant.numbers.clone();
            for number in &mut numbers {
                number.values = number.values.within(range.clone()).moved(by).unwrap_or_default();
            }
            own.push(Variant { ranks, numbers, ..*variant });
        }
        own.sort_by_key(|variant| variant.ranks.first());
        match &own[..] {
            [one] if one.numbers.is_empty() && one.ranks == *ranks => {
                Lane::Same { stream: one.stream, used: one.used }
            }
            _ => Lane::Varied(own),
        }
    }

    /// Threads and ranks with the same structure, and side lanes for the same symbols, become one cohort.
    pub(super) fn join_alike(&mut self, table: &mut StreamSet) {
        let mut known = HashMap::with_capacity(self.cohorts.len());
        let mut joined: Vec<Cohort> = Vec::with_capacity(self.cohorts.len());
        for cohort in std::mem::take(&mut self.cohorts) {
            let form = (cohort.structure, cohort.side_form());
            match known.get(&form) {
                Some(&same) => Cohort::take_in(&mut joined[same], cohort, table),
                None => {
                    known.insert(form, joined.len());
                    joined.push(cohort);
                }
            }
        }
        self.cohorts = joined;
    }

    /// One rank's threads that made the same calls become one cohort. What changes numbers comes before.
    pub fn join_threads(&mut self) {
        let mut table = StreamSet::new(std::mem::take(&mut self.streams));
        self.join_alike(&mut table);
        self.streams = table.streams;
        self.number_streams();
    }
}

impl Cohort {
    /// All members so much higher, or lower; nothing if one would leave 32 bits.
    pub fn moved(&self, by: i64) -> Option<Cohort> {
        let mut cohort = self.clone();
        cohort.ranks = self.ranks.moved(by)?;
        let varied = cohort.all_lanes_mut().filter_map(|lane| match lane {
            Lane::Same { .. } => None,
            Lane::Varied(variants) => Some(variants),
        });
        for variant in varied.flatten() {
            variant.ranks = variant.ranks.moved(by)?;
            for number in &mut variant.numbers {
                number.values = number.values.moved(by)?;
            }
        }
        Some(cohort)
    }
}
