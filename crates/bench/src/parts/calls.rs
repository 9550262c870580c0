//! Processor time per call.

use std::path::Path;

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::{Bench, Library};
use crate::readings::{Best, numbers};
use crate::row::Unit::Ns;
use crate::table::Table;
use crate::task::Task;

const RUNS: usize = 5;

/// A way to run a program: a name, and options of `refrain run`, or none of it.
pub type Way<'a> = (&'a str, Option<&'a [&'a str]>);

/// Nanoseconds of each function that a program measures, the best of several runs in turns: one `Best` for each way.
pub fn in_turns(bench: &Bench, library: Library, program: &Path, ways: &[Way]) -> Result<Vec<Best>> {
    let command = library.alone(1).arg(program);
    let mut best: Vec<Best> = ways.iter().map(|_| Best::default()).collect();
    for _ in 0..RUNS {
        for ((_, options), best) in ways.iter().zip(&mut best) {
            let task = options.map_or_else(|| command.clone(), |options| bench.traced(options, &command));
            best.take_lines(&task.run()?.out)?;
        }
    }
    Ok(best)
}

pub fn calls(bench: &mut Bench, _: &Arguments) -> Result<()> {
    let [encoding, recalling, folding] = without_mpi(bench)?;
    bench.table(Table::new(
        "calls",
        "CPU time per call, nanoseconds, best of 5 runs of 15 rounds on one rank",
    ));
    for library in Library::ALL {
        let program = bench.mpicc(library, "bench/calls.c", &[])?;
        let ways: [Way; 4] = [
            ("untraced", None),
            ("traced", Some(&[])),
            ("untimed", Some(&["--time", "off"])),
            ("unpointed", Some(&["--pointers", "off"])),
        ];
        let best = in_turns(bench, library, &program, &ways)?;
        bench.verify(&bench.trace())?;
        for name in best[0].names() {
            let [untraced, traced, untimed, unpointed] = [0, 1, 2, 3].map(|way: usize| best[way].of(name));
            let (added, clock) = (traced - untraced, traced - untimed);
            bench.row(
                &[("library", &library.name()), ("function", &name)],
                &[
                    ("untraced", Ns.of(untraced)),
                    ("traced", Ns.of(traced)),
                    ("added", Ns.of(added)),
                    ("clock", Ns.of(clock)),
                    ("encoding", Ns.of(recalling.of(name))),
                    ("folding", Ns.of(folding.of(name))),
                    ("rest", Ns.of(added - clock - recalling.of(name) - folding.of(name))),
                    ("no pointers", Ns.of(unpointed - untraced)),
                    ("first time", Ns.of(encoding.of(name))),
                ],
            )?;
        }
    }
    bench.note(
        "added: traced - untraced. Of it, clock: what --time off saves; encoding, folding: the same calls without MPI,\n\
         in a loop of their own; rest: wrapper, guard, finding the recorder. no pointers: added with --pointers off.\n\
         encoding is of calls that were seen before; first time: of one that was not. Isend+Irecv+Waitall: all three.",
    );
    Ok(())
}

/// The same calls in a loop without MPI: encoding them for the first time, again, and folding them.
fn without_mpi(bench: &Bench) -> Result<[Best; 3]> {
    let cost = bench.example("refrain-encode", "cost")?;
    let mut best = [Best::default(), Best::default(), Best::default()];
    for _ in 0..3 {
        for line in Task::new(&cost).run()?.out.lines().skip(1) {
            let name = line.split_whitespace().next().unwrap_or_default();
            best.iter_mut().zip(numbers(line)).for_each(|(best, number)| best.take(name, number));
        }
    }
    Ok(best)
}
