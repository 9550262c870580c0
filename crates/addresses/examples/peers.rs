//! Two compressors of address traces as their authors describe them, to measure against: `peers pack|unpack WAY FIELDS IN OUT`.
//!
//! `bytesort` (P. Michaud, *Online compression of cache-filtered address traces*): for each of the eight bytes of the addresses, from
//! the highest, that byte of all of them, in the order that a stable sort by the bytes above gives. `vpc4` (M. Burtscher and
//! others, *The VPC trace-compression algorithms*): which of several predictors is right, and what none predicts, each in a stream of
//! its own, of pcs and then of addresses. All streams are packed with `xz -9`. `FIELDS` is `raw` or `raw-pc`, the form of what is
//! packed.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};

use refrain_addresses::{Batch, Compression, Fields, Format, Packed, Reader, Reference, Writer};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, way, format, from, to] = &words[..] else {
        return Err("peers pack|unpack bytesort|vpc4 raw|raw-pc IN OUT".into());
    };
    let format = Format::named(format).ok_or("raw or raw-pc")?;
    let pcs = format == Format::RawPc;
    match (&**what, &**way) {
        ("pack", "bytesort") => put(to, &sorted(&taken(from, format)?, pcs)),
        ("pack", "vpc4") => put(to, &predicted(&taken(from, format)?)),
        ("unpack", "bytesort") => write(to, format, &unsorted(&streams(from)?, pcs)),
        ("unpack", "vpc4") => write(to, format, &unpredicted(&streams(from)?)?),
        _ => Err("pack or unpack, bytesort or vpc4".into()),
    }
}

fn taken(path: &str, format: Format) -> Result<Vec<Reference>> {
    let mut reader = Reader::new(Box::new(File::open(path)?), format)?;
    let (mut all, mut batch) = (Vec::new(), Batch::new());
    while reader.read(&mut batch)? {
        all.extend(batch.iter());
    }
    Ok(all)
}

fn write(path: &str, format: Format, all: &[Reference]) -> Result<()> {
    let fields = Fields { pcs: format == Format::RawPc, ..Fields::NONE };
    let mut writer = Writer::new(BufWriter::new(File::create(path)?), format, fields)?;
    let mut batch = Batch::new();
    for some in all.chunks(4096) {
        batch.clear();
        some.iter().for_each(|reference| batch.push(fields, *reference));
        writer.write(&batch)?;
    }
    writer.finish()?;
    Ok(())
}

/// Each packed, behind its length.
fn put(path: &str, streams: &[Vec<u8>]) -> Result<()> {
    let mut file = File::create(path)?;
    for stream in streams {
        let mut packed = Packed::new(Vec::new(), Compression::Xz, Some(9))?;
        packed.write_all(stream)?;
        let bytes = packed.finish()?;
        file.write_all(&(bytes.len() as u32).to_le_bytes())?;
        file.write_all(&bytes)?;
    }
    Ok(())
}

fn streams(path: &str) -> Result<Vec<Vec<u8>>> {
    let bytes = fs::read(path)?;
    let (mut rest, mut all) = (&bytes[..], Vec::new());
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (packed, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
        let mut stream = Vec::new();
        liblzma::read::XzDecoder::new(packed).read_to_end(&mut stream)?;
        all.push(stream);
        rest = behind;
    }
    Ok(all)
}

fn sorted(all: &[Reference], pcs: bool) -> Vec<Vec<u8>> {
    let mut streams = vec![all.iter().map(|reference| reference.kind).collect()];
    let mut numbers = vec![all.iter().map(|reference| reference.address).collect::<Vec<u64>>()];
    if pcs {
        numbers.push(all.iter().map(|reference| reference.pc).collect());
    }
    for numbers in &numbers {
        for byte in (0..8).rev() {
            let order = order(numbers, byte);
            streams.push(order.iter().map(|at| (numbers[*at as usize] >> (8 * byte)) as u8).collect());
        }
    }
    streams
}

/// By the bytes above this one.
fn order(numbers: &[u64], byte: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..numbers.len() as u32).collect();
    order.sort_by_key(|at| numbers[*at as usize].checked_shr(8 * byte + 8).unwrap_or(0));
    order
}

fn unsorted(streams: &[Vec<u8>], pcs: bool) -> Vec<Reference> {
    let numbers = |columns: &[Vec<u8>]| {
        let mut numbers = vec![0u64; columns[0].len()];
        for (byte, column) in (0..8).rev().zip(columns) {
            for (at, value) in order(&numbers, byte).into_iter().zip(column) {
                numbers[at as usize] |= u64::from(*value) << (8 * byte);
            }
        }
        numbers
    };
    let addresses = numbers(&streams[1..9]);
    let pcs = if pcs { numbers(&streams[9..17]) } else { vec![0; addresses.len()] };
    let parts = streams[0].iter().zip(addresses).zip(pcs);
    parts
        .map(|((kind, address), pc)| Reference { kind: *kind, address, pc, ..Reference::default() })
        .collect()
}

