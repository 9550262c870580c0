//! The tracer's own memory. Where there is none left, Rust would end the program: instead tracing stops, and what the
//! call under way still needs comes out of a reserve that was set aside for this.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize};

use super::heap::{Heap, Spare};
use super::{mode, pages};

/// Address space only, until it is given back. A single piece that is larger than this and cannot be had is still the
/// end: an allocator can only say no, and its caller only die of it.
const BYTES: usize = 16 << 20;

/// The tracer's heap, with a second chance.
pub struct Reserving {
    heap: Heap,
    /// How many forks are under way, on the thread that holds the heap: a signal handler may fork in one.
    forks: AtomicU32,
}

#[global_allocator]
static GLOBAL: Reserving = Reserving { heap: Heap::new(&SPARE), forks: AtomicU32::new(0) };

static SPARE: Spare = Spare::new();

/// Memory for when there is none left; null where it has been used.
static RESERVE: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// What the tracer has allocated and not freed, in bytes, and the most that ever was.
static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST_HELD: AtomicUsize = AtomicUsize::new(0);

/// Sets the reserve aside. Where that fails there is none.
pub fn prepare() {
    RESERVE.store(pages::map(BYTES).map_or(null_mut(), NonNull::as_ptr), Release);
    // SAFETY: functions that live as long as the process.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
}

/// The child has the heap as it is now, and only the thread that forks: no other one may be changing it.
extern "C" fn before_fork() {
    // Nobody else forks while this thread holds it, so nobody else counts.
    if GLOBAL.heap.lock() || GLOBAL.forks.load(Relaxed) > 0 {
        GLOBAL.forks.fetch_add(1, Relaxed);
    }
}

extern "C" fn after_fork() {
    // None: a handler that forks has interrupted the heap's own work, which goes on in both processes.
    if GLOBAL.forks.load(Relaxed) > 0 && GLOBAL.forks.fetch_sub(1, Relaxed) == 1 {
        GLOBAL.heap.unlock();
    }
}

/// Gives the reserve back and stops tracing; whether there was one.
#[cold]
fn relieve() -> bool {
    let Some(reserve) = NonNull::new(RESERVE.swap(null_mut(), AcqRel)) else { return false };
    // SAFETY: mapped by `prepare`, used by nobody, and taken out of its place by us.
    unsafe { pages::unmap(reserve, BYTES) };
    mode::stop("there is no memory left");
    true
}

/// The most that the tracer held at any time, in bytes.
pub fn most_held() -> usize {
    MOST_HELD.load(Relaxed)
}

fn held_more(bytes: usize) {
    let held = HELD.fetch_add(bytes, Relaxed).wrapping_add(bytes);
    if held > MOST_HELD.load(Relaxed) {
        MOST_HELD.fetch_max(held, Relaxed);
    }
}

fn held_less(bytes: usize) {
    HELD.fetch_sub(bytes, Relaxed);
}

fn again(first: *mut u8, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
    if first.is_null() && relieve() { allocate() } else { first }
}

// SAFETY: all is the heap's, asked a second time where it had nothing.
unsafe impl GlobalAlloc for Reserving {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        let allocate = || unsafe { self.heap.alloc(layout) };
        held_more(layout.size());
        again(allocate(), allocate)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        let allocate = || unsafe { self.heap.alloc_zeroed(layout) };
        held_more(layout.size());
        again(allocate(), allocate)
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller says; where it fails, `old` is as it was.
        let allocate = || unsafe { self.heap.realloc(old, layout, size) };
        held_more(size);
        held_less(layout.size());
        again(allocate(), allocate)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        held_less(layout.size());
        // SAFETY: as the caller says.
        unsafe { self.heap.dealloc(memory, layout) }
    }
}
