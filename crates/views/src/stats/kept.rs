//! How exactly a trace keeps the times of kinds of calls: to the nanosecond where single calls were added up, otherwise to one part in
//! [`PART`]; and of kinds of calls that take little only the sum, the least and the most of several together.

use std::collections::HashMap;
use std::ops::Deref;

use refrain_fold::bundle::{SymbolEntry, Tally};
use refrain_tracefile::Trace;
use serde::Serialize;

use crate::exact::is_summed_up;
use crate::length::{Length, Told, share};

/// What a tally leaves open.
const PART: u64 = 32;

/// How exactly a tally is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Exactly,
    Rounded,
    /// With others of its function, which take so long together.
    Together {
        all: u64,
    },
}

/// The time of some calls on all ranks, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    tally: Tally,
    /// The total is no less and no more than this.
    low: u64,
    high: u64,
    exact: bool,
    /// Some of it shares its mean with other rows of the function.
    pub together: bool,
}

impl Deref for Spent {
    type Target = Tally;

    fn deref(&self) -> &Tally {
        &self.tally
    }
}

impl Spent {
    /// Of one tally, of so many calls.
    fn of(tally: Tally, calls: u64, kept: Kept) -> Spent {
        let open = |ns: u64| ns.div_ceil(PART);
        let (low, high) = match kept {
            Kept::Exactly => (tally.total, tally.total),
            Kept::Rounded => (tally.total - open(tally.total), tally.total.saturating_add(open(tally.total))),
            Kept::Together { all } => {
                let most = calls.saturating_mul(tally.max.saturating_add(open(tally.max)));
                let all = all.saturating_add(open(all));
                let least = calls.saturating_mul(tally.min - open(tally.min));
                (least.min(tally.total), most.min(all).max(tally.total))
            }
        };
        let together = matches!(kept, Kept::Together { .. });
        Spent { tally, low, high, exact: kept == Kept::Exactly, together }
    }

    /// The time of one call in place of it, to the nanosecond.
    pub fn of_single(self, ns: u64) -> Spent {
        Spent::of(Tally { total: ns, min: ns, max: ns }, 1, Kept::Exactly)
    }

    fn add(&mut self, other: Spent) {
        self.tally.add(other.tally);
        self.low = self.low.saturating_add(other.low);
        self.high = self.high.saturating_add(other.high);
        self.exact &= other.exact;
        self.together |= other.together;
    }

    /// Of so many calls. A single one has one time.
    pub fn settled(mut self, calls: u64) -> Spent {
        if calls == 1 && !self.together {
            (self.tally.min, self.tally.max) = (self.tally.total, self.tally.total);
        }
        self
    }

    pub fn total(&self) -> Told {
        let ns = self.tally.total;
        Told { ns, error: (ns - self.low.min(ns)).max(self.high.max(ns) - ns) }
    }

    pub fn mean(&self, calls: u64) -> Told {
        self.total().mean(calls)
    }

    fn least(&self) -> Told {
        self.end(self.tally.min)
    }

    fn most(&self) -> Told {
        self.end(self.tally.max)
    }

    fn end(&self, ns: u64) -> Told {
        let error = match (self.exact, self.together) {
            (true, _) => 0,
            // The least and the most of all that are together.
            (false, true) => ns.div_ceil(PART).saturating_add(self.tally.max.saturating_sub(self.tally.min)),
            (false, false) => ns.div_ceil(PART),
        };
        Told { ns, error }
    }
}

/// Some calls of a function, in a row of a table.
pub struct Piece<R> {
    pub row: R,
    pub function: u16,
    pub calls: u64,
    pub tally: Tally,
}

/// Of a symbol, or of each of its classes: calls and their times.
pub fn tallies(symbol: &SymbolEntry, calls: u64) -> Vec<(u64, Tally)> {
    match symbol.classes.list() {
        [] => vec![(calls, symbol.tally)],
        list => list.iter().map(|class| (class.count, class.tally)).collect(),
    }
}

