//! Long streams of numbers and of times, packed.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::{Bench, Library};
use crate::readings::{number_before, numbers as numbers_in};
use crate::row::Unit::{self, Bytes, BytesEach, Count, KiB, MillionsASecond, Ns};
use crate::table::Table;
use crate::task::{Task, installed};

/// Times, durations and addresses packed in chunks, beside the crate `pco`, which is no part of Refrain: it has a
/// workspace of its own.
pub fn numbers(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let count = given.number(0, 1_048_576)?;
    let build =
        Task::of(&["cargo", "build", "-q", "--release", "--manifest-path", "bench/numbers/Cargo.toml"]);
    build.dir(&bench.file("")).env("CARGO_TARGET_DIR", bench.file("target")).limit(3600).run()?;
    let task = Task::new(bench.file("target/release/refrain-bench-numbers")).arg(count.to_string());
    let said = task.args(stored_traces(bench)).limit(3600).run()?.out;
    bench.table(
        Table::new("numbers", "Numbers packed in chunks: bytes a number, nanoseconds to pack and unpack one")
            .with("numbers", count),
    );
    for line in said.lines().skip(1) {
        // Names have spaces, and columns of their own.
        let (Some(stream), Some(way)) = (line.get(..26), line.get(27..41)) else { continue };
        let [bytes, pack, unpack] = numbers_in(&line[41..])[..] else {
            return Err(format!("no row: {line}").into());
        };
        bench.row(
            &[("stream", &stream.trim()), ("way", &way.trim())],
            &[("bytes", BytesEach.of(bytes)), ("pack", Ns.of(pack)), ("unpack", Ns.of(unpack))],
        )?;
    }
    Ok(())
}

/// Address traces that `addresses` collected.
fn stored_traces(bench: &Bench) -> Vec<PathBuf> {
    let entries = fs::read_dir(bench.file("target/addresses")).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(".rawp.zst"));
    found.sort();
    found
}

pub fn chunks(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let count = given.number(0, 100_000_000)?;
    let example = bench.example("refrain-tracefile", "chunks")?;
    let said =
        Task::new(example).arg(count.to_string()).arg(bench.work("times.part")).limit(36_000).run()?.out;
    let title = "A long stream of times through a chunked section: nanoseconds a number, million a second, peak memory so far";
    bench.table(Table::new("chunks", title).with("numbers", count));
    let mut notes = Vec::new();
    let mut bytes = None;
    for line in said.lines() {
        match (line.get(..28), &numbers_in(line)[..]) {
            (Some(what), [each, speed, peak]) if line.contains(" ns a number") => bench.row(
                &[("what", &what.trim())],
                &[("each", Ns.of(*each)), ("speed", MillionsASecond.of(*speed)), ("peak", KiB.of(*peak))],
            )?,
            _ => {
                bytes = bytes.or_else(|| number_before(line, " bytes, "));
                notes.push(line.to_owned());
            }
        }
    }
    bench.table(Table::new("bytes", "Bytes of the section").with("numbers", count));
    let each = bytes.map(|bytes| bytes / count as f64);
    bench.row(&[("what", &"times")], &[("bytes", Bytes.of(bytes)), ("each", BytesEach.of(each))])?;
    notes.iter().for_each(|line| bench.note(line));
    Ok(())
}

/// The columns of `examples/spans.rs` behind the program.
const SPANS: [(&str, Unit); 13] = [
    ("calls", Count),
    ("raw", BytesEach),
    ("zstd", BytesEach),
    ("xz", BytesEach),
    ("order-0", BytesEach),
    ("exact", BytesEach),
    ("binned", BytesEach),
    ("exact pack", Ns),
    ("exact unpack", Ns),
    ("binned pack", Ns),
    ("binned unpack", Ns),
    ("start error", Ns),
    ("end error", Ns),
];

pub fn spans(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let steps = given.number(0, 4000)?;
    let example = bench.example("refrain-times", "spans")?;
    bench.table(
        Table::new("spans", "Starts and ends of the calls of 4 ranks, as a plain library logs them: bytes a call, and nanoseconds to pack and unpack one")
            .with("steps", steps),
    );
    for library in Library::ALL {
        let preload = bench.compile(
            &format!("mpicc.{}", library.name()),
            "bench/spans.c",
            "spans.so",
            &["-shared", "-fPIC"],
        )?;
        // Ranks that poll make as many calls as they have time for, so that one has few steps.
        for (name, steps) in [("stencil2d", steps), ("random_sizes", steps), ("completion", steps / 100)] {
            let command = Task::new(bench.program(library, name)?).arg(steps.to_string());
            logged(bench, library, name, &command, &preload, &example)?;
        }
    }
    if installed("lmp") {
        let (preload, melt) = (bench.work("spans.so"), bench.file("bench/lj.lammps"));
        let command = Task::of(&["lmp", "-in"]).arg(melt).args([
            "-var",
            "steps",
            &(steps / 2).to_string(),
            "-log",
            "none",
        ]);
        logged(bench, Library::OpenMpi, "lammps", &command, &preload, &example)?;
    } else {
        bench.note("lammps: left out, there is no lmp here (package lammps has it)");
    }
    bench.note(
        "order-0: gaps and durations by the frequencies of each (function, function before), which are not counted;\n\
         binned: b = 1.2; error: mean, of starts and of ends",
    );
    Ok(())
}

/// Runs a program with its calls logged, and packs the log.
fn logged(
    bench: &mut Bench,
    library: Library,
    name: &str,
    command: &Task,
    preload: &Path,
    example: &Path,
) -> Result<()> {
    let log = bench.work("log");
    let words = library.sharing(4).arg("env").arg(format!("SPANS={}", log.display()));
    words.arg(format!("LD_PRELOAD={}", preload.display())).then(command).run()?;
    let mut logs: Vec<PathBuf> = fs::read_dir(bench.folder())?.flatten().map(|entry| entry.path()).collect();
    logs.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log.")));
    logs.sort();
    for file in &logs {
        // The first million calls of a rank say as much as all of them.
        let file = OpenOptions::new().write(true).open(file)?;
        file.set_len(file.metadata()?.len().min(24_000_000))?;
    }
    let said = Task::new(example).arg(name).args(&logs).run()?.out;
    let amounts = numbers_in(&said[said.find(name).map_or(0, |at| at + name.len())..]);
    let values: Vec<_> =
        SPANS.iter().zip(amounts).map(|((name, unit), amount)| (*name, unit.of(amount).varies())).collect();
    for file in logs {
        fs::remove_file(file)?;
    }
    bench.row(&[("program", &name), ("library", &library.name())], &values)
}
