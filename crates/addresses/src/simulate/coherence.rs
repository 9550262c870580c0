//! Private caches that hear of each other: which core may write a line, and what it costs the others (MSI, MESI, MOESI).
//!
//! A core's state of a line is of all its private caches together. It is asked for before a reference goes through them. Lines
//! leave caches without a word, as on a bus that snoops; so what is known of a holder counts only while one of its caches has
//! the line.

use refrain_fold::FastMap;

use super::Type;
use super::hierarchy::{Hierarchy, MEMORY};
use super::system::Side;
use super::unit::Piece;

/// More cores than these are refused: each is a bit.
pub const MOST_CORES: usize = 64;
/// Parts of a line that are told apart for sharing, at most: each is a bit.
const PARTS: u64 = 64;

/// How private caches are kept coherent. A write takes the line away from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Modified, shared, invalid.
    Msi,
    /// And exclusive: who alone has a clean line writes without a word.
    Mesi,
    /// And owned: what is dirty is shared as it is, and written back only when it leaves its owner for want of room.
    Moesi,
}

impl Protocol {
    pub const ALL: [Protocol; 3] = [Protocol::Msi, Protocol::Mesi, Protocol::Moesi];

    pub fn name(self) -> &'static str {
        match self {
            Protocol::Msi => "msi",
            Protocol::Mesi => "mesi",
            Protocol::Moesi => "moesi",
        }
    }
}

/// What a core has of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    Modified,
    Owned,
    Exclusive,
    Shared,
    #[default]
    Invalid,
}

/// What coherence cost a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Lines that it lacked and asked for, to read or for a prefetch, and to write.
    pub reads: u64,
    pub reads_to_write: u64,
    /// Writes to a line that it had and could not write to before the others knew.
    pub upgrades: u64,
    /// Writes to a line that it alone had clean: nobody needs to know.
    pub silent_upgrades: u64,
    /// Copies of others that its writes took away, and copies that it lost so.
    pub invalidations_sent: u64,
    pub invalidations_received: u64,
    /// Lines that it lacked because a write of another took them away, and of which it now uses bytes that others wrote since.
    pub true_sharing: u64,
    /// The same, if others wrote only bytes that it does not use now.
    pub false_sharing: u64,
    /// Lines that came from another core's caches, and that it gave to others.
    pub transfers_in: u64,
    pub transfers_out: u64,
    /// Dirty lines that it wrote back because another read them.
    pub write_backs: u64,
}

impl Traffic {
    fn all(&mut self) -> [&mut u64; 11] {
        [
            &mut self.reads,
            &mut self.reads_to_write,
            &mut self.upgrades,
            &mut self.silent_upgrades,
            &mut self.invalidations_sent,
            &mut self.invalidations_received,
            &mut self.true_sharing,
            &mut self.false_sharing,
            &mut self.transfers_in,
            &mut self.transfers_out,
            &mut self.write_backs,
        ]
    }

    pub fn add(&mut self, mut other: Traffic) {
        self.all().into_iter().zip(other.all()).for_each(|(sum, more)| *sum += *more);
    }

    /// What was counted since these were `before`.
    pub fn since(mut self, mut before: Traffic) -> Traffic {
        self.all().into_iter().zip(before.all()).for_each(|(now, before)| *now -= *before);
        self
    }

    /// Misses because of writes of others.
    pub fn coherence_misses(&self) -> u64 {
        self.true_sharing + self.false_sharing
    }
}

/// What is known of a line.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    /// Cores that got it and did not lose it to a write.
    holders: u64,
    /// Cores that lost it to a write, and have not got it since.
    lost: u64,
    /// The one of the holders that is not in [`State::Shared`], if there is one, and its state.
    owner: Option<(u8, State)>,
}

