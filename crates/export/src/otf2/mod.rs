//! An OTF2 archive: a folder with definitions and one file of events for each thread.
//!
//! A region is a function, and a call site of it where the trace has those: then it names the file and line of the call. A
//! location is a thread; a location group is a rank. Communicators are groups of ranks, also those that were made at run time.

mod definitions;
mod library;

use std::collections::HashMap;

use refrain_model::Function;
use refrain_views::happenings::{self, Meaning, Moment, Walk, When, chosen};

use crate::{Error, Input, Output, Report, collectives};
use definitions::{Comms, Regions};
use library::{Archive, Event, Events, Library};

/// Up to so many threads are written at the same time, each into its own file; of more, one rank after the other.
const TOGETHER: usize = 256;
/// Bytes held for each thread's events: the least that the library takes.
const CHUNK: u64 = 256 << 10;
/// What stands for no root.
const NO_ROOT: u32 = u32::MAX;
/// The root of an inter-communicator, and those beside it.
const ROOT_SELF: u32 = u32::MAX - 1;
const ROOT_THIS_GROUP: u32 = u32::MAX - 2;

/// Threads have numbers beyond those of ranks.
fn location(rank: u32, thread: u32) -> u64 {
    u64::from(thread) << 32 | u64::from(rank)
}

pub fn write(input: &mut Input, out: &Output) -> Result<Report, Error> {
    let trace = input.trace;
    let when = When::of(trace, input.times)?;
    let ranks = chosen(trace, input.ranks)?;
    // Before anything is made.
    let library = Library::load()?;
    let folder = out.folder()?;
    let about = when.note().unwrap_or_else(|| "times of each call as recorded".into());
    let archive = Archive::create(library, &folder, CHUNK, &about)?;
    let mut writing = Writing {
        archive,
        regions: Regions::new(trace, input.names),
        comms: Comms::default(),
        events: HashMap::new(),
        counts: HashMap::new(),
        last: 0,
        report: Report { notes: when.note().into_iter().collect(), ..Report::default() },
    };
    let threads: usize = ranks.iter().map(|rank| trace.bundle.threads(*rank).len()).sum();
    // Calls of ranks wait for each other, and receives know what they got, only if they are looked at together.
    let together =
        threads <= TOGETHER && input.times.is_none_or(|times| times.comparable(ranks.iter().copied()));
    let sets: Vec<Vec<u32>> =
        if together { vec![ranks] } else { ranks.into_iter().map(|rank| vec![rank]).collect() };
    let (mut read, mut bounded, mut lost) = (0, 0, 0);
    for set in sets {
        let mut walk = Walk::new(trace, &when, &set, input.between)?;
        while let Some(moment) = walk.next()? {
            writing.moment(moment)?;
            if walk.read() % (1 << 12) == 0 {
                (input.progress)(read + walk.read());
            }
        }
        read += walk.read();
        bounded += walk.bounded();
        lost += walk.lost();
        if walk.unclear() > 0 {
            writing.unclear(walk.unclear());
        }
        writing.close()?;
    }
    writing.report.notes.extend(happenings::notes(bounded, lost));
    writing.finish(input)
}

struct Writing<'a> {
    archive: Archive,
    regions: Regions<'a>,
    comms: Comms,
    /// Open ones, by location.
    events: HashMap<u64, Events>,
    /// Events of those that are closed.
    counts: HashMap<u64, u64>,
    /// The last moment.
    last: u64,
    report: Report,
}

