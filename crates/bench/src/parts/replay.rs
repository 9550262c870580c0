//! Replays: how far off their wall time is, and how fast they go.

use std::time::Duration;

use crate::Result;
use crate::arguments::{Arguments, from_environment, parse};
use crate::bench::{Bench, Library, size};
use crate::readings::{number_before, size_after};
use crate::row::Unit::{Count, MiB, Ms, Percent, Seconds, TimedBytes};
use crate::table::Table;
use crate::task::Task;

const PROGRAMS: [&str; 8] =
    ["serial_phase", "pingpong", "waits", "stencil2d", "turns", "drawn", "overlap", "blocks"];
/// Programs whose messages vary. Lossy traces have them drawn.
const VARYING: [&str; 5] = ["sizes", "partners", "wave", "pool", "neighbours"];
const LOSSY: [&str; 2] = ["--lossy", "histograms=1:16"];

/// Recorded and replayed in turns, so that both see the same machine.
pub fn replay(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let (library, rounds) = (Library::named(given.word(0, "openmpi"))?, given.number(1, 5)?);
    let pause = Duration::from_secs_f64(parse(&from_environment("BENCH_PAUSE", "0").join(" "))?);
    let title = format!(
        "Wall time from MPI_Init to MPI_Finalize, milliseconds, mean of {rounds}; error of each replay against its own recording"
    );
    for name in ["serial_phase", "pingpong", "waits", "stencil2d"] {
        bench.program(library, name)?;
    }
    bench.mpicc(library, "bench/computing.c", &["-lm"])?;
    bench.mpicc(library, "bench/drawing.c", &["-lm"])?;
    bench.table(Table::new("replay", &title).with("rounds", rounds));
    let mut means = Vec::new();
    for time in from_environment("BENCH_TIMES", "exact histogram mean lossy lossy-mean") {
        let (keeping, lossy) = keeping(&time);
        let names: Vec<&str> = PROGRAMS.iter().chain(VARYING.iter().filter(|_| lossy)).copied().collect();
        let mut errors = Vec::new();
        for name in &names {
            let command = library.alone(2).then(&program(bench, name));
            let mut all = Vec::new();
            for round in 1..=rounds {
                all.push(once(bench, library, &keeping, &command, round, pause)?);
            }
            errors.push(row(bench, library, name, &time, &all)?);
        }
        means.push((time, mean(&errors), names.len()));
    }
    bench.table(Table::new("errors", "Mean error of all programs").with("rounds", rounds));
    for (time, error, programs) in means {
        bench.row(
            &[("library", &library.name()), ("time", &time)],
            &[("programs", Count.of(programs as u64)), ("mean |error|", Percent.of(error))],
        )?;
    }
    Ok(())
}

/// Options of `refrain run`, and whether messages that vary are drawn.
fn keeping(time: &str) -> (Vec<&str>, bool) {
    match time {
        "lossy" => ([&["--time", "histogram"], &LOSSY[..]].concat(), true),
        "lossy-mean" => ([&["--time", "mean"], &LOSSY[..]].concat(), true),
        time => (vec!["--time", time], false),
    }
}

/// The program of a name, with its arguments.
fn program(bench: &Bench, name: &str) -> Task {
    let (file, arguments): (&str, &[&str]) = match name {
        "serial_phase" => (name, &["60"]),
        "pingpong" => (name, &["300"]),
        "waits" => (name, &["sender"]),
        "stencil2d" => (name, &["500", "500"]),
        "blocks" => ("computing", &["blocks", "8"]),
        varying if VARYING.contains(&varying) => ("drawing", &[varying, "60"][..]),
        computing => return Task::new(bench.work("computing")).arg(computing).arg("45"),
    };
    Task::new(bench.work(file)).args(arguments)
}

/// Milliseconds recorded, and how long the replay took in percent of them.
fn once(
    bench: &Bench,
    library: Library,
    keeping: &[&str],
    command: &Task,
    seed: u64,
    pause: Duration,
) -> Result<(f64, f64)> {
    std::thread::sleep(pause);
    bench.traced(keeping, command).run()?;
    std::thread::sleep(pause);
    let replay = bench.command(&["replay"]).arg(bench.trace()).args(["--seed", &seed.to_string(), "--"]);
    let said = replay.then(&library.alone(2)).run()?.out;
    let recorded = bench.info(&bench.trace())?["wall_ns"].as_f64().ok_or("info tells no wall time")?;
    Ok((
        recorded / 1e6,
        number_before(&said, " % of it").ok_or_else(|| format!("a replay that tells no time: {said}"))?,
    ))
}

/// The mean error of the rounds.
fn row(bench: &mut Bench, library: Library, name: &str, time: &str, all: &[(f64, f64)]) -> Result<f64> {
    let errors: Vec<f64> = all.iter().map(|(_, percent)| (percent - 100.0).abs()).collect();
    let recorded: Vec<f64> = all.iter().map(|(recorded, _)| *recorded).collect();
    let replayed: Vec<f64> = all.iter().map(|(recorded, percent)| recorded * percent / 100.0).collect();
    bench.row(
        &[("library", &library.name()), ("program", &name), ("time", &time)],
        &[
            ("recorded", Ms.of(mean(&recorded))),
            ("replayed", Ms.of(mean(&replayed))),
            ("mean |error|", Percent.of(mean(&errors))),
            ("worst", Percent.of(errors.iter().copied().fold(0.0, f64::max))),
        ],
    )?;
    Ok(mean(&errors))
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

pub fn replay_speed(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let (library, calls) = (Library::named(given.word(0, "openmpi"))?, given.number(1, 10_000_000)?);
    let program = Task::new(bench.mpicc(library, "bench/allreduces.c", &[])?).arg(calls.to_string());
    bench.table(
        Table::new("speed", &format!("{calls} calls of MPI_Allreduce on two ranks")).with("calls", calls),
    );
    let tasks = [
        ("program", library.sharing(2).then(&program)),
        ("program, traced", bench.traced(&[], &library.alone(2).then(&program))),
        (
            "replay",
            bench
                .command(&["replay"])
                .arg(bench.trace())
                .args(["--speed", "0", "--"])
                .then(&library.alone(2)),
        ),
    ];
    for (what, task) in tasks {
        let said = task.limit(3600).run()?.out;
        let trace = if what == "program, traced" { Some(size(&bench.trace())?) } else { None };
        let rate = number_before(&said, " calls a second");
        let memory = size_after(&said, "memory of a rank: ");
        bench.row(
            &[("library", &library.name()), ("what", &what)],
            &[
                ("seconds", Seconds.of(rate.map(|rate| calls as f64 / rate))),
                ("calls a second", Count.of(rate).varies()),
                ("memory of a rank", MiB.of(memory.map(|bytes| bytes / f64::from(1 << 20)))),
                ("trace", TimedBytes.of(trace)),
            ],
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lossy_times_draw_messages() {
        assert_eq!(keeping("exact"), (vec!["--time", "exact"], false));
        assert_eq!(keeping("lossy-mean"), (vec!["--time", "mean", "--lossy", "histograms=1:16"], true));
        assert_eq!(mean(&[1.0, 3.0]), 2.0);
    }
}
