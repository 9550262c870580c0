//! Where segments begin and end: two bits for every 16 bytes of address space that was ever allocated from.
//!
//! A segment sets the *begin* bit of its first granule and the *end* bit of its last. Both bits of a granule lie side by
//! side, so a small segment costs one atomic operation. No size is stored and the allocator is never asked: looking an
//! address up reads nothing but these bits, and is safe while other threads free what lies around it.
//!
//! Invariants
//! 1. A region, once in the table, stays there and stays mapped.
//! 2. The summary bits above a word are set before the first bit in it, and never cleared: they say "was ever used".
//! 3. Segments do not overlap, so the first mark after a begin is its end.

use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use crate::process::pages;

/// What allocators align to. Two smaller objects within one granule (some allocators have them) count as one.
const GRANULE_BITS: u32 = 4;
const REGION_BITS: u32 = 30;
/// User space on x86_64 and on common arm64 configurations. Beyond it nothing is followed.
const ADDRESS_BITS: u32 = 47;
const REGIONS: usize = 1 << (ADDRESS_BITS - REGION_BITS);
/// A word holds the marks of 32 granules: 512 bytes.
const WORD_BITS: u32 = GRANULE_BITS + 5;
const WORDS: usize = 1 << (REGION_BITS - WORD_BITS);

const BEGIN: u64 = 0b01;
const ENDS: u64 = 0xaaaa_aaaa_aaaa_aaaa;

/// The marks of one gibibyte. Mapped when first needed; the kernel gives only the touched pages real memory.
#[repr(C)]
struct Region {
    marks: [AtomicU64; WORDS],
    /// One bit for 64 words, 64 of those, and so on.
    used: [AtomicU64; WORDS / 64],
    used2: [AtomicU64; WORDS / 64 / 64],
    used3: [AtomicU64; WORDS / 64 / 64 / 64],
    /// For every word, how many granules the segment has that begins in it and ends beyond it: there is at most one.
    /// 0 where it has too many for the number; its end is searched for then.
    lengths: [AtomicU32; WORDS],
    /// One bit for every granule: a segment that begins here has a name.
    named: [AtomicU64; WORDS / 2],
}

pub struct Bitmap {
    regions: [AtomicPtr<Region>; REGIONS],
    present: [AtomicU64; REGIONS / 64],
}

impl Default for Bitmap {
    fn default() -> Self {
        Self::new()
    }
}

/// A mark's place: the number of its granule in the address space, doubled, plus one for an end.
type Position = usize;

fn begins(position: Position) -> bool {
    position & 1 == 0
}

fn address(position: Position) -> usize {
    (position >> 1) << GRANULE_BITS
}

impl Bitmap {
    pub const fn new() -> Self {
        Self {
            regions: [const { AtomicPtr::new(null_mut()) }; REGIONS],
            present: [const { AtomicU64::new(0) }; REGIONS / 64],
        }
    }

    /// One on the heap, made there: it is too large for a thread's stack.
    #[cfg(test)]
    pub fn boxed() -> Box<Self> {
        // SAFETY: all zeroes are an empty bitmap, and the memory is the global allocator's, of this layout.
        unsafe { Box::from_raw(std::alloc::alloc_zeroed(std::alloc::Layout::new::<Self>()).cast()) }
    }

    /// A segment of `size` bytes now begins at `start`.
    #[inline]
    pub fn insert(&self, start: usize, size: usize) {
        let last = start + size.max(1) - 1;
        if last >> ADDRESS_BITS != 0 {
            return;
        }
        let begin = BEGIN << bit(start);
        let end = (BEGIN << 1) << bit(last);
        if start >> WORD_BITS == last >> WORD_BITS {
            self.set(start, begin | end);
        } else {
            // The end first: a begin without an end would reach into whatever comes after it.
            self.set(last, end);
            let granules = (last >> GRANULE_BITS) - (start >> GRANULE_BITS) + 1;
            if let Some(region) = self.set(start, begin) {
                region.lengths[word(start)].store(u32::try_from(granules).unwrap_or(0), Relaxed);
            }
        }
    }

    #[inline]
    fn set(&self, address: usize, bits: u64) -> Option<&Region> {
        let number = address >> REGION_BITS;
        let region = self.region(number).or_else(|| self.create(number))?;
        let word = word(address);
        if region.used[word >> 6].load(Relaxed) & 1 << (word & 63) == 0 {
            region.mark_used(word);
        }
        region.marks[word].fetch_or(bits, AcqRel);
        Some(region)
    }

