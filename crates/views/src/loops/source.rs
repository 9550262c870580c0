//! The loops of the source around the calls of a trace, instead of those that folding made of their order.
//!
//! Folding sees calls, and `for` has none: one loop in which something else is done every tenth time looks like two. Where
//! the machine code of all that called is at hand, it says which loops a call is in, and mostly also how often each was
//! gone around ([`Finder::around`]): that many times, whatever the fold looks like, a call in it was or was not made. Where
//! no call must be made in each turn, turns are told apart by the order of the calls ([`Ways`]).

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use refrain_fold::bundle::Bundle;
use refrain_fold::bundle::sites::Frame;
use refrain_fold::loops::Node;
use refrain_fold::ranks::RankList;
use refrain_sites::{Around, Names, Turn, nest};

use super::follows::{Follows, Pair};
use super::place::{Where, stack};
use super::steps::Finder;
use super::together::Together;
use super::tree::{Branch, Known, Tree, Turns};
use super::turns::{Made, Ways, begun, twins};

/// A loop: all that its function was called from, and its code in that function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Id {
    outer: Vec<Frame>,
    module: u64,
    code: Vec<Range<u64>>,
}

impl Id {
    fn new(stack: &[Frame], depth: usize, turn: &Turn) -> Id {
        let outer = stack.iter().take(depth).copied().collect();
        Id { outer, module: turn.module, code: turn.code.clone() }
    }
}

/// A loop of the source that calls were made in.
struct Loop {
    id: Id,
    turn: Turn,
    place: Where,
    /// Its code is not gone around as often as the source: some turns are copies beside it, or it begins in the middle.
    copied: bool,
    /// By kind of ranks.
    counts: Vec<Count>,
}

/// How often a loop was gone around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Count {
    times: u64,
    /// In how many turns of what is around it, if the order of the calls was looked at.
    entered: Option<u64>,
    /// Perhaps it was more often.
    at_least: bool,
    /// Turns are those that calls tell apart: the code may have gone around without any.
    by_order: bool,
}

enum Item {
    Loop(usize),
    Call(u32),
}

impl Item {
    /// The call that stands first in it.
    fn first(&self, firsts: &[Option<u32>]) -> Option<u32> {
        match *self {
            Item::Loop(this) => firsts[this],
            Item::Call(symbol) => Some(symbol),
        }
    }
}

/// Where a call stands: in the source, by lines and offsets from the outermost frame to the innermost, and in time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    source: Vec<(u32, u64)>,
    came: usize,
    /// The line of the call is known.
    lined: bool,
}

/// The same calls by the loops of the source, and where these are; `None` if the code does not explain the calls.
pub fn by_source<'a>(
    bundle: &Bundle,
    names: &dyn Names,
    tree: &Tree<'a>,
    places: &[Option<Where>],
) -> Option<(Tree<'a>, Vec<Option<Where>>)> {
    let mut symbols: Vec<u32> = tree.events_made().collect();
    symbols.sort_unstable();
    symbols.dedup();
    let mut source = Source::default();
    let mut stacks: HashMap<u32, Vec<Frame>> =
        symbols.iter().map(|&symbol| (symbol, stack(bundle, symbol))).collect();
    let twins = twins(names, stacks.values().map(Vec::as_slice));
    let mut moved: Vec<u32> = Vec::new();
    for (&symbol, stack) in &mut stacks {
        let copies = stack.iter_mut().filter_map(|frame| Some((twins.get(frame)?, frame)));
        if copies.map(|(twin, frame)| *frame = *twin).count() > 0 {
            moved.push(symbol);
        }
    }
    for &symbol in &symbols {
        source.add(names, symbol, &stacks[&symbol])?;
    }
    moved.iter().for_each(|&symbol| source.is_copied(symbol));
    let finder = Finder::new(bundle, names, tree, places);
    let made = tree.calls();
    let fold = Fold::new(bundle, tree, places);
    let turns = source.turns(names, &stacks, tree);
    let polls = symbols.iter().map(|&symbol| (symbol, tree.polls(bundle, symbol))).collect();
    source.count(&finder, &made, &turns, &polls);
    let positions = positions(bundle, names, tree, &symbols);
    let mut firsts: Vec<Option<u32>> = vec![None; source.loops.len()];
    // Inner loops have higher numbers.
    for this in (0..source.loops.len()).rev() {
        let each = source.items(Some(this)).iter().filter_map(|item| item.first(&firsts));
        firsts[this] = first_of(&positions, each);
    }
    let mut grown = Grown {
        source: &source,
        tree,
        made: &made,
        fold: &fold,
        positions,
        firsts,
        nodes: Vec::new(),
        places: Vec::new(),
    };
    grown.body(None, None)?;
    let Grown { nodes, places, .. } = grown;
    let by_order = |this: &Loop| this.counts.iter().any(|count| count.by_order && count.times > 1);
    let by_order = source.loops.iter().any(by_order);
    Some((tree.with_nodes(nodes, by_order), places))
}

