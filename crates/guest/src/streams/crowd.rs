//! How the first thread that makes traced calls records without a lock, how others come to join it, and how all of it ends.
//!
//! A thread marks itself as busy and then looks who may be in; whoever changes that makes the change and then looks who
//! is busy. Between the two steps both need a barrier, so that not both can miss the other. The one that enters is in a
//! hurry, so where the kernel can, the other one's barrier does the work of both.
//!
//! Nothing here but the protocol: `tests/crowd.rs` runs this very file through every order of its steps.

use super::atomics::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use super::atomics::{AtomicBool, AtomicU8, AtomicU32};

/// Who may be in. Never goes down.
pub const ONE: u8 = 0;
/// Another thread has come, and waits until the first one is out.
const SECOND: u8 = 1;
/// All take locks. So from the start where the kernel has no barrier for others.
pub const SEVERAL: u8 = 2;
/// Nobody comes in any more.
const OVER: u8 = 3;

pub struct Crowd {
    /// One of the above.
    pub may: AtomicU8,
    /// One more than the number of the first thread that made a traced call.
    pub first: AtomicU32,
}

/// What the protocol needs of the machine it runs on.
pub trait Machine {
    /// Of the thread that enters, on every call: enough as long as one thread may be in.
    fn light(&self);
    /// Of the thread that enters, where several may.
    fn firm(&self);
    /// Of the thread that makes a change: also on behalf of all others, where theirs is none.
    fn heavy(&self);
    /// Called again and again while a thread waits for another one. False: that was long enough.
    fn wait(&self) -> bool;
}

/// How a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// No other thread has made a traced call: nothing has to be locked.
    Alone,
    Among,
}

/// Why a thread is not in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Out {
    /// It has to open it to several, and then try again.
    Crowded,
    /// The recording is over.
    Over,
    /// It is in already: a signal handler has interrupted it there.
    Again,
}

/// Another thread has been in for longer than anybody should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stuck;

impl Crowd {
    /// A thread is there for the first time.
    pub fn arrive(&self, number: u32) {
        let _ = self.first.compare_exchange(0, number + 1, AcqRel, Relaxed);
    }

    /// `busy` is the mark of the calling thread, which nobody else sets. Where it is in, it calls `leave` at the end.
    #[inline]
    pub fn enter(&self, machine: &impl Machine, number: u32, busy: &AtomicBool) -> Result<Way, Out> {
        if busy.load(Relaxed) {
            return Err(Out::Again);
        }
        busy.store(true, Relaxed);
        machine.light();
        if self.may.load(Acquire) == ONE && self.first.load(Relaxed) == number + 1 {
            return Ok(Way::Alone);
        }
        machine.firm();
        match self.may.load(Acquire) {
            SEVERAL => Ok(Way::Among),
            may => {
                busy.store(false, Release);
                Err(if may == OVER { Out::Over } else { Out::Crowded })
            }
        }
    }

    #[inline]
    pub fn leave(&self, busy: &AtomicBool) {
        busy.store(false, Release);
    }

    /// From here on all take locks. `of_first` finds the mark of the thread of that number plus one.
    pub fn open<'a>(
        &self,
        machine: &impl Machine,
        of_first: impl FnOnce(u32) -> Option<&'a AtomicBool>,
    ) -> Result<(), Stuck> {
        let _ = self.may.compare_exchange(ONE, SECOND, SeqCst, SeqCst);
        machine.heavy();
        if let Some(busy) = of_first(self.first.load(Acquire)) {
            wait_for(machine, busy)?;
        }
        let _ = self.may.compare_exchange(SECOND, SEVERAL, SeqCst, SeqCst);
        Ok(())
    }

    /// Nobody comes in any more. Whether the caller is the one that ended it: only it then takes what there is, once
    /// `all_out` says so.
    pub fn end(&self) -> bool {
        self.may.swap(OVER, SeqCst) != OVER
    }

    /// Waits until all threads are out whose marks these are, after `end`. The list is made after the barrier.
    pub fn all_out<'a, I: Iterator<Item = &'a AtomicBool>>(
        &self,
        machine: &impl Machine,
        marks: impl FnOnce() -> I,
    ) -> Result<(), Stuck> {
        machine.heavy();
        marks().try_for_each(|busy| wait_for(machine, busy))
    }
}

fn wait_for(machine: &impl Machine, busy: &AtomicBool) -> Result<(), Stuck> {
    while busy.load(Acquire) {
        if !machine.wait() {
            return Err(Stuck);
        }
    }
    Ok(())
}
