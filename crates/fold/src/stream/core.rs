//! Folding a sequence of numbers by shape as it comes.
//!
//! Three levels, each handing on only what surprises it: the *round* compares numbers with those that are expected,
//! the *run* joins numbers into constants and strides, and the *shape* folds the resulting terms into a grammar.

use super::finish::{Stretch, begins_with, close, open_item, stretches};
use super::row::{LONG, Row};
use super::{Block, MIN_STRIDE, Stream, Term};
use crate::FastMap;
use crate::grammar::{self, Runs};
use crate::round::Round;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// Longest round that is kept expanded for comparison, in numbers.
const LONGEST_ROUND: u64 = 1 << 13;

/// Numbers of this weight may be watched for whether folding helps.
pub(super) const WINDOW: usize = 1 << 12;
/// From so many on it is asked.
const FIRST_LOOK: usize = 1 << 9;
/// What an item of a shape costs in a file, roughly, in bits.
pub(super) const ITEM: usize = 12;

/// Folds numbers, and keeps an eye on what that brings. What every number touches comes first.
#[derive(Debug, Clone, Default)]
#[repr(C)]
pub(super) struct Core {
    run: Run,
    /// One round of what the shape expects, as numbers, and how much of it was seen that the shape does not know of.
    /// Only while nothing is expected is there a run.
    round: Round<i64>,
    pub terms: Vec<Term>,
    pub blocks: Vec<Block>,
    ids: FastMap<Term, u32>,
    block_ids: FastMap<u64, u32>,
    shape: grammar::Folder,
    /// Whether strides are left alone.
    flat: bool,
    window: Window,
}

/// The last numbers that went to the shape, and what they cost there. It begins anew behind long regular stretches.
#[derive(Debug, Clone, Default)]
struct Window {
    numbers: Row,
    /// Size of the shape and number of terms at its beginning.
    items: usize,
    terms: usize,
    /// Whether something was before it.
    late: bool,
    /// The weight it had when last looked at, and the size of the shape.
    looked: usize,
    items_then: usize,
}

/// How the numbers in the window fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// Bits.
    pub cost: usize,
    /// What came last folds no better than what was before.
    pub growing: bool,
    /// It is not only more of the same that came.
    pub changing: bool,
}

/// Numbers that are held back until it is clear what they are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    pub start: i64,
    pub step: i64,
    pub count: u64,
    next: i64,
    /// Whether `next` continues the run: there are two numbers or more.
    live: bool,
}

impl Core {
    /// Without strides.
    pub fn flat() -> Core {
        Core { flat: true, ..Core::default() }
    }

    /// Says whether it is time to [`look`](Core::look).
    #[inline]
    pub fn push(&mut self, value: i64) -> bool {
        if self.round.step(value) || self.run.extend(value) {
            return false;
        }
        self.push_unexpected(value)
    }

    /// The same number several times, at once as far as they only count. Says how many were taken, and whether it is time
    /// to look before the next.
    pub fn push_n(&mut self, value: i64, count: u64) -> (u64, bool) {
        let mut left = count;
        while left > 0 {
            left -= self.round.step_n(value, left);
            if left > 0 && self.run.repeats(value) {
                self.run.count += left;
                left = 0;
            }
            if left > 0 {
                left -= 1;
                if self.push(value) {
                    return (count - left, true);
                }
            }
        }
        (count, false)
    }

    /// A block in place of its numbers.
    pub fn push_block(&mut self, block: Block) {
        self.tell_shape();
        self.flush();
        let hash = FxBuildHasher.hash_one(&block);
        let known = self.block_ids.get(&hash).copied();
        let id = known.filter(|&id| self.blocks[id as usize] == block).unwrap_or_else(|| {
            self.blocks.push(block);
            let id = self.blocks.len() as u32 - 1;
            self.block_ids.insert(hash, id);
            id
        });
        self.emit(Term::Block(id), 1);
        self.begin_window();
    }

