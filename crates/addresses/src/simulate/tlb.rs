//! Translation look-aside buffers: caches of pages. They see the same references as the caches, and change nothing for them.

use super::lines::Lines;
use super::{Geometry, Misfit, Policy, Type};
use crate::Batch;

/// A TLB as it is asked for: so many entries, ways, and bytes of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pages {
    pub entries: u64,
    pub ways: u64,
    pub page: u64,
}

impl Pages {
    /// The ways of one that is fully associative are its entries.
    pub fn new(entries: u64, ways: u64, page: u64) -> Result<Pages, Misfit> {
        if !page.is_power_of_two() || !(256..=1 << 40).contains(&page) {
            return Err(Misfit::Page(page));
        }
        // Entries are to sets as bytes are to lines, whatever the page; so they are checked with the shortest line.
        Geometry::new(entries.saturating_mul(4), ways, 4)?;
        Ok(Pages { entries, ways, page })
    }

    fn lines(&self) -> Result<Lines, Misfit> {
        Ok(Lines::new(&Geometry::new(self.entries.saturating_mul(4), self.ways, 4)?, Policy::Lru, 0))
    }
}

/// What happened to one TLB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lookups {
    /// By [`Type`]: read, write, fetch. At the first level references; at the second what the first lacked.
    pub accesses: [u64; 3],
    /// Of these. A reference misses if one of its pages does.
    pub misses: [u64; 3],
}

impl Lookups {
    /// What was counted since these were `before`.
    pub fn since(&self, before: &Lookups) -> Lookups {
        let less = |now: [u64; 3], before: [u64; 3]| std::array::from_fn(|n| now[n] - before[n]);
        Lookups { accesses: less(self.accesses, before.accesses), misses: less(self.misses, before.misses) }
    }
}

struct Buffer {
    pages: Pages,
    lines: Lines,
    shift: u32,
    /// The page that was used last needs no look.
    last: Option<u64>,
    lookups: Lookups,
}

impl Buffer {
    fn new(pages: Pages) -> Result<Buffer, Misfit> {
        let (lines, shift) = (pages.lines()?, pages.page.trailing_zeros());
        Ok(Buffer { pages, lines, shift, last: None, lookups: Lookups::default() })
    }

    /// Whether a page is there; from now on it is.
    fn look(&mut self, page: u64) -> bool {
        if self.last == Some(page) {
            return true;
        }
        self.last = Some(page);
        let hit = self.lines.find(page, false);
        if !hit {
            self.lines.insert(page, false);
        }
        hit
    }
}

/// TLBs for fetches and for data, and one behind both.
pub struct Tlbs {
    instructions: Option<Buffer>,
    data: Option<Buffer>,
    second: Option<Buffer>,
}

impl Tlbs {
    pub fn new(
        instructions: Option<Pages>,
        data: Option<Pages>,
        second: Option<Pages>,
    ) -> Result<Tlbs, Misfit> {
        let made = |pages: Option<Pages>| pages.map(Buffer::new).transpose();
        Ok(Tlbs { instructions: made(instructions)?, data: made(data)?, second: made(second)? })
    }

    /// The references of a batch, in order. Without sizes each is in one page.
    pub fn add(&mut self, batch: &Batch) {
        for (at, (&kind, &address)) in batch.kinds.iter().zip(&batch.addresses).enumerate() {
            let Some(kind) = Type::of(kind) else { continue };
            let first = match kind {
                Type::Fetch => &mut self.instructions,
                _ => &mut self.data,
            };
            let Some(first) = first else { continue };
            first.lookups.accesses[kind as usize] += 1;
            let size = batch.sizes.get(at).map_or(1, |size| u64::from(*size).max(1));
            let (from, offset) = (address >> first.shift, address & (first.pages.page - 1));
            let mut missed = false;
            for n in 0..=(offset + size - 1) >> first.shift {
                // After the last page comes the first.
                let page = from.wrapping_add(n) & (u64::MAX >> first.shift);
                if first.look(page) {
                    continue;
                }
                missed = true;
                if let Some(second) = &mut self.second {
                    second.lookups.accesses[kind as usize] += 1;
                    let hit = second.look((page << first.shift) >> second.shift);
                    second.lookups.misses[kind as usize] += u64::from(!hit);
                }
            }
            first.lookups.misses[kind as usize] += u64::from(missed);
        }
    }

    /// Forgets what was counted. The pages stay.
    pub fn reset(&mut self) {
        let all = [&mut self.instructions, &mut self.data, &mut self.second];
        all.into_iter().flatten().for_each(|buffer| buffer.lookups = Lookups::default());
    }

