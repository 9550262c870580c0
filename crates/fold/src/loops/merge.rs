//! One tree for two: what both went through is one node, whatever loops each has around it (ScalaTrace II's loop agnostic
//! merge, on trees).
//!
//! Children of two bodies are aligned by the symbols they have in common, a longest common subsequence weighted by how
//! many. A loop on one side may stand against several nodes of the other, which then get a loop around them that runs once.
//! What only one side has is left out by the other. So each of the two trees comes back from the merged one when its own
//! times are filled in: nought where it has no such node, one where a loop was put around its nodes.
//!
//! Nodes of the first tree, itself merged from others, that no rank has both of are in no order, and may change places to
//! suit the second: the causal order of the second-generation ScalaTrace.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

use super::{Loops, Node};

/// Where the times of a merged node come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// From a node of the original.
    Node(u32),
    /// It never runs.
    Never,
    /// It runs once, each time it is reached: a loop around nodes that had none.
    Once,
    /// It is never reached: a loop around it never runs.
    Absent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
/// One tree for two, and where the times of its nodes come from.
pub struct Merged {
    /// The tree.
    pub loops: Loops,
    /// By merged node.
    pub first: Vec<Source>,
    /// The same of the second tree.
    pub second: Vec<Source>,
}

/// Deeper trees are not merged: the merge recurses.
pub const DEEPEST: usize = 256;

/// Kinds of ranks, a bit each.
pub type Kinds = Vec<u64>;

/// Both trees must be valid and no deeper than [`DEEPEST`]. `who` says of each of the first tree's nodes which kinds of ranks
/// have it.
pub fn merge(first: &Loops, second: &Loops, who: &[Kinds]) -> Merged {
    let mut out = Out { who, nodes: Vec::new(), first: Vec::new(), second: Vec::new() };
    out.bodies(trees(first), trees(second));
    Merged { loops: Loops { nodes: out.nodes }, first: out.first, second: out.second }
}

/// How many loops are within each other at most.
pub fn depth(loops: &Loops) -> usize {
    let mut ends: Vec<usize> = Vec::new();
    let mut deepest = 0;
    for (at, node) in loops.nodes.iter().enumerate() {
        while ends.last().is_some_and(|&end| end <= at) {
            ends.pop();
        }
        if let Node::Loop { inside } = node {
            ends.push(at + 1 + *inside as usize);
            deepest = deepest.max(ends.len());
        }
    }
    deepest
}

#[derive(Debug, Clone)]
struct Tree {
    /// `None` for a loop that is put around nodes.
    node: Option<u32>,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Event(u32),
    Loop(Vec<Tree>),
}

fn trees(loops: &Loops) -> Vec<Tree> {
    fn body(nodes: &[Node], mut at: usize, end: usize) -> Vec<Tree> {
        let mut trees = Vec::new();
        while at < end {
            let node = Some(at as u32);
            match nodes[at] {
                Node::Event(symbol) => {
                    trees.push(Tree { node, what: What::Event(symbol) });
                    at += 1;
                }
                Node::Loop { inside } => {
                    let after = at + 1 + inside as usize;
                    trees.push(Tree { node, what: What::Loop(body(nodes, at + 1, after)) });
                    at = after;
                }
            }
        }
        trees
    }
    body(&loops.nodes, 0, loops.nodes.len())
}

impl Tree {
    fn symbols(&self, into: &mut HashSet<u32>) {
        match &self.what {
            What::Event(symbol) => {
                into.insert(*symbol);
            }
            What::Loop(body) => body.iter().for_each(|tree| tree.symbols(into)),
        }
    }

    /// Loops that were put around nodes put none around others, or there would be no end.
    fn is_real_loop(&self) -> bool {
        self.node.is_some() && matches!(self.what, What::Loop(_))
    }

    fn around(body: Vec<Tree>) -> Tree {
        Tree { node: None, what: What::Loop(body) }
    }

    /// What to merge inside a loop: an event stands against a loop as a loop of itself.
    fn into_body(self) -> (Option<u32>, Vec<Tree>) {
        match self.what {
            What::Loop(body) => (self.node, body),
            What::Event(_) => (None, vec![self]),
        }
    }
}

/// A symbol that more trees of a body have is looked for only in so many, those about as far along: two sequences in
/// which nothing repeats would otherwise take time and memory by the product of their lengths.
const MOST_PLACES: usize = 32;

