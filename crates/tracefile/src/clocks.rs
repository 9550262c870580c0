//! Clocks: ticks as nanoseconds, and the nanoseconds of one rank's clock as those of rank 0's.
//!
//! ```
//! use refrain_tracefile::clocks::{Clock, Clocks, Point};
//! // Rank 1 runs 1 s ahead of rank 0, and gains 10 us in 10 s.
//! let start = Point { at: 1_000_000_000, common: 0, error: 500 };
//! let end = Point { at: 11_000_010_000, common: 10_000_000_000, error: 500 };
//! let own = Point { at: 0, common: 0, error: 0 };
//! let clocks = Clocks {
//!     clocks: vec![
//!         Clock { ranks: [0].into_iter().collect(), start: own, end: own, ..Clock::default() },
//!         Clock { ranks: [1].into_iter().collect(), start, end, ..Clock::default() },
//!     ],
//! };
//! // A message that rank 0 sent at 5 s. Rank 1 had it 3 us later, at 6.000008 s of its own clock.
//! let (sent, received) = (clocks.common(0, 5_000_000_000), clocks.common(1, 6_000_008_000));
//! assert!((received - sent).abs_diff(3_000) <= 1);
//! ```

use refrain_fold::ranks::RankList;

/// Ticks of a counter as nanoseconds of a clock, through two moments at which both were read.
///
/// It never runs backwards, and the same moments give the same nanoseconds everywhere. Between the two moments it is off
/// by less than they were, and 1 ns more, as long as both clocks keep their rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Converter {
    ticks: u64,
    nanoseconds: u64,
    /// Nanoseconds a tick, times 2^[`SHIFT`].
    rate: u64,
}

/// The rate is off by at most half of 2^-60 ns a tick: less than 1 ns in a century. A tick may last up to 16 ns.
const SHIFT: u32 = 60;

impl Converter {
    /// Each moment in ticks and in nanoseconds. Where they do not tell how long a tick is, it is a nanosecond.
    pub fn between(start: (u64, u64), end: (u64, u64)) -> Converter {
        let (ticks, nanoseconds) = start;
        let (ran, lasted) = (end.0.saturating_sub(ticks), end.1.saturating_sub(nanoseconds));
        let rate = if ran == 0 || lasted == 0 {
            1 << SHIFT
        } else {
            let ran = u128::from(ran);
            let rate = ((u128::from(lasted) << SHIFT) + ran / 2) / ran;
            u64::try_from(rate).unwrap_or(u64::MAX)
        };
        Converter { ticks, nanoseconds, rate }
    }

    /// The moment at which the counter stood there. Moments before the first count too.
    pub fn nanoseconds(self, ticks: u64) -> u64 {
        let since = i128::from(ticks) - i128::from(self.ticks);
        // At most 64 bits each; what both signs need does not fit, and no counter runs for so long.
        let since = since.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
        let moment = i128::from(self.nanoseconds) + ((since * i128::from(self.rate)) >> SHIFT);
        moment.clamp(0, i128::from(u64::MAX)) as u64
    }

    /// How long so many ticks last, to the nearest nanosecond.
    pub fn length(self, ticks: u64) -> u64 {
        let half = 1 << (SHIFT - 1);
        let length = (u128::from(ticks) * u128::from(self.rate)).saturating_add(half) >> SHIFT;
        u64::try_from(length).unwrap_or(u64::MAX)
    }

    /// The same clock, wrong by so much from the first moment on: for tests.
    pub fn skewed(self, offset_ns: i64, drift_ppm: i64) -> Converter {
        let rate = i128::from(self.rate) * i128::from(1_000_000 + drift_ppm) / 1_000_000;
        Converter {
            ticks: self.ticks,
            nanoseconds: self.nanoseconds.saturating_add_signed(offset_ns),
            rate: rate.clamp(1, i128::from(u64::MAX)) as u64,
        }
    }
}

/// How the clocks of all ranks relate to that of rank 0, which is the common one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clocks {
    /// That of rank 0 first. Ranks of one host have one clock.
    pub clocks: Vec<Clock>,
}

/// One clock, and the ranks that have it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clock {
    pub ranks: RankList,
    /// Some of them read the processor's time stamp counter. It was held against `CLOCK_MONOTONIC`.
    pub counter: bool,
    /// Some of them read `CLOCK_MONOTONIC`.
    pub monotonic: bool,
    /// The most that the rate of a counter changed against `CLOCK_MONOTONIC` while it was looked at, in 10^-9.
    pub wander: u64,
    /// The most that messages between these ranks said they are apart, which they are not, in nanoseconds: a check.
    pub residual: u64,
    pub start: Point,
    /// The same as `start` where the clocks were compared once.
    pub end: Point,
}

