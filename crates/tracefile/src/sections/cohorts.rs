//! Section `ranks`: which ranks made the same calls, and which structure and streams they have.

use std::collections::HashMap;
use std::rc::Rc;

use refrain_fold::bundle::{
    Bundle, Cohort, Lane, MOST_RANKS, Number, Side, SideKind, Structure, SymbolEntry, Variant,
};
use refrain_fold::loops::Node;
use refrain_fold::ranks::{Checks, Curve, MapPart, Part, RankList, RankMap};

use crate::get::{Bad, Get};
use crate::sections::kinds::Kinds;
use crate::sections::maps;
use crate::sections::symbols::head;
use crate::sections::tables::{AXES, BITS, Pending, Tables};
use crate::sections::{StoredList, first, read_ranks, write_ranks};
use crate::token::{Field, Put, pair, two};

// How a lane's stream is told.
/// The expected one: that of the last cohort with this symbol, or else of the last symbol that begins alike.
const SAME: u64 = 0;
/// The first that no lane had yet.
const NEXT: u64 = 1;
/// By its number.
const OTHER: u64 = 2;
/// Not one stream for all ranks.
const VARIED: u64 = 3;
/// By who is whose neighbour.
const NEIGHBOURS: u64 = 4;

/// What hangs off a structure, in the order of `Cohort::lanes`.
pub struct Layout<'a> {
    /// The nodes of its loops: each has times.
    nodes: &'a [Node],
    /// Its symbols, each with how many lanes it has.
    symbols: Vec<(u32, u16)>,
}

pub fn layouts<'a>(structures: &'a [Structure], symbols: &[SymbolEntry]) -> Vec<Layout<'a>> {
    let lanes = |symbol: u32| symbols.get(symbol as usize).map_or(0, |s| s.lanes);
    let of = |structure: &'a Structure| Layout {
        nodes: structure.loops().map_or(&[], |loops| &loops.nodes),
        symbols: structure.symbols().into_iter().map(|symbol| (symbol, lanes(symbol))).collect(),
    };
    structures.iter().map(of).collect()
}

impl Layout<'_> {
    /// One by one: a hostile file can announce more lanes than fit into memory.
    pub fn places<'a>(&'a self, symbols: &'a [SymbolEntry]) -> impl Iterator<Item = LaneKey> + 'a {
        let times = self.nodes.iter().map(|node| LaneKey {
            symbol: TIMES,
            head: TIMES,
            lane: matches!(node, Node::Loop { .. }).into(),
            lanes: 2,
        });
        let values = self.symbols.iter().flat_map(move |&(symbol, lanes)| {
            let head = symbols.get(symbol as usize).map_or(0, |entry| head(&entry.bytes));
            (0..lanes).map(move |lane| LaneKey { symbol, head, lane, lanes })
        });
        times.chain(values)
    }
}

/// What writer and reader both know of the cohorts before.
#[derive(Default)]
struct Past {
    first: u32,
    structures: u32,
    streams: u32,
    /// What the last cohort with the symbol has in each lane.
    last: HashMap<(u32, u16), u32>,
    /// The same for any symbol that begins alike: often another call of the same function.
    alike: HashMap<(u32, u16), u32>,
    maps: maps::Past,
    /// The writer's, for the cohort at hand, by the ranks of the variants: its lanes mostly divide its ranks alike.
    divisions: HashMap<Vec<RankList>, Rc<Division>>,
    /// The reader's: what functions gave, by how many groups there are.
    groups: HashMap<(Rc<RankMap>, usize), Rc<Vec<RankList>>>,
}

/// How the ranks of a cohort are divided in a lane.
struct Division {
    /// Where the ranks without numbers stand among the groups, if there are some.
    lacking: Option<usize>,
    /// The group of each rank, where there are several.
    choice: Option<RankMap>,
}

