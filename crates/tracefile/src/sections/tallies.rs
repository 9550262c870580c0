//! Section `tallies`: per symbol, or class of its occurrences, the measured total, minimum and maximum, to within 1/32.

use std::collections::HashMap;

use refrain_fold::bundle::classes::{self, Kind};
use refrain_fold::bundle::{Bundle, Class, Classes, SymbolEntry, Tally};

use crate::get::{Bad, Get};
use crate::sections::light::{self, Group};
use crate::sections::symbols::head;
use crate::token::{Field, Put, bits, two};

// How the tallies are stored: one for all, each, or each but for those that are light.
const ALL_EQUAL: u64 = 0;
const EACH: u64 = 1;
const BUT_LIGHT: u64 = 2;

// Which tallies of a symbol are light.
const NONE_LIGHT: u64 = 0;
const ALL_LIGHT: u64 = 1;
const SOME_LIGHT: u64 = 2;

/// Hints of these: of a symbol, of one of its classes.
const OF_SYMBOL: u32 = 2;
const OF_CLASS: u32 = 3;

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

/// Where calls with other arguments are other symbols (not `split`), each keeps times of its own.
pub fn write(put: &mut Put, bundle: &Bundle, split: bool) {
    let first = bundle.symbols.first().map_or(Tally { total: 0, min: 0, max: 0 }, |s| s.tally);
    if bundle.symbols.iter().all(|s| s.tally == first && s.classes.is_empty()) {
        put.put(Field::Tallies, 0, ALL_EQUAL);
        write_one(put, first, 0, None);
        return;
    }
    let counts = occurrences(bundle);
    let light = light::find(&bundle.symbols, &counts, members(bundle), split);
    let any = light.iter().flatten().any(|light| *light);
    put.put(Field::Tallies, 0, if any { BUT_LIGHT } else { EACH });
    let mut before = Before::default();
    let mut groups = Groups::default();
    for ((symbol, &count), light) in bundle.symbols.iter().zip(&counts).zip(&light) {
        write_symbol(put, symbol, count, &mut before, any.then_some(light));
        let all = light::tallies(symbol, count);
        let told_together = all.into_iter().zip(light).filter(|(_, light)| **light);
        told_together.for_each(|((tally, count), _)| groups.of(symbol).add(tally, count));
    }
    groups.list.iter().for_each(|group| write_one(put, group.tally, group.count, None));
}

/// How many ranks and threads there are.
fn members(bundle: &Bundle) -> u64 {
    bundle.cohorts.iter().map(|cohort| cohort.ranks.len()).sum()
}

/// Light tallies by function, in the order in which functions come.
#[derive(Default)]
struct Groups {
    number: HashMap<u32, usize>,
    list: Vec<Group>,
}

impl Groups {
    fn number_of(&mut self, symbol: &SymbolEntry) -> usize {
        let next = self.list.len();
        let number = *self.number.entry(head(&symbol.bytes)).or_insert(next);
        if number == next {
            self.list.push(Group::NONE);
        }
        number
    }

    fn of(&mut self, symbol: &SymbolEntry) -> &mut Group {
        let number = self.number_of(symbol);
        &mut self.list[number]
    }
}

/// The rest of the bundle has been read, and holds together.
pub fn read(get: &mut Get, bundle: &mut Bundle) -> Result<(), Bad> {
    match get.get(Field::Tallies, 0)? {
        ALL_EQUAL => {
            let tally = read_one(get, 0, None)?;
            bundle.symbols.iter_mut().for_each(|symbol| symbol.tally = tally);
        }
        how @ (EACH | BUT_LIGHT) => {
            let counts = occurrences(bundle);
            let mut before = Before::default();
            let mut groups = Groups::default();
            let mut told = Vec::new();
            for (symbol, count) in bundle.symbols.iter().zip(counts) {
                let groups = (how == BUT_LIGHT).then_some(&mut groups);
                told.push(read_symbol(get, symbol, count, &mut before, groups)?);
            }
            for group in &mut groups.list {
                group.tally = read_one(get, group.count, None)?;
            }
            let symbols = bundle.symbols.iter_mut();
            symbols.zip(told).for_each(|(symbol, told)| told.settle(symbol, &groups.list));
        }
        other => return Err(Bad(format!("unknown kind of tallies {other}"))),
    }
    Ok(())
}

/// What was read of a symbol.
enum Told {
    Whole(Measured),
    Classes { together: bool, list: Vec<(Kind, u64, Measured)> },
}

enum Measured {
    Tally(Tally),
    /// Light: calls `from..to` of a group.
    Part {
        group: usize,
        from: u64,
        to: u64,
    },
}

impl Measured {
    fn tally(&self, groups: &[Group]) -> Tally {
        match *self {
            Measured::Tally(tally) => tally,
            Measured::Part { group, from, to } => {
                let group = &groups[group];
                Tally { total: group.share(from, to), ..group.tally }
            }
        }
    }
}

