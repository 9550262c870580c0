//! How often a node ran in each iteration of the body it stands in, written when it is next touched.

use crate::stream::{self, Stream};

/// A node that an iteration leaves out is not visited: its noughts are filled in when it runs again, or at the end.
#[derive(Debug, Clone, Default)]
pub(super) struct Times {
    /// The last iteration in which the node ran, and how often it has done so there.
    at: u64,
    now: u64,
    /// A number and how often it stands before that.
    value: u64,
    count: u64,
    /// Some iteration before the last one in which it ran was without it.
    skipped: bool,
    /// What was before; most nodes are the same all the time and need none.
    older: Option<Box<Older>>,
}

/// A folder is worth its memory when there is much to fold.
#[derive(Debug, Clone)]
enum Older {
    Few(Vec<(u64, u64)>),
    Many(Box<stream::Folder>),
}

/// Numbers with how often they stand.
const FEW: usize = 64;

impl Times {
    /// Runs for the first time, in that iteration.
    pub fn from(at: u64) -> Times {
        Times { at, now: 1, count: at, skipped: at > 0, ..Times::default() }
    }

    /// Runs once in that iteration and all before it.
    pub fn ones(at: u64) -> Times {
        Times { value: 1, skipped: false, ..Times::from(at) }
    }

    /// Has run in one iteration only, and that has another number now.
    pub fn shift(&mut self, at: u64) {
        (self.at, self.value, self.count, self.skipped) = (at, 0, at, at > 0);
    }

    #[inline]
    pub fn run(&mut self, iteration: u64) {
        if self.at == iteration {
            self.now += 1;
        } else if self.at + 1 == iteration && self.now == self.value {
            self.count += 1;
            (self.at, self.now) = (iteration, 1);
        } else {
            self.advance(iteration);
        }
    }

    /// So many more times in the iteration in which it ran last.
    #[inline]
    pub fn again(&mut self, times: u64) {
        self.now += times;
    }

    #[inline(never)]
    fn advance(&mut self, iteration: u64) {
        self.write(self.now, 1);
        self.write(0, iteration - self.at - 1);
        self.skipped |= self.at + 1 < iteration;
        (self.at, self.now) = (iteration, 1);
    }

    fn write(&mut self, value: u64, count: u64) {
        if value == self.value {
            self.count += count;
        } else if count > 0 {
            if self.count > 0 {
                let older = self.older.get_or_insert_with(|| Box::new(Older::Few(Vec::new())));
                older.push(self.value, self.count);
            }
            (self.value, self.count) = (value, count);
        }
    }

    /// The last iteration in which it ran.
    #[inline]
    pub fn last(&self) -> u64 {
        self.at
    }

    /// It ran in every iteration up to this one.
    pub fn never_skipped(&self, iteration: u64) -> bool {
        !self.skipped && self.at >= iteration
    }

    /// It ran more often in the iteration before that.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.now < self.value && self.count > 0
    }

    /// How often it ran in that iteration, if that is the last or next to last one in which it could.
    pub fn lately(&self, iteration: u64) -> Option<u64> {
        if self.at <= iteration {
            return Some(if self.at == iteration { self.now } else { 0 });
        }
        (self.count > 0).then_some(self.value)
    }

    /// The numbers of the first `length` iterations.
    pub fn finish(&self, length: u64) -> Stream {
        let after = length.saturating_sub(self.at + 1);
        if self.older.is_none() && (self.count == 0 || self.value == self.now) && after == 0 {
            return Stream::constant(self.now as i64);
        }
        let mut all = self.older.as_ref().map_or_else(stream::Folder::new, |older| older.folder());
        [(self.value, self.count), (self.now, 1), (0, after)]
            .into_iter()
            .for_each(|(value, count)| all.push_n(value as i64, count));
        all.finish()
    }

    pub fn memory(&self) -> usize {
        match self.older.as_deref() {
            None => 0,
            Some(Older::Few(runs)) => size_of::<Older>() + runs.capacity() * 16,
            Some(Older::Many(folder)) => size_of::<Older>() + folder.memory(),
        }
    }
}

impl Older {
    fn push(&mut self, value: u64, count: u64) {
        match self {
            Older::Few(runs) if runs.len() < FEW => runs.push((value, count)),
            Older::Few(_) => {
                *self = Older::Many(Box::new(self.folder()));
                self.push(value, count);
            }
            Older::Many(folder) => folder.push_n(value as i64, count),
        }
    }

    fn folder(&self) -> stream::Folder {
        match self {
            Older::Few(runs) => {
                let mut folder = stream::Folder::new();
                runs.iter().for_each(|&(value, count)| folder.push_n(value as i64, count));
                folder
            }
            Older::Many(folder) => (**folder).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_without_it_are_noughts() {
        // Three before it was known, then 1 1 2 0 0 1, and two more without.
        let mut times = Times::from(3);
        [4, 5, 5, 8].into_iter().for_each(|iteration| times.run(iteration));
        let numbers: Vec<i64> = times.finish(11).iter().take(11).collect();
        assert_eq!(numbers, [0, 0, 0, 1, 1, 2, 0, 0, 1, 0, 0]);
        assert_eq!((times.lately(8), times.lately(9), times.lately(7)), (Some(1), Some(0), Some(0)));
    }

    #[test]
    fn what_is_always_the_same_is_a_constant() {
        let mut times = Times::ones(5);
        times.run(6);
        assert_eq!(times.finish(7).as_constant(), Some(1));
        assert_eq!(times.finish(8).as_constant(), None);
    }
}
