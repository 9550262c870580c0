//! Reading one thread of one rank back, in order, without touching the others.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::template;
use super::{Bundle, Error, Lane, SideKind, Structure, get};
use crate::loops;

type Symbols<'a> = Box<dyn Iterator<Item = u32> + 'a>;
type Numbers<'a> = Box<dyn Iterator<Item = i64> + 'a>;
/// Of one kind, by symbol.
type OfKind<'a> = (SideKind, HashMap<u32, Numbers<'a>>);

/// The calls of one thread of one rank: [`Walk::next_symbol`] steps, [`Walk::value`] reads what hangs off the symbol.
pub struct Walk<'a> {
    symbols: Symbols<'a>,
    /// By symbol: where its lanes start in `values`, and how many there are.
    lanes: HashMap<u32, (usize, u16)>,
    values: Vec<Numbers<'a>>,
    current: Option<(usize, u16)>,
    /// Side lanes: their kind and, by symbol, their numbers.
    sides: Vec<OfKind<'a>>,
    symbol: u32,
    /// Symbols that [`Walk::only`] looked at.
    passed: Rc<Cell<u64>>,
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
    /// `None` where nothing is recorded of that thread of that rank. Who asks for many ranks has an
    /// [`Index`](super::Index).
    pub fn new(bundle: &'a Bundle, rank: u32, thread: u32) -> Result<Option<Walk<'a>>, Error> {
        let Some(member) = bundle.member(rank, thread) else { return Ok(None) };
        let cohort = bundle.cohorts.iter().position(|cohort| cohort.ranks.contains(member));
        cohort.map(|cohort| Walk::of(bundle, cohort, member)).transpose()
    }

    /// The calls of one of the members of a cohort.
    pub fn of(bundle: &'a Bundle, cohort: usize, member: u32) -> Result<Walk<'a>, Error> {
        let source = Source::new(bundle, cohort, member)?;
        let values = source.values(|_| true, |_, _| 0)?;
        let symbols: Symbols<'a> = match source.structure {
            Structure::Rules(grammar) => Box::new(grammar.iter()),
            Structure::Loops(loops) => Box::new(loops::Cursor::new(loops, source.times(|_| 0)?)),
        };
        let sides = source.sides(|_| Some(0))?;
        Ok(source.walk(symbols, values, sides))
    }

    /// How often each symbol comes among the first `n` calls of one of the members of a cohort, where it does. Found in the
    /// folded form.
    pub fn before(bundle: &Bundle, cohort: usize, member: u32, n: u64) -> Result<Vec<(u32, u64)>, Error> {
        let source = Source::new(bundle, cohort, member)?;
        Ok(match source.structure {
            Structure::Rules(grammar) => grammar.iter_from(n).1.into_iter().collect(),
            Structure::Loops(loops) => {
                let mut counts: HashMap<u32, u64> = HashMap::new();
                for (node, runs) in loops.nodes.iter().zip(source.seek(loops, n).runs) {
                    if let loops::Node::Event(symbol) = node
                        && runs > 0
                    {
                        let count = counts.entry(*symbol).or_default();
                        *count = count.saturating_add(runs);
                    }
                }
                counts.into_iter().collect()
            }
        })
    }

    /// The same walk from call `n` on, found in the folded form. `taken` says how many numbers of a symbol's lane the calls
    /// before have taken, and `made` how often they were of a symbol.
    pub fn from(
        bundle: &'a Bundle,
        cohort: usize,
        member: u32,
        n: u64,
        taken: impl Fn(u32, u16) -> u64,
        made: impl Fn(u32) -> u64,
    ) -> Result<Walk<'a>, Error> {
        let source = Source::new(bundle, cohort, member)?;
        let values = source.values(|_| true, taken)?;
        let symbols: Symbols<'a> = match source.structure {
            Structure::Rules(grammar) => Box::new(grammar.iter_from(n).0),
            Structure::Loops(loops) => {
                let place = source.seek(loops, n);
                let times = source.times(|node| place.used.get(node).copied().unwrap_or(0))?;
                Box::new(loops::Cursor::at(loops, &place, times))
            }
        };
        let sides = source.sides(|symbol| Some(made(symbol)))?;
        Ok(source.walk(symbols, values, sides))
    }

    /// The same without all symbols but these. What has none of them is not walked through, as far as that can be told; the
    /// walk ends after `most` symbols of any kind.
    pub fn only(
        bundle: &'a Bundle,
        cohort: usize,
        member: u32,
        wanted: impl Fn(u32) -> bool,
        most: u64,
    ) -> Result<Walk<'a>, Error> {
        let source = Source::new(bundle, cohort, member)?;
        let wanted: HashSet<u32> = source.lanes.keys().copied().filter(|symbol| wanted(*symbol)).collect();
        let values = source.values(|symbol| wanted.contains(&symbol), |_, _| 0)?;
        let sides = source.sides(|symbol| wanted.contains(&symbol).then_some(0))?;
        let passed = Rc::new(Cell::new(0));
        let known = passed.clone();
        let pass = move |_: &u32| known.set(known.get() + 1);
        let symbols: Symbols<'a> = match source.structure {
            _ if wanted.is_empty() => Box::new(std::iter::empty()),
            Structure::Rules(grammar) => {
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                Box::new(grammar.only(move |symbol| wanted.contains(&symbol)).take(most).inspect(pass))
            }
            Structure::Loops(loops) => {
                let counts = bundle.counts(&bundle.cohorts[cohort], member).into_iter();
                let often = counts.filter(|(symbol, _)| wanted.contains(symbol)).map(|(_, often)| often);
                let all = usize::try_from(often.fold(0, u64::saturating_add)).unwrap_or(usize::MAX);
                let cursor = loops::Cursor::new(loops, source.times(|_| 0)?);
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                Box::new(
                    cursor.take(most).inspect(pass).filter(move |symbol| wanted.contains(symbol)).take(all),
                )
            }
        };
        Ok(Walk { passed, ..source.walk(symbols, values, sides) })
    }

    /// How many symbols of any kind a walk of [`Walk::only`] has gone through so far.
    pub fn passed(&self) -> u64 {
        self.passed.get()
    }

    /// Steps to the next call; its index in `Bundle::symbols`.
    pub fn next_symbol(&mut self) -> Option<u32> {
        let symbol = self.symbols.next()?;
        self.enter(symbol);
        Some(symbol)
    }

    /// The same for one who may not need its numbers; who does goes to them with [`Walk::enter`].
    pub fn pass_symbol(&mut self) -> Option<u32> {
        self.symbols.next()
    }

    /// To the numbers of the symbol that was passed last.
    pub fn enter(&mut self, symbol: u32) {
        self.current = self.lanes.get(&symbol).copied();
        self.symbol = symbol;
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

/// What a walk is made of.
struct Source<'a> {
    bundle: &'a Bundle,
    cohort: usize,
    member: u32,
    structure: &'a Structure,
    lanes: HashMap<u32, (usize, u16)>,
}

