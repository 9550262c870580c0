//! Reading tokens back, packed or plain, without ever trusting what they say.

use refrain_fold::bundle;
use refrain_fold::ranks::TooMuch;

use crate::pack::Decoder;
use crate::token::{Coding, Field, unzigzag};

/// Why a section's content is refused; the container adds which section and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad(pub String);

impl Bad {
    pub fn new(what: impl Into<String>) -> Bad {
        Bad(what.into())
    }
}

impl From<TooMuch> for Bad {
    fn from(_: TooMuch) -> Bad {
        Bad(bundle::Error::TooMuchWork.to_string())
    }
}

pub struct Get<'a> {
    source: Source<'a>,
    /// Plain bytes that may still come: what the header announced, less what was read.
    left: usize,
}

enum Source<'a> {
    Plain(&'a [u8]),
    Packed(Box<Decoder>),
}

impl<'a> Get<'a> {
    pub fn plain(bytes: &'a [u8]) -> Get<'a> {
        Get { left: bytes.len(), source: Source::Plain(bytes) }
    }

    pub fn packed(decoder: Decoder, plain_len: usize) -> Get<'a> {
        Get { left: plain_len, source: Source::Packed(Box::new(decoder)) }
    }

    pub fn left(&self) -> usize {
        self.left
    }

    pub fn get(&mut self, field: Field, hint: u64) -> Result<u64, Bad> {
        let value = match &mut self.source {
            Source::Packed(decoder) => decoder.token(field, hint),
            Source::Plain(bytes) => take(bytes, field)?,
        };
        if field == Field::Bits && u64::from(crate::token::bits(value)) > hint {
            return Err(Bad::new("a number is too large for its field"));
        }
        let len = crate::token::plain_len(field, value);
        self.left = self.left.checked_sub(len).ok_or_else(|| Bad::new("it is longer than announced"))?;
        Ok(value)
    }

    pub fn small<T: TryFrom<u64>>(&mut self, field: Field, hint: u64) -> Result<T, Bad> {
        T::try_from(self.get(field, hint)?).map_err(|_| Bad::new("a number is too large for its field"))
    }

    pub fn signed(&mut self, field: Field, hint: u64) -> Result<i64, Bad> {
        self.get(field, hint).map(unzigzag)
    }

    /// How many elements follow; each takes at least one plain byte.
    pub fn count(&mut self, field: Field, hint: u64) -> Result<usize, Bad> {
        let count = self.get(field, hint)?;
        match usize::try_from(count) {
            Ok(count) if count <= self.left => Ok(count),
            _ => Err(Bad(format!("{count} elements are announced, more than can be there"))),
        }
    }

    pub fn measure(&mut self, field: Field, hint: u64) -> Result<u64, Bad> {
        let bits: u32 = self.small(field, hint)?;
        match bits {
            0 | 1 => Ok(bits.into()),
            2..=64 => Ok(1 << (bits - 1) | self.get(Field::Bits, u64::from(bits) - 1)?),
            _ => Err(Bad::new("a number of more than 64 bits")),
        }
    }

    pub fn text(&mut self, hint: u64) -> Result<String, Bad> {
        let mut bytes = Vec::new();
        loop {
            match self.small(Field::Text, hint)? {
                0 => break,
                1 => bytes.push(self.small(Field::Text, hint)?),
                byte => bytes.push(byte),
            }
        }
        String::from_utf8(bytes).map_err(|_| Bad::new("text that is not UTF-8"))
    }
}

fn take(bytes: &mut &[u8], field: Field) -> Result<u64, Bad> {
    match field.coding() {
        Coding::Byte => byte(bytes).map(u64::from),
        _ => varint(bytes),
    }
}

fn byte(bytes: &mut &[u8]) -> Result<u8, Bad> {
    let (&first, rest) = bytes.split_first().ok_or_else(|| Bad::new("it ends early"))?;
    *bytes = rest;
    Ok(first)
}

pub fn varint(bytes: &mut &[u8]) -> Result<u64, Bad> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = byte(bytes)?;
        let bits = u64::from(byte & 0x7f);
        // A last byte of zero would be a second way to write the same number.
        if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
            break;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Bad::new("a number is badly written"))
}
