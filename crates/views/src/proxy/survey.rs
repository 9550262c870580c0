//! What has to be known of all calls of a rank before the first of them is written down.

use std::collections::{BTreeMap, HashMap, HashSet};

use refrain_model::{Address, Area, Call, Class, Kind, Status, Value, constant};

use super::fit;
use crate::meaning::requests::{
    before, cancelled, completed, made_request, matched, request, started, status_of,
};

/// Source and tag that a receive matched.
pub(super) type Match = (i64, i64);

/// The tag of a message that nobody sends: a receive that was cancelled waits for it. All libraries allow it.
const NEVER: i64 = 32_749;

/// Whether a call asks for a message from any source.
pub(super) fn is_wild(call: &Call) -> bool {
    let mut params = call.function.params.iter().zip(&call.args);
    params.any(|(p, value)| {
        matches!(p.kind, Kind::Peer(_)) && p.name == "source" && *value == Value::Name("MPI_ANY_SOURCE")
    })
}

/// A source or a tag that is not chosen.
pub(super) fn any(name: &str) -> i64 {
    constant(name).map_or(0, |constant| fit::named(constant.id))
}

/// What the call's own status says.
pub(super) fn own_match(call: &Call) -> Option<Match> {
    status_of(call).and_then(matched)
}

/// What a receive with a request got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Got {
    /// The trace does not say, or it was never complete.
    #[default]
    Unknown,
    Message(Match),
    /// It was cancelled: whatever it asks for, it gets none.
    Cancelled,
    /// A persistent one, not the same each time.
    Several,
}

impl Got {
    /// Source and tag to ask for in its place.
    pub fn ask(self) -> Option<Match> {
        match self {
            Got::Message(found) => Some(found),
            Got::Cancelled => Some((any("MPI_ANY_SOURCE"), NEVER)),
            Got::Unknown | Got::Several => None,
        }
    }

    /// Of a request that is started again and again.
    fn and(self, next: Got) -> Got {
        match (self, next) {
            (Got::Unknown, one) | (one, Got::Unknown) => one,
            (one, other) if one == other => one,
            _ => Got::Several,
        }
    }
}

/// A receive that is under way.
#[derive(Debug, Clone, Copy)]
struct Open {
    which: usize,
    wild: bool,
    cancelled: bool,
}

#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Something was cancelled: all receives with a request are followed, not only those from any source.
    cancels: bool,
    /// What those got that are followed, in their order.
    pub got: Vec<Got>,
    /// By request: its place in the program's array. Those that are waited for together lie side by side, as far as can be.
    pub requests: HashMap<u32, usize>,
    /// Where segments began, as far as the program asked: by address, one of their places.
    pub addresses: BTreeMap<i64, Address>,
    /// Which receive a request is.
    open: HashMap<u32, Open>,
    /// Persistent ones: which they are, and whether from any source.
    persistent: HashMap<u32, (usize, bool)>,
    made: Vec<u32>,
    seen: HashSet<u32>,
}

/// Where there is no request.
pub(super) const NO_REQUEST: usize = 0;

impl Open {
    /// What it got, by its status. One that was to be cancelled and of which nothing is told got nothing.
    fn end(self, status: Option<&Value>) -> Got {
        let told = match status {
            Some(Value::Status(Status { cancelled, .. })) => *cancelled,
            _ => None,
        };
        if told.unwrap_or(self.cancelled) {
            return Got::Cancelled;
        }
        match status.and_then(matched) {
            Some(found) if self.wild => Got::Message(found),
            Some(_) => Got::Message((any("MPI_ANY_SOURCE"), any("MPI_ANY_TAG"))),
            None => Got::Unknown,
        }
    }
}

impl Survey {
    pub fn new(cancels: bool) -> Survey {
        Survey { cancels, ..Survey::default() }
    }

    /// Whether what a call with a request gets is one of [`Survey::got`].
    pub fn follows(&self, call: &Call) -> bool {
        const RECEIVES: [&str; 4] = ["MPI_Irecv", "MPI_Irecv_c", "MPI_Recv_init", "MPI_Recv_init_c"];
        is_wild(call) || self.cancels && RECEIVES.contains(&call.function.name)
    }

    pub fn add(&mut self, call: &Call) {
        let new = made_request(call);
        if let Some(id) = new {
            if self.seen.insert(id) {
                self.made.push(id);
            }
            self.persistent.remove(&id);
            if self.follows(call) {
                let (which, wild) = (self.got.len(), is_wild(call));
                self.got.push(Got::Unknown);
                if call.function.persistent {
                    self.persistent.insert(id, (which, wild));
                } else {
                    self.begins(id, which, wild);
                }
            }
        }
        for id in started(call) {
            if let Some((which, wild)) = self.persistent.get(&id).copied() {
                self.begins(id, which, wild);
            }
        }
        if let Some(open) = cancelled(call).and_then(|id| self.open.get_mut(&id)) {
            open.cancelled = true;
        }
        for (id, status) in completed(call) {
            if let Some(open) = self.open.remove(&id) {
                self.ends(open, status);
            }
        }
        if let ("MPI_Get_address" | "MPI_Address", [Value::Address(place), Value::Int(then)]) =
            (call.function.name, &call.args[..])
            && place.area != Area::Number
        {
            self.addresses.insert(then.wrapping_sub(place.offset), *place);
        }
        for (p, value) in call.function.params.iter().zip(&call.args) {
            if let (Kind::Handle(Class::Request), Value::List(list)) = (p.kind, before(value)) {
                list.iter().filter_map(request).for_each(|id| self.place(id));
            }
        }
    }

    fn begins(&mut self, id: u32, which: usize, wild: bool) {
        if let Some(lost) = self.open.insert(id, Open { which, wild, cancelled: false }) {
            self.ends(lost, None);
        }
    }

    fn ends(&mut self, open: Open, status: Option<&Value>) {
        self.got[open.which] = self.got[open.which].and(open.end(status));
    }

    /// The place that a number is the address of.
    pub fn place_of(&self, number: i64) -> Option<Address> {
        let (origin, place) = self.addresses.range(..=number).next_back()?;
        Some(Address { offset: number.wrapping_sub(*origin), ..*place })
    }

    fn place(&mut self, id: u32) {
        let next = self.requests.len() + 1;
        self.requests.entry(id).or_insert(next);
    }

    /// After the last call.
    pub fn finish(&mut self) {
        for id in std::mem::take(&mut self.made) {
            self.place(id);
        }
        for open in std::mem::take(&mut self.open).into_values() {
            self.ends(open, None);
        }
    }
}
