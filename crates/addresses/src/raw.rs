//! Records of fixed size: the kind in one byte, the address in eight, little-endian; then the time or the instruction's
//! address, eight bytes each.

use crate::error::Fault;
use crate::input::{Input, word};
use crate::output::Output;
use crate::reader::Decode;
use crate::writer::{Encode, Unfit};
use crate::{BATCH, Batch, Fields, KINDS};

fn record(fields: Fields) -> usize {
    9 + 8 * usize::from(fields.times) + 8 * usize::from(fields.pcs)
}

pub(crate) struct Decoder {
    fields: Fields,
}

impl Decoder {
    pub(crate) fn new(fields: Fields) -> Decoder {
        Decoder { fields }
    }
}

impl Decode for Decoder {
    fn fields(&self) -> Fields {
        self.fields
    }

    fn decode(&mut self, input: &mut Input, batch: &mut Batch) -> Result<(), Fault> {
        let size = record(self.fields);
        batch.clear();
        if !input.at_least(size)? {
            return match input.len() {
                0 => Ok(()),
                left => Err(Fault::damaged(
                    input.offset(),
                    format!("{left} of a record's {size} bytes are there"),
                )),
            };
        }
        let bytes = input.bytes();
        let all = (bytes.len() / size).min(BATCH);
        let bytes = &bytes[..all * size];
        let good = bytes.chunks_exact(size).position(|r| usize::from(r[0]) >= KINDS).unwrap_or(all);
        let records = bytes.chunks_exact(size).take(good);
        batch.kinds.extend(records.clone().map(|r| r[0]));
        batch.addresses.extend(records.clone().map(|r| word(r, 1)));
        if self.fields.times {
            batch.times.extend(records.clone().map(|r| word(r, 9)));
        }
        if self.fields.pcs {
            let at = size - 8;
            batch.pcs.extend(records.map(|r| word(r, at)));
        }
        let kind = (good < all).then(|| bytes[good * size]);
        input.consume(good * size);
        match kind {
            Some(kind) => Err(Fault::damaged(input.offset(), format!("kinds are 0 to 7, not {kind}"))),
            None => Ok(()),
        }
    }
}

pub(crate) struct Encoder {
    fields: Fields,
}

impl Encoder {
    pub(crate) fn new(fields: Fields) -> Encoder {
        Encoder { fields }
    }
}

impl Encode for Encoder {
    fn encode(&mut self, batch: &Batch, out: &mut Output) -> Result<(), Unfit> {
        let size = record(self.fields);
        let bytes = size * batch.len();
        let room = &mut out.room(bytes)[..bytes];
        for (at, record) in room.chunks_exact_mut(size).enumerate() {
            record[0] = batch.kinds[at];
            record[1..9].copy_from_slice(&batch.addresses[at].to_le_bytes());
        }
        if self.fields.times {
            for (record, time) in room.chunks_exact_mut(size).zip(&batch.times) {
                record[9..17].copy_from_slice(&time.to_le_bytes());
            }
        }
        if self.fields.pcs {
            for (record, pc) in room.chunks_exact_mut(size).zip(&batch.pcs) {
                record[size - 8..].copy_from_slice(&pc.to_le_bytes());
            }
        }
        out.advance(bytes);
        Ok(())
    }
}
