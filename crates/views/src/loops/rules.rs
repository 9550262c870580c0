//! Loops read off the rules of a grammar, for runs whose calls are too many to be gone through.

use refrain_fold::grammar::{Grammar, Symbol};
use refrain_fold::loops::{Loops, Node};

/// So many nodes, and rules that are looked into on the way.
const MOST_NODES: usize = 1 << 14;
const MOST_STEPS: usize = 1 << 20;

/// What repeats in a rule is a loop. With how often each node runs each time its place is reached. `None` where rules are used
/// so often that the tree would be too large: in a tree each use is written out.
pub fn of_rules(grammar: &Grammar) -> Option<(Loops, Vec<u64>)> {
    let (mut nodes, mut times) = (Vec::new(), Vec::new());
    // Rules, the innermost last: which, the next item, and the loop it is the body of.
    let mut open: Vec<(u32, usize, Option<usize>)> = vec![(0, 0, None)];
    let mut steps = 0;
    while let Some((rule, at, around)) = open.pop() {
        steps += 1;
        if nodes.len() > MOST_NODES || steps > MOST_STEPS {
            return None;
        }
        let Some(item) = grammar.rules.get(rule as usize)?.get(at) else {
            if let Some(around) = around {
                let inside = nodes.len() - around - 1;
                nodes[around] = Node::Loop { inside: u32::try_from(inside).ok()? };
                if inside == 0 {
                    // No loop is empty.
                    nodes.truncate(around);
                    times.truncate(around);
                }
            }
            continue;
        };
        open.push((rule, at + 1, around));
        match item.symbol {
            Symbol::Terminal(symbol) => {
                nodes.push(Node::Event(symbol));
                times.push(item.count);
            }
            Symbol::Rule(inner) if item.count == 1 => open.push((inner, 0, None)),
            Symbol::Rule(inner) => {
                open.push((inner, 0, Some(nodes.len())));
                nodes.push(Node::Loop { inside: 0 });
                times.push(item.count);
            }
        }
    }
    Some((Loops { nodes }, times))
}

#[cfg(test)]
mod tests {
    use refrain_fold::grammar::Item;

    use super::*;

    fn item(symbol: Symbol, count: u64) -> Item {
        Item { symbol, count }
    }

    #[test]
    fn what_repeats_is_a_loop() {
        let (a, b, one, two) = (Symbol::Terminal(0), Symbol::Terminal(1), Symbol::Rule(1), Symbol::Rule(2));
        let rules = vec![
            vec![item(a, 1), item(one, 1 << 40), item(two, 1), item(b, 1)],
            vec![item(a, 3), item(two, 5)],
            vec![item(b, 1), item(a, 1)],
        ];
        let (loops, times) = of_rules(&Grammar { rules }).unwrap();
        let event = Node::Event;
        let expected = [
            event(0),
            Node::Loop { inside: 4 },
            event(0),
            Node::Loop { inside: 2 },
            event(1),
            event(0),
            event(1),
            event(0),
            event(1),
        ];
        assert_eq!(loops.nodes, expected);
        assert_eq!(times, [1, 1 << 40, 3, 5, 1, 1, 1, 1, 1]);
    }

    /// Each rule is the next one twice: 60 rules of two items, 2^60 nodes.
    #[test]
    fn a_tree_that_would_be_too_large() {
        let mut rules: Vec<Vec<Item>> =
            (1..60).map(|next| vec![item(Symbol::Rule(next), 1), item(Symbol::Rule(next), 1)]).collect();
        rules.push(vec![item(Symbol::Terminal(0), 2)]);
        assert!(of_rules(&Grammar { rules: rules.clone() }).is_none());
        // Nor are empty ones gone through for ever.
        rules[59].clear();
        assert!(of_rules(&Grammar { rules }).is_none());
    }
}
