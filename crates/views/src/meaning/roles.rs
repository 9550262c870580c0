//! What a function does to messages, requests and communicators.

use refrain_encode::Message;
use refrain_model::{Class, Dir, Effect, Function, Kind, Scope};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Nothing,
    Messages(Message, Way),
    Collective(Collective),
    Complete(Completes),
    Start,
    /// A communicator ends, the one in this parameter.
    EndComm(usize),
    Init,
    Finalize,
    /// Ranks may wait here for others, but it is not looked into.
    Elsewhere,
}

/// How the messages of a call are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The call ends when they are there.
    Blocking,
    /// A send that ends whether or not anybody receives.
    Buffered,
    /// A message is waited for and stays.
    Probe,
    /// A request stands for them.
    Request,
    /// A request that has to be started.
    Persistent,
}

/// A call of all members of a communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collective {
    pub(crate) comm: usize,
    pub(crate) kind: Needs,
    pub(crate) way: Way,
}

/// Whom a member needs before it can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Everybody, and nothing else.
    Barrier,
    Everybody,
    /// The root, which is in this parameter.
    Root(usize),
    /// Everybody if it is the root.
    AtRoot(usize),
    /// Those with lower ranks.
    Lower,
}

/// Which of the requests given to a call it completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Completes {
    pub(crate) which: Which,
    /// It waits for them.
    pub(crate) waits: bool,
}

/// How a call receives messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receives {
    /// It waits for them itself.
    Waiting,
    /// It makes a request, so that the program can go on.
    Posting,
}

/// `None` for functions that receive no messages from a rank that they name.
pub fn receives(function: &str) -> Option<Receives> {
    match Role::of(refrain_model::function(function)?) {
        Role::Messages(message, way) if message.expected.is_some() => match way {
            Way::Blocking | Way::Buffered => Some(Receives::Waiting),
            Way::Request | Way::Persistent => Some(Receives::Posting),
            Way::Probe => None,
        },
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    Any,
    Some,
}

/// The parameter with the requests of a call.
pub(crate) fn requests(f: &Function) -> Option<usize> {
    f.params.iter().position(|p| p.kind == Kind::Handle(Class::Request))
}

impl Role {
    pub(crate) fn of(f: &'static Function) -> Role {
        let name = f.name.strip_prefix("MPI_").unwrap_or(f.name);
        let name = name.strip_suffix("_c").unwrap_or(name);
        let makes = |p: usize| f.params[p].effect == Effect::Create;
        let way = match requests(f) {
            _ if f.persistent => Way::Persistent,
            Some(p) if makes(p) => Way::Request,
            _ if name == "Bsend" => Way::Buffered,
            _ if name == "Probe" => Way::Probe,
            _ => Way::Blocking,
        };
        match name {
            "Init" | "Init_thread" | "Session_init" => return Role::Init,
            "Finalize" => return Role::Finalize,
            "Start" | "Startall" => return Role::Start,
            "Comm_free" | "Comm_disconnect" => return Role::EndComm(0),
            "Psend_init" | "Precv_init" => return Role::Elsewhere,
            // It asks, and takes nothing.
            "Iprobe" => return Role::Nothing,
            _ => {}
        }
        let complete = |which, waits| Role::Complete(Completes { which, waits });
        match name {
            "Wait" | "Waitall" => return complete(Which::All, true),
            "Waitany" => return complete(Which::Any, true),
            "Waitsome" => return complete(Which::Some, true),
            "Test" | "Testall" => return complete(Which::All, false),
            "Testany" => return complete(Which::Any, false),
            "Testsome" => return complete(Which::Some, false),
            _ => {}
        }
        if let Some(message) = Message::of(f) {
            return Role::Messages(message, way);
        }
        if let Some(collective) = collective(f, name, way) {
            return Role::Collective(collective);
        }
        let family = |name: &str| f.families.contains(&name);
        let several = (family("coll") && f.index_of("comm").is_some())
            || (family("rma") && name.starts_with("Win_"))
            || (family("io") && (name.contains("_all") || name == "File_open" || name == "File_close"));
        if several { Role::Elsewhere } else { Role::Nothing }
    }
}

fn collective(f: &Function, name: &str, way: Way) -> Option<Collective> {
    let made = f.params.iter().find_map(|p| match p.effect {
        Effect::CreateComm(Scope::Parent(comm)) if p.dir == Dir::Out => Some(usize::from(comm)),
        _ => None,
    });
    if let Some(comm) = made {
        return Some(Collective { comm, kind: Needs::Everybody, way });
    }
    let name = name.strip_suffix("_init").unwrap_or(name).to_ascii_lowercase();
    let name = if way == Way::Request { name.strip_prefix('i').unwrap_or(&name) } else { &name };
    let root = || f.index_of("root");
    let kind = match name {
        "barrier" => Needs::Barrier,
        "allgather"
        | "allgatherv"
        | "allreduce"
        | "alltoall"
        | "alltoallv"
        | "alltoallw"
        | "reduce_scatter"
        | "reduce_scatter_block" => Needs::Everybody,
        "bcast" | "scatter" | "scatterv" => Needs::Root(root()?),
        "reduce" | "gather" | "gatherv" => Needs::AtRoot(root()?),
        "scan" | "exscan" => Needs::Lower,
        _ => return None,
    };
    Some(Collective { comm: f.index_of("comm")?, kind, way })
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_model::function;

    #[test]
    fn functions_do_what_their_names_say() {
        let role = |name: &str| Role::of(function(name).unwrap());
        let way = |name: &str| match role(name) {
            Role::Messages(_, way) | Role::Collective(Collective { way, .. }) => way,
            other => panic!("{name}: {other:?}"),
        };
        for (name, expected) in [
            ("MPI_Send_c", Way::Blocking),
            ("MPI_Sendrecv", Way::Blocking),
            ("MPI_Mprobe", Way::Blocking),
            ("MPI_Bsend", Way::Buffered),
            ("MPI_Probe", Way::Probe),
            ("MPI_Isend", Way::Request),
            ("MPI_Isendrecv_c", Way::Request),
            ("MPI_Recv_init", Way::Persistent),
            ("MPI_Ibcast", Way::Request),
            ("MPI_Allreduce_init", Way::Persistent),
            ("MPI_Comm_split", Way::Blocking),
        ] {
            assert_eq!(way(name), expected, "{name}");
        }
        let kind = |name: &str| match role(name) {
            Role::Collective(Collective { kind, .. }) => kind,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(kind("MPI_Ibarrier"), Needs::Barrier);
        assert_eq!(kind("MPI_Reduce_scatter_block_c"), Needs::Everybody);
        assert_eq!(kind("MPI_Iallgatherv"), Needs::Everybody);
        assert_eq!(kind("MPI_Cart_create"), Needs::Everybody);
        assert_eq!(kind("MPI_Bcast"), Needs::Root(3));
        assert_eq!(kind("MPI_Gatherv_init"), Needs::AtRoot(7));
        assert_eq!(kind("MPI_Iexscan"), Needs::Lower);
        for name in ["MPI_Neighbor_alltoall", "MPI_Win_fence", "MPI_Comm_idup", "MPI_Psend_init"] {
            assert!(matches!(role(name), Role::Elsewhere | Role::Nothing), "{name}: {:?}", role(name));
        }
        for name in ["MPI_Reduce_local", "MPI_Comm_rank", "MPI_Iprobe", "MPI_Wtime", "MPI_Mrecv"] {
            assert_eq!(role(name), Role::Nothing, "{name}");
        }
    }
}
