//! One time for all ranks: how the clocks of ranks on other hosts relate to that of rank 0.
//!
//! Each rank compares its clock with that of the rank above it in the tree, once after `MPI_Init` and once in
//! `MPI_Finalize`; no message is sent in between. It asks what time it is, several times. The answer was given between question
//! and arrival, so the middle of the shortest wait is off by at most half of it. All of this is kept in ticks: how many
//! nanoseconds they are is known at the end, and the times of calls are made of ticks in the same way. At the end the
//! comparisons go up the tree, and each rank tells those below it in terms of its own clock.
//!
//! Ranks that run on the same kernel have the same clock. Messages could only make that worse; they are a check.

use std::fs;
use std::path::Path;
use std::time::Duration;

use refrain_fold::bundle::{Link, RankTree};
use refrain_fold::ranks::RankList;
use refrain_guest::process::clock::{self, Moment, Source};
use refrain_mpi::{MpiTransport, Pmpi, Waiting};
use refrain_tracefile::claim;
use refrain_tracefile::clocks::{Clock, Clocks, Converter, Mapping, Point};

use super::arrival::{self, Met};
use super::exchange::{Step, go_through};
use super::together::{MOST_PATIENCE, Wire, obstacle};
use crate::config::Config;
use crate::files::{meeting_place, meeting_prefix, start_prefix};
use crate::hooks::Ending;
use crate::recording::{Compared, Comparison, User};

/// Questions to the rank above.
const ROUNDS: usize = 16;

/// For so long at most the ranks wait for each other in `MPI_Init`.
const PATIENCE: Duration = Duration::from_secs(10);

/// After `MPI_Init`, on all ranks. They meet first, as they do at the end (`arrival`): one may not be traced, and the others
/// would wait for it for ever. `None` where they do not meet; then the clocks are compared at the end alone.
pub fn at_start(
    config: &Config,
    pmpi: &Pmpi,
    (rank, size): (u32, u32),
    user: User,
    parts: &Path,
) -> Option<Comparison> {
    let done = |above| Some(Comparison { done: Moment::now(), above });
    if size == 1 {
        return done(None);
    }
    // Without a name nobody can tell whether a file is of this run.
    if config.run.is_empty() && config.job.is_empty() {
        return None;
    }
    let _returned = pmpi.returning_errors();
    let place = meeting_place(config, parts, &meeting_prefix(config));
    let obstacle = obstacle(pmpi, user, Ending::Whole);
    let own = arrival::Rank { rank, size, obstacle, time: arrival::time_mark(&config.time) };
    let patience = config.patience.min(PATIENCE);
    let met = arrival::meet(&place, start_prefix(config), own, patience, || pmpi.progress());
    let Ok(Met::All(meeting)) = met else { return None };
    let called_off = |_| meeting.is_off();
    let waiting = Waiting { most: MOST_PATIENCE, called_off: &called_off };
    let Ok(transport) = MpiTransport::new(pmpi, pmpi.abi().comm_world, waiting) else {
        meeting.call_off();
        return None;
    };
    let mut link = Wire { transport: Some(transport), broken: false, dies: false };
    let above = compare(&mut link, rank, size, clock::now);
    // Freeing may wait for all: a communicator that one rank cannot free is left to the others too.
    match (all_are_whole(&mut link, rank, size), link.transport.take()) {
        // An error here leaks a communicator.
        (true, Some(transport)) => drop(transport.close()),
        _ => {
            meeting.call_off();
            return None;
        }
    }
    if rank == 0 {
        // It was the last to answer.
        meeting.end();
    }
    done(above)
}

/// To be called by all ranks: whether every one of them could send and receive until now, and hears so.
fn all_are_whole<L: Link>(link: &mut L, rank: u32, size: u32) -> bool {
    let RankTree { below, above } = RankTree::of(rank, size);
    let mut heard = || {
        below.iter().try_for_each(|&from| link.recv(from).map(drop))?;
        if let Some(above) = above {
            link.send(above, &[])?;
            link.recv(above)?;
        }
        below.iter().try_for_each(|&to| link.send(to, &[]))
    };
    let heard: Result<(), L::Error> = heard();
    heard.is_ok()
}

