//! The recorder: every observed call is encoded, folded, and at the end merged and written.

use refrain_model::time::Time;
use refrain_model::{Class, Dir, Function, Kind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use refrain_encode::{Crowd, Encoder, Facts, Host, Memory, Now, Tables, Tape};
use refrain_fold::bundle::sites::{Frame, Module};
use refrain_guest::process::apart::{apart, uncancelled};
use refrain_guest::process::clock::{self, Moment};
use refrain_guest::process::host::name as host_name;
use refrain_guest::process::say::{say, set_rank};
use refrain_guest::stacks::Asker;
use refrain_guest::streams::{self, Hands, Recording};
use refrain_guest::threads::marks::{self, Caller};
use refrain_tracefile::claim::Job;
use refrain_tracefile::claim::processes_seen;
use refrain_tracefile::is_device;
use refrain_tracefile::part::{self, End, Lost, Word};

use crate::config::{self, Config, Kept};
use crate::files::{self, RANKS, SIZES, launcher_says};
use crate::filter::{self, Fate};
use crate::hooks::{Ending, Observed, Recorder, Ticks};
use crate::library::library;
use crate::parts::{self, About, Parts, Words};
use crate::recording::host::{Process, Reader};
use crate::recording::{self, AllRequests, Own, RECORDER, State};
use crate::{endings, flight, marked, merge, wild};

type Entered = streams::Entered<State>;
type Common<'a> = streams::Common<'a, State>;

/// Before any thread calls MPI.
pub fn prepare() {
    RECORDER.prepare();
}

/// The calling thread will make calls: it has a number from here on.
pub fn join() {
    drop(RECORDER.enter());
}

/// The calling thread ends.
pub fn release_thread() {
    RECORDER.release();
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
    /// Encodes a call that was not recognised, and remembers it.
    #[inline(never)]
    fn encode(&mut self, own: &mut Own, tables: &mut dyn Tables, made: Made<'_>) {
        let Made { call, result, .. } = made;
        let Observed { function, args, level, .. } = call;
        let Own { before, memo, record, tape, safe, early, returned, known, paths, .. } = own;
        let State { host, encoder, named, .. } = self;
        let before = &mut before[level];
        if !function.overwrites() {
            // Left by a call that never came back: an exception or a jump went past it.
            before.clear();
        }
        let generation = encoder.generation();
        encoder.after(host, tables, function, args, result, before, record);
        before.clear();
        if encoder.generation() != generation
            && let Some(words) = *named
        {
            name_objects(words, host, encoder, (function, args));
        }
        if encoder.has_wild() {
            wild::note();
        }
        record.site = made.site;
        let symbol = match made.keep {
            Keep::Record => {
                if !made.split {
                    record.inline_values();
                }
                marked::call();
                let symbol = tape.push(record, made.ticks.length());
                if let Some(paths) = paths {
                    paths.add(symbol, made.ticks.start, made.ticks.end);
                }
                match safe {
                    Some(safe) => safe.call(tape, symbol, (&record.values).into(), made.ticks),
                    None => recording::keep_early(early, symbol, made.ticks, *returned),
                }
                symbol
            }
            // It has no symbol, and nobody will ask for one: no call of this function is ever pushed.
            Keep::FollowAlways => u32::MAX,
            Keep::Follow => return,
        };
        if made.split && result == 0 {
            memo.remember(encoder, host, tables, function, args, record, symbol);
        }
        if !known.as_ref().is_some_and(|(facts, _)| Arc::ptr_eq(facts, encoder.facts())) {
            *known = Some((Arc::clone(encoder.facts()), Arc::clone(host.reader())));
        }
    }

    /// Where the times of all calls are kept, and all ranks of a world have just come out of `MPI_Init`. When that was done.
    fn compare_clocks(&mut self, config: &Config) -> Option<Moment> {
        let pmpi = &self.host.pmpi;
        if !config.time.of_every_call() || self.spawned || self.alone.is_some() {
            return None;
        }
        let world = pmpi.abi().comm_world;
        let number = |number: Result<i32, _>| number.ok().and_then(|number| u32::try_from(number).ok());
        if let (Some(rank), Some(size)) = (number(pmpi.comm_rank(world)), number(pmpi.comm_size(world))) {
            let parts = files::parts(config, self.spawned, self.alone, self.job.as_ref());
            let start = || merge::clocks::at_start(config, pmpi, (rank, size), self.user, &parts);
            self.compared = uncancelled(start);
        }
        Some(Moment::now())
    }

    /// What it takes to understand a call in flight.
    fn about(&self) -> About {
        const SETS: [&str; 10] =
            ["comm", "datatype", "op", "rank", "tag", "request", "message", "win", "file", "group"];
        let named = |id: u16| refrain_model::constant_by_id(id).is_some_and(|c| SETS.contains(&c.set));
        let constants = self.constants.iter().filter(|(id, _)| named(*id));
        let constants = constants.map(|&(id, value)| (value as u64, id)).collect();
        About { constants, modules: flight::modules(), ..About::default() }
    }

    /// MPI is up, and with it everything that a part says of its process.
    fn parts(&self, config: &Config) -> Option<Parts> {
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
            "version {}\nrun {}\nhost {}\nseen {}\nlibrary {}\nabi {}\n",
            env!("CARGO_PKG_VERSION"),
            config.run,
            host_name(),
            processes_seen(),
            merge::write::library_name(&pmpi.library_version().unwrap_or_default()),
            pmpi.abi().family.name(),
        );
        if let Some(beside) = files::ranks_beside(size) {
            text += &format!("beside {beside}\n");
        }
        for (option, value) in merge::write::options(config) {
            text += &format!("option {option} {}\n", value.replace('\n', " "));
        }
        text += &format!("command {}\n", config.command.join("\u{1f}").replace('\n', " "));
        let room = config.tests().tail.map_or(parts::ROOM, |bytes| bytes.next_multiple_of(part::HEADER));
        let place = files::parts(config, self.spawned, self.alone, self.job.as_ref());
        let directory = files::own_parts(config, &place);
        if directory != place {
            merge::together::own_place(config, &directory, &place);
        }
        let spans = config.time.of_every_call();
        Some(Parts { directory, rank, room, words, text, spans, about: self.about() })
    }
}

