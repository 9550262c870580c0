//! A trace being written, batch by batch, whatever its format.

use std::borrow::Cow;
use std::io::Write;

use crate::error::Error;
use crate::output::Output;
use crate::packed::{self, Division};
use crate::pdi::Dictionary;
use crate::{Batch, Fields, Format, KINDS, pdats, pdi, raw, text};

/// Which reference of a batch an encoder cannot write, and why.
pub(crate) type Unfit = (usize, Cow<'static, str>);

/// Turns references into bytes.
pub(crate) trait Encode: Send {
    /// All references before an unfit one are written, or will be by `finish`.
    fn encode(&mut self, batch: &Batch, out: &mut Output) -> Result<(), Unfit>;

    /// What remains to be written after the last reference.
    fn finish(&mut self, _out: &mut Output) {}
}

/// What some formats let a writer choose.
#[derive(Debug, Clone)]
pub struct Options {
    /// By kind, the offset that 64-bit PDATS and PDI write as "exactly +s". The classic formats have 4.
    pub steps: [i16; KINDS],
    /// PDATS: whether references alike are counted; off only to see what that is worth.
    pub repeats: bool,
    /// PDI: the words that become one byte.
    pub dictionary: Dictionary,
    /// Refrain's own form: its blocks.
    pub division: Division,
    /// And how hard it is packed, 1 to 19, if not as usual.
    pub level: Option<u32>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            steps: [4; KINDS],
            repeats: true,
            dictionary: Dictionary::default(),
            division: Division::default(),
            level: None,
        }
    }
}

pub struct Writer<W: Write> {
    format: Format,
    fields: Fields,
    encoder: Box<dyn Encode>,
    output: Output,
    into: W,
    /// References taken.
    records: u64,
}

impl<W: Write> Writer<W> {
    /// For a trace with these fields, as the format writes it by default.
    pub fn new(into: W, format: Format, fields: Fields) -> Result<Writer<W>, Error> {
        Writer::with(into, format, fields, &Options::default())
    }

    pub fn with(into: W, format: Format, fields: Fields, options: &Options) -> Result<Writer<W>, Error> {
        if !format.is_written() {
            return Err(Error::ReadOnly { format });
        }
        let loses = fields.without(format.keeps());
        if loses != Fields::NONE {
            return Err(Error::Loses { format, fields: loses });
        }
        let lacks = format.needs().without(fields);
        if lacks != Fields::NONE {
            return Err(Error::Lacks { format, fields: lacks });
        }
        let encoder: Box<dyn Encode> = match format {
            Format::Din | Format::DinWord | Format::DinTime | Format::DinSize => {
                Box::new(text::DinEncoder::new(fields))
            }
            Format::Dinero => Box::new(text::DineroEncoder::new()),
            Format::Xdin => Box::new(text::XdinEncoder),
            Format::Lackey => Box::new(text::LackeyEncoder),
            Format::Raw | Format::RawTime | Format::RawPc => Box::new(raw::Encoder::new(fields)),
            Format::Pdats => {
                Box::new(pdats::Encoder::new(pdats::Header::classic(fields.times), options.repeats))
            }
            Format::Pdats64 => Box::new(pdats::Encoder::new(
                pdats::Header::wide(fields.times, options.steps),
                options.repeats,
            )),
            Format::Pdi => Box::new(pdi::Encoder::new(pdi::Header::classic(), &options.dictionary)),
            Format::Rfn | Format::Drmemtrace | Format::Perf => return Err(Error::ReadOnly { format }),
            Format::Rfa => Box::new(packed::Encoder::new(fields, options.division, options.level)),
            Format::Pdi64 => {
                Box::new(pdi::Encoder::new(pdi::Header::wide(options.steps), &options.dictionary))
            }
        };
        Ok(Writer { format, fields, encoder, output: Output::default(), into, records: 0 })
    }

    /// The batch must have the fields that the writer was made for.
    pub fn write(&mut self, batch: &Batch) -> Result<(), Error> {
        debug_assert!(batch.times.len() == if self.fields.times { batch.len() } else { 0 });
        let done = self.encoder.encode(batch, &mut self.output);
        self.flush()?;
        self.records += done.as_ref().map_or_else(|(at, _)| *at, |()| batch.len()) as u64;
        done.map_err(|(_, what)| Error::Unfit { format: self.format, record: self.records + 1, what })
    }

    /// References written so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Writes what is left; without it the trace is not whole. Also after an unfit reference, to keep those before.
    pub fn finish(mut self) -> Result<W, Error> {
        self.encoder.finish(&mut self.output);
        self.flush()?;
        self.into.flush().map_err(Error::Write)?;
        Ok(self.into)
    }

    fn flush(&mut self) -> Result<(), Error> {
        let done = self.into.write_all(self.output.bytes());
        self.output.clear();
        done.map_err(Error::Write)
    }
}
