//! Bytes that nobody meant for them, through decoders and what the commands do with references: good traces with a few bytes
//! changed and the checksums made right again, and bytes that are no trace at all. A panic is a finding.

use std::io::{Cursor, Write};

use fastrand::Rng;
use refrain_addresses::simulate::{Curve, Streams};
use refrain_addresses::stats::Stats;
use refrain_addresses::{
    Batch, Compression, Division, Fields, Format, Options, Packed, Reader, Reference, Writer, open,
};

/// References that one input may give, beside twice those of the good trace: a damaged count may stand for more than
/// anyone can wait for.
const MOST: u64 = 1 << 15;

/// So many inputs are made of one good trace: writing some formats takes far longer than reading them.
const EACH: u64 = 64;

/// A trace that nothing is wrong with.
struct Good {
    bytes: Vec<u8>,
    references: u64,
}

/// The inputs of a format by their numbers: the same number, the same bytes.
pub struct Fuzz {
    format: Format,
    /// What inputs are made of, and which.
    made: Option<(u64, Good)>,
}

impl Fuzz {
    pub fn new(format: Format) -> Fuzz {
        Fuzz { format, made: None }
    }

    /// References read of one input, and whether an error ended it. Panics where the reader breaks its word.
    pub fn round(&mut self, number: u64) -> (u64, bool) {
        let (format, of) = (self.format, number / EACH);
        self.made.take_if(|(made, _)| *made != of);
        let (_, good) = self.made.get_or_insert_with(|| (of, trace(format, &mut Rng::with_seed(of))));
        round(format, number, good)
    }
}

fn round(format: Format, seed: u64, good: &Good) -> (u64, bool) {
    let bytes = input(format, &mut Rng::with_seed(seed), &good.bytes);
    let len = bytes.len() as u64;
    let mut reader = match Reader::new(Box::new(Cursor::new(bytes)), format) {
        Ok(reader) => reader,
        Err(_) => return (0, true),
    };
    let mut batch = Batch::new();
    let mut read = 0;
    let mut users = Users::new(reader.fields(), seed);
    while read < MOST + 2 * good.references {
        match reader.read(&mut batch) {
            Ok(false) => return (read, false),
            Ok(true) => {
                assert!(batch.kinds.iter().all(|kind| *kind < 8));
                assert_eq!(batch.addresses.len(), batch.len());
                assert_eq!(batch.times.len(), if reader.fields().times { batch.len() } else { 0 });
                read += batch.len() as u64;
                users.add(&batch);
            }
            Err(refrain_addresses::Error::Damaged { record, offset, .. }) => {
                assert!(record == read + 1 && offset <= len);
                return (read, true);
            }
            Err(other) => panic!("{other}"),
        }
    }
    (read, false)
}

/// The ways to compress of which there are inputs.
pub const COMPRESSIONS: [Compression; 6] = [
    Compression::Gzip,
    Compression::Zstd,
    Compression::Xz,
    Compression::Bzip2,
    Compression::Lz4,
    Compression::Lzw,
];

/// As [`Fuzz::round`], of a trace that was compressed and then changed, headers and lengths first of all.
pub fn compressed_round(compression: Compression, number: u64) -> (u64, bool) {
    let mut random = Rng::with_seed(number);
    let good = trace(Format::Din, &mut Rng::with_seed(number / EACH));
    let mut bytes = compressed(compression, &good.bytes);
    for _ in 0..1 + random.usize(..3) {
        let most = if random.bool() { bytes.len().min(24) } else { bytes.len() };
        let at = random.usize(..most.max(1));
        match random.usize(..6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at.min(bytes.len()), random.u8(..)),
            2 if at + 4 <= bytes.len() => bytes[at..at + 4].fill(if random.bool() { 0xff } else { 0 }),
            3 => bytes.extend_from_within(..at.min(bytes.len())),
            _ if at < bytes.len() => bytes[at] ^= 1 << random.usize(..8),
            _ => {}
        }
    }
    let mut reader = match open(Box::new(Cursor::new(bytes)), "a.din", None) {
        Ok(reader) => reader,
        Err(_) => return (0, true),
    };
    let (mut batch, mut read) = (Batch::new(), 0);
    while read < MOST + 2 * good.references {
        match reader.read(&mut batch) {
            Ok(false) => return (read, false),
            Ok(true) => read += batch.len() as u64,
            Err(_) => return (read, true),
        }
    }
    (read, false)
}

