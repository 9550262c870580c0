//! A stream with its numbers taken out: ranks whose streams differ in numbers only share what is left.
//!
//! The numbers of a stream are, term by term, a value, or a stride's start and step. Counts belong to the shape.

use crate::grammar::{Grammar, Item, Runs, Symbol};
use crate::stream::{Stream, Term};

/// Streams with more numbers than this are taken as a whole: they are data, not a function of the rank.
pub const MOST_NUMBERS: usize = 64;

/// The numbers of a stream, unless there are too many, or some of them are in blocks.
pub fn numbers(stream: &Stream) -> Option<Vec<i64>> {
    if stream.terms.len() > MOST_NUMBERS || !stream.blocks.is_empty() {
        return None;
    }
    let mut numbers = Vec::with_capacity(stream.terms.len());
    for term in &stream.terms {
        match *term {
            Term::Value(value) => numbers.push(value),
            Term::Stride { start, step, .. } => numbers.extend([start, step]),
            Term::Block(_) => return None,
        }
    }
    (numbers.len() <= MOST_NUMBERS).then_some(numbers)
}

/// Whether two streams differ in nothing but numbers.
pub fn is_of_one_form(a: &Stream, b: &Stream) -> bool {
    let alike = |terms: (&Term, &Term)| match terms {
        (Term::Value(_), Term::Value(_)) => true,
        (Term::Stride { count: a, .. }, Term::Stride { count: b, .. }) => a == b,
        _ => false,
    };
    a.shape == b.shape && a.terms.len() == b.terms.len() && a.terms.iter().zip(&b.terms).all(alike)
}

/// The same stream with other numbers: `change` gets the place of each and what it is.
pub fn with_numbers(stream: &Stream, mut change: impl FnMut(u32, i64) -> i64) -> Stream {
    let mut at = 0;
    let mut next = |number: i64| {
        at += 1;
        change(at - 1, number)
    };
    let terms = stream.terms.iter().map(|term| match *term {
        Term::Value(value) => Term::Value(next(value)),
        Term::Stride { start, step, count } => Term::Stride { start: next(start), step: next(step), count },
        Term::Block(block) => Term::Block(block),
    });
    Stream { terms: terms.collect(), shape: stream.shape.clone(), blocks: stream.blocks.clone() }
}

/// What stands for a number that is told elsewhere. (A stride must have a step.)
pub fn without(stream: &Stream, mut told: impl FnMut(u32) -> bool) -> Stream {
    let steps = step_places(stream);
    with_numbers(stream, |place, number| match told(place) {
        true => i64::from(steps.contains(&place)),
        false => number,
    })
}

/// The places of steps among the numbers.
fn step_places(stream: &Stream) -> Vec<u32> {
    let mut place = 0;
    let mut steps = Vec::new();
    for term in &stream.terms {
        match term {
            Term::Value(_) => place += 1,
            Term::Stride { .. } => {
                steps.push(place + 1);
                place += 2;
            }
            Term::Block(_) => {}
        }
    }
    steps
}

/// The numbers of a stream, for ever, as places: the term, and how far into it. Owns nothing of the stream but its
/// terms' lengths, so that the terms may be replaced on the way.
#[derive(Debug, Clone)]
pub struct Places<'a> {
    rules: &'a [Vec<Item>],
    terms: Vec<Term>,
    runs: Runs<'a>,
    last: Option<Item>,
    /// The term being walked, how often it is still to come (for ever is the largest number), how far into it we are.
    term: usize,
    left: u64,
    at: u64,
}

