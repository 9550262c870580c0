//! A call as C writes it: what is the same each time, and the numbers that are not.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::iter;

use refrain_model::{
    Address, Area, CType, Call, Class, Dir, Effect, Function, Kind, Param, Status, Value, constant,
};

use super::fit;
use super::prelude;
use super::registry::{Key, Registry, quoted, spelled};
use super::survey::{self, Got, Survey};
use crate::meaning::addresses::{Addresses, Apart};
use crate::meaning::requests::{self, after, before};

/// What stands in a place that is not the same each time.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Hole {
    One(i64),
    Many(Vec<i64>),
}

/// How an argument is written. Each says how many holes it takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Arg {
    /// As it is.
    Text(String),
    /// No argument of C.
    Nothing,
    /// One number.
    Number,
    /// A number behind a pointer, which the call changes.
    Cell(&'static str),
    /// A number as a pointer.
    Pointer,
    /// A place in memory: which segment, and where in it.
    Place,
    /// A handle: its slot.
    Handle(Class),
    /// Behind a pointer.
    HandleAt(Class),
    /// Behind a pointer, a copy: the call does away with it, and others may hold the same.
    HandleGone(Class),
    /// A place in memory, as a number.
    Address,
    /// An array of numbers some of which are: the segment of each (below nought if it is none) and its offset. The first
    /// is that from which the others are counted.
    Addresses,
    /// An array of that type.
    Numbers(&'static str),
    Handles(Class),
    /// Requests side by side: the slot of the first.
    Requests,
    /// The slot of each.
    RequestsApart,
}

impl Arg {
    pub fn holes(&self) -> usize {
        match self {
            Arg::Text(_) | Arg::Nothing => 0,
            Arg::Place | Arg::Address => 2,
            _ => 1,
        }
    }
}

/// What is done beside the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Extra {
    /// A status to ask about: source, tag, bytes, cancelled.
    Status,
    /// Which request of several was complete.
    Chosen,
    /// Which were.
    ChosenMany,
    /// Who sent what a receive from any source got: source and tag.
    From,
    /// MPI has allocated a segment: which, and where in it.
    Pointed,
    /// MPI has freed a segment: which.
    Freed,
    /// Handles of that class were written by argument so-and-so: their slots.
    Stored(Class, usize),
}

impl Extra {
    pub fn holes(self) -> usize {
        match self {
            Extra::Status => 4,
            Extra::From | Extra::Pointed => 2,
            Extra::Chosen | Extra::ChosenMany | Extra::Freed | Extra::Stored(..) => 1,
        }
    }
}

/// Calls that are written the same way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    /// What symbols that look alike have in common: see [`super::gather`].
    pub face: u32,
    pub function: u16,
    pub args: Vec<Arg>,
    pub extras: Vec<Extra>,
    /// The library had a choice: made so that it has none.
    pub forced: bool,
}

/// Numbers of type `MPI_Aint` from here on are addresses.
const LOWEST_ADDRESS: i64 = 1 << 40;

/// One rank's calls, one after the other.
pub(super) struct Writer<'r> {
    pub(super) registry: &'r mut Registry,
    pub(super) survey: Survey,
    next_match: usize,
    /// Slots with a request in them.
    pub(super) busy: HashSet<usize>,
    persistent: HashSet<u32>,
    pub(super) known: HashSet<(Class, Key)>,
    extents: HashMap<u32, u64>,
    addresses: Addresses,
    /// Groups by the hash of their members: which of this rank's they are.
    pub(super) groups: HashMap<String, usize>,
    /// The communicators that there are, and the slots of those that are gone.
    pub(super) comms: HashMap<Key, i64>,
    pub(super) vacant: BTreeSet<i64>,
    world: u64,
}

/// A call, written down.
pub(super) struct Made {
    pub shape: Shape,
    pub holes: Vec<Hole>,
}