impl Division {
    /// `ranks` where some of them may be in no variant.
    fn new(variants: &[RankList], ranks: Option<&RankList>) -> Division {
        let mut groups: Vec<&RankList> = variants.iter().collect();
        let have: u64 = variants.iter().map(RankList::len).sum();
        let without = ranks.filter(|ranks| have < ranks.len()).map(|ranks| {
            let mut have: Vec<u32> = variants.iter().flat_map(RankList::iter).collect();
            have.sort_unstable();
            ranks.without(&RankList::from_sorted(&have))
        });
        // They are a group like any other, in its place by lowest rank.
        let first = |ranks: &RankList| ranks.parts.first().map(|part| part.start);
        let lacking = without.as_ref().map(|without| {
            let at = groups.partition_point(|group| first(group) < first(without));
            groups.insert(at, without);
            at
        });
        let choice = (groups.len() > 1).then(|| {
            let pairs = (0i64..).zip(&groups).flat_map(|(at, group)| group.iter().map(move |r| (r, at)));
            RankMap::loose(pairs.collect())
        });
        Division { lacking, choice }
    }
}

/// A lane's place: its symbol's number and head, and which of how many.
#[derive(Clone, Copy)]
pub struct LaneKey {
    pub symbol: u32,
    pub head: u32,
    pub lane: u16,
    lanes: u16,
}

impl LaneKey {
    /// All side lanes of a kind are alike.
    fn of_side(kind: SideKind) -> LaneKey {
        LaneKey { symbol: kind.0.into(), head: kind.0.into(), lane: 0, lanes: 1 }
    }
}

/// Stands for the symbol of lanes that are the times of a node.
const TIMES: u32 = u32::MAX;

impl Past {
    /// The stream to expect.
    fn expected(&self, place: LaneKey) -> Option<u32> {
        let same = self.last.get(&(place.symbol, place.lane));
        same.or_else(|| self.alike.get(&(place.head, place.lane))).copied()
    }

    /// Hints for how the stream is told, and for which it is.
    fn hints(&self, place: LaneKey) -> (u64, u64) {
        let here = pair(place.symbol, place.lane.into());
        let to_go = u32::from(place.lanes - place.lane);
        let expected = self.expected(place).map_or(0, |s| s.wrapping_add(1));
        match self.last.contains_key(&(place.symbol, place.lane)) {
            true => (two(pair(here, 1), 1), two(pair(here, 1), expected)),
            false => {
                (two(pair(pair(place.head, place.lane.into()), 2), 2 + to_go), two(pair(to_go, 3), expected))
            }
        }
    }

    fn note(&mut self, place: LaneKey, stream: u32) {
        self.streams = self.streams.max(stream.saturating_add(1));
        self.last.insert((place.symbol, place.lane), stream);
        self.alike.insert((place.head, place.lane), stream);
    }
}

/// Hints for what varies in a lane, by variant and number.
fn varied_hint(place: LaneKey, what: u32) -> u64 {
    two(pair(pair(place.head, place.lane.into()), 4), what)
}

pub fn number_hint(place: LaneKey, number: u32) -> u64 {
    two(pair(pair(place.head, place.lane.into()), 5), number)
}

/// Where ranks have other numbers, `kinds` says which, and the bundle has these.
pub fn write(put: &mut Put, bundle: &Bundle, kinds: Option<&Kinds>, tables: &Tables) {
    let layouts = layouts(&bundle.structures, &bundle.symbols);
    let mut past = Past::default();
    match kinds {
        Some(kinds) => {
            put.put(Field::Count, 4, 0);
            kinds.write(put);
        }
        None if bundle.cohorts.is_empty() => {
            put.put(Field::Count, 4, 0);
            Kinds::write_none(put);
            return;
        }
        None => {}
    }
    put.put(Field::Count, 4, bundle.cohorts.len() as u64);
    for (number, cohort) in bundle.cohorts.iter().enumerate() {
        // Members are told as ranks of the lowest of their threads, so that where there is one thread they are ranks.
        let thread = cohort.ranks.first().map_or(0, |first| bundle.place_of(first).1);
        let by = -i64::from(thread) * i64::from(bundle.world);
        let moved = (thread > 0).then(|| cohort.moved(by)).flatten();
        put.put(Field::Thread, 0, if moved.is_some() { thread.into() } else { 0 });
        let cohort = moved.as_ref().unwrap_or(cohort);
        let told = match curve_of(&cohort.ranks) {
            Some((curve, seen)) => write_seen(put, curve, &seen, past.first),
            None => write_ranks(put, &cohort.ranks, past.first),
        };
        past.first = first(&cohort.ranks);
        past.maps.note_ranks(&told.whole);
        past.divisions.clear();
        put.signed(Field::CohortStructure, 0, i64::from(past.structures) - i64::from(cohort.structure));
        past.structures = past.structures.max(cohort.structure.saturating_add(1));
        let layout = &layouts[cohort.structure as usize];
        let loops = !layout.nodes.is_empty();
        for (at, (place, lane)) in layout.places(&bundle.symbols).zip(&cohort.lanes).enumerate() {
            if tables.has(number, at) {
                put.put(Field::Lane, past.hints(place).0, NEIGHBOURS);
                continue;
            }
            write_lane(put, &mut past, place, lane, loops.then_some(&cohort.ranks));
        }
        tables.write(put, number, layout.places(&bundle.symbols), &mut past.maps);
        put.put(Field::Bits, 64, cohort.digest);
    }
}

