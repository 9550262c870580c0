//! References that do not fold, in chunks.
//!
//! Where the order of the blocks or their addresses have no shape, folding costs memory and gives nothing. Then references
//! go to a file for a while, packed by the model of address traces, and the folded order has one symbol for all of them: a
//! *stretch*, whose one number is how many they are. So memory is bounded, however long a program runs.
//!
//! References are pairs of numbers: which one, and the address. The first is `1024 k + n`: reference `n` of the block that is
//! number `k` among those of this thread's stretches. Before a block's first reference comes a pair that has `-1 - k` and the
//! block's signature.

use std::io::{self, Read, Seek, Write};

use refrain_addresses::Followed;
use refrain_fold::pack::{Kind, Method, Methods, number};
use refrain_tracefile::chunks::{self, Key, Section, Settings, Writer};

/// More references than this no block has: the emulator ends blocks long before.
pub const MOST_OF_BLOCK: usize = 1 << 10;

/// References that wait to be packed together. The model learns anew in each chunk.
const CHUNK: usize = 1 << 18;

/// Where the chunks go.
pub type Sink = Box<dyn Write + Send>;

pub trait Source: Read + Seek + Send {}
impl<T: Read + Seek + Send> Source for T {}

/// Where they are read from.
pub type Chunks = Section<Box<dyn Source>>;

/// A section of chunks with references in it.
pub fn open(from: Box<dyn Source>, range: std::ops::Range<u64>) -> Result<Chunks, chunks::Error> {
    Ok(Section::within(from, range)?.with(methods()))
}

pub fn methods() -> Methods {
    chunks::quick().with(Followed::new())
}

/// Whose chunks they are.
pub fn key((rank, world): (u32, u32), thread: u32) -> Key {
    Key { member: u64::from(thread) * u64::from(world.max(1)) + u64::from(rank), lane: 0 }
}

pub(crate) struct Packing {
    writer: Writer<Sink>,
    key: Key,
    followed: Followed,
    numbers: Vec<i64>,
    /// Numbers in chunks that are written.
    before: u64,
    /// By symbol: its number here.
    known: Vec<Option<u32>>,
    named: u32,
}

impl std::fmt::Debug for Packing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packing")
            .field("key", &self.key)
            .field("before", &self.before)
            .finish_non_exhaustive()
    }
}

impl Packing {
    pub fn new(sink: Sink, key: Key) -> Packing {
        Packing {
            writer: Writer::new(sink, Settings { budget: 1 << 16, chunk: 1 << 10 }),
            key,
            followed: Followed::new(),
            numbers: Vec::new(),
            before: 0,
            known: Vec::new(),
            named: 0,
        }
    }

    /// Whether the next block may make a chunk full.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.numbers.len() >= 2 * (CHUNK - MOST_OF_BLOCK)
    }

    #[inline]
    pub fn push(&mut self, symbol: u32, signature: u64, addresses: &[u64]) {
        let known = self.known.get(symbol as usize).copied().flatten();
        let number = known.unwrap_or_else(|| self.name(symbol, signature));
        let first = i64::from(number) * MOST_OF_BLOCK as i64;
        for (nth, &address) in (first..).zip(addresses) {
            self.numbers.extend([nth, address as i64]);
        }
    }

    #[inline(never)]
    fn name(&mut self, symbol: u32, signature: u64) -> u32 {
        let number = self.named;
        self.named += 1;
        if self.known.len() <= symbol as usize {
            self.known.resize(symbol as usize + 1, None);
        }
        self.known[symbol as usize] = Some(number);
        self.numbers.extend([-1 - i64::from(number), signature as i64]);
        number
    }

    /// Writes what waits.
    pub fn seal(&mut self) -> io::Result<()> {
        if self.numbers.is_empty() {
            return Ok(());
        }
        let count = self.numbers.len();
        let packed = self.followed.pack(Kind::REFERENCE, &self.numbers, usize::MAX);
        let (method, bytes) = match packed.filter(|bytes| bytes.len() < 8 * count) {
            Some(bytes) => (number::FOLLOWED, bytes),
            None => (number::PLAIN, self.numbers.iter().flat_map(|number| number.to_le_bytes()).collect()),
        };
        self.writer.put_packed((self.key, Kind::REFERENCE), method, (self.before, count as u32), &bytes)?;
        self.writer.seal()?;
        self.before += count as u64;
        self.numbers.clear();
        Ok(())
    }

    /// Forgets what waits.
    pub fn give_up(&mut self) {
        self.numbers = Vec::new();
    }

    /// The end of the file.
    pub fn finish(mut self) -> io::Result<()> {
        self.seal()?;
        self.writer.finish()?.flush()
    }

    pub fn memory(&self) -> usize {
        8 * self.numbers.capacity() + 8 * self.known.capacity()
    }
}

/// A thread's stretches, read one after the other.
pub(crate) struct Unpacking {
    chunks: Option<Chunks>,
    key: Key,
    numbers: Vec<i64>,
    at: usize,
    /// Numbers of chunks before those.
    before: u64,
    /// The symbols of blocks, by their numbers here.
    symbols: Vec<u32>,
}

/// A pair of a stretch.
pub(crate) enum Pair {
    Reference {
        symbol: u32,
        nth: u16,
        address: u64,
    },
    /// A block that has this signature has been named; [`Unpacking::name`] it.
    Named(u64),
}

impl Unpacking {
    pub fn new(chunks: Option<Chunks>, key: Key) -> Unpacking {
        Unpacking { chunks, key, numbers: Vec::new(), at: 0, before: 0, symbols: Vec::new() }
    }

    pub fn name(&mut self, symbol: u32) {
        self.symbols.push(symbol);
    }

    /// The next pair; nothing where it is missing, or cannot be.
    pub fn next(&mut self) -> Result<Option<Pair>, chunks::Error> {
        if self.at + 2 > self.numbers.len() {
            self.before += self.numbers.len() as u64;
            self.numbers.clear();
            self.at = 0;
            let Some(chunks) = &mut self.chunks else { return Ok(None) };
            chunks.read_on(self.key, self.before, &mut self.numbers)?;
        }
        let Some(&[which, number]) = self.numbers.get(self.at..self.at + 2) else { return Ok(None) };
        self.at += 2;
        if which < 0 {
            let expected = -1 - self.symbols.len() as i64;
            return Ok((which == expected).then_some(Pair::Named(number as u64)));
        }
        let (block, nth) = (which as usize / MOST_OF_BLOCK, (which as usize % MOST_OF_BLOCK) as u16);
        let symbol = self.symbols.get(block).copied();
        Ok(symbol.map(|symbol| Pair::Reference { symbol, nth, address: number as u64 }))
    }
}
