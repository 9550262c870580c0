//! What recording memory references costs in processor seconds, the best of some rounds.

use std::fs;
use std::path::PathBuf;

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::{Bench, size};
use crate::readings::number_before;
use crate::row::Unit::{Bytes, Count, MillionsASecond, Percent, Seconds, TimeRatio};
use crate::table::Table;
use crate::task::{Task, find, installed};
use crate::text;

const PROGRAMS: [&str; 4] = ["vecadd", "matmul", "spmv", "chase"];

pub fn references(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let rounds = given.number(0, 3)?;
    bench.need(&[("qemu-x86_64", "qemu-user")])?;
    in_qemu(bench, rounds)?;
    bench.note("");
    call_paths(bench, rounds)?;
    bench.note("");
    compiled(bench, rounds)
}

/// A task of four threads.
fn on_four(task: Task) -> Task {
    task.env("OMP_NUM_THREADS", "4")
}

fn source(program: &str) -> String {
    format!("bench/references/{program}.c")
}

/// Processor seconds of each task, the best of the rounds, and what each said last. What is compared runs side by side,
/// round by round.
fn in_turns(tasks: &[Task], rounds: u64) -> Result<Vec<(f64, String)>> {
    let mut best = vec![(f64::INFINITY, String::new()); tasks.len()];
    for _ in 0..rounds {
        for (task, best) in tasks.iter().zip(&mut best) {
            let ran = task.run()?;
            *best = (best.0.min(ran.cpu), ran.err);
        }
    }
    Ok(best)
}

/// References that `refrain memory run` says it recorded.
fn recorded(said: &str) -> Option<f64> {
    number_before(said, " references")
}

/// Each program by itself, in QEMU, in QEMU counting accesses, with a callback that does nothing, and recorded.
fn in_qemu(bench: &mut Bench, rounds: u64) -> Result<()> {
    let plugin = bench.cc("bench/references/plugin.c", "plugin.so", &["-shared", "-fPIC"])?;
    bench.table(Table::new(
        "qemu",
        "Processor seconds by itself, in QEMU, counting, with an empty callback, recorded",
    ));
    for name in PROGRAMS.into_iter().chain(["gzip"]) {
        let command = on_four(command(bench, name)?);
        let plugged = |how: &str| {
            Task::of(&["qemu-x86_64", "-plugin"])
                .arg(format!("{},how={how}", plugin.display()))
                .then(&command)
        };
        let tasks = [
            command.clone(),
            Task::new("qemu-x86_64").then(&command),
            plugged("count"),
            plugged("empty"),
            bench.command(&["memory", "run", "--force", "--out"]).arg(bench.trace()).arg("--").then(&command),
        ];
        let best = in_turns(&tasks, rounds)?;
        let [native, qemu, count, empty, seconds] = std::array::from_fn(|at| best[at].0);
        let references = recorded(&best[4].1);
        let bytes = size(&bench.trace())?;
        bench.row(
            &[("program", &name)],
            &[
                ("native", Seconds.of(native)),
                ("qemu", Seconds.of(qemu)),
                ("count", Seconds.of(count)),
                ("empty", Seconds.of(empty)),
                ("recorded", Seconds.of(seconds)),
                ("slowdown", TimeRatio.of(seconds / native)),
                ("x count", TimeRatio.of(seconds / count)),
                // Threads that wait for each other make as many as they have time for.
                ("references", Count.of(references).varies()),
                ("speed", MillionsASecond.of(references.map(|references| references / seconds / 1e6))),
                ("bytes", Bytes.of(bytes).varies()),
            ],
        )?;
    }
    Ok(())
}

/// Long enough that the start and the end of the recording are a small part.
fn command(bench: &Bench, name: &str) -> Result<Task> {
    if name == "gzip" {
        return gzip(bench);
    }
    let program = Task::new(bench.cc(&source(name), name, &["-fopenmp"])?);
    Ok(match name {
        "vecadd" => program.args(["1000000", "20"]),
        "matmul" => program.arg("256"),
        _ => program,
    })
}

