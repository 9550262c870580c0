//! A few of the mutants that `scripts/fuzz` tries for as long as one likes, each as one of the three traces that another number of
//! ranks is learnt from.

#[path = "../../tracefile/tests/mutants/mod.rs"]
mod maker;
#[path = "../../tracefile/tests/rounds.rs"]
mod rounds;

use fastrand::Rng;
use refrain_extrapolate::{Input, Options, extrapolate};
use refrain_scale::simulate;
use refrain_tracefile::Trace;

use maker::{Bounds, Seeds, for_a_while};

#[global_allocator]
static COUNTING: maker::Counting = maker::Counting;

const PATTERNS: [&str; 5] = ["ring", "stencil2d", "masterworker", "rowcol", "butterfly"];

/// One pattern at three numbers of ranks.
fn traces(pattern: &str) -> Vec<Trace> {
    let ranks = if pattern == "butterfly" { [4, 8, 16] } else { [4, 9, 16] };
    let simulated = |ranks| simulate(pattern.parse().unwrap(), ranks, 4, &Default::default()).unwrap().trace;
    ranks.map(simulated).into()
}

#[test]
fn no_mutant_makes_an_extrapolation_fail() {
    let patterns: Vec<Vec<Trace>> = PATTERNS.iter().map(|pattern| traces(pattern)).collect();
    // Of each trace by itself, to know which one was changed.
    let seeds: Vec<Vec<Seeds>> = patterns
        .iter()
        .map(|traces| traces.iter().map(|trace| Seeds::new(std::slice::from_ref(trace))).collect())
        .collect();
    let (mut bounds, mut read) = (Bounds::new(), 0);
    let tried = maker::try_each(rounds::rounds(800), |number| {
        let mut random = Rng::with_seed(number);
        let (pattern, which) = (random.usize(..patterns.len()), random.usize(..3));
        let (bytes, _) = seeds[pattern][which].mutant(&mut random);
        let Ok(mutant) = refrain_tracefile::read(&bytes) else { return Ok(()) };
        read += 1;
        let mut inputs: Vec<Input<'_>> =
            patterns[pattern].iter().map(|trace| Input { name: "a.rfn".into(), trace }).collect();
        inputs[which].trace = &mutant;
        for guess in [false, true] {
            bounds.command("extrapolate", || {
                let mut enough = for_a_while();
                let _ = extrapolate(&inputs, Options { ranks: 25, guess }, &mut |_, _| enough());
            })?;
        }
        Ok(())
    });
    maker::report(tried, read, &bounds);
    // The others are refused by the reader of files.
    assert!(read * 10 > tried, "{read} of {tried}");
}