#[derive(Debug)]
pub(super) struct Coherence {
    pub(super) protocol: Protocol,
    /// Of a line and of a part of it, as powers of two of bytes.
    shift: u32,
    part: u32,
    lines: FastMap<u64, Line>,
    /// By core and line that it lost: the parts that others wrote since.
    written: FastMap<(u64, usize), u64>,
    pub(super) traffic: Vec<Traffic>,
}

fn bit(core: usize) -> u64 {
    1 << core
}

/// The cores of a set of bits.
fn cores(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let core = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(core)
    })
}

impl Coherence {
    pub(super) fn new(protocol: Protocol, line: u64, cores: usize) -> Coherence {
        Coherence {
            protocol,
            shift: line.trailing_zeros(),
            part: (line / PARTS).max(1).trailing_zeros(),
            lines: FastMap::default(),
            written: FastMap::default(),
            traffic: vec![Traffic::default(); cores],
        }
    }

    /// The parts of a line that these bytes are in.
    fn parts(&self, piece: &Piece) -> u64 {
        let offset = piece.address & ((1 << self.shift) - 1);
        let (first, last) = (offset >> self.part, (offset + piece.bytes.max(1) - 1) >> self.part);
        (u64::MAX >> (PARTS - 1 - (last - first))) << first
    }

    /// A core has come to lack a line, and asks for it.
    fn count_sharing(&mut self, core: usize, line: u64, piece: &Piece) -> Option<bool> {
        let since = self.written.remove(&(line, core))?;
        if piece.kind == Type::Prefetch {
            return None;
        }
        let is_true = since & self.parts(piece) != 0;
        match is_true {
            true => self.traffic[core].true_sharing += 1,
            false => self.traffic[core].false_sharing += 1,
        }
        Some(is_true)
    }
}

impl Hierarchy {
    /// Whether a private cache of the core has the line.
    fn core_holds(&self, core: usize, line: u64) -> bool {
        self.caches[self.cores[core].caches.clone()].iter().any(|cache| cache.holds(line))
    }

    /// Sees to it that a core may do what it is about to. Then the line comes from another core, if `supplier` is one.
    pub(super) fn arrange(&mut self, at: usize, piece: &Piece) {
        let write = piece.kind == Type::Write;
        // Who has a line may read it.
        if !write && self.caches[at].lines.contains(piece.line) {
            return;
        }
        let Some(mut coherence) = self.coherence.take() else { return };
        self.arrange_with(&mut coherence, piece);
        self.coherence = Some(coherence);
    }

    fn arrange_with(&mut self, coherence: &mut Coherence, piece: &Piece) {
        let (core, line, write) = (self.core, piece.address >> coherence.shift, piece.kind == Type::Write);
        let held = self.core_holds(core, line);
        let mut known = coherence.lines.get(&line).copied().unwrap_or_default();
        // Of a request before this one.
        self.supplier = None;
        if held && !write {
            // A cache beside the one that has the line may lack it, and what is below is stale if another core owns it.
            let owner = known.owner.map(|(owner, _)| usize::from(owner));
            let other = owner.filter(|owner| *owner != core && self.core_holds(*owner, line));
            self.supplier = other.map(|owner| (owner, line));
            return;
        }
        if held && known.owner == Some((core as u8, State::Modified)) {
            return note_write(coherence, core, line, known.lost, piece);
        }
        // Those whose caches let the line go meanwhile.
        for holder in cores(known.holders) {
            if !self.core_holds(holder, line) {
                known.holders &= !bit(holder);
                known.owner = known.owner.filter(|(owner, _)| usize::from(*owner) != holder);
            }
        }
        if !held {
            if let Some(is_true) = coherence.count_sharing(core, line, piece) {
                self.shared[usize::from(!is_true)] += 1;
            }
            known.lost &= !bit(core);
        }
        match write {
            true => self.arrange_write(coherence, line, held, &mut known),
            false => self.arrange_read(coherence, line, &mut known),
        }
        coherence.lines.insert(line, known);
        if write {
            note_write(coherence, core, line, known.lost, piece);
        }
    }