    /// With their names: `itlb`, `dtlb`, `l2tlb`.
    pub fn buffers(&self) -> Vec<(&'static str, Pages, Lookups)> {
        let all = [("itlb", &self.instructions), ("dtlb", &self.data), ("l2tlb", &self.second)];
        all.into_iter()
            .filter_map(|(name, buffer)| buffer.as_ref().map(|buffer| (name, buffer.pages, buffer.lookups)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fields, Reference};

    /// Kind, address and size of references.
    fn batch(references: &[(u8, u64, u16)]) -> Batch {
        let mut batch = Batch::new();
        for &(kind, address, size) in references {
            let reference = Reference { kind, address, size, ..Reference::default() };
            batch.push(Fields { sizes: true, ..Fields::NONE }, reference);
        }
        batch
    }

    #[test]
    fn by_hand() {
        let pages = |entries, ways| Some(Pages::new(entries, ways, 4096).unwrap());
        let mut tlbs = Tlbs::new(pages(1, 1), pages(2, 2), pages(8, 4)).unwrap();
        // Data: pages 0, 1, 0 again, 2 (which takes the place of 1), 1. Fetches: page 0, twice.
        tlbs.add(&batch(&[
            (0, 0, 4),
            (1, 0x1000, 4),
            (0, 0x800, 4),
            (2, 0, 4),
            (0, 0x2000, 4),
            (0, 0x1004, 4),
            (2, 8, 4),
        ]));
        let lookups = |accesses, misses| Lookups { accesses, misses };
        let found: Vec<(&str, Lookups)> =
            tlbs.buffers().into_iter().map(|(name, _, lookups)| (name, lookups)).collect();
        assert_eq!(found[0], ("itlb", lookups([0, 0, 2], [0, 0, 1])));
        assert_eq!(found[1], ("dtlb", lookups([4, 1, 0], [3, 1, 0])));
        // The second has 0 for the fetch, and 1 when it comes again: three reads, of 0, 2 and 1, lack two.
        assert_eq!(found[2], ("l2tlb", lookups([3, 1, 1], [2, 1, 0])));
        tlbs.reset();
        // Two pages at once: 2 is there, 3 is not, and the reference misses once.
        tlbs.add(&batch(&[(0, 0x2ffe, 4)]));
        assert_eq!(tlbs.buffers()[1].2, lookups([1, 0, 0], [1, 0, 0]));
        // Three pages at once are one miss: 5 and 6 are new, and so is 7.
        tlbs.add(&batch(&[(0, 0x5fff, 0x1002)]));
        assert_eq!(tlbs.buffers()[1].2, lookups([2, 0, 0], [2, 0, 0]));
        assert_eq!(tlbs.buffers()[2].2.accesses, [4, 0, 0]);
        // Over the last address: pages at the end and at the beginning.
        tlbs.add(&batch(&[(0, u64::MAX - 1, 4), (0, 0, 1)]));
        assert_eq!(tlbs.buffers()[1].2, lookups([4, 0, 0], [3, 0, 0]));
    }

    /// Without fetches or data there is nothing to translate; a longer page behind shorter ones covers many.
    #[test]
    fn huge_pages_behind_small_ones() {
        let small = Pages::new(4, 4, 4096).unwrap();
        let huge = Pages::new(2, 2, 2 << 20).unwrap();
        let mut tlbs = Tlbs::new(None, Some(small), Some(huge)).unwrap();
        let references: Vec<(u8, u64, u16)> = (0..16).map(|n| (0, n * 0x1000, 8)).collect();
        tlbs.add(&batch(&references));
        tlbs.add(&batch(&[(2, 0, 4)]));
        let buffers = tlbs.buffers();
        assert_eq!((buffers[0].2.misses, buffers[1].2.accesses), ([16, 0, 0], [16, 0, 0]));
        assert_eq!(buffers[1].2.misses, [1, 0, 0], "sixteen pages of 4K are in one of 2M");
    }

    #[test]
    fn what_is_none() {
        assert!(Pages::new(64, 4, 4096).is_ok() && Pages::new(1536, 12, 4096).is_ok());
        for (entries, ways, page) in [(0, 1, 4096), (64, 0, 4096), (64, 4, 5000), (64, 4, 64), (65, 4, 4096)]
        {
            assert!(Pages::new(entries, ways, page).is_err(), "{entries} {ways} {page}");
        }
    }
}
