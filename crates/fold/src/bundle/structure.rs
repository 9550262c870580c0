//! The order of a rank's symbols, by either folder.

use crate::grammar::{self, Grammar};
use crate::loops::{self, Loops};

use super::SymbolEntry;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Structure {
    Rules(Grammar),
    /// The shape alone. The times are lanes of the cohort, before those of its symbols, one for each node.
    Loops(Loops),
}

impl Structure {
    /// Every distinct symbol, in the order of a cohort's lanes: for rules, of first appearance in the expansion; for
    /// loops, in the tree.
    pub fn symbols(&self) -> Vec<u32> {
        match self {
            Structure::Rules(grammar) => grammar.counts().into_iter().map(|count| count.0).collect(),
            Structure::Loops(loops) => loops.symbols(),
        }
    }

    /// Symbols as they stand, whether or not they are in range.
    pub(super) fn mentioned(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Structure::Rules(grammar) => {
                Box::new(grammar.rules.iter().flatten().filter_map(|item| match item.symbol {
                    grammar::Symbol::Terminal(t) => Some(t),
                    grammar::Symbol::Rule(_) => None,
                }))
            }
            Structure::Loops(loops) => Box::new(loops.nodes.iter().filter_map(|node| match *node {
                loops::Node::Event(symbol) => Some(symbol),
                loops::Node::Loop { .. } => None,
            })),
        }
    }

    /// How many lanes come before those of the symbols.
    pub fn own_lanes(&self) -> usize {
        match self {
            Structure::Rules(_) => 0,
            Structure::Loops(loops) => loops.nodes.len(),
        }
    }

    pub fn loops(&self) -> Option<&Loops> {
        match self {
            Structure::Rules(_) => None,
            Structure::Loops(loops) => Some(loops),
        }
    }

    pub fn rules(&self) -> Option<&Grammar> {
        match self {
            Structure::Rules(grammar) => Some(grammar),
            Structure::Loops(_) => None,
        }
    }

    pub fn is_valid(&self) -> bool {
        match self {
            Structure::Rules(grammar) => grammar.validate().is_ok(),
            Structure::Loops(loops) => loops.validate().is_ok(),
        }
    }

    pub fn map_symbols(&self, f: impl FnMut(u32) -> u32) -> Structure {
        match self {
            Structure::Rules(grammar) => Structure::Rules(grammar.map_terminals(f)),
            Structure::Loops(loops) => Structure::Loops(loops.map_symbols(f)),
        }
    }

    /// Size of the folded form.
    pub fn items(&self) -> usize {
        match self {
            Structure::Rules(grammar) => grammar.items(),
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
        Structure::Rules(grammar)
    }
}

impl From<Loops> for Structure {
    fn from(loops: Loops) -> Structure {
        Structure::Loops(loops)
    }
}
