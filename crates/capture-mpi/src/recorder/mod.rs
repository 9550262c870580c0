//! The recorder: every observed call is encoded, folded, and at the end merged and written.

mod endings;
mod finalize;
mod host;
mod meeting;
mod safety;
mod summary;

use std::time::{SystemTime, UNIX_EPOCH};

use refrain_encode::{Before, Encoder, Memo, Record, Tape};
use refrain_mpi::Pmpi;

use refrain_tracefile::part::{self, End, Lost, Word};

use crate::clock::Moment;
use crate::config::{Config, Time};
use crate::filter::{self, Fate};
use crate::guard::say;
use crate::hooks::{Ending, Observed, Recorder};
use crate::{late, state};
use host::Process;
use safety::{Place, Safe};

/// Everything that is kept from call to call. Lives in `state::RECORDER`.
pub struct State {
    host: Process,
    encoder: Encoder,
    record: Record,
    threads: Vec<Thread>,
    split: bool,
    start: Moment,
    /// Where parts are kept; known when MPI is up.
    place: Option<Place>,
    /// Another MPI program started this one.
    spawned: bool,
    /// The launcher's number of this process, where MPI knows of no other although the launcher started several.
    alone: Option<u32>,
    /// Seconds since 1970.
    started: u64,
}

/// What one thread records.
#[derive(Default)]
struct Thread {
    /// By level: a call that a callback makes begins and ends between the two ends of another one.
    before: Vec<Before>,
    memo: Memo,
    tape: Tape,
    safe: Option<Safe>,
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
            record: Record::default(),
            threads: Vec::new(),
            split: config.split,
            start: Moment::now(),
            place: None,
            spawned: false,
            alone: None,
            started: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs()),
        })
    }

    fn before(&mut self, thread: usize, call: Observed<'_>) {
        self.make_room(thread, call.level);
        let before = &mut self.threads[thread].before[call.level];
        self.encoder.before(&mut self.host, call.function, call.args, before);
    }

    #[inline]
    fn make_room(&mut self, thread: usize, level: usize) {
        let unsafe_yet = |thread: &Thread| self.place.is_some() && thread.safe.is_none();
        let ready = |thread: &Thread| thread.before.len() > level && !unsafe_yet(thread);
        if !self.threads.get(thread).is_some_and(ready) {
            self.make_more_room(thread, level);
        }
    }

    /// The calling thread is `thread`.
    #[cold]
    fn make_more_room(&mut self, number: usize, level: usize) {
        let threads = self.threads.len().max(number + 1);
        self.threads.resize_with(threads, Thread::default);
        let thread = &mut self.threads[number];
        let levels = thread.before.len().max(level + 1);
        thread.before.resize_with(levels, Default::default);
        if let (Some(place), None) = (&self.place, &thread.safe) {
            thread.safe = place.part(number, &mut thread.tape);
            match &thread.safe {
                Some(safe) => endings::watch(safe.words()),
                // The same would happen to all others.
                None => self.place = None,
            }
        }
    }

    #[inline]
    fn after(&mut self, thread: usize, call: Observed<'_>, result: i64, ticks: u64) {
        match filter::fate(call) {
            Fate::Record => {}
            Fate::Follow { always } => return self.follow(thread, call, result, always),
            Fate::Pass => return,
        }
        self.make_room(thread, call.level);
        let Observed { function, args, level, .. } = call;
        let Thread { before, memo, tape, safe } = &mut self.threads[thread];
        let before = &mut before[level];
        let known = self.split && result == 0;
        if known
            && let Some((symbol, values)) =
                memo.recall(&mut self.encoder, &mut self.host, function, args, before)
        {
            tape.push_known(symbol, values, ticks);
            if let Some(safe) = safe {
                safe.call(tape, symbol, values, ticks);
            }
            return;
        }
        self.encoder.after(&mut self.host, function, args, result, before, &mut self.record);
        before.clear();
        if !self.split {
            self.record.inline_values();
        }
        let symbol = tape.push(&self.record, ticks);
        if let Some(safe) = safe {
            safe.call(tape, symbol, &self.record.values, ticks);
        }
        if known {
            memo.remember(&mut self.encoder, &mut self.host, function, args, &self.record, symbol);
        }
    }

    /// Keeps up with the objects of a call that is not recorded.
    fn follow(&mut self, thread: usize, call: Observed<'_>, result: i64, always: bool) {
        self.make_room(thread, call.level);
        let Observed { function, args, level, .. } = call;
        let Thread { before, memo, .. } = &mut self.threads[thread];
        let before = &mut before[level];
        let known = self.split && result == 0;
        if known && memo.recall(&mut self.encoder, &mut self.host, function, args, before).is_some() {
            return;
        }
        self.encoder.after(&mut self.host, function, args, result, before, &mut self.record);
        before.clear();
        if known && always {
            // It has no symbol, and nobody will ask for one: no call of this function is ever pushed.
            memo.remember(&mut self.encoder, &mut self.host, function, args, &self.record, u32::MAX);
        }
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
        Some(Place { directory: finalize::parts(config, self.spawned, self.alone), rank, room, words, text })
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

/// The recorder of real traces.
#[derive(Debug)]
pub struct Real;

impl Recorder for Real {
    fn init(_: Observed<'_>) {
        state::with_recorder(State::new, |state, _| {
            let State { host, encoder, spawned, alone, .. } = state;
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
                }
            }
            if let Some(config) = state::CONFIG.get().filter(|config| config.safe && state.place.is_none()) {
                state.place = state.place(config);
            }
        });
    }

    fn before(call: Observed<'_>) {
        state::with_recorder(State::new, |state, thread| state.before(thread, call));
    }

    fn abort(call: Observed<'_>) {
        state::with_recorder(State::new, |state, thread| state.after(thread, call, 0, 0));
        endings::note(End::Abort, call.args.get(1).map_or(0, |&code| i64::from(code as i32)));
    }

    #[inline]
    fn after(call: Observed<'_>, result: i64, start: u64, end: u64) {
        let ticks = end.saturating_sub(start);
        state::with_recorder(State::new, |state, thread| state.after(thread, call, result, ticks));
    }

    fn finalize(call: Observed<'_>, ending: Ending) {
        if ending != Ending::Stopped {
            // Its result is not known before it has returned, when nothing can be merged any more.
            state::with_recorder(State::new, |state, thread| {
                state.before(thread, call);
                state.after(thread, call, 0, 0);
            });
        }
        // Where tracing stopped before it began, the other ranks wait for this one all the same.
        let state = state::take_recorder().or_else(|| State::new().map(Box::new));
        finalize::finalize(state, ending);
    }
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
