//! Files of `lz4`: frames one after the other, today's or those of `lz4 -l`, and frames to skip between them.
//!
//! The blocks are unpacked by `lz4_flex`. Its own reader of frames takes a file cut between two blocks for a whole one, so frames
//! are read here.

use std::io::{self, Read};

use lz4_flex::block::decompress_into_with_dict;
use xxhash_rust::xxh32::{Xxh32, xxh32};

pub(crate) const MARK: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
pub(crate) const OLD_MARK: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];

/// A block refers to at most so many bytes before it.
const WINDOW: usize = 1 << 16;
/// Bytes of a block of the old kind, unpacked and packed at most.
const OLD_BLOCK: usize = 8 << 20;
const OLD_PACKED: u32 = (OLD_BLOCK + OLD_BLOCK / 255 + 16) as u32;

/// Bits of the byte behind the mark.
const LINKED_NOT: u8 = 0x20;
const BLOCK_SUMS: u8 = 0x10;
const LENGTH: u8 = 0x08;
const SUM: u8 = 0x04;
const DICTIONARY: u8 = 0x01;

/// Unpacks all frames as one file.
pub(crate) struct Lz4<R> {
    from: R,
    frame: Option<Frame>,
    /// The window, and behind it what was unpacked last. From `at` on it is yet to be read.
    out: Vec<u8>,
    at: usize,
    packed: Vec<u8>,
}

/// What the header of a frame says, and what was seen of it.
struct Frame {
    old: bool,
    linked: bool,
    block_sums: bool,
    /// Bytes of a block, at most.
    block: usize,
    length: Option<u64>,
    sum: Option<Box<Xxh32>>,
    seen: u64,
}

impl<R: Read> Lz4<R> {
    pub(crate) fn new(from: R) -> Lz4<R> {
        Lz4 { from, frame: None, out: Vec::new(), at: 0, packed: Vec::new() }
    }

    /// Unpacks a block, or reads what stands between blocks. False at the end.
    fn step(&mut self) -> io::Result<bool> {
        match self.frame.take() {
            None => match self.number_or_end()? {
                Some(mark) => self.open(mark)?,
                None => return Ok(false),
            },
            Some(mut frame) => {
                let size = match self.number_or_end()? {
                    // The old kind has no end but that of the file, or a frame behind it.
                    None if frame.old => return Ok(false),
                    None => return Err(cut()),
                    Some(mark) if frame.old && mark > OLD_PACKED => {
                        self.open(mark)?;
                        return Ok(true);
                    }
                    Some(size) => size,
                };
                if size == 0 && !frame.old {
                    self.close(&frame)?;
                } else {
                    self.block(&mut frame, size)?;
                    self.frame = Some(frame);
                }
            }
        }
        Ok(true)
    }

    fn open(&mut self, mark: u32) -> io::Result<()> {
        // Nothing refers to what another frame holds.
        self.out.clear();
        self.at = 0;
        if mark == u32::from_le_bytes(OLD_MARK) {
            self.frame = Some(Frame {
                old: true,
                linked: false,
                block_sums: false,
                block: OLD_BLOCK,
                length: None,
                sum: None,
                seen: 0,
            });
            return Ok(());
        }
        if mark & 0xffff_fff0 == 0x184d_2a50 {
            let length = u64::from(self.number()?);
            let skipped = io::copy(&mut self.from.by_ref().take(length), &mut io::sink())?;
            return if skipped == length { Ok(()) } else { Err(cut()) };
        }
        if mark != u32::from_le_bytes(MARK) {
            return Err(wrong("what follows a frame is none"));
        }
        let mut header = vec![0; 2];
        self.fill(&mut header)?;
        let (flags, sizes) = (header[0], header[1]);
        if flags >> 6 != 1 || flags & 2 != 0 || sizes & 0x8f != 0 || sizes >> 4 < 4 {
            return Err(wrong("its frame is of a kind that is not known"));
        }
        let more = if flags & LENGTH != 0 { 8 } else { 0 } + if flags & DICTIONARY != 0 { 4 } else { 0 };
        header.resize(2 + more, 0);
        self.fill(&mut header[2..])?;
        let mut check = [0];
        self.fill(&mut check)?;
        if check[0] != (xxh32(&header, 0) >> 8) as u8 {
            return Err(wrong("the checksum of a frame's header is not that of its bytes"));
        }
        if flags & DICTIONARY != 0 {
            return Err(wrong("it was packed with a dictionary, which is not there"));
        }
        let length =
            header.get(2..10).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")));
        self.frame = Some(Frame {
            old: false,
            linked: flags & LINKED_NOT == 0,
            block_sums: flags & BLOCK_SUMS != 0,
            // 64 KiB, 256 KiB, 1 MiB or 4 MiB.
            block: 1 << (8 + 2 * u32::from(sizes >> 4)),
            length,
            sum: (flags & SUM != 0).then(|| Box::new(Xxh32::new(0))),
            seen: 0,
        });
        Ok(())
    }

