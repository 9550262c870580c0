//! Reading one thread of one rank back, in order, without touching the others.

use std::collections::HashMap;

use super::{Bundle, Error, Group, get};

/// The calls of one group's ranks: [`Walk::next_symbol`] steps, [`Walk::value`] reads what hangs off the symbol.
pub struct Walk<'a> {
    symbols: Box<dyn Iterator<Item = u32> + 'a>,
    /// By symbol: where its lanes start in `values`, and how many there are.
    lanes: HashMap<u32, (usize, u16)>,
    values: Vec<Box<dyn Iterator<Item = i64> + 'a>>,
    current: Option<(usize, u16)>,
}

impl std::fmt::Debug for Walk<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walk")
            .field("lanes", &self.lanes)
            .field("current", &self.current)
            .finish_non_exhaustive()
    }
}

impl<'a> Walk<'a> {
    /// `group` must be of this bundle.
    pub fn new(bundle: &'a Bundle, group: &'a Group) -> Result<Walk<'a>, Error> {
        let structure = get(&bundle.structures, "structure", group.structure)?;
        let mut lanes = HashMap::new();
        let mut start = 0;
        for (symbol, _) in structure.counts() {
            let count = get(&bundle.symbols, "symbol", symbol)?.lanes;
            lanes.insert(symbol, (start, count));
            start += usize::from(count);
        }
        if start != group.lanes.len() {
            let index = bundle.groups.iter().position(|g| g == group).unwrap_or(0);
            return Err(Error::Lanes { group: index, have: group.lanes.len(), need: start });
        }
        let mut values: Vec<Box<dyn Iterator<Item = i64> + 'a>> = Vec::with_capacity(start);
        for &stream in &group.lanes {
            values.push(Box::new(get(&bundle.streams, "stream", stream)?.iter()));
        }
        Ok(Walk { symbols: Box::new(structure.iter()), lanes, values, current: None })
    }

    /// Steps to the next call; its index in `Bundle::symbols`.
    pub fn next_symbol(&mut self) -> Option<u32> {
        let symbol = self.symbols.next()?;
        self.current = self.lanes.get(&symbol).copied();
        Some(symbol)
    }

    /// The next number of the current symbol's lane: to be read once a step, for every lane. `None` where the symbol
    /// has no such lane.
    pub fn value(&mut self, lane: u16) -> Option<i64> {
        let (start, count) = self.current?;
        if lane >= count {
            return None;
        }
        self.values.get_mut(start + usize::from(lane))?.next()
    }
}
