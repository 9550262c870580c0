//! Every call of one rank of a folded trace, decoded, in order. Other ranks are not expanded.

use refrain_fold::bundle::{Bundle, Walk};
use refrain_model::Call;

use crate::decoder::Decoder;
use crate::digest::Digest;
use crate::error::Error;
use crate::hash::hash_symbol;
use crate::layout::Layout;
use crate::polls::Waiting;

/// What was folded, one symbol after the other: a call, which may stand for failed polls before it too.
pub(crate) struct Events<'a> {
    bundle: &'a Bundle,
    walk: Walk<'a>,
    decoder: Decoder,
    /// By symbol; a layout is read once and used for every occurrence.
    layouts: Vec<Option<(Layout, u64)>>,
    digest: Digest,
    /// Of the last event, in the order in which they were recorded.
    pub(crate) values: Vec<(u16, i64)>,
    /// The same of an event whose symbol has them.
    pub(crate) inline: Vec<(u16, i64)>,
}

pub(crate) struct Event {
    pub(crate) symbol: u32,
    pub(crate) call: Call,
    /// How many polls failed before, where the symbol counts them.
    polls: Option<i64>,
}

impl<'a> Events<'a> {
    pub(crate) fn new(
        bundle: &'a Bundle,
        rank: u32,
        thread: u32,
        mut decoder: Decoder,
    ) -> Result<Events<'a>, Error> {
        decoder.thread = thread;
        let walk = Walk::new(bundle, rank, thread).map_err(Error::Trace)?;
        Ok(Events {
            bundle,
            walk: walk.ok_or(Error::NoSuchRank { rank, thread })?,
            decoder,
            layouts: vec![None; bundle.symbols.len()],
            digest: Digest::default(),
            values: Vec::new(),
            inline: Vec::new(),
        })
    }

    pub(crate) fn next_event(&mut self) -> Result<Option<Event>, Error> {
        let Some(symbol) = self.walk.next_symbol() else { return Ok(None) };
        let index = symbol as usize;
        if self.layouts[index].is_none() {
            let symbol = &self.bundle.symbols[index];
            let hash = hash_symbol(&symbol.bytes, symbol.site);
            self.layouts[index] = Some((Layout::parse(&symbol.bytes)?, hash));
        }
        let Some((layout, hash)) = &self.layouts[index] else {
            return Err(Error::BadSymbol { function: "?", at: 0 });
        };
        let bad = Error::BadSymbol { function: layout.function.name, at: 0 };
        if layout.lanes != self.bundle.symbols[index].lanes {
            return Err(bad);
        }
        let (digest, walk, values) = (&mut self.digest, &mut self.walk, &mut self.values);
        digest.symbol(*hash);
        values.clear();
        let mut missing = false;
        let mut next = |lane| {
            let value = walk.value(lane).unwrap_or_else(|| {
                missing = true;
                0
            });
            digest.value(value);
            values.push((lane, value));
            value
        };
        self.inline.clear();
        let call = self.decoder.call_with(layout, &mut next, &mut self.inline)?;
        let polls = layout.polls.map(&mut next);
        if missing { Err(bad) } else { Ok(Some(Event { symbol, call, polls })) }
    }

    /// What the last event's symbol says.
    pub(crate) fn layout(&self, symbol: u32) -> Option<&Layout> {
        self.layouts.get(symbol as usize)?.as_ref().map(|(layout, _)| layout)
    }

    /// The rank's place in the communicator that is parameter `j` of this symbol, as things stand.
    pub(crate) fn base_rank(&self, symbol: u32, j: usize) -> i64 {
        self.layout(symbol).map_or(0, |layout| self.decoder.base_rank(layout, j))
    }

    fn waiting(&mut self, event: Event) -> Result<Waiting, Error> {
        let Some((Some((layout, _)), polls)) = self.layouts.get(event.symbol as usize).zip(event.polls)
        else {
            return Ok(Waiting::only(event.call));
        };
        // The count itself is no value of the poll.
        let values = &self.values[..self.values.len().saturating_sub(1)];
        Waiting::expand(&mut self.decoder, layout, values, polls, event.call)
    }
}

/// A thread's events, to be read by one who knows the communicators that other threads of the rank made.
pub(crate) fn events(bundle: &Bundle, rank: u32, thread: u32) -> Result<Events<'_>, Error> {
    let mut decoder = Decoder::new(rank);
    for other in bundle.threads(rank) {
        if other != thread {
            let mut events = Events::new(bundle, rank, other, decoder)?;
            while events.next_event()?.is_some() {}
            decoder = events.decoder;
        }
    }
    Events::new(bundle, rank, thread, decoder)
}

/// The digest of what a bundle has of one thread.
pub(crate) fn digest_of(bundle: &Bundle, rank: u32, thread: u32) -> Result<u64, Error> {
    let mut events = events(bundle, rank, thread)?;
    while events.next_event()?.is_some() {}
    Ok(events.digest.get())
}

pub struct Calls<'a> {
    events: Events<'a>,
    failed: bool,
    waiting: Waiting,
    symbol: Option<u32>,
}

impl<'a> Calls<'a> {
    pub fn new(bundle: &'a Bundle, rank: u32, thread: u32) -> Result<Calls<'a>, Error> {
        let events = events(bundle, rank, thread)?;
        Ok(Calls { events, failed: false, waiting: Waiting::default(), symbol: None })
    }

    /// Of the calls read so far. After the last one it equals the digest taken while the program ran.
    pub fn digest(&self) -> u64 {
        self.events.digest.get()
    }

    /// The symbol of the call read last.
    pub fn symbol(&self) -> Option<u32> {
        self.symbol
    }

    fn advance(&mut self) -> Result<Option<Call>, Error> {
        let Some(event) = self.events.next_event()? else { return Ok(None) };
        self.symbol = Some(event.symbol);
        self.waiting = self.events.waiting(event)?;
        Ok(self.waiting.next())
    }
}

impl Iterator for Calls<'_> {
    type Item = Result<Call, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        if let Some(call) = self.waiting.next() {
            return Some(Ok(call));
        }
        let call = self.advance();
        self.failed = call.is_err();
        call.transpose()
    }
}
