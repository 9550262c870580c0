//! Every call of one rank of a folded trace, decoded, in order. Other ranks are not expanded.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use refrain_fold::FastMap;
use refrain_fold::bundle::classes::Kind;
use refrain_fold::bundle::{Bundle, Index, Walk};
use refrain_fold::stream::Stream;
use refrain_model::Call;

use crate::classes::ClassLanes;
use crate::decoder::{Decoder, Made, makers_of, most_elements_of};
use crate::digest::Digest;
use crate::drawn::{Draw, Drawn};
use crate::error::Error;
use crate::hash::hash_symbol;
use crate::layout::Layout;
use crate::lossy::histograms;
use crate::polls::Waiting;
use crate::seek::{self, Counts, last_within};

/// Reads the ranks of a bundle, one thread after the other: what all of them need is made once.
#[derive(Debug)]
pub struct Reader<'a> {
    bundle: &'a Bundle,
    index: Index<'a>,
    shared: Rc<Shared>,
    /// Of the rank asked for last.
    made: RefCell<Option<(u32, Rc<Made>)>>,
    /// Numbers of histograms are drawn.
    draw: Option<Draw>,
}

#[derive(Debug)]
struct Shared {
    /// By symbol, once it was met: what its bytes say, and their hash.
    layouts: Vec<OnceCell<(Layout, u64)>>,
    /// Events read so far.
    events: Cell<u64>,
}

impl Shared {
    fn layout(&self, bundle: &Bundle, symbol: u32) -> Result<&(Layout, u64), Error> {
        let (Some(cell), Some(entry)) =
            (self.layouts.get(symbol as usize), bundle.symbols.get(symbol as usize))
        else {
            return Err(Error::BadSymbol { function: "?", at: 0 });
        };
        if let Some(known) = cell.get() {
            return Ok(known);
        }
        let layout = Layout::parse(&entry.bytes)?;
        Ok(cell.get_or_init(|| (layout, hash_symbol(&entry.bytes, entry.site))))
    }
}

/// A thread that has any costs as much as so many of them.
const MAKERS_OF_THREAD: u64 = 16;

/// Symbols whose calls take more numbers than this are read anew each time.
const MOST_KEPT: usize = 1 << 12;

/// How often the names of communicators are looked up anew, where threads made some from those of others.
const MOST_ROUNDS: usize = 16;

