//! Any trace, from any format to any other and back, is the same trace.

use crate::common;

use common::{Bounds, pick, read, references, write, written};
use fastrand::Rng;
use refrain_addresses::{
    Batch, Division, Error, Fields, Format, KINDS, Options, Reference, Shape, WordCounts, Writer,
};

/// With the words of the trace itself, as two passes find them.
fn options(references: &[Reference], random: &mut Rng) -> Options {
    let mut counts = WordCounts::new();
    for piece in references.chunks(4096) {
        let mut batch = Batch::new();
        piece.iter().for_each(|r| batch.push(Fields { words: true, ..Fields::NONE }, *r));
        counts.add(&batch);
    }
    let steps = std::array::from_fn(|_| pick(random, &[4, 8, -4, 1, 0, i16::MIN, i16::MAX]));
    let division = Division { block: pick(random, &[500, 1000, 1 << 17]), group: pick(random, &[1, 3, 32]) };
    let level = pick(random, &[None, None, None, Some(1), Some(9)]);
    Options { steps, dictionary: counts.dictionary(), repeats: random.u64(..8) > 0, division, level }
}

/// What is left of a reference with these fields.
fn only(reference: Reference, fields: Fields) -> Reference {
    let mut batch = Batch::new();
    batch.push(fields, reference);
    batch.get(0)
}

fn there_and_back(from: Format, to: Format, count: usize, seed: u64) {
    let mut random = Rng::with_seed(seed);
    let fields = from.keeps();
    let original = references(&mut random, count, fields, Bounds::of(from).and(Bounds::of(to)));
    let options = options(&original, &mut random);
    let context = format!("{} to {}, {count} references, seed {seed}", from.name(), to.name());
    let written =
        write(&original, fields, from, &options).unwrap_or_else(|error| panic!("{context}: {error}"));
    let (first, error) = read(&written, from);
    assert!(error.is_none(), "{context}: {error:?}");
    assert!(first == original, "{context}: not the same after {}", from.name());

    let fill =
        Fields::NAMES.map(|name| (to.needs().and(Fields::named(name).unwrap()) != Fields::NONE).then_some(1));
    let mut shape = Shape { drop: fields.without(to.keeps()), fill, ..Shape::default() };
    let kept = shape.fields(fields);
    let mut batch = Batch::new();
    first.iter().for_each(|reference| batch.push(fields, *reference));
    shape.apply(&mut batch);
    let shaped: Vec<Reference> = batch.iter().collect();
    let written = write(&shaped, kept, to, &options).unwrap_or_else(|error| panic!("{context}: {error}"));
    let (second, error) = read(&written, to);
    assert!(error.is_none(), "{context}: {error:?}");
    assert!(second == shaped, "{context}: not the same after {}", to.name());

    // What both formats have has not changed.
    let both = fields.and(to.keeps());
    assert!(original.iter().zip(&second).all(|(a, b)| only(*a, both) == only(*b, both)), "{context}");
    assert_eq!(original.len(), second.len());
}

/// Short traces of every pair. Runs, blocks and dictionaries belong to one format: many references are tried with itself and one
/// neighbour. `make test-all` tries every pair.
#[test]
fn every_pair_of_formats() {
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    let many = crate::rounds(10_000) as usize;
    let formats: Vec<Format> = written().collect();
    for (at, from) in formats.iter().copied().enumerate() {
        for (beside, to) in formats.iter().copied().cycle().skip(at).take(formats.len()).enumerate() {
            let counts = [0, 1, 2, 100, many];
            let short = beside > 1 && many < 10_000;
            for count in counts.into_iter().take(if short { 4 } else { 5 }) {
                seed += 1;
                there_and_back(from, to, count, seed);
            }
        }
    }
}

#[test]
fn times_without_bounds_and_backwards() {
    let fields = Fields { times: true, ..Fields::NONE };
    let times = [u64::MAX, 0, 65_536, 131_073, 5, 5, 6, 1 << 40];
    let all: Vec<Reference> = times
        .iter()
        .map(|time| Reference { address: time.wrapping_mul(4), time: *time, ..Reference::default() })
        .collect();
    for format in [Format::Pdats64, Format::DinTime, Format::RawTime] {
        let bytes = write(&all, fields, format, &Options::default()).unwrap();
        assert_eq!(read(&bytes, format).0, all, "{}", format.name());
    }
}

