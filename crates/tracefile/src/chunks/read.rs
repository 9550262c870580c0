//! Chunks to numbers, from anywhere.

use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use refrain_fold::pack::{Kind, Methods, number};

use super::{
    END_MARK, Entry, Error, FOOTER, Head, Key, LONGEST_HEAD, MARK, TAG_NUMBERS, TAG_PAGE, quick, take_number,
};
use crc32fast::hash as crc32;

/// Bytes that are searched at a time for the next mark.
const SEARCH: usize = 1 << 16;

/// A section, or what is left of one.
pub struct Section<R> {
    pub(super) from: R,
    /// Where in the file it begins.
    pub(super) start: u64,
    /// In the order of keys, and of the numbers in a stream.
    pub(super) index: Vec<Entry>,
    whole: bool,
    methods: Methods,
    bytes: Vec<u8>,
}

/// A stream of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamInfo {
    pub key: Key,
    pub kind: Kind,
    /// Numbers, up to the end of its last chunk.
    pub len: u64,
    pub chunks: u64,
    /// All its chunks.
    pub bytes: u64,
}

/// A chunk as it is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packed<'a> {
    /// Of its first number, its number in the stream.
    pub first: u64,
    pub count: u32,
    pub method: u8,
    pub bytes: &'a [u8],
}

/// How a chunk begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beginning<'a> {
    pub count: u32,
    pub method: u8,
    /// All bytes of the chunk.
    pub length: usize,
    pub bytes: &'a [u8],
}

/// What [`Section::check`] went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Check {
    pub streams: u64,
    pub chunks: u64,
    pub numbers: u64,
}

impl<R: Read + Seek> Section<R> {
    /// All of a file.
    pub fn open(mut from: R) -> Result<Section<R>, Error> {
        let end = from.seek(SeekFrom::End(0))?;
        Section::within(from, 0..end)
    }

    /// A part of a file. Where its end is not what a writer leaves there, its chunks are searched for.
    pub fn within(mut from: R, range: Range<u64>) -> Result<Section<R>, Error> {
        let Range { start, end } = range;
        let length = end.saturating_sub(start);
        let found = by_pages(&mut from, start, length)?;
        let whole = found.is_some();
        let mut index = match found {
            Some(index) => index,
            None => by_search(&mut from, start, length)?,
        };
        index.sort_by_key(|entry| (entry.key, entry.first, entry.offset));
        Ok(Section { from, start, index, whole, methods: quick(), bytes: Vec::new() })
    }

    /// The methods that chunks may be packed with, if they are not the usual ones.
    pub fn with(mut self, methods: Methods) -> Section<R> {
        self.methods = methods;
        self
    }

    /// Whether it ends as a writer ends it.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// In the order of their keys.
    pub fn streams(&self) -> impl Iterator<Item = StreamInfo> {
        self.index.chunk_by(|a, b| a.key == b.key).map(|chunks| StreamInfo {
            key: chunks[0].key,
            kind: chunks[0].kind,
            len: chunks.last().map_or(0, |last| last.first + u64::from(last.count)),
            chunks: chunks.len() as u64,
            bytes: chunks.iter().map(|chunk| u64::from(chunk.length)).sum(),
        })
    }

    /// All numbers that are here.
    pub fn numbers(&self) -> u64 {
        self.index.iter().fold(0u64, |sum, entry| sum.saturating_add(entry.count.into()))
    }

    /// Numbers of a stream, up to the end of its last chunk.
    pub fn len(&self, key: Key) -> u64 {
        let end = self.index.partition_point(|entry| entry.key <= key);
        let last = self.index[..end].last().filter(|last| last.key == key);
        last.map_or(0, |last| last.first + u64::from(last.count))
    }

    /// For each chunk of a stream where in the section it ends, and how many numbers of the stream there are up to there.
    pub fn ends(&self, key: Key) -> impl Iterator<Item = (u64, u64)> {
        let chunks = self.index.iter().filter(move |entry| entry.key == key);
        chunks.map(|entry| (entry.offset + u64::from(entry.length), entry.first + u64::from(entry.count)))
    }

