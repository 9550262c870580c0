//! Which ranks, which calls and when: `0,3-5`, `100..200` and `1.5..2`.

use std::ops::Range;

pub use refrain_model::{BadNumbers, Numbers};
use refrain_times::CallTime;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no range of calls: write 10..20, 10.., ..20, or 10 for one call")]
pub struct BadPositions {
    text: String,
}

/// `10..20` (without 20), `10..`, `..20`, or `10`.
pub fn positions(text: &str) -> Result<Range<u64>, BadPositions> {
    let bad = || BadPositions { text: text.to_string() };
    let number = |part: &str, otherwise: u64| {
        if part.is_empty() { Ok(otherwise) } else { part.parse::<u64>().map_err(|_| bad()) }
    };
    let range = match text.split_once("..") {
        Some((first, end)) => number(first, 0)?..number(end, u64::MAX)?,
        None => {
            let only: u64 = text.parse().map_err(|_| bad())?;
            only..only.saturating_add(1)
        }
    };
    if range.start <= range.end { Ok(range) } else { Err(bad()) }
}

/// A stretch of time, in nanoseconds since the first call of the trace began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Between {
    pub from: i64,
    pub to: i64,
}

impl Between {
    /// Whether a call may overlap it, given how wrong its times may be.
    pub fn overlaps(&self, told: &CallTime) -> bool {
        !self.is_before(told) && told.span.end.saturating_add_unsigned(told.end_error) >= self.from
    }

    /// Whether it was over when this call began.
    pub fn is_before(&self, told: &CallTime) -> bool {
        told.span.start.saturating_sub_unsigned(told.start_error) > self.to
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no stretch of time: write 1.5..2 in seconds, 1.5.. or ..2")]
pub struct BadBetween {
    text: String,
}

/// `1.5..2`, `1.5..` or `..2`, in seconds.
pub fn between(text: &str) -> Result<Between, BadBetween> {
    let bad = || BadBetween { text: text.to_string() };
    let number = |part: &str, otherwise: i64| match part {
        "" => Ok(otherwise),
        part => part
            .parse::<f64>()
            .ok()
            .filter(|n| n.is_finite())
            .map(|n| (n * 1e9).round() as i64)
            .ok_or_else(bad),
    };
    // The first two points, so that `0.5...7` is half a second to seven tenths.
    let (from, to) = text.split_once("..").ok_or_else(bad)?;
    let (from, to) = (number(from, i64::MIN)?, number(to, i64::MAX)?);
    if from <= to { Ok(Between { from, to }) } else { Err(bad()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_of_time() {
        let told = |text| between(text).map(|Between { from, to }| (from, to));
        assert_eq!(told("1.5..2"), Ok((1_500_000_000, 2_000_000_000)));
        assert_eq!(told("0.000000007.."), Ok((7, i64::MAX)));
        assert_eq!(told("..3"), Ok((i64::MIN, 3_000_000_000)));
        for bad in ["", "1", "2..1", "a..b", "1..nan", "1..inf"] {
            assert!(between(bad).is_err(), "{bad}");
        }
        let span = refrain_times::Span { start: 100, end: 200 };
        let overlap = |from, to, error| {
            let told = CallTime { span, start_error: error, end_error: error, result: None };
            Between { from, to }.overlaps(&told)
        };
        assert!(overlap(0, 100, 0) && overlap(200, 300, 0) && overlap(150, 160, 0));
        assert!(!overlap(0, 99, 0) && !overlap(201, 300, 0));
        assert!(overlap(0, 99, 1) && overlap(201, 300, 1));
    }

    #[test]
    fn ranges_of_calls() {
        assert_eq!(positions("10..20"), Ok(10..20));
        assert_eq!(positions("10.."), Ok(10..u64::MAX));
        assert_eq!(positions("..20"), Ok(0..20));
        assert_eq!(positions(".."), Ok(0..u64::MAX));
        assert_eq!(positions("10"), Ok(10..11));
        for bad in ["", "x", "5..3", "1..x", "1...3", "-1"] {
            assert!(positions(bad).is_err(), "{bad}");
        }
    }
}
