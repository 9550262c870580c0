//! What PDATS makes of a trace: it is packed, and only the bytes are counted.

use std::io::{self, Write};

use crate::{Batch, Compression, Fields, Format, KINDS, Options, Packed, Writer};

/// Table 6 of one trace, in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Packing {
    /// Classic PDATS if it can hold the trace.
    pub format: Format,
    /// In the trace's own format, unpacked.
    pub original: u64,
    /// As records of kind, address and maybe time, all in four bytes or all in eight.
    pub binary: u64,
    /// As PDATS without run lengths.
    pub no_repeats: u64,
    pub pdats: u64,
    /// As PDATS and then gzip, if that was asked for.
    pub lz: Option<u64>,
}

impl Packing {
    /// What the trace's own format costs beside binary records.
    pub fn overhead(&self) -> f64 {
        1.0 - ratio(self.binary, self.original)
    }

    pub fn locality(&self) -> f64 {
        1.0 - ratio(self.no_repeats, self.binary)
    }

    pub fn sequentiality(&self) -> f64 {
        1.0 - ratio(self.pdats, self.no_repeats)
    }

    pub fn compression(&self) -> f64 {
        ratio(self.original, self.pdats)
    }

    pub fn lz_compression(&self) -> Option<f64> {
        self.lz.map(|lz| ratio(self.original, lz))
    }
}

fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 1.0 } else { a as f64 / b as f64 }
}

#[derive(Default)]
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A trace packed one way, for as long as it fits.
struct Packer {
    repeated: Writer<Count>,
    plain: Writer<Count>,
}

impl Packer {
    fn new(format: Format, fields: Fields, step: i16) -> Packer {
        let writer = |repeats| {
            let options = Options { steps: [step; KINDS], repeats, ..Options::default() };
            Writer::with(Count::default(), format, fields, &options)
                .expect("PDATS needs nothing and keeps times")
        };
        Packer { repeated: writer(true), plain: writer(false) }
    }

    fn add(&mut self, batch: &Batch) -> bool {
        self.repeated.write(batch).is_ok() && self.plain.write(batch).is_ok()
    }

    fn finish(self) -> (u64, u64) {
        let bytes = |writer: Writer<Count>| writer.finish().map_or(0, |count| count.0);
        (bytes(self.plain), bytes(self.repeated))
    }
}

pub(super) struct Packers {
    times: bool,
    step: i16,
    /// Gone when a reference does not fit.
    classic: Option<Packer>,
    wide: Packer,
    wants_lz: bool,
    /// The format is chosen when the first references are seen.
    lz: Option<(Format, Writer<Packed<Count>>)>,
}

impl Packers {
    pub(super) fn new(fields: Fields, step: i16, lz: bool) -> Packers {
        let fields = Fields { times: fields.times, ..Fields::NONE };
        let classic = Some(Packer::new(Format::Pdats, fields, step));
        let wide = Packer::new(Format::Pdats64, fields, step);
        Packers { times: fields.times, step, classic, wide, wants_lz: lz, lz: None }
    }

    pub(super) fn add(&mut self, batch: &Batch) {
        if self.classic.as_mut().is_some_and(|classic| !classic.add(batch)) {
            self.classic = None;
        }
        self.wide.add(batch);
        if std::mem::take(&mut self.wants_lz) {
            let format = if self.classic.is_some() { Format::Pdats } else { Format::Pdats64 };
            let fields = Fields { times: self.times, ..Fields::NONE };
            let options = Options { steps: [self.step; KINDS], ..Options::default() };
            let packed = Packed::new(Count::default(), Compression::Gzip, None).ok();
            self.lz = packed
                .and_then(|packed| Writer::with(packed, format, fields, &options).ok())
                .map(|w| (format, w));
        }
        if self.lz.as_mut().is_some_and(|(_, writer)| writer.write(batch).is_err()) {
            self.lz = None;
        }
    }

    pub(super) fn finish(self, original: u64, references: u64) -> Packing {
        let (format, word, (no_repeats, pdats)) = match self.classic {
            Some(classic) => (Format::Pdats, 4, classic.finish()),
            None => (Format::Pdats64, 8, self.wide.finish()),
        };
        let lz = self.lz.filter(|(chosen, _)| *chosen == format).and_then(|(_, writer)| writer.finish().ok());
        Packing {
            format,
            original,
            binary: references * (1 + word + if self.times { word } else { 0 }),
            no_repeats,
            pdats,
            lz: lz.and_then(|packed| packed.finish().ok()).map(|count| count.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reference;

    fn packing(addresses: impl Iterator<Item = u64>) -> Packing {
        let mut batch = Batch::new();
        addresses.for_each(|address| batch.push(Fields::NONE, Reference { address, ..Reference::default() }));
        let mut packers = Packers::new(Fields::NONE, 4, true);
        packers.add(&batch);
        packers.finish(10 * batch.len() as u64, batch.len() as u64)
    }

    #[test]
    fn table_6_of_a_run() {
        let packing = packing((1..=256).map(|i| 4 * i));
        assert_eq!((packing.format, packing.original, packing.binary), (Format::Pdats, 2560, 5 * 256));
        assert_eq!((packing.no_repeats, packing.pdats), (16 + 256, 16 + 2));
        assert_eq!(packing.overhead(), 0.5);
        assert_eq!(packing.locality(), 1.0 - 272.0 / 1280.0);
        assert_eq!(packing.sequentiality(), 1.0 - 18.0 / 272.0);
        assert!(packing.lz.is_some_and(|lz| lz > 18 && lz < 60));
    }

    #[test]
    fn what_does_not_fit_in_32_bits() {
        let packing = packing([1, 1 << 32].into_iter());
        assert_eq!((packing.format, packing.binary), (Format::Pdats64, 18));
        assert_eq!(packing.pdats, 32 + 2 + 6 + 10);
    }
}
