//! Calls and time by where in the program they are made.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;
use std::io::Write;

use refrain_encode::Layout;
use refrain_fold::ranks::RankList;
use refrain_sites::{Location, Names};
use refrain_tracefile::Trace;
use serde::Serialize;

use super::folded;
use super::kept::{self, Piece, Spent, Timing};
use crate::dump::At;
use crate::error::Error;
use crate::human::thousands;
use crate::json;
use crate::length::Length;
use crate::table::Table;

/// The calls of one function from one place.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteRow {
    pub function: &'static str,
    /// Nothing where it is not known.
    pub place: Option<Location>,
    pub ranks: RankList,
    pub calls: u64,
    /// Over all calls on all ranks, where time was kept.
    pub time: Option<Spent>,
}

/// The calls that one row is about.
pub(super) struct Alike {
    pub ranks: RankList,
    pub calls: u64,
    /// Over all calls on all ranks, where time was kept.
    pub time: Option<Spent>,
}

/// The calls of symbols with the same key are one row; rows stand in the order in which their keys first do.
pub(super) fn alike<K: Eq + Hash>(
    trace: &Trace,
    layouts: &[Layout],
    keys: impl Iterator<Item = K>,
) -> Vec<(K, Alike)> {
    let bundle = &trace.bundle;
    let mut known: HashMap<K, usize> = HashMap::new();
    let mut row_of: Vec<usize> = Vec::new();
    for key in keys {
        let next = known.len();
        row_of.push(*known.entry(key).or_insert(next));
    }
    let mut rows: Vec<(K, usize)> = known.into_iter().collect();
    rows.sort_unstable_by_key(|(_, row)| *row);
    let empty = |(key, _)| (key, Alike { ranks: RankList::default(), calls: 0, time: None });
    let mut rows: Vec<(K, Alike)> = rows.into_iter().map(empty).collect();
    let mut calls_of: Vec<u64> = vec![0; bundle.symbols.len()];
    let mut ranks: Vec<Vec<u32>> = vec![Vec::new(); rows.len()];
    for cohort in &bundle.of_threads() {
        let all: Vec<u32> = cohort.ranks.iter().collect();
        let differ = bundle.counts_differ(cohort);
        for &rank in if differ { &all[..] } else { all.get(..1).unwrap_or_default() } {
            let counts = bundle.counts(cohort, rank);
            for occurrence in folded::occurrences(bundle, cohort, rank, &counts, layouts) {
                let row = row_of[occurrence.symbol as usize];
                let here = if differ { &[rank][..] } else { &all[..] };
                let calls = occurrence.calls();
                // How often a poll failed is each rank's own.
                let of_all = match occurrence.varied.get() {
                    true => here.iter().fold(0, |sum: u64, &r| sum.saturating_add(occurrence.at(r).calls())),
                    false => calls.saturating_mul(here.len() as u64),
                };
                rows[row].1.calls = rows[row].1.calls.saturating_add(of_all);
                let calls = &mut calls_of[occurrence.symbol as usize];
                *calls = calls.saturating_add(of_all);
                ranks[row].extend(here);
            }
        }
    }
    for ((_, row), ranks) in rows.iter_mut().zip(&mut ranks) {
        ranks.sort_unstable();
        ranks.dedup();
        row.ranks = RankList::from_sorted(ranks);
    }
    if trace.meta.timed {
        let mut pieces = Vec::new();
        for ((symbol, &row), (layout, &calls)) in
            bundle.symbols.iter().zip(&row_of).zip(layouts.iter().zip(&calls_of))
        {
            let function = layout.function.id;
            let piece = |(calls, tally)| Piece { row, function, calls, tally };
            pieces.extend(kept::tallies(symbol, calls).into_iter().map(piece));
        }
        for (piece, spent) in pieces.iter().zip(kept::spent(trace, &pieces)) {
            kept::add(&mut rows[piece.row].1.time, spent);
        }
        for (_, row) in &mut rows {
            row.time = row.time.map(|time| time.settled(row.calls));
        }
    }
    rows.retain(|(_, row)| row.calls > 0);
    // The most time first; without time, the most calls first.
    rows.sort_by_key(|(_, row)| Reverse((row.time.map(|time| time.total), row.calls)));
    rows
}

