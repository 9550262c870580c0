//! What the model remembers: of each place in the program, of each stretch of history. All of a fixed size; what falls on
//! the same entry takes it over, which costs bytes and never harms.

use crate::{Batch, Fields, Reference};

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
pub(crate) const GUESSES: usize = 4;
pub(crate) const STRIDE: usize = 0;
pub(crate) const LAST: usize = 1;
/// As far from the reference before as last time.
pub(crate) const NEAR: usize = 2;
/// What followed the reference before at this place.
pub(crate) const AFTER: usize = 3;

/// An address that is near another: numbers are kept as their lower half, so that tables stay in a core's own cache.
#[inline(always)]
pub(crate) fn widen(near: u64, low: u32) -> u64 {
    near & !u64::from(u32::MAX) | u64::from(low)
}

const LOWER_BITS: u32 = 28;

/// Addresses as numbers of half their size: which of the stretches of memory that were used last they are in, and where.
#[derive(Default)]
pub(crate) struct Stretches {
    uppers: [u64; 16],
    /// The one used last.
    last: usize,
    /// The one that a new one replaces.
    oldest: usize,
}

impl Stretches {
    /// After so many others the number stands for another address, which costs bytes and never harms.
    #[inline(always)]
    pub(crate) fn name(&mut self, address: u64) -> u32 {
        let upper = address >> LOWER_BITS;
        if self.uppers[self.last] != upper {
            self.find(upper);
        }
        (self.last as u32) << LOWER_BITS | address as u32 & ((1 << LOWER_BITS) - 1)
    }

    /// The number, if the address has one without replacing another.
    pub(crate) fn known(&self, address: u64) -> Option<u32> {
        let at = self.uppers.iter().position(|known| *known == address >> LOWER_BITS)?;
        Some((at as u32) << LOWER_BITS | address as u32 & ((1 << LOWER_BITS) - 1))
    }

    fn find(&mut self, upper: u64) {
        self.last = self.uppers.iter().position(|known| *known == upper).unwrap_or_else(|| {
            self.oldest = (self.oldest + 1) % 16;
            self.uppers[self.oldest] = upper;
            self.oldest
        });
    }

    #[inline(always)]
    pub(crate) fn address(&self, name: u32) -> u64 {
        self.uppers[(name >> LOWER_BITS) as usize] << LOWER_BITS | u64::from(name & ((1 << LOWER_BITS) - 1))
    }
}

/// A place in the program: an instruction, as far as it is known.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Slot {
    pub last: u64,
    /// An offset that came twice in a row.
    pub stride: i32,
    pub offset: i32,
    /// From the reference before.
    pub near: u32,
    /// The most trusted guess.
    pub best: u8,
    /// Of each guess.
    pub trust: [u8; GUESSES],
}

pub(crate) const NO_SLOT: Slot =
    Slot { last: 0, stride: 0, offset: 0, near: 0, best: 0, trust: [0; GUESSES] };

impl Slot {
    #[inline(always)]
    pub(crate) fn advance(&mut self, address: u64, before: u64) {
        let offset = address.wrapping_sub(self.last) as i32;
        if offset == self.offset {
            self.stride = offset;
        }
        self.offset = offset;
        self.last = address;
        self.near = address.wrapping_sub(before) as u32;
    }

    /// The most trusted of the guesses that are right, so that few of them are common; `GUESSES` if none is.
    pub(crate) fn which(&self, guesses: &[u64; GUESSES], address: u64) -> usize {
        let right = (0..GUESSES).rev().filter(|at| guesses[*at] == address);
        right.max_by_key(|at| self.trust[*at]).unwrap_or(GUESSES)
    }

