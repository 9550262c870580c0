//! Blocks to references.

use super::columns::Taking;
use super::mixed::{self, Reading};
use super::model::Model;
use super::streams::Unpacker;
use super::{
    BLOCK_HEADER, END_MARK, ENTRY, FOOTER, MOST, MOST_BYTES, PAST, TAG_BLOCK, TAG_END, TAG_FIRST, Way,
    checksum, most_bytes, number,
};
use crate::error::Fault;
use crate::input::Input;
use crate::reader::Decode;
use crate::{BATCH, Batch, Fields, Reference};

const NO_WRITER: &str = "its block has a good checksum, but no writer makes such a block";

pub(crate) struct Decoder {
    fields: Fields,
    unpacking: Unpacking,
    /// How many references of the block are left. It was checked, and began at this byte.
    left: u32,
    begin: u64,
    /// References of the blocks so far, and those before where reading began.
    total: u64,
    /// There was a block.
    begun: bool,
    ended: bool,
}

/// One of the ways, with the bytes of a block.
enum Unpacking {
    Columns(Box<(Model, Unpacker, Taking)>),
    Mixed(Box<(mixed::Model, Reading)>),
}

impl Unpacking {
    fn new(fields: Fields, way: Way) -> Unpacking {
        match way {
            Way::Columns => Unpacking::Columns(Box::new((
                Model::new(fields, PAST),
                Unpacker::default(),
                Taking::default(),
            ))),
            Way::Mixed(bits) => {
                Unpacking::Mixed(Box::new((mixed::Model::new(fields, bits), Reading::default())))
            }
        }
    }

    /// False if no writer makes these bytes.
    fn begin(&mut self, bytes: &[u8], first: bool, count: u32) -> bool {
        match self {
            Unpacking::Columns(it) => it.1.unpack(bytes, first, count, &mut it.2),
            Unpacking::Mixed(it) => {
                it.1.begin(bytes);
                !it.1.lacking()
            }
        }
    }

    fn forget(&mut self) {
        match self {
            Unpacking::Columns(it) => it.0.forget(),
            Unpacking::Mixed(it) => it.0.forget(),
        }
    }

    /// So many references; `last`: there are no more in the block. False if no writer makes this.
    fn take(&mut self, fields: Fields, count: u32, last: bool, batch: &mut Batch) -> bool {
        match self {
            Unpacking::Columns(it) => {
                let (model, _, taking) = &mut **it;
                model.unpack(taking, count as usize, batch);
                !taking.lacking && (!last || taking.spent() && model.settled())
            }
            Unpacking::Mixed(it) => {
                let (model, reading) = &mut **it;
                for _ in 0..count {
                    let mut reference = Reference::default();
                    model.code(reading, &mut reference);
                    batch.push(fields, reference);
                }
                !reading.lacking() && (!last || reading.spent())
            }
        }
    }
}

impl Decoder {
    /// From the first block on, or from one that needs none before it, with so many references before.
    pub(crate) fn new(fields: Fields, way: Way, before: u64) -> Decoder {
        Decoder {
            fields,
            unpacking: Unpacking::new(fields, way),
            left: 0,
            begin: 0,
            total: before,
            begun: false,
            ended: false,
        }
    }

    /// The next block, or the end.
    fn block(&mut self, input: &mut Input) -> Result<(), Fault> {
        let cut = |input: &Input| Err(Fault::damaged(input.offset(), "it is cut short"));
        if !input.at_least(BLOCK_HEADER)? {
            return cut(input);
        }
        let head: [u8; BLOCK_HEADER] = input.bytes()[..BLOCK_HEADER].try_into().expect("so many bytes");
        let count = u32::from_le_bytes([head[0], head[1], head[2], 0]);
        let length = u32::from_le_bytes(head[4..8].try_into().expect("four bytes"));
        let sum = u32::from_le_bytes(head[8..].try_into().expect("four bytes"));
        match head[3] {
            TAG_END if count == 0 => return self.end(input, length, sum),
            TAG_FIRST => {}
            TAG_BLOCK if self.begun => {}
            _ => return Err(Fault::damaged(input.offset(), "a block does not begin here")),
        }
        if count == 0 || count > MOST || u64::from(length) > most_bytes(count, MOST_BYTES) {
            return Err(Fault::damaged(input.offset(), "its block has a length that cannot be"));
        }
        let length = length as usize;
        if !input.at_least(BLOCK_HEADER + length)? {
            return cut(input);
        }
        let bytes = &input.bytes()[BLOCK_HEADER..BLOCK_HEADER + length];
        if checksum(&[&head[..8], bytes]) != sum {
            return Err(Fault::damaged(input.offset(), "its block is not what its checksum says"));
        }
        let first = head[3] == TAG_FIRST;
        if !self.unpacking.begin(bytes, first, count) {
            return Err(Fault::damaged(input.offset(), NO_WRITER));
        }
        self.begin = input.offset();
        input.consume(BLOCK_HEADER + length);
        if first && self.begun {
            self.unpacking.forget();
        }
        self.begun = true;
        self.left = count;
        self.total = self.total.saturating_add(u64::from(count));
        Ok(())
    }

    /// The index, an entry at a time, so that a damaged number of them asks for no memory.
    fn end(&mut self, input: &mut Input, entries: u32, sum: u32) -> Result<(), Fault> {
        let begin = input.offset();
        let cut = || Err(Fault::damaged(begin, "it is cut short"));
        let mut crc = flate2::Crc::new();
        crc.update(&input.bytes()[..8]);
        input.consume(BLOCK_HEADER);
        for _ in 0..entries {
            if !input.at_least(ENTRY)? {
                return cut();
            }
            crc.update(&input.bytes()[..ENTRY]);
            input.consume(ENTRY);
        }
        if !input.at_least(FOOTER)? {
            return cut();
        }
        let footer: [u8; FOOTER] = input.bytes()[..FOOTER].try_into().expect("so many bytes");
        crc.update(&footer[..16]);
        if crc.sum() != sum || number(&footer[8..]) != begin || footer[16..] != END_MARK {
            return Err(Fault::damaged(begin, "its index is not what its checksum says"));
        }
        let said = number(&footer);
        if said != self.total {
            let what = format!("its end counts {said} references, there are {}", self.total);
            return Err(Fault::damaged(begin, what));
        }
        if input.at_least(FOOTER + 1)? {
            return Err(Fault::damaged(input.offset() + FOOTER as u64, "there is more after its end"));
        }
        input.consume(FOOTER);
        self.ended = true;
        Ok(())
    }
}

impl Decode for Decoder {
    fn fields(&self) -> Fields {
        self.fields
    }

    fn decode(&mut self, input: &mut Input, batch: &mut Batch) -> Result<(), Fault> {
        batch.clear();
        if self.left == 0 && !self.ended {
            self.block(input)?;
        }
        let count = self.left.min(BATCH as u32);
        let last = self.left == count;
        if !self.unpacking.take(self.fields, count, last, batch) {
            batch.clear();
            return Err(Fault::damaged(self.begin, NO_WRITER));
        }
        self.left -= count;
        Ok(())
    }
}
