//! References to blocks.

use super::columns::Filling;
use super::model::Model;
use super::streams::{Job, Line};
use super::{
    BLOCK_HEADER, Division, END_MARK, HEADER, MOST, TAG_BLOCK, TAG_END, TAG_FIRST, checksum, header,
};
use crate::output::Output;
use crate::writer::{Encode, Unfit};
use crate::{Batch, Fields};

pub(crate) struct Encoder {
    fields: Fields,
    division: Division,
    model: Model,
    filling: Filling,
    line: Line,
    /// A block is being packed.
    packing: bool,
    /// References of the block, of the blocks that are written.
    block: u32,
    total: u64,
    blocks: u32,
    /// Bytes written.
    offset: u64,
    /// Where reading can begin: bytes, and references before.
    index: Vec<(u64, u64)>,
}

impl Encoder {
    pub(crate) fn new(fields: Fields, division: Division) -> Encoder {
        let division = Division { block: division.block.clamp(1, MOST), group: division.group.max(1) };
        Encoder {
            fields,
            division,
            model: Model::new(fields),
            filling: Filling::default(),
            line: Line::new(),
            packing: false,
            block: 0,
            total: 0,
            blocks: 0,
            offset: 0,
            index: Vec::new(),
        }
    }

    fn begin(&mut self, out: &mut Output) {
        if self.offset == 0 {
            out.put(&header(self.fields));
            self.offset = HEADER as u64;
        }
    }

    /// Hands the block over to be packed, and writes the one before.
    fn end_block(&mut self, out: &mut Output) {
        let emptied = self.collect(out);
        let first = self.blocks.is_multiple_of(self.division.group);
        let filling = std::mem::replace(&mut self.filling, emptied);
        self.line.take(Job { filling, first, references: self.block, bytes: Ok(Vec::new()) });
        self.packing = true;
        self.block = 0;
        self.blocks = self.blocks.wrapping_add(1);
        if self.blocks.is_multiple_of(self.division.group) {
            self.model.forget();
        }
    }

    /// Writes the block that is being packed, if there is one. What it was filled with can be filled again.
    fn collect(&mut self, out: &mut Output) -> Filling {
        if !std::mem::take(&mut self.packing) {
            return Filling::default();
        }
        let Job { mut filling, first, references, bytes } = self.line.collect();
        let bytes = bytes.expect("zstd packs whatever it is given");
        if first {
            self.index.push((self.offset, self.total));
        }
        let mut head = [0; BLOCK_HEADER];
        head[..4].copy_from_slice(&references.to_le_bytes());
        head[3] = if first { TAG_FIRST } else { TAG_BLOCK };
        head[4..8].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        let sum = checksum(&[&head[..8], &bytes]);
        head[8..].copy_from_slice(&sum.to_le_bytes());
        out.put(&head);
        out.put(&bytes);
        self.offset += (BLOCK_HEADER + bytes.len()) as u64;
        self.total += u64::from(references);
        filling.clear();
        filling
    }
}

impl Encode for Encoder {
    fn encode(&mut self, batch: &Batch, out: &mut Output) -> Result<(), Unfit> {
        self.begin(out);
        for mut reference in batch.iter() {
            self.model.code(&mut self.filling, &mut reference);
            self.block += 1;
            if self.block == self.division.block {
                self.end_block(out);
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Output) {
        self.begin(out);
        if self.block > 0 {
            self.end_block(out);
        }
        self.collect(out);
        let mut entries = Vec::new();
        for (offset, before) in &self.index {
            entries.extend_from_slice(&offset.to_le_bytes());
            entries.extend_from_slice(&before.to_le_bytes());
        }
        let mut head = [0; BLOCK_HEADER];
        head[3] = TAG_END;
        head[4..8].copy_from_slice(&(self.index.len() as u32).to_le_bytes());
        let (total, at) = (self.total.to_le_bytes(), self.offset.to_le_bytes());
        let sum = checksum(&[&head[..8], &entries, &total, &at]);
        head[8..].copy_from_slice(&sum.to_le_bytes());
        for part in [&head[..], &entries, &total, &at, &END_MARK] {
            out.put(part);
        }
    }
}
