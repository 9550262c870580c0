//! The program's allocations, so that a buffer can be recorded as "segment 3, 16 bytes in" rather than as an address
//! that means nothing in another run.
//!
//! The functions here stand before the allocator's. All they do is to set or clear the marks of a segment's two ends in
//! a bitmap; names are given only to the segments that MPI calls mention, in `segments`. C++'s operators, Fortran's
//! `allocate` and Python's objects all come through here.
//!
//! Order matters: marks are cleared *before* the memory goes back, because another thread may be given it at once.

pub mod bitmap;
pub mod freed;
pub mod gpu;
pub mod imports;
pub mod mappings;
pub mod modules;
pub mod real;
pub mod segments;
pub mod stack;

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;

use crate::state::{ALLOCATOR, FREED, HEAP, MAPPINGS, TRACKING};

pub use segments::{Place, Segments};

#[inline]
fn tracking() -> bool {
    TRACKING.load(Relaxed)
}

#[inline]
fn allocated(memory: *mut c_void, size: usize) {
    if tracking() && !memory.is_null() {
        HEAP.insert(memory as usize, size);
    }
}

#[inline]
fn released(memory: *mut c_void) {
    if tracking() && !memory.is_null() && HEAP.remove(memory as usize) {
        FREED.push(segments::heap_key(memory as usize));
    }
}

/// # Safety
/// As for C's `malloc`, and so on for all of these: the arguments are the program's, and go on as they are.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: the program's own call, passed on.
    let memory = unsafe { ALLOCATOR.malloc(size) };
    allocated(memory, size);
    memory
}

/// # Safety
/// See `malloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: the program's own call, passed on.
    let memory = unsafe { ALLOCATOR.calloc(count, size) };
    // Where this overflows the allocator returned null.
    allocated(memory, count.wrapping_mul(size));
    memory
}

/// For names a reallocation is a release and an allocation, whether or not the memory stayed where it was: that is the
/// allocator's luck, and must not show in a trace.
///
/// # Safety
/// See `malloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    let known = tracking() && !old.is_null();
    let length = if known { HEAP.length(old as usize) } else { None };
    if known {
        released(old);
    }
    // SAFETY: the program's own call, passed on.
    let memory = unsafe { ALLOCATOR.realloc(old, size) };
    match (memory.is_null(), length) {
        // It failed, and the old memory is still the program's.
        (true, Some(length)) if size != 0 => allocated(old, length),
        _ => allocated(memory, size),
    }
    memory
}

/// # Safety
/// See `malloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: as `reallocarray` is defined.
        Some(bytes) => unsafe { realloc(old, bytes) },
        None => {
            set_errno(libc::ENOMEM);
            null_mut()
        }
    }
}

/// # Safety
/// See `malloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn free(memory: *mut c_void) {
    released(memory);
    // SAFETY: the program's own call, passed on.
    unsafe { ALLOCATOR.free(memory) }
}

/// # Safety
/// See `malloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn posix_memalign(memory: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    // SAFETY: the program's own call, passed on.
    let code = unsafe { ALLOCATOR.posix_memalign(memory, alignment, size) };
    if code == 0 {
        // SAFETY: on success the program's pointer was written.
        allocated(unsafe { *memory }, size);
    }
    code
}

/// # Safety
/// See `malloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the program's own call, passed on.
    let memory = unsafe { ALLOCATOR.aligned_alloc(alignment, size) };
    allocated(memory, size);
    memory
}

/// # Safety
/// See `malloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the program's own call, passed on.
    let memory = unsafe { ALLOCATOR.memalign(alignment, size) };
    allocated(memory, size);
    memory
}

/// # Safety
/// See `malloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: the program's own call, passed on.
    let memory = unsafe { ALLOCATOR.valloc(size) };
    allocated(memory, size);
    memory
}

/// # Safety
/// See `malloc`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    // SAFETY: the program's own call, passed on.
    let memory = unsafe { ALLOCATOR.pvalloc(size) };
    allocated(memory, size);
    memory
}

/// # Safety
/// See `malloc`.
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
/// See `malloc`.
pub unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
    unmapped(address, length);
    // SAFETY: the program's own call, passed on.
    unsafe { ALLOCATOR.munmap(address, length) }
}

/// `new_address` is a variadic argument in C, there only with MREMAP_FIXED; a register either way.
///
/// # Safety
/// See `malloc`.
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

fn set_errno(code: c_int) {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() = code };
}
