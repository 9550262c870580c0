//! `refrain run`: prepare the environment, start the program, say what came of it.

mod env;
mod exports;
pub mod hold;
pub mod library;
mod preload;
mod settings;
pub mod wait;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

pub use env::env;
pub use refrain_views::command::{analyse, elsewhere, starts_elsewhere};
pub use settings::{Flags, Settings};

use refrain_tracefile::claim::{self, Done, Job, numbered};
use refrain_tracefile::part::{self, Part};
use refrain_tracefile::private::Private;
use refrain_tracefile::{Error, Replace, Stamp, Target, is_device};
use refrain_views::command;
use refrain_views::human::plural;

use crate::doctor::{self, launcher::Launcher, library::Family};

use crate::failure::Failure;
use crate::memory::{Beside, Calls, WithCalls};
use crate::{recover, say, say_more};

/// Set by launchers in the processes they start, one rank's number each.
const RANK_VARIABLES: &[&str] = &[
    "PMI_RANK",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
    "ALPS_APP_PE",
    "JSM_NAMESPACE_RANK",
    "FLUX_TASK_RANK",
];

/// Where Refrain stands in the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// `refrain run -- mpiexec ./app`: one process that starts them all, waits, and has the last word.
    Outside,
    /// `mpiexec refrain run -- ./app`: one process for each rank, which becomes the program.
    Inside,
}

/// All that is needed to start the program, decided before anything is started.
#[derive(Debug)]
struct Plan {
    place: Position,
    words: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
    /// What the run is called.
    run: String,
    /// Absolute.
    out: PathBuf,
    /// As the user would write it.
    shown: PathBuf,
    quiet: bool,
    force: bool,
    /// What is recorded is kept until the end.
    safe: bool,
    patience: wait::Patience,
    /// Memory references are recorded too.
    memory: Option<Beside>,
    /// What the user runs.
    command: Vec<String>,
    /// When it had ended, as `flight::now` tells time.
    ended: std::cell::OnceCell<u64>,
}

impl Plan {
    fn ended(&self) -> recover::Ended {
        self.ended.get().map_or(recover::Ended::Once, |moment| recover::Ended::By(*moment))
    }
}

