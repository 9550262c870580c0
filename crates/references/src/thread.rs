//! What one thread does, folded as it happens.

use std::io;

use refrain_fold::bundle::{Bundle, Sites, Structure, SymbolEntry, Tally, ThreadPart};
use refrain_fold::loops::{self, Matching};
use refrain_fold::stream::{self, Stream};
use refrain_fold::{FastMap, grammar, xxh64};

use crate::Error;
use crate::block::Block;
use crate::stretch::{MOST_OF_BLOCK, Packing, Sink, key};

/// What the order of the blocks becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Folding {
    #[default]
    Rules,
    Loops,
}

#[derive(Debug)]
enum Order {
    Rules(grammar::Folder),
    Loops(loops::Folder),
}

impl Order {
    #[inline]
    fn push(&mut self, symbol: u32) {
        match self {
            Order::Rules(rules) => rules.push(symbol),
            Order::Loops(loops) => loops.push(symbol),
        }
    }
}

#[derive(Debug)]
struct Symbol {
    bytes: Box<[u8]>,
    site: u64,
    signature: u64,
    /// Where its lanes begin.
    lanes: usize,
    /// References, of which fetches but the first have no lane.
    references: u64,
}

/// Where references go that do not fold.
#[derive(Debug)]
struct Spill {
    packing: Packing,
    /// More bytes than this are not held for folding.
    most: usize,
    /// References of the stretch that is open; those, and the digest before them, that are not written yet.
    open: Option<Stretch>,
    /// How long the next stretch is.
    pause: u64,
    /// Bytes held when memory was last looked at, and how often in a row they had grown too much by then.
    held: usize,
    grown: u32,
    stopped: Option<io::Error>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    references: u64,
    unwritten: u64,
    digest: u64,
}

/// The recording of one thread.
#[derive(Debug)]
pub struct Thread {
    order: Order,
    symbols: Vec<Symbol>,
    known: FastMap<(Box<[u8]>, u64), u32>,
    /// Of all symbols, one behind the other.
    lanes: Vec<stream::Folder>,
    len: u64,
    digest: u64,
    /// References until it is seen whether folding helps.
    left: u64,
    spill: Option<Box<Spill>>,
    member: (u32, u32, u32),
}

/// How often memory is looked at, in references; more seldom where there are many lanes.
const LOOK: u64 = 1 << 16;
/// More bytes than this for each reference are not worth holding.
const MUCH: u64 = 2;
/// References of the first stretch, and of the longest.
const SHORT: u64 = 1 << 20;
const LONG: u64 = 1 << 27;

/// The bytes of the symbol that stands for a stretch: no block has none.
pub(crate) const STRETCH: &[u8] = &[];

/// The bytes of the symbol that marks a call: a block of no code, without references. Its lane has the thread of the calls.
pub(crate) const MARK: &[u8] = &[0];

