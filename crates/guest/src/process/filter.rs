//! A filter of system calls that the program sets up while it runs may kill whoever makes an unusual one: those are left out then.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// There was one when the process began, as in a container: that one answers with an error.
static FROM_THE_BEGINNING: AtomicBool = AtomicBool::new(false);

fn there() -> bool {
    // SAFETY: asks for a number.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) > 0 }
}

/// Before the program's `main`.
pub fn prepare() {
    FROM_THE_BEGINNING.store(there(), Relaxed);
}

/// Whether one came since. Asks the kernel.
pub fn came() -> bool {
    !FROM_THE_BEGINNING.load(Relaxed) && there()
}
