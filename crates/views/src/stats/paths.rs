//! How the times of calls are distributed, by what came before them: of `run --time histogram`.

use std::io::Write;

use refrain_sites::{Location, Names};
use refrain_times::levels::Levels;
use refrain_times::paths::{Before, ERROR, Histogram};
use refrain_tracefile::Trace;
use serde::Serialize;

use crate::dump::At;
use crate::error::Error;
use crate::human::thousands;
use crate::json;
use crate::length::Told;
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

/// A file keeps counts of a level from here on to one part in as many; smaller ones are exact.
const COUNTED: u64 = 16;
/// The sum of the times is right to within one part in so many.
const SUMMED: u64 = 100;

/// By how much a count may be wrong: where levels have few each, by nothing.
fn count_error(histogram: &Histogram) -> u64 {
    let error = |(_, count): (u16, u64)| if count < COUNTED { 0 } else { count.div_ceil(COUNTED) };
    histogram.levels().map(error).fold(0, u64::saturating_add)
}

fn total_error(histogram: &Histogram) -> u64 {
    histogram.total / SUMMED + 1
}

fn mean(histogram: &Histogram) -> Told {
    let (total, error) = (histogram.total, total_error(histogram));
    let (count, off) = (histogram.count().max(1), count_error(histogram));
    let ns = total / count;
    let most = total.saturating_add(error).div_ceil(count.saturating_sub(off).max(1));
    let least = total.saturating_sub(error) / count.saturating_add(off);
    Told { ns, error: most.saturating_sub(ns).max(ns - least.min(ns)) }
}

fn quantile(histogram: &Histogram, share: f64) -> Told {
    let ns = histogram.quantile(share);
    Told { ns, error: ns.div_ceil(ERROR) }
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
        let marked = if count_error(row.duration) > 0 { "~" } else { "" };
        let calls = format!("{marked}{}", thousands(row.duration.count()));
        let mut cells = vec![row.function.to_owned(), row.after.name().to_owned(), calls];
        for histogram in [row.duration, row.gap] {
            // The time of MPI_Finalize is not known, as the trace is written in it.
            if histogram.counts.is_empty() || histogram.total == 0 {
                cells.extend(std::iter::repeat_n("-".to_owned(), 1 + SHARES.len()));
                continue;
            }
            cells.push(mean(histogram).to_string());
            cells.extend(SHARES.map(|(_, share)| quantile(histogram, share).to_string()));
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
         A percentage: so many took no longer than that. ~: right to within 10%, counts to within 7%, means to within 8%."
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
    #[serde(skip_serializing_if = "Option::is_none")]
    count_error: Option<u64>,
    total_ns: u64,
    total_error_ns: u64,
    /// Each bin as its least and greatest time, and how many there are.
    bins: Vec<[u64; 3]>,
}

impl Distribution {
    fn of(histogram: &Histogram) -> Distribution {
        let bin = |(level, count)| [Levels::<8>::lowest(level).0, Levels::<8>::greatest(level), count];
        let bins = histogram.levels().map(bin).collect();
        Distribution {
            count: histogram.count(),
            count_error: Some(count_error(histogram)).filter(|error| *error > 0),
            total_ns: histogram.total,
            total_error_ns: total_error(histogram),
            bins,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ns: u64, calls: u64) -> Histogram {
        let mut histogram = Histogram::default();
        (0..calls).for_each(|_| histogram.add(ns));
        histogram
    }

    /// Counts of less than 16 are exact, no time is.
    #[test]
    fn what_is_rounded_is_marked_and_has_a_bound() {
        let (few, many) = (of(1000, 15), of(1000, 1600));
        assert_eq!((count_error(&few), count_error(&many)), (0, 100));
        assert_eq!(mean(&few), Told { ns: 1000, error: 11 });
        // 1616001 ns in 1500 calls.
        assert_eq!(mean(&many), Told { ns: 1000, error: 78 });
        let place = None;
        let row = |histogram| PathRow {
            function: "MPI_Send",
            after: After::Others,
            place: place.clone(),
            duration: histogram,
            gap: histogram,
        };
        let rows = [row(&few), row(&many)];
        let mut text = Vec::new();
        write_paths_text(&rows, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let times = "~1.00 us ~992 ns ~992 ns ~992 ns";
        let lines: Vec<String> = text.lines().skip(1).take(2).map(words).collect();
        let wanted = ["15", "~1,600"].map(|calls| format!("MPI_Send others {calls} {times} {times}"));
        assert_eq!(lines, wanted, "{text}");
        let mut json = Vec::new();
        write_paths_json(&Trace::default(), &rows, &mut json).unwrap();
        let json = String::from_utf8(json).unwrap();
        for part in [
            r#""duration":{"count":15,"total_ns":15000,"total_error_ns":151,"#,
            r#""gap":{"count":1600,"count_error":100,"total_ns":1600000,"total_error_ns":16001,"#,
        ] {
            assert!(json.contains(part), "{part} in {json}");
        }
    }
}
