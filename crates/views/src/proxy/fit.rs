//! Numbers and conditions as C, where each rank has its own.

use std::collections::BTreeMap;
use std::fmt::Write;

use refrain_model::constant_by_id;

/// Numbers from here on upwards stand for constants of MPI, by id: no argument is as low.
const NAMED: i64 = i64::MIN / 2;

pub(super) fn named(id: u16) -> i64 {
    NAMED + i64::from(id)
}

/// Where a number does not matter: no constant has this id.
pub(super) const UNSET: i64 = NAMED + u16::MAX as i64;

pub(super) fn is_named(number: i64) -> bool {
    (NAMED..=NAMED + i64::from(u16::MAX)).contains(&number)
}

/// A number, or the name of the constant it stands for.
pub(super) fn literal(number: i64) -> String {
    match number {
        _ if is_named(number) => {
            let id = u16::try_from(number - NAMED).unwrap_or(0);
            constant_by_id(id).map_or_else(|| "0".to_owned(), |constant| constant.name.to_owned())
        }
        i64::MIN => "(-9223372036854775807LL - 1)".to_owned(),
        _ if i32::try_from(number).is_ok() => number.to_string(),
        _ => format!("{number}LL"),
    }
}

/// Text of C, and whether it says something of runs with another number of ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fit {
    pub text: String,
    pub any: bool,
}

impl Fit {
    fn new(text: String, any: bool) -> Fit {
        Fit { text, any }
    }
}

/// `rank + 3`, `rank`, `rank - 1`
fn shifted(by: i64) -> String {
    match by {
        0 => "rank".to_owned(),
        1.. => format!("rank + {}", literal(by)),
        _ => format!("rank - {}", literal(by.wrapping_neg())),
    }
}

/// `a * x + b`
fn affine(slope: i64, of: &str, offset: i64) -> String {
    // Quotients and remainders bind as strongly as products.
    let first = match (slope, of.contains(' ')) {
        (1, _) => of.to_owned(),
        (_, true) => format!("{} * ({of})", literal(slope)),
        (_, false) => format!("{} * {of}", literal(slope)),
    };
    match offset {
        0 => first,
        1.. => format!("{first} + {}", literal(offset)),
        _ => format!("{first} - {}", literal(offset.wrapping_neg())),
    }
}

/// Ranks and what each has, by rank. `None` where only a table would do.
pub(super) fn number(points: &[(u32, i64)], world: u32) -> Option<Fit> {
    let (_, first) = *points.first()?;
    if points.iter().all(|(_, value)| *value == first) {
        return Some(Fit::new(literal(first), true));
    }
    one_formula(points, world).or_else(|| piecewise(points, world, EXCEPTIONS))
}

/// One formula for all.
fn one_formula(points: &[(u32, i64)], world: u32) -> Option<Fit> {
    if points.iter().any(|(_, value)| is_named(*value)) {
        return None;
    }
    let all = |formula: &dyn Fn(i64) -> i64| points.iter().all(|(r, v)| formula(i64::from(*r)) == *v);
    let (rank, value) = (i64::from(points[0].0), points[0].1);
    let by = value.wrapping_sub(rank);
    if all(&|r| r.wrapping_add(by)) {
        return Some(Fit::new(shifted(by), true));
    }
    let size = i64::from(world);
    let around = by.rem_euclid(size);
    if all(&|r| (r + around) % size) {
        let text = match around == size - 1 {
            true => "(rank + size - 1) % size".to_owned(),
            false => format!("(rank + {around}) % size"),
        };
        return Some(Fit::new(text, true));
    }
    if all(&|r| size - 1 - r) {
        return Some(Fit::new("size - 1 - rank".to_owned(), true));
    }
    if all(&|r| r ^ rank ^ value) && (rank ^ value) > 0 {
        // With another number of ranks it may be none of them.
        return Some(Fit::new(format!("rank ^ {}", rank ^ value), false));
    }
    let second = points.get(1)?;
    let (dx, dy) = (i64::from(second.0) - rank, second.1.wrapping_sub(value));
    if dx != 0 && dy % dx == 0 {
        let slope = dy / dx;
        let offset = value.wrapping_sub(slope.wrapping_mul(rank));
        if all(&|r| slope.wrapping_mul(r).wrapping_add(offset)) {
            return Some(Fit::new(affine(slope, "rank", offset), points.len() > 2));
        }
    }
    if points.len() < 4 {
        return None;
    }
    // Rows and columns of a grid.
    for width in 2..size {
        if all(&|r| r % width + by - (rank % width - rank)) {
            let text = affine(1, &format!("rank % {width}"), by - (rank % width - rank));
            return Some(Fit::new(text, false));
        }
        let (row, of_row) = (rank / width, value);
        let other = points.iter().find(|(r, _)| i64::from(*r) / width != row);
        if let Some((r, v)) = other {
            let slope = (v - of_row) / (i64::from(*r) / width - row);
            let offset = of_row - slope * row;
            if all(&|r| slope * (r / width) + offset) {
                return Some(Fit::new(affine(slope, &format!("rank / {width}"), offset), false));
            }
        }
        // Around in a row of the grid, or in a column.
        for step in 1..width {
            if all(&|r| r / width * width + (r % width + step) % width) {
                let text = format!("rank / {width} * {width} + (rank % {width} + {step}) % {width}");
                return Some(Fit::new(text, false));
            }
        }
    }
    None
}

