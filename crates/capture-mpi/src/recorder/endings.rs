//! The ends of a process other than `MPI_Finalize`: what can still be said of them is written to its part file. One exit
//! handler, and what `signals` sees of faults.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};

use refrain_tracefile::part::{End, Lost, Word};

use super::safety::Words;
use crate::clock::Moment;
use crate::pages;
use crate::signals;
use crate::state::{self, ENDING, Mode, SHIELDED, TORN};

/// From here on ends are noted in this header.
pub fn watch(words: Words) {
    if !ENDING.load(Relaxed).is_null() {
        return;
    }
    ENDING.store(std::ptr::from_ref(words.word(Word::Magic)).cast_mut(), Release);
    // SAFETY: a function that lives as long as the process: a preloaded library is never unloaded.
    unsafe { on_exit(exiting, null_mut()) };
    signals::watch();
}

/// Before the program can fork: a child is never traced.
pub fn prepare() {
    // SAFETY: as above.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}

/// All is said: nothing is noted any more. Nobody watches over the parts from here on, which may be gone before MPI is.
pub fn over() {
    state::forget_inside();
    ENDING.store(null_mut(), Release);
    signals::leave();
}

/// The words of this process's first part.
fn ending() -> Option<impl Fn(Word) -> &'static AtomicU64> {
    let first = ENDING.load(Acquire);
    // SAFETY: the header of a part, mapped until the process ends; its words are aligned and only used atomically.
    let words = move |word: Word| unsafe { &*first.add(word as usize) };
    // A child that was made behind the C library's back shares the parts of its parent, but is not it.
    // SAFETY: takes and touches nothing.
    (!first.is_null() && words(Word::Pid).load(Relaxed) == unsafe { libc::getpid() } as u64).then_some(words)
}

/// The first word about the end is the one that stays.
pub fn note(end: End, code: i64) {
    let Some(word) = ending() else { return };
    let silent = End::Silent as u64;
    if word(Word::End).compare_exchange(silent, end as u64, AcqRel, Relaxed).is_ok() {
        word(Word::EndCode).store(code as u64, Release);
        let now = Moment::now();
        word(Word::LaterTicks).store(now.ticks, Relaxed);
        word(Word::LaterNanoseconds).store(now.nanoseconds, Relaxed);
    }
}

/// A fault that nobody handles.
pub fn note_signal(signal: c_int) {
    note(End::Signal, signal.into());
}

/// A fault is under way, 0: the process went on after it.
pub fn fault(signal: c_int) {
    if let Some(word) = ending() {
        word(Word::Fault).store(signal as u64, Release);
    }
}

/// Calls are missing from here on. The first reason stays, unless it may pass.
pub fn lose(why: Lost) {
    if let Some(word) = ending() {
        for passing in [Lost::Nothing, Lost::NoRoom] {
            let _ = word(Word::Lost).compare_exchange(passing as u64, why as u64, AcqRel, Relaxed);
        }
    }
}

/// Mapped files, whose pages may vanish under us. A block is never freed: a signal handler may be looking at it.
#[derive(Debug)]
pub struct Shielded {
    regions: [Region; 64],
    more: AtomicPtr<Shielded>,
}

/// Start and length; 0 where there is none.
#[derive(Debug)]
struct Region(AtomicUsize, AtomicUsize);

impl Shielded {
    pub const fn new() -> Self {
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

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

extern "C" fn exiting(code: c_int, _: *mut c_void) {
    note(End::Exit, code.into());
}

/// The child of a fork is another process: what it does, and how it ends, is not this one's.
extern "C" fn forked() {
    ENDING.store(null_mut(), Release);
    state::MODE.store(Mode::Inert as u8, Release);
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
