//! Looking for laws: the simplest that hold for every sample, and whether others fit as well.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

use crate::cut::{self, Cut, Whose};
use crate::law::{Law, Probe, Rival, Rules, Sample, any_of, first_of, rival};
use crate::place::{Frame, Key, Place, Quantity, Turn};

/// What laws are looked for with.
pub struct Search<'a> {
    pub frame: &'a Frame,
    pub keys: &'a [Key],
    /// By key: the kinds of the ranks that are asked for, and which these are.
    pub wanted: &'a [Wanted<'a>],
    /// The grid that is tried first, and whether no other is.
    pub grid: Option<usize>,
    pub strict: bool,
    /// The grids that explain most ranks equally well.
    pub open: Vec<usize>,
    /// Laws that were found before: the same line is cut elsewhere too.
    pub pool: &'a RefCell<Vec<Cut>>,
    pub shared: &'a Shared,
    /// By what was seen: the rules, if there are any. Samples are those of one kind of ranks, in one order.
    pub known: RefCell<HashMap<Vec<i64>, Option<Rules>>>,
}

/// By symbol and lane: laws that hold on all kinds of ranks.
pub type Shared = HashMap<(u32, u16), Law>;

/// The ranks that are asked for, by class of a key.
pub type Wanted<'a> = HashMap<u64, Vec<&'a Place>>;

/// The same for a key.
pub fn wanted<'a>(key: &Key, places: impl IntoIterator<Item = &'a Place>) -> Wanted<'a> {
    let mut wanted: Wanted<'a> = HashMap::new();
    for place in places {
        wanted.entry(key.class(place)).or_default().push(place);
    }
    wanted
}

/// How far a law may go. All kinds of ranks are tried with simple laws before any other law is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Same,
    /// One or two quantities, added or taken away, and a constant.
    Unit,
    /// The same on all ranks that are congruent modulo something.
    Modulo,
    General,
}

pub const PHASES: [Phase; 4] = [Phase::Same, Phase::Unit, Phase::Modulo, Phase::General];

/// So many samples are looked at.
const MOST_SAMPLES: usize = 200_000;

/// So many comparisons are made to find the laws of one number.
const MOST_WORK: u64 = 4_000_000;