    #[inline(always)]
    pub(crate) fn judge(&mut self, guesses: &[u64; GUESSES], address: u64) {
        let (mut best, mut most) = (0, 0);
        for (at, (trust, guess)) in self.trust.iter_mut().zip(guesses).enumerate() {
            let right = 0u8.wrapping_sub(u8::from(*guess == address));
            *trust = *trust + (((255 - *trust) >> 2) & right) - ((*trust >> 2) & !right);
            (best, most) = if *trust > most { (at as u8, *trust) } else { (best, most) };
        }
        self.best = best;
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
    pc: u32,
    size: u16,
    pub tag: u8,
    /// In the upper half how far it is to be trusted.
    kind: u8,
}

const ONE_TRUST: u8 = 1 << 4;
const MOST_TRUST: u8 = 3 << 4;

impl Next {
    /// Instructions are near the one before.
    #[inline(always)]
    pub(crate) fn act(&self, pc: u64) -> Act {
        Act { pc: widen(pc, self.pc), size: self.size, kind: self.kind & 7 }
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, act: Act, tag: u8) {
        let new = Next { pc: act.pc as u32, size: act.size, tag, kind: act.kind };
        let same = (self.pc, self.size, self.kind & 15) == (new.pc, new.size, new.kind);
        if self.tag == tag && same {
            if self.kind < MOST_TRUST {
                self.kind += ONE_TRUST;
            }
        } else if self.tag == tag && self.kind >= 2 * ONE_TRUST {
            self.kind &= 15;
        } else {
            *self = new;
        }
    }
}

/// The last references, in columns. As many as may come again.
pub(crate) struct Past {
    addresses: Box<[u64]>,
    kinds: Box<[u8]>,
    /// These two have no room if the trace does not have them. Instructions are as [`Stretches`] names them.
    sizes: Box<[u16]>,
    codes: Box<[u32]>,
    pcs: Stretches,
    fields: Fields,
    /// Where the next one goes.
    now: usize,
    /// How many there were.
    count: u64,
    /// One less than there is room for, a power of two.
    mask: usize,
}

impl Past {
    /// With room for 2^`bits`.
    pub(crate) fn new(fields: Fields, bits: u32) -> Past {
        let room = |there: bool| if there { 1 << bits } else { 0 };
        Past {
            addresses: vec![0; 1 << bits].into(),
            kinds: vec![0; 1 << bits].into(),
            sizes: vec![0; room(fields.sizes)].into(),
            codes: vec![0; room(fields.pcs)].into(),
            pcs: Stretches::default(),
            fields,
            now: 0,
            count: 0,
            mask: (1 << bits) - 1,
        }
    }

    /// As if new. Nothing leads to what was before.
    pub(crate) fn clear(&mut self) {
        (self.pcs, self.now, self.count) = (Stretches::default(), 0, 0);
    }

    /// How many there is room for.
    pub(crate) fn room(&self) -> usize {
        self.mask + 1
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, it: &Reference) {
        let now = self.now;
        self.addresses[now] = it.address;
        self.kinds[now] = it.kind;
        if self.fields.sizes {
            self.sizes[now] = it.size;
        }
        if self.fields.pcs {
            self.codes[now] = self.pcs.name(it.pc);
        }
        self.now = (now + 1) & self.mask;
        self.count += 1;
    }

    /// Whether there was a reference so far back, and still is.
    pub(crate) fn reaches(&self, distance: usize) -> bool {
        distance > 0 && distance <= self.mask && distance as u64 <= self.count
    }

    /// The one so far back.
    #[inline(always)]
    pub(crate) fn back(&self, distance: usize) -> Reference {
        let at = self.now.wrapping_sub(distance) & self.mask;
        Reference {
            kind: self.kinds[at],
            address: self.addresses[at],
            size: if self.fields.sizes { self.sizes[at] } else { 0 },
            pc: if self.fields.pcs { self.pcs.address(self.codes[at]) } else { 0 },
            ..Reference::default()
        }
    }

    /// So many come again from so far back, and behind the batch if there is one.
    pub(crate) fn repeat(&mut self, distance: usize, count: usize, mut batch: Option<&mut Batch>) {
        let mut left = count;
        while left > 0 {
            let (from, to) = (self.now.wrapping_sub(distance) & self.mask, self.now);
            // What comes again at once does so piece by piece, and the ring has an end.
            let some = left.min(distance).min(self.room() - from.max(to));
            self.addresses.copy_within(from..from + some, to);
            self.kinds.copy_within(from..from + some, to);
            if self.fields.sizes {
                self.sizes.copy_within(from..from + some, to);
            }
            if self.fields.pcs {
                self.codes.copy_within(from..from + some, to);
            }
            if let Some(batch) = &mut batch {
                let these = to..to + some;
                batch.addresses.extend_from_slice(&self.addresses[these.clone()]);
                batch.kinds.extend_from_slice(&self.kinds[these.clone()]);
                if self.fields.sizes {
                    batch.sizes.extend_from_slice(&self.sizes[these.clone()]);
                }
                if self.fields.pcs {
                    batch.pcs.extend(self.codes[these].iter().map(|code| self.pcs.address(*code)));
                }
            }
            self.now = (to + some) & self.mask;
            left -= some;
        }
        self.count += count as u64;
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

    pub(crate) fn clear(&mut self) {
        self.names.fill((0, 0));
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