pub fn run(flags: &Flags, memory: &WithCalls, page: bool, words: &[OsString]) -> Result<ExitCode, Failure> {
    let env = |name: &str| std::env::var_os(name);
    let settings = Settings::resolve(flags, env)?;
    let library = capture_library()?;
    let loops = settings.fold != refrain_encode::Folding::Grammar;
    let memory = memory.beside(words, &library, (loops, settings.lossy.is_some()), env)?;
    let plan = plan(&settings, memory, words, &library, env)?;
    let before = Before::now(&plan.out);
    if page && let Err(failure) = page_is_possible(&plan) {
        if plan.place == Position::Outside {
            // Its name is free again.
            drop(hold::Held { out: &plan.out, run: &plan.run });
        }
        return Err(failure);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    if plan.place == Position::Outside
        && let Some(problem) = doctor::mismatch(words, &path).or_else(|| doctor::kept_back(words, &path))
    {
        say_more(&format!("warning: {}", problem.what), &[&problem.help]);
    }

    let mut command = Command::new(&plan.words[0]);
    command.args(&plan.words[1..]).envs(plan.env.iter().map(|(name, value)| (name, value)));
    if plan.place == Position::Inside {
        return Err(not_started(&plan.words[0], &command.exec()));
    }
    let held = hold::Held { out: &plan.out, run: &plan.run };
    let status = wait::run(&mut command, plan.patience).map_err(|e| not_started(&plan.words[0], &e))?;
    // Nothing is there yet.
    let _ = plan.ended.set(crate::flight::now());
    let jobs = held.jobs();
    let lacking = |job: &Job| !matches!(job.done, Some(Done::Whole(_)));
    if jobs.iter().any(lacking)
        && let Some(signal) = wait::signal(status)
    {
        let (command, name) = (Path::new(&plan.words[0]).display(), recover::signal_name(signal.into()));
        say(&format!("{command} ended with {}, which stands for {name}", wait::exit_code(status)));
    }
    report(&plan, &before, &jobs, held.is_claimed(), status.success());
    if page && Stamp::of(&plan.out).is_some_and(|now| Some(now) != before.out) {
        let made = crate::report::at_once(&plan.out, &plan.shown, plan.force, plan.quiet);
        // The run is what was asked for first: its exit code is passed on.
        made.unwrap_or_else(|failure| failure.within("the page was not made").say());
    }
    Ok(ExitCode::from(wait::exit_code(status)))
}

/// Whether the page of `--report` can be written when the run is over.
fn page_is_possible(plan: &Plan) -> Result<(), Failure> {
    let help = "`refrain report FILE` makes the page afterwards";
    if plan.place == Position::Inside {
        let what = "--report needs `refrain run` before the launcher: inside it, no process is left to make the page";
        return Err(Failure::new(what).help(help));
    }
    if is_device(&plan.out) {
        return Err(Failure::new(format!("there is no page of {}: it is a device", plan.shown.display())));
    }
    let page = crate::report::beside(&plan.out);
    if page == plan.out {
        let what = format!("the trace and its page would both be {}", plan.shown.display());
        return Err(Failure::new(what).help("name the trace something.rfn: --out something.rfn"));
    }
    crate::report::refuse(&plan.out, &page, plan.force)
}

pub fn capture_library() -> Result<PathBuf, Failure> {
    let binary = std::env::current_exe()
        .map_err(|e| Failure::new(format!("the path of this program is not known: {e}")))?;
    library::find(&binary, &library::MPI, std::env::var_os("REFRAIN_LIBRARY"))
}

/// What the capture library is told, and how it gets into the program.
fn variables(
    settings: &Settings,
    library: &Path,
    out: &Path,
    env: impl Fn(&str) -> Option<OsString>,
) -> Vec<(&'static str, OsString)> {
    let mut variables: Vec<(&'static str, OsString)> = vec![
        ("LD_PRELOAD", preload::preload(env("LD_PRELOAD"), library)),
        ("REFRAIN_OUT", out.as_os_str().to_owned()),
        ("REFRAIN_POINTERS", settings.pointers.to_string().into()),
        ("REFRAIN_TIME", settings.time.to_string().into()),
        ("REFRAIN_SPLIT", settings.split.to_string().into()),
        ("REFRAIN_FOLD", settings.fold.to_string().into()),
        ("REFRAIN_SAFE", settings.safe.to_string().into()),
        ("REFRAIN_STACKS", settings.stacks.to_string().into()),
        ("REFRAIN_RECURSION", settings.recursion.to_string().into()),
    ];
    // Its runtime refuses to start behind another library.
    variables.push(("ASAN_OPTIONS", preload::sanitizer_options(env("ASAN_OPTIONS"))));
    variables.extend(settings.lossy.as_ref().map(|words| ("REFRAIN_LOSSY", words.into())));
    variables.extend(settings.parts.as_ref().map(|parts| ("REFRAIN_PARTS", parts.into())));
    variables.extend(settings.patience.as_ref().map(|seconds| ("REFRAIN_PATIENCE", seconds.into())));
    variables.extend(settings.choice.iter().map(|(name, value)| (*name, value.into())));
    if settings.force {
        variables.push(("REFRAIN_FORCE", "1".into()));
    }
    variables
}

fn plan(
    settings: &Settings,
    mut memory: Option<Beside>,
    words: &[OsString],
    library: &Path,
    env: impl Fn(&str) -> Option<OsString>,
) -> Result<Plan, Failure> {
    let path = env("PATH").unwrap_or_default();
    let text: Vec<String> = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let analysis = command::analyse(&text, |word| find_program(OsStr::new(word), &path).is_some());
    let place = place(&analysis, &env);
    let shown = shown(settings, &analysis);
    let out = writable_place(&shown, settings.force, place)?;
    if memory.is_some() && is_device(&out) {
        return Err(Failure::new(format!(
            "calls and references cannot be written to {}: it is a device",
            shown.display()
        ))
        .help("name a file: --out FILE"));
    }
    let run = run_name();
    let number = match place {
        _ if is_device(&out) => 1,
        Position::Outside => hold::take(&out, &run, settings.force, settings.safe == settings::Switch::On)?,
        Position::Inside => {
            hold::make_way(&out, claim::job(&env).as_deref(), settings.force)?;
            1
        }
    };
    let (out, shown) = (numbered(&out, number), numbered(&shown, number));

    let mut variables = variables(settings, library, &out, &env);
    variables.push(("REFRAIN_COMMAND", joined(words)));
    // Of the same job several runs may be left; inside, all processes have to agree, and only the launcher's name will do.
    if place == Position::Outside {
        variables.push(("REFRAIN_RUN", run.clone().into()));
    }
    // Nobody is left to print the closing line when this process has become the program, and of what went into a device
    // only the one who wrote it can tell.
    if (place == Position::Inside || is_device(&out)) && !settings.quiet {
        variables.push(("REFRAIN_SUMMARY", "1".into()));
    }

    let command: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut words = words.to_vec();
    // In the emulator it is for the program alone.
    let preload = match (&memory, variables.iter().position(|(name, _)| *name == "LD_PRELOAD")) {
        (Some(_), Some(at)) => variables.remove(at).1,
        _ => OsString::new(),
    };
    // Open MPI's launcher passes no environment to other nodes unless told to.
    if let Some(at) = analysis.launcher
        && let Some(launcher) = find_program(&words[at], &path).map(Launcher::of)
        && launcher.family == Some(Family::OpenMpi)
    {
        exports::pass(&mut words, at, &mut variables, launcher.takes_list().then(|| env(exports::LIST)));
    }
    if let Some(memory) = &mut memory {
        let entered = memory.enter(&words, &out, settings.force, &preload, &path);
        words = entered.inspect_err(|_| drop(hold::Held { out: &out, run: &run }))?;
    }
    let grace = Duration::from_secs(settings.grace.into());
    let patience = wait::Patience { launcher: analysis.launcher.is_some(), grace, option: " (--grace)" };
    let Settings { quiet, force, .. } = *settings;
    let ended = std::cell::OnceCell::new();
    let safe = settings.safe == settings::Switch::On;
    Ok(Plan {
        place,
        words,
        env: variables,
        run,
        out,
        shown,
        quiet,
        force,
        safe,
        patience,
        memory,
        command,
        ended,
    })
}

fn place(analysis: &command::Analysis, env: impl Fn(&str) -> Option<OsString>) -> Position {
    if analysis.launcher.is_none() && inside_launcher(env) { Position::Inside } else { Position::Outside }
}

/// What `run` would say before it starts the command, with nothing claimed.
pub fn refusals(
    settings: &Settings,
    words: &[OsString],
    env: impl Fn(&str) -> Option<OsString>,
    variables: impl Iterator<Item = OsString>,
) -> Vec<Failure> {
    let path = env("PATH").unwrap_or_default();
    let text: Vec<String> = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let analysis = command::analyse(&text, |word| find_program(OsStr::new(word), &path).is_some());
    let out = writable_place(&shown(settings, &analysis), settings.force, place(&analysis, &env));
    let safe = settings.safe == settings::Switch::On;
    let claimed =
        out.and_then(|out| if is_device(&out) { Ok(()) } else { hold::check(&out, settings.force, safe) });
    let unknown = variables.filter_map(|name| refrain_model::unknown_variable(name.to_str()?));
    let unknown = unknown.map(|what| Failure::new(what).help("Correct it, or unset it."));
    claimed.err().into_iter().chain(unknown).collect()
}

/// What the trace is called, as the user would write it.
fn shown(settings: &Settings, analysis: &command::Analysis) -> PathBuf {
    settings.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.rfn", analysis.name)))
}

/// What will be recorded, in words.
pub fn described(settings: &Settings) -> Vec<String> {
    let option = |(variable, value): &(&str, String)| {
        (variable.trim_start_matches("REFRAIN_").to_lowercase(), value.clone())
    };
    let mut options: Vec<(String, String)> = settings.choice.iter().map(option).collect();
    if settings.pointers == settings::Switch::Off {
        options.push(("pointers".into(), "off".into()));
    }
    if settings.stacks != settings::Stacks::Off {
        options.push(("stacks".into(), settings.stacks.to_string()));
        options.push(("recursion".into(), settings.recursion.to_string()));
    }
    options.extend(settings.lossy.iter().map(|words| ("lossy".into(), words.clone())));
    refrain_views::info::recorded(&options)
}

pub fn inside_launcher(env: impl Fn(&str) -> Option<OsString>) -> bool {
    RANK_VARIABLES.iter().any(|name| env(name).is_some())
        // Batch scripts have a SLURM_PROCID too, but are no step.
        || (env("SLURM_PROCID").is_some() && env("SLURM_STEP_ID").is_some())
}

/// No other run is called so.
pub fn run_name() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", now.as_nanos(), std::process::id())
}

