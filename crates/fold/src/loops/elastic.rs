//! Loops whose iterations are alike but not equal (ScalaTrace II), by parsing instead of searching.
//!
//! The tree made so far is what is expected to come: each symbol has one leaf in it, and irregularity goes into the
//! times. We are always somewhere in the tree: in the body of a loop, in that of the loop around it, and so on, in each
//! of them behind the child that ran last, the *cursor*. A symbol tells where we are next. Of the open bodies it is the
//! innermost with this symbol in it, perhaps deeper, that we go on in; those further in have ended.
//!
//! * The child stands after the cursor: what is between is left out this time.
//! * It stands before it. If it is the first child of a loop, or all that would be left out was left out before, a new
//!   iteration begins. Otherwise the children from there to the cursor are a loop nobody knew of, which so far ran once
//!   each time (a pseudo-loop) and is now in its second iteration.
//! * A symbol that was never seen is put aside, with all others like it: they are a body of their own, in which loops
//!   are found by the same rules, until a known symbol comes and shows where they belong. Right before it, if it stands
//!   after the cursor of the body we were in. If the known one leads back, and the iteration was complete, the loop has
//!   ended and they follow it; if not complete, they are a part of it. If it stands further out, there.
//!
//! So nothing is ever merged that would have to be taken apart again: trailing iterations of an inner loop only change
//! a number that is not written yet. A push touches one node, or as many as loops begin and end with it.
//!
//! Where call paths are known they decide whether going back to the first child is a new iteration: not if this one is
//! incomplete, and what ran in it has more of its path in common than the whole body has. Then it is a loop in the
//! function they share. And where the order of calls leaves a doubt about what was put aside, that of their code decides:
//! what stands before the one that ran last begins a new iteration, what stands behind all of a loop follows it.
//!
//! Three things have an end. Symbols in random order would nest for ever, so beyond [`DEEPEST`] there are no new loops,
//! only iterations that leave much out. And a loop in which something new happens each time would get a body in which
//! whoever reads it looks for the next event for ever; so if that takes more than [`SPARSEST`] children an event, all
//! leaves are forgotten and we begin anew behind what there is. And code is looked at only so often ([`MOST_LOOKS`]); then
//! what is new goes as far as it was seen to. What an iteration was once without is not looked at again, so how often that
//! is needs no end.

mod aside;
mod paths;
mod times;
mod tree;

use super::{Folded, Node, Spot};
use crate::FastMap;
use paths::Paths;
use times::Times;
use tree::{NONE, ROOT, Tree};

/// Loops within loops.
const DEEPEST: u32 = 12;
/// Children of loops passed by for each event, on average, and in all before this counts.
const SPARSEST: u64 = 512;
const FIRST_SPARSE: u64 = 1 << 20;
/// So many children are looked at for the one that comes next.
const FORESIGHT: usize = 8;
/// Children whose code is looked at for each event, on average, and in all before this counts.
const MOST_LOOKS: u64 = 8;
const FIRST_LOOKS: u64 = 1 << 20;

#[derive(Debug, Clone)]
pub(super) struct Elastic {
    /// The open bodies, the outermost first.
    stack: Vec<OpenBody>,
    tree: Tree,
    leaves: FastMap<u32, u32>,
    paths: Paths,
    /// Scratch: the way from a leaf up to the child of an open body, without that child.
    way: Vec<u32>,
    len: u64,
    /// Children of loops passed by so far in reading what is there, since that many symbols.
    passed: u64,
    since: u64,
    /// Children looked at so far to say where something belongs.
    looked: u64,
}

#[derive(Debug, Clone, Copy)]
struct OpenBody {
    body: u32,
    /// The child that ran last, in this iteration; it is open if it is a loop. In a body that is no loop the last child.
    cursor: u32,
    iteration: u64,
    /// What the call paths of all that ran in this iteration have in common. It begins with the body's own, so where it
    /// is that it stays so.
    path: u32,
    /// Loops around and including this one. Nought for a body that is none: the outermost, or what is put aside.
    depth: u32,
}

impl Elastic {
    pub fn new() -> Elastic {
        let mut elastic = Elastic {
            stack: Vec::new(),
            tree: Tree::new(),
            leaves: FastMap::default(),
            paths: Paths::default(),
            way: Vec::new(),
            len: 0,
            passed: 0,
            since: 0,
            looked: 0,
        };
        elastic.open(ROOT, 0);
        elastic
    }

