//! The flat form of the papers: a row for each event, with the loops that begin there (004, figures 1 and 5).

use std::io::Write;

use refrain_fold::ranks::RankList;
use refrain_tracefile::Trace;

use super::together::Together;
use super::tree::Tree;
use super::{Options, cohorts};
use crate::error::Error;

/// `MPI_Isend()(2,5)[0](3,6)[1]`: behind the first event of a loop how many events an iteration has and how often the
/// loop runs, from the outermost loop to the innermost; in brackets the ranks it holds for, where they differ.
pub fn write_events(trace: &Trace, options: &Options, out: &mut dyn Write) -> Result<(), Error> {
    for (at, (cohort, rank)) in cohorts(trace, options)?.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let tree = Tree::new(&trace.bundle, cohort, *rank)?;
        let rows = rows(&tree);
        let width = rows.iter().map(|(ranks, _)| ranks.len()).max().unwrap_or(0).max("Rank".len());
        writeln!(out, "{:<width$}  Event", "Rank")?;
        for (ranks, event) in rows {
            writeln!(out, "{ranks:<width$}  {event}")?;
        }
    }
    out.flush()?;
    Ok(())
}

fn rows(tree: &Tree) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut heads: Vec<(u32, String)> = Vec::new();
    for (node, branch) in tree.nodes.iter().enumerate() {
        heads.extend(head(tree, node));
        let Some(symbol) = branch.symbol() else { continue };
        let name = tree.function(symbol).map_or("?", |function| function.name);
        // Loops of different ranks that begin here go by their ranks, those of one rank as they nest.
        heads.sort_by_key(|head| head.0);
        let heads: String = heads.drain(..).map(|head| head.1).collect();
        rows.push((branch.ranks().to_string(), format!("{name}(){heads}")));
    }
    rows
}

/// `(members,times)` of a node for each list of ranks it is not the same on, with the first of them; nothing where it
/// always runs once.
fn head(tree: &Tree, node: usize) -> Vec<(u32, String)> {
    let branch = &tree.nodes[node];
    // Ranks that come by, by what they find.
    let mut found = Together::new();
    for turns in &branch.turns {
        let members = members(tree, node, turns.ranks.iter().next().unwrap_or(0));
        // Never at all is said by the ranks beside it.
        if turns.runs == 0 || !branch.is_loop() && turns.low == 1 && turns.high == 1 {
            continue;
        }
        // A loop around what has none: the other ranks' loop.
        if branch.is_loop() && turns.low == 1 && turns.high == 1 && branch.turns.len() > 1 {
            continue;
        }
        found.add(format!("({members},{})", turns.vector), &turns.ranks);
    }
    match &found.finish()[..] {
        [(text, ranks)] if *ranks == branch.ranks() => vec![(0, text.clone())],
        several => {
            let first = |ranks: &RankList| ranks.iter().next().unwrap_or(0);
            several.iter().map(|(text, ranks)| (first(ranks), format!("{text}[{ranks}]"))).collect()
        }
    }
}

/// Events of a body that a rank ever makes.
fn members(tree: &Tree, node: usize, rank: u32) -> usize {
    tree.events(node).filter(|&(at, _)| tree.runs_on(at, rank) > 0).count()
}
