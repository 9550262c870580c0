//! Calls of MPI that the program leaves by a jump, and how that is noticed: by what lies on the stack.

use refrain_guest::process::stack;
use refrain_guest::threads::marks::{self, Entry, Layer};

use crate::missing;

/// Whether a call that was entered so is not over, seen from one that is entered now.
///
/// A frame of a call that is not over lies above that of a call made inside it, and the address that the call returns
/// to still stands in it. Nothing is concluded where a stack is not the thread's own (coroutines, signal stacks).
pub fn lasts(outer: Entry, now: Entry) -> bool {
    let stack = stack::current();
    if !stack.contains(&outer.slot) || !stack.contains(&now.slot) {
        return true;
    }
    // SAFETY: a word of this thread's stack above what it uses now, so it is mapped; aligned as return addresses are.
    now.slot < outer.slot && unsafe { (outer.slot as *const usize).read_volatile() } == outer.caller
}

/// Counts the calls that this thread has left by a jump: their frames are gone, or others lie where they were. Returns
/// how many it is in.
#[cold]
pub fn settle_jumps(entry: Entry) -> usize {
    let depth = marks::depth();
    let level = (depth & marks::LEVELS) as usize;
    let mut left = level;
    while left > 0 && !lasts(marks::entry_at(left - 1), entry) {
        left -= 1;
    }
    let layer = marks::layer();
    let left_layer = depth & marks::IN_LAYER != 0 && !lasts(layer.entry, entry);
    if left_layer {
        marks::set_layer(Layer::NONE);
    }
    if left < level {
        if depth & marks::PROGRAM == 0 {
            missing::tear_out();
        }
        missing::count_jumps((level - left) as u64);
        // It is back in a callback, or in no call at all.
        marks::set_depth(if left == 0 { 0 } else { left as u32 | marks::PROGRAM });
    } else if left_layer && layer.level as usize == left {
        // Out of a layer for Fortran.
        missing::tear_out();
        missing::count_jumps(1);
        marks::set_depth(if left == 0 { 0 } else { left as u32 | marks::PROGRAM });
    }
    left
}

/// The calling thread ends: calls that it is still marked as inside of never return.
#[cold]
pub fn leave_all() {
    let depth = marks::depth();
    let calls = (depth & marks::LEVELS) + u32::from(depth & marks::LAYER != 0);
    if calls != 0 && depth & marks::BUSY == 0 {
        missing::count_jumps(calls.into());
        marks::set_depth(0);
    }
}
