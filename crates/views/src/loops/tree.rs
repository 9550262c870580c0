//! The loops of a cohort: how often every node runs, on which ranks.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use refrain_encode::Layout;
use refrain_fold::bundle::{Bundle, Cohort, Lane, OfThread, Structure, Walk};
use refrain_fold::loops::{Folder, Loops, Matching, Node};
use refrain_fold::ranks::RankList;
use refrain_fold::stream::Stream;
use refrain_model::Function;
use serde::Serialize;

use super::chronology;
use super::follows::{self, Follows};
use super::rules;
use super::together::{self, Together};
use super::{MOST_CALLS, calls};
use crate::error::Error;
use crate::json;

/// What the ranks of a cohort did, as loops within loops.
#[derive(Debug)]
pub struct Tree<'a> {
    pub cohort: &'a OfThread<'a>,
    /// Those that are looked at.
    pub ranks: RankList,
    pub nodes: Vec<Branch>,
    /// Ranks that went through it alike.
    pub alike: Vec<RankList>,
    /// By symbol.
    pub functions: HashMap<u32, Layout>,
    /// Which of the cohort's lanes are a symbol's.
    lanes: Rc<HashMap<u32, Range<usize>>>,
    /// Where a symbol is called.
    by_symbol: OnceCell<HashMap<u32, Vec<usize>>>,
    /// By symbol, when it was first called, in no unit.
    pub came: Rc<HashMap<u32, usize>>,
    /// As the calls were folded, and by ranks that are alike how often each node ran.
    folded: Rc<(Loops, Vec<Class<'a>>)>,
    /// The trace has no loops: these were found while reading.
    pub found: bool,
    /// They are what repeats in the rules: its calls are too many to be gone through.
    pub of_rules: bool,
    /// The loops are those of the source.
    pub of_source: bool,
    /// Turns of some of them are told apart by the order of the calls alone.
    pub by_order: bool,
}

/// A node: an event, or a loop with its body after it.
#[derive(Debug)]
pub struct Branch {
    pub node: Node,
    /// The loop it is in.
    pub parent: Option<usize>,
    /// The node after the last one inside.
    pub end: usize,
    /// Ranks that come by here, by how often it runs; those that never do are in none.
    pub turns: Vec<Turns>,
    /// Where a rank is in them, if they are many.
    by_rank: OnceCell<HashMap<u32, usize>>,
}

/// So many are looked through.
const FEW: usize = 8;

/// How often a node runs each time its place is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Turns {
    #[serde(serialize_with = "json::shown")]
    pub ranks: RankList,
    /// How often its place is reached on each of the ranks, and how often it runs in all.
    pub reached: u64,
    pub runs: u64,
    /// Of a loop, how often it runs at all when it is reached, if that is known.
    #[serde(skip)]
    pub entered: Option<u64>,
    /// The fewest and the most at a time.
    pub low: u64,
    pub high: u64,
    pub known: Known,
    /// All of them, as the papers write them; empty where they are not known.
    pub vector: String,
}

/// What is known of how often a node runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Known {
    /// Everything.
    All,
    /// How often in all, and so the mean: `low` and `high` are its neighbours.
    Mean,
    /// How often each time it runs at all, but not how often its place was reached.
    Each,
    /// How often in all, but not how often its place was reached.
    Total,
    /// Of a loop, that it ran at least so often (`low` and `high` are as with the mean); of a call, that its loop did.
    #[serde(rename = "at least")]
    AtLeast,
}

impl Turns {
    /// Ranks that do the same are one entry.
    pub fn add_to(mut self, all: &mut Together<Turns>) {
        let ranks = std::mem::take(&mut self.ranks);
        all.add(self, &ranks);
    }

    /// The fewest and the most at a time are known. Of a mean they are only the numbers around it, unless it ran at most
    /// once each time it was entered.
    pub fn is_counted(&self) -> bool {
        match self.known {
            Known::All => true,
            Known::Mean => self.high <= 1 && self.entered == Some(self.runs),
            Known::Each | Known::Total | Known::AtLeast => false,
        }
    }

