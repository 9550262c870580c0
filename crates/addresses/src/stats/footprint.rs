//! How much memory a trace touches: different lines of 64 bytes and pages of 4 KiB.
//!
//! A page has as many lines as a word has bits, so each page that a kind of reference touches is one word in a table.
//! Memory goes by these pages and not by the references, up to a bound; what comes after that is not counted.

use refrain_fold::FastMap;

use crate::{Batch, KINDS};

pub const LINE: u64 = 64;
pub const PAGE: u64 = 4096;
/// Pages that are kept, of all kinds together: some 220 MB of them, while they are counted up.
pub const MOST_PAGES: usize = 1 << 22;
/// Pages of each kind that are at hand without a look into the table.
const RECENT: usize = 64;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Touched {
    pub lines: u64,
    pub pages: u64,
}

impl Touched {
    fn add(&mut self, lines: u64) {
        self.lines += u64::from(lines.count_ones());
        self.pages += 1;
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Footprint {
    pub kinds: [Touched; KINDS],
    pub all: Touched,
    /// Otherwise it is at least this.
    pub exact: bool,
}

pub(super) struct Pages {
    /// By page and kind, a bit for each line.
    lines: FastMap<u64, u64>,
    /// Page and lines that are not in the table yet; no lines where there is nothing.
    recent: Box<[[(u64, u64); RECENT]; KINDS]>,
    most: usize,
    exact: bool,
}

impl Pages {
    pub(super) fn new(most: usize) -> Pages {
        let recent = Box::new([[(0, 0); RECENT]; KINDS]);
        Pages { lines: FastMap::default(), recent, most, exact: true }
    }

    pub(super) fn add(&mut self, batch: &Batch) {
        for (i, (kind, address)) in batch.kinds.iter().zip(&batch.addresses).enumerate() {
            let kind = usize::from(*kind) % KINDS;
            let size = batch.sizes.get(i).map_or(1, |size| u64::from(*size).max(1));
            let first = address / LINE;
            // After the last address comes the first.
            for n in 0..=(address % LINE + size - 1) / LINE {
                self.touch(kind, (first + n) % (u64::MAX / LINE + 1));
            }
        }
    }

    #[inline]
    fn touch(&mut self, kind: usize, line: u64) {
        let (page, bit) = (line / (PAGE / LINE), 1 << (line % (PAGE / LINE)));
        let (at, lines) = &mut self.recent[kind][page as usize % RECENT];
        if *at == page {
            *lines |= bit;
            return;
        }
        let (at, lines) = std::mem::replace(&mut self.recent[kind][page as usize % RECENT], (page, bit));
        self.keep(kind, at, lines);
    }

    fn keep(&mut self, kind: usize, page: u64, lines: u64) {
        if lines == 0 {
            return;
        }
        let key = page * KINDS as u64 + kind as u64;
        if self.lines.len() < self.most {
            *self.lines.entry(key).or_default() |= lines;
        } else if let Some(known) = self.lines.get_mut(&key) {
            *known |= lines;
        } else {
            self.exact = false;
        }
    }

    pub(super) fn finish(mut self) -> Footprint {
        for kind in 0..KINDS {
            for (page, lines) in self.recent[kind] {
                self.keep(kind, page, lines);
            }
        }
        let mut kept: Vec<(u64, u64)> = self.lines.into_iter().collect();
        kept.sort_unstable();
        let mut out = Footprint { exact: self.exact, ..Footprint::default() };
        for page in kept.chunk_by(|a, b| a.0 / KINDS as u64 == b.0 / KINDS as u64) {
            for (key, lines) in page {
                out.kinds[*key as usize % KINDS].add(*lines);
            }
            out.all.add(page.iter().fold(0, |all, (_, lines)| all | lines));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fields, Reference};

    fn footprint(references: &[(u8, u64, u16)], most: usize) -> Footprint {
        let fields = Fields { sizes: true, ..Fields::NONE };
        let mut pages = Pages::new(most);
        // Batches of one, so that nothing depends on where they end.
        for &(kind, address, size) in references {
            let mut batch = Batch::new();
            batch.push(fields, Reference { kind, address, size, ..Reference::default() });
            pages.add(&batch);
        }
        pages.finish()
    }

    fn touched(lines: u64, pages: u64) -> Touched {
        Touched { lines, pages }
    }

    #[test]
    fn kinds_apart_and_together() {
        // Reads: lines 0 and 1 of page 0, line 0 of page 1. Writes: line 1 of page 0, line 63 of page 1.
        let found = footprint(
            &[(0, 0, 4), (0, 60, 4), (0, 64, 8), (1, 127, 1), (0, 4096, 4), (1, 8191, 1), (0, 3, 1)],
            MOST_PAGES,
        );
        assert_eq!(found.kinds[0], touched(3, 2));
        assert_eq!(found.kinds[1], touched(2, 2));
        assert_eq!(found.kinds[2], touched(0, 0));
        assert_eq!((found.all, found.exact), (touched(4, 2), true));
    }

    #[test]
    fn sizes_reach_into_other_lines_and_around_the_end() {
        assert_eq!(footprint(&[(0, 62, 2)], MOST_PAGES).all, touched(1, 1));
        assert_eq!(footprint(&[(0, 62, 3)], MOST_PAGES).all, touched(2, 1));
        assert_eq!(footprint(&[(0, 4095, 2)], MOST_PAGES).all, touched(2, 2));
        assert_eq!(footprint(&[(0, 0, 0)], MOST_PAGES).all, touched(1, 1));
        assert_eq!(footprint(&[(0, 1, u16::MAX)], MOST_PAGES).all, touched(1024, 16));
        let around = footprint(&[(0, u64::MAX, 2), (0, 5, 1)], MOST_PAGES);
        assert_eq!(around.all, touched(2, 2));
    }

    /// The same as a set of all lines says, with pages that push each other out.
    #[test]
    fn as_counted_one_by_one() {
        let mut random = fastrand::Rng::with_seed(7);
        let references: Vec<(u8, u64, u16)> =
            (0..20_000).map(|_| (random.u8(..4), random.u64(..1 << 22), 1)).collect();
        let count = |of: &dyn Fn(u8) -> bool| {
            let lines: std::collections::HashSet<u64> =
                references.iter().filter(|r| of(r.0)).map(|r| r.1 / LINE).collect();
            let pages: std::collections::HashSet<u64> = lines.iter().map(|line| line / 64).collect();
            touched(lines.len() as u64, pages.len() as u64)
        };
        let found = footprint(&references, MOST_PAGES);
        assert_eq!(found.all, count(&|_| true));
        for kind in 0..4 {
            assert_eq!(found.kinds[usize::from(kind)], count(&|k| k == kind));
        }
    }

    #[test]
    fn beyond_the_bound_it_is_at_least_so_much() {
        let references: Vec<(u8, u64, u16)> = (0..1000).map(|n| (0, n * PAGE, 1)).collect();
        let exact = footprint(&references, 1000);
        assert_eq!((exact.all, exact.exact), (touched(1000, 1000), true));
        let bounded = footprint(&references, 999);
        assert_eq!((bounded.all, bounded.exact), (touched(999, 999), false));
    }
}
