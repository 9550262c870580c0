//! From what ranks did in several worlds to what they do in another.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use refrain_encode::Layout;
use refrain_fold::loops::{Loops, Node};

use crate::cut::Cut;
use crate::law::{Law, Probe, Rules, Sample};
use crate::place::{Frame, Key, Place, Quantity, Turn};
use crate::problem::{Problem, What, Why, told};
use crate::read::{Member, Seen, Symbols};
use crate::search::{Fit, PHASES, Phase, Search, Shared, Wanted, law_of, line_of, mixed, wanted};
use crate::tree::around;

/// One thread of every rank of a trace.
pub struct World {
    pub ranks: u32,
    /// By rank; nothing of ranks without this thread.
    pub members: Vec<Option<Rc<Member>>>,
    pub places: Vec<Place>,
}

/// What is known of one thread of all ranks.
pub struct Model {
    key: Key,
    /// By class of the key; nothing where ranks of that class have no such thread.
    kinds: HashMap<u64, Option<Kind>>,
}

/// Ranks that make the same calls in the same order, some of them more often.
pub struct Kind {
    pub loops: Rc<Loops>,
    pub around: Vec<Vec<usize>>,
    counts: Vec<Law>,
    /// By node, then by lane.
    pub lanes: Vec<Vec<Lane>>,
}

/// The numbers of a lane at one place in the program.
pub struct Lane {
    /// What they depend on, as in [`Seen`], and after how many turns they come again.
    pub kept: Vec<(usize, Size)>,
    numbers: Numbers,
}

pub enum Size {
    /// As many as there are turns.
    Turns,
    Known(Rules),
}

enum Numbers {
    /// By turn.
    Fixed(Vec<i64>),
    /// Rules by the turns of some loops; of these each turn has rules of its own.
    Each { apart: Vec<usize>, rules: Vec<Rules> },
}

/// What was found out, in numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Found {
    /// Kinds of ranks.
    pub kinds: u64,
    /// Numbers that are the same everywhere, and those that follow a law.
    pub same: u64,
    pub laws: u64,
    /// Laws that no trace was left to confirm.
    pub unconfirmed: u64,
}

impl Found {
    fn join(&mut self, other: Found) {
        self.kinds += other.kinds;
        self.same += other.same;
        self.laws += other.laws;
        self.unconfirmed += other.unconfirmed;
    }

    fn add(&mut self, rules: &Rules) {
        let constant = rules.laws.len() == 1 && rules.laws.values().all(|law| law.as_constant().is_some());
        if constant {
            self.same += 1;
        } else {
            self.laws += 1;
            self.unconfirmed += u64::from(!rules.confirmed);
        }
    }
}

/// Laws that fit are held against each other on so many ranks, and in so many turns of each.
const MOST_PROBES: usize = 512;
const MOST_TURNS: usize = 64;

const NOT_CONFIRMED: &str = "two traces cannot confirm a law";

/// So many numbers of one place are looked at one by one.
const MOST_PLACES: usize = 4096;

pub struct Learner<'a> {
    pub frame: &'a Frame,
    pub symbols: &'a Symbols,
    pub worlds: &'a [World],
    /// The ranks that are asked for.
    pub target: &'a [Place],
    pub found: Found,
    pub problems: Vec<Problem>,
    /// Laws that no trace was left to confirm.
    pub unconfirmed: Vec<Problem>,
}

/// What was found out of a kind of ranks.
struct Learnt {
    kind: Kind,
    found: Found,
    problems: Vec<Problem>,
    unconfirmed: Vec<Problem>,
}