    pub fn of(all: Together<Turns>) -> Vec<Turns> {
        all.finish().into_iter().map(|(turns, ranks)| Turns { ranks, ..turns }).collect()
    }
}

impl Branch {
    pub fn new(node: Node, parent: Option<usize>, end: usize, turns: Vec<Turns>) -> Branch {
        Branch { node, parent, end, turns, by_rank: OnceCell::new() }
    }

    fn turns_on(&self, rank: u32) -> Option<&Turns> {
        if self.turns.len() <= FEW {
            return self.turns.iter().find(|turns| turns.ranks.contains(rank));
        }
        let each = |(at, turns): (usize, &Turns)| -> Vec<(u32, usize)> {
            turns.ranks.iter().map(|r| (r, at)).collect()
        };
        let by_rank =
            self.by_rank.get_or_init(|| self.turns.iter().enumerate().rev().flat_map(each).collect());
        self.turns.get(*by_rank.get(&rank)?)
    }

    pub fn is_loop(&self) -> bool {
        matches!(self.node, Node::Loop { .. })
    }

    pub fn symbol(&self) -> Option<u32> {
        match self.node {
            Node::Event(symbol) => Some(symbol),
            Node::Loop { .. } => None,
        }
    }

    /// It comes again somewhere without anything else in between.
    pub fn repeats(&self) -> bool {
        self.turns.iter().any(|turns| turns.high > 1)
    }

    /// How often it runs, on all ranks together.
    pub fn runs(&self) -> u64 {
        let all = |turns: &Turns| turns.runs.saturating_mul(turns.ranks.len());
        self.turns.iter().map(all).fold(0, u64::saturating_add)
    }

    /// The ranks on which it runs at all.
    pub fn ranks(&self) -> RankList {
        let some = self.turns.iter().filter(|turns| turns.runs > 0);
        together::all(some.map(|turns| &turns.ranks))
    }
}

/// Ranks that went through the tree alike, and the times of its nodes.
#[derive(Debug)]
struct Class<'a> {
    ranks: RankList,
    times: Vec<Option<Cow<'a, Stream>>>,
}

fn is_long(bundle: &Bundle, cohort: &Cohort, ranks: &RankList) -> bool {
    ranks.iter().next().is_some_and(|first| calls(bundle, cohort, first) > MOST_CALLS)
}

