//! Section `tallies`: per symbol, or class of its occurrences, the measured total, minimum and maximum, to within 1/32.

use std::collections::HashMap;

use refrain_fold::bundle::classes::{self, Kind};
use refrain_fold::bundle::{Bundle, Class, Classes, SymbolEntry, Tally};

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
    if bundle.symbols.iter().all(|s| s.tally == first && s.classes.is_empty()) {
        put.put(Field::Tallies, 0, ALL_EQUAL);
        write_one(put, first, 0, None);
        return;
    }
    let counts = occurrences(bundle);
    put.put(Field::Tallies, 0, EACH);
    let mut before = Before::default();
    for (symbol, count) in bundle.symbols.iter().zip(counts) {
        write_symbol(put, symbol, count, &mut before);
    }
}

/// The rest of the bundle has been read, and holds together.
pub fn read(get: &mut Get, bundle: &mut Bundle) -> Result<(), Bad> {
    match get.get(Field::Tallies, 0)? {
        ALL_EQUAL => {
            let tally = read_one(get, 0, None)?;
            bundle.symbols.iter_mut().for_each(|symbol| symbol.tally = tally);
        }
        EACH => {
            let counts = occurrences(bundle);
            let mut before = Before::default();
            for (symbol, count) in bundle.symbols.iter_mut().zip(counts) {
                read_symbol(get, symbol, count, &mut before)?;
            }
        }
        other => return Err(Bad(format!("unknown kind of tallies {other}"))),
    }
    Ok(())
}

// Hints of a number of classes: of this, of what it shares with the classes before it, of how their counts are told.
const HOW_MANY: u64 = 0;
const AS_BEFORE: u64 = 1;
const COUNTS: u64 = 2;

// What the classes of a symbol share with those of the last symbol that had any.
const NEW: u64 = 0;
const SAME_KINDS: u64 = 1;
const SAME_SHARES: u64 = 2;

// How counts are told: all but the last, which is what is left; as parts of the whole, which may have a common divisor; each.
const LAST_FOLLOWS: u64 = 0;
const PARTS: u64 = 1;
const EACH_COUNT: u64 = 2;

/// The classes of the last symbol that had any.
#[derive(Default)]
struct Before {
    kinds: Vec<Kind>,
    together: bool,
    /// Their counts without a common divisor.
    shares: Vec<u64>,
}

/// A symbol without lanes has no classes; of others a number says how many, and whether the second number counts.
fn write_symbol(put: &mut Put, symbol: &SymbolEntry, count: u64, before: &mut Before) {
    let Classes { together, .. } = symbol.classes;
    let list = symbol.classes.list();
    if symbol.lanes > 0 {
        let number = (2 * list.len() as u64 + u64::from(together)).saturating_sub(1);
        put.put(Field::Classes, HOW_MANY, number);
    }
    if list.is_empty() {
        return write_one(put, symbol.tally, count, None);
    }
    let kinds: Vec<Kind> = list.iter().map(|class| class.kind).collect();
    let counts: Vec<u64> = list.iter().map(|class| class.count).collect();
    let shared = counts.iter().copied().fold(0, divisor).max(1);
    let shares: Vec<u64> = counts.iter().map(|count| count / shared).collect();
    let adds_up = counts.iter().copied().fold(0, u64::wrapping_add) == count;
    let alike = before.together == together && before.kinds == kinds;
    let known = match alike {
        true if before.shares == shares && adds_up => SAME_SHARES,
        true => SAME_KINDS,
        false => NEW,
    };
    if before.kinds.len() == list.len() {
        put.put(Field::Classes, AS_BEFORE, known);
    }
    if known == NEW {
        let mut last: Option<Kind> = None;
        for &kind in &kinds {
            write_kind(put, kind, last, together);
            last = Some(kind);
        }
    }
    if known != SAME_SHARES {
        let how = match adds_up {
            true if shared > 1 => PARTS,
            true => LAST_FOLLOWS,
            false => EACH_COUNT,
        };
        put.put(Field::Classes, COUNTS, how);
        let told = if how == EACH_COUNT { &counts } else { &shares };
        let told = &told[..told.len() - usize::from(how == LAST_FOLLOWS)];
        told.iter().for_each(|&share| put.put(Field::ClassCount, how, share));
    }
    let mut last = None;
    for class in list {
        write_one(put, class.tally, class.count, last);
        last = Some(down(class.tally.min, KEPT_DOWN));
    }
    *before = Before { kinds, together, shares };
}

