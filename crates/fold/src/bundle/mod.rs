//! What one or many ranks recorded, with everything equal stored once, and its merge.
//!
//! A [`Bundle`] starts as one rank's recording ([`Bundle::of_rank`]), grows by [`merge`] or [`gather`], is put into
//! its final form by [`Bundle::canonical`], and is read rank by rank with a [`Walk`].

pub mod codec;
mod gather;
mod hash;
mod merge;
mod walk;

use std::collections::{HashMap, HashSet};

use crate::grammar::{self, Grammar, Item, Symbol};
use crate::ranks::RankList;
use crate::stream::{Stream, Term};

pub use gather::{Gathered, Link, gather};
pub use hash::Hash;
pub use merge::{Manifest, Parcel, Want, merge};
pub use walk::Walk;

/// Ranks times threads: more than any machine has, so that a longer list can only come from a hostile file.
pub const MOST_RANKS: u64 = 1 << 24;

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

impl Tally {
    /// Neither counter wraps: a sum that does not fit stays at the largest number.
    pub fn add(&mut self, other: Tally) {
        self.total = self.total.saturating_add(other.total);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
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

/// What one thread of one rank recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadPart {
    pub thread: u32,
    /// Terminals are indices into the rank's symbols.
    pub structure: Grammar,
    /// By symbol: its streams, one a lane. Left empty (or off the end) for symbols this thread never used.
    pub lanes: Vec<Vec<Stream>>,
    pub digest: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The bytes end in the middle of something.
    Truncated {
        at: usize,
    },
    /// A number that does not fit its type.
    Number {
        at: usize,
    },
    /// More elements announced than bytes are left.
    Count {
        at: usize,
        count: u64,
    },
    /// An unknown variant.
    Variant {
        at: usize,
        byte: u8,
    },
    /// Bytes after the end.
    Trailing {
        at: usize,
    },
    /// An index that points nowhere.
    Index {
        what: &'static str,
        index: u64,
        len: usize,
    },
    /// A grammar that reaches itself, refers to a missing rule, or has an empty repeat.
    Structure {
        index: usize,
    },
    Stream {
        index: usize,
    },
    Ranks {
        group: usize,
    },
    /// A group whose streams do not match its symbols' lanes.
    Lanes {
        group: usize,
        have: usize,
        need: usize,
    },
    /// The same thread of the same rank was recorded twice.
    Overlap {
        thread: u32,
        rank: u32,
    },
    /// A parcel that is not what was asked for.
    Parcel {
        what: &'static str,
        have: usize,
        need: usize,
    },
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Truncated { at } => write!(f, "the data end early, at byte {at}"),
            Error::Number { at } => write!(f, "the number at byte {at} is too large for its field"),
            Error::Count { at, count } => {
                write!(f, "{count} elements announced at byte {at} do not fit the data")
            }
            Error::Variant { at, byte } => write!(f, "unknown variant {byte} at byte {at}"),
            Error::Trailing { at } => write!(f, "unexpected bytes from byte {at} on"),
            Error::Index { what, index, len } => write!(f, "{what} {index} of {len} does not exist"),
            Error::Structure { index } => write!(f, "structure {index} is not a grammar that ends"),
            Error::Stream { index } => write!(f, "stream {index} is not well formed"),
            Error::Ranks { group } => write!(f, "the rank list of group {group} is not well formed"),
            Error::Lanes { group, have, need } => {
                write!(f, "group {group} has {have} streams where its symbols need {need}")
            }
            Error::Overlap { thread, rank } => write!(f, "thread {thread} of rank {rank} is recorded twice"),
            Error::Parcel { what, have, need } => write!(f, "{have} {what} came where {need} were asked for"),
        }
    }
}

impl std::error::Error for Error {}

