//! Handles: objects that are used, made, completed and freed.

use refrain_fold::xxh64;
use refrain_model::{Class, Dir, Effect, Kind, Scope};

use super::{Call, Encoder};
use crate::comms::Later;
use crate::defined::{Completed, Undefined};
use crate::hash::mix;
use crate::host::{DatatypeInfo, Host, Memory};
use crate::layout::{NewGroup, Outcome};
use crate::objects::Code;
use crate::record::Record;
use crate::requests::{Given, New};
use crate::shape::Lanes;
use crate::wire;

impl Encoder {
    /// An object whose code is part of the symbol.
    pub(super) fn object<H: Host>(
        &mut self,
        call: &mut Call<'_, H>,
        i: usize,
        class: Class,
        record: &mut Record,
    ) {
        let p = &call.f.params[i];
        if p.dir != Dir::In && call.args[i] == 0 {
            record.tag(wire::ABSENT);
            return;
        }
        let handle = self.given(call, i, class, 0);
        if class == Class::Comm && p.effect == Effect::Free {
            self.comms.know(handle, call.tables.thread());
        }
        let code = self.code(call, class, handle);
        record.number(code.map_or(0, |c| c.number() + 1));
        if let Some(code) = code
            && p.effect == Effect::Free
            && call.end == Outcome::Success
        {
            self.free(class, handle, code);
        }
    }

    /// Objects whose codes are in lanes.
    pub(super) fn codes<H: Host>(
        &mut self,
        call: &mut Call<'_, H>,
        i: usize,
        live: bool,
        record: &mut Record,
    ) {
        let p = &call.f.params[i];
        let Kind::Handle(class) = p.kind else { return };
        let Lanes { length, first: lane, facts, .. } = record.claim(&call.shape.steps[i], call.end);
        if !live {
            return;
        }
        let n = self.count(call, i);
        if let Some(length) = length {
            record.push(length, n as i64);
        }
        let first_handle = call.handle_at;
        if class == Class::Request {
            self.requests(call, i, n, lane, record);
            match p.effect {
                Effect::Free | Effect::Complete => self.release_requests(call, i),
                // A start that failed has started some, and nobody says which: of their statuses less is told.
                Effect::Start => {
                    self.scratch.requests.iter().for_each(|&number| call.tables.set_active(number, true));
                }
                _ => {}
            }
            return;
        }
        self.scratch.codes.clear();
        let thread = call.tables.thread();
        // Not of MPI_DATATYPE_NULL, which MPI must not be asked about.
        let first = facts.map(|_| call.host.handle_at(class, call.args[i], 0));
        let made = first.filter(|&first| n > 0 && !self.objects.is_constant(class, first));
        let made = made.map(|made| call.host.datatype(made));
        for k in 0..n {
            let handle = self.given(call, i, class, k);
            let code = match (p.dir, p.effect) {
                (Dir::Out, Effect::Alias) => {
                    self.generation += 1;
                    Some(self.objects.alias(class, handle, thread))
                }
                (Dir::Out, _) => {
                    self.generation += 1;
                    let made =
                        made.map_or(0, |made| mix(mix(made.size as u64, made.lb as u64), made.extent as u64));
                    Some(self.objects.create(class, handle, thread, mix(signature(record), made)))
                }
                _ => self.code(call, class, handle),
            };
            let code = code.unwrap_or(Code::Constant(0));
            self.scratch.codes.push(code);
            record.push(lane, code.number() as i64);
        }
        if let Some(facts) = facts {
            let made = match self.scratch.codes.first() {
                Some(Code::Id(_)) => made.unwrap_or_default(),
                _ => DatatypeInfo::default(),
            };
            for (k, v) in (0u16..).zip([made.size, made.lb, made.extent]) {
                record.push(facts + k, v);
            }
        }
        if p.dir == Dir::Out && class == Class::Win {
            let rank = call.shape.comm.map_or(0, |j| self.base_rank(call, j));
            self.wins.insert(call.host.handle_at(class, call.args[i], 0), rank);
        }
        if p.effect == Effect::Free && call.end == Outcome::Success {
            self.release(call, class, first_handle);
        }
    }

