//! Every static of the library, so that what it keeps in someone else's process can be read in one place. All of it is
//! usable before any constructor has run: the first allocations come from the dynamic linker.

use std::cell::{Cell, UnsafeCell};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, compiler_fence,
};

use refrain_mpi::Library;

use crate::config::Config;
use crate::memory::{bitmap::Bitmap, freed::Freed, mappings::Mappings, real::Real};
use crate::recorder::State;
use crate::wrappers::FUNCTIONS;

/// What the library does in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Nothing: tracing was not asked for, or this is no MPI program.
    Inert = 0,
    /// Calls are observed.
    On = 1,
    /// A fault of ours ended tracing; `MPI_Finalize` is still met, for the other ranks' sake.
    Stopped = 2,
    /// `MPI_Finalize` has been reached.
    Done = 3,
}

pub static MODE: AtomicU8 = AtomicU8::new(Mode::Inert as u8);
/// The recorder's `init` was called.
pub static STARTED: AtomicBool = AtomicBool::new(false);
/// Written once, in the constructor.
pub static CONFIG: OnceLock<Config> = OnceLock::new();
/// Written once, in the constructor. Empty where the program has no MPI library.
pub static LIBRARY: OnceLock<Library> = OnceLock::new();
/// This process's rank in the world, or -1.
static RANK: AtomicI64 = AtomicI64::new(-1);

/// The real functions, by position in the call table; null until first used.
pub static REAL: [AtomicPtr<()>; FUNCTIONS] = [const { AtomicPtr::new(null_mut()) }; FUNCTIONS];

/// A clock is read around every call.
pub static TIMED: AtomicBool = AtomicBool::new(false);
/// That clock is the processor's time stamp counter.
pub static TSC: AtomicBool = AtomicBool::new(false);

/// For tests: the observed call at which to fail (0: none), and how many there were.
pub static PANIC_AT: AtomicU64 = AtomicU64::new(0);
pub static OBSERVED: AtomicU64 = AtomicU64::new(0);

/// Memory for when there is none left; null where it has been used.
pub static RESERVE: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// The first word of the part file that says how this process ended; null until there is one.
pub static ENDING: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());
/// Mapped files, whose pages may vanish under us: start and length, 0 where there is none.
pub static SHIELDED: [Region; 256] = [const { Region(AtomicUsize::new(0), AtomicUsize::new(0)) }; 256];
/// By signal: the handler that was there before ours; null where there was none.
pub static BEFORE: [AtomicPtr<libc::sigaction>; 32] = [const { AtomicPtr::new(null_mut()) }; 32];
/// One of them did.
pub static TORN: AtomicBool = AtomicBool::new(false);

pub struct Region(pub AtomicUsize, pub AtomicUsize);

/// Allocations are followed. On from the first instruction until somebody can say that nobody asked for it.
pub static TRACKING: AtomicBool = AtomicBool::new(true);
/// The allocator behind ours.
pub static ALLOCATOR: Real = Real::new();
/// Where allocations begin and end.
pub static HEAP: Bitmap = Bitmap::new();
/// What the program mapped itself.
pub static MAPPINGS: Mappings = Mappings::new();
/// Segments with an id that are gone.
pub static FREED: Freed = Freed::new();

/// The recorder's state. Invariant: touched only by whoever holds `RECORDER_BUSY`, or, until a second thread calls MPI,
/// by the first one, which takes no lock. MPI's thread level says nothing here: some functions may be called by any
/// thread at every level, and programs read `MPI_Wtime` in all of their threads.
static RECORDER: Shared<Option<Box<State>>> = Shared(UnsafeCell::new(None));
static RECORDER_BUSY: AtomicBool = AtomicBool::new(false);
/// The first thread is in, without the lock. Written by that thread only.
static FIRST_IN: AtomicBool = AtomicBool::new(false);
/// Whether all take the lock: 0 no, 1 another thread is about to make it so, 2 yes. Never goes down.
static CROWDED: AtomicU8 = AtomicU8::new(0);
/// Threads that have called MPI.
static THREADS: AtomicU32 = AtomicU32::new(0);

struct Shared<T>(UnsafeCell<T>);

// SAFETY: the invariant of `RECORDER`, its only instance; its content is moved between threads, never shared.
unsafe impl<T> Sync for Shared<T> {}