fn compressed(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    if compression == Compression::Lzw {
        return of_compress(bytes);
    }
    let mut packed = Packed::new(Vec::new(), compression, None).expect("it is written");
    packed.write_all(bytes).expect("memory can be written to");
    packed.finish().expect("memory can be written to")
}

/// A file of `compress` in which each code is a byte: 199 of them and one that clears the table are 25 groups of eight.
fn of_compress(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x9d, 0x90];
    for some in bytes.chunks(199) {
        let codes = some.iter().map(|byte| u32::from(*byte)).chain([256]);
        let (mut bits, mut have) = (0u32, 0);
        for code in codes {
            bits |= code << have;
            have += 9;
            while have >= 8 {
                out.push(bits as u8);
                (bits, have) = (bits >> 8, have - 8);
            }
        }
        if have > 0 {
            out.push(bits as u8);
        }
    }
    out
}

/// `stats`, `simulate` and `convert`, one of them for each input.
enum Users {
    Stats(Box<Stats>),
    Curve(Box<Curve>),
    Packed(Box<Writer<std::io::Sink>>),
}

impl Users {
    fn new(fields: Fields, seed: u64) -> Users {
        match seed % 3 {
            0 => Users::Stats(Box::new(Stats::new(fields, 4, seed.is_multiple_of(2)))),
            1 => Users::Curve(Box::new(Curve::new(64, Streams::Unified))),
            _ => {
                let writer = Writer::new(std::io::sink(), Format::Rfa, fields);
                Users::Packed(Box::new(writer.expect("the packed form has all fields")))
            }
        }
    }

    fn add(&mut self, batch: &Batch) {
        match self {
            Users::Stats(stats) => stats.add(batch),
            Users::Curve(curve) => curve.add(batch),
            Users::Packed(writer) => writer.write(batch).expect("what was read can be packed"),
        }
    }
}

/// A good trace with a few bytes changed, bytes of the kind the format has, or any bytes.
fn input(format: Format, random: &mut Rng, good: &[u8]) -> Vec<u8> {
    let count = random.usize(..400);
    let mut bytes = match random.usize(..8) {
        0 => (0..count).map(|_| random.u8(..)).collect(),
        1 if format.is_text() => {
            let letters = b"0123456789abcdefILSMrwimcv ,:@|#<>\n\r\tx==";
            (0..count).map(|_| letters[random.usize(..letters.len())]).collect()
        }
        _ => good.to_vec(),
    };
    for _ in 0..random.usize(..5) {
        let at = random.usize(..bytes.len().max(1));
        match random.usize(..5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.u8(..)),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 if at < bytes.len() => bytes[at] = random.u8(..),
            _ if at < bytes.len() => bytes[at] ^= 1 << random.usize(..8),
            _ => {}
        }
    }
    if format == Format::Rfa && random.usize(..4) > 0 {
        mend(&mut bytes);
    }
    bytes
}

/// Makes the checksums of blocks right again, or nothing behind them would ever be tried.
fn mend(bytes: &mut [u8]) {
    let mut at = 8;
    while let Some(block) = bytes.get_mut(at..).filter(|block| block.len() >= 12 && block[3] != 0) {
        let length = u32::from_le_bytes(block[4..8].try_into().expect("four bytes")) as usize;
        let Some(body) = block.get(12..12 + length) else { return };
        let mut crc = flate2::Crc::new();
        crc.update(&block[..8]);
        crc.update(body);
        let sum = crc.sum();
        block[8..12].copy_from_slice(&sum.to_le_bytes());
        at += 12 + length;
    }
}

