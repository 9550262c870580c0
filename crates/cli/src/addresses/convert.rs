//! `refrain convert`: from one format of address traces to another.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use refrain_addresses::{
    Batch, Compression, Dictionary, Error, Fields, Filter, Format, Options, Packed, Sample, Shape, Thin,
    WordCounts, Writer, dictionary_of,
};
use refrain_views::human::{plural, size};

use super::files::{Source, Target, is_dash, said, said_of_output};
use super::flags::{self, Cache, Drop, Step};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::say;

/// Bytes of a file in which its dictionary is, compressed or not.
const DICTIONARY: u64 = 1 << 20;

#[derive(Debug, Args)]
#[group(id = "convert-flags")]
pub struct Convert {
    /// The format of IN [default: what its bytes and its name say]
    #[arg(long, value_name = "FORMAT", value_parser = flags::format)]
    from: Option<Format>,
    /// The format of OUT, and how to compress it: pdt.gz [default: what its name says]
    #[arg(long, value_name = "FORMAT", value_parser = flags::target)]
    to: Option<(Format, Compression)>,
    /// Leave out: times, words, sizes, flags, pcs, fetches
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = flags::drop)]
    drop: Vec<Drop>,
    /// Put in what IN does not have and OUT needs: sizes=8
    #[arg(long, value_name = "FIELD=N", value_delimiter = ',', value_parser = flags::fill)]
    fill: Vec<(usize, u64)>,
    /// Give each reference the address of the fetch before it
    #[arg(long)]
    pcs: bool,
    /// Only references that miss in a cache: SIZE,WAYS,LINE as 32K,8,64; what it writes back too: 32K,8,64,write-backs
    #[arg(long, value_name = "CACHE", value_parser = flags::filter)]
    filter: Option<Cache>,
    /// Only the first N of every M references, or of every M units of time: 1000/100000, times=1000/100000
    #[arg(long, value_name = "N/M", value_parser = flags::sample)]
    sample: Option<Sample>,
    /// Begin after so many references; in an rfa file they need not be read
    #[arg(long, value_name = "N")]
    skip: Option<u64>,
    /// Of a trace of memory references (`refrain memory run`): this rank
    #[arg(long, value_name = "R")]
    rank: Option<u32>,
    /// and this thread
    #[arg(long, value_name = "T")]
    thread: Option<u32>,
    /// Stop after so many references
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// pdt64, pdi64: the offset that costs no byte, for all kinds or some: 8 or 0=8,1=8 [default: 4]
    #[arg(long, value_name = "S", value_delimiter = ',', value_parser = flags::step, allow_hyphen_values = true)]
    step: Vec<Step>,
    /// pdi, pdi64: take the words of this file, and read IN only once
    #[arg(long, value_name = "FILE")]
    dictionary: Option<PathBuf>,
    /// How hard to compress: gz and bz2 1-9, zst 1-22, xz 0-9; rfa itself 1-19
    #[arg(long, value_name = "N")]
    level: Option<u32>,
    /// Replace OUT if it is there already
    #[arg(long)]
    force: bool,
    /// The trace; - is standard input
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// What to write; - is standard output
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
}

