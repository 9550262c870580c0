//! The threads of the process that is recorded, what of them is written and when, forks and ends.

use std::arch::{asm, naked_asm};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard, TryLockError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use refrain_references::{Thread, parts};

use super::own::{BUFFER, Own, Record, apart, close, open, own};
use super::recording::{Found, Recording};
use crate::config::{Config, place};
use crate::files::{self, Chunks, Pace, say};
use crate::modules::Modules;
use crate::{heap, switch};

/// Bytes that a thread may hold to fold what it does.
const MOST: usize = 64 << 20;
/// How many threads may run at the same time.
const LANES: usize = 4096;

/// How often the C library comes back to what must be done at a thread's end (`PTHREAD_DESTRUCTOR_ITERATIONS`).
const ROUNDS: usize = 4;

/// [`Own::number`] of a thread that has ended.
const OVER: usize = usize::MAX;

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(null_mut());
/// A fault of ours has ended recording.
static IS_STOPPED: AtomicBool = AtomicBool::new(false);
/// Its destructor runs at the end of each thread that has a lane; 1 + the key.
static KEY: AtomicUsize = AtomicUsize::new(0);
/// Read by whoever does something here, written by a fork: what the child finds is as it should be, whatever it is.
static WORKING: RwLock<()> = RwLock::new(());
/// What is held from before a fork until after it.
static FORKING: Forking = Forking(UnsafeCell::new(None));

/// A thread that is recorded.
struct Lane {
    number: u32,
    recording: Recording,
    buffer: *mut Record,
    /// What the buffer lies in, from `heap::map`.
    memory: usize,
    /// That thread's, which it lives as long as this lane.
    own: &'static Own,
    pace: Pace,
}

// SAFETY: the buffer is read under the lane's lock; its thread adds to the end of it meanwhile, and no more.
unsafe impl Send for Lane {}

