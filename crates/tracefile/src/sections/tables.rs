//! Lanes that tell each rank's neighbours along a Morton curve, in section `ranks`. What is a neighbour by its coordinates has no simple
//! number, and where a program sorts its neighbours by rank their order changes from rank to rank. So these lanes are told as what
//! they are: ways to go from each rank, sorted or not, and other numbers in the order of the neighbours.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use refrain_fold::bundle::{Bundle, Cohort, Lane, Structure, Variant};
use refrain_fold::ranks::{Checks, Curve, Part, RankList, RankMap, TooMuch};
use refrain_fold::stream::{Flat, Stream};

use crate::get::{Bad, Get};
use crate::sections::cohorts::{LaneKey, number_hint};
use crate::sections::kinds::{Kinds, hash};
use crate::sections::maps;
use crate::token::{Field, Put};

// Hints of `Neighbours`.
const HOW: u64 = 0;
pub const AXES: u64 = 1;
pub const BITS: u64 = 2;
const WIDTH: u64 = 3;
const TAIL: u64 = 4;
const SORTED: u64 = 5;

// How a table is told.
const NEW: u64 = 0;
/// This and every second after it: the same rows as those of an earlier lane.
const SAME: u64 = 1;
/// This and every second after it: in the order of neighbours that are told.
const BESIDE: u64 = 2;

/// More numbers in a row are no neighbours.
const MOST_WIDTH: usize = 64;
/// Fewer ranks are told in a moment.
const FEWEST_RANKS: u64 = 8;
/// A lane must become so many times shorter, roughly.
const SHORTER: u64 = 2;
/// Who is so many times shorter is.
const PLAINLY: u64 = 6;
/// Lanes that cost less stay as they are.
const LEAST: u64 = 16;
/// More different ways of one neighbour are no ways of a grid; so many ranks are looked at.
const MOST_WAYS: usize = 64;
const MOST_RANKS_LOOKED_AT: usize = 1 << 12;
/// What a number of a row takes, and a row, in steps of [`Checks`].
const A_NUMBER: u64 = 16;
const A_ROW: u64 = 128;

/// Numbers as they come, up to where they repeat: a row for each rank, by rank.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rows {
    rows: Vec<Vec<i64>>,
    /// The last so many come over and over.
    tail: usize,
}

/// Who is a neighbour, of all ranks of a cohort.
struct Neighbours {
    /// Where the ranks are seen, in their order.
    seen: Vec<u32>,
    /// The same as a list.
    list: RankList,
    /// For each rank the number of the neighbour at each place.
    order: Vec<Vec<usize>>,
    tail: usize,
}

/// How one lane is told.
enum Told {
    New {
        curve: Curve,
        tail: usize,
        sorted: bool,
        ways: Vec<RankMap>,
    },
    /// Which of the lanes of the cohort that are told so it is the same as.
    Same(usize),
    /// Which of the new ones of the cohort has the order.
    Beside(usize, Vec<RankMap>),
}

/// The lanes that are told so, by cohort; each with its number among the cohort's lanes, in their order.
#[derive(Default)]
pub struct Tables {
    told: HashMap<usize, Vec<(usize, Told)>>,
    /// What these lanes took before, roughly in numbers.
    before: u64,
    /// What a reader spends on them, in steps of [`Checks`].
    steps: u64,
}

impl Tables {
    /// The tables of a bundle, and the bundle without these lanes and the streams that no other lane has. `None` where there are none.
    pub fn taken(bundle: &Bundle) -> Option<(Tables, Bundle)> {
        // Streams of side lanes are numbered behind all others.
        if bundle.cohorts.iter().any(|cohort| !cohort.sides.is_empty()) {
            return None;
        }
        let (mut told, mut before, mut steps) = (HashMap::new(), 0, 0u64);
        for (number, cohort) in bundle.cohorts.iter().enumerate() {
            let thread = cohort.ranks.first().map_or(0, |first| bundle.place_of(first).1);
            if thread == 0 && cohort.ranks.len() >= FEWEST_RANKS {
                let (lanes, cost, work) = tell(bundle, cohort);
                before += cost;
                steps = steps.saturating_add(work);
                if !lanes.is_empty() {
                    told.insert(number, lanes);
                }
            }
        }
        if told.is_empty() {
            return None;
        }
        let mut rest = bundle.clone();
        for (&cohort, lanes) in &told {
            for (lane, _) in lanes {
                rest.cohorts[cohort].lanes[*lane] = Lane::Varied(Vec::new());
            }
        }
        rest.number_streams();
        Some((Tables { told, before, steps }, rest))
    }

