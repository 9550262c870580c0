//! The commands that read a trace: open it, hand it to a view, turn the outcome into an exit code.

use std::fs::File;
use std::io::{BufReader, BufWriter, Cursor, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use refrain_fold::bundle::Index;
use refrain_model::choice;
use refrain_model::time::Time;
use refrain_sites::Binaries;
use refrain_tracefile::chunks::{self, Section};
use refrain_tracefile::{Contents, Error, Loaded, Trace};
use refrain_views::dump::Selection;
use refrain_views::flight::Picture;
use refrain_views::human::{plural, thousands};
use refrain_views::info::Beside;
use refrain_views::timed::Times;
use refrain_views::written::WITHOUT_TIMES;
use refrain_views::{dump, exact, info, plot, stats, verify, waits};

use crate::ahead::{self, Limited, Work};
use crate::args::{Format, Per};
use crate::failure::{Failure, not_read};
use crate::nothing::{self, Counted};
use crate::paint::{self, Look, Painted};
use crate::progress::Bar;
use crate::{addresses, references, say};

/// The answer is no.
pub const NO: u8 = 1;

/// A file's length and what it means.
pub struct Opened {
    length: u64,
    pub trace: Trace,
}

trait Source: Read + Seek {}
impl<T: Read + Seek> Source for T {}

/// A trace whose chunks stay where they are, and from where they can be read.
fn loaded(path: &Path) -> Result<(Loaded, Box<dyn Source>), Failure> {
    let load = || {
        let mut file = File::open(path)?;
        let mut source: Box<dyn Source> = if file.metadata()?.is_file() {
            Box::new(BufReader::new(file))
        } else {
            // A pipe cannot be read twice.
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Box::new(Cursor::new(bytes))
        };
        Ok((refrain_tracefile::load(&mut source)?, source))
    };
    load().map_err(|error: std::io::Error| not_read(path, &error))
}

pub fn open(path: &Path) -> Result<Opened, Failure> {
    let Loaded { bytes, whole, length, .. } = loaded(path)?.0;
    let trace = refrain_tracefile::read(&bytes).map_err(|error| unreadable(path, &error))?;
    if refrain_references::is_memory(&trace.meta) {
        return Err(references::refused(path));
    }
    say_cut(path, whole);
    ahead::tell_members(path, &trace);
    Ok(Opened { length, trace })
}

/// Fails if the calls of a trace are not those that were recorded: whoever makes them would make others.
pub fn as_recorded(path: &Path, trace: &Trace) -> Result<(), Failure> {
    let mut bar = Bar::new("checking");
    let report = verify::verify(trace, &mut |done, all| bar.show(done, all));
    bar.clear();
    let Some(problem) = report.problems.first() else { return Ok(()) };
    let failure = Failure::new(format!("{}: {problem}", path.display()));
    Err(failure.help("`refrain verify` says all that is wrong with it"))
}

fn say_cut(path: &Path, whole: bool) {
    if !whole {
        say(&format!(
            "{}: the file is cut short; of its numbers in chunks the last are lost",
            path.display()
        ));
    }
}

fn unreadable(path: &Path, error: &Error) -> Failure {
    if matches!(error, Error::Foreign { len: 1.. }) && addresses::is_address_trace(path) {
        let failure =
            Failure::new(format!("{} is an address trace, not a trace of MPI calls", path.display()));
        return failure.help("`refrain stats`, `refrain convert` and `refrain simulate` read it");
    }
    Failure::new(format!("{}: {error}", path.display()))
}

/// A reader that has seen enough (`| head`) is no error.
pub fn finish(path: &Path, done: Result<(), refrain_views::Error>) -> Result<ExitCode, Failure> {
    match done {
        Err(error) if !error.is_broken_pipe() => Err(Failure::new(format!("{}: {error}", path.display()))),
        _ => Ok(ExitCode::SUCCESS),
    }
}

pub type Output = BufWriter<std::io::StdoutLock<'static>>;

pub fn output() -> Output {
    BufWriter::with_capacity(1 << 16, std::io::stdout().lock())
}

/// The same with colours where there are any; none in JSON.
pub fn shown(json: bool, look: Look) -> Painted<Output> {
    let plain = json || !paint::stdout_is_painted();
    Painted::new(output(), if plain { Look::Plain } else { look })
}

pub fn info(path: &Path, json: bool) -> Result<ExitCode, Failure> {
    let (Loaded { bytes, chunks, references, length, .. }, source) = loaded(path)?;
    let Contents { mut trace, sections, .. } =
        refrain_tracefile::outline(&bytes).map_err(|error| unreadable(path, &error))?;
    if trace.meta.timed {
        // How long ranks ran stands behind all that an overview can do without.
        match refrain_tracefile::read(&bytes) {
            Ok(whole) => trace.meta.profile = whole.meta.profile,
            Err(error) => say(&format!("{}: how long ranks ran is not told: {error}", path.display())),
        }
    }
    ahead::tell_members(path, &trace);
    let mut sections: Vec<(&str, u64)> =
        sections.iter().map(|info| (info.name, info.stored as u64)).collect();
    if let Some(first) = chunks.as_ref().or(references.as_ref()) {
        // The header has entries for them.
        sections[0].1 += first.start - bytes.len() as u64;
    }
    let timed = match Times::open(&trace, source, chunks.clone()) {
        Ok(times) => times.map(|times| times.count()),
        Err(error) => {
            say(&format!("{}: times of single calls cannot be read: {error}", path.display()));
            Some(0)
        }
    };
    let large = [("chunked", chunks), ("references", references)];
    let large = large.into_iter().filter_map(|(name, range)| Some((name, range?)));
    sections.extend(large.map(|(name, range)| (name, range.end - range.start)));
    let name = path.to_string_lossy();
    let references = references::beside(path)?;
    let flight = match trace.meta.flight.is_empty() {
        true => Picture::default(),
        // It looks at calls, which an overview does not read.
        false => crate::flight::picture(&open(path)?.trace, &[]),
    };
    let file = info::File { name: &name, bytes: length, sections: &sections, references, timed, flight };
    let mut out = shown(json, Look::Facts);
    finish(
        path,
        if json {
            info::write_json(&trace, &file, &mut out)
        } else {
            info::write_text(&trace, &file, &mut out)
        },
    )
}

/// How much of where calls came from is shown, and where else their binaries may be.
pub struct From<'a> {
    pub stacks: bool,
    pub folders: &'a [PathBuf],
}

