//! Functions by name: those behind what we define under the same names, and those that others find.

use std::ffi::{CStr, c_void};

/// The function of that name that would be called if ours were not there; null where there is none.
pub fn next(name: &CStr) -> *mut c_void {
    // SAFETY: a terminated name; `RTLD_NEXT` is seen from the object that this code is part of, which has our functions.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// What the process finds first under that name.
pub fn first(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a terminated name.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}
