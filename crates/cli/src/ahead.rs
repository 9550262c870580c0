//! What a command is about to do, said before it begins where that is more than one would wait for. A few bytes of a trace may
//! stand for any number of calls.

use std::io::{self, Write};
use std::path::Path;

use refrain_tracefile::Trace;
use refrain_views::dump::Selection;
use refrain_views::human::{plural, size};
use refrain_views::info;
use refrain_views::select::Numbers;

use crate::say;

/// So many calls, or numbers, are read without a word: that takes seconds.
const MUCH: u64 = 10_000_000;
/// In a second, on an ordinary machine.
const A_SECOND: u64 = 1_000_000;

/// Work that a trace asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    /// Calls, or references.
    pub items: u64,
    /// Numbers in the arrays of calls.
    pub elements: u64,
}

impl Work {
    /// All calls of a trace.
    pub fn all(trace: &Trace) -> Work {
        let bundle = &trace.bundle;
        let elements = bundle.cohorts.iter().map(|cohort| refrain_encode::elements_of_all(bundle, cohort));
        Work { items: info::calls(bundle), elements: elements.fold(0, u64::saturating_add) }
    }

    /// Those that are gone through for what is chosen: about as many of some ranks as of the others, unless they are few.
    pub fn of(trace: &Trace, which: &Selection) -> Work {
        /// Ranks and threads whose calls are counted one by one.
        const FEW: u64 = 64;
        let bundle = &trace.bundle;
        let asked = |numbers: &Option<Numbers>, number| {
            numbers.as_ref().is_none_or(|numbers: &Numbers| numbers.contains(number))
        };
        let is_chosen = |member: &u32| {
            let (rank, thread) = bundle.place_of(*member);
            asked(&which.ranks, rank) && asked(&which.threads, thread)
        };
        let everybody = which.ranks.is_none() && which.threads.is_none();
        let mut work = Work::default();
        for cohort in &bundle.cohorts {
            let members = cohort.ranks.len();
            let chosen =
                if everybody { members } else { cohort.ranks.iter().filter(is_chosen).count() as u64 };
            if chosen == 0 {
                continue;
            }
            let all = refrain_encode::calls_of_all(bundle, cohort);
            let calls = match chosen <= FEW && chosen < members {
                true => {
                    let calls = |member| refrain_encode::calls_of(bundle, cohort, member);
                    cohort.ranks.iter().filter(is_chosen).map(calls).fold(0, u64::saturating_add)
                }
                false => share(all, chosen, members),
            };
            let calls = calls.saturating_sub(which.calls.start.saturating_mul(chosen));
            let most = which.calls.end.saturating_sub(which.calls.start).saturating_mul(chosen);
            let elements = refrain_encode::elements_of_all(bundle, cohort);
            let own = Work { items: all, elements }.first(calls.min(most));
            work.items = work.items.saturating_add(own.items);
            work.elements = work.elements.saturating_add(own.elements);
        }
        work
    }

    /// So many of these at most, with their share of the numbers.
    pub fn first(self, items: u64) -> Work {
        let items = self.items.min(items);
        Work { items, elements: share(self.elements, items, self.items) }
    }

    /// Those that `verify` reads: one thread of those that did the same.
    pub fn of_kinds(trace: &Trace) -> Work {
        let bundle = &trace.bundle;
        let mut work = Work::default();
        for cohort in &bundle.cohorts {
            let ranks = if cohort.is_uniform() { cohort.ranks.len().max(1) } else { 1 };
            let calls = refrain_encode::calls_of_all(bundle, cohort) / ranks;
            let elements = refrain_encode::elements_of_all(bundle, cohort) / ranks;
            work.items = work.items.saturating_add(calls);
            work.elements = work.elements.saturating_add(elements);
        }
        work
    }

    fn seconds(&self) -> u64 {
        self.items.saturating_add(self.elements / 16) / A_SECOND
    }

    fn is_much(&self) -> bool {
        self.items > MUCH || self.elements / 16 > MUCH
    }
}

/// As much of it as `some` is of `all`.
fn share(of: u64, some: u64, all: u64) -> u64 {
    u64::try_from(u128::from(of) * u128::from(some) / u128::from(all.max(1))).unwrap_or(u64::MAX)
}

