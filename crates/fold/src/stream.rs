//! Streams: a sequence of numbers by its shape.
//!
//! ```
//! use refrain_fold::stream::Folder;
//! let mut folder = Folder::new();
//! [3, 3, 0, 4, 8, 0, 4, 8, 0, 4].iter().for_each(|&v| folder.push(v));
//! let stream = folder.finish(); // 3 x2, then 0 4 8 over and over
//! assert_eq!(stream.iter().take(10).collect::<Vec<_>>(), [3, 3, 0, 4, 8, 0, 4, 8, 0, 4]);
//! assert_eq!((stream.terms.len(), stream.sum(10)), (2, 34));
//! ```

mod finish;
mod folder;
mod term;

pub use folder::Folder;

use crate::grammar::{self, Grammar, Item, Runs, Symbol, bottom_up, walk};
use std::collections::HashMap;
use std::fmt;
use term::Summary;

/// A finished stream: an *endless* sequence that agrees with the numbers seen. How many of them count is known
/// elsewhere (from the structure), so a constant is the same stream whether it was seen ten times or a million.
///
/// Terms are numbered by first use, and the last item has a count of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stream {
    /// What the shape's terminals stand for.
    pub terms: Vec<Term>,
    /// The order of the terms. The last item of the start rule goes on for ever, whatever its count: a value or a rule
    /// over and over, a stride without end. (A stride over and over is therefore a rule of that one term.)
    pub shape: Grammar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Term {
    Value(i64),
    /// `start, start + step, ...`, `count` numbers of them (endless where it is the last item of the stream, and then
    /// `count` is `MIN_STRIDE`). At the ends of `i64` an endless one stays where it is.
    Stride {
        start: i64,
        step: i64,
        count: u64,
    },
}

/// Fewer numbers than this are no stride.
pub const MIN_STRIDE: u64 = 3;

/// Why what came from a file is not a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    Shape(grammar::Error),
    /// The start rule is empty.
    NoItems,
    NoSuchTerm {
        term: u32,
        terms: usize,
    },
    /// A stride with a step of zero, fewer than `MIN_STRIDE` numbers, or an end beyond `i64`.
    BadStride {
        term: usize,
    },
    /// More than 2^64 numbers.
    TooLong,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Shape(error) => write!(f, "in the shape of a stream: {error}"),
            Error::NoItems => write!(f, "the shape of a stream is empty"),
            Error::NoSuchTerm { term, terms } => {
                write!(f, "a stream names term {term}, but has only {terms}")
            }
            Error::BadStride { term } => {
                write!(f, "term {term} of a stream is a stride without a step, too short, or beyond 64 bits")
            }
            Error::TooLong => write!(f, "a stream has more than 2^64 numbers before it repeats"),
        }
    }
}

impl std::error::Error for Error {}

impl From<grammar::Error> for Error {
    fn from(error: grammar::Error) -> Error {
        Error::Shape(error)
    }
}

impl Stream {
    pub fn constant(value: i64) -> Stream {
        let item = Item { symbol: Symbol::Terminal(0), count: 1 };
        Stream { terms: vec![Term::Value(value)], shape: Grammar { rules: vec![vec![item]] } }
    }

    /// The value, if the stream is one value for ever.
    pub fn as_constant(&self) -> Option<i64> {
        match (&self.terms[..], &self.shape.rules[..]) {
            (&[Term::Value(value)], [start]) if start.len() == 1 => Some(value),
            _ => None,
        }
    }