impl<'a> Reader<'a> {
    /// The bundle must be valid.
    pub fn new(bundle: &'a Bundle) -> Reader<'a> {
        let mut layouts = Vec::new();
        layouts.resize_with(bundle.symbols.len(), OnceCell::new);
        let shared = Rc::new(Shared { layouts, events: Cell::new(0) });
        Reader { bundle, index: Index::new(bundle), shared, made: RefCell::new(None), draw: None }
    }

    /// Numbers of histograms are drawn, instead of coming in order of size.
    pub fn drawing(bundle: &'a Bundle, draw: Draw) -> Reader<'a> {
        Reader { draw: Some(draw), ..Reader::new(bundle) }
    }

    /// The symbols of a thread of which numbers are drawn.
    pub fn drawn_symbols(&self, rank: u32, thread: u32) -> Result<Vec<u32>, Error> {
        let (cohort, member) = self.cohort(rank, thread)?;
        let mut symbols: Vec<u32> = self.drawn((rank, thread), cohort, member)?.symbols().collect();
        symbols.sort_unstable();
        symbols.dedup();
        Ok(symbols)
    }

    /// The threads of a rank, lowest first.
    pub fn threads(&self, rank: u32) -> Vec<u32> {
        self.index.threads(rank).collect()
    }

    pub fn calls(&self, rank: u32, thread: u32) -> Result<Calls<'a>, Error> {
        let events = self.events(rank, thread)?;
        Ok(Calls { events, failed: false, waiting: Waiting::default(), symbol: None, each_poll: true })
    }

    /// The calls of a thread from number `n` on. Those before are not read, but for those that make communicators, and
    /// those whose lists differ in length.
    pub fn calls_from(&self, rank: u32, thread: u32, n: u64) -> Result<Calls<'a>, Error> {
        if n == 0 || self.draw.is_some() {
            let mut calls = self.calls(rank, thread)?;
            // What was drawn before has to be known.
            for _ in 0..n {
                calls.next().transpose()?;
            }
            return Ok(calls);
        }
        let (cohort, member) = self.cohort(rank, thread)?;
        let before = |events: u64| -> Result<Counts, Error> {
            let counts = Walk::before(self.bundle, cohort, member, events).map_err(Error::Trace)?;
            Ok(counts.into_iter().collect())
        };
        let lanes = self.lanes(cohort, member);
        // Failed polls are calls too, but no events.
        let polls = |counts: &Counts| {
            counts.iter().fold(0u64, |sum, (symbol, times)| {
                let polls = self.shared.layout(self.bundle, *symbol).ok().and_then(|layout| layout.0.polls);
                let lane = polls.and_then(|lane| lanes.get(symbol)?.get(usize::from(lane))?.as_ref());
                let polls = lane.map_or(0, |stream| stream.sum(*times).max(0));
                sum.saturating_add(u64::try_from(polls).unwrap_or(u64::MAX))
            })
        };
        let whole = before(u64::MAX)?;
        let all: u64 = whole.values().fold(0, |sum, count| sum.saturating_add(*count));
        let event = match polls(&whole) {
            0 => all.min(n),
            _ => last_within(n, all.min(n), |events| Ok(events.saturating_add(polls(&before(events)?))))?,
        };
        let counts = before(event)?;
        let rest = n.saturating_sub(event.saturating_add(polls(&counts)));

        let mut read = 0;
        let mut taken: HashMap<u32, Vec<u64>> = HashMap::new();
        for (&symbol, &times) in &counts {
            let (layout, _) = self.shared.layout(self.bundle, symbol)?;
            let lanes = lanes.get(&symbol).map_or(&[][..], |lanes| lanes);
            taken.insert(symbol, seek::taken((self.bundle, layout), lanes, times, &mut read)?);
        }
        self.shared.events.set(self.shared.events.get() + read);
        let taken = |symbol, lane| {
            taken.get(&symbol).and_then(|taken| taken.get(usize::from(lane))).copied().unwrap_or(0)
        };
        let made = |symbol| counts.get(&symbol).copied().unwrap_or(0);
        let walk = Walk::from(self.bundle, cohort, member, event, taken, made).map_err(Error::Trace)?;

        let mut decoder = Decoder::of_thread(self.bundle, rank, thread, self.made(rank)?);
        let learnt = counts.iter().filter(|(symbol, _)| self.is_maker(**symbol)).map(|(_, times)| *times);
        let learnt = learnt.fold(0, u64::saturating_add);
        if learnt <= self.most_makers() {
            let mut makers = self.over(self.makers(rank, thread, self.most_passed())?, decoder);
            let mut read = 0;
            while read < learnt && makers.next_event()?.is_some() {
                read += 1;
            }
            decoder = makers.decoder;
            decoder.is_cut = read < learnt;
        } else {
            decoder.is_cut = true;
        }
        let events = self.over(walk, decoder);
        let mut calls =
            Calls { events, failed: false, waiting: Waiting::default(), symbol: None, each_poll: true };
        if rest > 0 && event < all {
            calls.begin()?;
            calls.waiting.pass(rest);
        }
        Ok(calls)
    }