fn positions(bundle: &Bundle, names: &dyn Names, tree: &Tree, symbols: &[u32]) -> HashMap<u32, Position> {
    let position = |&symbol: &u32| {
        let (mut source, mut lined) = (Vec::new(), false);
        for frame in stack(bundle, symbol) {
            let lines = names.places(frame);
            let lines = lines.iter().map(|place| place.source.as_ref().map_or(0, |source| source.line));
            lined = lines.clone().next_back().is_some_and(|line| line > 0);
            source.extend(lines.map(|line| (line, 0)));
            source.push((0, frame.offset));
        }
        let came = tree.came.get(&symbol).copied().unwrap_or(usize::MAX);
        (symbol, Position { source, came, lined })
    };
    symbols.iter().map(position).collect()
}

/// Of some calls the one that stands first.
fn first_of(positions: &HashMap<u32, Position>, symbols: impl Iterator<Item = u32>) -> Option<u32> {
    let all: Vec<(u32, &Position)> =
        symbols.filter_map(|symbol| Some((symbol, positions.get(&symbol)?))).collect();
    let lined = all.iter().all(|(_, position)| position.lined);
    all.into_iter().min_by(|(_, a), (_, b)| a.order(b, lined)).map(|(symbol, _)| symbol)
}

impl Position {
    /// The compiler has its own order: without lines, the one in which the calls came is the better one.
    fn order(&self, other: &Position, lined: bool) -> Ordering {
        if lined { self.cmp(other) } else { self.came.cmp(&other.came) }
    }
}

/// What folding found of the loops of the source that it found, too.
struct Fold<'t, 'a> {
    tree: &'t Tree<'a>,
    nodes: HashMap<Id, Vec<usize>>,
}

impl<'t, 'a> Fold<'t, 'a> {
    fn new(bundle: &Bundle, tree: &'t Tree<'a>, places: &[Option<Where>]) -> Fold<'t, 'a> {
        let mut nodes: HashMap<Id, Vec<usize>> = HashMap::new();
        for (at, place) in places.iter().enumerate().take(tree.nodes.len()) {
            let code = place.as_ref().and_then(|place| place.code.as_ref());
            if let Some((depth, turn)) = code
                && let Some((_, symbol)) = tree.events(at).next()
            {
                let id = Id::new(&stack(bundle, symbol), *depth, turn);
                nodes.entry(id).or_default().push(at);
            }
        }
        Fold { tree, nodes }
    }

    /// How often it ran, if it found the loop once.
    fn turns(&self, id: &Id, ranks: &RankList) -> Option<&'t Turns> {
        let [only] = self.nodes.get(id)?.as_slice() else { return None };
        self.tree.turns_on(*only, ranks.iter().next()?)
    }
}

/// By loop: its turns, and how often it was entered.
type Turned = Vec<(u64, u64)>;

#[derive(Default)]
struct Source {
    loops: Vec<Loop>,
    known: HashMap<Id, usize>,
    /// By symbol, the loops around it, the outermost first.
    paths: HashMap<u32, Vec<usize>>,
    /// What stands in each loop, and outside.
    bodies: BTreeMap<Option<usize>, Vec<Item>>,
}

