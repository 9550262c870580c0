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

mod block;
mod core;
mod finish;
mod flat;
mod folder;
mod prints;
mod row;
mod rows;
pub(crate) mod summary;
mod tables;
mod term;

pub use block::{Block, Rows};
pub use flat::Flat;
pub use folder::Folder;
pub use rows::DEEPEST;

use crate::grammar::{self, Grammar, Item, Runs, Symbol, bottom_up, lengths, walk};
use block::Play;
use std::rc::Rc;
use summary::Summary;

/// A finished stream: an *endless* sequence that agrees with the numbers seen. How many of them count is known
/// elsewhere (from the structure), so a constant is the same stream whether it was seen ten times or a million.
///
/// Terms and blocks are numbered by first use, and the last item has a count of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stream {
    /// What the shape's terminals stand for.
    pub terms: Vec<Term>,
    /// The order of the terms. The last item of the start rule goes on for ever, whatever its count: a value or a rule
    /// over and over, a stride without end. (A stride over and over is therefore a rule of that one term.)
    pub shape: Grammar,
    /// What `Term::Block` stands for; most streams have none.
    pub blocks: Vec<Block>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
/// A piece of a stream.
pub enum Term {
    /// One number.
    Value(i64),
    /// An index into `Stream::blocks`.
    Block(u32),
    /// `start, start + step, ...`, `count` numbers of them (endless where it is the last item of the stream, and then
    /// `count` is `MIN_STRIDE`, or one more if the same stride, ending, stands right before it). It wraps at 2^64, as
    /// all sums do here.
    Stride {
        /// The first number.
        start: i64,
        /// From one number to the next; not zero.
        step: i64,
        /// How many numbers.
        count: u64,
    },
}

/// Fewer numbers than this are no stride.
pub const MIN_STRIDE: u64 = 3;

/// Why what came from a file is not a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The order of the terms is no grammar.
    #[error("in the shape of a stream: {0}")]
    Shape(#[from] grammar::Error),
    /// The start rule is empty.
    #[error("the shape of a stream is empty")]
    NoItems,
    /// The shape names a term that is not there.
    #[error("a stream names term {term}, but has only {terms}")]
    NoSuchTerm {
        /// The one that it names.
        term: u32,
        /// How many there are.
        terms: usize,
    },
    /// A stride with a step of zero, or fewer than `MIN_STRIDE` numbers.
    #[error("term {term} of a stream is a stride without a step, or too short")]
    BadStride {
        /// Which one.
        term: usize,
    },
    /// A term names a block that is not there.
    #[error("a stream names block {block}, but has only {blocks}")]
    NoSuchBlock {
        /// The one that it names.
        block: u32,
        /// How many there are.
        blocks: usize,
    },
    /// A block that does not decode to its numbers.
    #[error("a block of a stream is not what was packed")]
    BadBlock,
    /// More than 2^64 numbers.
    #[error("a stream has more than 2^64 numbers before it repeats")]
    TooLong,
}

impl Stream {
    /// One number for ever.
    pub fn constant(value: i64) -> Stream {
        let item = Item { symbol: Symbol::Terminal(0), count: 1 };
        Stream {
            terms: vec![Term::Value(value)],
            shape: Grammar { rules: vec![vec![item]] },
            blocks: Vec::new(),
        }
    }

    /// The value, if the stream is one value for ever.
    pub fn as_constant(&self) -> Option<i64> {
        match (&self.terms[..], &self.shape.rules[..]) {
            (&[Term::Value(value)], [start]) if start.len() == 1 => Some(value),
            _ => None,
        }
    }

    /// What it takes to write it down, roughly in numbers, without its blocks: its terms, or its steps where these are many and far more.
    pub fn weight(&self) -> u64 {
        let terms = self.terms.len() as u64;
        let steps: u64 = self.shape.rules.iter().map(|rule| rule.len() as u64).sum();
        if steps > (2 * terms).max(16) { 2 * steps } else { terms }
    }

