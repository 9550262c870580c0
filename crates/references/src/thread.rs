//! What one thread does, folded as it happens.

use std::collections::HashMap;

use refrain_fold::bundle::{Bundle, Sites, Structure, SymbolEntry, Tally, ThreadPart};
use refrain_fold::loops::{self, Matching};
use refrain_fold::stream::{self, Stream};
use refrain_fold::{grammar, xxh64};

use crate::Error;
use crate::block::Block;

/// What the order of the blocks becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Folding {
    #[default]
    Rules,
    Loops,
}

#[derive(Debug, Clone)]
enum Order {
    Rules(grammar::Folder),
    Loops(loops::Folder),
}

#[derive(Debug, Clone)]
struct Symbol {
    bytes: Box<[u8]>,
    site: u64,
    signature: u64,
    /// Where its lanes begin.
    lanes: usize,
}

/// The recording of one thread.
#[derive(Debug, Clone)]
pub struct Thread {
    order: Order,
    symbols: Vec<Symbol>,
    known: HashMap<(Box<[u8]>, u64), u32>,
    /// Of all symbols, one behind the other.
    lanes: Vec<stream::Folder>,
    len: u64,
    digest: u64,
}

/// Brings a number into a digest. The order counts.
#[inline]
pub(crate) fn digested(digest: u64, number: u64) -> u64 {
    (digest.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What a symbol is in a digest.
pub(crate) fn signature(bytes: &[u8], site: u64) -> u64 {
    xxh64(bytes, site)
}

impl Thread {
    pub fn new(folding: Folding) -> Thread {
        let order = match folding {
            Folding::Rules => Order::Rules(grammar::Folder::new()),
            Folding::Loops => Order::Loops(loops::Folder::new(Matching::Elastic)),
        };
        Thread { order, symbols: Vec::new(), known: HashMap::new(), lanes: Vec::new(), len: 0, digest: 0 }
    }

    /// The number of a block at a site, for [`Thread::push`].
    pub fn symbol(&mut self, block: &Block, site: u64) -> u32 {
        let bytes: Box<[u8]> = block.to_bytes().into();
        let next = self.symbols.len() as u32;
        let number = *self.known.entry((bytes.clone(), site)).or_insert(next);
        if number == next {
            let signature = signature(&bytes, site);
            self.symbols.push(Symbol { bytes, site, signature, lanes: self.lanes.len() });
            self.lanes.resize_with(self.lanes.len() + block.references.len(), stream::Folder::new);
        }
        number
    }

    /// A block has run: one address for each of its references.
    #[inline]
    pub fn push(&mut self, symbol: u32, addresses: &[u64]) {
        let Symbol { signature, lanes, .. } = self.symbols[symbol as usize];
        match &mut self.order {
            Order::Rules(rules) => rules.push(symbol),
            Order::Loops(loops) => loops.push(symbol),
        }
        let mut digest = digested(self.digest, signature);
        for (lane, &address) in self.lanes[lanes..].iter_mut().zip(addresses) {
            lane.push(address as i64);
            digest = digested(digest, address);
        }
        self.digest = digest;
        self.len += addresses.len() as u64;
    }

    /// Where a symbol comes from, outermost spot first, said before it is first pushed: loops keep to it.
    pub fn define<S: Into<loops::Spot>>(&mut self, symbol: u32, path: impl IntoIterator<Item = S>) {
        if let Order::Loops(loops) = &mut self.order {
            loops.define(symbol, path);
        }
    }

    /// References so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let order = match &self.order {
            Order::Rules(rules) => rules.memory(),
            Order::Loops(loops) => loops.memory(),
        };
        let lanes: usize = self.lanes.iter().map(|lane| size_of::<stream::Folder>() + lane.memory()).sum();
        let symbols: usize = self.symbols.iter().map(|symbol| 128 + 2 * symbol.bytes.len()).sum();
        order + lanes + symbols
    }

    /// What was recorded so far, as thread `thread` of rank `rank` of `world`. Recording can go on.
    pub fn bundle(&self, (rank, world): (u32, u32), thread: u32, sites: &Sites) -> Result<Bundle, Error> {
        let (structure, times): (Structure, Vec<(Stream, u64)>) = match &self.order {
            Order::Rules(rules) => (rules.finish().into(), Vec::new()),
            Order::Loops(loops) => {
                let folded = loops.finish();
                (folded.loops.into(), folded.times.into_iter().zip(folded.lengths).collect())
            }
        };
        let ends = self.symbols.iter().skip(1).map(|symbol| symbol.lanes).chain([self.lanes.len()]);
        let lanes = self.symbols.iter().zip(ends).map(|(symbol, end)| &self.lanes[symbol.lanes..end]);
        let (mut streams, mut lengths, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        for (symbol, lanes) in self.symbols.iter().zip(lanes) {
            streams.push(lanes.iter().map(stream::Folder::finish).collect());
            lengths.push(lanes.iter().map(stream::Folder::len).collect());
            entries.push(SymbolEntry {
                bytes: symbol.bytes.clone(),
                site: symbol.site,
                lanes: lanes.len() as u16,
                tally: Tally { total: 0, min: 0, max: 0 },
                classes: Default::default(),
            });
        }
        let part = ThreadPart { thread, structure, times, lanes: streams, lengths, digest: self.digest };
        let bundle = Bundle::of_rank((rank, world), entries, vec![part])?;
        Ok(Bundle { sites: sites.clone(), ..bundle })
    }
}
