//! A simulated process's memory: what calls read and write in C's layout. Addresses are offsets from [`Memory::BASE`],
//! so no pointer is ever followed.

/// Grows as it is written to; what was never written is zero.
#[derive(Debug, Default, Clone)]
pub struct Memory {
    bytes: Vec<u8>,
}

impl Memory {
    /// Above the small numbers that stand for `MPI_IN_PLACE` and its like.
    pub const BASE: usize = 0x1000;

    pub fn write_int(&mut self, address: usize, index: usize, value: i32) {
        self.write(address + 4 * index, value.to_le_bytes());
    }

    pub fn write_ints(&mut self, address: usize, values: &[i32]) {
        for (index, &value) in values.iter().enumerate() {
            self.write_int(address, index, value);
        }
    }

    pub fn write_wide(&mut self, address: usize, index: usize, value: i64) {
        self.write(address + 8 * index, value.to_le_bytes());
    }

    pub fn int(&self, address: usize, index: usize) -> i32 {
        i32::from_le_bytes(self.read(address + 4 * index))
    }

    pub fn wide(&self, address: usize, index: usize) -> i64 {
        i64::from_le_bytes(self.read(address + 8 * index))
    }

    fn write<const N: usize>(&mut self, address: usize, value: [u8; N]) {
        let at = address - Memory::BASE;
        if self.bytes.len() < at + N {
            self.bytes.resize(at + N, 0);
        }
        self.bytes[at..at + N].copy_from_slice(&value);
    }

    fn read<const N: usize>(&self, address: usize) -> [u8; N] {
        let at = address.wrapping_sub(Memory::BASE);
        let there = at.checked_add(N).and_then(|end| self.bytes.get(at..end));
        there.and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut memory = Memory::default();
        memory.write_ints(Memory::BASE + 16, &[1, -2, 3]);
        memory.write_wide(Memory::BASE, 1, i64::MIN);
        assert_eq!(memory.int(Memory::BASE + 16, 1), -2);
        assert_eq!(memory.wide(Memory::BASE, 1), i64::MIN);
        assert_eq!(
            (memory.int(Memory::BASE, 99), memory.int(0, 0), memory.wide(usize::MAX - 3, 0)),
            (0, 0, 0)
        );
    }
}
