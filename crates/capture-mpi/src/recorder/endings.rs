//! The ends of a process other than `MPI_Finalize`: what can still be said of them is written to its part file.
//!
//! One exit handler, and a handler for each signal that would end the process and that nobody else handles when MPI has
//! started. It notes the signal and lets it have its way: the process ends as it would have.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use refrain_tracefile::part::{End, Word};

use crate::state::{self, ENDING, Mode};

/// Signals that end a process unless it says otherwise.
const DEADLY: [c_int; 17] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGUSR1,
    libc::SIGSEGV,
    libc::SIGUSR2,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGSYS,
];

/// From here on ends are noted in the header that begins with `first`.
pub fn watch(first: &AtomicU64) {
    if !ENDING.load(Relaxed).is_null() {
        return;
    }
    ENDING.store(std::ptr::from_ref(first).cast_mut(), Release);
    // SAFETY: a function that lives as long as the process: a preloaded library is never unloaded.
    unsafe {
        on_exit(exiting, null_mut());
        libc::pthread_atfork(None, None, Some(forked));
    }
    DEADLY.into_iter().for_each(watch_signal);
}

/// The header has been mapped anew.
pub fn moved(old: &AtomicU64, new: &AtomicU64) {
    let (old, new) = (std::ptr::from_ref(old).cast_mut(), std::ptr::from_ref(new).cast_mut());
    let _ = ENDING.compare_exchange(old, new, AcqRel, Relaxed);
}

/// All is said: nothing is noted any more.
pub fn over() {
    ENDING.store(null_mut(), Release);
}

/// The first word about the end is the one that stays.
pub fn note(end: End, code: i64) {
    let first = ENDING.load(Acquire);
    if first.is_null() {
        return;
    }
    // SAFETY: the header of a part, mapped until the process ends; its words are aligned and only used atomically.
    let word = |word: Word| unsafe { &*first.add(word as usize) };
    let silent = End::Silent as u64;
    if word(Word::End).compare_exchange(silent, end as u64, AcqRel, Relaxed).is_ok() {
        word(Word::EndCode).store(code as u64, Release);
    }
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

fn watch_signal(signal: c_int) {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only asks, into a place of the right type.
    if unsafe { libc::sigaction(signal, null(), now.as_mut_ptr()) } != 0 {
        return;
    }
    // SAFETY: filled in by the call above, and zero before.
    let mut action = unsafe { now.assume_init() };
    if action.sa_sigaction != libc::SIG_DFL {
        return;
    }
    action.sa_sigaction = dying as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler does only what a handler may.
    unsafe { libc::sigaction(signal, &action, null_mut()) };
}

extern "C" fn dying(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    note(End::Signal, signal.into());
    // SAFETY: zeros are the default action with an empty mask.
    let default: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: both calls may be made in a handler.
    unsafe { libc::sigaction(signal, &default, null_mut()) };
    // A fault of the program's own happens again when we return; anything else has to be sent again.
    let faults = [libc::SIGILL, libc::SIGTRAP, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV];
    // SAFETY: the kernel fills it in for handlers with SA_SIGINFO.
    let by_itself = faults.contains(&signal) && !info.is_null() && unsafe { (*info).si_code } > 0;
    if !by_itself {
        // SAFETY: takes numbers only; the signal is blocked until we return.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::syscall(libc::SYS_gettid), signal) };
    }
}
