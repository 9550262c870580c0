//! The payload of calls that have been decoded: for what the folded form cannot say, and for the truth in tests.

use std::collections::HashMap;

use refrain_encode::Calls;
use refrain_model::{Call, Value, constant_by_id};

use super::Amount;
use super::payload::{InPlace, Payload, Side, Times, payload};
use super::sizes::{CommSize, Made, named_type};
use crate::error::Error;

/// What a call looks up beside its own arguments; `None` where it is not known.
pub(crate) trait Sizes {
    fn datatype(&self, id: u32) -> Option<u64>;
    fn comm(&self, value: &Value) -> Option<CommSize>;
}

/// Reads every call of one thread; by function number, what it gave. `None` where there are more calls and elements of their
/// arrays than there is `room` for, which says what is left.
pub(crate) fn walk(
    calls: Calls<'_>,
    rank: u32,
    thread: u32,
    world: u32,
    elsewhere: &dyn Fn(u32) -> Option<u64>,
    room: &mut u64,
) -> Result<Option<HashMap<u16, Amount>>, Error> {
    struct Here<'a> {
        made: Made,
        elsewhere: &'a dyn Fn(u32) -> Option<u64>,
    }
    impl Sizes for Here<'_> {
        fn datatype(&self, id: u32) -> Option<u64> {
            self.made.types.get(&id).copied().or_else(|| (self.elsewhere)(id))
        }
        fn comm(&self, value: &Value) -> Option<CommSize> {
            self.made.comm(value)
        }
    }
    let mut here = Here { made: Made::new(world), elsewhere };
    let mut amounts: HashMap<u16, Amount> = HashMap::new();
    for (position, call) in (0u64..).zip(calls) {
        let call = call.map_err(|error| Error::Call { rank, thread, position, error })?;
        let elements =
            call.args.iter().map(|value| if let Value::List(list) = value { list.len() } else { 0 });
        match room.checked_sub(1 + elements.sum::<usize>() as u64) {
            Some(left) => *room = left,
            None => {
                *room = 0;
                return Ok(None);
            }
        }
        here.made.take_in(&call);
        if let Some(rule) = payload(call.function) {
            amounts.entry(call.function.id).or_default().add(of_call(&call, &rule, &here), 1);
        }
    }
    Ok(Some(amounts))
}

/// What one call gave.
pub(crate) fn of_call(call: &Call, rule: &Payload, sizes: &dyn Sizes) -> Amount {
    let is = |index: Option<usize>, name: &str| {
        index.and_then(|i| call.args.get(i)).is_some_and(|value| *value == Value::Name(constant_name(name)))
    };
    if call.result != Value::Int(0) || is(rule.peer, "MPI_PROC_NULL") || is(rule.op, "MPI_NO_OP") {
        return Amount::NOTHING;
    }
    let side = match rule.in_place {
        InPlace::Nothing { buffer } if is(Some(buffer), "MPI_IN_PLACE") => return Amount::NOTHING,
        InPlace::Unknown { buffer } if is(Some(buffer), "MPI_IN_PLACE") => return Amount::UNKNOWN,
        InPlace::Receive { buffer, side } if is(Some(buffer), "MPI_IN_PLACE") => side,
        _ => rule.send,
    };
    of_side(call, side, rule.comm, sizes)
}

fn of_side(call: &Call, side: Side, comm: Option<usize>, sizes: &dyn Sizes) -> Amount {
    let size = |value: &Value| match value {
        Value::Name(name) => Some(named_type(name)),
        Value::Object(_, id) => sizes.datatype(*id),
        _ => Some(0),
    };
    let number = |value: &Value| if let Value::Int(n) = value { u64::try_from(*n).unwrap_or(0) } else { 0 };
    let product = |count: u64, value: &Value| Some(u128::from(count) * u128::from(size(value)?));
    let datatype = &call.args[side.datatype];
    let bytes = match (side.count.map(|i| &call.args[i]), datatype) {
        (None, datatype) => product(1, datatype),
        (Some(Value::List(counts)), Value::List(types)) => {
            counts.iter().zip(types).map(|(count, datatype)| product(number(count), datatype)).sum()
        }
        (Some(Value::List(counts)), datatype) => counts.iter().map(|c| product(number(c), datatype)).sum(),
        (Some(count), datatype) => product(number(count), datatype),
    };
    let comm = || comm.and_then(|i| sizes.comm(&call.args[i]));
    let times = match side.times {
        Times::Once => Some(1),
        // Nothing times an unknown number is nothing: away from the root there is no send side.
        _ if bytes == Some(0) => Some(1),
        Times::Param(i) => Some(number(&call.args[i])),
        Times::CommSize => comm().map(|c| c.remote.unwrap_or(c.local)),
        Times::LocalSize => comm().map(|c| c.local),
        Times::OutDegree => comm().and_then(|c| c.out_degree),
    };
    match (bytes, times) {
        (Some(bytes), Some(times)) => Amount { bytes: bytes.saturating_mul(u128::from(times)), exact: true },
        _ => Amount::UNKNOWN,
    }
}

/// Names are compared as the call table spells them.
fn constant_name(name: &str) -> &'static str {
    refrain_model::constant(name).map_or("", |c| c.name)
}

/// The size of the type that a code in a lane stands for: twice an id, or twice a constant's number plus one.
pub(crate) fn size_of_code(code: i64, datatype: impl Fn(u32) -> Option<u64>) -> Option<u64> {
    let code = u64::try_from(code).ok()?;
    if code % 2 == 1 {
        let constant = constant_by_id(u16::try_from(code / 2).ok()?)?;
        Some(named_type(constant.name))
    } else {
        datatype(u32::try_from(code / 2).ok()?)
    }
}
