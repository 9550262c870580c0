//! Sums of addresses that stand for the whole sequence of them.

use std::hash::Hasher;

use rustc_hash::FxHasher;

/// The sum of a sequence of addresses with one more behind it: that of a stack with one more frame inside, say.
#[inline]
pub fn add(sum: u64, returns: usize) -> u64 {
    // As bytes the two are multiplied with each other, as numbers only added: neighbours would soon meet.
    let mut both = [0; 16];
    both[..8].copy_from_slice(&sum.to_ne_bytes());
    both[8..].copy_from_slice(&returns.to_ne_bytes());
    let mut hasher = FxHasher::default();
    hasher.write(&both);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn sequences_of_near_addresses_do_not_collide() {
        let near = |n: usize| 0x7fff_0000_0000 + 16 * n;
        let of = |n: usize| [n / 10_000, n / 100 % 100, n % 100].map(near);
        let sums: HashSet<u64> = (0..1_000_000).map(|n| of(n).into_iter().fold(0, add)).collect();
        assert_eq!(sums.len(), 1_000_000);
        // A code object and an instruction in it.
        let pairs: HashSet<u64> =
            (0..1_000_000).map(|n| add(near(n / 1000) as u64, near(n % 1000))).collect();
        assert_eq!(pairs.len(), 1_000_000);
    }
}