/// No calls of the trace have call sites.
pub fn no_sites(path: &Path) -> Failure {
    let failure = Failure::new(format!("{} does not say where calls were made", path.display()));
    failure.help("trace the run with --stacks site or --stacks full")
}

/// A trace, and when its calls began and ended where it says so.
pub fn open_timed(path: &Path) -> Result<(Trace, Option<Times>), Failure> {
    let (Loaded { bytes, chunks, whole, .. }, source) = loaded(path)?;
    let trace = refrain_tracefile::read(&bytes).map_err(|error| unreadable(path, &error))?;
    if refrain_references::is_memory(&trace.meta) {
        return Err(references::refused(path));
    }
    say_cut(path, whole);
    ahead::tell_members(path, &trace);
    say_without_times(path, &trace);
    let times = Times::open(&trace, source, chunks);
    let times = times.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    Ok((trace, times))
}

/// With sums of times from those of single calls, where there are any.
pub fn open_summed_up(path: &Path) -> Result<Trace, Failure> {
    let (mut trace, times) = open_timed(path)?;
    sum_up(path, &mut trace, times.as_ref());
    Ok(trace)
}

fn sum_up(path: &Path, trace: &mut Trace, times: Option<&Times>) {
    let Some(times) = times.filter(|times| *times.time() == Time::Exact) else { return };
    ahead::tell(path, Work::all(trace), "call", 0, "");
    let all = info::calls(&trace.bundle);
    let mut bar = Bar::new("summing up times");
    let done = exact::sum_up(trace, times, &mut |read| bar.show(read, all));
    bar.clear();
    let why = match done {
        Ok(true) => return,
        Ok(false) => "some calls have no times".to_owned(),
        Err(error) => error.to_string(),
    };
    say(&format!("{}: {why}; times of functions, sites, sizes and peers are rounded", path.display()));
}

