//! The ends of the process: what can still be said of them is written to words that outlive it (`words`). One exit handler,
//! and what `signals` sees of faults.

pub mod shield;
pub mod signals;
pub mod words;

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use crate::process::mode::{self, Mode};
use words::Words;

/// From here on ends are noted in these words.
pub fn watch(words: Words) {
    if words::keep(words) {
        // SAFETY: a function that lives as long as the process: a preloaded library is never unloaded.
        unsafe { on_exit(exiting, null_mut()) };
        signals::watch();
    }
}

/// Before the program can fork: a child is never traced.
pub fn prepare() {
    // SAFETY: as above.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}

/// All is said: nothing is noted any more.
pub fn over() {
    words::forget();
    signals::leave();
}

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

extern "C" fn exiting(code: c_int, _: *mut c_void) {
    words::note_exit(code.into());
}

/// The child of a fork is another process: what it does, and how it ends, is not this one's.
extern "C" fn forked() {
    words::forget();
    mode::set_mode(Mode::Inert);
}