    /// What a reader spends on them, in steps of [`Checks`].
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether they are so much shorter that nothing else need be tried.
    pub fn are_plainly_better(&self) -> bool {
        let cost = |told: &Told| match told {
            Told::New { ways: maps, .. } | Told::Beside(_, maps) => 8 + cost(maps),
            Told::Same(_) => 2,
        };
        let now: u64 = self.told.values().flatten().map(|(_, told)| cost(told)).sum();
        self.before > PLAINLY * now
    }

    /// Whether a lane of a cohort is told here.
    pub fn has(&self, cohort: usize, lane: usize) -> bool {
        self.told.get(&cohort).is_some_and(|lanes| lanes.iter().any(|(at, _)| *at == lane))
    }

    /// What comes after the lanes of a cohort, whose places these are.
    pub fn write(
        &self,
        put: &mut Put,
        cohort: usize,
        places: impl Iterator<Item = LaneKey>,
        past: &mut maps::Past,
    ) {
        let Some(lanes) = self.told.get(&cohort) else { return };
        let places: Vec<LaneKey> = places.collect();
        for (_, told) in lanes {
            let how = match told {
                Told::New { .. } => NEW,
                Told::Same(lane) => SAME + 2 * *lane as u64,
                Told::Beside(table, _) => BESIDE + 2 * *table as u64,
            };
            put.put(Field::Neighbours, HOW, how);
        }
        let mut write = |put: &mut Put, lane: usize, maps: &[RankMap]| {
            for (number, map) in (0u32..).zip(maps) {
                maps::write(put, map, number_hint(places[lane], number), 0, past);
            }
        };
        for (lane, told) in lanes {
            if let Told::New { curve, tail, sorted, ways } = told {
                put.put(Field::Neighbours, AXES, curve.axes.into());
                put.put(Field::Neighbours, BITS, curve.bits.into());
                put.put(Field::Neighbours, WIDTH, ways.len() as u64);
                put.put(Field::Neighbours, TAIL, *tail as u64);
                put.put(Field::Neighbours, SORTED, (*sorted).into());
                write(put, *lane, ways);
            }
        }
        for (lane, told) in lanes {
            if let Told::Beside(_, numbers) = told {
                write(put, *lane, numbers);
            }
        }
    }
}

/// What a lane takes as it is, roughly in numbers.
fn cost_of(bundle: &Bundle, variants: &[Variant]) -> u64 {
    let one = |v: &Variant| {
        let stream = bundle.streams.get(v.stream as usize).map_or(0, Stream::weight);
        let maps: u64 = v.numbers.iter().map(|n| 1 + n.values.cost()).sum();
        2 + stream + maps
    };
    // About as many parts has the function that says which variant is whose.
    let parts = |v: &Variant| 2 * v.ranks.parts.len() as u64;
    let choice = if variants.len() > 1 { variants.iter().map(parts).sum() } else { 0 };
    choice + variants.iter().map(one).sum::<u64>()
}

/// Numbers that go on for ever: some once, the others over and over. Both as few as can be, whatever way the stream tells them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Round {
    once: usize,
    numbers: Vec<i64>,
}

impl Round {
    fn of(stream: &Stream) -> Option<Round> {
        let Flat { mut numbers, tail } = stream.flat(MOST_WIDTH).filter(|flat| flat.tail > 0)?;
        let mut once = numbers.len() - tail;
        let again = &numbers[once..];
        let repeats = |period: &usize| again[*period..].iter().zip(again).all(|(a, b)| a == b);
        let period = (1..=tail).filter(|period| tail % period == 0).find(repeats)?;
        numbers.truncate(once + period);
        // What comes once may be the end of what comes over and over.
        while once > 0 && numbers[once - 1] == numbers[numbers.len() - 1] {
            numbers.pop();
            once -= 1;
        }
        Some(Round { once, numbers })
    }

    fn period(&self) -> usize {
        self.numbers.len() - self.once
    }

