//! Programs whose numbers vary, and programs that make new objects in every step.

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::{Bench, size, xz};
use crate::parts::patterns::Mpich;
use crate::readings::{number_after, numbers};
use crate::row::Unit::{Bytes, BytesEach, Count, Ratio, TimedBytes};
use crate::table::Table;
use crate::task::Task;

/// With steps: long enough that the numbers outweigh the structure.
const PROGRAMS: [(&str, &str); 4] =
    [("random_sizes", "200"), ("random_partners", "100"), ("amr", "200"), ("alltoallv", "100")];

pub fn irregular(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let most = given.number(0, 16)?;
    let mpich = Mpich::prepare(bench)?;
    let entropy = bench.example("refrain-scale", "entropy")?;
    bench.table(Table::new(
        "irregular",
        "Programs whose numbers vary (MPICH). Bytes per call; polls that found nothing are calls, but not among those divided by.\n\
         entropy: of order 0, of each parameter over all ranks; distinct: parameters that say the same counted once; \
         once: without what follows from other numbers of the call or from the other side.",
    ));
    for (program, steps) in PROGRAMS {
        for ranks in [4, 8, 16].into_iter().filter(|ranks| *ranks <= most) {
            let bytes = mpich.bytes(bench, ranks, program, &[steps])? as f64;
            let text = bench.work("t.txt");
            bench.command(&["dump"]).arg(bench.trace()).output(&text).run()?;
            // The steps of a program that polls differ from run to run, so one run has to do for all columns.
            let said = Task::new(&entropy).arg(bench.trace()).run()?.out;
            let [calls, polls, entropy, distinct, once] = numbers(&said)[..] else { return Err(said.into()) };
            let (each, text_bytes, packed) = (calls - polls, size(&text)? as f64, xz(bench, &text)? as f64);
            bench.row(
                &[("program", &program), ("ranks", &ranks)],
                &[
                    ("calls", Count.of(calls).varies()),
                    ("polls", Count.of(polls).varies()),
                    ("bytes", TimedBytes.of(bytes)),
                    ("per-call", BytesEach.of(bytes / each).varies()),
                    ("entropy", BytesEach.of(entropy / each).varies()),
                    ("distinct", BytesEach.of(distinct / each).varies()),
                    ("once", BytesEach.of(once / each).varies()),
                    ("ratio", Ratio.of(bytes / distinct).varies()),
                    ("text", Bytes.of(text_bytes).varies()),
                    ("text/call", BytesEach.of(text_bytes / each).varies()),
                    ("xz/call", BytesEach.of(packed / each).varies()),
                ],
            )?;
        }
    }
    bench.note("ratio: bytes of the trace / distinct");
    bench.note("");
    bench.table(Table::new(
        "counts",
        "An integer sort's exchange, 10 steps: bytes against the counts that are its information",
    ));
    for ranks in [4, 16, 64].into_iter().filter(|ranks| *ranks <= 4 * most) {
        let bytes = mpich.bytes(bench, ranks, "alltoallv", &["10"])? as f64;
        let said = Task::new(&entropy).arg("--parameters").arg(bench.trace()).run()?.out;
        let line =
            said.lines().find(|line| line.starts_with("MPI_Alltoallv.sendcounts[] ")).unwrap_or_default();
        let [counts, information, ..] = numbers(line)[..] else { return Err(said.into()) };
        bench.row(
            &[("ranks", &ranks)],
            &[
                ("counts", Count.of(counts)),
                ("bytes", TimedBytes.of(bytes)),
                ("bytes/count", BytesEach.of(bytes / counts).varies()),
                ("entropy/count", BytesEach.of(information / counts)),
            ],
        )?;
    }
    Ok(())
}

pub fn objects(bench: &mut Bench, _: &Arguments) -> Result<()> {
    let mpich = Mpich::prepare(bench)?;
    bench.table(Table::new(
        "objects",
        "A new communicator and a new type in every step, 4 ranks (MPICH): bytes\n\
         turn: which are replaced and used goes round; drawn: it is random, three draws of 4, 4 and 5 a step",
    ));
    for steps in [10, 100, 1000, 10_000] {
        let mut values = Vec::new();
        for (how, symbols) in [("turn", "turn symbols"), ("drawn", "drawn symbols")] {
            let bytes = mpich.bytes(bench, 4, "new_objects", &[&steps.to_string(), how])?;
            values.push((how, TimedBytes.of(bytes)));
            values.push((symbols, Count.of(number_after(&bench.info_text(&bench.trace())?, "folded into"))));
        }
        let draws = f64::from(steps) * (4.0f64 * 4.0 * 5.0).log2() / 8.0;
        values.push(("draws alone", Bytes.of(draws)));
        bench.row(&[("steps", &steps)], &values)?;
    }
    Ok(())
}
