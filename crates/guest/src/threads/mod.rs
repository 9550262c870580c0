//! The program's threads, numbered in the order in which it creates them, so that a thread has the same number on every
//! rank and in every run.
//!
//! The main thread is 0; a new thread takes the lowest number that is free. A number is free again when its thread has
//! been joined, or has ended where nobody will join it: a program that creates and joins its threads in every step uses
//! the same few numbers, and each of them is one stream. Not when a joinable thread ends, which is a matter of chance.
//!
//! Threads that are made inside a traced call are not the program's and have no number. Should one of them, or one that was
//! not made by `pthread_create`, make a traced call after all, it takes a number then.

pub mod marks;

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize};

use libc::{clockid_t, pthread_attr_t, pthread_key_t, pthread_t, timespec};

use crate::process::mode::watching;
use crate::process::next::next;

/// The program's threads.
static THREADS: Threads = Threads::new();
/// What else is to happen when a thread with a number ends, a `fn()`; null: nothing.
static ON_END: AtomicPtr<()> = AtomicPtr::new(null_mut());

/// Threads at a time that have a number from their creation on. Beyond that they get one with their first call.
const MOST: usize = 4096;

/// In use; nobody will join it; its thread has ended. Free is none of them.
const TAKEN: u32 = 1;
const LOOSE: u32 = 2;
const ENDED: u32 = 4;

type Start = extern "C-unwind" fn(*mut c_void) -> *mut c_void;

struct Slot {
    marks: AtomicU32,
    /// The `pthread_t`.
    id: AtomicUsize,
    start: AtomicUsize,
    argument: AtomicPtr<c_void>,
}

/// No locks: a thread may be created in the child of a fork, whose parent held them.
pub struct Threads {
    slots: [Slot; MOST],
    /// Numbers beyond the slots, which are not given again.
    beyond: AtomicU32,
    /// One more than the key whose destructor tells us of a thread's end; 0 without.
    key: AtomicU32,
    create: AtomicPtr<()>,
    join: AtomicPtr<()>,
    try_join: AtomicPtr<()>,
    timed_join: AtomicPtr<()>,
    clock_join: AtomicPtr<()>,
    detach: AtomicPtr<()>,
}

impl Default for Threads {
    fn default() -> Self {
        Self::new()
    }
}

impl Threads {
    pub const fn new() -> Self {
        Self {
            slots: [const {
                Slot {
                    marks: AtomicU32::new(0),
                    id: AtomicUsize::new(0),
                    start: AtomicUsize::new(0),
                    argument: AtomicPtr::new(null_mut()),
                }
            }; MOST],
            beyond: AtomicU32::new(0),
            key: AtomicU32::new(0),
            create: AtomicPtr::new(null_mut()),
            join: AtomicPtr::new(null_mut()),
            try_join: AtomicPtr::new(null_mut()),
            timed_join: AtomicPtr::new(null_mut()),
            clock_join: AtomicPtr::new(null_mut()),
            detach: AtomicPtr::new(null_mut()),
        }
    }

    /// The lowest number that is free, but the main thread's.
    fn take(&self, marks: u32) -> Option<usize> {
        let free = |slot: &Slot| slot.marks.compare_exchange(0, marks | TAKEN, AcqRel, Relaxed).is_ok();
        (1..MOST).find(|&number| free(&self.slots[number]))
    }

    fn give_back(&self, number: usize) {
        let slot = &self.slots[number];
        slot.id.store(0, Relaxed);
        slot.marks.store(0, Release);
    }

    /// Something came to be true of a thread; of two such things the second gives its number back.
    fn mark(&self, number: usize, mark: u32, other: u32) {
        if self.slots[number].marks.fetch_or(mark, AcqRel) & other != 0 {
            self.give_back(number);
        }
    }

    /// The number of a thread of which all of these are true.
    fn of(&self, thread: pthread_t, marks: u32) -> Option<usize> {
        (1..MOST).find(|&number| {
            let slot = &self.slots[number];
            slot.id.load(Acquire) == thread as usize && slot.marks.load(Acquire) & marks == marks
        })
    }

    /// Runs a join of `thread`. It may not have begun to run yet, but it has when it is joined.
    fn joined(&self, thread: pthread_t, join: impl FnOnce() -> c_int) -> c_int {
        // Before, since afterwards another thread may have the same `pthread_t`; but that one has not ended.
        let number = if watching() { self.of(thread, TAKEN) } else { None };
        let code = join();
        if code == 0
            && watching()
            && let Some(number) = number.or_else(|| self.of(thread, TAKEN | ENDED))
        {
            self.give_back(number);
        }
        code
    }
}