/// Lists of fewer parts are told as they are.
const MANY_PARTS: usize = 8;

/// A Morton curve along which the ranks are far fewer boxes, and where they are seen there.
fn curve_of(ranks: &RankList) -> Option<(Curve, RankList)> {
    let last = ranks.parts.last()?.last();
    if ranks.parts.len() < MANY_PARTS {
        return None;
    }
    let price = |ranks: &RankList| ranks.parts.iter().map(|part| 1 + part.dims.len()).sum::<usize>();
    let curves = (2..=Curve::MOST_AXES).map(|axes| Curve { axes, bits: u32::BITS - last.leading_zeros() });
    let seen = |curve: Curve| ranks.iter().map(|rank| curve.seen(rank)).collect::<RankList>();
    let all = curves.filter(|curve| curve.is_sound()).map(|curve| (curve, seen(curve)));
    all.min_by_key(|(_, seen)| price(seen)).filter(|(_, seen)| 2 * price(seen) < price(ranks))
}

/// A list without ranks, which no cohort has, says that the ranks follow as they are seen along a curve.
fn write_seen(put: &mut Put, curve: Curve, seen: &RankList, near: u32) -> StoredList {
    write_ranks(put, &RankList::default(), near);
    put.put(Field::Neighbours, AXES, curve.axes.into());
    put.put(Field::Neighbours, BITS, curve.bits.into());
    write_ranks(put, seen, 0)
}

fn read_seen(get: &mut Get, left: &mut u64, checks: &mut Checks) -> Result<StoredList, Bad> {
    let curve =
        Curve { axes: get.small(Field::Neighbours, AXES)?, bits: get.small(Field::Neighbours, BITS)? };
    let StoredList { ranks: seen, whole, .. } = read_ranks(get, 0, left)?;
    let last = seen.parts.last().map(Part::last);
    if !curve.is_sound() || last.is_none_or(|last| last >= curve.ranks()) {
        return Err(Bad::new("ranks that are on no curve"));
    }
    // They are looked at, sorted and folded.
    checks.spend_on_ranks(seen.len().saturating_mul(4))?;
    let ranks: RankList = seen.iter().map(|seen| curve.rank(seen)).collect();
    Ok(StoredList { first: first(&ranks), ranks, whole })
}

/// `ranks` where some of them may be in no variant.
fn write_lane(put: &mut Put, past: &mut Past, place: LaneKey, lane: &Lane, ranks: Option<&RankList>) {
    match lane {
        Lane::Same { stream, .. } => write_stream(put, past, place, *stream),
        Lane::Varied(variants) => {
            put.put(Field::Lane, past.hints(place).0, VARIED);
            write_variants(put, past, place, variants, ranks);
        }
    }
}

/// The side lanes of all cohorts; their lists and functions are of members as they are.
pub fn write_sides(put: &mut Put, bundle: &Bundle) {
    let mut past = Past::default();
    for cohort in &bundle.cohorts {
        past.first = first(&cohort.ranks);
        put.put(Field::Count, 21, cohort.sides.len() as u64);
        for side in &cohort.sides {
            put.put(Field::Count, 22, side.kind.0.into());
            for lane in &side.lanes {
                put.put(Field::Count, 23, lane.is_some().into());
                if let Some(lane) = lane {
                    write_lane(put, &mut past, LaneKey::of_side(side.kind), lane, None);
                }
            }
        }
    }
}

