//! Functions of the rank: the ranks of their parts, which often are those of an earlier one, and their numbers.

use std::collections::HashMap;
use std::hash::Hash;

use refrain_fold::ranks::{Dim, MapPart, Part, RankList, RankMap};

use crate::get::{Bad, Get};
use crate::sections::{read_parts, write_parts};
use crate::token::{Field, Put};

/// What was before, newest last: functions, and the ranks that their parts had (as rank lists whose parts may
/// interleave).
#[derive(Default)]
pub struct Past {
    shapes: Recent<RankList>,
    maps: Recent<RankMap>,
}

struct Recent<T> {
    list: Vec<T>,
    known: HashMap<T, usize>,
}

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent { list: Vec::new(), known: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Recent<T> {
    fn note(&mut self, one: &T) {
        self.known.insert(one.clone(), self.list.len());
        self.list.push(one.clone());
    }

    /// How long ago it was: the last is 1.
    fn ago(&self, one: &T) -> Option<u64> {
        self.known.get(one).map(|at| (self.list.len() - at) as u64)
    }

    fn at(&self, ago: u64) -> Option<&T> {
        self.list.get(self.list.len().checked_sub(usize::try_from(ago).ok()?)?)
    }
}

impl Past {
    /// Ranks that a function may well be of.
    pub fn note_ranks(&mut self, ranks: &RankList) {
        self.shapes.note(ranks);
    }
}

// How a function is told.
const NEW: u64 = 0;
/// This and every second after it: the ranks of an earlier one.
const RANKS: u64 = 1;
/// This and every second after it: an earlier one.
const WHOLE: u64 = 2;

/// Functions of more parts are not told by one token, so that a small file cannot stand for a lot.
const MOST_PARTS: usize = 256;

pub fn write(put: &mut Put, map: &RankMap, hint: u64, near: u32, past: &mut Past) {
    if let Some(ago) = past.maps.ago(map).filter(|_| map.parts.len() <= MOST_PARTS) {
        put.put(Field::MapShape, hint, WHOLE + 2 * (ago - 1));
        past.maps.note(map);
        return;
    }
    let part = |part: &MapPart| Part {
        start: part.start,
        dims: part.dims.iter().map(|dim| (dim.count, dim.stride)).collect(),
    };
    let shape = RankList { parts: map.parts.iter().map(part).collect() };
    match past.shapes.ago(&shape) {
        Some(ago) => put.put(Field::MapShape, hint, RANKS + 2 * (ago - 1)),
        None => {
            put.put(Field::MapShape, hint, NEW);
            write_parts(put, &shape, near);
        }
    }
    past.shapes.note(&shape);
    for part in &map.parts {
        put.signed(Field::MapValue, hint, part.value);
        for dim in &part.dims {
            put.signed(Field::MapStep, hint, dim.step);
        }
    }
    past.maps.note(map);
}

pub fn read(get: &mut Get, hint: u64, near: u32, past: &mut Past) -> Result<RankMap, Bad> {
    let how = get.get(Field::MapShape, hint)?;
    let missing = || Bad::new("a function of the rank like one that is not there");
    let map = match how {
        NEW => {
            let shape = read_parts(get, near)?;
            read_numbers(get, hint, shape, past)?
        }
        how if how % 2 == RANKS => {
            let shape = past.shapes.at(how / 2 + 1).ok_or_else(missing)?.clone();
            read_numbers(get, hint, shape, past)?
        }
        how => past.maps.at(how / 2).filter(|map| map.parts.len() <= MOST_PARTS).ok_or_else(missing)?.clone(),
    };
    past.maps.note(&map);
    Ok(map)
}

fn read_numbers(get: &mut Get, hint: u64, shape: RankList, past: &mut Past) -> Result<RankMap, Bad> {
    past.shapes.note(&shape);
    let mut parts = Vec::new();
    for part in shape.parts {
        let value = get.signed(Field::MapValue, hint)?;
        let dim = |(count, stride)| Ok(Dim { count, stride, step: get.signed(Field::MapStep, hint)? });
        let dims = part.dims.into_iter().map(dim).collect::<Result<_, Bad>>()?;
        parts.push(MapPart { start: part.start, value, dims });
    }
    Ok(RankMap { parts })
}
