//! The structure as an indented text.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::Write;
use std::ops::Range;

use refrain_fold::bundle::{Bundle, OfThread};
use refrain_fold::ranks::RankList;
use refrain_sites::Names;
use refrain_tracefile::Trace;

use super::params::{has_notation, on};
use super::place::{How, Where, stack};
use super::steps::{Count, Steps};
use super::together::{self, Together};
use super::tree::{Branch, Known, Turns};
use super::{Options, View, cohorts};
use crate::error::Error;
use crate::human::{plural, thousands};

/// Of more calls in a row than these only some are shown.
const ROW: usize = 16;
const SHOWN_FIRST: usize = 8;
const SHOWN_LAST: usize = 2;
/// Of a body with more lines than these, too.
const LONG: usize = 64;
/// With more lines than these in all, loops are shown less deep if nobody said how deep.
const LINES: usize = 500;
pub(super) const DEEPEST: usize = 6;
/// As many kinds of ranks are shown.
const KINDS: usize = 8;
/// Loops within loops that are shown, whatever is asked for: no program has more.
const NESTED: usize = 256;
/// Frames that are shown of a call at most.
const MOST_TOLD: usize = 4;
/// Differences between ranks that are listed.
const LISTED: usize = 3;
/// Characters in a line.
const WIDTH: usize = 120;

const NOTATION: &str = "ranks A-B:S are every S-th from A to B; ranks A-B+SxN are N blocks like A-B, each S after the one before";
const BY_ORDER: &str = "\
Where the code may skip all calls of an iteration, the order of the calls tells iterations apart: those without calls\n\
are not counted.";

