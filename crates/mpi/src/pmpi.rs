//! The MPI functions that Refrain calls itself, under their profiling names, on any family.
//!
//! All arguments travel as `usize`: each takes one integer register whatever its C type is, and a callee looks only
//! at the low half of a register that holds an `int`.

use crate::abi::Abi;
use crate::library::Library;
use crate::status::RawStatus;
use libc::{c_int, c_void};

/// An MPI error code.
pub type Code = i32;

// An error handler of the program may throw.
type Fn1 = unsafe extern "C-unwind" fn(usize) -> c_int;
type Fn2 = unsafe extern "C-unwind" fn(usize, usize) -> c_int;
type Fn3 = unsafe extern "C-unwind" fn(usize, usize, usize) -> c_int;
type Fn4 = unsafe extern "C-unwind" fn(usize, usize, usize, usize) -> c_int;
type Fn5 = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize) -> c_int;
type Fn6 = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize) -> c_int;
type Fn7 = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize, usize) -> c_int;

type Fn8 = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize, usize, usize) -> c_int;

macro_rules! table {
    (
        needed { $($field:ident: $type:ty = $name:literal,)* }
        spare { $($spare:ident: $spare_type:ty = $spare_name:literal,)* }
    ) => {
        /// The resolved pointers; `None` where a library lacks one that tracing can do without.
        #[derive(Debug, Clone, Copy)]
        struct Pointers {
            $($field: $type,)*
            $($spare: Option<$spare_type>,)*
        }

        impl Pointers {
            /// # Safety
            /// What the library exports under these names has MPI's prototypes.
            unsafe fn new(library: &Library) -> Result<Pointers, MissingFunction> {
                Ok(Pointers {
                    $($field: {
                        let address: *const c_void = library.symbol($name).ok_or(MissingFunction($name))?;
                        // SAFETY: promised by the caller, and the number of arguments below is MPI's.
                        unsafe { std::mem::transmute::<*const c_void, $type>(address) }
                    },)*
                    $($spare: library.symbol($spare_name).map(|address: *const c_void| {
                        // SAFETY: as above.
                        unsafe { std::mem::transmute::<*const c_void, $spare_type>(address) }
                    }),)*
                })
            }
        }
    };
}

table! {
    needed {
        initialized: Fn1 = "PMPI_Initialized",
        get_library_version: Fn2 = "PMPI_Get_library_version",
        comm_rank: Fn2 = "PMPI_Comm_rank",
        comm_size: Fn2 = "PMPI_Comm_size",
        comm_remote_size: Fn2 = "PMPI_Comm_remote_size",
        comm_test_inter: Fn2 = "PMPI_Comm_test_inter",
        comm_get_parent: Fn1 = "PMPI_Comm_get_parent",
        comm_group: Fn2 = "PMPI_Comm_group",
        comm_remote_group: Fn2 = "PMPI_Comm_remote_group",
        comm_create_group: Fn4 = "PMPI_Comm_create_group",
        comm_free: Fn1 = "PMPI_Comm_free",
        comm_get_errhandler: Fn2 = "PMPI_Comm_get_errhandler",
        comm_set_errhandler: Fn2 = "PMPI_Comm_set_errhandler",
        errhandler_free: Fn1 = "PMPI_Errhandler_free",
        group_size: Fn2 = "PMPI_Group_size",
        group_rank: Fn2 = "PMPI_Group_rank",
        group_translate_ranks: Fn5 = "PMPI_Group_translate_ranks",
        group_free: Fn1 = "PMPI_Group_free",
        win_get_group: Fn2 = "PMPI_Win_get_group",
        type_size: Fn2 = "PMPI_Type_size_x",
        type_get_extent: Fn3 = "PMPI_Type_get_extent",
        topo_test: Fn2 = "PMPI_Topo_test",
        cartdim_get: Fn2 = "PMPI_Cartdim_get",
        graph_neighbors_count: Fn3 = "PMPI_Graph_neighbors_count",
        dist_graph_neighbors_count: Fn4 = "PMPI_Dist_graph_neighbors_count",
        get_elements: Fn3 = "PMPI_Get_elements_x",
        test_cancelled: Fn2 = "PMPI_Test_cancelled",
        status_set_elements: Fn3 = "PMPI_Status_set_elements_x",
        status_set_cancelled: Fn2 = "PMPI_Status_set_cancelled",
        isend: Fn7 = "PMPI_Isend",
        irecv: Fn7 = "PMPI_Irecv",
        iprobe: Fn5 = "PMPI_Iprobe",
        cancel: Fn1 = "PMPI_Cancel",
        request_free: Fn1 = "PMPI_Request_free",
        test: Fn3 = "PMPI_Test",
    }
    spare {
        finalized: Fn1 = "PMPI_Finalized",
        query_thread: Fn1 = "PMPI_Query_thread",
        is_thread_main: Fn1 = "PMPI_Is_thread_main",
        get_version: Fn2 = "PMPI_Get_version",
        error_class: Fn2 = "PMPI_Error_class",
        comm_dup: Fn2 = "PMPI_Comm_dup",
        file_get_group: Fn2 = "PMPI_File_get_group",
        send: Fn6 = "PMPI_Send",
        recv: Fn7 = "PMPI_Recv",
        probe: Fn4 = "PMPI_Probe",
        bcast: Fn5 = "PMPI_Bcast",
        request_get_status: Fn3 = "PMPI_Request_get_status",
        graphdims_get: Fn3 = "PMPI_Graphdims_get",
        type_get_envelope: Fn5 = "PMPI_Type_get_envelope",
        type_get_envelope_c: Fn6 = "PMPI_Type_get_envelope_c",
        category_get_info: Fn8 = "PMPI_T_category_get_info",
        category_get_num_events: Fn2 = "PMPI_T_category_get_num_events",
    }
}

