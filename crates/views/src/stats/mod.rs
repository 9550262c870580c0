//! Calls, payload and time per function and per rank, from the folded form.
//!
//! Costs time in the size of the file. Where the folded form does not say how much data a group of ranks gave
//! (a datatype's id that meant different sizes, blocks for each neighbour), one of its ranks is read call by call, unless
//! it made more than 2^26: then the amount is a lower bound and says so.

mod folded;
mod payload;
mod sizes;
mod walked;
mod write;

use std::collections::{BTreeMap, HashMap};

use refrain_encode::{Calls, Layout};
use refrain_fold::bundle::Tally;
use refrain_model::function_by_id;
use refrain_tracefile::Trace;

use crate::error::Error;
pub use payload::DEFINITION;
pub use write::{Per, write_json, write_text};

/// Calls of one rank that are read where the folded form does not say what they gave; of longer runs only a lower bound
/// is told.
const LONGEST_WALK: u64 = 1 << 26;

/// An amount of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Amount {
    pub bytes: u128,
    /// Otherwise it is at least this.
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
    /// Nanoseconds over all calls on all ranks, where time was kept.
    pub time: Option<Tally>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RankRow {
    pub calls: u64,
    pub payload: Amount,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    /// The most time first; without time, the most calls first.
    pub functions: Vec<FunctionRow>,
    /// One for each rank.
    pub ranks: Vec<RankRow>,
    /// Groups that had to be read call by call.
    pub walked: usize,
}

pub fn stats(trace: &Trace) -> Result<Stats, Error> {
    let bundle = &trace.bundle;
    let world = trace.meta.ranks;
    let layouts = (0u32..)
        .zip(&bundle.symbols)
        .map(|(index, symbol)| Layout::parse(&symbol.bytes).map_err(|error| Error::Symbol { index, error }))
        .collect::<Result<Vec<Layout>, Error>>()?;
    let counts: Vec<Vec<(u32, u64)>> = bundle.structures.iter().map(|s| s.counts()).collect();
    let counts_of = |structure: u32| counts.get(structure as usize).map_or(&[][..], Vec::as_slice);

    let first_rank = |g: &refrain_fold::bundle::Group| g.ranks.iter().next().unwrap_or(0);
    let occurrences: Vec<_> = bundle
        .groups
        .iter()
        .map(|g| folded::occurrences(bundle, g, counts_of(g.structure), &layouts))
        .collect();
    let types: Vec<_> =
        occurrences.iter().zip(&bundle.groups).map(|(o, g)| folded::Types::of(o, first_rank(g))).collect();

    let mut rows: BTreeMap<u16, FunctionRow> = BTreeMap::new();
    let mut ranks = vec![RankRow::default(); world as usize];
    let mut walked = 0;
    for ((group, occurrences), own_types) in bundle.groups.iter().zip(&occurrences).zip(&types) {
        // A type that another thread made has one size, or none that we can tell.
        let elsewhere = |id: u32| {
            let others = bundle.groups.iter().zip(&types).filter(|(g, _)| g.thread != group.thread);
            let mut sizes = others.filter_map(|(_, types)| types.get(id));
            let first = sizes.next()??;
            sizes.all(|size| size == Some(first)).then_some(first)
        };
        let rank = first_rank(group);
        let comms = folded::Comms::of(occurrences);
        let context = folded::Context { rank, world, types: own_types, comms: &comms, elsewhere: &elsewhere };
        let length = occurrences.iter().fold(0u64, |sum, o| sum.saturating_add(o.times));
        let given = match folded_amounts(occurrences, &context) {
            (given, true) => given,
            // Reading this many calls takes longer than anybody waits for a table.
            (given, false) if length > LONGEST_WALK => given,
            _ => {
                walked += 1;
                let calls = Calls::new(bundle, rank, group.thread).map_err(|error| Error::Call {
                    rank,
                    thread: group.thread,
                    position: 0,
                    error,
                })?;
                walked::walk(calls, rank, group.thread, world, &elsewhere)?
            }
        };
        let members = group.ranks.len();
        let mut of_rank = RankRow::default();
        for occurrence in occurrences {
            let calls = occurrence.calls();
            of_rank.calls = of_rank.calls.saturating_add(calls);
            let row = row(&mut rows, occurrence.layout);
            row.calls = row.calls.saturating_add(calls.saturating_mul(members));
        }
        for (function, amount) in given {
            of_rank.payload.add(amount, 1);
            if let Some(payload) = rows.get_mut(&function).and_then(|row| row.payload.as_mut()) {
                payload.add(amount, members);
            }
        }
        for rank in group.ranks.iter() {
            if let Some(row) = ranks.get_mut(rank as usize) {
                row.calls = row.calls.saturating_add(of_rank.calls);
                row.payload.add(of_rank.payload, 1);
            }
        }
    }
    if trace.meta.timed {
        for (symbol, layout) in bundle.symbols.iter().zip(&layouts) {
            match &mut row(&mut rows, layout).time {
                Some(time) => time.add(symbol.tally),
                time => *time = Some(symbol.tally),
            }
        }
    }
    let mut functions: Vec<FunctionRow> = rows.into_values().filter(|row| row.calls > 0).collect();
    functions.sort_by_key(|row| (std::cmp::Reverse((row.time.map(|t| t.total), row.calls)), row.name));
    Ok(Stats { functions, ranks, walked })
}

/// By function number, what one rank of a group gave, and whether the folded form said it all: where it did not, the
/// amount is not exact.
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