/// The same with its times, and the length of the file.
pub fn open_for_report(path: &Path) -> Result<(Trace, Option<Times>, u64), Failure> {
    let (mut trace, times) = open_timed(path)?;
    sum_up(path, &mut trace, times.as_ref());
    Ok((trace, times, loaded(path)?.0.length))
}

/// A trace that was made from text has sums of times alone.
pub fn say_without_times(path: &Path, trace: &Trace) {
    if trace.meta.notes.iter().any(|note| note == WITHOUT_TIMES) {
        say(&format!("{}: {WITHOUT_TIMES}", path.display()));
    }
}

/// Said once: what is counted from when each host's own first call began.
pub fn say_apart(path: &Path, times: Option<&Times>) {
    if times.is_some_and(Times::some_apart) {
        let what =
            "the clocks of its hosts were not compared: each host's times count from its own first call";
        say(&format!("{}: {what}", path.display()));
    }
}

/// Said once, after the calls: of a run that crashed the last times are not in the file.
pub fn say_lost_times(path: &Path, times: Option<&Times>) {
    if times.is_some_and(Times::some_lost) {
        say(&format!("{}: some calls have no times: those are not in the file", path.display()));
    }
}

/// Bytes of a line, about.
const LINE: u64 = 100;

#[allow(clippy::too_many_arguments)]
pub fn dump(
    path: &Path,
    mut selection: Selection,
    only: Option<&str>,
    format: Format,
    from: Option<From>,
    merged: bool,
    limit: Option<u64>,
) -> Result<ExitCode, Failure> {
    let chosen = only.map(choice::chosen).transpose();
    selection.only = chosen.map_err(|why| Failure::new(format!("--only: {why}")))?;
    let (trace, times) = open_timed(path)?;
    if let Some(words) = info::lossy(&trace) {
        crate::say(&format!(
            "{}: recorded with --lossy {words}, so not all of this is as it happened; `refrain info` says what is lost",
            path.display()
        ));
    }
    let format = match format {
        Format::Text => dump::Format::Text,
        Format::Json => dump::Format::Json,
    };
    if from.is_some() && trace.bundle.sites.is_empty() {
        return Err(no_sites(path));
    }
    let work = Work::of(&trace, &selection);
    // Of those that are gone through only some are shown.
    match selection.only.is_some() || selection.between.is_some() {
        true => ahead::tell(path, work, "call", 0, "--ranks and --calls choose some of them"),
        false => {
            let help = "--limit N, --ranks, --calls and --only choose some of them";
            ahead::tell(path, work.first(limit.unwrap_or(u64::MAX)), "call", LINE, help)
        }
    };
    let mut out = Limited::new(Counted::new(output()), limit);
    let names = from.as_ref().map(|from| Binaries::new(&trace.bundle.sites, from.folders));
    let from = names.as_ref().zip(from).map(|(names, from)| dump::From { names, stacks: from.stacks });
    let how = dump::How { format, from, times: times.as_ref(), merged };
    let done = dump::dump_as(&trace, &selection, &how, &mut out);
    names.iter().flat_map(Binaries::warnings).for_each(|warning| say(&warning));
    say_lost_times(path, times.as_ref());
    say_apart(path, times.as_ref());
    if done.is_ok() && out.get_ref().is_empty() {
        say(&format!("{}: {}", path.display(), nothing::dumped(&trace, &selection, only)));
    }
    finish(path, done)
}

