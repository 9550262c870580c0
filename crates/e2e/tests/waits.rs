//! `refrain stats --waits` on programs that are made to wait. What it says is what follows from when the recorded calls began. And
//! each program says by its own clock how long it waited, for whom: Refrain must say the same, in a run that nobody disturbed.

use refrain_e2e::json::Json;
use refrain_e2e::run;
use refrain_e2e::{Library, Program};

/// Nanoseconds by which the clocks of ranks may be apart, of all steps together.
const ERROR: i64 = 1_000_000;
/// Nanoseconds that a rank may be without a core, beside a twentieth of the wait.
const SLACK: i64 = 20_000_000;
/// A rank may lose its core for long between its own look at the clock and ours. Such a run is made again, so often.
const RUNS: usize = 10;

/// A run: what the program said, as (rank, nanoseconds), what `stats --waits` says, and the calls.
struct Run {
    said: Vec<(i64, i64)>,
    waits: Json,
    dump: Vec<Vec<Json>>,
}

impl Run {
    /// When the calls of a function began on a rank.
    fn begins(&self, rank: i64, function: &str) -> Vec<i64> {
        let own = self.dump[usize::try_from(rank).unwrap()].iter();
        let own = own.filter(|call| call.get("call").text() == Some(function));
        own.map(|call| call.get("start").int().unwrap()).collect()
    }
}

fn waits(library: Library, source: &'static str, steps: &'static [&'static str]) -> Run {
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
    Run { said, waits: Json::parse(&told.stdout).unwrap(), dump: traced.dump() }
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

/// `waiting` ranks wait at least so long in all for a late one: what is told and what follows from the calls is the same in every
/// run, and what the program said too if nobody disturbed it.
fn agree(
    run: impl Fn() -> Run,
    waiting: &[i64],
    least: i64,
    told: impl Fn(&Run, i64) -> i64,
    recorded: impl Fn(&Run, i64) -> i64,
) {
    let mut disturbed = Vec::new();
    for _ in 0..RUNS {
        let run = run();
        assert_eq!(run.said.iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), waiting);
        let of = |(rank, said): &(i64, i64)| (*rank, told(&run, *rank), recorded(&run, *rank), *said);
        let all: Vec<(i64, i64, i64, i64)> = run.said.iter().map(of).collect();
        for (rank, told, recorded, _) in &all {
            assert!((told - recorded).abs() <= ERROR, "rank {rank}: {told}, not {recorded}: {}", run.waits);
        }
        if all.iter().all(|(_, told, _, said)| *said > least && (told - said).abs() <= said / 20 + SLACK) {
            return;
        }
        disturbed.push(all);
    }
    run::inconclusive(&format!(
        "ranks, waits that are told, of the calls, and seen by the program: {disturbed:?}"
    ));
}

fn a_late_sender_is_named(library: Library) {
    let run = || waits(library, "late_sender.c", &["20"]);
    let told = |run: &Run, rank: i64| {
        // Nobody else is waited for in a receive.
        for other in [0, 1, 2] {
            assert_eq!(told(&run.waits, "late_sender", "MPI_Recv", rank, other), 0, "{}", run.waits);
        }
        told(&run.waits, "late_sender", "MPI_Recv", rank, 3)
    };
    let recorded = |run: &Run, rank: i64| {
        let (sends, receives) = (run.begins(3, "MPI_Send"), run.begins(rank, "MPI_Recv"));
        assert_eq!((sends.len(), receives.len()), (20, 20));
        sends.iter().zip(receives).map(|(send, receive)| (send - receive).max(0)).sum()
    };
    agree(run, &[2], 100_000_000, told, recorded);
}

on_both!(a_late_sender_is_named);

fn a_rank_that_comes_late_to_barriers_is_named(library: Library) {
    let run = || waits(library, "slow_barrier.c", &["50"]);
    let told = |run: &Run, rank: i64| told(&run.waits, "barrier", "MPI_Barrier", rank, 2);
    let recorded = |run: &Run, rank: i64| {
        let begins: Vec<Vec<i64>> = (0..4).map(|rank| run.begins(rank, "MPI_Barrier")).collect();
        assert!(begins.iter().all(|begins| begins.len() == 50));
        let late = (0..50).filter(|&step| begins.iter().all(|other| other[step] <= begins[2][step]));
        late.map(|step| begins[2][step] - begins[usize::try_from(rank).unwrap()][step]).sum()
    };
    agree(run, &[0, 1, 3], 10_000_000, told, recorded);
}

on_both!(a_rank_that_comes_late_to_barriers_is_named);

/// Rank 0 works alone before each broadcast: the others wait for it there, and what it does is on the critical path.
fn a_serial_phase_is_found(library: Library) {
    let Run { waits, .. } = waits(library, "serial_phase.c", &["20"]);
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

on_both!(a_serial_phase_is_found);