impl Search<'_> {
    /// Laws that hold for every sample. `loops`: of how many loops the turns are told.
    /// No law goes further than `last`.
    pub fn rules(
        &self,
        samples: &[Sample<'_>],
        loops: usize,
        last: Phase,
        probes: &[Probe<'_>],
    ) -> Option<Rules> {
        let first = samples.first()?;
        let several = samples.iter().any(|sample| sample.input != first.input);
        if several && samples.iter().all(|sample| sample.value == first.value) {
            return Some(Rules::always(Law::constant(first.value)));
        }
        if samples.len() > MOST_SAMPLES {
            return None;
        }
        if loops > 0 {
            return self.searched(samples, loops, last, probes);
        }
        if let Some(rules) = self.of_known_line(samples, probes) {
            return Some(rules);
        }
        let values: Vec<i64> = samples.iter().map(|sample| sample.value).collect();
        let known = self.known.borrow().get(&values).cloned();
        known.unwrap_or_else(|| {
            let rules = self.searched(samples, loops, last, probes);
            let rules = self.against_lines(samples, rules, probes);
            if rules.is_some() || last == Phase::General {
                self.known.borrow_mut().insert(values, rules.clone());
            }
            rules
        })
    }

    /// A law that was found before, and holds here as it is.
    fn of_known_line(&self, samples: &[Sample<'_>], probes: &[Probe<'_>]) -> Option<Rules> {
        let holds = |cut: &&Cut| samples.iter().all(|s| cut.of(s.place, &s.turn) == Some(s.value));
        let pool = self.pool.borrow();
        let laws = pool.iter().filter(holds).map(|cut| Law::Cut(*cut));
        let probes: Vec<&Probe<'_>> = probes.iter().collect();
        let (law, rival) = any_of(self.frame, laws, &probes)?;
        Some(Rules { rival, ..Rules::always(law) })
    }

    /// Holds what was found, if anything was, against all ways to cut a line that fit all ranks together.
    fn against_lines(
        &self,
        samples: &[Sample<'_>],
        rules: Option<Rules>,
        probes: &[Probe<'_>],
    ) -> Option<Rules> {
        let plain = |rules: &Rules| rules.laws.values().all(Law::is_plain);
        if probes.is_empty() || rules.as_ref().is_some_and(plain) {
            return rules;
        }
        let table = Table::new(self.frame, samples, 0, self.pool);
        let Some((law, rival)) = table.line(probes, self.grid) else { return rules };
        let line = Rules { confirmed: table.inputs > 2, rival, ..Rules::always(law) };
        let Some(rules) = rules else {
            table.keep(&line.laws[&(1, 0)], rival);
            return Some(line);
        };
        let differs = crate::law::rival(
            self.frame,
            probes,
            |at, turn| rules.of(at, turn),
            |at, turn| line.of(at, turn),
        );
        let rival = line.rival.or(rules.rival).or(differs);
        Some(Rules { rival, ..rules })
    }

    fn searched(
        &self,
        samples: &[Sample<'_>],
        loops: usize,
        last: Phase,
        probes: &[Probe<'_>],
    ) -> Option<Rules> {
        let table = Table::new(self.frame, samples, loops, self.pool);
        // What is not looked for at length is soon given up.
        let most = if last == Phase::General { MOST_WORK } else { MOST_WORK / 32 };
        let only = self.grid.map(Some);
        let all = (!self.strict).then_some(None);
        let stages = || only.into_iter().chain(all);
        let ways = PHASES.into_iter().take_while(|phase| *phase <= last);
        for (phase, only) in ways.flat_map(|phase| stages().map(move |only| (phase, only))) {
            for ends in [None].into_iter().chain((0..loops).map(Some)) {
                for (key, wanted) in self.keys.iter().zip(self.wanted) {
                    let key = Key { ends, ..key.clone() };
                    if only.is_some() && key.grid().is_some() && key.grid() != only {
                        continue;
                    }
                    if let Some(mut rules) = self.by(&key, wanted, &table, (phase, only), probes) {
                        rules.rival = self.rival(&rules, &table, phase, probes);
                        return Some(rules);
                    }
                    if !table.may_go_on(most) {
                        return None;
                    }
                }
            }
        }
        None
    }

    /// Whether other kinds of ranks or another grid explain the same as simply, and say something else. Of those that say the
    /// same the simplest is the measure.
    fn rival(&self, rules: &Rules, table: &Table<'_>, phase: Phase, probes: &[Probe<'_>]) -> Option<Rival> {
        if probes.is_empty() {
            return None;
        }
        let most = table.work.get() + MOST_WORK / 4;
        let parts = rules.key.parts.len().max(1);
        let (mut measure, mut lightest): (usize, Option<(usize, Rival)>) = (rules.weight(), None);
        let mut add = |weight: usize, differs: Option<Rival>| match differs {
            None => measure = measure.min(weight),
            Some(rival) if lightest.is_none_or(|(known, _)| weight < known) => {
                lightest = Some((weight, rival));
            }
            Some(_) => {}
        };
        if let Some(rival) = rules.rival {
            add(rules.weight(), Some(rival));
        }
        for (key, wanted) in self.keys.iter().zip(self.wanted) {
            let open = key.grid().is_none_or(|grid| self.open.contains(&grid));
            if !open || key.parts.len() > parts || !table.may_go_on(most) {
                continue;
            }
            let key = Key { ends: rules.key.ends, ..key.clone() };
            let Some(other) = self.by(&key, wanted, table, (phase, None), probes) else { continue };
            if rules.confirmed && !other.confirmed {
                continue;
            }
            let differs =
                rival(self.frame, probes, |at, turn| rules.of(at, turn), |at, turn| other.of(at, turn));
            add(other.weight(), differs);
            if let Some(rival) = other.rival {
                add(other.weight(), Some(rival));
            }
        }
        lightest.filter(|(weight, _)| *weight <= measure).map(|(_, rival)| rival)
    }

    fn by(
        &self,
        key: &Key,
        wanted: &Wanted<'_>,
        table: &Table<'_>,
        (phase, only): (Phase, Option<usize>),
        probes: &[Probe<'_>],
    ) -> Option<Rules> {
        if (phase == Phase::Modulo) == key.allows_laws() {
            return None;
        }
        table.work.set(table.work.get() + table.samples.len() as u64);
        let mut classes: HashMap<(u64, u64), Vec<usize>> = HashMap::new();
        for (at, sample) in table.samples.iter().enumerate() {
            let class = key.class(sample.place);
            // Kinds that are not asked for need no law.
            if wanted.contains_key(&class) {
                classes.entry((class, key.turn_class(&sample.turn))).or_default().push(at);
            }
        }
        if wanted.keys().any(|class| !classes.keys().any(|(known, _)| known == class)) {
            return None;
        }
        // Many kinds and few ranks fit by chance.
        let enough = if phase == Phase::Modulo { 4 } else { 2 };
        if classes.len() > 1 && table.samples.len() < enough * classes.len() {
            return None;
        }
        let grids = match only {
            Some(_) if key.grid().is_none() => vec![None, only],
            _ => grids(self.frame, key.grid(), self.grid, phase),
        };
        let mut of_class: HashMap<(u64, u64), Vec<&Probe<'_>>> = HashMap::new();
        for probe in probes {
            let (place, turn) = probe;
            of_class.entry((key.class(place), key.turn_class(turn))).or_default().push(probe);
        }
        let mut all = grids.into_iter().filter_map(|grid| {
            let mut rules = Rules { key: key.clone(), laws: HashMap::new(), confirmed: true, rival: None };
            for (class, members) in &classes {
                let places = if table.has_turns() { &[][..] } else { &wanted[&class.0] };
                let probes = of_class.get(class).map_or(&[][..], Vec::as_slice);
                let found = table.law(members, places, probes, (phase, grid))?;
                rules.laws.insert(*class, found.law);
                rules.confirmed &= found.confirmed;
                rules.rival = rules.rival.or(found.rival);
            }
            Some((grid, rules))
        });
        let (_, mut rules) = all.next()?;
        if !probes.is_empty() && rules.rival.is_none() {
            let mut others = all.filter(|(grid, other)| {
                grid.is_none_or(|grid| self.open.contains(&grid)) && other.weight() <= rules.weight()
            });
            rules.rival = others.find_map(|(_, other)| {
                rival(self.frame, probes, |at, turn| rules.of(at, turn), |at, turn| other.of(at, turn))
            });
        }
        Some(rules)
    }
}

/// The grids that laws may be about: that of the key, or one after the other.
fn grids(frame: &Frame, of_key: Option<usize>, first: Option<usize>, phase: Phase) -> Vec<Option<usize>> {
    if matches!(phase, Phase::Same | Phase::Modulo) {
        return vec![None];
    }
    if of_key.is_some() {
        return vec![of_key];
    }
    if phase == Phase::General {
        // With every grid there is, something fits few samples by chance.
        let flat = || (0..frame.rules.len()).find(|grid| frame.dimensions(*grid) == 2);
        return vec![None, first.or_else(flat)];
    }
    let others = (0..frame.rules.len()).filter(|grid| Some(*grid) != first);
    [None].into_iter().chain(first.into_iter().chain(others).map(Some)).collect()
}

/// A law, whether it could be held against a trace that it was not found with, and what else fits.
#[derive(Debug, Clone)]
pub struct Fit {
    pub law: Law,
    pub confirmed: bool,
    pub rival: Option<Rival>,
}

/// The law of samples that are all of one kind.
pub fn law_of(
    samples: &[Sample<'_>],
    frame: &Frame,
    places: &[&Place],
    grid: Option<usize>,
    phase: Phase,
) -> Option<Fit> {
    let all: Vec<usize> = (0..samples.len()).collect();
    let pool = RefCell::default();
    let table = Table::new(frame, samples, 0, &pool);
    let probes: Vec<Probe<'_>> = places.iter().map(|place| (*place, Turn::default())).collect();
    let probes: Vec<&Probe<'_>> = probes.iter().collect();
    let ways = grids(frame, grid, None, phase).into_iter();
    let mut all = ways.filter_map(|grid| Some((grid, table.law(&all, places, &probes, (phase, grid))?)));
    let (_, mut fit) = all.next()?;
    let weight = fit.law.weight();
    let mut others = all
        .filter(|(grid, other)| grid.is_none_or(|grid| frame.may_be(grid)) && other.law.weight() <= weight);
    fit.rival = fit.rival.or_else(|| {
        let differs = |other: &Fit| {
            rival(
                frame,
                probes.iter().copied(),
                |at, turn| fit.law.of(at, turn),
                |at, turn| other.law.of(at, turn),
            )
        };
        others.find_map(|(_, other)| differs(&other))
    });
    Some(fit)
}

/// The one way to cut a line that gives all these numbers.
pub fn line_of(
    frame: &Frame,
    samples: &[Sample<'_>],
    probes: &[Probe<'_>],
    grid: Option<usize>,
    pool: &RefCell<Vec<Cut>>,
) -> Option<Law> {
    let table = Table::new(frame, samples, 0, pool);
    let (law, rival) = table.line(probes, grid)?;
    table.keep(&law, rival);
    rival.is_none().then_some(law)
}

/// By quantity and sample.
struct Table<'a> {
    frame: &'a Frame,
    samples: &'a [Sample<'a>],
    quantities: Vec<Quantity>,
    /// Once they were asked for.
    values: Vec<OnceCell<Vec<Option<i64>>>>,
    pool: &'a RefCell<Vec<Cut>>,
    /// How many traces there are.
    inputs: usize,
    /// How many numbers were compared.
    work: Cell<u64>,
}

impl<'a> Table<'a> {
    fn new(
        frame: &'a Frame,
        samples: &'a [Sample<'a>],
        loops: usize,
        pool: &'a RefCell<Vec<Cut>>,
    ) -> Table<'a> {
        let quantities = Quantity::all(frame, loops);
        let values = quantities.iter().map(|_| OnceCell::new()).collect();
        let inputs = samples.iter().map(|sample| sample.input).collect::<HashSet<usize>>().len();
        Table { frame, samples, quantities, values, pool, inputs, work: Cell::new(0) }
    }

    fn values(&self, quantity: usize) -> &[Option<i64>] {
        let of = |sample: &Sample<'_>| self.quantities[quantity].of(sample.place, &sample.turn);
        self.values[quantity].get_or_init(|| {
            self.work.set(self.work.get() + self.samples.len() as u64);
            self.samples.iter().map(of).collect()
        })
    }

    fn has_turns(&self) -> bool {
        self.samples.first().is_some_and(|sample| !sample.turn.at.is_empty())
    }

    /// Whether there is time for more.
    fn may_go_on(&self, most: u64) -> bool {
        self.work.get() < most
    }

    fn value(&self, at: usize) -> i128 {
        self.work.set(self.work.get() + 1);
        self.samples[at].value.into()
    }

    /// The law of these samples, and whether it could be held against a trace that it was not found with. It says something of
    /// all these places.
    fn law(
        &self,
        members: &[usize],
        places: &[&Place],
        probes: &[&Probe<'_>],
        how: (Phase, Option<usize>),
    ) -> Option<Fit> {
        let mut inputs: Vec<usize> = members.iter().map(|at| self.samples[*at].input).collect();
        inputs.sort_unstable();
        inputs.dedup();
        let [_, .., last] = inputs[..] else { return None };
        let members = mixed(members);
        let learnt: Vec<usize> =
            members.iter().copied().filter(|at| self.samples[*at].input != last).collect();
        let fit = |(law, rival): (Law, Option<Rival>)| {
            let confirmed = inputs.len() > 2 || law.as_constant().is_some();
            Fit { law, confirmed, rival }
        };
        if let Some((law, rival)) = self.found(&learnt, &members, places, probes, how) {
            let rival = rival.or_else(|| self.other_line(&law, &members, probes, how.1));
            // Of two traces one is left to learn from: that says something of simple laws alone.
            let many = inputs.len() > 2 || members.len() > 4 * inputs.len();
            return (many || law.is_plain()).then(|| fit((law, rival)));
        }
        if self.inputs > 2 || inputs.len() > 2 {
            return None;
        }
        let (law, rival) = self.found(&members, &members, places, probes, how)?;
        let rival = rival.or_else(|| self.other_line(&law, &members, probes, how.1));
        Some(fit((law, rival)))
    }

    /// The simplest law that follows from some samples and holds for all.
    fn found(
        &self,
        learnt: &[usize],
        all: &[usize],
        places: &[&Place],
        probes: &[&Probe<'_>],
        (phase, grid): (Phase, Option<usize>),
    ) -> Option<(Law, Option<Rival>)> {
        let first = *learnt.first()?;
        let value = self.samples[first].value;
        if all.iter().all(|at| self.samples[*at].value == value) {
            return Some((Law::constant(value), None));
        }
        if matches!(phase, Phase::Same | Phase::Modulo) {
            return None;
        }
        let signed = all.iter().any(|at| self.samples[*at].value < 0);
        let counts = |law: &Law| {
            let mut says = places.iter().map(|place| law.of(place, &Turn::default()));
            says.all(|value| value.is_some_and(|value| signed || value >= 0))
        };
        let known = self.usable(all, grid);
        match phase {
            Phase::Same | Phase::Modulo => None,
            Phase::Unit => {
                let few = all.len() <= 2 * self.inputs;
                self.unit(&known, grid, first, all, probes, &|law| {
                    // Of two quantities and any constant some fit few samples by chance.
                    let plain = |terms: usize, constant: i64| terms < 2 || !few || constant.abs() <= 1;
                    counts(law)
                        && matches!(law, Law::Linear { terms, constant, .. } if plain(terms.len(), *constant))
                })
            }
            Phase::General => {
                let sums: Vec<usize> =
                    known.iter().copied().filter(|q| !self.quantities[*q].is_alone()).collect();
                let pairs = sums.iter().enumerate();
                let pairs = pairs.flat_map(|(n, a)| sums[n + 1..].iter().map(move |b| (*a, *b)));
                let pairs = pairs.filter(|(a, b)| self.is_about(*a, *b, grid));
                let cuts = self.cuts(&known, all).into_iter().map(Law::Cut).filter(counts);
                let ones = sums.iter().filter_map(|q| self.one(*q, learnt, all).filter(counts));
                let twos = pairs.filter_map(|(a, b)| self.two(a, b, learnt, all).filter(counts));
                let cut = any_of(self.frame, cuts, probes);
                if let Some((law, rival)) = cut.as_ref().filter(|_| !probes.is_empty()) {
                    self.keep(law, *rival);
                }
                cut.or_else(|| first_of(self.frame, ones, probes))
                    .or_else(|| first_of(self.frame, twos, probes))
            }
        }
    }

    /// Whether a pair was not looked at with another grid.
    fn is_about(&self, a: usize, b: usize, grid: Option<usize>) -> bool {
        grid.is_none() || self.quantities[a].grid() == grid || self.quantities[b].grid() == grid
    }

    fn unit(
        &self,
        known: &[usize],
        grid: Option<usize>,
        first: usize,
        all: &[usize],
        probes: &[&Probe<'_>],
        speaks: &dyn Fn(&Law) -> bool,
    ) -> Option<(Law, Option<Rival>)> {
        let fits = |terms: &[(usize, i128)]| {
            let sum = |at: usize| terms.iter().map(|(q, slope)| slope * self.at(*q, at)).sum::<i128>();
            let constant = self.value(first) - sum(first);
            // A shift is a whole distance.
            let is_shift = |q: usize| matches!(self.quantities[q], Quantity::Shift(..));
            if terms.iter().any(|(q, slope)| is_shift(*q) && (constant != 0 || *slope != 1)) {
                return None;
            }
            let holds = all.iter().all(|at| self.value(*at) == sum(*at) + constant);
            holds.then(|| self.linear(terms, constant, 1)).flatten().filter(speaks)
        };
        let ones = [1, -1].into_iter().flat_map(|slope| known.iter().map(move |q| (*q, slope)));
        if let Some(law) = first_of(self.frame, ones.clone().filter_map(|term| fits(&[term])), probes) {
            return Some(law);
        }
        let ones = ones.filter(|(q, _)| !self.quantities[*q].is_alone());
        let pairs = ones.clone().flat_map(|a| ones.clone().filter(move |b| a.0 < b.0).map(move |b| [a, b]));
        let pairs = pairs.filter(|[a, b]| self.is_about(a.0, b.0, grid));
        first_of(self.frame, pairs.filter_map(|pair| fits(&pair)), probes)
    }

    /// A way to cut a line that says something else.
    fn other_line(
        &self,
        law: &Law,
        all: &[usize],
        probes: &[&Probe<'_>],
        grid: Option<usize>,
    ) -> Option<Rival> {
        if probes.is_empty() || law.is_plain() || matches!(law, Law::Cut(_)) {
            return None;
        }
        let cuts = self.cuts(&self.usable(all, grid), all).into_iter();
        let says = |law: Law| move |place: &Place, turn: &Turn| law.of(place, turn);
        { cuts }
            .find_map(|cut| rival(self.frame, probes.iter().copied(), says(law.clone()), says(Law::Cut(cut))))
    }

    /// The same line may be cut elsewhere too.
    fn keep(&self, law: &Law, rival: Option<Rival>) {
        if let (Law::Cut(cut @ Cut { at: Whose::At(_), .. }), None) = (law, rival)
            && !self.has_turns()
            && !self.pool.borrow().contains(cut)
        {
            self.pool.borrow_mut().push(*cut);
        }
    }

    fn at(&self, quantity: usize, sample: usize) -> i128 {
        self.values(quantity)[sample].unwrap_or(0).into()
    }

    fn linear(&self, terms: &[(usize, i128)], constant: i128, over: i128) -> Option<Law> {
        let terms = terms.iter().filter(|(_, factor)| *factor != 0);
        let terms = terms.map(|(q, factor)| Some((self.quantities[*q], i64::try_from(*factor).ok()?)));
        Some(Law::Linear {
            terms: terms.collect::<Option<_>>()?,
            constant: i64::try_from(constant).ok()?,
            over: i64::try_from(over).ok()?,
        })
    }

    /// Whether a law of these quantities with so many free numbers rests on more than it takes.
    fn is_held(&self, [a, b]: [usize; 2], free: usize, all: &[usize]) -> bool {
        let point = |at: &usize| [a, b].map(|q| self.values(q)[*at].unwrap_or(0));
        cut::is_held(all.iter().map(|at| (self.samples[*at].input, point(at))), free)
    }

    fn one(&self, q: usize, learnt: &[usize], all: &[usize]) -> Option<Law> {
        let first = *learnt.first()?;
        let other = *learnt.iter().find(|at| self.at(q, **at) != self.at(q, first))?;
        let (mut over, mut factor) =
            (self.at(q, other) - self.at(q, first), self.value(other) - self.value(first));
        let mut constant = self.value(first) * over - factor * self.at(q, first);
        let differs = |at: &usize| self.value(*at) * over != factor * self.at(q, *at) + constant;
        if all.iter().any(differs) || !self.is_held([q, q], 2, all) {
            return None;
        }
        reduce([&mut over, &mut factor, &mut constant]);
        self.linear(&[(q, factor)], constant, over)
    }

    fn two(&self, a: usize, b: usize, learnt: &[usize], all: &[usize]) -> Option<Law> {
        let first = *learnt.first()?;
        let by = |at: usize| {
            (
                self.at(a, at) - self.at(a, first),
                self.at(b, at) - self.at(b, first),
                self.value(at) - self.value(first),
            )
        };
        let (a1, b1, v1) = learnt.iter().map(|at| by(*at)).find(|(a, b, _)| *a != 0 || *b != 0)?;
        let (a2, b2, v2) = learnt.iter().map(|at| by(*at)).find(|(a2, b2, _)| a1 * b2 != a2 * b1)?;
        let mut over = a1 * b2 - a2 * b1;
        let (mut fa, mut fb) = (v1 * b2 - v2 * b1, a1 * v2 - a2 * v1);
        let mut constant = self.value(first) * over - fa * self.at(a, first) - fb * self.at(b, first);
        let differs =
            |at: &usize| self.value(*at) * over != fa * self.at(a, *at) + fb * self.at(b, *at) + constant;
        if all.iter().any(differs) || !self.is_held([a, b], 3, all) {
            return None;
        }
        reduce([&mut over, &mut fa, &mut fb, &mut constant]);
        self.linear(&[(a, fa), (b, fb)], constant, over)
    }

    /// A way to cut a line that gives all numbers, and whether others say something else.
    fn line(&self, probes: &[Probe<'_>], grid: Option<usize>) -> Option<(Law, Option<Rival>)> {
        let all: Vec<usize> = (0..self.samples.len()).collect();
        let speaks = |law: &Law| probes.iter().all(|(place, turn)| law.of(place, turn).is_some());
        let lines = self.cuts(&self.usable(&all, grid), &all).into_iter().map(Law::Cut).filter(speaks);
        any_of(self.frame, lines, &probes.iter().collect::<Vec<_>>())
    }

    /// What all these have, of one grid.
    fn usable(&self, all: &[usize], grid: Option<usize>) -> Vec<usize> {
        let usable = |q: &usize| {
            self.quantities[*q].grid().is_none_or(|of| Some(of) == grid)
                && all.iter().all(|at| self.values(*q)[*at].is_some())
        };
        (0..self.quantities.len()).filter(usable).collect()
    }

    /// All ways to cut a line that give these numbers; if a known line does, those alone.
    fn cuts(&self, known: &[usize], all: &[usize]) -> Vec<Cut> {
        let Some(first) = all.first() else { return Vec::new() };
        let lengths = known.iter().filter(|q| self.quantities[**q].is_length());
        let parts = lengths.filter(|q| all.iter().all(|at| self.at(**q, *at) > 1));
        let (mut of_known, mut found) = (Vec::new(), Vec::new());
        for &q in parts.filter(|q| all.iter().any(|at| self.at(**q, *at) != self.at(**q, *first))) {
            let within = |a: &&usize| {
                self.quantities[**a].is_position_of(self.quantities[q])
                    && all.iter().all(|at| (0..self.at(q, *at)).contains(&self.at(**a, *at)))
                    && all.iter().any(|at| self.at(**a, *at) != self.at(**a, *first))
            };
            let at = known.iter().filter(within).map(|a| Whose::At(self.quantities[*a]));
            for whose in [Whose::First, Whose::Last].into_iter().chain(at) {
                let seen = |at: &usize| {
                    let Sample { input, place, turn, value } = &self.samples[*at];
                    let parts = self.values(q)[*at]?;
                    Some(cut::Seen { input: *input, parts, at: whose.of(parts, place, turn)?, value: *value })
                };
                let Some(mut seen) = all.iter().map(seen).collect::<Option<Vec<_>>>() else { continue };
                seen.sort_unstable();
                seen.dedup();
                self.work.set(self.work.get() + seen.len() as u64);
                found.extend(cut::ways(&seen, (whose, self.quantities[q])));
            }
        }
        let lines = self.pool.borrow();
        for cut in lines.iter().filter(|_| !self.has_turns()) {
            let seen = |at: &usize| {
                let Sample { input, place, turn, value } = &self.samples[*at];
                let parts = cut.parts.of(place, turn)?;
                Some(cut::Seen { input: *input, parts, at: cut.at.of(parts, place, turn)?, value: *value })
            };
            let seen = all.iter().map(seen).collect::<Option<Vec<_>>>();
            of_known.extend(seen.and_then(|seen| cut::way(&seen, cut)));
        }
        if of_known.is_empty() { found } else { of_known }
    }
}

/// In an order in which neighbours are far apart, so that what does not fit is soon found.
pub fn mixed<T: Copy>(members: &[T]) -> Vec<T> {
    let mut step = (members.len() * 5 / 8).max(1);
    while gcd(step as i128, members.len() as i128) != 1 {
        step += 1;
    }
    (0..members.len()).map(|at| members[at * step % members.len()]).collect()
}

fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn reduce<const N: usize>(numbers: [&mut i128; N]) {
    let mut divisor = numbers.iter().fold(0, |d, number| gcd(d, **number)).max(1);
    if *numbers[0] < 0 {
        divisor = -divisor;
    }
    numbers.into_iter().for_each(|number| *number /= divisor);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Learns from some worlds what holds in another.
    fn check(
        loops: usize,
        value: impl Fn(i64, i64, i64) -> i64,
        turns: impl Fn(i64) -> i64,
        worlds: &[u32],
        to: u32,
    ) {
        let all: Vec<u32> = worlds.iter().copied().chain([to]).collect();
        let frame = Frame::new(worlds, to);
        let places: Vec<Vec<Place>> = all.iter().map(|ranks| frame.places(*ranks)).collect();
        let samples_of = |input: usize| {
            let mut samples = Vec::new();
            for place in &places[input] {
                let of = turns(place.ranks);
                for at in 0..of {
                    let turn = if loops == 0 { Turn::default() } else { Turn { at: vec![at], of: vec![of] } };
                    let value = value(place.rank, place.ranks, at);
                    samples.push(Sample { input, place, turn, value });
                }
            }
            samples
        };
        let samples: Vec<Sample<'_>> = (0..worlds.len()).flat_map(samples_of).collect();
        let keys = Key::all(&frame);
        let wanted: Vec<Wanted<'_>> = keys.iter().map(|key| wanted(key, &places[worlds.len()])).collect();
        let (pool, shared) = (RefCell::default(), Shared::new());
        let search = Search {
            frame: &frame,
            keys: &keys,
            wanted: &wanted,
            grid: None,
            strict: false,
            open: (0..frame.rules.len()).collect(),
            pool: &pool,
            shared: &shared,
            known: RefCell::default(),
        };
        let asked = samples_of(worlds.len());
        let probes: Vec<Probe<'_>> = asked.iter().map(|sample| (sample.place, sample.turn.clone())).collect();
        let rules = search.rules(&samples, loops, Phase::General, &probes).expect("a law");
        assert_eq!(rules.rival, None);
        for sample in samples_of(worlds.len()) {
            let found = rules.of(sample.place, &sample.turn);
            assert_eq!(found, Some(sample.value), "{:?} {rules:?}", (sample.place, &sample.turn));
        }
    }

    const SQUARES: [u32; 3] = [16, 36, 64];

    #[test]
    fn neighbours_on_a_ring() {
        check(0, |rank, ranks, _| (rank + 1) % ranks - rank, |_| 1, &SQUARES, 144);
    }

    #[test]
    fn neighbours_on_a_torus() {
        let below = |rank: i64, ranks: i64| {
            let side = ranks.isqrt();
            (rank / side + 1) % side * side + rank % side - rank
        };
        check(0, |rank, ranks, _| below(rank, ranks), |_| 1, &SQUARES, 256);
    }

    #[test]
    fn the_other_side_of_the_diagonal() {
        let mirror = |rank: i64, ranks: i64| rank % ranks.isqrt() * ranks.isqrt() + rank / ranks.isqrt();
        check(0, |rank, ranks, _| mirror(rank, ranks) - rank, |_| 1, &SQUARES, 144);
    }

    #[test]
    fn shares_of_a_line() {
        let share = |rank: i64, ranks: i64| 6 * (1000 / ranks + i64::from(rank < 1000 % ranks));
        check(0, |rank, ranks, _| share(rank, ranks), |_| 1, &SQUARES, 144);
        check(0, |_, ranks, _| (1 << 20) / ranks, |_| 1, &[8, 16, 32], 128);
    }

    #[test]
    fn rounds_of_a_butterfly() {
        check(1, |rank, _, at| (rank ^ 1 << at) - rank, |ranks| i64::from(ranks.ilog2()), &[8, 16, 32], 128);
    }

    #[test]
    fn partners_in_turn() {
        check(1, |rank, ranks, at| (rank + at + 1) % ranks - rank, |ranks| ranks - 1, &[4, 9, 16], 25);
        check(1, |rank, _, at| at - rank, |ranks| ranks, &[4, 9, 16], 25);
    }
}
