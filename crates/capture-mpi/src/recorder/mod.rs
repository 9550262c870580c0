//! The recorder: every observed call is encoded, folded, and at the end merged and written.

mod agreement;
mod arrival;
pub mod endings;
mod finalize;
mod host;
mod meeting;
mod safety;
pub mod stream;
mod summary;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use refrain_encode::{Crowd, Encoder, Host, Now, Requests, Tables};
use refrain_mpi::Pmpi;

use refrain_tracefile::claim::Job;
use refrain_tracefile::is_device;
use refrain_tracefile::part::{self, End, Lost, Word};

use crate::apart::apart;
use crate::clock::Moment;
use crate::config::{Config, Kept, Time};
use crate::filter::{self, Fate};
use crate::guard::say;
use crate::hooks::{Ending, Observed, Recorder};
use crate::late;
use crate::stacks;
use crate::state::{self, Common, Entered, Hands, Recording};
use host::Process;
use safety::Place;
use stream::{AllRequests, Own};

/// What all threads share. Lives in `state::RECORDER`.
pub struct State {
    host: Process,
    encoder: Encoder,
    start: Moment,
    /// Where parts are kept; known when MPI is up.
    place: Option<Place>,
    /// Another MPI program started this one.
    spawned: bool,
    /// The launcher's number of this process, where MPI knows of no other although the launcher started several.
    alone: Option<u32>,
    /// Which program of the run this is, and what its trace is called; known when MPI is up.
    job: Option<Job>,
    /// Seconds since 1970.
    started: u64,
    /// Whose process this was when it began.
    user: finalize::User,
}

impl Own {
    /// A thread calls MPI for the first time. It goes on with what an earlier one of the same number recorded, but what
    /// lay where on that one's stack means nothing any more.
    pub fn arrive(&mut self) {
        self.memo.forget();
        self.stacks.forget();
        if let Some(config) = state::CONFIG.get() {
            self.tape.join_waits(config.lossy.waits);
        }
        if let Some(safe) = &self.safe {
            state::set_inside(safe.word(Word::Inside));
        }
    }

    #[inline]
    fn make_room(&mut self, common: Common<'_>, number: u32, level: usize) {
        let kept = self.safe.is_some() || !state::KEPT.load(Relaxed);
        if self.before.len() <= level || !kept {
            self.make_more_room(common, number, level);
        }
    }

    #[cold]
    fn make_more_room(&mut self, mut common: Common<'_>, number: u32, level: usize) {
        let levels = self.before.len().max(level + 1);
        self.before.resize_with(levels, Default::default);
        common.with(State::new, |state, _| {
            if let (Some(place), None) = (&state.place, &self.safe) {
                self.safe = place.part(number as usize, &mut self.tape);
                match &self.safe {
                    Some(safe) => endings::watch(safe.words()),
                    // The same would happen to all others.
                    None => state.place = None,
                }
            }
            state::KEPT.store(state.place.is_some(), Relaxed);
        });
    }
}

/// What becomes of a call once it is encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Record,
    /// Only its objects count.
    Follow,
    /// And no call of this function is ever kept.
    FollowAlways,
}

