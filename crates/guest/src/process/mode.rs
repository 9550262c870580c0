//! What the library does in this process, and how a fault of ours ends it.

use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU8};

use super::say::{on_rank, say};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Nothing: tracing was not asked for, or this is no program to be traced.
    Inert = 0,
    /// Calls are observed.
    On = 1,
    /// A fault of ours ended tracing; the end of the program is still met, for the other processes' sake.
    Stopped = 2,
    /// The end of what is traced has been reached.
    Done = 3,
}

static MODE: AtomicU8 = AtomicU8::new(Mode::Inert as u8);
/// What else is to happen when tracing stops, a `fn()`; null: nothing.
static ON_STOP: AtomicPtr<()> = AtomicPtr::new(null_mut());

#[inline]
pub fn watching() -> bool {
    MODE.load(Relaxed) == Mode::On as u8
}

pub fn mode() -> Mode {
    match MODE.load(Relaxed) {
        1 => Mode::On,
        2 => Mode::Stopped,
        3 => Mode::Done,
        _ => Mode::Inert,
    }
}

pub fn set_mode(mode: Mode) {
    MODE.store(mode as u8, Release);
}

/// Calls `hook` when tracing stops, on the thread whose fault it is: it may do only what can be done without memory.
pub fn on_stop(hook: fn()) {
    ON_STOP.store(hook as *mut (), Release);
}

/// Nothing is observed from here on. Whether that is new: of several threads that fail at the same time one speaks.
pub fn halt() -> bool {
    MODE.compare_exchange(Mode::On as u8, Mode::Stopped as u8, AcqRel, Acquire).is_ok()
}

/// A fault of ours ends tracing, with one line.
#[cold]
pub fn stop(reason: &str) {
    if !halt() {
        return;
    }
    // SAFETY: null, or the function that `on_stop` was given.
    let hook = unsafe { std::mem::transmute::<*mut (), Option<fn()>>(ON_STOP.load(Acquire)) };
    if let Some(hook) = hook {
        hook();
    }
    say(&format!("tracing stopped{}: {reason}; the program is not affected", on_rank()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn tracing_stops_once() {
        static STOPS: AtomicU32 = AtomicU32::new(0);
        on_stop(|| {
            STOPS.fetch_add(1, Relaxed);
        });
        stop("nothing was on");
        assert_eq!((mode(), STOPS.load(Relaxed)), (Mode::Inert, 0));
        set_mode(Mode::On);
        assert!(watching());
        stop("a test says so");
        stop("a test says so again");
        assert_eq!((mode(), STOPS.load(Relaxed)), (Mode::Stopped, 1));
        set_mode(Mode::Inert);
        on_stop(|| {});
    }
}
