//! The end of section `streams`: numbers without a shape. The streams of many ranks in one lane are told together, number by number,
//! so that what one of them teaches the coder holds for all. Where one lane is the transpose of another (what a rank
//! receives from others is what these send to it), it is told by that word.

use std::cell::OnceCell;
use std::collections::HashMap;

use refrain_fold::bundle::{Bundle, Cohort, Lane, Structure, SymbolEntry, Variant};
use refrain_fold::ranks::RankList;
use refrain_fold::stream::{Block, Flat, Stream, Term};

use crate::get::{Bad, Get};
use crate::sections::cohorts::layouts;
use crate::token::{Field, Put, pair, two, zigzag};

// Hints of `Count`.
const HOW: u64 = 24;
const LAG: u64 = 25;
const LENGTH: u64 = 26;
const TAIL: u64 = 27;

/// Fewer streams are not told together.
const FEWEST: usize = 3;
/// Numbers of one stream, and of all streams of a file. A number takes the coder about a microsecond.
const MOST_OF_ONE: usize = 1 << 16;
const MOST: usize = 1 << 22;
/// A transpose has at most so many times the numbers that were told: streams end where they repeat.
const MORE: usize = 2;
/// Distances at which numbers are compared, and in how many streams.
const LAGS: usize = 4096;
const SAMPLES: usize = 4;
const SAMPLED: usize = 4096;

/// Streams that are told together.
struct Group {
    symbol: u32,
    head: u32,
    lane: u16,
    /// With the lowest member that has each, in that order.
    streams: Vec<(u32, u32)>,
}

/// A lane and who has which stream in it.
struct Use<'a> {
    symbol: u32,
    head: u32,
    lane: u16,
    cohort: &'a Cohort,
    of: &'a Lane,
}

/// Members and the stream that they have.
struct Have<'a> {
    ranks: &'a RankList,
    stream: u32,
    /// Some of its numbers are their own.
    own: bool,
}

impl<'a> Use<'a> {
    fn streams(&self) -> Vec<Have<'a>> {
        match self.of {
            Lane::Same { stream, .. } => {
                vec![Have { ranks: &self.cohort.ranks, stream: *stream, own: false }]
            }
            Lane::Varied(variants) => {
                let have =
                    |v: &'a Variant| Have { ranks: &v.ranks, stream: v.stream, own: !v.numbers.is_empty() };
                variants.iter().map(have).collect()
            }
        }
    }
}

/// What streams are used for.
pub struct Uses<'a> {
    pub cohorts: &'a [Cohort],
    pub structures: &'a [Structure],
    pub symbols: &'a [SymbolEntry],
}

impl<'a> Uses<'a> {
    pub fn of(bundle: &'a Bundle) -> Uses<'a> {
        let Bundle { cohorts, structures, symbols, .. } = bundle;
        Uses { cohorts, structures, symbols }
    }

    fn for_each(&self, mut each: impl FnMut(Use<'a>)) {
        let layouts = layouts(self.structures, self.symbols);
        for cohort in self.cohorts {
            let Some(layout) = layouts.get(cohort.structure as usize) else { continue };
            for (place, of) in layout.places(self.symbols).zip(&cohort.lanes) {
                each(Use { symbol: place.symbol, head: place.head, lane: place.lane, cohort, of });
            }
        }
    }

    /// The streams that are `pooled`, each where it is first used.
    fn groups(&self, pooled: &[bool]) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut known: HashMap<(u32, u16), usize> = HashMap::new();
        let mut seen = vec![false; pooled.len()];
        self.for_each(|u| {
            for Have { ranks, stream, .. } in u.streams() {
                let at = stream as usize;
                if !pooled.get(at).is_some_and(|is| *is) || std::mem::replace(&mut seen[at], true) {
                    continue;
                }
                let group = *known.entry((u.symbol, u.lane)).or_insert_with(|| {
                    let Use { symbol, head, lane, .. } = u;
                    groups.push(Group { symbol, head, lane, streams: Vec::new() });
                    groups.len() - 1
                });
                groups[group].streams.push((ranks.first().unwrap_or(0), stream));
            }
        });
        groups.iter_mut().for_each(|group| group.streams.sort_unstable());
        groups
    }

    /// Who has which stream, lane by lane.
    fn index(&self) -> Index<'a> {
        let mut index = Index::default();
        self.for_each(|u| index.by_lane.entry((u.symbol, u.lane)).or_default().extend(u.streams()));
        index
    }
}

