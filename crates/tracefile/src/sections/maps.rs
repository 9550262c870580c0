//! Functions of the rank: the ranks of their parts, which often are those of an earlier one, and their numbers.

use std::collections::HashMap;

use refrain_fold::ranks::{Dim, MapPart, Part, RankList, RankMap};

use crate::get::{Bad, Get};
use crate::sections::{read_parts, write_ranks};
use crate::token::{Field, Put};

/// The ranks that parts had so far, by number. Those of a map are written as a rank list whose parts may interleave.
#[derive(Default)]
pub struct Shapes {
    list: Vec<RankList>,
    known: HashMap<RankList, usize>,
}

impl Shapes {
    /// The number is how long ago: what was used last is 1.
    pub fn note(&mut self, shape: RankList) {
        let next = self.list.len();
        self.known.insert(shape.clone(), next);
        self.list.push(shape);
    }

    fn ago(&self, shape: &RankList) -> Option<u64> {
        self.known.get(shape).map(|at| (self.list.len() - at) as u64)
    }

    fn at(&self, ago: u64) -> Option<RankList> {
        let at = self.list.len().checked_sub(usize::try_from(ago).ok()?)?;
        self.list.get(at).cloned()
    }
}

pub fn write(put: &mut Put, map: &RankMap, hint: u64, near: u32, shapes: &mut Shapes) {
    let part = |part: &MapPart| Part {
        start: part.start,
        dims: part.dims.iter().map(|dim| (dim.count, dim.stride)).collect(),
    };
    let shape = RankList { parts: map.parts.iter().map(part).collect() };
    let ago = shapes.ago(&shape);
    put.put(Field::MapShape, hint, ago.unwrap_or(0));
    if ago.is_none() {
        write_ranks(put, &shape, near);
        shapes.note(shape);
    }
    for part in &map.parts {
        put.signed(Field::MapValue, hint, part.value);
        for dim in &part.dims {
            put.signed(Field::MapStep, hint, dim.step);
        }
    }
}

pub fn read(get: &mut Get, hint: u64, near: u32, shapes: &mut Shapes) -> Result<RankMap, Bad> {
    let shape = match get.get(Field::MapShape, hint)? {
        0 => {
            let shape = read_parts(get, near)?;
            shapes.note(shape.clone());
            shape
        }
        ago => shapes.at(ago).ok_or_else(|| Bad::new("ranks like some that are not there"))?,
    };
    let mut parts = Vec::with_capacity(shape.parts.len());
    for part in shape.parts {
        let value = get.signed(Field::MapValue, hint)?;
        let dim = |(count, stride)| Ok(Dim { count, stride, step: get.signed(Field::MapStep, hint)? });
        let dims = part.dims.into_iter().map(dim).collect::<Result<_, Bad>>()?;
        parts.push(MapPart { start: part.start, value, dims });
    }
    Ok(RankMap { parts })
}
