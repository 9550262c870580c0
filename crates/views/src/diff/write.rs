//! What was found, for people.

use std::io::Write;

use refrain_sites::{Location, Names};
use refrain_tracefile::Trace;

use super::calls::SITE;
use super::lasted::{Lasted, MATTERS};
use super::{CallsOfRank, Diff, First, FunctionRow, Moved, Row, Slower, Which};
use crate::error::Error;
use crate::human::{duration, plural, size, thousands};
use crate::length::Told;
use crate::stats::{Amount, TIMES_OF_RANKS};
use crate::table::Table;

/// All that is shown.
pub struct Report<'a> {
    pub diff: &'a Diff,
    pub traces: (&'a Trace, &'a Trace),
    /// What the files are called.
    pub files: (&'a str, &'a str),
    pub names: (&'a dyn Names, &'a dyn Names),
    /// Where calls were added, removed or changed; none if nobody asked.
    pub rows: Option<&'a [Row]>,
    pub slower: Option<&'a Slower>,
    /// Nothing is cut short.
    pub all: bool,
}

/// So many lines of each kind are on one screen.
const SHOWN: usize = 10;

impl Report<'_> {
    /// In all that was compared.
    pub fn is_equal(&self) -> bool {
        self.diff.is_equal() && self.slower.is_none_or(Slower::is_none)
    }

    fn shown(&self) -> usize {
        if self.all { usize::MAX } else { SHOWN }
    }

    /// The frames of a call, innermost first.
    fn frames(&self, which: Which, symbol: Option<u32>) -> Vec<Location> {
        let (trace, names) = match which {
            Which::A => (self.traces.0, self.names.0),
            Which::B => (self.traces.1, self.names.1),
        };
        let symbol = symbol.and_then(|symbol| trace.bundle.symbols.get(symbol as usize));
        let frames = symbol.map(|symbol| trace.bundle.sites.frames(symbol.site)).unwrap_or_default();
        frames.into_iter().rev().filter_map(|frame| names.places(frame).last().cloned()).collect()
    }

    fn place(&self, which: Which, symbol: Option<u32>) -> Option<String> {
        self.frames(which, symbol).first().map(Location::to_string)
    }

    /// The innermost frames that differ.
    fn sites(&self, first: &First) -> (String, String) {
        let (a, b) = (self.frames(Which::A, first.symbol.0), self.frames(Which::B, first.symbol.1));
        let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        let name = |frames: &[Location], other: &[Location]| match (frames.get(same), other.get(same)) {
            (None, _) => "no more frames".to_owned(),
            // One line may be in several places of the code.
            (Some(place), Some(other)) if place.to_string() == other.to_string() => {
                format!("{place}, {}+{:#x}", place.module, place.offset)
            }
            (Some(place), _) => place.to_string(),
        };
        (name(&a, &b), name(&b, &a))
    }

    /// Of both calls.
    pub(super) fn places(&self, first: &First) -> (Option<String>, Option<String>) {
        (self.place(Which::A, first.symbol.0), self.place(Which::B, first.symbol.1))
    }

    /// What differs, with the names of places.
    pub(super) fn changes(&self, first: &First) -> Vec<(String, String, String)> {
        let changes = first.changes.iter().map(|change| {
            let (a, b) = match change.what.as_str() {
                SITE => self.sites(first),
                _ => (change.a.clone(), change.b.clone()),
            };
            (change.what.clone(), a, b)
        });
        changes.collect()
    }
}

fn more(out: &mut dyn Write, all: usize, shown: usize, what: &str) -> Result<(), Error> {
    if all > shown {
        writeln!(out, "... and {} more (--all shows them)", plural((all - shown) as u64, what))?;
    }
    Ok(())
}

