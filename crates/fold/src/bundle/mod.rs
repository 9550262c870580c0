//! What one or many ranks recorded, with everything equal stored once, and its merge.
//!
//! A [`Bundle`] starts as one rank's recording ([`Bundle::of_rank`]), grows by [`merge`] or [`gather`], is put into
//! its final form by [`Bundle::canonical`], and is read rank by rank with a [`Walk`].

mod change;
pub mod classes;
pub mod codec;
mod gather;
mod hash;
mod index;
mod lanes;
mod members;
mod merge;
mod rules;
mod score;
mod side;
pub mod sites;
mod structure;
mod template;
mod tree;
mod walk;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::grammar::{self, Grammar, Item, Symbol};
use crate::loops::{Loops, Node};
use crate::ranks::{Checks, RankList, TooMuch};
use crate::stream::{Stream, Term};

pub use change::SharedLane;
pub use classes::{Class, Classes};
pub use gather::{Gathered, Link, gather};
pub use hash::Hash;
pub use index::Index;
#[cfg(test)]
use lanes::choice;
pub use lanes::{Lane, Number, Own, Variant};
pub use members::{OfThread, member};
pub use merge::{Manifest, Parcel, Want, merge};
pub use rules::Rules;
pub use side::{Side, SideKind};
pub use sites::Sites;
pub use structure::Structure;
pub use tree::RankTree;
pub use walk::Walk;

use lanes::StreamSet;
use structure::lanes_of;

/// Ranks times threads: more than any machine has, so that a longer list can only come from a hostile file.
pub const MOST_RANKS: u64 = 1 << 24;

#[derive(Debug, Clone, PartialEq, Default)]
/// What one or many ranks recorded: see the [module](self).
pub struct Bundle {
    /// How many ranks there are, which says which members are whose threads (see [`member`]). 0 where that is not known:
    /// then all are first threads.
    pub world: u32,
    /// All symbols that some rank has.
    pub symbols: Vec<SymbolEntry>,
    /// Distinct structures; terminals are indices into `symbols`.
    pub structures: Vec<Structure>,
    /// Distinct streams.
    pub streams: Vec<Stream>,
    /// Who did what: the members of all cohorts are all that recorded.
    pub cohorts: Vec<Cohort>,
    /// What the symbols' sites stand for.
    pub sites: Sites,
    /// Elements that arrays of one call of it may have, if who opened it has said; of no meaning here.
    pub most_elements: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
/// A kind of event.
pub struct SymbolEntry {
    /// What it is, in the words of whoever records: opaque here, compared as bytes.
    pub bytes: Box<[u8]>,
    /// Where it comes from: a stack of `Bundle::sites`, or 0.
    pub site: u64,
    /// How many streams hang off it.
    pub lanes: u16,
    /// What was measured of all its occurrences; of no meaning here.
    pub tally: Tally,
    /// The same by what the numbers are. Where there are any, they add up to `tally`.
    pub classes: Classes,
}

/// A measured quantity over all occurrences of a symbol on all ranks (for MPI: nanoseconds).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Of all occurrences together.
    pub total: u64,
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
}

