//! How lines come up and go down. Where caches have nothing beside them, [`super::plain`] does it faster.

use super::Type;
use super::cache::Inclusion;
use super::hierarchy::{Hierarchy, MEMORY};
use super::sectors;
use super::unit::{Piece, each_line};

impl Hierarchy {
    /// A reference, at the first level.
    #[inline(never)]
    pub(super) fn refer(&mut self, at: usize, address: u64, kind: Type, size: u64) {
        let cache = &self.caches[at];
        let (shift, length) = (cache.shift, cache.length());
        let (several, missed) =
            each_line(address, kind, size, shift, length, |piece| self.refer_line(at, piece));
        let cache = &mut self.caches[at];
        cache.counts.straddling += u64::from(several);
        if missed {
            cache.missed(kind);
            self.missed[cache.level] += 1;
        }
    }

    /// Whether the line was missing.
    fn refer_line(&mut self, at: usize, piece: Piece) -> bool {
        if self.coherence.is_some() {
            self.arrange(at, &piece);
        }
        let cache = &mut self.caches[at];
        let write = piece.kind == Type::Write;
        let dirty = write && cache.back();
        let hit = cache.look(&piece, dirty);
        let held = hit || self.rescue(at, piece.line, dirty);
        if !held || (write && !dirty) {
            self.send(at, piece, held);
        }
        // A line that the cache has is not fetched.
        self.supplier = None;
        self.prefetch(at, &piece, hit);
        !hit
    }

    /// What the first level cannot do alone.
    fn send(&mut self, at: usize, piece: Piece, held: bool) {
        let cache = &self.caches[at];
        let write = piece.kind == Type::Write;
        if !held && (!write || cache.config.allocate) {
            let (fetch, dirty) = (!write || cache.config.fetch, write && cache.back());
            self.bring(at, piece, fetch, dirty);
        }
        // What is held and comes here is a write that does not stay.
        if write && (held || !self.caches[at].takes_writes()) {
            self.pass_on(at, piece);
        }
    }

    /// A write goes down at once.
    fn pass_on(&mut self, at: usize, piece: Piece) {
        let cache = &mut self.caches[at];
        cache.counts.writes_through += 1;
        cache.counts.bytes_out += piece.bytes;
        let below = cache.below;
        self.put(below, piece.address, piece.bytes, true);
    }

    /// Puts a line back that has left and was kept, if there is one.
    fn rescue(&mut self, at: usize, line: u64, dirty: bool) -> bool {
        let kept = self.caches[at].take_victim(line);
        if let Some(was_dirty) = kept {
            self.insert(at, line, dirty || was_dirty);
        }
        kept.is_some()
    }

    /// Puts in what is missing of a line, and fetches it first if that is needed.
    fn bring(&mut self, at: usize, piece: Piece, fetch: bool, dirty: bool) {
        let came_dirty = fetch && self.fetch(at, &piece);
        self.fill(at, &piece, dirty || came_dirty);
    }

    /// Gets what is missing of a line from below. Whether it comes dirty.
    fn fetch(&mut self, at: usize, piece: &Piece) -> bool {
        let cache = &mut self.caches[at];
        let (first, length) = (piece.line << cache.shift, cache.length());
        let Some(sectors) = cache.extras.as_ref().and_then(|extras| extras.sectors.as_ref()) else {
            cache.counts.bytes_in += length;
            return self.ask(at, first, length, piece.kind);
        };
        let bytes = sectors.bytes();
        let missing = sectors.missing(piece.line, piece.address, piece.bytes);
        for offset in sectors::offsets(missing, bytes) {
            self.caches[at].counts.bytes_in += bytes;
            self.ask(at, first + offset, bytes, piece.kind);
        }
        false
    }

    /// A cache lacks bytes of a line, and asks the one below. Whether they come dirty: an exclusive level gives away what it has.
    fn ask(&mut self, from: usize, address: u64, bytes: u64, kind: Type) -> bool {
        if self.is_supplied(from, address) {
            return false;
        }
        let at = self.caches[from].below;
        let Some(cache) = self.caches.get_mut(at) else {
            self.memory.lines_read += 1;
            self.memory.bytes_read += bytes;
            return false;
        };
        let piece = Piece { line: address >> cache.shift, address, kind, bytes };
        cache.counts.accesses[kind as usize] += 1;
        let hit = cache.look(&piece, false);
        if !hit {
            cache.missed(kind);
            self.missed[cache.level] += u64::from(kind != Type::Prefetch);
        }
        if cache.is_exclusive() {
            return match hit {
                true => cache.remove(piece.line).unwrap_or(false),
                false => self.ask(at, address, bytes, kind),
            };
        }
        if !hit && !self.rescue(at, piece.line, false) {
            self.bring(at, piece, true, false);
        }
        if kind != Type::Prefetch {
            self.prefetch(at, &piece, hit);
        }
        false
    }

