//! Streams: a sequence of numbers by its shape.

use crate::grammar::Grammar;

/// A finished stream: an *endless* sequence that agrees with the numbers seen. How many of them count is known
/// elsewhere (from the structure), so a constant is the same stream whether it was seen ten times or a million.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stream {
    /// What the shape's terminals stand for.
    pub terms: Vec<Term>,
    /// The order of the terms. The last item of the start rule goes on for ever, whatever its count.
    pub shape: Grammar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Term {
    Value(i64),
    /// `start, start + step, ...`, `count` numbers of them (endless where it is the last item of the stream).
    Stride {
        start: i64,
        step: i64,
        count: u64,
    },
}
