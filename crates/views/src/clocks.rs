//! What is to be said of the ranks' clocks: which they are, what of them is corrected, and how far off they may still be.

use refrain_fold::ranks::RankList;
use refrain_tracefile::Meta;
use refrain_tracefile::clocks::{Clock, Clocks, Point};
use serde::Serialize;

use crate::human::{duration, plural};

/// From this change of rate on, in 10^-9, a counter is not what it should be: `CLOCK_MONOTONIC` is itself led by up to half
/// of it.
const UNSTEADY: u64 = 1_000_000;

/// The extremes over all clocks.
struct Extremes {
    /// Nanoseconds.
    offset: u64,
    /// In 10^-9.
    drift: u64,
    error: u64,
    residual: u64,
    wander: u64,
}

impl Extremes {
    fn of(clocks: &Clocks) -> Extremes {
        let most = |of: &dyn Fn(&Clock) -> u64| clocks.clocks.iter().map(of).max().unwrap_or(0);
        Extremes {
            offset: most(&|clock| clock.start.offset().unsigned_abs().max(clock.end.offset().unsigned_abs())),
            drift: most(&|clock| clock.drift().unsigned_abs()),
            error: most(&|clock| clock.start.error.max(clock.end.error)),
            residual: most(&|clock| clock.residual),
            wander: most(&|clock| clock.wander),
        }
    }
}

/// In 10^-9, as millionths.
fn millionths(parts: u64) -> String {
    format!("{} ppm", (parts as f64 / 1e3 * 100.0).round() / 100.0)
}

/// Those of the run that no clock has: they were not compared.
fn uncompared(meta: &Meta, clocks: &Clocks) -> RankList {
    let known = clocks.clocks.iter().fold(RankList::default(), |all, clock| all.union(&clock.ranks));
    (0..meta.ranks).filter(|&rank| !known.contains(rank)).collect()
}

/// One fact a line; none where the times of calls are not kept.
pub fn lines(meta: &Meta) -> Vec<String> {
    let Some(clocks) = &meta.clocks else { return Vec::new() };
    let Extremes { offset, drift, error, residual, wander } = Extremes::of(clocks);
    let any = |of: fn(&Clock) -> bool| clocks.clocks.iter().any(of);
    let read = match (any(|clock| clock.counter), any(|clock| clock.monotonic)) {
        (true, false) => "the processor's counter",
        (true, true) => "the processor's counter on some ranks, CLOCK_MONOTONIC on others",
        _ => "CLOCK_MONOTONIC",
    };
    let mut lines = vec![match (any(|clock| clock.counter), wander) {
        (false, _) => read.to_owned(),
        (true, 0) => format!("{read}, which kept its rate"),
        (true, UNSTEADY..) => {
            format!("{read}; WRONG: its rate changed by {} against CLOCK_MONOTONIC", millionths(wander))
        }
        (true, _) => format!("{read}; its rate changed by {} against CLOCK_MONOTONIC", millionths(wander)),
    }];
    let checked = if residual == 0 {
        String::new()
    } else {
        format!("; messages between ranks of one host agree to {}", duration(residual))
    };
    if clocks.clocks.len() == 1 {
        lines.push(format!("all ranks have the same, read to within {}{checked}", duration(error)));
    } else {
        lines.push(format!(
            "{}, corrected to that of rank 0: offsets up to {}, drift up to {}",
            plural(clocks.clocks.len() as u64, "clock"),
            duration(offset),
            millionths(drift),
        ));
        lines.push(format!("error after correction: at most {}{checked}", duration(error)));
    }
    let lost = uncompared(meta, clocks);
    if !lost.is_empty() {
        lines.push(format!("not compared, and taken for that of rank 0: rank {lost}"));
    }
    lines
}

/// The same for programs, with each clock.
#[derive(Serialize)]
pub struct ClocksDocument {
    offset_ns: u64,
    drift_ppb: u64,
    error_ns: u64,
    residual_ns: u64,
    wander_ppb: u64,
    clocks: Vec<ClockRow>,
}

