//! Caches one behind another, and what a reference does to them.
//!
//! A level that lacks a line asks the one below for it, puts it in, and then sends down the line that had to leave, if it
//! was written to. What leaves a level stays in those above it, and need not have been in those below.

use std::ops::Range;

use super::cache::{Config, Prefetch};
use super::coherence::{Coherence, Traffic};
use super::counts::{Counts, Memory};
use super::system::{LEVELS, Level, Misplaced, Side, System};
use super::tally::Tallies;
use super::unit::Cache;
use super::{ALL, Type, commands, plain};
use crate::{Batch, kind};

/// What is behind the last cache.
pub(super) const MEMORY: usize = usize::MAX;
/// No first-level cache.
pub(super) const NOWHERE: usize = usize::MAX;

/// What came of a cache; of those that cores have for themselves, all together.
#[derive(Debug, Clone)]
pub struct Part {
    config: Config,
    level: usize,
    side: Side,
    counts: Counts,
    dirty: u64,
    classified: bool,
    coherent: bool,
}

impl Part {
    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Lines written to and not yet sent down.
    pub fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Whether its misses are told apart by class.
    pub fn is_classified(&self) -> bool {
        self.classified
    }

    /// Whether writes of other cores take lines away from it.
    pub fn is_coherent(&self) -> bool {
        self.coherent
    }

    /// From 1.
    pub fn level(&self) -> usize {
        self.level + 1
    }

    /// The references that it can have.
    pub fn types(&self) -> Vec<Type> {
        let written = self.level > 0 && self.side != Side::Instructions;
        ALL.into_iter()
            .filter(|kind| match kind {
                Type::Read | Type::Write => self.side != Side::Instructions,
                Type::Fetch => self.side != Side::Data,
                Type::Written => written || self.counts.accesses[Type::Written as usize] > 0,
                Type::Prefetch => self.counts.accesses[Type::Prefetch as usize] > 0,
            })
            .collect()
    }
}

/// A thread's way into the caches.
pub(super) struct Core {
    /// The first cache, by [`Type`].
    pub(super) route: [usize; 3],
    /// Those that it has for itself.
    pub(super) caches: Range<usize>,
}

pub struct Hierarchy {
    pub(super) caches: Vec<Cache>,
    pub(super) cores: Vec<Core>,
    pub(super) memory: Memory,
    /// By kind: no cache is for them.
    passed_over: [u64; crate::KINDS],
    references: u64,
    /// Misses of reads, writes and fetches, by level.
    pub(super) missed: [u64; LEVELS],
    tallies: Option<Box<Tallies>>,
    /// The instruction at hand, where somebody wants to know and the trace tells.
    pub(super) pc: Option<u64>,
    strides: bool,
    /// The caches have nothing beside them, and the short way does.
    pub(super) plain: bool,
    pub(super) coherence: Option<Box<Coherence>>,
    /// Whose references are at hand.
    pub(super) core: usize,
    /// The caches that cores share are the first so many.
    pub(super) shared_caches: usize,
    /// The core that gives the one at hand a line, and the line, if that must be fetched.
    pub(super) supplier: Option<(usize, u64)>,
    /// Of the reference at hand: lines that it lacked because of true and of false sharing.
    pub(super) shared: [u64; 2],
}

impl Hierarchy {
    /// For one thread: the first level, and caches for all references below it. The seed is for what is random.
    pub fn new(first: Level, below: &[Config], seed: u64) -> Result<Hierarchy, Misplaced> {
        let levels = [first].into_iter().chain(below.iter().copied().map(Level::Unified));
        System { seed, ..System::new(levels.collect()) }.build()
    }

    pub(super) fn of(
        mut caches: Vec<Cache>,
        cores: Vec<Core>,
        shared_caches: usize,
        coherence: Option<Coherence>,
    ) -> Hierarchy {
        let strides = caches.iter().any(|cache| cache.config.prefetch == Some(Prefetch::Stride));
        let plain = plain::are(&caches) && coherence.is_none();
        if coherence.is_some() {
            caches[shared_caches..].iter_mut().for_each(Cache::announce_writes);
        }
        Hierarchy {
            caches,
            cores,
            memory: Memory::default(),
            passed_over: [0; crate::KINDS],
            references: 0,
            missed: [0; LEVELS],
            tallies: None,
            pc: None,
            strides,
            plain,
            coherence: coherence.map(Box::new),
            core: 0,
            shared_caches,
            supplier: None,
            shared: [0; 2],
        }
    }

    /// Tells from here on whose misses they are.
    pub fn tally(&mut self, tallies: Tallies) {
        self.tallies = Some(Box::new(tallies));
    }

    pub fn tallies(&self) -> Option<&Tallies> {
        self.tallies.as_deref()
    }

    /// The references of a batch, in order. Without sizes each is in one line.
    pub fn add(&mut self, batch: &Batch) {
        self.add_of(0, batch);
    }

    /// Those of one of the cores.
    pub fn add_of(&mut self, core: usize, batch: &Batch) {
        let route = self.cores[core].route;
        self.core = core;
        self.count(&route, &batch.kinds);
        match commands::are_in(batch) {
            true => self.add_with_commands(&route, batch),
            false => self.add_references(&route, batch),
        }
    }

    /// Reads, writes and fetches; whatever else there is is passed over.
    pub(super) fn add_references(&mut self, route: &[usize; 3], batch: &Batch) {
        if self.tallies.is_some() || self.strides {
            return self.add_by_instruction(route, batch);
        }
        match self.plain {
            true => plain::add(&mut self.caches, &mut self.memory, route, batch),
            false => each(batch, |kind, address, size| self.reference(route, kind, address, size)),
        }
    }

