//! Stands before calls that the linker does not bring here by itself, by changing where they go: the slots through which
//! modules call others' functions.
//!
//! The program's own calls of `mmap`, `munmap` and `mremap`. Not by defining these names, as for `malloc`: communication
//! libraries (UCX, and Open MPI's patcher) find the first `munmap` of the process and overwrite its code, to learn when
//! registered memory goes away. The first must be the C library's, as without us; they would otherwise patch ours, and
//! miss every mapping that `free` gives back.
//!
//! And calls of an allocator that comes before us and does not pass them on to us: it was preloaded in front of us, or the
//! program has one of its own. Each call then goes to the very function it would have gone to, by way of us. Calls that
//! the program makes to a `malloc` of its own go through no slot and are not seen, and what is seen of one allocation has to
//! be seen of its end: so of such a program only the C++ library's calls are redirected, whose `new` and `delete` belong
//! together.
//!
//! Sanitizers want to see who allocates, by the frames on the stack, and have a way to tell others what they see. So there
//! it is the other way round: calls go past us, and we are told.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

use super::hooks::{mmap, mremap, munmap, redirected};
use super::live::{allocated, released, tracking};
use super::operators;
use super::real::{ALLOCATOR, FIRST_ALLOCATOR, REDIRECTED};
use crate::objects::elf::{Module, Which, sanitized};
use crate::process::next;

/// Redirects what has to be redirected. Called before the program begins.
pub fn redirect() {
    if let Some(program) = Module::find(Which::Program) {
        bind(&program, mapping);
    }
    if told_by_sanitizer() {
        return;
    }
    REDIRECTED.store(false, Relaxed);
    if !passes_us() {
        redirect_allocator();
    }
    redirect_operators();
}

fn bind(module: &Module, replacement: impl Fn(&CStr) -> Option<*const c_void>) {
    for (name, slot) in module.imports() {
        if let Some(ours) = replacement(name) {
            // SAFETY: one of its slots; a function of ours that does the same as the one of that name.
            unsafe { module.bind(slot, ours) };
        }
    }
}

fn mapping(name: &CStr) -> Option<*const c_void> {
    match name.to_bytes() {
        // One function by two names where files are addressed with 64 bits.
        b"mmap" | b"mmap64" => Some(mmap as *const c_void),
        b"munmap" => Some(munmap as *const c_void),
        b"mremap" => Some(mremap as *const c_void),
        _ => None,
    }
}

/// Whether an allocation comes by us, sooner or later.
fn passes_us() -> bool {
    // Not `libc::malloc`, which in here is our own.
    let (malloc, free) = (first(c"malloc"), first(c"free"));
    if malloc == 0 || free == 0 {
        return true;
    }
    // SAFETY: functions of these names, which have these signatures in every C library.
    let (malloc, free) = unsafe {
        (
            std::mem::transmute::<usize, unsafe extern "C" fn(usize) -> *mut c_void>(malloc),
            std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void)>(free),
        )
    };
    // SAFETY: a piece of memory that nobody uses.
    unsafe { free(malloc(1)) };
    ALLOCATOR.is_known()
}

/// The module that an address lies in, by its base.
fn holder(address: usize) -> Option<usize> {
    Module::find(Which::Holding(address)).map(|module| module.base)
}

fn first(name: &CStr) -> usize {
    // The linker would keep the error for whoever asks it next.
    if !Module::any(|module| module.defines(name)) {
        return 0;
    }
    next::first(name).map_or(0, |found| found as usize)
}

type Allocated = extern "C" fn(*const c_void, usize);
type Released = extern "C" fn(*const c_void);

extern "C" fn on_allocated(memory: *const c_void, size: usize) {
    if tracking() {
        allocated(memory.cast_mut(), size);
    }
}

extern "C" fn on_released(memory: *const c_void) {
    if tracking() {
        released(memory.cast_mut());
    }
}

/// Whether the runtime of a sanitizer is here and tells us of each allocation from now on. It calls `on_released` before
/// the memory is given back.
fn told_by_sanitizer() -> bool {
    let install = if sanitized() { first(c"__sanitizer_install_malloc_and_free_hooks") } else { 0 };
    if install == 0 {
        return false;
    }
    // SAFETY: the function of that name, which has this signature in every sanitizer's runtime.
    let install: extern "C" fn(Allocated, Released) -> c_int = unsafe { std::mem::transmute(install) };
    if install(on_allocated, on_released) == 0 {
        return false;
    }
    REDIRECTED.store(true, Relaxed);
    // Those of the linker itself go through no slot: the hooks pass them on and leave no frame.
    let own = holder(redirect as *const () as usize);
    for module in Module::all().iter().filter(|module| Some(module.base) != own) {
        bind(module, |name| {
            let ours = redirected(name.to_bytes()).is_some() && holder(first(name)) == own;
            let next = ours.then(|| next::next(name).cast_const())?;
            (!next.is_null()).then_some(next)
        });
    }
    true
}

fn redirect_allocator() {
    let (Some(own), Some(owner)) = (holder(redirect as *const () as usize), holder(first(c"malloc"))) else {
        return;
    };
    let modules = Module::all();
    let of_program = modules.first().is_none_or(|program| program.base == owner);
    FIRST_ALLOCATOR.resolve();
    if own == owner || !FIRST_ALLOCATOR.is_known() {
        return;
    }
    REDIRECTED.store(true, Relaxed);
    for module in modules.iter().filter(|module| module.base != own && module.base != owner) {
        if !of_program || module.defines(operators::SIGN) {
            // Functions that this allocator does not have are those of the next one, and not for us to mix up.
            bind(module, |name| redirected(name.to_bytes()).filter(|_| holder(first(name)) == Some(owner)));
        }
    }
}

/// Of an allocator that is not the program's own. Its operators come with a `malloc`; the C++ library's do not.
fn redirect_operators() {
    let Some(owner) = holder(first(operators::SIGN)) else { return };
    let modules = Module::all();
    let has_malloc = |module: &Module| module.base == owner && module.defines(c"malloc");
    if modules.first().is_none_or(|program| program.base == owner) || !modules.iter().any(has_malloc) {
        return;
    }
    operators::resolve(|address| holder(address) == Some(owner));
    for module in modules.iter().filter(|module| module.base != owner) {
        bind(module, operators::redirected);
    }
}