pub fn convert_help() -> String {
    "\
Examples:
  refrain convert app.din app.pdt               dinero to PDATS
  refrain convert app.din.gz app.pdt64.zst      compressed files are read and written as such
  refrain convert app.din.Z app.din.bz2
  perf script -F event,addr,ip | refrain convert --from perf - app.rfa
  valgrind --tool=lackey --trace-mem=yes --log-fd=9 ./app 9>&1 >/dev/null |
    refrain convert --from lackey --drop sizes - app.pdt64
  refrain convert --drop sizes,fetches --pcs app.lackey app.rawp   data references, each with its instruction
  refrain convert app.pdt64 - --to din | head   to look at it
  refrain convert app.lackey app.rfa            all of it, packed small
  refrain convert --skip 5000000 --limit 10 --drop sizes app.rfa - --to din
  refrain convert --filter 32K,8,64 app.lackey misses.rfa          what a first-level cache lets through
  refrain convert --sample 10000/1000000 app.rfa some.rfa          a hundredth, in pieces of 10,000
  refrain convert app.dinw app.pdi              instruction words; reads app.dinw twice, for the 256 most common
  refrain convert --dictionary app.pdi b.dinw b.pdi                once, with those of another trace

Formats, and how files of them are called:
  din             .din     kind and address in hexadecimal, a line a reference
  din-word        .dinw    and an instruction word
  din-time        .dint    and a time (Green Stamp)
  din-size        .dins    and size and flag (RATCHET I)
  dinero          .dinero  din with the labels of DineroIV: 3 miscellaneous, 4 copy back, 5 invalidate
  xdin            .xdin    DineroIV's extended form: r 1000 4
  lackey          .lackey  Valgrind's lackey; M is a read and a write
  drmemtrace      .drmemtrace  what DynamoRIO's `drmemtrace -tool view` prints; only read
  perf            .perf    samples: perf mem record; perf script -F event,addr,ip; only read
  raw             .raw     9 bytes: kind, address
  raw-time        .rawt    17 bytes: kind, address, time
  raw-pc          .rawp    17 bytes: kind, address, address of the instruction
  pdt             .pdt     PDATS, as published, for 32-bit addresses
  pdt64           .pdt64   PDATS for 64 bits
  pdi             .pdi     PDI, as PDATS and with instruction words, for 32 bits
  pdi64           .pdi64   PDI for 64 bits
  rfa             .rfa     Refrain's own: all there is of each reference, mostly the smallest, read from any place on
Compressed files: .gz, .zst, .xz, .bz2, .lz4; .Z is read, not written. IN is known by its bytes, whatever its name.
Kinds: 0 read, 1 write, 2 fetch, 3 unknown, 4 to 6 the first three of the supervisor, 7 other.

Labels 4 and 5 of din are the supervisor's reads and writes, as in the papers about PDATS. To DineroIV they copy a line back and
invalidate one: `--from dinero` reads them so, and keeps both as kind 7, which `simulate` passes over. A warning says what was
done. Text behind kind and address (din, dinero) or size (xdin) is left out, and that is said too.

--filter: fetches go through one such cache, reads and writes through another, each with LRU; writes bring their lines in. A
reference goes on, as it is, if any of its lines was missing. Lines that were written to and leave go on only with write-backs, as
writes of the whole line behind the reference they leave for; those still in the cache at the end do not. References of unknown type
always go on. With --sample too the filter sees all references, so that its cache is warm. Both count references of IN, fetches
that are dropped included, behind --skip; --limit counts those written.

Nothing is lost unnoticed: what OUT cannot keep must be named with --drop, what it needs and IN lacks with --fill. But
lackey's M is the read and the write that it stands for from here on: written back they are two lines.
Where IN is damaged, everything before is written, the error says which record and byte, and the exit code is 2. It takes
the place of no file: where OUT was there, it is in OUT.part, and if that was there too, in OUT.1.part and so on.
While it is written, OUT is OUT.<process>.part. Ctrl-C ends a conversion and removes that; kill -9 leaves it behind."
        .to_owned()
}

