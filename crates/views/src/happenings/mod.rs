//! What happened: calls with their times and what they mean, for whoever draws or exports them.
//!
//! A [`Walk`] goes over the calls of some ranks in the order of time and tells when each begins and when it ends. Memory is
//! what is in flight: requests, messages, one block of times a thread. A walk over one rank after the other takes the
//! least; a walk over all of them also tells which send met which receive ([`Message::id`]).
//!
//! ```no_run
//! # fn trace() -> (refrain_tracefile::Trace, Option<refrain_views::timed::Times>) { unimplemented!() }
//! use refrain_views::happenings::{Meaning, Moment, Walk, When};
//! let (trace, times) = trace();
//! let when = When::of(&trace, times.as_ref())?;
//! let mut walk = Walk::new(&trace, &when, &[0, 1, 2], None)?;
//! while let Some(moment) = walk.next()? {
//!     match moment {
//!         Moment::Begins(call) => println!("{} rank {} {}", call.span.start, call.rank, call.call.function.name),
//!         Moment::Ends(_, ends) => ends.iter().for_each(|meaning| {
//!             if let Meaning::Received(message) = meaning { println!("{} bytes", message.bytes) }
//!         }),
//!     }
//! }
//! # Ok::<(), refrain_views::Error>(())
//! ```

mod amount;
mod known;
mod plan;
mod state;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

use refrain_encode::Reader;
use refrain_model::{Call, Function, Value};
use refrain_times::{CallTime, Span};
use refrain_tracefile::{EXTRAPOLATED, Trace};

use crate::error::Error;
use crate::human::plural;
pub use crate::meaning::comms::Comm;
use crate::select::{Between, Numbers};
use crate::timed::{Timed, Times, time_of};
use plan::{Means, Plan};
use state::State;

/// Where the times of calls come from.
pub struct When<'a>(Source<'a>);

enum Source<'a> {
    File(&'a Times),
    /// With what the trace has.
    Sums(Means, String),
}

impl<'a> When<'a> {
    /// Nanoseconds that a call takes where no time was kept.
    pub const STEP: i64 = 1000;

    /// From the file where it tells the times of single calls, otherwise from its sums.
    pub fn of(trace: &Trace, times: Option<&'a Times>) -> Result<When<'a>, Error> {
        Ok(When(match times {
            Some(times) => Source::File(times),
            None => {
                let word = match (trace.meta.extrapolated(), trace.meta.timed) {
                    (Some(_), _) => EXTRAPOLATED.to_owned(),
                    (None, true) => time_of(trace)?.to_string(),
                    (None, false) => "off".to_owned(),
                };
                Source::Sums(Means::of(trace)?, word)
            }
        }))
    }

    /// Times are made up of sums: no single one of them is what it was.
    pub fn is_reconstructed(&self) -> bool {
        matches!(self.0, Source::Sums(..))
    }

    /// No time was kept: each call takes [`When::STEP`].
    pub fn is_off(&self) -> bool {
        matches!(&self.0, Source::Sums(means, _) if means.is_off())
    }

    /// The same in a sentence, for people.
    pub fn note(&self) -> Option<String> {
        let Source::Sums(means, word) = &self.0 else { return None };
        Some(match means.is_off() {
            true if word == EXTRAPOLATED => {
                "times are made up: the trace was extrapolated, nobody recorded it, so each call takes a microsecond"
                    .into()
            }
            true => {
                "times are made up: the run was recorded with --time off, so each call takes a microsecond"
                    .into()
            }
            false => format!(
                "times are reconstructed: the run was recorded with --time {word}, so gaps and durations are means that add \
                 up to each rank's own time, and where a call waits longer for another rank, what follows is moved \
                 later; --time exact keeps those of each call"
            ),
        })
    }
}

/// One call of one thread.
#[derive(Debug)]
pub struct Happening {
    pub rank: u32,
    pub thread: u32,
    /// Among the calls of its thread.
    pub number: u64,
    pub call: Rc<Call>,
    /// Which stack it came from: `bundle.symbols[symbol].site`.
    pub symbol: Option<u32>,
    /// In nanoseconds since the first call of the trace began. Spans of one thread do not overlap.
    pub span: Span,
    /// What it means at its beginning.
    pub begins: Vec<Meaning>,
}

/// What a call means to MPI, at its beginning or at its end.
#[derive(Debug, Clone)]
pub enum Meaning {
    /// At a beginning: a message is sent. With a request the call need not wait for it.
    Send(Message),
    /// At an end: a send with a request is complete.
    SendDone { request: u64 },
    /// At a beginning: a receive with a request.
    ReceivePosted { request: u64 },
    /// At an end: a message is there.
    Received(Message),
    /// At a beginning: the rank comes to a collective.
    Collective(Collective),
    /// At an end: it leaves it, or a call completed its request.
    CollectiveDone(Collective),
    /// At an end: the request was cancelled, or failed.
    Cancelled { request: u64 },
    /// At an end: the request was asked for and is not complete.
    Tested { request: u64 },
}

/// One side of a message.
#[derive(Debug, Clone)]
pub struct Message {
    /// The other side, as a rank of the world.
    pub peer: u32,
    /// The same as the call names it.
    pub peer_in_comm: u32,
    pub tag: i64,
    pub comm: Rc<Comm>,
    pub bytes: u64,
    /// A number that no other operation of this rank has.
    pub request: Option<u64>,
    /// Equal on both sides, where the walk has both ranks.
    pub id: Option<u64>,
}

/// A collective call of one rank.
#[derive(Debug, Clone)]
pub struct Collective {
    /// That which came to it.
    pub function: &'static Function,
    pub comm: Rc<Comm>,
    /// As a rank of the communicator.
    pub root: Option<u32>,
    /// Of an inter-communicator: another one of this side is the root, and this one does nothing.
    pub beside: bool,
    pub sent: u64,
    pub received: u64,
    pub request: Option<u64>,
}

/// What comes next in the order of time.
#[derive(Debug, Clone)]
pub enum Moment {
    Begins(Rc<Happening>),
    /// With what it means at its end.
    Ends(Rc<Happening>, Vec<Meaning>),
}

/// A thread on its way.
struct Thread<'a> {
    calls: Timed<'a>,
    plan: Option<Plan>,
    place: (u32, u32),
    /// The end of its last call.
    reached: i64,
    current: Option<Current>,
}

