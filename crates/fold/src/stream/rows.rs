//! Rows: stretches of numbers at one distance, whose beginnings and lengths are streams in their turn.
//!
//! A nest of loops whose bounds go by the counts of the loops outside gives such numbers: the address that is affine in
//! the counts of all loops around it begins anew with each turn of the innermost, and where it begins is affine in the
//! counts of the others. A triangle is rows that begin at equal distances and are longer by one each; deeper nests are
//! rows of rows. So it takes as much to tell for a large matrix as for a small one.

use super::core::ITEM;
use super::finish::Stretch;
use super::folder::Folder;
use super::summary::{Join, Summary};
use super::{Block, Iter, Rows, Stream, Term};
use crate::grammar::{Grammar, Item, Symbol};

/// A block has at most so many rows, so that a sum over them is not for ever.
pub const MOST_ROWS: u64 = 1 << 20;
/// Rows of rows of rows, and no more.
pub(super) const LEVELS: usize = 8;
/// Blocks within blocks go no deeper: the innermost may hold running sums or packed numbers.
pub const DEEPEST: usize = LEVELS + 2;

/// Rows as they come.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub step: i64,
    start: i64,
    last: i64,
    /// Numbers of the row that is open.
    run: u64,
    pub rows: u64,
    pub count: u64,
    starts: Folder,
    counts: Folder,
}

impl Open {
    /// Of a folder of this level.
    pub fn new(step: i64, level: usize) -> Open {
        let (starts, counts) = (Folder::in_rows(level + 1), Folder::in_rows(level + 1));
        Open { step, start: 0, last: 0, run: 0, rows: 0, count: 0, starts, counts }
    }

    /// Of runs `(step, count)` of differences, the first from 0; nothing if their rows have no shape either.
    pub fn of_steps(
        steps: impl Iterator<Item = (i64, u64)> + Clone,
        most: usize,
        level: usize,
    ) -> Option<Open> {
        if level >= LEVELS {
            return None;
        }
        let mut open = Open::new(likely(steps.clone(), most)?, level);
        let mut value = 0i64;
        for (step, count) in steps {
            if step == open.step && open.run > 0 {
                value = value.checked_add(i64::try_from(count).ok()?.checked_mul(step)?)?;
                open.last = value;
                open.run = open.run.saturating_add(count);
                open.count = open.count.saturating_add(count);
                continue;
            }
            if count > most as u64 {
                return None;
            }
            for _ in 0..count {
                value = value.checked_add(step)?;
                open.push(value);
            }
            if open.rows > most as u64 || open.is_due() && !open.is_small() {
                return None;
            }
        }
        Some(open)
    }

    pub fn of_stretches(stretches: &[Stretch], level: usize) -> Option<Open> {
        let mut last = 0i64;
        let steps = stretches.iter().flat_map(move |&(start, step, count)| {
            let first = start.wrapping_sub(last);
            last = start.wrapping_add(step.wrapping_mul(count as i64 - 1));
            [(first, 1), (step, count - 1)]
        });
        Open::of_steps(steps.filter(|run| run.1 > 0), 2 * stretches.len(), level)
    }

    /// Of numbers, each so often.
    pub fn of(runs: &[(i64, u64)], level: usize) -> Option<Open> {
        let mut last = 0i64;
        let steps = runs.iter().flat_map(move |&(value, count)| {
            let step = value.wrapping_sub(last);
            last = value;
            [(step, 1), (0, count - 1)]
        });
        Open::of_steps(steps.filter(|run| run.1 > 0), 2 * runs.len(), level)
    }

    /// As many of so many equal numbers as can be taken before it is time to see whether it still helps.
    pub fn push_n(&mut self, value: i64, count: u64) -> u64 {
        self.push(value);
        let rest = count - 1;
        if rest == 0 || self.is_due() {
            return 1;
        }
        if self.step == 0 {
            (self.run, self.count) = (self.run.saturating_add(rest), self.count.saturating_add(rest));
            return count;
        }
        // Each is a row of its own; but not beyond the next look.
        let due = (self.rows + 1).next_power_of_two().min(MOST_ROWS - 1);
        let some = rest.min(due.saturating_sub(self.rows).max(1));
        self.end_row();
        self.rows += some - 1;
        self.count += some;
        self.starts.push_n(value, some - 1);
        self.counts.push_n(1, some - 1);
        (self.start, self.last, self.run) = (value, value, 1);
        1 + some
    }

    #[inline]
    pub fn push(&mut self, value: i64) {
        self.count += 1;
        if self.run > 0 && self.last.checked_add(self.step) == Some(value) {
            (self.last, self.run) = (value, self.run + 1);
            return;
        }
        self.end_row();
        (self.start, self.last, self.run) = (value, value, 1);
    }

    fn end_row(&mut self) {
        if self.run > 0 {
            self.rows += 1;
            self.starts.push(self.start);
            self.counts.push(i64::try_from(self.run).unwrap_or(i64::MAX));
        }
    }

    /// It is time to see whether it still helps.
    pub fn is_due(&self) -> bool {
        self.run == 1 && self.rows >= 64 && self.rows.is_power_of_two() || self.rows >= MOST_ROWS - 1
    }

    /// What the beginnings and lengths have taken up so far is little.
    pub fn is_small(&self) -> bool {
        self.rows < MOST_ROWS - 1 && self.size() < 64 + self.rows as usize / 4
    }

