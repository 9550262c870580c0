//! A call's arguments as the words that C passes, and what lies behind them.

use std::ffi::CString;

use refrain_model::{CType, Call, Class, Dir, Kind, Param, Status, Value};
use refrain_mpi::Abi;
use refrain_views::human::plural;
use refrain_views::value::shown;

use crate::ahead::before;
use crate::memory::LEAST_ADDRESS;
use crate::stand_ins;

/// What arguments point at: it must live as long as MPI may look at it.
#[derive(Debug, Default)]
pub struct Room {
    /// Of the last one so many words are taken.
    cells: Vec<Box<[u64]>>,
    taken: usize,
    texts: Vec<CString>,
    pointers: Vec<Box<[usize]>>,
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
    }

    /// Nobody looks at it.
    pub fn is_empty(&self) -> bool {
        self.taken == 0 && self.cells.len() < 2 && self.texts.is_empty() && self.pointers.is_empty()
    }

    /// All zero.
    fn bytes(&mut self, bytes: usize) -> *mut u8 {
        let words = bytes.div_ceil(8).max(1);
        if self.cells.last().is_none_or(|cells| cells.len() - self.taken < words) {
            self.cells.push(vec![0u64; words.max(Room::LEAST)].into_boxed_slice());
            self.taken = 0;
        }
        let from = self.taken;
        self.taken += words;
        let cells = self.cells.last_mut().and_then(|cells| cells.get_mut(from..from + words));
        cells.map_or(std::ptr::null_mut(), |cells| {
            cells.fill(0);
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
    /// Where a buffer is, with room for so many bytes.
    fn place(&self, address: refrain_model::Address, bytes: usize) -> std::io::Result<usize>;
    /// Of a buffer that the trace does not tell.
    fn somewhere(&self, bytes: usize) -> std::io::Result<usize>;
    /// What the library has under that name.
    fn named(&self, name: &'static str) -> Named;
    /// Ranks of the world.
    fn world(&self) -> usize;
    /// How far elements of that type reach.
    fn span(&self, datatype: &Value) -> Span;
    /// An address that was a number to the program.
    fn address(&self, then: i64) -> i64;
    /// Where the handle of a request lies, as long as there is one: libraries may have one handle for several requests,
    /// which are told apart by their place.
    fn request(&self, id: u32) -> *mut u8;
}

/// Elements of an output that is an array: at least as many as the call may write.
fn most_elements(call: &Call, world: usize) -> usize {
    let numbers = call.function.params.iter().zip(&call.args).filter(|(p, _)| p.len.is_empty());
    let numbers = numbers.filter_map(|(_, value)| match before(value) {
        Value::Int(number) => usize::try_from(*number).ok().filter(|number| *number < 1 << 24),
        _ => None,
    });
    let lists = call.args.iter().map(|value| match before(value) {
        Value::List(list) => list.len(),
        _ => 0,
    });
    numbers.chain(lists).max().unwrap_or(0).max(world).max(64)
}

/// How far elements of a datatype reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// From one element to the next, in bytes.
    pub step: usize,
    /// So far from where it begins an element may reach, in either direction.
    pub reach: usize,
}

impl Span {
    pub const BYTE: Span = Span { step: 1, reach: 1 };

    fn or(self, other: Span) -> Span {
        Span { step: self.step.max(other.step), reach: self.reach.max(other.reach) }
    }
}

/// Topologies may have more neighbours than the world has ranks.
const MOST_NEIGHBOURS: u128 = 64;

/// At least as many bytes as any buffer of the call needs, behind where it begins or before.
fn most_bytes(call: &Call, around: &impl Surroundings) -> usize {
    let mut span = Span::BYTE;
    let (mut most, mut parts, mut lists) = (1u128, 1u128, None);
    for (p, value) in call.function.params.iter().zip(&call.args) {
        match (p.kind, before(value)) {
            (Kind::Handle(Class::Datatype), Value::List(types)) => {
                span = types.iter().fold(span, |span, one| span.or(around.span(one)));
            }
            (Kind::Handle(Class::Datatype), one) => span = span.or(around.span(one)),
            (Kind::Int, Value::Int(number)) if p.name == "partitions" => parts = number.unsigned_abs().into(),
            (Kind::Int, Value::Int(number)) if p.dir != Dir::Out && *number < LEAST_ADDRESS => {
                most = most.max(number.unsigned_abs().into());
            }
            (Kind::Int, Value::List(list)) if p.dir != Dir::Out => {
                let numbers = || {
                    list.iter().filter_map(|one| match one {
                        Value::Int(number) => Some(u128::from(number.unsigned_abs())),
                        _ => None,
                    })
                };
                // A part of a buffer ends at the most at the furthest displacement and the greatest count, or one behind the
                // other.
                let sum =
                    if p.name.contains("count") { numbers().sum() } else { numbers().max().unwrap_or(0) };
                lists = Some(lists.unwrap_or(0) + sum);
            }
            _ => {}
        }
    }
    let elements = match lists {
        Some(lists) => most.max(lists),
        // A part for each rank.
        None if call.function.families.contains(&"coll") => {
            most.saturating_mul((around.world() as u128 + 1).max(MOST_NEIGHBOURS))
        }
        None => most.saturating_mul(parts),
    };
    let bytes = elements.saturating_mul(span.step as u128).saturating_add(span.reach as u128);
    usize::try_from(bytes).unwrap_or(usize::MAX)
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
    // Only arrays and strings that the call writes ask for it.
    let behind = |p: &Param| !p.len.is_empty() || p.dir != Dir::In && p.kind == Kind::String;
    let asks = call.function.params.iter().any(behind);
    let most = if asks { most_elements(call, around.world()) } else { 0 };
    for (p, value) in call.function.params.iter().zip(&call.args) {
        words.push(word(call, p, value, most, around, room)?);
    }
    Ok(())
}

fn word(
    call: &Call,
    p: &'static Param,
    value: &Value,
    most: usize,
    around: &impl Surroundings,
    room: &mut Room,
) -> Result<usize, Unmade> {
    let abi = around.abi();
    let given = before(value);
    let refused = || Unmade::Value { parameter: p.name, value: shown(given) };
    // As the program gave it: an array without elements.
    if *given == Value::Name("NULL") {
        return Ok(0);
    }
    // An address that stands for something, in whatever parameter.
    if let Value::Name(name) = given
        && let Some(pointer) = around.named(name).pointer
    {
        return Ok(pointer);
    }
    match p.kind {
        Kind::Buffer => {
            let bytes = most_bytes(call, around);
            let placed = match given {
                Value::Address(address) => around.place(*address, bytes),
                Value::Unset => around.somewhere(bytes),
                _ => return Err(refused()),
            };
            placed.map_err(|error| Unmade::Memory { parameter: p.name, why: error.to_string() })
        }
        Kind::Value => match given {
            Value::Address(address) => around
                .place(*address, 8)
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
            _ => Ok(0),
        },
        Kind::String => Ok(room.bytes(STRING.max(most)) as usize),
        Kind::Strings => match given {
            Value::List(texts) => room.texts(texts).ok_or_else(refused),
            _ => Ok(0),
        },
        Kind::StringsOfStrings => Ok(0),
        Kind::ArgCount => match given {
            Value::Int(count) => {
                let cell = room.bytes(8);
                // SAFETY: a cell of eight bytes.
                unsafe { write(cell, 0, 4, *count as u64) };
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
                let count = if p.len.is_empty() { 1 } else { most };
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
            let count = if p.len.is_empty() { 1 } else { most.max(list.len()) };
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
    Ok(match value {
        // Without a meaning on this rank; libraries look at it all the same.
        Value::Unset => match p.kind {
            Kind::Handle(Class::Datatype) => abi.byte as usize,
            Kind::Handle(Class::Op) => abi.handle("MPI_SUM").unwrap_or(0) as usize,
            _ => 0,
        },
        // Displacements in windows are of another rank's memory.
        Value::Int(number) if p.ctype == CType::Aint && p.name != "target_disp" => {
            around.address(*number) as usize
        }
        Value::Int(number) => *number as usize,
        Value::Bool(yes) => usize::from(*yes),
        Value::Name(name) => {
            let Named { handle, number, .. } = around.named(name);
            let (handle, number) =
                (handle.map(|handle| handle as usize), number.map(|number| number as usize));
            let named = if matches!(p.kind, Kind::Handle(_)) { handle.or(number) } else { number };
            named.ok_or_else(|| missing(name))?
        }
        Value::Mask(names) => {
            let mut bits = 0;
            for name in names {
                bits |= abi.constant_int(name).ok_or_else(|| missing(name))?;
            }
            bits as usize
        }
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
        other => return Err(Unmade::Value { parameter: p.name, value: shown(other) }),
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
        fn place(&self, _: refrain_model::Address, _: usize) -> std::io::Result<usize> {
            Ok(0)
        }
        fn somewhere(&self, _: usize) -> std::io::Result<usize> {
            Ok(0)
        }
        fn named(&self, _: &'static str) -> Named {
            Named::default()
        }
        fn world(&self) -> usize {
            1000
        }
        fn span(&self, datatype: &Value) -> Span {
            match datatype {
                Value::Name("MPI_INT") => Span { step: 4, reach: 4 },
                // Elements that lie into each other.
                _ => Span { step: 8, reach: 1 << 30 },
            }
        }
        fn address(&self, then: i64) -> i64 {
            then
        }
        fn request(&self, _: u32) -> *mut u8 {
            std::ptr::null_mut()
        }
    }

    fn bytes(name: &str, given: &[(&str, Value)]) -> usize {
        most_bytes(&call(name, given), &Around)
    }

    fn call(name: &str, given: &[(&str, Value)]) -> Call {
        let function = refrain_model::function(name).unwrap();
        let mut args = vec![Value::Unset; function.params.len()];
        for (parameter, value) in given {
            args[function.index_of(parameter).unwrap()] = value.clone();
        }
        Call { function, args, result: Value::Int(0), facts: Vec::new() }
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
    fn buffers_are_as_large_as_a_call_needs() {
        let int = || Value::Name("MPI_INT");
        let list = |numbers: &[i64]| Value::List(numbers.iter().map(|n| Value::Int(*n)).collect());
        assert_eq!(bytes("MPI_Send", &[("count", Value::Int(10)), ("datatype", int())]), 44);
        let strange = Value::Object(Class::Datatype, 3);
        assert_eq!(bytes("MPI_Send", &[("count", Value::Int(10)), ("datatype", strange)]), 80 + (1 << 30));
        let parts = [("count", Value::Int(10)), ("partitions", Value::Int(7)), ("datatype", int())];
        assert_eq!(bytes("MPI_Psend_init", &parts), 284);
        let gather = [("sendcount", Value::Int(10)), ("sendtype", int()), ("recvtype", int())];
        assert_eq!(bytes("MPI_Allgather", &gather), 4 * 10 * 1001 + 4);
        let (counts, displs) = (list(&[3, 4, 5]), list(&[0, 30, 20]));
        let gatherv = [("recvcounts", counts), ("displs", displs), ("sendtype", int()), ("recvtype", int())];
        assert_eq!(bytes("MPI_Allgatherv", &gatherv), 4 * (12 + 30) + 4);
        assert_eq!(bytes("MPI_Get_address", &[("address", Value::Int(1 << 46))]), 2);
    }
}
