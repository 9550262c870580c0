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
    /// The writer's: where functions that see the ranks in another order were last, whatever way the grid was turned.
    turned: HashMap<RankMap, usize>,
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

    /// How long ago there was the same function on the same grid, if it was turned, and by how much less.
    fn turned(&self, map: &RankMap) -> Option<(u64, [i64; 2])> {
        let at = *self.turned.get(&straight(map)?)?;
        let by = map.turned_from(self.maps.list.get(at)?)?;
        Some(((self.maps.list.len() - at) as u64, by)).filter(|_| map.parts.len() <= MOST_PARTS)
    }

    /// Right before it is noted.
    fn note_turned(&mut self, map: &RankMap) {
        if let Some(map) = straight(map) {
            self.turned.insert(map, self.maps.list.len());
        }
    }

    /// What a reader has read.
    fn keep(&mut self, map: RankMap) -> Result<Rc<RankMap>, Bad> {
        let map = Rc::new(map);
        self.maps.list.push(map.clone());
        Ok(map)
    }
}

/// The function on a grid that is not turned.
fn straight(map: &RankMap) -> Option<RankMap> {
    let view = View { turn: [0; 2], ..map.view? };
    Some(RankMap { view: Some(view), ..map.clone() })
}

// How a function is told.
const NEW: u64 = 0;
/// This and every second after it: the ranks of an earlier one.
const RANKS: u64 = 1;
/// This and every second after it: an earlier one.
const WHOLE: u64 = 2;

// What a function is that is told without parts: up to here an order of the ranks, by columns if it is odd.
const ORDER: u64 = 0;
/// An order of the ranks of a grid that is turned.
const TURNED_ORDER: u64 = 2;
/// An earlier one on a grid that is turned further.
const TURNED: u64 = 4;
/// The sum of two.
const SUM: u64 = 5;
/// Blocks of ranks in pairs: how far each is from its partner in the other block.
const PARTNERS: u64 = 6;

/// Functions of more parts are not told by one token, so that a small file cannot stand for a lot.
const MOST_PARTS: usize = 1 << 16;

