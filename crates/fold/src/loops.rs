//! Structure: a sequence of symbols as a program would have made it, loops within loops.
//!
//! A tree whose leaves are events and whose inner nodes are loops. Beside it each node has a stream of *times*: each time
//! its place is reached, which is once in every iteration of the body it stands in, how often it runs. One for a plain
//! event, nought where an iteration leaves it out, a trip count for a loop. So two iterations that are alike but not equal
//! are one body with other times, and so are two ranks.
//!
//! ```
//! use refrain_fold::loops::{Folder, Matching, Node};
//! let mut folder = Folder::new(Matching::Elastic);
//! for step in 0..100 {
//!     folder.push(0);
//!     folder.push_n(1, 2 + step % 3); // two, three or four times
//! }
//! let folded = folder.finish();
//! assert_eq!(folded.loops.nodes, [Node::Loop { inside: 2 }, Node::Event(0), Node::Event(1)]);
//! assert_eq!(folded.times[0].sum(1), 100);
//! assert_eq!(folded.times[2].iter().take(4).collect::<Vec<_>>(), [2, 3, 4, 2]);
//! ```

mod cursor;
mod elastic;
mod exact;
mod folder;
pub mod merge;
mod notation;
mod seek;

pub use cursor::Cursor;
pub use folder::{Folder, Matching, WINDOW};
pub use notation::vector;
pub use seek::Resume;

use std::collections::HashSet;

use crate::stream::Stream;

/// The shape: the tree without its times, in preorder. The outermost body is none of the nodes and runs once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Loops {
    /// In preorder.
    pub nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
/// A leaf or a loop.
pub enum Node {
    /// A symbol of the sequence.
    Event(u32),
    /// The body is so many of the nodes that follow.
    Loop {
        /// How many.
        inside: u32,
    },
}

/// A step on the way to where a symbol comes from: of a call, where in which function it is made. The folder knows two
/// things of it: whether two are the same, and which of two in one area comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot {
    /// Such as a function: spots of one area have an order.
    pub area: u64,
    /// Where in it.
    pub at: u64,
}

/// What a folder has made of a sequence.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Folded {
    /// The tree.
    pub loops: Loops,
    /// By node.
    pub times: Vec<Stream>,
    /// By node: how many of its times count, which is how often its place was reached.
    pub lengths: Vec<u64>,
}

/// Why nodes from a file are not a tree of loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A loop without a body.
    #[error("loop {node} has no body")]
    EmptyLoop {
        /// Which one.
        node: usize,
    },
    /// A body that ends after the one it stands in.
    #[error("the body of loop {node} ends after the loop it is in")]
    Overlap {
        /// Which one.
        node: usize,
    },
}

impl Loops {
    /// What a tree from a file must satisfy before anything else is done with it.
    pub fn validate(&self) -> Result<(), Error> {
        let mut ends: Vec<usize> = Vec::new();
        for (node, what) in self.nodes.iter().enumerate() {
            while ends.last().is_some_and(|&end| end <= node) {
                ends.pop();
            }
            let Node::Loop { inside } = *what else { continue };
            if inside == 0 {
                return Err(Error::EmptyLoop { node });
            }
            let end = node + 1 + inside as usize;
            if end > ends.last().copied().unwrap_or(self.nodes.len()) {
                return Err(Error::Overlap { node });
            }
            ends.push(end);
        }
        Ok(())
    }

    /// Every distinct symbol, in order of first appearance in the tree.
    pub fn symbols(&self) -> Vec<u32> {
        let mut seen = HashSet::new();
        let events = self.nodes.iter().filter_map(|node| match *node {
            Node::Event(symbol) => Some(symbol),
            Node::Loop { .. } => None,
        });
        events.filter(|&symbol| seen.insert(symbol)).collect()
    }

    /// The same tree over other symbols.
    pub fn map_symbols(&self, mut f: impl FnMut(u32) -> u32) -> Loops {
        let nodes = self.nodes.iter().map(|node| match *node {
            Node::Event(symbol) => Node::Event(f(symbol)),
            other => other,
        });
        Loops { nodes: nodes.collect() }
    }

