//! The process that is traced: its threads, what of them is written and when, what happens when it forks, becomes another
//! program, or ends.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use refrain_references::{Thread, parts};

use crate::code::Code;
use crate::config::{Config, place};
use crate::exec::{self, Next};
use crate::fatal;
use crate::files::{self, Chunks, Pace, say};
use crate::qemu::{Functions, OnInsn, OnMemory};
use crate::record::{Cursor, PROCESSORS, RECORDS, Record, SLOTS};
use crate::recording::{Meaning, Recording};
use crate::switch;

/// Bytes that a thread may hold to fold what it does.
const MOST: usize = 64 << 20;

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(null_mut());
/// A fault of ours has ended recording.
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static CURRENT: Cell<Option<u32>> = const { Cell::new(None) };
    /// Held by a thread that forks, so that the child finds the tables of code as they should be.
    static HELD: RefCell<Option<MutexGuard<'static, Code>>> = const { RefCell::new(None) };
}

/// What is registered for instructions.
#[derive(Debug, Clone, Copy)]
pub struct Callbacks {
    pub memory: OnMemory,
    pub flow: OnMemory,
    /// Nobody wants to know.
    pub nothing: OnMemory,
    pub switch: OnInsn,
    pub call: OnInsn,
    pub thread: OnMemory,
    pub start: OnInsn,
}

/// A thread that is recorded.
struct Lane {
    number: u32,
    recording: Recording,
    buffer: Box<[Record]>,
    pace: Pace,
}

pub struct Process {
    pub config: Config,
    pub functions: Functions,
    pub callbacks: Callbacks,
    meaning: Meaning,
    pub code: Arc<Mutex<Code>>,
    /// By processor.
    lanes: Vec<Mutex<Option<Lane>>>,
    threads: AtomicU32,
    /// What is added to the program's addresses to get those of the emulator.
    pub base: AtomicU64,
    note: Mutex<parts::Process>,
    /// What could not be written was told.
    has_said: AtomicBool,
}

/// Why a buffer is emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Full,
    /// The block that runs has ended.
    Pause,
    /// Nothing follows.
    End,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Since 1970.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Does something for the process, if it is recorded. A fault of ours ends that, and not the program.
