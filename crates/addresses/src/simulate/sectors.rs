//! Lines in sectors (sub-blocks): which of them are there, and which were written to.

use refrain_fold::FastMap;

/// More sectors than these a line cannot have: each is a bit.
pub(super) const MOST: u64 = 64;

#[derive(Debug)]
pub(super) struct Sectors {
    /// Bytes of one, and of a line, as powers of two.
    shift: u32,
    line: u32,
    /// By line: those that are there, and of these the dirty ones.
    lines: FastMap<u64, (u64, u64)>,
}

impl Sectors {
    pub(super) fn new(bytes: u64, line: u64) -> Sectors {
        Sectors { shift: bytes.trailing_zeros(), line: line.trailing_zeros(), lines: FastMap::default() }
    }

    /// Bytes of one.
    pub(super) fn bytes(&self) -> u64 {
        1 << self.shift
    }

    /// The sectors of some bytes of one line.
    fn span(&self, address: u64, bytes: u64) -> u64 {
        let offset = address & ((1 << self.line) - 1);
        let (first, last) = (offset >> self.shift, (offset + bytes.max(1) - 1) >> self.shift);
        (u64::MAX >> (63 - (last - first))) << first
    }

    /// Those of them that are not there.
    pub(super) fn missing(&self, line: u64, address: u64, bytes: u64) -> u64 {
        let (there, _) = self.lines.get(&line).copied().unwrap_or_default();
        self.span(address, bytes) & !there
    }

    /// They came, and were written to or not. Whether others of the line were there.
    pub(super) fn fill(&mut self, line: u64, address: u64, bytes: u64, dirty: bool) -> bool {
        let span = self.span(address, bytes);
        let known = self.lines.contains_key(&line);
        let (there, soiled) = self.lines.entry(line).or_default();
        *there |= span;
        *soiled |= if dirty { span } else { 0 };
        known
    }

    /// None of them is dirty any more; where those began that were.
    pub(super) fn clean(&mut self, line: u64) -> Vec<u64> {
        let soiled = self.lines.get_mut(&line).map_or(0, |(_, soiled)| std::mem::take(soiled));
        offsets(soiled, self.bytes())
    }

    /// The line left; where its dirty sectors begin, counted from its own first byte.
    pub(super) fn remove(&mut self, line: u64) -> Vec<u64> {
        let (_, soiled) = self.lines.remove(&line).unwrap_or_default();
        offsets(soiled, self.bytes())
    }
}

/// Where the sectors of a set of bits begin.
pub(super) fn offsets(bits: u64, bytes: u64) -> Vec<u64> {
    (0..MOST).filter(|n| bits >> n & 1 == 1).map(|n| n * bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Lines of 64 in four sectors of 16. Bytes 1e to 21 are in the second and the third.
        let mut sectors = Sectors::new(16, 64);
        assert_eq!(sectors.missing(4, 0x11e, 4), 0b0110);
        assert!(!sectors.fill(4, 0x11e, 4, false));
        assert_eq!(sectors.missing(4, 0x100, 64), 0b1001);
        assert!(sectors.fill(4, 0x130, 1, true));
        assert_eq!(sectors.missing(4, 0x100, 64), 0b0001);
        // Only the last is dirty, and it begins at 30.
        assert_eq!(sectors.remove(4), [0x30]);
        assert_eq!(sectors.missing(4, 0x100, 64), 0b1111);
        // One sector for all, and the most.
        assert_eq!(Sectors::new(64, 64).missing(0, 0, 64), 1);
        assert_eq!(Sectors::new(4, 256).missing(0, 0, 256), u64::MAX);
    }
}
