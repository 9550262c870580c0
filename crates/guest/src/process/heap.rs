//! The tracer's own heap, in mappings of its own.
//!
//! It owes nothing to the process's `malloc`. That one may be jemalloc's or the program's own, another one may be called
//! for allocating than for freeing, and it may be in the middle of something when we are called. So the tracer's memory
//! comes from the kernel, and goes back there: large pieces each have a mapping, small ones are dealt out of mappings of
//! 64 KiB by the crate `dlmalloc`.
//!
//! A signal handler may interrupt this and come back here on the same thread. It must not wait for itself, nor see a heap
//! that is half changed: what it needs comes out of a spare piece of memory, and what it frees stays. Nor must others wait
//! for ever where it never returns: they go on in a second heap.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::ptr::{NonNull, copy_nonoverlapping, null_mut};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize, compiler_fence};
use std::time::Duration;

use dlmalloc::{Allocator, Dlmalloc};

use super::{pages, stack};
use refrain_process::waited::Waited;

/// From here on a piece has a mapping for itself, which goes back to the system as soon as it is freed.
const LARGE: usize = 128 << 10;
/// Pages are at least so large, on every system.
const PAGE: usize = 4096;
const SPARE: usize = 64 << 10;

/// # Safety of its methods
/// They are those of `GlobalAlloc`, and want what those want.
pub struct Heap {
    first: Small,
    /// Used from the moment on at which a thread was found that stands still in the first one: one in a handler that never
    /// returns. What is freed from then on is lost.
    second: Small,
    left: AtomicBool,
    /// Whether it was the second one that `lock` took.
    locked_second: AtomicBool,
    spare: &'static Spare,
}

/// Small pieces.
struct Small {
    lock: Lock,
    /// Touched only by the thread that holds `lock`.
    pieces: UnsafeCell<Dlmalloc<Pages>>,
}

// SAFETY: `pieces` is touched only under `lock`.
unsafe impl Sync for Small {}

impl Small {
    const fn new() -> Small {
        Small {
            lock: Lock(AtomicUsize::new(0)),
            pieces: UnsafeCell::new(Dlmalloc::new_with_allocator(Pages)),
        }
    }

    fn look<R>(&self, look: impl FnOnce(&mut Dlmalloc<Pages>) -> R) -> Result<R, NotHad> {
        let _held = self.lock.take()?;
        // SAFETY: this thread holds the lock, and it was not here before.
        Ok(look(unsafe { &mut *self.pieces.get() }))
    }
}

fn large(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= PAGE
}

impl Heap {
    pub const fn new(spare: &'static Spare) -> Heap {
        Heap {
            first: Small::new(),
            second: Small::new(),
            left: AtomicBool::new(false),
            locked_second: AtomicBool::new(false),
            spare,
        }
    }

    /// Runs `look` on pieces that are there; `None` where that cannot be: this thread is there already, or another one
    /// stands still there.
    fn existing<R>(&self, look: impl FnOnce(&mut Dlmalloc<Pages>) -> R) -> Option<R> {
        // Whoever has a piece of the second heap knows that the first one was left.
        if self.left.load(Relaxed) {
            return None;
        }
        let looked = self.first.look(look);
        self.leave_if(looked.as_ref().err());
        looked.ok()
    }

    fn new_piece(&self, make: impl Fn(&mut Dlmalloc<Pages>) -> *mut u8, layout: Layout) -> *mut u8 {
        let made = if self.left.load(Relaxed) { Err(NotHad::Stuck) } else { self.first.look(&make) };
        self.leave_if(made.as_ref().err());
        match made {
            Err(NotHad::Stuck) => self.second.look(&make),
            made => made,
        }
        .unwrap_or_else(|_| self.spare.take(layout))
    }

    fn leave_if(&self, error: Option<&NotHad>) {
        if error == Some(&NotHad::Stuck) {
            self.left.store(true, Relaxed);
        }
    }

