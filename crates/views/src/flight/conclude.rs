//! What is plain from the calls in flight: who waits for whom, circles, and who is to be looked at first.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr;
use std::rc::Rc;

use refrain_encode::Reader;
use refrain_model::{Call, Value};
use refrain_sites::printable;
use refrain_tracefile::Trace;

use super::culprit::{Culprit, Ending};
use super::history::{Channel, History, Nth, Side, channels};
use super::meetings::Mismatch;
use super::{Doing, of_ranks};
use crate::closed::Comms;
use crate::human::capital;
use crate::meaning::roles::{Role, Way, Which};

/// A call that takes no longer may just be on its way.
pub(super) const ON_ITS_WAY: u64 = 200_000_000;
/// Nothing is on its way for so long, and no process takes so long to die.
pub(super) const LONG: u64 = 3_000_000_000;
/// So many calls that make communicators are read of each thread.
const MOST_MADE: usize = 1 << 16;
/// So many sentences are told.
const MOST_TOLD: usize = 16;
/// Of more ranks than these nothing is concluded: nobody reads it.
const MOST_RANKS: usize = 1 << 14;
/// So many kinds of messages that a rank has not asked for are told.
const MOST_STRAYS: usize = 3;
/// So many of those that a rank waits for are followed.
const MOST_PEERS: usize = 1 << 10;

pub(super) fn conclude(
    trace: &Trace,
    reader: &Reader<'_>,
    doing: &[Doing],
    endings: BTreeMap<u32, Ending>,
) -> (Option<Culprit>, Vec<String>) {
    if doing.is_empty() || doing.len() > MOST_RANKS {
        return Default::default();
    }
    let mut all = All::new(trace, reader, doing, endings);
    let (mismatches, unmet) = all.meetings();
    all.messages();
    all.find_stuck();
    let culprit = all.culprit(&mismatches);
    let mut told: Vec<String> = culprit.iter().map(|culprit| culprit.told.clone()).collect();
    let others = mismatches.into_iter().map(|Mismatch { told, .. }| told).chain(all.waits()).chain(unmet);
    // Each once: the first sentence may be one of these.
    let first = told.first().cloned();
    told.extend(others.filter(|one| first.as_ref() != Some(&capital(one))));
    if all.history.is_none() && !all.inside.is_empty() {
        told.push("who waits for whom is not known: not all calls are there to be counted".into());
    }
    let more = told.len().saturating_sub(MOST_TOLD);
    told.truncate(MOST_TOLD);
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    (culprit, told.into_iter().map(|one| printable(&one).into_owned()).collect())
}

/// Text that several have.
pub(super) fn shared(text: &str) -> Rc<str> {
    Rc::from(text)
}

/// Whom a rank waits for, and for what.
#[derive(Clone)]
pub(super) struct Wait {
    pub peers: Rc<[u32]>,
    /// `to send something with tag 3 on world`
    pub what: Rc<str>,
    /// What they are to do is to send.
    pub receives: bool,
}

/// What a rank has got instead of what it waits for, and not asked for.
pub(super) struct Stray {
    pub from: u32,
    told: String,
}

/// What a rank waits for, as far as that is certain.
#[derive(Default)]
pub(super) struct Need {
    /// Each of these.
    pub all: Vec<Wait>,
    /// Any one of these peers would do.
    pub any: Option<Wait>,
}

pub(super) struct All<'a> {
    pub trace: &'a Trace,
    /// By rank, those that are inside of a call and have been for a while.
    pub inside: BTreeMap<u32, &'a Doing>,
    pub doing: BTreeMap<u32, &'a Doing>,
    /// Threads that a signal or an error of MPI has ended.
    pub over: Vec<&'a Doing>,
    pub comms: BTreeMap<u32, Comms>,
    pub needs: BTreeMap<u32, Need>,
    /// By receiver, the messages that are just being sent.
    sending: BTreeMap<u32, Vec<Channel>>,
    /// Those that can never go on, as everybody who could let them is stuck or gone.
    pub stuck: BTreeSet<u32>,
    /// How ranks ended, where the trace says more than their calls do.
    pub endings: BTreeMap<u32, Ending>,
    /// What they did before, if that could be counted.
    pub history: Option<History>,
}

