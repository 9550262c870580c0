//! What tests ask of the library: faults, wrong clocks, small tails. Only a library that is built with the feature `switches` reads
//! these variables and does what they say. What is installed is built without it, and has none of this.

#[cfg(feature = "switches")]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The observed call at which to fail (0: none), and how many there were.
#[cfg(feature = "switches")]
static PANIC_AT: AtomicU64 = AtomicU64::new(0);
#[cfg(feature = "switches")]
static OBSERVED: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switches {
    /// `REFRAIN_TEST_PANIC=n`: a fault inside the tracer at the n-th observed call. 0: none.
    pub panic: u64,
    /// `REFRAIN_TEST_DIE_IN_MERGE=rank`: that rank kills itself between two messages of the merge.
    pub die_in_merge: Option<u32>,
    /// `REFRAIN_TEST_STOP_WRITING=on`: rank 0 stops itself before it writes the trace.
    pub stop_writing: bool,
    /// `REFRAIN_TEST_FAIL_WITH_TIMES=rank`: a fault inside the tracer on that rank when times are brought together.
    pub fail_with_times: Option<u32>,
    /// `REFRAIN_TEST_STACKS=on`: stacks that are recognised are unwound too and compared.
    pub stacks: bool,
    /// `REFRAIN_TEST_CLOCK=monotonic`: the time stamp counter is not used.
    pub monotonic: bool,
    /// `REFRAIN_TEST_CLOCK_SKEW=rank:nanoseconds:millionths,...`: the clocks of these ranks are wrong by an offset and a
    /// drift, and every rank counts as a host of its own.
    pub skew: Option<Skews>,
    /// `REFRAIN_TEST_TAIL=bytes`: snapshots come so often.
    pub tail: Option<usize>,
    /// `REFRAIN_TEST_SPANS=prefix`: what the clock said around each call also goes to `prefix.RANK.THREAD`.
    pub spans: Option<String>,
}

impl Switches {
    #[cfg(any(test, not(feature = "switches")))]
    pub const NONE: Switches = Switches {
        panic: 0,
        die_in_merge: None,
        stop_writing: false,
        fail_with_times: None,
        stacks: false,
        monotonic: false,
        skew: None,
        tail: None,
        spans: None,
    };

    /// Or the variable whose value means nothing, that value, and what is known. `text` gives a variable's value.
    #[cfg(feature = "switches")]
    pub fn read(
        text: impl Fn(&str) -> Option<String>,
    ) -> Result<Switches, (&'static str, String, &'static str)> {
        fn known<T>(
            text: impl Fn(&str) -> Option<String>,
            variable: &'static str,
            known: &'static str,
            read: impl Fn(&str) -> Option<T>,
        ) -> Result<Option<T>, (&'static str, String, &'static str)> {
            let said = text(variable).filter(|value| !value.is_empty());
            said.map(|value| read(&value).ok_or((variable, value, known))).transpose()
        }
        let on = |variable| known(&text, variable, "on", |value| (value == "on").then_some(true));
        let rank = |variable| known(&text, variable, "a rank", |value| value.parse().ok());
        Ok(Switches {
            panic: known(&text, "REFRAIN_TEST_PANIC", "a number of calls", |value| value.parse().ok())?
                .unwrap_or(0),
            die_in_merge: rank("REFRAIN_TEST_DIE_IN_MERGE")?,
            stop_writing: on("REFRAIN_TEST_STOP_WRITING")?.is_some(),
            fail_with_times: rank("REFRAIN_TEST_FAIL_WITH_TIMES")?,
            stacks: on("REFRAIN_TEST_STACKS")?.is_some(),
            monotonic: known(&text, "REFRAIN_TEST_CLOCK", "monotonic", |value| {
                (value == "monotonic").then_some(())
            })?
            .is_some(),
            skew: known(&text, "REFRAIN_TEST_CLOCK_SKEW", "rank:nanoseconds:millionths,...", Skews::read)?,
            tail: known(&text, "REFRAIN_TEST_TAIL", "a number of bytes", |value| value.parse().ok())?,
            spans: text("REFRAIN_TEST_SPANS"),
        })
    }

    /// From here on calls are counted.
    pub fn begin(&self) {
        #[cfg(feature = "switches")]
        PANIC_AT.store(self.panic, Relaxed);
    }
}

/// The fault that tests ask for, at an observed call.
#[inline]
pub fn fail_if_told() {
    #[cfg(feature = "switches")]
    {
        let at = PANIC_AT.load(Relaxed);
        if at != 0 && OBSERVED.fetch_add(1, Relaxed) + 1 == at {
            panic!("a test asked for a fault at call {at}");
        }
    }
}

/// By how much clocks are wrong: rank, nanoseconds, millionths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skews(Vec<(u32, i64, i64)>);

impl Skews {
    #[cfg(feature = "switches")]
    fn read(text: &str) -> Option<Skews> {
        let one = |text: &str| {
            let mut numbers = text.split(':');
            let rank = numbers.next()?.parse().ok()?;
            let (offset, drift) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
            // Faster than that no clock is wrong, and time must not stand still.
            let slow = (-10_000..=10_000).contains(&drift);
            (numbers.next().is_none() && slow).then_some((rank, offset, drift))
        };
        text.split(',').map(one).collect::<Option<_>>().map(Skews)
    }

    /// That of a rank, in nanoseconds and millionths.
    pub fn of(&self, rank: u32) -> (i64, i64) {
        let own = self.0.iter().find(|(wrong, ..)| *wrong == rank);
        own.map_or((0, 0), |&(_, offset, drift)| (offset, drift))
    }
}

#[cfg(all(test, feature = "switches"))]
mod tests {
    use super::*;

    #[test]
    fn skews_of_clocks() {
        let skews = Skews::read("1:-5000:400,3:2000000000:-500").unwrap();
        assert_eq!([0, 1, 3].map(|rank| skews.of(rank)), [(0, 0), (-5_000, 400), (2_000_000_000, -500)]);
        for bad in ["1", "1:2", "1:2:3:4", "a:1:2", "1:2:20000", "1:2:3,"] {
            assert_eq!(Skews::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn switches_are_understood_or_refused() {
        let read = |variable: &'static str, value: &'static str| {
            Switches::read(|name| (name == variable).then(|| value.to_owned()))
        };
        assert_eq!(read("PATH", "x"), Ok(Switches::NONE));
        assert_eq!(read("REFRAIN_TEST_PANIC", "7").unwrap().panic, 7);
        assert_eq!(read("REFRAIN_TEST_TAIL", "4096").unwrap().tail, Some(4096));
        let refused = read("REFRAIN_TEST_PANIC", "-1");
        assert_eq!(refused, Err(("REFRAIN_TEST_PANIC", "-1".to_owned(), "a number of calls")));
        assert!(read("REFRAIN_TEST_CLOCK", "sundial").is_err());
    }
}
