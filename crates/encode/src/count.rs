//! How many calls there are: events, and the polls that are counted in their lanes. Told from the folded form; of all
//! ranks of a cohort, by groups that did something equally often, so that it costs no more for more ranks of the same kinds.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use refrain_fold::bundle::{Bundle, Cohort, Lane, Own, Variant};
use refrain_fold::loops::{Loops, Node};
use refrain_fold::ranks::{MapPart, Part, RankList};

use crate::layout::Layout;

/// How many calls one rank of this cohort made.
pub fn calls_of(bundle: &Bundle, cohort: &Cohort, rank: u32) -> u64 {
    let mut calls = 0u64;
    for ((_, times), polls) in with_polls(bundle, cohort, bundle.counts(cohort, rank)) {
        let polls = polls.map_or(0, |lane| sum(bundle, lane, rank, times));
        calls = calls.saturating_add(times).saturating_add(polls);
    }
    calls
}

/// How many calls all ranks of this cohort made.
pub fn calls_of_all(bundle: &Bundle, cohort: &Cohort) -> u64 {
    let all = || Cow::Borrowed(&cohort.ranks);
    let loops = bundle.structures.get(cohort.structure as usize).and_then(|structure| structure.loops());
    let counts: Vec<(u32, Vec<Groups<'_>>)> = match loops {
        Some(loops) => in_loops(bundle, cohort, loops),
        // Rules say the same of all ranks.
        None => {
            let first = cohort.ranks.iter().next().unwrap_or(0);
            let group = |(symbol, times)| (symbol, vec![vec![Group { ranks: all(), times }]]);
            bundle.counts(cohort, first).into_iter().map(group).collect()
        }
    };
    let mut calls = 0u64;
    for ((_, nodes), polls) in with_polls(bundle, cohort, counts) {
        calls = nodes.iter().fold(calls, |calls, groups| calls.saturating_add(total(groups)));
        if let Some(lane) = polls {
            calls = calls.saturating_add(total(&through(bundle, cohort, lane, &together(nodes))));
        }
    }
    calls
}

/// About how many numbers stand in the arrays of all calls of this cohort: as many as its lowest rank has, for each of them.
pub fn elements_of_all(bundle: &Bundle, cohort: &Cohort) -> u64 {
    let Some(first) = cohort.ranks.first() else { return 0 };
    let lanes = bundle.values_of(cohort);
    let (mut next, mut elements) = (0, 0u64);
    for (symbol, times) in bundle.counts(cohort, first) {
        let Some(entry) = bundle.symbols.get(symbol as usize) else { continue };
        let lengths = Layout::parse(&entry.bytes).map(|layout| layout.lengths()).unwrap_or_default();
        for lane in lengths.into_iter().filter_map(|lane| lanes.get(next + usize::from(lane))) {
            elements = elements.saturating_add(lengths_of(bundle, lane, first, times));
        }
        next += usize::from(entry.lanes);
    }
    elements.saturating_mul(cohort.ranks.len())
}

/// Symbols in the order of the lanes, each with the lane that counts its polls, if it has one.
fn with_polls<'a, T>(
    bundle: &'a Bundle,
    cohort: &'a Cohort,
    counts: Vec<(u32, T)>,
) -> impl Iterator<Item = ((u32, T), Option<&'a Lane>)> {
    let lanes = bundle.values_of(cohort);
    let mut next = 0;
    counts.into_iter().filter_map(move |count| {
        let entry = bundle.symbols.get(count.0 as usize)?;
        let first = next;
        next += usize::from(entry.lanes);
        let polls = Layout::parse(&entry.bytes).ok().and_then(|layout| layout.polls);
        Some((count, polls.and_then(|polls| lanes.get(first + usize::from(polls)))))
    })
}

/// The sum of a rank's first `n` numbers in a lane of counts.
fn sum(bundle: &Bundle, lane: &Lane, rank: u32, n: u64) -> u64 {
    let sum = bundle.stream_of(lane, rank).map_or(0, |stream| stream.sum(n));
    u64::try_from(sum.max(0)).unwrap_or(u64::MAX)
}

/// Displacements that follow from counts have a length below 0, see [`crate::sums`].
fn lengths_of(bundle: &Bundle, lane: &Lane, rank: u32, n: u64) -> u64 {
    let Some(stream) = bundle.stream_of(lane, rank) else { return 0 };
    let sum = stream.sum(n);
    let elements = if sum < 0 { -sum - i128::from(n) } else { sum };
    u64::try_from(elements.max(0)).unwrap_or(u64::MAX)
}

/// Ranks of a cohort that did something equally often.
#[derive(Debug, Clone)]
struct Group<'a> {
    ranks: Cow<'a, RankList>,
    times: u64,
}

/// No rank is in two of them.
type Groups<'a> = Vec<Group<'a>>;