    /// A fetch is its own instruction; others are of the last fetch if they do not say theirs.
    fn add_by_instruction(&mut self, route: &[usize; 3], batch: &Batch) {
        let mut tallies = self.tallies.take();
        for (at, (&kind, &address)) in batch.kinds.iter().zip(&batch.addresses).enumerate() {
            let size = batch.sizes.get(at).map_or(1, |size| u64::from(*size).max(1));
            let Some(of_type) = Type::of(kind) else { continue };
            self.pc = match (batch.pcs.get(at), of_type) {
                (Some(pc), _) => Some(*pc),
                (None, Type::Fetch) => Some(address),
                (None, _) => self.pc,
            };
            self.missed = [0; LEVELS];
            self.shared = [0; 2];
            self.reference(route, kind, address, size);
            if let Some(tallies) = &mut tallies {
                tallies.count(of_type, address, self.pc.unwrap_or(0), &self.missed, self.shared);
            }
        }
        self.tallies = tallies;
    }

    /// Accesses of the first level. Of many references, kind by kind: that is faster than one at a time.
    fn count(&mut self, route: &[usize; 3], kinds: &[u8]) {
        self.references += kinds.len() as u64;
        if kinds.len() < crate::KINDS {
            return kinds.iter().for_each(|kind| self.count_of(route, *kind, 1));
        }
        for number in 0..crate::KINDS as u8 {
            // So few that bytes can count them.
            let some = |some: &[u8]| some.iter().map(|kind| u8::from(*kind == number)).sum::<u8>();
            let count: u64 = kinds.chunks(128).map(|chunk| u64::from(some(chunk))).sum();
            self.count_of(route, number, count);
        }
    }

    fn count_of(&mut self, route: &[usize; 3], kind: u8, count: u64) {
        let cache = Type::of(kind).map(|kind| (kind, route[kind as usize]));
        match cache.and_then(|(kind, at)| Some((kind, self.caches.get_mut(at)?))) {
            Some((kind, cache)) => cache.counts.accesses[kind as usize] += count,
            // Commands are carried out, so they are not passed over.
            None => {
                if let Some(passed_over) = self.passed_over.get_mut(usize::from(kind)) {
                    *passed_over += count;
                }
            }
        }
    }

    #[inline(always)]
    fn reference(&mut self, route: &[usize; 3], kind: u8, address: u64, size: u64) {
        let Some(kind) = Type::of(kind) else { return };
        let at = route[kind as usize];
        let Some(cache) = self.caches.get_mut(at) else { return };
        if !cache.is_front(address, kind, size) {
            self.refer(at, address, kind, size);
        }
    }

    pub fn references(&self) -> u64 {
        self.references
    }

    /// References that no cache is for, by kind.
    pub fn passed_over(&self) -> [u64; crate::KINDS] {
        self.passed_over
    }

    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Forgets what was counted. The lines stay.
    pub fn reset(&mut self) {
        self.caches.iter_mut().for_each(|cache| cache.counts = Counts::default());
        self.memory = Memory::default();
        self.passed_over = [0; crate::KINDS];
        self.references = 0;
        if let Some(tallies) = &mut self.tallies {
            tallies.reset();
        }
        if let Some(coherence) = &mut self.coherence {
            coherence.traffic.fill(Traffic::default());
        }
    }

    /// With their names: `l1` or `l1i`, `l1d`; then `l2` and on.
    pub fn caches(&self) -> Vec<(String, Part)> {
        parts(&self.caches)
    }

    /// How many cores there are.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// The caches that a core has for itself, as [`Hierarchy::caches`].
    pub fn caches_of(&self, core: usize) -> Vec<(String, Part)> {
        parts(&self.caches[self.cores[core].caches.clone()])
    }

    /// How many levels there are.
    pub fn levels(&self) -> usize {
        self.caches.iter().map(|cache| cache.level + 1).max().unwrap_or(0)
    }
}

/// What came of caches; of those of one name, all together.
fn parts(caches: &[Cache]) -> Vec<(String, Part)> {
    let mut parts: Vec<(String, Part)> = Vec::new();
    for cache in caches {
        let dirty = cache.lines.dirty();
        match parts.iter_mut().find(|(name, _)| *name == cache.name) {
            Some((_, part)) => {
                part.counts.add(&cache.counts);
                part.dirty += dirty;
            }
            None => {
                let Cache { config, level, side, .. } = *cache;
                let classified = cache.extras.as_ref().is_some_and(|extras| extras.classifier.is_some());
                let part = Part {
                    config,
                    level,
                    side,
                    counts: cache.counts.clone(),
                    dirty,
                    classified,
                    coherent: cache.coherent,
                };
                parts.push((cache.name.clone(), part));
            }
        }
    }
    parts.sort_by_key(|(_, part)| (part.level, part.side == Side::Data));
    parts
}

/// The references of a batch: kind, address, and size, which is 1 where there is none.
#[inline(always)]
pub(super) fn each(batch: &Batch, mut reference: impl FnMut(u8, u64, u64)) {
    let pairs = batch.kinds.iter().zip(&batch.addresses);
    if batch.sizes.is_empty() {
        pairs.for_each(|(kind, address)| reference(*kind, *address, 1));
    } else {
        for ((kind, address), size) in pairs.zip(&batch.sizes) {
            reference(*kind, *address, u64::from(*size).max(1));
        }
    }
}

impl Type {
    /// None for what is neither read, written nor fetched.
    #[inline]
    pub fn of(kind: u8) -> Option<Type> {
        // The supervisor's kinds are the user's, plus four.
        match kind & 3 {
            kind::READ => Some(Type::Read),
            kind::WRITE => Some(Type::Write),
            kind::FETCH => Some(Type::Fetch),
            _ => None,
        }
    }
}
