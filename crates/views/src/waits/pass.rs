//! The pass over all calls, in the order of time.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::rc::Rc;

use refrain_encode::{Message, Reader};
use refrain_fold::bundle::sites::Frame;
use refrain_model::{Call, Status, Value};
use refrain_times::CallTime;
use refrain_tracefile::Trace;

use super::blocked::{Blocked, BlockedRef, Moment};
use super::collectives::{Shape, Together, TogetherRef};
use super::path::{Path, Step, Walked};
use super::sides::{self, Post};
use super::table::Sums;
use super::{CallSite, Waits};
use crate::error::Error;
use crate::length::{Length, Ran};
use crate::meaning::comms::{Comm, Comms};
use crate::meaning::messages::{Messages, SideRef, Wanted};
use crate::meaning::requests::{completed, request, status_of};
use crate::meaning::roles::{Collective, Completes, Needs, Role, Way, Which, requests};
use crate::timed::{Timed, Times};

pub(super) fn pass(trace: &Trace, times: &Times) -> Result<Waits, Error> {
    let reader = Reader::new(&trace.bundle);
    let places = Places::new(trace);
    let mut threads = Vec::new();
    let mut present = vec![false; trace.meta.ranks as usize];
    let all = trace.bundle.cohorts.iter().map(|cohort| cohort.ranks.len() as usize).sum();
    for rank in 0..trace.meta.ranks {
        for thread in reader.threads(rank) {
            let calls = Timed::among(&trace.bundle, &reader, Some(times), (rank, thread), 0, all)?;
            present[rank as usize] = true;
            threads.push(Thread::new(calls, rank));
        }
    }
    let mut state = State {
        times,
        messages: Messages::default(),
        comms: Comms::new(present),
        together: HashMap::new(),
        requests: HashMap::new(),
        roles: HashMap::new(),
        sums: Sums::new(trace.meta.ranks as usize),
        ran: vec![Ran::default(); trace.meta.ranks as usize],
    };
    // At one moment calls begin before others end: whoever comes has come.
    let mut heap = BinaryHeap::new();
    for (at, thread) in threads.iter_mut().enumerate() {
        heap.extend(thread.fetch(&places)?.map(|time| Reverse((time, false, at))));
    }
    while let Some(Reverse((_, ends, at))) = heap.pop() {
        let thread = &mut threads[at];
        let next = match ends {
            false => Some((thread.begin(&mut state), true)),
            true => {
                thread.end(&mut state);
                thread.fetch(&places)?.map(|time| (time, false))
            }
        };
        heap.extend(next.map(|(time, ends)| Reverse((time, ends, at))));
        state.settle();
    }
    let length = length(trace, times, &state.ran);
    let last = threads.iter_mut().max_by_key(|thread| thread.reached);
    let path = last.map_or(Path::default(), |thread| thread.path.until_now());
    Ok(state.finish().finish(&places.all, length, &path))
}

/// By calls where they tell it exactly, otherwise as everywhere.
fn length(trace: &Trace, times: &Times, ran: &[Ran]) -> Length {
    let by_calls = || Length::of_ranks(trace, ran.iter().filter_map(Ran::time));
    let exact = !times.has_errors() && !times.some_lost();
    let length = if exact { by_calls() } else { Length::of(trace).or_else(by_calls) };
    length.unwrap_or_default()
}

/// Calls by function and call site.
struct Places {
    all: Vec<CallSite>,
    /// By symbol.
    of: Vec<u32>,
}

impl Places {
    fn new(trace: &Trace) -> Places {
        let bundle = &trace.bundle;
        let mut known: HashMap<(&str, Option<Frame>), u32> = HashMap::new();
        let mut places = Places { all: Vec::new(), of: Vec::new() };
        for symbol in &bundle.symbols {
            let function = refrain_encode::Layout::parse(&symbol.bytes).map_or("?", |l| l.function.name);
            let frame = bundle.sites.frames(symbol.site).last().copied();
            let place = *known.entry((function, frame)).or_insert_with(|| {
                places.all.push(CallSite { function, frame });
                places.all.len() as u32 - 1
            });
            places.of.push(place);
        }
        places
    }
}

