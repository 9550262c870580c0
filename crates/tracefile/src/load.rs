//! Traces whose large sections are left where they are: chunks, and memory references.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use crate::container::{self, Kind, LONGEST_HEADER};
use crate::error::Error;

/// A trace file without its large sections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// For [`read`](crate::read) and its like. A file that is no trace is here as it is: they say what is wrong with it.
    pub bytes: Vec<u8>,
    /// Where in the file its chunks are, as far as the file goes: for
    /// [`Section::within`](crate::chunks::Section::within).
    pub chunks: Option<Range<u64>>,
    /// Where in the file the trace of the run's memory references is, as far as the file goes: for [`Within`].
    pub references: Option<Range<u64>>,
    /// Whether all bytes of them are there.
    pub whole: bool,
    /// Of the file.
    pub length: u64,
}

/// Reads a trace but for its large sections, which may be larger than memory.
pub fn load<R: Read + Seek>(mut from: R) -> io::Result<Loaded> {
    let length = from.seek(SeekFrom::End(0))?;
    from.rewind()?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut from).take(LONGEST_HEADER as u64).read_to_end(&mut bytes)?;
    let header = container::directory(&bytes).ok();
    let large = header.as_ref().map_or(&[][..], |(header, _)| header.large());
    let place = |kind| {
        let entry = large.iter().find(|entry| entry.known() == Some(kind))?;
        Some(entry.start as u64..(entry.end as u64).min(length)).filter(|range| range.start <= length)
    };
    let (chunks, references) = (place(Kind::Chunked), place(Kind::References));
    let ends = large.first().zip(large.last()).map(|(first, last)| (first.start as u64, last.end as u64));
    // Whatever is wrong before them, or behind them, is for whoever reads the bytes to say.
    let Some((start, end)) = ends.filter(|(start, end)| *start <= length && *end >= length) else {
        from.read_to_end(&mut bytes)?;
        return Ok(Loaded { bytes, chunks: None, references: None, whole: true, length });
    };
    let before = start - bytes.len().min(start as usize) as u64;
    from.take(before).read_to_end(&mut bytes)?;
    bytes.truncate(start as usize);
    let bytes = container::without_large(&bytes).unwrap_or(bytes);
    Ok(Loaded { bytes, chunks, references, whole: end == length, length })
}

/// Writes a trace (as [`write`](crate::write) gives it) with a section of chunks behind it. The section is read twice:
/// its checksum stands before it.
pub fn append<R: Read + Seek>(trace: &[u8], chunks: R, mut out: impl Write) -> Result<(), Error> {
    let failed = copying("the chunks");
    let mut chunks = Summed::of(chunks).map_err(failed)?;
    out.write_all(&container::with_section(trace, Kind::Chunked, chunks.length, chunks.crc)?)
        .map_err(failed)?;
    chunks.copy(&mut out).map_err(failed)?;
    out.flush().map_err(failed)
}

/// Writes a trace file of calls, with its chunks where it has some, and a trace file of the memory references of the same run
/// behind it. Both are files of their own.
pub fn attach<C, R>(calls: C, references: R, mut out: impl Write) -> Result<(), Error>
where
    C: Read + Seek,
    R: Read + Seek,
{
    let failed = copying("the memory references");
    let mut calls = Summed::of(calls).map_err(failed)?;
    let mut references = Summed::of(references).map_err(failed)?;
    let mut head = vec![0; LONGEST_HEADER.min(calls.length as usize)];
    calls.from.rewind().map_err(failed)?;
    calls.from.read_exact(&mut head).map_err(failed)?;
    let read = head.len() as u64;
    let head = container::with_section(&head, Kind::References, references.length, references.crc)?;
    out.write_all(&head).map_err(failed)?;
    let rest = io::copy(&mut calls.from.by_ref().take(calls.length - read), &mut out).map_err(failed)?;
    if rest != calls.length - read {
        return Err(failed(io::ErrorKind::UnexpectedEof.into()));
    }
    references.copy(&mut out).map_err(failed)?;
    out.flush().map_err(failed)
}

