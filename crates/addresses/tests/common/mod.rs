//! Traces to test with: random, but the same in every run.
#![allow(dead_code)]

use fastrand::Rng;
use refrain_addresses::{Batch, Error, Fields, Format, Options, Reader, Reference, Writer};

pub fn pick<T: Copy>(random: &mut Rng, from: &[T]) -> T {
    from[random.usize(..from.len())]
}

/// Reads, writes and fetches of lines of 16 bytes that meet each other often, each within a line.
pub fn small(random: &mut Rng, count: usize) -> Vec<Reference> {
    let reference = |random: &mut Rng| {
        let near = random.u64(..12) * random.u64(..12);
        Reference { kind: random.u8(..3), address: 16 * near + random.u64(..16), ..Reference::default() }
    };
    (0..count).map(|_| reference(random)).collect()
}

/// What all references of a trace keep to.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub address: u64,
    pub kinds: u64,
    /// Times rise by this at most; without it they are anything.
    pub time: Option<u64>,
}

impl Bounds {
    pub const NONE: Bounds = Bounds { address: u64::MAX, kinds: 8, time: None };

    /// What a format can write.
    pub fn of(format: Format) -> Bounds {
        match format {
            Format::Pdats => Bounds { address: u64::from(u32::MAX), time: Some(65_536), ..Bounds::NONE },
            Format::Pdi => Bounds { address: u64::from(u32::MAX), ..Bounds::NONE },
            Format::Lackey => Bounds { kinds: 3, ..Bounds::NONE },
            Format::Dinero | Format::Xdin => Bounds { kinds: 4, ..Bounds::NONE },
            _ => Bounds::NONE,
        }
    }

    pub fn and(self, other: Bounds) -> Bounds {
        let time = match (self.time, other.time) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Bounds { address: self.address.min(other.address), kinds: self.kinds.min(other.kinds), time }
    }
}

/// The formats that can be written.
pub fn written() -> impl Iterator<Item = Format> {
    Format::ALL.into_iter().filter(|format| format.is_written())
}

/// Runs, strides, jumps near and far, and extremes.
pub fn references(random: &mut Rng, count: usize, fields: Fields, bounds: Bounds) -> Vec<Reference> {
    let mut out: Vec<Reference> = Vec::with_capacity(count);
    let mut last = [0u64; 8];
    let mut time = if random.u64(..2) == 0 { 0 } else { random.u64(..) >> 1 };
    let words: Vec<u32> = (0..400).map(|_| random.u64(..) as u32).collect();
    while out.len() < count {
        let kind = random.u64(..bounds.kinds) as u8;
        let offset = match random.u64(..8) {
            0..3 => 4,
            3 => random.u64(..) as i8 as i64,
            4 => random.u64(..) as i16 as i64,
            5 => random.u64(..) as i32 as i64,
            6 => random.u64(..) as i64,
            _ => pick(
                random,
                &[0, -1, 127, 128, -128, -129, 32767, -32769, i32::MIN as i64, i64::MIN, i64::MAX, 8],
            ),
        };
        let step = match (random.u64(..6), bounds.time) {
            (0..2, _) => 1,
            (2, _) => 0,
            (3, _) => random.u64(..256),
            (4, bound) => random.u64(..bound.unwrap_or(1 << 20) + 1),
            (_, Some(bound)) => bound,
            (_, None) => random.u64(..),
        };
        let run = if random.u64(..40) == 0 {
            pick(random, &[254, 255, 256, 257, 300, 9000])
        } else {
            random.u64(..4)
        };
        for _ in 0..=run {
            let address = &mut last[usize::from(kind)];
            *address = address.wrapping_add(offset as u64) & bounds.address;
            time = time.wrapping_add(step);
            let mut reference = Reference { kind, address: *address, ..Reference::default() };
            if fields.times {
                reference.time = time;
            }
            if fields.words && kind & 3 == 2 {
                reference.word =
                    if random.u64(..4) == 0 { random.u64(..) as u32 } else { pick(random, &words[..]) };
            }
            if fields.sizes {
                reference.size = pick(random, &[0, 1, 2, 4, 8, 16, 32, 512, 65_535]);
            }
            if fields.flags {
                reference.flag = random.u64(..16) == 0;
            }
            if fields.pcs {
                reference.pc = if random.u64(..3) == 0 { random.u64(..) } else { 0x40_0000 };
            }
            out.push(reference);
        }
    }
    out.truncate(count);
    out
}

pub fn write(
    references: &[Reference],
    fields: Fields,
    format: Format,
    options: &Options,
) -> Result<Vec<u8>, Error> {
    let mut writer = Writer::with(Vec::new(), format, fields, options)?;
    // Batches of many sizes.
    for piece in references.chunks(1 + references.len() % 1000) {
        let mut batch = Batch::new();
        piece.iter().for_each(|reference| batch.push(fields, *reference));
        writer.write(&batch)?;
    }
    writer.finish()
}

/// All references that could be read, and what stopped it.
pub fn read(bytes: &[u8], format: Format) -> (Vec<Reference>, Option<Error>) {
    let mut reader = match Reader::new(Box::new(std::io::Cursor::new(bytes.to_vec())), format) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut all = Vec::new();
    let mut batch = Batch::new();
    loop {
        match reader.read(&mut batch) {
            Ok(true) => all.extend(batch.iter()),
            Ok(false) => return (all, None),
            Err(error) => {
                assert!(!reader.read(&mut batch).unwrap(), "nothing follows an error");
                return (all, Some(error));
            }
        }
    }
}

/// Reads at most so many references: a damaged count may stand for more than anyone can wait for.
pub fn read_some(bytes: &[u8], format: Format, most: u64, done: impl FnOnce(u64, Option<Error>)) {
    let mut reader = match Reader::new(Box::new(std::io::Cursor::new(bytes.to_vec())), format) {
        Ok(reader) => reader,
        Err(error) => return done(0, Some(error)),
    };
    let mut batch = Batch::new();
    let mut read = 0;
    while read < most {
        match reader.read(&mut batch) {
            Ok(true) => read += batch.len() as u64,
            Ok(false) => return done(read, None),
            Err(error) => return done(read, Some(error)),
        }
    }
    done(read, None)
}
