//! Call paths, as a tree: where symbols are called from, and what several of them have in common.

use std::collections::HashMap;

/// The path of nothing, or of what has nothing in common.
pub(super) const NOWHERE: u32 = 0;

#[derive(Debug, Clone, Default)]
pub(super) struct Paths {
    /// By path: the one without its last frame, and its length. `NOWHERE` is left out.
    known: Vec<(u32, u32)>,
    longer: HashMap<(u32, u64), u32>,
    of: HashMap<u32, u32>,
}

impl Paths {
    pub fn define(&mut self, symbol: u32, frames: &[u64]) {
        let mut path = NOWHERE;
        for (frame, length) in frames.iter().zip(1..) {
            path = *self.longer.entry((path, *frame)).or_insert_with(|| {
                self.known.push((path, length));
                self.known.len() as u32
            });
        }
        self.of.insert(symbol, path);
    }

    pub fn of(&self, symbol: u32) -> u32 {
        self.of.get(&symbol).copied().unwrap_or(NOWHERE)
    }

    fn get(&self, path: u32) -> (u32, u32) {
        path.checked_sub(1).map_or((NOWHERE, 0), |at| self.known[at as usize])
    }

    /// The frames both begin with.
    pub fn common(&self, mut a: u32, mut b: u32) -> u32 {
        while a != b {
            let (shorter_a, length_a) = self.get(a);
            let (shorter_b, length_b) = self.get(b);
            if length_a >= length_b {
                a = shorter_a;
            }
            if length_b >= length_a {
                b = shorter_b;
            }
        }
        a
    }

    pub fn memory(&self) -> usize {
        self.known.capacity() * 8 + self.longer.capacity() * 24 + self.of.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_their_beginnings_in_common() {
        let mut paths = Paths::default();
        [(0, &[1, 2, 3][..]), (1, &[1, 2]), (2, &[1, 5, 3]), (3, &[9])]
            .into_iter()
            .for_each(|(symbol, frames)| paths.define(symbol, frames));
        let length = |a, b| paths.get(paths.common(paths.of(a), paths.of(b))).1;
        assert_eq!((length(0, 0), length(0, 1), length(1, 2), length(2, 0)), (3, 2, 1, 1));
        assert_eq!((length(0, 3), length(0, 77)), (0, 0));
    }
}