impl Tally {
    /// Neither counter wraps: a sum that does not fit stays at the largest number.
    #[inline]
    pub fn add(&mut self, other: Tally) {
        self.total = self.total.saturating_add(other.total);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// Threads of ranks that made the same calls in the same order, if with other numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Cohort {
    /// As members, which are rank and thread in one number: see [`member`].
    pub ranks: RankList,
    /// Index into `structures`.
    pub structure: u32,
    /// Where the structure is one of loops, the times of each node. Then for each distinct symbol of the structure (see
    /// [`Structure::symbols`]), for each of that symbol's lanes: its streams.
    pub lanes: Vec<Lane>,
    /// By kind; mostly none.
    pub sides: Vec<Side>,
    /// Sum (modulo 2^64) of [`blend`] over the members.
    pub digest: u64,
}

impl Cohort {
    /// All ranks have the same streams, so that what one did all did.
    pub fn is_uniform(&self) -> bool {
        self.all_lanes().all(|lane| matches!(lane, Lane::Same { .. }))
    }
}

/// A member's digest as its share of the cohort's: neither a member with another's digest nor two that changed places
/// go unnoticed in the sum.
pub fn blend(member: u32, digest: u64) -> u64 {
    let mut x = digest ^ (u64::from(member) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for _ in 0..2 {
        x = (x ^ x >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    x ^ x >> 32
}

/// What one thread of one rank recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadPart {
    /// Which thread; the first is 0.
    pub thread: u32,
    /// Symbols are indices into the rank's.
    pub structure: Structure,
    /// Of a structure of loops: the times of each node, and how many of them count.
    pub times: Vec<(Stream, u64)>,
    /// By symbol: its streams, one a lane. Left empty (or off the end) for symbols this thread never used.
    pub lanes: Vec<Vec<Stream>>,
    /// How many numbers of each of them count; may be left empty where it is not known.
    pub lengths: Vec<Vec<u64>>,
    /// Of the encoded calls, taken while they happened.
    pub digest: u64,
}

/// Why something is no bundle, or cannot become part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes end in the middle of something.
    #[error("the data end early, at byte {at}")]
    Truncated {
        /// At this byte.
        at: usize,
    },
    /// A number that does not fit its type.
    #[error("the number at byte {at} is too large for its field")]
    Number {
        /// At this byte.
        at: usize,
    },
    /// More elements announced than bytes are left.
    #[error("{count} elements announced at byte {at} do not fit the data")]
    Count {
        /// At this byte.
        at: usize,
        /// So many.
        count: u64,
    },
    /// An unknown variant.
    #[error("unknown variant {byte} at byte {at}")]
    Variant {
        /// At this byte.
        at: usize,
        /// What stands there.
        byte: u8,
    },
    /// Bytes after the end.
    #[error("unexpected bytes from byte {at} on")]
    Trailing {
        /// At this byte.
        at: usize,
    },
    /// An index that points nowhere.
    #[error("{what} {index} of {len} does not exist")]
    Index {
        /// Of what.
        what: &'static str,
        /// Which one.
        index: u64,
        /// How many there are.
        len: usize,
    },
    /// A grammar that reaches itself, refers to a missing rule, or has an empty repeat.
    #[error("structure {index} is not a grammar that ends")]
    Structure {
        /// Which one.
        index: usize,
    },
    /// A stream that is not well formed.
    #[error("stream {index} is not well formed")]
    Stream {
        /// Which one.
        index: usize,
    },
    /// A list of ranks that is not well formed.
    #[error("the rank list of cohort {cohort} is not well formed")]
    Ranks {
        /// Of which cohort.
        cohort: usize,
    },
    /// A cohort whose streams do not match its symbols' lanes.
    #[error("cohort {cohort} has {have} streams where its symbols need {need}")]
    Lanes {
        /// Of which cohort.
        cohort: usize,
        /// How many there are.
        have: usize,
        /// How many there should be.
        need: usize,
    },
    /// Functions of the rank that are not over the ranks they should be, or for numbers that are not there.
    #[error("what depends on the rank in lane {lane} of cohort {cohort} is not well formed")]
    Numbers {
        /// Of which cohort.
        cohort: usize,
        /// Of which lane.
        lane: usize,
    },
    /// A thread of a rank that has no number as a member: it would be beyond 32 bits, or the rank is not in the world.
    #[error("thread {thread} of rank {rank} cannot be numbered in a world of {world} ranks")]
    Member {
        /// Which thread.
        thread: u32,
        /// Of which rank.
        rank: u32,
        /// How many ranks there are.
        world: u32,
    },
    /// Recordings of runs with different numbers of ranks.
    #[error("one part is of a run with {mine} ranks, the other of one with {theirs}")]
    Worlds {
        /// Ranks of the first.
        mine: u32,
        /// Ranks of the second.
        theirs: u32,
    },
    /// The same thread of the same rank was recorded twice.
    #[error("thread {thread} of rank {rank} is recorded twice")]
    Overlap {
        /// Which thread.
        thread: u32,
        /// Of which rank.
        rank: u32,
    },
    /// Side lanes that are not in order, twice there, or not one for each symbol.
    #[error("the side lanes of cohort {cohort} are not well formed")]
    Side {
        /// Of which cohort.
        cohort: usize,
    },
    /// A parcel that is not what was asked for.
    #[error("{have} {what} came where {need} were asked for")]
    Parcel {
        /// Of what.
        what: &'static str,
        /// How many there are.
        have: usize,
        /// How many there should be.
        need: usize,
    },
    /// Call stacks that do not hold together, or the lack of one that a symbol refers to.
    #[error("{}", bad_site(*.symbol))]
    Site {
        /// Which symbol, if it is one.
        symbol: Option<usize>,
    },
    /// Two call stacks, or two modules, have one hash.
    #[error("two different call stacks have the same hash of 64 bits, by chance; trace without call stacks")]
    Clash,
    /// Holding functions of the rank against their ranks takes more steps than were allowed.
    #[error("what depends on the rank takes more work to check than its size allows")]
    TooMuchWork,
}

fn bad_site(symbol: Option<usize>) -> String {
    match symbol {
        Some(symbol) => format!("the call stack of symbol {symbol} is missing"),
        None => "a call stack is not well formed".into(),
    }
}

impl From<TooMuch> for Error {
    fn from(_: TooMuch) -> Error {
        Error::TooMuchWork
    }
}

/// How closely a bundle is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Everything.
    All,
    /// Blocks of streams are not unpacked ([`Stream::validate_but_blocks`]).
    ButBlocks,
}

impl Bundle {
    /// The recording of one rank of a world of so many (0: not known), a cohort a thread. Equal streams are stored
    /// once, threads that never called anything are kept.
    pub fn of_rank(
        (rank, world): (u32, u32),
        symbols: Vec<SymbolEntry>,
        threads: Vec<ThreadPart>,
    ) -> Result<Bundle, Error> {
        let mut bundle = Bundle { world, symbols, ..Bundle::default() };
        let mut seen_streams: HashMap<Hash, u32> = HashMap::new();
        let mut seen_threads = HashSet::new();
        for mut part in threads {
            let cohort = bundle.cohorts.len();
            if !seen_threads.insert(part.thread) {
                return Err(Error::Overlap { thread: part.thread, rank });
            }
            let member = member(world, rank, part.thread);
            let member = member.ok_or(Error::Member { thread: part.thread, rank, world })?;
            if !part.structure.is_valid() {
                return Err(Error::Structure { index: cohort });
            }
            let (have, need) = (part.times.len(), part.structure.own_lanes());
            if have != need {
                return Err(Error::Lanes { cohort, have, need });
            }
            let mut lanes = Vec::new();
            let mut add = |stream: Stream, used: u64| {
                let stream = normal(&stream);
                let next = bundle.streams.len() as u32;
                let stream = *seen_streams.entry(hash::of_stream(&stream)).or_insert_with(|| {
                    bundle.streams.push(stream);
                    next
                });
                lanes.push(Lane::Same { stream, used });
            };
            for (stream, used) in part.times {
                add(stream, used);
            }
            for symbol in part.structure.symbols() {
                let entry = get(&bundle.symbols, "symbol", symbol)?;
                let streams = part.lanes.get_mut(symbol as usize).map(std::mem::take).unwrap_or_default();
                if streams.len() != usize::from(entry.lanes) {
                    return Err(Error::Lanes { cohort, have: streams.len(), need: entry.lanes.into() });
                }
                let lengths = part.lengths.get(symbol as usize);
                for (lane, stream) in streams.into_iter().enumerate() {
                    add(stream, lengths.and_then(|lengths| lengths.get(lane)).copied().unwrap_or(0));
                }
            }
            let structure = match bundle.structures.iter().position(|s| *s == part.structure) {
                Some(known) => known,
                None => {
                    bundle.structures.push(part.structure);
                    bundle.structures.len() - 1
                }
            };
            bundle.cohorts.push(Cohort {
                ranks: RankList::single(member),
                structure: structure as u32,
                lanes,
                sides: Vec::new(),
                digest: blend(member, part.digest),
            });
        }
        Ok(bundle)
    }