    /// How the window folds; `None` if it is too early to say.
    pub fn look(&mut self) -> Option<Look> {
        let items = self.shape.size();
        let (seen, before) = (self.window.numbers.weight(), self.window.looked);
        // Half of the growth must be in what came since the last look.
        let growing = (items - self.window.items_then.min(items)) * 8 > seen - before;
        (self.window.looked, self.window.items_then) = (seen, items);
        let changing = items > self.window.items + 16;
        (before > 0).then(|| Look { cost: self.cost(), growing, changing })
    }

    /// What the window costs as it is folded, in bits.
    pub fn cost(&self) -> usize {
        let bits = |v: i64| 66 - (v ^ v >> 63).leading_zeros() as usize;
        let terms = self.terms[self.window.terms..].iter().map(|term| match *term {
            Term::Value(value) => bits(value),
            Term::Stride { start, step, count } => bits(start) + bits(step) + bits(count as i64),
            Term::Block(_) => 0,
        });
        (self.shape.size().saturating_sub(self.window.items)) * ITEM + terms.sum::<usize>()
    }

    /// What all of it costs, in bits.
    pub fn total_cost(&self) -> usize {
        self.shape.size() * ITEM + self.terms.len() * 2 * ITEM
    }

    /// Everything as stretches, if there are no more than that and no blocks.
    pub fn stretches(&self, most: usize) -> Option<Vec<Stretch>> {
        if !self.blocks.is_empty() {
            return None;
        }
        let grammar = self.shape.finish();
        let mut stretches: Vec<Stretch> = Vec::new();
        for (t, count) in Runs::over(&grammar.rules, grammar.rules.first()?) {
            let term = self.terms[t as usize];
            let times = if matches!(term, Term::Value(_)) { 1 } else { count };
            if times > (most - stretches.len()) as u64 {
                return None;
            }
            stretches.extend((0..times).map(|_| term.run(count)));
        }
        let held = (self.run.count > 0).then_some((self.run.start, self.run.step, self.run.count));
        stretches.extend(held);
        Some(stretches)
    }