/// `MPI_Finalize` in a signal handler, in the middle of another call: the ranks do not meet, and what is kept says why.
/// Only stores single words: what was interrupted may be our own code.
pub fn interrupted() {
    endings::lose(Lost::Interrupted);
    endings::note(End::Finalized, 0);
    merge::absence::not_coming();
}

/// What a call has made has a name from here on, for those who find the part.
#[cold]
fn name_objects(words: Words, host: &Process, encoder: &Encoder, call: (&Function, &[usize])) {
    let (function, args) = call;
    for (p, &arg) in function.params.iter().zip(args) {
        if let Kind::Handle(class) = p.kind
            && class != Class::Request
            && p.dir == Dir::Out
            && p.len.is_empty()
            && arg != 0
        {
            let handle = host.handle_at(class, arg, 0);
            if let Some(id) = encoder.id_of(class, handle) {
                flight::name(|at| words.at(at), class, handle, id);
            }
        }
    }
}

/// What is asked of a thread's stacks, and the tape that new sites go to.
struct Sites<'a> {
    config: &'a Config,
    tape: &'a mut Tape,
}

impl Asker for Sites<'_> {
    fn site_only(&self) -> bool {
        self.config.stacks == Kept::Site
    }

    fn folds_recursion(&self) -> bool {
        self.config.fold_recursion
    }

    fn compares(&self) -> bool {
        self.config.tests().stacks
    }

    fn blurred(&self, file: &str, offset: u64) -> Option<u64> {
        let mut codes = self.config.lossy.sites_in.iter();
        // The call, not what comes after it, lies in the code.
        let code = codes.find(|code| code.start < offset && offset <= code.end && code.module == file)?;
        Some(code.start + 1)
    }

    fn note<'a>(&mut self, frames: &[Frame], module: impl Fn(u64) -> Option<&'a Module>) -> u64 {
        self.tape.note_site(frames, module)
    }
}

