//! What followed the same references before, however long ago: a ring of them, and where in it the same happened last.

use super::spread;

/// A reference as it is kept: its address and its instruction, by name, and its kind.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub address: u32,
    pub instruction: u32,
    pub kind: u8,
}

/// The last references. What is older than it has room for is gone.
pub(crate) struct Ring {
    addresses: Box<[u32]>,
    /// None where each is its reference's address.
    instructions: Box<[u32]>,
    kinds: Box<[u8]>,
    /// Where the next one goes. Never 0, which stands for nothing.
    now: u32,
}

impl Ring {
    /// With room for 2^`bits` references, with their instructions or without.
    pub(crate) fn new(bits: u32, instructions: bool) -> Ring {
        Ring {
            addresses: vec![0; 1 << bits].into(),
            instructions: vec![0; if instructions { 1 << bits } else { 0 }].into(),
            kinds: vec![0; 1 << bits].into(),
            now: 1,
        }
    }

    pub(crate) fn at(&self, place: u32) -> Kept {
        let place = place as usize;
        let address = self.addresses[place];
        let instruction = self.instructions.get(place).copied().unwrap_or(address);
        Kept { address, instruction, kind: self.kinds[place] }
    }

    fn next(&self, place: u32) -> u32 {
        let mask = self.addresses.len() as u32 - 1;
        ((place + 1) & mask).max(1)
    }

    fn before(&self, place: u32) -> u32 {
        if place > 1 { place - 1 } else { self.addresses.len() as u32 - 1 }
    }

    pub(crate) fn push(&mut self, kept: Kept) {
        let now = self.now as usize;
        (self.addresses[now], self.kinds[now]) = (kept.address, kept.kind);
        if let Some(instruction) = self.instructions.get_mut(now) {
            *instruction = kept.instruction;
        }
        self.now = self.next(self.now);
    }
}

/// As long as a match is looked at when it is found.
const LOOKED_AT: u32 = 32;
/// One shorter than this gives way to one that is longer.
const SHORT: u32 = 16;

/// Where in the ring the last references came before.
pub(crate) struct Match {
    /// By the hash of the last references: what came after them.
    heads: Box<[u32]>,
    bits: u32,
    /// How far the hash is shifted by each: those that are shifted out do not count any more.
    shift: u32,
    hash: u64,
    /// What is expected next; 0 if nothing is. So many before it were as expected.
    place: u32,
    length: u32,
    /// Whether it was right, the last times, the last one lowest.
    right: u32,
}

impl Match {
    /// With 2^`bits` places, of 64 / `shift` references or somewhat less.
    pub(crate) fn new(bits: u32, shift: u32) -> Match {
        Match { heads: vec![0; 1 << bits].into(), bits, shift, hash: 0, place: 0, length: 0, right: 0 }
    }

    /// What is expected, and what it is worth: one of 1 to 127; 0 for nothing.
    pub(crate) fn expected(&self, ring: &Ring) -> (Kept, u8) {
        if self.place == 0 {
            return (Kept::default(), 0);
        }
        let length = match self.length {
            0..16 => self.length,
            16..24 => 16,
            24..32 => 17,
            longer => (13 + longer.ilog2()).min(31),
        };
        (ring.at(self.place), ((length << 2 | self.right & 3) as u8).max(1))
    }

    /// After a reference was pushed whose hash this is.
    pub(crate) fn follow(&mut self, ring: &Ring, hash: u64, same: impl Fn(Kept, Kept) -> bool) {
        let last = ring.at(ring.before(ring.now));
        if self.place != 0 {
            let right = same(ring.at(self.place), last);
            self.right = self.right << 1 | u32::from(right);
            self.length = if right { self.length.saturating_add(1) } else { 0 };
            self.place = ring.next(self.place);
            // It was wrong too often of late.
            if self.right & 0xff == 0 || self.place == ring.now {
                self.place = 0;
            }
        }
        self.hash = (self.hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) << self.shift).wrapping_add(hash);
        let head = &mut self.heads[spread(self.hash, self.bits)];
        let found = std::mem::replace(head, ring.now);
        if (self.place == 0 || self.length < SHORT) && found != 0 && found != self.place && found != ring.now
        {
            let (mut one, mut other, mut length) = (found, ring.now, 0);
            while length < LOOKED_AT {
                (one, other) = (ring.before(one), ring.before(other));
                if !same(ring.at(one), ring.at(other)) {
                    break;
                }
                length += 1;
            }
            if length > 0 && (self.place == 0 || length > self.length) {
                (self.place, self.length, self.right) = (found, length, 0xff);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAME: fn(Kept, Kept) -> bool = |one, other| one == other;

    fn push(ring: &mut Ring, matched: &mut Match, address: u32) {
        ring.push(Kept { address, instruction: 0, kind: 0 });
        matched.follow(ring, u64::from(address) << 7 | 1, SAME);
    }

    /// Addresses and what they are expected to be worth, with room for few.
    fn worths(bits: u32, addresses: impl Iterator<Item = u32>) -> Vec<(u32, u8)> {
        let (mut ring, mut matched) = (Ring::new(bits, true), Match::new(16, 16));
        let expected = |address| {
            let (kept, worth) = matched.expected(&ring);
            push(&mut ring, &mut matched, address);
            (kept.address, worth)
        };
        addresses.map(expected).collect()
    }

    #[test]
    fn what_came_before_comes_again() {
        let all = worths(8, (0..3).flat_map(|_| 100..150));
        assert!(all[..50].iter().all(|(_, worth)| *worth == 0));
        // Four of them are enough to know where it is.
        for (at, (address, worth)) in all.iter().enumerate().skip(54) {
            assert_eq!((*address, *worth > 4 * 3), (100 + at as u32 % 50, true), "{at}");
        }
        // The longer, the more it is worth.
        assert_eq!((all[90].1, all[149].1), ((13 + 5) << 2 | 3, (13 + 6) << 2 | 3));
    }

    #[test]
    fn what_is_older_than_the_ring_is_gone() {
        assert!(worths(5, (0..3).flat_map(|_| 100..150)).iter().all(|(_, worth)| *worth == 0));
        let all = worths(5, (0..9).flat_map(|_| 100..120));
        assert!(
            all[24..].iter().zip(24..).all(|((address, worth), at)| *address == 100 + at % 20 && *worth > 0)
        );
    }

    #[test]
    fn what_is_wrong_is_worth_less_and_then_nothing() {
        let all = worths(8, (0..2).flat_map(|_| 100..150).chain([7]).chain(101..110).chain(1000..1010));
        let [before, after] = [100, 101].map(|at: usize| all[at]);
        assert_eq!((before.0, after.0, all[102].0), (100, 101, 102));
        assert!(before.1 > after.1 && after.1 & 1 == 0, "{before:?} {after:?}");
        assert_eq!(all.last().map(|(_, worth)| *worth), Some(0));
    }
}
