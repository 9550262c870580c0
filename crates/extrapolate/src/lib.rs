//! From traces of one program at several numbers of ranks to the trace that it would leave at another.
//!
//! Every rank of the world that is asked for is predicted, call by call, folded as a recorder would fold it, and merged
//! with the others as ranks merge. So the result has the form of a recorded trace. What a rank does is predicted from what
//! ranks in the same place did: [`place`] says what a place is (coordinates on a grid, first, last, odd), [`tree`] makes
//! loops of the order of calls, [`law`] is how a number depends on the place, the number of ranks and the turn of a
//! loop, [`cut`] has the laws of pieces of a line, and [`search`] finds them.
//! Every law is exact: it holds for every rank of every trace, and one trace is left out when it is looked for, as far as
//! there are enough.

#![forbid(unsafe_code)]

mod cut;
mod grid;
mod law;
mod learn;
mod place;
mod predict;
mod problem;
mod read;
mod search;
mod tree;

use std::collections::BTreeSet;

use refrain_encode::Folding;
use refrain_fold::bundle::sites::Sites;
use refrain_fold::bundle::{self, Bundle, MOST_RANKS, merge};
use refrain_fold::loops::Node;
use refrain_tracefile::{EXTRAPOLATED, Meta, Trace};

pub use learn::Found;
pub use problem::Problem;

use learn::{Learner, Model, World};
use place::{Frame, Place};
use predict::Predictor;
use read::{Reading, Symbols};

/// A trace, and what it is called in messages.
pub struct Input<'a> {
    pub name: String,
    pub trace: &'a Trace,
}

#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub ranks: u32,
    /// Where no law is found, take what the trace with the most ranks has.
    pub guess: bool,
}

/// What was found out.
#[derive(Debug)]
pub struct Report {
    /// The numbers of ranks that it was learnt from.
    pub from: Vec<u32>,
    pub ranks: u32,
    pub found: Found,
    /// What could not be worked out.
    pub problems: Vec<Problem>,
    /// Laws that could not be held against a trace that was left out.
    pub unconfirmed: Vec<Problem>,
    /// A number of ranks that one more trace would say most at, where something is not clear.
    pub next: Option<u32>,
}

#[derive(Debug)]
pub struct Outcome {
    pub report: Report,
    /// Nothing where something could not be worked out and was not to be guessed.
    pub trace: Option<Trace>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("one trace does not say how anything depends on the number of ranks")]
    OneTrace,
    #[error("{0} and {1} both have {2} ranks")]
    SameRanks(String, String, u32),
    #[error("a run needs at least one rank")]
    NoRanks,
    #[error("{0} ranks are more than a trace can have ({MOST_RANKS})")]
    TooManyRanks(u32),
    #[error("{0} is not complete: calls of some ranks are missing")]
    Incomplete(String),
    #[error("{0} was recorded with {1}, {2} was not")]
    Options(String, String, String),
    #[error("{0} keeps values in symbols (--split off), so nothing can be said of them")]
    NotSplit(String),
    #[error("{0} lacks calls of the program ({1})")]
    Missing(String, String),
    #[error("{0} was itself extrapolated")]
    Extrapolated(String),
    #[error("{0} calls {1}, which {2} never does: they are not of the same program")]
    Programs(String, &'static str, String),
    #[error("a call could not be read: {0}")]
    Calls(refrain_encode::Error),
    #[error("the ranks do not fit together: {0}")]
    Bundle(bundle::Error),
    #[error("no law says what rank {rank} does: {what}")]
    NoLaw { rank: u32, what: String },
}

/// Options of a run that change what its trace has of the calls: they must be the same.
const TELLING: [&str; 9] =
    ["fold", "only", "skip", "window", "pcontrol", "pointers", "stacks", "recursion", "lossy"];

/// How far it is, of how many steps.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

