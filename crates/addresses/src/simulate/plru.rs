//! Pseudo-LRU: a tree of bits over the ways of a set. Each points to the half that was not used last.

/// The most ways that a set can have: the bits of a number, one of which stays unused.
pub(super) const MOST_WAYS: u64 = 64;

/// The bits of one set. Nodes are numbered as in a heap, from 1; a bit that is set points to the upper half.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tree(u64);

impl Tree {
    /// A way was used: every node above it points away from it. Ways are a power of two.
    pub(super) fn touch(&mut self, way: usize, ways: usize) {
        let (mut node, mut half) = (1, ways / 2);
        while half > 0 {
            let upper = way & half != 0;
            match upper {
                true => self.0 &= !(1 << node),
                false => self.0 |= 1 << node,
            }
            node = 2 * node + usize::from(upper);
            half /= 2;
        }
    }

    /// The way that the bits lead to.
    pub(super) fn oldest(self, ways: usize) -> usize {
        let mut node = 1;
        while node < ways {
            node = 2 * node + (self.0 >> node & 1) as usize;
        }
        node - ways
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_ways_by_hand() {
        let mut tree = Tree::default();
        let mut after = |way| {
            tree.touch(way, 4);
            tree.oldest(4)
        };
        // 0 used: the root points up, and the upper node still points to 2.
        assert_eq!(after(0), 2);
        // 2 used: the root points down, where the node points away from 0.
        assert_eq!(after(2), 1);
        assert_eq!(after(1), 3);
        assert_eq!(after(3), 0);
        // True LRU would now say 0, 2, 1, 3. After 0 the tree says 2 as LRU does; after 1 it still says 2.
        assert_eq!(after(0), 2);
        assert_eq!(after(1), 2);
        // 2 was used last but one: LRU would take 3, and the tree takes 0, which is younger.
        assert_eq!(after(2), 0);
    }

    #[test]
    fn one_way_and_two() {
        let mut tree = Tree::default();
        tree.touch(0, 1);
        assert_eq!(tree.oldest(1), 0);
        for way in [0, 1, 1, 0] {
            tree.touch(way, 2);
            assert_eq!(tree.oldest(2), 1 - way, "of two ways, the other one");
        }
    }
}