/// Entries of predictors' tables.
const HASHED: usize = 1 << 17;
const PLACES: usize = 1 << 16;

/// What followed a history, the newest first.
struct Follows<const N: usize>(Vec<[u64; N]>);

impl<const N: usize> Follows<N> {
    fn new(entries: usize) -> Follows<N> {
        Follows(vec![[0; N]; entries])
    }

    /// As published, only what is not the newest already.
    fn learn(&mut self, at: usize, number: u64) {
        let entry = &mut self.0[at];
        if entry[0] != number {
            entry.rotate_right(1);
            entry[0] = number;
        }
    }
}

fn hashed(history: &[u64]) -> usize {
    let hash = history
        .iter()
        .fold(0u64, |hash, number| (hash ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
    hash as usize % HASHED
}

/// pcs: FCM3[2] and FCM1[2]. Addresses, by pc: DFCM3[2], FCM1[2] and LV[4].
struct Predictors {
    pcs: [u64; 3],
    pc_three: Follows<2>,
    pc_one: Follows<2>,
    addresses: Vec<[u64; 4]>,
    three: Follows<2>,
    one: Follows<2>,
    last: Follows<4>,
}

impl Predictors {
    fn new() -> Predictors {
        Predictors {
            pcs: [0; 3],
            pc_three: Follows::new(HASHED),
            pc_one: Follows::new(HASHED),
            addresses: vec![[0; 4]; PLACES],
            three: Follows::new(HASHED),
            one: Follows::new(HASHED),
            last: Follows::new(PLACES),
        }
    }

    fn pc(&mut self, mut choose: impl FnMut(&[u64]) -> u64) -> u64 {
        let (three, one) = (hashed(&self.pcs), hashed(&self.pcs[..1]));
        let guesses = [self.pc_three.0[three], self.pc_one.0[one]].concat();
        let pc = choose(&guesses);
        self.pc_three.learn(three, pc);
        self.pc_one.learn(one, pc);
        self.pcs = [pc, self.pcs[0], self.pcs[1]];
        pc
    }

    fn address(&mut self, pc: u64, mut choose: impl FnMut(&[u64]) -> u64) -> u64 {
        let place = (pc ^ pc >> 16) as usize % PLACES;
        let [a, b, c, d] = self.addresses[place];
        let steps = [a.wrapping_sub(b), b.wrapping_sub(c), c.wrapping_sub(d)];
        let (three, one) = (hashed(&steps), hashed(&[a]));
        let near = self.three.0[three].map(|step| a.wrapping_add(step));
        let guesses = [&near[..], &self.one.0[one], &self.last.0[place]].concat();
        let address = choose(&guesses);
        self.three.learn(three, address.wrapping_sub(a));
        self.one.learn(one, address);
        self.last.learn(place, address);
        self.addresses[place] = [address, a, b, c];
        address
    }
}

/// Which guess is right, or behind all of them and the number.
fn tell(guesses: &[u64], number: u64, codes: &mut Vec<u8>, missed: &mut Vec<u8>) -> u64 {
    let code = guesses.iter().position(|guess| *guess == number).unwrap_or(guesses.len());
    codes.push(code as u8);
    if code == guesses.len() {
        missed.extend(number.to_le_bytes());
    }
    number
}

/// The kind is part of the pc, as most instructions have only one.
fn predicted(all: &[Reference]) -> Vec<Vec<u8>> {
    let mut streams: [Vec<u8>; 4] = Default::default();
    let [codes, missed, address_codes, address_missed] = &mut streams;
    let mut predictors = Predictors::new();
    for reference in all {
        let act = reference.pc << 3 | u64::from(reference.kind);
        predictors.pc(|guesses| tell(guesses, act, codes, missed));
        predictors.address(act, |guesses| tell(guesses, reference.address, address_codes, address_missed));
    }
    streams.into()
}

fn unpredicted(streams: &[Vec<u8>]) -> Result<Vec<Reference>> {
    let [codes, missed, address_codes, address_missed] = streams else { return Err("four streams".into()) };
    let mut missed = [missed, address_missed].map(|stream| {
        stream.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    });
    let mut predictors = Predictors::new();
    let mut all = Vec::new();
    for (code, address_code) in codes.iter().zip(address_codes) {
        let [pcs, addresses] = &mut missed;
        let told = |guesses: &[u64], code: u8, missed: &mut dyn Iterator<Item = u64>| {
            guesses.get(usize::from(code)).copied().or_else(|| missed.next()).unwrap_or(0)
        };
        let act = predictors.pc(|guesses| told(guesses, *code, pcs));
        let address = predictors.address(act, |guesses| told(guesses, *address_code, addresses));
        all.push(Reference { kind: act as u8 & 7, pc: act >> 3, address, ..Reference::default() });
    }
    Ok(all)
}
