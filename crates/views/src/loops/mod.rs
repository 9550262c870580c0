//! The structure of a program for people: loops within loops, with their trip counts, calls and source lines.
//!
//! Works on the folded form: trees of loops are read as they are, those of rules are folded into loops first, from the
//! calls of one rank of each kind.

mod chronology;
mod events;
mod flags;
mod follows;
mod json;
mod outline;
mod params;
mod place;
mod rules;
mod source;
mod steps;
mod text;
mod together;
mod tree;
mod turns;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use refrain_fold::bundle::{Bundle, Cohort, OfThread};
use refrain_sites::Names;
use refrain_tracefile::Trace;

use crate::error::Error;
use crate::select::Numbers;
use params::{Comms, Param};
use place::Where;
use steps::Steps;
use tree::{Branch, Tree};

pub use events::write_events;
pub use json::write_json;
pub use outline::{Outline, outline};
pub use text::write_text;

/// What is looked at, and how closely.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Each of these by itself.
    pub ranks: Option<Numbers>,
    pub threads: Option<Numbers>,
    /// Loops within so many loops are shown, the others counted.
    pub depth: Option<usize>,
    /// Nothing is left out.
    pub all: bool,
    /// The loops as they are folded, not those of the source.
    pub folded: bool,
}

/// One cohort: ranks (of one thread number) that have a tree in common.
struct View<'a> {
    tree: Tree<'a>,
    /// Ranks of the run, recorded or not.
    world: u32,
    /// By node.
    places: Vec<Option<Where>>,
    steps: Option<Steps>,
    /// What the other view says of the steps, if that is something else.
    other: Option<String>,
    flags: Vec<flags::Flag>,
    comms: Comms,
    /// Calls on all ranks.
    calls: u64,
    params: RefCell<HashMap<u32, Rc<[Param]>>>,
}

impl<'a> View<'a> {
    fn new(
        trace: &'a Trace,
        names: &dyn Names,
        (cohort, rank): (&'a OfThread<'a>, Option<u32>),
        options: &Options,
    ) -> Result<View<'a>, Error> {
        let bundle = &trace.bundle;
        let tree = Tree::new(bundle, cohort, rank)?;
        let places = place::locate(bundle, names, &tree);
        let steps = steps::steps(bundle, names, &tree, &places);
        let found = source::by_source(bundle, names, &tree, &places);
        let (mut shown, mut other) = ((tree, places, steps), None);
        if let Some((tree, places)) = found {
            let steps = steps::steps(bundle, names, &tree, &places);
            let mut source = (tree, places, steps);
            if !options.folded {
                std::mem::swap(&mut shown, &mut source);
            }
            let (_, places, steps) = &source;
            let finding = |(_, places, steps): &(Tree, Vec<Option<Where>>, Option<Steps>)| {
                let each = steps.iter().flat_map(|steps| &steps.loops);
                let each = each.map(|(node, count, ranks)| {
                    let place = places[*node].as_ref().map(ToString::to_string);
                    (count.steps, count.at_least, place, ranks.clone())
                });
                each.collect::<Vec<_>>()
            };
            if finding(&shown) != finding(&source) {
                other = Some(match steps {
                    None => "none".to_string(),
                    Some(steps) => text::finding(&source.0.ranks, places, steps),
                });
            }
        }
        let (tree, places, steps) = shown;
        let mut view = View {
            comms: Comms::of(bundle, &tree),
            calls: tree.nodes.iter().filter(|b| !b.is_loop()).map(Branch::runs).fold(0, u64::saturating_add),
            tree,
            world: trace.meta.ranks,
            places,
            steps,
            other,
            flags: Vec::new(),
            params: RefCell::default(),
        };
        let of = |symbol: u32| view.params(bundle, symbol).to_vec();
        view.flags = flags::flags(bundle, names, &view.tree, trace.meta.ranks, &of);
        Ok(view)
    }

    fn params(&self, bundle: &Bundle, symbol: u32) -> Rc<[Param]> {
        let known = self.params.borrow().get(&symbol).cloned();
        known.unwrap_or_else(|| {
            let params: Rc<[Param]> =
                params::params(bundle, &self.tree, &self.comms, self.world, symbol).into();
            self.params.borrow_mut().insert(symbol, params.clone());
            params
        })
    }
}

/// Loops are found in so many calls of a thread: that takes seconds. Where there are more, what repeats in its rules is a loop.
const MOST_CALLS: u64 = 1 << 26;
/// In so many of all threads together.
const MOST_IN_ALL: u64 = 1 << 31;

fn is_tree(bundle: &Bundle, cohort: &Cohort) -> bool {
    bundle.structures.get(cohort.structure as usize).is_some_and(|structure| structure.loops().is_some())
}

/// How many calls a rank made; polls that found nothing do not count.
fn calls(bundle: &Bundle, cohort: &Cohort, rank: u32) -> u64 {
    bundle.counts(cohort, rank).iter().fold(0, |sum, (_, times)| sum.saturating_add(*times))
}

/// The cohorts that were asked for, by thread and lowest rank: all ranks of each, or one.
fn cohorts<'a>(trace: &'a Trace, options: &Options) -> Result<Vec<(OfThread<'a>, Option<u32>)>, Error> {
    let bundle = &trace.bundle;
    if let Some(rank) = options.ranks.as_ref().and_then(|ranks| ranks.beyond(trace.meta.ranks)) {
        let have = format!("0 to {}", trace.meta.ranks.saturating_sub(1));
        return Err(Error::NoSuch { what: "rank", number: rank, have });
    }
    let threads = bundle.most_threads();
    if let Some(thread) = options.threads.as_ref().and_then(|asked| asked.beyond(threads)) {
        let have = format!("0 to {}", threads.saturating_sub(1));
        return Err(Error::NoSuch { what: "thread", number: thread, have });
    }
    let mut cohorts = Vec::new();
    for cohort in bundle.of_threads() {
        if options.threads.as_ref().is_some_and(|threads| !threads.contains(cohort.thread)) {
            continue;
        }
        match &options.ranks {
            None => cohorts.push((cohort, None)),
            Some(asked) => {
                let ranks = cohort.ranks.iter().filter(|rank| asked.contains(*rank));
                cohorts.extend(ranks.map(|rank| (cohort.clone(), Some(rank))));
            }
        }
    }
    let first = |(cohort, rank): &(OfThread<'_>, Option<u32>)| rank.or_else(|| cohort.ranks.first());
    cohorts.sort_by_key(|each| (each.0.thread, first(each)));
    match to_read(bundle, &cohorts) > MOST_IN_ALL {
        true => Err(Error::TooMany { calls: MOST_IN_ALL, most: MOST_IN_ALL }),
        false => Ok(cohorts),
    }
}

/// Rules are gone through call by call, for one rank of each kind, unless their calls are too many.
fn to_read(bundle: &Bundle, cohorts: &[(OfThread<'_>, Option<u32>)]) -> u64 {
    let by_rules = cohorts.iter().filter(|(cohort, _)| !is_tree(bundle, cohort));
    let calls = by_rules.map(|(cohort, rank)| {
        let calls = calls(bundle, cohort, rank.or_else(|| cohort.ranks.first()).unwrap_or(0));
        if calls > MOST_CALLS { 1 } else { calls }
    });
    calls.fold(0, u64::saturating_add)
}

/// How many calls are gone through one by one to find the loops.
pub fn calls_to_read(trace: &Trace, options: &Options) -> u64 {
    cohorts(trace, options).map_or(0, |cohorts| to_read(&trace.bundle, &cohorts))
}
