//! Sets that would be a box if some ranks were not missing from it (a grid without its diagonal), and functions over
//! them: what a function says of the missing ranks is free, so it may be that of the box.

use std::collections::HashMap;

use super::map::{Dim, MapPart, Point, distances, nest, price};
use super::{Part, RankList};

/// A box has at most so many times the ranks of the set: what is said of ranks that are not there must not outweigh
/// what is said of those that are.
pub const MOST_HOLES: u64 = 2;
/// How many kinds of steps from rank to rank are looked at for how far apart they come.
const KINDS: usize = 6;
/// How many boxes are filled and folded.
const FILLED: usize = 3;

/// Boxes around all of the points, smallest first. Those that have no holes are left out.
pub(super) fn boxes(points: &[Point]) -> Vec<Part> {
    let periods = periods(points);
    let mut chains: Vec<Vec<u32>> = vec![Vec::new()];
    for &inner in &periods {
        chains.push(vec![inner]);
        let outer = periods.iter().filter(|outer| **outer > inner && outer.is_multiple_of(inner));
        chains.extend(outer.map(|&outer| vec![outer, inner]));
    }
    let mut boxes = Vec::new();
    for chain in &chains {
        // Grids begin at rank 0, mostly.
        for origin in [0, points[0].0] {
            boxes.extend(around(points, origin, chain));
        }
    }
    let size = points.len() as u64;
    boxes.retain(|part| part.len() > size && part.len() <= MOST_HOLES * size);
    boxes.sort_by(|a, b| (a.len(), a.start, &a.dims).cmp(&(b.len(), b.start, &b.dims)));
    boxes.dedup();
    boxes
}

/// Distances in rank at which something comes again: the length of a row, of a plane.
fn periods(points: &[Point]) -> Vec<u32> {
    let (distance, often) = distances(points);
    let mut order: Vec<u32> = (0..often.len() as u32).collect();
    order.sort_by_key(|&d| (std::cmp::Reverse(often[d as usize]), d));
    order.truncate(KINDS);
    let mut last: HashMap<u32, u32> = HashMap::new();
    let mut apart: HashMap<(u32, u32), usize> = HashMap::new();
    for (at, kind) in distance.iter().enumerate().filter(|(_, kind)| order.contains(kind)) {
        if let Some(last) = last.insert(*kind, points[at].0) {
            *apart.entry((*kind, points[at].0 - last)).or_default() += 1;
        }
    }
    let mut periods = Vec::new();
    for kind in order {
        let of_kind = apart.iter().filter(|((of, period), _)| *of == kind && *period > 1);
        let most = of_kind.max_by_key(|((_, period), times)| (**times, std::cmp::Reverse(*period)));
        periods.extend(most.map(|((_, period), _)| *period));
    }
    periods.sort_unstable();
    periods.dedup();
    periods
}

