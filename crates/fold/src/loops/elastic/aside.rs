//! What was put aside because it is new, and where it belongs.

use super::paths::Paths;
use super::times::Times;
use super::tree::NONE;
use super::{DEEPEST, Elastic, FIRST_LOOKS, MOST_LOOKS, OpenBody};

impl Elastic {
    /// A symbol that was never seen.
    pub(super) fn appear(&mut self, symbol: u32) {
        let leaf = self.tree.event(symbol, self.paths.of(symbol));
        self.leaves.insert(symbol, leaf);
        if self.stack.last().is_some_and(|frame| frame.depth > 0) {
            let aside = self.tree.body(Times::from(0), 1);
            self.open(aside, 0);
        }
        if let Some(frame) = self.stack.last_mut() {
            self.tree.insert(leaf, frame.body, frame.cursor);
            frame.cursor = leaf;
        }
    }

    /// What was put aside, from that place in the stack on, gets its place in a body, now that the symbol that follows
    /// is in `child` of the open body `at`.
    pub(super) fn place(&mut self, aside: usize, at: usize, child: u32) {
        let left = aside - 1;
        let lists = self.stack[aside..].iter().filter(|frame| frame.depth == 0);
        let lists: Vec<u32> = lists.map(|frame| frame.body).collect();
        let height = lists.iter().map(|&list| self.tree.get(list).height).max().unwrap_or(1) - 1;
        let (mut target, mut prev) = (at, NONE);
        if at == left {
            let new = self.first_path(self.tree.get(self.stack[aside].body).first);
            let OpenBody { body, cursor, iteration, depth, .. } = self.stack[left];
            // Compilers move code, so it has no say where the order of calls leaves no doubt.
            let due = self.tree.get(child).times.never_skipped(iteration.saturating_sub(1));
            if self.tree.after(child, cursor) && (due || !self.paths.before(self.first_path(child), new)) {
                prev = self.tree.get(child).prev;
            } else if self.paths.before(new, self.tree.get(cursor).path) && depth + height <= DEEPEST {
                // They stand before what ran last: a new iteration begins with them.
                let prev = self.behind(self.tree.get(body).first, |code, this| !code.before(new, this));
                self.iterate(left);
                self.stack[left].path = new;
                return self.settle(&lists, left, prev);
            } else {
                (target, prev) = self.beyond(left, new);
            }
        }
        while self.stack[target].depth > 0 && self.stack[target].depth + height > DEEPEST {
            (target, prev) = (target - 1, NONE);
        }
        if prev == NONE {
            prev = self.stack[target].cursor;
        }
        self.settle(&lists, target, prev);
    }

    /// The open body that what is new follows in, and the child it follows: behind all that its code stands behind, and
    /// behind the loops that have ended.
    fn beyond(&mut self, left: usize, new: u32) -> (usize, u32) {
        let (mut target, mut prev) = (left, self.stack[left].cursor);
        for place in (1..=left).rev() {
            if self.stack[place].depth == 0 {
                break;
            }
            if let Some(id) = self.passed_by(place, new) {
                (target, prev) = (place, id);
            }
        }
        while self.stack[target].depth > 0
            && self.tree.get(prev).next == NONE
            && self.is_complete(self.stack[target])
        {
            target -= 1;
            prev = self.stack[target].cursor;
            match self.passed_by(target, new) {
                Some(id) => prev = id,
                None => break,
            }
        }
        (target, prev)
    }

    /// The last of those to come in an open body whose code stands before that of the new ones.
    fn passed_by(&mut self, place: usize, new: u32) -> Option<u32> {
        let next = self.tree.get(self.stack[place].cursor).next;
        let last = self.behind(next, |code, this| code.before(this, new));
        (last != NONE).then_some(last)
    }

    /// The last of the siblings from this one on of which all have code such as this, as far as one may look.
    fn behind(&mut self, mut at: u32, is_such: impl Fn(&Paths, u32) -> bool) -> u32 {
        let mut last = NONE;
        while at != NONE
            && self.looked < FIRST_LOOKS + MOST_LOOKS * self.len
            && is_such(&self.paths, self.first_path(at))
        {
            (last, at) = (at, self.tree.get(at).next);
            self.looked += 1;
        }
        last
    }

    fn first_path(&self, node: u32) -> u32 {
        self.tree.get(self.first_leaf(node)).path
    }

    /// What was put aside becomes a part of an open body, behind `prev`, and those further in have ended.
    pub(super) fn settle(&mut self, lists: &[u32], target: usize, mut prev: u32) {
        self.close(target + 1);
        let OpenBody { body, iteration, .. } = self.stack[target];
        for &list in lists {
            let children: Vec<u32> = self.tree.children(list).collect();
            self.tree.remove(list);
            for id in children {
                self.tree.get_mut(id).times.shift(iteration);
                self.passed += iteration;
                self.tree.insert(id, body, prev);
                self.adopt(target, id);
                prev = id;
            }
        }
        self.stack[target].cursor = prev;
    }
}
