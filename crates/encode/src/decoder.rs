//! The reading side: a symbol's layout and its numbers become a call again.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use refrain_fold::FastMap;
use refrain_fold::bundle::Bundle;
use refrain_model::{
    Address, Area, Call, Class, Cond, Dir, Effect, Function, Kind, Param, Scope, Status, Value,
    constant_by_id, constant_of_bit,
};

use crate::comms::hash_members;
use crate::defined::Undefined;
use crate::error::Error;
use crate::facts::{STATUS_LANES, STATUS_MARK};
use crate::layout::{Layout, NewComm, NewGroup, Outcome, Slot};
use crate::objects::{Code, made_by};
use crate::shape::{Length, Shape};
use crate::sums::{self, Rule};
use crate::tables;
use crate::wire;

/// What is known of a communicator while a rank's calls are read in order.
#[derive(Debug, Clone)]
struct Known {
    name: Rc<str>,
    /// The reader's rank in it.
    rank: i64,
}

/// The communicators and windows that the threads of a rank made, by id: those of the last two threads that made one with
/// this id, the last one first. A thread asks for those of others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Made {
    comms: FastMap<u32, [Option<(u32, Known)>; 2]>,
    wins: FastMap<u32, [Option<(u32, i64)>; 2]>,
    /// Bytes of all names.
    names: usize,
    /// Not all calls that make some were read: what is here may be outdated.
    pub(crate) is_cut: bool,
}

fn note<T: Clone>(made: &mut FastMap<u32, [Option<(u32, T)>; 2]>, thread: u32, own: &FastMap<u32, T>) {
    for (id, one) in own {
        let [last, before] = made.entry(*id).or_default();
        *before = last.take();
        *last = Some((thread, one.clone()));
    }
}

fn of_others<T>(made: &FastMap<u32, [Option<(u32, T)>; 2]>, id: u32, thread: u32) -> Option<&T> {
    made.get(&id)?.iter().flatten().find(|(by, _)| *by != thread).map(|(_, one)| one)
}

impl Made {
    /// Nothing is known.
    pub(crate) fn cut() -> Made {
        Made { is_cut: true, ..Made::default() }
    }

    /// Communicators whose names begin with one that is not known.
    pub(crate) fn nameless(&self) -> usize {
        let named = |(_, known): &(u32, Known)| known.name.starts_with('?');
        self.comms.values().flatten().flatten().filter(|made| named(made)).count()
    }

    /// What a thread has made, after those of all threads before it.
    pub(crate) fn note(&mut self, decoder: &Decoder) {
        self.names = self.names.saturating_add(decoder.names);
        if self.names > MOST_NAMES {
            *self = Made::cut();
        }
        if self.is_cut {
            return;
        }
        note(&mut self.comms, decoder.thread, &decoder.comms);
        note(&mut self.wins, decoder.thread, &decoder.wins);
    }
}

/// Decodes the calls of one rank, in order: communicators get their names, relative ranks become absolute.
#[derive(Debug, Clone)]
pub struct Decoder {
    world_rank: i64,
    /// Whose calls they are.
    pub(crate) thread: u32,
    /// What the calls read so far have made.
    comms: FastMap<u32, Known>,
    wins: FastMap<u32, i64>,
    /// Bytes of the names of `comms`.
    names: usize,
    /// What other threads have made.
    others: Rc<Made>,
    /// Elements that arrays of one call may have, and those that arrays of the call at hand may still have.
    most: usize,
    room: Cell<usize>,
    /// Some calls of this thread that make communicators or windows were not read.
    pub(crate) is_cut: bool,
    /// One was asked for that such a call may have made.
    unknown: Cell<bool>,
    /// Values are only passed by: arrays stay empty, and nothing is learnt from calls.
    passing: bool,
}

/// The numbers of one call, asked for lane by lane in the order in which they were written.
type Next<'n> = &'n mut dyn FnMut(u16) -> i64;

