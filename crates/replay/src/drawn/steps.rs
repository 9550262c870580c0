//! What the calls of a rank mean to other ranks: what it sends to whom, what it receives, whom it waits for.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use refrain_encode::Message;
use refrain_model::{Call, Class, Effect, Function, Kind, Scope, Value, constant};
use refrain_views::value::shown;

use super::clock::{Clock, Time};
use crate::ahead::{after, before, completed, started};

/// A message that a rank sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// In the world.
    pub to: u32,
    pub bytes: u64,
}

/// Whom a call may have to wait for, beside those who send it something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    Nobody,
    /// All ranks, in one order on all of them.
    All,
    /// Some ranks; or others may wait for this call.
    Some,
}

/// What a call means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Messages are sent when it begins.
    pub begin: Time,
    /// What it waits for was there when it ended.
    pub end: Time,
    pub sends: Vec<Sent>,
    /// So many messages are received when it is over.
    pub receives: u64,
    pub with: With,
}

/// The ranks of a communicator, as the world counts them.
#[derive(Debug, Clone)]
pub struct Group {
    pub own: Rc<[u32]>,
    /// Of one between two groups.
    pub other: Option<Rc<[u32]>>,
}

impl Group {
    /// Those whom messages are sent to.
    fn peers(&self) -> &Rc<[u32]> {
        self.other.as_ref().unwrap_or(&self.own)
    }
}

/// What a persistent request does when it is started.
#[derive(Debug, Clone, Copy)]
enum Persistent {
    Send(Option<Sent>),
    Receive,
    Other,
}

/// Goes along with the calls of one rank.
#[derive(Debug)]
pub struct Steps {
    clock: Clock,
    world: u32,
    groups: HashMap<String, Group>,
    /// Windows of all ranks.
    windows: HashSet<u32>,
    sizes: HashMap<u32, u64>,
    persistent: HashMap<u32, Persistent>,
    /// Requests that receive, and those that something else than a message completes.
    receiving: HashSet<u32>,
    others: HashSet<u32>,
}

/// Why it is not known whom a call is about.
pub fn unknown(comm: &Value) -> String {
    let name = match comm {
        Value::Comm(name) => name.clone(),
        other => shown(other),
    };
    format!("it is not known who is in {name}")
}

/// Larger than any datatype of the library's own.
const LARGEST: u64 = 32;

pub fn argument<'c>(call: &'c Call, names: &[&str]) -> Option<&'c Value> {
    let at = names.iter().find_map(|name| call.function.index_of(name))?;
    Some(before(&call.args[at]))
}

/// The request that a call makes.
pub fn makes_request(call: &Call) -> Option<u32> {
    let mut params = call.function.params.iter().zip(&call.args);
    params.find_map(|(p, value)| match after(value) {
        Value::Object(Class::Request, id) if p.effect == Effect::Create => Some(*id),
        _ => None,
    })
}

/// One that receives a message that a probe has found.
pub fn is_matched_receive(function: &Function) -> bool {
    function.name.starts_with("MPI_Mrecv") || function.name.starts_with("MPI_Imrecv")
}

pub fn is_probe(function: &Function) -> bool {
    function.name.to_ascii_lowercase().contains("probe")
}

impl Steps {
    pub fn new(clock: Clock, rank: u32, world: u32) -> Steps {
        let group = |ranks: Rc<[u32]>| Group { own: ranks, other: None };
        let groups = [("world", group((0..world).collect())), ("self", group([rank].into()))]
            .map(|(n, g)| (n.to_owned(), g));
        Steps {
            clock,
            world,
            groups: HashMap::from(groups),
            windows: HashSet::new(),
            sizes: HashMap::new(),
            persistent: HashMap::new(),
            receiving: HashSet::new(),
            others: HashSet::new(),
        }
    }

