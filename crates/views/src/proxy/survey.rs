//! What has to be known of all calls of a rank before the first of them is written down.

use std::collections::{BTreeMap, HashMap, HashSet};

use refrain_model::{Address, Area, Call, Class, Dir, Effect, Kind, Status, Value};

/// Source and tag that a receive matched.
pub(super) type Match = (i64, i64);

/// What a value was when the call began.
pub(super) fn before(value: &Value) -> &Value {
    match value {
        Value::InOut(before, _) => before,
        value => value,
    }
}

/// What it was when the call returned.
pub(super) fn after(value: &Value) -> &Value {
    match value {
        Value::InOut(_, after) => after,
        value => value,
    }
}

/// A poll that found nothing: it is not made again.
pub(super) fn is_failed_poll(call: &Call) -> bool {
    let told = |name: &str| call.function.index_of(name).map(|at| &call.args[at]);
    call.function.poll
        && (told("flag") == Some(&Value::Bool(false)) || told("outcount") == Some(&Value::Int(0)))
}

/// Whether a call asks for a message from any source.
pub(super) fn is_wild(call: &Call) -> bool {
    let mut params = call.function.params.iter().zip(&call.args);
    params.any(|(p, value)| {
        matches!(p.kind, Kind::Peer(_)) && p.name == "source" && *value == Value::Name("MPI_ANY_SOURCE")
    })
}

fn matched(status: &Value) -> Option<Match> {
    let Value::Status(Status { source, tag, .. }) = status else { return None };
    match (&**source, &**tag) {
        (Value::Int(source), Value::Int(tag)) => Some((*source, *tag)),
        _ => None,
    }
}

/// What the call's own status says.
pub(super) fn own_match(call: &Call) -> Option<Match> {
    status_of(call).and_then(matched)
}

/// The status or statuses of a call; where the program ignored them, what the recorder has found for itself.
fn status_of(call: &Call) -> Option<&Value> {
    let found = call.facts.iter().find(|(name, _)| *name == "matched");
    let passed = || call.function.params.iter().zip(&call.args).find(|(p, _)| p.kind == Kind::Status);
    found.map(|(_, value)| value).or_else(|| passed().map(|(_, value)| value))
}

fn request(value: &Value) -> Option<u32> {
    match value {
        Value::Object(Class::Request, id) => Some(*id),
        _ => None,
    }
}

/// The request that a call makes.
pub(super) fn made_request(call: &Call) -> Option<u32> {
    let mut params = call.function.params.iter().zip(&call.args);
    params
        .find(|(p, _)| p.dir == Dir::Out && p.effect == Effect::Create)
        .and_then(|(_, value)| request(value))
}

/// The requests that a call completes, and what it says of each.
pub(super) fn completed(call: &Call) -> Vec<(u32, Option<&Value>)> {
    let params = || call.function.params.iter().zip(&call.args);
    let is = |p: &refrain_model::Param| {
        p.kind == Kind::Handle(Class::Request) && matches!(p.effect, Effect::Complete | Effect::Free)
    };
    let Some((_, requests)) = params().find(|(p, _)| is(p)) else { return Vec::new() };
    if params().any(|(p, value)| p.kind == Kind::Logical && *value == Value::Bool(false)) {
        return Vec::new();
    }
    let status = status_of(call);
    let statuses = match status {
        Some(Value::List(statuses)) => &statuses[..],
        _ => &[],
    };
    let chosen = params().find(|(p, _)| ["indx", "index", "array_of_indices"].contains(&p.name));
    match (before(requests), chosen.map(|(_, value)| value)) {
        (Value::List(all), Some(Value::Int(at))) => {
            let one = usize::try_from(*at).ok().and_then(|at| all.get(at));
            one.and_then(request).map(|id| (id, status)).into_iter().collect()
        }
        (Value::List(all), Some(Value::List(indices))) => {
            let one = |(k, index): (usize, &Value)| match index {
                Value::Int(at) => Some((request(all.get(usize::try_from(*at).ok()?)?)?, statuses.get(k))),
                _ => None,
            };
            indices.iter().enumerate().filter_map(one).collect()
        }
        (Value::List(_), Some(_)) => Vec::new(),
        (Value::List(all), None) => {
            all.iter().enumerate().filter_map(|(k, one)| Some((request(one)?, statuses.get(k)))).collect()
        }
        (one, _) => request(one).map(|id| (id, status)).into_iter().collect(),
    }
}

#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Of receives from any source that have a request, in their order.
    pub matches: Vec<Option<Match>>,
    /// By request: its place in the program's array. Those that are waited for together lie side by side, as far as can be.
    pub requests: HashMap<u32, usize>,
    /// Where segments began, as far as the program asked: by address, one of their places.
    pub addresses: BTreeMap<i64, Address>,
    /// Which open receive a request is.
    open: HashMap<u32, usize>,
    made: Vec<u32>,
    seen: HashSet<u32>,
}

/// Where there is no request.
pub(super) const NO_REQUEST: usize = 0;

impl Survey {
    pub fn add(&mut self, call: &Call) {
        let new = made_request(call);
        if let Some(id) = new {
            if self.seen.insert(id) {
                self.made.push(id);
            }
            if is_wild(call) && !call.function.persistent {
                self.open.insert(id, self.matches.len());
                self.matches.push(None);
            }
        }
        for (id, status) in completed(call) {
            if let Some(which) = self.open.remove(&id) {
                self.matches[which] = status.and_then(matched);
            }
        }
        if let ("MPI_Get_address" | "MPI_Address", [Value::Address(place), Value::Int(then)]) =
            (call.function.name, &call.args[..])
            && place.area != Area::Number
        {
            self.addresses.insert(then.wrapping_sub(place.offset), *place);
        }
        for (p, value) in call.function.params.iter().zip(&call.args) {
            if let (Kind::Handle(Class::Request), Value::List(list)) = (p.kind, before(value)) {
                list.iter().filter_map(request).for_each(|id| self.place(id));
            }
        }
    }

    /// The place that a number is the address of.
    pub fn place_of(&self, number: i64) -> Option<Address> {
        let (origin, place) = self.addresses.range(..=number).next_back()?;
        Some(Address { offset: number.wrapping_sub(*origin), ..*place })
    }

    fn place(&mut self, id: u32) {
        let next = self.requests.len() + 1;
        self.requests.entry(id).or_insert(next);
    }

    /// After the last call.
    pub fn finish(&mut self) {
        for id in std::mem::take(&mut self.made) {
            self.place(id);
        }
    }
}
