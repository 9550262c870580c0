//! A call's arguments as the words that C passes, and what lies behind them.

use std::ffi::CString;

use refrain_model::{CType, Call, Class, Dir, Kind, Param, Status, Value};
use refrain_mpi::Abi;
use refrain_views::human::plural;
use refrain_views::value::shown;

use crate::ahead::before;
use crate::reach::{self, Reach, Shape};
use crate::stand_ins;

/// What arguments point at: it must live as long as MPI may look at it.
#[derive(Debug, Default)]
pub struct Room {
    /// Of the last one so many words are taken.
    cells: Vec<Box<[u64]>>,
    taken: usize,
    texts: Vec<CString>,
    pointers: Vec<Box<[usize]>>,
    /// The call failed, as it had to: it named no place where one must be. It is not made.
    pub is_void: bool,
}

impl Room {
    /// Words that most calls do with.
    const LEAST: usize = 256;

    /// Nothing in it is needed any more: the next call may have it.
    pub fn clear(&mut self) {
        self.cells.truncate(1);
        self.taken = 0;
        self.texts.clear();
        self.pointers.clear();
        self.is_void = false;
    }

    /// Nobody looks at it.
    pub fn is_empty(&self) -> bool {
        self.taken == 0 && self.cells.len() < 2 && self.texts.is_empty() && self.pointers.is_empty()
    }

    /// All zero.
    fn bytes(&mut self, bytes: usize) -> *mut u8 {
        let words = bytes.div_ceil(8).max(1);
        let new = self.cells.last().is_none_or(|cells| cells.len() - self.taken < words);
        if new {
            // Memory of long arrays is there once it is touched.
            self.cells.push(vec![0u64; words.max(Room::LEAST)].into_boxed_slice());
            self.taken = 0;
        }
        let from = self.taken;
        self.taken += words;
        let cells = self.cells.last_mut().and_then(|cells| cells.get_mut(from..from + words));
        cells.map_or(std::ptr::null_mut(), |cells| {
            if !new {
                cells.fill(0);
            }
            cells.as_mut_ptr().cast()
        })
    }

    fn text(&mut self, text: &str) -> usize {
        let text: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
        self.texts.push(CString::new(text).unwrap_or_default());
        self.texts.last().map_or(0, |text| text.as_ptr() as usize)
    }

    /// An array of strings that ends with a null.
    fn texts(&mut self, texts: &[Value]) -> Option<usize> {
        let mut pointers: Vec<usize> = Vec::new();
        for text in texts {
            let Value::Text(text) = text else { return None };
            pointers.push(self.text(text));
        }
        pointers.push(0);
        Some(self.pointers(pointers))
    }

    fn pointers(&mut self, pointers: Vec<usize>) -> usize {
        self.pointers.push(pointers.into_boxed_slice());
        self.pointers.last().map_or(0, |all| all.as_ptr() as usize)
    }
}

