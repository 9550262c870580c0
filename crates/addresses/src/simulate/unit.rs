//! One cache among others: its lines, what is behind it, and what it has counted.

use super::Type;
use super::cache::{Config, Inclusion, Policy, Write};
use super::classes::Classifier;
use super::counts::Counts;
use super::extras::Extras;
use super::lines::Lines;
use super::system::Side;

/// What is wanted of one line.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) line: u64,
    /// Of its first byte.
    pub(super) address: u64,
    pub(super) kind: Type,
    pub(super) bytes: u64,
}

/// Hands over the piece of each line that a reference is to. Whether there are several, and whether one of them was missing.
#[inline(always)]
pub(super) fn each_line(
    address: u64,
    kind: Type,
    size: u64,
    shift: u32,
    length: u64,
    mut is_missing: impl FnMut(Piece) -> bool,
) -> (bool, bool) {
    let offset = address & (length - 1);
    let line = address >> shift;
    // The last byte's line, counted from the first's.
    let more = (offset + size - 1) >> shift;
    if more == 0 {
        return (false, is_missing(Piece { line, address, kind, bytes: size }));
    }
    let highest = u64::MAX >> shift;
    let (mut left, mut room, mut address) = (size, length - offset, address);
    let mut missed = false;
    for n in 0..=more {
        // After the last address comes the first.
        let line = line.wrapping_add(n) & highest;
        missed |= is_missing(Piece { line, address, kind, bytes: left.min(room) });
        left = left.saturating_sub(room);
        address = address.wrapping_add(room);
        room = length;
    }
    (true, missed)
}

/// One cache of one core, or one that all share.
pub(super) struct Cache {
    pub(super) config: Config,
    pub(super) lines: Lines,
    pub(super) shift: u32,
    /// Of the bits of an address that tell the byte of a line.
    mask: u64,
    /// A reference that ends within so many bytes of a line may be found at its front, without a look at the rest: one that
    /// does not write, and one that does.
    reach: [u64; 2],
    /// The cache behind it, or memory.
    pub(super) below: usize,
    /// From 0.
    pub(super) level: usize,
    pub(super) side: Side,
    pub(super) name: String,
    pub(super) counts: Counts,
    pub(super) extras: Option<Box<Extras>>,
    /// Writes of other cores take lines away.
    pub(super) coherent: bool,
}

impl Cache {
    pub(super) fn new(
        config: Config,
        seed: u64,
        name: String,
        level: usize,
        side: Side,
        below: usize,
    ) -> Cache {
        let line = config.geometry.line();
        let extras = Extras::of(&config);
        // What counts every use, or a tree, must hear of them all.
        let plain = extras.is_none() && config.policy != Policy::Plru;
        Cache {
            config,
            lines: Lines::new(&config.geometry, config.policy, seed),
            shift: line.trailing_zeros(),
            mask: line - 1,
            // A write that goes down at once does not end at the front.
            reach: [plain, plain && config.write == Write::Back].map(|near| if near { line } else { 0 }),
            below,
            level,
            side,
            name,
            counts: Counts::default(),
            extras,
            coherent: false,
        }
    }

    /// Tells the classes of misses apart from here on.
    pub(super) fn classify(&mut self) {
        let geometry = &self.config.geometry;
        let lines = (geometry.size() / geometry.line()) as usize;
        self.extras.get_or_insert_default().classifier = Some(Classifier::new(lines));
        // Every use counts.
        self.reach = [0; 2];
    }

    /// Others hear of every write from here on, before it is done.
    pub(super) fn announce_writes(&mut self) {
        self.reach[1] = 0;
        self.coherent = true;
    }

    /// Whether a reference finds all it wants at the front of a set, and nothing else happens. Nearly all do: they are to a line
    /// that was just used.
    #[inline(always)]
    pub(super) fn is_front(&mut self, address: u64, kind: Type, size: u64) -> bool {
        let write = kind == Type::Write;
        let offset = address & self.mask;
        offset + size <= self.reach[usize::from(write)] && self.lines.is_front(address >> self.shift, write)
    }

    pub(super) fn length(&self) -> u64 {
        self.config.geometry.line()
    }

    /// Bytes that come and go together.
    pub(super) fn grain(&self) -> u64 {
        self.config.sector.unwrap_or(self.length())
    }

    pub(super) fn back(&self) -> bool {
        self.config.write == Write::Back
    }

    /// Whether a write that finds no line ends here, in one that is brought in.
    pub(super) fn takes_writes(&self) -> bool {
        self.back() && self.config.allocate
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.config.inclusion == Inclusion::Exclusive
    }

