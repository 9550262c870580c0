//! Reading one thread of one rank back, in order, without touching the others.

use std::collections::HashMap;
use std::rc::Rc;

use super::template;
use super::{Bundle, Error, Lane, SideKind, Structure, get};
use crate::loops;

type Numbers<'a> = Box<dyn Iterator<Item = i64> + 'a>;

/// The calls of one thread of one rank: [`Walk::next_symbol`] steps, [`Walk::value`] reads what hangs off the symbol.
pub struct Walk<'a> {
    symbols: Box<dyn Iterator<Item = u32> + 'a>,
    /// By symbol: where its lanes start in `values`, and how many there are.
    lanes: HashMap<u32, (usize, u16)>,
    values: Vec<Numbers<'a>>,
    current: Option<(usize, u16)>,
    /// Side lanes: their kind and, by symbol, their numbers.
    sides: Vec<(SideKind, HashMap<u32, Numbers<'a>>)>,
    symbol: u32,
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
    /// `None` where nothing is recorded of that thread of that rank.
    pub fn new(bundle: &'a Bundle, rank: u32, thread: u32) -> Result<Option<Walk<'a>>, Error> {
        let Some(member) = bundle.member(rank, thread) else { return Ok(None) };
        let Some(index) = bundle.cohorts.iter().position(|c| c.ranks.contains(member)) else {
            return Ok(None);
        };
        let cohort = &bundle.cohorts[index];
        let structure = get(&bundle.structures, "structure", cohort.structure)?;
        let mut lanes = HashMap::new();
        let own = structure.own_lanes();
        let mut start = own;
        for symbol in structure.symbols() {
            let count = get(&bundle.symbols, "symbol", symbol)?.lanes;
            lanes.insert(symbol, (start, count));
            start += usize::from(count);
        }
        if start != cohort.lanes.len() {
            return Err(Error::Lanes { cohort: index, have: cohort.lanes.len(), need: start });
        }
        let may_lack = structure.loops().is_some();
        let numbers = |(at, lane): (usize, &'a Lane)| -> Result<Box<dyn Iterator<Item = i64> + 'a>, Error> {
            let Some((stream, own)) = lane.of_rank(member) else {
                // A rank that never comes by.
                return match may_lack {
                    true => Ok(Box::new(std::iter::empty())),
                    false => Err(Error::Numbers { cohort: index, lane: at }),
                };
            };
            let stream = get(&bundle.streams, "stream", stream)?;
            let own = (!own.is_empty()).then(|| Rc::new(template::own_numbers(stream, &own)));
            Ok(Box::new(stream.iter_with(own)))
        };
        let mut values = cohort.lanes.iter().enumerate().map(numbers).collect::<Result<Vec<_>, _>>()?;
        let mut sides = Vec::new();
        for side in &cohort.sides {
            let mut of_symbols = HashMap::new();
            for (symbol, lane) in structure.symbols().into_iter().zip(&side.lanes) {
                if let Some(lane) = lane {
                    of_symbols.insert(symbol, numbers((cohort.lanes.len(), lane))?);
                }
            }
            sides.push((side.kind, of_symbols));
        }
        let symbols: Box<dyn Iterator<Item = u32>> = match structure {
            Structure::Rules(grammar) => Box::new(grammar.iter()),
            Structure::Loops(loops) => {
                let none = || -> Box<dyn Iterator<Item = i64>> { Box::new(std::iter::empty()) };
                let times = values.iter_mut().take(own).map(|times| std::mem::replace(times, none()));
                Box::new(loops::Cursor::new(loops, times.collect()))
            }
        };
        Ok(Some(Walk { symbols, lanes, values, current: None, sides, symbol: 0 }))
    }

    /// Steps to the next call; its index in `Bundle::symbols`.
    pub fn next_symbol(&mut self) -> Option<u32> {
        let symbol = self.symbols.next()?;
        self.current = self.lanes.get(&symbol).copied();
        self.symbol = symbol;
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

    /// The next number of a kind that hangs off the current symbol: to be read once a step. `None` where it has none.
    pub fn side(&mut self, kind: SideKind) -> Option<i64> {
        let symbol = self.symbol;
        let (_, of_symbols) = self.sides.iter_mut().find(|side| side.0 == kind)?;
        of_symbols.get_mut(&symbol)?.next()
    }
}
