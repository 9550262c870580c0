//! Requests that are others to MPI than to whoever calls it.
//!
//! Persistent requests that receive from any source, or may be cancelled: each time one is started, another message may be meant. So a plain
//! receive of that message takes its place until it is complete. And requests to which a library gave one handle: a tracer
//! tells them apart by the program's variables, of which a trace says nothing. So it is shown handles of ours.

use std::collections::{HashMap, HashSet};

use refrain_model::{Call, Class, Dir, Effect, Kind, Value};

use crate::ahead::{Match, NEVER, before, is_wild, started};
use crate::issue::Process;
use crate::words;

/// By id.
#[derive(Default)]
pub struct Wild {
    /// Persistent requests that receive from any source, or may be cancelled.
    receives: HashMap<u32, Receive>,
    /// Those that are started: where the handle of the plain receive lies.
    active: HashMap<u32, Box<u64>>,
    /// Requests with a handle of ours: where MPI's lies.
    hidden: HashMap<u32, Box<u64>>,
    /// Whose handles are MPI's, by handle; and the handle of each request.
    live: HashMap<u64, HashSet<u32>>,
    handles: HashMap<u32, u64>,
}

/// The arguments of a receive: buffer, count, datatype, source, tag, communicator.
#[derive(Debug, Clone, Copy)]
struct Receive {
    words: [usize; 6],
    large: bool,
    /// From any source.
    wild: bool,
}

/// A call's requests with the plain receives in their places.
pub struct Instead {
    pub words: Vec<usize>,
    at: usize,
    ids: Vec<Option<u32>>,
    /// The handles that MPI is given, where there are several.
    handles: Vec<u64>,
    several: bool,
    by_value: bool,
}

impl Wild {
    /// The request is freed.
    pub fn forget(&mut self, id: u32) {
        self.receives.remove(&id);
        self.active.remove(&id);
    }

    /// Whether a persistent request, if it is one of these, receives from any source.
    pub fn is_from_any_source(&self, id: u32) -> Option<bool> {
        self.receives.get(&id).map(|receive| receive.wild)
    }

    /// The request is over.
    pub fn is_over(&mut self, id: u32) {
        self.hidden.remove(&id);
        if let Some(handle) = self.handles.remove(&id)
            && let Some(ids) = self.live.get_mut(&handle)
        {
            ids.remove(&id);
            if ids.is_empty() {
                self.live.remove(&handle);
            }
        }
    }

    fn cell(&mut self, id: u32) -> Option<&mut Box<u64>> {
        self.active.get_mut(&id).or_else(|| self.hidden.get_mut(&id))
    }
}

fn ids(value: &Value) -> Vec<Option<u32>> {
    let id = |value: &Value| match before(value) {
        Value::Object(Class::Request, id) => Some(*id),
        _ => None,
    };
    match before(value) {
        Value::List(all) => all.iter().map(id).collect(),
        one => vec![id(one)],
    }
}

impl Process {
    /// A persistent request was made that receives from any source.
    pub(crate) fn note_wild(&self, call: &Call, id: u32, w: &[usize]) {
        let mut words = [w[0], w[1], w[2], w[3], w[4], w[5]];
        // The program may free its own before the last start.
        if let Value::Object(Class::Datatype, _) = call.args[2] {
            let mut copy = 0u64;
            if self.real_call("MPI_Type_dup", &[w[2], std::ptr::from_mut(&mut copy) as usize]) == 0 {
                words[2] = copy as usize;
            }
        }
        let receive = Receive { words, large: call.function.name.ends_with("_c"), wild: is_wild(call) };
        self.known().wild.receives.insert(id, receive);
    }

    /// Receives from nobody that are about to be started: the trace may take them for complete, and this library not.
    pub(crate) fn end_unsent(&self, call: &Call, w: &[usize]) {
        let size = self.abi.handle_size(refrain_mpi::Class::Request);
        let cells = if call.function.params.len() == 1 { w[0] } else { w[1] };
        for (k, id) in started(call).into_iter().enumerate() {
            let unsent = self.known().unsent.contains(&id);
            if unsent {
                self.real_call("MPI_Wait", &[cells + k * size, self.abi.status_ignore]);
            }
        }
    }

    /// Starts requests. What those get that receive from any source is in `matches`, in order.
    pub(crate) fn start(&self, call: &Call, w: &[usize], matches: &[Option<Match>]) -> usize {
        let size = self.abi.handle_size(refrain_mpi::Class::Request);
        let cells = if call.function.params.len() == 1 { w[0] } else { w[1] };
        let mut matches = matches.iter();
        let mut code = 0;
        for (k, id) in started(call).into_iter().enumerate() {
            let receive = self.known().wild.receives.get(&id).copied();
            let found = receive.and_then(|receive| Some((receive, (*matches.next()?)?)));
            let Some((Receive { words: [buffer, count, datatype, _, tag, comm], large, .. }, found)) = found
            else {
                code = code.max(self.real_call("MPI_Start", &[cells + k * size]));
                continue;
            };
            let (source, sent) = found;
            let tag = if tag as i32 == self.abi.any_tag || sent == NEVER { sent as usize } else { tag };
            let name = if large { "MPI_Irecv_c" } else { "MPI_Irecv" };
            let mut cell = Box::new(0u64);
            let place = std::ptr::from_mut(&mut *cell) as usize;
            let words = [buffer, count, datatype, source as usize, tag, comm, place];
            code = code.max(self.real_call(name, &words));
            self.known().wild.active.insert(id, cell);
        }
        code
    }

