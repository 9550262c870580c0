//! The tracer's own memory. Where there is none left, Rust would end the program: instead tracing stops, and what the
//! call under way still needs comes out of a reserve that was set aside for this.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::guard::say;
use crate::state::{self, HELD, MOST_HELD, Mode, RESERVE};

/// Address space only, until it is given back. A single piece that is larger than this and cannot be had is still the
/// end: an allocator can only say no, and its caller only die of it.
const BYTES: usize = 16 << 20;

/// The system's allocator, with a second chance.
#[derive(Debug)]
pub struct Reserving;

#[global_allocator]
static GLOBAL: Reserving = Reserving;

/// Sets the reserve aside. Where that fails there is none.
pub fn prepare() {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: a new mapping wherever there is room.
    let memory = unsafe { libc::mmap(null_mut(), BYTES, protection, flags, -1, 0) };
    if memory != libc::MAP_FAILED {
        RESERVE.store(memory.cast(), Release);
    }
}

/// Gives the reserve back and stops tracing; whether there was one.
#[cold]
fn relieve() -> bool {
    let reserve = RESERVE.swap(null_mut(), AcqRel);
    if reserve.is_null() {
        return false;
    }
    // SAFETY: mapped by `prepare`, used by nobody, and taken out of its place by us.
    unsafe { libc::munmap(reserve.cast(), BYTES) };
    if state::MODE.compare_exchange(Mode::On as u8, Mode::Stopped as u8, AcqRel, Acquire).is_ok() {
        state::TRACKING.store(false, Relaxed);
        crate::recorder::stopped();
        let rank = state::rank().map_or_else(String::new, |rank| format!(" on rank {rank}"));
        say(&format!("tracing stopped{rank}: there is no memory left; the program is not affected"));
    }
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

// SAFETY: all is the system allocator's, asked a second time where it had nothing.
unsafe impl GlobalAlloc for Reserving {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        let allocate = || unsafe { System.alloc(layout) };
        held_more(layout.size());
        again(allocate(), allocate)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        let allocate = || unsafe { System.alloc_zeroed(layout) };
        held_more(layout.size());
        again(allocate(), allocate)
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller says; where it fails, `old` is as it was.
        let allocate = || unsafe { System.realloc(old, layout, size) };
        held_more(size);
        held_less(layout.size());
        again(allocate(), allocate)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        held_less(layout.size());
        // SAFETY: as the caller says.
        unsafe { System.dealloc(memory, layout) }
    }
}
