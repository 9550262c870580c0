//! A stream with its numbers taken out: ranks whose streams differ in numbers only share what is left.
//!
//! The numbers of a stream are, term by term, a value, or a stride's start and step; of running sums, those of their
//! steps, so that where a nested stride begins and how far it goes at each level may be each rank's own. Counts belong
//! to the shape.

use std::rc::Rc;

use crate::grammar::{Folder, Grammar, Item, Runs, Symbol};
use crate::stream::{Block, Inside, Numbers, Rows, Stream, Term};

/// So many numbers of a stream may be functions of the rank, the first ones.
pub const MOST_PLACES: usize = 2048;
/// So many may be while ranks merge. In streams with more, the others are data: ranks share such a stream only if these
/// are equal.
pub const MOST_NUMBERS: usize = 64;

/// The numbers of a stream that may be told elsewhere: at most [`MOST_PLACES`].
pub fn numbers(stream: &Stream) -> Vec<i64> {
    let mut numbers = Vec::with_capacity(stream.terms.len().min(MOST_PLACES));
    each(stream, &mut |number, _| {
        numbers.push(number);
        numbers.len() < MOST_PLACES
    });
    numbers
}

/// All numbers in the order of their places, each with whether it is the step of a stride, until `see` has enough.
/// Those of running sums are their steps, of which the first is where they begin; those of rows their step, their
/// beginnings and their lengths. Packed numbers have no places.
fn each(stream: &Stream, see: &mut dyn FnMut(i64, bool) -> bool) -> bool {
    stream.terms.iter().all(|term| match *term {
        Term::Value(value) => see(value, false),
        Term::Stride { start, step, .. } => see(start, false) && see(step, true),
        Term::Block(block) => match stream.blocks.get(block as usize) {
            Some(Block::Running { steps, .. }) => each(steps, see),
            Some(Block::Rows { rows, .. }) => {
                see(rows.step, false) && each(&rows.starts, see) && each(&rows.counts, see)
            }
            Some(Block::Packed { .. }) | None => true,
        },
    })
}

/// Whether two streams differ in nothing but numbers that may be told elsewhere while ranks merge.
pub fn is_of_one_form(a: &Stream, b: &Stream) -> bool {
    without(a, |_| true) == without(b, |_| true)
}

/// The terms of a stream with other numbers: `change` gets each and whether it is the step of a stride.
fn changed(stream: &Stream, change: &mut dyn FnMut(i64, bool) -> i64) -> Numbers {
    let mut inside = vec![Inside::Nothing; stream.blocks.len()];
    let terms = stream.terms.iter().map(|term| match *term {
        Term::Value(value) => Term::Value(change(value, false)),
        Term::Stride { start, step, count } => {
            Term::Stride { start: change(start, false), step: change(step, true), count }
        }
        Term::Block(block) => {
            match stream.blocks.get(block as usize) {
                Some(Block::Running { steps, .. }) => {
                    inside[block as usize] = Inside::Running(Rc::new(changed(steps, change)));
                }
                Some(Block::Rows { rows, .. }) => {
                    let step = change(rows.step, false);
                    let starts = Rc::new(changed(&rows.starts, change));
                    let counts = Rc::new(changed(&rows.counts, change));
                    inside[block as usize] = Inside::Rows { step, starts, counts };
                }
                Some(Block::Packed { .. }) | None => {}
            }
            Term::Block(block)
        }
    });
    Numbers { terms: terms.collect(), inside }
}

/// Its numbers with others in some places: `own` is by place.
pub fn own_numbers(stream: &Stream, own: &[(u32, i64)]) -> Numbers {
    let mut own = own.iter().peekable();
    let mut at = 0;
    changed(stream, &mut |number, _| {
        at += 1;
        own.next_if(|own| own.0 == at - 1).map_or(number, |own| own.1)
    })
}

/// The same stream with other numbers: `change` gets the place of each that has one, and what it is.
pub fn with_numbers(stream: &Stream, mut change: impl FnMut(u32, i64) -> i64) -> Stream {
    replaced(stream, MOST_PLACES, &mut |place, number, _| change(place, number))
}

fn replaced(stream: &Stream, most: usize, change: &mut dyn FnMut(u32, i64, bool) -> i64) -> Stream {
    let mut at = 0;
    let numbers = changed(stream, &mut |number, step| {
        at += 1;
        if at > most as u32 { number } else { change(at - 1, number, step) }
    });
    filled(stream, &numbers)
}

