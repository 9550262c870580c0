//! The calls of all ranks as one tree of loops, with the numbers of each rank beside it.

use std::collections::HashMap;
use std::fmt::Write;
use std::rc::Rc;

use refrain_encode::{Layout, Reader, Slot};
use refrain_fold::bundle::Bundle;
use refrain_fold::loops::merge::{self, Source};
use refrain_fold::loops::{Cursor, Folded, Folder, Loops, Matching, Node, WINDOW};
use refrain_fold::stream::{self, Stream};
use refrain_model::{Class, Dir, Kind};
use refrain_tracefile::Trace;

use super::call::{Hole, Made, Shape, Writer};
use super::registry::Registry;
use super::survey::Survey;
use crate::error::Error;
use crate::meaning::requests::is_failed_poll;

/// What one rank has in one place: so many of these numbers count.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Numbers {
    pub stream: Rc<Stream>,
    pub count: u64,
}

/// What one rank has in a hole: one number a call, or an array of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Column {
    One(Numbers),
    Many { lengths: Numbers, numbers: Numbers },
}

/// Calls that are written alike.
#[derive(Debug)]
pub(super) struct Letter {
    pub shape: Shape,
    /// One of its symbols.
    pub symbol: u32,
    /// By rank (those that make such calls), by hole.
    pub ranks: Vec<(u32, Vec<Column>)>,
}

#[derive(Debug)]
pub(super) struct Gathered {
    pub letters: Vec<Letter>,
    /// The calls of all ranks up to `MPI_Init`: none knows its rank before.
    pub first: Vec<u32>,
    /// The calls after these.
    pub loops: Loops,
    /// By node: of each rank that gets there, how often it runs each time.
    pub times: Vec<Vec<(u32, Numbers)>>,
    pub registry: Registry,
    /// Calls, without polls that found nothing.
    pub calls: u64,
    /// Polls that found nothing.
    pub polls: u64,
}

/// Why there is no program.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("{0}")]
    Unread(Error),
    /// A call that C cannot be written for.
    #[error("call {number} of rank {rank}, {function}, cannot be written as C: {why}")]
    Call { rank: u32, number: u64, function: &'static str, why: String },
}

enum Fold {
    One(Box<stream::Folder>),
    Many { lengths: Box<stream::Folder>, numbers: Box<stream::Folder> },
}

/// Equal streams are one.
#[derive(Default)]
struct Shared {
    known: HashMap<Stream, Rc<Stream>>,
}

impl Shared {
    fn numbers(&mut self, stream: Stream, count: u64) -> Numbers {
        let stream = self.known.entry(stream).or_insert_with_key(|stream| Rc::new(stream.clone())).clone();
        Numbers { stream, count }
    }

    fn column(&mut self, fold: &Fold) -> Column {
        let mut one = |folder: &stream::Folder| self.numbers(folder.finish(), folder.len());
        match fold {
            Fold::One(folder) => Column::One(one(folder)),
            Fold::Many { lengths, numbers } => Column::Many { lengths: one(lengths), numbers: one(numbers) },
        }
    }
}

/// The tree of one kind of ranks, and the times of each.
struct Alike {
    loops: Loops,
    ranks: Vec<(u32, Vec<Numbers>)>,
}