impl Decoder {
    pub fn new(world_rank: u32) -> Decoder {
        Decoder {
            world_rank: i64::from(world_rank),
            thread: 0,
            comms: FastMap::default(),
            wins: FastMap::default(),
            names: 0,
            others: Rc::default(),
            most: most_elements(),
            room: Cell::new(0),
            is_cut: false,
            unknown: Cell::new(false),
            passing: false,
        }
    }

    /// For one who wants to know which numbers calls take, and not what they mean. It takes the same memory whatever they say.
    pub(crate) fn passing() -> Decoder {
        Decoder { passing: true, ..Decoder::new(0) }
    }

    /// Reads calls whose arrays have as many elements as is allowed for that recording.
    pub(crate) fn allowing(bundle: &Bundle) -> Decoder {
        Decoder { most: most_elements_of(bundle), ..Decoder::new(0) }
    }

    /// For one thread of a rank, given what others made.
    pub(crate) fn of_thread(bundle: &Bundle, world_rank: u32, thread: u32, others: Rc<Made>) -> Decoder {
        Decoder { world_rank: world_rank.into(), thread, others, ..Decoder::allowing(bundle) }
    }

    fn known(&self, id: u32) -> Option<&Known> {
        self.comms
            .get(&id)
            .or_else(|| self.elsewhere().and_then(|made| of_others(&made.comms, id, self.thread)))
    }

    pub(crate) fn name_of_comm(&self, id: u32) -> Option<&str> {
        self.known(id).map(|known| &*known.name)
    }

    fn window(&self, id: u32) -> Option<i64> {
        let of_others = || self.elsewhere().and_then(|made| of_others(&made.wins, id, self.thread));
        self.wins.get(&id).or_else(of_others).copied()
    }

    /// What others made, if that is known.
    fn elsewhere(&self) -> Option<&Made> {
        let is_cut = self.is_cut || self.others.is_cut;
        self.unknown.set(self.unknown.get() || is_cut);
        (!is_cut).then_some(&*self.others)
    }

    /// Whether what this symbol says of later calls has to be known: who is in a communicator or a window.
    pub(crate) fn learns_from(layout: &Layout) -> bool {
        let window =
            |p: &Param| p.kind == Kind::Handle(Class::Win) && p.effect == Effect::Create && p.dir == Dir::Out;
        layout.slots.iter().any(|slot| matches!(slot, Slot::NewComm(_)))
            || layout.function.params.iter().any(window)
    }

    pub fn call(&mut self, layout: &Layout, next: Next<'_>) -> Result<Call, Error> {
        self.call_with(layout, next, &mut Vec::new())
    }

    /// The same, with the values of a symbol that has them, by lane.
    pub(crate) fn call_with(
        &mut self,
        layout: &Layout,
        next: Next<'_>,
        inline: &mut Vec<(u16, i64)>,
    ) -> Result<Call, Error> {
        match &layout.inline {
            None => self.values(layout, next),
            Some(values) => {
                let mut values = values.iter();
                let mut missing = false;
                let call = self.values(layout, &mut |lane| {
                    let value = values.next().copied().unwrap_or_else(|| {
                        missing = true;
                        0
                    });
                    inline.push((lane, value));
                    value
                })?;
                if missing || values.next().is_some() {
                    return Err(Error::BadSymbol { function: layout.function.name, at: 0 });
                }
                Ok(call)
            }
        }
    }

