//! The commands that read a trace, on one of memory references.

use std::fs::File;
use std::io::{BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use refrain_addresses::{BATCH, Batch, Format, Reader, Reference, kind};
use refrain_fold::bundle::sites::NO_MODULE;
use refrain_references::{Access, Error as Bad, Event, is_memory};
use refrain_report::Memory;
use refrain_sites::Binaries;
use refrain_tracefile::{Loaded, Trace, Within};
use refrain_views::info::{Beside, File as About};
use refrain_views::plot;
use refrain_views::references::{self, Recorded, Selection};

use crate::ahead::{self, Limited, Work};
use crate::failure::{Failure, not_read};
use crate::paint::{self, Look};
use crate::progress::Bar;
use crate::reading::{NO, finish, output, shown};
use crate::say;

/// What a file has of memory references.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Has {
    /// What is no file, or no trace, has none.
    None,
    /// Nothing else.
    Only,
    /// Beside calls: there.
    Beside(Range<u64>),
}

fn has(path: &Path) -> Has {
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|about| about.is_file()));
    let Some(Ok(loaded)) = file.map(|file| refrain_tracefile::load(BufReader::new(file))) else {
        return Has::None;
    };
    match loaded.references {
        Some(range) => Has::Beside(range),
        None if refrain_tracefile::meta(&loaded.bytes).is_ok_and(|meta| is_memory(&meta)) => Has::Only,
        None => Has::None,
    }
}

/// Whether a file has memory references and no calls.
pub fn is_one(path: &Path) -> bool {
    has(path) == Has::Only
}

/// Whether a file has memory references, with or without calls.
pub fn are_in(path: &Path) -> bool {
    has(path) != Has::None
}

/// The user has asked for those of a file: whether it is to be read for them.
pub fn are_asked(path: &Path, asked: bool) -> Result<bool, Failure> {
    match has(path) {
        Has::Only => Ok(true),
        Has::Beside(_) => Ok(asked),
        Has::None if asked => Err(Failure::new(format!("{} has no memory references", path.display()))
            .help("record them with the calls: refrain run --memory -- mpiexec -n 4 ./app")),
        Has::None => Ok(false),
    }
}

/// How many there are, for an overview of a file that has calls too.
pub fn beside(path: &Path) -> Result<Option<Beside>, Failure> {
    if !matches!(has(path), Has::Beside(_)) {
        return Ok(None);
    }
    let recorded = open(path)?.recorded;
    let wrong = |error: String| Failure::new(format!("{}, its memory references: {error}", path.display()));
    let counts = references::counts(&recorded).map_err(|error| wrong(error.to_string()))?;
    let threads = recorded.threads(None, None).map_err(|error| wrong(error.to_string()))?;
    let (threads, meta) = (threads.len() as u64, recorded.trace.meta);
    let (complete, notes) = (meta.complete, meta.notes);
    Ok(Some(Beside { references: counts.references, threads, complete, notes }))
}

/// A command that reads calls is given one.
pub fn refused(path: &Path) -> Failure {
    Failure::new(format!("{} is a trace of memory references, not of MPI calls", path.display())).help(
        "`refrain info`, `dump`, `loops`, `stats`, `report`, `verify`, `convert` and `simulate` read it",
    )
}

