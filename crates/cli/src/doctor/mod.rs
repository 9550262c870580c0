//! `refrain doctor`: what would be traced, and what would be in the way. Looks at files; runs nothing.

pub mod elf;
pub mod launcher;
pub mod library;
pub mod linker;
mod python;
mod report;
mod travel;

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use elf::{Elf, Machine};
use launcher::Launcher;
use library::{Family, Library};
use linker::Places;

use crate::failure::Failure;
use crate::paint::{self, Look};
use crate::run::{self, Flags, Settings, find_program};

/// All that was found out about a command line.
#[derive(Debug, Default)]
pub struct Findings {
    /// What would be traced; `None` where the command names no program.
    program: Option<PathBuf>,
    kind: Kind,
    library: Option<Library>,
    bindings: Vec<&'static str>,
    launcher: Option<Launcher>,
    /// The capture library.
    capture: Option<PathBuf>,
    /// What would be recorded.
    records: Vec<String>,
    /// What was not looked at, though it may matter.
    notes: Vec<String>,
    /// What keeps it from working, and what to do about it.
    problems: Vec<Problem>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    pub what: String,
    /// Empty where nothing can be said.
    pub help: String,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum Kind {
    #[default]
    Unknown,
    Dynamic,
    /// There is no dynamic linker in it that could preload anything.
    Static,
    Script(String),
    /// With what it imports MPI through.
    Python(Option<PathBuf>),
    OtherMachine(String),
}

pub fn doctor(flags: &Flags, words: &[OsString], json: bool) -> Result<ExitCode, Failure> {
    let settings = Settings::resolve(flags, |name| std::env::var_os(name))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut findings = examine(words, &path)?;
    match run::capture_library() {
        Ok(capture) => findings.capture = Some(capture),
        Err(failure) => {
            let (what, help) = failure.into_parts();
            findings.problem(what, help.unwrap_or_default());
        }
    }
    let variables = std::env::vars_os().map(|(name, _)| name);
    for refusal in run::refusals(&settings, words, |name| std::env::var_os(name), variables) {
        let (what, help) = refusal.into_parts();
        findings.problem(what, help.unwrap_or_default());
    }
    findings.records = run::described(&settings);
    let text = match json {
        true => report::json(&findings),
        false => paint::text(Look::Facts, &report::text(&findings)),
    };
    crate::print(&text)?;
    Ok(ExitCode::from(u8::from(!findings.problems.is_empty())))
}

/// What keeps variables from getting to the ranks.
pub fn kept_back(words: &[OsString], path: &OsStr) -> Option<Problem> {
    let text: Vec<String> = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let analysis = run::analyse(&text, |word| find_program(OsStr::new(word), path).is_some());
    let at = analysis.launcher?;
    let behind = &text[at + 1..analysis.program.unwrap_or(text.len())];
    travel::kept_back(&text[at], behind, |name| std::env::var_os(name))
}

/// Where a launcher and a program's library can be told apart before the start: what is wrong, and what to do.
pub fn mismatch(words: &[OsString], path: &OsStr) -> Option<Problem> {
    let findings = examine(words, path).ok()?;
    let (launcher, library) = (findings.launcher?, findings.library?);
    (!launcher.fits(&library)).then(|| mismatched(&launcher, &library, path))
}

fn mismatched(launcher: &Launcher, library: &Library, path: &OsStr) -> Problem {
    let help = match launcher::fitting(library, path) {
        Some(right) => format!("Start it with {}.", right.display()),
        None => format!("Start it with the launcher that came with {}.", library.shown()),
    };
    Problem {
        what: format!(
            "the launcher {} ({}) does not belong to the program's MPI library, {} ({}): each process will be alone, \
             a program of one rank",
            launcher.path.display(),
            launcher.shown(),
            library.shown(),
            library.path.display(),
        ),
        help,
    }
}

impl Findings {
    fn problem(&mut self, what: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem { what: what.into(), help: help.into() });
    }
}

/// What Open MPI's launcher may not start, by its options: it counts the cores of this machine where it is told no others.
fn too_many(options: &[String], cores: usize) -> Option<String> {
    const ELSEWHERE: [&str; 4] = ["oversubscribe", "host", "machinefile", "hwthread"];
    if options
        .iter()
        .any(|word| word == "-H" || ELSEWHERE.iter().any(|says| word.to_lowercase().contains(says)))
    {
        return None;
    }
    let at = options.iter().position(|word| ["-n", "-np", "--np", "-c", "--n"].contains(&word.as_str()))?;
    let ranks: usize = options.get(at + 1)?.parse().ok()?;
    (ranks > cores).then(|| {
        format!("{ranks} ranks are more than the cores here ({cores}): Open MPI may want `--oversubscribe` to start them")
    })
}

