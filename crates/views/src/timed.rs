//! When calls began and ended, beside the calls: what a trace file has of it.
//!
//! Times are packed in blocks of calls, each beside the signatures of its calls. So one who wants the time of a call reads
//! the calls of its block up to it: [`Timed`] does, from any call on.

use std::cell::{Cell, RefCell};
use std::io::{Read, Seek};
use std::ops::Range;

use refrain_encode::{Calls, ClassLanes, Reader, hash_symbol};
use refrain_fold::bundle::Bundle;
use refrain_fold::bundle::classes::Kind;
use refrain_fold::pack::number::SPANS;
use refrain_model::Call;
use refrain_model::time::Time;
use refrain_times::{CallTime, Damaged, FIRST_BYTES, Span, Unpacker, first_start};
use refrain_tracefile::Trace;
use refrain_tracefile::chunks::{self, Key, Section};
use refrain_tracefile::clocks::Mapping;

use crate::error::Error;

/// Where chunks are read from.
pub trait Source: Read + Seek {}
impl<T: Read + Seek> Source for T {}

/// The stream of a thread that has the times of its calls.
const LANE: u64 = 0;

/// The times of all calls of a trace. Told in nanoseconds since the first call of the trace began.
pub struct Times {
    section: RefCell<Section<Box<dyn Source>>>,
    /// By symbol.
    signatures: Vec<u64>,
    time: Time,
    /// How many numbers the file has of a call.
    numbers: u32,
    /// By rank.
    clocks: Vec<RankClock>,
    /// Not all of these can be compared.
    apart: bool,
    /// When the first call of each group of clocks began.
    zeros: Vec<i64>,
    lost: Cell<bool>,
    /// The coder that many threads share.
    shared: RefCell<Unpacker>,
}

/// If more threads than this are read at the same time, none of them holds a coder of its own.
const MANY: usize = 64;

/// The clock of a rank.
#[derive(Debug, Clone, Copy, Default)]
struct RankClock {
    /// To the one that is common to its group.
    mapping: Mapping,
    /// That is off by at most so much, in nanoseconds.
    error: u64,
    /// Clocks of the same group can be compared.
    group: usize,
}

/// The clocks of all ranks, and whether some cannot be compared with each other. Those that the ranks compared are one group.
/// Of others, as in a trace that was recovered, those of one host are: they are the same clock.
fn by_rank(trace: &Trace) -> (Vec<RankClock>, bool) {
    let ranks = trace.meta.ranks as usize;
    let mut clocks = vec![None; ranks];
    for clock in trace.meta.clocks.iter().flat_map(|clocks| &clocks.clocks) {
        let error = clock.start.error.max(clock.end.error);
        let of_rank = RankClock { mapping: clock.mapping(), error, group: 0 };
        for rank in clock.ranks.iter().filter(|rank| (*rank as usize) < ranks) {
            clocks[rank as usize].get_or_insert(of_rank);
        }
    }
    let known = clocks.iter().any(Option::is_some);
    let one_host = trace.meta.hosts.len() < 2;
    let mut groups = usize::from(known);
    for (_, host) in &trace.meta.hosts {
        let mut of_host = host.iter().filter(|rank| (*rank as usize) < ranks).peekable();
        let mut some = false;
        for rank in of_host.by_ref() {
            let clock = &mut clocks[rank as usize];
            some |= clock.is_none();
            let group = if one_host { 0 } else { groups };
            clock.get_or_insert(RankClock { group, ..RankClock::default() });
        }
        groups += usize::from(some && !one_host);
    }
    let clocks: Vec<RankClock> = clocks.into_iter().map(Option::unwrap_or_default).collect();
    let apart = clocks.iter().any(|clock| clock.group != clocks[0].group);
    (clocks, apart)
}

/// A moment of a rank's clock on the common one.
fn common(mapping: Mapping, time: i64) -> i64 {
    // Before its machine was switched on no rank made a call; a damaged file may say so.
    u64::try_from(time).map_or(time, |time| mapping.common(time) as i64)
}