impl Bundle {
    /// One rank's recording. Equal streams are stored once, threads that never called anything are kept.
    pub fn of_rank(rank: u32, symbols: Vec<SymbolEntry>, threads: Vec<ThreadPart>) -> Result<Bundle, Error> {
        let mut bundle = Bundle { symbols, ..Bundle::default() };
        let mut seen_streams: HashMap<Stream, u32> = HashMap::new();
        let mut seen_threads = HashSet::new();
        for mut part in threads {
            let group = bundle.groups.len();
            if !seen_threads.insert(part.thread) {
                return Err(Error::Overlap { thread: part.thread, rank });
            }
            part.structure.validate().map_err(|_| Error::Structure { index: group })?;
            let mut lanes = Vec::new();
            for (symbol, _) in part.structure.counts() {
                let entry = get(&bundle.symbols, "symbol", symbol)?;
                let streams = part.lanes.get_mut(symbol as usize).map(std::mem::take).unwrap_or_default();
                if streams.len() != usize::from(entry.lanes) {
                    return Err(Error::Lanes { group, have: streams.len(), need: entry.lanes.into() });
                }
                for stream in streams {
                    let stream = normal(&stream);
                    let next = bundle.streams.len() as u32;
                    lanes.push(*seen_streams.entry(stream).or_insert_with_key(|stream| {
                        bundle.streams.push(stream.clone());
                        next
                    }));
                }
            }
            let structure = match bundle.structures.iter().position(|s| *s == part.structure) {
                Some(known) => known,
                None => {
                    bundle.structures.push(part.structure);
                    bundle.structures.len() - 1
                }
            };
            bundle.groups.push(Group {
                thread: part.thread,
                ranks: RankList::single(rank),
                structure: structure as u32,
                lanes,
                digest: part.digest,
            });
        }
        Ok(bundle)
    }

    pub fn group_of(&self, rank: u32, thread: u32) -> Option<&Group> {
        self.groups.iter().find(|g| g.thread == thread && g.ranks.contains(rank))
    }

    /// The threads of a rank, lowest first.
    pub fn threads(&self, rank: u32) -> Vec<u32> {
        let mut threads: Vec<u32> =
            self.groups.iter().filter(|g| g.ranks.contains(rank)).map(|g| g.thread).collect();
        threads.sort_unstable();
        threads
    }

    /// Holds everything that came from outside against what the rest of the code relies on.
    pub fn validate(&self) -> Result<(), Error> {
        for (index, structure) in self.structures.iter().enumerate() {
            structure.validate().map_err(|_| Error::Structure { index })?;
            for item in structure.rules.iter().flatten() {
                if let Symbol::Terminal(t) = item.symbol {
                    get(&self.symbols, "symbol", t)?;
                }
            }
        }
        for (index, stream) in self.streams.iter().enumerate() {
            stream.validate().map_err(|_| Error::Stream { index })?;
        }
        let needed: Vec<usize> = self.structures.iter().map(|s| lanes_of(s, &self.symbols)).collect();
        let mut members: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut total = 0u64;
        for (index, group) in self.groups.iter().enumerate() {
            group.ranks.validate().map_err(|_| Error::Ranks { group: index })?;
            let need = *get(&needed, "structure", group.structure)?;
            if group.lanes.len() != need {
                return Err(Error::Lanes { group: index, have: group.lanes.len(), need });
            }
            for &stream in &group.lanes {
                get(&self.streams, "stream", stream)?;
            }
            total = total.saturating_add(group.ranks.len());
            if group.ranks.parts.is_empty() || total > MOST_RANKS {
                return Err(Error::Ranks { group: index });
            }
            members.entry(group.thread).or_default().extend(group.ranks.iter());
        }
        for (thread, mut ranks) in members {
            ranks.sort_unstable();
            if let Some(twice) = ranks.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(Error::Overlap { thread, rank: twice[0] });
            }
        }
        Ok(())
    }

    /// The final form: one numbering whatever the order of merging, unused entries gone, and rules that several
    /// structures have in common made equal in all of them, so that a file stores them once (paper 3.5.2).
    ///
    /// Groups go by lowest rank, then thread; structures, symbols and streams by first use in that order.
    pub fn canonical(&mut self) -> Result<(), Error> {
        self.validate()?;
        self.groups.sort_by_key(|g| (g.ranks.iter().next(), g.thread));
        let groups = self.groups.iter_mut();
        let structures =
            renumber(groups.map(|g| std::slice::from_mut(&mut g.structure)), self.structures.len());
        self.structures = pick(std::mem::take(&mut self.structures), &structures);
        let streams = renumber(self.groups.iter_mut().map(|g| g.lanes.as_mut_slice()), self.streams.len());
        self.streams = pick(std::mem::take(&mut self.streams), &streams);

        let mut used: Vec<Vec<u32>> =
            self.structures.iter().map(|s| s.counts().iter().map(|c| c.0).collect()).collect();
        let old: Vec<Vec<u32>> = used.clone();
        let mut order = renumber(used.iter_mut().map(Vec::as_mut_slice), self.symbols.len());
        let new_of: HashMap<u32, u32> = old.into_iter().flatten().zip(used.into_iter().flatten()).collect();
        // A symbol that no structure uses still carries a tally.
        let kept: HashSet<u32> = order.iter().copied().collect();
        let mut rest: Vec<u32> = (0..self.symbols.len() as u32).filter(|s| !kept.contains(s)).collect();
        rest.sort_by(|a, b| {
            let key = |i: u32| (&self.symbols[i as usize].bytes, self.symbols[i as usize].lanes);
            key(*a).cmp(&key(*b))
        });
        order.extend(rest);
        self.symbols = pick(std::mem::take(&mut self.symbols), &order);
        for structure in &mut self.structures {
            *structure = structure.map_terminals(|t| new_of[&t]);
        }
        if self.structures.len() > 1 {
            self.structures = grammar::join(&self.structures).split();
        }
        for structure in &mut self.structures {
            *structure = preorder(structure);
        }
        Ok(())
    }
}

