//! Section `tallies`: per symbol the measured total, minimum and maximum, to within 1/32.

use std::collections::HashMap;

use refrain_fold::bundle::{Bundle, Tally};

use crate::get::{Bad, Get};
use crate::token::{Field, Put, bits};

// How the tallies are stored.
const ALL_EQUAL: u64 = 0;
const EACH: u64 = 1;

/// Where ranks of a tree differ they are counted one by one, as long as that is not more than so many nodes, over all
/// cohorts: a few bytes of a file can be many nodes of many ranks.
const MOST_COUNTED: u64 = 1 << 20;

/// How often each symbol occurs on all ranks together (wrapping: it only serves as a prediction).
fn occurrences(bundle: &Bundle) -> Vec<u64> {
    let mut sums = vec![0u64; bundle.symbols.len()];
    let mut add = |counts: &[(u32, u64)], ranks: u64| {
        for &(symbol, count) in counts {
            if let Some(sum) = sums.get_mut(symbol as usize) {
                *sum = sum.wrapping_add(ranks.wrapping_mul(count));
            }
        }
    };
    let mut known: HashMap<u32, Vec<(u32, u64)>> = HashMap::new();
    let mut left = MOST_COUNTED;
    for cohort in &bundle.cohorts {
        let ranks = cohort.ranks.len();
        let first = cohort.ranks.iter().next().unwrap_or(0);
        let nodes = bundle.structures.get(cohort.structure as usize).map_or(0, |s| s.own_lanes() as u64);
        if nodes == 0 {
            add(known.entry(cohort.structure).or_insert_with(|| bundle.counts(cohort, first)), ranks);
        } else if bundle.counts_differ(cohort)
            && let Some(less) = left.checked_sub(ranks.saturating_mul(nodes))
        {
            left = less;
            cohort.ranks.iter().for_each(|rank| add(&bundle.counts(cohort, rank), 1));
        } else {
            add(&bundle.counts(cohort, first), ranks);
        }
    }
    sums
}

pub fn write(put: &mut Put, bundle: &Bundle) {
    let first = bundle.symbols.first().map_or(Tally { total: 0, min: 0, max: 0 }, |s| s.tally);
    if bundle.symbols.iter().all(|s| s.tally == first) {
        put.put(Field::Tallies, 0, ALL_EQUAL);
        write_one(put, first, 0);
        return;
    }
    let counts = occurrences(bundle);
    put.put(Field::Tallies, 0, EACH);
    for (symbol, count) in bundle.symbols.iter().zip(counts) {
        write_one(put, symbol.tally, count);
    }
}

/// The rest of the bundle has been read, and holds together.
pub fn read(get: &mut Get, bundle: &mut Bundle) -> Result<(), Bad> {
    match get.get(Field::Tallies, 0)? {
        ALL_EQUAL => {
            let tally = read_one(get, 0)?;
            bundle.symbols.iter_mut().for_each(|symbol| symbol.tally = tally);
        }
        EACH => {
            let counts = occurrences(bundle);
            for (symbol, count) in bundle.symbols.iter_mut().zip(counts) {
                symbol.tally = read_one(get, count)?;
            }
        }
        other => return Err(Bad(format!("unknown kind of tallies {other}"))),
    }
    Ok(())
}

/// How many bits below the highest are kept. What is rounded down is wrong by less than one part in 32, and so is what is
/// told with one bit less but rounded to the nearest; the total with one more by half of that.
const KEPT_DOWN: u32 = 5;
const KEPT_SPREAD: u32 = 4;
const KEPT_ABOVE: u32 = 5;

/// Stands for a length of the total where that is less than the least that it should be: it is then told by itself.
const ALONE: i64 = 65;

/// Without the bits that are not kept.
fn down(value: u64, kept: u32) -> u64 {
    let lost = bits(value).saturating_sub(kept + 1);
    value >> lost << lost
}

