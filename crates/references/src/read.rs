//! Reading references back, in order, from the folded form.

use refrain_fold::bundle::sites::{Frame, NO_MODULE};
use refrain_fold::bundle::{Bundle, Walk, blend};

use crate::Error;
use crate::block::{Access, Block};
use crate::thread::{digested, signature};

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

/// The blocks of a bundle, by symbol.
pub fn blocks(bundle: &Bundle) -> Result<Vec<Block>, Error> {
    let block = |(symbol, bytes)| Block::from_bytes(bytes).map_err(|why| Error::Block { symbol, why });
    let blocks: Vec<Block> = bundle
        .symbols
        .iter()
        .map(|symbol| &*symbol.bytes)
        .enumerate()
        .map(block)
        .collect::<Result<_, _>>()?;
    for (symbol, (block, entry)) in blocks.iter().zip(&bundle.symbols).enumerate() {
        if block.references.len() != usize::from(entry.lanes) {
            return Err(Error::Block { symbol, why: "it has not one lane for each reference" });
        }
    }
    Ok(blocks)
}

/// Where the block of a symbol begins.
pub fn start(bundle: &Bundle, symbol: u32, block: &Block) -> Frame {
    let site = bundle.symbols.get(symbol as usize).map_or(0, |symbol| symbol.site);
    match bundle.sites.stacks.get(&site) {
        Some(stack) if block.pc == 0 => stack.frame,
        _ => Frame { module: NO_MODULE, offset: block.pc },
    }
}

/// The references of one thread, in order.
#[derive(Debug)]
pub struct References<'a> {
    walk: Walk<'a>,
    blocks: Vec<(Block, Frame)>,
    symbol: u32,
    /// The next one of the block that runs.
    nth: u16,
    count: u16,
    read: u64,
}

impl<'a> References<'a> {
    /// `None` where nothing is recorded of that thread of that rank.
    pub fn new(bundle: &'a Bundle, rank: u32, thread: u32) -> Result<Option<References<'a>>, Error> {
        let Some(walk) = Walk::new(bundle, rank, thread)? else { return Ok(None) };
        let blocks = blocks(bundle)?.into_iter().enumerate();
        let blocks = blocks.map(|(symbol, block)| {
            let start = start(bundle, symbol as u32, &block);
            (block, start)
        });
        Ok(Some(References { walk, blocks: blocks.collect(), symbol: 0, nth: 0, count: 0, read: 0 }))
    }
}

impl Iterator for References<'_> {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.nth == self.count {
            self.symbol = self.walk.next_symbol()?;
            self.nth = 0;
            self.count = self.blocks.get(self.symbol as usize)?.0.references.len() as u16;
        }
        let (block, start) = self.blocks.get(self.symbol as usize)?;
        let reference = block.references[usize::from(self.nth)];
        let Some(address) = self.walk.value(self.nth) else {
            self.count = self.nth;
            return Some(Err(Error::Address { at: self.read }));
        };
        let place = Frame { offset: start.offset.wrapping_add(u64::from(reference.at)), ..*start };
        let event = Event {
            address: address as u64,
            access: reference.access,
            size: reference.size,
            place,
            symbol: self.symbol,
            nth: self.nth,
        };
        self.nth += 1;
        self.read += 1;
        Some(Ok(event))
    }
}

/// The digest of one thread's references, as it was taken when they happened, and how many they are.
pub fn digest_of(bundle: &Bundle, rank: u32, thread: u32) -> Result<Option<(u64, u64)>, Error> {
    let Some(mut walk) = Walk::new(bundle, rank, thread)? else { return Ok(None) };
    let symbols: Vec<(u64, u16)> =
        bundle.symbols.iter().map(|symbol| (signature(&symbol.bytes, symbol.site), symbol.lanes)).collect();
    let (mut digest, mut count) = (0, 0);
    while let Some(symbol) = walk.next_symbol() {
        let &(signature, lanes) = symbols.get(symbol as usize).ok_or(Error::Address { at: count })?;
        digest = digested(digest, signature);
        for lane in 0..lanes {
            let address = walk.value(lane).ok_or(Error::Address { at: count })?;
            digest = digested(digest, address as u64);
            count += 1;
        }
    }
    Ok(Some((digest, count)))
}

/// Holds every thread's references against the digests that were taken when they happened: how many references there are, and
/// the cohorts that are not what was recorded, each by a member.
pub fn check(bundle: &Bundle) -> Result<(u64, Vec<(u32, u32)>), Error> {
    let (mut all, mut bad) = (0u64, Vec::new());
    for cohort in &bundle.cohorts {
        let mut sum = 0u64;
        for member in cohort.ranks.iter() {
            let (rank, thread) = bundle.place_of(member);
            let (digest, count) = digest_of(bundle, rank, thread)?.unwrap_or_default();
            sum = sum.wrapping_add(blend(member, digest));
            all = all.saturating_add(count);
        }
        if sum != cohort.digest {
            bad.extend(cohort.ranks.first().map(|member| bundle.place_of(member)));
        }
    }
    Ok((all, bad))
}
