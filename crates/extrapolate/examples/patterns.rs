//! Which simulated programs are extrapolated exactly: `patterns [--steps N] PATTERN... FROM,FROM,FROM TO[,TO]`. A line for
//! each, with what was not worked out, or where the first call differs.

use std::process::ExitCode;

use refrain_encode::Calls;
use refrain_extrapolate::{Input, Options, extrapolate};
use refrain_scale::{Pattern, simulate};
use refrain_tracefile::Trace;

fn simulated(pattern: Pattern, ranks: u32, steps: u32) -> Result<Trace, String> {
    let done = simulate(pattern, ranks, steps, &refrain_scale::Options::default());
    done.map(|done| done.trace).map_err(|error| error.to_string())
}

/// The first call that is another.
fn difference(one: &Trace, other: &Trace) -> Option<String> {
    for rank in 0..one.meta.ranks {
        let calls = |trace| Calls::new(trace, rank, 0).map_err(|error| error.to_string());
        let (mut mine, mut theirs) = match (calls(&one.bundle), calls(&other.bundle)) {
            (Ok(mine), Ok(theirs)) => (mine, theirs),
            (Err(error), _) | (_, Err(error)) => return Some(format!("rank {rank}: {error}")),
        };
        for number in 0u64.. {
            match (mine.next(), theirs.next()) {
                (None, None) => break,
                (Some(Ok(a)), Some(Ok(b))) if a == b => {}
                (Some(Ok(a)), Some(Ok(b))) => {
                    let name = a.function.name;
                    if name != b.function.name {
                        return Some(format!(
                            "rank {rank} call {number}: {name}, recorded {}",
                            b.function.name
                        ));
                    }
                    let args = a.args.iter().zip(&b.args).zip(a.function.params);
                    let other = args.filter(|((a, b), _)| a != b);
                    let other = other.map(|((a, b), param)| format!("{} {a:?}, recorded {b:?}", param.name));
                    let other: Vec<String> = other.collect();
                    return Some(format!("rank {rank} call {number}: {name} {}", other.join("; ")));
                }
                _ => return Some(format!("rank {rank} call {number}: not there, or not to be read")),
            }
        }
    }
    None
}

fn row(pattern: Pattern, from: &[u32], to: u32, steps: u32) -> Result<String, String> {
    let traces = from.iter().map(|ranks| simulated(pattern, *ranks, steps)).collect::<Result<Vec<_>, _>>()?;
    let inputs: Vec<Input<'_>> =
        traces.iter().map(|trace| Input { name: format!("{} ranks", trace.meta.ranks), trace }).collect();
    let begun = std::time::Instant::now();
    let outcome = extrapolate(&inputs, Options { ranks: to, guess: false }, &mut |_, _| {});
    let took = begun.elapsed().as_secs_f64();
    let outcome = outcome.map_err(|error| error.to_string())?;
    let Some(trace) = outcome.trace else {
        let parts = outcome.report.problems.iter().map(|problem| problem.to_string());
        return Ok(format!("not worked out: {}", parts.collect::<Vec<_>>().join("; ")));
    };
    let recorded = simulated(pattern, to, steps)?;
    let found = outcome.report.found;
    Ok(match difference(&trace, &recorded) {
        None => format!(
            "exact, {} kinds, {} laws, {took:.2} s{}",
            found.kinds,
            found.laws,
            if trace.bundle == recorded.bundle { ", same bytes" } else { "" }
        ),
        Some(difference) => format!("wrong: {difference}"),
    })
}

fn numbers(word: &str) -> Result<Vec<u32>, String> {
    word.split(',').map(|number| number.parse().map_err(|_| format!("{number} is no number"))).collect()
}

fn run() -> Result<(), String> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut steps = 10;
    if words.first().is_some_and(|word| word == "--steps") {
        words.remove(0);
        steps = words.remove(0).parse().map_err(|_| "--steps needs a number")?;
    }
    let (Some(to), Some(from)) = (words.pop(), words.pop()) else {
        return Err("usage: patterns [--steps N] PATTERN... FROM,FROM,FROM TO[,TO]".into());
    };
    let (from, to) = (numbers(&from)?, numbers(&to)?);
    for name in &words {
        let pattern: Pattern =
            name.parse().map_err(|error: refrain_scale::UnknownPattern| error.to_string())?;
        for to in &to {
            let told = row(pattern, &from, *to, steps).unwrap_or_else(|error| format!("failed: {error}"));
            println!("{name:<16} {from:?} -> {to}: {told}");
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
