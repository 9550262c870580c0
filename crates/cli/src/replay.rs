//! `refrain replay`: starts the ranks that make a trace's calls again, and sums up what they say.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use refrain_tracefile::Trace;
use refrain_views::human::{duration, thousands};
use refrain_views::replayable::{functions, obstacles};

use crate::doctor::elf::Elf;
use crate::doctor::launcher::Launcher;
use crate::doctor::library::{self, Family};
use crate::doctor::linker::Places;
use crate::failure::Failure;
use crate::run::find_program;
use crate::{print, reading};

/// The program that is one rank.
const RANK: &str = "refrain-replay";

pub struct How<'a> {
    pub check: bool,
    pub library: Option<&'a Path>,
}

pub fn replay(file: &Path, how: &How<'_>, words: &[OsString]) -> Result<ExitCode, Failure> {
    let trace = reading::open(file)?.trace;
    let obstacles = obstacles(&trace);
    if !obstacles.is_empty() {
        let text = format!("{} cannot be made again: {}", file.display(), obstacles.join("; "));
        return Err(Failure::new(text));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let [launcher, ..] = words else { return Err(Failure::new("no launcher was named")) };
    let found = find_program(launcher, &path);
    let found = found.ok_or_else(|| Failure::new(format!("there is no program {}", launcher.display())))?;
    let library = match how.library {
        Some(library) => library.to_owned(),
        None => fitting_library(&Launcher::of(found), &trace)?,
    };
    if let Some(why) = lacking(&library, &trace) {
        return Err(Failure::new(format!("{} cannot be made again: {why}", file.display())));
    }
    let reports = Reports::new()?;
    let began = Instant::now();
    let mut command = Command::new(launcher);
    command.args(&words[1..]).arg(rank_program()?).arg(file).arg(&library).arg(&reports.0);
    command.args(how.check.then_some("check"));
    let status = command.status();
    let status = status.map_err(|error| Failure::new(format!("{}: {error}", launcher.display())))?;
    let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    if !status.success() {
        let failure = Failure::new(format!("the replay ended early: {} says {status}", launcher.display()));
        return Err(failure.help("what went wrong stands above"));
    }
    let sum = reports.sum(trace.meta.ranks)?;
    print(&sum.text(&trace, took, how.check))?;
    Ok(ExitCode::from(u8::from(how.check && sum.differences > 0)))
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
    let symbols = Elf::open(library).ok()??.dynamic_symbols().ok()?;
    let has = |name: &str| symbols.iter().any(|symbol| symbol.defined && symbol.name == name);
    let lacking: Vec<&str> = functions(trace).into_iter().filter(|name| !has(name)).collect();
    let (first, more) = lacking.split_at(lacking.len().min(4));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let (library, recorded) = (library.display(), &trace.meta.library);
    let told = format!("{library} has no {}{more}: replay it on {recorded}", first.join(", "));
    (!lacking.is_empty()).then_some(told)
}

/// A directory for what ranks say in the end.
struct Reports(PathBuf);

impl Reports {
    fn new() -> Result<Reports, Failure> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let name = format!("refrain-replay-{}-{:x}", std::process::id(), now.as_nanos());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
        Ok(Reports(path))
    }

    fn sum(&self, ranks: u32) -> Result<Sum, Failure> {
        let mut sum = Sum::default();
        for rank in 0..ranks {
            let file = self.0.join(format!("rank-{rank}"));
            let Ok(text) = std::fs::read_to_string(&file) else {
                sum.silent += 1;
                continue;
            };
            for line in text.lines() {
                let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
                let number = || rest.parse::<u64>().unwrap_or(0);
                match word {
                    "made" => sum.made += number(),
                    "polls" => sum.polls += number(),
                    "unmatched" => sum.unmatched += number(),
                    "differences" => sum.differences += number(),
                    "different" => sum.lines.push(format!("rank {rank}, {rest}")),
                    _ => {}
                }
            }
        }
        Ok(sum)
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Debug, Default)]
struct Sum {
    made: u64,
    polls: u64,
    unmatched: u64,
    differences: u64,
    lines: Vec<String>,
    /// Ranks that said nothing, on other machines perhaps.
    silent: u32,
}

impl Sum {
    fn text(&self, trace: &Trace, took: u64, checked: bool) -> String {
        let mut text = String::new();
        let ranks = trace.meta.ranks;
        let _ = writeln!(
            text,
            "{ranks} ranks made {} calls again in {}; recorded: {} after MPI_Init",
            thousands(self.made),
            duration(took),
            duration(trace.meta.wall_ns)
        );
        if self.polls > 0 {
            let _ = writeln!(text, "{} polls that had found nothing were left out", thousands(self.polls));
        }
        if self.unmatched > 0 {
            let _ = writeln!(
                text,
                "{} receives from any source may have got another message: the trace does not say who sent theirs",
                thousands(self.unmatched)
            );
        }
        if self.silent > 0 {
            let _ = writeln!(text, "{} ranks left no word here of what they did", self.silent);
        }
        if checked && self.differences == 0 {
            text.push_str("equal: every outcome is that of the trace\n");
        } else if self.differences > 0 {
            let _ = writeln!(text, "different: {} calls had another outcome", thousands(self.differences));
            self.lines.iter().take(10).for_each(|line| {
                let _ = writeln!(text, "  {line}");
            });
        }
        text
    }
}
