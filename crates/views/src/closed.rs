//! Whether some ranks of a run can be made again without the others: none of their calls may need one of these.

use std::collections::HashMap;
use std::fmt::Write;
use std::rc::Rc;

use refrain_encode::Reader;
use refrain_model::{Call, Class, Effect, Kind, Value};
use refrain_tracefile::Trace;

use crate::{Error, human, value};

/// Who is in which communicator, as the calls of a rank tell it.
#[derive(Debug)]
pub struct Comms {
    /// Ranks of the world, in order; none of one between two groups.
    groups: HashMap<String, Option<Rc<[u32]>>>,
}

/// Calls that one rank makes for itself, though they name a communicator.
const LOCAL: [&str; 18] = [
    "MPI_Comm_rank",
    "MPI_Comm_size",
    "MPI_Comm_remote_size",
    "MPI_Comm_test_inter",
    "MPI_Comm_compare",
    "MPI_Comm_delete_attr",
    "MPI_Comm_call_errhandler",
    "MPI_Topo_test",
    "MPI_Attr_get",
    "MPI_Attr_put",
    "MPI_Attr_delete",
    "MPI_Errhandler_set",
    "MPI_Errhandler_get",
    "MPI_Abort",
    "MPI_Cart_map",
    "MPI_Graph_map",
    "MPI_Comm_ack_failed",
    "MPI_Comm_is_revoked",
];

/// Calls that make a communicator of those who are there: of a part of the ranks it has that part of the members, in the
/// same order.
const MAKERS: [&str; 8] = [
    "MPI_Comm_dup",
    "MPI_Comm_dup_with_info",
    "MPI_Comm_idup",
    "MPI_Comm_idup_with_info",
    "MPI_Comm_split",
    "MPI_Comm_split_type",
    "MPI_Comm_free",
    "MPI_Comm_disconnect",
];

impl Comms {
    /// Of a rank of a world of so many.
    pub fn new(rank: u32, world: u32) -> Comms {
        Comms::of(rank, (0..world).collect())
    }

    /// The same where several ranks share the list of all.
    pub fn of(rank: u32, all: Rc<[u32]>) -> Comms {
        let own: Rc<[u32]> = Rc::new([rank]);
        Comms { groups: HashMap::from([("world".into(), Some(all)), ("self".into(), Some(own))]) }
    }

    /// A call may have made one.
    pub fn learn(&mut self, call: &Call) {
        for (p, value) in call.function.params.iter().zip(&call.args) {
            let value = if let Value::InOut(_, after) = value { after } else { value };
            let (Effect::CreateComm(_), Value::Comm(name)) = (p.effect, value) else { continue };
            let fact = |name: &str| call.facts.iter().find(|(fact, _)| *fact == name).map(|(_, value)| value);
            let group = match fact("group") {
                _ if fact("remote_group").is_some() => None,
                Some(Value::List(list)) => {
                    let rank = |value: &Value| match value {
                        Value::Int(rank) => u32::try_from(*rank).ok(),
                        _ => None,
                    };
                    list.iter().map(rank).collect::<Option<Rc<[u32]>>>()
                }
                Some(Value::Text(text)) => {
                    text.strip_prefix("as ").and_then(|name| self.group(name)).cloned()
                }
                _ => None,
            };
            self.groups.insert(name.clone(), group);
        }
    }

    /// The ranks of the world that are in it, in its order.
    pub fn group(&self, name: &str) -> Option<&Rc<[u32]>> {
        self.groups.get(name)?.as_ref()
    }
}

/// The communicator that a call is made on.
pub fn comm_of(call: &Call) -> Option<&str> {
    let mut params = call.function.params.iter().zip(&call.args);
    params.find_map(|(p, value)| match (p.kind, p.effect, value) {
        (Kind::Handle(Class::Comm), Effect::None, Value::Comm(name)) => Some(&**name),
        (Kind::Handle(Class::Comm), Effect::Free, Value::Comm(name)) => Some(&**name),
        _ => None,
    })
}

