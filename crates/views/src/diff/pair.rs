//! Threads that are in one cohort of A and in one of B: where they part, from the folded form.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use refrain_encode::Taken;
use refrain_fold::bundle::{Bundle, Lane, Own};
use refrain_fold::loops::{Loops, Node};
use refrain_fold::ranks::RankList;

use super::calls::Comparing;
use super::faces::{Face, Faces};
use super::member::Kind;
use super::settings::Settings;
use super::{First, Unread, Which};

pub(super) struct Pair<'t, 'f> {
    a: Kind<'t>,
    b: Kind<'t>,
    members: RankList,
    faces: &'f Faces,
    settings: &'f Settings,
    /// By symbol. Two events with one label are calls with symbols that look alike, so that their numbers stand in lanes at the
    /// same places; or all of them differ ([`Shared::other`]).
    labels: [Vec<u32>; 2],
    shared: Vec<Shared>,
    /// Loops with the same nodes, and also with the same times.
    same_nodes: bool,
    same_times: bool,
}

/// Symbols with one label.
struct Shared {
    a: u32,
    b: u32,
    /// Where the lanes of both begin.
    first: (usize, usize),
    /// Lanes that count and are not told in the same words.
    changed: Vec<(u16, u16)>,
    /// They look different, and so do all their calls; only their places are the same.
    other: bool,
}

impl Shared {
    fn may_differ(&self) -> bool {
        self.other || !self.changed.is_empty()
    }
}

/// What was found out about the threads.
pub(super) struct Outcome {
    pub firsts: Vec<(Vec<u32>, First)>,
    /// By function, how many calls differ, if that is known.
    pub differ: Option<HashMap<u16, u64>>,
}

/// The first event that may differ, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    event: u64,
    /// The symbol and lane of A, and both numbers; nothing where it is the symbols that differ.
    number: Option<(u32, u16, i64, i64)>,
}

/// What the folded form says of one thread, or of all that have the same streams.
type Verdict = (Option<Candidate>, Option<Vec<(u16, u64)>>);

/// So many kinds of members are remembered; more are looked at one by one.
const MOST_KNOWN: usize = 1 << 16;
/// More differing numbers of a lane are not counted.
const MOST_COUNTED: usize = 1000;

/// What a member has in some lanes of both.
type Streams = Vec<(Option<Own>, Option<Own>)>;

impl<'t, 'f> Pair<'t, 'f> {
    pub fn new(
        bundles: (&'t Bundle, &'t Bundle),
        cohorts: (usize, usize),
        members: RankList,
        faces: &'f Faces,
        settings: &'f Settings,
    ) -> Result<Pair<'t, 'f>, Unread> {
        let a = Kind::new(Which::A, bundles.0, cohorts.0)?;
        let b = Kind::new(Which::B, bundles.1, cohorts.1)?;
        let symbols = (a.symbols(), b.symbols());
        let labels = labels((&symbols.0, &faces.a), (&symbols.1, &faces.b));
        let by_label: HashMap<u32, (u32, usize)> =
            symbols.1.iter().map(|&(symbol, first)| (labels[1][symbol as usize], (symbol, first))).collect();
        let is_same = |x: usize, y: usize| match (a.cohort.lanes.get(x), b.cohort.lanes.get(y)) {
            (Some(x), Some(y)) => faces.is_same_lane(x, y),
            _ => false,
        };
        let mut shared = Vec::new();
        for &(symbol, first) in &symbols.0 {
            let Some(&(other, other_first)) = by_label.get(&labels[0][symbol as usize]) else { continue };
            let (face, another) = (&faces.a[symbol as usize], &faces.b[other as usize]);
            if face.key != another.key {
                let changed = Vec::new();
                shared.push(Shared {
                    a: symbol,
                    b: other,
                    first: (first, other_first),
                    changed,
                    other: true,
                });
                continue;
            }
            let lanes = face.lanes.iter().zip(&another.lanes);
            let changed = lanes
                .map(|(x, y)| (*x, *y))
                .filter(|(x, y)| !is_same(first + usize::from(*x), other_first + usize::from(*y)));
            let changed = changed.collect();
            let first = (first, other_first);
            shared.push(Shared { a: symbol, b: other, first, changed, other: false });
        }
        let same_nodes = match (a.structure.loops(), b.structure.loops()) {
            (Some(x), Some(y)) => same_nodes(x, y, &labels),
            _ => false,
        };
        let same_times = same_nodes && (0..a.structure.own_lanes()).all(|lane| is_same(lane, lane));
        Ok(Pair { a, b, members, faces, settings, labels, shared, same_nodes, same_times })
    }