/// Who has what, by symbol and lane.
#[derive(Default)]
struct Index<'a> {
    by_lane: HashMap<(u32, u16), Vec<Have<'a>>>,
}

impl Index<'_> {
    /// The stream of each member in a lane, by member, if they are not too many and have no numbers of their own.
    fn rows(&self, symbol: u32, lane: u16) -> Option<Vec<(u32, u32)>> {
        let streams = self.by_lane.get(&(symbol, lane))?;
        let members: u64 = streams.iter().map(|have| have.ranks.len()).sum();
        if members > MOST_OF_ONE as u64 || streams.iter().any(|have| have.own) {
            return None;
        }
        let of = |have: &Have| have.ranks.iter().map(|member| (member, have.stream)).collect::<Vec<_>>();
        let mut rows: Vec<(u32, u32)> = streams.iter().flat_map(of).collect();
        rows.sort_unstable();
        rows.windows(2).all(|two| two[0].0 < two[1].0).then_some(rows)
    }
}

/// What the numbers of a lane are told by: the number so many places before, if there is one.
#[derive(Clone, Copy)]
struct Context {
    lane: u32,
    lag: usize,
}

impl Context {
    /// What the next number is told relative to, and with which hint.
    fn next(&self, before: &[i64]) -> (i64, u64) {
        match before.len().checked_sub(self.lag).filter(|_| self.lag > 0) {
            Some(at) => {
                let origin = before[at];
                (origin, two(pair(self.lane, 7), (origin as u32).wrapping_add(1)))
            }
            None => (0, two(pair(self.lane, 6), 0)),
        }
    }

    /// The numbers as they are told, with whether there was something to tell them by.
    fn told(&self, numbers: &[i64]) -> impl Iterator<Item = (bool, u64)> {
        (0..numbers.len()).map(move |at| {
            let (origin, _) = self.next(&numbers[..at]);
            (self.lag > 0 && at >= self.lag, zigzag(numbers[at].wrapping_sub(origin)))
        })
    }
}

enum How {
    Told(usize),
    /// The transpose of another lane of the symbol.
    Transposed(u16),
}

/// Which streams of a bundle are told together, and how.
#[derive(Default)]
pub struct Pools {
    pooled: Vec<bool>,
    groups: Vec<(Group, How)>,
}