impl<'a> Source<'a> {
    fn new(bundle: &'a Bundle, index: usize, member: u32) -> Result<Source<'a>, Error> {
        let missing = Error::Index { what: "cohort", index: index as u64, len: bundle.cohorts.len() };
        let cohort = bundle.cohorts.get(index).ok_or(missing)?;
        let structure = get(&bundle.structures, "structure", cohort.structure)?;
        let mut lanes = HashMap::new();
        let mut start = structure.own_lanes();
        for symbol in structure.symbols() {
            let count = get(&bundle.symbols, "symbol", symbol)?.lanes;
            lanes.insert(symbol, (start, count));
            start += usize::from(count);
        }
        if start != cohort.lanes.len() {
            return Err(Error::Lanes { cohort: index, have: cohort.lanes.len(), need: start });
        }
        Ok(Source { bundle, cohort: index, member, structure, lanes })
    }

    /// Before its first symbol.
    fn walk(self, symbols: Symbols<'a>, values: Vec<Numbers<'a>>, sides: Vec<OfKind<'a>>) -> Walk<'a> {
        let Source { lanes, .. } = self;
        Walk { symbols, lanes, values, current: None, sides, symbol: 0, passed: Rc::default() }
    }

    /// By lane, the numbers of these symbols that are not yet taken; nothing for others, and for the times of loops.
    fn values(
        &self,
        wanted: impl Fn(u32) -> bool,
        taken: impl Fn(u32, u16) -> u64,
    ) -> Result<Vec<Numbers<'a>>, Error> {
        let lanes = self.bundle.cohorts[self.cohort].lanes.len();
        let mut values: Vec<Numbers<'a>> = Vec::with_capacity(lanes);
        values.resize_with(lanes, || Box::new(std::iter::empty()));
        for (&symbol, &(start, count)) in self.lanes.iter().filter(|(symbol, _)| wanted(**symbol)) {
            for lane in 0..count {
                let at = start + usize::from(lane);
                values[at] = self.numbers(at, taken(symbol, lane))?;
            }
        }
        Ok(values)
    }

    /// Of each node of loops, without those that are used up.
    fn times(&self, used: impl Fn(usize) -> u64) -> Result<Vec<Numbers<'a>>, Error> {
        (0..self.structure.own_lanes()).map(|node| self.numbers(node, used(node))).collect()
    }

