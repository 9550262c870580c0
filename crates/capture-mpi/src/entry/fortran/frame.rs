//! A call of Fortran that is under way: what it was given, and what of that is recorded.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

use refrain_guest::objects::closed;
use refrain_guest::objects::elf::{Module, Which};
use refrain_guest::threads::marks::{self, Entry, Layer};
use refrain_model::{Dir, Function, Kind};
use refrain_mpi::Family;

use super::names::{NAMES, Name};
use crate::entry::jumps::lasts;
use crate::hooks::MOST_ARGS;
use crate::library::library;

/// Arguments that travel in registers.
const REGISTERS: usize = 6;

/// Constants of Fortran that its layer does not turn into those of C.
static SENTINELS: Sentinels = Sentinels::new();

/// How often the program had closed a library when something was looked up, plus one; 0: it never was. What was found is
/// good until the next time: whoever calls a layer while another thread closes it is lost without us too.
pub struct Stamp(AtomicU64);

impl Stamp {
    pub const fn new() -> Stamp {
        Stamp(AtomicU64::new(0))
    }

    #[inline]
    pub fn now() -> u64 {
        closed::count() + 1
    }

    #[inline]
    pub fn is_good(&self) -> bool {
        self.0.load(Acquire) == Stamp::now()
    }

    /// After what was found is stored; `then` is from before it was looked for.
    pub fn set(&self, then: u64) {
        self.0.store(then, Release);
    }
}

/// A call of Fortran, in the frame of the function below that all names share.
#[repr(C)]
pub struct EntryFrame {
    pub registers: [usize; REGISTERS],
    pub result: usize,
    pub vector: [u64; 2],
    /// One of the program's calls, which is recorded. Where it is not, the rest means nothing.
    pub watched: bool,
    /// `real` was opened for the caller's object alone.
    pub local: bool,
    /// The layer's function.
    pub real: usize,
    pub level: u32,
    /// The depth outside.
    pub outside: u32,
    pub name: usize,
    pub start: u64,
    pub outer: Layer,
    pub outer_entry: [usize; 3],
}

pub const FRAME: usize = size_of::<EntryFrame>().next_multiple_of(16);
/// From a frame to where the call returns to: the caller's frame pointer lies between.
const SLOT_ABOVE: usize = FRAME + size_of::<usize>();

impl EntryFrame {
    /// Where on the stack the address lies that the call returns to.
    pub fn slot(&self) -> usize {
        std::ptr::from_ref(self) as usize + SLOT_ABOVE
    }

    /// The thread is where it was before the call.
    #[inline]
    pub fn restore(&self) {
        marks::set_layer(self.outer);
        if self.level == 0 && self.outside != 0 {
            marks::replace_entry(self.outer_entry);
        }
        marks::set_depth(self.outside);
    }

    /// Word `index` of the program's arguments. Beyond the registers they lie above the frame, behind the caller's frame
    /// pointer and the address to return to.
    pub fn word(&self, index: usize) -> usize {
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

/// An exception, or the thread's end, goes through the call of Fortran that the thread is in at that level.
#[cold]
pub fn left(level: u32) {
    let layer = marks::layer();
    let here = std::ptr::from_ref(&layer) as usize;
    if layer.level == level && lasts(layer.entry, Entry { slot: here, caller: 0 }) {
        // SAFETY: the call is not over, so its frame is there, below where it returns to.
        unsafe { &*((layer.entry.slot - SLOT_ABOVE) as *const EntryFrame) }.restore();
    }
}

/// What the object that holds this address, and what it depends on, have under that name.
pub fn seen_by(address: usize, name: &CStr) -> *mut c_void {
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
    let own = Module::find(Which::Holding(seen_by as *const () as usize)).map(|module| module.base);
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
    let layer = marks::layer();
    // A function of the program that runs in the layer may call others.
    if layer.level as usize != level || layer.function != index {
        return None;
    }
    // SAFETY: the frame of the call that this thread is in, on its stack: `is_programs` has seen that it is not over.
    let frame = unsafe { &*((layer.entry.slot - SLOT_ABOVE) as *const EntryFrame) };
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
unsafe fn instead(frame: &EntryFrame, name: &Name, at: usize, arg: usize) -> Option<usize> {
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
pub unsafe fn value_in_fortran(function: &Function, word: usize) -> i64 {
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
struct Sentinels {
    fortran: [AtomicUsize; SENTINELS_IN_FORTRAN.len()],
    found: Stamp,
    /// `None`: they are of no interest here.
    c: OnceLock<Option<[usize; SENTINELS_IN_FORTRAN.len()]>>,
}

impl Sentinels {
    const fn new() -> Sentinels {
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
    let library = library().filter(|library| library.kind() == Family::OpenMpi)?;
    let abi = library.abi().ok()?;
    Some([abi.status_ignore, abi.statuses_ignore, abi.unweighted, abi.weights_empty])
}

/// What C has for the constant that lies at that address in Fortran, if one does.
fn constant(frame: &EntryFrame, word: usize) -> Option<usize> {
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

/// MPI-1's attributes are integers in Fortran; those of MPI-2 have the size of an address.
pub fn is_narrow(function: &str) -> bool {
    matches!(function, "MPI_Attr_get" | "MPI_Attr_put" | "MPI_Keyval_create")
}
