//! Section `groups`: which ranks did the same, and which structure and streams they have.

use std::collections::HashMap;

use refrain_fold::bundle::{Bundle, Group, SymbolEntry};
use refrain_fold::grammar::Grammar;

use crate::get::{Bad, Get};
use crate::sections::{read_ranks, write_ranks};
use crate::token::{Field, Put, pair};

// How a lane's stream is told.
/// The one the last group with this symbol has there.
const SAME: u64 = 0;
/// The first that no lane had yet.
const NEXT: u64 = 1;
/// By its number.
const OTHER: u64 = 2;

/// For each structure, the lanes of its groups: (symbol, lane) in the order of `Group::lanes`.
pub fn layouts(structures: &[Grammar], symbols: &[SymbolEntry]) -> Vec<Vec<(u32, u16)>> {
    let lanes = |symbol: u32| symbols.get(symbol as usize).map_or(0, |s| s.lanes);
    let of = |structure: &Grammar| {
        structure.counts().iter().flat_map(|c| (0..lanes(c.0)).map(|lane| (c.0, lane))).collect()
    };
    structures.iter().map(of).collect()
}

/// What writer and reader both know of the groups before.
#[derive(Default)]
struct Past {
    first: u32,
    structures: u32,
    streams: u32,
    last: HashMap<(u32, u16), u32>,
    differs: u32,
}

impl Past {
    /// Whether the last groups agreed there, and where "there" is.
    fn hint(&self, (symbol, lane): (u32, u16)) -> u32 {
        pair(pair(symbol, lane.into()), u32::from(self.last.contains_key(&(symbol, lane))))
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
        for (&place, &stream) in layouts[group.structure as usize].iter().zip(&group.lanes) {
            let same = past.last.get(&place).copied();
            let how = if same == Some(stream) {
                SAME
            } else if stream == past.streams {
                NEXT
            } else {
                OTHER
            };
            put.put(Field::Lane, past.hint(place), how);
            if how == OTHER {
                put.put(Field::LaneStream, same.map_or(0, |s| s.wrapping_add(1)), stream.into());
            }
            past.streams = past.streams.max(stream.saturating_add(1));
            past.last.insert(place, stream);
            past.differs = past.differs << 1 | u32::from(how != SAME);
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
        for &place in layout {
            let same = past.last.get(&place).copied();
            let how = get.get(Field::Lane, past.hint(place))?;
            let stream = match (how, same) {
                (SAME, Some(same)) => same,
                (NEXT, _) => past.streams,
                (OTHER, _) => get.small(Field::LaneStream, same.map_or(0, |s| s.wrapping_add(1)))?,
                _ => return Err(Bad::new("a lane like one that is not there")),
            };
            past.streams = past.streams.max(stream.saturating_add(1));
            past.last.insert(place, stream);
            past.differs = past.differs << 1 | u32::from(how != SAME);
            lanes.push(stream);
        }
        groups.push(Group { thread, ranks, structure, lanes, digest: get.get(Field::Plain, 64)? });
    }
    Ok(groups)
}
