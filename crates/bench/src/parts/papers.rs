//! The programs of the papers (`bench/papers`), as patterns on simulated ranks.

use std::path::Path;

use crate::Result;
use crate::arguments::{Arguments, from_environment};
use crate::bench::Bench;
use crate::parts::patterns::simulation_limit;
use crate::parts::simulated::simulator;
use crate::row::Unit::{Bytes, Count, Ratio};
use crate::table::Table;
use crate::task::Task;

struct Program {
    pattern: &'static str,
    /// Few: most programs take no more for a hundred of them.
    steps: u32,
    /// On more ranks it takes too long.
    most: u64,
    /// P is Pilgrim, S ScalaTrace, T ScalaTrace II. Plots have no numbers.
    says: &'static str,
}

const fn program(pattern: &'static str, steps: u32, most: u64, says: &'static str) -> Program {
    Program { pattern, steps, most, says }
}

const PROGRAMS: [Program; 32] = [
    program(
        "npb-bt",
        2,
        16_384,
        "P figure 5: grows below linear; S figure 10: below linear; T figure 7: constant only if lossy",
    ),
    program("npb-sp", 2, 4096, "P figure 5: grows below linear; T figure 7: near constant only if lossy"),
    program(
        "npb-lu",
        2,
        16_384,
        "P figure 5: constant from 16 ranks; S figure 10: near constant; T figure 7",
    ),
    program(
        "npb-cg",
        1,
        16_384,
        "P figure 5: grows below linear; S figure 10: below linear; T figure 7: constant only if lossy",
    ),
    program("npb-mg", 2, 16_384, "S figure 10: below linear; T figure 7"),
    program("npb-ft", 2, 16_384, "S figure 10: near constant"),
    program("npb-is", 2, 1024, "S figure 10: does not scale"),
    program("npb-ep", 1, 16_384, "S figure 10: near constant"),
    program("milc", 1, 16_384, "P figure 9: 627 KB at 16384 ranks, 27 kinds"),
    program("milc-strong", 1, 16_384, "P figure 9: about 1 MB at 16384 ranks, 27, 54 and 108 kinds"),
    program("flash-sedov", 4, 16_384, "P figure 6: constant from 128 ranks, 74 kinds at most"),
    program("flash-cellular", 4, 4096, "P figure 6: 2.5 MB at 4096 ranks, 498 kinds at most"),
    program("flash-stirturb", 4, 16_384, "P figure 6: 4 KB at 4096 ranks, 2 kinds"),
    program("sweep3d", 1, 16_384, "T figure 7"),
    program("pop", 3, 16_384, "T figure 7: near constant only with all optimisations"),
    program("raptor", 1, 1024, "S figure 10: below linear"),
    program("umt2k", 1, 1024, "S figure 10: does not scale"),
    program("stencil9", 2, 16_384, "S figure 9: 10 KB"),
    program("stencil27", 2, 16_384, "S figure 9: 14 KB"),
    program("recursive3d", 2, 16_384, "S figure 9 (h): folding the recursion saves orders of magnitude"),
    program("osu-latency", 2, 16_384, "P section 4.1: a few KB"),
    program("osu-bw", 1, 16_384, "P section 4.1: a few KB"),
    program("osu-bibw", 1, 16_384, "P section 4.1: a few KB"),
    program("osu-allreduce", 2, 16_384, "P section 4.1: a few KB"),
    program("osu-bcast", 2, 16_384, "P section 4.1: a few KB"),
    program("osu-reduce", 2, 16_384, "P section 4.1: a few KB"),
    program("osu-alltoall", 2, 16_384, "P section 4.1: a few KB"),
    program("osu-allgather", 2, 16_384, "P section 4.1: a few KB"),
    program("osu-barrier", 2, 16_384, "P section 4.1: a few KB"),
    program("osu-put", 2, 16_384, "P section 4.1: a few KB"),
    program("osu-get", 2, 16_384, "P section 4.1: a few KB"),
    program("osu-acc", 2, 16_384, "P section 4.1: a few KB"),
];

/// What one simulation gave.
struct Simulated {
    calls: f64,
    kinds: f64,
    bytes: f64,
}

pub fn papers(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let all_ranks = given.numbers(0, &[64, 256, 1024, 4096, 16_384])?;
    let only = from_environment("PAPERS", "");
    if let Some(unknown) = only.iter().find(|name| PROGRAMS.iter().all(|program| program.pattern != **name)) {
        return Err(format!("no program of the papers is called {unknown}").into());
    }
    let scale = simulator(bench)?;
    bench.table(Table::new(
        "papers",
        "Programs of the papers on simulated ranks, without time: bytes of both folds, and how much each has grown since the \
         first number of ranks",
    ));
    for program in
        PROGRAMS.iter().filter(|one| only.is_empty() || only.iter().any(|name| name == one.pattern))
    {
        let mut first: Option<[Option<f64>; 2]> = None;
        for ranks in all_ranks.iter().copied().filter(|ranks| *ranks <= program.most) {
            let grammar = simulated(&scale, "grammar", program, ranks)?;
            let loops = simulated(&scale, "loops", program, ranks)?;
            let bytes = [&grammar, &loops].map(|done| done.as_ref().map(|done| done.bytes));
            let [grammar_first, loops_first] = *first.get_or_insert(bytes);
            let done = grammar.as_ref().or(loops.as_ref());
            bench.row(
                &[("program", &program.pattern), ("ranks", &ranks)],
                &[
                    ("calls", Count.of(done.map(|done| done.calls))),
                    ("kinds", Count.of(done.map(|done| done.kinds))),
                    ("grammar", Bytes.of(bytes[0])),
                    ("grown", Ratio.of(ratio(bytes[0], grammar_first))),
                    ("loops", Bytes.of(bytes[1])),
                    ("loops grown", Ratio.of(ratio(bytes[1], loops_first))),
                    ("loops / grammar", Ratio.of(ratio(bytes[1], bytes[0]))),
                ],
            )?;
        }
    }
    for program in
        PROGRAMS.iter().filter(|one| only.is_empty() || only.iter().any(|name| name == one.pattern))
    {
        bench.note(&format!("{:<15} {}", program.pattern, program.says));
    }
    Ok(())
}

fn ratio(now: Option<f64>, then: Option<f64>) -> Option<f64> {
    Some(now? / then?)
}

/// None where it took too long.
fn simulated(scale: &Path, fold: &str, program: &Program, ranks: u64) -> Result<Option<Simulated>> {
    let task = Task::new(scale)
        .args(["--threads", "2", "--fold", fold, program.pattern])
        .args([ranks.to_string(), program.steps.to_string()])
        .limit(simulation_limit());
    let Some(ran) = task.in_time()? else { return Ok(None) };
    let line = ran.out.lines().nth(1).unwrap_or_default();
    let at = |column: usize| line.split_whitespace().nth(column)?.parse().ok();
    let done = || Some(Simulated { calls: at(3)?, bytes: at(4)?, kinds: at(8)? });
    done().map(Some).ok_or_else(|| format!("{task}: no row: {}", ran.out).into())
}