/// More of them within each other are better told by a table.
const EXCEPTIONS: u32 = 2;

/// One formula for some and another for the others, with so many exceptions at most.
fn piecewise(points: &[(u32, i64)], world: u32, most: u32) -> Option<Fit> {
    let most = most.checked_sub(1)?;
    let ranks: Vec<u32> = points.iter().map(|point| point.0).collect();
    let mut candidates: Vec<Vec<(u32, i64)>> = Vec::new();
    let mut by_value: BTreeMap<i64, Vec<(u32, i64)>> = BTreeMap::new();
    let mut by_shift: BTreeMap<i64, Vec<(u32, i64)>> = BTreeMap::new();
    for &(rank, value) in points {
        by_value.entry(value).or_default().push((rank, value));
        if !is_named(value) {
            by_shift.entry(value.wrapping_sub(i64::from(rank))).or_default().push((rank, value));
        }
    }
    candidates.extend(by_value.into_values());
    candidates.extend(by_shift.into_values().filter(|some| some.len() > 1));
    // Those with the most ranks first.
    candidates.sort_by_key(|some| std::cmp::Reverse(some.len()));
    for some in candidates.iter().take(8) {
        let rest: Vec<(u32, i64)> = points.iter().filter(|point| !some.contains(point)).copied().collect();
        let those: Vec<u32> = rest.iter().map(|point| point.0).collect();
        let Some(which) = condition(&those, &ranks, world) else { continue };
        let (Some(one), Some(other)) = (simple(some, world, 0), simple(&rest, world, most)) else { continue };
        let any = which.any && one.any && other.any;
        return Some(Fit::new(format!("{} ? {} : {}", which.text, other.text, one.text), any));
    }
    None
}

/// One formula, or one more exception.
fn simple(points: &[(u32, i64)], world: u32, most: u32) -> Option<Fit> {
    let (_, first) = *points.first()?;
    if points.iter().all(|(_, value)| *value == first) {
        return Some(Fit::new(literal(first), true));
    }
    if let Some(fit) = one_formula(points, world) {
        return Some(fit);
    }
    piecewise(points, world, most).map(|fit| Fit::new(format!("({})", fit.text), fit.any))
}

