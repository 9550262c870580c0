//! Which cohort a thread of a rank is in, without asking each of them.

use std::sync::OnceLock;

use super::Bundle;

/// Made once for a bundle and asked for many ranks.
#[derive(Debug)]
pub struct Index<'a> {
    bundle: &'a Bundle,
    /// The parts of all lists of members by their first.
    entries: Vec<Entry>,
    /// One more than the highest thread.
    threads: u32,
    /// Rank and thread of all members in order, where threads have numbers that are too high to try each of them.
    places: OnceLock<Vec<(u32, u32)>>,
}

/// Of more threads not each is tried.
const FEW: u32 = 64;

#[derive(Debug)]
struct Entry {
    first: u32,
    /// The last member of this part and of all before it.
    last: u32,
    cohort: usize,
}

impl<'a> Index<'a> {
    /// The bundle must be valid.
    pub fn new(bundle: &'a Bundle) -> Index<'a> {
        let parts = bundle.cohorts.iter().enumerate().flat_map(|(cohort, of)| {
            of.ranks.parts.iter().map(move |part| Entry { first: part.start, last: part.last(), cohort })
        });
        let mut entries: Vec<Entry> = parts.collect();
        entries.sort_by_key(|entry| entry.first);
        let mut last = 0;
        for entry in &mut entries {
            last = entry.last.max(last);
            entry.last = last;
        }
        let threads = if entries.is_empty() { 0 } else { bundle.place_of(last).1 + 1 };
        Index { bundle, entries, threads, places: OnceLock::new() }
    }

    /// The place of its cohort and its number among the members, if there is anything of that thread of that rank.
    pub fn cohort_of(&self, rank: u32, thread: u32) -> Option<(usize, u32)> {
        let member = self.bundle.member(rank, thread)?;
        let may = self.entries.partition_point(|entry| entry.first <= member);
        let near = self.entries[..may].iter().rev().take_while(|entry| entry.last >= member);
        let has = |&cohort: &usize| self.bundle.cohorts[cohort].ranks.contains(member);
        near.map(|entry| entry.cohort).find(has).map(|cohort| (cohort, member))
    }

    /// The threads of a rank, lowest first.
    pub fn threads(&self, rank: u32) -> impl Iterator<Item = u32> {
        let (few, places) = match self.threads {
            ..=FEW => (self.threads, &[][..]),
            _ => (0, self.places_of(rank)),
        };
        let tried = (0..few).filter(move |&thread| self.cohort_of(rank, thread).is_some());
        tried.chain(places.iter().map(|(_, thread)| *thread))
    }

    fn places_of(&self, rank: u32) -> &[(u32, u32)] {
        let places = self.places.get_or_init(|| {
            let members = self.bundle.cohorts.iter().flat_map(|cohort| cohort.ranks.iter());
            let mut places: Vec<(u32, u32)> = members.map(|member| self.bundle.place_of(member)).collect();
            places.sort_unstable();
            places.dedup();
            places
        });
        let from = places.partition_point(|(of, _)| *of < rank);
        let end = places.partition_point(|(of, _)| *of <= rank);
        &places[from..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::Cohort;
    use crate::ranks::RankList;
    use fastrand::Rng;

    #[test]
    fn the_cohort_found_is_the_one_that_has_the_rank() {
        let mut random = Rng::with_seed(41);
        for _ in 0..200 {
            let mut bundle = Bundle { world: 80, ..Bundle::default() };
            for thread in 0..3 {
                let mut lists: Vec<Vec<u32>> = vec![Vec::new(); 1 + random.u64(..6) as usize];
                for rank in 0..80 {
                    let all = lists.len() as u64;
                    // Some ranks have no such thread.
                    if let Some(list) = lists.get_mut(random.u64(..all + 1) as usize) {
                        list.push(rank);
                    }
                }
                let lists = lists.iter().filter(|list| !list.is_empty());
                let members =
                    |list: &Vec<u32>| list.iter().map(|rank| thread * 80 + rank).collect::<Vec<u32>>();
                bundle.cohorts.extend(lists.map(|list| Cohort {
                    ranks: RankList::from_sorted(&members(list)),
                    structure: 0,
                    lanes: Vec::new(),
                    sides: Vec::new(),
                    digest: 0,
                }));
            }
            let index = Index::new(&bundle);
            for rank in 0..80 {
                assert!(index.threads(rank).eq(bundle.threads(rank)));
                for thread in 0..4 {
                    let has = |cohort: &Cohort| cohort.ranks.contains(thread * 80 + rank);
                    let found = index.cohort_of(rank, thread).map(|(at, _)| at);
                    assert_eq!(found, bundle.cohorts.iter().position(has));
                }
            }
        }
    }

    /// A few bytes can say that a thread has any number.
    #[test]
    fn threads_with_high_numbers_are_found_at_once() {
        let cohort = |members: &[u32]| Cohort {
            ranks: RankList::from_sorted(members),
            structure: 0,
            lanes: Vec::new(),
            sides: Vec::new(),
            digest: 0,
        };
        let far = (1 << 28) * 3 + 1;
        let cohorts = vec![cohort(&[0, 1, 2]), cohort(&[4, far]), cohort(&[700])];
        let bundle = Bundle { world: 3, cohorts, ..Bundle::default() };
        let index = Index::new(&bundle);
        let threads = |rank| index.threads(rank).collect::<Vec<u32>>();
        assert_eq!(threads(0), [0]);
        assert_eq!(threads(1), [0, 1, 233, 1 << 28]);
        assert_eq!(threads(2), [0]);
        assert_eq!(threads(3), []);
    }
}
