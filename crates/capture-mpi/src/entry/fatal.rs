//! Errors that end the program. A library whose error handler is `MPI_ERRORS_ARE_FATAL` prints, tells its launcher and is
//! killed, all from inside the call that failed. Nothing is installed in the program's communicators to see that: the
//! libraries call a function of their own on the way, by a name that they export, and find ours first. It notes the error
//! in the part and passes the call on.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use super::guard::observe_if_on;
use super::real::real;
use crate::library::library;
use crate::{endings, flight};

/// What the libraries call, and we define. MPICH and its kin come by the first two with every error, and return from there
/// unless it is fatal; Open MPI comes by the last one when it gives up.
pub const NAMES: [&str; 3] = ["MPIR_Err_return_comm", "MPIR_Err_return_win", "ompi_mpi_abort"];

/// Theirs, in the same order; null until first used.
static REAL: [AtomicPtr<()>; NAMES.len()] = [const { AtomicPtr::new(null_mut()) }; NAMES.len()];

/// No library's texts are longer.
const ROOM: usize = 4096;

type Theirs = unsafe extern "C-unwind" fn(usize, usize, usize) -> usize;

/// # Safety
/// The library calls its own function of that name with these arguments.
unsafe fn pass(which: usize, args: [usize; 3]) -> usize {
    let mut found = REAL[which].load(Relaxed);
    if found.is_null() {
        found =
            library().and_then(|library| library.symbol(NAMES[which])).unwrap_or_default().cast_mut().cast();
        REAL[which].store(found, Relaxed);
    }
    if found.is_null() {
        // Cannot be: our name is shown only where the library has it.
        return args[2];
    }
    // SAFETY: as the caller says; words carry any of its types, and one too many does no harm in C.
    let theirs = unsafe { std::mem::transmute::<*mut (), Theirs>(found) };
    // SAFETY: as the caller says.
    unsafe { theirs(args[0], args[1], args[2]) }
}

/// Notes an error of the call that this thread is in.
fn note(code: i32) {
    // Codes that the library makes are positive; of others it would complain.
    if code <= 0 {
        return;
    }
    observe_if_on(|| {
        let index = |name: &str| refrain_model::functions().iter().position(|f| f.name == name);
        let (Some(class_of), Some(text_of)) = (index("MPI_Error_class"), index("MPI_Error_string")) else {
            return;
        };
        type ClassOf = unsafe extern "C-unwind" fn(c_int, *mut c_int) -> c_int;
        type TextOf = unsafe extern "C-unwind" fn(c_int, *mut c_char, *mut c_int) -> c_int;
        let (mut class, mut length, mut text) = (0, 0, [0u8; ROOM]);
        // SAFETY: functions of these names have these signatures in every MPI library.
        let class_of = unsafe { std::mem::transmute::<*const (), ClassOf>(real(class_of)) };
        // SAFETY: as above.
        let text_of = unsafe { std::mem::transmute::<*const (), TextOf>(real(text_of)) };
        // SAFETY: a valid place. An error handler of the program may ask for both here.
        unsafe { class_of(code, &mut class) };
        // SAFETY: as above, and there is room for the longest text.
        unsafe { text_of(code, text.as_mut_ptr().cast(), &mut length) };
        flight::error(code, class, &text);
    });
}

/// # Safety
/// As `pass` says; so for the others.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C-unwind" fn MPIR_Err_return_comm(comm: usize, function: usize, code: usize) -> usize {
    note(code as i32);
    // SAFETY: as the caller says.
    let result = unsafe { pass(0, [comm, function, code]) };
    flight::no_error();
    result
}

/// # Safety
/// See above.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C-unwind" fn MPIR_Err_return_win(win: usize, function: usize, code: usize) -> usize {
    note(code as i32);
    // SAFETY: as the caller says.
    let result = unsafe { pass(1, [win, function, code]) };
    flight::no_error();
    result
}

/// # Safety
/// See above.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ompi_mpi_abort(comm: usize, code: usize, more: usize) -> usize {
    // The program's own MPI_Abort comes here too, with a code of its own. Asked about a code that it does not know, Open MPI
    // calls the program's error handler.
    if !endings::is_noted() && flight::is_class(code as i32) {
        note(code as i32);
    }
    // SAFETY: as the caller says.
    unsafe { pass(2, [comm, code, more]) }
}
