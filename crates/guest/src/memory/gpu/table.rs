//! The live allocations of GPU runtimes: a small table, because they are slow to make and so programs make few.
//!
//! Lock-free, for the reasons given in `freed`. What finds no room is asked of the driver, or else is memory nobody saw
//! being allocated.
//!
//! Invariants
//! 1. A free entry has start 0 and end 0; the start is set first and cleared last.
//! 2. Whoever takes `end` to 0 owns the entry until it clears the start.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use crate::memory::area::Area;

const ENTRIES: usize = 4096;
/// Runtimes align to 256 bytes or more; the lower bits of a segment's key say what it is.
const ALIGNMENT: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub start: usize,
    pub end: usize,
    pub area: Area,
    pub device: u32,
    /// What the driver knows it by, plus one, where no hook saw it being allocated and none will see it go; otherwise 0.
    pub id: u64,
}

struct Entry {
    start: AtomicUsize,
    end: AtomicUsize,
    /// The area, and from bit 8 on the device.
    what: AtomicU64,
    id: AtomicU64,
    named: AtomicBool,
}

pub struct SegmentTable {
    entries: [Entry; ENTRIES],
    /// No entry at or after this one was ever used.
    used: AtomicUsize,
}

impl Default for SegmentTable {
    fn default() -> Self {
        Self::new()
    }
}

impl SegmentTable {
    pub const fn new() -> Self {
        Self {
            entries: [const {
                Entry {
                    start: AtomicUsize::new(0),
                    end: AtomicUsize::new(0),
                    what: AtomicU64::new(0),
                    id: AtomicU64::new(0),
                    named: AtomicBool::new(false),
                }
            }; ENTRIES],
            used: AtomicUsize::new(0),
        }
    }

    fn live(&self) -> &[Entry] {
        &self.entries[..self.used.load(Acquire).min(ENTRIES)]
    }

    /// What overlaps it has gone without our seeing it; `gone` is told of those that had a name.
    pub fn insert(&self, segment: Segment, mut gone: impl FnMut(Segment)) {
        let Segment { start, end, area, device, id } = segment;
        if start == 0 || !start.is_multiple_of(ALIGNMENT) || end <= start {
            return;
        }
        for entry in self.live() {
            if let Some(old) = entry.read()
                && old.start < end
                && start < old.end
            {
                entry.clear(old, &mut gone);
            }
        }
        for (i, entry) in self.entries.iter().enumerate() {
            if entry.start.load(Relaxed) == 0
                && entry.start.compare_exchange(0, start, AcqRel, Relaxed).is_ok()
            {
                entry.named.store(false, Relaxed);
                entry.what.store(u64::from(device) << 8 | area as u64, Relaxed);
                entry.id.store(id, Relaxed);
                entry.end.store(end, Release);
                self.used.fetch_max(i + 1, AcqRel);
                return;
            }
        }
    }

    /// The segment at `start` is about to be released; `gone` is told if it had a name.
    pub fn remove(&self, start: usize, gone: impl FnMut(Segment)) {
        if let Some((entry, segment)) = self.at(start) {
            entry.clear(segment, gone);
        }
    }

    /// Forgets the segments that no hook saw being allocated and that are not `alive` any more.
    pub fn sweep(&self, alive: impl Fn(Segment) -> bool, mut gone: impl FnMut(Segment)) {
        for entry in self.live() {
            if let Some(segment) = entry.read()
                && segment.id != 0
                && !alive(segment)
            {
                entry.clear(segment, &mut gone);
            }
        }
    }

    /// The segment that holds `pointer`.
    pub fn find(&self, pointer: usize) -> Option<Segment> {
        self.live().iter().filter_map(Entry::read).find(|s| s.start <= pointer && pointer < s.end)
    }

    pub fn set_named(&self, start: usize) {
        if let Some((entry, _)) = self.at(start) {
            entry.named.store(true, Release);
        }
    }

    pub fn is_named(&self, start: usize) -> bool {
        self.at(start).is_some_and(|(entry, _)| entry.named.load(Acquire))
    }

    fn at(&self, start: usize) -> Option<(&Entry, Segment)> {
        let here = |entry: &&Entry| start != 0 && entry.start.load(Acquire) == start;
        self.live().iter().filter(here).find_map(|entry| Some((entry, entry.read()?)))
    }
}

