//! The call table's types, and look-up in it. The table itself is `calls.txt`, compiled by `build.rs`.

/// One C function of MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Assigned in `calls.txt`, never reused, never renumbered: it is what trace files contain.
    pub id: u16,
    pub name: &'static str,
    /// MPI version that introduced it, times ten: 31 (3.1 or earlier), 40, 41, 50.
    pub since: u8,
    pub returns: Returns,
    /// The requests it creates survive completion (`MPI_Send_init`, `MPI_Bcast_init`, ...).
    pub persistent: bool,
    /// Handle conversions and the like, which Fortran layers call on their own: passed through, never recorded.
    pub silent: bool,
    /// Asks whether something has happened and returns at once (`MPI_Test*`, `MPI_Iprobe`, ...): programs call it again
    /// and again.
    pub poll: bool,
    /// The kinds of call it is one of, as users choose them (`p2p`, `coll`, `rma`, ...).
    pub families: &'static [&'static str],
    pub params: &'static [Param],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    /// `int`, an MPI error code.
    Code,
    /// `double` in a floating-point register (`MPI_Wtime`, `MPI_Wtick`): a clock reading, kept with exact times alone.
    Clock,
    /// `MPI_Aint`: the value itself.
    Aint,
    /// A handle or `MPI_Fint` (conversions; only on `silent` functions).
    Converted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    pub name: &'static str,
    pub dir: Dir,
    /// The C type of one element, without `const`, pointers and brackets.
    pub ctype: CType,
    pub kind: Kind,
    /// Length in elements; the smallest of the rules holds. Empty: a scalar (behind a pointer when `dir` is not In,
    /// or when the kind is behind a pointer by nature: Status, String, ...).
    pub len: &'static [Len],
    /// The parameter is significant only where all of these hold.
    pub when: &'static [Cond],
    /// What the call does to the object(s) behind a handle.
    pub effect: Effect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dir {
    In,
    Out,
    InOut,
}

/// How wide one element is and how C spells it. Handles have the width of the run-time ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CType {
    Int,
    Aint,
    Count,
    Offset,
    Fint,
    /// `void`, behind at least one pointer.
    Void,
    Char,
    Handle(Class),
    Status,
    /// A function pointer; the typedef's name.
    Function(&'static str),
    /// An enumeration of the tool interface (an int), the typedef's name.
    ToolEnum(&'static str),
    /// A C type that is never looked into (`MPI_F08_status`), its name.
    Other(&'static str),
    Varargs,
}

/// Every kind of opaque object. The numbers are in trace files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    Comm = 0,
    Group = 1,
    Datatype = 2,
    Op = 3,
    Request = 4,
    Win = 5,
    File = 6,
    Info = 7,
    Errhandler = 8,
    /// An `int` in C, but an object all the same.
    Keyval = 9,
    Message = 10,
    Session = 11,
    ToolEnum = 12,
    ToolCvar = 13,
    ToolPvar = 14,
    ToolPvarSession = 15,
    ToolEventRegistration = 16,
    ToolEventInstance = 17,
}

/// What a parameter means. Indices name other parameters of the same function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A plain number: count, size, offset, displacement, dimension, index, version, error code ...
    Int,
    /// A number that may be `MPI_UNDEFINED` (colours, indices, `MPI_Get_count`).
    Undefinable,
    /// `int` used as a truth value.
    Logical,
    /// May be `MPI_ANY_TAG`.
    Tag,
    /// A rank that tends to move with the caller's own: stored relative to it. The index names the communicator or
    /// window parameter. May be ANY_SOURCE, PROC_NULL, ROOT.
    Peer(u8),
    /// A root: stored as it is. May be ROOT or PROC_NULL. The index names the communicator or window parameter.
    Root(u8),
    /// A rank in a group that is not the caller's communicator (`MPI_Group_incl`): stored as it is; may be PROC_NULL
    /// or UNDEFINED.
    Rank,
    /// One of a named set of integer constants, by the set's name (see `Constants`).
    Enum(&'static str),
    /// An or of named bits, by the set's name.
    Mask(&'static str),
    Handle(Class),
    Status,
    /// An address the program owns: a choice buffer.
    Buffer,
    /// `void *` that MPI only hands back: an attribute's value, extra state. No number in it stands for anything.
    Value,
    /// `void *` that points at a pointer the call fills in (`MPI_Alloc_mem`, `MPI_Win_allocate`).
    OutPointer,
    /// `void *` that points at a pointer-or-integer the call fills in (`*_get_attr`).
    OutAttribute,
    /// A C string. For outputs `len` may name the parameter that holds the resulting length.
    String,
    /// A NULL-terminated (or `len`-long) array of C strings; `MPI_ARGV_NULL`.
    Strings,
    /// `len` arrays of C strings, each NULL-terminated; `MPI_ARGVS_NULL`.
    StringsOfStrings,
    /// `int *argc` of `MPI_Init`.
    ArgCount,
    /// `char ***argv` of `MPI_Init`, as long as `*argc`.
    ArgVector,
    /// A function: named if predefined, otherwise by module and offset.
    Function,
    /// Not recorded (varargs, opaque Fortran statuses).
    Skip,
}

/// How long an array is. Indices name other parameters of the same function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Len {
    /// The value of that parameter (behind its pointer where it is an output); below zero counts as zero. Of an InOut
    /// parameter the smaller of what it was before and after the call; a string then counts its NUL.
    Param(u8),
    /// Three times that parameter's value.
    Triple(u8),
    /// Ranks a collective on that communicator addresses: remote size of an inter-communicator, otherwise the size.
    Size(u8),
    /// Size of the caller's own group of that communicator.
    LocalSize(u8),
    /// Neighbours the caller receives from / sends to in that communicator's topology.
    InDegree(u8),
    OutDegree(u8),
    /// Dimensions of that Cartesian communicator.
    CartDims(u8),
    /// Sum of that array parameter's elements.
    Sum(u8),
    /// Last element of that array parameter.
    Last(u8),
    /// A fixed number.
    Fixed(u16),
    /// What the library says about that parameter, where the program may give more room than the call uses.
    Asked(Amount, u8),
    /// Neighbours that a rank has in a graph: the communicator, and the rank.
    Neighbours(u8, u8),
}

/// Something about an object that only the library knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    GraphNodes,
    GraphEdges,
    /// Neighbours of a distributed graph that have weights: none where it was made without.
    InWeights,
    OutWeights,
    /// What a datatype was made with.
    Integers,
    Addresses,
    LargeCounts,
    Datatypes,
    /// Members of a category of the tool interface.
    Cvars,
    Pvars,
    Categories,
    Events,
}

