//! Everything that can be wrong with a trace file, and how to mend it.

use std::path::PathBuf;

use crate::FORMAT_VERSION;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} {path}: {error}")]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        error: std::io::Error,
    },
    /// `save` without leave to overwrite.
    #[error("{path} exists already; choose another name or ask for it to be replaced")]
    Exists { path: PathBuf },
    /// What stands in the place of the file, and cannot be replaced by one.
    #[error("{path} is {what}, which no trace can take the place of; choose another name")]
    NoFile { path: PathBuf, what: &'static str },
    /// A link, a pipe or a device that another user put where others may write.
    #[error(
        "{path} is not used: another user put it into a directory that others may write to; name another file"
    )]
    Planted { path: PathBuf },
    /// The magic is not there.
    #[error("not a Refrain file: {}", no_mark(*.len))]
    Foreign { len: usize },
    /// Another version of the format than this Refrain reads.
    #[error("the file has format version {version} (offset 4..5); this Refrain reads version {FORMAT_VERSION}; use {} Refrain", other(*.version))]
    Version { version: u8 },
    /// The file ends at `len`, where `need` bytes were announced.
    #[error("the file is truncated at offset {len}: it should have at least {need} bytes; copy it again")]
    Truncated { len: usize, need: usize },
    #[error("the file goes on at offset {start}..{end}, after its last section; copy it again")]
    Trailing { start: usize, end: usize },
    /// Bytes differ from what was written.
    #[error(
        "the file is damaged: section `{section}` at offset {start}..{end} does not match its checksum; copy it again"
    )]
    Damaged { section: &'static str, start: usize, end: usize },
    /// The checksum holds, but the content makes no sense.
    #[error(
        "section `{section}` at offset {start}..{end} makes no sense: {what}; the program that wrote the file is at fault, \
         please report it"
    )]
    Malformed { section: &'static str, start: usize, end: usize, what: String },
    /// A section this version of Refrain does not know and may not skip.
    #[error(
        "section of unknown kind {kind} (version {version}) at offset {start}..{end}; use a newer Refrain"
    )]
    Unknown { kind: u8, version: u8, start: usize, end: usize },
    #[error("section `{section}` is missing; the program that wrote the file is at fault, please report it")]
    Missing { section: &'static str },
}

fn no_mark(len: usize) -> &'static str {
    match len {
        0 => "it is empty; trace the program again",
        _ => "it does not begin with the mark of one (offset 0..4); check the name",
    }
}

/// Which Refrain reads this version.
fn other(version: u8) -> &'static str {
    if version > FORMAT_VERSION { "a newer" } else { "an older" }
}