fn get<'a, T>(list: &'a [T], what: &'static str, index: u32) -> Result<&'a T, Error> {
    list.get(index as usize).ok_or(Error::Index { what, index: index.into(), len: list.len() })
}

/// How many streams a group with this structure refers to.
fn lanes_of(structure: &Grammar, symbols: &[SymbolEntry]) -> usize {
    structure.counts().iter().filter_map(|c| symbols.get(c.0 as usize)).map(|s| usize::from(s.lanes)).sum()
}

/// Numbers what the slices refer to by first appearance, in place; returns the old number of each new one.
fn renumber<'a>(uses: impl Iterator<Item = &'a mut [u32]>, len: usize) -> Vec<u32> {
    let mut new_of: Vec<Option<u32>> = vec![None; len];
    let mut order = Vec::new();
    for slot in uses.flatten() {
        let new = new_of[*slot as usize].get_or_insert_with(|| {
            order.push(*slot);
            order.len() as u32 - 1
        });
        *slot = *new;
    }
    order
}

/// The entries of `list` in this order; `order` names none twice.
fn pick<T>(list: Vec<T>, order: &[u32]) -> Vec<T> {
    let mut list: Vec<Option<T>> = list.into_iter().map(Some).collect();
    order.iter().filter_map(|&i| list[i as usize].take()).collect()
}

/// The same stream with its rules and terms numbered as a reader meets them, depth first, and without unused ones.
pub fn normal(stream: &Stream) -> Stream {
    let shape = preorder(&stream.shape);
    let mut new_of: HashMap<u32, u32> = HashMap::new();
    let mut terms: Vec<Term> = Vec::new();
    for (old, _) in shape.counts() {
        if let Some(&term) = stream.terms.get(old as usize) {
            new_of.insert(old, terms.len() as u32);
            terms.push(term);
        }
    }
    // An index without a term stays out of range and is found by `validate`.
    let shape = shape.map_terminals(|old| new_of.get(&old).copied().unwrap_or(u32::MAX));
    let mut normal = Stream { terms, shape, blocks: stream.blocks.clone() };
    normal.tidy_blocks();
    normal
}

/// The same grammar with its rules numbered as a reader meets them, depth first, and without unused ones.
pub fn preorder(grammar: &Grammar) -> Grammar {
    let mut new_of: Vec<Option<u32>> = vec![None; grammar.rules.len()];
    let mut order = Vec::new();
    // Rules still to be read: (rule, next item). A stack of our own, because rules may nest as deep as a file says.
    let mut open: Vec<(u32, usize)> = Vec::new();
    if !grammar.rules.is_empty() {
        new_of[0] = Some(0);
        order.push(0u32);
        open.push((0, 0));
    }
    while let Some(&mut (rule, ref mut at)) = open.last_mut() {
        let Some(item) = grammar.rules[rule as usize].get(*at) else {
            open.pop();
            continue;
        };
        *at += 1;
        if let Symbol::Rule(r) = item.symbol
            && new_of[r as usize].is_none()
        {
            new_of[r as usize] = Some(order.len() as u32);
            order.push(r);
            open.push((r, 0));
        }
    }
    let renamed = |item: &Item| Item {
        symbol: match item.symbol {
            Symbol::Rule(r) => Symbol::Rule(new_of[r as usize].unwrap_or(0)),
            terminal => terminal,
        },
        count: item.count,
    };
    Grammar {
        rules: order.iter().map(|&r| grammar.rules[r as usize].iter().map(renamed).collect()).collect(),
    }
}

#[cfg(test)]
mod tests;
