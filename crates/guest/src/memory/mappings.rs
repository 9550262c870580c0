//! What the program mapped with `mmap`: a small table, because programs map rarely and look up through a cache.
//!
//! Lock-free, for the reasons given in `freed`. A program with more live mappings than the table has room for has the
//! others recorded as memory nobody saw being allocated.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

const ENTRIES: usize = 4096;
const PAGE: usize = 4096;

struct Entry {
    /// 0: free.
    start: AtomicUsize,
    /// 0: being filled in.
    end: AtomicUsize,
    named: AtomicBool,
}

pub struct Mappings {
    entries: [Entry; ENTRIES],
    /// No entry at or after this one was ever used.
    used: AtomicUsize,
}

impl Default for Mappings {
    fn default() -> Self {
        Self::new()
    }
}

impl Mappings {
    pub const fn new() -> Self {
        Self {
            entries: [const {
                Entry { start: AtomicUsize::new(0), end: AtomicUsize::new(0), named: AtomicBool::new(false) }
            }; ENTRIES],
            used: AtomicUsize::new(0),
        }
    }

    fn live(&self) -> &[Entry] {
        &self.entries[..self.used.load(Acquire).min(ENTRIES)]
    }

    pub fn insert(&self, start: usize, length: usize) {
        let Some(end) = start.checked_add(length.next_multiple_of(PAGE)) else { return };
        for (i, entry) in self.entries.iter().enumerate() {
            if entry.start.load(Relaxed) == 0
                && entry.start.compare_exchange(0, start, AcqRel, Relaxed).is_ok()
            {
                entry.named.store(false, Relaxed);
                entry.end.store(end, Release);
                self.used.fetch_max(i + 1, AcqRel);
                return;
            }
        }
    }

    /// That range is about to be unmapped. `gone` is told the start of every named mapping that loses any of its memory;
    /// what is left of a mapping is a new one.
    pub fn remove(&self, start: usize, length: usize, mut gone: impl FnMut(usize)) {
        let Some(end) = start.checked_add(length.next_multiple_of(PAGE)) else { return };
        for entry in self.live() {
            let (first, last) = (entry.start.load(Acquire), entry.end.load(Acquire));
            if first == 0 || last <= start || end <= first {
                continue;
            }
            if entry.named.swap(false, AcqRel) {
                gone(first);
            }
            entry.end.store(0, Release);
            entry.start.store(0, Release);
            if first < start {
                self.insert(first, start - first);
            }
            if end < last {
                self.insert(end, last - end);
            }
        }
    }

    /// The start of the mapping that holds `pointer`.
    pub fn find(&self, pointer: usize) -> Option<usize> {
        let holding = |entry: &&Entry| {
            let start = entry.start.load(Acquire);
            start != 0 && start <= pointer && pointer < entry.end.load(Acquire)
        };
        self.live().iter().find(holding).map(|entry| entry.start.load(Acquire))
    }

    pub fn set_named(&self, start: usize) {
        if let Some(entry) = self.at(start) {
            entry.named.store(true, Release);
        }
    }

    pub fn is_named(&self, start: usize) -> bool {
        self.at(start).is_some_and(|entry| entry.named.load(Acquire))
    }

    fn at(&self, start: usize) -> Option<&Entry> {
        self.live().iter().find(|entry| entry.start.load(Acquire) == start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words: `+start:pages`, `!start` names, `-start:pages`, `?page`; in pages. Removals print the names that went.
    fn check(steps: &str, expected: &str) {
        let mappings = Box::new(Mappings::new());
        let page = |text: &str| text.parse::<usize>().unwrap() * PAGE;
        let mut said = Vec::new();
        for step in steps.split(' ') {
            let (what, rest) = step.split_at(1);
            let (start, pages) = rest.split_once(':').unwrap_or((rest, "0"));
            match what {
                "+" => mappings.insert(page(start), page(pages) - 1),
                "!" => mappings.set_named(page(start)),
                "-" => mappings
                    .remove(page(start), page(pages), |gone| said.push(format!("gone{}", gone / PAGE))),
                _ => {
                    said.push(mappings.find(page(start)).map_or("none".into(), |at| (at / PAGE).to_string()))
                }
            }
        }
        assert_eq!(said.join(" "), expected, "for {steps:?}");
    }

    #[test]
    fn mappings_come_go_and_fall_apart() {
        check("?1", "none");
        check("+1:4 ?0 ?1 ?4 ?5", "none 1 1 none");
        check("+1:4 +5:2 ?4 ?5", "1 5");
        check("+1:4 -1:4 ?1", "none");
        check("+1:4 !1 -1:4 ?1", "gone1 none");
        check("+1:9 !1 -4:2 ?3 ?4 ?5 ?6 ?9 ?10", "gone1 1 none none 6 6 none");
        check("+1:4 -1:2 ?2 ?3", "none 3");
        check("+1:4 -3:9 ?2 ?3", "1 none");
        check("+1:2 +3:2 +5:2 -2:4 ?1 ?2 ?4 ?5 ?6", "1 none none none 6");
        check("+1:4 -5:3 -0:1 ?1", "1");
    }

    #[test]
    fn a_full_table_forgets_the_rest_only() {
        let mappings = Box::new(Mappings::new());
        (1..=ENTRIES + 9).for_each(|i| mappings.insert(2 * i * PAGE, PAGE));
        assert_eq!(mappings.find(2 * ENTRIES * PAGE), Some(2 * ENTRIES * PAGE));
        assert_eq!(mappings.find(2 * (ENTRIES + 1) * PAGE), None);
    }
}
