//! The tree that grows: bodies are linked lists, and each node has a label that tells its place among its siblings.

use super::paths::NOWHERE;
use super::times::Times;

/// No node.
pub(super) const NONE: u32 = u32::MAX;
/// The outermost body.
pub(super) const ROOT: u32 = 0;
/// Between labels when there is room.
const GAP: u64 = 1 << 32;

/// What every push touches comes first.
#[derive(Debug, Clone)]
#[repr(C)]
pub(super) struct Node {
    /// Nothing for a body.
    pub event: Option<u32>,
    pub next: u32,
    /// What the call paths within have in common.
    pub path: u32,
    pub times: Times,
    pub prev: u32,
    pub parent: u32,
    /// Larger than those of all earlier siblings.
    label: u64,
    /// Of a body.
    pub first: u32,
    pub last: u32,
    pub children: u32,
    /// Of a loop: before the one, and behind the other, stand only children that some iteration was without.
    pub lead: u32,
    pub trail: u32,
    /// Iterations of a body so far, in all.
    pub runs: u64,
    /// Where it stands in the stack of open bodies.
    pub open: u32,
    /// Bodies within bodies, this one included.
    pub height: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub nodes: Vec<Node>,
    free: Vec<u32>,
}

impl Tree {
    pub fn new() -> Tree {
        let mut tree = Tree { nodes: Vec::new(), free: Vec::new() };
        let root = tree.body(Times::from(0), 1);
        debug_assert_eq!(root, ROOT);
        tree
    }

    pub fn event(&mut self, symbol: u32, path: u32) -> u32 {
        self.add(Node { event: Some(symbol), path, ..Node::empty(Times::from(0)) })
    }

    pub fn body(&mut self, times: Times, runs: u64) -> u32 {
        self.add(Node { runs, height: 1, ..Node::empty(times) })
    }

