//! Times of calls that the trace does not tell, made up of the sums that it does tell.
//!
//! Each call of a thread follows the one before it: the gap is that of `gaps`, and it takes as long as calls of its kind did
//! on average. Both are scaled so that a rank's calls add up to what that rank spent in MPI and outside. All ranks leave
//! `MPI_Init` at the same moment. A call that waits for another rank longer than it takes on average moves what follows. Where no time was kept at all, each call takes a microsecond.

use refrain_encode::Layout;
use refrain_fold::bundle::Bundle;
use refrain_model::time::Time;
use refrain_times::Span;
use refrain_tracefile::Trace;
use refrain_tracefile::profile::Spent;

use super::When;
use crate::error::Error;
use crate::gaps::Gaps;
use crate::meaning::roles::Role;
use crate::stats;
use crate::timed::time_of;

/// What all threads of a trace have in common.
#[derive(Debug)]
pub(super) struct Means {
    /// Nanoseconds, by symbol.
    took: Vec<f64>,
    /// By symbol: it is `MPI_Init` or its like.
    starts: Vec<bool>,
    /// When all leave `MPI_Init`.
    begin: f64,
    /// No time was kept.
    off: bool,
}

impl Means {
    pub(super) fn of(trace: &Trace) -> Result<Means, Error> {
        let bundle = &trace.bundle;
        let off = !trace.meta.timed || time_of(trace)? == Time::Off;
        let layouts = stats::layouts(bundle)?;
        let starts: Vec<bool> =
            layouts.iter().map(|layout| Role::of(layout.function) == Role::Init).collect();
        let counts = stats::symbol_calls(bundle, &layouts);
        let mean = |(symbol, count): (&refrain_fold::bundle::SymbolEntry, &u64)| match *count {
            _ if off => When::STEP as f64,
            0 => 0.0,
            count => symbol.tally.total as f64 / count as f64,
        };
        let took: Vec<f64> = bundle.symbols.iter().zip(&counts).map(mean).collect();
        let begin = took.iter().zip(&starts).filter(|(_, starts)| **starts).map(|(took, _)| *took);
        Ok(Means { begin: begin.fold(0.0, f64::max), took, starts, off })
    }
}

impl Means {
    /// No time was kept.
    pub(super) fn is_off(&self) -> bool {
        self.off
    }
}

/// The times of one thread's calls, in their order.
#[derive(Debug)]
pub(super) struct Plan {
    gaps: Gaps,
    /// By how much calls of this rank take longer than the mean.
    factor: f64,
    now: f64,
    /// It has left `MPI_Init`.
    begun: bool,
}

impl Plan {
    pub(super) fn of(trace: &Trace, means: &Means, place: (u32, u32)) -> Plan {
        let (rank, thread) = place;
        let gaps = if means.off { Gaps::Unknown } else { Gaps::of(trace, place, false, 0) };
        let factor = if thread == 0 { factor(trace, means, rank) } else { None };
        let begun = thread != 0;
        Plan { gaps, factor: factor.unwrap_or(1.0), now: if begun { means.begin } else { 0.0 }, begun }
    }

    /// A call took longer, or began later: what follows is later by as much.
    pub(super) fn delay(&mut self, ns: i64) {
        self.now += ns as f64;
    }

    /// Of the next call, which has this symbol.
    pub(super) fn next(&mut self, means: &Means, symbol: Option<u32>) -> Span {
        let at = symbol.map(|symbol| symbol as usize);
        let took = at.and_then(|at| means.took.get(at)).copied().unwrap_or(0.0);
        let gap = self.gaps.next(symbol, None);
        let starts = at.and_then(|at| means.starts.get(at)).copied().unwrap_or(false);
        let (start, end) = match starts && !self.begun {
            true => (self.now.min(means.begin), means.begin.max(self.now)),
            // What is before MPI_Init has no gap: nobody knows when the program began.
            false if !self.begun => (self.now, (self.now + took).min(means.begin).max(self.now)),
            false => (self.now + gap, self.now + gap + took * self.factor),
        };
        self.begun |= starts;
        self.now = end;
        Span { start: start as i64, end: end as i64 }
    }
}

/// So that the calls of a rank add up to what it spent in MPI.
fn factor(trace: &Trace, means: &Means, rank: u32) -> Option<f64> {
    let profile = trace.meta.profile.as_ref().filter(|_| !means.off)?;
    let spent = |spent: Spent| {
        profile.by_rank(spent).into_iter().find(|(of, _)| *of == rank).map(|(_, ns)| ns as f64)
    };
    let starting = profile.rows.iter().filter_map(|row| match row.spent {
        Spent::Function(id) if Role::of(refrain_model::function_by_id(id)?) == Role::Init => spent(row.spent),
        _ => None,
    });
    let inside = spent(Spent::Inside)? - starting.sum::<f64>();
    let bundle = &trace.bundle;
    let (cohort, member) = (bundle.cohort_of(rank, 0)?, bundle.member(rank, 0)?);
    let polls = polls_of(bundle, cohort, member);
    let counts = bundle.counts(cohort, member).into_iter().zip(polls);
    let sum = counts.filter(|((symbol, _), _)| !means.starts.get(*symbol as usize).copied().unwrap_or(true));
    let sum: f64 = sum
        .map(|((symbol, times), polls)| means.took[symbol as usize] * (times.saturating_add(polls)) as f64)
        .sum();
    (sum > 0.0 && inside > 0.0).then(|| inside / sum)
}

/// Failed polls that are counted with each symbol of a cohort, in the order of its counts.
fn polls_of(bundle: &Bundle, cohort: &refrain_fold::bundle::Cohort, member: u32) -> Vec<u64> {
    let lanes = bundle.values_of(cohort);
    let mut next = 0;
    let mut polls = Vec::new();
    for (symbol, times) in bundle.counts(cohort, member) {
        let Some(entry) = bundle.symbols.get(symbol as usize) else { break };
        let first = next;
        next += usize::from(entry.lanes);
        let lane = Layout::parse(&entry.bytes).ok().and_then(|layout| layout.polls);
        let lane = lane.and_then(|lane| lanes.get(first + usize::from(lane)));
        let sum = lane.and_then(|lane| bundle.stream_of(lane, member)).map_or(0, |stream| stream.sum(times));
        polls.push(u64::try_from(sum).unwrap_or(0));
    }
    polls
}