    pub fn compare(&self, comparing: &mut Comparing<'t, '_>) -> Result<Outcome, Unread> {
        let mut outcome = Outcome { firsts: Vec::new(), differ: Some(HashMap::new()) };
        if self.settings.one_by_one {
            outcome.differ = None;
            return Ok(Outcome {
                firsts: self.each(self.members.iter(), comparing, |_| Ok((0, 0)))?,
                ..outcome
            });
        }
        // Rules say the same of all members.
        let [of_a, of_b] = &self.labels;
        let rules = match (self.a.structure.rules(), self.b.structure.rules()) {
            (Some(a), Some(b)) => Some(a.first_difference(|t| of_a[t as usize], b, |t| of_b[t as usize])),
            _ => None,
        };
        let same_order = rules == Some(None) || self.same_times;
        if same_order && !self.shared.iter().any(Shared::may_differ) {
            return Ok(outcome);
        }
        let mut known: HashMap<Streams, Verdict> = HashMap::new();
        let mut groups: BTreeMap<Candidate, Vec<u32>> = BTreeMap::new();
        for member in &self.members {
            let streams = self.streams(member, rules.is_none() && !self.same_times);
            let verdict = match known.get(&streams) {
                Some(verdict) => verdict.clone(),
                None => {
                    let verdict = self.verdict(member, rules, comparing)?;
                    if known.len() < MOST_KNOWN {
                        known.insert(streams, verdict.clone());
                    }
                    verdict
                }
            };
            let (candidate, differ) = verdict;
            if let Some(candidate) = candidate {
                groups.entry(candidate).or_default().push(member);
            }
            match (&mut outcome.differ, differ) {
                (Some(all), Some(differ)) => {
                    differ
                        .into_iter()
                        .for_each(|(function, calls)| *all.entry(function).or_default() += calls);
                }
                (all, _) => *all = None,
            }
        }
        for (candidate, members) in groups {
            let from = |member: u32| -> Result<(u64, u64), Unread> {
                Ok((
                    self.a.first_call(&self.faces.a, member, candidate.event)?,
                    self.b.first_call(&self.faces.b, member, candidate.event)?,
                ))
            };
            let Some(&one) = members.first() else { continue };
            let first = comparing.from(self.a.bundle.place_of(one), from(one)?)?;
            // What one of them says is so for all whose numbers are the same there.
            let after = candidate.event.saturating_add(1);
            let is_it = |first: &First| -> Result<bool, Unread> {
                Ok(first.number.0 < self.a.first_call(&self.faces.a, one, after)?
                    || first.number.1 < self.b.first_call(&self.faces.b, one, after)?)
            };
            match first {
                Some(first) if is_it(&first)? => outcome.firsts.push((members, first)),
                first => {
                    outcome.differ = None;
                    outcome.firsts.extend(first.map(|first| (vec![one], first)));
                    outcome.firsts.extend(self.each(members.into_iter().skip(1), comparing, from)?);
                }
            }
        }
        Ok(outcome)
    }

    /// What the folded form says of a member, given what rules say of the order of all.
    fn verdict(
        &self,
        member: u32,
        rules: Option<Option<u64>>,
        comparing: &mut Comparing<'t, '_>,
    ) -> Result<Verdict, Unread> {
        let order = match rules {
            Some(rules) => rules,
            None if self.same_times => None,
            None => self.order(member, comparing)?,
        };
        let candidate = self.candidate(member, order, comparing)?;
        let differ = match (order, candidate) {
            (None, Some(_)) => self.differ(member)?,
            (None, None) => Some(Vec::new()),
            _ => None,
        };
        Ok((candidate, differ))
    }

    /// Member by member, from some number on.
    fn each(
        &self,
        members: impl Iterator<Item = u32>,
        comparing: &mut Comparing<'t, '_>,
        from: impl Fn(u32) -> Result<(u64, u64), Unread>,
    ) -> Result<Vec<(Vec<u32>, First)>, Unread> {
        let mut firsts = Vec::new();
        for member in members {
            let first = comparing.from(self.a.bundle.place_of(member), from(member)?)?;
            firsts.extend(first.map(|first| (vec![member], first)));
        }
        Ok(firsts)
    }

