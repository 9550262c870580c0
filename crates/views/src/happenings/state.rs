//! What calls mean, one after the other: requests, communicators, datatypes, and messages in flight.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use refrain_encode::Message as Params;
use refrain_model::{Call, Status, Value};

use super::amount::{in_place, received};
use super::known::Known;
use super::{Collective, Comm, Meaning, Message};
use crate::meaning::comms::Comms;
use crate::meaning::messages::{Messages, News, SideRef, Wanted};
use crate::meaning::requests::{
    Outcome, before, completed, is_failed_poll, made_request, matched, outcome, request, status_of,
    told_in_statuses,
};
use crate::meaning::roles::{self, Needs, Role, Way, requests};
use crate::stats::payload::payload;
use crate::stats::sizes::{CommSize, named_type, new_types};
use crate::stats::walked::{Sizes, of_call};

/// What a side of a message is called, and who waits for it.
#[derive(Debug)]
struct Post {
    id: Cell<u64>,
    /// It has been told under that name.
    told: Cell<bool>,
    waits: Cell<Option<usize>>,
    /// How long the message is: a send knows, and a receive that has met it.
    bytes: Cell<Option<u64>>,
}

type Side = SideRef<Post>;

/// What a call, or a request, stands for.
#[derive(Clone)]
enum Pending {
    Send { request: Option<u64>, side: Option<Side> },
    Receive { receive: Receive, side: Option<Side> },
    Collective { what: Collective, key: Option<(u64, u64)> },
}

/// A receive as it was posted.
#[derive(Clone)]
struct Receive {
    source: Option<u32>,
    tag: Option<i64>,
    comm: Rc<Comm>,
    /// The most it takes.
    bytes: u64,
    request: Option<u64>,
}

#[derive(Default)]
struct Request {
    pending: Vec<Pending>,
    /// What starting it again does.
    template: Option<Rc<Call>>,
}

/// A collective to which not all have come.
#[derive(Default)]
struct Together {
    came: usize,
    root: bool,
    /// Threads that wait for the root, and for everybody.
    for_root: Vec<usize>,
    for_all: Vec<usize>,
}

pub(super) struct State {
    comms: Comms,
    /// By rank and id.
    requests: HashMap<(u32, u32), Request>,
    types: HashMap<(u32, u32), u64>,
    roles: HashMap<u16, Role>,
    /// By rank: how many operations had a request.
    made: HashMap<u32, u64>,
    /// Ranks that are walked; matching is for several.
    walked: HashSet<u32>,
    messages: Messages<Post>,
    posted: u64,
    pub(super) unclear: u64,
    /// Receives whose message is at most as long as is said.
    pub(super) bounded: u64,
    /// Messages and collectives on communicators that nobody knows.
    pub(super) lost: u64,
    pub(super) known: Known,
    /// In a reconstruction calls end after what they wait for.
    patient: bool,
    together: HashMap<(u64, u64), Together>,
    /// By thread: what its current call ends with, and for how much it waits.
    current: HashMap<usize, Vec<Pending>>,
    waiting: HashMap<usize, usize>,
    released: Vec<usize>,
}

/// It did what it is for, or what its statuses say.
fn is_fine(call: &Call) -> bool {
    call.result == Value::Int(0) || call.result == Value::Unset || told_in_statuses(call)
}

fn number(value: &Value) -> Option<i64> {
    if let Value::Int(number) = value { Some(*number) } else { None }
}

impl State {
    pub(super) fn new(present: Vec<bool>, walked: &[u32], patient: bool) -> State {
        State {
            comms: Comms::of(present, walked.iter().copied()),
            requests: HashMap::new(),
            types: HashMap::new(),
            roles: HashMap::new(),
            made: HashMap::new(),
            walked: walked.iter().copied().collect(),
            messages: Messages::default(),
            posted: 0,
            unclear: 0,
            bounded: 0,
            lost: 0,
            known: Known::default(),
            patient: patient && walked.len() > 1,
            together: HashMap::new(),
            current: HashMap::new(),
            waiting: HashMap::new(),
            released: Vec::new(),
        }
    }

    pub(super) fn ranks(&self) -> u32 {
        self.comms.ranks()
    }

    pub(super) fn datatype_size(&self, rank: u32, datatype: &Value) -> Option<u64> {
        match datatype {
            Value::Name(name) => Some(named_type(name)),
            Value::Object(_, id) => self.types.get(&(rank, *id)).copied(),
            _ => None,
        }
    }

