//! Traces of memory references: overview, every reference, tables, loops, a check.

mod counts;
mod dump;
mod info;
mod lanes;
mod loops;
mod stats;
mod verify;

use refrain_fold::bundle::sites::{Frame, NO_MODULE};
use refrain_references::{Chunks, Error as Bad, References};
use refrain_sites::{Location, Names};
use refrain_tracefile::Trace;

use crate::error::Error;
use crate::select::Numbers;

pub use counts::{Counts, counts};
pub use dump::{Selection, dump, dump_json};
pub use info::{write_json as info_json, write_text as info_text};
pub use loops::{write_json as loops_json, write_text as loops_text};
pub use stats::{Instruction, Stats, Thread, stats, write_json as stats_json, write_text as stats_text};
pub use verify::verify;

/// What opens the chunks of a trace, once for each thread that is read.
type Opens = dyn Fn() -> Result<Option<Chunks>, Bad> + Send + Sync;

/// A trace of references, and from where those in chunks are read.
pub struct Recorded {
    pub trace: Trace,
    chunks: Box<Opens>,
}

impl Recorded {
    pub fn new(
        trace: Trace,
        chunks: impl Fn() -> Result<Option<Chunks>, Bad> + Send + Sync + 'static,
    ) -> Recorded {
        Recorded { trace, chunks: Box::new(chunks) }
    }

    pub fn chunks(&self) -> Result<Option<Chunks>, Bad> {
        (self.chunks)()
    }

    /// The ranks and threads that something is recorded of, in order, of those that are asked for.
    pub fn threads(
        &self,
        ranks: Option<&Numbers>,
        threads: Option<&Numbers>,
    ) -> Result<Vec<(u32, u32)>, Error> {
        let bundle = &self.trace.bundle;
        let beyond =
            |what, asked: Option<&Numbers>, have: u32| match asked.and_then(|asked| asked.beyond(have)) {
                Some(number) => {
                    Err(Error::NoSuch { what, number, have: format!("0 to {}", have.saturating_sub(1)) })
                }
                None => Ok(()),
            };
        beyond("rank", ranks, self.trace.meta.ranks)?;
        beyond("thread", threads, bundle.most_threads())?;
        let members = bundle.cohorts.iter().flat_map(|cohort| cohort.ranks.iter());
        let wanted = |asked: Option<&Numbers>, number| asked.is_none_or(|asked| asked.contains(number));
        let mut all: Vec<(u32, u32)> = members
            .map(|member| bundle.place_of(member))
            .filter(|&(rank, thread)| wanted(ranks, rank) && wanted(threads, thread))
            .collect();
        all.sort_unstable();
        Ok(all)
    }

    pub fn references(&self, place: (u32, u32)) -> Result<References<'_>, Error> {
        let found = References::new(&self.trace.bundle, place, self.chunks()?)?;
        found.ok_or_else(|| Error::NoSuch { what: "thread", number: place.1, have: "others".into() })
    }
}

impl From<Bad> for Error {
    fn from(error: Bad) -> Error {
        Error::References(error)
    }
}

/// Where an instruction stands, innermost, by name.
fn place_of(names: &dyn Names, frame: Frame) -> Option<Location> {
    if frame.module == NO_MODULE {
        return None;
    }
    // Frames are where calls return to: behind them.
    names.places(Frame { offset: frame.offset + 1, ..frame }).last().cloned().map(|place| Location {
        offset: frame.offset,
        distance: place.distance.saturating_sub(1),
        ..place
    })
}

/// The same as text; an address where it is in no module.
fn shown(names: &dyn Names, frame: Frame) -> String {
    match place_of(names, frame) {
        Some(place) => place.to_string(),
        None => format!("{:#x}", frame.offset),
    }
}