/// What a call, or a request, stands for.
#[derive(Clone)]
enum Pending {
    Send(SideRef<Post>),
    Receive(SideRef<Post>, Rc<Comm>),
    Collective(TogetherRef, usize),
}

struct Request {
    pending: Vec<Pending>,
    /// What starting it again does.
    template: Option<Rc<Call>>,
}

/// A call between its beginning and its end.
struct Current {
    call: Rc<Call>,
    told: CallTime,
    place: u32,
    blocked: Option<BlockedRef>,
    pending: Vec<Pending>,
}

struct Thread<'a> {
    calls: Timed<'a>,
    rank: u32,
    current: Option<Current>,
    /// The end of the last call.
    ended: Option<i64>,
    /// How far it has come.
    reached: i64,
    computed: u64,
    path: Walked,
}

/// Everything that threads share.
struct State<'a> {
    times: &'a Times,
    messages: Messages<Post>,
    comms: Comms,
    /// Collective calls to which not all have come, by communicator and number.
    together: HashMap<(u64, u64), TogetherRef>,
    /// By rank and id.
    requests: HashMap<(u32, u32), Request>,
    roles: HashMap<u16, Role>,
    sums: Sums,
    /// By rank.
    ran: Vec<Ran>,
}

/// Who posts, and when.
struct Poster<'t> {
    rank: u32,
    place: u32,
    at: Moment,
    path: &'t mut Walked,
    computed: u64,
}

fn number(value: &Value) -> Option<i64> {
    if let Value::Int(number) = value { Some(*number) } else { None }
}

fn positive(time: i64) -> u64 {
    u64::try_from(time).unwrap_or(0)
}

impl<'a> Thread<'a> {
    fn new(calls: Timed<'a>, rank: u32) -> Thread<'a> {
        Thread {
            calls,
            rank,
            current: None,
            ended: None,
            reached: i64::MIN,
            computed: 0,
            path: Walked::default(),
        }
    }

    /// Gets the next call. When it begins. Without times nothing can be said: then it has come to its end.
    fn fetch(&mut self, places: &Places) -> Result<Option<i64>, Error> {
        let Some((call, Some(told))) = self.calls.next_call()? else { return Ok(None) };
        let place = self.calls.symbol().and_then(|symbol| places.of.get(symbol as usize)).copied();
        let place = place.unwrap_or(u32::MAX);
        self.current = Some(Current { call: Rc::new(call), told, place, blocked: None, pending: Vec::new() });
        self.reached = self.reached.max(told.span.start);
        Ok(Some(self.reached))
    }

    /// Its call begins. When it will end.
    fn begin(&mut self, state: &mut State) -> i64 {
        let Some(mut current) = self.current.take() else { return self.reached };
        let Current { told, place, .. } = current;
        let before = self.ended.map_or(0, |ended| positive(told.span.start.saturating_sub(ended)));
        self.computed = self.computed.saturating_add(before);
        let step = Step { rank: self.rank, place, computing: true };
        self.path.spend(step, before);
        if let Some(rank) = state.sums.ranks.get_mut(self.rank as usize) {
            rank.computing = rank.computing.saturating_add(before);
        }
        let call = current.call.clone();
        if call.result == Value::Int(0) || call.result == Value::Unset {
            let at = Moment { time: told.span.start, error: told.start_error };
            let (rank, computed, path) = (self.rank, self.computed, &mut self.path);
            let mut poster = Poster { rank, place, at, path, computed };
            state.begin(&call, &mut poster, &mut current);
        }
        self.current = Some(current);
        // What is written in MPI_Finalize has no end of it.
        self.reached = self.reached.max(told.span.end);
        self.reached
    }

    fn end(&mut self, state: &mut State) {
        let Some(current) = self.current.take() else { return };
        let Current { call, told, place, blocked, pending } = current;
        let CallTime { span, end_error, .. } = told;
        let role = state.role(&call);
        if let Some(ran) = state.ran.get_mut(self.rank as usize) {
            ran.see(role, &told);
        }
        // What a callback's calls took, and what was before them, is counted already.
        let since = self.ended.map_or(span.start, |ended| ended.max(span.start));
        let taken = positive(span.end.saturating_sub(since));
        self.ended = Some(span.end.max(since));
        let at = Moment { time: span.end, error: end_error };
        pending.iter().for_each(|pending| state.over(pending, at));
        let rank = state.sums.ranks.get_mut(self.rank as usize);
        match role {
            Role::Init => {
                rank.into_iter().for_each(|rank| rank.setup = rank.setup.saturating_add(taken));
                self.computed = 0;
                self.path.begin();
                return;
            }
            // The trace is written in it.
            Role::Finalize => {
                self.reached = span.start;
                return;
            }
            _ => rank
                .into_iter()
                .for_each(|rank| rank.communicating = rank.communicating.saturating_add(taken)),
        }
        let step = Step { rank: self.rank, place, computing: false };
        let Some(blocked) = blocked else {
            self.path.spend(step, taken);
            return;
        };
        {
            let mut blocked = blocked.borrow_mut();
            (blocked.end, blocked.end_error) = (Some(span.end), end_error);
        }
        match Sums::counts(&blocked.borrow(), state.times) {
            Some((cause, waited)) => {
                self.path.follow(&cause.path);
                self.path.spend(step, taken - waited.ns.min(taken));
            }
            None => self.path.spend(step, taken),
        }
        state.ended(&blocked);
    }
}

impl State<'_> {
    fn role(&mut self, call: &Call) -> Role {
        *self.roles.entry(call.function.id).or_insert_with(|| Role::of(call.function))
    }