impl<'a> All<'a> {
    fn new(
        trace: &'a Trace,
        reader: &Reader<'_>,
        doing: &'a [Doing],
        endings: BTreeMap<u32, Ending>,
    ) -> All<'a> {
        let mut threads: BTreeMap<u32, Vec<&Doing>> = BTreeMap::new();
        doing.iter().for_each(|one| threads.entry(one.rank).or_default().push(one));
        let stays = |one: &Doing| {
            let lives = !one.is_over() && one.gone.is_none();
            one.inside && lives && !one.polls && one.ns.is_none_or(|ns| ns >= ON_ITS_WAY)
        };
        // Of several threads each waits for itself, and the rank for none of them.
        let inside = threads.iter().filter_map(|(rank, all)| match all[..] {
            [one] if stays(one) && reader.threads(*rank).len() <= 1 => Some((*rank, one)),
            _ => None,
        });
        let world: Rc<[u32]> = (0..trace.meta.ranks).collect();
        let mut comms = BTreeMap::new();
        let known = trace.bundle.of_threads();
        for rank in known.iter().filter(|cohort| cohort.thread == 0).flat_map(|cohort| cohort.ranks.iter()) {
            let mut own = Comms::of(rank, world.clone());
            for &thread in &reader.threads(rank) {
                let making = reader.making(rank, thread).into_iter().flatten().map_while(Result::ok);
                making.take(MOST_MADE).for_each(|call| own.learn(&call));
            }
            comms.insert(rank, own);
        }
        let mut sending: BTreeMap<u32, Vec<Channel>> = BTreeMap::new();
        for one in doing.iter().filter(|one| one.inside) {
            let Some((own, call)) = comms.get(&one.rank).zip(one.call.as_ref()) else { continue };
            let (sides, _) = channels(one.rank, own, call);
            let sent = sides.into_iter().filter(|side| side.sends).filter_map(|side| side.channel);
            sent.for_each(|on| sending.entry(on.to).or_default().push(on));
        }
        All {
            trace,
            inside: inside.collect(),
            over: doing.iter().filter(|one| one.is_over()).collect(),
            doing: threads.iter().map(|(rank, all)| (*rank, all[0])).collect(),
            history: History::of(trace, reader, &comms),
            comms,
            needs: BTreeMap::new(),
            sending,
            stuck: BTreeSet::new(),
            endings,
        }
    }

    pub(super) fn wait(&mut self, rank: u32, wait: Wait) {
        self.needs.entry(rank).or_default().all.push(wait);
    }

    /// There are calls of it.
    pub(super) fn is_known(&self, rank: u32) -> bool {
        self.trace.bundle.cohort_of(rank, 0).is_some()
    }

    /// It will make no call that another rank could wait for.
    pub(super) fn is_gone(&self, rank: u32) -> bool {
        match self.doing.get(&rank) {
            Some(one) => {
                let ended = self.endings.get(&rank).is_some_and(Ending::is_gone);
                ended || one.is_over() || one.is_in("MPI_Finalize")
            }
            None => self.is_known(rank),
        }
    }

    /// Whether a rank is just making the other side of a message.
    fn makes_the_other_side(&self, rank: u32, nth: &Nth) -> bool {
        let (Some(one), Some(comms)) = (self.doing.get(&rank), self.comms.get(&rank)) else { return false };
        let Some(call) = one.call.as_ref().filter(|_| one.inside) else { return false };
        let (found, comm) = channels(rank, comms, call);
        found.iter().any(|side| {
            side.sends != nth.sends
                && match &side.channel {
                    Some(channel) => *channel == nth.channel,
                    None => comm == nth.channel.comm && side.tag.is_none_or(|tag| tag == nth.channel.tag),
                }
        })
    }

    /// Who waits for a message of whom, or for whom to take one.
    fn messages(&mut self) {
        let Some(history) = self.history.take() else { return };
        let ranks: Vec<u32> = self.inside.keys().copied().filter(|rank| history.is_clear(*rank)).collect();
        for rank in ranks {
            if let Some(need) = self.awaited(rank, &history) {
                self.needs.insert(rank, need);
            }
        }
        self.history = Some(history);
    }

    /// The messages that a rank certainly waits for. Nothing where it may be others.
    fn awaited(&self, rank: u32, history: &History) -> Option<Need> {
        let one = self.inside.get(&rank)?;
        let call = one.call.as_ref()?;
        match Role::of(call.function) {
            Role::Messages(_, Way::Blocking | Way::Probe) => {
                let (found, comm) = channels(rank, self.comms.get(&rank)?, call);
                if let [Side { sends: false, channel: None, .. }] = found[..] {
                    return self.of_anybody(rank, call, &comm, history);
                }
                let known: Vec<Nth> = found
                    .iter()
                    .filter_map(|side| Some(history.next(side.channel.clone()?, side.sends)))
                    .collect();
                self.needs_all(&known, known.len() == found.len(), history)
            }
            Role::Complete(completes) if completes.waits => {
                let mut flight = self.trace.meta.flight.iter();
                let waited = &flight.find(|known| (known.rank, known.thread) == (rank, one.thread))?.requests;
                let made: Vec<&[Nth]> =
                    waited.iter().map(|request| history.made(rank, request.back)).collect();
                // A library has one handle for all requests that are complete: of those only the last is known.
                let different: BTreeSet<u64> = waited.iter().map(|request| request.back).collect();
                let complete =
                    different.len() as u64 == one.waits_for && made.iter().all(|made| made.len() == 1);
                let known: Vec<Nth> = made.concat();
                match completes.which {
                    Which::All => self.needs_all(&known, complete, history),
                    _ if one.waits_for == 1 => self.needs_all(&known, complete, history),
                    _ if complete && known.iter().all(|nth| self.is_lacking(nth, history)) => {
                        let peers: BTreeSet<u32> = known.iter().map(Nth::peer).collect();
                        let what = shared("to make the other side of a message");
                        let any = Wait { peers: peers.into_iter().collect(), what, receives: false };
                        Some(Need { any: Some(any), ..Need::default() })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn is_lacking(&self, nth: &Nth, history: &History) -> bool {
        let peer = nth.peer();
        self.is_known(peer) && history.lacks(nth, self.makes_the_other_side(peer, nth).into())
    }

    /// Of messages that all have to be made: receives without a send are certain. A send may be over before anybody receives
    /// it, so it is certain only if nothing else is left, and for certain only whom it is for.
    fn needs_all(&self, known: &[Nth], complete: bool, history: &History) -> Option<Need> {
        let (sends, receives): (Vec<&Nth>, Vec<&Nth>) =
            known.iter().filter(|nth| self.is_lacking(nth, history)).partition(|nth| nth.sends);
        let certain = match (&receives[..], &sends[..]) {
            ([], [first, rest @ ..]) if complete && rest.iter().all(|nth| nth.peer() == first.peer()) => {
                vec![*first]
            }
            _ => receives,
        };
        let wait = |nth: &Nth| {
            let Channel { comm, tag, .. } = &nth.channel;
            let what = match nth.sends {
                true => format!("to receive what it sends with tag {tag} on {comm}"),
                false => format!("to send something with tag {tag} on {comm}"),
            };
            Wait { peers: Rc::new([nth.peer()]), what: shared(&what), receives: !nth.sends }
        };
        (!certain.is_empty()).then(|| Need { all: certain.into_iter().map(wait).collect(), any: None })
    }

    /// Whom a receive waits for that takes messages of anybody, or with any tag; nothing if it may find one.
    fn of_anybody(&self, rank: u32, call: &Call, comm: &str, history: &History) -> Option<Need> {
        let Role::Messages(message, _) = Role::of(call.function) else { return None };
        let (source, tag) = message.expected?;
        let tag = match call.args.get(tag)? {
            Value::Int(tag) => Some(*tag),
            Value::Name("MPI_ANY_TAG") => None,
            _ => return None,
        };
        let group = self.comms.get(&rank)?.group(comm)?;
        let peers: Rc<[u32]> = match call.args.get(source)? {
            Value::Int(source) => Rc::new([*group.get(usize::try_from(*source).ok()?)?]),
            Value::Name("MPI_ANY_SOURCE") => group.iter().copied().filter(|peer| *peer != rank).collect(),
            _ => return None,
        };
        let comes = |on: &&Channel| on.comm == comm && tag.is_none_or(|tag| tag == on.tag);
        let comes = self.sending(rank).filter(comes).any(|on| peers.contains(&on.from));
        if peers.is_empty() || history.may_find(rank, comm, tag) || comes {
            return None;
        }
        let with = tag.map_or_else(String::new, |tag| format!(" with tag {tag}"));
        let what = shared(&format!("to send something{with} on {comm}"));
        Some(Need { any: Some(Wait { peers, what, receives: true }), ..Need::default() })
    }

    /// Who can never go on, whatever the others do.
    fn find_stuck(&mut self) {
        let mut stuck: Vec<u32> = self.needs.keys().copied().collect();
        let mut known: BTreeSet<u32> = stuck.iter().copied().collect();
        loop {
            let before = known.len();
            // In turns from both ends, as chains go either way.
            stuck.reverse();
            for rank in &stuck {
                let need = &self.needs[rank];
                let may = |peer: &u32| !known.contains(peer) && !self.is_gone(*peer);
                let each = need.all.iter().all(|wait| wait.peers.iter().take(MOST_PEERS).all(may));
                if each && need.any.as_ref().is_none_or(|any| any.peers.iter().any(may)) {
                    known.remove(rank);
                }
            }
            if known.len() == before {
                break;
            }
            stuck.retain(|rank| known.contains(rank));
        }
        self.stuck = known;
    }

    /// Those whom a rank certainly waits for.
    pub(super) fn peers(&self, rank: u32) -> impl Iterator<Item = u32> {
        let need = self.needs.get(&rank);
        let any = need.and_then(|need| need.any.as_ref()).filter(|_| self.stuck.contains(&rank));
        let all = need.into_iter().flat_map(|need| &need.all).chain(any);
        all.flat_map(|wait| wait.peers.iter().copied().take(MOST_PEERS))
    }

    /// Ranks that wait for each other in a circle, if any do.
    pub(super) fn circle(&self) -> Option<Vec<u32>> {
        let mut done: BTreeSet<u32> = BTreeSet::new();
        for &start in self.needs.keys() {
            // Depth first, with the path so far and what is left to try at each of its ranks.
            let mut path: Vec<u32> = Vec::new();
            let mut left: Vec<Vec<u32>> = vec![vec![start]];
            while let Some(next) = left.last_mut() {
                let Some(rank) = next.pop() else {
                    left.pop();
                    done.extend(path.pop());
                    continue;
                };
                if let Some(at) = path.iter().position(|on| *on == rank) {
                    let mut circle = path.split_off(at);
                    // Lowest first.
                    let lowest =
                        circle.iter().enumerate().min_by_key(|(_, rank)| **rank).map_or(0, |(at, _)| at);
                    circle.rotate_left(lowest);
                    return Some(circle);
                }
                if done.contains(&rank) || !self.inside.contains_key(&rank) {
                    continue;
                }
                path.push(rank);
                let mut peers: Vec<u32> = self.peers(rank).collect();
                peers.sort_unstable_by(|one, other| other.cmp(one));
                left.push(peers);
            }
        }
        None
    }

    /// Who waits for whom, a sentence for all who wait for the same.
    fn waits(&self) -> Vec<String> {
        let mut by: BTreeMap<(Rc<[u32]>, String), Vec<u32>> = BTreeMap::new();
        for (&rank, need) in &self.needs {
            for wait in need.all.iter().chain(&need.any) {
                by.entry((wait.peers.clone(), self.what(rank, wait))).or_default().push(rank);
            }
        }
        let tell = |((peers, what), mut ranks): ((Rc<[u32]>, String), Vec<u32>)| {
            ranks.dedup();
            let wait = if ranks.len() == 1 { "waits" } else { "wait" };
            let mut peers = peers.to_vec();
            peers.sort_unstable();
            let told = if peers == ranks { "itself".into() } else { of_ranks(&peers) };
            (ranks[0], format!("{} {wait} for {told} {what}", of_ranks(&ranks)))
        };
        let mut told: Vec<(u32, String)> = by.into_iter().map(tell).collect();
        told.sort();
        told.into_iter().map(|(_, told)| told).collect()
    }

    /// What the others are to do, and what they have done instead.
    pub(super) fn what(&self, rank: u32, wait: &Wait) -> String {
        let is_any =
            self.needs.get(&rank).and_then(|need| need.any.as_ref()).is_some_and(|any| ptr::eq(any, wait));
        let mut what = wait.what.to_string();
        if is_any && wait.peers.len() > 1 {
            what += " (any of them)";
        }
        let strays = self.strays(rank, wait);
        if !strays.is_empty() {
            let told: Vec<&str> = strays.iter().map(|stray| &*stray.told).collect();
            what += &format!("; {} that it has not asked for", told.join(", "));
        }
        what
    }

    /// What a rank that waits for a message has got from its peers instead.
    pub(super) fn strays(&self, rank: u32, wait: &Wait) -> Vec<Stray> {
        let Some(history) = self.history.as_ref().filter(|_| wait.receives) else { return Vec::new() };
        let of_peer = |from: u32| {
            let sent = history.strays(from, rank).into_iter().take(MOST_STRAYS).map(|(n, tag, comm)| {
                format!("{} with tag {tag} on {comm}", crate::human::plural(n, "message"))
            });
            let told = sent.collect::<Vec<_>>().join(", ");
            let told = match told.is_empty() {
                true => format!("rank {from} is sending it {}", self.stray_in_flight(from, rank, history)?),
                false => format!("rank {from} has sent it {told}"),
            };
            Some(Stray { from, told })
        };
        let senders: BTreeSet<u32> = match wait.peers[..] {
            [one] => BTreeSet::from([one]),
            _ => history.senders(rank).take(MOST_PEERS).chain(self.sending(rank).map(|on| on.from)).collect(),
        };
        let peers = senders.into_iter().filter(|from| wait.peers.contains(from));
        peers.filter_map(of_peer).take(MOST_STRAYS).collect()
    }

    /// The messages that are just being sent to a rank.
    fn sending(&self, to: u32) -> impl Iterator<Item = &Channel> {
        self.sending.get(&to).into_iter().flatten()
    }

    /// A message that a rank is just sending to another one, which has not asked for it.
    fn stray_in_flight(&self, from: u32, to: u32, history: &History) -> Option<String> {
        let channel = self.sending(to).find(|on| on.from == from && history.is_clear(from))?;
        let nth = history.next(channel.clone(), true);
        let Channel { tag, comm, .. } = channel;
        let strays = history.lacks(&nth, self.makes_the_other_side(to, &nth).into());
        strays.then(|| format!("a message with tag {tag} on {comm}"))
    }
}
