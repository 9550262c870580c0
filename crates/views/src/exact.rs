//! Where a trace tells the times of single calls, what it says of kinds of calls is computed from these. What ranks summed up while
//! they ran is rounded, and calls that took little share a mean.

use std::collections::BTreeMap;

use refrain_encode::{ClassLanes, Layout, Reader};
use refrain_fold::bundle::Tally;
use refrain_fold::bundle::classes::{Class, Classes};
use refrain_model::time::Time;
use refrain_tracefile::{Profile, Trace};

use crate::error::Error;
use crate::length::Ran;
use crate::meaning::roles::Role;
use crate::stats;
use crate::timed::{Timed, Times};

/// Whether what a trace says of kinds of calls and of ranks was added up from single calls.
pub fn is_summed_up(trace: &Trace) -> bool {
    trace.meta.profile.as_ref().is_some_and(Profile::is_of_single)
}

/// Puts the times of single calls in place of the sums of symbols, of their classes, and of ranks. False, and nothing is changed, where the trace
/// does not tell them to the nanosecond, or not of every call. `progress` is told how many calls were read.
pub fn sum_up(trace: &mut Trace, times: &Times, progress: &mut dyn FnMut(u64)) -> Result<bool, Error> {
    if *times.time() != Time::Exact {
        return Ok(false);
    }
    let layouts = stats::layouts(&trace.bundle)?;
    let lanes: Vec<Option<ClassLanes>> = layouts.iter().map(ClassLanes::of).collect();
    let mut sums: Vec<(Tally, Classes)> = vec![(Tally::NONE, Classes::default()); layouts.len()];
    let roles: Vec<Role> = layouts.iter().map(|layout| Role::of(layout.function)).collect();
    let reader = Reader::new(&trace.bundle);
    let mut read = 0u64;
    let mut by_rank = Vec::new();
    for rank in 0..trace.meta.ranks {
        let (mut ran, mut inside) = (Ran::default(), Covered::default());
        let mut functions: BTreeMap<u16, u64> = BTreeMap::new();
        for thread in reader.threads(rank) {
            let mut calls = Timed::new(&trace.bundle, &reader, Some(times), (rank, thread), 0)?;
            while let Some((_, told)) = calls.next_call()? {
                let (Some(told), Some(symbol)) = (told, calls.symbol()) else { return Ok(false) };
                let time = u64::try_from(told.span.end.saturating_sub(told.span.start)).unwrap_or(0);
                let tally = Tally { total: time, min: time, max: time };
                if roles[symbol as usize] == Role::Init && !ran.is_up() {
                    // A rank's time begins here.
                    inside = Covered::default();
                }
                ran.see(roles[symbol as usize], &told);
                // The trace is written before its last call ends.
                if !is_last(&layouts[symbol as usize]) {
                    if thread == 0 {
                        inside.add(told.span.start, told.span.end);
                    }
                    let sum = functions.entry(layouts[symbol as usize].function.id).or_default();
                    *sum = sum.saturating_add(time);
                }
                let (sum, classes) = &mut sums[symbol as usize];
                sum.add(tally);
                if let Some(kind) = lanes[symbol as usize].map(|lanes| calls.kind(lanes)) {
                    classes.add(Class { kind, count: 1, tally });
                }
                read += 1;
                if read.is_multiple_of(1 << 14) {
                    progress(read);
                }
            }
        }
        if let Some((began, ended)) = ran.span() {
            let inside = inside.between(began, ended);
            let wall = u64::try_from(ended.saturating_sub(began)).unwrap_or(0);
            by_rank.push((rank, (wall.saturating_sub(inside), inside), functions));
        }
    }
    trace.meta.profile = Some(Profile::of_single(&by_rank));
    for ((symbol, (sum, classes)), layout) in trace.bundle.symbols.iter_mut().zip(sums).zip(&layouts) {
        if sum == Tally::NONE || is_last(layout) {
            continue;
        }
        symbol.tally = sum;
        // What is all alike is told by its symbol.
        let several = classes.together || classes.list().len() > 1;
        symbol.classes = if several { classes } else { Classes::default() };
    }
    Ok(true)
}

fn is_last(layout: &Layout) -> bool {
    layout.function.name == "MPI_Finalize"
}

/// How much of the time of a thread its calls cover, in the order in which they ended: each moment counts once, also in a callback's
/// calls.
#[derive(Default)]
struct Covered {
    total: u64,
    /// What may still lie within a call that comes later, in order.
    last: Vec<(i64, i64)>,
}

impl Covered {
    /// More calls than these are in no callback of one call.
    const MOST: usize = 1 << 16;

    fn add(&mut self, start: i64, end: i64) {
        while let Some(within) = self.last.pop_if(|one| one.0 >= start) {
            self.total -= length(within);
        }
        // What overlaps has no order: a file may say anything.
        let start = self.last.last().map_or(start, |before| start.max(before.1));
        if end <= start {
            return;
        }
        if self.last.len() == Self::MOST {
            self.last.drain(..Self::MOST / 2);
        }
        self.last.push((start, end));
        self.total = self.total.saturating_add(length((start, end)));
    }

    /// No more than there is between these.
    fn between(&self, began: i64, ended: i64) -> u64 {
        self.total.min(length((began, ended)))
    }
}

fn length((start, end): (i64, i64)) -> u64 {
    u64::try_from(end.saturating_sub(start)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(calls: &[(i64, i64)], expected: u64) {
        let mut covered = Covered::default();
        calls.iter().for_each(|&(start, end)| covered.add(start, end));
        assert_eq!(covered.between(i64::MIN, i64::MAX), expected);
    }

    #[test]
    fn each_moment_of_a_call_counts_once() {
        check(&[(0, 10), (20, 25)], 15);
        // A callback's calls come before the call that they are made in.
        check(&[(0, 10), (22, 24), (25, 26), (20, 30)], 20);
        check(&[(0, 10), (5, 12), (12, 12)], 12);
        check(&[(i64::MIN, i64::MAX), (3, 4)], i64::MAX as u64);
    }
}
