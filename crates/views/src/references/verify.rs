//! Are these the references that were recorded?

use std::io::Write;

use refrain_references::{Checked, check};

use super::Recorded;
use crate::error::Error;
use crate::human::plural;

/// Reads everything and says so; whether the answer is yes.
pub fn verify(
    recorded: &Recorded,
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
    let Checked { references, threads, wrong } = match checked {
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
    if wrong.is_empty() && !quiet {
        let partial = if recorded.trace.meta.complete { "" } else { ", as far as it was recorded" };
        let (references, threads) = (plural(references, "reference"), plural(threads, "thread"));
        writeln!(out, "yes: {references} of {threads} are what was recorded{partial}")?;
    }
    Ok(wrong.is_empty())
}