/// Whether a program was linked with a library of that name.
pub fn needs(program: &Path, library: &str) -> bool {
    let elf = elf::Elf::open(program).ok().flatten();
    elf.is_some_and(|elf| elf.needed.iter().any(|name| name == library))
}

/// The names that a library defines for others; none where it is not found or cannot be read.
pub fn defined_by(library: &Path) -> Vec<String> {
    let found = library.to_str().and_then(|name| Places::of_this_system().preloaded(name));
    let symbols = found.and_then(|(_, elf)| elf.dynamic_symbols().ok()).unwrap_or_default();
    symbols.into_iter().filter(|symbol| symbol.defined).map(|symbol| symbol.name).collect()
}

/// Fails only where nothing can be looked at.
fn examine(words: &[OsString], path: &OsStr) -> Result<Findings, Failure> {
    let text: Vec<String> = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let analysis = run::analyse(&text, |word| find_program(OsStr::new(word), path).is_some());
    let mut findings = Findings::default();
    if let Some(at) = analysis.launcher {
        match find_program(&words[at], path) {
            Some(launcher) => findings.launcher = Some(Launcher::of(launcher)),
            None => findings.problem(
                format!("the launcher {} was not found", text[at]),
                "Check the name, or load the module that provides it.",
            ),
        }
    }
    findings.problems.extend(kept_back(words, path));
    if let Some(at) = analysis.launcher.filter(|at| run::starts_elsewhere(&text[*at])) {
        findings.notes.push(format!(
            "{} starts the program on machines that were not looked at; {0} of one rank with `refrain doctor` looks there",
            text[at]
        ));
    }
    if let (Some(at), Some(Launcher { family: Some(Family::OpenMpi), .. })) =
        (analysis.launcher, &findings.launcher)
        && let Ok(cores) = std::thread::available_parallelism()
    {
        let behind = &text[at + 1..analysis.program.unwrap_or(text.len())];
        let told = std::env::vars_os().any(|(name, value)| {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            // A batch system's allocation has slots of its own.
            ["SLURM_JOB_ID", "PBS_NODEFILE", "LSB_HOSTS"].contains(&&*name)
                || name.contains("_MCA_")
                    && (name.contains("oversubscribe") || value.contains("oversubscribe"))
        });
        findings.notes.extend(too_many(behind, cores.get()).filter(|_| !told));
    }
    if let Some((at, place)) = analysis.program.and_then(|at| Some((at, run::elsewhere(&text[at])?))) {
        findings.problem(
            format!("{} runs its command {place}: nobody can look at it from here", text[at]),
            "Run `refrain doctor` there. Refrain's library and the directory of the trace must be there under the same \
             names, and LD_PRELOAD and the REFRAIN_ variables must get there.",
        );
    } else if let Some(at) = analysis.program {
        let program = find_program(&words[at], path).ok_or_else(|| {
            Failure::new(format!("there is no program {}", text[at]))
                .help("name an executable file, or the whole command after `--`")
        })?;
        look_at(&mut findings, &program, path)
            .map_err(|e| Failure::new(format!("{} could not be read: {e}", program.display())))?;
        findings.program = Some(program);
    }
    if let (Some(launcher), Some(library)) = (&findings.launcher, &findings.library)
        && !launcher.fits(library)
    {
        let problem = mismatched(launcher, library, path);
        findings.problems.push(problem);
    }
    Ok(findings)
}

