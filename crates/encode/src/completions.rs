//! Calls that complete requests (`MPI_Wait*`, `MPI_Test*`): which requests they are about changes from call to call, but
//! the rest of their record is always laid out the same. So their values are written down in one go, without asking the
//! call table about each parameter. What comes out is exactly what encoding gives.

use refrain_model::{Class, Cond, Dir, Effect, Function, Kind, Len, Returns};

use crate::comms::Later;
use crate::defined::{Completed, Statuses, Undefined};
use crate::encoder::Before;
use crate::facts::{Facts, STATUS_LANES};
use crate::host::Memory;
use crate::params::{dynamic_condition, is_wide, known_length, untagged};
use crate::tables::Tables;

/// What one parameter adds to a record. Numbers are positions of other parameters.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// An `int` by value.
    Given(u8),
    Requests {
        at: u8,
        count: Option<u8>,
    },
    /// An `int` that was written.
    Written(u8),
    /// As many as `count` says that were written.
    List {
        at: u8,
        count: u8,
    },
    Statuses {
        at: u8,
        count: Option<u8>,
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
    polls: bool,
}

/// What the program passed for statuses. With everything else being there, this decides about the symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Without = 0,
    Ignored = 1,
    Written = 2,
}

/// How many there are of [`Shape`].
pub(crate) const SHAPES: usize = 3;

impl Completion {
    /// `None` for functions that are not of this kind.
    pub(crate) fn new(f: &'static Function) -> Option<Completion> {
        if f.returns != Returns::Code || f.silent || f.persistent {
            return None;
        }
        let mut requests = None;
        let mut steps = Vec::with_capacity(f.params.len());
        for (i, p) in f.params.iter().enumerate() {
            let at = u8::try_from(i).ok()?;
            let count = match p.len {
                [] => None,
                [Len::Param(j)] if known_length(f, i).is_some() => Some(*j),
                _ => return None,
            };
            let flag = match p.when {
                [] => None,
                [Cond::Flag(j)] if dynamic_condition(f, i).is_some() => Some(*j),
                _ => return None,
            };
            let last = i + 1 == f.params.len();
            let step = match (p.dir, p.kind) {
                (Dir::In, Kind::Int) if untagged(p) && !is_wide(p.ctype) && count.is_none() => {
                    Step::Given(at)
                }
                (Dir::InOut, Kind::Handle(Class::Request))
                    if p.effect == Effect::Complete && flag.is_none() && requests.is_none() =>
                {
                    requests = Some((at, count));
                    Step::Requests { at, count }
                }
                (Dir::Out, Kind::Logical | Kind::Undefinable) if flag.is_none() && !is_wide(p.ctype) => {
                    match count {
                        None => Step::Written(at),
                        Some(count) => Step::List { at, count },
                    }
                }
                (Dir::Out, Kind::Status) if last => {
                    Step::Statuses { at, count, flag, of: Statuses::of(f, i) }
                }
                _ => return None,
            };
            steps.push(step);
        }
        Some(Completion { steps, requests: requests?, completed: Completed::of(f), polls: f.poll })
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
    pub(crate) fn shape(&self, facts: &Facts, args: &[usize]) -> Option<Shape> {
        let mut shape = Shape::Without;
        for &step in &self.steps {
            match step {
                Step::Given(_) => {}
                Step::Requests { at, .. } | Step::Written(at) => {
                    if args[usize::from(at)] == 0 {
                        return None;
                    }
                }
                Step::List { at, .. } => {
                    let pointer = args[usize::from(at)];
                    if pointer == 0 || facts.names_an_array(pointer) {
                        return None;
                    }
                }
                Step::Statuses { at, count, .. } => {
                    let pointer = args[usize::from(at)];
                    shape = if facts.ignores_status(pointer, count.is_some()) {
                        Shape::Ignored
                    } else if pointer == 0 {
                        return None;
                    } else {
                        Shape::Written
                    };
                }
            }
        }
        Some(shape)
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
        shape: Shape,
        before: &Before,
        values: &mut Vec<(u16, i64)>,
        undefined: &mut Vec<Undefined>,
        arrived: &mut Vec<Later>,
    ) {
        values.clear();
        let written = shape == Shape::Written;
        if written {
            undefined.clear();
        }
        tables.next_call();
        let mut generalised = false;
        let mut lane = 0;
        for &step in &self.steps {
            match step {
                Step::Given(at) => {
                    values.push((lane, given(args, at)));
                    lane += 1;
                }
                Step::Requests { at, count } => {
                    let pointer = args[usize::from(at)];
                    let n = count.map_or(1, |count| given_length(args, count));
                    let size = host.handle_size(Class::Request);
                    let first = values.len();
                    for k in 0..n {
                        let handle = before.handle(k);
                        let null = facts.null_request(handle).map(|null| (null, Undefined::NONE));
                        let (number, of) = null.unwrap_or_else(|| tables.number(handle, pointer + k * size));
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
                    lane += 1;
                }
                Step::Written(at) => {
                    values.push((lane, host.int_at(args[usize::from(at)], 0)));
                    lane += 1;
                }
                Step::List { at, count } => {
                    let n = written_length(host, args, count);
                    let pointer = args[usize::from(at)];
                    values.extend((0..n).map(|k| (lane, host.int_at(pointer, k))));
                    lane += 1;
                }
                Step::Statuses { at, count, flag, of } => {
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
                        let raw = host.status_at(args[usize::from(at)], k);
                        facts.push_status(&raw, facts.world_rank, of, lane, values);
                    }
                    lane += STATUS_LANES;
                }
            }
        }
        if self.polls {
            values.push((lane, 0));
        }
        if generalised {
            tables.forget_set();
        }
    }

    /// The number in parameter `count`, whichever way it went.
    fn length<M: Memory>(&self, host: &M, args: &[usize], count: u8) -> usize {
        let by_value = self.steps.iter().any(|step| matches!(step, Step::Given(at) if *at == count));
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