    /// The numbers, for ever.
    pub fn iter(&self) -> Iter<'_> {
        self.iter_with(None)
    }

    /// The same with other numbers in the place of its own; `own` must be of this stream.
    pub(crate) fn iter_with(&self, own: Option<Rc<Numbers>>) -> Iter<'_> {
        let (before, last) = self.split();
        let endless = last.and_then(|last| self.endless(last));
        Iter {
            stream: self,
            own,
            runs: Runs::over(&self.shape.rules, before),
            term: None,
            left: 0,
            at: 0,
            last,
            endless,
            play: None,
        }
    }

    /// The numbers from place `n` on, for ever, in time of the size of the stream.
    pub fn iter_from(&self, n: u64) -> Iter<'_> {
        self.iter_from_with(n, None)
    }

    /// The same with other numbers in the place of its own.
    pub(crate) fn iter_from_with(&self, n: u64, own: Option<Rc<Numbers>>) -> Iter<'_> {
        self.iter_with(own).from(n)
    }

    /// Sum of the first `n` numbers, in time of the size of the stream. Of running sums that wrap only the first 2^20 are
    /// looked at, and the others taken to be like them.
    pub fn sum(&self, n: u64) -> i128 {
        self.summary(n).sum
    }

    /// Smallest and largest of the first `n` numbers, in time of the size of the stream, as far as [`sum`](Stream::sum)
    /// looks.
    pub fn min_max(&self, n: u64) -> Option<(i64, i64)> {
        let summary = self.summary(n);
        (summary.len > 0).then_some((summary.min, summary.max))
    }

    /// What a stream from a file must satisfy before anything else is done with it.
    pub fn validate(&self) -> Result<(), Error> {
        self.validate_but_blocks()?;
        self.blocks.iter().try_for_each(Block::check)
    }

    /// The same without unpacking blocks: one that is damaged then has no numbers. Enough for sums of some of the streams.
    pub fn validate_but_blocks(&self) -> Result<(), Error> {
        self.shape.validate()?;
        for (at, term) in self.terms.iter().enumerate() {
            if !term.is_sound() {
                return Err(Error::BadStride { term: at });
            }
        }
        for block in &self.blocks {
            block.check_but_packed()?;
        }
        let Some(last) = self.split().1 else { return Err(Error::NoItems) };
        let mut length = vec![0u64; self.shape.rules.len()];
        for rule in bottom_up(&self.shape.rules, 0..self.shape.rules.len() as u32) {
            for item in &self.shape.rules[rule as usize] {
                let one = match item.symbol {
                    Symbol::Rule(inner) => length[inner as usize],
                    Symbol::Terminal(t) => match self.terms.get(t as usize) {
                        Some(&Term::Block(block)) => match self.blocks.get(block as usize) {
                            // A block without numbers would be walked through in vain, perhaps 2^64 times.
                            Some(block) if block.is_empty() && (rule != 0 || *item != last) => {
                                return Err(Error::BadBlock);
                            }
                            Some(block) => block.len(),
                            None => return Err(Error::NoSuchBlock { block, blocks: self.blocks.len() }),
                        },
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

    /// A last item that is a stride without end, or running sums without end.
    fn endless(&self, last: Item) -> Option<Term> {
        match last.symbol {
            Symbol::Terminal(t) => self.terms.get(t as usize).copied().filter(|term| match *term {
                Term::Value(_) => false,
                Term::Stride { .. } => true,
                Term::Block(block) => {
                    matches!(self.block(block), Some(Block::Running { .. } | Block::Rows { .. }))
                }
            }),
            Symbol::Rule(_) => None,
        }
    }

    fn block(&self, block: u32) -> Option<&Block> {
        self.blocks.get(block as usize)
    }

    fn summary(&self, n: u64) -> Summary {
        let part = |t: u32, n: u64| match self.terms.get(t as usize) {
            Some(&Term::Block(block)) => self.block(block).map(|block| block.summary(n)).unwrap_or_default(),
            Some(term) => term.summary(n),
            None => Summary::default(),
        };
        // A packed block is looked into once, however often it stands there.
        let whole: Vec<Summary> =
            (0..).zip(&self.terms).map(|(t, term)| part(t, self.term_len(term))).collect();
        let endless = |t: u32, n: u64| {
            let item = Item { symbol: Symbol::Terminal(t), count: 1 };
            self.endless(item).map(|_| part(t, n))
        };
        let whole = |t: u32| whole.get(t as usize).copied().unwrap_or_default();
        summary::summary(&self.shape.rules, n, whole, part, endless)
    }

    fn term_len(&self, term: &Term) -> u64 {
        match *term {
            Term::Block(block) => self.block(block).map_or(0, Block::len),
            _ => term.len(),
        }
    }

    /// Numbers terms and blocks by first use and drops those that are not used.
    fn tidy_terms(&mut self) {
        let mut number: Vec<Option<u32>> = vec![None; self.terms.len()];
        let mut terms: Vec<Term> = Vec::new();
        walk(&self.shape.rules, 0, |_, item| {
            if let Symbol::Terminal(t) = item.symbol {
                number[t as usize].get_or_insert_with(|| {
                    terms.push(self.terms[t as usize]);
                    terms.len() as u32 - 1
                });
            }
        });
        self.shape = self.shape.map_terminals(|t| number[t as usize].expect("the walk met every rule"));
        self.terms = terms;
        self.tidy_blocks();
    }

    /// Numbers blocks in the order of the terms and drops those that are not used.
    pub(crate) fn tidy_blocks(&mut self) {
        let mut old: Vec<Option<Block>> = std::mem::take(&mut self.blocks).into_iter().map(Some).collect();
        let mut number = vec![0; old.len()];
        for term in &mut self.terms {
            let Term::Block(block) = term else { continue };
            let Some(slot) = old.get_mut(*block as usize) else { continue };
            let number = &mut number[*block as usize];
            if let Some(content) = slot.take() {
                *number = self.blocks.len() as u32;
                self.blocks.push(content);
            }
            *block = *number;
        }
    }
}

/// Terms that stand in the place of a stream's own while it is walked: theirs is the same shape.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Numbers {
    pub terms: Vec<Term>,
    /// By block.
    pub inside: Vec<Inside>,
}

/// The same for the streams that a block is made of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Inside {
    Nothing,
    Running(Rc<Numbers>),
    Rows { step: i64, starts: Rc<Numbers>, counts: Rc<Numbers> },
}

/// The numbers of a [`Stream`], without end.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    stream: &'a Stream,
    own: Option<Rc<Numbers>>,
    runs: Runs<'a>,
    /// The term being walked, how often it is still to come with this time, and how far into it we are.
    term: Option<Term>,
    left: u64,
    at: u64,
    last: Option<Item>,
    endless: Option<Term>,
    /// The block being walked, instead of a term.
    play: Option<Play<'a>>,
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
            if let Some(value) = self.play.as_mut().and_then(Play::next) {
                return Some(value);
            }
            self.advance()?;
        }
    }
}

