//! What tracing adds to the processor time of whole programs (`bench/papers`).

use crate::Result;
use crate::arguments::{Arguments, from_environment, parse};
use crate::bench::{Bench, Library};
use crate::row::Unit::{Percent, Seconds};
use crate::table::Table;
use crate::task::Task;

const RANKS: u64 = 2;

struct Program {
    name: &'static str,
    /// Without computing and with it: so many that a run takes about a second.
    steps: [u32; 2],
}

const fn program(name: &'static str, bare: u32, computing: u32) -> Program {
    Program { name, steps: [bare, computing] }
}

const PROGRAMS: [Program; 8] = [
    program("lu", 6000, 8),
    program("cg", 900, 25),
    program("mg", 1000, 40),
    program("milc", 150, 2),
    program("sweep3d", 600, 2),
    program("flash_sedov", 60_000, 250),
    program("flash_cellular", 3000, 250),
    program("flash_stirturb", 25_000, 250),
];

/// What is computed between messages, and how the programs are told.
const COMPUTING: [(&str, &str); 2] = [("none", "0"), ("as the program", "1")];

/// The first is what the others are compared with.
const SETTINGS: [(&str, Option<&[&str]>); 3] =
    [("untraced", None), ("grammar", Some(&[])), ("loops", Some(&["--fold", "loops"]))];

const SAYS: [&str; 2] = [
    "Pilgrim figure 7 (wall time, up to 4096 ranks): at most 21 % for Sedov, 29 % for Cellular, 4 % for StirTurb.",
    "ScalaTrace figure 12 (LU, BT, IS): time of writing and merging traces alone, plotted without numbers.",
];

pub fn overhead(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let rounds = given.number(0, 7)?.max(1);
    let libraries: Vec<Library> = match given.rest(1) {
        [] => vec![Library::Mpich],
        names => names.iter().map(|name| Library::named(name)).collect::<Result<_>>()?,
    };
    let only = from_environment("OVERHEAD", "");
    let title = format!(
        "Processor seconds (user and system) on {RANKS} ranks, median, least and most of {rounds} rounds: of all \
         processes, and of the ranks after MPI_Init, with MPI_Finalize"
    );
    bench.table(Table::new("overhead", &title));
    for library in libraries {
        for program in
            PROGRAMS.iter().filter(|one| only.is_empty() || only.iter().any(|name| name == one.name))
        {
            let binary = bench.mpicc(library, &format!("bench/papers/{}.c", program.name), &["-lm"])?;
            for ((computing, work), steps) in COMPUTING.iter().zip(program.steps) {
                let command = library.sharing(RANKS).arg(&binary).arg(steps.to_string());
                let taken = measured(bench, &command, work, rounds)?;
                for ((setting, _), one) in SETTINGS.iter().zip(&taken) {
                    let keys: [(&str, &dyn std::fmt::Display); 4] = [
                        ("library", &library.name()),
                        ("program", &program.name),
                        ("computing", computing),
                        ("setting", setting),
                    ];
                    bench.row(&keys, &values(one, &taken[0]))?;
                }
            }
        }
    }
    SAYS.iter().for_each(|line| bench.note(line));
    Ok(())
}

/// Processor seconds of each round.
#[derive(Default)]
struct Taken {
    /// Of the launcher, the tracer's command and all ranks.
    whole: Vec<f64>,
    /// Of the ranks, after `MPI_Init`.
    after: Vec<f64>,
}

/// All settings in turn, round by round, so that what else the machine does meets all of them.
fn measured(bench: &Bench, command: &Task, work: &str, rounds: u64) -> Result<[Taken; SETTINGS.len()]> {
    let mut taken = SETTINGS.map(|_| Taken::default());
    for _ in 0..rounds {
        for ((_, options), taken) in SETTINGS.iter().zip(&mut taken) {
            let task = match options {
                Some(options) => bench.traced(options, command),
                None => command.clone(),
            };
            let ran = task.env("PAPERS_WORK", work).env("PAPERS_CPU", "1").run()?;
            taken.whole.push(ran.cpu);
            taken.after.push(after_init(&ran.err)?);
        }
    }
    Ok(taken)
}

/// The sum of what the ranks say.
fn after_init(said: &str) -> Result<f64> {
    let numbers = said.split("after MPI_Init ").skip(1);
    let numbers: Vec<f64> = numbers
        .map(|rest| parse(rest.split_whitespace().next().unwrap_or_default()))
        .collect::<Result<_>>()?;
    match numbers.len() as u64 {
        RANKS => Ok(numbers.iter().sum()),
        others => Err(format!("{others} ranks said what they took, not {RANKS}: {said}").into()),
    }
}

fn values(taken: &Taken, untraced: &Taken) -> Vec<(&'static str, crate::row::Value)> {
    let added = |now: f64, then: f64| Percent.of(100.0 * (now / then - 1.0));
    let [whole, after] = [&taken.whole, &taken.after].map(|rounds| spread(rounds));
    let [whole_untraced, after_untraced] = [&untraced.whole, &untraced.after].map(|rounds| spread(rounds));
    vec![
        ("all", Seconds.of(whole.median)),
        ("least", Seconds.of(whole.least)),
        ("most", Seconds.of(whole.most)),
        ("added", added(whole.median, whole_untraced.median)),
        ("after init", Seconds.of(after.median)),
        ("its least", Seconds.of(after.least)),
        ("its most", Seconds.of(after.most)),
        ("its added", added(after.median, after_untraced.median)),
    ]
}

#[derive(Debug, PartialEq)]
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

/// Of an even number the mean of the two in the middle.
fn spread(rounds: &[f64]) -> Spread {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
    let last = sorted.len().saturating_sub(1);
    Spread { least: at(0), median: (at(last / 2) + at(last.div_ceil(2))) / 2.0, most: at(last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Spread { least: 1.0, median: 2.0, most: 3.0 });
        assert_eq!(spread(&[4.0, 1.0]), Spread { least: 1.0, median: 2.5, most: 4.0 });
    }

    #[test]
    fn ranks_say_what_they_took_even_in_one_line() {
        assert_eq!(after_init("x\nafter MPI_Init 1.5\nafter MPI_Init 0.25\n").unwrap(), 1.75);
        assert_eq!(after_init("after MPI_Init 1.5 after MPI_Init 0.25").unwrap(), 1.75);
        assert!(after_init("after MPI_Init 1.5").is_err());
    }
}
