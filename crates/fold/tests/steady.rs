//! Once a sequence is regular, folding more of it allocates nothing.

use refrain_fold::loops::{self, Matching};
use refrain_fold::{grammar, stream};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every request goes to the system allocator as it came; counting touches only a thread-local without a
// destructor, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above, hence from the system allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn regular_structure() {
    let step: Vec<u32> = [vec![0], [1, 2, 3].repeat(20), vec![4, 4, 4], [5, 6].repeat(7)].concat();
    for body in [&[9][..], &(0..20).collect::<Vec<_>>(), &step] {
        let mut folder = grammar::Folder::new();
        body.repeat(3).iter().for_each(|&symbol| folder.push(symbol));
        let more = body.repeat(1000);
        assert_eq!(allocations(|| more.iter().for_each(|&symbol| folder.push(symbol))), 0);
    }
}

/// Rounds too long to be expected as a whole: the loops inside them come and go without allocating either.
#[test]
fn nested_structure() {
    let step: Vec<u32> = [(100..120).collect::<Vec<_>>().repeat(4000), vec![1, 2, 3], vec![7; 50]].concat();
    let mut folder = grammar::Folder::new();
    step.repeat(4).iter().for_each(|&symbol| folder.push(symbol));
    let more = step.repeat(4);
    assert_eq!(allocations(|| more.iter().for_each(|&symbol| folder.push(symbol))), 0);
}

/// Trip counts that come again, places left out in turn.
#[test]
fn regular_loops() {
    let step: Vec<u32> = [vec![0], [1, 2, 3].repeat(20), vec![4, 4, 4], [5, 6].repeat(7)].concat();
    let other: Vec<u32> = [vec![0, 9], [1, 2, 3].repeat(12), [5, 6].repeat(8)].concat();
    let both = [&step[..], &other].concat();
    for matching in [Matching::Elastic, Matching::Exact { window: loops::WINDOW }] {
        for body in [&[9][..], &(0..20).collect::<Vec<_>>(), &step, &both] {
            let mut folder = loops::Folder::new(matching);
            body.repeat(100).iter().for_each(|&symbol| folder.push(symbol));
            let more = body.repeat(1000);
            assert_eq!(allocations(|| more.iter().for_each(|&symbol| folder.push(symbol))), 0);
        }
    }
}

#[test]
fn regular_streams() {
    let period = [1, 5, 2, 9, 9, 9, 0, 4, 8, 12];
    let shapes: [&dyn Fn(i64) -> i64; 3] = [&|_| 5, &|i| 8 * i, &|i| period[i as usize % period.len()]];
    for shape in shapes {
        let mut folder = stream::Folder::new();
        (0..40).for_each(|i| folder.push(shape(i)));
        assert_eq!(allocations(|| (40..40_000).for_each(|i| folder.push(shape(i)))), 0);
    }
}

#[test]
fn an_unused_folder_costs_nothing() {
    assert_eq!(allocations(|| drop((grammar::Folder::new(), stream::Folder::new()))), 0);
}