/// Whom a call needs who is not among them, in words.
fn needs(call: &Call, comms: &Comms, among: &dyn Fn(u32) -> bool) -> Option<String> {
    let comm = comm_of(call)?;
    let name = call.function.name;
    let queries = name.starts_with("MPI_Comm_get_") || name.starts_with("MPI_Comm_set_");
    if LOCAL.contains(&name) || queries {
        return None;
    }
    let Some(group) = comms.group(comm) else {
        return Some(format!("it is not known who is in {comm}"));
    };
    let outside: Vec<u32> = group.iter().copied().filter(|rank| !among(*rank)).collect();
    if outside.is_empty() || MAKERS.contains(&name) {
        return None;
    }
    let mut sorted = outside;
    sorted.sort_unstable();
    let others = if sorted.len() == 1 { "rank" } else { "ranks" };
    let mut to_one = false;
    for (p, value) in call.function.params.iter().zip(&call.args) {
        let Kind::Peer(_) = p.kind else { continue };
        to_one = true;
        match value {
            Value::Int(rank) => {
                let rank = usize::try_from(*rank).ok().and_then(|rank| group.get(rank)).copied();
                if let Some(rank) = rank.filter(|rank| !among(*rank)) {
                    return Some(format!("it needs rank {rank}"));
                }
            }
            Value::Name("MPI_ANY_SOURCE") => {
                return Some(format!("it may be from {others} {}", human::ranks(&sorted)));
            }
            _ => {}
        }
    }
    (!to_one).then(|| format!("it needs {others} {}", human::ranks(&sorted)))
}

/// The first call of these ranks that needs another one: which, and whom. `None` where they can do without.
pub fn first_need(trace: &Trace, ranks: &[u32]) -> Result<Option<String>, Error> {
    let reader = Reader::new(&trace.bundle);
    for &rank in ranks {
        if reader.threads(rank).len() > 1 {
            return Ok(Some(format!(
                "rank {rank} has several threads, which may use communicators of each other"
            )));
        }
        let mut comms = Comms::new(rank, trace.meta.ranks);
        let failed = |position| move |error| Error::Call { rank, thread: 0, position, error };
        for (number, call) in (0u64..).zip(reader.calls(rank, 0).map_err(failed(0))?) {
            let call = call.map_err(failed(number))?;
            if let Some(need) = needs(&call, &comms, &|rank| ranks.contains(&rank)) {
                let mut text = format!("rank {rank}, call {number}, {}(", call.function.name);
                for (p, value) in call.function.params.iter().zip(&call.args) {
                    if matches!(p.kind, Kind::Peer(_)) {
                        let _ = write!(text, "{}=", p.name);
                        value::text(value, &mut text);
                        text.push_str(", ");
                    }
                }
                let comm = comm_of(&call).unwrap_or("?");
                return Ok(Some(format!("{text}comm={comm}): {need}")));
            }
            comms.learn(&call);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, given: &[(&str, Value)]) -> Call {
        let function = refrain_model::function(name).unwrap();
        let mut args = vec![Value::Unset; function.params.len()];
        for (parameter, value) in given {
            args[function.index_of(parameter).unwrap()] = value.clone();
        }
        Call { function, args, result: Value::Int(0), facts: Vec::new() }
    }

    #[test]
    fn who_is_needed() {
        let comm = |name: &str| ("comm", Value::Comm(name.into()));
        let mut comms = Comms::new(1, 4);
        let mut split = call("MPI_Comm_split", &[comm("world"), ("newcomm", Value::Comm("world.0".into()))]);
        split.facts = vec![("group", Value::List(vec![Value::Int(3), Value::Int(1)]))];
        let among = |ranks: &'static [u32]| move |rank: u32| ranks.contains(&rank);
        assert_eq!(needs(&split, &comms, &among(&[1, 3])), None);
        comms.learn(&split);
        let barrier = |name: &str| call("MPI_Barrier", &[comm(name)]);
        let of = |call: &Call, ranks: &'static [u32]| needs(call, &comms, &among(ranks));
        assert_eq!(of(&barrier("world"), &[1, 3]).as_deref(), Some("it needs ranks 0,2"));
        assert_eq!(of(&barrier("world.0"), &[1, 3]), None);
        assert_eq!(of(&barrier("world.0"), &[1, 2]).as_deref(), Some("it needs rank 3"));
        assert_eq!(of(&barrier("self"), &[1]), None);
        assert_eq!(of(&barrier("other"), &[1]).as_deref(), Some("it is not known who is in other"));
        let send = |to: Value| call("MPI_Send", &[comm("world"), ("dest", to)]);
        assert_eq!(of(&send(Value::Int(3)), &[1, 3]), None);
        assert_eq!(of(&send(Value::Int(2)), &[1, 3]).as_deref(), Some("it needs rank 2"));
        assert_eq!(of(&send(Value::Name("MPI_PROC_NULL")), &[1, 3]), None);
        let receive = call("MPI_Recv", &[comm("world"), ("source", Value::Name("MPI_ANY_SOURCE"))]);
        assert_eq!(of(&receive, &[1, 3]).as_deref(), Some("it may be from ranks 0,2"));
        assert_eq!(of(&receive, &[0, 1, 2, 3]), None);
        assert_eq!(of(&call("MPI_Comm_size", &[comm("world")]), &[1]), None);
    }
}
