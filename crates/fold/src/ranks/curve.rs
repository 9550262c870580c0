//! Ranks along a Morton curve: the bits of a rank are those of its coordinates in turn, as where blocks of a grid are dealt out in
//! that order.
//!
//! ```
//! use refrain_fold::ranks::Curve;
//! let plane = Curve { axes: 2, bits: 4 };
//! // x is 3 (bits 0 and 2), y is 1 (bit 1).
//! assert_eq!(plane.seen(0b0111), 0b01_11);
//! // One further along x: beyond the edge it goes on at the other side.
//! assert_eq!(plane.rank(plane.moved(0b01_11, 1)), 0b0010);
//! ```

/// Bit i of a rank is bit `i / axes` of coordinate `i mod axes`. A rank is *seen* as its coordinates side by side, the first in the
/// lowest bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Curve {
    /// How many coordinates there are.
    pub axes: u32,
    /// Bits of a rank, at least as many as axes.
    pub bits: u32,
}

impl Curve {
    /// More have no rank.
    pub const MOST_BITS: u32 = 24;
    /// Grids have no more.
    pub const MOST_AXES: u32 = 3;

    /// Whether there is such a curve.
    pub fn is_sound(self) -> bool {
        (1..=Curve::MOST_AXES).contains(&self.axes) && (self.axes..=Curve::MOST_BITS).contains(&self.bits)
    }

    /// How many ranks it has.
    pub fn ranks(self) -> u32 {
        1 << self.bits
    }

    /// Where in what is seen the bits of a coordinate begin, and how many there are.
    fn place(self, axis: u32) -> (u32, u32) {
        let length = |axis: u32| (self.bits + self.axes - 1 - axis) / self.axes;
        ((0..axis).map(length).sum(), length(axis))
    }

    /// Where a rank of the curve is seen.
    pub fn seen(self, rank: u32) -> u32 {
        let mut seen = 0;
        for axis in 0..self.axes {
            let (start, length) = self.place(axis);
            for bit in 0..length {
                seen |= (rank >> (bit * self.axes + axis) & 1) << (start + bit);
            }
        }
        seen
    }

    /// Which rank is seen there.
    pub fn rank(self, seen: u32) -> u32 {
        let mut rank = 0;
        for axis in 0..self.axes {
            let (start, length) = self.place(axis);
            for bit in 0..length {
                rank |= (seen >> (start + bit) & 1) << (bit * self.axes + axis);
            }
        }
        rank
    }

    /// Each coordinate of `seen` further by that of `by`, around the grid.
    pub fn moved(self, seen: u32, by: u32) -> u32 {
        self.by_axis(seen, by, u32::wrapping_add)
    }

    /// What [`Curve::moved`] takes from one to the other.
    pub fn way(self, from: u32, to: u32) -> u32 {
        self.by_axis(to, from, u32::wrapping_sub)
    }

    fn by_axis(self, a: u32, b: u32, of: impl Fn(u32, u32) -> u32) -> u32 {
        (0..self.axes).fold(0, |all, axis| {
            let (start, length) = self.place(axis);
            all | (of(a >> start, b >> start) & ((1 << length) - 1)) << start
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Curve> {
        (1..=3).flat_map(|axes| (axes..=11).map(move |bits| Curve { axes, bits }))
    }

    #[test]
    fn a_curve_is_an_order_of_its_ranks() {
        for curve in all() {
            assert!(curve.is_sound());
            for rank in 0..curve.ranks() {
                assert!(curve.seen(rank) < curve.ranks());
                assert_eq!(curve.rank(curve.seen(rank)), rank, "{curve:?}");
            }
        }
        for (axes, bits) in [(0, 4), (4, 8), (3, 2), (2, 25), (1, 0)] {
            assert!(!Curve { axes, bits }.is_sound());
        }
    }

    #[test]
    fn ways_lead_there() {
        for curve in all().filter(|curve| curve.bits <= 7) {
            for from in 0..curve.ranks() {
                for to in 0..curve.ranks() {
                    let way = curve.way(from, to);
                    assert!(way < curve.ranks());
                    assert_eq!(curve.moved(from, way), to, "{curve:?}");
                }
            }
        }
    }

    /// As a program would compute it.
    #[test]
    fn neighbours_are_those_of_the_grid() {
        let curve = Curve { axes: 3, bits: 8 };
        for (x, y, z) in (0..8).flat_map(|x| (0..8).flat_map(move |y| (0..4).map(move |z| (x, y, z)))) {
            let block = |x: u32, y: u32, z: u32| {
                (0..3).fold(0, |block, bit| {
                    block
                        | (x >> bit & 1) << (3 * bit)
                        | (y >> bit & 1) << (3 * bit + 1)
                        | if bit < 2 { (z >> bit & 1) << (3 * bit + 2) } else { 0 }
                })
            };
            let here = curve.seen(block(x, y, z));
            assert_eq!(here, x | y << 3 | z << 6);
            assert_eq!(curve.rank(curve.moved(here, 1 << 3)), block(x, (y + 1) % 8, z));
            assert_eq!(curve.rank(curve.moved(here, 3 << 6)), block(x, y, (z + 3) % 4));
        }
    }
}
