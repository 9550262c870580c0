//! What each section says, as tokens. `write` and `read` of a section mirror each other line by line.

pub mod groups;
pub mod maps;
pub mod meta;
pub mod streams;
pub mod structure;
pub mod symbols;
pub mod tallies;

use refrain_fold::ranks::{Part, RankList};

use crate::get::{Bad, Get};
use crate::token::{Field, Put};

/// `near` is where the list is expected to start; returns where it did.
fn write_ranks(put: &mut Put, ranks: &RankList, near: u32) -> u32 {
    put.put(Field::RankParts, 0, ranks.parts.len() as u64);
    let mut near = i64::from(near);
    for part in &ranks.parts {
        put.signed(Field::RankStart, ranks.parts.len().min(9) as u64, i64::from(part.start) - near);
        near = part.start.into();
        put.put(Field::RankDims, 0, part.dims.len() as u64);
        for &(count, stride) in &part.dims {
            put.put(Field::RankCount, part.dims.len() as u64, count.into());
            put.put(Field::RankStride, part.dims.len() as u64, stride.into());
        }
    }
    ranks.parts.first().map_or(0, |part| part.start)
}

fn read_ranks(get: &mut Get, near: u32) -> Result<(RankList, u32), Bad> {
    let ranks = read_parts(get, near)?;
    ranks.validate().map_err(|_| Bad::new("a rank list that is not well formed"))?;
    let first = ranks.parts.first().map_or(0, |part| part.start);
    Ok((ranks, first))
}

/// A list that may yet be anything.
fn read_parts(get: &mut Get, near: u32) -> Result<RankList, Bad> {
    let count = get.count(Field::RankParts, 0)?;
    let mut near = i64::from(near);
    let mut parts = Vec::new();
    for _ in 0..count {
        let start = get.signed(Field::RankStart, count.min(9) as u64)?.checked_add(near);
        let start =
            start.and_then(|s| u32::try_from(s).ok()).ok_or_else(|| Bad::new("a rank out of range"))?;
        near = start.into();
        let dims = get.count(Field::RankDims, 0)?;
        let hint = dims as u64;
        let dims = (0..dims)
            .map(|_| Ok((get.small(Field::RankCount, hint)?, get.small(Field::RankStride, hint)?)))
            .collect::<Result<_, Bad>>()?;
        parts.push(Part { start, dims });
    }
    Ok(RankList { parts })
}
