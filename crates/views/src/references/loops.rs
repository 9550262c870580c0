//! The loops of a thread, with what their instructions refer to.

use std::fmt::Write as _;
use std::io::Write;

use refrain_fold::bundle::{Bundle, Structure};
use refrain_fold::grammar::{self, Grammar};
use refrain_fold::loops::Node;
use refrain_fold::ranks::RankList;
use refrain_references::{Access, Block, Symbol, symbols};
use refrain_sites::Names;
use serde::Serialize;

use super::lanes::{by_symbol, nest, shape};
use super::{Recorded, shown};
use crate::error::Error;
use crate::human::{plural, thousands};
use crate::json;

/// What has less than one part of so many of a thread's references is left out, unless all is asked for.
const SHARE: u64 = 100;
/// Lines that are shown of a kind of threads, unless all are asked for.
const MOST_LINES: usize = 200;
/// Loops within loops that are gone into.
const DEEPEST: usize = 64;

#[derive(Debug, Serialize)]
struct Document {
    schema: &'static str,
    kinds: Vec<Kind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Member {
    rank: u32,
    thread: u32,
}

/// Threads with the same structure.
#[derive(Debug, Serialize)]
struct Kind {
    threads: Vec<Member>,
    /// All of the first of them.
    references: u64,
    body: Vec<Item>,
    /// Lines that were left out, and how many references they stand for.
    more: u64,
    elsewhere: u64,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Item {
    Loop { times: String, body: Vec<Item> },
    Reference(Reference),
    Stretch { stretches: u64 },
}

#[derive(Debug, Serialize)]
struct Reference {
    access: &'static str,
    size: u32,
    place: String,
    /// Of the first of the threads.
    addresses: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    strides: Vec<Stride>,
}

/// In words, and as strides where it is nested ones.
type Shape = (String, Vec<Stride>);

/// How far apart, and how often; nothing where it goes on.
#[derive(Debug, Clone, Serialize)]
struct Stride {
    step: i64,
    count: Option<u64>,
}

struct Tree<'a> {
    symbols: Vec<Symbol>,
    names: &'a dyn Names,
    /// What each reference of a symbol is, as an item.
    shapes: Vec<Vec<Shape>>,
    /// What stands for fewer references is left out.
    least: u64,
    left: usize,
    more: u64,
    elsewhere: u64,
}

impl Tree<'_> {
    /// A block that runs so often, as its references.
    fn block(&mut self, symbol: u32, runs: u64, into: &mut Vec<Item>) {
        if let Symbol::Block { block, .. } = &self.symbols[symbol as usize] {
            let lines = data(block) as u64;
            let references = runs.saturating_mul(lines);
            if references < self.least {
                self.more += lines;
                self.elsewhere = self.elsewhere.saturating_add(references);
                return;
            }
        }
        match &self.symbols[symbol as usize] {
            Symbol::Mark => {}
            Symbol::Stretch => {
                if self.take() {
                    into.push(Item::Stretch { stretches: 1 });
                }
            }
            Symbol::Block { block, start } => {
                let (block, start) = (block.clone(), *start);
                let mut lane = 0;
                for (reference, has_lane) in block.references.iter().zip(block.lanes()) {
                    let nth = lane;
                    lane += usize::from(has_lane);
                    if reference.access == Access::Fetch || !self.take() {
                        continue;
                    }
                    let place = refrain_fold::bundle::sites::Frame {
                        offset: start.offset.wrapping_add(reference.at.into()),
                        ..start
                    };
                    let (addresses, strides) =
                        self.shapes[symbol as usize].get(nth).cloned().unwrap_or_default();
                    into.push(Item::Reference(Reference {
                        access: reference.access.name(),
                        size: reference.size,
                        place: shown(self.names, place),
                        addresses,
                        strides,
                    }));
                }
            }
        }
    }

    fn take(&mut self) -> bool {
        if self.left == 0 {
            self.more += 1;
            return false;
        }
        self.left -= 1;
        true
    }

    /// A rule that runs so often.
    fn rules(
        &mut self,
        grammar: &Grammar,
        body: &[grammar::Item],
        (depth, runs): (usize, u64),
        into: &mut Vec<Item>,
    ) {
        for item in body {
            if self.left == 0 || depth > DEEPEST {
                self.more += 1;
                continue;
            }
            let mut inside = Vec::new();
            let runs = runs.saturating_mul(item.count);
            match item.symbol {
                grammar::Symbol::Terminal(symbol) => self.block(symbol, runs, &mut inside),
                grammar::Symbol::Rule(rule) => {
                    let rule = grammar.rules.get(rule as usize).map_or(&[][..], Vec::as_slice);
                    self.rules(grammar, rule, (depth + 1, runs), &mut inside);
                }
            }
            match item.count {
                _ if inside.is_empty() => {}
                1 => into.append(&mut inside),
                count => into.push(Item::Loop { times: format!("{} times", thousands(count)), body: inside }),
            }
        }
    }

    /// Nodes of a tree, with how often each runs, in words and in all.
    fn nodes(&mut self, nodes: &[Node], times: &[(String, u64)], into: &mut Vec<Item>) {
        let mut at = 0;
        while at < nodes.len() {
            let mut inside = Vec::new();
            let next = match nodes[at] {
                Node::Event(symbol) => {
                    self.block(symbol, times[at].1, &mut inside);
                    at + 1
                }
                Node::Loop { inside: count } => {
                    let end = (at + 1 + count as usize).min(nodes.len());
                    self.nodes(&nodes[at + 1..end], &times[at + 1..end], &mut inside);
                    end
                }
            };
            match times[at].0.as_str() {
                _ if inside.is_empty() => {}
                "once" => into.append(&mut inside),
                times => into.push(Item::Loop { times: times.to_owned(), body: inside }),
            }
            at = next;
        }
    }
}

