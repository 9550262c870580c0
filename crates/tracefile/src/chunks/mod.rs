//! Streams of numbers in chunks: written while a program runs, each rank for itself, merged by their index, read from
//! anywhere.
//!
//! A section of this form is a row of *pieces*. Most are chunks: some numbers of one stream, packed alone, under a header
//! with two checksums. Pages of an index come in between, and a footer at the end says where the last page is. Where the
//! footer is missing (the program was killed, the file was cut) the chunks are found one by one. Nothing in a [`Writer`]
//! or a [`Merger`] grows with the length of a stream; a [`Section`] keeps 48 bytes for each chunk.
//!
//! ```
//! use refrain_fold::pack::Kind;
//! use refrain_tracefile::chunks::{Key, Section, Settings, Writer};
//! let mut writer = Writer::new(Vec::new(), Settings::default());
//! let key = Key { member: 3, lane: 0 };
//! let times = writer.stream(key, Kind::TIME);
//! (0..100).try_for_each(|batch: i64| {
//!     let numbers: Vec<i64> = (0..1000).map(|i| (batch * 1000 + i) * 5000).collect();
//!     writer.push(times, &numbers)
//! }).unwrap();
//! let file = writer.finish().unwrap();
//! let mut section = Section::open(std::io::Cursor::new(file)).unwrap();
//! let mut some = Vec::new();
//! section.read(key, 70_000..70_003, &mut some).unwrap();
//! assert_eq!(some, [350_000_000, 350_005_000, 350_010_000]);
//! ```

mod merge;
mod read;
mod shape;
mod write;

use std::io;

use refrain_fold::pack::{Kind, Methods};

use crate::container::number;
use crc32fast::hash as crc32;

pub use merge::Merger;
pub use read::{Beginning, Check, Iter, Packed, Section, StreamInfo};
pub use shape::Shape;
pub use write::{Settings, StreamNumber, Writer};

/// Which stream: who wrote it (the thread times the number of ranks, and the rank), and which of that member's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Key {
    pub member: u64,
    pub lane: u64,
}

/// The methods that every reader has; those that are quick enough pack.
pub fn quick() -> Methods {
    Methods::quick().first(Shape)
}

/// The same, but slow ones pack too.
pub fn small() -> Methods {
    Methods::small().first(Shape)
}

/// Every piece begins with it.
const MARK: [u8; 4] = *b"\x93RFC";
const TAG_NUMBERS: u8 = 1;
const TAG_PAGE: u8 = 2;
/// No header is longer.
const LONGEST_HEAD: usize = 64;

/// More numbers than this no chunk has, and more chunks than this no page.
const MOST_NUMBERS: u32 = 1 << 20;
const MOST_ENTRIES: u32 = 1 << 10;
/// More bytes than this no entry of a page has.
const LONGEST_ENTRY: u32 = 46;

const FOOTER: usize = 24;
const END_MARK: [u8; 4] = *b"CFR\x93";

/// The header of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    tag: u8,
    kind: Kind,
    method: u8,
    key: Key,
    /// The number of the first number in its stream; of a page, one more than where the page before begins.
    first: u64,
    /// Numbers, or entries.
    count: u32,
    /// Bytes after the header, and their checksum.
    length: u32,
    crc: u32,
}

impl Head {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = MARK.to_vec();
        bytes.extend([self.tag, self.kind.0, self.method]);
        let numbers =
            [self.key.member, self.key.lane, self.first, u64::from(self.count), u64::from(self.length)];
        numbers.into_iter().for_each(|value| number(&mut bytes, value));
        bytes.extend(self.crc.to_le_bytes());
        let crc = crc32(&bytes);
        bytes.extend(crc.to_le_bytes());
        bytes
    }

    /// The header at the front of these bytes, and its length. What it says could be so.
    fn parse(bytes: &[u8]) -> Option<(Head, usize)> {
        let mut rest = bytes.strip_prefix(&MARK)?;
        let [tag, kind, method] = *rest.split_off(..3)? else { return None };
        let mut number = || take_number(&mut rest);
        let key = Key { member: number()?, lane: number()? };
        let (first, count, length) = (number()?, number()?, number()?);
        let (count, length) = (u32::try_from(count).ok()?, u32::try_from(length).ok()?);
        let crc = u32::from_le_bytes(rest.split_off(..4)?.try_into().ok()?);
        let covered = bytes.len() - rest.len();
        let own = u32::from_le_bytes(rest.split_off(..4)?.try_into().ok()?);
        let possible = match tag {
            TAG_NUMBERS => (1..=MOST_NUMBERS).contains(&count) && length <= 8 * count,
            TAG_PAGE => (1..=MOST_ENTRIES).contains(&count) && length <= LONGEST_ENTRY * count,
            _ => false,
        };
        let ends = first.checked_add(count.into()).is_some();
        let good = own == crc32(&bytes[..covered]) && possible && ends;
        let head = Head { tag, kind: Kind(kind), method, key, first, count, length, crc };
        good.then_some((head, bytes.len() - rest.len()))
    }
}

