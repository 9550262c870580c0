//! Fortran's names of MPI's functions: `mpi_send_`, `mpi_send_f08_`, `mpi_send_f08ts_` and their `pmpi_` kin.
//!
//! A library's Fortran layer turns a call into one of C, which our wrappers see with all arguments converted. But it
//! also calls other functions on the way (Open MPI asks for the communicator's size in `mpi_gatherv_`), hands over
//! statuses of its own where the program ignores them, and sets and gets attributes without any function of C. So the
//! layer is entered through us, as C is: while the thread is in it, of the functions of C only the one of the same name
//! is the program's call, the first time. Where the layer makes none, the call is put together here.
//!
//! The arguments go on as they came: all of them are addresses or lengths of strings, a word each.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};

use refrain_model::{CType, Class, Dir, Function, Kind, Param, Returns};
use refrain_mpi::{Family, Owner};

use crate::elf::{Module, Which};
use crate::guard::{self, MOST_ARGS};
use crate::late;
use crate::state::{self, Entry, FORTRAN_REAL, Layer, SENTINELS};

/// Arguments that travel in registers.
const REGISTERS: usize = 6;

/// A name and what it stands for.
pub struct Name {
    pub name: &'static CStr,
    /// The function's position in `refrain_model::functions()`.
    pub function: usize,
    /// Words on the stack: arguments, `ierror` and the lengths of strings beyond those in registers.
    pub words: usize,
    /// Arguments that the layer may not pass on as they are meant: statuses, weights of edges, what is handed back.
    pub special: &'static [u8],
    /// Layers may make no call of C for it.
    pub alone: bool,
}

/// The function behind a name that all of the program sees.
pub struct Real {
    function: AtomicPtr<()>,
    /// It is not MPI's.
    foreign: AtomicBool,
    /// When it was found; it may be gone since.
    found: Stamp,
    /// The program was told that there is none.
    told: AtomicBool,
}

impl Real {
    pub const fn new() -> Real {
        Real {
            function: AtomicPtr::new(std::ptr::null_mut()),
            foreign: AtomicBool::new(false),
            found: Stamp::new(),
            told: AtomicBool::new(false),
        }
    }
}

/// How often the program had closed a library when something was looked up, plus one; 0: it never was. What was found is
/// good until the next time: whoever calls a layer while another thread closes it is lost without us too.
struct Stamp(AtomicU64);

impl Stamp {
    const fn new() -> Stamp {
        Stamp(AtomicU64::new(0))
    }

    #[inline]
    fn now() -> u64 {
        state::CLOSED.load(Acquire) + 1
    }

    #[inline]
    fn is_good(&self) -> bool {
        self.0.load(Acquire) == Stamp::now()
    }

