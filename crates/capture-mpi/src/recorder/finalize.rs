//! The end of a recording: merge over MPI, write on rank 0. Runs before the program's `MPI_Finalize` is passed on.

use std::ffi::CString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use refrain_encode::{Agreed, Folding, Peers, Tape};
use refrain_fold::bundle::{Bundle, Link, gather, member};
use refrain_fold::ranks::RankList;
use refrain_mpi::{Family, MpiTransport, Pmpi, Transport, TransportError, Waiting};
use refrain_tracefile::claim::{Done, Holder, Job};
use refrain_tracefile::part::{self, End, directory};
use refrain_tracefile::private::Private;
use refrain_tracefile::{Error, Memory, Meta, RankTime, Replace, Stamp, Trace, is_device};

use super::agreement::agree;
use super::arrival::{self, Meeting, Met, Obstacle, Why};
use super::meeting::meet;
use super::stream::{AllRequests, Own};
use super::summary::{self, Spread, Summary};
use super::{State, endings};
use crate::apart::{apart, uncancelled};
use crate::config::{Config, Kept, Time};
use crate::guard::say;
use crate::hooks::Ending;
use crate::pages;
use crate::reserve::most_held;
use crate::state;

struct Wire<'a> {
    /// `None`: there is no other rank.
    transport: Option<MpiTransport<'a>>,
    /// A message could not be sent or received: the others wait for more in vain.
    broken: bool,
    /// For tests: this rank dies after its first message.
    dies: bool,
}

const ALONE: TransportError = TransportError::NoPeer { rank: 0, size: 1 };

/// For one message of the merge. A partner may be merging for minutes.
const MOST_PATIENCE: Duration = Duration::from_secs(600);

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
        let sent = self.transport.as_ref().ok_or(ALONE).and_then(|transport| transport.send(to, bytes));
        self.die_if_told();
        self.broken |= sent.is_err();
        sent
    }

    fn recv(&mut self, from: u32) -> Result<Vec<u8>, TransportError> {
        let received = self.transport.as_ref().ok_or(ALONE).and_then(|transport| transport.recv(from));
        self.die_if_told();
        self.broken |= received.is_err();
        received
    }
}

/// In `MPI_Init`: how to tell the others, without a word more, that this rank will not come to the meeting.
pub fn prepare_not_coming(config: &Config, parts: &Path) {
    let prefix = arrival::prefix(&meeting_name(config));
    let name = arrival::decision(&meeting_place(config, parts, &prefix), &prefix);
    if let Ok(name) = CString::new(name.into_os_string().into_vec()) {
        // Whoever reads it may be a signal handler: it stays.
        state::NOT_COMING.store(name.into_raw(), Release);
    }
}

/// Nobody waits for this rank any more. Needs nothing but the kernel.
pub fn not_coming() {
    let name = state::NOT_COMING.load(Acquire);
    if !name.is_null() {
        // SAFETY: two terminated strings that stay. Where the link cannot be made, the others wait for a while.
        unsafe { libc::syscall(libc::SYS_symlinkat, arrival::NOBODY_GOES.as_ptr(), libc::AT_FDCWD, name) };
    }
}

/// Called on every rank that reached MPI's end, also where tracing stopped: the others wait for it.
pub fn finalize(recorder: Option<Box<State>>, streams: Vec<(u32, &mut Own)>, ending: Ending) {
    // Waiting is where a thread may be cancelled.
    uncancelled(|| end(recorder, streams, ending));
    // A signal handler on another thread may be on its way to the parts: their memory stays as long as the process.
    endings::over();
}