/// A function of MPI 3.0 that the library lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the MPI library does not export {0}, which is in MPI since 3.0; use a newer one")]
pub struct MissingFunction(pub &'static str);

/// How many threads may call MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadLevel {
    Single,
    Funneled,
    Serialized,
    Multiple,
}

/// How many neighbours the caller has in a communicator's topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Neighbours {
    /// Those it receives from.
    pub incoming: usize,
    /// Those it sends to.
    pub outgoing: usize,
}

/// Calls into the MPI library.
///
/// Invariants:
/// 1. Every pointer in `table` is a function of MPI with the number of arguments its type says (`Pointers::new`).
/// 2. Every handle given to a method is live, and of the library the functions are in (`Pmpi::new`).
///
/// An error of a call goes to the error handler of its communicator first, which by default ends the program; so ask
/// only about objects that the program made successfully.
#[derive(Debug, Clone)]
pub struct Pmpi {
    table: Pointers,
    abi: Abi,
}

/// What a method says whose function the library lacks: an error, and in no library a code of MPI's.
const LACKING: Code = -1;

/// Errors of ours are returned to us as long as this is there; then the program's handlers are what they were.
#[derive(Debug)]
pub struct ReturningErrors<'a> {
    pmpi: &'a Pmpi,
    /// Communicators, and the handler that each had.
    before: [Option<(u64, u64)>; 2],
}

impl Drop for ReturningErrors<'_> {
    fn drop(&mut self) {
        for (comm, handler) in self.before.into_iter().flatten() {
            let mut handler = handler;
            // What fails now would have failed when it was taken away.
            let _ = self.pmpi.comm_set_errhandler(comm, handler);
            // SAFETY: invariants 1 and 2, and the place of a handle, which was ours.
            unsafe { (self.pmpi.table.errhandler_free)(&raw mut handler as usize) };
        }
    }
}

/// Room for one `MPI_Status` of any family.
#[repr(align(8))]
struct StatusBuffer([u8; 32]);

fn ok(code: c_int) -> Result<(), Code> {
    if code == 0 { Ok(()) } else { Err(code) }
}

/// Passes an int as a register.
fn int(value: i32) -> usize {
    value as u32 as usize
}

/// Calls with the place for an int, and gives what was put there.
fn int_out(call: impl FnOnce(usize) -> c_int) -> Result<i32, Code> {
    let mut value: c_int = 0;
    ok(call(&raw mut value as usize))?;
    Ok(value)
}

fn flag_out(call: impl FnOnce(usize) -> c_int) -> Result<bool, Code> {
    int_out(call).map(|flag| flag != 0)
}

/// Calls with the place for a handle: a library whose handles have four bytes fills the low half of it.
fn handle_out(call: impl FnOnce(usize) -> c_int) -> Result<u64, Code> {
    let mut value = 0u64;
    ok(call(&raw mut value as usize))?;
    Ok(value)
}

fn long_out(call: impl FnOnce(usize) -> c_int) -> Result<i64, Code> {
    let mut value = 0i64;
    ok(call(&raw mut value as usize))?;
    Ok(value)
}

/// A count that MPI gives as an int.
fn count(value: i32) -> usize {
    usize::try_from(value).unwrap_or(0)
}

