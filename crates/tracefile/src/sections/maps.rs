//! Functions of the rank: the ranks of their parts, which often are those of an earlier one, and their numbers.

use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

use refrain_fold::ranks::{Checks, Dim, MapPart, RankList, RankMap, View};

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
    list: Vec<Rc<T>>,
    /// Where each was last: only the writer asks.
    known: HashMap<Rc<T>, usize>,
}

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent { list: Vec::new(), known: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Recent<T> {
    fn note(&mut self, one: &T) {
        let one = match self.known.get(one) {
            Some(&at) => self.list[at].clone(),
            None => Rc::new(one.clone()),
        };
        self.known.insert(one.clone(), self.list.len());
        self.list.push(one);
    }

    /// How long ago it was: the last is 1.
    fn ago(&self, one: &T) -> Option<u64> {
        self.known.get(one).map(|at| (self.list.len() - at) as u64)
    }

    fn at(&self, ago: u64) -> Option<Rc<T>> {
        self.list.get(self.list.len().checked_sub(usize::try_from(ago).ok()?)?).cloned()
    }
}

impl Past {
    /// Ranks that a function may well be of.
    pub fn note_ranks(&mut self, ranks: &RankList) {
        self.shapes.note(ranks);
    }

    /// The same for a reader.
    pub fn read_ranks(&mut self, ranks: RankList) {
        self.shapes.list.push(Rc::new(ranks));
    }
}

// How a function is told.
const NEW: u64 = 0;
/// This and every second after it: the ranks of an earlier one.
const RANKS: u64 = 1;
/// This and every second after it: an earlier one.
const WHOLE: u64 = 2;

/// Functions of more parts are not told by one token, so that a small file cannot stand for a lot.
const MOST_PARTS: usize = 1 << 16;

pub fn write(put: &mut Put, map: &RankMap, hint: u64, near: u32, past: &mut Past) {
    if let Some(ago) = past.maps.ago(map).filter(|_| map.parts.len() <= MOST_PARTS) {
        put.put(Field::MapShape, hint, WHOLE + 2 * (ago - 1));
        past.maps.note(map);
        return;
    }
    if let Some(View { side, skew, columns }) = map.view {
        put.put(Field::MapShape, hint, NEW);
        put.put(Field::RankParts, 0, 0);
        put.put(Field::MapView, 0, columns.into());
        put.put(Field::MapView, 1, side.into());
        put.put(Field::MapView, 2, skew.into());
    }
    let shape = map.shape();
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

/// What a part that need not be read takes, in steps of [`Checks`]: memory above all.
pub const A_PART: u64 = 64;

pub fn read(
    get: &mut Get,
    hint: u64,
    near: u32,
    past: &mut Past,
    checks: &mut Checks,
) -> Result<Rc<RankMap>, Bad> {
    let missing = || Bad::new("a function of the rank like one that is not there");
    let mut how = get.get(Field::MapShape, hint)?;
    let mut new = None;
    let mut view = None;
    if how == NEW {
        let shape = read_parts(get, near)?;
        if shape.is_empty() {
            let columns = get.get(Field::MapView, 0)? != 0;
            let (side, skew) = (get.small(Field::MapView, 1)?, get.small(Field::MapView, 2)?);
            view = Some(View { side, skew, columns });
            how = get.get(Field::MapShape, hint)?;
        } else {
            new = Some(shape);
        }
    }
    let map = match how {
        NEW => {
            let shape = Rc::new(new.map_or_else(|| read_parts(get, near), Ok)?);
            Rc::new(RankMap { parts: read_numbers(get, hint, shape, past)?, view })
        }
        how if how % 2 == RANKS => {
            let shape = past.shapes.at(how / 2 + 1).ok_or_else(missing)?;
            Rc::new(RankMap { parts: read_numbers(get, hint, shape, past)?, view })
        }
        _ if view.is_some() => return Err(missing()),
        how => {
            let map = past.maps.at(how / 2).filter(|map| map.parts.len() <= MOST_PARTS);
            let map = map.ok_or_else(missing)?;
            checks.spend(map.parts.len() as u64 * A_PART)?;
            map
        }
    };
    past.maps.list.push(map.clone());
    Ok(map)
}

fn read_numbers(get: &mut Get, hint: u64, shape: Rc<RankList>, past: &mut Past) -> Result<Vec<MapPart>, Bad> {
    past.shapes.list.push(shape.clone());
    let mut parts = Vec::new();
    for part in &shape.parts {
        let value = get.signed(Field::MapValue, hint)?;
        let dim = |&(count, stride): &_| Ok(Dim { count, stride, step: get.signed(Field::MapStep, hint)? });
        let dims = part.dims.iter().map(dim).collect::<Result<_, Bad>>()?;
        parts.push(MapPart { start: part.start, value, dims });
    }
    Ok(parts)
}
