//! Where each digram stands: an open-addressing table of node numbers, with the keys left in the nodes.

/// Slots hold `hash << 32 | node + 1`, zero when free, so that a probe touches a node only when the hash agrees and
/// removal can move entries back without asking the nodes at all.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    slots: Vec<u64>,
    used: usize,
}

impl Index {
    /// The node whose digram has this hash and satisfies `same`.
    pub fn find(&self, hash: u32, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if (slot >> 32) as u32 == hash && same(node(slot)) {
                return Some(node(slot));
            }
            at = self.after(at);
        }
    }

    /// Bytes held beyond the struct itself.
    pub fn memory(&self) -> usize {
        self.slots.capacity() * 8
    }

    /// The caller has made sure with `find` that no equal digram is in the table.
    pub fn insert(&mut self, hash: u32, node: u32) {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        self.place(u64::from(hash) << 32 | (u64::from(node) + 1));
        self.used += 1;
    }

    /// Removes the entry of exactly this node, if there is one.
    pub fn remove(&mut self, hash: u32, wanted: u32) {
        if self.slots.is_empty() {
            return;
        }
        let mut hole = self.home(hash);
        loop {
            match self.slots[hole] {
                0 => return,
                slot if (slot >> 32) as u32 == hash && node(slot) == wanted => break,
                _ => hole = self.after(hole),
            }
        }
        self.used -= 1;
        // Entries behind the hole move up unless that would put them before their home.
        let mut at = hole;
        loop {
            at = self.after(at);
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let home = self.home((slot >> 32) as u32);
            let mask = self.slots.len() - 1;
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = 0;
    }

    fn place(&mut self, slot: u64) {
        let mut at = self.home((slot >> 32) as u32);
        while self.slots[at] != 0 {
            at = self.after(at);
        }
        self.slots[at] = slot;
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(16);
        let old = std::mem::replace(&mut self.slots, vec![0; size]);
        for slot in old.into_iter().filter(|&slot| slot != 0) {
            self.place(slot);
        }
    }

    fn home(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }
}

fn node(slot: u64) -> u32 {
    slot as u32 - 1
}

/// A hash of a digram's two symbols and counts. The four products do not wait for each other.
pub(super) fn digram_hash([a, n, b, m]: [u64; 4]) -> u32 {
    let left = a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ n.wrapping_mul(0xc2b2_ae3d_27d4_eb4f).rotate_left(31);
    let right = b.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ m.wrapping_mul(0xa076_1d64_78bd_642f).rotate_left(31);
    let hash = (left ^ right.rotate_left(23)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    (hash >> 32) as u32 ^ hash as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use std::collections::HashMap;

    #[test]
    fn behaves_like_a_map() {
        let mut random = Rng::with_seed(7);
        let mut index = Index::default();
        let mut model: HashMap<u32, u32> = HashMap::new();
        for _ in 0..20_000 {
            // Few distinct hashes, so that chains collide and wrap round the end of the table.
            let node = random.u64(..300) as u32;
            let hash = (node % 37).wrapping_mul(0x0100_0001);
            if let std::collections::hash_map::Entry::Vacant(free) = model.entry(node) {
                assert_eq!(index.find(hash, |n| n == node), None);
                index.insert(hash, node);
                free.insert(hash);
            } else {
                assert_eq!(index.find(hash, |n| n == node), Some(node));
                index.remove(hash, node);
                model.remove(&node);
            }
        }
        for (&node, &hash) in &model {
            assert_eq!(index.find(hash, |n| n == node), Some(node));
        }
        assert_eq!(index.used, model.len());
    }
}
