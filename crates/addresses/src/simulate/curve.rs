//! The miss ratios of fully associative LRU caches of all sizes, in one pass.

use super::Type;
use super::stack::Stack;
use crate::{Batch, KINDS};

/// Which references share a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Fetches have one, reads and writes another.
    Split,
    Unified,
}

/// Distances of the references in one cache.
pub struct Distances {
    stack: Stack,
    /// By distance in lines, then by type.
    counts: Vec<[u64; 3]>,
    /// To lines not used before, by type: they miss in caches of every size.
    first: [u64; 3],
    references: [u64; 3],
}

impl Distances {
    fn new() -> Distances {
        Distances { stack: Stack::new(), counts: Vec::new(), first: [0; 3], references: [0; 3] }
    }

    fn count(&mut self, kind: Type, lines: impl Iterator<Item = u64>) {
        // A reference misses if one of its lines does, so the farthest says in which caches.
        let mut farthest = Some(0);
        for line in lines {
            let distance = self.stack.distance(line);
            farthest = farthest.zip(distance).map(|(a, b)| a.max(b));
        }
        self.references[kind as usize] += 1;
        let Some(distance) = farthest else {
            self.first[kind as usize] += 1;
            return;
        };
        if distance >= self.counts.len() {
            self.counts.resize(distance + 1, [0; 3]);
        }
        self.counts[distance][kind as usize] += 1;
    }

    /// By type: read, write, fetch.
    pub fn references(&self) -> [u64; 3] {
        self.references
    }

    /// Misses that no size avoids, by type.
    pub fn first(&self) -> [u64; 3] {
        self.first
    }

    /// Different lines.
    pub fn lines(&self) -> u64 {
        self.stack.lines() as u64
    }

    /// Misses by type in caches of these numbers of lines, which rise.
    pub fn misses(&self, sizes: impl IntoIterator<Item = u64>) -> Vec<[u64; 3]> {
        let mut hits = [0; 3];
        let mut counted = 0;
        let mut out = Vec::new();
        for size in sizes {
            let until = usize::try_from(size).unwrap_or(usize::MAX).min(self.counts.len());
            for row in &self.counts[counted.min(until)..until] {
                (0..3).for_each(|kind| hits[kind] += row[kind]);
            }
            counted = until;
            out.push(std::array::from_fn(|kind| self.references[kind] - hits[kind]));
        }
        out
    }

    /// How many references there are with each distance that occurs, by type.
    pub fn rows(&self) -> impl Iterator<Item = (u64, [u64; 3])> + '_ {
        let rows = self.counts.iter().enumerate();
        rows.filter(|(_, row)| **row != [0; 3]).map(|(distance, row)| (distance as u64, *row))
    }
}

pub struct Curve {
    shift: u32,
    /// One, or that of data and that of fetches.
    distances: Vec<Distances>,
    passed_over: [u64; KINDS],
    references: u64,
}

impl Curve {
    /// Lines of this many bytes, a power of two.
    pub fn new(line: u64, streams: Streams) -> Curve {
        assert!(line.is_power_of_two(), "lines have a power of two of bytes");
        let caches = if streams == Streams::Split { 2 } else { 1 };
        Curve {
            shift: line.trailing_zeros(),
            distances: (0..caches).map(|_| Distances::new()).collect(),
            passed_over: [0; KINDS],
            references: 0,
        }
    }

    /// The references of a batch, in order. Without sizes each is in one line.
    pub fn add(&mut self, batch: &Batch) {
        self.references += batch.len() as u64;
        for at in 0..batch.len() {
            let Some(kind) = Type::of(batch.kinds[at]) else {
                self.passed_over[usize::from(batch.kinds[at])] += 1;
                continue;
            };
            let address = batch.addresses[at];
            let size = batch.sizes.get(at).map_or(1, |size| u64::from(*size).max(1));
            let offset = address & ((1 << self.shift) - 1);
            let line = address >> self.shift;
            let more = (offset + size - 1) >> self.shift;
            let highest = u64::MAX >> self.shift;
            let cache = usize::from(kind == Type::Fetch && self.distances.len() == 2);
            self.distances[cache].count(kind, (0..=more).map(|n| line.wrapping_add(n) & highest));
        }
    }

    pub fn references(&self) -> u64 {
        self.references
    }

    /// References that are neither reads, writes nor fetches, by kind.
    pub fn passed_over(&self) -> [u64; KINDS] {
        self.passed_over
    }

    pub fn line(&self) -> u64 {
        1 << self.shift
    }

    /// With their names.
    pub fn caches(&self) -> Vec<(&'static str, &Distances)> {
        match &self.distances[..] {
            [data, fetches] => vec![("instructions", fetches), ("data", data)],
            all => all.iter().map(|distances| ("unified", distances)).collect(),
        }
    }
}
