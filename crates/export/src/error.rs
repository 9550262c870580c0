//! Why a trace could not be exported.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The trace cannot be read.
    #[error("{0}")]
    Trace(#[from] refrain_views::Error),
    /// A file or folder cannot be written.
    #[error("{path} cannot be written: {error}")]
    Write { path: PathBuf, error: io::Error },
    /// There is something already.
    #[error("{path} exists already")]
    Exists { path: PathBuf },
    /// The format has no way to say this; with what to do about it.
    #[error("{what}")]
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