struct Opened {
    recorded: Recorded,
    sections: Vec<(&'static str, u64)>,
    length: u64,
}

fn open(path: &Path) -> Result<Opened, Failure> {
    let file = File::open(path).map_err(|error| not_read(path, &error))?;
    let loaded = refrain_tracefile::load(BufReader::new(file)).map_err(|error| not_read(path, &error))?;
    let part = loaded.references.clone();
    let loaded = match &part {
        Some(range) => within(path, range.clone()).and_then(refrain_tracefile::load),
        None => Ok(loaded),
    };
    let Loaded { bytes, chunks, whole, length, .. } = loaded.map_err(|error| not_read(path, &error))?;
    let contents = refrain_tracefile::contents(&bytes);
    let contents = contents.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    if !whole {
        say(&format!(
            "{}: the file is cut short; the last of its references in chunks are lost",
            path.display()
        ));
    }
    let mut sections: Vec<(&str, u64)> =
        contents.sections.iter().map(|info| (info.name, info.stored as u64)).collect();
    if let Some(chunks) = &chunks {
        sections[0].1 += chunks.start - bytes.len() as u64;
        sections.push(("chunked", chunks.end - chunks.start));
    }
    let path = path.to_owned();
    let recorded = Recorded::new(contents.trace, move || {
        let Some(range) = chunks.clone() else { return Ok(None) };
        let whole = || Ok::<_, std::io::Error>(0..File::open(&path)?.metadata()?.len());
        let part = part.clone().map_or_else(whole, Ok);
        let file = part.and_then(|part| within(&path, part)).map_err(|error| Bad::Chunks(error.into()))?;
        Ok(Some(refrain_references::open(Box::new(file), range)?))
    });
    Ok(Opened { recorded, sections, length })
}

/// A part of a file.
fn within(path: &Path, part: Range<u64>) -> std::io::Result<Within<BufReader<File>>> {
    Within::new(BufReader::new(File::open(path)?), part)
}

/// The calls of the same run, where a file has them too.
fn calls(path: &Path) -> Result<Option<Trace>, Failure> {
    match has(path) {
        Has::Beside(_) => Ok(Some(crate::reading::open(path)?.trace)),
        _ => Ok(None),
    }
}

pub fn info(path: &Path, json: bool) -> Result<ExitCode, Failure> {
    let Opened { recorded, sections, length } = open(path)?;
    let name = path.to_string_lossy();
    let about = About { name: &name, bytes: length, sections: &sections, ..Default::default() };
    let write = if json { references::info_json } else { references::info_text };
    finish(path, write(&recorded, &about, &mut shown(json, Look::Facts)))
}

/// Options that are for calls; the name of one that was given.
pub fn refuse(path: &Path, option: Option<&str>) -> Result<(), Failure> {
    match option {
        Some(option) if matches!(has(path), Has::Beside(_)) => Err(Failure::new(format!(
            "{option} is for MPI calls, and --references shows references: leave one out"
        ))),
        Some(option) => {
            Err(Failure::new(format!("{option} is for MPI calls, and {} has none", path.display())))
        }
        None => Ok(()),
    }
}

/// Bytes of a line, about.
const LINE: u64 = 50;

/// How many references there are; it is said if they are many.
fn tell(path: &Path, recorded: &Recorded, bytes: u64, help: &str) -> u64 {
    let items = references::counts(recorded).map_or(0, |counts| counts.references);
    ahead::tell(path, Work { items, elements: 0 }, "reference", bytes, help);
    items
}

pub fn dump(
    path: &Path,
    which: &Selection,
    json: bool,
    sites: Option<&[PathBuf]>,
    limit: Option<u64>,
) -> Result<ExitCode, Failure> {
    let recorded = open(path)?.recorded;
    let is_all = which.ranks.is_none() && which.threads.is_none() && which.references == (0..u64::MAX);
    if is_all && limit.is_none() {
        tell(path, &recorded, LINE, "--limit N, --ranks and --calls choose some of them");
    }
    let names = sites.map(|folders| Binaries::new(&recorded.trace.bundle.sites, folders));
    let named = names.as_ref().map(|names| names as &dyn refrain_sites::Names);
    let calls = calls(path)?;
    let write = if json { references::dump_json } else { references::dump };
    let done = write(&recorded, which, named, calls.as_ref(), &mut Limited::new(output(), limit));
    names.iter().flat_map(Binaries::warnings).for_each(|warning| say(&warning));
    finish(path, done)
}

pub fn loops(path: &Path, json: bool, all: bool, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    let recorded = open(path)?.recorded;
    let names = Binaries::new(&recorded.trace.bundle.sites, folders);
    let write = if json { references::loops_json } else { references::loops_text };
    let done = write(&recorded, &names, all, &mut shown(json, Look::Tree));
    names.warnings().iter().for_each(|warning| say(warning));
    finish(path, done)
}

pub fn stats(path: &Path, json: bool, plot: bool, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    let recorded = open(path)?.recorded;
    let names = Binaries::new(&recorded.trace.bundle.sites, folders);
    let all = tell(path, &recorded, 0, "");
    let mut bar = Bar::new("reading");
    let stats = references::stats(&recorded, &names, &mut |done| bar.show(done, all));
    bar.clear();
    let stats = stats.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    names.warnings().iter().for_each(|warning| say(warning));
    if plot {
        let drawn = plot::references(&stats, &paint::canvas(), &mut shown(false, Look::Tables));
        return finish(path, drawn);
    }
    let write = if json { references::stats_json } else { references::stats_text };
    finish(path, write(&stats, &mut shown(json, Look::Tables)))
}

/// The page of `refrain report`.
pub fn page(path: &Path, folders: &[PathBuf]) -> Result<String, Failure> {
    let Opened { recorded, length, .. } = open(path)?;
    let names = Binaries::new(&recorded.trace.bundle.sites, folders);
    let all = tell(path, &recorded, 0, "");
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let input = Memory { recorded: &recorded, names: &names, file: &name, bytes: length };
    let mut bar = Bar::new("reading");
    let made = refrain_report::memory_page(&input, &mut |_, done, _| bar.show(done, all));
    bar.clear();
    names.warnings().iter().for_each(|warning| say(warning));
    made.map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

pub fn verify(path: &Path, quiet: bool) -> Result<ExitCode, Failure> {
    let recorded = match open(path) {
        Ok(opened) => opened.recorded,
        Err(failure) => {
            let _ = writeln!(
                shown(false, Look::Answer),
                "no: {}",
                refrain_sites::printable(&failure.to_string())
            );
            return Ok(ExitCode::from(NO));
        }
    };
    let calls = calls(path)?;
    let all = tell(path, &recorded, 0, "the digest is of every reference, so all are read");
    let mut bar = Bar::new("reading");
    let mut out = shown(false, Look::Answer);
    let mut told = |done| bar.show(done, all);
    let answer = references::verify(&recorded, calls.as_ref(), &mut told, quiet, &mut out);
    drop(out);
    bar.clear();
    match answer {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) => Ok(ExitCode::from(NO)),
        Err(error) => Err(Failure::new(format!("{}: {error}", path.display()))),
    }
}

/// The threads that are asked for, of one rank.
fn chosen(
    path: &Path,
    recorded: &Recorded,
    rank: Option<u32>,
    thread: Option<u32>,
) -> Result<Vec<(u32, u32)>, Failure> {
    let all = recorded.threads(None, None);
    let all = all.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    let asked = |place: &(u32, u32)| {
        rank.is_none_or(|rank| rank == place.0) && thread.is_none_or(|thread| thread == place.1)
    };
    let fits: Vec<(u32, u32)> = all.iter().copied().filter(asked).collect();
    match fits.first() {
        None => {
            let failure = Failure::new(format!("{} has no such thread", path.display()));
            Err(failure.help(format!("it has {}", list(&all))))
        }
        Some(first) if fits.iter().any(|place| place.0 != first.0) => {
            let what = format!("{} has several ranks, each with memory of its own", path.display());
            Err(Failure::new(what).help(format!("`--rank R` chooses one: it has {}", list(&fits))))
        }
        Some(_) => Ok(fits),
    }
}

fn list(all: &[(u32, u32)]) -> String {
    let shown: Vec<String> =
        all.iter().take(6).map(|(rank, thread)| format!("rank {rank} thread {thread}")).collect();
    let more = if all.len() > 6 { format!(" and {} more", all.len() - 6) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// The readers of all threads that are asked for.
pub fn readers(path: &Path, rank: Option<u32>, thread: Option<u32>) -> Result<Vec<Reader>, Failure> {
    let recorded = Arc::new(open(path)?.recorded);
    let places = chosen(path, &recorded, rank, thread)?;
    Ok(places.into_iter().map(|place| of_place(recorded.clone(), place)).collect())
}

/// The code that references came from.
pub fn sites(path: &Path) -> Result<refrain_fold::bundle::Sites, Failure> {
    Ok(open(path)?.recorded.trace.bundle.sites)
}

/// The reader of the only one.
pub fn reader(path: &Path, rank: Option<u32>, thread: Option<u32>) -> Result<Reader, Failure> {
    let recorded = open(path)?.recorded;
    match chosen(path, &recorded, rank, thread)?[..] {
        [place] => Ok(of_place(Arc::new(recorded), place)),
        ref several => {
            let what = format!("{} has several threads, and which one is not said", path.display());
            Err(Failure::new(what).help(format!("`--rank R --thread T`: it has {}", list(several))))
        }
    }
}

/// One thread's references as those of an address trace: with sizes, and with the instruction, which is its offset in its module
/// and the module's number from bit 40 on. An update is a read and a write.
fn of_place(recorded: Arc<Recorded>, place: (u32, u32)) -> Reader {
    let fields = Format::Rfn.keeps();
    let (send, receive) = sync_channel::<Result<Batch, String>>(8);
    std::thread::spawn(move || {
        let modules: Vec<u64> = recorded.trace.bundle.sites.modules.keys().copied().collect();
        let pc = |event: &Event| match modules.binary_search(&event.place.module) {
            Ok(number) if event.place.module != NO_MODULE => event.place.offset | (number as u64 + 1) << 40,
            _ => event.place.offset,
        };
        let references = match recorded.references(place) {
            Ok(references) => references,
            Err(error) => return drop(send.send(Err(error.to_string()))),
        };
        let mut batch = Batch::new();
        for event in references {
            let event = match event {
                Ok(event) => event,
                Err(error) => {
                    let _ = send.send(Ok(batch));
                    return drop(send.send(Err(error.to_string())));
                }
            };
            let size = u16::try_from(event.size).unwrap_or(u16::MAX);
            let reference =
                Reference { address: event.address, size, pc: pc(&event), ..Reference::default() };
            let kinds: &[u8] = match event.access {
                Access::Load => &[kind::READ],
                Access::Store => &[kind::WRITE],
                Access::Update => &[kind::READ, kind::WRITE],
                Access::Fetch => &[kind::FETCH],
            };
            kinds.iter().for_each(|&kind| batch.push(fields, Reference { kind, ..reference }));
            // Whoever listened may have heard enough.
            if batch.len() >= BATCH - 1 && send.send(Ok(std::mem::take(&mut batch))).is_err() {
                return;
            }
        }
        let _ = send.send(Ok(batch));
    });
    Reader::from_elsewhere(Format::Rfn, move |batch| {
        match receive.recv() {
            Ok(Ok(next)) => *batch = next,
            Ok(Err(why)) => {
                batch.clear();
                return Err(why);
            }
            Err(_) => batch.clear(),
        }
        Ok(())
    })
}
