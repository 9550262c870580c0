//! `refrain stats --waits` on programs that are made to wait. Each of them says by its own clock how long it waited, for whom:
//! Refrain must say the same. A rank may lose its core between its own look at the clock and ours, so that on a busy machine
//! both may differ by as long as others have the core.

use refrain_e2e::json::Json;
use refrain_e2e::run;
use refrain_e2e::{Library, Program};

/// Nanoseconds that a rank may be without a core, beside a twentieth of the wait.
const SLACK: i64 = 20_000_000;

/// What the program said, as (rank, nanoseconds), and what `stats --waits` says.
fn waits(library: Library, source: &'static str, steps: &'static [&'static str]) -> (Vec<(i64, i64)>, Json) {
    let program = Program { source, args: steps, ..Program::named("ring") };
    let environment = [("REFRAIN_TIME", "exact"), ("REFRAIN_STACKS", "site")];
    let traced = run::traced_with(library, &program, 4, &environment);
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    let said = traced.outcome.stdout.lines().filter_map(|line| {
        let (head, rest) = line.split_once(" ns for rank ")?;
        rest.trim().parse::<i64>().ok()?;
        let (who, waited) = head.split_once(" waited ")?;
        Some((who.rsplit(' ').next()?.parse().ok()?, waited.parse().ok()?))
    });
    let said = said.collect();
    let told = run::refrain(&["stats", &traced.trace.to_string_lossy(), "--waits", "--json"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    (said, Json::parse(&told.stdout).unwrap())
}

/// How long a rank waited for another one, by that pattern in that function.
fn told(waits: &Json, pattern: &str, function: &str, rank: i64, cause: i64) -> i64 {
    let is = |json: &Json, key: &str, what: &str| json.get(key).text() == Some(what);
    let rows = waits.get("waits").list().iter();
    let rows = rows.filter(|row| is(row, "pattern", pattern) && is(row, "function", function));
    let waiters = rows.flat_map(|row| row.get("ranks").list());
    let waiters = waiters.filter(|waiter| waiter.get("rank").int() == Some(rank));
    let causes = waiters.flat_map(|waiter| waiter.get("causes").list());
    let causes = causes.filter(|other| other.get("rank").int() == Some(cause));
    causes.filter_map(|other| other.get("total_ns").int()).sum()
}

#[track_caller]
fn about(told: i64, said: i64, what: &str) {
    assert!(
        (told - said).abs() <= said / 20 + SLACK,
        "{what}: {told} ns told, {said} ns seen by the program"
    );
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_late_sender_is_named() {
    for library in Library::ALL {
        let (said, waits) = waits(library, "late_sender.c", &["20"]);
        let &[(2, waited)] = &said[..] else { panic!("{said:?}") };
        assert!(waited > 100_000_000, "{waited}");
        let what = format!("{}: {waits}", library.suffix());
        about(told(&waits, "late_sender", "MPI_Recv", 2, 3), waited, &what);
        // Nobody else is waited for in a receive.
        for other in [0, 1, 2] {
            assert_eq!(told(&waits, "late_sender", "MPI_Recv", 2, other), 0, "{what}");
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_rank_that_comes_late_to_barriers_is_named() {
    for library in Library::ALL {
        let (said, waits) = waits(library, "slow_barrier.c", &["50"]);
        assert_eq!(said.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [0, 1, 3]);
        for (rank, waited) in said {
            let what = format!("{}, rank {rank}: {waits}", library.suffix());
            about(told(&waits, "barrier", "MPI_Barrier", rank, 2), waited, &what);
        }
    }
}

/// Rank 0 works alone before each broadcast: the others wait for it there, and what it does is on the critical path.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_serial_phase_is_found() {
    for library in Library::ALL {
        let (_, waits) = waits(library, "serial_phase.c", &["20"]);
        let what = format!("{}: {waits}", library.suffix());
        let waited: i64 = (1..4).map(|rank| told(&waits, "one_to_n", "MPI_Bcast", rank, 0)).sum();
        assert!(waited > 0, "{what}");
        let path = waits.get("critical_path").list().iter();
        let alone = path.filter(|step| {
            step.get("rank").int() == Some(0)
                && step.get("function").text() == Some("MPI_Bcast")
                && *step.get("computing") == Json::Bool(true)
        });
        let alone: i64 = alone.filter_map(|step| step.get("time_ns").int()).sum();
        assert!(alone > 0, "{what}");
    }
}
