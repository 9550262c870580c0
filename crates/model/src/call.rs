//! A call as every reader sees it: decoded, with names, free of any library's numbers.

use crate::{Class, Function};

/// One call of one rank, as it happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub function: &'static Function,
    /// One value for each parameter, in order.
    pub args: Vec<Value>,
    /// The returned error code or `MPI_Aint`; `Unset` for clocks, whose results are kept with their times.
    pub result: Value,
    /// What was observed beside the arguments: the group (in world ranks) of a new communicator, the size and extent
    /// of a new datatype.
    pub facts: Vec<(&'static str, Value)>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// An output the call did not write, or an argument that is not significant on this rank.
    Unset,
    Int(i64),
    Bool(bool),
    /// A constant of MPI: `MPI_INT`, `MPI_PROC_NULL`, `MPI_IN_PLACE`.
    Name(&'static str),
    /// Several bits of one mask, by name.
    Mask(Vec<&'static str>),
    Text(String),
    /// An object made at run time, by its symbolic id: see [`maker_of`].
    Object(Class, u32),
    /// A communicator, by the name all its members know it by: `world`, `self`, `world.0`, ...
    Comm(String),
    Address(Address),
    Status(Status),
    List(Vec<Value>),
    /// A number the call read and wrote: its value before and after.
    InOut(Box<Value>, Box<Value>),
}

/// The lower bits of an object's id are its number among those of the thread that made it.
pub const NUMBER_BITS: u32 = 20;

/// The thread that made an object, and the object's number among those that this thread made.
pub fn maker_of(id: u32) -> (u32, u32) {
    (id >> NUMBER_BITS, id & ((1 << NUMBER_BITS) - 1))
}

/// A place in the program's memory: which segment, and how far into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    pub area: Area,
    /// Which GPU, as the program numbers them, for [`Area::Gpu`]; otherwise 0.
    pub device: u32,
    pub segment: u32,
    pub offset: i64,
}

/// The numbers are in trace files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Area {
    Heap = 0,
    Static = 1,
    Stack = 2,
    /// Memory that no hook saw being allocated.
    Other = 3,
    /// Not an address at all: the number itself is in `offset`.
    Number = 4,
    /// The memory of a GPU.
    Gpu = 5,
    /// Memory that moves between a GPU and the host.
    Managed = 6,
    /// Host memory that a GPU's runtime allocated and locked in place.
    Pinned = 7,
}

impl Area {
    pub const ALL: [Area; 8] = [
        Area::Heap,
        Area::Static,
        Area::Stack,
        Area::Other,
        Area::Number,
        Area::Gpu,
        Area::Managed,
        Area::Pinned,
    ];

    pub fn from_number(number: u8) -> Option<Area> {
        Area::ALL.into_iter().find(|&area| area as u8 == number)
    }
}

/// A status, as far as MPI defines it: of a completed send, say, only whether it was cancelled.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// A rank, or MPI_ANY_SOURCE / MPI_PROC_NULL; `Unset` where it is not defined.
    pub source: Box<Value>,
    /// A tag, or MPI_ANY_TAG; `Unset` where it is not defined.
    pub tag: Box<Value>,
    /// Bytes received, read or written.
    pub bytes: Option<i64>,
    pub cancelled: Option<bool>,
    /// Only where the call returned `MPI_ERR_IN_STATUS`.
    pub error: Option<i64>,
}
