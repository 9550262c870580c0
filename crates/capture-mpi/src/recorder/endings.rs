//! The ends of a process other than `MPI_Finalize`: what can still be said of them is written to its part file.
//!
//! One exit handler, and a handler for each signal that would end the process and that nobody else handles when MPI has
//! started. It notes the signal and lets it have its way: the process ends as it would have. Handlers of faults that were
//! there before ours get them next, and have the last word.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use refrain_tracefile::part::{End, Lost, Word};

use super::safety::Words;
use crate::state::{self, BEFORE, ENDING, Mode, Region, SHIELDED, TORN};

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

/// Of these, those that a program brings upon itself. Handlers for them mostly tell of the end and let it happen.
const FAULTS: [c_int; 5] = [libc::SIGILL, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV];

/// From here on ends are noted in this header.
pub fn watch(words: Words) {
    if !ENDING.load(Relaxed).is_null() {
        return;
    }
    ENDING.store(std::ptr::from_ref(words.word(Word::Magic)).cast_mut(), Release);
    // SAFETY: a function that lives as long as the process: a preloaded library is never unloaded.
    unsafe {
        on_exit(exiting, null_mut());
        libc::pthread_atfork(None, None, Some(forked));
    }
    DEADLY.into_iter().for_each(watch_signal);
}

/// All is said: nothing is noted any more.
pub fn over() {
    ENDING.store(null_mut(), Release);
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
    }
}

/// A fault is under way, 0: the process went on after it.
pub fn fault(signal: c_int) {
    if let Some(word) = ending() {
        word(Word::Fault).store(signal as u64, Release);
    }
}

/// Calls are missing from here on.
pub fn lose(why: Lost) {
    if let Some(word) = ending() {
        word(Word::Lost).store(why as u64, Release);
    }
}

/// A store to this memory must not be the end of the program, whatever becomes of the file behind it.
pub fn shield(start: usize, length: usize) {
    let free = |region: &&Region| region.0.compare_exchange(0, start, AcqRel, Relaxed).is_ok();
    if let Some(region) = SHIELDED.iter().find(free) {
        region.1.store(length, Release);
    }
}

pub fn unshield(start: usize) {
    if let Some(region) = SHIELDED.iter().find(|region| region.0.load(Relaxed) == start) {
        region.1.store(0, Release);
        region.0.store(0, Release);
    }
}

/// Whether a file lost its pages under us.
pub fn torn() -> bool {
    TORN.load(Relaxed)
}

/// Puts plain memory where a file's pages are gone: truncated by somebody, or a disk that did not keep its promise.
fn mend(address: usize) -> bool {
    let held = |region: &&Region| {
        let start = region.0.load(Acquire);
        start != 0 && (start..start + region.1.load(Acquire)).contains(&address)
    };
    let Some(Region(start, length)) = SHIELDED.iter().find(held) else { return false };
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED);
    let (start, length) = (start.load(Relaxed), length.load(Relaxed));
    // SAFETY: in place of a mapping of ours.
    let memory = unsafe { libc::mmap(start as *mut c_void, length, protection, flags, -1, 0) };
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

fn watch_signal(signal: c_int) {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only asks, into a place of the right type.
    if unsafe { libc::sigaction(signal, null(), now.as_mut_ptr()) } != 0 {
        return;
    }
    // SAFETY: filled in by the call above, and zero before.
    let mut action = unsafe { now.assume_init() };
    if action.sa_sigaction != libc::SIG_DFL {
        // UCX, Open MPI and Fortran handle faults, to tell of them. They come after us.
        if !FAULTS.contains(&signal) || action.sa_sigaction == libc::SIG_IGN {
            return;
        }
        BEFORE[signal as usize].store(Box::into_raw(Box::new(action)), Release);
    }
    action.sa_sigaction = dying as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler does only what a handler may.
    unsafe { libc::sigaction(signal, &action, null_mut()) };
}

extern "C" fn dying(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel fills it in for handlers with SA_SIGINFO.
    let (code, address) =
        unsafe { info.as_ref().map_or((0, 0), |info| (info.si_code, info.si_addr() as usize)) };
    if signal == libc::SIGBUS && code > 0 && mend(address) {
        return;
    }
    let before = BEFORE.get(signal as usize).map_or(null_mut(), |before| before.load(Acquire));
    if before.is_null() {
        note(End::Signal, signal.into());
    } else {
        // Unless its handler knows how to go on.
        fault(signal);
    }
    // SAFETY: zeros are the default action with an empty mask.
    let default: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    let action = if before.is_null() { &raw const default } else { before.cast_const() };
    // SAFETY: may be called in a handler; what `BEFORE` holds stays.
    unsafe { libc::sigaction(signal, action, null_mut()) };
    // A fault of the program's own happens again when we return; anything else has to be sent again. So has a
    // breakpoint, after which the program would go on, and a memory error that nobody has stumbled on yet.
    let by_itself = match signal {
        libc::SIGILL | libc::SIGFPE | libc::SIGSEGV => code > 0,
        libc::SIGBUS => code > 0 && code != libc::BUS_MCEERR_AO,
        _ => false,
    };
    if !by_itself {
        // SAFETY: takes numbers only; the signal is blocked until we return.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::syscall(libc::SYS_gettid), signal) };
    }
}
