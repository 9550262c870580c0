//! What a part says of the end of its process, in the words of part files.

use refrain_guest::ends::{self, words};
use refrain_guest::threads::marks;
use refrain_tracefile::flight::OWN_FAULT;
use refrain_tracefile::part::{End, Lost, Word};
use std::sync::atomic::AtomicU64;

/// From here on ends are noted in this header.
pub fn watch(word: impl Fn(Word) -> &'static AtomicU64, place: &'static AtomicU64) {
    ends::watch(words::Words {
        pid: word(Word::Pid),
        end: word(Word::End),
        code: word(Word::EndCode),
        ticks: word(Word::LaterTicks),
        nanoseconds: word(Word::LaterNanoseconds),
        fault: word(Word::Fault),
        place,
        own_place: OWN_FAULT - Word::Inside as usize,
        lost: word(Word::Lost),
        silent: End::Silent as u64,
        exited: End::Exit as u64,
        signalled: End::Signal as u64,
    });
}

/// The first word about the end is the one that stays.
pub fn note(end: End, code: i64) {
    words::note(end as u64, code);
}

/// The process is on its way to an end that is known.
pub fn is_noted() -> bool {
    words::is_noted()
}

/// Calls are missing from here on. The first reason stays, unless it may pass.
pub fn lose(why: Lost) {
    words::lose(why as u64, &[Lost::Nothing as u64, Lost::NoRoom as u64]);
}

/// Tracing has stopped: what is kept says that it ends there.
pub fn stopped() {
    lose(Lost::Stopped);
}

/// All is said: nothing is noted any more. Nobody watches over the parts from here on, which may be gone before MPI is.
pub fn over() {
    marks::set_inside(std::ptr::null());
    ends::over();
}
