//! Traces whose chunks are left where they are.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use crate::container::{self, LONGEST_HEADER};
use crate::crc::Crc;
use crate::error::Error;

/// A trace file without its chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// For [`read`](crate::read) and its like. A file that is no trace is here as it is: they say what is wrong with it.
    pub bytes: Vec<u8>,
    /// Where in the file its chunks are, as far as the file goes: for
    /// [`Section::within`](crate::chunks::Section::within).
    pub chunks: Option<Range<u64>>,
    /// Whether all bytes of the chunks are there.
    pub whole: bool,
    /// Of the file.
    pub length: u64,
}

/// Reads a trace but for its chunks, which may be larger than memory.
pub fn load<R: Read + Seek>(mut from: R) -> io::Result<Loaded> {
    let length = from.seek(SeekFrom::End(0))?;
    from.rewind()?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut from).take(LONGEST_HEADER as u64).read_to_end(&mut bytes)?;
    let header = container::directory(&bytes).ok();
    let found =
        header.and_then(|(header, _)| header.chunks().map(|chunks| chunks.start as u64..chunks.end as u64));
    // Whatever is wrong before the chunks, or behind them, is for whoever reads the bytes to say.
    let Some(chunks) = found.filter(|chunks| chunks.start <= length && chunks.end >= length) else {
        from.read_to_end(&mut bytes)?;
        return Ok(Loaded { bytes, chunks: None, whole: true, length });
    };
    let before = chunks.start - bytes.len().min(chunks.start as usize) as u64;
    from.take(before).read_to_end(&mut bytes)?;
    bytes.truncate(chunks.start as usize);
    let bytes = container::without_chunks(&bytes).unwrap_or(bytes);
    let whole = chunks.end == length;
    Ok(Loaded { bytes, chunks: Some(chunks.start..length), whole, length })
}

/// Writes a trace (as [`write`](crate::write) gives it) with a section of chunks behind it. The section is read twice:
/// its checksum stands before it.
pub fn append<R: Read + Seek>(trace: &[u8], mut chunks: R, mut out: impl Write) -> Result<(), Error> {
    let failed = |error| Error::Io { action: "copy", path: "the chunks".into(), error };
    let mut crc = Crc::new();
    let mut length = 0;
    chunks.rewind().map_err(failed)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = match chunks.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        crc.update(&buffer[..read]);
        length += read as u64;
    }
    out.write_all(&container::with_chunks(trace, length, crc.sum())?).map_err(failed)?;
    chunks.rewind().map_err(failed)?;
    let copied = io::copy(&mut chunks.take(length), &mut out).map_err(failed)?;
    if copied != length {
        return Err(failed(io::ErrorKind::UnexpectedEof.into()));
    }
    out.flush().map_err(failed)
}