impl Pmpi {
    /// # Safety
    /// `abi` is that of `library`, and handles given to any method are live ones of that library. Methods other than
    /// `initialized`, `finalized`, `version` and `library_version` are called between MPI's initialisation and its
    /// finalisation only.
    pub unsafe fn new(library: &Library, abi: &Abi) -> Result<Pmpi, MissingFunction> {
        // SAFETY: `Library` is an MPI library, and these are functions of MPI.
        let table = unsafe { Pointers::new(library) }?;
        Ok(Pmpi { table, abi: abi.clone() })
    }

    pub fn abi(&self) -> &Abi {
        &self.abi
    }

    /// Whether `MPI_Init` has been done; it stays true. A program that uses only sessions never does it.
    pub fn initialized(&self) -> Result<bool, Code> {
        // SAFETY: invariant 1, and the place for an int.
        flag_out(|flag| unsafe { (self.table.initialized)(flag) })
    }

    pub fn finalized(&self) -> Result<bool, Code> {
        let finalized = self.table.finalized.ok_or(LACKING)?;
        // SAFETY: invariant 1, and the place for an int.
        flag_out(|flag| unsafe { finalized(flag) })
    }

    pub fn thread_level(&self) -> Result<ThreadLevel, Code> {
        let query_thread = self.table.query_thread.ok_or(LACKING)?;
        // SAFETY: invariant 1, and the place for an int.
        let level = int_out(|level| unsafe { query_thread(level) })?;
        let is = |name| self.abi.constant_int(name) == Some(i64::from(level));
        // A level nobody knows is taken for the one that asks for most care.
        Ok(if is("MPI_THREAD_SINGLE") {
            ThreadLevel::Single
        } else if is("MPI_THREAD_FUNNELED") {
            ThreadLevel::Funneled
        } else if is("MPI_THREAD_SERIALIZED") {
            ThreadLevel::Serialized
        } else {
            ThreadLevel::Multiple
        })
    }

    pub fn is_thread_main(&self) -> Result<bool, Code> {
        let is_thread_main = self.table.is_thread_main.ok_or(LACKING)?;
        // SAFETY: invariant 1, and the place for an int.
        flag_out(|flag| unsafe { is_thread_main(flag) })
    }

    /// Version and subversion of the standard the library follows.
    pub fn version(&self) -> Result<(i32, i32), Code> {
        let get_version = self.table.get_version.ok_or(LACKING)?;
        let mut subversion: c_int = 0;
        // SAFETY: invariant 1, and the places for two ints.
        let version = int_out(|v| unsafe { get_version(v, &raw mut subversion as usize) })?;
        Ok((version, subversion))
    }

    /// What the library calls itself.
    pub fn library_version(&self) -> Result<String, Code> {
        // The longest MPI_MAX_LIBRARY_VERSION_STRING of all families, and one.
        let mut text = vec![0u8; 8193];
        let place = text.as_mut_ptr() as usize;
        // SAFETY: invariant 1, the place for that string, and for an int.
        int_out(|length| unsafe { (self.table.get_library_version)(place, length) })?;
        // Libraries disagree on whether the length counts the NUL, so the NUL decides.
        let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
        Ok(String::from_utf8_lossy(&text[..end]).trim_end().to_owned())
    }

    pub fn error_class(&self, code: Code) -> Result<i32, Code> {
        let error_class = self.table.error_class.ok_or(LACKING)?;
        // SAFETY: invariant 1, and the place for an int.
        int_out(|class| unsafe { error_class(int(code), class) })
    }

    pub fn comm_rank(&self, comm: u64) -> Result<i32, Code> {
        // SAFETY: invariants 1 and 2, and the place for an int.
        int_out(|rank| unsafe { (self.table.comm_rank)(comm as usize, rank) })
    }

    pub fn comm_size(&self, comm: u64) -> Result<i32, Code> {
        // SAFETY: invariants 1 and 2, and the place for an int.
        int_out(|size| unsafe { (self.table.comm_size)(comm as usize, size) })
    }

    /// Of inter-communicators only.
    pub fn comm_remote_size(&self, comm: u64) -> Result<i32, Code> {
        // SAFETY: invariants 1 and 2, and the place for an int.
        int_out(|size| unsafe { (self.table.comm_remote_size)(comm as usize, size) })
    }

    pub fn comm_is_inter(&self, comm: u64) -> Result<bool, Code> {
        // SAFETY: invariants 1 and 2, and the place for an int.
        flag_out(|flag| unsafe { (self.table.comm_test_inter)(comm as usize, flag) })
    }

