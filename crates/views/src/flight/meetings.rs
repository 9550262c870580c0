//! Collective calls: who has not come to one that others are in, and whether those who are there match.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use refrain_model::{Call, Class, Kind, Value, constant};

use super::conclude::{All, Wait, shared};
use super::history::History;
use super::{Doing, of_ranks};
use crate::meaning::roles::{Needs, Way};
use crate::value;

/// Calls of the same meeting that do not belong together.
pub(super) struct Mismatch {
    pub ranks: Vec<u32>,
    pub told: String,
}

impl All<'_> {
    /// Notes who waits for whom in collective calls. Those that do not match; and, in sentences, who has not come where nobody
    /// needs it.
    pub(super) fn meetings(&mut self) -> (Vec<Mismatch>, Vec<String>) {
        type Key = (String, Vec<u32>);
        let Some(history) = self.history.take() else { return Default::default() };
        let mut by_name: BTreeMap<Key, Vec<(u32, u64, Needs)>> = BTreeMap::new();
        for (&rank, one) in &self.inside {
            let Some(call) = &one.call else { continue };
            let Some(meeting) = history.meeting(rank, call).filter(|one| one.way == Way::Blocking) else {
                continue;
            };
            let Some(group) = self.comms.get(&rank).and_then(|comms| comms.group(&meeting.comm)) else {
                continue;
            };
            if history.is_clear(rank) {
                let number = history.met(rank, &meeting.name);
                by_name.entry((meeting.name, group.to_vec())).or_default().push((
                    rank,
                    number,
                    meeting.needs,
                ));
            }
        }
        let (mut mismatches, mut unmet) = (Vec::new(), Vec::new());
        for ((name, group), there) in by_name {
            let numbers: BTreeSet<u64> = there.iter().map(|(_, number, _)| *number).collect();
            for number in numbers {
                let here: Vec<(u32, Needs)> = there
                    .iter()
                    .filter(|(_, n, _)| *n == number)
                    .map(|(rank, _, needs)| (*rank, *needs))
                    .collect();
                let ranks: Vec<u32> = here.iter().map(|(rank, _)| *rank).collect();
                mismatches
                    .extend(self.mismatch(&name, &here).map(|told| Mismatch { ranks: ranks.clone(), told }));
                let in_it: BTreeSet<u32> = ranks.iter().copied().collect();
                let lacks = |rank: &u32| {
                    !in_it.contains(rank)
                        && self.is_known(*rank)
                        && history.is_clear(*rank)
                        && history.met(*rank, &name) <= number
                        && !self.may_be_there(*rank, &name, &history)
                };
                let missing: Vec<u32> = group.iter().copied().filter(lacks).collect();
                if missing.is_empty() {
                    continue;
                }
                let nth = format!("(collective call {} on {name})", number + 1);
                let first = self.inside[&ranks[0]].short();
                let function =
                    |rank: &u32| self.inside[rank].call.as_ref().map_or("", |call| call.function.name);
                let at = if ranks.iter().all(|rank| self.inside[rank].short() == first) {
                    format!("in {first} {nth}")
                } else if ranks.iter().all(|rank| function(rank) == function(&ranks[0])) {
                    format!("in {} {nth}", function(&ranks[0]))
                } else {
                    format!("in {}", &nth[1..nth.len() - 1])
                };
                let (at, all) = (shared(&at), Rc::<[u32]>::from(&missing[..]));
                let mut in_vain = Vec::new();
                for (rank, needs) in here {
                    let needed: Rc<[u32]> = match needs {
                        Needs::Barrier | Needs::Everybody => all.clone(),
                        // Only what it cannot do without: a root may be done with sending, and who sends to it with that.
                        _ => missing
                            .iter()
                            .copied()
                            .filter(|peer| self.needs(rank, *peer, needs, &group))
                            .collect(),
                    };
                    match needed.is_empty() {
                        true => in_vain.push(rank),
                        false => self.wait(rank, Wait { peers: needed, what: at.clone(), receives: false }),
                    }
                }
                if !in_vain.is_empty() {
                    let are = if in_vain.len() == 1 { "is" } else { "are" };
                    let has = if missing.len() == 1 { "has" } else { "have" };
                    unmet.push(format!(
                        "{} {are} {at}; {} {has} not come to it",
                        of_ranks(&in_vain),
                        of_ranks(&missing)
                    ));
                }
            }
        }
        self.history = Some(history);
        (mismatches, unmet)
    }

    /// Whether a rank cannot leave its call of such a kind before a peer has come to it.
    fn needs(&self, rank: u32, peer: u32, needs: Needs, group: &[u32]) -> bool {
        let root = |at: usize| match self.inside[&rank].call.as_ref().and_then(|call| call.args.get(at)) {
            Some(Value::Int(root)) => usize::try_from(*root).ok().and_then(|at| group.get(at)).copied(),
            _ => None,
        };
        let place = |rank: u32| group.iter().position(|member| *member == rank);
        match needs {
            Needs::Root(at) => root(at) != Some(rank) && root(at) == Some(peer),
            Needs::AtRoot(at) => root(at) == Some(rank),
            Needs::Lower => place(peer) < place(rank),
            Needs::Barrier | Needs::Everybody => true,
        }
    }

    /// A rank has just come to a collective call of that name: which one is not known.
    fn may_be_there(&self, rank: u32, name: &str, history: &History) -> bool {
        let comes = |one: &&&Doing| one.inside && one.gone.is_none() && !self.inside.contains_key(&one.rank);
        let Some(one) = self.doing.get(&rank).filter(comes) else { return false };
        let is_there = |call| history.meeting(rank, call).is_some_and(|meeting| meeting.name == name);
        one.call.as_ref().is_none_or(is_there)
    }

    /// Whether the calls of ranks that are at the same collective call of a communicator belong together.
    fn mismatch(&self, comm: &str, here: &[(u32, Needs)]) -> Option<String> {
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
        let by = |of: &dyn Fn(u32, &Call, Needs) -> Option<String>| {
            let mut by: BTreeMap<String, Vec<u32>> = BTreeMap::new();
            for (rank, needs) in here {
                if let Some(text) = call(*rank).and_then(|call| of(*rank, call, *needs)) {
                    by.entry(text).or_default().push(*rank);
                }
            }
            by
        };
        let functions = by(&|_, call, _| Some(call.function.name.trim_end_matches("_c").to_owned()));
        if functions.len() > 1 {
            return Some(told("collective calls", functions));
        }
        let roots = by(&|_, call, needs| match needs {
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
