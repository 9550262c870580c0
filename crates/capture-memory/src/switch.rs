//! Whether recording is on: one word for each process, in a file that whoever runs `refrain memory on` and `off` writes to. So an
//! access costs a load more, and nobody has to ask. The last one to switch is right: the user, a mark, or a function.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

use refrain_references::parts::switch;

/// The word of a process that has no file.
static ALONE: AtomicU32 = AtomicU32::new(1);
/// The word that counts.
static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const ALONE).cast_mut());
/// All words of the file; null without one.
static WORDS: AtomicPtr<AtomicU32> = AtomicPtr::new(null_mut());
/// How often it went on, and whether it was off, by marks and functions.
static TIMES: AtomicU32 = AtomicU32::new(0);
static WAS_OFF: AtomicBool = AtomicBool::new(false);

#[inline(always)]
pub fn is_on() -> bool {
    // SAFETY: it points to `ALONE`, or into the file, which stays mapped.
    unsafe { &*WORD.load(Relaxed) }.load(Relaxed) != 0
}

/// The word that counts now, not 0 where recording is on. It is there as long as the process is.
pub fn word() -> *const AtomicU32 {
    WORD.load(Relaxed)
}

/// A mark or a function has been reached.
pub fn set(on: bool) {
    // SAFETY: as in `is_on`.
    let before = unsafe { &*WORD.load(Relaxed) }.swap(on.into(), Relaxed);
    match on {
        true if before == 0 => drop(TIMES.fetch_add(1, Relaxed)),
        true => {}
        false => WAS_OFF.store(true, Relaxed),
    }
}

/// What a reader of the trace should know.
pub fn note() -> Option<String> {
    let times = TIMES.load(Relaxed);
    match WAS_OFF.load(Relaxed) {
        false => None,
        // From outside: whoever writes the trace says so.
        true if times == 0 && changed() => None,
        true if times == 0 => Some("nothing is recorded: it was never switched on".into()),
        true if times == 1 => Some("only a part of the run is recorded: one region".into()),
        true => Some(format!("only a part of the run is recorded: {times} regions")),
    }
}

/// Whether somebody has switched from outside.
fn changed() -> bool {
    let words = WORDS.load(Acquire);
    // SAFETY: the file has this word.
    !words.is_null() && unsafe { &*words.add(switch::TIMES) }.load(Relaxed) > 0
}

/// A process begins. `on` is what it begins with, unless the file says otherwise or it waits for a function.
pub fn begin(parts: &Path, on: bool, waits: bool) {
    if let Some(words) = map(&parts.join(switch::NAME)) {
        WORDS.store(words, Release);
    }
    let words = WORDS.load(Acquire);
    // SAFETY: the file has this word.
    let asked = if words.is_null() { on } else { unsafe { &*words.add(switch::FIRST) }.load(Relaxed) != 0 };
    claim(asked && !waits);
    let on = is_on();
    TIMES.store(on.into(), Relaxed);
    WAS_OFF.store(!on, Relaxed);
}

/// A process was forked: its word is its own from now on.
pub fn forked() {
    let on = is_on();
    claim(on);
    TIMES.store(on.into(), Relaxed);
    WAS_OFF.store(!on, Relaxed);
}

fn claim(on: bool) {
    let words = WORDS.load(Acquire);
    let mut own: *const AtomicU32 = &raw const ALONE;
    if !words.is_null() {
        // SAFETY: the file has this word.
        let nth = unsafe { &*words.add(switch::NEXT) }.fetch_add(1, AcqRel) as usize;
        if switch::OWN + nth < switch::WORDS {
            // SAFETY: the file has so many words.
            own = unsafe { words.add(switch::OWN + nth) };
        }
    }
    // SAFETY: one of the two.
    unsafe { &*own }.store(on.into(), Relaxed);
    WORD.store(own.cast_mut(), Release);
}

/// Maps the file. It does not stay open.
fn map(path: &Path) -> Option<*mut AtomicU32> {
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    let length = 4 * switch::WORDS;
    if file.metadata().ok()?.len() < length as u64 {
        return None;
    }
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of an open file, of no more than its length.
    let words = unsafe { libc::mmap(null_mut(), length, rights, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    (words != libc::MAP_FAILED).then(|| words.cast())
}