fn key_of(bundle: &Bundle, rank: u32, thread: u32) -> Key {
    Key { member: bundle.member(rank, thread).map_or(u64::MAX, u64::from), lane: LANE }
}

/// How a trace keeps time.
pub fn time_of(trace: &Trace) -> Result<Time, Error> {
    let word = trace.meta.options.iter().find(|(name, _)| name == "time").map_or("", |(_, word)| word);
    Time::read(word).map_err(|why| Error::BadTime { why: why.why })
}

impl Times {
    /// `None` where the trace does not tell the times of single calls. `chunks` is where in `source` its chunks are.
    pub fn open(
        trace: &Trace,
        source: impl Read + Seek + 'static,
        chunks: Option<Range<u64>>,
    ) -> Result<Option<Times>, Error> {
        let time = time_of(trace)?;
        let Some(shared) = Unpacker::new(&time) else { return Ok(None) };
        let numbers = shared.numbers();
        let source: Box<dyn Source> = Box::new(source);
        let section = Section::within(source, chunks.unwrap_or(0..0)).map_err(Error::Times)?;
        let section = RefCell::new(section);
        let symbols = trace.bundle.symbols.iter();
        let signatures = symbols.map(|symbol| hash_symbol(&symbol.bytes, symbol.site)).collect();
        let (clocks, apart) = by_rank(trace);
        let mut times = Times {
            section,
            signatures,
            time,
            numbers,
            clocks,
            apart,
            zeros: Vec::new(),
            lost: Cell::new(false),
            shared: RefCell::new(shared),
        };
        times.zeros = times.beginnings(trace)?;
        Ok(Some(times))
    }

    /// When the first of all calls began, by each of the clocks that cannot be compared. What is damaged says nothing.
    fn beginnings(&self, trace: &Trace) -> Result<Vec<i64>, Error> {
        let reader = Reader::new(&trace.bundle);
        let mut first: Vec<(usize, i64, Key)> = Vec::new();
        let mut section = self.section.borrow_mut();
        for rank in 0..trace.meta.ranks {
            let RankClock { mapping, group, .. } = self.clock(rank);
            for thread in reader.threads(rank) {
                let key = key_of(&trace.bundle, rank, thread);
                let Ok(Some(chunk)) = section.beginning(key, 0, FIRST_BYTES) else { continue };
                let Some(start) = first_start(chunk.bytes, chunk.length, chunk.count) else { continue };
                if chunk.method == SPANS {
                    first.push((group, common(mapping, start), key));
                }
            }
        }
        first.sort_by_key(|(group, start, _)| (*group, *start));
        // What it says is not held against a checksum before it counts.
        let groups = 1 + first.iter().map(|(group, ..)| *group).max().unwrap_or(0);
        let mut sound = |group: usize| {
            let of_group = first.iter().filter(move |(other, ..)| *other == group);
            let mut sound = of_group.filter(|(_, _, key)| section.packed(*key, 0).is_ok());
            sound.next().map_or(0, |(_, start, _)| *start)
        };
        Ok((0..groups).map(&mut sound).collect())
    }

    fn signature(&self, symbol: Option<u32>) -> u64 {
        symbol.and_then(|symbol| self.signatures.get(symbol as usize)).copied().unwrap_or(0)
    }

    fn clock(&self, rank: u32) -> RankClock {
        self.clocks.get(rank as usize).copied().unwrap_or_default()
    }

    /// Whether the times of these ranks can be held against each other.
    pub fn comparable(&self, ranks: impl IntoIterator<Item = u32>) -> bool {
        let mut groups = ranks.into_iter().map(|rank| self.clock(rank).group);
        let first = groups.next();
        groups.all(|group| Some(group) == first)
    }

    /// Whether there are ranks whose clocks were never compared with those of others.
    pub fn some_apart(&self) -> bool {
        self.apart
    }

    pub fn time(&self) -> &Time {
        &self.time
    }

    /// Whether times may be wrong by a stated amount.
    pub fn has_errors(&self) -> bool {
        matches!(self.time, Time::Binned(_))
    }

