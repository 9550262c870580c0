//! Numbers that are told of a run, held against a plain log of the same run: an imbalanced heat equation with a late sender in C, in
//! Fortran and in Python. What was called comes from the witness, or from the script itself; how long it took comes from the recorder's
//! clock, as it was read around each call, and lies within what the witness saw on its own clock.
//!
//! `cargo test ... told:: -- --nocapture` prints the largest deviations.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use refrain_e2e::json::Json;
use refrain_e2e::run::{self, Setting, Traced};
use refrain_e2e::{Library, Program, build, check};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Program(&'static str),
    Script(&'static str),
}

impl Source {
    fn is_script(self) -> bool {
        matches!(self, Source::Script(_))
    }
}

const SOURCES: [Source; 3] =
    [Source::Program("heat.c"), Source::Program("f_heat.f90"), Source::Script("heat.py")];

/// A call of the log.
#[derive(Debug, Clone)]
struct Call {
    rank: i64,
    function: String,
    line: i64,
    /// How many ranks further the message goes, its bytes and its tag.
    by: Option<i64>,
    bytes: Option<i64>,
    tag: Option<i64>,
    start: i64,
    end: i64,
}

/// A run, its log, and its trace: with the times of single calls, or with sums alone.
struct Held {
    what: String,
    trace: String,
    /// Nothing of it is rounded.
    is_exact: bool,
    log: Vec<Call>,
}

fn recorded(
    library: Library,
    source: Source,
    ranks: u32,
    options: &'static [&'static str],
) -> (Traced, Held) {
    let what = format!("{source:?} on {ranks} ranks of {}", library.suffix());
    let spans = run::folder("told").join("spans");
    let more = [("REFRAIN_TEST_SPANS", spans.to_str().unwrap())];
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
    (traced, Held { what, trace, is_exact: true, log })
}

impl Held {
    /// The log has the times of calls in whole nanoseconds, a rank adds up ticks.
    fn rounding(&self) -> i64 {
        if self.is_exact { 0 } else { self.log.len() as i64 }
    }
}

