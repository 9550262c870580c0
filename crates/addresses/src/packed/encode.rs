//! References to blocks.

use super::model::Model;
use super::{
    BLOCK_HEADER, Division, END_MARK, HEADER, MOST, TAG_BLOCK, TAG_END, TAG_FIRST, checksum, coder, header,
};
use crate::output::Output;
use crate::writer::{Encode, Unfit};
use crate::{Batch, Fields};

pub(crate) struct Encoder {
    fields: Fields,
    division: Division,
    model: Model,
    coder: coder::Encoder,
    /// References of the block, of the whole.
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
            coder: coder::Encoder::new(Vec::new()),
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

    fn end_block(&mut self, out: &mut Output) {
        let first = self.blocks.is_multiple_of(self.division.group);
        if first {
            self.index.push((self.offset, self.total - u64::from(self.block)));
        }
        let bytes = std::mem::replace(&mut self.coder, coder::Encoder::new(Vec::new())).finish();
        let mut head = [0; BLOCK_HEADER];
        head[..4].copy_from_slice(&self.block.to_le_bytes());
        head[3] = if first { TAG_FIRST } else { TAG_BLOCK };
        head[4..8].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        let sum = checksum(&[&head[..8], &bytes]);
        head[8..].copy_from_slice(&sum.to_le_bytes());
        out.put(&head);
        out.put(&bytes);
        self.offset += (BLOCK_HEADER + bytes.len()) as u64;
        self.block = 0;
        self.blocks += 1;
        if self.blocks.is_multiple_of(self.division.group) {
            self.model.forget();
        }
    }
}

impl Encode for Encoder {
    fn encode(&mut self, batch: &Batch, out: &mut Output) -> Result<(), Unfit> {
        self.begin(out);
        for mut reference in batch.iter() {
            self.model.code(&mut self.coder, &mut reference);
            self.block += 1;
            self.total += 1;
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
