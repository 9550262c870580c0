//! What was added, removed or changed, by function, call site and loop: for runs that are not the same.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use refrain_fold::bundle::Bundle;
use refrain_fold::loops::{Loops, Node};
use refrain_tracefile::Trace;
use serde::Serialize;

use super::{FunctionRow, Sources, Unread, Which};
use crate::stats::{Amount, folded, layouts, stats};

/// Calls on all ranks, and by rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CallsOfRank {
    pub total: u64,
    /// Ranks that made any.
    pub ranks: u64,
    /// Of the ranks that made any, the fewest and the most.
    pub least: u64,
    pub most: u64,
}

/// The calls of a function, or of a function from one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub function: &'static str,
    /// Where they are made, if both traces say so.
    pub at: Option<String>,
    pub calls: (CallsOfRank, CallsOfRank),
    /// What they gave, of whole functions.
    pub payload: (Option<Amount>, Option<Amount>),
    /// How often the loops around them go around on the lowest rank, the outermost first, where a trace has loops.
    pub turns: (Vec<u64>, Vec<u64>),
}

impl Row {
    /// As many calls on each rank, giving as much, in loops that go around as often.
    pub fn is_alike(&self, ranks: (u32, u32)) -> bool {
        let (a, b) = &self.calls;
        let by_rank = (a.least, a.most) == (b.least, b.most);
        let all = |calls: &CallsOfRank, ranks: u32| calls.ranks == u64::from(ranks);
        let share = a.ranks == b.ranks || all(a, ranks.0) && all(b, ranks.1);
        let each = |amount: Option<Amount>, calls: &CallsOfRank| {
            amount.map(|amount| amount.bytes.checked_div(calls.total.into()))
        };
        by_rank && share && each(self.payload.0, a) == each(self.payload.1, b) && self.turns.0 == self.turns.1
    }
}

/// Calls of each function in both.
pub(super) fn functions(
    a: &Trace,
    b: &Trace,
    differ: Option<HashMap<u16, u64>>,
) -> Result<Vec<FunctionRow>, Unread> {
    let mut rows: BTreeMap<u16, FunctionRow> = BTreeMap::new();
    for (which, trace) in [(Which::A, a), (Which::B, b)] {
        each(which, &trace.bundle, &mut |symbol: &folded::Occurrence<'_>, share| {
            let f = symbol.layout.function;
            let differ = differ.as_ref().map(|differ| differ.get(&f.id).copied().unwrap_or(0));
            let row = rows.entry(f.id).or_insert(FunctionRow { name: f.name, calls: (0, 0), differ });
            let all = if which == Which::A { &mut row.calls.0 } else { &mut row.calls.1 };
            *all = all.saturating_add(share.total());
        })?;
    }
    let mut rows: Vec<FunctionRow> = rows.into_values().collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.calls.0.max(row.calls.1)), row.name));
    Ok(rows)
}

/// Calls by rank.
enum Share {
    /// All of these made as many.
    Alike(Rc<[u32]>, u64),
    Own(Vec<(u32, u64)>),
}

impl Share {
    fn total(&self) -> u64 {
        match self {
            Share::Alike(ranks, calls) => calls.saturating_mul(ranks.len() as u64),
            Share::Own(ranks) => ranks.iter().fold(0, |sum: u64, (_, calls)| sum.saturating_add(*calls)),
        }
    }

    fn add_to(&self, by_rank: &mut [u64]) {
        let mut add = |rank: u32, calls: u64| {
            if let Some(sum) = by_rank.get_mut(rank as usize) {
                *sum = sum.saturating_add(calls);
            }
        };
        match self {
            Share::Alike(ranks, calls) => ranks.iter().for_each(|&rank| add(rank, *calls)),
            Share::Own(ranks) => ranks.iter().for_each(|&(rank, calls)| add(rank, calls)),
        }
    }
}

