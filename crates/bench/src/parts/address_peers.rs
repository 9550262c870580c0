//! Address traces of Debian's programs, packed by us and by others: bytes a reference, processor time, memory; and caches simulated
//! from each form of a trace beside a plain loop in C. `scripts/address-traces` makes the traces.
//!
//! The peers are `xz -9e` of fixed-width records, and bytesort and VPC4, which `examples/peers.rs` of the crate `addresses` writes from
//! their published descriptions. What is unpacked is compared with what was packed.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::arguments::{Arguments, from_environment};
use crate::bench::{Bench, size};
use crate::readings::numbers;
use crate::row::Unit::{Bytes, BytesEach, MiB, Ns, Seconds};
use crate::table::Table;
use crate::task::Task;

const PROGRAMS: &str = "python3 sqlite3 bzip2 perl sort cc1 lapack spmv chase matmul vecadd";
const LONG: u64 = 36_000;

/// What of each reference is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Data,
    Pcs,
    Fetches,
}

impl Form {
    const ALL: [Form; 3] = [Form::Data, Form::Pcs, Form::Fetches];

    fn name(self) -> &'static str {
        match self {
            Form::Data => "data",
            Form::Pcs => "pcs",
            Form::Fetches => "fetches",
        }
    }

    /// The form of its fixed-width records, and how many bytes one has.
    fn raw(self) -> (&'static str, u64) {
        match self {
            Form::Pcs => ("raw-pc", 17),
            Form::Data | Form::Fetches => ("raw", 9),
        }
    }

    fn ways(self) -> Vec<Way> {
        let mut ways = vec![
            Way::Convert("rfa", "rfa", &[]),
            Way::Convert("rfa 19", "rfa", &["--level", "19"]),
            Way::Xz,
            Way::Peer("bytesort + xz", "bytesort"),
            Way::Peer("vpc4 + xz", "vpc4"),
        ];
        // PDATS keeps no instructions.
        if self != Form::Pcs {
            ways.push(Way::Convert("pdt64.xz", "pdt64.xz", &["--level", "9"]));
        }
        ways
    }
}

#[derive(Debug, Clone, Copy)]
enum Way {
    /// By us: what it is called, the format, options.
    Convert(&'static str, &'static str, &'static [&'static str]),
    /// The raw records with `xz -9e`.
    Xz,
    Peer(&'static str, &'static str),
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Convert(name, ..) | Way::Peer(name, _) => name,
            Way::Xz => "raw, xz -9e",
        }
    }
}

pub fn address_peers(bench: &mut Bench, given: &Arguments) -> Result<()> {
    bench.need(&[("valgrind", "valgrind"), ("xz", "xz-utils"), ("cc", "gcc")])?;
    let peers = bench.example("refrain-addresses", "peers")?;
    let reading = bench.example("refrain-addresses", "reading")?;
    let plain = bench.cc("bench/addresses/dinero.c", "dinero", &[])?;
    let programs = from_environment("PROGRAMS", PROGRAMS);
    let forms = from_environment("FORMS", "data pcs fetches");
    for count in given.numbers(0, &[1_000_000, 10_000_000])? {
        let make = Task::new(bench.file("scripts/address-traces")).arg(count.to_string());
        make.args(&programs).limit(LONG).run()?;
        let mut short = Vec::new();
        for form in Form::ALL.into_iter().filter(|form| forms.iter().any(|name| name == form.name())) {
            let what = match form {
                Form::Data => "data references",
                Form::Pcs => "data references with their instructions",
                Form::Fetches => "references, fetches included",
            };
            let title = format!(
                "{count} {what}: bytes a reference, processor seconds and peak memory of packing and unpacking"
            );
            bench.table(Table::new("peers", &title).with("references", count).with("form", form.name()));
            for name in &programs {
                match raw(bench, name, count, form)? {
                    Some(raw) => packed(bench, name, form, count, &raw, &peers)?,
                    None => {
                        short.push(format!("{name} ({}) is not there or has fewer references", form.name()))
                    }
                }
            }
        }
        simulated(bench, &programs, count, &reading, &plain)?;
        short.iter().for_each(|line| bench.note(line));
    }
    Ok(())
}

/// A trace of `scripts/address-traces`.
fn stored(bench: &Bench, name: &str, count: u64, fetches: bool) -> PathBuf {
    let what = if fetches { "all.raw" } else { "data.rawp" };
    bench.file(&format!("target/address-traces/{name}.{count}.{what}.zst"))
}

