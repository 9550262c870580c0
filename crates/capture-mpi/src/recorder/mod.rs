//! The recorder: every observed call is encoded, folded, and at the end merged and written.

mod endings;
mod finalize;
mod host;
mod meeting;
mod safety;
mod summary;

use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use refrain_encode::{Before, Encoder, Memo, Record, Tape};
use refrain_mpi::Pmpi;

use refrain_tracefile::part::{self, End, Lost, Word};

use crate::clock::Moment;
use crate::config::{Config, Time};
use crate::hooks::{Ending, Observed, Recorder};
use crate::state;
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
    /// Seconds since 1970.
    started: u64,
}

/// What one thread records.
#[derive(Default)]
struct Thread {
    before: Before,
    memo: Memo,
    tape: Tape,
    safe: Option<Safe>,
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
            record: Record::default(),
            threads: Vec::new(),
            split: config.split,
            start: Moment::now(),
            place: None,
            spawned: false,
            started: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs()),
        })
    }

    fn thread(&mut self, number: usize) -> &mut Thread {
        if self.threads.len() <= number {
            self.threads.resize_with(number + 1, Thread::default);
            self.keep_safe();
        }
        &mut self.threads[number]
    }

    /// Gives every thread that has none a part, once it is known where.
    fn keep_safe(&mut self) {
        let Some(place) = &self.place else { return };
        for (number, thread) in self.threads.iter_mut().enumerate().filter(|(_, t)| t.safe.is_none()) {
            thread.safe = place.part(number, &mut thread.tape);
            match &thread.safe {
                Some(safe) => endings::watch(safe.words()),
                // The same would happen to all others.
                None => {
                    self.place = None;
                    return;
                }
            }
        }
    }

    fn before(&mut self, thread: usize, call: Observed<'_>) {
        let _ = self.thread(thread);
        let thread = &mut self.threads[thread];
        if let Some(safe) = &thread.safe {
            safe.word(Word::Inside).store(u64::from(call.function.id) + 1, Relaxed);
        }
        if self.encoder.overwrites(call.function) {
            self.encoder.before(&mut self.host, call.function, call.args, &mut thread.before);
        }
    }

    fn after(&mut self, thread: usize, call: Observed<'_>, result: i64, ticks: u64) {
        let Observed { function, args, .. } = call;
        let _ = self.thread(thread);
        let Thread { before, memo, tape, safe } = &mut self.threads[thread];
        if let Some(safe) = safe {
            safe.word(Word::Inside).store(0, Relaxed);
        }
        let known = self.split && result == 0;
        if known
            && let Some((symbol, values)) = memo.recall(&mut self.encoder, &mut self.host, function, args)
        {
            tape.push_known(symbol, values, ticks);
            if let Some(safe) = safe {
                safe.call(tape, symbol, values, ticks);
            }
            return;
        }
        self.encoder.after(&mut self.host, function, args, result, before, &mut self.record);
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

    /// MPI is up, and with it everything that a part says of its process.
    fn place(&self, config: &Config) -> Option<Place> {
        let pmpi = &self.host.pmpi;
        let world = pmpi.abi().comm_world;
        let number = |n: Option<i32>| n.and_then(|n| u32::try_from(n).ok());
        let (rank, size) = if pmpi.initialized().unwrap_or(false) {
            (number(pmpi.comm_rank(world).ok()), number(pmpi.comm_size(world).ok()))
        } else {
            // A session alone has no world: what the launcher said.
            (launcher_says(&RANKS), launcher_says(&SIZES))
        };
        let (rank, size) = (rank?, size?);
        let parent = if self.spawned { std::os::unix::process::parent_id() } else { 0 };
        let flags = if config.split { part::SPLIT } else { 0 };
        let flags = flags | if config.time == Time::Off { 0 } else { part::TIMED };
        let words = vec![
            (Word::Rank, u64::from(rank) + 1),
            (Word::Size, size.into()),
            (Word::Pid, std::process::id().into()),
            (Word::Parent, parent.into()),
            (Word::Started, self.started),
            (Word::Flags, flags),
        ];
        let text = format!(
            "version {}\nrun {}\nhost {}\nlibrary {}\nabi {}\npointers {}\ncommand {}\n",
            env!("CARGO_PKG_VERSION"),
            config.run,
            finalize::host_name(),
            finalize::library_name(&pmpi.library_version().unwrap_or_default()),
            pmpi.abi().family.name(),
            if config.pointers { "on" } else { "off" },
            config.command.join("\u{1f}").replace('\n', " "),
        );
        // A program that another one started ends on its own, and so does each of several.
        let directory = if self.spawned {
            let job = std::env::var("PMIX_NAMESPACE").unwrap_or_else(|_| parent.to_string());
            config.parts().with_extension(format!("{}.parts", job.replace(['/', '.'], "_")))
        } else {
            config.parts()
        };
        let room = config.test_tail.map_or(safety::ROOM, |bytes| bytes.next_multiple_of(part::HEADER));
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

/// The recorder of real traces.
#[derive(Debug)]
pub struct Real;

impl Recorder for Real {
    fn init(_: Observed<'_>) {
        state::with_recorder(State::new, |state, _| {
            let State { host, encoder, spawned, .. } = state;
            host.start();
            // A session alone has no world communicator, and asking for it is an error that ends the program.
            if host.pmpi.initialized().unwrap_or(false) {
                encoder.start(host);
                // Known only now: the program may let go of its parent before it ends.
                *spawned |= host.pmpi.has_parent().unwrap_or(false);
                let world = host.pmpi.abi().comm_world;
                if let Ok(rank) = host.pmpi.comm_rank(world) {
                    state::set_rank(rank.into());
                }
            }
            if let Some(config) = state::CONFIG.get().filter(|config| config.safe && state.place.is_none()) {
                state.place = state.place(config);
                state.keep_safe();
            }
        });
    }

    fn before(call: Observed<'_>) {
        state::with_recorder(State::new, |state, thread| {
            state.before(thread, call);
            if call.function.name == "MPI_Abort" {
                // It does not come back.
                state.after(thread, call, 0, 0);
                endings::note(End::Abort, i64::from(call.args[1] as i32));
            }
        });
    }

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
