//! Communicators: a small id for the symbols, and a name that all members agree on without a message.
//!
//! Ids are pooled like those of other objects, so that a program which makes and frees a communicator in every step
//! repeats itself. The *name* is the parent's name and how many communicators were made from the parent before: every
//! member of the parent takes part in making each of them, also those that get `MPI_COMM_NULL`, so all count alike.
//! Where only the new members take part (`MPI_Comm_create_group`, inter-communicators) the members themselves are the
//! name.

use refrain_fold::{FastMap, xxh64};
use refrain_model::Scope;

use crate::host::{CommInfo, Topology};
use crate::objects::{Code, Pools, is_foreign};

#[derive(Debug, Clone)]
pub(crate) struct Comm {
    pub(crate) code: Code,
    pub(crate) info: CommInfo,
    /// Communicators made from this one so far.
    pub(crate) children: u64,
    /// Asked for only when a neighbourhood collective needs it.
    pub(crate) topology: Option<Topology>,
    /// As for other objects: a call is about to free it; a thread used it that did not make it.
    ending: bool,
    foreign: bool,
}

/// A communicator whose handle is valid only when a request completes (`MPI_Comm_idup`).
#[derive(Debug, Clone)]
pub struct Later {
    pub(crate) pointer: usize,
    pub(crate) comm: Comm,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Comms {
    known: FastMap<u64, Comm>,
    null: Option<(u64, u16)>,
    /// Freed by calls that have not returned to us yet, while their handles are others' already.
    leaving: Vec<Comm>,
    pools: Pools,
    /// How many were made of the same members: both groups, in the order of [`both_sides`].
    of_members: FastMap<[Vec<i32>; 2], u64>,
    processes: u64,
}

impl Comm {
    fn new(code: Code, info: CommInfo) -> Comm {
        Comm { code, info, children: 0, topology: None, ending: false, foreign: false }
    }
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

    pub(crate) fn code(&self, handle: u64) -> Option<Code> {
        self.known.get(&handle).map(|comm| comm.code)
    }

    /// For a thread that uses it.
    pub(crate) fn get_mut(&mut self, handle: u64, thread: u32) -> Option<&mut Comm> {
        let comm = self.known.get_mut(&handle)?;
        comm.foreign |= is_foreign(comm.code, thread);
        Some(comm)
    }

    pub(crate) fn predefine(&mut self, handle: u64, constant: u16, info: CommInfo) {
        self.known.insert(handle, Comm::new(Code::Constant(constant), info));
    }

    /// An id for a communicator that is about to be bound to a handle.
    pub(crate) fn make(&mut self, info: CommInfo, thread: u32) -> Comm {
        Comm::new(Code::Id(self.pools.take(thread)), info)
    }

    pub(crate) fn bind(&mut self, handle: u64, comm: Comm) {
        match self.known.insert(handle, comm) {
            // Its end will be seen in a moment, by another thread.
            Some(old) if old.ending => self.leaving.push(old),
            // Its end was not seen; the library has reused the handle.
            Some(old) => self.over(&old),
            None => {}
        }
    }

    fn over(&mut self, comm: &Comm) {
        if let Code::Id(id) = comm.code
            && !comm.foreign
        {
            self.pools.give_back(id);
        }
    }

    /// One that nobody saw being made is already gone when its end is seen: MPI cannot be asked about it any more, and
    /// would end the program for it.
    pub(crate) fn know(&mut self, handle: u64, thread: u32) {
        if !self.is_known(handle) && self.null(handle).is_none() {
            let comm = self.make(CommInfo::default(), thread);
            self.bind(handle, comm);
        }
    }

    /// A call is about to free it. The library may give its handle to another thread before that call returns.
    pub(crate) fn ending(&mut self, handle: u64, thread: u32) -> Option<Code> {
        let comm = self.get_mut(handle, thread)?;
        comm.ending = true;
        Some(comm.code)
    }

    /// That call failed.
    pub(crate) fn stays(&mut self, handle: u64, code: Code) {
        if let Some(comm) = self.known.get_mut(&handle).filter(|comm| comm.code == code) {
            comm.ending = false;
        }
    }

