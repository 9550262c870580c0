//! The loop over time steps: the outermost loop with repeated calls that holds most of them (001, section 5.3).

use std::collections::{BTreeMap, HashMap};

use refrain_fold::bundle::Bundle;
use refrain_fold::bundle::sites::Frame;
use refrain_fold::ranks::RankList;
use refrain_sites::Names;

use super::place::stack;
use super::tree::Tree;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    pub node: usize,
    /// How many, by rank; ranks without any are left out.
    pub counts: Vec<(Count, RankList)>,
    /// Calls in the loop, of all.
    pub calls: u64,
    pub all_calls: u64,
}

/// So many iterations, made up of: some before or after the loop that are like those in it, and those in the loop, which
/// may be rounds of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count {
    pub steps: u64,
    pub turns: u64,
    pub in_turn: u64,
    pub outside: u64,
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Count { steps, turns, in_turn, outside } = *self;
        write!(f, "{}", crate::human::plural(steps, "iteration"))?;
        match (in_turn, outside) {
            (1, 0) => Ok(()),
            (1, _) => write!(f, " ({turns} + {outside})"),
            (_, 0) => write!(f, " ({turns} x {in_turn})"),
            _ => write!(f, " ({turns} x {in_turn} + {outside})"),
        }
    }
}

pub fn steps(bundle: &Bundle, names: &dyn Names, tree: &Tree) -> Option<Steps> {
    let calls: Vec<u64> = (0..tree.nodes.len()).map(|node| tree.calls(node)).collect();
    let loops = (0..tree.nodes.len()).filter(|&node| tree.nodes[node].repeats());
    // Of those with as many the first is the outermost.
    let node = loops.rev().max_by_key(|&node| calls[node])?;
    let all_calls = tree.body(None).map(|node| calls[node]).sum();
    let keys = Keys::new(bundle, names, tree);
    let mut counts: BTreeMap<Count, RankList> = BTreeMap::new();
    let turns: Vec<(u64, &RankList)> = tree.nodes[node].turns.iter().map(|t| (t.runs, &t.ranks)).collect();
    for (turns, ranks) in turns.into_iter().filter(|(turns, _)| *turns > 0) {
        for (outside, in_turn, some) in keys.split(tree, node, turns, ranks) {
            let count = Count { steps: turns * in_turn + outside, turns, in_turn, outside };
            let known = counts.entry(count).or_default();
            *known = known.union(&some);
        }
    }
    let mut counts: Vec<(Count, RankList)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, ranks)| ranks.iter().next());
    Some(Steps { node, counts, calls: calls[node], all_calls })
}

/// Which calls are the same call of the source: the same function from the same place, however deep a recursion is.
struct Keys {
    /// By symbol; `None` where nothing is known of the place.
    of: HashMap<u32, Option<(u16, Vec<Frame>)>>,
}

impl Keys {
    fn new(bundle: &Bundle, names: &dyn Names, tree: &Tree) -> Keys {
        // A place without all that led there is too little to go by.
        let full = bundle.sites.stacks.values().any(|stack| stack.outer != 0);
        let key = |symbol: u32| {
            let frames = stack(bundle, symbol);
            let function = tree.function(symbol).filter(|_| full && !frames.is_empty())?;
            Some((function.id, without_recursion(names, frames)))
        };
        Keys { of: tree.functions.keys().map(|&symbol| (symbol, key(symbol))).collect() }
    }

    fn of(&self, symbol: Option<u32>) -> Option<&(u16, Vec<Frame>)> {
        self.of.get(&symbol?)?.as_ref()
    }

