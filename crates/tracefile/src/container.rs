//! The container: mark, version, flags, section directory, checksums. FORMAT.md has the tables.

use crate::error::Error;
use crate::{FORMAT_VERSION, MAGIC, MARGIN, RATIO};
use crc32fast::hash as crc32;

/// The numbers are in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Meta = 1,
    Symbols = 2,
    Structure = 3,
    Ranks = 4,
    Streams = 5,
    Tallies = 6,
    /// Entropy-coded numbers, as they are; only where there are any.
    Blocks = 7,
    /// Call stacks; only where there are any.
    Sites = 10,
    /// How times are distributed, packed by itself; only where that is known, and optional.
    Paths = 11,
    /// Side lanes; only where there are any, and optional: a reader may do without.
    Sides = 14,
    /// Numbers in chunks, which are read by themselves; only where there are any.
    Chunked = 16,
    /// A trace of memory references, of the same run; only where they were recorded, and optional.
    References = 17,
}

/// Those that every file has.
pub const KINDS: [Kind; 6] =
    [Kind::Meta, Kind::Symbols, Kind::Structure, Kind::Ranks, Kind::Streams, Kind::Tallies];

/// All that are made of tokens, in the order in which they are written: each may be read with the help of those before.
/// The tallies come last: their numbers are told by how often each symbol occurs, which takes some work to know.
pub const ORDER: [Kind; 7] =
    [Kind::Meta, Kind::Symbols, Kind::Structure, Kind::Ranks, Kind::Streams, Kind::Sites, Kind::Tallies];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Meta => "meta",
            Kind::Symbols => "symbols",
            Kind::Structure => "structure",
            Kind::Ranks => "ranks",
            Kind::Streams => "streams",
            Kind::Tallies => "tallies",
            Kind::Blocks => "blocks",
            Kind::Sites => "sites",
            Kind::Paths => "paths",
            Kind::Sides => "sides",
            Kind::Chunked => "chunked",
            Kind::References => "references",
        }
    }
}

/// Where the number of sections stands.
const SECTIONS: usize = 6;
/// Bytes of a checksum.
const CRC: usize = 4;
/// No header is longer: what comes before the directory, 255 entries, and a checksum.
pub const LONGEST_HEADER: usize = 16 + 255 * 15 + CRC;

/// Flags of the header.
pub const COMPLETE: u8 = 1;
pub const SPLIT: u8 = 2;
pub const TIMED: u8 = 4;

// A directory entry's first byte: the kind, and these.
const KIND: u8 = 0x1f;
/// The section is a piece of the packed stream.
const PACKED: u8 = 0x20;
/// A reader that does not know the kind may pass over it.
const OPTIONAL: u8 = 0x40;
/// A version byte follows; without it the version is 1.
const VERSIONED: u8 = 0x80;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub kind: u8,
    pub version: u8,
    pub packed: bool,
    pub optional: bool,
    /// Where in the file it is.
    pub start: usize,
    pub end: usize,
    /// Of the pieces of the packed stream, which have one together, the first has it.
    crc: Option<u32>,
}

#[derive(Debug)]
pub struct Header {
    pub flags: u8,
    /// Length of all packed sections together, unpacked.
    pub plain_len: usize,
    pub entries: Vec<Entry>,
}

pub fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Those that are no piece of the packed stream, in the order in which they are written.
pub const APART: [Kind; 5] = [Kind::Blocks, Kind::Paths, Kind::Sides, Kind::Chunked, Kind::References];

/// Those that may be larger than memory: they stand last, and are read by themselves.
pub const LARGE: [Kind; 2] = [Kind::Chunked, Kind::References];

/// The sections made of tokens: their stored bytes, one after the other in the order of [`ORDER`].
pub struct Body<'a> {
    pub bytes: &'a [u8],
    /// Where each ends.
    pub ends: Vec<(Kind, usize)>,
    /// They are packed, and this long unpacked.
    pub unpacked: Option<usize>,
}

/// A section that is no piece of the packed stream: what the directory says of it.
pub struct Apart {
    pub kind: Kind,
    pub length: usize,
    pub crc: u32,
}