    /// By symbol, what one of the members of a cohort has in its lanes.
    fn lanes(&self, cohort: usize, member: u32) -> HashMap<u32, Vec<Option<Cow<'a, Stream>>>> {
        let bundle = self.bundle;
        let cohort = &bundle.cohorts[cohort];
        let mut streams = bundle.values_of(cohort).iter().map(|lane| bundle.stream_of(lane, member));
        let mut lanes = HashMap::new();
        let structure = bundle.structures.get(cohort.structure as usize);
        for symbol in structure.map(|structure| structure.symbols()).unwrap_or_default() {
            let count = bundle.symbols.get(symbol as usize).map_or(0, |entry| entry.lanes);
            lanes.insert(symbol, streams.by_ref().take(count.into()).collect());
        }
        lanes
    }

    fn is_maker(&self, symbol: u32) -> bool {
        self.shared.layout(self.bundle, symbol).is_ok_and(|(layout, _)| Decoder::learns_from(layout))
    }

    /// The calls of a thread that make communicators and windows. No others are read.
    pub fn making(&self, rank: u32, thread: u32) -> Result<Calls<'a>, Error> {
        let decoder = Decoder::of_thread(self.bundle, rank, thread, self.made(rank)?);
        let events = self.over(self.makers(rank, thread, self.most_passed())?, decoder);
        Ok(Calls { events, failed: false, waiting: Waiting::default(), symbol: None, each_poll: true })
    }

    /// How many events were decoded so far, by all that came from this reader.
    pub fn events_read(&self) -> u64 {
        self.shared.events.get()
    }

    /// The events of a thread, to be read by one who knows the communicators that other threads of the rank made.
    pub(crate) fn events(&self, rank: u32, thread: u32) -> Result<Events<'a>, Error> {
        let (cohort, member) = self.cohort(rank, thread)?;
        let walk = Walk::of(self.bundle, cohort, member).map_err(Error::Trace)?;
        let mut events = self.over(walk, Decoder::of_thread(self.bundle, rank, thread, self.made(rank)?));
        events.drawn = self.drawn((rank, thread), cohort, member)?;
        Ok(events)
    }

    /// The histograms of a thread, if numbers are drawn.
    fn drawn(&self, of: (u32, u32), cohort: usize, member: u32) -> Result<Drawn, Error> {
        let mut drawn = Drawn::default();
        let Some(draw) = &self.draw else { return Ok(drawn) };
        let lanes = self.lanes(cohort, member);
        let mut read = 0;
        for (symbol, times) in Walk::before(self.bundle, cohort, member, u64::MAX).map_err(Error::Trace)? {
            let (layout, _) = self.shared.layout(self.bundle, symbol)?;
            let roles = histograms::roles(layout);
            let Some(lanes) = lanes.get(&symbol).filter(|_| !roles.is_empty()) else { continue };
            let taken = seek::taken((self.bundle, layout), lanes, times, &mut read)?;
            for (lane, _) in roles {
                let at = usize::from(lane);
                if let (Some(Some(stream)), Some(used)) = (lanes.get(at), taken.get(at)) {
                    drawn.add(of, (symbol, lane), (stream, *used), draw);
                }
            }
        }
        Ok(drawn)
    }

    /// Which cohort it is in, and its number among the members.
    fn cohort(&self, rank: u32, thread: u32) -> Result<(usize, u32), Error> {
        self.index.cohort_of(rank, thread).ok_or(Error::NoSuchRank { rank, thread })
    }

    fn most_makers(&self) -> u64 {
        makers_of(most_elements_of(self.bundle))
    }

    /// So many symbols are passed by to find them.
    fn most_passed(&self) -> u64 {
        self.most_makers().saturating_mul(16)
    }

    fn over(&self, walk: Walk<'a>, decoder: Decoder) -> Events<'a> {
        Events {
            bundle: self.bundle,
            walk,
            decoder,
            shared: self.shared.clone(),
            digest: Digest::default(),
            values: Vec::new(),
            inline: Vec::new(),
            drawn: Drawn::default(),
        }
    }

    /// What the threads of a rank made that others may use. Only the calls that make it are read.
    fn made(&self, rank: u32) -> Result<Rc<Made>, Error> {
        if let Some((of, made)) = &*self.made.borrow()
            && *of == rank
        {
            return Ok(made.clone());
        }
        let threads = self.threads(rank);
        let mut made = Rc::new(Made::default());
        // A thread that is alone has made all it knows.
        let makers = if threads.len() > 1 { self.threads_with_makers(rank, &threads)? } else { Vec::new() };
        let cost = |makers: u64| makers.saturating_add(MAKERS_OF_THREAD);
        if makers.iter().fold(0, |sum: u64, (_, makers)| sum.saturating_add(cost(*makers)))
            > self.most_makers()
        {
            made = Rc::new(Made::cut());
        } else {
            let mut nameless = usize::MAX;
            for _ in 0..MOST_ROUNDS {
                made = Rc::new(self.looked_up(rank, &makers, &made)?);
                let still = made.nameless();
                if made.is_cut || still == 0 || still >= nameless {
                    break;
                }
                nameless = still;
            }
        }
        *self.made.borrow_mut() = Some((rank, made.clone()));
        Ok(made)
    }

    /// What these threads made, as far as names follow from what is known of it already.
    fn looked_up(&self, rank: u32, makers: &[(u32, u64)], known: &Rc<Made>) -> Result<Made, Error> {
        let mut next = Made::default();
        let mut passed = self.most_passed();
        for &(thread, calls) in makers {
            let decoder = Decoder::of_thread(self.bundle, rank, thread, known.clone());
            let mut events = self.over(self.makers(rank, thread, passed)?, decoder);
            let mut read = 0;
            while events.next_event()?.is_some() {
                read += 1;
            }
            next.is_cut |= read < calls;
            next.note(&events.decoder);
            passed = passed.saturating_sub(events.walk.passed());
        }
        Ok(next)
    }

    /// The threads that made communicators or windows, and in how many calls.
    fn threads_with_makers(&self, rank: u32, threads: &[u32]) -> Result<Vec<(u32, u64)>, Error> {
        let mut some: HashMap<usize, bool> = HashMap::new();
        // Of cohorts whose members all did the same.
        let mut counted: HashMap<usize, u64> = HashMap::new();
        let mut makers = Vec::new();
        for &thread in threads {
            let (cohort, member) = self.cohort(rank, thread)?;
            let structure = || self.bundle.structures.get(self.bundle.cohorts[cohort].structure as usize);
            let symbols = || structure().map(|structure| structure.symbols()).unwrap_or_default();
            let has = some.entry(cohort);
            if !*has.or_insert_with(|| symbols().into_iter().any(|symbol| self.is_maker(symbol))) {
                continue;
            }
            let own = &self.bundle.cohorts[cohort];
            let count = || {
                let counts = self.bundle.counts(own, member).into_iter();
                let counts = counts.filter(|(symbol, _)| self.is_maker(*symbol)).map(|(_, times)| times);
                counts.fold(0, u64::saturating_add)
            };
            let count = if own.is_uniform() { *counted.entry(cohort).or_insert_with(count) } else { count() };
            makers.push((thread, count));
            if makers.len() as u64 > self.most_makers() / MAKERS_OF_THREAD {
                break;
            }
        }
        Ok(makers)
    }

    /// The calls that make communicators and windows, among so many.
    fn makers(&self, rank: u32, thread: u32, most: u64) -> Result<Walk<'a>, Error> {
        let (cohort, member) = self.cohort(rank, thread)?;
        Walk::only(self.bundle, cohort, member, |symbol| self.is_maker(symbol), most).map_err(Error::Trace)
    }

    /// How many calls a thread made, and their digest. Every number is read as its place says, and none is kept: it takes the
    /// same memory whatever the calls are. An error comes with the number of the call. `step` is told of calls now and then.
    pub fn check(
        &self,
        rank: u32,
        thread: u32,
        step: &mut dyn FnMut(u64),
    ) -> Result<(u64, u64), (u64, Error)> {
        let mut calls = 0;
        let checked = self.check_from(rank, thread, &mut calls, step);
        checked.map(|digest| (calls, digest)).map_err(|error| (calls, error))
    }

    fn check_from(
        &self,
        rank: u32,
        thread: u32,
        calls: &mut u64,
        step: &mut dyn FnMut(u64),
    ) -> Result<u64, Error> {
        /// Often enough for a bar that moves, seldom enough to cost nothing.
        const OFTEN: u64 = 1 << 14;
        let (cohort, member) = self.cohort(rank, thread)?;
        let mut walk = Walk::of(self.bundle, cohort, member).map_err(Error::Trace)?;
        let mut fixed = Fixed::new(self.lanes(cohort, member));
        let mut decoder = Decoder::passing();
        let (mut digest, mut events, mut told) = (Digest::default(), 0u64, 0);
        while let Some(symbol) = walk.pass_symbol() {
            self.shared.events.set(self.shared.events.get() + 1);
            events += 1;
            if events.is_multiple_of(OFTEN) {
                step(*calls - told);
                told = *calls;
            }
            let (layout, hash) = self.shared.layout(self.bundle, symbol)?;
            digest.symbol(*hash);
            if let Some((values, stands_for)) = fixed.of(symbol) {
                values.iter().for_each(|value| digest.value(*value));
                *calls = calls.saturating_add(*stands_for);
                continue;
            }
            walk.enter(symbol);
            let bad = Error::BadSymbol { function: layout.function.name, at: 0 };
            if layout.lanes != self.bundle.symbols[symbol as usize].lanes {
                return Err(bad);
            }
            let (mut missing, mut keep) = (false, fixed.keeper(symbol));
            let mut next = |lane| {
                let value = walk.value(lane).unwrap_or_else(|| {
                    missing = true;
                    0
                });
                digest.value(value);
                if let Some(keep) = keep.as_mut().filter(|keep| keep.len() <= MOST_KEPT) {
                    keep.push(value);
                }
                value
            };
            decoder.call_with(layout, &mut next, &mut Vec::new())?;
            let polls = layout.polls.map(&mut next);
            let Ok(polls) = u64::try_from(polls.unwrap_or(0)) else { return Err(bad) };
            if missing {
                return Err(bad);
            }
            fixed.learn(symbol, keep, polls.saturating_add(1));
            *calls = calls.saturating_add(polls).saturating_add(1);
        }
        step(*calls - told);
        Ok(digest.get())
    }
}