pub fn read_sides(get: &mut Get, bundle: &mut Bundle, checks: &mut Checks) -> Result<(), Bad> {
    let symbols: Vec<usize> = bundle.structures.iter().map(|s| s.symbols().len()).collect();
    let mut past = Past::default();
    for cohort in &mut bundle.cohorts {
        past.first = first(&cohort.ranks);
        for _ in 0..get.count(Field::Count, 21)? {
            let kind = SideKind(get.small(Field::Count, 22)?);
            let place = LaneKey::of_side(kind);
            let mut lanes = Vec::new();
            for _ in 0..symbols.get(cohort.structure as usize).copied().unwrap_or(0) {
                lanes.push(match get.get(Field::Count, 23)? {
                    0 => None,
                    _ => Some(match read_stream(get, &mut past, place)? {
                        Told::Stream(stream) => Lane::same(stream),
                        Told::Neighbours => return Err(Bad::new("neighbours in a side lane")),
                        Told::Varied => {
                            Lane::Varied(read_variants(get, &mut past, place, &cohort.ranks, false, checks)?)
                        }
                    }),
                });
            }
            cohort.sides.push(Side { kind, lanes });
        }
    }
    Ok(())
}

fn write_stream(put: &mut Put, past: &mut Past, place: LaneKey, stream: u32) {
    let how = if past.expected(place) == Some(stream) {
        SAME
    } else if stream == past.streams {
        NEXT
    } else {
        OTHER
    };
    let (how_hint, which_hint) = past.hints(place);
    put.put(Field::Lane, how_hint, how);
    if how == OTHER {
        put.put(Field::LaneStream, which_hint, stream.into());
    }
    past.note(place, stream);
}

/// `ranks` where some of them may be in no variant.
fn write_variants(
    put: &mut Put,
    past: &mut Past,
    place: LaneKey,
    variants: &[Variant],
    ranks: Option<&RankList>,
) {
    put.put(Field::Variants, varied_hint(place, 0), variants.len() as u64 - 1);
    let key: Vec<RankList> = variants.iter().map(|v| v.ranks.clone()).collect();
    let division = past.divisions.entry(key).or_insert_with_key(|key| Rc::new(Division::new(key, ranks)));
    let division = division.clone();
    if ranks.is_some() {
        let told = division.lacking.map_or(0, |at| at as u64 + 1);
        put.put(Field::Variants, varied_hint(place, 4), told);
    }
    if let Some(choice) = &division.choice {
        maps::write(put, choice, varied_hint(place, 1), past.first, &mut past.maps);
    }
    for variant in variants {
        write_stream(put, past, place, variant.stream);
        put.put(Field::Variants, varied_hint(place, 2), variant.numbers.len() as u64);
        let mut next = 0;
        for number in &variant.numbers {
            let hint = number_hint(place, number.place);
            put.put(Field::NumberPlace, varied_hint(place, 3), u64::from(number.place - next));
            next = number.place + 1;
            maps::write(put, &number.values, hint, past.first, &mut past.maps);
        }
    }
}