/// One moment on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Point {
    /// Nanoseconds of the rank's clock.
    pub at: u64,
    /// Nanoseconds of the common clock.
    pub common: u64,
    /// The latter is off by at most so many nanoseconds.
    pub error: u64,
}

/// From one clock to the common one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mapping {
    start: Point,
    end: Point,
    /// Outside of the two moments the drift counts only where it is more than their errors could be.
    drifts: bool,
}

impl Point {
    /// What the rank's clock lacks, in nanoseconds.
    pub fn offset(self) -> i64 {
        let offset = i128::from(self.common) - i128::from(self.at);
        offset.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

impl Mapping {
    pub fn new(start: Point, end: Point) -> Mapping {
        let change = i128::from(end.offset()) - i128::from(start.offset());
        Mapping {
            start,
            end,
            drifts: change.unsigned_abs() > u128::from(start.error) + u128::from(end.error),
        }
    }

    /// A moment of the rank's clock, on the common one: on the line through the two moments at which both were compared.
    pub fn common(self, at: u64) -> u64 {
        let Mapping { start, end, drifts } = self;
        let (within, lasted) = (start.at < at && at < end.at, i128::from(end.at) - i128::from(start.at));
        let near = if at >= end.at { end } else { start };
        let drift = if lasted > 0 && (within || drifts) {
            let change = i128::from(end.offset()) - i128::from(start.offset());
            let since = i128::from(at) - i128::from(near.at);
            // Numbers of at most 65 bits each: a file may say anything.
            change.checked_mul(since).map_or(0, |product| product.div_euclid(lasted))
        } else {
            0
        };
        (i128::from(at) + i128::from(near.offset()) + drift).clamp(0, u64::MAX.into()) as u64
    }

    /// At that moment it is off by at most so many nanoseconds, as long as both clocks keep their rates, which differ by
    /// less than a thousandth.
    pub fn error(self, at: u64) -> u64 {
        let Mapping { start, end, drifts } = self;
        let outside = start.at.saturating_sub(at).max(at.saturating_sub(end.at));
        let lasted = u128::from(end.at.saturating_sub(start.at));
        // What is carried on is off by as much as the offsets are. Of what is not, no more is known than that it may be twice
        // as much, and less than a thousandth.
        let errors = u128::from(start.error) + u128::from(end.error);
        let carried = |times: u128| (errors * times).saturating_mul(outside.into()).checked_div(lasted);
        let drift = if drifts {
            carried(1).unwrap_or(0)
        } else {
            carried(2).unwrap_or(u128::MAX).min(outside.div_ceil(1_000).into())
        };
        start.error.max(end.error).saturating_add(u64::try_from(drift).unwrap_or(u64::MAX))
    }
}

impl Clock {
    pub fn mapping(&self) -> Mapping {
        Mapping::new(self.start, self.end)
    }

    /// How much faster the common clock runs, in 10^-9. 0 where that is less than the errors could be.
    pub fn drift(&self) -> i64 {
        let lasted = i128::from(self.end.at) - i128::from(self.start.at);
        let change = i128::from(self.end.offset()) - i128::from(self.start.offset());
        if lasted <= 0 || !self.mapping().drifts {
            return 0;
        }
        (change * 1_000_000_000 / lasted).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

impl Clocks {
    /// The mapping of a rank's clock; to be asked once for many moments. A rank of which nothing is known has rank 0's.
    pub fn of(&self, rank: u32) -> Mapping {
        let known = self.clocks.iter().find(|clock| clock.ranks.contains(rank));
        known.map_or_else(Mapping::default, Clock::mapping)
    }

    /// The corrected clock of a rank is off by at most so many nanoseconds while it was compared: see [`Mapping::error`].
    pub fn error(&self, rank: u32) -> u64 {
        let Mapping { start, end, .. } = self.of(rank);
        start.error.max(end.error)
    }

    /// Nanoseconds of a rank's clock, as nanoseconds of the common one.
    pub fn common(&self, rank: u32, nanoseconds: u64) -> u64 {
        self.of(rank).common(nanoseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks of a counter of that rate, by a definition that does not share the code above.
    fn moment(second: f64, per_second: f64) -> (u64, u64) {
        ((second * per_second) as u64, (second * 1e9) as u64)
    }

    #[test]
    fn ticks_become_nanoseconds() {
        for per_second in [62.6e6, 1e9, 2.1e9, 5.3e9] {
            let (start, end) = (moment(1000.0, per_second), moment(90_000.0, per_second));
            let clock = Converter::between(start, end);
            assert_eq!(clock.nanoseconds(start.0), start.1);
            assert!(clock.nanoseconds(end.0).abs_diff(end.1) <= 1);
            for second in [900.0, 1000.5, 44_444.4, 100_000.0] {
                let (ticks, nanoseconds) = moment(second, per_second);
                // A tick may last 16 ns, and f64 is good for 16 digits.
                assert!(clock.nanoseconds(ticks).abs_diff(nanoseconds) <= 32, "{per_second} {second}");
            }
            assert!(clock.length(per_second as u64).abs_diff(1_000_000_000) <= 1);
        }
    }

    #[test]
    fn lengths_are_told_to_the_nearest_nanosecond() {
        // Three ticks last two nanoseconds.
        let clock = Converter::between((0, 0), (3_000, 2_000));
        assert_eq!([0, 1, 2, 3, 4].map(|ticks| clock.length(ticks)), [0, 1, 1, 2, 3]);
    }

    #[test]
    fn a_clock_that_counts_nanoseconds_is_left_alone() {
        let clock = Converter::between((7, 7), (1 << 40, 1 << 40));
        for ticks in [0, 1, 7, 8, 1 << 50, i64::MAX as u64] {
            assert_eq!((clock.nanoseconds(ticks), clock.length(ticks)), (ticks, ticks));
        }
        assert_eq!(Converter::between((5, 100), (5, 100)).nanoseconds(7), 102);
        assert_eq!(Converter::between((5, 100), (3, 90)).nanoseconds(7), 102);
    }

    #[test]
    fn it_never_runs_backwards() {
        let clock = Converter::between((1_000_003, 500), (1_000_003 + 6_999_999_937, 500 + 3_333_333_333));
        for clock in [clock, clock.skewed(-400, -500), clock.skewed(3, 500)] {
            let mut last = 0;
            for ticks in 999_000..1_020_000 {
                let now = clock.nanoseconds(ticks);
                assert!(now >= last, "{now} after {last}");
                last = now;
            }
        }
        // Nor where the numbers end.
        let moments = [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX].map(|ticks| clock.nanoseconds(ticks));
        assert!(moments.is_sorted(), "{moments:?}");
    }

    #[test]
    fn a_skewed_clock_is_wrong_by_what_was_said() {
        let right = Converter::between((0, 1_000_000), (2_000_000_000, 1_001_000_000));
        let wrong = right.skewed(-5_000, 500);
        assert_eq!(wrong.nanoseconds(0), 995_000);
        // A second later: half a thousandth of it more.
        assert!(wrong.nanoseconds(2_000_000_000).abs_diff(1_001_000_000 - 5_000 + 500_000) <= 1);
    }

    fn point(at: u64, common: u64, error: u64) -> Point {
        Point { at, common, error }
    }

    #[test]
    fn moments_between_lie_on_the_line() {
        let mapping = Mapping::new(point(1_000, 11_000, 10), point(101_000, 111_100, 20));
        assert_eq!(mapping.common(1_000), 11_000);
        assert_eq!(mapping.common(51_000), 61_050);
        assert_eq!(mapping.common(101_000), 111_100);
        assert_eq!([1_000, 50_000, 101_000].map(|at| mapping.error(at)), [20; 3]);
        assert_eq!((mapping.error(0), mapping.error(151_000)), (20, 35));
        // The drift, 100 ns, is more than 10 + 20: it went on before and after.
        assert_eq!((mapping.common(0), mapping.common(201_000)), (9_999, 211_200));
        assert!((0..200_000).map(|at| mapping.common(at)).is_sorted());
    }

    #[test]
    fn a_drift_that_may_be_none_is_not_carried_on() {
        // MPI_Init took a second, and the run a millisecond.
        let clock = Clock {
            start: point(1_000_000_000, 1_000_000_000, 500),
            end: point(1_001_000_000, 1_001_000_900, 500),
            ..Clock::default()
        };
        assert_eq!((clock.mapping().common(0), clock.drift()), (0, 0));
        assert_eq!(clock.mapping().common(1_002_000_000), 1_002_000_900);
        assert_eq!(clock.mapping().common(1_000_500_000), 1_000_500_450);
    }

    #[test]
    fn one_comparison_is_an_offset() {
        let once = point(500, 2_500, 7);
        let mapping = Mapping::new(once, once);
        assert_eq!([0, 500, 10_000].map(|at| mapping.common(at)), [2_000, 2_500, 12_000]);
        assert_eq!([500, 10_500].map(|at| mapping.error(at)), [7, 17]);
        assert_eq!(Clocks::default().common(3, 42), 42);
    }

    #[test]
    fn any_points_are_borne() {
        let numbers = [0, 1, 1 << 40, i64::MAX as u64, u64::MAX - 1, u64::MAX];
        let points = numbers.iter().flat_map(|&at| numbers.map(|common| point(at, common, at ^ common)));
        let points: Vec<Point> = points.collect();
        for &start in &points {
            for &end in &points {
                let clock = Clock { start, end, ..Clock::default() };
                clock.drift();
                for at in numbers {
                    clock.mapping().common(at);
                    clock.mapping().error(at);
                }
            }
        }
    }
}
