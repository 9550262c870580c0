//! Numbers that look random, as the programs draw them.

/// As `mixed` of `bench/papers/papers.h`: depends on nothing but `words`.
pub(crate) fn mixed(words: &[u32]) -> u64 {
    words.iter().fold(0x2545_f491_4f6c_dd1d, |state: u64, &word| {
        let x = (state ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x ^ x >> 29
    })
}

/// As `drawn` of `tests/programs/common.h`: a number below `most`.
pub(crate) fn drawn(most: u32, words: [u32; 3]) -> u32 {
    let x = words.iter().fold(2_463_534_242u32, |x, word| {
        let x = (x ^ word).wrapping_mul(2_654_435_761);
        let x = (x ^ x >> 15).wrapping_add(374_761_393).wrapping_mul(2_246_822_519);
        x ^ x >> 13
    });
    x % most
}
