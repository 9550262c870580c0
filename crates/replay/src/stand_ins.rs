//! Functions in place of the program's own, which are not in the trace: they compute nothing.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

thread_local! {
    /// A function of the program has heard of an error, in a call of this thread.
    static HEARD: Cell<bool> = const { Cell::new(false) };
}

/// Of that type, by its name in C.
pub fn of(name: &str) -> usize {
    match name {
        "MPI_User_function" | "MPI_User_function_c" => operation as *const () as usize,
        "MPI_Comm_copy_attr_function"
        | "MPI_Type_copy_attr_function"
        | "MPI_Win_copy_attr_function"
        | "MPI_Copy_function" => copy as *const () as usize,
        "MPI_Handler_function" => hears as *const () as usize,
        _ if name.ends_with("_errhandler_function") => hears as *const () as usize,
        // Four words, and success: deletes an attribute, cancels or frees a request.
        _ => nothing as *const () as usize,
    }
}

extern "C" fn operation(_: *mut c_void, _: *mut c_void, _: *mut c_void, _: *mut c_void) {}

/// # Safety
/// MPI gives it places for the copy and the answer.
unsafe extern "C" fn copy(
    _object: usize,
    _keyval: c_int,
    _extra: *mut c_void,
    value: *mut c_void,
    copy: *mut *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: promised by MPI.
    unsafe {
        copy.write_unaligned(value);
        flag.write_unaligned(1);
    }
    0
}

extern "C" fn nothing(_: usize, _: usize, _: usize, _: usize) -> c_int {
    0
}

/// Hears of an error. What the program's own made of the code is in the trace: what the call returned.
extern "C" fn hears(_object: usize, _code: *mut c_int) {
    HEARD.set(true);
}

/// From here on a call is made.
pub fn listen() {
    HEARD.set(false);
}

/// Whether a function of the program has heard of an error since then.
pub fn have_heard() -> bool {
    HEARD.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_of_errors_are_known_to_have_heard() {
        let heard = |name: &str| {
            listen();
            // SAFETY: functions of C that take four words at the most, and look at none of them.
            let function = unsafe {
                std::mem::transmute::<usize, extern "C" fn(usize, usize, usize, usize) -> c_int>(of(name))
            };
            function(0, 0, 0, 0);
            have_heard()
        };
        for kind in ["Comm", "File", "Win", "Session"] {
            assert!(heard(&format!("MPI_{kind}_errhandler_function")), "{kind}");
        }
        assert!(heard("MPI_Handler_function"));
        assert!(!heard("MPI_Comm_delete_attr_function"));
    }
}
