//! Threads are numbered as they are created, whoever creates them.

use std::arch::naked_asm;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::ends::next;
use super::own::own;
use super::threads::{Quiet, guarded};

static REAL: AtomicUsize = AtomicUsize::new(0);

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> c_int;

/// What a new thread is told.
struct NewThread {
    start: Start,
    argument: *mut c_void,
    number: u32,
    /// The signals that are blocked on it: until it has its number, all are.
    blocked: libc::sigset_t,
}

/// # Safety
/// As for the C library's function of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    let real = next(c"pthread_create", &REAL);
    if real == 0 {
        return libc::EAGAIN;
    }
    // SAFETY: the C library's function of this name.
    let real = unsafe { transmute::<usize, Create>(real) };
    let mut told: *mut NewThread = std::ptr::null_mut();
    let quiet = Quiet::new();
    let blocked = quiet.before;
    guarded(|process| {
        told = Box::into_raw(Box::new(NewThread { start, argument, number: process.new_number(), blocked }));
    });
    if told.is_null() {
        drop(quiet);
        // SAFETY: the caller's own arguments.
        return unsafe { real(thread, attributes, start, argument) };
    }
    // SAFETY: `begun` is called with what it takes.
    let result =
        unsafe { real(thread, attributes, transmute::<unsafe extern "C" fn(), Start>(begun), told.cast()) };
    if result != 0 {
        // SAFETY: no thread has begun, so it is still ours.
        guarded(|_| drop(unsafe { Box::from_raw(told) }));
    }
    result
}

/// The first function of a thread: it goes on as the program's, as if we had never been there.
#[unsafe(naked)]
unsafe extern "C" fn begun() {
    naked_asm!(
        "sub rsp, 24",
        "mov rsi, rsp",
        "call {numbered}",
        "mov rdi, qword ptr [rsp + 8]",
        "mov rax, qword ptr [rsp]",
        "add rsp, 24",
        "jmp rax",
        numbered = sym numbered,
    )
}

/// Leaves what the thread is to call, and with what.
extern "C" fn numbered(told: *mut NewThread, call: &mut [usize; 2]) {
    // SAFETY: `pthread_create` made it for this thread, and nobody else has it.
    let NewThread { start, argument, number, blocked } = unsafe { told.read() };
    // SAFETY: as above; it was read.
    guarded(|_| drop(unsafe { Box::from_raw(told.cast::<std::mem::MaybeUninit<NewThread>>()) }));
    own().number.store(number as usize + 1, Relaxed);
    *call = [start as usize, argument as usize];
    // SAFETY: as the thread that created this one had it.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &blocked, std::ptr::null_mut()) };
}
