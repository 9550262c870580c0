//! Numbers, statuses and addresses: what goes into lanes.

use refrain_model::{Address, Area, Dir, Kind};

use super::{Call, Encoder, End, length_lane};
use crate::defined::{Statuses, Undefined};
use crate::facts::STATUS_LANES;
use crate::host::Host;
use crate::params::{comm_param, untagged};
use crate::record::Record;
use crate::wire;

impl Encoder {
    /// A number as it stands in a lane, or the constant it is.
    pub(super) fn relative(&self, kind: Kind, value: i64, base: i64) -> Result<i64, u16> {
        match kind {
            Kind::Root(_) | Kind::Rank if value == self.facts.numbers.proc_null => {
                Err(self.facts.names.proc_null)
            }
            Kind::Root(_) if value == self.facts.numbers.root => Err(self.facts.names.root),
            Kind::Peer(_) => self.facts.peer(value, base),
            Kind::Tag => self.facts.tag(value),
            Kind::Enum(set) => self.enums.get(&(set, value)).map_or(Ok(value), |&id| Err(id)),
            Kind::Mask(set) => Ok(self.mask(set, value)),
            _ => Ok(value),
        }
    }

    /// Bits by our numbering; those without a name above it.
    pub(super) fn mask(&self, set: &str, value: i64) -> i64 {
        let mut rest = value;
        let mut out = 0i64;
        for &(bits, position) in self.masks.get(set).map_or(&[][..], Vec::as_slice) {
            if bits != 0 && value & bits == bits {
                out |= 1 << position;
                rest &= !bits;
            }
        }
        out | rest << 32
    }

    pub(super) fn scalar<H: Host>(
        &mut self,
        call: &mut Call<'_, H>,
        i: usize,
        live: bool,
        record: &mut Record,
    ) {
        let p = &call.f.params[i];
        if p.dir != Dir::In && call.args[i] == 0 {
            record.tag(wire::NULL);
            return;
        }
        let base = match p.kind {
            Kind::Peer(j) => self.base_rank(call, usize::from(j)),
            _ => 0,
        };
        if p.dir == Dir::InOut && p.kind != Kind::ArgCount {
            record.tag(wire::LANE);
            let before = call.before.numbers.get(call.number_at).copied().unwrap_or(0);
            call.number_at += 1;
            record.lane(before);
            if call.end != End::Failed {
                record.lane(call.element(i, 0));
            }
            return;
        }
        if untagged(p) {
            record.lane(call.number(i));
            return;
        }
        if !live {
            record.tag(wire::LANE);
            record.reserve(1);
            return;
        }
        match self.relative(p.kind, call.number(i), base) {
            Err(id) => record.named(id),
            Ok(value) => {
                record.tag(wire::LANE);
                record.lane(value);
            }
        }
    }

    pub(super) fn array<H: Host>(
        &mut self,
        call: &mut Call<'_, H>,
        i: usize,
        live: bool,
        record: &mut Record,
    ) {
        let p = &call.f.params[i];
        let pointer = call.args[i];
        if let Some(&(_, id)) =
            self.facts.arrays.iter().find(|&&(address, _)| address == pointer && address != 0)
        {
            record.named(id);
            return;
        }
        if pointer == 0 {
            record.tag(wire::NULL);
            return;
        }
        record.tag(wire::LANE);
        let base = match p.kind {
            Kind::Peer(j) => self.base_rank(call, usize::from(j)),
            _ => 0,
        };
        let length = length_lane(call.f, i, record);
        let before = if p.dir == Dir::InOut { Some(record.reserve(1)) } else { None };
        let lane =
            if p.dir == Dir::InOut && call.end == End::Failed { None } else { Some(record.reserve(1)) };
        if !live {
            return;
        }
        let n = self.count(call, i);
        if let Some(length) = length {
            record.push(length, n as i64);
        }
        let value = |e: &Self, v| e.relative(p.kind, v, base).unwrap_or_else(wire::named_value);
        if let Some(before) = before {
            for _ in 0..n {
                let v = call.before.numbers.get(call.number_at).copied().unwrap_or(0);
                call.number_at += 1;
                record.push(before, value(self, v));
            }
        }
        if let Some(lane) = lane {
            for k in 0..n {
                record.push(lane, value(self, call.element(i, k)));
            }
        }
    }