/// The times of pieces, and how exactly these are known. Those that a file tells together have one least and one most, which are not
/// the same; they lose nothing where they are in one row.
pub fn spent<R: PartialEq + Copy>(trace: &Trace, pieces: &[Piece<R>]) -> Vec<Spent> {
    let exact = is_summed_up(trace);
    let key = |piece: &Piece<R>| (piece.function, piece.tally.min, piece.tally.max);
    struct Group<R> {
        first: R,
        several: bool,
        all: u64,
    }
    let mut groups: HashMap<(u16, u64, u64), Group<R>> = HashMap::new();
    for piece in pieces.iter().filter(|piece| !exact && piece.tally.min < piece.tally.max) {
        let new = || Group { first: piece.row, several: false, all: 0 };
        let group = groups.entry(key(piece)).or_insert_with(new);
        group.several |= group.first != piece.row;
        group.all = group.all.saturating_add(piece.tally.total);
    }
    let one = |piece: &Piece<R>| {
        let kept = match groups.get(&key(piece)) {
            _ if exact => Kept::Exactly,
            Some(&Group { several: true, all, .. }) => Kept::Together { all },
            _ => Kept::Rounded,
        };
        Spent::of(piece.tally, piece.calls, kept)
    };
    pieces.iter().map(one).collect()
}

/// The cells of a row: time, mean, min, max, and the share of the run.
pub fn cells(spent: Option<Spent>, calls: u64, length: Option<&Length>) -> [String; 5] {
    match measured(spent, calls) {
        Some(spent) if spent.together => std::array::from_fn(|_| TOGETHER.into()),
        Some(spent) => [
            spent.total().to_string(),
            spent.mean(calls).to_string(),
            spent.least().to_string(),
            spent.most().to_string(),
            share(length, spent.total()),
        ],
        None => std::array::from_fn(|_| "-".into()),
    }
}

/// Stands where rows share a mean.
pub const TOGETHER: &str = "*";
/// Names the row that has the time of all of these.
pub const ALL_TOGETHER: &str = "all with *";

/// What rows that share a mean took together, by function: calls and time.
pub fn together(rows: impl Iterator<Item = (&'static str, u64, Spent)>) -> Vec<(&'static str, u64, Spent)> {
    let mut sums: Vec<(&'static str, u64, Spent)> = Vec::new();
    for (function, calls, spent) in rows.filter(|(_, _, spent)| spent.together) {
        let whole = whole(spent, calls);
        match sums.iter_mut().find(|(known, ..)| *known == function) {
            Some((_, sum, all)) => {
                *sum = sum.saturating_add(calls);
                all.add(whole);
            }
            None => sums.push((function, calls, whole)),
        }
    }
    sums
}

/// What a row took, as a part of the sum of all rows that share a mean with it.
fn whole(spent: Spent, calls: u64) -> Spent {
    if spent.together { Spent::of(*spent, calls, Kept::Rounded) } else { spent }
}

/// The calls and the time of rows, with which all rows are that share a mean with one of them.
pub fn joined(rows: impl Iterator<Item = (u64, Spent)>) -> Option<(u64, Spent)> {
    let mut sum: Option<(u64, Spent)> = None;
    for (calls, spent) in rows {
        let spent = whole(spent, calls);
        match &mut sum {
            Some((all, time)) => {
                *all = all.saturating_add(calls);
                time.add(spent);
            }
            None => sum = Some((calls, spent)),
        }
    }
    sum
}

/// `MPI_Finalize` has not ended when the trace is written, so its time is not known.
pub fn measured(spent: Option<Spent>, calls: u64) -> Option<Spent> {
    spent.filter(|spent| spent.max > 0 && calls > 0)
}

/// What `~`, `*` and shares in a table stand for, where they are in it.
pub fn legend(table: &str, length: Option<&Length>) -> String {
    let mut legend: Vec<String> = length.map(Length::sentence).into_iter().collect();
    if table.contains('~') {
        legend.push("~: times are right to within 1/32, shares to within 1/14.".into());
    }
    if table.contains(ALL_TOGETHER) {
        legend.push("*: too short to be kept apart.".into());
    }
    legend.join("\n")
}

/// The same for programs, each time with its error if it has one.
#[derive(Serialize)]
pub struct Timing {
    time_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_error_ns: Option<u64>,
    mean_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_error_ns: Option<u64>,
    min_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_error_ns: Option<u64>,
    max_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_error_ns: Option<u64>,
}

impl Timing {
    pub fn of(spent: Option<Spent>, calls: u64) -> Option<Timing> {
        let spent = measured(spent, calls)?;
        let (time, mean, min, max) = (spent.total(), spent.mean(calls), spent.least(), spent.most());
        Some(Timing {
            time_ns: time.ns,
            time_error_ns: time.open(),
            mean_ns: mean.ns,
            mean_error_ns: mean.open(),
            min_ns: min.ns,
            min_error_ns: min.open(),
            max_ns: max.ns,
            max_error_ns: max.open(),
        })
    }
}

/// Adds the time of some calls.
pub fn add(sum: &mut Option<Spent>, other: Spent) {
    match sum {
        Some(sum) => sum.add(other),
        None => *sum = Some(other),
    }
}