pub fn write_text(
    trace: &Trace,
    names: &dyn Names,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let all = cohorts(trace, options)?;
    let mut calls = 0u64;
    let (mut explained, mut by_order, mut flagged) = (false, false, HashSet::new());
    let shown = if options.all { all.len() } else { all.len().min(KINDS) };
    for (at, (cohort, rank)) in all.iter().take(shown).enumerate() {
        let view = View::new(trace, names, (cohort, *rank), options)?;
        calls = calls.saturating_add(view.calls);
        let bundle = &trace.bundle;
        let text = |options: &Options| {
            let mut text = if at > 0 { "\n".to_string() } else { String::new() };
            let (nested, bodies) = (0, HashSet::new());
            let flagged = &flagged;
            let mut writer =
                Writer { bundle, names, view: &view, options, text: &mut text, nested, bodies, flagged };
            writer.heading(trace, all.len());
            writer.body(None, 1, 1);
            wrap(&text)
        };
        let mut shown = text(options);
        if options.depth.is_none() && !options.all {
            for depth in (0..=DEEPEST).rev() {
                if shown.lines().count() <= LINES {
                    break;
                }
                shown = text(&Options { depth: Some(depth), ..options.clone() });
            }
        }
        if !explained && has_notation(&shown) {
            explained = true;
            let (heading, body) = shown.split_once("\n\n").unwrap_or((&shown, ""));
            shown = format!("{heading}\n{NOTATION}\n\n{body}");
        }
        out.write_all(shown.as_bytes())?;
        by_order |= view.tree.by_order;
        flagged.extend(view.flags.iter().map(|flag| flag.who.clone()));
    }
    if shown < all.len() {
        let rest: u64 =
            all[shown..].iter().map(|(cohort, rank)| rank.map_or(cohort.ranks.len(), |_| 1)).sum();
        writeln!(
            out,
            "\n... and {} that did other things (--all or --ranks R shows them)",
            plural(rest, "rank")
        )?;
    }
    if by_order {
        writeln!(out, "\n{BY_ORDER}")?;
    }
    // These are kept as numbers beside the calls.
    let count =
        |(cohort, _): &(OfThread<'_>, Option<u32>)| refrain_encode::calls_of_all(&trace.bundle, cohort);
    let total = all.iter().map(count).fold(0, u64::saturating_add);
    let whole = options.ranks.is_none() && shown == all.len();
    if let Some(polls) = total.checked_sub(calls).filter(|polls| whole && *polls > 0) {
        let polls = plural(polls, "poll");
        writeln!(
            out,
            "\nNot shown: {polls} that found nothing (MPI_Test, MPI_Iprobe, ...), which `stats` counts."
        )?;
    }
    out.flush()?;
    Ok(())
}

pub(super) struct Writer<'w, 'a> {
    pub(super) bundle: &'a Bundle,
    pub(super) names: &'w dyn Names,
    pub(super) view: &'w View<'a>,
    pub(super) options: &'w Options,
    pub(super) text: &'w mut String,
    /// In how many nodes we are.
    pub(super) nested: usize,
    /// Loops that were shown: where they are, and what is in them.
    pub(super) bodies: HashSet<(String, String)>,
    /// Calls that other ranks were shown a flag for.
    pub(super) flagged: &'w HashSet<String>,
}

impl Writer<'_, '_> {
    pub(super) fn heading(&mut self, trace: &Trace, kinds: usize) {
        let tree = &self.view.tree;
        let threads = trace.bundle.most_threads() > 1;
        let thread = if threads { format!(", thread {}", tree.cohort.thread) } else { String::new() };
        let all =
            kinds == 1 && self.options.ranks.is_none() && tree.ranks.len() == u64::from(trace.meta.ranks);
        let who = match all {
            true if tree.ranks.len() == 1 => "1 rank".to_string(),
            true => format!("all {}", plural(tree.ranks.len(), "rank")),
            false => on(&tree.ranks),
        };
        let _ = writeln!(self.text, "{who}{thread}");
        if tree.of_rules {
            self.text.push_str(
                "folded by grammar: the trace has no loops, and too many calls to look for them; this is what repeats in its rules \
                 (record with --fold loops to keep loops)\n",
            );
        } else if tree.found {
            let many = tree.ranks.len() > 1;
            let _ = writeln!(
                self.text,
                "folded by grammar: the trace has no loops; these were found in the calls of rank {}{} (record with --fold \
                 loops to keep loops)",
                tree.ranks.iter().next().unwrap_or(0),
                if many { ", the others made the same" } else { "" }
            );
        }
        if !tree.of_source && !self.options.folded && !self.bundle.sites.stacks.is_empty() {
            self.text.push_str(
                "loops as the calls were folded, not those of the source: code is not at hand, or a function calls itself\n",
            );
        }
        let finding = |steps: &Steps| finding(&tree.ranks, &self.view.places, steps);
        let _ = match &self.view.steps {
            None if !tree.nodes.iter().any(Branch::repeats) => {
                writeln!(self.text, "time-step loop: none, no calls are repeated")
            }
            None => writeln!(self.text, "time-step loop: none, no calls but polls are repeated"),
            Some(steps) if steps.hold_most() && !self.has_code(steps) => {
                let why = match self.bundle.sites.stacks.is_empty() {
                    true => "the trace has no call sites (record with --fold loops, or --stacks site)",
                    false => "the program's code is not at hand",
                };
                writeln!(
                    self.text,
                    "time-step loop: not known, {why}\nlargest repetition: {}; one may be several steps of the program, or part of one",
                    finding(steps)
                )
            }
            Some(steps) if steps.hold_most() => writeln!(self.text, "time-step loop: {}", finding(steps)),
            Some(steps) => writeln!(
                self.text,
                "time-step loop: none, no loop holds most of the calls\nlargest repetition: {}",
                finding(steps)
            ),
        };
        if let Some(other) = &self.view.other {
            let _ = match self.options.folded {
                true => writeln!(self.text, "the source says: {other} (shown without --folded)"),
                false => writeln!(self.text, "as the calls were folded: {other} (--folded shows it)"),
            };
        }
        for flag in self.view.flags.iter().filter(|flag| !self.flagged.contains(&flag.who)) {
            let _ = writeln!(self.text, "red flag: {}", flag.text);
        }
        self.text.push('\n');
    }

    /// Whether the loops of the code were looked at: the order of calls alone shows no difference between a loop and one
    /// over rounds of its turns.
    fn has_code(&self, steps: &Steps) -> bool {
        let is_known = |place: &Where| place.code.is_some() || place.how == How::Recursion;
        let known = |node: usize| self.view.places[node].as_ref().is_some_and(is_known);
        self.view.tree.of_source || steps.loops.iter().all(|(node, ..)| known(*node))
    }

    fn indent(&mut self, depth: usize) {
        self.text.push_str(&"  ".repeat(depth));
    }

    /// `level`: how many loops are around.
    pub(super) fn body(&mut self, parent: Option<usize>, depth: usize, level: usize) {
        let tree = &self.view.tree;
        let comers = parent.map_or_else(|| tree.ranks.clone(), |parent| tree.nodes[parent].ranks());
        let mut lines: Vec<Line> = Vec::new();
        for node in tree.body(parent).filter(|&node| tree.nodes[node].runs() > 0) {
            let branch = &tree.nodes[node];
            let Some(symbol) = branch.symbol() else {
                lines.push(Line::Loop(node));
                continue;
            };
            let (call, way) = self.call(symbol);
            // To the root and to the others it is not the same call, but it looks the same.
            let row = lines.iter_mut().rev().map_while(Line::call);
            let same =
                |line: &&mut Call| line.call == call && line.way == way && apart(&line.turns, &branch.turns);
            match row.take(ROW).find(same) {
                Some(line) => {
                    let mut all = Together::new();
                    let both = line.turns.drain(..).chain(branch.turns.iter().cloned());
                    both.for_each(|one| one.add_to(&mut all));
                    line.turns = Turns::of(all);
                }
                None => lines.push(Line::Call(Call { call, way, told: 1, turns: branch.turns.clone() })),
            }
        }
        tell_apart(&mut lines);
        for shown in self.choose(&lines) {
            match shown {
                Shown::Line(Line::Loop(node)) => self.looped(*node, &comers, depth, level),
                Shown::Line(Line::Call(call)) => self.event(call, &comers, depth, parent.is_none()),
                Shown::More { calls, loops } => {
                    self.indent(depth);
                    let calls = (calls > 0).then(|| plural(calls, "more call"));
                    let loops = (loops > 0).then(|| plural(loops, "more loop"));
                    let more: Vec<String> = calls.into_iter().chain(loops).collect();
                    let _ = writeln!(self.text, "... {} (--all shows them)", more.join(" and "));
                }
            }
        }
    }

    /// What is shown of a body: of many calls in a row the first and the last, and likewise of many lines, but for the
    /// loops with many of all calls in them.
    fn choose<'l>(&self, lines: &'l [Line]) -> Vec<Shown<'l>> {
        let mut keep = vec![true; lines.len()];
        let leave_out = |keep: &mut [bool], range: Range<usize>, shown: (usize, usize), most: usize| {
            if range.len() > most && !self.options.all {
                keep[range.start + shown.0..range.end - shown.1].fill(false);
            }
        };
        let rows = lines.chunk_by(|a, b| matches!((a, b), (Line::Call(_), Line::Call(_))));
        let mut at = 0;
        for row in rows {
            leave_out(&mut keep, at..at + row.len(), (SHOWN_FIRST, SHOWN_LAST), ROW);
            at += row.len();
        }
        if keep.iter().filter(|keep| **keep).count() > LONG && !self.options.all {
            leave_out(&mut keep, 0..lines.len(), (2 * SHOWN_FIRST, 2 * SHOWN_LAST), LONG);
            let tree = &self.view.tree;
            let calls = |node: usize| {
                tree.events(node).map(|(at, _)| tree.nodes[at].runs()).fold(0, u64::saturating_add)
            };
            for (keep, line) in keep.iter_mut().zip(lines) {
                *keep |= matches!(line, Line::Loop(node) if calls(*node) >= self.view.calls / 100);
            }
        }
        let mut shown = Vec::new();
        for (keep, line) in keep.into_iter().zip(lines) {
            let one = (u64::from(matches!(line, Line::Call(_))), u64::from(matches!(line, Line::Loop(_))));
            match shown.last_mut() {
                _ if keep => shown.push(Shown::Line(line)),
                Some(Shown::More { calls, loops }) => (*calls, *loops) = (*calls + one.0, *loops + one.1),
                _ => shown.push(Shown::More { calls: one.0, loops: one.1 }),
            }
        }
        shown
    }

    /// A call with its parameters, and the way to it, from the innermost frame out.
    fn call(&self, symbol: u32) -> (String, Vec<String>) {
        let name = self.view.tree.function(symbol).map_or("?", |f| f.name);
        let params = self.view.params(self.bundle, symbol);
        let params: Vec<String> = params.iter().map(|p| format!("{}={}", p.name, p.text())).collect();
        let places = stack(self.bundle, symbol);
        let places = places.iter().rev().flat_map(|frame| {
            self.names.places(*frame).iter().rev().map(ToString::to_string).collect::<Vec<_>>()
        });
        (format!("{name}({})", params.join(", ")), places.collect())
    }

    fn looped(&mut self, node: usize, comers: &RankList, depth: usize, level: usize) {
        if self.nested == NESTED {
            self.indent(depth);
            let inside = self.view.tree.events(node).count() as u64;
            let _ = writeln!(self.text, "... {} in more loops than can be shown", plural(inside, "call"));
            return;
        }
        self.nested += 1;
        self.shown(node, comers, depth, level);
        self.nested -= 1;
    }

    fn shown(&mut self, node: usize, comers: &RankList, depth: usize, level: usize) {
        let branch = &self.view.tree.nodes[node];
        let how_often = how_often(&branch.turns, comers, branch.parent.is_none(), true);
        let repeats = branch.repeats();
        let counted = branch.turns.iter().all(Turns::is_counted);
        // A body that is gone through once, whenever it is reached, is no loop.
        if !repeats && how_often.is_empty() {
            return self.body(Some(node), depth, level);
        }
        self.indent(depth);
        self.text.push_str(match (repeats || !counted, self.view.tree.of_source) {
            (true, _) => "loop",
            (false, true) => "loop",
            (false, false) => "once",
        });
        if !how_often.is_empty() {
            let once = if how_often.starts_with("on ") && counted { "once " } else { "" };
            let _ = write!(self.text, " {once}{how_often}");
        }
        if let Some(place) = &self.view.places[node] {
            let _ = write!(self.text, "  at {place}");
        }
        if repeats && self.options.depth.is_some_and(|most| level > most) {
            let inside = self.view.tree.events(node).count() as u64;
            let _ = writeln!(self.text, "  ... {} (--depth {level} shows them)", plural(inside, "call"));
            return;
        }
        let header = self.text.len();
        self.text.push('\n');
        self.body(Some(node), depth + 1, level + usize::from(repeats));
        // A function that is called from several places has its loops shown once.
        let indent = "  ".repeat(depth + 1);
        let lines = self.text[header + 1..].lines();
        let body: Vec<&str> = lines.map(|line| line.strip_prefix(&*indent).unwrap_or(line)).collect();
        if body.len() > 1
            && let Some(place) = &self.view.places[node]
        {
            let known = !self.bodies.insert((place.to_string(), body.join("\n")));
            if known && !self.options.all {
                self.text.truncate(header);
                let caller = self.caller(node).map_or(String::new(), |caller| format!(" < {caller}"));
                let _ = writeln!(self.text, "{caller}  (its calls are as above)");
            }
        }
    }

    /// What called the function that a loop is in.
    fn caller(&self, node: usize) -> Option<String> {
        let (depth, _) = self.view.places[node].as_ref()?.code.as_ref()?;
        let (_, symbol) = self.view.tree.events(node).next()?;
        let frame = *stack(self.bundle, symbol).get(depth.checked_sub(1)?)?;
        self.names.places(frame).last().map(ToString::to_string)
    }

    fn event(&mut self, call: &Call, comers: &RankList, depth: usize, top: bool) {
        let Call { call, way, told, turns } = call;
        self.indent(depth);
        self.text.push_str(call);
        let how_often = how_often(turns, comers, top, false);
        if !how_often.is_empty() {
            let _ = write!(self.text, "  {how_often}");
        }
        for (at, place) in way.iter().take(*told).enumerate() {
            let _ = write!(self.text, "{}{place}", if at == 0 { "  at " } else { " < " });
        }
        self.text.push('\n');
    }
}

