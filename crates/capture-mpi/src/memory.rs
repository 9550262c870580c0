//! The program's allocations, so that a buffer can be recorded as "segment 3, 16 bytes in" rather than as an address
//! that means nothing in another run.
//!
//! The functions here stand before the allocator's. All they do is to set or clear the marks of a segment's two ends in
//! a bitmap; names are given only to the segments that MPI calls mention, in `segments`. C++'s operators, Fortran's
//! `allocate` and Python's objects all come through here.
//!
//! Where another `malloc` comes first, calls of it are made to go through here all the same, as far as that can be done
//! (`imports`).
//!
//! Order matters: marks are cleared *before* the memory goes back, because another thread may be given it at once.

pub mod bitmap;
pub mod freed;
pub mod gpu;
pub mod imports;
pub mod mappings;
pub mod modules;
pub mod operators;
pub mod real;
pub mod segments;
pub mod stack;

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

use crate::state::{ALLOCATOR, FIRST_ALLOCATOR, FREED, HEAP, MAPPINGS, REDIRECTED, TRACKING};
use real::Real;

pub use segments::{Place, Segments};

#[inline]
fn tracking() -> bool {
    TRACKING.load(Relaxed)
}

/// How a call came to us, and where it goes on to.
trait Way {
    fn real() -> &'static Real;
    /// Whether what passes here is marked. By one way only: what comes by the other is part of it.
    fn marks() -> bool;
}

/// The linker took it here: on to the next definition.
struct Linked;

/// It was on its way to the first definition, which is not ours.
struct Redirected;

impl Way for Linked {
    #[inline]
    fn real() -> &'static Real {
        &ALLOCATOR
    }

    #[inline]
    fn marks() -> bool {
        tracking() && !REDIRECTED.load(Relaxed)
    }
}

impl Way for Redirected {
    #[inline]
    fn real() -> &'static Real {
        &FIRST_ALLOCATOR
    }

    #[inline]
    fn marks() -> bool {
        tracking()
    }
}

#[inline]
fn allocated(memory: *mut c_void, size: usize) {
    if !memory.is_null() {
        HEAP.insert(memory as usize, size);
    }
}

#[inline]
fn released(memory: *mut c_void) {
    if !memory.is_null() && HEAP.remove(memory as usize) {
        FREED.push(segments::heap_key(memory as usize));
    }
}

/// Passes the program's call on to the function of that name.
macro_rules! pass {
    ($way:ident, $name:ident($($arg:ident),*)) => {{
        // SAFETY: the program's own call, passed on.
        unsafe { $way::real().$name($($arg),*) }
    }};
}

/// The functions that we define, each by way of `Linked`.
///
/// # Safety
/// As for C's functions of these names: the arguments are the program's, and go on as they are.
macro_rules! define {
    ($($name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?, $hook:ident;)*) => {$(
        #[doc = "# Safety"]
        #[doc = "As for C's function of this name."]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($arg: $type),*) $(-> $result)? {
            // SAFETY: the program's own call, passed on.
            unsafe { $hook::<Linked>($($arg),*) }
        }
    )*};
}

define! {
    malloc(size: usize) -> *mut c_void, on_malloc;
    calloc(count: usize, size: usize) -> *mut c_void, on_calloc;
    realloc(old: *mut c_void, size: usize) -> *mut c_void, on_realloc;
    reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void, on_reallocarray;
    free(memory: *mut c_void), on_free;
    posix_memalign(memory: *mut *mut c_void, alignment: usize, size: usize) -> c_int, on_posix_memalign;
    aligned_alloc(alignment: usize, size: usize) -> *mut c_void, on_aligned_alloc;
    memalign(alignment: usize, size: usize) -> *mut c_void, on_memalign;
    valloc(size: usize) -> *mut c_void, on_valloc;
    pvalloc(size: usize) -> *mut c_void, on_pvalloc;
}

/// What stands in for the function of that name where calls are redirected.
fn redirected(name: &[u8]) -> Option<*const c_void> {
    Some(match name {
        b"malloc" => on_malloc::<Redirected> as *const c_void,
        b"calloc" => on_calloc::<Redirected> as *const c_void,
        b"realloc" => on_realloc::<Redirected> as *const c_void,
        b"reallocarray" => on_reallocarray::<Redirected> as *const c_void,
        b"free" => on_free::<Redirected> as *const c_void,
        b"posix_memalign" => on_posix_memalign::<Redirected> as *const c_void,
        b"aligned_alloc" => on_aligned_alloc::<Redirected> as *const c_void,
        b"memalign" => on_memalign::<Redirected> as *const c_void,
        b"valloc" => on_valloc::<Redirected> as *const c_void,
        b"pvalloc" => on_pvalloc::<Redirected> as *const c_void,
        _ => return None,
    })
}

// Where nothing is marked each of these ends in the call itself, which then is a jump: a sanitizer looks at who called it.