/// A call that was made, and how it is to be treated. Passed by value: where it is recognised it stays in registers.
#[derive(Clone, Copy)]
struct Made<'a> {
    call: Observed<'a>,
    result: i64,
    keep: Keep,
    split: bool,
    ticks: Ticks,
    /// Where it was made, 0 where that is not asked for.
    site: u64,
}

impl Made<'_> {
    /// Keeps it if the thread recognises it, and says whether it does.
    #[inline(always)]
    fn is_recalled<T: Tables + ?Sized>(
        self,
        own: &mut Own,
        (facts, reader): (&Facts, &Reader),
        tables: &mut T,
        now: Now,
    ) -> bool {
        let Observed { function, args, level, .. } = self.call;
        let Own { before, memo, tape, safe, early, returned, paths, .. } = own;
        let known = memo.recall(facts, reader, tables, now, function, args, &before[level]);
        let Some((symbol, values)) = known else { return false };
        if self.keep == Keep::Record {
            marked::call();
            tape.push_known(symbol, values, self.ticks.length());
            if let Some(paths) = paths {
                paths.add(symbol, self.ticks.start, self.ticks.end);
            }
            match safe {
                Some(safe) => safe.call(tape, symbol, values, self.ticks),
                None => recording::keep_early(early, symbol, self.ticks, *returned),
            }
        }
        true
    }

    /// The same for one of several threads, which asks nobody: what is shared is locked only where the call is not
    /// recognised, or ends another one.
    #[inline(never)]
    fn is_recalled_among_several(self, own: &mut Own, number: u32, common: &mut Common<'_>) -> bool {
        let Some((facts, reader)) = own.known.take() else { return false };
        let now = Now { site: self.site, ..recording::now() };
        let recalled = self.is_recalled(own, (&facts, &reader), &mut Crowd::new(&AllRequests, number), now);
        while recalled && let Some(later) = own.memo.take_arrived() {
            common.with(State::new, |state, _| state.encoder.arrived(&*reader, later));
        }
        own.known = Some((facts, reader));
        recalled
    }
}

fn before(entered: &mut Entered, call: Observed<'_>) {
    let Hands { number, own, mut common } = entered.hands();
    own.ready_for(common.lent(), number, call.level);
    let Observed { function, args, level, .. } = call;
    let Own { before, known, .. } = own;
    let before = &mut before[level];
    if let Some((facts, reader)) = known
        && before.completes(facts, &**reader, function, args)
    {
        flight::waits_for(before.handles());
        return;
    }
    common.with(State::new, |State { encoder, host, .. }, requests| match requests {
        Some(requests) => encoder.before(host, requests, function, args, before),
        None => encoder.before(host, &mut Crowd::new(&AllRequests, number), function, args, before),
    });
    flight::waits_for(before.handles());
}