impl<'a> Places<'a> {
    pub fn new(shape: &'a Grammar, terms: Vec<Term>) -> Places<'a> {
        let (last, before) = match shape.rules.first().and_then(|start| start.split_last()) {
            Some((last, before)) => (Some(*last), before),
            None => (None, &[][..]),
        };
        let runs = Runs::over(&shape.rules, before);
        Places { rules: &shape.rules, terms, runs, last, term: 0, left: 0, at: 0 }
    }

    fn step(&mut self) -> Option<(usize, u64)> {
        while self.left == 0 {
            match self.runs.next() {
                Some((term, count)) => (self.term, self.left) = (term as usize, count.min(u64::MAX - 1)),
                None => match self.last?.symbol {
                    Symbol::Terminal(term) => (self.term, self.left) = (term as usize, u64::MAX),
                    rule => {
                        self.runs = Runs::of(self.rules, rule);
                        let (term, count) = self.runs.next()?;
                        (self.term, self.left) = (term as usize, count.min(u64::MAX - 1));
                    }
                },
            }
            self.at = 0;
        }
        let place = (self.term, self.at);
        let len = match self.terms.get(self.term)? {
            Term::Value(_) => 1,
            Term::Stride { count, .. } => *count,
            // Streams with blocks have no numbers of a rank's own.
            Term::Block(_) => return None,
        };
        self.at = self.at.saturating_add(1);
        match self.left {
            // A stride at the end goes on; a value stays what it is.
            u64::MAX => {}
            _ if self.at >= len => {
                self.at = 0;
                self.left -= 1;
            }
            _ => {}
        }
        Some(place)
    }
}

impl Iterator for Places<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let (term, at) = self.step()?;
        match *self.terms.get(term)? {
            Term::Value(value) => Some(value),
            Term::Stride { start, step, .. } => {
                let exact = i128::from(start) + i128::from(at) * i128::from(step);
                Some(exact.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
            }
            Term::Block(_) => None,
        }
    }
}

/// A number of a stream as a function of the stream's numbers: one of them, plus so many times another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formula {
    pub base: u32,
    pub step: Option<(u32, i64)>,
}

/// The first `count` numbers of the stream, each as what it is made of.
pub fn formulas(stream: &Stream, count: usize) -> Option<Vec<Formula>> {
    let mut first = Vec::with_capacity(stream.terms.len());
    let mut place = 0u32;
    for term in &stream.terms {
        first.push(place);
        place += if matches!(term, Term::Value(_)) { 1 } else { 2 };
    }
    let mut places = Places::new(&stream.shape, stream.terms.clone());
    let mut formulas = Vec::with_capacity(count);
    for _ in 0..count {
        let (term, at) = places.step()?;
        let base = *first.get(term)?;
        let step = match stream.terms.get(term)? {
            Term::Value(_) => None,
            Term::Stride { .. } => Some((base + 1, i64::try_from(at).ok()?)),
            Term::Block(_) => return None,
        };
        formulas.push(Formula { base, step });
    }
    Some(formulas)
}

/// How many numbers come once, and how many then over and over: where that is all there is to the stream.
pub fn period(stream: &Stream) -> Option<(usize, usize)> {
    let (last, before) = stream.shape.rules.first()?.split_last()?;
    let length = |runs: Runs<'_>| -> Option<usize> {
        let mut sum = 0u64;
        for (term, count) in runs {
            let len = match stream.terms.get(term as usize)? {
                Term::Value(_) => 1,
                Term::Stride { count, .. } => *count,
                Term::Block(_) => return None,
            };
            sum = sum.saturating_add(count.saturating_mul(len));
            if sum > MOST_NUMBERS as u64 {
                return None;
            }
        }
        usize::try_from(sum).ok()
    };
    let again = match last.symbol {
        Symbol::Terminal(term) => match stream.terms.get(term as usize)? {
            Term::Value(_) => 1,
            Term::Stride { .. } | Term::Block(_) => return None,
        },
        rule => length(Runs::of(&stream.shape.rules, rule))?,
    };
    Some((length(Runs::over(&stream.shape.rules, before))?, again))
}

/// A stream of so many numbers and then so many over and over, all of them to be told elsewhere.
pub fn flat(once: usize, again: usize) -> Stream {
    let items = |range: std::ops::Range<usize>| -> Vec<Item> {
        range.map(|t| Item { symbol: Symbol::Terminal(t as u32), count: 1 }).collect()
    };
    let mut rules = vec![items(0..once)];
    if again == 1 {
        rules[0].extend(items(once..once + 1));
    } else {
        rules[0].push(Item { symbol: Symbol::Rule(1), count: 1 });
        rules.push(items(once..once + again));
    }
    Stream { terms: vec![Term::Value(0); once + again], shape: Grammar { rules }, blocks: Vec::new() }
}
