//! Numbers in chunks: what was written comes back, from anywhere and after any damage that leaves chunks whole.

use crate::stencil;

use std::collections::BTreeMap;
use std::io::{self, Cursor, Write};

use fastrand::Rng;
use refrain_fold::pack::{Kind, Method, number};
use refrain_tracefile::chunks::{Error, Key, Merger, Section, Settings, Shape, Writer, small};
use refrain_tracefile::{Loaded, append, load, outline, read, sections, write};

const SMALL: Settings = Settings { budget: 1 << 16, chunk: 300 };

fn key(member: u64, lane: u64) -> Key {
    Key { member, lane }
}

/// Numbers of many sorts.
fn numbers(random: &mut Rng, sort: u64, count: usize) -> Vec<i64> {
    let mut time = 1_700_000_000_000_000_000i64;
    (0..count as i64)
        .map(|i| {
            let any = random.u64(..1 << 53);
            time += 5000 + (any % 800) as i64;
            match sort % 6 {
                0 => time,
                1 => 1500 + (any % 100) as i64,
                2 => 8 * i,
                3 => (i % 10) * 8 + i / 10 * 4096,
                4 => any as i64,
                _ => 7,
            }
        })
        .collect()
}

/// A section of several streams, pushed in batches in turn, and what is in it.
fn section(seed: u64, streams: u64, most: usize, settings: Settings) -> (Vec<u8>, BTreeMap<Key, Vec<i64>>) {
    let mut random = Rng::with_seed(seed);
    let mut writer = Writer::new(Vec::new(), settings);
    let all: BTreeMap<Key, Vec<i64>> = (0..streams)
        .map(|at| {
            let count = (random.u64(..1 << 53) % most as u64) as usize + 1;
            (key(at % 3, at / 3), numbers(&mut random, at, count))
        })
        .collect();
    let mut left: Vec<(Key, &[i64])> = all.iter().map(|(key, numbers)| (*key, &numbers[..])).collect();
    while !left.is_empty() {
        let at = (random.u64(..1 << 53) % left.len() as u64) as usize;
        let (key, numbers) = left[at];
        let (now, later) = numbers.split_at(numbers.len().min(random.u64(..1 << 53) as usize % 700 + 1));
        let stream = writer.stream(key, Kind((key.lane % 4) as u8));
        writer.push(stream, now).unwrap();
        assert!(writer.held() <= settings.budget, "{} bytes wait", writer.held());
        left[at].1 = later;
        left.retain(|(_, numbers)| !numbers.is_empty());
    }
    (writer.finish().unwrap(), all)
}

#[test]
fn what_was_written_comes_back() {
    for (seed, settings) in
        [(1, SMALL), (2, Settings::default()), (3, Settings { budget: 1 << 10, chunk: 1 << 20 })]
    {
        let (bytes, all) = section(seed, 20, 3000, settings);
        let mut section = Section::open(Cursor::new(&bytes)).unwrap();
        assert!(section.is_whole());
        let check = section.check().unwrap();
        assert_eq!((check.streams, check.numbers), (20, all.values().map(|n| n.len() as u64).sum()));
        let found: Vec<(Key, Kind, u64)> = section.streams().map(|s| (s.key, s.kind, s.len)).collect();
        let said = all.iter().map(|(key, n)| (*key, Kind((key.lane % 4) as u8), n.len() as u64));
        assert_eq!(found, said.collect::<Vec<_>>());
        for (&key, numbers) in &all {
            let len = numbers.len() as u64;
            assert_eq!(section.len(key), len);
            for from in [0, len / 3, len / 2, len - 1, len, len + 5] {
                let rest: Vec<i64> = section.iter(key, from).map(Result::unwrap).collect();
                assert_eq!(rest, numbers[(from.min(len)) as usize..]);
                let to = (from + 400).min(len);
                let mut some = vec![1];
                section.read(key, from..to.max(from), &mut some).unwrap();
                assert_eq!(some[1..], numbers[(from.min(len)) as usize..to as usize]);
            }
            let beyond = section.read(key, 0..len + 1, &mut Vec::new());
            assert!(matches!(beyond, Err(Error::Lost { from, to, .. }) if (from, to) == (len, len + 1)));
        }
        assert_eq!(section.len(key(77, 0)), 0);
    }
}

