//! Folding a sequence of symbols as it comes.

use super::Grammar;
use super::sequitur::Sequitur;

/// Longest cycle that is kept expanded for comparison.
const LONGEST_CYCLE: u64 = 1 << 16;

/// Builds a [`Grammar`] symbol by symbol.
///
/// Once the sequence ends in a repetition, its next round is expected: symbols that keep to it are compared and
/// counted, and the grammar hears of them when one does not.
#[derive(Debug, Clone, Default)]
pub struct Folder {
    core: Sequitur,
    len: u64,
    /// One round of what the core ends with, expanded; empty while nothing is expected.
    cycle: Vec<u32>,
    /// How far into the round we are.
    at: usize,
    /// Rounds seen that the core does not know of.
    laps: u64,
    /// What expanding cycles may cost: earned by pushes, so that it stays linear in them.
    credit: u64,
}

impl Folder {
    pub fn new() -> Folder {
        Folder::default()
    }

    /// Symbols pushed so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn push(&mut self, symbol: u32) {
        if self.cycle.get(self.at) == Some(&symbol) {
            self.len += 1;
            self.at += 1;
            if self.at == self.cycle.len() {
                self.at = 0;
                self.laps += 1;
            }
        } else {
            self.push_unexpected(symbol, 1);
        }
    }

    /// The same symbol several times over.
    pub fn push_n(&mut self, symbol: u32, mut count: u64) {
        if self.cycle[..] == [symbol] {
            self.laps += count;
            self.len += count;
            return;
        }
        while count > 0 && self.cycle.get(self.at) == Some(&symbol) {
            self.push(symbol);
            count -= 1;
        }
        if count > 0 {
            self.push_unexpected(symbol, count);
        }
    }

    /// The symbol that comes next if the sequence goes on as it did.
    pub fn predicted(&self) -> Option<u32> {
        self.cycle.get(self.at).copied()
    }

    /// The grammar of what was pushed so far. Folding can go on afterwards.
    pub fn finish(&self) -> Grammar {
        self.clone().into_grammar()
    }

    /// As `finish`, without the copy.
    pub fn into_grammar(mut self) -> Grammar {
        self.tell_core();
        self.core_grammar()
    }

    /// Bytes held beyond the struct itself.
    pub(crate) fn memory(&self) -> usize {
        self.core.memory() + self.cycle.capacity() * 4
    }

    /// Size of the grammar so far.
    pub(crate) fn size(&self) -> usize {
        self.core.size()
    }

    /// The round that is expected, when it is about to begin.
    pub(crate) fn next_cycle(&self) -> Option<&[u32]> {
        (self.at == 0 && !self.cycle.is_empty()).then_some(&self.cycle)
    }

    /// What is left of the round that is expected.
    pub(crate) fn rest_of_cycle(&self) -> &[u32] {
        &self.cycle[self.at..]
    }

    /// That many whole rounds of `next_cycle` were seen.
    pub(crate) fn add_laps(&mut self, laps: u64) {
        if self.next_cycle().is_some() {
            self.laps += laps;
            self.len = self.len.saturating_add(laps.saturating_mul(self.cycle.len() as u64));
        }
    }

    /// The grammar without what is known to continue its last item.
    pub(crate) fn core_grammar(&self) -> Grammar {
        let (mut rules, _) = self.core.extract();
        if rules.is_empty() {
            rules.push(Vec::new());
        }
        Grammar { rules }
    }

    #[inline(never)]
    fn push_unexpected(&mut self, symbol: u32, count: u64) {
        self.tell_core();
        self.core.append(symbol, count);
        self.len += count;
        self.credit = self.credit.saturating_add(2);
        if let Some((repeats, length)) = self.core.tail()
            && repeats >= 2
            && length <= LONGEST_CYCLE.min(self.credit)
        {
            self.credit -= length;
            self.core.expand_tail(&mut self.cycle);
        }
    }

    /// Ends the expectation: what was only counted goes into the grammar.
    fn tell_core(&mut self) {
        if self.cycle.is_empty() {
            return;
        }
        let matched = self.laps.saturating_mul(self.cycle.len() as u64).saturating_add(self.at as u64);
        self.credit = self.credit.saturating_add(matched);
        if self.laps > 0 {
            self.core.repeat_tail(self.laps);
        }
        for run in self.cycle[..self.at].chunk_by(|a, b| a == b) {
            self.core.append(run[0], run.len() as u64);
        }
        self.cycle.clear();
        self.at = 0;
        self.laps = 0;
    }
}
