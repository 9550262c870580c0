//! Replays of traces with histograms (`--lossy histograms`): whom a rank sends to, and how much, is drawn.
//!
//! All ranks draw the same with the same seed. So each can walk the calls of others beside its own (in a [`Context`]), and knows
//! what will come to it without asking. Before the replay ranks tell each other whom they send to, and each then follows those
//! who send to it, and no others; for collectives whose counts are drawn also the first member of a communicator, or all of
//! them ([`agreed`]).
//!
//! Every call of the trace is made. A send goes to the rank that was drawn, with the count that was drawn, in the mode of the recorded
//! function. What a call receives is whatever comes next ([`owed`]), received beside it ([`messages`]).
//!
//! *When.* Each rank has a virtual clock: the recorded times of its own calls, added up, and the number of collectives of all
//! ranks before (the *phase*), which counts first ([`clock`]). A message has the time at which the call that sends it begins,
//! and a call that receives one between its end and the beginning of the next call. Times are all different, since ranks
//! decide between equal ones.
//!
//! *Rules* ([`rules`]). A call that waits for ranks otherwise than by messages is one of *all* ranks, which ends a phase and has the
//! last time of it, or one of *some* (a collective of a part of the ranks, a request of a collective, a window, a file).
//! (1) Before a rank makes a call of time t, it has posted receives for all messages that are sent up to t. (2) A call of time
//! t waits only for messages that are sent before t. If there are none it waits for nothing; a later call takes the message,
//! `MPI_Finalize` whatever is left. (3) A rank that has a call of some ranks before it in its phase waits for no message, and
//! not until one that it sends is received: it takes what is there and goes on.
//!
//! *So no rank waits for ever.* Suppose that all do who have not ended. Look at those in the lowest phase; the others have posted and
//! sent all that belongs to it. One in a call of some ranks waits for a rank that has that call before it. By (3) that one can only be
//! in a call of some ranks too, and so on around: such calls alone would wait for each other. But they are made in the order in
//! which they were recorded, in a run that came to its end. So nobody is in such a call. One that waits for a message, in a call of
//! time t, waits for a rank that is in a call before the one that sends it, of a time before t, by (2). One that waits until its
//! message of time t is received waits for a rank in a call of a time before t, by (1). So times get less from rank to rank, and in
//! the end there is one that waits for nobody. What is left is that all are in the call of all ranks that ends the phase, and
//! then it is over.
//!
//! Waiting is only a matter of likeness: how long a receive takes is up to the sender, as it was in the recorded run. Since times
//! are means, a message may be taken a call later than in the program, and a rank that computes looks after messages now and
//! then, as others may wait for it.

mod agreed;
mod clock;
mod context;
pub(crate) mod messages;
mod owed;
mod rules;
mod steps;

use std::collections::{BTreeMap, HashMap};
use std::sync::PoisonError;

use refrain_encode::{Draw, Reader};
use refrain_model::{Call, Value};
use refrain_tracefile::Trace;

use agreed::{Needs, Said, Settling, needs};
use clock::Time;
use context::{Context, Walk};
use messages::{Messages, Plan};
use rules::Moment;
use steps::{Steps, With, argument, makes_request};

use crate::issue::Process;
use crate::options::Options;

/// Messages are expected so many calls before they are sent: who sends early need not wait.
const AHEAD: u64 = 8;

/// What a rank is to do, and what the others will.
pub struct Director<'t> {
    trace: &'t Trace,
    reader: Reader<'t>,
    options: &'t Options,
    rank: u32,
    own: Steps,
    /// How many calls were made.
    number: u64,
    contexts: BTreeMap<u32, Context<'t>>,
    /// Of these, those who send something.
    senders: Vec<u32>,
    /// Communicators with collectives whose counts are drawn.
    agreeing: HashMap<String, Needs>,
    scout: Option<Scout<'t>>,
    /// One call ahead.
    following: Walk<'t>,
    /// Whom this rank sends to.
    to: Vec<bool>,
}

