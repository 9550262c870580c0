//! The end of a recording: merge over MPI, write on rank 0. Runs before the program's `MPI_Finalize` is passed on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use refrain_encode::{Folding, Tags, Tape};
use refrain_fold::bundle::{Bundle, Link, gather};
use refrain_mpi::{MpiTransport, Pmpi, Transport, TransportError};
use refrain_tracefile::claim::{Done, Job};
use refrain_tracefile::part::{self, End, Lost, directory};
use refrain_tracefile::private::Private;
use refrain_tracefile::{Error, Memory, Meta, RankTime, Replace, Stamp, Trace, is_device};

use super::agreement::agree;
use super::meeting::meet;
use super::stream::Own;
use super::summary::{self, Spread, Summary};
use super::{State, endings};
use crate::config::{Config, Kept, Time};
use crate::guard::say;
use crate::hooks::Ending;
use crate::reserve::most_held;
use crate::state;

struct Wire<'a> {
    transport: MpiTransport<'a>,
    /// For tests: this rank dies after its first message.
    dies: bool,
}

impl Wire<'_> {
    fn die_if_told(&self) {
        if self.dies {
            // SAFETY: takes numbers only.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
    }
}

impl Link for Wire<'_> {
    type Error = TransportError;

    fn send(&mut self, to: u32, bytes: &[u8]) -> Result<(), TransportError> {
        let sent = self.transport.send(to, bytes);
        self.die_if_told();
        sent
    }

    fn recv(&mut self, from: u32) -> Result<Vec<u8>, TransportError> {
        let received = self.transport.recv(from);
        self.die_if_told();
        received
    }
}

/// Called on every rank that reached MPI's end, also where tracing stopped: the others wait for it.
pub fn finalize(recorder: Option<Box<State>>, mut streams: Vec<(u32, &mut Own)>, ending: Ending) {
    let (Some(state), Some(config)) = (recorder, state::CONFIG.get()) else { return };
    let State { host, start, started, spawned, alone, place, job, .. } = *state;
    if ending == Ending::LeftByJump {
        endings::lose(Lost::Jumped);
    }
    endings::note(End::Finalized, 0);
    let rate = start.finish();
    let wall_ns = start.elapsed();
    let pmpi = &host.pmpi;
    wait_for_all(pmpi);
    let transport = match MpiTransport::new(pmpi, pmpi.abi().comm_world) {
        Ok(transport) => transport,
        Err(error) => {
            say(&format!("no trace: the ranks cannot be brought together: {error}"));
            return;
        }
    };
    let (rank, size) = (transport.rank(), transport.size());
    let mut link = Wire { transport, dies: config.test_die_in_merge == Some(rank) };

    let mut own = Summary { hosts: vec![(host_name(), single(rank))], ..Summary::default() };
    let chosen = config.choice.has_rank(rank);
    if config.time != Time::Off && chosen {
        let ns = rate.nanoseconds(streams.iter().map(|(_, own)| own.tape.ticks()).sum());
        own.time = Some(RankTime { total_ns: ns, min: (rank, ns), max: (rank, ns) });
    }
    if config.fold != Folding::default() {
        own.memory = Some(Spread::one(most_held() as u64));
    }
    for (_, stream) in &streams {
        stream.averages.extremes(rank).for_each(|(of, at, met)| own.add_extremes((of, at), met));
    }
    // A fault here must not leave the other ranks waiting: this one then takes part with nothing.
    let tapes = streams.iter_mut().map(|(number, own)| (*number, &mut own.tape));
    // A rank without any call is one all the same, but not every thread whose calls were left out.
    let tapes = tapes.filter(|(number, tape)| *number == 0 || !tape.is_empty());
    let finish = || Tape::bundle(rank, tapes, |ticks| rate.nanoseconds(ticks));
    let bundle = match catch_unwind(AssertUnwindSafe(finish)) {
        // What it may have recorded before it knew its rank does not count.
        Ok(Ok(_)) if !chosen => Bundle::default(),
        Ok(Ok(bundle)) if ending == Ending::Whole => bundle,
        Ok(Ok(bundle)) if ending == Ending::LeftByJump => {
            own.notes.push(format!("rank {rank}: left an MPI call by a jump, that call is missing"));
            bundle
        }
        Ok(Ok(_)) => {
            own.notes.push(format!("rank {rank}: tracing stopped, its calls are missing"));
            own.missing = true;
            Bundle::default()
        }
        Ok(Err(error)) => {
            own.notes.push(format!("rank {rank}: its recording does not hold together ({error})"));
            own.missing = true;
            Bundle::default()
        }
        Err(_) => {
            own.notes.push(format!("rank {rank}: tracing failed at the end, its calls are missing"));
            own.missing = true;
            Bundle::default()
        }
    };
    let bundle = lose(config, &mut link, (rank, size), bundle, &mut own);
    let merged = meet(&mut link, rank, size, |link| {
        let gathered = gather(link, rank, size, bundle)?;
        for (from, error) in &gathered.lost {
            own.notes.push(format!("what rank {from} merged was lost ({error})"));
            own.missing = true;
        }
        let summary = summary::gather(link, rank, size, own)?;
        Ok((gathered.bundle, summary))
    });
    // An error here leaks a communicator in a program that is about to end.
    let _ = link.transport.close();
    match merged {
        Some(Ok((Some(bundle), summary))) => {
            let missing = summary.missing;
            let meta = meta(config, &host.pmpi, size, summary, started, wall_ns);
            let written = write(config, spawned, alone, job.as_ref(), Trace { meta, bundle });
            // This rank may have found no room for its own while others did.
            let parts =
                place.map_or_else(|| parts(config, spawned, alone, job.as_ref()), |place| place.directory);
            settle(config, &parts, job.as_ref(), started, written, missing);
        }
        Some(Ok((None, _))) => {}
        Some(Err(error)) => say(&format!("merging failed on rank {rank}: {error}; its calls are missing")),
        None => say(&format!("merging failed on rank {rank}, an internal error; its calls are missing")),
    }
    // A signal handler on another thread may be on its way to the parts: their memory stays as long as the process.
    endings::over();
}

