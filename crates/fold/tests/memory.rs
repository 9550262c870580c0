//! Numbers without a shape take the memory of their packed form and of one open block.

use refrain_fold::stream::{Block, Folder};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

// SAFETY: every request goes to the system allocator as it came; counting touches only an atomic number.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Relaxed);
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

/// The only test of this file: what others allocate would be counted too.
#[test]
fn ten_million_random_numbers() {
    let mut random = fastrand::Rng::with_seed(1);
    let before = LIVE.load(Relaxed);
    let mut folder = Folder::new();
    for _ in 0..10_000_000 {
        folder.push(random.i64(0..1000));
    }
    let held = LIVE.load(Relaxed) - before;
    let packed: usize = folder
        .finish()
        .blocks
        .iter()
        .map(|block| match block {
            Block::Packed { bytes, .. } => bytes.len(),
            Block::Running { .. } | Block::Rows { .. } => 0,
        })
        .sum();
    println!("{held} bytes held for {packed} packed");
    assert!(packed < 10_000_000 * 102 / 80, "{packed}");
    assert!(held < packed as i64 + 4_000_000, "{held} {packed}");
}