    /// The first numbers.
    fn first(&self, count: usize) -> Vec<i64> {
        let again = self.numbers[self.once..].iter().cycle();
        self.numbers[..self.once].iter().chain(again).take(count).copied().collect()
    }
}

/// The rows of all ranks, if one length is that of all.
fn rows_of(bundle: &Bundle, variants: &[Variant]) -> Option<Rows> {
    let mut rounds: Vec<(u32, Rc<Round>)> = Vec::new();
    for variant in variants {
        let values = variant.numbers.iter().map(|n| (n.place, n.values.pairs_of(&variant.ranks)));
        let own: Vec<(u32, Vec<(u32, i64)>)> = values.collect();
        let stream = bundle.streams.get(variant.stream as usize)?;
        let same = if own.is_empty() { Some(Rc::new(Round::of(stream)?)) } else { None };
        for (at, rank) in variant.ranks.iter().enumerate() {
            let round = match &same {
                Some(same) => same.clone(),
                None => {
                    let own = own.iter().map(|(place, values)| Some((*place, values.get(at)?.1)));
                    let stream = bundle.with_own(variant.stream, own.collect::<Option<_>>()?)?;
                    Rc::new(Round::of(stream.as_ref())?)
                }
            };
            rounds.push((rank, round));
        }
    }
    let once = rounds.iter().map(|(_, round)| round.once).max()?;
    let mut tail = 1;
    for (_, round) in &rounds {
        tail = (tail..=MOST_WIDTH).step_by(tail).find(|tail| tail.is_multiple_of(round.period()))?;
    }
    let length = Some(once + tail).filter(|length| *length <= MOST_WIDTH)?;
    rounds.sort_unstable_by_key(|round| round.0);
    Some(Rows { rows: rounds.iter().map(|(_, round)| round.first(length)).collect(), tail })
}

/// A lane that may be worth it. Its rows are made when they are needed: those of many lanes would take much memory.
struct Candidate<'a> {
    lane: usize,
    variants: &'a [Variant],
    /// The first one with the same rows.
    first: usize,
    /// What it may cost.
    most: u64,
}

fn cost(maps: &[RankMap]) -> u64 {
    maps.iter().map(RankMap::cost).sum()
}

/// Functions that were folded, by their pairs: the same come again in other lanes, and along other curves.
#[derive(Default)]
struct Folded(HashMap<u128, RankMap>);

impl Folded {
    /// The functions and what they cost, if that is less than `most`. No more of them are folded than it takes to know.
    fn all(&mut self, functions: Vec<Vec<(u32, i64)>>, most: u64) -> Option<(u64, Vec<RankMap>)> {
        let (mut cost, mut maps) = (0, Vec::new());
        for pairs in functions {
            let map = self.0.entry(hash(&pairs)).or_insert_with(|| RankMap::loose(pairs));
            cost += map.cost();
            if cost >= most {
                return None;
            }
            maps.push(map.clone());
        }
        (cost < most).then_some((cost, maps))
    }
}

