//! One trace of what the processes of a run have left in the directory of its parts.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use refrain_fold::ranks::RankList;
use refrain_references::parts::{Process, State};
use refrain_references::{ABI, Joining};
use refrain_tracefile::chunks::{Merger, Section};
use refrain_tracefile::private::Private;
use refrain_tracefile::{Meta, Replace, Trace};
use refrain_views::human::plural;

use crate::failure::{Failure, not_saved};

/// What the processes of a run left.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Programs in the order in which they began, each with one process of each rank that ran it.
    pub programs: Vec<Vec<Process>>,
    /// Processes that were forked and became other programs outside the emulator.
    pub replaced: usize,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub ranks: u32,
    pub threads: u64,
    pub references: u64,
    pub bytes: u64,
    pub complete: bool,
    /// Processes that became other programs, which are not recorded.
    pub replaced: u64,
}

const ENDINGS: [&str; 5] = ["process", "thread", "chunks", "new", "switch"];

/// Whether it is one of the files that processes leave.
fn is_ours(name: &OsStr) -> bool {
    Path::new(name).extension().is_some_and(|end| ENDINGS.iter().any(|known| end == *known))
}

/// Whether there is anything of the kind.
pub fn is_there(parts: &Path) -> bool {
    let names = Private::open(parts).and_then(|private| private.names()).unwrap_or_default();
    names.iter().any(|name| Path::new(name).extension().is_some_and(|end| end == "process"))
}

/// Removes all of it.
pub fn clear(parts: &Path) -> io::Result<()> {
    let private = Private::open(parts)?;
    for name in private.names()?.iter().filter(|name| is_ours(name)) {
        private.remove(name)?;
    }
    Ok(())
}

pub fn left(private: &Private) -> io::Result<Left> {
    let mut processes = Vec::new();
    for name in private.names()? {
        if Path::new(&name).extension().is_some_and(|end| end == "process") {
            let mut text = String::new();
            private.read(&name)?.read_to_string(&mut text)?;
            processes.extend(Process::from_text(&text));
        }
    }
    Ok(programs(processes))
}

/// Which processes are one program. Ranks that a launcher started are one, and so is what they became. Of others, the first
/// process of each rank that ran a program is one with the first of other ranks, and so on.
fn programs(mut processes: Vec<Process>) -> Left {
    processes.sort_by_key(|process| (process.began, process.rank, process.pid, process.image));
    let mut left = Left::default();
    let mut known: HashMap<(Option<u32>, String, bool, u32, usize), usize> = HashMap::new();
    let mut times: HashMap<(u32, String, bool), usize> = HashMap::new();
    for process in processes {
        let is_forked = process.parent != 0;
        match process.state {
            State::Continued if is_forked => continue,
            State::Replaced if is_forked => {
                left.replaced += 1;
                continue;
            }
            _ => {}
        }
        let key = if process.is_first {
            // A launcher may have started several programs.
            (Some(process.image), String::new(), false, process.world, 0)
        } else {
            let nth = times.entry((process.rank, process.program.clone(), is_forked)).or_default();
            *nth += 1;
            (None, process.program.clone(), is_forked, process.world, *nth)
        };
        let program = *known.entry(key).or_insert(left.programs.len());
        match left.programs.get_mut(program) {
            Some(of) if of.iter().all(|known| known.rank != process.rank) => of.push(process),
            _ => left.programs.push(vec![process]),
        }
    }
    left.programs.iter_mut().for_each(|program| program.sort_by_key(|process| process.rank));
    left
}

/// The threads of a process that have parts.
fn threads(names: &[OsString], process: &Process) -> Vec<u32> {
    let start = format!("{}-", process.stem());
    let number = |name: &OsString| name.to_str()?.strip_prefix(&start)?.strip_suffix(".thread")?.parse().ok();
    let mut threads: Vec<u32> = names.iter().filter_map(number).collect();
    threads.sort();
    threads
}

/// Whether one of these processes has made calls that are recorded elsewhere.
pub fn has_marks(private: &Private, processes: &[Process]) -> bool {
    let names = private.names().unwrap_or_default();
    let has = |process: &Process, thread| {
        let mut bytes = Vec::new();
        let part = private.read(&OsString::from(process.part(thread))).ok();
        part.and_then(|mut file| file.read_to_end(&mut bytes).ok());
        refrain_tracefile::read(&bytes).is_ok_and(|part| refrain_references::has_marks(&part.bundle))
    };
    processes.iter().any(|process| threads(&names, process).into_iter().any(|thread| has(process, thread)))
}

fn not_joined(error: &refrain_references::Error) -> Failure {
    Failure::new(format!("what the threads recorded cannot be joined: {error}"))
}

