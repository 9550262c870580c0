//! Other numbers in the place of those that were recorded.

use super::lanes::StreamSet;
use super::{Bundle, Lane, normal};
use crate::stream::Stream;

/// A lane that all ranks of a cohort have in common.
#[derive(Debug, Clone, Copy)]
pub struct SharedLane<'a> {
    /// Index into `Bundle::symbols`, and which of its lanes.
    pub symbol: u32,
    /// Which of the lanes of that symbol.
    pub lane: u16,
    /// What all ranks have there.
    pub stream: &'a Stream,
    /// How many of its numbers count.
    pub used: u64,
}

impl Bundle {
    /// Asks about each lane that is not told by member, as none is in one rank's own bundle, and gives it the stream
    /// that comes back. Digests are left as they are. Whether anything changed.
    pub fn change_lanes(&mut self, mut change: impl FnMut(SharedLane<'_>) -> Option<Stream>) -> bool {
        let mut table = StreamSet::new(std::mem::take(&mut self.streams));
        let mut changed = false;
        for cohort in &mut self.cohorts {
            let Some(structure) = self.structures.get(cohort.structure as usize) else { continue };
            let mut lanes = cohort.lanes.iter_mut().skip(structure.own_lanes());
            for symbol in structure.symbols() {
                let own = self.symbols.get(symbol as usize).map_or(0, |symbol| symbol.lanes);
                for (lane, told) in (0..own).zip(&mut lanes) {
                    let Lane::Same { stream: index, used } = told else { continue };
                    let Some(stream) = table.streams.get(*index as usize) else { continue };
                    let place = SharedLane { symbol, lane, stream, used: *used };
                    if let Some(other) = change(place) {
                        *index = table.add(normal(&other));
                        changed = true;
                    }
                }
            }
        }
        self.streams = table.streams;
        self.number_streams();
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SymbolEntry, Tally, ThreadPart, Walk};
    use super::*;
    use crate::grammar;

    #[test]
    fn lanes_are_changed_and_nothing_else_is() {
        let tally = Tally { total: 0, min: 0, max: 0 };
        let symbol = |byte: u8, lanes| SymbolEntry {
            bytes: [byte].into(),
            site: 0,
            lanes,
            tally,
            classes: Default::default(),
        };
        let mut structure = grammar::Folder::new();
        [1, 0, 1].into_iter().for_each(|symbol| structure.push(symbol));
        let part = ThreadPart {
            thread: 0,
            structure: structure.finish().into(),
            times: Vec::new(),
            lanes: vec![vec![Stream::constant(5)], vec![Stream::constant(5), Stream::constant(6)]],
            lengths: vec![vec![1], vec![2, 2]],
            digest: 1,
        };
        let mut bundle = Bundle::of_rank((3, 4), vec![symbol(7, 1), symbol(8, 2)], vec![part]).unwrap();
        let before = bundle.clone();
        assert!(!bundle.change_lanes(|_| None));
        assert_eq!(bundle, before);
        let mut asked = Vec::new();
        assert!(bundle.change_lanes(|place| {
            asked.push((place.symbol, place.lane, place.used, place.stream.as_constant()));
            ((place.symbol, place.lane) == (1, 1)).then(|| Stream::constant(9))
        }));
        assert_eq!(asked, [(1, 0, 2, Some(5)), (1, 1, 2, Some(6)), (0, 0, 1, Some(5))]);
        bundle.validate().unwrap();
        assert_eq!(bundle.streams, [Stream::constant(5), Stream::constant(9)]);
        let mut walk = Walk::new(&bundle, 3, 0).unwrap().unwrap();
        assert_eq!((walk.next_symbol(), walk.value(0), walk.value(1)), (Some(1), Some(5), Some(9)));
        assert_eq!((walk.next_symbol(), walk.value(0)), (Some(0), Some(5)));
    }
}
