//! The clock around every call: as cheap as the machine has one, in ticks; nanoseconds are worked out at the end.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// A clock is read around every call.
static TIMED: AtomicBool = AtomicBool::new(false);
/// That clock is the processor's time stamp counter.
static TSC: AtomicBool = AtomicBool::new(false);

/// What is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The processor's time stamp counter.
    Counter,
    /// `CLOCK_MONOTONIC`. A tick is a nanosecond.
    Monotonic,
}

/// From here on times are kept, or not.
pub fn keep_time(kept: bool) {
    TIMED.store(kept, Relaxed);
}

/// The clock, or 0 where no time is kept.
#[inline]
pub fn ticks() -> u64 {
    if TIMED.load(Relaxed) { now() } else { 0 }
}

/// Ticks of a clock that never runs backwards on one core. Their length is known only to two `Moment`s.
#[inline]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if TSC.load(Relaxed) {
        // SAFETY: every x86_64 processor has the instruction; `choose` saw that its rate is constant.
        return unsafe { core::arch::x86_64::_rdtsc() };
    }
    nanoseconds()
}

pub fn source() -> Source {
    if TSC.load(Relaxed) { Source::Counter } else { Source::Monotonic }
}

/// Where the kernel tells by which clock it counts.
pub const KERNEL: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Takes the time stamp counter where all agree on it: the processor says that its rate depends on neither frequency nor
/// sleep, the kernel (in the words of [`KERNEL`]) counts by it too, and it keeps step with `CLOCK_MONOTONIC`. Otherwise,
/// and where the kernel says nothing, `CLOCK_MONOTONIC` is read.
pub fn choose(kernel: Option<&str>) {
    TSC.store(kernel.is_some_and(counts_by_it) && invariant() && in_step(), Relaxed);
}

/// Whether a kernel with that clock trusts the counter. It watches the counter, and takes another clock (hpet, acpi_pm) for
/// good once it goes astray or differs from core to core. The clocks of virtual machines are made of the counter; it can
/// change its rate when the machine moves, but then the processor does not call it invariant.
fn counts_by_it(kernel: &str) -> bool {
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen"].contains(&kernel.trim())
}

fn invariant() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::__cpuid;
        const EXTENDED: u32 = 0x8000_0000;
        const POWER: u32 = 0x8000_0007;
        const INVARIANT_TSC: u32 = 1 << 8;
        __cpuid(EXTENDED).eax >= POWER && __cpuid(POWER).edx & INVARIANT_TSC != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether the counter, looked at for a moment, runs and keeps its rate. An emulator's may do neither.
fn in_step() -> bool {
    /// Of one look. At 2 % the process may lose 200 ns between two readings.
    const LOOK: u64 = 10_000;
    TSC.store(true, Relaxed);
    // It may lose its core for longer than that: one good try is enough.
    (0..4).any(|_| {
        let start = Moment::now();
        let middle = start.later(LOOK);
        let end = middle.later(LOOK);
        wander(start, middle, end).is_some_and(|change| change < 20_000_000)
    })
}

/// How much the rate of the ticks changed at the middle one of three moments, in 10^-9; by how much more than their errors
/// could make it change, so that 0 is what is expected. `None` where a clock stood still or ran backwards.
pub fn wander(start: Moment, middle: Moment, end: Moment) -> Option<u64> {
    let rate = |from: Moment, to: Moment| {
        let ticks = to.ticks.checked_sub(from.ticks).filter(|&ticks| ticks > 0)? as f64;
        let nanoseconds = to.nanoseconds.checked_sub(from.nanoseconds).filter(|&ns| ns > 0)? as f64;
        let error = (from.error + to.error) as f64 / ticks;
        Some((ticks / nanoseconds, error))
    };
    let ((before, one), (after, other)) = (rate(start, middle)?, rate(middle, end)?);
    let change = (after / before - 1.0).abs() - one - other;
    Some((change.max(0.0) * 1e9) as u64)
}

fn nanoseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result; this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// One moment on both clocks. Two of them, far apart, tell how long a tick is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub ticks: u64,
    pub nanoseconds: u64,
    /// They are apart by at most so many ticks.
    pub error: u64,
}

impl Moment {
    pub fn now() -> Self {
        if source() == Source::Monotonic {
            let nanoseconds = nanoseconds();
            return Self { ticks: nanoseconds, nanoseconds, error: 0 };
        }
        // The reading with the shortest gap around it: the process may lose its core in between.
        let mut best = Self { ticks: 0, nanoseconds: 0, error: u64::MAX };
        for _ in 0..5 {
            let before = now();
            let nanoseconds = nanoseconds();
            let gap = now().wrapping_sub(before);
            if gap / 2 < best.error {
                best = Self { ticks: before.wrapping_add(gap / 2), nanoseconds, error: gap.div_ceil(2) };
            }
        }
        best
    }

    /// Another one, at least so many nanoseconds later.
    fn later(self, by: u64) -> Self {
        while self.elapsed() < by {
            std::hint::spin_loop();
        }
        Self::now()
    }

    /// Nanoseconds since `self` was taken.
    pub fn elapsed(self) -> u64 {
        nanoseconds().saturating_sub(self.nanoseconds)
    }

    /// As ticks and nanoseconds.
    pub fn pair(self) -> (u64, u64) {
        (self.ticks, self.nanoseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_taken_only_where_the_kernel_trusts_it() {
        for kernel in ["tsc\n", "tsc", "kvm-clock\n", "hyperv_clocksource_tsc_page", "xen"] {
            assert!(counts_by_it(kernel), "{kernel:?}");
        }
        for kernel in ["hpet\n", "acpi_pm", "jiffies", "", "\n", "tsc-early", "arch_sys_counter"] {
            assert!(!counts_by_it(kernel), "{kernel:?}");
        }
    }

    /// One test: which clock it is belongs to the whole process.
    #[test]
    fn two_moments_tell_how_long_a_tick_is() {
        for kernel in [None, Some("hpet"), Some("tsc")] {
            choose(kernel);
            assert!(kernel == Some("tsc") || source() == Source::Monotonic, "{kernel:?}");
            let start = Moment::now();
            // The process may lose its core between two readings: one good try is enough.
            let good = (0..20).any(|_| {
                let (ticks, wall) = (now(), nanoseconds());
                std::thread::sleep(std::time::Duration::from_millis(20));
                let (ticks, wall) = (now() - ticks, nanoseconds() - wall);
                let end = Moment::now();
                let rate = (end.nanoseconds - start.nanoseconds) as f64 / (end.ticks - start.ticks) as f64;
                ((ticks as f64 * rate) as u64).abs_diff(wall) * 50 < wall
            });
            assert!(good, "ticks and the wall clock disagree: {kernel:?}");
        }
    }

    #[test]
    fn a_rate_that_changes_is_noticed() {
        let moment = |ticks, nanoseconds| Moment { ticks, nanoseconds, error: 10 };
        let (start, middle) = (moment(1_000, 0), moment(2_001_000, 1_000_000));
        // As expected, within the errors of reading, and by a thousandth.
        assert_eq!(wander(start, middle, moment(6_001_000, 3_000_000)), Some(0));
        assert_eq!(wander(start, middle, moment(6_001_010, 3_000_000)), Some(0));
        let changed = wander(start, middle, moment(6_005_000, 3_000_000)).unwrap();
        assert!((980_000..1_000_000).contains(&changed), "{changed}");
        // A counter that stands still, and one that was set back.
        assert_eq!(wander(start, middle, moment(2_001_000, 3_000_000)), None);
        assert_eq!(wander(start, middle, moment(1_000, 3_000_000)), None);
    }
}