struct Current {
    call: Rc<Call>,
    number: u64,
    symbol: Option<u32>,
    span: Span,
    /// It overlaps the time that was asked for.
    wanted: bool,
    happening: Option<Rc<Happening>>,
    /// What it waits for in a reconstruction.
    open: usize,
    /// What it uses is there, or never comes.
    checked: bool,
}

/// The calls of some ranks in the order of time.
pub struct Walk<'a> {
    when: &'a When<'a>,
    between: Option<Between>,
    threads: Vec<Thread<'a>>,
    /// When, whether it ends, and which thread.
    heap: BinaryHeap<Reverse<(i64, bool, usize)>>,
    state: State,
    read: u64,
    /// The last moment.
    now: i64,
    /// Threads whose call uses what another thread of their rank has not made yet.
    held: Vec<usize>,
    /// Calls that had begun when the time that was asked for began, once it has.
    early: Option<VecDeque<Rc<Happening>>>,
}

/// The same of several walks.
pub fn notes(bounded: u64, lost: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if bounded > 0 {
        notes.push(format!(
            "the length of {} is that of the buffer, an upper bound: the program ignored the status",
            plural(bounded, "received message")
        ));
    }
    if lost > 0 {
        notes.push(format!(
            "{} without a message: the trace does not say who is in the communicator",
            plural(lost, "call")
        ));
    }
    notes
}

/// The ranks of a trace that were chosen and have calls. `Err` where one is named that the run did not have.
pub fn chosen(trace: &Trace, ranks: Option<&Numbers>) -> Result<Vec<u32>, Error> {
    let all = trace.meta.ranks;
    if let Some(number) = ranks.and_then(|ranks| ranks.beyond(all)) {
        return Err(Error::NoSuch { what: "rank", number, have: format!("0 to {}", all.saturating_sub(1)) });
    }
    let reader = Reader::new(&trace.bundle);
    let wanted = |rank: &u32| ranks.is_none_or(|ranks| ranks.contains(*rank));
    Ok((0..all).filter(wanted).filter(|rank| !reader.threads(*rank).is_empty()).collect())
}

