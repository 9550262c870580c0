//! Compressed traces: told by their first bytes when read, by their name when written.

use std::io::{self, BufReader, Cursor, Read, Write};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;
use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};

use crate::lz4::Lz4;
use crate::lzw::Lzw;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Zstd,
    Xz,
    Bzip2,
    Lz4,
    /// `.Z` of the old `compress`. It is read, not written: everything else is smaller.
    Lzw,
}

/// Enough of a file to know what compressed it.
const MAGIC: usize = 10;

/// The largest window of `zstd --long=31`.
const WINDOW: u32 = 31;

impl Compression {
    /// The name without the extension that says how it is compressed, and what that is.
    pub fn of_name(name: &str) -> (&str, Compression) {
        for (extension, compression) in [
            (".gz", Compression::Gzip),
            (".zst", Compression::Zstd),
            (".xz", Compression::Xz),
            (".bz2", Compression::Bzip2),
            (".lz4", Compression::Lz4),
            (".Z", Compression::Lzw),
        ] {
            if let Some(stem) = name.strip_suffix(extension) {
                return (stem, compression);
            }
        }
        (name, Compression::None)
    }

    pub fn of_bytes(bytes: &[u8]) -> Compression {
        if bytes.starts_with(b"\x1f\x8b") {
            Compression::Gzip
        } else if bytes.starts_with(b"\x28\xb5\x2f\xfd") {
            Compression::Zstd
        } else if bytes.starts_with(b"\xfd7zXZ\0") {
            Compression::Xz
        } else if is_bzip2(bytes) {
            Compression::Bzip2
        } else if bytes.starts_with(&crate::lz4::MARK) || bytes.starts_with(&crate::lz4::OLD_MARK) {
            Compression::Lz4
        } else if bytes.starts_with(&crate::lzw::MARK) {
            Compression::Lzw
        } else {
            Compression::None
        }
    }

    /// Those to choose from; without a choice, only 0.
    pub fn levels(self) -> std::ops::RangeInclusive<u32> {
        match self {
            Compression::None | Compression::Lz4 | Compression::Lzw => 0..=0,
            Compression::Gzip | Compression::Bzip2 => 1..=9,
            Compression::Zstd => 1..=22,
            Compression::Xz => 0..=9,
        }
    }
}

/// Three letters are too few to tell a file by: a block or the end must follow.
fn is_bzip2(bytes: &[u8]) -> bool {
    let (block, end) = (b"1AY&SY", b"\x17rE8P\x90");
    matches!(bytes, [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..] if rest.starts_with(block) || rest.starts_with(end))
}

/// The beginning of an input that was looked at.
pub(crate) struct Peeked {
    pub head: Vec<u8>,
    /// Why there is no more of it.
    pub failure: Option<io::Error>,
    rest: Box<dyn Read + Send>,
}

pub(crate) fn peek(mut rest: Box<dyn Read + Send>, bytes: usize) -> Peeked {
    let mut head = Vec::new();
    let failure = rest.by_ref().take(bytes as u64).read_to_end(&mut head).err();
    Peeked { head, failure, rest }
}

impl Peeked {
    /// As if nobody had looked: what could not be read cannot be read again.
    pub(crate) fn whole(self) -> Box<dyn Read + Send> {
        let head = Cursor::new(self.head);
        match self.failure {
            Some(error) => Box::new(head.chain(Failed(Some(error)))),
            None => Box::new(head.chain(self.rest)),
        }
    }
}

/// Fails once, then ends.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Unpacks what is compressed; once, since a file may unpack to itself.
pub(crate) fn unpacked(from: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let peeked = peek(from, MAGIC);
    let compression = Compression::of_bytes(&peeked.head);
    let from = peeked.whole();
    let buffered = |from| BufReader::with_capacity(1 << 16, from);
    Ok(match compression {
        Compression::None => Box::new(from),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(buffered(from))),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered(from))?;
            decoder.window_log_max(WINDOW)?;
            Box::new(decoder)
        }
        Compression::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(buffered(from))),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(buffered(from))),
        Compression::Lz4 => Box::new(Lz4::new(buffered(from))),
        Compression::Lzw => Box::new(Lzw::new(buffered(from))),
    })
}

/// Compresses what is written to it.
pub enum Packed<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
    Xz(XzEncoder<W>),
    Bzip2(BzEncoder<W>),
    Lz4(Box<FrameEncoder<W>>),
}

