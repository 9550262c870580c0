//! How long a run lasted, and what shares of time are shares of: for all commands, the page, JSON and Python.
//!
//! The time of a rank is from the start of its `MPI_Init` to its `MPI_Finalize`. The run is as long as the longest of them, so that no
//! clocks of two ranks are compared. Shares are of the times of all ranks together.

use std::fmt;

use refrain_times::CallTime;
use refrain_tracefile::Trace;
use refrain_tracefile::profile::{Profile, Spent};

use crate::human::duration;
use crate::meaning::roles::Role;

/// Nanoseconds, and by how many they may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    pub ns: u64,
    pub error: u64,
}

impl Told {
    pub fn exactly(ns: u64) -> Told {
        Told { ns, error: 0 }
    }

    pub fn plus(self, other: Told) -> Told {
        Told { ns: self.ns.saturating_add(other.ns), error: self.error.saturating_add(other.error) }
    }

    pub fn sum(all: impl IntoIterator<Item = Told>) -> Told {
        all.into_iter().fold(Told::default(), Told::plus)
    }

    /// Any of those that are near the longest may be it.
    pub fn longest(all: &[Told]) -> Option<Told> {
        let ns = all.iter().map(|one| one.ns).max()?;
        let above = all.iter().map(|one| one.ns.saturating_add(one.error)).max()? - ns;
        let below = ns - all.iter().map(|one| one.ns.saturating_sub(one.error)).max()?;
        Some(Told { ns, error: above.max(below) })
    }

    /// The mean of so many.
    pub fn mean(self, count: u64) -> Told {
        let error = if count == 0 { 0 } else { self.error.div_ceil(count) };
        Told { ns: self.ns.checked_div(count).unwrap_or(0), error }
    }

    /// For JSON, which has no member for what is exact.
    pub fn open(self) -> Option<u64> {
        Some(self.error).filter(|error| *error > 0)
    }
}

impl From<(u64, u64)> for Told {
    fn from((ns, error): (u64, u64)) -> Told {
        Told { ns, error }
    }
}

/// `~` marks what is not exact.
impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}{}", if self.error > 0 { "~" } else { "" }, duration(self.ns)))
    }
}

/// Of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Length {
    /// The time of the rank with the longest.
    pub run: Told,
    /// The times of all ranks together: what shares are shares of.
    pub all: Told,
    /// Some ranks have several threads, whose times are no parts of a rank's.
    pub threads: bool,
    /// The run did not finish: times go to the last call that returned.
    pub partial: bool,
}

impl Length {
    /// Nothing where the trace does not tell the times of its ranks.
    pub fn of(trace: &Trace) -> Option<Length> {
        Length::of_ranks(trace, times(trace.meta.profile.as_ref()?).into_iter().map(|(_, time)| time))
    }

    /// The same of ranks whose times are known.
    pub fn of_ranks(trace: &Trace, times: impl IntoIterator<Item = Told>) -> Option<Length> {
        let times: Vec<Told> = times.into_iter().collect();
        Some(Length {
            run: Told::longest(&times)?,
            all: Told::sum(times),
            threads: trace.bundle.most_threads() > 1,
            partial: !trace.meta.complete,
        })
    }

    /// What tables say below.
    pub fn sentence(&self) -> String {
        let Length { run, all, threads, partial } = self;
        let took = match partial {
            false => format!("The run took {run}"),
            true => format!("The run did not finish. Times go to the last call that returned, {run}"),
        };
        match threads {
            false => format!("{took}; \"of run\" is of the times of all ranks together, {all}."),
            true => format!("{took}. No shares of it: threads of a rank work side by side."),
        }
    }

    /// Nothing where threads work side by side.
    pub fn share(&self, part: Told) -> Option<f64> {
        (!self.threads && self.all.ns > 0).then(|| part.ns as f64 / self.all.ns as f64)
    }

    pub fn is_exact(&self) -> bool {
        self.all.error == 0
    }
}

