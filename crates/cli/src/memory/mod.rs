//! `refrain memory run`: start a program in QEMU's user mode, with our plugin, and make one trace of what it recorded.

mod cc;
mod command;
mod engine;
mod gather;
mod switch;
mod with_calls;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use refrain_tracefile::claim::{free_name, numbered};
use refrain_tracefile::private::Private;
use refrain_tracefile::{Meta, Replace, Stamp, is_device, part};
use refrain_views::human::{plural, thousands};

use crate::failure::Failure;
use crate::run::{self, hold, library, wait};
use crate::{recover, say, say_more};
pub use cc::{CC_HELP, cc};
use command::{Emulator, joined};
use engine::{Choice, Engine, is_compiled};
use gather::{Written, left};
pub use with_calls::{Beside, Calls, WithCalls};

const QEMU: &str = "qemu-x86_64";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Fold {
    Rules,
    Loops,
}

const CHOOSING: &str = "Choosing what to record";

#[derive(Debug, clap::Args)]
pub struct RunFlags {
    /// Write the trace here [default: the program's name + .rfn]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the trace if it is there already
    #[arg(long)]
    force: bool,
    /// Say nothing when all is well
    #[arg(long, short)]
    quiet: bool,
    /// Record by QEMU or by compiled-in calls (see `refrain memory cc --help`)
    #[arg(long, value_enum, default_value = "auto")]
    engine: Choice,
    /// Leave addresses as random as the system makes them, where no emulator is used: runs differ in them then
    #[arg(long)]
    random_addresses: bool,
    /// Keep the order of code blocks as rules (smallest) or as the program's loops
    #[arg(long, value_enum, default_value = "rules")]
    fold: Fold,
    /// Do not keep by which calls code was reached
    #[arg(long)]
    no_stacks: bool,
    /// Record instruction fetches too
    #[arg(long, help_heading = CHOOSING)]
    fetches: bool,
    /// Record the first N references of each thread
    #[arg(long, value_name = "N", help_heading = CHOOSING)]
    limit: Option<u64>,
    /// Record from when this function is called, by any thread
    #[arg(long, value_name = "FUNCTION", help_heading = CHOOSING)]
    from: Option<String>,
    /// Stop recording when this function is called, until --from is called again
    #[arg(long, value_name = "FUNCTION", help_heading = CHOOSING)]
    to: Option<String>,
    /// Begin switched off; `refrain_memory_on()` in the program (include/refrain.h) or `refrain memory on FILE` switches on
    #[arg(long, conflicts_with = "from", help_heading = CHOOSING)]
    off: bool,
    /// Record the program's own code only
    #[arg(long, help_heading = CHOOSING)]
    skip_libraries: bool,
    /// Record the code of one file only, by how its name begins: libm.so
    #[arg(long, value_name = "NAME", conflicts_with = "skip_libraries", help_heading = CHOOSING)]
    only_module: Option<String>,
    /// Record programs with this file name only, of those that the command and its scripts start
    #[arg(long, value_name = "NAME", help_heading = CHOOSING)]
    only_program: Option<String>,
    /// Run programs that others become (exec) outside the emulator, unrecorded
    #[arg(long, help_heading = CHOOSING)]
    no_follow: bool,
}

pub const RUN_HELP: &str = "\
The program needs no rebuilding. It runs in QEMU's user mode (Debian: qemu-user), 10 to 50 times slower than by itself:

  refrain memory run -- ./app                     writes app.rfn
  refrain memory run -- mpiexec -n 4 ./app        every rank in an emulator of its own, one trace
  refrain memory run --from solve --to finish --skip-libraries -- ./app
  refrain memory run --limit 1000000 -- ./app
  refrain memory run --only-program app -- sh script.sh
  refrain memory run --off -- ./app               until the program calls refrain_memory_on() (include/refrain.h), or
                                                  somebody `refrain memory on app.rfn`

A program that `refrain memory cc` made is recorded without QEMU, several times faster (--engine).

Recorded is every load and store of every thread, in order, with its address, its size, and the code and the calls that it
comes from. A vector access is one reference. Each reference of an instruction that has several stands by itself, so does each
iteration of a string instruction. An atomic operation is one update. Threads are numbered as they were created.
A process that was forked has a trace of its own, app.2.rfn and so on; so has every program that is started by another (exec),
such as those of a script. Programs that insist on AVX-512 do not run.
What was recorded is written about every second: if the program is killed, a partial trace is made of that.

