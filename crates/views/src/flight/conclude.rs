//! What is plain from the calls in flight: who waits for whom, circles, collective calls that some ranks did not reach, or
//! that do not match.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use refrain_encode::Reader;
use refrain_model::{Call, Class, Kind, Value, constant};
use refrain_sites::printable;
use refrain_tracefile::Trace;

use super::history::{History, Nth, channels};
use super::{Doing, of_ranks};
use crate::closed::Comms;
use crate::meaning::roles::{Collective, Needs, Role, Way};
use crate::value;

/// A call that takes no longer may just be on its way.
const ON_ITS_WAY: u64 = 200_000_000;
/// Nothing is on its way for so long, and no process takes so long to die.
const LONG: u64 = 3_000_000_000;
/// So many calls that make communicators are read of each thread.
const MOST_MADE: usize = 1 << 16;
/// So many sentences are told.
const MOST_TOLD: usize = 16;
/// Of more ranks than these nothing is concluded: nobody reads it.
const MOST_RANKS: usize = 1 << 14;

pub(super) fn conclude(trace: &Trace, reader: &Reader<'_>, doing: &[Doing]) -> Vec<String> {
    if doing.is_empty() || doing.len() > MOST_RANKS {
        return Vec::new();
    }
    let mut all = All::new(trace, reader, doing);
    let mut told = all.collectives();
    all.messages();
    let circle = all.circle();
    if let Some(circle) = &circle {
        told.insert(0, all.tell_circle(circle));
    }
    told.extend(all.waits(circle.as_deref().unwrap_or_default()));
    let more = told.len().saturating_sub(MOST_TOLD);
    told.truncate(MOST_TOLD);
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    told.into_iter().map(|one| printable(&one).into_owned()).collect()
}

struct All<'a> {
    trace: &'a Trace,
    /// By rank, those that are inside of a call and have been for a while.
    inside: BTreeMap<u32, &'a Doing>,
    doing: BTreeMap<u32, &'a Doing>,
    comms: BTreeMap<u32, Comms>,
    /// Who waits for whom for certain, and for what.
    edges: BTreeMap<u32, BTreeSet<u32>>,
    whats: BTreeMap<(u32, u32), String>,
    /// What they did before, if that could be counted.
    history: Option<History>,
}

