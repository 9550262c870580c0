//! What compilers call, under the names that they call it by: each notes one record, in assembly, and does what it stands for.
//!
//! Registers that carry arguments are left alone, so that what follows finds them: rax, r10 and r11 are ours.

use std::arch::naked_asm;

use super::kinds::{BOTH, ENTERED, LEFT, load, store, update};
use super::threads::turn;
use super::{atomics, ranges};

/// Notes a register's value with the word in rax; r11 says where the thread's next slot is told. Jumps to 3 where it has no buffer, and
/// to 5 where this fills it. One instruction takes the slot: a handler that comes in between has another.
macro_rules! slot {
    ($what:literal) => {
        concat!(
            "cmp qword ptr fs:[r11], 0\n",
            "je 3f\n",
            "4:\n",
            "mov r10d, 16\n",
            "xadd qword ptr fs:[r11], r10\n",
            "mov qword ptr [r10], ",
            $what,
            "\n",
            "mov qword ptr [r10 + 8], rax\n",
            "add r10, 16\n",
            "test r10w, r10w\n",
            "jz 5f",
        )
    };
}

/// Notes `rdi` with the word of that kind, then does `$then`.
macro_rules! noting {
    ($(#[$meta:meta])* $name:ident, $kind:expr, $then:literal $(, $effect:ident = sym $path:path)?) => {
        $(#[$meta])*
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "mov r10, qword ptr [rip + refrain_memory_gates]",
                "cmp dword ptr [r10], 0",
                "je 2f",
                "mov r11, qword ptr [rip + refrain_memory_own@GOTTPOFF]",
                "movabs rax, {kind}",
                "add rax, qword ptr [rsp]",
                slot!("rdi"),
                "2:",
                $then,
                "3:",
                "call {turn}",
                "test r10, r10",
                "jnz 4b",
                "jmp 2b",
                "5:",
                "call {turn}",
                "jmp 2b",
                kind = const $kind,
                turn = sym turn,
                $($effect = sym $path,)?
            )
        }
    };
}

macro_rules! plain {
    ($($name:ident $kind:expr;)*) => { $( noting!($name, $kind, "ret"); )* };
}

plain! {
    __tsan_read1 load(1);
    __tsan_read2 load(2);
    __tsan_read4 load(4);
    __tsan_read8 load(8);
    __tsan_read16 load(16);
    __tsan_write1 store(1);
    __tsan_write2 store(2);
    __tsan_write4 store(4);
    __tsan_write8 store(8);
    __tsan_write16 store(16);
    __tsan_unaligned_read2 load(2);
    __tsan_unaligned_read4 load(4);
    __tsan_unaligned_read8 load(8);
    __tsan_unaligned_read16 load(16);
    __tsan_unaligned_write2 store(2);
    __tsan_unaligned_write4 store(4);
    __tsan_unaligned_write8 store(8);
    __tsan_unaligned_write16 store(16);
    __tsan_volatile_read1 load(1);
    __tsan_volatile_read2 load(2);
    __tsan_volatile_read4 load(4);
    __tsan_volatile_read8 load(8);
    __tsan_volatile_read16 load(16);
    __tsan_volatile_write1 store(1);
    __tsan_volatile_write2 store(2);
    __tsan_volatile_write4 store(4);
    __tsan_volatile_write8 store(8);
    __tsan_volatile_write16 store(16);
    __tsan_unaligned_volatile_read2 load(2);
    __tsan_unaligned_volatile_read4 load(4);
    __tsan_unaligned_volatile_read8 load(8);
    __tsan_unaligned_volatile_read16 load(16);
    __tsan_unaligned_volatile_write2 store(2);
    __tsan_unaligned_volatile_write4 store(4);
    __tsan_unaligned_volatile_write8 store(8);
    __tsan_unaligned_volatile_write16 store(16);
    __tsan_read_write1 load(1) | BOTH;
    __tsan_read_write2 load(2) | BOTH;
    __tsan_read_write4 load(4) | BOTH;
    __tsan_read_write8 load(8) | BOTH;
    __tsan_read_write16 load(16) | BOTH;
    __tsan_unaligned_read_write2 load(2) | BOTH;
    __tsan_unaligned_read_write4 load(4) | BOTH;
    __tsan_unaligned_read_write8 load(8) | BOTH;
    __tsan_unaligned_read_write16 load(16) | BOTH;
    __tsan_vptr_read load(8);
    __tsan_vptr_update store(8);
}

