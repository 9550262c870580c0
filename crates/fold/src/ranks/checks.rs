//! Functions of the rank, and groups of ranks, held against the ranks that they are for.

use std::collections::{HashMap, HashSet};

use super::{MOST_HOLES, Part, RankList, RankMap, View};

/// More work than was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuch;

/// Looks at boxes, and at single ranks only where boxes interleave in ways that leave nothing else. What was found once is
/// not looked at again: the lanes of a cohort mostly share their functions. Counts its steps, so that a few bytes of a
/// file cannot make a reader work for long.
#[derive(Debug)]
pub struct Checks {
    left: u64,
    spent: u64,
    lists: HashMap<RankList, usize>,
    /// (boxes, ranks, how many they have in common), the first two as places in `lists`.
    known: HashSet<(usize, usize, u64)>,
    /// How ranks are seen, by their place in `lists`.
    seen: HashMap<(View, usize), RankList>,
}

impl Checks {
    /// Looking at a rank takes as long as so many steps among boxes.
    pub const A_RANK: u64 = 2;
    /// Keeping a part that a file does not tell takes memory above all.
    pub const A_PART: u64 = 64;

    /// At most `most` steps.
    pub fn within(most: u64) -> Checks {
        Checks { left: most, spent: 0, lists: HashMap::new(), known: HashSet::new(), seen: HashMap::new() }
    }

    /// As many steps as it takes: for what does not come from a file.
    pub fn unbounded() -> Checks {
        Checks::within(u64::MAX)
    }

    /// Steps that were taken.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Work that is about to be done.
    pub fn spend(&mut self, steps: u64) -> Result<(), TooMuch> {
        self.left = self.left.checked_sub(steps).ok_or(TooMuch)?;
        self.spent = self.spent.saturating_add(steps);
        Ok(())
    }

    /// Work that takes so many ranks one by one.
    pub fn spend_on_ranks(&mut self, ranks: u64) -> Result<(), TooMuch> {
        self.spend(ranks.saturating_mul(Checks::A_RANK))
    }

    /// What a function from a file must satisfy: well formed parts, one number for each of these ranks, and not many more.
    pub fn is_over(&mut self, map: &RankMap, ranks: &RankList) -> Result<bool, TooMuch> {
        let enough = ranks.len()..=ranks.len().saturating_mul(MOST_HOLES);
        if !map.is_sound() || !enough.contains(&map.len()) {
            return Ok(false);
        }
        let is_over = match map.view {
            None => self.have_in_common(map.shape(), ranks, ranks.len())?,
            Some(view) => {
                self.is_over_grid(map, view, ranks)? || {
                    let seen = self.seen(view, ranks)?;
                    self.have_in_common(map.shape(), &seen, seen.len())?
                }
            }
        };
        match &map.plus {
            Some(plus) if is_over => self.is_over(plus, ranks),
            _ => Ok(is_over),
        }
    }

    /// Whether there is a number for each rank of the grid, and for those behind it up to the last: the grid has the same ranks
    /// in every order, so none of them is looked at. Only a yes says something.
    fn is_over_grid(&mut self, map: &RankMap, view: View, ranks: &RankList) -> Result<bool, TooMuch> {
        let end = ranks.last().unwrap_or(0).max(view.side * view.side - 1);
        let all = RankList { parts: vec![Part { start: 0, dims: vec![(end.saturating_add(1), 1)] }] };
        Ok(map.len() >= all.len() && self.have_in_common(map.shape(), &all, all.len())?)
    }

    fn seen(&mut self, view: View, ranks: &RankList) -> Result<RankList, TooMuch> {
        let key = (view, self.number(ranks));
        if let Some(seen) = self.seen.get(&key) {
            let seen = seen.clone();
            self.spend((seen.parts.len() + ranks.parts.len()) as u64)?;
            return Ok(seen);
        }
        // They are looked at, sorted and folded.
        self.spend_on_ranks(ranks.len().saturating_mul(4))?;
        let seen: RankList = ranks.iter().map(|rank| view.seen(rank)).collect();
        // They are kept, here and by their number.
        self.spend((seen.parts.len() as u64).saturating_mul(Checks::A_PART))?;
        self.seen.insert(key, seen.clone());
        Ok(seen)
    }

