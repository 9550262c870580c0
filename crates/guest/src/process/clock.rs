//! The clock around every call: as cheap as the machine has one, in ticks; nanoseconds are worked out at the end.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// A clock is read around every call.
static TIMED: AtomicBool = AtomicBool::new(false);
/// That clock is the processor's time stamp counter.
static TSC: AtomicBool = AtomicBool::new(false);

/// From here on times are kept, or not.
pub fn keep_time(kept: bool) {
    TIMED.store(kept, Relaxed);
}

/// The clock, or 0 where no time is kept.
#[inline]
pub fn ticks() -> u64 {
    if TIMED.load(Relaxed) { now() } else { 0 }
}

/// Ticks of a clock that never runs backwards on one core. Their length is known only to a `Moment`.
#[inline]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if TSC.load(Relaxed) {
        // SAFETY: every x86_64 processor has the instruction; `choose` saw that its rate is constant.
        return unsafe { core::arch::x86_64::_rdtsc() };
    }
    nanoseconds()
}

/// Takes the time stamp counter where the processor says that its rate depends on neither frequency nor sleep.
pub fn choose() {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::__cpuid;
        const EXTENDED: u32 = 0x8000_0000;
        const POWER: u32 = 0x8000_0007;
        const INVARIANT_TSC: u32 = 1 << 8;
        let invariant = __cpuid(EXTENDED).eax >= POWER && __cpuid(POWER).edx & INVARIANT_TSC != 0;
        TSC.store(invariant, Relaxed);
    }
}

fn nanoseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result; this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// One moment on both clocks. Two of them, far apart, tell how long a tick is.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub ticks: u64,
    pub nanoseconds: u64,
}

impl Moment {
    pub fn now() -> Self {
        // The reading with the shortest gap around it: the process may lose its core in between.
        let mut best = (u64::MAX, Self { ticks: 0, nanoseconds: 0 });
        for _ in 0..5 {
            let before = now();
            let nanoseconds = nanoseconds();
            let gap = now().wrapping_sub(before);
            if gap < best.0 {
                best = (gap, Self { ticks: before.wrapping_add(gap / 2), nanoseconds });
            }
        }
        best.1
    }

    /// What a reading of the ticks is in nanoseconds, on the clock that `self` has too.
    pub fn nanoseconds_of(self, ticks: u64, rate: Rate) -> i64 {
        let since = ticks.wrapping_sub(self.ticks) as i64;
        (self.nanoseconds as i64).wrapping_add((since as f64 * rate.0).round() as i64)
    }

    /// Nanoseconds since `self` was taken.
    pub fn elapsed(self) -> u64 {
        nanoseconds().saturating_sub(self.nanoseconds)
    }

    /// Nanoseconds a tick lasted, on average, since `self` was taken.
    pub fn finish(self) -> Rate {
        let end = Self::now();
        let ticks = end.ticks.wrapping_sub(self.ticks);
        let nanoseconds = end.nanoseconds.wrapping_sub(self.nanoseconds);
        let tsc = TSC.load(Relaxed);
        Rate(if tsc && ticks > 0 { nanoseconds as f64 / ticks as f64 } else { 1.0 })
    }
}

/// The length of a tick in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Rate(f64);

impl Rate {
    pub fn nanoseconds(self, ticks: u64) -> u64 {
        (ticks as f64 * self.0).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibrated_tick_gives_back_the_wall_clock() {
        choose();
        let start = Moment::now();
        // The process may lose its core between two readings: one good try is enough.
        let good = (0..20).any(|_| {
            let (ticks, wall) = (now(), nanoseconds());
            std::thread::sleep(std::time::Duration::from_millis(20));
            let (ticks, wall) = (now() - ticks, nanoseconds() - wall);
            start.finish().nanoseconds(ticks).abs_diff(wall) * 50 < wall
        });
        assert!(good, "ticks and the wall clock disagree");
    }
}