The exit code is the program's own; 128 + the signal's number if a signal ended it; 2 if it could not be started.";

pub const SWITCH_HELP: &str = "\
  refrain memory run --off --out app.rfn -- ./app &
  refrain memory on app.rfn; sleep 5; refrain memory off app.rfn

Holds for every process of the run, on this machine. Whoever switches last is right: this, refrain_memory_on() and
refrain_memory_off() in the program (include/refrain.h), or the functions of --from and --to.";

impl RunFlags {
    /// What the plugin is told.
    fn plugin(&self, parts: &Path) -> Vec<OsString> {
        let mut words = vec![joined("parts=", parts.as_os_str())];
        for (option, value) in self.options() {
            words.push(match option {
                "no-stacks" => "stacks=off".into(),
                "skip-libraries" => "code=program".into(),
                "only-module" => format!("module={value}").into(),
                "only-program" => format!("only={value}").into(),
                "no-follow" => "follow=off".into(),
                "off" => "switch=off".into(),
                "fetches" => "fetches=on".into(),
                _ => format!("{option}={value}").into(),
            });
        }
        words
    }

    /// What differs from what one gets without asking, as it is asked for.
    fn options(&self) -> Vec<(&'static str, String)> {
        let mut options: Vec<(&str, String)> = Vec::new();
        if self.fold == Fold::Loops {
            options.push(("fold", "loops".into()));
        }
        let switches = [
            ("no-stacks", self.no_stacks),
            ("skip-libraries", self.skip_libraries),
            ("no-follow", self.no_follow),
            ("off", self.off),
            ("fetches", self.fetches),
        ];
        let given = switches.into_iter().filter(|(_, given)| *given);
        options.extend(given.map(|(name, _)| (name, String::new())));
        let given = [
            ("from", &self.from),
            ("to", &self.to),
            ("only-module", &self.only_module),
            ("only-program", &self.only_program),
        ];
        options.extend(given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
        options.extend(self.limit.map(|limit| ("limit", limit.to_string())));
        options
    }
}

impl RunFlags {
    fn engine(&self, words: &[OsString], path: &OsStr, library: PathBuf) -> Result<Engine, Failure> {
        let is_asked = self.engine == Choice::Compiled;
        if !is_asked && (self.engine == Choice::Qemu || !is_compiled(words, path)) {
            if self.random_addresses {
                return Err(Failure::new("--random-addresses is for programs made by `refrain memory cc`")
                    .help("leave it out: in the emulator addresses are the emulator's"));
            }
            let (emulator, version) = find_emulator(path)?;
            return Ok(Engine::Emulator { emulator, version });
        }
        if self.only_module.is_some() {
            return Err(Failure::new(
                "--only-module needs the emulator: libraries are not compiled to be recorded",
            )
            .help("use --engine qemu"));
        }
        if self.fetches {
            return Err(Failure::new(
                "--fetches needs the emulator: the compiler tells of loads and stores only",
            )
            .help("use --engine qemu"));
        }
        Ok(Engine::Compiled { library, told: Vec::new(), is_random: self.random_addresses })
    }
}

/// QEMU, and what it calls itself.
fn qemu(path: &OsStr) -> Result<(PathBuf, String), Failure> {
    let Some(qemu) = run::find_program(QEMU.as_ref(), path) else {
        return Err(Failure::new(format!("{QEMU} is not in PATH: memory references are recorded by it"))
            .help("install QEMU's user mode: on Debian and Ubuntu `apt install qemu-user`, version 7.2 or newer"));
    };
    let told = Command::new(&qemu).arg("--version").output();
    let told = told.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    Ok((qemu, told.lines().next().unwrap_or(QEMU).to_owned()))
}

pub use switch::command as switch;

/// The emulator with our plugin, which is told nothing yet, and what QEMU calls itself.
fn find_emulator(path: &std::ffi::OsStr) -> Result<(Emulator, String), Failure> {
    let (qemu, version) = qemu(path)?;
    let binary = std::env::current_exe()
        .map_err(|e| Failure::new(format!("the path of this program is not known: {e}")))?;
    let library = library::find(&binary, &library::MEMORY, None)?;
    Ok((Emulator { qemu, library, plugin: Vec::new(), environment: Vec::new() }, version))
}

pub fn run(flags: &RunFlags, words: &[OsString]) -> Result<ExitCode, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if flags.from.is_some() && flags.from == flags.to {
        return Err(Failure::new("--from and --to name the same function").help("name two, or leave one out"));
    }
    let binary = std::env::current_exe()
        .map_err(|e| Failure::new(format!("the path of this program is not known: {e}")))?;
    let library = library::find(&binary, &library::MEMORY, None)?;
    // Where the parts lie depends on the program's name.
    let mut engine = flags.engine(words, &path, library)?;
    let understood = engine.understood(words, &path)?;
    if !understood.is_launched && run::inside_launcher(|name| std::env::var_os(name)) {
        return Err(Failure::new("`refrain memory run` goes before the launcher")
            .help("refrain memory run -- mpiexec -n 4 ./app"));
    }
    let shown = flags.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.rfn", understood.name)));
    let out = run::writable_place(&shown, flags.force, run::Position::Outside)?;
    if is_device(&out) {
        return Err(Failure::new(format!(
            "the trace cannot be written to {}: it is a device",
            shown.display()
        ))
        .help("name a file: --out FILE"));
    }
    let name = run::run_name();
    let number = hold::take(&out, &name, flags.force, true)?;
    let (out, shown) = (numbered(&out, number), numbered(&shown, number));
    let held = hold::Held { out: &out, run: &name };
    let parts = part::directory(&out);
    make_room(&parts, flags.force)?;
    if let Err(error) = switch::make(&parts, !flags.off) {
        say(&format!("recording cannot be switched from outside: {}: {error}", parts.display()));
    }
    engine.tell(flags.plugin(&parts));
    let understood = engine.understood(words, &path)?;
    let before = Stamp::of(&out);
    let began = Instant::now();
    let mut command = Command::new(&understood.words[0]);
    command.args(&understood.words[1..]);
    engine.prepare(&mut command, understood.is_launched);
    let grace = Duration::from_secs(30);
    let patience = wait::Patience { launcher: understood.is_launched, grace, option: "" };
    let status =
        wait::run(&mut command, patience).map_err(|error| run::not_started(&understood.words[0], &error))?;
    if let Some(signal) = wait::signal(status) {
        let (code, signal) = (wait::exit_code(status), recover::signal_name(signal.into()));
        let first = Path::new(&words[0]).display();
        say(&format!("{first} ended with {code}, which stands for {signal}"));
    }
    let meta = Meta {
        command: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        library: engine.name(),
        wall_ns: began.elapsed().as_nanos().try_into().unwrap_or(u64::MAX),
        options: flags.options().into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        ..Meta::default()
    };
    let made = make(&parts, meta, &out, &shown, Replace::old(flags.force, before), flags.quiet);
    match made {
        Ok(()) => drop(gather::clear(&parts)),
        Err(failure) => {
            failure.say();
            if gather::is_there(&parts) {
                let there = parts.display();
                say_more(
                    &format!("what was recorded is in {there}"),
                    &[&format!("make a trace of it elsewhere: refrain recover {there} --out FILE")],
                );
            } else {
                drop(gather::clear(&parts));
            }
        }
    }
    drop(held);
    Ok(ExitCode::from(wait::exit_code(status)))
}