    /// Bytes held beyond the struct itself.
    pub fn memory(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Block::memory).sum();
        let ids = self.ids.capacity() * (size_of::<(Term, u32)>() + 1) + self.block_ids.capacity() * 17;
        let numbers = self.round.memory() + self.window.numbers.memory();
        self.terms.capacity() * size_of::<Term>() + blocks + ids + numbers + self.shape.memory()
    }

    /// Size of the shape.
    pub fn items(&self) -> usize {
        self.shape.size()
    }

    /// The numbers of the window.
    pub fn recent(&self) -> &Row {
        &self.window.numbers
    }

    /// All numbers, if they are in the window.
    pub fn all(&self) -> Option<Row> {
        let Run { start, step, count, .. } = self.run;
        if self.window.late || step != 0 && count > WINDOW as u64 {
            return None;
        }
        let counted = self.round.counted(WINDOW)?;
        let mut all = self.window.numbers.clone();
        counted.for_each(|(value, count)| all.push_n(value, count));
        match step {
            0 => all.push_n(start, count),
            _ => self.run.numbers().for_each(|value| all.push(value)),
        }
        Some(all)
    }

    /// Whether a round is expected.
    pub fn in_round(&self) -> bool {
        !self.round.is_empty() || !self.shape.round().is_empty()
    }

    /// No numbers are to be expected for a while.
    pub fn rest(&mut self) {
        self.begin_window();
        self.window.numbers = Row::default();
        self.round.shrink();
    }

    pub fn begin_window(&mut self) {
        self.window.numbers.clear();
        self.window = Window {
            numbers: std::mem::take(&mut self.window.numbers),
            items: self.shape.size(),
            terms: self.terms.len(),
            late: true,
            looked: 0,
            items_then: self.shape.size(),
        };
    }

    /// The stream of what was pushed so far. Folding can go on afterwards.
    pub fn finish(&self) -> Stream {
        if self.run.count == 0 && self.shape.is_empty() {
            return Stream::constant(0);
        }
        // Most streams are one number, and there are many streams on many ranks.
        if self.shape.is_empty() && self.blocks.is_empty() && (self.run.count == 1 || self.run.step == 0) {
            return Stream::constant(self.run.start);
        }
        let blocks = || self.blocks.clone();
        // In the middle of a round: the item that repeats is last, and how often does not matter.
        let (expected, terms) = (self.shape.round(), &self.terms);
        let run = (self.run.count > 0).then_some((self.run.start, self.run.step, self.run.count));
        let in_round = !self.round.is_empty()
            || !expected.is_empty()
                && expected.rest().all(|(t, _)| !matches!(terms[t as usize], Term::Block(_)))
                && begins_with(stretches(terms, expected.rest()), run.into_iter());
        if in_round {
            return close(self.shape.core_grammar(), terms.clone(), blocks(), true);
        }
        // The numbers held back may continue what is there; if not, they are terms of their own.
        let mut grammar = self.shape.finish();
        if let Some(open) = open_item(&grammar, terms, run).filter(|_| self.blocks.is_empty()) {
            grammar.rules[0].truncate(open + 1);
            return close(grammar, terms.clone(), blocks(), true);
        }
        let mut whole = self.clone();
        whole.flush();
        let mut grammar = whole.shape.into_grammar();
        let open = open_item(&grammar, &whole.terms, None).filter(|_| self.blocks.is_empty());
        let open = open.unwrap_or(usize::MAX - 1);
        let start = &mut grammar.rules[0];
        let repeats = open + 1 < start.len() || start.last().is_some_and(|last| last.count > 1);
        start.truncate(open + 1);
        close(grammar, whole.terms, whole.blocks, repeats)
    }

    #[inline(never)]
    fn push_unexpected(&mut self, value: i64) -> bool {
        #[cfg(test)]
        crate::testing::step();
        self.round.surprise();
        self.tell_shape();
        if self.take(value) {
            self.expect();
        }
        let seen = self.window.numbers.weight();
        seen >= FIRST_LOOK && seen >= 2 * self.window.looked
    }

    /// Ends the expectation: what was only counted goes into the shape.
    fn tell_shape(&mut self) {
        let Some(seen) = self.round.end() else { return };
        self.shape.add_laps(seen.laps);
        if seen.laps > 0 {
            self.watch(seen.laps, seen.whole().iter().copied());
        }
        seen.part().for_each(|(value, count)| self.take_n(value, count));
        self.round.reuse(seen);
    }

    /// As [`take`](Core::take), of several equal numbers.
    fn take_n(&mut self, value: i64, mut count: u64) {
        while count > 0 {
            if self.run.repeats(value) {
                self.run.count += count;
                return;
            }
            self.take(value);
            count -= 1;
        }
    }

    /// Adds to the run or, if the number does not fit, begins a new one. Says whether terms went to the shape.
    fn take(&mut self, value: i64) -> bool {
        if self.run.extend(value) {
            return false;
        }
        let Run { start, step, count, .. } = self.run;
        match count {
            0 | 1 => {}
            // Two numbers are no stride: the first stands alone, the second may begin one.
            2 if step != 0 => {
                self.emit(Term::Value(start), 1);
                self.run = Run::new(start.wrapping_add(step));
                self.pair(value);
                return true;
            }
            _ => {
                self.flush();
                self.run = Run::new(value);
                return true;
            }
        }
        if count == 0 {
            self.run = Run::new(value);
            return false;
        }
        self.pair(value)
    }

    /// The second number of a run. Says whether the first had to go.
    fn pair(&mut self, value: i64) -> bool {
        let start = self.run.start;
        let step = value.wrapping_sub(start);
        if step == 0 || !self.flat {
            self.run = Run { start, step, count: 2, next: value.wrapping_add(step), live: true };
            return false;
        }
        self.emit(Term::Value(start), 1);
        self.run = Run::new(value);
        true
    }

    /// The run goes to the shape as it is.
    fn flush(&mut self) {
        let Run { start, step, count, .. } = std::mem::take(&mut self.run);
        if step == 0 && count > 0 {
            self.emit(Term::Value(start), count);
        } else if count >= MIN_STRIDE {
            self.emit(Term::Stride { start, step, count }, 1);
        } else {
            (0..count)
                .for_each(|i| self.emit(Term::Value(start.wrapping_add(step.wrapping_mul(i as i64))), 1));
        }
    }

    /// Notes that these runs went to the shape, `times` times.
    fn watch(&mut self, times: u64, runs: impl Iterator<Item = (i64, u64)> + Clone) {
        let each = runs.clone().fold(0u64, |sum, run| sum.saturating_add(run.1.min(LONG)));
        let weight = each.saturating_mul(times);
        if weight >= WINDOW as u64 {
            self.begin_window();
            return;
        }
        if self.window.numbers.weight() + weight as usize > 2 * WINDOW {
            self.begin_window();
        }
        let numbers = &mut self.window.numbers;
        (0..times).for_each(|_| runs.clone().for_each(|(value, count)| numbers.push_n(value, count)));
    }

    fn emit(&mut self, term: Term, count: u64) {
        match term {
            Term::Value(value) => self.watch(1, [(value, count)].into_iter()),
            // What is too long to be watched need not be walked through.
            Term::Stride { count, .. } if count >= WINDOW as u64 => self.begin_window(),
            _ => self.watch(count, (0..term.len()).map(|i| (term.at(i), 1))),
        }
        let id = *self.ids.entry(term).or_insert_with(|| {
            self.terms.push(term);
            self.terms.len() as u32 - 1
        });
        self.shape.push_n(id, count);
    }

    /// Expects another round if the shape does and the numbers held back are its beginning.
    fn expect(&mut self) {
        let Some(terms) = self.shape.round().whole() else { return };
        let mut length = 0u64;
        for &(t, count) in terms {
            let term = self.terms[t as usize];
            length = length.saturating_add(term.len().saturating_mul(count));
            if length > LONGEST_ROUND || matches!(term, Term::Block(_)) {
                return;
            }
        }
        // A whole round may be held back: two numbers in turn are never less than that.
        if self.run.count > length || !self.round.afford(length, LONGEST_ROUND) {
            return;
        }
        for &(t, count) in terms {
            match self.terms[t as usize] {
                Term::Value(value) => self.round.fill(value, count),
                term => (0..count).for_each(|_| (0..term.len()).for_each(|i| self.round.fill(term.at(i), 1))),
            }
        }
        let held = match self.run.step {
            0 => self.round.step_n(self.run.start, self.run.count) == self.run.count,
            _ => self.run.numbers().all(|value| self.round.step(value)),
        };
        match held {
            true => self.run = Run::default(),
            false => self.round.give_up(),
        }
    }
}

impl Run {
    fn new(start: i64) -> Run {
        Run { start, count: 1, ..Run::default() }
    }

    /// Whether this number is being repeated, so that more of it are only counted.
    fn repeats(&self, value: i64) -> bool {
        self.live && self.step == 0 && self.next == value
    }

    fn numbers(&self) -> impl Iterator<Item = i64> + use<> {
        let Run { start, step, count, .. } = *self;
        (0..count).map(move |i| start.wrapping_add(step.wrapping_mul(i as i64)))
    }

    #[inline]
    fn extend(&mut self, value: i64) -> bool {
        if !self.live || value != self.next {
            return false;
        }
        self.count += 1;
        self.next = self.next.wrapping_add(self.step);
        true
    }
}