/// At the end, on all ranks: all clocks, on rank 0. Nothing where the times of calls are not kept.
pub fn of_all(
    config: &Config,
    link: &mut Wire<MpiTransport<'_>>,
    (rank, size): (u32, u32),
    own: &OwnClock,
    start: Option<Comparison>,
) -> Option<Clocks> {
    if !config.time.of_every_call() {
        return None;
    }
    let above = compare(link, rank, size, clock::now);
    let end = Comparison { done: Moment::now(), above };
    gather(link, (rank, size), own, start, end)
}

/// To be called by all ranks. One that fails among these messages goes through the rest of them, so that nobody waits.
pub fn compare<L: Link>(link: &mut L, rank: u32, size: u32, now: impl Fn() -> u64) -> Option<Compared> {
    let RankTree { below, above } = RankTree::of(rank, size);
    let answers = below.iter().flat_map(|&from| [Step::Recv(from), Step::Send(from)].repeat(ROUNDS));
    let questions = above.iter().flat_map(|&to| [Step::Send(to), Step::Recv(to)].repeat(ROUNDS));
    let compared = go_through(link, answers.chain(questions).collect(), |link| {
        for &from in &below {
            for _ in 0..ROUNDS {
                link.recv(from)?;
                link.send(from, &now().to_le_bytes())?;
            }
        }
        let mut best: Option<Compared> = None;
        for to in above.into_iter().flat_map(|to| [to; ROUNDS]) {
            let asked = now();
            link.send(to, &[])?;
            let answer = link.recv(to)?;
            let waited = now().saturating_sub(asked);
            // Nothing, where the rank above has failed.
            let Some(above) = answer.as_slice().try_into().ok().map(u64::from_le_bytes) else { continue };
            let compared = Compared { at: asked + waited / 2, half: waited.div_ceil(2), above };
            best = best.filter(|best| best.half <= compared.half).or(Some(compared));
        }
        Ok(best)
    });
    compared.and_then(Result::ok).flatten()
}

/// The rank's own clock.
#[derive(Debug, Clone)]
pub struct OwnClock {
    /// What ranks have in common that have the same clock.
    pub name: String,
    pub source: Source,
    pub converter: Converter,
    /// Its ticks were read so far away from its nanoseconds, in nanoseconds.
    pub reading: u64,
    /// See [`Clock::wander`].
    pub wander: u64,
}

impl OwnClock {
    /// A clock that was looked at at the beginning, perhaps when MPI was up, and now. With a skew, for tests, it is wrong by
    /// so many nanoseconds and millionths, and no other rank has it.
    pub fn new(
        rank: u32,
        start: Moment,
        ready: Option<Moment>,
        end: Moment,
        skew: Option<(i64, i64)>,
    ) -> OwnClock {
        let converter = Converter::between(start.pair(), end.pair());
        let (offset, drift) = skew.unwrap_or_default();
        let wander = match (clock::source(), ready) {
            (Source::Counter, Some(ready)) => clock::wander(start, ready, end).unwrap_or(u64::MAX),
            _ => 0,
        };
        OwnClock {
            name: kernel().filter(|_| skew.is_none()).unwrap_or_else(|| format!("rank-{rank}")),
            source: clock::source(),
            converter: converter.skewed(offset, drift),
            reading: converter.length(start.error.max(end.error)),
            wander,
        }
    }

    fn point(&self, compared: Compared) -> Point {
        let Compared { at, half, .. } = compared;
        let half = self.converter.length(half);
        // The clocks may differ by a thousandth while the question is under way, and all of this is rounded.
        let error = half + half.div_ceil(1_000) + 2;
        Point { at: self.converter.nanoseconds(at), common: 0, error }
    }
}

