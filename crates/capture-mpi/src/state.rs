//! Every static of the library, so that what it keeps in someone else's process can be read in one place. All of it is
//! usable before any constructor has run: the first allocations come from the dynamic linker.

mod crowd;
mod own;

use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::c_char;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, compiler_fence,
    fence,
};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use refrain_encode::{Now, Requests};
use refrain_mpi::{Changes, Library, Owner, Waited};

use crate::callbacks;
use crate::config::Config;
use crate::filter::{Fates, Gate};
#[cfg(target_arch = "x86_64")]
use crate::fortran;
use crate::memory::real::{Arena, Definition, Real};
use crate::memory::{bitmap::Bitmap, freed::Freed, gpu, mappings::Mappings, operators};
use crate::recorder::State;
use crate::recorder::endings::Shielded;
use crate::recorder::stream::{self, Lock, Own, Stream};
use crate::signals;
use crate::threads::{self, Threads};
use crate::wrappers::FUNCTIONS;
use crowd::{Crowd, Machine, Out, Stuck, Way};

/// For `crowd`, which a test runs on others.
mod atomics {
    pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
}

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
/// Mapped files, whose pages may vanish under us.
pub static SHIELDED: Shielded = Shielded::new();
/// A file's pages did vanish.
pub static TORN: AtomicBool = AtomicBool::new(false);

/// What the program has asked to happen on each of `signals::FAULTS`, where our handler stands before its own.
pub static PROGRAMS: [signals::Program; signals::FAULTS.len()] =
    [const { signals::Program::new() }; signals::FAULTS.len()];
/// The process whose faults are noted; 0: none.
pub static WATCHER: AtomicI32 = AtomicI32::new(0);
/// The thread that is changing what happens on a fault; 0: none.
pub static CHANGING: AtomicI32 = AtomicI32::new(0);
/// The C library's functions for this, or another library's; null until first used.
pub static NEXT_SIGNALS: [AtomicPtr<()>; signals::NAMES] =
    [const { AtomicPtr::new(null_mut()) }; signals::NAMES];

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

/// What all threads share. Invariant: touched only by a thread that is in (`Entered`) and, where it is not alone, holds
/// `RECORDER_LOCK`; or by the one that ended the recording, when all are out. MPI's thread level says nothing here: some
/// functions may be called by any thread at every level, and programs read `MPI_Wtime` in all of their threads.
static RECORDER: Shared<Option<Box<State>>> = Shared(UnsafeCell::new(None));
static RECORDER_LOCK: Lock = Lock::new();
/// What each thread has for itself: the newest first.
pub static STREAMS: AtomicPtr<Stream> = AtomicPtr::new(null_mut());
/// Who may be in the recorder.
static CROWD: Crowd = Crowd { may: AtomicU8::new(crowd::ONE), first: AtomicU32::new(0) };
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

// SAFETY: the invariant of `RECORDER`, its only instance: one thread at a time has to do with it.
unsafe impl<T: Send> Sync for Shared<T> {}

thread_local! {
    /// The bounds of this thread's stack, or (0, 0) until asked for.
    pub static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// How this thread entered the calls it is in, but the outermost: by level.
    pub static ENTRIES: [Cell<Entry>; DEEPEST] = const { [const { Cell::new(Entry { slot: 0, caller: 0 }) }; DEEPEST] };
}

/// How many observed calls this thread is in (`LEVELS`): 1 in a call of the program, 2 in one that a callback makes inside
/// it; `PROGRAM` while MPI runs a function of the program; `LAYER` and `FORTRAN` in calls of Fortran; and `BUSY` while we
/// look at a call.
pub use own::{depth, set_depth};

/// Where the wrapper was called that this thread entered last while it was in no other.
pub use own::place;

/// How the wrapper was entered that this thread entered last while it was in no other; while it was in another one; and
/// the second takes the place of the first, which the thread has left by a jump.
pub use own::{Entry, entry, nested, nested_is_outermost};

#[cfg(target_arch = "x86_64")]
pub use own::replace_entry;
/// The call of Fortran that this thread is in.
pub use own::{Layer, layer, set_layer};

/// How far apart these are, for `wrappers::entry`.
#[cfg(target_arch = "x86_64")]
pub use own::{CALLER_AFTER_DEPTH, NESTED_AFTER_CALLER};

/// Notes in the thread's part, if it has one, which function it is in: its position plus one, or 0. Returns what stood
/// there.
pub use own::note_inside;

