//! What one thread records, and how it shares its requests with the others.

use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};
use std::time::Duration;

use refrain_encode::{Before, Facts, Folding, Memo, Peers, Record, Requests, Tape};

use super::host::Reader;
use super::safety::Safe;
use crate::stacks::Stacks;
use crate::state::{self, STREAMS};

/// Made when a thread of this number first calls MPI, and never freed.
///
/// Invariants: 1. `own` is touched only by the thread that has claimed the stream, while it is marked as busy; after the
/// end of the recording, which waits until nobody is, by whoever ended it. 2. `requests` is touched only by who holds
/// `lock`, or by the thread itself as long as no other one has called MPI.
pub struct Stream {
    pub number: u32,
    pub busy: AtomicBool,
    /// A thread has it.
    claimed: AtomicBool,
    lock: Lock,
    requests: UnsafeCell<Requests>,
    own: UnsafeCell<Own>,
    /// The one made before.
    older: AtomicPtr<Stream>,
}

// SAFETY: the invariants of the struct: one thread at a time has to do with each of the cells, whose contents may go from
// thread to thread, as the next line makes sure.
unsafe impl Sync for Stream {}

const _: fn() = || {
    fn goes_to_another_thread<T: Send>() {}
    goes_to_another_thread::<(Requests, Own)>();
};

/// What nobody but the thread looks at.
#[derive(Default)]
pub struct Own {
    /// By level: a call that a callback makes begins and ends between the two ends of another one.
    pub before: Vec<Before>,
    pub memo: Memo,
    pub record: Record,
    pub tape: Tape,
    pub stacks: Stacks,
    pub safe: Option<Safe>,
    /// What it takes to recognise a call without asking the recorder; known since the last call that was not.
    pub known: Option<(Arc<Facts>, Arc<Reader>)>,
}

fn folding() -> Folding {
    state::CONFIG.get().map_or_else(Folding::default, |config| config.fold)
}

impl Stream {
    /// The one of that number.
    pub fn of(number: u32) -> &'static Stream {
        if let Some(stream) = all().find(|stream| stream.number == number) {
            return stream;
        }
        let stream = Box::leak(Box::new(Stream {
            number,
            busy: AtomicBool::new(false),
            claimed: AtomicBool::new(false),
            lock: Lock::new(),
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

    /// Makes it the calling thread's, until it is released. `None`: it is another one's.
    pub fn claim(&'static self) -> Option<&'static Stream> {
        self.claimed.compare_exchange(false, true, Acquire, Relaxed).is_ok().then_some(self)
    }

    /// The calling thread, whose it is, has no more to do with it.
    pub fn release(&self) {
        self.claimed.store(false, Release);
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
    /// As the second invariant says of a thread that is alone, and one at a time.
    #[expect(clippy::mut_from_ref, reason = "the caller is the only one")]
    #[inline]
    pub unsafe fn requests(&self) -> &mut Requests {
        // SAFETY: as the caller says.
        unsafe { &mut *self.requests.get() }
    }

    fn with_requests<R>(&self, look: impl FnOnce(&mut Requests) -> R) -> R {
        let _held = self.lock.take();
        // SAFETY: the second invariant.
        look(unsafe { &mut *self.requests.get() })
    }
}

/// A lock whose holder may be making a file: the others sleep. A holder that a signal handler has interrupted, which waits
/// for one of the others in turn, never gives it back: then waiting ends with a panic, and tracing with it.
pub struct Lock(AtomicU32);

const FREE: u32 = 0;
const HELD: u32 = 1;
/// And somebody sleeps.
const WANTED: u32 = 2;

/// Given back when dropped, also when a panic passes through.
pub struct Taken<'a>(&'a Lock);

impl Lock {
    pub const fn new() -> Lock {
        Lock(AtomicU32::new(FREE))
    }

    #[inline]
    pub fn take(&self) -> Taken<'_> {
        if self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_err() {
            self.wait();
        }
        Taken(self)
    }

    #[cold]
    fn wait(&self) {
        const SPINS: u32 = 100;
        let mut waited = refrain_mpi::Waited::default();
        for _ in 0..SPINS {
            if self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok() {
                return;
            }
            std::hint::spin_loop();
        }
        while self.0.swap(WANTED, Acquire) != FREE {
            self.sleep();
            // It may be making a part, on a file server that is slow.
            const PATIENCE: Duration = Duration::from_secs(15);
            assert!(
                waited.so_far() < PATIENCE,
                "another thread has kept a lock for {} s",
                PATIENCE.as_secs()
            );
        }
    }

    /// Until somebody wakes us, or a while.
    fn sleep(&self) {
        let while_ = Duration::from_millis(100);
        let time = libc::timespec { tv_sec: 0, tv_nsec: while_.subsec_nanos().into() };
        // SAFETY: the kernel compares the word, which lives as long as `self`, and reads the time.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.0.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                WANTED,
                &raw const time,
            )
        };
    }
}

impl Drop for Taken<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.0.0.swap(FREE, Release) == WANTED {
            let word = self.0.0.as_ptr();
            // SAFETY: the kernel only takes the word's address for a name.
            unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_holds_a_lock() {
        static LOCK: Lock = Lock::new();
        struct Count(UnsafeCell<u32>);
        // SAFETY: touched only by who holds the lock.
        unsafe impl Sync for Count {}
        static COUNT: Count = Count(UnsafeCell::new(0));
        let count = || {
            for _ in 0..10_000 {
                let _held = LOCK.take();
                // SAFETY: the lock is held.
                unsafe { *COUNT.0.get() += 1 };
            }
        };
        let threads = [(); 4].map(|()| std::thread::spawn(count));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // SAFETY: all threads are gone.
        assert_eq!(unsafe { *COUNT.0.get() }, 40_000);
        assert_eq!(LOCK.0.load(Relaxed), FREE);
    }

    #[test]
    fn a_stream_has_one_thread() {
        let stream = Stream::of(77);
        assert!(std::ptr::eq(stream, Stream::of(77)));
        assert!(stream.claim().is_some() && stream.claim().is_none());
        stream.release();
        assert!(stream.claim().is_some());
    }
}