enum Shown<'l> {
    Line(&'l Line),
    /// What is left out.
    More {
        calls: u64,
        loops: u64,
    },
}

/// What is shown in a line.
enum Line {
    Loop(usize),
    Call(Call),
}

struct Call {
    call: String,
    /// Frames from the innermost out, and how many of them are shown.
    way: Vec<String>,
    told: usize,
    turns: Vec<Turns>,
}

impl Line {
    fn call(&mut self) -> Option<&mut Call> {
        match self {
            Line::Loop(_) => None,
            Line::Call(call) => Some(call),
        }
    }
}

/// Calls of one body that look alike though they are made from different places show the way there, too.
fn tell_apart(lines: &mut [Line]) {
    let mut alike: HashMap<(String, Option<String>), Vec<&mut Call>> = HashMap::new();
    for call in lines.iter_mut().filter_map(Line::call) {
        alike.entry((call.call.clone(), call.way.first().cloned())).or_default().push(call);
    }
    for mut calls in alike.into_values().filter(|calls| calls.len() > 1) {
        let differ = |told: usize| {
            let ways: HashSet<&[String]> =
                calls.iter().map(|call| &call.way[..told.min(call.way.len())]).collect();
            ways.len()
        };
        let longest = calls.iter().map(|call| call.way.len()).max().unwrap_or(0);
        let best = differ(longest);
        if best > 1
            && let Some(told) =
                (1..=longest.min(MOST_TOLD)).rev().min_by_key(|&told| (best - differ(told), told))
        {
            calls.iter_mut().for_each(|call| call.told = told);
        }
    }
}

