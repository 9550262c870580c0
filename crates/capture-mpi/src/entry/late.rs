//! MPI libraries that come while the program runs: mpi4py's module is opened by Python, and brings its MPI along.
//!
//! Our wrappers lie before every object that is opened later, so its calls are bound to us, if only our names are
//! visible while it is linked. So `dlopen` is ours in a process that has no MPI library yet and that a trace was asked
//! for. While one runs, the linker may ask for our wrappers one by one (`symbols::offer_by_asking`); when it is over and
//! no MPI library has come, they are hidden again; when one has, they are what it has, and `dlopen` is passed on.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::catch_unwind;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use refrain_guest::objects::elf::{Module, Which};
use refrain_guest::process::next::next;

use super::symbols;
use crate::library::{self, is_waited_for, library};

/// How many are opening a library that may bring MPI, while waiting for it.
static OPENERS: Mutex<u32> = Mutex::new(0);
/// The C library's `dlopen`, once it is known.
static DLOPEN: AtomicPtr<()> = AtomicPtr::new(null_mut());

type Dlopen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

/// The C library's `dlopen`.
fn real() -> *const () {
    let mut known = DLOPEN.load(Relaxed);
    if known.is_null() {
        known = next(c"dlopen").cast();
        DLOPEN.store(known, Relaxed);
    }
    known.cast_const()
}

/// The C library looks at where `dlopen` was called from: names without a slash are looked for in the places of the
/// caller's own object too. So this passes the call on by a jump wherever that might matter.
#[cfg(all(target_arch = "x86_64", not(test)))]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rdi",
        ".cfi_def_cfa_offset 16",
        "push rsi",
        ".cfi_def_cfa_offset 24",
        "sub rsp, 8",
        ".cfi_def_cfa_offset 32",
        "mov rdx, [rsp + 24]",
        "call {choose}",
        "add rsp, 8",
        ".cfi_def_cfa_offset 24",
        "pop rsi",
        ".cfi_def_cfa_offset 16",
        "pop rdi",
        ".cfi_def_cfa_offset 8",
        "jmp rax",
        ".cfi_endproc",
        choose = sym choose,
    )
}

/// Who opens it: the C library, or `watched`.
///
/// # Safety
/// `path` is null or a terminated string, as for `dlopen`.
#[cfg_attr(any(test, not(target_arch = "x86_64")), expect(dead_code))]
unsafe extern "C" fn choose(path: *const c_char, flags: c_int, caller: usize) -> *const () {
    let looks_only = flags & (libc::RTLD_NOLOAD | libc::RTLD_DEEPBIND) != 0;
    if !is_waited_for() || path.is_null() || looks_only {
        return real();
    }
    // SAFETY: as the caller says.
    let path = unsafe { CStr::from_ptr(path) };
    // A panic must not leave: then the call is passed on as it is.
    match catch_unwind(|| depends_on_caller(path, caller)).unwrap_or(true) {
        true => real(),
        false => watched as *const (),
    }
}

fn depends_on_caller(path: &CStr, caller: usize) -> bool {
    let path = path.to_bytes();
    let has = |byte| path.contains(&byte);
    // `$ORIGIN` is the caller's.
    has(b'$') || !has(b'/') && Module::find(Which::Holding(caller)).is_none_or(|module| module.own_paths)
}

unsafe extern "C" fn watched(path: *const c_char, flags: c_int) -> *mut c_void {
    // A panic must not leave, and it cannot end tracing: that has not begun.
    let _ = catch_unwind(begin);
    // SAFETY: `real` is the C library's `dlopen`; it never returns null, since something called ours.
    let real: Dlopen = unsafe { std::mem::transmute(real()) };
    // SAFETY: the program's own call, passed on.
    let handle = unsafe { real(path, flags) };
    let _ = catch_unwind(|| end(!handle.is_null()));
    handle
}

/// Counts those that are opening something; our symbols change only when the first begins and the last ends. The lock is
/// held only while they do: constructors of what is opened may open more, on any thread.
fn counted(change: impl FnOnce(&mut u32)) {
    let mut openers = OPENERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    change(&mut openers);
}

fn begin() {
    counted(|openers| {
        *openers += 1;
        if *openers == 1 {
            symbols::offer_by_asking();
        }
    });
}

fn end(opened: bool) {
    // The program may ask `dlerror` why it failed, which looking for the library would make it forget.
    let library = if opened { library() } else { library::known() };
    counted(|openers| {
        *openers -= 1;
        if *openers == 0 {
            // Another opener may have brought it since we looked.
            match library.or(library::known()) {
                Some(library) => symbols::offer(Some(library)),
                None => symbols::withdraw(),
            }
        }
    });
    if opened {
        // SAFETY: takes nothing. What we have looked for in vain is no error of the program's.
        unsafe { libc::dlerror() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &CStr, depends: bool) {
        // This test's program has no places of its own.
        assert_eq!(depends_on_caller(path, check as *const () as usize), depends, "{path:?}");
        assert_eq!(depends_on_caller(path, 0), depends || !path.to_bytes().contains(&b'/'), "{path:?}");
    }

    #[test]
    fn where_a_library_is_looked_for() {
        check(c"/usr/lib/libmpi.so", false);
        check(c"./libmpi.so", false);
        check(c"libmpi.so", false);
        check(c"$ORIGIN/libmpi.so", true);
    }
}