/// For each tree of `a`, the trees of `b` with symbols in common, lowest first, and how many.
fn shared(a: &[Tree], b: &[Tree]) -> Vec<Vec<(usize, u64)>> {
    let mut places: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, tree) in b.iter().enumerate() {
        let mut symbols = HashSet::new();
        tree.symbols(&mut symbols);
        symbols.into_iter().for_each(|symbol| places.entry(symbol).or_default().push(at));
    }
    let of = |(at, tree): (usize, &Tree)| {
        let mut symbols = HashSet::new();
        tree.symbols(&mut symbols);
        let as_far = at * b.len() / a.len();
        let mut counts: HashMap<usize, u64> = HashMap::new();
        for places in symbols.iter().filter_map(|symbol| places.get(symbol)) {
            let start = places.partition_point(|place| *place < as_far).saturating_sub(MOST_PLACES / 2);
            let start = start.min(places.len().saturating_sub(MOST_PLACES));
            for place in places[start..].iter().take(MOST_PLACES) {
                *counts.entry(*place).or_default() += 1;
            }
        }
        let mut counts: Vec<(usize, u64)> = counts.into_iter().collect();
        counts.sort_unstable();
        counts
    };
    a.iter().enumerate().map(of).collect()
}

/// Puts a loop around those trees of `b`, from the first to the last, that a loop of `a` has symbols of.
fn wrap(a: &[Tree], b: Vec<Tree>) -> Vec<Tree> {
    // By where they begin; none overlaps another.
    let mut spans: BTreeMap<usize, usize> = BTreeMap::new();
    for (tree, shared) in a.iter().zip(shared(a, &b)) {
        if let (true, Some(&(start, _)), Some(&(end, _))) =
            (tree.is_real_loop(), shared.first(), shared.last())
            && start < end
            && spans.range(..=end).next_back().is_none_or(|(_, &before)| before < start)
        {
            spans.insert(start, end);
        }
    }
    if spans.is_empty() {
        return b;
    }
    let mut wrapped = Vec::new();
    let mut b = b.into_iter().enumerate().peekable();
    while let Some((at, tree)) = b.next() {
        match spans.get(&at) {
            None => wrapped.push(tree),
            Some(&end) => {
                let mut body = vec![tree];
                while let Some((_, tree)) = b.next_if(|(at, _)| *at <= end) {
                    body.push(tree);
                }
                wrapped.push(Tree::around(body));
            }
        }
    }
    wrapped
}

/// The heaviest pairs (a, b) of which each comes after the last on both sides.
fn align(shared: &[Vec<(usize, u64)>], width: usize) -> Vec<(usize, usize)> {
    // Of all chains that end before a place in `b`, the heaviest: a tree of prefix maxima.
    let mut best: Vec<(u64, Option<usize>)> = vec![(0, None); width + 1];
    let mut pairs: Vec<(usize, usize, Option<usize>)> = Vec::new();
    for (a, partners) in shared.iter().enumerate() {
        let chains = partners.iter().map(|&(b, weight)| {
            let (mut i, mut most) = (b, (0, None));
            while i > 0 {
                if best[i].0 > most.0 {
                    most = best[i];
                }
                i &= i - 1;
            }
            (b, most.0 + weight, most.1)
        });
        for (b, weight, before) in chains.collect::<Vec<_>>() {
            pairs.push((a, b, before));
            let mut i = b + 1;
            while i <= width {
                if best[i].0 < weight {
                    best[i] = (weight, Some(pairs.len() - 1));
                }
                i += i & i.wrapping_neg();
            }
        }
    }
    let (mut i, mut last) = (width, (0, None));
    while i > 0 {
        if best[i].0 > last.0 {
            last = best[i];
        }
        i &= i - 1;
    }
    let mut chain = Vec::new();
    let mut next = last.1;
    while let Some(pair) = next {
        chain.push((pairs[pair].0, pairs[pair].1));
        next = pairs[pair].2;
    }
    chain.reverse();
    chain
}

struct Out<'a> {
    who: &'a [Kinds],
    nodes: Vec<Node>,
    first: Vec<Source>,
    second: Vec<Source>,
}

#[derive(Clone, Copy)]
enum Side {
    First,
    Second,
}