pub fn convert(flags: &Convert) -> Result<ExitCode, Failure> {
    let (format, compression) = target(flags)?;
    let level = level(flags.level, format, compression)?;
    let shape = shape(flags);
    let mut source = Source::of_thread(&flags.input, flags.from, flags.rank, flags.thread)?;
    if let Some(skip) = flags.skip {
        source.skip(&flags.input, skip)?;
    }
    if matches!(flags.sample, Some(Sample::Times { .. })) && !source.reader.fields().times {
        let what = format!("--sample times=N/M needs times, and {} has none", flags.input.display());
        return Err(Failure::new(what).help("`--sample N/M` takes the first N of every M references"));
    }
    let steps = flags::steps(&flags.step);
    if !flags.step.is_empty() && !matches!(format, Format::Pdats64 | Format::Pdi64) {
        return Err(Failure::new(format!("{} has no step to choose", format.name()))
            .help("the 64-bit formats have: `--to pdt64`, `--to pdi64`"));
    }
    let dictionary = dictionary(flags, format, &source)?;
    let options = Options {
        steps,
        dictionary,
        level: level.filter(|_| compression == Compression::None),
        ..Options::default()
    };
    let fields = shape.fields(source.reader.fields());
    // Before there is a file: what does not fit as a whole.
    Writer::with(std::io::sink(), format, fields, &options)
        .map_err(|error| Failure::new(error.to_string()))?;

    let target =
        Target::create(&flags.output, flags.force, format.is_text() && compression == Compression::None)?;
    let written = |error: &Error| said_of_output(&flags.output, error);
    let thin = thin(flags);
    // How many are left is not known before.
    let least = if thin.is_idle() { least(format, compression) } else { 0 };
    let room = (least, target.free());
    let mut between = Between { shape, thin };
    let packed = Packed::new(target, compression, level).map_err(|error| written(&Error::Write(error)))?;
    let mut writer = Writer::with(packed, format, fields, &options).map_err(|error| written(&error))?;
    let done = pump(&mut source, &mut between, flags.limit, &mut writer, room);
    if let Err(Stopped::Writing(error @ Error::Write(_))) = &done {
        if error.is_broken_pipe() {
            return Ok(ExitCode::SUCCESS);
        }
        return Err(written(error));
    }
    if let Err(Stopped::NoRoom { references, needed, free }) = &done {
        let what = format!(
            "{} stands for at least {}, which take {} or more, and {} has room for {}",
            flags.input.display(),
            plural(*references, "reference"),
            size(u128::from(*needed)),
            flags.output.display(),
            size(u128::from(*free)),
        );
        return Err(
            Failure::new(what).help("--limit N stops after N of them; --to rfa and --to pdt64 are small")
        );
    }
    // Also after damage: what came before it is worth having.
    let count = writer.records();
    let packed = writer.finish();
    let whole = done.is_ok();
    let finished = packed
        .and_then(|packed| packed.finish().and_then(|target| target.finish(whole)).map_err(Error::Write));
    match (done, finished) {
        (_, Err(error)) if error.is_broken_pipe() => Ok(ExitCode::SUCCESS),
        (_, Err(error)) => Err(written(&error)),
        (Ok(()), Ok(_)) => {
            if let (0, Some(skip)) = (count, flags.skip.filter(|skip| *skip > 0)) {
                let after = plural(skip, "reference");
                say(&format!("nothing of {} is left to write after {after}", flags.input.display()));
            }
            Ok(ExitCode::SUCCESS)
        }
        (Err(stopped), Ok(beside)) => Err(match stopped {
            Stopped::Reading(error) => said(&flags.input, &error),
            Stopped::Writing(error) => written(&error),
            Stopped::NoRoom { .. } => Failure::new("there is no room"),
        }
        .help(format!(
            "the {} before {} written{}",
            plural(count, "reference"),
            if count == 1 { "it is" } else { "it are" },
            match beside {
                Some(beside) => {
                    format!(" to {}; {} is as it was", beside.display(), flags.output.display())
                }
                None if is_dash(&flags.output) => String::new(),
                None => format!(" to {}", flags.output.display()),
            }
        ))),
    }
}

enum Stopped {
    Reading(Error),
    Writing(Error),
    /// More references are known to come than there is room for.
    NoRoom {
        references: u64,
        needed: u64,
        free: u64,
    },
}

/// Bytes that a reference takes at least; 0 where it may take none.
fn least(format: Format, compression: Compression) -> u64 {
    match format {
        _ if compression != Compression::None => 0,
        Format::Raw => 9,
        Format::RawTime | Format::RawPc => 17,
        Format::Din | Format::Dinero | Format::DinWord | Format::DinTime | Format::DinSize => 4,
        Format::Xdin | Format::Lackey => 6,
        _ => 0,
    }
}

/// What becomes of references on their way.
struct Between {
    shape: Shape,
    thin: Thin,
}

impl Between {
    fn apply(&mut self, before: Fields, batch: &mut Batch) {
        self.shape.attach(batch);
        let pcs = before.pcs || self.shape.attach_pcs;
        self.thin.apply(Fields { pcs, ..before }, batch);
        self.shape.trim(batch);
    }
}

fn thin(flags: &Convert) -> Thin {
    let filter = flags.filter.map(|cache| Filter::new(&cache.geometry, cache.write_backs));
    Thin::new(filter, flags.sample)
}

fn pump<W: std::io::Write>(
    source: &mut Source,
    between: &mut Between,
    limit: Option<u64>,
    writer: &mut Writer<W>,
    // Bytes that a reference takes at least, and those that are free.
    (least, free): (u64, Option<u64>),
) -> Result<(), Stopped> {
    let mut bar = Bar::new("converting");
    let mut batch = Batch::new();
    let mut left = limit.unwrap_or(u64::MAX);
    while left > 0 && source.next(&mut batch).map_err(Stopped::Reading)? {
        let needed = source.known().min(limit.unwrap_or(u64::MAX)).saturating_mul(least);
        if let Some(free) = free.filter(|free| needed > *free) {
            return Err(Stopped::NoRoom { references: source.known(), needed, free });
        }
        between.apply(source.reader.fields(), &mut batch);
        if batch.len() as u64 > left {
            batch.truncate(left as usize);
        }
        left -= batch.len() as u64;
        writer.write(&batch).map_err(Stopped::Writing)?;
        if let Some((done, all)) = source.progress() {
            bar.show(done, all);
        }
    }
    Ok(())
}

