//! What a thread has of its own here, and what switches recording: words that assembly reads, and nothing that has to be set up.
//!
//! A record is 16 bytes: the address, and a word of what kind it is (`kinds`) above the 48 bits of where it comes from. A
//! buffer is 64 KiB, aligned to that, so that it is full when the lower 16 bits of the next place are zero. Behind it there is
//! as much again: a signal handler may come between the moment a buffer is full and the moment it is emptied.

use std::arch::{asm, global_asm, naked_asm};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicUsize};

/// Bytes of a buffer.
pub const BUFFER: usize = 1 << 16;

/// One reference, or a function that was entered or left.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    pub address: u64,
    /// 0: somebody has taken the place and not come to write it.
    pub word: u64,
}

/// What a thread has of its own.
#[repr(C)]
#[derive(Debug)]
pub struct Own {
    /// Where its next record goes; 0 without a buffer.
    pub next: AtomicUsize,
    /// The end of a stack for what we do; 0 without one.
    stack: AtomicUsize,
    /// Not 0 while we are at work on this thread: where records go meanwhile, which nobody reads.
    pub busy: AtomicUsize,
    /// 1 + which lane it has; 0: none.
    pub lane: AtomicUsize,
    /// 1 + its number, where that was known before it began.
    pub number: AtomicUsize,
    /// Not 0 while anything of ours runs on this thread.
    pub inside: AtomicUsize,
}

/// What is noted now.
#[repr(C)]
#[derive(Debug)]
pub struct Gates {
    /// Points to a word: while that is 0, no reference is.
    on: AtomicPtr<AtomicU32>,
    /// Not 0: no function that is entered or left is.
    pub flow: AtomicU8,
    /// Not 0: functions that are entered may switch recording.
    pub region: AtomicU8,
}

global_asm!(
    ".pushsection .tbss.refrain_memory_own,\"awT\",@nobits",
    ".globl refrain_memory_own",
    ".hidden refrain_memory_own",
    ".type refrain_memory_own,@object",
    ".size refrain_memory_own,48",
    ".balign 8",
    "refrain_memory_own:",
    ".zero 48",
    ".popsection",
    ".pushsection .data.refrain_memory_gates,\"aw\",@progbits",
    ".globl refrain_memory_gates",
    ".hidden refrain_memory_gates",
    ".type refrain_memory_gates,@object",
    ".size refrain_memory_gates,16",
    ".balign 8",
    "refrain_memory_gates:",
    ".quad refrain_memory_off_word",
    ".byte 1, 0",
    ".zero 6",
    ".popsection",
    ".pushsection .bss.refrain_memory_off_word,\"aw\",@nobits",
    ".globl refrain_memory_off_word",
    ".hidden refrain_memory_off_word",
    ".type refrain_memory_off_word,@object",
    ".size refrain_memory_off_word,4",
    ".balign 4",
    "refrain_memory_off_word:",
    ".zero 4",
    ".popsection",
);

unsafe extern "C" {
    static refrain_memory_gates: Gates;
    static refrain_memory_off_word: AtomicU32;
}

pub fn gates() -> &'static Gates {
    // SAFETY: words that are only touched atomically.
    unsafe { &refrain_memory_gates }
}

/// References are noted while the switch of the process is on.
pub fn open() {
    gates().on.store(crate::switch::word().cast_mut(), Relaxed);
}

/// Nothing is noted any more.
pub fn close() {
    gates().on.store((&raw const refrain_memory_off_word).cast_mut(), Relaxed);
    gates().flow.store(1, Relaxed);
}

/// What the calling thread has.
#[inline]
pub fn own() -> &'static Own {
    let own: *const Own;
    // SAFETY: the thread's own address plus where its words are from there. They live as long as the thread, and nobody keeps
    // the reference for longer but under the lock of its lane.
    unsafe {
        asm!(
            "mov {own}, qword ptr fs:[0]",
            "add {own}, qword ptr [rip + refrain_memory_own@GOTTPOFF]",
            own = out(reg) own,
            options(nostack, readonly),
        );
        &*own
    }
}

impl Own {
    /// Gives the thread a stack for what we do: the program's may be nearly full. Whether it has one.
    pub fn take_stack(&self) -> bool {
        const STACK: usize = 1 << 20;
        if self.stack.load(Relaxed) == 0 {
            let memory = crate::heap::map(STACK);
            if memory.is_null() {
                return false;
            }
            self.stack.store(memory as usize + STACK, Relaxed);
        }
        true
    }

    /// Gives it back. The thread makes no use of it now.
    pub fn leave_stack(&self) {
        const STACK: usize = 1 << 20;
        let end = self.stack.swap(0, Relaxed);
        if end != 0 {
            // SAFETY: `take_stack` mapped it.
            unsafe { crate::heap::unmap((end - STACK) as *mut u8, STACK) };
        }
    }
}

/// Calls that on the stack for what we do, if there is one.
///
/// # Safety
/// Nothing of ours is on that stack.
#[unsafe(naked)]
pub unsafe extern "C" fn apart(work: extern "C" fn(usize), argument: usize) {
    naked_asm!(
        "push rbx",
        "mov rbx, rsp",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov r11, qword ptr [rip + refrain_memory_own@GOTTPOFF]",
        "mov r10, qword ptr fs:[r11 + 8]",
        "test r10, r10",
        "cmovnz rsp, r10",
        "and rsp, -16",
        "call rax",
        "mov rsp, rbx",
        "pop rbx",
        "ret",
    )
}