/// What stands before the sections. `apart` are in the order of [`APART`].
pub fn header(flags: u8, body: &Body<'_>, apart: &[Apart]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend([FORMAT_VERSION, flags, body.ends.len() as u8 + apart.len() as u8]);
    number(&mut out, body.unpacked.unwrap_or(0) as u64);
    let mut start = 0;
    for (at, &(kind, end)) in body.ends.iter().enumerate() {
        let mark = if body.unpacked.is_some() { PACKED } else { 0 };
        out.push(kind as u8 | mark);
        number(&mut out, (end - start) as u64);
        match (body.unpacked, at) {
            (None, _) => out.extend(crc32(&body.bytes[start..end]).to_le_bytes()),
            (Some(_), 0) => out.extend(crc32(body.bytes).to_le_bytes()),
            (Some(_), _) => {}
        }
        start = end;
    }
    for section in apart {
        let optional = if section.kind == Kind::Blocks { 0 } else { OPTIONAL };
        out.push(section.kind as u8 | optional);
        number(&mut out, section.length as u64);
        out.extend(section.crc.to_le_bytes());
    }
    let crc = crc32(&out);
    out.extend(crc.to_le_bytes());
    out
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn byte(&mut self) -> Result<u8, Error> {
        let len = self.bytes.len();
        let byte = self.bytes.get(self.at).copied().ok_or(Error::Truncated { len, need: len + 1 })?;
        self.at += 1;
        Ok(byte)
    }

    /// `None` for a number that no writer writes.
    fn number(&mut self) -> Result<Option<usize>, Error> {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(usize::try_from(value).ok());
            }
        }
        Ok(None)
    }

    fn crc(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes([self.byte()?, self.byte()?, self.byte()?, self.byte()?]))
    }
}

/// The header from a file's first bytes, and where the directory ends: its checksum follows. Sections need not be there.
pub fn directory(bytes: &[u8]) -> Result<(Header, usize), Error> {
    let mark = bytes.len().min(MAGIC.len());
    if bytes.is_empty() || bytes[..mark] != MAGIC[..mark] {
        return Err(Error::Foreign { len: bytes.len() });
    }
    let mut scan = Scan { bytes, at: MAGIC.len() };
    let version = scan.byte()?;
    // Where the checksums of another version are is that version's matter.
    if version != FORMAT_VERSION {
        return Err(Error::Version { version });
    }
    let flags = scan.byte()?;
    let count = scan.byte()?;
    let plain_len = scan.number()?;
    let mut entries = Vec::new();
    // Lengths, and after the header's checksum is known to hold, places.
    let mut sane = plain_len.is_some();
    let mut stream_begun = false;
    for _ in 0..count {
        let head = scan.byte()?;
        let packed = head & PACKED != 0;
        let version = if head & VERSIONED == 0 { 1 } else { scan.byte()? };
        let len = scan.number()?;
        sane &= len.is_some();
        entries.push(Entry {
            kind: head & KIND,
            version,
            packed,
            optional: head & OPTIONAL != 0,
            start: 0,
            end: len.unwrap_or(0),
            crc: if packed && stream_begun { None } else { Some(scan.crc()?) },
        });
        stream_begun |= packed;
    }
    let end = scan.at;
    if scan.crc()? != crc32(&bytes[..end]) || !sane {
        return Err(Error::Damaged { section: "header", start: 0, end: scan.at });
    }
    let mut at = scan.at;
    for entry in &mut entries {
        entry.start = at;
        at = at.saturating_add(entry.end);
        entry.end = at;
    }
    Ok((Header { flags, plain_len: plain_len.unwrap_or(0), entries }, end))
}

/// Reads the header and holds every checksum against the bytes. From here on the sections are what was written.
pub fn parse(bytes: &[u8]) -> Result<Header, Error> {
    let (header, end) = directory(bytes)?;
    let first = end + CRC;
    let at = header.entries.last().map_or(first, |entry| entry.end);
    if at > bytes.len() {
        return Err(Error::Truncated { len: bytes.len(), need: at });
    }
    if at < bytes.len() {
        return Err(Error::Trailing { start: at, end: bytes.len() });
    }
    let pieces: Vec<&Entry> = header.entries.iter().filter(|entry| entry.packed).collect();
    let stream: Vec<u8> = pieces.iter().flat_map(|piece| &bytes[piece.start..piece.end]).copied().collect();
    for entry in &header.entries {
        let Some(crc) = entry.crc else { continue };
        let (section, end, content) = match entry.packed {
            true => ("packed", pieces.last().map_or(entry.end, |last| last.end), &stream[..]),
            false => (entry.name(), entry.end, &bytes[entry.start..entry.end]),
        };
        if crc32(content) != crc {
            return Err(Error::Damaged { section, start: entry.start, end });
        }
    }
    header.check(first)?;
    Ok(header)
}

