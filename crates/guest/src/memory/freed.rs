//! Named segments that were released, on their way from the thread that freed them to the recorder.
//!
//! Lock-free: `free` may be called anywhere, also in the child of a fork whose parent held any lock. When the ring is
//! too small nothing is lost: the recorder is told to go through its names instead.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

const SLOTS: usize = 1024;

pub struct Freed {
    /// Bumped after every entry: one look says whether there is anything to do.
    epoch: AtomicUsize,
    tail: AtomicUsize,
    overflow: AtomicBool,
    /// A segment's key, or 0.
    slots: [AtomicUsize; SLOTS],
}

/// How far a recorder has read.
#[derive(Debug, Default)]
pub struct Reader {
    epoch: usize,
    head: usize,
}

impl Reader {
    pub fn epoch(&self) -> usize {
        self.epoch
    }
}

impl Default for Freed {
    fn default() -> Self {
        Self::new()
    }
}

impl Freed {
    pub const fn new() -> Self {
        Self {
            epoch: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            overflow: AtomicBool::new(false),
            slots: [const { AtomicUsize::new(0) }; SLOTS],
        }
    }

    /// `key` is not 0. The segment's mark of being named is cleared already.
    #[cold]
    pub fn push(&self, key: usize) {
        let slot = &self.slots[self.tail.fetch_add(1, AcqRel) % SLOTS];
        if slot.compare_exchange(0, key, AcqRel, Relaxed).is_err() {
            self.overflow.store(true, Release);
        }
        self.epoch.fetch_add(1, Release);
    }

    /// Whether anything was freed since `reader` last drained.
    #[inline]
    pub fn news(&self, reader: &Reader) -> bool {
        self.epoch.load(Acquire) != reader.epoch
    }

    /// Changes whenever something is freed.
    #[inline]
    pub fn epoch(&self) -> usize {
        self.epoch.load(Acquire)
    }

    /// Hands over what was freed. False: that was not all, and every name must be checked.
    #[must_use]
    pub fn drain(&self, reader: &mut Reader, mut freed: impl FnMut(usize)) -> bool {
        reader.epoch = self.epoch.load(Acquire);
        let tail = self.tail.load(Acquire);
        let count = tail.wrapping_sub(reader.head);
        let mut whole = !self.overflow.swap(false, AcqRel) && count <= SLOTS;
        for i in 0..count.min(SLOTS) {
            match self.slots[reader.head.wrapping_add(i) % SLOTS].swap(0, AcqRel) {
                // Taken, but not filled in yet by a thread that is just doing so.
                0 => whole = false,
                key => freed(key),
            }
        }
        if !whole {
            // What a late thread left in a slot we have passed would stay in the way.
            for slot in &self.slots {
                slot.store(0, Release);
            }
        }
        reader.head = tail;
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes `count` keys, `rounds` times, draining in between: how many came through, and whether all were said to.
    fn check(count: usize, rounds: usize, expected: (usize, bool)) {
        let queue = Freed::new();
        let mut reader = Reader::default();
        for _ in 0..rounds {
            assert!(!queue.news(&reader));
            (1..=count).for_each(|key| queue.push(key * 16));
            let mut seen = Vec::new();
            assert!(queue.news(&reader) || count == 0);
            let whole = queue.drain(&mut reader, |key| seen.push(key));
            assert!(seen.windows(2).all(|w| w[0] < w[1]) || !whole);
            assert_eq!((seen.len(), whole), expected, "{count} keys");
        }
    }

    #[test]
    fn what_is_pushed_arrives_or_is_announced_missing() {
        check(0, 3, (0, true));
        check(1, 5000, (1, true));
        check(1000, 10, (1000, true));
        check(SLOTS, 3, (SLOTS, true));
        check(SLOTS + 1, 3, (SLOTS, false));
        check(5 * SLOTS, 3, (SLOTS, false));
    }
}
