//! What the ranks of a cohort have in one lane: one stream, or one with numbers that are functions of the rank.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::ranks::{RankList, RankMap, Wheel};
use crate::stream::Stream;

use super::hash::{self, Hash};
use super::template::{self, Formula, Formulas, MOST_NUMBERS, MOST_PLACES};

#[derive(Debug, Clone, PartialEq)]
/// The streams that the members of a cohort have in one lane.
pub enum Lane {
    /// All ranks have this stream (an index into `Bundle::streams`). The most common case by far, and free of ranks.
    Same {
        /// Index into `Bundle::streams`.
        stream: u32,
        /// How many of its numbers count, if that is known; otherwise 0.
        used: u64,
    },
    /// Every rank is in one of the variants, which go by their lowest rank once the bundle is canonical. Of loops, ranks
    /// that never come by may be in none: they have no numbers there.
    Varied(Vec<Variant>),
}

/// Ranks whose streams differ in numbers only.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Who they are.
    pub ranks: RankList,
    /// Index into `Bundle::streams`. Numbers that are told by rank are 0 in it (1 where they are steps).
    pub stream: u32,
    /// How many numbers of the stream count, if it is the same on all ranks and known; otherwise 0. Only of use until
    /// the bundle is canonical.
    pub used: u64,
    /// By place.
    pub numbers: Vec<Number>,
}

/// A number of the stream that is not the same on all ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// Which of the stream's numbers, in the order in which the stream is written down.
    pub place: u32,
    /// The number of each rank.
    pub values: RankMap,
}

/// The stream of one rank, and by place the numbers in it that are the rank's own.
pub type Own = (u32, Vec<(u32, i64)>);

/// Streams by content.
#[derive(Debug, Default)]
pub struct StreamSet {
    pub streams: Vec<Stream>,
    known: HashMap<Hash, u32>,
    /// By stream, once asked for: what it has in common with those that differ in numbers only.
    forms: Vec<Option<Hash>>,
    /// Functions in their final form, by the numbers of all ranks: lanes of one cohort often have the same.
    maps: RefCell<HashMap<(Hash, bool), RankMap>>,
    /// The same functions, whatever way they are turned, and how far they are; none where they are not on a square grid.
    wheels: RefCell<HashMap<Hash, Option<Turned>>>,
}

/// A function on a square grid, and how far that is turned.
type Turned = (Wheel, [u32; 2]);

/// So many functions are kept, of so many parts at most: what is tried and not taken may be far more than the file.
const KEPT: usize = 4096;
const KEPT_PARTS: usize = 64;

impl StreamSet {
    pub fn new(streams: Vec<Stream>) -> StreamSet {
        let hashes: Vec<Hash> = streams.iter().map(hash::of_stream).collect();
        StreamSet::with_hashes(streams, hashes)
    }

    /// For streams whose hashes are known.
    pub fn with_hashes(streams: Vec<Stream>, hashes: impl IntoIterator<Item = Hash>) -> StreamSet {
        let mut known = HashMap::new();
        for (index, hash) in (0u32..).zip(hashes) {
            known.entry(hash).or_insert(index);
        }
        StreamSet { forms: vec![None; streams.len()], streams, known, ..StreamSet::default() }
    }

    pub fn add(&mut self, stream: Stream) -> u32 {
        let (hash, next) = (hash::of_stream(&stream), self.streams.len() as u32);
        let index = *self.known.entry(hash).or_insert(next);
        if index == next {
            self.forms.push(None);
            self.streams.push(stream);
        }
        index
    }

    fn form(&mut self, index: u32) -> Hash {
        let stream = &self.streams[index as usize];
        *self.forms[index as usize]
            .get_or_insert_with(|| hash::of_stream(&template::without(stream, |_| true)))
    }

    fn get(&self, index: u32) -> &Stream {
        &self.streams[index as usize]
    }

    /// As [`RankMap::loose`] makes it, or, where there are many to make, [`RankMap::loose_at_once`].
    fn loose(&self, mut pairs: Vec<(u32, i64)>, many: bool) -> RankMap {
        pairs.sort_by_key(|pair| pair.0);
        let hash = hash::of_pairs(&pairs);
        self.loose_of(pairs, hash, many)
    }

