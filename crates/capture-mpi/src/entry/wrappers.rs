//! `MPI_X` and `PMPI_X` for every function of the call table, both of them the same code: Fortran layers reach C through
//! either name. `build.rs` writes the list of macro calls; the bodies are here.
//!
//! Arguments are words whatever their C type: the C calling convention passes an `int`, a pointer or an `MPI_Count` in
//! one register or one stack slot each, so that one wrapper serves every ABI of MPI.

#![allow(non_snake_case)]

use refrain_guest::process::clock;
use refrain_guest::threads::marks;

use super::{guard, real};
use crate::{filter, flight, wild};

/// One function, under both names. The first word says how it is treated.
macro_rules! wrap {
    (silent_clock, $index:literal, $mpi:ident, $pmpi:ident, ()) => {
        wrap!(@both $mpi, $pmpi, (), f64, {
            // SAFETY: the program calls a function of this signature.
            unsafe { guard::pass_clock(real::real($index)) }
        });
    };
    (clock, $index:literal, $mpi:ident, $pmpi:ident, ()) => {
        wrap!(@both $mpi, $pmpi, (), f64, {
            if guard::passing($index) {
                // SAFETY: the program calls a function of this signature.
                return unsafe { guard::pass_clock(real::inner($index)) };
            }
            // SAFETY: as above.
            unsafe { guard::clock($index) }
        });
    };
    (silent, $index:literal, $mpi:ident, $pmpi:ident, ($($a:ident)*)) => {
        wrap!(@both $mpi, $pmpi, ($($a)*), usize, { wrap!(@pass $index, ($($a)*)) });
    };
    (plain, $index:literal, $mpi:ident, $pmpi:ident, ($($a:ident)*)) => {
        wrap!(@ordinary $index, $mpi, $pmpi, ($($a)*), |_args| {}, ());
    };
    (overwriting, $index:literal, $mpi:ident, $pmpi:ident, ($($a:ident)*)) => {
        wrap!(@ordinary $index, $mpi, $pmpi, ($($a)*), |args| guard::before($index, args), ());
    };
    // MPI is given a status of ours where the program ignores it, and asks for any source or any tag.
    (receiving, $index:literal, $mpi:ident, $pmpi:ident, ($($a:ident)*), $status:ident, $source:ident, $tag:ident) => {
        // No rank is below zero: what asks for any is told apart from other such numbers later.
        wrap!(@ordinary $index, $mpi, $pmpi, ($($a)*), |_args| {}, ($status (($source | $tag) as u32 as i32) < 0));
    };
    // The same of a receive into what is sent.
    (replacing, $index:literal, $mpi:ident, $pmpi:ident, ($($a:ident)*), $status:ident, $source:ident, $tag:ident) => {
        wrap!(
            @ordinary $index, $mpi, $pmpi, ($($a)*), |args| guard::before($index, args),
            ($status (($source | $tag) as u32 as i32) < 0)
        );
    };
    // The same where one of the requests may be such a receive.
    (completing, $index:literal, $mpi:ident, $pmpi:ident, ($($a:ident)*), $status:ident) => {
        wrap!(
            @ordinary $index, $mpi, $pmpi, ($($a)*), |args| guard::before($index, args), ($status wild::made())
        );
    };
    // MPI is given functions of ours in place of the program's (`callbacks`); what is recorded are the program's.
    (registering, $index:literal, $mpi:ident, $pmpi:ident, ($($a:ident)*)) => {
        wrap!(@both $mpi, $pmpi, ($($a)*), usize, {
            if guard::passing($index) {
                return wrap!(@inner $index, ($($a)*));
            }
            // SAFETY: these are the program's arguments for this function.
            unsafe { guard::registering($index, &[$($a),*]) }
        });
    };
    // Last the status for which MPI may be given one of ours, and when something is to be known from it.
    (
        @ordinary $index:literal, $mpi:ident, $pmpi:ident, ($($a:ident)*), $before:expr,
        ($($status:ident $wild:expr)?)
    ) => {
        wrap!(@both $mpi, $pmpi, ($($a)*), usize, {
            if guard::passing($index) {
                return wrap!(@inner $index, ($($a)*));
            }
            let inside = guard::Inside::enter($index);
            if filter::passes($index) {
                let word = wrap!(@pass $index, ($($a)*));
                inside.leave();
                return word;
            }
            inside.begin_part($index);
            let args = [$($a),*];
            let before: fn(&[usize]) = $before;
            before(&args);
            let own = wrap!(@own $index, args $(, $wild)?);
            $(let $status = if own == 0 { $status } else { own };)?
            // Looking it up, the first time, is not the call's time.
            real::real($index);
            let start = clock::ticks();
            flight::note($index, &args, start);
            let word = wrap!(@pass $index, ($($a)*));
            let end = clock::ticks();
            guard::after($index, &args, own, word, start, end);
            inside.leave();
            word
        });
    };
    (@own $index:literal, $args:ident) => {
        0
    };
    (@own $index:literal, $args:ident, $wild:expr) => {
        if $wild { guard::statuses($index, &$args) } else { 0 }
    };
    // Met also where tracing has stopped: other ranks may be waiting for this one.
    (init, $index:literal, $mpi:ident, $pmpi:ident, ($($a:ident)*)) => {
        wrap!(@observed init, passing_by, $index, $mpi, $pmpi, ($($a)*));
    };
    (finalize, $index:literal, $mpi:ident, $pmpi:ident, ($($a:ident)*)) => {
        wrap!(@observed finalize, passing_finalize, $index, $mpi, $pmpi, ($($a)*));
    };
    (abort, $index:literal, $mpi:ident, $pmpi:ident, ($($a:ident)*)) => {
        wrap!(@observed abort, passing, $index, $mpi, $pmpi, ($($a)*));
    };
    (@observed $path:ident, $passing:ident, $index:literal, $mpi:ident, $pmpi:ident, ($($a:ident)*)) => {
        wrap!(@both $mpi, $pmpi, ($($a)*), usize, {
            if guard::$passing($index) {
                return wrap!(@inner $index, ($($a)*));
            }
            // SAFETY: these are the program's arguments for this function.
            unsafe { guard::$path($index, &[$($a),*]) }
        });
    };
    (@pass $index:literal, ($($a:ident)*)) => { wrap!(@call real::real($index), ($($a)*)) };
    (@inner $index:literal, ($($a:ident)*)) => { wrap!(@call real::inner($index), ($($a)*)) };
    (@call $real:expr, ($($a:ident)*)) => {{
        let real = $real;
        type Real = unsafe extern "C-unwind" fn($(wrap!(@word $a)),*) -> usize;
        // SAFETY: the program believes it calls a function of this signature, and `real` is that function.
        let real = unsafe { std::mem::transmute::<*const (), Real>(real) };
        // SAFETY: as above.
        unsafe { real($($a),*) }
    }};
    (@word $a:ident) => { usize };
    (@both $mpi:ident, $pmpi:ident, ($($a:ident)*), $result:ty, $body:block) => {
        const _: () = {
            #[inline(never)]
            unsafe extern "C-unwind" fn shared($($a: usize),*) -> $result $body

            entry!($mpi, shared, ($($a)*), $result);
            entry!($pmpi, shared, ($($a)*), $result);
        };
    };
}