    /// A request, or a list of them.
    fn requests<H: Host>(
        &mut self,
        call: &mut Call<'_, H>,
        i: usize,
        n: usize,
        lane: u16,
        record: &mut Record,
    ) {
        self.scratch.requests.clear();
        self.scratch.undefined.clear();
        let mut handles = std::mem::take(&mut self.scratch.given);
        handles.clear();
        handles.extend((0..n).map(|k| self.given(call, i, Class::Request, k)));
        let p = &call.f.params[i];
        // One that is passed by value lies nowhere.
        let address = if p.dir == Dir::In && p.len.is_empty() { 0 } else { call.args[i] };
        let given = Given { handles: &handles, address, size: call.host.handle_size(Class::Request) };
        for (k, &handle) in handles.iter().enumerate() {
            let mut undefined = Undefined::NONE;
            let number = match self.facts.null_request(handle) {
                Some(null) => {
                    call.tables.forget_source();
                    null
                }
                None if p.dir == Dir::Out => {
                    let wild = self.asks_for_any(call);
                    self.wild |= wild;
                    call.tables.create(New {
                        handle,
                        address,
                        signature: signature(record),
                        symbol: xxh64(&record.symbol, 0),
                        function: call.f.id,
                        persistent: call.f.persistent,
                        wild,
                        later: self.scratch.pending.take(),
                    })
                }
                None => {
                    let (number, of) = call.tables.number(given, k);
                    undefined = of;
                    number
                }
            };
            self.scratch.requests.push(number);
            self.scratch.undefined.push(undefined);
            record.push(lane, number);
        }
        self.scratch.given = handles;
    }

