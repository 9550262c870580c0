//! What can be wrong with an encoded call.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The folded form itself is malformed.
    #[error("the trace is damaged: {0}")]
    Trace(refrain_fold::bundle::Error),
    /// The trace has no such rank or thread.
    #[error("the trace has no {}", member(*.rank, *.thread))]
    NoSuchRank { rank: u32, thread: u32 },
    /// A symbol names a function this version does not know.
    #[error("function number {id} is unknown: the trace was written by a newer Refrain; use that one")]
    UnknownFunction { id: u64 },
    /// A symbol names a constant this version does not know.
    #[error("constant number {id} is unknown: the trace was written by a newer Refrain; use that one")]
    UnknownConstant { id: u64 },
    /// A symbol's bytes end early or do not follow the call table; the position is in bytes from its start.
    #[error("the symbol of a call of {function} is malformed at byte {at}: the trace is damaged")]
    BadSymbol { function: &'static str, at: usize },
    /// A number that cannot be what its place says it is (a length below zero, say).
    #[error("{value} cannot be parameter {parameter} of {function}: the trace is damaged")]
    BadValue { function: &'static str, parameter: &'static str, value: i64 },
    /// More elements in the arrays of one call than are read.
    #[error(
        "parameter {parameter} of {function} has {elements} elements, and the arrays of a call are read up to \
         {most}: --elements N allows N (in Python: elements=N), at about 50 bytes of memory each"
    )]
    TooLong { function: &'static str, parameter: &'static str, elements: u64, most: usize },
    /// More communicators or windows of one thread than any library can have.
    #[error(
        "{function}: the thread has more than {most} communicators or windows at a time, as no MPI library allows: the \
         trace is damaged"
    )]
    TooManyObjects { function: &'static str, most: usize },
    /// Communicators made from one another so often that their names, which say so, fill the memory.
    #[error(
        "{function}: communicators were made from one another so often that the name of this one would take more than \
         {most} bytes, or those of the thread more than {all}; `refrain stats` and `refrain loops` need no names"
    )]
    LongNames { function: &'static str, most: usize, all: usize },
    /// The call uses a communicator or window, and there are so many calls that make some that not all were read.
    #[error(
        "{function} uses a communicator or window that an earlier call or another thread has made, and there are more such \
         calls than are looked through ({most}, or 16 times as many of all calls): --elements N looks through N of them"
    )]
    Unread { function: &'static str, most: u64 },
    /// An entry of a journal that does not hold together; the position is in bytes.
    #[error("the journal is damaged at byte {at}")]
    Journal { at: usize },
    /// What a snapshot's calls add up to is not what was recorded.
    #[error("the snapshot is damaged: its calls are not those that were recorded")]
    Digest,
}

fn member(rank: u32, thread: u32) -> String {
    match thread {
        0 => format!("rank {rank}"),
        thread => format!("thread {thread} on rank {rank}"),
    }
}
