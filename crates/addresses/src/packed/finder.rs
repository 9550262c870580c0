//! Where what comes next happened before. Only a writer looks; a reader is told, so that how hard one looks is no part of the format.

use super::model::Model;
use super::tables::mix;
use crate::Reference;

/// The shortest stretch that is found, and one that is looked for first.
const SHORT: usize = 4;
const LONG: usize = 12;
const BITS: u32 = 17;

/// So many places behind and before a reference that was told are known.
const AROUND: usize = 16;

/// Nothing better is looked for than so many, nor is more compared than must be to see whether it is worth telling.
const ENOUGH: usize = 1024;

/// What it costs to say that references come again, in tenths of a byte, from a distance that was told and from one of the last.
const NEW: u64 = 40;
const KNOWN: u64 = 6;
/// A farther look must find so many more than one of the last distances does.
const MORE: usize = 3;

/// References that come again.
pub(crate) struct Again {
    pub length: usize,
    pub distance: usize,
}

pub(crate) struct Finder {
    /// The last place where [`SHORT`] and [`LONG`] references with this hash began, counted from 1; 0 if there is none.
    short: Box<[u32]>,
    long: Box<[u32]>,
    /// By place, the one before it with the same short hash.
    before: Box<[u32]>,
    /// By place, the hash of its reference, also of those ahead.
    marks: Box<[u32]>,
    /// One less than these two have room for, a power of two.
    mask: usize,
    /// So many of those before are looked at.
    depth: usize,
    /// The place of the piece's first reference, and of the next behind it.
    base: usize,
    end: usize,
    /// So many places of the piece are known.
    passed: usize,
    /// Of late, outside of what came again: references up to one that had to be told, and what that cost. Sums that fade.
    pace: u64,
    cost: u64,
}

impl Finder {
    /// Looks harder with a higher level, and as far back as 2^`bits` references.
    pub(crate) fn new(level: u32, bits: u32) -> Finder {
        Finder {
            short: vec![0; 1 << BITS].into(),
            long: vec![0; 1 << BITS].into(),
            before: vec![0; 1 << bits].into(),
            marks: vec![0; 1 << bits].into(),
            mask: (1 << bits) - 1,
            depth: 1 << (2 * level.min(9) / 3),
            base: 1,
            end: 1,
            passed: 0,
            pace: 1,
            cost: 2,
        }
    }

    /// As if new.
    pub(crate) fn clear(&mut self) {
        self.short.fill(0);
        self.long.fill(0);
        (self.base, self.end, self.passed, self.pace, self.cost) = (1, 1, 0, 1, 2);
    }

    /// Goes on with these references, behind all before. They are fewer than there is room for.
    pub(crate) fn begin(&mut self, piece: &[Reference]) {
        // Places are kept in half a word.
        if self.end + piece.len() > u32::MAX as usize {
            self.clear();
        }
        self.base = self.end;
        self.end += piece.len();
        self.passed = 0;
        for (place, it) in (self.base..).zip(piece) {
            let sort = u64::from(it.size) << 8 | u64::from(it.kind);
            self.marks[place & self.mask] = (mix(it.address ^ it.pc.rotate_left(24), sort) >> 32) as u32;
        }
    }

    /// Enters the places since the last call into the tables, the first and the last sixteen: what happens again does so from one on
    /// that was told.
    pub(crate) fn pass(&mut self, at: usize) {
        let from = std::mem::replace(&mut self.passed, at);
        if at - from <= 2 * AROUND {
            self.know(from, at);
        } else {
            self.know(from, from + AROUND);
            self.know(at - AROUND, at);
        }
    }

    fn know(&mut self, from: usize, to: usize) {
        let places = self.base + from..self.base + to;
        let (mut short, mut long) =
            (Rolled::new(self, places.start, SHORT), Rolled::new(self, places.start, LONG));
        for place in places {
            if let Some(hash) = short.next(self, place) {
                self.before[place & self.mask] = std::mem::replace(&mut self.short[hash], place as u32);
            }
            if let Some(hash) = long.next(self, place) {
                self.long[hash] = place as u32;
            }
        }
    }

