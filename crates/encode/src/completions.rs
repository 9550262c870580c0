//! Calls that complete requests (`MPI_Wait*`, `MPI_Test*`): which requests they are about changes from call to call, but
//! the rest of their record is always laid out the same. So their values are written down in one go, without asking the
//! call table about each parameter. What comes out is exactly what encoding gives.

use refrain_model::{Class, Cond, Dir, Effect, Function, Kind, Returns};

use crate::comms::Later;
use crate::defined::{Completed, Statuses, Undefined};
use crate::encoder::Before;
use crate::facts::Facts;
use crate::host::Memory;
use crate::layout::Outcome;
use crate::requests::Given;
use crate::shape::{Form, Length, Shape};
use crate::tables::Tables;

/// What one parameter adds to a record, and in which lane. Other numbers are positions of parameters.
#[derive(Debug, Clone, Copy)]
struct Step {
    lane: u16,
    at: u8,
    /// The parameter that says how many there are.
    count: Option<u8>,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// An `int` by value.
    Given,
    Requests,
    /// An `int` that was written, or as many as there are.
    Written,
    Statuses {
        flag: Option<u8>,
        of: Statuses,
    },
}

/// How a function's calls are laid out.
#[derive(Debug, Clone)]
pub(crate) struct Completion {
    steps: Vec<Step>,
    /// The position of the requests, and of the parameter that counts them.
    requests: (u8, Option<u8>),
    completed: Completed,
    /// The lane that counts polls, without statuses and with them.
    polls: Option<[u16; 2]>,
}

/// What the program passed for statuses. With everything else being there, this decides about the symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    Without = 0,
    Ignored = 1,
    Written = 2,
    /// Ignored, with statuses of ours, of requests among which are receives from any source or with any tag.
    Matched = 3,
}

/// How many there are of [`Passed`].
pub(crate) const PASSED: usize = 4;

impl Completion {
    /// `None` for functions that are not of this kind.
    pub(crate) fn new(f: &'static Function) -> Option<Completion> {
        if f.returns != Returns::Code || f.silent || f.persistent {
            return None;
        }
        let shape = Shape::of(f);
        let mut requests = None;
        let mut steps = Vec::with_capacity(f.params.len());
        // The next lane that is free, without the statuses, which are ignored or come last, and with them.
        let (mut next, mut all) = (0, 0);
        for (i, (p, step)) in f.params.iter().zip(&shape.steps).enumerate() {
            let at = u8::try_from(i).ok()?;
            let count = match step.length {
                Length::One => None,
                Length::Said(j) => Some(j),
                Length::OwnLane => return None,
            };
            let flag = match (p.when, step.dynamic) {
                ([], _) => None,
                ([_], Some(Cond::Flag(j))) => Some(j),
                _ => return None,
            };
            let narrow = !p.ctype.is_wide();
            let lanes = step.lanes(next, Outcome::Success)?;
            all = lanes.end;
            let last = i + 1 == f.params.len();
            let what = match (p.dir, p.kind, step.form) {
                (Dir::In, Kind::Int, Form::Number) if narrow => What::Given,
                (Dir::InOut, Kind::Handle(Class::Request), _)
                    if p.effect == Effect::Complete && flag.is_none() && requests.is_none() =>
                {
                    requests = Some((at, count));
                    What::Requests
                }
                (Dir::Out, Kind::Logical | Kind::Undefinable, _) if flag.is_none() && narrow => What::Written,
                (Dir::Out, _, Form::Statuses(of)) if last => What::Statuses { flag, of },
                _ => return None,
            };
            if !matches!(what, What::Statuses { .. }) {
                next = lanes.end;
            }
            steps.push(Step { lane: lanes.first, at, count, what });
        }
        let polls = shape.counts_polls(Outcome::Success).then_some([next, all]);
        Some(Completion { steps, requests: requests?, completed: Completed::of(f), polls })
    }

    /// Keeps the handles that the call is about to overwrite.
    #[inline]
    pub(crate) fn before<M: Memory>(&self, host: &M, args: &[usize], handles: &mut Vec<u64>) {
        let (at, count) = self.requests;
        let pointer = args[usize::from(at)];
        if pointer != 0 {
            let n = count.map_or(1, |count| given_length(args, count));
            handles.extend((0..n).map(|k| host.handle_at(Class::Request, pointer, k)));
        }
    }

    /// What its symbol depends on; `None` where that is more than this knows.
    #[inline]
    pub(crate) fn passed(&self, facts: &Facts, args: &[usize]) -> Option<Passed> {
        let mut passed = Passed::Without;
        for &Step { at, count, what, .. } in &self.steps {
            let pointer = args[usize::from(at)];
            match what {
                What::Given => {}
                What::Requests | What::Written => {
                    let named =
                        count.is_some() && matches!(what, What::Written) && facts.names_an_array(pointer);
                    if pointer == 0 || named {
                        return None;
                    }
                }
                What::Statuses { .. } => {
                    passed = if facts.ignores_status(pointer, count.is_some()) {
                        Passed::Ignored
                    } else if pointer == 0 {
                        return None;
                    } else {
                        Passed::Written
                    };
                }
            }
        }
        Some(passed)
    }