fn target(flags: &Convert) -> Result<(Format, Compression), Failure> {
    let target = chosen_target(flags)?;
    match target.1 {
        Compression::Lzw => Err(Failure::new("files of compress (.Z) are read, not written")
            .help("`.gz` takes its place everywhere; `.xz` and `.zst` are smaller")),
        _ => Ok(target),
    }
}

fn chosen_target(flags: &Convert) -> Result<(Format, Compression), Failure> {
    if let Some(target) = flags.to {
        return Ok(target);
    }
    flags::target_of_name(&flags.output.to_string_lossy()).ok_or_else(|| {
        let what = if is_dash(&flags.output) {
            "which format goes to standard output?".to_owned()
        } else {
            format!("the name {} does not say in which format", flags.output.display())
        };
        Failure::new(what)
            .help(format!("say it with `--to`: {}, each with .gz, .zst, .xz, .bz2 or .lz4", flags::formats()))
    })
}

fn level(level: Option<u32>, format: Format, compression: Compression) -> Result<Option<u32>, Failure> {
    let Some(chosen) = level else { return Ok(None) };
    let levels = match compression {
        Compression::None if format == Format::Rfa => 1..=19,
        Compression::None => {
            return Err(Failure::new("--level is for compressed files")
                .help("`--to pdt.zst` writes one, and so does `--to rfa`"));
        }
        Compression::Lz4 => {
            return Err(
                Failure::new("lz4 has no level to choose").help("`.zst` has, and is as fast at `--level 1`")
            );
        }
        _ => compression.levels(),
    };
    if !levels.contains(&chosen) {
        let (least, most) = (levels.start(), levels.end());
        return Err(Failure::new(format!("--level {chosen} is not one of {least} to {most}")));
    }
    Ok(level)
}

fn shape(flags: &Convert) -> Shape {
    let mut shape = Shape { attach_pcs: flags.pcs, ..Shape::default() };
    for drop in &flags.drop {
        match drop {
            Drop::Fields(fields) => shape.drop = shape.drop.or(*fields),
            Drop::Fetches => shape.no_fetches = true,
        }
    }
    for (field, value) in &flags.fill {
        shape.fill[*field] = Some(*value);
    }
    shape
}

fn dictionary(flags: &Convert, format: Format, source: &Source) -> Result<Dictionary, Failure> {
    if !matches!(format, Format::Pdi | Format::Pdi64) {
        return match flags.dictionary {
            Some(_) => Err(Failure::new(format!("{} has no dictionary", format.name()))),
            None => Ok(Dictionary::default()),
        };
    }
    if let Some(path) = &flags.dictionary {
        return read_dictionary(path);
    }
    if !source.is_file() {
        return Err(Failure::new("the dictionary needs a first pass, and only a file can be read twice")
            .help("`--dictionary FILE` gives the words: another .pdi, or a text with one word a line"));
    }
    let mut first = Source::of_thread(&flags.input, flags.from, flags.rank, flags.thread)?.quiet();
    let mut bar = Bar::new("counting words");
    let mut counts = WordCounts::new();
    let mut batch = Batch::new();
    // Damage is the second pass's to report: what stands before it is counted.
    while let Ok(true) = first.next(&mut batch) {
        counts.add(&batch);
        if let Some((done, all)) = first.progress() {
            bar.show(done, all);
        }
    }
    Ok(counts.dictionary())
}

fn read_dictionary(path: &Path) -> Result<Dictionary, Failure> {
    let failed = |what: String| Failure::new(format!("{}: {what}", path.display()));
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(DICTIONARY).read_to_end(&mut bytes));
    read.map_err(|error| failed(format!("it cannot be read: {error}")))?;
    if let Some(dictionary) = dictionary_of(&bytes) {
        return Ok(dictionary);
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| failed("it is neither .pdi nor text".to_owned()))?;
    Dictionary::parse(text).map_err(failed)
}