/// Added to the depth while the thread runs our own code, which no call may enter again.
pub const BUSY: u32 = 1 << 31;
/// Added to the depth while MPI has called a function of the program: what is called now, the program calls.
pub const PROGRAM: u32 = 1 << 30;
/// Added to the depth while the thread is in MPI's layer for Fortran, which has not called the function yet that the
/// program has.
pub const LAYER: u32 = 1 << 29;
/// Added to the depth from where a thread enters that layer until it leaves it.
pub const FORTRAN: u32 = 1 << 28;
/// The rest of the depth.
pub const LEVELS: u32 = FORTRAN - 1;
/// Callbacks in callbacks up to which calls are observed.
pub const DEEPEST: usize = 64;

/// The loaded code, and which of it is MPI's: made when first needed, and again when a caller is in none of it and
/// libraries came or went.
pub static CODE: AtomicPtr<Code> = AtomicPtr::new(null_mut());

pub struct Code {
    pub changes: Changes,
    pub objects: Vec<(Range<usize>, Owner)>,
}

/// The layer's functions behind Fortran's names.
#[cfg(target_arch = "x86_64")]
pub static FORTRAN_REAL: [fortran::Real; fortran::NAMES.len()] =
    [const { fortran::Real::new() }; fortran::NAMES.len()];
/// Constants of Fortran that its layer does not turn into those of C.
#[cfg(target_arch = "x86_64")]
pub static SENTINELS: fortran::Sentinels = fortran::Sentinels::new();

/// The program's functions that MPI was given a function of ours for; 0 where there is none.
pub static CALLBACKS: [AtomicUsize; callbacks::MOST] = [const { AtomicUsize::new(0) }; callbacks::MOST];
/// How many calls of MPI the program has left by a jump.
pub static JUMPS: AtomicU64 = AtomicU64::new(0);
/// One of these jumps did not come from a function that MPI had called, but out of MPI itself.
pub static TORN_OUT: AtomicBool = AtomicBool::new(false);
/// How many calls by Fortran's names are missing: the layer called no function of C that tells what they were.
pub static UNSEEN: AtomicU64 = AtomicU64::new(0);

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

/// What the calling thread is in is noted no more: the file behind that word may go.
pub fn forget_inside() {
    own::set_inside(std::ptr::null());
}

/// The name of a link to make where this process cannot come to the meeting of the ranks; null until it is known.
pub static NOT_COMING: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

/// One more than the number this thread will have if it calls MPI; 0: it has not been given one.
pub fn assigned() -> u32 {
    own::assigned()
}

pub fn assign(number: u32) {
    own::assign(number);
    if number == 0 {
        // SAFETY: null, or a stream that was leaked.
        if let Some(stream) = unsafe { own::stream().as_ref() } {
            own::set_stream(null_mut());
            stream.release();
        }
    }
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
    if !membarrier::register() {
        FENCED.store(true, SeqCst);
        CROWD.may.store(crowd::SEVERAL, SeqCst);
    }
}

/// The calling thread is in the recorder, until dropped, also when a panic passes through. There is one at a time: a
/// thread that is in is not let in again, and a stream has one thread.
pub struct Entered {
    stream: &'static Stream,
    way: Way,
    /// Not for another thread.
    _here: PhantomData<*const ()>,
}

/// What a thread that is in may use.
pub struct Hands<'a> {
    /// The thread's number.
    pub number: u32,
    /// What it has for itself.
    pub own: &'a mut Own,
    pub common: Common<'a>,
}

/// The way to what all threads share. With the thread's requests where no other one can have to do with them: then nothing
/// is locked.
pub struct Common<'a>(Option<&'a mut Requests>);

impl Entered {
    /// `None`: the recording is over, or a signal handler has interrupted this thread while it was in.
    #[inline]
    pub fn enter() -> Option<Entered> {
        // SAFETY: null, or a stream that was leaked.
        match unsafe { own::stream().as_ref() } {
            Some(stream) => Entered::by(stream),
            None => Entered::by(first_call()?),
        }
    }

    #[inline]
    fn by(stream: &'static Stream) -> Option<Entered> {
        match CROWD.enter(&Swift, stream.number, &stream.busy) {
            Ok(way) => Some(Entered { stream, way, _here: PhantomData }),
            Err(Out::Crowded) => Entered::after_making_room(stream),
            Err(Out::Over | Out::Again) => None,
        }
    }

    /// Another thread than the first one calls MPI, or the first one does meanwhile: from here on all take locks.
    #[cold]
    #[inline(never)]
    fn after_making_room(stream: &'static Stream) -> Option<Entered> {
        make_room();
        Entered::by(stream)
    }

    #[inline]
    pub fn hands(&mut self) -> Hands<'_> {
        let alone = self.way == Way::Alone;
        Hands {
            number: self.stream.number,
            // SAFETY: the stream is this thread's, which is in, and `self` is borrowed as long as this is.
            own: unsafe { self.stream.own() },
            // SAFETY: no other thread has called MPI, and one that is about to waits until this one is out. And as above.
            common: Common(if alone { Some(unsafe { self.stream.requests() }) } else { None }),
        }
    }
}

