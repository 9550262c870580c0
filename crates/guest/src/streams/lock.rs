//! A lock for what threads share.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use refrain_process::waited::Waited;

/// A lock whose holder may be making a file: the others sleep. A holder that a signal handler has interrupted, which waits
/// for one of the others in turn, never gives it back: then waiting ends with a panic, and tracing with it.
pub struct Lock(AtomicU32);

const FREE: u32 = 0;
const HELD: u32 = 1;
/// And somebody sleeps.
const WANTED: u32 = 2;

/// Given back when dropped, also when a panic passes through.
pub struct Taken<'a>(&'a Lock);

impl Default for Lock {
    fn default() -> Self {
        Self::new()
    }
}

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
        let mut waited = Waited::default();
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

#[cfg(test)]
mod tests {
    use std::cell::UnsafeCell;

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
}
