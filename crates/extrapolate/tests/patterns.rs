//! What is extrapolated from simulated ranks is what the simulation gives there, call by call on every rank.

use refrain_encode::{Calls, Folding};
use refrain_extrapolate::{Error, Input, Options, Outcome, extrapolate};
use refrain_scale::simulate;
use refrain_tracefile::Trace;

const SQUARES: [u32; 3] = [16, 36, 64];
const CUBES: [u32; 3] = [27, 64, 125];
const POWERS: [u32; 4] = [8, 16, 32, 64];

fn simulated(pattern: &str, ranks: u32, steps: u32, folding: Folding) -> Trace {
    let options = refrain_scale::Options { folding, ..Default::default() };
    let mut trace = simulate(pattern.parse().unwrap(), ranks, steps, &options).unwrap().trace;
    if folding != Folding::Grammar {
        trace.meta.options.push(("fold".into(), folding.to_string()));
    }
    trace
}

fn attempt(traces: &[Trace], ranks: u32, guess: bool) -> Result<Outcome, Error> {
    let name = |trace: &Trace| format!("{}.rfn", trace.meta.ranks);
    let inputs: Vec<Input<'_>> = traces.iter().map(|trace| Input { name: name(trace), trace }).collect();
    extrapolate(&inputs, Options { ranks, guess }, &mut |_, _| {})
}

fn learnt(pattern: &str, from: &[u32], to: u32, guess: bool) -> Outcome {
    let traces: Vec<Trace> =
        from.iter().map(|ranks| simulated(pattern, *ranks, 10, Folding::Grammar)).collect();
    attempt(&traces, to, guess).unwrap()
}

#[track_caller]
fn same_calls(what: &str, one: &Trace, other: &Trace) {
    assert_eq!(one.meta.ranks, other.meta.ranks);
    for rank in 0..one.meta.ranks {
        let (mut mine, mut theirs) =
            (Calls::new(&one.bundle, rank, 0).unwrap(), Calls::new(&other.bundle, rank, 0).unwrap());
        loop {
            let (a, b) = (mine.next().transpose().unwrap(), theirs.next().transpose().unwrap());
            assert_eq!(a, b, "{what}, rank {rank} of {}", one.meta.ranks);
            if a.is_none() {
                break;
            }
        }
        assert_eq!(mine.digest(), theirs.digest(), "{what}, rank {rank}");
    }
    let digests = |trace: &Trace| trace.bundle.cohorts.iter().map(|cohort| cohort.digest).collect::<Vec<_>>();
    assert_eq!(digests(one), digests(other), "{what}");
}

#[track_caller]
fn exact(pattern: &str, from: &[u32], to: &[u32]) {
    for &to in to {
        let outcome = learnt(pattern, from, to, false);
        let Outcome { report, trace } = outcome;
        let trace = trace.unwrap_or_else(|| panic!("{pattern}: {:?}", report.problems));
        same_calls(pattern, &trace, &simulated(pattern, to, 10, Folding::Grammar));
        let bytes = refrain_tracefile::write(&trace);
        assert_eq!(refrain_tracefile::write(&refrain_tracefile::read(&bytes).unwrap()), bytes, "{pattern}");
        assert!(trace.meta.extrapolated().is_some_and(|from| from.contains("ranks")));
    }
}

#[test]
#[ignore = "long: `make test`"]
fn lines_and_rings() {
    for pattern in
        ["ring", "pipeline", "stencil1d", "torus1d", "tree", "masterworker", "behaviours:3", "values:5"]
    {
        exact(pattern, &SQUARES, &[144]);
    }
    exact("ring", &SQUARES, &[256, 7, 1000]);
    exact("pipeline", &[4, 9, 16], &[25]);
}

#[test]
#[ignore = "long: `make test`"]
fn grids_of_two_dimensions() {
    let patterns = [
        "stencil2d",
        "torus2d",
        "box2d",
        "boxtorus2d",
        "cart-stencil2d",
        "cart-torus2d",
        "transpose",
        "stencil9",
        "rowcol",
    ];
    for pattern in patterns {
        exact(pattern, &SQUARES, &[144]);
    }
    exact("stencil2d", &SQUARES, &[256]);
    exact("cart-torus2d", &SQUARES, &[256]);
}

#[test]
#[ignore = "long: `make test`"]
fn grids_of_three_dimensions() {
    for pattern in ["stencil3d", "torus3d", "cart-torus3d", "stencil27", "boxtorus3d"] {
        exact(pattern, &CUBES, &[216]);
    }
}

#[test]
#[ignore = "long: `make test`"]
fn rounds_and_shares() {
    exact("butterfly", &POWERS, &[128, 256]);
    exact("npb-ft", &POWERS, &[128]);
    exact("sweep3d", &SQUARES, &[144]);
    exact("osu-latency", &SQUARES, &[144]);
}

