//! What is counted.

/// What happened to one cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// By [`super::Type`]. At the first level references, below it lines asked for because of such references, and writes
    /// that came down.
    pub accesses: [u64; 4],
    /// Of these, by [`super::Type`]. A reference misses if any of its lines does.
    pub misses: [u64; 4],
    /// References to more than one line.
    pub straddling: u64,
    /// Lines that left for others.
    pub evictions: u64,
    /// Of these, those sent down because they were dirty.
    pub write_backs: u64,
    /// Writes sent down at once.
    pub writes_through: u64,
    /// Misses by [`super::Class`], where they are told apart.
    pub classes: [u64; 3],
}

impl Counts {
    /// Each number beside that of the other.
    fn beside(&mut self, other: &Counts, mut both: impl FnMut(&mut u64, u64)) {
        let Counts { accesses, misses, straddling, evictions, write_backs, writes_through, classes } = other;
        let pairs = self.accesses.iter_mut().zip(accesses).chain(self.misses.iter_mut().zip(misses));
        let pairs = pairs.chain(self.classes.iter_mut().zip(classes));
        pairs.for_each(|(own, other)| both(own, *other));
        both(&mut self.straddling, *straddling);
        both(&mut self.evictions, *evictions);
        both(&mut self.write_backs, *write_backs);
        both(&mut self.writes_through, *writes_through);
    }

    pub fn add(&mut self, other: &Counts) {
        self.beside(other, |sum, more| *sum += more);
    }

    /// What was counted since these were `before`.
    pub fn since(&self, before: &Counts) -> Counts {
        let mut since = self.clone();
        since.beside(before, |now, before| *now -= before);
        since
    }
}

/// What came to be asked of the memory behind all caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Lines, of the size that the last level has.
    pub lines_read: u64,
    /// Lines and parts of lines.
    pub writes: u64,
}

impl Memory {
    pub fn since(&self, before: &Memory) -> Memory {
        Memory { lines_read: self.lines_read - before.lines_read, writes: self.writes - before.writes }
    }
}
