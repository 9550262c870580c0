//! Walking a grammar's expansion without building it.

use super::{Grammar, Item, Symbol, bottom_up, lengths};
use std::collections::HashMap;

/// The terminals of a grammar in order. Keeps one frame a level, so deep grammars are as good as flat ones.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    runs: Runs<'a>,
    symbol: u32,
    left: u64,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(runs: Runs<'a>) -> Cursor<'a> {
        Cursor { runs, symbol: 0, left: 0 }
    }
}

impl Grammar {
    /// The expanded sequence from place `n` on, and how often each terminal comes before it. Takes time in the size of the
    /// grammar, wherever the place is.
    pub fn iter_from(&self, n: u64) -> (Cursor<'_>, HashMap<u32, u64>) {
        let lengths = lengths(&self.rules, |_| 1);
        let mut before: HashMap<u32, u64> = HashMap::new();
        let mut times = vec![0u64; self.rules.len()];
        let mut add = |times: &mut [u64], symbol: Symbol, count: u64| {
            if count == 0 {
                return;
            }
            let sum = match symbol {
                Symbol::Terminal(t) => before.entry(t).or_default(),
                Symbol::Rule(rule) => match times.get_mut(rule as usize) {
                    Some(times) => times,
                    None => return,
                },
            };
            *sum = sum.saturating_add(count);
        };
        let mut runs = Runs::over(&self.rules, self.start());
        let found = runs.pass(n, &lengths, |_| 1, |symbol, count| add(&mut times, symbol, count));
        for &rule in bottom_up(&self.rules, [0]).iter().rev() {
            let outer = times[rule as usize];
            for item in self.rules[rule as usize].iter().filter(|_| outer > 0) {
                add(&mut times, item.symbol, outer.saturating_mul(item.count));
            }
        }
        let (symbol, left) = found.ok().map_or((0, 0), |found| (found.terminal, found.left));
        (Cursor { runs, symbol, left }, before)
    }

    /// The expanded sequence without all terminals but these. Rules that have none of them are not walked through.
    pub fn only(&self, wanted: impl Fn(u32) -> bool) -> impl Iterator<Item = u32> {
        let mut has = vec![false; self.rules.len()];
        let mut rules = vec![Vec::new(); self.rules.len()];
        for rule in bottom_up(&self.rules, [0]) {
            let items = self.rules[rule as usize].iter().filter(|item| match item.symbol {
                Symbol::Terminal(t) => wanted(t),
                Symbol::Rule(inner) => has.get(inner as usize).copied().unwrap_or(false),
            });
            rules[rule as usize] = items.copied().collect();
            has[rule as usize] = !rules[rule as usize].is_empty();
        }
        Owned::new(rules)
    }
}

/// The expansion of rules that are nobody else's.
struct Owned {
    rules: Vec<Vec<Item>>,
    /// Rules, the innermost last: which, the next item, and how often it comes again after this time.
    open: Vec<(usize, usize, u64)>,
    symbol: u32,
    left: u64,
}

impl Owned {
    fn new(rules: Vec<Vec<Item>>) -> Owned {
        let open = if rules.is_empty() { Vec::new() } else { vec![(0, 0, 0)] };
        Owned { rules, open, symbol: 0, left: 0 }
    }
}

impl Iterator for Owned {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.left == 0 {
            let (rule, at, again) = self.open.last_mut()?;
            let Some(item) = self.rules[*rule].get(*at) else {
                match again.checked_sub(1) {
                    Some(less) => (*at, *again) = (0, less),
                    None => drop(self.open.pop()),
                }
                continue;
            };
            *at += 1;
            match item.symbol {
                Symbol::Terminal(terminal) => (self.symbol, self.left) = (terminal, item.count),
                Symbol::Rule(rule) if item.count > 0 => self.open.push((rule as usize, 0, item.count - 1)),
                Symbol::Rule(_) => {}
            }
        }
        self.left -= 1;
        Some(self.symbol)
    }
}

