//! Are two traces the same run, and if not, where do they part?
//!
//! Structures, symbols and streams are compared as they are folded, by content: numbering, merging and the size of the run do
//! not matter. That leaves, of threads that differ, the first event that may; from there on calls are decoded and compared
//! one by one, and what these say counts. So a difference is never told that is none, and equality takes the same numbers
//! in the same order, up to a chance of one in 2^80 or so that prints of different numbers are equal.

mod calls;
mod faces;
mod json;
mod lasted;
mod member;
mod pair;
mod rows;
mod settings;
mod slower;
mod write;

use std::collections::HashMap;

use refrain_encode::Reader;
use refrain_fold::bundle::{Bundle, Index};
use refrain_fold::ranks::RankList;
use refrain_sites::Names;
use refrain_tracefile::Trace;

use crate::error::Error;
pub use crate::length::Told;
pub use calls::Change;
pub use json::write_json;
pub use lasted::{Lasted, OfRank};
pub use rows::{CallsOfRank, Row, rows};
pub use settings::Ignore;
pub use slower::{Moved, Slower, slower};
pub use write::{Report, write_text};

use calls::Comparing;
use pair::Pair;
use settings::Settings;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Which {
    A,
    B,
}

/// One of the two cannot be read.
#[derive(Debug)]
pub struct Unread {
    pub which: Which,
    pub error: Error,
}

/// Where threads of ranks part, the same way.
#[derive(Debug, Clone, PartialEq)]
pub struct First {
    pub thread: u32,
    pub ranks: RankList,
    /// The rank whose values these are. Others may have other peers.
    pub rank: u32,
    /// In A and in B: the number of the call, counted from 0. They differ where calls were left out of the comparison.
    pub number: (u64, u64),
    /// The functions; `None` where there are no more calls.
    pub function: (Option<&'static str>, Option<&'static str>),
    /// The symbols of the calls, which know where they were made.
    pub symbol: (Option<u32>, Option<u32>),
    /// What differs, if both are calls of one function.
    pub changes: Vec<Change>,
}

/// Calls of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionRow {
    pub name: &'static str,
    pub calls: (u64, u64),
    /// How many differ, where the order of all calls is the same and that can be told at little cost.
    pub differ: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    /// What makes the two not comparable in full.
    pub notes: Vec<String>,
    /// What was not compared, in words.
    pub ignored: Vec<&'static str>,
    pub ranks: (u32, u32),
    pub calls: (u64, u64),
    /// By lowest rank. Nothing where the numbers of ranks differ: then no rank of one is a rank of the other.
    pub firsts: Vec<First>,
    /// Threads of ranks that only one of the two has.
    pub alone: Vec<(Which, u32, RankList)>,
    /// The most calls first.
    pub functions: Vec<FunctionRow>,
    /// Calls that were decoded to be compared.
    pub read: u64,
}

impl Diff {
    pub fn is_equal(&self) -> bool {
        self.ranks.0 == self.ranks.1 && self.firsts.is_empty() && self.alone.is_empty()
    }

    /// Some ranks made other calls, not only the same calls with other arguments.
    pub fn is_about_order(&self) -> bool {
        let counts = || self.functions.iter().any(|row| row.calls.0 != row.calls.1);
        let order = || self.firsts.iter().any(|first| first.function.0 != first.function.1);
        self.ranks.0 != self.ranks.1
            || !self.alone.is_empty()
            || !self.firsts.is_empty() && (counts() || order())
    }

    /// How many ranks have a thread that differs.
    fn ranks_that_differ(&self) -> u64 {
        let mut ranks: Vec<u32> = self.firsts.iter().flat_map(|first| first.ranks.iter()).collect();
        ranks.extend(self.alone.iter().flat_map(|(_, _, ranks)| ranks.iter()));
        ranks.sort_unstable();
        ranks.dedup();
        ranks.len() as u64
    }
}

/// `progress` is told now and then how many calls were read.
pub fn diff(a: &Trace, b: &Trace, ignore: Ignore, progress: &mut dyn FnMut(u64)) -> Result<Diff, Unread> {
    let settings = Settings::of(a, b, ignore);
    let faces = faces::Faces::of(&a.bundle, &b.bundle, &settings)?;
    let mut found = Diff {
        notes: settings.notes.clone(),
        ignored: settings.ignored(),
        ranks: (a.meta.ranks, b.meta.ranks),
        calls: (crate::info::calls(&a.bundle), crate::info::calls(&b.bundle)),
        firsts: Vec::new(),
        alone: Vec::new(),
        functions: Vec::new(),
        read: 0,
    };
    let mut differ: Option<HashMap<u16, u64>> = Some(HashMap::new());
    if a.meta.ranks == b.meta.ranks {
        let readers = (Reader::new(&a.bundle), Reader::new(&b.bundle));
        let mut comparing = Comparing::new((a, b), &readers, &settings, progress);
        let mut lines = Lines::default();
        let (pairs, alone) = pairings(&a.bundle, &b.bundle);
        found.alone = alone.into_iter().filter(|(which, ..)| !settings.is_excused(*which)).collect();
        for (cohorts, members) in pairs {
            let pair = Pair::new((&a.bundle, &b.bundle), cohorts, members, &faces, &settings)?;
            let outcome = pair.compare(&mut comparing)?;
            outcome.firsts.iter().for_each(|(members, first)| lines.add(&a.bundle, members, first));
            match (&mut differ, outcome.differ) {
                (Some(all), Some(more)) => {
                    more.into_iter()
                        .for_each(|(function, calls)| pair::add(all.entry(function).or_default(), calls));
                }
                (differ, _) => *differ = None,
            }
        }
        found.firsts = lines.finish();
        found.read = comparing.read();
    } else {
        differ = None;
    }
    found.functions = rows::functions(a, b, differ.filter(|_| found.alone.is_empty()))?;
    Ok(found)
}

