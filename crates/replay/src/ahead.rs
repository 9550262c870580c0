//! Who sends what a receive from any source gets: told by the call that completes it, which comes later, and may be another
//! thread's. Also which receives were cancelled: they must not take a message that is meant for another one.

use std::collections::{HashMap, HashSet, VecDeque};

use refrain_encode::{Calls, Error, Layout, Reader};
use refrain_model::{Call, Effect, Kind, Status, Value, maker_of};
use refrain_tracefile::Trace;

/// Source and tag that a receive matched.
pub type Match = (i64, i64);

/// So many outcomes are kept that nobody has asked for yet. A receive that is open for longer is looked for by itself.
const MOST_KEPT: usize = 1 << 16;

/// Reads the calls of a thread ahead of those that are made.
pub struct Ahead<'t> {
    calls: Calls<'t>,
    /// The calls from that number on.
    again: Box<dyn Fn(u64) -> Result<Calls<'t>, Error> + 't>,
    /// So many calls were read.
    read: u64,
    /// The trace has receives that were cancelled: all receives are followed, not only those from any source.
    cancels: bool,
    /// Receives that are not complete yet, by request.
    open: HashMap<u32, Open>,
    /// Persistent requests that are followed, and whether they receive from any source.
    persistent: HashMap<u32, bool>,
    /// What those matched that nobody has asked for yet, in order.
    found: VecDeque<Found>,
    /// How many were asked for.
    asked: u64,
    /// Requests that another thread completes, always the same one: which of `others` that is.
    elsewhere: HashMap<u32, usize>,
    others: Vec<Other<'t>>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    /// Which of those that are followed.
    which: u64,
    wild: bool,
    cancelled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    NotYet,
    /// The trace does not say, or the receive gets what it asks for.
    Nothing,
    Match(i32, i32),
}

impl From<Option<Match>> for Found {
    fn from(found: Option<Match>) -> Found {
        let whole = |(source, tag): Match| Some(Found::Match(source.try_into().ok()?, tag.try_into().ok()?));
        found.and_then(whole).unwrap_or(Found::Nothing)
    }
}

/// The calls of another thread, as far as they complete requests of this one.
struct Other<'t> {
    calls: Calls<'t>,
    ended: HashMap<u32, VecDeque<(bool, Option<Value>)>>,
    cancelled: HashSet<u32>,
    requests: HashSet<u32>,
}

