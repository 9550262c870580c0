//! Fewer references of a trace: those that miss in a cache, or some of all.
//!
//! ```
//! use refrain_addresses::simulate::Geometry;
//! use refrain_addresses::{Batch, Fields, Filter, Reference, Thin};
//! let cache = Geometry::new(1024, 2, 64).unwrap();
//! let mut thin = Thin::new(Some(Filter::new(&cache, false)), None);
//! let mut batch = Batch::new();
//! for address in [0, 8, 64, 72, 0] {
//!     batch.push(Fields::NONE, Reference { address, ..Reference::default() });
//! }
//! thin.apply(Fields::NONE, &mut batch);
//! assert_eq!(batch.addresses, [0, 64]);
//! ```

use crate::kind::{WRITE, is_fetch};
use crate::simulate::Geometry;
use crate::{Batch, Fields, Reference};

/// What is left of each batch.
#[derive(Default)]
pub struct Thin {
    filter: Option<Filter>,
    sample: Option<Sample>,
    /// References that came.
    seen: u64,
    /// The time of the first.
    start: Option<u64>,
    left: Batch,
    written_back: Vec<Reference>,
}

/// Some of all references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// The first so many out of every so many.
    References { take: u64, of: u64 },
    /// Those in the first so many units of every so many units of time.
    Times { take: u64, of: u64 },
}

impl Thin {
    pub fn new(filter: Option<Filter>, sample: Option<Sample>) -> Thin {
        Thin { filter, sample, ..Thin::default() }
    }

    /// Whether anything may be left out.
    pub fn is_idle(&self) -> bool {
        self.filter.is_none() && self.sample.is_none()
    }

    /// The filter sees all references, also those that the sample leaves out, so that its cache is warm. The batch may become
    /// longer, as lines are written back.
    pub fn apply(&mut self, fields: Fields, batch: &mut Batch) {
        if self.is_idle() {
            return;
        }
        self.left.clear();
        for reference in batch.iter() {
            let taken = self.takes(&reference);
            let passes = match &mut self.filter {
                Some(filter) => filter.passes(&reference, &mut self.written_back),
                None => true,
            };
            if taken && passes {
                self.left.push(fields, reference);
            }
            for line in self.written_back.drain(..) {
                if taken {
                    self.left.push(fields, line);
                }
            }
        }
        std::mem::swap(&mut self.left, batch);
    }

    fn takes(&mut self, reference: &Reference) -> bool {
        let start = *self.start.get_or_insert(reference.time);
        let at = self.seen;
        self.seen += 1;
        match self.sample {
            None => true,
            Some(Sample::References { take, of }) => at % of.max(1) < take,
            Some(Sample::Times { take, of }) => {
                // Times may go back behind the first.
                let passed = i128::from(reference.time) - i128::from(start);
                passed.rem_euclid(i128::from(of.max(1))) < i128::from(take)
            }
        }
    }
}

/// Two caches of one kind, for fetches and for data, each with LRU. Writes bring their lines in.
pub struct Filter {
    fetches: Lines,
    data: Lines,
    shift: u32,
    write_backs: bool,
}

impl Filter {
    /// `write_backs`: a line that was written to goes on as a write when it leaves.
    pub fn new(cache: &Geometry, write_backs: bool) -> Filter {
        Filter {
            fetches: Lines::new(cache),
            data: Lines::new(cache),
            shift: cache.line().trailing_zeros(),
            write_backs,
        }
    }

    /// Whether a line of it was missing. What is neither read, written nor fetched always passes, and touches no line.
    fn passes(&mut self, reference: &Reference, written_back: &mut Vec<Reference>) -> bool {
        let Reference { kind, address, size, .. } = *reference;
        if kind & 3 == 3 {
            return true;
        }
        let lines = if is_fetch(kind) { &mut self.fetches } else { &mut self.data };
        let last = address.saturating_add(u64::from(size.max(1) - 1)) >> self.shift;
        let mut missing = false;
        for line in address >> self.shift..=last {
            let (hit, dirty) = lines.touch(line, kind & 3 == WRITE);
            missing |= !hit;
            if let Some(line) = dirty.filter(|_| self.write_backs) {
                let size = u16::try_from(1u64 << self.shift).unwrap_or(u16::MAX);
                let (address, kind) = (line << self.shift, WRITE);
                written_back.push(Reference { kind, address, size, word: 0, flag: false, ..*reference });
            }
        }
        missing
    }
}