fn filled(stream: &Stream, numbers: &Numbers) -> Stream {
    let mut blocks = stream.blocks.clone();
    for (block, own) in blocks.iter_mut().zip(&numbers.inside) {
        match (block, own) {
            (Block::Running { steps, .. }, Inside::Running(own)) => **steps = filled(steps, own),
            (Block::Rows { rows, .. }, Inside::Rows { step, starts, counts }) => {
                **rows = Rows {
                    step: *step,
                    starts: filled(&rows.starts, starts),
                    counts: filled(&rows.counts, counts),
                };
            }
            _ => {}
        }
    }
    Stream { terms: numbers.terms.clone(), shape: stream.shape.clone(), blocks }
}

/// What stands for a number that is told elsewhere while ranks merge. (A stride must have a step.)
pub fn without(stream: &Stream, mut told: impl FnMut(u32) -> bool) -> Stream {
    replaced(stream, MOST_NUMBERS, &mut |place, number, step| if told(place) { step.into() } else { number })
}

/// The numbers of a stream for ever, each as what it is made of. There are none where packed numbers or running sums come.
pub struct Formulas<'a> {
    stream: &'a Stream,
    /// By term, the place of its first number.
    first: Vec<u32>,
    runs: Runs<'a>,
    last: Option<Item>,
    /// The term being walked, how often it is still to come (for ever is the largest number), how far into it we are.
    term: usize,
    left: u64,
    at: u64,
}

