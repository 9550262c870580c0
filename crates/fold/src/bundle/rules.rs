//! The rules of a structure, which may be *sealed*: bytes instead of a grammar.
//!
//! Calls that do not repeat make long grammars, and in memory a grammar takes some twenty times what it takes in a file.
//! While ranks merge nobody looks into it: its hash, its symbols and its length are enough. So long ones are sealed, and
//! what rank 0 holds of ranks that are all different is about what it will write.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash as Hashing, Hasher};
use std::ops::Deref;
use std::sync::OnceLock;

use crate::grammar::{Grammar, Item, Symbol};

use super::codec::{In, Out};
use super::hash::Hash;
use super::{Error, hash};

/// Shorter grammars stay as they are: most programs have no longer ones.
const SEALED_ITEMS: usize = 64;

/// A grammar. Where it is sealed, to use it as one opens it for good; [`Rules::open`] does so for once.
#[derive(Clone)]
pub struct Rules {
    sealed: Option<Sealed>,
    open: OnceLock<Grammar>,
}

/// A valid grammar as bytes.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Sealed {
    /// Of the structure: see [`hash::of_structure`].
    hash: Hash,
    items: usize,
    /// What its terminals stand for, in the order of first appearance in the expansion.
    symbols: Box<[u32]>,
    bytes: Box<[u8]>,
}

impl Rules {
    /// The grammar, which stays sealed if it is.
    pub fn open(&self) -> Cow<'_, Grammar> {
        match (&self.sealed, self.open.get()) {
            (Some(sealed), None) => Cow::Owned(sealed.open()),
            _ => Cow::Borrowed(self),
        }
    }

    /// Seals it if it is long; `symbols` are the hashes of what its terminals stand for.
    pub(super) fn seal(&mut self, symbols: &[Hash]) {
        let Some(grammar) = self.open.get() else { return };
        if self.sealed.is_none() && grammar.items() < SEALED_ITEMS {
            return;
        }
        if self.sealed.is_none() {
            self.sealed = Sealed::new(grammar, || hash::of_rules(grammar, symbols));
        }
        if self.sealed.is_some() {
            self.open.take();
        }
    }

    /// The grammar; what is left of rules that are not sealed has none.
    pub(super) fn take_open(&mut self) -> Grammar {
        match (&self.sealed, self.open.take()) {
            (_, Some(grammar)) => grammar,
            (sealed, None) => sealed.as_ref().map(Sealed::open).unwrap_or_default(),
        }
    }

    /// Another grammar for the same sequence, sealed as this one is.
    pub(super) fn replaced(&self, grammar: Grammar) -> Rules {
        match self.sealed.as_ref().and_then(|old| Sealed::new(&grammar, || old.hash)) {
            Some(sealed) => sealed.into(),
            None => grammar.into(),
        }
    }

    /// Every distinct symbol, in the order of first appearance in the expansion.
    pub(super) fn symbols(&self) -> Vec<u32> {
        match &self.sealed {
            Some(sealed) => sealed.symbols.to_vec(),
            None => self.counts().into_iter().map(|count| count.0).collect(),
        }
    }

    /// Symbols as they stand, whether or not they are in range.
    pub(super) fn mentioned(&self) -> Vec<u32> {
        if let Some(sealed) = &self.sealed {
            return sealed.symbols.to_vec();
        }
        let terminal = |item: &Item| match item.symbol {
            Symbol::Terminal(t) => Some(t),
            Symbol::Rule(_) => None,
        };
        self.rules.iter().flatten().filter_map(terminal).collect()
    }

    pub(super) fn is_valid(&self) -> bool {
        match &self.sealed {
            Some(sealed) => sealed.is_valid(),
            None => self.validate().is_ok(),
        }
    }

    pub(super) fn map_symbols(&self, mut f: impl FnMut(u32) -> u32) -> Rules {
        match &self.sealed {
            Some(sealed) => {
                let symbols = sealed.symbols.iter().map(|symbol| f(*symbol)).collect();
                Sealed { symbols, ..sealed.clone() }.into()
            }
            None => self.map_terminals(f).into(),
        }
    }

    /// Size of the folded form.
    pub(super) fn items(&self) -> usize {
        self.sealed.as_ref().map_or_else(|| Grammar::items(self), |sealed| sealed.items)
    }

    pub(super) fn hash(&self, symbols: &[Hash]) -> Hash {
        self.sealed.as_ref().map_or_else(|| hash::of_rules(self, symbols), |sealed| sealed.hash)
    }

    pub(super) fn sealed(&self) -> Option<&Sealed> {
        self.sealed.as_ref()
    }
}

impl Deref for Rules {
    type Target = Grammar;

    fn deref(&self) -> &Grammar {
        self.open.get_or_init(|| self.sealed.as_ref().map(Sealed::open).unwrap_or_default())
    }
}

impl From<Grammar> for Rules {
    fn from(grammar: Grammar) -> Rules {
        Rules { sealed: None, open: grammar.into() }
    }
}

impl From<Sealed> for Rules {
    fn from(sealed: Sealed) -> Rules {
        Rules { sealed: Some(sealed), open: OnceLock::new() }
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Grammar::default().into()
    }
}

impl PartialEq for Rules {
    fn eq(&self, other: &Rules) -> bool {
        match (&self.sealed, &other.sealed) {
            (Some(one), Some(other)) => one.symbols == other.symbols && one.bytes == other.bytes,
            _ => self.open() == other.open(),
        }
    }
}

