//! One block: the times of calls that follow each other.

use refrain_model::time::Time;

use crate::{Block, CALLS, Damaged, Span, Told};

/// Takes the times of a thread's calls as they come.
#[derive(Debug, Clone)]
pub struct Packer {
    first: u64,
    calls: Vec<(u64, u16, Span)>,
}

impl Packer {
    /// `None` where times of single calls are not kept.
    pub fn new(time: &Time) -> Option<Packer> {
        time.of_every_call().then(|| Packer { first: 0, calls: Vec::new() })
    }

    /// The next call. A block that it fills.
    pub fn push(&mut self, signature: u64, function: u16, span: Span) -> Option<Block> {
        self.calls.push((signature, function, span));
        if self.calls.len() as u32 == CALLS { self.finish() } else { None }
    }

    /// What is left, if anything is.
    pub fn finish(&mut self) -> Option<Block> {
        if self.calls.is_empty() {
            return None;
        }
        let mut bytes = Vec::new();
        let mut before = 0i64;
        for &(_, _, span) in &self.calls {
            put(&mut bytes, span.start.wrapping_sub(before));
            put(&mut bytes, span.end.wrapping_sub(span.start));
            before = span.end;
        }
        let block = Block { first: self.first, calls: self.calls.len() as u32, bytes };
        self.first += u64::from(block.calls);
        self.calls.clear();
        Some(block)
    }
}

/// Gives the times of a block's calls again.
#[derive(Debug, Clone)]
pub struct Unpacker {
    bytes: Vec<u8>,
    at: usize,
    left: u32,
    before: i64,
}

impl Unpacker {
    /// `None` where times of single calls are not kept.
    pub fn new(time: &Time) -> Option<Unpacker> {
        time.of_every_call().then(|| Unpacker { bytes: Vec::new(), at: 0, left: 0, before: 0 })
    }

    /// Turns to a block.
    pub fn begin(&mut self, bytes: &[u8], calls: u32) -> Result<(), Damaged> {
        *self = Unpacker { bytes: bytes.to_vec(), at: 0, left: calls, before: 0 };
        Ok(())
    }

    /// Calls of the block that are still to come.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// The next call, which is of this signature and function.
    pub fn next(&mut self, _signature: u64, _function: u16) -> Result<Told, Damaged> {
        self.left = self.left.checked_sub(1).ok_or(Damaged)?;
        let start = self.before.wrapping_add(self.take()?);
        let end = start.wrapping_add(self.take()?);
        self.before = end;
        Ok(Told { span: Span { start, end }, start_error: 0, end_error: 0 })
    }

    fn take(&mut self) -> Result<i64, Damaged> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or(Damaged)?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(Damaged)
    }
}

fn put(bytes: &mut Vec<u8>, value: i64) {
    let mut value = (value << 1 ^ value >> 63) as u64;
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