pub fn write_text(report: &Report<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let diff = report.diff;
    for note in &diff.notes {
        writeln!(out, "note: {}", refrain_sites::printable(note))?;
    }
    let ignored = diff.ignored.iter().filter(|word| report.slower.is_none() || **word != "time");
    let ignored: Vec<&str> = ignored.copied().collect();
    let ignored =
        if ignored.is_empty() { String::new() } else { format!(" (not compared: {})", ignored.join(", ")) };
    if diff.is_equal() {
        let ranks = plural(diff.ranks.0.into(), "rank");
        // What is ignored may be there more often in one.
        let calls = match diff.calls {
            (a, b) if a == b => plural(a, "call"),
            (a, b) => format!("{} in A, {} in B", plural(a, "call"), thousands(b)),
        };
        writeln!(out, "equal: {ranks}, {calls}{ignored}")?;
    } else {
        let side =
            |ranks: u32, calls: u64| format!("{}, {}", plural(ranks.into(), "rank"), plural(calls, "call"));
        if diff.ranks.0 == diff.ranks.1 {
            let ranks =
                format!("{} of {}", thousands(diff.ranks_that_differ()), plural(diff.ranks.0.into(), "rank"));
            writeln!(out, "different: on {ranks}{ignored}")?;
        } else {
            let [a, b] = [diff.ranks.0, diff.ranks.1].map(|ranks| plural(ranks.into(), "rank"));
            writeln!(out, "different: {a} and {b}")?;
        }
        for (name, file, (ranks, calls)) in [
            ("A", report.files.0, (diff.ranks.0, diff.calls.0)),
            ("B", report.files.1, (diff.ranks.1, diff.calls.1)),
        ] {
            writeln!(out, "  {name}  {}: {}", refrain_sites::printable(file), side(ranks, calls))?;
        }
    }
    for first in diff.firsts.iter().take(report.shown()) {
        first_text(report, first, out)?;
    }
    more(out, diff.firsts.len(), report.shown(), "such line")?;
    for (which, thread, ranks) in diff.alone.iter().take(report.shown()) {
        let only = if *which == Which::A { "A" } else { "B" };
        writeln!(out, "{} only in {only}", who(ranks, *thread))?;
    }
    more(out, diff.alone.len(), report.shown(), "such line")?;
    // Other calls are in the table of rows, which says more.
    if !diff.is_equal() && report.rows.is_none() {
        functions_text(report, out)?;
    }
    if let Some(rows) = report.rows {
        rows_text(report, rows, out)?;
    }
    if let Some(slower) = report.slower {
        slower_text(report, slower, out)?;
    }
    Ok(out.flush()?)
}

fn who(ranks: &refrain_fold::ranks::RankList, thread: u32) -> String {
    let s = if ranks.len() == 1 { "" } else { "s" };
    match thread {
        0 => format!("rank{s} {ranks}"),
        _ => format!("rank{s} {ranks}, thread {thread}"),
    }
}

fn first_text(report: &Report<'_>, first: &First, out: &mut dyn Write) -> Result<(), Error> {
    let (a, b) = first.number;
    let number = if a == b {
        format!("call {}", thousands(a))
    } else {
        format!("call {} of A, {} of B", thousands(a), thousands(b))
    };
    let at = |place: Option<String>| place.map_or(String::new(), |place| format!(" at {place}"));
    let (at_a, at_b) = report.places(first);
    let what = match first.function {
        (Some(a), Some(b)) if a == b => format!("{a}{}", at(at_a)),
        (Some(a), Some(b)) => format!("{a}{} in A, {b}{} in B", at(at_a), at(at_b)),
        (Some(a), None) => format!("{a}{} in A, B ends before", at(at_a)),
        (None, Some(b)) => format!("A ends before, {b}{} in B", at(at_b)),
        (None, None) => "both end".to_owned(),
    };
    writeln!(out, "\n{}, {number}: {what}", who(&first.ranks, first.thread))?;
    let peers = first.ranks.len() > 1 && first.changes.iter().any(|change| change.is_peer);
    let of_rank = if peers { format!(" (on rank {})", first.rank) } else { String::new() };
    for (what, a, b) in report.changes(first) {
        writeln!(out, "  {what}: {} in A, {} in B{of_rank}", cut(&a), cut(&b))?;
    }
    Ok(())
}

