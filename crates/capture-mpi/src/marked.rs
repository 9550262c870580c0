//! Places in this library that the recorder of memory references knows, where one runs beside it (`refrain run --memory`): the
//! emulator that the program runs in watches them. A section of this file lists each kind. On the way of a call nothing is
//! executed for it.

use std::arch::asm;

/// A call is recorded. Has to stand right before what records it: the next instruction is what is watched, and nothing may come
/// there by another way.
#[inline(always)]
pub fn call() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: no instruction, only a note of where this is.
    unsafe {
        asm!(
            "990:",
            ".pushsection refrain_calls,\"aR\",@progbits",
            ".quad 990b - .",
            ".popsection",
            options(nomem, nostack, preserves_flags)
        );
    }
}

/// The calling thread has this number from here on. The load is what is watched.
#[inline(never)]
pub fn thread(number: u32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a load from a word that lives.
    unsafe {
        asm!(
            "990:",
            "mov {word:e}, dword ptr [{place}]",
            ".pushsection refrain_threads,\"aR\",@progbits",
            ".quad 990b - .",
            ".popsection",
            place = in(reg) &raw const number,
            word = out(reg) _,
            options(readonly, nostack, preserves_flags)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = number;
}
