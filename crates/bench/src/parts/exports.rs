//! What the page and each export cost: seconds, processor seconds and the largest memory.

use std::fs;
use std::path::Path;

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::{Bench, Library, size};
use crate::parts::simulated::simulator;
use crate::row::Unit::{Bytes, MiB, Seconds, TimedBytes};
use crate::table::Table;
use crate::task::Task;

const LIMIT: u64 = 580;
const FORMATS: [&str; 8] = ["chrome", "csv", "otf2", "paje", "paraver", "parquet", "perfetto", "simgrid"];

/// Of a simulated stencil of 100 million calls, which is some hundred bytes, and of so many calls that do not fold, with
/// exact times. Of the stencil as many ranks are exported as make about a million calls: an export costs in the calls
/// that it writes.
pub fn exports(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let calls = given.number(0, 10_000_000)?;
    let scale = simulator(bench)?;
    for (name, steps) in [("stencil.rfn", "2500"), ("shorter.rfn", "25")] {
        Task::new(&scale)
            .arg("--out")
            .arg(bench.work(name))
            .args(["stencil2d", "4096", steps])
            .limit(LIMIT)
            .run()?;
    }
    let program = bench.program(Library::OpenMpi, "random_sizes")?;
    let command = Library::OpenMpi.sharing(2).arg(program).arg((calls / 14).to_string());
    bench.traced(&["--time", "exact"], &command).limit(3600).run()?;
    fs::rename(bench.trace(), bench.work("random.rfn"))?;
    let mut failed = Vec::new();
    bench.table(Table::new("exports", "The page and each export").with("calls", calls));
    for name in ["stencil", "random"] {
        let trace = bench.work(&format!("{name}.rfn"));
        let task = bench.command(&["report"]).arg(trace).arg("-o").arg(bench.work("out"));
        failed.extend(measured(bench, name, "page", task)?);
    }
    // 41 ranks of 24,691 calls each.
    for (name, options) in [("stencil", &["--ranks", "0-40"][..]), ("random", &[])] {
        for format in offered(bench)? {
            // SimGrid takes all ranks, so of a run with a hundredth of the calls.
            let (file, options) = match (name, format) {
                ("stencil", "simgrid") => ("shorter", &[][..]),
                _ => (name, options),
            };
            // Paraver knows its traces by their names.
            let out = bench.work(if format == "paraver" { "out.prv" } else { "out" });
            let trace = bench.work(&format!("{file}.rfn"));
            let task =
                bench.command(&["export"]).arg(trace).args(["--to", format, "-o"]).arg(out).args(options);
            failed.extend(measured(bench, name, format, task)?);
        }
    }
    for name in ["stencil", "random"] {
        let trace = bench.work(&format!("{name}.rfn"));
        let told = bench.info_text(&trace)?;
        let line =
            told.lines().find_map(|line| line.strip_prefix("calls ")).unwrap_or_default().trim().to_owned();
        bench.note(&format!("{name}: {line}, {} bytes", size(&trace)?));
    }
    failed.iter().for_each(|line| bench.note(line));
    Ok(())
}

/// The formats that this build has.
fn offered(bench: &Bench) -> Result<Vec<&'static str>> {
    let help = bench.command(&["export", "--help"]).run()?.out;
    let there = |format: &str| help.lines().any(|line| line.trim_start().starts_with(&format!("{format}  ")));
    Ok(FORMATS.into_iter().filter(|format| there(format)).collect())
}

/// A row, or why there is none.
fn measured(bench: &mut Bench, trace: &str, what: &str, task: Task) -> Result<Option<String>> {
    for path in outputs(bench.folder())? {
        if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }
    let ran = task.limit(LIMIT).attempt()?;
    if ran.over {
        return Ok(Some(format!("{trace} {what}: not within {LIMIT} s")));
    }
    if ran.code != Some(0) {
        return Ok(Some(format!("{trace} {what}: ended with {:?}: {}", ran.code, ran.err.trim_end())));
    }
    let bytes = outputs(bench.folder())?
        .iter()
        .try_fold(0, |sum, path| Ok::<u64, crate::Error>(sum + bytes_below(path)?))?;
    // The simulated stencil has no times.
    let unit = if trace == "stencil" { Bytes } else { TimedBytes };
    bench.row(
        &[("trace", &trace), ("what", &what)],
        &[
            ("seconds", Seconds.of(ran.wall)),
            ("processor", Seconds.of(ran.user)),
            ("memory", MiB.of(ran.peak as f64 / 1024.0)),
            ("bytes", unit.of(bytes)),
        ],
    )?;
    Ok(None)
}

fn outputs(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let mut all: Vec<_> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    all.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("out")));
    Ok(all)
}

/// Bytes of a file, or of all files in a folder and its folders.
fn bytes_below(path: &Path) -> Result<u64> {
    if !path.is_dir() {
        return size(path);
    }
    fs::read_dir(path)?.try_fold(0, |sum, entry| Ok(sum + bytes_below(&entry?.path())?))
}
