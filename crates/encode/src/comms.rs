//! Communicators: a small id for the symbols, and a name that all members agree on without a message.
//!
//! Ids are pooled like those of other objects, so that a program which makes and frees a communicator in every step
//! repeats itself. The *name* is the parent's name and how many communicators were made from the parent before: every
//! member of the parent takes part in making each of them, also those that get `MPI_COMM_NULL`, so all count alike.
//! Where only the new members take part (`MPI_Comm_create_group`, inter-communicators) the members themselves are the
//! name.

use refrain_model::Scope;

use crate::hash::{FastMap, mix};
use crate::host::{CommInfo, Topology};
use crate::objects::{Code, Pool};

#[derive(Debug, Clone)]
pub(crate) struct Comm {
    pub(crate) code: Code,
    pub(crate) info: CommInfo,
    /// Communicators made from this one so far.
    pub(crate) children: u64,
    /// Asked for only when a neighbourhood collective needs it.
    pub(crate) topology: Option<Topology>,
}

/// A communicator whose handle is valid only when a request completes (`MPI_Comm_idup`).
#[derive(Debug, Clone)]
pub(crate) struct Later {
    pub(crate) pointer: usize,
    pub(crate) comm: Comm,
}

/// What a new communicator is called by, beside its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Naming {
    /// Position among those made from the same parent, or of the same members.
    pub(crate) order: u64,
    /// Stands for the members where there is no common parent.
    pub(crate) members: u32,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Comms {
    known: FastMap<u64, Comm>,
    null: Option<(u64, u16)>,
    pool: Pool,
    /// How many were made of the same members, by their hash.
    of_members: FastMap<u32, u64>,
    processes: u64,
}

impl Comms {
    pub(crate) fn set_null(&mut self, handle: u64, constant: u16) {
        self.null = Some((handle, constant));
    }

    pub(crate) fn null(&self, handle: u64) -> Option<Code> {
        self.null.filter(|&(null, _)| null == handle).map(|(_, constant)| Code::Constant(constant))
    }

    pub(crate) fn is_known(&self, handle: u64) -> bool {
        self.known.contains_key(&handle)
    }

    pub(crate) fn get_mut(&mut self, handle: u64) -> Option<&mut Comm> {
        self.known.get_mut(&handle)
    }

    pub(crate) fn predefine(&mut self, handle: u64, constant: u16, info: CommInfo) {
        let comm = Comm { code: Code::Constant(constant), info, children: 0, topology: None };
        self.known.insert(handle, comm);
    }

    /// An id for a communicator that is about to be bound to a handle.
    pub(crate) fn make(&mut self, info: CommInfo) -> Comm {
        Comm { code: Code::Id(self.pool.take()), info, children: 0, topology: None }
    }

    pub(crate) fn bind(&mut self, handle: u64, comm: Comm) {
        if let Some(old) = self.known.insert(handle, comm)
            && let Code::Id(id) = old.code
        {
            // Its free was not seen; the library has reused the handle.
            self.pool.give_back(id);
        }
    }

    /// One that nobody saw being made is already gone when its end is seen: MPI cannot be asked about it any more, and
    /// would end the program for it.
    pub(crate) fn know(&mut self, handle: u64) {
        if !self.is_known(handle) && self.null(handle).is_none() {
            let comm = self.make(CommInfo::default());
            self.bind(handle, comm);
        }
    }

    pub(crate) fn free(&mut self, handle: u64) {
        let Some(comm) = self.known.get(&handle) else { return };
        let Code::Id(id) = comm.code else { return };
        self.known.remove(&handle);
        self.pool.give_back(id);
    }

    /// Names a communicator that is being made. Also counts one that this rank is no member of.
    pub(crate) fn name(&mut self, scope: Scope, parent: u64, info: Option<&CommInfo>) -> Naming {
        match scope {
            Scope::Parent(_) | Scope::ParentLater(..) => {
                let order = self.known.get_mut(&parent).map_or(0, |p| {
                    p.children += 1;
                    p.children - 1
                });
                Naming { order, members: 0 }
            }
            Scope::Members | Scope::Inter => {
                let Some(info) = info else { return Naming { order: 0, members: 0 } };
                let members = hash_members(&info.world, &info.remote_world);
                let count = self.of_members.entry(members).or_default();
                *count += 1;
                Naming { order: *count - 1, members }
            }
            Scope::Process => {
                self.processes += 1;
                Naming { order: self.processes - 1, members: 0 }
            }
        }
    }
}

/// The same on both sides of an inter-communicator.
fn hash_members(local: &[i32], remote: &[i32]) -> u32 {
    let (first, second) = if local <= remote { (local, remote) } else { (remote, local) };
    let mut state = first.len() as u64;
    for &rank in first.iter().chain(second) {
        state = mix(state, rank as u64);
    }
    (state >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(world: &[i32], remote: &[i32]) -> CommInfo {
        CommInfo { world: world.to_vec(), remote_world: remote.to_vec(), ..CommInfo::default() }
    }

    #[test]
    fn those_left_out_count_too() {
        let mut member = Comms::default();
        let mut outsider = Comms::default();
        for c in [&mut member, &mut outsider] {
            c.predefine(1, 0, info(&[0, 1], &[]));
        }
        let made = info(&[0], &[]);
        assert_eq!(member.name(Scope::Parent(0), 1, Some(&made)).order, 0);
        assert_eq!(outsider.name(Scope::Parent(0), 1, None).order, 0);
        assert_eq!(member.name(Scope::Parent(0), 1, Some(&made)).order, 1);
        assert_eq!(outsider.name(Scope::Parent(0), 1, None).order, 1);
    }

    #[test]
    fn both_sides_of_an_inter_communicator_agree() {
        let mut left = Comms::default();
        let mut right = Comms::default();
        for _ in 0..2 {
            let l = left.name(Scope::Inter, 0, Some(&info(&[0, 2], &[1, 3])));
            let r = right.name(Scope::Inter, 0, Some(&info(&[1, 3], &[0, 2])));
            assert_eq!(l, r);
        }
        let other = left.name(Scope::Inter, 0, Some(&info(&[0, 3], &[1, 2])));
        assert_eq!(other.order, 0);
    }

    #[test]
    fn ids_are_reused_names_are_not() {
        let mut c = Comms::default();
        c.predefine(1, 0, info(&[0], &[]));
        for step in 0..3 {
            let naming = c.name(Scope::Parent(0), 1, Some(&info(&[0], &[])));
            assert_eq!(naming.order, step);
            let comm = c.make(info(&[0], &[]));
            assert_eq!(comm.code, Code::Id(0));
            c.bind(50, comm);
            c.free(50);
        }
    }
}
