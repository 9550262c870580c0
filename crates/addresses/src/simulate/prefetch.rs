//! Prefetchers: which line they ask for, after a reference has been to a cache.

use refrain_fold::FastMap;

/// Bytes of the pages that stand for instructions, as a power of two.
const PAGE: u32 = 12;

/// Which line is fetched before it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefetch {
    /// The next one, after every reference.
    Always,
    /// The next one, after a miss.
    Miss,
    /// The next one, after a miss, and when a line that was prefetched is used for the first time (Gindele, 1977).
    Tagged,
    /// The one that an instruction will refer to if it goes on by the same distance, once it has done so twice (Chen and
    /// Baer, 1995). Where instructions are not known, each page of 4 KiB stands for one, as streams of data stay within pages.
    Stride,
}

impl Prefetch {
    pub const ALL: [Prefetch; 4] = [Prefetch::Always, Prefetch::Miss, Prefetch::Tagged, Prefetch::Stride];

    pub fn name(self) -> &'static str {
        match self {
            Prefetch::Always => "prefetch-always",
            Prefetch::Miss => "prefetch-miss",
            Prefetch::Tagged => "prefetch-tagged",
            Prefetch::Stride => "prefetch-stride",
        }
    }
}

/// What a reference did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) address: u64,
    /// Where it is known.
    pub(super) pc: Option<u64>,
    pub(super) hit: bool,
    /// The line had been prefetched, and was not used since.
    pub(super) first_use: bool,
}

/// A prefetcher with what it remembers.
#[derive(Debug)]
pub(super) struct Prefetcher {
    kind: Prefetch,
    shift: u32,
    /// By instruction or page: the last address, and the distance to the one before.
    strides: FastMap<(bool, u64), (u64, u64)>,
}

impl Prefetcher {
    /// For lines of two to the power of `shift` bytes.
    pub(super) fn new(kind: Prefetch, shift: u32) -> Prefetcher {
        Prefetcher { kind, shift, strides: FastMap::default() }
    }

    /// The line to fetch, if any.
    pub(super) fn wants(&mut self, seen: Seen) -> Option<u64> {
        let next = (seen.address >> self.shift).wrapping_add(1) & (u64::MAX >> self.shift);
        match self.kind {
            Prefetch::Always => Some(next),
            Prefetch::Miss => (!seen.hit).then_some(next),
            Prefetch::Tagged => (!seen.hit || seen.first_use).then_some(next),
            Prefetch::Stride => self.stride(seen),
        }
    }

    fn stride(&mut self, seen: Seen) -> Option<u64> {
        let Seen { address, pc, .. } = seen;
        let stream = (pc.is_some(), pc.unwrap_or(address >> PAGE));
        let (last, before) = self.strides.get(&stream).copied().unwrap_or((address, 0));
        let distance = address.wrapping_sub(last);
        self.strides.insert(stream, (address, distance));
        let line = address.wrapping_add(distance) >> self.shift;
        (distance != 0 && distance == before && line != address >> self.shift).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(address: u64, pc: u64, hit: bool, first_use: bool) -> Seen {
        Seen { address, pc: Some(pc), hit, first_use }
    }

    #[test]
    fn the_next_line() {
        // Lines of 16: 0x25 is in line 2, and the next is 3.
        let wants = |kind, hit, first_use| Prefetcher::new(kind, 4).wants(seen(0x25, 0, hit, first_use));
        assert_eq!(wants(Prefetch::Always, true, false), Some(3));
        assert_eq!(wants(Prefetch::Miss, true, true), None);
        assert_eq!(wants(Prefetch::Miss, false, false), Some(3));
        assert_eq!(wants(Prefetch::Tagged, true, false), None);
        assert_eq!(wants(Prefetch::Tagged, true, true), Some(3));
        assert_eq!(wants(Prefetch::Tagged, false, false), Some(3));
        // After the last line comes the first.
        assert_eq!(Prefetcher::new(Prefetch::Always, 4).wants(seen(u64::MAX, 0, true, false)), Some(0));
    }

    #[test]
    fn strides_of_two_instructions() {
        let mut prefetcher = Prefetcher::new(Prefetch::Stride, 4);
        let mut wants = |address, pc| prefetcher.wants(seen(address, pc, false, false));
        // 7 goes by 0x100, 8 goes back by 0x20; the third reference of each tells that it goes on.
        assert_eq!([wants(0x1000, 7), wants(0x8000, 8), wants(0x1100, 7), wants(0x7fe0, 8)], [None; 4]);
        assert_eq!(wants(0x1200, 7), Some(0x130));
        assert_eq!(wants(0x7fc0, 8), Some(0x7fa));
        // Elsewhere, and it begins anew.
        assert_eq!([wants(0x5000, 7), wants(0x5100, 7)], [None; 2]);
        assert_eq!(wants(0x5200, 7), Some(0x530));
        // Steps within a line need nothing; nor does one place.
        assert_eq!([wants(0x0, 9), wants(0x4, 9), wants(0x8, 9)], [None; 3]);
        assert_eq!(wants(0xc, 9), Some(1));
        assert_eq!([wants(0x90, 6), wants(0x90, 6), wants(0x90, 6)], [None; 3]);
    }

    #[test]
    fn strides_of_pages_where_instructions_are_not_known() {
        let mut prefetcher = Prefetcher::new(Prefetch::Stride, 4);
        let mut wants = |address| prefetcher.wants(Seen { address, pc: None, hit: false, first_use: false });
        // Two streams in turn, in two pages.
        assert_eq!([wants(0x1000), wants(0x8800), wants(0x1100), wants(0x87e0)], [None; 4]);
        assert_eq!(wants(0x1200), Some(0x130));
        assert_eq!(wants(0x87c0), Some(0x87a));
        // Another page is another stream, which may go beyond it.
        assert_eq!([wants(0x2e00), wants(0x2f00)], [None; 2]);
        assert_eq!(wants(0x1300), Some(0x140));
        // A page is no instruction, if its number is the same.
        let seen = Seen { address: 0x1400, pc: Some(1), hit: false, first_use: false };
        assert_eq!(prefetcher.wants(seen), None);
    }
}
