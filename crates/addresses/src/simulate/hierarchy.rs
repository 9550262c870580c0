//! Caches one behind another, and what a reference does to them.
//!
//! A level that lacks a line asks the one below for it, puts it in, and then sends down the line that had to leave, if it
//! was written to. What leaves a level stays in those above it, and need not have been in those below.

use super::cache::{Config, Write};
use super::classes::Classifier;
use super::counts::{Counts, Memory};
use super::extras::Extras;
use super::lines::Lines;
use super::system::{LEVELS, Level, Misplaced, Side, System};
use super::tally::Tallies;
use super::{ALL, Type};
use crate::{Batch, kind};

/// What is behind the last cache.
pub(super) const MEMORY: usize = usize::MAX;
/// No first-level cache.
pub(super) const NOWHERE: usize = usize::MAX;

/// One cache of one core, or one that all share.
pub(super) struct Cache {
    config: Config,
    lines: Lines,
    shift: u32,
    /// A reference that ends within so many bytes of a line may be found at its front, without a look at the rest.
    reach: u64,
    /// The cache behind it, or [`MEMORY`].
    below: usize,
    /// From 0.
    level: usize,
    side: Side,
    name: String,
    counts: Counts,
    extras: Option<Box<Extras>>,
}

impl Cache {
    pub(super) fn new(
        config: Config,
        seed: u64,
        name: String,
        level: usize,
        side: Side,
        below: usize,
    ) -> Cache {
        let line = config.geometry.line();
        Cache {
            config,
            lines: Lines::new(&config.geometry, config.policy, seed),
            shift: line.trailing_zeros(),
            reach: line,
            below,
            level,
            side,
            name,
            counts: Counts::default(),
            extras: None,
        }
    }

    /// Tells the classes of misses apart from here on.
    pub(super) fn classify(&mut self) {
        let geometry = &self.config.geometry;
        let lines = (geometry.size() / geometry.line()) as usize;
        self.extras.get_or_insert_default().classifier = Some(Classifier::new(lines));
        // Every use counts.
        self.reach = 0;
    }

    /// Whether the line is there; then it was used, and written to if `dirty`. A write says so: it may pass the cache by.
    fn look(&mut self, line: u64, dirty: bool, write: bool) -> bool {
        let hit = self.lines.find(line, dirty);
        if let Some(extras) = &mut self.extras {
            extras.used(line, hit, !write || self.config.allocate);
        }
        hit
    }

    fn missed(&mut self, kind: Type) {
        self.counts.misses[kind as usize] += 1;
        if let Some(class) = self.extras.as_mut().and_then(|extras| extras.class()) {
            self.counts.classes[class as usize] += 1;
        }
    }

    fn length(&self) -> u64 {
        self.config.geometry.line()
    }

    fn back(&self) -> bool {
        self.config.write == Write::Back
    }

    /// Whether a write that finds no line ends here, in one that is brought in.
    fn takes_writes(&self) -> bool {
        self.back() && self.config.allocate
    }
}

/// What came of a cache; of those that cores have for themselves, all together.
#[derive(Debug, Clone)]
pub struct Part {
    config: Config,
    level: usize,
    side: Side,
    counts: Counts,
    dirty: u64,
    classified: bool,
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
                Type::Written => written,
            })
            .collect()
    }
}

/// A thread's way into the caches.
pub(super) struct Core {
    /// The first cache, by [`Type`].
    pub(super) route: [usize; 3],
}

pub struct Hierarchy {
    caches: Vec<Cache>,
    cores: Vec<Core>,
    memory: Memory,
    /// By kind: no cache is for them.
    passed_over: [u64; crate::KINDS],
    references: u64,
    /// Misses of reads, writes and fetches, by level.
    missed: [u64; LEVELS],
    tallies: Option<Box<Tallies>>,
}

impl Hierarchy {
    /// For one thread: the first level, and caches for all references below it. The seed is for what is random.
    pub fn new(first: Level, below: &[Config], seed: u64) -> Result<Hierarchy, Misplaced> {
        let levels = [first].into_iter().chain(below.iter().copied().map(Level::Unified));
        System { seed, ..System::new(levels.collect()) }.build()
    }

