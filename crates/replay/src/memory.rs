//! The program's memory, as far as its calls name it: each segment is a stretch of address space of its own.
//!
//! A segment takes room in memory only where a message touches it. How far its buffers lie apart is not known before all calls
//! are read: it gets address space in advance, less of it where there are many segments, and a new place where that is not enough.

use std::collections::BTreeMap;
use std::io;
use std::ptr::null_mut;

use refrain_fold::FastMap;
use refrain_model::{Address, Area};

/// So much lies on either side of a segment's beginning, where there are at most so many; more where a call needs more. All
/// of it is a hundredth of what a process may have.
const HALVES: [(usize, usize); 2] = [(1 << 10, 1 << 29), (1 << 14, 1 << 24)];
/// Of all others.
const LEAST_HALF: usize = 1 << 18;
const PAGE: usize = 1 << 12;

/// No address of a program is lower.
pub const LEAST_ADDRESS: i64 = 1 << 40;

type Key = (u8, u32, u32);

#[derive(Debug, Default)]
pub struct Memory {
    segments: FastMap<Key, Segment>,
    /// By where a segment began in the recorded run, as far as that was told: where it begins in this one.
    numbers: BTreeMap<i64, usize>,
    /// Of what is in them.
    pub seed: u64,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    /// Where offset 0 is.
    origin: usize,
    /// So far in each direction it is there.
    half: usize,
}

fn key(address: Address) -> Key {
    (address.area as u8, address.device, address.segment)
}

impl Memory {
    /// Where that is in this process, with so many bytes behind it.
    pub fn place(&mut self, address: Address, bytes: usize) -> io::Result<usize> {
        if address.area == Area::Number {
            return Ok(address.offset as usize);
        }
        let need = (address.offset.unsigned_abs() as usize).saturating_add(bytes);
        let known = self.segments.get(&key(address)).copied();
        let segment = match known.filter(|segment| segment.half >= need) {
            Some(segment) => segment,
            None => {
                // Messages may still be on their way to the old one: it stays.
                let again = known.map_or(0, |old| old.half.saturating_mul(2));
                let half = need.max(again).max(self.half()).checked_next_multiple_of(PAGE);
                let segment = Segment::new(half.ok_or(io::ErrorKind::OutOfMemory)?)?;
                self.segments.insert(key(address), segment);
                let place = segment.origin.wrapping_add_signed(address.offset as isize);
                crate::payload::fill(place, bytes, self.seed ^ u64::from(address.segment));
                segment
            }
        };
        Ok(segment.origin.wrapping_add_signed(address.offset as isize))
    }

    /// Of the next segment.
    fn half(&self) -> usize {
        let few = HALVES.iter().find(|(most, _)| self.segments.len() < *most);
        few.map_or(LEAST_HALF, |(_, half)| *half)
    }

    /// MPI has allocated a segment: that place is at this address.
    pub fn is_at(&mut self, address: Address, place: usize) {
        if address.area != Area::Number {
            let origin = place.wrapping_sub(address.offset as usize);
            self.segments.insert(key(address), Segment { origin, half: usize::MAX });
        }
    }

    /// In the recorded run that place had this address, and now it has another one.
    pub fn was_at(&mut self, address: Address, then: i64, now: usize) {
        if address.area != Area::Number {
            let origin = now.wrapping_sub(address.offset as usize);
            self.numbers.insert(then.wrapping_sub(address.offset), origin);
        }
    }

    /// An address that the program computed with, as it is now. Numbers that are no addresses stay.
    pub fn now(&self, then: i64) -> i64 {
        let before = self.numbers.range(..=then).next_back();
        match before {
            Some((base, now)) if then >= LEAST_ADDRESS => (*now as i64).wrapping_add(then - base),
            _ => then,
        }
    }

    /// What MPI had allocated is gone, and what comes at that place is another one.
    pub fn is_gone(&mut self, address: Address) {
        self.segments.remove(&key(address));
    }
}

impl Segment {
    fn new(half: usize) -> io::Result<Segment> {
        let length = half.checked_mul(2).ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping wherever there is room.
        let start =
            unsafe { libc::mmap(null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Segment { origin: start as usize + half, half })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(area: Area, segment: u32, offset: i64) -> Address {
        Address { area, device: 0, segment, offset }
    }

    #[test]
    fn places_of_a_segment_are_as_far_apart_as_they_were() {
        let mut memory = Memory::default();
        let a = memory.place(at(Area::Heap, 3, 100), 8).unwrap();
        let b = memory.place(at(Area::Heap, 3, -40), 8).unwrap();
        assert_eq!(a - b, 140);
        // SAFETY: the segment is there, on both sides.
        unsafe { (b as *mut u64).write_unaligned(7) };
        let other = memory.place(at(Area::Stack, 3, 100), 8).unwrap();
        assert!(other.abs_diff(a) >= 1 << 28);
        let far = memory.place(at(Area::Heap, 4, 3 << 30), 1 << 20).unwrap();
        // SAFETY: as above.
        unsafe { ((far + (1 << 20) - 1) as *mut u8).write(1) };
        assert_eq!(memory.place(at(Area::Number, 0, 0), 0).unwrap(), 0);
    }

    #[test]
    fn there_is_room_for_many_segments() {
        let mut memory = Memory::default();
        for segment in 0..200_000 {
            let place = memory.place(at(Area::Heap, segment, 100), 8).unwrap();
            if segment % 1000 == 0 {
                // SAFETY: the segment is there.
                unsafe { (place as *mut u64).write_unaligned(segment.into()) };
            }
        }
        let far = memory.place(at(Area::Heap, 199_999, 3 << 20), 1 << 20).unwrap();
        // SAFETY: as above.
        unsafe { ((far + (1 << 20) - 1) as *mut u8).write(1) };
        assert!(memory.place(at(Area::Heap, 0, 1 << 46), 8).is_err());
    }

    #[test]
    fn what_mpi_allocates_is_where_it_says() {
        let mut memory = Memory::default();
        memory.is_at(at(Area::Heap, 9, 16), 0x5010);
        assert_eq!(memory.place(at(Area::Heap, 9, 24), 1 << 40).unwrap(), 0x5018);
        memory.is_gone(at(Area::Heap, 9, 16));
        assert_ne!(memory.place(at(Area::Heap, 9, 24), 8).unwrap(), 0x5018);
    }

    #[test]
    fn addresses_that_were_computed_with_move_with_their_segment() {
        let mut memory = Memory::default();
        let base = LEAST_ADDRESS + 0x1000;
        memory.was_at(at(Area::Heap, 1, 16), base + 16, 0x7000_0010);
        memory.was_at(at(Area::Heap, 2, 0), base + 0x10_0000, 0x9000_0000);
        assert_eq!(memory.now(base), 0x7000_0000);
        assert_eq!(memory.now(base + 40), 0x7000_0028);
        assert_eq!(memory.now(base + 0x10_0008), 0x9000_0008);
        // Before all of them, and no address.
        assert_eq!(memory.now(base - 8), base - 8);
        assert_eq!(memory.now(40), 40);
    }
}