#[inline]
fn after(entered: &mut Entered, call: Observed<'_>, result: i64, ticks: Ticks) {
    let keep = match filter::fate(call) {
        Fate::Record => Keep::Record,
        Fate::Follow { always: true } => Keep::FollowAlways,
        Fate::Follow { always: false } => Keep::Follow,
        Fate::Pass => return,
    };
    let config = config::asked();
    let split = config.is_none_or(|config| config.split);
    let Hands { number, own, mut common } = entered.hands();
    let site = match config {
        Some(config) if config.stacks != Kept::Nothing && keep == Keep::Record => {
            // In a callback it is not known where on the stack: those calls are unwound each time.
            let place = if call.level == 0 { marks::place() } else { Caller::default() };
            own.stacks.site(place, &mut Sites { config, tape: &mut own.tape })
        }
        _ => 0,
    };
    if keep == Keep::Record
        && result == 0
        && let Some(at) = flight::makes(call.index)
    {
        // SAFETY: it has succeeded, and that parameter is where it puts the request.
        unsafe { flight::made(call.args[at]) };
    }
    let made = Made { call, result, keep, split, ticks, site };
    own.ready_for(common.lent(), number, call.level);
    own.before[call.level].set_statuses(call.statuses);
    let may_recall = split && result == 0;
    if may_recall && !common.is_alone() && made.is_recalled_among_several(own, number, &mut common) {
        return;
    }
    common.with(State::new, |state, requests| {
        let Some(requests) = requests else {
            return state.encode(own, &mut Crowd::new(&AllRequests, number), made);
        };
        let State { host, encoder, .. } = &mut *state;
        let recalled = may_recall && {
            let now = Now { objects: encoder.generation(), places: host.places(), site };
            made.is_recalled(own, (encoder.facts(), &**host), requests, now)
        };
        if !recalled {
            return state.encode(own, requests, made);
        }
        while let Some(later) = own.memo.take_arrived() {
            encoder.arrived(host, later);
        }
    });
}

/// A call that is recorded before it is made: how long it takes is not known.
fn instant() -> Ticks {
    let now = clock::ticks();
    Ticks { start: now, end: now }
}

/// The recorder of real traces.
#[derive(Debug)]
pub struct Real;

impl Recorder for Real {
    fn init(call: Observed<'_>) -> Option<u64> {
        let mut entered = RECORDER.enter()?;
        let mut done = None;
        let Hands { own, mut common, .. } = entered.hands();
        let spent = own.tape.spent().all;
        common.with(State::new, |state, _| {
            let State { host, encoder, spawned, alone, job, began, before, .. } = state;
            if began.is_none() {
                (*began, *before) = (Some(Moment::now()), spent);
            }
            host.start();
            // A session alone has no world communicator, and asking for it is an error that ends the program.
            if host.pmpi.initialized().unwrap_or(false) {
                encoder.start(host);
                // Known only now: the program may let go of its parent before it ends.
                *spawned |= host.pmpi.has_parent().unwrap_or(false);
                let world = host.pmpi.abi().comm_world;
                if let (Ok(rank), Ok(size)) = (host.pmpi.comm_rank(world), host.pmpi.comm_size(world)) {
                    set_rank(rank.into());
                    if size == 1 && !*spawned {
                        *alone = alone_among_others();
                    }
                    filter::start(u32::try_from(rank).unwrap_or(0), u32::try_from(size).unwrap_or(0));
                    if let Some(config) = config::asked() {
                        let first = !*spawned && alone.is_none();
                        if first {
                            *job = job.take().or_else(|| claim(config));
                        }
                        if rank == 0 {
                            merge::together::begin(config, size, *spawned, *alone, job.as_ref());
                        }
                        if first && rank == 0 {
                            forewarn(config, job.as_ref());
                        }
                    }
                }
            }
            let kept = |config: &&Config| config.safe && !is_device(&config.out);
            if let Some(config) = config::asked().filter(kept).filter(|_| state.parts.is_none()) {
                let parts = files::parts(config, state.spawned, state.alone, state.job.as_ref());
                merge::absence::prepare(config, &parts);
                state.keep(state.parts(config));
            }
            // Sessions are begun by each rank for itself.
            let collective = call.function.name.starts_with("MPI_Init");
            if let (true, Some(config)) = (collective, config::asked()) {
                done = state.compare_clocks(config);
                // Waiting for the other ranks is part of coming out of MPI_Init, not of what the program does then.
                if done.is_some() {
                    (state.began, state.before) = (done, spent);
                }
            }
        });
        done.map(|done| done.ticks)
    }

