//! Making a trace fit: what is left out, what is put in.

use crate::kind::is_fetch;
use crate::{Batch, Fields};

/// What becomes of each reference between one trace and another.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    /// Left out.
    pub drop: Fields,
    /// In the order of [`Fields::NAMES`], what stands for a field that the trace does not have.
    pub fill: [Option<u64>; 5],
    /// Leaves fetches out.
    pub no_fetches: bool,
    /// Gives each reference the address of the last fetch, which is the instruction that makes it.
    pub attach_pcs: bool,
    /// The address of the last fetch; 0 before the first.
    pub pc: u64,
}

impl Shape {
    /// The fields afterwards.
    pub fn fields(&self, before: Fields) -> Fields {
        let [times, words, sizes, flags, pcs] = self.fill.map(|value| value.is_some());
        let filled = Fields { times, words, sizes, flags, pcs: pcs || self.attach_pcs };
        before.without(self.drop).or(filled)
    }

    pub fn apply(&mut self, batch: &mut Batch) {
        self.attach(batch);
        self.trim(batch);
    }

    /// The first half of [`Shape::apply`]: what needs the references before.
    pub fn attach(&mut self, batch: &mut Batch) {
        if self.attach_pcs {
            batch.pcs.clear();
            for (kind, address) in batch.kinds.iter().zip(&batch.addresses) {
                if is_fetch(*kind) {
                    self.pc = *address;
                }
                batch.pcs.push(self.pc);
            }
        }
    }

    /// The second half: what is left out and put in.
    pub fn trim(&self, batch: &mut Batch) {
        if self.no_fetches {
            leave_fetches_out(batch);
        }
        let drop = self.drop;
        let [times, words, sizes, flags, pcs] = self.fill;
        let len = batch.len();
        column(&mut batch.times, drop.times, times, len);
        column(&mut batch.words, drop.words, words.map(|n| n as u32), len);
        column(&mut batch.sizes, drop.sizes, sizes.map(|n| n as u16), len);
        column(&mut batch.flags, drop.flags, flags.map(|n| n != 0), len);
        column(&mut batch.pcs, drop.pcs && !self.attach_pcs, pcs, len);
    }
}

fn column<T: Copy>(column: &mut Vec<T>, drop: bool, fill: Option<T>, len: usize) {
    if drop {
        column.clear();
    }
    if let (true, Some(value)) = (column.is_empty(), fill) {
        column.resize(len, value);
    }
}

fn leave_fetches_out(batch: &mut Batch) {
    let mut to = 0;
    for from in 0..batch.len() {
        if !is_fetch(batch.kinds[from]) {
            move_down(&mut batch.kinds, from, to);
            move_down(&mut batch.addresses, from, to);
            move_down(&mut batch.times, from, to);
            move_down(&mut batch.words, from, to);
            move_down(&mut batch.sizes, from, to);
            move_down(&mut batch.flags, from, to);
            move_down(&mut batch.pcs, from, to);
            to += 1;
        }
    }
    batch.truncate(to);
}

/// An empty column stays as it is.
fn move_down<T: Copy>(column: &mut [T], from: usize, to: usize) {
    if let Some(value) = column.get(from).copied() {
        column[to] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reference;

    const SIZES: Fields = Fields { sizes: true, ..Fields::NONE };

    fn shaped(mut shape: Shape, references: &[(u8, u64)]) -> Batch {
        let mut batch = Batch::new();
        for (kind, address) in references {
            batch.push(SIZES, Reference { kind: *kind, address: *address, size: 8, ..Reference::default() });
        }
        shape.apply(&mut batch);
        batch
    }

    #[test]
    fn instructions_become_the_pcs_of_what_they_do() {
        let shape = Shape { no_fetches: true, attach_pcs: true, ..Shape::default() };
        assert_eq!(shape.fields(SIZES).names(), ["sizes", "pcs"]);
        let batch = shaped(shape, &[(0, 1), (2, 100), (0, 2), (1, 3), (6, 200), (7, 4)]);
        assert_eq!(batch.pcs, [0, 100, 100, 200]);
        assert_eq!(batch.addresses, [1, 2, 3, 4]);
        assert_eq!(batch.sizes, [8; 4]);
    }

    #[test]
    fn pcs_that_are_attached_come_instead_of_those_that_are_dropped() {
        let pcs = Fields { pcs: true, ..Fields::NONE };
        let shape = Shape { drop: pcs, attach_pcs: true, ..Shape::default() };
        assert_eq!(shape.fields(SIZES.or(pcs)).names(), ["sizes", "pcs"]);
        assert_eq!(shaped(shape, &[(2, 100), (0, 1), (1, 2)]).pcs, [100; 3]);
    }

    #[test]
    fn fields_out_and_in() {
        let shape = Shape { drop: SIZES, fill: [Some(7), None, None, None, None], ..Shape::default() };
        assert_eq!(shape.fields(SIZES).names(), ["times"]);
        let batch = shaped(shape, &[(0, 1), (2, 2)]);
        assert!(batch.sizes.is_empty());
        assert_eq!(batch.times, [7, 7]);
    }

    #[test]
    fn what_is_there_is_not_filled() {
        let shape = Shape { fill: [None, None, Some(1), None, None], ..Shape::default() };
        assert_eq!(shaped(shape, &[(0, 1)]).sizes, [8]);
    }
}