    /// Whether calls were met whose times are not in the file.
    pub fn some_lost(&self) -> bool {
        self.lost.get()
    }

    /// How many calls have a time, without reading it.
    pub fn count(&self) -> u64 {
        self.section.borrow().numbers() / u64::from(self.numbers.max(1))
    }

    /// Reads the times of all calls. Says how many calls have one, and how many have none.
    pub fn check(&self, trace: &Trace, progress: &mut dyn FnMut(u64)) -> Result<(u64, u64), Error> {
        let reader = Reader::new(&trace.bundle);
        let (mut timed, mut untimed) = (0, 0);
        for rank in 0..trace.meta.ranks {
            for thread in reader.threads(rank) {
                let mut calls = Timed::new(&trace.bundle, &reader, Some(self), (rank, thread), 0)?;
                while let Some((_, told)) = calls.next_call()? {
                    *if told.is_some() { &mut timed } else { &mut untimed } += 1;
                    if (timed + untimed) % (1 << 14) == 0 {
                        progress(timed + untimed);
                    }
                }
            }
        }
        Ok((timed, untimed))
    }

    /// By how much two ranks' times may be off each other, beside what is told with each.
    pub fn clock_error(&self, a: u32, b: u32) -> u64 {
        let (one, two) = (self.clock(a), self.clock(b));
        match a == b {
            true => 0,
            false if one.group != two.group => u64::MAX,
            false => one.error.saturating_add(two.error),
        }
    }

    /// The block of a thread that has this call.
    fn block(&self, key: Key, call: u64) -> Result<Found, Error> {
        let mut section = self.section.borrow_mut();
        let each = self.numbers;
        let uneven = |packed: &chunks::Packed| {
            !packed.first.is_multiple_of(each.into()) || !packed.count.is_multiple_of(each)
        };
        match section.packed(key, call.saturating_mul(each.into())) {
            Ok(Some(packed)) if packed.method != SPANS || uneven(&packed) => {
                Err(Error::Times(chunks::Error::Method { method: packed.method, start: 0 }))
            }
            Ok(Some(packed)) => {
                let (first, calls) = (packed.first / u64::from(each), packed.count / each);
                Ok(Found::Block { first, calls, bytes: packed.bytes.to_vec() })
            }
            Ok(None) => Ok(Found::Lost { next: u64::MAX }),
            Err(chunks::Error::Lost { to, .. }) => Ok(Found::Lost { next: to / u64::from(each) }),
            Err(error) => Err(Error::Times(error)),
        }
    }
}

/// What a file has of the time of a call.
enum Found {
    Block {
        first: u64,
        calls: u32,
        bytes: Vec<u8>,
    },
    /// Nothing, up to the next call that has one.
    Lost {
        next: u64,
    },
}

/// Where the times of a block come from.
enum Unpacking<'a> {
    Nothing,
    /// From the packed bytes, call by call: what the coder has learned is held all the while, two megabytes.
    Packed(Box<Unpacker>),
    /// All of a block at once, by a coder that many threads share, and then in plain form: some ten bytes a call.
    Held {
        ahead: Box<Calls<'a>>,
        block: HeldBlock,
    },
}

impl Unpacking<'_> {
    fn left(&self) -> u32 {
        match self {
            Unpacking::Nothing => 0,
            Unpacking::Packed(unpacker) => unpacker.left(),
            Unpacking::Held { block, .. } => block.left,
        }
    }
}

/// Times in few bytes that can be read at once.
#[derive(Default)]
struct HeldBlock {
    bytes: Vec<u8>,
    at: usize,
    left: u32,
    /// The end of the call before.
    before: i64,
}

impl HeldBlock {
    fn clear(&mut self) {
        self.bytes.clear();
        (self.at, self.left, self.before) = (0, 0, 0);
    }

