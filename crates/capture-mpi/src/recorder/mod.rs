//! The recorder: every observed call is encoded, folded, and at the end merged and written.

mod finalize;
mod host;
mod meeting;
mod summary;

use std::time::{SystemTime, UNIX_EPOCH};

use refrain_encode::{Before, Encoder, Memo, Record, Tape};
use refrain_mpi::Pmpi;

use crate::clock::Calibration;
use crate::filter::{self, Fate};
use crate::guard::say;
use crate::hooks::{Ending, Observed, Recorder};
use crate::state;
use host::Process;

/// Everything that is kept from call to call. Lives in `state::RECORDER`.
pub struct State {
    host: Process,
    encoder: Encoder,
    tape: Tape,
    record: Record,
    threads: Vec<Thread>,
    split: bool,
    calibration: Calibration,
    /// Another MPI program started this one.
    spawned: bool,
    /// The launcher's number of this process, where MPI knows of no other although the launcher started several.
    alone: Option<u32>,
    /// Seconds since 1970.
    started: u64,
}

#[derive(Default)]
struct Thread {
    /// By level: a call that a callback makes begins and ends between the two ends of another one.
    before: Vec<Before>,
    memo: Memo,
}

impl State {
    /// What is needed before the first call can be encoded. MPI need not be up yet.
    fn new() -> Option<State> {
        let library = state::library()?;
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
            tape: Tape::default(),
            record: Record::default(),
            threads: Vec::new(),
            split: config.split,
            calibration: Calibration::start(),
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
        if self.threads.get(thread).is_none_or(|thread| thread.before.len() <= level) {
            let threads = self.threads.len().max(thread + 1);
            self.threads.resize_with(threads, Default::default);
            self.threads[thread].before.resize_with(level + 1, Default::default);
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
        let Thread { before, memo } = &mut self.threads[thread];
        let before = &mut before[level];
        let known = self.split && result == 0;
        if known
            && let Some((symbol, values)) =
                memo.recall(&mut self.encoder, &mut self.host, function, args, before)
        {
            self.tape.push_known(thread, symbol, values, ticks);
            return;
        }
        self.encoder.after(&mut self.host, function, args, result, before, &mut self.record);
        before.clear();
        if !self.split {
            self.record.inline_values();
        }
        let symbol = self.tape.push(thread, &self.record, ticks);
        if known {
            memo.remember(&mut self.encoder, &mut self.host, function, args, &self.record, symbol);
        }
    }

    /// Keeps up with the objects of a call that is not recorded.
    fn follow(&mut self, thread: usize, call: Observed<'_>, result: i64, always: bool) {
        self.make_room(thread, call.level);
        let Observed { function, args, level, .. } = call;
        let Thread { before, memo } = &mut self.threads[thread];
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
            if !host.pmpi.initialized().unwrap_or(false) {
                return;
            }
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
        });
    }

    fn before(call: Observed<'_>) {
        state::with_recorder(State::new, |state, thread| state.before(thread, call));
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
            state::library().map_or_else(Default::default, |library| library.path().display().to_string());
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
