//! Hashes of symbols and of what a rank did. Maps have their own.

use std::hash::Hasher;

use refrain_fold::xxh64;
use rustc_hash::FxHasher;

const K: u64 = 0x9e37_79b9_7f4a_7c15;

/// Another odd number, so that a value that happens to be a multiple of one constant does not cancel the other.
const C: u64 = 0xd6e8_feb8_6659_fd93;

/// One multiply-and-fold step; every input bit reaches every output bit after two of them. Digests are made of it, so it
/// is part of the format (FORMAT.md).
#[inline]
pub(crate) fn mix(state: u64, value: u64) -> u64 {
    let sum = (state ^ (state >> 29)).wrapping_add(value.wrapping_mul(C)).wrapping_add(1);
    let product = u128::from(sum) * u128::from(K);
    (product as u64) ^ ((product >> 64) as u64)
}

/// A 64-bit hash of some bytes, for every call: quick, and no more. Whoever takes it compares the bytes too, or loses only
/// size or speed where two are equal. What names something uses [`xxh64`]. Not in files.
#[inline]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// What a symbol is looked up by: its bytes, and where its calls are made. Not in files.
#[inline]
pub(crate) fn lookup(bytes: &[u8], site: u64) -> u64 {
    mix(hash_bytes(bytes), site)
}

/// What a symbol is in a digest: part of the format (FORMAT.md). Taken once for each symbol.
pub fn hash_symbol(bytes: &[u8], site: u64) -> u64 {
    xxh64(bytes, site)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lists_of_small_numbers_do_not_collide() {
        let mut seen = std::collections::HashSet::new();
        let mut lists = 0;
        for a in 0..40u64 {
            for b in 0..40 {
                for c in 0..40 {
                    let hash = [a, b, c].iter().fold(3, |h, &v| mix(h, v));
                    assert_ne!(hash >> 32, 0);
                    seen.insert(hash);
                    lists += 1;
                }
            }
        }
        assert_eq!(seen.len(), lists);
    }

    fn bytes(text: &str) -> Vec<u8> {
        let text = text.trim_matches(['"', '-']);
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    fn hex(text: &str) -> u64 {
        u64::from_str_radix(text, 16).unwrap()
    }

    fn list(text: &str) -> Vec<i32> {
        if text == "-" { Vec::new() } else { text.split(',').map(|rank| rank.parse().unwrap()).collect() }
    }

    fn digest_of(events: &[&str]) -> u64 {
        let mut digest = crate::Digest::default();
        for event in events {
            match event.split_once(':').unwrap() {
                ("s", symbol) => digest.symbol(hex(symbol)),
                (_, value) => digest.value(value.parse().unwrap()),
            }
        }
        digest.get()
    }

    /// What FORMAT.md says of every hash that is in files. Those of the coder are tried where it is.
    #[test]
    fn the_vectors_of_the_format() {
        use refrain_fold::bundle::sites::{Frame, Module, Stack};
        let document = include_str!("../../../FORMAT.md").split_once("### Test vectors").unwrap().1;
        let mut done = std::collections::BTreeMap::new();
        for line in document.lines().filter_map(|line| line.strip_prefix("    ")) {
            let Some((call, result)) = line.split_once(" = ") else { continue };
            let words: Vec<&str> = call.split(' ').collect();
            let hash = match words[..] {
                ["xxh64", data, seed] => xxh64(&bytes(data), seed.parse().unwrap()),
                ["mix", state, value] => mix(hex(state), value.parse::<i64>().unwrap() as u64),
                ["module", path, id] => Module { path: path.into(), build_id: bytes(id).into() }.key(),
                ["site", outer, module, offset] => {
                    let frame = Frame { module: hex(module), offset: hex(offset) };
                    Stack { outer: hex(outer), frame }.site()
                }
                ["symbol", data, site] => hash_symbol(&bytes(data), hex(site)),
                ["digest", ref events @ ..] => digest_of(events),
                ["blend", rank, digest] => refrain_fold::bundle::blend(rank.parse().unwrap(), hex(digest)),
                ["group", local, remote] => crate::comms::hash_members(&list(local), &list(remote)),
                _ => continue,
            };
            assert_eq!(hash, hex(result), "{line}");
            *done.entry(words[0]).or_insert(0) += 1;
        }
        let kinds: Vec<&str> = done.keys().copied().collect();
        assert_eq!(kinds, ["blend", "digest", "group", "mix", "module", "site", "symbol", "xxh64"]);
        assert!(done.values().all(|&count| count >= 2), "{done:?}");
    }

    #[test]
    fn strings_that_differ_in_a_byte_or_in_length_differ() {
        let mut seen = std::collections::HashSet::new();
        for n in 0..40 {
            for at in 0..n {
                for byte in 1..=255u8 {
                    let mut text = vec![0u8; n];
                    text[at] = byte;
                    assert!(seen.insert(hash_bytes(&text)));
                }
            }
            assert!(seen.insert(hash_bytes(&vec![0; n])));
        }
    }
}
