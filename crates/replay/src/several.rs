//! Several threads of a rank, made again as threads. In which order they called among each other is not recorded: a call
//! waits until what it uses is there, and what several use is not freed before all have used it.

use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use refrain_encode::{Reader, Shared, Sharing, objects_of};
use refrain_model::{Call, Class, Effect, Kind, Value};
use refrain_tracefile::Trace;

use crate::ahead::{completed, started};
use crate::issue::Process;
use crate::{Done, Setting, walk};

/// So long a thread waits for others that make no call.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the threads of a rank tell each other.
pub struct Several {
    sharing: Sharing,
    /// The thread that brings MPI up.
    first: Option<u32>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    initialised: bool,
    /// How often each thread has named an object that several use.
    used: HashMap<Shared, HashMap<u32, u64>>,
    /// Persistent requests that are started, of those that several threads use.
    active: HashSet<u32>,
    /// Threads that have more calls to make.
    busy: HashSet<u32>,
    /// Whose turn it is to become known to a tracer.
    turn: usize,
    /// Calls that were made, so that one who waits sees that others go on.
    made: u64,
    failed: bool,
}

impl Several {
    fn new(sharing: Sharing, threads: &[u32], first: Option<u32>) -> Several {
        let state = State { busy: threads.iter().copied().collect(), ..State::default() };
        Several { sharing, first, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is so. Otherwise why it is not.
    fn until<T>(
        &self,
        thread: u32,
        mut so: impl FnMut(&mut State) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut state = self.state();
        let mut seen = (state.made, Instant::now());
        loop {
            let why = match so(&mut state) {
                Ok(it) => return Ok(it),
                Err(why) => why,
            };
            if state.failed {
                return Err("another thread has failed".to_owned());
            }
            if seen.0 != state.made {
                seen = (state.made, Instant::now());
            } else if seen.1.elapsed() > PATIENCE {
                let seconds = PATIENCE.as_secs();
                return Err(format!(
                    "thread {thread} waits, and no thread of this rank has made a call for {seconds} s: {why}"
                ));
            }
            let waited = self.changed.wait_timeout(state, Duration::from_millis(500));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether it is freed by one thread while others use it: then it is not really freed.
    pub fn keeps(&self, object: &Value) -> bool {
        Shared::of(object).is_some_and(|one| !one.is_collective() && self.sharing.uses.contains_key(&one))
    }

    /// Waits until a call can be made; gives its words, which `words` makes as soon as all its objects are there.
    pub fn when_ready<T>(
        &self,
        process: &Process,
        thread: u32,
        call: &Call,
        mut words: impl FnMut() -> Result<T, String>,
    ) -> Result<T, String> {
        let name = call.function.name;
        self.until(thread, |state| {
            if name == "MPI_Finalize" && state.busy.iter().any(|other| *other != thread) {
                return Err("others have calls to make before MPI_Finalize".to_owned());
            }
            if !state.initialised && self.first.is_some_and(|first| first != thread) {
                return Err("no thread has called MPI_Init yet".to_owned());
            }
            if !state.are_done_with(call, thread, &self.sharing) {
                return Err(format!("others have still to use what {name} frees"));
            }
            for (p, makes, object) in objects_of(call) {
                let Value::Object(Class::Request, id) = object else { continue };
                if !self.sharing.requests.contains(id) {
                    continue;
                }
                if makes && process.has(object) {
                    return Err("the request before it is not complete".to_owned());
                }
                if p.effect == Effect::Start && state.active.contains(id) {
                    return Err("the request is still started".to_owned());
                }
            }
            for (id, _) in completed(call) {
                if self.sharing.requests.contains(&id)
                    && process.is_persistent(id)
                    && !state.active.contains(&id)
                {
                    return Err("the request is not started".to_owned());
                }
            }
            words()
        })
    }

    /// A call was made.
    pub fn made(&self, thread: u32, call: &Call) {
        let mut state = self.state();
        state.initialised |= is_init(call.function.name);
        for (_, makes, object) in objects_of(call) {
            if let Some(one) = Shared::of(object).filter(|one| !makes && self.sharing.uses.contains_key(one))
            {
                *state.used.entry(one).or_default().entry(thread).or_default() += 1;
            }
        }
        for id in started(call) {
            if self.sharing.requests.contains(&id) {
                state.active.insert(id);
            }
        }
        for (id, _) in completed(call) {
            state.active.remove(&id);
        }
        state.made += 1;
        self.changed.notify_all();
    }

    fn over(&self, thread: u32, failed: bool) {
        let mut state = self.state();
        state.busy.remove(&thread);
        state.failed |= failed;
        self.changed.notify_all();
    }
}

impl State {
    /// Whether nobody else uses what the call frees, of what all members of a group free together.
    fn are_done_with(&self, call: &Call, thread: u32, sharing: &Sharing) -> bool {
        let freed = objects_of(call).into_iter().filter(|(p, ..)| p.effect == Effect::Free);
        let freed = freed.filter_map(|(_, _, object)| Shared::of(object)).filter(Shared::is_collective);
        freed.filter_map(|one| sharing.uses.get(&one).map(|uses| (one, uses))).all(|(one, uses)| {
            let used =
                |other: &u32| self.used.get(&one).and_then(|used| used.get(other)).copied().unwrap_or(0);
            uses.iter().all(|(other, all)| *other == thread || used(other) >= *all)
        })
    }
}

/// Whether it brings MPI up.
fn is_init(name: &str) -> bool {
    matches!(name, "MPI_Init" | "MPI_Init_thread" | "MPI_Session_init")
}

/// Makes the calls of all threads of a rank. `joins` makes the calling thread known to a tracer.
pub fn replay(
    process: &mut Process,
    trace: &Trace,
    setting: &Setting<'_>,
    joins: Option<extern "C" fn()>,
) -> Result<Done, String> {
    let rank = setting.rank;
    let reader = Reader::new(&trace.bundle);
    let threads = reader.threads(rank);
    let sharing = Sharing::of(&reader, rank).map_err(|error| error.to_string())?;
    let brings_up = |thread: &u32| {
        let calls = reader.calls(rank, *thread);
        calls.is_ok_and(|calls| calls.flatten().any(|call| is_init(call.function.name)))
    };
    let first = threads.iter().copied().find(brings_up);
    process.several = Some(Several::new(sharing, &threads, first));
    let process = &*process;
    let Some(several) = &process.several else { return Err("no threads".to_owned()) };
    let one = |at: usize, thread: u32| -> Result<Done, String> {
        several.until(thread, |state| if state.turn == at { Ok(()) } else { Err("its turn".to_owned()) })?;
        if let Some(join) = joins {
            join();
        }
        several.state().turn += 1;
        several.changed.notify_all();
        // All are known before one of them ends.
        several
            .until(thread, |state| if state.turn < threads.len() { Err("all".to_owned()) } else { Ok(()) })?;
        let made = walk::calls(process, trace, setting, thread);
        several.over(thread, made.is_err());
        made
    };
    std::thread::scope(|scope| {
        let one = &one;
        let others = threads.iter().enumerate().skip(1);
        let others: Vec<_> =
            others.map(|(at, &thread)| (thread, scope.spawn(move || one(at, thread)))).collect();
        let mut all = one(0, threads[0]);
        for (thread, other) in others {
            let made = other.join().unwrap_or_else(|_| Err(format!("thread {thread} ended")));
            match (&mut all, made) {
                (Ok(done), Ok(made)) => done.add(made),
                (Ok(_), Err(why)) => all = Err(why),
                // Whoever failed first says why.
                (Err(first), Err(why)) if first.contains("another thread has failed") => *first = why,
                _ => {}
            }
        }
        all
    })
}

/// Whether a parameter is an object that the call frees.
pub fn frees(p: &refrain_model::Param) -> bool {
    matches!(p.kind, Kind::Handle(_)) && p.effect == Effect::Free
}
