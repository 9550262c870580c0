//! What the encoder asks of the process it lives in: memory under the run-time ABI, and local questions to MPI.

use refrain_model::{Address, Amount, Class};

/// A status as the library's own layout gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RawStatus {
    pub source: i32,
    pub tag: i32,
    pub error: i32,
    pub bytes: i64,
    pub cancelled: bool,
}

/// A communicator as its caller sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommInfo {
    /// The caller's rank in its own group.
    pub rank: i32,
    pub size: i32,
    /// The remote group's size, of an inter-communicator.
    pub remote_size: Option<i32>,
    /// The group's members as ranks of the world communicator.
    pub world: Vec<i32>,
    pub remote_world: Vec<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Topology {
    pub indegree: usize,
    pub outdegree: usize,
    /// Dimensions of a Cartesian communicator.
    pub dims: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DatatypeInfo {
    pub size: i64,
    pub lb: i64,
    pub extent: i64,
}

/// The process's memory as the library lays it out. Several threads may read at once.
///
/// Implementations read through pointers the program passed to MPI; the encoder asks only for what the call table says
/// is there.
pub trait Memory {
    /// A handle passed by value, without the rubbish that may stand in the upper half of its register.
    fn handle(&self, class: Class, raw: usize) -> u64;
    fn handle_at(&self, class: Class, pointer: usize, index: usize) -> u64;
    /// How far apart handles lie in an array.
    fn handle_size(&self, class: Class) -> usize;
    fn status_at(&self, pointer: usize, index: usize) -> RawStatus;
    /// A 4-byte signed integer.
    fn int_at(&self, pointer: usize, index: usize) -> i64;
    /// An 8-byte signed integer.
    fn wide_at(&self, pointer: usize, index: usize) -> i64;
    fn pointer_at(&self, pointer: usize, index: usize) -> usize;
    /// Appends a C string (at most `max` bytes of it) to `out`.
    fn text_at(&self, pointer: usize, max: usize, out: &mut Vec<u8>);
    /// Whether all of these bytes can be read. Asked only about calls that failed.
    fn readable(&self, pointer: usize, bytes: usize) -> bool;
}

/// The process under observation. Nothing here communicates with other processes.
pub trait Host: Memory {
    /// Which segment an address lies in; `None` where addresses are not kept.
    fn locate(&mut self, pointer: usize) -> Option<Address>;
    /// Changes whenever an address may have come to lie in another segment.
    fn places(&mut self) -> u64;
    /// Whether an address that was just located stays in its segment until `places` changes.
    fn lasting(&mut self, pointer: usize) -> bool;
    /// A function of the program, named so that it means the same in every process.
    fn function_name(&mut self, pointer: usize) -> String;
    fn comm(&mut self, handle: u64) -> CommInfo;
    fn topology(&mut self, handle: u64) -> Topology;
    /// Neighbours of any rank in a graph's communicator.
    fn neighbours_of(&mut self, comm: u64, rank: i64) -> usize;
    /// About an object, or a category of the tool interface.
    fn amount(&mut self, amount: Amount, of: u64, large: bool) -> usize;
    /// The caller's rank in a window's group.
    fn win_rank(&mut self, handle: u64) -> i32;
    fn datatype(&mut self, handle: u64) -> DatatypeInfo;
}
