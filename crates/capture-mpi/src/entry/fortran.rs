//! Fortran's names of MPI's functions: `mpi_send_`, `mpi_send_f08_`, `mpi_send_f08ts_` and their `pmpi_` kin.
//!
//! A library's Fortran layer turns a call into one of C, which our wrappers see with all arguments converted. But it
//! also calls other functions on the way (Open MPI asks for the communicator's size in `mpi_gatherv_`), hands over
//! statuses of its own where the program ignores them, and sets and gets attributes without any function of C. So the
//! layer is entered through us, as C is: while the thread is in it, of the functions of C only the one of the same name
//! is the program's call, the first time. Where the layer makes none, the call is put together here.
//!
//! The arguments go on as they came: all of them are addresses or lengths of strings, a word each.

pub mod frame;
pub mod names;

use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr};

use refrain_guest::process::clock::ticks;
use refrain_guest::process::mode::watching;
use refrain_guest::process::next::next;
use refrain_guest::process::say::say_in_pieces;
use refrain_guest::threads::marks::{self, Entry, Layer};
use refrain_model::{CType, Class, Dir, Function, Kind, Param, Returns};
use refrain_mpi::{Family, Owner};

use super::code::owner;
use super::{guard, real};
use crate::hooks::MOST_ARGS;
use crate::library::library;
use crate::missing;
use frame::{EntryFrame, FRAME, Stamp, is_narrow, seen_by, value_in_fortran};
use names::{NAMES, Name};

/// The layer's functions behind Fortran's names.
static REAL: [Real; NAMES.len()] = [const { Real::new() }; NAMES.len()];

/// The function behind a name that all of the program sees.
struct Real {
    function: AtomicPtr<()>,
    /// It is not MPI's.
    foreign: AtomicBool,
    /// When it was found; it may be gone since.
    found: Stamp,
    /// The program was told that there is none.
    told: AtomicBool,
}

impl Real {
    const fn new() -> Real {
        Real {
            function: AtomicPtr::new(std::ptr::null_mut()),
            foreign: AtomicBool::new(false),
            found: Stamp::new(),
            told: AtomicBool::new(false),
        }
    }
}

/// What stands behind a name for the code that calls it.
#[derive(Clone, Copy)]
struct Found {
    /// Null where there is nothing.
    function: *const (),
    foreign: bool,
    /// Only the caller's object sees it: it was opened for that one alone.
    local: bool,
}

/// Where to go on, and how many words of the stack to take along; comes back in two registers.
#[repr(C)]
pub struct Forward {
    real: *const (),
    words: usize,
}

/// What every name below goes to, with its number in r11: notes who calls, and calls the layer with the same arguments.
///
/// # Safety
/// Called by the names below only.
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn shared() -> usize {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "sub rsp, {frame}",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], rcx",
        "mov [rsp + 32], r8",
        "mov [rsp + 40], r9",
        "mov rdi, rsp",
        "mov esi, r11d",
        "lea rdx, [rbp + 8]",
        "mov rcx, [rbp]",
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
        "mov rdi, [r10]",
        "mov rsi, [r10 + 8]",
        "mov rdx, [r10 + 16]",
        "mov rcx, [r10 + 24]",
        "mov r8, [r10 + 32]",
        "mov r9, [r10 + 40]",
        "xor eax, eax",
        "call r11",
        "lea rsp, [rbp - {frame}]",
        // A clock returns in a vector register, addresses are added in a general one, and subroutines return nothing.
        "mov [rsp + 48], rax",
        "movups [rsp + 56], xmm0",
        "mov rdi, rsp",
        "call {leave}",
        "mov rax, [rsp + 48]",
        "movups xmm0, [rsp + 56]",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
        frame = const FRAME,
        enter = sym enter,
        leave = sym leave,
    )
}

