//! Folding a sequence of numbers by shape as it comes.
//!
//! Three levels, each handing on only what surprises it: the *cycle* compares numbers with the round that is expected,
//! the *run* joins numbers into constants and strides, and the *shape* folds the resulting terms into a grammar.

use super::finish::{Stretch, begins_with, close, open_item};
use super::{Block, MIN_STRIDE, Stream, Term};
use crate::grammar::{self, Runs};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Longest cycle that is kept expanded for comparison, in numbers.
const LONGEST_CYCLE: u64 = 1 << 13;

/// So many numbers may be watched for whether folding helps.
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
    /// One round of what the shape expects, as numbers; empty while nothing is expected. Only then is there a run.
    cycle: Vec<i64>,
    /// How far into the round we are.
    at: usize,
    /// Rounds seen that the shape does not know of.
    laps: u64,
    pub terms: Vec<Term>,
    pub blocks: Vec<Block>,
    ids: HashMap<Term, u32, BuildHasherDefault<Mix>>,
    block_ids: HashMap<u64, u32, BuildHasherDefault<Mix>>,
    shape: grammar::Folder,
    /// What expanding cycles may cost: earned by pushes, so that it stays linear in them.
    credit: u64,
    /// Whether strides are left alone.
    flat: bool,
    window: Window,
}

