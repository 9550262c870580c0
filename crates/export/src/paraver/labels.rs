//! The numbers that Paraver's configurations know: states, types of events, and the functions of MPI.

use refrain_model::Function;

/// What a thread does. The numbers are those of Extrae.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    Idle = 0,
    Running = 1,
    WaitingMessage = 3,
    BlockingSend = 4,
    Synchronization = 5,
    Test = 6,
    Wait = 8,
    ImmediateSend = 10,
    ImmediateReceive = 11,
    Io = 12,
    Group = 13,
    Others = 15,
    SendReceive = 16,
    Remote = 17,
}

pub const STATES: &[(State, &str, [u8; 3])] = &[
    (State::Idle, "Idle", [117, 195, 255]),
    (State::Running, "Running", [0, 0, 255]),
    (State::WaitingMessage, "Waiting a message", [255, 0, 0]),
    (State::BlockingSend, "Blocking Send", [255, 0, 174]),
    (State::Synchronization, "Synchronization", [179, 0, 0]),
    (State::Test, "Test/Probe", [0, 255, 0]),
    (State::Wait, "Wait/WaitAll", [235, 0, 0]),
    (State::ImmediateSend, "Immediate Send", [255, 144, 26]),
    (State::ImmediateReceive, "Immediate Receive", [2, 177, 119]),
    (State::Io, "I/O", [255, 243, 0]),
    (State::Group, "Group Communication", [255, 128, 0]),
    (State::Others, "Others", [255, 146, 24]),
    (State::SendReceive, "Send Receive", [172, 174, 41]),
    (State::Remote, "Memory transfer", [222, 66, 174]),
];

/// Types of events that are calls.
const KINDS: [(&[&str], (u32, &str)); 4] = [
    (&["io"], (50_000_005, "MPI I/O")),
    (&["rma"], (50_000_004, "MPI One-sided")),
    (&["coll"], (50_000_002, "MPI Collective Comm")),
    (&["p2p", "wait"], (50_000_001, "MPI Point-to-point")),
];

/// The type of event that a call is: its number and its name.
pub fn kind(function: &Function) -> (u32, &'static str) {
    let of = |families: &[&str]| families.iter().any(|family| function.families.contains(family));
    KINDS.iter().find(|(families, _)| of(families)).map_or((50_000_003, "MPI Other"), |(_, kind)| *kind)
}

/// Functions by the value that Extrae gives them, from 1 on.
const VALUES: [&str; 80] = [
    "MPI_Send",
    "MPI_Recv",
    "MPI_Isend",
    "MPI_Irecv",
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Bcast",
    "MPI_Barrier",
    "MPI_Reduce",
    "MPI_Allreduce",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Comm_rank",
    "MPI_Comm_size",
    "MPI_Comm_create",
    "MPI_Comm_dup",
    "MPI_Comm_split",
    "MPI_Comm_group",
    "MPI_Comm_free",
    "MPI_Comm_remote_group",
    "MPI_Comm_remote_size",
    "MPI_Comm_test_inter",
    "MPI_Comm_compare",
    "MPI_Scan",
    "MPI_Init",
    "MPI_Finalize",
    "MPI_Bsend",
    "MPI_Ssend",
    "MPI_Rsend",
    "MPI_Ibsend",
    "MPI_Issend",
    "MPI_Irsend",
    "MPI_Test",
    "MPI_Cancel",
    "MPI_Sendrecv",
    "MPI_Sendrecv_replace",
    "MPI_Cart_create",
    "MPI_Cart_shift",
    "MPI_Cart_coords",
    "MPI_Cart_get",
    "MPI_Cart_map",
    "MPI_Cart_rank",
    "MPI_Cart_sub",
    "MPI_Cartdim_get",
    "MPI_Dims_create",
    "MPI_Graph_get",
    "MPI_Graph_map",
    "MPI_Graph_create",
    "MPI_Graph_neighbors",
    "MPI_Graphdims_get",
    "MPI_Graph_neighbors_count",
    "MPI_Topo_test",
    "MPI_Waitany",
    "MPI_Waitsome",
    "MPI_Probe",
    "MPI_Iprobe",
    "MPI_Win_create",
    "MPI_Win_free",
    "MPI_Put",
    "MPI_Get",
    "MPI_Accumulate",
    "MPI_Win_fence",
    "MPI_Win_start",
    "MPI_Win_complete",
    "MPI_Win_post",
    "MPI_Win_wait",
    "MPI_Win_test",
    "MPI_Win_lock",
    "MPI_Win_unlock",
    "MPI_Pack",
    "MPI_Unpack",
    "MPI_Op_create",
    "MPI_Op_free",
    "MPI_Reduce_scatter",
];
/// Values of functions that it does not know, or whose value is not among these: this and their number.
const OTHERS: u32 = 1000;

/// The value of a call's event.
pub fn value(function: &Function) -> u32 {
    match VALUES.iter().position(|name| *name == function.name) {
        Some(at) => at as u32 + 1,
        None => OTHERS + u32::from(function.id),
    }
}

/// What a thread does in a call.
pub fn state(function: &Function) -> State {
    let is = |family: &str| function.families.contains(&family);
    let name = function.name.trim_end_matches("_c");
    match name {
        "MPI_Recv" | "MPI_Mrecv" => State::WaitingMessage,
        "MPI_Barrier" | "MPI_Win_fence" => State::Synchronization,
        "MPI_Sendrecv" | "MPI_Sendrecv_replace" => State::SendReceive,
        "MPI_Irecv" | "MPI_Imrecv" => State::ImmediateReceive,
        _ if function.poll || name.contains("robe") => State::Test,
        _ if is("wait") => State::Wait,
        _ if is("coll") => State::Group,
        _ if is("io") => State::Io,
        _ if is("rma") => State::Remote,
        "MPI_Send" | "MPI_Ssend" | "MPI_Bsend" | "MPI_Rsend" => State::BlockingSend,
        "MPI_Isend" | "MPI_Issend" | "MPI_Ibsend" | "MPI_Irsend" => State::ImmediateSend,
        _ => State::Others,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_model::function;

    #[track_caller]
    fn check(name: &str, number: u32, event: u32, doing: State) {
        let function = function(name).unwrap();
        assert_eq!((value(function), kind(function).0, state(function)), (number, event, doing), "{name}");
    }

    #[test]
    fn calls_have_the_numbers_that_configurations_know() {
        check("MPI_Send", 1, 50_000_001, State::BlockingSend);
        check("MPI_Irecv", 4, 50_000_001, State::ImmediateReceive);
        check("MPI_Waitall", 6, 50_000_001, State::Wait);
        check("MPI_Allreduce", 10, 50_000_002, State::Group);
        check("MPI_Comm_size", 20, 50_000_003, State::Others);
        check("MPI_Scan", 30, 50_000_002, State::Group);
        check("MPI_Test", 39, 50_000_001, State::Test);
        check("MPI_Cartdim_get", 50, 50_000_003, State::Others);
        check("MPI_Waitsome", 60, 50_000_001, State::Wait);
        check("MPI_Win_complete", 70, 50_000_004, State::Remote);
        check("MPI_Reduce_scatter", 80, 50_000_002, State::Group);
    }

    #[test]
    fn every_name_is_one_of_a_function() {
        for name in VALUES {
            assert!(function(name).is_some(), "{name}");
        }
    }
}
