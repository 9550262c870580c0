//! Everything that can be wrong with a trace file, and how to mend it.

use std::path::PathBuf;

use crate::FORMAT_VERSION;

#[derive(Debug)]
pub enum Error {
    Io {
        action: &'static str,
        path: PathBuf,
        error: std::io::Error,
    },
    /// `save` without leave to overwrite.
    Exists {
        path: PathBuf,
    },
    /// What stands in the place of the file, and cannot be replaced by one.
    NoFile {
        path: PathBuf,
        what: &'static str,
    },
    /// A link, a pipe or a device that another user put where others may write.
    Planted {
        path: PathBuf,
    },
    /// The magic is not there.
    Foreign {
        len: usize,
    },
    /// Another version of the format than this Refrain reads.
    Version {
        version: u8,
    },
    /// The file ends at `len`, where `need` bytes were announced.
    Truncated {
        len: usize,
        need: usize,
    },
    Trailing {
        start: usize,
        end: usize,
    },
    /// Bytes differ from what was written.
    Damaged {
        section: &'static str,
        start: usize,
        end: usize,
    },
    /// The checksum holds, but the content makes no sense.
    Malformed {
        section: &'static str,
        start: usize,
        end: usize,
        what: String,
    },
    /// A section this version of Refrain does not know and may not skip.
    Unknown {
        kind: u8,
        version: u8,
        start: usize,
        end: usize,
    },
    Missing {
        section: &'static str,
    },
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Io { action, path, error } => write!(f, "cannot {action} {}: {error}", path.display()),
            Error::Planted { path } => write!(
                f,
                "{} is not used: another user put it into a directory that others may write to; name another file",
                path.display()
            ),
            Error::Exists { path } => {
                write!(
                    f,
                    "{} exists already; choose another name or ask for it to be replaced",
                    path.display()
                )
            }
            Error::NoFile { path, what } => {
                write!(
                    f,
                    "{} is {what}, which no trace can take the place of; choose another name",
                    path.display()
                )
            }
            Error::Foreign { len: 0 } => {
                write!(f, "not a Refrain file: it is empty; trace the program again")
            }
            Error::Foreign { .. } => {
                write!(
                    f,
                    "not a Refrain file: it does not begin with the mark of one (offset 0..4); check the name"
                )
            }
            Error::Version { version } => write!(
                f,
                "the file has format version {version} (offset 4..5); this Refrain reads version {FORMAT_VERSION}; use \
                 {} Refrain",
                if *version > FORMAT_VERSION { "a newer" } else { "an older" }
            ),
            Error::Truncated { len, need } => write!(
                f,
                "the file is truncated at offset {len}: it should have at least {need} bytes; copy it again"
            ),
            Error::Trailing { start, end } => {
                write!(f, "the file goes on at offset {start}..{end}, after its last section; copy it again")
            }
            Error::Damaged { section, start, end } => write!(
                f,
                "the file is damaged: section `{section}` at offset {start}..{end} does not match its checksum; \
                 copy it again"
            ),
            Error::Malformed { section, start, end, what } => write!(
                f,
                "section `{section}` at offset {start}..{end} makes no sense: {what}; the program that wrote the \
                 file is at fault, please report it"
            ),
            Error::Unknown { kind, version, start, end } => write!(
                f,
                "section of unknown kind {kind} (version {version}) at offset {start}..{end}; use a newer Refrain"
            ),
            Error::Missing { section } => {
                write!(
                    f,
                    "section `{section}` is missing; the program that wrote the file is at fault, please report it"
                )
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
