//! Whatever the bytes: no panic, no endless loop, an error that says where, and everything before it.

use crate::common;

use common::{Bounds, read, references, write, written};
use fastrand::Rng;
use refrain_addresses::{Batch, Error, Format, Options, Reference, WordCounts, open};

fn sample(format: Format, count: usize, seed: u64) -> (Vec<Reference>, Vec<u8>) {
    let mut random = Rng::with_seed(seed);
    // PDATS with and without times are laid out differently.
    let fields = if seed.is_multiple_of(2) { format.keeps() } else { format.needs() };
    let all = references(&mut random, count, fields, Bounds::of(format));
    let mut counts = WordCounts::new();
    let mut batch = Batch::new();
    all.iter().for_each(|reference| batch.push(fields, *reference));
    counts.add(&batch);
    let options = Options { dictionary: counts.dictionary(), ..Options::default() };
    (all.clone(), write(&all, fields, format, &options).unwrap())
}

fn place(error: &Error) -> (u64, u64) {
    match error {
        Error::Read { record, offset, .. } | Error::Damaged { record, offset, .. } => (*record, *offset),
        other => panic!("{other}"),
    }
}

#[test]
fn cut_at_every_byte() {
    for (format, seed) in written().flat_map(|format| [(format, 7), (format, 8)]) {
        let (all, bytes) = sample(format, 60, seed);
        let mut whole = 0;
        for end in 0..bytes.len() {
            let (read, error) = read(&bytes[..end], format);
            assert_eq!(read, all[..read.len()], "{} cut at {end}", format.name());
            assert!(read.len() >= whole || read.is_empty());
            whole = read.len();
            match error {
                Some(error) => {
                    let (record, offset) = place(&error);
                    assert_eq!(record, read.len() as u64 + 1);
                    assert!(offset <= end as u64);
                }
                // Between two records, which only formats with an end can tell.
                None => assert!(
                    !matches!(format, Format::Pdats64 | Format::Pdi64 | Format::Rfa)
                        && read.len() < all.len()
                ),
            }
        }
        assert_eq!(read(&bytes, format).0, all);
    }
}

/// One record in the middle is wrong; all before it arrive.
#[test]
fn damage_is_found_where_it_is() {
    let check = |format: Format, at: usize, byte: u8, record: u64, offset: u64| {
        let (all, mut bytes) = sample(format, 5000, 11);
        bytes[at] = byte;
        let (read, error) = read(&bytes, format);
        assert_eq!(place(&error.unwrap()), (record, offset), "{}", format.name());
        assert_eq!(read, all[..record as usize - 1]);
    };
    check(Format::Raw, 9 * 4500, 8, 4501, 9 * 4500);
    check(Format::RawTime, 17 * 4500, 255, 4501, 17 * 4500);
    let (_, din) = sample(Format::Din, 5000, 11);
    let lines: Vec<usize> =
        din.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    check(Format::Din, lines[3000] + 2, b'x', 3002, lines[3000] as u64);
    check(Format::Din, lines[3000], b'9', 3002, lines[3000] as u64);
}

/// What tools print and nothing writes: each line that is whole gives its reference, whatever follows.
#[test]
fn tools_texts_cut_at_every_byte() {
    let view = "Output format:\n<--record#-> <--instr#->: <---tid---> <record details>\n-----\n\
                1 0: 7 <marker: version 6>\n\
                2 1: 7 ifetch       4 byte(s) @ 0x0000000000401012 48 8d 34 25 lea %rsi\n\
                3 1: 7 read         8 byte(s) @ 0x0000000000402000 by PC 0x0000000000401012\n\
                4 1: 7 write        8 byte(s) @ 0x0000000000402008 by PC 0x0000000000401012\n";
    let perf = "# a header\n  cpu/mem-loads,ldlat=30/P:  7ffd4a1b2c38  401012 main\n\
                cpu/mem-stores/P:  0  401012\ncpu/mem-stores/P:  7ffd4a1b2c40  401012\n";
    for (format, text, whole) in [(Format::Drmemtrace, view, 3), (Format::Perf, perf, 2)] {
        let (all, error) = read(text.as_bytes(), format);
        assert!(error.is_none() && all.len() == whole, "{}: {error:?}", format.name());
        for end in 0..text.len() {
            let (read, error) = read(&text.as_bytes()[..end], format);
            assert_eq!(read, all[..read.len()], "{} cut at {end}", format.name());
            assert_eq!(error.is_none(), end == 0 || text.as_bytes()[end - 1] == b'\n', "{end}");
        }
    }
}

