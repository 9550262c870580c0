//! The bytes of a symbol: varints and the one-byte tags that say what stands for a parameter.

/// Not significant on this rank, or not written by the call.
pub(crate) const ABSENT: u8 = 0;
/// The number(s) are in lanes.
pub(crate) const LANE: u8 = 1;
/// The program passed a null pointer.
pub(crate) const NULL: u8 = 2;
/// One of MPI's constants; its number follows.
pub(crate) const NAMED: u8 = 3;
/// An address, and addresses are not kept.
pub(crate) const UNKEPT: u8 = 4;
/// Text follows.
pub(crate) const TEXT: u8 = 5;
/// Text in lanes: its length in one, then a lane for each place in it. How many places there are follows.
pub(crate) const TEXT_IN_LANES: u8 = 6;
/// Statuses, in lanes: which fields of one are defined stands first, and the others are not there.
pub(crate) const STATUS: u8 = 7;
/// An address in area `tag - AREA`.
pub(crate) const AREA: u8 = 8;
/// As [`STATUS`], of statuses that the program ignores: what receives from any source or with any tag matched.
pub(crate) const IGNORED: u8 = 16;

/// What follows a new communicator's tag.
pub(crate) const GROUP_NONE: u8 = 0;
pub(crate) const GROUP_SAME: u8 = 1;
pub(crate) const GROUP_LIST: u8 = 2;
pub(crate) const GROUP_INTER: u8 = 3;

/// The outcome byte: how the call ended, and whether the values stand in the symbol.
pub(crate) const SUCCESS: u8 = 0;
pub(crate) const FAILED: u8 = 1;
pub(crate) const FAILED_WITH_STATUSES: u8 = 2;
pub(crate) const OUTCOME: u8 = 3;
pub(crate) const INLINE: u8 = 4;

/// Constants that appear inside a lane (`MPI_ANY_SOURCE` in an array of ranks) are numbers no rank or tag can be.
const NAMED_BASE: i64 = i64::MIN;

pub(crate) fn named_value(constant: u16) -> i64 {
    NAMED_BASE + i64::from(constant)
}

pub(crate) fn as_named(value: i64) -> Option<u16> {
    u16::try_from(value.wrapping_sub(NAMED_BASE)).ok()
}

pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Where the outcome byte stands: after the function's number.
pub(crate) fn outcome_at(symbol: &[u8]) -> usize {
    symbol.iter().position(|b| b & 0x80 == 0).map_or(0, |p| p + 1)
}

/// Reads a symbol; `None` where it ends early or a varint is too long.
pub(crate) struct Bytes<'a> {
    bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Bytes { bytes, at: 0 }
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let b = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(b)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.bytes.get(self.at..)?.first_chunk::<N>()?;
        self.at += N;
        Some(*bytes)
    }

    pub(crate) fn get(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let b = self.byte()?;
            let bits = u64::from(b & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if b & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let n = usize::try_from(self.get()?).ok()?;
        let end = self.at.checked_add(n)?;
        let text = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(text)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for v in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, v);
            let mut bytes = Bytes::new(&out);
            assert_eq!(bytes.get(), Some(v));
            assert!(bytes.is_empty());
        }
        for v in [0, -1, 1, i64::MIN, i64::MAX, -32766] {
            assert_eq!(unzigzag(zigzag(v)), v);
        }
    }

    #[test]
    fn named_values_are_apart_from_ranks() {
        assert_eq!(as_named(named_value(17)), Some(17));
        for v in [0, -1, 5, i64::from(i32::MIN), i64::MAX] {
            assert_eq!(as_named(v), None);
        }
    }
}