impl Pools {
    pub fn new(bundle: &Bundle) -> Pools {
        let uses = Uses::of(bundle);
        let mut pooled: Vec<bool> = bundle.streams.iter().map(may_be_pooled).collect();
        // Places in streams with numbers of the ranks' own are counted; what says how often something runs is short.
        uses.for_each(|u| {
            for Have { stream, own, .. } in u.streams() {
                pooled[stream as usize] &= !own && u.symbol != u32::MAX;
            }
        });
        for side in
            bundle.cohorts.iter().flat_map(|cohort| &cohort.sides).flat_map(|side| &side.lanes).flatten()
        {
            side.streams().for_each(|stream| pooled[stream as usize] = false);
        }
        let mut pools = Pools { pooled: vec![false; bundle.streams.len()], groups: Vec::new() };
        let (index, mut left) = (uses.index(), MOST);
        for group in uses.groups(&pooled) {
            if group.streams.len() < FEWEST {
                continue;
            }
            // What may be told later is not there for a transpose.
            let is_known = |stream: u32| pools.has(stream as usize) || !pooled[stream as usize];
            let how = match pools.transposed(&index, bundle, &group, is_known) {
                Some(lane) => How::Transposed(lane),
                None => match worth(bundle, &group, &mut left) {
                    Some(lag) => How::Told(lag),
                    None => continue,
                },
            };
            group.streams.iter().for_each(|&(_, stream)| pools.pooled[stream as usize] = true);
            pools.groups.push((group, how));
        }
        pools
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub fn has(&self, stream: usize) -> bool {
        self.pooled.get(stream).is_some_and(|is| *is)
    }

    /// The lane of the symbol that this group's is the transpose of.
    fn transposed(
        &self,
        index: &Index,
        bundle: &Bundle,
        group: &Group,
        is_known: impl Fn(u32) -> bool,
    ) -> Option<u16> {
        let told = self.groups.iter().filter(|(other, how)| {
            other.symbol == group.symbol && other.lane != group.lane && matches!(how, How::Told(_))
        });
        let taken = |lane: u16| {
            self.groups.iter().any(|(other, how)| {
                other.symbol == group.symbol && matches!(how, How::Transposed(of) if *of == lane)
            })
        };
        let known = |lane: u16| {
            let rows = index.rows(group.symbol, lane);
            rows.is_some_and(|rows| rows.iter().all(|(_, stream)| is_known(*stream)))
        };
        told.map(|(other, _)| other)
            .find(|other| {
                !taken(other.lane) && known(other.lane) && is_transposed(index, bundle, other, group)
            })
            .map(|other| other.lane)
    }

    pub fn write(&self, put: &mut Put, bundle: &Bundle) {
        for (group, how) in &self.groups {
            match how {
                How::Told(lag) => {
                    put.put(Field::Count, HOW, 0);
                    put.put(Field::Count, LAG, *lag as u64);
                }
                How::Transposed(lane) => put.put(Field::Count, HOW, 1 + u64::from(*lane)),
            }
            let mut before = 0;
            for &(_, stream) in &group.streams {
                let Some(Flat { numbers, tail }) = bundle.streams[stream as usize].flat(MOST_OF_ONE) else {
                    continue;
                };
                put.signed(Field::Count, LENGTH, (numbers.len() as i64).wrapping_sub(before));
                put.put(Field::Count, TAIL, tail as u64);
                before = numbers.len() as i64;
                if let How::Told(lag) = how {
                    let context = Context { lane: pair(group.head, group.lane.into()), lag: *lag };
                    for at in 0..numbers.len() {
                        let (origin, hint) = context.next(&numbers[..at]);
                        put.signed(Field::Pooled, hint, numbers[at].wrapping_sub(origin));
                    }
                }
            }
        }
    }
}

/// Whether a stream is a row of numbers that its steps do not make shorter.
fn may_be_pooled(stream: &Stream) -> bool {
    if stream.as_constant().is_some() {
        return false;
    }
    let steps: usize = stream.shape.rules.iter().map(Vec::len).sum();
    let packed: usize = stream.blocks.iter().map(|block| block.len() as usize).sum();
    let fits = |flat: Flat| 8 * (steps + packed) >= flat.numbers.len() && flat.stream().is_some();
    stream.flat(MOST_OF_ONE).is_some_and(fits)
}

/// Whether it is shorter to tell a group together; the lag, then.
fn worth(bundle: &Bundle, group: &Group, left: &mut usize) -> Option<usize> {
    let streams = || group.streams.iter().map(|(_, stream)| &bundle.streams[*stream as usize]);
    let numbers = |stream: &Stream| stream.flat(MOST_OF_ONE).map_or(0, |flat| flat.numbers.len());
    if streams().map(numbers).sum::<usize>() > *left {
        return None;
    }
    let lag = best_lag(streams().filter_map(|stream| stream.flat(MOST_OF_ONE)).take(SAMPLES));
    let context = Context { lane: 0, lag };
    let mut counts: HashMap<(bool, u64), u64> = HashMap::new();
    let mut all = [0u64; 2];
    let mut apart = 0.0;
    for stream in streams() {
        apart += bits_alone(stream);
        for told in context.told(&stream.flat(MOST_OF_ONE)?.numbers) {
            *counts.entry(told).or_default() += 1;
            all[usize::from(told.0)] += 1;
        }
    }
    let total = usize::try_from(all[0] + all[1]).ok()?;
    let learnt = |told: u64| 4.0 + (told as f64 + 1.0).log2();
    let bits = |(&(by, told), &n): (&(bool, u64), &u64)| {
        n as f64 * (all[usize::from(by)] as f64 / n as f64).log2() + learnt(told)
    };
    let together: f64 = counts.iter().map(bits).sum();
    if total > *left || together * 1.05 + 64.0 > apart {
        return None;
    }
    *left -= total;
    Some(lag)
}

/// About what a stream takes by itself, in bits: rather too much, as whoever writes tries both.
fn bits_alone(stream: &Stream) -> f64 {
    let bits = |n: u64| (n as f64 + 2.0).log2();
    let steps: usize = stream.shape.rules.iter().map(Vec::len).sum();
    let terms = stream.terms.iter().map(|term| match *term {
        Term::Value(value) => bits(zigzag(value)),
        Term::Stride { start, step, .. } => bits(zigzag(start)) + bits(zigzag(step)) + 2.0,
        Term::Block(_) => 24.0,
    });
    let packed = stream.blocks.iter().map(|block| match block {
        Block::Packed { bytes, .. } => 8.0 * bytes.len() as f64,
        _ => 0.0,
    });
    let names = (stream.terms.len() + stream.shape.rules.len()) as u64;
    1.5 * (steps as f64 * bits(names) + terms.sum::<f64>()) + packed.sum::<f64>()
}

/// The distance at which most numbers are the same, if that is at least half of them; otherwise 0.
fn best_lag(samples: impl Iterator<Item = Flat>) -> usize {
    let samples: Vec<Vec<i64>> =
        samples.map(|flat| flat.numbers.into_iter().take(SAMPLED).collect()).collect();
    let longest = samples.iter().map(Vec::len).max().unwrap_or(0);
    let same = |lag: usize| -> usize {
        samples.iter().map(|all| all.iter().skip(lag).zip(all).filter(|(a, b)| a == b).count()).sum()
    };
    let all: usize = samples.iter().map(Vec::len).sum();
    let best = (1..=(longest * 3 / 4).min(LAGS)).map(|lag| (same(lag), std::cmp::Reverse(lag))).max();
    best.filter(|(same, _)| 4 * same >= all).map_or(0, |(_, lag)| lag.0)
}

/// Whether the numbers of `group` are those of `told` with rows and columns exchanged, for each call.
fn is_transposed(index: &Index, bundle: &Bundle, told: &Group, group: &Group) -> bool {
    let extent = |group: &Group| -> (usize, usize) {
        let lengths = group
            .streams
            .iter()
            .filter_map(|(_, s)| bundle.streams[*s as usize].flat(MOST_OF_ONE))
            .map(|f| f.numbers.len());
        lengths.fold((0, 0), |(all, most), n| (all + n, most.max(n)))
    };
    let ((all, _), (_, longest)) = (extent(told), extent(group));
    let rows = |of: &Group| index.rows(of.symbol, of.lane);
    let (Some(from), Some(to)) = (rows(told), rows(group)) else { return false };
    let width = from.len();
    if width < 3
        || !from.iter().map(|row| row.0).eq(to.iter().map(|row| row.0))
        || transpose_size(width, longest) > MORE * all
    {
        return false;
    }
    let first = |(_, stream): &(u32, u32)| bundle.streams[*stream as usize].iter().next();
    if !from.iter().map(first).eq(bundle.streams[to[0].1 as usize].iter().take(width).map(Some)) {
        return false;
    }
    let count = longest.div_ceil(width) * width;
    let sum = |rows: &[(u32, u32)], across: bool| {
        let mut sum = 0u128;
        for (row, (_, stream)) in (0u64..).zip(rows) {
            for (at, number) in (0u64..).zip(bundle.streams[*stream as usize].iter().take(count)) {
                let (call, column) = (at / width as u64, at % width as u64);
                let (a, b) = if across { (column, row) } else { (row, column) };
                sum = sum.wrapping_add(print([call, a, b, number as u64]));
            }
        }
        sum
    };
    sum(&from, false) == sum(&to, true)
}

/// A number at a place, as one that is added up with others.
fn print(of: [u64; 4]) -> u128 {
    let mix = |seed: u64| {
        of.into_iter().fold(seed, |hash, word| {
            let p = u128::from(hash ^ word.wrapping_mul(0xd6e8_feb8_6659_fd93)) * 0x9e37_79b9_7f4a_7c15;
            (p as u64 ^ (p >> 64) as u64).rotate_left(23).wrapping_add(seed)
        })
    };
    u128::from(mix(0x5245_4652_4149_4e21)) << 64 | u128::from(mix(0xa24b_aed4_963e_e407))
}

/// How many numbers are looked at for a transpose.
fn transpose_size(width: usize, longest: usize) -> usize {
    width.saturating_mul(width).saturating_mul(longest.div_ceil(width.max(1)))
}

/// A stream that is told with others has no steps.
pub fn is_elsewhere(stream: &Stream) -> bool {
    stream.shape.rules.iter().all(Vec::is_empty)
}

/// Puts the numbers of streams without steps into their places.
pub fn read(get: &mut Get, streams: &mut [Stream], uses: &Uses) -> Result<(), Bad> {
    let pooled: Vec<bool> = streams.iter().map(is_elsewhere).collect();
    let groups = uses.groups(&pooled);
    let found: usize = groups.iter().map(|group| group.streams.len()).sum();
    if found < pooled.iter().filter(|is| **is).count() {
        return Err(Bad::new("a stream is empty"));
    }
    // Numbers that a transpose may still have.
    let mut room = 0usize;
    let index = OnceCell::new();
    for group in groups {
        let how: u64 = get.get(Field::Count, HOW)?;
        if let Some(lane) = how.checked_sub(1) {
            let lane = u16::try_from(lane).map_err(|_| Bad::new("the transpose of no lane"))?;
            let index = index.get_or_init(|| uses.index());
            read_transposed(get, streams, index, &group, lane, &mut room)?;
        } else {
            let lag = get.small(Field::Count, LAG)?;
            let context = Context { lane: pair(group.head, group.lane.into()), lag };
            let mut before = 0;
            for &(_, stream) in &group.streams {
                let (length, tail) = read_extent(get, &mut before)?;
                let mut numbers = Vec::new();
                for _ in 0..length {
                    let (origin, hint) = context.next(&numbers);
                    numbers.push(origin.wrapping_add(get.signed(Field::Pooled, hint)?));
                }
                streams[stream as usize] = made(numbers, tail)?;
                room = room.saturating_add(length.saturating_mul(MORE));
            }
        }
    }
    Ok(())
}

fn made(numbers: Vec<i64>, tail: usize) -> Result<Stream, Bad> {
    Flat { numbers, tail }.stream().ok_or_else(|| Bad::new("a stream that goes on as it cannot"))
}

fn read_extent(get: &mut Get, before: &mut i64) -> Result<(usize, usize), Bad> {
    *before = before.wrapping_add(get.signed(Field::Count, LENGTH)?);
    let length = usize::try_from(*before).ok().filter(|length| *length <= MOST_OF_ONE);
    let tail = get.small(Field::Count, TAIL)?;
    Ok((length.ok_or_else(|| Bad::new("a stream of too many numbers"))?, tail))
}

fn read_transposed(
    get: &mut Get,
    streams: &mut [Stream],
    index: &Index,
    group: &Group,
    lane: u16,
    room: &mut usize,
) -> Result<(), Bad> {
    let mut before = 0;
    let extents =
        group.streams.iter().map(|_| read_extent(get, &mut before)).collect::<Result<Vec<_>, Bad>>()?;
    let longest = extents.iter().map(|extent| extent.0).max().unwrap_or(0);
    let bad = || Bad::new("the transpose of numbers that are not there");
    let rows = index.rows(group.symbol, lane).ok_or_else(bad)?;
    let width = rows.len();
    *room = room.checked_sub(transpose_size(width, longest)).ok_or_else(bad)?;
    let mut wanted: Vec<Option<usize>> = vec![None; width];
    for (number, (member, _)) in group.streams.iter().enumerate() {
        let at = rows.binary_search_by_key(member, |row| row.0).map_err(|_| bad())?;
        wanted[at] = Some(number);
    }
    let mut out: Vec<Vec<i64>> = extents.iter().map(|extent| vec![0; extent.0]).collect();
    for (row, (_, stream)) in rows.iter().enumerate() {
        // Others look at whole streams when all are read; this one is walked now.
        let is_sound = |stream: &&Stream| !is_elsewhere(stream) && stream.validate().is_ok();
        let stream = streams.get(*stream as usize).filter(is_sound).ok_or_else(bad)?;
        for (at, number) in stream.iter().take(longest.div_ceil(width) * width).enumerate() {
            let place = wanted[at % width].and_then(|number| out[number].get_mut(at / width * width + row));
            if let Some(place) = place {
                *place = number;
            }
        }
    }
    for ((numbers, &(_, tail)), &(_, stream)) in out.into_iter().zip(&extents).zip(&group.streams) {
        streams[stream as usize] = made(numbers, tail)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use refrain_fold::stream::Folder;

    use super::*;

    /// A round that no packed numbers can hold, made of phrases that come again.
    #[test]
    fn what_is_told_with_others_can_be_made_again() {
        for phrases in [1, 5, 40, 500] {
            let mut folder = Folder::new();
            for at in 0..30_000u64 {
                let (turn, place) = (at % 10_000 / 20, at % 20);
                let phrase = turn.wrapping_mul(turn).wrapping_mul(0x9e37_79b9) >> 7;
                folder.push(((phrase % phrases * 20 + place) * 7919 % 251) as i64);
            }
            let stream = folder.finish();
            if may_be_pooled(&stream) {
                assert!(stream.flat(MOST_OF_ONE).and_then(|flat| flat.stream()).is_some(), "{phrases}");
            }
        }
    }
}