pub(super) fn gather(trace: &Trace, progress: &mut dyn FnMut(u64)) -> Result<Gathered, Refusal> {
    let bundle = &trace.bundle;
    let reader = Reader::new(bundle);
    let faces = faces(bundle)?;
    let mut registry = Registry::default();
    let mut known: HashMap<Shape, u32> = HashMap::new();
    let mut letters: Vec<Letter> = Vec::new();
    let mut forests = [Forest::default(), Forest::default()];
    let mut shared = Shared::default();
    let cancels = crate::replayable::functions(trace).contains("MPI_Cancel");
    let (mut all, mut polls) = (0, 0);
    let mut first: Option<Vec<u32>> = None;
    // By rank, of its letters.
    let mut digests: Vec<u64> = Vec::new();
    for rank in 0..trace.meta.ranks {
        let failed = |position: u64, error| Refusal::Unread(Error::Call { rank, thread: 0, position, error });
        let mut survey = Survey::new(cancels);
        for (number, call) in (0u64..).zip(reader.calls(rank, 0).map_err(|e| failed(0, e))?) {
            let call = call.map_err(|error| failed(number, error))?;
            if !is_failed_poll(&call) {
                survey.add(&call);
            }
        }
        survey.finish();
        let mut writer = Writer::new(&mut registry, survey, trace.meta.ranks);
        let mut folders = MATCHINGS.map(Folder::new);
        let mut columns: HashMap<u32, Vec<Fold>> = HashMap::new();
        let mut calls = reader.calls(rank, 0).map_err(|e| failed(0, e))?;
        let (mut number, mut digest) = (0, 0);
        let (mut before, mut started) = (Vec::new(), false);
        while let Some(call) = calls.next() {
            let call = call.map_err(|error| failed(number, error))?;
            number += 1;
            if number % 4096 == 0 {
                progress(all + number);
            }
            if is_failed_poll(&call) {
                polls += 1;
                continue;
            }
            let symbol = calls.symbol().unwrap_or(0);
            let Made { shape, holes } = writer.call(faces[symbol as usize], &call).map_err(|why| {
                Refusal::Call { rank, number: number - 1, function: call.function.name, why }
            })?;
            let letter = *known.entry(shape).or_insert_with_key(|shape| {
                letters.push(Letter { shape: shape.clone(), symbol, ranks: Vec::new() });
                letters.len() as u32 - 1
            });
            let folds = columns.entry(letter).or_insert_with(|| {
                folders.iter_mut().for_each(|folder| folder.define(letter, frames(bundle, symbol)));
                holes.iter().map(fold_of).collect()
            });
            for (fold, hole) in folds.iter_mut().zip(&holes) {
                match (fold, hole) {
                    (Fold::One(folder), Hole::One(number)) => folder.push(*number),
                    (Fold::Many { lengths, numbers }, Hole::Many(list)) => {
                        lengths.push(list.len() as i64);
                        list.iter().for_each(|number| numbers.push(*number));
                    }
                    _ => {}
                }
            }
            if started {
                folders.iter_mut().for_each(|folder| folder.push(letter));
                digest = mixed(digest, letter);
            } else {
                started =
                    call.function.name.starts_with("MPI_Init") && call.function.name != "MPI_Initialized";
                before.push(letter);
            }
        }
        all += number;
        if *first.get_or_insert_with(|| before.clone()) != before {
            let why = "ranks do not call the same before they know who they are".to_owned();
            return Err(Refusal::Call { rank, number: 0, function: "MPI_Init", why });
        }
        digests.push(digest);
        for (letter, folds) in columns {
            let columns = folds.iter().map(|fold| shared.column(fold)).collect();
            letters[letter as usize].ranks.push((rank, columns));
        }
        for (forest, folder) in forests.iter_mut().zip(&folders) {
            forest.add(rank, folder.finish(), &mut shared);
        }
    }
    // The one that takes the least to write, of those that say what happened.
    let mut trees = Vec::new();
    for forest in forests {
        trees.push(apart(&forest.kinds, &mut shared));
        trees.push(merged(forest.kinds, &mut shared));
    }
    trees.sort_by_key(|(_, times)| cost(times));
    let right = |(loops, times): &(Loops, Times)| {
        (0u32..).zip(&digests).all(|(rank, digest)| walked(loops, times, rank) == *digest)
    };
    let (loops, mut times) = trees.into_iter().find(right).unwrap_or_default();
    count(&loops, &mut times, trace.meta.ranks);
    let first = first.unwrap_or_default();
    Ok(Gathered { letters, first, loops, times, registry, calls: all - polls, polls })
}

/// Ways to find loops: what is left out or comes more often in some turns is a condition of C, or nothing is.
const MATCHINGS: [Matching; 2] = [Matching::Elastic, Matching::Exact { window: WINDOW }];