    fn add(&mut self, node: Node) -> u32 {
        if let Some(id) = self.free.pop() {
            self.nodes[id as usize] = node;
            return id;
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    pub fn remove(&mut self, id: u32) {
        self.free.push(id);
    }

    #[inline]
    pub fn get(&self, id: u32) -> &Node {
        &self.nodes[id as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, id: u32) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    /// Whether `a` stands after its sibling `b`.
    pub fn after(&self, a: u32, b: u32) -> bool {
        self.get(a).label > self.get(b).label
    }

    pub fn children(&self, body: u32) -> impl Iterator<Item = u32> + '_ {
        self.siblings(self.get(body).first)
    }

    /// The node and those after it.
    pub fn siblings(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors((node != NONE).then_some(node), |&id| {
            let next = self.get(id).next;
            (next != NONE).then_some(next)
        })
    }

    /// Puts a node into a body, behind `prev` or at the front.
    pub fn insert(&mut self, id: u32, body: u32, prev: u32) {
        let next = if prev == NONE { self.get(body).first } else { self.get(prev).next };
        let label = self.label_between(prev, next);
        let node = self.get_mut(id);
        (node.parent, node.prev, node.next, node.label) = (body, prev, next, label);
        self.get_mut(body).children += 1;
        self.link(body, prev, id);
        self.link_back(body, next, id);
    }

    /// Puts a body that has run in every iteration in the place of the nodes from `first` to `last`, which become its own.
    pub fn wrap(&mut self, body: u32, first: u32, last: u32) {
        let Node { lead, trail, .. } = *self.get(self.get(first).parent);
        let stays_lead = lead != NONE && self.after(first, lead);
        let stays_trail = trail != NONE && self.after(trail, last);
        let (parent, prev, label) = (self.get(first).parent, self.get(first).prev, self.get(first).label);
        let next = self.get(last).next;
        let (mut at, mut children) = (first, 0);
        loop {
            self.get_mut(at).parent = body;
            children += 1;
            if at == last {
                break;
            }
            at = self.get(at).next;
        }
        self.get_mut(first).prev = NONE;
        self.get_mut(last).next = NONE;
        let outer = self.get_mut(body);
        (outer.parent, outer.prev, outer.next, outer.label) = (parent, prev, next, label);
        (outer.first, outer.last, outer.children) = (first, last, children);
        (outer.lead, outer.trail) = (first, last);
        let around = self.get_mut(parent);
        around.children -= children - 1;
        around.lead = if stays_lead { lead } else { body };
        around.trail = if stays_trail { trail } else { body };
        self.link(parent, prev, body);
        self.link_back(parent, next, body);
    }

    pub fn unlink(&mut self, id: u32) {
        let Node { parent, prev, next, .. } = *self.get(id);
        self.get_mut(parent).children -= 1;
        self.link(parent, prev, next);
        self.link_back(parent, next, prev);
    }

    fn link(&mut self, body: u32, prev: u32, id: u32) {
        match prev {
            NONE => self.get_mut(body).first = id,
            prev => self.get_mut(prev).next = id,
        }
    }

    fn link_back(&mut self, body: u32, next: u32, id: u32) {
        match next {
            NONE => self.get_mut(body).last = id,
            next => self.get_mut(next).prev = id,
        }
    }

    fn label(&self, id: u32) -> Option<u64> {
        self.nodes.get(id as usize).map(|node| node.label)
    }

    fn label_between(&mut self, prev: u32, next: u32) -> u64 {
        loop {
            let (low, high) = (self.label(prev).unwrap_or(0), self.label(next).unwrap_or(u64::MAX));
            if high - low >= 2 {
                return match (prev, next) {
                    (NONE, NONE) => 1 << 63,
                    (NONE, _) if high > GAP => high - GAP,
                    (_, NONE) if u64::MAX - low > GAP => low + GAP,
                    _ => low + (high - low) / 2,
                };
            }
            self.spread(if prev == NONE { next } else { prev });
        }
    }

    /// Makes room around a node: the smallest aligned range of labels that is not too full is spread out evenly. What
    /// may be full shrinks with the size of the range, so this is logarithmic work for an insertion, on average.
    fn spread(&mut self, around: u32) {
        let label = self.get(around).label;
        let (mut from, mut to, mut count) = (around, around, 1u64);
        for bits in 2..=63 {
            let mask = (1u64 << bits) - 1;
            let (low, high) = (label & !mask, label | mask);
            while self.label(self.get(from).prev).is_some_and(|label| label >= low) {
                (from, count) = (self.get(from).prev, count + 1);
            }
            while self.label(self.get(to).next).is_some_and(|label| label <= high) {
                (to, count) = (self.get(to).next, count + 1);
            }
            // 1.5 to the power of `bits`; room for two more between any two.
            if bits == 63 || count as f64 * 1.5f64.powi(bits) < mask as f64 && count < mask / 4 {
                let step = mask / (count + 1);
                let (mut at, mut label) = (from, low + step);
                for _ in 0..count {
                    self.get_mut(at).label = label;
                    (at, label) = (self.get(at).next, label + step);
                }
                return;
            }
        }
    }

    pub fn memory(&self) -> usize {
        let times = self.nodes.iter().map(|node| node.times.memory());
        self.nodes.capacity() * size_of::<Node>() + self.free.capacity() * 4 + times.sum::<usize>()
    }
}

impl Node {
    fn empty(times: Times) -> Node {
        Node {
            event: None,
            next: NONE,
            path: NOWHERE,
            times,
            prev: NONE,
            parent: NONE,
            label: 0,
            first: NONE,
            last: NONE,
            children: 0,
            lead: NONE,
            trail: NONE,
            runs: 0,
            open: NONE,
            height: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    fn places(tree: &Tree) -> Vec<u32> {
        let order: Vec<u32> = tree.children(ROOT).collect();
        assert!(order.windows(2).all(|pair| tree.after(pair[1], pair[0]) && !tree.after(pair[0], pair[1])));
        order
    }

    #[test]
    fn there_is_always_room() {
        for seed in 1..4 {
            let (mut tree, mut random) = (Tree::new(), Rng::with_seed(seed));
            let mut model: Vec<u32> = Vec::new();
            for i in 0..5000 {
                let id = tree.event(i, NOWHERE);
                // At the front, behind one and the same node, anywhere.
                let at = match seed {
                    1 => 0,
                    2 => model.len().min(1),
                    _ => random.u64(..model.len() as u64 + 1) as usize,
                };
                let prev = at.checked_sub(1).map_or(NONE, |before| model[before]);
                tree.insert(id, ROOT, prev);
                model.insert(at, id);
            }
            assert_eq!(places(&tree), model);
            let (from, to) = (model[1000], model[2000]);
            let body = tree.body(Times::from(0), 1);
            tree.wrap(body, from, to);
            assert_eq!(tree.children(body).collect::<Vec<_>>(), model[1000..=2000]);
            model.splice(1000..=2000, [body]);
            assert_eq!(places(&tree), model);
            tree.unlink(model.remove(1001));
            tree.unlink(model.remove(0));
            assert_eq!(places(&tree), model);
        }
    }
}
