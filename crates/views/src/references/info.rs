//! A trace of references on one screen.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;

use super::{Counts, Recorded, counts};
use crate::error::Error;
use crate::human::{date, duration, plural, size, thousands};
use crate::info::File;
use crate::json;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    bytes: u64,
    complete: bool,
    command: &'a [String],
    recorder: &'a str,
    refrain_version: &'a str,
    started: u64,
    wall_ns: u64,
    ranks: u32,
    threads: usize,
    #[serde(flatten)]
    counts: Counts,
    blocks: usize,
    structures: usize,
    cohorts: usize,
    streams: usize,
    call_paths: usize,
    options: BTreeMap<&'a str, &'a str>,
    notes: &'a [String],
    sections: Vec<Section<'a>>,
}

#[derive(Serialize)]
struct Section<'a> {
    name: &'a str,
    bytes: u64,
}

pub fn write_json(recorded: &Recorded, file: &File<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let (meta, bundle) = (&recorded.trace.meta, &recorded.trace.bundle);
    let document = Document {
        schema: "refrain-memory-info-1",
        file: file.name,
        bytes: file.bytes,
        complete: meta.complete,
        command: &meta.command,
        recorder: &meta.library,
        refrain_version: &meta.refrain_version,
        started: meta.started,
        wall_ns: meta.wall_ns,
        ranks: meta.ranks,
        threads: recorded.threads(None, None)?.len(),
        counts: counts(recorded)?,
        blocks: bundle.symbols.len(),
        structures: bundle.structures.len(),
        cohorts: bundle.cohorts.len(),
        streams: bundle.streams.len(),
        call_paths: paths(recorded),
        options: meta.options.iter().map(|(name, value)| (&**name, &**value)).collect(),
        notes: &meta.notes,
        sections: file.sections.iter().map(|&(name, bytes)| Section { name, bytes }).collect(),
    };
    Ok(json::document(&document, out)?)
}

/// Different call paths by which blocks were reached.
fn paths(recorded: &Recorded) -> usize {
    let bundle = &recorded.trace.bundle;
    let stacks = bundle.symbols.iter().filter_map(|symbol| bundle.sites.stacks.get(&symbol.site));
    stacks.map(|stack| stack.outer).collect::<std::collections::HashSet<_>>().len()
}

pub fn write_text(recorded: &Recorded, file: &File<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let (meta, bundle) = (&recorded.trace.meta, &recorded.trace.bundle);
    let counts = counts(recorded)?;
    let mut lines: Vec<(&str, String)> = Vec::new();
    let state = if meta.complete { "complete" } else { "partial: the run did not finish" };
    lines.push(("file", format!("{}, {}, {state}", file.name, plural(file.bytes, "byte"))));
    lines.push(("command", refrain_sites::printable(&meta.command.join(" ")).into_owned()));
    lines.push((
        "recorded by",
        format!("{}, Refrain {}", refrain_sites::printable(&meta.library), meta.refrain_version),
    ));
    if meta.started > 0 {
        lines.push(("started", date(i64::try_from(meta.started).unwrap_or(i64::MAX))));
        lines.push(("wall time", duration(meta.wall_ns)));
    }
    let threads = recorded.threads(None, None)?.len() as u64;
    lines.push(("threads", format!("{} in {}", thousands(threads), plural(meta.ranks.into(), "process"))));
    let each = file.bytes as f64 / counts.references.max(1) as f64;
    lines.push(("references", format!("{}, {each:.4} bytes each", thousands(counts.references))));
    let unfolded = counts.unfolded;
    if unfolded < counts.references {
        let accesses = format!(
            "{} ({}), {} ({}), {}",
            plural(counts.loads, "load"),
            size(counts.loaded.into()),
            plural(counts.stores, "store"),
            size(counts.stored.into()),
            plural(counts.updates, "atomic update"),
        );
        lines.push(("of these", accesses));
        if counts.fetches > 0 {
            let fetched = size(counts.fetched.into());
            lines.push(("", format!("{} instruction fetches ({fetched})", thousands(counts.fetches))));
        }
    }
    if unfolded > 0 {
        lines.push((
            "not folded",
            format!("{} more: they have no pattern, and are kept one by one", thousands(unfolded)),
        ));
    }
    lines.push((
        "folded into",
        format!(
            "{}, {}, {}, for {} of threads",
            plural(bundle.symbols.len() as u64, "block"),
            plural(bundle.structures.len() as u64, "structure"),
            plural(bundle.streams.len() as u64, "stream"),
            plural(bundle.cohorts.len() as u64, "kind"),
        ),
    ));
    lines.push(("call paths", thousands(paths(recorded) as u64)));
    for (name, value) in &meta.options {
        lines.push(("option", format!("--{name} {}", refrain_sites::printable(value))));
    }
    for note in &meta.notes {
        lines.push(("note", refrain_sites::printable(note).into_owned()));
    }
    let sections: Vec<String> =
        file.sections.iter().map(|(name, bytes)| format!("{name} {}", thousands(*bytes))).collect();
    lines.push(("bytes", sections.join(", ")));
    for (name, value) in lines {
        writeln!(out, "{name:<12} {value}")?;
    }
    out.flush()?;
    Ok(())
}