/// Symbols of a thread whose calls all have the same numbers: they need not be read again.
struct Fixed<'a> {
    lanes: HashMap<u32, Vec<Option<Cow<'a, Stream>>>>,
    /// By symbol, once it was met; nothing of those whose numbers change, or are too many.
    known: FastMap<u32, Option<(Vec<i64>, u64)>>,
}

impl<'a> Fixed<'a> {
    fn new(lanes: HashMap<u32, Vec<Option<Cow<'a, Stream>>>>) -> Fixed<'a> {
        Fixed { lanes, known: FastMap::default() }
    }

    /// The numbers that each of them takes, and for how many calls it stands.
    fn of(&self, symbol: u32) -> Option<&(Vec<i64>, u64)> {
        self.known.get(&symbol)?.as_ref()
    }

    /// Room for the numbers of a call, if it is the first of a symbol that is fixed.
    fn keeper(&self, symbol: u32) -> Option<Vec<i64>> {
        let is_fixed = |lane: &Option<Cow<'_, Stream>>| {
            lane.as_ref().is_some_and(|stream| stream.as_constant().is_some())
        };
        let first = !self.known.contains_key(&symbol);
        (first && self.lanes.get(&symbol)?.iter().all(is_fixed)).then(Vec::new)
    }

    fn learn(&mut self, symbol: u32, values: Option<Vec<i64>>, calls: u64) {
        let values = values.filter(|values| values.len() <= MOST_KEPT);
        self.known.entry(symbol).or_insert(values.map(|values| (values, calls)));
    }
}