    /// The cohort that this thread of this rank is in.
    pub fn cohort_of(&self, rank: u32, thread: u32) -> Option<&Cohort> {
        let member = self.member(rank, thread)?;
        self.cohorts.iter().find(|c| c.ranks.contains(member))
    }

    /// The stream that a member has in a lane. Where it is the same for all of the cohort it is only lent.
    pub fn stream_of(&self, lane: &Lane, member: u32) -> Option<Cow<'_, Stream>> {
        let (stream, own) = lane.of_rank(member)?;
        self.with_own(stream, own)
    }

    /// A stream with numbers of a rank's own, by place.
    pub fn with_own(&self, stream: u32, own: Vec<(u32, i64)>) -> Option<Cow<'_, Stream>> {
        let stream = self.streams.get(stream as usize)?;
        if own.is_empty() {
            return Some(Cow::Borrowed(stream));
        }
        let mut own = own.into_iter().peekable();
        let number = |place, number| own.next_if(|own| own.0 == place).map_or(number, |own| own.1);
        Some(Cow::Owned(template::with_numbers(stream, number)))
    }

    /// The lanes of a cohort's symbols, without the times of its loops.
    pub fn values_of<'a>(&self, cohort: &'a Cohort) -> &'a [Lane] {
        let own = self.structures.get(cohort.structure as usize).map_or(0, Structure::own_lanes);
        cohort.lanes.get(own..).unwrap_or_default()
    }

    /// The tree of a cohort as one of its ranks went through it: its times. `None` where the structure has no loops.
    pub fn times_of(&self, cohort: &Cohort, rank: u32) -> Option<(&Loops, Vec<Option<Cow<'_, Stream>>>)> {
        let loops = self.structures.get(cohort.structure as usize)?.loops()?;
        let times = cohort.lanes.iter().take(loops.nodes.len());
        Some((loops, times.map(|lane| self.stream_of(lane, rank)).collect()))
    }

    /// How often each symbol of a cohort happened on one of its ranks, in the order of its lanes.
    pub fn counts(&self, cohort: &Cohort, rank: u32) -> Vec<(u32, u64)> {
        let Some(structure) = self.structures.get(cohort.structure as usize) else { return Vec::new() };
        let Some((loops, times)) = self.times_of(cohort, rank) else {
            return structure.rules().map(|rules| rules.open().counts()).unwrap_or_default();
        };
        let mut counts: Vec<(u32, u64)> = loops.symbols().into_iter().map(|symbol| (symbol, 0)).collect();
        let place: HashMap<u32, usize> = counts.iter().enumerate().map(|(at, c)| (c.0, at)).collect();
        let totals = loops.totals(|node| times.get(node)?.as_deref());
        for (node, (_, runs)) in loops.nodes.iter().zip(totals) {
            if let Node::Event(symbol) = node {
                let count = &mut counts[place[symbol]].1;
                *count = count.saturating_add(runs);
            }
        }
        counts
    }

    /// Whether ranks of a cohort differ in how often they made a call.
    pub fn counts_differ(&self, cohort: &Cohort) -> bool {
        let own = self.structures.get(cohort.structure as usize).map_or(0, Structure::own_lanes);
        cohort.lanes.iter().take(own).any(|lane| matches!(lane, Lane::Varied(_)))
    }

    /// Holds everything that came from outside against what the rest of the code relies on.
    pub fn validate(&self) -> Result<(), Error> {
        self.validate_within(&mut Checks::unbounded(), Depth::All)
    }

    /// The same with no more work on ranks than `checks` allows.
    pub fn validate_within(&self, checks: &mut Checks, depth: Depth) -> Result<(), Error> {
        self.sites.validate(&self.symbols)?;
        for (index, structure) in self.structures.iter().enumerate() {
            if !structure.is_valid() {
                return Err(Error::Structure { index });
            }
            for symbol in structure.mentioned() {
                get(&self.symbols, "symbol", symbol)?;
            }
        }
        for (index, stream) in self.streams.iter().enumerate() {
            let checked = match depth {
                Depth::All => stream.validate(),
                Depth::ButBlocks => stream.validate_but_blocks(),
            };
            checked.map_err(|_| Error::Stream { index })?;
        }
        // By stream, once asked for: how many places for numbers it has.
        let mut places: HashMap<u32, u32> = HashMap::new();
        let needed: Vec<usize> = self.structures.iter().map(|s| lanes_of(s, &self.symbols)).collect();
        let mut members: Vec<&RankList> = Vec::new();
        let mut total = 0u64;
        for (index, cohort) in self.cohorts.iter().enumerate() {
            cohort.ranks.validate().map_err(|_| Error::Ranks { cohort: index })?;
            let need = *get(&needed, "structure", cohort.structure)?;
            if cohort.lanes.len() != need {
                return Err(Error::Lanes { cohort: index, have: cohort.lanes.len(), need });
            }
            total = total.saturating_add(cohort.ranks.len());
            if cohort.ranks.parts.is_empty() || total > MOST_RANKS {
                return Err(Error::Ranks { cohort: index });
            }
            self.check_sides(index, cohort)?;
            for (at, lane) in cohort.all_lanes().enumerate() {
                for stream in lane.streams() {
                    get(&self.streams, "stream", stream)?;
                }
                if let Lane::Varied(variants) = lane
                    && !self.are_sound(
                        variants,
                        &cohort.ranks,
                        self.may_lack_ranks(cohort),
                        &mut places,
                        checks,
                    )?
                {
                    return Err(Error::Numbers { cohort: index, lane: at });
                }
            }
            members.push(&cohort.ranks);
        }
        if !checks.are_apart(&members)? {
            let mut all: Vec<u32> = members.iter().flat_map(|list| list.iter()).collect();
            all.sort_unstable();
            let twice = all.windows(2).find(|pair| pair[0] == pair[1]).map_or(0, |pair| pair[0]);
            let (rank, thread) = self.place_of(twice);
            return Err(Error::Overlap { thread, rank });
        }
        Ok(())
    }

    /// Ranks of loops that never come by a symbol have no numbers of it.
    fn may_lack_ranks(&self, cohort: &Cohort) -> bool {
        self.structures.get(cohort.structure as usize).is_some_and(|s| s.loops().is_some())
    }

    /// Every rank is in one variant, or in none if it `may_lack` numbers; variants go by their first rank, and every
    /// number told by rank has its place in the stream.
    fn are_sound(
        &self,
        variants: &[Variant],
        ranks: &RankList,
        may_lack: bool,
        places: &mut HashMap<u32, u32>,
        checks: &mut Checks,
    ) -> Result<bool, Error> {
        if variants.iter().any(|v| v.ranks.validate().is_err()) || variants.is_empty() {
            return Ok(false);
        }
        let groups: Vec<&RankList> = variants.iter().map(|v| &v.ranks).collect();
        let all: u64 = groups.iter().map(|group| group.len()).fold(0, u64::saturating_add);
        let in_order = groups.is_sorted_by_key(|group| group.parts.first().map(|part| part.start));
        if !in_order || all < ranks.len() && !may_lack || !checks.are_groups_of(&groups, ranks)? {
            return Ok(false);
        }
        for variant in variants {
            let places = *places.entry(variant.stream).or_insert_with(|| {
                let numbers = self.streams.get(variant.stream as usize).map(template::numbers);
                numbers.map_or(0, |numbers| numbers.len() as u32)
            });
            if !variant.numbers.is_sorted_by(|a, b| a.place < b.place) {
                return Ok(false);
            }
            for number in &variant.numbers {
                if number.place >= places || !checks.is_over(&number.values, &variant.ranks)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The final form: one numbering whatever the order of merging, unused entries gone, and rules that several
    /// structures have in common made equal in all of them, so that a file stores them once (paper 3.5.2).
    ///
    /// Cohorts go by lowest member; structures, symbols and streams by first use in that order.
    pub fn canonical(&mut self) -> Result<(), Error> {
        // Blocks stay as they came. Who reads the file looks into them.
        self.validate_within(&mut Checks::unbounded(), Depth::ButBlocks)?;
        let mut table = StreamSet::new(std::mem::take(&mut self.streams));
        self.join_alike(&mut table);
        self.cohorts.sort_by_key(|c| c.ranks.first());
        let cohorts = self.cohorts.iter_mut();
        let structures = renumber(cohorts.map(|c| &mut c.structure), self.structures.len());
        self.structures = pick(std::mem::take(&mut self.structures), &structures);
        for lane in self.cohorts.iter_mut().flat_map(Cohort::all_lanes_mut) {
            *lane = std::mem::replace(lane, Lane::same(0)).canonical(&mut table);
        }
        self.streams = table.streams;
        self.number_streams();

        let mut used: Vec<Vec<u32>> = self.structures.iter().map(Structure::symbols).collect();
        let old: Vec<Vec<u32>> = used.clone();
        let mut order = renumber(used.iter_mut().flatten(), self.symbols.len());
        let new_of: HashMap<u32, u32> = old.into_iter().flatten().zip(used.into_iter().flatten()).collect();
        // A symbol that no structure uses still carries a tally.
        let kept: HashSet<u32> = order.iter().copied().collect();
        let mut rest: Vec<u32> = (0..self.symbols.len() as u32).filter(|s| !kept.contains(s)).collect();
        rest.sort_by(|a, b| {
            let symbol = |i: u32| &self.symbols[i as usize];
            let key = |i: u32| (&symbol(i).bytes, symbol(i).lanes, symbol(i).site);
            key(*a).cmp(&key(*b))
        });
        order.extend(rest);
        self.symbols = pick(std::mem::take(&mut self.symbols), &order);
        self.symbols.iter_mut().for_each(|symbol| symbol.classes.settle());
        self.sites.check_join(&Sites::default())?;
        self.sites.keep_used(&self.symbols);
        for structure in &mut self.structures {
            *structure = structure.map_symbols(|t| new_of[&t]);
        }
        self.share_rules();
        Ok(())
    }
}

/// Rules that several structures have in common are looked for among so many items at a time, of structures that follow one
/// another: to look at each takes about 100 bytes. So it takes no more memory for ranks that are all different.
const SHARED_ITEMS: usize = 1 << 18;

impl Bundle {
    fn share_rules(&mut self) {
        let rules = |structure: &mut Structure| match structure {
            Structure::Rules(rules) => Some(std::mem::take(rules)),
            Structure::Loops(_) => None,
        };
        let mut rest: Vec<Rules> = self.structures.iter_mut().filter_map(rules).collect();
        let alone = rest.len() < 2;
        let mut done = Vec::with_capacity(rest.len());
        while !rest.is_empty() {
            let mut items = 0;
            let count = rest.iter().take_while(|rules| {
                items += rules.items();
                items <= SHARED_ITEMS
            });
            let after = rest.split_off(count.count().max(1));
            let grammars: Vec<Grammar> = rest.iter_mut().map(Rules::take_open).collect();
            let shared = match alone {
                true => grammars,
                false => {
                    let forest = grammar::join(&grammars);
                    drop(grammars);
                    forest.split()
                }
            };
            done.extend(rest.iter().zip(shared).map(|(rules, shared)| rules.replaced(in_preorder(shared))));
            rest = after;
        }
        let mut done = done.into_iter();
        for structure in &mut self.structures {
            if let Structure::Rules(rules) = structure {
                *rules = done.next().unwrap_or_default();
            }
        }
    }

    /// Numbers streams by first use and drops those without. Those of side lanes alone come last.
    pub fn number_streams(&mut self) {
        let (mut lanes, mut sides) = (Vec::new(), Vec::new());
        for cohort in &mut self.cohorts {
            lanes.extend(&mut cohort.lanes);
            sides.extend(cohort.sides.iter_mut().flat_map(|side| side.lanes.iter_mut().flatten()));
        }
        let all = lanes.into_iter().chain(sides);
        let streams = renumber(all.flat_map(Lane::streams_mut), self.streams.len());
        self.streams = pick(std::mem::take(&mut self.streams), &streams);
    }
}

fn get<'a, T>(list: &'a [T], what: &'static str, index: u32) -> Result<&'a T, Error> {
    list.get(index as usize).ok_or(Error::Index { what, index: index.into(), len: list.len() })
}

/// Numbers what the slots refer to by first appearance, in place; returns the old number of each new one.
fn renumber<'a>(uses: impl Iterator<Item = &'a mut u32>, len: usize) -> Vec<u32> {
    let mut new_of: Vec<Option<u32>> = vec![None; len];
    let mut order = Vec::new();
    for slot in uses {
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
    // Most are one number.
    if let Some(same) = stream.as_constant().map(Stream::constant).filter(|same| same == stream) {
        return same;
    }
    let shape = preorder(&stream.shape);
    let mut new_of: HashMap<u32, u32> = HashMap::new();
    let mut terms: Vec<Term> = Vec::new();
    for (old, _) in shape.counts() {
        if let Some(&term) = stream.terms.get(old as usize) {
            new_of.insert(old, terms.len() as u32);
            terms.push(term);
        }
    }
    // Streams are moved from merge to merge: what they do not need would stay with them.
    terms.shrink_to_fit();
    // An index without a term stays out of range and is found by `validate`.
    let shape = shape.map_terminals(|old| new_of.get(&old).copied().unwrap_or(u32::MAX));
    let mut normal = Stream { terms, shape, blocks: stream.blocks.clone() };
    normal.tidy_blocks();
    normal
}

/// The same grammar with its rules numbered as a reader meets them, depth first, and without unused ones.
pub fn preorder(grammar: &Grammar) -> Grammar {
    preordered(grammar).into_owned()
}

fn in_preorder(grammar: Grammar) -> Grammar {
    match preordered(&grammar) {
        Cow::Borrowed(_) => grammar,
        Cow::Owned(other) => other,
    }
}

/// The same without a copy where they are numbered so already.
pub fn preordered(grammar: &Grammar) -> Cow<'_, Grammar> {
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
    if order.len() == grammar.rules.len() && order.iter().zip(0..).all(|(rule, number)| *rule == number) {
        return Cow::Borrowed(grammar);
    }
    let renamed = |item: &Item| Item {
        symbol: match item.symbol {
            Symbol::Rule(r) => Symbol::Rule(new_of[r as usize].unwrap_or(0)),
            terminal => terminal,
        },
        count: item.count,
    };
    Cow::Owned(Grammar {
        rules: order.iter().map(|&r| grammar.rules[r as usize].iter().map(renamed).collect()).collect(),
    })
}

#[cfg(test)]
mod tests;