/// What an earlier run has left is in the way.
fn make_room(parts: &Path, force: bool) -> Result<(), Failure> {
    if !gather::is_there(parts) {
        return Ok(());
    }
    if !force {
        return Err(unfinished(parts));
    }
    gather::clear(parts)
        .map_err(|error| Failure::new(format!("{} cannot be cleared: {error}", parts.display())))
}

fn unfinished(parts: &Path) -> Failure {
    let parts = parts.display();
    Failure::new(format!("{parts} is there: an earlier run did not end well"))
        .help(format!("make a trace of it with `refrain recover {parts}`, or drop it with --force"))
}

/// Makes traces of what was recorded, and says so.
fn make(
    parts: &Path,
    meta: Meta,
    out: &Path,
    shown: &Path,
    replace: Replace,
    quiet: bool,
) -> Result<(), Failure> {
    let unread = |error: std::io::Error| Failure::new(format!("{} cannot be read: {error}", parts.display()));
    let private = Private::open(parts).map_err(unread)?;
    let found = left(&private).map_err(unread)?;
    if found.programs.is_empty() {
        return Err(Failure::new(format!("no trace was written to {}", shown.display()))
            .help(
                "unless a line above says why: the program did not start, or not in the emulator; --engine compiled was asked \
                 for, and it was not made by `refrain memory cc`; or no program has the name of --only-program",
            ));
    }
    if !traces(&private, &found, &meta, (out, shown), Some(replace), quiet)? {
        say("no trace was written: the program ended before anything was recorded");
    }
    Ok(())
}