/// Long texts are not for a screen.
fn cut(text: &str) -> String {
    const MOST: usize = 120;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

fn functions_text(report: &Report<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let changed = |row: &&FunctionRow| row.calls.0 != row.calls.1 || row.differ != Some(0);
    let rows: Vec<&FunctionRow> = report.diff.functions.iter().filter(changed).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(["function", "calls in A", "in B", "differ"]);
    for row in rows.iter().take(report.shown()) {
        let differ = row.differ.map_or("?".to_owned(), thousands);
        table.row([row.name.into(), thousands(row.calls.0), thousands(row.calls.1), differ]);
    }
    write!(out, "\n{}", table.render())?;
    more(out, rows.len(), report.shown(), "function")?;
    let same = report.diff.functions.len() - rows.len();
    if same > 0 {
        writeln!(out, "The calls of {} are equal.", plural(same as u64, "other function"))?;
    }
    if rows.iter().any(|row| row.differ.is_none()) {
        writeln!(out, "?: not counted, as the order of the calls differs, or too many numbers do.")?;
    }
    Ok(())
}

/// `12`, `3-12`; with the ranks that have any, where not all have.
fn by_rank(calls: &CallsOfRank, ranks: u32) -> String {
    let range = match (calls.least, calls.most) {
        (_, 0) => return "-".into(),
        (least, most) if least == most => thousands(most),
        (least, most) => format!("{}-{}", thousands(least), thousands(most)),
    };
    match calls.ranks == u64::from(ranks) {
        true => range,
        false => format!("{range} on {}", plural(calls.ranks, "rank")),
    }
}

pub(super) fn each_gave(amount: Option<Amount>, calls: &CallsOfRank) -> Option<u128> {
    amount.filter(|amount| amount.exact)?.bytes.checked_div(calls.total.into())
}

fn turns(turns: &[u64]) -> String {
    let turns: Vec<String> = turns.iter().map(|turns| thousands(*turns)).collect();
    if turns.is_empty() { "-".into() } else { turns.join(" x ") }
}

fn rows_text(report: &Report<'_>, rows: &[Row], out: &mut dyn Write) -> Result<(), Error> {
    let ranks = report.diff.ranks;
    let other: Vec<&Row> = rows.iter().filter(|row| !row.is_alike(ranks)).collect();
    let alike = rows.len() - other.len();
    let by_site = rows.iter().any(|row| row.at.is_some());
    let looped = other.iter().any(|row| !row.turns.0.is_empty() || !row.turns.1.is_empty());
    if !other.is_empty() {
        let mut heading = vec!["function", "calls a rank in A", "in B", "of all in A", "in B"];
        if !by_site {
            heading.extend(["bytes a call in A", "in B"]);
        }
        if looped {
            heading.extend(["loops in A", "in B"]);
        }
        if by_site {
            heading.push("at");
        }
        let mut table = Table::of(heading);
        for row in other.iter().take(report.shown().saturating_mul(2)) {
            let (a, b) = &row.calls;
            let mut cells = vec![row.function.to_owned(), by_rank(a, ranks.0), by_rank(b, ranks.1)];
            cells.extend([thousands(a.total), thousands(b.total)]);
            if !by_site {
                let gave = |amount, calls: &CallsOfRank| each_gave(amount, calls).map_or("-".into(), size);
                cells.extend([gave(row.payload.0, a), gave(row.payload.1, b)]);
            }
            if looped {
                cells.extend([turns(&row.turns.0), turns(&row.turns.1)]);
            }
            if by_site {
                cells.push(row.at.clone().unwrap_or_else(|| "?".into()));
            }
            table.push(cells);
        }
        write!(out, "\n{}", table.render())?;
        more(out, other.len(), report.shown().saturating_mul(2), "row")?;
    }
    if alike > 0 {
        let what = plural(alike as u64, if by_site { "call site" } else { "function" });
        writeln!(out, "As often on each rank in both: {what}.")?;
    }
    Ok(())
}

/// `+20%`, or `~+20%` where one of both is not exact.
fn change((a, b): (Told, Told)) -> String {
    let marked = if a.error > 0 || b.error > 0 { "~" } else { "" };
    format!("{marked}{:+.0}%", 100.0 * (b.ns as f64 / a.ns.max(1) as f64 - 1.0))
}

/// First the run, then ranks: where a program computes longer, no call need be slower.
fn lasted_text(report: &Report<'_>, lasted: &Lasted, out: &mut dyn Write) -> Result<(), Error> {
    let longest = lasted.longest();
    let [a, b] = [longest.0, longest.1];
    writeln!(out, "\nlongest rank: {a} in A, {b} in B ({})", change(longest))?;
    if lasted.moved.is_empty() {
        return Ok(writeln!(
            out,
            "No rank's time, in all or outside MPI, changed by more than 1/{MATTERS} of the run."
        )?);
    }
    let mut table = Table::new(["rank", "run in A", "in B", "change", "outside MPI in A", "in B", "change"]);
    let moved = lasted.moved.iter().filter_map(|rank| lasted.ranks.iter().find(|one| one.rank == *rank));
    for one in moved.take(report.shown()) {
        table.row([
            one.rank.to_string(),
            one.run.0.to_string(),
            one.run.1.to_string(),
            change(one.run),
            one.outside.0.to_string(),
            one.outside.1.to_string(),
            change(one.outside),
        ]);
    }
    let table = table.render();
    write!(out, "{table}")?;
    more(out, lasted.moved.len(), report.shown(), "rank")?;
    let same = lasted.ranks.len() - lasted.moved.len();
    if same > 0 {
        let others = plural(same as u64, "other rank");
        writeln!(out, "Times of {others} changed by no more than 1/{MATTERS} of the run.")?;
    }
    if table.contains('~') {
        writeln!(out, "~: {TIMES_OF_RANKS}.")?;
    }
    writeln!(out)?;
    Ok(())
}

fn slower_text(report: &Report<'_>, slower: &Slower, out: &mut dyn Write) -> Result<(), Error> {
    match &slower.lasted {
        Some(lasted) => lasted_text(report, lasted, out)?,
        None => writeln!(out, "\ntimes of ranks: not compared, as one of the traces does not tell them")?,
    }
    let by_site = |moved: &Moved| moved.at.is_some() || moved.together.is_some();
    let what = if slower.moved.iter().any(by_site) { "call site" } else { "function" };
    if slower.moved.is_empty() {
        let kinds = plural(slower.within as u64, "kind");
        writeln!(out, "mean times of calls: no change beyond noise ({kinds} of calls)")?;
        return left_text(slower, out);
    }
    let mut table =
        Table::new(["function", "mean in A", "in B", "change", "noise", "calls in A", "in B", "at"]);
    for moved in slower.moved.iter().take(report.shown()) {
        let means = (moved.a.told(), moved.b.told());
        let at = match moved.together {
            Some(sites) => format!("{} together", plural(sites as u64, "call site")),
            None => moved.at.clone().unwrap_or_default(),
        };
        table.row([
            moved.function.into(),
            means.0.to_string(),
            means.1.to_string(),
            change(means),
            duration(moved.noise as u64),
            thousands(moved.a.calls),
            thousands(moved.b.calls),
            at,
        ]);
    }
    let table = table.render();
    write!(out, "\n{table}")?;
    more(out, slower.moved.len(), report.shown(), what)?;
    let within = plural(slower.within as u64, &format!("other {what}"));
    writeln!(out, "Times of {within} are within noise.")?;
    if table.contains('~') {
        writeln!(out, "~: means are right to within 1/32.")?;
    }
    if slower.moved.iter().any(|moved| moved.together.is_some()) {
        writeln!(out, "Times of call sites that are together were too short to be kept apart.")?;
    }
    left_text(slower, out)
}

fn left_text(slower: &Slower, out: &mut dyn Write) -> Result<(), Error> {
    if slower.left > 0 {
        writeln!(
            out,
            "Not compared: {}, whose times are kept together with those of others, not all of which are in both runs.",
            plural(slower.left as u64, "call site")
        )?;
    }
    Ok(())
}
