//! Collectives of all ranks, as SimGrid's actions.

use refrain_model::{Call, Value};
use refrain_views::happenings::{Collective, Happening, Walk};

use super::{Actions, Counted, TO_MESSAGES};
use crate::collectives;

/// Bytes for each rank, from an array of counts and the datatype or datatypes beside it.
fn blocks(call: &Call, counts: &str, types: &str, rank: u32, walk: &Walk) -> Option<Vec<u64>> {
    let arg = |name: &str| call.function.index_of(name).map(|at| &call.args[at]);
    let Some(Value::List(counts)) = arg(counts) else { return None };
    let datatype = arg(types).or_else(|| arg(&format!("{types}s")))?;
    let size = |at: usize| match datatype {
        Value::List(all) => walk.datatype_size(rank, all.get(at)?),
        one => walk.datatype_size(rank, one),
    };
    let one = |(at, count): (usize, &Value)| match count {
        Value::Int(count) => Some(u64::try_from(*count).unwrap_or(0).saturating_mul(size(at).unwrap_or(0))),
        _ => Some(0),
    };
    counts.iter().enumerate().map(one).collect()
}

fn list(all: &[u64]) -> String {
    all.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

impl Actions {
    pub(super) fn collective(
        &mut self,
        collective: &Collective,
        happening: &Happening,
        walk: &Walk,
        counted: &mut Counted,
    ) {
        let comm = &collective.comm;
        let group = comm.group();
        let (n, base) = (group.len() as u64, collectives::kind(collective.function).unwrap_or_default());
        if comm.remote().is_some() {
            counted.add(super::LEFT_OUT, collective.function.name);
            return;
        }
        if n < 2 {
            return;
        }
        // A call that starts a request does not say how much is for whom.
        let call = (happening.call.function.id == collective.function.id).then_some(&*happening.call);
        let whole = comm.name == "world" || group.iter().copied().eq(0..walk.ranks());
        let action = if whole { self.action(base, collective, call, walk, n) } else { None };
        match action {
            Some(action) => self.line(action),
            None => {
                if !base.is_empty() {
                    counted.add(TO_MESSAGES, collective.function.name);
                }
                let each = |counts: &str, types: &str| blocks(call?, counts, types, self.rank, walk);
                let each = match base {
                    "scatterv" => each("sendcounts", "sendtype"),
                    "gatherv" => each("recvcounts", "recvtype"),
                    _ => None,
                };
                self.apart(base, collective, each, counted);
            }
        }
    }

    /// `None`: SimGrid has no such action that works.
    fn action(
        &self,
        base: &str,
        collective: &Collective,
        call: Option<&Call>,
        walk: &Walk,
        n: u64,
    ) -> Option<String> {
        let Collective { sent, received, root, .. } = *collective;
        let root = root.unwrap_or(0);
        let is_root = root == self.rank;
        let blocks = |counts: &str, types: &str| blocks(call?, counts, types, self.rank, walk);
        Some(match base {
            // On all ranks the same way.
            "allgatherv" | "gatherv" | "alltoallv" | "alltoallw" if call.is_none() => return None,
            "barrier" => "barrier".into(),
            "bcast" => format!("bcast {} {root}", sent.max(received)),
            "reduce" => format!("reduce {} 0 {root}", sent.max(received)),
            "allreduce" => format!("allreduce {} 0", sent.max(received)),
            "alltoall" => format!("alltoall {0} {0}", received / n),
            "gather" if is_root => format!("gather {0} {0} {root}", received / n),
            "gather" => format!("gather {sent} {sent} {root}"),
            "scatter" if is_root => format!("scatter {0} {0} {root}", sent / n),
            "scatter" => format!("scatter {received} {received} {root}"),
            "allgather" => format!("allgather {0} {0}", received / n),
            "allgatherv" => {
                let all = blocks("recvcounts", "recvtype")?;
                let own = all.get(self.rank as usize).copied().unwrap_or(0);
                format!("allgatherv {own} {}", list(&all))
            }
            "gatherv" if is_root => {
                let all = blocks("recvcounts", "recvtype")?;
                let own = all.get(self.rank as usize).copied().unwrap_or(0);
                format!("gatherv {own} {} {root}", list(&all))
            }
            "gatherv" => format!("gatherv {sent} {} {root}", list(&vec![0; n as usize])),
            "alltoallv" | "alltoallw" => {
                let to = blocks("recvcounts", "recvtype")?;
                // In place what is received says what is sent.
                let from = blocks("sendcounts", "sendtype").filter(|from| from.len() == to.len());
                let from = from.unwrap_or_else(|| to.clone());
                let sum = |all: &[u64]| all.iter().sum::<u64>();
                format!("alltoallv {} {} {} {}", sum(&from), list(&from), sum(&to), list(&to))
            }
            _ => return None,
        })
    }
}
