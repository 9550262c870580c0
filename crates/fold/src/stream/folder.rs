//! Folding a sequence of numbers as it comes.
//!
//! Three levels, each handing on only what surprises it: the *cycle* compares numbers with the round that is expected,
//! the *run* joins numbers into constants and strides, and the *shape* folds the resulting terms into a grammar.

use super::finish::{begins_with, close, open_item};
use super::{MIN_STRIDE, Stream, Term};
use crate::grammar;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Longest cycle that is kept expanded for comparison, in numbers.
const LONGEST_CYCLE: u64 = 1 << 13;

/// Builds a [`Stream`] number by number.
#[derive(Debug, Clone, Default)]
pub struct Folder {
    len: u64,
    run: Run,
    terms: Vec<Term>,
    ids: HashMap<Term, u32, BuildHasherDefault<Mix>>,
    shape: grammar::Folder,
    /// One round of what the shape expects, as numbers; empty while nothing is expected. Only then is there a run.
    cycle: Vec<i64>,
    /// How far into the round we are.
    at: usize,
    /// Rounds seen that the shape does not know of.
    laps: u64,
    /// What expanding cycles may cost: earned by pushes, so that it stays linear in them.
    credit: u64,
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

impl Folder {
    pub fn new() -> Folder {
        Folder::default()
    }

    /// Numbers pushed so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn push(&mut self, value: i64) {
        self.len += 1;
        if self.cycle.get(self.at) == Some(&value) {
            self.at += 1;
            if self.at == self.cycle.len() {
                self.at = 0;
                self.laps += 1;
            }
        } else if !self.run.extend(value) {
            self.push_unexpected(value);
        }
    }

    /// The stream of what was pushed so far. Folding can go on afterwards.
    pub fn finish(&self) -> Stream {
        if self.len == 0 {
            return Stream::constant(0);
        }
        // In the middle of a round: the item that repeats is last, and how often does not matter.
        let (rest, terms) = (self.shape.rest_of_cycle(), &self.terms);
        let run = (self.run.count > 0).then_some((self.run.start, self.run.step, self.run.count));
        let in_cycle = !self.cycle.is_empty()
            || !rest.is_empty()
                && begins_with(rest.iter().map(|&t| terms[t as usize].run(1)), run.into_iter());
        if in_cycle {
            return close(self.shape.core_grammar(), terms.clone(), true);
        }
        // The numbers held back may continue what is there; if not, they are terms of their own.
        let mut grammar = self.shape.finish();
        if let Some(open) = open_item(&grammar, terms, run) {
            grammar.rules[0].truncate(open + 1);
            return close(grammar, terms.clone(), true);
        }
        let mut whole = self.clone();
        whole.flush();
        let mut grammar = whole.shape.into_grammar();
        let open = open_item(&grammar, &whole.terms, None).unwrap_or(usize::MAX - 1);
        let start = &mut grammar.rules[0];
        let repeats = open + 1 < start.len() || start.last().is_some_and(|last| last.count > 1);
        start.truncate(open + 1);
        close(grammar, whole.terms, repeats)
    }

    #[inline(never)]
    fn push_unexpected(&mut self, value: i64) {
        self.credit = self.credit.saturating_add(2);
        self.tell_shape();
        if self.take(value) {
            self.expect();
        }
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
            Some(step) => {
                let (next, beyond) = value.overflowing_add(step);
                self.run = Run { start, step, count: 2, next, live: !beyond };
                false
            }
            None => {
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

    fn emit(&mut self, term: Term, count: u64) {
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
            length = length.saturating_add(self.terms[t as usize].len());
            if length > limit {
                return;
            }
        }
        let Run { start, step, count, .. } = self.run;
        if count >= length {
            return;
        }
        self.credit -= length;
        for &t in round {
            let term = self.terms[t as usize];
            self.cycle.extend((0..term.len()).map(|i| term.at(i)));
        }
        let held = (0..count as i64).map(|i| start.wrapping_add(step.wrapping_mul(i)));
        if held.eq(self.cycle[..count as usize].iter().copied()) {
            self.at = count as usize;
            self.laps = 0;
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

/// A hasher for a few integers: terms come from the program, not from an adversary.
#[derive(Debug, Clone, Copy, Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 29;
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
