//! What a test ran, where, and how long: shown when it fails, removed when it passes.

use std::cell::RefCell;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::Once;
use std::time::{Duration, Instant};

use crate::build;
use crate::run::Outcome;

/// Lines of an output that are shown.
const LINES: usize = 30;
/// Characters of a line that are shown.
const WIDTH: usize = 400;
/// Commands that are shown.
const COMMANDS: usize = 4;

struct Ran {
    words: Vec<String>,
    folder: PathBuf,
    code: i32,
    /// How stdout and stderr end.
    ends: [String; 2],
}

struct Account {
    /// Of the test. A thread without one is a test's helper.
    name: Option<String>,
    began: Instant,
    /// For room for its ranks.
    waited: Duration,
    /// Of processors, in what it ran.
    worked: Duration,
    folders: Vec<PathBuf>,
    ran: Vec<Ran>,
    failed: bool,
}

impl Default for Account {
    fn default() -> Account {
        Account {
            name: std::thread::current().name().map(str::to_owned),
            began: Instant::now(),
            waited: Duration::ZERO,
            worked: Duration::ZERO,
            folders: Vec::new(),
            ran: Vec::new(),
            failed: false,
        }
    }
}

impl Account {
    /// A line of `target/e2e/times`: seconds, how many of them it waited for room, seconds of processors in what it ran, and its
    /// name. It leaves out what helper threads run. The listing is no part of what is tested: it may fail.
    fn list(&self) {
        let Some(name) = &self.name else { return };
        let file = OpenOptions::new().create(true).append(true).open(build::target().join("e2e/times"));
        let [all, waited, worked] =
            [self.began.elapsed(), self.waited, self.worked].map(|time| time.as_secs_f64());
        let line = format!("{all:8.1} {waited:8.1} {worked:8.1}  {name}\n");
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

impl Drop for Account {
    /// The thread of a test ends with the test.
    fn drop(&mut self) {
        self.list();
        if !self.failed {
            for folder in &self.folders {
                // What another user's program left there is swept by the next run.
                let _ = fs::remove_dir_all(folder);
            }
        }
    }
}

thread_local! {
    static ACCOUNT: RefCell<Account> = RefCell::default();
}

/// This folder belongs to the test that runs on this thread.
pub fn owns(folder: &Path) {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |about| {
            before(about);
            fail();
        }));
    });
    ACCOUNT.with_borrow_mut(|account| {
        // What a helper makes may be looked at after its end.
        if account.name.is_some() {
            account.folders.push(folder.to_owned());
        }
    });
}

/// The test on this thread waited for room.
pub fn waited(time: Duration) {
    ACCOUNT.with_borrow_mut(|account| account.waited += time);
}

/// Waits for a process of the test on this thread, and counts what it and those that it waited for have worked.
/// `over` is called while its number is no other's yet.
pub fn end_of(child: Child, over: impl FnOnce()) -> ExitStatus {
    let process = child.id().cast_signed();
    let mut told = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: `told` is there for as long as the call takes. If a signal ends it early, `wait4` waits.
    unsafe { libc::waitid(libc::P_PID, child.id(), told.as_mut_ptr(), libc::WEXITED | libc::WNOWAIT) };
    over();
    let (mut status, mut used) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both are there for as long as the call takes, and any bytes are a `rusage`.
    let used = unsafe {
        while libc::wait4(process, &mut status, 0, used.as_mut_ptr()) < 0 {
            let problem = std::io::Error::last_os_error();
            assert_eq!(problem.kind(), std::io::ErrorKind::Interrupted, "wait4: {problem}");
        }
        used.assume_init()
    };
    let time =
        |t: libc::timeval| Duration::new(t.tv_sec.cast_unsigned(), t.tv_usec.cast_unsigned() as u32 * 1000);
    ACCOUNT.with_borrow_mut(|account| account.worked += time(used.ru_utime) + time(used.ru_stime));
    ExitStatus::from_raw(status)
}

/// Others look at this folder too: it stays when the test on this thread has ended, until the next time the tests run.
pub fn keep(folder: &Path) {
    ACCOUNT.with_borrow_mut(|account| account.folders.retain(|own| own != folder));
}

/// A command of the test on this thread has ended.
pub fn ran(words: &[String], folder: &Path, outcome: &Outcome) {
    ACCOUNT.with_borrow_mut(|account| {
        if account.ran.len() >= COMMANDS {
            account.ran.remove(0);
        }
        let ends = [&outcome.stdout, &outcome.stderr].map(|text| end(text));
        let ran = Ran { words: words.to_vec(), folder: folder.to_owned(), code: outcome.code, ends };
        account.ran.push(ran);
    });
}

/// The test has failed: says what it ran last, and keeps where it ran.
pub fn fail() {
    ACCOUNT.with(|account| {
        // A panic while the account is open comes from here: one word of it is enough.
        let Ok(mut account) = account.try_borrow_mut() else { return };
        account.failed = true;
        for Ran { words, folder, code, ends: [stdout, stderr] } in account.ran.drain(..) {
            eprintln!("it ran, in {}:\n  {}\nexit code {code}", folder.display(), quoted(&words));
            eprint!("stdout:\n{stdout}stderr:\n{stderr}");
        }
    });
}

/// The last lines.
fn end(text: &str) -> String {
    let count = text.lines().count();
    let lines = text.lines().skip(count.saturating_sub(LINES));
    lines.map(|line| format!("  {}\n", line.chars().take(WIDTH).collect::<String>())).collect()
}

/// As a shell takes it.
fn quoted(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+".contains(c);
    let quote = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}
