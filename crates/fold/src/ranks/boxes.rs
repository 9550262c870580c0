//! What two boxes have in common, by arithmetic on their strides and counts instead of rank by rank.

use super::{Part, RankList};

/// (count, stride), outermost first, as in [`Part`]. Every stride leads past the dimensions inside; a count may be 1.
type Dims<'a> = &'a [(u32, u32)];

impl Part {
    /// The last rank of a part that is well formed.
    pub fn last(&self) -> u32 {
        u32::try_from(span(&self.dims).saturating_add(self.start.into())).unwrap_or(u32::MAX)
    }

    /// How many ranks both have. Takes a few steps where the strides are multiples of each other, as those of grids are;
    /// otherwise one box is taken apart row by row. `None` where `left` steps are not enough.
    pub(super) fn common(&self, other: &Part, left: &mut u64) -> Option<u64> {
        common(self.start.into(), &self.dims, other.start.into(), &other.dims, left)
    }

    /// Its ranks as [`RankList::from_sorted`] would tell them.
    pub fn folded(&self) -> RankList {
        let mut dims: Vec<(u32, u32)> = Vec::with_capacity(self.dims.len());
        for &(count, stride) in self.dims.iter().rev() {
            match dims.last_mut() {
                // Rows that go on where the one before ends are one row.
                Some((inner, step)) if u64::from(*inner) * u64::from(*step) == u64::from(stride) => {
                    *inner *= count;
                }
                _ => dims.push((count, stride)),
            }
        }
        dims.reverse();
        RankList { parts: vec![Part { start: self.start, dims }] }
    }
}

/// From the first rank to the last.
fn span(dims: Dims) -> i64 {
    let more = |&(count, stride): &(u32, u32)| (i64::from(count) - 1).saturating_mul(i64::from(stride));
    dims.iter().map(more).fold(0, i64::saturating_add)
}

fn contains(dims: Dims, mut rest: i64) -> bool {
    for &(count, stride) in dims {
        rest -= (rest / i64::from(stride)).min(i64::from(count) - 1) * i64::from(stride);
    }
    rest == 0
}

fn common(start_a: i64, a: Dims, start_b: i64, b: Dims, left: &mut u64) -> Option<u64> {
    *left = left.checked_sub(1)?;
    let (last_a, last_b) = (start_a + span(a), start_b + span(b));
    if last_a < start_b || last_b < start_a {
        return Some(0);
    }
    let (Some((&(count_a, stride_a), inner_a)), Some((&(count_b, stride_b), inner_b))) =
        (a.split_first(), b.split_first())
    else {
        let alone =
            if a.is_empty() { contains(b, start_a - start_b) } else { contains(a, start_b - start_a) };
        return Some(alone.into());
    };
    if inner_a.is_empty() && inner_b.is_empty() {
        return Some(common_of_rows((start_a, last_a, stride_a), (start_b, last_b, stride_b)));
    }
    if stride_a < stride_b {
        return common(start_b, b, start_a, a, left);
    }
    let stride = i64::from(stride_a);
    if stride_a == stride_b {
        return common_of_grids((start_a, count_a, inner_a), (start_b, count_b, inner_b), stride, left);
    }
    let ratio = stride_a / stride_b;
    if stride_a.is_multiple_of(stride_b) && count_b >= ratio {
        // Cut into rows as far apart as those of the other one, and what is left at the end.
        let rest = count_b % ratio;
        let whole = [&[(count_b / ratio, stride_a), (ratio, stride_b)], inner_b].concat();
        let mut sum = common(start_a, a, start_b, &whole, left)?;
        if rest > 0 {
            let end = start_b + i64::from(count_b - rest) * i64::from(stride_b);
            sum += common(start_a, a, end, &[&[(rest, stride_b)], inner_b].concat(), left)?;
        }
        return Some(sum);
    }
    let first = (start_b - start_a - span(inner_a) + stride - 1).div_euclid(stride).max(0);
    let last = (last_b - start_a).div_euclid(stride).min(i64::from(count_a) - 1);
    let mut sum = 0;
    for row in first..=last {
        sum += common(start_a + row * stride, inner_a, start_b, b, left)?;
    }
    Some(sum)
}

/// Two boxes whose rows are equally far apart: row i of the one meets row j of the other only for one or two differences
/// j - i, and then in the same ranks for all such pairs.
fn common_of_grids(
    (start_a, count_a, a): (i64, u32, Dims),
    (start_b, count_b, b): (i64, u32, Dims),
    stride: i64,
    left: &mut u64,
) -> Option<u64> {
    let apart = start_b - start_a;
    let first = (-span(b) - apart + stride - 1).div_euclid(stride);
    let last = (span(a) - apart).div_euclid(stride);
    let mut sum = 0;
    for shift in first..=last {
        let pairs = i64::from(count_a).min(i64::from(count_b) - shift) - (-shift).max(0);
        if let Ok(pairs @ 1..) = u64::try_from(pairs) {
            sum += pairs * common(0, a, apart + shift * stride, b, left)?;
        }
    }
    Some(sum)
}

