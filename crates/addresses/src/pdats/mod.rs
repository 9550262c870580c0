//! PDATS, packed differential addresses and time stamps (Johnson, Ha and Zaidi, "Lossless Trace Compression"), as
//! published for 32-bit addresses, and a variant for 64 bits. ADDRESSES.md has the bytes.

mod decode;
mod encode;

use crate::KINDS;
use crate::error::Fault;
use crate::input::Input;

pub(crate) use decode::Decoder;
pub(crate) use encode::Encoder;

pub(crate) const MAGIC: [u8; 4] = *b"\x93PDT";
const CLASSIC: u8 = 1;
const WIDE: u8 = 2;
const TIMES: u8 = 1;

/// The step that the paper's "exactly 4" is.
pub(crate) const STEP: i16 = 4;

const REPEAT: u8 = 0x80;
const TIME_SHIFT: u32 = 3;
const ADDRESS_SHIFT: u32 = 5;

/// Where a time may be larger than 65,535: as two bytes it is 0, which needs none. In the classic format it stands for
/// 65,536, in the wide one for eight bytes that follow.
const MOST_TIME: u64 = 1 << 16;

/// A four-byte offset that stands for eight bytes that follow.
pub(crate) const ESCAPE: i64 = i32::MIN as i64;

/// The most references of one record: a few bytes must not stand for more than anyone can wait for.
const MOST_RUN: u64 = 1 << 32;

/// The end of a wide trace: a record that is repeated no times, which no reference has. Its count of references follows.
pub(crate) const END: [u8; 2] = [REPEAT, 0];
pub(crate) const END_SIZE: usize = END.len() + 8;

pub(crate) fn end(references: u64) -> [u8; END_SIZE] {
    let mut bytes = [0; END_SIZE];
    bytes[..2].copy_from_slice(&END);
    bytes[2..].copy_from_slice(&references.to_le_bytes());
    bytes
}

/// Why a stretch of records ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Full,
    /// The next record is not all there.
    Short,
    Unknown,
    /// A record stands for more references than any may.
    Long,
    /// The end mark, in full.
    End,
}

impl Stop {
    /// What a batch comes to that stopped here after so many references; `None` where there is more to be had.
    pub(crate) fn settle(self, input: &mut Input, wide: bool, references: u64) -> Option<Result<(), Fault>> {
        match self {
            Stop::Full => Some(Ok(())),
            Stop::Unknown => Some(Err(Fault::damaged(input.offset(), "its header byte has no meaning"))),
            Stop::Long => {
                let what = format!("it stands for more than {MOST_RUN} references, as no record may");
                Some(Err(Fault::damaged(input.offset(), what)))
            }
            Stop::End => Some(check_end(input, references)),
            Stop::Short => match input.more() {
                Ok(true) => None,
                // Only the wide form has an end mark.
                Ok(false) if input.len() == 0 && !wide => Some(Ok(())),
                Ok(false) => Some(Err(Fault::damaged(input.offset(), "it is cut short"))),
                Err(fault) => Some(Err(fault)),
            },
        }
    }
}

/// What must hold at the end mark, which is there in full, after so many references.
fn check_end(input: &mut Input, references: u64) -> Result<(), Fault> {
    let said = u64::from_le_bytes(input.bytes()[2..END_SIZE].try_into().unwrap());
    if input.bytes()[..2] != END {
        return Err(Fault::damaged(input.offset(), "its header byte has no meaning"));
    }
    if said != references {
        return Err(Fault::damaged(
            input.offset(),
            format!("its end counts {said} references, there are {references}"),
        ));
    }
    if input.at_least(END_SIZE + 1)? {
        let offset = input.offset() + END_SIZE as u64;
        return Err(Fault::damaged(offset, "there is more after its end"));
    }
    input.consume(END_SIZE);
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// 64-bit addresses.
    pub wide: bool,
    pub times: bool,
    /// Before the first reference.
    pub start: u64,
    pub steps: [i16; KINDS],
}

