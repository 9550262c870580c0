//! How long calls take and what is computed before them, as distributions: one for each call and the call before it.
//!
//! ```
//! use refrain_times::paths::{Before, Paths, Recorder};
//! let mut recorder = Recorder::default();
//! // A call of 90 ticks and one of 500, 1000 ticks of computation before each.
//! for turn in 0..100 {
//!     let start = 2590 * turn;
//!     recorder.add(0, start, start + 90);
//!     recorder.add(1, start + 1090, start + 1590);
//! }
//! // Symbols are 7 and 8 to everybody, a tick is a nanosecond.
//! let paths = recorder.paths(|symbol| Some(7 + u64::from(symbol)), |ticks| ticks);
//! let path = &paths.0[&(8, Before::Call(7))];
//! assert_eq!(path.duration.count(), 100);
//! assert!(path.duration.quantile(0.5).abs_diff(500) <= 50);
//! assert_eq!(path.gap.total, 100_000);
//! assert_eq!(paths.clone().join(Paths::default()), paths);
//! ```

use std::collections::BTreeMap;

use crate::levels::Levels;

/// Those of a histogram.
type HistogramLevels = Levels<8>;
/// Those of a recorder, whose ticks become nanoseconds at the end: finer, so that the two errors together are little more
/// than one.
type Taken = Levels<16>;

/// A quantile is wrong by at most one part in so many: half the width of a level, and of one of those that ticks are
/// taken in.
pub const ERROR: u64 = 10;

/// A recorder keeps so many calls before a call apart; more are one.
const MOST_BEFORE: usize = 64;

/// No level is higher.
pub const HIGHEST: u16 = HistogramLevels::HIGHEST;

/// What came before a call in its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Before {
    /// Nothing: it was the first.
    Nothing,
    /// A call, by its signature or its number.
    Call(u64),
    /// One of too many to keep apart.
    Others,
}

/// A distribution of nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    /// The first level that has any.
    pub first: u16,
    /// From that level on; neither the first nor the last is 0.
    pub counts: Vec<u64>,
    pub total: u64,
}

impl Histogram {
    /// The nanoseconds of a level, taken so many times.
    pub fn put(&mut self, level: u16, count: u64) {
        put(&mut self.first, &mut self.counts, level, count);
    }

    pub fn add(&mut self, ns: u64) {
        self.put(HistogramLevels::of(ns), 1);
        self.total = self.total.saturating_add(ns);
    }

    pub fn join(&mut self, other: &Histogram) {
        for (level, count) in other.levels() {
            self.put(level, count);
        }
        self.total = self.total.saturating_add(other.total);
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// (level, count), of those that have any.
    pub fn levels(&self) -> impl Iterator<Item = (u16, u64)> {
        (self.first..)
            .zip(&self.counts)
            .filter(|(_, count)| **count > 0)
            .map(|(level, count)| (level, *count))
    }

    /// What the levels say the total is: within their width of it.
    pub fn estimate(&self) -> u64 {
        let one = |(level, count): (u16, u64)| u128::from(HistogramLevels::middle(level)) * u128::from(count);
        u64::try_from(self.levels().map(one).fold(0u128, u128::saturating_add)).unwrap_or(u64::MAX)
    }

    /// The time that such a share of all is not longer than. See [`ERROR`].
    pub fn quantile(&self, share: f64) -> u64 {
        let all = self.count();
        let wanted = ((all as f64 * share).ceil() as u64).clamp(1, all.max(1));
        let mut seen = 0u64;
        for (level, count) in self.levels() {
            seen = seen.saturating_add(count);
            if seen >= wanted {
                return HistogramLevels::middle(level);
            }
        }
        0
    }

    /// Whether it is one that [`Histogram::put`] can lead to.
    pub fn is_valid(&self) -> bool {
        let ends = [self.counts.first(), self.counts.last()];
        ends.iter().all(|end| *end != Some(&0))
            && usize::from(self.first) + self.counts.len() <= usize::from(HIGHEST) + 1
            && (self.first == 0 || !self.counts.is_empty())
    }
}

/// Adds to a level of a window that grows to hold it.
#[inline]
fn put(first: &mut u16, counts: &mut Vec<u64>, level: u16, count: u64) {
    match counts.get_mut(usize::from(level.wrapping_sub(*first))) {
        Some(known) => *known = known.saturating_add(count),
        None => grow(first, counts, level, count),
    }
}

#[cold]
fn grow(first: &mut u16, counts: &mut Vec<u64>, level: u16, count: u64) {
    if count == 0 {
        return;
    }
    if counts.is_empty() {
        *first = level;
    }
    if level < *first {
        counts.splice(0..0, std::iter::repeat_n(0, usize::from(*first - level)));
        *first = level;
    }
    let at = usize::from(level - *first);
    counts.resize(counts.len().max(at + 1), 0);
    counts[at] = counts[at].saturating_add(count);
}

/// What is known of a call after another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path {
    pub duration: Histogram,
    /// From the end of the call before to its start; none of a thread's first call.
    pub gap: Histogram,
}

