//! Reading from the middle.

use std::io::{Read, Seek, SeekFrom};

use super::{BLOCK_HEADER, Decoder, END_MARK, ENTRY, FOOTER, HEADER, checksum, number, read_header};
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
    let fields = read_header(&mut Input::new(Box::new(std::io::Cursor::new(head)))).map_err(damaged)?;
    let (offset, before) = find(&mut from, skip)?;
    from.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let input = Input::from(Box::new(from), offset);
    let mut reader = Reader::with(Format::Rfa, input, Box::new(Decoder::new(fields, before)), before);
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
    from.seek(SeekFrom::Start(begin)).map_err(failed)?;
    let mut bytes = Vec::new();
    // An index is small; what says that it is not is damaged.
    let most = length / 2 + (BLOCK_HEADER + ENTRY + FOOTER) as u64;
    if size > most {
        return Err(damaged(at));
    }
    from.take(size).read_to_end(&mut bytes).map_err(failed)?;
    let entries = bytes.get(BLOCK_HEADER..bytes.len() - FOOTER).ok_or_else(|| damaged(begin))?;
    let said = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
    if checksum(&[&bytes[..8], &bytes[BLOCK_HEADER..bytes.len() - 4]]) != said {
        return Err(damaged(begin));
    }
    // No trace has so many that counting on from there would not end.
    let most = u64::MAX / 2;
    let groups = entries.chunks_exact(ENTRY).map(|entry| (number(entry), number(&entry[8..])));
    Ok(groups.take_while(|(_, before)| *before <= skip.min(most)).last().unwrap_or((HEADER as u64, 0)))
}
