//! The virtual time of a rank's calls: told by its own calls alone, so that everybody who reads them tells the same.

use std::collections::HashMap;

use refrain_encode::Layout;
use refrain_model::Function;
use refrain_tracefile::Trace;
use refrain_tracefile::profile::Spent;

use refrain_views::gaps::Gaps;

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
    inside: HashMap<u16, f64>,
    /// Makes the runs of all ranks as long.
    factor: f64,
    now: Time,
}

impl Clock {
    /// Of a rank's main thread.
    pub fn of(trace: &Trace, rank: u32, seed: u64) -> Clock {
        let gaps = Gaps::of(trace, (rank, 0), false, seed);
        let (inside, sum) = means(trace, rank);
        let factor = if sum > 0.0 { trace.meta.wall_ns as f64 / sum } else { 1.0 };
        Clock { gaps, inside, factor, now: Time { phase: 0, ns: 0, rank } }
    }

    /// All calls take the same time.
    #[cfg(test)]
    pub fn even(rank: u32) -> Clock {
        Clock {
            gaps: Gaps::Unknown,
            inside: HashMap::new(),
            factor: 1.0,
            now: Time { phase: 0, ns: 0, rank },
        }
    }

    /// When the next call begins and ends. Each is later than all before.
    pub fn step(&mut self, function: &Function, symbol: Option<u32>) -> (Time, Time) {
        let gap = match &mut self.gaps {
            Gaps::Unknown => STEP,
            gaps => gaps.next(symbol, None),
        };
        let add = |time: Time, ns: f64| Time {
            ns: time.ns.saturating_add((ns * self.factor).max(0.0) as u64).saturating_add(1),
            ..time
        };
        let begin = add(self.now, gap);
        self.now = add(begin, self.inside.get(&function.id).copied().unwrap_or(0.0));
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

/// What a rank spent in a call of each function, and outside of all, in nanoseconds.
fn means(trace: &Trace, rank: u32) -> (HashMap<u16, f64>, f64) {
    let mut means = HashMap::new();
    let bundle = &trace.bundle;
    let (Some(profile), Some(cohort), Some(member)) =
        (&trace.meta.profile, bundle.cohort_of(rank, 0), bundle.member(rank, 0))
    else {
        return (means, 0.0);
    };
    let of_rank = |spent: Spent| {
        let all = profile.by_rank(spent);
        all.into_iter().find(|(of, _)| *of == rank).map_or(0.0, |(_, ns)| ns as f64)
    };
    let mut calls: HashMap<u16, (&'static Function, u64)> = HashMap::new();
    for (symbol, times) in bundle.counts(cohort, member) {
        let entry = bundle.symbols.get(symbol as usize);
        if let Some(layout) = entry.and_then(|entry| Layout::parse(&entry.bytes).ok()) {
            calls.entry(layout.function.id).or_insert((layout.function, 0)).1 += times;
        }
    }
    let mut sum = of_rank(Spent::Outside);
    for (function, calls) in calls.into_values().filter(|(function, _)| !is_an_end(function)) {
        let spent = of_rank(Spent::Function(function.id));
        sum += spent;
        means.insert(function.id, spent / calls.max(1) as f64);
    }
    (means, sum)
}

/// What is before and after a run.
fn is_an_end(function: &Function) -> bool {
    matches!(function.name, "MPI_Init" | "MPI_Init_thread" | "MPI_Finalize")
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
        assert!(first < ends && ends < second && second < first.end_of_phase());
        clock.next_phase();
        let (third, _) = clock.step(send, None);
        assert!(first.end_of_phase() < third && third < Time::LAST);
        assert!(third.ns < second.ns);
        // Ranks come in order where they meet.
        assert!(third < Time { rank: 4, ..third });
    }
}
