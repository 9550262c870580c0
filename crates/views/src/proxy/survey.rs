//! What has to be known of all calls of a rank before the first of them is written down.

use std::collections::{BTreeMap, HashMap, HashSet};

use refrain_model::{Address, Area, Call, Class, Kind, Value};

use crate::meaning::requests::{before, completed, made_request, matched, request, status_of};

/// Source and tag that a receive matched.
pub(super) type Match = (i64, i64);

/// Whether a call asks for a message from any source.
pub(super) fn is_wild(call: &Call) -> bool {
    let mut params = call.function.params.iter().zip(&call.args);
    params.any(|(p, value)| {
        matches!(p.kind, Kind::Peer(_)) && p.name == "source" && *value == Value::Name("MPI_ANY_SOURCE")
    })
}

/// What the call's own status says.
pub(super) fn own_match(call: &Call) -> Option<Match> {
    status_of(call).and_then(matched)
}

#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Of receives from any source that have a request, in their order.
    pub matches: Vec<Option<Match>>,
    /// By request: its place in the program's array. Those that are waited for together lie side by side, as far as can be.
    pub requests: HashMap<u32, usize>,
    /// Where segments began, as far as the program asked: by address, one of their places.
    pub addresses: BTreeMap<i64, Address>,
    /// Which open receive a request is.
    open: HashMap<u32, usize>,
    made: Vec<u32>,
    seen: HashSet<u32>,
}

/// Where there is no request.
pub(super) const NO_REQUEST: usize = 0;

impl Survey {
    pub fn add(&mut self, call: &Call) {
        let new = made_request(call);
        if let Some(id) = new {
            if self.seen.insert(id) {
                self.made.push(id);
            }
            if is_wild(call) && !call.function.persistent {
                self.open.insert(id, self.matches.len());
                self.matches.push(None);
            }
        }
        for (id, status) in completed(call) {
            if let Some(which) = self.open.remove(&id) {
                self.matches[which] = status.and_then(matched);
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
    }
}