    fn arrange_write(&mut self, coherence: &mut Coherence, line: u64, held: bool, known: &mut Line) {
        let core = self.core;
        let others = known.holders & !bit(core);
        let own = &mut coherence.traffic[core];
        match (held, known.owner) {
            (true, Some((owner, State::Exclusive))) if usize::from(owner) == core => own.silent_upgrades += 1,
            (true, _) => own.upgrades += 1,
            (false, _) => own.reads_to_write += 1,
        }
        // Also where the core has the line: the cache that takes the write may not.
        let owner = known.owner.map(|(owner, _)| usize::from(owner));
        self.supplier = owner.filter(|owner| *owner != core).map(|owner| (owner, line));
        own.invalidations_sent += u64::from(others.count_ones());
        for other in cores(others) {
            coherence.traffic[other].invalidations_received += 1;
            coherence.written.insert((line, other), 0);
            for cache in &mut self.caches[self.cores[other].caches.clone()] {
                cache.invalidate(line);
            }
        }
        known.lost |= others;
        known.holders = bit(core);
        known.owner = Some((core as u8, State::Modified));
    }

    fn arrange_read(&mut self, coherence: &mut Coherence, line: u64, known: &mut Line) {
        let core = self.core;
        coherence.traffic[core].reads += 1;
        if let Some((owner, state)) = known.owner {
            let owner_core = usize::from(owner);
            known.owner = match (coherence.protocol, state) {
                (Protocol::Moesi, State::Modified | State::Owned) if self.is_dirty(owner_core, line) => {
                    Some((owner, State::Owned))
                }
                (_, State::Modified) => {
                    coherence.traffic[owner_core].write_backs +=
                        u64::from(self.write_back(owner_core, line, coherence.shift));
                    None
                }
                _ => None,
            };
            self.supplier = Some((owner_core, line));
        }
        let alone = known.holders & !bit(core) == 0;
        known.holders |= bit(core);
        if alone && coherence.protocol != Protocol::Msi {
            known.owner = Some((core as u8, State::Exclusive));
        }
    }

    fn is_dirty(&self, core: usize, line: u64) -> bool {
        self.caches[self.cores[core].caches.clone()].iter().any(|cache| cache.is_dirty(line))
    }

    /// A core's dirty line goes down and stays, clean. Whether it was dirty. The last private cache counts it, whichever had it.
    fn write_back(&mut self, core: usize, line: u64, shift: u32) -> bool {
        let range = self.cores[core].caches.clone();
        let mut dirty = false;
        // The first of them is the last level's.
        let mut lowest = None;
        for at in range {
            let cache = &mut self.caches[at];
            dirty |= cache.clean(line);
            let is_last = cache.below == MEMORY || cache.below < self.shared_caches;
            if is_last && cache.side != Side::Instructions {
                lowest = lowest.or(Some(at));
            }
        }
        if let (true, Some(at)) = (dirty, lowest) {
            let cache = &mut self.caches[at];
            cache.counts.write_backs += 1;
            cache.counts.bytes_out += 1 << shift;
            let below = cache.below;
            self.put(below, line << shift, 1 << shift, true);
        }
        dirty
    }

    /// Whether the line of an address, which a cache asks the one below it for, comes from another core. It does if the request
    /// leaves the private caches. Lines that shared caches ask for, for what comes down meanwhile, are no such requests.
    pub(super) fn is_supplied(&mut self, from: usize, address: u64) -> bool {
        let (Some((owner, line)), Some(coherence)) = (self.supplier, &mut self.coherence) else {
            return false;
        };
        let below = self.caches[from].below;
        let leaves = from >= self.shared_caches && (below == MEMORY || below < self.shared_caches);
        if !leaves || address >> coherence.shift != line {
            return false;
        }
        self.supplier = None;
        coherence.traffic[owner].transfers_out += 1;
        coherence.traffic[self.core].transfers_in += 1;
        true
    }