    /// A call has made a request, and a tracer is about to look at it.
    pub(crate) fn tell_apart(&self, call: &Call, w: &[usize]) {
        let makes = |p: &refrain_model::Param| {
            p.kind == Kind::Handle(Class::Request) && p.effect == Effect::Create && p.len.is_empty()
        };
        let Some(at) = call.function.params.iter().position(makes) else { return };
        let Value::Object(_, id) = call.args[at] else { return };
        let size = self.abi.handle_size(refrain_mpi::Class::Request);
        // SAFETY: a cell of ours with the handle.
        let handle = unsafe { words::read(w[at] as *const u8, 0, size) };
        let mut known = self.known();
        let alike = known.wild.live.entry(handle).or_default();
        alike.insert(id);
        let alone = alike.len() == 1;
        known.wild.handles.insert(id, handle);
        if !alone {
            known.wild.hidden.insert(id, Box::new(handle));
            // No library gives out such a one.
            let ours =
                if size == 4 { 0x7e00_0000 | u64::from(id) } else { 0x7e00_0000_0000_0000 | u64::from(id) };
            // SAFETY: as above.
            unsafe { words::write(w[at] as *mut u8, 0, size, ours) };
        }
    }

    /// The words of a call that names requests which are others to MPI; `None` where it names none.
    pub(crate) fn instead_of_wild(&self, call: &Call, w: &[usize]) -> Option<Instead> {
        let mut known = self.known();
        if known.wild.active.is_empty() && known.wild.hidden.is_empty() {
            return None;
        }
        let given = |p: &refrain_model::Param| {
            p.kind == Kind::Handle(Class::Request) && p.dir != Dir::Out && p.effect != Effect::Start
        };
        let at = call.function.params.iter().position(given)?;
        let ids = ids(&call.args[at]);
        if !ids.iter().flatten().any(|id| known.wild.cell(*id).is_some()) {
            return None;
        }
        let mut words = w.to_vec();
        let p = &call.function.params[at];
        let several = !p.len.is_empty();
        let size = self.abi.handle_size(refrain_mpi::Class::Request);
        let mut handles = Vec::new();
        if several {
            handles = vec![0u64; (ids.len() * size).div_ceil(8).max(1)];
            let place: *mut u8 = handles.as_mut_ptr().cast();
            for (k, id) in ids.iter().enumerate() {
                let plain = id.and_then(|id| known.wild.cell(id)).map(|cell| **cell);
                // SAFETY: the call's list has as many handles.
                let handle = plain.unwrap_or_else(|| unsafe { words::read(w[at] as *const u8, k, size) });
                // SAFETY: there is room for as many.
                unsafe { words::write(place, k, size, handle) };
            }
            words[at] = place as usize;
        } else if let Some(cell) = ids[0].and_then(|id| known.wild.cell(id)) {
            words[at] =
                if p.dir == Dir::In { **cell as usize } else { std::ptr::from_mut(&mut **cell) as usize };
        }
        Some(Instead { words, at, ids, handles, several, by_value: p.dir == Dir::In && !several })
    }

    /// The call was made: what is complete is persistent again.
    pub(crate) fn after_instead(&self, instead: &Instead, w: &[usize]) {
        let size = self.abi.handle_size(refrain_mpi::Class::Request);
        let mut known = self.known();
        for (k, id) in instead.ids.iter().enumerate() {
            // SAFETY: the list has as many handles.
            let now =
                instead.several.then(|| unsafe { words::read(instead.handles.as_ptr().cast(), k, size) });
            let Some((id, cell)) = id.and_then(|id| Some((id, known.wild.cell(id)?))) else {
                if let Some(now) = now {
                    // SAFETY: the call's list has as many handles.
                    unsafe { words::write(w[instead.at] as *mut u8, k, size, now) };
                }
                continue;
            };
            if let Some(now) = now {
                **cell = now;
            }
            if **cell == self.abi.request_null && known.wild.active.remove(&id).is_none() && !instead.by_value
            {
                known.wild.hidden.remove(&id);
                // SAFETY: the call's list, or cell, has the handle.
                unsafe { words::write(w[instead.at] as *mut u8, k, size, self.abi.request_null) };
            }
        }
    }
}