/// What may be lost of a finished recording. All ranks take part, also those that have none.
fn lose(
    config: &Config,
    link: &mut Wire<'_>,
    (rank, size): (u32, u32),
    bundle: Bundle,
    own: &mut Summary,
) -> Bundle {
    if !config.lossy.needs_split() {
        return bundle;
    }
    let tags = config.lossy.tags.then(|| {
        let read = || Tags::of(&bundle, rank).ok().filter(|_| !own.missing);
        let known = catch_unwind(AssertUnwindSafe(read)).ok().flatten();
        agree(link, rank, size, known.unwrap_or_else(Tags::unknown))
    });
    let mut changed = bundle.clone();
    let change = || refrain_encode::lose(&mut changed, rank, &config.lossy, tags.as_ref());
    match catch_unwind(AssertUnwindSafe(change)) {
        Ok(Ok(())) => changed,
        failed => {
            let why = match failed {
                Ok(Err(error)) => error.to_string(),
                _ => "an internal error".to_owned(),
            };
            own.notes.push(format!("rank {rank}: nothing was lost, as it could not be read back ({why})"));
            bundle
        }
    }
}

fn single(rank: u32) -> refrain_fold::ranks::RankList {
    refrain_fold::ranks::RankList::single(rank)
}

fn meta(config: &Config, pmpi: &Pmpi, ranks: u32, summary: Summary, started: u64, wall_ns: u64) -> Meta {
    let version = pmpi.library_version().unwrap_or_default();
    let extremes: Vec<String> = summary.told_extremes().collect();
    Meta {
        refrain_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: config.command.clone(),
        library: library_name(&version),
        abi: pmpi.abi().family.name().to_owned(),
        ranks,
        hosts: summary.hosts,
        started,
        wall_ns,
        options: options(config),
        split: config.split,
        timed: config.time != Time::Off,
        complete: summary.notes.is_empty(),
        notes: [summary.notes, extremes].concat(),
        mpi_time: summary.time,
        memory: summary.memory.map(|m| Memory {
            min: m.min,
            mean: m.total / m.ranks.max(1),
            max: m.max,
            root: 0,
        }),
    }
}