    pub unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if large(layout) {
            return pointer(pages::map(layout.size()));
        }
        // SAFETY: as the caller says.
        let allocate = |small: &mut Dlmalloc<Pages>| unsafe { small.malloc(layout.size(), layout.align()) };
        self.new_piece(allocate, layout)
    }

    pub unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if large(layout) {
            return pointer(pages::map(layout.size()));
        }
        // SAFETY: as the caller says.
        let allocate = |small: &mut Dlmalloc<Pages>| unsafe { small.calloc(layout.size(), layout.align()) };
        // Spare memory is used once and begins as zeroes.
        self.new_piece(allocate, layout)
    }

    pub unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if large(layout) {
            if let Some(memory) = NonNull::new(memory) {
                // SAFETY: `alloc` mapped a piece of this layout, and the caller is done with it.
                unsafe { pages::unmap(memory, layout.size()) };
            }
            return;
        }
        if !self.spare.holds(memory) {
            // Where that cannot be, the piece is lost.
            // SAFETY: as the caller says.
            self.existing(|small| unsafe { small.free(memory, layout.size(), layout.align()) });
        }
    }

    pub unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller says that the size is a possible one.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (large(layout), large(new), NonNull::new(old)) {
            (true, true, Some(old)) => {
                // SAFETY: `alloc` mapped a piece of this layout, and the caller knows it by nothing but `old`.
                return pointer(unsafe { pages::remap(old, layout.size(), size, true) });
            }
            (false, false, _) if !self.spare.holds(old) => {
                let change = |small: &mut Dlmalloc<Pages>| {
                    // SAFETY: as the caller says.
                    unsafe { small.realloc(old, layout.size(), layout.align(), size) }
                };
                if let Some(changed) = self.existing(change) {
                    return changed;
                }
            }
            _ => {}
        }
        // SAFETY: as the caller says.
        let memory = unsafe { self.alloc(new) };
        if !memory.is_null() {
            // SAFETY: both are at least that long, and `memory` is new.
            unsafe { copy_nonoverlapping(old, memory, layout.size().min(size)) };
            // SAFETY: as the caller says.
            unsafe { self.dealloc(old, layout) };
        }
        memory
    }

    /// Before a fork: no other thread is in the middle of something that the child would find undone. Whether `unlock` is
    /// to be called after it, in both processes.
    pub fn lock(&self) -> bool {
        let left = self.left.load(Relaxed);
        let first = if left { Err(NotHad::Stuck) } else { self.first.lock.take() };
        let second = matches!(first, Err(NotHad::Stuck));
        let taken = if second { self.second.lock.take() } else { first };
        if taken.is_ok() {
            self.locked_second.store(second, Relaxed);
        }
        taken.map(std::mem::forget).is_ok()
    }

    /// After a fork, by the thread that called `lock`.
    pub fn unlock(&self) {
        let small = if self.locked_second.load(Relaxed) { &self.second } else { &self.first };
        small.lock.release();
    }
}

fn pointer(memory: Option<NonNull<u8>>) -> *mut u8 {
    memory.map_or(null_mut(), NonNull::as_ptr)
}

/// Where small pieces are dealt out from.
struct Pages;

// SAFETY: all memory is mapped anew and nobody else's; what is said to be gone is gone.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        (pointer(pages::map_sparse(size)), size, 0)
    }

    fn remap(&self, memory: *mut u8, old: usize, new: usize, may_move: bool) -> *mut u8 {
        // SAFETY: one of our mappings, of that size.
        pointer(NonNull::new(memory).and_then(|memory| unsafe { pages::remap(memory, old, new, may_move) }))
    }

    fn free_part(&self, memory: *mut u8, old: usize, new: usize) -> bool {
        // SAFETY: the end of one of our mappings.
        NonNull::new(memory).is_some_and(|memory| unsafe { pages::unmap(memory.add(new), old - new) })
    }

    fn free(&self, memory: *mut u8, size: usize) -> bool {
        // SAFETY: one of our mappings, of that size.
        NonNull::new(memory).is_some_and(|memory| unsafe { pages::unmap(memory, size) })
    }

    fn can_release_part(&self, _flags: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        pages::size()
    }
}

/// A lock that knows its thread: 0, or an address of that thread's own, which is even. The lowest bit says that somebody
/// waits. One word, so that there is no moment at which it is taken and nobody's.
struct Lock(AtomicUsize);

const WAITED_FOR: usize = 1;

/// Nobody needs more than microseconds.
const PATIENCE: Duration = if cfg!(test) { Duration::from_millis(50) } else { Duration::from_secs(5) };

struct Held<'a>(&'a Lock);

