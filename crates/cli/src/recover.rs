//! A trace from the parts that a run left behind when it ended before it could write one.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use refrain_encode::{Agreed, Folding, Tags, Tape, lose};
use refrain_fold::bundle::{Bundle, member, merge};
use refrain_fold::ranks::RankList;
use refrain_model::Lossy;
use refrain_model::time::Time;
use refrain_times::Packer;
use refrain_tracefile::chunks::{Key, Settings, Writer};
use refrain_tracefile::claim::{Claim, Holder, host_name};
use refrain_tracefile::clocks::Converter;
use refrain_tracefile::part::{self, End, Lost, Part, Word};
use refrain_tracefile::private::Private;
use refrain_tracefile::spans::{Entries, log_name, pack};
use refrain_tracefile::{Meta, Profile, Replace, Trace};
use refrain_views::human::{plural, ranks as rank_list};

use crate::failure::{Failure, not_read, not_saved};
use crate::progress::Bar;
use crate::say;

/// How long to wait for processes that still run when their launcher has gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The trace that a directory of parts belongs to, if it is named as `part::directory` names them.
fn trace_of(directory: &Path) -> Option<PathBuf> {
    let name = directory.file_name()?.to_str()?.strip_suffix(".parts")?;
    Some(directory.with_file_name(name))
}

/// What became of the parts.
pub struct Recovered {
    pub complete: bool,
    /// Processes that are, or may be, still at work: what they do from here on is only in their parts.
    pub living: Vec<Living>,
    /// Parts of processes that have ended: the trace has all of them.
    pub ended: Vec<OsString>,
}

/// Ranks on a machine that are, or may be, still at work.
pub struct Living {
    host: String,
    seen: bool,
    ranks: Vec<u32>,
}

impl Living {
    /// What is to be said of them.
    pub fn told(&self) -> String {
        let ranks = of_ranks(&self.ranks);
        let host = &self.host;
        match (self.seen, self.ranks.len()) {
            (true, 1) => format!("{ranks} still runs"),
            (true, _) => format!("{ranks} still run"),
            (false, _) => format!("{ranks} on {host}: nobody can tell from here whether they still run"),
        }
    }
}

fn of_ranks(ranks: &[u32]) -> String {
    let word = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{word} {}", rank_list(ranks))
}

