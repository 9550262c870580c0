//! Memory of ours that lies in files, whose pages may vanish: the disk is full, or somebody has truncated one.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};

use crate::process::pages;

/// All that is shielded.
static SHIELDED: Shielded = Shielded::new();
/// A file's pages did vanish.
static TORN: AtomicBool = AtomicBool::new(false);

/// Mapped files, whose pages may vanish under us. A block is never freed: a signal handler may be looking at it.
#[derive(Debug)]
struct Shielded {
    regions: [Region; 64],
    more: AtomicPtr<Shielded>,
}

/// Start and length; 0 where there is none.
#[derive(Debug)]
struct Region(AtomicUsize, AtomicUsize);

impl Shielded {
    const fn new() -> Self {
        Self {
            regions: [const { Region(AtomicUsize::new(0), AtomicUsize::new(0)) }; 64],
            more: AtomicPtr::new(null_mut()),
        }
    }

    fn next(&self) -> Option<&'static Shielded> {
        // SAFETY: null, or a block that was leaked.
        unsafe { self.more.load(Acquire).as_ref() }
    }

    fn all(&'static self) -> impl Iterator<Item = &'static Region> {
        std::iter::successors(Some(self), |block| block.next()).flat_map(|block| &block.regions)
    }

    fn add(&'static self, start: usize, length: usize) {
        let mut block = self;
        loop {
            let free = |region: &&Region| region.0.compare_exchange(0, start, AcqRel, Relaxed).is_ok();
            if let Some(region) = block.regions.iter().find(free) {
                region.1.store(length, Release);
                return;
            }
            block = block.next().unwrap_or_else(|| block.grow());
        }
    }

    #[cold]
    fn grow(&'static self) -> &'static Shielded {
        let new = Box::into_raw(Box::new(Shielded::new()));
        let made = self.more.compare_exchange(null_mut(), new, AcqRel, Acquire);
        if made.is_err() {
            // SAFETY: just made, and nobody knows of it: another thread was first.
            drop(unsafe { Box::from_raw(new) });
        }
        self.next().unwrap_or(self)
    }

    fn remove(&'static self, start: usize) {
        if let Some(region) = self.all().find(|region| region.0.load(Relaxed) == start) {
            region.1.store(0, Release);
            region.0.store(0, Release);
        }
    }

    /// The region that holds this address. A region of the calling thread does not change while it looks; of others it
    /// takes start and length only if they belong together.
    fn holding(&'static self, address: usize) -> Option<(usize, usize)> {
        self.all().find_map(|region| {
            let (start, length) = (region.0.load(Acquire), region.1.load(Acquire));
            let same = start != 0 && region.0.load(Acquire) == start;
            (same && (start..start + length).contains(&address)).then_some((start, length))
        })
    }
}

/// A store to this memory must not be the end of the program, whatever becomes of the file behind it.
pub fn shield(start: usize, length: usize) {
    SHIELDED.add(start, length);
}

pub fn unshield(start: usize) {
    SHIELDED.remove(start);
}

/// Whether a file lost its pages under us.
pub fn torn() -> bool {
    TORN.load(Relaxed)
}

/// Puts plain memory where a file's pages are gone: truncated by somebody, or a disk that did not keep its promise.
pub fn mend(address: usize) -> bool {
    let Some((start, length)) = SHIELDED.holding(address) else { return false };
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED);
    // SAFETY: in place of a mapping of ours.
    let memory = unsafe { pages::map_as(start as *mut c_void, length, protection, flags, -1, 0) };
    TORN.store(true, Relaxed);
    memory != libc::MAP_FAILED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_all_regions() {
        let shielded: &'static Shielded = Box::leak(Box::new(Shielded::new()));
        let start = |n: usize| (n + 1) << 20;
        (0..1000).for_each(|n| shielded.add(start(n), 4096));
        assert!((0..1000).all(|n| shielded.holding(start(n) + 4095) == Some((start(n), 4096))));
        assert_eq!((shielded.holding(start(3) + 4096), shielded.holding(0)), (None, None));
        shielded.remove(start(700));
        assert_eq!(shielded.holding(start(700)), None);
        let blocks = || std::iter::successors(Some(shielded), |block| block.next()).count();
        let before = blocks();
        shielded.add(start(2000), 1);
        assert_eq!((blocks(), shielded.holding(start(2000))), (before, Some((start(2000), 1))));
    }
}