/// The most time first; without time, the most calls first.
pub fn sites(trace: &Trace, names: &dyn Names) -> Result<Vec<SiteRow>, Error> {
    let bundle = &trace.bundle;
    let layouts = super::layouts(bundle)?;
    let places: Vec<Option<Location>> = bundle
        .symbols
        .iter()
        .map(|symbol| names.places(*bundle.sites.frames(symbol.site).last()?).last().cloned())
        .collect();
    let mut place_of: HashMap<String, &Location> = HashMap::new();
    let keys = layouts.iter().zip(&places).map(|(layout, place)| {
        let name = place.as_ref().map_or_else(String::new, Location::to_string);
        if let Some(place) = place {
            place_of.entry(name.clone()).or_insert(place);
        }
        (layout.function.name, name)
    });
    let rows = alike(trace, &layouts, keys);
    let row = |((function, name), Alike { ranks, calls, time }): ((&'static str, String), Alike)| {
        let place = place_of.get(&name).map(|&place| place.clone());
        SiteRow { function, place, ranks, calls, time }
    };
    Ok(rows.into_iter().map(row).collect())
}

pub fn write_sites_text(trace: &Trace, rows: &[SiteRow], out: &mut dyn Write) -> Result<(), Error> {
    let line = |row: &SiteRow| Line {
        function: row.function,
        ranks: row.ranks.clone(),
        calls: row.calls,
        time: row.time,
        last: row.place.as_ref().map_or("?".into(), Location::to_string),
    };
    write_lines(trace, Table::new(heading("at")), rows.iter().map(line), "", out)
}

/// Of all tables of calls that are alike; the last column is what they have in common.
pub(super) fn heading(last: &str) -> [&str; 9] {
    ["function", "calls", "time", "mean", "min", "max", "of run", "ranks", last]
}

/// A row of such a table.
pub(super) struct Line {
    pub function: &'static str,
    pub ranks: RankList,
    pub calls: u64,
    pub time: Option<Spent>,
    pub last: String,
}

/// The table, and below it what its times are.
pub(super) fn write_lines(
    trace: &Trace,
    mut table: Table,
    lines: impl Iterator<Item = Line>,
    about: &str,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let length = Length::of(trace);
    let mut row = |function: &str, calls: u64, spent: Option<Spent>, ranks: String, last: String| {
        let [time, mean, min, max, share] = kept::cells(spent, calls, length.as_ref());
        table.row([function.into(), thousands(calls), time, mean, min, max, share, ranks, last]);
    };
    let mut timed = Vec::new();
    for Line { function, ranks, calls, time, last } in lines {
        let ranks = match ranks.len() {
            all if all == u64::from(trace.meta.ranks) => "all".to_owned(),
            _ => ranks.to_string(),
        };
        row(function, calls, time, ranks, last);
        timed.extend(time.map(|time| (function, calls, time)));
    }
    for (function, calls, spent) in kept::together(timed.into_iter()) {
        row(function, calls, Some(spent), String::new(), kept::ALL_TOGETHER.to_owned());
    }
    let table = table.render();
    out.write_all(table.as_bytes())?;
    let why = match trace.meta.timed {
        true => format!(
            "Time is that of the calls on all ranks together. {about}{}",
            kept::legend(&table, length.as_ref())
        ),
        false => "Time was not kept (--time off).".to_owned(),
    };
    writeln!(out, "\n{}", why.trim_end())?;
    Ok(out.flush()?)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    ranks: u32,
    sites: Vec<Site<'a>>,
}

#[derive(Serialize)]
struct Site<'a> {
    function: &'static str,
    calls: u64,
    #[serde(serialize_with = "json::shown")]
    ranks: &'a RankList,
    #[serde(flatten)]
    time: Option<Timing>,
    at: Option<At<'a>>,
}

impl<'a> Site<'a> {
    fn of(row: &'a SiteRow) -> Site<'a> {
        Site {
            function: row.function,
            calls: row.calls,
            ranks: &row.ranks,
            time: Timing::of(row.time, row.calls),
            at: row.place.as_ref().map(At::of),
        }
    }
}

pub fn write_sites_json(trace: &Trace, rows: &[SiteRow], out: &mut dyn Write) -> Result<(), Error> {
    let sites = rows.iter().map(Site::of).collect();
    let document = Document { schema: "refrain-sites-1", ranks: trace.meta.ranks, sites };
    Ok(json::document(&document, out)?)
}
