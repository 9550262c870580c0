//! `refrain replay`: starts the ranks that make a trace's calls again, watches over them, and sums up what they say.

mod flags;
mod reports;
mod watchdog;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use refrain_tracefile::Trace;
use refrain_views::closed;
use refrain_views::replayable::{draws, functions, obstacles};

use crate::doctor::elf::Elf;
use crate::doctor::launcher::Launcher;
use crate::doctor::library::{self, Family};
use crate::doctor::linker::Places;
use crate::failure::Failure;
use crate::run::{find_program, wait};
use crate::{print, reading, say_more};

pub use flags::{ReplayFlags, help};
use reports::Reports;
use watchdog::Watchdog;

/// The program that is one rank.
const RANK: &str = "refrain-replay";

/// How long a launcher that was told to end may take.
const GRACE: Duration = Duration::from_secs(10);
/// How often is looked at what ranks do.
const TICK: Duration = Duration::from_millis(200);

pub fn replay(flags: &ReplayFlags) -> Result<ExitCode, Failure> {
    let (file, words) = (&*flags.file, &flags.words);
    let trace = reading::open(file)?.trace;
    if flags.speed.is_some_and(|speed| speed > 0.0) {
        reading::say_without_times(file, &trace);
    }
    crate::ahead::tell(file, crate::ahead::Work::all(&trace), "call", 0, "");
    let obstacles = obstacles(&trace);
    if !obstacles.is_empty() {
        let text = format!("{} cannot be made again: {}", file.display(), obstacles.join("; "));
        return Err(Failure::new(text));
    }
    reading::as_recorded(file, &trace)?;
    flags.suit(&trace)?;
    let ranks = flags.ranks_of(&trace);
    if flags.ranks.is_some() {
        let need = closed::first_need(&trace, &ranks);
        let need = need.map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
        if let Some(need) = need {
            return Err(Failure::new(format!("these ranks cannot be made again without others: {need}"))
                .help("name these with --ranks too"));
        }
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let [launcher, ..] = &words[..] else { return Err(Failure::new("no launcher was named")) };
    let found = find_program(launcher, &path);
    let found = found.ok_or_else(|| Failure::new(format!("there is no program {}", launcher.display())))?;
    let library = match &flags.library {
        Some(library) => library.clone(),
        None => fitting_library(&Launcher::of(found), &trace)?,
    };
    if let Some(why) = lacking(&library, &trace) {
        return Err(Failure::new(format!("{} cannot be made again: {why}", file.display())));
    }
    let absolute = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let reports = Reports::new(flags.scratch.as_deref())?;
    let mut command = Command::new(launcher);
    command.args(&words[1..]).arg(rank_program()?).arg(absolute).arg(&library).arg(&reports.0);
    command.args(flags.words_for_ranks(&trace));
    let mut watchdog = Watchdog::new(&reports.0, &ranks, flags.patience);
    let mut stuck = None;
    let mut look = || {
        stuck = watchdog.stuck();
        if let Some(states) = &stuck {
            let mut lines = watchdog::lines(&trace, &ranks, states);
            if draws(&trace, flags.seed).is_some() {
                let seed = flags.seed;
                lines.push(format!("messages were drawn (--seed {seed}): peers above are not the real ones"));
            }
            let what = match watchdog::some_lost(states) {
                true => {
                    "a rank is gone, and the launcher does not end the others: the replay is ended".to_owned()
                }
                false => format!(
                    "no rank has done anything for {} s (--patience): the replay is ended",
                    flags.patience
                ),
            };
            say_more(&what, &lines.iter().map(String::as_str).collect::<Vec<_>>());
        }
        stuck.is_some()
    };
    let patience = wait::Patience { launcher: true, grace: GRACE, option: "" };
    let status = wait::run_watched(&mut command, patience, Some((TICK, &mut look)));
    let status = status.map_err(|error| Failure::new(format!("{}: {error}", launcher.display())))?;
    if stuck.as_ref().is_some_and(|states| !watchdog::some_lost(states)) {
        let failure = Failure::new("the replay came to a standstill");
        return Err(failure.help("what the ranks wait for stands above"));
    }
    if stuck.is_some() {
        return Err(Failure::new("the replay ended early").help("what went wrong stands above"));
    }
    if !status.success() {
        let states = watchdog::states(&reports.0, &ranks);
        let lines = watchdog::lines(&trace, &ranks, &states);
        if !lines.is_empty() {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            say_more("when it ended, ranks were here:", &lines);
        }
        let failure = Failure::new(format!("the replay ended early: {} says {status}", launcher.display()));
        return Err(failure.help("what went wrong stands above"));
    }
    let states = watchdog::states(&reports.0, &ranks);
    if states.iter().any(watchdog::State::is_amid) {
        let failure = Failure::new("the replay ended early: ranks were ended before their last call");
        return Err(failure.help("nothing is known of what they did"));
    }
    let sum = reports.sum(&ranks);
    print(&sum.text(&trace, ranks.len(), flags))?;
    if flags.check && sum.silent > 0 {
        return Err(Failure::new("not all outcomes could be compared: some ranks left no word of them")
            .help("is there room in the directory for temporary files (--scratch)?"));
    }
    Ok(ExitCode::from(u8::from(sum.differences > 0)))
}

/// Beside this binary, or where it is installed.
fn rank_program() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe();
    let own = own.map_err(|e| Failure::new(format!("the path of this program is not known: {e}")))?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    let places = [beside.join(RANK), beside.join("../lib/refrain").join(RANK)];
    let found = places.iter().find(|place| place.is_file()).cloned();
    found.ok_or_else(|| {
        let (a, b) = (places[0].display(), places[1].display());
        Failure::new(format!("{RANK} is neither at {a} nor at {b}"))
            .help("build it with `cargo build -p refrain-replay`")
    })
}