/// Calls `hook` on every thread with a number when it ends.
pub fn on_end(hook: fn()) {
    ON_END.store(hook as *mut (), Release);
}

/// Before the program creates threads: from here on their ends are heard of.
pub fn prepare() {
    let mut key: pthread_key_t = 0;
    // SAFETY: writes the key; the destructor lives as long as the process.
    if unsafe { libc::pthread_key_create(&mut key, Some(ended)) } == 0 {
        THREADS.key.store(key + 1, Release);
    }
}

/// The number of the calling thread, which is about to be observed for the first time.
#[cold]
pub fn number() -> usize {
    // SAFETY: both take nothing and cannot fail.
    let main = unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) };
    let given = marks::assigned();
    if main {
        0
    } else if given != 0 {
        given as usize - 1
    } else if let Some(number) = THREADS.take(LOOSE) {
        listen(number);
        number
    } else {
        number_of_its_own()
    }
}

/// A number that no other thread ever has.
pub fn number_of_its_own() -> usize {
    MOST + THREADS.beyond.fetch_add(1, Relaxed) as usize
}

/// The key's value is the number and how often the destructor has been here, which C calls up to four times: others,
/// of the program's own keys, may still make traced calls.
const ROUNDS: usize = 4;

/// The end of the calling thread will be heard of.
fn listen(number: usize) {
    marks::assign(number as u32 + 1);
    set_value((number * ROUNDS + 1) as *mut c_void);
}

fn set_value(value: *mut c_void) {
    if let Some(key) = THREADS.key.load(Acquire).checked_sub(1) {
        // SAFETY: a key of ours, which is never deleted. Where there is no memory for it, the number is not given back.
        unsafe { libc::pthread_setspecific(key, value) };
    }
}

unsafe extern "C" fn ended(value: *mut c_void) {
    let (number, round) = (value as usize / ROUNDS, value as usize % ROUNDS);
    if round + 1 < ROUNDS {
        set_value((value as usize + 1) as *mut c_void);
        return;
    }
    marks::assign(0);
    // SAFETY: null, or the function that `on_end` was given.
    let hook = unsafe { std::mem::transmute::<*mut (), Option<fn()>>(ON_END.load(Acquire)) };
    if let Some(hook) = hook {
        hook();
    }
    THREADS.mark(number, ENDED, LOOSE);
}

extern "C-unwind" fn run(slot: *mut c_void) -> *mut c_void {
    let number = slot as usize;
    let slot = &THREADS.slots[number];
    // SAFETY: a start routine of the program's, put there by `pthread_create` for this thread.
    let start = unsafe { std::mem::transmute::<usize, Start>(slot.start.load(Acquire)) };
    let argument = slot.argument.load(Acquire);
    // SAFETY: takes nothing.
    slot.id.store(unsafe { libc::pthread_self() } as usize, Release);
    listen(number);
    start(argument)
}

/// The next function of that name as a `$type`, looked up on first use, or else `$otherwise`, which leaves the function.
macro_rules! next {
    ($slot:ident, $name:literal, fn($($arg:ty),*), else $otherwise:expr) => {{
        let mut found = THREADS.$slot.load(Relaxed);
        if found.is_null() {
            found = next($name).cast();
            THREADS.$slot.store(found, Relaxed);
        }
        if found.is_null() {
            $otherwise
        }
        // SAFETY: the function of that name, which has this signature in every C library.
        unsafe { std::mem::transmute::<*mut (), unsafe extern "C-unwind" fn($($arg),*) -> c_int>(found) }
    }};
}

