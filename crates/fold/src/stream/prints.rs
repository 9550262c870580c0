//! Where two streams differ, without going through what they have in common.

use super::block::climb;
use super::rows::MOST_ROWS;
use super::summary::{Join, of_first, of_rules, summary};
use super::{Block, Stream, Term};
use crate::print::{Print, Rising, first_difference};

/// Numbers that wrap have no print in closed form: so many are looked at one by one, more are compared as they are told.
const MOST_WALKED: u64 = 1 << 20;

/// A stream with the prints of its parts.
struct Prints<'a> {
    stream: &'a Stream,
    terms: Vec<Print>,
    rules: Vec<Print>,
}

impl<'a> Prints<'a> {
    fn new(stream: &'a Stream) -> Prints<'a> {
        let terms = stream.terms.iter().map(|term| of_term(stream, term, stream.term_len(term)));
        let terms: Vec<Print> = terms.collect();
        let rules = of_rules(&stream.shape.rules, |t| terms.get(t as usize).copied().unwrap_or_default());
        Prints { stream, terms, rules }
    }

    /// Of the first `n` numbers.
    fn first(&self, n: u64) -> Print {
        let part = |t: u32, n: u64| match self.stream.terms.get(t as usize) {
            Some(term) => of_term(self.stream, term, n),
            None => Print::default(),
        };
        let endless = |t: u32, n: u64| {
            let item = crate::grammar::Item { symbol: crate::grammar::Symbol::Terminal(t), count: 1 };
            self.stream.endless(item).map(|_| part(t, n))
        };
        let whole = |t: u32| self.terms.get(t as usize).copied().unwrap_or_default();
        of_first(&self.stream.shape.rules, &self.rules, n, whole, part, endless)
    }
}

fn of_term(stream: &Stream, term: &Term, n: u64) -> Print {
    match *term {
        Term::Value(value) => Print::of(value).times(n),
        Term::Stride { start, step, .. } => progression(start, step, n),
        Term::Block(block) => stream.block(block).map(|block| of_block(block, n)).unwrap_or_default(),
    }
}

fn progression(start: i64, step: i64, n: u64) -> Print {
    let last = i128::from(start) + i128::from(n.saturating_sub(1)) * i128::from(step);
    if i64::try_from(last).is_ok() {
        return Print::progression(start, step, n);
    }
    if n > MOST_WALKED {
        return Print::of_words(&[0, start as u64, step as u64, n], n);
    }
    let numbers = (0..n as i64).map(|i| Print::of(start.wrapping_add(step.wrapping_mul(i))));
    numbers.fold(Print::default(), Print::then)
}

fn of_block(block: &Block, n: u64) -> Print {
    match block {
        Block::Packed { .. } => {
            let mut left = n;
            block.unpack().into_iter().fold(Print::default(), |all, (value, count)| {
                let taken = count.min(left);
                left -= taken;
                all.then(Print::of(value).times(taken))
            })
        }
        Block::Running { steps, .. } if climb(steps, n).summary().is_some() => {
            let whole = |t: u32| match steps.terms.get(t as usize) {
                Some(&Term::Value(step)) => Rising::of(step),
                _ => Rising::default(),
            };
            summary(&steps.shape.rules, n, whole, |_, _| Rising::default(), |_, _| None).print()
        }
        Block::Running { steps, .. } if n <= MOST_WALKED => {
            let mut sum = 0i64;
            let numbers = steps.iter().take(n as usize).map(|step| {
                sum = sum.wrapping_add(step);
                Print::of(sum)
            });
            numbers.fold(Print::default(), Print::then)
        }
        Block::Running { steps, .. } => {
            // Equal steps give equal sums.
            Print::of_words(&[1, as_word(&Prints::new(steps).first(n)), n], n)
        }
        Block::Rows { rows, .. } => {
            let mut all = Print::default();
            for (start, count) in rows.starts.iter().zip(rows.counts.iter()).take(MOST_ROWS as usize) {
                let left = n - all.len();
                if left == 0 {
                    return all;
                }
                let count = u64::try_from(count).unwrap_or(0).max(1).min(left);
                all = all.then(progression(start, rows.step, count));
            }
            if all.len() == n {
                return all;
            }
            let (starts, counts) = (Prints::new(&rows.starts).first(n), Prints::new(&rows.counts).first(n));
            Print::of_words(&[2, rows.step as u64, as_word(&starts), as_word(&counts), n], n)
        }
    }
}

/// A print as one word.
fn as_word(print: &Print) -> u64 {
    crate::xxh64(format!("{print:?}").as_bytes(), 0)
}

impl Stream {
    /// The first place at which two streams differ; `None` if their first `n` numbers are equal. Takes time in the size of the
    /// streams. (Where very many numbers wrap at 2^64 and are told in two ways, they may be equal from there on
    /// all the same; all before are.)
    pub fn first_difference(&self, other: &Stream, n: u64) -> Option<u64> {
        if n == 0 || self == other {
            return None;
        }
        if let (Some(a), Some(b)) = (self.as_constant(), other.as_constant()) {
            return (a != b).then_some(0);
        }
        let (a, b) = (Prints::new(self), Prints::new(other));
        let place = first_difference(n, |n| a.first(n), |n| b.first(n))?;
        let pairs = self.iter_from(place).zip(other.iter_from(place));
        let left = usize::try_from((n - place).min(MOST_WALKED)).unwrap_or(usize::MAX);
        let more = pairs.take(left).position(|(a, b)| a != b);
        match more {
            Some(more) => Some(place + more as u64),
            None if n - place <= MOST_WALKED => None,
            None => Some(place),
        }
    }

