//! What the model remembers: of each place in the program, of each stretch of history. All of a fixed size; what falls on
//! the same entry takes it over, which costs bytes and never harms.

use super::coder::{Chance, EVEN};

#[inline(always)]
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    (a ^ b.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (b >> 7)
}

/// The entry of a table of 2^`BITS`.
#[inline(always)]
pub(crate) fn spread<const BITS: u32>(hash: u64) -> usize {
    (hash.wrapping_mul(0xd6e8_feb8_6659_fd93) >> (64 - BITS)) as usize
}

/// Ways to guess an address, in the order of `Slot::trust`.
pub(crate) const GUESSES: usize = 8;
pub(crate) const STRIDE: usize = 0;
pub(crate) const LAST: usize = 1;
/// The offset that followed the same offsets at this place.
pub(crate) const OFFSETS: usize = 2;
/// As far from the reference before as last time.
pub(crate) const NEAR: usize = 3;
/// What followed the reference before at this place.
pub(crate) const AFTER: usize = 4;
/// What followed the same references anywhere.
pub(crate) const AGAIN: usize = 5;
/// What followed the same address at this place.
pub(crate) const CHAIN: usize = 6;
/// The offset that followed the same offsets anywhere.
pub(crate) const PATTERN: usize = 7;

/// Those that need nothing but the slot.
pub(crate) const CHEAP: u32 = 1 << STRIDE | 1 << LAST | 1 << NEAR;

/// A place in the program: an instruction, as far as it is known.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Slot {
    pub last: u64,
    /// An offset that came twice in a row.
    pub stride: u64,
    pub offset: u64,
    /// From the reference before.
    pub near: u64,
    /// Of the last offsets.
    pub history: u32,
    /// That the best guess is right.
    pub chance: Chance,
    pub trust: [u8; GUESSES],
    /// The most trusted guess.
    pub best: u8,
}

pub(crate) const NO_SLOT: Slot =
    Slot { last: 0, stride: 0, offset: 0, near: 0, history: 0, chance: EVEN, trust: [0; GUESSES], best: 0 };

impl Slot {
    #[inline(always)]
    pub(crate) fn advance(&mut self, address: u64, before: u64) {
        let offset = address.wrapping_sub(self.last);
        if offset == self.offset {
            self.stride = offset;
        }
        self.offset = offset;
        self.last = address;
        self.near = address.wrapping_sub(before);
    }

    #[inline(always)]
    pub(crate) fn judge(&mut self, guesses: &[u64; GUESSES], address: u64) {
        for (trust, guess) in self.trust.iter_mut().zip(guesses) {
            let right = 0u8.wrapping_sub(u8::from(*guess == address));
            *trust = *trust + (((255 - *trust) >> 2) & right) - ((*trust >> 2) & !right);
        }
        let mut best = 0;
        for at in 1..GUESSES {
            if self.trust[at] > self.trust[best] {
                best = at;
            }
        }
        self.best = best as u8;
    }
}

/// What a reference is, besides its address.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Act {
    pub pc: u64,
    pub size: u16,
    pub kind: u8,
}

/// What followed some history.
#[derive(Clone, Copy, Default)]
pub(crate) struct Next {
    pub act: Act,
    pub tag: u16,
    pub trust: u8,
}

pub(crate) const MOST_TRUST: u8 = 3;

impl Next {
    #[inline(always)]
    pub(crate) fn learn(&mut self, act: Act, tag: u16) {
        if self.tag == tag && self.act == act {
            if self.trust < MOST_TRUST {
                self.trust += 1;
            }
        } else if self.tag == tag && self.trust > 1 {
            self.trust = 0;
        } else {
            *self = Next { act, tag, trust: 0 };
        }
    }
}

const RING_BITS: u32 = 20;
const RING: usize = 1 << RING_BITS;
const HEAD_BITS: u32 = 17;