    /// The same for pairs by rank whose hash is known.
    fn loose_of(&self, pairs: Vec<(u32, i64)>, hash: Hash, many: bool) -> RankMap {
        let key = (hash, many);
        if let Some(known) = self.maps.borrow().get(&key) {
            return known.clone();
        }
        let map = if many { RankMap::loose_at_once(pairs) } else { RankMap::loose(pairs) };
        let mut maps = self.maps.borrow_mut();
        if map.parts.len() <= KEPT_PARTS && maps.len() < KEPT {
            maps.insert(key, map.clone());
        }
        map
    }

    /// As [`Wheel::of`] makes it, for pairs whose hash is this. The same function comes in many places of many lanes, and it
    /// takes longer to make than to hash.
    fn wheel(&self, pairs: &[(u32, i64)], hash: Hash) -> Option<Turned> {
        if let Some(known) = self.wheels.borrow().get(&hash) {
            return known.clone();
        }
        let made = Wheel::of(pairs);
        let mut wheels = self.wheels.borrow_mut();
        if wheels.len() < KEPT {
            wheels.insert(hash, made.clone());
        }
        made
    }
}

/// What is known of both: nothing where they disagree.
fn both_used(a: u64, b: u64) -> u64 {
    if a == b { a } else { 0 }
}

impl Lane {
    /// A stream of which nothing more is known.
    pub fn same(stream: u32) -> Lane {
        Lane::Same { stream, used: 0 }
    }

    /// No rank has numbers here.
    pub(super) fn nobody() -> Lane {
        Lane::Varied(Vec::new())
    }

    fn is_nobody(&self) -> bool {
        matches!(self, Lane::Varied(variants) if variants.is_empty())
    }

