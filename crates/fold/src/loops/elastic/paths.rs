//! Paths, as a tree: where symbols come from, and what several of them have in common.

use crate::FastMap;
use crate::loops::Spot;

/// The path of nothing, or of what has nothing in common.
pub(super) const NOWHERE: u32 = 0;

#[derive(Debug, Clone, Default)]
pub(super) struct Paths {
    /// By path. `NOWHERE` is left out.
    known: Vec<Path>,
    longer: FastMap<(u32, Spot), u32>,
    of: FastMap<u32, u32>,
}

#[derive(Debug, Clone, Copy)]
struct Path {
    /// Without the last spot.
    outer: u32,
    length: u32,
    spot: Spot,
}

impl Paths {
    pub fn define(&mut self, symbol: u32, spots: impl Iterator<Item = Spot>) {
        let mut path = NOWHERE;
        for (spot, length) in spots.zip(1..) {
            path = *self.longer.entry((path, spot)).or_insert_with(|| {
                self.known.push(Path { outer: path, length, spot });
                self.known.len() as u32
            });
        }
        self.of.insert(symbol, path);
    }

    pub fn of(&self, symbol: u32) -> u32 {
        self.of.get(&symbol).copied().unwrap_or(NOWHERE)
    }

    fn get(&self, path: u32) -> Option<&Path> {
        self.known.get(path.checked_sub(1)? as usize)
    }

    /// The spots both begin with.
    pub fn common(&self, a: u32, b: u32) -> u32 {
        self.parting(a, b).0
    }

    /// Whether `a` stands before `b` where they part; nobody knows of those that come from the same spot, or from several
    /// areas.
    pub fn before(&self, a: u32, b: u32) -> bool {
        match self.parting(a, b) {
            (_, Some(a), Some(b)) => a.area == b.area && a.at < b.at,
            _ => false,
        }
    }

    /// The spots both begin with, and the first ones in which they differ.
    fn parting(&self, mut a: u32, mut b: u32) -> (u32, Option<Spot>, Option<Spot>) {
        let (mut last_a, mut last_b) = (None, None);
        while a != b {
            let (longer_a, longer_b) = (self.get(a).copied(), self.get(b).copied());
            let length = |path: Option<Path>| path.map_or(0, |path| path.length);
            let (length_a, length_b) = (length(longer_a), length(longer_b));
            if let Some(path) = longer_a.filter(|_| length_a >= length_b) {
                (a, last_a) = (path.outer, Some(path.spot));
            }
            if let Some(path) = longer_b.filter(|_| length_b >= length_a) {
                (b, last_b) = (path.outer, Some(path.spot));
            }
        }
        (a, last_a, last_b)
    }

    pub fn memory(&self) -> usize {
        let longer = self.longer.capacity() * size_of::<((u32, Spot), u32)>();
        self.known.capacity() * size_of::<Path>() + longer + self.of.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> Paths {
        let mut paths = Paths::default();
        for (symbol, offsets) in
            [(0, &[1, 2, 3][..]), (1, &[1, 2]), (2, &[1, 5, 1]), (3, &[9]), (4, &[1, 2, 4])]
        {
            paths.define(symbol, offsets.iter().map(|&at| Spot { area: 7, at }));
        }
        paths
    }

    #[test]
    fn paths_have_their_beginnings_in_common() {
        let paths = paths();
        let length = |a, b| paths.get(paths.common(paths.of(a), paths.of(b))).map_or(0, |path| path.length);
        assert_eq!((length(0, 0), length(0, 1), length(1, 2), length(2, 0)), (3, 2, 1, 1));
        assert_eq!((length(0, 3), length(0, 77)), (0, 0));
    }

    #[test]
    fn code_has_an_order_where_paths_part() {
        let paths = paths();
        let before = |a, b| paths.before(paths.of(a), paths.of(b));
        assert!(before(0, 2) && !before(2, 0) && before(0, 4) && before(4, 2) && before(2, 3));
        // The same place, and a place in a function that the other place calls.
        assert!(!before(0, 0) && !before(0, 1) && !before(1, 0) && !before(0, 77));
    }
}