/// Why a lock was not had.
#[derive(Debug, Clone, Copy, PartialEq)]
enum NotHad {
    /// The calling thread holds it.
    Own,
    /// Another thread has held it for longer than anybody should.
    Stuck,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Lock {
    #[inline]
    fn take(&self) -> Result<Held<'_>, NotHad> {
        // Not touched, only where it lies. Every thread has it from its first instruction on.
        let own = stack::address();
        match self.0.compare_exchange(0, own, Acquire, Relaxed) {
            Ok(_) => {}
            Err(holder) if holder & !WAITED_FOR == own => return Err(NotHad::Own),
            Err(_) => self.wait(own)?,
        }
        // A handler on this thread sees the lock taken before anything is changed under it, and until all is.
        compiler_fence(AcqRel);
        Ok(Held(self))
    }

    #[cold]
    fn wait(&self, own: usize) -> Result<(), NotHad> {
        // SAFETY: the thread's own errno, which the program may be about to read.
        let errno = unsafe { *libc::__errno_location() };
        let mut waited = Waited::default();
        let result = loop {
            if waited.so_far() > PATIENCE {
                break Err(NotHad::Stuck);
            }
            let holder = self.0.load(Relaxed);
            if holder == 0 {
                // Others may be waiting too.
                if self.0.compare_exchange(0, own | WAITED_FOR, Acquire, Relaxed).is_ok() {
                    break Ok(());
                }
            } else if holder & WAITED_FOR != 0
                || self.0.compare_exchange(holder, holder | WAITED_FOR, Relaxed, Relaxed).is_ok()
            {
                let expected = (holder | WAITED_FOR) as u32 as usize;
                let a_while = libc::timespec { tv_sec: 0, tv_nsec: 500_000_000 };
                let wait = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
                // SAFETY: a word of ours, which the kernel compares and does not change.
                unsafe { libc::syscall(libc::SYS_futex, self.half(), wait, expected, &raw const a_while) };
            }
        };
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        result
    }

    fn release(&self) {
        compiler_fence(AcqRel);
        if self.0.swap(0, Release) & WAITED_FOR != 0 {
            let wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
            // SAFETY: the address is only looked up among those who wait.
            unsafe { libc::syscall(libc::SYS_futex, self.half(), wake, 1usize) };
        }
    }

    /// The kernel waits for words of 32 bits: the lower half, where the bit is.
    fn half(&self) -> *const u32 {
        let word = self.0.as_ptr().cast::<u32>();
        if cfg!(target_endian = "little") { word } else { word.wrapping_add(1) }
    }
}

/// Memory that is handed out once and never taken back. It takes none of the machine's until it is used.
pub struct Spare {
    bytes: UnsafeCell<[u8; SPARE]>,
    used: AtomicUsize,
}

// SAFETY: every byte is handed out at most once, by the atomic `used`.
unsafe impl Sync for Spare {}

impl Spare {
    pub const fn new() -> Spare {
        Spare { bytes: UnsafeCell::new([0; SPARE]), used: AtomicUsize::new(0) }
    }

    #[cold]
    fn take(&self, layout: Layout) -> *mut u8 {
        let base = self.bytes.get() as usize;
        let place = |used: usize| (base + used).next_multiple_of(layout.align());
        let take = |used: usize| {
            let end = place(used).checked_add(layout.size())? - base;
            (end <= SPARE).then_some(end)
        };
        self.used.fetch_update(AcqRel, Acquire, take).map_or(null_mut(), |used| place(used) as *mut u8)
    }

    fn holds(&self, memory: *mut u8) -> bool {
        (memory as usize).wrapping_sub(self.bytes.get() as usize) < SPARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap() -> &'static Heap {
        Box::leak(Box::new(Heap::new(Box::leak(Box::new(Spare::new())))))
    }

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    /// Fills a piece with its number and says whether it still has it.
    fn fill(memory: *mut u8, length: usize, number: u8) {
        // SAFETY: a piece of that length, which is the test's.
        unsafe { memory.write_bytes(number, length) };
    }

