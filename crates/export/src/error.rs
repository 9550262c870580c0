//! Why a trace could not be exported.

use std::fmt;
use std::io;
use std::path::PathBuf;

#[derive(Debug)]
pub enum Error {
    /// The trace cannot be read.
    Trace(refrain_views::Error),
    /// A file or folder cannot be written.
    Write { path: PathBuf, error: io::Error },
    /// There is something already.
    Exists { path: PathBuf },
    /// The format has no way to say this; with what to do about it.
    Refused { what: String, help: String },
}

impl Error {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Error::Exists { .. } => Some("`--force` replaces it".into()),
            Error::Refused { help, .. } => Some(help.clone()),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Trace(error) => error.fmt(f),
            Error::Write { path, error } => write!(f, "{} cannot be written: {error}", path.display()),
            Error::Exists { path } => write!(f, "{} exists already", path.display()),
            Error::Refused { what, .. } => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

impl From<refrain_views::Error> for Error {
    fn from(error: refrain_views::Error) -> Error {
        Error::Trace(error)
    }
}