    /// The segment at `start` is about to be released. True if it had a name.
    #[inline]
    pub fn remove(&self, start: usize) -> bool {
        let Some(region) = self.region(start >> REGION_BITS) else { return false };
        let begin = BEGIN << bit(start);
        let marks = &region.marks[word(start)];
        let seen = marks.load(Relaxed);
        if seen & begin == 0 {
            return false;
        }
        let ends = seen & ENDS & !(begin - 1);
        if ends != 0 {
            marks.fetch_and(!(begin | 1 << ends.trailing_zeros()), AcqRel);
        } else {
            let end = self.end_beyond(region, start);
            marks.fetch_and(!begin, AcqRel);
            if let Some(end) = end {
                self.clear(end);
            }
        }
        let (names, name) = region.name(start);
        names.load(Relaxed) & name != 0 && names.fetch_and(!name, AcqRel) & name != 0
    }

    /// Where the segment ends that begins at `start` and leaves its word.
    fn end_beyond(&self, region: &Region, start: usize) -> Option<Position> {
        match region.lengths[word(start)].load(Relaxed) as usize {
            0 => self.next(position_of(start) + 1).filter(|&p| !begins(p)),
            granules => Some(position_of(start) + 2 * (granules - 1) + 1),
        }
    }

    fn clear(&self, position: Position) {
        if let Some(region) = self.region(address(position) >> REGION_BITS) {
            region.marks[word(address(position))].fetch_and(!(1 << (position & 63)), AcqRel);
        }
    }

    /// The start of the segment that holds `pointer`, or that ends exactly there.
    pub fn find(&self, pointer: usize) -> Option<usize> {
        if pointer >> ADDRESS_BITS != 0 {
            return None;
        }
        let end_here = position_of(pointer) + 1;
        let mark = self.previous(end_here)?;
        let begin = if begins(mark) {
            mark
        } else {
            // An end in this very granule, or in the one before a pointer just past it; else it lies outside.
            let touches =
                mark == end_here || (mark + 2 == end_here && pointer.is_multiple_of(1 << GRANULE_BITS));
            touches.then_some(())?;
            self.previous(mark - 1).filter(|&p| begins(p))?
        };
        Some(address(begin))
    }

    /// The length of the segment at `start`, in whole granules.
    pub fn length(&self, start: usize) -> Option<usize> {
        let region = self.region(start >> REGION_BITS)?;
        let begin = BEGIN << bit(start);
        let seen = region.marks[word(start)].load(Acquire);
        if seen & begin == 0 {
            return None;
        }
        let end = match seen & ENDS & !(begin - 1) {
            0 => self.end_beyond(region, start)?,
            ends => (position_of(start) & !63) + ends.trailing_zeros() as usize,
        };
        Some(address(end) + (1 << GRANULE_BITS) - start)
    }

    /// Remembers that the segment at `start` has a name, for `remove` to say so.
    pub fn set_named(&self, start: usize) {
        if let Some(region) = self.region(start >> REGION_BITS) {
            let (names, name) = region.name(start);
            names.fetch_or(name, AcqRel);
        }
    }

    pub fn is_named(&self, start: usize) -> bool {
        self.region(start >> REGION_BITS).is_some_and(|region| {
            let (names, name) = region.name(start);
            names.load(Acquire) & name != 0
        })
    }

    #[inline]
    fn region(&self, number: usize) -> Option<&Region> {
        let region = self.regions.get(number)?.load(Acquire);
        // SAFETY: null, or a mapping of a whole zeroed `Region`, which no bit pattern is invalid for (invariant 1).
        unsafe { region.as_ref() }
    }

    #[cold]
    #[inline(never)]
    fn create(&self, number: usize) -> Option<&Region> {
        let slot = self.regions.get(number)?;
        let fresh = pages::map_sparse(size_of::<Region>())?.cast::<Region>();
        if slot.compare_exchange(null_mut(), fresh.as_ptr(), AcqRel, Acquire).is_err() {
            // Another thread was first.
            // SAFETY: mapped above, and nobody has seen it.
            unsafe { pages::unmap(fresh.cast(), size_of::<Region>()) };
        }
        self.present[number >> 6].fetch_or(1 << (number & 63), AcqRel);
        self.region(number)
    }

