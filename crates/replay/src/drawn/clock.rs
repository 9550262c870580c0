//! The virtual time of a rank's calls: told by its own calls alone, so that everybody who reads them tells the same.

use std::collections::HashMap;

use refrain_encode::Layout;
use refrain_model::Function;
use refrain_tracefile::Trace;
use refrain_tracefile::profile::Spent;

use crate::gaps::Gaps;

/// A moment of a rank. No two operations of a run have the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// How many collectives of all ranks were before.
    pub phase: u64,
    /// Nanoseconds since the last of these.
    pub ns: u64,
    pub rank: u32,
}

impl Time {
    /// Before everything.
    pub const NEVER: Time = Time { phase: 0, ns: 0, rank: 0 };
    /// After everything.
    pub const LAST: Time = Time { phase: u64::MAX, ns: u64::MAX, rank: u32::MAX };

    /// After everything in its phase, on any rank.
    pub fn end_of_phase(self) -> Time {
        Time { phase: self.phase, ns: u64::MAX, rank: u32::MAX }
    }
}

/// Where a trace has no times, a call takes so many nanoseconds.
const STEP: f64 = 1000.0;

#[derive(Debug)]
pub struct Clock {
    gaps: Gaps,
    /// The mean time in each function, by id.
    inside: HashMap<u16, u64>,
    now: Time,
}

impl Clock {
    /// Of a rank's main thread.
    pub fn of(trace: &Trace, rank: u32, seed: u64) -> Clock {
        let gaps = Gaps::of(trace, (rank, 0), false, seed);
        Clock { gaps, inside: means(trace, rank), now: Time { phase: 0, ns: 0, rank } }
    }

    /// All calls take the same time.
    #[cfg(test)]
    pub fn even(rank: u32) -> Clock {
        Clock { gaps: Gaps::Unknown, inside: HashMap::new(), now: Time { phase: 0, ns: 0, rank } }
    }

    /// When the next call begins and ends. Each is later than all before.
    pub fn step(&mut self, function: &Function, symbol: Option<u32>) -> (Time, Time) {
        let gap = match &mut self.gaps {
            Gaps::Unknown => STEP,
            gaps => gaps.next(symbol, None),
        };
        let add = |time: Time, ns: u64| Time { ns: time.ns.saturating_add(ns).saturating_add(1), ..time };
        let begin = add(self.now, gap.max(0.0) as u64);
        self.now = add(begin, self.inside.get(&function.id).copied().unwrap_or(0));
        (begin, self.now)
    }

    /// A collective of all ranks is over.
    pub fn next_phase(&mut self) {
        self.now = Time { phase: self.now.phase + 1, ns: 0, ..self.now };
    }

    pub fn now(&self) -> Time {
        self.now
    }
}

/// What a rank spent in a call of each function.
fn means(trace: &Trace, rank: u32) -> HashMap<u16, u64> {
    let mut means = HashMap::new();
    let bundle = &trace.bundle;
    let (Some(profile), Some(cohort), Some(member)) =
        (&trace.meta.profile, bundle.cohort_of(rank, 0), bundle.member(rank, 0))
    else {
        return means;
    };
    let mut calls: HashMap<u16, u64> = HashMap::new();
    for (symbol, times) in bundle.counts(cohort, member) {
        let entry = bundle.symbols.get(symbol as usize);
        if let Some(layout) = entry.and_then(|entry| Layout::parse(&entry.bytes).ok()) {
            *calls.entry(layout.function.id).or_default() += times;
        }
    }
    for (function, calls) in calls {
        let spent = profile.by_rank(Spent::Function(function));
        if let Some((_, ns)) = spent.into_iter().find(|(of, _)| *of == rank) {
            means.insert(function, ns / calls.max(1));
        }
    }
    means
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_and_phases_come_first() {
        let send = refrain_model::function("MPI_Send").unwrap();
        let mut clock = Clock::even(3);
        let (first, ends) = clock.step(send, None);
        let (second, _) = clock.step(send, None);
        assert!(Time::NEVER < first && first < ends && ends < second && second < first.end_of_phase());
        clock.next_phase();
        let (third, _) = clock.step(send, None);
        assert!(first.end_of_phase() < third && third < Time::LAST);
        assert!(third.ns < second.ns);
        // Ranks come in order where they meet.
        assert!(third < Time { rank: 4, ..third });
    }
}