pub fn read(
    get: &mut Get,
    world: u32,
    structures: &[Structure],
    symbols: &[SymbolEntry],
    checks: &mut Checks,
) -> Result<(Vec<Cohort>, Pending), Bad> {
    let layouts = layouts(structures, symbols);
    let mut past = Past::default();
    let mut count = get.count(Field::Count, 4)?;
    let mut tables = Pending::default();
    if count == 0 {
        tables.kinds = Kinds::read(get, checks)?;
        count = if tables.kinds.is_some() { get.count(Field::Count, 4)? } else { 0 };
    }
    let mut cohorts = Vec::new();
    let mut left = MOST_RANKS;
    for number in 0..count {
        let thread: u32 = get.small(Field::Thread, 0)?;
        if thread > 0 && tables.kinds.is_some() {
            return Err(Bad::new("kinds of threads"));
        }
        let mut told = read_ranks(get, past.first, &mut left)?;
        if told.ranks.is_empty() {
            told = read_seen(get, &mut left, checks)?;
        }
        let StoredList { ranks, first, whole } = told;
        past.first = first;
        past.maps.read_ranks(whole);
        past.groups.clear();
        let structure = i64::from(past.structures).checked_sub(get.signed(Field::CohortStructure, 0)?);
        let structure = structure.and_then(|s| u32::try_from(s).ok()).unwrap_or(u32::MAX);
        let layout = layouts.get(structure as usize);
        let layout = layout.ok_or_else(|| Bad(format!("structure {structure} does not exist")))?;
        past.structures = past.structures.max(structure.saturating_add(1));
        let mut lanes = Vec::new();
        let loops = !layout.nodes.is_empty();
        let mut neighbours = Vec::new();
        for place in layout.places(symbols) {
            lanes.push(match read_stream(get, &mut past, place)? {
                Told::Stream(stream) => Lane::same(stream),
                Told::Neighbours if thread > 0 || tables.kinds.is_some() => {
                    return Err(Bad::new("neighbours of threads"));
                }
                Told::Neighbours if place.symbol == TIMES => return Err(Bad::new("neighbours of times")),
                Told::Neighbours => {
                    neighbours.push((lanes.len(), place));
                    Lane::Varied(Vec::new())
                }
                Told::Varied => Lane::Varied(read_variants(get, &mut past, place, &ranks, loops, checks)?),
            });
        }
        tables.read(get, (number, &ranks), &neighbours, &mut past.maps, checks)?;
        let sides = Vec::new();
        let cohort = Cohort { ranks, structure, lanes, sides, digest: get.get(Field::Bits, 64)? };
        cohorts.push(match thread {
            0 => cohort,
            _ => {
                let by = i64::from(thread) * i64::from(world);
                cohort.moved(by).ok_or_else(|| Bad(format!("thread {thread} is beyond the last")))?
            }
        });
    }
    Ok((cohorts, tables))
}

/// How a lane is told.
enum Told {
    /// One stream for all ranks.
    Stream(u32),
    Varied,
    Neighbours,
}

fn read_stream(get: &mut Get, past: &mut Past, place: LaneKey) -> Result<Told, Bad> {
    let (how_hint, which_hint) = past.hints(place);
    let stream = match (get.get(Field::Lane, how_hint)?, past.expected(place)) {
        (SAME, Some(same)) => same,
        (NEXT, _) => past.streams,
        (OTHER, _) => get.small(Field::LaneStream, which_hint)?,
        (VARIED, _) => return Ok(Told::Varied),
        (NEIGHBOURS, _) => return Ok(Told::Neighbours),
        _ => return Err(Bad::new("a lane like one that is not there")),
    };
    past.note(place, stream);
    Ok(Told::Stream(stream))
}

fn read_variants(
    get: &mut Get,
    past: &mut Past,
    place: LaneKey,
    ranks: &RankList,
    may_lack: bool,
    checks: &mut Checks,
) -> Result<Vec<Variant>, Bad> {
    let count = get.count(Field::Variants, varied_hint(place, 0))?;
    let lacking = if may_lack { get.count(Field::Variants, varied_hint(place, 4))? } else { 0 };
    let groups = count + 1 + usize::from(lacking > 0);
    let mut members = vec![ranks.clone()];
    if groups > 1 {
        let choice = maps::read(get, varied_hint(place, 1), past.first, &mut past.maps, checks)?;
        let known = past.groups.get(&(choice.clone(), groups)).cloned();
        let chosen = match known {
            Some(known) => known,
            None => {
                let chosen = Rc::new(choose(&choice, groups, ranks, checks)?);
                past.groups.insert((choice, groups), chosen.clone());
                chosen
            }
        };
        let parts: usize = chosen.iter().map(|group| group.parts.len()).sum();
        checks.spend(parts as u64 * maps::A_PART)?;
        members = chosen.to_vec();
    }
    if lacking > groups {
        return Err(Bad::new("ranks without numbers that are no group"));
    } else if lacking > 0 {
        members.remove(lacking - 1);
    }
    let mut variants = Vec::with_capacity(members.len());
    for ranks in members {
        let Told::Stream(stream) = read_stream(get, past, place)? else {
            return Err(Bad::new("a variant of variants"));
        };
        let mut numbers = Vec::new();
        let mut next = 0u32;
        for _ in 0..get.count(Field::Variants, varied_hint(place, 2))? {
            let skipped: u32 = get.small(Field::NumberPlace, varied_hint(place, 3))?;
            let number = next.checked_add(skipped).filter(|n| *n < u32::MAX);
            let number = number.ok_or_else(|| Bad::new("a number at no place"))?;
            next = number + 1;
            let values = maps::read(get, number_hint(place, number), past.first, &mut past.maps, checks)?;
            numbers.push(Number { place: number, values: RankMap::clone(&values) });
        }
        variants.push(Variant { ranks, stream, used: 0, numbers });
    }
    Ok(variants)
}

