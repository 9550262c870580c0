//! Runs of failed polls: a count instead of a list.
//!
//! A program that waits by asking (`MPI_Test*`, `MPI_Iprobe`, ...) asks as often as it happens to. Polls that came back
//! empty-handed, one like the other, become part of the next call with the same symbol if their values follow from its
//! values: its last lane says how many came directly before. What such a poll looks like follows from the call it
//! precedes: the same inputs, a flag that is false, nothing else written. Polls that are followed by something else are
//! an event of their own, whose last lane counts all but the last.

use refrain_fold::bundle::{Bundle, Cohort, Lane};
use refrain_model::{Call, Dir, Function, Kind};

use crate::decoder::Decoder;
use crate::error::Error;
use crate::layout::{Layout, Slot};

/// `MPI_UNDEFINED`, the same in all ABIs.
const UNDEFINED: i64 = -32766;

/// How the values of a failed poll follow from those of a call with the same symbol, by lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failed {
    roles: Vec<Role>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// An input: the same.
    Same,
    /// An output that says that nothing was found.
    Always(i64),
    /// An output that is not written then.
    Nothing,
}

impl Failed {
    /// `None` for symbols whose calls do not poll.
    pub(crate) fn of(layout: &Layout) -> Option<Failed> {
        let polls = layout.polls?;
        let mut roles = vec![Role::Same; usize::from(polls)];
        let f = layout.function;
        for (p, slot) in f.params.iter().zip(&layout.slots).filter(|(p, _)| p.dir == Dir::Out) {
            let role = match p.kind {
                Kind::Logical => Role::Always(0),
                // The index of what completed; or how many did, which is none.
                Kind::Undefinable if p.len.is_empty() => {
                    Role::Always(if has_flag(f) { UNDEFINED } else { 0 })
                }
                _ => Role::Nothing,
            };
            // Which lanes: a list's length may have one of its own before its elements.
            let (first, own) = match *slot {
                Slot::Number { lane } | Slot::Code { lane } => (lane, 1),
                Slot::Status { lane } => (lane, 4),
                Slot::List { len, lane } | Slot::Codes { len, lane } => {
                    (len.unwrap_or(lane), 1 + usize::from(len.is_some()))
                }
                Slot::Statuses { len, lane } => (len.unwrap_or(lane), 4 + usize::from(len.is_some())),
                _ => continue,
            };
            for role_of in roles.iter_mut().skip(first.into()).take(own) {
                *role_of = role;
            }
        }
        Some(Failed { roles })
    }

    /// The values of a failed poll before a call with these.
    pub(crate) fn before<'a>(&'a self, values: &'a [(u16, i64)]) -> impl Iterator<Item = (u16, i64)> + 'a {
        values.iter().filter_map(|&(lane, value)| match self.roles.get(usize::from(lane))? {
            Role::Same => Some((lane, value)),
            Role::Always(value) => Some((lane, *value)),
            Role::Nothing => None,
        })
    }
}

fn has_flag(f: &Function) -> bool {
    f.params.iter().any(|p| p.dir == Dir::Out && p.kind == Kind::Logical)
}

/// A thread's last failed poll, and how many there were like it.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub symbol: u32,
    pub values: Vec<(u16, i64)>,
    /// None if it is zero.
    pub count: u64,
}

/// Calls that are still to be given out before the walk goes on.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    failed: Option<(Call, u64)>,
    last: Option<Call>,
}

impl Waiting {
    pub(crate) fn next(&mut self) -> Option<Call> {
        match &mut self.failed {
            Some((call, left)) if *left > 0 => {
                *left -= 1;
                Some(call.clone())
            }
            _ => self.last.take(),
        }
    }

    pub(crate) fn only(call: Call) -> Waiting {
        Waiting { failed: None, last: Some(call) }
    }

    /// The failed polls before a call that has these values.
    pub(crate) fn expand(
        decoder: &mut Decoder,
        layout: &Layout,
        values: &[(u16, i64)],
        polls: i64,
        call: Call,
    ) -> Result<Waiting, Error> {
        let count =
            u64::try_from(polls).map_err(|_| Error::BadSymbol { function: layout.function.name, at: 0 })?;
        let Some(failed) = Failed::of(layout).filter(|_| count > 0) else {
            return Ok(Waiting::only(call));
        };
        let mut values = failed.before(values);
        let failed = decoder.call(layout, &mut |_| values.next().map_or(0, |(_, value)| value))?;
        Ok(Waiting { failed: Some((failed, count)), last: Some(call) })
    }
}

/// How many calls one rank of this cohort made: events, and the polls that are counted in their lanes.
pub fn calls_of(bundle: &Bundle, cohort: &Cohort, rank: u32) -> u64 {
    count(bundle, cohort, &bundle.counts(cohort, rank), |lane, times| polls_in(bundle, lane, rank, times), 1)
}

/// How many calls all ranks of this cohort made.
pub fn calls_of_all(bundle: &Bundle, cohort: &Cohort) -> u64 {
    if bundle.counts_differ(cohort) {
        return cohort.ranks.iter().fold(0, |sum, rank| sum.saturating_add(calls_of(bundle, cohort, rank)));
    }
    let first = cohort.ranks.iter().next().unwrap_or(0);
    let polls = |lane: &Lane, times| match lane {
        Lane::Same { .. } => polls_in(bundle, lane, first, times).saturating_mul(cohort.ranks.len()),
        Lane::Varied(_) => cohort
            .ranks
            .iter()
            .fold(0u64, |sum, rank| sum.saturating_add(polls_in(bundle, lane, rank, times))),
    };
    count(bundle, cohort, &bundle.counts(cohort, first), polls, cohort.ranks.len())
}

/// The sum of a rank's first `times` numbers in a lane that counts polls.
fn polls_in(bundle: &Bundle, lane: &Lane, rank: u32, times: u64) -> u64 {
    let stream = bundle.stream_of(lane, rank);
    stream.and_then(|stream| u64::try_from(stream.sum(times)).ok()).unwrap_or(0)
}

/// Events of `ranks` ranks, each with these `counts` of symbols, and what `polls` says of each lane that counts polls.
fn count(
    bundle: &Bundle,
    cohort: &Cohort,
    counts: &[(u32, u64)],
    polls: impl Fn(&Lane, u64) -> u64,
    ranks: u64,
) -> u64 {
    let lanes = bundle.values_of(cohort);
    let mut lane = 0;
    let mut calls = 0u64;
    for &(symbol, times) in counts {
        let Some(entry) = bundle.symbols.get(symbol as usize) else { continue };
        let first = lane;
        lane += usize::from(entry.lanes);
        calls = calls.saturating_add(times.saturating_mul(ranks));
        let counted = Layout::parse(&entry.bytes).ok().and_then(|layout| layout.polls);
        if let Some(lane) = counted.and_then(|counted| lanes.get(first + usize::from(counted))) {
            calls = calls.saturating_add(polls(lane, times));
        }
    }
    calls
}
