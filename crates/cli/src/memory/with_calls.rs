//! `refrain run --memory`: the memory references of a run whose MPI calls are recorded, in the same file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use refrain_references::parts::Process;
use refrain_tracefile::private::Private;
use refrain_tracefile::{Error, Meta, Replace, Stamp, part};
use refrain_views::human::plural;

use super::command::{Emulator, emulated, joined};
use super::gather::{self, left};
use super::{find_emulator, switch, traces};
use crate::failure::{Failure, not_saved};
use crate::run;
use crate::say;

const HEADING: &str = "Memory references";

/// The section of the library for calls that the plugin needs.
const WATCHED: &[u8] = b"refrain_calls";

#[derive(Debug, Clone, Default, clap::Args)]
pub struct WithCalls {
    /// Record loads and stores too, in the same file: each lies between two calls. The ranks run in QEMU's user mode
    /// (Debian: qemu-user), 10 to 50 times slower. Only code of the program's own file is recorded: a library that waits
    /// by asking has as many references as it had time
    #[arg(long, help_heading = HEADING)]
    memory: bool,
    /// Record the code of libraries too, MPI's among them
    #[arg(long, requires = "memory", help_heading = HEADING)]
    libraries: bool,
    /// Record the code of one file only, by how its name begins: libm.so
    #[arg(long, value_name = "NAME", requires = "memory", conflicts_with = "libraries", help_heading = HEADING)]
    only_module: Option<String>,
    /// Record the first N references of each thread
    #[arg(long, value_name = "N", requires = "memory", help_heading = HEADING)]
    limit: Option<u64>,
    /// Record references from when this function is called, by any thread
    #[arg(long, value_name = "FUNCTION", requires = "memory", help_heading = HEADING)]
    from: Option<String>,
    /// Stop when this function is called, until --from is called again
    #[arg(long, value_name = "FUNCTION", requires = "memory", help_heading = HEADING)]
    to: Option<String>,
}

/// All that it takes, found before anything is started.
#[derive(Debug)]
pub struct Beside {
    emulator: Emulator,
    /// What the emulator calls itself.
    version: String,
    /// What the plugin is told.
    plugin: Vec<OsString>,
    /// What differs from what one gets without asking.
    options: Vec<(String, String)>,
}

/// A trace of calls, and where.
#[derive(Debug)]
pub struct Calls<'a> {
    pub out: &'a Path,
    /// As the user would write it.
    pub shown: &'a Path,
    pub command: Vec<String>,
    /// The file that has the calls; without one the references are a trace of their own.
    pub is_there: bool,
    /// What of that name may be replaced then.
    pub replace: Replace,
    pub quiet: bool,
}

impl WithCalls {
    /// `None` where no references are asked for. `library` records calls. `loops`: the order of calls is kept as loops, and so is that of blocks;
    /// `lossy`: calls may be left out.
    pub fn beside(
        &self,
        words: &[OsString],
        library: &Path,
        (loops, lossy): (bool, bool),
        env: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Beside>, Failure> {
        if !self.memory {
            return Ok(None);
        }
        if lossy {
            return Err(Failure::new("--lossy may leave calls out, and references lie between calls").help(
                "leave --lossy out (also REFRAIN_LOSSY), or record the references alone: refrain memory run",
            ));
        }
        if self.from.is_some() && self.from == self.to {
            return Err(
                Failure::new("--from and --to name the same function").help("name two, or leave one out")
            );
        }
        if !std::fs::read(library).is_ok_and(|bytes| bytes.windows(WATCHED.len()).any(|name| name == WATCHED))
        {
            return Err(Failure::new(format!(
                "{} does not say where it records calls: it is not of this version",
                library.display()
            ))
            .help("unset REFRAIN_LIBRARY, or build it anew"));
        }
        let path = env("PATH").unwrap_or_default();
        let (emulator, version) = find_emulator(&path)?;
        let understood = emulated(words, &emulator, &path)?;
        if !understood.is_launched && run::inside_launcher(env) {
            return Err(Failure::new("`refrain run --memory` goes before the launcher")
                .help("refrain run --memory -- mpiexec -n 4 ./app"));
        }
        let mut plugin: Vec<OsString> = vec!["calls=on".into()];
        if loops {
            plugin.push("fold=loops".into());
        }
        let mut options = Vec::new();
        match (&self.only_module, self.libraries) {
            (Some(module), _) => {
                plugin.push(format!("module={module}").into());
                options.push(("only-module".to_owned(), module.clone()));
            }
            (None, true) => options.push(("libraries".to_owned(), String::new())),
            (None, false) => plugin.push("code=program".into()),
        }
        let limit = self.limit.map(|limit| limit.to_string());
        for (name, value) in [("from", &self.from), ("to", &self.to), ("limit", &limit)] {
            if let Some(value) = value {
                plugin.push(format!("{name}={value}").into());
                options.push((name.to_owned(), value.clone()));
            }
        }
        Ok(Some(Beside { emulator, version, plugin, options }))
    }
}

impl Beside {
    /// The command with the emulator before each program. The trace will be `out`. `preload` is for the program, and not for the
    /// emulator.
    pub fn enter(
        &mut self,
        words: &[OsString],
        out: &Path,
        force: bool,
        preload: &OsStr,
        path: &OsStr,
    ) -> Result<Vec<OsString>, Failure> {
        if preload.as_bytes().contains(&b',') {
            let preload = Path::new(preload).display();
            return Err(Failure::new(format!("{preload} cannot be preloaded in QEMU: its path has a comma"))
                .help("move the library, or let REFRAIN_LIBRARY name a copy elsewhere"));
        }
        let parts = part::directory(out);
        super::make_room(&parts, force)?;
        switch::make(&parts, true)
            .map_err(|error| Failure::new(format!("{} cannot be written to: {error}", parts.display())))?;
        self.emulator.environment = vec![joined("LD_PRELOAD=", preload)];
        self.emulator.plugin = vec![joined("parts=", parts.as_os_str())];
        self.emulator.plugin.extend(self.plugin.iter().cloned());
        Ok(emulated(words, &self.emulator, path)?.words)
    }

