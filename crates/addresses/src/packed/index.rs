//! Reading from the middle.

use std::io::{BufReader, Read, Seek, SeekFrom};

use super::{BLOCK_HEADER, Decoder, END_MARK, ENTRY, FOOTER, HEADER, number, read_header};
use crate::error::{Error, Fault};
use crate::input::Input;
use crate::{Format, Reader};

/// Opens a packed trace behind so many references. Only the group that they end in is read, and not all of it.
pub fn open_after<R: Read + Seek + Send + 'static>(mut from: R, skip: u64) -> Result<Reader, Error> {
    let damaged = |fault: Fault| fault.at_record(Format::Rfa, 1);
    let failed = |error| Error::Read { record: 1, offset: 0, error };
    from.rewind().map_err(failed)?;
    let mut head = Vec::new();
    Read::by_ref(&mut from).take(HEADER as u64).read_to_end(&mut head).map_err(failed)?;
    let (fields, way) =
        read_header(&mut Input::new(Box::new(std::io::Cursor::new(head)))).map_err(damaged)?;
    let (offset, before) = find(&mut from, skip)?;
    from.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let input = Input::from(Box::new(from), offset);
    let mut reader = Reader::with(Format::Rfa, input, Box::new(Decoder::new(fields, way, before)), before);
    reader.skip(skip - before);
    Ok(reader)
}

/// Where to begin, and how many references are before that.
fn find<R: Read + Seek>(from: &mut R, skip: u64) -> Result<(u64, u64), Error> {
    let failed = |error| Error::Read { record: 1, offset: 0, error };
    let length = from.seek(SeekFrom::End(0)).map_err(failed)?;
    let damaged = |offset: u64| {
        let what = "its index is cut short or damaged; it can be read from the beginning only";
        Fault::damaged(offset, what).at_record(Format::Rfa, 1)
    };
    let mut footer = [0; FOOTER];
    let at = length.checked_sub(FOOTER as u64).ok_or_else(|| damaged(length))?;
    from.seek(SeekFrom::Start(at)).map_err(failed)?;
    from.read_exact(&mut footer).map_err(failed)?;
    let begin = number(&footer[8..]);
    let size = length.checked_sub(begin).filter(|size| *size >= (BLOCK_HEADER + FOOTER) as u64);
    let size = size.filter(|_| footer[16..] == END_MARK).ok_or_else(|| damaged(at))?;
    let entries = size - (BLOCK_HEADER + FOOTER) as u64;
    if !entries.is_multiple_of(ENTRY as u64) {
        return Err(damaged(begin));
    }
    from.seek(SeekFrom::Start(begin)).map_err(failed)?;
    // An entry at a time: what says that there are very many may be damaged.
    let mut from = BufReader::new(from);
    let mut head = [0; BLOCK_HEADER];
    from.read_exact(&mut head).map_err(failed)?;
    let mut crc = flate2::Crc::new();
    crc.update(&head[..8]);
    // No trace has so many that counting on from there would not end.
    let most = skip.min(u64::MAX / 2);
    let (mut found, mut past) = ((HEADER as u64, 0), false);
    for _ in 0..entries / ENTRY as u64 {
        let mut entry = [0; ENTRY];
        from.read_exact(&mut entry).map_err(failed)?;
        crc.update(&entry);
        let before = number(&entry[8..]);
        past |= before > most;
        if !past {
            found = (number(&entry), before);
        }
    }
    crc.update(&footer[..16]);
    if crc.sum() != u32::from_le_bytes(head[8..].try_into().expect("four bytes")) {
        return Err(damaged(begin));
    }
    Ok(found)
}