/// What a thread has for itself, on its first call. `None`: the recording is over.
#[cold]
#[inline(never)]
fn first_call() -> Option<&'static Stream> {
    let claimed = Stream::of(threads::number() as u32).claim();
    // The number's last thread has not ended after all.
    let stream = claimed.or_else(|| Stream::of(threads::number_of_its_own() as u32).claim())?;
    own::set_stream(stream);
    CROWD.arrive(stream.number);
    Entered::by(stream)?.hands().own.arrive();
    Some(stream)
}

impl Common<'_> {
    /// The same for somebody else, for a while.
    #[inline]
    pub fn lent(&mut self) -> Common<'_> {
        Common(self.0.as_deref_mut())
    }

    #[inline]
    pub fn is_alone(&self) -> bool {
        self.0.is_some()
    }

    /// Runs `look` on what all threads share, which `make` makes on first use, and on the requests of a thread that is
    /// alone.
    #[inline]
    pub fn with<R>(
        &mut self,
        make: impl FnOnce() -> Option<State>,
        look: impl FnOnce(&mut State, Option<&mut Requests>) -> R,
    ) -> Option<R> {
        let alone = self.is_alone();
        let _held = if alone { None } else { Some(RECORDER_LOCK.take()) };
        // SAFETY: the invariant of `RECORDER`. `look` cannot come here: `self` is borrowed.
        let slot = unsafe { &mut *RECORDER.0.get() };
        if slot.is_none() {
            *slot = make().map(Box::new);
        }
        let state = slot.as_mut()?;
        let result = look(state, self.0.as_deref_mut());
        if !alone {
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
        CROWD.leave(&self.stream.busy);
    }
}

/// How long a thread waits for another one to leave the recorder. One that was interrupted in there by a signal handler
/// which waits in turn never does.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// This machine, for a thread that enters.
struct Swift;

impl Machine for Swift {
    /// Where this is not enough nobody is ever alone: see `prepare_threads`.
    #[inline]
    fn light(&self) {
        compiler_fence(SeqCst);
    }

    #[inline]
    fn firm(&self) {
        if FENCED.load(Relaxed) {
            fence(SeqCst);
        }
    }

    fn heavy(&self) {
        if FENCED.load(Relaxed) {
            fence(SeqCst);
        } else {
            assert!(membarrier::run(), "the kernel refuses a barrier it has offered");
        }
    }

    fn wait(&self) -> bool {
        std::thread::yield_now();
        true
    }
}

/// This machine, for a thread that waits for others.
#[derive(Default)]
struct Patient(RefCell<Waited>);

impl Machine for Patient {
    fn light(&self) {
        Swift.light();
    }

    fn firm(&self) {
        Swift.firm();
    }

    fn heavy(&self) {
        Swift.heavy();
    }

    fn wait(&self) -> bool {
        let waited = self.0.borrow_mut().so_far();
        if waited < Duration::from_millis(1) {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(100));
        }
        waited < PATIENCE
    }
}

/// The recorder's generations as they were published last. Places that may be gone by now are nobody's.
#[inline]
pub fn now() -> Now {
    let seen = SEEN.load(Acquire) == FREED.epoch();
    let places = if seen { PLACES.load(Acquire) } else { u64::MAX };
    Now { objects: OBJECTS.load(Acquire), places, site: 0 }
}

fn make_room() {
    let of_first = |first| stream::all().find(|stream| stream.number + 1 == first).map(|stream| &stream.busy);
    let made = CROWD.make_room(&Patient::default(), of_first);
    assert!(made.is_ok(), "another thread has been recording one call for {} s", PATIENCE.as_secs());
}

/// What a recording leaves behind: what all threads shared, and what each had, by number.
#[derive(Default)]
pub struct Recording {
    pub state: Option<Box<State>>,
    pub streams: Vec<(u32, &'static mut Own)>,
}

/// The recording is over. Waits until no thread is in; an error where one does not come out, which then keeps it all.
pub fn take_recorder() -> Result<Recording, Stuck> {
    if !CROWD.end() {
        return Ok(Recording::default());
    }
    CROWD.all_out(&Patient::default(), || stream::all().map(|stream| &stream.busy))?;
    // SAFETY: nobody comes in any more, all are out, and this happens once.
    let state = unsafe { &mut *RECORDER.0.get() }.take();
    // SAFETY: as above.
    let mut streams: Vec<_> = stream::all().map(|stream| (stream.number, unsafe { stream.own() })).collect();
    streams.sort_by_key(|(number, _)| *number);
    Ok(Recording { state, streams })
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