impl Source {
    /// Nothing if the code of some frame is not known, or is one that calls itself: then loops do not tell all.
    fn add(&mut self, names: &dyn Names, symbol: u32, stack: &[Frame]) -> Option<()> {
        if stack.is_empty() || stack.iter().any(|frame| names.function(*frame).is_none()) {
            return None;
        }
        let mut path = Vec::new();
        for around in nest(names, &[stack.to_vec()]).into_iter().rev() {
            let Around::Loop { depth, turn } = around else { return None };
            let id = Id::new(stack, depth, &turn);
            let next = self.loops.len();
            let this = *self.known.entry(id.clone()).or_insert(next);
            if this == next {
                let place = Where::of_loop(names, stack, depth, &turn);
                self.loops.push(Loop { id, turn, place, copied: false, counts: Vec::new() });
                self.bodies.entry(path.last().copied()).or_default().push(Item::Loop(this));
            }
            path.push(this);
        }
        self.bodies.entry(path.last().copied()).or_default().push(Item::Call(symbol));
        self.paths.insert(symbol, path);
        Some(())
    }

    /// A call of it stands for a copy.
    fn is_copied(&mut self, symbol: u32) {
        for &this in self.paths.get(&symbol).into_iter().flatten() {
            self.loops[this].copied = true;
        }
    }

    /// By kind of ranks, the turns that the order of the calls tells apart.
    fn turns(
        &mut self,
        names: &dyn Names,
        stacks: &HashMap<u32, Vec<Frame>>,
        tree: &Tree,
    ) -> Vec<Option<Turned>> {
        let stack = |symbol: u32| stacks.get(&symbol).map_or(&[][..], Vec::as_slice);
        let made = |symbol: u32| Made {
            stack: stack(symbol),
            function: tree.function(symbol).map_or(0, |function| function.id),
        };
        let mut ways = Ways::new(names, self.paths.keys().map(|&symbol| stack(symbol)));
        let mut parts: Vec<Option<usize>> = vec![None; self.loops.len()];
        for (&symbol, path) in &self.paths {
            for &this in path {
                let Loop { id, turn, .. } = &self.loops[this];
                let frame = stack(symbol).get(id.outer.len());
                parts[this] = parts[this].or_else(|| ways.of_loop(*frame?, turn));
            }
        }
        for (this, part) in self.loops.iter_mut().zip(&parts) {
            this.copied |= part.is_some_and(|part| ways.is_turned(part));
        }
        let is_new_turn = |this: usize, before: u32, call: u32| {
            let depth = self.loops[this].id.outer.len();
            parts[this].is_some_and(|part| ways.is_new_turn(part, depth, made(before), made(call)))
        };
        // Kinds of ranks have most pairs of calls in common.
        let mut known: HashMap<Pair, Vec<(usize, bool)>> = HashMap::new();
        let mut count = |follows: Follows| {
            let mut turned = vec![(0u64, 0u64); self.loops.len()];
            for (pair, times) in follows {
                let begun =
                    known.entry(pair).or_insert_with(|| begun(&self.paths, pair, &is_new_turn).collect());
                for &(this, entered) in begun.iter() {
                    let (turns, entries) = &mut turned[this];
                    *turns = turns.saturating_add(times);
                    *entries = entries.saturating_add(if entered { times } else { 0 });
                }
            }
            turned
        };
        tree.follows().into_iter().map(|follows| follows.map(&mut count)).collect()
    }

    fn items(&self, body: Option<usize>) -> &[Item] {
        self.bodies.get(&body).map_or(&[], Vec::as_slice)
    }

