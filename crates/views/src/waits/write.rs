//! Waits for people and for programs.

use std::io::Write;

use refrain_sites::Names;
use serde::Serialize;

use super::{CallSite, Left, RankTimes, Sum, Waits};
use crate::dump;
use crate::error::Error;
use crate::human::{plural, thousands};
use crate::json;
use crate::length::{self, Told};
use crate::table::Table;

/// What takes less than this part of the run is summed up.
const SMALL: u64 = 100;
/// Rows at most in each table.
const ROWS: usize = 20;

/// `80.0%`, or `~80.0%` of times that are rounded.
fn share(part: u64, whole: u64, rounded: bool) -> String {
    format!("{}{:.1}%", marked(rounded), part as f64 / whole.max(1) as f64 * 100.0)
}

fn marked(rounded: bool) -> &'static str {
    if rounded { "~" } else { "" }
}

impl Waits {
    /// A time that was found, marked if it is not exact.
    pub fn told(&self, ns: u64) -> Told {
        Told { ns, error: u64::from(self.rounded) }
    }
}

fn site(place: &CallSite, names: &dyn Names) -> Option<refrain_sites::Location> {
    names.places(place.frame?).last().cloned()
}

/// `3`, or `3 (80%), 1 (20%)`, or `3 (40%) and 5 others`.
fn ranks(all: &[(u32, Sum)], rounded: bool) -> String {
    let total: u64 = all.iter().map(|(_, sum)| sum.total).sum();
    let part = |(rank, sum): &(u32, Sum)| {
        format!("{rank} ({}{:.0}%)", marked(rounded), sum.total as f64 / total.max(1) as f64 * 100.0)
    };
    match all {
        [] => "-".into(),
        [(rank, _)] => rank.to_string(),
        [one, other] => format!("{}, {}", part(one), part(other)),
        [first, rest @ ..] => format!("{} and {}", part(first), plural(rest.len() as u64, "other")),
    }
}

