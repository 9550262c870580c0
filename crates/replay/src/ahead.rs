//! Who sends what a receive from any source gets: told by the call that completes it, which comes later.

use std::collections::{HashMap, HashSet};

use refrain_encode::{Calls, Error};
use refrain_model::{Call, Effect, Kind, Status, Value};

/// Source and tag that a receive matched.
pub type Match = (i64, i64);

/// Reads the calls of a thread ahead of those that are made.
pub struct Ahead<'t> {
    calls: Calls<'t>,
    /// Receives from any source that are not complete yet: by request, which of them.
    open: HashMap<u32, u64>,
    /// Requests that receive from any source each time they are started.
    persistent: HashSet<u32>,
    /// How many such receives were seen.
    seen: u64,
    /// What they matched, of those not asked for yet; `None` where the trace does not say.
    found: HashMap<u64, Option<Match>>,
    asked: u64,
}

/// Whether a call asks for a message from any source.
pub fn is_wild(call: &Call) -> bool {
    let mut params = call.function.params.iter().zip(&call.args);
    params.any(|(p, value)| {
        matches!(p.kind, Kind::Peer(_)) && p.name == "source" && *value == Value::Name("MPI_ANY_SOURCE")
    })
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
    pub fn new(calls: Calls<'t>) -> Ahead<'t> {
        let (open, persistent) = (HashMap::new(), HashSet::new());
        Ahead { calls, open, persistent, seen: 0, found: HashMap::new(), asked: 0 }
    }

    /// Of the next receive from any source that has a request.
    pub fn next_match(&mut self) -> Result<Option<Match>, Error> {
        let wanted = self.asked;
        self.asked += 1;
        loop {
            if let Some(found) = self.found.remove(&wanted) {
                return Ok(found);
            }
            let Some(call) = self.calls.next().transpose()? else { return Ok(None) };
            self.learn(&call);
        }
    }

    fn begins(&mut self, request: u32) {
        // One that was never completed got a message that nobody tells of.
        if let Some(lost) = self.open.insert(request, self.seen) {
            self.found.insert(lost, None);
        }
        self.seen += 1;
    }

    fn learn(&mut self, call: &Call) {
        if let Some(request) = request_of(call) {
            self.persistent.remove(&request);
            if is_wild(call) && call.function.persistent {
                self.persistent.insert(request);
            } else if is_wild(call) {
                self.begins(request);
            }
        }
        for request in started(call) {
            if self.persistent.contains(&request) {
                self.begins(request);
            }
        }
        for (request, status) in completed(call) {
            if let Some(which) = self.open.remove(&request) {
                self.found.insert(which, status.and_then(matched));
            }
        }
    }
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