/// What was folded, one symbol after the other: a call, which may stand for failed polls before it too.
pub(crate) struct Events<'a> {
    bundle: &'a Bundle,
    walk: Walk<'a>,
    decoder: Decoder,
    shared: Rc<Shared>,
    digest: Digest,
    /// Of the last event, in the order in which they were recorded.
    pub(crate) values: Vec<(u16, i64)>,
    /// The same of an event whose symbol has them.
    pub(crate) inline: Vec<(u16, i64)>,
    /// Lanes whose numbers are drawn.
    drawn: Drawn,
}

pub(crate) struct Event {
    pub(crate) symbol: u32,
    pub(crate) call: Call,
    /// How many polls failed before, where the symbol counts them.
    polls: Option<i64>,
}

impl Events<'_> {
    pub(crate) fn next_event(&mut self) -> Result<Option<Event>, Error> {
        let Some(symbol) = self.walk.next_symbol() else { return Ok(None) };
        self.shared.events.set(self.shared.events.get() + 1);
        let (layout, hash) = self.shared.layout(self.bundle, symbol)?;
        let bad = Error::BadSymbol { function: layout.function.name, at: 0 };
        if layout.lanes != self.bundle.symbols[symbol as usize].lanes {
            return Err(bad);
        }
        let (digest, walk, values) = (&mut self.digest, &mut self.walk, &mut self.values);
        let drawn = &mut self.drawn;
        digest.symbol(*hash);
        values.clear();
        let mut missing = false;
        let mut next = |lane| {
            let value = drawn.next(symbol, lane).or_else(|| walk.value(lane)).unwrap_or_else(|| {
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
        self.shared.layouts.get(symbol as usize)?.get().map(|(layout, _)| layout)
    }

    /// The rank's place in the communicator that is parameter `j` of this symbol, as things stand.
    pub(crate) fn base_rank(&self, symbol: u32, j: usize) -> i64 {
        self.layout(symbol).map_or(0, |layout| self.decoder.base_rank(layout, j))
    }

    fn waiting(&mut self, event: Event) -> Result<Waiting, Error> {
        let Some(polls) = event.polls else { return Ok(Waiting::only(event.call)) };
        let (layout, _) = self.shared.layout(self.bundle, event.symbol)?;
        // The count itself is no value of the poll.
        let values = &self.values[..self.values.len().saturating_sub(1)];
        Waiting::expand(&mut self.decoder, layout, values, polls, event.call)
    }
}

/// The digest of what a bundle has of one thread.
pub(crate) fn digest_of(reader: &Reader<'_>, rank: u32, thread: u32) -> Result<u64, Error> {
    let mut events = reader.events(rank, thread)?;
    while events.next_event()?.is_some() {}
    Ok(events.digest.get())
}

pub struct Calls<'a> {
    events: Events<'a>,
    failed: bool,
    waiting: Waiting,
    symbol: Option<u32>,
    each_poll: bool,
}

impl<'a> Calls<'a> {
    /// Of one thread of one rank; who reads several has a [`Reader`].
    pub fn new(bundle: &'a Bundle, rank: u32, thread: u32) -> Result<Calls<'a>, Error> {
        Reader::new(bundle).calls(rank, thread)
    }

    /// Without most of the polls that found nothing: of those in a row only the last may be there.
    pub fn with_few_polls(self) -> Calls<'a> {
        Calls { each_poll: false, ..self }
    }

    /// Of the calls read so far, if they were read from the first on. After the last one it equals the digest taken while the program ran.
    pub fn digest(&self) -> u64 {
        self.events.digest.get()
    }

    /// What a communicator is called, as far as the calls read so far have made it.
    pub fn comm_name(&self, id: u32) -> Option<&str> {
        self.events.decoder.name_of_comm(id)
    }

    /// The symbol of the call read last.
    pub fn symbol(&self) -> Option<u32> {
        self.symbol
    }

    /// The class of the call read last, as it was told when the call was recorded. `lanes` are those of its symbol.
    pub fn kind(&self, lanes: ClassLanes) -> Kind {
        lanes.kind(&self.events.values)
    }

    fn advance(&mut self) -> Result<Option<Call>, Error> {
        self.begin()?;
        Ok(self.waiting.next())
    }

    /// The next event's calls are to be given out, if there is one.
    fn begin(&mut self) -> Result<(), Error> {
        if let Some(event) = self.events.next_event()? {
            self.symbol = Some(event.symbol);
            self.waiting = match self.each_poll {
                true => self.events.waiting(event)?,
                false => Waiting::only(event.call),
            };
        }
        Ok(())
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
