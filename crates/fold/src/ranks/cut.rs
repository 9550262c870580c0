//! Lists and functions between two bounds, and moved: what one thread has of what all threads have.

use super::map::{Dim, MapPart, RankMap};
use super::{Part, RankList};
use std::ops::Range;

impl RankList {
    /// Those in a range, in time of the size of the list.
    pub fn within(&self, range: Range<u64>) -> RankList {
        let mut parts = Vec::new();
        for part in &self.parts {
            let dims: Vec<Dim> =
                part.dims.iter().map(|&(count, stride)| Dim { count, stride, step: 0 }).collect();
            cut(part.start, 0, &dims, &range, &mut parts);
        }
        let part = |part: MapPart| Part {
            start: part.start,
            dims: part.dims.iter().map(|dim| (dim.count, dim.stride)).collect(),
        };
        RankList { parts: parts.into_iter().map(part).collect() }
    }

    /// All of them so much higher, or lower; nothing if one would leave 32 bits.
    pub fn moved(&self, by: i64) -> Option<RankList> {
        let last = self.last().unwrap_or(0);
        u32::try_from(i64::from(last) + by).ok()?;
        let part = |part: &Part| Some(Part { start: moved(part.start, by)?, dims: part.dims.clone() });
        Some(RankList { parts: self.parts.iter().map(part).collect::<Option<_>>()? })
    }

    /// The lowest rank.
    pub fn first(&self) -> Option<u32> {
        self.parts.first().map(|part| part.start)
    }

    /// The highest rank.
    pub fn last(&self) -> Option<u32> {
        let part = self.parts.last()?;
        let span = part.dims.iter().map(|&(count, stride)| count.saturating_sub(1).saturating_mul(stride));
        Some(span.fold(part.start, u32::saturating_add))
    }
}

impl RankMap {
    /// The numbers of those in a range, in time of the number of parts; of ranks where they are seen otherwise, or numbers are sums.
    pub fn within(&self, range: Range<u64>) -> RankMap {
        if !self.is_plain() {
            let pairs = self.pairs().into_iter().filter(|pair| range.contains(&pair.0.into()));
            return RankMap::from_pairs(pairs.collect());
        }
        let mut parts = Vec::new();
        for part in &self.parts {
            cut(part.start, part.value, &part.dims, &range, &mut parts);
        }
        parts.sort_by_key(|part| part.start);
        RankMap::plainly(parts)
    }

    /// The same numbers for ranks that much higher, or lower; nothing if a part would begin beyond 32 bits, or if the ranks
    /// are seen otherwise (the grid would have to move too) or numbers are sums.
    pub fn moved(&self, by: i64) -> Option<RankMap> {
        if !self.is_plain() {
            return (by == 0).then(|| self.clone());
        }
        let part = |part: &MapPart| Some(MapPart { start: moved(part.start, by)?, ..part.clone() });
        Some(RankMap::plainly(self.parts.iter().map(part).collect::<Option<_>>()?))
    }
}

fn moved(rank: u32, by: i64) -> Option<u32> {
    u32::try_from(i64::from(rank) + by).ok()
}

/// What of a box is in the range, in order. Of its outermost rows, which do not overlap, at most two are so in part.
fn cut(start: u32, value: i64, dims: &[Dim], range: &Range<u64>, out: &mut Vec<MapPart>) {
    let span = |dims: &[Dim]| -> u64 {
        dims.iter().map(|dim| u64::from(dim.count.saturating_sub(1)) * u64::from(dim.stride)).sum()
    };
    let (first, last) = (u64::from(start), u64::from(start) + span(dims));
    if last < range.start || first >= range.end {
        return;
    }
    if first >= range.start && last < range.end {
        out.push(MapPart { start, value, dims: dims.to_vec() });
        return;
    }
    let Some((&row, inner)) = dims.split_first() else { return };
    let (stride, width) = (u64::from(row.stride).max(1), span(inner));
    let count = u64::from(row.count);
    // Rows `whole` are inside, the ones before and after it perhaps in part.
    let from = range.start.saturating_sub(first).div_ceil(stride).min(count);
    let to = match range.end.checked_sub(first + width + 1) {
        Some(room) => (room / stride + 1).min(count),
        None => 0,
    };
    let mut row_at = |at: u64, rows: u64| {
        // Within the box, whose ranks are 32 bits.
        let start = start.wrapping_add((at * stride) as u32);
        let value = value.wrapping_add((at as i64).wrapping_mul(row.step));
        match rows {
            0 => cut(start, value, inner, range, out),
            1 => out.push(MapPart { start, value, dims: inner.to_vec() }),
            _ => {
                let whole = Dim { count: rows as u32, ..row };
                let dims = std::iter::once(whole).chain(inner.iter().copied()).collect();
                out.push(MapPart { start, value, dims });
            }
        }
    };
    if from > 0 {
        row_at(from - 1, 0);
    }
    if from < to {
        row_at(from, to - from);
    }
    let next = to.max(from);
    if next < count {
        row_at(next, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn what_is_between_two_bounds() {
        let mut random = Rng::with_seed(5);
        for round in 0..3000u64 {
            let limit = [12, 40, 300][round as usize % 3];
            let mut ranks: Vec<u32> = match round % 2 {
                0 => (0..random.u64(..30)).map(|_| random.u64(..limit) as u32).collect(),
                _ => {
                    // A box of up to three dimensions.
                    let (a, b) = (2 + random.u64(..4) as u32, 2 + random.u64(..4) as u32);
                    let (row, plane) = (b + random.u64(..3) as u32, a * (b + 5) + random.u64(..9) as u32);
                    let point = |i: u32| i / (a * b) * plane + i / b % a * row + i % b;
                    (0..3 * a * b).map(point).collect()
                }
            };
            ranks.sort_unstable();
            ranks.dedup();
            let list = RankList::from_sorted(&ranks);
            let map = RankMap::from_pairs(ranks.iter().map(|&r| (r, i64::from(r) * 7 % 5)).collect());
            let low = random.u64(..limit);
            let range = low..low + random.u64(..limit);
            let kept: Vec<u32> = ranks.iter().copied().filter(|r| range.contains(&u64::from(*r))).collect();
            let within = list.within(range.clone());
            assert_eq!(within.validate(), Ok(()));
            assert!(within.iter().eq(kept.iter().copied()), "{list} in {range:?}: {within}");
            assert_eq!(within.last(), kept.last().copied());
            let pairs: Vec<_> = map.pairs().into_iter().filter(|p| range.contains(&p.0.into())).collect();
            assert_eq!(map.within(range.clone()).pairs(), pairs);
            let by = -(low as i64);
            if let (Some(list), Some(map)) = (within.moved(by), map.within(range).moved(by)) {
                assert!(list.iter().eq(kept.iter().map(|r| r - low as u32)));
                assert!(map.pairs().iter().zip(&pairs).all(|(a, b)| a.0 + low as u32 == b.0 && a.1 == b.1));
            }
        }
        let last = RankList::single(u32::MAX);
        assert_eq!((last.moved(1), last.moved(0)), (None, Some(last.clone())));
        // The first part would have room, the last rank has none.
        let pair = RankList::from_sorted(&[u32::MAX - 1, u32::MAX]);
        assert_eq!((pair.moved(1), pair.moved(-1).and_then(|pair| pair.last())), (None, Some(u32::MAX - 1)));
    }
}