/// Of two rows, each with its first, its last and its stride.
fn common_of_rows(a: (i64, i64, u32), b: (i64, i64, u32)) -> u64 {
    let (stride_a, stride_b) = (i128::from(a.2), i128::from(b.2));
    let (divisor, factor) = bezout(stride_a, stride_b);
    let apart = i128::from(b.0) - i128::from(a.0);
    if apart % divisor != 0 {
        return 0;
    }
    // `a` is at one of b's ranks after so many steps, and then at each `period`.
    let steps = (apart / divisor * factor).rem_euclid(stride_b / divisor);
    let period = stride_a / divisor * stride_b;
    let met = i128::from(a.0) + steps * stride_a;
    let low = i128::from(a.0.max(b.0));
    let first = low + (met - low).rem_euclid(period);
    let last = i128::from(a.1.min(b.1));
    // At most as many as either row has.
    if first > last { 0 } else { ((last - first) / period) as u64 + 1 }
}

/// The greatest common divisor, and how often `a` it is, modulo `b`.
fn bezout(a: i128, b: i128) -> (i128, i128) {
    let (mut old, mut new) = ((a, 1), (b, 0));
    while new.0 != 0 {
        let times = old.0 / new.0;
        (old, new) = (new, (old.0 - times * new.0, old.1 - times * new.1));
    }
    old
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    fn any_box(random: &mut Rng) -> Part {
        let mut dims = Vec::new();
        let mut stride = 1 + random.u64(..3);
        for _ in 0..random.u64(..4) {
            let count = 2 + random.u64(..5);
            dims.insert(0, (count as u32, stride as u32));
            // Often just past the row, often a multiple of its stride.
            stride = match random.u64(..3) {
                0 => stride * count,
                1 => stride * (count + random.u64(..4)),
                _ => stride * count + random.u64(..7),
            };
        }
        Part { start: random.u64(..60) as u32, dims }
    }

    fn ranks(part: &Part) -> Vec<u32> {
        RankList { parts: vec![part.clone()] }.iter().collect()
    }

    #[test]
    fn what_boxes_have_in_common_is_what_their_ranks_have() {
        let mut random = Rng::with_seed(23);
        let mut met = 0;
        for _ in 0..20_000 {
            let (a, b) = (any_box(&mut random), any_box(&mut random));
            let of_b = ranks(&b);
            let expected = ranks(&a).iter().filter(|rank| of_b.binary_search(rank).is_ok()).count() as u64;
            assert_eq!(a.common(&b, &mut u64::MAX.clone()), Some(expected), "{a:?} {b:?}");
            met += u64::from(expected > 0);
        }
        assert!(met > 5_000, "{met}");
    }

    #[test]
    fn a_box_folds_as_its_ranks_do() {
        let mut random = Rng::with_seed(29);
        for _ in 0..20_000 {
            let part = any_box(&mut random);
            assert_eq!(part.folded(), RankList::from_sorted(&ranks(&part)), "{part:?}");
        }
    }

    /// Boxes of a thousand million ranks.
    #[test]
    fn grids_take_a_few_steps() {
        let all = Part { start: 0, dims: vec![(1 << 30, 1)] };
        let grid = |start, dims: Dims| Part { start, dims: dims.to_vec() };
        let steps = |a: &Part, b: &Part, expected: u64| {
            let mut left = 1000;
            assert_eq!(a.common(b, &mut left), Some(expected), "{a:?} {b:?}");
            1000 - left
        };
        let odd = grid(1, &[(1 << 29, 2)]);
        assert!(steps(&all, &odd, 1 << 29) < 5);
        let inside = grid((1 << 20) + 1025, &[(1022, 1 << 20), (1022, 1 << 10), (1022, 1)]);
        assert!(steps(&all, &inside, 1022 * 1022 * 1022) < 50);
        assert!(steps(&inside, &inside, 1022 * 1022 * 1022) < 50);
        let columns = grid(0, &[(1 << 20, 1 << 10), (512, 2)]);
        assert!(steps(&columns, &inside, 1022 * 1022 * 511) < 50);
        assert!(steps(&columns, &odd, 0) < 50);
        // Rows of ten against every third.
        let tens = grid(0, &[(1000, 20), (10, 1)]);
        assert_eq!(tens.common(&grid(0, &[(7000, 3), (2, 1)]), &mut 100), None);
    }
}
