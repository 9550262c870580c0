//! What a test ran, and where: shown when it fails, removed when it passes.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;

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

#[derive(Default)]
struct Account {
    folders: Vec<PathBuf>,
    ran: Vec<Ran>,
    failed: bool,
}

impl Drop for Account {
    /// The thread of a test ends with the test.
    fn drop(&mut self) {
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
    // A thread without a name is a test's helper: what it makes may be looked at after its end.
    if std::thread::current().name().is_some() {
        ACCOUNT.with_borrow_mut(|account| account.folders.push(folder.to_owned()));
    }
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