/// Which kernel this is, and which time it shows to this process: containers on one host may be told different ones.
fn kernel() -> Option<String> {
    let space = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    let boot = Some(claim::boot()).filter(|boot| !boot.is_empty())?;
    Some(format!("{boot}{}", space.display()).replace(char::is_whitespace, ""))
}

/// A clock on its way up the tree. Its points are in terms of the clock of the rank that knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    name: String,
    /// The largest of its ranks' [`OwnClock::reading`].
    reading: u64,
    clock: Clock,
}

/// What a rank tells the one above.
#[derive(Debug, Default, PartialEq, Eq)]
struct ClockReport {
    /// The comparisons with it: a point without what the clock above showed, and the ticks that this was.
    above: Vec<(Point, u64)>,
    /// Its own first.
    known: Vec<Known>,
}

/// To be called by all ranks, after the second comparison: all clocks, on rank 0.
///
/// `start` is what [`compare`] said after `MPI_Init`, if that was possible.
pub fn gather<L: Link>(
    link: &mut L,
    (rank, size): (u32, u32),
    own: &OwnClock,
    start: Option<Comparison>,
    end: Comparison,
) -> Option<Clocks> {
    let RankTree { below, above } = RankTree::of(rank, size);
    let up = below.iter().copied().map(Step::Recv).chain(above.map(Step::Send));
    let told = go_through(link, up.collect(), |link| {
        let mut known = vec![Known::own(rank, own, start, end)];
        for &from in &below {
            if let Some(told) = ClockReport::from_text(&String::from_utf8_lossy(&link.recv(from)?)) {
                told.raised(own).into_iter().for_each(|clock| join(&mut known, clock));
            }
        }
        let compared = [start.and_then(|start| start.above), end.above].into_iter().flatten();
        let told = ClockReport { above: compared.map(|c| (own.point(c), c.above)).collect(), known };
        if let Some(above) = above {
            link.send(above, told.to_text().as_bytes())?;
        }
        Ok(told)
    });
    let told = told.and_then(Result::ok)?;
    let finished = told.known.into_iter().map(Known::finished);
    above.is_none().then(|| Clocks { clocks: finished.collect() })
}

impl Known {
    fn own(rank: u32, own: &OwnClock, start: Option<Comparison>, end: Comparison) -> Known {
        let point = |comparison: Comparison| {
            let at = own.converter.nanoseconds(comparison.done.ticks);
            Point { at, common: at, error: 0 }
        };
        let clock = Clock {
            ranks: RankList::single(rank),
            counter: own.source == Source::Counter,
            monotonic: own.source == Source::Monotonic,
            wander: own.wander,
            residual: 0,
            start: point(start.unwrap_or(end)),
            end: point(end),
        };
        Known { name: own.name.clone(), reading: own.reading, clock }
    }

    /// How far two clocks of the same name are apart, and how far they may be.
    fn apart(&self, other: &Known) -> (u64, u64) {
        let (one, two) = (self.clock.mapping(), other.clock.mapping());
        let points = [other.clock.start, other.clock.end];
        let apart = points.map(|point| one.common(point.at).abs_diff(two.common(point.at)));
        let error = |mapping: Mapping| points.map(|point| mapping.error(point.at)).into_iter().max();
        let may = [error(one).unwrap_or(0), error(two).unwrap_or(0), self.reading, other.reading];
        (apart[0].max(apart[1]), may.into_iter().fold(0, u64::saturating_add))
    }

    /// Every rank of it was read a little differently, and one stands for all.
    fn finished(self) -> Clock {
        let Known { mut clock, reading, .. } = self;
        if clock.ranks.len() > 1 {
            for point in [&mut clock.start, &mut clock.end] {
                point.error = point.error.saturating_add(reading.saturating_mul(2));
            }
        }
        clock
    }
}

