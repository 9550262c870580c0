//! Why an answer is empty: said in a line, since silence looks like a mistake.

use std::io::{self, Write};

use refrain_tracefile::Trace;
use refrain_views::dump::Selection;
use refrain_views::human::{folded as rank_list, plural};

/// An output of which only whether anything came matters.
pub struct Counted<W> {
    into: W,
    empty: bool,
}

impl<W> Counted<W> {
    pub fn new(into: W) -> Counted<W> {
        Counted { into, empty: true }
    }

    pub fn is_empty(&self) -> bool {
        self.empty
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.empty &= bytes.is_empty();
        self.into.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}

/// The ranks that have calls, in order.
fn recorded(trace: &Trace) -> Vec<u32> {
    let bundle = &trace.bundle;
    let members = bundle.cohorts.iter().flat_map(|cohort| cohort.ranks.iter());
    let mut ranks: Vec<u32> = members.map(|member| bundle.place_of(member).0).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// Nothing was recorded of any of the ranks asked for.
pub fn of_ranks(trace: &Trace, asked: impl Fn(u32) -> bool) -> Option<String> {
    let recorded = recorded(trace);
    if recorded.iter().any(|&rank| asked(rank)) {
        return None;
    }
    Some(match recorded.is_empty() {
        true => "nothing was recorded".to_owned(),
        false => format!("nothing was recorded of these ranks, only of {}", rank_list(&recorded)),
    })
}

/// Why a dump has no lines.
pub fn dumped(trace: &Trace, selection: &Selection, only: Option<&str>) -> String {
    let Selection { ranks, threads, calls, .. } = selection;
    let asked = |rank: u32| ranks.as_ref().is_none_or(|ranks| ranks.contains(rank));
    if let Some(why) = of_ranks(trace, asked) {
        return why;
    }
    let thread = |thread: u32| threads.as_ref().is_none_or(|threads| threads.contains(thread));
    let bundle = &trace.bundle;
    let cohorts = bundle.of_threads();
    let made = cohorts.iter().filter(|cohort| thread(cohort.thread)).flat_map(|cohort| {
        let ranks = cohort.ranks.iter().filter(|&rank| asked(rank));
        ranks.map(|rank| refrain_encode::calls_of(bundle, cohort, rank))
    });
    match (made.max(), only) {
        (None, _) => "these ranks have no such thread".to_owned(),
        (Some(most), _) if most <= calls.start => {
            format!("there are no such calls: none of these threads made more than {}", plural(most, "call"))
        }
        _ if selection.between.is_some() => "no such call overlaps that time".to_owned(),
        (_, Some(only)) => format!(
            "none of these calls is one of {only}; `refrain stats` lists the functions that were called"
        ),
        (_, None) => "there are no such calls".to_owned(),
    }
}