impl<'a> Walk<'a> {
    pub fn new(
        trace: &'a Trace,
        when: &'a When<'a>,
        ranks: &[u32],
        between: Option<Between>,
    ) -> Result<Walk<'a>, Error> {
        let times = match &when.0 {
            Source::File(times) if !times.comparable(ranks.iter().copied()) => {
                return Err(Error::NoCommonClock);
            }
            Source::File(times) => Some(*times),
            Source::Sums(..) => None,
        };
        let reader = Reader::new(&trace.bundle);
        let places: Vec<(u32, u32)> = ranks
            .iter()
            .flat_map(|rank| reader.threads(*rank).into_iter().map(move |thread| (*rank, thread)))
            .collect();
        let mut threads = Vec::new();
        for &place in &places {
            let calls = Timed::among(&trace.bundle, &reader, times, place, 0, places.len())?;
            let plan = match &when.0 {
                Source::File(_) => None,
                Source::Sums(means, _) => Some(Plan::of(trace, means, place)),
            };
            threads.push(Thread { calls, plan, place, reached: 0, current: None });
        }
        let present = (0..trace.meta.ranks).map(|rank| !reader.threads(rank).is_empty()).collect();
        let mut state = State::new(present, ranks, when.is_reconstructed());
        if when.is_reconstructed() {
            places.iter().filter(|(_, thread)| *thread != 0).for_each(|(rank, _)| state.known.watch(*rank));
        }
        let heap = BinaryHeap::new();
        let mut walk =
            Walk { when, between, threads, heap, state, read: 0, now: 0, held: Vec::new(), early: None };
        for at in 0..walk.threads.len() {
            walk.fetch(at)?;
        }
        Ok(walk)
    }

    /// How many calls have been gone through.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// How many ranks the run had.
    pub fn ranks(&self) -> u32 {
        self.state.ranks()
    }

    /// Receives of which nobody can tell what they got.
    pub fn unclear(&self) -> u64 {
        self.state.unclear
    }

    /// Receives of which only the most that they take is known: nobody looked at their status, nor at their sender.
    pub fn bounded(&self) -> u64 {
        self.state.bounded
    }

    /// Messages and collectives that are left out, since the trace does not say who is in their communicator.
    pub fn lost(&self) -> u64 {
        self.state.lost
    }

    /// What is not as it was, for people.
    pub fn notes(&self) -> Vec<String> {
        notes(self.bounded(), self.lost())
    }

    /// Bytes of one element of a datatype, as a rank knows it now.
    pub fn datatype_size(&self, rank: u32, datatype: &Value) -> Option<u64> {
        self.state.datatype_size(rank, datatype)
    }

    /// The next moment. Those of one thread are in order, and so are those of all.
    #[allow(clippy::should_implement_trait)] // It can fail.
    pub fn next(&mut self) -> Result<Option<Moment>, Error> {
        loop {
            if let Some(call) = self.early.as_mut().and_then(VecDeque::pop_front) {
                return Ok(Some(Moment::Begins(call)));
            }
            let Some(Reverse((time, ends, at))) = self.heap.pop() else {
                // Nobody comes any more whom these wait for.
                if let Some(at) = self.state.give_up() {
                    self.release(at, self.now);
                } else if !self.held.is_empty() {
                    let at = self.held.remove(0);
                    self.resume(at, true);
                } else {
                    return Ok(None);
                }
                continue;
            };
            if self.early.is_none() && self.between.is_some_and(|between| time >= between.from) {
                self.heap.push(Reverse((time, ends, at)));
                self.gather_early();
                continue;
            }
            self.now = self.now.max(time);
            if self.between.is_some_and(|between| time > between.to) && !ends && self.is_past() {
                return Ok(None);
            }
            let moment = if ends { self.end(at)? } else { self.begin(at) };
            for thread in self.state.released() {
                self.release(thread, time);
            }
            if moment.is_some() {
                return Ok(moment);
            }
        }
    }

    /// Reconstructed calls may take longer than planned, so those that are not over now are in the time asked for.
    fn gather_early(&mut self) {
        let mut early = Vec::new();
        if self.when.is_reconstructed() {
            early.extend(self.threads.iter().filter_map(|thread| thread.current.as_ref()?.happening.clone()));
        }
        early.sort_by_key(|call| call.span.start);
        self.early = Some(early.into());
    }

    /// The call of a thread that was held may begin now, or is held again.
    fn resume(&mut self, at: usize, anyway: bool) {
        let thread = &mut self.threads[at];
        let Some(current) = thread.current.as_mut() else { return };
        if !anyway && self.state.known.lacks(thread.place, &current.call) {
            self.held.push(at);
            return;
        }
        let late = (self.now - current.span.start).max(0);
        current.span = Span { start: current.span.start + late, end: current.span.end + late };
        current.checked = true;
        thread.plan.iter_mut().for_each(|plan| plan.delay(late));
        self.heap.push(Reverse((current.span.start, false, at)));
    }

    /// All calls that are left began after the time that was asked for.
    fn is_past(&self) -> bool {
        self.threads
            .iter()
            .all(|thread| thread.current.as_ref().is_none_or(|current| current.happening.is_none()))
    }

    fn fetch(&mut self, at: usize) -> Result<(), Error> {
        let thread = &mut self.threads[at];
        let number = thread.calls.number();
        let Some((call, told)) = thread.calls.next_call()? else { return Ok(()) };
        let symbol = thread.calls.symbol();
        let span = match (&self.when.0, &mut thread.plan) {
            (Source::Sums(means, _), Some(plan)) => plan.next(means, symbol),
            _ => told.map_or(Span { start: thread.reached, end: thread.reached }, |told| told.span),
        };
        // A call whose callback made others comes after these and began before them.
        let start = span.start.max(thread.reached);
        let span = Span { start, end: span.end.max(start) };
        let told = told.map_or(CallTime { span, start_error: 0, end_error: 0, result: None }, |told| {
            CallTime { span, ..told }
        });
        let wanted = self.between.is_none_or(|between| between.overlaps(&told));
        let (call, happening) = (Rc::new(call), None);
        thread.current =
            Some(Current { call, number, symbol, span, wanted, happening, open: 0, checked: false });
        thread.reached = start;
        self.heap.push(Reverse((start, false, at)));
        self.read += 1;
        Ok(())
    }

    fn begin(&mut self, at: usize) -> Option<Moment> {
        let thread = &mut self.threads[at];
        let (rank, number) = thread.place;
        let current = thread.current.as_mut()?;
        if !current.checked && self.state.known.lacks(thread.place, &current.call) {
            self.held.push(at);
            return None;
        }
        let mut parked = false;
        if let Some(between) = self.between.filter(|_| thread.plan.is_some()) {
            parked = current.span.start < between.from;
            current.wanted = current.span.start <= between.to;
        }
        let (begins, open) = self.state.begin(at, rank, &current.call);
        current.open = open;
        let happening = Rc::new(Happening {
            rank,
            thread: number,
            number: current.number,
            call: current.call.clone(),
            symbol: current.symbol,
            span: current.span,
            begins,
        });
        current.happening = current.wanted.then(|| happening.clone());
        if open == 0 {
            self.heap.push(Reverse((current.span.end, true, at)));
        }
        (current.wanted && !parked).then_some(Moment::Begins(happening))
    }

    /// What the call of a thread waited for has come.
    fn release(&mut self, at: usize, now: i64) {
        let thread = &mut self.threads[at];
        let Some(current) = thread.current.as_mut().filter(|current| current.open > 0) else {
            return;
        };
        current.open = 0;
        let late = (now - current.span.end).max(0);
        current.span.end += late;
        thread.plan.iter_mut().for_each(|plan| plan.delay(late));
        self.heap.push(Reverse((current.span.end, true, at)));
    }

    fn end(&mut self, at: usize) -> Result<Option<Moment>, Error> {
        let thread = &mut self.threads[at];
        let rank = thread.place.0;
        let Some(current) = thread.current.take() else { return Ok(None) };
        let ends = self.state.end(at, rank, &current.call);
        thread.reached = current.span.end;
        self.fetch(at)?;
        let held = std::mem::take(&mut self.held);
        let same = |other: &usize| self.threads[*other].place.0 == rank;
        let (again, others): (Vec<usize>, Vec<usize>) = held.into_iter().partition(same);
        self.held = others;
        again.into_iter().for_each(|other| self.resume(other, false));
        if self.when.is_reconstructed() && self.between.is_some_and(|between| current.span.end < between.from)
        {
            return Ok(None);
        }
        Ok(current.happening.map(|happening| {
            let same = happening.span == current.span;
            // It waited in the reconstruction, which is known only now.
            let happening = if same {
                happening
            } else {
                let Happening { rank, thread, number, ref call, symbol, ref begins, .. } = *happening;
                let (call, begins, span) = (call.clone(), begins.clone(), current.span);
                Rc::new(Happening { rank, thread, number, call, symbol, span, begins })
            };
            Moment::Ends(happening, ends)
        }))
    }
}