/// An exported name of `shared`: notes who calls and where on the stack, and goes on there with every argument where it
/// was. For calls inside others it does so elsewhere: the outer one is not over.
#[cfg(target_arch = "x86_64")]
macro_rules! entry {
    ($name:ident, $shared:ident, ($($a:ident)*), $result:ty) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name($($a: usize),*) -> $result {
            // Neither r10 nor r11 carries an argument in C, and both may be overwritten.
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov r11, qword ptr [rip + refrain_caller@GOTTPOFF]",
                "mov r10, qword ptr [rsp]",
                "cmp dword ptr fs:[r11 - {depth}], 0",
                "jne 2f",
                "mov qword ptr fs:[r11], r10",
                "mov qword ptr fs:[r11 + 8], rsp",
                "mov qword ptr fs:[r11 + 16], rbp",
                "jmp {shared}",
                "2: mov qword ptr fs:[r11 + {nested}], r10",
                "mov qword ptr fs:[r11 + {nested} + 8], rsp",
                "mov qword ptr fs:[r11 + {nested} + 16], rbp",
                "jmp {shared}",
                ".cfi_endproc",
                depth = const marks::CALLER_AFTER_DEPTH,
                nested = const marks::NESTED_AFTER_CALLER,
                shared = sym $shared,
            )
        }
    };
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! entry {
    ($name:ident, $shared:ident, ($($a:ident)*), $result:ty) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($a: usize),*) -> $result {
            // SAFETY: the same function by another name.
            unsafe { $shared($($a),*) }
        }
    };
}

