//! What ranks have done before the calls that they are in: messages and collective calls, counted by going through them. The n-th
//! send from one rank to another, on a communicator with a tag, is met by the n-th receive that asks for it: so it is known
//! whether what a rank waits for has been done, whatever was buffered or posted.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use refrain_encode::Reader;
use refrain_fold::bundle::{Bundle, Cohort};
use refrain_model::{Call, Class, Kind, Value};
use refrain_tracefile::Trace;

use super::{is_whole, makes_request};
use crate::closed::Comms;
use crate::meaning::requests::is_failed_poll;
use crate::meaning::roles::{Collective, Needs, Role, Way};

/// So many calls are gone through, of all ranks together, beside polls that found nothing.
pub(super) const MOST_CALLS: u64 = 1 << 23;
/// So many of the last requests of a rank are kept: parts tell of no more.
const MOST_MADE: usize = 64;

/// The way of messages that do not overtake each other. All to one rank are in a row when sorted, and so are those from another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Channel {
    pub to: u32,
    pub from: u32,
    pub comm: String,
    pub tag: i64,
}

/// A message of a channel: which one, from 1 on, and whether it is its send.
#[derive(Debug, Clone)]
pub(super) struct Nth {
    pub channel: Channel,
    pub n: u64,
    pub sends: bool,
}

/// What all members of a communicator have to come to.
pub(super) struct Meeting {
    /// Those of one name are met in the same order by all: of a communicator, or of a window.
    pub name: String,
    /// Who its members are.
    pub comm: String,
    pub needs: Needs,
    pub way: Way,
}

/// What a request is for.
#[derive(Default)]
struct Made {
    /// Of a persistent one, by which its starts are known.
    id: Option<u32>,
    messages: Vec<Nth>,
}

impl Nth {
    /// Who makes the other side.
    pub(super) fn peer(&self) -> u32 {
        if self.sends { self.channel.to } else { self.channel.from }
    }
}

#[derive(Default)]
pub(super) struct History {
    sent: BTreeMap<Channel, u64>,
    /// Receives that were made or posted.
    expected: BTreeMap<Channel, u64>,
    /// How many receives from anybody, or with any tag, a rank has made on a communicator, by tag; `None` is any.
    open: BTreeMap<(u32, String, Option<i64>), u64>,
    meetings: HashMap<(u32, String), u64>,
    /// Communicator and number of each rank's windows, and how many were made on a communicator.
    windows: HashMap<(u32, u32), (String, u64)>,
    windows_made: HashMap<(u32, String), u64>,
    /// What a start of each rank's persistent requests does.
    persistent: HashMap<(u32, u32), Vec<(Channel, bool)>>,
    /// By rank, what each of the last requests is for, the last one first.
    made: HashMap<u32, VecDeque<Made>>,
    /// Ranks of which not all is counted.
    unclear: HashSet<u32>,
}