impl State {
    /// What is needed before the first call can be encoded. MPI need not be up yet.
    fn new() -> Option<State> {
        let library = late::library()?;
        let config = state::CONFIG.get()?;
        let abi = library.abi().unwrap_or_else(|missing| panic!("{missing}"));
        let constants: Vec<(u16, i64)> = {
            let named =
                abi.iter().filter_map(|(c, value)| Some((refrain_model::constant(c.name)?.id, value)));
            let mut list: Vec<(u16, i64)> = named.map(|(id, value)| (id, value as i64)).collect();
            // Of several names for one value the lowest number is the canonical one.
            list.sort_unstable();
            list
        };
        // SAFETY: `abi` is this library's. Its methods that need MPI are called between init and finalize only: the
        // recorder asks about handles the program used in calls that succeeded.
        let pmpi = unsafe { Pmpi::new(library, &abi) }.unwrap_or_else(|missing| panic!("{missing}"));
        Some(State {
            host: Process::new(pmpi, config.pointers),
            encoder: Encoder::new(&constants),
            start: Moment::now(),
            place: None,
            spawned: false,
            alone: None,
            job: None,
            started: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs()),
            user: finalize::user(),
        })
    }

    /// The generations of what was recorded so far, and how much of what was freed they know of.
    pub fn now(&mut self) -> (Now, usize) {
        let now = Now { objects: self.encoder.generation(), places: self.host.places(), site: 0 };
        (now, self.host.seen())
    }

    /// Encodes a call that was not recognised, and remembers it.
    fn encode(&mut self, own: &mut Own, tables: &mut dyn Tables, call: Observed<'_>, result: i64, way: Way) {
        let Observed { function, args, level, .. } = call;
        let Own { before, memo, record, tape, safe, known, .. } = own;
        let State { host, encoder, .. } = self;
        let before = &mut before[level];
        if !function.overwrites() {
            // Left by a call that never came back: an exception or a jump went past it.
            before.clear();
        }
        encoder.after(host, tables, function, args, result, before, record);
        before.clear();
        record.site = way.site;
        let symbol = match way.keep {
            Keep::Record => {
                if !way.split {
                    record.inline_values();
                }
                let symbol = tape.push(record, way.ticks);
                if let Some(safe) = safe {
                    safe.call(tape, symbol, (&record.values).into(), way.ticks);
                }
                symbol
            }
            // It has no symbol, and nobody will ask for one: no call of this function is ever pushed.
            Keep::FollowAlways => u32::MAX,
            Keep::Follow => return,
        };
        if way.split && result == 0 {
            memo.remember(encoder, host, tables, function, args, record, symbol);
        }
        if !known.as_ref().is_some_and(|(facts, _)| Arc::ptr_eq(facts, encoder.facts())) {
            *known = Some((Arc::clone(encoder.facts()), Arc::clone(host.reader())));
        }
    }

    /// The only thread's call: nothing is locked.
    #[inline]
    fn after_alone(
        &mut self,
        own: &mut Own,
        requests: &mut Requests,
        call: Observed<'_>,
        result: i64,
        way: Way,
    ) {
        let State { host, encoder, .. } = self;
        let Observed { function, args, level, .. } = call;
        if way.split && result == 0 {
            let now = Now { objects: encoder.generation(), places: host.places(), site: way.site };
            let Own { before, memo, tape, safe, .. } = own;
            let before = &before[level];
            let known = memo.recall(encoder.facts(), &**host, requests, now, function, args, before);
            if let Some((symbol, values)) = known {
                if way.keep == Keep::Record {
                    tape.push_known(symbol, values, way.ticks);
                    if let Some(safe) = safe {
                        safe.call(tape, symbol, values, way.ticks);
                    }
                }
                while let Some(later) = memo.take_arrived() {
                    encoder.arrived(host, later);
                }
                return;
            }
        }
        self.encode(own, requests, call, result, way);
    }

    /// MPI is up, and with it everything that a part says of its process.
    fn place(&self, config: &Config) -> Option<Place> {
        let pmpi = &self.host.pmpi;
        let world = pmpi.abi().comm_world;
        let (rank, size) = if pmpi.initialized().unwrap_or(false) {
            let number = |n: Result<i32, _>| n.ok().and_then(|n| u32::try_from(n).ok());
            (number(pmpi.comm_rank(world))?, number(pmpi.comm_size(world))?)
        } else {
            // A session alone has no world: what the launcher said.
            (launcher_says(&RANKS)?, launcher_says(&SIZES)?)
        };
        if !config.choice.has_rank(rank) {
            return None;
        }
        let flags = if config.split { part::SPLIT } else { 0 };
        let flags = flags | if config.time == Time::Off { 0 } else { part::TIMED };
        let words = vec![
            (Word::Rank, u64::from(rank) + 1),
            (Word::Size, size.into()),
            (Word::Pid, std::process::id().into()),
            (Word::Started, self.started),
            (Word::Flags, flags),
        ];
        let mut text = format!(
            "version {}\nrun {}\nhost {}\nlibrary {}\nabi {}\n",
            env!("CARGO_PKG_VERSION"),
            config.run,
            finalize::host_name(),
            finalize::library_name(&pmpi.library_version().unwrap_or_default()),
            pmpi.abi().family.name(),
        );
        for (option, value) in finalize::options(config) {
            text += &format!("option {option} {}\n", value.replace('\n', " "));
        }
        text += &format!("command {}\n", config.command.join("\u{1f}").replace('\n', " "));
        let room = config.test_tail.map_or(safety::ROOM, |bytes| bytes.next_multiple_of(part::HEADER));
        let directory = finalize::parts(config, self.spawned, self.alone, self.job.as_ref());
        Some(Place { directory, rank, room, words, text })
    }
}