/// Any references, or, in the packed form, those of a loop, of which many are in one block.
fn trace(format: Format, random: &mut Rng) -> Good {
    let fields = if random.usize(..2) == 0 { format.keeps() } else { format.needs() };
    if !format.is_written() {
        let batch = anything(random, format, fields);
        return Good { bytes: printed(format, &batch), references: batch.len() as u64 };
    }
    let small = Division { block: 1 + random.usize(..200) as u32, group: 1 + random.usize(..3) as u32 };
    let (batch, division) = match random.usize(..32) {
        0 if format == Format::Rfa => (regular(random, fields, 200_000), Division::default()),
        1..10 if format == Format::Rfa => {
            let count = 1000 + random.usize(..4000);
            // Of a handful of references, one byte is already much.
            let block = 32 + random.usize(..480) as u32;
            (regular(random, fields, count), Division { block, group: 1 + random.usize(..40) as u32 })
        }
        _ => (anything(random, format, fields), small),
    };
    let level = (format == Format::Rfa && random.usize(..6) == 0).then_some(10);
    let options = Options { division, level, ..Options::default() };
    let mut writer = Writer::with(Vec::new(), format, fields, &options).expect("its own fields fit");
    writer.write(&batch).expect("what was made fits");
    Good { bytes: writer.finish().expect("memory can be written to"), references: batch.len() as u64 }
}

/// As the tool prints them whose text nothing writes.
fn printed(format: Format, batch: &Batch) -> Vec<u8> {
    let mut text = String::new();
    if format == Format::Drmemtrace {
        text += "Output format:\n<--record#-> <--instr#->: <---tid---> <record details>\n-----\n";
    }
    for (number, Reference { kind, address, size, pc, .. }) in batch.iter().enumerate() {
        text += &match (format, kind) {
            (Format::Drmemtrace, 2) => {
                format!("{number:>12} {number:>11}: 77 ifetch {size:>7} byte(s) @ 0x{address:016x} 90 nop\n")
            }
            (Format::Drmemtrace, kind) => {
                let name = ["read ", "write"][usize::from(kind)];
                format!("{number:>12} 1: 77 {name} {size:>8} byte(s) @ 0x{address:016x} by PC 0x{pc:016x}\n")
            }
            (_, kind) => {
                let name = ["cpu/mem-loads,ldlat=30/P", "cpu/mem-stores/P", "page-faults"][usize::from(kind)];
                format!("app 77 4.5: {name}: {address:>16x} {pc:>16x} main+0x10 (/tmp/app)\n")
            }
        };
    }
    text.into_bytes()
}

/// Arrays gone through side by side, now and then with a place where it is otherwise.
fn regular(random: &mut Rng, fields: Fields, count: usize) -> Batch {
    let arrays: Vec<(u64, u64)> =
        (0..1 + random.usize(..4)).map(|_| (random.u64(..) >> 16, 1 << random.usize(..8))).collect();
    let otherwise = if random.usize(..2) == 0 { random.usize(..count) } else { count };
    let mut batch = Batch::new();
    for i in 0..count {
        let at = i % arrays.len();
        let (start, step) = arrays[at];
        let address = if i == otherwise { random.u64(..) } else { start + step * (i / arrays.len()) as u64 };
        let pc = 0x40_0000 + 4 * at as u64;
        let kind = u8::from(at == 1);
        batch.push(fields, Reference { kind, address, time: i as u64, word: 0, size: 8, flag: false, pc });
    }
    batch
}

fn anything(random: &mut Rng, format: Format, fields: Fields) -> Batch {
    let wide = !matches!(format, Format::Pdats | Format::Pdi);
    let mut batch = Batch::new();
    let (mut address, mut time) = (0u64, 0u64);
    for _ in 0..random.usize(..400) {
        let shift = random.usize(..64) as u32;
        address = address.wrapping_add(if random.usize(..3) == 0 { random.u64(..) >> shift } else { 4 });
        if !wide {
            address &= u64::from(u32::MAX);
        }
        time = time.wrapping_add(if wide && random.usize(..9) == 0 { random.u64(..) >> shift } else { 1 });
        let kinds = match format {
            Format::Lackey | Format::Drmemtrace | Format::Perf => 3,
            Format::Dinero | Format::Xdin => 4,
            _ => 8,
        };
        let kind = random.usize(..kinds) as u8;
        let word = if kind & 3 == 2 { random.u32(..) } else { 0 };
        batch.push(fields, Reference { kind, address, time, word, size: 8, flag: false, pc: address });
    }
    batch
}
