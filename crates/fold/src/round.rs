//! What is expected to come: the round that was repeated, once more.
//!
//! Folders meet a loop as soon as it repeats. From then on they keep one round of it here, as runs of equal values; what
//! keeps to it is only compared and counted, and the folder hears of it when something does not.

/// One round, how far into it we are, and how many whole ones were seen.
#[derive(Debug, Clone)]
pub(crate) struct Round<T> {
    /// Neighbours differ; empty while nothing is expected.
    runs: Vec<(T, u64)>,
    /// The run we are in, and how much of it was seen.
    at: usize,
    done: u64,
    laps: u64,
    /// What filling in rounds may cost: earned by values, so that it stays linear in them.
    credit: u64,
}

impl<T> Default for Round<T> {
    fn default() -> Round<T> {
        Round { runs: Vec::new(), at: 0, done: 0, laps: 0, credit: 0 }
    }
}

/// What was seen of a round that is no longer expected.
#[derive(Debug)]
pub(crate) struct Seen<T> {
    pub laps: u64,
    runs: Vec<(T, u64)>,
    at: usize,
    done: u64,
}

impl<T: Copy + PartialEq> Round<T> {
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether the value is the one expected, which then is only counted.
    #[inline]
    pub fn step(&mut self, value: T) -> bool {
        let Some(&(expected, count)) = self.runs.get(self.at) else { return false };
        if expected != value {
            return false;
        }
        // Most runs are of one, and then nothing else is touched.
        if count == 1 || self.is_through(count) {
            self.turn();
        }
        true
    }

    /// One more of a run of so many. Says whether it was the last.
    fn is_through(&mut self, count: u64) -> bool {
        self.done += 1;
        let through = self.done == count;
        if through {
            self.done = 0;
        }
        through
    }

    /// The next run begins.
    #[inline]
    fn turn(&mut self) {
        self.at += 1;
        if self.at == self.runs.len() {
            self.at = 0;
            self.laps += 1;
        }
    }

    /// How many of so many equal values are expected; these are counted. At most three steps, however many.
    pub fn step_n(&mut self, value: T, count: u64) -> u64 {
        let mut left = count;
        if let &[(expected, round)] = &self.runs[..]
            && expected == value
        {
            let all = self.done.saturating_add(left);
            self.laps = self.laps.saturating_add(all / round);
            self.done = all % round;
            return count;
        }
        while left > 0
            && let Some(&(expected, run)) = self.runs.get(self.at)
            && expected == value
        {
            let taken = left.min(run - self.done);
            (self.done, left) = (self.done + taken, left - taken);
            if self.done == run {
                self.done = 0;
                self.turn();
            }
        }
        count - left
    }

    /// The value that comes next.
    #[inline]
    pub fn next(&self) -> Option<T> {
        self.runs.get(self.at).map(|run| run.0)
    }

    /// The round, when it is about to begin.
    pub fn whole(&self) -> Option<&[(T, u64)]> {
        (self.at == 0 && self.done == 0 && !self.runs.is_empty()).then_some(&self.runs)
    }

