//! Ranks that are alike in everything, told rank by rank at the head of section `ranks`. Which ranks are alike may follow no rule: where land is
//! in an ocean, which cells are cut. It would have to be told in the ranks of each cohort, in each variant, in each function of the
//! rank. So it is told once: ranks get other numbers, by which those that are alike stand side by side.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use refrain_fold::bundle::{Bundle, Cohort, Lane, MOST_RANKS, Number, Variant};
use refrain_fold::ranks::{Checks, RankList, RankMap, TooMuch};

use crate::get::{Bad, Get};
use crate::sections::{read_ranks, write_ranks};
use crate::token::{Field, Put, pair, two};

/// The hint of `Count` for the length of a row.
const ROW: u64 = 32;

/// More kinds of ranks are not few.
const MOST_KINDS: usize = 1 << 12;
/// Each kind must have so many ranks on the mean. Lists and functions must have so many parts as there are kinds, and one for so many ranks,
/// or there is nothing to gain.
const RANKS_A_KIND: usize = 8;
const PARTS_A_KIND: usize = 2;
const RANKS_A_PART: usize = 8;
/// So many ranks are looked at to find out how long rows are.
const LOOKED_AT: usize = 1 << 16;
/// Steps of [`Checks`] for each rank: it is read, and told anew wherever it is in a list or a function.
const A_RANK: u64 = 16;

/// Steps for each rank of a function that comes for the first time: it is folded in many ways.
const A_FOLDED_RANK: u64 = 256;

/// Other numbers for ranks.
#[derive(Default)]
pub struct Kinds {
    ranks: RankList,
    /// How far apart rows of a grid are; 0 if there are none.
    row: u32,
    /// The kind of each rank, in their order. Kinds are numbered as they first come.
    kinds: Vec<u32>,
    /// Of the writer: what a reader spends on them, in steps of [`Checks`].
    steps: u64,
}

impl Kinds {
    /// The kinds of ranks, and the bundle with their numbers. `None` where there is nothing to gain.
    pub fn taken(bundle: &Bundle) -> Option<(Kinds, Bundle)> {
        if bundle.cohorts.iter().any(|cohort| !cohort.sides.is_empty()) {
            return None;
        }
        let mut of: HashMap<u32, u32> = HashMap::new();
        let all: u64 = bundle.cohorts.iter().map(|cohort| cohort.ranks.len()).sum();
        let most = usize::try_from(all).ok()? / RANKS_A_KIND;
        let parts = different_parts(&bundle.cohorts);
        if parts as u64 * (RANKS_A_PART as u64) < all {
            return None;
        }
        let mut next = 0;
        for cohort in &bundle.cohorts {
            of.extend(kinds_of(cohort, &mut next, most.min(MOST_KINDS))?);
        }
        let world = if bundle.world == 0 { u32::MAX } else { bundle.world };
        let mut ranks: Vec<u32> = of.keys().copied().collect();
        ranks.sort_unstable();
        if next as usize * PARTS_A_KIND > parts || ranks.last().is_none_or(|last| *last >= world) {
            return None;
        }
        let mut known: HashMap<u32, u32> = HashMap::new();
        let mut number = |rank: &u32| {
            let next = known.len() as u32;
            *known.entry(of[rank]).or_insert(next)
        };
        let kinds: Vec<u32> = ranks.iter().map(&mut number).collect();
        let mut kinds =
            Kinds { row: best_row(&kinds), ranks: RankList::from_sorted(&ranks), kinds, steps: 0 };
        let new = kinds.numbers(&ranks);
        let new: HashMap<u32, u32> = ranks.iter().copied().zip(new).collect();
        let mut renumbered = bundle.clone();
        // A reader folds as many functions anew.
        let mut checks = Checks::unbounded();
        renumber(&mut renumbered.cohorts, &new, &mut checks).ok()?;
        let told = bundle.cohorts.iter().map(ranks_told).fold(kinds.ranks.len(), u64::saturating_add);
        kinds.steps = told.saturating_mul(A_RANK).saturating_add(checks.spent());
        Some((kinds, renumbered))
    }

    /// What a reader spends on them, in steps of [`Checks`].
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The new number of each rank: by kind, and among those of a kind in order, the ranks themselves dealt out anew.
    fn numbers(&self, ranks: &[u32]) -> Vec<u32> {
        let mut order: Vec<usize> = (0..ranks.len()).collect();
        order.sort_by_key(|&at| self.kinds[at]);
        let mut new = vec![0; ranks.len()];
        for (&at, &rank) in order.iter().zip(ranks) {
            new[at] = rank;
        }
        new
    }

