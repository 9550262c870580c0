//! The program's memory, as far as its calls name it: each segment is a stretch of address space of its own.
//!
//! A segment takes room in memory only where a message touches it. How far its buffers lie apart is not known before all calls
//! are read: it gets address space in advance, less of it where there are many segments, and a new place where that is not enough.

use std::collections::BTreeMap;
use std::io;
use std::ptr::null_mut;

use refrain_fold::FastMap;
use refrain_model::{Address, Area};

use crate::reach::Reach;

/// So much lies on either side of a segment's beginning, where there are at most so many; more where a call needs more. All
/// of it is a hundredth of what a process may have.
const HALVES: [(usize, usize); 2] = [(1 << 10, 1 << 29), (1 << 14, 1 << 24)];
/// Of all others.
const LEAST_HALF: usize = 1 << 18;
const PAGE: usize = 1 << 12;
/// No process has as much address space.
const FARTHEST: usize = 1 << 46;

/// No address of a program is lower.
pub const LEAST_ADDRESS: i64 = 1 << 40;

type Key = (u8, u32, u32);

#[derive(Debug, Default)]
pub struct Memory {
    segments: FastMap<Key, Segment>,
    /// What MPI has allocated, by segment.
    areas: FastMap<Key, Vec<Allocated>>,
    /// First and last address, + 1, of all that may be touched.
    there: BTreeMap<usize, usize>,
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

/// Offsets from `first` to `end` of a segment, as MPI has allocated them.
#[derive(Debug, Clone, Copy)]
struct Allocated {
    first: i128,
    end: i128,
    /// Where `first` is.
    place: usize,
}

fn key(address: Address) -> Key {
    (address.area as u8, address.device, address.segment)
}

fn nowhere() -> io::Error {
    io::Error::other("it lies at an address that the trace does not explain")
}

impl Memory {
    /// Where that is in this process, with room for what is touched around it.
    pub fn place(&mut self, address: Address, reach: Reach) -> io::Result<usize> {
        if address.area == Area::Number {
            let place = address.offset as usize;
            let ok = self.is_there(reach.moved(place as i128));
            return if ok { Ok(place) } else { Err(nowhere()) };
        }
        let offset = i128::from(address.offset);
        let touched = reach.moved(offset);
        let (lo, hi) = if touched.is_empty() { (offset, offset) } else { (touched.lo, touched.hi) };
        let allocated = self.areas.get(&key(address)).into_iter().flatten();
        let of_mpi = |area: &&Allocated| {
            (area.first..=area.end).contains(&offset) && area.first <= lo && hi <= area.end
        };
        if let Some(area) = allocated.rev().find(of_mpi) {
            return Ok(area.place + (offset - area.first) as usize);
        }
        let need = [offset, lo, hi].map(i128::unsigned_abs).into_iter().max().unwrap_or(0);
        let too_far = || io::Error::from(io::ErrorKind::OutOfMemory);
        let need = usize::try_from(need).ok().filter(|need| *need <= FARTHEST).ok_or_else(too_far)?;
        let known = self.segments.get(&key(address)).copied();
        let segment = match known.filter(|segment| segment.half >= need) {
            Some(segment) => segment,
            None => {
                // Messages may still be on their way to the old one: it stays.
                let again = known.map_or(0, |old| old.half.saturating_mul(2));
                let half = need.max(again).max(self.half()).checked_next_multiple_of(PAGE);
                let segment = Segment::new(half.ok_or_else(too_far)?)?;
                self.segments.insert(key(address), segment);
                let from = segment.origin - segment.half;
                self.exists(from, from + 2 * segment.half);
                let place = segment.origin.wrapping_add_signed(address.offset as isize);
                let bytes = usize::try_from(reach.hi.max(0)).unwrap_or(0);
                crate::payload::fill(place, bytes, self.seed ^ u64::from(address.segment));
                segment
            }
        };
        Ok(segment.origin.wrapping_add_signed(address.offset as isize))
    }

    /// Whether all of it may be touched; of nothing, always.
    pub fn is_there(&self, touched: Reach) -> bool {
        if touched.is_empty() {
            return true;
        }
        let (Ok(lo), Ok(hi)) = (usize::try_from(touched.lo), usize::try_from(touched.hi)) else {
            return false;
        };
        self.there.range(..=lo).next_back().is_some_and(|(_, end)| hi <= *end)
    }

    /// From there to there are bytes of the replay.
    fn exists(&mut self, from: usize, end: usize) {
        if end <= from {
            return;
        }
        let (mut from, mut end) = (from, end);
        // With what it touches on either side.
        if let Some((before, its_end)) = self.there.range(..=from).next_back().map(|(a, b)| (*a, *b))
            && its_end >= from
        {
            (from, end) = (before, end.max(its_end));
        }
        while let Some((next, its_end)) = self.there.range(from + 1..=end).next().map(|(a, b)| (*a, *b)) {
            self.there.remove(&next);
            end = end.max(its_end);
        }
        self.there.insert(from, end);
    }

    /// From there to there are none any more.
    fn is_over(&mut self, from: usize, end: usize) {
        if end <= from {
            return;
        }
        let within = self.there.range(..end).next_back().map(|(a, b)| (*a, *b));
        if let Some((first, last)) = within.filter(|(_, last)| *last >= end) {
            self.there.remove(&first);
            if first < from {
                self.there.insert(first, from);
            }
            if end < last {
                self.there.insert(end, last);
            }
        }
    }