    fn mark(&self, place: usize) -> u64 {
        u64::from(self.marks[place & self.mask])
    }

    /// How many references are alike from both places on, as their hashes say, up to the end of the piece or to what is enough.
    fn common(&self, place: usize, here: usize) -> usize {
        // The marks of those ahead have taken the place of what is farther away.
        if place + self.mask < self.end {
            return 0;
        }
        let enough = ENOUGH.max((NEW * self.pace / self.cost) as usize + 1);
        let same = |length: &usize| {
            self.marks[(place + length) & self.mask] == self.marks[(here + length) & self.mask]
        };
        (0..enough.min(self.end - here)).take_while(same).count()
    }

    /// So many references were as expected and then one had to be told, at this cost in tenths of a byte.
    pub(crate) fn told(&mut self, references: usize, cost: usize) {
        self.pace = self.pace - (self.pace >> 5) + 2 * references as u64;
        self.cost = self.cost - (self.cost >> 5) + 2 * cost as u64;
    }

    /// Whether so many references would cost more one by one.
    fn worth(&self, length: usize, cost: u64) -> bool {
        length as u64 * self.cost >= cost * self.pace
    }

    /// What begins at this reference of the piece and came before, if it is worth telling. `recent` are distances that are told cheaply.
    pub(crate) fn find(
        &self,
        model: &Model,
        piece: &[Reference],
        at: usize,
        recent: &[u32],
    ) -> Option<Again> {
        let here = self.base + at;
        let mut best = Again { length: 0, distance: 0 };
        for distance in recent.iter().map(|distance| *distance as usize).filter(|far| (1..here).contains(far))
        {
            let length = self.common(here - distance, here);
            if length > best.length && self.worth(length, KNOWN) {
                best = Again { length, distance };
            }
        }
        let mut least = if best.length > 0 { best.length + MORE } else { 0 };
        let mut consider = |place: usize, best: &mut Again| {
            let length = self.common(place, here);
            if length > least && self.worth(length, NEW) {
                *best = Again { length, distance: here - place };
                least = length;
            }
        };
        let hash = |count: usize| Rolled::new(self, here, count).next(self, here);
        if let Some(place) = hash(LONG).map(|hash| self.long[hash] as usize).filter(|place| *place > 0) {
            consider(place, &mut best);
        }
        let mut place = hash(SHORT).map_or(0, |hash| self.short[hash] as usize);
        for _ in 0..self.depth {
            if place == 0 || here - place > self.mask || best.length >= ENOUGH {
                break;
            }
            consider(place, &mut best);
            place = self.before[place & self.mask] as usize;
        }
        // Hashes alike are not references alike, and may have been compared in part.
        let cost = if recent.contains(&(best.distance as u32)) { KNOWN } else { NEW };
        best.length = if best.length > 0 { model.alike(piece, at, best.distance) } else { 0 };
        (best.length > 0 && self.worth(best.length, cost)).then_some(best)
    }
}

/// The hash of the next so many marks, from one place after the other.
struct Rolled {
    sum: u64,
    count: usize,
    /// What the mark that falls out has been multiplied with.
    power: u64,
}

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rolled {
    fn new(finder: &Finder, place: usize, count: usize) -> Rolled {
        let (mut sum, mut power) = (0u64, 1u64);
        for place in place..place + count - 1 {
            sum = sum.wrapping_add(finder.mark(place)).wrapping_mul(FACTOR);
            power = power.wrapping_mul(FACTOR);
        }
        Rolled { sum, count, power }
    }

    /// Of this place, which follows the one before; nothing if the piece ends too soon.
    #[inline(always)]
    fn next(&mut self, finder: &Finder, place: usize) -> Option<usize> {
        let whole = self.sum.wrapping_add(finder.mark(place + self.count - 1));
        self.sum = whole.wrapping_sub(finder.mark(place).wrapping_mul(self.power)).wrapping_mul(FACTOR);
        let hash = (whole.wrapping_mul(0xd6e8_feb8_6659_fd93) >> (64 - BITS)) as usize;
        (place + self.count <= finder.end).then_some(hash)
    }
}
