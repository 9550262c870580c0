//! What recorded memory references take. Raw is a record of 17 bytes a reference: kind, address, address of the
//! instruction. A trace has sizes and call paths besides.

use std::fs;
use std::path::PathBuf;

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::{Bench, Library, size, xz, zstd};
use crate::parts::addresses::compiling;
use crate::readings::{best_of, number_after, number_before};
use crate::row::Unit::{Bytes, BytesEach, Count, Ratio, Seconds};
use crate::table::Table;
use crate::task::Task;
use crate::text;

const RAW: u64 = 17;
const CACHES: [&str; 4] = ["--l1d", "32K,8,64", "--l2", "1M,16,64"];

pub fn reference_sizes(bench: &mut Bench, given: &Arguments) -> Result<()> {
    bench.need(&[("qemu-x86_64", "qemu-user"), ("zstd", "zstd"), ("xz", "xz-utils")])?;
    let all = ["threads", "unstructured", "programs", "simulate"].map(str::to_owned);
    for part in if given.0.is_empty() { &all } else { given.0 } {
        match part.as_str() {
            "threads" => threads(bench)?,
            "unstructured" => unstructured(bench)?,
            "programs" => programs(bench)?,
            "simulate" => simulate(bench)?,
            other => return Err(format!("there is no {other} here: take {}", all.join(", ")).into()),
        }
        bench.note("");
    }
    Ok(())
}

/// Records a command to `trace()`; how many references.
fn record(bench: &Bench, options: &[&str], threads: u64, command: &Task) -> Result<u64> {
    let task = bench
        .command(&["memory", "run", "--force", "--out"])
        .arg(bench.trace())
        .args(options)
        .arg("--")
        .then(command);
    let task = task.env("OMP_WAIT_POLICY", "passive").env("OMP_NUM_THREADS", threads.to_string()).limit(580);
    // What the program says of itself is its own matter: `ls` may not be allowed everything.
    let said = task.attempt()?.err;
    bench.command(&["verify", "--quiet"]).arg(bench.trace()).limit(580).run()?;
    Ok(number_before(&said, " references").ok_or_else(|| format!("{task}: nothing was recorded\n{said}"))?
        as u64)
}

/// The trace as raw records, thread by thread.
fn raw(bench: &Bench, ranks: u64, threads: u64, references: u64) -> Result<PathBuf> {
    let (all, one) = (bench.work("t.raw"), bench.work("one.raw"));
    let mut to = fs::File::create(&all)?;
    for rank in 0..ranks {
        for thread in 0..threads {
            let task = bench.command(&["convert", "--drop", "sizes", "--to", "raw-pc"]);
            let task = task.args(["--rank", &rank.to_string(), "--thread", &thread.to_string()]);
            // Not every rank has so many threads.
            task.arg(bench.trace()).arg("-").output(&one).limit(580).attempt()?;
            std::io::copy(&mut fs::File::open(&one)?, &mut to)?;
        }
    }
    // An atomic update is a read and a write there.
    match size(&all)? / RAW >= references {
        true => Ok(all),
        false => Err("the raw records are not all references".into()),
    }
}

/// Work that grows with the threads.
fn threads(bench: &mut Bench) -> Result<()> {
    let vecadd = bench.cc("bench/references/vecadd.c", "vecadd", &["-g", "-fopenmp"])?;
    let matmul = bench.cc("bench/references/matmul.c", "matmul", &["-g", "-fopenmp"])?;
    bench.table(Table::new(
        "threads",
        "Work that grows with the threads, the program's own code: references, bytes of raw records, of the trace",
    ));
    // Matrices whose rows the threads share evenly, with about as many multiplications for each.
    for (threads, rows) in [(1, 64), (2, 80), (3, 93), (4, 100), (8, 128), (16, 160), (32, 192)] {
        let commands = [
            ("vecadd", Task::new(&vecadd).arg((100_000 * threads).to_string()).arg("5")),
            ("matmul", Task::new(&matmul).arg(rows.to_string())),
        ];
        for (name, command) in commands {
            let references = record(bench, &["--skip-libraries"], threads, &command)?;
            let bytes = size(&bench.trace())?;
            bench.row(
                &[("program", &name), ("threads", &threads)],
                &[
                    ("references", Count.of(references).varies()),
                    ("raw", Bytes.of(RAW * references).varies()),
                    ("trace", Bytes.of(bytes).varies()),
                ],
            )?;
        }
    }
    Ok(())
}

