//! The MPI library and the process that exist only here: constants and handles with numbers of their own.

use refrain_encode::{self as encode, CommInfo, DatatypeInfo, Host, RawStatus, Topology};
use refrain_fold::FastMap;
use refrain_model::{Address, Amount, Area, Class, constant, constants};

use crate::memory::Memory;

pub(crate) const ANY_SOURCE: i32 = -101;
pub(crate) const PROC_NULL: i32 = -102;
pub(crate) const ANY_TAG: i32 = -104;
pub(crate) const UNDEFINED: i32 = -32766;
pub(crate) const STATUS_IGNORE: usize = 2;

/// Buffers are never looked into, so they have addresses without memory: from here on, 4 GiB for each block.
const HEAP: usize = 1 << 48;

/// A predefined handle.
pub(crate) fn predefined(name: &str) -> usize {
    0x10_0000 + constant(name).map_or(0, |c| usize::from(c.id))
}

/// What `Encoder::new` wants to know of a library.
pub(crate) fn library() -> Vec<(u16, i64)> {
    let value = |name: &str| match name {
        "MPI_ANY_SOURCE" => i64::from(ANY_SOURCE),
        "MPI_PROC_NULL" => i64::from(PROC_NULL),
        "MPI_ROOT" => -103,
        "MPI_ANY_TAG" => i64::from(ANY_TAG),
        "MPI_UNDEFINED" => i64::from(UNDEFINED),
        "MPI_IN_PLACE" => 1,
        "MPI_BOTTOM" | "MPI_ARGV_NULL" | "MPI_ARGVS_NULL" | "MPI_ERRCODES_IGNORE" | "MPI_SUCCESS" => 0,
        "MPI_STATUS_IGNORE" | "MPI_STATUSES_IGNORE" => STATUS_IGNORE as i64,
        "MPI_UNWEIGHTED" => 3,
        "MPI_WEIGHTS_EMPTY" => 4,
        "MPI_ERR_IN_STATUS" => 17,
        name => predefined(name) as i64,
    };
    let mut list: Vec<(u16, i64)> = constants().iter().map(|c| (c.id, value(c.name))).collect();
    list.sort_unstable();
    list
}

pub(crate) fn heap(block: u32, offset: u32) -> usize {
    HEAP + ((block as usize) << 32) + offset as usize
}

/// A status as this library lays it out: source, tag, error, cancelled, and 8 bytes of length.
pub(crate) const STATUS_SIZE: usize = 24;

pub(crate) fn write_status(memory: &mut Memory, address: usize, source: i32, tag: i32, bytes: i64) {
    memory.write_ints(address, &[source, tag, 0, 0]);
    memory.write_wide(address, 2, bytes);
}

#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) rank: u32,
    pub(crate) memory: Memory,
    pub(crate) comms: FastMap<u64, (CommInfo, Topology)>,
}

impl encode::Memory for Process {
    fn handle(&self, class: Class, raw: usize) -> u64 {
        if class == Class::Keyval { u64::from(raw as u32) } else { raw as u64 }
    }
    fn handle_at(&self, _: Class, pointer: usize, index: usize) -> u64 {
        self.memory.wide(pointer, index) as u64
    }
    fn handle_size(&self, _: Class) -> usize {
        8
    }
    fn status_at(&self, pointer: usize, index: usize) -> RawStatus {
        let at = pointer + index * STATUS_SIZE;
        let [source, tag, error, cancelled] = [0, 1, 2, 3].map(|field| self.memory.int(at, field));
        RawStatus { source, tag, error, bytes: self.memory.wide(at, 2), cancelled: cancelled != 0 }
    }
    fn int_at(&self, pointer: usize, index: usize) -> i64 {
        i64::from(self.memory.int(pointer, index))
    }
    fn wide_at(&self, pointer: usize, index: usize) -> i64 {
        self.memory.wide(pointer, index)
    }
    fn pointer_at(&self, pointer: usize, index: usize) -> usize {
        self.memory.wide(pointer, index) as usize
    }
    fn text_at(&self, _: usize, _: usize, _: &mut Vec<u8>) {}
    fn readable(&self, _: usize, _: usize) -> bool {
        true
    }
}

impl Host for Process {
    fn locate(&mut self, pointer: usize) -> Option<Address> {
        Some(match pointer.checked_sub(HEAP) {
            Some(at) => Address {
                area: Area::Heap,
                device: 0,
                segment: (at >> 32) as u32,
                offset: (at & 0xffff_ffff) as i64,
            },
            None => Address { area: Area::Number, device: 0, segment: 0, offset: pointer as i64 },
        })
    }
    fn places(&mut self) -> u64 {
        0
    }
    fn lasting(&mut self, _: usize) -> bool {
        false
    }
    fn function_name(&mut self, pointer: usize) -> String {
        format!("simulated+{pointer:#x}")
    }
    fn comm(&mut self, handle: u64) -> CommInfo {
        self.comms.get(&handle).map(|known| known.0.clone()).unwrap_or_default()
    }
    fn topology(&mut self, handle: u64) -> Topology {
        self.comms.get(&handle).map(|known| known.1).unwrap_or_default()
    }
    fn neighbours_of(&mut self, _: u64, _: i64) -> usize {
        0
    }
    fn amount(&mut self, _: Amount, _: u64, _: bool) -> usize {
        0
    }
    fn win_rank(&mut self, _: u64) -> i32 {
        self.rank as i32
    }
    fn datatype(&mut self, _: u64) -> DatatypeInfo {
        DatatypeInfo::default()
    }
}