/// A place that no line is in: lines have four bytes at least, so no line's number, doubled, comes to this.
const EMPTY: u64 = u64::MAX;

struct Lines {
    /// Of each set, the latest first: twice the line's number, plus one if it was written to.
    places: Vec<u64>,
    ways: usize,
    sets: u64,
}

impl Lines {
    fn new(cache: &Geometry) -> Lines {
        let ways = cache.ways() as usize;
        Lines { places: vec![EMPTY; cache.sets() as usize * ways], ways, sets: cache.sets() }
    }

    /// Whether the line was there; now it is. The line that left for it, if it was written to.
    fn touch(&mut self, line: u64, write: bool) -> (bool, Option<u64>) {
        let from = (line & (self.sets - 1)) as usize * self.ways;
        let set = &mut self.places[from..from + self.ways];
        let found = set.iter().position(|place| *place != EMPTY && place >> 1 == line);
        let at = found.unwrap_or(set.len() - 1);
        let old = set[at];
        set.copy_within(..at, 1);
        set[0] = match found {
            Some(_) => old | u64::from(write),
            None => line << 1 | u64::from(write),
        };
        let left = (found.is_none() && old != EMPTY && old & 1 == 1).then_some(old >> 1);
        (found.is_some(), left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Config, Hierarchy, Level};

    const SIZES: Fields = Fields { sizes: true, ..Fields::NONE };

    fn batch(references: &[(u8, u64, u16)]) -> Batch {
        let mut batch = Batch::new();
        for &(kind, address, size) in references {
            batch.push(SIZES, Reference { kind, address, size, ..Reference::default() });
        }
        batch
    }

    fn filtered(
        cache: (u64, u64, u64),
        write_backs: bool,
        references: &[(u8, u64, u16)],
    ) -> Vec<(u8, u64, u16)> {
        let cache = Geometry::new(cache.0, cache.1, cache.2).unwrap();
        let mut thin = Thin::new(Some(Filter::new(&cache, write_backs)), None);
        let mut batch = batch(references);
        thin.apply(SIZES, &mut batch);
        batch.iter().map(|left| (left.kind, left.address, left.size)).collect()
    }

    /// One set of two lines of 16 bytes.
    #[test]
    fn by_hand() {
        let small = (32, 2, 16);
        let all = [(0, 0, 4), (1, 4, 4), (0, 16, 4), (0, 0, 4), (0, 32, 4), (0, 16, 4), (0, 0, 4)];
        // 32 takes the place of 16, 16 that of 0, which was written to, and 0 that of 32.
        assert_eq!(filtered(small, false, &all), [(0, 0, 4), (0, 16, 4), (0, 32, 4), (0, 16, 4), (0, 0, 4)]);
        assert_eq!(
            filtered(small, true, &all),
            [(0, 0, 4), (0, 16, 4), (0, 32, 4), (0, 16, 4), (1, 0, 16), (0, 0, 4)]
        );
    }

    #[test]
    fn fetches_have_a_cache_of_their_own() {
        assert_eq!(
            filtered((16, 1, 16), false, &[(2, 0, 4), (0, 32, 4), (2, 4, 4), (6, 8, 4), (4, 40, 4)]),
            [(2, 0, 4), (0, 32, 4)]
        );
    }

    #[test]
    fn what_straddles_misses_if_one_line_is_missing() {
        let all = [(0, 0, 4), (0, 14, 4), (0, 14, 4), (0, u64::MAX - 1, 8), (0, u64::MAX, 1)];
        assert_eq!(filtered((64, 4, 16), false, &all), [(0, 0, 4), (0, 14, 4), (0, u64::MAX - 1, 8)]);
    }

    #[test]
    fn what_is_of_no_cache_passes() {
        assert_eq!(filtered((64, 4, 16), false, &[(3, 0, 4), (3, 0, 4), (7, 0, 4), (0, 0, 4)]).len(), 4);
    }

    /// As many as a simulation of the same caches counts.
    #[test]
    fn as_simulated() {
        let geometry = Geometry::new(2048, 4, 32).unwrap();
        let config = Config::new(geometry);
        let first = Level::Split { instructions: Some(config), data: Some(config) };
        let mut caches = Hierarchy::new(first, &[], 0).unwrap();
        let mut thin = Thin::new(Some(Filter::new(&geometry, true)), None);
        let mut random = fastrand::Rng::with_seed(5);
        let (mut left, mut backs) = (0, 0);
        for _ in 0..20 {
            let some: Vec<(u8, u64, u16)> = (0..3000)
                .map(|_| (random.u8(..3), random.u64(..6000), [1, 4, 8, 40][random.usize(..4)]))
                .collect();
            let mut batch = batch(&some);
            caches.add(&batch);
            thin.apply(SIZES, &mut batch);
            // Lines are written back whole; no reference of these has 32 bytes.
            let back = batch.sizes.iter().filter(|size| **size == 32).count() as u64;
            backs += back;
            left += batch.len() as u64 - back;
        }
        let counts = caches.caches();
        let misses: u64 = counts.iter().map(|(_, cache)| cache.counts().misses.iter().sum::<u64>()).sum();
        let sent: u64 = counts.iter().map(|(_, cache)| cache.counts().write_backs).sum();
        assert_eq!((left, backs), (misses, sent));
        assert!(left > 1000 && backs > 1000);
    }

    /// What a filter of one way leaves out is what was used last in its set, of any larger cache too.
    #[test]
    fn a_filter_of_one_way_loses_no_miss() {
        let mut thin = Thin::new(Some(Filter::new(&Geometry::new(512, 1, 32).unwrap(), false)), None);
        let geometries = [(512, 1), (1024, 2), (4096, 4), (8192, 1), (2048, 4)];
        let mut pairs: Vec<[Hierarchy; 2]> = geometries
            .iter()
            .map(|&(size, ways)| {
                let geometry = Geometry::new(size, ways, 32).unwrap();
                let config = Config::new(geometry);
                let first = Level::Split { instructions: Some(config), data: Some(config) };
                [(); 2].map(|()| Hierarchy::new(first, &[], 0).unwrap())
            })
            .collect();
        let mut random = fastrand::Rng::with_seed(9);
        let (mut before, mut after) = (0, 0);
        for _ in 0..30 {
            let near = random.u64(..20_000);
            let some: Vec<(u8, u64, u16)> = (0..2000)
                .map(|_| (random.u8(..3), near + random.u64(..700), [1, 8][random.usize(..2)]))
                .collect();
            let mut batch = batch(&some);
            pairs.iter_mut().for_each(|[whole, _]| whole.add(&batch));
            before += batch.len();
            thin.apply(SIZES, &mut batch);
            after += batch.len();
            pairs.iter_mut().for_each(|[_, left]| left.add(&batch));
        }
        assert!(after * 2 < before, "{after} of {before}");
        let misses = |caches: &Hierarchy| -> Vec<[u64; 5]> {
            caches.caches().iter().map(|(_, cache)| cache.counts().misses).collect()
        };
        for [whole, left] in &pairs {
            assert_eq!(misses(whole), misses(left));
        }
    }

    #[test]
    fn samples_go_on_from_batch_to_batch() {
        let mut thin = Thin::new(None, Some(Sample::References { take: 2, of: 5 }));
        let mut left = Vec::new();
        for piece in [0..3u64, 3..11, 11..12] {
            let mut batch = batch(&piece.map(|at| (0, at, 1)).collect::<Vec<_>>());
            thin.apply(SIZES, &mut batch);
            left.extend(batch.addresses);
        }
        assert_eq!(left, [0, 1, 5, 6, 10, 11]);
    }

    #[test]
    fn samples_of_times() {
        let times = Fields { times: true, ..Fields::NONE };
        let mut batch = Batch::new();
        for time in [1000, 1009, 1010, 1099, 1100, 1105, 1110, 990] {
            batch.push(times, Reference { time, address: time, ..Reference::default() });
        }
        Thin::new(None, Some(Sample::Times { take: 10, of: 100 })).apply(times, &mut batch);
        assert_eq!(batch.addresses, [1000, 1009, 1100, 1105]);
    }

    /// The sample leaves references out, not what they do to the cache.
    #[test]
    fn the_filter_sees_what_the_sample_leaves_out() {
        let cache = Geometry::new(64, 4, 16).unwrap();
        let sample = Sample::References { take: 1, of: 2 };
        let mut thin = Thin::new(Some(Filter::new(&cache, false)), Some(sample));
        let mut batch = batch(&[(0, 0, 4), (0, 16, 4), (0, 16, 4), (0, 0, 4), (0, 32, 4)]);
        thin.apply(SIZES, &mut batch);
        assert_eq!(batch.addresses, [0, 32]);
    }
}
