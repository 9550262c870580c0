//! Calls and time by where in the program they are made.

use std::collections::HashMap;
use std::io::Write;

use refrain_fold::bundle::Tally;
use refrain_fold::ranks::RankList;
use refrain_sites::{Location, Names};
use refrain_tracefile::Trace;
use serde::Serialize;

use super::{Timing, folded};
use crate::dump::At;
use crate::error::Error;
use crate::human::{duration, thousands};
use crate::json;
use crate::table::Table;

/// The calls of one function from one place.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteRow {
    pub function: &'static str,
    /// Nothing where it is not known.
    pub place: Option<Location>,
    pub ranks: RankList,
    pub calls: u64,
    /// Nanoseconds over all calls on all ranks, where time was kept.
    pub time: Option<Tally>,
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
    let mut rows: Vec<SiteRow> = Vec::new();
    let mut known: HashMap<(&str, String), usize> = HashMap::new();
    let mut row_of: Vec<usize> = Vec::new();
    for ((symbol, layout), place) in bundle.symbols.iter().zip(&layouts).zip(places) {
        let function = layout.function.name;
        let name = place.as_ref().map_or(String::new(), Location::to_string);
        let row = *known.entry((function, name)).or_insert_with(|| {
            rows.push(SiteRow { function, place, ranks: RankList::default(), calls: 0, time: None });
            rows.len() - 1
        });
        row_of.push(row);
        if trace.meta.timed {
            match &mut rows[row].time {
                Some(time) => time.add(symbol.tally),
                time => *time = Some(symbol.tally),
            }
        }
    }
    let mut ranks: Vec<Vec<u32>> = vec![Vec::new(); rows.len()];
    for cohort in &bundle.of_threads() {
        let all: Vec<u32> = cohort.ranks.iter().collect();
        let differ = bundle.counts_differ(cohort);
        for &rank in if differ { &all[..] } else { all.get(..1).unwrap_or_default() } {
            let counts = bundle.counts(cohort, rank);
            for occurrence in folded::occurrences(bundle, cohort, rank, &counts, &layouts) {
                let row = row_of[occurrence.symbol as usize];
                let here = if differ { &[rank][..] } else { &all[..] };
                let calls = occurrence.calls();
                // How often a poll failed is each rank's own.
                let of_all = match occurrence.varied.get() {
                    true => here.iter().fold(0, |sum: u64, &r| sum.saturating_add(occurrence.at(r).calls())),
                    false => calls.saturating_mul(here.len() as u64),
                };
                rows[row].calls = rows[row].calls.saturating_add(of_all);
                ranks[row].extend(here);
            }
        }
    }
    for (row, ranks) in rows.iter_mut().zip(&mut ranks) {
        ranks.sort_unstable();
        ranks.dedup();
        row.ranks = RankList::from_sorted(ranks);
    }
    rows.retain(|row| row.calls > 0);
    rows.sort_by_key(|row| std::cmp::Reverse((row.time.map(|time| time.total), row.calls)));
    Ok(rows)
}

/// `MPI_Finalize` has not ended when the trace is written, so its time is not known.
fn measured(row: &SiteRow) -> Option<(Tally, u64)> {
    let time = row.time.filter(|time| time.max > 0)?;
    Some((time, time.total.checked_div(row.calls)?))
}

pub fn write_sites_text(trace: &Trace, rows: &[SiteRow], out: &mut dyn Write) -> Result<(), Error> {
    let mut table = Table::new(["function", "calls", "time", "mean", "min", "max", "share", "ranks", "at"]);
    let all = rows.iter().filter_map(|row| row.time).fold(0u64, |sum, time| sum.saturating_add(time.total));
    for row in rows {
        let [time, mean, min, max, share] = match measured(row) {
            Some((time, mean)) => [
                duration(time.total),
                duration(mean),
                duration(time.min),
                duration(time.max),
                format!("{:.1}%", time.total as f64 / all.max(1) as f64 * 100.0),
            ],
            None => std::array::from_fn(|_| "-".into()),
        };
        let ranks = match row.ranks.len() {
            all if all == u64::from(trace.meta.ranks) => "all".to_owned(),
            _ => row.ranks.to_string(),
        };
        let place = row.place.as_ref().map_or("?".into(), Location::to_string);
        table.row([row.function.into(), thousands(row.calls), time, mean, min, max, share, ranks, place]);
    }
    out.write_all(table.render().as_bytes())?;
    let why = match trace.meta.timed {
        true => "Time is that of the calls on all ranks together.",
        false => "Time was not kept (--time off).",
    };
    writeln!(out, "\n{why}")?;
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
            time: measured(row).map(|(time, mean)| Timing::of(time, mean)),
            at: row.place.as_ref().map(At::of),
        }
    }
}

pub fn write_sites_json(trace: &Trace, rows: &[SiteRow], out: &mut dyn Write) -> Result<(), Error> {
    let sites = rows.iter().map(Site::of).collect();
    let document = Document { schema: "refrain-sites-1", ranks: trace.meta.ranks, sites };
    Ok(json::document(&document, out)?)
}
