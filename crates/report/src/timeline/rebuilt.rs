//! A timeline of a trace that does not tell when each call was: the first calls of every rank, or of one rank of each kind, in
//! the order and with the times that `views::happenings` makes up of means and distributions. Without any times, all calls are
//! equally long.

use std::collections::HashMap;

use refrain_encode::Reader;
use refrain_views::Error;
use refrain_views::happenings::{Moment, Walk, When};
use refrain_views::human::thousands;
use refrain_views::loops::Outline;
use serde_json::{Value, json};

use super::lines::Lines;
use super::{Detail, Functions, MOST_CALLS, MOST_ROWS, bands, legend};
use crate::Input;
use crate::ranks::shortened;

/// With so many ranks each has a row.
const EACH: u32 = 16;
/// Kinds that have a row.
const KINDS: usize = 24;

/// A thread of a rank with a label, for each row.
struct Rows {
    members: Vec<((u32, u32), String)>,
    /// What is to be said of how they were chosen.
    note: Option<String>,
    /// All ranks have one, so that messages have lines.
    all: bool,
}

fn rows(input: &Input<'_>, reader: &Reader<'_>) -> Rows {
    let bundle = &input.trace.bundle;
    let several = bundle.most_threads() > 1;
    let only_first = || several.then(|| "Shown is thread 0 of each rank.".to_owned());
    if input.trace.meta.ranks <= EACH {
        let ranks = 0..input.trace.meta.ranks;
        let threads = |rank| reader.threads(rank).into_iter().map(move |thread| (rank, thread));
        let every: Vec<(u32, u32)> = ranks.flat_map(threads).collect();
        let label = |(rank, thread)| match several && every.len() <= MOST_ROWS {
            true => format!("rank {rank}.{thread}"),
            false => format!("rank {rank}"),
        };
        let shown = every.iter().filter(|(_, thread)| *thread == 0 || every.len() <= MOST_ROWS);
        let members = shown.map(|place| (*place, label(*place))).collect();
        return Rows { members, note: if every.len() > MOST_ROWS { only_first() } else { None }, all: true };
    }
    let cohorts = bundle.of_threads();
    let kinds: Vec<_> = cohorts.iter().filter(|cohort| cohort.thread == 0).collect();
    let mut members = Vec::new();
    for cohort in kinds.iter().take(KINDS) {
        let first = cohort.ranks.first().unwrap_or(0);
        let n = cohort.ranks.len();
        let label = if n == 1 { format!("rank {first}") } else { format!("{first} of {}", thousands(n)) };
        members.push(((first, 0), label));
    }
    let mut note = match kinds.len() > members.len() {
        true => format!(
            "A row is one rank of a kind; {} of {} kinds are shown.",
            members.len(),
            thousands(kinds.len() as u64)
        ),
        false => "A row is one rank of each kind; the others of its kind make the same calls.".to_owned(),
    };
    note.extend(only_first().map(|word| format!(" {word}")));
    Rows { members, note: Some(note), all: false }
}

pub fn timeline(input: &Input<'_>, functions: &Functions, outlines: &[Outline]) -> Result<Value, Error> {
    let trace = input.trace;
    let rows = rows(input, &Reader::new(&trace.bundle));
    if rows.members.is_empty() {
        return Ok(Value::Null);
    }
    let when = When::of(trace, None)?;
    // Calls are counted where nothing is known of time.
    let unit = if when.is_off() { When::STEP } else { 1 };
    let quota = (MOST_CALLS / rows.members.len()).max(40);
    let drawn = draw(input, &when, functions, outlines, (&rows, quota))?;
    let Drawn { detail, spent, lines, marks, started, end, whole } = drawn;
    let mut note = String::from(if input.times.is_some() {
        "Reconstructed: the clocks of the ranks were not compared, so their times cannot stand side by side. The order of the calls \
         is as recorded; each is as long as its kind is on average. What varies from call to call is not seen."
    } else if when.is_off() {
        "No times were kept: all calls are drawn as equally long, in the order in which they were made."
    } else if trace.meta.paths.is_some() {
        "Reconstructed: this trace has distributions of times, not when each call was. The order of the calls is as recorded; what is \
         computed before each is drawn from its distribution, and each is as long as its kind is on average, or until what it \
         waits for has come. `refrain run --time exact` keeps the real times."
    } else {
        "Reconstructed: this trace has mean times, not when each call was. The order of the calls is as recorded; each is as long as \
         its kind is on average, or until what it waits for has come. What varies from call to call is not seen. \
         `refrain run --time exact` keeps the real times."
    });
    if !whole {
        note.push_str(&format!(" Shown are up to {} calls of each row.", thousands(quota as u64)));
    }
    note.extend(rows.note.map(|word| format!(" {word}")));
    let read = match when.is_off() {
        false => {
            "How the run looks from its mean times, reconstructed: one row a rank, time from left to right; a colour is a function \
             of MPI, grey is the program's own work."
        }
        true => {
            "The order of the calls: one row a rank, from the first call on the left; a colour is a function of MPI, grey is where a \
             rank would wait for others. It says nothing about time."
        }
    };
    let home = home(&detail, &marks, (started, end));
    let units = |n: i64| n / unit;
    let detail = Detail { rows: detail.rows.into_iter().map(|row| in_units(row, unit)).collect() };
    let marks: Vec<(i64, u64)> = marks.into_iter().map(|(start, step)| (units(start), step)).collect();
    let labels: Vec<String> = rows.members.into_iter().map(|(_, label)| shortened(&label)).collect();
    let end = units(end).max(1);
    Ok(json!({
        "how": if when.is_off() { "order" } else { "reconstructed" },
        "read": read,
        "note": note,
        "functions": functions.names,
        "legend": legend(functions, &spent),
        "rows": labels,
        "span": [0, end],
        "home": [units(home.0), units(home.1).max(1)],
        "overview": null,
        "detail": detail.value(0, end),
        "messages": lines.value(unit),
        "bands": bands(&marks, end),
    }))
}

