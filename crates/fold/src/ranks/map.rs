//! A number for every rank of a set, kept folded: numbers that follow the ranks cost nothing per rank.
//!
//! ```
//! use refrain_fold::ranks::RankMap;
//! // The column of each rank on a grid of 6 x 4 ranks, and its neighbour to the right, which wraps around.
//! let column = RankMap::from_pairs((0..24).map(|rank| (rank, i64::from(rank % 4))).collect());
//! let right = |rank| (rank, if rank % 4 == 3 { -3 } else { 1 });
//! assert_eq!((column.parts.len(), column.get(9)), (1, Some(1)));
//! assert_eq!(RankMap::from_pairs((0..24).map(right).collect()).parts.len(), 2);
//! ```

use std::borrow::Cow;
use std::collections::HashMap;

use super::{MOST_HOLES, Part, RankList, View, holes, sum, view};

/// A function from ranks to numbers. Equal functions made by [`RankMap::from_pairs`] have equal representations, and so
/// have those made by [`RankMap::loose`], which may have numbers for other ranks too.
///
/// Parts go by their first rank. They may interleave, but share no rank. Arithmetic on numbers wraps.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RankMap {
    /// By first rank.
    pub parts: Vec<MapPart>,
    /// If there is one, the ranks of the parts are those that this shows.
    pub view: Option<View>,
    /// If there is one, its numbers are added to those of the parts. It is no sum itself.
    pub plus: Option<Box<RankMap>>,
}

/// For all indices `0 <= ik < countk`: the rank `start + i0*stride0 + ...` has the number `value + i0*step0 + ...`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MapPart {
    /// The first rank.
    pub start: u32,
    /// Its number.
    pub value: i64,
    /// Outermost first; every stride leads past all of the inner dimensions.
    pub dims: Vec<Dim>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
/// Ranks at equal distances, and how their numbers change.
pub struct Dim {
    /// How many.
    pub count: u32,
    /// From one rank to the next.
    pub stride: u32,
    /// From one number to the next.
    pub step: i64,
}

/// More parts than this are folded again when maps are joined; fewer wait for the next time.
const MANY_PARTS: usize = 48;
/// How many distances between neighbours are tried as the ends of rows.
const CUTS: usize = 5;
/// How many ways to cut are followed to the end, by depth: the most promising. Beyond these depths it is one.
const FOLLOWED: [usize; 3] = [4, 3, 2];
/// No machine has more dimensions; irregular numbers may seem to.
const MOST_DIMENSIONS: usize = 12;

pub(super) type Point = (u32, i64);
/// The first points of rows, by how many points a row has and how far apart.
type Rows = HashMap<(usize, u32, i64), Vec<Point>>;

impl RankMap {
    /// The same number for all.
    pub fn constant(ranks: &RankList, value: i64) -> RankMap {
        let dim = |&(count, stride): &(u32, u32)| Dim { count, stride, step: 0 };
        let part =
            |part: &Part| MapPart { start: part.start, value, dims: part.dims.iter().map(dim).collect() };
        RankMap::plainly(ranks.parts.iter().map(part).collect())
    }

    /// Parts of ranks as they are.
    pub fn plainly(parts: Vec<MapPart>) -> RankMap {
        RankMap { parts, view: None, plus: None }
    }

    /// Each rank must be there once, in any order. Takes near linear time.
    pub fn from_pairs(mut pairs: Vec<(u32, i64)>) -> RankMap {
        if !pairs.is_sorted_by_key(|p| p.0) {
            pairs.sort_by_key(|p| p.0);
        }
        let mut parts = if pairs.is_empty() { Vec::new() } else { nest(&pairs, 0) };
        parts.sort_by_key(|part| part.start);
        RankMap::plainly(parts)
    }

    /// The same for fewer parts, if there are fewer when ranks that are not there get numbers as well (who asks for
    /// their numbers gets some), when the ranks are seen in another order, or when the numbers are sums.
    pub fn loose(mut pairs: Vec<(u32, i64)>) -> RankMap {
        pairs.sort_by_key(|p| p.0);
        let parts = if pairs.is_empty() { Vec::new() } else { nest(&pairs, 0) };
        // Where nearly each rank is a part of its own there is no box to be found.
        let exact = 3 > parts.len() || parts.len() > pairs.len() / 2;
        let loose = if exact { None } else { holes::loose(&pairs, price(&parts)) };
        let mut parts = loose.unwrap_or(parts);
        parts.sort_by_key(|part| part.start);
        let map = match view::seen(&pairs, price(&parts)) {
            Some((view, parts)) => RankMap { parts, view: Some(view), plus: None },
            None => RankMap::plainly(parts),
        };
        sum::found(&pairs, map.cost()).unwrap_or(map)
    }