impl Entry {
    fn read(&self) -> Option<Segment> {
        let start = self.start.load(Acquire);
        let end = self.end.load(Acquire);
        if start == 0 || end == 0 {
            return None;
        }
        let (what, id) = (self.what.load(Acquire), self.id.load(Acquire));
        // Another segment moved in meanwhile: then the one we began to read is gone.
        if self.start.load(Acquire) != start {
            return None;
        }
        Some(Segment { start, end, area: Area::from_number(what as u8)?, device: (what >> 8) as u32, id })
    }

    fn clear(&self, segment: Segment, mut gone: impl FnMut(Segment)) {
        if self.end.compare_exchange(segment.end, 0, AcqRel, Relaxed).is_err() {
            return;
        }
        if self.named.swap(false, AcqRel) {
            gone(segment);
        }
        self.start.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words, in hexadecimal: `+start:size:device`, `!start` names, `-start`, `?pointer`.
    fn check(steps: &str, expected: &str) {
        let table = Box::new(SegmentTable::new());
        let mut said = Vec::new();
        for step in steps.split(' ') {
            let (what, rest) = step.split_at(1);
            let mut numbers = rest.split(':').map(|n| usize::from_str_radix(n, 16).unwrap());
            let start = numbers.next().unwrap();
            match what {
                "+" => {
                    let end = start + numbers.next().unwrap();
                    let device = numbers.next().unwrap_or(0) as u32;
                    let segment = Segment { start, end, area: Area::Gpu, device, id: 0 };
                    table.insert(segment, |old| said.push(format!("lost{:x}", old.start)));
                }
                "!" => table.set_named(start),
                "-" => table.remove(start, |old| said.push(format!("gone{:x}", old.start))),
                _ => said.push(
                    table.find(start).map_or("none".into(), |s| format!("{:x}@{:x}", s.start, s.device)),
                ),
            }
        }
        assert_eq!(said.join(" "), expected, "for {steps:?}");
    }

    #[test]
    fn segments_come_and_go_to_the_byte() {
        check("?100", "none");
        check("+100:64:2 ?ff ?100 ?163 ?164", "none 100@2 100@2 none");
        check("+100:100:1 +200:100:0 ?1ff ?200", "100@1 200@0");
        check("+100:64 -100 ?100", "none");
        check("+100:64 !100 -110 -100 -100", "gone100");
        check("+100:64 !100 -100 +100:64:3 -100 ?100", "gone100 none");
        check("+108:64 ?110 +200:0 ?200", "none none");
    }

    #[test]
    fn what_is_overlapped_was_freed_unseen() {
        check("+100:100 !100 +180:10:1 ?100 ?180", "lost100 none 180@1");
        check("+100:100 +100:100:5 ?100 -100 ?100", "100@5 none");
        check("+100:100 !100 +200:100 ?1ff", "100@0");
    }

    #[test]
    fn a_full_table_forgets_the_rest_only() {
        let table = Box::new(SegmentTable::new());
        let segment = |i| Segment { start: i * 256, end: i * 256 + 16, area: Area::Pinned, device: 0, id: 0 };
        (1..=ENTRIES + 9).for_each(|i| table.insert(segment(i), |_| panic!("none overlap")));
        assert_eq!(table.find(ENTRIES * 256), Some(segment(ENTRIES)));
        assert_eq!(table.find((ENTRIES + 1) * 256), None);
        table.remove(256, |_| panic!("it has no name"));
        table.insert(segment(ENTRIES + 1), |_| panic!("none overlap"));
        assert_eq!(table.find((ENTRIES + 1) * 256), Some(segment(ENTRIES + 1)));
    }

    /// A reader sees a segment whole or not at all.
    #[test]
    fn segments_are_not_mixed_up() {
        let table = Box::leak(Box::new(SegmentTable::new()));
        let done = &*Box::leak(Box::new(AtomicBool::new(false)));
        let table: &SegmentTable = table;
        let writer = std::thread::spawn(move || {
            for i in (0..60_000_usize).map(|i| i % 7 + 1) {
                let start = i << 16;
                table.insert(
                    Segment { start, end: start + i * 16, area: Area::Gpu, device: i as u32, id: 0 },
                    |_| {},
                );
                table.remove(start, |_| {});
            }
            done.store(true, Release);
        });
        while !done.load(Acquire) {
            for i in 1..8_usize {
                if let Some(found) = table.find((i << 16) + 15) {
                    assert_eq!(
                        (found.start, found.end, found.device),
                        (i << 16, (i << 16) + i * 16, i as u32)
                    );
                }
            }
        }
        writer.join().unwrap();
    }
}
