//! Configurations that are simulated side by side, in one pass over the trace.

use refrain_addresses::Batch;
use refrain_addresses::simulate::{Counts, Hierarchy, Memory, Misplaced, System};

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
}

impl Interval {
    /// All until now.
    fn now(caches: &Hierarchy) -> Interval {
        Interval {
            references: caches.references(),
            caches: caches.caches().into_iter().map(|(_, part)| part.counts().clone()).collect(),
            memory: caches.memory(),
        }
    }

    fn since(&self, before: &Interval) -> Interval {
        let pairs = self.caches.iter().zip(&before.caches);
        Interval {
            references: self.references - before.references,
            caches: pairs.map(|(now, before)| now.since(before)).collect(),
            memory: self.memory.since(&before.memory),
        }
    }
}

impl Run {
    fn new(system: &System) -> Result<Run, Misplaced> {
        let caches = system.build()?;
        let before = Interval::now(&caches);
        Ok(Run { caches, intervals: Vec::new(), before })
    }
}

pub struct Runs(pub Vec<Run>);

impl Runs {
    pub fn new(systems: &[System]) -> Result<Runs, Misplaced> {
        systems.iter().map(Run::new).collect::<Result<_, _>>().map(Runs)
    }
}

impl Sink for Runs {
    fn add(&mut self, core: usize, batch: &Batch) {
        self.0.iter_mut().for_each(|run| run.caches.add_of(core, batch));
    }

    fn warmed(&mut self) {
        for run in &mut self.0 {
            run.caches.reset();
            run.before = Interval::now(&run.caches);
        }
    }

    fn interval_ended(&mut self) {
        for run in &mut self.0 {
            let now = Interval::now(&run.caches);
            run.intervals.push(now.since(&run.before));
            run.before = now;
        }
    }
}