const RANKS: [&str; 4] = ["PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"];
const SIZES: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "SLURM_NTASKS"];

fn launcher_says(variables: &[&str]) -> Option<u32> {
    variables.iter().find_map(|variable| std::env::var(variable).ok()?.parse().ok())
}

/// Tracing has stopped: what is kept says that it ends there.
pub fn stopped() {
    endings::lose(Lost::Stopped);
}

/// The program has left a call by a jump, and that call is missing.
pub fn jumped() {
    endings::lose(Lost::Jumped);
}

/// `MPI_Finalize` in a signal handler, in the middle of another call: the ranks do not meet, and what is kept says why.
/// Only stores single words: what was interrupted may be our own code.
pub fn interrupted() {
    endings::lose(Lost::Interrupted);
    endings::note(End::Finalized, 0);
    finalize::not_coming();
}

/// How a call is to be treated.
#[derive(Clone, Copy)]
struct Way {
    keep: Keep,
    split: bool,
    ticks: u64,
    /// Where it was made, 0 where that is not asked for.
    site: u64,
}

fn before(entered: &mut Entered, call: Observed<'_>) {
    let Hands { number, own, mut common } = entered.hands();
    own.make_room(common.lent(), number, call.level);
    let Observed { function, args, level, .. } = call;
    let Own { before, known, .. } = own;
    let before = &mut before[level];
    if let Some((facts, reader)) = known
        && before.completes(facts, &**reader, function, args)
    {
        return;
    }
    common.with(State::new, |State { encoder, host, .. }, requests| match requests {
        Some(requests) => encoder.before(host, requests, function, args, before),
        None => encoder.before(host, &mut Crowd::new(&AllRequests, number), function, args, before),
    });
}

#[inline]
fn after(entered: &mut Entered, call: Observed<'_>, result: i64, ticks: u64) {
    let keep = match filter::fate(call) {
        Fate::Record => Keep::Record,
        Fate::Follow { always: true } => Keep::FollowAlways,
        Fate::Follow { always: false } => Keep::Follow,
        Fate::Pass => return,
    };
    let config = state::CONFIG.get();
    let split = config.is_none_or(|config| config.split);
    let Hands { number, own, mut common } = entered.hands();
    let site = match config {
        Some(config) if config.stacks != Kept::Nothing && keep == Keep::Record => {
            // In a callback it is not known where on the stack: those calls are unwound each time.
            let place = if call.level == 0 { state::place() } else { stacks::Place::default() };
            own.stacks.site(place, config, &mut own.tape)
        }
        _ => 0,
    };
    let way = Way { keep, split, ticks, site };
    own.make_room(common.lent(), number, call.level);
    if !common.is_alone() {
        return after_crowded(common, number, own, call, result, way);
    }
    common.with(State::new, |state, requests| {
        if let Some(requests) = requests {
            state.after_alone(own, requests, call, result, way);
        }
    });
}

/// One of several threads: what is shared is locked only where the call is not recognised.
fn after_crowded(
    mut common: Common<'_>,
    number: u32,
    own: &mut Own,
    call: Observed<'_>,
    result: i64,
    way: Way,
) {
    let mut tables = Crowd::new(&AllRequests, number);
    let Observed { function, args, level, .. } = call;
    let Own { before, memo, tape, safe, known, .. } = &mut *own;
    if let Some((facts, reader)) = known
        && way.split
        && result == 0
        && let Some((symbol, values)) = {
            let now = Now { site: way.site, ..state::now() };
            memo.recall(facts, &**reader, &mut tables, now, function, args, &before[level])
        }
    {
        if way.keep == Keep::Record {
            tape.push_known(symbol, values, way.ticks);
            if let Some(safe) = safe {
                safe.call(tape, symbol, values, way.ticks);
            }
        }
        while let Some(later) = memo.take_arrived() {
            common.with(State::new, |state, _| state.encoder.arrived(&**reader, later));
        }
        return;
    }
    common.with(State::new, |state, _| state.encode(own, &mut tables, call, result, way));
}

/// The recorder of real traces.
#[derive(Debug)]
pub struct Real;