#[derive(Serialize)]
struct ClockRow {
    ranks: String,
    counter: bool,
    monotonic: bool,
    start: PointRow,
    end: PointRow,
    drift_ppb: i64,
    residual_ns: u64,
    wander_ppb: u64,
}

#[derive(Serialize)]
struct PointRow {
    at_ns: u64,
    offset_ns: i64,
    error_ns: u64,
}

impl ClocksDocument {
    pub fn of(clocks: &Clocks) -> ClocksDocument {
        let Extremes { offset, drift, error, residual, wander } = Extremes::of(clocks);
        ClocksDocument {
            offset_ns: offset,
            drift_ppb: drift,
            error_ns: error,
            residual_ns: residual,
            wander_ppb: wander,
            clocks: clocks.clocks.iter().map(ClockRow::of).collect(),
        }
    }
}

impl ClockRow {
    fn of(clock: &Clock) -> ClockRow {
        let point =
            |point: Point| PointRow { at_ns: point.at, offset_ns: point.offset(), error_ns: point.error };
        ClockRow {
            ranks: crate::human::ranks(&clock.ranks.iter().collect::<Vec<_>>()),
            counter: clock.counter,
            monotonic: clock.monotonic,
            start: point(clock.start),
            end: point(clock.end),
            drift_ppb: clock.drift(),
            residual_ns: clock.residual,
            wander_ppb: clock.wander,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(ranks: &[u32], offsets: (i64, i64), error: u64) -> Clock {
        let point = |at: u64, offset| Point { at, common: at.saturating_add_signed(offset), error };
        Clock {
            ranks: RankList::from_sorted(ranks),
            counter: true,
            start: point(10_000_000_000, offsets.0),
            end: point(20_000_000_000, offsets.1),
            ..Clock::default()
        }
    }

    fn check(ranks: u32, clocks: Vec<Clock>, expected: &[&str]) {
        let meta = Meta { ranks, clocks: Some(Clocks { clocks }), ..Meta::default() };
        assert_eq!(lines(&meta), expected);
    }

    #[test]
    fn clocks_in_words() {
        assert!(lines(&Meta::default()).is_empty());
        let one = Clock { residual: 2_500, ..clock(&[0, 1], (0, 0), 60) };
        let same = "all ranks have the same, read to within 60 ns; messages between ranks of one host agree to 2.50 us";
        check(2, vec![one.clone()], &["the processor's counter, which kept its rate", same]);
        let several = [
            "the processor's counter; its rate changed by 0.25 ppm against CLOCK_MONOTONIC",
            "2 clocks, corrected to that of rank 0: offsets up to 2.00 s, drift up to 500 ppm",
            "error after correction: at most 800 ns",
        ];
        let ahead = clock(&[1, 2], (-2_000_000_000, -1_995_000_000), 800);
        let wandered = Clock { wander: 250, ..ahead };
        check(3, vec![clock(&[0], (0, 0), 0), wandered.clone()], &several);
        let lost = "not compared, and taken for that of rank 0: rank 3";
        check(4, vec![clock(&[0], (0, 0), 0), wandered], &[&several[..], &[lost]].concat());
        let monotonic = Clock { counter: false, monotonic: true, ..one.clone() };
        check(2, vec![monotonic], &["CLOCK_MONOTONIC", same]);
        let unsteady = "the processor's counter; WRONG: its rate changed by 2000 ppm against CLOCK_MONOTONIC";
        check(2, vec![Clock { wander: 2_000_000, ..one }], &[unsteady, same]);
    }

    #[test]
    fn clocks_for_programs() {
        let text =
            crate::json::text(&ClocksDocument::of(&Clocks { clocks: vec![clock(&[0, 1], (5, 5), 7)] }));
        let start = r#"{"offset_ns":5,"drift_ppb":0,"error_ns":7,"residual_ns":0,"wander_ppb":0,"clocks":[{"ranks":"0,1""#;
        let start = start.replace("0,1\"", &format!("{}\"", crate::human::ranks(&[0, 1])));
        assert!(text.starts_with(&start), "{text}");
        assert!(text.contains(r#""start":{"at_ns":10000000000,"offset_ns":5,"error_ns":7}"#), "{text}");
    }
}