    fn seek(&self, loops: &loops::Loops, n: u64) -> loops::Resume {
        let lanes = &self.bundle.cohorts[self.cohort].lanes;
        let times: Vec<_> =
            lanes[..loops.nodes.len()].iter().map(|lane| self.bundle.stream_of(lane, self.member)).collect();
        loops.seek(n, |node, first| {
            let sum = times[node].as_ref().map_or(0, |times| times.sum(first));
            u64::try_from(sum.max(0)).unwrap_or(u64::MAX)
        })
    }

    /// Side lanes by kind and symbol, without the first numbers of each that `passed` says; `None` leaves one out.
    fn sides(&self, passed: impl Fn(u32) -> Option<u64>) -> Result<Vec<OfKind<'a>>, Error> {
        let cohort = &self.bundle.cohorts[self.cohort];
        let mut sides = Vec::with_capacity(cohort.sides.len());
        let symbols = if cohort.sides.is_empty() { Vec::new() } else { self.structure.symbols() };
        for side in &cohort.sides {
            let mut of_symbols = HashMap::new();
            for (&symbol, lane) in symbols.iter().zip(&side.lanes) {
                if let (Some(lane), Some(passed)) = (lane, passed(symbol)) {
                    of_symbols.insert(symbol, self.of_lane(lane, cohort.lanes.len(), passed)?);
                }
            }
            sides.push((side.kind, of_symbols));
        }
        Ok(sides)
    }

    /// The numbers of a lane after the first `taken`.
    fn numbers(&self, lane: usize, taken: u64) -> Result<Numbers<'a>, Error> {
        self.of_lane(&self.bundle.cohorts[self.cohort].lanes[lane], lane, taken)
    }

    fn of_lane(&self, lane: &'a Lane, number: usize, taken: u64) -> Result<Numbers<'a>, Error> {
        let Some((stream, own)) = lane.of_rank(self.member) else {
            // A rank that never comes by.
            return match self.structure.loops() {
                Some(_) => Ok(Box::new(std::iter::empty())),
                None => Err(Error::Numbers { cohort: self.cohort, lane: number }),
            };
        };
        let stream = get(&self.bundle.streams, "stream", stream)?;
        let own = (!own.is_empty()).then(|| Rc::new(template::own_numbers(stream, &own)));
        Ok(Box::new(stream.iter_from_with(taken, own)))
    }
}