impl<'t> Other<'t> {
    fn new(calls: Calls<'t>) -> Other<'t> {
        Other { calls, ended: HashMap::new(), cancelled: HashSet::new(), requests: HashSet::new() }
    }

    /// How that request ends the next time: whether it was cancelled, and its status.
    fn next_end(&mut self, request: u32) -> Result<Option<(bool, Option<Value>)>, Error> {
        loop {
            if let Some(found) = self.ended.get_mut(&request).and_then(VecDeque::pop_front) {
                return Ok(Some(found));
            }
            let Some(call) = self.calls.next().transpose()? else { return Ok(None) };
            if let Some(id) = cancelled(&call) {
                self.cancelled.insert(id);
            }
            for (id, status) in completed(&call) {
                if self.requests.contains(&id) {
                    let end = (self.cancelled.remove(&id), status.cloned());
                    self.ended.entry(id).or_default().push_back(end);
                }
            }
        }
    }
}

/// Whether a call asks for a message from any source.
pub fn is_wild(call: &Call) -> bool {
    let mut params = call.function.params.iter().zip(&call.args);
    params.any(|(p, value)| {
        matches!(p.kind, Kind::Peer(_)) && p.name == "source" && *value == Value::Name("MPI_ANY_SOURCE")
    })
}

/// Whether what a call gets is to be known before: it asks for a message from any source, or may be cancelled.
pub fn is_followed(call: &Call, cancels: bool) -> bool {
    const RECEIVES: [&str; 4] = ["MPI_Irecv", "MPI_Irecv_c", "MPI_Recv_init", "MPI_Recv_init_c"];
    is_wild(call) || cancels && RECEIVES.contains(&call.function.name)
}

/// Whether anything was cancelled in the run.
pub fn has_cancels(trace: &Trace) -> bool {
    let cancels = |layout: Layout| layout.function.name == "MPI_Cancel";
    trace.bundle.symbols.iter().any(|symbol| Layout::parse(&symbol.bytes).is_ok_and(cancels))
}

/// The request that a call cancels.
fn cancelled(call: &Call) -> Option<u32> {
    match (call.function.name, call.args.first().map(before)) {
        ("MPI_Cancel", Some(Value::Object(refrain_model::Class::Request, id))) => Some(*id),
        _ => None,
    }
}

/// The tag of a message that nobody sends: a receive that was cancelled waits for it. All libraries allow it.
pub const NEVER: i64 = 32_749;

/// What a status says of who sent it.
pub fn matched(status: &Value) -> Option<Match> {
    let Value::Status(Status { source, tag, cancelled, .. }) = status else { return None };
    if *cancelled == Some(true) {
        return Some((0, NEVER));
    }
    match (&**source, &**tag) {
        (Value::Int(source), Value::Int(tag)) => Some((*source, *tag)),
        _ => None,
    }
}

/// The status of the call itself.
pub fn own_match(call: &Call) -> Option<Match> {
    status_of(call).and_then(matched)
}

/// The status or statuses of a call; where the program ignored them, what the recorder has found for itself.
fn status_of(call: &Call) -> Option<&Value> {
    let found = call.facts.iter().find(|(name, _)| *name == "matched");
    let passed = || call.function.params.iter().zip(&call.args).find(|(p, _)| p.kind == Kind::Status);
    found.map(|(_, value)| value).or_else(|| passed().map(|(_, value)| value))
}

/// The requests that a call starts.
pub fn started(call: &Call) -> Vec<u32> {
    let mut params = call.function.params.iter().zip(&call.args);
    let Some((_, requests)) = params.find(|(p, _)| p.effect == Effect::Start) else { return Vec::new() };
    let id = |value: &Value| match before(value) {
        Value::Object(refrain_model::Class::Request, id) => Some(*id),
        _ => None,
    };
    match before(requests) {
        Value::List(all) => all.iter().filter_map(id).collect(),
        one => id(one).into_iter().collect(),
    }
}

fn request_of(call: &Call) -> Option<u32> {
    let mut params = call.function.params.iter().zip(&call.args);
    params.find_map(|(p, value)| match value {
        Value::Object(refrain_model::Class::Request, id) if p.effect == Effect::Create => Some(*id),
        _ => None,
    })
}

impl<'t> Ahead<'t> {
    /// Of a thread of a rank.
    pub fn new(
        trace: &'t Trace,
        (rank, thread): (u32, u32),
        cancels: bool,
        shared: &HashSet<u32>,
    ) -> Result<Ahead<'t>, Error> {
        let reader = Reader::new(&trace.bundle);
        let calls = reader.calls(rank, thread)?;
        let again = Box::new(move |number| Reader::new(&trace.bundle).calls_from(rank, thread, number));
        let mut ahead = Ahead::of(calls, again, cancels);
        let own: HashSet<u32> = shared.iter().copied().filter(|id| maker_of(*id).0 == thread).collect();
        let mut threads: Vec<u32> = Vec::new();
        for (id, by) in completers(&reader, rank, &own)? {
            // In which order several threads completed it is not recorded.
            let [other] = by[..] else { continue };
            if other == thread {
                continue;
            }
            let at = threads.iter().position(|one| *one == other).unwrap_or(threads.len());
            if at == threads.len() {
                threads.push(other);
                ahead.others.push(Other::new(reader.calls(rank, other)?));
            }
            ahead.others[at].requests.insert(id);
            ahead.elsewhere.insert(id, at);
        }
        Ok(ahead)
    }

