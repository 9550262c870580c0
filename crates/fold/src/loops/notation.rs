//! Trees of loops as the papers print them.
//!
//! `E1(4,2) E2(1,1 0) E3(1,0 1) E4`: the head of each loop is followed by how many events the body has and how often it
//! runs, from the outermost loop to the innermost. An event is a loop of itself; where it always runs once that is left
//! out. What is not the same each time is the list of all times.

use super::{Folded, Loops, Node};
use crate::grammar::{Item, Symbol};
use crate::stream::{Stream, Term};

/// So many numbers are listed, and as many items of a shape.
const LISTED: u64 = 16;

/// `vector` are the times of a node as text, empty or "1" where it always runs once; `name` is what a symbol is called.
pub fn notation(
    loops: &Loops,
    mut vector: impl FnMut(usize) -> String,
    mut name: impl FnMut(u32) -> String,
) -> String {
    // Events before each node.
    let mut before = Vec::with_capacity(loops.nodes.len() + 1);
    let mut events = 0usize;
    for node in &loops.nodes {
        before.push(events);
        events += usize::from(matches!(node, Node::Event(_)));
    }
    before.push(events);
    let members = |from: usize, to: usize| before[to.min(loops.nodes.len())] - before[from];
    let (mut out, mut heads) = (String::new(), String::new());
    for (at, node) in loops.nodes.iter().enumerate() {
        let times = vector(at);
        match *node {
            Node::Loop { inside } => {
                heads += &format!("({},{times})", members(at, at + 1 + inside as usize));
            }
            Node::Event(symbol) => {
                if !out.is_empty() {
                    out.push(' ');
                }
                out += &name(symbol);
                out += &std::mem::take(&mut heads);
                if !times.is_empty() && times != "1" {
                    out += &format!("(1,{times})");
                }
            }
        }
    }
    out
}

/// The first `length` numbers: one if they are all the same, the list if it is short, the shape otherwise: `5x3 (1 0)...`
/// is 5 three times, then 1 and 0 in turn to the end; `2 4 to 10` are 2, 4, 6, 8 and 10.
pub fn vector(times: &Stream, length: u64) -> String {
    if let Some((low, high)) = times.min_max(length)
        && low == high
    {
        return low.to_string();
    }
    if length <= LISTED {
        let numbers: Vec<String> = times.iter().take(length as usize).map(|n| n.to_string()).collect();
        return numbers.join(" ");
    }
    let mut room = LISTED;
    let Some((last, start)) = times.shape.rules.first().and_then(|start| start.split_last()) else {
        return String::new();
    };
    let mut parts: Vec<String> = Vec::new();
    for item in start {
        parts.extend(shape(times, item, &mut room));
    }
    let endless = match last.symbol {
        Symbol::Terminal(term) => times.terms.get(term as usize),
        Symbol::Rule(_) => None,
    };
    parts.extend(match endless {
        Some(&Term::Stride { start, step, .. }) if room > 0 => {
            Some(format!("{start} {}...", start.wrapping_add(step)))
        }
        _ => shape(times, &Item { count: 1, ..*last }, &mut room).map(|last| last + "..."),
    });
    if room == 0 {
        parts.push("...".to_string());
    }
    parts.join(" ")
}

/// Nothing where there is no room for it.
fn shape(times: &Stream, item: &Item, room: &mut u64) -> Option<String> {
    *room = room.checked_sub(1)?;
    let one = match item.symbol {
        Symbol::Terminal(term) => match *times.terms.get(term as usize)? {
            Term::Value(value) => value.to_string(),
            Term::Stride { start, step, count } => {
                let at = |i: u64| start.wrapping_add(step.wrapping_mul(i as i64));
                format!("{start} {} to {}", at(1), at(count.saturating_sub(1)))
            }
            Term::Block(block) => format!("[{} numbers]", times.blocks.get(block as usize)?.len()),
        },
        Symbol::Rule(rule) => {
            let body = times.shape.rules.get(rule as usize)?;
            let parts: Vec<String> = body.iter().filter_map(|item| shape(times, item, room)).collect();
            format!("({})", parts.join(" "))
        }
    };
    Some(if item.count == 1 { one } else { format!("{one}x{}", item.count) })
}

impl Folded {
    /// The tree as a line of text, with the times of each node: for tests and for looking at.
    pub fn notation(&self, name: impl FnMut(u32) -> String) -> String {
        notation(&self.loops, |node| vector(&self.times[node], self.lengths[node]), name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(values: impl IntoIterator<Item = i64>) -> Stream {
        let mut folder = crate::stream::Folder::new();
        values.into_iter().for_each(|v| folder.push(v));
        folder.finish()
    }

    #[test]
    fn figure_1() {
        let nodes: Vec<Node> = (1..5).map(Node::Event).collect();
        let nodes = [&[Node::Loop { inside: 4 }][..], &nodes].concat();
        let times = [stream([2]), stream([1, 1]), stream([1, 0]), stream([0, 1]), stream([1, 1])];
        let folded = Folded { loops: Loops { nodes }, times: times.to_vec(), lengths: vec![1, 2, 2, 2, 2] };
        assert_eq!(folded.notation(|s| format!("E{s}")), "E1(4,2) E2(1,1 0) E3(1,0 1) E4");
    }

    #[test]
    fn heads_of_several_loops() {
        let nodes = vec![
            Node::Loop { inside: 4 },
            Node::Loop { inside: 2 },
            Node::Event(0),
            Node::Event(1),
            Node::Event(2),
            Node::Event(3),
        ];
        let times = [stream([3]), stream([2, 4, 2]), stream([2]), stream([1]), stream([1]), stream([7])];
        let folded =
            Folded { loops: Loops { nodes }, times: times.to_vec(), lengths: vec![1, 3, 8, 8, 3, 1] };
        assert_eq!(folded.notation(|s| format!("e{s}")), "e0(3,3)(2,2 4 2)(1,2) e1 e2 e3(1,7)");
    }

    #[test]
    fn long_lists_are_shapes() {
        let of = |values: Vec<i64>| vector(&stream(values.clone()), values.len() as u64);
        assert_eq!(of(vec![5; 1000]), "5");
        assert_eq!(of(vec![]), "");
        assert_eq!(of(vec![1, 0, 0]), "1 0 0");
        assert_eq!(of([1, 0].repeat(500)), "(1 0)...");
        assert_eq!(of([vec![0; 99], vec![1]].concat()), "0x99 1...");
        assert_eq!(of((1..100).collect()), "1 2...");
        assert_eq!(of([(1..20).collect(), vec![7, 7]].concat()), "1 2 to 19 7...");
        let squares = of((1..100).map(|i| i * i % 71).collect());
        assert!(squares.len() < 100 && squares.ends_with("..."), "{squares}");
    }
}
