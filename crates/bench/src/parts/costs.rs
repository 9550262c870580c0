//! What single habits of the tracer cost a call: surviving a crash, following allocations, keeping stacks.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::{Bench, Library};
use crate::parts::calls::{Way, in_turns};
use crate::parts::instructions::builds;
use crate::readings::{Best, number_after, numbers};
use crate::row::Unit::{Bytes, Ns, Us};
use crate::table::Table;
use crate::task::Task;

pub fn safe(bench: &mut Bench, _: &Arguments) -> Result<()> {
    let title = "CPU time per call, nanoseconds: --safe on (the default) and off, best of 5 runs of 15 rounds, in turns";
    bench.table(Table::new("safe", title));
    let ways: [Way; 2] = [("off", Some(&["--safe", "off"])), ("on", Some(&["--safe", "on"]))];
    for library in Library::ALL {
        let program = bench.mpicc(library, "bench/calls.c", &[])?;
        let best = in_turns(bench, library, &program, &ways)?;
        for name in best[0].names() {
            let (off, on) = (best[0].of(name), best[1].of(name));
            let values = [("off", Ns.of(off)), ("on", Ns.of(on)), ("added", Ns.of(on - off))];
            bench.row(&[("library", &library.name()), ("function", &name)], &values)?;
        }
    }
    Ok(())
}

pub fn allocations(bench: &mut Bench, _: &Arguments) -> Result<()> {
    let title = "CPU time of allocations, nanoseconds: untraced, --pointers off, on (the default), best of 5 runs of 15 rounds";
    bench.table(Table::new("allocations", title));
    let ways: [Way; 3] =
        [("untraced", None), ("off", Some(&["--pointers", "off"])), ("on", Some(&["--pointers", "on"]))];
    for library in Library::ALL {
        let program = bench.mpicc(library, "bench/allocations.c", &["-fno-builtin"])?;
        let best = in_turns(bench, library, &program, &ways)?;
        for name in best[0].names() {
            let [untraced, off, on] = [0, 1, 2].map(|way: usize| best[way].of(name));
            bench.row(
                &[("library", &library.name()), ("what", &name)],
                &[
                    ("untraced", Ns.of(untraced)),
                    ("off", Ns.of(off)),
                    ("on", Ns.of(on)),
                    ("added", Ns.of(on - off)),
                ],
            )?;
        }
    }
    Ok(())
}

pub fn stacks(bench: &mut Bench, _: &Arguments) -> Result<()> {
    bench.table(Table::new(
        "stacks",
        "CPU time per MPI_Comm_rank, nanoseconds, 10 and 30 frames deep: best of 5 runs of 15 rounds on one rank, in turns",
    ));
    let ways: [Way; 4] = [
        ("untraced", None),
        ("off", Some(&["--stacks", "off"])),
        ("site", Some(&["--stacks", "site"])),
        ("full", Some(&["--stacks", "full"])),
    ];
    for library in Library::ALL {
        for (pointers, flag) in [("without", "-fomit-frame-pointer"), ("with", "-fno-omit-frame-pointer")] {
            let program = bench.mpicc(library, "bench/stacks.c", &[flag])?;
            let best = in_turns(bench, library, &program, &ways)?;
            for depth in best[0].names() {
                let [untraced, off, site, full] = [0, 1, 2, 3].map(|way: usize| best[way].of(depth));
                bench.row(
                    &[("library", &library.name()), ("frame pointers", &pointers), ("depth", &depth)],
                    &[
                        ("untraced", Ns.of(untraced)),
                        ("off", Ns.of(off)),
                        ("site", Ns.of(site)),
                        ("full", Ns.of(full)),
                        ("site adds", Ns.of(site - off)),
                        ("full adds", Ns.of(full - off)),
                    ],
                )?;
            }
        }
    }
    Ok(())
}

/// Depth, stacks, and whether they have frames in common.
const PATHS: [[&str; 3]; 3] = [["10", "500", "near"], ["30", "10000", "near"], ["30", "10000", "far"]];

/// Of several builds in turns, since the machine's load changes.
pub fn new_stacks(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let builds = builds(bench, given);
    let title = "A stack that was not seen before: CPU time per MPI_Comm_rank, microseconds, best of 5 runs, and tracer's \
                 memory, bytes a stack";
    bench.table(Table::new("new", title));
    for library in Library::ALL {
        let program = bench.mpicc(library, "bench/new_stacks.c", &["-fomit-frame-pointer"])?;
        for path in PATHS {
            let command = library.alone(1).arg(&program).args(path);
            let (untraced, best) = rounds(bench, &command, &builds)?;
            for ((name, refrain), best) in builds.iter().zip(&best) {
                let [with, without] = ["full", "off"].map(|stacks| memory(bench, refrain, stacks, &command));
                let stacks: f64 = path[1].parse()?;
                bench.row(
                    &[
                        ("library", &library.name()),
                        ("depth", &path[0]),
                        ("stacks", &path[1]),
                        ("paths", &path[2]),
                        ("build", name),
                    ],
                    &[
                        ("untraced", Us.of(untraced.of("new") / 1e3)),
                        ("new", Us.of(best.of("new") / 1e3)),
                        ("again", Us.of(best.of("again") / 1e3)),
                        ("a stack", Bytes.of(((with? - without?) * 1024.0 / stacks).round()).varies()),
                    ],
                )?;
            }
        }
    }
    bench.note("near: stacks differ in their innermost frames, as those of programs do; far: in all, and nothing is shared.");
    Ok(())
}

/// Nanoseconds of `new` and `again`: untraced, and of each build.
fn rounds(bench: &Bench, command: &Task, builds: &[(String, PathBuf)]) -> Result<(Best, Vec<Best>)> {
    let mut untraced = Best::default();
    let mut best: Vec<Best> = builds.iter().map(|_| Best::default()).collect();
    for _ in 0..5 {
        take(&mut untraced, &command.run()?.out);
        for ((_, refrain), best) in builds.iter().zip(&mut best) {
            take(best, &bench.traced_by(refrain, &["--stacks", "full"], command).run()?.out);
        }
    }
    Ok((untraced, best))
}

fn take(best: &mut Best, printed: &str) {
    ["new", "again"].iter().zip(numbers(printed)).for_each(|(name, number)| best.take(name, number));
}

/// KiB of the rank that had most, without the merge.
fn memory(bench: &Bench, refrain: &Path, stacks: &str, command: &Task) -> Result<f64> {
    bench.traced_by(refrain, &["--stacks", stacks], command).run()?;
    let told = Task::new(refrain).arg("info").arg(bench.trace()).run()?.out;
    let line = told.lines().find(|line| line.starts_with("tracer's memory")).unwrap_or_default();
    Ok(number_after(line, " to ").ok_or("info tells no memory")?)
}
