//! A trace from the parts that a run left behind when it ended before it could write one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use refrain_encode::Tape;
use refrain_fold::bundle::{Bundle, merge};
use refrain_fold::ranks::RankList;
use refrain_tracefile::part::{self, End, Part, Word};
use refrain_tracefile::{Meta, RankTime, Trace};
use refrain_views::human::{plural, ranks as rank_list};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::say;

/// How long to wait for processes that still run when their launcher has gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The trace that a directory of parts belongs to, if it is named as `part::directory` names them.
fn trace_of(directory: &Path) -> Option<PathBuf> {
    let name = directory.file_name()?.to_str()?.strip_suffix(".parts")?;
    Some(directory.with_file_name(name))
}

/// `refrain recover`.
pub fn command(directory: &Path, out: Option<PathBuf>, force: bool) -> Result<ExitCode, Failure> {
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.into());
    let Some(shown) = out.or_else(|| trace_of(&absolute)) else {
        return Err(Failure::new(format!("{} does not say what trace it belongs to", directory.display()))
            .help("name one: --out FILE"));
    };
    recover(directory, &shown, force)?;
    say(&crate::reading::closing_line(&shown, &shown));
    say(&format!("{} is still there; remove it when you do not need it any more", directory.display()));
    Ok(ExitCode::SUCCESS)
}

/// Reads all parts, merges them, writes the trace.
pub fn recover(directory: &Path, out: &Path, force: bool) -> Result<(), Failure> {
    let (parts, mut notes) = read(directory)?;
    if parts.is_empty() {
        let failure = Failure::new(format!("{} has no part of a trace", directory.display()));
        return Err(match notes.first() {
            Some(note) => failure.help(note.clone()),
            None => failure.help("name the directory that ends in .parts, beside where the trace should be"),
        });
    }
    let trace = assemble(parts, &mut notes).map_err(|error| {
        Failure::new(format!("the parts in {} do not make a trace: {error}", directory.display()))
    })?;
    refrain_tracefile::save(&trace, out, force).map_err(|error| {
        Failure::new(error.to_string()).help(format!(
            "the parts are kept; `refrain recover {} --out FILE` writes it elsewhere",
            directory.display()
        ))
    })?;
    Ok(())
}

/// All parts of a directory that can be read, and what is to be said of those that cannot.
fn read(directory: &Path) -> Result<(Vec<Part>, Vec<String>), Failure> {
    let entries = std::fs::read_dir(directory)
        .map_err(|e| Failure::new(format!("{} cannot be read: {e}", directory.display())))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == part::EXTENSION))
        .collect();
    paths.sort();
    wait_for(&paths);
    let (mut parts, mut notes) = (Vec::new(), Vec::new());
    for path in paths {
        match Part::read(&path) {
            Ok(part) => parts.push(part),
            Err(error) => notes.push(format!("{}: {error}", path.display())),
        }
    }
    Ok((parts, notes))
}

