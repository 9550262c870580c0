//! Which cohort a thread of a rank is in, without asking each of them.

use std::collections::BTreeMap;

use super::Bundle;

/// Made once for a bundle and asked for many ranks.
#[derive(Debug)]
pub struct Index<'a> {
    bundle: &'a Bundle,
    /// By thread: the parts of all rank lists by their first rank.
    threads: BTreeMap<u32, Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    first: u32,
    /// The last rank of this part and of all before it.
    last: u32,
    cohort: usize,
}

impl<'a> Index<'a> {
    /// The bundle must be valid.
    pub fn new(bundle: &'a Bundle) -> Index<'a> {
        let mut threads: BTreeMap<u32, Vec<Entry>> = BTreeMap::new();
        for (cohort, of) in bundle.cohorts.iter().enumerate() {
            let entry = |part: &crate::ranks::Part| Entry { first: part.start, last: part.last(), cohort };
            threads.entry(of.thread).or_default().extend(of.ranks.parts.iter().map(entry));
        }
        for entries in threads.values_mut() {
            entries.sort_by_key(|entry| entry.first);
            let mut last = 0;
            for entry in entries {
                last = entry.last.max(last);
                entry.last = last;
            }
        }
        Index { bundle, threads }
    }

    /// The place of its cohort, if there is anything of that thread of that rank.
    pub fn cohort_of(&self, rank: u32, thread: u32) -> Option<usize> {
        self.find(rank, self.threads.get(&thread)?)
    }

    /// The threads of a rank, lowest first.
    pub fn threads(&self, rank: u32) -> impl Iterator<Item = u32> {
        let has = move |(_, entries): &(&u32, &Vec<Entry>)| self.find(rank, entries).is_some();
        self.threads.iter().filter(has).map(|(thread, _)| *thread)
    }

    fn find(&self, rank: u32, entries: &[Entry]) -> Option<usize> {
        let may = entries.partition_point(|entry| entry.first <= rank);
        let near = entries[..may].iter().rev().take_while(|entry| entry.last >= rank);
        near.map(|entry| entry.cohort).find(|&cohort| self.bundle.cohorts[cohort].ranks.contains(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::Cohort;
    use crate::ranks::RankList;
    use crate::testing::Random;

    #[test]
    fn the_cohort_found_is_the_one_that_has_the_rank() {
        let mut random = Random(41);
        for _ in 0..200 {
            let mut bundle = Bundle::default();
            for thread in 0..3 {
                let mut lists: Vec<Vec<u32>> = vec![Vec::new(); 1 + random.below(6) as usize];
                for rank in 0..80 {
                    let all = lists.len() as u64;
                    // Some ranks have no such thread.
                    if let Some(list) = lists.get_mut(random.below(all + 1) as usize) {
                        list.push(rank);
                    }
                }
                let lists = lists.iter().filter(|list| !list.is_empty());
                bundle.cohorts.extend(lists.map(|list| Cohort {
                    thread,
                    ranks: RankList::from_sorted(list),
                    structure: 0,
                    lanes: Vec::new(),
                    digest: 0,
                }));
            }
            let index = Index::new(&bundle);
            for rank in 0..90 {
                assert!(index.threads(rank).eq(bundle.threads(rank)));
                for thread in 0..4 {
                    let found = index.cohort_of(rank, thread).map(|at| &bundle.cohorts[at]);
                    assert_eq!(found, bundle.cohort_of(rank, thread));
                }
            }
        }
    }
}