impl<'t> Director<'t> {
    /// Walks all calls of the rank, to know whom it sends to. `collectives`: counts of some are drawn.
    pub fn new(
        trace: &'t Trace,
        draw: Draw,
        rank: u32,
        options: &'t Options,
        collectives: bool,
    ) -> Result<Director<'t>, String> {
        let reader = Reader::drawing(&trace.bundle, draw);
        let walk = || Walk::new(trace, &reader, rank, options);
        let mut ahead = walk()?;
        let mut to = vec![false; trace.meta.ranks as usize];
        let mut agreeing: HashMap<String, Needs> = HashMap::new();
        let mut waits_for_some = false;
        while let Some((call, symbol)) = ahead.next()? {
            if let Some(needed) = needs(call.function).filter(|_| collectives)
                && let Some(Value::Comm(name)) = argument(&call, &["comm"])
            {
                let known = agreeing.entry(name.clone()).or_insert(needed);
                *known = (*known).max(needed);
            }
            let step = ahead.steps.take(&call, symbol)?;
            waits_for_some |= step.with == With::Some;
            for sent in step.sends {
                if let Some(to) = to.get_mut(sent.to as usize) {
                    *to = true;
                }
            }
        }
        let scout = if waits_for_some { Some(Scout::new(walk()?)) } else { None };
        let own = walk()?.steps;
        let mut following = walk()?;
        if let Some((call, symbol)) = following.next()? {
            following.steps.take(&call, symbol)?;
        }
        let (contexts, senders) = (BTreeMap::new(), Vec::new());
        Ok(Director {
            trace,
            options,
            rank,
            own,
            number: 0,
            contexts,
            senders,
            agreeing,
            scout,
            following,
            to,
            reader,
        })
    }

    /// After `MPI_Init`: ranks tell each other whom they send to.
    pub fn negotiate(&mut self, process: &Process) -> Result<(), String> {
        let (messages, comes) = Messages::negotiate(process, &self.to)?;
        if let Some(drawn) = &process.drawn {
            *drawn.lock().unwrap_or_else(PoisonError::into_inner) = messages;
        }
        for (rank, _) in (0..).zip(&comes).filter(|(_, comes)| **comes) {
            self.follow(rank)?;
            self.senders.push(rank);
        }
        Ok(())
    }

    fn follow(&mut self, rank: u32) -> Result<(), String> {
        if !self.contexts.contains_key(&rank) {
            let walk = Walk::new(self.trace, &self.reader, rank, self.options)?;
            let context = Context::new(walk, rank, self.rank, !self.agreeing.is_empty());
            self.contexts.insert(rank, context);
        }
        Ok(())
    }

    /// The next call of this rank, which may get other counts: plans what is done with it.
    pub fn next(&mut self, process: &Process, call: &mut Call, symbol: Option<u32>) -> Result<(), String> {
        self.own.within(call);
        self.agree(call)?;
        let to = self.own.destination(call)?;
        let before = self.own.now();
        let step = self.own.take(call, symbol)?;
        let last = call.function.name == "MPI_Finalize";
        let until = self.until_next(step.end)?;
        let receives = step.receives > 0;
        let asks = step.with == With::Nobody && call.function.families.contains(&"p2p");
        let some_ahead = asks && self.some_before_end(step.end.phase)?;
        let moment = Moment { with: step.with, last, receives, until, some_ahead };
        let horizon = moment.horizon(step.end.ns.saturating_sub(before.ns).saturating_mul(AHEAD));
        let mut coming = Vec::new();
        for rank in &self.senders {
            if let Some(context) = self.contexts.get_mut(rank) {
                coming.extend(context.until(horizon)?);
            }
        }
        let plan = Plan {
            to,
            receives: step.receives,
            before: moment.before(),
            sends_wait: moment.sends_wait(),
            request: makes_request(call),
            last,
        };
        if let Some(drawn) = &process.drawn {
            let mut messages = drawn.lock().unwrap_or_else(PoisonError::into_inner);
            messages.plan(plan, coming.into_iter());
        }
        self.number += 1;
        Ok(())
    }

    /// Between a call and the next one: until then what it receives may come, since recorded times are but means.
    fn until_next(&mut self, end: Time) -> Result<Time, String> {
        let Some((call, symbol)) = self.following.next()? else { return Ok(end) };
        let next = self.following.steps.take(&call, symbol)?.begin;
        let gap = if next.phase == end.phase { next.ns.saturating_sub(end.ns) } else { 0 };
        Ok(Time { ns: end.ns.saturating_add(gap / 2), ..end })
    }

    /// Whether this rank has a call of some ranks before it, in this phase.
    fn some_before_end(&mut self, phase: u64) -> Result<bool, String> {
        let number = self.number;
        self.scout.as_mut().map_or(Ok(false), |scout| scout.some_after(phase, number))
    }

    /// A collective gets the counts that its members agree on.
    fn agree(&mut self, call: &mut Call) -> Result<(), String> {
        let comm = argument(call, &["comm"]).cloned();
        let Some(comm @ Value::Comm(name)) = &comm else { return Ok(()) };
        let (Some(_), Some(&whose)) = (needs(call.function), self.agreeing.get(name)) else { return Ok(()) };
        let group = self.own.group(comm).ok_or_else(|| steps::unknown(comm))?.own.clone();
        let me = group.iter().position(|rank| *rank == self.rank).unwrap_or(0);
        let members = match whose {
            Needs::First => &group[..group.len().min(1)],
            Needs::All => &group[..],
        };
        let mut said = Vec::new();
        for &member in members {
            said.push(if member == self.rank {
                Said::of(call, &self.own)
            } else {
                self.follow(member)?;
                match self.contexts.get_mut(&member) {
                    Some(context) => context.says(name)?,
                    None => Said::default(),
                }
            });
        }
        Settling { call, steps: &self.own, me }.settle(&said);
        Ok(())
    }
}

/// Goes ahead of a rank's calls, to the end of a phase.
struct Scout<'t> {
    walk: Walk<'t>,
    number: u64,
    /// The last call of some ranks.
    last: Option<u64>,
    done: bool,
}

impl<'t> Scout<'t> {
    fn new(walk: Walk<'t>) -> Scout<'t> {
        Scout { walk, number: 0, last: None, done: false }
    }

    /// Whether there is a call of some ranks after this one, in this phase.
    fn some_after(&mut self, phase: u64, number: u64) -> Result<bool, String> {
        while !self.done && self.walk.steps.now().phase <= phase {
            let Some((call, symbol)) = self.walk.next()? else {
                self.done = true;
                break;
            };
            if self.walk.steps.take(&call, symbol)?.with == With::Some {
                self.last = Some(self.number);
            }
            self.number += 1;
        }
        Ok(self.last.is_some_and(|last| last > number))
    }
}