/// All lanes of a cohort that are shorter so, what they took, and the steps that a reader spends on them.
fn tell(bundle: &Bundle, cohort: &Cohort) -> (Vec<(usize, Told)>, u64, u64) {
    let own = bundle.structures.get(cohort.structure as usize).map_or(0, Structure::own_lanes);
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut tables: Vec<Neighbours> = Vec::new();
    let mut told: Vec<Option<Told>> = Vec::new();
    let mut folded = Folded::default();
    // The first candidate with these variants, if they have rows, and the first with these rows.
    let mut by_variants: HashMap<u128, Option<usize>> = HashMap::new();
    let mut by_rows: HashMap<u128, usize> = HashMap::new();
    for (lane, of) in cohort.lanes.iter().enumerate().skip(own) {
        let Lane::Varied(variants) = of else { continue };
        // Ranks without numbers have no row.
        let all = variants.iter().map(|v| v.ranks.len()).sum::<u64>() == cohort.ranks.len();
        let most = cost_of(bundle, variants) / SHORTER;
        if !all || most < LEAST {
            continue;
        }
        let next = candidates.len();
        let mut new = None;
        let first = *by_variants.entry(hash_of(variants)).or_insert_with(|| {
            let rows = rows_of(bundle, variants)?;
            let first = *by_rows.entry(hash(&(&rows.rows, rows.tail))).or_insert(next);
            if first == next {
                new = find(&cohort.ranks, &rows, most, &mut folded);
            }
            Some(first)
        });
        let Some(first) = first else { continue };
        candidates.push(Candidate { lane, variants, first, most });
        let (new, neighbours) = new.unzip();
        told.push(new);
        tables.extend(neighbours);
    }
    for (at, candidate) in candidates.iter().enumerate() {
        if told[at].is_some() || candidate.first < at || tables.is_empty() {
            continue;
        }
        let Some(rows) = rows_of(bundle, candidate.variants) else { continue };
        let mut less_than = candidate.most;
        for (number, table) in tables.iter().enumerate() {
            if let Some((cost, maps)) = table.in_their_order(&rows, less_than, &mut folded) {
                less_than = cost;
                told[at] = Some(Told::Beside(number, maps));
            }
        }
    }
    // The same as one that is told: its number among these.
    let mut number: Vec<Option<usize>> = Vec::new();
    let mut next = 0;
    for (at, told) in told.iter_mut().enumerate() {
        let first = candidates[at].first;
        if let Some(same) = number.get(first).copied().flatten() {
            *told = Some(Told::Same(same));
        }
        number.push(told.is_some().then_some(next));
        next += usize::from(told.is_some());
    }
    // What it takes to keep the rows once more, by the lane that has them.
    let mut kept: HashMap<usize, u64> = HashMap::new();
    let mut steps = 0u64;
    for (at, told) in told.iter().enumerate() {
        steps = steps.saturating_add(match told {
            None => 0,
            Some(Told::New { ways: maps, .. } | Told::Beside(_, maps)) => steps_of(&cohort.ranks, maps),
            Some(Told::Same(same)) => *kept.entry(*same).or_insert_with(|| {
                let rows = rows_of(bundle, candidates[at].variants);
                let groups = rows.map(|rows| groups(&cohort.ranks, &rows)).unwrap_or_default();
                steps_to_keep(groups.iter().map(|group| &group.1))
            }),
        });
    }
    let before =
        candidates.iter().zip(&told).filter(|(_, told)| told.is_some()).map(|(c, _)| SHORTER * c.most);
    let before = before.sum();
    let lanes = candidates.iter().map(|candidate| candidate.lane);
    (lanes.zip(told).filter_map(|(lane, told)| Some((lane, told?))).collect(), before, steps)
}

/// What stands for variants.
fn hash_of(variants: &[Variant]) -> u128 {
    let numbers = |v: &Variant| v.numbers.iter().map(|n| hash(&(n.place, &n.values))).collect::<Vec<_>>();
    hash(&variants.iter().map(|v| hash(&(&v.ranks, v.stream, numbers(v)))).collect::<Vec<_>>())
}

/// Rows as neighbours, if that costs less than `most`.
fn find(ranks: &RankList, rows: &Rows, most: u64, folded: &mut Folded) -> Option<(Told, Neighbours)> {
    let bits = 32 - ranks.iter().last()?.leading_zeros();
    let curves = (1..=Curve::MOST_AXES).map(|axes| Curve { axes, bits }).filter(|curve| curve.is_sound());
    // Distances along the ranks themselves are what they are now.
    let ways = curves.flat_map(|curve| [(curve, true), (curve, false)]);
    let (mut best, mut less_than) = (None, most);
    for (curve, sorted) in ways.filter(|(curve, sorted)| *sorted || curve.axes > 1) {
        if let Some((cost, ways, neighbours)) =
            Neighbours::found(curve, ranks, rows, sorted, less_than, folded)
        {
            less_than = cost;
            best = Some((Told::New { curve, tail: rows.tail, sorted, ways }, neighbours));
        }
    }
    best
}

impl Neighbours {
    /// Without their order.
    fn of(curve: Curve, ranks: &RankList, tail: usize) -> Neighbours {
        let seen: Vec<u32> = ranks.iter().map(|rank| curve.seen(rank)).collect();
        let list = seen.iter().copied().collect();
        Neighbours { seen, list, order: Vec::new(), tail }
    }

