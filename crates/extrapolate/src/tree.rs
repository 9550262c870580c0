//! The order of a rank's calls as loops within loops, so that two ranks, or two runs, that differ in trip counts alone have
//! one tree.

use std::collections::HashMap;

use refrain_fold::loops::{Loops, Node};

/// A tree, and by node how often it runs each time its place is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tree {
    pub loops: Loops,
    pub counts: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    Event(u32),
    /// A sequence that stands there several times, by number.
    Body(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Item {
    what: What,
    count: u64,
}

/// Comparisons that looking for loops may take; what is left then stays as it is.
const MOST_WORK: usize = 400_000_000;

#[derive(Default)]
struct Bodies {
    all: Vec<Vec<Item>>,
    known: HashMap<Vec<Item>, usize>,
}

impl Bodies {
    fn number(&mut self, body: &[Item]) -> usize {
        if let Some(known) = self.known.get(body) {
            return *known;
        }
        self.all.push(body.to_vec());
        self.known.insert(body.to_vec(), self.all.len() - 1);
        self.all.len() - 1
    }
}

impl Tree {
    /// The shortest bodies first, each from where it first begins: so the tree does not depend on trip counts, as long as
    /// these are at least two.
    pub fn of(symbols: impl Iterator<Item = u32>) -> Tree {
        let mut items: Vec<Item> = Vec::new();
        for symbol in symbols {
            push(&mut items, Item { what: What::Event(symbol), count: 1 });
        }
        let mut bodies = Bodies::default();
        let mut work = 0;
        let mut width = 2;
        while 2 * width <= items.len() && work < MOST_WORK {
            work += items.len();
            width = match folded(&items, width, &mut bodies) {
                Some(shorter) => {
                    items = shorter;
                    2
                }
                None => width + 1,
            };
        }
        let mut tree = Tree { loops: Loops::default(), counts: Vec::new() };
        tree.add(&items, &bodies);
        tree
    }

    fn add(&mut self, items: &[Item], bodies: &Bodies) {
        for item in items {
            self.counts.push(item.count);
            match item.what {
                What::Event(symbol) => self.loops.nodes.push(Node::Event(symbol)),
                What::Body(body) => {
                    let at = self.loops.nodes.len();
                    self.loops.nodes.push(Node::Loop { inside: 0 });
                    self.add(&bodies.all[body], bodies);
                    let inside = (self.loops.nodes.len() - at - 1) as u32;
                    self.loops.nodes[at] = Node::Loop { inside };
                }
            }
        }
    }
}

/// The nodes around each node, outermost first, and itself: those whose counts its occurrences are numbered by.
pub fn around(loops: &Loops) -> Vec<Vec<usize>> {
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut around = Vec::with_capacity(loops.nodes.len());
    for (at, node) in loops.nodes.iter().enumerate() {
        open.retain(|(_, end)| *end > at);
        around.push(open.iter().map(|(node, _)| *node).chain([at]).collect());
        if let Node::Loop { inside } = node {
            open.push((at, at + 1 + *inside as usize));
        }
    }
    around
}

/// Who is told of a node and of the turns around it.
pub type See<'a, E> = &'a mut dyn FnMut(usize, &[u64]) -> Result<(), E>;

/// Every event in order: its node, and which turn of each of the nodes around it this is.
pub fn each<E>(loops: &Loops, counts: &[u64], see: See<'_, E>) -> Result<(), E> {
    within(loops, counts, 0..loops.nodes.len(), &mut Vec::new(), see)
}

fn within<E>(
    loops: &Loops,
    counts: &[u64],
    nodes: std::ops::Range<usize>,
    turns: &mut Vec<u64>,
    see: See<'_, E>,
) -> Result<(), E> {
    let mut at = nodes.start;
    while at < nodes.end {
        let inside = match loops.nodes[at] {
            Node::Event(_) => 0,
            Node::Loop { inside } => inside as usize,
        };
        for turn in 0..counts[at] {
            turns.push(turn);
            if inside == 0 {
                see(at, turns)?;
            } else {
                within(loops, counts, at + 1..at + 1 + inside, turns, see)?;
            }
            turns.pop();
        }
        at += 1 + inside;
    }
    Ok(())
}

fn push(items: &mut Vec<Item>, item: Item) {
    match items.last_mut() {
        Some(last) if last.what == item.what => last.count += item.count,
        _ => items.push(item),
    }
}

/// With all that stands there at least twice in a row, in this width, made a loop; `None` where nothing does.
fn folded(items: &[Item], width: usize, bodies: &mut Bodies) -> Option<Vec<Item>> {
    let again = |at: usize| {
        at + 2 * width <= items.len() && items[at..at + width] == items[at + width..at + 2 * width]
    };
    let first = (0..items.len()).find(|at| again(*at))?;
    let mut out: Vec<Item> = items[..first].to_vec();
    let mut at = first;
    while at < items.len() {
        if !again(at) {
            push(&mut out, items[at]);
            at += 1;
            continue;
        }
        let body = &items[at..at + width];
        let count = items[at..].chunks_exact(width).take_while(|next| *next == body).count();
        push(&mut out, Item { what: What::Body(bodies.number(body)), count: count as u64 });
        at += count * width;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Tree {
        Tree::of(text.bytes().map(u32::from))
    }

    fn back(tree: &Tree) -> String {
        let mut text = String::new();
        let done: Result<(), ()> = each(&tree.loops, &tree.counts, &mut |node, _| {
            if let Node::Event(symbol) = tree.loops.nodes[node] {
                text.push(symbol as u8 as char);
            }
            Ok(())
        });
        done.unwrap();
        text
    }

    #[test]
    fn a_tree_gives_the_sequence_back() {
        for text in ["", "a", "aaaa", "abababc", "xababcababcababcy", "abcbcbcd", "aabaabaab", "abbabbabbc"] {
            assert_eq!(back(&tree(text)), text);
        }
    }

    #[test]
    fn trip_counts_do_not_change_the_tree() {
        let few = tree(&format!("i{}f", "sabababr".repeat(3)));
        let many = tree(&format!("i{}f", format!("s{}r", "ab".repeat(9)).repeat(20)));
        assert_eq!(few.loops, many.loops);
        assert_ne!(few.counts, many.counts);
        assert_eq!(around(&few.loops)[4], [1, 3, 4]);
    }
}
