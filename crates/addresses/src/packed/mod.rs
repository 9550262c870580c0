//! Refrain's own packed form: references guessed from those before them, in blocks that are checked one by one, with an
//! index at the end. What is left of them goes into columns that zstd packs, or, where it is to be small rather than soon
//! done, into binary decisions. ADDRESSES.md has the bytes.

pub(crate) mod columns;
mod decode;
mod encode;
pub(crate) mod finder;
mod index;
mod mixed;
pub(crate) mod model;
mod sorted;
pub(crate) mod streams;
mod tables;

use std::ops::RangeInclusive;

use crate::Fields;
use crate::error::Fault;
use crate::input::Input;

pub(crate) use decode::Decoder;
pub(crate) use encode::Encoder;
pub use index::open_after;

pub(crate) const MAGIC: [u8; 4] = *b"\x93RFA";
const VERSION: u8 = 3;
const HEADER: usize = 8;

/// A block's tag, count of references, length, checksum.
const BLOCK_HEADER: usize = 12;
const TAG_END: u8 = 0;
const TAG_BLOCK: u8 = 1;
/// Nothing from before it is needed to read it.
const TAG_FIRST: u8 = 2;

/// References in a block at most, and of those at most that are not [`THIN`].
const MOST: u32 = 1 << 20;
pub(crate) const MOST_THICK: u32 = 1 << 17;
/// More bytes than this no reference takes.
const MOST_BYTES: u64 = 256;
/// A block with less than a byte for so many references, as far as can be said before it is packed, goes on: its header would be a
/// large part of it.
const THIN: u32 = 16;

/// As many references as 2 to the power of this may come again.
const PAST: u32 = 22;

/// An entry of the index, and what follows the entries.
const ENTRY: usize = 16;
const FOOTER: usize = 20;
const END_MARK: [u8; 4] = *b"AFR\x93";

/// How a packed trace is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Division {
    /// References in a block: what is lost when one byte is. Where next to nothing must be told of them it has more.
    pub block: u32,
    /// From one place where reading can begin to the next, so many times the references of a block. What was learned is
    /// forgotten there.
    pub group: u32,
}

impl Default for Division {
    /// Sixteen million references a group: a second or so from any place in the middle, and long enough that what comes
    /// again every million is learned once and not four times. Blocks of half the size would take one to three hundredths
    /// more bytes.
    fn default() -> Division {
        Division { block: 1 << 16, group: 256 }
    }
}

/// Bytes that a block of so many references has at most, by those that one reference has at most.
fn most_bytes(references: u32, each: u64) -> u64 {
    u64::from(references.min(MOST_THICK)) * each + u64::from(MOST / THIN)
}

fn bits(fields: Fields) -> u8 {
    let Fields { times, words, sizes, flags, pcs } = fields;
    [times, words, sizes, flags, pcs].iter().rev().fold(0, |bits, there| bits << 1 | u8::from(*there))
}

/// How what is left of references is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Columns,
    /// With tables of 2^so many entries.
    Mixed(u8),
}

/// What a writer may choose of these, and a reader has room for.
const TABLE_BITS: RangeInclusive<u8> = 12..=20;

/// From this level on a trace is mixed; the tables are larger with each.
const MIXED_LEVEL: u32 = 10;

impl Way {
    fn of_level(level: Option<u32>) -> Way {
        match level.unwrap_or(0).min(19).checked_sub(MIXED_LEVEL) {
            None => Way::Columns,
            Some(above) => Way::Mixed(16 + (above / 3) as u8),
        }
    }

    fn byte(self) -> u8 {
        match self {
            Way::Columns => 0,
            Way::Mixed(bits) => bits,
        }
    }

    fn of_byte(byte: u8) -> Option<Way> {
        match byte {
            0 => Some(Way::Columns),
            bits => TABLE_BITS.contains(&bits).then_some(Way::Mixed(bits)),
        }
    }
}

fn header(fields: Fields, way: Way) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4] = VERSION;
    bytes[5] = bits(fields);
    bytes[6] = way.byte();
    bytes
}

pub(crate) fn read_header(input: &mut Input) -> Result<(Fields, Way), Fault> {
    if !input.at_least(HEADER)? {
        return Err(Fault::damaged(input.offset(), "its header is cut short"));
    }
    let bytes = &input.bytes()[..HEADER];
    if bytes[..4] != MAGIC {
        return Err(Fault::damaged(0, "it does not begin with the mark 93 52 46 41"));
    }
    if bytes[4] != VERSION {
        return Err(Fault::damaged(4, format!("version {} is not known, only {VERSION}", bytes[4])));
    }
    let there = |bit: u8| bytes[5] >> bit & 1 != 0;
    let fields = Fields { times: there(0), words: there(1), sizes: there(2), flags: there(3), pcs: there(4) };
    let way = Way::of_byte(bytes[6]).filter(|_| bits(fields) == bytes[5] && bytes[7] == 0);
    let way = way.ok_or_else(|| Fault::damaged(5, "its header has flags that are not known"))?;
    input.consume(HEADER);
    Ok((fields, way))
}

/// Of everything in a block but itself.
fn checksum(parts: &[&[u8]]) -> u32 {
    let mut crc = flate2::Crc::new();
    parts.iter().for_each(|part| crc.update(part));
    crc.sum()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
}
