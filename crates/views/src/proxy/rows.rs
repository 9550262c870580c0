//! Numbers that change from call to call, as a table of C: what repeats is there once.

use std::collections::HashMap;
use std::fmt;

use refrain_fold::grammar::{Folder, Item, Symbol};

use super::fit::{is_named, literal};

/// `start, start + step, ...`, so many.
type Term = (i64, i64, u64);

/// Fewer numbers than this make no stride.
const LEAST: u64 = 3;

/// More numbers than these are folded in pieces, so that no more of them are held.
fn terms(numbers: impl Iterator<Item = i64>, mut add: impl FnMut(Term)) {
    let mut open: Option<Term> = None;
    for number in numbers {
        open = Some(match open {
            None => (number, 0, 1),
            Some((start, step, count)) => {
                let last = start.wrapping_add(step.wrapping_mul(count as i64 - 1));
                let next = number.wrapping_sub(last);
                let plain = !is_named(number) && !is_named(last);
                if step == next && (plain || step == 0) {
                    (start, step, count + 1)
                } else if count == 1 && plain {
                    (start, next, 2)
                } else if count < LEAST && step != 0 {
                    // Two numbers are no stride: the second may begin one.
                    add((start, 0, 1));
                    match plain {
                        true => (last, next, 2),
                        false => {
                            add((last, 0, 1));
                            (number, 0, 1)
                        }
                    }
                } else {
                    add((start, step, count));
                    (number, 0, 1)
                }
            }
        });
    }
    match open {
        Some((start, step, count)) if count < LEAST && step != 0 => {
            add((start, 0, 1));
            add((start.wrapping_add(step), 0, 1));
        }
        Some(term) => add(term),
        None => {}
    }
}

/// One row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// `start, start + step, ...`, so many.
    Numbers(i64, i64, u64),
    /// What stands from that row on to the next end, so many times.
    Again(usize, u64),
    End,
}

/// The macros of [`super::prelude::STREAMS`].
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Row::Numbers(value, _, 1) => write!(f, "N({})", literal(value)),
            Row::Numbers(value, 0, count) => write!(f, "X({}, {})", literal(value), literal(count as i64)),
            Row::Numbers(start, step, count) => {
                write!(f, "S({}, {}, {})", literal(start), literal(step), literal(count as i64))
            }
            Row::Again(row, times) => write!(f, "R({row}, {})", literal(times as i64)),
            Row::End => write!(f, "E"),
        }
    }
}

/// The rows of a table with these numbers.
pub(super) fn rows(numbers: impl Iterator<Item = i64>) -> Vec<Row> {
    let mut known: HashMap<Term, u32> = HashMap::new();
    let mut all: Vec<Term> = Vec::new();
    let mut folder = Folder::new();
    terms(numbers, |term| {
        let next = all.len() as u32;
        let number = *known.entry(term).or_insert(next);
        if number == next {
            all.push(term);
        }
        folder.push(number);
    });
    let rules = folder.finish().rules;
    // Each rule by itself, and a term that is repeated as a rule of its own.
    let mut bodies: Vec<Vec<Item>> = rules;
    let mut repeated: HashMap<u32, u32> = HashMap::new();
    for at in 0..bodies.len() {
        for k in 0..bodies[at].len() {
            let Item { symbol: Symbol::Terminal(t), count } = bodies[at][k] else { continue };
            if count > 1 && all[t as usize].1 != 0 {
                let next = bodies.len() as u32;
                let rule = *repeated.entry(t).or_insert(next);
                if rule == next {
                    bodies.push(vec![Item { symbol: Symbol::Terminal(t), count: 1 }]);
                }
                bodies[at][k] = Item { symbol: Symbol::Rule(rule), count };
            }
        }
    }
    let mut starts = Vec::with_capacity(bodies.len());
    let mut length = 0;
    for body in &bodies {
        starts.push(length);
        length += body.len() + 1;
    }
    let mut rows = Vec::with_capacity(length);
    for body in &bodies {
        for item in body {
            rows.push(match item.symbol {
                Symbol::Terminal(t) => {
                    let (start, step, count) = all[t as usize];
                    Row::Numbers(start, step, count.saturating_mul(item.count))
                }
                Symbol::Rule(rule) => Row::Again(starts[rule as usize], item.count),
            });
        }
        rows.push(Row::End);
    }
    rows
}

/// As C writes it.
pub(super) fn table(rows: &[Row]) -> String {
    super::fit::listed(rows.iter().map(ToString::to_string), "    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the program does it.
    fn walked(rows: &[Row], count: usize) -> Vec<i64> {
        let (mut out, mut stack, mut at, mut done) = (Vec::new(), vec![], 0, 0);
        while out.len() < count {
            match rows[at] {
                Row::Numbers(start, step, count) if done < count => {
                    out.push(start + step * done as i64);
                    done += 1;
                }
                Row::Numbers(..) => (at, done) = (at + 1, 0),
                Row::Again(row, times) => {
                    stack.push((at, times));
                    at = row;
                }
                Row::End => {
                    let Some((from, left)) = stack.pop() else { return out };
                    at = match (left > 1, rows[from]) {
                        (true, Row::Again(row, _)) => {
                            stack.push((from, left - 1));
                            row
                        }
                        _ => from + 1,
                    };
                }
            }
        }
        out
    }

    #[test]
    fn tables_give_back_the_numbers() {
        let random = (0..500i64).map(|i| i * i * 7919 % 101);
        let rounds = (0..900i64).map(|i| i % 9 * 4);
        let mixed = [5, 5, 1, 2, 4, 4, 4, 7, 9, 11, 13, 2, 1, 2, 4].into_iter();
        let all: [Vec<i64>; 4] = [random.collect(), rounds.collect(), mixed.collect(), vec![3, 4]];
        for numbers in all {
            let rows = rows(numbers.iter().copied());
            assert_eq!(walked(&rows, numbers.len()), numbers);
        }
        let rounds = rows((0..900i64).map(|i| i % 9 * 4));
        assert_eq!(table(&rounds), "R(2, 100), E, S(0, 4, 9), E");
    }
}