    fn of(
        calls: Calls<'t>,
        again: Box<dyn Fn(u64) -> Result<Calls<'t>, Error> + 't>,
        cancels: bool,
    ) -> Ahead<'t> {
        let (open, persistent, found) = (HashMap::new(), HashMap::new(), VecDeque::new());
        let (elsewhere, others) = (HashMap::new(), Vec::new());
        Ahead { calls, again, read: 0, cancels, open, persistent, found, asked: 0, elsewhere, others }
    }

    /// Of the next receive that is followed and has a request: what it gets; `None`: the trace does not say, or it gets
    /// what it asks for.
    pub fn next_match(&mut self) -> Result<Option<Match>, Error> {
        loop {
            match self.found.front() {
                Some(Found::NotYet) if self.found.len() >= MOST_KEPT => {
                    self.look_for_open_ones()?;
                    continue;
                }
                Some(Found::NotYet) | None => {}
                Some(Found::Nothing) => {
                    self.take();
                    return Ok(None);
                }
                Some(Found::Match(source, tag)) => {
                    let found = (i64::from(*source), i64::from(*tag));
                    self.take();
                    return Ok(Some(found));
                }
            }
            match self.calls.next().transpose()? {
                Some(call) => self.learn(&call)?,
                None if self.found.is_empty() => return Ok(None),
                None => self.ends(),
            }
            self.read += 1;
        }
    }

    fn take(&mut self) {
        self.found.pop_front();
        self.asked += 1;
    }

    fn settle(&mut self, which: u64, found: Found) {
        let at = which.checked_sub(self.asked).and_then(|at| usize::try_from(at).ok());
        if let Some(slot) = at.and_then(|at| self.found.get_mut(at)) {
            *slot = found;
        }
    }

    /// There are no more calls: what is still open was never completed.
    fn ends(&mut self) {
        for open in std::mem::take(&mut self.open).into_values() {
            self.settle(open.which, open.end(None));
        }
    }

    /// How those end that are open for long, without what comes in between.
    fn look_for_open_ones(&mut self) -> Result<(), Error> {
        let mut calls = (self.again)(self.read)?;
        let mut open = std::mem::take(&mut self.open);
        while !open.is_empty()
            && let Some(call) = calls.next().transpose()?
        {
            if let Some(one) = cancelled(&call).and_then(|id| open.get_mut(&id)) {
                one.cancelled = true;
            }
            // Another one of that number.
            for id in request_of(&call).into_iter().chain(started(&call)) {
                if let Some(one) = open.remove(&id) {
                    self.settle(one.which, one.end(None));
                }
            }
            for (id, status) in completed(&call) {
                if let Some(one) = open.remove(&id) {
                    self.settle(one.which, one.end(status));
                }
            }
        }
        self.open = open;
        self.ends();
        Ok(())
    }

    fn begins(&mut self, request: u32, wild: bool) -> Result<(), Error> {
        let which = self.asked + self.found.len() as u64;
        let new = Open { which, wild, cancelled: false };
        self.found.push_back(Found::NotYet);
        if let Some(other) = self.elsewhere.get(&request) {
            let end = self.others[*other].next_end(request)?;
            let (cancelled, status) = end.unwrap_or_default();
            self.settle(which, Open { cancelled, ..new }.end(status.as_ref()));
            return Ok(());
        }
        // One that was never completed got a message that nobody tells of.
        if let Some(lost) = self.open.insert(request, new) {
            self.settle(lost.which, lost.end(None));
        }
        Ok(())
    }

    fn learn(&mut self, call: &Call) -> Result<(), Error> {
        if let Some(request) = request_of(call) {
            self.persistent.remove(&request);
            let followed = is_followed(call, self.cancels);
            if followed && call.function.persistent {
                self.persistent.insert(request, is_wild(call));
            } else if followed {
                self.begins(request, is_wild(call))?;
            }
        }
        for request in started(call) {
            if let Some(wild) = self.persistent.get(&request) {
                self.begins(request, *wild)?;
            }
        }
        if let Some(open) = cancelled(call).and_then(|id| self.open.get_mut(&id)) {
            open.cancelled = true;
        }
        for (request, status) in completed(call) {
            if let Some(open) = self.open.remove(&request) {
                self.settle(open.which, open.end(status));
            }
        }
        Ok(())
    }
}