impl<W: Write> Packed<W> {
    /// At this level, or the library's own. What cannot be written is an error.
    pub fn new(into: W, compression: Compression, level: Option<u32>) -> io::Result<Packed<W>> {
        Ok(match compression {
            Compression::None => Packed::Plain(into),
            Compression::Gzip => {
                Packed::Gzip(GzEncoder::new(into, flate2::Compression::new(level.unwrap_or(6))))
            }
            Compression::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(into, level.unwrap_or(3) as i32)?;
                encoder.include_checksum(true)?;
                Packed::Zstd(encoder)
            }
            Compression::Xz => Packed::Xz(XzEncoder::new(into, level.unwrap_or(6))),
            Compression::Bzip2 => {
                Packed::Bzip2(BzEncoder::new(into, bzip2::Compression::new(level.unwrap_or(9))))
            }
            Compression::Lz4 => {
                let frame = FrameInfo::new().block_size(BlockSize::Max256KB).content_checksum(true);
                Packed::Lz4(Box::new(FrameEncoder::with_frame_info(frame, into)))
            }
            Compression::Lzw => {
                return Err(io::Error::new(io::ErrorKind::Unsupported, "`.Z` is read and not written"));
            }
        })
    }

    /// Without this the end is missing.
    pub fn finish(self) -> io::Result<W> {
        let mut into = match self {
            Packed::Plain(into) => into,
            Packed::Gzip(encoder) => encoder.finish()?,
            Packed::Zstd(encoder) => encoder.finish()?,
            Packed::Xz(encoder) => encoder.finish()?,
            Packed::Bzip2(encoder) => encoder.finish()?,
            Packed::Lz4(encoder) => encoder.finish()?,
        };
        into.flush()?;
        Ok(into)
    }
}

impl<W: Write> Write for Packed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Packed::Plain(into) => into.write(bytes),
            Packed::Gzip(encoder) => encoder.write(bytes),
            Packed::Zstd(encoder) => encoder.write(bytes),
            Packed::Xz(encoder) => encoder.write(bytes),
            Packed::Bzip2(encoder) => encoder.write(bytes),
            Packed::Lz4(encoder) => encoder.write(bytes),
        }
    }

    /// Only of a plain file: a compressed one would grow at every flush.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Packed::Plain(into) => into.flush(),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(bytes: &[u8], compression: Compression) -> Vec<u8> {
        let mut packed = Packed::new(Vec::new(), compression, None).unwrap();
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    fn unpack(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        unpacked(Box::new(Cursor::new(bytes)))?.read_to_end(&mut out)?;
        Ok(out)
    }

    const ALL: [Compression; 5] =
        [Compression::Gzip, Compression::Zstd, Compression::Xz, Compression::Bzip2, Compression::Lz4];

    #[test]
    fn what_is_packed_comes_back() {
        for bytes in [vec![], vec![7], (0..100_000u32).flat_map(u32::to_le_bytes).collect()] {
            for compression in ALL {
                let packed = pack(&bytes, compression);
                assert_eq!(Compression::of_bytes(&packed), compression);
                assert_eq!(unpack(packed.clone()).unwrap(), bytes);
                // One file after the other is one file.
                assert_eq!(unpack([&packed[..], &packed].concat()).unwrap(), [&bytes[..], &bytes].concat());
                assert_eq!(unpack(pack(&packed, Compression::Gzip)).unwrap(), packed);
            }
        }
    }

    #[test]
    fn what_is_cut_short_is_noticed() {
        for compression in ALL {
            let packed = pack(b"what is cut short is noticed", compression);
            assert!(unpack(packed[..packed.len() - 1].to_vec()).is_err(), "{compression:?}");
        }
    }

    /// Each has checksums: what is read is right, or there is an error.
    #[test]
    fn bits_that_are_flipped_are_noticed() {
        let bytes: Vec<u8> = (0..3000u32).flat_map(|i| (i * i % 1009).to_le_bytes()).collect();
        for compression in ALL {
            let packed = pack(&bytes, compression);
            for bit in (0..8 * packed.len()).step_by(7) {
                let mut packed = packed.clone();
                packed[bit / 8] ^= 1 << (bit % 8);
                // The mark itself: then it is some other file. Gzip does not check all of its header.
                if Compression::of_bytes(&packed) == compression
                    && let Ok(read) = unpack(packed)
                {
                    assert!(read == bytes, "{compression:?}, bit {bit}");
                }
            }
        }
    }

    #[test]
    fn names() {
        assert_eq!(Compression::of_name("a.pdt.gz"), ("a.pdt", Compression::Gzip));
        assert_eq!(Compression::of_name("a.zst"), ("a", Compression::Zstd));
        assert_eq!(Compression::of_name("a.pdt"), ("a.pdt", Compression::None));
        assert_eq!(Compression::of_name("a.din.bz2"), ("a.din", Compression::Bzip2));
        assert_eq!(Compression::of_name("a.din.lz4"), ("a.din", Compression::Lz4));
        assert_eq!(Compression::of_name("a.din.Z"), ("a.din", Compression::Lzw));
    }

    #[test]
    fn letters_are_no_compressed_file() {
        assert_eq!(Compression::of_bytes(b"BZh9 1000\n"), Compression::None);
        assert_eq!(Compression::of_bytes(b"BZh91AY&SY"), Compression::Bzip2);
    }

    #[test]
    fn what_is_only_read_is_not_written() {
        let error = Packed::new(Vec::new(), Compression::Lzw, None).err().unwrap();
        assert!(error.to_string().contains("not written"), "{error}");
    }
}