    pub(super) fn of(caches: Vec<Cache>, cores: Vec<Core>) -> Hierarchy {
        Hierarchy {
            caches,
            cores,
            memory: Memory::default(),
            passed_over: [0; crate::KINDS],
            references: 0,
            missed: [0; LEVELS],
            tallies: None,
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
        self.count(&route, &batch.kinds);
        if let Some(mut tallies) = self.tallies.take() {
            self.add_tallied(&route, batch, &mut tallies);
            self.tallies = Some(tallies);
            return;
        }
        let pairs = batch.kinds.iter().zip(&batch.addresses);
        if batch.sizes.is_empty() {
            pairs.for_each(|(kind, address)| self.reference(&route, *kind, *address, 1));
        } else {
            for ((kind, address), size) in pairs.zip(&batch.sizes) {
                self.reference(&route, *kind, *address, u64::from(*size).max(1));
            }
        }
    }

    fn add_tallied(&mut self, route: &[usize; 3], batch: &Batch, tallies: &mut Tallies) {
        for (at, (&kind, &address)) in batch.kinds.iter().zip(&batch.addresses).enumerate() {
            let size = batch.sizes.get(at).map_or(1, |size| u64::from(*size).max(1));
            self.missed = [0; LEVELS];
            self.reference(route, kind, address, size);
            if let Some(kind) = Type::of(kind) {
                tallies.count(kind, address, batch.pcs.get(at).copied(), &self.missed);
            }
        }
    }

    /// Accesses of the first level, kind by kind: that is faster than one at a time.
    fn count(&mut self, route: &[usize; 3], kinds: &[u8]) {
        self.references += kinds.len() as u64;
        for (number, passed_over) in (0..).zip(&mut self.passed_over) {
            // So few that bytes can count them.
            let some = |some: &[u8]| some.iter().map(|kind| u8::from(*kind == number)).sum::<u8>();
            let count: u64 = kinds.chunks(128).map(|chunk| u64::from(some(chunk))).sum();
            let cache = Type::of(number).map(|kind| (kind, route[kind as usize]));
            match cache.and_then(|(kind, at)| Some((kind, self.caches.get_mut(at)?))) {
                Some((kind, cache)) => cache.counts.accesses[kind as usize] += count,
                None => *passed_over += count,
            }
        }
    }

    #[inline(always)]
    fn reference(&mut self, route: &[usize; 3], kind: u8, address: u64, size: u64) {
        let Some(kind) = Type::of(kind) else { return };
        let at = route[kind as usize];
        let Some(cache) = self.caches.get_mut(at) else { return };
        let offset = address & (cache.length() - 1);
        // Nearly all references are to a line that was just used.
        let one = offset + size <= cache.reach;
        let write = kind == Type::Write;
        let stays = !write || cache.back();
        if !(one && stays && cache.lines.is_front(address >> cache.shift, write)) {
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
    }

    /// With their names: `l1` or `l1i`, `l1d`; then `l2` and on.
    pub fn caches(&self) -> Vec<(String, Part)> {
        let mut parts: Vec<(String, Part)> = Vec::new();
        for cache in &self.caches {
            let dirty = cache.lines.dirty();
            match parts.iter_mut().find(|(name, _)| *name == cache.name) {
                Some((_, part)) => {
                    part.counts.add(&cache.counts);
                    part.dirty += dirty;
                }
                None => {
                    let Cache { config, level, side, .. } = *cache;
                    let classified = cache.extras.as_ref().is_some_and(|extras| extras.classifier.is_some());
                    let part = Part { config, level, side, counts: cache.counts.clone(), dirty, classified };
                    parts.push((cache.name.clone(), part));
                }
            }
        }
        parts.sort_by_key(|(_, part)| (part.level, part.side == Side::Data));
        parts
    }

    /// How many levels there are.
    pub fn levels(&self) -> usize {
        self.caches.iter().map(|cache| cache.level + 1).max().unwrap_or(0)
    }

    /// A reference, at the first level.
    #[inline(never)]
    fn refer(&mut self, at: usize, address: u64, kind: Type, size: u64) {
        let cache = &mut self.caches[at];
        let (length, shift) = (cache.length(), cache.shift);
        let offset = address & (length - 1);
        let line = address >> shift;
        // The last byte's line, counted from the first's.
        let more = (offset + size - 1) >> shift;
        let mut missed = false;
        if more == 0 {
            missed = self.refer_line(at, Piece { line, address, kind, bytes: size });
        } else {
            cache.counts.straddling += 1;
            let highest = u64::MAX >> shift;
            let mut left = size;
            let (mut room, mut address) = (length - offset, address);
            for n in 0..=more {
                // After the last address comes the first.
                let line = line.wrapping_add(n) & highest;
                missed |= self.refer_line(at, Piece { line, address, kind, bytes: left.min(room) });
                left = left.saturating_sub(room);
                address = address.wrapping_add(room);
                room = length;
            }
        }
        if missed {
            let cache = &mut self.caches[at];
            cache.missed(kind);
            self.missed[cache.level] += 1;
        }
    }

    /// Whether the line was missing.
    fn refer_line(&mut self, at: usize, piece: Piece) -> bool {
        let cache = &mut self.caches[at];
        let write = piece.kind == Type::Write;
        let dirty = write && cache.back();
        let hit = cache.look(piece.line, dirty, write);
        if !hit || (write && !dirty) {
            self.send(at, piece, hit);
        }
        !hit
    }

    /// What the first level cannot do alone.
    fn send(&mut self, at: usize, piece: Piece, hit: bool) {
        let cache = &self.caches[at];
        let write = piece.kind == Type::Write;
        if !hit && (!write || cache.config.allocate) {
            let dirty = write && cache.back();
            self.bring(at, piece, dirty);
        }
        let cache = &mut self.caches[at];
        // A hit that comes here is a write that does not stay.
        if write && (hit || !cache.takes_writes()) {
            cache.counts.writes_through += 1;
            let below = cache.below;
            self.put(below, piece.address, piece.bytes);
        }
    }

    /// Gets a line from below and puts it in.
    fn bring(&mut self, at: usize, piece: Piece, dirty: bool) {
        let cache = &self.caches[at];
        self.ask(cache.below, piece.line << cache.shift, piece.kind);
        self.fill(at, piece.line, dirty);
    }

    /// A line is missing above.
    fn ask(&mut self, at: usize, address: u64, kind: Type) {
        let Some(cache) = self.caches.get_mut(at) else {
            self.memory.lines_read += 1;
            return;
        };
        let line = address >> cache.shift;
        cache.counts.accesses[kind as usize] += 1;
        if !cache.look(line, false, false) {
            cache.missed(kind);
            self.missed[cache.level] += 1;
            self.bring(at, Piece { line, address, kind, bytes: 0 }, false);
        }
    }

    /// Bytes of one line come down from above.
    fn put(&mut self, at: usize, address: u64, bytes: u64) {
        let Some(cache) = self.caches.get_mut(at) else {
            self.memory.writes += 1;
            return;
        };
        let line = address >> cache.shift;
        let back = cache.back();
        cache.counts.accesses[Type::Written as usize] += 1;
        let hit = cache.look(line, back, true);
        if !hit {
            cache.missed(Type::Written);
            if cache.config.allocate {
                // A whole line needs nothing from below.
                match bytes < cache.length() {
                    true => self.bring(at, Piece { line, address, kind: Type::Write, bytes }, back),
                    false => self.fill(at, line, back),
                }
            }
        }
        let cache = &mut self.caches[at];
        if !(hit && back || !hit && cache.takes_writes()) {
            cache.counts.writes_through += 1;
            let below = cache.below;
            self.put(below, address, bytes);
        }
    }

    /// Puts in a line that is not there.
    fn fill(&mut self, at: usize, line: u64, dirty: bool) {
        let cache = &mut self.caches[at];
        if let Some((old, dirty)) = cache.lines.insert(line, dirty) {
            cache.counts.evictions += 1;
            if dirty {
                cache.counts.write_backs += 1;
                let (below, address, bytes) = (cache.below, old << cache.shift, cache.length());
                self.put(below, address, bytes);
            }
        }
    }
}

/// What a reference wants of one line.
#[derive(Clone, Copy)]
struct Piece {
    line: u64,
    /// Of its first byte.
    address: u64,
    kind: Type,
    bytes: u64,
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
