//! A command that is run to its end or its limit, with what it printed and what it took.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::Result;

/// Nothing that is measured may take longer, if nothing else is said.
const LIMIT: Duration = Duration::from_secs(300);
/// What does not end when it is told to is killed after this.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct Task {
    words: Vec<OsString>,
    environment: Vec<(String, OsString)>,
    bare: bool,
    folder: Option<PathBuf>,
    input: Option<PathBuf>,
    output: Option<PathBuf>,
    silent: bool,
    limit: Duration,
}

#[derive(Debug)]
pub struct Ran {
    /// None: a signal ended it.
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    /// Seconds of the clock.
    pub wall: f64,
    /// Processor seconds, of its children too.
    pub cpu: f64,
    pub user: f64,
    /// The largest memory of one of its processes, KiB.
    pub peak: u64,
    pub over: bool,
}

impl Task {
    pub fn new(program: impl AsRef<OsStr>) -> Task {
        Task {
            words: vec![program.as_ref().to_owned()],
            environment: Vec::new(),
            bare: false,
            folder: None,
            input: None,
            output: None,
            silent: false,
            limit: LIMIT,
        }
    }

    pub fn of(words: &[&str]) -> Task {
        Task::new(words[0]).args(&words[1..])
    }

    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Task {
        self.words.push(word.as_ref().to_owned());
        self
    }

    pub fn args<W: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = W>) -> Task {
        self.words.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// All words of another command behind this one's, and its settings.
    pub fn then(mut self, other: &Task) -> Task {
        self.words.extend(other.words.iter().cloned());
        self.environment.extend(other.environment.iter().cloned());
        self.folder = self.folder.or_else(|| other.folder.clone());
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Task {
        self.environment.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Only `PATH` of the environment, and what `env` adds.
    pub fn bare(mut self) -> Task {
        self.bare = true;
        self
    }

    pub fn dir(mut self, folder: &Path) -> Task {
        self.folder = Some(folder.to_owned());
        self
    }

    pub fn input(mut self, file: &Path) -> Task {
        self.input = Some(file.to_owned());
        self
    }

    /// What it prints goes to this file, and is not in `Ran::out`.
    pub fn output(mut self, file: &Path) -> Task {
        self.output = Some(file.to_owned());
        self
    }

    /// What it prints goes nowhere.
    pub fn silent(mut self) -> Task {
        self.silent = true;
        self
    }

    pub fn limit(mut self, seconds: u64) -> Task {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Runs it. An error if it fails or takes too long.
    pub fn run(&self) -> Result<Ran> {
        self.in_time()?.ok_or_else(|| format!("{self}: not within {} s", self.limit.as_secs()).into())
    }

    /// Runs it. None if it takes too long; an error if it fails.
    pub fn in_time(&self) -> Result<Option<Ran>> {
        let ran = self.attempt()?;
        match ran.code {
            _ if ran.over => Ok(None),
            Some(0) => Ok(Some(ran)),
            code => Err(format!("{self}: ended with {code:?}\n{}{}", ran.out, ran.err).into()),
        }
    }

    /// Runs it. An error only if it cannot be started.
    pub fn attempt(&self) -> Result<Ran> {
        let mut streams = (scratch_file()?, scratch_file()?);
        let mut command = self.command()?;
        command.stdout(match &self.output {
            Some(file) => Stdio::from(File::create(file)?),
            None if self.silent => Stdio::null(),
            None => Stdio::from(streams.0.try_clone()?),
        });
        command.stderr(match self.silent {
            true => Stdio::null(),
            false => Stdio::from(streams.1.try_clone()?),
        });
        let begun = Instant::now();
        let child = command.spawn().map_err(|error| format!("{self}: {error}"))?;
        let (status, usage, over) = wait(child.id() as libc::pid_t, self.limit)?;
        let wall = begun.elapsed().as_secs_f64();
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Ok(Ran {
            code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            out: read_back(&mut streams.0)?,
            err: read_back(&mut streams.1)?,
            wall,
            cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime),
            user: seconds(usage.ru_utime),
            peak: usage.ru_maxrss as u64,
            over,
        })
    }

    /// The command in a process group of its own, which ends with this process.
    pub fn command(&self) -> Result<Command> {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).process_group(0);
        if self.bare {
            command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command.stdin(match &self.input {
            Some(file) => Stdio::from(File::open(file)?),
            None => Stdio::null(),
        });
        // SAFETY: prctl is a system call and touches no memory of ours.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                Ok(())
            });
        }
        Ok(command)
    }
}

impl std::fmt::Display for Task {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        to.write_str(&words.join(" "))
    }
}

