//! Lines of points that are cut into pieces, one for each rank along a side. Where the line does not divide, the first pieces are
//! one point longer.

use std::collections::BTreeSet;

use crate::place::{Place, Quantity, Turn};

/// A number of a piece: `scale * piece + constant`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut {
    pub scale: i64,
    pub constant: i64,
    /// How many points the line has, at least and at most. All of it must say the same.
    pub line: (i64, i64),
    pub at: Whose,
    pub parts: Quantity,
}

/// Whose piece of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    First,
    Last,
    At(Quantity),
}

impl Whose {
    pub fn of(self, parts: i64, place: &Place, turn: &Turn) -> Option<i64> {
        match self {
            Whose::First => Some(0),
            Whose::Last => Some(parts - 1),
            Whose::At(quantity) => quantity.of(place, turn),
        }
    }
}

/// How many points piece `at` of so many has.
pub fn piece(line: i64, parts: i64, at: i64) -> i64 {
    (line - at + parts - 1).div_euclid(parts)
}

/// How long a line is of which a piece has so many points, at least and at most.
fn lines(piece: i64, parts: i64, at: i64) -> Option<(i64, i64)> {
    let most = piece.checked_mul(parts)?.checked_add(at)?;
    Some((most - parts + 1, most))
}

impl Cut {
    /// Nothing where a piece would be empty.
    pub fn of(&self, place: &Place, turn: &Turn) -> Option<i64> {
        let parts = self.parts.of(place, turn).filter(|parts| *parts > 0)?;
        let points = self.points(parts, self.at.of(parts, place, turn)?)?;
        points.checked_mul(self.scale)?.checked_add(self.constant)
    }

    fn points(&self, parts: i64, at: i64) -> Option<i64> {
        let (low, high) = self.line;
        let points = piece(low, parts, at);
        (low >= parts && points == piece(high, parts, at)).then_some(points)
    }
}

/// What was seen of one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// In which trace.
    pub input: usize,
    pub parts: i64,
    pub at: i64,
    pub value: i64,
}

/// Whether more is known than a law with so many free numbers takes, and as much without any one of the traces. So each trace
/// could have shown that the law is wrong.
pub fn is_held(known: impl Iterator<Item = (usize, [i64; 2])> + Clone, free: usize) -> bool {
    let all: BTreeSet<[i64; 2]> = known.clone().map(|(_, point)| point).collect();
    let inputs: BTreeSet<usize> = known.clone().map(|(input, _)| input).collect();
    let without = |out: usize| {
        let others = known.clone().filter(|(input, _)| *input != out);
        others.map(|(_, point)| point).collect::<BTreeSet<_>>().len()
    };
    all.len() > free && inputs.into_iter().all(|input| without(input) >= free)
}

/// The same of pieces. Where someone lies is no number of points, so none is negative.
fn held(seen: &[Seen], free: usize) -> bool {
    seen.iter().all(|seen| seen.value > 0)
        && is_held(seen.iter().map(|seen| (seen.input, [seen.parts, seen.value])), free)
}

/// So many lengths of a line are tried.
const MOST_LENGTHS: i64 = 1 << 10;

/// All ways to cut a line that give what was seen, with few free numbers first.
pub fn ways(seen: &[Seen], (at, parts): (Whose, Quantity)) -> Vec<Cut> {
    let mut found = Vec::new();
    let cut = |scale: i64, constant: i64, line: (i64, i64)| Cut { scale, constant, line, at, parts };
    let (Some(few), Some(many)) =
        (seen.iter().min_by_key(|seen| seen.parts), seen.iter().max_by_key(|seen| seen.parts))
    else {
        return found;
    };
    if few.parts == many.parts || few.parts < 1 || few.value <= many.value || !held(seen, 2) {
        return found;
    }
    let all = |divides: &dyn Fn(&Seen) -> i64| seen.iter().fold(0, |d, seen| gcd(d, divides(seen)));
    let step = step(seen);
    for scale in scales(all(&|seen| seen.value), step) {
        let ranges = seen.iter().map(|seen| lines(seen.value / scale, seen.parts, seen.at));
        let join = |known: (i64, i64), more: Option<(i64, i64)>| {
            let (low, high) = (known.0.max(more?.0), known.1.min(more?.1));
            (low <= high).then_some((low, high))
        };
        let line = { ranges }.try_fold((i64::MIN, i64::MAX), join);
        found.extend(line.filter(|line| line.0 >= many.parts).map(|line| cut(scale, 0, line)));
    }
    if !held(seen, 3) {
        return found;
    }
    // With a constant the line is as long as the pieces differ.
    for scale in scales(all(&|seen| seen.value - few.value), step) {
        let by = (few.value - many.value) / scale;
        let long =
            |by: i64| Some(by.checked_mul(few.parts)?.checked_mul(many.parts)? / (many.parts - few.parts));
        let (Some(low), Some(high)) = (long(by - 2), long(by + 2)) else { continue };
        let low = low.max(many.parts);
        for line in (low..=high.min(low + MOST_LENGTHS)).filter(|_| high - low < MOST_LENGTHS) {
            let constant = few.value - scale * piece(line, few.parts, few.at);
            let fits = |seen: &Seen| scale * piece(line, seen.parts, seen.at) + constant == seen.value;
            if constant != 0 && seen.iter().all(fits) {
                found.push(cut(scale, constant, (line, line)));
            }
        }
    }
    found
}

