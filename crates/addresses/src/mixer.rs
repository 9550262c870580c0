//! Where lines and pages stand in a table.

use std::hash::Hasher;

/// They are numbers near each other: a multiplication spreads them, and its high half reaches the low bits.
#[derive(Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, n: u64) {
        let wide = u128::from(self.0 ^ n ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (wide >> 64) as u64 ^ wide as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