pub fn write_text(waits: &Waits, names: &dyn Names, out: &mut dyn Write) -> Result<(), Error> {
    let length = &waits.length;
    let duration = |ns: u64| waits.told(ns).to_string();
    let of_run = |part: u64| length::share(Some(length), waits.told(part));
    let sited = waits.rows.iter().any(|row| row.place.frame.is_some())
        || waits.path.iter().any(|step| step.place.frame.is_some());
    let at = |place: &CallSite| site(place, names).map_or("?".into(), |site| site.to_string());
    let large = |sum: u64| sum.saturating_mul(SMALL) >= length.all.ns && sum > 0;
    if let Some(crowded) = &waits.crowded {
        writeln!(out, "{crowded}\n")?;
    }

    let rows: Vec<_> = waits.rows.iter().filter(|row| large(row.all.total)).take(ROWS).collect();
    if rows.is_empty() {
        writeln!(
            out,
            "No place where ranks wait for 1% of the time of all ranks together ({}) or more.",
            length.all
        )?;
    } else {
        let mut heading =
            vec!["waits", "function", "time", "of run", "count", "longest", "ranks", "for rank"];
        heading.extend(sited.then_some("at"));
        let mut table = Table::of(heading);
        for row in &rows {
            let waiters: Vec<(u32, Sum)> = row.ranks.iter().map(|waiter| (waiter.rank, waiter.all)).collect();
            let mut cells = vec![
                row.pattern.name().into(),
                row.place.function.into(),
                duration(row.all.total),
                of_run(row.all.total),
                thousands(row.all.count),
                duration(row.all.longest),
                ranks(&waiters, waits.rounded),
                ranks(&row.causes(), waits.rounded),
            ];
            cells.extend(sited.then(|| at(&row.place)));
            table.push(cells);
        }
        out.write_all(table.render().as_bytes())?;
    }
    let shown: u64 = rows.iter().map(|row| row.all.total).sum();
    let all = waits.rows.iter().fold(Sum::default(), |mut all, row| {
        all.join(row.all);
        all
    });
    if all.total > shown {
        let counts: u64 = rows.iter().map(|row| row.all.count).sum();
        writeln!(
            out,
            "{} more, {} in all, at places where they add up to less; --json has them.",
            plural(all.count - counts, "wait"),
            duration(all.total - shown)
        )?;
    }

    let uneven: Vec<_> = waits.imbalances.iter().filter(|row| large(row.all.total)).take(ROWS).collect();
    if !uneven.is_empty() {
        let mut heading = vec!["uneven before", "beyond mean", "of run", "count", "longest", "slowest rank"];
        heading.extend(sited.then_some("at"));
        let mut table = Table::of(heading);
        for row in uneven {
            let mut cells = vec![
                row.place.function.into(),
                duration(row.all.total),
                of_run(row.all.total),
                thousands(row.all.count),
                duration(row.all.longest),
                ranks(&row.ranks, waits.rounded),
            ];
            cells.extend(sited.then(|| at(&row.place)));
            table.push(cells);
        }
        write!(out, "\n{}", table.render())?;
    }

    write_ranks(waits, out)?;
    write_path(waits, &at, sited, out)?;
    writeln!(out, "\n{}", length.sentence())?;
    if waits.rounded {
        writeln!(
            out,
            "~: calls are known to have begun and ended within an error; --json has that of each wait."
        )?;
    }
    let mut said = unmatched(&waits.left);
    said.extend(waits.notes.iter().map(|note| refrain_sites::printable(note).into_owned()));
    for line in said {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

/// All ranks where they are few, otherwise those that stand out.
fn write_ranks(waits: &Waits, out: &mut dyn Write) -> Result<(), Error> {
    let duration = |ns: u64| waits.told(ns).to_string();
    let mut table =
        Table::new(["rank", "computing", "communicating", "waiting", "setup", "others waited for it"]);
    let mut chosen: Vec<usize> = (0..waits.ranks.len()).collect();
    if chosen.len() > ROWS {
        chosen.sort_by_key(|&rank| std::cmp::Reverse(waits.ranks[rank].caused));
        let mut waiting: Vec<usize> = (0..waits.ranks.len()).collect();
        waiting.sort_by_key(|&rank| std::cmp::Reverse(waits.ranks[rank].waiting));
        chosen.truncate(ROWS / 2);
        chosen.extend(&waiting[..ROWS / 2]);
        chosen.sort_unstable();
        chosen.dedup();
    }
    for &rank in &chosen {
        let times = waits.ranks[rank];
        let of =
            [times.computing, times.communicating, times.waiting, times.setup, times.caused].map(duration);
        let [computing, communicating, waiting, setup, caused] = of;
        table.row([rank.to_string(), computing, communicating, waiting, setup, caused]);
    }
    write!(out, "\n{}", table.render())?;
    if chosen.len() < waits.ranks.len() {
        writeln!(
            out,
            "{} of {} ranks: those that others waited for the longest, and those that waited the longest.",
            chosen.len(),
            thousands(waits.ranks.len() as u64)
        )?;
    }
    Ok(())
}

fn write_path(
    waits: &Waits,
    at: &dyn Fn(&CallSite) -> String,
    sited: bool,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let duration = |ns: u64| waits.told(ns).to_string();
    let length: u64 = waits.path.iter().map(|step| step.time).sum();
    let large = |time: u64| time.saturating_mul(SMALL) >= length && time > 0;
    let steps: Vec<_> = waits.path.iter().filter(|step| large(step.time)).take(ROWS).collect();
    if steps.is_empty() {
        return Ok(());
    }
    let mut heading = vec!["critical path", "rank", "time", "of path"];
    heading.extend(sited.then_some("at"));
    let mut table = Table::of(heading);
    for step in &steps {
        let what = match step.computing {
            true => format!("computing before {}", step.place.function),
            false => format!("in {}", step.place.function),
        };
        let mut cells =
            vec![what, step.rank.to_string(), duration(step.time), share(step.time, length, waits.rounded)];
        cells.extend(sited.then(|| at(&step.place)));
        table.push(cells);
    }
    write!(out, "\n{}", table.render())?;
    let shown: u64 = steps.iter().map(|step| step.time).sum();
    if shown < length {
        writeln!(out, "and {} in shorter pieces, of {}", duration(length - shown), duration(length))?;
    }
    Ok(())
}

/// What could not be looked at, in sentences.
pub fn unmatched(left: &Left) -> Vec<String> {
    let Left { sends, receives, unclear, unknown, collectives, elsewhere, reversed } = *left;
    let mut lines = Vec::new();
    if sends + receives > 0 {
        lines.push(format!(
            "{} and {} have no other side in the trace.",
            plural(sends, "send"),
            plural(receives, "receive")
        ));
    }
    let mut say = |count: u64, one: &str, rest: &str| {
        if count > 0 {
            lines.push(format!("{} {rest}", plural(count, one)));
        }
    };
    say(
        unclear,
        "send or receive",
        "cannot be matched: a receive from any source, or with any tag, kept no status.",
    );
    say(
        unknown,
        "call",
        "on communicators that are not known, or not all of whose members are in the trace.",
    );
    say(collectives, "collective call", "to which not all members came.");
    say(
        elsewhere,
        "call",
        "in which ranks may wait for others, not looked into: one-sided, on files, with neighbours.",
    );
    say(reversed, "message", "received before being sent, going by the clocks.");
    lines
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    /// How long the run lasted.
    span_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_error_ns: Option<u64>,
    /// The times of all ranks together.
    all_ranks_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    all_ranks_error_ns: Option<u64>,
    waits: Vec<Wait>,
    imbalances: Vec<Imbalance>,
    ranks: Vec<OfRank<RankTimes>>,
    critical_path: Vec<Step>,
    left: Left,
    #[serde(skip_serializing_if = "Option::is_none")]
    oversubscribed: Option<&'a str>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct Wait {
    pattern: &'static str,
    #[serde(flatten)]
    place: Called,
    #[serde(flatten)]
    all: Sum,
    ranks: Vec<Waiter>,
}

#[derive(Serialize)]
struct Waiter {
    rank: u32,
    #[serde(flatten)]
    all: Sum,
    causes: Vec<OfRank<Sum>>,
}

#[derive(Serialize)]
struct Imbalance {
    #[serde(flatten)]
    place: Called,
    #[serde(flatten)]
    all: Sum,
    ranks: Vec<OfRank<Sum>>,
}

#[derive(Serialize)]
struct Step {
    rank: u32,
    computing: bool,
    #[serde(flatten)]
    place: Called,
    time_ns: u64,
}

#[derive(Serialize)]
struct OfRank<T> {
    rank: u32,
    #[serde(flatten)]
    what: T,
}

#[derive(Serialize)]
struct Called {
    function: &'static str,
    #[serde(serialize_with = "dump::at")]
    at: Option<refrain_sites::Location>,
}

impl Called {
    fn of(place: &CallSite, names: &dyn Names) -> Called {
        Called { function: place.function, at: site(place, names) }
    }
}

impl Waiter {
    fn of(waiter: &super::Waiter) -> Waiter {
        Waiter { rank: waiter.rank, all: waiter.all, causes: of_ranks(&waiter.causes) }
    }
}

fn of_ranks(all: &[(u32, Sum)]) -> Vec<OfRank<Sum>> {
    all.iter().map(|&(rank, what)| OfRank { rank, what }).collect()
}

pub fn write_json(waits: &Waits, names: &dyn Names, out: &mut dyn Write) -> Result<(), Error> {
    let called = |place| Called::of(place, names);
    let rows = waits.rows.iter().map(|row| Wait {
        pattern: row.pattern.key(),
        place: called(&row.place),
        all: row.all,
        ranks: row.ranks.iter().map(Waiter::of).collect(),
    });
    let imbalances = waits.imbalances.iter().map(|row| Imbalance {
        place: called(&row.place),
        all: row.all,
        ranks: of_ranks(&row.ranks),
    });
    let path = waits.path.iter().map(|step| Step {
        rank: step.rank,
        computing: step.computing,
        place: called(&step.place),
        time_ns: step.time,
    });
    let document = Document {
        schema: "refrain-waits-1",
        span_ns: waits.length.run.ns,
        span_error_ns: waits.length.run.open(),
        all_ranks_ns: waits.length.all.ns,
        all_ranks_error_ns: waits.length.all.open(),
        waits: rows.collect(),
        imbalances: imbalances.collect(),
        ranks: (0..).zip(&waits.ranks).map(|(rank, what)| OfRank { rank, what: *what }).collect(),
        critical_path: path.collect(),
        left: waits.left,
        oversubscribed: waits.crowded.as_deref(),
        notes: &waits.notes,
    };
    Ok(json::document(&document, out)?)
}