/// Each symbol of each kind of threads, with their calls.
fn each(
    which: Which,
    bundle: &Bundle,
    see: &mut dyn FnMut(&folded::Occurrence<'_>, Share),
) -> Result<(), Unread> {
    let layouts = layouts(bundle).map_err(|error| Unread { which, error })?;
    for cohort in &bundle.of_threads() {
        let all: Rc<[u32]> = cohort.ranks.iter().collect();
        let differ = bundle.counts_differ(cohort);
        for &rank in if differ { &all[..] } else { all.get(..1).unwrap_or_default() } {
            let counts = bundle.counts(cohort, rank);
            for occurrence in folded::occurrences(bundle, cohort, rank, &counts, &layouts) {
                let calls = occurrence.calls();
                let share = match (differ, occurrence.varied.get()) {
                    (true, _) => Share::Own(vec![(rank, calls)]),
                    // How often a poll failed is each rank's own.
                    (_, true) => Share::Own(all.iter().map(|&r| (r, occurrence.at(r).calls())).collect()),
                    _ => Share::Alike(all.clone(), calls),
                };
                see(&occurrence, share);
            }
        }
    }
    Ok(())
}

type Key = (&'static str, Option<String>);

/// By call site where both traces have them, otherwise by function; what differs most first.
pub fn rows(a: Sources<'_>, b: Sources<'_>) -> Result<Vec<Row>, Unread> {
    let by_site = !a.0.bundle.sites.is_empty() && !b.0.bundle.sites.is_empty();
    let mut rows: BTreeMap<Key, Row> = BTreeMap::new();
    for (which, (trace, names)) in [(Which::A, a), (Which::B, b)] {
        let bundle = &trace.bundle;
        let place = |symbol: u32| {
            let site = bundle.symbols.get(symbol as usize)?.site;
            let frame = *bundle.sites.frames(site).last()?;
            names.places(frame).last().map(|place| place.to_string())
        };
        let places: Vec<Option<String>> =
            (0..bundle.symbols.len() as u32).map(|symbol| place(symbol).filter(|_| by_site)).collect();
        let turns = turns(bundle);
        let mut shares: HashMap<Key, Vec<Share>> = HashMap::new();
        let mut most: HashMap<Key, u64> = HashMap::new();
        each(which, bundle, &mut |occurrence: &folded::Occurrence<'_>, share| {
            let at = places.get(occurrence.symbol as usize).cloned().flatten();
            let key = (occurrence.layout.function.name, at);
            let row = rows.entry(key.clone()).or_insert_with(|| Row {
                function: key.0,
                at: key.1.clone(),
                calls: Default::default(),
                payload: (None, None),
                turns: Default::default(),
            });
            // The loops that most of the calls are in.
            if let Some((runs, around)) = turns.get(&occurrence.symbol)
                && *runs > most.get(&key).copied().unwrap_or(0)
            {
                most.insert(key.clone(), *runs);
                *(if which == Which::A { &mut row.turns.0 } else { &mut row.turns.1 }) = around.clone();
            }
            shares.entry(key).or_default().push(share);
        })?;
        for (key, shares) in shares {
            let mut by_rank = vec![0; trace.meta.ranks as usize];
            shares.iter().for_each(|share| share.add_to(&mut by_rank));
            let made = || by_rank.iter().copied().filter(|calls| *calls > 0);
            let calls = CallsOfRank {
                total: made().fold(0, u64::saturating_add),
                ranks: made().count() as u64,
                least: made().min().unwrap_or(0),
                most: made().max().unwrap_or(0),
            };
            if let Some(row) = rows.get_mut(&key) {
                *(if which == Which::A { &mut row.calls.0 } else { &mut row.calls.1 }) = calls;
            }
        }
        if !by_site {
            let stats = stats(trace).map_err(|error| Unread { which, error })?;
            for of in stats.functions {
                if let Some(row) = rows.get_mut(&(of.name, None)) {
                    *(if which == Which::A { &mut row.payload.0 } else { &mut row.payload.1 }) = of.payload;
                }
            }
        }
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    let change = |row: &Row| row.calls.0.total.abs_diff(row.calls.1.total);
    rows.sort_by_key(|row| (std::cmp::Reverse(change(row)), row.function, row.at.clone()));
    Ok(rows)
}

/// By symbol, where the lowest rank that has it has it most often in loops: how often that is, and the turns of the loops
/// around it, on average.
fn turns(bundle: &Bundle) -> HashMap<u32, (u64, Vec<u64>)> {
    let mut turns: HashMap<u32, (u64, Vec<u64>)> = HashMap::new();
    for cohort in &bundle.cohorts {
        let Some(first) = cohort.ranks.first() else { continue };
        let Some((loops, times)) = bundle.times_of(cohort, first) else { continue };
        let totals = loops.totals(|node| times.get(node)?.as_deref());
        let mut own: HashMap<u32, (u64, Vec<u64>)> = HashMap::new();
        for (symbol, runs, around) in events(loops, &totals) {
            let known = own.entry(symbol).or_default();
            if runs > known.0 {
                *known = (runs, around);
            }
        }
        for (symbol, found) in own {
            turns.entry(symbol).or_insert(found);
        }
    }
    turns
}

fn events(loops: &Loops, totals: &[(u64, u64)]) -> Vec<(u32, u64, Vec<u64>)> {
    let mut open: Vec<(usize, u64)> = Vec::new();
    let mut events = Vec::new();
    for (at, (node, &(reached, runs))) in loops.nodes.iter().zip(totals).enumerate() {
        while open.last().is_some_and(|&(end, _)| end <= at) {
            open.pop();
        }
        match *node {
            Node::Loop { inside } => {
                open.push((at + 1 + inside as usize, runs.checked_div(reached).unwrap_or(0)));
            }
            Node::Event(symbol) => {
                events.push((symbol, runs, open.iter().map(|&(_, turns)| turns).collect()))
            }
        }
    }
    events
}