    /// The hint for the kind at a place, of those before it.
    fn hint(&self, at: usize) -> u64 {
        let row = self.row as usize;
        let back =
            |by: usize| at.checked_sub(by).and_then(|at| self.kinds.get(at)).map_or(0, |kind| kind + 1);
        match row {
            0 | 1 => two(back(1), back(2)),
            // Above, and to the right of that.
            _ => two(pair(back(1), back(row)), back(row - 1)),
        }
    }

    pub fn write(&self, put: &mut Put) {
        put.put(Field::Count, ROW, u64::from(self.row) + 1);
        write_ranks(put, &self.ranks, 0);
        for (at, &kind) in self.kinds.iter().enumerate() {
            put.put(Field::RankKind, self.hint(at), kind.into());
        }
    }

    /// There are no ranks at all.
    pub fn write_none(put: &mut Put) {
        put.put(Field::Count, ROW, 0);
    }

    /// `None` where there are no ranks at all.
    pub fn read(get: &mut Get, checks: &mut Checks) -> Result<Option<Kinds>, Bad> {
        let Some(row) = get.small::<u32>(Field::Count, ROW)?.checked_sub(1) else { return Ok(None) };
        let mut left = MOST_RANKS;
        let ranks = read_ranks(get, 0, &mut left)?.ranks;
        checks.spend(ranks.len().saturating_mul(A_RANK))?;
        if ranks.len() > get.left() as u64 {
            return Err(Bad::new("more ranks than there are kinds of them"));
        }
        let mut kinds = Kinds { ranks, row, kinds: Vec::new(), steps: 0 };
        let mut next = 0;
        for at in 0..kinds.ranks.len() as usize {
            let kind: u32 = get.small(Field::RankKind, kinds.hint(at))?;
            if kind > next {
                return Err(Bad::new("a kind of ranks before the one before it"));
            }
            next = next.max(kind + 1);
            kinds.kinds.push(kind);
        }
        Ok(Some(kinds))
    }

    /// Gives the ranks of all cohorts their own numbers again.
    pub fn restore(&self, cohorts: &mut [Cohort], checks: &mut Checks) -> Result<(), Bad> {
        let ranks: Vec<u32> = self.ranks.iter().collect();
        let own: HashMap<u32, u32> = self.numbers(&ranks).into_iter().zip(ranks.iter().copied()).collect();
        for cohort in cohorts.iter() {
            for variant in cohort.lanes.iter().filter_map(variants).flatten() {
                for number in &variant.numbers {
                    if !checks.is_over(&number.values, &variant.ranks)? {
                        return Err(Bad::new("a function that is not over its ranks"));
                    }
                }
            }
            checks.spend(ranks_told(cohort).saturating_mul(A_RANK))?;
            let lists = cohort.lanes.iter().filter_map(variants).flatten().map(|variant| &variant.ranks);
            let mut all = lists.chain([&cohort.ranks]).flat_map(RankList::iter);
            if !all.all(|rank| own.contains_key(&rank)) {
                return Err(Bad::new("a rank of no kind"));
            }
        }
        Ok(renumber(cohorts, &own, checks)?)
    }
}

/// How many ranks a cohort tells: its own, those of variants, and those of functions twice.
fn ranks_told(cohort: &Cohort) -> u64 {
    let of = |v: &Variant| v.ranks.len().saturating_mul(1 + 2 * v.numbers.len() as u64);
    let all = cohort.lanes.iter().filter_map(variants).flatten().map(of);
    all.fold(cohort.ranks.len(), u64::saturating_add)
}

fn variants(lane: &Lane) -> Option<&Vec<Variant>> {
    match lane {
        Lane::Same { .. } => None,
        Lane::Varied(variants) => Some(variants),
    }
}

/// The parts of all lists and functions that are told. Equal ones are told once, and then by references.
fn different_parts(cohorts: &[Cohort]) -> usize {
    let variants = || cohorts.iter().flat_map(|cohort| &cohort.lanes).filter_map(variants).flatten();
    let lists: HashSet<&RankList> =
        cohorts.iter().map(|cohort| &cohort.ranks).chain(variants().map(|variant| &variant.ranks)).collect();
    let maps: HashSet<&RankMap> = variants().flat_map(|v| &v.numbers).map(|number| &number.values).collect();
    lists.iter().map(|list| list.parts.len()).sum::<usize>()
        + maps.iter().map(|map| map.parts.len()).sum::<usize>()
}

/// What a rank has in a lane: its variant and its own numbers.
type Had = (usize, Vec<i64>);