fn copying(what: &'static str) -> impl Fn(io::Error) -> Error + Copy {
    move |error| Error::Io { action: "copy", path: what.into(), error }
}

/// What is to be copied, its length and checksum.
struct Summed<R> {
    from: R,
    length: u64,
    crc: u32,
}

impl<R: Read + Seek> Summed<R> {
    fn of(mut from: R) -> io::Result<Summed<R>> {
        let mut crc = crc32fast::Hasher::new();
        let mut length = 0;
        from.rewind()?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            crc.update(&buffer[..read]);
            length += read as u64;
        }
        Ok(Summed { from, length, crc: crc.finalize() })
    }

    fn copy(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.from.rewind()?;
        let copied = io::copy(&mut self.from.by_ref().take(self.length), out)?;
        if copied == self.length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// A part of a file as a file of its own: what it reads ends where the part does.
#[derive(Debug)]
pub struct Within<R> {
    from: R,
    part: Range<u64>,
    /// Of the part.
    at: u64,
}

impl<R: Read + Seek> Within<R> {
    pub fn new(mut from: R, part: Range<u64>) -> io::Result<Within<R>> {
        from.seek(SeekFrom::Start(part.start))?;
        Ok(Within { from, part, at: 0 })
    }

    fn length(&self) -> u64 {
        self.part.end.saturating_sub(self.part.start)
    }
}

impl<R: Read> Read for Within<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.part.end.saturating_sub(self.part.start).saturating_sub(self.at);
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = self.from.read(&mut buffer[..most])?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<R: Read + Seek> Seek for Within<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        let place = to.and_then(|at| Some((at, self.part.start.checked_add(at)?)));
        let (at, place) = place.ok_or(io::ErrorKind::InvalidInput)?;
        self.from.seek(SeekFrom::Start(place))?;
        self.at = at;
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Meta, Trace, read, write};
    use std::io::Cursor;

    fn trace(ranks: u32) -> Vec<u8> {
        write(&Trace { meta: Meta { ranks, complete: true, ..Meta::default() }, bundle: Default::default() })
    }

    /// Calls with and without chunks, references behind them: each comes back, and so it does of a file that is cut short.
    #[test]
    fn references_stand_behind_calls() {
        let (calls, references) = (trace(0), trace(0));
        let mut chunked = Vec::new();
        append(&calls, Cursor::new(vec![7; 5000]), &mut chunked).unwrap();
        for (file, chunks) in [(&calls, None), (&chunked, Some(5000))] {
            let mut both = Vec::new();
            attach(Cursor::new(file), Cursor::new(&references), &mut both).unwrap();
            // Who knows nothing of large sections reads the calls.
            assert_eq!(read(&both).unwrap(), read(&calls).unwrap());
            let loaded = load(Cursor::new(&both)).unwrap();
            assert_eq!((&loaded.bytes, loaded.whole, loaded.length), (&calls, true, both.len() as u64));
            assert_eq!(loaded.chunks.map(|range| range.end - range.start), chunks);
            let part = loaded.references.unwrap();
            assert_eq!(part.end, both.len() as u64);
            let mut inside = Within::new(Cursor::new(&both), part.clone()).unwrap();
            assert_eq!(load(&mut inside).unwrap().bytes, references);
            inside.seek(SeekFrom::End(-2)).unwrap();
            let mut last = Vec::new();
            inside.read_to_end(&mut last).unwrap();
            assert_eq!(last, references[references.len() - 2..]);
            let cut = load(Cursor::new(&both[..both.len() - 3])).unwrap();
            assert_eq!((cut.bytes, cut.whole), (calls.clone(), false));
            assert_eq!(cut.references.unwrap().end, part.end - 3);
        }
        let mut twice = Vec::new();
        attach(Cursor::new(&calls), Cursor::new(&references), &mut twice).unwrap();
        let mut both = Vec::new();
        attach(Cursor::new(&twice), Cursor::new(&references), &mut both).unwrap();
        assert!(read(&both).unwrap_err().to_string().contains("out of order"));
    }
}
