//! Why a command could not be done, in words for its user.

use std::fmt;
use std::io;
use std::path::Path;

use refrain_sites::printable;
use refrain_tracefile::Error;

/// What went wrong and what to do about it. Ends the command with exit code 2.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    what: String,
    help: Option<String>,
}

impl Failure {
    pub fn new(what: impl Into<String>) -> Failure {
        Failure { what: what.into(), help: None }
    }

    /// Says what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }

    /// Says first what it is a part of.
    pub fn within(mut self, what: &str) -> Failure {
        self.what = format!("{what}: {}", self.what);
        self
    }

    pub fn say(&self) {
        crate::say_more(&self.what, self.help.as_deref().as_slice());
    }

    /// What went wrong, and what to do about it if that is known.
    pub fn into_parts(self) -> (String, Option<String>) {
        (self.what, self.help)
    }
}

/// Lines for people, those after the first indented. Any may have a name in it that somebody else chose: only where one of
/// ours ends does a line end.
pub fn lines(first: &str, more: &[&str]) -> String {
    more.iter().fold(printable(first).into_owned(), |text, line| text + "\n  " + &printable(line))
}

/// A file that could not be opened or read.
pub fn not_read(path: &Path, error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    };
    Failure::new(format!("{} cannot be read: {why}", path.display()))
}

/// A trace that could not be written.
pub fn not_saved(error: &Error) -> Failure {
    match error {
        Error::Exists { path } => {
            Failure::new(format!("{} exists already", path.display())).help("`--force` replaces it")
        }
        error => Failure::new(error.to_string()),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&lines(&self.what, self.help.as_deref().as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Failure, not_read};

    #[test]
    fn names_make_no_lines() {
        let name = "a\nrefrain: all is well\n  \u{1b}[2J\u{2028}b";
        let shown = r"a\nrefrain: all is well\n  \u001b[2J\u2028b";
        let failure = not_read(Path::new(name), &std::io::ErrorKind::NotFound.into());
        assert_eq!(failure.to_string(), format!("{shown} cannot be read: there is no such file"));
        let failure = Failure::new(format!("no {name}")).help(format!("make {name}"));
        assert_eq!(failure.to_string(), format!("no {shown}\n  make {shown}"));
    }
}
