//! The programs of the papers (`bench/papers`): what the papers say of them, and what we measure. Sizes are of patterns on
//! simulated ranks; time steps and overhead of the programs themselves.

mod programs;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::arguments::{Arguments, from_environment};
use crate::bench::{Bench, Library};
use crate::parts::patterns::simulation_limit;
use crate::parts::simulated::simulator;
use crate::row::Unit::{Bytes, Count, Ratio};
use crate::table::Table;
use crate::task::Task;

use programs::{PAPERS, PROGRAMS, Program, TIME_STEPS};

pub fn papers(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let all_ranks = given.numbers(0, &[64, 256, 1024, 4096, 16_384])?;
    let only = from_environment("PAPERS", "");
    if let Some(unknown) = only.iter().find(|name| PROGRAMS.iter().all(|program| program.pattern != **name)) {
        return Err(format!("no program of the papers is called {unknown}").into());
    }
    let chosen = |one: &&Program| only.is_empty() || only.iter().any(|name| name == one.pattern);
    let programs: Vec<&Program> = PROGRAMS.iter().filter(chosen).collect();
    let mut simulations = Simulations { scale: simulator(bench)?, done: HashMap::new() };
    for paper in PAPERS {
        figures(bench, &mut simulations, paper, &programs)?;
    }
    growth_in_ranks(bench, &mut simulations, &programs, &all_ranks)?;
    growth_in_steps(bench, &mut simulations, &programs, all_ranks.first().copied().unwrap_or(64))?;
    for program in &programs {
        bench.note(&format!("{:<15} {}", program.pattern, program.says));
    }
    if only.is_empty() {
        time_steps(bench)?;
    }
    Ok(())
}

/// The numbers that a paper states, beside ours.
fn figures(
    bench: &mut Bench,
    simulations: &mut Simulations,
    paper: &str,
    programs: &[&Program],
) -> Result<()> {
    let title = format!("What {paper} states in numbers (theirs), and ours on as many simulated ranks");
    bench.table(Table::new("stated", &title).with("paper", paper));
    for program in programs {
        for figure in program.figures.iter().filter(|figure| figure.paper == paper) {
            let [grammar, loops] = simulations.both(program, figure.ranks, program.steps)?;
            let (bytes, kinds) = (grammar.map(|done| done.bytes), grammar.map(|done| done.kinds));
            let theirs = figure.bytes.map(f64::from);
            bench.row(
                &[("place", &figure.place), ("program", &program.pattern), ("ranks", &figure.ranks)],
                &[
                    ("calls", Count.of(grammar.map(|done| done.calls))),
                    ("theirs", Bytes.of(theirs)),
                    ("grammar", Bytes.of(bytes)),
                    ("loops", Bytes.of(loops.map(|done| done.bytes))),
                    ("times smaller", Ratio.of(ratio(theirs, bytes))),
                    ("their kinds", Count.of(figure.kinds.map(f64::from))),
                    ("kinds", Count.of(kinds)),
                ],
            )?;
        }
    }
    Ok(())
}