    /// How private caches are kept coherent.
    pub fn protocol(&self) -> Option<Protocol> {
        self.coherence.as_ref().map(|coherence| coherence.protocol)
    }

    /// What coherence cost each core; nothing if nobody asked for it.
    pub fn traffic(&self) -> &[Traffic] {
        self.coherence.as_ref().map_or(&[], |coherence| &coherence.traffic)
    }

    /// What a core has of the line of an address.
    pub fn state(&self, core: usize, address: u64) -> State {
        let Some(coherence) = &self.coherence else { return State::Invalid };
        let line = address >> coherence.shift;
        let known = coherence.lines.get(&line).copied().unwrap_or_default();
        if known.holders & bit(core) == 0 || !self.core_holds(core, line) {
            return State::Invalid;
        }
        match known.owner {
            Some((owner, state)) if usize::from(owner) == core => state,
            _ => State::Shared,
        }
    }
}

/// Those who lost the line miss these parts.
fn note_write(coherence: &mut Coherence, core: usize, line: u64, lost: u64, piece: &Piece) {
    let parts = coherence.parts(piece);
    for other in cores(lost & !bit(core)) {
        *coherence.written.entry((line, other)).or_default() |= parts;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Geometry, Inclusion, Level, Prefetch, System, Write};
    use super::*;
    use crate::{Batch, Fields, Reference};

    /// What is modified or owned is dirty in a private cache of its core, or was written back; nothing else is dirty: no write is lost,
    /// and none is kept twice. In two private levels of every kind.
    #[test]
    fn dirt_is_where_the_states_say() {
        let config = |size, ways| Config::new(Geometry::new(size, ways, 16).unwrap());
        let firsts = [
            config(64, 2),
            Config { prefetch: Some(Prefetch::Tagged), ..config(64, 2) },
            Config { victims: 2, ..config(32, 1) },
            Config { write: Write::Through, ..config(64, 2) },
            Config { write: Write::Through, allocate: false, ..config(64, 2) },
            Config { allocate: false, ..config(64, 2) },
        ];
        let mut state = 1u64;
        let mut dice = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut owned = 0;
        for first in firsts {
            for inclusion in [Inclusion::Free, Inclusion::Inclusive, Inclusion::Exclusive] {
                // An exclusive level takes what leaves one that writes back.
                if inclusion == Inclusion::Exclusive && first.write == Write::Through {
                    continue;
                }
                for protocol in Protocol::ALL {
                    let second = Config { inclusion, ..config(128, 4) };
                    let third = Config { inclusion: Inclusion::Inclusive, ..config(256, 4) };
                    let levels = [first, second, third].map(Level::Unified).to_vec();
                    let system =
                        System { cores: 3, private: 2, coherence: Some(protocol), ..System::new(levels) };
                    let mut caches = system.build().unwrap();
                    for n in 0..4000 {
                        let (core, kind) = (dice(3) as usize, u8::from(dice(3) == 0));
                        let reference =
                            Reference { kind, address: dice(24 * 16), size: 4, ..Reference::default() };
                        let mut batch = Batch::new();
                        batch.push(Fields { sizes: true, ..Fields::NONE }, reference);
                        caches.add_of(core, &batch);
                        for (core, line) in (0..3).flat_map(|core| (0..25).map(move |line| (core, line))) {
                            let found = caches.state(core, line * 16);
                            let dirty = matches!(found, State::Modified | State::Owned);
                            owned += u64::from(found == State::Owned);
                            // Without inclusion the second level may send its dirty line down while the first still has it.
                            let sent_down = inclusion == Inclusion::Free && dirty;
                            assert!(
                                caches.is_dirty(core, line) == dirty || sent_down,
                                "{protocol:?}, {first:?}, {second:?}, step {n}, core {core}, line {line}: {found:?}"
                            );
                        }
                    }
                }
            }
        }
        assert!(owned > 10_000);
    }
}