/// The first half of a call.
///
/// # Safety
/// `frame` is where `shared` keeps the registers, `slot` where on the stack it is written where it returns to.
unsafe extern "C" fn enter(frame: *mut EntryFrame, name: usize, slot: usize, pointer: usize) -> Forward {
    let known = &NAMES[name];
    // SAFETY: as the caller says; the address that the call returns to stands there.
    let caller = unsafe { (slot as *const usize).read() };
    let real = found(name, caller);
    let entry = Entry { slot, caller };
    let watched = watching()
        && !real.foreign
        && (marks::depth() == 0 || guard::is_programs_in_fortran(known.function, entry));
    // SAFETY: as the caller says; nobody else refers to it.
    let frame = unsafe { &mut *frame };
    frame.watched = watched;
    if real.function.is_null() {
        fail(frame, known);
        return Forward { real: nothing as *const (), words: 0 };
    }
    if watched {
        frame.name = name;
        frame.local = real.local;
        frame.real = real.function as usize;
        frame.outside = marks::depth();
        frame.level = frame.outside & marks::LEVELS;
        frame.outer = marks::layer();
        if frame.level == 0 {
            frame.outer_entry = marks::replace_entry([caller, slot, pointer]);
        }
        frame.start = if known.alone { ticks() } else { 0 };
        let (level, function, alone) = (frame.level, known.function, known.alone);
        marks::set_layer(Layer { entry, level, function, alone });
        marks::set_depth(frame.level | marks::LAYER | marks::IN_LAYER);
    }
    Forward { real: real.function, words: known.words }
}

/// The second half, after the layer's function has returned.
///
/// # Safety
/// `frame` is what `enter` was given.
unsafe extern "C" fn leave(frame: *mut EntryFrame) {
    // SAFETY: as the caller says; nobody else refers to it.
    let frame = unsafe { &*frame };
    if !frame.watched {
        return;
    }
    if marks::depth() == frame.level | marks::LAYER | marks::IN_LAYER && watching() {
        made_by_layer(frame);
    }
    frame.restore();
}

/// The layer's function of that name. What all of the program sees is looked up on its first use; what only the caller
/// sees, every time: another caller may see another one, and both may be gone tomorrow.
#[inline]
fn found(name: usize, caller: usize) -> Found {
    let known = &REAL[name];
    match known.found.is_good() {
        true => Found {
            function: known.function.load(Relaxed),
            foreign: known.foreign.load(Relaxed),
            local: false,
        },
        false => resolve(name, caller),
    }
}

#[cold]
#[inline(never)]
fn resolve(name: usize, caller: usize) -> Found {
    let (known, real) = (&NAMES[name], &REAL[name]);
    let then = Stamp::now();
    let mut function = next(known.name);
    let local = function.is_null();
    if local {
        function = seen_by(caller, known.name);
    }
    let function: *const () = function.cast_const().cast();
    if function.is_null() {
        return Found { function, foreign: true, local };
    }
    // A library that only plays MPI on one process (MUMPS brings one), or a tool: what it does is its own affair.
    let foreign = matches!(owner(function as usize), Owner::Other | Owner::Binding);
    // Until MPI's library is there nobody can say whose it is.
    if !local && library().is_some() {
        real.function.store(function.cast_mut(), Relaxed);
        real.foreign.store(foreign, Relaxed);
        real.found.set(then);
    }
    Found { function, foreign, local }
}

/// No library has that function, though something calls it: it gets an error.
#[cold]
fn fail(frame: &EntryFrame, name: &Name) {
    let position = NAMES.iter().position(|known| std::ptr::eq(known, name));
    let told = position.is_some_and(|at| REAL[at].told.swap(true, Relaxed));
    if !told {
        say_in_pieces(&["no library has ", name.name.to_str().unwrap_or("?"), "; the call fails"]);
    }
    let function = &refrain_model::functions()[name.function];
    let ierror = frame.word(function.params.len()) as *mut c_int;
    if function.returns == Returns::Code && !ierror.is_null() {
        // SAFETY: the program's variable for the error, which comes behind the other arguments.
        unsafe { ierror.write(real::MISSING as c_int) };
    }
}

extern "C" fn nothing() -> usize {
    0
}

/// The layer has done it all by itself: the call as it would have been made in C. What cannot be put together is counted
/// as missing.
#[cold]
#[inline(never)]
fn made_by_layer(frame: &EntryFrame) {
    let end = ticks();
    let name = &NAMES[frame.name];
    let function = &refrain_model::functions()[name.function];
    let count = function.params.len();
    if !name.alone || !is_told(frame, function) {
        return missing::count_unseen();
    }
    // SAFETY: the frame's own slot, and below it what `shared` has put there.
    let [pointer, caller] = unsafe { ((frame.slot() - size_of::<usize>()) as *const [usize; 2]).read() };
    guard::back_in_layer(frame.level as usize, Entry { slot: frame.slot(), caller }, pointer);
    let result = match function.returns {
        Returns::Code => {
            let ierror = frame.word(count) as *const c_int;
            // SAFETY: null where it was left out, or the program's variable, which the layer has written.
            if ierror.is_null() { 0 } else { (unsafe { ierror.read() }) as u32 as usize }
        }
        Returns::Clock => frame.vector[0] as usize,
        Returns::Aint | Returns::Converted => frame.result,
    };
    let mut made = [0; MOST_ARGS];
    let mut handles = [0; MOST_ARGS];
    for (index, param) in function.params.iter().enumerate() {
        let word = frame.word(index);
        if word == 0 {
            continue;
        }
        // SAFETY: the program's argument, which the layer has used as what it is.
        made[index] = unsafe { as_in_c(function, param, word, &mut handles[index]) };
    }
    guard::made_in_fortran(name.function, &made[..count], result, frame.start, end);
}