    fn push(&mut self, told: CallTime) {
        let CallTime { span, start_error, end_error, result } = told;
        let folded = |number: i64| (number << 1 ^ number >> 63) as u64;
        let (gap, took) = (span.start.wrapping_sub(self.before), span.end.wrapping_sub(span.start));
        let marked = [folded(gap), folded(took), start_error, end_error, u64::from(result.is_some())];
        for mut number in marked.into_iter().chain(result) {
            while number >= 0x80 {
                self.bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            self.bytes.push(number as u8);
        }
        self.before = span.end;
        self.left += 1;
    }

    /// From the beginning.
    fn rewind(&mut self) {
        (self.at, self.before) = (0, 0);
    }

    /// The next one, if there is one left.
    fn next(&mut self) -> Option<CallTime> {
        self.left = self.left.checked_sub(1)?;
        let mut number = || {
            let (mut number, mut shift) = (0, 0);
            loop {
                let byte = *self.bytes.get(self.at)?;
                self.at += 1;
                number |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 || shift > 63 {
                    return Some(number);
                }
            }
        };
        let unfolded = |number: u64| (number >> 1) as i64 ^ -((number & 1) as i64);
        let (gap, took) = (unfolded(number()?), unfolded(number()?));
        let (start_error, end_error) = (number()?, number()?);
        let result = if number()? == 0 { None } else { Some(number()?) };
        let start = self.before.wrapping_add(gap);
        self.before = start.wrapping_add(took);
        Some(CallTime { span: Span { start, end: self.before }, start_error, end_error, result })
    }
}

/// The calls of a thread with their times, from one on.
pub struct Timed<'a> {
    calls: Calls<'a>,
    times: Option<&'a Times>,
    place: (u32, u32),
    key: Key,
    unpacker: Unpacking<'a>,
    /// From the rank's clock to the common one.
    mapping: Mapping,
    /// When the first call of all began, on that one.
    zero: i64,
    /// The number of the next call.
    next: u64,
    /// Calls before this one have no times.
    without: u64,
}