/// What is not as it is by default.
pub fn options(config: &Config) -> Vec<(String, String)> {
    let pointers = (!config.pointers).then(|| ("pointers".to_owned(), "off".to_owned()));
    let said = config.choice.said().iter().map(|(option, text)| ((*option).to_owned(), text.clone()));
    let stacks = match config.stacks {
        Kept::Nothing => None,
        Kept::Site => Some("site"),
        Kept::Full => Some("full"),
    };
    let recursion = stacks.filter(|_| !config.fold_recursion).map(|_| "keep");
    let fold = (config.fold != Folding::default()).then(|| config.fold.to_string());
    let more = [
        ("fold", fold.as_deref()),
        ("stacks", stacks),
        ("recursion", recursion),
        ("lossy", config.lossy.said()),
    ];
    let more = more.into_iter().filter_map(|(option, text)| Some((option.to_owned(), text?.to_owned())));
    pointers.into_iter().chain(more).chain(said).collect()
}

/// Parts that the trace makes superfluous go; others are spoken of.
fn settle(config: &Config, parts: &Path, job: Option<&Job>, started: u64, written: bool, missing: bool) {
    if let Some(job) = job {
        job.end(match Stamp::of(&job.trace).filter(|_| written) {
            Some(stamp) if missing => Done::Lacking(stamp),
            Some(stamp) => Done::Whole(stamp),
            None => Done::Nothing,
        });
    }
    if written && !missing {
        if let Ok(directory) = Private::open(parts) {
            for name in part::of_run(&directory, &config.run, started) {
                // What cannot be removed is only in the way.
                let _ = directory.remove(&name);
            }
            let _ = directory.remove_itself();
        }
        // Nobody else does it.
        if let Some(job) = job.filter(|_| !config.held) {
            job.release();
        }
    } else if config.summary && config.safe && parts.is_dir() {
        // Nobody is left to do it.
        let shown = parts.display();
        say(&format!("what was recorded is kept: `refrain recover {shown} --out FILE` makes a trace of it"));
    }
}

/// The first line of a library's own description, without the padding: MPICH's goes on for a kilobyte about its build.
pub fn library_name(version: &str) -> String {
    let line = version.lines().next().unwrap_or("").split(", package:").next().unwrap_or("");
    line.split_whitespace().collect::<Vec<_>>().join(" ").replace("MPICH Version: ", "MPICH ")
}

/// Waits until every rank is here. One that is not traced never comes: then somebody says so.
fn wait_for_all(pmpi: &Pmpi) {
    const PATIENCE: Duration = Duration::from_secs(30);
    const NAP: Duration = Duration::from_millis(1);
    let world = pmpi.abi().comm_world;
    // Where this fails, so will what comes next, and say it.
    let Ok(mut request) = pmpi.ibarrier(world) else { return };
    let begun = Instant::now();
    let mut said = false;
    while let Ok(false) = pmpi.test(&mut request) {
        let waited = begun.elapsed();
        if waited < NAP {
            std::thread::yield_now();
        } else {
            std::thread::sleep(NAP);
        }
        // Not all ranks at once; and the first may be the one that is missing.
        if waited > PATIENCE && !said && pmpi.comm_rank(world).is_ok_and(|rank| rank < 2) {
            said = true;
            say(&format!(
                "still waiting in MPI_Finalize for all ranks after {} s; if one of them is not traced, stop the run",
                PATIENCE.as_secs()
            ));
        }
    }
}

/// A program that another one started has a world of its own, and so a trace of its own beside the other's.
fn path(config: &Config, spawned: bool, alone: Option<u32>, job: Option<&Job>) -> PathBuf {
    match alone {
        Some(rank) => path_alone(config, rank),
        None if spawned => path_beside(config, &format!("spawned-{}", std::process::id())),
        None => job.map_or_else(|| config.out.clone(), |job| job.trace.clone()),
    }
}

pub fn path_alone(config: &Config, rank: u32) -> PathBuf {
    path_beside(config, &format!("process-{rank}"))
}

