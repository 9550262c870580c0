//! Folding a sequence of symbols into loops as it comes.

use super::Folded;
use super::Spot;
use super::elastic::Elastic;
use super::exact::Exact;

/// What makes two iterations of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matching {
    /// The same symbols in the same order, in inner loops too. An iteration is at most `window` events long, inner loops
    /// taken once.
    Exact {
        /// Events that an iteration has at most; [`WINDOW`] is usual.
        window: usize,
    },
    /// Much the same: what an iteration leaves out is noted, and so is how often an inner loop ran.
    Elastic,
}

/// What the authors of ScalaTrace used.
pub const WINDOW: usize = 500;

/// Builds a tree of loops symbol by symbol.
#[derive(Debug, Clone)]
pub struct Folder {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Exact(Exact),
    Elastic(Elastic),
}

impl Folder {
    /// With no symbols yet.
    pub fn new(matching: Matching) -> Folder {
        let kind = match matching {
            Matching::Exact { window } => Kind::Exact(Exact::new(window)),
            Matching::Elastic => Kind::Elastic(Elastic::new()),
        };
        Folder { kind }
    }

    /// Where a symbol comes from, from the outermost spot to the innermost, said before it is first pushed.
    pub fn define<S: Into<Spot>>(&mut self, symbol: u32, path: impl IntoIterator<Item = S>) {
        match &mut self.kind {
            // Equal is equal, wherever it comes from.
            Kind::Exact(_) => {}
            Kind::Elastic(elastic) => elastic.define(symbol, path.into_iter().map(S::into)),
        }
    }

    #[inline]
    /// The next symbol of the sequence.
    pub fn push(&mut self, symbol: u32) {
        match &mut self.kind {
            Kind::Exact(exact) => exact.push(symbol),
            Kind::Elastic(elastic) => elastic.push(symbol),
        }
    }

    /// The same symbol several times over. In constant time, but that the exact folder takes those one by one that were not
    /// expected.
    pub fn push_n(&mut self, symbol: u32, count: u64) {
        match &mut self.kind {
            Kind::Exact(exact) => exact.push_n(symbol, count),
            Kind::Elastic(elastic) => elastic.push_n(symbol, count),
        }
    }

    /// The symbol that comes next if the sequence goes on as it did.
    #[inline]
    pub fn predicted(&self) -> Option<u32> {
        match &self.kind {
            Kind::Exact(exact) => exact.predicted(),
            Kind::Elastic(elastic) => elastic.predicted(),
        }
    }

    /// The loops of what was pushed so far. Folding can go on afterwards.
    pub fn finish(&self) -> Folded {
        match &self.kind {
            Kind::Exact(exact) => exact.finish(),
            Kind::Elastic(elastic) => elastic.finish(),
        }
    }

    /// Forgets all that was pushed, but not where symbols come from.
    pub fn restart(&mut self) {
        match &mut self.kind {
            Kind::Exact(exact) => exact.restart(),
            Kind::Elastic(elastic) => elastic.restart(),
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        match &self.kind {
            Kind::Exact(exact) => exact.memory(),
            Kind::Elastic(elastic) => elastic.memory(),
        }
    }

    /// Symbols pushed so far.
    pub fn len(&self) -> u64 {
        match &self.kind {
            Kind::Exact(exact) => exact.len(),
            Kind::Elastic(elastic) => elastic.len(),
        }
    }

    /// Nothing was pushed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests;