fn read_symbol(get: &mut Get, symbol: &mut SymbolEntry, count: u64, before: &mut Before) -> Result<(), Bad> {
    let number = if symbol.lanes > 0 { get.get(Field::Classes, HOW_MANY)? } else { 0 };
    if number == 0 {
        symbol.tally = read_one(get, count, None)?;
        return Ok(());
    }
    let (length, together) = (number.div_ceil(2), number.is_multiple_of(2));
    let most = if together { classes::LENGTHS } else { classes::MOST };
    let length = usize::try_from(length).ok().filter(|length| *length <= most);
    let length = length.ok_or_else(|| Bad::new("more classes than there can be"))?;
    let known = if before.kinds.len() == length { get.get(Field::Classes, AS_BEFORE)? } else { NEW };
    if known > SAME_SHARES || known != NEW && before.together != together {
        return Err(Bad::new("classes that are not well formed"));
    }
    if known == NEW {
        let mut kinds = Vec::with_capacity(length);
        for _ in 0..length {
            kinds.push(read_kind(get, kinds.last().copied(), together)?);
        }
        before.kinds = kinds;
        before.together = together;
    }
    let counts = match known {
        SAME_SHARES => parts_of(&before.shares, count),
        _ => read_counts(get, length, count)?,
    };
    let shared = counts.iter().copied().fold(0, divisor).max(1);
    before.shares = counts.iter().map(|count| count / shared).collect();
    let mut list = Vec::with_capacity(length);
    let mut last = None;
    for (&kind, count) in before.kinds.iter().zip(counts) {
        let tally = read_one(get, count, last)?;
        last = Some(tally.min);
        list.push(Class { kind, count, tally });
    }
    symbol.classes = Classes::new(together, list);
    symbol.tally = symbol.classes.whole().unwrap_or(Tally { total: 0, min: 0, max: 0 });
    Ok(())
}

/// Kinds ascend.
fn write_kind(put: &mut Put, kind: Kind, last: Option<Kind>, together: bool) {
    let more = kind.bits - last.map_or(0, |last| last.bits);
    put.put(Field::ClassBits, last.is_some().into(), more.into());
    match last.filter(|_| more == 0) {
        _ if together => {}
        Some(last) => put.put(Field::ClassValue, 1, kind.value.wrapping_sub(last.value) as u64),
        None => put.signed(Field::ClassValue, 0, kind.value),
    }
}

fn read_kind(get: &mut Get, last: Option<Kind>, together: bool) -> Result<Kind, Bad> {
    let more = get.get(Field::ClassBits, last.is_some().into())?;
    let bits = more.checked_add(last.map_or(0, |last| last.bits.into())).filter(|bits| *bits <= 64);
    let bits = bits.ok_or_else(|| Bad::new("a class of impossible size"))? as u8;
    let value = match last.filter(|_| more == 0) {
        _ if together => 0,
        Some(last) => last.value.wrapping_add(get.get(Field::ClassValue, 1)? as i64),
        None => get.signed(Field::ClassValue, 0)?,
    };
    let kind = Kind { bits, value };
    match last.is_none_or(|last| last < kind) {
        true => Ok(kind),
        false => Err(Bad::new("classes that are not in order")),
    }
}

fn read_counts(get: &mut Get, classes: usize, count: u64) -> Result<Vec<u64>, Bad> {
    let how = get.get(Field::Classes, COUNTS)?;
    if how > EACH_COUNT {
        return Err(Bad(format!("unknown kind of counts {how}")));
    }
    let mut told = Vec::with_capacity(classes);
    for _ in 0..classes - usize::from(how == LAST_FOLLOWS) {
        told.push(get.get(Field::ClassCount, how)?);
    }
    match how {
        LAST_FOLLOWS => told.push(told.iter().copied().fold(count, u64::wrapping_sub)),
        PARTS => told = parts_of(&told, count),
        _ => {}
    }
    Ok(told)
}

/// A count in these shares.
fn parts_of(shares: &[u64], count: u64) -> Vec<u64> {
    let one = count.checked_div(shares.iter().copied().fold(0, u64::wrapping_add)).unwrap_or(0);
    shares.iter().map(|share| share.wrapping_mul(one)).collect()
}

fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
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
pub fn near(value: u64, kept: u32) -> u64 {
    let half = 1u64 << bits(value).saturating_sub(kept + 1) >> 1;
    down(value.checked_add(half).unwrap_or(value), kept)
}

/// The digits of a number of so many bits, of which the highest is one and only `kept` others count.
pub fn put_digits(put: &mut Put, value: u64, kept: u32) {
    let below = bits(value).saturating_sub(1);
    if below > 0 {
        let lost = below.saturating_sub(kept);
        put.put(Field::Bits, (below - lost).into(), (value ^ 1 << below) >> lost);
    }
}

pub fn get_digits(get: &mut Get, bits: u64, kept: u32) -> Result<u64, Bad> {
    match bits {
        0 | 1 => Ok(bits),
        2..=64 => {
            let below = bits as u32 - 1;
            let lost = below.saturating_sub(kept);
            Ok(1 << below | get.get(Field::Bits, (below - lost).into())? << lost)
        }
        _ => Err(Bad::new("a time of impossible size")),
    }
}

/// The total lies between `count` times the minimum and `count` times the maximum, mostly near the minimum. `last` is the
/// minimum of the class before.
fn write_one(put: &mut Put, tally: Tally, count: u64, last: Option<u64>) {
    let min = down(tally.min, KEPT_DOWN);
    match last {
        Some(last) => put.signed(Field::TallyMinimum, 1, i64::from(bits(min)) - i64::from(bits(last))),
        None => put.put(Field::TallyMinimum, 0, bits(min).into()),
    }
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

fn read_one(get: &mut Get, count: u64, last: Option<u64>) -> Result<Tally, Bad> {
    let length = match last {
        Some(last) => {
            let length = get.signed(Field::TallyMinimum, 1)?.checked_add(bits(last).into());
            length.and_then(|length| u64::try_from(length).ok()).unwrap_or(u64::MAX)
        }
        None => get.get(Field::TallyMinimum, 0)?,
    };
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