fn total(groups: &[Group<'_>]) -> u64 {
    groups.iter().fold(0, |sum, group| sum.saturating_add(group.times.saturating_mul(group.ranks.len())))
}

/// How often the events of each symbol came, for each node that has it.
fn in_loops<'a>(bundle: &Bundle, cohort: &'a Cohort, loops: &Loops) -> Vec<(u32, Vec<Groups<'a>>)> {
    let mut events: HashMap<u32, Vec<Groups<'a>>> = HashMap::new();
    // Where each open body ends, and how often it runs.
    let whole = Group { ranks: Cow::Borrowed(&cohort.ranks), times: 1 };
    let mut open: Vec<(usize, Groups<'a>)> = vec![(usize::MAX, vec![whole])];
    for ((at, node), lane) in loops.nodes.iter().enumerate().zip(&cohort.lanes) {
        while open.len() > 1 && open.last().is_some_and(|(end, _)| *end <= at) {
            open.pop();
        }
        let reached = open.last().map_or(&[][..], |(_, groups)| groups);
        let runs = through(bundle, cohort, lane, reached);
        match *node {
            Node::Event(symbol) => events.entry(symbol).or_default().push(runs),
            Node::Loop { inside } => open.push((at + 1 + inside as usize, runs)),
        }
    }
    let symbols = loops.symbols().into_iter();
    symbols.map(|symbol| (symbol, events.remove(&symbol).unwrap_or_default())).collect()
}

/// The sums of the numbers in a lane, of which each group takes as many as it did something often. Those of nothing are left
/// out.
fn through<'a>(bundle: &Bundle, cohort: &'a Cohort, lane: &'a Lane, groups: &[Group<'a>]) -> Groups<'a> {
    let mut out = Vec::new();
    for Group { ranks, times } in groups.iter().filter(|group| group.times > 0) {
        for ranks in alike(cohort, lane, ranks) {
            let Some(first) = ranks.iter().next() else { continue };
            let times = sum(bundle, lane, first, *times);
            if times > 0 {
                out.push(Group { ranks, times });
            }
        }
    }
    out
}

/// Some ranks of the cohort, by what they have in a lane.
fn alike<'a>(cohort: &Cohort, lane: &'a Lane, ranks: &Cow<'a, RankList>) -> Vec<Cow<'a, RankList>> {
    let Lane::Varied(variants) = lane else { return vec![ranks.clone()] };
    if ranks.len() == cohort.ranks.len() {
        return variants.iter().flat_map(by_number).collect();
    }
    // They may be the ranks of one variant, which go by their lowest; else each is looked at.
    let lowest = |ranks: &RankList| ranks.parts.first().map(|part| part.start);
    match variants.binary_search_by_key(&lowest(ranks), |variant| lowest(&variant.ranks)) {
        Ok(at) if variants[at].ranks == **ranks => by_number(&variants[at]),
        _ => by_own(lane, ranks),
    }
}

fn by_number(variant: &Variant) -> Vec<Cow<'_, RankList>> {
    match variant.numbers.as_slice() {
        [] => vec![Cow::Borrowed(&variant.ranks)],
        // Its parts are ranks where it sees the ranks in their own order, and tells all of their numbers.
        [one]
            if one.values.is_plain()
                && one.values.len() == variant.ranks.len()
                && one.values.parts.iter().all(is_constant) =>
        {
            one.values.parts.iter().map(|part| Cow::Owned(ranks_of(part))).collect()
        }
        _ => by_own(&Lane::Varied(vec![variant.clone()]), &variant.ranks),
    }
}

fn is_constant(part: &MapPart) -> bool {
    part.dims.iter().all(|dim| dim.step == 0)
}

fn ranks_of(part: &MapPart) -> RankList {
    let dims = part.dims.iter().map(|dim| (dim.count, dim.stride)).collect();
    RankList { parts: vec![Part { start: part.start, dims }] }
}

fn by_own<'a>(lane: &Lane, ranks: &RankList) -> Vec<Cow<'a, RankList>> {
    let mut own: HashMap<Own, Vec<u32>> = HashMap::new();
    for rank in ranks {
        if let Some(key) = lane.of_rank(rank) {
            own.entry(key).or_default().push(rank);
        }
    }
    own.into_values().map(|ranks| Cow::Owned(RankList::from_sorted(&ranks))).collect()
}

/// What several nodes have, as groups of which each rank is in one: its times add up.
fn together(mut nodes: Vec<Groups<'_>>) -> Groups<'_> {
    nodes.retain(|groups| !groups.is_empty());
    if nodes.len() < 2 {
        return nodes.pop().unwrap_or_default();
    }
    let first = nodes[0][0].clone();
    if nodes.iter().all(|groups| groups.len() == 1 && groups[0].ranks == first.ranks) {
        let times = nodes.iter().fold(0u64, |sum, groups| sum.saturating_add(groups[0].times));
        return vec![Group { times, ..first }];
    }
    let mut times: BTreeMap<u32, u64> = BTreeMap::new();
    for group in nodes.iter().flatten() {
        for rank in &*group.ranks {
            let sum = times.entry(rank).or_default();
            *sum = sum.saturating_add(group.times);
        }
    }
    let mut by_times: HashMap<u64, Vec<u32>> = HashMap::new();
    times.into_iter().for_each(|(rank, times)| by_times.entry(times).or_default().push(rank));
    let group = |(times, ranks): (u64, Vec<u32>)| {
        let ranks = Cow::Owned(RankList::from_sorted(&ranks));
        Group { ranks, times }
    };
    by_times.into_iter().map(group).collect()
}