/// By signature of a call and what came before it. Whoever joins them in whatever order has the same in the end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paths(pub BTreeMap<(u64, Before), Path>);

impl Paths {
    #[must_use]
    pub fn join(mut self, other: Paths) -> Paths {
        for (key, path) in other.0 {
            self.path(key).join(&path);
        }
        self
    }

    fn path(&mut self, key: (u64, Before)) -> &mut Path {
        self.0.entry(key).or_default()
    }

    /// The same with other signatures; those that become one are joined, those that have none are left out.
    #[must_use]
    pub fn renamed(self, name: impl Fn(u64) -> Option<u64>) -> Paths {
        let mut renamed = Paths::default();
        for ((signature, before), path) in self.0 {
            let before = match before {
                Before::Call(signature) => name(signature).map_or(Before::Others, Before::Call),
                before => before,
            };
            if let Some(signature) = name(signature) {
                renamed.path((signature, before)).join(&path);
            }
        }
        renamed
    }
}

impl Path {
    fn join(&mut self, other: &Path) {
        self.duration.join(&other.duration);
        self.gap.join(&other.gap);
    }
}

/// What one thread takes down while it runs, in ticks of its clock.
#[derive(Debug, Default)]
pub struct Recorder {
    paths: Vec<Taking>,
    /// By symbol: what came before it, and the number of that path.
    of_symbol: Vec<Vec<(u32, u32)>>,
    /// The path of the last call, and when that ended.
    last: Option<(u32, u64)>,
}

#[derive(Debug)]
struct Taking {
    symbol: u32,
    /// A symbol, or one of those below.
    before: u32,
    /// The path of the call that followed the last time.
    next: u32,
    duration: Ticks,
    gap: Ticks,
}

const NOTHING: u32 = u32::MAX;
const OTHERS: u32 = u32::MAX - 1;

#[derive(Debug, Default)]
struct Ticks {
    first: u16,
    counts: Vec<u64>,
    total: u64,
}

impl Ticks {
    #[inline]
    fn add(&mut self, ticks: u64) {
        put(&mut self.first, &mut self.counts, Taken::of(ticks), 1);
        self.total = self.total.saturating_add(ticks);
    }

    fn histogram(&self, nanoseconds: impl Fn(u64) -> u64) -> Histogram {
        let mut histogram = Histogram { total: nanoseconds(self.total), ..Histogram::default() };
        for (level, &count) in (self.first..).zip(&self.counts) {
            histogram.put(HistogramLevels::of(nanoseconds(Taken::middle(level))), count);
        }
        histogram
    }
}

impl Recorder {
    /// A call of the thread, after all that were added before.
    // Not within the path of calls that are not asked for this.
    #[inline(never)]
    pub fn add(&mut self, symbol: u32, start: u64, end: u64) {
        let Some((last, ended)) = self.last else {
            let at = self.find(NOTHING, symbol);
            self.paths[at as usize].duration.add(end.saturating_sub(start));
            self.last = Some((at, end));
            return;
        };
        let before = &self.paths[last as usize];
        let (before, next) = (before.symbol, before.next);
        let at = match self.paths.get(next as usize) {
            Some(expected) if expected.symbol == symbol && expected.before == before => next,
            _ => {
                let at = self.find(before, symbol);
                self.paths[last as usize].next = at;
                at
            }
        };
        let path = &mut self.paths[at as usize];
        path.duration.add(end.saturating_sub(start));
        // A callback's calls are added before the one they are made in, which began earlier.
        path.gap.add(start.saturating_sub(ended));
        self.last = Some((at, end));
    }

    fn find(&mut self, before: u32, symbol: u32) -> u32 {
        let symbols = self.of_symbol.len().max(symbol as usize + 1);
        self.of_symbol.resize_with(symbols, Vec::new);
        let known = &mut self.of_symbol[symbol as usize];
        if let Some((_, at)) = known.iter().find(|(other, _)| *other == before) {
            return *at;
        }
        let before = if known.len() < MOST_BEFORE { before } else { OTHERS };
        if let Some((_, at)) = known.iter().find(|(other, _)| *other == before) {
            return *at;
        }
        let at = self.paths.len() as u32;
        known.push((before, at));
        let (duration, gap) = Default::default();
        self.paths.push(Taking { symbol, before, next: u32::MAX, duration, gap });
        at
    }

