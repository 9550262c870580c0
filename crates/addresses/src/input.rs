//! Bytes to decode, a block at a time.

use std::io::Read;

use crate::error::Fault;

const BLOCK: usize = 1 << 16;

/// Bytes after the last that may be read, though they mean nothing: decoders load words without looking where the
/// input ends.
pub(crate) const PADDING: usize = 64;

/// Eight bytes as a number.
#[inline(always)]
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub(crate) struct Input {
    from: Box<dyn Read + Send>,
    /// `start..end` is yet to be decoded; `PADDING` more bytes are always there.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Of `start`, from the beginning.
    offset: u64,
}

impl Input {
    pub(crate) fn new(from: Box<dyn Read + Send>) -> Input {
        Input::from(from, 0)
    }

    /// What is read begins so many bytes into the trace.
    pub(crate) fn from(from: Box<dyn Read + Send>, offset: u64) -> Input {
        Input { from, buffer: vec![0; BLOCK + PADDING], start: 0, end: 0, offset }
    }

    /// What is there, then the padding. Only the first [`Input::len`] bytes count.
    pub(crate) fn padded(&self) -> &[u8] {
        &self.buffer[self.start..self.end + PADDING]
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Of the first byte of [`Input::bytes`].
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn consume(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.len());
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Adds bytes to those that are there; false if there are no more.
    pub(crate) fn more(&mut self) -> Result<bool, Fault> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end + PADDING == self.buffer.len() {
            // One record, or line, fills all of it.
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        let room = self.buffer.len() - PADDING;
        loop {
            match self.from.read(&mut self.buffer[self.end..room]) {
                Ok(read) => {
                    self.end += read;
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::Read(self.offset + self.len() as u64, error)),
            }
        }
    }

    /// At least so many bytes, unless there are no more.
    pub(crate) fn at_least(&mut self, bytes: usize) -> Result<bool, Fault> {
        while self.len() < bytes {
            if !self.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a byte at a time.
    struct Slow(Vec<u8>);

    impl Read for Slow {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            match self.0.pop() {
                Some(byte) => {
                    into[0] = byte;
                    Ok(1)
                }
                None => Ok(0),
            }
        }
    }

    #[test]
    fn bytes_come_in_order_however_they_arrive() {
        let mut input = Input::new(Box::new(Slow((0..=255).rev().collect())));
        for i in 0..=255u8 {
            assert!(input.at_least(1).unwrap());
            assert_eq!((input.bytes()[0], input.offset()), (i, u64::from(i)));
            assert!(input.padded().len() > PADDING);
            input.consume(1);
        }
        assert!(!input.more().unwrap());
    }

    #[test]
    fn a_long_record_makes_room_for_itself() {
        let mut input = Input::new(Box::new(std::io::repeat(7).take(1 << 20)));
        assert!(input.at_least(1 << 20).unwrap());
        assert!(!input.at_least((1 << 20) + 1).unwrap());
        assert_eq!(input.len(), 1 << 20);
    }
}
