//! Walking a tree of loops.

use super::{Loops, Node, Resume};

/// The symbols in order. `I` are the times of each node.
#[derive(Debug, Clone)]
pub struct Cursor<'a, I> {
    nodes: &'a [Node],
    times: Vec<I>,
    /// Bodies, the innermost last.
    open: Vec<Body>,
    symbol: u32,
    left: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Body {
    pub start: usize,
    pub end: usize,
    /// The next node.
    pub at: usize,
    /// How often the body comes again after this time.
    pub again: u64,
    /// Something happened in this iteration.
    pub alive: bool,
}

impl<'a, I: Iterator<Item = i64>> Cursor<'a, I> {
    /// `loops` must be valid. A node without times does not run.
    pub fn new(loops: &'a Loops, times: Vec<I>) -> Cursor<'a, I> {
        let end = loops.nodes.len();
        let root = Body { start: 0, end, at: 0, again: 0, alive: false };
        Cursor { nodes: &loops.nodes, times, open: vec![root], symbol: 0, left: 0 }
    }

    /// Goes on at a place of these loops ([`Loops::seek`]). The times are those that are left.
    pub fn at(loops: &'a Loops, place: &Resume, times: Vec<I>) -> Cursor<'a, I> {
        let Resume { open, symbol, left, .. } = place;
        Cursor { nodes: &loops.nodes, times, open: open.clone(), symbol: *symbol, left: *left }
    }

    fn advance(&mut self) -> Option<()> {
        loop {
            let body = self.open.last_mut()?;
            if body.at >= body.end {
                // An iteration in which nothing happened is the last one: no folder makes others, and a hostile file
                // would have us wait for ever.
                if body.again > 0 && body.alive {
                    body.again -= 1;
                    (body.at, body.alive) = (body.start, false);
                } else {
                    let alive = body.alive;
                    self.open.pop();
                    if let Some(outer) = self.open.last_mut() {
                        outer.alive |= alive;
                    }
                }
                continue;
            }
            let at = body.at;
            let times = self.times.get_mut(at).and_then(Iterator::next).unwrap_or(0);
            let times = u64::try_from(times).unwrap_or(0);
            match *self.nodes.get(at)? {
                Node::Event(symbol) => {
                    body.at += 1;
                    if times > 0 {
                        body.alive = true;
                        (self.symbol, self.left) = (symbol, times);
                        return Some(());
                    }
                }
                Node::Loop { inside } => {
                    let (start, end) = (at + 1, at + 1 + inside as usize);
                    body.at = end;
                    if times > 0 {
                        self.open.push(Body { start, end, at: start, again: times - 1, alive: false });
                    }
                }
            }
        }
    }
}

impl<I: Iterator<Item = i64>> Iterator for Cursor<'_, I> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.left == 0 {
            self.advance()?;
        }
        self.left -= 1;
        Some(self.symbol)
    }
}
