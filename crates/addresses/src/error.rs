//! What can go wrong with a trace, and where.

use std::borrow::Cow;
use std::io;

use crate::{Fields, Format};

/// Records are counted from 1, as references: a packed record that stands for many counts as many. Offsets are into the
/// trace, unpacked where the file is compressed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input could not be read any further. What is compressed and cut short ends up here too.
    #[error("record {record} at byte {offset} cannot be read: {error}")]
    Read { record: u64, offset: u64, error: io::Error },
    /// The input is not what its format says.
    #[error("record {record} at byte {offset} is not {}: {what}", .format.name())]
    Damaged { format: Format, record: u64, offset: u64, what: Cow<'static, str> },
    /// A reference that the output's format has no way to write.
    #[error("record {record} cannot be written as {}: {what}", .format.name())]
    Unfit { format: Format, record: u64, what: Cow<'static, str> },
    /// Fields that the output's format cannot keep.
    #[error("{} cannot keep the {} of this trace; `--drop {}` leaves them out", .format.name(), .fields.names().join(" and "), .fields.names().join(","))]
    Loses { format: Format, fields: Fields },
    /// Fields that the output's format needs and the trace lacks.
    #[error("{} needs {}, which this trace does not have; `--fill {}=0` writes zeros", .format.name(), .fields.names().join(" and "), .fields.names().join("=0,"))]
    Lacks { format: Format, fields: Fields },
    /// The output's format is one that tools print and nothing writes.
    #[error("{} is read, not written; `--to xdin` and `--to lackey` are texts with sizes, `--to rfa` keeps everything", .format.name())]
    ReadOnly { format: Format },
    /// Nothing says which format this is.
    #[error("{what}")]
    Unknown { what: String },
    #[error("the output cannot be written: {0}")]
    Write(io::Error),
}

/// What a decoder says is wrong, and how far into the input.
#[derive(Debug)]
pub(crate) enum Fault {
    Read(u64, io::Error),
    Damaged(u64, Cow<'static, str>),
}

impl Fault {
    pub(crate) fn damaged(offset: u64, what: impl Into<Cow<'static, str>>) -> Fault {
        Fault::Damaged(offset, what.into())
    }

    pub(crate) fn at_record(self, format: Format, record: u64) -> Error {
        match self {
            Fault::Read(offset, error) => Error::Read { record, offset, error },
            Fault::Damaged(offset, what) => Error::Damaged { format, record, offset, what },
        }
    }
}

impl Error {
    /// Whoever read the output has seen enough.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Error::Write(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