/// The output's absolute path, if a file can be written there. Inside the launcher that may not be so on all nodes, while
/// all ranks are traced or none: the program then runs, and the library says what is wrong.
pub fn writable_place(shown: &Path, force: bool, place: Position) -> Result<PathBuf, Failure> {
    let cannot =
        |why: String| Failure::new(format!("the trace cannot be written to {}: {why}", shown.display()));
    let out = std::path::absolute(shown).map_err(|e| cannot(e.to_string()))?;
    if out.file_name().is_none() || out.is_dir() {
        return Err(cannot("it is a directory".into()).help("name a file: --out FILE"));
    }
    // Links are followed.
    let file = match refrain_tracefile::target(&out, true) {
        Ok(Target::File(file)) => file,
        Ok(Target::Device(_)) if access(&out, libc::W_OK) => return Ok(out),
        Ok(Target::Device(_)) => return Err(cannot("it is a device that is not writable".into())),
        Err(Error::NoFile { what, .. }) => {
            return Err(cannot(format!("it is {what}")).help("name a file: --out FILE"));
        }
        Err(error) => return Err(cannot(error.to_string())),
    };
    let directory = file.parent().unwrap_or(Path::new("/"));
    let outside = place == Position::Outside;
    if outside && !directory.is_dir() {
        return Err(cannot(format!("there is no directory {}", directory.display()))
            .help("make the directory, or write elsewhere with --out FILE"));
    }
    if outside && !access(directory, libc::W_OK | libc::X_OK) {
        return Err(cannot(format!("the directory {} is not writable", directory.display()))
            .help("write elsewhere with --out FILE"));
    }
    // Also a link to nowhere would be replaced.
    if !force && out.symlink_metadata().is_ok() {
        return Err(cannot("it exists already".into())
            .help("replace it with --force, or write elsewhere with --out FILE"));
    }
    Ok(out)
}

