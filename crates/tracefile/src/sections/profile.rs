//! The end of section `tallies`: how ranks spent their time, where that was kept.

use refrain_fold::bundle::MOST_RANKS;
use refrain_fold::ranks::Checks;

use crate::get::{Bad, Get};
use crate::profile::{Profile, Row, Spent, highest, level, lowest, unit_of};
use crate::sections::{read_ranks, write_ranks};
use crate::token::{Field, Put, bits};

/// Whether anything follows.
const KEPT: u64 = 1;
// Hints of a level: the lowest of a row, how many levels more the highest is, and the bits of a unit. Offsets follow these.
const FIRST: u64 = 0;
const SPREAD: u64 = 1;
const UNIT: u64 = 2;
const OFFSETS: u64 = 2;

/// Functions times ranks: more than any run has.
const MOST_TIMES: u64 = 1 << 28;

pub fn write(put: &mut Put, profile: Option<&Profile>) {
    put.put(Field::Tallies, KEPT, profile.is_some().into());
    let Some(profile) = profile else { return };
    write_ranks(put, &profile.ranks, 0);
    put.put(Field::Count, 19, profile.rows.len() as u64);
    put.put(Field::Level, UNIT, profile.unit.into());
    let (mut next, mut near) = (0, 0);
    for row in &profile.rows {
        put.put(Field::ProfileRow, 0, u64::from(row.spent.number() - next));
        next = row.spent.number() + 1;
        let (low, high) = row.span();
        put.signed(Field::Level, FIRST, i64::from(low) - near);
        near = low.into();
        let spread = u64::from(high - low);
        put.put(Field::Level, SPREAD, spread);
        if spread > 0 {
            for &(level, ranks) in &row.runs {
                // What comes twice may come more often.
                for _ in 0..ranks.min(2) {
                    put.put(Field::Level, offsets(spread), u64::from(level - low));
                }
                if let Some(more) = ranks.checked_sub(2) {
                    put.put(Field::LevelRun, 0, more.into());
                }
            }
        }
        let unit = unit_of(profile.unit, row.spent);
        let exact = [(row.least, low), (row.most, high)].into_iter().take(exact(profile, row.spent));
        for ((rank, ns), level) in exact {
            let alike = profile.ranks.iter().zip(row.levels()).filter(|(_, other)| *other == level);
            let alike: Vec<u32> = alike.map(|(rank, _)| rank).collect();
            let before = alike.iter().take_while(|other| **other != rank).count();
            put.put(Field::Bits, bits(alike.len().saturating_sub(1) as u64).into(), before as u64);
            let (lowest, open) = lowest(level);
            put.put(Field::Bits, (open + unit).into(), ns - (lowest << unit));
        }
    }
}

/// How many times of a row are told exactly, the least first.
fn exact(profile: &Profile, spent: Spent) -> usize {
    match spent {
        Spent::Function(_) => 0,
        Spent::Outside | Spent::Inside => profile.ranks.len().min(2) as usize,
    }
}

fn offsets(spread: u64) -> u64 {
    OFFSETS + u64::from(bits(spread))
}

