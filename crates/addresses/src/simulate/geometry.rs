//! What a cache looks like.

/// More lines than any cache has; their bookkeeping still fits in memory.
const MOST_LINES: u64 = 1 << 28;

/// Size in bytes, ways, and bytes of a line; the number of sets, and of bytes in a line, is a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    size: u64,
    ways: u64,
    line: u64,
}

/// Why there is no such cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    #[error("a cache without {0} is none")]
    Nothing(&'static str),
    #[error("lines have a power of two of bytes, from 4 to 1M, and {0} is none; 64 is common")]
    Line(u64),
    /// Less than one line in each way.
    #[error("that is less than one line in each way: make it {} or more, or take fewer ways", short_size(*.least))]
    Small { least: u64 },
    /// Sizes that would do: the next smaller, the next larger.
    #[error("the number of sets, size / (ways x line), must be a power of two: with these ways and lines make it {} or {}", short_size(*.below), short_size(*.above))]
    Sets { below: u64, above: u64 },
    #[error("pages have a power of two of bytes, from 256 to 1T, and {0} is none; 4K and 2M are common")]
    Page(u64),
    #[error("that is too large: caches here have {MOST_LINES} lines at most")]
    Large,
}

impl Geometry {
    pub fn new(size: u64, ways: u64, line: u64) -> Result<Geometry, Misfit> {
        for (n, what) in [(size, "bytes"), (ways, "ways"), (line, "bytes in a line")] {
            if n == 0 {
                return Err(Misfit::Nothing(what));
            }
        }
        if !line.is_power_of_two() || !(4..=1 << 20).contains(&line) {
            return Err(Misfit::Line(line));
        }
        let row = ways.checked_mul(line).ok_or(Misfit::Large)?;
        if size < row {
            return Err(Misfit::Small { least: row });
        }
        if size / line > MOST_LINES {
            return Err(Misfit::Large);
        }
        let sets = size / row;
        if !size.is_multiple_of(row) || !sets.is_power_of_two() {
            let below = row << sets.ilog2();
            return Err(Misfit::Sets { below, above: 2 * below });
        }
        Ok(Geometry { size, ways, line })
    }

    /// One set for all lines.
    pub fn fully_associative(size: u64, line: u64) -> Result<Geometry, Misfit> {
        // What is no line at all is refused there.
        let ways = size.checked_div(line).unwrap_or(1);
        Geometry::new(size, ways.max(1), line)
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn ways(&self) -> u64 {
        self.ways
    }

    pub fn line(&self) -> u64 {
        self.line
    }

    pub fn sets(&self) -> u64 {
        self.size / (self.ways * self.line)
    }
}

/// `32K`, where that is exact.
pub fn short_size(bytes: u64) -> String {
    for (shift, unit) in [(30, "G"), (20, "M"), (10, "K")] {
        if bytes > 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_that_there_are() {
        for (size, ways, line, sets) in [
            (32 << 10, 8, 64, 64),
            (48 << 10, 12, 64, 64),
            (1280 << 10, 10, 64, 2048),
            (64, 1, 64, 1),
            (4, 1, 4, 1),
            (192 << 20, 12, 128, 1 << 17),
        ] {
            assert_eq!(Geometry::new(size, ways, line).unwrap().sets(), sets);
        }
        let full = Geometry::fully_associative(96, 32).unwrap();
        assert_eq!((full.ways(), full.sets()), (3, 1));
    }

    #[test]
    fn caches_that_there_are_not() {
        for (size, ways, line, why) in [
            (0, 8, 64, "without bytes"),
            (1024, 0, 64, "without ways"),
            (1024, 1, 0, "without bytes in a line"),
            (1024, 1, 48, "48 is none"),
            (1024, 1, 2, "from 4"),
            (1024, 32, 64, "make it 2K or more"),
            (32 << 10, 7, 64, "make it 28K or 56K"),
            (33_000, 8, 64, "make it 32K or 64K"),
            (1 << 40, 8, 64, "too large"),
            (u64::MAX, u64::MAX, 64, "too large"),
        ] {
            let error = Geometry::new(size, ways, line).unwrap_err().to_string();
            assert!(error.contains(why), "{size},{ways},{line}: {error}");
        }
        assert!(Geometry::fully_associative(1024, 0).is_err());
        assert!(Geometry::fully_associative(10, 64).is_err());
    }

    #[test]
    fn sizes() {
        for (bytes, text) in [(0, "0"), (100, "100"), (1024, "1K"), (1280 << 10, "1280K"), (3 << 30, "3G")] {
            assert_eq!(short_size(bytes), text);
        }
    }
}