/// The library that a launcher's programs load.
fn fitting_library(launcher: &Launcher, trace: &Trace) -> Result<PathBuf, Failure> {
    const NAMES: [&str; 8] = [
        "libmpi.so.40",
        "libmpich.so.12",
        "libmpi.so.12",
        "libmpi_abi.so.0",
        "libmpi_abi.so.1",
        "libmpich.so",
        "libmpi.so.0",
        "libmpi.so",
    ];
    // A batch system starts any: then it is one as in the trace.
    let wanted = launcher.family.or(match trace.meta.abi.as_str() {
        "Open MPI" => Some(Family::OpenMpi),
        "MPICH ABI" => Some(Family::Mpich),
        _ => None,
    });
    let places = Places::of_this_system();
    let prefix = launcher.path.canonicalize().ok();
    let prefix = prefix.as_deref().and_then(Path::parent).and_then(Path::parent).map(|p| p.join("lib"));
    let places = prefix.map_or(Places::of_this_system(), |prefix| places.before(&prefix));
    let found = NAMES.iter().filter_map(|name| places.preloaded(name)).find_map(|(path, elf)| {
        let library = library::look_into(&path, &elf)?;
        wanted.is_none_or(|wanted| wanted == library.family).then_some(path)
    });
    found.ok_or_else(|| {
        let launcher = launcher.path.display();
        Failure::new(format!("the MPI library that {launcher} belongs to was not found"))
            .help("name it with --library")
    })
}

/// What the trace calls and the library has not.
fn lacking(library: &Path, trace: &Trace) -> Option<String> {
    let elf = Elf::open(library).ok()??;
    let symbols = elf.dynamic_symbols().ok()?;
    let has = |name: &str| symbols.iter().any(|symbol| symbol.defined && symbol.name == name);
    let called = functions(trace);
    let lacking: Vec<&str> = called.iter().copied().filter(|name| !has(name)).collect();
    let (path, recorded) = (library.display(), &trace.meta.library);
    if lacking.is_empty() {
        let family = library::look_into(library, &elf)?.family;
        let other = !family.abi().starts_with(&trace.meta.abi);
        let tool = called.iter().any(|name| name.starts_with("MPI_T_"));
        let told = format!("its MPI_T calls speak of what that library has inside: replay it on {recorded}");
        return (other && tool).then_some(told);
    }
    let (first, more) = lacking.split_at(lacking.len().min(4));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    Some(format!("{path} has no {}{more}: replay it on {recorded}", first.join(", ")))
}
