//! References that do not fold, in chunks.
//!
//! Where the order of the blocks or their addresses have no shape, folding costs memory and gives nothing. Then references
//! go to a file for a while, packed by the model of address traces, and the folded order has one symbol for all of them: a
//! *stretch*, whose one number is how many they are. So memory is bounded, however long a program runs.
//!
//! References are pairs of numbers: which one, and the address. The first is `1024 k + n`: that of lane `n` of the block that is
//! number `k` among those of this thread's stretches. Those without a lane that follow it in the block come with it. Before a
//! block's first reference comes a pair that has `-1 - k` and the block's signature. Marks of calls are pairs of that form too,
//! with the thread of the calls in place of an address. They do not count as references, and each follows one of the same stretch.
//!
//! What the model learnt in one chunk it knows in the next. Every now and then it begins anew, and the blocks are named anew,
//! from 0 on: there reading can begin. The first byte of a chunk says that it is such a one, and 8 bytes how many references are before.

use std::io::{self, Read, Seek, Write};

use refrain_addresses::Followed;
use refrain_fold::pack::{Kind, number};
use refrain_tracefile::chunks::{self, Key, Section, Settings, Writer};

/// More references than this no block has: the emulator ends blocks long before.
pub const MOST_OF_BLOCK: usize = 1 << 10;

/// References that wait to be packed together.
const CHUNK: usize = 1 << 16;

/// The model begins anew after so many numbers: a second or so to any place from there.
const GROUP: u64 = 1 << 25;

/// Numbers of a chunk that are told as they are, if there are less.
const FEW: usize = 256;

/// The first byte of a chunk: it goes on, or begins anew.
const ON: u8 = 0;
const ANEW: u8 = 1;

/// Where the chunks go.
pub type Sink = Box<dyn Write + Send>;

pub trait Source: Read + Seek + Send {}
impl<T: Read + Seek + Send> Source for T {}

/// Where they are read from.
pub type Chunks = Section<Box<dyn Source>>;

/// A section of chunks with references in it.
pub fn open(from: Box<dyn Source>, range: std::ops::Range<u64>) -> Result<Chunks, chunks::Error> {
    Section::within(from, range)
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
    /// Numbers in chunks that are written, and references.
    before: u64,
    references: u64,
    /// The model begins anew when so many numbers are written.
    anew: u64,
    /// References that wait.
    waiting: u64,
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
            references: 0,
            anew: 0,
            waiting: 0,
            known: Vec::new(),
            named: 0,
        }
    }

    /// Whether the next block may make a chunk full.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.numbers.len() >= 2 * (CHUNK - MOST_OF_BLOCK)
    }

    /// A block has run, with so many references and these addresses of its lanes.
    #[inline]
    pub fn push(&mut self, symbol: u32, signature: u64, references: u64, addresses: &[u64]) {
        let known = self.known.get(symbol as usize).copied().flatten();
        let number = known.unwrap_or_else(|| self.name(symbol, signature));
        let first = i64::from(number) * MOST_OF_BLOCK as i64;
        for (nth, &address) in (first..).zip(addresses) {
            self.numbers.extend([nth, address as i64]);
        }
        self.waiting += references;
    }

    /// A call, of this thread among those of the calls.
    pub fn mark(&mut self, symbol: u32, signature: u64, thread: u64) {
        self.push(symbol, signature, 0, &[thread]);
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
        let is_anew = self.before >= self.anew;
        let mut bytes = vec![ON];
        if is_anew {
            bytes[0] = ANEW;
            bytes.extend(self.references.to_le_bytes());
        }
        // The columns of a few references would take more than these do as they are.
        let packed = (count >= FEW).then(|| self.followed.pack(is_anew, &self.numbers)).flatten();
        match packed.filter(|packed| bytes.len() + packed.len() <= 8 * count) {
            Some(packed) => {
                bytes.extend(packed);
                self.put(number::FOLLOWED, &bytes)?;
                if is_anew {
                    self.anew = self.before + GROUP;
                }
            }
            None => {
                let plain: Vec<u8> = self.numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                self.put(number::PLAIN, &plain)?;
                // The model has learnt what nobody will unpack.
                if count >= FEW {
                    self.anew = self.before;
                }
            }
        }
        if self.before >= self.anew {
            self.known.clear();
            self.named = 0;
        }
        Ok(())
    }

    /// Writes a chunk of what waits.
    fn put(&mut self, method: u8, bytes: &[u8]) -> io::Result<()> {
        let count = self.numbers.len();
        self.writer.put_packed((self.key, Kind::REFERENCE), method, (self.before, count as u32), bytes)?;
        self.writer.seal()?;
        self.before += count as u64;
        self.references += std::mem::take(&mut self.waiting);
        self.numbers.clear();
        Ok(())
    }

    /// Forgets what waits.
    pub fn give_up(&mut self) {
        self.numbers = Vec::new();
        self.waiting = 0;
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
    followed: Followed,
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
        lane: u16,
        address: u64,
    },
    /// A block that has this signature has been named; [`Unpacking::name`] it.
    Named(u64),
}