impl Header {
    pub(crate) fn classic(times: bool) -> Header {
        Header { wide: false, times, start: 0, steps: [STEP; KINDS] }
    }

    pub(crate) fn wide(times: bool, steps: [i16; KINDS]) -> Header {
        Header { wide: true, times, start: 0, steps }
    }

    pub(crate) fn read(input: &mut Input) -> Result<Header, Fault> {
        let short = |input: &Input| Fault::damaged(input.offset(), "its header is cut short");
        if !input.at_least(16)? {
            return Err(short(input));
        }
        let bytes: [u8; 16] = input.bytes()[..16].try_into().unwrap();
        if bytes[..4] != MAGIC {
            return Err(Fault::damaged(0, "it does not begin with the mark 93 50 44 54"));
        }
        let wide = match bytes[4] {
            CLASSIC => false,
            WIDE => true,
            other => return Err(Fault::damaged(4, format!("version {other} is not known, only 1 and 2"))),
        };
        if bytes[5] & !TIMES != 0 || bytes[6..8] != [0, 0] {
            return Err(Fault::damaged(5, "its header has flags that are not known"));
        }
        let start = u64::from_le_bytes(bytes[8..].try_into().unwrap());
        input.consume(16);
        let mut header = Header { wide, times: bytes[5] & TIMES != 0, start, steps: [STEP; KINDS] };
        if wide {
            header.steps = read_steps(input)?.ok_or_else(|| short(input))?;
        }
        Ok(header)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let version = if self.wide { WIDE } else { CLASSIC };
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, u8::from(self.times) * TIMES, 0, 0]);
        bytes.extend(self.start.to_le_bytes());
        if self.wide {
            bytes.extend(self.steps.iter().flat_map(|step| step.to_le_bytes()));
        }
        bytes
    }
}

pub(crate) fn read_steps(input: &mut Input) -> Result<Option<[i16; KINDS]>, Fault> {
    const SIZE: usize = 2 * KINDS;
    if !input.at_least(SIZE)? {
        return Ok(None);
    }
    let bytes = &input.bytes()[..SIZE];
    let steps = std::array::from_fn(|kind| i16::from_le_bytes([bytes[2 * kind], bytes[2 * kind + 1]]));
    input.consume(SIZE);
    Ok(Some(steps))
}

/// How many bytes a number needs in two's complement, 1 to 8.
pub(crate) fn width(offset: i64) -> usize {
    let bits = 65 - (offset ^ (offset >> 63)).leading_zeros();
    (bits as usize).div_ceil(8)
}

/// By [`width`], the address code of one, two and four bytes, and those bytes. Where four are not enough, it is as if
/// they were: the escape is four bytes, and what follows it is seen to apart.
pub(crate) const NARROW: [(u8, u8); 9] =
    [(0, 0), (1, 1), (2, 2), (3, 4), (3, 4), (3, 4), (3, 4), (3, 4), (3, 4)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths() {
        for (offset, bytes) in [
            (0, 1),
            (-1, 1),
            (127, 1),
            (-128, 1),
            (128, 2),
            (-129, 2),
            (32_767, 2),
            (32_768, 3),
            (-0x80_0000, 3),
            (0x7fff_ffff, 4),
            (-0x8000_0000, 4),
            (0x8000_0000, 5),
            (i64::MAX, 8),
            (i64::MIN, 8),
        ] {
            assert_eq!(width(offset), bytes, "{offset}");
        }
    }

    #[test]
    fn headers_come_back() {
        for header in [
            Header::classic(false),
            Header { start: u64::MAX, ..Header::classic(true) },
            Header::wide(true, [1, -1, 2, -2, i16::MAX, i16::MIN, 0, 4]),
        ] {
            let mut input = Input::new(Box::new(std::io::Cursor::new(header.bytes())));
            assert_eq!(Header::read(&mut input).unwrap(), header);
            assert_eq!(input.len(), 0);
        }
    }
}
