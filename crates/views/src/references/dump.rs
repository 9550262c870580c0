//! Every reference, one a line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;

use refrain_encode::Reader;
use refrain_model::Call;
use refrain_references::{Event, Item};
use refrain_sites::Names;
use refrain_tracefile::Trace;
use serde::Serialize;

use super::{Recorded, shown};
use crate::dump::{self, call_text};
use crate::error::Error;
use crate::json;
use crate::select::Numbers;
use crate::timed::Timed;

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

/// A call among them.
#[derive(Serialize)]
struct CallLine<'a> {
    rank: u32,
    thread: u32,
    call: dump::Line<'a>,
}

/// What a thread did.
enum Done<'a> {
    /// With its number.
    Reference(u64, &'a Event),
    /// Which call it is, by its thread among those of the calls and its number there.
    Call((u32, u64), &'a Call),
}

/// `[rank.thread] number  load 8 0x7f001000  app+0x1234`; with names, where in the source instead. With the calls of the same run,
/// these stand where they returned: `[rank.thread] call number  MPI_Send(...) = 0`.
pub fn dump(
    recorded: &Recorded,
    which: &Selection,
    names: Option<&dyn Names>,
    calls: Option<&Trace>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let bundle = &recorded.trace.bundle;
    let several = bundle.most_threads() > 1;
    let several_call = calls.is_some_and(|calls| calls.bundle.most_threads() > 1);
    let mut line = String::new();
    each(recorded, which, calls, |(rank, thread), done| {
        line.clear();
        let of = if several { format!("{rank}.{thread}") } else { rank.to_string() };
        let (number, event) = match done {
            Done::Reference(number, event) => (number, event),
            Done::Call((of_calls, number), call) => {
                let which = if several_call { format!("{of_calls}.{number}") } else { number.to_string() };
                let _ = write!(line, "[{of}] call {which}  ");
                call_text(call, None, &mut line);
                line.push('\n');
                return out.write_all(line.as_bytes());
            }
        };
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
                let _ = write!(line, "  {}{plus}{:#x}", refrain_sites::printable(module), event.place.offset);
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
    calls: Option<&Trace>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let modules = &recorded.trace.bundle.sites.modules;
    each(recorded, which, calls, |(rank, thread), done| {
        let (number, event) = match done {
            Done::Reference(number, event) => (number, event),
            Done::Call((of_calls, number), call) => {
                let call = dump::Line::of(call, (rank, of_calls), number, None, None);
                json::write(&CallLine { rank, thread, call }, &mut *out)?;
                return out.write_all(b"\n");
            }
        };
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
        json::write(&line, &mut *out)?;
        out.write_all(b"\n")
    })?;
    out.flush()?;
    Ok(())
}

fn each(
    recorded: &Recorded,
    which: &Selection,
    calls: Option<&Trace>,
    mut show: impl FnMut((u32, u32), Done<'_>) -> io::Result<()>,
) -> Result<(), Error> {
    let chosen = recorded.threads(which.ranks.as_ref(), which.threads.as_ref())?;
    let Some(calls) = calls else {
        for place in chosen {
            let mut references = recorded.references(place)?;
            let mut number = references.skip_to(which.references.start)?;
            while number < which.references.end {
                let Some(event) = references.next() else { break };
                show(place, Done::Reference(number, &event?))?;
                number += 1;
            }
        }
        return Ok(());
    };
    let reader = Reader::new(&calls.bundle);
    // How many calls were made so far, by rank and thread of the calls: a thread may go on where an earlier one has ended.
    let mut made: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for place in recorded.threads(which.ranks.as_ref(), None)? {
        let (rank, _) = place;
        let is_chosen = chosen.binary_search(&place).is_ok();
        let is_last = !chosen.iter().any(|later| later.0 == rank && *later > place);
        if !is_chosen && is_last {
            continue;
        }
        let mut references = recorded.references(place)?;
        let mut next: BTreeMap<u32, Timed<'_>> = BTreeMap::new();
        let is_shown = |number| is_chosen && which.references.contains(&number);
        let mut number = 0;
        while let Some(item) = references.next_item() {
            match item? {
                Item::Reference(event) => {
                    if is_shown(number) {
                        show(place, Done::Reference(number, &event))?;
                    }
                    number += 1;
                    if is_last && number >= which.references.end {
                        break;
                    }
                }
                Item::Call(of) => {
                    let made = made.entry((rank, of)).or_default();
                    let position = *made;
                    *made += 1;
                    if !is_shown(number) {
                        continue;
                    }
                    let from = match next.entry(of) {
                        std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                        std::collections::btree_map::Entry::Vacant(new) => {
                            let timed = Timed::among(&calls.bundle, &reader, None, (rank, of), position, 1)?;
                            new.insert(timed)
                        }
                    };
                    // What is left of a run that was killed may have fewer calls than marks.
                    if let Some((call, _)) = from.next_call()? {
                        show(place, Done::Call((of, position), &call))?;
                    }
                }
            }
        }
    }
    Ok(())
}