fn kinds(recorded: &Recorded, names: &dyn Names, all: bool, most: usize) -> Result<Vec<Kind>, Error> {
    let bundle = &recorded.trace.bundle;
    let mut kinds = Vec::new();
    for cohort in &bundle.cohorts {
        let Some(first) = cohort.ranks.first() else { continue };
        let Some(structure) = bundle.structures.get(cohort.structure as usize) else { continue };
        let lanes = by_symbol(bundle, cohort);
        let counts = bundle.counts(cohort, first);
        let all_symbols = symbols(bundle)?;
        let of = |&(symbol, runs): &(u32, u64)| match &all_symbols[symbol as usize] {
            Symbol::Block { block, .. } => runs.saturating_mul(data(block) as u64),
            Symbol::Stretch | Symbol::Mark => 0,
        };
        let references = counts.iter().map(of).fold(0, u64::saturating_add);
        let least = if all { 0 } else { references / SHARE };
        let mut shapes = vec![Vec::new(); bundle.symbols.len()];
        for (symbol, used) in counts {
            let streams = lanes.get(&symbol).copied().unwrap_or_default().iter();
            shapes[symbol as usize] = streams
                .map(|lane| match bundle.stream_of(lane, first) {
                    Some(stream) => (shape(&stream, used), strides(&stream)),
                    None => (String::new(), Vec::new()),
                })
                .collect();
        }
        let (more, elsewhere) = (0, 0);
        let mut tree = Tree { symbols: all_symbols, names, shapes, least, left: most, more, elsewhere };
        let mut body = Vec::new();
        match structure {
            Structure::Rules(grammar) => {
                let start = grammar.rules.first().map_or(&[][..], Vec::as_slice);
                tree.rules(grammar, start, (0, 1), &mut body);
            }
            Structure::Loops(loops) => {
                let Some((_, times)) = bundle.times_of(cohort, first) else { continue };
                let totals = loops.totals(|node| times.get(node)?.as_deref());
                let told = totals.iter().map(|&(reached, runs)| match (reached, runs) {
                    (reached, runs) if reached == runs => "once".into(),
                    (reached, runs) if reached > 0 && runs.is_multiple_of(reached) => {
                        format!("{} times", thousands(runs / reached))
                    }
                    (reached, runs) if reached > runs => {
                        format!("in {} of {} turns", thousands(runs), thousands(reached))
                    }
                    (reached, runs) => {
                        format!("{:.1} times on average", runs as f64 / reached.max(1) as f64)
                    }
                });
                let told: Vec<(String, u64)> = told.zip(totals.iter().map(|total| total.1)).collect();
                tree.nodes(&loops.nodes, &told, &mut body);
            }
        }
        let Tree { more, elsewhere, .. } = tree;
        kinds.push(Kind { threads: members(bundle, &cohort.ranks), references, body, more, elsewhere });
    }
    Ok(kinds)
}

/// How many references a block has that are no fetches: these are not shown.
fn data(block: &Block) -> usize {
    block.references.iter().filter(|reference| reference.access != Access::Fetch).count()
}

/// The levels of a nest; none where it is none.
fn strides(stream: &refrain_fold::stream::Stream) -> Vec<Stride> {
    let levels = nest(stream).map_or_else(Vec::new, |nest| nest.levels);
    levels.into_iter().map(|(step, count)| Stride { step, count }).collect()
}

fn members(bundle: &Bundle, ranks: &RankList) -> Vec<Member> {
    let place = |member| {
        let (rank, thread) = bundle.place_of(member);
        Member { rank, thread }
    };
    let mut all: Vec<Member> = ranks.iter().map(place).collect();
    all.sort_unstable();
    all
}

pub fn write_json(
    recorded: &Recorded,
    names: &dyn Names,
    all: bool,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let most = if all { usize::MAX } else { MOST_LINES * 100 };
    let document = Document { schema: "refrain-memory-loops-1", kinds: kinds(recorded, names, all, most)? };
    Ok(json::document(&document, out)?)
}

pub fn write_text(
    recorded: &Recorded,
    names: &dyn Names,
    all: bool,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let most = if all { usize::MAX } else { MOST_LINES };
    for (at, kind) in kinds(recorded, names, all, most)?.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let shown: Vec<String> =
            kind.threads.iter().take(8).map(|at| format!("{}.{}", at.rank, at.thread)).collect();
        let rest = kind.threads.len().saturating_sub(8);
        let rest = if rest > 0 { format!(" and {} more", thousands(rest as u64)) } else { String::new() };
        writeln!(
            out,
            "threads {}{rest}; addresses are those of thread {}",
            shown.join(" "),
            shown.first().map_or("", |s| s)
        )?;
        let mut text = String::new();
        print(&kind.body, 1, &mut text);
        out.write_all(text.as_bytes())?;
        if kind.more > 0 {
            let elsewhere = plural(kind.elsewhere, "reference");
            writeln!(out, "  and {} with {elsewhere} (--all shows them)", plural(kind.more, "line"))?;
        }
    }
    out.flush()?;
    Ok(())
}

fn print(items: &[Item], depth: usize, text: &mut String) {
    let pad = "  ".repeat(depth);
    for item in items {
        match item {
            Item::Loop { times, body } => {
                let word = if times.starts_with("in ") { "" } else { "loop " };
                let _ = writeln!(text, "{pad}{word}{times}");
                print(body, depth + 1, text);
            }
            Item::Reference(Reference { access, size, place, addresses, .. }) => {
                let _ = writeln!(text, "{pad}{access} {size}  {addresses}  at {place}");
            }
            Item::Stretch { .. } => {
                let _ = writeln!(text, "{pad}references in chunks, which have no shape");
            }
        }
    }
}
