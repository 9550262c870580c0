//! Traces as lines of text.

mod din;
mod drmemtrace;
mod labels;
mod lackey;
mod perf;
mod xdin;

use crate::error::Fault;
use crate::input::Input;
use crate::{BATCH, Batch};

pub(crate) use din::{Decoder as DinDecoder, DineroEncoder, Encoder as DinEncoder};
pub(crate) use drmemtrace::Decoder as DrmemtraceDecoder;
pub(crate) use labels::Labels;
pub(crate) use lackey::{Decoder as LackeyDecoder, Encoder as LackeyEncoder};
pub(crate) use perf::Decoder as PerfDecoder;
pub(crate) use xdin::{Decoder as XdinDecoder, Encoder as XdinEncoder};

/// No line is longer, so that a file without any is no reason to read all of it.
const LONGEST_LINE: usize = 1 << 12;

/// By byte, the value of a hexadecimal digit, or `NO`.
const DIGITS: [u8; 256] = {
    let mut digits = [NO; 256];
    let mut i = 0;
    while i < 10 {
        digits[b'0' as usize + i] = i as u8;
        i += 1;
    }
    i = 0;
    while i < 6 {
        digits[b'a' as usize + i] = 10 + i as u8;
        digits[b'A' as usize + i] = 10 + i as u8;
        i += 1;
    }
    digits
};
const NO: u8 = 0xff;

/// Whole lines, and how far they are read. Reading stops at a line's end: there is always one.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    #[inline]
    fn peek(&self) -> u8 {
        self.bytes[self.at]
    }

    #[inline]
    fn blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t') {
            self.at += 1;
        }
    }

    /// A hexadecimal number of up to 64 bits.
    #[inline]
    fn hex(&mut self) -> Result<u64, &'static str> {
        if self.peek() == b'0' && self.bytes[self.at + 1] | 0x20 == b'x' {
            self.at += 2;
        }
        let (mut digits, mut value) = (0, 0u64);
        for byte in &self.bytes[self.at..] {
            let digit = DIGITS[usize::from(*byte)];
            if digit == NO {
                break;
            }
            if value >> 60 != 0 {
                return Err("a number has more than 64 bits");
            }
            value = value << 4 | u64::from(digit);
            digits += 1;
        }
        self.at += digits;
        if digits == 0 { Err("a number is missing") } else { Ok(value) }
    }

    /// The next column.
    #[inline]
    fn column(&mut self) -> Result<u64, &'static str> {
        let before = self.at;
        self.blanks();
        if self.at == before {
            return Err("two columns must be apart");
        }
        self.hex()
    }

    fn decimal(&mut self) -> Result<u64, &'static str> {
        let (first, mut value) = (self.at, 0u64);
        while self.peek().is_ascii_digit() {
            value = value.saturating_mul(10).saturating_add(u64::from(self.peek() - b'0'));
            self.at += 1;
        }
        if self.at == first { Err("a number is missing") } else { Ok(value) }
    }

    /// Nothing more on this line.
    #[inline]
    fn end(&mut self) -> Result<(), &'static str> {
        self.blanks();
        if self.peek() == b'\r' {
            self.at += 1;
        }
        if self.peek() != b'\n' {
            return Err("there is more on the line than the format has");
        }
        self.at += 1;
        Ok(())
    }

    /// The end of the line, whatever stands before it. Whether there is anything; it stands apart from what was read.
    #[inline]
    fn rest(&mut self) -> Result<bool, &'static str> {
        let before = self.at;
        self.blanks();
        let apart = self.at > before;
        if matches!(self.peek(), b'\r' | b'\n') {
            return self.end().map(|()| false);
        }
        if !apart {
            return Err("a number is followed by something that is none");
        }
        self.skip_line();
        Ok(true)
    }

    /// What stands on the line from here on, without its end. The line is read.
    fn line(&mut self) -> &[u8] {
        let from = self.at;
        self.skip_line();
        let line = &self.bytes[from..self.at - 1];
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    fn skip_line(&mut self) {
        while self.peek() != b'\n' {
            self.at += 1;
        }
        self.at += 1;
    }
}

/// Has `line` read lines, each with up to two references, until the batch is full or what is there was read.
fn lines(
    input: &mut Input,
    batch: &mut Batch,
    mut line: impl FnMut(&mut Cursor<'_>, &mut Batch) -> Result<(), &'static str>,
) -> Result<(), Fault> {
    batch.clear();
    loop {
        let bytes = input.bytes();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut cursor = Cursor { bytes: &bytes[..whole], at: 0 };
        let mut used = 0;
        let mut done = Ok(());
        while done.is_ok() && used < whole && batch.len() + 2 <= BATCH {
            done = line(&mut cursor, batch);
            if done.is_ok() {
                used = cursor.at;
            }
        }
        input.consume(used);
        done.map_err(|what| Fault::damaged(input.offset(), what))?;
        if !batch.is_empty() {
            return Ok(());
        }
        if input.len() > LONGEST_LINE {
            return Err(Fault::damaged(input.offset(), "a line has more than 4,096 bytes"));
        }
        if !input.more()? {
            return match input.len() {
                0 => Ok(()),
                _ => Err(Fault::damaged(input.offset(), "the last line has no end, it may be cut short")),
            };
        }
    }
}

/// A sentence with a count, if there is anything to count.
fn counted(notes: &mut Vec<String>, count: u64, one: &str, many: &str) {
    match count {
        0 => {}
        1 => notes.push(format!("one {one}")),
        count => notes.push(format!("{count} {many}")),
    }
}

/// Writes a hexadecimal number of at least so many digits, and says where it ends.
fn put_hex(value: u64, digits: usize, out: &mut [u8], at: usize) -> usize {
    let needed = (67 - value.leading_zeros() as usize) / 4;
    let digits = digits.max(needed);
    let out = &mut out[at..at + digits];
    for (i, digit) in out.iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(value.checked_shr(4 * i as u32).unwrap_or(0) & 15) as usize];
    }
    at + digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let hex = |text: &str| Cursor { bytes: text.as_bytes(), at: 0 }.hex();
        assert_eq!(hex("0\n"), Ok(0));
        assert_eq!(hex("00000000000000000000001f \n"), Ok(0x1f));
        assert_eq!(hex("0xFfFfFfFfFfFfFfFf\n"), Ok(u64::MAX));
        assert!(hex("10000000000000000\n").is_err());
        assert!(hex("g\n").is_err());
        assert!(hex("0x\n").is_err());
    }

    #[test]
    fn written_numbers() {
        let text = |value, digits| {
            let mut out = [0; 32];
            let end = put_hex(value, digits, &mut out, 0);
            String::from_utf8(out[..end].to_vec()).unwrap()
        };
        for value in [0, 1, 0xf, 0x10, 0x1234_5678, u64::MAX, 1 << 60] {
            assert_eq!(text(value, 1), format!("{value:x}"));
            assert_eq!(text(value, 8), format!("{value:08x}"));
        }
    }
}