    /// In nanoseconds, by signatures, of those symbols that have one.
    pub fn paths(&self, signature: impl Fn(u32) -> Option<u64>, nanoseconds: impl Fn(u64) -> u64) -> Paths {
        let mut paths = Paths::default();
        for taking in &self.paths {
            let before = match taking.before {
                NOTHING => Before::Nothing,
                OTHERS => Before::Others,
                before => signature(before).map_or(Before::Others, Before::Call),
            };
            let Some(signature) = signature(taking.symbol) else { continue };
            let path = paths.path((signature, before));
            path.duration.join(&taking.duration.histogram(&nanoseconds));
            path.gap.join(&taking.gap.histogram(&nanoseconds));
        }
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(seed: u64, symbols: u64, calls: u64) -> Paths {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut recorder = Recorder::default();
        let mut now = 1_000_000;
        for _ in 0..calls {
            let (gap, length) = (random.u64(..20), random.u64(..20));
            let start = now + random.u64(..8 << gap);
            now = start + random.u64(..8 << length);
            recorder.add(random.u64(..symbols) as u32, start, now);
        }
        recorder.paths(|symbol| Some(u64::from(symbol) * 77), |ticks| ticks / 3)
    }

    #[test]
    fn joining_in_any_order_is_the_same() {
        let all: Vec<Paths> = (0..9).map(|seed| some(seed, 3 + seed, 400)).collect();
        let forwards = all.iter().cloned().fold(Paths::default(), Paths::join);
        let backwards = all.iter().rev().cloned().fold(Paths::default(), Paths::join);
        let mut heap: std::collections::VecDeque<Paths> = all.into();
        while heap.len() > 1 {
            let (a, b) = (heap.pop_front().unwrap(), heap.pop_back().unwrap());
            heap.push_back(b.join(a));
        }
        assert_eq!(forwards, backwards);
        assert_eq!(heap[0], forwards);
        assert!(forwards.0.values().all(|path| path.duration.is_valid() && path.gap.is_valid()));
    }

    #[test]
    fn every_call_counts_once_and_quantiles_are_near() {
        let mut random = fastrand::Rng::with_seed(5);
        let (mut recorder, mut durations, mut now) = (Recorder::default(), Vec::new(), 0);
        for _ in 0..5000 {
            let length = 300 + random.u64(..100_000);
            recorder.add(0, now + 10, now + 10 + length);
            durations.push(length * 10 / 27);
            now += 10 + length;
        }
        let paths = recorder.paths(|_| Some(1), |ticks| ticks * 10 / 27);
        let (first, later) = (&paths.0[&(1, Before::Nothing)], &paths.0[&(1, Before::Call(1))]);
        assert_eq!((first.duration.count(), first.gap.count()), (1, 0));
        assert_eq!((later.duration.count(), later.gap.count()), (4999, 4999));
        durations.remove(0);
        assert!(later.duration.total.abs_diff(durations.iter().sum()) <= 4999);
        durations.sort_unstable();
        for share in [0.001, 0.1, 0.5, 0.9, 0.99, 1.0] {
            let exact = durations[((durations.len() as f64 * share).ceil() as usize).max(1) - 1];
            let told = later.duration.quantile(share);
            assert!(told.abs_diff(exact) <= exact / ERROR + 1, "{share}: {told} for {exact}");
        }
    }

    #[test]
    fn too_many_calls_before_are_one() {
        let mut recorder = Recorder::default();
        for turn in 0..1000u32 {
            recorder.add(turn % 200 + 1, 0, 1);
            recorder.add(0, 1, 2);
        }
        let paths = recorder.paths(|symbol| Some(symbol.into()), |ticks| ticks);
        let of_0: Vec<_> = paths.0.iter().filter(|((symbol, _), _)| *symbol == 0).collect();
        assert_eq!(of_0.len(), MOST_BEFORE + 1);
        assert_eq!(of_0.iter().map(|(_, path)| path.duration.count()).sum::<u64>(), 1000);
        assert!(paths.0.contains_key(&(0, Before::Others)));
    }

    #[test]
    fn other_names_join_what_becomes_one() {
        let paths = some(3, 6, 500);
        let all = |paths: &Paths| paths.0.values().map(|path| path.duration.count()).sum::<u64>();
        let fewer = paths.clone().renamed(|signature| Some(signature / 154));
        assert!(fewer.0.len() < paths.0.len());
        assert_eq!((all(&fewer), all(&paths)), (500, 500));
        let without = paths.clone().renamed(|signature| (signature != 77).then_some(signature));
        assert!(all(&without) < 500 && without.0.keys().any(|(_, before)| *before == Before::Others));
    }
}
