//! What can be wrong with an encoded call.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The folded form itself is malformed.
    Trace(refrain_fold::bundle::Error),
    /// The trace has no such rank or thread.
    NoSuchRank { rank: u32, thread: u32 },
    /// A symbol names a function this version does not know.
    UnknownFunction { id: u64 },
    /// A symbol names a constant this version does not know.
    UnknownConstant { id: u64 },
    /// A symbol's bytes end early or do not follow the call table; the position is in bytes from its start.
    BadSymbol { function: &'static str, at: usize },
    /// A number that cannot be what its place says it is (a length below zero, say).
    BadValue { function: &'static str, parameter: &'static str, value: i64 },
    /// More elements in the arrays of one call than are read.
    TooLong { function: &'static str, parameter: &'static str, elements: u64, most: usize },
    /// More communicators or windows of one thread than any library can have.
    TooManyObjects { function: &'static str, most: usize },
    /// Communicators made from one another so often that their names, which say so, fill the memory.
    LongNames { function: &'static str, most: usize, all: usize },
    /// The call uses a communicator or window, and there are so many calls that make some that not all were read.
    Unread { function: &'static str },
    /// An entry of a journal that does not hold together; the position is in bytes.
    Journal { at: usize },
    /// What a snapshot's calls add up to is not what was recorded.
    Digest,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Trace(error) => write!(f, "the trace is damaged: {error}"),
            Error::NoSuchRank { rank, thread: 0 } => write!(f, "the trace has no rank {rank}"),
            Error::NoSuchRank { rank, thread } => {
                write!(f, "the trace has no thread {thread} on rank {rank}")
            }
            Error::UnknownFunction { id } => {
                write!(
                    f,
                    "function number {id} is unknown: the trace was written by a newer Refrain; use that one"
                )
            }
            Error::UnknownConstant { id } => {
                write!(
                    f,
                    "constant number {id} is unknown: the trace was written by a newer Refrain; use that one"
                )
            }
            Error::BadSymbol { function, at } => {
                write!(
                    f,
                    "the symbol of a call of {function} is malformed at byte {at}: the trace is damaged"
                )
            }
            Error::TooLong { function, parameter, elements, most } => write!(
                f,
                "parameter {parameter} of {function} has {elements} elements, and the arrays of a call are read up to \
                 {most}: --elements N allows N (in Python: elements=N), at about 50 bytes of memory each"
            ),
            Error::TooManyObjects { function, most } => write!(
                f,
                "{function}: the thread has more than {most} communicators or windows at a time, as no MPI library \
                 allows: the trace is damaged"
            ),
            Error::LongNames { function, most, all } => write!(
                f,
                "{function}: communicators were made from one another so often that the name of this one would take more than \
                 {most} bytes, or those of the thread more than {all}; `refrain stats` and `refrain loops` need no names"
            ),
            Error::Unread { function } => write!(
                f,
                "{function} uses a communicator or window that an earlier call or another thread has made, and there \
                 are more such calls than are looked through ({}, or 16 times as many of all calls): --elements N looks through \
                 N of them",
                crate::reader::most_makers()
            ),
            Error::Journal { at } => write!(f, "the journal is damaged at byte {at}"),
            Error::Digest => write!(f, "the snapshot is damaged: its calls are not those that were recorded"),
            Error::BadValue { function, parameter, value } => {
                write!(f, "{value} cannot be parameter {parameter} of {function}: the trace is damaged")
            }
        }
    }
}

impl std::error::Error for Error {}
