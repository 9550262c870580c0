//! How much data a call gives to MPI: for each function, which arguments say so.

use refrain_model::{Function, Kind};

/// What `payload` means, for help texts.
pub const DEFINITION: &str = "\
payload is the data a call gives to MPI: count x datatype size of its send side. Receives, gets and reads give nothing.
A broadcast counts on every rank, a persistent operation once, when it is made. With MPI_IN_PLACE the receive side
says what is given. Calls that failed and messages to MPI_PROC_NULL give nothing.";

/// How often the counted elements are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    Once,
    /// One block for each rank that the communicator addresses (the remote group of an inter-communicator).
    CommSize,
    /// One block for each rank of the caller's own group.
    LocalSize,
    /// One block for each neighbour to send to.
    OutDegree,
    /// As many as that parameter says.
    Param(usize),
}

/// Indices of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    /// One element where there is no count.
    pub(crate) count: Option<usize>,
    pub(crate) datatype: usize,
    pub(crate) times: Times,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Payload {
    pub(crate) send: Side,
    pub(crate) in_place: InPlace,
    pub(crate) comm: Option<usize>,
    /// Where `MPI_PROC_NULL` means that nobody is there.
    pub(crate) peer: Option<usize>,
    /// Where `MPI_NO_OP` means that nothing is sent.
    pub(crate) op: Option<usize>,
}

/// What counts when the send buffer is `MPI_IN_PLACE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InPlace {
    /// The same arguments, or there is no such thing.
    Same,
    /// Nothing leaves the caller (a root that keeps its own part).
    Nothing { buffer: usize },
    /// The receive side.
    Receive { buffer: usize, side: Side },
    /// One element of the receive counts, which is different on every rank.
    Unknown { buffer: usize },
}

/// `None` for functions that give no data.
pub(crate) fn payload(function: &Function) -> Option<Payload> {
    let base = function.name.strip_prefix("MPI_")?.to_ascii_lowercase();
    let base = base.strip_suffix("_c").unwrap_or(&base);
    let base = base.strip_suffix("_init").or_else(|| base.strip_suffix("_begin")).unwrap_or(base);
    // `file_iwrite_at_all` and `isend` give what `file_write_at_all` and `send` give.
    let plain = base.replace("file_iwrite", "file_write");
    rule(function, &plain).or_else(|| rule(function, plain.strip_prefix('i')?))
}

