//! What is recorded: what all threads share, what each has for itself, and how they share their requests.

pub mod host;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::{SystemTime, UNIX_EPOCH};

use refrain_encode::{Before, Encoder, Facts, Folding, Host, Memo, Now, Peers, Record, Requests, Tape};
use refrain_guest::memory::live::FREED;
use refrain_guest::process::clock::Moment;
use refrain_guest::stacks::Stacks;
use refrain_guest::streams::{Common, Keeps, Streams};
use refrain_guest::threads::marks;
use refrain_model::time::Time;
use refrain_mpi::Pmpi;
use refrain_times::paths::Recorder as Paths;
use refrain_tracefile::claim::Job;
use refrain_tracefile::flight::FAULT_PLACE;
use refrain_tracefile::part::Word;

use crate::hooks::Ticks;
use crate::library::library;
use crate::parts::{Early, MOST_EARLY, Parts, Safe, Words, task};
use crate::{config, endings, flight, marked, wild};
use host::{Process, Reader};

/// MPI's thread level says nothing here: some functions may be called by any thread at every level, and programs read
/// `MPI_Wtime` in all of their threads.
// SAFETY: the only one in this library.
pub static RECORDER: Streams<State> = unsafe { Streams::new() };
/// For threads that recognise a call without the lock: the recorder's generations of objects and of places, and how much
/// of what was freed the latter knows of.
static OBJECTS: AtomicU64 = AtomicU64::new(u64::MAX);
static PLACES: AtomicU64 = AtomicU64::new(u64::MAX);
static SEEN: AtomicUsize = AtomicUsize::new(0);
/// Times of every call are asked for.
static EVERY_CALL: AtomicBool = AtomicBool::new(false);
/// Threads keep parts.
static KEPT: AtomicBool = AtomicBool::new(false);

/// The recorder's generations as they were published last. Places that may be gone by now are nobody's.
#[inline]
pub fn now() -> Now {
    let seen = SEEN.load(Acquire) == FREED.epoch();
    let places = if seen { PLACES.load(Acquire) } else { u64::MAX };
    Now { objects: OBJECTS.load(Acquire), places, site: 0 }
}

/// What all threads share. Lives in `RECORDER`.
pub struct State {
    pub host: Process,
    pub encoder: Encoder,
    pub start: Moment,
    /// When MPI was up.
    pub began: Option<Moment>,
    /// Ticks that the thread that started MPI had spent in its calls before: they may ask whether it is up.
    pub before: u64,
    /// Where parts are kept; known when MPI is up.
    pub parts: Option<Parts>,
    /// Another MPI program started this one.
    pub spawned: bool,
    /// The launcher's number of this process, where MPI knows of no other although the launcher started several.
    pub alone: Option<u32>,
    /// Which program of the run this is, and what its trace is called; known when MPI is up.
    pub job: Option<Job>,
    /// Seconds since 1970.
    pub started: u64,
    /// Whose process this was when it began.
    pub user: User,
    /// What the ranks' clocks showed after `MPI_Init`, where the times of all calls are kept.
    pub compared: Option<Comparison>,
    /// MPI's constants by our number, as the library has them.
    pub constants: Vec<(u16, i64)>,
    /// The words of the first part, which has the names of objects.
    pub named: Option<Words>,
}

/// A rank's clock and that of the rank above it in the tree, in ticks of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compared {
    /// The middle between question and arrival.
    pub at: u64,
    /// So far away from the middle the answer may have been given.
    pub half: u64,
    /// What the answer says.
    pub above: u64,
}

/// What a rank knows when all have compared their clocks.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    pub done: Moment,
    /// `None` for rank 0, and where the rank above gave no answer.
    pub above: Option<Compared>,
}

impl State {
    /// What is needed before the first call can be encoded. MPI need not be up yet.
    pub fn new() -> Option<State> {
        let library = library()?;
        let config = config::asked()?;
        EVERY_CALL.store(config.time.of_every_call(), Relaxed);
        let abi = library.abi().unwrap_or_else(|missing| panic!("{missing}"));
        wild::start(&abi);
        let constants: Vec<(u16, i64)> = {
            let named =
                abi.iter().filter_map(|(c, value)| Some((refrain_model::constant(c.name)?.id, value)));
            let mut list: Vec<(u16, i64)> = named.map(|(id, value)| (id, value as i64)).collect();
            // Of several names for one value the lowest number is the canonical one.
            list.sort_unstable();
            list
        };
        flight::start(abi.handle_size(refrain_mpi::Class::Request), &constants);
        // SAFETY: `abi` is this library's. Its methods that need MPI are called between init and finalize only: the
        // recorder asks about handles the program used in calls that succeeded.
        let pmpi = unsafe { Pmpi::new(library, &abi) }.unwrap_or_else(|missing| panic!("{missing}"));
        Some(State {
            host: Process::new(pmpi, config.pointers),
            encoder: Encoder::new(&constants),
            start: Moment::now(),
            began: None,
            before: 0,
            parts: None,
            spawned: false,
            alone: None,
            job: None,
            started: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs()),
            user: user(),
            compared: None,
            constants,
            named: None,
        })
    }

    /// The generations of what was recorded so far, and how much of what was freed they know of.
    fn now(&mut self) -> (Now, usize) {
        let now = Now { objects: self.encoder.generation(), places: self.host.places(), site: 0 };
        (now, self.host.seen())
    }

    /// Where parts are kept, from here on; nowhere, where that is `None`.
    pub fn keep(&mut self, parts: Option<Parts>) {
        self.parts = parts;
        KEPT.store(self.parts.is_some(), Relaxed);
    }
}