/// A number of the pieces of a line that is known already.
pub fn way(seen: &[Seen], known: &Cut) -> Option<Cut> {
    let points = |seen: &Seen| known.points(seen.parts, seen.at);
    let first = *seen.first()?;
    let other = seen.iter().find(|seen| seen.value != first.value)?;
    let (from, to) = (points(&first)?, points(other)?);
    if from == to || (other.value - first.value) % (to - from) != 0 {
        return None;
    }
    let scale = (other.value - first.value) / (to - from);
    let constant = first.value - scale * from;
    let fits = |seen: &Seen| points(seen).is_some_and(|points| scale * points + constant == seen.value);
    let free = 1 + usize::from(constant != 0);
    (scale > 0 && seen.iter().all(fits) && held(seen, free)).then_some(Cut { scale, constant, ..*known })
}

/// By how much numbers of the same line differ that is cut into as many parts: pieces differ by one point. `Err` where they
/// differ by more than one.
fn step(seen: &[Seen]) -> Result<Option<i64>, ()> {
    let mut step = None;
    for (n, one) in seen.iter().enumerate() {
        for other in seen[n + 1..].iter().filter(|other| other.parts == one.parts && other.value != one.value)
        {
            let by = (one.value - other.value).abs();
            if *step.get_or_insert(by) != by {
                return Err(());
            }
        }
    }
    Ok(step)
}

/// What a point may count for, smallest first.
fn scales(divisor: i64, step: Result<Option<i64>, ()>) -> Vec<i64> {
    let divides = |scale: i64| scale > 0 && divisor % scale == 0;
    match step {
        Err(()) => Vec::new(),
        Ok(Some(step)) => Some(step).filter(|step| divides(*step)).into_iter().collect(),
        Ok(None) => {
            let small = (1..=divisor.isqrt().min(1 << 16)).filter(|scale| divides(*scale));
            let both: BTreeSet<i64> = small.flat_map(|scale| [scale, divisor / scale]).collect();
            both.into_iter().collect()
        }
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOSE: (Whose, Quantity) = (Whose::At(Quantity::Rank), Quantity::Ranks);

    fn seen(parts: &[i64], value: impl Fn(i64, i64) -> i64) -> Vec<Seen> {
        let of = |(input, parts): (usize, &i64)| {
            let parts = *parts;
            (0..parts).map(|at| Seen { input, parts, at, value: value(parts, at) }).collect::<Vec<_>>()
        };
        parts.iter().enumerate().flat_map(of).collect()
    }

    fn check(parts: &[i64], value: impl Fn(i64, i64) -> i64, expected: &[(i64, i64, (i64, i64))]) {
        let ways = ways(&seen(parts, value), WHOSE);
        let found: Vec<_> = ways.into_iter().map(|cut| (cut.scale, cut.constant, cut.line)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_first_pieces_are_longer() {
        assert_eq!([0, 1, 2, 3].map(|at| piece(33, 4, at)), [9, 8, 8, 8]);
        assert_eq!([0, 4].map(|at| piece(24, 5, at)), [5, 4]);
    }

    #[test]
    fn a_remainder_says_what_a_point_counts_for() {
        check(&[4, 5, 6], |parts, at| 10 * piece(33, parts, at), &[(10, 0, (33, 33))]);
        check(&[4, 5, 6], |parts, at| 2 * piece(33, parts, at) + 4, &[(2, 4, (33, 33))]);
    }

    #[test]
    fn without_a_remainder_a_point_may_count_for_anything() {
        let all = [1, 2, 3, 6].map(|scale| (scale, 0, (72 / scale, 72 / scale)));
        check(&[2, 3, 4], |parts, _| 72 / parts, &all);
    }

    #[test]
    fn as_many_points_as_free_numbers_say_nothing() {
        check(&[2, 3], |parts, _| 24 / parts, &[]);
    }

    #[test]
    fn a_line_that_is_known() {
        let line = Cut { scale: 5, constant: 0, line: (24, 24), at: WHOSE.0, parts: WHOSE.1 };
        let seen = seen(&[2, 3, 4], |parts, at| 2 * piece(24, parts, at) + 4);
        assert_eq!(way(&seen, &line), Some(Cut { scale: 2, constant: 4, ..line }));
        assert_eq!(way(&seen[..5], &line), None);
    }
}
