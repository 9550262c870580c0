//! What a trace tells of the computation before each call.
//!
//! With the times of single calls it is what was between them. With distributions it is the mean of the calls of that kind
//! after one of that kind, such that the rank computes as much in all as it did. With means alone it is as much before each
//! call, such that the sum is right.

use std::collections::HashMap;

use refrain_fold::bundle::Walk;
use refrain_times::Told;
use refrain_times::paths::{Before, Paths};
use refrain_tracefile::Trace;
use refrain_tracefile::profile::Spent;

/// Of so many calls it is counted how often they follow each other; the rest of a longer run is taken to be alike.
const MOST_COUNTED: u64 = 1 << 25;

/// The computation before calls of one thread.
#[derive(Debug)]
pub enum Gaps {
    /// Nothing is known.
    Unknown,
    /// Times of single calls: when the one before ended.
    Single(Option<i64>),
    /// By symbol and the one before it, in nanoseconds.
    After { means: Means, before: Option<u32> },
    /// The same before each.
    Even(f64),
}

impl Gaps {
    /// Of a thread of a rank. `single`: the times of single calls are at hand.
    pub fn of(trace: &Trace, (rank, thread): (u32, u32), single: bool) -> Gaps {
        if single {
            return Gaps::Single(None);
        }
        let outside = trace.meta.profile.as_ref().and_then(|profile| {
            let all = profile.by_rank(Spent::Outside);
            all.into_iter().find(|(of, _)| *of == rank).map(|(_, ns)| ns as f64)
        });
        // What is told of a rank in all is not told of its threads.
        if thread != 0 {
            let means = trace.meta.paths.as_ref().map(Means::of);
            return means.map_or(Gaps::Unknown, |means| Gaps::After { means, before: None });
        }
        let calls = calls_of(trace, rank);
        match (&trace.meta.paths, outside) {
            (Some(paths), outside) => {
                let means = Means::of(paths);
                Gaps::After { means: means.adding_up_to(trace, rank, calls, outside), before: None }
            }
            (None, Some(outside)) => Gaps::Even(outside / calls.saturating_sub(1).max(1) as f64),
            (None, None) => Gaps::Unknown,
        }
    }

    /// What the trace has, in one word.
    pub fn word(&self) -> &'static str {
        match self {
            Gaps::Unknown => "unknown",
            Gaps::Single(_) => "single",
            Gaps::After { .. } => "distributions",
            Gaps::Even(_) => "means",
        }
    }

    /// Nanoseconds before the next call, of this symbol and with this time.
    pub fn next(&mut self, symbol: Option<u32>, told: Option<&Told>) -> f64 {
        match self {
            Gaps::Unknown => 0.0,
            Gaps::Even(each) => *each,
            Gaps::Single(ended) => {
                let span = told.map(|told| told.span);
                let gap = span.and_then(|span| Some(span.start.saturating_sub((*ended)?)));
                // A callback's calls come before the call that it is run by, which began earlier.
                *ended = span.map(|span| span.end).or(*ended);
                gap.unwrap_or(0).max(0) as f64
            }
            Gaps::After { means, before } => {
                let gap = symbol.map_or(0.0, |symbol| means.gap(*before, symbol));
                *before = symbol.or(*before);
                gap
            }
        }
    }
}

fn calls_of(trace: &Trace, rank: u32) -> u64 {
    let bundle = &trace.bundle;
    let member = bundle.member(rank, 0).unwrap_or(rank);
    let cohort = bundle.cohorts.iter().find(|cohort| cohort.ranks.contains(member));
    cohort.map_or(0, |cohort| refrain_encode::calls_of(bundle, cohort, member))
}

/// The mean gap before a symbol, by the symbol before it.
#[derive(Debug)]
pub struct Means {
    by_path: HashMap<(u32, u32), f64>,
    /// Where the one before is one of too many, or another than any that was seen.
    by_symbol: HashMap<u32, f64>,
    factor: f64,
}

impl Means {
    fn of(paths: &Paths) -> Means {
        let (mut by_path, mut sums) = (HashMap::new(), HashMap::<u32, (f64, f64)>::new());
        for ((symbol, before), path) in &paths.0 {
            let count = path.gap.count();
            let Ok(symbol) = u32::try_from(*symbol) else { continue };
            if count == 0 {
                continue;
            }
            let total = path.gap.total as f64;
            if let Before::Call(before) = before
                && let Ok(before) = u32::try_from(*before)
            {
                by_path.insert((before, symbol), total / count as f64);
            }
            let sum = sums.entry(symbol).or_default();
            *sum = (sum.0 + total, sum.1 + count as f64);
        }
        let by_symbol = sums.into_iter().map(|(symbol, (total, count))| (symbol, total / count)).collect();
        Means { by_path, by_symbol, factor: 1.0 }
    }

    fn gap(&self, before: Option<u32>, symbol: u32) -> f64 {
        // The first call has none before it.
        let Some(before) = before else { return 0.0 };
        let known = self.by_path.get(&(before, symbol)).or_else(|| self.by_symbol.get(&symbol));
        known.map_or(0.0, |gap| gap * self.factor)
    }

    /// Distributions are those of all ranks together: one that computes more than others has more before each call.
    fn adding_up_to(mut self, trace: &Trace, rank: u32, calls: u64, outside: Option<f64>) -> Means {
        let Some(outside) = outside else { return self };
        let Ok(Some(mut walk)) = Walk::new(&trace.bundle, rank, 0) else { return self };
        let (mut before, mut counted, mut sum) = (None, 0u64, 0.0);
        while counted < MOST_COUNTED
            && let Some(symbol) = walk.next_symbol()
        {
            sum += self.gap(before, symbol);
            before = Some(symbol);
            counted += 1;
        }
        let all = if counted < MOST_COUNTED { sum } else { sum * (calls as f64 / counted as f64) };
        if all > 0.0 {
            self.factor = outside / all;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_times::Span;
    use refrain_times::paths::Recorder;

    fn told(start: i64, end: i64) -> Told {
        Told { span: Span { start, end }, start_error: 0, end_error: 0, result: None }
    }

    #[test]
    fn what_is_between_single_calls() {
        let mut gaps = Gaps::Single(None);
        let calls = [(100, 200), (250, 300), (290, 310), (1310, 1311)];
        let found: Vec<f64> = calls.iter().map(|(a, b)| gaps.next(None, Some(&told(*a, *b)))).collect();
        assert_eq!(found, [0.0, 50.0, 0.0, 1000.0]);
        // One whose time is lost.
        assert_eq!(gaps.next(None, None), 0.0);
        assert_eq!(gaps.next(None, Some(&told(1411, 1500))), 100.0);
    }

    #[test]
    fn means_go_by_the_call_before() {
        let mut recorder = Recorder::default();
        for turn in 0..50u64 {
            let start = 10_000 * turn;
            recorder.add(0, start, start + 10);
            recorder.add(1, start + 3010, start + 3020);
        }
        let paths = recorder.paths(|symbol| Some(symbol.into()), |ticks| ticks);
        let mut gaps = Gaps::After { means: Means::of(&paths), before: None };
        let order = [0, 1, 0, 1, 1];
        let found: Vec<f64> = order.iter().map(|symbol| gaps.next(Some(*symbol), None)).collect();
        assert_eq!(found, [0.0, 3000.0, 6980.0, 3000.0, 3000.0]);
    }
}
