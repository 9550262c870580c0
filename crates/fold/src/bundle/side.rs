//! Side lanes: numbers beside those that a symbol's bytes announce, one for each time the symbol comes.
//!
//! What they are is their kind. They take part in merging, numbering and reading like other lanes; a reader that does not
//! know a kind has no use for it and loses nothing else.

use super::lanes::StreamSet;
use super::{Bundle, Cohort, Error, Lane, normal};
use crate::stream::Stream;

/// What the numbers of a side lane are. The numbers are in files: append, never renumber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SideKind(pub u16);

impl SideKind {
    /// When it began, in nanoseconds.
    pub const TIME: SideKind = SideKind(1);
    /// How long it took, in nanoseconds.
    pub const DURATION: SideKind = SideKind(2);
    /// What it referred to.
    pub const ADDRESS: SideKind = SideKind(3);
}

/// The side lanes of one kind that a cohort has.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// What its numbers mean.
    pub kind: SideKind,
    /// By symbol, in the order of [`super::Structure::symbols`]. Members that have none for a symbol are in no cohort with
    /// members that have.
    pub lanes: Vec<Option<Lane>>,
}

impl Bundle {
    /// Adds a kind to one rank's own recording: `streams` says for each thread and symbol what they are, and how many count,
    /// if it has any. To be called once for a kind, before anything is merged.
    pub fn add_side(
        &mut self,
        kind: SideKind,
        mut streams: impl FnMut(u32, u32) -> Option<(Stream, u64)>,
    ) -> Result<(), Error> {
        let mut table = StreamSet::new(std::mem::take(&mut self.streams));
        for at in 0..self.cohorts.len() {
            let cohort = &self.cohorts[at];
            let thread = cohort.ranks.first().map_or(0, |member| self.place_of(member).1);
            let symbols = self.structures.get(cohort.structure as usize).map(|s| s.symbols());
            let mut lane = |symbol: u32| {
                let (stream, used) = streams(thread, symbol)?;
                Some(Lane::Same { stream: table.add(normal(&stream)), used })
            };
            let lanes = symbols.unwrap_or_default().into_iter().map(&mut lane).collect();
            let sides = &mut self.cohorts[at].sides;
            let place = sides.partition_point(|side| side.kind < kind);
            if sides.get(place).is_some_and(|side| side.kind == kind) {
                self.streams = table.streams;
                return Err(Error::Side { cohort: at });
            }
            sides.insert(place, Side { kind, lanes });
        }
        self.streams = table.streams;
        Ok(())
    }

    /// Kinds go up, and each has a place for every symbol.
    pub(super) fn check_sides(&self, index: usize, cohort: &Cohort) -> Result<(), Error> {
        if cohort.sides.is_empty() {
            return Ok(());
        }
        let symbols = self.structures.get(cohort.structure as usize).map_or(0, |s| s.symbols().len());
        let sorted = cohort.sides.is_sorted_by(|a, b| a.kind < b.kind);
        match sorted && cohort.sides.iter().all(|side| side.lanes.len() == symbols) {
            true => Ok(()),
            false => Err(Error::Side { cohort: index }),
        }
    }
}

impl Cohort {
    /// Those of its symbols and of its loops, and its side lanes.
    pub fn all_lanes(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().chain(self.sides.iter().flat_map(|side| side.lanes.iter().flatten()))
    }

    pub(super) fn all_lanes_mut(&mut self) -> impl Iterator<Item = &mut Lane> {
        self.lanes.iter_mut().chain(self.sides.iter_mut().flat_map(|side| side.lanes.iter_mut().flatten()))
    }

    /// What members of one cohort have in common beside the structure. Empty, and made of nothing, where there are none.
    pub(super) fn side_form(&self) -> Vec<(SideKind, Vec<bool>)> {
        self.sides.iter().map(|side| (side.kind, side.lanes.iter().map(Option::is_some).collect())).collect()
    }

    /// Side lanes of other members, of the same form.
    pub(super) fn take_in_sides(&mut self, other: &mut Cohort, table: &mut StreamSet) {
        let (ranks, others) = (&self.ranks, &other.ranks);
        for (mine, theirs) in self.sides.iter_mut().zip(&mut other.sides) {
            for (mine, theirs) in mine.lanes.iter_mut().zip(&mut theirs.lanes) {
                if let (Some(a), Some(b)) = (mine.take(), theirs.take()) {
                    *mine = Some(a.join(ranks, b, others, table));
                }
            }
        }
    }
}