pub fn guarded(work: impl FnOnce(&'static Process)) {
    let process = PROCESS.load(Acquire);
    if process.is_null() || IS_STOPPED.load(Relaxed) {
        return;
    }
    // SAFETY: never freed once it is there.
    let process: &'static Process = unsafe { &*process };
    if catch_unwind(AssertUnwindSafe(|| work(process))).is_err() && !IS_STOPPED.swap(true, AcqRel) {
        say("a fault of Refrain has ended the recording of memory references; the program goes on");
    }
}

impl Process {
    /// Begins to record this process.
    pub fn install(config: Config, functions: Functions, callbacks: Callbacks, meaning: Meaning) {
        let found = if config.launched { place(|name| std::env::var(name).ok()) } else { None };
        let (rank, world) = found.unwrap_or((0, 1));
        let now = now();
        let note = parts::Process {
            rank,
            world,
            pid: std::process::id(),
            image: config.image,
            is_first: config.is_first,
            program: config.program.clone(),
            host: refrain_tracefile::claim::host_name(),
            started: now.as_secs(),
            began: now.as_nanos() as u64,
            ..Default::default()
        };
        let code = Arc::new(Mutex::new(Code::default()));
        let process = Process::new(config, functions, callbacks, meaning, code, note);
        process.put();
        fatal::watch(|| guarded(Process::die));
        // SAFETY: the handlers are functions of this library, which stays loaded.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
    }

    fn new(
        config: Config,
        functions: Functions,
        callbacks: Callbacks,
        meaning: Meaning,
        code: Arc<Mutex<Code>>,
        note: parts::Process,
    ) -> Process {
        let mut lanes = Vec::new();
        lanes.resize_with(PROCESSORS, || Mutex::new(None));
        Process {
            config,
            functions,
            callbacks,
            meaning,
            code,
            lanes,
            threads: AtomicU32::new(0),
            base: AtomicU64::new(0),
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

    /// A thread begins; with its first record where nobody said so before.
    pub fn begin(&self, processor: u32, first: Option<Record>) {
        let Some(lane) = self.lanes.get(processor as usize) else {
            if !self.has_said.swap(true, Relaxed) {
                say(&format!("more than {PROCESSORS} threads at a time: the others are not recorded"));
            }
            return;
        };
        let mut lane = locked(lane);
        let mut buffer = vec![Record::default(); RECORDS].into_boxed_slice();
        let start = buffer.as_mut_ptr();
        // SAFETY: both lie in the buffer; `begin` is called for a processor that is the caller or does not run yet.
        unsafe {
            let next = start.add(usize::from(first.is_some()));
            SLOTS[processor as usize].set(Cursor { next, last: start.add(RECORDS - 1) });
        }
        buffer.iter_mut().zip(first).for_each(|(to, first)| *to = first);
        let number = self.threads.fetch_add(1, Relaxed);
        let note = locked(&self.note);
        let place = (note.rank, note.world);
        let chunks = self.config.parts.join(note.chunks(number));
        drop(note);
        let thread = Thread::new(self.config.folding, place, number).bounded(Box::new(Chunks(chunks)), MOST);
        let recording = Recording::new(thread, self.config.limit, self.config.stacks, self.meaning);
        *lane = Some(Lane { number, recording, buffer, pace: Pace::new() });
    }

    /// Takes in what a thread has noted so far, and writes it if it is time to.
    pub fn flush(&self, processor: u32, when: When) {
        if when == When::Full {
            CURRENT.set(Some(processor));
        }
        let Some(lane) = self.lanes.get(processor as usize) else { return };
        if let Some(lane) = &mut *locked(lane) {
            self.take_in(lane, processor, when != When::Full);
            if when == When::End || lane.pace.is_time() {
                self.write(lane, when == When::End);
            }
        }
    }

    fn take_in(&self, lane: &mut Lane, processor: u32, end: bool) {
        let slot = &SLOTS[processor as usize];
        // SAFETY: the caller is the thread of that processor, or that thread does not run.
        let place = unsafe { slot.get() };
        let start = lane.buffer.as_mut_ptr();
        // SAFETY: `next` lies in the same buffer, or right behind it.
        let count = usize::try_from(unsafe { place.next.offset_from(start) }).unwrap_or(0).min(RECORDS);
        let tell = |all: &mut _, of: &mut _| locked(&self.code).blocks.tell(all, of);
        let taken = if lane.recording.is_full() {
            lane.recording.take_marks(&lane.buffer[..count]);
            count
        } else {
            match lane.recording.take(&lane.buffer[..count], end, tell) {
                // One execution fills the buffer.
                0 if count == RECORDS => lane.recording.take(&lane.buffer[..count], true, tell),
                taken => taken,
            }
        };
        lane.buffer.copy_within(taken..count, 0);
        // SAFETY: as above; less than the buffer is left.
        unsafe { slot.set(Cursor { next: start.add(count - taken), ..place }) };
    }

    /// A thread has ended.
    pub fn end(&self, processor: u32) {
        self.flush(processor, When::End);
        if let Some(lane) = self.lanes.get(processor as usize) {
            let ended = locked(lane).take();
            // SAFETY: that thread has ended, and nothing points to its buffer afterwards.
            unsafe { SLOTS[processor as usize].set(Cursor { next: null_mut(), last: null_mut() }) };
            // What was not closed is read as well: its chunks are searched for.
            ended.into_iter().for_each(|lane| drop(lane.recording.close()));
        }
    }

    /// A thread is about to make a system call.
    pub fn syscall(&self, processor: u32, number: i64, [first, second, third, fourth, fifth]: [u64; 5]) {
        CURRENT.set(Some(processor));
        match number {
            libc::SYS_execve => self.become_another(None, first, second, third),
            libc::SYS_execveat => {
                self.become_another(Some((first as i32, fifth as i32)), second, third, fourth);
            }
            libc::SYS_mmap if third & libc::PROT_EXEC as u64 == 0 => {}
            libc::SYS_mmap | libc::SYS_munmap | libc::SYS_mprotect | libc::SYS_mremap => {
                locked(&self.code).modules.forget();
            }
            _ => {}
        }
        let Some(lane) = self.lanes.get(processor as usize) else { return };
        let is_time = locked(lane).as_ref().is_some_and(|lane| lane.pace.is_time());
        if is_time {
            self.flush(processor, When::Pause);
        }
    }

    /// The program becomes another one. If this comes back, QEMU has the kernel run that, or tells the program why not.
    fn become_another(&self, directory: Option<(i32, i32)>, path: u64, words: u64, variables: u64) {
        let Some(asked) = exec::asked(self.base.load(Relaxed), directory, path, words, variables) else {
            return;
        };
        match exec::next(&asked, &self.config) {
            Next::Nothing => {}
            Next::Outside(program, why) => {
                self.leave_off(parts::State::Replaced, format!("{} ({why})", program.display()));
            }
            Next::Emulated { program, words } => {
                let is_first = locked(&self.note).is_first;
                self.leave_off(parts::State::Continued, program.display().to_string());
                exec::become_emulated(&self.config, is_first, &program, &words, &asked.variables);
                self.tell(|note| note.state = parts::State::Replaced);
            }
        }
    }

    /// The process ends: no thread runs any more.
    pub fn exit(&self) {
        (0..PROCESSORS as u32).for_each(|processor| self.end(processor));
        let notes = locked(&self.code).notes(&self.config);
        self.tell(|note| {
            note.state = parts::State::Exited;
            note.notes.extend(notes);
        });
    }

    fn die(&self) {
        self.leave_off(parts::State::Signalled, String::new());
    }

    /// The process ends, on this thread. Others may run still: what they have noted since their buffers were last full is lost.
    fn leave_off(&self, state: parts::State, became: String) {
        for (processor, lane) in (0..).zip(&self.lanes) {
            if let Some(lane) = &mut *locked(lane) {
                let is_own = CURRENT.get() == Some(processor);
                if is_own {
                    self.take_in(lane, processor, true);
                }
                self.write(lane, is_own);
            }
        }
        self.tell(|note| {
            note.state = state;
            note.became = became;
        });
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
                self.leave(&name, &files::part(bundle, world, lane.recording.len(), complete, stopped));
            }
            Err(error) => self.complain(&error.to_string()),
        }
        lane.pace.written(began);
    }

    /// Changes what is said of the process, and says it.
    fn tell(&self, change: impl FnOnce(&mut parts::Process)) {
        let mut note = locked(&self.note);
        change(&mut note);
        note.threads = self.threads.load(Relaxed);
        let (name, text) = (note.name(), note.to_text());
        drop(note);
        self.leave(&name, text.as_bytes());
    }

    /// Writes a file of the parts, all or nothing.
    fn leave(&self, name: &str, bytes: &[u8]) {
        if !self.config.is_recorded() {
            return;
        }
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

extern "C" fn before_fork() {
    guarded(|process| HELD.with(|held| *held.borrow_mut() = Some(locked(&process.code))));
}

extern "C" fn after_fork() {
    guarded(|_| HELD.with(|held| drop(held.borrow_mut().take())));
}

/// The child is a process of its own, of one thread. What its parent recorded is not its.
extern "C" fn in_child() {
    guarded(|process| {
        HELD.with(|held| drop(held.borrow_mut().take()));
        for slot in &SLOTS {
            // SAFETY: this is the only thread, and what the places point to is never freed: the parent's lanes are left alone.
            unsafe { slot.set(Cursor { next: null_mut(), last: null_mut() }) };
        }
        // Nobody holds it for long, but a thread that did is not there any more.
        let known = process.note.try_lock().map(|note| note.clone());
        let Ok(known) = known else {
            IS_STOPPED.store(true, Relaxed);
            return;
        };
        let now = now();
        let note = parts::Process {
            pid: std::process::id(),
            is_first: false,
            parent: known.pid,
            started: now.as_secs(),
            began: now.as_nanos() as u64,
            state: parts::State::Running,
            notes: Vec::new(),
            ..known
        };
        let Process { functions, callbacks, meaning, .. } = *process;
        switch::forked();
        let child =
            Process::new(process.config.clone(), functions, callbacks, meaning, process.code.clone(), note);
        child.base.store(process.base.load(Relaxed), Relaxed);
        child.put();
    });
}