fn path_beside(config: &Config, mark: &str) -> PathBuf {
    // Devices have no neighbours of ours.
    if is_device(&config.out) {
        return config.out.clone();
    }
    let name = config.out.file_stem().unwrap_or_default().to_string_lossy();
    config.out.with_file_name(format!("{name}.{mark}.rfn"))
}

/// Where parts are kept until that file is written. A program that another one started ends on its own, and so does
/// each of several.
pub fn parts(config: &Config, spawned: bool, alone: Option<u32>, job: Option<&Job>) -> PathBuf {
    match alone {
        Some(rank) => directory(&path_alone(config, rank)),
        None if spawned => {
            let parent = || std::os::unix::process::parent_id().to_string();
            let job = std::env::var("PMIX_NAMESPACE").unwrap_or_else(|_| parent());
            directory(&config.out).with_extension(format!("{}.parts", job.replace(['/', '.'], "_")))
        }
        None => job.map_or_else(|| directory(&config.out), Job::parts),
    }
}

/// Whether it was written.
fn write(config: &Config, spawned: bool, alone: Option<u32>, job: Option<&Job>, mut trace: Trace) -> bool {
    let score = matches!(config.fold, Folding::Loops { together: true, .. });
    let scored = if score { trace.bundle.score() } else { Ok(()) };
    if let Err(error) = scored.and_then(|()| trace.bundle.canonical()) {
        say(&format!("no trace: what was merged does not hold together: {error}"));
        return false;
    }
    if let Some(memory) = &mut trace.meta.memory {
        memory.root = most_held() as u64;
    }
    let ranks = trace.meta.ranks;
    let calls: u64 = calls(&trace.bundle);
    let path = path(config, spawned, alone, job);
    let replace = match job {
        // What was there before, and not what somebody else has written since.
        Some(job) => Replace::old(config.force, job.old),
        None if config.force => Replace::Anything,
        None => Replace::Nothing,
    };
    let saved = refrain_tracefile::save_as(&trace, &path, replace);
    match &saved {
        // The launcher's `refrain` speaks of the file it asked for only.
        Ok(bytes) if config.summary || spawned => {
            say(&format!("{ranks} ranks, {calls} calls, {bytes} bytes -> {}", path.display()));
        }
        Ok(_) => {}
        Err(error) => say(&format!("no trace: {}", mended(error))),
    }
    saved.is_ok()
}

/// What is wrong with the file, and what to do about it here.
fn mended(error: &Error) -> String {
    match error {
        Error::Exists { path } => {
            let path = path.display();
            format!("{path} exists already; REFRAIN_FORCE=on replaces it, REFRAIN_OUT names another file")
        }
        error => error.to_string(),
    }
}

/// Says at the beginning of a run what would keep its trace from being written at the end.
pub fn foresee(config: &Config, job: Option<&Job>) {
    let out = job.map_or(&config.out, |job| &job.trace);
    if let Err(error @ (Error::Exists { .. } | Error::NoFile { .. } | Error::Planted { .. })) =
        refrain_tracefile::target(out, config.force)
    {
        say(&format!("the trace cannot be written: {}", mended(&error)));
    }
    if let Some(job) = job.filter(|job| job.trace != config.out) {
        let (asked, own) = (config.out.display(), job.trace.display());
        say(&match &job.instead {
            None => {
                format!("{asked} is for another program of this run; the trace of this one goes to {own}")
            }
            Some(claim) => format!(
                "{asked} is for another run (process {} on {}); the trace of this one goes to {own}",
                claim.process, claim.host
            ),
        });
    }
}

fn calls(bundle: &Bundle) -> u64 {
    let of = |cohort: &refrain_fold::bundle::Cohort| refrain_encode::calls_of_all(bundle, cohort);
    bundle.cohorts.iter().map(of).sum()
}

pub fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the buffer is as long as said; one byte less, so that it ends in a zero whatever happens.
    let code = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|&b| b == 0).unwrap_or(0);
    if code == 0 { String::from_utf8_lossy(&name[..end]).into_owned() } else { "?".to_owned() }
}