    fn filled(memory: *mut u8, length: usize, number: u8) -> bool {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(memory, length) }.iter().all(|&byte| byte == number)
    }

    #[test]
    fn pieces_of_all_sizes_grow_shrink_and_keep_what_is_in_them() {
        let heap = heap();
        let sizes = [1, 16, 100, 5000, LARGE - 1, LARGE, LARGE + 1, 3 * LARGE];
        for (number, (&size, align)) in sizes.iter().zip([1, 8, 64, 4096, 16, 1, 4096, 8]).enumerate() {
            for &other in &sizes {
                // SAFETY: layouts as they were asked for.
                unsafe {
                    let piece = heap.alloc(layout(size, align));
                    assert_eq!(piece as usize % align, 0);
                    fill(piece, size, number as u8);
                    let changed = heap.realloc(piece, layout(size, align), other);
                    assert_eq!(changed as usize % align, 0);
                    assert!(filled(changed, size.min(other), number as u8), "{size} to {other}");
                    fill(changed, other, 0xff);
                    heap.dealloc(changed, layout(other, align));
                    let zeroed = heap.alloc_zeroed(layout(size, align));
                    assert!(filled(zeroed, size, 0), "{size}");
                    heap.dealloc(zeroed, layout(size, align));
                }
            }
        }
        // SAFETY: a size that cannot be had.
        assert!(unsafe { heap.alloc(layout(usize::MAX / 4, 8)) }.is_null());
    }

    #[test]
    fn whoever_is_in_it_already_gets_spare_memory() {
        let heap = heap();
        // SAFETY: layouts as they were asked for.
        unsafe {
            let before = heap.alloc(layout(100, 8));
            assert!(heap.lock());
            assert!(!heap.lock(), "it is held by this thread");
            let spare = heap.alloc(layout(100, 64));
            assert!(heap.spare.holds(spare) && (spare as usize).is_multiple_of(64));
            assert!(filled(heap.alloc_zeroed(layout(10, 1)), 10, 0));
            fill(spare, 100, 3);
            let longer = heap.realloc(spare, layout(100, 64), 200);
            assert!(heap.spare.holds(longer) && filled(longer, 100, 3));
            heap.dealloc(before, layout(100, 8));
            assert!(heap.alloc(layout(SPARE, 8)).is_null());
            heap.unlock();
            let outside = heap.realloc(longer, layout(200, 64), 300);
            assert!(!heap.spare.holds(outside) && filled(outside, 100, 3));
            heap.dealloc(spare, layout(100, 64));
        }
    }

    #[test]
    fn a_thread_that_stands_still_in_it_holds_up_nobody() {
        let heap = heap();
        // SAFETY: layouts as they were asked for.
        unsafe {
            let before = heap.alloc(layout(100, 8));
            fill(before, 100, 1);
            std::thread::scope(|scope| {
                scope.spawn(|| assert!(heap.lock()));
            });
            let pieces: Vec<_> = (0..SPARE / 50).map(|_| heap.alloc(layout(100, 8))).collect();
            assert!(pieces.iter().all(|piece| !piece.is_null() && !heap.spare.holds(*piece)));
            pieces.iter().for_each(|piece| fill(*piece, 100, 2));
            let longer = heap.realloc(before, layout(100, 8), 1000);
            assert!(filled(longer, 100, 1) && pieces.iter().all(|piece| filled(*piece, 100, 2)));
            heap.dealloc(longer, layout(1000, 8));
            assert!(heap.lock(), "the second one");
            assert!(heap.spare.holds(heap.alloc(layout(100, 8))));
            heap.unlock();
        }
    }

    #[test]
    fn threads_wait_for_each_other() {
        let heap = heap();
        let work = move |number: u8| {
            let mut pieces = Vec::new();
            for round in 0..2000usize {
                let size = 1 + (round * 37 + usize::from(number) * 101) % 900;
                // SAFETY: layouts as they were asked for.
                unsafe {
                    let piece = heap.alloc(layout(size, 8));
                    fill(piece, size, number);
                    pieces.push((piece, size));
                    if round % 3 == 0 {
                        let (piece, size) = pieces.swap_remove(round % pieces.len());
                        assert!(filled(piece, size, number));
                        heap.dealloc(piece, layout(size, 8));
                    }
                }
            }
            assert!(pieces.iter().all(|&(piece, size)| filled(piece, size, number)));
        };
        std::thread::scope(|scope| (1..=4).for_each(|number| drop(scope.spawn(move || work(number)))));
        assert!(heap.lock(), "nobody holds it");
    }
}