impl Learner<'_> {
    pub fn learn(&mut self) -> Option<Model> {
        let keys = Key::all(self.frame);
        let mut ways = PHASES.into_iter().flat_map(|phase| keys.iter().map(move |key| (key, phase)));
        let found = ways.find_map(|(key, phase)| Some((key, phase, self.kinds(key, phase)?)));
        let Some((key, phase, classes)) = found else {
            self.problems.push(self.no_kinds(&keys));
            return None;
        };
        self.problems.extend(self.other_order(&keys, (key, phase), &classes));
        let targets = wanted(key, self.target);
        let mut kinds = HashMap::new();
        // What many ranks tell of a law helps with those of which there are few.
        let mut classes: Vec<(u64, Option<Classed>)> = classes.into_iter().collect();
        classes.sort_by_key(|(class, found)| {
            (std::cmp::Reverse(found.as_ref().map_or(0, |(_, _, members)| members.len())), *class)
        });
        let pool = RefCell::default();
        let shared = self.shared(&classes, &targets, key.grid(), &pool);
        let mut failed = HashSet::new();
        let mut grids: Option<(Option<usize>, Vec<usize>)> = None;
        for (class, found) in classes {
            let kind = found.map(|(loops, fits, members)| {
                let counts: Vec<Law> = fits.iter().map(|fit| fit.law.clone()).collect();
                self.say_counts(&loops, &fits, &members);
                let places = &targets[&class];
                let wanted: Vec<Wanted<'_>> =
                    keys.iter().map(|key| wanted(key, places.iter().copied())).collect();
                let search = |grid: Option<usize>, open: Option<Vec<usize>>| Search {
                    frame: self.frame,
                    keys: &keys,
                    wanted: &wanted,
                    grid,
                    strict: open.is_none(),
                    open: open.unwrap_or_default(),
                    pool: &pool,
                    shared: &shared,
                    known: RefCell::default(),
                };
                // Of the grids the one that explains most of what the most ranks do, in the simplest way.
                let (grid, open) = grids.get_or_insert_with(|| {
                    let weight = |grid: usize, last: Phase| {
                        let search = search(Some(grid), None);
                        let learnt = self.kind(&search, last, &mut HashSet::new(), &loops, &counts, &members);
                        (learnt.problems.len(), learnt.kind.weight())
                    };
                    let all = (0..self.frame.rules.len()).filter(|grid| self.frame.dimensions(*grid) > 1);
                    let all: Vec<_> = all.map(|grid| (weight(grid, Phase::Unit), grid)).collect();
                    let grid = key.grid().or_else(|| Some(all.iter().min()?.1));
                    let most = all.iter().find(|(_, of)| Some(*of) == grid).map(|(weight, _)| *weight);
                    let explains = |grid: usize| weight(grid, Phase::General).0 == 0;
                    let most = most.filter(|(problems, _)| *problems == 0 || grid.is_some_and(explains));
                    let open = all.iter().filter(|(weight, grid)| {
                        most.is_none_or(|most| *weight <= most) && self.frame.may_be(*grid)
                    });
                    let line = (0..self.frame.rules.len()).filter(|grid| self.frame.dimensions(*grid) < 2);
                    (grid, open.map(|(_, grid)| *grid).chain(line).collect::<Vec<usize>>())
                });
                let mut learnt = self.kind(
                    &search(*grid, Some(open.clone())),
                    Phase::General,
                    &mut failed,
                    &loops,
                    &counts,
                    &members,
                );
                self.found.join(learnt.found);
                self.problems.append(&mut learnt.problems);
                self.unconfirmed.append(&mut learnt.unconfirmed);
                learnt.kind
            });
            kinds.insert(class, kind);
        }
        self.found.kinds += kinds.len() as u64;
        let model = Model { key: key.clone(), kinds };
        for grid in model.grids() {
            if let Some(why) = self.frame.unclear(grid) {
                let seen = self.frame.shown(grid);
                self.problems.push(Problem { seen, ..Problem::of_all("the grid of the ranks", why) });
            }
        }
        Some(model)
    }

    /// Numbers that one way to cut a line gives on all kinds of ranks together. One kind alone may lie where the line has no
    /// longer pieces, and then cannot say what a point counts for.
    fn shared(
        &self,
        classes: &[(u64, Option<Classed>)],
        targets: &Wanted<'_>,
        grid: Option<usize>,
        pool: &RefCell<Vec<Cut>>,
    ) -> Shared {
        /// Those of one call and lane, and on which kinds of ranks it is made; nothing where a call has several.
        type Group<'s> = Option<(Vec<Sample<'s>>, Vec<u64>)>;
        let mut groups: BTreeMap<(u32, u16), Group<'_>> = BTreeMap::new();
        for (class, found) in classes {
            let Some((loops, _, members)) = found else { continue };
            for (at, (node, what)) in
                members.iter().flat_map(|at| loops.nodes.iter().enumerate().map(move |n| (at, n)))
            {
                let (Node::Event(symbol), Some(member)) = (*what, self.member(*at)) else { continue };
                for (lane, seen) in (0..).zip(&member.lanes[node]) {
                    let group = groups.entry((symbol, lane)).or_insert_with(|| Some(Default::default()));
                    match (group.as_mut(), seen.only()) {
                        (Some((samples, kinds)), Some(value)) => {
                            samples.push(self.sample(*at, value));
                            kinds.extend((kinds.last() != Some(class)).then_some(*class));
                        }
                        _ => *group = None,
                    }
                }
            }
        }
        groups.retain(|_, group| {
            group.as_ref().is_some_and(|(all, _)| all.iter().any(|sample| sample.value != all[0].value))
        });
        let mut shared = Shared::new();
        // A line that one call tells of helps with others.
        for _ in 0..2 {
            for (call, group) in &groups {
                let Some((samples, kinds)) = group.as_ref().filter(|_| !shared.contains_key(call)) else {
                    continue;
                };
                let places: Vec<&Place> = kinds.iter().flat_map(|class| &targets[class]).copied().collect();
                let probes: Vec<Probe<'_>> = mixed(&places)
                    .into_iter()
                    .take(MOST_PROBES)
                    .map(|place| (place, Turn::default()))
                    .collect();
                let line = line_of(self.frame, samples, &probes, grid, pool);
                shared.extend(line.map(|law| (*call, law)));
            }
        }
        shared
    }

    /// Whether ranks may be told apart in another way, no less simple, in which one that is asked for makes other calls.
    fn other_order(&self, keys: &[Key], (key, phase): (&Key, Phase), kinds: &Kinds) -> Option<Problem> {
        let order = |key: &Key, kinds: &Kinds, place: &Place| -> Option<(Rc<Loops>, Vec<Option<i64>>)> {
            let (loops, counts, _) = kinds.get(&key.class(place))?.as_ref()?;
            let counts = counts.iter().map(|fit| fit.law.of(place, &Turn::default())).collect();
            Some((Rc::clone(loops), counts))
        };
        let as_simple = |other: &&Key| {
            *other != key
                && other.parts.len() <= key.parts.len()
                && other.grid().is_none_or(|grid| self.frame.may_be(grid))
        };
        keys.iter().filter(as_simple).find_map(|other| {
            let others = self.kinds(other, phase)?;
            let differs = |place: &&Place| order(key, kinds, place) != order(other, &others, place);
            let place = self.target.iter().find(differs)?;
            let why = format!("two ways to tell ranks apart fit: they differ on rank {}", place.rank);
            Some(Problem::of_all("the order of calls", why))
        })
    }

    /// Loops whose number of turns follows no law for sure.
    fn say_counts(&mut self, loops: &Loops, fits: &[Fit], members: &[(usize, u32)]) {
        for (node, fit) in fits.iter().enumerate().filter(|(_, fit)| fit.law.as_constant().is_none()) {
            self.found.laws += 1;
            let event = loops.nodes[node..].iter().find_map(|node| match node {
                Node::Event(symbol) => Some(*symbol),
                Node::Loop { .. } => None,
            });
            let function = event.map_or("", |symbol| self.symbols.all[symbol as usize].layout.function.name);
            let mut seen: Vec<(u32, String)> = Vec::new();
            for at in members {
                let ranks = self.worlds[at.0].ranks;
                if seen.last().is_none_or(|(last, _)| *last != ranks) {
                    let count = self.member(*at).map_or(0, |member| member.counts[node]);
                    seen.push((ranks, count.to_string()));
                }
            }
            let site = event.map_or(0, |symbol| self.symbols.all[symbol as usize].site);
            let problem = |Why { why, settled_by }| Problem {
                function: function.to_owned(),
                parameter: "(how often the loop that begins there runs)".into(),
                site,
                seen,
                why,
                settled_by,
                places: 1,
            };
            if let Some(rival) = fit.rival {
                self.problems.push(problem(rival.into()));
            } else if !fit.confirmed {
                self.found.unconfirmed += 1;
                self.unconfirmed.push(problem(NOT_CONFIRMED.into()));
            }
        }
    }

    /// The kinds that a key tells apart, if each has one tree, and counts that follow a law.
    fn kinds(&self, key: &Key, phase: Phase) -> Option<Kinds> {
        if (phase == Phase::Modulo) == key.allows_laws() {
            return None;
        }
        let wanted = wanted(key, self.target);
        let mut classes: HashMap<u64, Vec<(usize, u32)>> = HashMap::new();
        for (input, world) in self.worlds.iter().enumerate() {
            for (rank, place) in (0u32..).zip(&world.places) {
                let class = key.class(place);
                if wanted.contains_key(&class) {
                    classes.entry(class).or_default().push((input, rank));
                }
            }
        }
        if classes.len() < wanted.len() {
            return None;
        }
        let trees = classes.iter().all(|(_, members)| {
            let loops = |at: &(usize, u32)| self.member(*at).map(|member| &member.loops);
            let first = loops(&members[0]);
            let several = members.iter().any(|(input, _)| *input != members[0].0);
            several && members.iter().all(|at| loops(at) == first)
        });
        if !trees {
            return None;
        }
        let classed = |(class, members): (u64, Vec<(usize, u32)>)| {
            Some((class, self.classed(members, &wanted[&class], key.grid(), phase)?))
        };
        classes.into_iter().map(classed).collect()
    }

    fn classed(
        &self,
        members: Vec<(usize, u32)>,
        places: &[&Place],
        grid: Option<usize>,
        phase: Phase,
    ) -> Option<Option<Classed>> {
        let Some(first) = self.member(members[0]) else { return Some(None) };
        let mut counts = Vec::with_capacity(first.counts.len());
        for (node, count) in first.counts.iter().enumerate() {
            let of = |at: &(usize, u32)| self.member(*at).map_or(0, |member| member.counts[node]);
            if members.iter().all(|at| of(at) == *count) {
                counts.push(Fit { law: Law::constant(*count as i64), confirmed: true, rival: None });
                continue;
            }
            let samples: Vec<Sample<'_>> = members.iter().map(|at| self.sample(*at, of(at) as i64)).collect();
            counts.push(law_of(&samples, self.frame, places, grid, phase)?);
        }
        Some(Some((Rc::clone(&first.loops), counts, members)))
    }

    fn sample(&self, (input, rank): (usize, u32), value: i64) -> Sample<'_> {
        let place = &self.worlds[input].places[rank as usize];
        Sample { input, place, turn: Turn::default(), value }
    }

    fn member(&self, (input, rank): (usize, u32)) -> Option<&Rc<Member>> {
        self.worlds[input].members[rank as usize].as_ref()
    }

    fn kind(
        &self,
        search: &Search<'_>,
        most: Phase,
        failed: &mut HashSet<(u32, u16)>,
        loops: &Rc<Loops>,
        counts: &[Law],
        members: &[(usize, u32)],
    ) -> Learnt {
        let (mut found, mut problems, mut unconfirmed) = (Found::default(), Vec::new(), Vec::new());
        let around = around(loops);
        let mut lanes = Vec::with_capacity(loops.nodes.len());
        for (node, what) in loops.nodes.iter().enumerate() {
            let Node::Event(symbol) = *what else {
                lanes.push(Vec::new());
                continue;
            };
            let of_symbol = self.symbols.all[symbol as usize].layout.lanes;
            let mut of_node = Vec::with_capacity(of_symbol.into());
            for lane in 0..of_symbol {
                let all: Vec<((usize, u32), &Seen)> = members
                    .iter()
                    .filter_map(|at| Some((*at, &self.member(*at)?.lanes[node][usize::from(lane)])))
                    .collect();
                let layout = &self.symbols.all[symbol as usize].layout;
                let sides = is_dims(layout, lane).then(|| self.sides(around[node].len(), &all)).flatten();
                // What was not found in one place is not looked for at length in others.
                let last = if failed.contains(&(symbol, lane)) { Phase::Unit } else { most };
                let shared = || one_law(search.shared.get(&(symbol, lane))?, &all, self.worlds.len() > 2);
                let learnt = sides
                    .or_else(shared)
                    .map_or_else(|| self.lane(search, (&around[node], counts), &all, last), Ok);
                let tell = |why: Why| {
                    let seen = all.iter().map(|((input, _), seen)| (self.worlds[*input].ranks, *seen));
                    told(What { layout, lane, site: self.symbols.all[symbol as usize].site }, seen, why)
                };
                of_node.push(match learnt {
                    Ok((lane, of_lane)) => {
                        found.join(of_lane);
                        if lane.rules().any(|rules| !rules.confirmed) {
                            unconfirmed.push(tell(NOT_CONFIRMED.into()));
                        }
                        lane
                    }
                    Err(why) => {
                        problems.push(tell(why));
                        failed.insert((symbol, lane));
                        self.nearest(&all)
                    }
                });
            }
            lanes.push(of_node);
        }
        let kind = Kind { loops: Rc::clone(loops), around, counts: counts.to_vec(), lanes };
        Learnt { kind, found, problems, unconfirmed }
    }

    /// What a rank of the largest trace has.
    fn nearest(&self, all: &[((usize, u32), &Seen)]) -> Lane {
        let seen = all.iter().max_by_key(|((input, _), _)| self.worlds[*input].ranks).map(|(_, seen)| *seen);
        let seen = seen.cloned().unwrap_or_default();
        let size = |size: &usize| Size::Known(Rules::always(Law::constant(*size as i64)));
        let kept = seen.kept.iter().copied().zip(seen.sizes.iter().map(size)).collect();
        Lane { kept, numbers: Numbers::Fixed(seen.values) }
    }

    /// The sides of a grid, where they are what a list says.
    fn sides(&self, depth: usize, all: &[((usize, u32), &Seen)]) -> Option<(Lane, Found)> {
        let fits = |grid: &usize| {
            all.iter().all(|((input, rank), seen)| {
                let sides = &self.worlds[*input].places[*rank as usize].grids[*grid].0;
                let at = |k: usize| seen.at(&[depth], &[k as i64]);
                seen.per as usize == sides.len() && (0..sides.len()).all(|k| at(k) == Some(sides[k]))
            })
        };
        let grid = (0..self.frame.rules.len()).find(fits)?;
        let dimensions = self.frame.dimensions(grid);
        let side = |k| Law::Linear { terms: vec![(Quantity::Side(grid, k), 1)], constant: 0, over: 1 };
        let rules = (0..dimensions).map(|k| Rules::always(side(k))).collect();
        let size = Size::Known(Rules::always(Law::constant(dimensions as i64)));
        let lane = Lane { kept: vec![(depth, size)], numbers: Numbers::Each { apart: vec![0], rules } };
        Some((lane, Found { laws: dimensions as u64, ..Found::default() }))
    }

    fn lane(
        &self,
        search: &Search<'_>,
        (around, counts): (&[usize], &[Law]),
        all: &[((usize, u32), &Seen)],
        last: Phase,
    ) -> Result<(Lane, Found), Why> {
        let mut found = Found::default();
        let (_, first) = all.first().ok_or(Why::from("nothing was seen"))?;
        let several = all.iter().any(|((input, _), _)| *input != all[0].0.0);
        if several && all.iter().all(|(_, seen)| *seen == *first) {
            found.same += 1;
            return Ok((self.nearest(all), found));
        }
        let mut depths: Vec<usize> = all.iter().flat_map(|(_, seen)| seen.kept.iter().copied()).collect();
        depths.sort_unstable();
        depths.dedup();
        let mut kept = Vec::with_capacity(depths.len());
        for &depth in &depths {
            kept.push((depth, self.size(search, around, all, depth, last)?));
        }
        // By member.
        let mut sizes: Vec<Vec<i64>> = Vec::with_capacity(all.len());
        let mut clear: Vec<((usize, u32), &Seen)> = Vec::with_capacity(all.len());
        for (at, seen) in all {
            let place = &self.worlds[at.0].places[at.1 as usize];
            let turns = |depth: usize| self.turns(*at, seen, around, depth);
            let size = |(depth, size): &(usize, Size)| size.of(place, turns(*depth)).filter(|size| *size > 0);
            // Of ranks in places that are not asked for nothing need be known.
            if let Some(of) = kept.iter().map(size).collect::<Option<_>>() {
                sizes.push(of);
                clear.push((*at, seen));
            }
        }
        let all = &clear[..];
        if all.is_empty() {
            return Err("no law says after how many turns of the loop it repeats".into());
        }
        let steady = |dim: usize| sizes.iter().all(|of| of[dim] == sizes[0][dim]);
        let apart: Vec<usize> = (0..depths.len()).filter(|dim| steady(*dim)).collect();
        let places: usize = apart.iter().map(|dim| sizes[0][*dim] as usize).product();
        let asked = |place: &Place| -> Option<Vec<i64>> {
            let turns = |depth: usize| match around.get(depth) {
                Some(node) => counts[*node].of(place, &Turn::default()),
                None => Some(0),
            };
            kept.iter().map(|(depth, size)| size.of(place, turns(*depth)?)).collect()
        };
        let mut rules = None;
        if places <= MOST_PLACES {
            let rest = |dim: &usize| !apart.contains(dim);
            let probes = probes(search, &asked, &rest);
            rules = self
                .by_turn(search, (&depths, &sizes, &apart), all, last, &probes)
                .map(|rules| (apart.clone(), rules));
        }
        if rules.is_none() && !apart.is_empty() {
            let probes = probes(search, &asked, &|_| true);
            rules = self
                .by_turn(search, (&depths, &sizes, &[]), all, last, &probes)
                .map(|rules| (Vec::new(), rules));
        }
        let (apart, rules) = rules.ok_or(match depths.is_empty() {
            true => "no law of the rank and the number of ranks gives these numbers",
            false => "no law of the rank, the number of ranks and the turn of the loop gives these numbers",
        })?;
        if let Some(rival) = rules.iter().find_map(|rules| rules.rival) {
            return Err(rival.into());
        }
        rules.iter().for_each(|rules| found.add(rules));
        Ok((Lane { kept, numbers: Numbers::Each { apart, rules } }, found))
    }

    /// How many turns there are of the loop at a depth around a call, or how many numbers the call takes.
    fn turns(&self, at: (usize, u32), seen: &Seen, around: &[usize], depth: usize) -> i64 {
        match around.get(depth) {
            Some(node) => self.member(at).map_or(0, |member| member.counts[*node] as i64),
            None => seen.per.into(),
        }
    }

    /// After how many turns the numbers of a lane come again.
    fn size(
        &self,
        search: &Search<'_>,
        around: &[usize],
        all: &[((usize, u32), &Seen)],
        depth: usize,
        last: Phase,
    ) -> Result<Size, Why> {
        let mut samples = Vec::new();
        let (mut whole, mut steady, mut period) = (true, None, 1);
        for (at, seen) in all {
            let turns = self.turns(*at, seen, around, depth);
            if *steady.get_or_insert(turns) != turns {
                period = 0;
            }
            let Some(dim) = seen.kept.iter().position(|kept| *kept == depth) else { continue };
            period = common_multiple(period, seen.sizes[dim] as i64);
            whole &= turns == seen.sizes[dim] as i64;
            samples.push(self.sample(*at, seen.sizes[dim] as i64));
        }
        if whole && around.get(depth).is_some() {
            return Ok(Size::Turns);
        }
        if let (Some(turns), true) = (steady, period > 0) {
            return Ok(Size::Known(Rules::always(Law::constant(period.min(turns)))));
        }
        let probes = probes(search, &|_| Some(Vec::new()), &|_| true);
        let rules = search.rules(&samples, 0, last, &probes).ok_or(match around.get(depth) {
            Some(_) => "no law says after how many turns of the loop it repeats",
            None => "no law says how long the list is",
        })?;
        match rules.rival {
            Some(rival) => {
                let why = format!("how many numbers there are: {rival}");
                Err(Why { why, settled_by: rival.settled_by })
            }
            None => Ok(Size::Known(rules)),
        }
    }

    /// Around the number are loops at these depths, which turn so often in each trace; some of them are told apart turn by turn.
    fn by_turn(
        &self,
        search: &Search<'_>,
        (depths, sizes, apart): (&[usize], &[Vec<i64>], &[usize]),
        all: &[((usize, u32), &Seen)],
        last: Phase,
        probes: &[Probe<'_>],
    ) -> Option<Vec<Rules>> {
        let rest: Vec<usize> = (0..depths.len()).filter(|dim| !apart.contains(dim)).collect();
        let first: Vec<i64> = apart.iter().map(|dim| sizes[0][*dim]).collect();
        let places: usize = first.iter().map(|size| *size as usize).product();
        let mut rules = Vec::with_capacity(places);
        for place in 0..places {
            let mut samples = Vec::new();
            let fixed = turns_of(place, &first);
            for ((at, seen), sizes) in all.iter().zip(sizes) {
                let of: Vec<i64> = rest.iter().map(|dim| sizes[*dim]).collect();
                for number in 0..of.iter().map(|size| *size as usize).product() {
                    let turns = turns_of(number, &of);
                    let mut whole = vec![0; depths.len()];
                    apart
                        .iter()
                        .zip(&fixed)
                        .chain(rest.iter().zip(&turns))
                        .for_each(|(dim, turn)| whole[*dim] = *turn);
                    let value = seen.at(depths, &whole)?;
                    samples
                        .push(Sample { turn: Turn { at: turns, of: of.clone() }, ..self.sample(*at, value) });
                }
            }
            rules.push(search.rules(&samples, rest.len(), last, probes)?);
        }
        Some(rules)
    }

    /// No way to tell kinds apart fits.
    fn no_kinds(&self, keys: &[Key]) -> Problem {
        let kinds = |world: &World| {
            let loops = world.members.iter().map(|member| member.as_ref().map(|member| &*member.loops));
            loops.collect::<HashSet<Option<&Loops>>>().len()
        };
        let seen = self.worlds.iter().map(|world| (world.ranks, format!("{} kinds of ranks", kinds(world))));
        let one_tree = keys.iter().any(|key| self.has_trees(key));
        let why = match one_tree {
            true => "no law gives how often loops run",
            false => "ranks in the same place do not make the same calls in the same order",
        };
        Problem { seen: seen.collect(), ..Problem::of_all("the order of calls", why.to_owned()) }
    }

    fn has_trees(&self, key: &Key) -> bool {
        let mut trees: HashMap<u64, Option<&Loops>> = HashMap::new();
        self.worlds.iter().all(|world| {
            world.places.iter().zip(&world.members).all(|(place, member)| {
                let loops = member.as_ref().map(|member| &*member.loops);
                *trees.entry(key.class(place)).or_insert(loops) == loops
            })
        })
    }
}