    /// All places at which the first `n` numbers differ; `None` where there are more than `most`, or finding them would take
    /// more than some million steps.
    pub fn differences(&self, other: &Stream, n: u64, most: usize) -> Option<Vec<u64>> {
        const MOST_STEPS: usize = 1 << 24;
        let mut places = Vec::new();
        if n == 0 || self == other {
            return Some(places);
        }
        let (a, b) = (Prints::new(self), Prints::new(other));
        let step = 1 + self.size() + other.size();
        let mut steps = 0;
        let whole = (a.first(n), b.first(n));
        // Stretches that differ, the first one last: from where to where, and the prints of all before both ends.
        let mut open = vec![(0, n, (Print::default(), Print::default()), whole)];
        while let Some((from, to, before, after)) = open.pop() {
            if after.0.without(before.0) == after.1.without(before.1) {
                continue;
            }
            steps += step;
            if places.len() >= most || steps > MOST_STEPS {
                return None;
            }
            if to - from == 1 {
                if self.iter_from(from).next() == other.iter_from(from).next() {
                    return None; // It is told in two ways.
                }
                places.push(from);
                continue;
            }
            let middle = from + (to - from) / 2;
            let there = (a.first(middle), b.first(middle));
            open.push((middle, to, there, after));
            open.push((from, middle, before, there));
        }
        Some(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Folder;
    use fastrand::Rng;

    fn fold(values: &[i64]) -> Stream {
        let mut folder = Folder::new();
        values.iter().for_each(|&value| folder.push(value));
        folder.finish()
    }

    /// Numbers as programs have them: constants, strides, nested strides, rows, noise, and such as wrap.
    fn numbers(random: &mut Rng, limit: usize) -> Vec<i64> {
        let mut out: Vec<i64> = Vec::new();
        while out.len() < limit {
            let (start, step) = (random.u64(..50) as i64 - 25, random.u64(..9) as i64 - 4);
            let n = 1 + random.u64(..40) as i64;
            match random.u64(..8) {
                0 => out.extend(std::iter::repeat_n(start, n as usize)),
                1 => out.extend((0..n).map(|i| start + step * i)),
                2 => out.extend((0..n).flat_map(|i| (0..5).map(move |j| start + 100 * i + step * j))),
                3 => out.extend((0..n).flat_map(|i| (0..=i).map(move |j| 10 * i + j))),
                4 => out.extend((0..20 * n).map(|_| random.u64(..) as i64 >> 50)),
                5 => out.extend((0..n).map(|i| i.wrapping_mul(i64::MAX / 3))),
                6 => {
                    let mut sum = start;
                    out.extend((0..n).flat_map(|_| [1, 1, 1 << 62]).map(|step| {
                        sum = sum.wrapping_add(step);
                        sum
                    }));
                }
                _ => {
                    let block: Vec<i64> = (0..random.u64(..9)).map(|_| random.u64(..4) as i64).collect();
                    out.extend(block.repeat(n as usize));
                }
            }
        }
        out.truncate(limit);
        out
    }

    #[test]
    fn differences_are_found_where_they_are() {
        let mut random = Rng::with_seed(77);
        for round in 0..150 {
            let length = 1 + random.u64(..3000) as usize;
            let values = numbers(&mut random, length);
            let mut other = values.clone();
            for _ in 0..random.u64(..4) {
                let at = random.u64(..length as u64) as usize;
                other[at] = if random.u64(..3) == 0 { random.u64(..) as i64 } else { other[at] ^ 1 };
            }
            let n = random.u64(..length as u64 + 1);
            let places = (0..n).zip(values.iter().zip(&other)).filter(|(_, (a, b))| a != b);
            let places: Vec<u64> = places.map(|(at, _)| at).collect();
            let (a, b) = (fold(&values), fold(&other));
            assert_eq!(a.first_difference(&b, n), places.first().copied(), "{round}");
            assert_eq!(a.differences(&b, n, 9), Some(places), "{round}");
        }
    }

    #[test]
    fn the_same_numbers_in_other_words_are_equal() {
        let mut random = Rng::with_seed(5);
        for round in 0..80 {
            let length = 2 + random.u64(..2000) as usize;
            let values = numbers(&mut random, length);
            let folded = fold(&values);
            // Values without any shape, and what comes after them is another thing.
            let item = |t| crate::grammar::Item { symbol: crate::grammar::Symbol::Terminal(t), count: 1 };
            let plain = Stream {
                terms: values.iter().map(|value| Term::Value(*value)).chain([Term::Value(12345)]).collect(),
                shape: crate::grammar::Grammar { rules: vec![(0..=length as u32).map(item).collect()] },
                blocks: Vec::new(),
            };
            assert_eq!(folded.first_difference(&plain, length as u64), None, "{round}");
            assert_eq!(plain.differences(&folded, length as u64, 1), Some(Vec::new()), "{round}");
        }
    }

    #[test]
    fn what_is_endless_costs_no_more() {
        let stride = |start: i64| fold(&(0..9).map(|i| start + 8 * i).collect::<Vec<i64>>());
        assert_eq!(stride(0).first_difference(&stride(0), u64::MAX), None);
        assert_eq!(stride(0).first_difference(&stride(8), 1 << 40), Some(0));
        let (mut a, mut b) = (Folder::new(), Folder::new());
        for i in 0..100_000 {
            a.push(i % 7);
            b.push(if i == 77_777 { 9 } else { i % 7 });
        }
        let (a, b) = (a.finish(), b.finish());
        assert_eq!(a.first_difference(&b, 100_000), Some(77_777));
        assert_eq!(a.differences(&b, 100_000, 4), Some(vec![77_777]));
        assert_eq!(a.first_difference(&b, 77_777), None);
    }
}