impl<'a> Tree<'a> {
    /// `rank`: only that one.
    pub fn new(bundle: &'a Bundle, cohort: &'a OfThread<'a>, rank: Option<u32>) -> Result<Tree<'a>, Error> {
        let ranks = rank.map_or_else(|| cohort.ranks.clone(), RankList::single);
        let structure = bundle.structures.get(cohort.structure as usize);
        let found = !matches!(structure, Some(Structure::Loops(_)));
        let of_rules = found && is_long(bundle, cohort, &ranks);
        let (loops, classes) = match structure {
            Some(Structure::Loops(loops)) => (loops.clone(), classes(bundle, cohort, loops, &ranks)),
            Some(Structure::Rules(grammar)) if of_rules => {
                let (loops, times) = rules::of_rules(grammar).ok_or_else(|| Error::TooMany {
                    calls: calls(bundle, cohort, ranks.iter().next().unwrap_or(0)),
                    most: MOST_CALLS,
                })?;
                let times = times.into_iter().map(|times| i64::try_from(times).unwrap_or(i64::MAX));
                let times = times.map(|times| Some(Cow::Owned(Stream::constant(times)))).collect();
                (loops, vec![Class { ranks: ranks.clone(), times }])
            }
            _ => {
                let first = ranks.iter().next().unwrap_or(0);
                let folded = fold(bundle, first, cohort.thread)?;
                let times = folded.times.into_iter().map(|times| Some(Cow::Owned(times))).collect();
                (folded.loops, vec![Class { ranks: ranks.clone(), times }])
            }
        };
        let alike = classes.iter().map(|class| class.ranks.clone()).collect();
        let (nodes, functions) = (branches(&loops), HashMap::new());
        let (lanes, by_symbol) = (Rc::new(lanes(bundle, structure)), OnceCell::new());
        let came = Rc::new(chronology::came(&loops, &nodes, classes.iter().map(|class| &class.times[..])));
        let (of_source, by_order) = (false, false);
        let folded = Rc::new((loops, classes));
        let (loops, classes) = &*folded.clone();
        let mut tree = Tree {
            cohort,
            ranks,
            nodes,
            alike,
            functions,
            lanes,
            by_symbol,
            came,
            folded,
            found,
            of_rules,
            of_source,
            by_order,
        };
        let mut turns: Vec<Together<Turns>> = tree.nodes.iter().map(|_| Together::new()).collect();
        for class in classes {
            enter(&mut turns, loops, class);
        }
        for (branch, turns) in tree.nodes.iter_mut().zip(turns) {
            branch.turns = Turns::of(turns);
        }
        for symbol in loops.symbols() {
            let entry = &bundle.symbols[symbol as usize];
            let layout =
                Layout::parse(&entry.bytes).map_err(|error| Error::Symbol { index: symbol, error })?;
            tree.functions.insert(symbol, layout);
        }
        Ok(tree)
    }

    /// The same calls, by the loops of the source.
    pub fn with_nodes(&self, nodes: Vec<Branch>, by_order: bool) -> Tree<'a> {
        Tree {
            cohort: self.cohort,
            ranks: self.ranks.clone(),
            nodes,
            alike: self.alike.clone(),
            functions: self.functions.clone(),
            lanes: self.lanes.clone(),
            by_symbol: OnceCell::new(),
            came: self.came.clone(),
            folded: self.folded.clone(),
            found: self.found,
            of_rules: self.of_rules,
            of_source: true,
            by_order,
        }
    }