    /// The numbers, for ever.
    pub fn iter(&self) -> Iter<'_> {
        let (before, last) = self.split();
        let endless = last.and_then(|last| self.endless(last));
        Iter {
            stream: self,
            runs: Runs::over(&self.shape.rules, before),
            term: None,
            left: 0,
            at: 0,
            last,
            endless,
        }
    }

    /// Sum of the first `n` numbers, in time of the size of the stream.
    pub fn sum(&self, n: u64) -> i128 {
        self.summary(n).sum
    }

    /// Smallest and largest of the first `n` numbers, in time of the size of the stream.
    pub fn min_max(&self, n: u64) -> Option<(i64, i64)> {
        let summary = self.summary(n);
        (summary.len > 0).then_some((summary.min, summary.max))
    }

    /// What a stream from a file must satisfy before anything else is done with it.
    pub fn validate(&self) -> Result<(), Error> {
        self.shape.validate()?;
        for (at, term) in self.terms.iter().enumerate() {
            if !term.is_sound() {
                return Err(Error::BadStride { term: at });
            }
        }
        if self.split().1.is_none() {
            return Err(Error::NoItems);
        }
        let mut length = vec![0u64; self.shape.rules.len()];
        for rule in bottom_up(&self.shape.rules, 0..self.shape.rules.len() as u32) {
            for item in &self.shape.rules[rule as usize] {
                let one = match item.symbol {
                    Symbol::Rule(inner) => length[inner as usize],
                    Symbol::Terminal(t) => match self.terms.get(t as usize) {
                        Some(term) => term.len(),
                        None => return Err(Error::NoSuchTerm { term: t, terms: self.terms.len() }),
                    },
                };
                let sum = item.count.checked_mul(one).and_then(|all| all.checked_add(length[rule as usize]));
                length[rule as usize] = sum.ok_or(Error::TooLong)?;
            }
        }
        Ok(())
    }

    /// The items that count as they stand, and the one that goes on for ever.
    fn split(&self) -> (&[Item], Option<Item>) {
        match self.shape.rules.first().and_then(|start| start.split_last()) {
            Some((last, before)) => (before, Some(*last)),
            None => (&[], None),
        }
    }

    /// A last item that is a stride without end.
    fn endless(&self, last: Item) -> Option<Term> {
        match last.symbol {
            Symbol::Terminal(t) => {
                self.terms.get(t as usize).copied().filter(|term| matches!(term, Term::Stride { .. }))
            }
            Symbol::Rule(_) => None,
        }
    }

    fn summary(&self, n: u64) -> Summary {
        let rules = &self.shape.rules;
        let (before, Some(last)) = self.split() else { return Summary::default() };
        let mut whole = vec![Summary::default(); rules.len()];
        let term =
            |t: u32| self.terms.get(t as usize).map(|term| term.summary(term.len())).unwrap_or_default();
        let one = |whole: &[Summary], symbol| match symbol {
            Symbol::Terminal(t) => term(t),
            Symbol::Rule(r) => whole.get(r as usize).copied().unwrap_or_default(),
        };
        for rule in bottom_up(rules, [0]) {
            let body = rules[rule as usize].iter();
            whole[rule as usize] = body
                .fold(Summary::default(), |sum, item| sum.then(one(&whole, item.symbol).times(item.count)));
        }
        let mut total = Summary::default();
        let mut items = before;
        let mut open = Some(last);
        // Each round takes all that fits whole and goes one level down into what does not.
        while total.len < n {
            let mut cut = None;
            for item in items {
                let (left, part) = (n - total.len, one(&whole, item.symbol));
                let fits = left.checked_div(part.len).unwrap_or(u64::MAX).min(item.count);
                total = total.then(part.times(fits));
                if fits < item.count {
                    cut = Some(item.symbol);
                    break;
                }
            }
            if let (None, Some(last)) = (cut, open) {
                let (left, part) = (n - total.len, one(&whole, last.symbol));
                if let Some(stride) = self.endless(last) {
                    return total.then(stride.summary(left));
                }
                if part.len == 0 {
                    return total;
                }
                total = total.then(part.times(left / part.len));
                cut = Some(last.symbol);
            }
            open = None;
            match cut {
                Some(Symbol::Rule(r)) => items = &rules[r as usize],
                Some(Symbol::Terminal(t)) => {
                    let term = self.terms.get(t as usize).map(|term| term.summary(n - total.len));
                    return total.then(term.unwrap_or_default());
                }
                None => return total,
            }
        }
        total
    }

    /// Numbers terms by first use and drops those that are not used.
    fn tidy_terms(&mut self) {
        let mut number: HashMap<u32, u32> = HashMap::new();
        let mut terms: Vec<Term> = Vec::new();
        walk(&self.shape.rules, 0, |_, item| {
            if let Symbol::Terminal(t) = item.symbol {
                number.entry(t).or_insert_with(|| {
                    terms.push(self.terms[t as usize]);
                    terms.len() as u32 - 1
                });
            }
        });
        self.shape = self.shape.map_terminals(|t| number[&t]);
        self.terms = terms;
    }
}

/// The numbers of a [`Stream`], without end.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    stream: &'a Stream,
    runs: Runs<'a>,
    /// The term being walked, how often it is still to come with this time, and how far into it we are.
    term: Option<Term>,
    left: u64,
    at: u64,
    last: Option<Item>,
    endless: Option<Term>,
}

impl Iterator for Iter<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        loop {
            if self.left > 0
                && let Some(term) = self.term
            {
                let value = term.at(self.at);
                self.at = self.at.saturating_add(1);
                if self.at >= term.len() && self.left != u64::MAX {
                    self.at = 0;
                    self.left -= 1;
                }
                return Some(value);
            }
            self.advance()?;
        }
    }
}

impl Iter<'_> {
    fn advance(&mut self) -> Option<()> {
        let mut fresh = false;
        loop {
            if let Some((t, count)) = self.runs.next() {
                self.term = Some(*self.stream.terms.get(t as usize)?);
                self.left = count.min(u64::MAX - 1);
                self.at = 0;
                return Some(());
            }
            let last = self.last?;
            if fresh {
                return None; // The last item holds no number at all: not a valid stream.
            }
            fresh = true;
            match last.symbol {
                Symbol::Rule(_) => self.runs = Runs::of(&self.stream.shape.rules, last.symbol),
                Symbol::Terminal(t) => {
                    self.term = Some(*self.stream.terms.get(t as usize)?);
                    // The mark of a stride that never starts again.
                    self.left = if self.endless.is_some() { u64::MAX } else { u64::MAX - 1 };
                    self.at = 0;
                    return Some(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