/// The kind of each rank of a cohort: those of a kind have the same in every lane. `None` where there are too many.
fn kinds_of(cohort: &Cohort, next: &mut u32, most: usize) -> Option<HashMap<u32, u32>> {
    let start = *next;
    *next += 1;
    let mut kinds: HashMap<u32, u32> = cohort.ranks.iter().map(|rank| (rank, start)).collect();
    let mut lanes: HashSet<u128> = HashSet::new();
    for variants in cohort.lanes.iter().filter_map(variants) {
        // Ranks that are alike in a lane are so in every other one with the same lists and functions.
        let of = |v: &Variant| hash(&(&v.ranks, v.numbers.iter().map(|n| &n.values).collect::<Vec<_>>()));
        if !lanes.insert(hash(&variants.iter().map(of).collect::<Vec<_>>())) {
            continue;
        }
        let mut known: HashMap<(u32, Option<Had>), u32> = HashMap::new();
        let mut seen: HashMap<u32, Had> = HashMap::new();
        for (at, variant) in variants.iter().enumerate() {
            seen.extend(variant.ranks.iter().map(|rank| (rank, (at, Vec::new()))));
            for number in &variant.numbers {
                for (rank, value) in number.values.pairs_of(&variant.ranks) {
                    seen.get_mut(&rank)?.1.push(value);
                }
            }
        }
        *next = start;
        for rank in &cohort.ranks {
            let kind = kinds.get_mut(&rank)?;
            *kind = *known.entry((*kind, seen.remove(&rank))).or_insert_with(|| {
                *next += 1;
                *next - 1
            });
        }
        if *next as usize > most {
            return None;
        }
    }
    (*next as usize <= most).then_some(kinds)
}

/// The length of a row by which most is known of a kind from the one before it and the one above. Rows of a grid divide the ranks.
fn best_row(all: &[u32]) -> u32 {
    let kinds = &all[..all.len().min(LOOKED_AT)];
    let entropy = |row: usize| {
        let back = |at: usize, by: usize| at.checked_sub(by).map_or(0, |at| kinds[at] + 1);
        let mut often: HashMap<(u32, u32), u32> = HashMap::new();
        let mut both: HashMap<(u32, u32, u32), u32> = HashMap::new();
        for (at, &kind) in kinds.iter().enumerate() {
            let before = (back(at, 1), if row > 1 { back(at, row) } else { 0 });
            *often.entry(before).or_default() += 1;
            *both.entry((before.0, before.1, kind)).or_default() += 1;
        }
        let first = 6.0 * both.len() as f64;
        // A kind that comes for the first time in its place takes about a byte.
        bits(often.into_values()) - bits(both.into_values()) + first
    };
    let divides = |row: &usize| all.len().is_multiple_of(*row);
    let rows = [0].into_iter().chain((2..=kinds.len() / 2).filter(divides));
    // The first of equals is the smallest.
    let best = rows.map(|row| (entropy(row), row)).min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or(0, |(_, row)| row as u32)
}

/// The sum of n log n. Sums of fractions depend on their order, and that of a map is another in every run.
fn bits(counts: impl Iterator<Item = u32>) -> f64 {
    let mut counts: Vec<u32> = counts.collect();
    counts.sort_unstable();
    counts.into_iter().map(f64::from).map(|n| n * n.log2()).sum()
}

/// Every rank must have a new number.
fn renumber(cohorts: &mut [Cohort], new: &HashMap<u32, u32>, checks: &mut Checks) -> Result<(), TooMuch> {
    let list = |ranks: &RankList| -> RankList { ranks.iter().map(|rank| new[&rank]).collect() };
    let mut known: HashMap<RankList, RankList> = HashMap::new();
    let mut list = |ranks: &mut RankList| {
        let other = known.entry(std::mem::take(ranks)).or_insert_with_key(list);
        *ranks = other.clone();
    };
    let mut maps: HashMap<u128, RankMap> = HashMap::new();
    for cohort in cohorts {
        list(&mut cohort.ranks);
        for lane in &mut cohort.lanes {
            let Lane::Varied(variants) = lane else { continue };
            for variant in variants {
                for Number { values, .. } in &mut variant.numbers {
                    let mut pairs = values.pairs_of(&variant.ranks);
                    *values = match maps.entry(hash(&pairs)) {
                        Entry::Occupied(known) => known.get().clone(),
                        Entry::Vacant(place) => {
                            checks.spend((pairs.len() as u64).saturating_mul(A_FOLDED_RANK))?;
                            pairs.iter_mut().for_each(|(rank, _)| *rank = new[rank]);
                            place.insert(RankMap::loose(pairs)).clone()
                        }
                    };
                }
                list(&mut variant.ranks);
            }
        }
    }
    Ok(())
}