    /// What is left of the round.
    pub fn rest(&self) -> impl Iterator<Item = (T, u64)> + '_ {
        let now = self.runs.get(self.at).map(|&(value, count)| (value, count - self.done));
        now.into_iter().chain(self.runs.iter().skip(self.at + 1).copied())
    }

    /// The runs of the laps that were counted and of the round under way, if they are no more than that.
    pub fn counted(&self, most: usize) -> Option<impl Iterator<Item = (T, u64)> + '_> {
        let laps =
            usize::try_from(self.laps).ok().filter(|laps| laps.saturating_mul(self.runs.len()) <= most)?;
        let under_way = self.runs.get(self.at).map(|run| (run.0, self.done)).filter(|run| run.1 > 0);
        let whole = (0..laps).flat_map(|_| &self.runs).chain(&self.runs[..self.at]);
        Some(whole.copied().chain(under_way))
    }

    /// That many whole rounds were seen elsewhere. Returns how many values these are.
    pub fn add_laps(&mut self, laps: u64) -> u64 {
        self.laps = self.laps.saturating_add(laps);
        laps.saturating_mul(length(&self.runs))
    }

    /// Something was not expected: that earns, too.
    pub fn surprise(&mut self) {
        self.credit = self.credit.saturating_add(2);
    }

    /// Whether a round of that many values may be expected. It is paid for, and [`fill`](Round::fill) may begin.
    pub fn afford(&mut self, length: u64, longest: u64) -> bool {
        let can = length <= longest.min(self.credit);
        if can {
            self.credit -= length;
        }
        can
    }

    /// Adds to a round that is being filled in.
    #[inline]
    pub fn fill(&mut self, value: T, count: u64) {
        match self.runs.last_mut() {
            Some(last) if last.0 == value => last.1 += count,
            _ => self.runs.push((value, count)),
        }
    }

    /// Nothing is expected any more. `None` if nothing was.
    pub fn end(&mut self) -> Option<Seen<T>> {
        if self.runs.is_empty() {
            return None;
        }
        let (runs, at, done, laps) = (std::mem::take(&mut self.runs), self.at, self.done, self.laps);
        (self.at, self.done, self.laps) = (0, 0, 0);
        let matched = laps.saturating_mul(length(&runs)).saturating_add(length(&runs[..at]) + done);
        self.credit = self.credit.saturating_add(matched);
        Some(Seen { laps, runs, at, done })
    }

    /// The round that was just filled in is not what comes.
    pub fn give_up(&mut self) {
        self.runs.clear();
        (self.at, self.done, self.laps) = (0, 0, 0);
    }

    /// Takes the memory of a round back.
    pub fn reuse(&mut self, seen: Seen<T>) {
        self.runs = seen.runs;
        self.runs.clear();
    }

    /// Gives memory back that is not needed.
    pub fn shrink(&mut self) {
        self.runs.shrink_to(0);
    }

    /// Bytes held beyond the struct itself.
    pub fn memory(&self) -> usize {
        self.runs.capacity() * size_of::<(T, u64)>()
    }
}

impl<T: Copy> Seen<T> {
    /// The round.
    pub fn whole(&self) -> &[(T, u64)] {
        &self.runs
    }

    /// What was seen of the last, unfinished lap.
    pub fn part(&self) -> impl Iterator<Item = (T, u64)> + '_ {
        let under_way = self.runs.get(self.at).map(|run| (run.0, self.done)).filter(|run| run.1 > 0);
        self.runs[..self.at].iter().copied().chain(under_way)
    }
}

fn length<T>(runs: &[(T, u64)]) -> u64 {
    runs.iter().fold(0, |sum, run| sum.saturating_add(run.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    fn expecting(runs: &[(u32, u64)]) -> Round<u32> {
        let mut round = Round::default();
        runs.iter().for_each(|&(value, count)| round.fill(value, count));
        round
    }

    #[test]
    fn a_round_is_followed_until_something_else_comes() {
        let mut round = expecting(&[(1, 2), (5, 1), (1, 1)]);
        assert!([1, 1, 5, 1, 1].into_iter().all(|value| round.step(value)));
        assert_eq!((round.next(), round.laps, round.whole()), (Some(1), 1, None));
        assert_eq!(round.rest().collect::<Vec<_>>(), [(1, 1), (5, 1), (1, 1)]);
        assert!(!round.step(5));
        let seen = round.end().unwrap();
        assert_eq!((seen.laps, seen.part().collect::<Vec<_>>()), (1, vec![(1, 1)]));
        assert!(round.is_empty() && round.end().is_none() && round.credit == 5);
    }

    #[test]
    fn several_at_once_are_as_one_after_the_other() {
        let mut random = Rng::with_seed(5);
        for _ in 0..2000 {
            let runs: Vec<(u32, u64)> =
                (0..1 + random.u64(..4)).map(|_| (random.u64(..2) as u32, 1 + random.u64(..4))).collect();
            let (mut one, mut many) = (expecting(&runs), expecting(&runs));
            for _ in 0..8 {
                let (value, count) = (random.u64(..2) as u32, random.u64(..9));
                let taken = (0..count).take_while(|_| one.step(value)).count() as u64;
                assert_eq!(many.step_n(value, count), taken);
                assert_eq!((one.at, one.done, one.laps), (many.at, many.done, many.laps));
            }
        }
    }
}