/// What is true of these ranks and of no others among `all`; both are sorted. `None` where only a table would do.
pub(super) fn condition(ranks: &[u32], all: &[u32], world: u32) -> Option<Fit> {
    let is = |rank: &u32| ranks.binary_search(rank).is_ok();
    let fits = |test: &dyn Fn(u32) -> bool| all.iter().all(|rank| test(*rank) == is(rank));
    if ranks.len() == all.len() {
        return Some(Fit::new("1".to_owned(), true));
    }
    let last = world.wrapping_sub(1);
    let named = |rank: u32| match rank == last && world > 1 && rank > 0 {
        true => ("size - 1".to_owned(), true),
        false => (rank.to_string(), rank == 0),
    };
    if let [rank] = *ranks {
        let (text, any) = named(rank);
        return Some(Fit::new(format!("rank == {text}"), any));
    }
    let others: Vec<u32> = all.iter().filter(|rank| !is(rank)).copied().collect();
    if let [rank] = *others {
        let (text, any) = named(rank);
        return Some(Fit::new(format!("rank != {text}"), any));
    }
    for width in 2..=world / 2 {
        let rest = ranks.first()? % width;
        if fits(&|rank| rank % width == rest) {
            return Some(Fit::new(format!("rank % {width} == {rest}"), width == 2));
        }
        let rest = others.first()? % width;
        if fits(&|rank| rank % width != rest) {
            return Some(Fit::new(format!("rank % {width} != {rest}"), width == 2));
        }
    }
    let (low, high) = (*ranks.first()?, *ranks.last()?);
    if fits(&|rank| rank <= high) {
        return Some(Fit::new(format!("rank < {}", high + 1), false));
    }
    if fits(&|rank| rank >= low) {
        return Some(Fit::new(format!("rank >= {low}"), low == 1));
    }
    if fits(&|rank| (low..=high).contains(&rank)) {
        let any = low == 1 && high + 1 == last;
        let end = if any { "size - 1".to_owned() } else { (high + 1).to_string() };
        return Some(Fit::new(format!("rank >= {low} && rank < {end}"), any));
    }
    for (a, b) in [(ranks, "||"), (&others[..], "&&")] {
        if let [one, other] = *a {
            let sign = if b == "||" { "==" } else { "!=" };
            let ((x, any), (y, more)) = (named(one), named(other));
            return Some(Fit::new(format!("rank {sign} {x} {b} rank {sign} {y}"), any && more));
        }
    }
    None
}

/// `1, 2, 3` in lines.
pub(super) fn listed(items: impl Iterator<Item = String>, indent: &str) -> String {
    let (mut out, mut width) = (String::new(), 0);
    for item in items {
        if !out.is_empty() {
            out.push(',');
            if width + item.len() + 2 > 110 {
                let _ = write!(out, "\n{indent}");
                width = indent.len();
            } else {
                out.push(' ');
                width += 2;
            }
        }
        width += item.len();
        out.push_str(&item);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[i64]) -> Vec<(u32, i64)> {
        (0u32..).zip(values.iter().copied()).collect()
    }

    #[track_caller]
    fn check(values: &[i64], text: &str, any: bool) {
        let fit = number(&points(values), values.len() as u32).unwrap();
        assert_eq!((fit.text.as_str(), fit.any), (text, any), "{values:?}");
    }

    #[test]
    fn numbers_of_ranks() {
        let null = named(refrain_model::constant("MPI_PROC_NULL").unwrap().id);
        check(&[7, 7, 7, 7], "7", true);
        check(&[1, 2, 3, 4], "rank + 1", true);
        check(&[1, 2, 3, 0], "(rank + 1) % size", true);
        check(&[3, 0, 1, 2], "(rank + size - 1) % size", true);
        check(&[1, 0, 3, 2], "rank ^ 1", false);
        check(&[3, 2, 1, 0], "size - 1 - rank", true);
        check(&[5, 15, 25, 35], "10 * rank + 5", true);
        check(&[null, 0, 1, 2], "rank == 0 ? MPI_PROC_NULL : rank - 1", true);
        check(&[1, 2, 3, null], "rank == size - 1 ? MPI_PROC_NULL : rank + 1", true);
        check(&[null, 0, null, 2], "rank % 2 == 1 ? rank - 1 : MPI_PROC_NULL", true);
        check(&[0, 0, 0, 1, 1, 1], "rank / 3", false);
        check(&[9, 4, 4, 4], "rank == 0 ? 9 : 4", true);
        assert_eq!(number(&points(&[3, 1, 4, 1, 5, 9, 2, 6]), 8), None);
    }

    #[test]
    fn conditions_of_ranks() {
        let all: Vec<u32> = (0..8).collect();
        let is = |ranks: &[u32]| condition(ranks, &all, 8).map(|fit| fit.text);
        assert_eq!(is(&[0]).as_deref(), Some("rank == 0"));
        assert_eq!(is(&[7]).as_deref(), Some("rank == size - 1"));
        assert_eq!(is(&[0, 2, 4, 6]).as_deref(), Some("rank % 2 == 0"));
        assert_eq!(is(&[0, 1, 2]).as_deref(), Some("rank < 3"));
        assert_eq!(is(&[1, 2, 3, 4, 5, 6]).as_deref(), Some("rank >= 1 && rank < size - 1"));
        assert_eq!(is(&[0, 7]).as_deref(), Some("rank == 0 || rank == size - 1"));
        assert_eq!(is(&[0, 3, 5]), None);
    }
}