pub fn extrapolate(inputs: &[Input<'_>], options: Options, progress: Progress<'_>) -> Result<Outcome, Error> {
    let mut inputs: Vec<&Input<'_>> = inputs.iter().collect();
    inputs.sort_by_key(|input| input.trace.meta.ranks);
    check(&inputs, options)?;
    let largest = inputs[inputs.len() - 1];
    let worlds: Vec<u32> = inputs.iter().map(|input| input.trace.meta.ranks).collect();
    let mut frame = Frame::new(&worlds, options.ranks);

    let mut symbols = Symbols::default();
    let mut sites = Sites::default();
    let mut readings = Vec::new();
    for input in &inputs {
        sites.join(&input.trace.bundle.sites);
        readings.push(Reading::new(&input.trace.bundle, &mut symbols)?);
    }
    let mut threads: Vec<u32> = Vec::new();
    for (reading, ranks) in readings.iter().zip(&worlds) {
        threads.extend((0..*ranks).flat_map(|rank| reading.threads(rank)));
    }
    threads.sort_unstable();
    threads.dedup();

    let mut report = Report {
        from: worlds.clone(),
        ranks: options.ranks,
        found: Found::default(),
        problems: Vec::new(),
        unconfirmed: Vec::new(),
        next: None,
    };
    let learnt = threads.len() as u64 * worlds.iter().map(|ranks| u64::from(*ranks)).sum::<u64>();
    let all = learnt + u64::from(options.ranks);
    let mut done = 0;
    let mut read: Vec<Vec<World>> = Vec::new();
    for &thread in &threads {
        let mut of_thread = Vec::new();
        for (reading, &ranks) in readings.iter_mut().zip(&worlds) {
            let mut members = Vec::with_capacity(ranks as usize);
            for rank in 0..ranks {
                members.push(reading.member(rank, thread, &symbols)?);
                done += 1;
                progress(done, all);
            }
            of_thread.push(World { ranks, members, places: Vec::new() });
        }
        read.push(of_thread);
    }
    let created = symbols.all.iter().any(|symbol| symbol.layout.function.name == "MPI_Dims_create");
    let named: Vec<_> = read.iter().flatten().flat_map(|world| dims(world, &symbols)).collect();
    frame.prefer(&named, created);
    let target: Vec<Place> = frame.places(options.ranks);
    let mut models: Vec<(u32, Model)> = Vec::new();
    let (threads, all_threads) = (threads.len(), threads);
    for (thread, mut of_thread) in all_threads.into_iter().zip(read) {
        for world in &mut of_thread {
            world.places = frame.places(world.ranks);
        }
        let mut learner = Learner {
            frame: &frame,
            symbols: &symbols,
            worlds: &of_thread,
            target: &target,
            found: report.found,
            problems: Vec::new(),
            unconfirmed: Vec::new(),
        };
        let model = learner.learn();
        report.found = learner.found;
        report.problems.append(&mut learner.problems);
        report.unconfirmed.append(&mut learner.unconfirmed);
        models.extend(model.map(|model| (thread, model)));
    }
    let whole = !models.is_empty() && models.len() == threads;
    if !whole && let Some(error) = stranger(&inputs, &symbols) {
        return Err(error);
    }
    report.problems = problem::joined(std::mem::take(&mut report.problems));
    report.unconfirmed = problem::joined(std::mem::take(&mut report.unconfirmed));
    if !report.problems.is_empty() || !report.unconfirmed.is_empty() {
        let settled_by = report.problems.iter().find_map(|problem| problem.settled_by);
        report.next = settled_by.or_else(|| frame.others().first().map(|(ranks, _)| *ranks));
    }
    let may_write = report.problems.is_empty() || options.guess && whole;
    if !may_write {
        return Ok(Outcome { report, trace: None });
    }
    let folding = folding(&largest.trace.meta);
    let predictor = Predictor { symbols: &symbols, sites: &sites, folding, models: &models };
    let mut bundle = all_ranks(&predictor, &target, &mut |done| progress(learnt + done, all))?;
    bundle.sites = sites;
    if matches!(folding, Folding::Loops { together: true, .. }) {
        bundle.score().map_err(Error::Bundle)?;
    }
    bundle.canonical().map_err(Error::Bundle)?;
    let meta = meta(&largest.trace.meta, &inputs, &report);
    Ok(Outcome { report, trace: Some(Trace { meta, bundle }) })
}

/// Where no order was found: a function that one of the traces has and another has not.
fn stranger(inputs: &[&Input<'_>], symbols: &Symbols) -> Option<Error> {
    let functions = |input: &Input<'_>| -> BTreeSet<&'static str> {
        let entries = input.trace.bundle.symbols.iter();
        entries.filter_map(|entry| symbols.layout(entry)).map(|layout| layout.function.name).collect()
    };
    let all: Vec<BTreeSet<&'static str>> = inputs.iter().map(|input| functions(input)).collect();
    for (one, has) in inputs.iter().zip(&all) {
        for (other, lacks) in inputs.iter().zip(&all) {
            if let Some(name) = has.difference(lacks).next() {
                return Some(Error::Programs(one.name.clone(), name, other.name.clone()));
            }
        }
    }
    None
}

/// The grids that a rank of a run names.
fn dims(world: &World, symbols: &Symbols) -> Vec<(u32, Vec<u32>)> {
    let mut found = Vec::new();
    let Some(member) = world.members.first().and_then(Option::as_ref) else { return found };
    for (node, lanes) in member.loops.nodes.iter().zip(&member.lanes) {
        let Node::Event(symbol) = node else { continue };
        let layout = &symbols.all[*symbol as usize].layout;
        for (_, seen) in (0..).zip(lanes).filter(|(lane, _)| learn::is_dims(layout, *lane)) {
            let side = |k: u32| {
                if seen.values.len() == 1 { seen.values.first() } else { seen.values.get(k as usize) }
            };
            let sides = (0..seen.per).map(|k| side(k).and_then(|side| u32::try_from(*side).ok()));
            found.extend(sides.collect::<Option<Vec<u32>>>().map(|sides| (world.ranks, sides)));
        }
    }
    found
}

fn check(inputs: &[&Input<'_>], options: Options) -> Result<(), Error> {
    if options.ranks == 0 {
        return Err(Error::NoRanks);
    }
    if u64::from(options.ranks) > MOST_RANKS {
        return Err(Error::TooManyRanks(options.ranks));
    }
    let [first, .., _] = inputs else { return Err(Error::OneTrace) };
    for pair in inputs.windows(2) {
        let ranks = pair[0].trace.meta.ranks;
        if ranks == pair[1].trace.meta.ranks {
            return Err(Error::SameRanks(pair[0].name.clone(), pair[1].name.clone(), ranks));
        }
    }
    let option = |input: &Input<'_>, name: &str| -> Option<String> {
        input.trace.meta.options.iter().find(|(known, _)| known == name).map(|(_, setting)| setting.clone())
    };
    for input in inputs {
        let meta = &input.trace.meta;
        if meta.extrapolated().is_some() {
            return Err(Error::Extrapolated(input.name.clone()));
        }
        if !meta.complete {
            return Err(Error::Incomplete(input.name.clone()));
        }
        if !meta.split {
            return Err(Error::NotSplit(input.name.clone()));
        }
        if let Some(setting) = option(input, "ranks") {
            return Err(Error::Missing(input.name.clone(), format!("--ranks {setting}")));
        }
        for name in TELLING {
            let (mine, theirs) = (option(first, name), option(input, name));
            if mine != theirs {
                let (has, lacks) = if mine.is_some() { (first, input) } else { (input, first) };
                let setting = mine.or(theirs).unwrap_or_default();
                return Err(Error::Options(
                    has.name.clone(),
                    format!("--{name} {setting}"),
                    lacks.name.clone(),
                ));
            }
        }
    }
    Ok(())
}

fn folding(meta: &Meta) -> Folding {
    let fold = meta.options.iter().find(|(name, _)| name == "fold");
    fold.and_then(|(_, setting)| setting.parse().ok()).unwrap_or_default()
}

/// At any time there is at most one branch of each size, as on the ranks of one way up.
fn all_ranks(
    predictor: &Predictor<'_>,
    target: &[Place],
    progress: &mut dyn FnMut(u64),
) -> Result<Bundle, Error> {
    let mut stack: Vec<(u32, Bundle)> = Vec::new();
    for (done, place) in (1u64..).zip(target) {
        let mut size = 1;
        let mut branch = predictor.rank(place)?;
        while let Some((_, left)) = stack.pop_if(|(left, _)| *left == size) {
            branch = merge(left, branch).map_err(Error::Bundle)?;
            size *= 2;
        }
        stack.push((size, branch));
        progress(done);
    }
    let (_, mut last) = stack.pop().ok_or(Error::NoRanks)?;
    while let Some((_, left)) = stack.pop() {
        last = merge(left, last).map_err(Error::Bundle)?;
    }
    Ok(last)
}

fn meta(of: &Meta, inputs: &[&Input<'_>], report: &Report) -> Meta {
    let ranks: Vec<String> = report.from.iter().map(u32::to_string).collect();
    let names: Vec<String> =
        inputs.iter().map(|input| format!("{} ({} ranks)", input.name, input.trace.meta.ranks)).collect();
    let mut notes = vec![format!("extrapolated, not recorded; from {}", names.join(", "))];
    let guessed = report.problems.iter();
    notes.extend(
        guessed.map(|problem| {
            format!("guessed, as no law was found: {} {}", problem.function, problem.parameter)
        }),
    );
    let unconfirmed = report.unconfirmed.iter();
    notes.extend(unconfirmed.map(|law| format!("{}: {} {}", law.why, law.function, law.parameter)));
    let options = of.options.iter().filter(|(name, _)| name != "time").cloned();
    Meta {
        refrain_version: of.refrain_version.clone(),
        command: of.command.clone(),
        library: of.library.clone(),
        abi: of.abi.clone(),
        ranks: report.ranks,
        options: options
            .chain([(EXTRAPOLATED.to_owned(), format!("from {} ranks", ranks.join(", ")))])
            .collect(),
        split: true,
        timed: false,
        complete: true,
        notes,
        ..Meta::default()
    }
}