    /// Whether another MPI program started this one (`MPI_Comm_spawn`), and is still connected with it.
    pub fn has_parent(&self) -> Result<bool, Code> {
        // SAFETY: invariant 1, and the place for a handle.
        handle_out(|parent| unsafe { (self.table.comm_get_parent)(parent) }).map(|p| p != self.abi.comm_null)
    }

    /// The caller's own group; to be freed.
    pub fn comm_group(&self, comm: u64) -> Result<u64, Code> {
        // SAFETY: invariants 1 and 2, and the place for a handle.
        handle_out(|group| unsafe { (self.table.comm_group)(comm as usize, group) })
    }

    /// The other group of an inter-communicator; to be freed.
    pub fn comm_remote_group(&self, comm: u64) -> Result<u64, Code> {
        // SAFETY: invariants 1 and 2, and the place for a handle.
        handle_out(|group| unsafe { (self.table.comm_remote_group)(comm as usize, group) })
    }

    /// Collective over the group, whatever collectives of the communicator are under way on some of its ranks. Unlike a
    /// duplicate, the result carries none of its attributes.
    ///
    /// Open MPI sends the messages for it in the communicator, with that tag: a receive of the program's takes them, if it
    /// takes any tag.
    pub fn comm_create_group(&self, comm: u64, group: u64, tag: i32) -> Result<u64, Code> {
        // SAFETY: invariants 1 and 2, and the place for a handle.
        handle_out(|new| unsafe {
            (self.table.comm_create_group)(comm as usize, group as usize, int(tag), new)
        })
    }

    /// Collective over the communicator; runs the program's attribute copy functions.
    pub fn comm_dup(&self, comm: u64) -> Result<u64, Code> {
        let comm_dup = self.table.comm_dup.ok_or(LACKING)?;
        // SAFETY: invariants 1 and 2, and the place for a handle.
        handle_out(|new| unsafe { comm_dup(comm as usize, new) })
    }

    /// Collective over the communicator.
    pub fn comm_free(&self, comm: u64) -> Result<(), Code> {
        let mut comm = comm;
        // SAFETY: invariants 1 and 2, and the place of a handle.
        ok(unsafe { (self.table.comm_free)(&raw mut comm as usize) })
    }

    pub fn comm_set_errhandler(&self, comm: u64, errhandler: u64) -> Result<(), Code> {
        // SAFETY: invariants 1 and 2.
        ok(unsafe { (self.table.comm_set_errhandler)(comm as usize, errhandler as usize) })
    }

