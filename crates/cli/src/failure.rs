//! Why a command could not be done, in words for its user.

use std::fmt;
use std::io;
use std::path::Path;

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
        write!(out, "{}", self.what)?;
        match &self.help {
            Some(help) => write!(out, "\n  {help}"),
            None => Ok(()),
        }
    }
}