    /// Bytes of one line come down from above. An exclusive level also takes what is not dirty.
    pub(super) fn put(&mut self, at: usize, address: u64, bytes: u64, dirty: bool) {
        let Some(cache) = self.caches.get_mut(at) else {
            self.memory.writes += u64::from(dirty);
            self.memory.bytes_written += if dirty { bytes } else { 0 };
            return;
        };
        let piece = Piece { line: address >> cache.shift, address, kind: Type::Written, bytes };
        let soil = dirty && cache.back();
        cache.counts.accesses[Type::Written as usize] += 1;
        let hit = cache.look(&piece, soil);
        if !hit {
            cache.missed(Type::Written);
        }
        let allocate = cache.config.allocate || cache.is_exclusive();
        // What is whole needs nothing from below.
        let fetch = bytes < cache.grain() && cache.config.fetch;
        let back = cache.back();
        let held = hit || self.rescue(at, piece.line, soil);
        if !held && allocate {
            self.bring(at, Piece { kind: Type::Write, ..piece }, fetch, soil);
        }
        if dirty && !(back && (held || allocate)) {
            self.pass_on(at, piece);
        }
    }

    /// Puts in a line, or sectors of one that is there already.
    fn fill(&mut self, at: usize, piece: &Piece, dirty: bool) {
        let cache = &mut self.caches[at];
        if let Some(sectors) = cache.extras.as_mut().and_then(|extras| extras.sectors.as_mut())
            && sectors.fill(piece.line, piece.address, piece.bytes, dirty)
        {
            if dirty {
                cache.lines.find(piece.line, true);
            }
            return;
        }
        self.insert(at, piece.line, dirty);
    }

    /// Puts in a line that is not there; another may have to leave.
    fn insert(&mut self, at: usize, line: u64, dirty: bool) {
        let cache = &mut self.caches[at];
        if let Some((old, dirty)) = cache.lines.insert(line, dirty)
            && let Some((old, dirty)) = cache.keep_victim(old, dirty)
        {
            self.evict(at, old, dirty);
        }
    }

    /// A line has left for good.
    fn evict(&mut self, at: usize, old: u64, dirty: bool) {
        let cache = &mut self.caches[at];
        cache.counts.evictions += 1;
        let soiled = cache.left(old);
        let (below, first, length, grain) = (cache.below, old << cache.shift, cache.length(), cache.grain());
        let inclusive = cache.config.inclusion == Inclusion::Inclusive;
        let dirty = inclusive && self.clear_above(at, old) || dirty;
        let counts = &mut self.caches[at].counts;
        if dirty {
            counts.write_backs += 1;
            // A plain line is one piece.
            let Some(soiled) = soiled else {
                counts.bytes_out += length;
                return self.put(below, first, length, true);
            };
            counts.bytes_out += grain * soiled.len() as u64;
            soiled.into_iter().for_each(|offset| self.put(below, first + offset, grain, true));
        } else if below != MEMORY && self.caches[below].is_exclusive() {
            self.caches[at].counts.bytes_out += length;
            self.put(below, first, length, false);
        }
    }

    /// An inclusive level has lost a line, and so do all above it. Whether one of them had it dirty.
    fn clear_above(&mut self, at: usize, line: u64) -> bool {
        let (first, length) = (line << self.caches[at].shift, self.caches[at].length());
        let mut dirty = false;
        for above in 0..self.caches.len() {
            if self.caches[above].below != at {
                continue;
            }
            let shift = self.caches[above].shift;
            for n in 0..length >> shift {
                let line = (first >> shift) + n;
                dirty |= self.clear_above(above, line);
                if let Some(was_dirty) = self.caches[above].remove(line) {
                    self.caches[above].counts.invalidated += 1;
                    dirty |= was_dirty;
                }
            }
        }
        dirty
    }

    /// After a reference: what the cache's prefetcher wants, if it has one.
    #[inline]
    fn prefetch(&mut self, at: usize, piece: &Piece, hit: bool) {
        if self.caches[at].config.prefetch.is_some() {
            self.prefetch_after(at, piece, hit);
        }
    }

    fn prefetch_after(&mut self, at: usize, piece: &Piece, hit: bool) {
        let pc = self.pc;
        let cache = &mut self.caches[at];
        let wanted = cache.extras.as_mut().and_then(|extras| extras.wants(piece.address, pc, hit));
        let Some(line) = wanted.filter(|line| !cache.holds(*line)) else { return };
        cache.counts.prefetches += 1;
        let wanted =
            Piece { line, address: line << cache.shift, kind: Type::Prefetch, bytes: cache.length() };
        if at >= self.shared_caches && self.coherence.is_some() {
            self.arrange(at, &wanted);
        }
        self.bring(at, wanted, true, false);
        self.supplier = None;
        if let Some(extras) = &mut self.caches[at].extras {
            extras.is_prefetched(line);
        }
    }
}