    /// The streams it refers to.
    pub fn streams_mut(&mut self) -> impl Iterator<Item = &mut u32> {
        let (one, many) = match self {
            Lane::Same { stream, .. } => (Some(stream), None),
            Lane::Varied(variants) => (None, Some(variants.iter_mut().map(|v| &mut v.stream))),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// The streams it refers to.
    pub fn streams(&self) -> impl Iterator<Item = u32> {
        let (one, many) = match self {
            Lane::Same { stream, .. } => (Some(*stream), None),
            Lane::Varied(variants) => (None, Some(variants.iter().map(|v| v.stream))),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    fn into_variants(self, ranks: &RankList) -> Vec<Variant> {
        match self {
            Lane::Same { stream, used } => {
                vec![Variant { ranks: ranks.clone(), stream, used, numbers: Vec::new() }]
            }
            Lane::Varied(variants) => variants,
        }
    }

    fn of_variants(mut variants: Vec<Variant>) -> Lane {
        match &variants[..] {
            [only] if only.numbers.is_empty() => Lane::Same { stream: only.stream, used: only.used },
            _ => {
                variants.sort_by_key(|v| v.ranks.parts.first().map(|part| part.start));
                Lane::Varied(variants)
            }
        }
    }

    /// Both, on ranks that they have not in common. Where they are equal the ranks are not looked at; where they
    /// differ, only the numbers that do are joined, rank by rank at worst.
    pub fn join(self, ranks: &RankList, other: Lane, others: &RankList, table: &mut StreamSet) -> Lane {
        if let (Lane::Same { stream: a, used }, Lane::Same { stream: b, used: more }) = (&self, &other)
            && a == b
        {
            return Lane::Same { stream: *a, used: both_used(*used, *more) };
        }
        // Ranks without numbers do not mind which they would have.
        if self.is_nobody() {
            return other;
        }
        if other.is_nobody() {
            return self;
        }
        let mut variants = self.into_variants(ranks);
        let mut known: HashMap<Hash, usize> =
            variants.iter().enumerate().map(|(at, v)| (table.form(v.stream), at)).collect();
        for variant in other.into_variants(others) {
            let form = table.form(variant.stream);
            match known.get(&form) {
                Some(&at) => {
                    let left = variants[at].take_in(variant, table);
                    variants.extend(left);
                }
                None => {
                    known.insert(form, variants.len());
                    variants.push(variant);
                }
            }
        }
        Lane::of_variants(variants)
    }

    /// The form that costs least, whatever way the ranks came together.
    pub fn canonical(self, table: &mut StreamSet) -> Lane {
        let variants = match self {
            Lane::Same { stream, .. } => return Lane::same(stream),
            Lane::Varied(variants) => variants,
        };
        let mut folded: Vec<Variant> = variants.into_iter().map(|v| v.folded(table)).collect();
        folded.sort_by_key(|v| v.ranks.parts.first().map(|part| part.start));
        let mut least = cost(&folded, table);
        let mut best = None;
        // What comes over and over from the first number on is shorter than the whole. Where something comes before, that may be a
        // round too, which only few ranks tell otherwise.
        let all_rounds = rounds(&folded, table).is_some_and(|(once, _)| once == 0);
        let whole = if all_rounds { None } else { flat_by_length(&folded, least, table) };
        let others = [flat_by_period(&folded, least, table), whole, flat_by_round(&folded, least, table)];
        for other in others.into_iter().flatten() {
            let price = cost(&other, table);
            if price < least {
                (best, least) = (Some(other), price);
            }
        }
        // Numbers that follow no rule are better off as streams, where they are side by side.
        let ranks: u64 = folded.iter().map(|v| v.ranks.len()).sum();
        if least > 4 * ranks && folded.iter().any(|v| !v.numbers.is_empty()) {
            let other = apart(&folded, table);
            if cost(&other, table) < least {
                best = Some(other);
            }
        }
        let mut best = best.unwrap_or(folded);
        best.iter_mut().for_each(|v| v.used = 0);
        Lane::of_variants(best)
    }

    /// The stream of one rank: which, and the numbers that are its own.
    pub fn of_rank(&self, rank: u32) -> Option<Own> {
        match self {
            Lane::Same { stream, .. } => Some((*stream, Vec::new())),
            Lane::Varied(variants) => {
                // They go by their first rank, so the last that may hold the rank mostly does.
                let first = |v: &Variant| v.ranks.parts.first().map_or(0, |part| part.start);
                let may = variants.partition_point(|v| first(v) <= rank);
                let variant = variants[..may].iter().rev().find(|v| v.ranks.contains(rank))?;
                let own = variant.numbers.iter().map(|n| Some((n.place, n.values.get(rank)?)));
                Some((variant.stream, own.collect::<Option<_>>()?))
            }
        }
    }
}

/// What variants take to write down, roughly in numbers.
fn cost(variants: &[Variant], table: &StreamSet) -> u64 {
    let one = |v: &Variant| {
        let before = std::iter::once(None).chain(v.numbers.iter().map(|n| Some(&n.values)));
        let maps = v.numbers.iter().zip(before).map(|(n, before)| {
            let turned = before.is_some_and(|before| n.values.turned_from(before).is_some());
            1 + if turned { TURNED } else { n.values.cost() }
        });
        2 + table.get(v.stream).weight() + maps.sum::<u64>()
    };
    let choice = if variants.len() > 1 { choice(variants, table).cost() } else { 0 };
    choice + variants.iter().map(one).sum::<u64>()
}

/// For each rank, which variant it is of.
pub fn choice(variants: &[Variant], table: &StreamSet) -> RankMap {
    let pairs = (0i64..).zip(variants).flat_map(|(at, v)| v.ranks.iter().map(move |rank| (rank, at)));
    table.loose(pairs.collect(), false)
}

impl Variant {
    /// Other ranks with a stream of the same form. They come back where only the hash of the forms is the same.
    fn take_in(&mut self, other: Variant, table: &mut StreamSet) -> Option<Variant> {
        if self.stream == other.stream && self.numbers.is_empty() && other.numbers.is_empty() {
            self.used = both_used(self.used, other.used);
            self.ranks = self.ranks.union(&other.ranks);
            return None;
        }
        // What was in its final form once may have more than can be joined.
        let far = |v: &Variant| v.numbers.last().is_some_and(|n| n.place as usize >= MOST_NUMBERS);
        if far(self)
            || far(&other)
            || !template::is_of_one_form(table.get(self.stream), table.get(other.stream))
        {
            return Some(other);
        }
        self.used = both_used(self.used, other.used);
        let mine = template::numbers(table.get(self.stream));
        let theirs = template::numbers(table.get(other.stream));
        let mut own: HashMap<u32, RankMap> = self.numbers.drain(..).map(|n| (n.place, n.values)).collect();
        let mut their: HashMap<u32, RankMap> =
            other.numbers.into_iter().map(|n| (n.place, n.values)).collect();
        for (place, (mine, theirs)) in (0u32..).zip(mine.into_iter().zip(theirs)).take(MOST_NUMBERS) {
            let (a, b) = (own.remove(&place), their.remove(&place));
            if a.is_none() && b.is_none() && mine == theirs {
                continue;
            }
            let a = a.map_or_else(|| RankMap::constant(&self.ranks, mine), |a| a.only(&self.ranks));
            let b = b.map_or_else(|| RankMap::constant(&other.ranks, theirs), |b| b.only(&other.ranks));
            self.numbers.push(Number { place, values: a.union(b) });
        }
        self.ranks = self.ranks.union(&other.ranks);
        let told: Vec<u32> = self.numbers.iter().map(|n| n.place).collect();
        let rest = template::without(table.get(self.stream), |place| told.binary_search(&place).is_ok());
        self.stream = table.add(rest);
        None
    }

    /// Numbers in their final form.
    fn folded(mut self, table: &mut StreamSet) -> Variant {
        for number in &mut self.numbers {
            number.values = table.loose(number.values.pairs_of(&self.ranks), false);
        }
        self.settled(table)
    }

    /// Numbers that are the same on all ranks back in the stream.
    fn settled(mut self, table: &mut StreamSet) -> Variant {
        let mut fixed: HashMap<u32, i64> = HashMap::new();
        self.numbers.retain(|number| match number.values.as_constant() {
            Some(value) => fixed.insert(number.place, value).is_some(),
            None => true,
        });
        if !fixed.is_empty() {
            let filled = template::with_numbers(table.get(self.stream), |place, number| {
                fixed.get(&place).copied().unwrap_or(number)
            });
            self.stream = table.add(filled);
        }
        self
    }

    /// For each rank (in order) the stream's numbers.
    fn rows(&self, table: &StreamSet) -> Option<Columns> {
        let ranks: Vec<u32> = self.ranks.iter().collect();
        let fixed = template::numbers(table.get(self.stream));
        let mut columns: Vec<Column> = fixed.into_iter().map(Column::Fixed).collect();
        for number in &self.numbers {
            let values = number.values.pairs_of(&self.ranks).into_iter().map(|p| p.1).collect();
            *columns.get_mut(number.place as usize)? = Column::Each(values);
        }
        Some(Columns { ranks, columns })
    }
}

/// Numbers of all ranks of a variant, place by place.
struct Columns {
    ranks: Vec<u32>,
    columns: Vec<Column>,
}

enum Column {
    Fixed(i64),
    Each(Vec<i64>),
}

impl Columns {
    fn get(&self, place: u32, rank: usize) -> i64 {
        match &self.columns[place as usize] {
            Column::Fixed(value) => *value,
            Column::Each(values) => values[rank],
        }
    }

    fn add(&self, formula: Formula, pairs: &mut Vec<(u32, i64)>) {
        for (at, &rank) in self.ranks.iter().enumerate() {
            let mut value = self.get(formula.base, at);
            if let Some((step, times)) = formula.step {
                value = value.wrapping_add(self.get(step, at).wrapping_mul(times));
            }
            pairs.push((rank, value));
        }
    }
}

/// Numbers that happen to be equal, or at equal distances, on some ranks make streams of another form there. Where all
/// are as long, and not very long, they are taken as what they are: so many numbers.
fn flat_by_length(variants: &[Variant], least: u64, table: &mut StreamSet) -> Option<Vec<Variant>> {
    let used = variants.first()?.used;
    let length = usize::try_from(used).ok().filter(|n| (1..=MOST_PLACES).contains(n))?;
    if variants.len() < 2 || variants.iter().any(|v| v.used != used) {
        return None;
    }
    flatten(variants, length, None, least, table)
}

/// The same for streams that are short rounds.
fn flat_by_period(variants: &[Variant], least: u64, table: &mut StreamSet) -> Option<Vec<Variant>> {
    if variants.len() < 2 {
        return None;
    }
    let (once, again) = rounds(variants, table)?;
    flatten(variants, once + again, Some(once), least, table)
}

/// How many numbers come once and how many then over and over, on all ranks.
fn rounds(variants: &[Variant], table: &StreamSet) -> Option<(usize, usize)> {
    let (mut once, mut again) = (0, 1);
    for variant in variants {
        let (before, period) = template::round(table.get(variant.stream), variant.used)?;
        once = once.max(before);
        again = least_common_multiple(again, period);
        if once + again > MOST_PLACES {
            return None;
        }
    }
    Some((once, again))
}

/// The same where rounds are of several lengths: those of each length for themselves.
fn flat_by_round(variants: &[Variant], least: u64, table: &mut StreamSet) -> Option<Vec<Variant>> {
    let mut rounds: BTreeMap<usize, (usize, Vec<Variant>)> = BTreeMap::new();
    let mut flat = Vec::new();
    for variant in variants {
        match template::round(table.get(variant.stream), variant.used) {
            Some((before, period)) => {
                let (once, of_it) = rounds.entry(period).or_default();
                *once = before.max(*once);
                of_it.push(variant.clone());
            }
            None => flat.push(variant.clone()),
        }
    }
    if rounds.len() < 2 && flat.is_empty() {
        return None;
    }
    for (again, (once, of_it)) in rounds {
        let several = of_it.len() > 1 && once + again <= MOST_PLACES;
        match several.then(|| flatten(&of_it, once + again, Some(once), least, table)).flatten() {
            Some(whole) => flat.extend(whole),
            None => flat.extend(of_it),
        }
    }
    flat.sort_by_key(|v| v.ranks.parts.first().map(|part| part.start));
    Some(flat)
}

fn least_common_multiple(a: usize, b: usize) -> usize {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x.max(1) * b
}

/// After so many numbers it is known what the others will cost.
const TRIED: usize = 64;
/// So many numbers of all ranks are held at a time.
const HELD: usize = 64;

/// The first `length` numbers of all ranks, of which the first come `once` and the others over and over; none come but these
/// if that is not said. Nothing where it would cost more than `least`, as far as the first numbers say.
fn flatten(
    variants: &[Variant],
    length: usize,
    once: Option<usize>,
    least: u64,
    table: &mut StreamSet,
) -> Option<Vec<Variant>> {
    debug_assert!(length <= MOST_PLACES);
    // Numbers that are equal on all ranks are one number that comes several times.
    let (mut known, mut order) = (Functions::default(), Vec::with_capacity(length));
    for from in (0..length).step_by(HELD) {
        for pairs in stretch(variants, from..length.min(from + HELD), table)? {
            order.push(known.add(pairs, length > MOST_NUMBERS, table));
            let (spent, tried) = (known.spent, order.len() as u64);
            if spent > least || order.len() > TRIED && spent / tried * length as u64 > 2 * least {
                return None;
            }
        }
    }
    let ranks = variants.iter().flat_map(|variant| variant.ranks.iter()).collect();
    let known = known.settled(&ranks, table);
    let numbers = (0u32..).zip(known).map(|(place, values)| Number { place, values }).collect();
    let once = once.unwrap_or_else(|| template::before_round(&order));
    let stream = table.add(template::in_order(&order, once));
    Some(vec![Variant { ranks, stream, used: 0, numbers }.settled(table)])
}

/// Different functions of the rank, each once.
#[derive(Default)]
struct Functions {
    list: Vec<RankMap>,
    /// Those that are one function on a square grid that is turned, by how far it is.
    wheels: HashMap<Wheel, Vec<([u32; 2], u32)>>,
    /// What they cost.
    spent: u64,
}

/// What a function costs that is an earlier one, turned.
const TURNED: u64 = 2;
/// Of fewer functions that are one, turned, each is told by itself.
const FEW_TURNED: usize = 3;

impl Functions {
    /// Which of them it is.
    fn add(&mut self, mut pairs: Vec<(u32, i64)>, many: bool, table: &StreamSet) -> u32 {
        pairs.sort_by_key(|pair| pair.0);
        let next = self.list.len() as u32;
        let same = pairs.iter().all(|pair| pair.1 == pairs[0].1);
        let hash = hash::of_pairs(&pairs);
        let turned = if same { None } else { table.wheel(&pairs, hash) };
        let Some((wheel, turn)) = turned else {
            let values = table.loose_of(pairs, hash, many);
            let at = self.list.iter().position(|known| *known == values);
            return at.map_or_else(
                || {
                    // What is the same on all ranks goes back into the stream.
                    self.spent += if same { 1 } else { values.cost() };
                    self.list.push(values);
                    next
                },
                |at| at as u32,
            );
        };
        let alike = self.wheels.entry(wheel.clone()).or_default();
        if let Some((_, at)) = alike.iter().find(|(other, _)| *other == turn) {
            return *at;
        }
        let values = if alike.is_empty() { table.loose_of(pairs, hash, many) } else { wheel.turned(turn) };
        self.spent += if alike.is_empty() { values.cost() } else { TURNED };
        alike.push((turn, next));
        self.list.push(values);
        next
    }

    /// All of them, of these ranks: those that are many turned ones alike, others as they are told best.
    fn settled(mut self, ranks: &RankList, table: &StreamSet) -> Vec<RankMap> {
        for (wheel, members) in self.wheels {
            for (turn, at) in &members {
                let map = &mut self.list[*at as usize];
                if members.len() >= FEW_TURNED {
                    *map = wheel.turned(*turn);
                } else if members.len() > 1 {
                    // Ranks that are not there have numbers in it that nobody asks for. It mostly costs less to leave
                    // those open, not always.
                    let filled = table.loose(map.pairs(), false);
                    let open = table.loose(map.pairs_of(ranks), false);
                    *map = if filled.cost() < open.cost() { filled } else { open };
                }
            }
        }
        self.list
    }
}

/// The numbers of all ranks at these places.
fn stretch(variants: &[Variant], places: Range<usize>, table: &StreamSet) -> Option<Vec<Vec<(u32, i64)>>> {
    let mut numbers: Vec<Vec<(u32, i64)>> = vec![Vec::new(); places.len()];
    for variant in variants {
        let stream = table.get(variant.stream);
        if variant.numbers.is_empty() {
            let mut own = stream.iter_from(places.start as u64);
            for pairs in &mut numbers {
                let number = own.next()?;
                pairs.extend(variant.ranks.iter().map(|rank| (rank, number)));
            }
        } else {
            let columns = variant.rows(table)?;
            let mut formulas = Formulas::new(stream).skip(places.start);
            for pairs in &mut numbers {
                columns.add(formulas.next()?, pairs);
            }
        }
    }
    Some(numbers)
}

/// Every distinct stream for itself.
fn apart(variants: &[Variant], table: &mut StreamSet) -> Vec<Variant> {
    let mut of_stream: HashMap<u32, Vec<u32>> = HashMap::new();
    for variant in variants {
        match variant.rows(table).filter(|_| !variant.numbers.is_empty()) {
            None => of_stream.entry(variant.stream).or_default().extend(variant.ranks.iter()),
            Some(columns) => {
                for (at, &rank) in columns.ranks.iter().enumerate() {
                    let own =
                        template::with_numbers(table.get(variant.stream), |place, _| columns.get(place, at));
                    of_stream.entry(table.add(own)).or_default().push(rank);
                }
            }
        }
    }
    let whole = |(stream, ranks): (u32, Vec<u32>)| Variant {
        ranks: ranks.into_iter().collect(),
        stream,
        used: 0,
        numbers: Vec::new(),
    };
    let mut variants: Vec<Variant> = of_stream.into_iter().map(whole).collect();
    variants.sort_by_key(|v| v.ranks.parts.first().map(|part| part.start));
    variants
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Folder;

    fn stream(numbers: impl Iterator<Item = i64>) -> Stream {
        let mut folder = Folder::new();
        numbers.for_each(|number| folder.push(number));
        folder.finish()
    }

    /// Nobody can make two forms of one hash, so the table is told that two are.
    #[test]
    fn two_forms_with_one_hash_lose_no_ranks() {
        let lanes =
            [stream([1, 5, 1, 7].into_iter()), stream(0..100), stream((0..20_000).map(|i| i * i % 7919))];
        let mut table = StreamSet::new(lanes.to_vec());
        table.forms.fill(Some(7));
        let of = |ranks: [u32; 2]| RankList::from_iter(ranks);
        let mut lane = Lane::same(0);
        let mut ranks = of([0, 1]);
        for (other, more) in [(1, of([2, 3])), (2, of([4, 5]))] {
            lane = lane.join(&ranks, Lane::same(other), &more, &mut table);
            ranks = ranks.union(&more);
        }
        for rank in 0..6 {
            let (stream, own) = lane.of_rank(rank).unwrap();
            assert_eq!(
                (table.get(stream), own.as_slice()),
                (&lanes[rank as usize / 2], &[][..]),
                "rank {rank}"
            );
        }
    }

    /// What the ranks have in a lane, in its final form. Each must come back.
    fn canonical_of(ranks: u32, numbers: impl Fn(u32) -> Vec<i64>) -> Vec<Variant> {
        let streams: Vec<Stream> = (0..ranks).map(|rank| stream(numbers(rank).into_iter())).collect();
        let mut table = StreamSet::new(streams);
        let of = |rank: u32| Lane::Same { stream: rank, used: numbers(rank).len() as u64 };
        let mut lane = of(0);
        for rank in 1..ranks {
            let before = RankList::from_iter(0..rank);
            lane = lane.join(&before, of(rank), &RankList::single(rank), &mut table);
        }
        let lane = lane.canonical(&mut table);
        for rank in 0..ranks {
            let (stream, own) = lane.of_rank(rank).unwrap();
            let mut own = own.into_iter().peekable();
            let told = template::with_numbers(table.get(stream), |place, number| {
                own.next_if(|own| own.0 == place).map_or(number, |own| own.1)
            });
            let numbers = numbers(rank);
            assert!(told.iter().take(numbers.len()).eq(numbers.iter().copied()), "rank {rank}");
        }
        match lane {
            Lane::Same { .. } => Vec::new(),
            Lane::Varied(variants) => variants,
        }
    }

    /// On one rank the last numbers of a round and the first of the next are a stride, so its stream has another form.
    #[test]
    fn a_rank_that_folds_otherwise_has_the_same_round() {
        let round = |rank: i64| [3, 50 + rank, 90 - rank, 7 * rank, 1, if rank == 5 { 2 } else { 20 }];
        for times in [2, 9] {
            let variants = canonical_of(9, |rank| round(rank.into()).repeat(times));
            assert_eq!((variants.len(), variants[0].numbers.len()), (1, 4), "{times}: {variants:?}");
        }
    }

    #[test]
    fn a_wheel_is_made_once() {
        let table = StreamSet::default();
        let grid: Vec<(u32, i64)> = (0..36).map(|rank| (rank, i64::from(rank % 6 < 2))).collect();
        // Neither may stand for the other: one is no grid, and a number of one is another.
        let fewer = grid[..35].to_vec();
        let other: Vec<(u32, i64)> = grid.iter().map(|pair| (pair.0, pair.1 + 1)).collect();
        for pairs in [&grid, &fewer, &other] {
            for _ in 0..2 {
                assert_eq!(table.wheel(pairs, hash::of_pairs(pairs)), Wheel::of(pairs));
            }
        }
        assert!(Wheel::of(&grid).is_some() && Wheel::of(&fewer).is_none());
        // What is known is not made again: numbers are not looked at where the hash is known.
        assert_eq!(table.wheel(&fewer, hash::of_pairs(&grid)), Wheel::of(&grid));
        assert_eq!(table.wheels.borrow().len(), 3);
    }

    /// The first row is not there. The function that is turned would have numbers for it.
    #[test]
    fn two_functions_that_are_one_turned_tell_nothing_of_other_ranks() {
        const SIDE: u32 = 8;
        let at = |rank: u32, by: u32| i64::from((rank / SIDE + by) % SIDE < 7 && rank % SIDE < 7);
        let of = |by: u32| (SIDE..SIDE * SIDE).map(|rank| (rank, at(rank, by))).collect::<Vec<_>>();
        let (table, mut known) = (StreamSet::default(), Functions::default());
        for (place, by) in [(0, 0), (1, 5)] {
            assert_eq!(known.add(of(by), false, &table), place);
        }
        assert_eq!(known.wheels.len(), 1);
        let more = RankMap::loose(known.list[1].pairs()).cost();
        let told = known.settled(&RankList::from_iter(SIDE..SIDE * SIDE), &table);
        assert_eq!(told, [RankMap::loose(of(0)), RankMap::loose(of(5))]);
        assert!(told[1].cost() < more, "{} {more}", told[1].cost());
    }

    /// Each stage has the sizes of the one before, a column further, and they are the same ones over and over.
    #[test]
    fn stages_around_a_grid_are_one_function_that_is_turned() {
        const SIDE: u32 = 9;
        let thick = |slice: u32| 5 + i64::from(slice % SIDE < 4);
        let face = |rank: u32, stage: u32| {
            let (row, column) = (rank / SIDE, rank % SIDE);
            thick(row + column + SIDE - stage) * thick(stage + SIDE - column)
        };
        let step = |rank: u32| (0..SIDE).map(|stage| face(rank, stage)).collect::<Vec<_>>();
        let variants = canonical_of(SIDE * SIDE, |rank| step(rank).repeat(3));
        assert_eq!((variants.len(), variants[0].numbers.len()), (1, SIDE as usize));
        for two in variants[0].numbers.windows(2) {
            assert!(two[1].values.turned_from(&two[0].values).is_some(), "{two:?}");
        }
    }
}