impl Recorder for Real {
    fn init(_: Observed<'_>) {
        let Some(mut entered) = Entered::enter() else { return };
        entered.hands().common.with(State::new, |state, _| {
            let State { host, encoder, spawned, alone, job, .. } = state;
            host.start();
            // A session alone has no world communicator, and asking for it is an error that ends the program.
            if host.pmpi.initialized().unwrap_or(false) {
                encoder.start(host);
                // Known only now: the program may let go of its parent before it ends.
                *spawned |= host.pmpi.has_parent().unwrap_or(false);
                let world = host.pmpi.abi().comm_world;
                if let (Ok(rank), Ok(size)) = (host.pmpi.comm_rank(world), host.pmpi.comm_size(world)) {
                    state::set_rank(rank.into());
                    if size == 1 && !*spawned {
                        *alone = alone_among_others();
                    }
                    filter::start(u32::try_from(rank).unwrap_or(0), u32::try_from(size).unwrap_or(0));
                    if let Some(config) = state::CONFIG.get() {
                        let first = !*spawned && alone.is_none();
                        if first {
                            *job = job.take().or_else(|| claim(config));
                        }
                        if rank == 0 {
                            finalize::sweep(config, *spawned, *alone, job.as_ref());
                        }
                        if first && rank == 0 {
                            forewarn(config, job.as_ref());
                        }
                    }
                }
            }
            let kept = |config: &&Config| config.safe && !is_device(&config.out);
            if let Some(config) = state::CONFIG.get().filter(kept).filter(|_| state.place.is_none()) {
                state.place = state.place(config);
                let parts = finalize::parts(config, state.spawned, state.alone, state.job.as_ref());
                finalize::prepare_not_coming(config, &parts);
                state::KEPT.store(state.place.is_some(), Relaxed);
            }
        });
    }

    fn before(call: Observed<'_>) {
        if let Some(mut entered) = Entered::enter() {
            before(&mut entered, call);
        }
    }

    fn abort(call: Observed<'_>) {
        if let Some(mut entered) = Entered::enter() {
            after(&mut entered, call, 0, 0);
        }
        endings::note(End::Abort, call.args.get(1).map_or(0, |&code| i64::from(code as i32)));
    }

    #[inline]
    fn after(call: Observed<'_>, result: i64, start: u64, end: u64) {
        if let Some(mut entered) = Entered::enter() {
            after(&mut entered, call, result, end.saturating_sub(start));
        }
    }

    fn finalize(call: Observed<'_>, ending: Ending) {
        let record = || {
            if ending != Ending::Stopped
                && let Some(mut entered) = Entered::enter()
            {
                // Its result is not known before it has returned, when nothing can be merged any more.
                before(&mut entered, call);
                after(&mut entered, call, 0, 0);
            }
        };
        let recorded = catch_unwind(AssertUnwindSafe(record)).is_ok();
        let Ok(Recording { state, streams }) = state::take_recorder() else {
            say("a call was still being recorded in MPI_Finalize; the trace is made of what was kept before");
            endings::lose(Lost::Stopped);
            endings::note(End::Finalized, 0);
            finalize::not_coming();
            return endings::over();
        };
        if !recorded {
            endings::lose(Lost::Stopped);
        }
        let ending = if recorded { ending } else { Ending::Stopped };
        // Where tracing stopped before it began, the other ranks wait for this one all the same.
        let state = state.or_else(|| State::new().map(Box::new));
        finalize::finalize(state, streams, ending);
    }
}

/// A name for the trace that no other program has. `None` where none can be claimed: then it is the one that was asked for.
fn claim(config: &Config) -> Option<Job> {
    if is_device(&config.out) {
        return None;
    }
    let job = refrain_tracefile::claim::job(|variable| std::env::var_os(variable)).unwrap_or_default();
    apart(|| Job::take(&config.out, &config.run, &job)).ok()
}

/// What the user will not have meant, said once for all ranks.
fn forewarn(config: &Config, job: Option<&Job>) {
    finalize::foresee(config, job);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter_map(|name| refrain_model::unknown_variable(&name)).for_each(|unknown| say(&unknown));
}

/// A launcher that this MPI library does not understand starts programs of one rank each, all of which would write the
/// same file.
fn alone_among_others() -> Option<u32> {
    let config = state::CONFIG.get()?;
    let launched = config.launched.filter(|launched| launched.size > 1)?;
    if launched.rank == 0 {
        let library =
            late::library().map_or_else(Default::default, |library| library.path().display().to_string());
        say(&format!(
            "the launcher started {} processes, but to the MPI library ({library}) each of them is alone: launcher and \
             library do not belong together; `refrain doctor` names the right one. Each process has a trace of its \
             own: {}",
            launched.size,
            finalize::path_alone(config, launched.rank).display(),
        ));
    }
    Some(launched.rank)
}