    /// The same where there are many functions to fold: one that is a few boxes in another order is not folded in other ways
    /// to see whether that is less.
    pub fn loose_at_once(mut pairs: Vec<(u32, i64)>) -> RankMap {
        pairs.sort_by_key(|p| p.0);
        match view::plainly_better(&pairs) {
            Some((view, parts)) => RankMap { parts, view: Some(view), plus: None },
            None => RankMap::loose(pairs),
        }
    }

    /// The same, of ranks as they are. Takes time in the number of ranks where they are seen otherwise.
    pub fn plain(&self) -> Cow<'_, RankMap> {
        if self.is_plain() { Cow::Borrowed(self) } else { Cow::Owned(self.folded()) }
    }

    /// Whether its parts are all there is to it: ranks in their own order, and their numbers.
    pub fn is_plain(&self) -> bool {
        self.view.is_none() && self.plus.is_none()
    }

    /// All ranks and their numbers, by rank.
    pub fn pairs(&self) -> Vec<(u32, i64)> {
        let mut pairs = Vec::with_capacity(usize::try_from(self.len()).unwrap_or(0).min(1 << 24));
        self.parts.iter().for_each(|part| part.expand(&mut pairs));
        if let Some(view) = self.view {
            pairs.iter_mut().for_each(|pair| pair.0 = view.rank(pair.0));
        }
        if self.parts.len() > 1 || self.view.is_some() {
            // The parts are sorted runs, which a stable sort takes as such.
            pairs.sort_by_key(|p| p.0);
        }
        if let Some(plus) = &self.plus {
            let mut more = plus.pairs().into_iter().peekable();
            pairs.retain_mut(|(rank, number)| {
                while more.next_if(|(other, _)| other < rank).is_some() {}
                let here = more.next_if(|(other, _)| other == rank);
                *number = number.wrapping_add(here.map_or(0, |(_, more)| more));
                here.is_some()
            });
        }
        pairs
    }

    /// These ranks and their numbers, by rank; not those of others.
    pub fn pairs_of(&self, ranks: &RankList) -> Vec<(u32, i64)> {
        let mut pairs = self.pairs();
        if self.len() > ranks.len() {
            let mut ranks = ranks.iter().peekable();
            pairs.retain(|(rank, _)| {
                while ranks.next_if(|r| r < rank).is_some() {}
                ranks.peek() == Some(rank)
            });
        }
        pairs
    }

    /// Without numbers for other ranks, as [`RankMap::union`] wants it.
    pub fn only(self, ranks: &RankList) -> RankMap {
        let most = ranks.len().saturating_mul(MOST_HOLES);
        match self.len() {
            len if (len > ranks.len() || !self.is_plain()) && len <= most => {
                RankMap::from_pairs(self.pairs_of(ranks))
            }
            _ => self,
        }
    }

    /// The number of a rank.
    pub fn get(&self, rank: u32) -> Option<i64> {
        let seen = self.view.map_or(rank, |view| view.seen(rank));
        let number = self.parts.iter().find_map(|part| part.get(seen))?;
        match &self.plus {
            None => Some(number),
            Some(plus) => Some(number.wrapping_add(plus.get(rank)?)),
        }
    }

    /// The number, if all ranks have the same one.
    pub fn as_constant(&self) -> Option<i64> {
        let value = self.parts.first()?.value;
        let same = |part: &MapPart| part.value == value && part.dims.iter().all(|dim| dim.step == 0);
        let more = self.plus.as_ref().map_or(Some(0), |plus| plus.as_constant())?;
        self.parts.iter().all(same).then(|| value.wrapping_add(more))
    }

    /// How many ranks have a number (or, of sums, the one that is not added).
    pub fn len(&self) -> u64 {
        self.parts.iter().map(MapPart::len).fold(0, u64::saturating_add)
    }

    /// No rank has a number.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Both, which must have no rank in common and be plain. Costs time in the number of parts as long as there are few; only
    /// then are the ranks looked at one by one. So the result need not be in its final form: see [`RankMap::folded`].
    pub fn union(mut self, other: RankMap) -> RankMap {
        self.parts.extend(other.parts);
        self.parts.sort_by_key(|part| part.start);
        if self.parts.len() > MANY_PARTS { self.folded() } else { self }
    }

    /// As [`RankMap::from_pairs`] makes it.
    pub fn folded(&self) -> RankMap {
        RankMap::from_pairs(self.pairs())
    }

    /// What it takes to write it down, roughly in numbers.
    pub fn cost(&self) -> u64 {
        let view = if self.view.is_some() { view::PRICE } else { 0 };
        let more = self.plus.as_ref().map_or(0, |plus| 1 + plus.cost());
        price(&self.parts) + view + more
    }

    /// Whether it is the other one on a grid that is turned, and then by how much further.
    pub fn turned_from(&self, other: &RankMap) -> Option<[i64; 2]> {
        let (view, before) = (self.view?, other.view?);
        let same = View { turn: before.turn, ..view } == before && self.plus == other.plus;
        (same && self.parts == other.parts).then(|| {
            let side = i64::from(view.side);
            let by = |at: usize| {
                let by = (i64::from(view.turn[at]) - i64::from(before.turn[at])).rem_euclid(side);
                if 2 * by > side { by - side } else { by }
            };
            [by(0), by(1)]
        })
    }

    /// Its ranks, as seen if there is a view, as a list whose parts may interleave.
    pub fn shape(&self) -> RankList {
        let part = |part: &MapPart| Part {
            start: part.start,
            dims: part.dims.iter().map(|dim| (dim.count, dim.stride)).collect(),
        };
        RankList { parts: self.parts.iter().map(part).collect() }
    }

    /// Well formed parts that go by their first rank. They may yet share some.
    pub(super) fn is_sound(&self) -> bool {
        self.parts.iter().all(MapPart::is_sound)
            && self.parts.is_sorted_by_key(|part| part.start)
            && self.view.is_none_or(View::is_sound)
            && self.plus.as_ref().is_none_or(|plus| plus.plus.is_none() && plus.is_sound())
    }
}