    /// For each node how often its place is reached and how often it runs, from its stream of times. Saturates. The
    /// tree must be valid.
    pub fn totals<'a>(&self, mut times: impl FnMut(usize) -> Option<&'a Stream>) -> Vec<(u64, u64)> {
        let mut totals = Vec::with_capacity(self.nodes.len());
        // Where each open body ends, and how often it runs.
        let mut open: Vec<(usize, u64)> = vec![(usize::MAX, 1)];
        for (at, node) in self.nodes.iter().enumerate() {
            while open.len() > 1 && open.last().is_some_and(|&(end, _)| end <= at) {
                open.pop();
            }
            let reached = open.last().map_or(0, |&(_, runs)| runs);
            let runs = times(at).map_or(0, |times| times.sum(reached));
            let runs = u64::try_from(runs.max(0)).unwrap_or(u64::MAX);
            totals.push((reached, runs));
            if let Node::Loop { inside } = *node {
                open.push((at + 1 + inside as usize, runs));
            }
        }
        totals
    }
}

impl Folded {
    /// The sequence again.
    pub fn iter(&self) -> Cursor<'_, crate::stream::Iter<'_>> {
        Cursor::new(&self.loops, self.times.iter().map(Stream::iter).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(symbol: u32) -> Node {
        Node::Event(symbol)
    }

    fn stream(values: &[i64]) -> Stream {
        let mut folder = crate::stream::Folder::new();
        values.iter().for_each(|&v| folder.push(v));
        folder.finish()
    }

    /// a (b c? d)x2,3 — c only in the second iteration of all.
    fn example() -> Folded {
        let nodes =
            vec![Node::Loop { inside: 5 }, event(0), Node::Loop { inside: 3 }, event(1), event(2), event(3)];
        let times = [&[2][..], &[1, 1], &[2, 3], &[1, 1, 1, 1, 1], &[0, 1, 0, 0, 0], &[1, 1, 1, 1, 1]];
        Folded {
            loops: Loops { nodes },
            lengths: times.iter().map(|times| times.len() as u64).collect(),
            times: times.iter().map(|times| stream(times)).collect(),
        }
    }

    #[test]
    fn a_tree_is_walked_as_its_times_say() {
        let folded = example();
        folded.loops.validate().unwrap();
        let sequence: Vec<u32> = folded.iter().collect();
        assert_eq!(sequence, [0, 1, 3, 1, 2, 3, 0, 1, 3, 1, 3, 1, 3]);
        assert_eq!(folded.loops.symbols(), [0, 1, 2, 3]);
    }

    #[test]
    fn totals_follow_from_the_times() {
        let folded = example();
        let totals = folded.loops.totals(|node| folded.times.get(node));
        assert_eq!(totals, [(1, 2), (2, 2), (2, 5), (5, 5), (5, 1), (5, 5)]);
        assert!(totals.iter().map(|t| t.0).eq(folded.lengths.iter().copied()));
    }

    #[test]
    fn bad_trees_are_refused() {
        let bad = |nodes: &[Node]| Loops { nodes: nodes.to_vec() }.validate().unwrap_err();
        assert_eq!(bad(&[event(0), Node::Loop { inside: 0 }]), Error::EmptyLoop { node: 1 });
        assert_eq!(bad(&[Node::Loop { inside: 2 }, event(0)]), Error::Overlap { node: 0 });
        let crossing = [Node::Loop { inside: 2 }, Node::Loop { inside: 2 }, event(0), event(1)];
        assert_eq!(bad(&crossing), Error::Overlap { node: 1 });
    }

    #[test]
    fn a_loop_in_which_nothing_happens_ends() {
        let nodes = vec![Node::Loop { inside: 1 }, event(7)];
        let times = vec![Stream::constant(i64::MAX), Stream::constant(0)];
        let idle = Folded { loops: Loops { nodes }, times, lengths: vec![1, 1] };
        assert_eq!(idle.iter().count(), 0);
    }
}
