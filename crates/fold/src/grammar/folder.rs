//! Folding a sequence of symbols as it comes.

use super::Grammar;
use super::sequitur::Sequitur;
use crate::round::Round;

/// Longest round that is kept expanded for comparison.
const LONGEST_ROUND: u64 = 1 << 16;

/// Builds a [`Grammar`] symbol by symbol.
///
/// Once the sequence ends in a repetition, its next round is expected: symbols that keep to it are compared and
/// counted, and the grammar hears of them when one does not.
#[derive(Debug, Clone, Default)]
pub struct Folder {
    core: Sequitur,
    len: u64,
    /// One round of what the core ends with, and how much of it was seen that the core does not know of.
    round: Round<u32>,
}

impl Folder {
    /// With no symbols yet.
    pub fn new() -> Folder {
        Folder::default()
    }

    /// Symbols pushed so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Nothing was pushed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    /// The next symbol of the sequence.
    pub fn push(&mut self, symbol: u32) {
        self.len += 1;
        if !self.round.step(symbol) {
            self.push_unexpected(symbol, 1);
        }
    }

    /// The same symbol several times over, in the time of one.
    pub fn push_n(&mut self, symbol: u32, count: u64) {
        self.len = self.len.saturating_add(count);
        let left = count - self.round.step_n(symbol, count);
        if left > 0 {
            self.push_unexpected(symbol, left);
        }
    }

    /// The symbol that comes next if the sequence goes on as it did.
    #[inline]
    pub fn predicted(&self) -> Option<u32> {
        self.round.next()
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

    /// Forgets all that was pushed.
    pub fn restart(&mut self) {
        *self = Folder::new();
    }

    /// Bytes held beyond the struct itself.
    pub fn memory(&self) -> usize {
        self.core.memory() + self.round.memory()
    }

    /// Size of the grammar so far.
    pub(crate) fn size(&self) -> usize {
        self.core.size()
    }

    /// What is expected.
    pub(crate) fn round(&self) -> &Round<u32> {
        &self.round
    }

    /// That many whole rounds were seen, of one that was about to begin.
    pub(crate) fn add_laps(&mut self, laps: u64) {
        if self.round.whole().is_some() {
            self.len = self.len.saturating_add(self.round.add_laps(laps));
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
        self.round.surprise();
        if let Some((repeats, length)) = self.core.tail()
            && repeats >= 2
            && self.round.afford(length, LONGEST_ROUND)
        {
            self.core.expand_tail(&mut self.round);
        }
    }

    /// Ends the expectation: what was only counted goes into the grammar.
    fn tell_core(&mut self) {
        let Some(seen) = self.round.end() else { return };
        if seen.laps > 0 {
            self.core.repeat_tail(seen.laps);
        }
        seen.part().for_each(|(symbol, count)| self.core.append(symbol, count));
        self.round.reuse(seen);
    }
}