/// `20 iterations at pop_like.c:136 in main, with 1,204 of 2,828 calls`. `ranks`: those that are looked at.
pub fn finding(ranks: &RankList, places: &[Option<Where>], steps: &Steps) -> String {
    let place = |node: usize| places[node].as_ref().map(|place| format!(" at {place}"));
    let places: Vec<String> = steps.loops.iter().map(|(node, ..)| place(*node).unwrap_or_default()).collect();
    let one_place = places.iter().all(|place| *place == places[0]);
    let counts = match &steps.loops[..] {
        [(_, count, some)] if some == ranks => count.to_string(),
        several if several.len() > LISTED && one_place => {
            let each = several.iter().map(|(_, count, _)| count.steps);
            let (low, high) = (each.clone().min().unwrap_or(0), each.max().unwrap_or(0));
            let more = several.iter().any(|(_, count, _)| count.at_least);
            let more = if more { " or more" } else { "" };
            match low == high {
                true => format!("{}{more}", plural(high, "iteration")),
                false => format!("{} to {} iterations{more}, by rank", thousands(low), thousands(high)),
            }
        }
        several => {
            let one = |((_, count, ranks), place): (&(usize, Count, RankList), &String)| {
                let place = if one_place { "" } else { place };
                format!("{count} on {}{place}", on(ranks))
            };
            several.iter().zip(&places).map(one).collect::<Vec<_>>().join(", ")
        }
    };
    let (calls, all) = (thousands(steps.calls), thousands(steps.all_calls));
    format!("{counts}{}, with {calls} of {all} calls", if one_place { &places[0] } else { "" })
}