    /// The last mark at or before `position`.
    fn previous(&self, position: Position) -> Option<Position> {
        let mut number = address(position) >> REGION_BITS;
        let word = word(address(position));
        if let Some(region) = self.region(number) {
            let here = region.marks[word].load(Acquire) & up_to(position & 63);
            if here != 0 {
                return Some((position & !63) + highest(here));
            }
            if let Some(found) = word.checked_sub(1).and_then(|word| region.previous(word)) {
                return Some(join(number, found));
            }
        }
        loop {
            number = previous_bit(&self.present, number.checked_sub(1)?)?;
            if let Some(found) = self.region(number).and_then(|region| region.previous(WORDS - 1)) {
                return Some(join(number, found));
            }
        }
    }

    /// The first mark at or after `position`.
    fn next(&self, position: Position) -> Option<Position> {
        let mut number = address(position) >> REGION_BITS;
        let word = word(address(position));
        if let Some(region) = self.region(number) {
            let here = region.marks[word].load(Acquire) & u64::MAX << (position & 63);
            if here != 0 {
                return Some((position & !63) + here.trailing_zeros() as usize);
            }
            if let Some(found) = region.next(word + 1) {
                return Some(join(number, found));
            }
        }
        loop {
            number = next_bit(&self.present, number + 1)?;
            if let Some(found) = self.region(number).and_then(|region| region.next(0)) {
                return Some(join(number, found));
            }
        }
    }
}

impl Region {
    #[cold]
    fn mark_used(&self, word: usize) {
        // From the top, so that whoever sees a lower bit can have found it from above (invariant 2).
        self.used3[word >> 18].fetch_or(1 << (word >> 12 & 63), AcqRel);
        self.used2[word >> 12].fetch_or(1 << (word >> 6 & 63), AcqRel);
        self.used[word >> 6].fetch_or(1 << (word & 63), AcqRel);
    }

    #[inline]
    fn name(&self, start: usize) -> (&AtomicU64, u64) {
        let granule = (start & ((1 << REGION_BITS) - 1)) >> GRANULE_BITS;
        (&self.named[granule >> 6], 1 << (granule & 63))
    }

    /// The last mark in words `0..=word`, as its position in the region.
    fn previous(&self, mut word: usize) -> Option<usize> {
        loop {
            word = match previous_in(&self.used[word >> 6], word) {
                Some(word) => word,
                None => {
                    let above = (word >> 6).checked_sub(1)?;
                    word = self.previous_used(above)? << 6 | 63;
                    continue;
                }
            };
            let marks = self.marks[word].load(Acquire);
            if marks != 0 {
                return Some(word * 64 + highest(marks));
            }
            word = word.checked_sub(1)?;
        }
    }

    /// The last word of `used` in `0..=index` with a bit in it.
    fn previous_used(&self, index: usize) -> Option<usize> {
        if let Some(found) = previous_in(&self.used2[index >> 6], index) {
            return Some(found);
        }
        let above = previous_bit(&self.used3, (index >> 6).checked_sub(1)?)?;
        previous_in(&self.used2[above], above << 6 | 63)
    }

    /// The first mark in words `word..`, as its position in the region.
    fn next(&self, mut word: usize) -> Option<usize> {
        while word < WORDS {
            word = match next_in(&self.used[word >> 6], word) {
                Some(word) => word,
                None => {
                    word = self.next_used((word >> 6) + 1)? << 6;
                    continue;
                }
            };
            let marks = self.marks[word].load(Acquire);
            if marks != 0 {
                return Some(word * 64 + marks.trailing_zeros() as usize);
            }
            word += 1;
        }
        None
    }

    fn next_used(&self, index: usize) -> Option<usize> {
        if let Some(found) = next_in(self.used2.get(index >> 6)?, index) {
            return Some(found);
        }
        let above = next_bit(&self.used3, (index >> 6) + 1)?;
        next_in(&self.used2[above], above << 6)
    }
}

#[inline]
fn word(address: usize) -> usize {
    (address >> WORD_BITS) & (WORDS - 1)
}

/// Where in its word the begin mark of an address is.
#[inline]
fn bit(address: usize) -> usize {
    (address >> GRANULE_BITS & 31) * 2
}

#[inline]
fn position_of(address: usize) -> Position {
    address >> GRANULE_BITS << 1
}

fn join(region: usize, position: usize) -> Position {
    (region << (REGION_BITS - GRANULE_BITS + 1)) + position
}

fn up_to(bit: usize) -> u64 {
    u64::MAX >> (63 - bit)
}