/// To the nearest number that has no other bits than those that are kept.
fn near(value: u64, kept: u32) -> u64 {
    let half = 1u64 << bits(value).saturating_sub(kept + 1) >> 1;
    down(value.checked_add(half).unwrap_or(value), kept)
}

/// The digits of a number of so many bits, of which the highest is one and only `kept` others count.
fn put_digits(put: &mut Put, value: u64, kept: u32) {
    let below = bits(value).saturating_sub(1);
    if below > 0 {
        let lost = below.saturating_sub(kept);
        put.put(Field::Plain, (below - lost).into(), (value ^ 1 << below) >> lost);
    }
}

fn get_digits(get: &mut Get, bits: u64, kept: u32) -> Result<u64, Bad> {
    match bits {
        0 | 1 => Ok(bits),
        2..=64 => {
            let below = bits as u32 - 1;
            let lost = below.saturating_sub(kept);
            Ok(1 << below | get.get(Field::Plain, (below - lost).into())? << lost)
        }
        _ => Err(Bad::new("a time of impossible size")),
    }
}

/// The total lies between `count` times the minimum and `count` times the maximum, mostly near the minimum.
fn write_one(put: &mut Put, tally: Tally, count: u64) {
    let min = down(tally.min, KEPT_DOWN);
    put.put(Field::TallyMinimum, 0, bits(min).into());
    put_digits(put, min, KEPT_DOWN);
    let spread = near(tally.max.wrapping_sub(min), KEPT_SPREAD);
    put.put(Field::TallySpread, bits(min).into(), bits(spread).into());
    put_digits(put, spread, KEPT_SPREAD);
    let most = i64::from(bits(spread.wrapping_mul(count)));
    let above = min.checked_mul(count).and_then(|least| tally.total.checked_sub(least));
    // How often a symbol occurs is not known exactly if that takes too long to count.
    let Some(above) = above else {
        let total = down(tally.total, KEPT_DOWN);
        put.signed(Field::TallyTotal, 0, most - ALONE);
        put.put(Field::TallyTotal, 1, bits(total).into());
        return put_digits(put, total, KEPT_DOWN);
    };
    let above = near(above, KEPT_ABOVE);
    put.signed(Field::TallyTotal, 0, most - i64::from(bits(above)));
    put_digits(put, above, KEPT_ABOVE);
}

fn read_one(get: &mut Get, count: u64) -> Result<Tally, Bad> {
    let length = get.get(Field::TallyMinimum, 0)?;
    let min = get_digits(get, length, KEPT_DOWN)?;
    let length = get.get(Field::TallySpread, bits(min).into())?;
    let spread = get_digits(get, length, KEPT_SPREAD)?;
    let most = i64::from(bits(spread.wrapping_mul(count)));
    let max = min.wrapping_add(spread);
    let length = match most.checked_sub(get.signed(Field::TallyTotal, 0)?) {
        Some(ALONE) => {
            let length = get.get(Field::TallyTotal, 1)?;
            return Ok(Tally { total: get_digits(get, length, KEPT_DOWN)?, min, max });
        }
        length => length.and_then(|bits| u64::try_from(bits).ok()).unwrap_or(u64::MAX),
    };
    let above = get_digits(get, length, KEPT_ABOVE)?;
    Ok(Tally { total: min.wrapping_mul(count).wrapping_add(above), min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_near() {
        for value in
            (0..5000).chain((10..64).flat_map(|b| [(1 << b) - 1, 1 << b, (1 << b) + 77])).chain([u64::MAX])
        {
            for (told, most) in [(down(value, KEPT_DOWN), value / 32), (near(value, KEPT_SPREAD), value / 31)]
            {
                assert!(told.abs_diff(value) <= most, "{value}: {told}");
            }
            assert_eq!(near(near(value, KEPT_SPREAD), KEPT_SPREAD), near(value, KEPT_SPREAD));
        }
    }
}
