//! Calls, payload and time per function and per rank, from the folded form.
//!
//! Costs time in the size of the file. Where the folded form does not say how much data a rank gave
//! (a datatype's id that meant different sizes, blocks for each neighbour), its calls are read one by one, unless
//! it made more than 2^26: then the amount is a lower bound and says so.

mod classes;
pub(crate) mod folded;
mod given;
pub(crate) mod kept;
mod matrix;
mod paths;
pub(crate) mod payload;
mod signatures;
mod sites;
pub(crate) mod sizes;
mod times;
pub(crate) mod walked;
mod write;

use std::collections::{BTreeMap, HashMap};

use refrain_encode::{Layout, Reader};
use refrain_fold::bundle::{Bundle, Cohort};
use refrain_model::function_by_id;
use refrain_tracefile::Trace;
use serde::Serialize;

use crate::error::Error;
use crate::length::Told;
pub use classes::{By, ClassRow, Peer, Size, What, classes, write_classes_json, write_classes_text};
pub use given::{Given, Payloads};
use kept::Piece;
pub use kept::Spent;
pub use matrix::{Matrix, Run, Sent, matrix};
pub use paths::{After, PathRow, paths, write_paths_json, write_paths_text};
pub use payload::DEFINITION;
pub use signatures::{SignatureRow, signatures, write_signatures_json, write_signatures_text};
pub use sites::{SiteRow, sites, write_sites_json, write_sites_text};
pub use times::{RankTimes, Times, is_chosen};
pub(crate) use times::{TIMES_OF_RANKS, of_wall};
pub use write::{Per, write_json, write_text};

/// Calls of one rank that are read where the folded form does not say what they gave; of longer runs only a lower bound
/// is told.
const LONGEST_WALK: u64 = 1 << 26;
/// The same of all ranks together, with the elements of their calls' arrays.
const MOST_WALKED: u64 = 1 << 27;

/// An amount of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Amount {
    #[serde(rename = "payload")]
    pub bytes: u128,
    /// Otherwise it is at least this.
    #[serde(rename = "payload_exact", skip_serializing_if = "bool::clone")]
    pub exact: bool,
}

impl Default for Amount {
    fn default() -> Self {
        Amount::NOTHING
    }
}

impl Amount {
    const NOTHING: Amount = Amount { bytes: 0, exact: true };
    const UNKNOWN: Amount = Amount { bytes: 0, exact: false };

    fn times(self, n: u64) -> Amount {
        Amount { bytes: self.bytes.saturating_mul(u128::from(n)), ..self }
    }