/// A multigrid solver on no grid, ranks of 4 threads.
fn unstructured(bench: &mut Bench) -> Result<()> {
    let amg = bench.mpicc(Library::OpenMpi, "bench/references/amg.c", &["-g", "-fopenmp", "-lm"])?;
    let refold = bench.example("refrain-references", "refold")?;
    bench.table(Table::new(
        "unstructured",
        "Multigrid without a grid, 800 points a rank, 3 cycles, 4 threads a rank, the program's own code. Seconds of folding it again",
    ));
    for ranks in [1, 2, 4, 8] {
        let command = Library::OpenMpi.sharing(ranks).arg(&amg).args(["800", "3"]);
        let references = record(bench, &["--skip-libraries"], 4, &command)?;
        let raw = raw(bench, ranks, 9, references)?;
        let packed = bench.work("packed.xz");
        Task::of(&["xz", "-9", "-T2", "--block-size=1GiB", "-c"])
            .input(&raw)
            .output(&packed)
            .limit(3600)
            .run()?;
        let said = Task::new(&refold).arg(bench.trace()).limit(580).run()?.out;
        let seconds = |mark: &str| Seconds.of(number_after(&said, mark));
        let bytes = size(&bench.trace())?;
        let raw_bytes = RAW * references;
        bench.row(
            &[("ranks", &ranks)],
            &[
                ("references", Count.of(references).varies()),
                ("raw", Bytes.of(raw_bytes).varies()),
                ("xz -9", Bytes.of(size(&packed)?).varies()),
                ("trace", Bytes.of(bytes).varies()),
                ("raw/trace", Ratio.of(raw_bytes as f64 / bytes as f64).varies()),
                ("B / ref", BytesEach.of(bytes as f64 / references as f64).varies()),
                ("threads", seconds("within threads ")),
                ("+ threads", seconds("between threads ")),
                ("+ ranks", seconds("between processes ")),
            ],
        )?;
    }
    Ok(())
}

/// The programs of `addresses`, beside other packers.
fn programs(bench: &mut Bench) -> Result<()> {
    bench.table(Table::new(
        "programs",
        "The first million references of each program, with instructions; a trace has sizes too, and call paths. Bytes a reference",
    ));
    for name in ["vecadd", "matmul", "spmv", "chase", "cc1", "gzip", "ls"] {
        let (command, from_main) = match name {
            "cc1" => (compiling(bench, &bench.work("cc1.c"))?, false),
            "gzip" => {
                let file = bench.work("text");
                fs::write(&file, text::generated(3_000_000))?;
                (Task::of(&["gzip", "-9", "-c"]).arg(file), false)
            }
            "ls" => (Task::of(&["ls", "-lR", "/usr"]), false),
            _ => {
                let flags = ["-fno-tree-vectorize", "-no-pie", "-static", "-g"];
                (Task::new(bench.cc(&format!("bench/addresses/{name}.c"), name, &flags)?), true)
            }
        };
        let mut options = vec!["--limit", "1000000"];
        if from_main {
            options.extend(["--from", "main"]);
        }
        record(bench, &[&options[..], &["--no-stacks"]].concat(), 1, &command)?;
        let no_paths = size(&bench.trace())?;
        let references = record(bench, &options, 1, &command)?;
        let raw = raw(bench, 1, 1, references)?;
        let (rfa, rfa19) = (bench.work("t.rfa"), bench.work("t19.rfa"));
        let convert = bench.command(&["convert", "--force", "--from", "raw-pc"]).limit(580);
        convert.clone().arg(&raw).arg(&rfa).run()?;
        convert.args(["--level", "19"]).arg(&raw).arg(&rfa19).run()?;
        let all = [
            ("raw", size(&raw)?),
            ("zstd -19", zstd(bench, &raw, &["--long"])?),
            ("xz -9", xz(bench, &raw)?),
            ("rfa", size(&rfa)?),
            ("rfa 19", size(&rfa19)?),
            ("no paths", no_paths),
            ("trace", size(&bench.trace())?),
        ];
        let values = all.map(|(name, bytes)| (name, BytesEach.of(bytes as f64 / references as f64)));
        bench.row(&[("program", &name)], &values)?;
    }
    Ok(())
}

/// Caches from the trace, its rfa and its din.
fn simulate(bench: &mut Bench) -> Result<()> {
    let matmul = bench.cc("bench/references/matmul.c", "matmul", &["-g", "-fopenmp"])?;
    let references = record(bench, &["--skip-libraries"], 1, &Task::new(matmul).arg("160"))?;
    for (form, dropped) in [("rfa", ""), ("din", "sizes,pcs"), ("pdt64", "pcs,sizes")] {
        let convert = bench
            .command(&["convert", "--force"])
            .args(["--drop", dropped].iter().filter(|_| !dropped.is_empty()));
        convert.arg(bench.trace()).arg(bench.work(&format!("t.{form}"))).limit(580).run()?;
    }
    let title = format!(
        "Caches ({}) from a matrix multiplication of {references} references: bytes, processor seconds",
        CACHES.join(" ")
    );
    bench.table(Table::new("simulate", &title).with("references", references));
    let mut misses: Vec<(&str, String)> = Vec::new();
    for form in ["rfn", "rfa", "din", "pdt64"] {
        let file = bench.work(&format!("t.{form}"));
        let mut said = String::new();
        let seconds = best_of(3, || {
            let ran = bench.command(&["simulate"]).args(CACHES).arg(&file).limit(580).run()?;
            said = ran.out;
            Ok(ran.cpu)
        })?;
        let bytes = size(&file)?;
        bench.row(&[("form", &form)], &[("bytes", Bytes.of(bytes)), ("seconds", Seconds.of(seconds))])?;
        misses.push((form, said));
    }
    let figures = |said: &str| {
        said.lines()
            .filter(|line| line.starts_with('l') && line.contains('%'))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (form, said) in &misses[1..] {
        let same =
            if figures(said) == figures(&misses[0].1) { "the same misses as" } else { "other misses than" };
        bench.note(&format!("{form}: {same} {}", misses[0].0));
    }
    bench.note(&misses[0].1);
    Ok(())
}
