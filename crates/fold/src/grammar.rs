//! Structure: a sequence of symbols as a context-free grammar with repeat counts.
//!
//! ```
//! use refrain_fold::grammar::Folder;
//! let mut folder = Folder::new();
//! b"abcabcabcabcd".iter().for_each(|&letter| folder.push(letter.into()));
//! let grammar = folder.finish(); // (abc)x4 d
//! assert_eq!((grammar.len(), grammar.items()), (13, 5));
//! assert!(grammar.iter().eq(b"abcabcabcabcd".iter().map(|&letter| letter.into())));
//! ```

mod cursor;
mod folder;
mod forest;
mod index;
mod sequitur;

pub use cursor::Cursor;
pub(crate) use cursor::Runs;
pub use folder::Folder;
pub use forest::{Forest, join};

use std::collections::HashMap;

/// One step of a rule: a symbol and how often it stands there in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Item {
    /// What stands there.
    pub symbol: Symbol,
    /// How often in a row; at least once.
    pub count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
/// What a rule is made of.
pub enum Symbol {
    /// A symbol of the sequence.
    Terminal(u32),
    /// Index into `Grammar::rules`.
    Rule(u32),
}

/// A finished grammar: `rules[0]` is the start; no rule reaches itself. Rules are numbered by first use in a
/// depth-first walk, so equal sequences folded from scratch give equal grammars.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Grammar {
    /// By number; the first is the start.
    pub rules: Vec<Vec<Item>>,
}

/// Why rules from a file are not a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There are no rules.
    #[error("the grammar has no start rule")]
    NoStart,
    /// A rule names one that is not there.
    #[error("rule {used_in} of a grammar names rule {rule}, but there are only {rules}")]
    NoSuchRule {
        /// The one that it names.
        rule: u32,
        /// The rule that names it.
        used_in: u32,
        /// How many there are.
        rules: usize,
    },
    /// A rule other than the start is empty.
    #[error("rule {rule} of a grammar is empty")]
    EmptyRule {
        /// Which one.
        rule: u32,
    },
    /// Something stands there no times.
    #[error("item {item} of rule {rule} of a grammar has a count of zero")]
    ZeroCount {
        /// In which rule.
        rule: u32,
        /// Which item of it.
        item: usize,
    },
    /// A rule reaches itself.
    #[error("rule {rule} of a grammar contains itself")]
    Circle {
        /// Which one.
        rule: u32,
    },
    /// A rule stands for more than 2^64 symbols.
    #[error("rule {rule} of a grammar expands to more than 2^64 symbols")]
    TooLong {
        /// Which one.
        rule: u32,
    },
}

impl Grammar {
    /// The expanded sequence.
    pub fn iter(&self) -> Cursor<'_> {
        Cursor::new(Runs::over(&self.rules, self.start()))
    }

    /// Length of the expanded sequence; `u64::MAX` if it is longer.
    pub fn len(&self) -> u64 {
        lengths(&self.rules, |_| 1).first().copied().unwrap_or(0)
    }

    /// The sequence has no symbols.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size of the folded form.
    pub fn items(&self) -> usize {
        self.rules.iter().map(Vec::len).sum()
    }

    /// Every distinct terminal in order of first appearance in the expansion, and how often it occurs there.
    pub fn counts(&self) -> Vec<(u32, u64)> {
        let order = bottom_up(&self.rules, [0]);
        let mut times = vec![0u64; self.rules.len()];
        times.iter_mut().take(1).for_each(|start| *start = 1);
        let mut total: HashMap<u32, u64> = HashMap::new();
        for &rule in order.iter().rev() {
            let outer = times[rule as usize];
            for item in &self.rules[rule as usize] {
                let occurs = outer.saturating_mul(item.count);
                let sum = match item.symbol {
                    Symbol::Terminal(t) => total.entry(t).or_default(),
                    Symbol::Rule(r) if (r as usize) < times.len() => &mut times[r as usize],
                    Symbol::Rule(_) => continue,
                };
                *sum = sum.saturating_add(occurs);
            }
        }
        let mut counts = Vec::with_capacity(total.len());
        walk(&self.rules, 0, |_, item| {
            if let Symbol::Terminal(t) = item.symbol
                && let Some(count) = total.remove(&t)
            {
                counts.push((t, count));
            }
        });
        counts
    }

    /// The same grammar over other terminals.
    pub fn map_terminals(&self, mut f: impl FnMut(u32) -> u32) -> Grammar {
        let mut map = |item: &Item| match item.symbol {
            Symbol::Terminal(t) => Item { symbol: Symbol::Terminal(f(t)), ..*item },
            Symbol::Rule(_) => *item,
        };
        Grammar { rules: self.rules.iter().map(|body| body.iter().map(&mut map).collect()).collect() }
    }

    /// A start, rule numbers in range, no circles, no zero counts, no empty rule but the start, lengths within `u64`:
    /// what a grammar from a file must satisfy before anything else is done with it.
    pub fn validate(&self) -> Result<(), Error> {
        if self.rules.is_empty() {
            return Err(Error::NoStart);
        }
        check_rules(&self.rules, &[0])
    }

    fn start(&self) -> &[Item] {
        self.rules.first().map_or(&[], |start| start)
    }
}

impl FromIterator<u32> for Grammar {
    fn from_iter<I: IntoIterator<Item = u32>>(symbols: I) -> Grammar {
        let mut folder = Folder::new();
        symbols.into_iter().for_each(|symbol| folder.push(symbol));
        folder.into_grammar()
    }
}

