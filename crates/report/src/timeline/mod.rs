//! A timeline of all ranks, in a bounded number of rectangles.
//!
//! Of traces that tell when each call was: an overview of the whole run in columns, and every call of a window. Of others the
//! first calls of each rank, or of one rank of each kind, with times made up of means (`rebuilt`).

mod lines;
mod real;
mod rebuilt;

use refrain_encode::Layout;
use refrain_views::Error;
use refrain_views::loops::Outline;
use serde_json::{Value, json};

use crate::{Input, Progress};

/// Calls that are shown one by one, and lines between them.
const MOST_CALLS: usize = 5000;
const MOST_LINES: usize = 3000;
const MOST_BANDS: usize = 400;
/// Rows of the picture, and columns of the overview.
const MOST_ROWS: usize = 64;
const COLUMNS: usize = 600;
/// Functions with a colour of their own: each has a printable character in the overview.
const MOST_FUNCTIONS: usize = 72;

pub fn timeline(input: &Input<'_>, outlines: &[Outline], progress: Progress<'_>) -> Result<Value, Error> {
    let functions = Functions::of(input)?;
    match input.times {
        Some(times) if !times.some_apart() => real::timeline(input, times, &functions, outlines, progress),
        // Nothing can be cut from what is put together.
        Some(_) if input.between.is_some() => Err(Error::NoCommonClock),
        None if input.between.is_some() => Err(Error::NoTimes),
        _ => rebuilt::timeline(input, &functions, outlines),
    }
}

/// The functions of a trace, numbered.
struct Functions {
    names: Vec<&'static str>,
    /// By symbol.
    of: Vec<usize>,
}

impl Functions {
    fn of(input: &Input<'_>) -> Result<Functions, Error> {
        let mut names: Vec<&'static str> = Vec::new();
        let mut of = Vec::new();
        for (index, symbol) in (0u32..).zip(&input.trace.bundle.symbols) {
            let layout = Layout::parse(&symbol.bytes).map_err(|error| Error::Symbol { index, error })?;
            let name = layout.function.name;
            let known = names.iter().position(|known| *known == name);
            let at = known.unwrap_or_else(|| {
                if names.len() < MOST_FUNCTIONS {
                    names.push(name);
                } else if names.len() == MOST_FUNCTIONS {
                    names.push("other functions");
                }
                names.len() - 1
            });
            of.push(at);
        }
        Ok(Functions { names, of })
    }

    fn number(&self, symbol: Option<u32>) -> usize {
        symbol.and_then(|symbol| self.of.get(symbol as usize)).copied().unwrap_or(0)
    }
}

/// Every call of a window, for each row.
#[derive(Default)]
struct Detail {
    /// Start, end and function.
    rows: Vec<Vec<(i64, i64, usize)>>,
}

impl Detail {
    /// From a row to a row, from when to when.
    fn value(&self, start: i64, end: i64) -> Value {
        let row = |calls: &Vec<(i64, i64, usize)>| {
            let mut flat = Vec::new();
            let mut at = start;
            for (from, to, function) in calls {
                flat.extend([from - at, to - from, *function as i64]);
                at = *to;
            }
            flat
        };
        json!({ "start": start, "end": end, "rows": self.rows.iter().map(row).collect::<Vec<_>>() })
    }
}

/// Time steps of the first row: from each marking call to the next.
fn bands(marks: &[(i64, u64)], end: i64) -> Vec<Value> {
    let ends = marks.iter().skip(1).map(|(start, _)| *start).chain([end]);
    marks
        .iter()
        .zip(ends)
        .take(MOST_BANDS)
        .map(|((start, number), end)| json!([start, end, number.to_string()]))
        .collect()
}

/// The functions that are seen, in the order in which they take time.
fn legend(functions: &Functions, spent: &[u128]) -> Vec<&'static str> {
    let mut seen: Vec<usize> = (0..functions.names.len()).filter(|at| spent[*at] > 0).collect();
    seen.sort_by_key(|at| std::cmp::Reverse(spent[*at]));
    seen.into_iter().map(|at| functions.names[at]).collect()
}