    /// The lanes of a symbol.
    pub fn lanes(&self, symbol: u32) -> &'a [Lane] {
        let lanes = self.lanes.get(&symbol).and_then(|range| self.cohort.lanes.get(range.clone()));
        lanes.unwrap_or_default()
    }

    /// The nodes where a symbol is called.
    pub fn nodes_of(&self, symbol: u32) -> &[usize] {
        let by_symbol = self.by_symbol.get_or_init(|| {
            let mut nodes: HashMap<u32, Vec<usize>> = HashMap::new();
            for (at, branch) in self.nodes.iter().enumerate() {
                if let Some(symbol) = branch.symbol() {
                    nodes.entry(symbol).or_default().push(at);
                }
            }
            nodes
        });
        by_symbol.get(&symbol).map_or(&[], Vec::as_slice)
    }

    pub fn function(&self, symbol: u32) -> Option<&'static Function> {
        self.functions.get(&symbol).map(|layout| layout.function)
    }

    /// The nodes that stand in a body: that of a loop, or the outermost.
    pub fn body(&self, parent: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        let (mut at, end) = parent.map_or((0, self.nodes.len()), |p| (p + 1, self.nodes[p].end));
        std::iter::from_fn(move || {
            let here = at;
            (here < end).then(|| {
                at = self.nodes[here].end;
                here
            })
        })
    }

    /// The events within a node, itself included.
    pub fn events(&self, node: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        (node..self.nodes[node].end).filter_map(|at| Some((at, self.nodes[at].symbol()?)))
    }

    /// The symbols of calls that were made, some perhaps twice.
    pub fn events_made(&self) -> impl Iterator<Item = u32> + '_ {
        self.nodes.iter().filter(|branch| branch.runs() > 0).filter_map(Branch::symbol)
    }

    /// How often a rank runs a node.
    pub fn runs_on(&self, node: usize, rank: u32) -> u64 {
        self.turns_on(node, rank).map_or(0, |turns| turns.runs)
    }

    pub fn turns_on(&self, node: usize, rank: u32) -> Option<&Turns> {
        self.nodes[node].turns_on(rank)
    }

    /// By ranks that are alike, how often each of them makes each call.
    pub fn calls(&self) -> Vec<HashMap<u32, u64>> {
        let first = |(kind, ranks): (usize, &RankList)| Some((ranks.iter().next()?, kind));
        let kinds: HashMap<u32, usize> = self.alike.iter().enumerate().filter_map(first).collect();
        let mut calls: Vec<HashMap<u32, u64>> = vec![HashMap::new(); self.alike.len()];
        for branch in &self.nodes {
            let Some(symbol) = branch.symbol() else { continue };
            for turns in &branch.turns {
                let mut add = |kind: usize| {
                    let made = calls[kind].entry(symbol).or_insert(0);
                    *made = made.saturating_add(turns.runs);
                };
                if turns.ranks.len() < kinds.len() as u64 {
                    turns.ranks.iter().filter_map(|rank| kinds.get(&rank)).for_each(|kind| add(*kind));
                } else {
                    let here = kinds.iter().filter(|(rank, _)| turns.ranks.contains(**rank));
                    here.for_each(|(_, kind)| add(*kind));
                }
            }
        }
        calls
    }

    /// By ranks that are alike, which call followed which; `None` for those of whom it would take too long.
    pub fn follows(&self) -> Vec<Option<Follows>> {
        let (loops, classes) = &*self.folded;
        let mut left = follows::MOST;
        classes.iter().map(|class| follows::follows(loops, &class.times, &mut left)).collect()
    }

    /// How often a rank of each kind polled and found nothing, beside what counts as calls of a symbol.
    pub fn polls(&self, bundle: &Bundle, symbol: u32) -> Vec<u64> {
        let lane = self.functions.get(&symbol).and_then(|layout| layout.polls);
        if lane.is_none() {
            return vec![0; self.alike.len()];
        }
        let lane = lane.and_then(|lane| self.lanes(symbol).get(usize::from(lane)));
        let polls = |ranks: &RankList| {
            let (lane, rank) = (lane?, ranks.iter().next()?);
            let made = self.nodes_of(symbol).iter().map(|&node| self.runs_on(node, rank));
            let made = made.fold(0, u64::saturating_add);
            u64::try_from(bundle.stream_of(lane, rank)?.sum(made)).ok()
        };
        self.alike.iter().map(|ranks| polls(ranks).unwrap_or(0)).collect()
    }

    /// How often ranks make a call; of more than `most` one in so many.
    pub fn occurrences(&self, symbol: u32, most: u64) -> Vec<(u32, u64)> {
        let nodes = self.nodes_of(symbol);
        let turns = nodes.iter().flat_map(|&node| &self.nodes[node].turns).filter(|turns| turns.runs > 0);
        // Often the same list again and again.
        let lists: HashSet<&RankList> = turns.map(|turns| &turns.ranks).collect();
        let ranks = together::all(lists);
        let every = usize::try_from(ranks.len().div_ceil(most)).unwrap_or(usize::MAX).max(1);
        let made = |rank| nodes.iter().map(|&node| self.runs_on(node, rank)).fold(0, u64::saturating_add);
        ranks.iter().step_by(every).map(|rank| (rank, made(rank))).collect()
    }
}

/// Where the lanes of each symbol are among those of a cohort.
fn lanes(bundle: &Bundle, structure: Option<&Structure>) -> HashMap<u32, Range<usize>> {
    let mut start = structure.map_or(0, Structure::own_lanes);
    let mut lanes = HashMap::new();
    for symbol in structure.into_iter().flat_map(Structure::symbols) {
        let end = start + usize::from(bundle.symbols[symbol as usize].lanes);
        lanes.insert(symbol, start..end);
        start = end;
    }
    lanes
}

/// What the ranks of a class did at each node.
fn enter(all: &mut [Together<Turns>], loops: &Loops, class: &Class) {
    let totals = loops.totals(|node| class.times.get(node)?.as_deref());
    for (at, (reached, runs)) in totals.into_iter().enumerate() {
        let Some(Some(times)) = class.times.get(at).filter(|_| reached > 0) else { continue };
        let (low, high) = times.min_max(reached).unwrap_or((0, 0));
        let (low, high) = (low.max(0) as u64, high.max(0) as u64);
        let vector = refrain_fold::loops::vector(times, reached);
        let (ranks, known) = (RankList::default(), Known::All);
        let is_loop = matches!(loops.nodes[at], Node::Loop { .. });
        let entered = is_loop.then(|| entered(times, reached, low)).flatten();
        all[at].add(Turns { ranks, reached, runs, entered, low, high, known, vector }, &class.ranks);
    }
}