#[test]
fn a_long_run_is_one_record() {
    let count = 1_000_000;
    let all: Vec<Reference> =
        (0..count).map(|i| Reference { address: 4 * (i + 1), ..Reference::default() }).collect();
    let bytes = write(&all, Fields::NONE, Format::Pdats64, &Options::default()).unwrap();
    assert_eq!(bytes.len(), 32 + 1 + 3 + 10);
    assert_eq!(read(&bytes, Format::Pdats64).0, all);
    let classic = write(&all, Fields::NONE, Format::Pdats, &Options::default()).unwrap();
    assert_eq!(classic.len(), 16 + 2 * (count as usize).div_ceil(256));
    assert_eq!(read(&classic, Format::Pdats).0, all);
}

#[test]
fn the_step_is_chosen() {
    let all: Vec<Reference> = (1..=100)
        .map(|i| Reference { kind: (i % 2) as u8, address: 8 * i + 1000, ..Reference::default() })
        .collect();
    let size = |steps| {
        let options = Options { steps, ..Options::default() };
        let bytes = write(&all, Fields::NONE, Format::Pdats64, &options).unwrap();
        assert_eq!(read(&bytes, Format::Pdats64).0, all);
        bytes.len()
    };
    // Two addresses of two bytes, then 98 records of one byte, or of two.
    assert_eq!(size([16; KINDS]), 32 + 2 * 3 + 98 + 10);
    assert_eq!(size([4; KINDS]), 32 + 2 * 3 + 98 * 2 + 10);
}

#[track_caller]
fn unfit(references: &[Reference], fields: Fields, format: Format, record: u64, words: &str) {
    let mut batch = Batch::new();
    references.iter().for_each(|reference| batch.push(fields, *reference));
    let mut writer = Writer::new(Vec::new(), format, fields).unwrap();
    let error = writer.write(&batch).unwrap_err();
    assert!(matches!(error, Error::Unfit { record: at, .. } if at == record), "{error}");
    assert!(error.to_string().contains(words), "{error}");
    // Everything before it is there all the same.
    let bytes = writer.finish().unwrap();
    let (read, error) = read(&bytes, format);
    assert!(error.is_none());
    assert_eq!(read, references[..record as usize - 1]);
}

#[test]
fn what_a_format_cannot_say_is_refused_where_it_is() {
    let at = |address, time| Reference { address, time, ..Reference::default() };
    let times = Fields { times: true, ..Fields::NONE };
    let words = Fields { words: true, ..Fields::NONE };
    let sizes = Fields { sizes: true, ..Fields::NONE };
    unfit(&[at(4, 0), at(1 << 32, 0)], Fields::NONE, Format::Pdats, 2, "pdt64");
    unfit(&[at(4, 0), at(8, 0), at(1 << 32, 0)], words, Format::Pdi, 3, "pdi64");
    unfit(&[at(4, 7), at(8, 65_544)], times, Format::Pdats, 2, "65,536");
    unfit(&[at(4, 7), at(8, 6)], times, Format::Pdats, 2, "after 7");
    unfit(&[at(4, 0), Reference { kind: 7, ..at(4, 0) }], sizes, Format::Lackey, 2, "kind 7");
}

#[test]
fn a_late_start_is_no_obstacle() {
    let fields = Fields { times: true, ..Fields::NONE };
    let all = [Reference { time: 1 << 50, ..Reference::default() }];
    let bytes = write(&all, fields, Format::Pdats, &Options::default()).unwrap();
    assert_eq!(read(&bytes, Format::Pdats).0, all);
}

#[test]
fn fields_that_do_not_fit_are_named() {
    let fields = Fields { times: true, sizes: true, ..Fields::NONE };
    let error = Writer::new(Vec::new(), Format::Din, fields).err().unwrap().to_string();
    assert!(error.contains("--drop times,sizes"), "{error}");
    let error = Writer::new(Vec::new(), Format::DinSize, Fields::NONE).err().unwrap().to_string();
    assert!(error.contains("--fill sizes=0,flags=0"), "{error}");
}
