//! Structure: a sequence of symbols as a context-free grammar with repeat counts.

/// One step of a rule: a symbol and how often it stands there in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Item {
    pub symbol: Symbol,
    pub count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Symbol {
    Terminal(u32),
    /// Index into `Grammar::rules`.
    Rule(u32),
}

/// A finished grammar: `rules[0]` is the start; no rule reaches itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Grammar {
    pub rules: Vec<Vec<Item>>,
}
