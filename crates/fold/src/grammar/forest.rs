//! Many grammars as one: what they have in common is stored once.

use super::sequitur::Sequitur;
use super::{Cursor, Grammar, Item, Renumber, Runs, Symbol, bottom_up};
use std::collections::HashMap;

/// Several grammars over one set of rules. Each start reaches only what it needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Forest {
    /// Of all grammars.
    pub rules: Vec<Vec<Item>>,
    /// The start rule of each grammar; equal grammars have the same.
    pub starts: Vec<u32>,
}

/// Equal rules become one, then one Sequitur pass over all bodies finds what different rules share. Never has more
/// items than the grammars together.
pub fn join(structures: &[Grammar]) -> Forest {
    let mut core = Sequitur::default();
    let mut known: HashMap<Vec<Item>, u32> = HashMap::new();
    let mut starts = Vec::with_capacity(structures.len());
    for grammar in structures {
        let mut loaded = vec![None; grammar.rules.len().max(1)];
        for rule in bottom_up(&grammar.rules, [0]) {
            let body: Vec<Item> = grammar.rules[rule as usize]
                .iter()
                .filter_map(|item| match item.symbol {
                    Symbol::Terminal(_) => Some(*item),
                    Symbol::Rule(r) => {
                        let r = loaded.get(r as usize).copied().flatten()?;
                        Some(Item { symbol: Symbol::Rule(r), ..*item })
                    }
                })
                .collect();
            loaded[rule as usize] = Some(match known.get(&body) {
                Some(&same) => same,
                None => {
                    let new = core.load(&body);
                    known.insert(body, new);
                    new
                }
            });
        }
        starts.push(match loaded[0] {
            Some(start) => start,
            None => *known.entry(Vec::new()).or_insert_with(|| core.load(&[])),
        });
    }
    for start in starts {
        core.pin(start);
    }
    core.settle_all();
    let (rules, starts) = core.extract();
    Forest { rules, starts }
}

impl Forest {
    /// The grammars again, each with its own copy of the rules it reaches. Joining them gives this forest.
    pub fn split(&self) -> Vec<Grammar> {
        let mut renumber = Renumber::default();
        self.starts.iter().map(|&start| Grammar { rules: renumber.from(&self.rules, start) }).collect()
    }

    /// The expanded sequence of one of the grammars, straight from the shared rules.
    pub fn iter(&self, grammar: usize) -> Cursor<'_> {
        let start = self.starts.get(grammar).and_then(|&start| self.rules.get(start as usize));
        Cursor::new(Runs::over(&self.rules, start.map_or(&[], |body| body)))
    }

    /// Rule numbers in range, no circles, no zero counts, every length within `u64`: what a forest from a file must
    /// satisfy before anything else is done with it.
    pub fn validate(&self) -> Result<(), super::Error> {
        for &start in &self.starts {
            if start as usize >= self.rules.len() {
                return Err(super::Error::NoSuchRule {
                    rule: start,
                    used_in: start,
                    rules: self.rules.len(),
                });
            }
        }
        super::check_rules(&self.rules, &self.starts)
    }
}
