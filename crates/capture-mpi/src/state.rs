//! Every static of the library, so that what it keeps in someone else's process can be read in one place. All of it is
//! usable before any constructor has run: the first allocations come from the dynamic linker.

mod own;

use std::cell::{Cell, UnsafeCell};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, compiler_fence, fence,
};
use std::sync::{Mutex, OnceLock};

use refrain_encode::{Now, Requests};
use refrain_mpi::Library;

use crate::config::Config;
use crate::filter::{Fates, Gate};
use crate::memory::real::{Arena, Definition, Real};
use crate::memory::{bitmap::Bitmap, freed::Freed, gpu, mappings::Mappings, operators};
use crate::recorder::State;
use crate::recorder::stream::{self, Own, Stream, Taken};
use crate::threads::{self, Threads};
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
/// Written once: in the constructor, or when the program loads one later. Read through `late::library`.
pub static LIBRARY: OnceLock<Library> = OnceLock::new();
/// There is no MPI library yet, and one that comes is to be traced.
pub static WAITING: AtomicBool = AtomicBool::new(false);
/// How many are opening a library that may bring MPI, while waiting for it.
pub static OPENERS: Mutex<u32> = Mutex::new(0);
/// The C library's `dlopen`, once it is known.
pub static DLOPEN: AtomicPtr<()> = AtomicPtr::new(null_mut());
/// This process's rank in the world, or -1.
static RANK: AtomicI64 = AtomicI64::new(-1);

/// The real functions, by position in the call table; null until first used.
pub static REAL: [AtomicPtr<()>; FUNCTIONS] = [const { AtomicPtr::new(null_mut()) }; FUNCTIONS];

/// What becomes of each function's calls, by the same position; see `filter`.
pub static FATES: Fates = [const { AtomicU8::new(0) }; FUNCTIONS];
/// What decides that. Written once, in the constructor.
pub static GATE: OnceLock<Gate> = OnceLock::new();

/// A clock is read around every call.
pub static TIMED: AtomicBool = AtomicBool::new(false);
/// That clock is the processor's time stamp counter.
pub static TSC: AtomicBool = AtomicBool::new(false);

/// For tests: the observed call at which to fail (0: none), and how many there were.
pub static PANIC_AT: AtomicU64 = AtomicU64::new(0);
pub static OBSERVED: AtomicU64 = AtomicU64::new(0);

/// How often the program closed a library.
pub static CLOSED: AtomicU64 = AtomicU64::new(0);

/// Memory for when there is none left; null where it has been used.
pub static RESERVE: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// What the tracer has allocated and not freed, in bytes, and the most that ever was.
pub static HELD: AtomicUsize = AtomicUsize::new(0);
pub static MOST_HELD: AtomicUsize = AtomicUsize::new(0);

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
/// Memory for the program until the allocator behind ours is found.
static ARENA: Arena = Arena::new();
/// The allocator behind ours.
pub static ALLOCATOR: Real = Real::new(Definition::Next, &ARENA);
/// The process's first one, where that is not ours, and calls of it are redirected to us.
pub static FIRST_ALLOCATOR: Real = Real::new(Definition::First, &ARENA);
pub static REDIRECTED: AtomicBool = AtomicBool::new(false);
/// C++'s operators of an allocator that has its own; null where they are not redirected.
pub static OPERATORS: [AtomicPtr<()>; operators::COUNT] =
    [const { AtomicPtr::new(null_mut()) }; operators::COUNT];
/// Where allocations begin and end.
pub static HEAP: Bitmap = Bitmap::new();
/// What the program mapped itself.
pub static MAPPINGS: Mappings = Mappings::new();
/// What GPU runtimes allocated.
pub static GPU: gpu::Table = gpu::Table::new();
/// The GPU runtimes' functions behind ours; null until first used.
pub static GPU_RUNTIME: [AtomicPtr<()>; gpu::FUNCTIONS] =
    [const { AtomicPtr::new(null_mut()) }; gpu::FUNCTIONS];
/// What CUDA's driver says about an address; null until it is there.
pub static GPU_DRIVER: AtomicPtr<()> = AtomicPtr::new(null_mut());
/// Segments with an id that are gone.
pub static FREED: Freed = Freed::new();