impl Out<'_> {
    fn bodies(&mut self, a: Vec<Tree>, b: Vec<Tree>) {
        let b = wrap(&a, b);
        let a = wrap(&b, a);
        let a = self.reorder(a, &b);
        let pairs = align(&shared(&a, &b), b.len());
        let (mut a, mut b) = (a.into_iter().enumerate().peekable(), b.into_iter().enumerate().peekable());
        for (x, y) in pairs {
            while let Some((_, tree)) = a.next_if(|(at, _)| *at < x) {
                self.alone(tree, Side::First, false);
            }
            while let Some((_, tree)) = b.next_if(|(at, _)| *at < y) {
                self.alone(tree, Side::Second, false);
            }
            if let (Some((_, one)), Some((_, other))) = (a.next(), b.next()) {
                self.pair(one, other);
            }
        }
        a.for_each(|(_, tree)| self.alone(tree, Side::First, false));
        b.for_each(|(_, tree)| self.alone(tree, Side::Second, false));
    }

    fn pair(&mut self, one: Tree, other: Tree) {
        let source = |node: Option<u32>| node.map_or(Source::Once, Source::Node);
        if let (What::Event(symbol), What::Event(_)) = (&one.what, &other.what) {
            self.push(Node::Event(*symbol), source(one.node), source(other.node));
            return;
        }
        let (at, (first, a), (second, b)) = (self.nodes.len(), one.into_body(), other.into_body());
        self.push(Node::Loop { inside: 0 }, source(first), source(second));
        self.bodies(a, b);
        self.close(at);
    }

    /// A tree that the other side does not have. `hidden`: within a loop that the other side has not either.
    fn alone(&mut self, tree: Tree, side: Side, hidden: bool) {
        let other = if hidden { Source::Absent } else { Source::Never };
        let push = |out: &mut Self, what: Node, node: u32| match side {
            Side::First => out.push(what, Source::Node(node), other),
            Side::Second => out.push(what, other, Source::Node(node)),
        };
        match (tree.what, tree.node) {
            (What::Event(symbol), Some(node)) => push(self, Node::Event(symbol), node),
            (What::Event(_), None) => {}
            (What::Loop(body), Some(node)) => {
                let at = self.nodes.len();
                push(self, Node::Loop { inside: 0 }, node);
                body.into_iter().for_each(|tree| self.alone(tree, side, true));
                self.close(at);
            }
            // A loop that was put around nodes in vain.
            (What::Loop(body), None) => body.into_iter().for_each(|tree| self.alone(tree, side, hidden)),
        }
    }

    fn push(&mut self, node: Node, first: Source, second: Source) {
        self.nodes.push(node);
        self.first.push(first);
        self.second.push(second);
    }

    fn close(&mut self, at: usize) {
        let inside = (self.nodes.len() - at - 1) as u32;
        self.nodes[at] = Node::Loop { inside };
    }

    /// The first side's trees in an order nearer to that of `b`, as far as no rank would notice.
    fn reorder(&self, a: Vec<Tree>, b: &[Tree]) -> Vec<Tree> {
        let partner: Vec<Option<usize>> =
            shared(&a, b).iter().map(|s| s.iter().max_by_key(|p| p.1).map(|p| p.0)).collect();
        if partner.iter().flatten().is_sorted() {
            return a;
        }
        let who: Vec<Kinds> = a
            .iter()
            .map(|tree| {
                let mut kinds = Kinds::new();
                self.kinds(tree, &mut kinds);
                kinds
            })
            .collect();
        // Without a partner a tree stays behind the one it follows.
        let mut last = 0;
        let wish = partner.into_iter().map(|partner| {
            last = partner.unwrap_or(last);
            last
        });
        let order = in_order(&wish.collect::<Vec<_>>(), &before(&who));
        let mut a: Vec<Option<Tree>> = a.into_iter().map(Some).collect();
        order.into_iter().filter_map(|at| a[at].take()).collect()
    }

    /// Which kinds of ranks have an event of the tree.
    fn kinds(&self, tree: &Tree, into: &mut Kinds) {
        match (&tree.what, tree.node) {
            (What::Loop(body), _) => body.iter().for_each(|tree| self.kinds(tree, into)),
            (What::Event(_), None) => {}
            (What::Event(_), Some(node)) => {
                let own = &self.who[node as usize];
                into.resize(into.len().max(own.len()), 0);
                into.iter_mut().zip(own).for_each(|(all, own)| *all |= own);
            }
        }
    }
}

/// What must stay in order: of all that one kind of rank has, each with the next. The rest follows from these, so there are
/// no more than trees times kinds.
fn before(who: &[Kinds]) -> Vec<Vec<usize>> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); who.len()];
    let mut last: Vec<Option<usize>> = Vec::new();
    for (at, kinds) in who.iter().enumerate() {
        last.resize(last.len().max(64 * kinds.len()), None);
        for (word, &kinds) in kinds.iter().enumerate() {
            let mut left = kinds;
            while left != 0 {
                let kind = 64 * word + left.trailing_zeros() as usize;
                left &= left - 1;
                if let Some(last) = last[kind].replace(at) {
                    next[last].push(at);
                }
            }
        }
    }
    next
}

/// All of them, each before those that must come `after` it; of those that may come next, the one that wishes to be first.
fn in_order(wish: &[usize], after: &[Vec<usize>]) -> Vec<usize> {
    let mut waits = vec![0usize; wish.len()];
    after.iter().flatten().for_each(|&at| waits[at] += 1);
    let free = (0..wish.len()).filter(|&at| waits[at] == 0);
    let mut free: BinaryHeap<Reverse<(usize, usize)>> = free.map(|at| Reverse((wish[at], at))).collect();
    let mut order = Vec::with_capacity(wish.len());
    while let Some(Reverse((_, at))) = free.pop() {
        order.push(at);
        for &later in &after[at] {
            waits[later] -= 1;
            if waits[later] == 0 {
                free.push(Reverse((wish[later], later)));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests;
