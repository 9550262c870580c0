//! MPI's own functions, behind ours.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use refrain_guest::process::next::{first, next};
use refrain_guest::process::say::say_in_pieces;
use refrain_model::{FUNCTION_COUNT, Returns};
use refrain_mpi::Library;

use crate::library::library;

/// The real functions, by position in the call table; null until first used.
static REAL: [AtomicPtr<()>; FUNCTION_COUNT] = [const { AtomicPtr::new(null_mut()) }; FUNCTION_COUNT];

/// `MPI_ERR_OTHER` of Open MPI, `MPI_ERR_INTERN` of the MPICH ABI: an error everywhere, and in no ABI a success.
pub const MISSING: usize = 16;

/// The real function, looked up on its first use. Never null.
#[inline]
pub fn real(index: usize) -> *const () {
    let known = REAL[index].load(Relaxed);
    if known.is_null() { resolve(index) } else { known }
}

/// The same for a call that is not the program's. What a replay does in place of MPI is not for those.
#[inline]
pub fn inner(index: usize) -> *const () {
    if is_replay() { behind(index) } else { real(index) }
}

#[cold]
#[inline(never)]
fn behind(index: usize) -> *const () {
    let found = look_up(refrain_model::functions()[index].name, |_| None);
    if found.is_null() { real(index) } else { found }
}

#[cold]
#[inline(never)]
fn resolve(index: usize) -> *const () {
    let function = &refrain_model::functions()[index];
    let mut found = look_up(function.name, instead);
    if found.is_null() {
        say_in_pieces(&["the MPI library has no ", function.name, "; the call fails"]);
        found = match function.returns {
            Returns::Clock => missing_clock as *const (),
            _ => missing as *const (),
        };
    }
    REAL[index].store(found.cast_mut(), Relaxed);
    found
}

/// What `instead` says, else `PMPI_X` of the program's MPI library, else its `MPI_X`, else what comes after us in the look-up order. Allocates
/// nothing: a signal handler may have interrupted our allocator.
fn look_up(name: &str, instead: fn(&[u8]) -> Option<*const c_void>) -> *const () {
    const LONGEST: usize = 128;
    let mut profiling = [0u8; LONGEST];
    // One more at the front, and at least one zero at the end.
    assert!(name.len() + 2 <= LONGEST, "no function of MPI has a name this long");
    profiling[0] = b'P';
    profiling[1..=name.len()].copy_from_slice(name.as_bytes());
    let own = |name: &[u8]| {
        let name = std::str::from_utf8(name.strip_suffix(&[0]).unwrap_or(name)).ok()?;
        library().and_then(|library: &Library| library.symbol(name))
    };
    let next = |name: &[u8]| {
        let found = next(CStr::from_bytes_with_nul(name).ok()?);
        (!found.is_null()).then_some(found.cast_const())
    };
    let profiling = &profiling[..name.len() + 2];
    let plain = &profiling[1..];
    let found = instead(plain)
        .or_else(|| own(profiling))
        .or_else(|| own(plain))
        .or_else(|| next(profiling))
        .or_else(|| next(plain));
    found.map_or(std::ptr::null(), <*const c_void>::cast)
}

/// A replay of a trace, which makes MPI's calls itself: what it calls is what is recorded, and what it does in place of
/// that is its own matter. It asks for this name before it relies on that.
// SAFETY: no other object has this name.
#[unsafe(no_mangle)]
pub static refrain_traces_replays: u8 = 1;

/// Whom to ask what is called in place of MPI; null in all programs but a replay.
static INSTEAD: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Whether the program is a replay.
pub fn is_replay() -> bool {
    !INSTEAD.load(Relaxed).is_null()
}

/// Looks for it, once: a look-up that fails allocates.
pub fn prepare() {
    match first(c"refrain_instead") {
        Some(found) => INSTEAD.store(found, Relaxed),
        None => {
            // The program is not to hear of it.
            // SAFETY: takes what this thread's last look-up left.
            let _ = unsafe { libc::dlerror() };
        }
    }
}

/// For a program that `refrain proxy` wrote: the same as the function above, told by the program before its first call.
// SAFETY: no other object has this name.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_replays_by(by: *mut c_void) {
    INSTEAD.store(by, Relaxed);
}

/// For such a program: MPI's own function, past the tracer. Null if there is none.
///
/// # Safety
/// The name is terminated.
// SAFETY: no other object has this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_unseen(name: *const c_char) -> *const c_void {
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default();
    let own = |name: &str| library().and_then(|library: &Library| library.symbol(name));
    own(&format!("P{name}")).or_else(|| own(name)).unwrap_or(std::ptr::null())
}

/// What the program wants to be called in place of that function; see crate `replay`.
fn instead(name: &[u8]) -> Option<*const c_void> {
    let asked = INSTEAD.load(Relaxed);
    if asked.is_null() {
        return None;
    }
    type Instead = unsafe extern "C" fn(*const c_char) -> *const c_void;
    // SAFETY: only a replay has this name, with this type.
    let asked = unsafe { std::mem::transmute::<*mut c_void, Instead>(asked) };
    // SAFETY: the name ends in a zero.
    let found = unsafe { asked(name.as_ptr().cast()) };
    (!found.is_null()).then_some(found)
}

extern "C" fn missing() -> usize {
    MISSING
}

extern "C" fn missing_clock() -> f64 {
    0.0
}