impl Told {
    fn settle(&self, symbol: &mut SymbolEntry, groups: &[Group]) {
        match self {
            Told::Whole(measured) => symbol.tally = measured.tally(groups),
            Told::Classes { together, list } => {
                let class = |(kind, count, measured): &(Kind, u64, Measured)| Class {
                    kind: *kind,
                    count: *count,
                    tally: measured.tally(groups),
                };
                symbol.classes = Classes::new(*together, list.iter().map(class));
                symbol.tally = symbol.classes.whole().unwrap_or(Tally { total: 0, min: 0, max: 0 });
            }
        }
    }
}

/// Which tallies of a symbol are light.
fn write_light(put: &mut Put, symbol: &SymbolEntry, light: &[bool]) {
    let head = head(&symbol.bytes);
    let some = match light.iter().filter(|light| **light).count() {
        0 => NONE_LIGHT,
        all if all == light.len() => ALL_LIGHT,
        _ => SOME_LIGHT,
    };
    put.put(Field::Tallies, two(OF_SYMBOL, head), some);
    if some == SOME_LIGHT {
        light.iter().for_each(|&light| put.put(Field::Tallies, two(OF_CLASS, head), light.into()));
    }
}

fn read_light(get: &mut Get, symbol: &SymbolEntry, tallies: usize) -> Result<Vec<bool>, Bad> {
    let head = head(&symbol.bytes);
    match get.get(Field::Tallies, two(OF_SYMBOL, head))? {
        all @ (NONE_LIGHT | ALL_LIGHT) => Ok(vec![all == ALL_LIGHT; tallies]),
        SOME_LIGHT => (0..tallies).map(|_| Ok(get.get(Field::Tallies, two(OF_CLASS, head))? == 1)).collect(),
        other => Err(Bad(format!("unknown kind of light tallies {other}"))),
    }
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
fn write_symbol(
    put: &mut Put,
    symbol: &SymbolEntry,
    count: u64,
    before: &mut Before,
    light: Option<&Vec<bool>>,
) {
    let Classes { together, .. } = symbol.classes;
    let list = symbol.classes.list();
    if symbol.lanes > 0 {
        let number = (2 * list.len() as u64 + u64::from(together)).saturating_sub(1);
        put.put(Field::Classes, HOW_MANY, number);
    }
    let is_light = |number: usize| light.is_some_and(|light| light[number]);
    if list.is_empty() {
        if let Some(light) = light {
            write_light(put, symbol, light);
        }
        if !is_light(0) {
            write_one(put, symbol.tally, count, None);
        }
        return;
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
    if let Some(light) = light {
        write_light(put, symbol, light);
    }
    let mut last = None;
    for (_, class) in list.iter().enumerate().filter(|(number, _)| !is_light(*number)) {
        write_one(put, class.tally, class.count, last);
        last = Some(down(class.tally.min, KEPT_DOWN));
    }
    *before = Before { kinds, together, shares };
}

fn read_symbol(
    get: &mut Get,
    symbol: &SymbolEntry,
    count: u64,
    before: &mut Before,
    mut groups: Option<&mut Groups>,
) -> Result<Told, Bad> {
    let may_be_light = groups.is_some();
    let light = |get: &mut Get, tallies: usize| match may_be_light {
        true => read_light(get, symbol, tallies),
        false => Ok(vec![false; tallies]),
    };
    let number = if symbol.lanes > 0 { get.get(Field::Classes, HOW_MANY)? } else { 0 };
    if number == 0 {
        let light = light(get, 1)?[0];
        return Ok(Told::Whole(read_measured(get, symbol, count, None, groups.filter(|_| light))?));
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
    let light = light(get, length)?;
    let mut list = Vec::with_capacity(length);
    let mut last = None;
    for ((&kind, count), light) in before.kinds.iter().zip(counts).zip(light) {
        let measured = read_measured(get, symbol, count, last, groups.as_deref_mut().filter(|_| light))?;
        if let Measured::Tally(tally) = measured {
            last = Some(tally.min);
        }
        list.push((kind, count, measured));
    }
    Ok(Told::Classes { together, list })
}

/// A tally, or where there are groups a part of one of them.
fn read_measured(
    get: &mut Get,
    symbol: &SymbolEntry,
    count: u64,
    last: Option<u64>,
    groups: Option<&mut Groups>,
) -> Result<Measured, Bad> {
    let Some(groups) = groups else {
        return read_one(get, count, last).map(Measured::Tally);
    };
    let group = groups.number_of(symbol);
    let from = groups.list[group].count;
    groups.list[group].grow(count);
    Ok(Measured::Part { group, from, to: groups.list[group].count })
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
