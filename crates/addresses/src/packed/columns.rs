//! What the model says of each reference, in columns: bytes of one sort together, so that the library that packs them sees
//! what is alike. Writing and reading are one trait, so that the model is written once and the two cannot drift apart.

use super::sorted::{Order, PARTS};

/// Columns, by their number in the file.
pub(crate) const COLUMNS: usize = 20;

/// Runs of references guessed whole, where the guess was trusted and where it was not.
pub(crate) const SURE: usize = 0;
pub(crate) const UNSURE: usize = 1;
/// What a reference is that was not: see [`super::model`].
pub(crate) const MISS: usize = 2;
pub(crate) const KIND: usize = 3;
/// What is told whole has four: see [`super::sorted`].
pub(crate) const ADDRESS: usize = 4;
pub(crate) const PC: usize = 8;
pub(crate) const SIZE: usize = 12;
/// These begin with runs of what was as expected; what was not follows each.
pub(crate) const WORD: usize = 13;
pub(crate) const TIME: usize = 14;
pub(crate) const FLAG: usize = 15;
/// How many references are repeated, and from how far back: the lowest byte, the next, the highest.
pub(crate) const LENGTH: usize = 16;
pub(crate) const DISTANCE: usize = 17;

/// Numbers that are told whole, by the first of their columns, and which is which.
const WHOLE: [usize; 2] = [ADDRESS, PC];
pub(crate) const WHOLE_ADDRESS: usize = 0;
pub(crate) const WHOLE_PC: usize = 1;

/// More bytes than this of one column no reference takes.
pub(crate) const WIDEST: u64 = 16;

pub(crate) trait Columns {
    const WRITES: bool;

    /// Whether something is as expected. A reader does not look at `right`; both return it.
    fn right(&mut self, column: usize, right: bool) -> bool;

    /// A byte, likewise.
    fn byte(&mut self, column: usize, byte: u8) -> u8;

    /// A number that is told whole, likewise.
    fn whole(&mut self, which: usize, number: u64) -> u64;
}

/// Seven bits a byte, lowest first, the top bit set on all but the last.
pub(crate) fn put_varint(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The number at the front of the bytes, which are then those behind it.
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0u32;
    for shift in (0..32).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        // Bits above the highest are of no number.
        let part = u64::from(byte & 0x7f) << shift;
        value |= u32::try_from(part).ok()?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The columns of a block that is being filled. A run that reaches its end is not written.
#[derive(Default)]
pub(crate) struct Filling {
    pub columns: [Vec<u8>; COLUMNS],
    runs: [u32; COLUMNS],
    /// Not in their columns yet.
    whole: [Vec<u64>; WHOLE.len()],
}

impl Filling {
    pub(crate) fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
        self.runs = [0; COLUMNS];
        self.whole.iter_mut().for_each(Vec::clear);
    }

    /// Puts what is told whole into its columns.
    pub(crate) fn sort(&mut self, order: &mut Order) {
        for (numbers, first) in self.whole.iter_mut().zip(WHOLE) {
            order.put(numbers, &mut self.columns[first..first + PARTS]);
            numbers.clear();
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let whole: usize = self.whole.iter().map(Vec::len).sum();
        self.columns.iter().map(Vec::len).sum::<usize>() + 2 * whole
    }

    /// About what was told of references, not how many there were: tenths of a byte, once packed.
    pub(crate) fn cost(&self) -> usize {
        14 * self.whole.iter().map(Vec::len).sum::<usize>()
            + 5 * self.columns[KIND].len()
            + 4 * self.columns[MISS].len()
    }

    pub(crate) fn number(&mut self, column: usize, number: u32) {
        put_varint(&mut self.columns[column], number);
    }
}

impl Columns for Filling {
    const WRITES: bool = true;

    #[inline(always)]
    fn right(&mut self, column: usize, right: bool) -> bool {
        if right {
            self.runs[column] += 1;
        } else {
            put_varint(&mut self.columns[column], std::mem::take(&mut self.runs[column]));
        }
        right
    }

    #[inline(always)]
    fn byte(&mut self, column: usize, byte: u8) -> u8 {
        self.columns[column].push(byte);
        byte
    }

    #[inline(always)]
    fn whole(&mut self, which: usize, number: u64) -> u64 {
        self.whole[which].push(number);
        number
    }
}

/// The columns of a block that is being read.
#[derive(Default)]
pub(crate) struct Taking {
    pub columns: [Vec<u8>; COLUMNS],
    at: [usize; COLUMNS],
    /// What is left of a run, once it was read.
    runs: [Option<u32>; COLUMNS],
    whole: [Vec<u64>; WHOLE.len()],
    whole_at: [usize; WHOLE.len()],
    /// A column had less than the model asked for, which no writer makes.
    pub lacking: bool,
}

impl Taking {
    pub(crate) fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
        self.whole.iter_mut().for_each(Vec::clear);
        (self.at, self.runs, self.lacking) = ([0; COLUMNS], [None; COLUMNS], false);
        self.whole_at = [0; WHOLE.len()];
    }

    /// Takes what is told whole out of its columns. False if no writer makes such columns.
    pub(crate) fn unsort(&mut self, order: &mut Order) -> bool {
        self.whole.iter_mut().zip(WHOLE).all(|(numbers, first)| {
            let columns = &mut self.columns[first..first + PARTS];
            let good = order.take(columns, numbers);
            columns.iter_mut().for_each(Vec::clear);
            good
        })
    }

    /// As if a column had told this number.
    #[cfg(test)]
    pub(crate) fn tell_whole(&mut self, which: usize, number: u64) {
        self.whole[which].push(number);
    }

    /// Nothing is left in any column, as after the last reference of a block.
    pub(crate) fn spent(&self) -> bool {
        self.columns.iter().zip(self.at).all(|(column, at)| at >= column.len())
            && self.whole.iter().zip(self.whole_at).all(|(numbers, at)| at >= numbers.len())
    }

    pub(crate) fn number(&mut self, column: usize) -> u32 {
        let bytes = &self.columns[column];
        let mut rest = bytes.get(self.at[column]..).unwrap_or_default();
        let number = take_varint(&mut rest);
        self.at[column] = bytes.len() - rest.len();
        self.lacking |= number.is_none();
        number.unwrap_or(0)
    }

    fn run(&mut self, column: usize) -> u32 {
        if self.at[column] >= self.columns[column].len() { u32::MAX } else { self.number(column) }
    }
}

