//! When calls began and ended, beside the calls: what a trace file has of it.
//!
//! Times are packed in blocks of calls, each beside the signatures of its calls. So one who wants the time of a call reads
//! the calls of its block up to it: [`Timed`] does, from any call on.

use std::cell::{Cell, RefCell};
use std::io::{Read, Seek};
use std::ops::Range;

use refrain_encode::{Calls, Reader, hash_symbol};
use refrain_fold::bundle::Bundle;
use refrain_fold::pack::number::SPANS;
use refrain_model::Call;
use refrain_model::time::Time;
use refrain_times::{Span, Told, Unpacker};
use refrain_tracefile::Trace;
use refrain_tracefile::chunks::{self, Key, Section};
use refrain_tracefile::clocks::{Clocks, Mapping};

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
    /// How the clock of each rank is turned into one that all share.
    clocks: Clocks,
    /// When the first call began.
    zero: i64,
    lost: Cell<bool>,
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
        if !time.of_every_call() {
            return Ok(None);
        }
        let source: Box<dyn Source> = Box::new(source);
        let section = Section::within(source, chunks.unwrap_or(0..0)).map_err(Error::Times)?;
        let (section, clocks) = (RefCell::new(section), trace.meta.clocks.clone().unwrap_or_default());
        let symbols = trace.bundle.symbols.iter();
        let signatures = symbols.map(|symbol| hash_symbol(&symbol.bytes, symbol.site)).collect();
        let mut times = Times { section, signatures, time, clocks, zero: 0, lost: Cell::new(false) };
        times.zero = times.earliest(trace)?;
        Ok(Some(times))
    }

    /// When the first of all calls began.
    fn earliest(&self, trace: &Trace) -> Result<i64, Error> {
        let reader = Reader::new(&trace.bundle);
        let mut first = None;
        for rank in 0..trace.meta.ranks {
            for thread in reader.threads(rank) {
                let mut calls = Timed::new(&trace.bundle, &reader, Some(self), (rank, thread), 0)?;
                if let Some((_, Some(told))) = calls.next_call()? {
                    first = Some(first.map_or(told.span.start, |first: i64| first.min(told.span.start)));
                }
            }
        }
        Ok(first.unwrap_or(0))
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
        if a == b { 0 } else { self.clocks.error(a).saturating_add(self.clocks.error(b)) }
    }

    /// The block of a thread that has this call.
    fn block(&self, key: Key, call: u64) -> Result<Found, Error> {
        let mut section = self.section.borrow_mut();
        let at = call.saturating_mul(2);
        match section.packed(key, at) {
            Ok(Some(packed)) if packed.method != SPANS || packed.first % 2 == 1 || packed.count % 2 == 1 => {
                Err(Error::Times(chunks::Error::Method { method: packed.method, start: 0 }))
            }
            Ok(Some(packed)) => {
                let (first, calls) = (packed.first / 2, packed.count / 2);
                Ok(Found::Block { first, calls, bytes: packed.bytes.to_vec() })
            }
            Ok(None) => Ok(Found::Lost { next: u64::MAX }),
            Err(chunks::Error::Lost { to, .. }) => Ok(Found::Lost { next: to / 2 }),
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

/// The calls of a thread with their times, from one on.
pub struct Timed<'a> {
    calls: Calls<'a>,
    times: Option<&'a Times>,
    place: (u32, u32),
    key: Key,
    unpacker: Option<Unpacker>,
    /// From the rank's clock to the common one.
    mapping: Mapping,
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
        let (rank, thread) = place;
        let failed = |position| move |error| Error::Call { rank, thread, position, error };
        let key = Key { member: bundle.member(rank, thread).map_or(u64::MAX, u64::from), lane: LANE };
        let block = times.map(|times| times.block(key, from)).transpose()?;
        let first = match block {
            Some(Found::Block { first, .. }) => first,
            _ => from,
        };
        let calls = reader.calls_from(rank, thread, first).map_err(failed(first))?;
        let unpacker = times.and_then(|times| Unpacker::new(&times.time));
        let mapping = times.map_or_else(Mapping::default, |times| times.clocks.of(rank));
        let mut timed = Timed { calls, times, place, key, unpacker, mapping, next: first, without: 0 };
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

    pub fn next_call(&mut self) -> Result<Option<(Call, Option<Told>)>, Error> {
        let (rank, thread) = self.place;
        let position = self.next;
        let Some(call) = self.calls.next() else { return Ok(None) };
        let call = call.map_err(|error| Error::Call { rank, thread, position, error })?;
        let told = self.told(call.function.id)?;
        self.next += 1;
        Ok(Some((call, told)))
    }

    fn told(&mut self, function: u16) -> Result<Option<Told>, Error> {
        let (Some(times), Some(unpacker)) = (self.times, &mut self.unpacker) else { return Ok(None) };
        if self.next < self.without {
            return Ok(None);
        }
        let (rank, thread) = self.place;
        let position = self.next;
        let damaged = |_| Error::DamagedTimes { rank, thread, position };
        if unpacker.left() == 0 {
            match times.block(self.key, self.next)? {
                Found::Block { first, calls, bytes } if first == position => {
                    unpacker.begin(&bytes, calls).map_err(damaged)?;
                }
                // Only in a file that says two things of one call.
                Found::Block { .. } => return Err(Error::DamagedTimes { rank, thread, position }),
                Found::Lost { next } => {
                    times.lost.set(true);
                    self.without = next;
                    return Ok(None);
                }
            }
        }
        let symbol = self.calls.symbol().and_then(|symbol| times.signatures.get(symbol as usize));
        let signature = symbol.copied().unwrap_or(0);
        let Told { span, start_error, end_error } = unpacker.next(signature, function).map_err(damaged)?;
        let common = |time: i64| {
            // Before its machine was switched on no rank made a call; a damaged file may say so.
            let common = u64::try_from(time).map_or(time, |time| self.mapping.common(time) as i64);
            common.wrapping_sub(times.zero)
        };
        let span = Span { start: common(span.start), end: common(span.end) };
        Ok(Some(Told { span, start_error, end_error }))
    }
}