    pub fn define(&mut self, symbol: u32, path: impl Iterator<Item = Spot>) {
        self.paths.define(symbol, path);
    }

    pub fn restart(&mut self) {
        *self = Elastic { paths: std::mem::take(&mut self.paths), ..Elastic::new() };
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    #[cfg(test)]
    pub fn looked(&self) -> u64 {
        self.looked
    }

    #[inline]
    pub fn push(&mut self, symbol: u32) {
        self.len += 1;
        if let Some(frame) = self.stack.last_mut()
            && let Some(last) = self.tree.nodes.get_mut(frame.cursor as usize)
        {
            if last.event == Some(symbol) {
                last.times.again(1);
                return;
            }
            let (mut next, begins) = (last.next, last.next == NONE && frame.depth > 0);
            if begins {
                next = self.tree.get(frame.body).first;
            }
            if let Some(node) = self.tree.nodes.get_mut(next as usize)
                && node.event == Some(symbol)
            {
                let path = node.path;
                if begins {
                    frame.iteration += 1;
                    frame.path = path;
                }
                node.times.run(frame.iteration);
                frame.cursor = next;
                if begins {
                    let body = self.tree.get_mut(frame.body);
                    body.runs += 1;
                    body.times.again(1);
                    self.passed += u64::from(body.children);
                } else if frame.path != path && frame.path != self.tree.get(frame.body).path {
                    frame.path = self.paths.common(frame.path, path);
                }
                return;
            }
        }
        self.seek(symbol);
    }

    /// The same symbol several times over, in the time of one.
    pub fn push_n(&mut self, symbol: u32, count: u64) {
        let Some(more) = count.checked_sub(1) else { return };
        self.push(symbol);
        // Its leaf is where we are now.
        if let Some(frame) = self.stack.last() {
            self.tree.get_mut(frame.cursor).times.again(more);
            self.len += more;
        }
    }

    /// The symbol that comes next if this iteration is like the last one.
    #[inline]
    pub fn predicted(&self) -> Option<u32> {
        let frame = self.stack.last()?;
        let cursor = self.tree.nodes.get(frame.cursor as usize)?;
        let next = self.tree.nodes.get(cursor.next as usize);
        if let Some(next) =
            next.filter(|next| next.event.is_some() && next.times.last() + 1 == frame.iteration)
            && !cursor.times.is_short()
        {
            return next.event;
        }
        self.foresee()
    }

    fn foresee(&self) -> Option<u32> {
        let before = |frame: &OpenBody, node: u32| {
            let earlier = frame.iteration.checked_sub(1)?;
            self.tree.get(node).times.lately(earlier)
        };
        for frame in self.stack.iter().rev().filter(|frame| frame.cursor != NONE) {
            let cursor = self.tree.get(frame.cursor);
            let (before_this, now) = (before(frame, frame.cursor), cursor.times.lately(frame.iteration));
            // A loop under the cursor is at the end of an iteration, or we would not have come this far out.
            if before_this > now || cursor.event.is_none() && before_this.is_none() {
                return self.first_event(frame.cursor);
            }
            let mut next = self.tree.siblings(cursor.next).take(FORESIGHT);
            if let Some(next) = next.find(|&next| before(frame, next) > Some(0)) {
                return self.first_event(next);
            }
        }
        None
    }

    fn first_event(&self, node: u32) -> Option<u32> {
        self.tree.get(self.first_leaf(node)).event
    }

    fn first_leaf(&self, mut node: u32) -> u32 {
        while self.tree.get(node).event.is_none() {
            node = self.tree.get(node).first;
        }
        node
    }

    pub fn finish(&self) -> Folded {
        let mut folded = Folded::default();
        // What is put aside comes last, so far.
        for frame in self.stack.iter().filter(|frame| frame.depth == 0) {
            self.write(frame.body, &mut folded);
        }
        folded
    }

    fn write(&self, body: u32, folded: &mut Folded) {
        let length = self.tree.get(body).runs;
        for child in self.tree.children(body) {
            let node = self.tree.get(child);
            let at = folded.loops.nodes.len();
            folded.lengths.push(length);
            folded.times.push(node.times.finish(length));
            folded.loops.nodes.push(match node.event {
                Some(symbol) => Node::Event(symbol),
                None => Node::Loop { inside: 0 },
            });
            if node.event.is_none() {
                self.write(child, folded);
                let inside = (folded.loops.nodes.len() - at - 1) as u32;
                folded.loops.nodes[at] = Node::Loop { inside };
            }
        }
    }

    pub fn memory(&self) -> usize {
        let leaves = self.leaves.capacity() * 9;
        self.tree.memory() + self.paths.memory() + leaves + self.stack.capacity() * size_of::<OpenBody>()
    }

    /// Goes to where the symbol is, wherever that be.
    #[inline(never)]
    fn seek(&mut self, symbol: u32) {
        if self.passed > FIRST_SPARSE && self.passed / SPARSEST > self.len - self.since {
            self.begin_anew();
        }
        let Some(&leaf) = self.leaves.get(&symbol) else {
            return self.appear(symbol);
        };
        loop {
            let (at, child) = self.innermost(leaf);
            let aside = (at + 1..self.stack.len()).find(|&above| self.stack[above].depth == 0);
            if let Some(aside) = aside {
                self.place(aside, at, child);
                continue;
            }
            self.close(at + 1);
            if self.tree.after(child, self.stack[at].cursor) || self.go_back(at, child) {
                return self.enter(child);
            }
        }
    }

    /// The innermost open body with the leaf in it, as its place in the stack, and its child that leads there. The rest
    /// of the way is noted.
    fn innermost(&mut self, leaf: u32) -> (usize, u32) {
        self.way.clear();
        let mut child = leaf;
        loop {
            let parent = self.tree.get(child).parent;
            let open = self.tree.get(parent).open;
            if open != NONE {
                return (open as usize, child);
            }
            self.way.push(child);
            child = parent;
        }
    }

    /// From the innermost body into a child, and on along the way.
    fn enter(&mut self, mut child: u32) {
        while let Some(frame) = self.stack.last_mut() {
            let node = &mut self.tree.nodes[child as usize];
            node.times.run(frame.iteration);
            if frame.cursor == NONE {
                frame.path = node.path;
            } else if frame.path != node.path {
                frame.path = self.paths.common(frame.path, node.path);
            }
            frame.cursor = child;
            if node.event.is_some() {
                return;
            }
            node.runs += 1;
            self.passed += u64::from(node.children);
            let depth = frame.depth + 1;
            self.open(child, depth);
            match self.way.pop() {
                Some(next) => child = next,
                None => return,
            }
        }
    }

    /// The child is not after the cursor of the innermost body. Makes it so, or says that the tree has changed and the
    /// way must be sought again.
    fn go_back(&mut self, at: usize, child: u32) -> bool {
        let frame = self.stack[at];
        if frame.depth == 0 {
            let range = self.tree.siblings(child).map(|id| self.tree.get(id).height);
            if range.max() < Some(DEEPEST) {
                self.wrap(at, child);
                return true;
            }
            self.widen(at, child);
            return false;
        }
        let complete = self.tree.get(frame.cursor).next == NONE;
        let tree::Node { first, path, height, .. } = *self.tree.get(frame.body);
        let inner = match child == first {
            true => !complete && frame.path != path,
            false => self.leaves_out(frame, child),
        };
        if inner && frame.depth + height <= DEEPEST {
            self.wrap(at, child);
        } else {
            self.iterate(at);
        }
        true
    }

    /// Going back to the child as a new iteration would leave out something that was never left out before.
    fn leaves_out(&mut self, frame: OpenBody, child: u32) -> bool {
        // Of those before the child this iteration can have no more, so what it is without never counts again.
        let mut lead = self.tree.get(frame.body).lead;
        while lead != NONE
            && self.tree.after(child, lead)
            && !self.tree.get(lead).times.never_skipped(frame.iteration)
        {
            lead = self.tree.get(lead).next;
            self.looked += 1;
        }
        self.tree.get_mut(frame.body).lead = lead;
        lead != NONE && self.tree.after(child, lead) || !self.is_complete(frame)
    }

    /// All that is left of this iteration was left out before.
    fn is_complete(&mut self, frame: OpenBody) -> bool {
        let Some(earlier) = frame.iteration.checked_sub(1) else { return false };
        let mut trail = self.tree.get(frame.body).trail;
        while trail != NONE
            && self.tree.after(trail, frame.cursor)
            && !self.tree.get(trail).times.never_skipped(earlier)
        {
            trail = self.tree.get(trail).prev;
            self.looked += 1;
        }
        self.tree.get_mut(frame.body).trail = trail;
        trail == NONE || !self.tree.after(trail, frame.cursor)
    }

    /// The children from this one to the cursor become a loop, which is about to begin its second iteration.
    fn wrap(&mut self, at: usize, from: u32) {
        let OpenBody { cursor, iteration, depth, .. } = self.stack[at];
        let mut times = Times::ones(iteration);
        times.again(1);
        let new = self.tree.body(times, iteration + 2);
        self.tree.wrap(new, from, cursor);
        let (mut height, mut path) = (0, self.tree.get(from).path);
        for child in self.tree.children(new) {
            let child = self.tree.get(child);
            height = height.max(child.height);
            path = self.paths.common(path, child.path);
        }
        let node = self.tree.get_mut(new);
        (node.height, node.path) = (height + 1, path);
        self.stack[at].cursor = new;
        self.adopt(at, new);
        self.open(new, depth + 1);
    }

    /// In a body that is no loop, one that would nest too deep: instead of a loop around the children from this one to
    /// the cursor, the deepest loop among them takes in the others, those before it in its first iteration and those
    /// behind it in its last one.
    fn widen(&mut self, at: usize, from: u32) {
        let range: Vec<u32> = self.tree.siblings(from).collect();
        let Some((middle, &taller)) =
            range.iter().enumerate().max_by_key(|(_, id)| self.tree.get(**id).height)
        else {
            return;
        };
        self.stack[at].cursor = taller;
        self.open(taller, self.stack[at].depth + 1);
        let last = self.tree.get(taller).runs - 1;
        let mut prev = NONE;
        for &id in &range[..middle] {
            self.tree.unlink(id);
            self.tree.insert(id, taller, prev);
            self.adopt(at + 1, id);
            prev = id;
        }
        for &id in &range[middle + 1..] {
            self.tree.unlink(id);
            self.tree.get_mut(id).times.shift(last);
            self.passed += last;
            self.tree.insert(id, taller, self.tree.get(taller).last);
            self.adopt(at + 1, id);
        }
        let node = self.tree.get(taller);
        let frame = &mut self.stack[at + 1];
        (frame.cursor, frame.path) = (node.last, node.path);
    }

    /// A new iteration of an open body.
    fn iterate(&mut self, at: usize) {
        let frame = &mut self.stack[at];
        frame.iteration += 1;
        frame.cursor = NONE;
        let body = self.tree.get_mut(frame.body);
        body.runs += 1;
        body.times.again(1);
        self.passed += u64::from(body.children);
    }

    /// All symbols are new again.
    #[cold]
    fn begin_anew(&mut self) {
        let lists = self.stack[1..].iter().filter(|frame| frame.depth == 0);
        let lists: Vec<u32> = lists.map(|frame| frame.body).collect();
        self.settle(&lists, 0, self.tree.get(ROOT).last);
        self.leaves.clear();
        (self.passed, self.since) = (0, self.len);
    }

    /// What the open bodies say of all within them holds for a new child of the one at that place, too.
    fn adopt(&mut self, at: usize, child: u32) {
        let (mut height, path) = (self.tree.get(child).height, self.tree.get(child).path);
        for frame in self.stack[..=at].iter_mut().rev() {
            let body = &mut self.tree.nodes[frame.body as usize];
            height = body.height.max(height + 1);
            body.height = height;
            body.path = self.paths.common(body.path, path);
            frame.path = self.paths.common(frame.path, path);
            if frame.depth == 0 {
                break;
            }
        }
    }

    fn open(&mut self, body: u32, depth: u32) {
        let place = self.stack.len() as u32;
        let node = self.tree.get_mut(body);
        node.open = place;
        let iteration = node.runs - 1;
        self.stack.push(OpenBody { body, cursor: NONE, iteration, path: node.path, depth });
    }

    /// Only so many bodies stay open.
    fn close(&mut self, stay: usize) {
        for frame in self.stack.drain(stay..) {
            self.tree.get_mut(frame.body).open = NONE;
        }
    }
}