    /// By ranks: iterations like those of the loop that are outside of it, and how many of them each round is made of.
    fn split(&self, tree: &Tree, node: usize, turns: u64, ranks: &RankList) -> Vec<(u64, u64, RankList)> {
        let plain = self.plain(tree, node);
        let rest: Vec<usize> =
            (0..tree.nodes.len()).filter(|&at| at < node || at >= tree.nodes[node].end).collect();
        let round = self.round(tree, node);
        // Most programs have neither.
        let twins = |at: usize| {
            let key = self.of(tree.nodes[at].symbol());
            rest.iter().any(|&other| key.is_some() && self.of(tree.nodes[other].symbol()) == key)
        };
        let peeled = !plain.is_empty() && plain.iter().all(|&at| twins(at));
        if !peeled && round.is_none() {
            return vec![(0, 1, ranks.clone())];
        }
        let mut found: BTreeMap<(u64, u64), Vec<u32>> = BTreeMap::new();
        for rank in ranks.iter() {
            let outside = match peeled {
                false => 0,
                true => {
                    let each = plain.iter().map(|&at| {
                        let (in_loop, out) = (runs(tree, at, rank), self.twins(tree, at, &rest, rank));
                        // As often as that many iterations of the loop would make it.
                        if in_loop == 0 { 0 } else { out.saturating_mul(turns) / in_loop }
                    });
                    each.min().unwrap_or(0)
                }
            };
            let in_turn = round.map_or(1, |at| {
                let inside: Vec<usize> = (node..tree.nodes[node].end).collect();
                let all = runs(tree, at, rank) + self.twins(tree, at, &inside, rank);
                if turns > 0 && all % turns == 0 { (all / turns).max(1) } else { 1 }
            });
            found.entry((outside, in_turn)).or_default().push(rank);
        }
        found.into_iter().map(|((outside, turn), ranks)| (outside, turn, RankList::from_sorted(&ranks))).collect()
    }

    /// The events of a body that every iteration makes.
    fn plain(&self, tree: &Tree, node: usize) -> Vec<usize> {
        if !tree.nodes[node].is_loop() {
            return vec![node];
        }
        let always = |at: &usize| {
            let branch = &tree.nodes[*at];
            !branch.is_loop() && branch.turns.iter().all(|turns| turns.low == turns.high) && branch.runs() > 0
        };
        tree.body(Some(node)).filter(always).collect()
    }

    /// An event of a loop right inside, all of whose events are in the outer body too: every so many iterations something
    /// more happens, and the two loops are one in the source.
    fn round(&self, tree: &Tree, node: usize) -> Option<usize> {
        let outer: Vec<_> = tree.body(Some(node)).filter_map(|at| self.of(tree.nodes[at].symbol())).collect();
        let inner = |at: &usize| tree.nodes[*at].is_loop() && tree.nodes[*at].repeats();
        tree.nodes[node].is_loop().then_some(())?;
        tree.body(Some(node)).filter(inner).find_map(|at| {
            let plain = self.plain(tree, at);
            let both = |e: &usize| self.of(tree.nodes[*e].symbol()).is_some_and(|key| outer.contains(&key));
            (!plain.is_empty() && plain.iter().all(both)).then(|| plain[0])
        })
    }

    /// How often a rank makes the same call at other nodes.
    fn twins(&self, tree: &Tree, at: usize, among: &[usize], rank: u32) -> u64 {
        let key = self.of(tree.nodes[at].symbol());
        let same = |other: &&usize| **other != at && key.is_some() && self.of(tree.nodes[**other].symbol()) == key;
        among.iter().filter(same).map(|&other| runs(tree, other, rank)).sum()
    }
}

fn runs(tree: &Tree, node: usize, rank: u32) -> u64 {
    let turns = tree.nodes[node].turns.iter().find(|turns| turns.ranks.contains(rank));
    turns.map_or(0, |turns| turns.runs)
}

/// A function that calls itself is in one frame, the innermost.
fn without_recursion(names: &dyn Names, frames: Vec<Frame>) -> Vec<Frame> {
    let functions: Vec<Option<(u64, u64)>> =
        frames.iter().map(|frame| Some((frame.module, names.function(*frame)?))).collect();
    let inner_too = |at: usize| functions[at].is_some() && functions[at + 1..].contains(&functions[at]);
    frames.iter().enumerate().filter(|(at, _)| !inner_too(*at)).map(|(_, frame)| *frame).collect()
}
