//! Which ranks and which calls: `0,3-5` and `100..200`.

use std::fmt;
use std::ops::Range;

pub use refrain_model::{BadNumbers, Numbers};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadPositions {
    text: String,
}

impl fmt::Display for BadPositions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no range of calls: write 10..20, 10.., ..20, or 10 for one call", self.text)
    }
}

impl std::error::Error for BadPositions {}

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

#[cfg(test)]
mod tests {
    use super::*;

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
