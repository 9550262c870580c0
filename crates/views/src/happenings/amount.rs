//! How much a call takes from MPI, and gives to it, where its arguments say so.

use refrain_model::{Call, Value};

fn number(value: &Value) -> Option<i64> {
    if let Value::Int(number) = value { Some(*number) } else { None }
}

/// What the `index`th member gives to a gathering of different sizes in place: its part is where it receives.
pub(super) fn in_place(call: &Call, index: usize, size: &dyn Fn(&Value) -> Option<u64>) -> Option<u64> {
    let arg = |name: &str| call.function.index_of(name).map(|at| &call.args[at]);
    if arg("sendbuf") != Some(&Value::Name("MPI_IN_PLACE")) || arg("sendcounts").is_some() {
        return None;
    }
    let (Some(Value::List(counts)), Some(datatype)) = (arg("recvcounts"), arg("recvtype")) else {
        return None;
    };
    let count = u64::try_from(number(counts.get(index)?)?).ok()?;
    Some(count.saturating_mul(size(datatype)?))
}

/// What a call takes from MPI at most: its receive side, from so many members.
pub(super) fn received(call: &Call, members: u64, size: &dyn Fn(&Value) -> Option<u64>) -> u64 {
    let arg = |name: &str| call.function.index_of(name).map(|at| &call.args[at]);
    let count = |value: &Value| number(value).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    let bytes = |value: &Value| size(value).unwrap_or(0);
    let one_type = || arg("recvtype").or_else(|| arg("datatype")).map_or(0, bytes);
    let name = call.function.name.to_ascii_lowercase();
    match (arg("recvcounts"), arg("recvtypes"), arg("recvcount").or_else(|| arg("count"))) {
        (Some(Value::List(counts)), Some(Value::List(types)), _) => counts
            .iter()
            .zip(types)
            .fold(0, |sum, (n, t)| sum.saturating_add(count(n).saturating_mul(bytes(t)))),
        // Of a reduction that is scattered each member gets its own part: the mean of them.
        (Some(Value::List(counts)), None, _) if name.contains("reduce_scatter") => {
            let sum = counts.iter().fold(0u64, |sum, n| sum.saturating_add(count(n)));
            sum.saturating_mul(one_type()) / members.max(1)
        }
        (Some(Value::List(counts)), None, _) => {
            counts.iter().fold(0u64, |sum, n| sum.saturating_add(count(n))).saturating_mul(one_type())
        }
        (None, None, Some(one)) => {
            let blocks =
                ["gather", "alltoall"].iter().any(|kind| name.contains(kind)) && !name.contains("scatter");
            let times = if blocks { members } else { 1 };
            count(one).saturating_mul(one_type()).saturating_mul(times)
        }
        _ => 0,
    }
}
