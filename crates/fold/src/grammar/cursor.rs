//! Walking a grammar's expansion without building it.

use super::{Item, Symbol};

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
    stack: Vec<Frame<'a>>,
}

#[derive(Debug, Clone, Copy)]
struct Frame<'a> {
    /// The whole body, and what of it is still to come.
    body: &'a [Item],
    rest: &'a [Item],
    /// How often the body comes again after this time.
    again: u64,
}

impl<'a> Runs<'a> {
    pub fn over(rules: &'a [Vec<Item>], items: &'a [Item]) -> Runs<'a> {
        Runs { rules, stack: vec![Frame { body: items, rest: items, again: 0 }] }
    }

    /// One expansion of a symbol.
    pub fn of(rules: &'a [Vec<Item>], symbol: Symbol) -> Runs<'a> {
        match symbol {
            Symbol::Rule(rule) => Runs::over(rules, rules.get(rule as usize).map_or(&[], |body| body)),
            Symbol::Terminal(_) => Runs::over(rules, &[]),
        }
    }
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
                        self.stack.push(Frame { body, rest: body, again: item.count - 1 });
                    }
                }
                _ => {}
            }
        }
    }
}
