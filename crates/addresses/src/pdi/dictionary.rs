//! The words that a PDI record can name with one byte.

use std::collections::HashMap;

use crate::Batch;
use crate::kind::is_fetch;

pub(crate) const WORDS: usize = 256;

/// The most common instruction words, most common first; what is missing is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dictionary {
    pub words: [u32; WORDS],
}

impl Default for Dictionary {
    fn default() -> Dictionary {
        Dictionary { words: [0; WORDS] }
    }
}

impl Dictionary {
    /// Words in hexadecimal, one a line.
    pub fn parse(text: &str) -> Result<Dictionary, String> {
        let mut words = [0; WORDS];
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        for (at, line) in lines.enumerate() {
            let word = u32::from_str_radix(line, 16)
                .map_err(|_| format!("{line:?} is no word of 32 bits in hex"))?;
            *words.get_mut(at).ok_or("a dictionary has 256 words at most")? = word;
        }
        Ok(Dictionary { words })
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// How often each instruction word occurs. Its size is that of the program, not of the trace.
#[derive(Debug, Clone, Default)]
pub struct WordCounts {
    counts: HashMap<u32, u64>,
}

impl WordCounts {
    pub fn new() -> WordCounts {
        WordCounts::default()
    }

    pub fn add(&mut self, batch: &Batch) {
        for (word, kind) in batch.words.iter().zip(&batch.kinds) {
            if is_fetch(*kind) {
                *self.counts.entry(*word).or_insert(0) += 1;
            }
        }
    }

    /// Fetches counted.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Different words.
    pub fn distinct(&self) -> usize {
        self.counts.len()
    }

    /// The most common words with their counts, most common first, the smaller of two alike.
    pub fn most_common(&self) -> Vec<(u32, u64)> {
        let mut all: Vec<(u32, u64)> = self.counts.iter().map(|(word, count)| (*word, *count)).collect();
        all.sort_by_key(|(word, count)| (std::cmp::Reverse(*count), *word));
        all.truncate(WORDS);
        all
    }

    pub fn dictionary(&self) -> Dictionary {
        let mut dictionary = Dictionary::default();
        for (slot, (word, _)) in dictionary.words.iter_mut().zip(self.most_common()) {
            *slot = word;
        }
        dictionary
    }
}

/// Where a word is in a dictionary: open addressing in a table that is never more than an eighth full.
pub(crate) struct Index {
    slots: Box<[(u32, u16); Index::SLOTS]>,
}

impl Index {
    const SLOTS: usize = 8 * WORDS;
    const FREE: u16 = u16::MAX;

    pub(crate) fn new(dictionary: &Dictionary) -> Index {
        let mut index = Index { slots: Box::new([(0, Index::FREE); Index::SLOTS]) };
        for (at, word) in dictionary.words.iter().enumerate() {
            let slot = index.slot(*word);
            if index.slots[slot].1 == Index::FREE {
                index.slots[slot] = (*word, at as u16);
            }
        }
        index
    }

    fn slot(&self, word: u32) -> usize {
        let mut slot = (word.wrapping_mul(0x9e37_79b1) >> 21) as usize;
        while self.slots[slot].1 != Index::FREE && self.slots[slot].0 != word {
            slot = (slot + 1) % Index::SLOTS;
        }
        slot
    }

    pub(crate) fn find(&self, word: u32) -> Option<u8> {
        u8::try_from(self.slots[self.slot(word)].1).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fields, Reference};

    #[test]
    fn the_most_common_come_first() {
        let mut batch = Batch::new();
        let fields = Fields { words: true, ..Fields::NONE };
        for (word, kind) in [(7, 2), (9, 2), (9, 6), (5, 2), (3, 0), (3, 1), (3, 0)] {
            batch.push(fields, Reference { word, kind, ..Reference::default() });
        }
        let mut counts = WordCounts::new();
        counts.add(&batch);
        assert_eq!(counts.most_common(), [(9, 2), (5, 1), (7, 1)]);
        assert_eq!(counts.dictionary().words[..4], [9, 5, 7, 0]);
    }

    #[test]
    fn every_word_is_found_where_it_is() {
        let words = std::array::from_fn(|at| (at as u32).wrapping_mul(0x0101_0101));
        let index = Index::new(&Dictionary { words });
        for (at, word) in words.iter().enumerate() {
            assert_eq!(index.find(*word), Some(at as u8));
        }
        assert_eq!(index.find(1), None);
        assert_eq!(Index::new(&Dictionary::default()).find(0), Some(0));
    }

    #[test]
    fn text() {
        let dictionary = Dictionary::parse("8fa40000\n\n 1 \n").unwrap();
        assert_eq!(dictionary.words[..3], [0x8fa4_0000, 1, 0]);
        assert!(Dictionary::parse("123456789").unwrap_err().contains("32 bits"));
        assert!(Dictionary::parse(&"1\n".repeat(257)).unwrap_err().contains("256"));
    }
}