    /// Of the next segment.
    fn half(&self) -> usize {
        let few = HALVES.iter().find(|(most, _)| self.segments.len() < *most);
        few.map_or(LEAST_HALF, |(_, half)| *half)
    }

    /// MPI has allocated so many bytes: that place is at this address.
    pub fn is_at(&mut self, address: Address, place: usize, bytes: u64) {
        let Some(end) = usize::try_from(bytes).ok().and_then(|bytes| place.checked_add(bytes)) else {
            return;
        };
        if place == 0 {
            return;
        }
        self.exists(place, end);
        if address.area != Area::Number {
            let first = i128::from(address.offset);
            let new = Allocated { first, end: first + i128::from(bytes), place };
            let all = self.areas.entry(key(address)).or_default();
            all.retain(|old| old.first != first);
            all.push(new);
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
        let first = i128::from(address.offset);
        let Some(areas) = self.areas.get_mut(&key(address)) else { return };
        let Some(at) = areas.iter().position(|area| area.first == first) else { return };
        let area = areas.swap_remove(at);
        if areas.is_empty() {
            self.areas.remove(&key(address));
        }
        self.is_over(area.place, area.place + (area.end - area.first) as usize);
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
        let a = memory.place(at(Area::Heap, 3, 100), Reach::bytes(8)).unwrap();
        let b = memory.place(at(Area::Heap, 3, -40), Reach::bytes(8)).unwrap();
        assert_eq!(a - b, 140);
        // SAFETY: the segment is there, on both sides.
        unsafe { (b as *mut u64).write_unaligned(7) };
        let other = memory.place(at(Area::Stack, 3, 100), Reach::bytes(8)).unwrap();
        assert!(other.abs_diff(a) >= 1 << 28);
        let far = memory.place(at(Area::Heap, 4, 3 << 30), Reach::bytes(1 << 20)).unwrap();
        // SAFETY: as above.
        unsafe { ((far + (1 << 20) - 1) as *mut u8).write(1) };
        assert_eq!(memory.place(at(Area::Number, 0, 0), Reach::bytes(0)).unwrap(), 0);
    }

    #[test]
    fn there_is_room_for_many_segments() {
        let mut memory = Memory::default();
        for segment in 0..200_000 {
            let place = memory.place(at(Area::Heap, segment, 100), Reach::bytes(8)).unwrap();
            if segment % 1000 == 0 {
                // SAFETY: the segment is there.
                unsafe { (place as *mut u64).write_unaligned(segment.into()) };
            }
        }
        let far = memory.place(at(Area::Heap, 199_999, 3 << 20), Reach::bytes(1 << 20)).unwrap();
        // SAFETY: as above.
        unsafe { ((far + (1 << 20) - 1) as *mut u8).write(1) };
        assert!(memory.place(at(Area::Heap, 0, 1 << 46), Reach::bytes(8)).is_err());
    }

    #[test]
    fn what_mpi_allocates_is_where_it_says() {
        let mut memory = Memory::default();
        memory.is_at(at(Area::Heap, 9, 16), 0x5010, 64);
        let place =
            |memory: &mut Memory, offset, reach| memory.place(at(Area::Heap, 9, offset), reach).unwrap();
        assert_eq!(place(&mut memory, 24, Reach::bytes(56)), 0x5018);
        assert_eq!(place(&mut memory, 24, Reach { lo: -8, hi: 1 }), 0x5018);
        // What is before or behind it is ours.
        let before = place(&mut memory, 24, Reach { lo: -9, hi: 1 });
        assert_eq!(before, place(&mut memory, 24, Reach::bytes(57)));
        assert!(memory.is_there(Reach { lo: before as i128, hi: before as i128 + 57 }));
        memory.is_gone(at(Area::Heap, 9, 16));
        assert_ne!(place(&mut memory, 24, Reach::bytes(8)), 0x5018);
        assert!(!memory.is_there(Reach { lo: 0x5018, hi: 0x5019 }));
    }

    /// A trace may come from anybody: nothing is touched but what was made for it.
    #[test]
    fn only_what_is_there_is_touched() {
        let mut memory = Memory::default();
        let number = |at: i64| Address { area: Area::Number, device: 0, segment: 0, offset: at };
        assert_eq!(memory.place(number(8), Reach::NOTHING).unwrap(), 8);
        assert!(memory.place(number(8), Reach::bytes(1)).is_err());
        for (offset, reach) in [
            (i64::MAX, Reach::bytes(1 << 60)),
            (i64::MIN, Reach { lo: -(1 << 60), hi: 0 }),
            (0, Reach { lo: 0, hi: (1 << 60) + 1 }),
            (8, Reach { lo: -(1 << 50), hi: -(1 << 50) + 4 }),
        ] {
            assert!(memory.place(at(Area::Heap, 1, offset), reach).is_err(), "{offset} {reach:?}");
        }
        memory.exists(100, 200);
        memory.exists(300, 400);
        let there = |memory: &Memory, lo, hi| memory.is_there(Reach { lo, hi });
        assert!(there(&memory, 100, 200) && !there(&memory, 100, 201) && !there(&memory, 199, 301));
        memory.exists(200, 300);
        assert!(there(&memory, 100, 400) && !there(&memory, 99, 101));
        memory.is_over(150, 250);
        assert!(there(&memory, 100, 150) && there(&memory, 250, 400) && !there(&memory, 100, 151));
        assert!(!there(&memory, 249, 251));
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
