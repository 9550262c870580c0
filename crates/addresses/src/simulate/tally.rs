//! Misses by instruction, and by region of memory.

use refrain_fold::FastMap;

use super::Type;
use super::system::LEVELS;

/// What references of one instruction, or to one region, came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Reads, writes, fetches.
    pub references: [u64; 3],
    /// Reads, writes, fetches that missed at the first level; lines that were missing at each level below because of them.
    pub misses: [[u64; 3]; LEVELS],
    /// Lines that cores lacked because others had written to them: by true and by false sharing.
    pub sharing: [u64; 2],
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        let all = |tally: &Tally| tally.misses;
        self.references.iter_mut().zip(other.references).for_each(|(sum, more)| *sum += more);
        let pairs = self.misses.iter_mut().flatten().zip(all(other).into_iter().flatten());
        pairs.for_each(|(sum, more)| *sum += more);
        self.sharing.iter_mut().zip(other.sharing).for_each(|(sum, more)| *sum += more);
    }

    fn count(&mut self, kind: Type, missed: &[u64; LEVELS], shared: [u64; 2]) {
        self.references[kind as usize] += 1;
        for (sum, more) in self.misses.iter_mut().zip(missed) {
            sum[kind as usize] += more;
        }
        self.sharing.iter_mut().zip(shared).for_each(|(sum, more)| *sum += more);
    }
}

/// Part of memory with a name: its first byte, and the first behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pub name: String,
    pub from: u64,
    pub to: u64,
}

/// Whose misses they are.
#[derive(Debug, Default)]
pub struct Tallies {
    pcs: FastMap<u64, Tally>,
    regions: Vec<(Region, Tally)>,
    elsewhere: Tally,
    /// Whether instructions are told apart.
    by_pc: bool,
}

impl Tallies {
    /// By instruction or not, and by these regions. Of regions that overlap, the first counts.
    pub fn new(by_pc: bool, regions: &[Region]) -> Tallies {
        let regions = regions.iter().map(|region| (region.clone(), Tally::default())).collect();
        Tallies { by_pc, regions, ..Tallies::default() }
    }

    /// A reference of an instruction.
    pub(super) fn count(
        &mut self,
        kind: Type,
        address: u64,
        pc: u64,
        missed: &[u64; LEVELS],
        shared: [u64; 2],
    ) {
        if self.by_pc {
            self.pcs.entry(pc).or_default().count(kind, missed, shared);
        }
        if !self.regions.is_empty() {
            let is_in = |(region, _): &&mut (Region, Tally)| (region.from..region.to).contains(&address);
            match self.regions.iter_mut().find(is_in) {
                Some((_, tally)) => tally.count(kind, missed, shared),
                None => self.elsewhere.count(kind, missed, shared),
            }
        }
    }

    pub(super) fn reset(&mut self) {
        self.pcs.clear();
        self.elsewhere = Tally::default();
        self.regions.iter_mut().for_each(|(_, tally)| *tally = Tally::default());
    }

    /// By instruction, in the order of their addresses.
    pub fn pcs(&self) -> Vec<(u64, &Tally)> {
        let mut all: Vec<(u64, &Tally)> = self.pcs.iter().map(|(pc, tally)| (*pc, tally)).collect();
        all.sort_unstable_by_key(|(pc, _)| *pc);
        all
    }

    /// By region, and what is in none.
    pub fn regions(&self) -> (&[(Region, Tally)], &Tally) {
        (&self.regions, &self.elsewhere)
    }
}
