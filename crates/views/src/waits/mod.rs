//! Who waits for whom, and which path the run took as long as: of traces that tell when calls began and ended.
//!
//! One pass over all threads of all ranks, in the order of time. Each call is met twice, when it begins and when it ends.
//! A call that begins posts its messages (`meaning::messages`) or comes to a collective (`collectives`), and may be blocked
//! (`blocked`) until others have come. So when it ends, it is known who came last, and when: until then it waited, if that
//! was after it began and by more than the times may be wrong. What is held are threads, communicators, and messages and
//! collectives in flight.

mod blocked;
mod collectives;
mod pass;
mod path;
mod sides;
mod table;
mod write;

use refrain_fold::bundle::sites::Frame;
use refrain_tracefile::Trace;
use serde::Serialize;

use crate::cores;
use crate::error::Error;
use crate::length::Length;
use crate::timed::Times;

pub use write::{unmatched, write_json, write_text};

/// Why a rank waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pattern {
    /// A receive, or a wait for one, began before the message was sent.
    LateSender,
    /// A send, or a wait for one, began before the receive was posted, and did not end before.
    LateReceiver,
    /// At a barrier, until the last rank has come.
    Barrier,
    /// In a collective call in which everybody needs everybody, until the last rank has come.
    AllToAll,
    /// In a collective call in which all need the root, until the root has come.
    OneToAll,
    /// The root of a collective call, until the last rank has come.
    AllToOne,
    /// In a scan, until the last rank below has come.
    Scan,
}

impl Pattern {
    pub const ALL: [Pattern; 7] = [
        Pattern::LateSender,
        Pattern::LateReceiver,
        Pattern::Barrier,
        Pattern::AllToAll,
        Pattern::OneToAll,
        Pattern::AllToOne,
        Pattern::Scan,
    ];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::LateSender => "late sender",
            Pattern::LateReceiver => "late receiver",
            Pattern::Barrier => "barrier",
            Pattern::AllToAll => "NxN",
            Pattern::OneToAll => "1xN, late root",
            Pattern::AllToOne => "Nx1, root waits",
            Pattern::Scan => "scan",
        }
    }

    /// For programs.
    pub fn key(self) -> &'static str {
        match self {
            Pattern::LateSender => "late_sender",
            Pattern::LateReceiver => "late_receiver",
            Pattern::Barrier => "barrier",
            Pattern::AllToAll => "n_to_n",
            Pattern::OneToAll => "one_to_n",
            Pattern::AllToOne => "n_to_one",
            Pattern::Scan => "scan",
        }
    }
}

/// A function, and where in the program it is called if that was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallSite {
    pub function: &'static str,
    pub frame: Option<Frame>,
}

/// How often, how long in all and how long at most, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Sum {
    pub count: u64,
    #[serde(rename = "total_ns")]
    pub total: u64,
    /// By how much that may be wrong.
    #[serde(rename = "total_error_ns", skip_serializing_if = "is_exact")]
    pub error: u64,
    #[serde(rename = "longest_ns")]
    pub longest: u64,
}

fn is_exact(error: &u64) -> bool {
    *error == 0
}

impl Sum {
    fn add(&mut self, time: u64, error: u64) {
        self.join(Sum { count: 1, total: time, error, longest: time });
    }

    fn join(&mut self, other: Sum) {
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.error = self.error.saturating_add(other.error);
        self.longest = self.longest.max(other.longest);
    }
}

/// The waits of one kind at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub pattern: Pattern,
    pub place: CallSite,
    pub all: Sum,
    /// By the rank that waited, the longest first.
    pub ranks: Vec<Waiter>,
}

/// The waits of one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiter {
    pub rank: u32,
    pub all: Sum,
    /// For whom, the longest first.
    pub causes: Vec<(u32, Sum)>,
}

impl Row {
    /// For whom ranks waited here, the longest first.
    pub fn causes(&self) -> Vec<(u32, Sum)> {
        let all = self.ranks.iter().flat_map(|waiter| waiter.causes.iter().copied());
        table::joined(all)
    }
}

/// What ranks computed before the collective calls at one place, since the one before on the same communicator: by how much
/// the slowest took longer than the mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Imbalance {
    pub place: CallSite,
    pub all: Sum,
    /// The slowest, the most first.
    pub ranks: Vec<(u32, Sum)>,
}

/// Where the time of a rank went, in nanoseconds; that of its threads together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RankTimes {
    /// Outside MPI.
    #[serde(rename = "computing_ns")]
    pub computing: u64,
    /// In MPI, but not waiting.
    #[serde(rename = "communicating_ns")]
    pub communicating: u64,
    #[serde(rename = "waiting_ns")]
    pub waiting: u64,
    /// In `MPI_Init` and its like.
    #[serde(rename = "setup_ns")]
    pub setup: u64,
    /// What others waited for it.
    #[serde(rename = "caused_ns")]
    pub caused: u64,
}

/// Time on the critical path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OnPath {
    pub rank: u32,
    /// The call, or the call before which it was computed.
    pub place: CallSite,
    pub computing: bool,
    pub time: u64,
}

/// What could not be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Left {
    /// Messages that were sent and, as far as the trace goes, not received; and the other way around.
    pub sends: u64,
    pub receives: u64,
    /// Sends and receives that cannot be told apart: a receive from any source or with any tag kept no status.
    pub unclear: u64,
    /// Calls on communicators that are not known, or that have members of which nothing was recorded.
    pub unknown: u64,
    /// Collective calls to which not all members came.
    pub collectives: u64,
    /// Calls in which ranks may wait for others that are not looked into: one-sided, on files, with neighbours.
    pub elsewhere: u64,
    /// Messages that were received before they were sent, going by the clocks.
    pub reversed: u64,
}

/// What a trace says about waiting.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Waits {
    pub length: Length,
    /// Calls are known to have begun and ended within an error.
    pub rounded: bool,
    /// The longest first.
    pub rows: Vec<Row>,
    pub imbalances: Vec<Imbalance>,
    pub ranks: Vec<RankTimes>,
    /// The most time first.
    pub path: Vec<OnPath>,
    pub left: Left,
    /// Said first, where ranks were more than their cores.
    pub crowded: Option<String>,
    /// What may make all of this wrong.
    pub notes: Vec<String>,
}

/// Looks for waits in all of a trace.
pub fn waits(trace: &Trace, times: &Times) -> Result<Waits, Error> {
    let option =
        |name: &str| trace.meta.options.iter().find(|(n, _)| n == name).map(|(_, word)| word.clone());
    if let Some(window) = option("window") {
        return Err(Error::Window { window });
    }
    if times.some_apart() {
        return Err(Error::NoCommonClock);
    }
    let mut found = pass::pass(trace, times)?;
    found.rounded = times.has_errors();
    found.crowded = cores::crowded(&trace.meta);
    for name in ["only", "skip"] {
        if let Some(words) = option(name) {
            found.notes.push(format!(
                "recorded with --{name} {words}: messages may be matched with the wrong receives if only some of the calls \
                 that send and receive are there"
            ));
        }
    }
    if let Some(words) = option("lossy") {
        found.notes.push(format!("recorded with --lossy {words}: not all arguments are as they were"));
    }
    if times.some_lost() {
        found.notes.push(
            "some calls have no times: of each thread those up to the first of them are looked at".into(),
        );
    }
    Ok(found)
}
