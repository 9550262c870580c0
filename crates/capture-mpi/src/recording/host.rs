//! This process as the encoder sees it: the program's memory in the library's layout, and local questions to MPI.

use std::ffi::CStr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use refrain_encode::{CommInfo, DatatypeInfo, Host, Memory, RawStatus, Topology};
use refrain_guest::ends::signals;
use refrain_guest::memory::area;
use refrain_guest::memory::segments::Segments;
use refrain_guest::objects::loaded::name_of;
use refrain_guest::process::mode::watching;
use refrain_guest::stacks::is_mapped;
use refrain_model::{Address, Amount, Area, Class};
use refrain_mpi::{Abi, Pmpi};

/// What any thread may read at any time.
///
/// Invariant: methods are called with pointers that the program passed to a call of MPI that returned, for what the
/// call table says lies there. MPI itself has read or written the same bytes.
pub struct Reader {
    pub pmpi: Pmpi,
    handle_sizes: [u8; CLASSES],
    /// The library's statuses are not laid out as its family's are known to be: it has to be asked.
    ask_for_statuses: AtomicBool,
}

pub struct Process {
    reader: Arc<Reader>,
    /// `None` where addresses are not kept.
    segments: Option<Segments>,
}

impl Deref for Process {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.reader
    }
}

/// Areas of the process as traces have them.
fn in_traces(area: area::Area) -> Area {
    match area {
        area::Area::Heap => Area::Heap,
        area::Area::Static => Area::Static,
        area::Area::Stack => Area::Stack,
        area::Area::Other => Area::Other,
        area::Area::Number => Area::Number,
        area::Area::Gpu => Area::Gpu,
        area::Area::Managed => Area::Managed,
        area::Area::Pinned => Area::Pinned,
    }
}

const CLASSES: usize = Class::ToolEventInstance as usize + 1;

fn mpi_class(class: Class) -> Option<refrain_mpi::Class> {
    refrain_mpi::Class::from_number(class as u8)
}

impl Process {
    pub fn new(pmpi: Pmpi, pointers: bool) -> Process {
        let mut handle_sizes = [8; CLASSES];
        for (number, size) in (0u8..).zip(&mut handle_sizes) {
            if let Some(class) = refrain_mpi::Class::from_number(number) {
                *size = pmpi.abi().handle_size(class) as u8;
            }
        }
        let reader = Reader { pmpi, handle_sizes, ask_for_statuses: AtomicBool::new(false) };
        Process { reader: Arc::new(reader), segments: pointers.then(Segments::new) }
    }

    pub fn reader(&self) -> &Arc<Reader> {
        &self.reader
    }

    /// MPI is up: what can only be tried now.
    pub fn start(&mut self) {
        let holds = self.ask(|pmpi| pmpi.status_layout_holds().ok()).flatten().unwrap_or(true);
        self.ask_for_statuses.store(!holds, Relaxed);
    }

    /// How much of what was freed `places` knows of.
    pub fn seen(&self) -> usize {
        self.segments.as_ref().map_or(0, Segments::seen)
    }
}

impl Reader {
    fn abi(&self) -> &Abi {
        self.pmpi.abi()
    }

    /// Asks MPI something while the program is not in it, unless a signal handler of the program's that interrupted us
    /// has finalized it.
    pub fn ask<R>(&self, question: impl FnOnce(&Pmpi) -> R) -> Option<R> {
        signals::held_off(|| watching().then(|| question(&self.pmpi)))
    }
}

impl Memory for Reader {
    fn handle(&self, class: Class, raw: usize) -> u64 {
        match self.handle_sizes[class as usize] {
            4 => u64::from(raw as u32),
            _ => raw as u64,
        }
    }

    fn handle_size(&self, class: Class) -> usize {
        usize::from(self.handle_sizes[class as usize])
    }

    fn handle_at(&self, class: Class, pointer: usize, index: usize) -> u64 {
        let Some(class) = mpi_class(class) else { return 0 };
        // SAFETY: the struct's invariant.
        unsafe { self.abi().read_handle(class, pointer as *const u8, index) }
    }

    fn status_at(&self, pointer: usize, index: usize) -> RawStatus {
        let at = pointer + index * self.abi().status_size();
        let known = if self.ask_for_statuses.load(Relaxed) {
            // SAFETY: the struct's invariant.
            self.ask(|pmpi| unsafe { pmpi.read_status(at as *const u8) }.ok()).flatten()
        } else {
            None
        };
        // SAFETY: the struct's invariant.
        let raw = known.unwrap_or_else(|| unsafe { self.abi().read_status(at as *const u8) });
        RawStatus {
            source: raw.source,
            tag: raw.tag,
            error: raw.error,
            bytes: raw.bytes,
            cancelled: raw.cancelled,
        }
    }

    fn int_at(&self, pointer: usize, index: usize) -> i64 {
        // SAFETY: the struct's invariant. Fortran and packed structures need not be aligned.
        i64::from(unsafe { (pointer as *const i32).add(index).read_unaligned() })
    }

    fn wide_at(&self, pointer: usize, index: usize) -> i64 {
        // SAFETY: as above.
        unsafe { (pointer as *const i64).add(index).read_unaligned() }
    }

    fn pointer_at(&self, pointer: usize, index: usize) -> usize {
        // SAFETY: as above.
        unsafe { (pointer as *const usize).add(index).read_unaligned() }
    }

    fn text_at(&self, pointer: usize, max: usize, out: &mut Vec<u8>) {
        if max == usize::MAX {
            // SAFETY: the struct's invariant: a terminated string.
            out.extend_from_slice(unsafe { CStr::from_ptr(pointer as *const libc::c_char) }.to_bytes());
            return;
        }
        for k in 0..max {
            // SAFETY: at most as many bytes as the call said it wrote.
            match unsafe { (pointer as *const u8).add(k).read() } {
                0 => break,
                byte => out.push(byte),
            }
        }
    }

