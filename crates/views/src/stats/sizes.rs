//! How large the objects are that a call names: datatypes in bytes, communicators in ranks.

use std::collections::HashMap;

use refrain_model::{Call, Class, Dir, Kind, Value, constant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommSize {
    pub(crate) local: u64,
    /// Of an inter-communicator.
    pub(crate) remote: Option<u64>,
    /// Neighbours to send to, of a communicator with a topology.
    pub(crate) out_degree: Option<u64>,
}

/// Bytes of one element of a predefined type; nothing for `MPI_DATATYPE_NULL`.
pub(crate) fn named_type(name: &str) -> u64 {
    constant(name).and_then(|c| c.size).map_or(0, u64::from)
}

pub(crate) fn named_comm(name: &str, world: u32) -> Option<CommSize> {
    let local = match name {
        "world" | "MPI_COMM_WORLD" => u64::from(world),
        "self" | "MPI_COMM_SELF" => 1,
        _ => return None,
    };
    Some(CommSize { local, remote: None, out_degree: None })
}

/// The datatypes that a call makes, with their sizes.
pub(crate) fn new_types(call: &Call) -> impl Iterator<Item = (u32, u64)> {
    // One for each new type, in the order of the parameters.
    let mut sizes = call.facts.iter().filter(|(name, _)| *name == "size").map(|(_, value)| value);
    let made =
        call.function.params.iter().zip(&call.args).filter_map(|(param, value)| match (param.kind, value) {
            (Kind::Handle(Class::Datatype), Value::Object(_, id)) if param.dir != Dir::In => Some(*id),
            _ => None,
        });
    made.filter_map(move |id| match sizes.next() {
        Some(Value::Int(size)) => Some((id, u64::try_from(*size).unwrap_or(0))),
        _ => None,
    })
}

/// What the calls of one rank, read in order, have made so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Made {
    pub(crate) types: HashMap<u32, u64>,
    comms: HashMap<String, CommSize>,
    world: u32,
}

impl Made {
    pub(crate) fn new(world: u32) -> Made {
        Made { world, ..Made::default() }
    }

    pub(crate) fn comm(&self, value: &Value) -> Option<CommSize> {
        match value {
            Value::Comm(name) => named_comm(name, self.world).or_else(|| self.comms.get(name).copied()),
            _ => None,
        }
    }

    pub(crate) fn take_in(&mut self, call: &Call) {
        if call.function.name == "MPI_Dist_graph_neighbors_count" {
            self.neighbours_asked_for(call);
        }
        let fact = |name: &str| call.facts.iter().find(|(n, _)| *n == name).map(|(_, value)| value);
        self.types.extend(new_types(call));
        for (param, value) in call.function.params.iter().zip(&call.args) {
            if let (Kind::Handle(Class::Comm), Value::Comm(name)) = (param.kind, value)
                && param.dir != Dir::In
                && let Some(size) = self.new_comm(call, fact("group"), fact("remote_group"))
            {
                self.comms.insert(name.clone(), size);
            }
        }
    }

    /// The distributed constructor does not say how many neighbours a rank gets, but many programs ask.
    fn neighbours_asked_for(&mut self, call: &Call) {
        let comm = call.function.index_of("comm").and_then(|i| call.args.get(i));
        if let Some(Value::Comm(name)) = comm
            && let Some(known) = self.comms.get_mut(name)
        {
            known.out_degree = number(call, "outdegree").or(known.out_degree);
        }
    }

    fn new_comm(&self, call: &Call, group: Option<&Value>, remote: Option<&Value>) -> Option<CommSize> {
        let length = |value: &Value| match value {
            Value::List(members) => u64::try_from(members.len()).ok(),
            _ => None,
        };
        // Where the members are those of the parent, its name stands for them.
        let parent = match group? {
            Value::Text(text) => {
                text.strip_prefix("as ").and_then(|name| self.comm(&Value::Comm(name.into())))
            }
            _ => None,
        };
        let local = group.and_then(length).or(parent.map(|p| p.local))?;
        let number = |name| number(call, name);
        let (inherited, out_degree) = match call.function.name {
            "MPI_Cart_create" => (None, number("ndims").map(|n| n.saturating_mul(2))),
            "MPI_Dist_graph_create_adjacent" => (None, number("outdegree")),
            // Copies keep what the parent has.
            name if name.starts_with("MPI_Comm_dup") || name.starts_with("MPI_Comm_idup") => {
                (parent.and_then(|p| p.remote), parent.and_then(|p| p.out_degree))
            }
            _ => (None, None),
        };
        Some(CommSize { local, remote: remote.and_then(length).or(inherited), out_degree })
    }
}

fn number(call: &Call, parameter: &str) -> Option<u64> {
    let value = call.function.index_of(parameter).and_then(|i| call.args.get(i))?;
    if let Value::Int(n) = value { u64::try_from(*n).ok() } else { None }
}
