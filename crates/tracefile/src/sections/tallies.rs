//! Section `tallies`: per symbol the measured total, minimum and maximum.

use refrain_fold::bundle::{Bundle, Cohort, SymbolEntry, Tally};
use refrain_fold::grammar::Grammar;

use crate::get::{Bad, Get};
use crate::token::{Field, Put, bits};

// How the tallies are stored.
const ALL_EQUAL: u64 = 0;
const EACH: u64 = 1;

/// How often each symbol occurs on all ranks together (wrapping: it only serves as a prediction).
fn occurrences(symbols: usize, cohorts: &[Cohort], structures: &[Grammar]) -> Vec<u64> {
    let mut sums = vec![0u64; symbols];
    let counts: Vec<Vec<(u32, u64)>> = structures.iter().map(Grammar::counts).collect();
    for cohort in cohorts {
        let ranks = cohort.ranks.parts.iter().fold(0u64, |sum, part| {
            sum.wrapping_add(part.dims.iter().fold(1u64, |n, dim| n.wrapping_mul(dim.0.into())))
        });
        for &(symbol, count) in counts.get(cohort.structure as usize).map_or(&[][..], Vec::as_slice) {
            let sum = &mut sums[symbol as usize];
            *sum = sum.wrapping_add(ranks.wrapping_mul(count));
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
    let counts = occurrences(bundle.symbols.len(), &bundle.cohorts, &bundle.structures);
    put.put(Field::Tallies, 0, EACH);
    for (symbol, count) in bundle.symbols.iter().zip(counts) {
        write_one(put, symbol.tally, count);
    }
}

pub fn read(
    get: &mut Get,
    symbols: &mut [SymbolEntry],
    cohorts: &[Cohort],
    structures: &[Grammar],
) -> Result<(), Bad> {
    match get.get(Field::Tallies, 0)? {
        ALL_EQUAL => {
            let tally = read_one(get, 0)?;
            symbols.iter_mut().for_each(|symbol| symbol.tally = tally);
        }
        EACH => {
            let counts = occurrences(symbols.len(), cohorts, structures);
            for (symbol, count) in symbols.iter_mut().zip(counts) {
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