impl<'r> Writer<'r> {
    pub fn new(registry: &'r mut Registry, survey: Survey, world: u32) -> Writer<'r> {
        registry.at_least(Class::Request, survey.requests.len() + 1);
        Writer {
            registry,
            survey,
            next_match: 0,
            busy: HashSet::new(),
            persistent: HashSet::new(),
            known: HashSet::new(),
            extents: HashMap::new(),
            addresses: Addresses::default(),
            groups: HashMap::new(),
            comms: HashMap::new(),
            vacant: BTreeSet::new(),
            world: u64::from(world),
        }
    }

    /// An error is why it cannot be made.
    pub fn call(&mut self, face: u32, call: &Call) -> Result<Made, String> {
        let f = call.function;
        let mut made = Made {
            shape: Shape {
                face,
                function: f.id,
                args: Vec::with_capacity(f.params.len()),
                extras: Vec::new(),
                forced: false,
            },
            holes: Vec::new(),
        };
        let mut extra = Vec::new();
        for (i, (p, value)) in f.params.iter().zip(&call.args).enumerate() {
            let arg = self.arg(call, i, p, value, &mut made.holes, &mut (&mut made.shape.extras, &mut extra));
            made.shape.args.push(arg.map_err(|why| format!("{}: {why}", p.name))?);
        }
        self.force(call, &mut made.shape, &mut extra)?;
        made.holes.append(&mut extra);
        self.learn(call);
        Ok(made)
    }

    /// What the library chose then. An error is why that cannot be chosen again.
    fn force(&mut self, call: &Call, shape: &mut Shape, holes: &mut Vec<Hole>) -> Result<(), String> {
        let name = call.function.name;
        let receives = survey::is_wild(call) || self.survey.follows(call);
        let got = match requests::made_request(call) {
            Some(_) if receives => {
                self.next_match += 1;
                self.survey.got.get(self.next_match - 1).copied().unwrap_or_default()
            }
            None if survey::is_wild(call) => survey::own_match(call).map_or(Got::Unknown, Got::Message),
            _ => Got::Unknown,
        };
        if got == Got::Several {
            return Err("a persistent receive that gets something else each time it is started".to_owned());
        }
        let receives = survey::is_wild(call) || got == Got::Cancelled;
        if !receives && !prelude::ALWAYS.contains(&name) {
            return Ok(());
        }
        shape.forced = true;
        self.registry.forced.insert(name);
        let number = |value: &Value| code(value).unwrap_or(0);
        match name {
            "MPI_Waitany" | "MPI_Testany" => {
                shape.extras.push(Extra::Chosen);
                holes.push(Hole::One(number(&call.args[2])));
            }
            // It does not count as a poll: those that found nothing are made too.
            "MPI_Parrived" => {
                shape.extras.push(Extra::Chosen);
                holes.push(Hole::One(number(&call.args[2])));
            }
            "MPI_Waitsome" | "MPI_Testsome" => {
                shape.extras.push(Extra::ChosenMany);
                let list = match &call.args[3] {
                    Value::List(list) => list.iter().map(number).collect(),
                    _ => Vec::new(),
                };
                self.registry.longest = self.registry.longest.max(list.len());
                holes.push(Hole::Many(list));
            }
            _ => {}
        }
        if receives {
            shape.extras.push(Extra::From);
            let (source, tag) = got.ask().unwrap_or_else(|| {
                self.registry.unmatched += 1;
                (survey::any("MPI_ANY_SOURCE"), survey::any("MPI_ANY_TAG"))
            });
            // Of a message to a certain tag nothing else is believed: MPICH leaves the status of MPI_Isendrecv as it was.
            let asked = ["tag", "recvtag"].iter().find_map(|name| call.function.index_of(name));
            let any_tag = asked.is_some_and(|at| call.args[at] == Value::Name("MPI_ANY_TAG"));
            let tag = if any_tag || got == Got::Cancelled { tag } else { survey::any("MPI_ANY_TAG") };
            holes.extend([Hole::One(source), Hole::One(tag)]);
        }
        Ok(())
    }

    fn arg(
        &mut self,
        call: &Call,
        i: usize,
        p: &'static Param,
        value: &Value,
        holes: &mut Vec<Hole>,
        (extras, extra): &mut (&mut Vec<Extra>, &mut Vec<Hole>),
    ) -> Result<Arg, String> {
        let given = before(value);
        let text = |text: &str| Ok(Arg::Text(text.to_owned()));
        let is_list = !p.len.is_empty();
        let one_number = p.kind.is_number() && !is_list;
        let is_handle = matches!(p.kind, Kind::Handle(_));
        let written = matches!(p.kind, Kind::OutPointer | Kind::OutAttribute);
        if let Value::Name(name) = given
            && !written
            && !one_number
            && (!is_handle || is_list)
        {
            // It is recorded as what it is for functions without large counts: both are NULL.
            let is_large = p.ctype == CType::Function("MPI_Datarep_conversion_function_c");
            return match *name {
                "MPI_CONVERSION_FN_NULL" if is_large => text("MPI_CONVERSION_FN_NULL_C"),
                name => text(name),
            };
        }
        let out = |ctype: CType| text(&format!("OUT({}, {i})", spelled(ctype)));
        match p.kind {
            Kind::Buffer | Kind::Value => match given {
                Value::Address(Address { area: Area::Number, offset, .. }) => {
                    holes.push(Hole::One(*offset));
                    Ok(Arg::Pointer)
                }
                Value::Int(number) => {
                    holes.push(Hole::One(*number));
                    Ok(Arg::Pointer)
                }
                Value::Address(address) => {
                    let bytes = if p.kind == Kind::Buffer { self.bytes(call) } else { 8 };
                    let segment = self.registry.segment(*address, bytes);
                    holes.extend([Hole::One(segment as i64), Hole::One(address.offset)]);
                    if p.effect == Effect::Free {
                        extras.push(Extra::Freed);
                        extra.push(Hole::One(segment as i64));
                    }
                    Ok(Arg::Place)
                }
                _ if p.kind == Kind::Buffer => {
                    // Somewhere: the trace does not tell, or it does not matter.
                    let segment = i as u32;
                    let address = Address { area: Area::Other, device: u32::MAX, segment, offset: 0 };
                    let bytes = self.bytes(call);
                    let at = self.registry.segment(address, bytes);
                    self.registry.spare.insert(i, at);
                    holes.extend([Hole::One(fit::UNSET), Hole::One(fit::UNSET)]);
                    Ok(Arg::Place)
                }
                _ => text("NULL"),
            },
            Kind::Function => match (p.ctype, given) {
                (CType::Function(ctype), _) if prelude::stand_in(ctype).is_none() => {
                    Err(format!("the program's own function, of type {ctype}"))
                }
                (CType::Function(ctype), Value::Text(name)) => text(&self.registry.function(ctype, name)),
                (CType::Function(ctype), _) => text(&self.registry.function(ctype, "")),
                _ => Err("a function of an unknown type".to_owned()),
            },
            Kind::String if p.dir == Dir::In => match given {
                Value::Text(string) => {
                    if p.name == "filename" && call.function.name.starts_with("MPI_File_") {
                        self.registry.files.insert(string.clone());
                    }
                    text(&quoted(string))
                }
                _ => text("NULL"),
            },
            Kind::String => out(CType::Char),
            Kind::ArgCount => match given {
                Value::Int(_) => text("&argc"),
                _ => text("NULL"),
            },
            Kind::ArgVector => match given {
                Value::List(list) => {
                    let string = |value: &Value| match value {
                        Value::Text(text) => text.clone(),
                        _ => String::new(),
                    };
                    self.registry.arguments.get_or_insert_with(|| list.iter().map(string).collect());
                    text("&argv")
                }
                _ => text("NULL"),
            },
            Kind::Strings | Kind::StringsOfStrings => Err("strings for other programs".to_owned()),
            Kind::Skip if p.ctype == CType::Varargs => Ok(Arg::Nothing),
            Kind::Skip => Err("something that is not recorded".to_owned()),
            Kind::OutPointer => {
                if let Value::Address(address) = after(value)
                    && address.area != Area::Number
                {
                    let segment = self.registry.segment(*address, 0);
                    extras.push(Extra::Pointed);
                    extra.extend([Hole::One(segment as i64), Hole::One(address.offset)]);
                }
                text("&pointer")
            }
            Kind::OutAttribute => out(CType::Void),
            Kind::Status => {
                if p.dir == Dir::In {
                    extras.push(Extra::Status);
                    self.registry.tells = true;
                    extra.extend(status_holes(given));
                }
                text(if is_list { "statuses" } else { "&status" })
            }
            Kind::Handle(class) if is_list => self.handles(i, p, class, value, holes, (extras, extra)),
            Kind::Handle(class) => self.handle(p, class, value, holes),
            _ if is_list => match (p.dir, given) {
                (Dir::Out, _) => out(p.ctype),
                (_, Value::List(list)) => {
                    let numbers: Option<Vec<i64>> = list.iter().map(code).collect();
                    let numbers = numbers.ok_or("an array of something that is no number")?;
                    self.registry.longest = self.registry.longest.max(numbers.len());
                    if p.name == "array_of_displacements"
                        && let Some(Apart { base, places }) = self.addresses.apart(call)
                    {
                        let blocks = self.blocks(call, places.len());
                        let mut pairs = Vec::new();
                        for (place, bytes) in iter::once((base, 0)).chain(places.into_iter().zip(blocks)) {
                            pairs.extend([self.registry.segment(place, bytes) as i64, place.offset]);
                        }
                        holes.push(Hole::Many(pairs));
                        return Ok(Arg::Addresses);
                    }
                    if numbers.iter().any(|number| is_address(p, *number)) {
                        let mut pairs = vec![-1, 0];
                        let blocks = match p.name {
                            "array_of_displacements" => self.blocks(call, numbers.len()),
                            _ => vec![0; numbers.len()],
                        };
                        for (number, bytes) in numbers.into_iter().zip(blocks) {
                            let pair = match is_address(p, number) {
                                true => self.address(number, bytes)?,
                                false => (-1, number),
                            };
                            pairs.extend([pair.0, pair.1]);
                        }
                        holes.push(Hole::Many(pairs));
                        return Ok(Arg::Addresses);
                    }
                    holes.push(Hole::Many(numbers));
                    Ok(Arg::Numbers(spelled(p.ctype)))
                }
                // It does not matter on this rank.
                (_, Value::Unset) => {
                    holes.push(Hole::Many(vec![fit::UNSET]));
                    Ok(Arg::Numbers(spelled(p.ctype)))
                }
                _ => text("NULL"),
            },
            _ => match (p.dir, given) {
                (Dir::Out, _) => out(p.ctype),
                (_, Value::Mask(names)) if names.len() != 1 => {
                    text(if names.is_empty() { "0".to_owned() } else { names.join(" | ") }.as_str())
                }
                (dir, given) => {
                    let number = code(given).ok_or("something that is no number")?;
                    if is_address(p, number) && dir == Dir::In {
                        let (segment, offset) = self.address(number, 0)?;
                        holes.extend([Hole::One(segment), Hole::One(offset)]);
                        return Ok(Arg::Address);
                    }
                    holes.push(Hole::One(number));
                    Ok(if dir == Dir::InOut { Arg::Cell(spelled(p.ctype)) } else { Arg::Number })
                }
            },
        }
    }

    /// The segment and the offset of what a number is the address of.
    fn address(&mut self, number: i64, bytes: u64) -> Result<(i64, i64), String> {
        // What is there may be told elsewhere.
        const ROOM: u64 = 1 << 16;
        let place =
            self.survey.place_of(number).ok_or("an address that the trace does not tell the place of")?;
        Ok((self.registry.segment(place, bytes.max(ROOM)) as i64, place.offset))
    }

    /// What the call has made and done away with.
    fn learn(&mut self, call: &Call) {
        let fact = |name: &str| {
            let found = call.facts.iter().find(|(fact, _)| *fact == name);
            match found {
                // One that is made of addresses begins at one.
                Some((_, Value::Int(number))) if *number < LOWEST_ADDRESS => number.unsigned_abs(),
                _ => 0,
            }
        };
        for (p, value) in call.function.params.iter().zip(&call.args) {
            if let (Kind::Handle(Class::Datatype), Dir::Out, Value::Object(_, id)) =
                (p.kind, p.dir, after(value))
            {
                // What lies in other allocations has its room there.
                let bytes = match self.addresses.spans(call) {
                    true => fact("size"),
                    false => fact("extent").saturating_add(fact("lb")).saturating_add(fact("size")),
                };
                self.extents.insert(*id, bytes.max(32));
            }
        }
        for (p, value) in call.function.params.iter().zip(&call.args) {
            if p.kind == Kind::Handle(Class::Comm)
                && p.effect == Effect::Free
                && let Some(key) = self.key(Class::Comm, before(value))
                && let Some(slot) = self.comms.remove(&key)
            {
                self.vacant.insert(slot);
            }
        }
        self.addresses.learn(call);
        let freed = call.function.name == "MPI_Request_free";
        for (id, _) in requests::completed(call) {
            if freed || !self.persistent.contains(&id) {
                self.persistent.remove(&id);
                if let Some(slot) = self.survey.requests.get(&id) {
                    self.busy.remove(slot);
                }
            }
        }
        if let Some(id) = requests::made_request(call) {
            if call.function.persistent {
                self.persistent.insert(id);
            }
            if let Some(slot) = self.survey.requests.get(&id) {
                self.busy.insert(*slot);
            }
        }
    }

    /// How large an element of a datatype is.
    fn size(&self, of: &Value) -> u64 {
        match of {
            Value::Object(_, id) => self.extents.get(id).copied().unwrap_or(4096),
            Value::Name(name) => constant(name).and_then(|c| c.size).map_or(32, u64::from),
            _ => 1,
        }
    }

    /// How many bytes each block of a datatype has that a call makes.
    fn blocks(&self, call: &Call, count: usize) -> Vec<u64> {
        let of = |names: [&str; 2], at: usize| {
            let found = names.iter().find_map(|name| call.function.index_of(name));
            match found.map(|found| &call.args[found]) {
                Some(Value::List(all)) => all.get(at),
                one => one,
            }
        };
        let one = |at: usize| {
            let length = of(["array_of_blocklengths", "blocklength"], at).and_then(code).unwrap_or(1);
            let size = of(["array_of_types", "oldtype"], at).map_or(1, |of| self.size(of));
            length.unsigned_abs().saturating_mul(size)
        };
        (0..count).map(one).collect()
    }

    /// More than any buffer of the call needs.
    fn bytes(&self, call: &Call) -> u64 {
        let (mut extent, mut most, mut sum) = (1u64, 0u64, 0u64);
        let size = |value: &Value| self.size(value);
        let mut many = false;
        for (p, value) in call.function.params.iter().zip(&call.args) {
            match (p.kind, before(value)) {
                (Kind::Handle(Class::Datatype), Value::List(types)) => {
                    extent = types.iter().map(size).max().unwrap_or(0).max(extent);
                }
                (Kind::Handle(Class::Datatype), one) => extent = extent.max(size(one)),
                (Kind::Int, Value::Int(number)) if !is_address(p, *number) => {
                    many |= p.name.ends_with("count") || p.name.ends_with("counts");
                    most = most.max(number.unsigned_abs());
                }
                (Kind::Int, Value::List(list)) => {
                    let all = list.iter().filter_map(|one| match one {
                        Value::Int(number) if !is_address(p, *number) => Some(number.unsigned_abs()),
                        _ => None,
                    });
                    sum = all.fold(sum, u64::saturating_add);
                }
                _ => {}
            }
        }
        // Of each rank, where the call is one of several.
        let each = if many && is_of_all(call.function) { self.world + 1 } else { 1 };
        let elements = most.saturating_mul(each).saturating_add(sum);
        elements.saturating_mul(extent).saturating_add(64).min(1 << 40)
    }
}

/// Whether a call may have something for each rank in its buffers.
fn is_of_all(function: &Function) -> bool {
    let name = function.name.to_ascii_lowercase();
    ["gather", "scatter", "alltoall"].iter().any(|part| name.contains(part))
}

/// The number that an argument is.
fn code(value: &Value) -> Option<i64> {
    Some(match value {
        Value::Int(number) => *number,
        Value::Bool(yes) => i64::from(*yes),
        Value::Unset => fit::UNSET,
        Value::Name(name) => fit::named(constant(name)?.id),
        Value::Mask(names) => match names[..] {
            [] => 0,
            [name] => fit::named(constant(name)?.id),
            _ => return None,
        },
        _ => return None,
    })
}

fn is_address(p: &Param, number: i64) -> bool {
    p.ctype == CType::Aint && number >= LOWEST_ADDRESS
}

fn status_holes(status: &Value) -> [Hole; 4] {
    let Value::Status(Status { source, tag, bytes, cancelled, .. }) = status else {
        return [Hole::One(0), Hole::One(0), Hole::One(0), Hole::One(0)];
    };
    let number = |value: &Value| Hole::One(code(value).unwrap_or(0));
    [
        number(source),
        number(tag),
        Hole::One(bytes.unwrap_or(0)),
        Hole::One(i64::from(cancelled.unwrap_or(false))),
    ]
}
