//! What one or many ranks recorded, with everything equal stored once, and its merge.

use crate::grammar::Grammar;
use crate::ranks::RankList;
use crate::stream::Stream;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bundle {
    pub symbols: Vec<SymbolEntry>,
    /// Distinct structures; terminals are indices into `symbols`.
    pub structures: Vec<Grammar>,
    /// Distinct streams.
    pub streams: Vec<Stream>,
    pub groups: Vec<Group>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SymbolEntry {
    pub bytes: Box<[u8]>,
    /// How many streams hang off it.
    pub lanes: u16,
    pub tally: Tally,
}

/// A measured quantity over all occurrences of a symbol on all ranks (for MPI: nanoseconds).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub total: u64,
    pub min: u64,
    pub max: u64,
}

/// Ranks (of one thread number) that did exactly the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub thread: u32,
    pub ranks: RankList,
    /// Index into `structures`.
    pub structure: u32,
    /// For each distinct terminal of the structure in order of first appearance in its expansion, for each of that
    /// symbol's lanes: an index into `streams`.
    pub lanes: Vec<u32>,
    /// Digest of the encoded calls, taken while they happened.
    pub digest: u64,
}
