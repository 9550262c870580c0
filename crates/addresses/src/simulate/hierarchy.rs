//! Caches one behind another, and what a reference does to them.
//!
//! A level that lacks a line asks the one below for it, puts it in, and then sends down the line that had to leave, if it
//! was written to. What leaves a level stays in those above it, and need not have been in those below.

use super::cache::{Config, Lines, Write};
use super::{ALL, Type};
use crate::{Batch, kind};

/// What happened to one cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// By [`Type`]. At the first level references, below it lines asked for because of such references, and writes
    /// that came down.
    pub accesses: [u64; 4],
    /// Of these, by [`Type`]. A reference misses if any of its lines does.
    pub misses: [u64; 4],
    /// References to more than one line.
    pub straddling: u64,
    /// Lines that left for others.
    pub evictions: u64,
    /// Of these, those sent down because they were dirty.
    pub write_backs: u64,
    /// Writes sent down at once.
    pub writes_through: u64,
}

/// What came to be asked of the memory behind all caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Lines, of the size that the last level has.
    pub lines_read: u64,
    /// Lines and parts of lines.
    pub writes: u64,
}

pub struct Cache {
    config: Config,
    lines: Lines,
    shift: u32,
    counts: Counts,
    /// Dirty lines of others like it, whose counts were added to these.
    others_dirty: u64,
}

impl Cache {
    fn new(config: Config, seed: u64) -> Cache {
        Cache {
            config,
            lines: Lines::new(&config.geometry, config.policy, seed),
            shift: config.geometry.line().trailing_zeros(),
            counts: Counts::default(),
            others_dirty: 0,
        }
    }

    /// Counts another one's too.
    fn absorb(&mut self, other: &Cache) {
        let Counts { accesses, misses, straddling, evictions, write_backs, writes_through } = &other.counts;
        let pairs = self.counts.accesses.iter_mut().zip(accesses);
        pairs.chain(self.counts.misses.iter_mut().zip(misses)).for_each(|(sum, more)| *sum += more);
        self.counts.straddling += straddling;
        self.counts.evictions += evictions;
        self.counts.write_backs += write_backs;
        self.counts.writes_through += writes_through;
        self.others_dirty += other.dirty();
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Lines written to and not yet sent down.
    pub fn dirty(&self) -> u64 {
        self.lines.dirty() + self.others_dirty
    }

    fn back(&self) -> bool {
        self.config.write == Write::Back
    }

    /// Whether a write that finds no line ends here, in one that is brought in.
    fn takes_writes(&self) -> bool {
        self.back() && self.config.allocate
    }
}

/// The first level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    Unified(Config),
    /// Without one of them, such references are passed over. There is one at least.
    Split {
        instructions: Option<Config>,
        data: Option<Config>,
    },
}

/// The lines of a level are smaller than those of a level above it: numbers of the levels, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallerLines {
    pub above: usize,
    pub below: usize,
}

/// No first-level cache.
const NOWHERE: usize = usize::MAX;

pub struct Hierarchy {
    first: Vec<Cache>,
    /// Which of `first`, by [`Type`].
    route: [usize; 3],
    below: Vec<Cache>,
    memory: Memory,
    /// By kind: no cache is for them.
    passed_over: [u64; crate::KINDS],
    references: u64,
}

impl Hierarchy {
    /// The seed is for what is random.
    pub fn new(first: First, below: &[Config], seed: u64) -> Result<Hierarchy, SmallerLines> {
        let (configs, route) = match first {
            First::Unified(config) => (vec![config], [0, 0, 0]),
            First::Split { instructions, data } => {
                let data_at = if data.is_some() { 0 } else { NOWHERE };
                let fetch_at = instructions.map_or(NOWHERE, |_| usize::from(data.is_some()));
                (data.into_iter().chain(instructions).collect(), [data_at, data_at, fetch_at])
            }
        };
        let mut largest =
            (1, configs.iter().map(|config: &Config| config.geometry.line()).max().unwrap_or(0));
        for (at, config) in below.iter().enumerate() {
            let (above, line) = largest;
            if config.geometry.line() < line {
                return Err(SmallerLines { above, below: at + 2 });
            }
            largest = (at + 2, config.geometry.line());
        }
        // Dice of their own, or levels would roll alike.
        let mut seeds = (0u64..).map(|n| seed.wrapping_add(n.wrapping_mul(0x1_0001)));
        let mut made = |configs: &[Config]| -> Vec<Cache> {
            configs.iter().zip(&mut seeds).map(|(config, seed)| Cache::new(*config, seed)).collect()
        };
        Ok(Hierarchy {
            first: made(&configs),
            route,
            below: made(below),
            memory: Memory::default(),
            passed_over: [0; crate::KINDS],
            references: 0,
        })
    }