    /// The ways to the neighbours and what they cost, if these are all on the curve, the ways are few and cost less than `most`.
    fn found(
        curve: Curve,
        ranks: &RankList,
        rows: &Rows,
        sorted: bool,
        most: u64,
        folded: &mut Folded,
    ) -> Option<(u64, Vec<RankMap>, Neighbours)> {
        let width = rows.rows.first()?.len();
        if sorted && !rows.rows.iter().all(|row| row.is_sorted()) {
            return None;
        }
        let mut different: Vec<HashSet<u32>> = vec![HashSet::new(); width];
        let mut ways: Vec<Vec<(u32, i64)>> = vec![Vec::new(); width];
        let mut order = Vec::new();
        for (rank, row) in ranks.iter().zip(&rows.rows) {
            let seen = curve.seen(rank);
            let way = |&by: &i64| {
                let to = i64::from(rank).checked_add(by).and_then(|to| u32::try_from(to).ok())?;
                (to < curve.ranks()).then(|| curve.way(seen, curve.seen(to)))
            };
            let row: Vec<u32> = row.iter().map(way).collect::<Option<_>>()?;
            let mut places: Vec<usize> = (0..width).collect();
            if sorted {
                places.sort_by_key(|&place| row[place]);
            }
            for (number, &place) in places.iter().enumerate() {
                different[number].insert(row[place]);
                if different[number].len() > MOST_WAYS {
                    return None;
                }
                ways[number].push((seen, row[place].into()));
            }
            order.push(inverse(&places));
        }
        let (cost, ways) = folded.all(ways, most)?;
        Some((cost, ways, Neighbours { order, ..Neighbours::of(curve, ranks, rows.tail) }))
    }

    /// The numbers of each neighbour and what they cost, if there are as many and they cost less than `most`.
    fn in_their_order(&self, rows: &Rows, most: u64, folded: &mut Folded) -> Option<(u64, Vec<RankMap>)> {
        let (width, have) = (self.order.first()?.len(), rows.rows.first()?.len());
        // Fewer numbers come several times.
        let once = width - self.tail;
        if have - rows.tail > once || !self.tail.is_multiple_of(rows.tail) {
            return None;
        }
        let mut numbers: Vec<Vec<(u32, i64)>> = vec![Vec::new(); width];
        for ((row, order), &seen) in rows.rows.iter().zip(&self.order).zip(&self.seen) {
            let more = row[have - rows.tail..].iter().cycle();
            for (&number, &value) in order.iter().zip(row.iter().chain(more)) {
                numbers[number].push((seen, value));
            }
        }
        let few = |numbers: &Vec<(u32, i64)>| {
            let different: HashSet<i64> = numbers.iter().map(|n| n.1).take(MOST_RANKS_LOOKED_AT).collect();
            different.len() <= MOST_WAYS
        };
        if numbers.iter().all(few) { folded.all(numbers, most) } else { None }
    }
}

/// Of places by number, numbers by place.
fn inverse(places: &[usize]) -> Vec<usize> {
    let mut numbers = vec![0; places.len()];
    for (number, &place) in places.iter().enumerate() {
        numbers[place] = number;
    }
    numbers
}

/// What a reader keeps until it knows the streams.
#[derive(Default)]
pub struct Pending {
    /// Where ranks have other numbers.
    pub kinds: Option<Kinds>,
    /// Of lanes that are told here, by cohort and lane.
    lanes: Vec<(usize, usize, Rc<Rows>)>,
}

