//! `MPI_Status` as each family lays it out.

use crate::constants::Family;

/// What a status says, whatever it looks like in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawStatus {
    pub source: i32,
    pub tag: i32,
    pub error: i32,
    /// Bytes received.
    pub bytes: i64,
    pub cancelled: bool,
}

/// Offsets of the fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) size: usize,
    source: usize,
    tag: usize,
    error: usize,
    count: Count,
}

/// How the byte count and the cancelled mark are kept.
#[derive(Debug, Clone, Copy)]
enum Count {
    /// An int with the low half; an int with the cancelled mark in bit 0 and the high half above it.
    Halves { low: usize, high: usize },
    /// A `size_t` of its own, and an int.
    Whole { count: usize, cancelled: usize },
}

impl Status {
    pub(crate) fn of(family: Family) -> Status {
        match family {
            Family::Mpich => {
                Status { size: 20, source: 8, tag: 12, error: 16, count: Count::Halves { low: 0, high: 4 } }
            }
            Family::OpenMpi => Status {
                size: 24,
                source: 0,
                tag: 4,
                error: 8,
                count: Count::Whole { count: 16, cancelled: 12 },
            },
            // The standard leaves the twenty bytes behind the three fields to the library. MPICH and Intel MPI put
            // their halves there; `Pmpi::status_layout_holds` tells whether this library does.
            Family::Mpi5 => {
                Status { size: 32, source: 0, tag: 4, error: 8, count: Count::Halves { low: 12, high: 16 } }
            }
        }
    }

    /// # Safety
    /// `status` points at `self.size` initialised bytes.
    pub(crate) unsafe fn read(&self, status: *const u8) -> RawStatus {
        let int = |offset: usize| {
            // SAFETY: all offsets of ints end inside `size`, which the caller says can be read.
            unsafe { status.add(offset).cast::<i32>().read_unaligned() }
        };
        let (bytes, cancelled) = match self.count {
            Count::Halves { low, high } => {
                let (low, high) = (int(low) as u32, int(high) as u32);
                (i64::from(low) | i64::from(high >> 1) << 32, high & 1 != 0)
            }
            Count::Whole { count, cancelled } => {
                // SAFETY: as above, for the one field of eight bytes.
                let count = unsafe { status.add(count).cast::<i64>().read_unaligned() };
                // A status that nobody has written; who asks Open MPI about it is told so.
                (if count < 0 { UNDEFINED } else { count }, int(cancelled) != 0)
            }
        };
        RawStatus { source: int(self.source), tag: int(self.tag), error: int(self.error), bytes, cancelled }
    }
}

impl Status {
    /// # Safety
    /// `status` points at `self.size` bytes that can be written.
    pub(crate) unsafe fn write(&self, status: *mut u8, says: RawStatus) {
        let int = |offset: usize, value: i32| {
            // SAFETY: all offsets of ints end inside `size`, which the caller says can be written.
            unsafe { status.add(offset).cast::<i32>().write_unaligned(value) }
        };
        int(self.source, says.source);
        int(self.tag, says.tag);
        int(self.error, says.error);
        match self.count {
            Count::Halves { low, high } => {
                int(low, says.bytes as i32);
                int(high, ((says.bytes >> 32) as i32) << 1 | i32::from(says.cancelled));
            }
            Count::Whole { count, cancelled } => {
                // SAFETY: as above, for the one field of eight bytes.
                unsafe { status.add(count).cast::<i64>().write_unaligned(says.bytes) };
                int(cancelled, says.cancelled.into());
            }
        }
    }
}

/// `MPI_UNDEFINED`, the same in all ABIs.
const UNDEFINED: i64 = -32766;

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that hold nothing but what is put in them.
    struct Bytes(Vec<u8>);

    impl Bytes {
        fn new() -> Bytes {
            Bytes(Vec::new())
        }

        fn int(mut self, value: i32) -> Bytes {
            self.0.extend(value.to_le_bytes());
            self
        }

        fn long(mut self, value: u64) -> Bytes {
            self.0.extend(value.to_le_bytes());
            self
        }
    }

    fn check(family: Family, bytes: Bytes, source: i32, tag: i32, error: i32, count: i64, cancelled: bool) {
        let layout = Status::of(family);
        assert_eq!(bytes.0.len(), layout.size);
        // SAFETY: the assertion above.
        let status = unsafe { layout.read(bytes.0.as_ptr()) };
        assert_eq!(status, RawStatus { source, tag, error, bytes: count, cancelled });
        let mut written = vec![0; layout.size];
        // SAFETY: as many bytes as a status has.
        unsafe { layout.write(written.as_mut_ptr(), status) };
        // SAFETY: as above.
        assert_eq!(unsafe { layout.read(written.as_ptr()) }, status);
    }

    #[test]
    fn mpich() {
        let head = |low: i32, high: i32| Bytes::new().int(low).int(high);
        check(Family::Mpich, head(40, 0).int(3).int(7).int(15), 3, 7, 15, 40, false);
        check(Family::Mpich, head(0, 1).int(-2).int(-1).int(0), -2, -1, 0, 0, true);
        // 5 GiB: 1 in the high half, above the mark.
        check(Family::Mpich, head(0x4000_0000, 1 << 1).int(0).int(0).int(0), 0, 0, 0, 5 << 30, false);
        // 3 GiB: the low half's top bit is no sign.
        check(Family::Mpich, head(0xc000_0000_u32 as i32, 0).int(0).int(0).int(0), 0, 0, 0, 3 << 30, false);
    }

    #[test]
    fn openmpi() {
        let head = |source: i32, tag: i32, error: i32| Bytes::new().int(source).int(tag).int(error);
        check(Family::OpenMpi, head(3, 7, 15).int(0).long(40), 3, 7, 15, 40, false);
        check(Family::OpenMpi, head(-1, -1, 0).int(1).long(0), -1, -1, 0, 0, true);
        check(Family::OpenMpi, head(0, 0, 0).int(0).long(5 << 30), 0, 0, 0, 5 << 30, false);
    }

    #[test]
    fn mpi5() {
        let head = |source: i32, tag: i32, error: i32| Bytes::new().int(source).int(tag).int(error);
        let tail = |bytes: Bytes| bytes.int(-1).int(-1).int(-1);
        check(Family::Mpi5, tail(head(3, 7, 15).int(40).int(0)), 3, 7, 15, 40, false);
        check(Family::Mpi5, tail(head(-1, -2, 0).int(0).int(1)), -1, -2, 0, 0, true);
        check(Family::Mpi5, tail(head(0, 0, 0).int(0x4000_0000).int(1 << 1)), 0, 0, 0, 5 << 30, false);
    }
}
