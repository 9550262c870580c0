//! Dinero's `din`, and what others added to its lines: kind, address, then an instruction word, a time (Green Stamp), or
//! size and flag (RATCHET I), all in hexadecimal. As DineroIV does, text behind kind and address is left out, if nothing was added.

use super::labels::{Labels, Seen};
use super::{Cursor, lines, put_hex};
use crate::error::Fault;
use crate::input::Input;
use crate::kind::ESCAPE;
use crate::output::Output;
use crate::reader::Decode;
use crate::writer::{Encode, Unfit};
use crate::{Batch, Fields, KINDS, Reference};

/// Kind, address, and the widest of the others, each with what separates it.
const LONGEST: usize = 2 + 17 + 17 + 17;

pub(crate) struct Decoder {
    fields: Fields,
    seen: Seen,
}

impl Decoder {
    pub(crate) fn new(fields: Fields, labels: Labels) -> Decoder {
        Decoder { fields, seen: Seen::new(labels) }
    }
}

impl Decode for Decoder {
    fn fields(&self) -> Fields {
        self.fields
    }

    fn decode(&mut self, input: &mut Input, batch: &mut Batch) -> Result<(), Fault> {
        let (fields, seen) = (self.fields, &mut self.seen);
        lines(input, batch, |cursor, batch| line(cursor, fields, seen, batch))
    }

    fn notes(&self) -> Vec<String> {
        self.seen.notes()
    }

    fn tell_caches(&mut self) {
        self.seen.tell_caches();
    }
}

fn line(
    cursor: &mut Cursor<'_>,
    fields: Fields,
    seen: &mut Seen,
    batch: &mut Batch,
) -> Result<(), &'static str> {
    cursor.blanks();
    if matches!(cursor.peek(), b'\r' | b'\n') {
        return cursor.end();
    }
    let kind = cursor.hex()?;
    if kind >= KINDS as u64 {
        return Err("kinds are 0 to 7");
    }
    let label = kind as u8;
    let mut reference =
        Reference { kind: seen.kind_of(label), address: cursor.column()?, ..Reference::default() };
    if fields.words {
        let word = cursor.column()?;
        reference.word = u32::try_from(word).map_err(|_| "an instruction word has more than 32 bits")?;
    }
    if fields.times {
        reference.time = cursor.column()?;
    }
    if fields.sizes {
        reference.size = u16::try_from(cursor.column()?).map_err(|_| "a size is more than 65,535")?;
        reference.flag = match cursor.column()? {
            0 => false,
            1 => true,
            _ => return Err("a flag is 0 or 1"),
        };
    }
    let text = match fields {
        Fields::NONE => cursor.rest()?,
        _ => cursor.end().map(|()| false)?,
    };
    seen.count(label, text);
    batch.push(fields, reference);
    Ok(())
}

/// A number and a blank after it.
fn column(value: u64, digits: usize, out: &mut [u8], at: usize) -> usize {
    let at = put_hex(value, digits, out, at);
    out[at] = b' ';
    at + 1
}

pub(crate) struct Encoder {
    fields: Fields,
}

impl Encoder {
    pub(crate) fn new(fields: Fields) -> Encoder {
        Encoder { fields }
    }
}

/// Labels from 4 on mean something else to DineroIV.
pub(crate) struct DineroEncoder(Encoder);

impl DineroEncoder {
    pub(crate) fn new() -> DineroEncoder {
        DineroEncoder(Encoder::new(Fields::NONE))
    }
}

impl Encode for DineroEncoder {
    fn encode(&mut self, batch: &Batch, out: &mut Output) -> Result<(), Unfit> {
        let Some(at) = batch.kinds.iter().position(|kind| *kind > ESCAPE) else {
            return self.0.encode(batch, out);
        };
        let mut before = batch.clone();
        before.truncate(at);
        self.0.encode(&before, out)?;
        Err((at, super::labels::unfit(batch.kinds[at]).into()))
    }
}

impl Encode for Encoder {
    fn encode(&mut self, batch: &Batch, out: &mut Output) -> Result<(), Unfit> {
        let room = out.room(batch.len() * LONGEST);
        let mut at = 0;
        for i in 0..batch.len() {
            at = column(u64::from(batch.kinds[i]), 1, room, at);
            at = column(batch.addresses[i], 1, room, at);
            if self.fields.words {
                at = column(u64::from(batch.words[i]), 1, room, at);
            }
            if self.fields.times {
                at = column(batch.times[i], 1, room, at);
            }
            if self.fields.sizes {
                // Two digits, so that a line has the length that the paper's Table 4 gives.
                at = column(u64::from(batch.sizes[i]), 2, room, at);
                at = column(u64::from(batch.flags[i]), 1, room, at);
            }
            room[at - 1] = b'\n';
        }
        out.advance(at);
        Ok(())
    }
}
