//! Aggregated completions (ScalaTrace, event aggregation): how many calls of `MPI_Waitsome` or `MPI_Testsome` it takes
//! until all requests are done is chance. Such calls that follow one another for the same requests become one, which
//! has all their completions, by index.

use crate::facts::{STATUS_LANES, STATUS_MARK};
use crate::layout::{Layout, Outcome, Slot};

/// Where a call of this kind has what. Its values come in this order: the number of requests, the requests, how many are
/// done, which ones, their statuses, the count of polls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Joined {
    requests: u16,
    done: u16,
    indices: u16,
    statuses: Option<u16>,
    polls: Option<u16>,
}

/// Values of one lane.
fn of(values: &[(u16, i64)], lane: u16) -> impl Iterator<Item = i64> + Clone + '_ {
    values.iter().filter(move |(l, _)| *l == lane).map(|(_, value)| *value)
}

impl Joined {
    /// `None` for calls of another kind.
    pub(crate) fn of(layout: &Layout) -> Option<Joined> {
        if !matches!(layout.function.name, "MPI_Waitsome" | "MPI_Testsome")
            || layout.outcome != Outcome::Success
            || layout.inline.is_some()
        {
            return None;
        }
        match layout.slots[..] {
            [
                Slot::Number { .. },
                Slot::Codes { len: None, lane: requests },
                Slot::Number { lane: done },
                Slot::List { len: None, lane: indices, .. },
                ref statuses,
            ] => Some(Joined {
                requests,
                done,
                indices,
                statuses: match *statuses {
                    Slot::Statuses { len: None, lane } => Some(lane),
                    _ => None,
                },
                polls: layout.polls,
            }),
            _ => None,
        }
    }

    /// Whether a call goes on with the requests that an earlier one left: the same, but for those that are done, which
    /// may be something else by now (nothing, as a rule). A call that found no request at all ends the matter.
    pub(crate) fn goes_on(&self, earlier: &[(u16, i64)], later: &[(u16, i64)]) -> bool {
        let count = |values| of(values, self.done).next().unwrap_or(-1);
        if count(earlier) < 0 || count(later) < 0 {
            return false;
        }
        let (before, after) = (of(earlier, self.requests), of(later, self.requests));
        if before.clone().count() != after.clone().count() {
            return false;
        }
        let done: Vec<i64> = of(earlier, self.indices).collect();
        let again = of(later, self.indices).any(|index| done.contains(&index));
        !again && (0..).zip(before.zip(after)).all(|(k, (a, b))| a == b || done.contains(&k))
    }

    /// The numbers of each status: what of it is defined stands first.
    fn statuses_of<'a>(&self, values: &'a [(u16, i64)]) -> impl Iterator<Item = Vec<(u16, i64)>> + 'a {
        let first = self.statuses;
        let lanes = first.map_or(0..0, |first| first..first + STATUS_LANES);
        let mut left = values.iter().copied().filter(move |(lane, _)| lanes.contains(lane)).peekable();
        std::iter::from_fn(move || {
            let mut status = vec![left.next()?];
            while let Some(value) = left.next_if(|(lane, _)| Some(*lane) != first.map(|f| f + STATUS_MARK)) {
                status.push(value);
            }
            Some(status)
        })
    }

    /// One call of two.
    pub(crate) fn join(&self, earlier: &[(u16, i64)], later: &[(u16, i64)]) -> Vec<(u16, i64)> {
        let mut done: Vec<(i64, Vec<(u16, i64)>)> = Vec::new();
        for values in [earlier, later] {
            let mut statuses = self.statuses_of(values);
            done.extend(of(values, self.indices).map(|index| (index, statuses.next().unwrap_or_default())));
        }
        done.sort_unstable();
        let inputs = earlier.iter().take_while(|(lane, _)| *lane < self.done).copied();
        let mut joined: Vec<(u16, i64)> = inputs.collect();
        joined.push((self.done, done.len() as i64));
        joined.extend(done.iter().map(|(index, _)| (self.indices, *index)));
        joined.extend(done.iter().flat_map(|(_, status)| status));
        if let Some(polls) = self.polls {
            let both = of(earlier, polls).chain(of(later, polls));
            joined.push((polls, both.fold(0, i64::saturating_add)));
        }
        joined
    }
}

/// A call that the next one may belong to.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub symbol: u32,
    pub values: Vec<(u16, i64)>,
    /// There is one.
    pub some: bool,
}