/// How many of the first numbers are not 0; `None` if they are too many to look at.
fn entered(times: &Stream, reached: u64, low: u64) -> Option<u64> {
    const MOST: u64 = 1 << 16;
    match low {
        0 if reached > MOST => None,
        0 => Some(times.iter().take(reached as usize).filter(|times| *times > 0).count() as u64),
        _ => Some(reached),
    }
}

fn branches(loops: &Loops) -> Vec<Branch> {
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut nodes = Vec::with_capacity(loops.nodes.len());
    for (at, node) in loops.nodes.iter().enumerate() {
        while open.last().is_some_and(|&(_, end)| end <= at) {
            open.pop();
        }
        let parent = open.last().map(|&(parent, _)| parent);
        let end = at + 1 + if let Node::Loop { inside } = *node { inside as usize } else { 0 };
        nodes.push(Branch::new(*node, parent, end, Vec::new()));
        if end > at + 1 {
            open.push((at, end));
        }
    }
    nodes
}

/// A trace of rules has no loops, but the calls they stand for do: those of one rank, and so of all with the same rules.
fn fold(bundle: &Bundle, rank: u32, thread: u32) -> Result<refrain_fold::loops::Folded, Error> {
    let failed = |error| Error::Call { rank, thread, position: 0, error };
    let walk = Walk::new(bundle, rank, thread).map_err(|e| failed(refrain_encode::Error::Trace(e)))?;
    let mut walk = walk.ok_or_else(|| failed(refrain_encode::Error::NoSuchRank { rank, thread }))?;
    let mut folder = Folder::new(Matching::Elastic);
    let mut defined = vec![false; bundle.symbols.len()];
    while let Some(symbol) = walk.next_symbol() {
        if !std::mem::replace(&mut defined[symbol as usize], true) {
            let site = bundle.symbols[symbol as usize].site;
            folder.define(symbol, bundle.sites.frames(site));
        }
        folder.push(symbol);
    }
    Ok(folder.finish())
}

/// Ranks are alike if they are in the same variant of every lane of times, with the same numbers.
fn classes<'a>(bundle: &'a Bundle, cohort: &'a Cohort, loops: &Loops, ranks: &RankList) -> Vec<Class<'a>> {
    let mut marks: BTreeMap<u32, Vec<i64>> = ranks.iter().map(|rank| (rank, Vec::new())).collect();
    for lane in cohort.lanes.iter().take(loops.nodes.len()) {
        let Lane::Varied(variants) = lane else { continue };
        for (number, variant) in (1i64..).zip(variants) {
            for rank in variant.ranks.iter() {
                if let Some(mark) = marks.get_mut(&rank) {
                    mark.push(number);
                }
            }
            for own in &variant.numbers {
                for (rank, value) in own.values.pairs_of(&variant.ranks) {
                    if let Some(mark) = marks.get_mut(&rank) {
                        mark.push(value);
                    }
                }
            }
        }
        // Ranks in no variant.
        marks.values_mut().for_each(|mark| mark.push(i64::MIN));
    }
    let mut alike: BTreeMap<Vec<i64>, Vec<u32>> = BTreeMap::new();
    for (rank, mark) in marks {
        alike.entry(mark).or_default().push(rank);
    }
    let mut alike: Vec<Vec<u32>> = alike.into_values().collect();
    alike.sort();
    let class = |ranks: Vec<u32>| {
        let times = cohort.lanes.iter().take(loops.nodes.len());
        let times = times.map(|lane| bundle.stream_of(lane, ranks[0])).collect();
        Class { ranks: RankList::from_sorted(&ranks), times }
    };
    alike.into_iter().map(class).collect()
}