fn highest(bits: u64) -> usize {
    63 - bits.leading_zeros() as usize
}

/// The last set bit of one word, at or before bit number `index` of the whole array.
fn previous_in(word: &AtomicU64, index: usize) -> Option<usize> {
    let bits = word.load(Acquire) & up_to(index & 63);
    (bits != 0).then(|| (index & !63) + highest(bits))
}

fn next_in(word: &AtomicU64, index: usize) -> Option<usize> {
    let bits = word.load(Acquire) & u64::MAX << (index & 63);
    (bits != 0).then(|| (index & !63) + bits.trailing_zeros() as usize)
}

fn previous_bit(words: &[AtomicU64], index: usize) -> Option<usize> {
    let first = previous_in(words.get(index >> 6)?, index);
    first.or_else(|| (0..index >> 6).rev().find_map(|i| previous_in(&words[i], i << 6 | 63)))
}

fn next_bit(words: &[AtomicU64], index: usize) -> Option<usize> {
    let first = next_in(words.get(index >> 6)?, index);
    first.or_else(|| ((index >> 6) + 1..words.len()).find_map(|i| next_in(&words[i], i << 6)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use proptest::test_runner::{RngSeed, TestRunner};
    use std::cell::Cell;
    use std::collections::BTreeMap;

    const GIB: usize = 1 << REGION_BITS;

    /// Words: `+start:size` inserts, `-start` removes, `?pointer` looks up. Numbers are hexadecimal.
    fn check(steps: &str, expected: &str) {
        let bitmap = Bitmap::boxed();
        let number = |text: &str| usize::from_str_radix(text, 16).unwrap();
        let mut found = Vec::new();
        for step in steps.split(' ') {
            match step.split_at(1) {
                ("+", segment) => {
                    let (start, size) = segment.split_once(':').unwrap();
                    bitmap.insert(number(start), number(size));
                }
                ("-", start) => {
                    bitmap.remove(number(start));
                }
                (_, pointer) => found
                    .push(bitmap.find(number(pointer)).map_or("none".into(), |start| format!("{start:x}"))),
            }
        }
        assert_eq!(found.join(" "), expected, "for {steps:?}");
    }

    #[test]
    fn pointers_find_their_segments() {
        check("?1000", "none");
        check("+1000:1 ?1000 ?100f ?1010 ?1011", "1000 1000 1000 none");
        check("+1000:0 ?1000", "1000");
        check("+1000:18 +1020:18 ?1017 ?1020 ?103f ?1050", "1000 1020 1020 none");
        check("+1000:10 +1010:10 ?100f ?1010 ?101f", "1000 1010 1010");
        check("+1000:5000 ?1000 ?5fff ?6000 ?6001 ?6010", "1000 1000 1000 none none");
        check("+1000:5000 -1000 ?1000 ?3000", "none none");
        check("+1000:5000 -1000 +2000:10 ?2000 ?2011 ?5fff", "2000 none none");
        check("+1000:10 +2000:10 -2000 ?2000 -1000 ?1000", "none none");
        check("+1000:10 -1008 ?1000", "none");
        check("-1000 ?1000", "none");
    }

    #[test]
    fn segments_cross_regions() {
        check("+3ffffff0:20 ?3ffffff0 ?40000000 ?40000010 ?40000011", "3ffffff0 3ffffff0 3ffffff0 none");
        check("+10000000:c0000000 ?90000000 ?cfffffff ?d0000001", "10000000 10000000 none");
        check("+10000000:c0000000 -10000000 ?90000000 ?cfffffff", "none none");
        // More granules than `lengths` can say.
        check("+10000000:2000000000 -10000000 ?10000000 ?1f00000000 ?200fffffff", "none none none");
        check("+555500001000:20 ?7fff00000000", "none");
        check("+7ffffffffff0:10 ?7fffffffffff ?800000000000", "7ffffffffff0 none");
        check("+7ffffffffff0:20 ?7ffffffffff0 +ffffffffffff0000:10 ?ffffffffffff0000", "none none");
    }

    #[test]
    fn names_are_told_once() {
        let bitmap = Bitmap::boxed();
        bitmap.insert(0x1000, 64);
        bitmap.set_named(0x1000);
        assert!(bitmap.is_named(0x1000) && !bitmap.is_named(0x1010));
        assert!(bitmap.remove(0x1000));
        bitmap.insert(0x1000, 64);
        assert!(!bitmap.is_named(0x1000) && !bitmap.remove(0x1000));
    }

    #[test]
    fn lengths_are_whole_granules() {
        let bitmap = Bitmap::boxed();
        for (start, size, length) in
            [(0x1000, 1, 16), (0x2000, 16, 16), (0x3000, 17, 32), (GIB - 16, 3 * GIB, 3 * GIB)]
        {
            bitmap.insert(start, size);
            assert_eq!(bitmap.length(start), Some(length));
        }
        assert_eq!(bitmap.length(0x1010), None);
    }

    #[derive(Debug, Clone, Copy)]
    enum Does {
        Insert(usize),
        Remove,
        Find(usize),
    }

    const MIB: usize = 1 << 20;

    fn does(sizes: &'static [usize]) -> impl Strategy<Value = Does> {
        let find = (0..16usize).prop_map(Does::Find);
        prop_oneof![3 => select(sizes).prop_map(Does::Insert), 2 => Just(Does::Remove), 3 => find]
    }

    /// What is done somewhere: mostly among neighbours around a gibibyte's end; else megabytes apart, so that searches pass
    /// over empty words of all summaries.
    fn step() -> impl Strategy<Value = (usize, Does)> {
        let near = (0..0x8000usize).prop_map(|granule| GIB - 0x40000 + 16 * granule);
        let far = (0..2 * GIB / (3 * MIB)).prop_map(|place| 3 * MIB * place);
        prop_oneof![
            3 => (near, does(&[1, 16, 24, 100, 512, 700, 5000, 70_000])),
            1 => (far, does(&[16, 70_000, 7 * MIB, 50 * MIB, 300 * MIB])),
        ]
    }

    fn seeded(cases: u32) -> ProptestConfig {
        let rng_seed = RngSeed::Fixed(1);
        ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
    }

    /// How many pointers were found, and how many of these so far behind their segment's start that only this summary knows
    /// it.
    #[derive(Debug, Default, Clone, Copy)]
    struct Found {
        all: usize,
        by_used2: usize,
        by_used3: usize,
    }

    impl Found {
        fn count(&mut self, behind: usize) {
            self.all += 1;
            self.by_used2 += usize::from((2 * MIB..128 * MIB).contains(&behind));
            self.by_used3 += usize::from(behind >= 128 * MIB);
        }
    }

    fn as_an_ordered_map(steps: &[(usize, Does)], found: &mut Found) {
        let bitmap = Bitmap::boxed();
        let mut model: BTreeMap<usize, usize> = BTreeMap::new();
        for &(at, does) in steps {
            let below = model
                .range(..=at)
                .next_back()
                .map(|(&start, &size)| (start, start + size.next_multiple_of(16)));
            match does {
                Does::Insert(size) => {
                    let free = below.is_none_or(|(_, end)| end <= at)
                        && model.range(at..).next().is_none_or(|(&next, _)| at + size <= next);
                    if free {
                        bitmap.insert(at, size);
                        model.insert(at, size);
                    }
                }
                Does::Remove => {
                    if let Some((start, _)) = below {
                        bitmap.remove(start);
                        model.remove(&start);
                    }
                }
                Does::Find(inside) => {
                    let pointer = at + inside;
                    let expected = below.filter(|&(_, end)| pointer <= end).map(|(start, _)| start);
                    assert_eq!(bitmap.find(pointer), expected, "{pointer:x}");
                    assert_eq!(
                        expected.and_then(|start| bitmap.length(start)),
                        expected.map(|start| model[&start].next_multiple_of(16))
                    );
                    if let Some(start) = expected {
                        found.count(pointer - start);
                    }
                }
            }
        }
    }

    fn agree(cases: u32, steps: usize) -> Found {
        let found = Cell::new(Found::default());
        let outcome = TestRunner::new(seeded(cases)).run(&vec(step(), steps), |steps| {
            let mut more = found.get();
            as_an_ordered_map(&steps, &mut more);
            found.set(more);
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{error}"));
        found.get()
    }

    /// Short histories, which proptest makes shorter where one fails.
    #[test]
    fn agrees_with_an_ordered_map() {
        let found = agree(100, 400);
        assert!(found.all > 500 && found.by_used2 > 100 && found.by_used3 > 50, "{found:?}");
    }

    /// One map that lives long: most words were in use before.
    #[test]
    fn agrees_with_an_ordered_map_for_long() {
        let found = agree(1, 40_000);
        assert!(found.all > 1000 && found.by_used2 > 10, "{found:?}");
    }
}
