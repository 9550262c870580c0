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
    /// The trace keeps time in a way that is not known.
    BadTime { why: String },
    /// The trace does not say when single calls began.
    NoTimes,
    /// The trace does not say how times are distributed.
    NoHistograms,
    /// The chunks that hold the times of calls cannot be read.
    Times(refrain_tracefile::chunks::Error),
    /// Times that are not those of this call.
    DamagedTimes { rank: u32, thread: u32, position: u64 },
    /// Times of ranks whose clocks were never compared.
    NoCommonClock,
    /// References that cannot be read back.
    References(refrain_references::Error),
    /// What is recorded does not tell which message meets which receive.
    Window { window: String },
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
            Error::References(error) => error.fmt(f),
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
            Error::BadTime { why } => write!(f, "how the trace keeps time is not known here: {why}"),
            Error::NoTimes => write!(
                f,
                "the trace does not tell when each call began and ended; record the run with `refrain run --time exact` \
                 (or binned)"
            ),
            Error::NoHistograms => write!(
                f,
                "the trace does not tell how times are distributed; record the run with `refrain run --time histogram`"
            ),
            Error::Times(error) => write!(f, "the times of calls cannot be read: {error}"),
            Error::DamagedTimes { rank, thread, position } => {
                write!(f, "the time of call {position} of rank {rank}, thread {thread} is damaged")
            }
            Error::NoCommonClock => write!(
                f,
                "the ranks ran on several hosts whose clocks were not compared, as in a trace that was recovered: nobody can \
                 tell which of their calls came first; `refrain dump --merged --ranks` takes ranks of one host"
            ),
            Error::Window { window } => write!(
                f,
                "the run was recorded with --window {window}: messages of before are missing, so nobody can tell which \
                 send belongs to which receive; record it without --window"
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
