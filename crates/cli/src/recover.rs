//! A trace from the parts that a run left behind when it ended before it could write one.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use refrain_encode::{Agreed, Folding, Tags, lose};
use refrain_fold::ranks::RankList;
use refrain_model::Lossy;
use refrain_model::time::Time;
use refrain_sites::unwind::Unwinder;
use refrain_tracefile::chunks::{Settings, Writer};
use refrain_tracefile::claim::{Claim, Holder, host_name};
use refrain_tracefile::part::{self, Life, Part, Word};
use refrain_tracefile::private::Private;
use refrain_tracefile::{InFlight, Meta, Profile, Replace, Trace};
use refrain_views::human::{folded as rank_list, plural};

mod process;
mod together;

use crate::failure::{Failure, not_read, not_saved};
use crate::flight;
use crate::progress::Bar;
use crate::say;
use crate::stack::{self, Stacks, Why};
use process::{OfProcess, Process, Symbols, folding, lossy, processes, time};

/// How long to wait for processes that still run when their launcher has gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The trace that a directory of parts belongs to, if it is named as `part::directory` names them.
fn trace_of(directory: &Path) -> Option<PathBuf> {
    let name = directory.file_name()?.to_str()?.strip_suffix(".parts")?;
    Some(directory.with_file_name(name))
}

/// What became of the parts.
pub struct Recovered {
    /// As it was written.
    pub trace: Trace,
    /// Processes that are, or may be, still at work: what they do from here on is only in their parts.
    pub living: Vec<Living>,
    /// Parts of processes that have ended: the trace has all of what they recorded.
    pub ended: Vec<Named>,
    /// Parts of processes that have ended of which the trace lacks something: nobody else has it.
    pub unread: Vec<Named>,
    /// Ranks that have no parts here, though they may have some on another host.
    pub missing: Vec<u32>,
}

/// The directory of a part, and what it is called there.
pub type Named = (PathBuf, OsString);

/// Ranks on a machine that are, or may be, still at work.
pub struct Living {
    host: String,
    seen: bool,
    ranks: Vec<u32>,
}

impl Living {
    /// What is to be said of them.
    pub fn summary(&self) -> String {
        let ranks = of_ranks(&self.ranks);
        let host = &self.host;
        match (self.seen, self.ranks.len()) {
            (true, 1) => format!("{ranks} still runs"),
            (true, _) => format!("{ranks} still run"),
            (false, _) => format!("{ranks} on {host}: nobody can tell from here whether they still run"),
        }
    }
}

pub fn of_ranks(ranks: &[u32]) -> String {
    let word = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{word} {}", rank_list(ranks))
}

/// These directories, and those in which hosts of the same run say that they keep their parts, if they are here.
pub fn with_kept(directories: &[PathBuf]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    let kept = |directory: &PathBuf| {
        let kept = Private::open_to_read(directory).map(|private| part::kept_elsewhere(&private));
        kept.unwrap_or_default().into_iter().map(|(_, place)| place).filter(|place| place.is_dir())
    };
    for directory in directories.iter().cloned().chain(directories.iter().flat_map(kept)) {
        let same = |known: &PathBuf| match (known.canonicalize(), directory.canonicalize()) {
            (Ok(known), Ok(directory)) => known == directory,
            _ => *known == directory,
        };
        if !all.iter().any(same) {
            all.push(directory);
        }
    }
    all
}

/// What is to be said of parts that could not be read, or not to their end.
pub fn say_unread(unread: &[Named]) {
    let mut directories: Vec<&PathBuf> = unread.iter().map(|(directory, _)| directory).collect();
    directories.sort();
    directories.dedup();
    for directory in directories {
        let parts = unread.iter().filter(|(of, _)| of == directory).count() as u64;
        let shown = directory.display();
        say(&format!(
            "{} in {shown} could not be read to the end, and nothing of it is removed; `refrain recover {shown} --force` tries \
             again",
            plural(parts, "part"),
        ));
    }
}

