//! DineroIV's extended form, `-informat D`: a letter, the address and the size, both in hexadecimal; the rest of the line is text.
//! The letters are `r`, `w`, `i` (a fetch), `m` (miscellaneous), `c` (copy a line back) and `v` (invalidate one).

use super::labels::{Labels, Seen, unfit};
use super::{Cursor, lines, put_hex};
use crate::error::Fault;
use crate::input::Input;
use crate::kind::ESCAPE;
use crate::output::Output;
use crate::reader::Decode;
use crate::writer::{Encode, Unfit};
use crate::{Batch, Fields, Reference};

const SIZES: Fields = Fields { sizes: true, ..Fields::NONE };

/// The letters, in the order of DineroIV's numbers.
const LETTERS: &[u8; 6] = b"rwimcv";

/// Letter, address, size, end.
const LONGEST: usize = 2 + 17 + 4 + 1;

pub(crate) struct Decoder(Seen);

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder(Seen::new(Labels::Dinero))
    }
}

impl Decode for Decoder {
    fn fields(&self) -> Fields {
        SIZES
    }

    fn decode(&mut self, input: &mut Input, batch: &mut Batch) -> Result<(), Fault> {
        let seen = &mut self.0;
        lines(input, batch, |cursor, batch| line(cursor, seen, batch))
    }

    fn notes(&self) -> Vec<String> {
        self.0.notes()
    }

    fn tell_caches(&mut self) {
        self.0.tell_caches();
    }
}

fn line(cursor: &mut Cursor<'_>, seen: &mut Seen, batch: &mut Batch) -> Result<(), &'static str> {
    cursor.blanks();
    let letter = cursor.peek();
    if matches!(letter, b'\r' | b'\n') {
        return cursor.end();
    }
    let label = LETTERS.iter().position(|known| *known == letter | 0x20);
    let label = label.ok_or("a line begins with r, w, i, m, c or v")? as u8;
    cursor.at += 1;
    let address = cursor.column()?;
    let size = u16::try_from(cursor.column()?).map_err(|_| "a size is more than 65,535")?;
    let text = cursor.rest()?;
    seen.count(label, text);
    batch.push(SIZES, Reference { kind: seen.kind_of(label), address, size, ..Reference::default() });
    Ok(())
}

pub(crate) struct Encoder;

impl Encode for Encoder {
    fn encode(&mut self, batch: &Batch, out: &mut Output) -> Result<(), Unfit> {
        let room = out.room(batch.len() * LONGEST);
        let mut at = 0;
        let mut done = Ok(());
        for (i, kind) in batch.kinds.iter().enumerate() {
            if *kind > ESCAPE {
                done = Err((i, unfit(*kind).into()));
                break;
            }
            room[at] = LETTERS[usize::from(*kind)];
            room[at + 1] = b' ';
            at = put_hex(batch.addresses[i], 1, room, at + 2);
            room[at] = b' ';
            at = put_hex(u64::from(batch.sizes[i]), 1, room, at + 1);
            room[at] = b'\n';
            at += 1;
        }
        out.advance(at);
        done
    }
}
