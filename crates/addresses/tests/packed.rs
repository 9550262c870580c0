//! Refrain's own packed form: read from the middle, damaged here and there, and as small as it should be.

use crate::common;

use std::io::{Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Bounds, read, references, write};
use fastrand::Rng;
use refrain_addresses::{Batch, Division, Error, Fields, Format, Options, Reader, Reference, open_after};

const HEADER: usize = 8;
const BLOCK_HEADER: usize = 12;

/// Columns, and what is mixed.
const LEVELS: [Option<u32>; 2] = [None, Some(10)];

fn options(block: u32, group: u32) -> Options {
    Options { division: Division { block, group }, ..Options::default() }
}

fn at_level(level: Option<u32>, options: Options) -> Options {
    Options { level, ..options }
}

fn sample(count: usize, seed: u64, options: &Options) -> (Vec<Reference>, Vec<u8>) {
    let fields = Format::Rfa.keeps();
    let all = references(&mut Rng::with_seed(seed), count, fields, Bounds::NONE);
    let bytes = write(&all, fields, Format::Rfa, options).unwrap();
    (all, bytes)
}

fn rest(mut reader: Reader) -> (Vec<Reference>, Option<Error>) {
    let (mut all, mut batch) = (Vec::new(), Batch::new());
    loop {
        match reader.read(&mut batch) {
            Ok(true) => all.extend(batch.iter()),
            Ok(false) => return (all, None),
            Err(error) => return (all, Some(error)),
        }
    }
}

fn place(error: Option<Error>) -> (u64, u64) {
    match error {
        Some(Error::Damaged { record, offset, .. }) => (record, offset),
        other => panic!("{other:?}"),
    }
}

/// Where blocks begin, as their lengths say, and where the index does.
fn blocks(bytes: &[u8]) -> Vec<usize> {
    let mut at = HEADER;
    let mut found = vec![at];
    while bytes[at + 3] != 0 {
        at += BLOCK_HEADER + u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        found.push(at);
    }
    found
}

#[test]
fn every_set_of_fields() {
    for (set, level) in (0..32u8).flat_map(|set| LEVELS.map(|level| (set, level))) {
        let [times, words, sizes, flags, pcs] = std::array::from_fn(|at| set >> at & 1 != 0);
        let fields = Fields { times, words, sizes, flags, pcs };
        // Three groups, or two: where much is to be learnt, each takes long.
        let count = if level.is_none() { 3000 } else { 1500 };
        let all = references(&mut Rng::with_seed(u64::from(set) + 1), count, fields, Bounds::NONE);
        let bytes = write(&all, fields, Format::Rfa, &at_level(level, options(500, 2))).unwrap();
        let mut reader = Reader::new(Box::new(Cursor::new(bytes)), Format::Rfa).unwrap();
        assert_eq!(reader.fields(), fields);
        let mut batch = Batch::new();
        assert!(reader.read(&mut batch).unwrap());
        let (more, error) = rest(reader);
        assert!(error.is_none(), "{error:?}");
        assert!(batch.iter().chain(more).eq(all), "{fields:?}");
    }
}

#[test]
fn from_any_record_on() {
    let skips = [0, 1, 99, 100, 299, 300, 301, 1199, 1200, 1999, 2000, 2001, u64::MAX];
    for level in LEVELS {
        let (all, bytes) = sample(2000, 5, &at_level(level, options(100, 3)));
        for skip in skips {
            let (read, error) = rest(open_after(Cursor::new(bytes.clone()), skip).unwrap());
            assert!(error.is_none(), "{error:?}");
            assert_eq!(read, all[(skip as usize).min(all.len())..], "after {skip}");
        }
    }
    let nothing = write(&[], Fields::NONE, Format::Rfa, &Options::default()).unwrap();
    assert!(rest(open_after(Cursor::new(nothing), 7).unwrap()).0.is_empty());
}

/// Any format can be passed over; the packed one only need not be read.
#[test]
fn skipping_in_other_formats() {
    for format in common::written() {
        let all = references(&mut Rng::with_seed(3), 10_000, format.keeps(), Bounds::of(format));
        let bytes = write(&all, format.keeps(), format, &Options::default()).unwrap();
        for skip in [1, 4095, 4096, 4097, 9999, 10_000] {
            let mut reader = Reader::new(Box::new(Cursor::new(bytes.clone())), format).unwrap();
            reader.skip(skip);
            assert_eq!(rest(reader).0, all[skip as usize..], "{} after {skip}", format.name());
        }
    }
}

struct Counting(Cursor<Vec<u8>>, Arc<AtomicU64>);