fn end(recorder: Option<Box<State>>, mut streams: Vec<(u32, &mut Own)>, ending: Ending) {
    let (Some(state), Some(config)) = (recorder, state::CONFIG.get()) else { return };
    let State { host, start, started, spawned, alone, place, job, user, .. } = *state;
    endings::note(End::Finalized, 0);
    let rate = start.finish();
    let wall_ns = start.elapsed();
    let pmpi = &host.pmpi;
    // Until the end: none of our errors is the program's.
    let _returned = pmpi.returning_errors();
    let world = pmpi.abi().comm_world;
    let number = |number: Result<i32, _>| number.ok().and_then(|number| u32::try_from(number).ok());
    let (Some(rank), Some(size)) = (number(pmpi.comm_rank(world)), number(pmpi.comm_size(world))) else {
        say("no trace: MPI does not say which rank this is");
        return;
    };
    let kept = place.is_some();
    // This rank may have found no room for its own while others did.
    let parts = place.map_or_else(|| parts(config, spawned, alone, job.as_ref()), |place| place.directory);
    let meeting = match together(config, pmpi, (rank, size), (user, ending), &parts) {
        Ok(meeting) => meeting,
        Err(why) => {
            if let Some(why) = why {
                say(&without(config, &parts, kept, &why));
            }
            return;
        }
    };
    // Of those that fail one speaks.
    let give_up = |meeting: &Option<Meeting>, why: &dyn std::fmt::Display| {
        if meeting.as_ref().is_none_or(Meeting::call_off) {
            let why = format!("the ranks could not be brought together, on rank {rank}: {why}");
            say(&without(config, &parts, kept, &why));
        }
    };
    let called_off = || meeting.as_ref().is_some_and(Meeting::is_off);
    let waiting = Waiting { most: MOST_PATIENCE, called_off: &called_off };
    let transport = match (size > 1).then(|| MpiTransport::new(pmpi, world, waiting)).transpose() {
        Ok(transport) => transport,
        Err(error) => return give_up(&meeting, &error),
    };
    let mut link = Wire { transport, broken: false, dies: config.test_die_in_merge == Some(rank) };

    let mut own = Summary { hosts: vec![(host_name(), single(rank))], ..Summary::default() };
    let chosen = config.choice.has_rank(rank);
    if config.time != Time::Off && chosen {
        let ns = rate.nanoseconds(streams.iter().map(|(_, own)| own.tape.ticks()).sum());
        own.time = Some(RankTime { total_ns: ns, min: (rank, ns), max: (rank, ns) });
    }
    own.memory = Some(Spread::one(most_held() as u64));
    // A fault here must not leave the other ranks waiting: this one then takes part with nothing.
    let tapes = streams.iter_mut().map(|(number, own)| (*number, &mut own.tape));
    // A rank without any call is one all the same, but not every thread whose calls were left out.
    let tapes = tapes.filter(|(number, tape)| *number == 0 || !tape.is_empty());
    // Rank and thread are one number of 32 bits in a trace.
    let (tapes, unnumbered): (Vec<_>, Vec<_>) =
        tapes.partition(|(number, _)| member(size, rank, *number).is_some());
    if !unnumbered.is_empty() {
        own.notes.push(format!(
            "rank {rank}: {} of its threads have numbers too high for a run of {size} ranks, their calls are missing",
            unnumbered.len()
        ));
        own.missing = true;
    }
    let finish = || Tape::bundle((rank, size), tapes, |ticks| rate.nanoseconds(ticks));
    let bundle = match catch_unwind(AssertUnwindSafe(finish)) {
        // What it may have recorded before it knew its rank does not count.
        Ok(Ok(_)) if !chosen => Bundle::default(),
        Ok(Ok(bundle)) if ending == Ending::Whole => bundle,
        Ok(Ok(bundle)) if ending == Ending::LeftByJump => {
            own.notes.push(match state::JUMPS.load(Relaxed) {
                1 => format!("rank {rank}: left an MPI call by a jump, that call is missing"),
                calls => format!("rank {rank}: left {calls} MPI calls by jumps, those calls are missing"),
            });
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
    match state::UNSEEN.load(Relaxed) {
        0 => {}
        1 => own.notes.push(format!(
            "rank {rank}: MPI's Fortran layer did a call in a way of its own, that call is missing"
        )),
        calls => own.notes.push(format!(
            "rank {rank}: MPI's Fortran layer did {calls} calls in a way of its own, those calls are missing"
        )),
    }
    let (bundle, lost) = lose(config, &mut link, (rank, size), bundle, &mut own);
    let merged = meet(&mut link, rank, size, |link| {
        let gathered = gather(link, rank, size, bundle)?;
        for (from, error) in &gathered.lost {
            own.notes.push(format!("what rank {from} merged was lost ({error})"));
            own.missing = true;
        }
        let summary = summary::gather(link, rank, size, own)?;
        Ok((gathered.bundle, summary))
    });
    if let (false, Some(transport)) = (link.broken, link.transport.take()) {
        // An error here leaks a communicator in a program that is about to end.
        let _ = transport.close();
    }
    match merged {
        _ if link.broken => match merged {
            Some(Err(error)) => give_up(&meeting, &error),
            _ => give_up(&meeting, &"a message was lost"),
        },
        Some(Ok((Some(bundle), summary))) => {
            let missing = summary.missing;
            let meta = meta(config, &host.pmpi, size, (summary, lost), (started, wall_ns));
            let written = apart(|| write(config, spawned, alone, job.as_ref(), Trace { meta, bundle }));
            apart(|| {
                // All of them have talked to this one, so none still looks there.
                if let Some(meeting) = meeting {
                    meeting.clear();
                }
                settle(config, &parts, job.as_ref(), started, written, missing);
            });
        }
        Some(Ok((None, _))) => {}
        Some(Err(error)) => say(&format!("merging failed on rank {rank}: {error}; its calls are missing")),
        None => say(&format!("merging failed on rank {rank}, an internal error; its calls are missing")),
    }
}

/// Waits until all ranks are here; `None` where there is one alone. Where they do not all come, or may not talk, the
/// reason, if it is for this rank to tell it.
fn together(
    config: &Config,
    pmpi: &Pmpi,
    (rank, size): (u32, u32),
    (user, ending): (User, Ending),
    parts: &Path,
) -> Result<Option<Meeting>, Option<String>> {
    if size == 1 {
        return Ok(None);
    }
    let prefix = arrival::prefix(&meeting_name(config));
    let place = meeting_place(config, parts, &prefix);
    let own = arrival::Rank { rank, size, obstacle: obstacle(pmpi, user, ending) };
    match arrival::meet(&place, prefix, own, config.patience, || pmpi.progress()) {
        Ok(Met::All(meeting)) => Ok(Some(meeting)),
        // The others are in their own place still: one that is alone in another is not who knows.
        Ok(Met::NotAll(Some(Why::Missing(_)))) if own.obstacle == Some(Obstacle::User) && rank != 0 => {
            Err(None)
        }
        Ok(Met::NotAll(why)) => Err(why.map(|why| match why {
            Why::Missing(ranks) => format!(
                "{} not come to MPI_Finalize within {} s: still at work or stopped (--patience waits longer), not \
                 traced, or on a host that has another {}",
                these(&ranks, "has", "have"),
                config.patience.as_secs_f64(),
                place.display(),
            ),
            Why::Held(ranks, Obstacle::Receiving) => format!(
                "{} receives outstanding, which could take our messages for the program's",
                these(&ranks, "has", "have"),
            ),
            Why::Held(ranks, Obstacle::User) => {
                format!("{} another user's since MPI_Init", these(&ranks, "is", "are"))
            }
            Why::Held(ranks, Obstacle::Jumped) => {
                format!("{} left a call of MPI by a jump, from inside MPI", these(&ranks, "has", "have"))
            }
            Why::Held(ranks, Obstacle::Memory) => {
                format!("{} hardly any memory left", these(&ranks, "has", "have"))
            }
        })),
        // If this concerns rank 0, it says so; if not, rank 0 says that this one has not come.
        Err(error) => Err((rank == 0).then(|| {
            let (error, place) = (error.to_string(), place.display().to_string());
            let at = if error.contains(&place) { String::new() } else { format!(" in {place}") };
            format!("the ranks cannot meet{at}: {error}")
        })),
    }
}

fn these(ranks: &RankList, one: &str, many: &str) -> String {
    if ranks.len() == 1 { format!("rank {ranks} {one}") } else { format!("ranks {ranks} {many}") }
}

/// What is said where no trace is written: why, and what can be done.
fn without(config: &Config, parts: &Path, kept: bool, why: &str) -> String {
    let parts = parts.display();
    match (kept, config.summary) {
        (false, _) => format!("no trace: {why}"),
        // Nobody is left to do it.
        (true, true) => format!(
            "no trace yet: {why}. What was recorded is kept: `refrain recover {parts}` makes a trace of it"
        ),
        (true, false) => format!("no trace yet: {why}. What was recorded is kept in {parts}"),
    }
}

/// Real and effective user and group.
pub type User = [u32; 4];

/// Whose process this is now.
pub fn user() -> User {
    // SAFETY: these take and touch nothing.
    unsafe { [libc::getuid(), libc::geteuid(), libc::getgid(), libc::getegid()] }
}

/// What keeps this rank from talking over MPI.
fn obstacle(pmpi: &Pmpi, began_as: User, ending: Ending) -> Option<Obstacle> {
    if user() != began_as {
        Some(Obstacle::User)
    } else if state::TORN_OUT.load(Relaxed) {
        Some(Obstacle::Jumped)
    } else if ending != Ending::Stopped && receives(pmpi) {
        // Of a recording that stopped nobody knows what became of its requests since, or whether a thread is at them.
        Some(Obstacle::Receiving)
    } else if !has_memory() {
        Some(Obstacle::Memory)
    } else {
        None
    }
}

/// Whether there is more memory than MPI takes for a communicator, and we for a message or two.
fn has_memory() -> bool {
    const ENOUGH: usize = 8 << 20;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping wherever there is room, which goes again at once.
    unsafe {
        let start = pages::map_as(std::ptr::null_mut(), ENOUGH, protection, flags, -1, 0);
        start != libc::MAP_FAILED && libc::syscall(libc::SYS_munmap, start, ENOUGH) == 0
    }
}

/// Whether a receive of the program's is outstanding that could take what making a communicator sends. With the MPICH ABI
/// none could.
fn receives(pmpi: &Pmpi) -> bool {
    const RECEIVES: [&str; 8] = [
        "MPI_Irecv",
        "MPI_Irecv_c",
        "MPI_Recv_init",
        "MPI_Recv_init_c",
        "MPI_Isendrecv",
        "MPI_Isendrecv_c",
        "MPI_Isendrecv_replace",
        "MPI_Isendrecv_replace_c",
    ];
    if pmpi.abi().family == Family::Mpich {
        return false;
    }
    let mut found = false;
    AllRequests.others(u32::MAX, &mut |requests| {
        found |= requests.outstanding().any(|(id, handle, persistent)| {
            let receives =
                refrain_model::function_by_id(id).is_none_or(|function| RECEIVES.contains(&function.name));
            // Many programs do not free what they have made once for all.
            receives && !(persistent && pmpi.is_idle(handle).unwrap_or(false))
        });
        found
    });
    found
}

/// What tells the meeting of this job from all others.
pub fn meeting_name(config: &Config) -> String {
    format!("{}\n{}", config.run, config.job)
}

/// Where the ranks meet: where their parts are. A device has no such place, and another user may have taken it. Then it is
/// the directory for temporary files, which only the ranks of one host share. What is refused to one rank of a host is
/// refused to all that are the same user's, so that they all go to the same place.
fn meeting_place(config: &Config, parts: &Path, prefix: &str) -> PathBuf {
    if is_device(&config.out) {
        return temporary_place(prefix);
    }
    match Private::make(parts) {
        // Who has no descriptor left has none elsewhere.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotADirectory) => {
            temporary_place(prefix)
        }
        _ => parts.to_owned(),
    }
}

fn temporary_place(prefix: &str) -> PathBuf {
    // SAFETY: takes and touches nothing.
    let user = unsafe { libc::geteuid() };
    std::env::temp_dir().join(format!("refrain-{user}-{}", prefix.trim_end_matches('.')))
}

/// In `MPI_Init`, on rank 0: files of an earlier meeting must not be taken for those of this one. A name tells them apart,
/// where there is one.
pub fn sweep(config: &Config, spawned: bool, alone: Option<u32>, job: Option<&Job>) {
    if !config.run.is_empty() || !config.job.is_empty() {
        return;
    }
    let prefix = arrival::prefix(&meeting_name(config));
    for place in [parts(config, spawned, alone, job), temporary_place(&prefix)] {
        if let Ok(directory) = Private::open(&place) {
            arrival::sweep(&directory, &prefix);
        }
    }
}

/// What may be lost of a finished recording, and what there is to say of that. All ranks take part, also those that have
/// none.
fn lose(
    config: &Config,
    link: &mut Wire<'_>,
    (rank, size): (u32, u32),
    bundle: Bundle,
    own: &mut Summary,
) -> (Bundle, Vec<String>) {
    let lossy = &config.lossy;
    if !lossy.at_the_end() {
        return (bundle, Vec::new());
    }
    let agreed = if lossy.needs_agreement() {
        let read = || Agreed::of(&bundle, rank, size, own.missing, lossy);
        let known = catch_unwind(AssertUnwindSafe(read)).ok().and_then(Result::ok);
        agree(link, rank, size, known.unwrap_or_else(Agreed::unknown))
    } else {
        Agreed::default()
    };
    own.notes.extend(agreed.failed(lossy).into_iter().map(str::to_owned));
    let mut changed = bundle.clone();
    let change = || refrain_encode::lose(&mut changed, (rank, size), (lossy, config.fold), &agreed);
    let bundle = match catch_unwind(AssertUnwindSafe(change)) {
        Ok(Ok(())) => changed,
        failed => {
            let why = match failed {
                Ok(Err(error)) => error.to_string(),
                _ => "an internal error".to_owned(),
            };
            own.notes.push(format!("rank {rank}: nothing was lost, as it could not be read back ({why})"));
            bundle
        }
    };
    (bundle, agreed.told())
}

fn single(rank: u32) -> refrain_fold::ranks::RankList {
    refrain_fold::ranks::RankList::single(rank)
}

fn meta(
    config: &Config,
    pmpi: &Pmpi,
    ranks: u32,
    (summary, lost): (Summary, Vec<String>),
    (started, wall_ns): (u64, u64),
) -> Meta {
    let version = pmpi.library_version().unwrap_or_default();
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
        notes: [summary.notes, lost].concat(),
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
            let launchers = Some(config.job.clone()).filter(|job| !job.is_empty()).unwrap_or_else(parent);
            let job = std::env::var("PMIX_NAMESPACE").unwrap_or(launchers);
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
        // Another program of the same run may have written there since.
        None if config.held && path == config.out && !is_device(&path) => Replace::Nothing,
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
        Err(error) => say(&format!("no trace: {}", mended(config, error))),
    }
    saved.is_ok()
}

/// What is wrong with the file, and what to do about it here.
fn mended(config: &Config, error: &Error) -> String {
    match error {
        Error::Exists { path } if config.force => {
            let path = path.display();
            format!(
                "{path} exists, and another program may have written it since; REFRAIN_OUT names another file"
            )
        }
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
        say(&format!("the trace cannot be written: {}", mended(config, &error)));
    }
    if let Some(job) = job.filter(|job| job.trace != config.out) {
        let (asked, own) = (config.out.display(), job.trace.display());
        say(&match &job.instead {
            None => {
                format!("{asked} is for another program of this run; the trace of this one goes to {own}")
            }
            Some(claim) if claim.holder() == Holder::Gone => format!(
                "{asked}.parts has what an earlier run left (`refrain recover {asked}.parts` makes a trace of it); the \
                 trace of this one goes to {own}"
            ),
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