impl<'a> All<'a> {
    fn new(trace: &'a Trace, reader: &Reader<'_>, doing: &'a [Doing]) -> All<'a> {
        let mut threads: BTreeMap<u32, Vec<&Doing>> = BTreeMap::new();
        doing.iter().for_each(|one| threads.entry(one.rank).or_default().push(one));
        let stays = |one: &Doing| one.inside && !one.is_over() && one.ns.is_none_or(|ns| ns >= ON_ITS_WAY);
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
        All {
            trace,
            inside: inside.collect(),
            doing: threads.iter().map(|(rank, all)| (*rank, all[0])).collect(),
            history: History::of(trace, reader, &comms),
            comms,
            edges: BTreeMap::new(),
            whats: BTreeMap::new(),
        }
    }

    fn wait(&mut self, rank: u32, peer: u32, what: String) {
        if rank != peer {
            self.edges.entry(rank).or_default().insert(peer);
            self.whats.entry((rank, peer)).or_insert(what);
        }
    }

    /// The world's ranks in the communicator of a parameter, and its name.
    fn group(&self, rank: u32, call: &Call, comm: usize) -> Option<(String, Vec<u32>)> {
        let Some(Value::Comm(name)) = call.args.get(comm) else { return None };
        let group = self.comms.get(&rank)?.group(name)?;
        Some((name.clone(), group.to_vec()))
    }

    /// What it is doing, for those who wait for it.
    fn told_of(&self, rank: u32) -> String {
        match self.doing.get(&rank) {
            Some(one) if one.is_over() => one.state(),
            Some(one) => format!("is {}", one.state()),
            None if self.is_known(rank) => "has come to its end".into(),
            None => "is not known: it was not recorded, or what it left is on another host".into(),
        }
    }

    /// How many collective calls on a communicator a rank has finished, if that is known.
    fn finished(&self, rank: u32, comm: &str) -> Option<u64> {
        let history = self.history.as_ref()?;
        (self.is_known(rank) && history.is_clear(rank)).then(|| history.collectives(rank, comm))
    }

    /// There are calls of it.
    fn is_known(&self, rank: u32) -> bool {
        self.trace.bundle.cohort_of(rank, 0).is_some()
    }

    /// Collective calls: whether they match, and who is missing.
    fn collectives(&mut self) -> Vec<String> {
        type Key = (String, Vec<u32>);
        let mut by_comm: BTreeMap<Key, Vec<(u32, u64, Collective)>> = BTreeMap::new();
        let mut finished: BTreeMap<(u32, String), u64> = BTreeMap::new();
        let inside = self.inside.clone();
        for (&rank, one) in &inside {
            let Some(call) = &one.call else { continue };
            let Role::Collective(collective) = Role::of(call.function) else { continue };
            let Some(key) =
                self.group(rank, call, collective.comm).filter(|_| collective.way == Way::Blocking)
            else {
                continue;
            };
            let Some(number) = self.finished(rank, &key.0) else { continue };
            finished.insert((rank, key.0.clone()), number);
            by_comm.entry(key).or_default().push((rank, number, collective));
        }
        let mut told = Vec::new();
        for ((name, group), there) in by_comm {
            let numbers: BTreeSet<u64> = there.iter().map(|(_, number, _)| *number).collect();
            for number in numbers {
                let here: Vec<(u32, Collective)> =
                    there.iter().filter(|(_, n, _)| *n == number).map(|(rank, _, c)| (*rank, *c)).collect();
                told.extend(self.mismatch(&name, &here));
                let missing: Vec<u32> = group
                    .iter()
                    .copied()
                    .filter(|rank| !here.iter().any(|(own, _)| own == rank))
                    .filter(|rank| {
                        let known = finished.get(&(*rank, name.clone())).copied();
                        let done = known.or_else(|| self.finished(*rank, &name));
                        done.is_some_and(|done| done <= number) && !self.may_be_there(*rank, &name)
                    })
                    .collect();
                if missing.is_empty() {
                    continue;
                }
                let ranks: Vec<u32> = here.iter().map(|(rank, _)| *rank).collect();
                let nth = format!("collective call {} on {name}", number + 1);
                let first = inside[&ranks[0]];
                let same =
                    |of: &dyn Fn(&Doing) -> String| ranks.iter().all(|rank| of(inside[rank]) == of(first));
                let function =
                    |one: &Doing| one.call.as_ref().map_or(String::new(), |call| call.function.name.into());
                let at = match () {
                    () if same(&Doing::call_text) => format!("{}, which is {nth}", first.call_text()),
                    () if same(&function) => format!("{}, which is {nth}", function(first)),
                    () => nth,
                };
                let are = if ranks.len() == 1 { "is" } else { "are" };
                let told_missing: Vec<String> = missing
                    .iter()
                    .take(4)
                    .map(|rank| format!("rank {rank} {}", self.told_of(*rank)))
                    .collect();
                let more = missing.len().saturating_sub(4);
                let more = if more > 0 { format!("; and {more} more") } else { String::new() };
                told.push(format!(
                    "{} {are} in {at}; {} did not get there: {}{more}",
                    of_ranks(&ranks),
                    of_ranks(&missing),
                    told_missing.join("; ")
                ));
                for (rank, collective) in here {
                    let root = |at: usize| match inside[&rank].call.as_ref().map(|call| &call.args[at]) {
                        Some(Value::Int(root)) => {
                            usize::try_from(*root).ok().and_then(|at| group.get(at)).copied()
                        }
                        _ => None,
                    };
                    let place = |rank: u32| group.iter().position(|member| *member == rank);
                    // Only what it cannot do without: a root may be done with sending, and who sends to it with that.
                    let needs = |peer: u32| match collective.kind {
                        Needs::Root(at) => root(at) != Some(rank) && root(at) == Some(peer),
                        Needs::AtRoot(at) => root(at) == Some(rank),
                        Needs::Lower => place(peer) < place(rank),
                        Needs::Barrier | Needs::Everybody => true,
                    };
                    for &peer in missing.iter().filter(|peer| needs(**peer)) {
                        let name = inside[&rank].call.as_ref().map_or("", |call| call.function.name);
                        self.wait(rank, peer, format!("in {name}"));
                    }
                }
            }
        }
        told
    }

    /// A rank has just come to a collective call of a communicator: which one is not known.
    fn may_be_there(&self, rank: u32, comm: &str) -> bool {
        let Some(one) =
            self.doing.get(&rank).filter(|one| one.inside && !self.inside.contains_key(&one.rank))
        else {
            return false;
        };
        one.call.as_ref().is_none_or(|call| match Role::of(call.function) {
            Role::Collective(Collective { comm: at, .. }) => {
                matches!(call.args.get(at), Some(Value::Comm(name)) if name == comm)
            }
            _ => false,
        })
    }

    /// Whether the calls of ranks that are at the same collective call of a communicator belong together.
    fn mismatch(&self, comm: &str, here: &[(u32, Collective)]) -> Option<String> {
        let call = |rank: u32| self.inside[&rank].call.as_ref();
        let told = |what: &str, by: BTreeMap<String, Vec<u32>>| {
            let mut each: Vec<(&String, &Vec<u32>)> = by.iter().collect();
            each.sort_by_key(|(_, ranks)| ranks[0]);
            let each = each.into_iter().map(|(text, ranks)| {
                let are = if ranks.len() == 1 { "has" } else { "have" };
                let site = self.inside[&ranks[0]]
                    .site
                    .as_ref()
                    .map_or_else(String::new, |site| format!(" at {site}"));
                format!("{} {are} {text}{site}", of_ranks(ranks))
            });
            format!("{what} do not match on {comm}: {}", each.collect::<Vec<_>>().join("; "))
        };
        let by = |of: &dyn Fn(u32, &Call, &Collective) -> Option<String>| {
            let mut by: BTreeMap<String, Vec<u32>> = BTreeMap::new();
            for (rank, collective) in here {
                if let Some(text) = call(*rank).and_then(|call| of(*rank, call, collective)) {
                    by.entry(text).or_default().push(*rank);
                }
            }
            by
        };
        let functions = by(&|_, call, _| Some(call.function.name.trim_end_matches("_c").to_owned()));
        if functions.len() > 1 {
            return Some(told("collective calls", functions));
        }
        let roots = by(&|_, call, collective| match collective.kind {
            Needs::Root(at) | Needs::AtRoot(at) => Some(format!("root={}", text(&call.args[at]))),
            _ => None,
        });
        if roots.len() > 1 {
            return Some(told(&format!("the roots of {}", functions.keys().next()?), roots));
        }
        let name = functions.keys().next()?.strip_prefix("MPI_")?.to_owned();
        let operations = by(&|_, call, _| {
            let at = call.function.params.iter().position(|p| p.kind == Kind::Handle(Class::Op))?;
            // Ids of made operations are each rank's own.
            matches!(call.args[at], Value::Name(_)).then(|| format!("op={}", text(&call.args[at])))
        });
        if operations.len() > 1 {
            return Some(told(&format!("the operations of MPI_{name}"), operations));
        }
        let alike = [
            "Bcast",
            "Reduce",
            "Allreduce",
            "Scan",
            "Exscan",
            "Reduce_scatter_block",
            "Alltoall",
            "Allgather",
        ];
        if !alike.contains(&&*name) {
            return None;
        }
        let sizes = by(&|_, call, _| bytes(call).map(|(bytes, _)| bytes.to_string()));
        if sizes.len() > 1 {
            let counts = by(&|_, call, _| bytes(call).map(|(_, told)| told));
            return Some(told(&format!("the counts of MPI_{name}"), counts));
        }
        None
    }

    /// The one message that a rank waits for; nothing where there are several, or where it may be anybody's.
    fn awaited(&self, rank: u32, history: &History) -> Option<Nth> {
        let one = self.inside.get(&rank)?;
        let call = one.call.as_ref()?;
        match Role::of(call.function) {
            Role::Messages(_, Way::Blocking | Way::Probe) => {
                match &channels(rank, self.comms.get(&rank)?, call).0[..] {
                    [(Some(channel), sends)] => Some(history.next(channel.clone(), *sends)),
                    _ => None,
                }
            }
            Role::Complete(completes) if completes.waits && one.waits_for == 1 => {
                let mut flight = self.trace.meta.flight.iter();
                let waited = &flight.find(|known| (known.rank, known.thread) == (rank, one.thread))?.requests;
                match (&waited[..], waited.first().map(|first| history.made(rank, first.back))) {
                    ([_], Some([nth])) => Some(nth.clone()),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether a rank is just making the other side of a message.
    fn makes_the_other_side(&self, rank: u32, nth: &Nth) -> bool {
        let (Some(one), Some(comms)) = (self.doing.get(&rank), self.comms.get(&rank)) else { return false };
        let Some(call) = one.call.as_ref().filter(|_| one.inside) else { return false };
        let (found, comm) = channels(rank, comms, call);
        found.iter().any(|(channel, sends)| {
            *sends != nth.sends
                && match channel {
                    Some(channel) => *channel == nth.channel,
                    None => comm == nth.channel.2,
                }
        })
    }

    /// Who waits for a message of whom, or for whom to take one.
    fn messages(&mut self) {
        let Some(history) = self.history.take() else { return };
        let ranks: Vec<u32> = self.inside.keys().copied().collect();
        for rank in ranks {
            let Some(nth) = self.awaited(rank, &history).filter(|_| history.is_clear(rank)) else { continue };
            let (from, to, comm, tag) = nth.channel.clone();
            let peer = if nth.sends { to } else { from };
            if !history.lacks(&nth, self.makes_the_other_side(peer, &nth).into()) {
                continue;
            }
            let what = match nth.sends {
                true => format!("to receive what it sends with tag {tag} on {comm}"),
                false => format!("to send something with tag {tag} on {comm}"),
            };
            self.wait(rank, peer, what);
        }
        self.history = Some(history);
    }

    /// Ranks that wait for each other in a circle, if any do.
    fn circle(&self) -> Option<Vec<u32>> {
        let mut done: BTreeSet<u32> = BTreeSet::new();
        for &start in self.edges.keys() {
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
                left.push(self.edges.get(&rank).into_iter().flatten().rev().copied().collect());
            }
        }
        None
    }

    fn tell_circle(&self, circle: &[u32]) -> String {
        let next = circle.iter().cycle().skip(1);
        let each: Vec<String> = circle
            .iter()
            .zip(next)
            .enumerate()
            .map(|(n, (rank, peer))| {
                let name = self.inside[rank].call.as_ref().map_or("", |call| call.function.name);
                let waits = if n == 0 { "waits " } else { "" };
                format!("rank {rank} (in {name}) {waits}for rank {peer}")
            })
            .collect();
        let long = circle.iter().all(|rank| self.inside[rank].ns.is_some_and(|ns| ns >= LONG));
        let unless = if long { "" } else { ", unless something was still on its way" };
        format!("deadlock: {}{unless}", each.join(", "))
    }

    /// Those who wait for messages, but for those in the circle.
    fn waits(&self, circle: &[u32]) -> Vec<String> {
        let mut by: BTreeMap<(u32, String), Vec<u32>> = BTreeMap::new();
        for ((rank, peer), what) in &self.whats {
            if what.starts_with("to ") && !(circle.contains(rank) && circle.contains(peer)) {
                by.entry((*peer, what.clone())).or_default().push(*rank);
            }
        }
        let tell = |((peer, what), ranks): (&(u32, String), &Vec<u32>)| {
            let wait = if ranks.len() == 1 { "waits" } else { "wait" };
            format!("{} {wait} for rank {peer} {what}; rank {peer} {}", of_ranks(ranks), self.told_of(*peer))
        };
        by.iter().map(tell).collect()
    }
}

fn text(of: &Value) -> String {
    let mut out = String::new();
    value::text(of, &mut out);
    out
}

/// How many bytes a rank's share of a collective call has, and what it gave for it.
fn bytes(call: &Call) -> Option<(i64, String)> {
    let position = |names: [&str; 2]| call.function.params.iter().position(|p| names.contains(&p.name));
    let (count, datatype) = (position(["count", "sendcount"])?, position(["datatype", "sendtype"])?);
    let (Value::Int(count), Value::Name(name)) = (&call.args[count], &call.args[datatype]) else {
        return None;
    };
    let size = constant(name)?.size?;
    Some((count.checked_mul(size.into())?, format!("count={count}, datatype={name}")))
}
