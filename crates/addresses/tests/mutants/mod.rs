//! Decoders, and what the commands do with references, on bytes that nobody meant for them, for a while: `fuzz [--seconds N] [FORMAT...]`. A panic is a finding; the
//! seed that is printed with it finds it again: `fuzz --seed S FORMAT`.

use std::io::Cursor;
use std::time::{Duration, Instant};

use refrain_addresses::simulate::{Curve, Streams};
use refrain_addresses::stats::Stats;
use refrain_addresses::{Batch, Division, Fields, Format, Options, Reader, Reference, Writer};

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

struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }
}

fn main() {
    let (mut seconds, mut seed, mut formats) = (60, None, Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|n| n.parse().ok()).expect("a number follows");
        match word.as_str() {
            "--seconds" => seconds = number(),
            "--seed" => seed = Some(number()),
            name => formats.push(Format::named(name).expect("a format's name")),
        }
    }
    if formats.is_empty() {
        formats.extend(Format::ALL);
    }
    for format in formats {
        let end = Instant::now() + Duration::from_secs(seconds);
        let (mut inputs, mut references, mut errors) = (0u64, 0u64, 0u64);
        let mut next = seed.unwrap_or(1);
        let mut made = None;
        while Instant::now() < end {
            let of = next / EACH;
            made.take_if(|(made, _)| *made != of);
            let (_, good) = made.get_or_insert_with(|| (of, trace(format, &mut Random::new(of))));
            let outcome = std::panic::catch_unwind(|| round(format, next, good));
            let (read, failed) = outcome.unwrap_or_else(|_| {
                eprintln!("fuzz --seed {next} {}", format.name());
                std::process::exit(1);
            });
            inputs += 1;
            references += read;
            errors += u64::from(failed);
            if seed.is_some() {
                break;
            }
            next += 1;
        }
        println!(
            "{:<9} {inputs:>9} inputs, {errors:>9} refused, {references:>12} references, no panic",
            format.name()
        );
    }
}

/// References read, and whether an error ended it. Panics where the reader breaks its word.
fn round(format: Format, seed: u64, good: &Good) -> (u64, bool) {
    let bytes = input(format, &mut Random::new(seed), &good.bytes);
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
fn input(format: Format, random: &mut Random, good: &[u8]) -> Vec<u8> {
    let count = random.below(400);
    let mut bytes = match random.below(8) {
        0 => (0..count).map(|_| random.next() as u8).collect(),
        1 if format.is_text() => {
            let letters = b"0123456789abcdefILSM ,\n\r\tx==";
            (0..count).map(|_| letters[random.below(letters.len())]).collect()
        }
        _ => good.to_vec(),
    };
    for _ in 0..random.below(5) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.next() as u8),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 if at < bytes.len() => bytes[at] = random.next() as u8,
            _ if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            _ => {}
        }
    }
    if format == Format::Rfa && random.below(4) > 0 {
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
fn trace(format: Format, random: &mut Random) -> Good {
    let fields = if random.below(2) == 0 { format.keeps() } else { format.needs() };
    let small = Division { block: 1 + random.below(200) as u32, group: 1 + random.below(3) as u32 };
    let (batch, division) = match random.below(32) {
        0 if format == Format::Rfa => (regular(random, fields, 200_000), Division::default()),
        1..10 if format == Format::Rfa => {
            let count = 1000 + random.below(4000);
            // Of a handful of references, one byte is already much.
            let block = 32 + random.below(480) as u32;
            (regular(random, fields, count), Division { block, group: 1 + random.below(40) as u32 })
        }
        _ => (anything(random, format, fields), small),
    };
    let options = Options { division, ..Options::default() };
    let mut writer = Writer::with(Vec::new(), format, fields, &options).expect("its own fields fit");
    writer.write(&batch).expect("what was made fits");
    Good { bytes: writer.finish().expect("memory can be written to"), references: batch.len() as u64 }
}

/// Arrays gone through side by side, now and then with a place where it is otherwise.
fn regular(random: &mut Random, fields: Fields, count: usize) -> Batch {
    let arrays: Vec<(u64, u64)> =
        (0..1 + random.below(4)).map(|_| (random.next() >> 16, 1 << random.below(8))).collect();
    let otherwise = if random.below(2) == 0 { random.below(count) } else { count };
    let mut batch = Batch::new();
    for i in 0..count {
        let at = i % arrays.len();
        let (start, step) = arrays[at];
        let address = if i == otherwise { random.next() } else { start + step * (i / arrays.len()) as u64 };
        let pc = 0x40_0000 + 4 * at as u64;
        let kind = u8::from(at == 1);
        batch.push(fields, Reference { kind, address, time: i as u64, word: 0, size: 8, flag: false, pc });
    }
    batch
}

fn anything(random: &mut Random, format: Format, fields: Fields) -> Batch {
    let wide = !matches!(format, Format::Pdats | Format::Pdi);
    let mut batch = Batch::new();
    let (mut address, mut time) = (0u64, 0u64);
    for _ in 0..random.below(400) {
        let shift = random.below(64) as u32;
        address = address.wrapping_add(if random.below(3) == 0 { random.next() >> shift } else { 4 });
        if !wide {
            address &= u64::from(u32::MAX);
        }
        time = time.wrapping_add(if wide && random.below(9) == 0 { random.next() >> shift } else { 1 });
        let kind = random.below(if format == Format::Lackey { 3 } else { 8 }) as u8;
        let word = if kind & 3 == 2 { random.next() as u32 } else { 0 };
        batch.push(fields, Reference { kind, address, time, word, size: 8, flag: false, pc: address });
    }
    batch
}