    /// No call that comes is earlier.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    pub fn group(&self, comm: &Value) -> Option<&Group> {
        match comm {
            Value::Comm(name) => self.groups.get(name),
            _ => None,
        }
    }

    /// Bytes of one element.
    pub fn size(&self, datatype: &Value) -> Option<u64> {
        match datatype {
            Value::Name(name) => constant(name)?.size.map(u64::from),
            Value::Object(Class::Datatype, id) => self.sizes.get(id).copied(),
            _ => None,
        }
    }

    /// A destination that the communicator has not becomes one that it has: another one may have had the same number.
    pub fn within(&self, call: &mut Call) {
        let Some(Message { comm, sent: Some((dest, _)), .. }) = Message::of(call.function) else { return };
        let Some(ranks) = self.group(&call.args[comm]).map(|group| group.peers().len() as i64) else {
            return;
        };
        if let Value::Int(to) = &mut call.args[dest] {
            *to = to.rem_euclid(ranks.max(1));
        }
    }

    /// Whom a call sends to, now or whenever its request is started.
    pub fn destination(&self, call: &Call) -> Result<Option<u32>, String> {
        let sent = Message::of(call.function).map(|message| self.sent(call, &message)).transpose()?;
        Ok(sent.flatten().map(|sent| sent.to))
    }

    /// The message of a call that sends one.
    fn sent(&self, call: &Call, message: &Message) -> Result<Option<Sent>, String> {
        let Some((dest, _)) = message.sent else { return Ok(None) };
        let Value::Int(to) = call.args[dest] else { return Ok(None) };
        let comm = &call.args[message.comm];
        let group = self.group(comm).ok_or_else(|| unknown(comm))?;
        let place = usize::try_from(to.rem_euclid(group.peers().len().max(1) as i64)).unwrap_or(0);
        let to = group.peers().get(place).copied().ok_or_else(|| unknown(comm))?;
        let count = match argument(call, &["sendcount", "count"]) {
            Some(Value::Int(count)) => u64::try_from(*count).unwrap_or(0),
            _ => 0,
        };
        let size = argument(call, &["sendtype", "datatype"]).and_then(|datatype| self.size(datatype));
        Ok(Some(Sent { to, bytes: count.saturating_mul(size.unwrap_or(LARGEST)) }))
    }

    /// The next call. Polls that found nothing are none.
    pub fn take(&mut self, call: &Call, symbol: Option<u32>) -> Result<Step, String> {
        let function = call.function;
        let (begin, end) = self.clock.step(function, symbol);
        let mut step = Step { begin, end, sends: Vec::new(), receives: 0, with: With::Nobody };
        if !matches!(call.result, Value::Int(0) | Value::Unset) {
            return Ok(step);
        }
        let request = makes_request(call);
        if let Some(request) = request {
            self.persistent.remove(&request);
            self.receiving.remove(&request);
            self.others.remove(&request);
        }
        match Message::of(function) {
            Some(message) => self.message(call, &message, request, &mut step)?,
            None if is_matched_receive(function) => self.receive(request, &mut step),
            None => {
                if let Some(request) = request {
                    self.others.insert(request);
                    if function.persistent {
                        self.persistent.insert(request, Persistent::Other);
                    }
                }
            }
        }
        for request in started(call) {
            match self.persistent.get(&request) {
                Some(Persistent::Send(sent)) => step.sends.extend(*sent),
                Some(Persistent::Receive) => _ = self.receiving.insert(request),
                Some(Persistent::Other) => {
                    self.others.insert(request);
                    step.with = With::Some;
                }
                None => {}
            }
        }
        for (request, _) in completed(call) {
            step.receives += u64::from(self.receiving.remove(&request));
            if self.others.remove(&request) {
                step.with = With::Some;
            }
        }
        let with = self.with(call);
        if with != With::Nobody {
            step.with = with;
        }
        if step.with == With::All {
            step.end = Time { rank: end.rank, ..end.end_of_phase() };
            self.clock.next_phase();
        }
        self.learn(call);
        Ok(step)
    }

    fn receive(&mut self, request: Option<u32>, step: &mut Step) {
        match request {
            Some(request) => _ = self.receiving.insert(request),
            None => step.receives += 1,
        }
    }

    fn message(
        &mut self,
        call: &Call,
        message: &Message,
        request: Option<u32>,
        step: &mut Step,
    ) -> Result<(), String> {
        let sent = self.sent(call, message)?;
        let expected = message.expected.is_some_and(|(source, _)| {
            call.args[source] != Value::Name("MPI_PROC_NULL") && !is_probe(call.function)
        });
        match request.filter(|_| call.function.persistent) {
            Some(request) if message.sent.is_some() => {
                self.persistent.insert(request, Persistent::Send(sent));
            }
            Some(request) if expected => _ = self.persistent.insert(request, Persistent::Receive),
            Some(_) => {}
            None => {
                step.sends.extend(sent);
                if expected {
                    self.receive(request, step);
                }
            }
        }
        Ok(())
    }

    /// Whether all ranks are in a communicator.
    fn is_of_all(&self, comm: &Value) -> bool {
        self.group(comm).is_some_and(|group| group.other.is_none() && group.own.len() == self.world as usize)
    }

    fn with(&self, call: &Call) -> With {
        let function = call.function;
        let blocks = |all: bool| if all { With::All } else { With::Some };
        let asks = makes_request(call).is_some();
        let new_comm = function.params.iter().find_map(|p| match p.effect {
            Effect::CreateComm(scope) => Some(scope),
            _ => None,
        });
        let new_window =
            function.params.iter().any(|p| p.kind == Kind::Handle(Class::Win) && p.effect == Effect::Create);
        if let Some(scope) = new_comm {
            return match scope {
                Scope::Parent(at) => blocks(!asks && self.is_of_all(&call.args[usize::from(at)])),
                Scope::Process => With::Nobody,
                _ => With::Some,
            };
        }
        if function.families.contains(&"coll") || new_window || function.name == "MPI_Comm_disconnect" {
            let comm = argument(call, &["comm"]).cloned().unwrap_or(Value::Unset);
            return match self.group(&comm) {
                Some(group) if group.other.is_none() && group.own.len() == 1 => With::Nobody,
                _ => blocks(!asks && self.is_of_all(&comm)),
            };
        }
        if function.families.contains(&"rma") {
            let window = match argument(call, &["win"]) {
                Some(Value::Object(Class::Win, id)) => Some(*id),
                _ => None,
            };
            return match function.name {
                "MPI_Win_fence" | "MPI_Win_free" => {
                    blocks(window.is_some_and(|window| self.windows.contains(&window)))
                }
                name if name.starts_with("MPI_Win_") => With::Some,
                _ => With::Nobody,
            };
        }
        match function.families {
            families if families.contains(&"io") || families.contains(&"spawn") => With::Some,
            _ => With::Nobody,
        }
    }

    /// Communicators, windows and datatypes that the call has made.
    fn learn(&mut self, call: &Call) {
        let fact = |name: &str| call.facts.iter().find(|(fact, _)| *fact == name).map(|(_, value)| value);
        let ranks = |value: &Value| match value {
            Value::List(list) => list
                .iter()
                .map(|one| match one {
                    Value::Int(rank) => u32::try_from(*rank).ok(),
                    _ => None,
                })
                .collect::<Option<Rc<[u32]>>>(),
            _ => None,
        };
        let mut sizes = call.facts.iter().filter(|(name, _)| *name == "size").map(|(_, value)| value);
        for (p, value) in call.function.params.iter().zip(&call.args) {
            match (p.effect, after(value)) {
                (Effect::CreateComm(_), Value::Comm(name)) => {
                    let group = match fact("group") {
                        Some(Value::Text(text)) => {
                            text.strip_prefix("as ").and_then(|parent| self.groups.get(parent)).cloned()
                        }
                        Some(list) => {
                            ranks(list).map(|own| Group { own, other: fact("remote_group").and_then(&ranks) })
                        }
                        None => None,
                    };
                    match group {
                        Some(group) => drop(self.groups.insert(name.clone(), group)),
                        None => drop(self.groups.remove(name)),
                    }
                }
                (Effect::Create, Value::Object(Class::Win, id)) => {
                    let all = argument(call, &["comm"]).is_some_and(|comm| self.is_of_all(comm));
                    if all {
                        self.windows.insert(*id);
                    } else {
                        self.windows.remove(id);
                    }
                }
                (Effect::Create | Effect::Alias, Value::Object(Class::Datatype, id)) => {
                    if let Some(Value::Int(size)) = sizes.next() {
                        self.sizes.insert(*id, u64::try_from(*size).unwrap_or(0));
                    }
                }
                _ => {}
            }
        }
    }
}