/// A lane that one law gives on all kinds of ranks.
fn one_law(law: &Law, all: &[((usize, u32), &Seen)], confirmed: bool) -> Option<(Lane, Found)> {
    all.iter().all(|(_, seen)| seen.only().is_some()).then(|| {
        let rules = Rules { confirmed, ..Rules::always(law.clone()) };
        let mut found = Found::default();
        found.add(&rules);
        (Lane { kept: Vec::new(), numbers: Numbers::Each { apart: Vec::new(), rules: vec![rules] } }, found)
    })
}

/// Whether a lane is a list of the sides of a grid.
pub fn is_dims(layout: &Layout, lane: u16) -> bool {
    let mut params = layout.function.params.iter().enumerate();
    params.any(|(at, param)| param.name == "dims" && layout.lanes_of(at).contains(&lane))
}

type Classed = (Rc<Loops>, Vec<Fit>, Vec<(usize, u32)>);

/// By class of a key; nothing where ranks of that class have no such thread.
type Kinds = HashMap<u64, Option<Classed>>;

/// Ranks that are asked for, and turns of the loops that are kept, of so many each.
fn probes<'a>(
    search: &Search<'a>,
    sizes: &dyn Fn(&Place) -> Option<Vec<i64>>,
    kept: &dyn Fn(&usize) -> bool,
) -> Vec<Probe<'a>> {
    let places: Vec<&'a Place> = search.wanted[0].values().flatten().copied().collect();
    let mut all = Vec::new();
    if search.strict {
        return all;
    }
    for place in mixed(&places).into_iter().take(MOST_PROBES) {
        let Some(sizes) = sizes(place) else { continue };
        let of: Vec<i64> = (0..sizes.len()).filter(kept).map(|dim| sizes[dim]).collect();
        let numbers: Vec<usize> = (0..of.iter().map(|size| *size as usize).product()).collect();
        let turns = mixed(&numbers).into_iter().take(MOST_TURNS);
        all.extend(turns.map(|number| (place, Turn { at: turns_of(number, &of), of: of.clone() })));
    }
    all
}