impl Iter<'_> {
    /// The same numbers from place `n` on; none must have been taken before.
    fn from(&self, n: u64) -> Self {
        let mut iter = self.clone();
        if n > 0 {
            iter.pass(n);
        }
        iter
    }

    /// What the first `n` numbers add up to, modulo 2^64; none must have been taken before.
    fn total(&self, n: u64) -> i64 {
        let sum = match &self.own {
            None => self.stream.sum(n),
            Some(own) => {
                let (shape, blocks) = (self.stream.shape.clone(), self.stream.blocks.clone());
                Stream { terms: own.terms.clone(), shape, blocks }.sum(n)
            }
        };
        sum as i64
    }

    /// Passes over `n` numbers at once; none must have been taken before. `None` where there are no numbers.
    fn pass(&mut self, n: u64) -> Option<()> {
        let stream = self.stream;
        let one = |t: u32| stream.terms.get(t as usize).map_or(0, |term| stream.term_len(term));
        let lengths = lengths(&stream.shape.rules, one);
        let rest = match self.runs.pass(n, &lengths, one, |_, _| {}) {
            Ok(found) => return self.begin_at(found.terminal, found.left.min(u64::MAX - 1), false, found.at),
            Err(rest) => rest,
        };
        let last = self.last?;
        match last.symbol {
            Symbol::Terminal(t) if self.endless.is_some() => self.begin_at(t, u64::MAX, true, rest),
            Symbol::Terminal(t) => self.begin_at(t, u64::MAX - 1, false, rest.checked_rem(one(t))?),
            Symbol::Rule(rule) => {
                let rest = rest.checked_rem(*lengths.get(rule as usize)?)?;
                self.runs = Runs::of(&stream.shape.rules, last.symbol);
                let found = self.runs.pass(rest, &lengths, one, |_, _| {}).ok()?;
                self.begin_at(found.terminal, found.left.min(u64::MAX - 1), false, found.at)
            }
        }
    }

    /// A term that is to come that many times, from its place `at` on.
    fn begin_at(&mut self, t: u32, times: u64, endless: bool, at: u64) -> Option<()> {
        self.begin(t, times, endless)?;
        match &mut self.play {
            Some(play) => play.pass(at),
            None => self.at = at,
        }
        Some(())
    }

    fn advance(&mut self) -> Option<()> {
        // The block that has just ended may come again.
        if let Some(play) = self.play.as_mut().filter(|_| self.left > 1) {
            self.left -= 1;
            play.again();
            return Some(());
        }
        self.play = None;
        let mut fresh = false;
        loop {
            if let Some((t, count)) = self.runs.next() {
                return self.begin(t, count.min(u64::MAX - 1), false);
            }
            let last = self.last?;
            if fresh {
                return None; // The last item holds no number at all: not a valid stream.
            }
            fresh = true;
            match last.symbol {
                Symbol::Rule(_) => self.runs = Runs::of(&self.stream.shape.rules, last.symbol),
                Symbol::Terminal(t) => {
                    // The mark of a stride that never starts again.
                    let times = if self.endless.is_some() { u64::MAX } else { u64::MAX - 1 };
                    return self.begin(t, times, self.endless.is_some());
                }
            }
        }
    }

    /// A term that is to come that many times.
    fn begin(&mut self, t: u32, times: u64, endless: bool) -> Option<()> {
        let terms = self.own.as_ref().map_or(&self.stream.terms, |own| &own.terms);
        let term = *terms.get(t as usize)?;
        (self.left, self.at) = (times, 0);
        if let Term::Block(block) = term {
            let own = self.own.as_ref().and_then(|own| own.inside.get(block as usize));
            let own = own.unwrap_or(&Inside::Nothing);
            (self.term, self.play) = (None, Some(Play::new(self.stream.block(block)?, endless, own)?));
        } else {
            self.term = Some(term);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
