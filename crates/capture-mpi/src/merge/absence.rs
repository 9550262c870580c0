//! How a rank tells the others that it will not come, where it may do next to nothing: in a signal handler.

use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::arrival::{NOBODY_GOES, decision};
use crate::config::Config;
use crate::files::{meeting_place, meeting_prefix};

/// The name of a link to make where this process cannot come to the meeting of the ranks; null until it is known.
static NOT_COMING: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

/// In `MPI_Init`: how to tell the others, without a word more, that this rank will not come to the meeting.
pub fn prepare(config: &Config, parts: &Path) {
    let prefix = meeting_prefix(config);
    let name = decision(&meeting_place(config, parts, &prefix), &prefix);
    if let Ok(name) = CString::new(name.into_os_string().into_vec()) {
        // Whoever reads it may be a signal handler: it stays.
        NOT_COMING.store(name.into_raw(), Release);
    }
}

/// Nobody waits for this rank any more. Needs nothing but the kernel.
pub fn not_coming() {
    let name = NOT_COMING.load(Acquire);
    if !name.is_null() {
        // SAFETY: two terminated strings that stay. Where the link cannot be made, the others wait for a while.
        unsafe { libc::syscall(libc::SYS_symlinkat, NOBODY_GOES.as_ptr(), libc::AT_FDCWD, name) };
    }
}