impl Writing<'_> {
    fn events(&mut self, location: u64) -> Result<Events, Error> {
        if let Some(events) = self.events.get(&location) {
            return Ok(*events);
        }
        let events = self.archive.events(location)?;
        self.events.insert(location, events);
        Ok(events)
    }

    fn moment(&mut self, moment: Moment) -> Result<(), Error> {
        let (call, meanings, ends) = match &moment {
            Moment::Begins(call) => (call, &call.begins, false),
            Moment::Ends(call, meanings) => (call, meanings, true),
        };
        let time = u64::try_from(if ends { call.span.end } else { call.span.start }).unwrap_or(0);
        self.last = self.last.max(time);
        let events = self.events(location(call.rank, call.thread))?;
        let region = self.regions.of(call.symbol, call.call.function);
        if !ends {
            self.report.calls += 1;
            self.archive.write(events, time, Event::Enter { region })?;
        }
        for meaning in meanings {
            let event = self.event(meaning);
            self.archive.write(events, time, event)?;
        }
        if ends {
            self.archive.write(events, time, Event::Leave { region })?;
        }
        Ok(())
    }

    fn event(&mut self, meaning: &Meaning) -> Event {
        let tag = |tag: i64| u32::try_from(tag).unwrap_or(0);
        match meaning {
            Meaning::Send(message) => Event::Send {
                to: message.peer_in_comm,
                comm: self.comms.number(&message.comm),
                tag: tag(message.tag),
                bytes: message.bytes,
                request: message.request,
            },
            Meaning::Received(message) => Event::Received {
                from: message.peer_in_comm,
                comm: self.comms.number(&message.comm),
                tag: tag(message.tag),
                bytes: message.bytes,
                request: message.request,
            },
            Meaning::SendDone { request } => Event::SendDone { request: *request },
            Meaning::ReceivePosted { request } => Event::ReceivePosted { request: *request },
            Meaning::Tested { request } => Event::Tested { request: *request },
            Meaning::Cancelled { request } => Event::Cancelled { request: *request },
            Meaning::Collective(collective) => Event::Collective { request: collective.request },
            Meaning::CollectiveDone(collective) => {
                let rooted = collective.function.index_of("root").is_some();
                let root = match collective.root {
                    Some(root) => root,
                    // Of an inter-communicator: MPI_ROOT, or beside it.
                    None if collective.beside => ROOT_THIS_GROUP,
                    None if rooted => ROOT_SELF,
                    None => NO_ROOT,
                };
                Event::CollectiveDone {
                    operation: operation(collective.function),
                    comm: self.comms.number(&collective.comm),
                    root,
                    sent: collective.sent,
                    received: collective.received,
                    request: collective.request,
                }
            }
        }
    }

    fn unclear(&mut self, count: u64) {
        let told = "receives are without a message: the trace does not say who sent it";
        match self.report.notes.iter_mut().find(|note| note.ends_with(told)) {
            Some(note) => {
                let before: u64 = note.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
                *note = format!("{} {told}", before + count);
            }
            None => self.report.notes.push(format!("{count} {told}")),
        }
    }

    /// All events of those that are open are written.
    fn close(&mut self) -> Result<(), Error> {
        for (location, events) in std::mem::take(&mut self.events) {
            let count = self.archive.end_events(events)?;
            self.counts.insert(location, count);
        }
        Ok(())
    }

    fn finish(mut self, input: &Input) -> Result<Report, Error> {
        let trace = input.trace;
        let mut locations = Vec::new();
        for rank in 0..trace.meta.ranks {
            let mut threads = trace.bundle.threads(rank);
            if threads.is_empty() {
                threads.push(0);
            }
            locations.extend(threads.into_iter().map(|thread| (rank, thread)));
        }
        // Readers want a file of each location, if only an empty one.
        for (rank, thread) in &locations {
            let number = location(*rank, *thread);
            if !self.counts.contains_key(&number) {
                let events = self.archive.events(number)?;
                self.counts.insert(number, self.archive.end_events(events)?);
            }
        }
        let all: Vec<(u32, u32, u64)> = locations
            .iter()
            .map(|(rank, thread)| (*rank, *thread, self.counts[&location(*rank, *thread)]))
            .collect();
        let global =
            self.archive.definitions(all.iter().map(|(rank, thread, _)| location(*rank, *thread)))?;
        let Writing { archive, regions, comms, last, report, .. } = self;
        definitions::define(&archive, global, trace, &all, last, (&regions, comms))?;
        archive.finish(global)?;
        Ok(report)
    }
}

/// The number of a collective operation in the format; what is none of them makes a communicator.
fn operation(function: &Function) -> u8 {
    let name = collectives::kind(function);
    (0u8..).zip(collectives::ALL).find(|(_, one)| Some(*one) == name).map_or(17, |(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_the_numbers_of_the_format() {
        let number = |name: &str| operation(refrain_model::function(name).unwrap());
        let all = [
            ("MPI_Barrier", 0),
            ("MPI_Ibcast", 1),
            ("MPI_Allgatherv_init", 7),
            ("MPI_Alltoallw_c", 10),
            ("MPI_Ireduce_scatter_block", 16),
            ("MPI_Iscan", 14),
            ("MPI_Comm_split", 17),
        ];
        for (name, expected) in all {
            assert_eq!(number(name), expected, "{name}");
        }
    }
}