/// The `starts`, which must be in range, may be empty; no other rule may.
fn check_rules(rules: &[Vec<Item>], starts: &[u32]) -> Result<(), Error> {
    let mut may_be_empty = vec![false; rules.len()];
    for &start in starts {
        may_be_empty[start as usize] = true;
    }
    for (rule, body) in (0..).zip(rules) {
        if body.is_empty() && !may_be_empty[rule as usize] {
            return Err(Error::EmptyRule { rule });
        }
        for (at, item) in body.iter().enumerate() {
            if item.count == 0 {
                return Err(Error::ZeroCount { rule, item: at });
            }
            if let Symbol::Rule(inner) = item.symbol {
                match rules.get(inner as usize) {
                    None => return Err(Error::NoSuchRule { rule: inner, used_in: rule, rules: rules.len() }),
                    // An empty start inside a rule would be walked through in vain, perhaps 2^64 times.
                    Some(body) if body.is_empty() => return Err(Error::EmptyRule { rule: inner }),
                    Some(_) => {}
                }
            }
        }
    }
    let order = bottom_up(rules, 0..rules.len() as u32);
    let mut place = vec![0; rules.len()];
    for (at, &rule) in order.iter().enumerate() {
        place[rule as usize] = at;
    }
    let mut length = vec![0u64; rules.len()];
    for &rule in &order {
        for item in &rules[rule as usize] {
            let one = match item.symbol {
                Symbol::Terminal(_) => 1,
                Symbol::Rule(inner) if place[inner as usize] >= place[rule as usize] => {
                    return Err(Error::Circle { rule: inner });
                }
                Symbol::Rule(inner) => length[inner as usize],
            };
            let sum = item.count.checked_mul(one).and_then(|all| all.checked_add(length[rule as usize]));
            length[rule as usize] = sum.ok_or(Error::TooLong { rule })?;
        }
    }
    Ok(())
}

/// The rules reachable from `roots`, each after all those it uses (circles, which no valid grammar has, are cut).
pub(crate) fn bottom_up(rules: &[Vec<Item>], roots: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut order = Vec::new();
    let mut seen = vec![false; rules.len()];
    let mut stack: Vec<(u32, usize)> = Vec::new();
    for root in roots {
        if seen.get(root as usize) == Some(&false) {
            seen[root as usize] = true;
            stack.push((root, 0));
        }
        while let Some((rule, at)) = stack.pop() {
            match rules[rule as usize].get(at) {
                None => order.push(rule),
                Some(item) => {
                    stack.push((rule, at + 1));
                    if let Symbol::Rule(inner) = item.symbol
                        && seen.get(inner as usize) == Some(&false)
                    {
                        seen[inner as usize] = true;
                        stack.push((inner, 0));
                    }
                }
            }
        }
    }
    order
}

/// Length of the expansion of each rule reachable from the start, saturating; zero for the others. A terminal has the
/// length `one`.
pub(crate) fn lengths(rules: &[Vec<Item>], one: impl Fn(u32) -> u64) -> Vec<u64> {
    let mut length = vec![0u64; rules.len()];
    for rule in bottom_up(rules, [0]) {
        length[rule as usize] = rules[rule as usize].iter().fold(0, |sum, item| {
            let one = match item.symbol {
                Symbol::Terminal(t) => one(t),
                Symbol::Rule(inner) => length.get(inner as usize).copied().unwrap_or(0),
            };
            sum.saturating_add(item.count.saturating_mul(one))
        });
    }
    length
}

/// Visits each item of each reachable rule once, depth first, with the number of its rule.
pub(crate) fn walk(rules: &[Vec<Item>], start: u32, mut visit: impl FnMut(u32, &Item)) {
    let mut seen = vec![false; rules.len()];
    let mut stack: Vec<(u32, usize)> = Vec::new();
    let mut enter = |rule: u32, stack: &mut Vec<(u32, usize)>| {
        if seen.get(rule as usize) == Some(&false) {
            seen[rule as usize] = true;
            stack.push((rule, 0));
        }
    };
    enter(start, &mut stack);
    while let Some((rule, at)) = stack.pop() {
        if let Some(item) = rules[rule as usize].get(at) {
            stack.push((rule, at + 1));
            visit(rule, item);
            if let Symbol::Rule(inner) = item.symbol {
                enter(inner, &mut stack);
            }
        }
    }
}

/// The rules reachable from a start, which becomes the first, numbered by first use. Keeps its table between calls, so
/// that each costs only what it reaches.
#[derive(Default)]
pub(crate) struct Renumber {
    number: Vec<Option<u32>>,
}

impl Renumber {
    pub fn from(&mut self, rules: &[Vec<Item>], start: u32) -> Vec<Vec<Item>> {
        self.number.resize(rules.len(), None);
        let mut bodies = Vec::new();
        let mut reached = Vec::new();
        let mut enter = |rule: u32, bodies: &mut Vec<Vec<Item>>, stack: &mut Vec<(u32, u32, usize)>| {
            let number = self.number.get_mut(rule as usize)?;
            Some(*number.get_or_insert_with(|| {
                let new = bodies.len() as u32;
                bodies.push(Vec::with_capacity(rules[rule as usize].len()));
                reached.push(rule);
                stack.push((rule, new, 0));
                new
            }))
        };
        let mut stack = Vec::new();
        enter(start, &mut bodies, &mut stack);
        while let Some((rule, new, at)) = stack.pop() {
            let Some(item) = rules[rule as usize].get(at) else { continue };
            stack.push((rule, new, at + 1));
            let symbol = match item.symbol {
                Symbol::Rule(inner) => enter(inner, &mut bodies, &mut stack).map(Symbol::Rule),
                terminal => Some(terminal),
            };
            bodies[new as usize].extend(symbol.map(|symbol| Item { symbol, count: item.count }));
        }
        for rule in reached {
            self.number[rule as usize] = None;
        }
        if bodies.is_empty() {
            bodies.push(Vec::new());
        }
        bodies
    }
}

#[cfg(test)]
mod tests;