    /// The references of a batch, in order. Without sizes each is in one line.
    pub fn add(&mut self, batch: &Batch) {
        self.count(&batch.kinds);
        let pairs = batch.kinds.iter().zip(&batch.addresses);
        if batch.sizes.is_empty() {
            pairs.for_each(|(kind, address)| self.reference(*kind, *address, 1));
        } else {
            for ((kind, address), size) in pairs.zip(&batch.sizes) {
                self.reference(*kind, *address, u64::from(*size).max(1));
            }
        }
    }

    /// Accesses of the first level, kind by kind: that is faster than one at a time.
    fn count(&mut self, kinds: &[u8]) {
        self.references += kinds.len() as u64;
        for (number, passed_over) in (0..).zip(&mut self.passed_over) {
            // So few that bytes can count them.
            let some = |some: &[u8]| some.iter().map(|kind| u8::from(*kind == number)).sum::<u8>();
            let count: u64 = kinds.chunks(128).map(|chunk| u64::from(some(chunk))).sum();
            let cache = Type::of(number).map(|kind| (kind, self.route[kind as usize]));
            match cache.and_then(|(kind, at)| Some((kind, self.first.get_mut(at)?))) {
                Some((kind, cache)) => cache.counts.accesses[kind as usize] += count,
                None => *passed_over += count,
            }
        }
    }

