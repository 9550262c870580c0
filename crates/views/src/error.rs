//! Why a view could not be given.

use std::io;

use crate::human::thousands;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reader of what we write has gone away, or the disk is full.
    #[error("the output could not be written: {0}")]
    Write(#[from] io::Error),
    /// A call that cannot be read back.
    #[error("call {position} of rank {rank}, thread {thread}: {error}")]
    Call { rank: u32, thread: u32, position: u64, error: refrain_encode::Error },
    /// A rank or thread that was asked for and is not there.
    #[error("the trace has no {what} {number}; it has {have}")]
    NoSuch { what: &'static str, number: u32, have: String },
    /// A symbol that cannot be understood.
    #[error("symbol {index}: {error}")]
    Symbol { index: u32, error: refrain_encode::Error },
    /// More calls than one would wait for, in what goes through them one by one.
    #[error("its loops are found by going through its calls, and {} are more than the {} that are gone through; --ranks and \
         --threads choose fewer, and a run recorded with --fold loops has its loops in the trace", thousands(*.calls), thousands(*.most))]
    TooMany { calls: u64, most: u64 },
    /// The trace keeps time in a way that is not known.
    #[error("how the trace keeps time is not known here: {why}")]
    BadTime { why: String },
    /// The trace does not say when single calls began.
    #[error(
        "the trace does not tell when each call began and ended; record the run with `refrain run --time exact` (or binned)"
    )]
    NoTimes,
    /// The trace does not say how times are distributed.
    #[error(
        "the trace does not tell how times are distributed; record the run with `refrain run --time histogram`"
    )]
    NoHistograms,
    /// The chunks that hold the times of calls cannot be read.
    #[error("the times of calls cannot be read: {0}")]
    Times(refrain_tracefile::chunks::Error),
    /// Times that are not those of this call.
    #[error("the time of call {position} of rank {rank}, thread {thread} is damaged")]
    DamagedTimes { rank: u32, thread: u32, position: u64 },
    /// Times of ranks whose clocks were never compared.
    #[error(
        "the ranks ran on several hosts whose clocks were not compared, as in a trace that was recovered: nobody can tell \
         which of their calls came first; `refrain dump --merged --ranks` takes ranks of one host"
    )]
    NoCommonClock,
    /// References that cannot be read back.
    #[error("{0}")]
    References(refrain_references::Error),
    /// What is recorded does not tell which message meets which receive.
    #[error(
        "the run was recorded with --window {window}: messages of before are missing, so nobody can tell which send belongs \
         to which receive; record it without --window"
    )]
    Window { window: String },
}

impl Error {
    /// The reader has seen enough (`refrain dump F | head`).
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Error::Write(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
