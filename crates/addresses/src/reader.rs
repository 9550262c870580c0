//! A trace, batch by batch, whatever its format.

use std::io::Read;

use crate::error::{Error, Fault};
use crate::input::Input;
use crate::{Batch, Fields, Format, packed, pdats, pdi, raw, text};

/// Turns bytes into references.
pub(crate) trait Decode: Send {
    /// What the trace has, as its format or its header says.
    fn fields(&self) -> Fields;

    /// Puts references in the place of what is in the batch, [`crate::BATCH`] at most, and none only at the end. What is
    /// in the batch when it fails is good.
    fn decode(&mut self, input: &mut Input, batch: &mut Batch) -> Result<(), Fault>;

    /// References that are still to come of a record that was read.
    fn ahead(&self) -> u64 {
        0
    }

    /// What was read in a way that its user may not expect, in sentences.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// See [`Reader::tell_caches`].
    fn tell_caches(&mut self) {}
}

pub struct Reader {
    format: Format,
    fields: Fields,
    input: Input,
    decoder: Box<dyn Decode>,
    /// References read, delivered or skipped.
    records: u64,
    /// Those yet to be skipped.
    skip: u64,
    /// Waits until everything before it was delivered.
    error: Option<Error>,
    /// Of the decoder, once there is none.
    notes: Vec<String>,
}

impl Reader {
    /// Reads the header, where the format has one. The input is not compressed; [`crate::open`] sees to that.
    pub fn new(from: Box<dyn Read + Send>, format: Format) -> Result<Reader, Error> {
        let mut input = Input::new(from);
        let (format, decoder) = open(&mut input, format).map_err(|fault| fault.at_record(format, 1))?;
        Ok(Reader::with(format, input, decoder, 0))
    }

    /// References from elsewhere: each call of `next` puts some in the place of what is in the batch, and none only at the end.
    /// What goes wrong is told in words.
    pub fn from_elsewhere(
        format: Format,
        next: impl FnMut(&mut Batch) -> Result<(), String> + Send + 'static,
    ) -> Reader {
        let decoder = Elsewhere { fields: format.keeps(), next: Box::new(next) };
        Reader::with(format, Input::new(Box::new(std::io::empty())), Box::new(decoder), 0)
    }

    /// Behind so many references.
    pub(crate) fn with(format: Format, input: Input, decoder: Box<dyn Decode>, records: u64) -> Reader {
        Reader {
            format,
            fields: decoder.fields(),
            input,
            decoder,
            records,
            skip: 0,
            error: None,
            notes: Vec::new(),
        }
    }

    /// Passes over so many references more; [`crate::open_after`] does not even read them.
    pub fn skip(&mut self, references: u64) {
        self.skip = self.skip.saturating_add(references);
    }

    /// For a simulation of caches, tells what references are not: copy-backs and invalidations are kinds of their own, and a batch
    /// has the threads, where the format says them.
    pub fn tell_caches(&mut self) {
        self.decoder.tell_caches();
    }

    pub fn format(&self) -> Format {
        self.format
    }

    pub fn fields(&self) -> Fields {
        self.fields
    }

    /// References read so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// References that are known to come: those of a record that stands for many.
    pub fn ahead(&self) -> u64 {
        self.decoder.ahead()
    }

    /// What was read in a way that its user may not expect, in sentences: labels with two meanings, text that was left out.
    pub fn notes(&self) -> Vec<String> {
        [self.notes.clone(), self.decoder.notes()].concat()
    }

    /// After an error nothing follows.
    fn end(&mut self) {
        self.notes = self.decoder.notes();
        self.decoder = Box::new(Nothing(self.fields));
    }

    /// Bytes of the trace read so far.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// The next references, in the place of what was in the batch; false after the last. An error comes once
    /// everything before it was delivered, and stays: after it there is nothing.
    pub fn read(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        if let Some(error) = self.error.take() {
            batch.clear();
            self.end();
            return Err(error);
        }
        let done = loop {
            let done = self.decoder.decode(&mut self.input, batch);
            self.records += batch.len() as u64;
            let skipped = self.skip.min(batch.len() as u64);
            self.skip -= skipped;
            let more = !batch.is_empty() && skipped == batch.len() as u64;
            batch.remove_first(skipped as usize);
            if done.is_err() || !more {
                break done;
            }
        };
        if let Err(fault) = done {
            let error = fault.at_record(self.format, self.records + 1);
            if batch.is_empty() {
                self.end();
                return Err(error);
            }
            self.error = Some(error);
        }
        Ok(!batch.is_empty())
    }
}

/// What makes the next batch.
type Next = dyn FnMut(&mut Batch) -> Result<(), String> + Send;

struct Elsewhere {
    fields: Fields,
    next: Box<Next>,
}

impl Decode for Elsewhere {
    fn fields(&self) -> Fields {
        self.fields
    }

    fn decode(&mut self, _: &mut Input, batch: &mut Batch) -> Result<(), Fault> {
        (self.next)(batch).map_err(|what| Fault::damaged(0, what))
    }
}

/// The decoder, and the format that the header says it is.
fn open(input: &mut Input, format: Format) -> Result<(Format, Box<dyn Decode>), Fault> {
    let fields = format.keeps();
    Ok(match format {
        Format::Din | Format::DinWord | Format::DinTime | Format::DinSize => {
            (format, Box::new(text::DinDecoder::new(fields, text::Labels::Papers)))
        }
        Format::Dinero => (format, Box::new(text::DinDecoder::new(fields, text::Labels::Dinero))),
        Format::Xdin => (format, Box::new(text::XdinDecoder::default())),
        Format::Drmemtrace => (format, Box::new(text::DrmemtraceDecoder::default())),
        Format::Perf => (format, Box::new(text::PerfDecoder::default())),
        Format::Lackey => (format, Box::new(text::LackeyDecoder)),
        Format::Raw | Format::RawTime | Format::RawPc => (format, Box::new(raw::Decoder::new(fields))),
        Format::Pdats | Format::Pdats64 => {
            let header = pdats::Header::read(input)?;
            let format = if header.wide { Format::Pdats64 } else { Format::Pdats };
            (format, Box::new(pdats::Decoder::new(header)))
        }
        Format::Rfa => {
            let (fields, way) = packed::read_header(input)?;
            (format, Box::new(packed::Decoder::new(fields, way, 0)))
        }
        Format::Rfn => return Err(Fault::damaged(0, "a trace of memory references is no address trace")),
        Format::Pdi | Format::Pdi64 => {
            let (header, dictionary) = pdi::Header::read(input)?;
            let format = if header.wide { Format::Pdi64 } else { Format::Pdi };
            (format, Box::new(pdi::Decoder::new(header, dictionary)))
        }
    })
}

/// What follows an error.
struct Nothing(Fields);

impl Decode for Nothing {
    fn fields(&self) -> Fields {
        self.0
    }

    fn decode(&mut self, _: &mut Input, batch: &mut Batch) -> Result<(), Fault> {
        batch.clear();
        Ok(())
    }
}
