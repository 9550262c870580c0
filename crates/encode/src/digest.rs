//! The digest of a stream of encoded calls: taken while they happen, and again when they are read back.

use crate::hash::mix;

/// Depends on every symbol's bytes and site (through their hash) and every value, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0x5245_4652_4149_4e21)
    }
}

impl Digest {
    /// A call begins: the hash of its symbol ([`crate::hash_symbol`]).
    #[inline]
    pub fn symbol(&mut self, hash: u64) {
        self.0 = mix(self.0, hash);
    }

    #[inline]
    pub fn value(&mut self, value: i64) {
        self.0 = mix(self.0.rotate_left(17), value as u64);
    }

    pub fn get(self) -> u64 {
        self.0
    }
}
