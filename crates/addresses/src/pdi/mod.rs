//! PDI: addresses as in PDATS, instruction words through a dictionary (Johnson, Ha and Zaidi, section 6), as published
//! for 32-bit addresses, and a variant for 64 bits. ADDRESSES.md has the bytes.

mod decode;
mod dictionary;
mod encode;

use std::io::Cursor;

use crate::KINDS;
use crate::compression::unpacked;
use crate::error::Fault;
use crate::input::Input;
use crate::pdats::{STEP, read_steps};

pub(crate) use decode::Decoder;
pub use dictionary::{Dictionary, WordCounts};
pub(crate) use encode::Encoder;

pub(crate) const MAGIC: [u8; 4] = *b"\x93PDI";
const CLASSIC: u8 = 1;
const WIDE: u8 = 2;

/// Bits 3 and 4 of a record's header byte: no word (it is 0), its place in the dictionary, the word itself.
const WORD_SHIFT: u32 = 3;
const LISTED: u8 = 1;
const WHOLE: u8 = 2;
const ADDRESS_SHIFT: u32 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub wide: bool,
    pub steps: [i16; KINDS],
}

/// The dictionary of a PDI trace, compressed or not; none if it is something else.
pub fn dictionary_of(bytes: &[u8]) -> Option<Dictionary> {
    let from = unpacked(Box::new(Cursor::new(bytes.to_vec()))).ok()?;
    Header::read(&mut Input::new(from)).ok().map(|(_, dictionary)| dictionary)
}

impl Header {
    pub(crate) fn classic() -> Header {
        Header { wide: false, steps: [STEP; KINDS] }
    }

    pub(crate) fn wide(steps: [i16; KINDS]) -> Header {
        Header { wide: true, steps }
    }

    pub(crate) fn read(input: &mut Input) -> Result<(Header, Dictionary), Fault> {
        let short = |input: &Input| Fault::damaged(input.offset(), "its header is cut short");
        if !input.at_least(8)? {
            return Err(short(input));
        }
        let bytes: [u8; 8] = input.bytes()[..8].try_into().unwrap();
        if bytes[..4] != MAGIC {
            return Err(Fault::damaged(0, "it does not begin with the mark 93 50 44 49"));
        }
        let wide = match bytes[4] {
            CLASSIC => false,
            WIDE => true,
            other => return Err(Fault::damaged(4, format!("version {other} is not known, only 1 and 2"))),
        };
        if bytes[5..] != [0; 3] {
            return Err(Fault::damaged(5, "its header has flags that are not known"));
        }
        input.consume(8);
        let mut header = Header { wide, ..Header::classic() };
        if wide {
            header.steps = read_steps(input)?.ok_or_else(|| short(input))?;
        }
        let mut dictionary = Dictionary::default();
        let size = 4 * dictionary.words.len();
        if !input.at_least(size)? {
            return Err(short(input));
        }
        for (word, bytes) in dictionary.words.iter_mut().zip(input.bytes().chunks_exact(4)) {
            *word = u32::from_le_bytes(bytes.try_into().unwrap());
        }
        input.consume(size);
        Ok((header, dictionary))
    }

    pub(crate) fn bytes(&self, dictionary: &Dictionary) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([if self.wide { WIDE } else { CLASSIC }, 0, 0, 0]);
        if self.wide {
            bytes.extend(self.steps.iter().flat_map(|step| step.to_le_bytes()));
        }
        bytes.extend(dictionary.bytes());
        bytes
    }
}