    /// The numbers of a stream from this one to the end of the chunk that it is in, behind what is there. Says how many;
    /// none at the end of the stream.
    pub fn read_on(&mut self, key: Key, at: u64, into: &mut Vec<i64>) -> Result<usize, Error> {
        let Some(entry) = self.chunk_with(key, at)? else { return Ok(0) };
        let begin = into.len();
        self.unpack(&entry, into)?;
        let skip = (at - entry.first) as usize;
        into.drain(begin..begin + skip);
        Ok(into.len() - begin)
    }

    /// The chunk that has this number of a stream. None at the end of the stream.
    fn chunk_with(&self, key: Key, at: u64) -> Result<Option<Entry>, Error> {
        let next = self.index.partition_point(|entry| (entry.key, entry.first) <= (key, at));
        let before = next.checked_sub(1).map(|before| self.index[before]).filter(|entry| entry.key == key);
        match before.filter(|entry| at - entry.first < entry.count.into()) {
            Some(entry) => Ok(Some(entry)),
            None => match self.index.get(next).filter(|entry| entry.key == key) {
                Some(entry) => Err(Error::Lost { key, from: at, to: entry.first }),
                None => Ok(None),
            },
        }
    }

    /// The chunk that has this number of a stream, as it is packed. None at the end of the stream.
    pub fn packed(&mut self, key: Key, at: u64) -> Result<Option<Packed<'_>>, Error> {
        let Some(entry) = self.chunk_with(key, at)? else { return Ok(None) };
        let method = self.body(&entry)?.method;
        Ok(Some(Packed { first: entry.first, count: entry.count, method, bytes: &self.bytes }))
    }

    /// Of the chunk that has this number of a stream: how many numbers it has, how many bytes, and the first of these, which
    /// are not held against its checksum.
    pub fn beginning(&mut self, key: Key, at: u64, most: usize) -> Result<Option<Beginning<'_>>, Error> {
        let Some(entry) = self.chunk_with(key, at)? else { return Ok(None) };
        let (head, skip) = self.head(&entry)?;
        let length = head.length as usize;
        self.bytes.resize(most.min(length), 0);
        let have = read_at(&mut self.from, self.start + entry.offset + skip as u64, &mut self.bytes)?;
        self.bytes.truncate(have);
        Ok(Some(Beginning { count: entry.count, method: head.method, length, bytes: &self.bytes }))
    }

    /// These numbers of a stream, behind what is there. All must be there.
    pub fn read(&mut self, key: Key, range: Range<u64>, into: &mut Vec<i64>) -> Result<(), Error> {
        let begin = into.len() as u64;
        let mut at = range.start;
        while at < range.end {
            match self.read_on(key, at, into)? as u64 {
                0 => return Err(Error::Lost { key, from: at, to: range.end }),
                read => at += read,
            }
        }
        into.truncate((begin + range.end.saturating_sub(range.start)) as usize);
        Ok(())
    }

    /// The numbers of a stream one by one, from this one on. One chunk is unpacked at a time.
    pub fn iter(&mut self, key: Key, from: u64) -> Iter<'_, R> {
        Iter { section: self, key, next: from, numbers: Vec::new(), at: 0, ended: false }
    }

    /// Unpacks everything, and holds it against the checksums and the index.
    pub fn check(&mut self) -> Result<Check, Error> {
        let mut check = Check::default();
        let mut numbers = Vec::new();
        let mut before: Option<Entry> = None;
        for at in 0..self.index.len() {
            let entry = self.index[at];
            let same = before.filter(|before| before.key == entry.key);
            let expected = same.map_or(0, |before| before.first + u64::from(before.count));
            if entry.first > expected {
                return Err(Error::Lost { key: entry.key, from: expected, to: entry.first });
            }
            if entry.first < expected {
                return Err(Error::Twice { key: entry.key, from: entry.first });
            }
            numbers.clear();
            // Times are packed beside the calls, references with what was learnt before: who has that can unpack them.
            if matches!(self.head(&entry)?.0.method, number::SPANS | number::FOLLOWED) {
                self.body(&entry)?;
            } else {
                self.unpack(&entry, &mut numbers)?;
            }
            check.streams += u64::from(same.is_none());
            check.chunks += 1;
            check.numbers += u64::from(entry.count);
            before = Some(entry);
        }
        if !self.whole {
            return Err(Error::Cut { chunks: check.chunks });
        }
        Ok(check)
    }

    /// How many chunks each method packed, by its number.
    pub fn methods_used(&mut self) -> Result<HashMap<u8, usize>, Error> {
        let mut used = HashMap::new();
        for at in 0..self.index.len() {
            *used.entry(self.head(&self.index[at].clone())?.0.method).or_default() += 1;
        }
        Ok(used)
    }

    /// A chunk's header, and its length.
    pub(super) fn head(&mut self, entry: &Entry) -> Result<(Head, usize), Error> {
        let begin = self.start + entry.offset;
        let mut bytes = [0; LONGEST_HEAD];
        let have = read_at(&mut self.from, begin, &mut bytes[..LONGEST_HEAD.min(entry.length as usize)])?;
        let expected = |&(head, length): &(Head, usize)| {
            head.tag == TAG_NUMBERS
                && (head.key, head.kind, head.first, head.count)
                    == (entry.key, entry.kind, entry.first, entry.count)
                && length as u64 + u64::from(head.length) == u64::from(entry.length)
        };
        let damaged = Error::Damaged { start: begin, end: begin + u64::from(entry.length) };
        Head::parse(&bytes[..have]).filter(expected).ok_or(damaged)
    }

    /// Fetches what is in a chunk.
    fn body(&mut self, entry: &Entry) -> Result<Head, Error> {
        let (start, end) = (self.start + entry.offset, self.start + entry.offset + u64::from(entry.length));
        let (head, skip) = self.head(entry)?;
        self.bytes.resize(head.length as usize, 0);
        let have = read_at(&mut self.from, start + skip as u64, &mut self.bytes)?;
        if have < self.bytes.len() || crc32(&self.bytes) != head.crc {
            return Err(Error::Damaged { start, end });
        }
        Ok(head)
    }

    fn unpack(&mut self, entry: &Entry, into: &mut Vec<i64>) -> Result<(), Error> {
        let (start, end) = (self.start + entry.offset, self.start + entry.offset + u64::from(entry.length));
        let head = self.body(entry)?;
        if !self.methods.know(head.method) {
            return Err(Error::Method { method: head.method, start });
        }
        let done = self.methods.unpack(head.method, &self.bytes, head.count as usize, into);
        done.map_err(|_| Error::Malformed { start, end })
    }
}

