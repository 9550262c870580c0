//! What a record is of: the upper 16 bits of its word.

use refrain_references::Access;

use super::own::Record;

/// Bits of a word that say where it comes from.
pub const PC: u64 = (1 << 48) - 1;

/// A function was entered: from where it was called, and the stack then.
pub const ENTERED: u64 = 1 << 62;
/// It was left.
pub const LEFT: u64 = 1 << 63;
/// A piece of a longer reference: a block by itself.
pub const PIECE: u64 = 1 << 61;
/// A load and then a store.
pub const BOTH: u64 = 1 << 60;

/// Of one reference.
pub const fn word(access: Access, size: u64) -> u64 {
    size << 50 | (access as u64) << 48
}

pub const fn load(size: u64) -> u64 {
    word(Access::Load, size)
}

pub const fn store(size: u64) -> u64 {
    word(Access::Store, size)
}

pub const fn update(size: u64) -> u64 {
    word(Access::Update, size)
}

impl Record {
    /// Of a reference: what it does, and how many bytes.
    pub fn meaning(word: u64) -> (Access, u32) {
        (Access::ALL[(word >> 48 & 3) as usize % 3], (word >> 50 & 0xff) as u32)
    }
}