impl Eq for Rules {}

impl Hashing for Rules {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Hashing::hash(&*self.open(), state);
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.open().fmt(f)
    }
}

impl Sealed {
    /// `None` where a symbol is in no rule that is used.
    fn new(grammar: &Grammar, hash: impl FnOnce() -> Hash) -> Option<Sealed> {
        let symbols: Box<[u32]> = grammar.counts().into_iter().map(|count| count.0).collect();
        let number: HashMap<u32, u32> = symbols.iter().copied().zip(0..).collect();
        let mut out = Out::default();
        out.number(grammar.rules.len() as u64);
        for rule in &grammar.rules {
            out.number(rule.len() as u64);
            for item in rule {
                let (kind, index) = match item.symbol {
                    Symbol::Terminal(t) => (0, *number.get(&t)?),
                    Symbol::Rule(r) => (1, r),
                };
                let repeats = u64::from(item.count != 1);
                out.number(u64::from(index) << 2 | kind << 1 | repeats);
                if repeats == 1 {
                    out.number(item.count);
                }
            }
        }
        Some(Sealed { hash: hash(), items: grammar.items(), symbols, bytes: out.bytes.into() })
    }

    /// Nothing if the bytes are not those of a grammar.
    fn open(&self) -> Grammar {
        self.read(|t| self.symbols.get(t as usize).copied().unwrap_or(u32::MAX)).unwrap_or_default()
    }

    fn read(&self, symbol: impl Fn(u32) -> u32) -> Result<Grammar, Error> {
        let mut from = In::new(&self.bytes);
        let rules = from.list(|from| {
            from.list(|from| {
                let head = from.number()?;
                let index = u32::try_from(head >> 2).map_err(|_| Error::Structure { index: 0 })?;
                let count = if head & 1 == 0 { 1 } else { from.number()? };
                let symbol =
                    if head & 2 == 0 { Symbol::Terminal(symbol(index)) } else { Symbol::Rule(index) };
                Ok(Item { symbol, count })
            })
        })?;
        from.end()?;
        Ok(Grammar { rules })
    }

    /// Of what came from elsewhere.
    fn is_valid(&self) -> bool {
        let Ok(grammar) = self.read(|t| t) else { return false };
        grammar.validate().is_ok()
            && grammar.items() == self.items
            && grammar.counts().into_iter().map(|count| count.0).eq(0..self.symbols.len() as u32)
    }

    pub(super) fn put(&self, out: &mut Out) {
        out.wide(self.hash);
        out.number(self.items as u64);
        out.indices(&self.symbols);
        out.block(&self.bytes);
    }

    pub(super) fn take(from: &mut In<'_>) -> Result<Sealed, Error> {
        Ok(Sealed {
            hash: from.wide()?,
            items: from.small()?,
            symbols: from.indices()?.into(),
            bytes: from.block()?.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    fn calls(seed: u64, length: usize) -> Grammar {
        let mut random = Rng::with_seed(seed);
        (0..length).map(|_| 10 + random.u64(..4) as u32).collect()
    }

    fn sealed(grammar: &Grammar) -> Rules {
        let mut rules = Rules::from(grammar.clone());
        rules.seal(&[7; 20]);
        rules
    }

    #[test]
    fn a_long_grammar_comes_back_from_its_bytes() {
        let grammar = calls(1, 5000);
        let rules = sealed(&grammar);
        let bytes = rules.sealed().unwrap().bytes.len();
        assert!(8 * bytes < 16 * grammar.items() + 40 * grammar.rules.len(), "{bytes}");
        assert!(rules.is_valid() && rules == grammar.clone().into());
        assert_eq!(rules.items(), grammar.items());
        assert_eq!(rules.symbols(), Rules::from(grammar.clone()).symbols());
        assert_eq!(rules.hash(&[7; 20]), hash::of_rules(&grammar, &[7; 20]));
        assert!(matches!(rules.open(), Cow::Owned(_)), "it stays sealed");
        assert_eq!((*rules).items(), grammar.items());
        assert!(matches!(rules.open(), Cow::Borrowed(_)), "it stays open");
    }

    #[test]
    fn other_symbols_change_no_bytes() {
        let grammar = calls(2, 5000);
        let moved = sealed(&grammar).map_symbols(|symbol| 30 - symbol);
        assert_eq!(moved, grammar.map_terminals(|symbol| 30 - symbol).into());
        assert_eq!(moved.sealed().unwrap().bytes, sealed(&grammar).sealed().unwrap().bytes);
        assert_ne!(moved, sealed(&grammar));
    }

    #[test]
    fn a_short_grammar_stays_open() {
        assert!(sealed(&(0..9).collect()).sealed().is_none());
    }

    #[test]
    fn damage_is_noticed() {
        let rules = sealed(&calls(3, 2000));
        let good = rules.sealed().unwrap();
        let mut cut = good.clone();
        cut.bytes = good.bytes[..good.bytes.len() - 1].into();
        let mut fewer = good.clone();
        fewer.symbols = good.symbols[1..].into();
        let mut longer = good.clone();
        longer.items += 1;
        for bad in [cut, fewer, longer] {
            assert!(!Rules::from(bad).is_valid());
        }
    }
}