pub struct Process {
    pub config: Config,
    pub modules: Mutex<Modules>,
    lanes: Vec<Mutex<Option<Box<Lane>>>>,
    /// Lanes that no thread has.
    free: Mutex<Vec<usize>>,
    threads: AtomicU32,
    /// Threads that were recorded.
    begun: AtomicU32,
    note: Mutex<parts::Process>,
    /// What could not be written was told.
    has_said: AtomicBool,
    /// Recording has gone on, where it does not begin with the program.
    pub is_reached: AtomicBool,
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// No signal is handled on this thread until it is dropped; and the program's `errno` is what it was.
pub struct Quiet {
    pub before: libc::sigset_t,
    errno: c_int,
}

impl Quiet {
    pub fn new() -> Quiet {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: places for sets of signals, the first of which is filled before it is used. What faults is not blocked: it
        // could not be.
        unsafe {
            let errno = *libc::__errno_location();
            libc::sigfillset(all.as_mut_ptr());
            for signal in
                [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGTRAP]
            {
                libc::sigdelset(all.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
            Quiet { before: before.assume_init(), errno }
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // SAFETY: the set of signals from before, and the thread's own errno.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, null_mut());
            *libc::__errno_location() = self.errno;
        }
    }
}

/// Does something for the process, if it is recorded, while no signal is handled. A fault of ours ends recording, and not the
/// program.
pub fn guarded(work: impl FnOnce(&'static Process)) {
    let process = PROCESS.load(Acquire);
    if process.is_null() || IS_STOPPED.load(Relaxed) {
        return;
    }
    let _quiet = Quiet::new();
    let own = own();
    if own.inside.swap(1, Relaxed) != 0 {
        return;
    }
    let working = WORKING.read().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: never freed once it is there.
    let process: &'static Process = unsafe { &*process };
    if catch_unwind(AssertUnwindSafe(|| work(process))).is_err() && !IS_STOPPED.swap(true, AcqRel) {
        close();
        say("a fault of Refrain has ended the recording of memory references; the program goes on");
    }
    drop(working);
    own.inside.store(0, Relaxed);
}

/// Whether this process is recorded.
pub fn is_recorded() -> bool {
    !PROCESS.load(Acquire).is_null()
}

/// A record did not find a buffer, or was the last one of it.
extern "C" fn take_turn() {
    let own = own();
    if own.lane.load(Relaxed) == 0 {
        // The program's stack may not be good for much.
        let _quiet = Quiet::new();
        if !own.take_stack() {
            return;
        }
    }
    quietly(turned, 0);
}

/// Does that on our own stack, if nothing of ours runs on this thread. A handler that came between would find us on that stack.
pub fn quietly(work: extern "C" fn(usize), argument: usize) {
    let _quiet = Quiet::new();
    if own().inside.load(Relaxed) == 0 {
        // SAFETY: nothing of ours is on that stack, and no handler comes to where it is.
        unsafe { apart(work, argument) };
    }
}

extern "C" fn turned(_: usize) {
    let own = own();
    guarded(|process| match own.lane.load(Relaxed) {
        0 => process.begin(own),
        lane => process.flush(lane - 1, own),
    });
    // Recording has ended: nobody looks at what is noted.
    let next = own.next.load(Relaxed);
    if next != 0 && next.is_multiple_of(BUFFER) && own.lane.load(Relaxed) == 0 {
        own.next.store(0, Relaxed);
    }
}

/// A thread that has a lane ends. What runs at a thread's end after this may be recorded as well: it comes back later, as
/// often as may be.
extern "C" fn on_thread_end(rounds: *mut c_void) {
    if (rounds as usize) < ROUNDS {
        let key = KEY.load(Relaxed) - 1;
        // SAFETY: our own key.
        unsafe {
            libc::pthread_setspecific(key as u32, std::ptr::without_provenance::<c_void>(rounds as usize + 1))
        };
        return;
    }
    extern "C" fn ended(_: usize) {
        let own = own();
        guarded(|process| {
            if let Some(lane) = own.lane.load(Relaxed).checked_sub(1) {
                process.end(lane);
            }
        });
    }
    quietly(ended, 0);
    own().number.store(OVER, Relaxed);
    let _quiet = Quiet::new();
    own().leave_stack();
}

/// The files among the parts.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// This process was another program before, which says that it became one that is not recorded: it did not know.
fn continued(folder: &Path, now: &parts::Process) {
    let name = parts::Process { image: now.image - 1, ..now.clone() }.name();
    let text = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
    if let Some(before) = parts::Process::from_text(&text) {
        let before = parts::Process { state: parts::State::Continued, became: now.program.clone(), ..before };
        let _ = files::leave(folder, &name, before.to_text().as_bytes());
    }
}

impl Process {
    /// Begins to record this process.
    pub fn install(config: Config) {
        let found = if config.launched { place(|name| std::env::var(name).ok()) } else { None };
        let (rank, world) = found.unwrap_or((0, 1));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let others = names(&config.parts);
        let mut note = parts::Process {
            rank,
            world,
            pid: std::process::id(),
            is_first: !others.iter().any(|name| name.starts_with(&format!("{rank}-"))),
            program: config.program.clone(),
            host: refrain_tracefile::claim::host_name(),
            started: now.as_secs(),
            began: now.as_nanos() as u64,
            ..Default::default()
        };
        // It may have been another program before.
        while others.contains(&note.name()) {
            note.image += 1;
        }
        if note.image > 0 {
            continued(&config.parts, &note);
        }
        Process::new(config, note).put();
        let mut key = 0;
        // SAFETY: a place for the key, and a function of this library, which stays loaded.
        if unsafe { libc::pthread_key_create(&mut key, Some(on_thread_end)) } == 0 {
            KEY.store(key as usize + 1, Relaxed);
        }
        // SAFETY: the handlers are functions of this library, which stays loaded.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
        own().number.store(1, Relaxed);
    }

    fn new(config: Config, note: parts::Process) -> Process {
        let mut lanes = Vec::new();
        lanes.resize_with(LANES, || Mutex::new(None));
        Process {
            is_reached: AtomicBool::new(config.from.is_none()),
            config,
            modules: Mutex::new(Modules::default()),
            lanes,
            free: Mutex::new((0..LANES).rev().collect()),
            threads: AtomicU32::new(1),
            begun: AtomicU32::new(0),
            note: Mutex::new(note),
            has_said: AtomicBool::new(false),
        }
    }

    /// Makes it the one that is recorded.
    fn put(self) {
        let process: &'static Process = Box::leak(Box::new(self));
        PROCESS.store((&raw const *process).cast_mut(), Release);
        process.tell(|_| ());
    }

    /// The number of a thread that is being created.
    pub fn new_number(&self) -> u32 {
        self.threads.fetch_add(1, Relaxed)
    }

    fn begin(&self, own: &'static Own) {
        // A handler, after all else: what the thread did is written.
        if own.number.load(Relaxed) == OVER {
            return;
        }
        let Some(free) = locked(&self.free).pop() else {
            return self
                .complain(&format!("more than {LANES} threads at a time: the others are not recorded"));
        };
        let known = own.number.load(Relaxed).checked_sub(1);
        let number = known.map_or_else(|| self.new_number(), |number| number as u32);
        let memory = heap::map(3 * BUFFER) as usize;
        if memory == 0 {
            locked(&self.free).push(free);
            return self.complain("there is no memory for what a thread records");
        }
        let buffer = memory.next_multiple_of(BUFFER) as *mut Record;
        let note = locked(&self.note);
        let place = (note.rank, note.world);
        let chunks = self.config.parts.join(note.chunks(number));
        drop(note);
        let thread = Thread::new(self.config.folding, place, number).bounded(Box::new(Chunks(chunks)), MOST);
        let recording = Recording::new(thread, self.config.limit);
        let lane = Lane { number, recording, buffer, memory, own, pace: Pace::new() };
        self.begun.fetch_add(1, Relaxed);
        *locked(&self.lanes[free]) = Some(Box::new(lane));
        own.lane.store(free + 1, Relaxed);
        own.next.store(buffer as usize, Relaxed);
        let key = KEY.load(Relaxed);
        if key != 0 && number != 0 {
            // SAFETY: our own key.
            unsafe { libc::pthread_setspecific((key - 1) as u32, std::ptr::without_provenance::<c_void>(1)) };
        }
    }

    /// Takes in what the calling thread has noted so far, and writes it if it is time to.
    fn flush(&self, lane: usize, own: &Own) {
        let mut lane = locked(&self.lanes[lane]);
        match &mut *lane {
            Some(lane) => {
                self.take_in(lane, false);
                if lane.pace.is_time() {
                    self.write(lane, false);
                }
            }
            None => {
                own.lane.store(0, Relaxed);
                own.next.store(0, Relaxed);
            }
        }
    }

    /// Takes in what a thread has noted: the caller has its lane's lock, so that the thread adds to it and no more.
    fn take_in(&self, lane: &mut Lane, end: bool) {
        let Lane { own, buffer, recording, .. } = lane;
        let start = *buffer as usize;
        let next = own.next.load(Acquire);
        let count = (next.saturating_sub(start) / size_of::<Record>()).min(2 * BUFFER / size_of::<Record>());
        let is_own = std::ptr::eq(*own, super::own::own());
        if is_own {
            // Should something of ours call code that is recorded: behind the buffer.
            own.next.store(start + BUFFER, Relaxed);
            own.busy.store(start + BUFFER, Relaxed);
        }
        // SAFETY: so many records are there, in memory that is mapped as long as the lane lives.
        let records = unsafe { std::slice::from_raw_parts_mut(*buffer, count) };
        let find = |pc| Found::new(&mut locked(&self.modules), pc);
        let taken = match recording.take(records, end, find) {
            // One block fills the buffer.
            0 if count > 0 => recording.take(records, true, find),
            taken => taken,
        };
        records[..taken].iter_mut().for_each(|record| record.word = 0);
        if is_own {
            records.copy_within(taken.., 0);
            let left = count - taken;
            records[left.max(taken)..].iter_mut().for_each(|record| record.word = 0);
            own.busy.store(0, Relaxed);
            own.next.store(start + left * size_of::<Record>(), Relaxed);
        }
    }

    /// A thread has ended, or the process has.
    fn end(&self, number: usize) {
        let mut place = locked(&self.lanes[number]);
        let Some(mut lane) = place.take() else { return };
        self.take_in(&mut lane, true);
        self.write(&mut lane, true);
        if std::ptr::eq(lane.own, own()) {
            lane.own.lane.store(0, Relaxed);
            lane.own.next.store(0, Relaxed);
            locked(&self.free).push(number);
            // SAFETY: mapped by `begin`; its thread has come to its end, and notes nothing any more.
            unsafe { heap::unmap(lane.memory as *mut u8, 3 * BUFFER) };
        }
        // What was not closed is read as well: its chunks are searched for.
        drop(lane.recording.close());
    }

    /// The process ends. Other threads may run still, and are waited for where they write.
    pub fn exit(&self) {
        close();
        (0..LANES).for_each(|lane| self.end(lane));
        let never = self.config.from.as_ref().filter(|_| !self.is_reached.load(Relaxed));
        let part = if never.is_none() { switch::note() } else { None };
        self.tell(|note| {
            note.state = parts::State::Exited;
            note.notes.extend(part);
            note.notes.extend(never.map(|from| format!("nothing is recorded: {from} was never called")));
        });
    }

    /// A signal ends the process, or it becomes another program: all that was noted is written, in the state in which it is.
    pub fn leave(&self, state: parts::State) {
        let complete = state == parts::State::Replaced;
        for lane in &self.lanes {
            let mut lane = match lane.try_lock() {
                Ok(lane) => lane,
                Err(TryLockError::Poisoned(lane)) => lane.into_inner(),
                // Its thread is at work on it: waiting for it is not safe in every signal handler.
                Err(TryLockError::WouldBlock) => continue,
            };
            if let Some(lane) = &mut *lane {
                // What another thread noted is left where it is: that thread goes on, for all that is known.
                let is_own = std::ptr::eq(lane.own, own());
                if is_own || !complete {
                    self.take_in(lane, true);
                }
                self.write(lane, is_own || !complete);
            }
        }
        self.tell(|note| {
            note.state = state;
            if complete {
                note.became = "another program".into();
            }
        });
    }

    /// Whether the calling process is this one, and not one that `vfork` made.
    pub fn is_here(&self) -> bool {
        locked(&self.note).pid == std::process::id()
    }

    fn write(&self, lane: &mut Lane, complete: bool) {
        let began = Instant::now();
        let note = locked(&self.note);
        let (world, name) = (note.world, note.part(lane.number));
        drop(note);
        match lane.recording.bundle() {
            Ok(bundle) => {
                let stopped = lane.recording.stopped().map(ToString::to_string);
                stopped.iter().for_each(|why| self.complain(why));
                let complete = complete && stopped.is_none();
                self.save(&name, &files::part(bundle, world, lane.recording.len(), complete, stopped));
            }
            Err(error) => self.complain(&error.to_string()),
        }
        lane.pace.written(began);
    }

    /// Changes what is said of the process, and says it.
    fn tell(&self, change: impl FnOnce(&mut parts::Process)) {
        let mut note = locked(&self.note);
        change(&mut note);
        // Others had nothing to tell: they run code that was not compiled so.
        note.threads = self.begun.load(Relaxed);
        let (name, text) = (note.name(), note.to_text());
        drop(note);
        self.save(&name, text.as_bytes());
    }

    fn save(&self, name: &str, bytes: &[u8]) {
        if let Err(why) = files::leave(&self.config.parts, name, bytes) {
            self.complain(&why);
        }
    }

    fn complain(&self, what: &str) {
        if !self.has_said.swap(true, Relaxed) {
            say(&format!("{what}; the program goes on, and the trace ends where it was last written"));
        }
    }
}

/// Between the handlers of a fork, on the thread that forks.
struct Held {
    _working: RwLockWriteGuard<'static, ()>,
    _quiet: Quiet,
}

struct Forking(UnsafeCell<Option<Held>>);

// SAFETY: touched by the thread that forks only, under the C library's lock for that.
unsafe impl Sync for Forking {}

/// The child finds what it needs as it should be, and no signal comes between.
extern "C" fn before_fork() {
    // Of a program that is not recorded, and of what runs while we are at work on this thread, nobody has anything.
    if !is_recorded() || own().inside.load(Relaxed) != 0 {
        return;
    }
    let quiet = Quiet::new();
    let held = Held { _working: WORKING.write().unwrap_or_else(PoisonError::into_inner), _quiet: quiet };
    // SAFETY: this thread forks.
    unsafe { *FORKING.0.get() = Some(held) };
}

extern "C" fn after_fork() {
    // SAFETY: this thread forks.
    drop(unsafe { (*FORKING.0.get()).take() });
}

/// The child is a process of its own, of one thread. What its parent recorded is not its.
extern "C" fn in_child() {
    after_fork();
    let own = own();
    for word in [&own.next, &own.busy, &own.lane, &own.inside] {
        word.store(0, Relaxed);
    }
    own.number.store(1, Relaxed);
    guarded(|process| {
        let known = locked(&process.note).clone();
        let note = parts::Process {
            pid: std::process::id(),
            parent: known.pid,
            image: 0,
            is_first: false,
            began: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64,
            state: parts::State::Running,
            notes: Vec::new(),
            ..known
        };
        switch::forked();
        open();
        Process::new(process.config.clone(), note).put();
    });
}

/// A record did not find a buffer, or was the last one of it. Called by assembly: all registers that carry arguments come
/// back as they were, so does rax; r10 is the place of the next record then.
#[unsafe(naked)]
pub unsafe extern "C" fn turn() {
    naked_asm!(
        "mov r11, qword ptr [rip + refrain_memory_own@GOTTPOFF]",
        // We are at work on this thread, and have called code that is recorded: nobody wants to know.
        "mov r10, qword ptr fs:[r11 + 16]",
        "test r10, r10",
        "jz 2f",
        "cmp qword ptr fs:[r11], 0",
        "je 3f",
        "mov qword ptr fs:[r11], r10",
        "ret",
        "3:",
        "xor r10d, r10d",
        "ret",
        "2:",
        "push rax",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push rbx",
        "mov rbx, rsp",
        "and rsp, -16",
        "call {turn}",
        "mov rsp, rbx",
        "pop rbx",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rax",
        "mov r11, qword ptr [rip + refrain_memory_own@GOTTPOFF]",
        "mov r10, qword ptr fs:[r11]",
        "ret",
        turn = sym take_turn,
    )
}

/// The same, called by Rust.
pub fn turn_now() {
    // SAFETY: what `turn` changes beside r10 and r11 is what any call may change.
    unsafe { asm!("call {turn}", turn = sym turn, clobber_abi("C")) };
}
