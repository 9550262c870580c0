//! The frames of the calling thread, by the tables that compilers write and by frame pointers where these end.
//!
//! Where the caller's frame is known, one frame leads to the next by its rule, which is looked up once for each place
//! (`places`). Where it is not (in callbacks, and on other processors) the unwinder that exceptions use goes first, through
//! our own frames and those of what is traced. Tests hold both against each other.

use std::ffi::{c_int, c_void};
use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::cfi::FRAME_POINTER;
use super::cfi::{Cfa, Rule, Saved};
use super::modules::Owner;
use super::places::Places;
use crate::threads::marks::Caller;

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
/// Most stacks are no deeper.
const USUAL: usize = 64;
/// Pages are at least so large.
const PAGE: usize = 4096;

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
    place: Caller,
    places: &'a mut Places,
    stack: &'a Range<usize>,
    frames: Vec<Raw>,
    /// The frames of our own calls are behind us.
    outside: bool,
    stop: &'a mut dyn FnMut(&Raw, Owner) -> Stop,
    stopped: bool,
    /// The tables lead nowhere from the last frame.
    lost: bool,
    /// The last page that the kernel was asked about, and that is there.
    page: usize,
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
    fn add(&mut self, frame: Raw, owner: Owner) -> bool {
        let stop = (self.stop)(&frame, owner);
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
    let pointer = unsafe { _Unwind_GetGR(context, FRAME_POINTER as c_int) };
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
            0 => walk.frames.is_empty() && walk.places.at(returns).owner != Owner::LeftOut,
            known => slot == known,
        };
        if !walk.outside {
            return GO_ON;
        }
    }
    let known = walk.places.at(returns);
    let frame = Raw { returns, slot, pointer, rule: known.rule };
    if !walk.add(frame, known.owner) || !known.has_tables || frame.rule.cfa == Cfa::Outermost {
        return STOP;
    }
    walk.lost = cfg!(target_arch = "x86_64") && walk.caller(&frame).is_none();
    if walk.lost { STOP } else { GO_ON }
}

impl Walk<'_> {
    /// Whether a word can be read there, further out than this frame.
    fn readable(&mut self, frame: &Raw, address: usize) -> bool {
        if self.stack.contains(&frame.slot) {
            return frame.slot < address
                && address < self.stack.end
                && address.is_multiple_of(size_of::<usize>());
        }
        let page = address & !(PAGE - 1);
        let aligned = address.is_multiple_of(size_of::<usize>());
        if aligned && page == self.page && page != 0 {
            return true;
        }
        let mapped = is_mapped(address);
        if mapped && aligned {
            self.page = page;
        }
        mapped
    }

    /// Where the caller's return address is written, and its frame pointer. `None` where what says so cannot be read:
    /// hand-written code may say something wrong about its frames, and at the end of a coroutine's stack there is whatever
    /// ends coroutines, which no call returns to.
    fn caller(&mut self, frame: &Raw) -> Option<(usize, usize)> {
        let from = |base: usize, offset: i64| base.wrapping_add(offset as usize);
        let mut read = |address: usize| {
            // SAFETY: just asked.
            self.readable(frame, address).then(|| unsafe { (address as *const usize).read_unaligned() })
        };
        let cfa = match frame.rule.cfa {
            Cfa::Stack(offset) => from(frame.slot, offset).wrapping_add(size_of::<usize>()),
            Cfa::Frame(offset) => from(frame.pointer, offset),
            Cfa::Written(offset) => read(from(frame.pointer, offset))?,
            Cfa::Outermost | Cfa::Other => return None,
        };
        let pointer = match frame.rule.saved {
            Saved::Not | Saved::Nowhere => frame.pointer,
            Saved::At(offset) => read(from(cfa, offset))?,
            Saved::Frame(offset) => read(from(frame.pointer, offset))?,
            Saved::Other => return None,
        };
        let slot = cfa.wrapping_sub(size_of::<usize>());
        read(slot)?;
        Some((slot, pointer))
    }

    /// From a frame whose place is known, outwards.
    fn by_tables(&mut self) {
        let Caller { mut slot, mut pointer } = self.place;
        loop {
            // SAFETY: where the wrapper returns to, or what `caller` has read.
            let returns = unsafe { (slot as *const usize).read_unaligned() };
            // The outermost frame returns nowhere.
            if returns == 0 {
                return;
            }
            let known = self.places.at(returns);
            let frame = Raw { returns, slot, pointer, rule: known.rule };
            if !self.add(frame, known.owner) || !known.has_tables || frame.rule.cfa == Cfa::Outermost {
                return;
            }
            match self.caller(&frame) {
                Some(caller) => (slot, pointer) = caller,
                None => {
                    self.lost = true;
                    return;
                }
            }
        }
    }
}

