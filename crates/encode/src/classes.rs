//! Which numbers of a call tell what its time should be held against: how much data it is about, and with whom.

use refrain_fold::bundle::classes::Kind as Alike;
use refrain_model::{Class, Dir, Function, Kind};

use crate::layout::{Layout, Slot};
use crate::lossy::waits::Joined;

/// The parameters of a symbol's calls that make classes of them. Arrays do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Apart {
    /// How many elements: the first such number that is there. The parameter after it is their datatype.
    pub count: Option<usize>,
    /// The first peer. Roots do not count: programs that vary them go through all ranks.
    pub peer: Option<usize>,
}

impl Apart {
    pub fn of(layout: &Layout) -> Apart {
        let f = layout.function;
        if !moves_data(f) {
            return Apart::default();
        }
        let there = |&(i, _): &(usize, &Slot)| f.params[i].dir == Dir::In && f.params[i].len.is_empty();
        let slots = || layout.slots.iter().enumerate().filter(there);
        let is_count = |i: usize, slot: &Slot| {
            let typed = f.params.get(i + 1).is_some_and(|p| p.kind == Kind::Handle(Class::Datatype));
            typed && f.params[i].kind == Kind::Int && !matches!(slot, Slot::Absent)
        };
        let is_peer = |i: usize| matches!(f.params[i].kind, Kind::Peer(_));
        Apart {
            count: slots().find(|(i, slot)| is_count(*i, slot)).map(|(i, _)| i),
            peer: slots().find(|(i, _)| is_peer(*i)).map(|(i, _)| i),
        }
    }
}

/// Messages, collective calls, files and windows; not what asks for the place of a rank, or makes a datatype.
fn moves_data(f: &Function) -> bool {
    let makes_type = f.params.iter().any(|p| p.dir == Dir::Out && p.kind == Kind::Handle(Class::Datatype));
    let about_data =
        |kind| matches!(kind, Kind::Tag | Kind::Handle(Class::Datatype) | Kind::Handle(Class::Win));
    !makes_type && f.params.iter().any(|p| p.dir == Dir::In && about_data(p.kind))
}

/// In which lanes these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassLanes {
    pub count: Option<u16>,
    pub peer: Option<u16>,
}

impl ClassLanes {
    /// `None` where all calls of a symbol are alike, and for polls and waits, of which several may become one.
    pub fn of(layout: &Layout) -> Option<ClassLanes> {
        if layout.polls.is_some() || layout.inline.is_some() || Joined::of(layout).is_some() {
            return None;
        }
        let lane = |parameter: Option<usize>| match layout.slots.get(parameter?)? {
            Slot::Number { lane } => Some(*lane),
            _ => None,
        };
        let apart = Apart::of(layout);
        let lanes = ClassLanes { count: lane(apart.count), peer: lane(apart.peer) };
        (lanes != ClassLanes { count: None, peer: None }).then_some(lanes)
    }

    /// The class of a call with these numbers.
    #[inline]
    pub fn kind(&self, values: &[(u16, i64)]) -> Alike {
        let of = |lane: Option<u16>| {
            let value = lane.and_then(|lane| values.iter().find(|value| value.0 == lane));
            value.map_or(0, |value| value.1)
        };
        Alike::new(of(self.count), of(self.peer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_model::functions;

    fn parameters(name: &str) -> String {
        let f = refrain_model::function(name).unwrap();
        // As if all were there.
        let layout = Layout {
            function: f,
            outcome: crate::Outcome::Success,
            slots: vec![Slot::Number { lane: 0 }; f.params.len()],
            spans: Vec::new(),
            shape: crate::shape::Shape::of(f),
            datatype_facts: Vec::new(),
            ignored: false,
            result: None,
            inline: None,
            polls: None,
            lanes: 1,
        };
        let apart = Apart::of(&layout);
        let name = |parameter: Option<usize>| parameter.map_or("-", |i| f.params[i].name);
        format!("{} {}", name(apart.count), name(apart.peer))
    }

    #[test]
    fn what_makes_classes() {
        for (function, expected) in [
            ("MPI_Send", "count dest"),
            ("MPI_Irecv_c", "count source"),
            ("MPI_Sendrecv", "sendcount dest"),
            ("MPI_Psend_init", "count dest"),
            ("MPI_Probe", "- source"),
            ("MPI_Mrecv", "count -"),
            ("MPI_Bcast", "count -"),
            ("MPI_Allreduce", "count -"),
            ("MPI_Gatherv", "sendcount -"),
            ("MPI_Scatterv", "recvcount -"),
            ("MPI_Alltoallv", "- -"),
            ("MPI_Reduce_scatter_block", "recvcount -"),
            ("MPI_Put", "origin_count target_rank"),
            ("MPI_Win_lock", "- rank"),
            ("MPI_File_write_at", "count -"),
            ("MPI_Barrier", "- -"),
            ("MPI_Comm_rank", "- -"),
            ("MPI_Cart_coords", "- -"),
            ("MPI_Waitall", "- -"),
            ("MPI_Type_contiguous", "- -"),
            ("MPI_Type_vector", "- -"),
            ("MPI_Type_size", "- -"),
        ] {
            assert_eq!(parameters(function), expected, "{function}");
        }
        assert!(functions().iter().filter(|f| parameters(f.name) != "- -").count() > 100);
    }

    #[test]
    fn kinds_follow_from_values() {
        let lanes = ClassLanes { count: Some(2), peer: Some(4) };
        let kind = |values: &[(u16, i64)]| (lanes.kind(values).bits, lanes.kind(values).value);
        assert_eq!(kind(&[(0, 9), (1, 9), (2, 5), (3, 9), (4, -1)]), (3, -1));
        assert_eq!(kind(&[(0, 9)]), (0, 0));
    }
}