    /// Threads whose calls can end now.
    pub(super) fn released(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.released)
    }

    /// One of the threads that wait for nobody who would still come, the lowest.
    pub(super) fn give_up(&mut self) -> Option<usize> {
        let thread = self.waiting.keys().min().copied()?;
        self.waiting.remove(&thread);
        Some(thread)
    }

    fn role(&mut self, call: &Call) -> Role {
        *self.roles.entry(call.function.id).or_insert_with(|| Role::of(call.function))
    }

    /// A call of a thread begins: what that means, and how many it has to wait for.
    pub(super) fn begin(&mut self, thread: usize, rank: u32, call: &Rc<Call>) -> (Vec<Meaning>, usize) {
        let mut meanings = Vec::new();
        if !is_fine(call) || is_failed_poll(call) {
            return (meanings, 0);
        }
        let mut pending = Vec::new();
        match self.role(call) {
            Role::Start => {
                let given = requests(call.function).map(|at| before(&call.args[at]));
                let ids: Vec<u32> = match given {
                    Some(Value::List(all)) => all.iter().filter_map(request).collect(),
                    one => one.and_then(request).into_iter().collect(),
                };
                for id in ids {
                    let known = self.requests.get(&(rank, id)).and_then(|known| known.template.clone());
                    let Some(template) = known else { continue };
                    let started = self.post(rank, &template, true, &mut meanings);
                    if let Some(known) = self.requests.get_mut(&(rank, id)) {
                        known.pending = started;
                    }
                }
            }
            Role::Complete(_) => {
                for (id, status) in completed(call) {
                    if outcome(status) == Outcome::Open {
                        continue;
                    }
                    // What a receive met is known from now on.
                    for one in
                        self.requests.get(&(rank, id)).map(|known| known.pending.clone()).unwrap_or_default()
                    {
                        self.learn(&one, status);
                        pending.push(one);
                    }
                }
            }
            Role::Messages(_, Way::Probe) => {}
            Role::Messages(_, way) | Role::Collective(roles::Collective { way, .. }) => {
                match (way, made_request(call)) {
                    (Way::Persistent, Some(id)) => {
                        let template = Some(call.clone());
                        self.requests.insert((rank, id), Request { pending: Vec::new(), template });
                    }
                    (Way::Request, Some(id)) => {
                        let pending = self.post(rank, call, true, &mut meanings);
                        self.requests.insert((rank, id), Request { pending, template: None });
                    }
                    (Way::Persistent | Way::Request, None) => {}
                    _ => {
                        pending = self.post(rank, call, false, &mut meanings);
                        for one in &pending {
                            self.learn(one, status_of(call));
                        }
                        self.current.insert(thread, pending.clone());
                    }
                }
            }
            Role::Nothing | Role::Elsewhere | Role::Init | Role::Finalize | Role::EndComm(_) => {}
        }
        self.hear();
        // Whoever waits for it in another thread may do so from now on.
        if let Some(id) = made_request(call) {
            self.known.request(rank, id);
        }
        let open = if self.patient { self.wait(thread, &pending) } else { 0 };
        (meanings, open)
    }

    /// A call of a thread ends: what that means.
    pub(super) fn end(&mut self, thread: usize, rank: u32, call: &Call) -> Vec<Meaning> {
        let mut meanings = Vec::new();
        if !is_fine(call) {
            return meanings;
        }
        let role = self.role(call);
        match role {
            Role::Complete(_) if is_failed_poll(call) => {
                let given = requests(call.function).map(|at| before(&call.args[at]));
                let ids: Vec<u32> = match given {
                    Some(Value::List(all)) => all.iter().filter_map(request).collect(),
                    one => one.and_then(request).into_iter().collect(),
                };
                for id in ids {
                    let Some(known) = self.requests.get(&(rank, id)) else { continue };
                    meanings.extend(
                        known
                            .pending
                            .iter()
                            .filter_map(|pending| Some(Meaning::Tested { request: pending.request()? })),
                    );
                }
                return meanings;
            }
            Role::Complete(_) => {
                for (id, status) in completed(call) {
                    let outcome = outcome(status);
                    if outcome == Outcome::Open {
                        continue;
                    }
                    let persistent =
                        self.requests.get(&(rank, id)).is_some_and(|known| known.template.is_some());
                    let pending = match persistent {
                        true => {
                            self.requests.get_mut(&(rank, id)).map(|known| std::mem::take(&mut known.pending))
                        }
                        false => {
                            self.known.gone(rank, id);
                            self.requests.remove(&(rank, id)).map(|known| known.pending)
                        }
                    };
                    for one in pending.unwrap_or_default() {
                        match outcome {
                            Outcome::Failed => {
                                meanings.extend(one.request().map(|request| Meaning::Cancelled { request }))
                            }
                            _ => self.over(one, status, &mut meanings),
                        }
                    }
                }
            }
            Role::Messages(..) | Role::Collective(_) => {
                for one in self.current.remove(&thread).unwrap_or_default() {
                    self.over(one, status_of(call), &mut meanings);
                }
            }
            // In made-up time other threads of the rank may still use it.
            Role::EndComm(_) if self.known.watches(rank) => {}
            Role::EndComm(comm) => self.comms.forget(rank, &call.args[comm]),
            _ => {
                // A request that is given up.
                if call.function.name == "MPI_Request_free"
                    && let Some(id) = call.args.first().map(before).and_then(request)
                {
                    self.known.gone(rank, id);
                    self.requests.remove(&(rank, id));
                }
            }
        }
        if is_failed_poll(call) {
            return meanings;
        }
        self.known.made(rank, call);
        self.comms.learn(rank, call);
        for (id, size) in new_types(call) {
            self.types.insert((rank, id), size);
        }
        meanings
    }

    fn next_request(&mut self, rank: u32, with: bool) -> Option<u64> {
        let made = self.made.entry(rank).or_default();
        *made += u64::from(with);
        with.then_some(*made)
    }

    fn side(&mut self, to: (u64, u32), bytes: Option<u64>) -> Side {
        self.posted += 1;
        let post = Post {
            id: Cell::new(self.posted),
            told: Cell::new(false),
            waits: Cell::new(None),
            bytes: Cell::new(bytes),
        };
        self.messages.side(post, to, false)
    }

    /// Posts the messages of a call, or comes to its collective.
    fn post(&mut self, rank: u32, call: &Call, with: bool, meanings: &mut Vec<Meaning>) -> Vec<Pending> {
        match self.role(call) {
            Role::Messages(params, _) => self.post_messages(rank, call, params, with, meanings),
            Role::Collective(what) => {
                self.post_collective(rank, call, what, with, meanings).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn post_messages(
        &mut self,
        rank: u32,
        call: &Call,
        params: Params,
        with: bool,
        meanings: &mut Vec<Meaning>,
    ) -> Vec<Pending> {
        let mut pending = Vec::new();
        let Some(comm) = self.comms.get(rank, &call.args[params.comm]).map(|used| used.comm.clone()) else {
            self.lost += u64::from(matches!(call.args[params.comm], Value::Comm(_)));
            return pending;
        };
        if let Some((peer, tag)) = params.sent
            && let Some(index) = number(&call.args[peer])
            && let Some(to) = comm.peer(index)
            && let Some(tag) = number(&call.args[tag])
        {
            let request = self.next_request(rank, with);
            let bytes = self.given(rank, call);
            let side = (self.walked.len() > 1 && self.walked.contains(&to))
                .then(|| self.side((comm.number, to), Some(bytes)));
            if let Some(side) = &side {
                self.messages.send(side, rank, tag);
                self.hear();
                side.borrow().what.told.set(true);
            }
            let id = side.as_ref().map(|side| side.borrow().what.id.get());
            let peer_in_comm = u32::try_from(index).unwrap_or(0);
            let message = Message { peer: to, peer_in_comm, tag, comm: comm.clone(), bytes, request, id };
            meanings.push(Meaning::Send(message));
            pending.push(Pending::Send { request, side });
        }
        if let Some((peer, tag)) = params.expected {
            let source = match &call.args[peer] {
                Value::Name("MPI_ANY_SOURCE") => None,
                other => match number(other).and_then(|peer| u32::try_from(peer).ok()) {
                    Some(source) if comm.peer(source.into()).is_some() => Some(source),
                    // Nobody, or nobody that is known.
                    _ => return pending,
                },
            };
            let request = self.next_request(rank, with);
            if let Some(request) = request {
                meanings.push(Meaning::ReceivePosted { request });
            }
            let tag = number(&call.args[tag]);
            let world = source.and_then(|source| comm.peer(source.into()));
            let comes = self.walked.len() > 1 && world.is_none_or(|source| self.walked.contains(&source));
            let side = comes.then(|| self.side((comm.number, rank), None));
            if let Some(side) = &side {
                self.messages.receive(side, Wanted { source: world, tag });
            }
            let bytes = received(call, 1, &|datatype| self.datatype_size(rank, datatype));
            pending.push(Pending::Receive { receive: Receive { source, tag, comm, bytes, request }, side });
        }
        pending
    }

    fn post_collective(
        &mut self,
        rank: u32,
        call: &Call,
        what: roles::Collective,
        with: bool,
        meanings: &mut Vec<Meaning>,
    ) -> Option<Pending> {
        let request = self.next_request(rank, with);
        let Some(used) = self.comms.used(rank, &call.args[what.comm]) else {
            self.lost += u64::from(matches!(call.args[what.comm], Value::Comm(_)));
            return None;
        };
        let index = used.index;
        let (comm, nth) = (used.comm.clone(), used.calls);
        used.calls += 1;
        let root = match what.kind {
            Needs::Root(at) | Needs::AtRoot(at) => {
                number(&call.args[at]).and_then(|root| u32::try_from(root).ok())
            }
            _ => None,
        };
        let at_root = match what.kind {
            Needs::Root(at) | Needs::AtRoot(at) => Some(&call.args[at]),
            _ => None,
        };
        let members = comm.remote().unwrap_or(comm.group()).len() as u64;
        let is_root =
            root.is_some_and(|root| comm.remote().is_none() && comm.peer(root.into()) == Some(rank));
        // Of an inter-communicator the root says so itself, and those beside it do nothing.
        let (says_root, beside) =
            (at_root == Some(&Value::Name("MPI_ROOT")), at_root == Some(&Value::Name("MPI_PROC_NULL")));
        let size = |datatype: &Value| self.datatype_size(rank, datatype);
        let sent = match what.kind {
            Needs::Root(_) if !is_root && !says_root => 0,
            Needs::AtRoot(_) if says_root || beside => 0,
            _ => index.and_then(|index| in_place(call, index, &size)).unwrap_or(self.given(rank, call)),
        };
        let all = received(call, members, &|datatype| self.datatype_size(rank, datatype));
        // A root takes nothing from its own broadcast, and only a root takes what is reduced to it.
        let got = match what.kind {
            Needs::Barrier => 0,
            Needs::Root(_) if is_root && call.function.index_of("recvcount").is_none() => 0,
            Needs::Root(_) if says_root || beside => 0,
            Needs::AtRoot(_) if !is_root && !says_root => 0,
            _ => all,
        };
        let what_is = Collective {
            function: call.function,
            comm: comm.clone(),
            root,
            beside,
            sent,
            received: got,
            request,
        };
        meanings.push(Meaning::Collective(what_is.clone()));
        let whole = comm.members().is_some_and(|members| {
            members.len() > 1 && members.iter().all(|member| self.walked.contains(member))
        });
        let key = (self.patient && whole).then_some((comm.number, nth));
        if let Some(key) = key {
            let size = comm.group().len();
            let together = self.together.entry(key).or_default();
            together.came += 1;
            together.root |= is_root;
            let mut free = Vec::new();
            if is_root {
                free.append(&mut together.for_root);
            }
            if together.came == size {
                free.append(&mut together.for_all);
                free.append(&mut together.for_root);
                self.together.remove(&key);
            }
            free.into_iter().for_each(|thread| self.come(thread));
        }
        Some(Pending::Collective { what: what_is, key })
    }

    /// What a call gives to MPI.
    fn given(&self, rank: u32, call: &Call) -> u64 {
        struct Here<'a>(&'a State, u32);
        impl Sizes for Here<'_> {
            fn datatype(&self, id: u32) -> Option<u64> {
                self.0.types.get(&(self.1, id)).copied()
            }
            fn comm(&self, value: &Value) -> Option<CommSize> {
                let comm = &self.0.comms.get(self.1, value)?.comm;
                let remote = comm.remote().map(|remote| remote.len() as u64);
                Some(CommSize { local: comm.group().len() as u64, remote, out_degree: None })
            }
        }
        let amount = payload(call.function).map(|rule| of_call(call, &rule, &Here(self, rank)).bytes);
        amount.map_or(0, |bytes| u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// What a receive met, if it could take several.
    fn learn(&mut self, pending: &Pending, status: Option<&Value>) {
        let Pending::Receive { receive, side: Some(side) } = pending else { return };
        if matches!(status, Some(Value::Status(Status { cancelled: Some(true), .. }))) {
            self.leave(side);
            return;
        }
        if receive.source.is_some() && receive.tag.is_some() {
            return;
        }
        let met = status.and_then(matched);
        match met.and_then(|(source, tag)| Some((receive.comm.peer(source)?, tag))) {
            // Of one who is not looked at nothing will come.
            Some((source, _)) if !self.walked.contains(&source) => self.leave(side),
            Some((source, tag)) => self.messages.met(side, source, tag),
            None => self.messages.met_unknown(side),
        }
    }

    /// Nobody meets this one, and nobody waits for it.
    fn leave(&mut self, side: &Side) {
        self.messages.cancelled(side);
        side.borrow_mut().matched = true;
    }

    /// Sides that have met have one name: that of the one that was told first.
    fn hear(&mut self) {
        for news in self.messages.take_news() {
            let waits = |side: &Side| side.borrow().what.waits.take();
            let thread = match &news {
                News::Met { send, receive } => {
                    let (send, receive) = (send.borrow(), receive.borrow());
                    receive.what.bytes.set(send.what.bytes.get());
                    match receive.what.told.get() {
                        true => send.what.id.set(receive.what.id.get()),
                        false => receive.what.id.set(send.what.id.get()),
                    }
                    receive.what.waits.take()
                }
                News::Left(side) => waits(side),
            };
            thread.into_iter().for_each(|thread| self.come(thread));
        }
    }

    /// What ends a call, or a request.
    fn over(&mut self, pending: Pending, status: Option<&Value>, meanings: &mut Vec<Meaning>) {
        let cancelled = matches!(status, Some(Value::Status(Status { cancelled: Some(true), .. })));
        match pending {
            Pending::Send { request, side } => {
                if cancelled && let Some(side) = &side {
                    self.messages.cancelled(side);
                    self.hear();
                }
                meanings.extend(request.map(|request| match cancelled {
                    true => Meaning::Cancelled { request },
                    false => Meaning::SendDone { request },
                }));
            }
            Pending::Receive { receive, .. } if cancelled => {
                meanings.extend(receive.request.map(|request| Meaning::Cancelled { request }));
            }
            Pending::Receive { receive, side } => {
                let Receive { source, tag, comm, bytes, request } = receive;
                let told = status.and_then(matched);
                let source = told.and_then(|(source, _)| u32::try_from(source).ok()).or(source);
                let tag = told.map(|(_, tag)| tag).or(tag);
                let told = match status {
                    Some(Value::Status(Status { bytes: Some(bytes), .. })) => u64::try_from(*bytes).ok(),
                    // Nobody asked: it is as long as the other side says.
                    _ => side.as_ref().and_then(|side| side.borrow().what.bytes.get()),
                };
                let peer = source.and_then(|source| comm.peer(source.into()));
                let (Some(peer_in_comm), Some(tag), Some(peer)) = (source, tag, peer) else {
                    self.unclear += 1;
                    return;
                };
                self.bounded += u64::from(told.is_none() && bytes > 0);
                let bytes = told.unwrap_or(bytes);
                let id = side.map(|side| {
                    let side = side.borrow();
                    side.what.told.set(true);
                    side.what.id.get()
                });
                meanings.push(Meaning::Received(Message {
                    peer,
                    peer_in_comm,
                    tag,
                    comm,
                    bytes,
                    request,
                    id,
                }));
            }
            Pending::Collective { what, .. } => meanings.push(Meaning::CollectiveDone(what)),
        }
    }

    /// The call of this thread ends when these have come: how many have not.
    fn wait(&mut self, thread: usize, pending: &[Pending]) -> usize {
        let mut open = 0;
        for one in pending {
            match one {
                Pending::Receive { side: Some(side), .. } if !side.borrow().matched => {
                    side.borrow().what.waits.set(Some(thread));
                    open += 1;
                }
                Pending::Collective { what, key: Some(key) } => {
                    let Some(together) = self.together.get_mut(key) else { continue };
                    let role = Role::of(what.function);
                    let Role::Collective(roles::Collective { kind, .. }) = role else { continue };
                    match kind {
                        Needs::Barrier | Needs::Everybody => together.for_all.push(thread),
                        Needs::Root(_) if !together.root => together.for_root.push(thread),
                        Needs::Root(_) | Needs::AtRoot(_) | Needs::Lower => continue,
                    }
                    open += 1;
                }
                _ => {}
            }
        }
        if open > 0 {
            self.waiting.insert(thread, open);
        }
        open
    }

    /// One of those that a thread waits for has come.
    fn come(&mut self, thread: usize) {
        let Some(open) = self.waiting.get_mut(&thread) else { return };
        *open -= 1;
        if *open == 0 {
            self.waiting.remove(&thread);
            self.released.push(thread);
        }
    }
}

impl Pending {
    fn request(&self) -> Option<u64> {
        match self {
            Pending::Send { request, .. } => *request,
            Pending::Receive { receive, .. } => receive.request,
            Pending::Collective { what, .. } => what.request,
        }
    }
}