impl Keeps for State {
    type Own = Own;
    type Lent = Requests;

    fn new_own(_: u32) -> Own {
        let paths = config::asked().is_some_and(|config| config.time == Time::Histogram).then(Box::default);
        Own { tape: Tape::new(folding()), paths, ..Own::default() }
    }

    fn new_lent(number: u32) -> Requests {
        Requests::new(number)
    }

    /// What lay where on the stack of the thread before it means nothing any more.
    fn arrive(number: u32, own: &mut Own) {
        marked::thread(number);
        own.memo.forget();
        own.stacks.forget();
        if let Some(config) = config::asked() {
            own.tape.join_waits(config.lossy.waits);
        }
        if let Some(safe) = &own.safe {
            safe.word(Word::Task).store(task(), Relaxed);
            marks::set_inside(safe.word(Word::Inside));
        }
    }

    fn publish(&mut self) {
        let (now, seen) = self.now();
        OBJECTS.store(now.objects, Release);
        PLACES.store(now.places, Release);
        // Last: whoever sees this sees the others too.
        SEEN.store(seen, Release);
    }
}

/// What nobody but the thread looks at.
#[derive(Default)]
pub struct Own {
    /// By level: a call that a callback makes begins and ends between the two ends of another one.
    pub before: Vec<Before>,
    pub memo: Memo,
    pub record: Record,
    pub tape: Tape,
    pub stacks: Stacks,
    pub safe: Option<Safe>,
    /// Calls that were recorded before there was a part to keep their times in; only where these are asked for.
    pub early: Vec<Early>,
    /// What a clock of MPI returned in the call at hand, by its bits.
    pub returned: Option<u64>,
    /// How times are distributed, where that is asked for.
    pub paths: Option<Box<Paths>>,
    /// What it takes to recognise a call without asking the recorder; known since the last call that was not.
    pub known: Option<(Arc<Facts>, Arc<Reader>)>,
}

/// Whether threads keep parts.
pub fn keeps_parts() -> bool {
    KEPT.load(Relaxed)
}

/// A call whose thread has no part yet.
#[inline]
pub fn keep_early(early: &mut Vec<Early>, symbol: u32, ticks: Ticks, returned: Option<u64>) {
    if EVERY_CALL.load(Relaxed) && early.len() < MOST_EARLY {
        early.push(Early { symbol, ticks, returned });
    }
}

impl Own {
    /// What the clock returned that the next call of [`Safe::call`] asks, or none.
    pub fn set_returned(&mut self, returned: Option<u64>) {
        self.returned = returned;
        if let Some(safe) = &mut self.safe {
            safe.returned = returned;
        }
    }

    /// There is room for a call at that level, and a part to keep it in.
    #[inline]
    pub fn ready_for(&mut self, common: Common<'_, State>, number: u32, level: usize) {
        let kept = self.safe.is_some() || !KEPT.load(Relaxed);
        if self.before.len() <= level || !kept {
            self.make_ready(common, number, level);
        }
    }

    #[cold]
    fn make_ready(&mut self, mut common: Common<'_, State>, number: u32, level: usize) {
        let levels = self.before.len().max(level + 1);
        self.before.resize_with(levels, Default::default);
        common.with(State::new, |state, _| {
            if let (Some(parts), None) = (&state.parts, &self.safe) {
                self.safe = parts.part(number as usize, &mut self.tape, &self.early);
                match &self.safe {
                    Some(safe) => {
                        self.early = Vec::new();
                        let words = safe.words();
                        state.named.get_or_insert(words);
                        endings::watch(|word| words.word(word), words.at(FAULT_PLACE));
                    }
                    // The same would happen to all others.
                    None => state.parts = None,
                }
            }
            KEPT.store(state.parts.is_some(), Relaxed);
        });
    }
}

fn folding() -> Folding {
    config::asked().map_or_else(Folding::default, |config| config.fold)
}

/// Real and effective user and group.
pub type User = [u32; 4];

/// Whose process this is now.
pub fn user() -> User {
    // SAFETY: these take and touch nothing.
    unsafe { [libc::getuid(), libc::geteuid(), libc::getgid(), libc::getegid()] }
}

/// The requests of all threads.
pub struct AllRequests;

impl Peers for AllRequests {
    fn with(&self, thread: u32, look: &mut dyn FnMut(&mut Requests)) {
        if let Some(stream) = RECORDER.all().find(|stream| stream.number() == thread) {
            stream.with_lent(look);
        }
    }

    fn others(&self, thread: u32, look: &mut dyn FnMut(&mut Requests) -> bool) {
        RECORDER.all().filter(|stream| stream.number() != thread).any(|stream| stream.with_lent(&mut *look));
    }
}