    fn begin_part() {
        if let Some(mut entered) = RECORDER.enter() {
            let Hands { number, own, mut common } = entered.hands();
            own.ready_for(common.lent(), number, 0);
        }
    }

    fn before(call: Observed<'_>) {
        if let Some(mut entered) = RECORDER.enter() {
            before(&mut entered, call);
        }
    }

    fn abort(call: Observed<'_>) {
        if let Some(mut entered) = RECORDER.enter() {
            after(&mut entered, call, 0, instant());
        }
        endings::note(End::Abort, call.args.get(1).map_or(0, |&code| i64::from(code as i32)));
    }

    fn room(call: Observed<'_>, bytes: usize) -> usize {
        let Some(mut entered) = RECORDER.enter() else { return 0 };
        let Hands { number, own, mut common } = entered.hands();
        own.ready_for(common.lent(), number, call.level);
        own.before[call.level].room(bytes)
    }

    #[inline]
    fn after(call: Observed<'_>, result: i64, ticks: Ticks) {
        if let Some(mut entered) = RECORDER.enter() {
            after(&mut entered, call, result, ticks);
        }
    }

    fn after_clock(call: Observed<'_>, returned: u64, ticks: Ticks) {
        let Some(mut entered) = RECORDER.enter() else { return };
        let Hands { number, own, mut common } = entered.hands();
        own.ready_for(common.lent(), number, call.level);
        own.set_returned(Some(returned));
        after(&mut entered, call, 0, ticks);
        // It may not have been recorded.
        entered.hands().own.set_returned(None);
    }

    fn finalize(call: Observed<'_>, ending: Ending) {
        let began = instant();
        let record = || {
            if ending != Ending::Stopped
                && let Some(mut entered) = RECORDER.enter()
            {
                // Its result is not known before it has returned, when nothing can be merged any more.
                before(&mut entered, call);
                after(&mut entered, call, 0, began);
            }
        };
        let recorded = catch_unwind(AssertUnwindSafe(record)).is_ok();
        let Ok(Recording { shared: state, streams }) = RECORDER.take() else {
            say("a call was still being recorded in MPI_Finalize; the trace is made of what was kept before");
            endings::lose(Lost::Stopped);
            endings::note(End::Finalized, 0);
            merge::absence::not_coming();
            return endings::over();
        };
        if !recorded {
            endings::lose(Lost::Stopped);
        }
        let ending = if recorded { ending } else { Ending::Stopped };
        // Where tracing stopped before it began, the other ranks wait for this one all the same.
        let state = state.or_else(|| State::new().map(Box::new));
        merge::finalize(state, streams, ending, began);
    }
}

/// A name for the trace that no other program has. `None` where none can be claimed: then it is the one that was asked for.
fn claim(config: &Config) -> Option<Job> {
    if is_device(&config.out) {
        return None;
    }
    let job = refrain_tracefile::claim::job(|variable| std::env::var_os(variable)).unwrap_or_default();
    apart(|| Job::take_with(&config.out, &config.run, &job, config.force)).ok()
}

/// What the user will not have meant, said once for all ranks.
fn forewarn(config: &Config, job: Option<&Job>) {
    merge::write::foresee(config, job);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter_map(|name| refrain_model::unknown_variable(&name)).for_each(|unknown| say(&unknown));
}

/// A launcher that this MPI library does not understand starts programs of one rank each, all of which would write the
/// same file.
fn alone_among_others() -> Option<u32> {
    let config = config::asked()?;
    let launched = config.launched.filter(|launched| launched.size > 1)?;
    if launched.rank == 0 {
        let library = library().map_or_else(Default::default, |library| library.path().display().to_string());
        say(&format!(
            "the launcher started {} processes, but to the MPI library ({library}) each of them is alone: launcher and \
             library do not belong together; `refrain doctor` names the right one. Each process has a trace of its \
             own: {}",
            launched.size,
            files::path_alone(config, launched.rank).display(),
        ));
    }
    Some(launched.rank)
}