    #[inline(always)]
    fn reference(&mut self, kind: u8, address: u64, size: u64) {
        let Some(kind) = Type::of(kind) else { return };
        let Some(cache) = self.first.get_mut(self.route[kind as usize]) else { return };
        let offset = address & (cache.config.geometry.line() - 1);
        // Nearly all references are to a line that was just used.
        let one = offset + size <= cache.config.geometry.line();
        let write = kind == Type::Write;
        let stays = !write || cache.back();
        if !(one && stays && cache.lines.is_front(address >> cache.shift, write)) {
            refer(cache, &mut self.below, &mut self.memory, address, kind, size);
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

    /// With their names: `l1` or `l1i`, `l1d`; then `l2` and on.
    pub fn caches(&self) -> Vec<(String, &Cache)> {
        let unified = self.route == [0, 0, 0];
        let mut out: Vec<(String, &Cache)> = Vec::new();
        if unified {
            out.push(("l1".to_owned(), &self.first[0]));
        } else {
            for (name, route) in [("l1i", self.route[Type::Fetch as usize]), ("l1d", self.route[0])] {
                out.extend(self.first.get(route).map(|cache| (name.to_owned(), cache)));
            }
        }
        out.extend(self.below.iter().enumerate().map(|(n, cache)| (format!("l{}", n + 2), cache)));
        out
    }

    /// The references that a cache can have.
    pub fn types(&self, name: &str) -> Vec<Type> {
        match name {
            "l1i" => vec![Type::Fetch],
            "l1d" => vec![Type::Read, Type::Write],
            "l1" => ALL[..3].to_vec(),
            _ => ALL.to_vec(),
        }
    }
}

/// Several threads, each with caches of its own, and one that they share behind them. Caches do not hear of what others write.
pub struct Threads {
    own: Vec<Hierarchy>,
    /// Levels below the first that each has.
    private: usize,
    shared: Option<Cache>,
}

impl Threads {
    /// Each of `threads` has a first level and what is in `below`; all of them `shared`.
    pub fn new(
        first: First,
        below: &[Config],
        shared: Option<Config>,
        threads: usize,
        seed: u64,
    ) -> Result<Threads, SmallerLines> {
        // The lines of all levels are held against each other.
        let all: Vec<Config> = below.iter().copied().chain(shared).collect();
        Hierarchy::new(first, &all, seed)?;
        let own = (0..threads as u64).map(|thread| Hierarchy::new(first, below, seed.wrapping_add(thread)));
        let shared = shared.map(|config| Cache::new(config, seed.wrapping_sub(1)));
        Ok(Threads { own: own.collect::<Result<_, _>>()?, private: below.len(), shared })
    }

    /// References of one of the threads.
    pub fn add(&mut self, thread: usize, batch: &Batch) {
        let own = &mut self.own[thread];
        own.below.extend(self.shared.take());
        own.add(batch);
        if own.below.len() > self.private {
            self.shared = own.below.pop();
        }
    }

    /// All of it as one: the caches of the threads together, level by level, and the shared one.
    pub fn together(self) -> Option<Hierarchy> {
        let mut own = self.own.into_iter();
        let mut all = own.next()?;
        for other in own {
            let caches = all.first.iter_mut().chain(&mut all.below);
            caches.zip(other.first.iter().chain(&other.below)).for_each(|(sum, more)| sum.absorb(more));
            all.memory.lines_read += other.memory.lines_read;
            all.memory.writes += other.memory.writes;
            all.references += other.references;
            all.passed_over.iter_mut().zip(other.passed_over).for_each(|(sum, more)| *sum += more);
        }
        all.below.extend(self.shared);
        Some(all)
    }
}

/// What a reference wants of one line.
#[derive(Clone, Copy)]
struct Piece {
    line: u64,
    kind: Type,
    bytes: u64,
}

/// A reference, at the first level.
#[inline(never)]
fn refer(cache: &mut Cache, below: &mut [Cache], memory: &mut Memory, address: u64, kind: Type, size: u64) {
    let length = cache.config.geometry.line();
    let offset = address & (length - 1);
    let line = address >> cache.shift;
    // The last byte's line, counted from the first's.
    let more = (offset + size - 1) >> cache.shift;
    let mut missed = false;
    if more == 0 {
        missed = refer_line(cache, below, memory, Piece { line, kind, bytes: size });
    } else {
        cache.counts.straddling += 1;
        let highest = u64::MAX >> cache.shift;
        let mut left = size;
        let mut room = length - offset;
        for n in 0..=more {
            // After the last address comes the first.
            let line = line.wrapping_add(n) & highest;
            missed |= refer_line(cache, below, memory, Piece { line, kind, bytes: left.min(room) });
            left = left.saturating_sub(room);
            room = length;
        }
    }
    cache.counts.misses[kind as usize] += u64::from(missed);
}

/// Whether the line was missing.
fn refer_line(cache: &mut Cache, below: &mut [Cache], memory: &mut Memory, piece: Piece) -> bool {
    let write = piece.kind == Type::Write;
    let dirty = write && cache.back();
    let hit = cache.lines.find(piece.line, dirty);
    if !hit || (write && !dirty) {
        send(cache, below, memory, piece, hit);
    }
    !hit
}

/// What the first level cannot do alone.
fn send(cache: &mut Cache, below: &mut [Cache], memory: &mut Memory, piece: Piece, hit: bool) {
    let Piece { line, kind, bytes } = piece;
    let write = kind == Type::Write;
    if !hit && (!write || cache.config.allocate) {
        ask(below, memory, line << cache.shift, kind);
        fill(cache, below, memory, line, write && cache.back());
    }
    // A hit that comes here is a write that does not stay.
    if write && (hit || !cache.takes_writes()) {
        cache.counts.writes_through += 1;
        put(below, memory, line << cache.shift, bytes);
    }
}

/// A line is missing above.
fn ask(caches: &mut [Cache], memory: &mut Memory, address: u64, kind: Type) {
    let Some((cache, below)) = caches.split_first_mut() else {
        memory.lines_read += 1;
        return;
    };
    let line = address >> cache.shift;
    cache.counts.accesses[kind as usize] += 1;
    if !cache.lines.find(line, false) {
        cache.counts.misses[kind as usize] += 1;
        ask(below, memory, address, kind);
        fill(cache, below, memory, line, false);
    }
}

/// Bytes of one line come down from above.
fn put(caches: &mut [Cache], memory: &mut Memory, address: u64, bytes: u64) {
    let Some((cache, below)) = caches.split_first_mut() else {
        memory.writes += 1;
        return;
    };
    let line = address >> cache.shift;
    let back = cache.back();
    cache.counts.accesses[Type::Written as usize] += 1;
    let hit = cache.lines.find(line, back);
    if !hit {
        cache.counts.misses[Type::Written as usize] += 1;
        if cache.config.allocate {
            // A whole line needs nothing from below.
            if bytes < cache.config.geometry.line() {
                ask(below, memory, address, Type::Write);
            }
            fill(cache, below, memory, line, back);
        }
    }
    if !(hit && back || !hit && cache.takes_writes()) {
        cache.counts.writes_through += 1;
        put(below, memory, address, bytes);
    }
}

fn fill(cache: &mut Cache, below: &mut [Cache], memory: &mut Memory, line: u64, dirty: bool) {
    if let Some((old, dirty)) = cache.lines.insert(line, dirty) {
        cache.counts.evictions += 1;
        if dirty {
            cache.counts.write_backs += 1;
            put(below, memory, old << cache.shift, cache.config.geometry.line());
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