/// What is to be said of ranks that left nothing here.
pub fn say_missing(directory: &Path, missing: &[u32]) {
    let kept =
        Private::open_to_read(directory).map(|private| part::kept_elsewhere(&private)).unwrap_or_default();
    let there: Vec<String> = kept
        .into_iter()
        .filter(|(host, _)| *host != host_name())
        .map(|(host, place)| format!("{host} in {}", place.display()))
        .collect();
    let where_ = match there.is_empty() {
        true => "they may have kept it on their host, in a directory of the same name".to_owned(),
        false => format!("what ranks kept elsewhere is on {}", there.join(", ")),
    };
    let (ranks, shown) = (of_ranks(missing), directory.display());
    say(&format!("{ranks} left nothing here; {where_}"));
    say(&format!(
        "`refrain recover {shown} DIRECTORY... --force` joins the directories of several hosts; remove {shown} if there is no other"
    ));
}

/// `refrain recover`. The first directory is the one beside the trace.
pub fn command(directories: &[PathBuf], out: Option<PathBuf>, force: bool) -> Result<ExitCode, Failure> {
    for directory in directories {
        if directory.metadata().is_ok_and(|about| !about.is_dir()) {
            let failure = Failure::new(format!("{} is not a directory", directory.display()));
            return Err(failure
                .help("recover takes the directory that ends in .parts, beside where the trace should be"));
        }
    }
    let Some(directory) = directories.first() else {
        return Err(Failure::new("no directory was named").help("recover takes one that ends in .parts"));
    };
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.into());
    if let (None, Some(trace)) = (&out, trace_of(&absolute))
        && let Some(claim) = at_work(directory, force)
    {
        if claim.holder() == Holder::Unseen {
            let what = format!(
                "a run on {} (process {}) has {}, and may still be at work",
                claim.host,
                claim.process,
                trace.display()
            );
            let help =
                "for what there is until now name another file: --out FILE; if that run is over: --force";
            return Err(Failure::new(what).help(help));
        }
        let what = format!(
            "the run of {} is at work (process {}) and writes {} itself",
            directory.display(),
            claim.process,
            trace.display()
        );
        return Err(Failure::new(what).help("for what there is until now name another file: --out FILE"));
    }
    let Some(shown) = out.or_else(|| trace_of(&absolute)) else {
        return Err(Failure::new(format!("{} does not say what trace it belongs to", directory.display()))
            .help("name one: --out FILE"));
    };
    refrain_tracefile::target(&shown, force).map_err(|error| not_saved(&error))?;
    let replace = if force { Replace::Anything } else { Replace::Nothing };
    let has_references = crate::memory::has_parts(directory);
    let has_calls = with_kept(directories).iter().any(|directory| has_parts(directory));
    if has_references && !has_calls {
        crate::memory::recover(directory, &shown, replace)?;
        return Ok(ExitCode::SUCCESS);
    }
    let recovered = recover(&with_kept(directories), &shown, replace, Ended::Once)?;
    if has_references {
        crate::memory::recover_beside(directory, &shown, recovered.trace.meta.command.clone())?;
    }
    if !refrain_tracefile::is_device(&shown) {
        let length = shown.metadata().map_or(0, |file| file.len());
        crate::reading::say_written(&recovered.trace, length, &shown, &shown);
    }
    let there = directory.display();
    if !recovered.missing.is_empty() {
        say_missing(directory, &recovered.missing);
    } else if recovered.living.is_empty() && !recovered.unread.is_empty() {
        say_unread(&recovered.unread);
    } else if recovered.living.is_empty() {
        say(&format!("{there} is still there; remove it when you do not need it any more"));
    } else {
        say_living(&recovered.living);
        say(&format!("keep {there} until they have ended, and recover again then"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The claim of a run that is at work, and not about to end; or that may be, unless `force`.
fn at_work(directory: &Path, force: bool) -> Option<Claim> {
    let begun = Instant::now();
    loop {
        let claim = Claim::of(&Private::open_to_read(directory).ok()?)?;
        match claim.holder() {
            Holder::Alive if begun.elapsed() > PATIENCE => return Some(claim),
            Holder::Alive => {}
            Holder::Unseen => return Some(claim).filter(|_| !force),
            Holder::Gone => return None,
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A line for each machine.
pub fn say_living(living: &[Living]) {
    living.iter().for_each(|living| say(&living.summary()));
}

/// When processes that have ended did so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By that moment of `flight::now`.
    By(u64),
    /// Nobody knows.
    Once,
}

/// What the threads of all processes were doing. [`name_requests`] follows when their calls are known.
fn in_flight(processes: &[Process], ended: Ended) -> Vec<InFlight> {
    let of = |process: &Process| with_process(process, ended, |found| found.threads());
    processes.iter().flat_map(of).collect()
}

/// Looks at a process for what it was doing.
fn with_process<T>(process: &Process, ended: Ended, look: impl FnOnce(&flight::Process<'_>) -> T) -> T {
    let is_here = process.first().text("host") == Some(&host_name());
    let mut parts = process.parts.iter().zip(&process.names);
    let lives = is_here && parts.any(|(part, (_, name))| part.is_mapped(name));
    let until = match ended {
        _ if !is_here => None,
        _ if lives => Some(flight::now()),
        Ended::By(moment) => Some(moment),
        Ended::Once => None,
    };
    look(&flight::Process {
        rank: process.rank,
        parts: &process.parts,
        end: process.end(),
        clock: &process.clock(),
        until,
        lives,
    })
}

/// Which requests the calls in flight are to complete.
fn name_requests(processes: &[Process], trace: &mut Trace) {
    let mut flight = std::mem::take(&mut trace.meta.flight);
    for one in flight.iter_mut().filter(|one| one.waits_for > 0) {
        let of_rank = |process: &&Process| process.rank == one.rank;
        let Some(process) = processes.iter().find(of_rank) else { continue };
        // Calls that cannot be read make no requests: then none is named.
        let outstanding =
            |thread| refrain_views::flight::outstanding(trace, one.rank, thread).unwrap_or_default();
        one.requests = with_process(process, Ended::Once, |found| found.requests(one.thread, outstanding));
    }
    trace.meta.flight = flight;
}

/// The calls of a rank that went on were read after what it was doing: its requests are no longer those of its last calls, and
/// it is no longer where it was. So it is told as one that has just come there, from which nothing follows.
fn notice_who_went_on(processes: &[Process], flight: &mut [InFlight]) {
    // Of ranks elsewhere it is not known for how long they have been there.
    if processes.iter().any(|process| process.life == Life::Unseen) {
        std::thread::sleep(Duration::from_millis(300));
    }
    let went_on = |process: &Process| {
        let mut parts = process.parts.iter().zip(&process.names);
        parts.any(|(part, (directory, name))| {
            let now = Private::open_to_read(directory).map_err(drop);
            let now = now.and_then(|private| Part::peek(&private, name).map_err(drop));
            now.is_ok_and(|now| now.doing != part.doing || now.word(Word::Inside) != part.word(Word::Inside))
        })
    };
    for process in processes.iter().filter(|process| went_on(process)) {
        for one in flight.iter_mut().filter(|one| one.rank == process.rank) {
            one.requests.clear();
            one.ns = Some(0);
        }
    }
}

/// What a run has recorded up to now, whether it goes on or not. Nothing is written.
pub fn as_of_now(directory: &Path) -> Result<(Trace, Stacks), Failure> {
    let (parts, mut notes) = read_all(&with_kept(&[directory.to_owned()]), Duration::ZERO)?;
    let processes = processes(parts, &mut notes);
    if processes.is_empty() {
        return Err(Failure::new(format!("{} has no part of a run that is in MPI", directory.display()))
            .help(notes.first().cloned().unwrap_or_else(|| "has the program called MPI_Init yet?".into())));
    }
    let failed = |error: String| Failure::new(format!("the parts in {}: {error}", directory.display()));
    let flight = in_flight(&processes, Ended::Once);
    let mut stacks = stacks_now(&processes, &flight);
    let mut trace = assemble(&processes, &mut notes, &mut Bar::new("reading")).map_err(failed)?.trace;
    trace.meta.flight = flight;
    name_requests(&processes, &mut trace);
    notice_who_went_on(&processes, &mut trace.meta.flight);
    let went_on = |one: &InFlight| one.ns == Some(0);
    trace.meta.flight.iter().filter(|one| went_on(one)).for_each(|one| {
        stacks.known.remove(&(one.rank, one.thread));
    });
    Ok((trace, stacks))
}

/// What threads outside MPI are in now, as far as that can be seen from here.
fn stacks_now(processes: &[Process], flight: &[InFlight]) -> Stacks {
    let mut stacks = Stacks::default();
    let mut unwinder = Unwinder::default();
    let outside = |one: &&InFlight| !one.inside && one.fault.is_none() && one.error.is_none();
    for one in flight.iter().filter(outside) {
        let Some(process) = processes.iter().find(|process| process.rank == one.rank) else { continue };
        let of_thread = |(part, _): &(&Part, &Named)| part.word(Word::Thread) == u64::from(one.thread);
        let Some((part, (directory, name))) = process.parts.iter().zip(&process.names).find(of_thread) else {
            continue;
        };
        let found = match process.life {
            Life::Ended => continue,
            Life::Unseen => Err(Why::Elsewhere),
            Life::Running => {
                let same = || {
                    let private = Private::open_to_read(directory).ok();
                    let now = private.and_then(|private| Part::peek(&private, name).ok());
                    now.is_some_and(|now| now.doing == part.doing && now.word(Word::Inside) == 0)
                };
                let number = |word: Word| u32::try_from(part.word(word)).ok().filter(|number| *number != 0);
                // The first thread of a process has its number.
                let first = || number(Word::Pid).filter(|_| one.thread == 0);
                match number(Word::Pid).zip(number(Word::Task).or_else(first)) {
                    Some((pid, task)) => stack::look(&mut unwinder, pid, task, same),
                    None => Err(Why::WhichThread),
                }
            }
        };
        match found {
            Ok(found) if found.is_empty() => {}
            Ok(found) => drop(stacks.known.insert((one.rank, one.thread), found)),
            Err(why) => drop(stacks.unknown.entry(why).or_default().insert(one.rank)),
        }
    }
    stacks
}

/// Whether there are parts in a directory.
pub fn has_parts(directory: &Path) -> bool {
    Private::open_to_read(directory).and_then(|private| names(&private)).is_ok_and(|names| !names.is_empty())
}

/// Reads all parts, merges them, writes the trace.
pub fn recover(
    directories: &[PathBuf],
    out: &Path,
    replace: Replace,
    ended: Ended,
) -> Result<Recovered, Failure> {
    let (parts, mut notes) = read_all(directories, PATIENCE)?;
    let shown: Vec<String> = directories.iter().map(|directory| directory.display().to_string()).collect();
    let shown = shown.join(" ");
    if parts.is_empty() {
        let failure = Failure::new(format!("{shown} has no part of a trace"));
        return Err(match notes.first() {
            Some(note) => failure.help(note.clone()),
            None => failure.help("name the directory that ends in .parts, beside where the trace should be"),
        });
    }
    let processes = processes(parts, &mut notes);
    let failed = |error: String| Failure::new(format!("the parts in {shown} do not make a trace: {error}"));
    let mut bar = Bar::new("recovering");
    let Assembled { mut trace, symbols, mut unread } =
        assemble(&processes, &mut notes, &mut bar).map_err(failed)?;
    trace.meta.flight = in_flight(&processes, ended);
    name_requests(&processes, &mut trace);
    let mut chunks = chunks(&processes, &symbols, &mut trace.meta, &mut unread);
    bar.say("writing the trace");
    refrain_tracefile::save_with(&trace, chunks.as_mut(), out, replace).map_err(|error| {
        Failure::new(error.to_string())
            .help(format!("the parts are kept; `refrain recover {shown} --out FILE` writes it elsewhere"))
    })?;
    bar.clear();
    let ended = processes.iter().filter(|process| process.life == Life::Ended);
    let ended = ended.flat_map(|process| process.names.iter().cloned());
    let (unread, ended) = ended.partition(|name| unread.contains(name));
    let there: Vec<u32> = processes.iter().map(|process| process.rank).collect();
    // Where the launcher says that all ranks are on one host, those that left nothing here left nothing.
    let missing = match processes.iter().any(Process::has_all_beside_it) {
        true => Vec::new(),
        false => {
            let chosen = refrain_views::info::chosen_ranks(&trace);
            chosen.filter(|rank| there.binary_search(rank).is_err()).collect()
        }
    };
    Ok(Recovered { living: living(&processes), trace, ended, unread, missing })
}

/// The times of every call, where they were asked for. Without room for them the calls are recovered all the same. `unread`:
/// parts that have times which are missing then.
fn chunks(
    processes: &[Process],
    symbols: &[Symbols],
    meta: &mut Meta,
    unread: &mut HashSet<Named>,
) -> Option<File> {
    let time = time(&meta.options)?;
    if time == Time::Histogram {
        meta.notes.push("how times are distributed is known only at the end of a run: it is missing".into());
        return None;
    }
    let packed = pack_all(processes, symbols, &time, &mut meta.notes, unread);
    let failed = |error: io::Error| {
        meta.notes.push(format!("the times of calls are missing: {error}"));
        unread.extend(processes.iter().flat_map(|process| process.names.iter().cloned()));
    };
    packed.map_err(failed).ok()
}

fn pack_all(
    processes: &[Process],
    symbols: &[Symbols],
    time: &Time,
    notes: &mut Vec<String>,
    unread: &mut HashSet<Named>,
) -> io::Result<File> {
    let mut file = tempfile()?;
    let mut writer = Writer::new(BufWriter::new(&mut file), Settings::default());
    let mut bar = Bar::new("packing times");
    for (at, (process, symbols)) in processes.iter().zip(symbols).enumerate() {
        bar.show(at as u64, processes.len() as u64);
        let packed = symbols.as_ref().map_err(String::clone);
        if let Err(why) = packed.and_then(|symbols| process.pack_spans(time, symbols, &mut writer)) {
            notes.push(format!("{}: the times of its calls are missing: {why}", of_ranks(&[process.rank])));
            unread.extend(process.names.iter().cloned());
        }
    }
    writer.finish()?.flush()?;
    Ok(file)
}

/// A file without a name, in the directory for temporary ones.
pub fn tempfile() -> io::Result<File> {
    let drawn = RandomState::new().build_hasher().finish();
    let path = std::env::temp_dir().join(format!("refrain-{}-{drawn:016x}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn living(processes: &[Process]) -> Vec<Living> {
    let mut all: Vec<Living> = Vec::new();
    for process in processes.iter().filter(|process| process.life != Life::Ended) {
        let host = process.first().text("host").unwrap_or_default();
        let seen = process.life == Life::Running;
        match all.iter_mut().find(|known| known.host == host && known.seen == seen) {
            Some(known) => known.ranks.push(process.rank),
            None => all.push(Living { host: host.to_owned(), seen, ranks: vec![process.rank] }),
        }
    }
    all
}

/// The part files of a directory.
pub fn names(directory: &Private) -> io::Result<Vec<OsString>> {
    let mut names = directory.names()?;
    names.retain(|name| part::is_part(name));
    names.sort();
    Ok(names)
}

/// A part, where it is and what it is called, and whether its process still runs.
type Found = (Part, Named, Life);

/// The same of several directories.
fn read_all(directories: &[PathBuf], patience: Duration) -> Result<(Vec<Found>, Vec<String>), Failure> {
    let (mut parts, mut notes) = (Vec::new(), Vec::new());
    for directory in directories {
        let (found, unread) = read(directory, patience)?;
        parts.extend(found);
        notes.extend(unread);
    }
    Ok((parts, notes))
}

/// The headers of all parts of a directory that can be read, and what is to be said of those that cannot. What they recorded is
/// read when it is merged: all of it together would not fit into memory.
fn read(directory: &Path, patience: Duration) -> Result<(Vec<Found>, Vec<String>), Failure> {
    let private = Private::open_to_read(directory).map_err(|error| not_read(directory, &error))?;
    let names = names(&private).map_err(|error| not_read(directory, &error))?;
    let begun = Instant::now();
    let runs =
        |name: &OsString| Part::peek(&private, name).is_ok_and(|part| part.life(name) == Life::Running);
    while begun.elapsed() < patience && names.iter().any(runs) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (mut parts, mut notes) = (Vec::new(), Vec::new());
    for name in names {
        match Part::peek(&private, &name) {
            Ok(part) => {
                let life = part.life(&name);
                parts.push((part, (directory.to_owned(), name), life));
            }
            Err(error) => notes.push(format!("{}: {error}", directory.join(&name).display())),
        }
    }
    Ok((parts, notes))
}

/// What all ranks that are there know together, where something may be lost. If one is missing nobody can tell which tags
/// matter; means are then of the others.
fn agreed(processes: &[Process], size: u32, lossy: &Lossy, bar: &mut Bar) -> Result<Agreed, String> {
    let mut all = Agreed::default();
    if !lossy.needs_agreement() {
        return Ok(all);
    }
    let own = |process: &Process| {
        let Ok(OfProcess { bundle, damage, .. }) = process.recorded() else {
            // Its calls are not in the trace: it has no share in means.
            return Agreed { tags: Tags::unknown(), ..Agreed::default() };
        };
        let missing = damage.is_some() || processes.len() < size as usize;
        let own = Agreed::of(&bundle, process.rank, size, missing, lossy);
        own.unwrap_or_else(|_| Agreed::unknown())
    };
    // What was recorded is read twice: all of it together would not fit into memory.
    for own in together::each(processes, own, &mut |done| bar.show(done, processes.len() as u64))? {
        all.absorb(own);
    }
    Ok(all)
}

pub fn signal_name(number: i64) -> String {
    refrain_views::human::signal(number)
}

/// In pairs: to join them one by one would look at each rank as often as there are ranks.
fn join_all(mut profiles: Vec<Profile>) -> Option<Profile> {
    while profiles.len() > 1 {
        profiles = profiles
            .chunks(2)
            .map(|pair| match pair {
                [one, other] => one.join(other),
                one => one[0].clone(),
            })
            .collect();
    }
    profiles.pop()
}

/// What the parts have come to.
struct Assembled {
    trace: Trace,
    /// By process, where the times of its calls are kept apart from them; otherwise none.
    symbols: Vec<Symbols>,
    /// Parts of which the trace lacks something.
    unread: HashSet<Named>,
}

fn assemble(processes: &[Process], notes: &mut Vec<String>, bar: &mut Bar) -> Result<Assembled, String> {
    let first = processes.first().ok_or("none of them got as far as MPI_Init")?.first();
    let size = first.word(Word::Size) as u32;
    let text = |key| first.text(key).unwrap_or_default().to_owned();
    let flags = first.word(Word::Flags);
    let mut meta = Meta {
        refrain_version: text("version"),
        command: text("command").split('\u{1f}').map(str::to_owned).collect(),
        library: text("library"),
        abi: text("abi"),
        ranks: size,
        started: processes.iter().map(|p| p.first().word(Word::Started)).min().unwrap_or(0),
        wall_ns: processes.iter().map(Process::wall_ns).max().unwrap_or(0),
        options: first.options(),
        split: flags & part::SPLIT != 0,
        timed: flags & part::TIMED != 0,
        complete: processes.len() == size as usize && processes.iter().all(Process::ended_well),
        ..Meta::default()
    };
    let mut hosts: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut endings: Vec<(String, Vec<u32>)> = Vec::new();
    let lossy = lossy(&meta.options);
    let agreed = agreed(processes, size, &lossy, bar)?;
    notes.extend(agreed.failed(&lossy).into_iter().map(str::to_owned));
    notes.extend(agreed.notes());
    let fold = folding(&meta.options);
    let has_times = time(&meta.options).is_some();
    let one = |process: &Process| match process.recorded() {
        Err(error) => (None, Err(error)),
        Ok(OfProcess { mut bundle, profile, symbols, damage }) => {
            let mut note = None;
            if lossy.at_the_end() {
                let (rank, mut changed) = (process.rank, bundle.clone());
                match lose(&mut changed, (rank, size), (&lossy, fold), &agreed) {
                    Ok(_) => bundle = changed,
                    Err(why) => {
                        note = Some(format!(
                            "rank {rank}: nothing was lost, as it could not be read back ({why})"
                        ));
                    }
                }
            }
            (Some(bundle), Ok((profile, has_times.then_some(symbols), damage, note)))
        }
    };
    let all = together::steps(processes.len());
    let (mut bundle, read) = together::merge_all(processes, one, &mut |done| bar.show(done, all))?;
    bar.say("putting ranks in order");
    if let Some(Err(why)) = read.iter().find(|read| read.is_err()).filter(|_| read.iter().all(Result::is_err))
    {
        return Err(format!("what they recorded cannot be read: {why}"));
    }
    let (mut unread, mut all_symbols, mut profiles) = (HashSet::new(), Vec::new(), Vec::new());
    for (process, read) in processes.iter().zip(read) {
        let rank = process.rank;
        hosts.entry(process.first().text("host").unwrap_or("?").to_owned()).or_default().push(rank);
        let how = match read {
            Ok((profile, symbols, damage, note)) => {
                notes.extend(note);
                all_symbols.extend(symbols.map(Ok));
                profiles.push(profile);
                let damage = damage.map_or_else(String::new, |damage| {
                    meta.complete = false;
                    unread.extend(damage.parts);
                    format!("; calls are missing at the end: {}", damage.why)
                });
                process.how_it_ended() + &damage
            }
            Err(error) => {
                meta.complete = false;
                unread.extend(process.names.iter().cloned());
                let how = format!("what it recorded cannot be read: {error}");
                all_symbols.extend(has_times.then_some(Err(error)));
                how
            }
        };
        match endings.iter_mut().find(|(known, _)| *known == how) {
            Some((_, ranks)) => ranks.push(rank),
            None => endings.push((how, vec![rank])),
        }
    }
    let there: Vec<u32> = processes.iter().map(|p| p.rank).collect();
    let missing: Vec<u32> = (0..size).filter(|rank| there.binary_search(rank).is_err()).collect();
    if !missing.is_empty() {
        let one_host = processes.iter().any(Process::has_all_beside_it);
        let how =
            if one_host { "nothing was kept" } else { "nothing was kept here, or it is on another host" };
        endings.push((how.into(), missing));
    }
    let mut told: Vec<String> =
        endings.into_iter().map(|(how, ranks)| format!("{}: {how}", of_ranks(&ranks))).collect();
    told.append(notes);
    meta.notes = told;
    meta.hosts = hosts.into_iter().map(|(host, ranks)| (host, RankList::from_sorted(&ranks))).collect();
    meta.profile = join_all(profiles).filter(|_| meta.timed);
    if let Some(profile) = &mut meta.profile {
        profile.settle();
    }
    if matches!(fold, Folding::Loops { together: true, .. }) {
        bundle.score().map_err(|error| error.to_string())?;
    }
    bundle.canonical().map_err(|error| error.to_string())?;
    Ok(Assembled { trace: Trace { meta, bundle }, symbols: all_symbols, unread })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::testing::Scratch;

    /// Nobody can tell from here whether a run on another machine is at work: its name is taken only where that is asked for.
    #[test]
    fn a_run_elsewhere_keeps_its_name() {
        let folder = Scratch::new("elsewhere");
        let (parts, trace) = (folder.path("x.rfn.parts"), folder.path("x.rfn"));
        let private = Private::make(&parts).unwrap();
        let claim = "run=r job= host=elsewhere process=7 since=1 boot=its-own space=its-own old=";
        private.leave(OsStr::new("claim"), claim).unwrap();
        let words = [(Word::Rank, 1), (Word::Size, 1), (Word::Pid, 7)];
        std::fs::write(parts.join("0-elsewhere-7-0.part"), part::header(&words, "host elsewhere\nrun r\n"))
            .unwrap();
        let parts = std::slice::from_ref(&parts);
        let refused = command(parts, None, false).unwrap_err();
        assert!(refused.to_string().contains("a run on elsewhere (process 7)"), "{refused}");
        assert!(!trace.exists());
        assert!(command(parts, Some(folder.path("y.rfn")), false).is_ok());
        assert!(command(parts, None, true).is_ok() && trace.exists());
    }
}