/// Waits for a child. A second thread ends its group at the limit.
fn wait(child: libc::pid_t, limit: Duration) -> std::io::Result<(i32, libc::rusage, bool)> {
    let (ended, end) = channel();
    let watch = std::thread::spawn(move || watch(child, limit, &end));
    // SAFETY: zeroes are a value of both structures.
    let (mut info, mut usage): (libc::siginfo_t, libc::rusage) = unsafe { std::mem::zeroed() };
    let mut status = 0;
    // The child stays a zombie until the watch is over, so that its number is nobody else's.
    let waited = uninterrupted(|| {
        // SAFETY: the structure is ours, and the child was not waited for.
        unsafe { libc::waitid(libc::P_PID, child as libc::id_t, &mut info, libc::WEXITED | libc::WNOWAIT) }
    });
    let _ = ended.send(());
    let over = watch.join().unwrap_or(false);
    waited?;
    // SAFETY: status and usage are ours.
    uninterrupted(|| unsafe { libc::wait4(child, &mut status, 0, &mut usage) })?;
    Ok((status, usage, over))
}

/// A system call, again where a signal interrupted it.
fn uninterrupted(mut call: impl FnMut() -> libc::c_int) -> std::io::Result<()> {
    while call() < 0 {
        let error = std::io::Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}

/// True if the child's group had to be ended.
fn watch(child: libc::pid_t, limit: Duration, end: &Receiver<()>) -> bool {
    if end.recv_timeout(limit).is_ok() {
        return false;
    }
    for (signal, patience) in [(libc::SIGTERM, GRACE), (libc::SIGKILL, GRACE)] {
        // SAFETY: kill touches no memory; the group is that of a child that was not waited for.
        unsafe { libc::kill(-child, signal) };
        if end.recv_timeout(patience).is_ok() {
            break;
        }
    }
    true
}

/// A file without a name. Not a pipe: what a launcher leaves running may keep its end of one.
fn scratch_file() -> Result<File> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("refrain-bench-{}-{}.out", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let file = OpenOptions::new().read(true).append(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn read_back(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Where a command is.
pub fn find(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    // A path that begins at the root replaces the folder.
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

pub fn installed(name: &str) -> bool {
    find(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_comes_back() {
        let ran = Task::of(&["sh", "-c", "echo out; echo err >&2; echo $X; exit 3"])
            .env("X", "1 2")
            .attempt()
            .unwrap();
        assert_eq!(
            (ran.code, ran.out.as_str(), ran.err.as_str(), ran.over),
            (Some(3), "out\n1 2\n", "err\n", false)
        );
    }

    #[test]
    fn a_failure_is_an_error_that_names_the_command() {
        let told = Task::of(&["sh", "-c", "echo why >&2; exit 3"]).run().unwrap_err().to_string();
        assert!(told.starts_with("sh -c") && told.contains("why"), "{told}");
        assert!(Task::of(&["/no/such/command"]).run().unwrap_err().to_string().contains("/no/such/command"));
    }

    #[test]
    fn what_never_ends_is_ended() {
        let ran = Task::of(&["sleep", "1000000"]).limit(0).attempt().unwrap();
        assert_eq!((ran.code, ran.over), (None, true));
    }

    #[test]
    fn what_takes_too_long_is_none_and_what_fails_is_an_error() {
        assert!(Task::of(&["sleep", "1000000"]).limit(0).in_time().unwrap().is_none());
        assert!(Task::of(&["false"]).in_time().is_err());
        assert!(Task::of(&["sh", "-c", "kill -SEGV $$"]).in_time().is_err());
        assert!(Task::of(&["true"]).in_time().unwrap().is_some());
    }

    #[test]
    fn a_wait_ends_with_an_error_that_is_no_interruption() {
        // A process is no child of itself.
        let error = wait(std::process::id() as libc::pid_t, LIMIT).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ECHILD));
    }

    #[test]
    fn what_a_silent_task_prints_goes_nowhere() {
        let ran = Task::of(&["sh", "-c", "echo out; echo err >&2"]).silent().run().unwrap();
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
    }

    #[test]
    fn a_bare_task_has_a_path_and_what_it_is_given() {
        let ran = Task::of(&["env"]).bare().env("A", "b").run().unwrap();
        let names: Vec<_> = ran.out.lines().filter_map(|line| line.split('=').next()).collect();
        assert!(names.contains(&"PATH") && names.contains(&"A") && !names.contains(&"HOME"), "{names:?}");
    }

    #[test]
    fn commands_are_found() {
        assert!(installed("sh") && !installed("no-such-command-anywhere"));
    }
}