/// Why a call cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unmade {
    /// An object that no call has made, or that is gone.
    #[error("{parameter}: {object} was not made by a call that is in the trace")]
    Object { parameter: &'static str, object: String },
    /// A constant that this library has not.
    #[error("this MPI library has no {name}")]
    Constant { name: &'static str },
    /// A value that the parameter cannot have.
    #[error("{parameter} cannot be {value}")]
    Value { parameter: &'static str, value: String },
    #[error("{parameter}: {why}")]
    Memory { parameter: &'static str, why: String },
    /// A call that cannot be made then.
    #[error("{why}")]
    Time { why: String },
}

/// What a library has under the name of a constant: an address, an object or a number.
#[derive(Debug, Clone, Copy, Default)]
pub struct Named {
    pub pointer: Option<usize>,
    pub handle: Option<u64>,
    pub number: Option<i64>,
}

/// What the words of a call depend on beside the call.
pub trait Surroundings {
    fn abi(&self) -> &Abi;
    fn object(&self, value: &Value) -> Option<u64>;
    /// Where a buffer is, with room for what is touched around it.
    fn place(&self, address: refrain_model::Address, reach: Reach) -> std::io::Result<usize>;
    /// Of a buffer that the trace does not tell.
    fn somewhere(&self, reach: Reach) -> std::io::Result<usize>;
    /// Whether all of that is memory of the replay.
    fn is_there(&self, touched: Reach) -> bool;
    /// What the library has under that name.
    fn named(&self, name: &'static str) -> Named;
    /// Ranks of the world.
    fn world(&self) -> usize;
    /// What elements of that type touch.
    fn shape(&self, datatype: &Value) -> Shape;
    /// How many a collective call on that communicator addresses: members of either group, or neighbours.
    fn members(&self, comm: &Value, neighbours: bool) -> u64;
    /// Of a Cartesian communicator.
    fn dimensions(&self, comm: &Value) -> u64;
    /// An address that was a number to the program.
    fn address(&self, then: i64) -> i64;
    /// Where the handle of a request lies, as long as there is one: libraries may have one handle for several requests,
    /// which are told apart by their place.
    fn request(&self, id: u32) -> *mut u8;
}

/// Elements of an array of which the call table does not say before how many there are: at least as many as the call may
/// write.
fn most_elements(call: &Call, world: usize) -> usize {
    let lists = call.args.iter().map(|value| match before(value) {
        Value::List(list) => list.len(),
        _ => 0,
    });
    lists.max().unwrap_or(0).max(world).max(64)
}

/// Longer arrays are refused.
const MOST_ELEMENTS: u64 = 1 << 26;

/// Elements of an array, at least as many as a library may read or write there.
fn elements(call: &Call, at: usize, given: usize, around: &impl Surroundings) -> Result<usize, Unmade> {
    let parameter = call.function.params[at].name;
    let count = match reach::elements(call, at, around)? {
        Some(count) if count > MOST_ELEMENTS => {
            let why = format!("an array of {count} elements");
            return Err(Unmade::Memory { parameter, why });
        }
        Some(count) => count as usize,
        None => most_elements(call, around.world()),
    };
    Ok(count.max(given).max(1))
}

fn width(ctype: CType, abi: &Abi) -> usize {
    match ctype {
        CType::Aint | CType::Count | CType::Offset => 8,
        CType::Handle(class) => abi.handle_size(native(class)),
        CType::Status => abi.status_size(),
        CType::Int | CType::Fint | CType::ToolEnum(_) => 4,
        CType::Void | CType::Function(_) | CType::Other(_) | CType::Varargs => 8,
        CType::Char => 1,
    }
}

/// The class as the ABI knows it.
pub fn native(class: Class) -> refrain_mpi::Class {
    refrain_mpi::Class::from_number(class as u8).unwrap_or(refrain_mpi::Class::Comm)
}

/// Longer than any string that MPI writes without being told how long.
pub const STRING: usize = 1 << 13;

/// Requests that the trace says were complete are some of those that the call was given: they are looked up in its array.
fn check_chosen(call: &Call) -> Result<(), Unmade> {
    let params = || call.function.params.iter().zip(&call.args);
    let requests = params().find_map(|(p, value)| match (p.kind, before(value)) {
        (Kind::Handle(Class::Request), Value::List(list)) => Some(list.len()),
        _ => None,
    });
    let Some(requests) = requests else { return Ok(()) };
    for (p, value) in params().filter(|(p, _)| p.kind == Kind::Undefinable && p.dir == Dir::Out) {
        let list = if let Value::List(list) = value { &list[..] } else { std::slice::from_ref(value) };
        let is_there = |number: i64| match p.name {
            "outcount" => (0..=requests as i64).contains(&number),
            _ => (0..requests as i64).contains(&number),
        };
        if let Some(number) = list.iter().find(|one| matches!(one, Value::Int(n) if !is_there(*n))) {
            let value = format!("{}: it was given {}", shown(number), plural(requests as u64, "request"));
            return Err(Unmade::Value { parameter: p.name, value });
        }
    }
    Ok(())
}

/// The words of a call, which are put into `words`.
pub fn words(
    call: &Call,
    around: &impl Surroundings,
    room: &mut Room,
    words: &mut Vec<usize>,
) -> Result<(), Unmade> {
    words.clear();
    check_chosen(call)?;
    reach::of_datatype(call, around)?;
    for (at, p) in call.function.params.iter().enumerate() {
        words.push(word(call, (at, p), around, room)?);
    }
    Ok(())
}

/// What stands in the place of an address that stands for something.
fn special(
    call: &Call,
    (at, p): (usize, &'static Param),
    (name, pointer): (&'static str, usize),
    around: &impl Surroundings,
) -> Result<usize, Unmade> {
    let abi = around.abi();
    let fits = match p.kind {
        Kind::Status => p.dir == Dir::Out && name.contains("STATUS"),
        Kind::Function => name.contains("_FN") || pointer == 0,
        Kind::Buffer if name == "MPI_IN_PLACE" => {
            let (coll, scatters) = (
                call.function.families.contains(&"coll"),
                call.function.name.to_lowercase().contains("scatter"),
            );
            // A reduction that scatters is no MPI_Scatter.
            let scatters = scatters && call.function.index_of("op").is_none();
            coll && p.name == if scatters { "recvbuf" } else { "sendbuf" }
        }
        Kind::Buffer if name == "MPI_BUFFER_AUTOMATIC" => call.function.name.contains("attach"),
        // A variable of the tool interface that goes with no object.
        Kind::Buffer if p.name == "obj_handle" && pointer == 0 => true,
        Kind::Buffer => {
            let pieces = reach::absolute(call, at, around)?;
            let there = |piece: &Reach| around.is_there(piece.moved(pointer as i128));
            if !pieces.iter().all(there) {
                let why = "its datatype names addresses where the replay has no memory".to_owned();
                return Err(Unmade::Memory { parameter: p.name, why });
            }
            true
        }
        // In the place of an array.
        Kind::Int if p.len.is_empty() => false,
        Kind::Int => name.contains("WEIGHT") && p.name.contains("weights") || name.contains("ERRCODES"),
        Kind::Strings | Kind::StringsOfStrings => name.contains("ARGV"),
        Kind::Value => true,
        _ => false,
    };
    match fits {
        true => Ok(pointer),
        // MPICH has addresses for these two, Open MPI NULL.
        false if p.kind == Kind::Status && p.dir == Dir::Out => Ok(abi.status_ignore),
        false => Err(Unmade::Value { parameter: p.name, value: name.to_owned() }),
    }
}

/// NULL, as the program gave it: where the call looks at nothing there. A library that is given none writes elsewhere.
fn null(
    call: &Call,
    (at, p): (usize, &'static Param),
    around: &impl Surroundings,
    room: &mut Room,
) -> Result<Option<usize>, Unmade> {
    let abi = around.abi();
    let nothing = match p.kind {
        Kind::Buffer => reach::of(call, at, around)?.is_empty(),
        Kind::Value | Kind::ArgCount | Kind::ArgVector | Kind::Skip => true,
        Kind::Status if p.dir == Dir::Out => {
            let ignored = if p.len.is_empty() { abi.status_ignore } else { abi.statuses_ignore };
            return Ok(Some(ignored));
        }
        Kind::Function => match call.function.name {
            "MPI_Grequest_start" => return Ok(None),
            _ => true,
        },
        Kind::OutPointer | Kind::OutAttribute => return Ok(None),
        _ if !p.len.is_empty() => match reach::elements(call, at, around)? {
            Some(0) => true,
            // As many as there are requests, at the most.
            None => {
                call.args.iter().all(|value| !matches!(before(value), Value::List(all) if !all.is_empty()))
            }
            Some(_) if p.dir == Dir::Out => return Ok(None),
            Some(_) => false,
        },
        // Libraries leave out what a program does not ask for.
        _ if p.dir != Dir::In && tells_what_is_asked_for(call) => true,
        _ if p.dir == Dir::Out => return Ok(None),
        _ => false,
    };
    match (nothing, &call.result) {
        (true, _) => Ok(Some(0)),
        (false, Value::Int(code)) if *code != 0 => {
            room.is_void = true;
            Ok(Some(0))
        }
        _ => Err(Unmade::Value { parameter: p.name, value: "NULL".to_owned() }),
    }
}

/// Descriptions of the tool interface: NULL is allowed in the place of each output.
fn tells_what_is_asked_for(call: &Call) -> bool {
    call.function.name.starts_with("MPI_T_") && call.function.name.ends_with("_get_info")
}

fn word(
    call: &Call,
    (at, p): (usize, &'static Param),
    around: &impl Surroundings,
    room: &mut Room,
) -> Result<usize, Unmade> {
    let abi = around.abi();
    let mut given = before(&call.args[at]);
    let refused = || Unmade::Value { parameter: p.name, value: shown(before(&call.args[at])) };
    // As the program gave it: an array without elements.
    if *given == Value::Name("NULL") {
        if let Some(word) = null(call, (at, p), around, room)? {
            return Ok(word);
        }
        given = &Value::Unset;
    }
    // An address that stands for something, in whatever parameter.
    if let Value::Name(name) = given
        && let Some(pointer) = around.named(name).pointer
    {
        return special(call, (at, p), (*name, pointer), around);
    }
    match p.kind {
        Kind::Buffer => {
            let reach = reach::of(call, at, around)?;
            let placed = match given {
                Value::Address(address) => around.place(*address, reach),
                Value::Unset => around.somewhere(reach),
                _ => return Err(refused()),
            };
            placed.map_err(|error| Unmade::Memory { parameter: p.name, why: error.to_string() })
        }
        Kind::Value => match given {
            Value::Address(address) => around
                .place(*address, Reach::NOTHING)
                .map_err(|error| Unmade::Memory { parameter: p.name, why: error.to_string() }),
            Value::Int(number) => Ok(*number as usize),
            _ => Ok(0),
        },
        Kind::Function => match p.ctype {
            CType::Function(name) => Ok(stand_ins::of(name)),
            _ => Err(refused()),
        },
        Kind::String if p.dir == Dir::In => match given {
            Value::Text(text) => Ok(room.text(text)),
            _ => Ok(room.text("")),
        },
        Kind::String => Ok(room.bytes(STRING) as usize),
        Kind::Strings => match given {
            Value::List(texts) => {
                let count = reach::elements(call, at, around)?.unwrap_or(0);
                if count > texts.len() as u64 {
                    return Err(refused());
                }
                room.texts(texts).ok_or_else(refused)
            }
            _ => Ok(room.pointers(vec![0])),
        },
        Kind::StringsOfStrings => Ok(0),
        Kind::ArgCount => match given {
            Value::Int(_) => {
                let argv = call.function.index_of("argv").map(|argv| before(&call.args[argv]));
                let count = if let Some(Value::List(texts)) = argv { texts.len() } else { 0 };
                let cell = room.bytes(8);
                // SAFETY: a cell of eight bytes.
                unsafe { write(cell, 0, 4, count as u64) };
                Ok(cell as usize)
            }
            _ => Ok(0),
        },
        Kind::ArgVector => match given {
            Value::List(texts) => {
                let vector = room.texts(texts).ok_or_else(refused)?;
                Ok(room.pointers(vec![vector]))
            }
            _ => Ok(0),
        },
        Kind::Skip => Ok(0),
        Kind::OutPointer | Kind::OutAttribute => Ok(room.bytes(8) as usize),
        Kind::Status => {
            let size = abi.status_size();
            if p.dir == Dir::Out {
                let list = if let Value::List(list) = given { list.len() } else { 1 };
                let count = if p.len.is_empty() { 1 } else { elements(call, at, list, around)? };
                return Ok(room.bytes(size * count) as usize);
            }
            let cell = room.bytes(size);
            if let Value::Status(status) = given {
                // SAFETY: made with that size.
                unsafe { write_status(abi, status, cell) };
            }
            Ok(cell as usize)
        }
        Kind::Handle(_)
        | Kind::Int
        | Kind::Undefinable
        | Kind::Logical
        | Kind::Tag
        | Kind::Peer(_)
        | Kind::Root(_)
        | Kind::Rank
        | Kind::Enum(_)
        | Kind::Mask(_) => {
            let behind = p.dir != Dir::In || !p.len.is_empty();
            if !behind {
                return number(p, given, around);
            }
            let width = width(p.ctype, abi);
            if let (Kind::Handle(Class::Request), Value::Object(_, id), true) =
                (p.kind, given, p.len.is_empty())
            {
                let cell = around.request(*id);
                if p.dir == Dir::InOut {
                    // SAFETY: a cell of eight bytes.
                    unsafe { write(cell, 0, width, number(p, given, around)? as u64) };
                }
                return Ok(cell as usize);
            }
            let list = match given {
                Value::List(list) => &list[..],
                one => std::slice::from_ref(one),
            };
            let count =
                if p.len.is_empty() { list.len().max(1) } else { elements(call, at, list.len(), around)? };
            let cells = room.bytes(width * count);
            if p.dir != Dir::Out {
                for (at, one) in list.iter().enumerate() {
                    let word = number(p, one, around)?;
                    // SAFETY: the room has as many elements of that width.
                    unsafe { write(cells, at, width, word as u64) };
                }
            }
            Ok(cells as usize)
        }
    }
}

/// One number or handle as a word.
fn number(p: &'static Param, value: &Value, around: &impl Surroundings) -> Result<usize, Unmade> {
    let abi = around.abi();
    let missing = |name: &&'static str| Unmade::Constant { name };
    let other = |value: &Value| Unmade::Value { parameter: p.name, value: shown(value) };
    Ok(match value {
        // Without a meaning on this rank; libraries look at it all the same.
        Value::Unset => match p.kind {
            Kind::Handle(Class::Datatype) => abi.byte as usize,
            Kind::Handle(Class::Op) => abi.handle("MPI_SUM").unwrap_or(0) as usize,
            _ => 0,
        },
        // One of a few, which MPICH does not ask for.
        Value::Int(_) if matches!(p.kind, Kind::Enum("distribution" | "order" | "typeclass")) => {
            return Err(other(value));
        }
        // A file may name any constant for any number, and checks of numbers pass over names.
        Value::Name(name) if !p.kind.can_be(name) => return Err(other(value)),
        // No number is an object.
        Value::Int(_) if matches!(p.kind, Kind::Handle(_)) => return Err(other(value)),
        // Displacements in windows are of another rank's memory.
        Value::Int(number) if matches!(p.ctype, CType::Aint | CType::Count) && p.name != "target_disp" => {
            around.address(*number) as usize
        }
        // C would take the lower half for it.
        Value::Int(number) if !p.ctype.is_wide() && i32::try_from(*number).is_err() => {
            return Err(other(value));
        }
        Value::Int(number) => *number as usize,
        Value::Bool(yes) => usize::from(*yes),
        Value::Name(name) => {
            let Named { handle, number, .. } = around.named(name);
            let (handle, number) =
                (handle.map(|handle| handle as usize), number.map(|number| number as usize));
            let named = match p.kind {
                Kind::Handle(Class::Keyval) => number,
                Kind::Handle(_) => handle,
                _ => number,
            };
            named.ok_or_else(|| missing(name))?
        }
        Value::Mask(names) => {
            let mut bits = 0;
            for name in names {
                bits |= abi.constant_int(name).ok_or_else(|| missing(name))?;
            }
            bits as usize
        }
        Value::Object(class, _) if p.kind != Kind::Handle(*class) => return Err(other(value)),
        Value::Comm(_) if p.kind != Kind::Handle(Class::Comm) => return Err(other(value)),
        Value::Object(..) | Value::Comm(_) => match around.object(value) {
            Some(handle) => handle as usize,
            None => {
                let object = match value {
                    Value::Comm(name) => name.clone(),
                    value => shown(value),
                };
                return Err(Unmade::Object { parameter: p.name, object });
            }
        },
        value => return Err(other(value)),
    })
}

/// # Safety
/// There are more than `at` elements of that width.
pub unsafe fn write(cells: *mut u8, at: usize, width: usize, number: u64) {
    let bytes = number.to_le_bytes();
    // SAFETY: promised by the caller.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), cells.add(at * width), width) };
}

/// Zero-extended.
///
/// # Safety
/// There are more than `at` elements of that width.
pub unsafe fn read(cells: *const u8, at: usize, width: usize) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: promised by the caller.
    unsafe { std::ptr::copy_nonoverlapping(cells.add(at * width), bytes.as_mut_ptr(), width) };
    u64::from_le_bytes(bytes)
}

/// # Safety
/// The cell has the size of a status.
pub unsafe fn write_status(abi: &Abi, status: &Status, cell: *mut u8) {
    let int = |value: &Value| match value {
        Value::Int(number) => *number as i32,
        Value::Name(name) => abi.constant_int(name).unwrap_or(0) as i32,
        _ => 0,
    };
    let raw = refrain_mpi::RawStatus {
        source: int(&status.source),
        tag: int(&status.tag),
        error: status.error.unwrap_or(0) as i32,
        bytes: status.bytes.unwrap_or(0),
        cancelled: status.cancelled.unwrap_or(false),
    };
    // SAFETY: promised by the caller.
    unsafe { abi.write_status(cell, raw) };
}

/// The width of one element of a parameter.
pub fn width_of(p: &Param, abi: &Abi) -> usize {
    width(p.ctype, abi)
}

/// No function takes more words.
pub const MOST: usize = 16;

/// Calls it. Words that it does not take do no harm: the caller clears the stack in C.
///
/// # Safety
/// These are arguments that the function takes.
pub unsafe fn call(function: *const (), words: &[usize]) -> usize {
    type Any = unsafe extern "C-unwind" fn(
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
    ) -> usize;
    let mut all = [0; MOST];
    all[..words.len()].copy_from_slice(words);
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = all;
    // SAFETY: promised by the caller; in C's calling convention a word carries an int or a pointer.
    let function = unsafe { std::mem::transmute::<*const (), Any>(function) };
    // SAFETY: as above.
    unsafe { function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Around;

    impl Surroundings for Around {
        fn abi(&self) -> &Abi {
            unreachable!("no word is made")
        }
        fn object(&self, _: &Value) -> Option<u64> {
            None
        }
        fn place(&self, _: refrain_model::Address, _: Reach) -> std::io::Result<usize> {
            Ok(0)
        }
        fn somewhere(&self, _: Reach) -> std::io::Result<usize> {
            Ok(0)
        }
        fn is_there(&self, _: Reach) -> bool {
            false
        }
        fn named(&self, _: &'static str) -> Named {
            Named::default()
        }
        fn world(&self) -> usize {
            1000
        }
        fn shape(&self, _: &Value) -> Shape {
            Shape::plain(4)
        }
        fn members(&self, _: &Value, _: bool) -> u64 {
            1000
        }
        fn dimensions(&self, _: &Value) -> u64 {
            3
        }
        fn address(&self, then: i64) -> i64 {
            then
        }
        fn request(&self, _: u32) -> *mut u8 {
            std::ptr::null_mut()
        }
    }

    fn call(name: &str, given: &[(&str, Value)]) -> Call {
        crate::reach::tests::call(name, given)
    }

    /// A trace may come from anybody: an index is looked at before anything is read there.
    #[test]
    fn chosen_requests_are_some_of_those_given() {
        let requests = || ("array_of_requests", Value::List(vec![Value::Object(Class::Request, 1); 3]));
        let any = |at: i64| check_chosen(&call("MPI_Waitany", &[requests(), ("indx", Value::Int(at))]));
        assert!(any(0).is_ok() && any(2).is_ok());
        assert_eq!(any(3).unwrap_err().to_string(), "indx cannot be 3: it was given 3 requests");
        assert!(any(-1).is_err() && any(1 << 30).is_err());
        let none = ("indx", Value::Name("MPI_UNDEFINED"));
        assert!(check_chosen(&call("MPI_Waitany", &[requests(), none])).is_ok());
        let some = |count: i64, list: &[i64]| {
            let indices = Value::List(list.iter().map(|at| Value::Int(*at)).collect());
            let given = [requests(), ("outcount", Value::Int(count)), ("array_of_indices", indices)];
            check_chosen(&call("MPI_Waitsome", &given))
        };
        assert!(some(2, &[2, 0]).is_ok());
        assert!(some(4, &[0]).is_err() && some(1, &[3]).is_err());
    }

    #[test]
    fn rooms_are_used_again_and_do_not_move() {
        let mut room = Room::default();
        assert!(room.is_empty());
        let first = room.bytes(16);
        let more: Vec<*mut u8> = (0..Room::LEAST).map(|_| room.bytes(24)).collect();
        for (k, place) in more.iter().enumerate() {
            // SAFETY: they have as many bytes, and none of them has moved.
            unsafe { place.write_bytes(k as u8, 24) };
        }
        // SAFETY: as above.
        assert!(more.iter().enumerate().all(|(k, place)| unsafe { place.add(23).read() } == k as u8));
        assert!(!room.is_empty());
        room.clear();
        assert!(room.is_empty());
        assert_eq!(room.bytes(16), first);
        // SAFETY: as above.
        assert_eq!(unsafe { room.bytes(8 * Room::LEAST).read() }, 0);
    }

    #[test]
    fn arrays_are_as_long_as_a_call_needs() {
        let list = |count: usize| Value::List(vec![Value::Int(1); count]);
        let elements = |name: &str, parameter: &str, given: &[(&str, Value)]| {
            let call = call(name, given);
            let at = call.function.index_of(parameter).unwrap();
            elements(&call, at, 0, &Around).map_err(|why| why.to_string())
        };
        assert_eq!(elements("MPI_Group_incl", "ranks", &[("n", Value::Int(5))]), Ok(5));
        assert_eq!(elements("MPI_Group_range_incl", "ranges", &[("n", Value::Int(5))]), Ok(15));
        assert_eq!(elements("MPI_Alltoallv", "sendcounts", &[]), Ok(1000));
        assert_eq!(elements("MPI_Cart_rank", "coords", &[]), Ok(3));
        let requests = [("array_of_requests", list(2000)), ("incount", Value::Int(2000))];
        assert_eq!(elements("MPI_Waitsome", "array_of_indices", &requests), Ok(2000));
        let contents = [("max_integers", Value::Int(i32::MAX.into()))];
        let refused = "array_of_integers: an array of 2147483647 elements";
        assert_eq!(elements("MPI_Type_get_contents", "array_of_integers", &contents), Err(refused.into()));
        let numbers = |all: &[i64]| Value::List(all.iter().map(|n| Value::Int(*n)).collect());
        let edges = |all| elements("MPI_Graph_create", "edges", &[("indx", numbers(all))]);
        assert_eq!(edges(&[1, 3, 3]), Ok(3));
        assert!(edges(&[1000, 2]).is_err() && edges(&[-1, 2]).is_err());
        let degrees = |all| elements("MPI_Dist_graph_create", "destinations", &[("degrees", numbers(all))]);
        assert_eq!(degrees(&[1, 3]), Ok(4));
        assert!(degrees(&[5, -1]).is_err());
    }
}
