//! The times of every call: what a trace gives back is what the clock said around each call, to the nanosecond with
//! `--time exact`, within the error that is told with `--time binned`. The readings come from the recorder itself, before
//! anything is written, packed or read.

use std::collections::BTreeMap;
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

fn exact_times_are_what_the_clock_said(library: Library) {
    check(library, "exact");
}

/// Calls, and their total, shortest and longest time.
type Sum = (i64, i64, i64, i64);

/// What calls of a dump add up to, by a word that `key` has for some of them.
fn sums(dump: &[Vec<Json>], key: impl Fn(&Json) -> Option<String>) -> BTreeMap<String, Sum> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for call in dump.iter().flatten() {
        let Some(key) = key(call) else { continue };
        let time = call.get("end").int().unwrap() - call.get("start").int().unwrap();
        let sum = sums.entry(key).or_insert((0, 0, i64::MAX, 0));
        *sum = (sum.0 + 1, sum.1 + time, sum.2.min(time), sum.3.max(time));
    }
    sums
}

/// The same as `refrain stats --per` tells it.
fn told(
    traced: &Traced,
    per: &str,
    rows: &str,
    key: impl Fn(&Json) -> Option<String>,
) -> BTreeMap<String, Sum> {
    let said = run::refrain(&["stats", &traced.trace.to_string_lossy(), "--per", per, "--json"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let all = Json::parse(&said.stdout).unwrap();
    let number = |row: &Json, name: &str| row.get(name).int().unwrap_or_else(|| panic!("{name} in {row}"));
    let row = |row: &Json| {
        let key = key(row)?;
        let [calls, total, least, most] =
            ["calls", "time_ns", "min_ns", "max_ns"].map(|name| number(row, name));
        Some((key, (calls, total, least, most)))
    };
    all.get(rows).list().iter().filter_map(row).collect()
}

/// Of functions, of sites, of peers: what `stats` says of an exact trace is what its calls add up to.
fn sums_are_those_of_single_calls(library: Library) {
    let environment = [("REFRAIN_TIME", "exact"), ("REFRAIN_STACKS", "site")];
    // MPI_Finalize has not ended when the trace is written.
    let name = |json: &Json, key: &str| {
        json.get(key).text().filter(|name| *name != "MPI_Finalize").map(str::to_owned)
    };
    for (program, ranks) in [("stencil2d", 4), ("completion", 3), ("callbacks", 2), ("stencil2d9", 4)] {
        let traced = run::traced_with(library, &Program::named(program), ranks, &environment);
        assert_eq!(traced.outcome.code, 0, "{program}: {}", traced.outcome.stderr);
        let shown = run::refrain(&["dump", &traced.trace.to_string_lossy(), "--json", "--sites"]);
        assert_eq!(shown.code, 0, "{program}: {}", shown.stderr);
        let dump = traced.by_rank(&shown.stdout);
        let functions = sums(&dump, |call| name(call, "call"));
        assert!(functions.len() > 5, "{program}");
        assert_eq!(
            told(&traced, "function", "functions", |row| name(row, "function")),
            functions,
            "{program}"
        );
        // By line.
        let at = |json: &Json, function: &str, place: &Json| {
            Some(format!("{} {}", name(json, function)?, place.get("line").int().unwrap_or(0)))
        };
        let of_calls = sums(&dump, |call| at(call, "call", call.get("site").list().last()?));
        let of_sites = told(&traced, "site", "sites", |row| at(row, "function", row.get("at")));
        assert_eq!(of_sites, of_calls, "{program}");
        // To whom, from the caller on.
        let sends = |call: &Json| {
            let (dest, rank) = (call.get("args").get("dest").int()?, call.get("rank").int()?);
            let world = call.get("args").get("comm").text() == Some("world");
            (world && call.get("call").text() == Some("MPI_Isend")).then(|| format!("{}", dest - rank))
        };
        let is_send = |row: &Json| row.get("function").text() == Some("MPI_Isend");
        let peers = told(&traced, "peer", "classes", |row| {
            is_send(row).then(|| row.get("relative").int())?.map(|by| by.to_string())
        });
        if program.starts_with("stencil") {
            assert!(peers.len() > 1, "{peers:?}");
            assert_eq!(peers, sums(&dump, sends), "{program}");
        }
    }
}

on_both!(sums_are_those_of_single_calls);

/// The run, and the times of all ranks together, are the same for all commands, and what the calls say.
fn a_run_has_one_length(library: Library) {
    let traced = run::traced_with(library, &Program::named("stencil2d"), 4, &[("REFRAIN_TIME", "exact")]);
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    let trace = traced.trace.to_string_lossy().into_owned();
    let ask = |args: &[&str]| {
        let said = run::refrain(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        (Json::parse(&said.stdout).unwrap(), said.stderr)
    };
    let (stats, waits) =
        (ask(&["stats", &trace, "--json"]).0, ask(&["stats", &trace, "--waits", "--json"]).0);
    let number = |json: &Json, key: &str| json.get(key).int().unwrap_or_else(|| panic!("{key} in {json}"));
    let when = |rank: &[Json], function: &str| {
        let call = rank.iter().find(|call| call.get("call").text() == Some(function)).unwrap();
        number(call, "start")
    };
    let dump = traced.dump();
    let times = dump.iter().map(|rank| when(rank, "MPI_Finalize") - when(rank, "MPI_Init"));
    let (longest, all) = (times.clone().max().unwrap(), times.sum::<i64>());
    assert_eq!((number(&stats, "run_ns"), number(&stats, "all_ranks_ns")), (longest, all));
    assert_eq!((number(&waits, "span_ns"), number(&waits, "all_ranks_ns")), (longest, all));
    assert!(!stats.has("run_error_ns") && !waits.has("span_error_ns"), "{stats}");
    // By rank, the calls are told exactly too.
    for (rank, told) in dump.iter().zip(stats.get("by_rank").list()) {
        let inside = rank.iter().filter(|call| call.get("call").text() != Some("MPI_Finalize"));
        let inside = inside.map(|call| number(call, "end") - number(call, "start")).sum::<i64>();
        assert_eq!(number(told, "mpi_ns"), inside, "{told}");
        assert!(!told.has("wall_error_ns"), "{told}");
    }
    let info = ask(&["info", &trace, "--json"]).0;
    assert_eq!(number(&info, "timed_calls"), number(&info, "calls"));
    // A text has no times of single calls, and says so.
    let text = run::refrain(&["loops", &trace, "--text"]).stdout;
    assert!(text.lines().next().unwrap().contains("without the times of single calls"), "{text}");
    let (file, again) = (traced.trace.with_extension("txt"), traced.trace.with_extension("again.rfn"));
    std::fs::write(&file, text).unwrap();
    let again = again.to_string_lossy().into_owned();
    let imported = run::refrain(&["import", &file.to_string_lossy(), "--out", &again]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    let (stats, said) = ask(&["stats", &again, "--json"]);
    assert!(stats.has("all_ranks_error_ns") && said.contains("no times of single calls"), "{said}");
    let compared = run::refrain(&["diff", &trace, &again, "--time"]);
    assert!(compared.stderr.contains("no times of single calls"), "{}", compared.stderr);
    let refused = run::refrain(&["stats", &again, "--waits"]);
    assert!(refused.code != 0 && refused.stderr.contains("no times of single calls"), "{}", refused.stderr);
    let info = run::refrain(&["info", &again]).stdout;
    assert!(info.contains("no times of single calls") && !info.contains("to the nanosecond"), "{info}");
}

on_both!(a_run_has_one_length);

on_both!(exact_times_are_what_the_clock_said);

fn binned_times_are_within_their_errors(library: Library) {
    check(library, if library.is_open_mpi() { "binned" } else { "binned=1.2,MPI_Waitall=2" });
}

on_both!(binned_times_are_within_their_errors);

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
        // How long calls of each size took.
        let lines = lines.filter(|line| !line.starts_with("  class "));
        let untimed = |line: &str| match (line.split_once(" time "), line.split_once(" bytes ")) {
            (Some((head, _)), Some((_, bytes))) => format!("{head} {bytes}"),
            _ => line.to_owned(),
        };
        let lines: Vec<String> = lines.map(untimed).collect();
        assert!(lines.len() > 20, "{text}");
        lines
    };
    let off = calls("off");
    for time in ["mean", "histogram", "binned", "exact"] {
        assert!(calls(time) == off, "{time} changes calls");
    }
}

/// Rank 3 computes for 10 ms before each of its sends: the gaps before them say so, and no other does.
fn distributions_are_of_the_calls_that_were_made(library: Library) {
    const STEPS: i64 = 15;
    let program = Program { source: "late_sender.c", args: &["15"], ..Program::named("ring") };
    let environment = [("REFRAIN_TIME", "histogram"), ("REFRAIN_STACKS", "site")];
    let traced = run::traced_with(library, &program, 4, &environment);
    let told = run::refrain(&["stats", &traced.trace.to_string_lossy(), "--per", "path", "--json"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let paths = Json::parse(&told.stdout).unwrap();
    let of = |function: &str, after: &str| {
        let mut found = paths.get("paths").list().iter().filter(|path| {
            path.get("function").text() == Some(function) && path.get("after").text() == Some(after)
        });
        let path = found.next().unwrap_or_else(|| panic!("{function} after {after}: {paths}"));
        assert!(found.next().is_none(), "{paths}");
        path
    };
    let count = |path: &Json, what: &str| path.get(what).get("count").int().unwrap();
    let (first, later) = (of("MPI_Send", "MPI_Barrier"), of("MPI_Send", "MPI_Send"));
    assert_eq!((count(first, "duration"), count(later, "duration")), (1, STEPS - 1), "{paths}");
    assert_eq!((count(first, "gap"), count(later, "gap")), (1, STEPS - 1), "{paths}");
    for path in [first, later] {
        assert!(path.get("at").get("file").text().is_some_and(|file| file.ends_with("late_sender.c")));
        let gap = path.get("gap");
        // Levels are within a tenth of what was seen.
        let bins = gap.get("bins").list().iter();
        assert!(bins.clone().all(|bin| bin.list()[1].int() >= Some(9_000_000)), "{paths}");
        let total = gap.get("total_ns").int().unwrap();
        assert!(total >= count(path, "gap") * 9_900_000, "{paths}");
    }
    let received = of("MPI_Recv", "MPI_Recv");
    assert_eq!(count(received, "duration"), STEPS - 1, "{paths}");
    let table = run::refrain(&["stats", &traced.trace.to_string_lossy(), "--per", "path"]);
    // So few are counted exactly.
    let is_later = |line: &str| line.split_whitespace().take(3).eq(["MPI_Send", "MPI_Send", "14"]);
    assert!(table.stdout.lines().any(is_later), "{}", table.stdout);
    let verified = run::refrain(&["verify", &traced.trace.to_string_lossy()]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
}

on_both!(distributions_are_of_the_calls_that_were_made);

/// Ranks that are killed have the times of what they had done.
fn times_survive_a_kill(library: Library) {
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

on_both!(times_survive_a_kill);

/// A rank that cannot give its times away loses these, not the trace; and the parts still have them.
fn a_fault_while_times_are_gathered_costs_only_times(library: Library) {
    let program = Program::named("stencil2d");
    let plain = run::traced_with(library, &program, 3, &[]).dump();
    for rank in ["0", "1"] {
        let environment = [("REFRAIN_TIME", "exact"), ("REFRAIN_TEST_FAIL_WITH_TIMES", rank)];
        let traced = run::traced_with(library, &program, 3, &environment);
        let said = &traced.outcome.stderr;
        assert_eq!(traced.outcome.code, 0, "{said}");
        let calls = |dump: &[Vec<Json>]| dump.iter().map(Vec::len).collect::<Vec<_>>();
        let dump = traced.dump();
        assert_eq!(calls(&dump), calls(&plain), "{said}");
        let info = run::refrain(&["info", &traced.trace.to_string_lossy()]).stdout;
        let timed = dump.iter().flatten().filter(|call| call.has("start")).count();
        let told = info.contains("times of calls could not be brought together");
        // Where the run's end found the parts, it has made a trace of them, which has the times.
        assert!(timed == dump.iter().map(Vec::len).sum::<usize>() || told, "{timed}: {info}\n{said}");
    }
}

on_both!(a_fault_while_times_are_gathered_costs_only_times);

/// Every result of `MPI_Wtime` and `MPI_Wtick`, to the last bit, from C and from Fortran; and a trace that does not keep
/// times exactly has none.
fn what_clocks_return(library: Library) {
    for source in ["clocks.c", "f_clocks.f90"] {
        let program = Program::unwitnessed(source);
        let traced = run::traced_with(library, &program, 3, &[("REFRAIN_TIME", "exact")]);
        let what = format!("{source} on {}: {}", library.suffix(), traced.outcome.stderr);
        assert_eq!(traced.outcome.code, 0, "{what}");
        let dump = traced.dump();
        let asked = |call: &&Json| ["MPI_Wtime", "MPI_Wtick"].contains(&call.get("call").text().unwrap());
        let bits = |call: &Json| call.get("result").to_string().parse::<f64>().unwrap().to_bits();
        let told = dump.iter().enumerate().flat_map(|(rank, calls)| {
            calls.iter().filter(asked).map(move |call| format!("clock {rank} {:016x}", bits(call)))
        });
        let told: Vec<String> = told.collect();
        let printed: Vec<String> = traced
            .outcome
            .stdout
            .lines()
            .filter(|line| line.starts_with("clock "))
            .map(str::to_lowercase)
            .collect();
        assert!(printed.len() >= 300, "{what}");
        assert_eq!(told, printed, "{what}");
        let binned = run::traced_with(library, &program, 3, &[("REFRAIN_TIME", "binned")]);
        assert!(binned.dump().iter().flatten().filter(asked).all(|call| *call.get("result") == Json::Null));
    }
}

on_both!(what_clocks_return);