/// Waits a little for processes of this machine that have not ended yet.
fn wait_for(paths: &[PathBuf]) {
    let here = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let runs = |path: &PathBuf| {
        Part::read(path).is_ok_and(|part| {
            part.text("host") == Some(here.trim())
                && is_alive(part.word(Word::Pid))
                && part.end() == End::Silent
        })
    };
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && paths.iter().any(runs) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A zombie has ended.
fn is_alive(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// All threads of one process.
struct Process {
    rank: u32,
    parts: Vec<Part>,
}

impl Process {
    fn first(&self) -> &Part {
        // Parts come by threads, and there is at least one.
        &self.parts[0]
    }

    /// The part that says how the process ended, if any does.
    fn end(&self) -> (End, i64) {
        let told = self.parts.iter().find(|part| part.end() != End::Silent).unwrap_or(self.first());
        (told.end(), told.word(Word::EndCode) as i64)
    }

    fn how_it_ended(&self) -> String {
        let inside = self.parts.iter().find_map(|part| {
            let position = part.word(Word::Inside).checked_sub(1)?;
            refrain_model::functions().get(usize::try_from(position).ok()?).map(|f| f.name)
        });
        let inside = inside.map_or(String::new(), |function| format!(" inside {function}"));
        let lost = if self.parts.iter().any(|part| part.word(Word::Lost) != 0) {
            "; calls are missing at the end, there was no room to keep them"
        } else {
            ""
        };
        let how = match self.end() {
            (End::Silent, _) => format!("killed or crashed{inside}"),
            (End::Exit, code) => format!("exit({code}) without MPI_Finalize{inside}"),
            (End::Abort, code) => format!("MPI_Abort with error code {code}"),
            (End::Signal, number) => format!("ended by {}{inside}", signal_name(number)),
            (End::Finalized, _) => "reached MPI_Finalize, but the trace was not written there".into(),
        };
        how + lost
    }

    fn ended_well(&self) -> bool {
        matches!(self.end(), (End::Exit, 0) | (End::Finalized, _))
            && self.parts.iter().all(|part| part.word(Word::Lost) == 0)
    }

    /// Ticks as nanoseconds, as far as the two clocks were compared.
    fn rate(&self) -> f64 {
        let part = self.first();
        let ticks = part.word(Word::LaterTicks).saturating_sub(part.word(Word::Ticks));
        let nanoseconds = part.word(Word::LaterNanoseconds).saturating_sub(part.word(Word::Nanoseconds));
        if ticks == 0 { 1.0 } else { nanoseconds as f64 / ticks as f64 }
    }

    fn wall_ns(&self) -> u64 {
        let of = |part: &Part| part.word(Word::LaterNanoseconds).saturating_sub(part.word(Word::Nanoseconds));
        self.parts.iter().map(of).max().unwrap_or(0)
    }

    /// What it recorded, and its time in MPI.
    fn bundle(&self) -> Result<(Bundle, u64), String> {
        let mut tapes = Vec::new();
        for part in &self.parts {
            let resumed = part.snapshot.as_ref().map_or_else(|| Ok(Tape::default()), Tape::resume);
            let mut tape = resumed.map_err(|error| error.to_string())?;
            refrain_encode::replay(&part.journal, &mut tape).map_err(|error| error.to_string())?;
            tapes.push((part.word(Word::Thread) as u32, tape));
        }
        let rate = self.rate();
        let nanoseconds = |ticks: u64| (ticks as f64 * rate).round() as u64;
        let time = nanoseconds(tapes.iter().map(|(_, tape)| tape.ticks()).sum());
        let tapes = tapes.iter_mut().map(|(thread, tape)| (*thread, tape));
        let bundle = Tape::bundle(self.rank, tapes, nanoseconds).map_err(|error| error.to_string())?;
        Ok((bundle, time))
    }
}

fn signal_name(number: i64) -> String {
    const NAMES: [(i32, &str); 17] = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
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

/// The processes of the newest run, by rank.
fn processes(parts: Vec<Part>, notes: &mut Vec<String>) -> Vec<Process> {
    let mut by_process: BTreeMap<(String, u64), Vec<Part>> = BTreeMap::new();
    for part in parts {
        let host = part.text("host").unwrap_or_default().to_owned();
        by_process.entry((host, part.word(Word::Pid))).or_default().push(part);
    }
    let mut by_rank: BTreeMap<u32, Process> = BTreeMap::new();
    let mut older = 0;
    for mut parts in by_process.into_values() {
        parts.sort_by_key(|part| part.word(Word::Thread));
        let Some(rank) = parts[0].rank() else { continue };
        let process = Process { rank, parts };
        let started = |process: &Process| process.first().word(Word::Started);
        match by_rank.get(&rank) {
            Some(known) if started(known) >= started(&process) => older += 1,
            Some(_) => {
                older += 1;
                by_rank.insert(rank, process);
            }
            None => drop(by_rank.insert(rank, process)),
        }
    }
    if older > 0 {
        notes.push(format!("{} of an earlier run left out", plural(older, "process")));
    }
    by_rank.into_values().collect()
}

fn assemble(parts: Vec<Part>, notes: &mut Vec<String>) -> Result<Trace, String> {
    let processes = processes(parts, notes);
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
    let mut bundle = Bundle::default();
    let mut bar = Bar::new("recovering");
    for (done, process) in processes.iter().enumerate() {
        bar.show(done as u64, processes.len() as u64);
        let rank = process.rank;
        hosts.entry(process.first().text("host").unwrap_or("?").to_owned()).or_default().push(rank);
        let how = match process.bundle() {
            Ok((own, ns)) => {
                bundle = merge(bundle, own).map_err(|error| error.to_string())?;
                if meta.timed {
                    meta.mpi_time = Some(add(meta.mpi_time, rank, ns));
                }
                process.how_it_ended()
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
    let mut told: Vec<String> = endings
        .into_iter()
        .map(|(how, ranks)| {
            let word = if ranks.len() == 1 { "rank" } else { "ranks" };
            format!("{word} {}: {how}", rank_list(&ranks))
        })
        .collect();
    told.append(notes);
    meta.notes = told;
    meta.hosts = hosts.into_iter().map(|(host, ranks)| (host, RankList::from_sorted(&ranks))).collect();
    bundle.canonical().map_err(|error| error.to_string())?;
    Ok(Trace { meta, bundle })
}

fn add(all: Option<RankTime>, rank: u32, ns: u64) -> RankTime {
    let own = RankTime { total_ns: ns, min: (rank, ns), max: (rank, ns) };
    all.map_or(own, |all| RankTime {
        total_ns: all.total_ns.saturating_add(ns),
        min: if ns < all.min.1 { own.min } else { all.min },
        max: if ns > all.max.1 { own.max } else { all.max },
    })
}