/// Lines that are longer go on in the next one, if there is a place to break them.
fn wrap(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let (mut rest, mut more) = (line, 0);
        while more + rest.trim_end().chars().count() > WIDTH {
            let fits = rest.char_indices().nth(WIDTH - more).map_or(rest.len(), |(at, _)| at);
            let after = |mark: &str| rest[..fits].rfind(mark).map(|at| at + mark.len());
            let place = [", ", "; ", " < "].into_iter().filter_map(after).max();
            let Some(place) = place.filter(|place| *place > indent + 1) else { break };
            out.push_str(rest[..place].trim_end());
            out.push('\n');
            more = indent + 6;
            out.push_str(&" ".repeat(more));
            rest = &rest[place..];
        }
        out.push_str(rest);
    }
    out
}

/// No rank does both.
fn apart(one: &[Turns], other: &[Turns]) -> bool {
    let ranks = |all: &[Turns]| {
        let running = all.iter().filter(|turns| turns.runs > 0);
        together::all(running.map(|turns| &turns.ranks))
    };
    let (one, other) = (ranks(one), ranks(other));
    one != other && one.union(&other).len() == one.len() + other.len()
}

/// How often something runs on some ranks. Empty for once, each time.
fn times(turns: &Turns, top: bool, is_loop: bool) -> String {
    let &Turns { reached, runs, entered, low, high, .. } = turns;
    // How often it runs at all, with the same number each time; what has no vector is known from a mean.
    let known = !turns.vector.is_empty() && high > 1;
    let alike = || entered.filter(|entered| known && entered.checked_mul(high) == Some(runs));
    let in_all = || match runs {
        1 => "once in all".to_string(),
        _ => format!("{} times in all", thousands(runs)),
    };
    match turns.known {
        Known::AtLeast if is_loop && runs == 1 => "once or more".to_string(),
        // The fold has the loop, and knows what each time had in common.
        Known::AtLeast if is_loop && reached > 1 && alike() == Some(reached) => {
            format!("{} times or more", thousands(high))
        }
        Known::AtLeast if is_loop && reached > 1 && alike().is_some() => {
            let entered = plural(entered.unwrap_or(0), "iteration");
            format!("{} times or more, in {entered}", thousands(high))
        }
        Known::AtLeast if is_loop => {
            format!("{} times or more{}", thousands(runs), if reached > 1 { " in all" } else { "" })
        }
        // As often as the loop for all we know.
        Known::AtLeast if runs == reached => String::new(),
        Known::AtLeast => format!("in {}", plural(runs, "iteration")),
        Known::Total => in_all(),
        Known::Each => match alike() {
            Some(entered) => format!("{} times, in {}", thousands(high), plural(entered, "iteration")),
            None => in_all(),
        },
        Known::Mean if entered == Some(1) && reached > 1 => {
            format!("{} times, in 1 of {} iterations", thousands(runs), thousands(reached))
        }
        Known::Mean if high > 1 && entered.is_some_and(|entered| entered > 0 && entered < reached) => {
            let entered = entered.unwrap_or(1);
            let digits = usize::from(runs % entered != 0);
            let each = runs as f64 / entered as f64;
            let (some, all) = (thousands(entered), thousands(reached));
            format!("{each:.digits$} times on average, in {some} of {all} iterations")
        }
        Known::Mean if high > 1 => {
            let digits = if low == high { 0 } else { 1 };
            format!("{:.digits$} times on average", runs as f64 / reached as f64)
        }
        Known::Mean if !turns.is_counted() => in_all(),
        Known::All | Known::Mean => match (low, high, alike()) {
            (1, 1, _) => String::new(),
            (low, high, _) if low == high => format!("{} times", thousands(high)),
            (0, 1, _) if top => String::new(),
            (0, 1, _) => {
                let once = if is_loop { "once, " } else { "" };
                format!("{once}in {} of {} iterations", thousands(runs), thousands(reached))
            }
            (0, _, Some(entered)) => {
                let (high, entered) = (thousands(high), thousands(entered));
                format!("{high} times, in {entered} of {} iterations", thousands(reached))
            }
            (low, high, _) => {
                let mean = runs as f64 / reached as f64;
                format!("{}-{} times, mean {mean:.1}", thousands(low), thousands(high))
            }
        },
    }
}