    fn values(&mut self, layout: &Layout, next: Next<'_>) -> Result<Call, Error> {
        let f = layout.function;
        let mut args: Vec<Value> = Vec::with_capacity(f.params.len());
        let mut facts = Vec::new();
        self.room.set(if self.passing { usize::MAX } else { self.most });
        for i in 0..f.params.len() {
            let written = match layout.shape.steps[i].dynamic {
                Some(Cond::Flag(j)) => args[usize::from(j)] == Value::Bool(true),
                Some(Cond::Defined(j)) => args[usize::from(j)] != Value::Name("MPI_UNDEFINED"),
                _ => true,
            };
            let in_lanes = !matches!(layout.slots[i], Slot::Absent | Slot::Fixed(_));
            let mut value = if in_lanes && !written {
                Value::Unset
            } else {
                self.slot(layout, i, &args, &mut facts, next)?
            };
            if layout.ignored && f.params[i].kind == Kind::Status {
                let one = f.params[i].len.is_empty();
                let name = Value::Name(if one { "MPI_STATUS_IGNORE" } else { "MPI_STATUSES_IGNORE" });
                let matched = std::mem::replace(&mut value, name);
                if written {
                    facts.push(("matched", matched));
                }
            }
            args.push(value);
        }
        let result = match layout.result {
            Some(lane) => Value::Int(next(lane)),
            None if f.returns == refrain_model::Returns::Clock => Value::Unset,
            None => Value::Int(0),
        };
        self.after(layout, &args)?;
        if self.unknown.take() && !self.passing {
            return Err(Error::Unread { function: f.name, most: makers_of(self.most) });
        }
        Ok(Call { function: f, args, result, facts })
    }