impl History {
    /// `None` where calls are missing, were left out, or are too many to be gone through.
    pub(super) fn of(trace: &Trace, reader: &Reader<'_>, comms: &BTreeMap<u32, Comms>) -> Option<History> {
        if !is_whole(trace) || events(&trace.bundle) > MOST_CALLS {
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
                for call in calls.with_few_polls() {
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
        if is_failed_poll(call) {
            return;
        }
        let mut made = Made::default();
        match Role::of(call.function) {
            Role::Messages(_, Way::Probe) => {}
            Role::Messages(_, Way::Persistent) if call.result == Value::Int(0) => {
                let (found, _) = channels(rank, comms, call);
                let known: Option<Vec<(Channel, bool)>> =
                    found.into_iter().map(|side| Some((side.channel?, side.sends))).collect();
                match (requests(call).next(), known) {
                    (Some(id), Some(known)) => {
                        made.id = Some(id);
                        self.persistent.insert((rank, id), known);
                    }
                    _ => _ = self.unclear.insert(rank),
                }
            }
            Role::Start if call.result == Value::Int(0) => {
                requests(call).for_each(|id| self.start(rank, id));
            }
            Role::Messages(..) if call.result == Value::Int(0) => {
                // What asks whether there is a message may have taken one.
                if call.function.name.contains("Improbe") {
                    self.unclear.insert(rank);
                    return;
                }
                let (found, comm) = channels(rank, comms, call);
                for Side { channel, sends, tag } in found {
                    match channel {
                        Some(channel) => made.messages.push(self.count(channel, sends)),
                        None => *self.open.entry((rank, comm.clone(), tag)).or_default() += 1,
                    }
                }
            }
            Role::Messages(..) | Role::Start => _ = self.unclear.insert(rank),
            _ if call.function.name == "MPI_Cancel" => _ = self.unclear.insert(rank),
            _ => {
                if let Some(meeting) = self.meeting(rank, call) {
                    *self.meetings.entry((rank, meeting.name)).or_default() += 1;
                }
                self.learn_window(rank, call);
            }
        }
        if makes_request(call) {
            let all = self.made.entry(rank).or_default();
            all.push_front(made);
            all.truncate(MOST_MADE);
        }
    }

    fn count(&mut self, channel: Channel, sends: bool) -> Nth {
        let nth = self.next(channel, sends);
        let counts = if sends { &mut self.sent } else { &mut self.expected };
        counts.insert(nth.channel.clone(), nth.n);
        nth
    }

    /// A persistent request is started: its messages are the next ones of their channels.
    fn start(&mut self, rank: u32, id: u32) {
        let Some(known) = self.persistent.get(&(rank, id)).cloned() else {
            // Another thread made it, or it is of another kind.
            self.unclear.insert(rank);
            return;
        };
        let messages: Vec<Nth> =
            known.into_iter().map(|(channel, sends)| self.count(channel, sends)).collect();
        let all = self.made.get_mut(&rank);
        if let Some(made) = all.and_then(|all| all.iter_mut().find(|made| made.id == Some(id))) {
            made.messages = messages;
        }
    }

    /// What others have to come to as well, if a call is that.
    pub(super) fn meeting(&self, rank: u32, call: &Call) -> Option<Meeting> {
        if let Role::Collective(Collective { comm, kind, way }) = Role::of(call.function) {
            let Value::Comm(name) = call.args.get(comm)? else { return None };
            return Some(Meeting { name: name.clone(), comm: name.clone(), needs: kind, way });
        }
        let name = call.function.name.trim_end_matches("_c");
        let everybody = |name: String, comm: String| {
            Some(Meeting { name, comm, needs: Needs::Everybody, way: Way::Blocking })
        };
        if WITH_COMM.contains(&name) {
            let Value::Comm(comm) = call.args.get(call.function.index_of("comm")?)? else { return None };
            return everybody(comm.clone(), comm.clone());
        }
        if name != "MPI_Win_fence" {
            return None;
        }
        let Value::Object(Class::Win, id) = call.args.get(call.function.index_of("win")?)? else {
            return None;
        };
        let (comm, number) = self.windows.get(&(rank, *id))?;
        everybody(format!("window {number} of {comm}"), comm.clone())
    }

    /// All members make the windows of a communicator in the same order.
    fn learn_window(&mut self, rank: u32, call: &Call) {
        let win = call.function.params.iter().position(|p| p.kind == Kind::Handle(Class::Win));
        let made =
            win.and_then(|at| call.args.get(at)).filter(|_| call.function.name.starts_with("MPI_Win_"));
        let comm = call.function.index_of("comm").and_then(|at| call.args.get(at));
        if let (Some(Value::Object(Class::Win, id)), Some(Value::Comm(comm))) = (made, comm) {
            let number = self.windows_made.entry((rank, comm.clone())).or_default();
            *number += 1;
            self.windows.insert((rank, *id), (comm.clone(), *number));
        }
    }

    /// Everything that the rank did is counted.
    pub(super) fn is_clear(&self, rank: u32) -> bool {
        !self.unclear.contains(&rank)
    }

    /// How many meetings of that name a rank has come through.
    pub(super) fn met(&self, rank: u32, name: &str) -> u64 {
        self.meetings.get(&(rank, name.to_owned())).copied().unwrap_or(0)
    }

    /// What the request of the last call that made one is for, if `back` is 0, and so on.
    pub(super) fn made(&self, rank: u32, back: u64) -> &[Nth] {
        let all = self.made.get(&rank);
        all.and_then(|all| all.get(usize::try_from(back).ok()?)).map_or(&[], |made| &made.messages)
    }

    /// The next message of a channel.
    pub(super) fn next(&self, channel: Channel, sends: bool) -> Nth {
        let counts = if sends { &self.sent } else { &self.expected };
        let n = counts.get(&channel).copied().unwrap_or(0) + 1;
        Nth { channel, n, sends }
    }

    /// Whether the other side of a message has certainly not been made; `in_flight` of them are being made just now.
    pub(super) fn lacks(&self, nth: &Nth, in_flight: u64) -> bool {
        let Channel { to, from, .. } = nth.channel;
        let (other, counts) = if nth.sends { (to, &self.expected) } else { (from, &self.sent) };
        let done = counts.get(&nth.channel).copied().unwrap_or(0).saturating_add(in_flight);
        let anybody = nth.sends && self.receives_openly(&nth.channel);
        done < nth.n && !anybody && self.is_clear(other)
    }

    /// How many receives from anybody, or with any tag, a rank has made on a communicator that name this tag, or none.
    fn opened(&self, rank: u32, comm: &str, tag: Option<i64>) -> u64 {
        self.open.get(&(rank, comm.to_owned(), tag)).copied().unwrap_or(0)
    }

    /// A receive from anybody, or with any tag, may have taken messages of a channel: which ones is not counted.
    fn receives_openly(&self, channel: &Channel) -> bool {
        let Channel { to, comm, tag, .. } = channel;
        self.opened(*to, comm, None) > 0 || self.opened(*to, comm, Some(*tag)) > 0
    }

    /// The channels to a rank, of those from this one on, and how many messages of each it has not asked for.
    fn left(&self, to: u32, from: u32) -> impl Iterator<Item = (&Channel, u64)> {
        let first = Channel { to, from, comm: String::new(), tag: i64::MIN };
        let to_it = self.sent.range(first..).take_while(move |(channel, _)| channel.to == to);
        to_it.filter_map(|(channel, sent)| {
            let asked = self.expected.get(channel).copied().unwrap_or(0);
            (*sent > asked).then(|| (channel, sent - asked))
        })
    }

    /// The ranks that have sent a rank what it may not have asked for.
    pub(super) fn senders(&self, to: u32) -> impl Iterator<Item = u32> {
        let mut last = None;
        self.left(to, 0)
            .map(|(channel, _)| channel.from)
            .filter(move |from| last.replace(*from) != Some(*from))
    }

    /// What one rank has sent another that this one has certainly not asked for: how many, with which tag, on which
    /// communicator.
    pub(super) fn strays(&self, from: u32, to: u32) -> Vec<(u64, i64, &str)> {
        if !self.is_clear(from) || !self.is_clear(to) {
            return Vec::new();
        }
        let between = self.left(to, from).take_while(|(channel, _)| channel.from == from);
        let left = between.filter(|(channel, _)| !self.receives_openly(channel));
        left.map(|(channel, left)| (left, channel.tag, &*channel.comm)).collect()
    }

    /// Whether a rank may find a message on a communicator, with this tag or with any, that it has not asked for yet.
    pub(super) fn may_find(&self, rank: u32, comm: &str, tag: Option<i64>) -> bool {
        let mut by_tag: BTreeMap<i64, u64> = BTreeMap::new();
        for (channel, left) in self.left(rank, 0).filter(|(channel, _)| channel.comm == comm) {
            *by_tag.entry(channel.tag).or_default() += left;
        }
        // Each receive from anybody that names a tag has taken one with that tag at most.
        by_tag
            .iter_mut()
            .for_each(|(tag, left)| *left = left.saturating_sub(self.opened(rank, comm, Some(*tag))));
        let all: u64 = by_tag.values().sum();
        let wanted = tag.map_or(all, |tag| by_tag.get(&tag).copied().unwrap_or(0));
        wanted > 0 && all > self.opened(rank, comm, None)
    }
}

/// About how many calls there are, without polls that found nothing: as many as the lowest rank of a cohort has, for each.
pub(super) fn events(bundle: &Bundle) -> u64 {
    let of_cohort = |cohort: &Cohort| {
        let first = cohort.ranks.first().unwrap_or(0);
        let counts = bundle.counts(cohort, first).into_iter();
        counts.fold(0u64, |sum, (_, times)| sum.saturating_add(times)).saturating_mul(cohort.ranks.len())
    };
    bundle.cohorts.iter().map(of_cohort).fold(0, u64::saturating_add)
}

/// Functions that all members of a communicator call, beside those that are collective by their role.
const WITH_COMM: [&str; 5] = [
    "MPI_Win_create",
    "MPI_Win_allocate",
    "MPI_Win_allocate_shared",
    "MPI_Win_create_dynamic",
    "MPI_File_open",
];

/// The requests that a call names.
fn requests(call: &Call) -> impl Iterator<Item = u32> {
    fn of(value: &Value, found: &mut Vec<u32>) {
        match value {
            Value::Object(Class::Request, id) => found.push(*id),
            Value::InOut(before, _) => of(before, found),
            Value::List(all) => all.iter().for_each(|one| of(one, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    call.args.iter().for_each(|value| of(value, &mut found));
    found.into_iter()
}

/// One side of a message, as a call makes it.
pub(super) struct Side {
    pub sends: bool,
    /// `None` of a receive from anybody, or with any tag.
    pub channel: Option<Channel>,
    pub tag: Option<i64>,
}

/// The sides that a call makes, and its communicator.
pub(super) fn channels(rank: u32, comms: &Comms, call: &Call) -> (Vec<Side>, String) {
    let Role::Messages(message, _) = Role::of(call.function) else { return Default::default() };
    let Some(Value::Comm(name)) = call.args.get(message.comm) else { return Default::default() };
    let Some(group) = comms.group(name) else { return (Vec::new(), name.clone()) };
    let side = |pair: Option<(usize, usize)>, sends: bool| {
        let (peer, tag) = pair?;
        let tag = match call.args.get(tag)? {
            Value::Int(tag) => Some(*tag),
            _ => None,
        };
        let channel = match (call.args.get(peer)?, tag) {
            (Value::Int(peer), Some(tag)) => {
                let peer = *group.get(usize::try_from(*peer).ok()?)?;
                let (from, to) = if sends { (rank, peer) } else { (peer, rank) };
                Some(Channel { to, from, comm: name.clone(), tag })
            }
            (Value::Name("MPI_PROC_NULL"), _) => return None,
            _ => None,
        };
        Some(Side { sends, channel, tag })
    };
    let found = [side(message.sent, true), side(message.expected, false)];
    (found.into_iter().flatten().collect(), name.clone())
}