    /// Each of the ranks in these groups is one of `ranks`, and in no other group. Every list must be valid.
    pub fn are_groups_of(&mut self, groups: &[&RankList], ranks: &RankList) -> Result<bool, TooMuch> {
        let all = groups.iter().map(|group| group.len()).fold(0, u64::saturating_add);
        if all > ranks.len() {
            return Ok(false);
        }
        let mut parts: Vec<Part> = groups.iter().flat_map(|group| group.parts.iter().cloned()).collect();
        parts.sort_by_key(|part| part.start);
        self.have_in_common(RankList { parts }, ranks, all)
    }

    /// No rank is in two of these lists, each of which must be valid.
    pub fn are_apart(&mut self, lists: &[&RankList]) -> Result<bool, TooMuch> {
        let mut parts: Vec<&Part> = lists.iter().flat_map(|list| &list.parts).collect();
        parts.sort_by_key(|part| part.start);
        let ranks = lists.iter().map(|list| list.len()).fold(0, u64::saturating_add);
        self.first_by_boxes(
            parts.len() as u64,
            ranks,
            |left| are_apart(parts.iter().copied(), left),
            || {
                let mut ranks: Vec<u32> = lists.iter().flat_map(|list| list.iter()).collect();
                ranks.sort_unstable();
                ranks.is_sorted_by(|a, b| a < b)
            },
        )
    }

    /// The boxes, which must be sound and go by their first rank, share no rank, and have so many of these ranks.
    fn have_in_common(&mut self, boxes: RankList, ranks: &RankList, common: u64) -> Result<bool, TooMuch> {
        let parts = (boxes.parts.len() + ranks.parts.len()) as u64;
        if boxes == *ranks {
            self.spend(parts)?;
            return Ok(common == ranks.len());
        }
        let key = (self.number(&boxes), self.number(ranks), common);
        if self.known.contains(&key) {
            self.spend(parts)?;
            return Ok(true);
        }
        let yes = self.first_by_boxes(
            parts,
            boxes.len().saturating_add(ranks.len()),
            |left| {
                Some(are_apart(boxes.parts.iter(), left)? && in_common(&boxes.parts, ranks, left)? == common)
            },
            || {
                let mut single: Vec<u32> = boxes.parts.iter().flat_map(Part::ranks).collect();
                single.sort_unstable();
                let mut known = ranks.iter().peekable();
                let here = single.iter().filter(|&&rank| {
                    while known.next_if(|known| *known < rank).is_some() {}
                    known.peek() == Some(&rank)
                });
                here.count() as u64 == common && single.is_sorted_by(|a, b| a < b)
            },
        )?;
        if yes {
            self.known.insert(key);
        }
        Ok(yes)
    }

    /// Asks the boxes, for no longer than it would take to ask the ranks.
    fn first_by_boxes(
        &mut self,
        parts: u64,
        ranks: u64,
        boxes: impl FnOnce(&mut u64) -> Option<bool>,
        one_by_one: impl FnOnce() -> bool,
    ) -> Result<bool, TooMuch> {
        self.spend(parts)?;
        let most = ranks.saturating_mul(Checks::A_RANK).max(64);
        let mut left = most;
        let found = boxes(&mut left);
        self.spend(most - left)?;
        match found {
            Some(found) => Ok(found),
            None => {
                self.spend_on_ranks(ranks)?;
                Ok(one_by_one())
            }
        }
    }

    fn number(&mut self, list: &RankList) -> usize {
        if let Some(&number) = self.lists.get(list) {
            return number;
        }
        let next = self.lists.len();
        self.lists.insert(list.clone(), next);
        next
    }
}

/// Boxes by their first rank.
fn are_apart<'a>(boxes: impl Iterator<Item = &'a Part>, left: &mut u64) -> Option<bool> {
    let mut open: Vec<&Part> = Vec::new();
    for part in boxes {
        *left = left.checked_sub(1 + open.len() as u64)?;
        open.retain(|other| other.last() >= part.start);
        for other in &open {
            if part.common(other, left)? > 0 {
                return Some(false);
            }
        }
        open.push(part);
    }
    Some(true)
}