    pub(crate) fn free(&mut self, handle: u64, code: Code) {
        if !matches!(code, Code::Id(_)) {
            return;
        }
        let here = self.known.get(&handle).is_some_and(|comm| comm.code == code);
        let left = self.leaving.iter().position(|comm| comm.code == code);
        let comm = match left {
            _ if here => self.known.remove(&handle),
            Some(at) => Some(self.leaving.swap_remove(at)),
            None => None,
        };
        if let Some(comm) = comm {
            self.over(&comm);
        }
    }

    /// Which communicator it is that is being made, among those from the same parent or of the same members. Also counts
    /// one that this rank is no member of.
    pub(crate) fn order(&mut self, scope: Scope, parent: u64, info: Option<&CommInfo>) -> u64 {
        match scope {
            Scope::Parent(_) | Scope::ParentLater(..) => self.known.get_mut(&parent).map_or(0, |p| {
                p.children += 1;
                p.children - 1
            }),
            Scope::Members | Scope::Inter => {
                let Some(info) = info else { return 0 };
                let sides = both_sides(&info.world, &info.remote_world).map(<[i32]>::to_vec);
                let count = self.of_members.entry(sides).or_default();
                *count += 1;
                *count - 1
            }
            Scope::Process => {
                self.processes += 1;
                self.processes - 1
            }
        }
    }
}

/// The same on both sides of an inter-communicator.
fn both_sides<'a>(local: &'a [i32], remote: &'a [i32]) -> [&'a [i32]; 2] {
    if local <= remote { [local, remote] } else { [remote, local] }
}

/// What a communicator is called by its members, as ranks of the world: part of the format (FORMAT.md). Of 10,000 groups
/// two have one name with a chance of 3 in 10^12; their calls are told apart all the same, by their ids.
pub(crate) fn hash_members(local: &[i32], remote: &[i32]) -> u64 {
    let [first, second] = both_sides(local, remote);
    let length = first.len() as u32;
    let words = std::iter::once(length.to_le_bytes());
    let ranks = first.iter().chain(second).map(|rank| rank.to_le_bytes());
    let bytes: Vec<u8> = words.chain(ranks).flatten().collect();
    xxh64(&bytes, 0)
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
        assert_eq!(member.order(Scope::Parent(0), 1, Some(&made)), 0);
        assert_eq!(outsider.order(Scope::Parent(0), 1, None), 0);
        assert_eq!(member.order(Scope::Parent(0), 1, Some(&made)), 1);
        assert_eq!(outsider.order(Scope::Parent(0), 1, None), 1);
    }

    #[test]
    fn both_sides_of_an_inter_communicator_agree() {
        let mut left = Comms::default();
        let mut right = Comms::default();
        for _ in 0..2 {
            let l = left.order(Scope::Inter, 0, Some(&info(&[0, 2], &[1, 3])));
            let r = right.order(Scope::Inter, 0, Some(&info(&[1, 3], &[0, 2])));
            assert_eq!(l, r);
            assert_eq!(hash_members(&[0, 2], &[1, 3]), hash_members(&[1, 3], &[0, 2]));
        }
        let other = left.order(Scope::Inter, 0, Some(&info(&[0, 3], &[1, 2])));
        assert_eq!(other, 0);
    }

    #[test]
    fn ids_are_reused_names_are_not() {
        let mut c = Comms::default();
        c.predefine(1, 0, info(&[0], &[]));
        for step in 0..3 {
            let order = c.order(Scope::Parent(0), 1, Some(&info(&[0], &[])));
            assert_eq!(order, step);
            let comm = c.make(info(&[0], &[]), 0);
            assert_eq!(comm.code, Code::Id(0));
            c.bind(50, comm);
            c.ending(50, 0);
            c.free(50, Code::Id(0));
        }
    }

    #[test]
    fn a_handle_that_another_thread_gets_before_its_free_returns_is_another_communicator() {
        let mut c = Comms::default();
        let old = c.make(info(&[0], &[]), 0);
        c.bind(50, old.clone());
        assert_eq!(c.ending(50, 0), Some(old.code));
        let new = c.make(info(&[0, 1], &[]), 1);
        c.bind(50, new.clone());
        c.free(50, old.code);
        assert_eq!(c.get_mut(50, 1).map(|comm| comm.code), Some(new.code));
        assert_eq!(c.make(info(&[0], &[]), 0).code, old.code);
    }
}