unsafe extern "C" fn on_malloc<W: Way>(size: usize) -> *mut c_void {
    if !W::marks() {
        return pass!(W, malloc(size));
    }
    let memory = pass!(W, malloc(size));
    allocated(memory, size);
    memory
}

unsafe extern "C" fn on_calloc<W: Way>(count: usize, size: usize) -> *mut c_void {
    if !W::marks() {
        return pass!(W, calloc(count, size));
    }
    let memory = pass!(W, calloc(count, size));
    // Where this overflows the allocator returned null.
    allocated(memory, count.wrapping_mul(size));
    memory
}

unsafe extern "C" fn on_realloc<W: Way>(old: *mut c_void, size: usize) -> *mut c_void {
    if !W::marks() {
        return pass!(W, realloc(old, size));
    }
    resized(old, size, || pass!(W, realloc(old, size)))
}

unsafe extern "C" fn on_reallocarray<W: Way>(old: *mut c_void, count: usize, size: usize) -> *mut c_void {
    if !W::marks() {
        return pass!(W, reallocarray(old, count, size));
    }
    // Where this overflows the allocator returns null, and the old memory stays.
    let bytes = count.saturating_mul(size);
    resized(old, bytes, || pass!(W, reallocarray(old, count, size)))
}

/// For names a reallocation is a release and an allocation, whether or not the memory stayed where it was: that is the
/// allocator's luck, and must not show in a trace.
#[inline]
fn resized(old: *mut c_void, size: usize, resize: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let length = if old.is_null() { None } else { HEAP.length(old as usize) };
    released(old);
    let memory = resize();
    match (memory.is_null(), length) {
        // It failed, and the old memory is still the program's.
        (true, Some(length)) if size != 0 => allocated(old, length),
        _ => allocated(memory, size),
    }
    memory
}

unsafe extern "C" fn on_free<W: Way>(memory: *mut c_void) {
    if W::marks() {
        released(memory);
    }
    pass!(W, free(memory));
}

unsafe extern "C" fn on_posix_memalign<W: Way>(
    memory: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    if !W::marks() {
        return pass!(W, posix_memalign(memory, alignment, size));
    }
    let code = pass!(W, posix_memalign(memory, alignment, size));
    if code == 0 {
        // SAFETY: on success the program's pointer was written.
        allocated(unsafe { *memory }, size);
    }
    code
}

unsafe extern "C" fn on_aligned_alloc<W: Way>(alignment: usize, size: usize) -> *mut c_void {
    if !W::marks() {
        return pass!(W, aligned_alloc(alignment, size));
    }
    let memory = pass!(W, aligned_alloc(alignment, size));
    allocated(memory, size);
    memory
}

unsafe extern "C" fn on_memalign<W: Way>(alignment: usize, size: usize) -> *mut c_void {
    if !W::marks() {
        return pass!(W, memalign(alignment, size));
    }
    let memory = pass!(W, memalign(alignment, size));
    allocated(memory, size);
    memory
}

unsafe extern "C" fn on_valloc<W: Way>(size: usize) -> *mut c_void {
    if !W::marks() {
        return pass!(W, valloc(size));
    }
    let memory = pass!(W, valloc(size));
    allocated(memory, size);
    memory
}

unsafe extern "C" fn on_pvalloc<W: Way>(size: usize) -> *mut c_void {
    if !W::marks() {
        return pass!(W, pvalloc(size));
    }
    let memory = pass!(W, pvalloc(size));
    allocated(memory, size);
    memory
}

/// # Safety
/// As for C's function of this name.
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: the program's own call, passed on.
    let memory = unsafe { ALLOCATOR.mmap(address, length, protection, flags, file, offset) };
    mapped(memory, length);
    memory
}

/// # Safety
/// As for C's function of this name.
pub unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
    unmapped(address, length);
    // SAFETY: the program's own call, passed on.
    unsafe { ALLOCATOR.munmap(address, length) }
}

/// `new_address` is a variadic argument in C, there only with MREMAP_FIXED; a register either way.
///
/// # Safety
/// As for C's function of this name.
pub unsafe extern "C" fn mremap(
    address: *mut c_void,
    length: usize,
    new_length: usize,
    flags: c_int,
    new_address: *mut c_void,
) -> *mut c_void {
    unmapped(address, length);
    // SAFETY: the program's own call, passed on.
    let memory = unsafe { ALLOCATOR.mremap(address, length, new_length, flags, new_address) };
    if memory == libc::MAP_FAILED {
        mapped(address, length);
    } else {
        mapped(memory, new_length);
    }
    memory
}

fn mapped(memory: *mut c_void, length: usize) {
    if tracking() && memory != libc::MAP_FAILED {
        // A fixed mapping replaces what was there.
        MAPPINGS.remove(memory as usize, length, |start| FREED.push(segments::mapping_key(start)));
        MAPPINGS.insert(memory as usize, length);
    }
}

fn unmapped(memory: *mut c_void, length: usize) {
    if tracking() {
        MAPPINGS.remove(memory as usize, length, |start| FREED.push(segments::mapping_key(start)));
    }
}