/// The labels of dinero that have two meanings, and text behind a line: read, and said.
#[test]
fn labels_and_text_are_told() {
    let notes = |text: &str, format: Format| {
        let mut reader =
            refrain_addresses::Reader::new(Box::new(std::io::Cursor::new(text.to_owned())), format).unwrap();
        let (mut batch, mut kinds) = (Batch::new(), Vec::<u8>::new());
        while reader.read(&mut batch).unwrap_or(false) {
            kinds.extend(&batch.kinds);
        }
        (kinds, reader.notes().join("\n"))
    };
    let (kinds, told) = notes("0 10\n4 20\n5 30\n3 40\n", Format::Din);
    assert_eq!(kinds, [0, 4, 5, 3]);
    assert!(told.starts_with("2 references have labels 4 or 5") && told.contains("--from dinero"), "{told}");
    let (kinds, told) = notes("0 10\n4 20\n5 30\n3 40\n", Format::Dinero);
    assert_eq!(kinds, [0, 7, 7, 3]);
    assert!(told.contains("one copy-back is kept as kind 7") && told.contains("one invalidation"), "{told}");
    assert!(told.contains("one miscellaneous reference is kept as kind 3"), "{told}");
    let (kinds, told) = notes("r 10 4\nW 20 8 text\ni 30 4\nm 40 1\nc 50 40\nv 60 40\n", Format::Xdin);
    assert_eq!(kinds, [0, 1, 2, 3, 7, 7]);
    assert!(told.contains("one line has text"), "{told}");
    // Also after an error.
    let (kinds, told) = notes("0 10 some text\n1 20\t# and more\n0 30z\n", Format::Din);
    assert_eq!(kinds, [0, 1]);
    assert!(told.starts_with("2 lines have text"), "{told}");
    assert_eq!(notes("0 10\r\n2 20  \n", Format::Din).1, "");
    // Columns that are a format's own are no text.
    assert!(read(b"0 10 20 text\n", Format::DinWord).1.is_some());
}

#[test]
fn headers_are_looked_at() {
    for (format, at, byte, words) in [
        (Format::Pdats, 0, 0, "mark"),
        (Format::Pdats, 4, 3, "version 3"),
        (Format::Pdats64, 5, 0x80, "flags"),
        (Format::Pdi, 3, b'T', "mark"),
        (Format::Pdi64, 4, 0, "version 0"),
        (Format::Pdi, 6, 1, "flags"),
    ] {
        let (_, mut bytes) = sample(format, 10, 3);
        bytes[at] = byte;
        let (read, error) = read(&bytes, format);
        let error = error.unwrap().to_string();
        assert!(read.is_empty() && error.contains(words), "{error}");
    }
}

#[test]
fn the_end_is_looked_at() {
    for format in [Format::Pdats64, Format::Pdi64] {
        let (all, bytes) = sample(format, 5000, 3);
        let count = bytes.len() - 8;
        let changed = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            bytes
        };
        for (bytes, offset, words) in [
            (changed(count, 0), count - 2, "counts"),
            (changed(bytes.len() - 1, 1), count - 2, "counts"),
            ([&bytes[..], &[0]].concat(), bytes.len(), "after its end"),
            (bytes[..count - 2].to_vec(), count - 2, "cut short"),
        ] {
            let (read, error) = read(&bytes, format);
            let error = error.unwrap();
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(place(&error), (5001, offset as u64));
            assert_eq!(read, all);
        }
    }
}

#[test]
fn a_compressed_file_cut_short_gives_what_it_has() {
    use refrain_addresses::{Compression, Packed};
    use std::io::Write;
    let (all, bytes) = sample(Format::RawTime, 60_000, 5);
    for compression in
        [Compression::Gzip, Compression::Zstd, Compression::Xz, Compression::Bzip2, Compression::Lz4]
    {
        // Bzip2 gives whole blocks, which are the smaller the lower the level.
        let level = (compression == Compression::Bzip2).then_some(1);
        let mut packed = Packed::new(Vec::new(), compression, level).unwrap();
        packed.write_all(&bytes).unwrap();
        let packed = packed.finish().unwrap();
        let cut = packed[..packed.len() * 3 / 4].to_vec();
        let mut reader = open(Box::new(std::io::Cursor::new(cut)), "a.rawt", None).unwrap();
        let mut batch = Batch::new();
        let mut read = Vec::new();
        let error = loop {
            match reader.read(&mut batch) {
                Ok(true) => read.extend(batch.iter()),
                Ok(false) => panic!("{compression:?} cut short is not noticed"),
                Err(error) => break error,
            }
        };
        assert_eq!(read, all[..read.len()]);
        assert!(!read.is_empty(), "{compression:?}");
        assert_eq!(place(&error).0, read.len() as u64 + 1);
    }
}

/// As many rounds as `REFRAIN_FUZZ_ROUNDS` says; `cargo run --example fuzz` goes on for as long as wanted.
#[test]
fn random_damage() {
    let rounds = std::env::var("REFRAIN_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    for format in written() {
        let mut random = Rng::with_seed(0x1234_5678_9abc_def1);
        for round in 0..rounds {
            let (all, mut bytes) = sample(format, 300, 100 + round % 7);
            let first = random.u64(..bytes.len() as u64 + 1) as usize;
            for _ in 0..=random.u64(..6) {
                let at = first + random.u64(..(bytes.len() - first).max(1) as u64) as usize;
                match random.u64(..4) {
                    0 => bytes.truncate(at),
                    1 if at <= bytes.len() => bytes.insert(at, random.u64(..) as u8),
                    2 if at < bytes.len() => drop(bytes.remove(at)),
                    _ if at < bytes.len() => bytes[at] ^= 1 << random.u64(..8),
                    _ => {}
                }
                if bytes.len() <= first {
                    break;
                }
            }
            common::read_some(&bytes, format, 1 << 20, |read, error| {
                if let Some(error) = error {
                    let (record, offset) = place(&error);
                    assert!(record > read && offset <= bytes.len() as u64);
                }
            });
            // What stands before the first change is delivered whatever follows.
            if format.is_text() {
                let lines = bytes[..first.min(bytes.len())].iter().filter(|byte| **byte == b'\n').count();
                let (read, _) = read(&bytes, format);
                assert_eq!(read[..lines], all[..lines], "{}", format.name());
            }
        }
    }
}