/// The numbers of a stream. It ends after an error.
pub struct Iter<'a, R> {
    section: &'a mut Section<R>,
    key: Key,
    next: u64,
    numbers: Vec<i64>,
    at: usize,
    ended: bool,
}

impl<R: Read + Seek> Iterator for Iter<'_, R> {
    type Item = Result<i64, Error>;

    #[inline]
    fn next(&mut self) -> Option<Result<i64, Error>> {
        if self.at == self.numbers.len() {
            if self.ended {
                return None;
            }
            (self.at, self.ended) = (0, true);
            self.numbers.clear();
            match self.section.read_on(self.key, self.next, &mut self.numbers) {
                Ok(0) => return None,
                Ok(read) => (self.next, self.ended) = (self.next + read as u64, false),
                Err(error) => return Some(Err(error)),
            }
        }
        self.at += 1;
        Some(Ok(self.numbers[self.at - 1]))
    }
}

/// As many bytes as there are.
fn read_at<R: Read + Seek>(from: &mut R, at: u64, into: &mut [u8]) -> io::Result<usize> {
    from.seek(SeekFrom::Start(at))?;
    let mut have = 0;
    while have < into.len() {
        match from.read(&mut into[have..]) {
            Ok(0) => break,
            Ok(read) => have += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}

/// A page: the chunks that it tells of, and where it ends. Offsets of chunks are not known yet.
struct Page {
    start: u64,
    end: u64,
    entries: Vec<Entry>,
}

/// The header at this place of the section, if there is one of a piece that ends before `length`.
fn head_at<R: Read + Seek>(
    from: &mut R,
    start: u64,
    length: u64,
    at: u64,
) -> io::Result<Option<(Head, usize)>> {
    let mut bytes = [0; LONGEST_HEAD];
    let most = LONGEST_HEAD.min(usize::try_from(length - at).unwrap_or(usize::MAX));
    let have = read_at(from, start + at, &mut bytes[..most])?;
    let fits = |(head, skip): &(Head, usize)| u64::from(head.length) + *skip as u64 <= length - at;
    Ok(Head::parse(&bytes[..have]).filter(fits))
}

/// The index, page by page from the last; `None` if footer or pages are not what they should be.
fn by_pages<R: Read + Seek>(from: &mut R, start: u64, length: u64) -> io::Result<Option<Vec<Entry>>> {
    let Some(end) = length.checked_sub(FOOTER as u64) else { return Ok(None) };
    let mut footer = [0; FOOTER];
    if read_at(from, start + end, &mut footer)? < FOOTER {
        return Ok(None);
    }
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| footer[at + i]));
    let crc = word(16) as u32;
    if footer[20..] != END_MARK || crc != crc32(&footer[..16]) {
        return Ok(None);
    }
    let (mut before, chunks) = (word(0), word(8));
    let mut pages = Vec::new();
    let mut behind = end;
    while let Some(at) = before.checked_sub(1) {
        if at >= behind {
            return Ok(None);
        }
        let Some((head, skip)) = head_at(from, start, behind, at)?.filter(|(head, _)| head.tag == TAG_PAGE)
        else {
            return Ok(None);
        };
        let mut bytes = vec![0; head.length as usize];
        if read_at(from, start + at + skip as u64, &mut bytes)? < bytes.len() || crc32(&bytes) != head.crc {
            return Ok(None);
        }
        let Some(entries) = entries(&bytes, head.count) else { return Ok(None) };
        pages.push(Page { start: at, end: at + skip as u64 + u64::from(head.length), entries });
        (before, behind) = (head.first, at);
    }
    let mut index = Vec::new();
    let mut at = 0u64;
    for mut page in pages.into_iter().rev() {
        // Chunks and pages follow each other without a gap.
        for entry in &mut page.entries {
            entry.offset = at;
            at += u64::from(entry.length);
        }
        if at != page.start {
            return Ok(None);
        }
        at = page.end;
        index.append(&mut page.entries);
    }
    Ok((at == end && index.len() as u64 == chunks).then_some(index))
}