impl Open {
    /// What it got, by its status. One that was to be cancelled and of which nothing is told got nothing.
    fn end(self, status: Option<&Value>) -> Found {
        let told = matches!(status, Some(Value::Status(Status { cancelled: Some(_), .. })));
        match status.and_then(matched) {
            Some((_, NEVER)) => Found::from(Some((0, NEVER))),
            _ if self.cancelled && !told => Found::from(Some((0, NEVER))),
            found if self.wild => Found::from(found),
            _ => Found::Nothing,
        }
    }
}

/// Which threads complete each of these requests.
fn completers(
    reader: &Reader<'_>,
    rank: u32,
    requests: &HashSet<u32>,
) -> Result<HashMap<u32, Vec<u32>>, Error> {
    let mut by: HashMap<u32, Vec<u32>> = HashMap::new();
    if requests.is_empty() {
        return Ok(by);
    }
    for thread in reader.threads(rank) {
        for call in reader.calls(rank, thread)? {
            for (id, _) in completed(&call?) {
                let all = by.entry(id).or_default();
                if requests.contains(&id) && !all.contains(&thread) {
                    all.push(thread);
                }
            }
        }
    }
    by.retain(|id, _| requests.contains(id));
    Ok(by)
}

/// The requests that a call completes, and what it says of each.
pub fn completed(call: &Call) -> Vec<(u32, Option<&Value>)> {
    let params = || call.function.params.iter().zip(&call.args);
    let Some((_, requests)) = params().find(|(p, _)| matches!(p.effect, Effect::Complete | Effect::Free))
    else {
        return Vec::new();
    };
    let requests = before(requests);
    let id = |value: &Value| match value {
        Value::Object(refrain_model::Class::Request, id) => Some(*id),
        _ => None,
    };
    let status = status_of(call);
    // A poll that found nothing.
    if params().any(|(p, value)| p.kind == Kind::Logical && *value == Value::Bool(false)) {
        return Vec::new();
    }
    let chosen =
        params().find(|(p, _)| p.name == "indx" || p.name == "index" || p.name == "array_of_indices");
    match (requests, chosen.map(|(_, value)| value)) {
        (Value::List(all), Some(Value::Int(at))) => {
            let one = usize::try_from(*at).ok().and_then(|at| all.get(at));
            one.and_then(id).map(|id| (id, status)).into_iter().collect()
        }
        (Value::List(all), Some(Value::List(indices))) => {
            let statuses = match status {
                Some(Value::List(statuses)) => &statuses[..],
                _ => &[],
            };
            let one = |(k, index): (usize, &Value)| match index {
                Value::Int(at) => Some((id(all.get(usize::try_from(*at).ok()?)?)?, statuses.get(k))),
                _ => None,
            };
            indices.iter().enumerate().filter_map(one).collect()
        }
        (Value::List(_), Some(_)) => Vec::new(),
        (Value::List(all), None) => {
            let statuses = match status {
                Some(Value::List(statuses)) => &statuses[..],
                _ => &[],
            };
            all.iter().enumerate().filter_map(|(k, one)| Some((id(one)?, statuses.get(k)))).collect()
        }
        (one, _) => id(one).map(|id| (id, status)).into_iter().collect(),
    }
}

/// What a value was when the call began.
pub fn before(value: &Value) -> &Value {
    match value {
        Value::InOut(before, _) => before,
        value => value,
    }
}

/// What it was when the call returned.
pub fn after(value: &Value) -> &Value {
    match value {
        Value::InOut(_, after) => after,
        value => value,
    }
}