    /// What they take up, roughly in items.
    pub fn size(&self) -> usize {
        2 + self.starts.size().saturating_add(self.counts.size())
    }

    /// Whether that is much less than so many bits.
    pub fn is_worth(&self, bits: usize) -> bool {
        self.is_small() && self.size() * ITEM * 2 < bits
    }

    pub fn memory(&self) -> usize {
        size_of::<Open>() + self.starts.memory() + self.counts.memory()
    }

    /// All of it as a block of so many numbers.
    pub fn block(&self, count: u64) -> Block {
        let mut whole = self.clone();
        whole.end_row();
        let rows = Rows { step: self.step, starts: whole.starts.finish(), counts: whole.counts.finish() };
        Block::Rows { count, rows: Box::new(rows) }
    }
}

/// The distance from number to number that is met most often.
fn likely(steps: impl Iterator<Item = (i64, u64)>, most: usize) -> Option<i64> {
    let mut often: crate::FastMap<i64, u64> = crate::FastMap::default();
    for (at, (step, count)) in steps.enumerate() {
        if at > most {
            return None;
        }
        let all = often.entry(step).or_default();
        *all = all.saturating_add(count);
    }
    often.into_iter().max_by_key(|&(step, count)| (count, std::cmp::Reverse(step))).map(|(step, _)| step)
}

impl Stream {
    /// A block that goes on for ever.
    pub(super) fn of_block(block: Block) -> Stream {
        let item = Item { symbol: Symbol::Terminal(0), count: 1 };
        Stream {
            terms: vec![Term::Block(0)],
            shape: Grammar { rules: vec![vec![item]] },
            blocks: vec![block],
        }
    }

    /// How deep blocks are nested.
    fn depth(&self) -> usize {
        self.blocks.iter().map(Block::depth).max().unwrap_or(0)
    }

    /// What it takes to write it down, roughly in items.
    pub(super) fn size(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| match block {
            Block::Packed { bytes, .. } => bytes.len(),
            Block::Running { steps, .. } => 1 + steps.size(),
            Block::Rows { rows, .. } => 2 + rows.starts.size() + rows.counts.size(),
        });
        let terms = self.terms.iter().map(|term| if let Term::Stride { .. } = term { 5 } else { 2 });
        self.shape.items() + terms.sum::<usize>() + blocks.sum::<usize>()
    }
}

impl Block {
    pub(super) fn depth(&self) -> usize {
        match self {
            Block::Packed { .. } => 1,
            Block::Running { steps, .. } => 1 + steps.depth(),
            Block::Rows { rows, .. } => 1 + rows.starts.depth().max(rows.counts.depth()),
        }
    }
}

impl Rows {
    /// Of the first `n` numbers, row by row.
    pub(super) fn summary(&self, n: u64) -> Summary {
        let mut all = Summary::default();
        let rows = self.starts.iter().zip(self.counts.iter());
        for (start, count) in rows.take(MOST_ROWS as usize) {
            let left = n - all.len;
            if left == 0 {
                break;
            }
            let count = length(count).min(left);
            let row = Term::Stride { start, step: self.step, count };
            all = all.then(match self.step {
                0 => Term::Value(start).summary(count),
                _ => row.summary(count),
            });
        }
        all
    }
}

/// A row has a number, whatever a file says.
fn length(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0).max(1)
}

/// Rows, number by number.
#[derive(Debug, Clone)]
pub(super) struct Walk<'a> {
    step: i64,
    starts: Iter<'a>,
    counts: Iter<'a>,
    next: i64,
    left: u64,
}

impl<'a> Walk<'a> {
    pub fn new(step: i64, starts: Iter<'a>, counts: Iter<'a>) -> Walk<'a> {
        Walk { step, starts, counts, next: 0, left: 0 }
    }

    /// Passes over `n` numbers, row by row.
    pub fn pass(&mut self, mut n: u64) {
        while n > 0 {
            if self.left == 0 {
                let (Some(start), Some(count)) = (self.starts.next(), self.counts.next()) else { return };
                (self.next, self.left) = (start, length(count));
            }
            let some = self.left.min(n);
            self.next = self.next.wrapping_add(self.step.wrapping_mul(some as i64));
            self.left -= some;
            n -= some;
        }
    }

    #[inline]
    pub fn next(&mut self) -> Option<i64> {
        if self.left == 0 {
            self.next = self.starts.next()?;
            self.left = length(self.counts.next()?);
        }
        let value = self.next;
        self.left -= 1;
        self.next = value.wrapping_add(self.step);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Step by step or passed over, rows wrap at 64 bits.
    #[test]
    fn rows_wrap_whichever_way_they_are_read() {
        let (starts, counts) = (Stream::constant(i64::MAX - 20), Stream::constant(5));
        let block = Block::Rows { count: 0, rows: Box::new(Rows { step: 9, starts, counts }) };
        let stream = Stream::of_block(block);
        let all: Vec<i64> = stream.iter().take(12).collect();
        assert_eq!(all[..4], [i64::MAX - 20, i64::MAX - 11, i64::MAX - 2, i64::MIN + 6]);
        for n in 0..12 {
            assert!(
                stream.iter_from(n).take(12 - n as usize).eq(all[n as usize..].iter().copied()),
                "from {n}"
            );
        }
    }
}
