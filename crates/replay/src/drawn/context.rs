//! Another rank's calls, as far as they are about this one.

use std::collections::{HashMap, VecDeque};

use refrain_encode::{Calls, Reader};
use refrain_model::{Call, Value};
use refrain_tracefile::Trace;

use super::agreed::{Said, needs};
use super::clock::{Clock, Time};
use super::steps::Steps;
use crate::options::Options;
use crate::perform::is_failed_poll;
use crate::what_if;

/// A message that will come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    pub from: u32,
    pub bytes: u64,
    pub time: Time,
}

/// The calls of one rank, in order, and what they mean.
pub struct Walk<'t> {
    calls: Calls<'t>,
    pub steps: Steps,
    factor: f64,
}

impl<'t> Walk<'t> {
    pub fn new(
        trace: &'t Trace,
        reader: &Reader<'t>,
        rank: u32,
        options: &Options,
    ) -> Result<Walk<'t>, String> {
        let calls = reader.calls(rank, 0).map_err(|error| error.to_string())?;
        let steps = Steps::new(Clock::of(trace, rank, options.seed), rank, trace.meta.ranks);
        Ok(Walk { calls, steps, factor: options.message_size })
    }

    /// The next call, and the symbol that says what kind it is.
    pub fn next(&mut self) -> Result<Option<(Call, Option<u32>)>, String> {
        for call in &mut self.calls {
            let mut call = call.map_err(|error| error.to_string())?;
            if is_failed_poll(&call) {
                continue;
            }
            if self.factor != 1.0 {
                what_if::sized(&mut call, self.factor);
            }
            return Ok(Some((call, self.calls.symbol())));
        }
        Ok(None)
    }
}

/// A rank that sends something to this one, or that collectives are made with.
pub struct Context<'t> {
    walk: Walk<'t>,
    rank: u32,
    me: u32,
    /// Messages to this rank that nobody has asked for yet.
    coming: VecDeque<Expected>,
    /// Whether counts of collectives are followed: by communicator, those that nobody has asked for yet.
    said: Option<HashMap<String, VecDeque<Said>>>,
    done: bool,
}

impl<'t> Context<'t> {
    pub fn new(walk: Walk<'t>, rank: u32, me: u32, collectives: bool) -> Context<'t> {
        let said = collectives.then(HashMap::new);
        Context { walk, rank, me, coming: VecDeque::new(), said, done: false }
    }

    fn advance(&mut self) -> Result<(), String> {
        let at = |rank: u32, why: String| format!("rank {rank}: {why}");
        let Some((call, symbol)) = self.walk.next().map_err(|why| at(self.rank, why))? else {
            self.done = true;
            return Ok(());
        };
        if let (Some(said), Some(_)) = (&mut self.said, needs(call.function))
            && let Some(Value::Comm(name)) = super::steps::argument(&call, &["comm"])
            && let Some(group) = self.walk.steps.group(&Value::Comm(name.clone()))
            && group.own.contains(&self.me)
        {
            said.entry(name.clone()).or_default().push_back(Said::of(&call, &self.walk.steps));
        }
        let step = self.walk.steps.take(&call, symbol).map_err(|why| at(self.rank, why))?;
        let mine = step.sends.iter().filter(|sent| sent.to == self.me);
        let (from, time) = (self.rank, step.begin);
        self.coming.extend(mine.map(|sent| Expected { from, bytes: sent.bytes, time }));
        Ok(())
    }

    /// What it sends up to that time, and what is known of later messages.
    pub fn until(&mut self, time: Time) -> Result<impl Iterator<Item = Expected>, String> {
        while !self.done && self.walk.steps.now() < time {
            self.advance()?;
        }
        Ok(self.coming.drain(..))
    }

    /// What it says in its next collective on a communicator.
    pub fn says(&mut self, comm: &str) -> Result<Said, String> {
        loop {
            let said = self.said.as_mut().and_then(|said| said.get_mut(comm)?.pop_front());
            if let Some(said) = said {
                return Ok(said);
            }
            if self.done {
                return Err(format!("rank {} makes no more collectives on {comm}", self.rank));
            }
            self.advance()?;
        }
    }
}
