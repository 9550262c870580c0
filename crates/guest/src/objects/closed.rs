//! How often the program closed a library: other code may come to lie where it was. Cheaper to ask than the loader.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Acquire;

static CLOSED: AtomicU64 = AtomicU64::new(0);

#[inline]
pub fn count() -> u64 {
    CLOSED.load(Acquire)
}

/// # Safety
/// As for C's `dlclose`.
#[cfg(not(test))]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dlclose(handle: *mut std::ffi::c_void) -> std::ffi::c_int {
    type Dlclose = unsafe extern "C-unwind" fn(*mut std::ffi::c_void) -> std::ffi::c_int;
    // SAFETY: the C library's function of this name, which is there, since something was bound to ours.
    let real: Dlclose = unsafe { std::mem::transmute(crate::process::next::next(c"dlclose")) };
    // SAFETY: the program's own call, passed on.
    let code = unsafe { real(handle) };
    CLOSED.fetch_add(1, std::sync::atomic::Ordering::Release);
    code
}