/// One more. Two that have one name and do not contradict each other are one, told by the better comparison.
fn join(known: &mut Vec<Known>, new: Known) {
    let same = known.iter_mut().filter(|old| old.name == new.name).find_map(|old| {
        let (apart, may) = old.apart(&new);
        (apart <= may).then_some((old, apart))
    });
    let Some((old, apart)) = same else { return known.push(new) };
    let error = |clock: &Clock| clock.start.error.max(clock.end.error);
    let better = error(&new.clock) < error(&old.clock);
    let (start, end) =
        if better { (new.clock.start, new.clock.end) } else { (old.clock.start, old.clock.end) };
    old.reading = old.reading.max(new.reading);
    old.clock = Clock {
        ranks: old.clock.ranks.union(&new.clock.ranks),
        counter: old.clock.counter | new.clock.counter,
        monotonic: old.clock.monotonic | new.clock.monotonic,
        wander: old.clock.wander.max(new.clock.wander),
        residual: old.clock.residual.max(new.clock.residual).max(apart),
        start,
        end,
    };
}

impl ClockReport {
    /// In terms of the clock above. What was never compared, and has another name, cannot be told.
    fn raised(self, above: &OwnClock) -> Vec<Known> {
        let ClockReport { above: compared, mut known } = self;
        let points: Vec<Point> = compared
            .into_iter()
            .map(|(point, ticks)| Point { common: above.converter.nanoseconds(ticks), ..point })
            .collect();
        let Some(own) = known.first_mut() else { return known };
        let same = own.name == above.name
            && points.iter().all(|point| {
                let may = point.error.saturating_add(own.reading).saturating_add(above.reading);
                point.offset().unsigned_abs() <= may
            });
        if same {
            let apart = points.iter().map(|point| point.offset().unsigned_abs()).max();
            own.clock.residual = own.clock.residual.max(apart.unwrap_or(0));
            return known;
        }
        let (Some(&start), Some(&end)) = (points.first(), points.last()) else { return Vec::new() };
        let mapping = Mapping::new(start, end);
        for Known { clock, .. } in &mut known {
            for point in [&mut clock.start, &mut clock.end] {
                point.error = point.error.saturating_add(mapping.error(point.common)).saturating_add(1);
                point.common = mapping.common(point.common);
            }
        }
        known
    }

    /// One line each: `above AT ERROR TICKS`, `clock NAME READING COUNTER MONOTONIC WANDER RESIDUAL`, two points of
    /// `AT COMMON ERROR`, and the ranks.
    fn to_text(&self) -> String {
        let mut out = String::new();
        for (point, ticks) in &self.above {
            out += &format!("above {} {} {ticks}\n", point.at, point.error);
        }
        for Known { name, reading, clock } in &self.known {
            let Clock { ranks, counter, monotonic, wander, residual, start, end } = clock;
            let flags = [u8::from(*counter), u8::from(*monotonic)];
            out += &format!("clock {name} {reading} {} {} {wander} {residual}", flags[0], flags[1]);
            for Point { at, common, error } in [start, end] {
                out += &format!(" {at} {common} {error}");
            }
            let ranks: Vec<String> = ranks.iter().map(|rank| rank.to_string()).collect();
            out += &format!(" {}\n", ranks.join(","));
        }
        out
    }