/// Brings a number into a digest. The order counts.
#[inline]
pub(crate) fn digested(digest: u64, number: u64) -> u64 {
    (digest.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What a symbol is in a digest, and in stretches.
pub(crate) fn signature(bytes: &[u8], site: u64) -> u64 {
    xxh64(bytes, site)
}

impl Thread {
    /// Of thread `thread` of rank `rank` of `world`.
    pub fn new(folding: Folding, (rank, world): (u32, u32), thread: u32) -> Thread {
        let order = match folding {
            Folding::Rules => Order::Rules(grammar::Folder::new()),
            Folding::Loops => Order::Loops(loops::Folder::new(Matching::Elastic)),
        };
        Thread {
            order,
            symbols: Vec::new(),
            known: FastMap::default(),
            lanes: Vec::new(),
            len: 0,
            digest: 0,
            left: u64::MAX,
            spill: None,
            member: (rank, world, thread),
        }
    }

    /// Gives it a file for what does not fold, and bounds what it holds: `most` bytes, nearly, and some ten megabytes beside.
    pub fn bounded(mut self, sink: Sink, most: usize) -> Thread {
        let (rank, world, thread) = self.member;
        let packing = Packing::new(sink, key((rank, world), thread));
        let spill = Spill { packing, most, open: None, pause: SHORT, held: 0, grown: 0, stopped: None };
        self.spill = Some(Box::new(spill));
        self.left = LOOK;
        self
    }

    /// The number of a block at a site, for [`Thread::push`].
    pub fn symbol(&mut self, block: &Block, site: u64) -> u32 {
        let lanes = block.lanes().filter(|has| *has).count();
        self.known_or_new(block.to_bytes().into(), site, lanes, block.references.len() as u64)
    }

    fn known_or_new(&mut self, bytes: Box<[u8]>, site: u64, lanes: usize, references: u64) -> u32 {
        let next = self.symbols.len() as u32;
        let number = *self.known.entry((bytes.clone(), site)).or_insert(next);
        if number == next {
            let signature = signature(&bytes, site);
            self.symbols.push(Symbol { bytes, site, signature, lanes: self.lanes.len(), references });
            self.lanes.resize_with(self.lanes.len() + lanes, stream::Folder::new);
        }
        number
    }

    /// A block has run: one address for each of its references that has a lane ([`Block::lanes`]), at most [`MOST_OF_BLOCK`].
    #[inline]
    pub fn push(&mut self, symbol: u32, addresses: &[u64]) {
        let Symbol { signature, lanes, references: count, .. } = self.symbols[symbol as usize];
        if self.left <= count {
            self.look(count);
        }
        self.left -= count;
        if self.spill.as_ref().is_some_and(|spill| spill.open.is_some() || spill.stopped.is_some()) {
            return self.push_aside(symbol, addresses);
        }
        self.order.push(symbol);
        let mut digest = digested(self.digest, signature);
        for (lane, &address) in self.lanes[lanes..].iter_mut().zip(addresses) {
            lane.push(address as i64);
            digest = digested(digest, address);
        }
        self.digest = digest;
        self.len += count;
    }

    /// A call was recorded elsewhere, of what is thread `thread` there: what was pushed before comes before it.
    pub fn mark(&mut self, thread: u32) {
        let symbol = self.known_or_new(MARK.into(), 0, 1, 0);
        let Symbol { signature, lanes, .. } = self.symbols[symbol as usize];
        let number = u64::from(thread);
        let spill = self.spill.as_ref();
        if spill.is_some_and(|spill| spill.stopped.is_some()) {
            return;
        }
        // In the file a mark follows a reference of its stretch.
        if spill.is_some_and(|spill| spill.open.is_some_and(|open| open.references > 0)) {
            if spill.is_some_and(|spill| spill.packing.is_full()) && !self.write_out() {
                return;
            }
            if let Some(spill) = &mut self.spill {
                spill.packing.mark(symbol, signature, number);
            }
        } else {
            self.order.push(symbol);
            self.lanes[lanes].push(number as i64);
        }
        self.digest = digested(digested(self.digest, signature), number);
    }

    /// To the file.
    #[inline(never)]
    fn push_aside(&mut self, symbol: u32, addresses: &[u64]) {
        debug_assert!(addresses.len() <= MOST_OF_BLOCK);
        let Some(spill) = &mut self.spill else { return };
        if spill.stopped.is_some() || addresses.is_empty() {
            return;
        }
        if spill.packing.is_full() && !self.write_out() {
            return;
        }
        let Some(spill) = &mut self.spill else { return };
        let Some(open) = &mut spill.open else { return };
        let Symbol { signature, references: count, .. } = self.symbols[symbol as usize];
        spill.packing.push(symbol, signature, count, addresses);
        self.digest =
            addresses.iter().fold(digested(self.digest, signature), |digest, &a| digested(digest, a));
        open.references += count;
        open.unwritten += count;
        self.len += count;
    }

    /// Writes what waits for the file. If that fails, the recording ends with what was written.
    fn write_out(&mut self) -> bool {
        let Some(spill) = &mut self.spill else { return true };
        let done = spill.packing.seal();
        if let Some(open) = &mut spill.open {
            if done.is_err() {
                (self.digest, self.len) = (open.digest, self.len - open.unwritten);
                open.references -= open.unwritten;
            }
            (open.digest, open.unwritten) = (self.digest, 0);
        }
        match done {
            Ok(()) => true,
            Err(error) => {
                spill.packing.give_up();
                spill.stopped = Some(error);
                false
            }
        }
    }

    /// Is it worth folding?
    #[cold]
    fn look(&mut self, count: u64) {
        let interval = LOOK.max(64 * self.lanes.len() as u64) + count;
        self.left = interval;
        if self.spill.as_ref().is_none_or(|spill| spill.stopped.is_some()) {
            self.left = u64::MAX;
            return;
        }
        self.end_stretch();
        if self.stopped().is_some() {
            self.left = u64::MAX;
            return;
        }
        let held = self.memory();
        let digest = self.digest;
        let Some(spill) = &mut self.spill else { return };
        let grown = held.saturating_sub(spill.held) as u64;
        let was_open = std::mem::replace(&mut spill.held, held) == usize::MAX;
        if was_open {
            // Folding is tried again.
            spill.grown = 1;
            return;
        }
        let too_much = grown > MUCH * interval;
        spill.grown = if too_much { spill.grown + 1 } else { 0 };
        if !too_much {
            spill.pause = SHORT;
        }
        if held > spill.most {
            self.left = u64::MAX;
        } else if spill.grown >= 2 {
            self.left = spill.pause + count;
            spill.pause = (spill.pause * 4).min(LONG);
        } else {
            return;
        }
        spill.held = usize::MAX;
        spill.open = Some(Stretch { digest, ..Stretch::default() });
    }

    /// The stretch that is open, if one is, becomes a symbol of the order. All of it is written then: whoever looks at the order
    /// finds it in the file.
    fn end_stretch(&mut self) {
        if self.spill.as_ref().is_some_and(|spill| spill.open.is_some() && spill.stopped.is_none()) {
            self.write_out();
        }
        let Some(Stretch { references, .. }) = self.spill.as_mut().and_then(|spill| spill.open.take()) else {
            return;
        };
        if references > 0 {
            let symbol = self.known_or_new(STRETCH.into(), 0, 1, 1);
            self.order.push(symbol);
            let lane = self.symbols[symbol as usize].lanes;
            self.lanes[lane].push(references as i64);
        }
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

    /// Why recording has ended before the thread has: the file for what does not fold cannot be written.
    pub fn stopped(&self) -> Option<&io::Error> {
        self.spill.as_ref()?.stopped.as_ref()
    }

    /// Bytes held, without tables of the model that does not grow.
    pub fn memory(&self) -> usize {
        let order = match &self.order {
            Order::Rules(rules) => rules.memory(),
            Order::Loops(loops) => loops.memory(),
        };
        let lanes: usize = self.lanes.iter().map(|lane| size_of::<stream::Folder>() + lane.memory()).sum();
        let symbols: usize = self.symbols.iter().map(|symbol| 128 + 2 * symbol.bytes.len()).sum();
        order + lanes + symbols + self.spill.as_ref().map_or(0, |spill| spill.packing.memory())
    }

    /// What was recorded so far. Recording can go on; what is in the file then belongs to it.
    pub fn bundle(&mut self, sites: &Sites) -> Result<Bundle, Error> {
        let open = self.spill.as_ref().is_some_and(|spill| spill.open.is_some());
        if open {
            self.end_stretch();
            let digest = self.digest;
            if let Some(spill) = self.spill.as_mut().filter(|spill| spill.stopped.is_none()) {
                spill.open = Some(Stretch { digest, ..Stretch::default() });
            }
        }
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
        let (rank, world, thread) = self.member;
        let part = ThreadPart { thread, structure, times, lanes: streams, lengths, digest: self.digest };
        let bundle = Bundle::of_rank((rank, world), entries, vec![part])?;
        Ok(Bundle { sites: sites.clone(), ..bundle })
    }

    /// Closes the file, after the last [`Thread::bundle`].
    pub fn close(self) -> io::Result<()> {
        match self.spill {
            Some(spill) if spill.stopped.is_none() => spill.packing.finish(),
            _ => Ok(()),
        }
    }
}
