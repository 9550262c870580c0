//! The functions that stand before the allocator's. All they do is to set or clear the marks of a segment's two ends in a
//! bitmap; names are given only to the segments that traced calls mention, in `segments`. C++'s operators, Fortran's
//! `allocate` and Python's objects all come through here.
//!
//! Where another `malloc` comes first, calls of it are made to go through here all the same, as far as that can be done
//! (`imports`).

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

use super::live::{HEAP, allocated, mapped, released, tracking, unmapped};
use super::real::{ALLOCATOR, FIRST_ALLOCATOR, REDIRECTED, Real};

/// How a call came to us, and where it goes on to.
trait Route {
    fn real() -> &'static Real;
    /// Whether what passes here is marked. By one way only: what comes by the other is part of it.
    fn marks() -> bool;
}

/// The linker took it here: on to the next definition.
struct Linked;

/// It was on its way to the first definition, which is not ours.
struct Redirected;

impl Route for Linked {
    #[inline]
    fn real() -> &'static Real {
        &ALLOCATOR
    }

    #[inline]
    fn marks() -> bool {
        tracking() && !REDIRECTED.load(Relaxed)
    }
}

impl Route for Redirected {
    #[inline]
    fn real() -> &'static Real {
        &FIRST_ALLOCATOR
    }

    #[inline]
    fn marks() -> bool {
        tracking()
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
pub fn redirected(name: &[u8]) -> Option<*const c_void> {
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

unsafe extern "C" fn on_malloc<W: Route>(size: usize) -> *mut c_void {
    if !W::marks() {
        return pass!(W, malloc(size));
    }
    let memory = pass!(W, malloc(size));
    allocated(memory, size);
    memory
}

unsafe extern "C" fn on_calloc<W: Route>(count: usize, size: usize) -> *mut c_void {
    if !W::marks() {
        return pass!(W, calloc(count, size));
    }
    let memory = pass!(W, calloc(count, size));
    // Where this overflows the allocator returned null.
    allocated(memory, count.wrapping_mul(size));
    memory
}

unsafe extern "C" fn on_realloc<W: Route>(old: *mut c_void, size: usize) -> *mut c_void {
    if !W::marks() {
        return pass!(W, realloc(old, size));
    }
    resized(old, size, || pass!(W, realloc(old, size)))
}

unsafe extern "C" fn on_reallocarray<W: Route>(old: *mut c_void, count: usize, size: usize) -> *mut c_void {
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

unsafe extern "C" fn on_free<W: Route>(memory: *mut c_void) {
    if W::marks() {
        released(memory);
    }
    pass!(W, free(memory));
}

unsafe extern "C" fn on_posix_memalign<W: Route>(
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

unsafe extern "C" fn on_aligned_alloc<W: Route>(alignment: usize, size: usize) -> *mut c_void {
    if !W::marks() {
        return pass!(W, aligned_alloc(alignment, size));
    }
    let memory = pass!(W, aligned_alloc(alignment, size));
    allocated(memory, size);
    memory
}

unsafe extern "C" fn on_memalign<W: Route>(alignment: usize, size: usize) -> *mut c_void {
    if !W::marks() {
        return pass!(W, memalign(alignment, size));
    }
    let memory = pass!(W, memalign(alignment, size));
    allocated(memory, size);
    memory
}

unsafe extern "C" fn on_valloc<W: Route>(size: usize) -> *mut c_void {
    if !W::marks() {
        return pass!(W, valloc(size));
    }
    let memory = pass!(W, valloc(size));
    allocated(memory, size);
    memory
}

unsafe extern "C" fn on_pvalloc<W: Route>(size: usize) -> *mut c_void {
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
