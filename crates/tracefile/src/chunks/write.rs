//! Numbers to chunks, within a budget.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

use refrain_fold::pack::{Kind, Methods};

use super::{Head, Key, MOST_NUMBERS, Pieces, TAG_NUMBERS, quick};

/// How much a writer may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Bytes: half for numbers that wait, half for packing them and for the index. A stream takes some 120 bytes more.
    pub budget: usize,
    /// Numbers of a chunk at most, if the budget allows: what is lost when one byte is, and what is read to get at one
    /// number.
    pub chunk: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { budget: 4 << 20, chunk: 1 << 15 }
    }
}

/// What packing a chunk takes, for each of its numbers: distances, bytes, and a part of the tables.
const PACKING: usize = 64;

/// A stream of one writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamNumber(u32);

struct Open {
    key: Key,
    kind: Kind,
    /// Numbers before those that wait.
    before: u64,
    numbers: Vec<i64>,
}

/// Writes streams of numbers to a sink as they come.
///
/// What was [sealed](Writer::seal) is in the sink and can be read, whatever happens to the writer.
pub struct Writer<W> {
    pieces: Pieces<W>,
    methods: Methods,
    streams: Vec<Open>,
    known: HashMap<Key, u32>,
    /// Numbers that wait have room for so many at most, and have it for so many.
    budget: usize,
    held: usize,
    chunk: usize,
}

impl<W: Write> Writer<W> {
    pub fn new(sink: W, settings: Settings) -> Writer<W> {
        Writer::with(sink, settings, quick())
    }

    /// With methods of one's own choice.
    pub fn with(sink: W, settings: Settings, methods: Methods) -> Writer<W> {
        let most = (settings.budget / PACKING).min(MOST_NUMBERS as usize);
        Writer {
            pieces: Pieces::new(sink),
            methods,
            streams: Vec::new(),
            known: HashMap::new(),
            budget: settings.budget / 2 / size_of::<i64>(),
            held: 0,
            chunk: settings.chunk.min(most).max(1),
        }
    }

    /// The stream of this key; it is made if it is new.
    pub fn stream(&mut self, key: Key, kind: Kind) -> StreamNumber {
        let next = self.streams.len() as u32;
        let number = *self.known.entry(key).or_insert(next);
        if number == next {
            self.streams.push(Open { key, kind, before: 0, numbers: Vec::new() });
        }
        StreamNumber(number)
    }

    /// Numbers of this stream that were pushed.
    pub fn len(&self, stream: StreamNumber) -> u64 {
        let open = &self.streams[stream.0 as usize];
        open.before + open.numbers.len() as u64
    }

    /// More numbers at the end of a stream.
    pub fn push(&mut self, stream: StreamNumber, mut numbers: &[i64]) -> io::Result<()> {
        while !numbers.is_empty() {
            let open = &mut self.streams[stream.0 as usize];
            let room = self.chunk - open.numbers.len();
            let (now, later) = numbers.split_at(room.min(numbers.len()));
            numbers = later;
            let (have, need) = (open.numbers.capacity(), open.numbers.len() + now.len());
            if need > have {
                let wanted = need.max(2 * have).min(self.chunk);
                open.numbers.reserve_exact(wanted - open.numbers.len());
                self.held += open.numbers.capacity() - have;
            }
            open.numbers.extend_from_slice(now);
            if open.numbers.len() == self.chunk {
                self.seal_one(stream.0 as usize)?;
            }
            if self.held > self.budget {
                self.make_way()?;
            }
        }
        Ok(())
    }

    /// A chunk that was packed elsewhere, by a method that [`Methods`] need not know, at the end of a stream that has no
    /// others: `count` numbers, of which the first is the stream's number `first`. At most eight bytes for each.
    pub fn put_packed(
        &mut self,
        (key, kind): (Key, Kind),
        method: u8,
        (first, count): (u64, u32),
        bytes: &[u8],
    ) -> io::Result<()> {
        if !(1..=MOST_NUMBERS).contains(&count) || bytes.len() > 8 * count as usize {
            return Err(io::Error::other("a chunk of too many numbers or bytes"));
        }
        let head = Head { tag: TAG_NUMBERS, kind, method, key, first, count, length: 0, crc: 0 };
        self.pieces.put(head, bytes)
    }

    /// Makes chunks of everything that waits, and brings them to the sink's end: they survive this process.
    pub fn seal(&mut self) -> io::Result<()> {
        (0..self.streams.len()).try_for_each(|at| self.seal_one(at))?;
        self.pieces.sink.flush()
    }

    /// Seals everything and writes the index's end.
    pub fn finish(mut self) -> io::Result<W> {
        self.seal()?;
        self.pieces.finish()
    }

    /// Bytes held by numbers that wait.
    pub fn held(&self) -> usize {
        self.held * size_of::<i64>()
    }

    fn seal_one(&mut self, at: usize) -> io::Result<()> {
        let open = &mut self.streams[at];
        if open.numbers.is_empty() {
            return Ok(());
        }
        let (method, bytes) = self.methods.pack(open.kind, &open.numbers);
        let count = open.numbers.len() as u32;
        let head = Head {
            tag: TAG_NUMBERS,
            kind: open.kind,
            method,
            key: open.key,
            first: open.before,
            count,
            length: 0,
            crc: 0,
        };
        open.before += u64::from(count);
        open.numbers.clear();
        self.pieces.put(head, &bytes)
    }

    /// Too much waits: the longest go first, so that chunks are as long as they can be, until half is free.
    fn make_way(&mut self) -> io::Result<()> {
        let mut order: Vec<usize> = (0..self.streams.len()).collect();
        order.sort_by_key(|&at| Reverse(self.streams[at].numbers.capacity()));
        for at in order {
            if self.held <= self.budget / 2 {
                break;
            }
            self.seal_one(at)?;
            let numbers = std::mem::take(&mut self.streams[at].numbers);
            self.held -= numbers.capacity();
        }
        Ok(())
    }
}