fn common_multiple(a: i64, b: i64) -> i64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x.max(1) * b
}

/// The turns of number `place`, of loops with so many.
pub fn turns_of(place: usize, sizes: &[i64]) -> Vec<i64> {
    let mut left = place as i64;
    let mut turns: Vec<i64> = sizes.iter().rev().map(|size| (left % size, left /= size).0).collect();
    turns.reverse();
    turns
}

impl Model {
    /// The grids that something depends on.
    fn grids(&self) -> BTreeSet<usize> {
        let lanes = self.kinds.values().flatten().flat_map(|kind| kind.lanes.iter().flatten());
        lanes.flat_map(Lane::rules).flat_map(Rules::grids).chain(self.key.grid()).collect()
    }

    /// The kind of a rank; nothing inside where it has no such thread.
    pub fn kind(&self, place: &Place) -> Option<Option<&Kind>> {
        self.kinds.get(&self.key.class(place)).map(Option::as_ref)
    }
}

impl Kind {
    fn weight(&self) -> usize {
        self.lanes.iter().flatten().flat_map(Lane::rules).map(Rules::weight).sum()
    }

    /// By node.
    pub fn counts(&self, place: &Place) -> Option<Vec<u64>> {
        let count =
            |law: &Law| u64::try_from(law.of(place, &Turn::default())?).ok().filter(|count| *count > 0);
        self.counts.iter().map(count).collect()
    }
}

