//! Programs as Debian has them: bytes and time.

use std::path::Path;

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::{Bench, Library, size};
use crate::readings::{best_of, number_before};
use crate::row::Unit::{Count, Seconds, TimedBytes};
use crate::table::Table;
use crate::task::{Task, installed};

const INPUT: &str = "/usr/share/doc/hpcc/examples/_hpccinf.txt";

pub fn real(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let melt = bench.file("bench/lj.lammps").display().to_string();
    let programs: [(&str, Vec<&str>); 3] = [
        ("lammps-200", vec!["lmp", "-in", &melt, "-var", "steps", "200"]),
        ("lammps-2000", vec!["lmp", "-in", &melt, "-var", "steps", "2000"]),
        ("hpcc", vec!["hpcc"]),
    ];
    bench.table(Table::new(
        "real",
        "Programs as Debian has them (Open MPI): bytes of the trace, and seconds untraced and traced, best of 3",
    ));
    let mut missing = Vec::new();
    for (name, words) in &programs {
        if !installed(words[0]) {
            missing.push(format!(
                "{name}: left out, there is no {} here (packages lammps and hpcc have them)",
                words[0]
            ));
            continue;
        }
        for ranks in given.numbers(0, &[4, 16])? {
            row(bench, name, ranks, &Library::OpenMpi.sharing(ranks).args(words))?;
        }
    }
    missing.iter().for_each(|line| bench.note(line));
    Ok(())
}

fn row(bench: &mut Bench, name: &str, ranks: u64, command: &Task) -> Result<()> {
    if let Ok(text) = std::fs::read_to_string(INPUT) {
        std::fs::write(bench.work("hpccinf.txt"), small(&text, ranks))?;
    }
    let untraced = quickest(bench, command)?;
    let (grammar, calls, grammar_bytes) = traced(bench, &[], command)?;
    let (loops, _, loops_bytes) = traced(bench, &["--fold", "loops"], command)?;
    bench.row(
        &[("program", &name), ("ranks", &ranks)],
        &[
            ("calls", Count.of(calls).varies()),
            ("grammar", TimedBytes.of(grammar_bytes)),
            ("loops", TimedBytes.of(loops_bytes)),
            ("untraced s", Seconds.of(untraced)),
            ("grammar s", Seconds.of(grammar)),
            ("loops s", Seconds.of(loops)),
        ],
    )
}

/// Seconds, calls and bytes.
fn traced(bench: &Bench, options: &[&str], command: &Task) -> Result<(f64, Option<f64>, u64)> {
    let seconds = quickest(bench, &bench.traced(options, command))?;
    let said = bench.verify(&bench.trace())?;
    Ok((seconds, number_before(&said, " calls"), size(&bench.trace())?))
}

/// Seconds of the shortest of three runs, in the folder where its input is.
fn quickest(bench: &Bench, task: &Task) -> Result<f64> {
    let folder: &Path = bench.folder();
    best_of(3, || {
        // It would be added to.
        let _ = std::fs::remove_file(folder.join("hpccoutf.txt"));
        Ok(task.clone().dir(folder).run()?.wall)
    })
}

/// HPC Challenge's input for a small matrix on this many ranks.
fn small(input: &str, ranks: u64) -> String {
    let changed = |(at, line): (usize, &str)| match at + 1 {
        6 => "200 Ns".to_owned(),
        8 => "16 NBs".to_owned(),
        11 => "1 Ps".to_owned(),
        12 => format!("{ranks} Qs"),
        _ => line.to_owned(),
    };
    input.lines().enumerate().map(changed).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_input_is_small() {
        let lines: Vec<String> = (1..=13).map(|line| line.to_string()).collect();
        let text = super::small(&lines.join("\n"), 16);
        let changed: Vec<&str> = text.lines().collect();
        assert_eq!(
            [changed[5], changed[7], changed[10], changed[11], changed[12]],
            ["200 Ns", "16 NBs", "1 Ps", "16 Qs", "13"]
        );
    }
}
