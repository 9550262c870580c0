//! The structure as one JSON object.
//!
//! `{"schema":"refrain-loops-1","ranks":4,"kinds":[{"thread":0,"ranks":"0-3","folded":"loops","loops":"source","steps":{...},"flags":[{"node":3,"text":"..."}],
//! "nodes":[...]}]}`. Nodes are in the order of the program. An event has `call`, `params` (a number where it is one and the same in all calls of all ranks, or a text), `site` (the
//! stack, outermost first: `function`, `file`, `line`, or `module` and `offset`); a loop has `inside`, which is how many of
//! the nodes that follow are within it. Both have `times`: for each list of ranks `ranks`, `reached` (how often its place
//! is), `runs`, `low`, `high`, `known` (`all` of it; the `mean`, which is between low and high; `each` time it runs at all, but not
//! how often it was reached; only the `total`; a loop runs `at least` that often) and `vector`, all of its times in the notation of the papers; what repeats may have `at`. `loops`
//! are those of the `source`, or as they are `folded` if the code is not at hand. `steps` are time steps if their loops hold
//! `most` of the calls, and else the largest repetition.

use std::io::Write;

use refrain_fold::loops::Node;
use refrain_fold::ranks::RankList;
use refrain_sites::{Location, Names};
use refrain_tracefile::Trace;
use serde::{Serialize, Serializer};

use super::flags::Flag;
use super::place::{How, Where, stack};
use super::steps::Count;
use super::tree::Turns;
use super::{Options, View, cohorts};
use crate::dump::At;
use crate::error::Error;
use crate::json;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    ranks: u32,
    kinds: Vec<Kind<'a>>,
}

#[derive(Serialize)]
struct Kind<'a> {
    thread: u32,
    #[serde(serialize_with = "json::shown")]
    ranks: &'a RankList,
    folded: &'static str,
    loops: &'static str,
    steps: Option<Steps<'a>>,
    flags: &'a [Flag],
    nodes: Nodes<'a>,
}

#[derive(Serialize)]
struct Steps<'a> {
    most: bool,
    calls: u64,
    all_calls: u64,
    loops: Vec<StepLoop<'a>>,
}

#[derive(Serialize)]
struct StepLoop<'a> {
    #[serde(serialize_with = "json::shown")]
    ranks: &'a RankList,
    node: usize,
    steps: u64,
    turns: u64,
    outside: u64,
    at_least: bool,
    at: Option<Around<'a>>,
}

/// Where a loop is in the source.
#[derive(Serialize)]
struct Around<'a> {
    kind: How,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<u32>,
}

impl<'a> Around<'a> {
    fn of(place: &'a Where) -> Around<'a> {
        Around {
            kind: place.how,
            function: place.function.as_deref(),
            file: place.file.as_deref(),
            first: place.lines.map(|lines| lines.0),
            last: place.lines.map(|lines| lines.1),
        }
    }
}

/// As they are written, one at a time: there may be many.
struct Nodes<'a> {
    trace: &'a Trace,
    names: &'a dyn Names,
    view: &'a View<'a>,
}

#[derive(Serialize)]
struct OneNode<'a> {
    #[serde(flatten)]
    what: What,
    times: &'a [Turns],
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Around<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum What {
    Loop {
        inside: u32,
    },
    Event {
        call: &'static str,
        #[serde(serialize_with = "json::pairs")]
        params: Vec<(&'static str, Param)>,
        #[serde(serialize_with = "by_name")]
        site: Vec<Location>,
    },
}

/// A number where it is one and the same in all calls of all ranks.
#[derive(Serialize)]
#[serde(untagged)]
enum Param {
    Number(i64),
    Text(String),
}

fn by_name<S: Serializer>(places: &[Location], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(places.iter().map(At::of))
}

pub fn write_json(
    trace: &Trace,
    names: &dyn Names,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut views = Vec::new();
    let cohorts = cohorts(trace, options)?;
    for (cohort, rank) in &cohorts {
        views.push(View::new(trace, names, (cohort, *rank), options)?);
    }
    let kinds = views.iter().map(|view| Kind::of(trace, names, view)).collect();
    let document = Document { schema: "refrain-loops-1", ranks: trace.meta.ranks, kinds };
    Ok(json::document(&document, out)?)
}

impl<'a> Kind<'a> {
    fn of(trace: &'a Trace, names: &'a dyn Names, view: &'a View<'a>) -> Kind<'a> {
        let tree = &view.tree;
        Kind {
            thread: tree.cohort.thread,
            ranks: &tree.ranks,
            folded: if tree.found { "grammar" } else { "loops" },
            loops: if tree.of_source { "source" } else { "folded" },
            steps: view.steps.as_ref().map(|found| Steps {
                most: found.hold_most(),
                calls: found.calls,
                all_calls: found.all_calls,
                loops: found.loops.iter().map(|one| StepLoop::of(view, one)).collect(),
            }),
            flags: &view.flags,
            nodes: Nodes { trace, names, view },
        }
    }
}

impl<'a> StepLoop<'a> {
    fn of(view: &'a View<'_>, (node, count, ranks): &'a (usize, Count, RankList)) -> StepLoop<'a> {
        StepLoop {
            ranks,
            node: *node,
            steps: count.steps,
            turns: count.turns,
            outside: count.outside,
            at_least: count.at_least,
            at: view.places[*node].as_ref().map(Around::of),
        }
    }
}

impl Serialize for Nodes<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq((0..self.view.tree.nodes.len()).map(|node| self.one(node)))
    }
}

impl Nodes<'_> {
    fn one(&self, node: usize) -> OneNode<'_> {
        let branch = &self.view.tree.nodes[node];
        let what = match branch.node {
            Node::Loop { inside } => What::Loop { inside },
            Node::Event(symbol) => What::Event {
                call: self.view.tree.function(symbol).map_or("?", |f| f.name),
                params: self.params(symbol),
                site: self.site(symbol),
            },
        };
        OneNode { what, times: &branch.turns, at: self.view.places[node].as_ref().map(Around::of) }
    }

    fn params(&self, symbol: u32) -> Vec<(&'static str, Param)> {
        let of_one = |text: String| text.parse().map_or(Param::Text(text), Param::Number);
        let all = self.view.params(&self.trace.bundle, symbol);
        all.iter().map(|param| (param.name, of_one(param.text()))).collect()
    }

    fn site(&self, symbol: u32) -> Vec<Location> {
        let frames = stack(&self.trace.bundle, symbol);
        frames.iter().flat_map(|frame| self.names.places(*frame).to_vec()).collect()
    }
}
