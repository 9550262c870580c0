//! FLASH's Sedov, Cellular and StirTurb: blocks in the order of a Morton curve, an equal share of it for each rank.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::{broadcast, into, mixed, out, receive, send, start_receive, start_send, sum_all};
use crate::rank::Rank;

/// Numbers in a face of a block, and in a block.
const FACE: u32 = 64;
const BLOCK: u32 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    size: u32,
    periodic: bool,
    adaptive: bool,
}

/// As it is between two refinements.
struct Mesh {
    kind: Kind,
    bits: [u32; 3],
    /// How many leaves come before each block, and all of them.
    before: Vec<u32>,
}

impl Mesh {
    /// Every rank has the same mesh: it is made once.
    fn of(kind: Kind, epoch: u32) -> Rc<Mesh> {
        thread_local! {
            static KNOWN: RefCell<HashMap<(Kind, u32), Rc<Mesh>>> = RefCell::default();
        }
        KNOWN.with_borrow_mut(|known| {
            let make = || Rc::new(Mesh::new(kind, epoch));
            Rc::clone(known.entry((kind, epoch)).or_insert_with(make))
        })
    }

    fn new(kind: Kind, epoch: u32) -> Mesh {
        let bits = 2 + kind.size.next_power_of_two().ilog2();
        let mut mesh = Mesh { kind, bits: [0, 1, 2].map(|axis| (bits + 2 - axis) / 3), before: vec![0] };
        let mut leaves = 0;
        for block in 0..1 << bits {
            leaves += if mesh.is_refined(block, epoch) { 8 } else { 1 };
            mesh.before.push(leaves);
        }
        mesh
    }

    fn interleaved(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        let places = (0..self.bits[0]).flat_map(|place| [0, 1, 2].map(|axis| (place, axis)));
        places.filter(move |&(place, axis)| place < self.bits[axis])
    }

    fn coordinates(&self, block: u32) -> [u32; 3] {
        let mut at = [0; 3];
        for (bit, (place, axis)) in self.interleaved().enumerate() {
            at[axis] |= (block >> bit & 1) << place;
        }
        at
    }

    fn block_at(&self, at: [u32; 3]) -> u32 {
        self.interleaved()
            .enumerate()
            .fold(0, |block, (bit, (place, axis))| block | (at[axis] >> place & 1) << bit)
    }

    fn is_refined(&self, block: u32, epoch: u32) -> bool {
        let at = self.coordinates(block);
        let dent = (mixed(&[at[1], at[2], epoch]) % 2) as u32;
        self.kind.adaptive && at[0] == (epoch + dent) % (1 << self.bits[0])
    }

    fn leaves(&self) -> u64 {
        self.before.last().copied().unwrap_or(0).into()
    }

    fn is_cut(&self, block: u32) -> bool {
        self.before[block as usize + 1] - self.before[block as usize] == 8
    }

    fn owner(&self, leaf: u32) -> u32 {
        (u64::from(leaf) * u64::from(self.kind.size) / self.leaves()) as u32
    }

    fn first_leaf(&self, of: u32) -> u32 {
        (u64::from(of) * self.leaves()).div_ceil(self.kind.size.into()) as u32
    }

    fn block_of(&self, leaf: u32) -> u32 {
        self.before.partition_point(|before| *before <= leaf) as u32 - 1
    }

    /// The leaves on the other side of one face of a leaf.
    fn across(&self, leaf: u32, axis: usize, up: bool) -> Vec<u32> {
        let block = self.block_of(leaf);
        let child = leaf - self.before[block as usize];
        let (is_cut, mirrored) = (self.is_cut(block), child ^ 1 << axis);
        if is_cut && (child >> axis & 1 == 1) != up {
            return vec![self.before[block as usize] + mirrored];
        }
        let (mut at, extent) = (self.coordinates(block), 1 << self.bits[axis]);
        let to = at[axis] as i32 + if up { 1 } else { -1 };
        if !self.kind.periodic && !(0..extent).contains(&to) {
            return Vec::new();
        }
        at[axis] = to.rem_euclid(extent) as u32;
        let next = self.block_at(at);
        let first = self.before[next as usize];
        match (self.is_cut(next), is_cut) {
            (false, _) => vec![first],
            (true, true) => vec![first + mirrored],
            (true, false) => {
                (0..8).filter(|part| (part >> axis & 1 == 1) != up).map(|part| first + part).collect()
            }
        }
    }

