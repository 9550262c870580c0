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
use refrain_sites::Names;
use refrain_tracefile::Trace;

use super::place::{How, Where, stack};
use super::tree::Known;
use super::{Options, View, cohorts};
use crate::dump::place_json;
use crate::error::Error;
use crate::json::{self, Object};

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
    let mut text = String::new();
    let mut object = Object::document(&mut text, "loops");
    object.plain("ranks", trace.meta.ranks);
    json::array(&views, object.key("kinds"), |view, out| kind(trace, names, view, out));
    object.end();
    text.push('\n');
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

fn kind(trace: &Trace, names: &dyn Names, view: &View, out: &mut String) {
    let tree = &view.tree;
    let mut object = Object::new(out);
    object.plain("thread", tree.cohort.thread).text("ranks", &tree.ranks.to_string());
    object.text("folded", if tree.found { "grammar" } else { "loops" });
    object.text("loops", if tree.of_source { "source" } else { "folded" });
    match &view.steps {
        None => object.key("steps").push_str("null"),
        Some(found) => {
            let mut steps = Object::new(object.key("steps"));
            steps.plain("most", found.hold_most());
            steps.plain("calls", found.calls).plain("all_calls", found.all_calls);
            json::array(&found.loops, steps.key("loops"), |(node, count, ranks), out| {
                let mut one = Object::new(out);
                one.text("ranks", &ranks.to_string()).plain("node", node).plain("steps", count.steps);
                one.plain("turns", count.turns).plain("outside", count.outside);
                one.plain("at_least", count.at_least);
                match &view.places[*node] {
                    Some(place) => at(place, one.key("at")),
                    None => one.key("at").push_str("null"),
                }
                one.end();
            });
            steps.end();
        }
    }
    json::array(&view.flags, object.key("flags"), |flag, out| {
        let mut one = Object::new(out);
        one.plain("node", flag.node).text("text", &flag.text);
        one.end();
    });
    json::array(0..tree.nodes.len(), object.key("nodes"), |node, out| {
        node_json(trace, names, view, node, out)
    });
    object.end();
}

fn node_json(trace: &Trace, names: &dyn Names, view: &View, node: usize, out: &mut String) {
    let branch = &view.tree.nodes[node];
    let mut object = Object::new(out);
    match branch.node {
        Node::Loop { inside } => {
            object.plain("inside", inside);
        }
        Node::Event(symbol) => {
            object.text("call", view.tree.function(symbol).map_or("?", |f| f.name));
            let mut params = Object::new(object.key("params"));
            for param in view.params(&trace.bundle, symbol).iter() {
                let text = param.text();
                match text.parse::<i64>() {
                    Ok(number) => params.plain(param.name, number),
                    Err(_) => params.text(param.name, &text),
                };
            }
            params.end();
            let frames = stack(&trace.bundle, symbol);
            let places = frames.iter().flat_map(|frame| names.places(*frame).to_vec());
            json::array(places, object.key("site"), |place, out| place_json(&place, out));
        }
    }
    json::array(&branch.turns, object.key("times"), |turns, out| {
        let mut one = Object::new(out);
        one.text("ranks", &turns.ranks.to_string()).plain("reached", turns.reached).plain("runs", turns.runs);
        one.plain("low", turns.low).plain("high", turns.high);
        one.text(
            "known",
            match turns.known {
                Known::All => "all",
                Known::Mean => "mean",
                Known::Each => "each",
                Known::Total => "total",
                Known::AtLeast => "at least",
            },
        );
        one.text("vector", &turns.vector);
        one.end();
    });
    if let Some(place) = &view.places[node] {
        at(place, object.key("at"));
    }
    object.end();
}

fn at(place: &Where, out: &mut String) {
    let mut object = Object::new(out);
    object.text(
        "kind",
        match place.how {
            How::Loop => "loop",
            How::Recursion => "recursion",
            How::Calls => "calls",
        },
    );
    if let Some(function) = &place.function {
        object.text("function", function);
    }
    if let Some(file) = &place.file {
        object.text("file", file);
    }
    if let Some((first, last)) = place.lines {
        object.plain("first", first).plain("last", last);
    }
    object.end();
}