/// Whether what Fortran passed tells all: lists of handles are known only where they are empty, which is when layers take
/// a short way.
fn is_told(frame: &EntryFrame, function: &Function) -> bool {
    let has_list = function.params.iter().any(|p| matches!(p.kind, Kind::Handle(_)) && !p.len.is_empty());
    // SAFETY: the number of handles, an INTEGER that comes first in all of these functions.
    !has_list || unsafe { (frame.word(0) as *const c_int).read() } == 0
}

/// What C would have passed where Fortran passed the address `word`. `place` is where handles and attributes are put that
/// C would have found behind a pointer.
///
/// # Safety
/// `word` is the address of an argument of that kind.
unsafe fn as_in_c(function: &Function, param: &Param, word: usize, place: &mut u64) -> usize {
    // SAFETY: an INTEGER, for everything that calls this.
    let int = || unsafe { (word as *const c_int).read() };
    // SAFETY: an INTEGER of the size of an address, as the caller says.
    let wide = || unsafe { (word as *const i64).read() };
    match (param.dir, param.kind) {
        (_, Kind::Function) => word,
        // Of no elements.
        _ if !param.len.is_empty() => word,
        (Dir::In, Kind::Handle(Class::Keyval)) => keyval_in_c(int()) as usize,
        (Dir::In, Kind::Handle(class)) => from_fortran(class, int()) as usize,
        (_, Kind::Handle(Class::Keyval)) => word,
        (_, Kind::Handle(class)) => {
            *place = from_fortran(class, int());
            std::ptr::from_ref(place) as usize
        }
        // SAFETY: as the caller says.
        (Dir::In, Kind::Value) => (unsafe { value_in_fortran(function, word) }) as usize,
        (_, Kind::OutAttribute) if is_narrow(function.name) => {
            *place = i64::from(int()) as u64;
            std::ptr::from_ref(place) as usize
        }
        (Dir::In, _) if matches!(param.ctype, CType::Aint | CType::Count | CType::Offset) => wide() as usize,
        (Dir::In, _) if param.ctype == CType::Int => int() as u32 as usize,
        _ => word,
    }
}

/// MPICH has two numbers for each key that is its own, one above the other: attributes are addresses in C.
fn keyval_in_c(key: c_int) -> u32 {
    const OWN: u32 = 1;
    let key = key as u32;
    let of_mpich = library().is_some_and(|library| library.kind() == Family::Mpich);
    if of_mpich && key >> 30 == OWN { key - 1 } else { key }
}

/// The handle that C has for it. MPICH's are the same numbers.
fn from_fortran(class: Class, handle: c_int) -> u64 {
    let name = match class {
        Class::Comm => "PMPI_Comm_f2c",
        Class::Datatype => "PMPI_Type_f2c",
        Class::Win => "PMPI_Win_f2c",
        Class::Errhandler => "PMPI_Errhandler_f2c",
        Class::Request => "PMPI_Request_f2c",
        _ => return u64::from(handle as u32),
    };
    let convert = library().and_then(|library| library.symbol(name));
    let Some(convert) = convert else { return u64::from(handle as u32) };
    // SAFETY: the library's function of that name, which takes an integer and returns a handle, which is a word at most.
    let convert: unsafe extern "C" fn(c_int) -> usize = unsafe { std::mem::transmute(convert) };
    // SAFETY: a handle that the layer itself has converted.
    unsafe { convert(handle) as u64 }
}

/// One of Fortran's names.
macro_rules! fortran {
    ($index:literal, $name:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov r11d, {index}",
                "jmp {shared}",
                ".cfi_endproc",
                index = const $index,
                shared = sym shared,
            )
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/fortran.rs"));
