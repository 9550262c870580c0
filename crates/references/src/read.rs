//! Reading references back, in order, from the folded form.

use std::collections::{BTreeMap, HashMap};

use refrain_fold::bundle::sites::{Frame, NO_MODULE};
use refrain_fold::bundle::{Bundle, Structure, Walk, blend};

use crate::Error;
use crate::block::{Access, Block, Reference};
use crate::stretch::{Chunks, Pair, Unpacking, key};
use crate::thread::{MARK, STRETCH, digested, signature};

/// A reference as it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub address: u64,
    pub access: Access,
    pub size: u32,
    /// Where the instruction lies: so far into this module, or, with [`NO_MODULE`], at this address.
    pub place: Frame,
    /// Which block, by its number in the bundle, and which of its references.
    pub symbol: u32,
    pub nth: u16,
}

/// What a thread did next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    Reference(Event),
    /// A call was recorded, of this thread among those of the calls.
    Call(u32),
}

/// What a symbol stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Symbol {
    Block {
        block: Block,
        /// Where it begins.
        start: Frame,
    },
    /// References that are in chunks.
    Stretch,
    /// A call was recorded.
    Mark,
}

/// Whether calls are marked in a bundle.
pub fn has_marks(bundle: &Bundle) -> bool {
    bundle.symbols.iter().any(|symbol| &*symbol.bytes == MARK)
}

/// The symbols of a bundle.
pub fn symbols(bundle: &Bundle) -> Result<Vec<Symbol>, Error> {
    let read = |(symbol, entry): (usize, &refrain_fold::bundle::SymbolEntry)| {
        if &*entry.bytes == STRETCH {
            return match entry.lanes {
                1 => Ok(Symbol::Stretch),
                _ => Err(Error::Block { symbol, why: "a stretch has one number" }),
            };
        }
        if &*entry.bytes == MARK {
            return match entry.lanes {
                1 => Ok(Symbol::Mark),
                _ => Err(Error::Block { symbol, why: "a mark has one number" }),
            };
        }
        let block = Block::from_bytes(&entry.bytes).map_err(|why| Error::Block { symbol, why })?;
        if block.lanes().filter(|has| *has).count() != usize::from(entry.lanes) {
            return Err(Error::Block { symbol, why: "it has not one lane for each reference" });
        }
        let start = match bundle.sites.stacks.get(&entry.site) {
            Some(stack) if block.pc == 0 => stack.frame,
            _ => Frame { module: NO_MODULE, offset: block.pc },
        };
        Ok(Symbol::Block { block, start })
    };
    bundle.symbols.iter().enumerate().map(read).collect()
}

/// The first executions of blocks, and stretches, of a thread.
struct Before {
    executions: u64,
    /// How often each symbol comes among them.
    counts: HashMap<u32, u64>,
    references: u64,
    /// Of these, in chunks.
    aside: u64,
}

/// The references of one thread, in order.
pub struct References<'a> {
    bundle: &'a Bundle,
    /// Its cohort, and its number there.
    cohort: usize,
    member: u32,
    walk: Walk<'a>,
    symbols: Vec<Symbol>,
    signatures: Vec<u64>,
    /// Of each symbol with fetches, which references have lanes.
    laned: Vec<Box<[u16]>>,
    symbol: u32,
    /// The next reference of the block that runs, its lane, and how many references it has.
    nth: u16,
    lane: u16,
    count: u16,
    /// Where the block that runs begins, known from its first fetch.
    start: u64,
    /// References of the stretch that are still to come.
    aside: u64,
    /// Marks may follow the last of them.
    in_stretch: bool,
    /// The symbol that is a mark, and its signature.
    mark: Option<(u32, u64)>,
    unpacking: Unpacking,
    /// By signature.
    named: HashMap<u64, u32>,
    read: u64,
    digest: u64,
    over: bool,
}

impl std::fmt::Debug for References<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("References").field("read", &self.read).finish_non_exhaustive()
    }
}