    /// The same, with the statuses looked at that the program ignores.
    #[inline]
    pub(crate) fn passed_with<M: Memory, T: Tables + ?Sized>(
        &self,
        facts: &Facts,
        host: &M,
        tables: &mut T,
        args: &[usize],
        before: &Before,
    ) -> Option<Passed> {
        let passed = self.passed(facts, args)?;
        if passed != Passed::Ignored || before.statuses() == 0 {
            return Some(passed);
        }
        let (at, count) = self.requests;
        let pointer = args[usize::from(at)];
        let n = count.map_or(1, |count| given_length(args, count));
        let given =
            Given { handles: before.handles(), address: pointer, size: host.handle_size(Class::Request) };
        tables.next_call();
        let mut wild = false;
        for k in 0..n {
            let null = facts.null_request(given.handle(k)).is_some();
            wild |= !null && tables.number(given, k).1.is_wild();
        }
        Some(if wild { Passed::Matched } else { Passed::Ignored })
    }

    /// The values of a successful call of a known shape; requests that are over give their ids back. Communicators that
    /// have a handle now are put into `arrived`.
    #[expect(clippy::too_many_arguments, reason = "a call has that many sides")]
    pub(crate) fn values<M: Memory, T: Tables + ?Sized>(
        &self,
        facts: &Facts,
        host: &M,
        tables: &mut T,
        args: &[usize],
        passed: Passed,
        before: &Before,
        values: &mut Vec<(u16, i64)>,
        undefined: &mut Vec<Undefined>,
        arrived: &mut Vec<Later>,
    ) {
        values.clear();
        let written = matches!(passed, Passed::Written | Passed::Matched);
        if written {
            undefined.clear();
        }
        tables.next_call();
        let mut generalised = false;
        for &Step { lane, at, count, what } in &self.steps {
            match what {
                What::Given => values.push((lane, given(args, at))),
                What::Requests => {
                    let pointer = args[usize::from(at)];
                    let n = count.map_or(1, |count| given_length(args, count));
                    let size = host.handle_size(Class::Request);
                    let given = Given { handles: before.handles(), address: pointer, size };
                    let first = values.len();
                    for k in 0..n {
                        let null = facts.null_request(given.handle(k)).map(|null| (null, Undefined::NONE));
                        let (number, of) = null.unwrap_or_else(|| tables.number(given, k));
                        values.push((lane, number));
                        generalised |= of.goes_by_what_was_set();
                        if written {
                            undefined.push(of);
                        }
                    }
                    let mut left = false;
                    for (k, &(_, number)) in values[first..].iter().enumerate() {
                        let now = host.handle_at(Class::Request, pointer, k);
                        if facts.null_request(now).is_none() {
                            left = true;
                        } else if let Some(later) = tables.complete(number, false) {
                            arrived.push(*later);
                        }
                    }
                    if left {
                        let written = |j: u8, k| Some(host.int_at(args[usize::from(j)], k));
                        let numbers = &values[first..];
                        self.completed.each(n, written, |k| tables.set_active(numbers[k].1, false));
                    }
                }
                What::Written => {
                    let n = count.map_or(1, |count| written_length(host, args, count));
                    let pointer = args[usize::from(at)];
                    values.extend((0..n).map(|k| (lane, host.int_at(pointer, k))));
                }
                What::Statuses { flag, of } => {
                    if !written {
                        continue;
                    }
                    let written = flag.is_none_or(|flag| host.int_at(args[usize::from(flag)], 0) != 0);
                    let n = match count {
                        _ if !written => 0,
                        None => 1,
                        Some(count) => self.length(host, args, count),
                    };
                    for k in 0..n {
                        let index = |j: u8, k| host.int_at(args[usize::from(j)], k);
                        let mut of = of.kth(k, undefined, index);
                        if of.goes_by_what_was_set() {
                            of = tables.was_set();
                        }
                        let place = match passed {
                            Passed::Matched => {
                                of = of.of_ignored();
                                before.statuses()
                            }
                            _ => args[usize::from(at)],
                        };
                        let raw = host.status_at(place, k);
                        facts.push_status(&raw, facts.world_rank, of, lane, values);
                    }
                }
            }
        }
        if let Some(polls) = self.polls {
            values.push((polls[usize::from(written)], 0));
        }
        if generalised {
            tables.forget_set();
        }
    }

    /// The number in parameter `count`, whichever way it went.
    fn length<M: Memory>(&self, host: &M, args: &[usize], count: u8) -> usize {
        let by_value = self.steps.iter().any(|step| step.at == count && matches!(step.what, What::Given));
        if by_value { given_length(args, count) } else { written_length(host, args, count) }
    }
}

fn given(args: &[usize], at: u8) -> i64 {
    i64::from(args[usize::from(at)] as u32 as i32)
}

fn given_length(args: &[usize], at: u8) -> usize {
    usize::try_from(given(args, at)).unwrap_or(0)
}

fn written_length<M: Memory>(host: &M, args: &[usize], at: u8) -> usize {
    usize::try_from(host.int_at(args[usize::from(at)], 0)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_complete_requests_are_known() {
        let known = refrain_model::functions().iter().filter(|f| Completion::new(f).is_some());
        let mut names: Vec<&str> = known.map(|f| f.name).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "MPI_Test",
                "MPI_Testall",
                "MPI_Testany",
                "MPI_Testsome",
                "MPI_Wait",
                "MPI_Waitall",
                "MPI_Waitany",
                "MPI_Waitsome",
            ]
        );
    }
}