impl Pending {
    /// What comes after the lanes of a cohort, some of which are told here.
    pub fn read(
        &mut self,
        get: &mut Get,
        (cohort, ranks): (usize, &RankList),
        lanes: &[(usize, LaneKey)],
        maps: &mut maps::Past,
        checks: &mut Checks,
    ) -> Result<(), Bad> {
        let missing = || Bad::new("neighbours like some that are not there");
        let how: Vec<u64> =
            lanes.iter().map(|_| get.get(Field::Neighbours, HOW)).collect::<Result<_, Bad>>()?;
        let mut rows: Vec<Option<Rc<Rows>>> = vec![None; lanes.len()];
        let mut tables = Vec::new();
        for (at, _) in how.iter().enumerate().filter(|(_, how)| **how == NEW) {
            let (own, neighbours) = read_new(get, ranks, lanes[at].1, maps, checks)?;
            rows[at] = Some(Rc::new(own));
            tables.push(neighbours);
        }
        for (at, &how) in how.iter().enumerate().filter(|(_, how)| **how != NEW && *how % 2 == BESIDE % 2) {
            let table = usize::try_from((how - BESIDE) / 2).ok().and_then(|table| tables.get(table));
            let table: &Neighbours = table.ok_or_else(missing)?;
            let width = table.order.first().map_or(0, Vec::len);
            spend(checks, ranks, width)?;
            let numbers = table.read_functions(get, width, lanes[at].1, maps, checks)?;
            let row = |(numbers, order): (Vec<i64>, &Vec<usize>)| order.iter().map(|&n| numbers[n]).collect();
            let own = numbers.into_iter().zip(&table.order).map(row).collect();
            rows[at] = Some(Rc::new(Rows { rows: own, tail: table.tail }));
        }
        for (at, &how) in how.iter().enumerate().filter(|(_, how)| *how % 2 == SAME) {
            let same = usize::try_from(how / 2).ok().filter(|same| *same < at);
            let same = same.and_then(|same| rows[same].clone()).ok_or_else(missing)?;
            // What it takes to keep them is known once they are grouped.
            rows[at] = Some(same);
        }
        self.lanes
            .extend(lanes.iter().zip(rows).filter_map(|((lane, _), rows)| Some((cohort, *lane, rows?))));
        Ok(())
    }

    /// Gives ranks their own numbers and puts the lanes into their places. The streams of these come behind all others.
    pub fn fill(self, bundle: &mut Bundle, checks: &mut Checks) -> Result<(), Bad> {
        if let Some(kinds) = &self.kinds {
            kinds.restore(&mut bundle.cohorts, checks)?;
        }
        let mut known: HashMap<(Vec<i64>, usize), u32> = HashMap::new();
        // The first lane with the rows.
        let mut first: HashMap<*const Rows, usize> = HashMap::new();
        for (number, at, table) in &self.lanes {
            let cohort = &mut bundle.cohorts[*number];
            if let Some(same) = first.get(&Rc::as_ptr(table)) {
                if let Lane::Varied(variants) = &cohort.lanes[*same] {
                    checks.spend(steps_to_keep(variants.iter().map(|variant| &variant.ranks)))?;
                }
                cohort.lanes[*at] = cohort.lanes[*same].clone();
                continue;
            }
            let mut variants = Vec::new();
            for (row, ranks) in groups(&cohort.ranks, table) {
                let row = &table.rows[row];
                let next = u32::try_from(bundle.streams.len());
                let next = next.map_err(|_| Bad::new("more streams than can be numbered"))?;
                let stream = *known.entry((row.clone(), table.tail)).or_insert(next);
                if stream == next {
                    let made = Flat { numbers: row.clone(), tail: table.tail }.stream();
                    bundle.streams.push(made.ok_or_else(|| Bad::new("a row that cannot go on"))?);
                }
                variants.push(Variant { ranks, stream, used: 0, numbers: Vec::new() });
            }
            cohort.lanes[*at] = Lane::Varied(variants);
            first.insert(Rc::as_ptr(table), *at);
        }
        Ok(())
    }
}

/// The ranks of each different row, and where it comes first, which is their order.
fn groups(ranks: &RankList, table: &Rows) -> Vec<(usize, RankList)> {
    let mut members: Vec<(usize, Vec<u32>)> = Vec::new();
    let mut known: HashMap<&[i64], usize> = HashMap::new();
    for (at, (rank, row)) in ranks.iter().zip(&table.rows).enumerate() {
        let group = *known.entry(row).or_insert_with(|| {
            members.push((at, Vec::new()));
            members.len() - 1
        });
        members[group].1.push(rank);
    }
    members.into_iter().map(|(at, ranks)| (at, RankList::from_sorted(&ranks))).collect()
}

/// What it takes to keep rows that are kept already: their groups once more.
fn steps_to_keep<'a>(groups: impl Iterator<Item = &'a RankList>) -> u64 {
    groups.map(|ranks| (1 + ranks.parts.len() as u64) * maps::A_PART).fold(0, u64::saturating_add)
}

/// What it takes to read rows by these functions, but for holding these against the ranks.
fn steps_of(ranks: &RankList, functions: &[RankMap]) -> u64 {
    let looked_at = functions.iter().map(|map| Checks::A_RANK.saturating_mul(map.len()));
    looked_at.fold(steps_of_rows(ranks, functions.len()), u64::saturating_add)
}