thread_local! {
    /// This thread's number among those that have called MPI, or none yet.
    static THREAD: Cell<u32> = const { Cell::new(u32::MAX) };
    /// The bounds of this thread's stack, or (0, 0) until asked for.
    pub static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// 1 while this thread is inside a wrapped call, otherwise 0.
pub use depth::{depth, set_depth};

/// Read and written on every call. A library's thread-locals cost a function call each time, since it might be loaded
/// late; a preloaded library never is, so this one lies at a fixed distance from the thread pointer.
#[cfg(target_arch = "x86_64")]
mod depth {
    use std::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tbss.refrain_depth, \"awT\", @nobits",
        ".globl refrain_depth",
        ".hidden refrain_depth",
        ".type refrain_depth, @object",
        ".size refrain_depth, 4",
        ".balign 4",
        "refrain_depth:",
        ".zero 4",
        ".popsection",
    );

    #[inline]
    pub fn depth() -> u32 {
        let depth: u32;
        // SAFETY: reads this thread's own variable, defined above; the loader put its distance into our table.
        unsafe {
            asm!(
                "mov {at}, qword ptr [rip + refrain_depth@GOTTPOFF]",
                "mov {depth:e}, dword ptr fs:[{at}]",
                at = out(reg) _,
                depth = out(reg) depth,
                options(nostack, readonly, preserves_flags),
            );
        }
        depth
    }

    #[inline]
    pub fn set_depth(depth: u32) {
        // SAFETY: as above, and nobody but this thread refers to it.
        unsafe {
            asm!(
                "mov {at}, qword ptr [rip + refrain_depth@GOTTPOFF]",
                "mov dword ptr fs:[{at}], {depth:e}",
                at = out(reg) _,
                depth = in(reg) depth,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod depth {
    use std::cell::Cell;

    thread_local! {
        static DEPTH: Cell<u32> = const { Cell::new(0) };
    }

    #[inline]
    pub fn depth() -> u32 {
        DEPTH.with(Cell::get)
    }

    #[inline]
    pub fn set_depth(depth: u32) {
        DEPTH.with(|cell| cell.set(depth));
    }
}

#[inline]
pub fn watching() -> bool {
    MODE.load(Relaxed) == Mode::On as u8
}

pub fn mode() -> Mode {
    match MODE.load(Relaxed) {
        1 => Mode::On,
        2 => Mode::Stopped,
        3 => Mode::Done,
        _ => Mode::Inert,
    }
}

/// The program's MPI library, if it has one.
pub fn library() -> Option<&'static Library> {
    LIBRARY.get()
}

pub fn rank() -> Option<i64> {
    Some(RANK.load(Relaxed)).filter(|&rank| rank >= 0)
}

/// For messages; the recorder knows it once MPI is up.
pub fn set_rank(rank: i64) {
    RANK.store(rank, Relaxed);
}

/// The calling thread's number, in the order in which threads first called MPI.
fn thread() -> usize {
    THREAD.with(|cell| {
        if cell.get() == u32::MAX {
            cell.set(THREADS.fetch_add(1, Relaxed));
        }
        cell.get() as usize
    })
}

/// The kernel's barrier on all cores that run this process, on behalf of the one thread that asks.
mod membarrier {
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;

    fn ask(command: libc::c_int) -> bool {
        // SAFETY: takes two numbers, touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0) == 0 }
    }

    pub fn register() -> bool {
        ask(REGISTER_PRIVATE_EXPEDITED)
    }

    pub fn run() -> bool {
        ask(PRIVATE_EXPEDITED)
    }
}

/// Before any thread calls MPI: where the kernel has no such barrier, everybody takes the lock from the start.
pub fn prepare_threads() {
    if !membarrier::register() {
        CROWDED.store(2, SeqCst);
    }
}

/// Gives the recorder back, also when a panic passes through.
enum Held {
    Alone,
    Locked,
}

impl Held {
    #[inline]
    fn take(thread: usize) -> Held {
        if thread == 0 {
            FIRST_IN.store(true, Relaxed);
            // `make_room` sees the store above, or the load below sees its mark: its barrier orders the two for us.
            compiler_fence(SeqCst);
            if CROWDED.load(Acquire) == 0 {
                return Held::Alone;
            }
            FIRST_IN.store(false, Release);
        } else if CROWDED.load(Acquire) != 2 {
            make_room();
        }
        while RECORDER_BUSY.swap(true, Acquire) {
            std::thread::yield_now();
        }
        Held::Locked
    }
}

/// Another thread than the first one calls MPI: from here on all take the lock.
#[cold]
#[inline(never)]
fn make_room() {
    CROWDED.fetch_max(1, SeqCst);
    assert!(membarrier::run(), "the kernel refuses a barrier it has offered");
    while FIRST_IN.load(Acquire) {
        std::thread::yield_now();
    }
    CROWDED.store(2, SeqCst);
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        match self {
            Held::Alone => FIRST_IN.store(false, Release),
            Held::Locked => RECORDER_BUSY.store(false, Release),
        }
    }
}

/// Runs `use_it` on the recorder's state, which `make` makes on first use, and the calling thread's number.
pub fn with_recorder(make: impl FnOnce() -> Option<State>, use_it: impl FnOnce(&mut State, usize)) {
    let thread = thread();
    let _held = Held::take(thread);
    // SAFETY: the invariant of `RECORDER`. `use_it` does not come back here: hooks run with the thread marked as ours.
    let slot = unsafe { &mut *RECORDER.0.get() };
    if slot.is_none() {
        *slot = make().map(Box::new);
    }
    if let Some(state) = slot {
        use_it(state, thread);
    }
}

/// The recording is over.
pub fn take_recorder() -> Option<Box<State>> {
    let _held = Held::take(thread());
    // SAFETY: the invariant of `RECORDER`.
    unsafe { &mut *RECORDER.0.get() }.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_its_own_depth() {
        set_depth(1);
        assert_eq!((depth(), std::thread::spawn(depth).join().unwrap()), (1, 0));
        set_depth(0);
        assert_eq!(depth(), 0);
    }
}