impl<'a> Formulas<'a> {
    pub fn new(stream: &'a Stream) -> Formulas<'a> {
        // What comes after a block has no place that is known here.
        let mut place = 0;
        let mut first = Vec::new();
        for term in &stream.terms {
            let numbers = match term {
                Term::Value(_) => 1,
                Term::Stride { .. } => 2,
                Term::Block(_) => break,
            };
            first.push(place);
            place += numbers;
        }
        let rules = &stream.shape.rules;
        let (last, before) = match rules.first().and_then(|start| start.split_last()) {
            Some((last, before)) => (Some(*last), before),
            None => (None, &[][..]),
        };
        Formulas { stream, first, runs: Runs::over(rules, before), last, term: 0, left: 0, at: 0 }
    }

    fn step(&mut self) -> Option<(usize, u64)> {
        while self.left == 0 {
            match self.runs.next() {
                Some((term, count)) => (self.term, self.left) = (term as usize, count.min(u64::MAX - 1)),
                None => match self.last?.symbol {
                    Symbol::Terminal(term) => (self.term, self.left) = (term as usize, u64::MAX),
                    rule => {
                        self.runs = Runs::of(&self.stream.shape.rules, rule);
                        let (term, count) = self.runs.next()?;
                        (self.term, self.left) = (term as usize, count.min(u64::MAX - 1));
                    }
                },
            }
            self.at = 0;
        }
        let place = (self.term, self.at);
        let len = match self.stream.terms.get(self.term)? {
            Term::Value(_) => 1,
            Term::Stride { count, .. } => *count,
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

/// A number of a stream as a function of the stream's numbers: one of them, plus so many times another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formula {
    pub base: u32,
    pub step: Option<(u32, i64)>,
}

impl Iterator for Formulas<'_> {
    type Item = Formula;

    fn next(&mut self) -> Option<Formula> {
        let (term, at) = self.step()?;
        let base = *self.first.get(term)?;
        let step = match self.stream.terms.get(term)? {
            Term::Value(_) => None,
            Term::Stride { .. } => Some((base + 1, i64::try_from(at).ok()?)),
            Term::Block(_) => return None,
        };
        Some(Formula { base, step })
    }
}

/// How many numbers an expansion has: where they are few, and none are in blocks.
fn length(stream: &Stream, runs: Runs<'_>) -> Option<usize> {
    let mut sum = 0u64;
    for (term, count) in runs {
        let len = match stream.terms.get(term as usize)? {
            Term::Value(_) => 1,
            Term::Stride { count, .. } => *count,
            Term::Block(_) => return None,
        };
        sum = sum.saturating_add(count.saturating_mul(len));
        if sum > MOST_PLACES as u64 {
            return None;
        }
    }
    usize::try_from(sum).ok()
}

/// How many numbers come once, and how many then over and over: where that is all there is to the stream.
fn period(stream: &Stream) -> Option<(usize, usize)> {
    let (last, before) = stream.shape.rules.first()?.split_last()?;
    let again = match last.symbol {
        Symbol::Terminal(term) => match stream.terms.get(term as usize)? {
            Term::Value(_) => 1,
            Term::Stride { .. } | Term::Block(_) => return None,
        },
        rule => length(stream, Runs::of(&stream.shape.rules, rule))?,
    };
    Some((length(stream, Runs::over(&stream.shape.rules, before))?, again))
}

/// The same where only the first `used` numbers count (0: it is not known how many do). A stream whose last numbers go on for
/// ever tells its last round apart from those before.
pub fn round(stream: &Stream, used: u64) -> Option<(usize, usize)> {
    let ways = [period(stream), inner_round(stream, used)];
    ways.into_iter().flatten().min_by_key(|(once, again)| once + again)
}

/// The round that takes most numbers before the last step of the stream, if the numbers after it go on with it. Takes time in
/// [`MOST_PLACES`], however long the stream is.
fn inner_round(stream: &Stream, used: u64) -> Option<(usize, usize)> {
    // Where it is not known how many numbers count, it is not known which must go on.
    if used == 0 {
        return None;
    }
    let rules = &stream.shape.rules;
    let (_, before_last) = rules.first()?.split_last()?;
    let mut most: Option<(usize, usize, usize, u64)> = None;
    let mut once = 0;
    for (at, item) in before_last.iter().enumerate() {
        // Nothing that comes after more numbers than are taken is a round that could be told.
        let Some(round) = length(stream, Runs::over(rules, &[Item { count: 1, ..*item }])) else { break };
        let covered = (round as u64).saturating_mul(item.count);
        if item.count > 1 && round > 0 && most.is_none_or(|(.., least)| covered >= least) {
            most = Some((at, once, round, covered));
        }
        let before = (once as u64).saturating_add(covered);
        match usize::try_from(before) {
            Ok(before) if before <= MOST_PLACES => once = before,
            _ => break,
        }
    }
    let (at, once, round, covered) = most?;
    let left = used.checked_sub(covered.saturating_add(once as u64))?;
    let left = usize::try_from(left).ok().filter(|left| *left <= MOST_PLACES)?;
    // From the last time it comes on.
    let mut rest = rules.clone();
    rest[0].drain(..at);
    rest[0][0].count = 1;
    let rest = Stream { terms: stream.terms.clone(), shape: Grammar { rules: rest }, blocks: Vec::new() };
    let known: Vec<Formula> = Formulas::new(&rest).take(round).collect();
    let mut after = Formulas::new(&rest).skip(round);
    let goes_on = known.len() == round && (0..left).all(|at| after.next() == Some(known[at % round]));
    goes_on.then_some((once, round))
}

/// A stream of values in this order, of which the first `once` come once and the others over and over; all of them are to
/// be told elsewhere. They are numbered as they first come.
pub fn in_order(order: &[u32], once: usize) -> Stream {
    let (once, again) = order.split_at(once);
    let mut once = once.to_vec();
    let mut again = shortest_round(again).to_vec();
    while !once.is_empty() && once.last() == again.last() {
        once.pop();
        again.rotate_right(1);
    }
    let mut start: Vec<Item> = Vec::new();
    for &term in &once {
        let symbol = Symbol::Terminal(term);
        match start.last_mut() {
            Some(last) if last.symbol == symbol => last.count += 1,
            _ => start.push(Item { symbol, count: 1 }),
        }
    }
    let mut rules = vec![start];
    if let [term] = again[..] {
        rules[0].push(Item { symbol: Symbol::Terminal(term), count: 1 });
    } else {
        rules[0].push(Item { symbol: Symbol::Rule(1), count: 1 });
        let mut folder = Folder::new();
        again.iter().for_each(|&term| folder.push(term));
        let after_start = |item: &Item| match item.symbol {
            Symbol::Rule(rule) => Item { symbol: Symbol::Rule(rule + 1), ..*item },
            Symbol::Terminal(_) => *item,
        };
        let folded = folder.into_grammar().rules;
        rules.extend(folded.iter().map(|rule| rule.iter().map(after_start).collect::<Vec<Item>>()));
    }
    let terms = order.iter().max().map_or(0, |most| *most as usize + 1);
    Stream { terms: vec![Term::Value(0); terms], shape: Grammar { rules }, blocks: Vec::new() }
}

/// How many of these come once if all that is known is these: what comes after them is free. The others are the last ones, over
/// and over, such that they and those before are the fewest.
pub fn before_round(order: &[u32]) -> usize {
    let mut best = (order.len(), order.len().saturating_sub(1));
    for again in 1..order.len() {
        let repeated = order.iter().rev().zip(order.iter().rev().skip(again));
        let repeats = repeated.take_while(|(here, before)| here == before).count();
        let once = order.len() - again - repeats;
        // A round that is not once whole is none.
        if repeats >= again && once + again < best.0 {
            best = (once + again, once);
        }
    }
    best.1
}

/// What comes over and over, once.
fn shortest_round(round: &[u32]) -> &[u32] {
    let repeats = |length: &usize| {
        round.len().is_multiple_of(*length) && round[*length..] == round[..round.len() - length]
    };
    let length = (1..=round.len()).find(repeats).unwrap_or(0);
    &round[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_becomes_a_stream() {
        for (order, once) in [
            (&[0][..], 0),
            (&[0, 1, 2], 0),
            (&[0, 1, 2, 0], 1),
            (&[0, 0, 1, 1, 2, 3, 2, 3], 4),
            (&[0, 1, 0, 1, 0, 1], 5),
            (&[0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 0, 1, 2, 3], 3),
        ] {
            let stream = in_order(order, once);
            stream.validate().unwrap();
            let told = with_numbers(&stream, |place, _| place.into());
            let endless = order.iter().chain(order[once..].iter().cycle()).map(|&term| i64::from(term));
            let length = 3 * order.len();
            assert_eq!(
                told.iter().take(length).collect::<Vec<_>>(),
                endless.take(length).collect::<Vec<_>>(),
                "{order:?}"
            );
        }
    }

    #[test]
    fn what_comes_again_until_the_end_is_a_round() {
        for (order, once) in [
            (&[][..], 0),
            (&[0], 0),
            (&[0, 1, 2], 2),
            (&[0, 1, 2, 0, 1, 2], 0),
            (&[0, 1, 2, 0, 1, 2, 0], 0),
            (&[3, 0, 1, 2, 0, 1, 2, 0], 1),
            (&[0, 1, 2, 3, 3], 3),
            // Not twice.
            (&[0, 1, 2, 3, 0, 1, 2], 6),
        ] {
            assert_eq!(before_round(order), once, "{order:?}");
        }
    }

    #[test]
    fn what_counts_may_be_rounds_where_the_stream_ends_otherwise() {
        let fold = |numbers: &[i64]| {
            let mut folder = crate::stream::Folder::new();
            numbers.iter().for_each(|number| folder.push(*number));
            folder.finish()
        };
        // What the last round ends with goes on for ever, so that round is told apart.
        let end = [[9; 5], [8; 5]].concat().repeat(3);
        let one = [&[3, 1, 4][..], &end].concat();
        let stream = fold(&one.repeat(6));
        assert_eq!(period(&stream), Some((5 * 33 + 3, 10)));
        assert_eq!(round(&stream, 6 * 33), Some((0, 33)));
        assert_eq!(round(&stream, 6 * 33 - 5), Some((0, 33)));
        // Another number more, and nothing is known of how many count.
        assert_eq!(round(&stream, 6 * 33 + 1), period(&stream));
        assert_eq!(round(&stream, 0), period(&stream));
        let late = [&[7, 7, 8][..], &one.repeat(6)].concat();
        assert_eq!(round(&fold(&late), 3 + 6 * 33), Some((3, 33)));
        let other = [&one.repeat(6)[..], &[5, 6]].concat();
        assert_eq!(round(&fold(&other), 6 * 33 + 2), period(&fold(&other)));
    }

    #[test]
    fn a_round_that_began_early_is_the_same_round() {
        assert_eq!(in_order(&[0, 1, 2, 0], 1), in_order(&[0, 1, 2], 0));
        assert_eq!(in_order(&[0, 1, 0, 1, 0], 3), in_order(&[0, 1], 0));
    }
}
