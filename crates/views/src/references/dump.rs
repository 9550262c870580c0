//! Every reference, one a line.

use std::fmt::Write as _;
use std::io::Write;
use std::ops::Range;

use refrain_sites::Names;
use serde::Serialize;

use super::{Recorded, shown};
use crate::error::Error;
use crate::select::Numbers;

/// Which references; by default all.
#[derive(Debug, Clone)]
pub struct Selection {
    pub ranks: Option<Numbers>,
    pub threads: Option<Numbers>,
    /// Positions in a thread's sequence, from 0.
    pub references: Range<u64>,
}

#[derive(Serialize)]
struct Line<'a> {
    rank: u32,
    thread: u32,
    number: u64,
    access: &'a str,
    size: u32,
    address: u64,
    module: Option<&'a str>,
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a str>,
}

/// `[rank.thread] number  load 8 0x7f001000  app+0x1234`; with names, where in the source instead.
pub fn dump(
    recorded: &Recorded,
    which: &Selection,
    names: Option<&dyn Names>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let bundle = &recorded.trace.bundle;
    let several = bundle.most_threads() > 1;
    let mut line = String::new();
    each(recorded, which, |(rank, thread), number, event| {
        line.clear();
        let of = if several { format!("{rank}.{thread}") } else { rank.to_string() };
        let _ = write!(
            line,
            "[{of}] {number}  {:<6} {:>2}  {:#x}",
            event.access.name(),
            event.size,
            event.address
        );
        match names {
            Some(names) => {
                let _ = write!(line, "  {}", shown(names, event.place));
            }
            None => {
                let module = bundle.sites.modules.get(&event.place.module);
                let module = module.map_or("", |module| module.path.rsplit('/').next().unwrap_or_default());
                let plus = if module.is_empty() { "" } else { "+" };
                let _ = write!(line, "  {}{plus}{:#x}", refrain_sites::plain(module), event.place.offset);
            }
        }
        line.push('\n');
        out.write_all(line.as_bytes())
    })?;
    out.flush()?;
    Ok(())
}

/// The same as one JSON object a line.
pub fn dump_json(
    recorded: &Recorded,
    which: &Selection,
    names: Option<&dyn Names>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let modules = &recorded.trace.bundle.sites.modules;
    each(recorded, which, |(rank, thread), number, event| {
        let place = names.map(|names| shown(names, event.place));
        let line = Line {
            rank,
            thread,
            number,
            access: event.access.name(),
            size: event.size,
            address: event.address,
            module: modules.get(&event.place.module).map(|module| &*module.path),
            offset: event.place.offset,
            place: place.as_deref(),
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")
    })?;
    out.flush()?;
    Ok(())
}

fn each(
    recorded: &Recorded,
    which: &Selection,
    mut show: impl FnMut((u32, u32), u64, &refrain_references::Event) -> std::io::Result<()>,
) -> Result<(), Error> {
    for place in recorded.threads(which.ranks.as_ref(), which.threads.as_ref())? {
        let mut references = recorded.references(place)?;
        let mut number = references.skip_to(which.references.start)?;
        while number < which.references.end {
            let Some(event) = references.next() else { break };
            show(place, number, &event?)?;
            number += 1;
        }
    }
    Ok(())
}
