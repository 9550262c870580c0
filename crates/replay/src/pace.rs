//! When calls are made: not before the computation between them is over.
//!
//! A replay has work of its own between two calls: it reads the trace and puts arguments together. That is part of the
//! computation. What it takes too long is taken off the computation that follows, so that errors do not add up.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::watch::Watch;

/// A thread's calls in time.
#[derive(Debug)]
pub struct Pace {
    /// Recorded nanoseconds are multiplied by this; 0: calls are made as they come.
    factor: f64,
    sleep: bool,
    /// Computation that is still to be done before the next call, in nanoseconds; less than 0 where it is late.
    owed: Cell<f64>,
    began: Cell<Option<Instant>>,
    ended: Cell<Option<Instant>>,
    watch: Watch,
    number: Cell<u64>,
}

/// A thread that sleeps wakes up so much too late; for the rest it is busy.
const WAKING: Duration = Duration::from_micros(80);

impl Pace {
    pub fn new(factor: f64, sleep: bool, watch: Watch) -> Pace {
        let (owed, number) = (Cell::new(0.0), Cell::new(0));
        Pace { factor, sleep, owed, began: Cell::new(None), ended: Cell::new(None), watch, number }
    }

    /// The next call is this one, and before it so many nanoseconds were computed.
    pub fn owe(&self, number: u64, ns: f64) {
        self.number.set(number);
        self.owed.set(self.owed.get() + ns * self.factor);
    }

    /// A call is about to be made: computes what is left to compute.
    pub fn begin(&self) {
        self.begin_after(Duration::MAX, || ());
    }

    /// The same, and does something else now and then while it computes.
    pub fn begin_after(&self, every: Duration, other: impl Fn()) {
        if self.factor > 0.0 {
            if let Some(ended) = self.ended.get() {
                self.compute_since(ended, every, other);
            }
            self.began.set(Some(Instant::now()));
        }
        self.watch.begins(self.number.get());
    }

    /// It is over.
    pub fn end(&self) {
        self.watch.ends();
        if self.factor > 0.0 {
            self.ended.set(Some(Instant::now()));
        }
    }

    /// The number of the call that is made, or comes next.
    pub fn number(&self) -> u64 {
        self.number.get()
    }

    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// When the last call began, where anything is computed.
    pub fn began(&self) -> Option<Instant> {
        self.began.get()
    }

    fn compute_since(&self, ended: Instant, every: Duration, other: impl Fn()) {
        let owed = self.owed.get();
        let passed = |now: Instant| now.saturating_duration_since(ended).as_nanos() as f64;
        let mut now = Instant::now();
        if passed(now) < owed {
            now = self.watch.computes(|| self.compute_until(|now| owed - passed(now), every, other));
        }
        self.owed.set(owed - passed(now));
    }

    /// Until so many nanoseconds are left that there are none.
    fn compute_until(&self, left: impl Fn(Instant) -> f64, every: Duration, other: impl Fn()) -> Instant {
        let mut now = Instant::now();
        let mut last = now;
        while left(now) > 0.0 {
            let left = Duration::from_nanos(left(now) as u64);
            match left.checked_sub(WAKING) {
                Some(left) if self.sleep => std::thread::sleep(left.min(every)),
                _ => std::hint::spin_loop(),
            }
            now = Instant::now();
            if now.saturating_duration_since(last) >= every {
                other();
                last = now;
            }
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Doing;

    #[test]
    fn computation_takes_its_time_and_no_more_than_all_of_it() {
        for sleep in [false, true] {
            let pace = Pace::new(0.5, sleep, Watch::nobody());
            pace.begin();
            pace.end();
            let start = Instant::now();
            for number in 1..=20 {
                pace.owe(number, 1_000_000.0);
                // Work of the replay itself, longer than the computation in every fourth turn.
                std::thread::sleep(Duration::from_micros(if number % 4 == 0 { 700 } else { 50 }));
                pace.begin();
                pace.end();
            }
            assert!(start.elapsed() >= Duration::from_micros(20 * 500 - 500), "{:?}", start.elapsed());
            // What was too long is still to be made up for.
            assert!(pace.owed.get() <= 0.0);
        }
    }

    #[test]
    fn what_took_too_long_is_taken_off_what_follows() {
        let pace = Pace::new(1.0, true, Watch::nobody());
        let call = |number, ns| {
            pace.owe(number, ns);
            pace.begin();
            pace.end();
        };
        call(0, 0.0);
        // It was five milliseconds at least, and one of them was owed.
        std::thread::sleep(Duration::from_millis(5));
        call(1, 1_000_000.0);
        let late = pace.owed.get();
        assert!(late <= -4_000_000.0, "{late}");
        // What is owed now was done before.
        call(2, 1_000_000.0);
        assert!(pace.owed.get() <= late + 1_000_000.0, "{} after {late}", pace.owed.get());
    }

    #[test]
    fn whoever_watches_sees_that_a_thread_computes() {
        let watch = Watch::nobody();
        watch.begins(3);
        let other = Pace::new(1.0, true, watch.of_thread(1));
        other.begin();
        other.end();
        assert_eq!(watch.doing(), Doing::Inside(3, 1));
        std::thread::scope(|scope| {
            let computing = scope.spawn(move || {
                other.owe(1, 1e9);
                other.begin();
            });
            while watch.doing() != Doing::Computes {
                assert!(!computing.is_finished(), "it was never seen to compute");
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        assert_eq!(watch.doing(), Doing::Inside(3, 2));
    }

    #[test]
    fn without_computation_nothing_is_waited_for() {
        let pace = Pace::new(0.0, false, Watch::nobody());
        for number in 0..3 {
            pace.owe(number, 1e18);
            pace.begin();
            pace.end();
        }
    }
}
