//! Address traces of real programs, packed every way.
//!
//! The traces are the data references that Valgrind's lackey sees, with the instructions that make them. Our own four
//! programs are linked statically and their traces begin at main: the loader is no part of a vector addition. Those of cc1,
//! gzip and ls begin where the process does. Collecting them is slow, so it is bounded and done once: they stay in
//! `target/addresses` until `make clean`, or until their sources, the compiler or how they are collected are others. What
//! gzip packs are our own sources as they were then.

use std::fs;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh64::Xxh64;

use crate::Result;
use crate::arguments::{Arguments, from_environment};
use crate::bench::{Bench, size};
use crate::readings::numbers;
use crate::row::Unit::{Bytes, BytesEach, MillionsASecond, Ns};
use crate::table::Table;
use crate::task::Task;
use crate::valgrind::{self, Lackey};

/// References of a stored trace.
const MOST: u64 = 10_000_000;
/// Seconds for one program under Valgrind.
const BOUND: u64 = 900;
/// To be raised when traces are collected in another way.
const WAY: u32 = 1;
const OURS: [&str; 4] = ["vecadd", "matmul", "spmv", "chase"];

pub fn addresses(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let traces = collected(bench)?;
    let speed = bench.example("refrain-addresses", "speed")?;
    let mut short = Vec::new();
    for count in given.numbers(0, &[1_000_000, 10_000_000])? {
        let title = format!(
            "The first {count} data references of each program: bytes, and processor time as million references a second"
        );
        bench.table(Table::new("addresses", &title).with("references", count));
        for (name, trace) in &traces {
            let mut packing = Packing::new(bench, name, trace, count, &speed)?;
            match packing.have < count {
                true => short.push(format!("{name} has only {} references", packing.have)),
                false => packing.all_ways(bench)?,
            }
        }
    }
    short.iter().for_each(|line| bench.note(line));
    Ok(())
}

/// The model of `rfa` and `fold` side by side.
pub fn meet(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let count = given.number(0, 1_000_000)?;
    let traces = collected(bench)?;
    let meet = bench.example("refrain-addresses", "meet")?;
    let mut files = Vec::new();
    for (name, trace) in &traces {
        let file = bench.work(&format!("{name}.rawp"));
        bench
            .command(&["convert", "--force", "--limit", &count.to_string()])
            .arg(trace)
            .arg(&file)
            .limit(3600)
            .run()?;
        files.push(file);
    }
    let said = Task::new(meet).args(files).limit(36_000).run()?.out;
    bench.table(Table::new("meet", "The model of rfa and fold side by side").with("references", count));
    let mut notes = Vec::new();
    for line in said.lines().skip(1) {
        match (line.get(..10), line.get(11..39), &numbers(line.get(39..).unwrap_or_default())[..]) {
            (Some(name), Some(way), [bytes, each, ns]) => bench.row(
                &[("trace", &name.trim()), ("way", &way.trim())],
                &[("bytes", Bytes.of(*bytes)), ("bytes/ref", BytesEach.of(*each)), ("ns/ref", Ns.of(*ns))],
            )?,
            (Some(name), Some(way), [ns]) if way.trim() == "read back" => {
                bench.row(&[("trace", &name.trim()), ("way", &way.trim())], &[("ns/ref", Ns.of(*ns))])?;
            }
            _ => notes.push(line.to_owned()),
        }
    }
    notes.iter().for_each(|line| bench.note(line));
    Ok(())
}

/// The programs that are wanted (PROGRAMS), with their stored traces.
fn collected(bench: &Bench) -> Result<Vec<(String, PathBuf)>> {
    bench.need(&[("valgrind", "valgrind"), ("gzip", "gzip"), ("zstd", "zstd"), ("xz", "xz-utils")])?;
    let store = bench.file("target/addresses");
    fs::create_dir_all(&store)?;
    let mut traces = Vec::new();
    for name in from_environment("PROGRAMS", "vecadd matmul spmv chase cc1 gzip ls") {
        let path = stored(bench, &store, &name)?;
        if !path.exists() {
            eprintln!("collecting {name} with Valgrind (once, kept in target/addresses)");
            forget(&store, &name)?;
            collect(bench, &store, &name, &path)?;
        }
        traces.push((name, path));
    }
    Ok(traces)
}