impl Unpacking {
    pub fn new(chunks: Option<Chunks>, key: Key) -> Unpacking {
        let (followed, numbers, symbols) = (Followed::new(), Vec::new(), Vec::new());
        Unpacking { chunks, key, followed, numbers, at: 0, before: 0, symbols }
    }

    pub fn name(&mut self, symbol: u32) {
        self.symbols.push(symbol);
    }

    /// To the last place where reading can begin that has no more than so many references before it: how many it has.
    pub fn seek(&mut self, references: u64) -> Result<u64, chunks::Error> {
        let Some(chunks) = &mut self.chunks else { return Ok(0) };
        let (mut at, mut found) = (0, 0);
        while let Some(chunk) = chunks.beginning(self.key, at, 9)? {
            let next = at + u64::from(chunk.count);
            if let (number::FOLLOWED, [ANEW, before @ ..]) = (chunk.method, chunk.bytes)
                && let Ok(before) = before.try_into().map(u64::from_le_bytes)
            {
                if before > references {
                    break;
                }
                (self.before, found) = (at, before);
            }
            at = next;
        }
        Ok(found)
    }

    /// The next pair; nothing where it is missing, or cannot be.
    pub fn next(&mut self) -> Result<Option<Pair>, chunks::Error> {
        if self.at + 2 > self.numbers.len() && !self.read_on()? {
            return Ok(None);
        }
        let Some(&[which, number]) = self.numbers.get(self.at..self.at + 2) else { return Ok(None) };
        self.at += 2;
        if which < 0 {
            if which == -1 {
                self.symbols.clear();
            }
            let expected = -1 - self.symbols.len() as i64;
            return Ok((which == expected).then_some(Pair::Named(number as u64)));
        }
        let (block, lane) = (which as usize / MOST_OF_BLOCK, (which as usize % MOST_OF_BLOCK) as u16);
        let symbol = self.symbols.get(block).copied();
        Ok(symbol.map(|symbol| Pair::Reference { symbol, lane, address: number as u64 }))
    }

    /// Whether the next pair is of the symbol with this number and signature.
    pub fn is_next(&mut self, symbol: u32, signature: u64) -> Result<bool, chunks::Error> {
        if self.at + 2 > self.numbers.len() && !self.read_on()? {
            return Ok(false);
        }
        Ok(match self.numbers.get(self.at..self.at + 2) {
            Some(&[i64::MIN..=-1, named]) => named as u64 == signature,
            Some(&[which, _]) => self.symbols.get(which as usize / MOST_OF_BLOCK) == Some(&symbol),
            _ => false,
        })
    }

    /// Fetches the next chunk. Whether there is one that can be read.
    fn read_on(&mut self) -> Result<bool, chunks::Error> {
        self.before += self.numbers.len() as u64;
        self.numbers.clear();
        self.at = 0;
        let Some(chunks) = &mut self.chunks else { return Ok(false) };
        let Some(chunk) = chunks.packed(self.key, self.before)? else { return Ok(false) };
        let count = chunk.count as usize;
        let (first, packed) = match (chunk.method, chunk.bytes) {
            (number::FOLLOWED, [ANEW, rest @ ..]) if rest.len() >= 8 => (true, &rest[8..]),
            (number::FOLLOWED, [ON, rest @ ..]) => (false, rest),
            (number::PLAIN, bytes) if bytes.len() == 8 * count => {
                let numbers = bytes.chunks_exact(8).filter_map(|bytes| bytes.try_into().ok());
                self.numbers.extend(numbers.map(i64::from_le_bytes));
                return Ok(true);
            }
            _ => return Ok(false),
        };
        Ok(self.followed.unpack(first, packed, count, &mut self.numbers).is_ok())
    }
}