macro_rules! atomic {
    ($($name:ident $kind:expr, $effect:path;)*) => {
        $( noting!($name, $kind, "jmp {effect}", effect = sym $effect); )*
    };
}

/// All operations on one size.
macro_rules! atomics_of {
    ($size:expr, $module:ident: $load:ident $store:ident $exchange:ident $add:ident $sub:ident $and:ident $or:ident $xor:ident
     $nand:ident $strong:ident $weak:ident $value:ident) => {
        atomic! {
            $load load($size), atomics::$module::load;
            $store store($size), atomics::$module::store;
            $exchange update($size), atomics::$module::exchange;
            $add update($size), atomics::$module::fetch_add;
            $sub update($size), atomics::$module::fetch_sub;
            $and update($size), atomics::$module::fetch_and;
            $or update($size), atomics::$module::fetch_or;
            $xor update($size), atomics::$module::fetch_xor;
            $nand update($size), atomics::$module::fetch_nand;
            $strong update($size), atomics::$module::compare_exchange;
            $weak update($size), atomics::$module::compare_exchange;
            $value update($size), atomics::$module::compare_exchange_value;
        }
    };
}

atomics_of! {
    1, of8: __tsan_atomic8_load __tsan_atomic8_store __tsan_atomic8_exchange __tsan_atomic8_fetch_add
    __tsan_atomic8_fetch_sub __tsan_atomic8_fetch_and __tsan_atomic8_fetch_or __tsan_atomic8_fetch_xor
    __tsan_atomic8_fetch_nand __tsan_atomic8_compare_exchange_strong __tsan_atomic8_compare_exchange_weak
    __tsan_atomic8_compare_exchange_val
}
atomics_of! {
    2, of16: __tsan_atomic16_load __tsan_atomic16_store __tsan_atomic16_exchange __tsan_atomic16_fetch_add
    __tsan_atomic16_fetch_sub __tsan_atomic16_fetch_and __tsan_atomic16_fetch_or __tsan_atomic16_fetch_xor
    __tsan_atomic16_fetch_nand __tsan_atomic16_compare_exchange_strong __tsan_atomic16_compare_exchange_weak
    __tsan_atomic16_compare_exchange_val
}
atomics_of! {
    4, of32: __tsan_atomic32_load __tsan_atomic32_store __tsan_atomic32_exchange __tsan_atomic32_fetch_add
    __tsan_atomic32_fetch_sub __tsan_atomic32_fetch_and __tsan_atomic32_fetch_or __tsan_atomic32_fetch_xor
    __tsan_atomic32_fetch_nand __tsan_atomic32_compare_exchange_strong __tsan_atomic32_compare_exchange_weak
    __tsan_atomic32_compare_exchange_val
}
atomics_of! {
    8, of64: __tsan_atomic64_load __tsan_atomic64_store __tsan_atomic64_exchange __tsan_atomic64_fetch_add
    __tsan_atomic64_fetch_sub __tsan_atomic64_fetch_and __tsan_atomic64_fetch_or __tsan_atomic64_fetch_xor
    __tsan_atomic64_fetch_nand __tsan_atomic64_compare_exchange_strong __tsan_atomic64_compare_exchange_weak
    __tsan_atomic64_compare_exchange_val
}
atomics_of! {
    16, of128: __tsan_atomic128_load __tsan_atomic128_store __tsan_atomic128_exchange __tsan_atomic128_fetch_add
    __tsan_atomic128_fetch_sub __tsan_atomic128_fetch_and __tsan_atomic128_fetch_or __tsan_atomic128_fetch_xor
    __tsan_atomic128_fetch_nand __tsan_atomic128_compare_exchange_strong __tsan_atomic128_compare_exchange_weak
    __tsan_atomic128_compare_exchange_val
}