pub fn stats(path: &Path, per: Option<Per>, json: bool, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    let trace = open_summed_up(path)?;
    let failed = |error| Failure::new(format!("{}: {error}", path.display()));
    let mut out = shown(json, Look::Tables);
    let per = match per {
        None => stats::Per::Both,
        Some(Per::Function) => stats::Per::Function,
        Some(Per::Rank) => stats::Per::Rank,
        Some(by @ (Per::Size | Per::Peer)) => {
            if !trace.meta.timed {
                let failure = Failure::new(format!("{} has no times", path.display()));
                return Err(failure.help("trace the run with --time mean, which is the default"));
            }
            let by = if by == Per::Size { stats::By::Size } else { stats::By::Peer };
            let rows = stats::classes(&trace, by).map_err(failed)?;
            let written = match json {
                true => stats::write_classes_json(&trace, by, &rows, &mut out),
                false => stats::write_classes_text(&trace, by, &rows, &mut out),
            };
            return finish(path, written);
        }
        Some(Per::Site) => {
            if trace.bundle.sites.is_empty() {
                return Err(no_sites(path));
            }
            let names = Binaries::new(&trace.bundle.sites, folders);
            let rows = stats::sites(&trace, &names).map_err(failed)?;
            names.warnings().iter().for_each(|warning| say(warning));
            let write = if json { stats::write_sites_json } else { stats::write_sites_text };
            return finish(path, write(&trace, &rows, &mut out));
        }
        Some(Per::Signature) => {
            if trace.meta.split {
                let why = "does not tell calls apart by all their arguments";
                let failure = Failure::new(format!("{} {why}", path.display()));
                return Err(failure.help("trace the run with --time mean=signature"));
            }
            let rows = stats::signatures(&trace).map_err(failed)?;
            let write = if json { stats::write_signatures_json } else { stats::write_signatures_text };
            return finish(path, write(&trace, &rows, &mut out));
        }
        Some(Per::Path) => {
            let names = Binaries::new(&trace.bundle.sites, folders);
            let rows = stats::paths(&trace, &names).map_err(failed)?;
            names.warnings().iter().for_each(|warning| say(warning));
            let written = match json {
                true => stats::write_paths_json(&trace, &rows, &mut out),
                false => stats::write_paths_text(&rows, &mut out),
            };
            return finish(path, written);
        }
    };
    let stats = stats::stats(&trace).map_err(failed)?;
    finish(
        path,
        if json {
            stats::write_json(&trace, &stats, per, &mut out)
        } else {
            stats::write_text(&trace, &stats, per, &mut out)
        },
    )
}

pub fn plot(path: &Path) -> Result<ExitCode, Failure> {
    let trace = open(path)?.trace;
    finish(path, plot::calls(&trace, &paint::canvas(), &mut shown(false, Look::Tables)))
}

pub fn waits(path: &Path, json: bool, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    let (trace, times) = open_timed(path)?;
    let failed = |error| Failure::new(format!("{}: {error}", path.display()));
    let times = times.ok_or_else(|| failed(refrain_views::Error::NoTimes))?;
    ahead::tell(path, Work::all(&trace), "call", 0, "");
    let waits = waits::waits(&trace, &times).map_err(failed)?;
    let names = Binaries::new(&trace.bundle.sites, folders);
    let mut out = shown(json, Look::Tables);
    let write = if json { waits::write_json } else { waits::write_text };
    let done = write(&waits, &names, &mut out);
    names.warnings().iter().for_each(|warning| say(warning));
    finish(path, done)
}

