//! Numbers in chunks take the memory of the budget, however many there are. A hundred million of them go through
//! `examples/chunks.rs`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use refrain_fold::pack::Kind;
use refrain_tracefile::chunks::{Key, Merger, Section, Settings, Writer};

struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(0);

// SAFETY: every request goes to the system allocator as it came; counting touches only atomic numbers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size() as i64, Relaxed) + layout.size() as i64;
        MOST.fetch_max(live, Relaxed);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Relaxed);
        // SAFETY: `pointer` came from `alloc` above, hence from the system allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most that was held meanwhile, beyond what was held before.
fn most<T>(what: impl FnOnce() -> T) -> (usize, T) {
    let before = LIVE.load(Relaxed);
    MOST.store(before, Relaxed);
    let result = what();
    ((MOST.load(Relaxed) - before) as usize, result)
}

/// Streams of times that many numbers come to in turn; the file is made beforehand, as it is no part of the writer.
fn write(file: &mut [u8], streams: u64, numbers: u64, settings: Settings) -> usize {
    let mut sink = std::io::Cursor::new(file);
    let mut writer = Writer::new(&mut sink, settings);
    let (mut random, mut time) = (fastrand::Rng::with_seed(1), 0);
    let mut batch = [0; 64];
    for round in 0..numbers / 64 {
        for number in &mut batch {
            time += 5000 + random.i64(0..1 << 12);
            *number = time;
        }
        let stream = writer.stream(Key { member: 0, lane: round % streams }, Kind::TIME);
        writer.push(stream, &batch).unwrap();
    }
    writer.finish().unwrap();
    sink.position() as usize
}

/// The only test of this file: what others allocate would be counted too.
#[test]
fn a_budget_holds_whatever_comes() {
    let mut file = vec![0u8; 2 << 20];
    for (budget, streams) in [(1 << 20, 1), (1 << 19, 100), (1 << 20, 1000)] {
        let settings = Settings { budget, ..Settings::default() };
        let [short, long] = [1 << 17, 1 << 19].map(|numbers| {
            let (held, length) = most(|| write(&mut file, streams, numbers, settings));
            println!("{budget} bytes, {streams} streams, {numbers} numbers: {held} held, {length} written");
            let allowed = budget + streams as usize * 160 + (1 << 17);
            assert!(held < allowed, "{held} bytes, {allowed} allowed");
            (held, length)
        });
        // A few times as long, a few pages of the index, and nothing more.
        assert!(long.0 < short.0 + budget / 4, "{short:?} {long:?}");
        let mut merged = vec![0u8; 2 << 20];
        let (held, _) = most(|| {
            let mut section = Section::open(std::io::Cursor::new(&file[..long.1])).unwrap();
            assert!(section.is_whole());
            let mut merger = Merger::new(&mut merged[..]);
            merger.add(&mut section, Some).unwrap();
            merger.finish().unwrap();
        });
        println!("    merged with {held} bytes");
        assert!(held < 1 << 20, "{held} bytes to merge");
        let mut section = Section::open(std::io::Cursor::new(&file[..long.1])).unwrap();
        assert_eq!(section.check().unwrap().numbers, 1 << 19);
    }
}
