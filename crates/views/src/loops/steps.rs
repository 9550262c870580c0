//! The loop over time steps: the outermost loop with repeated calls that holds most of them (001, section 5.3).

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use refrain_fold::bundle::Bundle;
use refrain_fold::bundle::sites::Frame;
use refrain_fold::ranks::RankList;
use refrain_sites::{Goes, Names, Order, Turn};

use super::place::{How, Where, stack};
use super::together::Together;
use super::tree::{Known, Tree};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// By ranks, of those that have such a loop: which node it is, and how many steps there are.
    pub loops: Vec<(usize, Count, RankList)>,
    /// Calls in these loops, and in all.
    pub calls: u64,
    pub all_calls: u64,
}

impl Steps {
    /// Most calls are in them: else they are only what is repeated most.
    pub fn hold_most(&self) -> bool {
        self.calls > self.all_calls / 2
    }
}

/// So many steps: those in the loop, each turn of which may be a round of several, and some before or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Count {
    pub steps: u64,
    pub turns: u64,
    pub outside: u64,
    /// Perhaps it was more.
    pub at_least: bool,
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Count { steps, turns, outside, at_least } = *self;
        write!(f, "{}{}", crate::human::plural(steps, "iteration"), if at_least { " or more" } else { "" })?;
        let inside = steps - outside;
        let inside = match inside.checked_div(turns) {
            Some(1) | None => inside.to_string(),
            Some(in_turn) if inside == turns * in_turn => format!("{turns} x {in_turn}"),
            Some(_) => format!("{inside} in {turns} rounds"),
        };
        match outside {
            0 if steps == turns => Ok(()),
            0 => write!(f, " ({inside})"),
            _ => write!(f, " ({inside} + {outside})"),
        }
    }
}

/// A loop that one turn in so many of the one around it comes to is none of its steps.
const FEW: u64 = 8;

/// `places`: where the loops are, by node.
pub fn steps(bundle: &Bundle, names: &dyn Names, tree: &Tree, places: &[Option<Where>]) -> Option<Steps> {
    let finder = Finder::new(bundle, names, tree, places);
    let polled = polled(bundle, tree);
    let mut loops: Together<(usize, Count)> = Together::new();
    let (mut calls, mut all_calls) = (0u64, 0u64);
    for ((kind, ranks), each) in tree.alike.iter().enumerate().zip(tree.calls()) {
        let Some(rank) = ranks.iter().next() else { continue };
        // Calls of all nodes before each.
        let mut before = vec![0u128];
        for (at, branch) in tree.nodes.iter().enumerate() {
            let own = if branch.is_loop() { 0 } else { tree.runs_on(at, rank) };
            before.push(before[at] + u128::from(own));
        }
        let made =
            |node: usize| u64::try_from(before[tree.nodes[node].end] - before[node]).unwrap_or(u64::MAX);
        let of_all = |calls: u64| calls.saturating_mul(ranks.len());
        all_calls = all_calls.saturating_add(of_all(tree.body(None).map(made).fold(0, u64::saturating_add)));
        let repeats = |node: &usize| tree.turns_on(*node, rank).is_some_and(|turns| turns.high > 1);
        // A loop that asks whether something has happened takes no steps. Of those with as many calls the last one seen
        // is the outermost.
        let is_step = |node: &usize| repeats(node) && !polled[kind].contains(node);
        let outermost = (0..tree.nodes.len()).rev().filter(is_step).max_by_key(|&node| made(node));
        let Some(mut node) = outermost else { continue };
        // A loop over the commands of an input is not it, if one of them is where all is done.
        let within = |node: usize| {
            let most = |inner: &usize| is_step(inner) && made(*inner) >= made(node) / 2;
            let mut inner = (node + 1..tree.nodes[node].end).filter(most);
            inner.find(|&inner| finder.is_rare(node, inner, rank, &each))
        };
        while let Some(inner) = within(node) {
            node = inner;
        }
        calls = calls.saturating_add(of_all(made(node)));
        loops.add((node, finder.count(node, rank, &each)), ranks);
    }
    let mut loops: Vec<(usize, Count, RankList)> =
        loops.finish().into_iter().map(|((node, count), ranks)| (node, count, ranks)).collect();
    loops.sort_by_key(|(_, _, ranks)| ranks.iter().next());
    (!loops.is_empty()).then_some(Steps { loops, calls, all_calls })
}