    /// How often each loop was gone around, the inner ones first. `polls`: how often a call was made and found nothing,
    /// beside those that count as calls.
    fn count(
        &mut self,
        finder: &Finder,
        made: &[HashMap<u32, u64>],
        turns: &[Option<Turned>],
        polls: &HashMap<u32, Vec<u64>>,
    ) {
        for this in (0..self.loops.len()).rev() {
            let Loop { id, turn, copied, .. } = &self.loops[this];
            let counts = made.iter().enumerate().map(|(kind, made)| {
                let items = || self.items(Some(this)).iter();
                let called = items().filter_map(|item| match item {
                    Item::Call(symbol) => made.get(symbol).copied(),
                    Item::Loop(_) => None,
                });
                let called = called.max().unwrap_or(0);
                let entered = items().filter_map(|item| match item {
                    Item::Call(_) => None,
                    Item::Loop(inner) => {
                        let Count { times, entered, .. } = self.loops[*inner].counts[kind];
                        Some(entered.unwrap_or(u64::from(times > 0)))
                    }
                });
                let told = turns[kind].as_ref().map(|turned| turned[this]);
                let turned = told.map_or(0, |told| told.0);
                // No call in it is made twice in one turn, and no loop is come to twice.
                let least = called.max(entered.max().unwrap_or(0)).max(turned);
                let around = finder.around(&id.outer, turn, made).filter(|_| least > 0 && !copied);
                // Calls that each turn makes, the last one too, go before their order: a frame that is gone makes it look
                // like another.
                let least =
                    if around.is_some_and(|around| around.sure && around.whole) { called } else { least };
                let times = around.map_or(least, |around| around.times.max(least));
                // Turns that polled and found nothing are not among the calls.
                let polled = |item: &Item| matches!(item, Item::Call(symbol) if polls[symbol][kind] > 0);
                let polled = items().any(polled);
                let sure = !polled && around.is_some_and(|around| around.sure && around.times == times);
                let by_order = !polled && !sure && times > 0 && turned == times;
                let entered = told.map(|told| told.1);
                Count { times, entered, at_least: times > 0 && !sure && !by_order, by_order }
            });
            let counts = counts.collect();
            self.loops[this].counts = counts;
        }
    }

    /// It was hardly one: nothing is known to have been done in it twice.
    fn is_shell(&self, this: usize) -> bool {
        let once = |count: &Count| count.times <= 1 || count.by_order && count.entered == Some(count.times);
        self.loops[this].counts.iter().all(once)
    }
}

/// The tree as it is made.
struct Grown<'s, 't> {
    source: &'s Source,
    tree: &'s Tree<'t>,
    made: &'s [HashMap<u32, u64>],
    fold: &'s Fold<'s, 't>,
    positions: HashMap<u32, Position>,
    /// By loop, the call that stands first in it.
    firsts: Vec<Option<u32>>,
    nodes: Vec<Branch>,
    places: Vec<Option<Where>>,
}

impl Grown<'_, '_> {
    /// `around`: the nearest loop that is shown, and its node.
    fn body(&mut self, body: Option<usize>, around: Option<(usize, usize)>) -> Option<()> {
        let first = |item: &Item| self.positions.get(&item.first(&self.firsts)?);
        let mut items: Vec<(&Position, &Item)> =
            self.source.items(body).iter().filter_map(|item| Some((first(item)?, item))).collect();
        let lined = items.iter().all(|(position, _)| position.lined);
        items.sort_by(|(a, _), (b, _)| a.order(b, lined));
        let items: Vec<&Item> = items.into_iter().map(|(_, item)| item).collect();
        for item in items {
            match *item {
                Item::Loop(this) if self.source.is_shell(this) => self.body(Some(this), around)?,
                Item::Loop(this) => {
                    let node = self.nodes.len();
                    let turns = self.loop_turns(this, around.map(|(outer, _)| outer));
                    self.push(Node::Loop { inside: 0 }, around, turns);
                    self.places[node] = Some(self.source.loops[this].place.clone());
                    self.body(Some(this), Some((this, node)))?;
                    let end = self.nodes.len();
                    self.nodes[node].end = end;
                    self.nodes[node].node = Node::Loop { inside: (end - node - 1) as u32 };
                }
                Item::Call(symbol) => {
                    let turns = self.call_turns(symbol, around.map(|(outer, _)| outer))?;
                    self.push(Node::Event(symbol), around, turns);
                }
            }
        }
        Some(())
    }

    fn push(&mut self, node: Node, around: Option<(usize, usize)>, turns: Vec<Turns>) {
        let end = self.nodes.len() + 1;
        self.nodes.push(Branch::new(node, around.map(|(_, node)| node), end, turns));
        self.places.push(None);
    }

    fn reached(&self, outer: Option<usize>, kind: usize) -> Count {
        let once = Count { times: 1, ..Count::default() };
        outer.map_or(once, |outer| self.source.loops[outer].counts[kind])
    }

