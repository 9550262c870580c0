//! Several threads of a rank, made again as threads. In which order they called among each other is not recorded: a call
//! waits until what it uses is there, and what several use is not freed before all have used it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use refrain_encode::{Reader, Shared, Sharing, objects_of};
use refrain_model::{Call, Class, Effect, Kind, Value};
use refrain_tracefile::Trace;

use crate::ahead::{completed, started};
use crate::issue::Process;
use crate::watch::Watch;
use crate::{Done, Setting, walk};

/// More threads of a rank are not started.
pub const MOST: usize = 1 << 10;

/// Why a thread does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Not {
    /// Another thread may change that.
    Yet(String),
    /// Nobody can.
    Ever(String),
}

fn not_yet<T>(why: impl Into<String>) -> Result<T, Not> {
    Err(Not::Yet(why.into()))
}

/// What the threads of a rank tell each other.
pub struct Several {
    sharing: Sharing,
    /// The thread that brings MPI up.
    first: Option<u32>,
    buffer: Buffer,
    /// Persistent requests that are completed as often as they are started.
    completed: HashSet<u32>,
    state: Mutex<State>,
    changed: Condvar,
}

/// The buffer of buffered sends, which threads share.
#[derive(Debug, Default)]
struct Buffer {
    /// How often one is attached.
    attaches: u64,
    /// How often each thread sends from it.
    sends: HashMap<u32, u64>,
}

/// Whether it sends from the attached buffer.
fn is_buffered(call: &Call) -> bool {
    let name = call.function.name;
    (name.starts_with("MPI_Bsend") || name.starts_with("MPI_Ibsend")) && !name.contains("_init")
}

impl Buffer {
    fn learn(&mut self, thread: u32, call: &Call) {
        self.attaches += u64::from(call.function.name.starts_with("MPI_Buffer_attach"));
        if is_buffered(call) {
            *self.sends.entry(thread).or_default() += 1;
        }
    }
}

#[derive(Default)]
struct State {
    initialised: bool,
    /// Buffers that are attached, and how often each thread has sent from one.
    attached: u64,
    sent: HashMap<u32, u64>,
    /// How often each thread has named an object that several use.
    used: HashMap<Shared, HashMap<u32, u64>>,
    /// Persistent requests that are started, of those that several threads use.
    active: HashSet<u32>,
    /// Threads that have more calls to make.
    busy: HashSet<u32>,
    /// Whose turn it is to become known to a tracer.
    turn: usize,
    /// Changes of anything that a thread may wait for.
    changes: u64,
    /// Those who wait: after which change they last looked, and why they wait.
    waiting: BTreeMap<u32, (u64, String)>,
}

