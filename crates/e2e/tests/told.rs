//! Numbers that are told of a run, held against a plain log of the same run: an imbalanced heat equation with a late sender in C, in
//! Fortran and in Python. What was called comes from the witness, or from the script itself; how long it took comes from the recorder's
//! clock, as it was read around each call, and lies within what the witness saw on its own clock.
//!
//! `cargo test ... told:: -- --nocapture` prints the largest deviations.

use std::collections::BTreeMap;
use std::fs;

use refrain_e2e::json::Json;
use refrain_e2e::run::{self, Setting, Traced};
use refrain_e2e::{Library, Program, check};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Program(&'static str),
    Script(&'static str),
}

const SOURCES: [Source; 3] =
    [Source::Program("heat.c"), Source::Program("f_heat.f90"), Source::Script("heat.py")];

/// A call of the log.
#[derive(Debug, Clone)]
struct Call {
    rank: i64,
    function: String,
    line: i64,
    /// How many ranks further the message goes, and its bytes.
    by: Option<i64>,
    bytes: Option<i64>,
    start: i64,
    end: i64,
}

/// A run, its log, and its trace: with the times of single calls, or with sums alone.
struct Held {
    what: String,
    trace: String,
    log: Vec<Call>,
}

fn held(library: Library, source: Source, ranks: u32) -> [Held; 2] {
    let what = format!("{source:?} on {ranks} ranks of {}", library.suffix());
    let spans = run::folder("told").join("spans");
    let more = [("REFRAIN_TEST_SPANS", spans.to_str().unwrap())];
    let options: &'static [&'static str] = &["--stacks", "site", "--time", "exact"];
    let traced = match source {
        Source::Program(name) => {
            let program = Program { source: name, args: &[], ..Program::named("ring") };
            let setting = Setting { name: "exact", options, ..Setting::DEFAULT };
            let record = || run::traced_seen(library, &program, ranks, setting, &more);
            let traced = run::conclusive(library, &program, ranks, record);
            let seen = check::says_what_the_witness_saw(&program, &traced, &traced.text());
            let (_, report) = seen.unwrap_or_else(|difference| panic!("{what}: {difference}"));
            report.times.fit().unwrap_or_else(|error| panic!("{what}: {error}"));
            traced
        }
        Source::Script(name) => run::script_with(library, name, ranks, Some(options), &more),
    };
    assert_eq!(traced.outcome.code, 0, "{what}: {}", traced.outcome.stderr);
    let trace = traced.trace.to_string_lossy().into_owned();
    let shown = run::refrain(&["dump", &trace, "--json", "--sites"]);
    assert_eq!(shown.code, 0, "{what}: {}", shown.stderr);
    let dump = traced.by_rank(&shown.stdout);
    let mut log = Vec::new();
    for (rank, calls) in dump.iter().enumerate() {
        let text = fs::read_to_string(format!("{}.{rank}.0", spans.display())).unwrap();
        let spans = text.lines().map(|line| line.split_once(' ').unwrap());
        let spans: Vec<(i64, i64)> = spans.map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).collect();
        assert_eq!(spans.len(), calls.len(), "{what}, rank {rank}");
        log.extend(calls.iter().zip(spans).map(|(call, span)| logged(rank as i64, call, span)));
    }
    if let Source::Script(_) = source {
        as_the_script_says(&what, &traced, &log);
    }
    // The text form has what ranks added up while they ran, as a trace has it that is recorded without further options.
    let text = run::refrain(&["loops", &trace, "--text"]);
    assert_eq!(text.code, 0, "{what}: {}", text.stderr);
    let (from, pooled) = (traced.folder().join("sums.txt"), traced.folder().join("sums.rfn"));
    fs::write(&from, text.stdout).unwrap();
    let pooled = pooled.to_string_lossy().into_owned();
    let made = run::refrain(&["import", &from.to_string_lossy(), "-o", &pooled]);
    assert_eq!(made.code, 0, "{what}: {}", made.stderr);
    [
        Held { what: format!("{what}, exact"), trace, log: log.clone() },
        Held { what: format!("{what}, sums"), trace: pooled, log },
    ]
}

fn logged(rank: i64, call: &Json, (start, end): (i64, i64)) -> Call {
    let args = call.get("args");
    let function = call.get("call").text().unwrap().to_owned();
    let sends = function.ends_with("send");
    Call {
        rank,
        line: call.get("site").list().last().and_then(|place| place.get("line").int()).unwrap_or(0),
        by: args.get("dest").int().filter(|_| sends).map(|dest| dest - rank),
        bytes: args.get("count").int().filter(|_| sends).map(|count| count * 8),
        function,
        start,
        end,
    }
}

/// What the script calls is there in its order, and lies within what its own clock said around it.
fn as_the_script_says(what: &str, traced: &Traced, log: &[Call]) {
    for (rank, record) in traced.record().iter().enumerate() {
        let mut calls = log.iter().filter(|call| call.rank == rank as i64);
        let offset = |call: &Call, noted: &Json| {
            let [start, end] = ["start", "end"].map(|key| noted.get(key).int().unwrap());
            (call.end - end, call.start - start)
        };
        // Two clocks with one rate: an offset that fits all calls.
        let (mut least, mut most) = (i64::MIN, i64::MAX);
        for noted in record {
            let name = noted.get("call").text().unwrap();
            let call = calls.find(|call| call.function == name);
            let call = call.unwrap_or_else(|| panic!("{what}, rank {rank}: no {name} is left"));
            let (low, high) = offset(call, noted);
            (least, most) = (least.max(low), most.min(high));
        }
        assert!(record.len() > 50 && least <= most + 1000, "{what}, rank {rank}: {least} {most}");
    }
}

