//! Why a command could not be done, in words for its user.

use std::fmt;

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

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.what)?;
        match &self.help {
            Some(help) => write!(out, "\n  {help}"),
            None => Ok(()),
        }
    }
}