    /// Puts what the processes have left behind the calls.
    pub fn finish(&self, calls: &Calls<'_>) -> Result<(), Failure> {
        let meta = Meta { library: self.version.clone(), options: self.options.clone(), ..Meta::default() };
        finish(calls, meta)
    }
}

/// Puts the references that a run has left behind its calls, and removes their parts.
pub fn finish(calls: &Calls<'_>, meta: Meta) -> Result<(), Failure> {
    let parts = part::directory(calls.out);
    attach(&parts, calls, Meta { command: calls.command.clone(), ..meta })?;
    drop(gather::clear(&parts));
    Ok(())
}

/// Puts the references of these parts behind the calls.
pub fn attach(parts: &Path, calls: &Calls<'_>, meta: Meta) -> Result<(), Failure> {
    let unread = |error: std::io::Error| Failure::new(format!("{} cannot be read: {error}", parts.display()));
    let private = Private::open(parts).map_err(unread)?;
    let mut found = left(&private).map_err(unread)?;
    if found.programs.is_empty() {
        return Err(Failure::new("no memory references were recorded")
            .help("unless a line above says why: the program did not start in the emulator"));
    }
    let Calls { out, shown, quiet, .. } = *calls;
    if !calls.is_there {
        say("no MPI call was recorded: the trace has memory references only");
        traces(&private, &found, &meta, (out, shown), Some(calls.replace), quiet)?;
        return Ok(());
    }
    // A script may have started the one that makes calls.
    let makes_calls = |processes: &Vec<Process>| gather::has_marks(&private, processes);
    let program = found.programs.remove(found.programs.iter().position(makes_calls).unwrap_or(0));
    let mut own = meta.clone();
    let switched = switch::times(&private);
    if switched > 0 {
        let times = plural(switched.into(), "time");
        own.notes.push(format!("recording was switched on or off {times} while the program ran"));
    }
    // It ends as others that are left over do, and goes with them.
    let alone = parts.join("references.new");
    if gather::write(&private, &program, own, &alone, Replace::Anything)?.is_some() {
        join(out, &alone).map_err(|error| not_saved(&error))?;
    }
    // What cannot be removed is only in the way.
    let _ = std::fs::remove_file(&alone);
    traces(&private, &found, &meta, (out, shown), None, quiet)?;
    Ok(())
}

/// Makes one file of a trace of calls and one of references.
fn join(calls: &Path, references: &Path) -> Result<(), Error> {
    let read = |path: &Path| {
        let path: PathBuf = path.into();
        File::open(&path).map_err(|error| Error::Io { action: "read", path, error })
    };
    let (first, second) = (read(calls)?, read(references)?);
    let Some(stamp) = Stamp::of(calls) else {
        let error = std::io::ErrorKind::NotFound.into();
        return Err(Error::Io { action: "read", path: calls.into(), error });
    };
    refrain_tracefile::replace_with(calls, stamp, |file| {
        refrain_tracefile::attach(BufReader::new(first), BufReader::new(second), file)
    })?;
    Ok(())
}
