//! From what was seen to an endless stream: which item goes on for ever, and the one way to write it down.

use super::{Block, MIN_STRIDE, Stream, Term};
use crate::grammar::{Grammar, Item, Renumber, Runs, Symbol, bottom_up};

/// How many of the last items are tried as the one that goes on. Longer tails are kept as they are.
const CANDIDATES: usize = 32;
/// How many runs of a tail are compared with what it may continue.
const COMPARED: usize = 1 << 16;

/// `start, start + step, ...`: a stretch of numbers (start, step, count).
pub(super) type Stretch = (i64, i64, u64);

impl Term {
    /// The term as a stretch; a value may stand several times in a row. A block is none.
    pub(super) fn run(&self, times: u64) -> Stretch {
        match *self {
            Term::Value(value) => (value, 0, times),
            Term::Stride { start, step, count } => (start, step, count),
            Term::Block(_) => (0, 0, 0),
        }
    }
}

/// Whether `whole` begins with the numbers of `part`; stretches are compared as such, however long they are.
pub(super) fn begins_with(
    mut whole: impl Iterator<Item = Stretch>,
    part: impl Iterator<Item = Stretch>,
) -> bool {
    let mut steps = 0;
    let mut theirs = (0, 0, 0);
    for mut ours in part {
        while ours.2 > 0 {
            if theirs.2 == 0 {
                match whole.next() {
                    Some(next) => theirs = next,
                    None => return false,
                }
            }
            let common = ours.2.min(theirs.2);
            steps += 1;
            if ours.0 != theirs.0 || common > 1 && ours.1 != theirs.1 || steps > COMPARED {
                return false;
            }
            advance(&mut ours, common);
            advance(&mut theirs, common);
        }
    }
    true
}

fn advance(stretch: &mut Stretch, by: u64) {
    stretch.0 = stretch.0.wrapping_add(stretch.1.wrapping_mul(by as i64));
    stretch.2 -= by;
}

/// The stretches of terms, each with how often it comes.
pub(super) fn stretches<'a>(
    terms: &'a [Term],
    runs: impl Iterator<Item = (u32, u64)> + 'a,
) -> impl Iterator<Item = Stretch> + 'a {
    runs.flat_map(|(t, count)| {
        let term = &terms[t as usize];
        let repeats = if matches!(term, Term::Value(_)) { 1 } else { count };
        (0..repeats).map(move |_| term.run(count))
    })
}

/// The first item of the start rule of which all that follows, with `held` behind it, is only another beginning.
pub(super) fn open_item(grammar: &Grammar, terms: &[Term], held: Option<Stretch>) -> Option<usize> {
    let start = grammar.rules.first()?;
    (start.len().saturating_sub(CANDIDATES)..start.len()).find(|&at| {
        let rest = &start[at + 1..];
        if rest.is_empty() && held.is_none() {
            return true;
        }
        let tail = stretches(terms, Runs::over(&grammar.rules, rest)).chain(held);
        match start[at].symbol {
            Symbol::Terminal(t) => match terms[t as usize] {
                Term::Value(_) => false,
                stride => begins_with([stride.run(1)].into_iter(), tail),
            },
            rule => begins_with(stretches(terms, Runs::of(&grammar.rules, rule)), tail),
        }
    })
}

/// Makes the last item endless: what `repeats` starts over and over, a stride that does not runs on.
pub(super) fn close(mut shape: Grammar, mut terms: Vec<Term>, blocks: Vec<Block>, repeats: bool) -> Stream {
    let known = terms.len() as u32;
    let count = shape.rules.len() as u32;
    let Some(last) = shape.rules[0].last_mut() else { return Stream::constant(0) };
    last.count = 1;
    let mut endless = None;
    if let Symbol::Terminal(t) = last.symbol
        && let Term::Stride { start, step, .. } = terms[t as usize]
    {
        if repeats {
            let once = *last;
            last.symbol = Symbol::Rule(count);
            shape.rules.push(vec![once]);
        } else {
            // A term of its own for now: it must not be joined with the same stride right before it, which ends.
            last.symbol = Symbol::Terminal(known);
            terms.push(terms[t as usize]);
            endless = Some((start, step));
        }
    }
    let mut rules = inline_single_uses(&shape.rules);
    if let Some((start, step)) = endless {
        let before = rules[0].iter().rev().nth(1).map(|item| item.symbol);
        let mut number = |count| {
            let term = Term::Stride { start, step, count };
            let same = terms[..known as usize].iter().position(|other| *other == term);
            terms[known as usize] = term;
            Symbol::Terminal(same.map_or(known, |same| same as u32))
        };
        let mut symbol = number(MIN_STRIDE);
        if before == Some(symbol) {
            symbol = number(MIN_STRIDE + 1);
        }
        if let Some(last) = rules[0].last_mut() {
            last.symbol = symbol;
        }
    }
    let mut stream = Stream { terms, blocks, shape: Grammar { rules } };
    stream.tidy_terms();
    stream
}

/// What was dropped at the end may have been the second use of a rule. The last item of the start stays a rule: it is
/// used for ever.
fn inline_single_uses(rules: &[Vec<Item>]) -> Vec<Vec<Item>> {
    let order = bottom_up(rules, [0]);
    let mut uses = vec![0u64; rules.len()];
    for item in order.iter().flat_map(|&rule| &rules[rule as usize]) {
        if let Symbol::Rule(r) = item.symbol {
            uses[r as usize] = uses[r as usize].saturating_add(item.count);
        }
    }
    if let Some(Symbol::Rule(last)) = rules[0].last().map(|item| item.symbol) {
        uses[last as usize] = uses[last as usize].saturating_add(1);
    }
    let mut bodies: Vec<Vec<Item>> = vec![Vec::new(); rules.len()];
    for &rule in &order {
        let mut body: Vec<Item> = Vec::with_capacity(rules[rule as usize].len());
        let mut push = |item: Item| match body.last_mut() {
            Some(last) if last.symbol == item.symbol => last.count += item.count,
            _ => body.push(item),
        };
        for item in &rules[rule as usize] {
            match item.symbol {
                Symbol::Rule(r) if uses[r as usize] == 1 => {
                    std::mem::take(&mut bodies[r as usize]).into_iter().for_each(&mut push)
                }
                _ => push(*item),
            }
        }
        bodies[rule as usize] = body;
    }
    if let Some(last) = bodies[0].last_mut() {
        last.count = 1;
    }
    Renumber::default().from(&bodies, 0)
}