    /// After what was found is stored; `then` is from before it was looked for.
    fn set(&self, then: u64) {
        self.0.store(then, Release);
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

/// A call of Fortran, in the frame of the function below that all names share.
#[repr(C)]
pub struct Frame {
    registers: [usize; REGISTERS],
    result: usize,
    vector: [u64; 2],
    /// One of the program's calls, which is recorded. Where it is not, the rest means nothing.
    watched: bool,
    /// `real` was opened for the caller's object alone.
    local: bool,
    /// The layer's function.
    real: usize,
    level: u32,
    /// The depth outside.
    outside: u32,
    name: usize,
    start: u64,
    outer: Layer,
    outer_entry: [usize; 3],
}

const FRAME: usize = size_of::<Frame>().next_multiple_of(16);
/// From a frame to where the call returns to: the caller's frame pointer lies between.
const SLOT_ABOVE: usize = FRAME + size_of::<usize>();

impl Frame {
    /// Where on the stack the address lies that the call returns to.
    fn slot(&self) -> usize {
        std::ptr::from_ref(self) as usize + SLOT_ABOVE
    }

    /// The thread is where it was before the call.
    #[inline]
    fn restore(&self) {
        state::set_layer(self.outer);
        if self.level == 0 && self.outside != 0 {
            state::replace_entry(self.outer_entry);
        }
        state::set_depth(self.outside);
    }

    /// Word `index` of the program's arguments. Beyond the registers they lie above the frame, behind the caller's frame
    /// pointer and the address to return to.
    fn word(&self, index: usize) -> usize {
        match self.registers.get(index) {
            Some(&word) => word,
            None => {
                let above = self.slot() + size_of::<usize>();
                let place = above + (index - REGISTERS) * size_of::<usize>();
                // SAFETY: the frame is on the stack, and above it lies that of who called.
                unsafe { (place as *const usize).read() }
            }
        }
    }
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
unsafe extern "C" fn enter(frame: *mut Frame, name: usize, slot: usize, pointer: usize) -> Forward {
    let known = &NAMES[name];
    // SAFETY: as the caller says; the address that the call returns to stands there.
    let caller = unsafe { (slot as *const usize).read() };
    let real = real(name, caller);
    let entry = Entry { slot, caller };
    let watched = state::watching()
        && !real.foreign
        && (state::depth() == 0 || guard::is_programs_in_fortran(known.function, entry));
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
        frame.outside = state::depth();
        frame.level = frame.outside & state::LEVELS;
        frame.outer = state::layer();
        if frame.level == 0 {
            frame.outer_entry = state::replace_entry([caller, slot, pointer]);
        }
        frame.start = if known.alone { guard::ticks() } else { 0 };
        let (level, function, alone) = (frame.level, known.function, known.alone);
        state::set_layer(Layer { entry, level, function, alone });
        state::set_depth(frame.level | state::LAYER | state::FORTRAN);
    }
    Forward { real: real.function, words: known.words }
}

/// The second half, after the layer's function has returned.
///
/// # Safety
/// `frame` is what `enter` was given.
unsafe extern "C" fn leave(frame: *mut Frame) {
    // SAFETY: as the caller says; nobody else refers to it.
    let frame = unsafe { &*frame };
    if !frame.watched {
        return;
    }
    if state::depth() == frame.level | state::LAYER | state::FORTRAN && state::watching() {
        made_by_layer(frame);
    }
    frame.restore();
}

/// An exception, or the thread's end, goes through the call of Fortran that the thread is in at that level.
#[cold]
pub fn left(level: u32) {
    let layer = state::layer();
    let here = std::ptr::from_ref(&layer) as usize;
    if layer.level == level && guard::lasts(layer.entry, Entry { slot: here, caller: 0 }) {
        // SAFETY: the call is not over, so its frame is there, below where it returns to.
        unsafe { &*((layer.entry.slot - SLOT_ABOVE) as *const Frame) }.restore();
    }
}

/// The layer's function of that name. What all of the program sees is looked up on its first use; what only the caller
/// sees, every time: another caller may see another one, and both may be gone tomorrow.
#[inline]
fn real(name: usize, caller: usize) -> Found {
    let known = &FORTRAN_REAL[name];
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
    let (known, real) = (&NAMES[name], &FORTRAN_REAL[name]);
    let then = Stamp::now();
    // SAFETY: a terminated string; `RTLD_NEXT` is seen from this library, which is the one that calls.
    let mut function = unsafe { libc::dlsym(libc::RTLD_NEXT, known.name.as_ptr()) };
    let local = function.is_null();
    if local {
        function = seen_by(caller, known.name);
    }
    let function: *const () = function.cast_const().cast();
    if function.is_null() {
        return Found { function, foreign: true, local };
    }
    // A library that only plays MPI on one process (MUMPS brings one), or a tool: what it does is its own affair.
    let foreign = guard::owner(function as usize) == Owner::Other;
    // Until MPI's library is there nobody can say whose it is.
    if !local && late::library().is_some() {
        real.function.store(function.cast_mut(), Relaxed);
        real.foreign.store(foreign, Relaxed);
        real.found.set(then);
    }
    Found { function, foreign, local }
}

/// No library has that function, though something calls it: it gets an error.
#[cold]
fn fail(frame: &Frame, name: &Name) {
    let position = NAMES.iter().position(|known| std::ptr::eq(known, name));
    let told = position.is_some_and(|at| FORTRAN_REAL[at].told.swap(true, Relaxed));
    if !told {
        guard::say_in_pieces(&["no library has ", name.name.to_str().unwrap_or("?"), "; the call fails"]);
    }
    let function = &refrain_model::functions()[name.function];
    let ierror = frame.word(function.params.len()) as *mut c_int;
    if function.returns == Returns::Code && !ierror.is_null() {
        // SAFETY: the program's variable for the error, which comes behind the other arguments.
        unsafe { ierror.write(guard::MISSING as c_int) };
    }
}

extern "C" fn nothing() -> usize {
    0
}

/// What the object that holds this address, and what it depends on, have under that name.
fn seen_by(address: usize, name: &CStr) -> *mut c_void {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: only asks, into a place of the right type.
    if unsafe { libc::dladdr(address as *const c_void, info.as_mut_ptr()) } == 0 {
        return std::ptr::null_mut();
    }
    // SAFETY: filled in above; the name lives as long as the object is loaded.
    let path: *const c_char = unsafe { info.assume_init() }.dli_fname;
    // SAFETY: NOLOAD only looks among the loaded objects.
    let handle = unsafe { libc::dlopen(path, libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if handle.is_null() {
        return handle;
    }
    // SAFETY: an open handle and a terminated name. The object stays: its caller is in it.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    // SAFETY: the reference taken just above is given back.
    unsafe { libc::dlclose(handle) };
    let own = Module::find(Which::Holding(shared as *const () as usize)).map(|module| module.base);
    let is_ours = || Module::find(Which::Holding(found as usize)).map(|module| module.base) == own;
    if found.is_null() || is_ours() { std::ptr::null_mut() } else { found }
}

/// What to record of a call that the layer makes for the program, where that differs from what the layer passes: what the
/// program ignores the layer may ask for itself. `level` is that of the call.
pub fn adapt<'a>(
    index: usize,
    args: &'a [usize],
    level: usize,
    room: &'a mut MaybeUninit<[usize; MOST_ARGS]>,
) -> Option<&'a [usize]> {
    let layer = state::layer();
    // A function of the program that runs in the layer may call others.
    if layer.level as usize != level || layer.function != index {
        return None;
    }
    // SAFETY: the frame of the call that this thread is in, on its stack: `is_programs` has seen that it is not over.
    let frame = unsafe { &*((layer.entry.slot - SLOT_ABOVE) as *const Frame) };
    let name = NAMES.get(frame.name).filter(|name| name.function == index)?;
    let replaced = |at: &u8| {
        let at = usize::from(*at);
        let arg = *args.get(at)?;
        // SAFETY: the program passed it for that parameter.
        let value = unsafe { instead(frame, name, at, arg) }?;
        (arg != value).then_some((at, value))
    };
    let mut changes = name.special.iter().filter_map(replaced).peekable();
    changes.peek()?;
    let room = &mut room.write([0; MOST_ARGS])[..args.len()];
    room.copy_from_slice(args);
    for (at, value) in changes {
        room[at] = value;
    }
    Some(room)
}

/// What is recorded for parameter `at` of a call of Fortran; `None`: what the layer passes, `arg`.
///
/// # Safety
/// `frame` is that of a call of `name`.
unsafe fn instead(frame: &Frame, name: &Name, at: usize, arg: usize) -> Option<usize> {
    let word = frame.word(at);
    let function = &refrain_model::functions()[name.function];
    let param = &function.params[at];
    match param.kind {
        // Fortran passes none.
        Kind::ArgCount | Kind::ArgVector => Some(0),
        // MPICH's layer passes where it stands, Open MPI's what it is.
        // SAFETY: as the caller says.
        Kind::Value => Some(unsafe { value_in_fortran(function, word) } as usize),
        // Open MPI's passes no list where there is nothing to list.
        _ if arg == 0 && param.dir == Dir::Out && param.kind != Kind::Status => Some(word),
        _ => constant(frame, word),
    }
}

/// What the program passed to be handed back. In MPI-1 it was an INTEGER, since then it has the size of an address.
///
/// # Safety
/// `word` is what the program passed for it.
unsafe fn value_in_fortran(function: &Function, word: usize) -> i64 {
    match is_narrow(function.name) {
        // SAFETY: as the caller says.
        true => i64::from(unsafe { (word as *const c_int).read() }),
        // SAFETY: as the caller says.
        false => unsafe { (word as *const i64).read() },
    }
}

/// Constants that are addresses, and that Open MPI's layer does not always turn into C's. MPICH's does.
const SENTINELS_IN_FORTRAN: [&CStr; 4] = [
    c"mpi_fortran_status_ignore_",
    c"mpi_fortran_statuses_ignore_",
    c"mpi_fortran_unweighted_",
    c"mpi_fortran_weights_empty_",
];

/// Where they lie in Fortran, as all of the program sees it, and what C has for them.
pub struct Sentinels {
    fortran: [AtomicUsize; SENTINELS_IN_FORTRAN.len()],
    found: Stamp,
    /// `None`: they are of no interest here.
    c: OnceLock<Option<[usize; SENTINELS_IN_FORTRAN.len()]>>,
}

impl Sentinels {
    pub const fn new() -> Sentinels {
        Sentinels {
            fortran: [const { AtomicUsize::new(0) }; SENTINELS_IN_FORTRAN.len()],
            found: Stamp::new(),
            c: OnceLock::new(),
        }
    }

    fn c(&self) -> Option<&[usize; SENTINELS_IN_FORTRAN.len()]> {
        if self.c.get().is_none() {
            // Made before the place is taken: a thread that stands still in the middle of it holds up nobody.
            let _ = self.c.set(sentinels_in_c());
        }
        self.c.get()?.as_ref()
    }
}

#[cold]
fn sentinels_in_c() -> Option<[usize; SENTINELS_IN_FORTRAN.len()]> {
    let library = late::library().filter(|library| library.kind() == Family::OpenMpi)?;
    let abi = library.abi().ok()?;
    Some([abi.status_ignore, abi.statuses_ignore, abi.unweighted, abi.weights_empty])
}

/// What C has for the constant that lies at that address in Fortran, if one does.
fn constant(frame: &Frame, word: usize) -> Option<usize> {
    let c = SENTINELS.c()?;
    if frame.local {
        let is_it = |name: &&CStr| sentinel(name, frame.real) == word;
        return SENTINELS_IN_FORTRAN.iter().position(is_it).map(|at| c[at]);
    }
    if !SENTINELS.found.is_good() {
        let then = Stamp::now();
        for (place, name) in SENTINELS.fortran.iter().zip(SENTINELS_IN_FORTRAN) {
            place.store(sentinel(name, frame.real), Relaxed);
        }
        SENTINELS.found.set(then);
    }
    SENTINELS.fortran.iter().position(|place| place.load(Relaxed) == word).map(|at| c[at])
}

/// Where that constant lies for the layer. Where there is no such variable nobody can pass it.
#[cold]
fn sentinel(name: &CStr, layer: usize) -> usize {
    // SAFETY: a terminated string.
    let mut found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        found = seen_by(layer, name);
    }
    if found.is_null() { usize::MAX } else { found as usize }
}

/// The layer has done it all by itself: the call as it would have been made in C. What cannot be put together is counted
/// as missing.
#[cold]
#[inline(never)]
fn made_by_layer(frame: &Frame) {
    let end = guard::ticks();
    let name = &NAMES[frame.name];
    let function = &refrain_model::functions()[name.function];
    let count = function.params.len();
    if !name.alone || !is_told(frame, function) {
        return guard::count_unseen();
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
        _ => frame.result,
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
fn is_told(frame: &Frame, function: &Function) -> bool {
    let has_list = function.params.iter().any(|p| matches!(p.kind, Kind::Handle(_)) && !p.len.is_empty());
    // SAFETY: the number of handles, an INTEGER that comes first in all of these functions.
    !has_list || unsafe { (frame.word(0) as *const c_int).read() } == 0
}

/// MPI-1's attributes are integers in Fortran; those of MPI-2 have the size of an address.
fn is_narrow(function: &str) -> bool {
    matches!(function, "MPI_Attr_get" | "MPI_Attr_put" | "MPI_Keyval_create")
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
    let of_mpich = late::library().is_some_and(|library| library.kind() == Family::Mpich);
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
    let convert = late::library().and_then(|library| library.symbol(name));
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
