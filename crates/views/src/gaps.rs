//! What a trace tells of the computation before each call.
//!
//! With the times of single calls it is what was between them. With distributions it is drawn from that of calls of that kind
//! after one of that kind, such that the rank computes as much in all as it did. With means alone it is as much before each
//! call, such that the sum is right.
//!
//! A distribution is that of all ranks together. Where it is wide since ranks differ, drawing from it would make every rank
//! slow now and then, and all others wait for it. So the more the sum of a rank is another one than its calls let expect,
//! the nearer is what is drawn to the mean; and it is the mean where there are two kinds of gaps, short ones and long ones:
//! mostly those are of different ranks.

use std::collections::HashMap;

use refrain_fold::bundle::Walk;
use refrain_times::CallTime;
use refrain_times::levels::Levels;
use refrain_times::paths::{Before, Histogram, Paths};
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
    /// By symbol and the one before it.
    After { drawing: Drawing, before: Option<u32> },
    /// The same before each.
    Even(f64),
}

impl Gaps {
    /// Of a thread of a rank. `single`: the times of single calls are at hand.
    pub fn of(trace: &Trace, (rank, thread): (u32, u32), single: bool, seed: u64) -> Gaps {
        if single {
            return Gaps::Single(None);
        }
        let outside = trace.meta.profile.as_ref().and_then(|profile| {
            let all = profile.by_rank(Spent::Outside);
            all.into_iter().find(|(of, _)| *of == rank).map(|(_, ns)| ns as f64)
        });
        // What is told of a rank in all is not told of its threads.
        if thread != 0 {
            let drawing = trace.meta.paths.as_ref().map(|paths| Drawing::of(paths, seed ^ u64::from(thread)));
            return drawing.map_or(Gaps::Unknown, |drawing| Gaps::After { drawing, before: None });
        }
        let calls = calls_of(trace, rank);
        match (&trace.meta.paths, outside) {
            (Some(paths), outside) => {
                let drawing = Drawing::of(paths, seed ^ u64::from(rank) << 32);
                Gaps::After { drawing: drawing.adding_up_to(trace, rank, calls, outside), before: None }
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
    pub fn next(&mut self, symbol: Option<u32>, told: Option<&CallTime>) -> f64 {
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
            Gaps::After { drawing, before } => {
                let gap = symbol.map_or(0.0, |symbol| drawing.draw(*before, symbol));
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

/// A distribution is drawn from in so many equal parts, each once in a round: so sums are near at any time.
const PARTS: usize = 16;
/// From a rank whose sum is off by this share on, only means are taken.
const APART: f64 = 0.4;

/// The gaps before a symbol, by the symbol before it, in nanoseconds.
#[derive(Debug)]
pub struct Drawing {
    by_path: HashMap<(u32, u32), Parts>,
    /// Where the one before is one of too many, or another than any that was seen.
    by_symbol: HashMap<u32, Parts>,
    /// What the rank computes more than others.
    factor: f64,
    random: u64,
}

/// A distribution in equal parts, and where a round of them is.
#[derive(Debug)]
struct Parts {
    mean: f64,
    means: [f64; PARTS],
    /// The parts of a round are gone through in steps of an odd number.
    next: usize,
    step: usize,
    left: usize,
}

impl Parts {
    fn of(gaps: &Histogram) -> Option<Parts> {
        let count = gaps.count();
        if count == 0 {
            return None;
        }
        let mean = gaps.total as f64 / count as f64;
        let each = count as f64 / PARTS as f64;
        let (mut means, mut part, mut room) = ([0.0; PARTS], 0, each);
        for (level, count) in gaps.levels() {
            let (middle, mut count) = (Levels::<8>::middle(level) as f64, count as f64);
            while count > 0.0 && part < PARTS {
                let taken = count.min(room);
                means[part] += middle * taken / each;
                (count, room) = (count - taken, room - taken);
                if room <= 0.0 {
                    (part, room) = (part + 1, each);
                }
            }
        }
        if of_two_kinds(gaps) {
            means = [mean; PARTS];
        }
        // Levels are wider than the sum is known to.
        let sum: f64 = means.iter().sum();
        if sum > 0.0 {
            means.iter_mut().for_each(|one| *one *= mean * PARTS as f64 / sum);
        }
        Some(Parts { mean, means, next: 0, step: 1, left: 0 })
    }

    fn draw(&mut self, random: &mut u64) -> f64 {
        if self.left == 0 {
            *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let drawn = (*random >> 40) as usize;
            (self.left, self.next, self.step) = (PARTS, drawn % PARTS, (drawn / PARTS) | 1);
        }
        self.left -= 1;
        self.next = (self.next + self.step) % PARTS;
        self.means[self.next]
    }
}

/// Whether there is next to nothing between short ones and those that are four times as long, and both are many.
fn of_two_kinds(gaps: &Histogram) -> bool {
    let all = gaps.count();
    let levels: Vec<(u64, u64)> =
        gaps.levels().map(|(level, count)| (Levels::<8>::middle(level), count)).collect();
    let count = |of: &dyn Fn(u64) -> bool| -> u64 {
        levels.iter().filter(|(middle, _)| of(*middle)).fold(0, |sum, (_, count)| sum.saturating_add(*count))
    };
    levels.iter().any(|&(least, _)| {
        let most = least.saturating_mul(4);
        let (short, long) = (count(&|middle| middle <= least), count(&|middle| middle > most));
        let many = |count: u64| count.saturating_mul(8) >= all;
        many(short) && many(long) && all.saturating_sub(short).saturating_sub(long) <= all / 32
    })
}

impl Drawing {
    fn of(paths: &Paths, seed: u64) -> Drawing {
        let (mut by_path, mut sums) = (HashMap::new(), HashMap::<u32, Histogram>::new());
        for ((symbol, before), path) in &paths.0 {
            let Ok(symbol) = u32::try_from(*symbol) else { continue };
            if let (Before::Call(before), Some(parts)) = (before, Parts::of(&path.gap))
                && let Ok(before) = u32::try_from(*before)
            {
                by_path.insert((before, symbol), parts);
            }
            sums.entry(symbol).or_default().join(&path.gap);
        }
        let by_symbol = sums.into_iter().filter_map(|(symbol, all)| Some((symbol, Parts::of(&all)?)));
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        Drawing { by_path, by_symbol: by_symbol.collect(), factor: 1.0, random }
    }

    fn mean(&self, before: Option<u32>, symbol: u32) -> f64 {
        // The first call has none before it.
        let Some(before) = before else { return 0.0 };
        let known = self.by_path.get(&(before, symbol)).or_else(|| self.by_symbol.get(&symbol));
        known.map_or(0.0, |parts| parts.mean)
    }

    fn draw(&mut self, before: Option<u32>, symbol: u32) -> f64 {
        let Some(before) = before else { return 0.0 };
        let known = match self.by_path.get_mut(&(before, symbol)) {
            None => self.by_symbol.get_mut(&symbol),
            known => known,
        };
        let Some(parts) = known else { return 0.0 };
        let kept = (1.0 - (self.factor - 1.0).abs() / APART).max(0.0);
        let drawn = parts.draw(&mut self.random);
        self.factor * (parts.mean + kept * (drawn - parts.mean))
    }

    /// A rank that computes more than others has more before each call.
    fn adding_up_to(mut self, trace: &Trace, rank: u32, calls: u64, outside: Option<f64>) -> Drawing {
        let Some(outside) = outside else { return self };
        let Ok(Some(mut walk)) = Walk::new(&trace.bundle, rank, 0) else { return self };
        let (mut before, mut counted, mut sum) = (None, 0u64, 0.0);
        while counted < MOST_COUNTED
            && let Some(symbol) = walk.next_symbol()
        {
            sum += self.mean(before, symbol);
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

    fn told(start: i64, end: i64) -> CallTime {
        CallTime { span: Span { start, end }, start_error: 0, end_error: 0, result: None }
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

    /// A path on which 3000 is computed three times of four, and else 7000.
    fn drawing(seed: u64) -> Drawing {
        let mut recorder = Recorder::default();
        for turn in 0..80u64 {
            let start = 20_000 * turn;
            let gap = if turn % 4 == 0 { 7000 } else { 3000 };
            recorder.add(0, start, start + 10);
            recorder.add(1, start + 10 + gap, start + gap + 20);
        }
        Drawing::of(&recorder.paths(|symbol| Some(symbol.into()), |ticks| ticks), seed)
    }

    #[test]
    fn what_is_drawn_goes_by_the_call_before_and_adds_up() {
        let mut gaps = Gaps::After { drawing: drawing(1), before: None };
        let order = [0, 1].into_iter().cycle().take(160);
        let drawn: Vec<f64> = order.map(|symbol| gaps.next(Some(symbol), None)).collect();
        assert_eq!(drawn[0], 0.0);
        let of_1: Vec<f64> = drawn.iter().skip(1).step_by(2).copied().collect();
        let long = of_1.iter().filter(|gap| **gap > 5000.0).count();
        assert!(long == 20 && of_1.iter().all(|gap| (2500.0..8000.0).contains(gap)), "{of_1:?}");
        assert!((of_1.iter().sum::<f64>() - 80.0 * 4000.0).abs() < 1.0);
        let again = |seed: u64| {
            let mut gaps = Gaps::After { drawing: drawing(seed), before: Some(0) };
            (0..40).map(|_| gaps.next(Some(1), None)).collect::<Vec<f64>>()
        };
        assert_eq!(again(1), again(1));
        assert_ne!(again(1), again(2));
    }

    #[test]
    fn short_gaps_and_long_ones_are_taken_for_those_of_different_ranks() {
        let histogram = |gaps: &[u64]| {
            let mut histogram = Histogram::default();
            gaps.iter().for_each(|gap| histogram.add(*gap));
            histogram
        };
        let two = histogram(&[100, 100, 10_000, 10_000]);
        assert!(of_two_kinds(&two));
        assert_eq!(Parts::of(&two).unwrap().means, [5050.0; PARTS]);
        assert!(!of_two_kinds(&histogram(&[100, 300, 900, 2700])));
        let mut seldom = vec![100; 99];
        seldom.push(10_000);
        assert!(!of_two_kinds(&histogram(&seldom)));
    }

    #[test]
    fn a_rank_that_is_unlike_the_others_has_means() {
        let mut unlike = drawing(1);
        unlike.factor = 0.5;
        let found: Vec<f64> = (0..4).map(|_| unlike.draw(Some(0), 1)).collect();
        assert!(found.iter().all(|gap| (gap - 2000.0).abs() < 1e-6), "{found:?}");
    }
}
