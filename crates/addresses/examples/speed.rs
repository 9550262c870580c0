//! How fast a format packs and unpacks, in memory, in processor time: `speed TRACE [FORMAT[:LEVEL]...]`. Best of five. Packing as one
//! core does it, all threads together, and as two do, where the busier one counts.

use std::fs::File;
use std::io::Cursor;

use refrain_addresses::{
    Batch, Error, Fields, Format, Options, Reader, Shape, WordCounts, Writer, of_name, open,
};

const ROUNDS: usize = 5;

fn main() {
    let mut words = std::env::args().skip(1);
    let trace = words.next().expect("speed TRACE [FORMAT...]");
    let named = |name: String| {
        let (name, level) = name.split_once(':').map_or((&*name, None), |(name, level)| (name, Some(level)));
        let level = level.map(|level| level.parse().expect("a level is a number"));
        (Format::named(name).expect("a format's name"), level)
    };
    let formats: Vec<(Format, Option<u32>)> = words.map(named).collect();
    let usual = vec![(Format::Pdats, None), (Format::Pdats64, None)];
    let formats = if formats.is_empty() { usual } else { formats };
    let file = File::open(&trace).expect("the trace opens");
    let mut reader = open(Box::new(file), &trace, of_name(&trace).0).expect("the trace is one");
    let mut batches = Vec::new();
    let mut batch = Batch::new();
    let mut counts = WordCounts::new();
    while reader.read(&mut batch).expect("the trace is whole") {
        counts.add(&batch);
        batches.push(batch.clone());
    }
    let references: usize = batches.iter().map(Batch::len).sum();
    println!(
        "{:<10} {:>12} {:>10} {:>14} {:>13} {:>16}",
        "format", "references", "bytes/ref", "pack, M refs/s", "on two cores", "unpack, M refs/s"
    );
    for (format, level) in formats {
        let options = Options { dictionary: counts.dictionary(), level, ..Options::default() };
        let fill = Fields::NAMES
            .map(|name| Some(0).filter(|_| Fields::named(name).unwrap().and(format.needs()) != Fields::NONE));
        let mut shape = Shape { drop: reader.fields().without(format.keeps()), fill, ..Shape::default() };
        let fields = shape.fields(reader.fields());
        let mut shaped = batches.clone();
        shaped.iter_mut().for_each(|batch| shape.apply(batch));
        match measure(&shaped, fields, format, &options) {
            Ok((bytes, [pack, on_two, unpack])) => println!(
                "{:<10} {references:>12} {:>10.4} {:>14.1} {:>13.1} {:>16.1}",
                format.name(),
                bytes as f64 / references as f64,
                references as f64 / pack / 1e6,
                references as f64 / on_two / 1e6,
                references as f64 / unpack / 1e6
            ),
            Err(error) => println!("{:<10} {error}", format.name()),
        }
    }
}

/// On a processor, as others may be busy too: of this thread, and of all threads.
fn seconds() -> (f64, f64) {
    let of = |clock| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes to `time`, which outlives the call.
        let failed = unsafe { libc::clock_gettime(clock, &mut time) };
        assert_eq!(failed, 0, "threads have clocks");
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    (of(libc::CLOCK_THREAD_CPUTIME_ID), of(libc::CLOCK_PROCESS_CPUTIME_ID))
}

/// Bytes, and the seconds to pack, to pack with a core for each thread, and to unpack.
fn measure(
    batches: &[Batch],
    fields: Fields,
    format: Format,
    options: &Options,
) -> Result<(usize, [f64; 3]), Error> {
    let mut least = [f64::INFINITY; 3];
    let mut bytes = Vec::new();
    for _ in 0..ROUNDS {
        bytes.clear();
        let begin = seconds();
        let mut writer = Writer::with(std::mem::take(&mut bytes), format, fields, options)?;
        for batch in batches {
            writer.write(batch)?;
        }
        bytes = writer.finish()?;
        let end = seconds();
        let (here, all) = (end.0 - begin.0, end.1 - begin.1);
        least[0] = least[0].min(all);
        least[1] = least[1].min(here.max(all - here));

        let from = Cursor::new(bytes.clone());
        let begin = seconds();
        let mut reader = Reader::new(Box::new(from), format)?;
        let mut batch = Batch::new();
        let mut sum = 0u64;
        while reader.read(&mut batch)? {
            sum = sum.wrapping_add(batch.addresses[0]);
        }
        least[2] = least[2].min(seconds().1 - begin.1);
        std::hint::black_box(sum);
    }
    Ok((bytes.len(), least))
}
