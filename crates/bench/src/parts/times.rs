//! How exactly time is kept (`--time`): what it costs, and the bytes it adds.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::{Bench, Library, size, xz, zstd};
use crate::parts::calls::{Way, in_turns};
use crate::row::Unit::{BytesEach, Count, KiB, Ns, TimedBytes};
use crate::table::Table;
use crate::task::{Task, installed};

pub fn times(bench: &mut Bench, given: &Arguments) -> Result<()> {
    processor_time(bench)?;
    memory(bench)?;
    times_sizes(bench, given)
}

fn processor_time(bench: &mut Bench) -> Result<()> {
    let title = "CPU time per call, nanoseconds, by --time, best of 5 runs of 15 rounds, in turns";
    bench.table(Table::new("cpu", title));
    let ways: [Way; 4] = [
        ("off", Some(&["--time", "off"])),
        ("mean", Some(&["--time", "mean"])),
        ("binned", Some(&["--time", "binned"])),
        ("exact", Some(&["--time", "exact"])),
    ];
    for library in Library::ALL {
        let program = bench.mpicc(library, "bench/calls.c", &[])?;
        let best = in_turns(bench, library, &program, &ways)?;
        for name in best[0].names() {
            let values: Vec<_> =
                ways.iter().zip(&best).map(|((way, _), best)| (*way, Ns.of(best.of(name)))).collect();
            bench.row(&[("library", &library.name()), ("function", &name)], &values)?;
        }
    }
    Ok(())
}

fn memory(bench: &mut Bench) -> Result<()> {
    let program = bench.mpicc(Library::Mpich, "bench/steady.c", &[])?;
    let title = "Memory over ten million regular calls, KiB resident (MPICH), and bytes of the trace";
    bench.table(Table::new("memory", title).across(&["calls"]));
    let mut traces = Vec::new();
    for time in ["mean", "exact"] {
        let command = Library::Mpich.sharing(1).arg(&program);
        for (calls, resident) in steady(&bench.traced(&["--time", time], &command).run()?.out) {
            bench.row(&[("time", &time), ("calls", &calls)], &[("resident", KiB.of(resident))])?;
        }
        traces.push((time, size(&bench.trace())?));
    }
    bench.table(Table::new("trace", "Bytes of these traces"));
    for (time, bytes) in traces {
        bench.row(&[("time", &time)], &[("trace", TimedBytes.of(bytes))])?;
    }
    Ok(())
}

/// Calls and memory, as `bench/steady.c` prints them.
pub fn steady(text: &str) -> Vec<(String, f64)> {
    let pair = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

pub fn times_sizes(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let ranks = given.number(0, 16)?;
    // MPICH's ranks wait busily, and here they share cores.
    let preload = bench.yielding()?;
    bench.table(Table::new(
        "bytes",
        "Bytes a call, beside those of the trace without times: as they are, packed by others, and by us",
    ));
    for library in Library::ALL {
        let preload = (library == Library::Mpich).then_some(preload.as_path());
        for name in ["stencil2d", "random_sizes", "completion"] {
            let mut command = library.sharing(ranks).arg(bench.program(library, name)?);
            if name != "completion" {
                command = command.arg("500");
            }
            row(bench, library, name, ranks, &command, preload)?;
        }
    }
    if installed("lmp") {
        let melt = bench.file("bench/lj.lammps");
        let command =
            Library::OpenMpi.sharing(4).args(["lmp", "-log", "none", "-screen", "none", "-in"]).arg(melt);
        row(bench, Library::OpenMpi, "lammps", 4, &command.args(["-var", "steps", "200"]), None)?;
    } else {
        bench.note("lammps: left out, there is no lmp here (package lammps has it)");
    }
    bench.note(
        "raw: start and end of each call, 8 bytes each, rank by rank, of the run with exact times. A run has its own times:\n\
         where ranks share cores, each mode met other waits.",
    );
    Ok(())
}

fn row(
    bench: &mut Bench,
    library: Library,
    name: &str,
    ranks: u64,
    command: &Task,
    preload: Option<&Path>,
) -> Result<()> {
    let mut each = Vec::new();
    let mut calls = 0.0;
    for time in ["off", "binned", "exact"] {
        let mut task = bench.traced(&["--time", time], command);
        if let Some(preload) = preload {
            task = task.env("LD_PRELOAD", preload);
        }
        task.run()?;
        // Polls make other calls in each run.
        calls = bench.info(&bench.trace())?["calls"].as_f64().ok_or("info tells no calls")?;
        each.push(size(&bench.trace())? as f64 / calls);
    }
    let raw = raw_times(bench)?;
    let packed = [zstd(bench, &raw, &[])?, xz(bench, &raw)?].map(|bytes| bytes as f64 / calls);
    bench.row(
        &[("library", &library.name()), ("program", &name), ("ranks", &ranks)],
        &[
            ("calls", Count.of(calls).varies()),
            ("off", BytesEach.of(each[0]).varies()),
            ("raw", BytesEach.of(16.0)),
            ("zstd -19", BytesEach.of(packed[0]).varies()),
            ("xz -9", BytesEach.of(packed[1]).varies()),
            ("binned", BytesEach.of(each[1] - each[0]).varies()),
            ("exact", BytesEach.of(each[2] - each[0]).varies()),
        ],
    )
}

/// Start and end of each call of the trace, 8 bytes each.
fn raw_times(bench: &Bench) -> Result<PathBuf> {
    let (text, raw) = (bench.work("calls.json"), bench.work("raw"));
    bench.command(&["dump", "--json"]).arg(bench.trace()).output(&text).run()?;
    let mut to = std::io::BufWriter::new(fs::File::create(&raw)?);
    for line in std::io::BufRead::lines(std::io::BufReader::new(fs::File::open(&text)?)) {
        let line = line?;
        if let (Some(start), Some(end)) = (signed_after(&line, "\"start\":"), signed_after(&line, "\"end\":"))
        {
            to.write_all(&start.to_le_bytes())?;
            to.write_all(&end.to_le_bytes())?;
        }
    }
    to.flush()?;
    Ok(raw)
}

fn signed_after(line: &str, mark: &str) -> Option<i64> {
    let rest = &line[line.find(mark)? + mark.len()..];
    let end = rest.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_in_a_line_of_json() {
        let line = r#"{"rank":0,"start":-12,"end":345,"function":"MPI_Init"}"#;
        assert_eq!(
            (signed_after(line, "\"start\":"), signed_after(line, "\"end\":")),
            (Some(-12), Some(345))
        );
        assert_eq!(signed_after("{}", "\"start\":"), None);
    }

    #[test]
    fn memory_is_read_line_by_line() {
        assert_eq!(
            steady("1000 20\n2000 21 more\nno\n"),
            [("1000".to_owned(), 20.0), ("2000".to_owned(), 21.0)]
        );
    }
}