#[test]
fn a_page_is_not_the_end_of_the_index() {
    let mut writer = Writer::new(Vec::new(), Settings { budget: 1 << 20, chunk: 2 });
    let stream = writer.stream(key(0, 0), Kind::NUMBER);
    let numbers: Vec<i64> = (0..5001).map(|i| i * i).collect();
    writer.push(stream, &numbers).unwrap();
    assert_eq!(writer.len(stream), 5001);
    let bytes = writer.finish().unwrap();
    let mut section = Section::open(Cursor::new(&bytes)).unwrap();
    assert!(section.is_whole() && section.check().unwrap().chunks == 2501);
    let mut some = Vec::new();
    section.read(key(0, 0), 4000..4003, &mut some).unwrap();
    assert_eq!(some, numbers[4000..4003]);
}

/// A section whose one stream has chunks of so many numbers, from these on.
fn chunks_of(chunks: &[(u64, u32)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), SMALL);
    for numbers in chunks {
        writer.put_packed((key(0, 0), Kind::TIME), number::SPANS, *numbers, b"packed").unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn a_gap_between_chunks_is_not_the_end_of_the_stream() {
    let bytes = chunks_of(&[(0, 10), (12, 5)]);
    let mut section = Section::open(Cursor::new(&bytes)).unwrap();
    for at in [10, 11] {
        let lost = section.packed(key(0, 0), at);
        assert!(matches!(lost, Err(Error::Lost { from, to: 12, .. }) if from == at), "{at}: {lost:?}");
    }
    assert_eq!(section.packed(key(0, 0), 9).unwrap().map(|chunk| chunk.first), Some(0));
    assert_eq!(section.packed(key(0, 0), 12).unwrap().map(|chunk| chunk.first), Some(12));
    assert_eq!(section.packed(key(0, 0), 17).unwrap(), None);
    assert!(matches!(section.check(), Err(Error::Lost { from: 10, to: 12, .. })));
}

#[test]
fn numbers_that_are_there_twice_are_an_error() {
    let bytes = chunks_of(&[(0, 10), (9, 5)]);
    let checked = Section::open(Cursor::new(&bytes)).unwrap().check();
    assert!(matches!(checked, Err(Error::Twice { from: 9, .. })), "{checked:?}");
    assert!(Section::open(Cursor::new(&chunks_of(&[(0, 10), (10, 5)]))).unwrap().check().is_ok());
}

#[test]
fn a_section_without_numbers() {
    let bytes = Writer::new(Vec::new(), SMALL).finish().unwrap();
    let mut section = Section::open(Cursor::new(&bytes)).unwrap();
    assert!(section.is_whole() && section.check().unwrap().chunks == 0);
    let section = Section::open(Cursor::new(b"")).unwrap();
    assert!(!section.is_whole() && section.streams().next().is_none());
}

/// Where each chunk of a whole section ends, in the order of the file, and what its stream has up to there.
fn ends(bytes: &[u8]) -> Vec<(usize, Key, u64)> {
    let section = Section::open(Cursor::new(bytes)).unwrap();
    let of = |key| section.ends(key).map(move |(end, numbers)| (end as usize, key, numbers));
    let mut ends: Vec<(usize, Key, u64)> = section.streams().flat_map(|stream| of(stream.key)).collect();
    ends.sort_unstable();
    ends
}

#[test]
fn a_cut_file_keeps_its_whole_chunks() {
    let (bytes, all) = section(4, 7, 900, SMALL);
    let ends = ends(&bytes);
    let whole = Section::open(Cursor::new(&bytes)).unwrap().check().unwrap();
    assert_eq!(ends.len() as u64, whole.chunks);
    let mut random = Rng::with_seed(9);
    for _ in 0..200 {
        let cut = (random.u64(..1 << 53) % bytes.len() as u64) as usize;
        let mut section = Section::open(Cursor::new(&bytes[..cut])).unwrap();
        assert!(!section.is_whole());
        let mut expected: BTreeMap<Key, u64> = BTreeMap::new();
        ends.iter().filter(|end| end.0 <= cut).for_each(|&(_, key, len)| {
            expected.insert(key, len);
        });
        let found: BTreeMap<Key, u64> = section.streams().map(|s| (s.key, s.len)).collect();
        assert_eq!(found, expected, "cut at {cut} of {}", bytes.len());
        for (key, len) in found {
            let numbers: Vec<i64> = section.iter(key, 0).map(Result::unwrap).collect();
            assert_eq!(numbers, all[&key][..len as usize]);
        }
        let chunks = ends.iter().filter(|end| end.0 <= cut).count() as u64;
        assert!(matches!(section.check(), Err(Error::Cut { chunks: left }) if left == chunks));
    }
}

#[test]
fn a_damaged_chunk_is_named_and_the_others_are_read() {
    let (bytes, all) = section(5, 4, 1500, SMALL);
    let mut random = Rng::with_seed(10);
    for _ in 0..150 {
        let mut bad = bytes.clone();
        let at = (random.u64(..1 << 53) % bytes.len() as u64) as usize;
        bad[at] ^= 1 << (random.u64(..1 << 53) % 8);
        let mut section = Section::open(Cursor::new(&bad)).unwrap();
        let noticed = section.check().is_err();
        assert!(noticed, "byte {at} of {} is another, and nobody says so", bytes.len());
        let mut lost = 0;
        for (&key, numbers) in &all {
            let mut next = 0;
            let mut some = Vec::new();
            while next < numbers.len() as u64 {
                some.clear();
                match section.read_on(key, next, &mut some) {
                    Ok(0) => break,
                    Ok(read) => {
                        assert_eq!(some, numbers[next as usize..next as usize + read]);
                        next += read as u64;
                    }
                    Err(Error::Lost { to, .. }) => next = to,
                    Err(Error::Damaged { start, end }) => {
                        assert!((start..end).contains(&(at as u64)));
                        next += 1;
                        // The rest of its chunk is just as damaged.
                        lost += 1;
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }
        assert!(lost <= 300, "more than one chunk of numbers is lost");
    }
}

#[test]
fn any_bytes_are_read_without_a_panic() {
    let mut random = Rng::with_seed(11);
    let (good, _) = section(6, 5, 400, SMALL);
    for round in 0..400 {
        let mut bytes = good.clone();
        for _ in 0..1 + round % 20 {
            let at = (random.u64(..1 << 53) % bytes.len() as u64) as usize;
            match random.u64(..1 << 53) % 3 {
                0 => bytes[at] = random.u64(..1 << 53) as u8,
                1 => {
                    bytes.remove(at);
                }
                _ => bytes.insert(at, random.u64(..1 << 53) as u8),
            }
        }
        let mut section = Section::open(Cursor::new(&bytes)).unwrap();
        let _ = section.check();
    }
}

#[test]
fn bytes_of_a_shape_that_no_writer_makes() {
    let mut random = Rng::with_seed(12);
    let good = Shape.pack(Kind::NUMBER, &numbers(&mut random, 3, 1000), usize::MAX).unwrap();
    for at in 0..good.len() {
        for flip in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            let mut bytes = good.clone();
            bytes[at] ^= flip;
            let mut into = Vec::new();
            let _ = Shape.unpack(&bytes, 1000, &mut into);
            assert!(into.len() <= 1000);
        }
    }
}

/// What reached the disk: the sink of a process that is killed.
#[derive(Default, Clone)]
struct Killed(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

impl Write for Killed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_was_sealed_outlives_the_writer() {
    let disk = Killed::default();
    let mut writer = Writer::new(disk.clone(), SMALL);
    let stream = writer.stream(key(1, 2), Kind::DURATION);
    let numbers: Vec<i64> = (0..1000).map(|i| i % 37).collect();
    writer.push(stream, &numbers[..450]).unwrap();
    writer.seal().unwrap();
    writer.push(stream, &numbers[450..600]).unwrap();
    std::mem::forget(writer);
    let bytes = disk.0.borrow().clone();
    let mut section = Section::open(Cursor::new(&bytes)).unwrap();
    let found: Vec<i64> = section.iter(key(1, 2), 0).map(Result::unwrap).collect();
    assert_eq!(found, numbers[..450]);
}

#[test]
fn ranks_are_merged_by_index_and_streams_renamed() {
    let parts: Vec<_> = (0..4).map(|rank| section(20 + rank, 6, 800, SMALL)).collect();
    let mut merger = Merger::new(Vec::new());
    let mut expected = BTreeMap::new();
    for (rank, (bytes, all)) in (0..).zip(&parts) {
        // Lane 1 stays behind, and what is cut is merged as far as it goes.
        let name =
            |key: Key| (key.lane != 1).then_some(Key { member: key.member * 4 + rank, lane: key.lane + 100 });
        let bytes = if rank == 3 { &bytes[..bytes.len() - 1] } else { &bytes[..] };
        let mut part = Section::open(Cursor::new(bytes)).unwrap();
        merger.add(&mut part, name).unwrap();
        expected.extend(all.iter().filter_map(|(key, numbers)| Some((name(*key)?, numbers.clone()))));
    }
    let merged = merger.finish().unwrap();
    let mut section = Section::open(Cursor::new(&merged)).unwrap();
    assert_eq!(section.check().unwrap().streams, expected.len() as u64);
    for (key, numbers) in expected {
        assert_eq!(section.iter(key, 0).map(Result::unwrap).collect::<Vec<_>>(), numbers);
    }
}

#[test]
fn each_stream_is_packed_as_it_is_best() {
    let mut random = Rng::with_seed(13);
    let mut sizes = Vec::new();
    for sort in 0..6 {
        let mut writer = Writer::with(Vec::new(), Settings::default(), small());
        let stream = writer.stream(key(0, 0), Kind::NUMBER);
        writer.push(stream, &numbers(&mut random, sort, 32_768)).unwrap();
        sizes.push(writer.finish().unwrap().len());
    }
    // Times and durations take their noise, what has a shape next to nothing, and what has none no more than it is.
    let most = [32_768 * 5 / 4 + 600, 32_768 * 7 / 8 + 400, 120, 160, 32_768 * 8 + 120, 100];
    assert!(sizes.iter().zip(most).all(|(&size, most)| size < most), "{sizes:?}");
}

/// Numbers and their method, as a tool of a later time may pack them.
struct Later;

fn later(count: usize) -> Vec<i64> {
    (0..count as i64).map(|i| i * i * 7919 % 100_003).collect()
}

impl Method for Later {
    fn number(&self) -> u8 {
        200
    }

    fn pack(&mut self, kind: Kind, numbers: &[i64], _: usize) -> Option<Vec<u8>> {
        (kind == Kind::ADDRESS && numbers.len() == 100).then(Vec::new)
    }

    fn unpack(
        &mut self,
        _: &[u8],
        count: usize,
        into: &mut Vec<i64>,
    ) -> Result<(), refrain_fold::pack::Damaged> {
        into.extend(later(count));
        Ok(())
    }
}

#[test]
fn a_method_of_ones_own() {
    let numbers = later(100);
    let mut writer = Writer::with(Vec::new(), Settings { chunk: 100, ..SMALL }, small().with(Later));
    let stream = writer.stream(key(0, 0), Kind::ADDRESS);
    writer.push(stream, &numbers).unwrap();
    let bytes = writer.finish().unwrap();
    let mut section = Section::open(Cursor::new(&bytes)).unwrap();
    assert!(matches!(section.check(), Err(Error::Method { method: 200, start: 0 })));
    let mut section = section.with(small().with(Later));
    assert_eq!(section.iter(key(0, 0), 50).next().unwrap().unwrap(), numbers[50]);
}

#[test]
fn a_trace_with_chunks() {
    let trace = stencil::trace(3, 20);
    let plain = write(&trace);
    let (chunks, all) = section(7, 9, 900, SMALL);
    let mut file = Vec::new();
    append(&plain, Cursor::new(&chunks), &mut file).unwrap();
    assert_eq!(read(&file).unwrap(), trace);
    let last = sections(&file).unwrap().pop().unwrap();
    assert_eq!((last.name, last.stored, last.offset + last.stored), ("chunked", chunks.len(), file.len()));
    let sections = outline(&file).unwrap().sections;
    assert_eq!(sections.last().map(|info| (info.name, info.stored)), Some(("chunked", chunks.len())));
    // Without loading the chunks.
    let Loaded { bytes, chunks: range, whole, length, .. } = load(Cursor::new(&file)).unwrap();
    assert_eq!((bytes, whole, length), (plain.clone(), true, file.len() as u64));
    let range = range.unwrap();
    assert_eq!(range, (file.len() - chunks.len()) as u64..file.len() as u64);
    let mut section = Section::within(Cursor::new(&file), range.clone()).unwrap();
    assert_eq!(section.check().unwrap().streams, 9);
    // A trace without any is as it is, and so is what is no trace.
    for other in [&plain[..], b"something else", b"", &plain[..20], &file[..range.start as usize - 3]] {
        let loaded = load(Cursor::new(other)).unwrap();
        assert_eq!((&loaded.bytes[..], loaded.chunks), (other, None));
    }
    // Cut anywhere in the chunks, the trace is whole and so are the chunks before the cut.
    for cut in (range.start as usize..file.len()).step_by(397) {
        let Loaded { bytes, chunks, whole, .. } = load(Cursor::new(&file[..cut])).unwrap();
        assert_eq!(read(&bytes).unwrap(), trace);
        assert!(!whole);
        let mut section = Section::within(Cursor::new(&file[..cut]), chunks.unwrap()).unwrap();
        let keys: Vec<Key> = section.streams().map(|stream| stream.key).collect();
        for key in keys {
            let len = section.len(key) as usize;
            assert_eq!(section.iter(key, 0).map(Result::unwrap).collect::<Vec<_>>(), all[&key][..len]);
        }
        assert!(read(&file[..cut]).is_err());
    }
    // A flipped byte is found by a reader of all bytes.
    for at in (0..file.len()).step_by(11) {
        let mut bad = file.clone();
        bad[at] ^= 0x10;
        assert!(read(&bad).is_err(), "byte {at}");
    }
}
