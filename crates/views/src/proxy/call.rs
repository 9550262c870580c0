//! A call as C writes it: what is the same each time, and the numbers that are not.

use std::collections::{BTreeSet, HashMap, HashSet};

use refrain_model::{
    Address, Area, CType, Call, Class, Dir, Effect, Function, Kind, Param, Status, Value, constant,
};

use super::fit;
use super::prelude;
use super::survey::{self, NO_REQUEST, Survey, after, before};

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
    /// An array of numbers some of which are: the segment of each (below nought if it is none) and its offset.
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
    Told,
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
            Extra::Told => 4,
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

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Named(&'static str),
    Object(u32),
    Comm(String),
    /// For handles that nobody uses.
    Junk,
}

/// What all ranks have in common: objects and memory by number.
#[derive(Debug, Default)]
pub(super) struct Registry {
    slots: HashMap<(Class, Key), i64>,
    counts: HashMap<Class, usize>,
    /// Constants that have a slot, to be used where others than constants are too.
    pub named: HashMap<(Class, i64), &'static str>,
    /// How many there are of these, and of handles that nobody uses: their slots are below nought.
    below: HashMap<Class, i64>,
    segments: HashMap<(u8, u32, u32), usize>,
    /// By segment: what it was called, and the least and the greatest offset in use.
    pub memory: Vec<(String, i64, i64)>,
    /// Functions in place of the program's: type, and what it was in the trace.
    pub functions: Vec<(&'static str, String)>,
    /// The arguments of `MPI_Init`.
    pub arguments: Option<Vec<String>>,
    /// Elements of the longest array.
    pub longest: usize,
    /// Of functions that are forced.
    pub forced: HashSet<&'static str>,
    pub tells: bool,
    /// Files that the program opens.
    pub files: HashSet<String>,
    /// Receives from any source of which nobody knows who sent.
    pub unmatched: u64,
}

impl Registry {
    fn slot(&mut self, class: Class, key: Key) -> i64 {
        let named = match key {
            Key::Named(name) => Some(name),
            Key::Junk => Some(null_of(class)),
            _ => None,
        };
        let (counts, below) = (self.counts.entry(class).or_default(), self.below.entry(class).or_default());
        let slot = *self.slots.entry((class, key)).or_insert_with(|| match named {
            Some(_) => {
                *below += 1;
                -*below
            }
            None => {
                *counts += 1;
                *counts as i64 - 1
            }
        });
        if let Some(name) = named {
            self.named.insert((class, slot), name);
        }
        slot
    }

    /// Slots of a class below nought.
    pub fn fixed(&self, class: Class) -> usize {
        self.below.get(&class).map_or(0, |below| *below as usize)
    }

    /// Classes and how many of each there are.
    pub fn classes(&self) -> Vec<(Class, usize)> {
        let mut all: Vec<(Class, usize)> =
            self.counts.iter().map(|(class, count)| (*class, *count)).collect();
        all.sort_unstable();
        all
    }

    pub fn at_least(&mut self, class: Class, count: usize) {
        let have = self.counts.entry(class).or_default();
        *have = (*have).max(count);
    }

    fn segment(&mut self, address: Address, bytes: u64) -> usize {
        let Address { area, device, segment, offset } = address;
        let next = self.memory.len();
        let at = *self.segments.entry((area as u8, device, segment)).or_insert(next);
        if at == next {
            let name = format!("{area:?}").to_lowercase();
            self.memory.push((format!("{name} {segment}"), offset, offset));
        }
        let (_, low, high) = &mut self.memory[at];
        *low = (*low).min(offset);
        *high = (*high).max(offset.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX)));
        at
    }

    fn function(&mut self, ctype: &'static str, text: &str) -> String {
        let is = |known: &(&'static str, String)| known.0 == ctype && known.1 == text;
        let at = self.functions.iter().position(is).unwrap_or_else(|| {
            self.functions.push((ctype, text.to_owned()));
            self.functions.len() - 1
        });
        format!("stand_in_{at}")
    }
}

/// How C spells a type.
pub(super) fn spelled(ctype: CType) -> &'static str {
    match ctype {
        CType::Int | CType::ToolEnum(_) => "int",
        CType::Aint => "MPI_Aint",
        CType::Count => "MPI_Count",
        CType::Offset => "MPI_Offset",
        CType::Fint => "MPI_Fint",
        CType::Handle(class) => handle_type(class),
        CType::Status => "MPI_Status",
        CType::Char => "char",
        CType::Void | CType::Function(_) | CType::Other(_) | CType::Varargs => "void",
    }
}