fn growth_in_ranks(
    bench: &mut Bench,
    simulations: &mut Simulations,
    programs: &[&Program],
    all_ranks: &[u64],
) -> Result<()> {
    bench.table(Table::new(
        "papers",
        "Programs of the papers on simulated ranks, without time: bytes of both folds, and how much each has grown since the \
         first number of ranks",
    ));
    for program in programs {
        let mut first: Option<[Option<f64>; 2]> = None;
        for ranks in all_ranks.iter().copied().filter(|ranks| *ranks <= program.most) {
            let both = simulations.both(program, ranks, program.steps)?;
            let bytes = both.map(|done| done.map(|done| done.bytes));
            let [grammar_first, loops_first] = *first.get_or_insert(bytes);
            let done = both[0].or(both[1]);
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
    Ok(())
}

/// S figure 9 (g), P figure 6 (d to f), T figure 7 (i).
fn growth_in_steps(
    bench: &mut Bench,
    simulations: &mut Simulations,
    programs: &[&Program],
    ranks: u64,
) -> Result<()> {
    let title = format!("The same on {ranks} ranks with more steps");
    bench.table(Table::new("steps", &title).across(&["steps"]).with("ranks", ranks));
    for program in programs {
        for times in [1, 10, 100] {
            let [grammar, loops] = simulations.both(program, ranks, program.steps * times)?;
            bench.row(
                &[("program", &program.pattern), ("steps", &format!("x {times}"))],
                &[
                    ("grammar", Bytes.of(grammar.map(|done| done.bytes))),
                    ("loops", Bytes.of(loops.map(|done| done.bytes))),
                ],
            )?;
        }
    }
    Ok(())
}

/// Table 1 of ScalaTrace.
fn time_steps(bench: &mut Bench) -> Result<()> {
    let (library, ranks) = (Library::Mpich, 4);
    let title = format!(
        "Time steps of the programs (Table 1 of ScalaTrace), and what `refrain loops` finds in traces of {ranks} ranks"
    );
    bench.table(Table::new("time steps", &title));
    let preload = bench.yielding()?;
    for (source, steps, theirs) in TIME_STEPS {
        let compiler = if source.ends_with(".c") { "mpicc" } else { "mpifort" };
        let compiler = format!("{compiler}.{}", library.name());
        let program =
            bench.compile(&compiler, &format!("bench/papers/{source}"), "program", &["-g", "-lm"])?;
        let command = library.sharing(ranks).arg(&program).arg(steps.to_string());
        bench.traced(&["--fold", "loops"], &command).env("LD_PRELOAD", &preload).run()?;
        let told = bench.command(&["loops", "--json"]).arg(bench.trace()).run()?.out;
        bench.row(
            &[("program", &source), ("theirs", &theirs)],
            &[("steps", Count.of(steps)), ("found", Count.of(found(&serde_json::from_str(&told)?)))],
        )?;
    }
    Ok(())
}

/// How many steps all ranks made, if all made as many.
fn found(loops: &serde_json::Value) -> Option<f64> {
    let kinds = loops["kinds"].as_array()?.iter();
    let mut steps =
        kinds.flat_map(|kind| kind["steps"]["loops"].as_array()).flatten().map(|one| one["steps"].as_f64());
    let first = steps.next()??;
    steps.all(|other| other == Some(first)).then_some(first)
}

fn ratio(now: Option<f64>, then: Option<f64>) -> Option<f64> {
    Some(now? / then?)
}

/// What one simulation gave.
#[derive(Clone, Copy)]
struct Simulated {
    calls: f64,
    kinds: f64,
    bytes: f64,
}

/// Each is made once.
struct Simulations {
    scale: PathBuf,
    done: HashMap<(&'static str, u64, u32), [Option<Simulated>; 2]>,
}

impl Simulations {
    /// Of the grammar and of loops.
    fn both(&mut self, program: &Program, ranks: u64, steps: u32) -> Result<[Option<Simulated>; 2]> {
        let key = (program.pattern, ranks, steps);
        if let Some(done) = self.done.get(&key) {
            return Ok(*done);
        }
        let both = [
            simulated(&self.scale, "grammar", program.pattern, ranks, steps)?,
            simulated(&self.scale, "loops", program.pattern, ranks, steps)?,
        ];
        self.done.insert(key, both);
        Ok(both)
    }
}

/// None where it took too long.
fn simulated(scale: &Path, fold: &str, pattern: &str, ranks: u64, steps: u32) -> Result<Option<Simulated>> {
    let task = Task::new(scale)
        .args(["--threads", "2", "--fold", fold, pattern])
        .args([ranks.to_string(), steps.to_string()])
        .limit(simulation_limit());
    let Some(ran) = task.in_time()? else { return Ok(None) };
    let line = ran.out.lines().nth(1).unwrap_or_default();
    let at = |column: usize| line.split_whitespace().nth(column)?.parse().ok();
    let done = || Some(Simulated { calls: at(3)?, bytes: at(4)?, kinds: at(8)? });
    done().map(Some).ok_or_else(|| format!("{task}: no row: {}", ran.out).into())
}
