//! Runs of failed polls: a count instead of a list.
//!
//! A program that waits by asking (`MPI_Test*`, `MPI_Iprobe`, ...) asks as often as it happens to. Polls that came back
//! empty-handed, one like the other, become part of the next call with the same symbol if their values follow from its
//! values: its last lane says how many came directly before. What such a poll looks like follows from the call it
//! precedes: the same inputs, a flag that is false, nothing else written. Polls that are followed by something else are
//! an event of their own, whose last lane counts all but the last.

use refrain_model::{Call, Dir, Function, Kind};

use crate::decoder::Decoder;
use crate::error::Error;
use crate::layout::Layout;

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
        for (p, span) in f.params.iter().zip(&layout.spans).filter(|(p, _)| p.dir == Dir::Out) {
            let role = match p.kind {
                Kind::Logical => Role::Always(0),
                // The index of what completed; or how many did, which is none.
                Kind::Undefinable if p.len.is_empty() => {
                    Role::Always(if has_flag(f) { UNDEFINED } else { 0 })
                }
                _ => Role::Nothing,
            };
            let own = usize::from(span.start)..usize::from(span.end);
            roles.get_mut(own).unwrap_or_default().fill(role);
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
    /// Of the values ([`crate::Values`]).
    pub mark: u32,
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

    /// Passes over so many.
    pub(crate) fn pass(&mut self, calls: u64) {
        match &mut self.failed {
            Some((_, left)) if *left >= calls => *left -= calls,
            _ => *self = Waiting::default(),
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