/// By kind of ranks, the loops (and calls in a row) that polled and found nothing.
fn polled(bundle: &Bundle, tree: &Tree) -> Vec<HashSet<usize>> {
    let mut found: Vec<HashSet<usize>> = vec![HashSet::new(); tree.alike.len()];
    for (node, branch) in tree.nodes.iter().enumerate() {
        let Some(symbol) = branch.symbol().filter(|_| branch.runs() > 0) else { continue };
        for (found, polls) in found.iter_mut().zip(tree.polls(bundle, symbol)) {
            if polls > 0 {
                found.extend([Some(node), branch.parent].into_iter().flatten());
            }
        }
    }
    found
}

/// Which calls are the same call of the source: the same function from the same place, however deep a recursion is.
type Key = (u16, Vec<Frame>);

/// By symbol; none where nothing is known of the place.
fn keys(bundle: &Bundle, names: &dyn Names, tree: &Tree) -> HashMap<u32, Key> {
    // A place without all that led there is too little to go by.
    if bundle.sites.stacks.values().all(|stack| stack.outer == 0) {
        return HashMap::new();
    }
    let key = |symbol: u32| {
        let frames = stack(bundle, symbol);
        let function = tree.function(symbol).filter(|_| !frames.is_empty())?;
        Some((symbol, (function.id, without_recursion(names, frames))))
    };
    tree.functions.keys().filter_map(|&symbol| key(symbol)).collect()
}

/// A function that calls itself is in one frame, the innermost.
fn without_recursion(names: &dyn Names, frames: Vec<Frame>) -> Vec<Frame> {
    let functions: Vec<Option<(u64, u64)>> =
        frames.iter().map(|frame| Some((frame.module, names.function(*frame)?))).collect();
    let inner_too = |at: usize| functions[at].is_some() && functions[at + 1..].contains(&functions[at]);
    frames.iter().enumerate().filter(|(at, _)| !inner_too(*at)).map(|(_, frame)| *frame).collect()
}

/// A call is made in a loop of the function that was called from `outer`.
fn is_inside(stack: &[Frame], outer: &[Frame], turn: &Turn) -> bool {
    let in_code = stack.get(outer.len()).is_some_and(|frame| {
        let address = frame.offset.saturating_sub(1);
        frame.module == turn.module && turn.code.iter().any(|range| range.contains(&address))
    });
    in_code && stack.starts_with(outer)
}

/// Counts steps.
pub struct Finder<'t> {
    tree: &'t Tree<'t>,
    names: &'t dyn Names,
    places: &'t [Option<Where>],
    /// By symbol, and symbols in the order of these.
    stacks: HashMap<u32, Vec<Frame>>,
    by_stack: Vec<u32>,
    keys: HashMap<u32, Key>,
    /// Most kinds of ranks make the same calls.
    orders: RefCell<HashMap<Asked, Option<Rc<Order>>>>,
}

/// Calls from one function, and the code of a loop of it.
type Asked = (Vec<Frame>, Option<Vec<Range<u64>>>);

/// How often a piece of code was gone through, or how often at least where that is not `sure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passes {
    pub times: u64,
    pub sure: bool,
    /// The last turn of a loop is among them, too, wherever it was left.
    pub whole: bool,
}

/// Calls with their stacks, and how often a rank made them.
type Made<'s> = Vec<(&'s [Frame], u64)>;

