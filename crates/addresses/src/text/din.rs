//! Dinero's `din`, and what others added to its lines: kind, address, then an instruction word, a time (Green Stamp), or
//! size and flag (RATCHET I), all in hexadecimal. As DineroIV does, text behind kind and address is left out, if nothing was added.

use super::labels::{Labels, Seen};
use super::{Cursor, DIGITS, NO, lines, put_hex};
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
        if fields != Fields::NONE {
            return lines(input, batch, |cursor, batch| line(cursor, fields, seen, batch));
        }
        lines(input, batch, |cursor, batch| match quick(cursor, seen, batch) {
            true => Ok(()),
            false => line(cursor, fields, seen, batch),
        })
    }

    fn notes(&self) -> Vec<String> {
        self.seen.notes()
    }

    fn tell_caches(&mut self) {
        self.seen.tell_caches();
    }
}

/// A line of a kind, a blank and an address, as nearly all are. Any other is left as it is, for [`line`].
#[inline]
fn quick(cursor: &mut Cursor<'_>, seen: &mut Seen, batch: &mut Batch) -> bool {
    let [label @ b'0'..=b'7', b' ', rest @ ..] = &cursor.bytes[cursor.at..] else { return false };
    let (mut digits, mut address) = (0, 0u64);
    for byte in rest {
        let digit = DIGITS[usize::from(*byte)];
        if digit == NO {
            break;
        }
        address = address << 4 | u64::from(digit);
        digits += 1;
    }
    if !(1..=16).contains(&digits) || rest.get(digits) != Some(&b'\n') {
        return false;
    }
    let label = label - b'0';
    seen.count(label, false);
    batch.kinds.push(seen.kind_of(label));
    batch.addresses.push(address);
    cursor.at += digits + 3;
    true
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The quick way reads what the long way reads, or nothing.
    #[test]
    fn as_the_long_way() {
        let mut taken = 0;
        for (text, is_quick) in [
            ("0 0\n", true),
            ("7 ffffffffffffffff\n", true),
            ("4 7fFFab01\n5 1\n", true),
            ("2 0000000000000001\n", true),
            // Too many digits, though the number is small; too many for any number.
            ("2 00000000000000001\n", false),
            ("2 10000000000000000\n", false),
            ("1 0x10\n", false),
            ("1 10 text\n", false),
            ("1 10\r\n", false),
            ("1 10 \n", false),
            ("1\t10\n", false),
            ("1  10\n", false),
            (" 1 10\n", false),
            ("01 10\n", false),
            ("8 10\n", false),
            ("1 \n", false),
            ("1 x\n", false),
            ("\n", false),
        ] {
            for labels in [Labels::Papers, Labels::Dinero] {
                let read = |is_quick: bool| {
                    let (mut cursor, mut batch) = (Cursor { bytes: text.as_bytes(), at: 0 }, Batch::new());
                    let mut seen = Seen::new(labels);
                    let done = match is_quick {
                        true => quick(&mut cursor, &mut seen, &mut batch),
                        false => line(&mut cursor, Fields::NONE, &mut seen, &mut batch).is_ok(),
                    };
                    (done, batch, cursor.at, seen.notes())
                };
                let found = read(true);
                assert_eq!(found.0, is_quick, "{text:?}");
                match is_quick {
                    true => assert_eq!(found, read(false), "{text:?}"),
                    // Nothing is taken, and nothing is kept.
                    false => assert_eq!(found, (false, Batch::new(), 0, Vec::new()), "{text:?}"),
                }
                taken += usize::from(is_quick);
            }
        }
        assert_eq!(taken, 8);
    }
}