/// Fixed-width records; nothing where there are fewer than wanted.
fn raw(bench: &Bench, name: &str, count: u64, form: Form) -> Result<Option<PathBuf>> {
    let trace = stored(bench, name, count, form == Form::Fetches);
    if !trace.exists() {
        return Ok(None);
    }
    let (format, bytes) = form.raw();
    let raw = bench.work(&format!("t.{format}"));
    let convert = bench.command(&["convert", "--force", "--to", format]);
    let convert = if form == Form::Data { convert.args(["--drop", "pcs"]) } else { convert };
    convert.arg(&trace).arg(&raw).limit(LONG).run()?;
    Ok((size(&raw)? == bytes * count).then_some(raw))
}

/// One way after the other on one trace, so that what else the machine does meets all of them.
fn packed(bench: &mut Bench, name: &str, form: Form, count: u64, raw: &Path, peers: &Path) -> Result<()> {
    let (format, _) = form.raw();
    for way in form.ways() {
        let (small, back) = (bench.work("packed"), bench.work(&format!("back.{format}")));
        let (pack, unpack) = match way {
            Way::Convert(_, to, options) => (
                bench
                    .command(&["convert", "--force", "--from", format, "--to", to])
                    .args(options)
                    .arg(raw)
                    .arg(&small),
                bench.command(&["convert", "--force", "--to", format]).arg(&small).arg(&back),
            ),
            Way::Xz => (
                Task::of(&["xz", "-9e", "-T1", "-c"]).input(raw).output(&small),
                Task::of(&["xz", "-dc"]).input(&small).output(&back),
            ),
            Way::Peer(_, peer) => (
                Task::new(peers).args(["pack", peer, format]).arg(raw).arg(&small),
                Task::new(peers).args(["unpack", peer, format]).arg(&small).arg(&back),
            ),
        };
        let packing = pack.limit(LONG).run()?;
        let unpacking = unpack.limit(LONG).run()?;
        Task::new("cmp").arg(&back).arg(raw).run()?;
        let bytes = size(&small)?;
        bench.row(
            &[("trace", &name), ("packing", &way.name())],
            &[
                ("bytes", Bytes.of(bytes)),
                ("bytes/ref", BytesEach.of(bytes as f64 / count as f64)),
                ("pack", Seconds.of(packing.cpu)),
                ("unpack", Seconds.of(unpacking.cpu)),
                ("pack memory", MiB.of(packing.peak as f64 / 1024.0)),
                ("unpack memory", MiB.of(unpacking.peak as f64 / 1024.0)),
            ],
        )?;
    }
    Ok(())
}

/// Reading and simulating, from each form, and a plain loop in C from din.
fn simulated(bench: &mut Bench, programs: &[String], count: u64, reading: &Path, plain: &Path) -> Result<()> {
    let title = format!(
        "{count} references, fetches included: nanoseconds of processor time for each to read, and to read and simulate I1 and D1\n\
         32K,8,64, L2 1M,16,64"
    );
    bench.table(Table::new("simulate", &title).with("references", count));
    for name in programs {
        let trace = stored(bench, name, count, true);
        if !trace.exists() {
            continue;
        }
        let mut files = Vec::new();
        for format in ["din", "pdt64", "rfa"] {
            let file = bench.work(&format!("{name}.{format}"));
            bench.command(&["convert", "--force"]).arg(&trace).arg(&file).limit(LONG).run()?;
            files.push(file);
        }
        let ran = Task::new(reading).args(&files).limit(LONG).run()?;
        for line in ran.out.lines().skip(1) {
            let form = line.split_whitespace().next().unwrap_or_default();
            let [_, read, _, simulate, _] = numbers(line)[..] else {
                return Err(format!("no row: {line}").into());
            };
            bench.row(
                &[("trace", &name), ("form", &form)],
                &[("read", Ns.of(read)), ("simulate", Ns.of(simulate))],
            )?;
        }
        let looped = Task::new(plain).arg(&files[0]).limit(LONG).run()?.out;
        let [each, misses @ ..] = &numbers(&looped)[..] else {
            return Err(format!("no row: {looped}").into());
        };
        bench.row(&[("trace", &name), ("form", &"din, a loop in C")], &[("simulate", Ns.of(*each))])?;
        // Of instructions, of data, and of the level behind them.
        let ours = numbers(ran.err.lines().last().unwrap_or_default());
        if ours != misses {
            return Err(format!("{name}: the loop in C misses otherwise: {misses:?}, ours {ours:?}").into());
        }
        for file in files {
            std::fs::remove_file(file)?;
        }
    }
    Ok(())
}
