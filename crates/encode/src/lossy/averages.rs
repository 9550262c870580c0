//! Averages: the counts of an `MPI_Alltoallv` vary with the data, their sum much less (ScalaTrace, inherent load
//! imbalance). Each of a call's counts becomes their mean, rounded, and the displacements those of blocks of that size
//! one after the other. The smallest and the largest count are remembered, and whose they were.
//!
//! Not `MPI_Alltoallw`: counts of different datatypes have no mean.

use std::collections::BTreeMap;

use refrain_model::{Function, function};

use crate::hash::FastMap;
use crate::layout::{Layout, Slot};
use crate::record::Record;

/// One for each thread.
#[derive(Debug, Default)]
pub struct Averages {
    /// By symbol: its counts and displacements.
    known: FastMap<Box<[u8]>, Vec<Side>>,
    /// By function and parameter.
    extremes: BTreeMap<(&'static str, &'static str), Extremes>,
}

/// What a call sends, or what it receives.
#[derive(Debug, Clone, Copy)]
struct Side {
    /// The function and the parameter of the counts.
    of: (&'static str, &'static str),
    counts: u16,
    displacements: Option<u16>,
}

/// The smallest and the largest count: the count, which entry of its array it was, and on which rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extremes {
    pub least: (i64, u32, u32),
    pub most: (i64, u32, u32),
}

impl Extremes {
    pub fn absorb(&mut self, other: Extremes) {
        self.least = self.least.min(other.least);
        // Of equal ones the first, so that it does not matter in which order they come.
        let first = |(count, entry, rank): (i64, u32, u32)| (count, u32::MAX - entry, u32::MAX - rank);
        if first(other.most) > first(self.most) {
            self.most = other.most;
        }
    }
}

impl Averages {
    /// Takes the counts out of a record that was not pushed yet, if it is of that kind.
    pub fn apply(&mut self, f: &'static Function, record: &mut Record) {
        if !f.name.to_ascii_lowercase().contains("alltoallv") {
            return;
        }
        if !self.known.contains_key(&*record.symbol) {
            let sides = Layout::parse(&record.symbol).map_or_else(|_| Vec::new(), |layout| sides(&layout));
            self.known.insert(record.symbol.as_slice().into(), sides);
        }
        let Some(sides) = self.known.get(&*record.symbol) else { return };
        for side in sides {
            let counts =
                record.values.iter().filter(|(lane, _)| *lane == side.counts).map(|(_, count)| *count);
            let (mut sum, mut entries) = (0i128, 0u32);
            for count in counts {
                let met = (count, entries, 0);
                let met = Extremes { least: met, most: met };
                self.extremes.entry(side.of).and_modify(|known| known.absorb(met)).or_insert(met);
                sum += i128::from(count);
                entries += 1;
            }
            if entries == 0 {
                continue;
            }
            // The sum of ints, shared by at least one: it fits.
            let mean = (sum + i128::from(entries / 2)).div_euclid(entries.into()) as i64;
            let mut before = 0;
            for (lane, value) in &mut record.values {
                if *lane == side.counts {
                    *value = mean;
                } else if Some(*lane) == side.displacements {
                    *value = before;
                    before += mean;
                }
            }
        }
    }

    /// What was met so far, on this rank: function, parameter, and its smallest and largest count.
    pub fn extremes(&self, rank: u32) -> impl Iterator<Item = (&'static str, &'static str, Extremes)> + '_ {
        let here = move |(count, entry, _): (i64, u32, u32)| (count, entry, rank);
        self.extremes.iter().map(move |(&(function, parameter), known)| {
            (function, parameter, Extremes { least: here(known.least), most: here(known.most) })
        })
    }
}

/// Names that come from outside, as [`Averages::extremes`] gives them.
impl Extremes {
    pub fn names(of: &str, parameter: &str) -> Option<(&'static str, &'static str)> {
        let f = function(of)?;
        f.params.iter().find(|p| p.name == parameter).map(|p| (f.name, p.name))
    }
}

fn sides(layout: &Layout) -> Vec<Side> {
    let f = layout.function;
    let lane = |name: &str| {
        let (p, slot) = f.params.iter().zip(&layout.slots).find(|(p, _)| p.name == name)?;
        match *slot {
            Slot::List { lane, .. } => Some((p.name, lane)),
            _ => None,
        }
    };
    let pairs = [("sendcounts", "sdispls"), ("recvcounts", "rdispls")].into_iter();
    let side = |(counts, displacements)| {
        let (name, counts) = lane(counts)?;
        let displacements = lane(displacements).map(|(_, lane)| lane);
        Some(Side { of: (f.name, name), counts, displacements })
    };
    pairs.filter_map(side).collect()
}