    /// From here on errors of ours do not run the program's handlers, which by default end it: not those of the world, nor
    /// those of no communicator, which MPI 4 gives to that of the process alone. Until the result is dropped.
    pub fn returning_errors(&self) -> ReturningErrors<'_> {
        let own = [self.abi.comm_world, self.abi.comm_self].map(|comm| {
            // SAFETY: invariants 1 and 2, and the place for a handle.
            let before =
                handle_out(|handler| unsafe { (self.table.comm_get_errhandler)(comm as usize, handler) });
            let before = before.ok()?;
            self.comm_set_errhandler(comm, self.abi.errors_return).ok()?;
            Some((comm, before))
        });
        ReturningErrors { pmpi: self, before: own }
    }

    pub fn group_size(&self, group: u64) -> Result<i32, Code> {
        // SAFETY: invariants 1 and 2, and the place for an int.
        int_out(|size| unsafe { (self.table.group_size)(group as usize, size) })
    }

    /// The caller's rank in the group, `MPI_UNDEFINED` if it is none of it.
    pub fn group_rank(&self, group: u64) -> Result<i32, Code> {
        // SAFETY: invariants 1 and 2, and the place for an int.
        int_out(|rank| unsafe { (self.table.group_rank)(group as usize, rank) })
    }

    /// Those ranks of `from`, as ranks of `to`; `MPI_UNDEFINED` for those that are none of it.
    pub fn group_translate(&self, from: u64, ranks: &[i32], to: u64) -> Result<Vec<i32>, Code> {
        let mut translated = vec![self.abi.undefined; ranks.len()];
        // No group has more members than an int can count, but the caller's list may repeat some.
        let chunk = 1 << 30;
        for (ranks, translated) in ranks.chunks(chunk).zip(translated.chunks_mut(chunk)) {
            let (input, output) = (ranks.as_ptr() as usize, translated.as_mut_ptr() as usize);
            // SAFETY: invariants 1 and 2, and two arrays of that many ints.
            ok(unsafe {
                (self.table.group_translate_ranks)(from as usize, ranks.len(), input, to as usize, output)
            })?;
        }
        Ok(translated)
    }

    pub fn group_free(&self, group: u64) -> Result<(), Code> {
        let mut group = group;
        // SAFETY: invariants 1 and 2, and the place of a handle.
        ok(unsafe { (self.table.group_free)(&raw mut group as usize) })
    }

    /// To be freed.
    pub fn win_group(&self, win: u64) -> Result<u64, Code> {
        // SAFETY: invariants 1 and 2, and the place for a handle.
        handle_out(|group| unsafe { (self.table.win_get_group)(win as usize, group) })
    }

    /// To be freed.
    pub fn file_group(&self, file: u64) -> Result<u64, Code> {
        let file_get_group = self.table.file_get_group.ok_or(LACKING)?;
        // SAFETY: invariants 1 and 2, and the place for a handle.
        handle_out(|group| unsafe { file_get_group(file as usize, group) })
    }

    /// The communicator's own group in ranks of `MPI_COMM_WORLD`; `MPI_UNDEFINED` for those that are none of it.
    pub fn comm_world_ranks(&self, comm: u64) -> Result<Vec<i32>, Code> {
        self.freeing(self.comm_group(comm)?, |group| self.group_world_ranks(group))
    }

    /// The other group of an inter-communicator in ranks of `MPI_COMM_WORLD`, as above.
    pub fn comm_remote_world_ranks(&self, comm: u64) -> Result<Vec<i32>, Code> {
        self.freeing(self.comm_remote_group(comm)?, |group| self.group_world_ranks(group))
    }

    /// A window's group in ranks of `MPI_COMM_WORLD`, as above.
    pub fn win_world_ranks(&self, win: u64) -> Result<Vec<i32>, Code> {
        self.freeing(self.win_group(win)?, |group| self.group_world_ranks(group))
    }

    /// A group in ranks of `MPI_COMM_WORLD`, as above.
    pub fn group_world_ranks(&self, group: u64) -> Result<Vec<i32>, Code> {
        let size = self.group_size(group)?;
        if !self.initialized()? {
            // Sessions only: there is no world.
            return Ok(vec![self.abi.undefined; count(size)]);
        }
        let ranks: Vec<i32> = (0..size).collect();
        let world = self.comm_group(self.abi.comm_world)?;
        self.freeing(world, |world| self.group_translate(group, &ranks, world))
    }

    fn freeing<T>(&self, group: u64, run: impl FnOnce(u64) -> Result<T, Code>) -> Result<T, Code> {
        let result = run(group);
        self.group_free(group)?;
        result
    }

    /// Bytes of data in one element of the type; `MPI_UNDEFINED` if they are too many.
    pub fn type_size(&self, datatype: u64) -> Result<i64, Code> {
        // SAFETY: invariants 1 and 2, and the place for an MPI_Count.
        long_out(|size| unsafe { (self.table.type_size)(datatype as usize, size) })
    }

    /// Lower bound and extent of the type.
    pub fn type_extent(&self, datatype: u64) -> Result<(i64, i64), Code> {
        let mut extent = 0i64;
        // SAFETY: invariants 1 and 2, and the places for two MPI_Aints.
        let bound = long_out(|bound| unsafe {
            (self.table.type_get_extent)(datatype as usize, bound, &raw mut extent as usize)
        })?;
        Ok((bound, extent))
    }

    /// Dimensions of a Cartesian communicator; None for any other.
    pub fn cart_dimensions(&self, comm: u64) -> Result<Option<usize>, Code> {
        if self.topology(comm)? != self.abi.cart {
            return Ok(None);
        }
        // SAFETY: invariants 1 and 2, and the place for an int.
        let dimensions = int_out(|n| unsafe { (self.table.cartdim_get)(comm as usize, n) })?;
        Ok(Some(count(dimensions)))
    }

    fn topology(&self, comm: u64) -> Result<i32, Code> {
        // SAFETY: invariants 1 and 2, and the place for an int.
        int_out(|kind| unsafe { (self.table.topo_test)(comm as usize, kind) })
    }

    /// The caller's neighbours in the communicator's topology; none if it has no topology.
    pub fn neighbours(&self, comm: u64) -> Result<Neighbours, Code> {
        if self.comm_is_inter(comm)? {
            return Ok(Neighbours::default());
        }
        let both = |n| Neighbours { incoming: n, outgoing: n };
        let topology = self.topology(comm)?;
        if topology == self.abi.cart {
            Ok(self.cart_dimensions(comm)?.map_or_else(Neighbours::default, |n| both(2 * n)))
        } else if topology == self.abi.graph {
            let rank = self.comm_rank(comm)?;
            // SAFETY: invariants 1 and 2, and the place for an int.
            let n = int_out(|n| unsafe { (self.table.graph_neighbors_count)(comm as usize, int(rank), n) })?;
            Ok(both(count(n)))
        } else if topology == self.abi.dist_graph {
            let (mut outgoing, mut weighted): (c_int, c_int) = (0, 0);
            let (out, weights) = (&raw mut outgoing as usize, &raw mut weighted as usize);
            // SAFETY: invariants 1 and 2, and the places for three ints.
            let incoming = int_out(|incoming| unsafe {
                (self.table.dist_graph_neighbors_count)(comm as usize, incoming, out, weights)
            })?;
            Ok(Neighbours { incoming: count(incoming), outgoing: count(outgoing) })
        } else {
            Ok(Neighbours::default())
        }
    }

    /// Neighbours of any rank of a graph's communicator.
    pub fn graph_neighbours(&self, comm: u64, rank: i32) -> Result<usize, Code> {
        if self.topology(comm)? != self.abi.graph {
            return Ok(0);
        }
        // SAFETY: invariants 1 and 2, and the place for an int.
        let n = int_out(|n| unsafe { (self.table.graph_neighbors_count)(comm as usize, int(rank), n) })?;
        Ok(count(n))
    }

    /// Nodes and edges of a graph's communicator.
    pub fn graph_size(&self, comm: u64) -> Result<[usize; 2], Code> {
        let Some(graphdims_get) = self.table.graphdims_get else { return Ok([0; 2]) };
        if self.topology(comm)? != self.abi.graph {
            return Ok([0; 2]);
        }
        let mut edges: c_int = 0;
        // SAFETY: invariants 1 and 2, and the places for two ints.
        let nodes = int_out(|nodes| unsafe { graphdims_get(comm as usize, nodes, &raw mut edges as usize) })?;
        Ok([count(nodes), count(edges)])
    }

    /// Edges of a distributed graph that come to the caller and go from it, if they have weights.
    pub fn graph_weights(&self, comm: u64) -> Result<[usize; 2], Code> {
        if self.topology(comm)? != self.abi.dist_graph {
            return Ok([0; 2]);
        }
        let (mut outgoing, mut weighted): (c_int, c_int) = (0, 0);
        let (out, weights) = (&raw mut outgoing as usize, &raw mut weighted as usize);
        // SAFETY: invariants 1 and 2, and the places for three ints.
        let incoming = int_out(|incoming| unsafe {
            (self.table.dist_graph_neighbors_count)(comm as usize, incoming, out, weights)
        })?;
        Ok(if weighted == 0 { [0; 2] } else { [count(incoming), count(outgoing)] })
    }

    /// What a datatype was made with: integers, addresses, large counts, datatypes. The large form counts some of them as
    /// large counts.
    pub fn type_contents(&self, datatype: u64, large: bool) -> Result<[usize; 4], Code> {
        let mut combiner: c_int = 0;
        let combiner = &raw mut combiner as usize;
        if let (true, Some(envelope)) = (large, self.table.type_get_envelope_c) {
            let mut found = [0i64; 4];
            let [integers, addresses, counts, types] = found.each_mut().map(|place| &raw mut *place as usize);
            // SAFETY: invariants 1 and 2, and the places for four MPI_Counts and an int.
            ok(unsafe { envelope(datatype as usize, integers, addresses, counts, types, combiner) })?;
            return Ok(found.map(|n| usize::try_from(n).unwrap_or(0)));
        }
        let Some(envelope) = self.table.type_get_envelope else { return Ok([0; 4]) };
        let mut found: [c_int; 3] = [0; 3];
        let [integers, addresses, types] = found.each_mut().map(|place| &raw mut *place as usize);
        // SAFETY: invariants 1 and 2, and the places for four ints.
        ok(unsafe { envelope(datatype as usize, integers, addresses, types, combiner) })?;
        let [integers, addresses, types] = found.map(count);
        Ok([integers, addresses, 0, types])
    }

    /// Members of a category of the tool interface: control variables, performance variables, categories.
    pub fn category_members(&self, category: i32) -> Result<[usize; 3], Code> {
        let Some(get_info) = self.table.category_get_info else { return Ok([0; 3]) };
        let (mut name, mut description): (c_int, c_int) = (0, 0);
        let (name, description) = (&raw mut name as usize, &raw mut description as usize);
        let mut found: [c_int; 3] = [0; 3];
        let [cvars, pvars, categories] = found.each_mut().map(|place| &raw mut *place as usize);
        // SAFETY: invariants 1 and 2, and the places for five ints; no text is asked for.
        ok(unsafe { get_info(int(category), 0, name, 0, description, cvars, pvars, categories) })?;
        Ok(found.map(count))
    }

    /// Events of a category of the tool interface.
    pub fn category_events(&self, category: i32) -> Result<usize, Code> {
        let Some(get_num) = self.table.category_get_num_events else { return Ok(0) };
        // SAFETY: invariants 1 and 2, and the place for an int.
        Ok(count(int_out(|n| unsafe { get_num(int(category), n) })?))
    }

    /// Whether `Abi::read_status` finds count and cancelled mark where this library puts them. The MPI 5 ABI does not
    /// say where that is; where the answer is no, use `read_status` below.
    pub fn status_layout_holds(&self) -> Result<bool, Code> {
        // Beyond 32 bits, each byte different, and no sign in either half.
        let bytes = 0x0123_4567_1abc_def0;
        for cancelled in [false, true] {
            let mut status = StatusBuffer([0; 32]);
            let place = status.0.as_mut_ptr();
            // SAFETY: invariants 1 and 2, and the place of a status.
            ok(unsafe {
                (self.table.status_set_elements)(place as usize, self.abi.byte as usize, bytes as usize)
            })?;
            // SAFETY: as above.
            ok(unsafe { (self.table.status_set_cancelled)(place as usize, usize::from(cancelled)) })?;
            // SAFETY: no family's status is longer than the buffer.
            let read = unsafe { self.abi.read_status(place) };
            if read.bytes != bytes || read.cancelled != cancelled {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What a status says, asking the library where the layout is its own affair.
    ///
    /// # Safety
    /// `status` points at one whole `MPI_Status` of this library.
    pub unsafe fn read_status(&self, status: *const u8) -> Result<RawStatus, Code> {
        // SAFETY: promised by the caller.
        let fields = unsafe { self.abi.read_status(status) };
        // SAFETY: invariants 1 and 2, the status, and the place for an MPI_Count.
        let bytes =
            long_out(|n| unsafe { (self.table.get_elements)(status as usize, self.abi.byte as usize, n) })?;
        // SAFETY: invariant 1, the status, and the place for an int.
        let cancelled = flag_out(|flag| unsafe { (self.table.test_cancelled)(status as usize, flag) })?;
        Ok(RawStatus { bytes, cancelled, ..fields })
    }

    /// Begins to send at most `i32::MAX` bytes.
    ///
    /// # Safety
    /// The bytes stay as they are until the request is complete.
    pub unsafe fn isend(&self, bytes: &[u8], to: i32, tag: i32, comm: u64) -> Result<u64, Code> {
        let length = self.length(bytes.len())?;
        let (data, byte) = (bytes.as_ptr() as usize, self.abi.byte as usize);
        // SAFETY: invariants 1 and 2, that many bytes, which MPI only reads, and the place for a handle.
        handle_out(|request| unsafe {
            (self.table.isend)(data, int(length), byte, int(to), int(tag), comm as usize, request)
        })
    }

    /// Begins to receive one message of at most `buffer.len()` bytes.
    ///
    /// # Safety
    /// Nobody touches the buffer until the request is complete.
    pub unsafe fn irecv(&self, buffer: &mut [u8], from: i32, tag: i32, comm: u64) -> Result<u64, Code> {
        let length = self.length(buffer.len())?;
        let (data, byte) = (buffer.as_mut_ptr() as usize, self.abi.byte as usize);
        // SAFETY: invariants 1 and 2, room for that many bytes, and the place for a handle.
        handle_out(|request| unsafe {
            (self.table.irecv)(data, int(length), byte, int(from), int(tag), comm as usize, request)
        })
    }

    /// Whether a request is complete: it is gone then, and this is how many bytes were received.
    pub fn test(&self, request: &mut u64) -> Result<Option<usize>, Code> {
        let mut status = StatusBuffer([0; 32]);
        let status = status.0.as_mut_ptr();
        let place = std::ptr::from_mut(request) as usize;
        // SAFETY: invariants 1 and 2, the place of a handle, and those for an int and a status.
        let done = flag_out(|flag| unsafe { (self.table.test)(place, flag, status as usize) })?;
        if !done {
            return Ok(None);
        }
        // SAFETY: the library has filled the status in.
        let status = unsafe { self.read_status(status) }?;
        Ok(Some(usize::try_from(status.bytes).unwrap_or(0)))
    }

    /// Whether a request is complete, or is persistent and not started; it stays.
    pub fn is_idle(&self, request: u64) -> Result<bool, Code> {
        let get_status = self.table.request_get_status.ok_or(LACKING)?;
        // SAFETY: invariants 1 and 2, and the place for an int.
        flag_out(|flag| unsafe { get_status(request as usize, flag, self.abi.status_ignore) })
    }

    /// Nobody waits for this request any more. What it sends from or receives into must stay all the same.
    pub fn let_go(&self, mut request: u64) {
        let place = &raw mut request as usize;
        // SAFETY: invariants 1 and 2, and the place of a handle. What comes of it makes no difference.
        unsafe {
            (self.table.cancel)(place);
            (self.table.request_free)(place);
        }
    }

    /// Lets MPI get on with what is under way, for other ranks may wait for it. Looks for a message, and takes none. (To
    /// look for one of this process to itself would not do: MPICH then looks at nothing else.)
    pub fn progress(&self) {
        /// The highest that every library allows: hardly any program uses it.
        const TAG: i32 = 32_767;
        let (comm, ignore) = (self.abi.comm_world as usize, self.abi.status_ignore);
        let any = int(self.abi.any_source);
        // SAFETY: invariants 1 and 2, and the place for an int. Whether there is one makes no difference.
        let _ = flag_out(|flag| unsafe { (self.table.iprobe)(any, int(TAG), comm, flag, ignore) });
    }

    /// A blocking send of at most `i32::MAX` bytes.
    pub fn send(&self, bytes: &[u8], to: i32, tag: i32, comm: u64) -> Result<(), Code> {
        let send = self.table.send.ok_or(LACKING)?;
        let length = self.length(bytes.len())?;
        let (data, byte) = (bytes.as_ptr() as usize, self.abi.byte as usize);
        // SAFETY: invariants 1 and 2, and that many bytes, which MPI only reads.
        ok(unsafe { send(data, int(length), byte, int(to), int(tag), comm as usize) })
    }

    /// A blocking receive of one message of at most `buffer.len()` bytes; gives how many came.
    pub fn recv(&self, buffer: &mut [u8], from: i32, tag: i32, comm: u64) -> Result<usize, Code> {
        let recv = self.table.recv.ok_or(LACKING)?;
        let length = self.length(buffer.len())?;
        let mut status = StatusBuffer([0; 32]);
        let place = status.0.as_mut_ptr();
        let (data, byte) = (buffer.as_mut_ptr() as usize, self.abi.byte as usize);
        // SAFETY: invariants 1 and 2, room for that many bytes, and the place for a status.
        ok(unsafe { recv(data, int(length), byte, int(from), int(tag), comm as usize, place as usize) })?;
        // SAFETY: the library has filled the status in.
        let status = unsafe { self.read_status(place) }?;
        Ok(usize::try_from(status.bytes).unwrap_or(0))
    }

    /// Waits for a message, and says what it is without receiving it.
    pub fn probe(&self, from: i32, tag: i32, comm: u64) -> Result<RawStatus, Code> {
        let probe = self.table.probe.ok_or(LACKING)?;
        let mut status = StatusBuffer([0; 32]);
        let place = status.0.as_mut_ptr();
        // SAFETY: invariants 1 and 2, and the place for a status.
        ok(unsafe { probe(int(from), int(tag), comm as usize, place as usize) })?;
        // SAFETY: the library has filled the status in.
        unsafe { self.read_status(place) }
    }

    /// Collective over the communicator; at most `i32::MAX` bytes, equally many on every rank.
    pub fn bcast(&self, bytes: &mut [u8], root: i32, comm: u64) -> Result<(), Code> {
        let bcast = self.table.bcast.ok_or(LACKING)?;
        let length = self.length(bytes.len())?;
        let (data, byte) = (bytes.as_mut_ptr() as usize, self.abi.byte as usize);
        // SAFETY: invariants 1 and 2, and that many bytes.
        ok(unsafe { bcast(data, int(length), byte, int(root), comm as usize) })
    }

    /// A length as MPI's `int`, or MPI's own error for one that is none.
    fn length(&self, length: usize) -> Result<i32, Code> {
        let error =
            || self.abi.constant_int("MPI_ERR_COUNT").and_then(|e| Code::try_from(e).ok()).unwrap_or(-1);
        i32::try_from(length).map_err(|_| error())
    }
}