/// The last references, and where some stretch of them was last seen.
pub(crate) struct Past {
    addresses: Box<[u64]>,
    sorts: Box<[u32]>,
    heads: Box<[u32]>,
    now: usize,
    /// Where what happens now happened before, and for how long it has been the same; 0 is not known.
    pub before: usize,
    pub same: u32,
}

impl Past {
    pub(crate) fn new() -> Past {
        Past {
            addresses: vec![0; RING].into(),
            sorts: vec![0; RING].into(),
            heads: vec![0; 1 << HEAD_BITS].into(),
            ..Past::none()
        }
    }

    /// To put in the place of one for a moment.
    pub(crate) fn none() -> Past {
        Past { addresses: [].into(), sorts: [].into(), heads: [].into(), now: 1, before: 0, same: 0 }
    }

    /// As if new. Heads lead only to what was put in since, so that the rest may stay; all but the first, where no head
    /// leads and reading begins.
    pub(crate) fn clear(&mut self) {
        self.heads.fill(0);
        (self.addresses[0], self.sorts[0]) = (0, 0);
        (self.now, self.before, self.same) = (1, 0, 0);
    }

    #[inline(always)]
    pub(crate) fn address(&self) -> u64 {
        self.addresses[self.before % RING]
    }

    /// Size and kind.
    #[inline(always)]
    pub(crate) fn sort(&self) -> u32 {
        self.sorts[self.before % RING]
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, address: u64, sort: u32) {
        if self.same > 0 && self.address() == address {
            self.same = self.same.saturating_add(1);
            self.before = (self.before + 1) % RING;
        } else {
            self.same = 0;
        }
        self.addresses[self.now % RING] = address;
        self.sorts[self.now % RING] = sort;
        self.now = (self.now + 1) % RING;
    }

    /// Remembers where the stretch that this is the hash of ended, and goes where it ended last if nothing is known.
    #[inline(always)]
    pub(crate) fn mark(&mut self, hash: u64) {
        let head = &mut self.heads[spread::<HEAD_BITS>(hash)];
        if self.same == 0 && *head != 0 {
            self.before = *head as usize;
            self.same = 1;
        }
        *head = self.now as u32;
    }
}

const PAGE_BITS: u32 = 12;
const REGION_BITS: u32 = 12;
/// A page belongs to what its instruction referred to before if that is not farther away, in bytes to the power of two;
/// else to its neighbours, if they are not farther away, in pages.
const REACH_BITS: u32 = 16;
const NEIGHBOURS: u64 = 8;

/// Stretches of memory that are used alike, such as arrays: without instructions, which of them were referred to before
/// tells places in the program apart.
pub(crate) struct Regions {
    /// Pages and what they belong to, which goes by the name of its first page.
    names: Box<[(u64, u64)]>,
}

impl Regions {
    pub(crate) fn new() -> Regions {
        Regions { names: vec![(0, 0); 1 << REGION_BITS].into() }
    }

    /// Of the region that an address is in; `anchor` is where the same place referred to before.
    #[inline(always)]
    pub(crate) fn name(&mut self, address: u64, anchor: u64) -> u64 {
        let page = page(address);
        let (known, name) = self.names[spread::<REGION_BITS>(page)];
        if known == page { name } else { self.join(address, anchor) }
    }

    #[cold]
    fn join(&mut self, address: u64, anchor: u64) -> u64 {
        let new = page(address);
        let near = address.wrapping_sub(anchor).wrapping_add(1 << REACH_BITS) >> (REACH_BITS + 1) == 0;
        let neighbours = (1..=NEIGHBOURS).flat_map(|far| [new + far, new.saturating_sub(far)]);
        let name = near.then(|| page(anchor)).into_iter().chain(neighbours).find_map(|page| {
            let (known, name) = self.names[spread::<REGION_BITS>(page)];
            (known == page && page != 0).then_some(name)
        });
        let name = name.unwrap_or(new);
        self.names[spread::<REGION_BITS>(new)] = (new, name);
        name
    }
}

/// Counted from 1.
fn page(address: u64) -> u64 {
    (address >> PAGE_BITS) + 1
}
