//! The container: mark, version, flags, section directory, checksums. FORMAT.md has the tables.

use crate::crc::crc32;
use crate::error::Error;
use crate::{FORMAT_VERSION, MAGIC, MARGIN, RATIO};

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
        }
    }
}

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
    crc: u32,
}

#[derive(Debug)]
pub struct Header {
    pub flags: u8,
    /// Length of all packed sections together, unpacked.
    pub plain_len: usize,
    pub entries: Vec<Entry>,
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The whole file. `bodies` are the sections' stored bytes in the order of [`ORDER`]; `blocks` is what is never packed.
pub fn assemble(
    flags: u8,
    packed: bool,
    plain_len: usize,
    bodies: &[(Kind, &[u8])],
    blocks: Option<&[u8]>,
) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend([FORMAT_VERSION, flags, bodies.len() as u8 + u8::from(blocks.is_some())]);
    number(&mut out, plain_len as u64);
    let mark = if packed { PACKED } else { 0 };
    let entries = bodies.iter().map(|&(kind, body)| (kind as u8 | mark, body));
    for (head, body) in entries.chain(blocks.map(|blocks| (Kind::Blocks as u8, blocks))) {
        out.push(head);
        number(&mut out, body.len() as u64);
        out.extend(crc32(body).to_le_bytes());
    }
    let crc = crc32(&out);
    out.extend(crc.to_le_bytes());
    bodies.iter().map(|(_, body)| *body).chain(blocks).for_each(|body| out.extend_from_slice(body));
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

/// Reads the header and holds every checksum against the bytes. From here on the sections are what was written.
pub fn parse(bytes: &[u8]) -> Result<Header, Error> {
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
    for _ in 0..count {
        let head = scan.byte()?;
        let version = if head & VERSIONED == 0 { 1 } else { scan.byte()? };
        let len = scan.number()?;
        sane &= len.is_some();
        entries.push(Entry {
            kind: head & KIND,
            version,
            packed: head & PACKED != 0,
            optional: head & OPTIONAL != 0,
            start: 0,
            end: len.unwrap_or(0),
            crc: scan.crc()?,
        });
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
    if at > bytes.len() {
        return Err(Error::Truncated { len: bytes.len(), need: at });
    }
    if at < bytes.len() {
        return Err(Error::Trailing { start: at, end: bytes.len() });
    }
    for entry in &entries {
        if crc32(&bytes[entry.start..entry.end]) != entry.crc {
            return Err(Error::Damaged { section: entry.name(), start: entry.start, end: entry.end });
        }
    }
    let header = Header { flags, plain_len: plain_len.unwrap_or(0), entries };
    header.check(scan.at)?;
    Ok(header)
}

impl Entry {
    pub fn known(&self) -> Option<Kind> {
        let mut kinds = KINDS.into_iter().chain([Kind::Blocks, Kind::Sites]);
        kinds.find(|&kind| kind as u8 == self.kind && self.version == 1)
    }

    pub fn name(&self) -> &'static str {
        self.known().map_or("unknown", Kind::name)
    }
}

impl Header {
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
        let in_order = ORDER.into_iter().chain([Kind::Blocks]).filter(|kind| known.contains(kind));
        if !in_order.eq(known.iter().copied()) {
            return Err(malformed("its sections are out of order"));
        }
        if self.blocks().is_some_and(|blocks| blocks.packed) {
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