    /// `None` where the rank below has failed: its message is empty.
    fn from_text(text: &str) -> Option<ClockReport> {
        let mut told = ClockReport::default();
        for line in text.lines() {
            let mut words = line.split(' ');
            match words.next()? {
                "above" => {
                    let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
                    let [at, error, ticks] = numbers?.try_into().ok()?;
                    told.above.push((Point { at, common: 0, error }, ticks));
                }
                _ => {
                    let name = words.next()?.to_owned();
                    let mut number = || words.next()?.parse::<u64>().ok();
                    let reading = number()?;
                    let (counter, monotonic) = (number()? != 0, number()? != 0);
                    let (wander, residual) = (number()?, number()?);
                    let mut point = || Some(Point { at: number()?, common: number()?, error: number()? });
                    let (start, end) = (point()?, point()?);
                    let mut ranks: Vec<u32> =
                        words.next()?.split(',').filter_map(|rank| rank.parse().ok()).collect();
                    ranks.sort_unstable();
                    let ranks = RankList::from_sorted(&ranks);
                    let clock = Clock { ranks, counter, monotonic, wander, residual, start, end };
                    told.known.push(Known { name, reading, clock });
                }
            }
        }
        (!told.known.is_empty()).then_some(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::testing::Wire;
    use refrain_mpi::{LocalTransport, Transport, TransportError, local};
    use std::thread;
    use std::time::{Duration, Instant};

    /// A rank's counter, and how its nanoseconds are wrong.
    #[derive(Clone, Copy)]
    struct Machine {
        begun: Instant,
        /// Ticks in 7 ns.
        per_seven: u64,
        /// Where the counter began.
        first: u64,
        skew: (i64, i64),
    }

    impl Machine {
        /// The counter when so many nanoseconds have passed.
        fn ticks(self, passed: u64) -> u64 {
            self.first + passed * self.per_seven / 7
        }

        fn now(self) -> u64 {
            self.ticks(self.begun.elapsed().as_nanos() as u64)
        }

        fn converter(self) -> Converter {
            /// So long after it was switched on a machine is looked at.
            const UP: u64 = 10_000_000_000_000;
            let later = 7_000_000_000;
            Converter::between((self.ticks(0), UP), (self.ticks(later), UP + later))
                .skewed(self.skew.0, self.skew.1)
        }

        fn moment(self) -> Moment {
            Moment { ticks: self.now(), nanoseconds: 0, error: 0 }
        }
    }

    /// Compares as many clocks as there are skews; ranks whose names are equal claim to have the same. `once`: only at the end.
    fn clocks(skews: &[(i64, i64)], name: impl Fn(u32) -> String, once: bool) -> (Vec<Machine>, Clocks, u64) {
        let begun = Instant::now();
        let machines: Vec<Machine> = (0..)
            .zip(skews)
            .map(|(rank, &skew)| Machine { begun, per_seven: 7 + 3 * rank, first: 1_000 * rank, skew })
            .collect();
        let size = skews.len() as u32;
        let clocks = thread::scope(|scope| {
            let ranks = machines.iter().zip(local(size)).map(|(&machine, transport)| {
                let rank = transport.rank();
                let own = OwnClock {
                    name: name(rank),
                    source: if rank % 2 == 0 { Source::Counter } else { Source::Monotonic },
                    converter: machine.converter(),
                    reading: 0,
                    wander: rank.into(),
                };
                scope.spawn(move || {
                    let mut link = Wire(transport);
                    let mut comparison = || Comparison {
                        above: compare(&mut link, rank, size, || machine.now()),
                        done: machine.moment(),
                    };
                    let start = (!once).then(&mut comparison);
                    thread::sleep(Duration::from_millis(20));
                    let end = comparison();
                    gather(&mut link, (rank, size), &own, start, end)
                })
            });
            let ranks: Vec<_> = ranks.collect();
            let mut all = ranks.into_iter().map(|rank| rank.join().unwrap());
            let clocks = all.next().flatten().unwrap();
            assert!(all.all(|other| other.is_none()), "they are known on rank 0 alone");
            clocks
        });
        (machines, clocks, begun.elapsed().as_nanos() as u64)
    }

    /// At all times each rank's clock, corrected, is that of rank 0, but for the error that is told. The largest of both.
    fn check(machines: &[Machine], clocks: &Clocks, lasted: u64) -> (u64, u64) {
        let (mut largest, mut told) = (0, 0);
        for (rank, machine) in (0..).zip(machines) {
            for passed in (0..=50).map(|part| lasted / 50 * part) {
                let shown = |machine: &Machine| machine.converter().nanoseconds(machine.ticks(passed));
                let (own, true_) = (shown(machine), shown(&machines[0]));
                let mapping = clocks.of(rank);
                let (off, error) = (mapping.common(own).abs_diff(true_), mapping.error(own) + 2);
                assert!(
                    off <= error,
                    "rank {rank}, after {passed} ns: off by {off}, told {error}: {clocks:?}"
                );
                (largest, told) = (largest.max(off), told.max(error));
            }
        }
        (largest, told)
    }

    const SKEWS: [(i64, i64); 8] = [
        (0, 0),
        (5_000_000_000, 500),
        (-3_000_000_000, -500),
        (1_000, 0),
        (0, 400),
        (-7, -1),
        (2_500_000_000, -333),
        (999_999_999, 499),
    ];

    #[test]
    fn skewed_clocks_are_corrected_to_within_the_error_that_is_told() {
        for size in [1, 2, 3, 5, 8] {
            let (machines, clocks, lasted) = clocks(&SKEWS[..size], |rank| format!("rank-{rank}"), false);
            assert_eq!(clocks.clocks.len(), size);
            assert_eq!(clocks.clocks[0].ranks, RankList::single(0));
            let (off, told) = check(&machines, &clocks, lasted);
            println!("{size} ranks: off by at most {off} ns, told {told} ns");
        }
    }

    #[test]
    fn without_the_first_comparison_the_offset_of_the_end_is_known() {
        let (machines, clocks, lasted) = clocks(&SKEWS[..5], |rank| format!("rank-{rank}"), true);
        assert!(clocks.clocks.iter().all(|clock| clock.start == clock.end && clock.drift() == 0));
        check(&machines, &clocks, lasted);
    }

    /// Ranks 0 and 2 are on one host, and so are 1 and 3; 4 has a third.
    #[test]
    fn ranks_of_one_host_have_one_clock() {
        let skew = |rank: u32| [(0, 0), (4_000_000, 300)][rank as usize % 2];
        let mut skews: Vec<_> = (0..4).map(skew).collect();
        skews.push((-9_000_000, 0));
        let name = |rank: u32| if rank == 4 { "third".to_owned() } else { format!("host-{}", rank % 2) };
        let (machines, clocks, lasted) = clocks(&skews, name, false);
        let of = |clock: usize| clocks.clocks[clock].ranks.iter().collect::<Vec<_>>();
        assert_eq!((of(0), of(1), of(2)), (vec![0, 2], vec![1, 3], vec![4]));
        let first = &clocks.clocks[0];
        assert_eq!((first.start.offset(), first.end.offset(), first.start.error), (0, 0, 0));
        assert_eq!((first.counter, first.monotonic, first.wander), (true, false, 2));
        // What messages said is kept.
        assert!(first.residual > 0);
        // Not drawn from messages, so exact.
        assert_eq!(clocks.common(2, 12_345), 12_345);
        check(&machines, &clocks, lasted);
    }

    /// Each rank read it for itself, and one of them stands for all.
    #[test]
    fn a_clock_of_several_ranks_is_off_by_how_it_was_read() {
        let point = |at| Point { at, common: at, error: 3 };
        let errors = |ranks: &[u32]| {
            let ranks = RankList::from_sorted(ranks);
            let clock = Clock { ranks, start: point(1), end: point(9), ..Clock::default() };
            let clock = Known { name: "a".into(), reading: 5, clock }.finished();
            [clock.start.error, clock.end.error]
        };
        assert_eq!([errors(&[1]), errors(&[1, 4]), errors(&[0, 1, 2])], [[3, 3], [13, 13], [13, 13]]);
    }

    #[test]
    fn one_that_only_claims_to_have_the_same_clock_has_its_own() {
        let (machines, clocks, lasted) =
            clocks(&[(0, 0), (60_000_000_000, 0), (0, 0)], |_| "same".into(), false);
        let ranks: Vec<Vec<u32>> = clocks.clocks.iter().map(|clock| clock.ranks.iter().collect()).collect();
        assert_eq!(ranks, [vec![0, 2], vec![1]]);
        check(&machines, &clocks, lasted);
    }

    #[test]
    fn what_is_told_survives_the_journey() {
        let point = |at| Point { at, common: at + 7, error: 3 };
        let clock = Clock {
            ranks: RankList::from_sorted(&[1, 5, 6]),
            counter: true,
            monotonic: false,
            wander: 11,
            residual: 12,
            start: point(1),
            end: point(u64::MAX - 7),
        };
        let told = ClockReport {
            above: vec![(Point { at: 5, common: 0, error: 6 }, 7)],
            known: vec![Known { name: "a".into(), reading: 9, clock }],
        };
        assert_eq!(ClockReport::from_text(&told.to_text()), Some(told));
        assert_eq!(ClockReport::from_text(""), None);
        assert_eq!(ClockReport::from_text("clock a 1 2"), None);
    }

    /// A rank that fails at its message of that number; the others must come to an end.
    struct Failing(LocalTransport, usize);

    impl Link for Failing {
        type Error = TransportError;
        fn send(&mut self, to: u32, bytes: &[u8]) -> Result<(), TransportError> {
            let sent = self.0.send(to, bytes);
            self.1 = self.1.wrapping_sub(1);
            assert_ne!(self.1, 0, "a test asked for a fault");
            sent
        }
        fn recv(&mut self, from: u32) -> Result<Vec<u8>, TransportError> {
            self.0.recv(from)
        }
    }

    #[test]
    fn nobody_waits_for_a_rank_that_fails() {
        std::panic::set_hook(Box::new(|_| {}));
        let size = 5;
        for failing in 0..size {
            for at in [1, ROUNDS / 2, ROUNDS] {
                let ranks = local(size).into_iter().map(|transport| {
                    thread::spawn(move || {
                        let rank = transport.rank();
                        let mut link = Failing(transport, if rank == failing { at } else { 0 });
                        compare(&mut link, rank, size, clock::now)
                    })
                });
                let ranks: Vec<_> = ranks.collect();
                let known = ranks.into_iter().map(|rank| rank.join().unwrap());
                let known: Vec<bool> = known.map(|compared| compared.is_some()).collect();
                // Rank 0 asks nobody, the one that failed has forgotten, and all others have had an answer before.
                let expected = (0..size).map(|rank| rank != 0 && rank != failing);
                let near = RankTree::of(failing, size).below;
                for ((rank, known), expected) in (0..size).zip(known).zip(expected) {
                    assert!(known == expected || near.contains(&rank), "{rank}, {failing} failed at {at}");
                }
            }
        }
    }

    /// A rank above that answers at once.
    struct Answers;

    impl Link for Answers {
        type Error = ();
        fn send(&mut self, _: u32, _: &[u8]) -> Result<(), ()> {
            Ok(())
        }
        fn recv(&mut self, _: u32) -> Result<Vec<u8>, ()> {
            Ok(77u64.to_le_bytes().to_vec())
        }
    }

    #[test]
    fn the_shortest_wait_counts() {
        for shortest in [0, 5, ROUNDS - 1] {
            let (asked, now) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
            // Before a question and after its answer: every wait but one is long.
            let clock = || {
                let reading = asked.replace(asked.get() + 1);
                let waited = if reading / 2 == shortest { 10 } else { 1_000 + reading as u64 };
                now.set(now.get() + if reading % 2 == 0 { 100 } else { waited });
                now.get()
            };
            let compared = compare(&mut Answers, 1, 2, clock).unwrap();
            assert_eq!((compared.half, compared.above), (5, 77), "{shortest}");
        }
    }
}