    /// Whether what is wanted is there; then it was used, and written to if `dirty`.
    pub(super) fn look(&mut self, piece: &Piece, dirty: bool) -> bool {
        match &mut self.extras {
            None => self.lines.find(piece.line, dirty),
            Some(extras) => {
                let Piece { line, address, bytes, kind } = *piece;
                let hit = match &mut extras.sectors {
                    None => self.lines.find(line, dirty),
                    Some(sectors) => {
                        let hit = self.lines.find(line, false) && sectors.missing(line, address, bytes) == 0;
                        if hit && dirty {
                            sectors.fill(line, address, bytes, true);
                            self.lines.find(line, true);
                        }
                        hit
                    }
                };
                if kind == Type::Prefetch {
                    extras.asked_to_prefetch(line);
                } else {
                    let write = matches!(kind, Type::Write | Type::Written);
                    let useful = extras.used(line, hit, !write || self.config.allocate);
                    self.counts.prefetches_used += u64::from(useful);
                }
                hit
            }
        }
    }

    pub(super) fn missed(&mut self, kind: Type) {
        self.counts.misses[kind as usize] += 1;
        if let Some(class) = self.extras.as_mut().and_then(|extras| extras.class()) {
            self.counts.classes[class as usize] += 1;
        }
    }

    /// A line that is kept in spite of having left, if it is the one; whether it is dirty.
    pub(super) fn take_victim(&mut self, line: u64) -> Option<bool> {
        let victims = self.extras.as_mut()?.victims.as_mut()?;
        let dirty = victims.remove(line)?;
        self.counts.victim_hits += 1;
        Some(dirty)
    }

    /// A line left: the one that leaves for good.
    pub(super) fn keep_victim(&mut self, line: u64, dirty: bool) -> Option<(u64, bool)> {
        match self.extras.as_mut().and_then(|extras| extras.victims.as_mut()) {
            Some(victims) => victims.insert(line, dirty),
            None => Some((line, dirty)),
        }
    }

    /// Whether the line is there, or kept; it is not used by that.
    pub(super) fn holds(&self, line: u64) -> bool {
        let kept = self.extras.as_ref().and_then(|extras| extras.victims.as_ref());
        self.lines.contains(line) || kept.is_some_and(|victims| victims.contains(line))
    }

    /// Whether the line is there or kept, and dirty.
    pub(super) fn is_dirty(&self, line: u64) -> bool {
        let kept = self.extras.as_ref().and_then(|extras| extras.victims.as_ref());
        self.lines.is_dirty(line) || kept.is_some_and(|victims| victims.is_dirty(line))
    }

    /// What was written to the line is elsewhere too from here on; whether it was dirty.
    pub(super) fn clean(&mut self, line: u64) -> bool {
        let kept = self.extras.as_mut().and_then(|extras| extras.victims.as_mut());
        let kept = kept.is_some_and(|victims| victims.clean(line));
        self.lines.clean(line) || kept
    }

    /// The same, and where the dirty parts begin, counted from the line's first byte: each is a sector, or the line. Nothing if
    /// it was not dirty.
    pub(super) fn clean_parts(&mut self, line: u64) -> Option<Vec<u64>> {
        self.clean(line).then(|| {
            let sectors = self.extras.as_mut().and_then(|extras| extras.sectors.as_mut());
            sectors.map_or(vec![0], |sectors| sectors.clean(line))
        })
    }

    /// All lines that are there or kept; the ones that were used last are at the end of their set's.
    pub(super) fn all_lines(&self) -> Vec<u64> {
        let kept = self.extras.as_ref().and_then(|extras| extras.victims.as_ref());
        let mut all = kept.map_or(Vec::new(), Lines::all);
        all.extend(self.lines.all());
        all
    }

    /// No cache would have the line, whatever its size.
    pub(super) fn forget(&mut self, line: u64) {
        if let Some(classifier) = self.extras.as_mut().and_then(|extras| extras.classifier.as_mut()) {
            classifier.forget(line);
        }
    }

    /// Another core writes to the line.
    pub(super) fn invalidate(&mut self, line: u64) {
        if self.remove(line).is_some()
            && let Some(classifier) = self.extras.as_mut().and_then(|extras| extras.classifier.as_mut())
        {
            classifier.lose(line);
        }
    }

    /// A line is gone for good: where its dirty sectors begin, if it has sectors.
    pub(super) fn left(&mut self, line: u64) -> Option<Vec<u64>> {
        let (unused, soiled) = self.extras.as_mut()?.left(line);
        self.counts.prefetches_unused += u64::from(unused);
        soiled
    }

    /// Takes a line away, wherever it is; whether it was there, and dirty.
    pub(super) fn remove(&mut self, line: u64) -> Option<bool> {
        let kept = self.extras.as_mut().and_then(|extras| extras.victims.as_mut());
        let dirty = self.lines.remove(line).or_else(|| kept?.remove(line))?;
        self.left(line);
        Some(dirty)
    }
}