impl Columns for Taking {
    const WRITES: bool = false;

    #[inline(always)]
    fn right(&mut self, column: usize, _: bool) -> bool {
        let run = match self.runs[column] {
            Some(run) => run,
            None => self.run(column),
        };
        self.runs[column] = run.checked_sub(1);
        run > 0
    }

    #[inline(always)]
    fn byte(&mut self, column: usize, _: u8) -> u8 {
        let byte = self.columns[column].get(self.at[column]);
        self.at[column] += 1;
        self.lacking |= byte.is_none();
        byte.copied().unwrap_or(0)
    }

    #[inline(always)]
    fn whole(&mut self, which: usize, _: u64) -> u64 {
        let number = self.whole[which].get(self.whole_at[which]);
        self.whole_at[which] += 1;
        self.lacking |= number.is_none();
        number.copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length() {
        let mut bytes = Vec::new();
        let values = [0, 1, 127, 128, 16_383, 16_384, u32::MAX];
        values.iter().for_each(|value| put_varint(&mut bytes, *value));
        let mut rest = &bytes[..];
        assert!(values.iter().all(|value| take_varint(&mut rest) == Some(*value)));
        assert!(rest.is_empty());
        assert_eq!(take_varint(&mut &[0x80][..]), None);
        assert_eq!(take_varint(&mut &[0xff; 9][..]), None);
        assert_eq!(take_varint(&mut &[0x80, 0x80, 0x80, 0x80, 0x10][..]), None);
    }

    #[test]
    fn runs_and_what_breaks_them() {
        let script: Vec<bool> = (0..5000).map(|n| n % 7 != 0 && n < 4000 || n > 4003).collect();
        let mut filling = Filling::default();
        for (at, right) in script.iter().enumerate() {
            if !filling.right(WORD, *right) {
                filling.byte(WORD, at as u8);
            }
        }
        let mut taking = Taking { columns: filling.columns, ..Taking::default() };
        for (at, right) in script.iter().enumerate() {
            assert_eq!(taking.right(WORD, false), *right, "{at}");
            assert!(*right || taking.byte(WORD, 0) == at as u8);
        }
        assert!(!taking.lacking);
        taking.byte(KIND, 0);
        assert!(taking.lacking);
    }
}