/// A number for a sequence of letters.
fn mixed(digest: u64, letter: u32) -> u64 {
    (digest ^ u64::from(letter)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// That of what a rank does by a tree.
fn walked(loops: &Loops, times: &Times, rank: u32) -> u64 {
    let none = Stream::constant(0);
    let of = |ranks: &Vec<(u32, Numbers)>| {
        let found = ranks.binary_search_by_key(&rank, |(rank, _)| *rank);
        found.ok().map(|at| ranks[at].1.stream.clone())
    };
    let streams: Vec<Option<Rc<Stream>>> = times.iter().map(of).collect();
    let times = streams.iter().map(|stream| stream.as_deref().unwrap_or(&none).iter()).collect();
    Cursor::new(loops, times).fold(0, mixed)
}

/// How often each rank gets to each node: the loops around it may not be those it had alone.
fn count(loops: &Loops, times: &mut Times, ranks: u32) {
    for rank in 0..ranks {
        let find = |times: &Times, node: usize| {
            let all = times.get(node)?;
            all.binary_search_by_key(&rank, |(rank, _)| *rank).ok()
        };
        let totals = loops.totals(|node| find(times, node).map(|at| &*times[node][at].1.stream));
        for (node, (reached, _)) in totals.into_iter().enumerate() {
            if let Some(at) = find(times, node) {
                times[node][at].1.count = reached;
            }
        }
    }
}

/// One kind of ranks after the other.
fn apart(kinds: &[Alike], shared: &mut Shared) -> (Loops, Times) {
    let never = shared.numbers(Stream::constant(0), 1);
    let mut all: Vec<u32> = kinds.iter().flat_map(|kind| &kind.ranks).map(|(rank, _)| *rank).collect();
    all.sort_unstable();
    let (mut loops, mut times) = (Loops::default(), Vec::new());
    for kind in kinds {
        let mut end = 0;
        for (at, node) in kind.loops.nodes.iter().enumerate() {
            let mut here: Vec<(u32, Numbers)> =
                kind.ranks.iter().map(|(rank, times)| (*rank, times[at].clone())).collect();
            // The outermost of a kind are nothing to the others.
            if at >= end {
                end = at + 1 + if let Node::Loop { inside } = node { *inside as usize } else { 0 };
                let others = all.iter().filter(|rank| kind.ranks.iter().all(|(own, _)| own != *rank));
                here.extend(others.map(|rank| (*rank, never.clone())));
                here.sort_by_key(|(rank, _)| *rank);
            }
            loops.nodes.push(*node);
            times.push(here);
        }
    }
    (loops, times)
}

/// About how many lines a tree takes.
fn cost(times: &Times) -> usize {
    let node = |ranks: &Vec<(u32, Numbers)>| {
        let mut streams: Vec<&Rc<Stream>> = Vec::new();
        for (_, Numbers { stream, count }) in ranks {
            let varies = stream.min_max(*count).is_some_and(|(low, high)| low != high);
            if varies && !streams.iter().any(|known| Rc::ptr_eq(known, stream)) {
                streams.push(stream);
            }
        }
        let lines = streams.iter().map(|stream| 4 + stream.shape.items() / 6).sum::<usize>();
        if lines > 0 { lines + 4 } else { 1 }
    };
    times.iter().map(node).sum()
}

/// The trees of all ranks, by kind.
#[derive(Default)]
struct Forest {
    kinds: Vec<Alike>,
    by_loops: HashMap<Loops, usize>,
}

impl Forest {
    fn add(&mut self, rank: u32, folded: Folded, shared: &mut Shared) {
        let times = folded.times.into_iter().zip(folded.lengths);
        let times = times.map(|(stream, count)| shared.numbers(stream, count)).collect();
        let next = self.kinds.len();
        let kind = *self.by_loops.entry(folded.loops).or_insert_with_key(|loops| {
            self.kinds.push(Alike { loops: loops.clone(), ranks: Vec::new() });
            next
        });
        self.kinds[kind].ranks.push((rank, times));
    }
}

/// By symbol: the same number for those that are called from the same place with the same communicator, datatypes and such,
/// wherever buffers lie and whatever does not matter on some ranks.
fn faces(bundle: &Bundle) -> Result<Vec<u32>, Refusal> {
    let mut known: HashMap<String, u32> = HashMap::new();
    let mut faces = Vec::with_capacity(bundle.symbols.len());
    for (index, symbol) in (0..).zip(&bundle.symbols) {
        let layout =
            Layout::parse(&symbol.bytes).map_err(|error| Refusal::Unread(Error::Symbol { index, error }))?;
        let mut look = format!("{} {:?} {}", layout.function.id, layout.outcome, symbol.site);
        for (p, slot) in layout.function.params.iter().zip(&layout.slots) {
            let object = match p.kind {
                Kind::Handle(Class::Request | Class::Message) => false,
                Kind::Handle(_) => p.dir == Dir::In && p.when.is_empty(),
                _ => false,
            };
            match slot {
                Slot::Fixed(_) | Slot::Object(..) if object => {
                    let _ = write!(look, ";{} {slot:?}", p.name);
                }
                _ => {}
            }
        }
        let next = known.len() as u32;
        faces.push(*known.entry(look).or_insert(next));
    }
    Ok(faces)
}

fn frames(bundle: &Bundle, symbol: u32) -> Vec<refrain_fold::bundle::sites::Frame> {
    bundle.symbols.get(symbol as usize).map_or(Vec::new(), |entry| bundle.sites.frames(entry.site))
}

fn fold_of(hole: &Hole) -> Fold {
    match hole {
        Hole::One(_) => Fold::One(Box::default()),
        Hole::Many(_) => Fold::Many { lengths: Box::default(), numbers: Box::default() },
    }
}

/// By node, the ranks that get there.
type Times = Vec<Vec<(u32, Numbers)>>;

/// One tree for all kinds.
fn merged(kinds: Vec<Alike>, shared: &mut Shared) -> (Loops, Times) {
    let (never, once) = (shared.numbers(Stream::constant(0), 1), shared.numbers(Stream::constant(1), 1));
    let mut all: Option<(Loops, Times, Vec<merge::Kinds>)> = None;
    for (number, kind) in kinds.into_iter().enumerate() {
        let bit = |number: usize| {
            let mut bits = vec![0; number / 64 + 1];
            bits[number / 64] |= 1u64 << (number % 64);
            bits
        };
        let of_node = |node: usize| -> Vec<(u32, Numbers)> {
            kind.ranks.iter().map(|(rank, times)| (*rank, times[node].clone())).collect()
        };
        let Some((loops, times, who)) = all.take() else {
            let times = (0..kind.loops.nodes.len()).map(of_node).collect();
            let who = vec![bit(0); kind.loops.nodes.len()];
            all = Some((kind.loops, times, who));
            continue;
        };
        let merged = merge::merge(&loops, &kind.loops, &who);
        let earlier: Vec<u32> = {
            let mut ranks: Vec<u32> = times.iter().flatten().map(|(rank, _)| *rank).collect();
            ranks.sort_unstable();
            ranks.dedup();
            ranks
        };
        let own: Vec<u32> = kind.ranks.iter().map(|(rank, _)| *rank).collect();
        let given = |ranks: &[u32], numbers: &Numbers| -> Vec<(u32, Numbers)> {
            ranks.iter().map(|rank| (*rank, numbers.clone())).collect()
        };
        let mut next_times = Vec::with_capacity(merged.loops.nodes.len());
        let mut next_who = Vec::with_capacity(merged.loops.nodes.len());
        for (first, second) in merged.first.iter().zip(&merged.second) {
            let (mut here, mut whose) = match *first {
                Source::Node(node) => (times[node as usize].clone(), who[node as usize].clone()),
                Source::Never => (given(&earlier, &never), Vec::new()),
                Source::Once => (given(&earlier, &once), Vec::new()),
                Source::Absent => (Vec::new(), Vec::new()),
            };
            match *second {
                Source::Node(node) => {
                    here.extend(of_node(node as usize));
                    let own = bit(number);
                    whose.resize(whose.len().max(own.len()), 0);
                    whose.iter_mut().zip(own).for_each(|(to, from)| *to |= from);
                }
                Source::Never => here.extend(given(&own, &never)),
                Source::Once => here.extend(given(&own, &once)),
                Source::Absent => {}
            }
            here.sort_by_key(|(rank, _)| *rank);
            next_times.push(here);
            next_who.push(whose);
        }
        all = Some((merged.loops, next_times, next_who));
    }
    let (loops, times, _) = all.unwrap_or_default();
    (loops, times)
}