impl Several {
    fn new(sharing: Sharing, threads: &[u32], first: Option<u32>) -> Several {
        let state = State { busy: threads.iter().copied().collect(), ..State::default() };
        let (buffer, state) = (Buffer::default(), Mutex::new(state));
        let completed = HashSet::new();
        Several { sharing, first, buffer, completed, state, changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is so. An error says why it never will be. How long others may take is for whoever watches.
    fn until<T>(
        &self,
        thread: u32,
        watch: &Watch,
        mut so: impl FnMut(&mut State) -> Result<T, Not>,
    ) -> Result<T, String> {
        let mut state = self.state();
        let outcome = loop {
            let why = match so(&mut state) {
                Ok(it) => break Ok(it),
                Err(Not::Ever(why)) => break Err(why),
                Err(Not::Yet(why)) => why,
            };
            let changes = state.changes;
            state.waiting.insert(thread, (changes, why));
            if let Some(why) = state.nobody_goes_on() {
                break Err(why);
            }
            watch.waits(true);
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        watch.waits(false);
        state.waiting.remove(&thread);
        outcome
    }

    fn change(&self, it: impl FnOnce(&mut State)) {
        let mut state = self.state();
        it(&mut state);
        state.changes += 1;
        self.changed.notify_all();
    }

    /// Requests that another thread starts or completes than the one that made them.
    pub fn requests(&self) -> &HashSet<u32> {
        &self.sharing.requests
    }

    /// Whether it is freed by one thread while others use it: then it is not really freed.
    pub fn keeps(&self, object: &Value) -> bool {
        Shared::of(object).is_some_and(|one| !one.is_collective() && self.sharing.uses.contains_key(&one))
    }

    /// Waits until a call can be made; gives its words, which `words` makes as soon as all its objects are there.
    pub fn when_ready<T>(
        &self,
        process: &Process,
        (thread, watch): (u32, &Watch),
        call: &Call,
        mut words: impl FnMut() -> Result<T, Not>,
    ) -> Result<T, String> {
        let name = call.function.name;
        self.until(thread, watch, |state| {
            if name == "MPI_Finalize" && state.busy.iter().any(|other| *other != thread) {
                return not_yet("others have calls to make before MPI_Finalize");
            }
            if !state.initialised && self.first.is_some_and(|first| first != thread) {
                return not_yet("no thread has called MPI_Init yet");
            }
            if !state.are_done_with(call, thread, &self.sharing) {
                return not_yet(format!("others have still to use what {name} frees"));
            }
            if is_buffered(call) && self.buffer.attaches > 0 && state.attached == 0 {
                return not_yet("no buffer is attached yet");
            }
            if name.starts_with("MPI_Buffer_detach") && self.buffer.attaches == 1 {
                let sent = |other: &u32| state.sent.get(other).copied().unwrap_or(0);
                if self.buffer.sends.iter().any(|(other, all)| *other != thread && sent(other) < *all) {
                    return not_yet("others have still to send from the buffer");
                }
            }
            let succeeds = call.result == Value::Int(0);
            if name == "MPI_Grequest_complete" && succeeds && !process.is_going_on(call) {
                return not_yet("no generalised request is going on");
            }
            for (p, makes, object) in objects_of(call) {
                let Value::Object(Class::Request, id) = object else { continue };
                if !self.sharing.requests.contains(id) {
                    continue;
                }
                if makes && process.has(object) {
                    return not_yet("the request before it is not complete");
                }
                if p.effect == Effect::Start && state.active.contains(id) {
                    return not_yet("the request is still started");
                }
            }
            let frees = name == "MPI_Request_free";
            for (id, _) in completed(call) {
                if !self.sharing.requests.contains(&id) || !process.is_persistent(id) {
                    continue;
                }
                match state.active.contains(&id) {
                    false if !frees => return not_yet("the request is not started"),
                    true if frees && self.completed.contains(&id) => {
                        return not_yet("others have still to complete the request");
                    }
                    _ => {}
                }
            }
            words()
        })
    }

    /// A call was made.
    pub fn made(&self, thread: u32, call: &Call) {
        self.change(|state| {
            state.initialised |= is_init(call.function.name);
            match call.function.name {
                name if name.starts_with("MPI_Buffer_attach") => state.attached += 1,
                name if name.starts_with("MPI_Buffer_detach") => {
                    state.attached = state.attached.saturating_sub(1);
                }
                _ if is_buffered(call) => *state.sent.entry(thread).or_default() += 1,
                _ => {}
            }
            for (_, makes, object) in objects_of(call) {
                if let Some(one) =
                    Shared::of(object).filter(|one| !makes && self.sharing.uses.contains_key(one))
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
        });
    }
}

impl State {
    /// Why, where every thread that has calls to make waits for another one, and has looked since the last change.
    fn nobody_goes_on(&self) -> Option<String> {
        let waits = |thread: &u32| self.waiting.get(thread).is_some_and(|(seen, _)| *seen == self.changes);
        if !self.busy.iter().all(waits) {
            return None;
        }
        let told = self.waiting.iter().map(|(thread, (_, why))| format!("thread {thread}: {why}"));
        Some(format!("its threads wait for each other: {}", told.collect::<Vec<_>>().join("; ")))
    }

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
    let mut several = Several::new(sharing, &threads, first);
    if refrain_views::replayable::functions(trace).iter().any(|name| name.starts_with("MPI_Buffer_attach")) {
        for thread in &threads {
            let calls = reader.calls(rank, *thread).map_err(|error| error.to_string())?;
            calls.flatten().for_each(|call| several.buffer.learn(*thread, &call));
        }
    }
    if !several.sharing.requests.is_empty() {
        let mut open: HashMap<u32, i64> = HashMap::new();
        for thread in &threads {
            for call in reader.calls(rank, *thread).map_err(|error| error.to_string())?.flatten() {
                started(&call).into_iter().for_each(|id| *open.entry(id).or_default() += 1);
                if call.function.name != "MPI_Request_free" {
                    completed(&call).into_iter().for_each(|(id, _)| *open.entry(id).or_default() -= 1);
                }
            }
        }
        several.completed = open.into_iter().filter(|(_, open)| *open == 0).map(|(id, _)| id).collect();
    }
    process.several = Some(several);
    let process = &*process;
    let Some(several) = &process.several else { return Err("no threads".to_owned()) };
    let calls = |at: usize, thread: u32| -> Result<Done, String> {
        let watch = setting.watch.of_thread(thread);
        let turn =
            |state: &mut State| if state.turn == at { Ok(()) } else { not_yet("its turn has not come") };
        several.until(thread, &watch, turn)?;
        if let Some(join) = joins {
            join();
        }
        several.change(|state| state.turn += 1);
        // All are known before one of them ends.
        let all = |state: &mut State| match state.turn < threads.len() {
            true => not_yet("others are not known yet"),
            false => Ok(()),
        };
        several.until(thread, &watch, all)?;
        walk::calls(process, trace, setting, thread)
    };
    let one = |at: usize, thread: u32| -> Result<Done, String> {
        let made = catch_unwind(AssertUnwindSafe(|| calls(at, thread)));
        let made = made.unwrap_or_else(|_| Err(format!("thread {thread} panicked")));
        if let Err(why) = &made {
            // Others may be in calls that never end without this one.
            (setting.give_up)(why);
        }
        setting.watch.of_thread(thread).waits(true);
        several.change(|state| _ = state.busy.remove(&thread));
        made
    };
    std::thread::scope(|scope| {
        let one = &one;
        let others = threads.iter().enumerate().skip(1);
        let others: Vec<_> =
            others.map(|(at, &thread)| (thread, scope.spawn(move || one(at, thread)))).collect();
        let mut all = one(0, threads[0])?;
        for (thread, other) in others {
            all.add(other.join().unwrap_or_else(|_| Err(format!("thread {thread} ended")))?);
        }
        Ok(all)
    })
}

/// Whether a parameter is an object that the call frees.
pub fn frees(p: &refrain_model::Param) -> bool {
    matches!(p.kind, Kind::Handle(_)) && p.effect == Effect::Free
}

#[cfg(test)]
mod tests {
    use super::*;

    fn several(threads: &[u32]) -> Several {
        Several::new(Sharing::default(), threads, None)
    }

    /// Waits until it is this thread's turn.
    fn turn_of(several: &Several, thread: u32) -> Result<(), String> {
        let mine = |state: &mut State| match state.turn == thread as usize {
            true => Ok(()),
            false => not_yet(format!("not its turn but that of {}", state.turn)),
        };
        several.until(thread, &Watch::nobody(), mine)
    }

    #[test]
    fn threads_that_wait_for_each_other_say_so_at_once() {
        let several = several(&[0, 1]);
        several.state().turn = 7;
        let (a, b) = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let said = turn_of(&several, 1);
                // Whoever fails ends the process; here it lets the other one go on.
                several.change(|state| _ = state.busy.remove(&1));
                said
            });
            let said = turn_of(&several, 0);
            several.change(|state| _ = state.busy.remove(&0));
            (said, other.join().unwrap())
        });
        let told =
            |said: Result<(), String>| said.is_err_and(|why| why.contains("not its turn but that of 7"));
        assert!(told(a) && told(b));
    }

    #[test]
    fn one_whose_turn_comes_goes_on() {
        let several = several(&[0, 1, 2]);
        std::thread::scope(|scope| {
            for thread in [2, 1, 0] {
                let several = &several;
                scope.spawn(move || {
                    assert_eq!(turn_of(several, thread), Ok(()));
                    several.change(|state| state.turn += 1);
                    several.change(|state| _ = state.busy.remove(&thread));
                });
            }
        });
    }

    #[test]
    fn what_nobody_can_change_is_not_waited_for() {
        let several = several(&[0, 1]);
        let mut asked = 0;
        let said = several.until(0, &Watch::nobody(), |_| -> Result<(), Not> {
            asked += 1;
            Err(Not::Ever("no room".into()))
        });
        assert_eq!((said, asked), (Err("no room".to_owned()), 1));
    }
}
