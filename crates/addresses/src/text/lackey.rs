//! What Valgrind's lackey prints with `--trace-mem=yes`: `I  04001090,3` is a fetch of three bytes, ` L`, ` S` and ` M`
//! are a load, a store and one after the other of the same place. Lines of Valgrind's own begin with `==`.

use super::{Cursor, lines, put_hex};
use crate::error::Fault;
use crate::input::Input;
use crate::kind::{FETCH, NAMES, READ, WRITE};
use crate::output::Output;
use crate::reader::Decode;
use crate::writer::{Encode, Unfit};
use crate::{Batch, Fields, Reference};

const SIZES: Fields = Fields { sizes: true, ..Fields::NONE };

/// Letter, address, comma, size, end.
const LONGEST: usize = 3 + 16 + 1 + 5 + 1;

pub(crate) struct Decoder;

impl Decode for Decoder {
    fn fields(&self) -> Fields {
        SIZES
    }

    fn decode(&mut self, input: &mut Input, batch: &mut Batch) -> Result<(), Fault> {
        lines(input, batch, line)
    }
}

fn line(cursor: &mut Cursor<'_>, batch: &mut Batch) -> Result<(), &'static str> {
    if cursor.peek() == b'=' {
        cursor.skip_line();
        return Ok(());
    }
    cursor.blanks();
    let kinds: &[u8] = match cursor.peek() {
        b'I' => &[FETCH],
        b'L' => &[READ],
        b'S' => &[WRITE],
        b'M' => &[READ, WRITE],
        b'\r' | b'\n' => return cursor.end(),
        _ => return Err("a line begins with I, L, S or M"),
    };
    cursor.at += 1;
    let address = cursor.column()?;
    if cursor.peek() != b',' {
        return Err("a comma and a size follow the address");
    }
    cursor.at += 1;
    let size = u16::try_from(cursor.decimal()?).map_err(|_| "a size is more than 65,535")?;
    cursor.end()?;
    for kind in kinds {
        batch.push(SIZES, Reference { kind: *kind, address, size, ..Reference::default() });
    }
    Ok(())
}

pub(crate) struct Encoder;

impl Encode for Encoder {
    fn encode(&mut self, batch: &Batch, out: &mut Output) -> Result<(), Unfit> {
        let room = out.room(batch.len() * LONGEST);
        let mut at = 0;
        let mut done = Ok(());
        for (i, kind) in batch.kinds.iter().enumerate() {
            let letter = match *kind {
                FETCH => b"I  ",
                READ => b" L ",
                WRITE => b" S ",
                other => {
                    let name = NAMES.get(usize::from(other)).unwrap_or(&"unknown");
                    done = Err((
                        i,
                        format!("lackey knows reads, writes and fetches, not kind {other} ({name})").into(),
                    ));
                    break;
                }
            };
            room[at..at + 3].copy_from_slice(letter);
            at = put_hex(batch.addresses[i], 8, room, at + 3);
            room[at] = b',';
            at = put_decimal(batch.sizes[i], room, at + 1);
            room[at] = b'\n';
            at += 1;
        }
        out.advance(at);
        done
    }
}

fn put_decimal(value: u16, out: &mut [u8], at: usize) -> usize {
    let digits = value.checked_ilog10().map_or(1, |log| log as usize + 1);
    let mut left = value;
    for digit in out[at..at + digits].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    at + digits
}
