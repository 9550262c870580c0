//! References to blocks.

use super::columns::Filling;
use super::finder::Finder;
use super::mixed::{self, Writing};
use super::model::Model;
use super::streams::{Job, LEVEL, Line};
use super::{
    BLOCK_HEADER, Division, END_MARK, HEADER, MOST, MOST_THICK, PAST, TAG_BLOCK, TAG_END, TAG_FIRST, THIN,
    Way, checksum, header,
};
use crate::output::Output;
use crate::writer::{Encode, Unfit};
use crate::{Batch, Fields, Reference};

pub(crate) struct Encoder {
    fields: Fields,
    division: Division,
    way: Way,
    packing: Packing,
    /// References of the block, and when to see whether it ends.
    block: u32,
    due: u32,
    /// Of its group before it, in blocks as they should be.
    grouped: u32,
    /// Of the blocks that are written.
    total: u64,
    /// Bytes written.
    offset: u64,
    /// Where reading can begin: bytes, and references before.
    index: Vec<(u64, u64)>,
}

/// One of the ways, with what a block has so far.
enum Packing {
    Columns(Box<Columns>),
    Mixed(Box<(mixed::Model, Writing)>),
}

struct Columns {
    model: Model,
    finder: Finder,
    /// References that wait, so that a writer can look ahead.
    piece: Vec<Reference>,
    filling: Filling,
    line: Line,
    /// A block is being packed.
    packing: bool,
}

impl Packing {
    fn new(fields: Fields, way: Way, level: Option<u32>) -> Packing {
        match way {
            Way::Columns => Packing::Columns(Box::new(Columns {
                model: Model::new(fields, PAST),
                finder: Finder::new(level.unwrap_or(LEVEL), PAST),
                piece: Vec::new(),
                filling: Filling::default(),
                line: Line::new(level),
                packing: false,
            })),
            Way::Mixed(bits) => Packing::Mixed(Box::new((mixed::Model::new(fields, bits), Writing::new()))),
        }
    }

    #[inline(always)]
    fn code(&mut self, mut reference: Reference) {
        match self {
            Packing::Columns(it) => it.piece.push(reference),
            Packing::Mixed(it) => it.0.code(&mut it.1, &mut reference),
        }
    }

    /// Codes what waits.
    fn settle(&mut self) {
        if let Packing::Columns(it) = self {
            it.model.pack(&mut it.filling, &mut it.finder, &it.piece);
            it.piece.clear();
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Packing::Columns(it) => it.filling.bytes(),
            Packing::Mixed(it) => it.1.length(),
        }
    }

    fn forget(&mut self) {
        match self {
            Packing::Columns(it) => {
                it.model.forget();
                it.finder.clear();
            }
            Packing::Mixed(it) => it.0.forget(),
        }
    }
}

impl Encoder {
    pub(crate) fn new(fields: Fields, division: Division, level: Option<u32>) -> Encoder {
        let division = Division { block: division.block.clamp(1, MOST_THICK), group: division.group.max(1) };
        let way = Way::of_level(level);
        Encoder {
            fields,
            division,
            way,
            packing: Packing::new(fields, way, level),
            block: 0,
            due: division.block,
            grouped: 0,
            total: 0,
            offset: 0,
            index: Vec::new(),
        }
    }

    fn begin(&mut self, out: &mut Output) {
        if self.offset == 0 {
            out.put(&header(self.fields, self.way));
            self.offset = HEADER as u64;
        }
    }

    /// Ends the block, unless there is next to nothing in it.
    fn end_thick(&mut self, out: &mut Output) {
        let Division { block, group } = self.division;
        self.packing.settle();
        let thin = self.packing.bytes() < (self.block / THIN) as usize;
        if thin && self.block <= MOST - block && self.block / block < group - self.grouped {
            self.due += block;
        } else {
            self.end_block(out);
        }
    }

    /// Hands the block over to be packed, and writes the one before, or this one if it is packed already.
    fn end_block(&mut self, out: &mut Output) {
        let (first, references) = (self.grouped == 0, self.block);
        match &mut self.packing {
            Packing::Columns(_) => {
                let emptied = self.collect(out);
                if let Packing::Columns(it) = &mut self.packing {
                    let filling = std::mem::replace(&mut it.filling, emptied);
                    it.line.take(Job { filling, first, references, bytes: Ok(Vec::new()) });
                    it.packing = true;
                }
            }
            Packing::Mixed(it) => {
                let bytes = it.1.end();
                self.write(first, references, &bytes, out);
            }
        }
        self.grouped += self.block / self.division.block;
        (self.block, self.due) = (0, self.division.block);
        if self.grouped == self.division.group {
            self.grouped = 0;
            self.packing.forget();
        }
    }

    /// Writes the block that is being packed, if there is one. What it was filled with can be filled again.
    fn collect(&mut self, out: &mut Output) -> Filling {
        let Packing::Columns(it) = &mut self.packing else { return Filling::default() };
        if !std::mem::take(&mut it.packing) {
            return Filling::default();
        }
        let Job { mut filling, first, references, bytes } = it.line.collect();
        self.write(first, references, &bytes.expect("zstd packs whatever it is given"), out);
        filling.clear();
        filling
    }

    fn write(&mut self, first: bool, references: u32, bytes: &[u8], out: &mut Output) {
        if first {
            self.index.push((self.offset, self.total));
        }
        let mut head = [0; BLOCK_HEADER];
        head[..4].copy_from_slice(&references.to_le_bytes());
        head[3] = if first { TAG_FIRST } else { TAG_BLOCK };
        head[4..8].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        let sum = checksum(&[&head[..8], bytes]);
        head[8..].copy_from_slice(&sum.to_le_bytes());
        out.put(&head);
        out.put(bytes);
        self.offset += (BLOCK_HEADER + bytes.len()) as u64;
        self.total += u64::from(references);
    }
}

impl Encode for Encoder {
    fn encode(&mut self, batch: &Batch, out: &mut Output) -> Result<(), Unfit> {
        self.begin(out);
        for reference in batch.iter() {
            self.packing.code(reference);
            self.block += 1;
            if self.block == self.due {
                self.end_thick(out);
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Output) {
        self.begin(out);
        if self.block > 0 {
            self.packing.settle();
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