impl<'t> Finder<'t> {
    pub fn new(
        bundle: &Bundle,
        names: &'t dyn Names,
        tree: &'t Tree<'t>,
        places: &'t [Option<Where>],
    ) -> Finder<'t> {
        let stacks: HashMap<u32, Vec<Frame>> =
            tree.functions.keys().map(|&symbol| (symbol, stack(bundle, symbol))).collect();
        let mut by_stack: Vec<u32> = stacks.keys().copied().collect();
        by_stack.sort_unstable_by_key(|symbol| &stacks[symbol]);
        let (keys, orders) = (keys(bundle, names, tree), RefCell::default());
        Finder { tree, names, places, stacks, by_stack, keys, orders }
    }

    fn key(&self, node: usize) -> Option<&Key> {
        self.keys.get(&self.tree.nodes[node].symbol()?)
    }

    /// `made`: how often the rank made each call.
    fn count(&self, node: usize, rank: u32, made: &HashMap<u32, u64>) -> Count {
        let turns = self.tree.runs_on(node, rank);
        let inside = self.inside(node, rank).max(turns);
        let outside = self.outside(node, rank, turns);
        let at_least = self.tree.turns_on(node, rank).is_some_and(|turns| turns.known == Known::AtLeast);
        let count = Count { steps: inside.saturating_add(outside), turns, outside, at_least };
        // What the code says goes before what the calls look like.
        match self.by_code(node, made) {
            Some(steps) if steps != count.steps && steps >= turns => {
                Count { steps, turns: steps, outside: 0, at_least: false }
            }
            _ => count,
        }
    }

    /// Whether only a few turns of a loop come to another one inside it, which then has most of the turns.
    fn is_rare(&self, node: usize, inner: usize, rank: u32, made: &HashMap<u32, u64>) -> bool {
        let turns = self.tree.runs_on(node, rank);
        let folded = self.tree.turns_on(inner, rank).and_then(|turns| turns.entered);
        let entered = folded.or_else(|| self.on_the_way(node, inner, made));
        let few = entered.is_some_and(|entered| entered == 1 || entered <= turns / FEW);
        few && self.tree.runs_on(inner, rank) > turns
    }

    /// How often a loop was come to from one around it, by what is called on the way; `None` where that does not tell.
    fn on_the_way(&self, node: usize, inner: usize, made: &HashMap<u32, u64>) -> Option<u64> {
        let code = |node: usize| self.places[node].as_ref()?.code.as_ref();
        let ((from, _), (depth, turn)) = (code(node)?, code(inner)?);
        let way = self.stacks.get(&self.tree.events(inner).next()?.1)?.get(..*depth)?;
        let each = (from + 1..=*depth).filter_map(|at| {
            let beside = self.from(&way[..at], made).filter(|(stack, _)| !is_inside(stack, way, turn));
            let beside: Made = beside.collect();
            self.passes(&beside, at, None).filter(|passes| passes.sure).map(|passes| passes.times)
        });
        each.max()
    }

    /// The calls that were made from there.
    fn from<'s>(
        &'s self,
        outer: &'s [Frame],
        made: &'s HashMap<u32, u64>,
    ) -> impl Iterator<Item = (&'s [Frame], u64)> {
        let stack = |symbol: &u32| self.stacks[symbol].as_slice();
        let first = self.by_stack.partition_point(|symbol| stack(symbol) < outer);
        let from = self.by_stack[first..].iter().map(move |symbol| (symbol, stack(symbol)));
        let from = from.take_while(move |(_, stack)| stack.starts_with(outer));
        from.filter_map(|(symbol, stack)| Some((stack, *made.get(symbol).filter(|runs| **runs > 0)?)))
    }

    fn by_code(&self, node: usize, made: &HashMap<u32, u64>) -> Option<u64> {
        let (depth, turn) = self.places[node].as_ref()?.code.as_ref()?;
        let outer = self.stacks.get(&self.tree.events(node).next()?.1)?.get(..*depth)?;
        self.around(outer, turn, made).filter(|passes| passes.sure).map(|passes| passes.times)
    }

    /// How often the code must have gone around a loop in a function that was called from `outer`, from how often each call
    /// was made: for sure where one of some calls is made each time. `None` where the code is not known.
    pub fn around(&self, outer: &[Frame], turn: &Turn, made: &HashMap<u32, u64>) -> Option<Passes> {
        let inside = self.from(outer, made).filter(|(stack, _)| is_inside(stack, outer, turn));
        let inside: Made = inside.collect();
        self.passes(&inside, outer.len(), Some(turn))
    }

    /// How often a piece of code was gone through, from its beginning to its end.
    fn passes(&self, made: &Made, depth: usize, within: Option<&Turn>) -> Option<Passes> {
        let mut by_call: BTreeMap<Frame, Made> = BTreeMap::new();
        for &(stack, runs) in made {
            by_call.entry(*stack.get(depth)?).or_default().push((stack, runs));
        }
        let calls: Vec<Frame> = by_call.keys().copied().collect();
        let order = self.order(calls, within)?;
        let mut known: Vec<(usize, Passes)> = Vec::new();
        for (at, (call, made)) in by_call.iter().enumerate().filter(|(at, _)| !order.in_loop[*at]) {
            known.extend(self.called(*call, made, depth + 1).map(|passes| (at, passes)));
        }
        known.sort_by_key(|&(at, passes)| (std::cmp::Reverse(passes.times), at));
        // Calls that exclude each other: no pass makes two of them.
        let exclusive = |first: (usize, Passes), among: &[(usize, Passes)]| {
            let (mut some, mut all) = (vec![first.0], first.1.times);
            for &(other, passes) in among {
                if some.iter().all(|&at| !order.leads[at][other] && !order.leads[other][at]) {
                    some.push(other);
                    all = all.saturating_add(passes.times);
                }
            }
            (some, all)
        };
        let counted: Vec<(usize, Passes)> = known.iter().filter(|(_, passes)| passes.sure).copied().collect();
        // As many as are needed to be sure that one is made.
        let all = counted.iter().find_map(|&first| {
            let (some, all) = exclusive(first, &counted);
            order.must_pass(&some).then(|| (all, order.must_pass_to_leave(&some)))
        });
        if let Some((times, whole)) = all {
            return Some(Passes { times, sure: true, whole });
        }
        let times = known.iter().map(|&first| exclusive(first, &known).1).max()?;
        Some(Passes { times, sure: false, whole: false })
    }

    /// How often one place called: MPI, or a function, or several by turns.
    fn called(&self, call: Frame, made: &Made, depth: usize) -> Option<Passes> {
        let (here, inside): (Made, Made) = made.iter().partition(|(stack, _)| stack.len() == depth);
        let here = here.iter().fold(0, |all: u64, (_, runs)| all.saturating_add(*runs));
        let goes = self.names.goes_to(call);
        if inside.is_empty() {
            // A function that ends with a jump to MPI leaves no frame, and may do without.
            return Some(Passes { times: here, sure: goes == Goes::Away, whole: false });
        }
        let mut by_function: BTreeMap<(u64, u64), Made> = BTreeMap::new();
        for (stack, runs) in inside {
            let frame = *stack.get(depth)?;
            by_function.entry((frame.module, self.names.function(frame)?)).or_default().push((stack, runs));
        }
        let mut each: Vec<((u64, u64), Frame, Passes)> = Vec::new();
        for (function, made) in &by_function {
            each.push((*function, made[0].0[depth], self.passes(made, depth, None)?));
        }
        let only = each.len() == 1 && here == 0;
        let most = each.iter().map(|(.., passes)| passes.times).max().unwrap_or(0).max(here);
        if let Goes::Own(function) = goes {
            // What else was called from here is what that function, or one in its place, ends with a jump to.
            let own = each.iter().find(|(known, ..)| *known == (call.module, function));
            let sure = own.is_some_and(|(.., own)| own.sure && own.times == most);
            return Some(Passes { times: most, sure, whole: false });
        }
        // Several by turns, unless one is what another ends with.
        let jump = |a: Frame| each.iter().any(|(_, b, _)| *b != a && self.names.jumps_to(a, *b));
        if here > 0 || each.iter().any(|(_, frame, _)| jump(*frame)) {
            return Some(Passes { times: most, sure: false, whole: false });
        }
        let times = each.iter().map(|(.., passes)| passes.times).fold(0, u64::saturating_add);
        Some(Passes { times, sure: only && goes == Goes::Away && each[0].2.sure, whole: false })
    }

    fn order(&self, calls: Vec<Frame>, within: Option<&Turn>) -> Option<Rc<Order>> {
        let asked = (calls, within.map(|turn| turn.code.clone()));
        if let Some(known) = self.orders.borrow().get(&asked) {
            return known.clone();
        }
        let order = self.names.order(&asked.0, within).map(Rc::new);
        self.orders.borrow_mut().insert(asked, order.clone());
        order
    }

    /// Steps in a loop: its turns, or more where a loop inside is the same loop of the source, because every so many steps
    /// something else is done too.
    fn inside(&self, node: usize, rank: u32) -> u64 {
        let mut steps = 0u64;
        for inner in self.tree.body(Some(node)).filter(|&inner| self.tree.nodes[inner].is_loop()) {
            if !self.tree.nodes[node].is_loop() || self.tree.runs_on(inner, rank) == 0 {
                continue;
            }
            // Its calls are made beside it too.
            let always = self.always_made(inner, rank);
            let beside: Vec<usize> = self.tree.body(Some(node)).collect();
            let twins = |&at: &usize| self.twins(at, &beside, rank);
            let beside = always.iter().map(twins).min().unwrap_or(0);
            let same_place = self.tree.nodes[inner].repeats()
                && self.places[inner].as_ref().is_some_and(|place| place.how == How::Loop)
                && self.places[inner] == self.places[node];
            if same_place || beside > 0 {
                let own = self.inside(inner, rank).max(self.tree.runs_on(inner, rank));
                steps = own.saturating_add(beside).saturating_add(steps);
            }
        }
        steps
    }

    /// Steps like those of the loop that are not in it: all that each of them does is done elsewhere too.
    fn outside(&self, node: usize, rank: u32, turns: u64) -> u64 {
        let tree = self.tree;
        let rest: Vec<usize> =
            (0..tree.nodes.len()).filter(|&at| at < node || at >= tree.nodes[node].end).collect();
        let each = self.always_made(node, rank).into_iter().map(|at| {
            // As often as that many turns of the loop would do it.
            let (within, out) = (tree.runs_on(at, rank), self.twins(at, &rest, rank));
            out.saturating_mul(turns).checked_div(within).unwrap_or(0)
        });
        each.min().unwrap_or(0)
    }

    /// The events of a body that a rank makes in every iteration.
    fn always_made(&self, node: usize, rank: u32) -> Vec<usize> {
        let tree = self.tree;
        if !tree.nodes[node].is_loop() {
            return vec![node];
        }
        let always = |at: &usize| {
            let turns = tree.turns_on(*at, rank);
            !tree.nodes[*at].is_loop() && turns.is_some_and(|turns| turns.low == turns.high && turns.low > 0)
        };
        tree.body(Some(node)).filter(always).collect()
    }

    /// How often a rank makes the same call at other nodes.
    fn twins(&self, at: usize, among: &[usize], rank: u32) -> u64 {
        let Some(key) = self.key(at) else { return 0 };
        let same = |other: &&usize| **other != at && self.key(**other) == Some(key);
        among.iter().filter(same).map(|&other| self.tree.runs_on(other, rank)).fold(0, u64::saturating_add)
    }
}
