//! What is said of this process's end, in words that outlive it: whoever keeps them gives us their places and what stands
//! in them for what. Single stores only, so that a signal handler may say it too.

use std::ptr::{self, null_mut};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64};

use crate::process::clock::Moment;
use crate::threads::marks;

/// The words of this process; null until there are some.
static WORDS: AtomicPtr<Words> = AtomicPtr::new(null_mut());

/// Invariant: the words stay as long as the process lives, since a signal handler on any thread may be on its way to them.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// Whose words these are.
    pub pid: &'static AtomicU64,
    pub end: &'static AtomicU64,
    /// What belongs to the end: an exit code, or a signal.
    pub code: &'static AtomicU64,
    /// When it came, on both clocks.
    pub ticks: &'static AtomicU64,
    pub nanoseconds: &'static AtomicU64,
    /// The signal of a fault that is under way.
    pub fault: &'static AtomicU64,
    /// Where in the code it came up.
    pub place: &'static AtomicU64,
    /// The same of one thread, so many words behind the one of `threads::marks::inside`.
    pub own_place: usize,
    /// Why calls are missing.
    pub lost: &'static AtomicU64,
    /// What stands in `end` until an end is noted, after an exit, and after a signal that nobody handles.
    pub silent: u64,
    pub exited: u64,
    pub signalled: u64,
}

/// Ends are noted here from now on, if they are not yet. Whether that is new.
pub fn keep(words: Words) -> bool {
    if !WORDS.load(Relaxed).is_null() {
        return false;
    }
    // A signal handler may be reading them at any time: they stay.
    WORDS.store(std::ptr::from_ref(Box::leak(Box::new(words))).cast_mut(), Release);
    true
}

/// Nothing is noted any more.
pub fn forget() {
    WORDS.store(null_mut(), Release);
}

fn words() -> Option<&'static Words> {
    // SAFETY: null, or words that were leaked.
    let words = unsafe { WORDS.load(Acquire).as_ref() }?;
    // A child that was made behind the C library's back shares the words of its parent, but is not it.
    // SAFETY: takes and touches nothing.
    (words.pid.load(Relaxed) == unsafe { libc::getpid() } as u64).then_some(words)
}

fn note_as(end: impl FnOnce(&Words) -> u64, code: i64) {
    let Some(words) = words() else { return };
    if words.end.compare_exchange(words.silent, end(words), AcqRel, Relaxed).is_ok() {
        words.code.store(code as u64, Release);
        let now = Moment::now();
        words.ticks.store(now.ticks, Relaxed);
        words.nanoseconds.store(now.nanoseconds, Relaxed);
    }
}

/// The first word about the end is the one that stays.
pub fn note(end: u64, code: i64) {
    note_as(|_| end, code);
}

/// A word about the end stands there.
pub fn is_noted() -> bool {
    words().is_some_and(|words| words.end.load(Relaxed) != words.silent)
}

/// The process exits with that code.
pub fn note_exit(code: i64) {
    note_as(|words| words.exited, code);
}

/// A fault that nobody handles.
pub fn note_signal(signal: i64) {
    note_as(|words| words.signalled, signal);
}

/// A fault is under way, 0: the process went on after it.
pub fn fault(signal: u64) {
    if let Some(words) = words() {
        words.fault.store(signal, Release);
    }
}

/// A fault came up at this instruction.
pub fn place(address: usize) {
    if let Some(words) = words() {
        words.place.store(address as u64, Relaxed);
        // SAFETY: null, or a word of a header that stays as long as the process, and has this one too.
        let own =
            unsafe { marks::inside().as_ref().map(|inside| &*ptr::from_ref(inside).add(words.own_place)) };
        if let Some(own) = own {
            own.store(address as u64, Relaxed);
        }
    }
}

/// Calls are missing from here on. The first reason stays, unless it is one of those that may pass.
pub fn lose(why: u64, passing: &[u64]) {
    if let Some(words) = words() {
        for &passing in passing {
            let _ = words.lost.compare_exchange(passing, why, AcqRel, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_stays_and_only_of_this_process() {
        let page: &'static [AtomicU64; 8] = Box::leak(Box::new([const { AtomicU64::new(0) }; 8]));
        let [pid, end, code, ticks, nanoseconds, fault_, lost, place_] = page.each_ref();
        let (silent, exited, signalled) = (0, 3, 4);
        let words = Words {
            pid,
            end,
            code,
            ticks,
            nanoseconds,
            fault: fault_,
            place: place_,
            own_place: 1,
            lost,
            silent,
            exited,
            signalled,
        };
        note_exit(1);
        assert!(keep(words) && !keep(words));
        note_exit(1);
        assert_eq!(end.load(Relaxed), 0, "another process's words");
        pid.store(std::process::id().into(), Relaxed);
        note_signal(11);
        note_exit(1);
        assert_eq!((end.load(Relaxed), code.load(Relaxed)), (4, 11));
        assert_ne!(nanoseconds.load(Relaxed), 0);
        lose(7, &[0, 2]);
        lose(8, &[0, 2]);
        fault(11);
        place(0x1234);
        assert_eq!((lost.load(Relaxed), fault_.load(Relaxed)), (7, 11));
        assert_eq!(place_.load(Relaxed), 0x1234);
        let thread: &'static [AtomicU64; 2] = Box::leak(Box::new([const { AtomicU64::new(0) }; 2]));
        marks::set_inside(&thread[0]);
        place(0x5678);
        std::thread::spawn(|| place(0x9999)).join().unwrap();
        marks::set_inside(null_mut());
        assert_eq!((place_.load(Relaxed), thread[1].load(Relaxed)), (0x9999, 0x5678));
        forget();
        fault(5);
        assert_eq!(fault_.load(Relaxed), 11);
    }
}