/// What parts take to write down, roughly in numbers.
pub(super) fn price(parts: &[MapPart]) -> u64 {
    parts.iter().map(|part| 2 + 2 * part.dims.len() as u64).sum()
}

impl MapPart {
    fn len(&self) -> u64 {
        self.dims.iter().fold(1, |product, dim| u64::saturating_mul(product, dim.count.into()))
    }

    fn get(&self, rank: u32) -> Option<i64> {
        let mut rest = rank.checked_sub(self.start)?;
        let mut value = self.value;
        for dim in &self.dims {
            let index = (rest / dim.stride.max(1)).min(dim.count.saturating_sub(1));
            rest -= index * dim.stride;
            value = value.wrapping_add(i64::from(index).wrapping_mul(dim.step));
        }
        (rest == 0).then_some(value)
    }

    fn is_sound(&self) -> bool {
        let mut span = 0u32;
        for dim in self.dims.iter().rev() {
            if dim.count < 2 || dim.stride <= span {
                return false;
            }
            let outer = (dim.count - 1).checked_mul(dim.stride).and_then(|outer| outer.checked_add(span));
            match outer {
                Some(outer) => span = outer,
                None => return false,
            }
        }
        self.start.checked_add(span).is_some()
    }

    fn expand(&self, out: &mut Vec<Point>) {
        let from = out.len();
        out.push((self.start, self.value));
        for dim in self.dims.iter().rev() {
            let inner = from..out.len();
            let (mut far, mut more) = (0u32, 0i64);
            for _ in 1..dim.count {
                far = far.wrapping_add(dim.stride);
                more = more.wrapping_add(dim.step);
                for at in inner.clone() {
                    let (rank, value) = out[at];
                    out.push((rank.wrapping_add(far), value.wrapping_add(more)));
                }
            }
        }
    }
}

/// Points in a row at equal distances.
#[derive(Clone, Copy)]
struct Run {
    at: usize,
    count: usize,
}