/// Boxes by their first rank, which have none in common.
fn in_common(boxes: &[Part], ranks: &RankList, left: &mut u64) -> Option<u64> {
    let mut sum = 0;
    // Those before have ended before all ranks that are still to come.
    let mut from = 0;
    for part in &ranks.parts {
        while boxes.get(from).is_some_and(|other| other.last() < part.start) {
            from += 1;
        }
        for other in boxes[from..].iter().take_while(|other| other.start <= part.last()) {
            sum += part.common(other, left)?;
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// What is found by boxes is what the ranks say, whatever is asked.
    #[test]
    fn boxes_and_ranks_agree() {
        let mut random = Rng::with_seed(31);
        let (mut yes, mut no) = (0, 0);
        for round in 0..3000u64 {
            let limit = [6, 20, 60][round as usize % 3];
            let all: Vec<u32> = (0..limit).filter(|_| random.u64(..8) > 0).map(|rank| rank as u32).collect();
            let ranks = RankList::from_sorted(&all);
            let period = 1 + random.u64(..5) as i64;
            let pairs: Vec<(u32, i64)> = all.iter().map(|&rank| (rank, i64::from(rank) % period)).collect();
            let mut map = if round % 2 == 0 { RankMap::loose(pairs) } else { RankMap::from_pairs(pairs) };
            // Some are not what they should be.
            let parts = map.parts.len() as u64;
            match random.u64(..4) {
                0 if parts > 0 => map.parts[random.u64(..parts) as usize].start += random.u64(..3) as u32,
                1 if parts > 0 => drop(map.parts.remove(random.u64(..parts) as usize)),
                _ => {}
            }
            map.parts.sort_by_key(|part| part.start);
            let mut single: Vec<u32> = map.pairs().iter().map(|pair| pair.0).collect();
            single.sort_unstable();
            let enough = (single.len() as u64) <= ranks.len() * MOST_HOLES;
            let apart = single.is_sorted_by(|a, b| a < b);
            let expected = enough && apart && all.iter().all(|rank| single.binary_search(rank).is_ok());
            let mut checks = Checks::unbounded();
            for _ in 0..2 {
                assert_eq!(checks.is_over(&map, &ranks), Ok(expected), "{map:?} {ranks:?}");
            }
            let shape = map.shape();
            let lists: Vec<RankList> =
                shape.parts.iter().map(|p| RankList { parts: vec![p.clone()] }).collect();
            let lists: Vec<&RankList> = lists.iter().collect();
            assert_eq!(checks.are_apart(&lists), Ok(apart));
            let inside = apart && single.iter().all(|rank| all.binary_search(rank).is_ok());
            assert_eq!(checks.are_groups_of(&lists, &ranks), Ok(inside), "{shape:?} {ranks:?}");
            *(if expected { &mut yes } else { &mut no }) += 1;
        }
        assert!(yes > 300 && no > 300, "{yes} {no}");
    }

    /// A view is a few bytes of a file. Each may leave a list of as many parts as there are ranks, and all are kept.
    #[test]
    fn lists_that_are_kept_are_paid_for() {
        let side = 64;
        let mut random = Rng::with_seed(5);
        let ranks: RankList = (0..side * side).filter(|_| random.bool()).collect();
        let mut checks = Checks::unbounded();
        for turn in 0..16 {
            let before = checks.spent();
            let view = View::new(side, 1, false).turned([turn, 3]);
            let seen = checks.seen(view, &ranks).unwrap();
            assert!(seen.parts.len() > 256, "{}", seen.parts.len());
            assert!(checks.spent() - before >= 64 * seen.parts.len() as u64);
        }
        // What is there already is kept no second time.
        let before = checks.spent();
        let seen = checks.seen(View::new(side, 1, false).turned([0, 3]), &ranks).unwrap();
        assert_eq!(checks.spent() - before, (seen.parts.len() + ranks.parts.len()) as u64);
    }

    #[test]
    fn what_was_found_is_remembered_and_work_is_bounded() {
        let ranks = RankList::from_iter(0..30_000);
        // Parts that no few boxes can be told apart by: each third, and two more in rows of seven.
        let pairs = |rank: u32| (rank, i64::from(rank * rank % 7919 % 5));
        let map = RankMap::from_pairs((0..30_000).map(pairs).collect());
        assert!(map.parts.len() > 1000);
        let mut checks = Checks::unbounded();
        assert_eq!(checks.is_over(&map, &ranks), Ok(true));
        let first = checks.spent();
        assert!(first <= 4 * Checks::A_RANK * 60_000 + 60_000, "{first}");
        assert_eq!(checks.is_over(&map, &ranks), Ok(true));
        assert!(checks.spent() - first <= map.parts.len() as u64 + 1);
        assert_eq!(Checks::within(first - 1).is_over(&map, &ranks), Err(TooMuch));
    }
}
