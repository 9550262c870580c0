//! What is counted.

/// What happened to one cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// By [`super::Type`]. At the first level references, below it lines asked for because of such references, and writes
    /// that came down.
    pub accesses: [u64; 5],
    /// Of these, by [`super::Type`]. A reference misses if any of its lines does.
    pub misses: [u64; 5],
    /// References to more than one line.
    pub straddling: u64,
    /// Lines that left for others.
    pub evictions: u64,
    /// Dirty lines sent down: of these, and those that another core wanted to read.
    pub write_backs: u64,
    /// Writes sent down at once.
    pub writes_through: u64,
    /// Misses by [`super::Class`], where they are told apart.
    pub classes: [u64; 4],
    /// Bytes that came from below.
    pub bytes_in: u64,
    /// Bytes sent down: lines or sectors that left, and writes passed on.
    pub bytes_out: u64,
    /// Lines that were fetched before anybody asked for them.
    pub prefetches: u64,
    /// Of these, those that were then used, and those that left unused.
    pub prefetches_used: u64,
    pub prefetches_unused: u64,
    /// Misses whose line had left and was kept.
    pub victim_hits: u64,
    /// Lines that were taken away because an inclusive level below lost them.
    pub invalidated: u64,
    /// Dirty lines that were sent down because the trace says so, and lines that were taken out for that.
    pub copied_back: u64,
    pub dropped: u64,
}

impl Counts {
    /// All numbers, in one order.
    fn all(&mut self) -> impl Iterator<Item = &mut u64> {
        let Counts { accesses, misses, classes, .. } = self;
        let single = [
            &mut self.straddling,
            &mut self.evictions,
            &mut self.write_backs,
            &mut self.writes_through,
            &mut self.bytes_in,
            &mut self.bytes_out,
            &mut self.prefetches,
            &mut self.prefetches_used,
            &mut self.prefetches_unused,
            &mut self.victim_hits,
            &mut self.invalidated,
            &mut self.copied_back,
            &mut self.dropped,
        ];
        accesses.iter_mut().chain(misses).chain(classes).chain(single)
    }

    /// Each number beside that of the other.
    fn beside(&mut self, other: &Counts, both: impl Fn(&mut u64, u64)) {
        let mut other = other.clone();
        self.all().zip(other.all()).for_each(|(own, other)| both(own, *other));
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
    pub bytes_read: u64,
    pub bytes_written: u64,
}

impl Memory {
    pub fn since(&self, before: &Memory) -> Memory {
        Memory {
            lines_read: self.lines_read - before.lines_read,
            writes: self.writes - before.writes,
            bytes_read: self.bytes_read - before.bytes_read,
            bytes_written: self.bytes_written - before.bytes_written,
        }
    }
}
