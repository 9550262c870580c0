//! Memory straight from the kernel.
//!
//! By system calls, not by the C library's functions: communication libraries overwrite the code of `munmap` to learn
//! when the program's memory goes away (see `memory::imports`), and ours is none of their business. We may also be inside
//! `malloc` or `mmap` already.

use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null_mut};

const PROTECTION: c_int = libc::PROT_READ | libc::PROT_WRITE;
const FLAGS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// C's `mmap`.
///
/// # Safety
/// As for that function.
pub unsafe fn map_as(
    place: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // Words, all of them: of an `int` the kernel would see undefined bits.
    let (protection, flags, file) = (protection as isize, flags as isize, file as isize);
    // SAFETY: as the caller says. Both are -1 where it fails.
    unsafe { libc::syscall(libc::SYS_mmap, place, length, protection, flags, file, offset) as *mut c_void }
}

/// The contents of these pages come back from their file when they are looked at again.
///
/// # Safety
/// Pages of a file, which nobody has changed or which are shared with it.
pub unsafe fn let_go(start: *mut c_void, length: usize) {
    // SAFETY: as the caller says.
    unsafe { libc::syscall(libc::SYS_madvise, start, length, libc::MADV_DONTNEED as usize) };
}

/// Zeroed memory. The kernel gives only the touched pages real memory.
pub fn map(length: usize) -> Option<NonNull<u8>> {
    // SAFETY: asks for new memory anywhere.
    let memory = unsafe { map_as(null_mut(), length, PROTECTION, FLAGS, -1, 0) };
    if memory == libc::MAP_FAILED { None } else { NonNull::new(memory.cast()) }
}

/// The same where little of it will be touched: one byte must not cost a large page of two megabytes.
pub fn map_sparse(length: usize) -> Option<NonNull<u8>> {
    let memory = map(length)?;
    // SAFETY: advice about our own mapping.
    unsafe { libc::syscall(libc::SYS_madvise, memory.as_ptr(), length, libc::MADV_NOHUGEPAGE as usize) };
    Some(memory)
}

/// Whether it is gone.
///
/// # Safety
/// Whole pages that `map` made, and that nobody uses any more.
pub unsafe fn unmap(memory: NonNull<u8>, length: usize) -> bool {
    // SAFETY: as the caller says.
    unsafe { libc::syscall(libc::SYS_munmap, memory.as_ptr(), length) == 0 }
}

/// Another length, with the same contents, elsewhere if need be and allowed. None: all is as it was.
///
/// # Safety
/// A mapping of that length that `map` made, of which the caller is the only user.
pub unsafe fn remap(memory: NonNull<u8>, old: usize, new: usize, may_move: bool) -> Option<NonNull<u8>> {
    let flags = if may_move { libc::MREMAP_MAYMOVE as usize } else { 0 };
    // SAFETY: as the caller says.
    let moved = unsafe { libc::syscall(libc::SYS_mremap, memory.as_ptr(), old, new, flags) };
    if moved == -1 { None } else { NonNull::new(moved as *mut u8) }
}

pub fn size() -> usize {
    const USUAL: usize = 4096;
    // SAFETY: asks for a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(USUAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_keep_their_contents_when_they_move() {
        let memory = map(size()).unwrap();
        // SAFETY: our own mapping, each time of that length.
        unsafe {
            memory.write(7);
            let longer = remap(memory, size(), 64 * size(), true).unwrap();
            assert_eq!((longer.read(), longer.add(64 * size() - 1).read()), (7, 0));
            assert!(unmap(longer, 64 * size()));
        }
        assert!(map(usize::MAX / 2).is_none());
    }
}