impl Read for Counting {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(into)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Seek for Counting {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn what_is_before_is_not_read() {
    let (all, bytes) = sample(200_000, 6, &options(5000, 1));
    let count = Arc::new(AtomicU64::new(0));
    let from = Counting(Cursor::new(bytes.clone()), count.clone());
    let mut reader = open_after(from, 190_000).unwrap();
    let mut batch = Batch::new();
    assert!(reader.read(&mut batch).unwrap());
    assert_eq!(batch.get(0), all[190_000]);
    let read = count.load(Ordering::Relaxed);
    assert!(read < bytes.len() as u64 / 8, "{read} of {} bytes", bytes.len());
}

/// A bit anywhere in a block: all blocks before it arrive, and the error says where it begins.
#[test]
fn one_bit_of_each_block() {
    for level in LEVELS {
        let (all, bytes) = sample(2000, 9, &at_level(level, options(100, 4)));
        let blocks = blocks(&bytes);
        assert_eq!(blocks.len(), 21);
        let mut random = Rng::with_seed(4);
        for (at, pair) in blocks.windows(2).enumerate() {
            for _ in 0..if level.is_none() { 20 } else { 1 } {
                let mut bytes = bytes.clone();
                bytes[pair[0] + random.u64(..(pair[1] - pair[0]) as u64) as usize] ^= 1 << random.u64(..8);
                let (read, error) = read(&bytes, Format::Rfa);
                assert_eq!(place(error), (100 * at as u64 + 1, pair[0] as u64));
                assert_eq!(read, all[..100 * at]);
            }
        }
        // Every byte of the index; at a level every 41st, as it is written the same way.
        for at in (blocks[20]..bytes.len()).step_by(if level.is_none() { 1 } else { 41 }) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            let (read, error) = read(&bytes, Format::Rfa);
            assert_eq!(place(error), (2001, blocks[20] as u64), "byte {at}");
            assert_eq!(read, all);
            assert!(matches!(open_after(Cursor::new(bytes), 500), Err(Error::Damaged { .. })), "byte {at}");
        }
    }
}

#[test]
fn blocks_that_are_missing_or_moved() {
    for level in LEVELS {
        let (all, bytes) = sample(2000, 10, &at_level(level, options(100, 4)));
        let blocks = blocks(&bytes);
        // One whole group is gone: everything left can be read, and the end says that something is missing.
        let without = [&bytes[..blocks[4]], &bytes[blocks[8]..]].concat();
        let (read_without, error) = read(&without, Format::Rfa);
        assert_eq!(read_without, [&all[..400], &all[800..]].concat());
        assert_eq!(place(error).0, 1601);
        // A trace cannot begin in the middle of a group.
        let middle = [&bytes[..HEADER], &bytes[blocks[1]..]].concat();
        let (read_middle, error) = read(&middle, Format::Rfa);
        assert!(read_middle.is_empty());
        assert_eq!(place(error), (1, HEADER as u64));
        let (_, error) = read(&[&bytes[..], &[0]].concat(), Format::Rfa);
        assert_eq!(place(error), (2001, bytes.len() as u64));
    }
}

/// What a checksum does not find, as someone computed it anew: columns that say too little, too much or nonsense.
#[test]
fn blocks_that_no_writer_makes() {
    for level in LEVELS {
        let (all, bytes) = sample(300, 12, &at_level(level, options(100, 4)));
        let blocks = blocks(&bytes);
        let mut random = Rng::with_seed(8);
        for _ in 0..crate::rounds(if level.is_none() { 2000 } else { 150 }) {
            let mut bytes = bytes.clone();
            let body = blocks[1] + BLOCK_HEADER;
            bytes[body + random.u64(..(blocks[2] - body) as u64) as usize] ^= 1 << random.u64(..8);
            let mut crc = flate2::Crc::new();
            crc.update(&bytes[blocks[1]..blocks[1] + 8]);
            crc.update(&bytes[body..blocks[2]]);
            bytes[blocks[1] + 8..body].copy_from_slice(&crc.sum().to_le_bytes());
            let (read, error) = read(&bytes, Format::Rfa);
            // Other references may come of it, but none before are harmed and an error is no panic.
            assert_eq!(read[..100], all[..100]);
            if let Some(error) = error {
                assert!(place(Some(error)).1 >= blocks[1] as u64);
            }
        }
    }
}

/// As `blocks_that_no_writer_makes`, with bytes in a column that no reference takes.
#[test]
fn a_column_with_more_than_is_needed() {
    let nothing = [Reference::default()];
    let bytes = write(&nothing, Fields::NONE, Format::Rfa, &Options::default()).unwrap();
    let (block, index) = (blocks(&bytes)[0], blocks(&bytes)[1]);
    assert_eq!(index, block + BLOCK_HEADER, "what is all zeros is guessed whole");
    let frame = zstd::bulk::compress(&[1], 1).unwrap();
    let body = [&[3, 1, frame.len() as u8][..], &frame].concat();
    let mut head = [1, 0, 0, 2, body.len() as u8, 0, 0, 0].to_vec();
    let mut crc = flate2::Crc::new();
    crc.update(&head);
    crc.update(&body);
    head.extend(crc.sum().to_le_bytes());
    let (read, error) = read(&[&bytes[..block], &head, &body, &bytes[index..]].concat(), Format::Rfa);
    assert!(read.is_empty());
    assert_eq!(place(error), (1, block as u64));
}

/// Blocks of one reference that take as many bytes as any, and of many that take none.
#[test]
fn the_smallest_blocks() {
    for level in LEVELS {
        let count = if level.is_none() { 80 } else { 12 };
        let (all, bytes) = sample(count, 21, &at_level(level, options(1, 1)));
        assert_eq!(read(&bytes, Format::Rfa).0, all);
        let all = vec![Reference::default(); count];
        let bytes = write(&all, Fields::NONE, Format::Rfa, &at_level(level, options(1, 1))).unwrap();
        assert_eq!(read(&bytes, Format::Rfa).0, all);
        assert_eq!(rest(open_after(Cursor::new(bytes), 8).unwrap()).0, all[8..]);
    }
}

/// A block goes on while there is next to nothing in it, to the end of its group at most, and ends once there is.
#[test]
fn blocks_of_what_is_regular_are_longer() {
    let regular = |i: u64| Reference { address: 0x1000 + 8 * i, ..Reference::default() };
    let mut all: Vec<Reference> = (0..100_000).map(regular).collect();
    let anything = references(&mut Rng::with_seed(17), 10_000, Fields::NONE, Bounds::NONE);
    all.splice(50_000..60_000, anything);
    let bytes = write(&all, Fields::NONE, Format::Rfa, &options(1000, 40)).unwrap();
    assert_eq!(read(&bytes, Format::Rfa).0, all);
    let counts: Vec<u32> = blocks(&bytes)
        .windows(2)
        .map(|ends| u32::from_le_bytes([bytes[ends[0]], bytes[ends[0] + 1], bytes[ends[0] + 2], 0]))
        .collect();
    let [first, second, .., last] = counts[..] else { panic!("{counts:?}") };
    assert_eq!(first, 40_000, "a group");
    assert!((10_000..=11_000).contains(&second), "up to the first that are not regular: {counts:?}");
    assert_eq!(last, 20_000, "what is left");
    assert!(counts.iter().filter(|count| **count == 1000).count() >= 8, "{counts:?}");
    for skip in [39_999, 40_000, 55_555, 80_000] {
        let (read, error) = rest(open_after(Cursor::new(bytes.clone()), skip).unwrap());
        assert!(error.is_none() && read == all[skip as usize..], "after {skip}: {error:?}");
    }
}

/// c[i] = a[i] + b[i], with and without instructions.
#[test]
fn what_is_regular_takes_next_to_nothing() {
    let all: Vec<Reference> = (0..300_000u64)
        .map(|i| Reference {
            kind: u8::from(i % 3 == 2),
            address: 0x10_0000 + (i % 3) * 0x4000_0000 + i / 3 * 8,
            pc: 0x40_1000 + i % 3 * 4,
            ..Reference::default()
        })
        .collect();
    for (level, pcs) in LEVELS.iter().flat_map(|level| [(*level, false), (*level, true)]) {
        let fields = Fields { pcs, ..Fields::NONE };
        let mut kept = all.clone();
        kept.iter_mut().filter(|_| !pcs).for_each(|reference| reference.pc = 0);
        let bytes = write(&kept, fields, Format::Rfa, &at_level(level, Options::default())).unwrap();
        assert!(bytes.len() < 450, "{} bytes at level {level:?}", bytes.len());
        assert_eq!(read(&bytes, Format::Rfa).0, kept);
    }
}

/// Fetches and what they do: the instruction says what comes.
#[test]
fn a_loop_of_fetches_takes_next_to_nothing() {
    let fields = Fields { sizes: true, words: true, times: true, ..Fields::NONE };
    let mut all = Vec::new();
    for i in 0..40_000u64 {
        for (at, data) in
            [Some((0u8, 0x10_0000 + 8 * i)), None, Some((1, 0x50_0000 + 24 * i)), None].iter().enumerate()
        {
            let time = all.len() as u64 * 2;
            let word = 0x8fa4_0000 + at as u32;
            let address = 0x40_0000 + 4 * at as u64;
            all.push(Reference { kind: 2, address, time, word, size: 4, ..Reference::default() });
            if let Some((kind, address)) = *data {
                all.push(Reference { kind, address, time: time + 2, size: 8, ..Reference::default() });
            }
        }
    }
    for level in LEVELS {
        let bytes = write(&all, fields, Format::Rfa, &at_level(level, Options::default())).unwrap();
        assert!(bytes.len() < 600, "{} bytes", bytes.len());
        assert_eq!(read(&bytes, Format::Rfa).0, all);
    }
}
