//! Maps by addresses and by sums of them: keys of our own, which nobody chooses to collide.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Addresses differ in the middle bits; a multiplication carries them to the top, and the map looks at both ends.
#[derive(Debug, Default, Clone)]
pub struct Mix(u64);

impl Hasher for Mix {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

/// The sum of a sequence of addresses with one more behind it: that of a stack with one more frame inside, say.
#[inline]
pub fn add(sum: u64, returns: usize) -> u64 {
    let product = u128::from(sum.rotate_left(23) ^ 0x9e37_79b9_7f4a_7c15)
        * u128::from((returns as u64).wrapping_mul(0xd6e8_feb8_6659_fd93) | 1 << 63);
    ((product as u64) ^ ((product >> 64) as u64)).wrapping_add(returns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::{BuildHasher, Hash};

    fn hash(value: impl Hash) -> u64 {
        BuildHasherDefault::<Mix>::default().hash_one(value)
    }

    #[test]
    fn near_addresses_and_pairs_of_them_do_not_collide() {
        let near = |n: usize| 0x7fff_0000_0000 + 16 * n;
        let one: HashSet<u64> = (0..10_000).map(|n| hash(near(n))).collect();
        let two: HashSet<u64> = (0..10_000).map(|n| hash((near(n / 100), near(n % 100)))).collect();
        assert_eq!((one.len(), two.len()), (10_000, 10_000));
        // The map takes its place from the low bits.
        let low: HashSet<u64> = one.iter().map(|hash| hash & 0xffff).collect();
        assert!(low.len() > 5_000, "{}", low.len());
    }
}