/// A function is entered, by a call that returns to rdi. What is noted is the stack here.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn __tsan_func_entry() {
    naked_asm!(
        "cmp byte ptr [rip + refrain_memory_gates + 9], 0",
        "jne 6f",
        "7:",
        "cmp byte ptr [rip + refrain_memory_gates + 8], 0",
        "jne 2f",
        "mov r11, qword ptr [rip + refrain_memory_own@GOTTPOFF]",
        "movabs rax, {kind}",
        "add rax, rdi",
        slot!("rsp"),
        "2:",
        "ret",
        "3:",
        "call {turn}",
        "test r10, r10",
        "jnz 4b",
        "ret",
        "5:",
        "jmp {turn}",
        "6:",
        "push rdi",
        "mov rdi, qword ptr [rsp + 8]",
        "call {region}",
        "pop rdi",
        "jmp 7b",
        kind = const ENTERED,
        turn = sym turn,
        region = sym super::regions::entered,
    )
}

/// A function is about to return.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn __tsan_func_exit() {
    naked_asm!(
        "cmp byte ptr [rip + refrain_memory_gates + 8], 0",
        "jne 2f",
        "mov r11, qword ptr [rip + refrain_memory_own@GOTTPOFF]",
        "movabs rax, {kind}",
        "add rax, qword ptr [rsp]",
        slot!("rsp"),
        "2:",
        "ret",
        "3:",
        "call {turn}",
        "test r10, r10",
        "jnz 4b",
        "ret",
        "5:",
        "jmp {turn}",
        kind = const LEFT,
        turn = sym turn,
    )
}

/// Tells `$work` of the first three arguments and of where the call returns to, if references are noted, then does `$then`.
macro_rules! ranged {
    ($name:ident, $work:path, $then:literal) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "mov r10, qword ptr [rip + refrain_memory_gates]",
                "cmp dword ptr [r10], 0",
                "je 2f",
                "mov r10, qword ptr [rsp]",
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "sub rsp, 8",
                "mov rcx, r10",
                "call {work}",
                "add rsp, 8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "2:",
                $then,
                work = sym $work,
            )
        }
    };
}

ranged!(__tsan_read_range, ranges::loaded, "ret");
ranged!(__tsan_write_range, ranges::stored, "ret");
// The linker takes the program's own calls of these here (`--wrap`).
ranged!(__wrap_memcpy, ranges::copied, "jmp memcpy@PLT");
ranged!(__wrap_memmove, ranges::copied, "jmp memmove@PLT");
ranged!(__wrap_memset, ranges::filled, "jmp memset@PLT");
ranged!(__wrap___memcpy_chk, ranges::copied, "jmp __memcpy_chk@PLT");
ranged!(__wrap___memmove_chk, ranges::copied, "jmp __memmove_chk@PLT");
ranged!(__wrap___memset_chk, ranges::filled, "jmp __memset_chk@PLT");
ranged!(__tsan_memcpy, ranges::copied, "jmp memcpy@PLT");
ranged!(__tsan_memmove, ranges::copied, "jmp memmove@PLT");
ranged!(__tsan_memset, ranges::filled, "jmp memset@PLT");

/// Every file that was compiled so calls this first.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_init() {
    super::start();
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_atomic_thread_fence(_order: i32) {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_atomic_signal_fence(_order: i32) {
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

/// The marks of `refrain.h`: recording goes on, or off.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_memory_switch(on: i32) {
    if super::threads::is_recorded() {
        crate::switch::set(on != 0);
    }
}

macro_rules! nothing {
    ($($name:ident)*) => {
        $(
            /// What programs tell a checker for races: nothing of it refers to memory.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> usize {
                0
            }
        )*
    };
}

nothing! {
    __tsan_acquire __tsan_release __tsan_ignore_thread_begin __tsan_ignore_thread_end
    __tsan_mutex_create __tsan_mutex_destroy __tsan_mutex_pre_lock __tsan_mutex_post_lock __tsan_mutex_pre_unlock
    __tsan_mutex_post_unlock __tsan_mutex_pre_signal __tsan_mutex_post_signal __tsan_mutex_pre_divert
    __tsan_mutex_post_divert __tsan_create_fiber __tsan_destroy_fiber __tsan_switch_to_fiber
    __tsan_get_current_fiber __tsan_set_fiber_name
    AnnotateHappensBefore AnnotateHappensAfter AnnotateIgnoreReadsBegin AnnotateIgnoreReadsEnd
    AnnotateIgnoreWritesBegin AnnotateIgnoreWritesEnd AnnotateBenignRace AnnotateBenignRaceSized
}