    fn block(&mut self, frame: &mut Frame, size: u32) -> io::Result<()> {
        let plain = !frame.old && size >> 31 == 1;
        let bytes = (size & 0x7fff_ffff) as usize;
        let most = if frame.old { OLD_PACKED as usize } else { frame.block };
        if bytes > most {
            return Err(wrong("a block is larger than its frame allows"));
        }
        let mut packed = std::mem::take(&mut self.packed);
        packed.resize(bytes, 0);
        self.fill(&mut packed)?;
        if frame.block_sums && self.number()? != xxh32(&packed, 0) {
            return Err(wrong("the checksum of a block is not that of its bytes"));
        }
        let kept = if frame.linked { self.out.len().min(WINDOW) } else { 0 };
        self.out.drain(..self.out.len() - kept);
        if plain {
            self.out.extend_from_slice(&packed);
        } else {
            // Bytes that a block cannot hold need no room: each gives 255 at most.
            let room = frame.block.min(bytes.saturating_mul(255));
            self.out.resize(kept + room, 0);
            let (window, into) = self.out.split_at_mut(kept);
            let unpacked = decompress_into_with_dict(&packed, into, window);
            let unpacked =
                unpacked.map_err(|error| wrong(&format!("a block cannot be unpacked: {error}")))?;
            self.out.truncate(kept + unpacked);
        }
        self.packed = packed;
        self.at = kept;
        frame.seen += (self.out.len() - kept) as u64;
        if let Some(sum) = &mut frame.sum {
            sum.update(&self.out[kept..]);
        }
        Ok(())
    }

    fn close(&mut self, frame: &Frame) -> io::Result<()> {
        if frame.length.is_some_and(|length| length != frame.seen) {
            return Err(wrong("a frame is not as long as its header says"));
        }
        match &frame.sum {
            Some(sum) if self.number()? != sum.digest() => {
                Err(wrong("the checksum of a frame is not that of its bytes"))
            }
            _ => Ok(()),
        }
    }

    fn fill(&mut self, into: &mut [u8]) -> io::Result<()> {
        self.from.read_exact(into).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => cut(),
            _ => error,
        })
    }

    fn number(&mut self) -> io::Result<u32> {
        self.number_or_end()?.ok_or_else(cut)
    }

    fn number_or_end(&mut self) -> io::Result<Option<u32>> {
        let mut bytes = Vec::with_capacity(4);
        self.from.by_ref().take(4).read_to_end(&mut bytes)?;
        match (bytes.len(), bytes.try_into()) {
            (0, _) => Ok(None),
            (_, Ok(bytes)) => Ok(Some(u32::from_le_bytes(bytes))),
            _ => Err(cut()),
        }
    }
}

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.out.len() {
            if into.is_empty() || !self.step()? {
                return Ok(0);
            }
        }
        let count = into.len().min(self.out.len() - self.at);
        into[..count].copy_from_slice(&self.out[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the lz4 file is cut short")
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the lz4 file is damaged: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    use std::io::Write;

    fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        Lz4::new(bytes).read_to_end(&mut out).map(|_| out)
    }

    fn frame(info: FrameInfo, bytes: &[u8]) -> Vec<u8> {
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn text() -> Vec<u8> {
        (0..40_000u32).flat_map(|i| format!("{} {:x}\n", i % 3, 0x1000 + i * i % 977).into_bytes()).collect()
    }

    #[test]
    fn frames_of_all_kinds() {
        let bytes = text();
        for mode in [BlockMode::Linked, BlockMode::Independent] {
            for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max4MB] {
                let info = FrameInfo::new().block_mode(mode).block_size(size);
                let all = [
                    info.clone(),
                    info.clone().block_checksums(true),
                    info.clone().content_checksum(true),
                    info.clone().content_size(Some(bytes.len() as u64)),
                ];
                for info in all {
                    assert!(unpack(&frame(info, &bytes)).unwrap() == bytes);
                }
            }
        }
    }

    #[test]
    fn frames_to_skip_and_frames_of_the_old_kind() {
        let one = frame(FrameInfo::new(), b"one ");
        let skipped = [&0x184d_2a53u32.to_le_bytes()[..], &3u32.to_le_bytes(), b"???"].concat();
        let block = lz4_flex::block::compress(b"two ");
        let old = [&OLD_MARK[..], &(block.len() as u32).to_le_bytes(), &block].concat();
        let all = [&one[..], &skipped, &old, &one, &skipped, &old].concat();
        assert_eq!(unpack(&all).unwrap(), b"one two one two ");
    }

    #[test]
    fn cut_anywhere_but_between_frames() {
        let bytes = text();
        let info = FrameInfo::new().block_size(BlockSize::Max64KB).content_checksum(true);
        let whole = frame(info, &bytes);
        for end in (1..whole.len()).step_by(97).chain(whole.len() - 12..whole.len()) {
            assert!(unpack(&whole[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn sizes_that_are_not_true_take_no_memory() {
        let block = |size: u32| [&OLD_MARK[..], &size.to_le_bytes()].concat();
        for size in [OLD_PACKED, OLD_PACKED + 1, u32::MAX] {
            assert!(unpack(&block(size)).is_err());
        }
        let whole = frame(FrameInfo::new().block_size(BlockSize::Max64KB), b"a block");
        for size in [0x10001u32, 0x7fff_ffff, 0xffff_ffff] {
            let mut bytes = whole.clone();
            bytes[7..11].copy_from_slice(&size.to_le_bytes());
            assert!(unpack(&bytes).is_err());
        }
    }
}
