//! Text to be packed, the same in every run of every build: what is measured on it does not change with our own files.

/// So many bytes of words and lines. Few words are frequent and many are rare, as in what people write.
pub fn generated(bytes: usize) -> Vec<u8> {
    let mut random = Random(1);
    let words: Vec<Vec<u8>> = (0..4096).map(|_| word(&mut random)).collect();
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        let rare = random.below(words.len()) + 1;
        text.extend_from_slice(&words[random.below(rare)]);
        text.extend_from_slice(match random.below(12) {
            0 => b",\n",
            1 => b". ",
            _ => b" ",
        });
    }
    text.truncate(bytes);
    text
}

fn word(random: &mut Random) -> Vec<u8> {
    const LETTERS: &[u8] = b"eeeetttaaaoooiiinnnssshhrrddllcumwfgypbvk";
    (0..2 + random.below(8)).map(|_| LETTERS[random.below(LETTERS.len())]).collect()
}

/// SplitMix64: ours, so that no new version of a crate draws other numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_always_the_same() {
        let text = generated(3_000_000);
        assert_eq!(text.len(), 3_000_000);
        assert_eq!(xxhash_rust::xxh64::xxh64(&text, 0), 0x6058_4c14_0c8c_6ba9);
    }
}
