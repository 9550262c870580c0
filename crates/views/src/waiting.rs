//! What a call of a rank waits for, in words: for those who wonder why nothing goes on.

use std::collections::HashMap;
use std::fmt::Write;

use refrain_encode::{Error, Reader};
use refrain_model::{Call, Class, Dir, Effect, Kind, Value};
use refrain_tracefile::Trace;

use crate::meaning::roles::Role;
use crate::value;

/// So many calls before it are looked at for those that made its requests.
const MOST_BEFORE: u64 = 1 << 16;
/// So many of its requests are told.
const MOST_TOLD: usize = 4;

/// The call with that number of a rank's main thread: its peers, tags, communicator, and what made the requests it is about.
pub fn for_what(trace: &Trace, rank: u32, number: u64) -> String {
    described(trace, rank, number).unwrap_or_else(|_| format!("call {number}"))
}

fn described(trace: &Trace, rank: u32, number: u64) -> Result<String, Error> {
    let reader = Reader::new(&trace.bundle);
    let first = number.saturating_sub(MOST_BEFORE);
    let mut made: HashMap<u32, String> = HashMap::new();
    for (at, call) in (first..).zip(reader.calls_from(rank, 0, first)?) {
        let call = call?;
        if at == number {
            let mut text = format!("call {number}, {}", brief(&call));
            let open = open_requests(&call);
            let known: Vec<&str> = open.iter().filter_map(|id| made.get(id)).map(|one| &**one).collect();
            for (i, one) in known.iter().take(MOST_TOLD).enumerate() {
                text += if i == 0 { " of " } else { "; " };
                text += one;
            }
            if known.len() > MOST_TOLD {
                let _ = write!(text, "; {} more", known.len() - MOST_TOLD);
            }
            return Ok(text);
        }
        for (p, value) in call.function.params.iter().zip(&call.args) {
            if let (Effect::Create, Value::Object(Class::Request, id)) = (p.effect, value) {
                made.insert(*id, brief(&call));
            }
        }
    }
    Ok(format!("call {number}"))
}

/// The function, and whom and what it is about; of a collective call also how much.
pub(crate) fn brief(call: &Call) -> String {
    let mut text = format!("{}(", call.function.name);
    let mut first = true;
    let collective = matches!(Role::of(call.function), Role::Collective(_));
    for (p, value) in call.function.params.iter().zip(&call.args) {
        let tells = matches!(
            p.kind,
            Kind::Peer(_) | Kind::Root(_) | Kind::Tag | Kind::Handle(Class::Comm | Class::Win | Class::File)
        ) || (collective
            && p.dir == Dir::In
            && (matches!(p.kind, Kind::Handle(Class::Datatype | Class::Op))
                || (p.kind == Kind::Int && p.name.ends_with("count"))));
        let input = p.effect == Effect::None || !matches!(p.kind, Kind::Handle(Class::Comm));
        if tells && input && p.len.is_empty() && *value != Value::Unset {
            let _ = write!(text, "{}{}=", if first { "" } else { ", " }, p.name);
            value::text(value, &mut text);
            first = false;
        }
    }
    text.push(')');
    text
}

/// The requests that a call is about, and did not make.
pub(crate) fn open_requests(call: &Call) -> Vec<u32> {
    let mut found = Vec::new();
    for (p, value) in call.function.params.iter().zip(&call.args) {
        let value = if let Value::InOut(before, _) = value { before } else { value };
        let all = if let Value::List(list) = value { &list[..] } else { std::slice::from_ref(value) };
        if p.kind == Kind::Handle(Class::Request) && p.effect != Effect::Create {
            found.extend(all.iter().filter_map(|one| match one {
                Value::Object(Class::Request, id) => Some(*id),
                Value::InOut(before, _) => match **before {
                    Value::Object(Class::Request, id) => Some(id),
                    _ => None,
                },
                _ => None,
            }));
        }
    }
    found
}
