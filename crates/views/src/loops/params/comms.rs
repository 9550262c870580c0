//! What the communicators of a tree are called, where that can be told without reading the calls.

use refrain_encode::Slot;
use refrain_fold::bundle::{Bundle, Lane};
use refrain_model::{Class, Value};

use crate::loops::tree::Tree;

/// A communicator made from one that was made from one ... of the world.
const DEEPEST: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comm {
    /// As `dump` calls it: `world.0`.
    pub name: String,
    /// Its ranks are those of the world, in that order.
    pub like_world: bool,
}

/// The call that makes a communicator.
#[derive(Debug)]
struct Made {
    from: Slot,
    /// The number of it among those made from the same one.
    order: i64,
    same_ranks: bool,
}

/// Ids from the first to the second, and how they are made, if that is one way.
#[derive(Debug)]
pub struct Comms(Vec<(u32, u32, Option<Made>)>);

impl Comms {
    pub fn of(bundle: &Bundle, tree: &Tree) -> Comms {
        let mut comms = Vec::new();
        for (&symbol, layout) in tree.functions.iter().filter(|(_, layout)| layout.inline.is_none()) {
            for slot in &layout.slots {
                let Slot::NewComm(new) = slot else { continue };
                // Where it is not known which ones a call makes, it may be any.
                let codes = numbers(bundle, tree, symbol, new.size_lanes().0);
                let (low, high) = codes.map_or((0, u32::MAX), |(low, high)| (id(low), id(high)));
                let made = new.parent().and_then(|(parent, order)| {
                    let (order, last) = numbers(bundle, tree, symbol, order)?;
                    let from = layout.slots.get(parent)?.clone();
                    (order == last).then_some(Made { from, order, same_ranks: new.is_like_parent() })
                });
                comms.push((low, high, made.filter(|_| low == high)));
            }
        }
        Comms(comms)
    }

    /// What a call has as its communicator.
    pub fn of_slot(&self, slot: &Slot) -> Option<Comm> {
        self.named(slot, DEEPEST)
    }

    fn named(&self, slot: &Slot, deepest: usize) -> Option<Comm> {
        let predefined = |name: &str, like_world| Some(Comm { name: name.to_owned(), like_world });
        match slot {
            Slot::Fixed(Value::Name("MPI_COMM_WORLD")) => predefined("world", true),
            Slot::Fixed(Value::Name("MPI_COMM_SELF")) => predefined("self", false),
            Slot::Object(Class::Comm, id) => {
                let mut makers = self.0.iter().filter(|(low, high, _)| (low..=high).contains(&id));
                let (Some((.., Some(made))), None) = (makers.next(), makers.next()) else { return None };
                let from = self.named(&made.from, deepest.checked_sub(1)?)?;
                let name = format!("{}.{}", from.name, made.order);
                Some(Comm { name, like_world: from.like_world && made.same_ranks })
            }
            _ => None,
        }
    }
}

/// Of a communicator's code: twice the id, or an odd number for one that was there before.
fn id(code: i64) -> u32 {
    u32::try_from(code.max(0) / 2).unwrap_or(u32::MAX)
}

/// The least and the largest number in a lane of a symbol, if all ranks have the same there.
fn numbers(bundle: &Bundle, tree: &Tree, symbol: u32, lane: u16) -> Option<(i64, i64)> {
    let lane = tree.lanes(symbol).get(usize::from(lane))?;
    if matches!(lane, Lane::Varied(_)) && tree.ranks.len() > 1 {
        return None;
    }
    let nodes = || tree.nodes_of(symbol).iter().copied();
    let rank =
        nodes().flat_map(|at| &tree.nodes[at].turns).find(|turns| turns.runs > 0)?.ranks.iter().next()?;
    let calls = nodes().map(|at| tree.runs_on(at, rank)).fold(0, u64::saturating_add);
    bundle.stream_of(lane, rank)?.min_max(calls)
}