    fn begin(&mut self, call: &Rc<Call>, poster: &mut Poster, current: &mut Current) {
        let function = call.function;
        let flag = function.index_of("flag").filter(|_| function.poll).map(|at| &call.args[at]);
        if flag == Some(&Value::Bool(false)) {
            return;
        }
        let blocking = |poster: &Poster, first| Blocked::new(poster.rank, poster.place, poster.at, first);
        match self.role(call) {
            Role::Nothing | Role::Init | Role::Finalize => {}
            Role::Elsewhere => self.sums.left.elsewhere += 1,
            Role::EndComm(comm) => self.comms.forget(poster.rank, &call.args[comm]),
            Role::Start => {
                for id in self.given(call).into_iter().flatten() {
                    let template =
                        self.requests.get(&(poster.rank, id)).and_then(|known| known.template.clone());
                    let Some(template) = template else { continue };
                    let pending = self.post(&template, poster);
                    if let Some(known) = self.requests.get_mut(&(poster.rank, id)) {
                        known.pending = pending;
                    }
                }
            }
            Role::Complete(Completes { which, waits }) => {
                let blocked = waits.then(|| blocking(poster, which == Which::Some));
                for (id, status) in completed(call) {
                    current.pending.extend(self.complete((poster.rank, id), status));
                }
                let pending = &current.pending;
                blocked.iter().for_each(|blocked| self.wait(pending, poster.rank, blocked));
                current.blocked = blocked;
            }
            Role::Messages(_, way) | Role::Collective(Collective { way, .. }) => {
                let made = requests(function).and_then(|at| request(&call.args[at]));
                match (way, made) {
                    (Way::Persistent, Some(id)) => {
                        let template = Some(call.clone());
                        self.requests.insert((poster.rank, id), Request { pending: Vec::new(), template });
                    }
                    (Way::Request, Some(id)) => {
                        let pending = self.post(call, poster);
                        self.requests.insert((poster.rank, id), Request { pending, template: None });
                    }
                    (Way::Persistent | Way::Request, None) => {}
                    (Way::Blocking | Way::Probe | Way::Buffered, _) => {
                        current.pending = self.post(call, poster);
                        let status = status_of(call);
                        for pending in &current.pending {
                            self.learn_source(pending, status);
                        }
                        if way != Way::Buffered {
                            let blocked = blocking(poster, false);
                            self.wait(&current.pending, poster.rank, &blocked);
                            current.blocked = Some(blocked);
                        }
                    }
                }
            }
        }
        // What a call makes is there when it ends, and nobody uses it before.
        self.comms.learn(poster.rank, call);
    }