/// Says how much there is to do, if it is much: `each` is what is read, `bytes` what comes out for each of them, and `help` how
/// to do less. Whether it was said.
pub fn tell(path: &Path, work: Work, each: &str, bytes: u64, help: &str) -> bool {
    if !work.is_much() {
        return false;
    }
    let with = match work.elements {
        0..=MUCH => String::new(),
        elements => format!(" with {} in arrays", plural(elements, "number")),
    };
    let out = match bytes {
        0 => String::new(),
        bytes => {
            let all = u128::from(work.items) * u128::from(bytes) + u128::from(work.elements) * 4;
            format!(", about {} to write", size(all))
        }
    };
    let help = if help.is_empty() { String::new() } else { format!("; {help}") };
    say(&format!(
        "{}: {}{with} to go through one by one, about {} at a million a second{out}{help}; Ctrl-C ends it",
        path.display(),
        plural(work.items, each),
        about(work.seconds()),
    ));
    true
}

/// Threads of ranks that are gone through without a word: what is held of each takes up to 200 bytes.
const MANY: u64 = 1 << 20;

/// Says how many ranks and threads a trace has, if they are many.
pub fn tell_members(path: &Path, trace: &Trace) {
    let members = trace.bundle.cohorts.iter().map(|cohort| cohort.ranks.len()).fold(0, u64::saturating_add);
    let members = members.max(trace.meta.ranks.into());
    if members > MANY {
        say(&format!(
            "{}: it has {} of ranks, which may take {} of memory and some minutes",
            path.display(),
            plural(members, "thread"),
            size(u128::from(members) * 200),
        ));
    }
}

/// `12 days`: a number that is meant to be rough.
fn about(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(365 * 86_400, "year"), (86_400, "day"), (3_600, "hour"), (60, "minute")];
    let unit = UNITS.iter().find(|(length, _)| seconds >= 2 * length);
    let (length, name) = unit.copied().unwrap_or((1, "second"));
    plural(seconds.max(1) / length, name)
}

/// Lets so many lines through and then behaves as if nobody listened.
pub struct Limited<W> {
    into: W,
    left: u64,
}

impl<W> Limited<W> {
    pub fn new(into: W, lines: Option<u64>) -> Limited<W> {
        Limited { into, left: lines.unwrap_or(u64::MAX) }
    }

    pub fn get_ref(&self) -> &W {
        &self.into
    }
}

impl<W: Write> Write for Limited<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            self.into.flush()?;
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let last = usize::try_from(self.left - 1).ok().and_then(|more| ends.nth(more));
        let written = self.into.write(&bytes[..last.unwrap_or(bytes.len())])?;
        let lines = bytes[..written].iter().filter(|byte| **byte == b'\n').count();
        self.left -= lines as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_with_their_calls() {
        let work = Work { items: 1000, elements: 50 };
        let first = |items| (work.first(items).items, work.first(items).elements);
        assert_eq!((first(100), first(5000), first(0)), ((100, 5), (1000, 50), (0, 0)));
        let none = Work::default().first(7);
        assert_eq!((none.items, none.elements), (0, 0));
    }

    #[test]
    fn rough_times() {
        assert_eq!(about(0), "1 second");
        assert_eq!(about(119), "119 seconds");
        assert_eq!(about(7_200), "2 hours");
        assert_eq!(about(1_000_000), "11 days");
        assert_eq!(about(u64::MAX), "584,942,417,355 years");
    }

    #[test]
    fn lines_are_counted_whatever_the_pieces() {
        for (limit, expected) in
            [(None, "a\nbc\nd\n"), (Some(2), "a\nbc\n"), (Some(0), ""), (Some(9), "a\nbc\nd\n")]
        {
            for piece in 1..8 {
                let mut out = Limited::new(Vec::new(), limit);
                let done = "a\nbc\nd\n".as_bytes().chunks(piece).try_for_each(|part| out.write_all(part));
                assert_eq!(done.is_err(), limit.is_some_and(|limit| limit < 3), "{limit:?} by {piece}");
                assert_eq!(String::from_utf8_lossy(out.get_ref()), expected, "{limit:?} by {piece}");
            }
        }
    }
}
