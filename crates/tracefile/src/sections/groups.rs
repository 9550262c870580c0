//! Section `groups`: which ranks did the same, and which structure and streams they have.

use std::collections::HashMap;

use refrain_fold::bundle::{Bundle, Group, SymbolEntry};
use refrain_fold::grammar::Grammar;

use crate::get::{Bad, Get};
use crate::sections::symbols::head;
use crate::sections::{read_ranks, write_ranks};
use crate::token::{Field, Put, pair, two};

// How a lane's stream is told.
/// The expected one: that of the last group with this symbol, or else of the last symbol that begins alike.
const SAME: u64 = 0;
/// The first that no lane had yet.
const NEXT: u64 = 1;
/// By its number.
const OTHER: u64 = 2;

/// For each structure, its symbols in the order of `Group::lanes`, each with how many lanes it has there.
pub type Layouts = Vec<Vec<(u32, u16)>>;

pub fn layouts(structures: &[Grammar], symbols: &[SymbolEntry]) -> Layouts {
    let lanes = |symbol: u32| symbols.get(symbol as usize).map_or(0, |s| s.lanes);
    let of = |structure: &Grammar| structure.counts().iter().map(|c| (c.0, lanes(c.0))).collect();
    structures.iter().map(of).collect()
}

/// (symbol, lane), one by one: a hostile file can announce more lanes than fit into memory.
pub fn places(layout: &[(u32, u16)]) -> impl Iterator<Item = (u32, u16)> {
    layout.iter().flat_map(|&(symbol, lanes)| (0..lanes).map(move |lane| (symbol, lane)))
}

/// What writer and reader both know of the groups before.
#[derive(Default)]
struct Past {
    first: u32,
    structures: u32,
    streams: u32,
    /// What the last group with the symbol has in each lane.
    last: HashMap<(u32, u16), u32>,
    /// The same for any symbol that begins alike: often another call of the same function.
    alike: HashMap<(u32, u16), u32>,
}

/// A lane's place: its symbol's number and head, and which of how many.
#[derive(Clone, Copy)]
struct Place {
    symbol: u32,
    head: u32,
    lane: u16,
    lanes: u16,
}

impl Place {
    fn new((symbol, lane): (u32, u16), symbols: &[SymbolEntry]) -> Place {
        let entry = &symbols[symbol as usize];
        Place { symbol, head: head(&entry.bytes), lane, lanes: entry.lanes }
    }
}

impl Past {
    /// The stream to expect.
    fn expected(&self, place: Place) -> Option<u32> {
        let same = self.last.get(&(place.symbol, place.lane));
        same.or_else(|| self.alike.get(&(place.head, place.lane))).copied()
    }

    /// Hints for how the stream is told, and for which it is.
    fn hints(&self, place: Place) -> (u64, u64) {
        let here = pair(place.symbol, place.lane.into());
        let to_go = u32::from(place.lanes - place.lane);
        let expected = self.expected(place).map_or(0, |s| s.wrapping_add(1));
        match self.last.contains_key(&(place.symbol, place.lane)) {
            true => (two(pair(here, 1), 1), two(pair(here, 1), expected)),
            false => {
                (two(pair(pair(place.head, place.lane.into()), 2), 2 + to_go), two(pair(to_go, 3), expected))
            }
        }
    }

    fn note(&mut self, place: Place, stream: u32) {
        self.streams = self.streams.max(stream.saturating_add(1));
        self.last.insert((place.symbol, place.lane), stream);
        self.alike.insert((place.head, place.lane), stream);
    }
}

pub fn write(put: &mut Put, bundle: &Bundle) {
    let layouts = layouts(&bundle.structures, &bundle.symbols);
    let mut past = Past::default();
    put.put(Field::Count, 4, bundle.groups.len() as u64);
    for group in &bundle.groups {
        put.put(Field::Thread, 0, group.thread.into());
        past.first = write_ranks(put, &group.ranks, past.first);
        put.signed(Field::GroupStructure, 0, i64::from(past.structures) - i64::from(group.structure));
        past.structures = past.structures.max(group.structure.saturating_add(1));
        for (place, &stream) in places(&layouts[group.structure as usize]).zip(&group.lanes) {
            let place = Place::new(place, &bundle.symbols);
            let how = if past.expected(place) == Some(stream) {
                SAME
            } else if stream == past.streams {
                NEXT
            } else {
                OTHER
            };
            let (how_hint, which_hint) = past.hints(place);
            put.put(Field::Lane, how_hint, how);
            if how == OTHER {
                put.put(Field::LaneStream, which_hint, stream.into());
            }
            past.note(place, stream);
        }
        put.put(Field::Plain, 64, group.digest);
    }
}

pub fn read(get: &mut Get, structures: &[Grammar], symbols: &[SymbolEntry]) -> Result<Vec<Group>, Bad> {
    let layouts = layouts(structures, symbols);
    let mut past = Past::default();
    let count = get.count(Field::Count, 4)?;
    let mut groups = Vec::new();
    for _ in 0..count {
        let thread = get.small(Field::Thread, 0)?;
        let (ranks, first) = read_ranks(get, past.first)?;
        past.first = first;
        let structure = i64::from(past.structures).checked_sub(get.signed(Field::GroupStructure, 0)?);
        let structure = structure.and_then(|s| u32::try_from(s).ok()).unwrap_or(u32::MAX);
        let layout = layouts.get(structure as usize);
        let layout = layout.ok_or_else(|| Bad(format!("structure {structure} does not exist")))?;
        past.structures = past.structures.max(structure.saturating_add(1));
        let mut lanes = Vec::new();
        for place in places(layout) {
            let place = Place::new(place, symbols);
            let (how_hint, which_hint) = past.hints(place);
            let stream = match (get.get(Field::Lane, how_hint)?, past.expected(place)) {
                (SAME, Some(same)) => same,
                (NEXT, _) => past.streams,
                (OTHER, _) => get.small(Field::LaneStream, which_hint)?,
                _ => return Err(Bad::new("a lane like one that is not there")),
            };
            past.note(place, stream);
            lanes.push(stream);
        }
        groups.push(Group { thread, ranks, structure, lanes, digest: get.get(Field::Plain, 64)? });
    }
    Ok(groups)
}
