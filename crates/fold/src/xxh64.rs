//! XXH64, the well-known hash by Yann Collet: what names symbols, call stacks and modules in files. FORMAT.md says of what.
//!
//! It is taken once for each of these, never for a call: look-ups on the path of a call have a hash of their own, which is
//! in no file.

const P1: u64 = 0x9e37_79b1_85eb_ca87;
const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const P3: u64 = 0x1656_67b1_9e37_79f9;
const P4: u64 = 0x85eb_ca77_c2b2_ae63;
const P5: u64 = 0x27d4_eb2f_1656_67c5;

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

/// A little-endian number of up to eight bytes.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// The hash of some bytes.
pub fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let blocks = bytes.chunks_exact(32);
    let rest = blocks.remainder();
    let mut sum = seed.wrapping_add(P5);
    if bytes.len() >= 32 {
        let mut lanes =
            [seed.wrapping_add(P1).wrapping_add(P2), seed.wrapping_add(P2), seed, seed.wrapping_sub(P1)];
        for block in blocks {
            for (lane, bytes) in lanes.iter_mut().zip(block.chunks_exact(8)) {
                *lane = round(*lane, word(bytes));
            }
        }
        let turned = lanes.iter().zip([1, 7, 12, 18]).map(|(lane, by)| lane.rotate_left(by));
        sum = turned.fold(0, u64::wrapping_add);
        for lane in lanes {
            sum = (sum ^ round(0, lane)).wrapping_mul(P1).wrapping_add(P4);
        }
    }
    sum = sum.wrapping_add(bytes.len() as u64);
    let words = rest.chunks_exact(8);
    let mut rest = words.remainder();
    for bytes in words {
        sum = (sum ^ round(0, word(bytes))).rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
    }
    if let Some((half, after)) = rest.split_at_checked(4) {
        sum = (sum ^ word(half).wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
        rest = after;
    }
    for &byte in rest {
        sum = (sum ^ u64::from(byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }
    sum = (sum ^ sum >> 33).wrapping_mul(P2);
    sum = (sum ^ sum >> 29).wrapping_mul(P3);
    sum ^ sum >> 32
}

#[cfg(test)]
mod tests {
    use super::xxh64;

    /// As others compute them. FORMAT.md has more.
    #[test]
    fn known_values() {
        let counting: Vec<u8> = (0..=255).collect();
        for (bytes, seed, hash) in [
            (&b""[..], 0, 0xef46_db37_51d8_e999),
            (b"a", 0, 0xd24e_c4f1_a98c_6e5b),
            (b"abc", 0, 0x44bc_2cf5_ad77_0999),
            (&[42], 0, 0x0a9e_dece_beb0_3ae4),
            (&counting[..100], 0, 0x6ac1_e580_3216_6597),
            (&counting[..100], 0xae05_4331_1b70_2d91, 0x567e_355e_0682_e1f1),
        ] {
            assert_eq!(xxh64(bytes, seed), hash, "{bytes:?}");
        }
        // Every length, and so every way through, differs from every other.
        let all: std::collections::HashSet<u64> = (0..256).map(|n| xxh64(&counting[..n], 7)).collect();
        assert_eq!(all.len(), 256);
    }
}