    /// What a member has where the two are not told in the same words: members with the same streams part at the same event.
    fn streams(&self, member: u32, with_times: bool) -> Streams {
        let own = |kind: &Kind<'_>, lane: usize| kind.cohort.lanes.get(lane)?.of_rank(member);
        let times = if with_times { self.a.structure.own_lanes() } else { 0 };
        let others = if with_times { self.b.structure.own_lanes() } else { 0 };
        let mut streams: Streams =
            (0..times.max(others)).map(|lane| (own(&self.a, lane), own(&self.b, lane))).collect();
        for shared in &self.shared {
            let (first, other) = shared.first;
            streams.extend(shared.changed.iter().map(|(x, y)| {
                (own(&self.a, first + usize::from(*x)), own(&self.b, other + usize::from(*y)))
            }));
        }
        streams
    }

    /// The first event at which the orders of a member's events differ.
    fn order(&self, member: u32, comparing: &mut Comparing<'t, '_>) -> Result<Option<u64>, Unread> {
        let from = if self.same_nodes { self.same_until(member) } else { 0 };
        let (mut a, mut b) = (self.a.walk(member, from)?, self.b.walk(member, from)?);
        let [of_a, of_b] = &self.labels;
        let mut event = from;
        loop {
            let label = |symbol: Option<u32>, of: &[u32]| symbol.map(|symbol| of[symbol as usize]);
            match (label(a.next_symbol(), of_a), label(b.next_symbol(), of_b)) {
                (None, None) => return Ok(None),
                (x, y) if x == y => event += 1,
                _ => return Ok(Some(event)),
            }
            if event % 4096 == 4095 {
                comparing.tick();
            }
        }
    }