impl<'a> Timed<'a> {
    /// The calls of a thread of a rank from number `from` on, with their times if there are any.
    pub fn new(
        bundle: &Bundle,
        reader: &Reader<'a>,
        times: Option<&'a Times>,
        place: (u32, u32),
        from: u64,
    ) -> Result<Timed<'a>, Error> {
        Timed::among(bundle, reader, times, place, from, 1)
    }

    /// The same, one of so many threads that are read at the same time.
    pub fn among(
        bundle: &Bundle,
        reader: &Reader<'a>,
        times: Option<&'a Times>,
        place: (u32, u32),
        from: u64,
        threads: usize,
    ) -> Result<Timed<'a>, Error> {
        let (rank, thread) = place;
        let failed = |position| move |error| Error::Call { rank, thread, position, error };
        let key = key_of(bundle, rank, thread);
        let block = times.map(|times| times.block(key, from)).transpose()?;
        let first = match block {
            Some(Found::Block { first, .. }) => first,
            _ => from,
        };
        let calls = reader.calls_from(rank, thread, first).map_err(failed(first))?;
        let unpacker = match times.and_then(|times| Unpacker::new(&times.time)) {
            None => Unpacking::Nothing,
            Some(_) if threads > MANY => {
                let ahead = reader.calls_from(rank, thread, first).map_err(failed(first))?;
                Unpacking::Held { ahead: Box::new(ahead), block: HeldBlock::default() }
            }
            Some(unpacker) => Unpacking::Packed(Box::new(unpacker)),
        };
        let clock = times.map_or_else(RankClock::default, |times| times.clock(rank));
        let zero = times.and_then(|times| times.zeros.get(clock.group)).copied().unwrap_or(0);
        let mapping = clock.mapping;
        let mut timed = Timed { calls, times, place, key, unpacker, mapping, zero, next: first, without: 0 };
        while timed.next < from {
            if timed.next_call()?.is_none() {
                break;
            }
        }
        Ok(timed)
    }

    /// The number of the call that comes next.
    pub fn number(&self) -> u64 {
        self.next
    }

    /// The symbol of the call that came last.
    pub fn symbol(&self) -> Option<u32> {
        self.calls.symbol()
    }

    /// [`Calls::kind`] of the call that came last.
    pub fn kind(&self, lanes: ClassLanes) -> Kind {
        self.calls.kind(lanes)
    }

    pub fn next_call(&mut self) -> Result<Option<(Call, Option<CallTime>)>, Error> {
        let (rank, thread) = self.place;
        let position = self.next;
        let Some(call) = self.calls.next() else { return Ok(None) };
        let call = call.map_err(|error| Error::Call { rank, thread, position, error })?;
        let told = self.time_of(call.function.id)?;
        self.next += 1;
        Ok(Some((call, told)))
    }

    /// Turns to a block, of which the call that came last is the first.
    fn begin(&mut self, times: &Times, bytes: &[u8], calls: u32) -> Result<(), Error> {
        let (rank, thread) = self.place;
        let at = |position| move |_| Error::DamagedTimes { rank, thread, position };
        match &mut self.unpacker {
            Unpacking::Nothing => Ok(()),
            Unpacking::Packed(unpacker) => unpacker.begin(bytes, calls).map_err(at(self.next)),
            Unpacking::Held { ahead, block } => {
                let mut shared = times.shared.borrow_mut();
                shared.begin(bytes, calls).map_err(at(self.next))?;
                block.clear();
                for position in self.next..self.next + u64::from(calls) {
                    // The file may have times of more calls than it has calls.
                    let Some(call) = ahead.next() else { break };
                    let call = call.map_err(|error| Error::Call { rank, thread, position, error })?;
                    let signature = times.signature(ahead.symbol());
                    block.push(shared.next(signature, call.function.id).map_err(at(position))?);
                }
                block.rewind();
                Ok(())
            }
        }
    }

    /// The call that came last has no time.
    fn pass_over(&mut self) {
        if let Unpacking::Held { ahead, .. } = &mut self.unpacker {
            // It has been read once, so it can be read.
            let _ = ahead.next();
        }
    }

    fn time_of(&mut self, function: u16) -> Result<Option<CallTime>, Error> {
        let Some(times) = self.times else { return Ok(None) };
        if self.next < self.without {
            self.pass_over();
            return Ok(None);
        }
        let (rank, thread) = self.place;
        let position = self.next;
        let damaged = |_| Error::DamagedTimes { rank, thread, position };
        if self.unpacker.left() == 0 {
            match times.block(self.key, self.next)? {
                Found::Block { first, calls, bytes } if first == position => {
                    self.begin(times, &bytes, calls)?
                }
                // Only in a file that says two things of one call.
                Found::Block { .. } => return Err(Error::DamagedTimes { rank, thread, position }),
                Found::Lost { next } => {
                    times.lost.set(true);
                    self.without = next;
                    self.pass_over();
                    return Ok(None);
                }
            }
        }
        let signature = times.signature(self.calls.symbol());
        let told = match &mut self.unpacker {
            Unpacking::Nothing => return Ok(None),
            Unpacking::Packed(unpacker) => unpacker.next(signature, function).map_err(damaged)?,
            Unpacking::Held { block, .. } => block.next().ok_or(Damaged).map_err(damaged)?,
        };
        let common = |time: i64| common(self.mapping, time).wrapping_sub(self.zero);
        let span = Span { start: common(told.span.start), end: common(told.span.end) };
        Ok(Some(CallTime { span, ..told }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_times_come_back() {
        let ends = [i64::MIN, -1, 0, 1, 77, i64::MAX];
        let all: Vec<CallTime> = ends
            .into_iter()
            .flat_map(|start| ends.map(|end| Span { start, end }))
            .zip(0u64..)
            .map(|(span, i)| {
                let (start_error, end_error) = (i, u64::MAX - i);
                CallTime { span, start_error, end_error, result: (i % 3 == 0).then_some(u64::MAX - i) }
            })
            .collect();
        let mut plain = HeldBlock::default();
        for _ in 0..2 {
            plain.clear();
            all.iter().for_each(|told| plain.push(*told));
            plain.rewind();
            assert!(all.iter().all(|told| plain.next() == Some(*told)));
            assert_eq!(plain.next(), None);
        }
    }
}
