//! A block of code as a symbol's bytes.
//!
//! `pc`, then for each reference: how far its instruction is behind the one before, and access and size as one number, all of
//! them LEB128. There are as many lanes as references, but that of all fetches only the first has one.

/// What an instruction does with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    Load,
    Store,
    /// Reads and writes at once: an atomic operation.
    Update,
    /// The instruction itself is read.
    Fetch,
}

impl Access {
    pub const ALL: [Access; 4] = [Access::Load, Access::Store, Access::Update, Access::Fetch];

    pub fn name(self) -> &'static str {
        ["load", "store", "update", "fetch"][self as usize]
    }
}

/// One reference of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reference {
    /// How far its instruction is from the start of the block.
    pub at: u32,
    pub access: Access,
    /// In bytes.
    pub size: u32,
}

/// Code that runs from its first to its last instruction, by what it does with memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Block {
    /// 0 where a site says where it lies; else its address.
    pub pc: u64,
    /// In the order in which they happen.
    pub references: Vec<Reference>,
}

impl Block {
    /// Of each reference whether it has a lane of addresses. Of the fetches only the first has: the others are as far from it as
    /// their instructions are.
    pub fn lanes(&self) -> impl Iterator<Item = bool> + '_ {
        let mut fetched = false;
        self.references.iter().map(move |reference| match reference.access {
            Access::Fetch => !std::mem::replace(&mut fetched, true),
            _ => true,
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(2 + 3 * self.references.len());
        put(&mut bytes, self.pc);
        let mut last = 0u32;
        for reference in &self.references {
            // References of one instruction follow each other, and nothing jumps back within a block.
            put(&mut bytes, u64::from(reference.at.wrapping_sub(last)));
            put(&mut bytes, u64::from(reference.size) << 2 | reference.access as u64);
            last = reference.at;
        }
        bytes
    }

    pub fn from_bytes(mut bytes: &[u8]) -> Result<Block, &'static str> {
        let pc = take(&mut bytes)?;
        let (mut references, mut at) = (Vec::new(), 0u32);
        while !bytes.is_empty() {
            let step = u32::try_from(take(&mut bytes)?).map_err(|_| "an instruction too far away")?;
            at = at.wrapping_add(step);
            let word = take(&mut bytes)?;
            let access = *Access::ALL.get((word & 3) as usize).ok_or("an access of no kind")?;
            let size = u32::try_from(word >> 2).map_err(|_| "a size beyond 32 bits")?;
            references.push(Reference { at, access, size });
        }
        Ok(Block { pc, references })
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Result<u64, &'static str> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("it ends in the middle of a number")?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return Err("a number beyond 64 bits");
        }
        number |= part << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err("a number beyond 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back() {
        for (pc, many) in [(0, 0), (0x40_0000, 1), (u64::MAX, 300)] {
            let reference = |k: u32| Reference {
                at: k / 2 * 130,
                access: Access::ALL[k as usize % 4],
                size: [1, 8, 64, u32::MAX][k as usize % 4],
            };
            let block = Block { pc, references: (0..many).map(reference).collect() };
            assert_eq!(Block::from_bytes(&block.to_bytes()), Ok(block));
        }
    }

    #[test]
    fn the_first_fetch_has_a_lane() {
        let reference = |access| Reference { at: 0, access, size: 1 };
        let references = [Access::Load, Access::Fetch, Access::Store, Access::Fetch, Access::Fetch];
        let block = Block { pc: 0, references: references.map(reference).to_vec() };
        assert_eq!(block.lanes().collect::<Vec<_>>(), [true, true, true, false, false]);
    }

    #[test]
    fn no_bytes_are_trusted() {
        for bytes in
            [&[][..], &[0x80], &[0, 1], &[0, 0, 0x80], &[0xff; 12], &[0, 0xff, 0xff, 0xff, 0xff, 0x7f, 0]]
        {
            assert!(Block::from_bytes(bytes).is_err(), "{bytes:?}");
        }
    }
}