/// Makes a trace of each program, and says so; whether there is one. The first has the name, if it may; what it may replace is
/// said then.
fn traces(
    private: &Private,
    found: &gather::Left,
    meta: &Meta,
    (out, shown): (&Path, &Path),
    first: Option<Replace>,
    quiet: bool,
) -> Result<bool, Failure> {
    let switched = switch::times(private);
    let mut is_made = false;
    for program in &found.programs {
        let Some(process) = program.first() else { continue };
        let mut meta = meta.clone();
        let name = refrain_sites::printable(&process.program).into_owned();
        if process.parent != 0 {
            meta.notes.push(format!("forked by process {}, which has a trace of its own", process.parent));
        } else if process.image > 0 {
            meta.notes.push(format!("of {name}, which the run came to"));
        }
        if switched > 0 {
            let times = plural(switched.into(), "time");
            meta.notes.push(format!("recording was switched on or off {times} while the program ran"));
        }
        if !is_made && found.replaced > 0 {
            let became = plural(found.replaced as u64, "process");
            meta.notes.push(format!("{became} that it forked became other programs, which are not recorded"));
        }
        // The first has the name, others the next ones that nobody has.
        let (to, replace) = match first {
            Some(replace) if !is_made => (out.to_owned(), replace),
            _ => (free_name(out), Replace::Nothing),
        };
        if let Some(written) = gather::write(private, program, meta, &to, replace)? {
            let name = (process.parent != 0 || process.image > 0).then_some(&*name);
            tell(&written, &shown.with_file_name(to.file_name().unwrap_or_default()), name, quiet);
            is_made = true;
        }
    }
    Ok(is_made)
}

/// `program` is told where it is not the one that was asked for.
fn tell(written: &Written, shown: &Path, program: Option<&str>, quiet: bool) {
    if written.replaced > 0 {
        say_more(
            "warning: the program became another one (exec), which is not recorded",
            &["`refrain info` says which one, and why"],
        );
    }
    if quiet && written.complete {
        return;
    }
    let ranks = if written.ranks > 1 { plural(written.ranks.into(), "rank") + ", " } else { String::new() };
    let (threads, references) = (plural(written.threads, "thread"), plural(written.references, "reference"));
    let partial = if written.complete { "" } else { " (partial, see `refrain info`)" };
    let (bytes, shown) = (thousands(written.bytes), shown.display());
    let of = program.map_or(String::new(), |program| format!("{program}: "));
    say(&format!("{of}{ranks}{threads}, {references}, {bytes} bytes -> {shown}{partial}"));
    if written.references == 0 && written.complete {
        say_more(
            "warning: nothing was recorded",
            &["`refrain info` may say why; look at --from, --only-module, --limit, --off if they were given"],
        );
    }
}

/// Whether a directory has parts of such a run.
pub fn has_parts(parts: &Path) -> bool {
    gather::is_there(parts)
}

/// Puts the references that a run left behind into the file that was just made of its calls.
pub fn recover_beside(parts: &Path, out: &Path, command: Vec<String>) -> Result<(), Failure> {
    let calls = Calls { out, shown: out, command, is_there: true, replace: Replace::Nothing, quiet: false };
    with_calls::attach(parts, &calls, Meta { command: calls.command.clone(), ..Meta::default() })
}

/// Makes a trace of parts that a run left behind.
pub fn recover(parts: &Path, out: &Path, replace: Replace) -> Result<(), Failure> {
    make(parts, Meta::default(), out, out, replace, false)?;
    say_more("the parts are kept", &["remove them when the trace is what you want"]);
    Ok(())
}
