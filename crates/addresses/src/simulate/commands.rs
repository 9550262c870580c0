//! What a trace may tell caches to do beside reads, writes and fetches: copy lines back, invalidate them. It is done as DineroIV
//! does it.

use super::Type;
use super::hierarchy::{Hierarchy, MEMORY};
use crate::{Batch, KINDS, kind};

/// Whether a batch has any.
pub(super) fn are_in(batch: &Batch) -> bool {
    // Without an early end this is done many at a time.
    usize::from(batch.kinds.iter().fold(0, |all, kind| all | kind)) >= KINDS
}

impl Hierarchy {
    /// References, and commands between them.
    pub(super) fn add_with_commands(&mut self, route: &[usize; 3], batch: &Batch) {
        let mut part = Batch::new();
        let mut from = 0;
        for (at, &kind) in batch.kinds.iter().enumerate().filter(|(_, kind)| usize::from(**kind) >= KINDS) {
            batch.copy_part(from..at, &mut part);
            self.add_references(route, &part);
            from = at + 1;
            // Without a size it is of the whole cache.
            let of_all = batch.sizes.get(at) == Some(&0);
            let address = (!of_all).then_some(batch.addresses[at]);
            match kind {
                kind::COPY_BACK => self.on_each(route[Type::Read as usize], address, Self::copy_back),
                _ => {
                    self.on_each(route[Type::Fetch as usize], address, Self::drop_line);
                    self.on_each(route[Type::Read as usize], address, Self::drop_line);
                }
            }
        }
        batch.copy_part(from..batch.len(), &mut part);
        self.add_references(route, &part);
    }

    /// From a cache down to memory: the line of an address, or all of them.
    fn on_each(&mut self, mut at: usize, address: Option<u64>, act: fn(&mut Hierarchy, usize, u64)) {
        while let Some(cache) = self.caches.get(at) {
            let below = cache.below;
            let lines = match address {
                Some(address) => vec![address >> cache.shift],
                None => cache.all_lines(),
            };
            lines.into_iter().for_each(|line| act(self, at, line));
            at = below;
        }
    }

    /// Sends a dirty line down and keeps it.
    fn copy_back(&mut self, at: usize, line: u64) {
        let cache = &mut self.caches[at];
        let grain = cache.grain();
        let Some(offsets) = cache.clean_parts(line) else { return };
        let (first, mut below) = (line << cache.shift, cache.below);
        cache.counts.copied_back += 1;
        cache.counts.bytes_out += grain * offsets.len() as u64;
        // An exclusive level has none of what stays above it.
        while below != MEMORY && self.caches[below].is_exclusive() {
            below = self.caches[below].below;
        }
        offsets.into_iter().for_each(|offset| self.put(below, first + offset, grain, true));
    }

    /// Takes a line out. What was written to it is gone.
    fn drop_line(&mut self, at: usize, line: u64) {
        let cache = &mut self.caches[at];
        if cache.remove(line).is_some() {
            cache.counts.dropped += 1;
            cache.forget(line);
        }
    }
}
