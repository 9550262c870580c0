//! Requests: which a call makes, which it completes, and what their statuses say.

use refrain_model::{Call, Class, Dir, Effect, Kind, Status, Value};

/// What a value was when the call began.
pub(crate) fn before(value: &Value) -> &Value {
    match value {
        Value::InOut(before, _) => before,
        value => value,
    }
}

/// What it was when the call returned.
pub(crate) fn after(value: &Value) -> &Value {
    match value {
        Value::InOut(_, after) => after,
        value => value,
    }
}

/// A poll that found nothing: it is not made again.
pub(crate) fn is_failed_poll(call: &Call) -> bool {
    let told = |name: &str| call.function.index_of(name).map(|at| &call.args[at]);
    call.function.poll
        && (told("flag") == Some(&Value::Bool(false)) || told("outcount") == Some(&Value::Int(0)))
}

/// The status or statuses of a call; where the program ignored them, what the recorder has found for itself.
pub(crate) fn status_of(call: &Call) -> Option<&Value> {
    let found = call.facts.iter().find(|(name, _)| *name == "matched");
    let passed = || call.function.params.iter().zip(&call.args).find(|(p, _)| p.kind == Kind::Status);
    found.map(|(_, value)| value).or_else(|| passed().map(|(_, value)| value))
}

pub(crate) fn request(value: &Value) -> Option<u32> {
    match value {
        Value::Object(Class::Request, id) => Some(*id),
        _ => None,
    }
}

/// The request that a call makes.
pub(crate) fn made_request(call: &Call) -> Option<u32> {
    let mut params = call.function.params.iter().zip(&call.args);
    params
        .find(|(p, _)| p.dir == Dir::Out && p.effect == Effect::Create)
        .and_then(|(_, value)| request(value))
}

/// The requests that a call completes, and what it says of each.
pub(crate) fn completed(call: &Call) -> Vec<(u32, Option<&Value>)> {
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

/// The requests that a call starts.
pub(crate) fn started(call: &Call) -> Vec<u32> {
    let mut params = call.function.params.iter().zip(&call.args);
    let Some((_, requests)) = params.find(|(p, _)| p.effect == Effect::Start) else { return Vec::new() };
    match before(requests) {
        Value::List(all) => all.iter().map(before).filter_map(request).collect(),
        one => request(one).into_iter().collect(),
    }
}

/// The request that a call cancels.
pub(crate) fn cancelled(call: &Call) -> Option<u32> {
    call.args.first().filter(|_| call.function.name == "MPI_Cancel").and_then(|one| request(before(one)))
}

/// Source and tag that a status names.
pub(crate) fn matched(status: &Value) -> Option<(i64, i64)> {
    let Value::Status(Status { source, tag, .. }) = status else { return None };
    match (&**source, &**tag) {
        (Value::Int(source), Value::Int(tag)) => Some((*source, *tag)),
        _ => None,
    }
}

/// What has become of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Failed,
    /// It is not complete (`MPI_ERR_PENDING`).
    Open,
}

/// `MPI_ERR_PENDING` of MPICH, Open MPI and the standard's own ABI.
const PENDING: i64 = 18;

pub(crate) fn outcome(status: Option<&Value>) -> Outcome {
    match status {
        Some(Value::Status(Status { error: Some(PENDING), .. })) => Outcome::Open,
        Some(Value::Status(Status { error: Some(error), .. })) if *error != 0 => Outcome::Failed,
        _ => Outcome::Done,
    }
}

/// A call that returned `MPI_ERR_IN_STATUS`: each of its statuses says how it went.
pub(crate) fn told_in_statuses(call: &Call) -> bool {
    let failed =
        |status: &Value| matches!(status, Value::Status(Status { error: Some(error), .. }) if *error != 0);
    matches!(status_of(call), Some(Value::List(all)) if all.iter().any(failed))
}
