//! Are these the references that were recorded? Do they lie between the calls that were?

use std::collections::BTreeMap;
use std::io::Write;

use refrain_references::{Checked, check};
use refrain_tracefile::Trace;

use super::Recorded;
use crate::error::Error;
use crate::human::{plural, thousands};

/// Reads everything and says so; whether the answer is yes. `calls` are those of the same run, where there are any.
pub fn verify(
    recorded: &Recorded,
    calls: Option<&Trace>,
    progress: &mut dyn FnMut(u64),
    quiet: bool,
    out: &mut dyn Write,
) -> Result<bool, Error> {
    let whole =
        recorded.chunks().and_then(|chunks| Ok(chunks.map(|mut chunks| chunks.check()).transpose()?));
    if let Err(error) = whole {
        writeln!(out, "no: {error}")?;
        return Ok(false);
    }
    let checked = check(&recorded.trace.bundle, || recorded.chunks(), progress);
    let Checked { references, threads, calls: marks, wrong } = match checked {
        Ok(checked) => checked,
        Err(error) => {
            writeln!(out, "no: {error}")?;
            return Ok(false);
        }
    };
    for (rank, thread) in &wrong {
        writeln!(
            out,
            "no: the references of rank {rank}, thread {thread}, or of one that did much the same, are not those that were \
             recorded: their digest differs"
        )?;
    }
    let mut problems = Vec::new();
    let mut between = String::new();
    if let Some(calls) = calls {
        // Of a run that was killed calls are kept to the last, and references to when they were last written.
        if recorded.trace.meta.complete && calls.meta.complete {
            problems = disagreements(calls, &marks);
        }
        between = format!(", between {} calls,", thousands(marks.values().sum()));
    }
    for problem in &problems {
        writeln!(out, "no: {problem}")?;
    }
    let is_right = wrong.is_empty() && problems.is_empty();
    if is_right && !quiet {
        let partial = if recorded.trace.meta.complete { "" } else { ", as far as it was recorded" };
        let (references, threads) = (plural(references, "reference"), plural(threads, "thread"));
        writeln!(out, "yes: {references} of {threads}{between} are what was recorded{partial}")?;
    }
    Ok(is_right)
}

/// By rank and thread of the calls: where there are not as many marks as calls.
fn disagreements(calls: &Trace, marks: &BTreeMap<(u32, u32), u64>) -> Vec<String> {
    let bundle = &calls.bundle;
    let mut counts: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    for cohort in &bundle.cohorts {
        for member in cohort.ranks.iter() {
            counts.entry(bundle.place_of(member)).or_default().0 +=
                refrain_encode::calls_of(bundle, cohort, member);
        }
    }
    for (place, count) in marks {
        counts.entry(*place).or_default().1 += count;
    }
    let differ = counts.into_iter().filter(|(_, (calls, marks))| calls != marks);
    let told = differ.map(|((rank, thread), (calls, marks))| {
        format!(
            "rank {rank}, thread {thread} has {}, but its references say that there were {}",
            plural(calls, "call"),
            thousands(marks)
        )
    });
    told.collect()
}