fn access(path: &Path, how: libc::c_int) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the path is a NUL-terminated string that outlives the call.
    unsafe { libc::access(path.as_ptr(), how) == 0 }
}

/// Words with an unlikely byte between them, so that the reader in the program needs no parser.
fn joined(words: &[OsString]) -> OsString {
    OsString::from_vec(words.iter().map(|w| w.as_bytes()).collect::<Vec<_>>().join(&0x1f))
}

pub fn find_program(word: &OsStr, path: &OsStr) -> Option<PathBuf> {
    if word.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(word)).filter(|p| is_executable(p));
    }
    std::env::split_paths(path).map(|directory| directory.join(word)).find(|p| is_executable(p))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file() && m.mode() & 0o111 != 0)
}

/// What was there before the program began.
struct Before {
    out: Option<Stamp>,
    alone: Vec<(PathBuf, Option<Stamp>)>,
    /// Directories.
    parts_alone: Vec<PathBuf>,
    parts_spawned: Vec<PathBuf>,
}

impl Before {
    fn now(out: &Path) -> Before {
        let traces = alone(out, TRACE).into_iter().map(|path| (path.clone(), Stamp::of(&path)));
        let parts_spawned = spawned_parts(out).into_iter().map(|(parts, _)| parts).collect();
        Before { out: Stamp::of(out), alone: traces.collect(), parts_alone: alone(out, PARTS), parts_spawned }
    }
}

