//! Counts of collectives, on which all members have to agree: each draws its own, and one counts.
//!
//! Where all members name the same amount, that of the first member counts. Where each sends its own, the sender's does. Amounts
//! are those in bytes, since members may have other datatypes; who cannot tell an amount in whole elements of its own moves
//! bytes.

use refrain_model::{Call, Function, Value};

use super::steps::{Steps, argument};

/// Whose counts have to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    First,
    All,
}

/// All members name the same amount.
const SAME: [&str; 13] = [
    "bcast",
    "reduce",
    "allreduce",
    "scan",
    "exscan",
    "reduce_scatter_block",
    "reduce_scatter",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "neighbor_allgather",
    "neighbor_alltoall",
];
/// Each sends an amount of its own.
const OWN: [&str; 5] = ["gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw"];

/// `MPI_Iallreduce_c` and `MPI_Allreduce_init` are an `allreduce`; empty for functions without counts.
fn stem(function: &Function) -> &'static str {
    let name = function.name.strip_prefix("MPI_").unwrap_or(function.name).to_ascii_lowercase();
    let name = name.strip_suffix("_c").unwrap_or(&name);
    let name = name.strip_suffix("_init").unwrap_or(name);
    let known = |name: &str| SAME.iter().chain(&OWN).copied().find(|known| *known == name);
    known(name).or_else(|| known(name.strip_prefix('i')?)).unwrap_or("")
}

/// `None` for functions without counts that members have to agree on.
pub fn needs(function: &Function) -> Option<Needs> {
    match stem(function) {
        "" => None,
        own if OWN.contains(&own) => Some(Needs::All),
        _ => Some(Needs::First),
    }
}

/// Counts on one side of a call, and what one element of each takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Side {
    counts: Vec<i64>,
    sizes: Vec<Option<u64>>,
}

impl Side {
    fn of(call: &Call, steps: &Steps, counts: &[&str], types: &[&str]) -> Side {
        let many = |value: Option<&Value>| match value {
            Some(Value::List(list)) => list.clone(),
            Some(Value::Unset) | None => Vec::new(),
            Some(one) => vec![one.clone()],
        };
        let number = |value: &Value| match value {
            Value::Int(count) => *count,
            _ => 0,
        };
        let counts: Vec<i64> = many(argument(call, counts)).iter().map(number).collect();
        let sizes = many(argument(call, types)).iter().map(|datatype| steps.size(datatype)).collect();
        Side { counts, sizes }
    }

    /// Of the member with this number, or of all if all have the same.
    fn amount(&self, at: usize) -> Option<Amount> {
        let of = |length: usize| if length == 1 { 0 } else { at };
        let count = *self.counts.get(of(self.counts.len()))?;
        let size = self.sizes.get(of(self.sizes.len())).copied().flatten();
        Some(Amount { count, size })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Amount {
    count: i64,
    size: Option<u64>,
}

/// What a member says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    sends: Side,
    receives: Side,
}

impl Said {
    pub fn of(call: &Call, steps: &Steps) -> Said {
        Said {
            sends: Side::of(
                call,
                steps,
                &["sendcounts", "sendcount", "count"],
                &["sendtypes", "sendtype", "datatype"],
            ),
            receives: Side::of(
                call,
                steps,
                &["recvcounts", "recvcount"],
                &["recvtypes", "recvtype", "datatype"],
            ),
        }
    }
}

/// A collective of a rank that is number `me` of its communicator.
pub struct Settling<'a> {
    pub call: &'a mut Call,
    pub steps: &'a Steps,
    pub me: usize,
}