/// `MPI_Pcontrol(int level, ...)`. What the variadic arguments are only the program knows, so every register that can
/// carry one is kept, and the words on the caller's stack are copied for the real function.
#[cfg(target_arch = "x86_64")]
macro_rules! variadic {
    ($index:literal, $mpi:ident, $pmpi:ident) => {
        const _: () = {
            // The frame, from rsp up: 8 vector registers (128), 6 integer registers and rax (56), `Variadic` (32),
            // 8 to keep rsp a multiple of 16.
            #[unsafe(naked)]
            unsafe extern "C-unwind" fn shared() -> usize {
                core::arch::naked_asm!(
                    ".cfi_startproc",
                    "push rbp",
                    ".cfi_def_cfa_offset 16",
                    ".cfi_offset rbp, -16",
                    "mov rbp, rsp",
                    ".cfi_def_cfa_register rbp",
                    "sub rsp, 224",
                    "movups [rsp], xmm0",
                    "movups [rsp + 16], xmm1",
                    "movups [rsp + 32], xmm2",
                    "movups [rsp + 48], xmm3",
                    "movups [rsp + 64], xmm4",
                    "movups [rsp + 80], xmm5",
                    "movups [rsp + 96], xmm6",
                    "movups [rsp + 112], xmm7",
                    "mov [rsp + 128], rdi",
                    "mov [rsp + 136], rsi",
                    "mov [rsp + 144], rdx",
                    "mov [rsp + 152], rcx",
                    "mov [rsp + 160], r8",
                    "mov [rsp + 168], r9",
                    "mov [rsp + 176], rax",
                    "mov rsi, rdi",
                    "mov edi, {index}",
                    "lea rdx, [rbp + 16]",
                    "lea rcx, [rsp + 184]",
                    "call {enter}",
                    "mov r11, rax",
                    "mov r10, rsp",
                    "lea rcx, [rdx * 8 + 15]",
                    "and rcx, -16",
                    "sub rsp, rcx",
                    "test rdx, rdx",
                    "jz 3f",
                    "2:",
                    "mov rax, [rbp + rdx * 8 + 8]",
                    "mov [rsp + rdx * 8 - 8], rax",
                    "dec rdx",
                    "jnz 2b",
                    "3:",
                    "movups xmm0, [r10]",
                    "movups xmm1, [r10 + 16]",
                    "movups xmm2, [r10 + 32]",
                    "movups xmm3, [r10 + 48]",
                    "movups xmm4, [r10 + 64]",
                    "movups xmm5, [r10 + 80]",
                    "movups xmm6, [r10 + 96]",
                    "movups xmm7, [r10 + 112]",
                    "mov rdi, [r10 + 128]",
                    "mov rsi, [r10 + 136]",
                    "mov rdx, [r10 + 144]",
                    "mov rcx, [r10 + 152]",
                    "mov r8, [r10 + 160]",
                    "mov r9, [r10 + 168]",
                    "mov rax, [r10 + 176]",
                    "call r11",
                    "lea rsp, [rbp - 224]",
                    "mov edi, {index}",
                    "mov rsi, rax",
                    "lea rdx, [rsp + 184]",
                    "call {leave}",
                    "leave",
                    ".cfi_def_cfa rsp, 8",
                    "ret",
                    ".cfi_endproc",
                    index = const $index,
                    enter = sym guard::enter_variadic,
                    leave = sym guard::leave_variadic,
                )
            }

            entry!($mpi, shared, (), usize);
            entry!($pmpi, shared, (), usize);
        };
    };
}

/// Elsewhere the integer registers are passed on: what the level and any pointers travel in.
#[cfg(not(target_arch = "x86_64"))]
macro_rules! variadic {
    ($index:literal, $mpi:ident, $pmpi:ident) => {
        wrap!(plain, $index, $mpi, $pmpi, (level a b c d));
    };
}

include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));