/// What stands for something that would take much memory to keep.
pub fn hash(of: &(impl Hash + ?Sized)) -> u128 {
    let half = |first: u8| {
        let mut hasher = DefaultHasher::new();
        first.hash(&mut hasher);
        of.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(1) << 64 | half(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts come in any order, and their sum must be the same to the last bit, or equal rows are not.
    #[test]
    fn the_order_of_counts_does_not_matter() {
        let counts: Vec<u32> = (1..200).map(|n| n * n % 197 + 1).collect();
        let as_they_come = bits(counts.iter().copied());
        assert_eq!(as_they_come.to_bits(), bits(counts.iter().rev().copied()).to_bits());
        let plainly = |counts: &mut dyn Iterator<Item = &u32>| -> f64 {
            counts.map(|n| f64::from(*n)).map(|n| n * n.log2()).sum()
        };
        assert_ne!(plainly(&mut counts.iter()).to_bits(), plainly(&mut counts.iter().rev()).to_bits());
    }

    /// A cohort of 64 ranks with a lane in two variants for each of these functions, which both have.
    fn cohort(functions: &[fn(u32) -> i64]) -> Cohort {
        let lane = |function: &fn(u32) -> i64| {
            let variant = |odd: u32| {
                let ranks: RankList = (0..64).filter(|rank| rank % 2 == odd).collect();
                let values = RankMap::loose(ranks.iter().map(|rank| (rank, function(rank))).collect());
                Variant { ranks, stream: 0, used: 0, numbers: vec![Number { place: 0, values }] }
            };
            Lane::Varied((0..2).map(variant).collect())
        };
        let lanes = functions.iter().map(lane).collect();
        Cohort { ranks: (0..64).collect(), structure: 0, lanes, sides: Vec::new(), digest: 0 }
    }

    /// Folding a function anew takes a reader far longer than looking at its ranks, so it pays for each that is another.
    #[test]
    fn functions_that_are_folded_are_paid_for() {
        let kinds: Vec<u32> = (0..64).map(|rank| rank % 3).collect();
        let kinds = Kinds { ranks: (0..64).collect(), row: 0, kinds, steps: 0 };
        let spent = |functions: &[fn(u32) -> i64]| {
            let mut checks = Checks::unbounded();
            kinds.restore(&mut [cohort(functions)], &mut checks).unwrap();
            checks.spent()
        };
        let [one, other]: [fn(u32) -> i64; 2] = [|rank| (rank / 7).into(), |rank| (rank / 9).into()];
        let [few, same, different] = [spent(&[one]), spent(&[one, one]), spent(&[one, other])];
        assert!(few >= 64 * A_FOLDED_RANK, "{few}");
        assert!(same - few < 64 * A_FOLDED_RANK, "{few} {same}");
        assert!(different - few >= 64 * A_FOLDED_RANK, "{few} {different}");
    }

    /// The writer knows before what its reader spends, but for holding functions against their ranks.
    #[test]
    fn what_a_reader_spends_is_known() {
        let functions: [fn(u32) -> i64; 2] =
            [|rank| (rank.wrapping_mul(0x9e37_79b9) >> 31).into(), |rank| (rank % 4 / 3).into()];
        let bundle = Bundle { cohorts: vec![cohort(&functions)], ..Bundle::default() };
        let (kinds, mut renumbered) = Kinds::taken(&bundle).unwrap();
        let mut checks = Checks::unbounded();
        for variant in renumbered.cohorts[0].lanes.iter().filter_map(variants).flatten() {
            for number in &variant.numbers {
                assert_eq!(checks.is_over(&number.values, &variant.ranks), Ok(true));
            }
        }
        let holding = checks.spent();
        let mut checks = Checks::unbounded();
        kinds.restore(&mut renumbered.cohorts, &mut checks).unwrap();
        // Their list is read before.
        assert_eq!(checks.spent() + 64 * A_RANK - holding, kinds.steps());
        assert_eq!(renumbered.cohorts, bundle.cohorts);
    }

    /// Many lanes with the same functions are one, as in the file.
    #[test]
    fn equal_lanes_count_once() {
        let functions: [fn(u32) -> i64; 2] = [|rank| (rank * rank % 8).into(), |rank| (rank % 4 / 3).into()];
        let one = different_parts(&[cohort(&functions)]);
        assert_eq!(different_parts(&[cohort(&functions.repeat(9))]), one);
        let kinds = |functions: &[fn(u32) -> i64]| kinds_of(&cohort(functions), &mut 0, 64).unwrap();
        assert_eq!(kinds(&functions.repeat(9)), kinds(&functions));
        assert_ne!(kinds(&functions), kinds(&functions[..1]));
    }
}