    fn readable(&self, pointer: usize, bytes: usize) -> bool {
        const PAGE: usize = 4096;
        let Some(end) = pointer.checked_add(bytes) else { return false };
        // One word of each page.
        (pointer / PAGE..end.div_ceil(PAGE)).all(|page| is_mapped(page * PAGE))
    }
}

impl Memory for Process {
    fn handle(&self, class: Class, raw: usize) -> u64 {
        self.reader.handle(class, raw)
    }

    fn handle_size(&self, class: Class) -> usize {
        self.reader.handle_size(class)
    }

    fn handle_at(&self, class: Class, pointer: usize, index: usize) -> u64 {
        self.reader.handle_at(class, pointer, index)
    }

    fn status_at(&self, pointer: usize, index: usize) -> RawStatus {
        self.reader.status_at(pointer, index)
    }

    fn int_at(&self, pointer: usize, index: usize) -> i64 {
        self.reader.int_at(pointer, index)
    }

    fn wide_at(&self, pointer: usize, index: usize) -> i64 {
        self.reader.wide_at(pointer, index)
    }

    fn pointer_at(&self, pointer: usize, index: usize) -> usize {
        self.reader.pointer_at(pointer, index)
    }

    fn text_at(&self, pointer: usize, max: usize, out: &mut Vec<u8>) {
        self.reader.text_at(pointer, max, out);
    }

    fn readable(&self, pointer: usize, bytes: usize) -> bool {
        self.reader.readable(pointer, bytes)
    }
}

impl Host for Process {
    fn locate(&mut self, pointer: usize) -> Option<Address> {
        self.segments.as_mut().map(|segments| {
            let located = segments.locate(pointer);
            let (segment, offset) = (located.segment, located.offset);
            Address { area: in_traces(located.area), device: located.device, segment, offset }
        })
    }

    fn places(&mut self) -> u64 {
        self.segments.as_mut().map_or(0, |segments| u64::from(segments.generation()))
    }

    fn lasting(&mut self, pointer: usize) -> bool {
        self.segments.as_mut().is_none_or(|segments| segments.keeps(pointer))
    }

    fn function_name(&mut self, pointer: usize) -> String {
        name_of(pointer)
    }

    fn comm(&mut self, handle: u64) -> CommInfo {
        let asked = self.ask(|pmpi| {
            let inter = pmpi.comm_is_inter(handle).unwrap_or(false);
            CommInfo {
                rank: pmpi.comm_rank(handle).unwrap_or(0),
                size: pmpi.comm_size(handle).unwrap_or(0),
                remote_size: if inter { pmpi.comm_remote_size(handle).ok() } else { None },
                world: pmpi.comm_world_ranks(handle).unwrap_or_default(),
                remote_world: if inter {
                    pmpi.comm_remote_world_ranks(handle).unwrap_or_default()
                } else {
                    Vec::new()
                },
            }
        });
        asked.unwrap_or_default()
    }

    fn topology(&mut self, handle: u64) -> Topology {
        let asked = self.ask(|pmpi| {
            let neighbours = pmpi.neighbours(handle).unwrap_or_default();
            let dims = pmpi.cart_dimensions(handle).ok().flatten().unwrap_or(0);
            Topology { indegree: neighbours.incoming, outdegree: neighbours.outgoing, dims }
        });
        asked.unwrap_or_default()
    }

    fn neighbours_of(&mut self, comm: u64, rank: i64) -> usize {
        let rank = i32::try_from(rank).unwrap_or(-1);
        self.ask(|pmpi| pmpi.graph_neighbours(comm, rank).unwrap_or(0)).unwrap_or(0)
    }

    fn amount(&mut self, amount: Amount, of: u64, large: bool) -> usize {
        let asked = self.ask(|pmpi| {
            let contents = |at: usize| pmpi.type_contents(of, large).map(|contents| contents[at]);
            let category = |at: usize| pmpi.category_members(of as i32).map(|members| members[at]);
            let graph = |at: usize| pmpi.graph_size(of).map(|size| size[at]);
            let weights = |at: usize| pmpi.graph_weights(of).map(|weights| weights[at]);
            match amount {
                Amount::GraphNodes => graph(0),
                Amount::GraphEdges => graph(1),
                Amount::InWeights => weights(0),
                Amount::OutWeights => weights(1),
                Amount::Integers => contents(0),
                Amount::Addresses => contents(1),
                Amount::LargeCounts => contents(2),
                Amount::Datatypes => contents(3),
                Amount::Cvars => category(0),
                Amount::Pvars => category(1),
                Amount::Categories => category(2),
                Amount::Events => pmpi.category_events(of as i32),
            }
        });
        asked.and_then(Result::ok).unwrap_or(0)
    }

    fn win_rank(&mut self, handle: u64) -> i32 {
        let asked = self.ask(|pmpi| {
            let Ok(group) = pmpi.win_group(handle) else { return 0 };
            let rank = pmpi.group_rank(group).unwrap_or(0);
            // A group that cannot be freed is lost memory, not a fault of the program's.
            let _ = pmpi.group_free(group);
            rank
        });
        asked.unwrap_or(0)
    }

    fn datatype(&mut self, handle: u64) -> DatatypeInfo {
        let asked = self.ask(|pmpi| {
            let size = pmpi.type_size(handle).unwrap_or(0);
            let (lb, extent) = pmpi.type_extent(handle).unwrap_or((0, 0));
            DatatypeInfo { size, lb, extent }
        });
        asked.unwrap_or_default()
    }
}
