//! When calls began and ended: the log that a thread writes while its program runs, and the chunks that it becomes.
//!
//! The log is a file beside the part of its thread: for each call its symbol (the tape's number), how many ticks after the
//! end of the call before it began, and how many it took; before these, what it returned, if it asked a clock of MPI. It is
//! read by the build that wrote it.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, Write};

use refrain_fold::pack::{Kind, number};
use refrain_times::{Block, Packer, Span};

use crate::chunks::{Key, Writer};

/// No entry is longer.
pub const ENTRY: usize = 34;

/// What stands before a result; before a call, its symbol plus [`FIRST_SYMBOL`]. Memory that was never written is neither.
const RESULT: u64 = 1;
const FIRST_SYMBOL: u64 = 2;

/// What the log of that part is called.
pub fn log_name(part: &OsStr) -> OsString {
    let mut name = part.to_owned();
    name.push(".spans");
    name
}

/// Whether a file is called like the log of a part.
pub(crate) fn is_log(name: &OsStr) -> bool {
    name.as_encoded_bytes().ends_with(b".part.spans")
}

/// Writes entries: remembers when the last call ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Log {
    before: u64,
}

impl Log {
    /// Writes a call to the front of `to`, which has room for an [`ENTRY`], and says how many bytes it took.
    #[inline]
    pub fn write(&mut self, to: &mut [u8], call: Entry) -> usize {
        let Entry { symbol, start, end, result } = call;
        let mut at = 0;
        if let Some(result) = result {
            to[0] = RESULT as u8;
            to[1..9].copy_from_slice(&result.to_le_bytes());
            at = 9;
        }
        // Most often no more than a few thousand ticks lie between them.
        let gap = start.wrapping_sub(self.before) as i64;
        for mut value in
            [u64::from(symbol) + FIRST_SYMBOL, (gap << 1 ^ gap >> 63) as u64, end.wrapping_sub(start)]
        {
            while value >= 0x80 {
                to[at] = value as u8 | 0x80;
                at += 1;
                value >>= 7;
            }
            to[at] = value as u8;
            at += 1;
        }
        self.before = end;
        at
    }
}

/// A call of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub symbol: u32,
    /// In ticks.
    pub start: u64,
    pub end: u64,
    /// The `double` that it returned, by its bits, where it asked a clock of MPI and that is kept.
    pub result: Option<u64>,
}

/// The entries of a log, up to its end or to where it makes no sense.
#[derive(Debug)]
pub struct Entries<R> {
    from: io::Bytes<R>,
    before: u64,
}

impl<R: BufRead> Entries<R> {
    /// Of a log, or of so much of it as counts.
    pub fn new(from: R) -> Entries<R> {
        Entries { from: from.bytes(), before: 0 }
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.from.next()?.ok()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

impl<R: BufRead> Iterator for Entries<R> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let mut mark = self.number()?;
        let mut result = None;
        if mark == RESULT {
            let mut bytes = [0; 8];
            for byte in &mut bytes {
                *byte = self.from.next()?.ok()?;
            }
            result = Some(u64::from_le_bytes(bytes));
            mark = self.number()?;
        }
        let symbol = u32::try_from(mark.checked_sub(FIRST_SYMBOL)?).ok()?;
        let gap = self.number()?;
        let gap = (gap >> 1) as i64 ^ -((gap & 1) as i64);
        let start = self.before.wrapping_add(gap as u64);
        let end = start.wrapping_add(self.number()?);
        self.before = end;
        Some(Entry { symbol, start, end, result })
    }
}

/// Packs the log of a thread into chunks of stream `key`. `about` says by symbol what its calls are, their signature and
/// function, and `nanoseconds` what ticks are. Says how many calls it were.
pub fn pack<W: Write>(
    writer: &mut Writer<W>,
    key: Key,
    packer: &mut Packer,
    entries: impl Iterator<Item = Entry>,
    about: &[Option<(u64, u16)>],
    nanoseconds: impl Fn(u64) -> i64,
) -> io::Result<u64> {
    let mut calls = 0;
    let each = packer.numbers();
    let mut put = |block: Block| {
        let numbers = (u64::from(each) * block.first, each * block.calls);
        writer.put_packed((key, Kind::TIME), number::SPANS, numbers, &block.bytes)
    };
    for Entry { symbol, start, end, result } in entries {
        let Some(&Some((signature, function))) = about.get(symbol as usize) else { break };
        let span = Span { start: nanoseconds(start), end: nanoseconds(end) };
        if let Some(block) = packer.push(signature, function, span, result.unwrap_or(0)) {
            put(block)?;
        }
        calls += 1;
    }
    packer.finish().map_or(Ok(()), put)?;
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gives_back_its_calls() {
        let calls = [
            (0, 5, 9, None),
            (300, 9, 9, Some(0)),
            (0, 7, 8, None),
            (u32::MAX, u64::MAX, 3, Some(u64::MAX)),
            (1, 0, u64::MAX, None),
        ];
        let calls = calls.map(|(symbol, start, end, result)| Entry { symbol, start, end, result });
        let (mut bytes, mut log, mut at) = (vec![0; ENTRY * calls.len()], Log::default(), 0);
        for call in calls {
            let written = log.write(&mut bytes[at..], call);
            assert!(written <= ENTRY);
            at += written;
        }
        let back: Vec<_> = Entries::new(&bytes[..at]).collect();
        assert_eq!(back, calls);
        // Cut in the middle of an entry.
        assert_eq!(Entries::new(&bytes[..at - 1]).count(), calls.len() - 1);
        assert_eq!(Entries::new(&[0; 100][..]).count(), 0);
    }
}
