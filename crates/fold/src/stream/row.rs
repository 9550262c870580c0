//! Numbers one after the other, equal neighbours counted.

/// So many equal numbers in a row weigh as much as more of them.
pub(crate) const LONG: u64 = 8;

/// A list of numbers as runs. What is done with it takes time by its *weight*: that of short runs is their length, long
/// ones weigh [`LONG`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row {
    runs: Vec<(i64, u64)>,
    len: u64,
    weight: usize,
}

impl Row {
    #[cfg(test)]
    pub fn of(runs: impl IntoIterator<Item = (i64, u64)>) -> Row {
        let mut row = Row::default();
        runs.into_iter().for_each(|(value, count)| row.push_n(value, count));
        row
    }

    pub fn runs(&self) -> &[(i64, u64)] {
        &self.runs
    }

    /// How many numbers.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn weight(&self) -> usize {
        self.weight
    }

    #[inline]
    pub fn push(&mut self, value: i64) {
        self.push_n(value, 1);
    }

    #[inline]
    pub fn push_n(&mut self, value: i64, count: u64) {
        if count == 0 {
            return;
        }
        #[cfg(test)]
        crate::testing::step();
        self.len = self.len.saturating_add(count);
        match self.runs.last_mut() {
            Some(last) if last.0 == value => {
                let before = last.1.min(LONG);
                last.1 = last.1.saturating_add(count);
                self.weight += (last.1.min(LONG) - before) as usize;
            }
            _ => {
                self.runs.push((value, count));
                self.weight += count.min(LONG) as usize;
            }
        }
    }

    /// Of so many equal numbers, those after which the row first weighs that much; all if it never does.
    pub fn until(&self, value: i64, count: u64, weight: usize) -> u64 {
        let room = weight.saturating_sub(self.weight) as u64;
        let before = self.runs.last().filter(|last| last.0 == value).map_or(0, |last| last.1.min(LONG));
        if room <= count.min(LONG - before) { room } else { count }
    }

    /// The first so many numbers, which leave.
    pub fn take_front(&mut self, mut count: u64) -> Row {
        let mut rest = std::mem::take(self).runs.into_iter();
        let mut front = Row::default();
        for (value, run) in rest.by_ref() {
            let taken = run.min(count);
            front.push_n(value, taken);
            count -= taken;
            if taken < run || count == 0 {
                self.push_n(value, run - taken);
                break;
            }
        }
        rest.for_each(|(value, run)| self.push_n(value, run));
        front
    }

    pub fn clear(&mut self) {
        self.runs.clear();
        (self.len, self.weight) = (0, 0);
    }

    /// Bytes held beyond the struct itself.
    pub fn memory(&self) -> usize {
        self.runs.capacity() * size_of::<(i64, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_weigh_as_much_as_longer_ones() {
        let mut row = Row::of([(5, 3), (5, 2), (7, 1), (0, 1 << 40)]);
        assert_eq!((row.runs().len(), row.len(), row.weight()), (3, 6 + (1 << 40), 14));
        assert_eq!((row.until(0, 9, 15), row.until(3, 9, 15), row.until(3, 9, 30)), (9, 1, 9));
        let front = row.take_front(8);
        assert_eq!(front.runs(), [(5, 5), (7, 1), (0, 2)]);
        assert_eq!((row.runs(), row.weight()), (&[(0, (1 << 40) - 2)][..], 8));
        assert_eq!((row.until(0, 5, 8), row.until(0, 5, 9)), (0, 5));
    }
}