/// With the times of single calls, and with sums alone.
fn held(library: Library, source: Source, ranks: u32, options: &'static [&'static str]) -> [Held; 2] {
    let (traced, exact) = recorded(library, source, ranks, options);
    let Held { what, trace, log, .. } = &exact;
    // The text form has what ranks added up while they ran, as a trace has it that is recorded without further options.
    let text = run::refrain(&["loops", trace, "--text"]);
    assert_eq!(text.code, 0, "{what}: {}", text.stderr);
    let (from, pooled) = (traced.folder().join("sums.txt"), traced.folder().join("sums.rfn"));
    fs::write(&from, text.stdout).unwrap();
    let pooled = pooled.to_string_lossy().into_owned();
    let made = run::refrain(&["import", &from.to_string_lossy(), "-o", &pooled]);
    assert_eq!(made.code, 0, "{what}: {}", made.stderr);
    let sums = Held { what: format!("{what}, sums"), trace: pooled, is_exact: false, log: log.clone() };
    [exact, sums]
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
        tag: args.get("tag").int().filter(|_| sends),
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
            assert!(!held.is_exact || bound == 0, "{what}: {name} of {row}");
            // Sums are kept to within 1/32; what is told together with others has none of its own.
            assert!(per != "function" || bound <= told / 31 + 1, "{what}: {name} of {row}");
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

/// Of each rank: from the start of MPI_Init to that of MPI_Finalize, and outside MPI.
fn by_rank(log: &[Call]) -> Vec<(i64, i64)> {
    let ranks = log.iter().map(|call| call.rank).max().unwrap() + 1;
    let of = |rank: i64| {
        let own = log.iter().filter(|call| call.rank == rank);
        // A script first asks whether MPI is there.
        let own: Vec<&Call> = own
            .skip_while(|call| !call.function.starts_with("MPI_Init_thread") && call.function != "MPI_Init")
            .collect();
        let (first, last) = (own[0], own[own.len() - 1]);
        assert_eq!(last.function, "MPI_Finalize");
        let wall = last.start - first.start;
        let inside: i64 = own[..own.len() - 1].iter().map(|call| call.end - call.start).sum();
        (wall, wall - inside)
    };
    (0..ranks).map(of).collect()
}

/// `stats --per rank`, and the two numbers that shares are made with.
fn ranks(held: &Held, deviations: &mut Deviations) {
    let document = json(&["stats", &held.trace, "--per", "rank", "--json"]);
    let truth = by_rank(&held.log);
    let rows = document.get("by_rank").list();
    assert_eq!(rows.len(), truth.len(), "{}", held.what);
    for (row, (wall, outside)) in rows.iter().zip(&truth) {
        for (name, truth) in [("wall_ns", *wall), ("outside_ns", *outside), ("mpi_ns", wall - outside)] {
            let (told, bound) = told(row, name);
            assert!(!held.is_exact || bound == 0, "{}: {name} of {row}", held.what);
            let bound = bound + held.rounding();
            deviations.add(&format!("rank {name}"), &format!("{}: {row}", held.what), told, truth, bound);
        }
    }
    // Sums do not tell who waited for whom.
    let waits = match held.is_exact {
        true => json(&["stats", &held.trace, "--waits", "--json"]),
        false => Json::parse("{}").unwrap(),
    };
    let longest = truth.iter().map(|rank| rank.0).max().unwrap();
    let all = truth.iter().map(|rank| rank.0).sum();
    for (document, name, truth) in [
        (&document, "run_ns", longest),
        (&document, "all_ranks_ns", all),
        (&waits, "span_ns", longest),
        (&waits, "all_ranks_ns", all),
    ] {
        if document.members().is_empty() {
            continue;
        }
        let (told, bound) = told(document, name);
        let bound = bound + held.rounding();
        deviations.add(&format!("run {name}"), &held.what, told, truth, bound);
    }
}

/// How long the first rank waited for the last one, which is late: receives and sends in their order.
fn late_sender(held: &Held, deviations: &mut Deviations) {
    let of = |function: &str| held.log.iter().filter(|call| call.function == function).collect::<Vec<_>>();
    let (receives, sends) = (of("MPI_Recv"), of("MPI_Send"));
    assert_eq!((receives.len(), sends.len()), (4, 4), "{}", held.what);
    let pairs = receives.iter().zip(&sends);
    let waits = pairs.map(|(receive, send)| (send.start.min(receive.end) - receive.start).max(0));
    let waits: Vec<i64> = waits.filter(|wait| *wait > 0).collect();
    let document = json(&["stats", &held.trace, "--waits", "--json"]);
    let is_it = |row: &&Json| {
        let named = |key: &str, name: &str| row.get(key).text() == Some(name);
        named("pattern", "late_sender") && named("function", "MPI_Recv")
    };
    let Some(row) = document.get("waits").list().iter().find(is_it) else {
        assert!(waits.is_empty(), "{}: nothing is told of {waits:?}", held.what);
        return;
    };
    assert_eq!(row.get("count").int(), Some(waits.len() as i64), "{}: {row}", held.what);
    let truths = [("total_ns", waits.iter().sum()), ("longest_ns", *waits.iter().max().unwrap())];
    for (name, truth) in truths {
        let (told, bound) = told(row, name);
        deviations.add(&format!("waits {name}"), &held.what, told, truth, bound);
    }
}

/// The page has the numbers of `stats`.
fn page(held: &Held, deviations: &mut Deviations) {
    let made = format!("{}.html", held.trace);
    let told = run::refrain(&["report", &held.trace, "-o", &made]);
    assert_eq!(told.code, 0, "{}: {}", held.what, told.stderr);
    let page = fs::read_to_string(made).unwrap();
    let (_, data) = page.split_once("<script id=\"data\" type=\"application/json\">").unwrap();
    let data = Json::parse(data.split_once("</script>").unwrap().0).unwrap();
    let walls: Vec<i64> = by_rank(&held.log).iter().map(|rank| rank.0).collect();
    let stats = json(&["stats", &held.trace, "--json"]);
    for (name, like, truth) in
        [("run_ns", "run_ns", *walls.iter().max().unwrap()), ("all_ns", "all_ranks_ns", walls.iter().sum())]
    {
        let number = data.get("run").get(name).int().unwrap();
        let bound = self::told(&stats, like).1 + held.rounding();
        deviations.add(&format!("page {name}"), &held.what, number, truth, bound);
    }
    let truth = sums(&held.log, |call| Some(call.function.clone()));
    let mut found = 0;
    for row in data.get("functions").list() {
        let [function, calls, _, total, _, longest] = row.list() else { panic!("{row}") };
        let Some([count, sum, _, most]) = truth.get(function.text().unwrap()) else { continue };
        assert_eq!(calls.int(), Some(*count), "{}: {row}", held.what);
        let functions = stats.get("functions").list().iter();
        let row = functions.clone().find(|row| row.get("function").text() == function.text()).unwrap();
        for (number, name, truth) in [(total, "time_ns", *sum), (longest, "max_ns", *most)] {
            let bound = self::told(row, name).1;
            deviations.add(&format!("page {name}"), &held.what, number.int().unwrap(), truth, bound);
        }
        found += 1;
    }
    assert_eq!(found, truth.len(), "{}", held.what);
}

/// `diff --time` of the exact trace with the one that has sums: the same run, twice.
fn difference(exact: &Held, sums: &Held, deviations: &mut Deviations) {
    let said = run::refrain(&["diff", "--time", "--json", &exact.trace, &sums.trace]);
    assert!(said.code < 2, "{}: {}", exact.what, said.stderr);
    let document = Json::parse(&said.stdout).unwrap();
    let truth = by_rank(&exact.log);
    let rows = document.get("times").get("ranks").list();
    for row in rows {
        let rank = row.get("rank").int().unwrap();
        let (wall, outside) = truth[rank as usize];
        for (name, truth) in [("run", wall), ("outside", outside)] {
            for (side, held) in [("a", exact), ("b", sums)] {
                let number = |part: &str| row.get(&format!("{name}_{part}")).get(side).int().unwrap();
                let (told, bound) = (number("ns"), number("error_ns") + held.rounding());
                deviations.add(&format!("diff {name}_ns {side}"), &exact.what, told, truth, bound);
            }
        }
    }
    assert_eq!(rows.len(), truth.len(), "{}: {document}", exact.what);
}

/// Python has what the commands have.
fn python(held: &Held) {
    let modules = build::python_module(Path::new(&held.trace).parent().unwrap());
    let script = "import json, refrain, sys\nt = refrain.open(sys.argv[1])\nprint(json.dumps([t.info, t.stats(), t.stats('site'), t.waits()]))";
    let told = std::process::Command::new(build::python(Library::OpenMpi))
        .args(["-c", script, &held.trace])
        .env("PYTHONPATH", modules)
        .output()
        .unwrap();
    assert!(told.status.success(), "{}: {}", held.what, String::from_utf8_lossy(&told.stderr));
    let told = Json::parse(&String::from_utf8_lossy(&told.stdout)).unwrap();
    let commands: [&[&str]; 4] = [&["info"], &["stats"], &["stats", "--per", "site"], &["stats", "--waits"]];
    for (document, words) in told.list().iter().zip(commands) {
        let command = json(&[words, &[held.trace.as_str(), "--json"]].concat());
        let without_file = |json: &Json| match json {
            Json::Object(members) => members.iter().filter(|(name, _)| name != "file").cloned().collect(),
            _ => Vec::new(),
        };
        assert_eq!(without_file(document), without_file(&command), "{}: {words:?}", held.what);
    }
}

/// Nothing is told of a run that its log does not say.
fn numbers_are_those_of_the_log(library: Library) {
    let mut deviations = Deviations::default();
    // Debian's mpi4py is made for Open MPI.
    for source in SOURCES.into_iter().filter(|source| library.is_open_mpi() || !source.is_script()) {
        let ranks = if library.is_open_mpi() { 3 } else { 4 };
        let both = held(library, source, ranks, &["--stacks", "site", "--time", "exact"]);
        for held in &both {
            tables(held, &mut deviations);
            self::ranks(held, &mut deviations);
            page(held, &mut deviations);
        }
        python(&both[0]);
        late_sender(&both[0], &mut deviations);
        difference(&both[0], &both[1], &mut deviations);
    }
    deviations.print();
}

/// Each signature has times of its own, exact or summed up while the program ran.
fn signatures_have_times_of_their_own(library: Library) {
    let mut deviations = Deviations::default();
    let split = &["--stacks", "site", "--time", "exact", "--split", "off"];
    let both = held(library, SOURCES[0], 4, split);
    for held in &both {
        let of_row = |row: &Json| {
            let function = name(row, "function").filter(|function| function.ends_with("send"))?;
            let arguments = row.get("arguments").text()?;
            let of = |name: &str| {
                let said = arguments.split(", ").filter_map(|said| said.split_once('='));
                said.into_iter().find(|(of, _)| *of == name)?.1.parse::<i64>().ok()
            };
            Some(format!("{function} {} {} {}", of("dest")?, of("count")? * 8, of("tag")?))
        };
        let of_call =
            |call: &Call| Some(format!("{} {} {} {}", call.function, call.by?, call.bytes?, call.tag?));
        table(held, ("signature", "signatures"), of_row, of_call, &mut deviations);
    }
    deviations.print();
    // One word asks for them.
    let program = Program { source: "heat.c", ..Program::named("ring") };
    let setting = Setting { name: "signature", options: &["--time", "mean=signature"], ..Setting::DEFAULT };
    let alone = run::traced_as(library, &program, 4, setting);
    let rows = |trace: &str| -> BTreeSet<String> {
        let document = json(&["stats", trace, "--per", "signature", "--json"]);
        let said =
            |row: &Json| format!("{} {} {}", row.get("function"), row.get("arguments"), row.get("calls"));
        document.get("signatures").list().iter().map(said).collect()
    };
    assert_eq!(rows(&alone.trace.to_string_lossy()), rows(&both[0].trace));
}

impl Deviations {
    fn print(&self) {
        for (of, (off, bound, numbers)) in &self.0 {
            println!(
                "{of:<24} {numbers:>5} numbers, off by at most {off} ns, at most {bound} ns are allowed"
            );
        }
    }
}

on_both!(numbers_are_those_of_the_log);
on_both!(signatures_have_times_of_their_own);
