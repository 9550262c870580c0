//! Hashing for small keys on the path of a call: handles, addresses, short byte strings.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

const K: u64 = 0x9e37_79b9_7f4a_7c15;

/// One multiply-and-fold step; every input bit reaches every output bit after two of them.
#[inline]
pub(crate) fn mix(state: u64, value: u64) -> u64 {
    let product = u128::from(state ^ value.wrapping_mul(K)) * u128::from(K | 1);
    (product as u64) ^ ((product >> 64) as u64)
}

/// A 64-bit hash of a symbol's bytes.
#[inline]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut state = K ^ bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0u8; 8];
        word.copy_from_slice(chunk);
        state = mix(state, u64::from_le_bytes(word));
    }
    let mut word = [0u8; 8];
    word[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    mix(mix(state, u64::from_le_bytes(word)), K)
}

#[derive(Default, Clone)]
pub struct FastHasher(u64);

impl Hasher for FastHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = mix(self.0, hash_bytes(bytes));
    }
    #[inline]
    fn write_u8(&mut self, v: u8) {
        self.write_u64(u64::from(v));
    }
    #[inline]
    fn write_u32(&mut self, v: u32) {
        self.write_u64(u64::from(v));
    }
    #[inline]
    fn write_u64(&mut self, v: u64) {
        self.0 = mix(self.0 ^ K, v);
    }
    #[inline]
    fn write_usize(&mut self, v: usize) {
        self.write_u64(v as u64);
    }
    #[inline]
    fn write_i64(&mut self, v: i64) {
        self.write_u64(v as u64);
    }
}

/// A map for keys we make ourselves; nobody can choose them to collide.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;