pub fn write(put: &mut Put, map: &RankMap, hint: u64, near: u32, past: &mut Past) {
    if let Some(ago) = past.maps.ago(map).filter(|_| map.parts.len() <= MOST_PARTS) {
        put.put(Field::MapShape, hint, WHOLE + 2 * (ago - 1));
        past.maps.note(map);
        return;
    }
    if let Some(plus) = &map.plus {
        without_parts(put, hint, SUM);
        write(put, &RankMap { plus: None, ..map.clone() }, hint, near, past);
        write(put, plus, hint, near, past);
        past.maps.note(map);
        return;
    }
    if let Some((block, pairs)) = partners_in(map) {
        without_parts(put, hint, PARTNERS);
        let power = block.ilog2();
        put.put(Field::MapView, 8, power.into());
        put.put(Field::MapView, 9, u64::from(block) - (1 << power));
        put.put(Field::MapView, 10, 2 * u64::from(block) * u64::from(pairs));
        past.maps.note(map);
        return;
    }
    if let Some((ago, by)) = past.turned(map) {
        without_parts(put, hint, TURNED);
        put.put(Field::MapView, 5, ago - 1);
        put.signed(Field::MapView, 6, by[0]);
        put.signed(Field::MapView, 7, by[1]);
        past.note_turned(map);
        past.maps.note(map);
        return;
    }
    if let Some(View { side, skew, columns, turn }) = map.view {
        let kind = if turn == [0, 0] { ORDER } else { TURNED_ORDER };
        without_parts(put, hint, kind + u64::from(columns));
        put.put(Field::MapView, 1, side.into());
        put.put(Field::MapView, 2, skew.into());
        if kind == TURNED_ORDER {
            put.put(Field::MapView, 3, turn[0].into());
            put.put(Field::MapView, 4, turn[1].into());
        }
        past.note_turned(map);
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

fn without_parts(put: &mut Put, hint: u64, what: u64) {
    put.put(Field::MapShape, hint, NEW);
    put.put(Field::RankParts, 0, 0);
    put.put(Field::MapView, 0, what);
}

/// Ranks in blocks of so many, so many pairs of blocks from rank 0 on: what each has to add to get to its partner.
fn partners(block: u32, pairs: u32) -> RankMap {
    let far = i64::from(block);
    let all = [(pairs, 2 * block, 0), (2, block, -2 * far), (block, 1, 0)];
    let dims = all.into_iter().map(|(count, stride, step)| Dim { count, stride, step });
    let dims = dims.filter(|dim| dim.count > 1).collect();
    RankMap::plainly(vec![MapPart { start: 0, value: far, dims }])
}

/// If the function is one of these.
fn partners_in(map: &RankMap) -> Option<(u32, u32)> {
    let [MapPart { start: 0, value, dims }] = &map.parts[..] else { return None };
    let block = u32::try_from(*value).ok().filter(|block| (1..1 << 31).contains(block))?;
    let pairs = dims.first().filter(|dim| dim.stride > block).map_or(1, |dim| dim.count);
    let ranks = 2 * u64::from(block) * u64::from(pairs);
    (ranks <= u64::from(u32::MAX) && *map == partners(block, pairs)).then_some((block, pairs))
}

fn read_partners(get: &mut Get) -> Result<RankMap, Bad> {
    let bad = || Bad::new("partners among no ranks");
    let (power, more) = (get.get(Field::MapView, 8)?, get.get(Field::MapView, 9)?);
    let ranks: u32 = get.small(Field::MapView, 10)?;
    let block = Some(power).filter(|power| *power < 31).map(|power| 1u64 << power).ok_or_else(bad)?;
    let block = block.checked_add(more).and_then(|block| u32::try_from(block).ok()).ok_or_else(bad)?;
    let both =
        block.checked_mul(2).filter(|both| ranks > 0 && ranks.is_multiple_of(*both)).ok_or_else(bad)?;
    Ok(partners(block, ranks / both))
}

/// What a part that need not be read takes, in steps of [`Checks`]: memory above all.
pub const A_PART: u64 = Checks::A_PART;

fn missing() -> Bad {
    Bad::new("a function of the rank like one that is not there")
}

pub fn read(
    get: &mut Get,
    hint: u64,
    near: u32,
    past: &mut Past,
    checks: &mut Checks,
) -> Result<Rc<RankMap>, Bad> {
    read_one(get, hint, near, past, checks, true)
}

/// `whole` if it may be a sum.
fn read_one(
    get: &mut Get,
    hint: u64,
    near: u32,
    past: &mut Past,
    checks: &mut Checks,
    whole: bool,
) -> Result<Rc<RankMap>, Bad> {
    let mut how = get.get(Field::MapShape, hint)?;
    let mut new = None;
    let mut view = None;
    if how == NEW {
        let shape = read_parts(get, near)?;
        if shape.is_empty() {
            match get.get(Field::MapView, 0)? {
                TURNED => return read_turned(get, past, checks),
                PARTNERS => return past.keep(read_partners(get)?),
                SUM if whole => {
                    let first = read_one(get, hint, near, past, checks, false)?;
                    let plus = read_one(get, hint, near, past, checks, false)?;
                    let plus = Some(Box::new(RankMap::clone(&plus)));
                    return past.keep(RankMap { plus, ..RankMap::clone(&first) });
                }
                kind @ ORDER..TURNED => view = Some(read_order(get, kind)?),
                _ => return Err(missing()),
            }
            how = get.get(Field::MapShape, hint)?;
        } else {
            new = Some(shape);
        }
    }
    let shape = match how {
        NEW => Rc::new(new.map_or_else(|| read_parts(get, near), Ok)?),
        how if how % 2 == RANKS => past.shapes.at(how / 2 + 1).ok_or_else(missing)?,
        _ if view.is_some() => return Err(missing()),
        how => {
            let map = past.maps.at(how / 2).ok_or_else(missing)?;
            if map.parts.len() > MOST_PARTS || map.plus.is_some() && !whole {
                return Err(missing());
            }
            checks.spend(parts_in(&map) * A_PART)?;
            past.maps.list.push(map.clone());
            return Ok(map);
        }
    };
    let parts = read_numbers(get, hint, shape, past)?;
    past.keep(RankMap { parts, view, plus: None })
}

fn parts_in(map: &RankMap) -> u64 {
    map.parts.len() as u64 + map.plus.as_ref().map_or(0, |plus| parts_in(plus))
}

fn read_order(get: &mut Get, kind: u64) -> Result<View, Bad> {
    let (side, skew) = (get.small(Field::MapView, 1)?, get.small(Field::MapView, 2)?);
    let mut turn = [0; 2];
    if kind >= TURNED_ORDER {
        turn = [get.small(Field::MapView, 3)?, get.small(Field::MapView, 4)?];
    }
    Ok(View { side, skew, columns: kind % 2 == 1, turn })
}

fn read_turned(get: &mut Get, past: &mut Past, checks: &mut Checks) -> Result<Rc<RankMap>, Bad> {
    let ago = get.get(Field::MapView, 5)?.checked_add(1).ok_or_else(missing)?;
    let by = [get.signed(Field::MapView, 6)?, get.signed(Field::MapView, 7)?];
    let before = past.maps.at(ago).ok_or_else(missing)?;
    let view = before.view.filter(|view| view.is_sound()).ok_or_else(missing)?;
    if before.parts.len() > MOST_PARTS || before.plus.is_some() {
        return Err(missing());
    }
    checks.spend(parts_in(&before) * A_PART)?;
    past.keep(RankMap { parts: before.parts.clone(), view: Some(view.turned(by)), plus: None })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn told(maps: &[RankMap]) -> Vec<u8> {
        let (mut put, mut past) = (Put::default(), Past::default());
        maps.iter().for_each(|map| write(&mut put, map, 7, 0, &mut past));
        crate::plain(&put.tokens)
    }

    fn read_all(bytes: &[u8], count: usize) -> Result<Vec<RankMap>, Bad> {
        let (mut get, mut past) = (Get::plain(bytes), Past::default());
        let mut one = || read(&mut get, 7, 0, &mut past, &mut Checks::unbounded());
        (0..count).map(|_| Ok(RankMap::clone(&*one()?))).collect()
    }

    #[test]
    fn functions_come_back_in_the_form_they_have() {
        let boxes = RankMap::from_pairs((0..81).map(|rank| (rank, i64::from(rank % 9 < 4))).collect());
        let seen = |turn| RankMap { view: Some(View { turn, ..View::new(9, 2, true) }), ..boxes.clone() };
        let sum = |map: RankMap| RankMap { plus: Some(Box::new(boxes.clone())), ..map };
        let maps = [
            seen([0, 0]),
            seen([0, 1]),
            seen([8, 0]),
            boxes.clone(),
            sum(seen([0, 1])),
            sum(seen([3, 3])),
            seen([3, 4]),
            sum(seen([3, 3])),
            partners(1, 1),
            partners(1, 40),
            partners(6, 1),
            partners(7, 3),
        ];
        assert_eq!(read_all(&told(&maps), maps.len()).unwrap(), maps);
        // One that is turned, and one that was there, are a few numbers.
        let less = |more: RankMap| told(&[seen([0, 0]), more]).len() - told(&[seen([0, 0])]).len();
        assert_eq!((less(seen([8, 1])), less(seen([0, 0]))), (6, 1));
    }

    #[test]
    fn ranks_that_exchange_in_blocks_are_partners() {
        for (block, pairs) in [(1u32, 8u32), (2, 4), (3, 5), (8, 1), (64, 9)] {
            let number = |rank: u32| i64::from(block) * if (rank / block).is_multiple_of(2) { 1 } else { -1 };
            let map = RankMap::loose((0..2 * block * pairs).map(|rank| (rank, number(rank))).collect());
            assert_eq!(partners_in(&map), Some((block, pairs)), "{map:?}");
        }
        let all = RankList::from_iter(0..16);
        assert_eq!(partners_in(&RankMap::constant(&all, 1)), None);
        assert_eq!(partners_in(&RankMap::constant(&all, -1)), None);
    }

    /// The first bytes of each say: new, no parts.
    #[test]
    fn functions_that_are_none_are_refused() {
        assert!(read_all(&[0, 0, 6, 2, 0, 16], 1).is_ok());
        for bytes in [
            // On the grid of a function that is not there; of one without a grid.
            &[0, 0, 4, 0, 0, 0][..],
            &[0, 0, 6, 2, 0, 16, 0, 0, 4, 0, 0, 0],
            // A sum of a sum.
            &[0, 0, 5, 0, 0, 5],
            // Ranks that are no pairs of blocks, none at all, and blocks that are too large.
            &[0, 0, 6, 2, 0, 12],
            &[0, 0, 6, 2, 0, 0],
            &[0, 0, 6, 31, 0, 16],
            &[0, 0, 6, 30, 0x80, 0x80, 0x80, 0x80, 0x20, 16],
            &[0, 0, 7],
        ] {
            let count = if bytes.len() > 11 { 2 } else { 1 };
            assert!(read_all(bytes, count).is_err(), "{bytes:?}");
        }
    }
}