pub(super) fn handle_type(class: Class) -> &'static str {
    match class {
        Class::Comm => "MPI_Comm",
        Class::Group => "MPI_Group",
        Class::Datatype => "MPI_Datatype",
        Class::Op => "MPI_Op",
        Class::Request => "MPI_Request",
        Class::Win => "MPI_Win",
        Class::File => "MPI_File",
        Class::Info => "MPI_Info",
        Class::Errhandler => "MPI_Errhandler",
        Class::Message => "MPI_Message",
        Class::Session => "MPI_Session",
        _ => "int",
    }
}

/// The array that handles of a class are in.
pub(super) fn array(class: Class) -> &'static str {
    match class {
        Class::Comm => "comm",
        Class::Group => "group",
        Class::Datatype => "type",
        Class::Op => "op",
        Class::Request => "request",
        Class::Win => "win",
        Class::File => "file",
        Class::Info => "info",
        Class::Errhandler => "handler",
        Class::Message => "message",
        Class::Session => "session",
        _ => "keyval",
    }
}

pub(super) fn null_of(class: Class) -> &'static str {
    match class {
        Class::Comm => "MPI_COMM_NULL",
        Class::Group => "MPI_GROUP_NULL",
        Class::Datatype => "MPI_DATATYPE_NULL",
        Class::Op => "MPI_OP_NULL",
        Class::Request => "MPI_REQUEST_NULL",
        Class::Win => "MPI_WIN_NULL",
        Class::File => "MPI_FILE_NULL",
        Class::Info => "MPI_INFO_NULL",
        Class::Errhandler => "MPI_ERRHANDLER_NULL",
        Class::Message => "MPI_MESSAGE_NULL",
        Class::Session => "MPI_SESSION_NULL",
        _ => "MPI_KEYVAL_INVALID",
    }
}

/// A string of C.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            // A question mark may begin a trigraph.
            b' '..=b'~' if byte != b'?' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('"');
    out
}

/// Functions for which the program has one of its own that leaves the library no choice.
pub(super) const FORCED: [&str; 19] = [
    "MPI_Win_test",
    "MPI_Parrived",
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Waitany",
    "MPI_Waitsome",
    "MPI_Test",
    "MPI_Testall",
    "MPI_Testany",
    "MPI_Testsome",
    "MPI_Request_get_status",
    "MPI_Iprobe",
    "MPI_Improbe",
    "MPI_Probe",
    "MPI_Mprobe",
    "MPI_Recv",
    "MPI_Irecv",
    "MPI_Sendrecv",
    "MPI_Sendrecv_replace",
];

/// Numbers of type `MPI_Aint` from here on are addresses.
const LOWEST_ADDRESS: i64 = 1 << 40;

