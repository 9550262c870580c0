//! A stretch of a run: `10s..2m` after `MPI_Init`.

use std::str::FromStr;

/// Nanoseconds since `MPI_Init` returned. Never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub from: u64,
    /// Not part of it; `u64::MAX`: the end of the run.
    pub until: u64,
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Window, String> {
        const HELP: &str = "write 10s..2m, 10s.. or ..500ms, with ms, s, m or h";
        let (from, until) =
            text.split_once("..").ok_or_else(|| format!("'{text}' is no stretch of time: {HELP}"))?;
        let time = |part: &str, otherwise| match part.trim() {
            "" => Ok(otherwise),
            part => nanoseconds(part).ok_or_else(|| format!("'{part}' is no time: {HELP}")),
        };
        let window = Window { from: time(from, 0)?, until: time(until, u64::MAX)? };
        if window.from < window.until { Ok(window) } else { Err(format!("'{text}' is empty")) }
    }
}

fn nanoseconds(text: &str) -> Option<u64> {
    const UNITS: [(&str, f64); 4] = [("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == &text[digits.len()..])?;
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let time = digits.parse::<f64>().ok()? * unit;
    // A thousand years are longer than any run.
    (time < 3.2e19 && time.is_finite()).then_some(time as u64).filter(|&t| t < u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let window = |text: &str| text.parse::<Window>().map(|w| (w.from, w.until));
        const S: u64 = 1_000_000_000;
        assert_eq!(window("10s..2m"), Ok((10 * S, 120 * S)));
        assert_eq!(window("1.5s.."), Ok((S * 3 / 2, u64::MAX)));
        assert_eq!(window("..250ms"), Ok((0, S / 4)));
        assert_eq!(window("1h .. 2h"), Ok((3600 * S, 7200 * S)));
        for bad in
            ["", "10s", "10..20", "x..y", "1s..1s", "2s..1s", "-1s..2s", "1s...2s", "..0s", "1e9h..", "1d.."]
        {
            assert!(window(bad).is_err(), "{bad}: {:?}", window(bad));
        }
    }
}
