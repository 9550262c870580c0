//! Ranks of which the same is said.

use std::collections::HashMap;
use std::hash::Hash;

use refrain_fold::ranks::RankList;

/// Lists of ranks by what is said of them, united once at the end: kinds of ranks may be as many as there are ranks.
#[derive(Debug)]
pub struct Together<K> {
    places: HashMap<K, usize>,
    ranks: Vec<Vec<RankList>>,
}

impl<K: Hash + Eq> Together<K> {
    pub fn new() -> Together<K> {
        Together { places: HashMap::new(), ranks: Vec::new() }
    }

    pub fn add(&mut self, said: K, ranks: &RankList) {
        let place = *self.places.entry(said).or_insert(self.ranks.len());
        if place == self.ranks.len() {
            self.ranks.push(Vec::new());
        }
        self.ranks[place].push(ranks.clone());
    }

    /// In the order in which something was first said.
    pub fn finish(self) -> Vec<(K, RankList)> {
        let mut said: Vec<(K, usize)> = self.places.into_iter().collect();
        said.sort_unstable_by_key(|(_, place)| *place);
        let lists = self.ranks.iter().map(all);
        said.into_iter().map(|(said, _)| said).zip(lists).collect()
    }
}

/// All of them in one list. Only where there are several are their ranks looked at one by one, which may be many.
pub fn all<'a>(lists: impl IntoIterator<Item = &'a RankList>) -> RankList {
    let mut lists = lists.into_iter();
    match (lists.next(), lists.next()) {
        (None, _) => RankList::default(),
        (Some(only), None) => only.clone(),
        (Some(first), Some(second)) => [first, second].into_iter().chain(lists).flatten().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_united_in_any_order() {
        let mut together = Together::new();
        let said = [("b", &[7][..]), ("a", &[1, 2]), ("b", &[0, 3, 7]), ("c", &[5]), ("a", &[0])];
        said.iter().for_each(|(said, ranks)| together.add(*said, &RankList::from_sorted(ranks)));
        let found = together.finish();
        assert_eq!(found, [("b", list(&[0, 3, 7])), ("a", list(&[0, 1, 2])), ("c", list(&[5]))]);
        assert_eq!(all(found.iter().map(|(_, ranks)| ranks)), list(&[0, 1, 2, 3, 5, 7]));
    }
    /// What takes as much memory as there are ranks takes it for every node.
    #[test]
    fn ranks_that_are_one_list_stay_one() {
        let everyone = list(&(0..1 << 20).collect::<Vec<_>>());
        let mut together = Together::new();
        (0..20_000).for_each(|node| together.add(node, &everyone));
        let found = together.finish();
        assert!(found.len() == 20_000 && found.iter().all(|(_, ranks)| *ranks == everyone));
    }

    fn list(ranks: &[u32]) -> RankList {
        RankList::from_sorted(ranks)
    }
}
