//! Many strides alike, one behind the other, as rows.
//!
//! What is gone over again and again (a matrix, row by row, for each row of another) is a round of strides: one term each,
//! although each is like the one before but for where it begins. Such terms become one block of rows, so that it takes as
//! much to tell for a large matrix as for a small one.

use super::rows::MOST_ROWS;
use super::{Block, Folder, Rows, Stream, Term};
use crate::grammar::{Item, Symbol};

/// Fewer are left as they are.
const FEWEST: usize = 8;

/// A row of a table: start, step, numbers, and how often it comes.
type Line = (i64, i64, u64, u64);

/// Lines from the first of `lines` on that are rows of one table: how many, how far they begin apart, and how much longer each
/// is.
fn table(lines: &[Option<Line>]) -> (usize, i64, i64) {
    let [Some(first), Some(second), ..] = lines else { return (1, 0, 0) };
    let apart = |a: &Line, b: &Line| (b.0.wrapping_sub(a.0), (b.2 as i64).wrapping_sub(a.2 as i64));
    let (distance, longer) = apart(first, second);
    let fits = |pair: &[Option<Line>]| match pair {
        [Some(a), Some(b)] => a.1 == b.1 && a.3 == b.3 && apart(a, b) == (distance, longer),
        _ => false,
    };
    (1 + lines.windows(2).take_while(|pair| fits(pair)).count(), distance, longer)
}

fn progression(start: i64, step: i64) -> Stream {
    if step == 0 {
        return Stream::constant(start);
    }
    let mut folder = Folder::new();
    (0..4).for_each(|i| folder.push(start.wrapping_add(step.wrapping_mul(i))));
    folder.finish()
}

impl Stream {
    /// The same numbers, with rows in the place of many strides alike.
    pub(super) fn with_tables(mut self) -> Stream {
        if self.terms.len() < FEWEST {
            return self;
        }
        let mut found = false;
        for rule in 0..self.shape.rules.len() {
            let body = &self.shape.rules[rule];
            // The last item of the first rule goes on for ever.
            let finite = if rule == 0 { body.len().saturating_sub(1) } else { body.len() };
            let line = |item: &Item| match item.symbol {
                Symbol::Terminal(t) => match self.terms[t as usize] {
                    Term::Stride { start, step, count } => Some((start, step, count, item.count)),
                    _ => None,
                },
                Symbol::Rule(_) => None,
            };
            let lines: Vec<Option<Line>> = body[..finite].iter().map(line).collect();
            let (mut at, mut new) = (0, Vec::new());
            while at < finite {
                let (many, distance, longer) = table(&lines[at..]);
                let block = lines[at].filter(|_| many >= FEWEST);
                let block = block.and_then(|line| rows(line, many as u64, distance, longer));
                let Some(block) = block else {
                    new.push(body[at]);
                    at += 1;
                    continue;
                };
                let number = self.blocks.iter().position(|known| *known == block).unwrap_or_else(|| {
                    self.blocks.push(block);
                    self.blocks.len() - 1
                });
                let term = Term::Block(number as u32);
                let number = self.terms.iter().position(|known| *known == term).unwrap_or_else(|| {
                    self.terms.push(term);
                    self.terms.len() - 1
                });
                new.push(Item { symbol: Symbol::Terminal(number as u32), count: 1 });
                at += many;
                found = true;
            }
            new.extend_from_slice(&body[finite..]);
            self.shape.rules[rule] = new;
        }
        if found {
            self.tidy_terms();
        }
        self
    }
}

/// So many lines that begin at this distance, each so much longer than the one before.
fn rows((start, step, count, times): Line, many: u64, distance: i64, longer: i64) -> Option<Block> {
    let all = many.checked_mul(times).filter(|rows| *rows < MOST_ROWS)?;
    if longer != 0 && times > 1 {
        return None;
    }
    // A stride has one number at least, and so has the last.
    let last = (count as i64).checked_add(longer.checked_mul(many as i64 - 1)?)?;
    let sum = (i128::from(count) + i128::from(last)) * i128::from(all) / 2;
    let sum = u64::try_from(sum).ok().filter(|_| last > 0)?;
    let starts = match times {
        1 => progression(start, distance),
        _ => {
            let counts = Stream::constant(i64::try_from(times).ok()?);
            let rows = Rows { step: 0, starts: progression(start, distance), counts };
            Stream::of_block(Block::Rows { count: 0, rows: Box::new(rows) })
        }
    };
    let counts = progression(count as i64, longer);
    Some(Block::Rows { count: sum, rows: Box::new(Rows { step, starts, counts }) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of numbers that are told as they come: the same again, and terms.
    fn check(numbers: &[i64], most: usize) {
        let mut folder = Folder::new();
        numbers.iter().for_each(|number| folder.push(*number));
        let stream = folder.finish();
        stream.validate().unwrap();
        assert!(stream.iter().take(numbers.len()).eq(numbers.iter().copied()));
        for from in [1, numbers.len() / 3, numbers.len() / 2 + 7] {
            let rest = stream.iter_from(from as u64).take(numbers.len() - from);
            assert!(rest.eq(numbers[from..].iter().copied()), "from {from}");
        }
        let sum: i128 = numbers.iter().map(|number| i128::from(*number)).sum();
        assert_eq!(stream.sum(numbers.len() as u64), sum);
        assert!(stream.size() <= most, "{} of {stream:?}", stream.size());
    }

    #[test]
    fn a_matrix_that_is_gone_over_again_takes_as_much_for_any_size() {
        for size in [60i64, 130, 300] {
            let (rows, columns): (Vec<i64>, Vec<i64>) = (0..6)
                .flat_map(|i| (0..size).flat_map(move |j| (0..size).map(move |k| (i, j, k))))
                .map(|(i, j, k)| (8 * (i * size + k), 8 * (k * size + j)))
                .unzip();
            check(&rows, 60);
            check(&columns, 60);
        }
    }

    #[test]
    fn rows_that_are_repeated_and_triangles_that_are_too() {
        let rows: Vec<i64> = (0..40)
            .flat_map(|i| (0..30).flat_map(move |_| (0..100).map(move |k| 1000 * i + 4 * k)))
            .collect();
        check(&rows, 60);
        let triangle: Vec<i64> =
            (0..5).flat_map(|_| (0..80).flat_map(|i| (0..=i + 3).map(move |k| 4096 * i + 8 * k))).collect();
        check(&triangle, 80);
        let down: Vec<i64> = (0..5)
            .flat_map(|_| (0..80).rev().flat_map(|i| (0..=i + 3).map(move |k| 4096 * i + 8 * k)))
            .collect();
        check(&down, 80);
    }
}
