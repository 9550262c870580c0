//! Configurations that are simulated side by side, in one pass over the trace.

use refrain_addresses::Batch;
use refrain_addresses::simulate::{
    Counts, Hierarchy, Lookups, Memory, Misplaced, Pages, System, Tlbs, Traffic,
};

use super::feed::Sink;

/// One configuration, and what came of it.
pub struct Run {
    pub caches: Hierarchy,
    /// In the order of time.
    pub intervals: Vec<Interval>,
    before: Interval,
}

/// What was counted in one interval.
#[derive(Clone, Default)]
pub struct Interval {
    pub references: u64,
    /// As [`Hierarchy::caches`] has them.
    pub caches: Vec<Counts>,
    pub memory: Memory,
    /// Of all cores, if their caches hear of each other.
    pub coherence: Option<Traffic>,
    /// As [`Runs::lookups`] has them.
    pub tlbs: Vec<(&'static str, Lookups)>,
}

/// What coherence cost all cores together.
pub fn all_traffic(caches: &Hierarchy) -> Traffic {
    let mut sum = Traffic::default();
    caches.traffic().iter().for_each(|more| sum.add(*more));
    sum
}

impl Interval {
    /// All until now.
    fn now(caches: &Hierarchy, tlbs: Vec<(&'static str, Lookups)>) -> Interval {
        Interval {
            references: caches.references(),
            caches: caches.caches().into_iter().map(|(_, part)| part.counts().clone()).collect(),
            memory: caches.memory(),
            coherence: caches.protocol().map(|_| all_traffic(caches)),
            tlbs,
        }
    }

    fn since(&self, before: &Interval) -> Interval {
        let pairs = self.caches.iter().zip(&before.caches);
        Interval {
            references: self.references - before.references,
            caches: pairs.map(|(now, before)| now.since(before)).collect(),
            memory: self.memory.since(&before.memory),
            coherence: self.coherence.map(|now| now.since(before.coherence.unwrap_or_default())),
            tlbs: self
                .tlbs
                .iter()
                .map(|(name, now)| {
                    // Those of the very beginning are not there.
                    let known = before.tlbs.iter().find(|(known, _)| known == name);
                    (*name, now.since(&known.map_or(Lookups::default(), |(_, before)| *before)))
                })
                .collect(),
        }
    }
}

impl Run {
    fn new(system: &System) -> Result<Run, Misplaced> {
        let caches = system.build()?;
        let before = Interval::now(&caches, Vec::new());
        Ok(Run { caches, intervals: Vec::new(), before })
    }
}

pub struct Runs {
    /// The configurations.
    pub all: Vec<Run>,
    /// Of each thread, or none.
    pub tlbs: Vec<Tlbs>,
}

impl Runs {
    pub fn new(systems: &[System]) -> Result<Runs, Misplaced> {
        let all = systems.iter().map(Run::new).collect::<Result<_, _>>()?;
        Ok(Runs { all, tlbs: Vec::new() })
    }

    /// The TLBs of all threads together, with their names.
    pub fn lookups(&self) -> Vec<(&'static str, Pages, Lookups)> {
        let mut sum: Vec<(&'static str, Pages, Lookups)> = Vec::new();
        for (name, pages, more) in self.tlbs.iter().flat_map(Tlbs::buffers) {
            match sum.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, _, lookups)) => {
                    let pairs = lookups.accesses.iter_mut().zip(more.accesses);
                    let pairs = pairs.chain(lookups.misses.iter_mut().zip(more.misses));
                    pairs.for_each(|(sum, more)| *sum += more);
                }
                None => sum.push((name, pages, more)),
            }
        }
        sum
    }

    fn named_lookups(&self) -> Vec<(&'static str, Lookups)> {
        self.lookups().into_iter().map(|(name, _, lookups)| (name, lookups)).collect()
    }
}

impl Sink for Runs {
    fn add(&mut self, core: usize, batch: &Batch) {
        self.all.iter_mut().for_each(|run| run.caches.add_of(core, batch));
        if let Some(tlbs) = self.tlbs.get_mut(core) {
            tlbs.add(batch);
        }
    }

    fn warmed(&mut self) {
        self.tlbs.iter_mut().for_each(Tlbs::reset);
        let tlbs = self.named_lookups();
        for run in &mut self.all {
            run.caches.reset();
            run.before = Interval::now(&run.caches, tlbs.clone());
        }
    }

    fn interval_ended(&mut self) {
        let tlbs = self.named_lookups();
        for run in &mut self.all {
            let now = Interval::now(&run.caches, tlbs.clone());
            run.intervals.push(now.since(&run.before));
            run.before = now;
        }
    }
}
