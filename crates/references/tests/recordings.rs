//! What is recorded comes back: folded, in stretches, of several threads and ranks, after a full disk.

use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use refrain_fold::bundle::{Bundle, Sites};
use refrain_references::{
    Access, Block, Chunks, Folding, Item, Reference, References, Thread, check, join, open,
};
use refrain_tracefile::chunks::{Merger, Section};

/// A file in memory that takes so many bytes.
#[derive(Clone)]
struct Disk(Arc<Mutex<Vec<u8>>>, usize);

impl Disk {
    fn new(room: usize) -> Disk {
        Disk(Arc::default(), room)
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.0.lock().unwrap();
        if file.len() + bytes.len() > self.1 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        file.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn chunks(bytes: &[u8]) -> Chunks {
    let range = 0..bytes.len() as u64;
    open(Box::new(Cursor::new(bytes.to_vec())), range).unwrap()
}

fn block(pc: u64, references: u32) -> Block {
    let reference = |k: u32| Reference { at: 5 * k, access: Access::ALL[k as usize % 3], size: 1 << (k % 4) };
    Block { pc, references: (0..references).map(reference).collect() }
}

/// Blocks in a loop, then in any order at any address, then in a loop again, ...
fn run(seed: u64, rounds: usize, each: usize, mut push: impl FnMut(u64, &[u64])) {
    let mut random = Rng::with_seed(seed);
    for round in 0..rounds {
        for i in 0..each {
            let which = if round % 2 == 0 { i as u64 % 3 } else { random.u64(..40) };
            let address = |k: u64, random: &mut Rng| match round % 2 {
                0 => 0x1000_0000 + 8 * i as u64 + 0x10_0000 * k,
                _ => 0x7f00_0000_0000 + 8 * random.u64(..1 << 30),
            };
            let addresses: Vec<u64> = (0..1 + which % 4).map(|k| address(k, &mut random)).collect();
            push(which, &addresses);
        }
    }
}

fn record(thread: &mut Thread, seed: u64, rounds: usize, each: usize) -> u64 {
    let symbols: Vec<u32> =
        (0..40u64).map(|which| thread.symbol(&block(0x400 + 64 * which, 1 + which as u32 % 4), 0)).collect();
    let mut references = 0;
    run(seed, rounds, each, |which, addresses| {
        thread.push(symbols[which as usize], addresses);
        references += addresses.len() as u64;
    });
    references
}

/// Everything that was recorded is there, in order; the first `count` of it where the rest was lost.
fn holds(bundle: &Bundle, place: (u32, u32), chunks: Option<Chunks>, what: (u64, usize, usize), count: u64) {
    let mut references = References::new(bundle, place, chunks).unwrap().unwrap();
    let mut read = 0;
    run(what.0, what.1, what.2, |which, addresses| {
        for (k, address) in addresses.iter().enumerate() {
            if read == count {
                return;
            }
            let event = references.next().unwrap().unwrap();
            let place = 0x400 + 64 * which + 5 * k as u64;
            assert_eq!(
                (event.address, event.place.offset, event.access),
                (*address, place, Access::ALL[k % 3])
            );
            read += 1;
        }
    });
    assert_eq!(read, count);
    assert!(references.next().is_none());
}

#[test]
fn what_does_not_fold_goes_aside_and_comes_back() {
    for folding in [Folding::Rules, Folding::Loops] {
        let disk = Disk::new(usize::MAX);
        let mut thread = Thread::new(folding, (0, 1), 0).bounded(Box::new(disk.clone()), 64 << 20);
        let references = record(&mut thread, 5, 4, 400_000);
        let bundle = join(vec![thread.bundle(&Sites::default()).unwrap()]).unwrap();
        assert_eq!(thread.len(), references);
        thread.close().unwrap();
        let bytes = disk.bytes();
        assert!(bytes.len() > 1 << 20, "{} bytes aside", bytes.len());
        assert!(Section::open(Cursor::new(bytes.clone())).unwrap().is_whole());
        let checked = check(&bundle, || Ok(Some(chunks(&bytes))), |_| {}).unwrap();
        assert_eq!((checked.references, checked.wrong), (references, vec![]));
        holds(&bundle, (0, 0), Some(chunks(&bytes)), (5, 4, 400_000), references);
        // Without its chunks it is not whole, and says so.
        assert!(check(&bundle, || Ok(None), |_| {}).is_err());
    }
}

#[test]
fn memory_has_a_bound() {
    let disk = Disk::new(usize::MAX);
    let mut thread = Thread::new(Folding::Rules, (0, 1), 0).bounded(Box::new(disk.clone()), 1 << 20);
    let mut most = 0;
    let symbols: Vec<u32> =
        (0..40u64).map(|which| thread.symbol(&block(which + 1, 1 + which as u32 % 4), 0)).collect();
    run(9, 12, 100_000, |which, addresses| {
        thread.push(symbols[which as usize], addresses);
        most = most.max(thread.len() % 4096 / 4095 * thread.memory() as u64);
    });
    assert!(most < 32 << 20, "{most} bytes");
    let bundle = thread.bundle(&Sites::default()).unwrap();
    let checked = check(&bundle, || Ok(Some(chunks(&disk.bytes()))), |_| {}).unwrap();
    assert_eq!((checked.references, checked.wrong), (thread.len(), vec![]));
}

#[test]
fn a_picture_taken_on_the_way_stands_alone() {
    let disk = Disk::new(usize::MAX);
    let mut thread = Thread::new(Folding::Rules, (0, 1), 0).bounded(Box::new(disk.clone()), 1 << 20);
    let symbols: Vec<u32> =
        (0..40u64).map(|which| thread.symbol(&block(0x400 + 64 * which, 1 + which as u32 % 4), 0)).collect();
    let (mut pushed, mut pictures) = (0, Vec::new());
    run(3, 4, 150_000, |which, addresses| {
        thread.push(symbols[which as usize], addresses);
        pushed += 1;
        if pushed % 90_000 == 0 {
            let bundle = thread.bundle(&Sites::default()).unwrap();
            pictures.push((bundle, disk.bytes(), thread.len()));
        }
    });
    assert!(pictures.len() > 5);
    for (bundle, bytes, count) in pictures {
        // A killed process leaves such a file: without an end.
        let opened = || Ok((!bytes.is_empty()).then(|| chunks(&bytes)));
        let checked = check(&bundle, opened, |_| {}).unwrap();
        assert_eq!((checked.references, checked.wrong), (count, vec![]));
        holds(&bundle, (0, 0), opened().unwrap(), (3, 4, 150_000), count);
    }
}

/// What is folded again after a stretch: all of that stretch is in the file.
#[test]
fn a_picture_taken_after_a_stretch_stands_alone() {
    let disk = Disk::new(usize::MAX);
    let mut thread = Thread::new(Folding::Rules, (0, 1), 0).bounded(Box::new(disk.clone()), 64 << 20);
    let symbol = thread.symbol(&block(0x400, 1), 0);
    let mut random = Rng::with_seed(3);
    let mut pictures = 0;
    for i in 0..1_700_000u64 {
        let address = if i < 200_000 { 8 * random.u64(..1 << 30) } else { 8 * i };
        thread.push(symbol, &[address]);
        if i % 170_000 == 169_999 {
            let bundle = thread.bundle(&Sites::default()).unwrap();
            let bytes = disk.bytes();
            let opened = || Ok((!bytes.is_empty()).then(|| chunks(&bytes)));
            let checked = check(&bundle, opened, |_| {}).unwrap();
            assert_eq!((checked.references, checked.wrong), (i + 1, vec![]));
            pictures += usize::from(!bytes.is_empty());
        }
    }
    assert!(pictures > 5);
}

#[test]
fn a_full_disk_ends_the_recording_and_loses_nothing_before() {
    let disk = Disk::new(3 << 20);
    let mut thread = Thread::new(Folding::Rules, (0, 1), 0).bounded(Box::new(disk.clone()), 1 << 20);
    let references = record(&mut thread, 7, 6, 300_000);
    assert_eq!(thread.stopped().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
    assert!(thread.len() < references && thread.len() > 100_000, "{} of {references}", thread.len());
    let bundle = thread.bundle(&Sites::default()).unwrap();
    let checked = check(&bundle, || Ok(Some(chunks(&disk.bytes()))), |_| {}).unwrap();
    assert_eq!((checked.references, checked.wrong), (thread.len(), vec![]));
    holds(&bundle, (0, 0), Some(chunks(&disk.bytes())), (7, 6, 300_000), thread.len());
    thread.close().unwrap();
}

#[test]
fn threads_and_ranks_are_joined_with_their_chunks() {
    let mut bundles = Vec::new();
    let mut merger = Merger::new(Vec::new());
    let places: Vec<(u32, u32)> = (0..3).flat_map(|rank| (0..2).map(move |thread| (rank, thread))).collect();
    let mut counts = Vec::new();
    for &(rank, thread) in &places {
        let disk = Disk::new(usize::MAX);
        let mut recording =
            Thread::new(Folding::Rules, (rank, 3), thread).bounded(Box::new(disk.clone()), 1 << 20);
        counts.push(record(&mut recording, u64::from(10 * rank + thread), 3, 120_000));
        bundles.push(recording.bundle(&Sites::default()).unwrap());
        recording.close().unwrap();
        let mut section = Section::open(Cursor::new(disk.bytes())).unwrap();
        merger.add(&mut section, Some).unwrap();
    }
    let all = merger.finish().unwrap();
    let bundle = join(bundles).unwrap();
    let checked = check(&bundle, || Ok(Some(chunks(&all))), |_| {}).unwrap();
    assert_eq!((checked.threads, checked.references, checked.wrong), (6, counts.iter().sum(), vec![]));
    for (&(rank, thread), count) in places.iter().zip(counts) {
        let seed = u64::from(10 * rank + thread);
        holds(&bundle, (rank, thread), Some(chunks(&all)), (seed, 3, 120_000), count);
    }
}

#[test]
fn reading_begins_anywhere() {
    for folding in [Folding::Rules, Folding::Loops] {
        let disk = Disk::new(usize::MAX);
        let mut thread = Thread::new(folding, (0, 1), 0).bounded(Box::new(disk.clone()), 64 << 20);
        let mark = thread.symbol(&Block { pc: 1, references: vec![] }, 0);
        record(&mut thread, 5, 2, 300_000);
        thread.push(mark, &[]);
        record(&mut thread, 6, 3, 100_000);
        thread.push(mark, &[]);
        let bundle = join(vec![thread.bundle(&Sites::default()).unwrap()]).unwrap();
        let count = thread.len();
        thread.close().unwrap();
        let bytes = disk.bytes();
        let read = || References::new(&bundle, (0, 0), Some(chunks(&bytes))).unwrap().unwrap();
        let all: Vec<_> = read().map(Result::unwrap).collect();
        assert_eq!(all.len() as u64, count);
        let mut random = Rng::with_seed(8);
        let somewhere = (0..12).map(|_| random.u64(..count));
        for from in [0, 1, 2, count - 1, count, count + 1, u64::MAX].into_iter().chain(somewhere) {
            let mut references = read();
            assert_eq!(references.skip_to(from).unwrap(), from.min(count), "from {from}");
            let some: Vec<_> = references.by_ref().take(50).map(Result::unwrap).collect();
            let from = from.min(count) as usize;
            assert_eq!(some, all[from..all.len().min(from + 50)], "from {from}");
        }
    }
}

/// Marks keep their places among references, where these fold and where they go aside, in pictures taken on the way too.
#[test]
fn marks_stay_where_they_were() {
    for folding in [Folding::Rules, Folding::Loops] {
        let disk = Disk::new(usize::MAX);
        let mut thread = Thread::new(folding, (1, 2), 5).bounded(Box::new(disk.clone()), 1 << 20);
        let symbols: Vec<u32> = (0..40u64)
            .map(|which| thread.symbol(&block(0x400 + 64 * which, 1 + which as u32 % 4), 0))
            .collect();
        // By how many references were before each.
        let (mut marks, mut pushed, mut pictures) = (Vec::new(), 0, Vec::new());
        run(3, 4, 150_000, |which, addresses| {
            thread.push(symbols[which as usize], addresses);
            pushed += 1;
            if pushed % 7 == 0 || pushed % 11 == 0 {
                for _ in 0..1 + pushed % 2 {
                    thread.mark(9);
                    marks.push(thread.len());
                }
            }
            if pushed % 250_000 == 0 {
                let bundle = thread.bundle(&Sites::default()).unwrap();
                pictures.push((bundle, marks.len(), thread.len()));
            }
        });
        pictures.push((thread.bundle(&Sites::default()).unwrap(), marks.len(), thread.len()));
        let bytes = disk.bytes();
        assert!(bytes.len() > 1 << 18, "{} bytes aside", bytes.len());
        for (bundle, count, references) in pictures {
            let opened = || Ok(Some(chunks(&bytes)));
            let checked = check(&bundle, opened, |_| {}).unwrap();
            assert_eq!((checked.references, checked.wrong), (references, vec![]));
            assert_eq!(checked.calls, [((1, 9), count as u64)].into());
            let mut items = References::new(&bundle, (1, 5), opened().unwrap()).unwrap().unwrap();
            let mut found = Vec::new();
            while let Some(item) = items.next_item() {
                if item.unwrap() == Item::Call(9) {
                    found.push(items.read());
                }
            }
            assert!(found[..] == marks[..count]);
        }
    }
}

/// Fetches come back with the addresses that follow from the first of their block: folded, in stretches, and from any place on.
#[test]
fn fetches_come_back() {
    let references = |which: u64| {
        let fetch = |at| Reference { at, access: Access::Fetch, size: 4 };
        let load = |at| Reference { at, access: Access::Load, size: 8 };
        match which % 3 {
            0 => vec![fetch(0), fetch(4), load(4), fetch(8)],
            1 => vec![fetch(0), fetch(4)],
            _ => vec![load(0), fetch(0), load(4), fetch(4)],
        }
    };
    let start = |which: u64| 0x40_0000 + 64 * which;
    let disk = Disk::new(usize::MAX);
    let mut thread = Thread::new(Folding::Rules, (0, 1), 0).bounded(Box::new(disk.clone()), 1 << 20);
    let blocks: Vec<Block> =
        (0..40).map(|which| Block { pc: start(which), references: references(which) }).collect();
    let symbols: Vec<u32> = blocks.iter().map(|block| thread.symbol(block, 0)).collect();
    let mut expected = Vec::new();
    run(7, 3, 150_000, |which, addresses| {
        let block = &blocks[which as usize];
        let mut loads = addresses.iter().chain([&1, &2]).copied();
        let mut pushed = Vec::new();
        for (reference, has_lane) in block.references.iter().zip(block.lanes()) {
            let address = match reference.access {
                Access::Fetch => start(which) + u64::from(reference.at),
                _ => loads.next().unwrap(),
            };
            pushed.extend(has_lane.then_some(address));
            expected.push((address, reference.access, reference.size));
        }
        thread.push(symbols[which as usize], &pushed);
    });
    assert_eq!(thread.len(), expected.len() as u64);
    let bundle = join(vec![thread.bundle(&Sites::default()).unwrap()]).unwrap();
    thread.close().unwrap();
    let bytes = disk.bytes();
    assert!(!bytes.is_empty());
    let checked = check(&bundle, || Ok(Some(chunks(&bytes))), |_| ()).unwrap();
    assert_eq!((checked.references, checked.wrong.len()), (expected.len() as u64, 0));
    for from in [0, 1, 2, 3, 100_001, expected.len() / 2, expected.len() - 3] {
        let mut read = References::new(&bundle, (0, 0), Some(chunks(&bytes))).unwrap().unwrap();
        assert_eq!(read.skip_to(from as u64).unwrap(), from as u64);
        let found = read.map(|event| event.map(|event| (event.address, event.access, event.size)).unwrap());
        assert!(found.eq(expected[from..].iter().copied()), "from {from}");
    }
}
