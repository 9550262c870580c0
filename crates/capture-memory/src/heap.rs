//! Our own memory, where we live in the program itself.
//!
//! The program's `malloc` may be the program's own code, which is recorded, or in the middle of something when a reference of
//! it fills a buffer. So there our memory comes from the kernel, at addresses far from the program's, which stay what they are
//! without us. In an emulator the C library's `malloc` is good enough.
//!
//! Whoever calls this in the program has blocked signals: no handler comes back here on the same thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::{copy_nonoverlapping, null_mut};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, PoisonError};

use dlmalloc::{Allocator, Dlmalloc};

/// Set before anything is allocated, or never.
static IS_APART: AtomicBool = AtomicBool::new(false);
/// Where the next mapping goes.
static NEXT: AtomicUsize = AtomicUsize::new(0x2000_0000_0000);
static SMALL: Small =
    Small { lock: Mutex::new(()), pieces: UnsafeCell::new(Dlmalloc::new_with_allocator(Pages)) };

#[global_allocator]
static HEAP: Heap = Heap;

/// From here on a piece has a mapping for itself.
const LARGE: usize = 128 << 10;
const PAGE: usize = 4096;

/// From now on memory comes from the kernel. Nothing was allocated before.
pub fn keep_apart() {
    IS_APART.store(true, Relaxed);
}

/// Zeroed memory of whole pages, null where there is none.
pub fn map(length: usize) -> *mut u8 {
    let length = length.next_multiple_of(PAGE);
    // A page between two, so that nothing runs over.
    let place = NEXT.fetch_add(length.next_multiple_of(1 << 16) + (1 << 16), Relaxed);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    for (place, flags) in [(place, flags | libc::MAP_FIXED_NOREPLACE), (0, flags)] {
        // SAFETY: asks for new memory, where nothing is.
        let memory = unsafe { libc::mmap(place as *mut _, length, protection, flags, -1, 0) };
        if memory != libc::MAP_FAILED {
            return memory.cast();
        }
    }
    null_mut()
}

/// # Safety
/// What [`map`] made of that length, and nobody uses any more.
pub unsafe fn unmap(memory: *mut u8, length: usize) {
    // SAFETY: as the caller says.
    unsafe { libc::munmap(memory.cast(), length.next_multiple_of(PAGE)) };
}

struct Small {
    lock: Mutex<()>,
    pieces: UnsafeCell<Dlmalloc<Pages>>,
}

// SAFETY: `pieces` is touched only under `lock`.
unsafe impl Sync for Small {}

impl Small {
    fn with<R>(&self, work: impl FnOnce(&mut Dlmalloc<Pages>) -> R) -> R {
        let _held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: this thread holds the lock, and is not here twice.
        work(unsafe { &mut *self.pieces.get() })
    }
}

struct Heap;

fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= PAGE
}

// SAFETY: pieces are the C library's, mappings, or pieces of `Dlmalloc`; which of them follows from `IS_APART`, which changes
// before the first allocation only, and the layout.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !IS_APART.load(Relaxed) {
            // SAFETY: as the caller says.
            return unsafe { System.alloc(layout) };
        }
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: as the caller says.
        SMALL.with(|small| unsafe { small.malloc(layout.size(), layout.align()) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !IS_APART.load(Relaxed) {
            // SAFETY: as the caller says.
            return unsafe { System.alloc_zeroed(layout) };
        }
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: as the caller says.
        SMALL.with(|small| unsafe { small.calloc(layout.size(), layout.align()) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if !IS_APART.load(Relaxed) {
            // SAFETY: as the caller says.
            return unsafe { System.dealloc(memory, layout) };
        }
        if is_large(layout) {
            // SAFETY: `alloc` mapped it.
            return unsafe { unmap(memory, layout.size()) };
        }
        // SAFETY: as the caller says.
        SMALL.with(|small| unsafe { small.free(memory, layout.size(), layout.align()) });
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !IS_APART.load(Relaxed) {
            // SAFETY: as the caller says.
            return unsafe { System.realloc(old, layout, size) };
        }
        // SAFETY: the caller says that the size is a possible one.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if !is_large(layout) && !is_large(new) {
            // SAFETY: as the caller says.
            return SMALL.with(|small| unsafe { small.realloc(old, layout.size(), layout.align(), size) });
        }
        // SAFETY: as the caller says.
        let memory = unsafe { self.alloc(new) };
        if !memory.is_null() {
            // SAFETY: both are at least that long, and `memory` is new.
            unsafe { copy_nonoverlapping(old, memory, layout.size().min(size)) };
            // SAFETY: as the caller says.
            unsafe { self.dealloc(old, layout) };
        }
        memory
    }
}

/// Where small pieces are dealt out from.
struct Pages;

// SAFETY: all memory is mapped anew and nobody else's; what is said to be gone is gone.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        (map(size), size, 0)
    }

    fn remap(&self, _memory: *mut u8, _old: usize, _new: usize, _may_move: bool) -> *mut u8 {
        null_mut()
    }

    fn free_part(&self, memory: *mut u8, old: usize, new: usize) -> bool {
        // SAFETY: the end of one of our mappings, which is not used any more.
        unsafe { unmap(memory.add(new), old - new) };
        true
    }

    fn free(&self, memory: *mut u8, size: usize) -> bool {
        // SAFETY: one of our mappings, of that size.
        unsafe { unmap(memory, size) };
        true
    }

    fn can_release_part(&self, _flags: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        PAGE
    }
}
