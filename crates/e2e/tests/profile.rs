//! Every rank's time outside MPI and in it is in the trace, and `stats` names the rank that others wait for. Ignored in a
//! plain `cargo test`: needs the MPI libraries and the built command.

use refrain_e2e::json::Json;
use refrain_e2e::{Library, Program, run};

/// What `stats` says of a program in which one rank sleeps for a second, 20 times as long as anything else takes.
#[track_caller]
fn check(library: Library, args: &'static [&'static str], ranks: u32, slow: &str, function: &str) {
    let program = Program { source: "waits.c", args, ..Program::named("ring") };
    let traced = run::traced_with(library, &program, ranks, &[]);
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    let trace = traced.trace.to_string_lossy().into_owned();
    let said = run::refrain(&["stats", &trace]).stdout;
    let verdict = said.lines().find(|line| line.starts_with("Rank")).unwrap_or_default();
    assert!(verdict.starts_with(slow) && verdict.contains(&format!("for it in {function}")), "{said}");
    let document = Json::parse(&run::refrain(&["stats", "--json", &trace]).stdout).unwrap();
    assert_eq!(document.get("verdict").text(), Some(verdict));
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn the_rank_that_others_wait_for_is_named() {
    for library in [Library::Mpich, Library::OpenMpi] {
        check(library, &["collective"], 4, "Rank 2 spent ", "MPI_Allreduce");
        // The two ranks without a message wait at the end, in MPI_Reduce: only rank 0 waits in MPI_Recv.
        check(library, &["sender"], 2, "Rank 1 spent ", "MPI_Recv");
    }
}
