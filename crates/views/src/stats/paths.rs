//! How the times of calls are distributed, by what came before them: of `run --time histogram`.

use std::io::Write;

use refrain_sites::{Location, Names};
use refrain_times::levels::Levels;
use refrain_times::paths::{Before, Histogram};
use refrain_tracefile::Trace;
use serde::Serialize;

use crate::dump::At;
use crate::error::Error;
use crate::human::{duration, thousands};
use crate::json;
use crate::table::Table;

/// The shares of which the time is told that they are not above.
const SHARES: [(&str, f64); 3] = [("50%", 0.5), ("90%", 0.9), ("99%", 0.99)];

/// Calls of one symbol after those of another.
#[derive(Debug, Clone, PartialEq)]
pub struct PathRow<'t> {
    pub function: &'static str,
    pub after: After,
    /// Nothing where it is not known.
    pub place: Option<Location>,
    /// One for each call, to within 1/16.
    pub duration: &'t Histogram,
    /// From the end of the call before to the start.
    pub gap: &'t Histogram,
}

/// What came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    Nothing,
    Function(&'static str),
    Others,
}

impl After {
    fn name(self) -> &'static str {
        match self {
            After::Nothing => "nothing",
            After::Function(name) => name,
            After::Others => "others",
        }
    }
}

/// Those that take the most time first, with the gap before them. An error where the trace has none.
pub fn paths<'t>(trace: &'t Trace, names: &dyn Names) -> Result<Vec<PathRow<'t>>, Error> {
    let bundle = &trace.bundle;
    let layouts = super::layouts(bundle)?;
    let paths = trace.meta.paths.as_ref().ok_or(Error::NoHistograms)?;
    let name = |symbol: u64| layouts.get(symbol as usize).map_or("?", |layout| layout.function.name);
    let place = |symbol: u64| {
        let site = bundle.symbols.get(symbol as usize)?.site;
        names.places(*bundle.sites.frames(site).last()?).last().cloned()
    };
    let row = |(&(symbol, before), path): (&(u64, Before), &'t refrain_times::paths::Path)| PathRow {
        function: name(symbol),
        after: match before {
            Before::Nothing => After::Nothing,
            Before::Call(symbol) => After::Function(name(symbol)),
            Before::Others => After::Others,
        },
        place: place(symbol),
        duration: &path.duration,
        gap: &path.gap,
    };
    let mut rows: Vec<PathRow> = paths.0.iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.duration.total.saturating_add(row.gap.total)));
    Ok(rows)
}

fn mean(histogram: &Histogram) -> u64 {
    histogram.total.checked_div(histogram.count()).unwrap_or(0)
}

pub fn write_paths_text(rows: &[PathRow<'_>], out: &mut dyn Write) -> Result<(), Error> {
    let placed = rows.iter().any(|row| row.place.is_some());
    let shares = SHARES.map(|(name, _)| name);
    let mut heading = vec!["function", "after", "calls", "mean"];
    heading.extend(shares);
    heading.extend(["gap mean"].into_iter().chain(shares));
    heading.extend(placed.then_some("at"));
    let mut table = Table::of(heading);
    for row in rows {
        let calls = format!("~{}", thousands(row.duration.count()));
        let mut cells = vec![row.function.to_owned(), row.after.name().to_owned(), calls];
        for histogram in [row.duration, row.gap] {
            // The time of MPI_Finalize is not known, as the trace is written in it.
            if histogram.counts.is_empty() || histogram.total == 0 {
                cells.extend(std::iter::repeat_n("-".to_owned(), 1 + SHARES.len()));
                continue;
            }
            cells.push(duration(mean(histogram)));
            cells.extend(SHARES.map(|(_, share)| duration(histogram.quantile(share))));
        }
        if placed {
            cells.push(row.place.as_ref().map_or("?".into(), Location::to_string));
        }
        table.push(cells);
    }
    out.write_all(table.render().as_bytes())?;
    writeln!(
        out,
        "\nDurations of calls by the call before, and the gap from its end to their start: the time outside MPI.\n\
         A percentage: so many took no longer than that, to within 10%. Means are kept to within 1%, counts to within 7%."
    )?;
    Ok(out.flush()?)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    ranks: u32,
    paths: Vec<Path<'a>>,
}

#[derive(Serialize)]
struct Path<'a> {
    function: &'static str,
    after: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<At<'a>>,
    duration: Distribution,
    gap: Distribution,
}

#[derive(Serialize)]
struct Distribution {
    count: u64,
    total_ns: u64,
    /// Each bin as its least and greatest time, and how many there are.
    bins: Vec<[u64; 3]>,
}

impl Distribution {
    fn of(histogram: &Histogram) -> Distribution {
        let bin = |(level, count)| [Levels::<8>::lowest(level).0, Levels::<8>::greatest(level), count];
        let bins = histogram.levels().map(bin).collect();
        Distribution { count: histogram.count(), total_ns: histogram.total, bins }
    }
}

impl<'a> Path<'a> {
    fn of(row: &'a PathRow<'_>) -> Path<'a> {
        Path {
            function: row.function,
            after: Some(row.after).filter(|after| *after != After::Nothing).map(After::name),
            at: row.place.as_ref().map(At::of),
            duration: Distribution::of(row.duration),
            gap: Distribution::of(row.gap),
        }
    }
}

pub fn write_paths_json(trace: &Trace, rows: &[PathRow<'_>], out: &mut dyn Write) -> Result<(), Error> {
    let paths = rows.iter().map(Path::of).collect();
    let document = Document { schema: "refrain-paths-1", ranks: trace.meta.ranks, paths };
    Ok(json::document(&document, out)?)
}