    /// Of loops with the same nodes: so many events come before any times that differ.
    fn same_until(&self, member: u32) -> u64 {
        let times = |kind: &Kind<'t>| kind.bundle.times_of(kind.cohort, member);
        let (Some((loops, a)), Some((_, b))) = (times(&self.a), times(&self.b)) else { return 0 };
        let sum = |node: usize, first: u64| {
            let sum = a[node].as_ref().map_or(0, |times| times.sum(first));
            u64::try_from(sum.max(0)).unwrap_or(u64::MAX)
        };
        let totals = loops.totals(|node| a.get(node)?.as_deref());
        let events = self.a.events(member);
        let mut until = events;
        for (node, ((reached, _), (a, b))) in totals.iter().zip(a.iter().zip(&b)).enumerate() {
            let place = match (a, b) {
                (Some(a), Some(b)) => a.first_difference(b, *reached),
                (None, None) => None,
                _ => Some(0).filter(|_| *reached > 0),
            };
            let Some(place) = place else { continue };
            // The first event before which that time is used up; when it was used, the event before had been made.
            let is_used = |n: u64| loops.seek(n, sum).used.get(node).is_some_and(|used| *used > place);
            let (mut low, mut high) = (0, until);
            if is_used(0) {
                return 0;
            }
            if !is_used(high) {
                continue;
            }
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                *(if is_used(middle) { &mut high } else { &mut low }) = middle;
            }
            until = high;
        }
        until
    }

    /// The first event of a member that may differ, given the first at which the order does.
    fn candidate(
        &self,
        member: u32,
        order: Option<u64>,
        comparing: &mut Comparing<'t, '_>,
    ) -> Result<Option<Candidate>, Unread> {
        let counts = self.a.before(member, order.unwrap_or(u64::MAX))?;
        let mut best = order.map(|event| Candidate { event, number: None });
        for shared in self.shared.iter().filter(|shared| shared.may_differ()) {
            let times = counts.get(&shared.a).copied().unwrap_or(0);
            if times == 0 {
                continue;
            }
            let mut first: Option<(u64, Candidate)> = None;
            if shared.other {
                first = Some((0, Candidate { event: 0, number: Some((shared.a, u16::MAX, 0, 0)) }));
            }
            self.numbers(shared, member, times, &mut || comparing.tick(), &mut |found| {
                if first.is_none_or(|(event, _)| found.event < event) {
                    let number = Some((shared.a, found.lane, found.values.0, found.values.1));
                    first = Some((found.event, Candidate { event: 0, number }));
                }
            })?;
            let Some((before, mut candidate)) = first else { continue };
            // Those that come later than what is known are not looked for.
            if let Some(best) = best
                && self.a.before(member, best.event)?.get(&shared.a).copied().unwrap_or(0) <= before
            {
                continue;
            }
            if let Some(event) = self.a.event_of(shared.a, before, member)? {
                candidate.event = event;
                best = Some(candidate);
            }
        }
        Ok(best)
    }

    /// For each lane of a symbol that differs, the first of its events that does.
    fn numbers(
        &self,
        shared: &Shared,
        member: u32,
        times: u64,
        tick: &mut dyn FnMut(),
        found: &mut dyn FnMut(Found),
    ) -> Result<(), Unread> {
        let (a, b) = (
            self.a.streams(shared.a, shared.first.0, member),
            self.b.streams(shared.b, shared.first.1, member),
        );
        let failed = (self.a.failed(member), self.b.failed(member));
        let layouts = (&self.faces.a[shared.a as usize].layout, &self.faces.b[shared.b as usize].layout);
        let (mut taken, mut none) = (None, true);
        for &(x, y) in &shared.changed {
            let (Some(Some(one)), Some(Some(other))) = (a.get(usize::from(x)), b.get(usize::from(y))) else {
                continue;
            };
            if one == other {
                continue;
            }
            if taken.is_none() {
                let of_a = Taken::new((self.a.bundle, layouts.0), &a, times).map_err(&failed.0)?;
                let of_b = Taken::new((self.b.bundle, layouts.1), &b, times).map_err(&failed.1)?;
                let all = (of_a.all(tick).map_err(&failed.0)?, of_b.all(tick).map_err(&failed.1)?);
                taken = Some((of_a, all));
            }
            let Some((of_a, all)) = &taken else { continue };
            let n = all.0.get(usize::from(x)).min(all.1.get(usize::from(y))).copied().unwrap_or(0);
            if let Some(place) = one.first_difference(other, n)
                && let Some(event) = of_a.event_of(x, place, tick).map_err(&failed.0)?
            {
                let number =
                    |stream: &refrain_fold::stream::Stream| stream.iter_from(place).next().unwrap_or(0);
                none = false;
                found(Found { event, lane: x, values: (number(one), number(other)) });
            }
        }
        // Equal numbers, but not as many of them: calls are to say why.
        if let Some((_, all)) = taken.filter(|(_, all)| none && !self.is_as_many(shared, all)) {
            let lane = shared.changed.first().map_or(0, |lane| lane.0);
            let count = |all: &[u64]| all.iter().fold(0, |sum: i64, n| sum.wrapping_add(*n as i64));
            found(Found { event: 0, lane, values: (count(&all.0), count(&all.1)) });
        }
        Ok(())
    }

    /// Whether as many numbers are taken from lanes that count.
    fn is_as_many(&self, shared: &Shared, all: &(Vec<u64>, Vec<u64>)) -> bool {
        let (a, b) = (&self.faces.a[shared.a as usize].lanes, &self.faces.b[shared.b as usize].lanes);
        a.iter().zip(b).all(|(x, y)| all.0.get(usize::from(*x)) == all.1.get(usize::from(*y)))
    }

    /// By function, how many calls of a member differ, where the order is the same.
    fn differ(&self, member: u32) -> Result<Option<Vec<(u16, u64)>>, Unread> {
        let failed = (self.a.failed(member), self.b.failed(member));
        let counts = self.a.before(member, u64::MAX)?;
        let mut by_function: BTreeMap<u16, u64> = BTreeMap::new();
        for shared in self.shared.iter().filter(|shared| shared.may_differ()) {
            let times = counts.get(&shared.a).copied().unwrap_or(0);
            if shared.other {
                let function = self.faces.a[shared.a as usize].layout.function.id;
                add(by_function.entry(function).or_default(), times);
                continue;
            }
            let (a, b) = (
                self.a.streams(shared.a, shared.first.0, member),
                self.b.streams(shared.b, shared.first.1, member),
            );
            let face: &Face = &self.faces.a[shared.a as usize];
            let other: &Face = &self.faces.b[shared.b as usize];
            let taken = Taken::new((self.a.bundle, &face.layout), &a, times).map_err(&failed.0)?;
            let others = Taken::new((self.b.bundle, &other.layout), &b, times).map_err(&failed.1)?;
            let mut events: BTreeSet<u64> = BTreeSet::new();
            for &(x, y) in &shared.changed {
                let (Some(Some(one)), Some(Some(stream))) = (a.get(usize::from(x)), b.get(usize::from(y)))
                else {
                    continue;
                };
                if one == stream {
                    continue;
                }
                if !taken.is_steady() || !others.is_steady() {
                    return Ok(None);
                }
                let none = &mut || {};
                let all = taken.all(none).map_err(&failed.0)?;
                let n = all.get(usize::from(x)).copied().unwrap_or(0);
                let Some(places) = one.differences(stream, n, MOST_COUNTED) else { return Ok(None) };
                for place in places {
                    events.extend(taken.event_of(x, place, none).map_err(&failed.0)?);
                }
            }
            add(by_function.entry(face.layout.function.id).or_default(), events.len() as u64);
        }
        by_function.retain(|_, calls| *calls > 0);
        Ok(Some(by_function.into_iter().collect()))
    }
}

