//! The formats there are, what they are called and what they can keep.

use crate::Fields;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Dinero: a line a reference, kind and address.
    Din,
    /// Dinero with instruction words.
    DinWord,
    /// Dinero with times (Green Stamp).
    DinTime,
    /// Dinero with sizes and flags (RATCHET I).
    DinSize,
    /// Dinero with the labels of DineroIV: 4 copies back, 5 invalidates.
    Dinero,
    /// DineroIV's extended form: a letter, address and size.
    Xdin,
    /// Valgrind's `--tool=lackey --trace-mem=yes`.
    Lackey,
    /// What the `view` tool of DynamoRIO's drmemtrace prints. Only read.
    Drmemtrace,
    /// Samples as `perf script -F event,addr,ip` prints them. Only read.
    Perf,
    /// Kind and address, 9 bytes.
    Raw,
    /// Kind, address and time, 17 bytes.
    RawTime,
    /// Kind, address and the instruction's address, 17 bytes.
    RawPc,
    /// PDATS as published, for 32-bit addresses.
    Pdats,
    /// PDATS for 64-bit addresses.
    Pdats64,
    /// PDI as published, for 32-bit addresses.
    Pdi,
    /// PDI for 64-bit addresses.
    Pdi64,
    /// Refrain's own.
    Rfa,
    /// A trace of memory references. It is read elsewhere, and not written here: not one of [`Format::ALL`].
    Rfn,
}

const TIMES: Fields = Fields { times: true, ..Fields::NONE };
const WORDS: Fields = Fields { words: true, ..Fields::NONE };
const SIZES: Fields = Fields { sizes: true, ..Fields::NONE };
const PCS: Fields = Fields { pcs: true, ..Fields::NONE };

impl Format {
    pub const ALL: [Format; 17] = [
        Format::Din,
        Format::DinWord,
        Format::DinTime,
        Format::DinSize,
        Format::Dinero,
        Format::Xdin,
        Format::Lackey,
        Format::Drmemtrace,
        Format::Perf,
        Format::Raw,
        Format::RawTime,
        Format::RawPc,
        Format::Pdats,
        Format::Pdats64,
        Format::Pdi,
        Format::Pdi64,
        Format::Rfa,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Format::Din => "din",
            Format::DinWord => "din-word",
            Format::DinTime => "din-time",
            Format::DinSize => "din-size",
            Format::Dinero => "dinero",
            Format::Xdin => "xdin",
            Format::Lackey => "lackey",
            Format::Drmemtrace => "drmemtrace",
            Format::Perf => "perf",
            Format::Raw => "raw",
            Format::RawTime => "raw-time",
            Format::RawPc => "raw-pc",
            Format::Pdats => "pdt",
            Format::Pdats64 => "pdt64",
            Format::Pdi => "pdi",
            Format::Pdi64 => "pdi64",
            Format::Rfa => "rfa",
            Format::Rfn => "rfn",
        }
    }

    /// How files of this format are called; without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Format::DinWord => "dinw",
            Format::DinTime => "dint",
            Format::DinSize => "dins",
            Format::RawTime => "rawt",
            Format::RawPc => "rawp",
            other => other.name(),
        }
    }

    /// By name or extension.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name || format.extension() == name)
    }

    /// The fields that can be kept.
    pub fn keeps(self) -> Fields {
        match self {
            Format::Din | Format::Dinero | Format::Raw => Fields::NONE,
            Format::DinWord | Format::Pdi | Format::Pdi64 => WORDS,
            Format::DinTime | Format::RawTime | Format::Pdats | Format::Pdats64 => TIMES,
            Format::DinSize => Fields { sizes: true, flags: true, ..Fields::NONE },
            Format::Lackey | Format::Xdin => SIZES,
            Format::RawPc | Format::Perf => PCS,
            Format::Rfn | Format::Drmemtrace => Fields { sizes: true, pcs: true, ..Fields::NONE },
            Format::Rfa => Fields { times: true, words: true, sizes: true, flags: true, pcs: true },
        }
    }

    /// The fields that must be there.
    pub fn needs(self) -> Fields {
        match self {
            Format::Pdats | Format::Pdats64 | Format::Rfa => Fields::NONE,
            other => other.keeps(),
        }
    }

    /// Lines of text.
    pub fn is_text(self) -> bool {
        match self {
            Format::Din | Format::DinWord | Format::DinTime | Format::DinSize | Format::Dinero => true,
            Format::Xdin | Format::Lackey | Format::Drmemtrace | Format::Perf => true,
            Format::Raw | Format::RawTime | Format::RawPc | Format::Pdats | Format::Pdats64 => false,
            Format::Pdi | Format::Pdi64 | Format::Rfa | Format::Rfn => false,
        }
    }

    /// Whether there is a writer, and not only a reader.
    pub fn is_written(self) -> bool {
        !matches!(self, Format::Drmemtrace | Format::Perf | Format::Rfn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_extensions_are_unique() {
        for format in Format::ALL {
            assert_eq!(Format::named(format.name()), Some(format));
            assert_eq!(Format::named(format.extension()), Some(format));
        }
        assert_eq!(Format::named("txt"), None);
    }

    #[test]
    fn what_is_needed_can_be_kept() {
        for format in Format::ALL {
            assert_eq!(format.needs().without(format.keeps()), Fields::NONE, "{}", format.name());
        }
    }
}