    fn slot(
        &mut self,
        layout: &Layout,
        i: usize,
        args: &[Value],
        facts: &mut Vec<(&'static str, Value)>,
        next: Next<'_>,
    ) -> Result<Value, Error> {
        let f = layout.function;
        let p = &f.params[i];
        let base = match p.kind {
            Kind::Peer(j) => self.base_rank(layout, usize::from(j)),
            _ => 0,
        };
        let number = |v: i64| number(p.kind, v, base);
        Ok(match &layout.slots[i] {
            Slot::Absent => Value::Unset,
            Slot::Fixed(value) => fixed_comm(p.kind, value),
            Slot::Object(Class::Comm, id) => self.comm_value(*id),
            Slot::Object(class, id) => Value::Object(*class, *id),
            Slot::Number { lane } => number(next(*lane)),
            Slot::InOut { before, after } => {
                let before = number(next(*before));
                match after {
                    Some(lane) => Value::InOut(Box::new(before), Box::new(number(next(*lane)))),
                    None => before,
                }
            }
            Slot::List { len: Some(len), lane, sums: Some(counts) } => {
                let length = next(*len);
                if let Some(n) = sums::summed(length) {
                    return self.sums(f, i, n, &args[usize::from(*counts)], || next(*lane));
                }
                let n = self.checked_length(f, i, length)?;
                Value::List(self.many(n, |_| Ok(number(next(*lane))))?)
            }
            Slot::List { len, lane, .. } => {
                let n = self.length(f, i, *len, args, next)?;
                Value::List(self.many(n, |_| Ok(number(next(*lane))))?)
            }
            Slot::ListInOut { len, before, after } => {
                let n = self.length(f, i, *len, args, next)?;
                let before = Value::List(self.many(n, |_| Ok(number(next(*before))))?);
                match after {
                    Some(lane) => {
                        self.take_room(f, i, n)?;
                        let after = Value::List(self.many(n, |_| Ok(number(next(*lane))))?);
                        Value::InOut(Box::new(before), Box::new(after))
                    }
                    None => before,
                }
            }
            Slot::Code { lane } => {
                let value = self.code(f, i, next(*lane))?;
                if let Some(d) = layout.datatype_facts.iter().find(|d| d.code_lane == *lane) {
                    let lanes = [("size", d.size_lane), ("lb", d.lb_lane), ("extent", d.extent_lane)];
                    let made = matches!(value, Value::Object(..));
                    for (name, lane) in lanes {
                        let v = next(lane);
                        if made {
                            facts.push((name, Value::Int(v)));
                        }
                    }
                }
                value
            }
            Slot::Codes { len, lane } => {
                let n = self.length(f, i, *len, args, next)?;
                Value::List(self.many(n, |_| self.code(f, i, next(*lane)))?)
            }
            Slot::Status { lane } => {
                let base = self.status_base(layout);
                status(layout, i, *lane, base, next)?
            }
            Slot::Statuses { len, lane } => {
                let base = self.status_base(layout);
                let n = self.length(f, i, *len, args, next)?;
                Value::List(self.many(n, |_| status(layout, i, *lane, base, next))?)
            }
            Slot::Address { area: Area::Number, lane } => {
                Value::Address(Address { area: Area::Number, device: 0, segment: 0, offset: next(*lane) })
            }
            Slot::Address { area, lane } => {
                let mut small = |lane| {
                    let value = next(lane);
                    u32::try_from(value).map_err(|_| bad_value(f, i, value))
                };
                let on_gpu = *area == Area::Gpu;
                let device = if on_gpu { small(*lane)? } else { 0 };
                let lane = lane + u16::from(on_gpu);
                let segment = small(lane)?;
                Value::Address(Address { area: *area, device, segment, offset: next(lane + 1) })
            }
            Slot::Text { lane, places } => {
                let length = next(*lane);
                let n = u16::try_from(length).ok().filter(|n| n <= places);
                let n = n.ok_or_else(|| bad_value(f, i, length))?;
                let bytes = self.many(n.into(), |k| {
                    let byte = next(lane + 1 + k as u16);
                    u8::try_from(byte).map_err(|_| bad_value(f, i, byte))
                })?;
                Value::Text(String::from_utf8_lossy(&bytes).into_owned())
            }
            Slot::NewComm(new) => self.new_comm(layout, i, new, facts, next)?,
        })
    }

    /// Grows as numbers come: a length read from a damaged file allocates nothing by itself.
    fn many<T>(&self, n: usize, mut one: impl FnMut(usize) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        let mut out = Vec::new();
        for k in 0..n {
            let one = one(k)?;
            if !self.passing {
                out.push(one);
            }
        }
        Ok(out)
    }

    /// So many displacements, told by three numbers.
    fn sums(
        &self,
        f: &'static Function,
        i: usize,
        n: i64,
        counts: &Value,
        mut next: impl FnMut() -> i64,
    ) -> Result<Value, Error> {
        let rule = Rule { first: next(), gap: next(), unit: next().wrapping_add(1) };
        let n = self.checked_length(f, i, n)?;
        if self.passing {
            return Ok(Value::List(Vec::new()));
        }
        let counts = match counts {
            Value::List(counts) if counts.len() == n => counts,
            _ => return Err(bad_value(f, i, sums::length(n))),
        };
        let mut at = rule.first;
        let displacement = |count: &Value| {
            let Value::Int(count) = *count else { return Err(bad_value(f, i, sums::length(n))) };
            let here = at;
            at = rule.after(here, count);
            Ok(number(f.params[i].kind, here, 0))
        };
        Ok(Value::List(counts.iter().map(displacement).collect::<Result<_, Error>>()?))
    }

    /// Some elements more are read.
    fn take_room(&self, f: &'static Function, i: usize, n: usize) -> Result<(), Error> {
        let too_long = || Error::TooLong {
            function: f.name,
            parameter: f.params[i].name,
            elements: n as u64,
            most: self.most,
        };
        self.room.set(self.room.get().checked_sub(n).ok_or_else(too_long)?);
        Ok(())
    }

    /// A length that a lane holds.
    fn checked_length(&self, f: &'static Function, i: usize, n: i64) -> Result<usize, Error> {
        let length = usize::try_from(n).map_err(|_| bad_value(f, i, n))?;
        self.take_room(f, i, length)?;
        Ok(length)
    }

    fn length(
        &self,
        f: &'static Function,
        i: usize,
        lane: Option<u16>,
        args: &[Value],
        next: Next<'_>,
    ) -> Result<usize, Error> {
        if let Some(lane) = lane {
            return self.checked_length(f, i, next(lane));
        }
        // Negative counts and MPI_UNDEFINED are lengths of nothing.
        match Shape::of(f).steps[i].length {
            Length::Said(j) => match &args[usize::from(j)] {
                Value::Int(n) => self.checked_length(f, i, (*n).max(0)),
                _ => Ok(0),
            },
            _ => Ok(0),
        }
    }

    fn code(&self, f: &'static Function, i: usize, number: i64) -> Result<Value, Error> {
        let Kind::Handle(class) = f.params[i].kind else { return Err(bad_value(f, i, number)) };
        if class == Class::Request
            && let Some((thread, id)) = tables::owner(number)
        {
            return Ok(Value::Object(class, made_by(thread, id)));
        }
        let code =
            u64::try_from(number).ok().and_then(Code::from_number).ok_or_else(|| bad_value(f, i, number))?;
        match code {
            Code::Id(id) if class == Class::Request => Ok(Value::Object(class, made_by(self.thread, id))),
            Code::Id(id) if class == Class::Comm => Ok(self.comm_value(id)),
            Code::Id(id) => Ok(Value::Object(class, id)),
            Code::Constant(c) => {
                let constant = constant_by_id(c).ok_or(Error::UnknownConstant { id: u64::from(c) })?;
                Ok(fixed_comm(Kind::Handle(class), &Value::Name(constant.name)))
            }
        }
    }

    fn comm_value(&self, id: u32) -> Value {
        // Made before the recording began.
        self.known(id).map_or(Value::Object(Class::Comm, id), |c| Value::Comm(c.name.to_string()))
    }

    fn comm_name(&self, slot: &Slot) -> Option<Rc<str>> {
        match slot {
            Slot::Object(Class::Comm, id) => self.known(*id).map(|c| c.name.clone()),
            Slot::Fixed(Value::Name(name)) => predefined_comm(name).map(Rc::from),
            _ => None,
        }
    }

    pub(crate) fn base_rank(&self, layout: &Layout, j: usize) -> i64 {
        match &layout.slots[j] {
            Slot::Object(Class::Comm, id) => self.known(*id).map_or(0, |c| c.rank),
            Slot::Object(Class::Win, id) => self.window(*id).unwrap_or(0),
            Slot::Fixed(Value::Name("MPI_COMM_WORLD")) => self.world_rank,
            _ => 0,
        }
    }

    fn status_base(&self, layout: &Layout) -> i64 {
        layout.shape.comm.map_or(self.world_rank, |j| self.base_rank(layout, j))
    }

    fn new_comm(
        &mut self,
        layout: &Layout,
        i: usize,
        new: &NewComm,
        facts: &mut Vec<(&'static str, Value)>,
        next: Next<'_>,
    ) -> Result<Value, Error> {
        let f = layout.function;
        let number = next(new.code);
        let order = next(new.order);
        let rank = new.rank.map(&mut *next);
        let code =
            u64::try_from(number).ok().and_then(Code::from_number).ok_or_else(|| bad_value(f, i, number))?;
        let ranks = |lane: u16, next: Next<'_>| {
            let n = self.checked_length(f, i, next(lane))?;
            self.many(n, |_| Ok(next(lane + 1)))
        };
        let parent = match new.scope {
            Scope::Parent(j) | Scope::ParentLater(j, _) => {
                let j = usize::from(j);
                self.comm_name(&layout.slots[j]).map(|name| (name, self.base_rank(layout, j)))
            }
            _ => None,
        };
        let index_of = |world: &[i64], me: i64| world.iter().position(|&r| r == me).map(|p| p as i64);
        let to_value = |world: &[i64]| Value::List(world.iter().map(|&r| Value::Int(r)).collect());
        let members = |local: &[i64], remote: &[i64]| {
            // Ranks that do not fit are in damaged files only.
            let [local, remote] =
                [local, remote].map(|ranks| ranks.iter().map(|&r| r as i32).collect::<Vec<_>>());
            Some(hash_members(&local, &remote))
        };
        let mut named = None;
        let by_members = matches!(new.scope, Scope::Members | Scope::Inter);
        let rank = match new.group {
            NewGroup::None => 0,
            NewGroup::SameAsParent => {
                let (name, rank) = parent.clone().unwrap_or_else(|| (Rc::from("?"), 0));
                facts.push(("group", Value::Text(format!("as {name}"))));
                rank
            }
            NewGroup::List(lane) => {
                let world = ranks(lane, next)?;
                facts.push(("group", to_value(&world)));
                named = if by_members { members(&world, &[]) } else { None };
                rank.or_else(|| index_of(&world, self.world_rank)).unwrap_or(0)
            }
            NewGroup::Inter(local, remote) => {
                let world = ranks(local, next)?;
                facts.push(("group", to_value(&world)));
                let remote = ranks(remote, next)?;
                facts.push(("remote_group", to_value(&remote)));
                named = if by_members { members(&world, &remote) } else { None };
                rank.or_else(|| index_of(&world, self.world_rank)).unwrap_or(0)
            }
        };
        let id = match code {
            Code::Id(id) => id,
            Code::Constant(c) => {
                let constant = constant_by_id(c).ok_or(Error::UnknownConstant { id: u64::from(c) })?;
                return Ok(Value::Name(constant.name));
            }
        };
        let name: Rc<str> = match new.scope {
            Scope::Parent(_) | Scope::ParentLater(..) => {
                let parent = parent.map_or_else(|| Rc::from("?"), |(name, _)| name);
                format!("{parent}.{order}").into()
            }
            Scope::Members => format!("group-{:016x}.{order}", named.unwrap_or(0)).into(),
            Scope::Inter => format!("inter-{:016x}.{order}", named.unwrap_or(0)).into(),
            Scope::Process => format!("process.{order}").into(),
        };
        if !self.passing {
            let old = self.comms.get(&id).map_or(0, |known| known.name.len());
            let names = self.names - old + name.len();
            if name.len() > MOST_NAME || names > MOST_NAMES {
                return Err(Error::LongNames { function: f.name, most: MOST_NAME, all: MOST_NAMES });
            }
            remember(&mut self.comms, f, id, Known { name: name.clone(), rank })?;
            self.names = names;
        }
        Ok(Value::Comm(name.to_string()))
    }

    /// A new window counts ranks as its communicator does.
    fn after(&mut self, layout: &Layout, args: &[Value]) -> Result<(), Error> {
        if self.passing {
            return Ok(());
        }
        for (p, value) in layout.function.params.iter().zip(args) {
            if p.kind == Kind::Handle(Class::Win)
                && p.effect == Effect::Create
                && p.dir == Dir::Out
                && let Value::Object(Class::Win, id) = value
            {
                let rank = layout.shape.comm.map_or(0, |j| self.base_rank(layout, j));
                remember(&mut self.wins, layout.function, *id, rank)?;
            }
        }
        Ok(())
    }
}

fn bad_value(f: &'static Function, i: usize, value: i64) -> Error {
    Error::BadValue { function: f.name, parameter: f.params[i].name, value }
}

/// Elements that the arrays of one call may have together, unless somebody wants more. A file of a few bytes may ask for any
/// number; this bounds what a reader holds of it.
pub const MOST_ELEMENTS: usize = 1 << 20;

static ALLOWED: AtomicUsize = AtomicUsize::new(MOST_ELEMENTS);

/// From here on calls are read whose arrays have up to so many elements. It is for who runs the process to say, once.
pub fn allow_elements(most: usize) {
    ALLOWED.store(most, Ordering::Relaxed);
}

/// Up to so many.
pub fn most_elements() -> usize {
    ALLOWED.load(Ordering::Relaxed)
}

/// The same of one recording, if who opened it has said.
pub(crate) fn most_elements_of(bundle: &Bundle) -> usize {
    bundle.most_elements.unwrap_or_else(most_elements)
}

/// So many calls that make communicators or windows are read to know what other calls use, where arrays have so many elements: of all
/// threads of a rank together, or of one thread before a call that is gone to. More where longer arrays are allowed: it is memory too.
pub(crate) fn makers_of(most: usize) -> u64 {
    most.max(MOST_ELEMENTS) as u64
}

/// So many communicators, or windows, of a thread are remembered. No library can have as many at a time.
const MOST_OBJECTS: usize = 1 << 20;

/// Bytes that the name of a communicator takes, and those of all that a thread remembers. A name has that of the communicator it
/// was made from in it: it grows where a loop makes each from the one before.
const MOST_NAME: usize = 1 << 17;
const MOST_NAMES: usize = 1 << 26;

fn remember<T>(map: &mut FastMap<u32, T>, f: &'static Function, id: u32, one: T) -> Result<(), Error> {
    if map.len() >= MOST_OBJECTS && !map.contains_key(&id) {
        return Err(Error::TooManyObjects { function: f.name, most: MOST_OBJECTS });
    }
    map.insert(id, one);
    Ok(())
}

/// What a number of a lane says for a parameter of this kind; peers are as far from the caller as it says.
pub fn meaning(kind: Kind, value: i64) -> Value {
    number(kind, value, 0)
}

fn number(kind: Kind, value: i64, base: i64) -> Value {
    if let Some(id) = wire::as_named(value) {
        return constant_by_id(id).map_or(Value::Int(value), |c| Value::Name(c.name));
    }
    match kind {
        Kind::Peer(_) => Value::Int(value.wrapping_add(base)),
        Kind::Logical => Value::Bool(value != 0),
        // The one value all ABIs agree on.
        Kind::Undefinable | Kind::Rank if value == -32766 => Value::Name("MPI_UNDEFINED"),
        Kind::Mask(set) => {
            let named = value & 0xffff_ffff;
            let bits = (0..32).filter(|bit| named >> bit & 1 == 1);
            let names = bits.filter_map(|bit| constant_of_bit(set, bit)).map(|c| c.name).collect();
            if value >> 32 != 0 { Value::Int(value) } else { Value::Mask(names) }
        }
        _ => Value::Int(value),
    }
}

/// A status, as far as it is defined; `Unset` where nothing of it is.
fn status(layout: &Layout, i: usize, lane: u16, base: i64, next: Next<'_>) -> Result<Value, Error> {
    let mark = next(lane + STATUS_MARK);
    let (undefined, cancelled) =
        Undefined::from_mark(mark).ok_or_else(|| bad_value(layout.function, i, mark))?;
    let mut of_peer = |kind, lane, base| {
        if undefined.has_peer() { number(kind, next(lane), base) } else { Value::Unset }
    };
    let source = of_peer(Kind::Peer(0), lane, base).into();
    let tag = of_peer(Kind::Tag, lane + 1, 0).into();
    let bytes = undefined.has_bytes().then(|| next(lane + 2));
    let cancelled = undefined.has_cancelled().then_some(cancelled);
    let error = (layout.outcome == Outcome::FailedWithStatuses).then(|| next(lane + STATUS_LANES));
    if undefined.is_everything() && error.is_none() {
        return Ok(Value::Unset);
    }
    Ok(Value::Status(Status { source, tag, bytes, cancelled, error }))
}

fn predefined_comm(name: &str) -> Option<&'static str> {
    match name {
        "MPI_COMM_WORLD" => Some("world"),
        "MPI_COMM_SELF" => Some("self"),
        _ => None,
    }
}

fn fixed_comm(kind: Kind, value: &Value) -> Value {
    if kind == Kind::Handle(Class::Comm)
        && let Value::Name(name) = value
        && let Some(short) = predefined_comm(name)
    {
        return Value::Comm(short.to_string());
    }
    value.clone()
}
