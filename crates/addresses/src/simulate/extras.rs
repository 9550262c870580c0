//! What a cache has beside its lines, where it is asked for. A plain cache has none of it, and loses no time for it.

use refrain_fold::FastMap;

use super::cache::Config;
use super::classes::{Class, Classifier};
use super::lines::Lines;
use super::prefetch::{Prefetcher, Seen};
use super::sectors::Sectors;
use super::{Geometry, Policy};

#[derive(Default)]
pub(super) struct Extras {
    pub(super) classifier: Option<Classifier>,
    pub(super) sectors: Option<Sectors>,
    /// Lines that left and are kept for a while.
    pub(super) victims: Option<Lines>,
    prefetcher: Option<Prefetcher>,
    /// Lines that were prefetched and not used yet.
    prefetched: FastMap<u64, ()>,
    /// The line that was asked for last was one of these.
    first_use: bool,
}

impl Extras {
    /// What a cache asks for, if anything.
    pub(super) fn of(config: &Config) -> Option<Box<Extras>> {
        let line = config.geometry.line();
        let sectors = config.sector.map(|bytes| Sectors::new(bytes, line));
        let victims = Geometry::new(config.victims * line, config.victims, line).ok();
        let victims = victims.map(|geometry| Lines::new(&geometry, Policy::Lru, 0));
        let prefetcher = config.prefetch.map(|kind| Prefetcher::new(kind, line.trailing_zeros()));
        let any = sectors.is_some() || victims.is_some() || prefetcher.is_some();
        any.then(|| Box::new(Extras { sectors, victims, prefetcher, ..Extras::default() }))
    }

    /// A line was asked for, and was there or not; if not, it is brought in or not. Whether it was prefetched, and this is its
    /// first use.
    pub(super) fn used(&mut self, line: u64, hit: bool, brought: bool) -> bool {
        if let Some(classifier) = &mut self.classifier {
            classifier.used(line, !hit, brought);
        }
        self.first_use = hit && self.prefetched.remove(&line).is_some();
        self.first_use
    }

    /// Of the miss at hand.
    pub(super) fn class(&mut self) -> Option<Class> {
        self.classifier.as_mut()?.heaviest.take()
    }

    /// The line to prefetch after a reference.
    pub(super) fn wants(&mut self, address: u64, pc: Option<u64>, hit: bool) -> Option<u64> {
        let first_use = self.first_use;
        self.prefetcher.as_mut()?.wants(Seen { address, pc, hit, first_use })
    }

    /// A line was prefetched into the cache.
    pub(super) fn is_prefetched(&mut self, line: u64) {
        self.prefetched.insert(line, ());
        self.asked_to_prefetch(line);
    }

    /// A cache above prefetches a line and asks for it here.
    pub(super) fn asked_to_prefetch(&mut self, line: u64) {
        if let Some(classifier) = &mut self.classifier {
            classifier.regain(line);
        }
    }

    /// A line left: whether it was prefetched for nothing, and where its dirty sectors begin, if it has sectors.
    pub(super) fn left(&mut self, line: u64) -> (bool, Option<Vec<u64>>) {
        let unused = self.prefetched.remove(&line).is_some();
        (unused, self.sectors.as_mut().map(|sectors| sectors.remove(line)))
    }
}