/// Count, total, shortest and longest.
type Sum = [i64; 4];

/// The largest deviations: of what, how much it is, and how much it may be.
#[derive(Default)]
struct Deviations(BTreeMap<String, (i64, i64, usize)>);

impl Deviations {
    #[track_caller]
    fn add(&mut self, of: &str, what: &str, told: i64, truth: i64, bound: i64) {
        let off = (told - truth).abs();
        assert!(off <= bound, "{what}, {of}: {told} is told, {truth} is true, the bound is {bound}");
        let known = self.0.entry(of.to_owned()).or_default();
        *known = (known.0.max(off), known.1.max(bound), known.2 + 1);
    }
}

/// Of functions, sites, peers and sizes: what the log adds up to, by a key.
fn sums(log: &[Call], key: impl Fn(&Call) -> Option<String>) -> BTreeMap<String, Sum> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    // MPI_Finalize has not ended when the trace is written.
    for call in log.iter().filter(|call| call.function != "MPI_Finalize") {
        let Some(key) = key(call) else { continue };
        let time = call.end - call.start;
        let [calls, total, least, most] = sums.entry(key).or_insert([0, 0, i64::MAX, 0]);
        (*calls, *total) = (*calls + 1, *total + time);
        (*least, *most) = (time.min(*least), time.max(*most));
    }
    sums
}

fn json(words: &[&str]) -> Json {
    let said = run::refrain(words);
    assert_eq!(said.code, 0, "{words:?}: {}", said.stderr);
    Json::parse(&said.stdout).unwrap()
}

/// A number of a row and its bound: none is told where it is exact.
fn told(row: &Json, name: &str) -> (i64, i64) {
    let number = row.get(name).int().unwrap_or_else(|| panic!("{name} in {row}"));
    let bound = row.get(&name.replace("_ns", "_error_ns")).int().unwrap_or(0);
    (number, bound)
}

/// Rows that a table has for a key of the log. Rows that are not in the log are none of its business.
fn table(
    held: &Held,
    (per, rows): (&str, &str),
    of_row: impl Fn(&Json) -> Option<String>,
    of_call: impl Fn(&Call) -> Option<String>,
    deviations: &mut Deviations,
) {
    let what = format!("{} --per {per}", held.what);
    let document = json(&["stats", &held.trace, "--per", per, "--json"]);
    let mut truth = sums(&held.log, of_call);
    for row in document.get(rows).list() {
        let Some(key) = of_row(row) else { continue };
        let Some([calls, total, least, most]) = truth.remove(&key) else {
            panic!("{what}: {row} is not in the log")
        };
        assert_eq!(row.get("calls").int(), Some(calls), "{what}: {row}");
        for (name, truth) in
            [("time_ns", total), ("min_ns", least), ("max_ns", most), ("mean_ns", total / calls)]
        {
            let (told, bound) = told(row, name);
            // Of two roundings of a quotient either is right.
            let bound = bound + i64::from(name == "mean_ns");
            deviations.add(&format!("{per} {name}"), &format!("{what}: {key}"), told, truth, bound);
        }
    }
    assert!(truth.is_empty(), "{what}: nothing is told of {truth:?}");
}

fn name(row: &Json, key: &str) -> Option<String> {
    row.get(key).text().filter(|name| *name != "MPI_Finalize").map(str::to_owned)
}

fn tables(held: &Held, deviations: &mut Deviations) {
    let function = |call: &Call| Some(call.function.clone());
    table(held, ("function", "functions"), |row| name(row, "function"), function, deviations);
    let line = |row: &Json| {
        Some(format!("{} {}", name(row, "function")?, row.get("at").get("line").int().unwrap_or(0)))
    };
    let of_line = |call: &Call| Some(format!("{} {}", call.function, call.line));
    table(held, ("site", "sites"), line, of_line, deviations);
    let sent = |row: &Json| name(row, "function").filter(|function| function.ends_with("send"));
    let peer = |row: &Json| Some(format!("{} {}", sent(row)?, row.get("relative").int()?));
    let of_peer = |call: &Call| Some(format!("{} {}", call.function, call.by?));
    table(held, ("peer", "classes"), peer, of_peer, deviations);
    let bytes = |row: &Json| Some(format!("{} {}", sent(row)?, row.get("min_bytes").int()?));
    let of_bytes = |call: &Call| Some(format!("{} {}", call.function, call.bytes?));
    table(held, ("size", "classes"), bytes, of_bytes, deviations);
}

/// Nothing is told of a run that its log does not say.
fn numbers_are_those_of_the_log(library: Library) {
    let mut deviations = Deviations::default();
    for source in SOURCES {
        let ranks = if library.is_open_mpi() { 3 } else { 4 };
        for held in held(library, source, ranks) {
            tables(&held, &mut deviations);
        }
    }
    for (of, (off, bound, numbers)) in &deviations.0 {
        println!("{of:<24} {numbers:>5} numbers, off by at most {off} ns, at most {bound} ns are told");
    }
}

on_both!(numbers_are_those_of_the_log);