/// A hostile file may have any number of calls.
pub(super) fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// The first number of a lane that differs.
struct Found {
    /// Among those of the symbol.
    event: u64,
    lane: u16,
    values: (i64, i64),
}

impl Faces {
    /// Told in the same words, for all members.
    fn is_same_lane(&self, a: &Lane, b: &Lane) -> bool {
        match (a, b) {
            (Lane::Same { stream: a, .. }, Lane::Same { stream: b, .. }) => self.is_same_stream(*a, *b),
            (Lane::Varied(a), Lane::Varied(b)) => {
                a.len() == b.len()
                    && a.iter().zip(b).all(|(a, b)| {
                        a.ranks == b.ranks
                            && self.is_same_stream(a.stream, b.stream)
                            && a.numbers == b.numbers
                    })
            }
            _ => false,
        }
    }
}

fn same_nodes(a: &Loops, b: &Loops, labels: &[Vec<u32>; 2]) -> bool {
    let same = |(a, b): (&Node, &Node)| match (*a, *b) {
        (Node::Event(a), Node::Event(b)) => labels[0][a as usize] == labels[1][b as usize],
        (Node::Loop { inside: a }, Node::Loop { inside: b }) => a == b,
        _ => false,
    };
    a.nodes.len() == b.nodes.len() && a.nodes.iter().zip(&b.nodes).all(same)
}

/// What tells symbols with one key apart.
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
enum Sign {
    /// It is the only one in both.
    Only,
    /// There is one with that content in both.
    Content(u32),
    /// So many without such a one come before it.
    Order(u32),
    /// There is none with its key in the other trace; so many such symbols of its function come before it.
    Other(u32),
}

/// By symbol of each trace, its label; those that are in no list have none that matters. Of several symbols with one key
/// those with the same content go together, and of others those that come first: if that is wrong, calls are compared one by
/// one, which costs time and nothing else. Symbols that look like none of the other trace go with those of their function: all
/// their calls differ.
fn labels(a: (&[(u32, usize)], &[Face]), b: (&[(u32, usize)], &[Face])) -> [Vec<u32>; 2] {
    let mut known: HashMap<(u32, Sign), u32> = HashMap::new();
    let count = |(symbols, faces): (&[(u32, usize)], &[Face])| {
        let mut keys: HashMap<u32, u32> = HashMap::new();
        let mut contents: HashMap<u32, u32> = HashMap::new();
        for (symbol, _) in symbols {
            let face = &faces[*symbol as usize];
            *keys.entry(face.key).or_default() += 1;
            *contents.entry(face.content).or_default() += 1;
        }
        (keys, contents)
    };
    let counts = [count(a), count(b)];
    let mut of = |(symbols, faces): (&[(u32, usize)], &[Face])| {
        let mut labels = vec![u32::MAX; faces.len()];
        let mut orders: HashMap<u32, u32> = HashMap::new();
        let mut others: HashMap<u32, u32> = HashMap::new();
        for (symbol, _) in symbols {
            let face = &faces[*symbol as usize];
            let is_alone = counts.iter().any(|(keys, _)| !keys.contains_key(&face.key));
            let which = if is_alone {
                let function = face.layout.function.id.into();
                let order = others.entry(function).or_default();
                *order += 1;
                let next = known.len() as u32;
                labels[*symbol as usize] = *known.entry((function, Sign::Other(*order))).or_insert(next);
                continue;
            } else if counts.iter().all(|(keys, _)| keys.get(&face.key).is_none_or(|n| *n == 1)) {
                Sign::Only
            } else if counts.iter().all(|(_, contents)| contents.contains_key(&face.content)) {
                Sign::Content(face.content)
            } else {
                let order = orders.entry(face.key).or_default();
                *order += 1;
                Sign::Order(*order)
            };
            let next = known.len() as u32;
            labels[*symbol as usize] = *known.entry((face.key, which)).or_insert(next);
        }
        labels
    };
    [of(a), of(b)]
}