/// Whether the kernel can read a word there, which is how one asks without being killed for it.
pub fn is_mapped(address: usize) -> bool {
    /// Read as a set of signals, before it is noticed that nothing is to be done with it.
    const NOTHING: c_int = -1;
    let set = address as *const c_void;
    let none = std::ptr::null_mut::<c_void>();
    // SAFETY: changes nothing, whatever the address.
    let code = unsafe { libc::syscall(libc::SYS_rt_sigprocmask, NOTHING, set, none, size_of::<u64>()) };
    // SAFETY: this thread's own.
    address != 0 && code == -1 && unsafe { *libc::__errno_location() } == libc::EINVAL
}

/// Who finds the frames of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Us,
    /// The unwinder that exceptions use.
    Unwinder,
}

impl By {
    /// Who can.
    pub fn best(place: Caller) -> By {
        if cfg!(target_arch = "x86_64") && place.slot != 0 { By::Us } else { By::Unwinder }
    }
}

/// The frames from the one that called our wrapper outwards, and whether that is all there is to say of the stack. `stack`
/// is where this thread's stack is; `stop` is asked after each.
pub fn frames(
    by: By,
    place: Caller,
    stack: &Range<usize>,
    places: &mut Places,
    stop: &mut dyn FnMut(&Raw, Owner) -> Stop,
) -> (Vec<Raw>, bool) {
    let frames = Vec::with_capacity(USUAL);
    let mut walk =
        Walk { place, places, stack, frames, outside: false, stop, stopped: false, lost: false, page: 0 };
    match by {
        By::Us => walk.by_tables(),
        // SAFETY: `each` takes the walk, which outlives the call.
        By::Unwinder => drop(unsafe { _Unwind_Backtrace(each, (&raw mut walk).cast()) }),
    }
    if !walk.stopped && !walk.lost && place.slot != 0 {
        by_pointers(&mut walk, stack);
    }
    (walk.frames, !walk.lost)
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
        let owner = walk.places.at(returns).owner;
        if !walk.places.modules().is_return_address(returns) || !walk.add(frame, owner) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn only_what_is_on_the_stack_is_read() {
        let words = [const { Cell::new(0usize) }; 16];
        let at = |index: usize| words.as_ptr().wrapping_add(index) as usize;
        let stack = at(0)..at(16);
        // A frame from 4 on, whose caller's return address should be at 8, and a frame pointer saved at 7.
        let leads_on = |frame: &Raw, stack: &Range<usize>| {
            let mut walk = Walk {
                place: Caller::default(),
                places: &mut Places::default(),
                stack,
                frames: Vec::new(),
                outside: true,
                stop: &mut |_, _| Stop::Not,
                stopped: false,
                lost: false,
                page: 0,
            };
            walk.caller(frame).is_some()
        };
        let leads = |cfa, pointer, stack: &Range<usize>| {
            let rule = Rule { cfa, saved: Saved::At(-16) };
            leads_on(&Raw { returns: 1, slot: at(4), pointer, rule }, stack)
        };
        let elsewhere = 0..0;
        for stack in [&stack, &elsewhere] {
            assert!(leads(Cfa::Stack(32), 42, stack));
            assert!(leads(Cfa::Frame(16), at(7), stack));
            assert!(!leads(Cfa::Frame(16), 42, stack));
            assert!(!leads(Cfa::Written(-8), 42, stack));
            assert!(!leads(Cfa::Written(0), at(10), stack), "what is written there is no address");
            assert!(!leads(Cfa::Other, at(7), stack));
        }
        assert!(leads(Cfa::Stack(88), 42, &stack) && !leads(Cfa::Stack(96), 42, &stack));
        assert!(!leads(Cfa::Stack(0), 42, &stack), "it goes on where it was");
        words[10].set(at(9));
        assert!(leads_on(
            &Raw {
                returns: 1,
                slot: at(4),
                pointer: at(10),
                rule: Rule { cfa: Cfa::Written(0), saved: Saved::Frame(-8) }
            },
            &stack
        ));
    }

    #[test]
    fn the_kernel_says_what_is_mapped() {
        let local = 5usize;
        assert!(is_mapped(&raw const local as usize));
        // SAFETY: memory of ours, which nothing may touch.
        let closed = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert!(!is_mapped(closed as usize) && !is_mapped(0) && !is_mapped(42) && !is_mapped(usize::MAX - 7));
    }
}