/// Makes a trace of these processes, which are one program. `meta` says what the run was. Nothing where nothing was recorded.
pub fn write(
    private: &Private,
    processes: &[Process],
    mut meta: Meta,
    out: &Path,
    replace: Replace,
) -> Result<Option<Written>, Failure> {
    let cannot = |what: &OsStr, why: String| {
        Failure::new(format!("{} cannot be read: {why}", private.path().join(what).display()))
    };
    let names = private.names().map_err(|error| cannot(OsStr::new(""), error.to_string()))?;
    let world = processes.first().map_or(1, |process| process.world);
    let mut joining = Joining::default();
    let mut hosts: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut written =
        Written { ranks: world, threads: 0, references: 0, bytes: 0, complete: true, replaced: 0 };
    let mut merger = Merger::new(
        crate::recover::tempfile()
            .map_err(|error| Failure::new(format!("a temporary file cannot be made: {error}")))?,
    );
    let mut has_chunks = false;
    for process in processes {
        hosts.entry(process.host.clone()).or_default().push(process.rank);
        let parts = threads(&names, process);
        let lost = u64::from(process.threads).saturating_sub(parts.len() as u64);
        if lost > 0 && process.state == State::Exited {
            written.complete = false;
            let lost = plural(lost, "thread");
            meta.notes
                .push(format!("rank {}: {lost} left nothing, which could not be written", process.rank));
        }
        for thread in parts {
            let name = OsString::from(process.part(thread));
            let mut bytes = Vec::new();
            let read = private.read(&name).and_then(|mut file| file.read_to_end(&mut bytes));
            read.map_err(|error| cannot(&name, error.to_string()))?;
            let part = refrain_tracefile::read(&bytes).map_err(|error| cannot(&name, error.to_string()))?;
            let references = part.meta.options.iter().find(|(name, _)| name == "references");
            let references = references.and_then(|(_, count)| count.parse::<u64>().ok()).unwrap_or(0);
            written.references += references;
            if !part.meta.complete && process.state == State::Exited {
                let why = part.meta.notes.first().map_or("could not be written", String::as_str);
                meta.notes.push(format!(
                    "rank {}, thread {thread} stops after {}: the rest is lost ({why})",
                    process.rank,
                    plural(references, "reference")
                ));
            }
            written.threads += 1;
            written.complete &= part.meta.complete;
            joining.add(part.bundle).map_err(|error| not_joined(&error))?;
            let name = OsString::from(process.chunks(thread));
            if let Ok(file) = private.read(&name)
                && file.metadata().is_ok_and(|about| about.len() > 0)
            {
                let wrong = |error: refrain_tracefile::chunks::Error| cannot(&name, error.to_string());
                let mut section = Section::open(file).map_err(wrong)?;
                has_chunks |= section.streams().next().is_some();
                merger.add(&mut section, Some).map_err(wrong)?;
            }
        }
        let who = if world > 1 { format!("rank {}", process.rank) } else { "the program".to_owned() };
        match process.state {
            State::Exited => {}
            State::Continued => {
                meta.notes.push(format!("{who} became {}, which is recorded by itself", process.became));
            }
            State::Replaced => {
                written.complete = false;
                written.replaced += 1;
                meta.notes.push(format!("{who} became {}, which is not recorded", process.became));
            }
            State::Signalled => {
                written.complete = false;
                meta.notes
                    .push(format!("{who} died of a signal; of its other threads the very last is missing"));
            }
            State::Running => {
                written.complete = false;
                meta.notes.push(format!(
                    "{who} did not come to its end: what it did after the last time that it was written, about every \
                     second, is missing"
                ));
            }
        }
        for note in &process.notes {
            meta.notes.push(if world > 1 { format!("{who}: {note}") } else { note.clone() });
        }
    }
    let missing = u64::from(world) - processes.len() as u64;
    if missing > 0 && processes.iter().any(|process| process.is_first) {
        written.complete = false;
        meta.notes.push(format!("{} left nothing", plural(missing, "rank")));
    }
    let Some(bundle) = joining.finish().map_err(|error| not_joined(&error))? else { return Ok(None) };
    meta.refrain_version = env!("CARGO_PKG_VERSION").into();
    meta.abi = ABI.into();
    meta.ranks = world;
    meta.hosts = hosts.into_iter().map(|(host, ranks)| (host, RankList::from_sorted(&ranks))).collect();
    meta.split = true;
    meta.complete = written.complete;
    if meta.started == 0 {
        meta.started = processes.iter().map(|process| process.started).min().unwrap_or(0);
    }
    let finished = merger.finish();
    let mut chunks: Option<File> = None;
    if has_chunks {
        let file =
            finished.map_err(|error| Failure::new(format!("a temporary file cannot be written: {error}")))?;
        chunks = Some(file);
    }
    let trace = Trace { meta, bundle };
    written.bytes = refrain_tracefile::save_with(&trace, chunks.as_mut(), out, replace)
        .map_err(|error| not_saved(&error))?;
    Ok(Some(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(rank: u32, pid: u32, program: &str, began: u64) -> Process {
        Process { rank, world: 2, pid, program: program.into(), began, ..Process::default() }
    }

    #[test]
    fn processes_of_one_program() {
        let first =
            |rank, pid, program, began| Process { is_first: true, ..process(rank, pid, program, began) };
        let processes = vec![
            first(0, 10, "sh", 0),
            Process { image: 1, ..first(0, 10, "app", 90) },
            process(0, 11, "cp", 20),
            process(0, 12, "cp", 30),
            Process { parent: 10, ..process(0, 13, "sh", 40) },
            Process { parent: 10, state: State::Replaced, ..process(0, 14, "sh", 50) },
            Process { parent: 10, state: State::Continued, ..process(0, 15, "sh", 50) },
            // Another host's clock is ahead.
            first(1, 20, "sh", 1000),
            Process { image: 1, ..first(1, 20, "other", 1090) },
            process(1, 21, "cp", 1020),
            Process { parent: 20, ..process(1, 22, "sh", 1040) },
        ];
        let left = programs(processes);
        let shown: Vec<Vec<(u32, u32)>> =
            left.programs.iter().map(|all| all.iter().map(|p| (p.pid, p.image)).collect()).collect();
        let expected: [&[(u32, u32)]; 5] =
            [&[(10, 0), (20, 0)], &[(11, 0), (21, 0)], &[(12, 0)], &[(13, 0), (22, 0)], &[(10, 1), (20, 1)]];
        assert_eq!(shown, expected);
        assert_eq!(left.replaced, 1);
    }
}
