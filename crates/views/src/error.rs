//! Why a view could not be given.

use std::fmt;
use std::io;

use crate::human::thousands;

#[derive(Debug)]
pub enum Error {
    /// The reader of what we write has gone away, or the disk is full.
    Write(io::Error),
    /// A call that cannot be read back.
    Call { rank: u32, thread: u32, position: u64, error: refrain_encode::Error },
    /// A rank or thread that was asked for and is not there.
    NoSuch { what: &'static str, number: u32, have: String },
    /// A symbol that cannot be understood.
    Symbol { index: u32, error: refrain_encode::Error },
    /// More calls than one would wait for, in what goes through them one by one.
    TooMany { calls: u64, most: u64 },
}

impl Error {
    /// The reader has seen enough (`refrain dump F | head`).
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Error::Write(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Write(error) => write!(f, "the output could not be written: {error}"),
            Error::Call { rank, thread, position, error } => {
                write!(f, "call {position} of rank {rank}, thread {thread}: {error}")
            }
            Error::NoSuch { what, number, have } => {
                write!(f, "the trace has no {what} {number}; it has {have}")
            }
            Error::Symbol { index, error } => write!(f, "symbol {index}: {error}"),
            Error::TooMany { calls, most } => write!(
                f,
                "its loops are found by going through its calls, and {} are more than the {} that are gone through; \
                 --ranks and --threads choose fewer, and a run recorded with --fold loops has its loops in the trace",
                thousands(*calls),
                thousands(*most)
            ),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Write(error)
    }
}
