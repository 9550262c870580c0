//! Sums of addresses that stand for the whole sequence of them.

/// The sum of a sequence of addresses with one more behind it: that of a stack with one more frame inside, say.
///
/// 64 bits stand for a whole stack, and nobody compares the stacks: two with one sum would be one call site. Among a
/// million stacks that happens with a chance of one in 40 million. It is taken for every unwound frame, and for every
/// frame of Python in every call, so it is one product, folded; XXH64 takes eight.
#[inline]
pub fn add(sum: u64, returns: usize) -> u64 {
    // The top bit keeps the factor from 0, and the last addition keeps a product of 0 from hiding what came.
    let product = u128::from(sum.rotate_left(23) ^ 0x9e37_79b9_7f4a_7c15)
        * u128::from((returns as u64).wrapping_mul(0xd6e8_feb8_6659_fd93) | 1 << 63);
    ((product as u64) ^ ((product >> 64) as u64)).wrapping_add(returns as u64)
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

    #[test]
    fn no_sum_absorbs_what_follows() {
        let absorbing = 0x9e37_79b9_7f4a_7c15_u64.rotate_right(23);
        for sum in [0, 1, u64::MAX, absorbing] {
            let after: HashSet<u64> = (0..10_000).map(|n| add(sum, 16 * n)).collect();
            assert_eq!(after.len(), 10_000, "{sum:x}");
        }
    }
}