/// Where a parameter is significant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cond {
    /// At the root named by that parameter (its Kind::Root says in which communicator); in an inter-communicator,
    /// where that parameter is MPI_ROOT.
    AtRoot(u8),
    /// Where data flows to or from a non-root too: everywhere in an intra-communicator; in an inter-communicator
    /// unless that parameter is MPI_ROOT or MPI_PROC_NULL.
    AtLeaf(u8),
    /// Unless that parameter is MPI_PROC_NULL (both sides of an inter-communicator broadcast).
    NotNull(u8),
    /// Unless that buffer parameter is MPI_IN_PLACE.
    NotInPlace(u8),
    /// Where that logical output came back true.
    Flag(u8),
    /// Unless that output came back MPI_UNDEFINED.
    Defined(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    None,
    /// The call makes new objects (outputs).
    Create,
    /// The call makes a new communicator, named by this rule on every member without communicating.
    CreateComm(Scope),
    /// The output is an object that exists already (`MPI_Comm_get_parent`, `*_get_errhandler`).
    Alias,
    /// The object's id goes back to its pool.
    Free,
    /// Persistent requests become active (`MPI_Start`, `MPI_Startall`).
    Start,
    /// Requests that the call may complete (`MPI_Wait*`, `MPI_Test*`): freed unless persistent.
    Complete,
}

/// Who takes part in making a communicator; indices name parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Collective over that communicator: named parent + how many were made from it before.
    Parent(u8),
    /// As Parent, but usable only when the request in the second parameter completes (`MPI_Comm_idup`).
    ParentLater(u8, u8),
    /// Collective over the members of the new communicator alone (`MPI_Comm_create_group`, `..._from_group`).
    Members,
    /// Two groups that meet (`MPI_Intercomm_create`).
    Inter,
    /// Other processes come in (`MPI_Comm_spawn`, `MPI_Comm_accept`, `MPI_Comm_get_parent`).
    Process,
}

include!(concat!(env!("OUT_DIR"), "/calls.rs"));

/// All functions, by name.
pub fn functions() -> &'static [Function] {
    FUNCTIONS
}

pub fn function(name: &str) -> Option<&'static Function> {
    FUNCTIONS.binary_search_by(|f| f.name.cmp(name)).ok().map(|i| &FUNCTIONS[i])
}

pub fn function_by_id(id: u16) -> Option<&'static Function> {
    BY_ID.get(usize::from(id)).copied().filter(|&i| i != u16::MAX).map(|i| &FUNCTIONS[usize::from(i)])
}

/// All families that something is recorded of, by name.
pub fn families() -> Vec<&'static str> {
    let mut all: Vec<&str> =
        FUNCTIONS.iter().filter(|f| !f.silent).flat_map(|f| f.families).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl CType {
    /// Eight bytes, not four.
    pub fn is_wide(self) -> bool {
        matches!(self, CType::Aint | CType::Count | CType::Offset)
    }
}

impl Kind {
    /// Whether a constant of MPI can stand where a number or a handle of this kind does. Of other kinds it says nothing: true.
    pub fn can_be(self, constant: &str) -> bool {
        let Some(constant) = crate::constant(constant) else { return false };
        match self {
            Kind::Int | Kind::Logical | Kind::ArgCount => false,
            Kind::Tag => constant.set == "tag",
            Kind::Undefinable => constant.set == "undefined",
            Kind::Root(_) => constant.set == "rank",
            // What a status says that no message has filled in is named too.
            Kind::Peer(_) | Kind::Rank => matches!(constant.set, "rank" | "undefined"),
            Kind::Handle(class) => constant.set == class.set(),
            // Some sets have the constants of others too.
            Kind::Enum(set) | Kind::Mask(set) => {
                constant.set == set || crate::constants_of(set).any(|one| one == constant)
            }
            _ => true,
        }
    }

    /// What is kept as a number, or several of them.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            Kind::Int
                | Kind::Undefinable
                | Kind::Logical
                | Kind::Tag
                | Kind::Peer(_)
                | Kind::Root(_)
                | Kind::Rank
                | Kind::Enum(_)
                | Kind::Mask(_)
                | Kind::ArgCount
        )
    }
}

impl Function {
    /// Where that parameter stands.
    pub fn index_of(&self, param: &str) -> Option<usize> {
        self.params.iter().position(|p| p.name == param)
    }

    /// Whether a call changes or gives back something it was given, which has to be looked at before.
    pub fn overwrites(&self) -> bool {
        let given_back = |p: &Param| p.kind == Kind::Buffer && p.effect == Effect::Free;
        self.params.iter().any(|p| p.dir == Dir::InOut || given_back(p))
    }
}
