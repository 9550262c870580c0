//! What one process has recorded so far: its symbols, and per thread the folded structure, streams and digest.

use refrain_fold::bundle::{Bundle, SymbolEntry, Tally, ThreadPart};
use refrain_fold::{grammar, stream};

use crate::digest::Digest;
use crate::hash::{FastMap, hash_bytes};
use crate::layout::Layout;
use crate::polls::{Failed, Pending};
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
    /// Where its calls may be failed polls: how those look.
    failed: Option<Box<Failed>>,
}

#[derive(Default)]
struct Thread {
    structure: grammar::Folder,
    /// By symbol, by lane.
    streams: Vec<Vec<stream::Folder>>,
    digest: Digest,
    pending: Pending,
}

impl Tape {
    /// Adds a finished call, and gives its symbol's number. `ticks` is how long it took.
    pub fn push(&mut self, thread: usize, record: &Record, ticks: u64) -> u32 {
        while self.threads.len() <= thread {
            self.threads.push(Thread::default());
        }
        let symbol = self.symbol(thread, record);
        self.push_known(thread, symbol, &record.values, ticks);
        symbol
    }

    /// Adds a call whose symbol has been pushed before, on a thread that has pushed before.
    #[inline]
    pub fn push_known(&mut self, thread: usize, symbol: u32, values: &[(u16, i64)], ticks: u64) {
        let entry = &mut self.symbols[symbol as usize];
        entry.tally.add(Tally { total: ticks, min: ticks, max: ticks });
        let polls = entry.failed.is_some();
        let pending = &self.threads[thread].pending;
        if pending.count > 0 {
            if pending.symbol == symbol {
                self.poll_again(thread, symbol, values);
                return;
            }
            self.flush(thread);
        }
        if polls { self.poll(thread, symbol, values) } else { self.event(thread, symbol, values) }
    }

    #[inline]
    fn event(&mut self, thread: usize, symbol: u32, values: &[(u16, i64)]) {
        let (entry, thread) = (&self.symbols[symbol as usize], &mut self.threads[thread]);
        thread.structure.push(symbol);
        thread.digest.symbol(entry.hash);
        if thread.streams.len() <= symbol as usize {
            thread.streams.resize_with(symbol as usize + 1, Vec::new);
        }
        let streams = &mut thread.streams[symbol as usize];
        if streams.len() < usize::from(entry.lanes) {
            streams.resize_with(usize::from(entry.lanes), stream::Folder::new);
        }
        let (streams, mut digest) = (streams.as_mut_slice(), thread.digest);
        for &(lane, value) in values {
            streams[usize::from(lane)].push(value);
            digest.value(value);
        }
        thread.digest = digest;
    }

    /// A poll, with no other before it.
    fn poll(&mut self, thread: usize, symbol: u32, values: &[(u16, i64)]) {
        if self.is_failed_before(symbol, values, values) {
            let pending = &mut self.threads[thread].pending;
            (pending.symbol, pending.count) = (symbol, 1);
            pending.values.clear();
            pending.values.extend_from_slice(values);
        } else {
            self.event(thread, symbol, values);
        }
    }

    /// A call with the symbol of the failed polls that are waiting.
    fn poll_again(&mut self, thread: usize, symbol: u32, values: &[(u16, i64)]) {
        let mut pending = std::mem::take(&mut self.threads[thread].pending);
        if pending.values == values {
            pending.count += 1;
            self.threads[thread].pending = pending;
        } else if self.is_failed_before(symbol, &pending.values, values) {
            // It tells how they looked: all that is left of them is their number.
            pending.values.clear();
            pending.values.extend_from_slice(values);
            if let Some((_, polls)) = pending.values.last_mut() {
                *polls = pending.count as i64;
            }
            self.event(thread, symbol, &pending.values);
            pending.count = 0;
            self.threads[thread].pending = pending;
        } else {
            self.threads[thread].pending = pending;
            self.flush(thread);
            self.poll(thread, symbol, values);
        }
    }

    /// Whether `values` are those of a failed poll that may stand before a call with the values `next`.
    fn is_failed_before(&self, symbol: u32, values: &[(u16, i64)], next: &[(u16, i64)]) -> bool {
        // The last value counts polls and is zero in both.
        let all_but_last = &values[..values.len().saturating_sub(1)];
        let failed = self.symbols[symbol as usize].failed.as_ref();
        failed.is_some_and(|failed| failed.before(next).eq(all_but_last.iter().copied()))
    }

    /// Failed polls that are followed by something else are an event of their own.
    fn flush(&mut self, thread: usize) {
        let mut pending = std::mem::take(&mut self.threads[thread].pending);
        if pending.count > 0 {
            if let Some((_, polls)) = pending.values.last_mut() {
                *polls = (pending.count - 1) as i64;
            }
            self.event(thread, pending.symbol, &pending.values);
        }
        pending.count = 0;
        self.threads[thread].pending = pending;
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
            failed: Layout::parse(&record.symbol).ok().and_then(|l| Failed::of(&l)).map(Box::new),
        });
        number
    }

    /// Ticks spent in MPI, over all calls.
    pub fn ticks(&self) -> u64 {
        self.symbols.iter().map(|symbol| symbol.tally.total).sum()
    }

    /// Everything, as this rank's part of the trace. `nanoseconds` turns ticks into time.
    pub fn finish(
        mut self,
        rank: u32,
        nanoseconds: impl Fn(u64) -> u64,
    ) -> Result<Bundle, refrain_fold::bundle::Error> {
        (0..self.threads.len()).for_each(|thread| self.flush(thread));
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