/// A varint of up to ten bytes, written in as few as possible.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Where a chunk is and what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    key: Key,
    first: u64,
    /// From the beginning of the section.
    offset: u64,
    count: u32,
    /// With its header.
    length: u32,
    kind: Kind,
}

/// Pieces one after the other into a sink, with the index that goes with them.
struct Pieces<W> {
    sink: W,
    /// Bytes written.
    at: u64,
    /// Entries of the page to come.
    page: Vec<u8>,
    entries: u32,
    /// One more than where the last page begins.
    before: u64,
    chunks: u64,
}

impl<W: io::Write> Pieces<W> {
    fn new(sink: W) -> Pieces<W> {
        Pieces { sink, at: 0, page: Vec::new(), entries: 0, before: 0, chunks: 0 }
    }

    /// Notes a chunk of which all bytes have been written.
    fn note(&mut self, head: &Head, length: u64) -> io::Result<()> {
        self.at += length;
        self.page.push(head.kind.0);
        let numbers = [head.key.member, head.key.lane, head.first, u64::from(head.count), length];
        numbers.into_iter().for_each(|value| number(&mut self.page, value));
        self.entries += 1;
        self.chunks += 1;
        if self.entries == MOST_ENTRIES { self.end_page() } else { Ok(()) }
    }

    /// A chunk in one write, so that whoever is killed meanwhile leaves it whole or as the last.
    fn put(&mut self, mut head: Head, body: &[u8]) -> io::Result<()> {
        (head.length, head.crc) = (body.len() as u32, crc32(body));
        let bytes = [&head.bytes(), body].concat();
        self.sink.write_all(&bytes)?;
        self.note(&head, bytes.len() as u64)
    }

    fn end_page(&mut self) -> io::Result<()> {
        if self.entries == 0 {
            return Ok(());
        }
        let head = Head {
            tag: TAG_PAGE,
            kind: Kind(0),
            method: 0,
            key: Key::default(),
            first: self.before,
            count: self.entries,
            length: self.page.len() as u32,
            crc: crc32(&self.page),
        };
        let bytes = [&head.bytes()[..], &self.page].concat();
        self.sink.write_all(&bytes)?;
        self.before = self.at + 1;
        self.at += bytes.len() as u64;
        self.page.clear();
        self.entries = 0;
        Ok(())
    }

    fn finish(mut self) -> io::Result<W> {
        self.end_page()?;
        let mut footer = self.before.to_le_bytes().to_vec();
        footer.extend(self.chunks.to_le_bytes());
        let crc = crc32(&footer);
        footer.extend(crc.to_le_bytes());
        footer.extend(END_MARK);
        self.sink.write_all(&footer)?;
        self.sink.flush()?;
        Ok(self.sink)
    }
}

/// Why numbers could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read numbers: {0}")]
    Io(#[from] io::Error),
    /// Bytes differ from what was written. Offsets are those of the file.
    #[error(
        "the file is damaged: the chunk at offset {start}..{end} does not match its checksum; copy it again"
    )]
    Damaged { start: u64, end: u64 },
    /// The checksum holds, but the numbers do not come out.
    #[error(
        "the chunk at offset {start}..{end} makes no sense; the program that wrote the file is at fault, please report it"
    )]
    Malformed { start: u64, end: u64 },
    /// A newer writer's way to pack.
    #[error(
        "the chunk at offset {start} is packed in a way (number {method}) that this Refrain does not know; use a newer Refrain"
    )]
    Method { method: u8, start: u64 },
    /// These numbers of the stream are in no chunk.
    #[error("numbers {from}..{to} of stream {} of member {} are not in the file", .key.lane, .key.member)]
    Lost { key: Key, from: u64, to: u64 },
    /// Numbers are there twice.
    #[error("number {from} of stream {} of member {} is there twice; the program that wrote the file is at fault, please report it", .key.lane, .key.member)]
    Twice { key: Key, from: u64 },
    /// It ends without its footer.
    #[error("the chunks end without their footer: what is left are {chunks}")]
    Cut { chunks: u64 },
}
