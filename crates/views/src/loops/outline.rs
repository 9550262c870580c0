//! The structure line by line, for programs that show it in their own way.

use std::collections::HashSet;

use refrain_fold::ranks::RankList;
use refrain_sites::Names;
use refrain_tracefile::Trace;

use super::text::{DEEPEST, Writer};
use super::{Options, View, cohorts};
use crate::error::Error;

/// Loops and calls of one kind of ranks, one in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    pub ranks: RankList,
    pub thread: u32,
    /// Who, and what was found: the time steps, what grows with the ranks.
    pub heading: Vec<String>,
    /// In how many loops, and what.
    pub lines: Vec<(usize, String)>,
    /// The symbol of a call that the first of the ranks makes once in every time step, and nowhere else.
    pub step: Option<u32>,
}

/// A call that marks the steps of a rank.
fn marks(view: &View<'_>, rank: u32) -> Option<u32> {
    let steps = view.steps.as_ref()?;
    let (node, count, _) = steps.loops.iter().find(|(_, _, ranks)| ranks.contains(rank))?;
    let tree = &view.tree;
    let made = |symbol: u32| -> u64 {
        let nodes = (0..tree.nodes.len()).filter(|at| tree.nodes[*at].symbol() == Some(symbol));
        nodes.map(|at| tree.runs_on(at, rank)).sum()
    };
    let symbols = tree.events(*node).map(|(_, symbol)| symbol);
    symbols.filter(|_| count.steps > 1).find(|symbol| made(*symbol) == count.steps)
}

/// The text of [`write_text`](super::write_text) for programs that show it in their own way: of at most so many kinds of ranks, with at most
/// `lines` lines for each.
pub fn outline(trace: &Trace, names: &dyn Names, kinds: usize, lines: usize) -> Result<Vec<Outline>, Error> {
    let options = Options::default();
    let all = cohorts(trace, &options)?;
    let mut outlines = Vec::new();
    for (cohort, rank) in all.iter().take(kinds) {
        let view = View::new(trace, names, (cohort, *rank), &options)?;
        let text = |options: &Options| {
            let (mut text, bodies, flagged) = (String::new(), HashSet::new(), &HashSet::new());
            let bundle = &trace.bundle;
            let mut writer =
                Writer { bundle, names, view: &view, options, text: &mut text, nested: 0, bodies, flagged };
            writer.heading(trace, all.len());
            writer.body(None, 0, 1);
            text
        };
        let mut shown = text(&options);
        for depth in (0..=DEEPEST).rev() {
            if shown.lines().count() <= lines {
                break;
            }
            shown = text(&Options { depth: Some(depth), ..options.clone() });
        }
        let (heading, body) = shown.split_once("\n\n").unwrap_or((&shown, ""));
        let indented = |line: &str| {
            let text = line.trim_start_matches(' ');
            ((line.len() - text.len()) / 2, text.to_owned())
        };
        outlines.push(Outline {
            ranks: view.tree.ranks.clone(),
            thread: view.tree.cohort.thread,
            heading: heading.lines().map(str::to_owned).collect(),
            lines: body.lines().take(lines).map(indented).collect(),
            step: view.tree.ranks.first().and_then(|rank| marks(&view, rank)),
        });
    }
    Ok(outlines)
}
