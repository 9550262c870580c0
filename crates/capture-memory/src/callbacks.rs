//! What QEMU calls. No panic leaves these, and an access costs one record.

use std::ffi::{c_uint, c_void};

use crate::process;
use crate::qemu::{Id, Tb};
use crate::record::{CALL, Cursor, OFF, RECORDS, Record, SLOTS, THREAD};
use crate::switch;
use crate::translation;

/// An access.
pub unsafe extern "C" fn on_memory(processor: c_uint, info: u32, address: u64, insn: *mut c_void) {
    if switch::is_on() {
        note(processor, Record { address, insn: insn as usize as u32, info });
    }
}

/// An access of a call or return, which is told in any case.
pub unsafe extern "C" fn on_flow(processor: c_uint, info: u32, address: u64, insn: *mut c_void) {
    let off = if switch::is_on() { 0 } else { OFF };
    note(processor, Record { address, insn: insn as usize as u32, info: info | off });
}

/// A block begins to run, with what is to be noted.
pub unsafe extern "C" fn on_start(processor: c_uint, start: *mut c_void) {
    if switch::is_on() {
        // SAFETY: it is part of a block, and these are kept for ever.
        note(processor, unsafe { *start.cast::<Record>() });
    }
}

/// An access that is not recorded.
pub unsafe extern "C" fn on_nothing(_: c_uint, _: u32, _: u64, _: *mut c_void) {}

/// A mark or a function is reached at which recording goes on, or off where it is null.
pub unsafe extern "C" fn on_switch(_processor: c_uint, on: *mut c_void) {
    switch::set(!on.is_null());
}

/// A call is recorded by the library for MPI calls.
pub unsafe extern "C" fn on_call(processor: c_uint, _: *mut c_void) {
    note(processor, Record { insn: CALL, ..Record::default() });
}

/// That library loads the number that it has given to the thread. `base` is where the program's memory begins in ours.
pub unsafe extern "C" fn on_thread(processor: c_uint, _: u32, address: u64, base: *mut c_void) {
    let place = (address as usize).wrapping_add(base as usize) as *const u32;
    // SAFETY: the program loads this word here and now, of its own stack.
    let number = unsafe { place.read_unaligned() };
    note(processor, Record { address: number.into(), insn: THREAD, info: 0 });
}

#[inline(always)]
fn note(processor: c_uint, record: Record) {
    let Some(slot) = SLOTS.get(processor as usize) else { return };
    let place = slot.0.get();
    // SAFETY: this is the thread of that processor, so nobody else has its place.
    let place = unsafe { &mut *place };
    let next = place.next;
    if next.is_null() {
        return begin(processor, record);
    }
    // SAFETY: `next` lies in the buffer, which ends after `last`.
    unsafe { *next = record };
    // SAFETY: at most one behind `last`, which is the end of the buffer.
    place.next = unsafe { next.add(1) };
    if next == place.last {
        full(processor);
    }
}

#[cold]
#[inline(never)]
fn begin(processor: c_uint, record: Record) {
    process::guarded(|process| process.begin(processor, Some(record)));
}

#[cold]
#[inline(never)]
fn full(processor: c_uint) {
    process::guarded(|process| process.flush(processor, process::When::Full));
    let slot = &SLOTS[processor as usize];
    // SAFETY: this is the thread of that processor.
    let place = unsafe { slot.get() };
    if place.next > place.last && !place.last.is_null() {
        // Recording has ended: nobody looks at what is noted from now on.
        // SAFETY: the buffer begins there, and is kept.
        unsafe { slot.set(Cursor { next: place.last.sub(RECORDS - 1), ..place }) };
    }
}

pub unsafe extern "C" fn on_translation(_id: Id, tb: *mut Tb) {
    process::guarded(|process| translation::translated(process, tb));
}

pub unsafe extern "C" fn on_vcpu_init(_id: Id, processor: c_uint) {
    process::guarded(|process| process.begin(processor, None));
}

pub unsafe extern "C" fn on_vcpu_exit(_id: Id, processor: c_uint) {
    process::guarded(|process| process.end(processor));
}

pub unsafe extern "C" fn on_syscall(
    _id: Id,
    processor: c_uint,
    number: i64,
    first: u64,
    second: u64,
    third: u64,
    fourth: u64,
    fifth: u64,
    _: u64,
    _: u64,
    _: u64,
) {
    process::guarded(|process| process.syscall(processor, number, [first, second, third, fourth, fifth]));
}

pub unsafe extern "C" fn on_exit(_id: Id, _: *mut c_void) {
    process::guarded(|process| process.exit());
}