fn look_at(findings: &mut Findings, program: &Path, path: &OsStr) -> std::io::Result<()> {
    let Some(elf) = Elf::open(program)? else {
        return look_at_script(findings, program, path);
    };
    if elf.machine != Machine::OWN {
        let name = elf.machine.name();
        findings.problem(
            format!("the program is for another machine: {name}, not {}", Machine::OWN.name()),
            "Use a Refrain built for that machine.",
        );
        findings.kind = Kind::OtherMachine(name);
        return Ok(());
    }
    if program.metadata()?.mode() & 0o6000 != 0 {
        findings.problem(
            "the program is set-user-id or set-group-id: the linker preloads nothing into it",
            "Trace a copy without that bit: cp makes one.",
        );
    }
    if !elf.interpreter {
        findings.kind = Kind::Static;
        findings.problem(
            "the program is linked statically: nothing can be preloaded into it",
            "Link it with the shared libraries of MPI: without -static, -static-pie.",
        );
        return Ok(());
    }
    findings.kind = Kind::Dynamic;
    let places = Places::of_this_system();
    let needed = linker::closure(program, &elf, &places);
    findings.library = library::find(&needed);
    let missing: Vec<&str> = needed.iter().filter(|n| n.found.is_none()).map(|n| n.name.as_str()).collect();
    if !missing.is_empty() {
        findings.problem(
            format!("the program needs {}, which was not found", missing.join(", ")),
            "Load the module, or set LD_LIBRARY_PATH, as for running it.",
        );
    }
    let library = findings.library.as_ref().map(|library| library.path.clone());
    // A library of the program's own may be what calls MPI; MPI's own layers call it too, but are not the program.
    let others = needed.iter().filter_map(|needed| needed.found.as_ref()).filter(|(path, _)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Some(path) != library.as_ref() && !name.starts_with("libmpi")
    });
    if findings.library.is_some() {
        findings.bindings = library::bindings([&elf].into_iter().chain(others.map(|(_, elf)| elf)));
    } else if python::is_python(program) {
        look_at_python(findings, program, &places);
    } else if library::is_inside(&elf) {
        findings.problem(
            "MPI is linked statically into the program: its calls go past the preloaded library",
            "Link it with the shared library of MPI.",
        );
    } else if missing.is_empty() {
        findings.problem(
            "the program is not linked with an MPI library",
            "What it loads while it runs and is linked with one (plugins, mpi4py) is followed; calls through pointers \
             that it gets from dlsym are not. What it only starts is looked at by naming it here.",
        );
    }
    Ok(())
}

fn look_at_python(findings: &mut Findings, interpreter: &Path, places: &Places) {
    let modules = python::mpi4py(interpreter);
    let with_library = |module: &PathBuf, places: &Places| {
        let elf = Elf::open(module).ok()??;
        Some((module.clone(), library::find(&linker::closure(module, &elf, places))?))
    };
    // mpi4py may have a module for each family of libraries: it takes the one that fits what it finds, first of all in
    // its environment.
    let inside = python::libraries(interpreter);
    let own_first = places.before(&inside);
    let mut own = modules.iter().filter_map(|module| with_library(module, &own_first));
    let own = own.find(|(_, library)| library.path.starts_with(&inside));
    let any = || modules.iter().find_map(|module| with_library(module, places));
    let module = match own.or_else(any) {
        Some((module, library)) => {
            findings.library = Some(library);
            findings.bindings = vec!["Python (mpi4py)"];
            Some(module)
        }
        None => {
            match modules.is_empty() {
                true => findings.problem(
                    "mpi4py was not found beside this Python",
                    "Name the interpreter of the environment that has it; `python -m pip show mpi4py` says which.",
                ),
                false => findings.problem(
                    "mpi4py's MPI library was not found",
                    "Load the module, or set LD_LIBRARY_PATH, as for running it.",
                ),
            }
            modules.into_iter().next()
        }
    };
    findings.kind = Kind::Python(module);
}

/// A script is traced through: what it starts inherits the environment.
fn look_at_script(findings: &mut Findings, program: &Path, path: &OsStr) -> std::io::Result<()> {
    let head = std::fs::read(program)?;
    let line = head.strip_prefix(b"#!").and_then(|rest| rest.split(|&b| b == b'\n').next());
    let Some(line) = line.map(|line| String::from_utf8_lossy(line).trim().to_owned()) else {
        findings
            .problem("the file is neither a program nor a script", "Is it complete, and meant to be run?");
        return Ok(());
    };
    let mut words = line.split_whitespace().filter(|word| !word.starts_with('-'));
    let first = words.next().unwrap_or_default();
    let word = if first.ends_with("/env") { words.next().unwrap_or(first) } else { first };
    findings.kind = Kind::Script(line.clone());
    if let Some(interpreter) = find_program(OsStr::new(word), path).filter(|found| python::is_python(found)) {
        look_at_python(findings, &interpreter, &Places::of_this_system());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_ranks_than_cores_are_noted() {
        let noted = |options: &str| {
            let words: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
            too_many(&words, 2)
        };
        for enough in
            ["", "-n 2", "-n", "-n x", "--oversubscribe -n 9", "--map-by :OVERSUBSCRIBE -n 9", "-H a:9 -n 9"]
        {
            assert_eq!(noted(enough), None, "{enough}");
        }
        for options in ["-n 3", "--tag-output -np 3"] {
            let said = noted(options).unwrap_or_default();
            assert!(
                said.starts_with("3 ranks are more than the cores here (2): ")
                    && said.contains("`--oversubscribe`")
            );
        }
    }
}
