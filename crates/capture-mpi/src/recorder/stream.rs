//! What one thread records, and how it shares its requests with the others.

use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr};

use refrain_encode::{Averages, Before, Facts, Folding, Memo, Peers, Record, Requests, Tape};

use super::host::Reader;
use super::safety::Safe;
use crate::stacks::Stacks;
use crate::state::{self, STREAMS};

/// Made when a thread of this number first calls MPI, and never freed.
///
/// Invariants: 1. `own` is touched only by the thread that has the number, while it is marked as busy; after the end of
/// the recording, which waits until nobody is, by whoever ended it. 2. `requests` is touched only by who holds `taken`,
/// or by the thread itself as long as no other one has called MPI.
pub struct Stream {
    pub number: u32,
    pub busy: AtomicBool,
    taken: AtomicBool,
    requests: UnsafeCell<Requests>,
    own: UnsafeCell<Own>,
    /// The one made before.
    older: AtomicPtr<Stream>,
}

// SAFETY: the invariants of the struct.
unsafe impl Sync for Stream {}

/// What nobody but the thread looks at.
#[derive(Default)]
pub struct Own {
    /// By level: a call that a callback makes begins and ends between the two ends of another one.
    pub before: Vec<Before>,
    pub memo: Memo,
    pub record: Record,
    pub tape: Tape,
    pub stacks: Stacks,
    pub averages: Averages,
    pub safe: Option<Safe>,
    /// What it takes to recognise a call without asking the recorder; known since the last call that was not.
    pub known: Option<(Arc<Facts>, Arc<Reader>)>,
}

fn folding() -> Folding {
    state::CONFIG.get().map_or_else(Folding::default, |config| config.fold)
}

impl Stream {
    /// That of the calling thread, whose number it is.
    pub fn of(number: u32) -> &'static Stream {
        if let Some(stream) = all().find(|stream| stream.number == number) {
            return stream;
        }
        let stream = Box::leak(Box::new(Stream {
            number,
            busy: AtomicBool::new(false),
            taken: AtomicBool::new(false),
            requests: UnsafeCell::new(Requests::new(number)),
            own: UnsafeCell::new(Own { tape: Tape::new(folding()), ..Own::default() }),
            older: AtomicPtr::new(null_mut()),
        }));
        let mut newest = STREAMS.load(Acquire);
        loop {
            stream.older.store(newest, Relaxed);
            match STREAMS.compare_exchange(newest, stream, AcqRel, Acquire) {
                Ok(_) => return stream,
                Err(other) => newest = other,
            }
        }
    }

    /// # Safety
    /// As the first invariant says, and one at a time.
    #[expect(clippy::mut_from_ref, reason = "the caller is the only one")]
    #[inline]
    pub unsafe fn own(&self) -> &mut Own {
        // SAFETY: as the caller says.
        unsafe { &mut *self.own.get() }
    }

    /// # Safety
    /// No other thread has called MPI.
    #[expect(clippy::mut_from_ref, reason = "the caller is the only one")]
    #[inline]
    pub unsafe fn requests(&self) -> &mut Requests {
        // SAFETY: as the caller says.
        unsafe { &mut *self.requests.get() }
    }

    fn with_requests<R>(&self, look: impl FnOnce(&mut Requests) -> R) -> R {
        let _held = Taken::take(&self.taken);
        // SAFETY: the second invariant.
        look(unsafe { &mut *self.requests.get() })
    }
}

/// A lock that is held for a few instructions. Given back also when a panic passes through.
pub struct Taken<'a>(&'a AtomicBool);

impl<'a> Taken<'a> {
    #[inline]
    pub fn take(lock: &'a AtomicBool) -> Self {
        while lock.swap(true, Acquire) {
            std::thread::yield_now();
        }
        Taken(lock)
    }
}

impl Drop for Taken<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}

/// Those of all threads, the newest first.
pub fn all() -> impl Iterator<Item = &'static Stream> {
    // SAFETY: null, or a stream that was leaked.
    let next = |at: *mut Stream| unsafe { at.as_ref() };
    std::iter::successors(next(STREAMS.load(Acquire)), move |stream| next(stream.older.load(Acquire)))
}

/// The requests of all threads.
pub struct AllRequests;

impl Peers for AllRequests {
    fn with(&self, thread: u32, look: &mut dyn FnMut(&mut Requests)) {
        if let Some(stream) = all().find(|stream| stream.number == thread) {
            stream.with_requests(look);
        }
    }

    fn others(&self, thread: u32, look: &mut dyn FnMut(&mut Requests) -> bool) {
        all().filter(|stream| stream.number != thread).any(|stream| stream.with_requests(&mut *look));
    }
}