/// Points by ascending rank as few parts. Runs of points at equal distances in rank and number become rows; rows of
/// the same form, which need not be neighbours, are points of the next dimension.
///
/// Where a row ends is not always plain: the last of one and the first of the next may look like two in a row. So the
/// distances that occur are tried as ends of rows, and the way that gives the least is kept.
pub(super) fn nest(points: &[Point], depth: usize) -> Vec<MapPart> {
    let singles =
        || points.iter().map(|&(start, value)| MapPart { start, value, dims: Vec::new() }).collect();
    if points.len() < 2 || depth >= MOST_DIMENSIONS {
        return singles();
    }
    let (distance, often) = distances(points);
    if often.len() == 1 {
        let count = points.len() as u32;
        let dim = Dim { count, stride: stride(points, 0), step: step(points, 0) };
        return vec![MapPart { start: points[0].0, value: points[0].1, dims: vec![dim] }];
    }
    let mut ways: Vec<(u64, Rows)> = Vec::new();
    let mut add = |cut: &dyn Fn(u32) -> bool| {
        let runs = runs(&distance, cut);
        if runs.len() == points.len() {
            return;
        }
        let mut rows = Rows::new();
        for run in &runs {
            let form = match run.count {
                1 => (1, 0, 0),
                count => (count, stride(points, run.at), step(points, run.at)),
            };
            rows.entry(form).or_default().push(points[run.at]);
        }
        ways.push((runs.len() as u64 + 4 * rows.len() as u64, rows));
    };
    add(&|_| false);
    // With nearly as many distances as points there is no grid to be found.
    if often.len() <= 8 + points.len() / 4 {
        let mut order: Vec<u32> = (0..often.len() as u32).collect();
        order.sort_by_key(|&d| (std::cmp::Reverse(often[d as usize]), d));
        for &cut in order.iter().take(CUTS) {
            let limit = often[cut as usize];
            if limit <= points.len() / 2 {
                add(&|d| d == cut);
                add(&|d| often[d as usize] <= limit);
            }
        }
    }
    ways.sort_by_key(|way| way.0);
    let mut best: Option<(u64, Vec<MapPart>)> = None;
    for (_, rows) in ways.into_iter().take(FOLLOWED.get(depth).copied().unwrap_or(1)) {
        let mut parts = Vec::new();
        for ((count, stride, step), starts) in rows {
            // Points that found no neighbour may find some among themselves, unless they are most: so each step down
            // has far fewer points to look at.
            let depth =
                if count == 1 && starts.len() > points.len() / 2 { MOST_DIMENSIONS } else { depth + 1 };
            for mut part in nest(&starts, depth) {
                if count > 1 {
                    part.dims.push(Dim { count: count as u32, stride, step });
                }
                parts.push(part);
            }
        }
        let cost = price(&parts);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, parts));
        }
        if best.as_ref().is_some_and(|(_, parts)| parts.len() == 1) {
            break;
        }
    }
    match best {
        Some((cost, parts)) if cost <= 2 * points.len() as u64 => parts,
        _ => singles(),
    }
}

fn stride(points: &[Point], at: usize) -> u32 {
    points[at + 1].0 - points[at].0
}

fn step(points: &[Point], at: usize) -> i64 {
    points[at + 1].1.wrapping_sub(points[at].1)
}

/// From each point to the next, by number; and how often each occurs.
pub(super) fn distances(points: &[Point]) -> (Vec<u32>, Vec<usize>) {
    let mut known: HashMap<(u32, i64), u32> = HashMap::new();
    let mut often: Vec<usize> = Vec::new();
    let mut last = None;
    let distance = (0..points.len() - 1).map(|at| {
        let here = (stride(points, at), step(points, at));
        let number = match last {
            Some((same, number)) if same == here => number,
            _ => *known.entry(here).or_insert_with(|| {
                often.push(0);
                often.len() as u32 - 1
            }),
        };
        last = Some((here, number));
        often[number as usize] += 1;
        number
    });
    (distance.collect(), often)
}

/// Runs of equal distances, none of them across a `cut`.
fn runs(distance: &[u32], cut: &dyn Fn(u32) -> bool) -> Vec<Run> {
    let points = distance.len() + 1;
    let run_at = |at: usize| match distance.get(at) {
        Some(&first) if !cut(first) => 1 + distance[at..].iter().take_while(|d| **d == first).count(),
        _ => 1,
    };
    let mut runs = Vec::new();
    let mut at = 0;
    while at < points {
        let mut count = run_at(at);
        // Two are a run of sorts; the second is better off at the head of a longer one.
        if count == 2 && run_at(at + 1) > 2 {
            count = 1;
        }
        runs.push(Run { at, count });
        at += count;
    }
    runs
}

#[cfg(test)]
mod tests;