/// One rank's calls, one after the other.
pub(super) struct Writer<'r> {
    registry: &'r mut Registry,
    survey: Survey,
    next_match: usize,
    /// Slots with a request in them.
    busy: HashSet<usize>,
    persistent: HashSet<u32>,
    known: HashSet<(Class, Key)>,
    extents: HashMap<u32, u64>,
    /// Groups by the hash of their members: which of this rank's they are.
    groups: HashMap<String, usize>,
    /// The communicators that there are, and the slots of those that are gone.
    comms: HashMap<Key, i64>,
    vacant: BTreeSet<i64>,
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
        self.force(call, &mut made.shape, &mut extra);
        made.holes.append(&mut extra);
        self.learn(call);
        Ok(made)
    }

    /// What the library chose then.
    fn force(&mut self, call: &Call, shape: &mut Shape, holes: &mut Vec<Hole>) {
        let name = call.function.name;
        let wild = survey::is_wild(call);
        let choice =
            ["MPI_Recv", "MPI_Irecv", "MPI_Probe", "MPI_Mprobe", "MPI_Sendrecv", "MPI_Sendrecv_replace"];
        if !FORCED.contains(&name) || choice.contains(&name) && !wild {
            return;
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
        if wild {
            let found = match survey::made_request(call) {
                Some(_) => {
                    let found = self.survey.matches.get(self.next_match).copied().flatten();
                    self.next_match += 1;
                    found
                }
                None => survey::own_match(call),
            };
            shape.extras.push(Extra::From);
            let any = |name| constant(name).map_or(0, |constant| fit::named(constant.id));
            let (source, tag) = found.unwrap_or_else(|| {
                self.registry.unmatched += 1;
                (any("MPI_ANY_SOURCE"), any("MPI_ANY_TAG"))
            });
            holes.extend([Hole::One(source), Hole::One(tag)]);
        }
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
            return text(name);
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
                    let address = Address { area: Area::Other, device: u32::MAX, segment: 0, offset: 0 };
                    let bytes = self.bytes(call);
                    self.registry.segment(address, bytes);
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
                    extras.push(Extra::Told);
                    self.registry.tells = true;
                    extra.extend(told(given));
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
                    if numbers.iter().any(|number| is_address(p, *number)) {
                        let mut pairs = Vec::new();
                        for number in numbers {
                            let pair = match is_address(p, number) {
                                true => self.address(number)?,
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
                        let (segment, offset) = self.address(number)?;
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
    fn address(&mut self, number: i64) -> Result<(i64, i64), String> {
        // What is there is told elsewhere.
        const ROOM: u64 = 1 << 16;
        let place =
            self.survey.place_of(number).ok_or("an address that the trace does not tell the place of")?;
        Ok((self.registry.segment(place, ROOM) as i64, place.offset))
    }

    fn key(&mut self, class: Class, value: &Value) -> Option<Key> {
        Some(match value {
            Value::Name(name) => Key::Named(name),
            Value::Object(_, id) => Key::Object(*id),
            Value::Comm(name) => match name.as_str() {
                "world" => Key::Named("MPI_COMM_WORLD"),
                "self" => Key::Named("MPI_COMM_SELF"),
                name if name.starts_with("group-") || name.starts_with("inter-") => {
                    // Named after its members, which differ: by order then.
                    let (members, rest) = name.split_once('.').unwrap_or((name, ""));
                    let next = self.groups.len();
                    let which = *self.groups.entry(members.to_owned()).or_insert(next);
                    Key::Comm(format!("{} {which}.{rest}", &members[..5]))
                }
                name => Key::Comm(name.to_owned()),
            },
            Value::Unset => Key::Named(null_of(class)),
            _ => return None,
        })
    }

    /// The slot of an object that there is.
    fn used(&mut self, class: Class, value: &Value) -> Result<i64, String> {
        if class == Class::Request {
            return match value {
                Value::Object(_, id) => {
                    let slot = self.survey.requests.get(id).copied().unwrap_or(NO_REQUEST);
                    match self.busy.contains(&slot) {
                        true => Ok(slot as i64),
                        false => Err("a request that no call in the trace has made".to_owned()),
                    }
                }
                _ => Ok(NO_REQUEST as i64),
            };
        }
        if matches!(
            class,
            Class::ToolEnum
                | Class::ToolCvar
                | Class::ToolPvar
                | Class::ToolPvarSession
                | Class::ToolEventRegistration
                | Class::ToolEventInstance
        ) {
            return Err("the tool interface is not generated".to_owned());
        }
        let key = self.key(class, value).ok_or("something that is no object")?;
        if !matches!(key, Key::Named(_)) && !self.known.contains(&(class, key.clone())) {
            return Err("an object that no call in the trace has made".to_owned());
        }
        Ok(match self.comms.get(&key).filter(|_| class == Class::Comm) {
            Some(slot) => *slot,
            None => self.registry.slot(class, key),
        })
    }

    /// The slot of an object that the call writes.
    fn written(&mut self, class: Class, value: &Value) -> i64 {
        match (class, value) {
            (Class::Request, Value::Object(_, id)) => {
                self.survey.requests.get(id).copied().unwrap_or(NO_REQUEST) as i64
            }
            (Class::Request, _) => NO_REQUEST as i64,
            (_, Value::Object(..) | Value::Comm(_)) => match self.key(class, value) {
                Some(key) if !matches!(key, Key::Named(_)) => {
                    self.known.insert((class, key.clone()));
                    match class {
                        Class::Comm => self.comm_slot(key),
                        _ => self.registry.slot(class, key),
                    }
                }
                _ => self.registry.slot(class, Key::Junk),
            },
            _ => self.registry.slot(class, Key::Junk),
        }
    }

    /// Names of communicators never come again, and their slots do.
    fn comm_slot(&mut self, key: Key) -> i64 {
        if let Some(slot) = self.comms.get(&key) {
            return *slot;
        }
        let slot = self.vacant.pop_first().unwrap_or((self.comms.len()) as i64);
        self.comms.insert(key, slot);
        self.registry.at_least(Class::Comm, slot as usize + 1);
        slot
    }

    fn handle(
        &mut self,
        p: &'static Param,
        class: Class,
        value: &Value,
        holes: &mut Vec<Hole>,
    ) -> Result<Arg, String> {
        let slot = match p.dir {
            Dir::Out => self.written(class, after(value)),
            // It does not matter on this rank.
            Dir::In if *value == Value::Unset => fit::UNSET,
            _ => self.used(class, before(value))?,
        };
        holes.push(Hole::One(slot));
        let shared = matches!(class, Class::Group | Class::Errhandler | Class::Datatype | Class::Op);
        Ok(match p.dir {
            Dir::In => Arg::Handle(class),
            Dir::InOut if shared && p.effect == Effect::Free => Arg::HandleGone(class),
            _ => Arg::HandleAt(class),
        })
    }

    fn handles(
        &mut self,
        i: usize,
        p: &'static Param,
        class: Class,
        value: &Value,
        holes: &mut Vec<Hole>,
        (extras, extra): (&mut Vec<Extra>, &mut Vec<Hole>),
    ) -> Result<Arg, String> {
        let list = match if p.dir == Dir::Out { after(value) } else { before(value) } {
            Value::List(list) => &list[..],
            _ => {
                return Ok(Arg::Text(if p.dir == Dir::Out {
                    format!("OUT({}, {i})", handle_type(class))
                } else {
                    "NULL".to_owned()
                }));
            }
        };
        self.registry.longest = self.registry.longest.max(list.len());
        if p.dir == Dir::Out {
            let slots = list.iter().map(|one| self.written(class, one)).collect();
            extras.push(Extra::Stored(class, i));
            extra.push(Hole::Many(slots));
            return Ok(Arg::Text(format!("OUT({}, {i})", handle_type(class))));
        }
        let slots: Result<Vec<i64>, String> = list.iter().map(|one| self.used(class, one)).collect();
        let slots = slots?;
        if class == Class::Request {
            let places: Vec<usize> = slots.iter().map(|slot| *slot as usize).collect();
            if let Some(first) = self.side_by_side(&places) {
                holes.push(Hole::One(first as i64));
                return Ok(Arg::Requests);
            }
            holes.push(Hole::Many(slots));
            return Ok(Arg::RequestsApart);
        }
        holes.push(Hole::Many(slots));
        Ok(Arg::Handles(class))
    }

    /// Where these begin, if they are neighbours in the array of all requests.
    fn side_by_side(&self, slots: &[usize]) -> Option<usize> {
        let (at, slot) = slots.iter().enumerate().find(|(_, slot)| **slot != NO_REQUEST)?;
        let first = slot.checked_sub(at).filter(|first| *first > NO_REQUEST)?;
        let is = |(k, slot): (usize, &usize)| match *slot {
            NO_REQUEST => first + k <= self.survey.requests.len() && !self.busy.contains(&(first + k)),
            slot => slot == first + k,
        };
        slots.iter().enumerate().all(is).then_some(first)
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
                let bytes = fact("extent").saturating_add(fact("lb")).saturating_add(fact("size"));
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
        let freed = call.function.name == "MPI_Request_free";
        for (id, _) in survey::completed(call) {
            if freed || !self.persistent.contains(&id) {
                self.persistent.remove(&id);
                if let Some(slot) = self.survey.requests.get(&id) {
                    self.busy.remove(slot);
                }
            }
        }
        if let Some(id) = survey::made_request(call) {
            if call.function.persistent {
                self.persistent.insert(id);
            }
            if let Some(slot) = self.survey.requests.get(&id) {
                self.busy.insert(*slot);
            }
        }
    }

    /// More than any buffer of the call needs.
    fn bytes(&self, call: &Call) -> u64 {
        let (mut extent, mut most, mut sum) = (1u64, 0u64, 0u64);
        let size = |value: &Value| match value {
            Value::Object(_, id) => self.extents.get(id).copied().unwrap_or(4096),
            Value::Name(name) => constant(name).and_then(|c| c.size).map_or(32, u64::from),
            _ => 1,
        };
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
    let name = function.name;
    ["gather", "scatter", "lltoall"].iter().any(|part| name.contains(part))
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

fn told(status: &Value) -> [Hole; 4] {
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