impl Settling<'_> {
    /// Puts in what the members agree on. `said` is what each says, or only the first.
    pub fn settle(&mut self, said: &[Said]) {
        let Some(first) = said.first() else { return };
        let root = match argument(self.call, &["root"]) {
            Some(Value::Int(root)) => usize::try_from(*root).unwrap_or(0),
            _ => 0,
        };
        let me = self.me;
        match stem(self.call.function) {
            "bcast" => self.put("count", "datatype", None, first.sends.amount(0)),
            "reduce" | "allreduce" | "scan" | "exscan" => self.put_number("count", &first.sends.counts),
            "reduce_scatter_block" => self.put_number("recvcount", &first.receives.counts),
            "reduce_scatter" => self.put_number("recvcounts", &first.receives.counts),
            "scatter" => {
                let amount = first.receives.amount(0).or(first.sends.amount(0));
                self.put("sendcount", "sendtype", None, amount);
                self.put("recvcount", "recvtype", None, amount);
            }
            "gather" | "allgather" | "alltoall" | "neighbor_allgather" | "neighbor_alltoall" => {
                let amount = first.sends.amount(0).or(first.receives.amount(0));
                self.put("sendcount", "sendtype", None, amount);
                self.put("recvcount", "recvtype", None, amount);
            }
            "gatherv" | "allgatherv" => {
                for (from, one) in said.iter().enumerate() {
                    // One whose block lies in place says there how much that is.
                    let amount = one.sends.amount(0).or(one.receives.amount(from));
                    self.put("recvcounts", "recvtype", Some(from), amount);
                }
            }
            "scatterv" => {
                let amount = said.get(root).and_then(|root| root.sends.amount(me));
                self.put("recvcount", "recvtype", None, amount);
            }
            "alltoallv" => self.settle_all_to_all("recvtype", said),
            "alltoallw" => self.settle_all_to_all("recvtypes", said),
            _ => {}
        }
    }

    fn settle_all_to_all(&mut self, types: &str, said: &[Said]) {
        let me = self.me;
        for (from, one) in said.iter().enumerate() {
            let amount = match one.sends.counts.is_empty() {
                false => one.sends.amount(me),
                // In place both ends have one count: that of the lower one.
                true => said.get(from.min(me)).and_then(|low| low.receives.amount(from.max(me))),
            };
            self.put("recvcounts", types, Some(from), amount);
        }
    }

    /// The same number everywhere.
    fn put_number(&mut self, name: &str, counts: &[i64]) {
        let Some(at) = self.call.function.index_of(name) else { return };
        match &mut self.call.args[at] {
            Value::Int(count) => *count = counts.first().copied().unwrap_or(*count),
            Value::List(list) if list.len() == counts.len() => {
                *list = counts.iter().map(|count| Value::Int(*count)).collect();
            }
            _ => {}
        }
    }

    /// An amount of someone else's, in elements of one's own; `at`: which of several counts.
    fn put(&mut self, counts: &str, types: &str, at: Option<usize>, amount: Option<Amount>) {
        let Some(Amount { count, size }) = amount else { return };
        let function = self.call.function;
        let (Some(counts), Some(types)) = (function.index_of(counts), function.index_of(types)) else {
            return;
        };
        let own = match (&self.call.args[types], at) {
            (Value::List(types), Some(at)) => types.get(at).and_then(|datatype| self.steps.size(datatype)),
            (one, _) => self.steps.size(one),
        };
        let bytes = size.and_then(|size| count.checked_mul(i64::try_from(size).ok()?));
        let own = own.and_then(|own| i64::try_from(own).ok());
        let (count, as_bytes) = match (bytes, own) {
            (Some(0), _) => (0, false),
            (Some(bytes), Some(own)) if own > 0 && bytes % own == 0 => (bytes / own, false),
            (Some(bytes), Some(_)) => (bytes, true),
            // The size of one of the two is not known.
            _ => (count, false),
        };
        if as_bytes {
            self.as_bytes(counts, types, at, own.unwrap_or(1));
        }
        match (&mut self.call.args[counts], at) {
            (Value::List(list), Some(at)) => {
                if let Some(one) = list.get_mut(at) {
                    *one = Value::Int(count);
                }
            }
            (one @ Value::Int(_), None) => *one = Value::Int(count),
            _ => {}
        }
    }

    /// Moves bytes from here on, with counts that are as long as they were.
    fn as_bytes(&mut self, counts: usize, types: usize, at: Option<usize>, size: i64) {
        const BYTE: Value = Value::Name("MPI_BYTE");
        if let (Value::List(types), Some(at)) = (&mut self.call.args[types], at) {
            if let Some(one) = types.get_mut(at) {
                *one = BYTE;
            }
            return;
        }
        self.call.args[types] = BYTE;
        if let Value::List(list) = &mut self.call.args[counts] {
            for one in list {
                if let Value::Int(count) = one {
                    *count = count.saturating_mul(size);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::Clock;
    use super::*;

    fn steps() -> Steps {
        Steps::new(Clock::even(0), 0, 3)
    }

    fn call(name: &str, given: &[(&str, Value)]) -> Call {
        let function = refrain_model::function(name).unwrap();
        let mut args = vec![Value::Unset; function.params.len()];
        for (parameter, value) in given {
            args[function.index_of(parameter).unwrap()] = value.clone();
        }
        Call { function, args, result: Value::Int(0), facts: Vec::new() }
    }

    fn list(numbers: &[i64]) -> Value {
        Value::List(numbers.iter().map(|number| Value::Int(*number)).collect())
    }

    #[test]
    fn the_first_says_how_much_is_told_to_all() {
        let double = Value::Name("MPI_DOUBLE");
        let mut own = call("MPI_Ibcast", &[("count", Value::Int(3)), ("datatype", double.clone())]);
        let first = call("MPI_Ibcast", &[("count", Value::Int(64)), ("datatype", Value::Name("MPI_CHAR"))]);
        let steps = steps();
        let said = |call: &Call| Said::of(call, &steps);
        Settling { call: &mut own, steps: &steps, me: 1 }.settle(&[said(&first)]);
        assert_eq!(argument(&own, &["count"]), Some(&Value::Int(8)));
        // That is no whole number of mine.
        let first = call("MPI_Ibcast", &[("count", Value::Int(63)), ("datatype", Value::Name("MPI_CHAR"))]);
        Settling { call: &mut own, steps: &steps, me: 1 }.settle(&[said(&first)]);
        assert_eq!(argument(&own, &["count"]), Some(&Value::Int(63)));
        assert_eq!(argument(&own, &["datatype"]), Some(&Value::Name("MPI_BYTE")));
    }

    #[test]
    fn what_one_sends_the_other_receives() {
        let of = |sends: &[i64], receives: &[i64]| {
            let (int, long) = (Value::Name("MPI_INT"), Value::Name("MPI_INT64_T"));
            let sends = [("sendcounts", list(sends)), ("sendtype", long)];
            call(
                "MPI_Alltoallv",
                &[&sends[..], &[("recvcounts", list(receives)), ("recvtype", int)]].concat(),
            )
        };
        let all = [of(&[1, 2, 3], &[0, 0, 0]), of(&[4, 5, 6], &[9, 9, 9]), of(&[7, 8, 9], &[1, 1, 1])];
        let steps = steps();
        let said: Vec<Said> = all.iter().map(|call| Said::of(call, &steps)).collect();
        let mut own = all[1].clone();
        Settling { call: &mut own, steps: &steps, me: 1 }.settle(&said);
        assert_eq!(argument(&own, &["recvcounts"]), Some(&list(&[4, 10, 16])));
        assert_eq!(argument(&own, &["sendcounts"]), Some(&list(&[4, 5, 6])));
    }
}
