//! The frames of the calling thread, by the unwinder that exceptions use, and by frame pointers where its tables end.

use std::ffi::{c_int, c_void};
use std::ops::Range;

use super::Place;
use super::cfi::{self, Cfa, Rule, Saved};
use super::modules::{Modules, Owner};

/// A frame, and what its caller's depends on.
#[derive(Debug, Clone, Copy)]
pub struct Raw {
    /// Where it goes on when the call it makes returns.
    pub returns: usize,
    /// Where on the stack that is written.
    pub slot: usize,
    /// The frame pointer while it runs.
    pub pointer: usize,
    pub rule: Rule,
}

/// Deeper stacks are cut off.
const DEEPEST: usize = 1 << 16;

#[repr(C)]
struct Context(c_void);

type Trace = unsafe extern "C-unwind" fn(*mut Context, *mut c_void) -> c_int;

unsafe extern "C-unwind" {
    fn _Unwind_Backtrace(trace: Trace, data: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
    fn _Unwind_GetCFA(context: *mut Context) -> usize;
    #[cfg(target_arch = "x86_64")]
    fn _Unwind_GetGR(context: *mut Context, register: c_int) -> usize;
}

const GO_ON: c_int = 0;
const STOP: c_int = 4;

struct Walk<'a> {
    place: Place,
    modules: &'a Modules,
    frames: Vec<Raw>,
    /// The frames of our own calls are behind us.
    outside: bool,
    stop: &'a mut dyn FnMut(&Raw) -> Stop,
    stopped: bool,
}

/// Whether to go on after a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Not,
    /// This one still counts.
    After,
    Before,
}

impl Walk<'_> {
    /// Whether there is to be another one.
    fn add(&mut self, frame: Raw) -> bool {
        let stop = (self.stop)(&frame);
        if stop != Stop::Before {
            self.frames.push(frame);
        }
        self.stopped = stop != Stop::Not || self.frames.len() >= DEEPEST;
        !self.stopped
    }
}

unsafe extern "C-unwind" fn each(context: *mut Context, data: *mut c_void) -> c_int {
    // SAFETY: what `frames` passed.
    let walk = unsafe { &mut *data.cast::<Walk>() };
    // SAFETY: the unwinder's own context, in its callback.
    let (returns, cfa) = unsafe { (_Unwind_GetIP(context), _Unwind_GetCFA(context)) };
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above; a register that every frame has.
    let pointer = unsafe { _Unwind_GetGR(context, cfi::FRAME_POINTER as c_int) };
    #[cfg(not(target_arch = "x86_64"))]
    let pointer = 0;
    // The stack pointer of a frame that waits for a call is just above the return address.
    let slot = cfa.wrapping_sub(size_of::<usize>());
    // The outermost frame returns nowhere.
    if returns == 0 {
        return STOP;
    }
    if !walk.outside {
        walk.outside = match walk.place.slot {
            0 => walk.frames.is_empty() && walk.modules.owner(returns) != Owner::Mpi,
            known => slot == known,
        };
        if !walk.outside {
            return GO_ON;
        }
    }
    let rule = if walk.place.slot == 0 { Some(cfi::UNKNOWN) } else { cfi::rule(returns) };
    let by_pointer = Rule { cfa: Cfa::Frame(16), saved: Saved::At(-16) };
    let frame = Raw { returns, slot, pointer, rule: rule.unwrap_or(by_pointer) };
    if walk.add(frame) && rule.is_some() { GO_ON } else { STOP }
}

/// The frames from the one that called our wrapper outwards. `stack` is where this thread's stack is; `stop` is asked
/// after each.
pub fn frames(
    place: Place,
    stack: &Range<usize>,
    modules: &Modules,
    stop: &mut dyn FnMut(&Raw) -> Stop,
) -> Vec<Raw> {
    let mut walk = Walk { place, modules, frames: Vec::new(), outside: false, stop, stopped: false };
    // SAFETY: `each` takes the walk, which outlives the call.
    unsafe { _Unwind_Backtrace(each, (&raw mut walk).cast()) };
    if !walk.stopped && place.slot != 0 {
        by_pointers(&mut walk, stack);
    }
    walk.frames
}

/// Goes on from a frame without tables, as long as its frame pointer looks like one: it points further out on the stack,
/// at where a call returns to.
fn by_pointers(walk: &mut Walk, stack: &Range<usize>) {
    const WORD: usize = size_of::<usize>();
    while let Some(&Raw { slot, pointer, rule, .. }) = walk.frames.last() {
        let inside =
            slot < pointer && stack.contains(&slot) && stack.contains(&pointer.saturating_add(2 * WORD));
        if rule.cfa != Cfa::Frame(16) || !inside || pointer % WORD != 0 {
            return;
        }
        // SAFETY: on this thread's stack, above frames that are alive.
        let outer = unsafe { (pointer as *const usize).read() };
        // SAFETY: as above.
        let returns = unsafe { ((pointer + WORD) as *const usize).read() };
        let frame = Raw { returns, slot: pointer + WORD, pointer: outer, rule };
        if !walk.modules.is_return_address(returns) || !walk.add(frame) {
            return;
        }
    }
}
