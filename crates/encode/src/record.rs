//! One encoded call: the bytes of its symbol and the numbers for its lanes. Reused from call to call.

use crate::wire;

#[derive(Debug, Default, Clone)]
pub struct Record {
    /// Identifies what kind of call this is; equal on all ranks and in all iterations that do the same.
    pub symbol: Vec<u8>,
    /// Where the call was made: a stack that [`crate::Tape::note_site`] was told of, or 0.
    pub site: u64,
    /// `(lane, value)`, in the order in which a reader asks for them.
    pub values: Vec<(u16, i64)>,
    lanes: u16,
    /// The last lane counts polls.
    polls: bool,
}

impl Record {
    pub(crate) fn begin(&mut self, function: u16, outcome: u8) {
        self.symbol.clear();
        self.site = 0;
        self.values.clear();
        self.lanes = 0;
        self.polls = false;
        wire::put(&mut self.symbol, u64::from(function));
        self.symbol.push(outcome);
    }

    /// How many lanes this symbol has. A function of the symbol's bytes.
    pub fn lanes(&self) -> u16 {
        self.lanes
    }

    pub(crate) fn tag(&mut self, tag: u8) {
        self.symbol.push(tag);
    }

    pub(crate) fn number(&mut self, value: u64) {
        wire::put(&mut self.symbol, value);
    }

    pub(crate) fn named(&mut self, constant: u16) {
        self.tag(wire::NAMED);
        self.number(u64::from(constant));
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.symbol.extend_from_slice(text);
    }

    /// Claims the next `n` lanes.
    pub(crate) fn reserve(&mut self, n: u16) -> u16 {
        let first = self.lanes;
        self.lanes += n;
        first
    }

    pub(crate) fn push(&mut self, lane: u16, value: i64) {
        self.values.push((lane, value));
    }

    /// A lane with one number.
    pub(crate) fn lane(&mut self, value: i64) {
        let lane = self.reserve(1);
        self.push(lane, value);
    }

    /// A last lane for how many polls failed before; [`crate::Tape`] knows.
    pub(crate) fn count_polls(&mut self) {
        self.lane(0);
        self.polls = true;
    }

    /// Moves the values into the symbol, as Pilgrim does: one symbol for each distinct call with all its arguments.
    pub fn inline_values(&mut self) {
        let at = wire::outcome_at(&self.symbol);
        self.symbol[at] |= wire::INLINE;
        if std::mem::take(&mut self.polls) {
            self.values.pop();
        }
        wire::put(&mut self.symbol, self.values.len() as u64);
        for &(_, value) in &self.values {
            wire::put(&mut self.symbol, wire::zigzag(value));
        }
        self.values.clear();
        self.lanes = 0;
    }
}
