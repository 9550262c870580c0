//! Section `tallies`: per symbol the measured total, minimum and maximum.

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

/// The total lies between `count` times the minimum and `count` times the maximum, mostly near the minimum.
fn write_one(put: &mut Put, tally: Tally, count: u64) {
    put.measure(Field::TallyMinimum, 0, tally.min);
    let spread = tally.max.wrapping_sub(tally.min);
    put.measure(Field::TallySpread, bits(tally.min).into(), spread);
    let above = tally.total.wrapping_sub(tally.min.wrapping_mul(count));
    let most = bits(spread.wrapping_mul(count));
    put.signed(Field::TallyTotal, 0, i64::from(most) - i64::from(bits(above)));
    if bits(above) > 1 {
        put.put(Field::Plain, u64::from(bits(above)) - 1, above ^ 1 << (bits(above) - 1));
    }
}

fn read_one(get: &mut Get, count: u64) -> Result<Tally, Bad> {
    let min = get.measure(Field::TallyMinimum, 0)?;
    let spread = get.measure(Field::TallySpread, bits(min).into())?;
    let most = i64::from(bits(spread.wrapping_mul(count)));
    let above = match most.checked_sub(get.signed(Field::TallyTotal, 0)?) {
        Some(bits @ 0..=1) => bits as u64,
        Some(bits @ 2..=64) => 1 << (bits - 1) | get.get(Field::Plain, bits as u64 - 1)?,
        _ => return Err(Bad::new("a total of impossible size")),
    };
    Ok(Tally { total: min.wrapping_mul(count).wrapping_add(above), min, max: min.wrapping_add(spread) })
}