fn rule(function: &Function, base: &str) -> Option<Payload> {
    let index = |name: &str| function.params.iter().position(|p| p.name == name);
    let side = |count: &str, datatype: &str, times| {
        Some(Side { count: Some(index(count)?), datatype: index(datatype)?, times })
    };
    let one = |datatype: &str| Some(Side { count: None, datatype: index(datatype)?, times: Times::Once });
    let sendbuf = || index("sendbuf");
    let receive = |side: Option<Side>| Some(InPlace::Receive { buffer: sendbuf()?, side: side? });
    let (send, in_place) = match base {
        "send" | "bsend" | "ssend" | "rsend" | "sendrecv_replace" | "bcast" | "reduce" | "allreduce"
        | "scan" | "exscan" => (side("count", "datatype", Times::Once), Some(InPlace::Same)),
        "psend" => (side("count", "datatype", Times::Param(index("partitions")?)), Some(InPlace::Same)),
        "sendrecv" | "neighbor_allgather" | "neighbor_allgatherv" => {
            (side("sendcount", "sendtype", Times::Once), Some(InPlace::Same))
        }
        "gather" | "gatherv" => {
            (side("sendcount", "sendtype", Times::Once), Some(InPlace::Nothing { buffer: sendbuf()? }))
        }
        "allgather" => {
            (side("sendcount", "sendtype", Times::Once), receive(side("recvcount", "recvtype", Times::Once)))
        }
        "allgatherv" => {
            (side("sendcount", "sendtype", Times::Once), Some(InPlace::Unknown { buffer: sendbuf()? }))
        }
        "scatter" => (side("sendcount", "sendtype", Times::CommSize), Some(InPlace::Same)),
        "scatterv" => (side("sendcounts", "sendtype", Times::Once), Some(InPlace::Same)),
        "alltoall" => (
            side("sendcount", "sendtype", Times::CommSize),
            receive(side("recvcount", "recvtype", Times::CommSize)),
        ),
        "alltoallv" => (
            side("sendcounts", "sendtype", Times::Once),
            receive(side("recvcounts", "recvtype", Times::Once)),
        ),
        "alltoallw" => (
            side("sendcounts", "sendtypes", Times::Once),
            receive(side("recvcounts", "recvtypes", Times::Once)),
        ),
        "reduce_scatter" => (side("recvcounts", "datatype", Times::Once), Some(InPlace::Same)),
        "reduce_scatter_block" => (side("recvcount", "datatype", Times::LocalSize), Some(InPlace::Same)),
        "neighbor_alltoall" => (side("sendcount", "sendtype", Times::OutDegree), Some(InPlace::Same)),
        "neighbor_alltoallv" => (side("sendcounts", "sendtype", Times::Once), Some(InPlace::Same)),
        "neighbor_alltoallw" => (side("sendcounts", "sendtypes", Times::Once), Some(InPlace::Same)),
        "put" | "rput" | "accumulate" | "raccumulate" | "get_accumulate" | "rget_accumulate" => {
            (side("origin_count", "origin_datatype", Times::Once), Some(InPlace::Same))
        }
        "fetch_and_op" | "compare_and_swap" => (one("datatype"), Some(InPlace::Same)),
        file if file.starts_with("file_write") && !file.ends_with("_end") => {
            (side("count", "datatype", Times::Once), Some(InPlace::Same))
        }
        _ => return None,
    };
    Some(Payload {
        send: send?,
        in_place: in_place?,
        comm: index("comm"),
        // The destination: of the functions above only sends and one-sided calls have a peer first.
        peer: function.params.iter().position(|p| matches!(p.kind, Kind::Peer(_))),
        op: index("op"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_model::{function, functions};

    #[track_caller]
    fn check(name: &str, expected: &str) {
        let function = function(name).unwrap();
        let name_of = |i: usize| function.params[i].name;
        let show = |side: Side| {
            let count = side.count.map_or("1", name_of);
            let times = match side.times {
                Times::Once => String::new(),
                Times::CommSize => " x size".into(),
                Times::LocalSize => " x local".into(),
                Times::OutDegree => " x neighbours".into(),
                Times::Param(i) => format!(" x {}", name_of(i)),
            };
            format!("{count} {}{times}", name_of(side.datatype))
        };
        let text = payload(function).map_or("nothing".to_string(), |p| {
            let in_place = match p.in_place {
                InPlace::Same => String::new(),
                InPlace::Nothing { .. } => " or nothing".into(),
                InPlace::Receive { side, .. } => format!(" or {}", show(side)),
                InPlace::Unknown { .. } => " or unknown".into(),
            };
            show(p.send) + &in_place
        });
        assert_eq!(text, expected, "{name}");
    }

    #[test]
    fn what_counts() {
        check("MPI_Send", "count datatype");
        check("MPI_Isend", "count datatype");
        check("MPI_Ibsend", "count datatype");
        check("MPI_Irsend_c", "count datatype");
        check("MPI_Ssend_init_c", "count datatype");
        check("MPI_Psend_init", "count datatype x partitions");
        check("MPI_Recv", "nothing");
        check("MPI_Irecv", "nothing");
        check("MPI_Precv_init", "nothing");
        check("MPI_Sendrecv", "sendcount sendtype");
        check("MPI_Isendrecv", "sendcount sendtype");
        check("MPI_Isendrecv_replace", "count datatype");
        check("MPI_Bcast", "count datatype");
        check("MPI_Ibcast", "count datatype");
        check("MPI_Bcast_init", "count datatype");
        check("MPI_Iallreduce", "count datatype");
        check("MPI_Gatherv", "sendcount sendtype or nothing");
        check("MPI_Iallgather", "sendcount sendtype or recvcount recvtype");
        check("MPI_Allgatherv", "sendcount sendtype or unknown");
        check("MPI_Scatter", "sendcount sendtype x size");
        check("MPI_Iscatterv", "sendcounts sendtype");
        check("MPI_Alltoall", "sendcount sendtype x size or recvcount recvtype x size");
        check("MPI_Ialltoallv_c", "sendcounts sendtype or recvcounts recvtype");
        check("MPI_Alltoallw_init", "sendcounts sendtypes or recvcounts recvtypes");
        check("MPI_Reduce_scatter", "recvcounts datatype");
        check("MPI_Ireduce_scatter_block", "recvcount datatype x local");
        check("MPI_Ineighbor_alltoall", "sendcount sendtype x neighbours");
        check("MPI_Neighbor_alltoallw", "sendcounts sendtypes");
        check("MPI_Put", "origin_count origin_datatype");
        check("MPI_Rget_accumulate", "origin_count origin_datatype");
        check("MPI_Get", "nothing");
        check("MPI_Fetch_and_op", "1 datatype");
        check("MPI_Compare_and_swap", "1 datatype");
        check("MPI_File_write_at_all_begin", "count datatype");
        check("MPI_File_write_at_all_end", "nothing");
        check("MPI_File_iwrite_shared", "count datatype");
        check("MPI_File_read", "nothing");
        check("MPI_Init", "nothing");
        check("MPI_Info_create", "nothing");
        check("MPI_Reduce_local", "nothing");
        check("MPI_Pack", "nothing");
    }

    /// A new function with a datatype has to be looked at: does it give data or not?
    #[test]
    fn no_sender_is_forgotten() {
        let gives_nothing = [
            "recv",
            "get",
            "read",
            "type_",
            "pack",
            "mrecv",
            "status_",
            "op_",
            "reduce_local",
            "file_set_view",
            "file_get",
            "probe",
            "sizeof",
            "register_datarep",
            "elements",
            "size",
            "external32",
            "address",
        ];
        for function in functions().iter().filter(|f| !f.silent) {
            let has_datatype =
                function.params.iter().any(|p| p.name.contains("datatype") || p.name.contains("sendtype"));
            let name = function.name.to_ascii_lowercase();
            if has_datatype && payload(function).is_none() {
                assert!(gives_nothing.iter().any(|mark| name.contains(mark)), "{}", function.name);
            }
        }
    }
}