/// The file of a program's trace, called by all that it is made from.
fn stored(bench: &Bench, store: &Path, name: &str) -> Result<PathBuf> {
    // Not the standard library's, which may be another with the next compiler.
    let mut hash = Xxh64::new(0);
    hash.update(&WAY.to_le_bytes());
    hash.update(Task::of(&["cc", "--version"]).run()?.out.as_bytes());
    let from: Vec<&str> = match name {
        "cc1" => OURS.to_vec(),
        "gzip" | "ls" => Vec::new(),
        name => vec![name],
    };
    for name in from {
        let source = fs::read_to_string(bench.file(&format!("bench/addresses/{name}.c")));
        let source = source.map_err(|_| format!("there is no program {name} in bench/addresses"))?;
        hash.update(source.as_bytes());
    }
    Ok(store.join(format!("{name}.{:016x}.rawp.zst", hash.digest())))
}

/// Removes older traces of a program.
fn forget(store: &Path, name: &str) -> Result<()> {
    for entry in fs::read_dir(store)? {
        let path = entry?.path();
        let file = path.file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
        if file.starts_with(&format!("{name}.")) && file.ends_with("rawp.zst") {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn collect(bench: &Bench, store: &Path, name: &str, into: &Path) -> Result<()> {
    let mut main = None;
    let command = match name {
        "cc1" => compiling(bench, &store.join("cc1.c"))?,
        "gzip" => gzipping(bench, &store.join("text"))?,
        "ls" => Task::of(&["ls", "-lR", "/usr"]),
        _ => {
            let program = store.join(name);
            let cc =
                Task::of(&["cc", "-O2", "-fno-tree-vectorize", "-no-pie", "-static", "-o"]).arg(&program);
            cc.arg(bench.file(&format!("bench/addresses/{name}.c"))).run()?;
            main = Some(valgrind::address_of_main(&program)?);
            Task::new(program)
        }
    };
    let convert = bench.command(&["convert", "--from", "lackey", "--drop", "sizes,fetches", "--pcs"]);
    let convert = convert.args(["--limit", &MOST.to_string(), "-"]).arg(into);
    Lackey { command, from: main, limit: BOUND, bare: false }.into(&convert)
}

/// The compiler proper, on the four programs in one, so that there is enough to compile.
pub fn compiling(bench: &Bench, source: &Path) -> Result<Task> {
    let mut text = String::new();
    for name in OURS {
        let program = fs::read_to_string(bench.file(&format!("bench/addresses/{name}.c")))?;
        text += &program.replace("int main", &format!("int {name}"));
    }
    fs::write(source, text)?;
    Ok(compiler(&["-O3"])?.arg(source).args(["-o", "/dev/null"]))
}

/// gcc's `cc1`, quiet, with these options.
pub fn compiler(options: &[&str]) -> Result<Task> {
    let said = |option: &str| Task::of(&["gcc", option]).run().map(|ran| ran.out.trim().to_owned());
    let (cc1, target) = (said("-print-prog-name=cc1")?, said("-print-multiarch")?);
    Ok(Task::new(cc1).args(["-quiet", "-imultiarch", &target]).args(options))
}

/// gzip on our own sources.
fn gzipping(bench: &Bench, text: &Path) -> Result<Task> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(bench.file("crates"))? {
        let sources = fs::read_dir(entry?.path().join("src"))?.flatten().map(|entry| entry.path());
        files.extend(sources.filter(|path| path.extension().is_some_and(|end| end == "rs")));
    }
    files.sort();
    let mut all = Vec::new();
    for file in files {
        all.extend(fs::read(file)?);
    }
    fs::write(text, all)?;
    Ok(Task::of(&["gzip", "-9", "-c"]).arg(text))
}

/// One trace, cut to so many references, and the ways to pack it.
struct Packing<'a> {
    name: &'a str,
    trace: &'a Path,
    count: u64,
    have: u64,
    raw: PathBuf,
    speed: &'a Path,
}

impl<'a> Packing<'a> {
    fn new(
        bench: &Bench,
        name: &'a str,
        trace: &'a Path,
        count: u64,
        speed: &'a Path,
    ) -> Result<Packing<'a>> {
        let raw = bench.work("t.raw");
        let cut = bench.command(&["convert", "--force", "--drop", "pcs", "--limit", &count.to_string()]);
        cut.arg(trace).arg(&raw).limit(3600).run()?;
        let have = size(&raw)? / 9;
        Ok(Packing { name, trace, count, have, raw, speed })
    }

    fn all_ways(&mut self, bench: &mut Bench) -> Result<()> {
        // With OURS the compressors that others wrote, which are slow, are left out.
        if from_environment("OURS", "").is_empty() {
            self.tool(bench, "raw, gzip -9", &["gzip", "-9", "-c"], &["gzip", "-dc"])?;
            let zstd: [&[&str]; 2] =
                [&["zstd", "-q", "-19", "--long", "-c"], &["zstd", "-q", "-d", "--long", "-c"]];
            self.tool(bench, "raw, zstd -19 --long", zstd[0], zstd[1])?;
            self.tool(bench, "raw, xz -9", &["xz", "-9", "-c"], &["xz", "-dc"])?;
            self.converted(bench, "pdt64, gzip -9", "pdt64.gz", &["--level", "9"])?;
            self.converted(bench, "pdt64, zstd -19", "pdt64.zst", &["--level", "19"])?;
        }
        self.converted(bench, "pdt64", "pdt64", &[])?;
        self.converted(bench, "rfa", "rfa", &[])?;
        self.converted(bench, "rfa, level 19", "rfa", &["--level", "19"])?;
        self.memory(bench, "rfa, in memory", &self.raw, "rfa")?;
        let with_pcs = bench.work("t.rawp");
        let cut = bench.command(&["convert", "--force", "--limit", &self.count.to_string()]);
        cut.arg(self.trace).arg(&with_pcs).limit(3600).run()?;
        self.memory(bench, "rfa, PCs too, in memory", &with_pcs, "rfa")?;
        fs::remove_file(with_pcs)?;
        self.memory(bench, "pdt64, in memory", &self.raw, "pdt64")
    }

    /// A compressor of others, from its standard input to its standard output.
    fn tool(&self, bench: &mut Bench, what: &str, pack: &[&str], unpack: &[&str]) -> Result<()> {
        let packed = bench.work("packed");
        let packing = Task::of(pack).input(&self.raw).output(&packed).limit(36_000).run()?.cpu;
        let unpacking = Task::of(unpack).input(&packed).output(Path::new("/dev/null")).limit(3600).run()?.cpu;
        self.row(bench, what, &packed, packing, unpacking)
    }

    /// Our own commands, from raw records and back.
    fn converted(&self, bench: &mut Bench, what: &str, format: &str, options: &[&str]) -> Result<()> {
        let packed = bench.work(&format!("packed.{format}"));
        let pack =
            bench.command(&["convert", "--force"]).args(options).arg(&self.raw).arg(&packed).limit(36_000);
        let packing = pack.run()?.cpu;
        let unpack = bench.command(&["convert", "--to", "raw"]).arg(&packed).limit(3600);
        let unpacking = unpack.clone().arg("/dev/null").run()?.cpu;
        let back = bench.work("back.raw");
        unpack.arg("-").output(&back).run()?;
        Task::new("cmp").arg(&back).arg(&self.raw).run()?;
        self.row(bench, what, &packed, packing, unpacking)
    }

    fn row(&self, bench: &mut Bench, what: &str, packed: &Path, packing: f64, unpacking: f64) -> Result<()> {
        let bytes = size(packed)?;
        let speed = |seconds: f64| MillionsASecond.of(self.count as f64 / 1e6 / seconds.max(0.001));
        bench.row(
            &[("trace", &self.name), ("packing", &what)],
            &[
                ("bytes", Bytes.of(bytes)),
                ("bytes/ref", BytesEach.of(bytes as f64 / self.count as f64)),
                ("pack", speed(packing)),
                ("unpack", speed(unpacking)),
            ],
        )
    }

    /// Packed and unpacked without reading and writing files.
    fn memory(&self, bench: &mut Bench, what: &str, file: &Path, format: &str) -> Result<()> {
        let said = Task::new(self.speed).arg(file).arg(format).limit(3600).run()?.out;
        for line in said.lines().skip(1) {
            let [_, each, pack, on_two, unpack] = numbers(line)[..] else {
                return Err(format!("no row: {line}").into());
            };
            bench.row(
                &[("trace", &self.name), ("packing", &what)],
                &[
                    ("bytes/ref", BytesEach.of(each)),
                    ("pack", MillionsASecond.of(pack)),
                    ("unpack", MillionsASecond.of(unpack)),
                    ("two cores", MillionsASecond.of(on_two)),
                ],
            )?;
        }
        Ok(())
    }
}
