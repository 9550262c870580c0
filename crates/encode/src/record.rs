//! One encoded call: the bytes of its symbol and the numbers for its lanes. Reused from call to call.

use refrain_model::Scope;

use crate::layout::{NewComm, Outcome};
use crate::shape::{Lanes, Step, lanes_of_comm};
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
    /// Where in `values` those of the first status begin.
    status: Option<usize>,
    /// The program ignores the statuses, and what they say of receives from any source or with any tag is kept.
    ignored: bool,
}

/// The numbers of a call, as a [`Tape`](crate::Tape) and a [`Journal`](crate::Journal) take them.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    pub numbers: &'a [(u16, i64)],
    /// Stands for these numbers and no others, for one thread; 0 stands for none. So what is the same again need not be
    /// compared number by number.
    pub(crate) mark: u32,
}

impl<'a> From<&'a [(u16, i64)]> for Values<'a> {
    fn from(numbers: &'a [(u16, i64)]) -> Values<'a> {
        Values { numbers, mark: 0 }
    }
}

impl<'a> From<&'a Vec<(u16, i64)>> for Values<'a> {
    fn from(numbers: &'a Vec<(u16, i64)>) -> Values<'a> {
        Values { numbers, mark: 0 }
    }
}

impl Record {
    pub(crate) fn begin(&mut self, function: u16, outcome: u8) {
        self.symbol.clear();
        self.site = 0;
        self.values.clear();
        self.lanes = 0;
        self.polls = false;
        self.status = None;
        self.ignored = false;
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

    /// Says that the numbers of a parameter are in lanes, and which.
    pub(crate) fn claim(&mut self, step: &Step, outcome: Outcome) -> Lanes {
        self.tag(step.tag());
        let lanes = step.lanes(self.lanes, outcome).expect("fewer than 2^16 lanes");
        self.lanes = lanes.end;
        lanes
    }

    /// The same of statuses that the program ignores.
    pub(crate) fn claim_ignored(&mut self, step: &Step, outcome: Outcome) -> Lanes {
        let lanes = self.claim(step, outcome);
        if let Some(tag) = self.symbol.last_mut() {
            *tag = wire::IGNORED;
        }
        self.ignored = true;
        lanes
    }

    /// Whether something is kept of statuses that the program ignores.
    pub(crate) fn keeps_ignored(&self) -> bool {
        self.ignored
    }

    /// The same of a new communicator, whose tag has been written.
    pub(crate) fn claim_comm(&mut self, scope: Scope, group: u8) -> NewComm {
        self.tag(group);
        let (new, end) = lanes_of_comm(scope, group, self.lanes).expect("fewer than 2^16 lanes");
        self.lanes = end;
        new
    }

    /// The numbers of a status come next.
    pub(crate) fn note_status(&mut self) {
        self.status.get_or_insert(self.values.len());
    }

    /// Where in `values` those of the first status begin.
    pub(crate) fn status(&self) -> Option<usize> {
        self.status
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