/// `refrain recover`.
pub fn command(directory: &Path, out: Option<PathBuf>, force: bool) -> Result<ExitCode, Failure> {
    if directory.metadata().is_ok_and(|about| !about.is_dir()) {
        let failure = Failure::new(format!("{} is not a directory", directory.display()));
        return Err(
            failure.help("recover takes the directory that ends in .parts, beside where the trace should be")
        );
    }
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
    let has_calls = Private::open_to_read(directory)
        .and_then(|private| names(&private))
        .is_ok_and(|names| !names.is_empty());
    if has_references && !has_calls {
        crate::memory::recover(directory, &shown, replace)?;
        return Ok(ExitCode::SUCCESS);
    }
    let recovered = recover(directory, &shown, replace)?;
    if has_references {
        let command = crate::reading::open(&shown)?.trace.meta.command;
        crate::memory::recover_beside(directory, &shown, command)?;
    }
    if !refrain_tracefile::is_device(&shown) {
        crate::reading::say_closing(&shown, &shown);
    }
    let there = directory.display();
    if recovered.living.is_empty() {
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
    living.iter().for_each(|living| say(&living.told()));
}

/// Reads all parts, merges them, writes the trace.
pub fn recover(directory: &Path, out: &Path, replace: Replace) -> Result<Recovered, Failure> {
    let (parts, mut notes) = read(directory)?;
    if parts.is_empty() {
        let failure = Failure::new(format!("{} has no part of a trace", directory.display()));
        return Err(match notes.first() {
            Some(note) => failure.help(note.clone()),
            None => failure.help("name the directory that ends in .parts, beside where the trace should be"),
        });
    }
    let processes = processes(parts, &mut notes);
    let failed = |error: String| {
        Failure::new(format!("the parts in {} do not make a trace: {error}", directory.display()))
    };
    let mut trace = assemble(&processes, &mut notes).map_err(failed)?;
    let mut chunks = chunks(directory, &processes, &mut trace.meta);
    refrain_tracefile::save_with(&trace, chunks.as_mut(), out, replace).map_err(|error| {
        Failure::new(error.to_string()).help(format!(
            "the parts are kept; `refrain recover {} --out FILE` writes it elsewhere",
            directory.display()
        ))
    })?;
    let ended = processes.iter().filter(|process| process.life == Life::Ended);
    let ended = ended.flat_map(|process| process.names.iter().cloned()).collect();
    Ok(Recovered { complete: trace.meta.complete, living: living(&processes), ended })
}

/// The times of every call, where they were asked for. Without room for them the calls are recovered all the same.
fn chunks(directory: &Path, processes: &[Process], meta: &mut Meta) -> Option<File> {
    let said = meta.options.iter().find(|(option, _)| option == "time");
    let time = said.and_then(|(_, words)| Time::read(words).ok())?;
    if time == Time::Histogram {
        meta.notes.push("how times are distributed is known only at the end of a run: it is missing".into());
        return None;
    }
    let packed = pack_all(directory, processes, &time, &mut meta.notes);
    packed.map_err(|error| meta.notes.push(format!("the times of calls are missing: {error}"))).ok()
}

fn pack_all(
    directory: &Path,
    processes: &[Process],
    time: &Time,
    notes: &mut Vec<String>,
) -> io::Result<File> {
    let mut file = tempfile()?;
    let mut writer = Writer::new(BufWriter::new(&mut file), Settings::default());
    for process in processes {
        if let Err(why) = process.pack_spans(directory, time, &mut writer) {
            notes.push(format!("{}: the times of its calls are missing: {why}", of_ranks(&[process.rank])));
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

/// Removes a part and its snapshots.
pub fn remove(directory: &Private, part: &OsStr) {
    let of_part = |name: &OsString| name == part || is_snapshot_of(name, part);
    for name in directory.names().unwrap_or_default().iter().filter(|name| of_part(name)) {
        // What cannot be removed is only in the way.
        let _ = directory.remove(name);
    }
}

fn is_snapshot_of(name: &OsStr, part: &OsStr) -> bool {
    part::is_part_or_snapshot(name) && Path::new(name).file_stem() == Some(part)
}

/// Whether a process still adds to its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Life {
    Ended,
    /// It is, or was, on another machine.
    Unseen,
    Running,
}

impl Life {
    /// Of the process that wrote a part. It has not said that it ends, and has the file mapped: its number alone may be
    /// another's by now.
    pub fn of(part: &Part, name: &OsStr) -> Life {
        let maps =
            || std::fs::read_to_string(format!("/proc/{}/maps", part.word(Word::Pid))).unwrap_or_default();
        if part.end() != End::Silent {
            return Life::Ended;
        }
        match part.text("host") {
            Some(host) if host == host_name() => match maps().contains(&*name.to_string_lossy()) {
                true => Life::Running,
                false => Life::Ended,
            },
            _ => Life::Unseen,
        }
    }
}

/// A part, what it is called, and whether its process still runs.
type Found = (Part, OsString, Life);

/// All parts of a directory that can be read, and what is to be said of those that cannot.
fn read(directory: &Path) -> Result<(Vec<Found>, Vec<String>), Failure> {
    let private = Private::open_to_read(directory).map_err(|error| not_read(directory, &error))?;
    let names = names(&private).map_err(|error| not_read(directory, &error))?;
    let life = |name: &OsString| Part::peek(&private, name).map_or(Life::Ended, |part| Life::of(&part, name));
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && names.iter().any(|name| life(name) == Life::Running) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (mut parts, mut notes) = (Vec::new(), Vec::new());
    for name in names {
        let life = life(&name);
        match Part::read(&private, &name) {
            Ok(part) => parts.push((part, name, life)),
            Err(error) => notes.push(format!("{}: {error}", directory.join(&name).display())),
        }
    }
    Ok((parts, notes))
}

/// A thread by its number, and what it recorded.
type Recorded = (u32, Tape);

/// All threads of one process.
struct Process {
    rank: u32,
    parts: Vec<Part>,
    names: Vec<OsString>,
    life: Life,
}

impl Process {
    fn first(&self) -> &Part {
        // Parts come by threads, and there is at least one.
        &self.parts[0]
    }

    /// The part that says how the process ended, if any does.
    fn end(&self) -> (End, i64) {
        let told = self.parts.iter().find(|part| part.end() != End::Silent).unwrap_or(self.first());
        let fault = self.parts.iter().map(|part| part.word(Word::Fault)).find(|signal| *signal != 0);
        match (told.end(), fault) {
            (End::Silent, Some(signal)) => (End::Signal, signal as i64),
            (end, _) => (end, told.word(Word::EndCode) as i64),
        }
    }

    fn how_it_ended(&self) -> String {
        let inside = self.parts.iter().find_map(|part| {
            let position = part.word(Word::Inside).checked_sub(1)?;
            refrain_model::functions().get(usize::try_from(position).ok()?).map(|f| f.name)
        });
        let inside = inside.map_or(String::new(), |function| format!(" inside {function}"));
        let lost = match self.lost() {
            Lost::Nothing => "",
            Lost::NoRoom => "; calls are missing at the end, there was no room to keep them",
            Lost::Stopped => "; calls are missing at the end, tracing had stopped",
            Lost::Jumped => "; it left an MPI call by a jump, that call is missing",
            Lost::Interrupted => {
                "; a signal handler called it in the middle of another call, both are missing"
            }
        };
        let how = match self.end() {
            (End::Silent, _) if self.life == Life::Running => format!("was still running{inside}"),
            (End::Silent, _) if self.life == Life::Unseen => {
                format!("killed or crashed, or still running where it cannot be seen{inside}")
            }
            (End::Silent, _) => format!("killed or crashed{inside}"),
            (End::Exit, code) => format!("exit({code}) without MPI_Finalize{inside}"),
            (End::Abort, code) => format!("MPI_Abort with error code {code}"),
            (End::Signal, number) => format!("ended by {}{inside}", signal_name(number)),
            (End::Finalized, _) => "reached MPI_Finalize, but the trace was not written there".into(),
        };
        how + lost
    }

    fn ended_well(&self) -> bool {
        matches!(self.end(), (End::Exit, 0) | (End::Finalized, _)) && self.lost() == Lost::Nothing
    }

    fn lost(&self) -> Lost {
        self.parts.iter().map(Part::lost).find(|lost| *lost != Lost::Nothing).unwrap_or_default()
    }

    /// Ticks as nanoseconds, as far as the two clocks were compared.
    fn clock(&self) -> Converter {
        let part = self.first();
        let moment = |ticks, nanoseconds| (part.word(ticks), part.word(nanoseconds));
        let (start, end) =
            (moment(Word::Ticks, Word::Nanoseconds), moment(Word::LaterTicks, Word::LaterNanoseconds));
        Converter::between(start, end)
    }

    fn wall_ns(&self) -> u64 {
        let of = |part: &Part| part.word(Word::LaterNanoseconds).saturating_sub(part.word(Word::Nanoseconds));
        self.parts.iter().map(of).max().unwrap_or(0)
    }

    /// What each thread recorded, and what was wrong with the end of it.
    fn tapes(&self) -> Result<(Vec<Recorded>, Option<String>), String> {
        let (mut tapes, mut damage) = (Vec::new(), None);
        for part in &self.parts {
            let folding = folding(&part.options());
            let resumed = match &part.snapshot {
                Some(snapshot) => Tape::resume(snapshot, folding),
                None => Ok(Tape::new(folding)),
            };
            let mut tape = resumed.map_err(|error| error.to_string())?;
            tape.join_waits(lossy(&part.options()).waits);
            damage = refrain_encode::replay(&part.journal, &mut tape).err().map(|e| e.to_string()).or(damage);
            let thread = u32::try_from(part.word(Word::Thread)).map_err(|_| "it has no such thread")?;
            tapes.push((thread, tape));
        }
        Ok((tapes, damage))
    }

    /// Packs the times of its calls, as far as they were kept.
    fn pack_spans<W: Write>(&self, directory: &Path, time: &Time, to: &mut Writer<W>) -> Result<(), String> {
        let size = self.size()?;
        let (tapes, _) = self.tapes()?;
        let private = Private::open_to_read(directory).map_err(|error| error.to_string())?;
        let clock = self.clock();
        let nanoseconds = |ticks: u64| clock.nanoseconds(ticks) as i64;
        for ((thread, tape), (part, name)) in tapes.iter().zip(self.parts.iter().zip(&self.names)) {
            let (Some(member), Some(mut packer)) = (member(size, self.rank, *thread), Packer::new(time))
            else {
                continue;
            };
            let log = private.read(&log_name(name)).map_err(|error| error.to_string())?;
            let entries = Entries::new(BufReader::new(log.take(part.word(Word::Spans))));
            let key = Key { member: member.into(), lane: 0 };
            let packed = pack(to, key, &mut packer, entries, &tape.about(), nanoseconds);
            packed.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn size(&self) -> Result<u32, String> {
        u32::try_from(self.first().word(Word::Size)).map_err(|_| "it has no such world".into())
    }

    /// What it recorded, how it spent its time, and what was wrong with the end of it.
    fn bundle(&self) -> Result<(Bundle, Profile, Option<String>), String> {
        let size = self.size()?;
        let (mut tapes, damage) = self.tapes()?;
        let clock = self.clock();
        let nanoseconds = |ticks: u64| clock.length(ticks);
        let profile = self.profile(&tapes, nanoseconds);
        let tapes = tapes.iter_mut().map(|(thread, tape)| (*thread, tape));
        let bundle =
            Tape::bundle((self.rank, size), tapes, nanoseconds).map_err(|error| error.to_string())?;
        Ok((bundle, profile, damage))
    }

    /// A part begins when MPI is up, and knows the time as of the last time it looked at the clock.
    fn profile(&self, tapes: &[(u32, Tape)], nanoseconds: impl Fn(u64) -> u64) -> Profile {
        let mut functions: BTreeMap<u16, u64> = BTreeMap::new();
        let mut main = (self.wall_ns(), 0);
        for (thread, tape) in tapes {
            let spent = tape.spent();
            if *thread == 0 {
                let since = nanoseconds(spent.all.saturating_sub(spent.starting));
                main = (self.wall_ns().saturating_sub(since), nanoseconds(spent.all));
            }
            for (function, ticks) in spent.functions {
                let sum = functions.entry(function).or_default();
                *sum = sum.saturating_add(nanoseconds(ticks));
            }
        }
        Profile::of_rank(self.rank, main, functions)
    }
}

fn folding(options: &[(String, String)]) -> Folding {
    let said = options.iter().find(|(option, _)| option == "fold");
    said.and_then(|(_, value)| value.parse().ok()).unwrap_or_default()
}

/// What the run was allowed to lose.
fn lossy(options: &[(String, String)]) -> Lossy {
    let said = options.iter().find(|(option, _)| option == "lossy");
    Lossy::read(said.map(|(_, value)| value.as_str())).unwrap_or_default()
}

/// What all ranks that are there know together, where something may be lost. If one is missing nobody can tell which tags
/// matter; means are then of the others.
fn agreed(processes: &[Process], size: u32, lossy: &Lossy) -> Agreed {
    let mut all = Agreed::default();
    if !lossy.needs_agreement() {
        return all;
    }
    for process in processes {
        let Ok((bundle, _, damage)) = process.bundle() else {
            // Its calls are not in the trace: it has no share in means.
            all.tags.absorb(Tags::unknown());
            continue;
        };
        let missing = damage.is_some() || processes.len() < size as usize;
        let own = Agreed::of(&bundle, process.rank, size, missing, lossy);
        all.absorb(own.unwrap_or_else(|_| Agreed::unknown()));
    }
    all
}

pub fn signal_name(number: i64) -> String {
    const NAMES: [(i32, &str); 18] = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    let known = NAMES.iter().find(|(n, _)| i64::from(*n) == number);
    known.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}

/// More ranks than any run has.
const MOST_RANKS: u64 = 1 << 24;

/// The processes of the newest run, by rank.
fn processes(parts: Vec<Found>, notes: &mut Vec<String>) -> Vec<Process> {
    let mut by_process: BTreeMap<(u64, String, u64), Process> = BTreeMap::new();
    for (part, name, life) in parts {
        let Some(rank) = part.rank() else { continue };
        let host = part.text("host").unwrap_or_default().to_owned();
        let key = (part.word(Word::Rank), host, part.word(Word::Pid));
        let new = || Process { rank, parts: Vec::new(), names: Vec::new(), life: Life::Ended };
        let process = by_process.entry(key).or_insert_with(new);
        process.life = process.life.max(life);
        process.parts.push(part);
        process.names.push(name);
    }
    let mut processes: Vec<Process> = by_process.into_values().collect();
    for process in &mut processes {
        let named = std::mem::take(&mut process.parts).into_iter().zip(std::mem::take(&mut process.names));
        let mut named: Vec<_> = named.collect();
        named.sort_by_key(|(part, _)| part.word(Word::Thread));
        (process.parts, process.names) = named.into_iter().unzip();
    }
    let started = |process: &Process| process.first().word(Word::Started);
    processes.sort_by_key(|process| std::cmp::Reverse(started(process)));
    // Of one run with the newest, as far as can be told.
    let run = |process: &Process| {
        let first = process.first();
        (first.word(Word::Size), ["run", "command", "library"].map(|key| first.text(key).map(str::to_owned)))
    };
    let newest = processes.first().map(run);
    let all = processes.len();
    let mut by_rank: BTreeMap<u32, Process> = BTreeMap::new();
    for process in processes {
        let (size, rank) = (process.first().word(Word::Size), process.rank);
        if Some(run(&process)) == newest && u64::from(rank) < size && size <= MOST_RANKS {
            by_rank.entry(rank).or_insert(process);
        }
    }
    if by_rank.len() < all {
        notes.push(format!("{} of an earlier run left out", plural((all - by_rank.len()) as u64, "process")));
    }
    by_rank.into_values().collect()
}

/// Merges in pairs of about the same size, as the ranks themselves would.
#[derive(Default)]
struct Merging(Vec<(u32, Bundle)>);

impl Merging {
    fn add(&mut self, mut bundle: Bundle) -> Result<(), String> {
        let mut level = 0;
        while let Some((_, before)) = self.0.pop_if(|(known, _)| *known == level) {
            bundle = merge(before, bundle).map_err(|error| error.to_string())?;
            level += 1;
        }
        self.0.push((level, bundle));
        Ok(())
    }

    fn finish(self) -> Result<Bundle, String> {
        let from_the_last = self.0.into_iter().rev().map(|(_, bundle)| bundle);
        from_the_last
            .map(Ok)
            .reduce(|after: Result<Bundle, String>, before| merge(before?, after?).map_err(|e| e.to_string()))
            .unwrap_or_else(|| Ok(Bundle::default()))
    }
}

fn assemble(processes: &[Process], notes: &mut Vec<String>) -> Result<Trace, String> {
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
    let mut merging = Merging::default();
    let mut bar = Bar::new("recovering");
    let lossy = lossy(&meta.options);
    let agreed = agreed(processes, size, &lossy);
    notes.extend(agreed.failed(&lossy).into_iter().map(str::to_owned));
    notes.extend(agreed.told());
    for (done, process) in processes.iter().enumerate() {
        bar.show(done as u64, processes.len() as u64);
        let rank = process.rank;
        hosts.entry(process.first().text("host").unwrap_or("?").to_owned()).or_default().push(rank);
        let how = match process.bundle() {
            Ok((mut own, profile, damage)) => {
                if lossy.at_the_end() {
                    let mut changed = own.clone();
                    let fold = folding(&meta.options);
                    match lose(&mut changed, (rank, size), (&lossy, fold), &agreed) {
                        Ok(_) => own = changed,
                        Err(why) => notes.push(format!(
                            "rank {rank}: nothing was lost, as it could not be read back ({why})"
                        )),
                    }
                }
                merging.add(own)?;
                if meta.timed {
                    let before = meta.profile.take();
                    meta.profile = Some(before.map_or(profile.clone(), |before| before.join(&profile)));
                }
                let damage = damage.map_or_else(String::new, |damage| {
                    meta.complete = false;
                    format!("; calls are missing at the end: {damage}")
                });
                process.how_it_ended() + &damage
            }
            Err(error) => {
                meta.complete = false;
                format!("what it recorded cannot be read: {error}")
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
        endings.push(("nothing was kept".into(), missing));
    }
    let mut told: Vec<String> =
        endings.into_iter().map(|(how, ranks)| format!("{}: {how}", of_ranks(&ranks))).collect();
    told.append(notes);
    meta.notes = told;
    meta.hosts = hosts.into_iter().map(|(host, ranks)| (host, RankList::from_sorted(&ranks))).collect();
    if let Some(profile) = &mut meta.profile {
        profile.settle();
    }
    let mut bundle = merging.finish()?;
    if matches!(folding(&meta.options), Folding::Loops { together: true, .. }) {
        bundle.score().map_err(|error| error.to_string())?;
    }
    bundle.canonical().map_err(|error| error.to_string())?;
    Ok(Trace { meta, bundle })
}

#[cfg(test)]
mod tests {
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
        let refused = command(&parts, None, false).unwrap_err();
        assert!(refused.to_string().contains("a run on elsewhere (process 7)"), "{refused}");
        assert!(!trace.exists());
        assert!(command(&parts, Some(folder.path("y.rfn")), false).is_ok());
        assert!(command(&parts, None, true).is_ok() && trace.exists());
    }
}