    /// Posts the messages of a call, or comes to its collective.
    fn post(&mut self, call: &Call, poster: &mut Poster) -> Vec<Pending> {
        match self.role(call) {
            Role::Messages(message, way) => self.post_messages(call, message, way == Way::Probe, poster),
            Role::Collective(collective) => {
                self.post_collective(call, collective, poster).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn post_messages(
        &mut self,
        call: &Call,
        message: Message,
        probe: bool,
        poster: &mut Poster,
    ) -> Vec<Pending> {
        let null = |side: Option<(usize, usize)>| {
            side.is_none_or(|(peer, _)| call.args[peer] == Value::Name("MPI_PROC_NULL"))
        };
        if null(message.sent) && null(message.expected) {
            return Vec::new();
        }
        let Some(comm) = self.comms.used(poster.rank, &call.args[message.comm]).map(|used| used.comm.clone())
        else {
            self.sums.left.unknown += 1;
            return Vec::new();
        };
        let mut pending = Vec::new();
        let path = poster.path.until_now();
        if let Some((peer, tag)) = message.sent
            && let Some(to) = number(&call.args[peer]).and_then(|peer| comm.peer(peer))
            && let Some(tag) = number(&call.args[tag])
        {
            // Of a rank without calls nothing comes to meet it, however long it is held.
            if self.comms.is_present(to) {
                let post = Post::new(poster.rank, poster.at, path.clone());
                let side = self.messages.side(post, (comm.number, to), false);
                self.messages.send(&side, poster.rank, tag);
                pending.push(Pending::Send(side));
            } else {
                self.sums.left.sends += 1;
            }
        }
        if let Some((peer, tag)) = message.expected {
            let source = match &call.args[peer] {
                Value::Name("MPI_ANY_SOURCE") => Some(None),
                other => number(other).and_then(|peer| comm.peer(peer)).map(Some),
            };
            if source.flatten().is_some_and(|source| !self.comms.is_present(source)) {
                self.sums.left.receives += 1;
            } else if let Some(source) = source {
                let post = Post::new(poster.rank, poster.at, path);
                let side = self.messages.side(post, (comm.number, poster.rank), probe);
                self.messages.receive(&side, Wanted { source, tag: number(&call.args[tag]) });
                pending.push(Pending::Receive(side, comm));
            }
        }
        pending
    }

    fn post_collective(&mut self, call: &Call, what: Collective, poster: &mut Poster) -> Option<Pending> {
        let Some(used) = self.comms.used(poster.rank, &call.args[what.comm]) else {
            self.sums.left.unknown += 1;
            return None;
        };
        let comm = used.comm.clone();
        let Some(members) = comm.members() else {
            self.sums.left.unknown += 1;
            return None;
        };
        let number_of = used.calls;
        used.calls += 1;
        let computed = poster.computed.saturating_sub(used.computed);
        used.computed = poster.computed;
        let index = used.index?;
        if members.len() < 2 {
            return None;
        }
        let root = |at: usize| number(&call.args[at]).and_then(|root| comm.peer(root));
        let shape = match what.kind {
            Needs::Barrier => Shape::Barrier,
            Needs::Everybody => Shape::Everybody,
            Needs::Lower => Shape::Lower,
            Needs::Root(at) => Shape::From(root(at)?),
            Needs::AtRoot(at) => Shape::To(root(at)?),
        };
        let key = (comm.number, number_of);
        let together = self
            .together
            .entry(key)
            .or_insert_with(|| Rc::new(RefCell::new(Together::new(shape, members.len()))));
        let together = together.clone();
        let path = poster.path.until_now();
        let mut now = together.borrow_mut();
        now.computed = now.computed.saturating_add(computed);
        if computed >= now.most.0 {
            now.most = (computed, poster.rank, poster.place);
        }
        let over = now.come(index, poster.rank, poster.at, path);
        if now.is_whole() {
            self.together.remove(&key);
            let (_, slowest, place) = now.most;
            self.sums.imbalance(place, slowest, now.imbalance());
        }
        drop(now);
        over.iter().for_each(|blocked| self.ended(blocked));
        Some(Pending::Collective(together, index))
    }

    /// The requests that were given to a call.
    fn given(&self, call: &Call) -> Vec<Option<u32>> {
        let Some(at) = requests(call.function) else { return Vec::new() };
        match &call.args[at] {
            Value::List(all) => all.iter().map(request).collect(),
            one => vec![request(one)],
        }
    }

    /// A request is complete: what it stood for.
    fn complete(&mut self, key: (u32, u32), status: Option<&Value>) -> Vec<Pending> {
        let persistent = self.requests.get(&key).is_some_and(|known| known.template.is_some());
        let pending = match persistent {
            true => self.requests.get_mut(&key).map(|known| std::mem::take(&mut known.pending)),
            false => self.requests.remove(&key).map(|known| known.pending),
        };
        let pending = pending.unwrap_or_default();
        let cancelled = matches!(status, Some(Value::Status(Status { cancelled: Some(true), .. })));
        for one in &pending {
            match one {
                Pending::Send(side) | Pending::Receive(side, _) if cancelled => self.messages.cancelled(side),
                one => self.learn_source(one, status),
            }
        }
        pending
    }

    /// What a receive met, if it could take several.
    fn learn_source(&mut self, pending: &Pending, status: Option<&Value>) {
        let Pending::Receive(side, comm) = pending else { return };
        let met = match status {
            Some(Value::Status(Status { source, tag, .. })) => {
                number(source).and_then(|source| comm.peer(source)).zip(number(tag))
            }
            _ => None,
        };
        match met {
            Some((source, tag)) => self.messages.met(side, source, tag),
            None => self.messages.met_unknown(side),
        }
    }

    /// A call begins that ends when these are over.
    fn wait(&mut self, pending: &[Pending], rank: u32, blocked: &BlockedRef) {
        for pending in pending {
            match pending {
                Pending::Send(side) | Pending::Receive(side, _) => sides::wait(side, blocked),
                Pending::Collective(together, index) => together.borrow_mut().wait(*index, rank, blocked),
            }
        }
    }

    fn over(&mut self, pending: &Pending, at: Moment) {
        if let Pending::Send(side) | Pending::Receive(side, _) = pending {
            side.borrow_mut().what.over = Some(at);
        }
    }

    /// More is known of a call.
    fn ended(&mut self, blocked: &BlockedRef) {
        if blocked.borrow_mut().is_over() {
            self.sums.waited(&blocked.borrow(), self.times);
        }
    }

    fn settle(&mut self) {
        for news in self.messages.take_news() {
            let reversed = &mut self.sums.left.reversed;
            for blocked in sides::hear(news, reversed) {
                self.ended(&blocked);
            }
        }
    }

    fn finish(mut self) -> Sums {
        self.settle();
        let messages = std::mem::take(&mut self.messages);
        let left = &mut self.sums.left;
        left.unclear = messages.unclear;
        left.collectives = self.together.len() as u64;
        let (sends, receives) = messages.finish();
        left.sends += sends.len() as u64;
        left.receives += receives.len() as u64;
        let blocked = |side: &SideRef<Post>| side.borrow_mut().what.blocked.take();
        let mut open: Vec<_> = sends.iter().chain(&receives).filter_map(blocked).collect();
        for together in std::mem::take(&mut self.together).into_values() {
            open.extend(together.borrow_mut().left());
        }
        for blocked in open {
            blocked.borrow_mut().give_up();
            self.ended(&blocked);
        }
        self.sums
    }
}