    /// Nothing if it was made more often than the code allows.
    fn call_turns(&self, symbol: u32, outer: Option<usize>) -> Option<Vec<Turns>> {
        let mut turns = Together::new();
        for (kind, ranks) in self.tree.alike.iter().enumerate() {
            let reached = self.reached(outer, kind);
            let runs = self.made[kind].get(&symbol).copied().unwrap_or(0);
            if runs > reached.times {
                return None;
            }
            let known = if reached.at_least { Known::AtLeast } else { Known::All };
            let low = u64::from(runs == reached.times && !reached.at_least);
            let (ranks, reached, vector) = (ranks.clone(), reached.times, String::new());
            Turns { ranks, reached, runs, entered: None, low, high: 1, known, vector }.add_to(&mut turns);
        }
        Some(Turns::of(turns))
    }

    fn loop_turns(&self, this: usize, outer: Option<usize>) -> Vec<Turns> {
        let mut turns = Together::new();
        for (kind, ranks) in self.tree.alike.iter().enumerate() {
            let Count { times: runs, entered, at_least, .. } = self.source.loops[this].counts[kind];
            let reached = self.reached(outer, kind);
            if reached.times == 0 {
                continue;
            }
            // The fold knows more if it has this loop, and no other like it.
            let seen = self.fold.turns(&self.source.loops[this].id, ranks).filter(|seen| seen.runs == runs);
            let entered = seen.and_then(|seen| seen.entered).or(entered.filter(|_| !reached.at_least));
            let seen = seen.filter(|seen| seen.reached == reached.times);
            let mean = (runs / reached.times, runs.div_ceil(reached.times));
            let ((low, high), known, vector) = match seen {
                Some(seen) if at_least => ((seen.low, seen.high), Known::AtLeast, seen.vector.clone()),
                None if at_least => (mean, Known::AtLeast, String::new()),
                _ if reached.times == 1 && !reached.at_least => ((runs, runs), Known::All, runs.to_string()),
                Some(seen) if reached.at_least && seen.low == 0 => {
                    ((seen.low, seen.high), Known::Each, seen.vector.clone())
                }
                Some(seen) => ((seen.low, seen.high), Known::All, seen.vector.clone()),
                None if reached.at_least => ((runs, runs), Known::Total, String::new()),
                None => (mean, Known::Mean, String::new()),
            };
            let (ranks, reached) = (ranks.clone(), reached.times);
            Turns { ranks, reached, runs, entered, low, high, known, vector }.add_to(&mut turns);
        }
        Turns::of(turns)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use refrain_sites::{Location, Order};

    use super::*;

    /// Modules 2 and 3 have a loop at the same addresses.
    struct Twins;

    impl Names for Twins {
        fn places(&self, _: Frame) -> Rc<[Location]> {
            Rc::new([Location::default()])
        }

        fn function(&self, frame: Frame) -> Option<u64> {
            Some(frame.offset / 100)
        }

        fn loops(&self, calls: &[Frame]) -> Vec<Turn> {
            let module = calls[0].module;
            let turn = Turn { module, code: vec![210..250, 260..270], ..Turn::default() };
            if module > 1 { vec![turn] } else { Vec::new() }
        }

        fn order(&self, _: &[Frame], _: Option<&Turn>) -> Option<Order> {
            None
        }
    }

    #[test]
    fn loops_at_the_same_place_of_two_libraries_are_two() {
        let mut source = Source::default();
        let calls = [(2, 212), (3, 212), (2, 265), (3, 213)];
        for (symbol, (module, offset)) in (0..).zip(calls) {
            let stack = [Frame { module: 1, offset: 105 }, Frame { module, offset }];
            source.add(&Twins, symbol, &stack).unwrap();
        }
        let body = |this| {
            let symbol = |item: &Item| if let Item::Call(symbol) = item { Some(*symbol) } else { None };
            source.items(this).iter().filter_map(symbol).collect::<Vec<u32>>()
        };
        assert_eq!((source.loops.len(), source.items(None).len()), (2, 2));
        assert_eq!((body(Some(0)), body(Some(1))), (vec![0, 2], vec![1, 3]));
    }
}