    /// The handle the program gave (for InOut: before the call) or the call returned.
    fn given<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, class: Class, k: usize) -> u64 {
        let p = &call.f.params[i];
        match p.dir {
            Dir::InOut => {
                let handle = call.before.handles.get(call.handle_at).copied();
                call.handle_at += 1;
                handle.unwrap_or(0)
            }
            Dir::In if p.len.is_empty() => call.host.handle(class, call.args[i]),
            _ => call.host.handle_at(class, call.args[i], k),
        }
    }

    fn code<H: Host>(&mut self, call: &mut Call<'_, H>, class: Class, handle: u64) -> Option<Code> {
        if let Some(ending) = call.before.ending(class, handle) {
            return Some(ending);
        }
        match class {
            Class::Comm => self.comms.null(handle).or_else(|| self.adopt(call, handle).map(|c| c.code)),
            _ => Some(self.objects.code(class, handle, call.tables.thread())),
        }
    }

    /// A call is about to free this object.
    pub(super) fn ending(&mut self, class: Class, handle: u64, thread: u32) -> Option<Code> {
        match class {
            Class::Request => None,
            Class::Comm => self.comms.ending(handle, thread),
            _ => self.objects.ending(class, handle, thread),
        }
    }

    /// That call failed.
    pub(super) fn stays(&mut self, class: Class, handle: u64, code: Code) {
        match class {
            Class::Comm => self.comms.stays(handle, code),
            _ => self.objects.stays(class, handle, code),
        }
    }

    fn free(&mut self, class: Class, handle: u64, code: Code) {
        self.generation += 1;
        if class == Class::Comm {
            self.comms.free(handle, code);
        } else if self.objects.free(class, handle, code) && class == Class::Win {
            self.wins.remove(&handle);
        }
    }

    /// Freed objects give their ids back.
    fn release<H: Host>(&mut self, call: &Call<'_, H>, class: Class, first_handle: usize) {
        for k in 0..self.scratch.codes.len() {
            let handle = call.before.handles.get(first_handle + k).copied().unwrap_or(0);
            self.free(class, handle, self.scratch.codes[k]);
        }
    }

    /// After a call, requests that became null are over.
    fn release_requests<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize) {
        let freed = call.f.params[i].effect == Effect::Free;
        for k in 0..self.scratch.requests.len() {
            let now = call.host.handle_at(Class::Request, call.args[i], k);
            if self.facts.null_request(now).is_some()
                && let Some(later) = call.tables.complete(self.scratch.requests[k], freed)
            {
                self.arrived(call.host, *later);
            }
        }
        // After a failure nobody says which are complete: of the statuses of those that are taken for active less is told.
        if freed || call.end != Outcome::Success {
            return;
        }
        let written = |j: u8, k| {
            let pointer = call.args[usize::from(j)];
            let there = pointer != 0 && !self.facts.names_an_array(pointer);
            there.then(|| call.element(usize::from(j), k))
        };
        let mut complete = std::mem::take(&mut self.scratch.complete);
        Completed::of(call.f).each(self.scratch.requests.len(), written, |k| complete.push(k));
        for k in complete.drain(..) {
            call.tables.set_active(self.scratch.requests[k], false);
        }
        self.scratch.complete = complete;
    }

    /// A communicator whose request is complete has a handle now.
    pub fn arrived<M: Memory>(&mut self, memory: &M, later: Later) {
        let handle = memory.handle_at(Class::Comm, later.pointer, 0);
        self.generation += 1;
        self.comms.bind(handle, later.comm);
    }

    pub(super) fn new_comm<H: Host>(
        &mut self,
        call: &mut Call<'_, H>,
        i: usize,
        scope: Scope,
        record: &mut Record,
    ) {
        let pointer = call.args[i];
        let handle = call.host.handle_at(Class::Comm, pointer, 0);
        let null = self.comms.null(handle);
        let parent = match scope {
            Scope::Parent(j) | Scope::ParentLater(j, _) => {
                call.host.handle(Class::Comm, call.args[usize::from(j)])
            }
            _ => 0,
        };
        let later = matches!(scope, Scope::ParentLater(..));
        self.generation += 1;
        record.tag(wire::LANE);
        if let Some(code) = null
            && !later
        {
            let order = self.comms.order(scope, parent, None);
            let new = record.claim_comm(scope, wire::GROUP_NONE);
            record.push(new.code, code.number() as i64);
            record.push(new.order, order as i64);
            return;
        }
        let parent_info = match scope {
            Scope::Parent(_) | Scope::ParentLater(..) => self.adopt(call, parent).map(|c| c.info.clone()),
            _ => None,
        };
        let info = match &parent_info {
            Some(info) if later => info.clone(),
            _ => call.host.comm(handle),
        };
        let order = self.comms.order(scope, parent, Some(&info));
        let comm = self.comms.make(info.clone(), call.tables.thread());
        let group = match &parent_info {
            Some(parent) if *parent == info => wire::GROUP_SAME,
            _ if info.remote_size.is_some() => wire::GROUP_INTER,
            _ => wire::GROUP_LIST,
        };
        let new = record.claim_comm(scope, group);
        record.push(new.code, comm.code.number() as i64);
        record.push(new.order, order as i64);
        if let Some(lane) = new.rank {
            record.push(lane, i64::from(info.rank));
        }
        if let NewGroup::List(lane) | NewGroup::Inter(lane, _) = new.group {
            list(record, lane, &info.world);
        }
        if let NewGroup::Inter(_, lane) = new.group {
            list(record, lane, &info.remote_world);
        }
        if null.is_some() {
            self.scratch.pending = Some(Box::new(Later { pointer, comm }));
        } else {
            self.comms.bind(handle, comm);
        }
    }
}

/// A list of ranks: its length in one lane, its elements in the next.
fn list(record: &mut Record, lane: u16, ranks: &[i32]) {
    record.push(lane, ranks.len() as i64);
    for &rank in ranks {
        record.push(lane + 1, i64::from(rank));
    }
}

/// A hash of everything about a call that creates a request, but the request. It names the pool, which also says what
/// statuses leave open, and nobody compares the calls. Calls that the memo knows do not ask for it.
fn signature(record: &Record) -> u64 {
    record
        .values
        .iter()
        .fold(xxh64(&record.symbol, 0), |h, &(lane, v)| mix(mix(h, u64::from(lane)), v as u64))
}