    pub(super) fn status<H: Host>(
        &mut self,
        call: &mut Call<'_, H>,
        i: usize,
        live: bool,
        record: &mut Record,
    ) {
        let p = &call.f.params[i];
        let pointer = call.args[i];
        let (ignore, name) = if p.len.is_empty() {
            (self.facts.numbers.status_ignore, self.facts.names.status_ignore)
        } else {
            (self.facts.numbers.statuses_ignore, self.facts.names.statuses_ignore)
        };
        if pointer == ignore {
            record.named(name);
            return;
        }
        if pointer == 0 {
            record.tag(wire::NULL);
            return;
        }
        record.tag(wire::STATUS);
        let base = comm_param(call.f).map_or(self.facts.world_rank, |j| self.base_rank(call, j));
        self.status_base = base;
        let length = length_lane(call.f, i, record);
        // The error field is written only where the call says so; elsewhere it holds what was there before.
        let with_error = call.end == End::FailedWithStatuses;
        let first = record.reserve(STATUS_LANES + u16::from(with_error));
        if !live {
            return;
        }
        let n = self.count(call, i);
        if let Some(length) = length {
            record.push(length, n as i64);
        }
        let of = Statuses::of(call.f, i);
        if p.dir == Dir::InOut {
            call.tables.note_set(call.f);
        }
        for k in 0..n {
            let mut raw = call.host.status_at(pointer, k);
            let index = |j: u8, k| match call.args[usize::from(j)] {
                pointer if pointer == 0 || self.facts.names_an_array(pointer) => -1,
                _ => call.element(usize::from(j), k),
            };
            let mut undefined = of.kth(k, &self.scratch.undefined, index);
            if undefined.goes_by_what_was_set() {
                undefined = call.tables.was_set();
            }
            // Of what has failed, or is not complete, nothing but the error is defined.
            if with_error && raw.error != 0 {
                undefined = Undefined::EVERYTHING;
            }
            raw.cancelled &= !matches!(of, Statuses::OfTheCall(_));
            self.facts.push_status(&raw, base, undefined, first, &mut record.values);
            if with_error {
                record.push(first + STATUS_LANES, i64::from(raw.error));
            }
        }
    }

    pub(super) fn buffer<H: Host>(&mut self, call: &mut Call<'_, H>, pointer: usize, record: &mut Record) {
        self.place(pointer, record, || call.host.locate(pointer));
    }

    /// A pointer that MPI does not look into. It may be null or any number without meaning `MPI_BOTTOM` or
    /// `MPI_IN_PLACE`.
    pub(super) fn value<H: Host>(&mut self, call: &mut Call<'_, H>, pointer: usize, record: &mut Record) {
        if pointer == 0 {
            record.tag(wire::NULL);
            return;
        }
        // A number, where no memory is: Fortran has no other values.
        let number = Address { area: Area::Number, device: 0, segment: 0, offset: pointer as i64 };
        let readable = call.host.readable(pointer, 1);
        located(if readable { call.host.locate(pointer) } else { Some(number) }, record);
    }

    /// An address by name, or else where it is found to lie.
    pub(super) fn place(
        &self,
        pointer: usize,
        record: &mut Record,
        locate: impl FnOnce() -> Option<Address>,
    ) {
        if let Some(&(_, id)) = self.buffers.iter().find(|&&(address, _)| address == pointer) {
            record.named(id);
            return;
        }
        located(locate(), record);
    }
}

fn located(address: Option<Address>, record: &mut Record) {
    let Some(address) = address else {
        record.tag(wire::UNKEPT);
        return;
    };
    record.tag(wire::AREA + address.area as u8);
    // In a lane, not in the symbol: ranks that share a node differ in it and in nothing else.
    if address.area == Area::Gpu {
        record.lane(i64::from(address.device));
    }
    if address.area != Area::Number {
        record.lane(i64::from(address.segment));
    }
    record.lane(address.offset);
}