/// What all threads share. Invariant: touched only by whoever holds `RECORDER_BUSY`, or, until a second thread calls MPI,
/// by the first one, which takes no lock. MPI's thread level says nothing here: some functions may be called by any
/// thread at every level, and programs read `MPI_Wtime` in all of their threads.
static RECORDER: Shared<Option<Box<State>>> = Shared(UnsafeCell::new(None));
static RECORDER_BUSY: AtomicBool = AtomicBool::new(false);
/// What each thread has for itself: the newest first.
pub static STREAMS: AtomicPtr<Stream> = AtomicPtr::new(null_mut());
/// How many call MPI.
static CROWD: AtomicU8 = AtomicU8::new(ONE);
/// Never goes down.
const ONE: u8 = 0;
/// A second thread is about to make it so.
const SECOND: u8 = 1;
const SEVERAL: u8 = 2;
/// The recording is over, and nobody comes in any more.
const OVER: u8 = 3;
/// One more than the number of the first thread that called MPI, which takes no lock as long as no other one does.
static FIRST: AtomicU32 = AtomicU32::new(0);
/// The kernel has no barrier on behalf of one thread: all need their own.
static FENCED: AtomicBool = AtomicBool::new(false);
/// For threads that recognise a call without the lock: the recorder's generations of objects and of places, and how much
/// of what was freed the latter knows of.
static OBJECTS: AtomicU64 = AtomicU64::new(u64::MAX);
static PLACES: AtomicU64 = AtomicU64::new(u64::MAX);
static SEEN: AtomicUsize = AtomicUsize::new(0);
/// Threads keep parts.
pub static KEPT: AtomicBool = AtomicBool::new(false);
/// The program's threads.
pub static THREADS: Threads = Threads::new();

struct Shared<T>(UnsafeCell<T>);

// SAFETY: the invariant of `RECORDER`, its only instance; its content is moved between threads, never shared.
unsafe impl<T> Sync for Shared<T> {}

thread_local! {
    /// The bounds of this thread's stack, or (0, 0) until asked for.
    pub static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// How many observed calls this thread is in: 1 in a call of the program, 2 in one that a callback makes inside it; and
/// `BUSY` while we look at one.
pub use own::{caller, depth, set_depth};

/// Where the wrapper was called that this thread entered last while it was in no other.
pub use own::place;

/// How far apart two of them are, for `wrappers::entry`.
#[cfg(target_arch = "x86_64")]
pub use own::CALLER_AFTER_DEPTH;

/// Notes in the thread's part, if it has one, which function it is in: its position plus one, or 0. Returns what stood
/// there.
pub use own::note_inside;

/// Added to the depth while the thread runs our own code, which no call may enter again.
pub const BUSY: u32 = 1 << 31;

/// The loaded code, and which of it is MPI's: made when first needed, and again when a caller is in none of it.
pub static CODE: AtomicPtr<Vec<(Range<usize>, bool)>> = AtomicPtr::new(null_mut());

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

pub fn rank() -> Option<i64> {
    Some(RANK.load(Relaxed)).filter(|&rank| rank >= 0)
}

/// For messages; the recorder knows it once MPI is up.
pub fn set_rank(rank: i64) {
    RANK.store(rank, Relaxed);
}

/// The word of the calling thread's part that says which function it is in. It stays mapped as long as the thread
/// calls MPI.
pub fn set_inside(word: &AtomicU64) {
    own::set_inside(word);
}

/// One more than the number this thread will have if it calls MPI; 0: it has not been given one.
pub fn assigned() -> u32 {
    own::assigned()
}

pub fn assign(number: u32) {
    own::assign(number);
    if number == 0 {
        own::set_stream(null_mut());
    }
}

/// What the calling thread has for itself.
#[inline]
fn stream() -> &'static Stream {
    // SAFETY: null, or a stream that was leaked.
    match unsafe { own::stream().as_ref() } {
        Some(stream) => stream,
        None => first_call(),
    }
}

#[cold]
fn first_call() -> &'static Stream {
    let stream = Stream::of(threads::number() as u32);
    own::set_stream(stream);
    let _ = FIRST.compare_exchange(0, stream.number + 1, AcqRel, Relaxed);
    // SAFETY: the calling thread's own, and it is in no call yet.
    unsafe { stream.own() }.arrive();
    stream
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

/// Before any thread calls MPI.
pub fn prepare_threads() {
    threads::prepare();
    FENCED.store(!membarrier::register(), SeqCst);
}

/// The calling thread is in the recorder, until dropped, also when a panic passes through.
pub struct Entered {
    stream: &'static Stream,
    /// No other thread has called MPI: nothing is locked.
    alone: bool,
}