    /// The ranks beside one, and how many faces each shares with it.
    fn peers(&self, rank: u32) -> BTreeMap<u32, u32> {
        let mut faces = BTreeMap::new();
        for leaf in self.first_leaf(rank)..self.first_leaf(rank + 1) {
            for side in 0..6 {
                for other in self.across(leaf, side / 2, side % 2 == 1) {
                    *faces.entry(self.owner(other)).or_default() += 1;
                }
            }
        }
        faces.remove(&rank);
        faces
    }

    /// Who had the data of a leaf of the next mesh.
    fn old_owner(&self, block: u32, child: u32) -> u32 {
        self.owner(self.before[block as usize] + if self.is_cut(block) { child } else { 0 })
    }
}

fn fill_guards(r: &mut Rank<'_>, peers: &BTreeMap<u32, u32>) {
    peers.iter().for_each(|(&peer, faces)| start_receive(r, FACE * faces, peer, 1));
    peers.iter().for_each(|(&peer, faces)| start_send(r, FACE * faces, peer, 1));
    r.waitall_told();
}

fn move_blocks(r: &mut Rank<'_>, old: &Mesh, new: &Mesh) {
    let rank = r.rank;
    let first = new.first_leaf(rank);
    for leaf in first..new.first_leaf(rank + 1) {
        let block = new.block_of(leaf);
        let from = old.old_owner(block, leaf - new.before[block as usize]);
        if from != rank {
            start_receive(r, BLOCK, from, leaf - first);
        }
    }
    let (begin, end) = (old.block_of(old.first_leaf(rank)), old.block_of(old.first_leaf(rank + 1) - 1));
    for block in begin..=end {
        let leaves = new.before[block as usize]..new.before[block as usize + 1];
        for (child, leaf) in leaves.enumerate() {
            let to = new.owner(leaf);
            if to != rank && old.old_owner(block, child as u32) == rank {
                start_send(r, BLOCK, to, leaf - new.first_leaf(to));
            }
        }
    }
    r.waitall_told();
}

pub(super) fn stirturb(r: &mut Rank<'_>, steps: u32) {
    let peers = Mesh::of(Kind { size: r.size, periodic: true, adaptive: false }, 0).peers(r.rank);
    broadcast(r, 30);
    for _ in 0..steps {
        sum_all(r, 4);
        (0..3).for_each(|_| fill_guards(r, &peers));
        sum_all(r, 2);
    }
}

pub(super) fn sedov(r: &mut Rank<'_>, steps: u32) {
    const SAME_SOURCE: u32 = 20;
    let peers = Mesh::of(Kind { size: r.size, periodic: false, adaptive: false }, 0).peers(r.rank);
    broadcast(r, 30);
    for step in 0..steps {
        (0..3).for_each(|_| fill_guards(r, &peers));
        sum_all(r, 2);
        let source = (mixed(&[step / SAME_SOURCE, 0, 7]) % u64::from(r.size)) as u32;
        if source != 0 && r.rank == source {
            send(r, 4, 0, 9);
        }
        if source != 0 && r.rank == 0 {
            receive(r, 4, source, 9);
        }
    }
}

pub(super) fn cellular(r: &mut Rank<'_>, steps: u32) {
    const REFINED_EVERY: u32 = 2;
    let (world, kind) = (r.world(), Kind { size: r.size, periodic: false, adaptive: true });
    let mut mesh = Mesh::of(kind, 0);
    let mut peers = mesh.peers(r.rank);
    broadcast(r, 30);
    for step in 0..steps {
        (0..3).for_each(|_| fill_guards(r, &peers));
        sum_all(r, 2);
        if step % REFINED_EVERY != REFINED_EVERY - 1 {
            continue;
        }
        let next = Mesh::of(kind, (step + 1) / REFINED_EVERY);
        sum_all(r, 1);
        r.allgather(out(1), into(1), world);
        move_blocks(r, &mesh, &next);
        mesh = next;
        r.alltoall(out(1), into(1), world);
        peers = mesh.peers(r.rank);
    }
}