/// The ranks of each group. None is without, so there are no more of them than ranks.
fn choose(
    choice: &RankMap,
    count: usize,
    ranks: &RankList,
    checks: &mut Checks,
) -> Result<Vec<RankList>, Bad> {
    let bad = || Bad::new("variants that are not over the cohort's ranks");
    if count as u64 > ranks.len() || !checks.is_over(choice, ranks)? {
        return Err(bad());
    }
    if choice.len() == ranks.len()
        && choice.is_plain()
        && let Some(members) = boxes(choice, count)
    {
        return Ok(members);
    }
    checks.spend_on_ranks(choice.len().saturating_add(ranks.len()))?;
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); count];
    for (rank, group) in choice.pairs_of(ranks) {
        let group = usize::try_from(group).ok().and_then(|at| members.get_mut(at)).ok_or_else(bad)?;
        group.push(rank);
    }
    if members.iter().any(Vec::is_empty) {
        return Err(bad());
    }
    Ok(members.iter().map(|ranks| RankList::from_sorted(ranks)).collect())
}

/// The same where each group is one box: the groups of a grid mostly are.
fn boxes(choice: &RankMap, count: usize) -> Option<Vec<RankList>> {
    let mut members: Vec<Option<RankList>> = vec![None; count];
    for part in &choice.parts {
        let MapPart { start, value, dims } = part;
        let mut moving = (0..dims.len()).filter(|&at| dims[at].step != 0);
        let (along, more) = (moving.next(), moving.next());
        let rows = along.map_or(1, |at| dims[at].count);
        if more.is_some() || rows as usize > count {
            return None;
        }
        for row in 0..rows {
            let (stride, step) = along.map_or((0, 0), |at| (dims[at].stride, dims[at].step));
            let group = value.checked_add(step.checked_mul(row.into())?)?;
            let group = members.get_mut(usize::try_from(group).ok()?)?;
            let others = dims.iter().enumerate().filter(|(at, _)| Some(*at) != along);
            let dims = others.map(|(_, dim)| (dim.count, dim.stride)).collect();
            let ranks = Part { start: start + row * stride, dims }.folded();
            if group.replace(ranks).is_some() {
                return None;
            }
        }
    }
    members.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use refrain_fold::loops::{Folder, Matching};

    use super::*;

    /// What reading these tokens says, for loops of one symbol without lanes.
    fn refusal(write: impl FnOnce(&mut Put)) -> String {
        let mut folder = Folder::new(Matching::Exact { window: 8 });
        (0..9).for_each(|_| folder.push(0));
        let structures = [Structure::from(folder.finish().loops)];
        let mut put = Put::plain();
        write(&mut put);
        let bytes = put.finish();
        let read = read(&mut Get::plain(&bytes), 4, &structures, &[], &mut Checks::unbounded());
        read.map(|_| ()).unwrap_err().0
    }

    #[test]
    fn times_are_no_neighbours() {
        let said = refusal(|put| {
            put.put(Field::Count, 4, 1);
            put.put(Field::Thread, 0, 0);
            write_ranks(put, &(0..4).collect(), 0);
            put.put(Field::CohortStructure, 0, 0);
            put.put(Field::Lane, 0, NEIGHBOURS);
        });
        assert_eq!(said, "neighbours of times");
    }

    #[test]
    fn kinds_are_of_the_first_thread() {
        let said = refusal(|put| {
            put.put(Field::Count, 4, 0);
            put.put(Field::Count, 32, 1);
            write_ranks(put, &(0..4).collect(), 0);
            (0..4).for_each(|_| put.put(Field::RankKind, 0, 0));
            put.put(Field::Count, 4, 1);
            put.put(Field::Thread, 0, 1);
        });
        assert_eq!(said, "kinds of threads");
    }
}