impl Entered {
    /// `None`: the recording is over. Invariant: hooks do not come back here while they are in, since they run with the
    /// thread marked as ours.
    #[inline]
    pub fn enter() -> Option<Entered> {
        let stream = stream();
        loop {
            stream.busy.store(true, Relaxed);
            // Whoever changes `CROWD` sees the store above, or the load below sees the change: `barrier` orders the two.
            if FENCED.load(Relaxed) {
                fence(SeqCst);
            } else {
                compiler_fence(SeqCst);
            }
            match CROWD.load(Acquire) {
                ONE if FIRST.load(Relaxed) == stream.number + 1 => {
                    return Some(Entered { stream, alone: true });
                }
                SEVERAL => return Some(Entered { stream, alone: false }),
                crowd => {
                    stream.busy.store(false, Release);
                    if crowd == OVER {
                        return None;
                    }
                    make_room();
                }
            }
        }
    }

    /// The thread's number, and what it has for itself. One at a time.
    #[inline]
    pub fn own(&self) -> (u32, &'static mut Own) {
        // SAFETY: the calling thread's own, and it is marked as busy.
        (self.stream.number, unsafe { self.stream.own() })
    }

    /// The thread's requests, where no other thread can have to do with them. One at a time.
    #[inline]
    pub fn requests_alone(&self) -> Option<&'static mut Requests> {
        // SAFETY: no other thread has called MPI, and one that is about to waits until this one is out.
        self.alone.then(|| unsafe { self.stream.requests() })
    }

    /// Runs `look` on what all threads share, which `make` makes on first use. Not called from inside itself.
    #[inline]
    pub fn shared<R>(
        &self,
        make: impl FnOnce() -> Option<State>,
        look: impl FnOnce(&mut State) -> R,
    ) -> Option<R> {
        let _held = (!self.alone).then(|| Taken::take(&RECORDER_BUSY));
        // SAFETY: the invariant of `RECORDER`.
        let slot = unsafe { &mut *RECORDER.0.get() };
        if slot.is_none() {
            *slot = make().map(Box::new);
        }
        let state = slot.as_mut()?;
        let result = look(state);
        if !self.alone {
            let (now, seen) = state.now();
            OBJECTS.store(now.objects, Release);
            PLACES.store(now.places, Release);
            // Last: whoever sees this sees the others too.
            SEEN.store(seen, Release);
        }
        Some(result)
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        self.stream.busy.store(false, Release);
    }
}

/// The recorder's generations as they were published last. Places that may be gone by now are nobody's.
#[inline]
pub fn now() -> Now {
    let seen = SEEN.load(Acquire) == FREED.epoch();
    let places = if seen { PLACES.load(Acquire) } else { u64::MAX };
    Now { objects: OBJECTS.load(Acquire), places, site: 0 }
}

/// What threads did before this is seen by the caller, and they see what the caller did before it.
fn barrier() {
    if FENCED.load(Relaxed) {
        fence(SeqCst);
    } else {
        assert!(membarrier::run(), "the kernel refuses a barrier it has offered");
    }
}

fn wait_for(stream: &Stream) {
    while stream.busy.load(Acquire) {
        std::thread::yield_now();
    }
}

/// Another thread than the first one calls MPI: from here on all take locks.
#[cold]
fn make_room() {
    let _ = CROWD.compare_exchange(ONE, SECOND, SeqCst, SeqCst);
    barrier();
    let first = FIRST.load(Acquire);
    stream::all().filter(|stream| stream.number + 1 == first).for_each(wait_for);
    let _ = CROWD.compare_exchange(SECOND, SEVERAL, SeqCst, SeqCst);
}

/// The recording is over: what all threads shared, and what each had, by number. Waits until no thread is in.
pub fn take_recorder() -> (Option<Box<State>>, Vec<(u32, &'static mut Own)>) {
    if CROWD.swap(OVER, SeqCst) == OVER {
        return (None, Vec::new());
    }
    barrier();
    stream::all().for_each(wait_for);
    // SAFETY: nobody comes in any more, and this happens once.
    let state = unsafe { &mut *RECORDER.0.get() }.take();
    // SAFETY: as above.
    let mut streams: Vec<_> = stream::all().map(|stream| (stream.number, unsafe { stream.own() })).collect();
    streams.sort_by_key(|(number, _)| *number);
    (state, streams)
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