/// `54.1%`, or `~54.1%`, or `-`.
pub fn share(length: Option<&Length>, part: Told) -> String {
    let marked = |length: &Length| if length.is_exact() && part.error == 0 { "" } else { "~" };
    let told =
        length.and_then(|length| Some(format!("{}{:.1}%", marked(length), length.share(part)? * 100.0)));
    told.unwrap_or_else(|| "-".into())
}

/// Of each rank: which, and its time.
pub fn times(profile: &Profile) -> Vec<(u32, Told)> {
    let (outside, inside) = (profile.by_rank_within(Spent::Outside), profile.by_rank_within(Spent::Inside));
    let pairs = outside.into_iter().zip(inside);
    pairs.map(|((rank, outside), (_, inside))| (rank, Told::from(outside).plus(inside.into()))).collect()
}

/// From when to when a rank ran, by its calls in order; of several threads together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ran {
    /// When the first call began, or `MPI_Init`; with errors.
    began: Option<(i64, u64)>,
    is_init: bool,
    /// When the last call ended, or `MPI_Finalize` began, in which the trace is written.
    ended: Option<(i64, u64)>,
    is_over: bool,
}

impl Ran {
    pub(crate) fn see(&mut self, role: Role, told: &CallTime) {
        let (began, ended) = ((told.span.start, told.start_error), (told.span.end, told.end_error));
        match role {
            Role::Init if !self.is_init => (self.began, self.is_init) = (Some(began), true),
            _ if !self.is_init => self.began = Some(self.began.map_or(began, |first| first.min(began))),
            _ => {}
        }
        match role {
            Role::Finalize => (self.ended, self.is_over) = (Some(began), true),
            _ if !self.is_over => self.ended = Some(self.ended.map_or(ended, |last| last.max(ended))),
            _ => {}
        }
    }

    /// It has come to `MPI_Init`.
    pub(crate) fn is_up(&self) -> bool {
        self.is_init
    }

    pub(crate) fn span(&self) -> Option<(i64, i64)> {
        Some((self.began?.0, self.ended?.0))
    }

    pub(crate) fn time(&self) -> Option<Told> {
        let ((began, before), (ended, after)) = (self.began?, self.ended?);
        let ns = u64::try_from(ended.saturating_sub(began)).unwrap_or(0);
        Some(Told { ns, error: before.saturating_add(after) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[(u64, u64)]) -> Length {
        Length::of_ranks(&Trace::default(), times.iter().map(|&time| time.into())).unwrap()
    }

    #[test]
    fn a_run_is_as_long_as_its_longest_rank_and_shares_are_of_all() {
        let length = of(&[(700, 0), (500, 0), (800, 0)]);
        assert_eq!((length.run, length.all), (Told::exactly(800), Told::exactly(2000)));
        assert_eq!(share(Some(&length), Told::exactly(1000)), "50.0%");
        assert_eq!(share(Some(&length), Told { ns: 1000, error: 1 }), "~50.0%");
        assert_eq!(share(None, Told::exactly(1000)), "-");
        let threads = Length { threads: true, ..length };
        assert_eq!(share(Some(&threads), Told::exactly(1000)), "-");
    }

    #[test]
    fn what_did_not_finish_is_not_called_a_run() {
        let partial = of(&[(700, 0), (800, 0)]);
        assert!(
            partial
                .sentence()
                .starts_with("The run did not finish. Times go to the last call that returned, 800 ns;")
        );
        let whole = Length { partial: false, ..partial };
        assert_eq!(
            whole.sentence(),
            "The run took 800 ns; \"of run\" is of the times of all ranks together, 1.50 us."
        );
    }

    /// The longest may be another rank than the one that seems so.
    #[test]
    fn the_bound_is_that_of_any_rank() {
        let length = of(&[(700, 150), (800, 10), (100, 1)]);
        assert_eq!(length.run, Told { ns: 800, error: 50 });
        assert_eq!(length.all, Told { ns: 1600, error: 161 });
        assert_eq!(length.run.to_string(), "~800 ns");
        assert_eq!(of(&[(700, 150), (800, 200)]).run, Told { ns: 800, error: 200 });
    }
}