/// The last numbers that went to the shape, and what they cost there. It begins anew behind long regular stretches.
#[derive(Debug, Clone, Default)]
struct Window {
    numbers: Vec<i64>,
    /// Size of the shape and number of terms at its beginning.
    items: usize,
    terms: usize,
    /// Whether something was before it.
    late: bool,
    /// The size it had when last looked at, and that of the shape.
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
    /// Whether `next` continues the run: there are two numbers or more, and it is within `i64`.
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
        if self.cycle.get(self.at) == Some(&value) {
            self.at += 1;
            if self.at == self.cycle.len() {
                self.at = 0;
                self.laps += 1;
            }
        } else if !self.run.extend(value) {
            return self.push_unexpected(value);
        }
        false
    }

    /// A block in place of its numbers.
    pub fn push_block(&mut self, block: Block) {
        self.tell_shape();
        self.flush();
        let hash = block.hash();
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
        let (seen, before) = (self.window.numbers.len(), self.window.looked);
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

    /// The same value several times.
    pub fn push_n(&mut self, value: i64, mut count: u64) {
        while count > 0 {
            if self.repeats(value) {
                self.run.count += count;
                return;
            }
            self.push(value);
            count -= 1;
        }
    }

    /// Whether a run of this number is under way, so that more of it are only counted.
    pub fn repeats(&self, value: i64) -> bool {
        self.run.live && self.run.step == 0 && self.run.next == value
    }

    /// Bytes held beyond the struct itself.
    pub fn memory(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Block::memory).sum();
        let ids = self.ids.capacity() * (size_of::<(Term, u32)>() + 1) + self.block_ids.capacity() * 17;
        let numbers = self.cycle.capacity() + self.window.numbers.capacity();
        self.terms.capacity() * size_of::<Term>() + blocks + ids + numbers * 8 + self.shape.memory()
    }

    /// Size of the shape.
    pub fn items(&self) -> usize {
        self.shape.size()
    }

    /// The numbers of the window.
    pub fn recent(&self) -> &[i64] {
        &self.window.numbers
    }

    /// All numbers, if they are in the window.
    pub fn all(&self) -> Option<Vec<i64>> {
        if self.window.late {
            return None;
        }
        let Run { start, step, count, .. } = self.run;
        let (told, laps) = (self.cycle.len(), self.laps as usize);
        if count > WINDOW as u64 || self.laps > WINDOW as u64 || told.saturating_mul(laps) > WINDOW {
            return None;
        }
        let mut all = self.window.numbers.clone();
        (0..laps).for_each(|_| all.extend(&self.cycle));
        all.extend(&self.cycle[..self.at]);
        all.extend((0..count as i64).map(|i| start.wrapping_add(step.wrapping_mul(i))));
        Some(all)
    }

    /// Whether a round is expected.
    pub fn in_cycle(&self) -> bool {
        !self.cycle.is_empty() || !self.shape.rest_of_cycle().is_empty()
    }

    /// No numbers are to be expected for a while.
    pub fn rest(&mut self) {
        self.begin_window();
        self.window.numbers = Vec::new();
        self.cycle.shrink_to(0);
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
        let (rest, terms) = (self.shape.rest_of_cycle(), &self.terms);
        let run = (self.run.count > 0).then_some((self.run.start, self.run.step, self.run.count));
        let in_cycle = !self.cycle.is_empty()
            || !rest.is_empty()
                && rest.iter().all(|&t| !matches!(terms[t as usize], Term::Block(_)))
                && begins_with(rest.iter().map(|&t| terms[t as usize].run(1)), run.into_iter());
        if in_cycle {
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
        self.credit = self.credit.saturating_add(2);
        self.tell_shape();
        if self.take(value) {
            self.expect();
        }
        let seen = self.window.numbers.len();
        seen >= FIRST_LOOK && seen >= 2 * self.window.looked
    }

    /// Ends the expectation: what was only counted goes into the shape.
    fn tell_shape(&mut self) {
        if self.cycle.is_empty() {
            return;
        }
        let matched = self.laps.saturating_mul(self.cycle.len() as u64).saturating_add(self.at as u64);
        self.credit = self.credit.saturating_add(matched);
        self.shape.add_laps(self.laps);
        let mut cycle = std::mem::take(&mut self.cycle);
        self.watch(cycle.len() as u64 * self.laps.min(1), self.laps, |out| out.extend(&cycle));
        for &value in &cycle[..self.at] {
            self.take(value);
        }
        cycle.clear();
        self.cycle = cycle;
        self.at = 0;
        self.laps = 0;
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
        match value.checked_sub(start) {
            Some(step) if step == 0 || !self.flat => {
                let (next, beyond) = value.overflowing_add(step);
                self.run = Run { start, step, count: 2, next, live: !beyond };
                false
            }
            _ => {
                self.emit(Term::Value(start), 1);
                self.run = Run::new(value);
                true
            }
        }
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

    /// Notes that `count` times what `write` writes, which is that long, went to the shape.
    fn watch(&mut self, length: u64, count: u64, write: impl Fn(&mut Vec<i64>)) {
        if length.saturating_mul(count) >= WINDOW as u64 {
            self.begin_window();
            return;
        }
        if self.window.numbers.len() + (length * count) as usize > 2 * WINDOW {
            self.begin_window();
        }
        (0..count).for_each(|_| write(&mut self.window.numbers));
    }

    fn emit(&mut self, term: Term, count: u64) {
        self.watch(term.len(), count, |out| out.extend((0..term.len()).map(|i| term.at(i))));
        let id = *self.ids.entry(term).or_insert_with(|| {
            self.terms.push(term);
            self.terms.len() as u32 - 1
        });
        self.shape.push_n(id, count);
    }

    /// Expects another round if the shape does and the numbers held back are its beginning.
    fn expect(&mut self) {
        let Some(round) = self.shape.next_cycle() else { return };
        let limit = LONGEST_CYCLE.min(self.credit);
        let mut length = 0u64;
        for &t in round {
            let term = self.terms[t as usize];
            length = length.saturating_add(term.len());
            if length > limit || matches!(term, Term::Block(_)) {
                return;
            }
        }
        let Run { start, step, count, .. } = self.run;
        // A whole round may be held back: two numbers in turn are never less than that.
        if count > length {
            return;
        }
        self.credit -= length;
        for &t in round {
            let term = self.terms[t as usize];
            self.cycle.extend((0..term.len()).map(|i| term.at(i)));
        }
        let held = (0..count as i64).map(|i| start.wrapping_add(step.wrapping_mul(i)));
        if held.eq(self.cycle[..count as usize].iter().copied()) {
            (self.at, self.laps) = if count == length { (0, 1) } else { (count as usize, 0) };
            self.run = Run::default();
        } else {
            self.cycle.clear();
        }
    }
}

impl Run {
    fn new(start: i64) -> Run {
        Run { start, count: 1, ..Run::default() }
    }

    #[inline]
    fn extend(&mut self, value: i64) -> bool {
        if !self.live || value != self.next {
            return false;
        }
        self.count += 1;
        let (next, beyond) = self.next.overflowing_add(self.step);
        (self.next, self.live) = (next, !beyond);
        true
    }
}

/// A hasher for a few integers: they come from the program, not from an adversary.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 29;
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
