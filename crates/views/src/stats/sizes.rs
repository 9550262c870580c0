//! How large the objects are that a call names: datatypes in bytes, communicators in ranks.

use std::collections::HashMap;

use refrain_model::{Call, Class, Dir, Kind, Value, constant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommSize {
    pub(super) local: u64,
    /// Of an inter-communicator.
    pub(super) remote: Option<u64>,
    /// Neighbours to send to, of a communicator with a topology.
    pub(super) out_degree: Option<u64>,
}

/// Bytes of one element of a predefined type; nothing for `MPI_DATATYPE_NULL`.
pub(super) fn named_type(name: &str) -> u64 {
    constant(name).and_then(|c| c.size).map_or(0, u64::from)
}

pub(super) fn named_comm(name: &str, world: u32) -> Option<CommSize> {
    let local = match name {
        "world" | "MPI_COMM_WORLD" => u64::from(world),
        "self" | "MPI_COMM_SELF" => 1,
        _ => return None,
    };
    Some(CommSize { local, remote: None, out_degree: None })
}

/// What the calls of one rank, read in order, have made so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Made {
    pub(super) types: HashMap<u32, u64>,
    comms: HashMap<String, CommSize>,
    world: u32,
}

impl Made {
    pub(super) fn new(world: u32) -> Made {
        Made { world, ..Made::default() }
    }

    pub(super) fn comm(&self, value: &Value) -> Option<CommSize> {
        match value {
            Value::Comm(name) => named_comm(name, self.world).or_else(|| self.comms.get(name).copied()),
            _ => None,
        }
    }

    pub(super) fn take_in(&mut self, call: &Call) {
        let fact = |name: &str| call.facts.iter().find(|(n, _)| *n == name).map(|(_, value)| value);
        // One for each new type, in the order of the parameters.
        let mut sizes = call.facts.iter().filter(|(name, _)| *name == "size").map(|(_, value)| value);
        for (param, value) in call.function.params.iter().zip(&call.args) {
            if param.dir == Dir::In {
                continue;
            }
            match (param.kind, value) {
                (Kind::Handle(Class::Datatype), Value::Object(_, id)) => {
                    if let Some(Value::Int(size)) = sizes.next() {
                        self.types.insert(*id, u64::try_from(*size).unwrap_or(0));
                    }
                }
                (Kind::Handle(Class::Comm), Value::Comm(name)) => {
                    if let Some(size) = self.new_comm(call, fact("group"), fact("remote_group")) {
                        self.comms.insert(name.clone(), size);
                    }
                }
                _ => {}
            }
        }
    }

    fn new_comm(&self, call: &Call, group: Option<&Value>, remote: Option<&Value>) -> Option<CommSize> {
        let length = |value: &Value| match value {
            Value::List(members) => u64::try_from(members.len()).ok(),
            _ => None,
        };
        let parent = call.function.index_of("comm").and_then(|i| self.comm(&call.args[i]));
        // Where the members are those of the parent, the group is told by its name instead of a list.
        let local = group.and_then(length).or(parent.map(|p| p.local))?;
        let number = |name: &str| {
            let value = call.function.index_of(name).and_then(|i| call.args.get(i))?;
            if let Value::Int(n) = value { u64::try_from(*n).ok() } else { None }
        };
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