const TRACE: &str = ".rfn";
const PARTS: &str = ".rfn.parts";

/// What processes to each of which MPI said that it is alone have left: `app.process-0.rfn`, by number.
fn alone(out: &Path, ending: &str) -> Vec<PathBuf> {
    let mark = format!("{}.process-", out.file_stem().unwrap_or_default().to_string_lossy());
    let directory = out.parent().unwrap_or(Path::new("/"));
    let names = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let number = |name: OsString| -> Option<(u32, PathBuf)> {
        let number = name.to_str()?.strip_prefix(&mark)?.strip_suffix(ending)?.parse().ok()?;
        Some((number, directory.join(name)))
    };
    let mut found: Vec<(u32, PathBuf)> = names.filter_map(number).collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

pub fn not_started(program: &OsStr, error: &io::Error) -> Failure {
    let program = program.to_string_lossy();
    let failure = Failure::new(format!("{program} could not be started: {error}"));
    match error.kind() {
        io::ErrorKind::NotFound => failure.help("check the name; the command follows the options after `--`"),
        io::ErrorKind::PermissionDenied => failure.help("is it executable?"),
        _ => failure,
    }
}

/// `claimed`: programs say what they wrote.
fn report(plan: &Plan, before: &Before, jobs: &[Job], claimed: bool, success: bool) {
    if is_device(&plan.out) {
        return;
    }
    let own = |parts: &PathBuf, before: &[PathBuf]| !before.contains(parts) && are_of_run(parts, &plan.run);
    for (parts, out) in spawned_parts(&plan.out) {
        if own(&parts, &before.parts_spawned) {
            take_in(&parts, &out, false, forced(plan.force), plan.ended());
            remove_meeting(&parts);
        }
    }
    for parts in alone(&plan.out, PARTS) {
        if own(&parts, &before.parts_alone) {
            take_in(&parts, &parts.with_extension(""), false, forced(plan.force), plan.ended());
            remove_meeting(&parts);
        }
    }
    report_first(plan, before, jobs.first(), claimed, success);
    for job in jobs.iter().skip(1) {
        report_another(plan, job);
    }
}

/// Of the program that has the run's own name, or of all that came of the run where no program got as far as having one.
fn report_first(plan: &Plan, before: &Before, job: Option<&Job>, claimed: bool, success: bool) {
    let done = job.and_then(|job| job.done);
    let wrote = match done {
        Some(done) => done.wrote(),
        // It never came to its end: what is new is another's.
        None if claimed => None,
        // Nobody can say so here: what is new must be its own.
        None => Stamp::of(&plan.out).filter(|stamp| Some(*stamp) != before.out),
    };
    // What another than this run wrote meanwhile is not replaced, with or without --force.
    let replace = match wrote {
        Some(stamp) => Replace::Only(stamp),
        None => Replace::old(plan.force, before.out),
    };
    let own = has_trace(plan, &plan.out, done, wrote, replace);
    let after = Stamp::of(&plan.out);
    let none = !own || after.is_none() || after == before.out;
    let new = |path: &PathBuf| !before.alone.contains(&(path.clone(), Stamp::of(path)));
    let alone: Vec<PathBuf> = alone(&plan.out, TRACE).into_iter().filter(new).collect();
    if let Some(memory) = &plan.memory {
        let calls = Calls {
            out: &plan.out,
            shown: &plan.shown,
            command: plan.command.clone(),
            is_there: !none,
            replace,
            quiet: plan.quiet,
        };
        match memory.finish(&calls) {
            Ok(()) if none => return,
            Ok(()) => {}
            Err(failure) => failure.say(),
        }
    }
    if let (true, Some(first), Some(last)) = (none, alone.first(), alone.last()) {
        if !plan.quiet {
            let each = plural(alone.len() as u64, "process");
            let last = if alone.len() > 1 { format!(" to {}", last.display()) } else { String::new() };
            say(&format!("{each}, each with a trace of its own -> {}{last}", first.display()));
        }
    } else if none {
        let old = match after {
            None => "",
            after if after == before.out => "; the file that is there is from before",
            _ => "; the file that is there came meanwhile, and nothing says that this run wrote it",
        };
        let why: &[&str] = if success {
            &[
                "Unless a line above says why: the program made no MPI call, calls MPI through pointers from dlsym, is",
                "linked statically, or is set-user-id; or its ranks are on hosts that do not share this directory.",
            ]
        } else if plan.safe {
            &["Unless a line above says why: the program failed before MPI_Init."]
        } else {
            &["The program ended without MPI_Finalize, and --safe off keeps nothing until then."]
        };
        say_more(&format!("no trace was written to {}{old}", plan.shown.display()), why);
    } else if !plan.quiet {
        crate::reading::say_closing(&plan.out, &plan.shown);
    }
}

/// Of a program after the first, whose trace has a name that nothing had before.
fn report_another(plan: &Plan, job: &Job) {
    let wrote = job.done.and_then(Done::wrote);
    let own = has_trace(plan, &job.trace, job.done, wrote, Replace::old(true, wrote));
    let name = job.trace.file_name().unwrap_or_default();
    let shown = plan.shown.with_file_name(name);
    if !own || !job.trace.exists() {
        say(&format!("no trace was written to {}", shown.display()));
    } else if !plan.quiet {
        crate::reading::say_closing(&job.trace, &shown);
    }
}

/// Whether a program has its trace, which it wrote, or which is made here of the parts that it left.
fn has_trace(plan: &Plan, out: &Path, done: Option<Done>, wrote: Option<Stamp>, replace: Replace) -> bool {
    let parts = part::directory(out);
    // So these are another program's, which the launcher does not tell from this one.
    if let Some(Done::Whole(_)) = done {
        let other = claim::free_name(&plan.out);
        if take_in(&parts, &other, false, Replace::Nothing, plan.ended()) && !plan.quiet {
            crate::reading::say_closing(&other, &other);
        }
        return true;
    }
    take_in(&parts, out, wrote.is_some(), replace, plan.ended()) || wrote.is_some()
}

fn forced(force: bool) -> Replace {
    if force { Replace::Anything } else { Replace::Nothing }
}

/// Makes a trace of the parts that a run left, if it did, which is returned; `written`: beside one that lacks some of what
/// they have.
fn take_in(parts: &Path, out: &Path, written: bool, replace: Replace, ended: recover::Ended) -> bool {
    // One that is not ours alone was not written into either.
    let Ok(private) = Private::open(parts) else { return false };
    let kept = part::kept_elsewhere(&private);
    let directories = recover::with_kept(&[parts.to_owned()]);
    if !directories.iter().any(|directory| recover::has_parts(directory)) {
        match kept.is_empty() {
            // There was no room for parts, or a network file system kept what was removed until the ranks had ended.
            true => drop(private.remove_itself()),
            false => say_elsewhere(parts, &kept),
        }
        return false;
    }
    let recovered = match recover::recover(&directories, out, replace, ended) {
        Ok(recovered) => recovered,
        Err(failure) => {
            failure.say();
            return false;
        }
    };
    say(match (written, recovered.trace.meta.complete) {
        (true, _) => {
            "the trace lacked calls that a rank had recorded; it was made anew from what the ranks kept:"
        }
        (false, true) => "the run left no trace, and its ranks had kept all that they did:",
        (false, false) => "the run left no trace; this is what its ranks had kept:",
    });
    if !recovered.living.is_empty() {
        let shown = parts.display();
        recover::say_living(&recovered.living);
        say(&format!("`refrain recover {shown} --force` when they have ended; until then keep {shown}"));
    } else if !recovered.missing.is_empty() {
        recover::say_missing(parts, &recovered.missing);
    } else {
        for (directory, name) in &recovered.ended {
            if let Ok(directory) = Private::open(directory) {
                part::remove(&directory, name);
            }
        }
        if !recovered.unread.is_empty() {
            recover::say_unread(&recovered.unread);
            return true;
        }
        // Nothing is left that they could tell of.
        part::forget_kept(&private);
        for directory in directories.iter().skip(1).filter_map(|directory| Private::open(directory).ok()) {
            let _ = directory.remove_itself();
        }
    }
    true
}

/// What ranks recorded is on their hosts, and nothing of it here.
fn say_elsewhere(parts: &Path, kept: &[(String, PathBuf)]) {
    let kept: Vec<String> =
        kept.iter().map(|(host, place)| format!("on {host} in {}", place.display())).collect();
    let shown = parts.display();
    say_more(
        &format!("what the run recorded is kept {}", kept.join(", ")),
        &[&format!(
            "`refrain recover {shown} DIRECTORY...` makes a trace of copies of these; remove {shown} if it is not needed"
        )],
    );
}

/// Whether a directory has parts of that run, and of no other; or those that it says are kept elsewhere do.
fn are_of_run(parts: &Path, run: &str) -> bool {
    let Ok(private) = Private::open(parts) else { return false };
    let kept = part::kept_elsewhere(&private);
    let elsewhere = kept.iter().filter_map(|(_, place)| Private::open(place).ok());
    let mut read = std::iter::once(private).chain(elsewhere).flat_map(headers).peekable();
    read.peek().is_some() && read.all(|part| part.text("run") == Some(run))
}

/// Removes a directory of which only the files are left by which the ranks meet.
fn remove_meeting(parts: &Path) {
    let Ok(private) = Private::open(parts) else { return };
    let names = private.names().unwrap_or_default();
    let of_meeting =
        |name: &std::ffi::OsString| name.as_encoded_bytes().starts_with(part::MEETING.as_bytes());
    if !part::has_any(&names) && names.iter().all(of_meeting) {
        // What cannot be removed is only in the way.
        names.iter().for_each(|name| drop(private.remove(name)));
        let _ = private.remove_itself();
    }
}

/// What the parts in a directory say first.
fn headers(directory: Private) -> Vec<Part> {
    let names = recover::names(&directory).unwrap_or_default();
    names.iter().filter_map(|name| Part::peek(&directory, name).ok()).collect()
}

/// What programs that the traced one, or another, started have left, and what their traces are called.
fn spawned_parts(out: &Path) -> Vec<(PathBuf, PathBuf)> {
    let name = format!("{}.", out.file_name().unwrap_or_default().to_string_lossy());
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    let directory = out.parent().unwrap_or(Path::new("/"));
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let jobs = names.filter_map(|entry| entry.strip_prefix(&name)?.strip_suffix(".parts").map(str::to_owned));
    jobs.map(|job| {
        let parts = directory.join(format!("{name}{job}.parts"));
        (parts, directory.join(format!("{stem}.spawned-{job}.rfn")))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use refrain_encode::{Folding, Tape};
    use refrain_tracefile::part::{End, Word};

    use super::*;
    use crate::testing::Scratch;

    /// What the trace lacks is nowhere else.
    #[test]
    fn parts_that_cannot_be_read_are_not_removed() {
        let folder = Scratch::new("unread");
        let (out, parts) = (folder.path("x.rfn"), folder.path("x.rfn.parts"));
        let private = Private::make(&parts).unwrap();
        let snapshot = || {
            let mut tape = Tape::new(Folding::default());
            let bundle = Tape::bundle((0, 1), [(0, &mut tape)], |ticks| ticks).unwrap();
            part::snapshot_bytes(&bundle, &[])
        };
        // A header whose snapshot is damaged, gone or whole, and one whose journal is.
        for rank in 0..4u32 {
            let mut bytes = snapshot();
            let words = [
                (Word::Rank, u64::from(rank) + 1),
                (Word::Size, 4),
                (Word::Pid, u64::from(rank) + 1),
                (Word::End, End::Exit as u64),
                (Word::Snapshot, 5),
                (Word::Tail, if rank == 3 { 1 } else { 0 }),
            ];
            let name = format!("{rank}-a-{rank}-0.part");
            let mut part = part::header(&words, "run r\nhost a\nbeside 4\n");
            match rank {
                1 => *bytes.last_mut().unwrap() ^= 1,
                3 => part.push(0xff),
                _ => {}
            }
            std::fs::write(parts.join(&name), part).unwrap();
            if rank != 2 {
                std::fs::write(parts.join(format!("{name}.5")), bytes).unwrap();
            }
        }
        assert!(take_in(&parts, &out, false, Replace::Nothing, recover::Ended::Once));
        let mut left: Vec<String> =
            private.names().unwrap().into_iter().map(|name| name.into_string().unwrap()).collect();
        left.sort();
        let unread = ["1-a-1-0.part", "1-a-1-0.part.5", "2-a-2-0.part", "3-a-3-0.part", "3-a-3-0.part.5"];
        assert_eq!(left, unread);
        let notes = crate::reading::open(&out).unwrap().trace.meta.notes.join("\n");
        assert!(notes.contains("rank 0: exit(0) without MPI_Finalize\n"), "{notes}");
        for why in [
            "rank 1: what it recorded cannot",
            "rank 2: what it",
            "rank 3: exit(0) without MPI_Finalize; calls",
        ] {
            assert!(notes.contains(why), "{notes}");
        }
    }

    /// What another run's programs left beside ours stays where it is.
    #[test]
    fn parts_of_another_run_are_not_taken() {
        let folder = Scratch::new("spawned");
        let out = folder.path("x.rfn");
        let part = |parts: &str, name: &str, run: &str| {
            let private = Private::make(&folder.path(parts)).unwrap();
            std::fs::write(private.path().join(name), part::header(&[], &format!("run {run}\n"))).unwrap();
        };
        part("x.rfn.1.parts", "0-a-1-0.part", "ours");
        part("x.rfn.2.parts", "0-a-1-0.part", "theirs");
        part("x.rfn.3.parts", "0-a-1-0.part", "ours");
        part("x.rfn.3.parts", "0-a-2-0.part", "theirs");
        Private::make(&folder.path("x.rfn.4.parts")).unwrap();
        // Those of the next two are elsewhere.
        for (number, run) in [(5, "ours"), (6, "theirs")] {
            let (here, disk) = (format!("x.rfn.{number}.parts"), format!("disk.{number}"));
            part(&disk, "0-a-1-0.part", run);
            let note = Private::make(&folder.path(&here)).unwrap();
            note.leave("meet-1.kept.a".as_ref(), &folder.path(&disk).to_string_lossy()).unwrap();
        }
        let mut found: Vec<PathBuf> = spawned_parts(&out).into_iter().map(|(parts, _)| parts).collect();
        assert_eq!(found.len(), 6);
        found.retain(|parts| are_of_run(parts, "ours"));
        found.sort();
        assert_eq!(found, [folder.path("x.rfn.1.parts"), folder.path("x.rfn.5.parts")]);
        // When they are taken in, nothing need stay.
        let left = Private::make(&folder.path("x.rfn.4.parts")).unwrap();
        left.leave("meet-1.root".as_ref(), "a").unwrap();
        found.push(left.path().to_owned());
        found.iter().for_each(|parts| remove_meeting(parts));
        assert_eq!(found.iter().map(|parts| parts.exists()).collect::<Vec<_>>(), [true, true, false]);
    }
}
