//! Kinds of memory, and what a segment of each is known by while it is on its way from who freed it to who named it.

/// Where a segment lies. The order is that of the names' pools.
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

/// How many there are.
pub const AREAS: usize = 8;

impl Area {
    pub const ALL: [Area; AREAS] = [
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
        Area::ALL.get(usize::from(number)).copied()
    }
}

/// A heap segment's key. Mappings have another, since an allocator's first piece may lie where its mapping begins.
#[inline]
pub fn heap_key(start: usize) -> usize {
    start & !15
}

pub fn mapping_key(start: usize) -> usize {
    start | 1
}

/// The area is in the lowest four bits, which are 0 for the heap and 1 for mappings.
pub fn gpu_key(start: usize, area: Area) -> usize {
    start & !15 | area as usize
}
