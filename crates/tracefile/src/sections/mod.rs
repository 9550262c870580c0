//! What each section says, as tokens. `write` and `read` of a section mirror each other line by line.

pub mod cohorts;
pub mod flight;
pub mod kinds;
mod light;
pub mod maps;
pub mod meta;
pub mod paths;
pub mod pools;
pub mod profile;
pub mod sides;
pub mod sites;
pub mod streams;
pub mod structure;
pub mod symbols;
pub mod tables;
pub mod tallies;

use refrain_fold::bundle::MOST_RANKS;
use refrain_fold::ranks::{MOST_HOLES, Part, RankList};

use crate::get::{Bad, Get};
use crate::token::{Field, Put};

/// Where a list of parts would begin with how many there are: a box and the ranks missing from it follow instead.
const ALL_BUT: u64 = 0;

/// A list and its first rank, and what the file has of it: itself, or the box that some ranks are missing from.
struct StoredList {
    ranks: RankList,
    first: u32,
    whole: RankList,
}

impl StoredList {
    fn whole(ranks: RankList) -> StoredList {
        StoredList { first: first(&ranks), whole: ranks.clone(), ranks }
    }
}

fn first(ranks: &RankList) -> u32 {
    ranks.parts.first().map_or(0, |part| part.start)
}

/// `near` is where the list is expected to start.
fn write_ranks(put: &mut Put, ranks: &RankList, near: u32) -> StoredList {
    if let Some((whole, missing)) =
        ranks.all_but().filter(|(whole, missing)| whole.without(missing) == *ranks)
    {
        put.put(Field::RankParts, 0, ALL_BUT);
        write_parts(put, &whole, near);
        write_parts(put, &missing, first(&whole));
        return StoredList { ranks: ranks.clone(), first: first(ranks), whole };
    }
    if ranks.is_empty() {
        put.put(Field::RankParts, 0, ALL_BUT);
    }
    write_parts(put, ranks, near);
    StoredList::whole(ranks.clone())
}

fn write_parts(put: &mut Put, ranks: &RankList, near: u32) {
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
}

/// At most `left` ranks, which become fewer.
fn read_ranks(get: &mut Get, near: u32, left: &mut u64) -> Result<StoredList, Bad> {
    let bad = || Bad::new("a rank list that is not well formed");
    let sound = |get: &mut Get, near: u32| {
        let list = read_parts(get, near)?;
        list.validate().map(|()| list).map_err(|_| bad())
    };
    let ranks = sound(get, near)?;
    let told = match ranks.is_empty() {
        false => StoredList::whole(ranks),
        true => {
            let whole = sound(get, near)?;
            if whole.is_empty() {
                return Ok(StoredList::whole(whole));
            }
            let missing = sound(get, first(&whole))?;
            // Most of the box is there, so that its ranks may be looked at one by one.
            let most = left.saturating_mul(MOST_HOLES);
            if missing.len() > whole.len() - whole.len() / MOST_HOLES || whole.len() > most {
                return Err(bad());
            }
            let ranks = whole.without(&missing);
            StoredList { first: first(&ranks), ranks, whole }
        }
    };
    let rest = left.checked_sub(told.ranks.len());
    *left = rest.ok_or_else(|| Bad(format!("more than {MOST_RANKS} ranks")))?;
    Ok(told)
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