impl<'a> References<'a> {
    /// `None` where nothing is recorded of that thread of that rank. `chunks` is where its stretches are.
    pub fn new(
        bundle: &'a Bundle,
        (rank, thread): (u32, u32),
        chunks: Option<Chunks>,
    ) -> Result<Option<References<'a>>, Error> {
        let Some(member) = bundle.member(rank, thread) else { return Ok(None) };
        let Some(cohort) = bundle.cohorts.iter().position(|cohort| cohort.ranks.contains(member)) else {
            return Ok(None);
        };
        let walk = Walk::of(bundle, cohort, member)?;
        let signatures: Vec<u64> =
            bundle.symbols.iter().map(|symbol| signature(&symbol.bytes, symbol.site)).collect();
        let named = signatures.iter().copied().zip(0..).collect();
        let symbols = symbols(bundle)?;
        let mark = symbols.iter().position(|symbol| *symbol == Symbol::Mark);
        let mark = mark.map(|at| (at as u32, signatures[at]));
        Ok(Some(References {
            bundle,
            cohort,
            member,
            walk,
            laned: symbols.iter().map(laned).collect(),
            symbols,
            signatures,
            symbol: 0,
            nth: 0,
            lane: 0,
            count: 0,
            start: 0,
            aside: 0,
            in_stretch: false,
            mark,
            unpacking: Unpacking::new(chunks, key((rank, bundle.world), thread)),
            named,
            read: 0,
            digest: 0,
            over: false,
        }))
    }

    /// Passes over the first references, up to this one or the end: the number of the next. To be asked before anything is
    /// read. Blocks are passed over in the folded form, chunks up to
    /// where reading can begin. There is no digest afterwards.
    pub fn skip_to(&mut self, number: u64) -> Result<u64, Error> {
        if number > 0 && self.is_sought() {
            let Before { executions, counts, references, aside } = self.before(number)?;
            let count = |symbol: u32| counts.get(&symbol).copied().unwrap_or(0);
            self.walk = Walk::from(
                self.bundle,
                self.cohort,
                self.member,
                executions,
                |symbol, _| count(symbol),
                count,
            )?;
            self.aside = aside - self.unpacking.seek(aside)?.min(aside);
            while self.aside > 0 || self.is_mark_next(aside > 0)? {
                self.next_aside()?;
            }
            self.read = references;
        }
        while self.read < number {
            match self.next() {
                Some(event) => event.map(drop)?,
                None => break,
            }
        }
        Ok(self.read)
    }

    /// Whether places are found in the folded form. In loops whose times have no order, reading is faster.
    fn is_sought(&self) -> bool {
        let structure = self.bundle.cohorts[self.cohort].structure;
        matches!(self.bundle.structures.get(structure as usize), Some(Structure::Rules(_)))
    }

    /// The executions before reference `number`: the most of which have no more references than that, but none without any right
    /// before it.
    fn before(&self, number: u64) -> Result<Before, Error> {
        let mut stretches = Vec::new();
        let is_stretch = |symbol: u32| matches!(self.symbols.get(symbol as usize), Some(Symbol::Stretch));
        let mut only = Walk::only(self.bundle, self.cohort, self.member, is_stretch, u64::MAX)?;
        while only.next_symbol().is_some() {
            let count = only.value(0).and_then(|count| u64::try_from(count).ok());
            stretches.push(count.ok_or(Error::Address { at: 0 })?);
        }
        let first = |executions: u64| -> Result<Before, Error> {
            let counts = Walk::before(self.bundle, self.cohort, self.member, executions)?;
            let (mut references, mut aside) = (0u64, 0);
            for &(symbol, count) in &counts {
                let of_symbol = match self.symbols.get(symbol as usize) {
                    Some(Symbol::Block { block, .. }) => count.saturating_mul(block.references.len() as u64),
                    Some(Symbol::Stretch) => {
                        aside = stretches.iter().take(count as usize).fold(0, |all, n| n.saturating_add(all));
                        aside
                    }
                    Some(Symbol::Mark) | None => 0,
                };
                references = references.saturating_add(of_symbol);
            }
            Ok(Before { executions, counts: counts.into_iter().collect(), references, aside })
        };
        let all = self.bundle.counts(&self.bundle.cohorts[self.cohort], self.member);
        let all = all.iter().fold(0u64, |all, (_, count)| all.saturating_add(*count));
        // So many are too few, or none; so many are enough, or all.
        let (mut few, mut many) = ((0, 0), (all, first(all)?.references));
        let mut halve = false;
        while few.1 < number && many.0 - few.0 > 1 {
            let span = many.0 - few.0;
            // Where it is if all executions had as many, every other time: mostly it is near.
            let share = (number - few.1) as f64 / (many.1.saturating_sub(few.1).max(1)) as f64;
            let step = if halve { span / 2 } else { (span as f64 * share) as u64 };
            halve = !halve;
            let middle = few.0 + step.clamp(1, span - 1);
            let references = first(middle)?.references;
            *(if references < number { &mut few } else { &mut many }) = (middle, references);
        }
        let low = if few.1 < number { many.0 } else { 0 };
        let found = first(low)?;
        if found.references <= number { Ok(found) } else { first(low.saturating_sub(1)) }
    }

    /// Of what was read so far, as it was taken when it happened.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// References read so far.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// The next reference or call.
    #[inline]
    pub fn next_item(&mut self) -> Option<Result<Item, Error>> {
        if self.over {
            return None;
        }
        let next = self.step();
        self.over = !matches!(next, Ok(Some(_)));
        next.transpose()
    }

    #[inline]
    fn step(&mut self) -> Result<Option<Item>, Error> {
        loop {
            if self.aside > 0 {
                return self.next_aside().map(Some);
            }
            if self.in_stretch {
                if self.is_mark_next(true)? {
                    return self.next_aside().map(Some);
                }
                self.in_stretch = false;
            }
            if self.nth < self.count {
                let address = match self.has_lane() {
                    true => Some(self.walk.value(self.lane).ok_or(Error::Address { at: self.read })? as u64),
                    false => None,
                };
                if let (Some((mark, _)), Some(thread)) = (self.mark, address)
                    && mark == self.symbol
                {
                    self.nth += 1;
                    return self.marked(thread).map(Some);
                }
                return self.event(address).map(Item::Reference).map(Some);
            }
            let Some(symbol) = self.walk.next_symbol() else { return Ok(None) };
            self.symbol = symbol;
            (self.nth, self.lane, self.count) = (0, 0, 0);
            match self.symbols.get(symbol as usize) {
                Some(Symbol::Block { block, .. }) => {
                    self.count = block.references.len() as u16;
                    if self.count == 0 {
                        self.digest = digested(self.digest, self.signatures[symbol as usize]);
                    }
                }
                Some(Symbol::Mark) => self.count = 1,
                Some(Symbol::Stretch) => {
                    let count = self.walk.value(0).and_then(|count| u64::try_from(count).ok());
                    self.aside = count.ok_or(Error::Address { at: self.read })?;
                    self.in_stretch = self.aside > 0;
                }
                None => return Err(Error::Address { at: self.read }),
            }
        }
    }

    /// Whether a mark follows the references of a stretch, in which reading is or was.
    fn is_mark_next(&mut self, in_stretch: bool) -> Result<bool, Error> {
        match self.mark {
            Some((symbol, signature)) if in_stretch => Ok(self.unpacking.is_next(symbol, signature)?),
            _ => Ok(false),
        }
    }

    fn next_aside(&mut self) -> Result<Item, Error> {
        if self.aside > 0 && self.nth < self.count && !self.has_lane() {
            self.aside -= 1;
            return self.event(None).map(Item::Reference);
        }
        loop {
            match self.unpacking.next()? {
                Some(Pair::Reference { symbol, lane, address }) => {
                    let bad = Error::Stretch { at: self.read };
                    let block = match self.symbols.get(symbol as usize) {
                        Some(Symbol::Block { block, .. }) => block,
                        Some(Symbol::Mark) if lane == 0 => return self.marked(address),
                        _ => return Err(bad),
                    };
                    let laned = &self.laned[symbol as usize];
                    let nth = if laned.is_empty() { Some(&lane) } else { laned.get(usize::from(lane)) };
                    let Some(&nth) = nth else { return Err(bad) };
                    (self.symbol, self.nth, self.lane) = (symbol, nth, lane);
                    self.count = block.references.len() as u16;
                    // A damaged file may have more references than it says.
                    self.aside = self.aside.checked_sub(1).ok_or(bad)?;
                    return self.event(Some(address)).map(Item::Reference);
                }
                Some(Pair::Named(signature)) => {
                    let symbol = self.named.get(&signature).ok_or(Error::Stretch { at: self.read })?;
                    self.unpacking.name(*symbol);
                }
                None => return Err(Error::Stretch { at: self.read }),
            }
        }
    }

    /// A call of this thread among those of the calls.
    fn marked(&mut self, thread: u64) -> Result<Item, Error> {
        let (Some((_, signature)), Ok(number)) = (self.mark, u32::try_from(thread)) else {
            return Err(Error::Stretch { at: self.read });
        };
        self.digest = digested(digested(self.digest, signature), thread);
        Ok(Item::Call(number))
    }

    /// Whether the next reference of the block has a lane.
    #[inline]
    fn has_lane(&self) -> bool {
        let laned = &self.laned[self.symbol as usize];
        laned.is_empty() || laned.get(usize::from(self.lane)) == Some(&self.nth)
    }

    /// The next reference of the block; without an address, a fetch that follows the first.
    #[inline]
    fn event(&mut self, address: Option<u64>) -> Result<Event, Error> {
        let (symbol, nth) = (self.symbol, self.nth);
        let Some(Symbol::Block { block, start }) = self.symbols.get(symbol as usize) else {
            return Err(Error::Stretch { at: self.read });
        };
        let Some(&Reference { at, access, size }) = block.references.get(usize::from(nth)) else {
            return Err(Error::Stretch { at: self.read });
        };
        let place = Frame { offset: start.offset.wrapping_add(u64::from(at)), ..*start };
        if nth == 0 {
            self.digest = digested(self.digest, self.signatures[symbol as usize]);
        }
        if let Some(address) = address {
            self.lane += 1;
            self.digest = digested(self.digest, address);
            if access == Access::Fetch {
                self.start = address.wrapping_sub(at.into());
            }
        }
        let address = address.unwrap_or_else(|| self.start.wrapping_add(at.into()));
        self.read += 1;
        self.nth += 1;
        Ok(Event { address, access, size, place, symbol, nth })
    }
}

