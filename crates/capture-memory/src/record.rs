//! What is noted of an access while it happens, and where: a buffer for each virtual processor.
//!
//! A processor is a thread of the program. Nothing here locks or looks anything up: an access costs one record of 16 bytes.

use std::cell::UnsafeCell;
use std::ptr::null_mut;

/// One access.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    pub address: u64,
    /// Which instruction.
    pub insn: u32,
    /// What QEMU says of the access.
    pub info: u32,
}

/// Set in [`Record::info`] where recording is off: only calls and returns are noted then. QEMU uses the lower 18 bits.
pub const OFF: u32 = 1 << 31;

/// [`Record::insn`] where a call is recorded by the library for MPI calls, and where that gives a thread a number, which is in
/// [`Record::address`]. No instruction has these numbers.
pub const CALL: u32 = u32::MAX;
pub const THREAD: u32 = u32::MAX - 1;
/// [`Record::info`] where a block begins to run, if fetches are recorded; the address is that of its first instruction.
pub const START: u32 = 1 << 30;

/// How many records a buffer has: small enough to stay in the cache of a core.
pub const RECORDS: usize = 4096;

/// How many threads may run at the same time.
pub const PROCESSORS: usize = 4096;

/// Where a processor's next record goes. Alone in its cache line.
#[repr(align(64))]
pub struct Slot(pub UnsafeCell<Cursor>);

#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    pub next: *mut Record,
    /// The last record that fits: when it is written, the buffer is full. Null without a buffer.
    pub last: *mut Record,
}

// SAFETY: a slot is used by the thread that its processor is, and by others only while that one is not running.
unsafe impl Sync for Slot {}

impl Slot {
    const fn new() -> Slot {
        Slot(UnsafeCell::new(Cursor { next: null_mut(), last: null_mut() }))
    }

    /// # Safety
    /// The processor of this slot is the caller, or is not running.
    pub unsafe fn get(&self) -> Cursor {
        // SAFETY: nobody else has it, as the caller says.
        unsafe { *self.0.get() }
    }

    /// # Safety
    /// As for [`Slot::get`]; what is between the two places can be written to until they are set again.
    pub unsafe fn set(&self, place: Cursor) {
        // SAFETY: nobody else has it, as the caller says.
        unsafe { *self.0.get() = place };
    }
}

pub static SLOTS: [Slot; PROCESSORS] = [const { Slot::new() }; PROCESSORS];
