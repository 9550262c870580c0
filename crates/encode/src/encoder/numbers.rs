//! Numbers, statuses and addresses: what goes into lanes.

use refrain_model::{Address, Area, Dir, Kind};

use super::{Call, Encoder};
use crate::defined::{Statuses, Undefined};
use crate::facts::STATUS_LANES;
use crate::host::Host;
use crate::layout::Outcome;
use crate::record::Record;
use crate::shape::{Form, Lanes, lanes_of_place};
use crate::sums::{self, Rule};
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
        let step = &call.shape.steps[i];
        if step.form == (Form::Numbers { changed: true }) {
            let lanes = record.claim(step, call.end);
            let before = call.before.numbers.get(call.number_at).copied().unwrap_or(0);
            call.number_at += 1;
            record.push(lanes.first, before);
            if let Some(after) = lanes.after {
                record.push(after, call.element(i, 0));
            }
            return;
        }
        if !live {
            record.claim(step, call.end);
            return;
        }
        match self.relative(p.kind, call.number(i), base) {
            Err(id) => record.named(id),
            Ok(value) => {
                let lanes = record.claim(step, call.end);
                record.push(lanes.first, value);
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
        let base = match p.kind {
            Kind::Peer(j) => self.base_rank(call, usize::from(j)),
            _ => 0,
        };
        let step = &call.shape.steps[i];
        let Lanes { length, first, after, .. } = record.claim(step, call.end);
        let (before, lane) = match step.form {
            Form::Numbers { changed: true } => (Some(first), after),
            _ => (None, Some(first)),
        };
        if !live {
            return;
        }
        let n = self.count(call, i);
        if let (Some(length), Some(counts)) = (length, step.sums)
            && let Some(rule) = self.running_sums(call, i, usize::from(counts), n)
        {
            record.push(length, sums::length(n));
            for number in [rule.first, rule.gap, rule.unit.wrapping_sub(1)] {
                record.push(first, number);
            }
            return;
        }
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

    /// What makes displacements of counts, if something does. The counts of a call that failed may not be there.
    fn running_sums<H: Host>(&self, call: &Call<'_, H>, i: usize, counts: usize, n: usize) -> Option<Rule> {
        let place = call.args[counts];
        if place == 0 || call.end == Outcome::Failed || self.facts.names_an_array(place) {
            return None;
        }
        Rule::of(n, |k| call.element(counts, k), |k| call.element(i, k))
    }

    pub(super) fn status<H: Host>(
        &mut self,
        call: &mut Call<'_, H>,
        i: usize,
        of: Statuses,
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
            if !self.ignored_status(call, i, of, live, record) {
                record.named(name);
            }
            return;
        }
        if pointer == 0 {
            record.tag(wire::NULL);
            return;
        }
        let base = call.shape.comm.map_or(self.facts.world_rank, |j| self.base_rank(call, j));
        self.status_base = base;
        let Lanes { length, first, .. } = record.claim(&call.shape.steps[i], call.end);
        let with_error = call.end == Outcome::FailedWithStatuses;
        if !live {
            return;
        }
        let n = self.count(call, i);
        if let Some(length) = length {
            record.push(length, n as i64);
        }
        record.note_status();
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

    /// Statuses that the program ignores, of receives from any source or with any tag: what they matched, if MPI was given
    /// statuses of ours. False: there is nothing to keep.
    fn ignored_status<H: Host>(
        &mut self,
        call: &mut Call<'_, H>,
        i: usize,
        of: Statuses,
        live: bool,
        record: &mut Record,
    ) -> bool {
        let pointer = call.before.statuses();
        let of_the_call = match of {
            Statuses::OfTheCall(undefined) if self.asks_for_any(call) => Some(undefined.wild()),
            _ => None,
        };
        let wild = of_the_call.is_some() || self.scratch.undefined.iter().any(|of| of.is_wild());
        if pointer == 0 || call.end == Outcome::Failed || !wild {
            return false;
        }
        // A call that failed tells which operations did.
        let with_error = call.end == Outcome::FailedWithStatuses;
        let base = call.shape.comm.map_or(self.facts.world_rank, |j| self.base_rank(call, j));
        self.status_base = base;
        let Lanes { length, first, .. } = record.claim_ignored(&call.shape.steps[i], call.end);
        if !live {
            return true;
        }
        let n = self.count(call, i);
        if let Some(length) = length {
            record.push(length, n as i64);
        }
        record.note_status();
        for k in 0..n {
            let mut raw = call.host.status_at(pointer, k);
            let index = |j: u8, k| call.element(usize::from(j), k);
            let mut undefined =
                of_the_call.unwrap_or_else(|| of.kth(k, &self.scratch.undefined, index)).of_ignored();
            if with_error && raw.error != 0 {
                undefined = Undefined::EVERYTHING;
            }
            raw.cancelled &= of_the_call.is_none();
            self.facts.push_status(&raw, base, undefined, first, &mut record.values);
            if with_error {
                record.push(first + STATUS_LANES, i64::from(raw.error));
            }
        }
        true
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
    let lane = record.reserve(lanes_of_place(address.area));
    // In a lane, not in the symbol: ranks that share a node differ in it and in nothing else.
    let device = (address.area == Area::Gpu).then_some(address.device);
    let segment = (address.area != Area::Number).then_some(address.segment);
    let numbers = device.into_iter().chain(segment).map(i64::from).chain([address.offset]);
    for (lane, number) in (lane..).zip(numbers) {
        record.push(lane, number);
    }
}
