//! Streams as plain rows of numbers, for those who write many of them down together.

use std::collections::HashMap;

use super::{Block, MIN_STRIDE, Stream, Term};
use crate::entropy::LONGEST;
use crate::grammar::{Grammar, Item, Symbol, bottom_up};

/// Longer rows are packed, so that they take no more memory than they need.
const SHORT: usize = 512;

/// A stream's numbers up to where it repeats, and how it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flat {
    /// All of them, once.
    pub numbers: Vec<i64>,
    /// The last so many come over and over. If it is 0, the stream goes on as a stride: each number is as far from the one
    /// before as the last is from the one before it.
    pub tail: usize,
}

impl Stream {
    /// The same as a row of numbers. `None` if they are more than `most`, or running sums or rows, which are a shape.
    pub fn flat(&self, most: usize) -> Option<Flat> {
        if self.blocks.iter().any(|block| !matches!(block, Block::Packed { .. })) {
            return None;
        }
        let lengths = self.lengths_of_rules()?;
        let last = self.split().1?;
        let one = match last.symbol {
            Symbol::Rule(rule) => *lengths.get(rule as usize)?,
            Symbol::Terminal(t) => self.term_len(self.terms.get(t as usize)?),
        };
        let all = usize::try_from(*lengths.first()?).ok().filter(|all| *all <= most)?;
        let numbers: Vec<i64> = self.iter().take(all).collect();
        let tail = if self.endless(last).is_some() { 0 } else { usize::try_from(one).ok()? };
        (numbers.len() == all && tail <= all).then_some(Flat { numbers, tail })
    }

    /// How many numbers each rule has.
    fn lengths_of_rules(&self) -> Option<Vec<u64>> {
        let mut lengths = vec![0u64; self.shape.rules.len()];
        for rule in bottom_up(&self.shape.rules, 0..self.shape.rules.len() as u32) {
            for item in &self.shape.rules[rule as usize] {
                let one = match item.symbol {
                    Symbol::Rule(inner) => *lengths.get(inner as usize)?,
                    Symbol::Terminal(t) => self.term_len(self.terms.get(t as usize)?),
                };
                let more = item.count.checked_mul(one)?;
                lengths[rule as usize] = lengths[rule as usize].checked_add(more)?;
            }
        }
        Some(lengths)
    }
}

impl Flat {
    /// The stream with these numbers; `None` if there is none.
    pub fn stream(&self) -> Option<Stream> {
        let end = self.numbers.len().checked_sub(self.tail.max(if self.tail == 0 { 3 } else { 1 }))?;
        let (before, last) = self.numbers.split_at(end);
        let mut made = Making::default();
        let mut start = Vec::new();
        if before.len() > SHORT {
            before.chunks(LONGEST).for_each(|numbers| made.pack(numbers, &mut start));
        } else {
            made.values(before, &mut start);
        }
        match (self.tail, last) {
            (0, &[first, second, third]) => {
                let step = second.wrapping_sub(first);
                if step == 0 || third.wrapping_sub(second) != step {
                    return None;
                }
                let stride = made.term(Term::Stride { start: first, step, count: MIN_STRIDE });
                start.push(Item { symbol: stride, count: 1 });
            }
            (1, &[value]) => made.values(&[value], &mut start),
            _ if last.len() > LONGEST => return None,
            _ if last.len() > SHORT => made.pack(last, &mut start),
            _ => {
                let mut rule = Vec::new();
                made.values(last, &mut rule);
                made.rules.push(rule);
                start.push(Item { symbol: Symbol::Rule(1), count: 1 });
            }
        }
        made.rules.insert(0, start);
        Some(Stream { terms: made.terms, shape: Grammar { rules: made.rules }, blocks: made.blocks })
    }
}

#[derive(Default)]
struct Making {
    terms: Vec<Term>,
    known: HashMap<i64, u32>,
    blocks: Vec<Block>,
    /// Beside the start.
    rules: Vec<Vec<Item>>,
}

impl Making {
    fn term(&mut self, term: Term) -> Symbol {
        self.terms.push(term);
        Symbol::Terminal(self.terms.len() as u32 - 1)
    }

    fn values(&mut self, numbers: &[i64], items: &mut Vec<Item>) {
        for &number in numbers {
            let term = match self.known.get(&number) {
                Some(&term) => Symbol::Terminal(term),
                None => {
                    self.known.insert(number, self.terms.len() as u32);
                    self.term(Term::Value(number))
                }
            };
            match items.last_mut() {
                Some(last) if last.symbol == term => last.count += 1,
                _ => items.push(Item { symbol: term, count: 1 }),
            }
        }
    }

    fn pack(&mut self, numbers: &[i64], items: &mut Vec<Item>) {
        let mut runs: Vec<(i64, u64)> = Vec::new();
        for &number in numbers {
            match runs.last_mut() {
                Some((last, times)) if *last == number => *times += 1,
                _ => runs.push((number, 1)),
            }
        }
        self.blocks.push(Block::pack(&runs));
        let term = self.term(Term::Block(self.blocks.len() as u32 - 1));
        items.push(Item { symbol: term, count: 1 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Folder;

    fn folded(numbers: &[i64]) -> Stream {
        let mut folder = Folder::new();
        numbers.iter().for_each(|&number| folder.push(number));
        folder.finish()
    }

    /// Numbers without a shape.
    fn drawn(count: usize, kinds: u64, seed: u64) -> Vec<i64> {
        let mut x = seed;
        let mut draw = || {
            x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (x >> 33) % kinds
        };
        (0..count).map(|_| draw() as i64).collect()
    }

    #[track_caller]
    fn check(stream: &Stream) {
        let flat = stream.flat(1 << 20).unwrap();
        let again = flat.stream().unwrap();
        again.validate().unwrap();
        let more = flat.numbers.len() * 2 + 100;
        assert!(stream.iter().take(more).eq(again.iter().take(more)));
        assert_eq!(again.flat(1 << 20), Some(flat));
    }

    #[test]
    fn what_is_flat_and_whole_again_is_the_same() {
        for seed in 0..40 {
            for (count, kinds) in [(1, 5), (3, 2), (40, 3), (128, 17), (700, 7), (2048, 9), (12_000, 50)] {
                check(&folded(&drawn(count, kinds, seed)));
            }
        }
        for numbers in [&[1, 2, 3][..], &[5, 9, 1, 2, 3, 4], &[7, 7, 7], &[1, 2, 1, 2, 1, 2], &[0]] {
            check(&folded(numbers));
        }
    }

    #[test]
    fn what_is_no_row_of_numbers_is_none() {
        let nested: Vec<i64> = (0..400).map(|at| at / 3 * 100 + at % 3).collect();
        assert_eq!(folded(&nested).flat(1 << 20), None);
        assert_eq!(folded(&drawn(100, 9, 1)).flat(99), None);
        assert_eq!(Flat { numbers: vec![1, 2, 4], tail: 0 }.stream(), None);
        assert_eq!(Flat { numbers: vec![1, 1, 1], tail: 0 }.stream(), None);
        assert_eq!(Flat { numbers: vec![1, 2], tail: 0 }.stream(), None);
        assert_eq!(Flat { numbers: vec![1, 2], tail: 3 }.stream(), None);
        assert_eq!(Flat { numbers: vec![], tail: 1 }.stream(), None);
    }
}
