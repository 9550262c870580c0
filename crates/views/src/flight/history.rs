//! What ranks have done before the calls that they are in: messages and collective calls, counted by going through them. The n-th
//! send from one rank to another, on a communicator with a tag, is met by the n-th receive that asks for it: so it is known
//! whether what a rank waits for has been done, whatever was buffered or posted.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use refrain_encode::Reader;
use refrain_model::{Call, Value};
use refrain_tracefile::Trace;

use super::makes_request;
use crate::closed::Comms;
use crate::info;
use crate::meaning::roles::{Role, Way};

/// So many calls are gone through, of all ranks together.
const MOST_CALLS: u64 = 1 << 20;
/// So many of the last requests of a rank are kept: parts tell of no more.
const MOST_MADE: usize = 64;

/// From, to, communicator and tag.
pub(super) type Channel = (u32, u32, String, i64);

/// A message of a channel: which one, from 1 on, and whether it is its send.
#[derive(Debug, Clone)]
pub(super) struct Nth {
    pub channel: Channel,
    pub n: u64,
    pub sends: bool,
}

#[derive(Default)]
pub(super) struct History {
    sent: HashMap<Channel, u64>,
    /// Receives that were made or posted.
    expected: HashMap<Channel, u64>,
    /// Who receives from anybody, or with any tag, on which communicator.
    open: HashSet<(u32, String)>,
    collectives: HashMap<(u32, String), u64>,
    /// By rank, what each of the last requests is for, the last one first.
    made: HashMap<u32, VecDeque<Vec<Nth>>>,
    /// Ranks of which not all is counted.
    unclear: HashSet<u32>,
}

impl History {
    /// `None` where calls are missing, were left out, or are too many to be gone through.
    pub(super) fn of(trace: &Trace, reader: &Reader<'_>, comms: &BTreeMap<u32, Comms>) -> Option<History> {
        let missing = trace.meta.notes.iter().any(|note| note.contains("missing"));
        if missing || crate::stats::is_chosen(trace) || info::calls(&trace.bundle) > MOST_CALLS {
            return None;
        }
        let mut history = History::default();
        for (&rank, own) in comms {
            let threads = reader.threads(rank);
            if threads.len() > 1 {
                history.unclear.insert(rank);
            }
            for thread in threads {
                let Ok(calls) = reader.calls(rank, thread) else {
                    history.unclear.insert(rank);
                    continue;
                };
                for call in calls {
                    match call {
                        Ok(call) => history.take_in(rank, own, &call),
                        Err(_) => _ = history.unclear.insert(rank),
                    }
                }
            }
        }
        Some(history)
    }

    fn take_in(&mut self, rank: u32, comms: &Comms, call: &Call) {
        let mut made = Vec::new();
        match Role::of(call.function) {
            Role::Messages(_, Way::Persistent) | Role::Start => _ = self.unclear.insert(rank),
            Role::Messages(_, Way::Probe) => {}
            Role::Messages(..) if call.result == Value::Int(0) => {
                // What asks whether there is a message may have taken one.
                if call.function.name.contains("Improbe") {
                    self.unclear.insert(rank);
                    return;
                }
                let (found, comm) = channels(rank, comms, call);
                for (channel, sends) in found {
                    let Some(channel) = channel else {
                        self.open.insert((rank, comm.clone()));
                        continue;
                    };
                    let counts = if sends { &mut self.sent } else { &mut self.expected };
                    let n = counts.entry(channel.clone()).or_default();
                    *n += 1;
                    made.push(Nth { channel, n: *n, sends });
                }
            }
            Role::Messages(..) => _ = self.unclear.insert(rank),
            Role::Collective(collective) => {
                if let Some(Value::Comm(name)) = call.args.get(collective.comm) {
                    *self.collectives.entry((rank, name.clone())).or_default() += 1;
                }
            }
            _ if call.function.name == "MPI_Cancel" => _ = self.unclear.insert(rank),
            _ => {}
        }
        if makes_request(call) {
            let all = self.made.entry(rank).or_default();
            all.push_front(made);
            all.truncate(MOST_MADE);
        }
    }

    /// Everything that the rank did is counted.
    pub(super) fn is_clear(&self, rank: u32) -> bool {
        !self.unclear.contains(&rank)
    }

    pub(super) fn collectives(&self, rank: u32, comm: &str) -> u64 {
        self.collectives.get(&(rank, comm.to_owned())).copied().unwrap_or(0)
    }

    /// What the request of the last call that made one is for, if `back` is 0, and so on.
    pub(super) fn made(&self, rank: u32, back: u64) -> &[Nth] {
        let all = self.made.get(&rank);
        all.and_then(|all| all.get(usize::try_from(back).ok()?)).map_or(&[], Vec::as_slice)
    }

    /// The next message of a channel.
    pub(super) fn next(&self, channel: Channel, sends: bool) -> Nth {
        let counts = if sends { &self.sent } else { &self.expected };
        let n = counts.get(&channel).copied().unwrap_or(0) + 1;
        Nth { channel, n, sends }
    }

    /// Whether the other side of a message has certainly not been made; `in_flight` of them are being made just now.
    pub(super) fn lacks(&self, nth: &Nth, in_flight: u64) -> bool {
        let (from, to, comm, _) = &nth.channel;
        let (other, counts) = if nth.sends { (to, &self.expected) } else { (from, &self.sent) };
        let done = counts.get(&nth.channel).copied().unwrap_or(0).saturating_add(in_flight);
        let anybody = nth.sends && self.open.contains(&(*to, comm.clone()));
        done < nth.n && !anybody && self.is_clear(*other)
    }
}

/// The channels of a call and whether it sends on them; none of a receive from anybody, or with any tag. And its communicator.
pub(super) fn channels(rank: u32, comms: &Comms, call: &Call) -> (Vec<(Option<Channel>, bool)>, String) {
    let Role::Messages(message, _) = Role::of(call.function) else { return Default::default() };
    let Some(Value::Comm(name)) = call.args.get(message.comm) else { return Default::default() };
    let Some(group) = comms.group(name) else { return (Vec::new(), name.clone()) };
    let side = |pair: Option<(usize, usize)>, sends: bool| {
        let (peer, tag) = pair?;
        match (call.args.get(peer)?, call.args.get(tag)?) {
            (Value::Int(peer), Value::Int(tag)) => {
                let peer = *group.get(usize::try_from(*peer).ok()?)?;
                let (from, to) = if sends { (rank, peer) } else { (peer, rank) };
                Some((Some((from, to, name.clone(), *tag)), sends))
            }
            (Value::Name("MPI_PROC_NULL"), _) => None,
            _ => Some((None, sends)),
        }
    };
    let found = [side(message.sent, true), side(message.expected, false)];
    (found.into_iter().flatten().collect(), name.clone())
}