/// The beginning of a file, to where a section follows that it has not: a trace, and what comes behind it.
pub fn with_section(trace: &[u8], kind: Kind, len: u64, crc: u32) -> Result<Vec<u8>, Error> {
    let (_, end) = directory(trace)?;
    let mut head = trace[..end].to_vec();
    head[SECTIONS] += 1;
    head.push(kind as u8 | OPTIONAL);
    number(&mut head, len);
    head.extend(crc.to_le_bytes());
    Ok(reseal(head, &trace[end + CRC..]))
}

/// The trace that a file's beginning would be without the large sections that follow it.
pub fn without_large(beginning: &[u8]) -> Result<Vec<u8>, Error> {
    let (header, end) = directory(beginning)?;
    let mut head = beginning[..end].to_vec();
    for entry in header.large() {
        let mut words = vec![0];
        number(&mut words, (entry.end - entry.start) as u64);
        head.truncate(head.len() - words.len() - CRC);
        head[SECTIONS] -= 1;
    }
    Ok(reseal(head, &beginning[end + CRC..]))
}

fn reseal(mut head: Vec<u8>, rest: &[u8]) -> Vec<u8> {
    let crc = crc32(&head);
    head.extend(crc.to_le_bytes());
    head.extend_from_slice(rest);
    head
}

impl Entry {
    pub fn known(&self) -> Option<Kind> {
        let mut kinds = KINDS.into_iter().chain(APART).chain([Kind::Sites]);
        kinds.find(|&kind| kind as u8 == self.kind && self.version == 1)
    }

    pub fn name(&self) -> &'static str {
        self.known().map_or("unknown", Kind::name)
    }
}

impl Header {
    /// The last entries, as far as they are of large sections.
    pub fn large(&self) -> &[Entry] {
        let is_large = |entry: &Entry| entry.known().is_some_and(|kind| LARGE.contains(&kind));
        let others = self.entries.iter().rposition(|entry| !is_large(entry)).map_or(0, |at| at + 1);
        &self.entries[others..]
    }

    pub fn blocks(&self) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.known() == Some(Kind::Blocks))
    }

    /// The rules that hold between header fields.
    fn check(&self, len: usize) -> Result<(), Error> {
        let malformed =
            |what: &str| Error::Malformed { section: "header", start: 0, end: len, what: what.into() };
        if self.flags & !(COMPLETE | SPLIT | TIMED) != 0 {
            return Err(malformed("unknown flags"));
        }
        for entry in &self.entries {
            let Entry { kind, version, start, end, .. } = *entry;
            // A packed section of unknown content cannot be passed over: the model would miss what it teaches.
            if entry.known().is_none() && (!entry.optional || entry.packed) {
                return Err(Error::Unknown { kind, version, start, end });
            }
        }
        let known: Vec<Kind> = self.entries.iter().filter_map(Entry::known).collect();
        if let Some(missing) = KINDS.iter().find(|kind| !known.contains(kind)) {
            return Err(Error::Missing { section: missing.name() });
        }
        let in_order = ORDER.into_iter().chain(APART).filter(|kind| known.contains(kind));
        if !in_order.eq(known.iter().copied()) {
            return Err(malformed("its sections are out of order"));
        }
        let apart = |entry: &&Entry| entry.known().is_some_and(|kind| APART.contains(&kind));
        if self.entries.iter().filter(apart).any(|entry| entry.packed) {
            return Err(malformed("its blocks are packed twice"));
        }
        let packed = self.entries.iter().filter(|e| e.packed);
        let stored: usize = packed.map(|e| e.end - e.start).sum();
        if self.plain_len > stored.saturating_mul(RATIO).saturating_add(MARGIN) {
            return Err(malformed("it announces more than its sections could hold"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that does not know a section passes over it, but for the blocks: without them numbers would be missing.
    #[test]
    fn readers_may_do_without_all_that_stands_apart_but_the_blocks() {
        let body = Body { bytes: &[], ends: Vec::new(), unpacked: None };
        let bytes = header(0, &body, &APART.map(|kind| Apart { kind, length: 0, crc: 0 }));
        let (header, _) = directory(&bytes).unwrap();
        let optional = header.entries.iter().map(|entry| (entry.kind, entry.optional));
        assert!(optional.eq(APART.map(|kind| (kind as u8, kind != Kind::Blocks))));
    }
}
