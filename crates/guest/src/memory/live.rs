//! What is allocated now: marks at both ends of each segment, and the keys of those that went.
//!
//! Order matters: marks are cleared *before* the memory goes back, because another thread may be given it at once.

use std::ffi::c_void;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::area::{heap_key, mapping_key};
use super::bitmap::Bitmap;
use super::freed::Freed;
use super::mappings::Mappings;

/// Allocations are followed. On from the first instruction until somebody can say that nobody asked for it.
static TRACKING: AtomicBool = AtomicBool::new(true);
/// Where allocations begin and end.
pub static HEAP: Bitmap = Bitmap::new();
/// What the program mapped itself.
pub static MAPPINGS: Mappings = Mappings::new();
/// Segments with an id that are gone.
pub static FREED: Freed = Freed::new();

#[inline]
pub fn tracking() -> bool {
    TRACKING.load(Relaxed)
}

/// From here on allocations are followed, or not.
pub fn track(followed: bool) {
    TRACKING.store(followed, Relaxed);
}

#[inline]
pub fn allocated(memory: *mut c_void, size: usize) {
    if !memory.is_null() {
        HEAP.insert(memory as usize, size);
    }
}

#[inline]
pub fn released(memory: *mut c_void) {
    if !memory.is_null() && HEAP.remove(memory as usize) {
        FREED.push(heap_key(memory as usize));
    }
}

pub fn mapped(memory: *mut c_void, length: usize) {
    if tracking() && memory != libc::MAP_FAILED {
        // A fixed mapping replaces what was there.
        MAPPINGS.remove(memory as usize, length, |start| FREED.push(mapping_key(start)));
        MAPPINGS.insert(memory as usize, length);
    }
}

pub fn unmapped(memory: *mut c_void, length: usize) {
    if tracking() {
        MAPPINGS.remove(memory as usize, length, |start| FREED.push(mapping_key(start)));
    }
}
