//! Collective operations by name.

use refrain_model::Function;

/// All of them, in the order of their numbers in OTF2.
pub const ALL: [&str; 17] = [
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "allreduce",
    "reduce",
    "reduce_scatter",
    "scan",
    "exscan",
    "reduce_scatter_block",
];

/// What a function does, without what makes it large, persistent or nonblocking. Nothing of those that make communicators.
pub fn kind(function: &Function) -> Option<&'static str> {
    let name = function.name.strip_prefix("MPI_").unwrap_or(function.name).to_ascii_lowercase();
    let name = name.strip_suffix("_c").unwrap_or(&name);
    let name = name.strip_suffix("_init").unwrap_or(name);
    let of = |name: &str| ALL.into_iter().find(|known| *known == name);
    of(name).or_else(|| of(name.strip_prefix('i')?))
}