fn entries(mut bytes: &[u8], count: u32) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    for _ in 0..count {
        let kind = Kind(*bytes.split_off_first()?);
        let mut number = || take_number(&mut bytes);
        let key = Key { member: number()?, lane: number()? };
        let (first, count, length) = (number()?, number()?, number()?);
        let (count, length) = (u32::try_from(count).ok()?, u32::try_from(length).ok()?);
        first.checked_add(count.into())?;
        entries.push(Entry { key, first, offset: 0, count, length, kind });
    }
    bytes.is_empty().then_some(entries)
}

/// Every whole chunk that can be found. Only headers are read; a chunk's own checksum is looked at when it is read.
fn by_search<R: Read + Seek>(from: &mut R, start: u64, length: u64) -> io::Result<Vec<Entry>> {
    let mut index = Vec::new();
    let mut at = 0;
    while at < length {
        let Some((head, skip)) = head_at(from, start, length, at)? else {
            match next_mark(from, start, length, at + 1)? {
                Some(mark) => at = mark,
                None => break,
            }
            continue;
        };
        let whole = skip as u64 + u64::from(head.length);
        if head.tag == TAG_NUMBERS {
            let Head { key, first, count, kind, .. } = head;
            index.push(Entry { key, first, offset: at, count, length: whole as u32, kind });
        }
        at += whole;
    }
    Ok(index)
}

/// Where the next mark stands, from this place on.
fn next_mark<R: Read + Seek>(from: &mut R, start: u64, length: u64, mut at: u64) -> io::Result<Option<u64>> {
    let mut bytes = vec![0; SEARCH];
    while at < length {
        let most = SEARCH.min(usize::try_from(length - at).unwrap_or(usize::MAX));
        let have = read_at(from, start + at, &mut bytes[..most])?;
        if let Some(found) = bytes[..have].windows(MARK.len()).position(|window| window == MARK) {
            return Ok(Some(at + found as u64));
        }
        // A mark may stand across the end of what was read.
        match have.checked_sub(MARK.len() - 1) {
            Some(step) if step > 0 => at += step as u64,
            _ => return Ok(None),
        }
    }
    Ok(None)
}