/// On text that it has to work on.
fn gzip(bench: &Bench) -> Result<Task> {
    fs::write(bench.work("text"), text::generated(3_000_000))?;
    fs::copy(find("gzip").ok_or("gzip is missing")?, bench.work("gzip"))?;
    Ok(Task::new(bench.work("gzip")).arg("-c").arg(bench.work("text")))
}

/// Call paths kept by function, or found anew at each reference.
fn call_paths(bench: &mut Bench, rounds: u64) -> Result<()> {
    bench.table(Table::new(
        "paths",
        "Call paths kept by function, or found anew at each reference (frame pointers, one thread): processor seconds",
    ));
    bench.cc("bench/references/walks.c", "walks.o", &["-fno-omit-frame-pointer", "-c"])?;
    for name in ["matmul", "spmv", "calls"] {
        let flags = ["-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-fsanitize=thread", "-c"];
        let object = bench.cc(&source(name), "walk.o", &flags)?;
        let walk: PathBuf = bench.work("walk");
        Task::new("cc").arg(object).arg(bench.work("walks.o")).arg("-o").arg(&walk).run()?;
        let command = if name == "matmul" { Task::new(&walk).arg("400") } else { Task::new(&walk) };
        let tasks = ["none", "function", "reference"].map(|how| command.clone().env("WALKS", how));
        let best = in_turns(&tasks, rounds)?;
        let [none, function, reference] = std::array::from_fn(|at| best[at].0);
        bench.row(
            &[("program", &name)],
            &[
                ("references", Count.of(recorded(&best[2].1))),
                ("no paths", Seconds.of(none)),
                ("function", Seconds.of(function)),
                ("reference", Seconds.of(reference)),
                ("saved", Percent.of(100.0 * (1.0 - function / reference))),
            ],
        )?;
    }
    Ok(())
}

/// The same programs made by `refrain memory cc`: by themselves, and recorded, in the same rounds as native runs.
fn compiled(bench: &mut Bench, rounds: u64) -> Result<()> {
    bench.table(Table::new(
        "compiled",
        "Programs made by `refrain memory cc`: processor seconds of the plain one, by itself, recorded",
    ));
    for compiler in ["gcc", "clang"].into_iter().filter(|compiler| installed(compiler)) {
        let openmp = if has_openmp(bench, compiler)? { vec!["-fopenmp"] } else { Vec::new() };
        for name in PROGRAMS {
            let made = bench.work(&format!("{name}.made"));
            let native = bench.compile(compiler, &source(name), &format!("{name}.native"), &openmp)?;
            let cc = bench.command(&["memory", "cc", compiler, "-O2", "-w"]).args(&openmp);
            cc.arg(bench.file(&source(name))).arg("-o").arg(&made).run()?;
            let record =
                bench.command(&["memory", "run", "--force", "--out"]).arg(bench.trace()).arg("--").arg(&made);
            let best = in_turns(&[Task::new(native), Task::new(&made), record].map(on_four), rounds)?;
            let [native, alone, seconds] = std::array::from_fn(|at| best[at].0);
            let references = recorded(&best[2].1);
            let bytes = size(&bench.trace())?;
            bench.row(
                &[("program", &name), ("compiler", &compiler)],
                &[
                    ("native", Seconds.of(native)),
                    ("alone", Seconds.of(alone)),
                    ("recorded", Seconds.of(seconds)),
                    ("slowdown", TimeRatio.of(seconds / native.max(0.001))),
                    ("x alone", TimeRatio.of(seconds / alone.max(0.001))),
                    ("references", Count.of(references)),
                    ("speed", MillionsASecond.of(references.map(|references| references / seconds / 1e6))),
                    ("bytes", Bytes.of(bytes).varies()),
                ],
            )?;
        }
    }
    Ok(())
}

/// clang's OpenMP is a package of its own.
fn has_openmp(bench: &Bench, compiler: &str) -> Result<bool> {
    let source = bench.work("omp.c");
    fs::write(&source, "int main(void){return 0;}")?;
    let task = Task::of(&[compiler, "-fopenmp"]).arg(source).arg("-o").arg(bench.work("omp"));
    Ok(task.attempt()?.code == Some(0))
}
