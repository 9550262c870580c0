//! The times of every call: what a trace gives back is what the clock said around each call, to the nanosecond with
//! `--time exact`, within the error that is told with `--time binned`. The readings come from the recorder itself, before
//! anything is written, packed or read.

use std::path::Path;

use refrain_e2e::json::Json;
use refrain_e2e::run::{self, Traced};
use refrain_e2e::{Library, Program};

/// Many kinds of calls, failed polls, several threads, calls in callbacks, and Fortran.
const PROGRAMS: [(&str, u32); 7] = [
    ("stencil2d", 4),
    ("completion", 3),
    ("threads4", 2),
    ("callbacks", 2),
    ("collectives", 3),
    ("f_steps", 2),
    ("random_sizes", 3),
];

fn traced(library: Library, program: &str, ranks: u32, time: &str) -> (Traced, std::path::PathBuf) {
    let log = run::folder(&format!("spans-{program}")).join("spans");
    let environment = [("REFRAIN_TIME", time), ("REFRAIN_TEST_SPANS", log.to_str().unwrap())];
    let traced = run::traced_with(library, &Program::named(program), ranks, &environment);
    assert_eq!(traced.outcome.code, 0, "{program}: {}", traced.outcome.stderr);
    (traced, log)
}

/// What the clock said around the calls of a thread: its start and end.
fn readings(log: &Path, rank: usize, thread: i64) -> Vec<(i64, i64)> {
    let path = format!("{}.{rank}.{thread}", log.display());
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let pair = |line: &str| line.split_once(' ').map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap()));
    text.lines().map(|line| pair(line).unwrap()).collect()
}

/// Holds every call of a dump against the readings. Says how many there were.
fn held(dump: &[Vec<Json>], log: &Path, what: &str) -> usize {
    let number = |call: &Json, key: &str| call.get(key).int().unwrap_or_else(|| panic!("{what}: {key}"));
    let error = |call: &Json, key: &str| if call.has(key) { number(call, key) } else { 0 };
    let mut calls: Vec<(&Json, (i64, i64))> = Vec::new();
    for (rank, dumped) in dump.iter().enumerate() {
        let mut threads: Vec<i64> = dumped.iter().map(|call| number(call, "thread")).collect();
        threads.sort_unstable();
        threads.dedup();
        for thread in threads {
            let own = dumped.iter().filter(|call| number(call, "thread") == thread);
            let own: Vec<&Json> = own.collect();
            let readings = readings(log, rank, thread);
            assert_eq!(own.len(), readings.len(), "{what}: calls of rank {rank}, thread {thread}");
            calls.extend(own.into_iter().zip(readings));
        }
    }
    // A dump counts from the first call on, as it is told.
    let exact = calls.iter().all(|(call, _)| !call.has("start_error"));
    let offsets = calls.iter().map(|(call, (start, _))| start - number(call, "start"));
    let zero = if exact { offsets.min() } else { calls.iter().map(|(_, (start, _))| *start).min() }.unwrap();
    let slack =
        if exact { 0 } else { calls.iter().map(|(call, _)| error(call, "start_error")).min().unwrap() };
    for (call, (start, end)) in &calls {
        let off = |told: i64, real: i64| (told + zero - real).abs();
        let (start, end) = (off(number(call, "start"), *start), off(number(call, "end"), *end));
        assert!(start <= error(call, "start_error") + slack, "{what}: off by {start}: {call:?}");
        assert!(end <= error(call, "end_error") + slack, "{what}: off by {end}: {call:?}");
    }
    calls.len()
}

fn check(library: Library, time: &str) {
    for (program, ranks) in PROGRAMS {
        let (traced, log) = traced(library, program, ranks, time);
        let what = format!("{program} on {}, {time}", library.suffix());
        let calls = held(&traced.dump(), &log, &what);
        let verified = run::refrain(&["verify", &traced.trace.to_string_lossy()]);
        assert_eq!(verified.code, 0, "{what}: {}", verified.stdout);
        println!("{what}: the times of {calls} calls");
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn exact_times_are_what_the_clock_said_mpich() {
    check(Library::Mpich, "exact");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn exact_times_are_what_the_clock_said_openmpi() {
    check(Library::OpenMpi, "exact");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn binned_times_are_within_their_errors_mpich() {
    check(Library::Mpich, "binned=1.2,MPI_Waitall=2");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn binned_times_are_within_their_errors_openmpi() {
    check(Library::OpenMpi, "binned");
}

/// What holds the calls is the same whether times are kept or not.
#[test]
#[ignore = "needs MPI: `make test`"]
fn times_change_nothing_about_the_calls() {
    let program = Program::named("stencil2d");
    let calls = |time: &str| {
        let traced = run::traced_with(Library::Mpich, &program, 4, &[("REFRAIN_TIME", time)]);
        // The text form of the whole trace: what is said of calls, without their times.
        let text = run::refrain(&["loops", &traced.trace.to_string_lossy(), "--text"]).stdout;
        let calls = ["symbol ", "stream ", "structure ", "cohort ", "  "];
        let lines = text.lines().filter(|line| calls.iter().any(|start| line.starts_with(start)));
        let untimed = |line: &str| match (line.split_once(" time "), line.split_once(" bytes ")) {
            (Some((head, _)), Some((_, bytes))) => format!("{head} {bytes}"),
            _ => line.to_owned(),
        };
        let lines: Vec<String> = lines.map(untimed).collect();
        assert!(lines.len() > 20, "{text}");
        lines
    };
    let off = calls("off");
    for time in ["mean", "binned", "exact"] {
        assert!(calls(time) == off, "{time} changes calls");
    }
}

/// Ranks that are killed have the times of what they had done.
#[test]
#[ignore = "needs MPI: `make test`"]
fn times_survive_a_kill() {
    for library in Library::ALL {
        let log = run::folder("spans-killed").join("spans");
        let environment = [("REFRAIN_TIME", "exact"), ("REFRAIN_TEST_SPANS", log.to_str().unwrap())];
        let program = Program { source: "endings.c", args: &["raise", "50", "9"], ..Program::named("ring") };
        let traced = run::traced_with(library, &program, 2, &environment);
        let dump = traced.dump();
        let calls: Vec<&Json> = dump.iter().flatten().collect();
        assert!(calls.len() > 50, "{}: {}", library.suffix(), traced.outcome.stderr);
        // The last may have been cut off between its own record and that of its time.
        let timed = calls.iter().filter(|call| call.has("start")).count();
        assert!(timed + dump.len() >= calls.len(), "{timed} of {} have times", calls.len());
    }
}
