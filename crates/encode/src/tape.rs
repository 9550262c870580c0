//! What one process has recorded so far: its symbols, and per thread the folded structure, streams and digest.

use refrain_fold::bundle::{Bundle, SymbolEntry, Tally, ThreadPart};
use refrain_fold::{grammar, stream};

use crate::digest::Digest;
use crate::hash::{FastMap, hash_bytes};
use crate::record::Record;

/// Folds records as they come.
#[derive(Default)]
pub struct Tape {
    symbols: Vec<Symbol>,
    /// By hash of the bytes: the latest symbol with it. Others follow by `Symbol::same_hash`.
    by_hash: FastMap<u64, u32>,
    threads: Vec<Thread>,
}

struct Symbol {
    bytes: Box<[u8]>,
    hash: u64,
    lanes: u16,
    same_hash: Option<u32>,
    /// Ticks.
    tally: Tally,
}

#[derive(Default)]
struct Thread {
    structure: grammar::Folder,
    /// By symbol, by lane.
    streams: Vec<Vec<stream::Folder>>,
    digest: Digest,
}

impl Tape {
    /// Adds a finished call. `ticks` is how long it took.
    pub fn push(&mut self, thread: usize, record: &Record, ticks: u64) {
        while self.threads.len() <= thread {
            self.threads.push(Thread::default());
        }
        let symbol = self.symbol(thread, record);
        let entry = &mut self.symbols[symbol as usize];
        entry.tally.add(Tally { total: ticks, min: ticks, max: ticks });
        let thread = &mut self.threads[thread];
        thread.structure.push(symbol);
        thread.digest.symbol(entry.hash);
        if thread.streams.len() <= symbol as usize {
            thread.streams.resize_with(symbol as usize + 1, Vec::new);
        }
        let streams = &mut thread.streams[symbol as usize];
        if streams.len() < usize::from(entry.lanes) {
            streams.resize_with(usize::from(entry.lanes), stream::Folder::new);
        }
        for &(lane, value) in &record.values {
            streams[usize::from(lane)].push(value);
            thread.digest.value(value);
        }
    }

    /// The symbol's number. In a loop the structure already expects it, and its bytes are compared only.
    fn symbol(&mut self, thread: usize, record: &Record) -> u32 {
        if let Some(expected) = self.threads[thread].structure.predicted()
            && *self.symbols[expected as usize].bytes == *record.symbol
        {
            return expected;
        }
        let hash = hash_bytes(&record.symbol);
        let mut candidate = self.by_hash.get(&hash).copied();
        while let Some(known) = candidate {
            let symbol = &self.symbols[known as usize];
            if *symbol.bytes == *record.symbol {
                return known;
            }
            candidate = symbol.same_hash;
        }
        let number = u32::try_from(self.symbols.len()).expect("fewer than 2^32 distinct symbols");
        let same_hash = self.by_hash.insert(hash, number);
        self.symbols.push(Symbol {
            bytes: record.symbol.as_slice().into(),
            hash,
            lanes: record.lanes(),
            same_hash,
            tally: Tally { total: 0, min: u64::MAX, max: 0 },
        });
        number
    }

    /// Ticks spent in MPI, over all calls.
    pub fn ticks(&self) -> u64 {
        self.symbols.iter().map(|symbol| symbol.tally.total).sum()
    }

    /// Everything, as this rank's part of the trace. `nanoseconds` turns ticks into time.
    pub fn finish(
        self,
        rank: u32,
        nanoseconds: impl Fn(u64) -> u64,
    ) -> Result<Bundle, refrain_fold::bundle::Error> {
        let lanes_of: Vec<usize> = self.symbols.iter().map(|symbol| usize::from(symbol.lanes)).collect();
        let symbols = self.symbols.into_iter().map(|symbol| SymbolEntry {
            bytes: symbol.bytes,
            lanes: symbol.lanes,
            tally: Tally {
                total: nanoseconds(symbol.tally.total),
                min: nanoseconds(symbol.tally.min),
                max: nanoseconds(symbol.tally.max),
            },
        });
        let threads = self.threads.into_iter().zip(0u32..).map(|(thread, number)| {
            let lengths = thread.streams.iter().map(|lanes| lanes.iter().map(stream::Folder::len).collect());
            let lengths = lengths.collect();
            let lanes = thread.streams.into_iter().zip(&lanes_of).map(|(mut streams, &lanes)| {
                if !streams.is_empty() {
                    streams.resize_with(lanes, stream::Folder::new);
                }
                streams.into_iter().map(|stream| stream.finish()).collect()
            });
            ThreadPart {
                thread: number,
                structure: thread.structure.finish(),
                lanes: lanes.collect(),
                lengths,
                digest: thread.digest.get(),
            }
        });
        Bundle::of_rank(rank, symbols.collect(), threads.collect())
    }
}
