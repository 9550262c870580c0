//! What the formats with a line for each thread have in common: one walk over all calls in the order of time.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::rc::Rc;

use refrain_encode::Reader;
use refrain_sites::Names;
use refrain_tracefile::Trace;
use refrain_views::happenings::{Happening, Meaning, Message, Moment, Walk, When, chosen};
use refrain_views::human::plural;

use crate::out::written;
use crate::{Error, Input, Report};

/// A rank and a thread of it.
pub type Track = (u32, u32);

/// Calls that are read between two words about progress.
const OFTEN: u64 = 1 << 12;

/// A format that is told what begins and what ends.
pub trait Timeline {
    fn begins(&mut self, call: &Happening) -> io::Result<()>;
    /// With what it means at its end. Its span is the one that counts.
    fn ends(&mut self, call: &Happening, means: &[Meaning]) -> io::Result<()>;
}

/// The threads that were asked for.
pub fn places(input: &Input) -> Result<Vec<Track>, Error> {
    let reader = Reader::new(&input.trace.bundle);
    let ranks = chosen(input.trace, input.ranks)?;
    Ok(ranks
        .iter()
        .flat_map(|rank| reader.threads(*rank).into_iter().map(move |thread| (*rank, thread)))
        .collect())
}

/// Goes through all calls. `path` is what is written, for errors.
pub fn walk(input: &mut Input, path: &Path, to: &mut dyn Timeline) -> Result<Report, Error> {
    let when = When::of(input.trace, input.times)?;
    let mut walk = Walk::new(input.trace, &when, &chosen(input.trace, input.ranks)?, input.between)?;
    let mut report = Report::default();
    let mut told = 0;
    let mut order = Order::default();
    while let Some(moment) = walk.next()? {
        match moment {
            Moment::Begins(call) => to.begins(&order.sends(call)),
            Moment::Ends(call, mut means) => {
                report.calls += 1;
                order.receives(&mut means);
                to.ends(&call, &means)
            }
        }
        .map_err(written(path))?;
        if walk.read() >= told + OFTEN {
            told = walk.read();
            (input.progress)(told);
        }
    }
    report.notes.extend(when.note());
    if walk.unclear() > 0 {
        report.notes.push(format!(
            "{} of which the trace does not say what they got: these messages have no line",
            plural(walk.unclear(), "receive")
        ));
    }
    report.notes.extend(walk.notes());
    if order.count > 0 && input.between.is_some() {
        report.notes.push(format!(
            "{} without a line: the trace has no send of it in this time",
            plural(order.count, "received message")
        ));
    } else if order.count > 0 {
        report.notes.push(format!(
            "{} came before they were sent, by the times that the trace has: these have no line",
            plural(order.count, "message")
        ));
    }
    Ok(report)
}

/// A message comes after it was sent. Times that are not exact may say otherwise; viewers take such a line for an error, or for
/// one that never ends.
#[derive(Default)]
struct Order {
    /// On their way.
    sent: HashSet<u64>,
    /// Came first.
    early: HashSet<u64>,
    count: u64,
}

impl Order {
    /// The call without the messages that have come already.
    fn sends(&mut self, call: Rc<Happening>) -> Rc<Happening> {
        let mut wrong = false;
        for meaning in &call.begins {
            if let Meaning::Send(Message { id: Some(id), .. }) = meaning
                && !self.early.contains(id)
            {
                self.sent.insert(*id);
            } else {
                wrong |= matches!(meaning, Meaning::Send(Message { id: Some(_), .. }));
            }
        }
        if !wrong {
            return call;
        }
        let mut begins = call.begins.clone();
        for meaning in &mut begins {
            if let Meaning::Send(message) = meaning
                && message.id.is_some_and(|id| self.early.remove(&id))
            {
                message.id = None;
            }
        }
        let Happening { rank, thread, number, ref call, symbol, span, .. } = *call;
        Rc::new(Happening { rank, thread, number, call: call.clone(), symbol, span, begins })
    }

    fn receives(&mut self, means: &mut [Meaning]) {
        for meaning in means {
            if let Meaning::Received(message) = meaning
                && let Some(id) = message.id
                && !self.sent.remove(&id)
            {
                message.id = None;
                self.early.insert(id);
                self.count += 1;
            }
        }
    }
}

/// Places in the program by symbol, as text.
pub struct Sites<'a> {
    trace: &'a Trace,
    names: &'a dyn Names,
    known: HashMap<u32, Option<Rc<str>>>,
}

impl<'a> Sites<'a> {
    pub fn new(input: &Input<'a>) -> Sites<'a> {
        Sites { trace: input.trace, names: input.names, known: HashMap::new() }
    }

    /// The line that calls MPI, if the trace has it.
    pub fn of(&mut self, symbol: Option<u32>) -> Option<Rc<str>> {
        let (symbol, bundle) = (symbol?, &self.trace.bundle);
        if bundle.sites.is_empty() {
            return None;
        }
        let names = self.names;
        let look = || {
            let frames = bundle.sites.frames(bundle.symbols.get(symbol as usize)?.site);
            let places = names.places(*frames.last()?);
            Some(Rc::from(places.last()?.to_string()))
        };
        self.known.entry(symbol).or_insert_with(look).clone()
    }
}
