//! Ranks, threads and the like as a user names several of them: `0,3-5`.

use std::str::FromStr;

/// Numbers and ranges of numbers, as a user writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers(Vec<(u32, u32)>);

impl Numbers {
    pub fn contains(&self, n: u32) -> bool {
        self.0.iter().any(|&(first, last)| (first..=last).contains(&n))
    }

    /// The lowest of these numbers that is not below `limit`: one that was asked for in vain.
    pub fn beyond(&self, limit: u32) -> Option<u32> {
        self.0.iter().filter(|&&(_, last)| last >= limit).map(|&(first, _)| first.max(limit)).min()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{part}' is neither a number nor a range: write them as 0,3-5")]
pub struct BadNumbers {
    part: String,
}

impl FromStr for Numbers {
    type Err = BadNumbers;

    fn from_str(text: &str) -> Result<Numbers, BadNumbers> {
        let parse = |part: &str| -> Option<(u32, u32)> {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last).then_some((first, last))
        };
        let parts = text.split(',').map(|part| parse(part).ok_or(BadNumbers { part: part.to_string() }));
        parts.collect::<Result<_, _>>().map(Numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn numbers(text: &str, expected: &[u32]) {
        let numbers: Numbers = text.parse().unwrap();
        let found: Vec<u32> = (0..20).filter(|&n| numbers.contains(n)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn numbers_and_ranges() {
        numbers("0", &[0]);
        numbers("0,3-5", &[0, 3, 4, 5]);
        numbers("3-5,4-6", &[3, 4, 5, 6]);
        numbers("7-7", &[7]);
        numbers("1, 2", &[1, 2]);
        for bad in ["", "a", "1,", "5-3", "-1", "1-", "1--2", "4294967296"] {
            assert!(bad.parse::<Numbers>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_asked_for_in_vain() {
        let beyond = |text: &str, limit| text.parse::<Numbers>().unwrap().beyond(limit);
        assert_eq!(beyond("0,3-5", 6), None);
        assert_eq!(beyond("0,3-5", 5), Some(5));
        assert_eq!(beyond("9,0-20", 4), Some(4));
        assert_eq!(beyond("0", 0), Some(0));
    }
}