    fn add(&mut self, other: Amount, times: u64) {
        self.bytes = self.bytes.saturating_add(other.times(times).bytes);
        self.exact &= other.exact;
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct FunctionRow {
    pub name: &'static str,
    pub calls: u64,
    /// See [`DEFINITION`]; `None` for functions that give no data.
    pub payload: Option<Amount>,
    /// Over all calls on all ranks, where time was kept.
    pub time: Option<Spent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
pub struct RankRow {
    pub calls: u64,
    #[serde(flatten)]
    pub payload: Amount,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    /// The most time first; without time, the most calls first.
    pub functions: Vec<FunctionRow>,
    /// One for each rank.
    pub ranks: Vec<RankRow>,
    /// Ranks that had to be read call by call: one for all that did the same.
    pub walked: usize,
}

impl Stats {
    /// In all calls.
    pub fn time(&self) -> Told {
        let times = self.functions.iter().filter_map(|row| kept::measured(row.time, row.calls));
        Told::sum(times.map(|time| time.total()))
    }
}

/// By symbol.
pub(crate) fn layouts(bundle: &Bundle) -> Result<Vec<Layout>, Error> {
    (0u32..)
        .zip(&bundle.symbols)
        .map(|(index, symbol)| Layout::parse(&symbol.bytes).map_err(|error| Error::Symbol { index, error }))
        .collect()
}

/// How many calls of each symbol all ranks made together.
pub(crate) fn symbol_calls(bundle: &Bundle, layouts: &[Layout]) -> Vec<u64> {
    let mut all = vec![0u64; bundle.symbols.len()];
    for cohort in &bundle.of_threads() {
        let differ = bundle.counts_differ(cohort);
        let first = cohort.ranks.iter().next();
        let counted: Vec<u32> =
            if differ { cohort.ranks.iter().collect() } else { first.into_iter().collect() };
        for rank in counted {
            let counts = bundle.counts(cohort, rank);
            for occurrence in folded::occurrences(bundle, cohort, rank, &counts, layouts) {
                let calls = occurrence.calls();
                let of_all = match occurrence.varied.get() {
                    _ if differ => calls,
                    false => calls.saturating_mul(cohort.ranks.len()),
                    // How often a poll failed is each rank's own.
                    true => cohort
                        .ranks
                        .iter()
                        .fold(0u64, |sum, rank| sum.saturating_add(occurrence.at(rank).calls())),
                };
                let sum = &mut all[occurrence.symbol as usize];
                *sum = sum.saturating_add(of_all);
            }
        }
    }
    all
}

/// By function number, how many calls all ranks made together and how long these took; of a trace that has times. `calls` is by symbol.
pub(crate) fn function_times(
    trace: &Trace,
    layouts: &[Layout],
    calls: &[u64],
) -> BTreeMap<u16, (u64, Spent)> {
    let pieces: Vec<Piece<u16>> = (trace.bundle.symbols.iter().zip(layouts).zip(calls))
        .flat_map(|((symbol, layout), calls)| {
            let function = layout.function.id;
            let piece = move |(calls, tally)| Piece { row: function, function, calls, tally };
            kept::tallies(symbol, *calls).into_iter().map(piece)
        })
        .collect();
    let mut times: BTreeMap<u16, Option<Spent>> = BTreeMap::new();
    for (piece, spent) in pieces.iter().zip(kept::spent(trace, &pieces)) {
        kept::add(times.entry(piece.row).or_default(), spent);
    }
    let mut calls_of: BTreeMap<u16, u64> = BTreeMap::new();
    for (layout, calls) in layouts.iter().zip(calls) {
        let sum = calls_of.entry(layout.function.id).or_default();
        *sum = sum.saturating_add(*calls);
    }
    let settled = |(function, calls)| Some((function, (calls, (*times.get(&function)?)?.settled(calls))));
    calls_of.into_iter().filter_map(settled).collect()
}

pub fn stats(trace: &Trace) -> Result<Stats, Error> {
    let bundle = &trace.bundle;
    let world = trace.meta.ranks;
    let layouts = layouts(bundle)?;
    let first_rank = |c: &Cohort| c.ranks.iter().next().unwrap_or(0);
    let cohorts = bundle.of_threads();
    let types: Vec<_> = cohorts
        .iter()
        .map(|c| {
            let rank = first_rank(c);
            let occurrences = folded::occurrences(bundle, c, rank, &bundle.counts(c, rank), &layouts);
            folded::Types::of_all(&occurrences, rank, bundle.counts_differ(c))
        })
        .collect();

    let reader = Reader::new(bundle);
    let mut rows: BTreeMap<u16, FunctionRow> = BTreeMap::new();
    let calls = symbol_calls(bundle, &layouts);
    for (calls, layout) in calls.iter().zip(&layouts) {
        let row = row(&mut rows, layout);
        row.calls = row.calls.saturating_add(*calls);
    }
    let mut ranks = vec![RankRow::default(); world as usize];
    let mut walked = 0;
    let mut room = MOST_WALKED;
    for cohort in &cohorts {
        // A type that another thread made has one size, or none that we can tell.
        let elsewhere = |id: u32| {
            let others = cohorts.iter().zip(&types).filter(|(c, _)| c.thread != cohort.thread);
            let mut sizes = others.filter_map(|(_, types)| types.get(id));
            let first = sizes.next()??;
            sizes.all(|size| size == Some(first)).then_some(first)
        };
        let first = first_rank(cohort);
        let members = cohort.ranks.len();
        let (differ, of_first) = (bundle.counts_differ(cohort), bundle.counts(cohort, first));
        let occurrences = |rank: u32| {
            let own = differ.then(|| bundle.counts(cohort, rank));
            folded::occurrences(bundle, cohort, rank, own.as_ref().unwrap_or(&of_first), &layouts)
        };
        // What a rank gave, and whether all others of the cohort gave the same.
        let mut given = |rank: u32| -> Result<(HashMap<u16, Amount>, bool), Error> {
            let occurrences = occurrences(rank);
            let own_types = folded::Types::of(&occurrences, rank);
            let comms = folded::Comms::of(&occurrences);
            let context =
                folded::Context { rank, world, types: &own_types, comms: &comms, elsewhere: &elsewhere };
            let length = || refrain_encode::calls_of(bundle, cohort, rank);
            let same = |occurrences: &[folded::Occurrence<'_>]| {
                !differ && !occurrences.iter().any(|o| o.varied.get())
            };
            match folded_amounts(&occurrences, &context) {
                (given, true) => Ok((given, same(&occurrences))),
                // Reading this many calls takes longer than anybody waits for a table.
                (given, false) if length() > LONGEST_WALK.min(room) => Ok((given, same(&occurrences))),
                (given, false) => {
                    walked += 1;
                    let failed = |error| Error::Call { rank, thread: cohort.thread, position: 0, error };
                    let calls = reader.calls(rank, cohort.thread).map_err(failed)?;
                    let read = walked::walk(calls, rank, cohort.thread, world, &elsewhere, &mut room)?;
                    Ok(read.map_or_else(|| (given, same(&occurrences)), |read| (read, cohort.is_uniform())))
                }
            }
        };
        let mut amounts = given(first)?;
        for rank in cohort.ranks.iter() {
            if rank != first && !amounts.1 {
                amounts = (given(rank)?.0, false);
            }
            let mut payload = Amount::NOTHING;
            for (function, amount) in &amounts.0 {
                payload.add(*amount, 1);
                let of_all = if amounts.1 { members } else { 1 };
                if (rank == first || !amounts.1)
                    && let Some(payload) = rows.get_mut(function).and_then(|row| row.payload.as_mut())
                {
                    payload.add(*amount, of_all);
                }
            }
            if let Some(row) = ranks.get_mut(rank as usize) {
                row.calls = row.calls.saturating_add(refrain_encode::calls_of(bundle, cohort, rank));
                row.payload.add(payload, 1);
            }
        }
    }
    if trace.meta.timed {
        for (function, (_, time)) in function_times(trace, &layouts, &calls) {
            if let Some(row) = rows.get_mut(&function) {
                row.time = Some(time);
            }
        }
    }
    let mut functions: Vec<FunctionRow> = rows.into_values().filter(|row| row.calls > 0).collect();
    functions.sort_by_key(|row| (std::cmp::Reverse((row.time.map(|t| t.total), row.calls)), row.name));
    Ok(Stats { functions, ranks, walked })
}

/// By function number, what one rank gave, and whether the folded form said it all: where it did not, the amount is
/// not exact.
fn folded_amounts(
    occurrences: &[folded::Occurrence<'_>],
    context: &folded::Context<'_>,
) -> (HashMap<u16, Amount>, bool) {
    let mut given: HashMap<u16, Amount> = HashMap::new();
    let mut all = true;
    for occurrence in occurrences {
        let function = occurrence.layout.function;
        if let Some(rule) = payload::payload(function) {
            let amount = folded::of_symbol(occurrence, &rule, context);
            all &= amount.is_ok();
            given.entry(function.id).or_default().add(amount.unwrap_or(Amount::UNKNOWN), 1);
        }
    }
    (given, all)
}

fn row<'a>(rows: &'a mut BTreeMap<u16, FunctionRow>, layout: &Layout) -> &'a mut FunctionRow {
    let function = layout.function;
    rows.entry(function.id).or_insert_with(|| FunctionRow {
        name: function_by_id(function.id).map_or(function.name, |f| f.name),
        calls: 0,
        payload: payload::payload(function).map(|_| Amount::NOTHING),
        time: None,
    })
}