/// Empty for what every rank that comes by does once. `top`: not in a loop.
fn how_often(turns: &[Turns], comers: &RankList, top: bool, is_loop: bool) -> String {
    // Ranks of which the same is said, the first ones first.
    let mut said = Together::new();
    let running = || turns.iter().filter(|turns| turns.runs > 0);
    running().for_each(|turns| said.add(times(turns, top, is_loop), &turns.ranks));
    let said = said.finish();
    let all = together::all(said.iter().map(|(_, ranks)| ranks));
    let only = if all == *comers { String::new() } else { format!("on {}", on(&all)) };
    match &said[..] {
        [] => String::new(),
        [(text, _)] => {
            [text.as_str(), &only].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(" ")
        }
        several if several.len() <= LISTED => {
            let one = |(text, ranks): &(String, RankList)| {
                let each = if top || is_loop { "once" } else { "each time" };
                format!("{} on {}", if text.is_empty() { each } else { text }, on(ranks))
            };
            several.iter().map(one).collect::<Vec<_>>().join("; ")
        }
        _ => {
            let low = running().map(|turns| turns.low).min().unwrap_or(0);
            let high = running().map(|turns| turns.high).max().unwrap_or(0);
            let about = if running().any(|turns| turns.known == Known::Mean) { "about " } else { "" };
            let more = running().any(|turns| turns.known == Known::AtLeast && is_loop);
            let more = if more { " or more" } else { "" };
            let only = if only.is_empty() { only } else { format!(" {only}") };
            match low == high {
                true if high == 1 => only.trim_start().to_string(),
                true => format!("{about}{} times{more}{only}", thousands(high)),
                false if high == 1 => {
                    let runs = running().map(|turns| turns.runs);
                    let (low, high) = (runs.clone().min().unwrap_or(0), runs.max().unwrap_or(0));
                    format!("in {}-{} iterations, by rank{only}", thousands(low), thousands(high))
                }
                false => format!("{about}{}-{} times{more}, by rank{only}", thousands(low), thousands(high)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken() {
        let params: Vec<String> = (0..30).map(|n| format!("parameter{n}=1234")).collect();
        let line = format!("  MPI_Call({})  at here (a.c:3)\n", params.join(", "));
        let wrapped = wrap(&format!("short\n{line}"));
        assert!(
            wrapped.lines().count() > 4 && wrapped.lines().all(|line| line.chars().count() <= WIDTH),
            "{wrapped}"
        );
        let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
        assert_eq!(words(&wrapped)[1..], words(&line));
        assert!(wrapped.ends_with("  at here (a.c:3)\n"), "{wrapped}");
        let unbroken = format!("{}\n", "x".repeat(300));
        assert_eq!(wrap(&unbroken), unbroken);
    }
}