/// Of a block with fetches, which references have lanes; nothing where all have.
fn laned(symbol: &Symbol) -> Box<[u16]> {
    let Symbol::Block { block, .. } = symbol else { return Box::default() };
    let with = (0..).zip(block.lanes()).filter(|(_, has)| *has).map(|(nth, _)| nth).collect::<Box<[u16]>>();
    if with.len() == block.references.len() { Box::default() } else { with }
}

impl Iterator for References<'_> {
    type Item = Result<Event, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            return match self.next_item()? {
                Ok(Item::Reference(event)) => Some(Ok(event)),
                Ok(Item::Call(_)) => continue,
                Err(error) => Some(Err(error)),
            };
        }
    }
}

/// What [`check`] found.
#[derive(Debug, Default)]
pub struct Checked {
    pub references: u64,
    pub threads: u64,
    /// How many calls are marked, by rank and by thread among those of the calls.
    pub calls: BTreeMap<(u32, u32), u64>,
    /// Of each set of threads that have not done what was recorded: one of them.
    pub wrong: Vec<(u32, u32)>,
}

/// Holds every thread's references against the digests that were taken when they happened. `chunks` opens those of the trace;
/// `progress` is told how many references have been read.
pub fn check(
    bundle: &Bundle,
    mut chunks: impl FnMut() -> Result<Option<Chunks>, Error>,
    mut progress: impl FnMut(u64),
) -> Result<Checked, Error> {
    let mut checked = Checked::default();
    for cohort in &bundle.cohorts {
        let mut sum = 0u64;
        for member in cohort.ranks.iter() {
            let (rank, thread) = bundle.place_of(member);
            let Some(mut references) = References::new(bundle, (rank, thread), chunks()?)? else { continue };
            while let Some(item) = references.next_item() {
                if let Item::Call(of) = item? {
                    *checked.calls.entry((rank, of)).or_default() += 1;
                } else if references.read.is_multiple_of(1 << 16) {
                    progress(checked.references + references.read);
                }
            }
            sum = sum.wrapping_add(blend(member, references.digest));
            checked.references += references.read;
            checked.threads += 1;
        }
        if sum != cohort.digest {
            checked.wrong.extend(cohort.ranks.first().map(|member| bundle.place_of(member)));
        }
    }
    Ok(checked)
}