/// Threads that part in the same way are one line.
#[derive(Default)]
struct Lines {
    lines: Vec<(First, Vec<u32>)>,
    known: HashMap<String, usize>,
}

impl Lines {
    fn add(&mut self, bundle: &Bundle, members: &[u32], first: &First) {
        let mut by_thread: HashMap<u32, Vec<u32>> = HashMap::new();
        for &member in members {
            let (rank, thread) = bundle.place_of(member);
            by_thread.entry(thread).or_default().push(rank);
        }
        for (thread, ranks) in by_thread {
            let key = format!("{thread} {:?} {:?} {:?}", first.number, first.symbol, first.changes);
            let next = self.lines.len();
            let line = *self.known.entry(key).or_insert(next);
            if line == next {
                let rank = if thread == first.thread { first.rank } else { ranks[0] };
                self.lines.push((First { thread, rank, ..first.clone() }, Vec::new()));
            }
            self.lines[line].1.extend(ranks);
        }
    }

    fn finish(self) -> Vec<First> {
        let line = |(first, ranks): (First, Vec<u32>)| First { ranks: ranks.into_iter().collect(), ..first };
        let mut firsts: Vec<First> = self.lines.into_iter().map(line).collect();
        firsts.sort_by_key(|first| (first.ranks.first(), first.thread));
        firsts
    }
}

/// A cohort of A, one of B, and the members that are in both.
type Pairing = ((usize, usize), RankList);

/// Both numbers of ranks are the same, so a member is the same thread of the same rank in both.
fn pairings(a: &Bundle, b: &Bundle) -> (Vec<Pairing>, Vec<(Which, u32, RankList)>) {
    let whole: HashMap<&RankList, usize> =
        b.cohorts.iter().enumerate().map(|(at, cohort)| (&cohort.ranks, at)).collect();
    let index = Index::new(b);
    let mut pairs = Vec::new();
    let mut alone: Vec<(Which, u32)> = Vec::new();
    for (at, cohort) in a.cohorts.iter().enumerate() {
        if let Some(&same) = whole.get(&cohort.ranks) {
            pairs.push(((at, same), cohort.ranks.clone()));
            continue;
        }
        let mut shared: HashMap<usize, Vec<u32>> = HashMap::new();
        for member in &cohort.ranks {
            let (rank, thread) = a.place_of(member);
            match index.cohort_of(rank, thread) {
                Some((other, _)) => shared.entry(other).or_default().push(member),
                None => alone.push((Which::A, member)),
            }
        }
        let mut shared: Vec<(usize, Vec<u32>)> = shared.into_iter().collect();
        shared.sort_unstable();
        pairs.extend(shared.into_iter().map(|(other, list)| ((at, other), RankList::from_sorted(&list))));
    }
    let index = Index::new(a);
    let in_a: std::collections::HashSet<&RankList> = a.cohorts.iter().map(|cohort| &cohort.ranks).collect();
    for cohort in b.cohorts.iter().filter(|cohort| !in_a.contains(&cohort.ranks)) {
        for member in &cohort.ranks {
            let (rank, thread) = b.place_of(member);
            if index.cohort_of(rank, thread).is_none() {
                alone.push((Which::B, member));
            }
        }
    }
    let mut by_thread: HashMap<(bool, u32), Vec<u32>> = HashMap::new();
    for (which, member) in alone {
        let (rank, thread) = a.place_of(member);
        by_thread.entry((which == Which::B, thread)).or_default().push(rank);
    }
    let mut alone: Vec<(Which, u32, RankList)> = by_thread
        .into_iter()
        .map(|((of_b, thread), ranks)| {
            (if of_b { Which::B } else { Which::A }, thread, ranks.into_iter().collect())
        })
        .collect();
    alone.sort_by_key(|(which, thread, ranks)| (ranks.first(), *thread, *which == Which::B));
    (pairs, alone)
}

/// What calls of a trace are called from, where it says so and somebody knows names.
pub type Sources<'a> = (&'a Trace, &'a dyn Names);