type Calls = Vec<(i64, i64, usize)>;

fn in_units(calls: Calls, unit: i64) -> Calls {
    calls.into_iter().map(|(start, end, function)| (start / unit, end / unit, function)).collect()
}

struct Drawn {
    detail: Detail,
    spent: Vec<u128>,
    lines: Lines,
    /// Where time steps begin, of the first row.
    marks: Vec<(i64, u64)>,
    /// All have left `MPI_Init`.
    started: i64,
    /// The picture ends where a row has as many calls as it has room for.
    end: i64,
    whole: bool,
}

fn draw(
    input: &Input<'_>,
    when: &When<'_>,
    functions: &Functions,
    outlines: &[Outline],
    (rows, quota): (&Rows, usize),
) -> Result<Drawn, Error> {
    let row_of: HashMap<(u32, u32), usize> =
        rows.members.iter().enumerate().map(|(row, (place, _))| (*place, row)).collect();
    let mut ranks: Vec<u32> = rows.members.iter().map(|((rank, _), _)| *rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let (first, thread) = rows.members[0].0;
    let outline = outlines.iter().find(|o| o.thread == thread && o.ranks.contains(first));
    let step = outline.and_then(|outline| outline.step);
    let mut begun = vec![0; rows.members.len()];
    let mut under_way = vec![None; rows.members.len()];
    let mut drawn = Drawn {
        detail: Detail { rows: vec![Vec::new(); rows.members.len()] },
        spent: vec![0; functions.names.len()],
        lines: Lines::default(),
        marks: Vec::new(),
        started: 0,
        end: 0,
        whole: false,
    };
    let mut walk = Walk::new(input.trace, when, &ranks, None)?;
    loop {
        let Some(moment) = walk.next()? else {
            drawn.whole = true;
            break;
        };
        let (Moment::Begins(call) | Moment::Ends(call, _)) = &moment;
        let Some(&row) = row_of.get(&(call.rank, call.thread)) else { continue };
        let function = functions.number(call.symbol);
        if matches!(moment, Moment::Begins(_)) {
            drawn.end = drawn.end.max(call.span.start);
            if begun[row] == quota {
                break;
            }
            begun[row] += 1;
            under_way[row] = Some((call.span.start, function));
            if row == 0 && step.is_some() && step == call.symbol {
                drawn.marks.push((call.span.start, drawn.marks.len() as u64 + 1));
            }
        } else {
            under_way[row] = None;
            drawn.end = drawn.end.max(call.span.end);
            drawn.detail.rows[row].push((call.span.start, call.span.end, function));
            if call.call.function.name.starts_with("MPI_Init") && begun[row] == 1 {
                drawn.started = drawn.started.max(call.span.end);
            }
        }
        if rows.all {
            drawn.lines.take_in(row, &moment);
        }
    }
    for (row, call) in under_way.into_iter().enumerate() {
        if let Some((start, function)) = call {
            drawn.detail.rows[row].push((start, drawn.end.max(start), function));
        }
    }
    for (start, end, function) in drawn.detail.rows.iter().flatten() {
        drawn.spent[*function] += (end - start).max(0) as u128;
    }
    Ok(drawn)
}

/// What is seen first: some time steps, or some calls.
fn home(detail: &Detail, marks: &[(i64, u64)], (started, end): (i64, i64)) -> (i64, i64) {
    const STEPS: usize = 6;
    const CALLS: usize = 80;
    let from = if started < end { started } else { 0 };
    let step = marks.get(STEPS).map(|(start, _)| *start);
    let call = || detail.rows.iter().filter_map(|row| row.get(CALLS)).map(|call| call.0).max();
    (from, step.or_else(call).unwrap_or(end).clamp(from, end))
}
