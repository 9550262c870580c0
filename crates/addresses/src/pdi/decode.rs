//! Records to references and words.

use super::{ADDRESS_SHIFT, Dictionary, Header, LISTED, WHOLE, WORD_SHIFT};
use crate::error::Fault;
use crate::input::{Input, word};
use crate::pdats::{END, END_SIZE, ESCAPE, Stop};
use crate::reader::Decode;
use crate::{BATCH, Batch, Fields, KINDS};

pub(crate) struct Decoder {
    header: Header,
    dictionary: Dictionary,
    last: [u64; KINDS],
    count: u64,
    ended: bool,
}

impl Decoder {
    pub(crate) fn new(header: Header, dictionary: Dictionary) -> Decoder {
        Decoder { header, dictionary, last: [0; KINDS], count: 0, ended: false }
    }

    /// As in PDATS: `len` of the bytes count; how many were used, and how many references there are now.
    fn all(&mut self, bytes: &[u8], len: usize, batch: &mut Batch, mut n: usize) -> (usize, usize, Stop) {
        let kinds = &mut batch.kinds[..BATCH];
        let addresses = &mut batch.addresses[..BATCH];
        let words = &mut batch.words[..BATCH];
        let limit = if self.header.wide { u64::MAX } else { u64::from(u32::MAX) };
        let mut at = 0;
        let stop = loop {
            if n == BATCH {
                break Stop::Full;
            }
            if at >= len {
                break Stop::Short;
            }
            let head = bytes[at];
            if head == END[0] && self.header.wide {
                break if at + END_SIZE > len { Stop::Short } else { Stop::End };
            }
            if head & END[0] != 0 {
                break Stop::Unknown;
            }
            let kind = head & 7;
            let mut from = at + 1;
            let next = word(bytes, from) as i64;
            let (mut offset, size) = match (head >> ADDRESS_SHIFT) & 3 {
                0 => (i64::from(self.header.steps[usize::from(kind)]), 0),
                1 => (i64::from(next as i8), 1),
                2 => (i64::from(next as i16), 2),
                _ => (i64::from(next as i32), 4),
            };
            from += size;
            if self.header.wide && size == 4 && offset == ESCAPE {
                offset = word(bytes, from) as i64;
                from += 8;
            }
            let next = word(bytes, from) as u32;
            let (word, size) = match (head >> WORD_SHIFT) & 3 {
                0 => (0, 0),
                LISTED => (self.dictionary.words[next as usize % 256], 1),
                WHOLE => (next, 4),
                _ => break Stop::Unknown,
            };
            from += size;
            if from > len {
                break Stop::Short;
            }
            let address = &mut self.last[usize::from(kind)];
            *address = address.wrapping_add(offset as u64) & limit;
            kinds[n] = kind;
            addresses[n] = *address;
            words[n] = word;
            n += 1;
            at = from;
        };
        (at, n, stop)
    }
}

impl Decode for Decoder {
    fn fields(&self) -> Fields {
        Fields { words: true, ..Fields::NONE }
    }

    fn decode(&mut self, input: &mut Input, batch: &mut Batch) -> Result<(), Fault> {
        if self.ended {
            batch.clear();
            return Ok(());
        }
        batch.resize(self.fields(), BATCH);
        let mut n = 0;
        let done = loop {
            let (used, now, stop) = self.all(input.padded(), input.len(), batch, n);
            self.count = self.count.saturating_add((now - n) as u64);
            n = now;
            input.consume(used);
            self.ended = stop == Stop::End;
            if let Some(done) = stop.settle(input, self.header.wide, self.count) {
                break done;
            }
        };
        batch.truncate(n);
        done
    }
}