fn steps_of_rows(ranks: &RankList, width: usize) -> u64 {
    ranks.len().saturating_mul(width as u64 * A_NUMBER + A_ROW)
}

fn spend(checks: &mut Checks, ranks: &RankList, width: usize) -> Result<(), TooMuch> {
    checks.spend(steps_of_rows(ranks, width))
}

fn read_new(
    get: &mut Get,
    ranks: &RankList,
    place: LaneKey,
    maps: &mut maps::Past,
    checks: &mut Checks,
) -> Result<(Rows, Neighbours), Bad> {
    let (axes, bits) = (get.small(Field::Neighbours, AXES)?, get.small(Field::Neighbours, BITS)?);
    let curve = Curve { axes, bits };
    let width: usize = get.small(Field::Neighbours, WIDTH)?;
    let tail: usize = get.small(Field::Neighbours, TAIL)?;
    let sorted = get.get(Field::Neighbours, SORTED)? != 0;
    let last = ranks.parts.last().map_or(0, Part::last);
    if !curve.is_sound()
        || last >= curve.ranks()
        || !(1..=MOST_WIDTH).contains(&width)
        || !(1..=width).contains(&tail)
    {
        return Err(Bad::new("neighbours that are on no curve"));
    }
    spend(checks, ranks, width)?;
    let mut neighbours = Neighbours::of(curve, ranks, tail);
    let ways = neighbours.read_functions(get, width, place, maps, checks)?;
    let mut rows = Vec::new();
    for ((rank, &seen), ways) in ranks.iter().zip(&neighbours.seen).zip(ways) {
        let to = |way: i64| {
            let way = u32::try_from(way).ok().filter(|way| *way < curve.ranks())?;
            Some(i64::from(curve.rank(curve.moved(seen, way))) - i64::from(rank))
        };
        let row = ways.into_iter().map(to).collect::<Option<Vec<i64>>>();
        let row = row.ok_or_else(|| Bad::new("a way that leads to no rank"))?;
        let mut order: Vec<usize> = (0..width).collect();
        if sorted {
            order.sort_by_key(|&number| row[number]);
        }
        rows.push(order.iter().map(|&number| row[number]).collect());
        neighbours.order.push(order);
    }
    Ok((Rows { rows, tail }, neighbours))
}

impl Neighbours {
    /// What `count` functions give each rank.
    fn read_functions(
        &self,
        get: &mut Get,
        count: usize,
        place: LaneKey,
        maps: &mut maps::Past,
        checks: &mut Checks,
    ) -> Result<Vec<Vec<i64>>, Bad> {
        let mut by_seen: HashMap<u32, usize> = HashMap::new();
        by_seen.extend(self.seen.iter().enumerate().map(|(at, &seen)| (seen, at)));
        let mut rows = vec![Vec::with_capacity(count); self.seen.len()];
        for number in 0..count {
            let map = maps::read(get, number_hint(place, number as u32), 0, maps, checks)?;
            if !checks.is_over(&map, &self.list)? {
                return Err(Bad::new("a function that is not over the cohort's ranks"));
            }
            checks.spend_on_ranks(map.len())?;
            for (seen, value) in map.pairs_of(&self.list) {
                rows[by_seen[&seen]].push(value);
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folding takes long. What was folded is not folded again, and nothing is once it is known that it costs too much.
    #[test]
    fn no_more_is_folded_than_it_takes() {
        let function = |by: u32| (0..64).map(|rank| (rank, i64::from(rank * rank % by))).collect();
        let functions: Vec<Vec<(u32, i64)>> = (5..15).map(function).collect();
        let mut folded = Folded::default();
        let (cost, maps) = folded.all(functions.clone(), u64::MAX).unwrap();
        let plainly: Vec<RankMap> = functions.iter().cloned().map(RankMap::loose).collect();
        assert_eq!((folded.0.len(), cost, &maps), (10, super::cost(&plainly), &plainly));
        assert_eq!(folded.all(functions.clone(), cost), None);
        assert_eq!(folded.all(functions.clone(), u64::MAX), Some((cost, maps.clone())));
        assert_eq!(folded.0.len(), 10);
        let mut folded = Folded::default();
        assert_eq!(folded.all(functions, maps[0].cost() + 1), None);
        assert_eq!(folded.0.len(), 2);
    }
}