pub fn verify(path: &Path, quiet: bool) -> Result<ExitCode, Failure> {
    let (Loaded { bytes, chunks, .. }, source) = loaded(path)?;
    let no = |why: &str| {
        // Who does not listen has the exit code.
        let _ = writeln!(shown(false, Look::Answer), "no: {}", refrain_sites::printable(why));
        Ok(ExitCode::from(NO))
    };
    let trace = match refrain_tracefile::read(&bytes) {
        Ok(trace) => trace,
        Err(
            error @ (Error::Foreign { .. }
            | Error::Version { .. }
            | Error::Truncated { .. }
            | Error::Io { .. }),
        ) => {
            return match verify::damaged_byte(&bytes) {
                Some(at) => no(&format!(
                    "the file is damaged: the byte at offset {at}, in section `header`, is wrong"
                )),
                None => Err(unreadable(path, &error)),
            };
        }
        Err(error) => return no(&error.to_string()),
    };
    if let Some(range) = chunks {
        match Section::within(source, range).and_then(|mut section| section.check()) {
            Ok(_) => {}
            Err(chunks::Error::Io(error)) => return Err(not_read(path, &error)),
            Err(error) => return no(&error.to_string()),
        }
    }
    ahead::tell_members(path, &trace);
    ahead::tell(path, Work::of_kinds(&trace), "call", 0, "the digest is of every call, so all are read");
    let mut bar = Bar::new("reading");
    let report = verify::verify(&trace, &mut |done, all| bar.show(done, all));
    bar.clear();
    if !(quiet && report.problems.is_empty()) {
        finish(path, verify::write_text(&report, &mut shown(false, Look::Answer)))?;
    }
    if report.problems.is_empty() {
        let (Loaded { chunks, .. }, source) = loaded(path)?;
        let mut bar = Bar::new("reading times");
        let all = info::calls(&trace.bundle);
        let times = Times::open(&trace, source, chunks).and_then(|times| {
            times.map(|times| times.check(&trace, &mut |done| bar.show(done, all))).transpose()
        });
        bar.clear();
        match times {
            Err(error) => return no(&error.to_string()),
            Ok(Some((timed, untimed))) if !quiet => {
                let told = format!("when they began and ended is told of {}", plural(timed, "call"));
                let lacking = if untimed == 0 {
                    String::new()
                } else {
                    format!("; {} have no times", thousands(untimed))
                };
                finish(path, writeln!(output(), "     {told}{lacking}").map_err(Into::into))?;
            }
            Ok(_) => {}
        }
    }
    if !report.problems.is_empty() {
        return Ok(ExitCode::from(NO));
    }
    if references::are_in(path) { references::verify(path, quiet) } else { Ok(ExitCode::SUCCESS) }
}

/// How many ranks have calls in the trace, or would if they had made any.
fn recorded_ranks(trace: &Trace) -> u64 {
    let chosen = info::chosen_ranks(trace);
    if trace.meta.complete {
        return chosen.count() as u64;
    }
    let index = Index::new(&trace.bundle);
    chosen.filter(|rank| index.cohort_of(*rank, 0).is_some()).count() as u64
}

/// What `run` says last.
pub fn say_closing(out: &Path, shown: &Path) {
    match open(out) {
        Ok(Opened { length, trace }) => say_written(&trace, length, out, shown),
        Err(failure) => failure.within("the trace that was written cannot be read").say(),
    }
}

/// The same of a trace that is at hand: to read it again takes longer than to write it.
pub fn say_written(trace: &Trace, length: u64, out: &Path, shown: &Path) {
    say(&format!(
        "{}{}, {}{}, {} bytes -> {}{}",
        match recorded_ranks(trace) {
            all if all == u64::from(trace.meta.ranks) => String::new(),
            some => format!("{} of ", thousands(some)),
        },
        plural(trace.meta.ranks.into(), "rank"),
        plural(info::calls(&trace.bundle), "call"),
        match references::beside(out) {
            Ok(Some(beside)) => format!(", {}", plural(beside.references, "reference")),
            _ => String::new(),
        },
        thousands(length),
        shown.display(),
        match (trace.meta.complete, info::in_vain(trace)) {
            (_, true) => "; the run had none of the ranks that were chosen",
            (true, _) if !matches!(references::beside(out), Ok(Some(Beside { complete: false, .. }))) => "",
            _ => " (partial, see `refrain info`)",
        },
    ));
}
