//! References and words to records.

use super::dictionary::Index;
use super::{ADDRESS_SHIFT, Dictionary, Header, LISTED, WHOLE, WORD_SHIFT};
use crate::kind::is_fetch;
use crate::output::Output;
use crate::pdats::{ESCAPE, NARROW, end, width};
use crate::writer::{Encode, Unfit};
use crate::{Batch, KINDS};

/// Header, escaped address, word; and a word's room to store in.
const LONGEST: usize = 1 + 12 + 4 + 8;

pub(crate) struct Encoder {
    header: Header,
    /// What stands before the first record, until it is written.
    opening: Option<Vec<u8>>,
    index: Index,
    last: [u64; KINDS],
    count: u64,
}

impl Encoder {
    pub(crate) fn new(header: Header, dictionary: &Dictionary) -> Encoder {
        let opening = Some(header.bytes(dictionary));
        Encoder { header, opening, index: Index::new(dictionary), last: [0; KINDS], count: 0 }
    }

    fn begin(&mut self, out: &mut Output) {
        if let Some(opening) = self.opening.take() {
            out.put(&opening);
        }
    }

    fn all(&mut self, batch: &Batch, out: &mut [u8]) -> (usize, Result<(), Unfit>) {
        let mut at = 0;
        for i in 0..batch.len() {
            let (kind, address, word) = (batch.kinds[i], batch.addresses[i], batch.words[i]);
            if usize::from(kind) >= KINDS {
                return (at, Err((i, format!("kinds are 0 to 7, not {kind}").into())));
            }
            if !self.header.wide && address > u64::from(u32::MAX) {
                let what = format!("address {address:x} has more than 32 bits; pdi64 keeps it");
                return (at, Err((i, what.into())));
            }
            let before = &mut self.last[usize::from(kind)];
            let mut offset = address.wrapping_sub(*before) as i64;
            if !self.header.wide {
                offset = i64::from(offset as i32);
            }
            *before = address;
            self.count += 1;
            at += self.record(kind, offset, word, &mut out[at..at + LONGEST]);
        }
        (at, Ok(()))
    }

    fn record(&self, kind: u8, offset: i64, word: u32, out: &mut [u8]) -> usize {
        let exact = offset == i64::from(self.header.steps[usize::from(kind)]);
        let wide = if exact { 0 } else { width(offset) };
        let (code, bytes) = NARROW[wide];
        let mut head = kind | code << ADDRESS_SHIFT;
        out[1..9].copy_from_slice(&offset.to_le_bytes());
        let mut to = 1 + usize::from(bytes);
        if self.header.wide && bytes == 4 && (wide > 4 || offset == ESCAPE) {
            out[1..5].copy_from_slice(&(ESCAPE as i32).to_le_bytes());
            out[5..13].copy_from_slice(&offset.to_le_bytes());
            to += 8;
        }
        if is_fetch(kind) || word != 0 {
            let listed = self.index.find(word);
            out[to..to + 4].copy_from_slice(&listed.map_or(word, u32::from).to_le_bytes());
            let (code, bytes) = if listed.is_some() { (LISTED, 1) } else { (WHOLE, 4) };
            head |= code << WORD_SHIFT;
            to += bytes;
        }
        out[0] = head;
        to
    }
}

impl Encode for Encoder {
    fn encode(&mut self, batch: &Batch, out: &mut Output) -> Result<(), Unfit> {
        self.begin(out);
        let (bytes, done) = self.all(batch, out.room(batch.len() * LONGEST));
        out.advance(bytes);
        done
    }

    fn finish(&mut self, out: &mut Output) {
        self.begin(out);
        if self.header.wide {
            out.put(&end(self.count));
        }
    }
}
