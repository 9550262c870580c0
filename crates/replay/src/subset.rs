//! Some ranks of a run without the others: they have other numbers here.

use refrain_model::{Call, Kind, Value};
use refrain_views::closed::{Comms, comm_of};

/// The ranks that are made again, as one of them sees them.
#[derive(Debug)]
pub struct Subset<'a> {
    /// In the recorded run, in order.
    ranks: &'a [u32],
    comms: Comms,
}

impl<'a> Subset<'a> {
    pub fn new(ranks: &'a [u32], rank: u32, world: u32) -> Subset<'a> {
        Subset { ranks, comms: Comms::new(rank, world) }
    }

    /// Names the peers of a call as they are called here.
    pub fn renumber(&mut self, call: &mut Call) {
        self.comms.learn(call);
        let group = comm_of(call).and_then(|name| self.comms.group(name)).cloned();
        let Some(group) = group else { return };
        for (p, value) in call.function.params.iter().zip(&mut call.args) {
            if let (Kind::Peer(_), Value::Int(peer)) = (p.kind, value) {
                let before = group.iter().take(usize::try_from(*peer).unwrap_or(0));
                *peer = before.filter(|rank| self.ranks.contains(rank)).count() as i64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_counted_among_those_who_are_there() {
        let function = refrain_model::function("MPI_Send").unwrap();
        let mut args = vec![Value::Unset; function.params.len()];
        args[function.index_of("comm").unwrap()] = Value::Comm("world".into());
        let dest = function.index_of("dest").unwrap();
        let ranks = [1, 4, 6];
        let mut subset = Subset::new(&ranks, 1, 8);
        for (then, now) in [(1, 0), (4, 1), (6, 2)] {
            args[dest] = Value::Int(then);
            let mut call = Call { function, args: args.clone(), result: Value::Int(0), facts: Vec::new() };
            subset.renumber(&mut call);
            assert_eq!(call.args[dest], Value::Int(now));
        }
    }
}
