//! The order of a rank's symbols, by either folder.

use crate::grammar::Grammar;
use crate::loops::{Loops, Node};

use super::{Rules, SymbolEntry};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
/// In which order symbols came.
pub enum Structure {
    /// As a grammar.
    Rules(Rules),
    /// The shape alone. The times are lanes of the cohort, before those of its symbols, one for each node.
    Loops(Loops),
}

impl Structure {
    /// Every distinct symbol, in the order of a cohort's lanes: for rules, of first appearance in the expansion; for
    /// loops, in the tree.
    pub fn symbols(&self) -> Vec<u32> {
        match self {
            Structure::Rules(rules) => rules.symbols(),
            Structure::Loops(loops) => loops.symbols(),
        }
    }

    /// Symbols as they stand, whether or not they are in range.
    pub(super) fn mentioned(&self) -> Vec<u32> {
        let event = |node: &Node| match *node {
            Node::Event(symbol) => Some(symbol),
            Node::Loop { .. } => None,
        };
        match self {
            Structure::Rules(rules) => rules.mentioned(),
            Structure::Loops(loops) => loops.nodes.iter().filter_map(event).collect(),
        }
    }

    /// How many lanes come before those of the symbols.
    pub fn own_lanes(&self) -> usize {
        match self {
            Structure::Rules(_) => 0,
            Structure::Loops(loops) => loops.nodes.len(),
        }
    }

    /// The tree, if it is one of loops.
    pub fn loops(&self) -> Option<&Loops> {
        match self {
            Structure::Rules(_) => None,
            Structure::Loops(loops) => Some(loops),
        }
    }

    /// The grammar, if it is one of rules.
    pub fn rules(&self) -> Option<&Rules> {
        match self {
            Structure::Rules(rules) => Some(rules),
            Structure::Loops(_) => None,
        }
    }

    /// Holds together, as far as it says by itself.
    pub fn is_valid(&self) -> bool {
        match self {
            Structure::Rules(rules) => rules.is_valid(),
            Structure::Loops(loops) => loops.validate().is_ok(),
        }
    }

    /// The same over other symbols.
    pub fn map_symbols(&self, f: impl FnMut(u32) -> u32) -> Structure {
        match self {
            Structure::Rules(rules) => Structure::Rules(rules.map_symbols(f)),
            Structure::Loops(loops) => Structure::Loops(loops.map_symbols(f)),
        }
    }

    /// Size of the folded form.
    pub fn items(&self) -> usize {
        match self {
            Structure::Rules(rules) => rules.items(),
            Structure::Loops(loops) => loops.nodes.len(),
        }
    }
}

/// How many lanes a cohort with this structure has.
pub fn lanes_of(structure: &Structure, symbols: &[SymbolEntry]) -> usize {
    let of = |symbol: u32| symbols.get(symbol as usize).map_or(0, |s| usize::from(s.lanes));
    structure.own_lanes() + structure.symbols().into_iter().map(of).sum::<usize>()
}

impl From<Grammar> for Structure {
    fn from(grammar: Grammar) -> Structure {
        Structure::Rules(grammar.into())
    }
}

impl From<Loops> for Structure {
    fn from(loops: Loops) -> Structure {
        Structure::Loops(loops)
    }
}