/// # Safety
/// As for C's `pthread_create`, and so on for all of these: the arguments are the program's, and go on as they are.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    let real = next!(create, c"pthread_create", fn(*mut pthread_t, *const pthread_attr_t, Start, *mut c_void),
        else return libc::EAGAIN);
    let depth = marks::depth();
    let counts = watching() && (depth == 0 || depth & marks::PROGRAM != 0);
    let number = counts.then(|| THREADS.take(if detached(attributes) { LOOSE } else { 0 })).flatten();
    let Some(number) = number else {
        // SAFETY: the program's own call, passed on.
        return unsafe { real(thread, attributes, start, argument) };
    };
    let slot = &THREADS.slots[number];
    slot.start.store(start as usize, Release);
    slot.argument.store(argument, Release);
    // SAFETY: the program's own call, but that the thread begins in `run`, which goes on to where it should.
    let code = unsafe { real(thread, attributes, run, number as *mut c_void) };
    if code != 0 {
        THREADS.give_back(number);
    } else if !thread.is_null() {
        // It may be detached before it has begun to run. Where it is gone already, and its number another thread's, that
        // one corrects this when it begins.
        // SAFETY: written by the call above.
        let _ = slot.id.compare_exchange(0, unsafe { *thread } as usize, AcqRel, Relaxed);
    }
    code
}

fn detached(attributes: *const pthread_attr_t) -> bool {
    let mut detached = libc::PTHREAD_CREATE_JOINABLE;
    if !attributes.is_null() {
        // SAFETY: attributes that the program creates a thread with.
        unsafe { pthread_attr_getdetachstate(attributes, &mut detached) };
    }
    detached == libc::PTHREAD_CREATE_DETACHED
}

unsafe extern "C" {
    fn pthread_attr_getdetachstate(attributes: *const pthread_attr_t, state: *mut c_int) -> c_int;
}

/// # Safety
/// See `pthread_create`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    let real = next!(join, c"pthread_join", fn(pthread_t, *mut *mut c_void), else return libc::ENOSYS);
    // SAFETY: the program's own call, passed on.
    THREADS.joined(thread, || unsafe { real(thread, result) })
}

/// # Safety
/// See `pthread_create`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pthread_tryjoin_np(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    let real =
        next!(try_join, c"pthread_tryjoin_np", fn(pthread_t, *mut *mut c_void), else return libc::ENOSYS);
    // SAFETY: the program's own call, passed on.
    THREADS.joined(thread, || unsafe { real(thread, result) })
}

/// # Safety
/// See `pthread_create`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pthread_timedjoin_np(
    thread: pthread_t,
    result: *mut *mut c_void,
    until: *const timespec,
) -> c_int {
    let real = next!(timed_join, c"pthread_timedjoin_np", fn(pthread_t, *mut *mut c_void, *const timespec),
        else return libc::ENOSYS);
    // SAFETY: the program's own call, passed on.
    THREADS.joined(thread, || unsafe { real(thread, result, until) })
}

/// # Safety
/// See `pthread_create`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pthread_clockjoin_np(
    thread: pthread_t,
    result: *mut *mut c_void,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    let real = next!(clock_join, c"pthread_clockjoin_np",
        fn(pthread_t, *mut *mut c_void, clockid_t, *const timespec), else return libc::ENOSYS);
    // SAFETY: the program's own call, passed on.
    THREADS.joined(thread, || unsafe { real(thread, result, clock, until) })
}

/// # Safety
/// See `pthread_create`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pthread_detach(thread: pthread_t) -> c_int {
    let real = next!(detach, c"pthread_detach", fn(pthread_t), else return libc::ENOSYS);
    let number = if watching() { THREADS.of(thread, TAKEN) } else { None };
    // SAFETY: the program's own call, passed on.
    let code = unsafe { real(thread) };
    if code == 0
        && let Some(number) = number
    {
        THREADS.mark(number, LOOSE, ENDED);
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_when_both_have_happened() {
        let threads = Box::leak(Box::new(Threads::new()));
        let take = |marks| threads.take(marks).unwrap();
        assert_eq!([take(0), take(LOOSE), take(0)], [1, 2, 3]);
        threads.mark(2, ENDED, LOOSE);
        assert_eq!(take(0), 2);
        threads.mark(1, ENDED, LOOSE);
        assert_eq!(take(0), 4);
        threads.mark(1, LOOSE, ENDED);
        assert_eq!(take(0), 1);
        threads.slots[3].id.store(77, Relaxed);
        threads.mark(3, ENDED, LOOSE);
        // Joined, and another thread has its `pthread_t` already.
        threads.slots[2].id.store(77, Relaxed);
        assert_eq!((threads.of(77, TAKEN), threads.of(77, TAKEN | ENDED)), (Some(2), Some(3)));
        threads.give_back(2);
        threads.give_back(3);
        assert_eq!((threads.of(77, TAKEN), take(0), take(0)), (None, 2, 3));
    }
}