impl Size {
    pub fn of(&self, place: &Place, turns: i64) -> Option<i64> {
        match self {
            Size::Turns => Some(turns),
            Size::Known(rules) => rules.of(place, &Turn::default()),
        }
    }
}

impl Lane {
    fn rules(&self) -> impl Iterator<Item = &Rules> {
        let sizes = self.kept.iter().filter_map(|(_, size)| match size {
            Size::Turns => None,
            Size::Known(rules) => Some(rules),
        });
        let numbers = match &self.numbers {
            Numbers::Fixed(_) => &[][..],
            Numbers::Each { rules, .. } => rules,
        };
        sizes.chain(numbers)
    }

    /// All numbers of a rank, in the order of [`Lane::kept`], each dimension as long as `sizes` says.
    pub fn of(&self, place: &Place, sizes: &[i64]) -> Option<Vec<i64>> {
        let (apart, rules) = match &self.numbers {
            Numbers::Fixed(values) => return Some(values.clone()),
            Numbers::Each { apart, rules } => (apart, rules),
        };
        let of: Vec<i64> =
            (0..sizes.len()).filter(|dim| !apart.contains(dim)).map(|dim| sizes[dim]).collect();
        let places = sizes.iter().map(|size| *size as usize).product();
        let number = |number: usize| {
            let turns = turns_of(number, sizes);
            let which = apart.iter().fold(0, |at, dim| at * sizes[*dim] + turns[*dim]);
            let at = (0..sizes.len()).filter(|dim| !apart.contains(dim)).map(|dim| turns[dim]).collect();
            rules.get(which as usize)?.of(place, &Turn { at, of: of.clone() })
        };
        (0..places).map(number).collect()
    }
}
