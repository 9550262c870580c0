//! The calls of all ranks as one tree of loops, with the numbers of each rank beside it.

use std::collections::HashMap;
use std::rc::Rc;

use refrain_encode::Reader;
use refrain_fold::bundle::Bundle;
use refrain_fold::loops::merge::{self, Source};
use refrain_fold::loops::{Folder, Loops, Matching};
use refrain_fold::stream::{self, Stream};
use refrain_tracefile::Trace;

use super::call::{Hole, Made, Registry, Shape, Writer};
use super::survey::{Survey, is_failed_poll};
use crate::error::Error;

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
    /// By rank (those that make such calls), by hole.
    pub ranks: Vec<(u32, Vec<Column>)>,
}

#[derive(Debug)]
pub(super) struct Gathered {
    pub letters: Vec<Letter>,
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
#[derive(Debug)]
pub enum Refusal {
    Unread(Error),
    /// A call that C cannot be written for.
    Call { rank: u32, number: u64, function: &'static str, why: String },
}

enum Fold {
    One(stream::Folder),
    Many { lengths: stream::Folder, numbers: stream::Folder },
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
struct Kind {
    loops: Loops,
    ranks: Vec<(u32, Vec<Numbers>)>,
}

pub(super) fn gather(trace: &Trace, progress: &mut dyn FnMut(u64)) -> Result<Gathered, Refusal> {
    let bundle = &trace.bundle;
    let reader = Reader::new(bundle);
    let mut registry = Registry::default();
    let mut known: HashMap<Shape, u32> = HashMap::new();
    let mut letters: Vec<Letter> = Vec::new();
    let mut kinds: Vec<Kind> = Vec::new();
    let mut by_loops: HashMap<Loops, usize> = HashMap::new();
    let mut shared = Shared::default();
    let (mut all, mut polls) = (0, 0);
    for rank in 0..trace.meta.ranks {
        let failed = |position: u64, error| Refusal::Unread(Error::Call { rank, thread: 0, position, error });
        let mut survey = Survey::default();
        for (number, call) in (0u64..).zip(reader.calls(rank, 0).map_err(|e| failed(0, e))?) {
            let call = call.map_err(|error| failed(number, error))?;
            if !is_failed_poll(&call) {
                survey.add(&call);
            }
        }
        survey.finish();
        let mut writer = Writer::new(&mut registry, survey, trace.meta.ranks);
        let mut folder = Folder::new(Matching::Elastic);
        let mut columns: HashMap<u32, Vec<Fold>> = HashMap::new();
        let mut calls = reader.calls(rank, 0).map_err(|e| failed(0, e))?;
        let mut number = 0;
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
            let Made { shape, holes } = writer.call(symbol, &call).map_err(|why| Refusal::Call {
                rank,
                number: number - 1,
                function: call.function.name,
                why,
            })?;
            let letter = *known.entry(shape).or_insert_with_key(|shape| {
                letters.push(Letter { shape: shape.clone(), ranks: Vec::new() });
                letters.len() as u32 - 1
            });
            let folds = columns.entry(letter).or_insert_with(|| {
                folder.define(letter, frames(bundle, symbol));
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
            folder.push(letter);
        }
        all += number;
        for (letter, folds) in columns {
            let columns = folds.iter().map(|fold| shared.column(fold)).collect();
            letters[letter as usize].ranks.push((rank, columns));
        }
        let folded = folder.finish();
        let times = folded.times.into_iter().zip(folded.lengths);
        let times = times.map(|(stream, count)| shared.numbers(stream, count)).collect();
        let next = kinds.len();
        let kind = *by_loops.entry(folded.loops).or_insert_with_key(|loops| {
            kinds.push(Kind { loops: loops.clone(), ranks: Vec::new() });
            next
        });
        kinds[kind].ranks.push((rank, times));
    }
    let (loops, times) = merged(kinds, &mut shared);
    Ok(Gathered { letters, loops, times, registry, calls: all - polls, polls })
}

fn frames(bundle: &Bundle, symbol: u32) -> Vec<refrain_fold::bundle::sites::Frame> {
    bundle.symbols.get(symbol as usize).map_or(Vec::new(), |entry| bundle.sites.frames(entry.site))
}

fn fold_of(hole: &Hole) -> Fold {
    match hole {
        Hole::One(_) => Fold::One(stream::Folder::new()),
        Hole::Many(_) => Fold::Many { lengths: stream::Folder::new(), numbers: stream::Folder::new() },
    }
}

/// By node, the ranks that get there.
type Times = Vec<Vec<(u32, Numbers)>>;

/// One tree for all kinds.
fn merged(kinds: Vec<Kind>, shared: &mut Shared) -> (Loops, Times) {
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