pub fn read(get: &mut Get, checks: &mut Checks) -> Result<Option<Profile>, Bad> {
    match get.get(Field::Tallies, KEPT)? {
        0 => return Ok(None),
        1 => {}
        other => return Err(Bad(format!("unknown kind of times by rank {other}"))),
    }
    let ranks = read_ranks(get, 0, &mut { MOST_RANKS })?.ranks;
    let all = ranks.len();
    let rows = get.count(Field::Count, 19)?;
    if all == 0 && rows > 0 {
        return Err(Bad::new("times of no rank"));
    }
    // Readers have a number for each.
    if all.saturating_mul(rows as u64) > MOST_TIMES {
        return Err(Bad(format!("more than {MOST_TIMES} times by rank")));
    }
    let unit = get.get(Field::Level, UNIT)?;
    let unit = u32::try_from(unit).ok().filter(|unit| *unit < u64::BITS);
    let unit = unit.ok_or_else(|| Bad::new("a unit of impossible size"))?;
    let mut profile = Profile { ranks, unit, rows: Vec::new() };
    let (mut next, mut near) = (0u64, 0);
    for _ in 0..rows {
        let number = next.saturating_add(get.get(Field::ProfileRow, 0)?);
        let spent = u32::try_from(number).ok().and_then(Spent::from_number);
        let spent = spent.ok_or_else(|| Bad(format!("time of an unknown kind, {number}")))?;
        next = number + 1;
        let level_of = |number: Option<i64>| {
            let level = number
                .and_then(|number| u16::try_from(number).ok())
                .filter(|level| *level <= highest(unit_of(unit, spent)));
            level.ok_or_else(|| Bad::new("a time of impossible size"))
        };
        let low = level_of(get.signed(Field::Level, FIRST)?.checked_add(near))?;
        near = low.into();
        let spread = get.get(Field::Level, SPREAD)?;
        let high = level_of(i64::try_from(spread).ok().and_then(|spread| spread.checked_add(near)))?;
        let mut runs: Vec<(u16, u32)> = Vec::new();
        let mut left = all;
        while spread > 0 && left > 0 {
            let offset = get.get(Field::Level, offsets(spread))?;
            if offset > spread {
                return Err(Bad::new("a time above the highest"));
            }
            left -= 1;
            let level = low + offset as u16;
            match runs.last_mut() {
                Some((last, count)) if *last == level && *count == 1 => {
                    let more = get.get(Field::LevelRun, 0)?;
                    left = left
                        .checked_sub(more)
                        .ok_or_else(|| Bad::new("times of more ranks than there are"))?;
                    *count += 1 + more as u32;
                }
                _ => runs.push((level, 1)),
            }
        }
        if spread == 0 {
            runs.push((low, all as u32));
        }
        let mut row = Row { spent, least: (0, 0), most: (0, 0), runs, single: Vec::new() };
        if row.span() != (low, high) || row.runs.windows(2).any(|two| two[0].0 == two[1].0) {
            return Err(Bad::new("times that are not well formed"));
        }
        checks.spend(all.saturating_mul(2))?;
        (row.least, row.most) = match exact(&profile, spent) {
            0 => row.rough(&profile.ranks, unit_of(unit, spent)),
            1 => [extreme(get, &profile, &row, low)?; 2].into(),
            _ => (extreme(get, &profile, &row, low)?, extreme(get, &profile, &row, high)?),
        };
        if row.least.1 > row.most.1 {
            return Err(Bad::new("the least time is more than the most"));
        }
        profile.rows.push(row);
    }
    Ok(Some(profile))
}

fn extreme(get: &mut Get, profile: &Profile, row: &Row, of: u16) -> Result<(u32, u64), Bad> {
    let ties: u64 = row.runs.iter().filter(|run| run.0 == of).map(|run| u64::from(run.1)).sum();
    let mut before = get.get(Field::Bits, bits(ties.saturating_sub(1)).into())?;
    let mut place = 0u64;
    for &(level, ranks) in &row.runs {
        match (level == of).then_some(u64::from(ranks)) {
            Some(here) if before < here => {
                place += before;
                break;
            }
            Some(here) => before -= here,
            None => {}
        }
        place += u64::from(ranks);
    }
    let rank = usize::try_from(place).ok().and_then(|place| profile.ranks.iter().nth(place));
    let rank = rank.ok_or_else(|| Bad::new("the time of a rank that is not there"))?;
    let unit = unit_of(profile.unit, row.spent);
    let (lowest, open) = lowest(of);
    let ns = (lowest << unit) + get.get(Field::Bits, (open + unit).into())?;
    match level(ns >> unit) == of {
        true => Ok((rank, ns)),
        false => Err(Bad::new("a time of impossible size")),
    }
}