impl Iterator for Cursor<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.left == 0 {
            (self.symbol, self.left) = self.runs.next()?;
        }
        self.left -= 1;
        Some(self.symbol)
    }
}

/// The terminals with how often each stands in a row, as the items have it (neighbours may be equal).
#[derive(Debug, Clone)]
pub(crate) struct Runs<'a> {
    rules: &'a [Vec<Item>],
    stack: Vec<Level<'a>>,
}

#[derive(Debug, Clone, Copy)]
struct Level<'a> {
    /// The whole body, and what of it is still to come.
    body: &'a [Item],
    rest: &'a [Item],
    /// How often the body comes again after this time.
    again: u64,
}

impl<'a> Runs<'a> {
    pub fn over(rules: &'a [Vec<Item>], items: &'a [Item]) -> Runs<'a> {
        Runs { rules, stack: vec![Level { body: items, rest: items, again: 0 }] }
    }

    /// One expansion of a symbol.
    pub fn of(rules: &'a [Vec<Item>], symbol: Symbol) -> Runs<'a> {
        match symbol {
            Symbol::Rule(rule) => Runs::over(rules, rules.get(rule as usize).map_or(&[], |body| body)),
            Symbol::Terminal(_) => Runs::over(rules, &[]),
        }
    }

    /// Passes over `n` numbers at once, from the beginning. A rule has so many of them by `lengths`, a terminal by `one`;
    /// `passed` is told what lies before. Where they end before that: how many are left to pass.
    pub fn pass(
        &mut self,
        mut n: u64,
        lengths: &[u64],
        one: impl Fn(u32) -> u64,
        mut passed: impl FnMut(Symbol, u64),
    ) -> Result<Found, u64> {
        while let Some(frame) = self.stack.last_mut() {
            let Some((item, rest)) = frame.rest.split_first() else {
                self.stack.pop();
                continue;
            };
            frame.rest = rest;
            let length = match item.symbol {
                Symbol::Terminal(t) => one(t),
                Symbol::Rule(rule) => lengths.get(rule as usize).copied().unwrap_or(0),
            };
            if n >= length.saturating_mul(item.count) {
                n -= length.saturating_mul(item.count);
                passed(item.symbol, item.count);
                continue;
            }
            let whole = n / length;
            n %= length;
            passed(item.symbol, whole);
            match item.symbol {
                Symbol::Terminal(terminal) => return Ok(Found { terminal, left: item.count - whole, at: n }),
                Symbol::Rule(rule) => {
                    let body = self.rules.get(rule as usize).map_or(&[][..], |body| body);
                    self.stack.push(Level { body, rest: body, again: item.count - 1 - whole });
                }
            }
        }
        Err(n)
    }
}

/// Where a place lies: in which terminal, how often that still comes with this time, and how far into it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub terminal: u32,
    pub left: u64,
    pub at: u64,
}

impl Iterator for Runs<'_> {
    /// Counts are at least one.
    type Item = (u32, u64);

    fn next(&mut self) -> Option<(u32, u64)> {
        loop {
            let frame = self.stack.last_mut()?;
            let Some((item, rest)) = frame.rest.split_first() else {
                if frame.again > 0 {
                    frame.again -= 1;
                    frame.rest = frame.body;
                } else {
                    self.stack.pop();
                }
                continue;
            };
            frame.rest = rest;
            match item.symbol {
                Symbol::Terminal(terminal) if item.count > 0 => return Some((terminal, item.count)),
                // A chain longer than there are rules would be a circle; in a valid grammar there is none.
                Symbol::Rule(rule) if item.count > 0 && self.stack.len() <= self.rules.len() => {
                    let body = self.rules.get(rule as usize).map_or(&[][..], |body| body);
                    if !body.is_empty() {
                        self.stack.push(Level { body, rest: body, again: item.count - 1 });
                    }
                }
                _ => {}
            }
        }
    }
}