#[test]
fn as_many_ranks_of_loops() {
    let fold: Folding = "loops".parse().unwrap();
    let traces = SQUARES.map(|ranks| simulated("stencil2d", ranks, 10, fold));
    let trace = attempt(&traces, 144, false).unwrap().trace.unwrap();
    assert!(trace.bundle.structures.iter().all(|structure| structure.loops().is_some()));
    same_calls("loops", &trace, &simulated("stencil2d", 144, 10, fold));
}

#[test]
fn a_few() {
    for pattern in ["ring", "pipeline", "stencil2d"] {
        exact(pattern, &[4, 9, 16], &[25]);
    }
    exact("butterfly", &[4, 8, 16], &[32]);
}

/// Fewer ranks than some trace has, and a number of ranks that no grid but a line fits.
#[test]
fn between_and_below() {
    exact("stencil2d", &SQUARES, &[25, 49]);
    exact("stencil1d", &SQUARES, &[5, 17]);
}

#[test]
fn numbers_that_depend_on_data_are_named() {
    let Outcome { report, trace } = learnt("alltoallv", &[4, 9, 16], 25, false);
    assert!(trace.is_none());
    let named: Vec<&str> = report.problems.iter().map(|problem| problem.parameter.as_str()).collect();
    assert!(named.contains(&"sendcounts") && named.contains(&"recvcounts"), "{named:?}");
    let counts = report.problems.iter().find(|problem| problem.parameter == "sendcounts").unwrap();
    assert_eq!(counts.function, "MPI_Alltoallv");
    assert_eq!(counts.seen.iter().map(|(ranks, _)| *ranks).collect::<Vec<_>>(), [4, 9, 16]);
}

#[test]
#[ignore = "long: `make test`"]
fn what_is_guessed_is_said() {
    let Outcome { report, trace } = learnt("npb-bt", &SQUARES, 144, true);
    let trace = trace.unwrap();
    assert!(!report.problems.is_empty());
    assert!(trace.meta.notes.iter().any(|note| note.contains("guessed")), "{:?}", trace.meta.notes);
    for rank in [0, 77, 143] {
        assert!(Calls::new(&trace.bundle, rank, 0).unwrap().all(|call| call.is_ok()), "rank {rank}");
    }
}

#[test]
fn an_order_without_a_law_is_not_guessed() {
    for pattern in ["random", "raptor"] {
        let Outcome { report, trace } = learnt(pattern, &[8, 12, 16], 24, true);
        assert!(trace.is_none());
        assert_eq!(report.problems[0].parameter, "the order of calls");
    }
}

/// Sides of a grid that the traces cannot tell apart, or from a constant.
#[test]
fn a_grid_that_is_not_clear_is_refused() {
    let Outcome { report, trace } = learnt("stencil3d", &SQUARES, 144, false);
    assert!(trace.is_none());
    assert!(report.problems.iter().any(|problem| problem.parameter == "the grid of the ranks"));
}

/// Four traces that three dimensions explain, and a fourth that is cut for the first time beyond them.
#[test]
#[ignore = "long: `make test`"]
fn a_grid_that_could_be_another_is_refused() {
    for ranks in [128, 256] {
        let Outcome { report, trace } = learnt("milc-strong", &POWERS, ranks, false);
        assert!(trace.is_none());
        assert!(report.problems.iter().any(|problem| problem.why.contains("MPI_Dims_create")));
    }
}

#[test]
fn two_traces_confirm_little() {
    let outcome = learnt("ring", &[16, 36], 64, false);
    assert!(outcome.report.unconfirmed.iter().any(|law| law.parameter == "dest"));
    assert!(outcome.report.found.unconfirmed > 0);
    same_calls("ring", &outcome.trace.unwrap(), &simulated("ring", 64, 10, Folding::Grammar));
}

#[test]
fn traces_that_do_not_go_together() {
    let of = |ranks| simulated("ring", ranks, 10, Folding::Grammar);
    assert!(matches!(attempt(&[of(4)], 9, false), Err(Error::OneTrace)));
    assert!(matches!(attempt(&[of(4), of(4)], 9, false), Err(Error::SameRanks(_, _, 4))));
    assert!(matches!(attempt(&[of(4), of(8)], 0, false), Err(Error::NoRanks)));
    let mut partial = of(8);
    partial.meta.complete = false;
    assert!(matches!(attempt(&[of(4), partial], 16, false), Err(Error::Incomplete(_))));
    let loops = simulated("ring", 8, 10, "loops".parse().unwrap());
    assert!(matches!(attempt(&[of(4), loops], 16, false), Err(Error::Options(..))));
    let made = attempt(&[of(4), of(8), of(12)], 16, false).unwrap().trace.unwrap();
    assert!(matches!(attempt(&[of(4), made], 32, false), Err(Error::Extrapolated(_))));
}

/// Two programs have no kind of rank in common.
#[test]
fn different_programs() {
    let traces =
        [simulated("ring", 16, 10, Folding::Grammar), simulated("pipeline", 36, 10, Folding::Grammar)];
    assert!(matches!(attempt(&traces, 64, false), Err(Error::Programs(..))));
}