/// The smallest box around the points whose dimensions have these periods, outermost first, counted from `origin`.
fn around(points: &[Point], origin: u32, periods: &[u32]) -> Option<Part> {
    let coordinates = |rank: u32, each: &mut dyn FnMut(usize, u32)| {
        let mut rest = rank - origin;
        for (at, &period) in periods.iter().enumerate() {
            each(at, rest / period);
            rest %= period;
        }
        each(periods.len(), rest);
    };
    let mut low = vec![u32::MAX; periods.len() + 1];
    let mut high = vec![0; periods.len() + 1];
    for &(rank, _) in points {
        coordinates(rank, &mut |at, x| {
            low[at] = low[at].min(x);
            high[at] = high[at].max(x);
        });
    }
    let mut unit = vec![0; periods.len() + 1];
    for &(rank, _) in points {
        coordinates(rank, &mut |at, x| {
            if unit[at] != 1 {
                unit[at] = greatest_common_divisor(unit[at], x - low[at]);
            }
        });
    }
    let mut part = Part { start: origin, dims: Vec::new() };
    for (at, period) in periods.iter().copied().chain([1]).enumerate() {
        part.start = part.start.checked_add(low[at].checked_mul(period)?)?;
        if let Some(more) = (high[at] - low[at]).checked_div(unit[at]) {
            part.dims.push((more + 1, unit[at].checked_mul(period)?));
        }
    }
    // The far corner may be no rank at all.
    RankList { parts: vec![part.clone()] }.validate().ok()?;
    Some(part)
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// The numbers of a box in the order of its ranks, as far as they are known.
struct Field {
    start: u32,
    /// Outermost first, each with how far its neighbours are apart in `numbers`.
    dims: Vec<(u32, u32, usize)>,
    numbers: Vec<Option<i64>>,
}

impl Field {
    fn new(part: &Part, points: &[Point]) -> Field {
        let mut far = part.len() as usize;
        let mut dims = Vec::new();
        for &(count, stride) in &part.dims {
            far /= count as usize;
            dims.push((count, stride, far));
        }
        let mut numbers = vec![None; part.len() as usize];
        for &(rank, number) in points {
            let mut rest = rank - part.start;
            let mut at = 0;
            for &(_, stride, far) in &dims {
                at += (rest / stride) as usize * far;
                rest %= stride;
            }
            numbers[at] = Some(number);
        }
        Field { start: part.start, dims, numbers }
    }

    fn coordinate(&self, at: usize, dim: usize) -> usize {
        let (count, _, far) = self.dims[dim];
        at / far % count as usize
    }

    /// How numbers differ from one to the next along a dimension: what most do, where most do the same.
    fn step(&self, dim: usize) -> i64 {
        let far = self.dims[dim].2;
        let (mut step, mut lead) = (0, 0u64);
        for at in far..self.numbers.len() {
            let (Some(before), Some(here)) = (self.numbers[at - far], self.numbers[at]) else { continue };
            if self.coordinate(at, dim) == 0 {
                continue;
            }
            let here = here.wrapping_sub(before);
            match lead {
                0 => (step, lead) = (here, 1),
                _ if step == here => lead += 1,
                _ => lead -= 1,
            }
        }
        step
    }

    /// One part for all, if there is one.
    fn as_part(&self, steps: &[i64]) -> Option<MapPart> {
        let mut origin = None;
        for (at, number) in self.numbers.iter().enumerate() {
            let Some(mut number) = *number else { continue };
            for (dim, step) in steps.iter().enumerate() {
                number = number.wrapping_sub(step.wrapping_mul(self.coordinate(at, dim) as i64));
            }
            if *origin.get_or_insert(number) != number {
                return None;
            }
        }
        let dim = |(&(count, stride, _), &step): (&(u32, u32, usize), &i64)| Dim { count, stride, step };
        Some(MapPart {
            start: self.start,
            value: origin?,
            dims: self.dims.iter().zip(steps).map(dim).collect(),
        })
    }

    /// All points of the box; those that are missing follow their neighbours along this dimension first.
    fn filled(&self, first: usize, steps: &[i64]) -> Vec<Point> {
        let mut numbers = self.numbers.clone();
        let order = std::iter::once(first).chain((0..steps.len()).filter(|dim| *dim != first));
        for dim in order {
            let ((count, _, far), step) = (self.dims[dim], steps[dim]);
            for at in far..numbers.len() {
                if numbers[at].is_none() && self.coordinate(at, dim) > 0 {
                    numbers[at] = numbers[at - far].map(|n| n.wrapping_add(step));
                }
            }
            for at in (0..numbers.len() - far).rev() {
                if numbers[at].is_none() && self.coordinate(at, dim) + 1 < count as usize {
                    numbers[at] = numbers[at + far].map(|n| n.wrapping_sub(step));
                }
            }
        }
        let dims = self.dims.iter().map(|&(count, stride, _)| (count, stride)).collect();
        let whole = RankList { parts: vec![Part { start: self.start, dims }] };
        whole.iter().zip(numbers).filter_map(|(rank, number)| Some((rank, number?))).collect()
    }
}

/// Parts that hold all of the points and other ranks besides, if they cost less than `most`.
pub(super) fn loose(points: &[Point], most: u64) -> Option<Vec<MapPart>> {
    let boxes = boxes(points);
    let mut best: Option<(u64, Vec<MapPart>)> = None;
    let mut filled = Vec::new();
    for part in &boxes {
        let field = Field::new(part, points);
        let steps: Vec<i64> = (0..field.dims.len()).map(|dim| field.step(dim)).collect();
        if let Some(one) = field.as_part(&steps) {
            let parts = vec![one];
            return (price(&parts) < most).then_some(parts);
        }
        if filled.len() < FILLED {
            filled.push((field, steps));
        }
    }
    for (field, steps) in &filled {
        for dim in 0..steps.len() {
            let mut parts = nest(&field.filled(dim, steps), 0);
            let price = price(&parts);
            if price < best.as_ref().map_or(most, |(least, _)| *least) {
                parts.sort_by_key(|part| part.start);
                best = Some((price, parts));
            }
        }
    }
    best.map(|(_, parts)| parts)
}

/// A box and what is missing from it, if that is less to say than the list.
pub(super) fn all_but(list: &RankList) -> Option<(RankList, RankList)> {
    if list.parts.len() < 3 {
        return None;
    }
    let ranks: Vec<u32> = list.iter().collect();
    let points: Vec<Point> = ranks.iter().map(|&rank| (rank, 0)).collect();
    let price = |list: &RankList| list.parts.iter().map(|part| 2 + 2 * part.dims.len()).sum::<usize>();
    let mut least = price(list);
    let mut best = None;
    for part in boxes(&points).into_iter().take(FILLED) {
        let whole = RankList { parts: vec![part] };
        let missing = whole.without(list);
        let both = 1 + price(&whole) + price(&missing);
        if both < least {
            (best, least) = (Some((whole, missing)), both);
        }
    }
    best
}

#[cfg(test)]
mod tests;
