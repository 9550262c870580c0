//! Pages of traces: of simulated runs of any size, of recorded ones, of runs that died, and of runs without times.

use std::collections::HashMap;
use std::path::Path;

use refrain_fold::ranks::RankList;
use refrain_report::{Input, page};
use refrain_scale::{Options, Pattern, simulate};
use refrain_sites::Binaries;
use refrain_tracefile::profile::Profile;
use refrain_tracefile::{Cores, EXTRAPOLATED, Trace};
use refrain_views::stats;
use serde_json::Value;

/// Whatever the run, a page is no larger.
const LARGEST: usize = 500_000;

fn page_of(trace: &Trace) -> String {
    let names = Binaries::new(&trace.bundle.sites, &[]);
    let input = Input { trace, times: None, names: &names, file: "app.rfn", bytes: 367, between: None };
    page(&input, &mut |_, _, _| {}).unwrap()
}

/// What is embedded in a page.
fn data_of(page: &str) -> Value {
    let mark = "<script id=\"data\" type=\"application/json\">";
    let start = page.find(mark).unwrap() + mark.len();
    serde_json::from_str(&page[start..start + page[start..].find("</script>").unwrap()]).unwrap()
}

#[track_caller]
fn checked(trace: &Trace) -> Value {
    let page = page_of(trace);
    assert!(page.len() < LARGEST, "{} bytes", page.len());
    for mark in ["http://", "https://", "src=", "<link", "<img", "<iframe"] {
        assert!(!page.contains(mark), "{mark}");
    }
    data_of(&page)
}

fn simulated(pattern: &str, ranks: u32, steps: u32) -> Trace {
    let pattern: Pattern = pattern.parse().unwrap();
    simulate(pattern, ranks, steps, &Options::default()).unwrap().trace
}

fn seed(name: &str) -> Trace {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../views/tests/seeds").join(name);
    refrain_tracefile::read(&std::fs::read(path).unwrap()).unwrap()
}

fn seeds() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../views/tests/seeds");
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".rfn")).collect()
}

fn heads(data: &Value) -> Vec<&str> {
    data["flags"].as_array().unwrap().iter().map(|flag| flag["head"].as_str().unwrap()).collect()
}

#[test]
fn thousands_of_ranks_make_a_small_page() {
    let trace = simulated("stencil2d", 4096, 20);
    let data = checked(&trace);
    assert_eq!(data["run"]["ranks"], 4096);
    // Four neighbours on a grid of 64 x 64, each of them missing on one side.
    assert_eq!(data["matrix"]["messages"], 20 * 4 * 63 * 64);
    assert_eq!(data["timeline"]["how"], "order");
    // Corners, sides and the rest: one row each.
    assert_eq!(data["timeline"]["rows"].as_array().unwrap().len(), 3);
    let row = data["kinds"]["row"].as_array().unwrap();
    assert_eq!(row.iter().map(|run| run[1].as_u64().unwrap()).sum::<u64>(), 4096);
}

#[test]
fn the_matrix_is_what_the_pattern_sends() {
    let trace = simulated("torus2d", 16, 5);
    let matrix = stats::matrix(&trace).unwrap();
    assert!(!matrix.about && matrix.left_out == 0);
    let mut sent = vec![0u64; 16];
    for run in &matrix.runs {
        for rank in run.first..=run.last {
            sent[rank as usize] += run.sent.messages;
            let to = i64::from(rank) + run.offset;
            assert!((0..16).contains(&to), "{rank} to {to}");
        }
    }
    assert_eq!(sent, [20; 16], "four neighbours, five steps");
    let told: u128 =
        matrix.runs.iter().map(|run| run.sent.bytes * u128::from(run.last - run.first + 1)).sum();
    let stats = stats::stats(&trace).unwrap();
    let isend = stats.functions.iter().find(|row| row.name == "MPI_Isend").unwrap();
    assert_eq!(told, isend.payload.unwrap().bytes);
    assert_eq!(matrix.sizes.values().map(|sent| sent.bytes).sum::<u128>(), told);
}

/// On communicators of the program's own, calls are read.
#[test]
fn the_matrix_knows_communicators() {
    let trace = simulated("cart-torus2d", 16, 5);
    let matrix = stats::matrix(&trace).unwrap();
    let sent: u64 =
        matrix.runs.iter().map(|run| run.sent.messages * u64::from(run.last - run.first + 1)).sum();
    assert_eq!((sent, matrix.left_out), (16 * 4 * 5, 0));
}

#[test]
fn a_matrix_of_many_stretches_becomes_cells() {
    // Ranks that differ in one bit: hardly two neighbours send as far.
    let trace = simulated("butterfly", 4096, 1);
    let runs = stats::matrix(&trace).unwrap().runs;
    assert!(runs.len() > 6000, "{} are few enough to be told as they are", runs.len());
    let matrix = &checked(&trace)["matrix"];
    assert_eq!(matrix["runs"].as_array().unwrap().len(), 0);
    let cells = matrix["cells"]["rows"].as_array().unwrap();
    let told: u64 = cells.iter().map(|cell| cell[2].as_u64().unwrap()).sum();
    assert_eq!((told, &matrix["messages"]), (4096 * 12, &Value::from(4096 * 12)));
    let bytes: u64 = cells.iter().map(|cell| cell[3].as_u64().unwrap()).sum();
    assert_eq!((bytes > 0, &matrix["bytes"]), (true, &Value::from(bytes)));
}

/// Ranks of a kind may make the same calls more or less often.
#[test]
fn kinds_tell_the_least_and_the_most() {
    let mut differ = 0;
    for name in seeds() {
        let trace = seed(&name);
        let ranks = stats::stats(&trace).unwrap().ranks;
        let kinds = checked(&trace)["kinds"].clone();
        let mut rank = 0;
        let mut calls: HashMap<u64, Vec<u64>> = HashMap::new();
        for run in kinds["row"].as_array().unwrap() {
            for _ in 0..run[1].as_u64().unwrap() {
                calls.entry(run[0].as_u64().unwrap()).or_default().push(ranks[rank].calls);
                rank += 1;
            }
        }
        for (kind, calls) in calls {
            let told = &kinds["described"][kind as usize];
            let (least, most) = (told[2].as_u64().unwrap(), told[3].as_u64().unwrap());
            assert_eq!((Some(&least), Some(&most)), (calls.iter().min(), calls.iter().max()), "{name}");
            differ += usize::from(least < most);
        }
    }
    assert!(differ > 0, "no seed has a kind whose ranks differ");
}

/// Of several threads at once, the times of functions are no part of the time that passed.
#[test]
fn threads_have_no_shares_of_the_time() {
    let shares = |name: &str| {
        let mut trace = seed(name);
        let profiled = profiled(&vec![900; trace.meta.ranks as usize]);
        trace.meta.profile = profiled.meta.profile;
        trace.meta.timed = true;
        for symbol in &mut trace.bundle.symbols {
            (symbol.tally.total, symbol.tally.max) = (3_000_000_000, 3_000_000_000);
        }
        let data = checked(&trace);
        let threads = data["run"]["threads"].as_u64().unwrap();
        let shares = heads(&data).iter().filter(|head| head.contains("% of the time")).count();
        let rows = data["timeline"]["rows"].as_array().unwrap();
        let of_threads = rows.iter().any(|row| row.as_str().unwrap().ends_with(".1"));
        (threads > 1, shares > 0, of_threads)
    };
    let all: Vec<(String, _)> = seeds().into_iter().map(|name| (name.clone(), shares(&name))).collect();
    for (name, (threads, shares, of_threads)) in &all {
        assert!(!threads || !shares, "{name}");
        assert_eq!(threads, of_threads, "{name}: each thread has a row");
    }
    assert!(all.iter().any(|(_, (threads, ..))| *threads) && all.iter().any(|(_, (_, shares, _))| *shares));
}

#[test]
fn lines_join_the_ends_of_messages() {
    // Three ranks in a ring: each sends to the next, five times.
    let data = checked(&simulated("ring", 3, 5));
    let lines = data["timeline"]["messages"].as_array().unwrap();
    let pairs: Vec<(u64, u64)> =
        lines.iter().map(|line| (line[0].as_u64().unwrap(), line[2].as_u64().unwrap())).collect();
    assert!(!pairs.is_empty());
    assert!(pairs.iter().all(|(from, to)| (from + 1) % 3 == *to || (to + 1) % 3 == *from), "{pairs:?}");
    assert!(lines.iter().all(|line| line[1].as_i64() <= line[3].as_i64()), "none comes before it went");
}

#[test]
fn every_kind_of_trace_has_a_page() {
    for entry in
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../views/tests/seeds")).unwrap()
    {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "rfn") {
            let trace = refrain_tracefile::read(&std::fs::read(&path).unwrap()).unwrap();
            let data = checked(&trace);
            assert!(!heads(&data).is_empty(), "{}", path.display());
            assert!(data["loops"]["kinds"].is_array(), "{}: {}", path.display(), data["loops"]);
        }
    }
}

#[test]
fn names_that_others_chose_do_no_harm() {
    let mut trace = seed("ring.rfn");
    let evil = "</script><script>alert('x')</script>";
    trace.meta.command = vec![evil.into(), "--x=\"<b>\"".into()];
    trace.meta.notes = vec![evil.into()];
    trace.meta.hosts[0].0 = evil.into();
    let page = page_of(&trace);
    assert!(!page.contains("<script>alert") && !page.contains("<b>"));
    assert_eq!(data_of(&page)["run"]["command"].as_str().unwrap(), format!("{evil} --x=\"<b>\""));
}

#[test]
fn a_run_that_died_says_so_first() {
    let mut trace = seed("ring.rfn");
    trace.meta.complete = false;
    trace.meta.notes =
        vec!["rank 0: killed or crashed inside MPI_Recv".into(), "rank 1: ended by SIGSEGV".into()];
    let data = checked(&trace);
    assert_eq!(heads(&data)[0], "The run did not finish");
    let text = data["flags"][0]["text"].as_str().unwrap();
    assert_eq!(text, "Rank 1: ended by SIGSEGV. Rank 0: killed or crashed inside MPI_Recv.");
}

/// Ranks that were outside MPI for so many milliseconds of a second, and in `MPI_Allreduce` for the rest.
fn profiled(outside: &[u64]) -> Trace {
    let mut trace = simulated("ring", outside.len() as u32, 5);
    let id = refrain_model::function("MPI_Allreduce").unwrap().id;
    let one = |(rank, ms): (u32, &u64)| {
        let (outside, inside) = (ms * 1_000_000, (1000 - ms) * 1_000_000);
        Profile::of_rank(rank, (outside, inside), [(id, inside)])
    };
    let mut profile = (0..).zip(outside).map(one).fold(Profile::default(), |all, one| all.join(&one));
    profile.settle();
    trace.meta.profile = Some(profile);
    trace.meta.timed = true;
    trace
}

#[test]
fn a_slow_rank_is_named() {
    let data = checked(&profiled(&[500, 500, 950, 500]));
    assert_eq!(heads(&data)[0], "Rank 2 computes ~1.9 times as long as the median rank");
    let text = data["flags"][0]["text"].as_str().unwrap();
    assert!(text.contains("The others wait in MPI_Allreduce"), "{text}");
    let even = checked(&profiled(&[900, 905, 910, 900]));
    assert!(heads(&even).iter().all(|head| !head.contains("computes")), "{:?}", heads(&even));
}

#[test]
fn a_page_says_when_its_times_are_reconstructed() {
    let data = checked(&profiled(&[500, 500, 500, 500]));
    assert_eq!(data["timeline"]["how"], "reconstructed");
    assert!(data["timeline"]["note"].as_str().unwrap().starts_with("Reconstructed: "));
}

/// Whoever shares a core waits for it, and nothing else is said before that.
#[test]
fn ranks_that_share_cores_come_first() {
    let mut trace = simulated("stencil2d", 16, 5);
    trace.meta.profile = profiled(&[900; 16]).meta.profile;
    let ranks: RankList = (0..16).collect();
    let cores = |thousandths| vec![Cores { ranks: ranks.clone(), each: 2, sharing: 16, thousandths }];
    trace.meta.cores = cores(16_000);
    assert!(heads(&checked(&trace)).iter().all(|head| !head.starts_with("Oversubscribed")));
    trace.meta.cores = cores(2_000);
    let data = checked(&trace);
    assert_eq!(heads(&data)[0], "Oversubscribed: 16 ranks share 2 cores");
    assert_eq!(data["run"]["cores"][0], "2 cores for 16 ranks; oversubscribed");
}

/// What the option asked for is not what the trace has.
#[test]
fn times_that_calls_do_not_have_are_not_promised() {
    let mut trace = simulated("ring", 4, 5);
    trace.meta.timed = true;
    assert_eq!(checked(&trace)["run"]["times"], "total, shortest and longest of each kind of call");
    trace.meta.options.push(("time".to_owned(), "exact".to_owned()));
    assert_eq!(checked(&trace)["run"]["times"], "when single calls began and ended: of none of them");
    assert!(!page_of(&trace).contains("to the nanosecond"));
    trace.meta.timed = false;
    assert_eq!(checked(&trace)["run"]["times"], "not kept");
}

#[test]
fn a_prediction_shows_no_command_as_its_own() {
    let mut trace = simulated("ring", 12, 5);
    trace.meta.command = ["mpiexec", "-n", "9", "./ring"].map(str::to_owned).to_vec();
    assert_eq!(checked(&trace)["run"]["command"], "mpiexec -n 9 ./ring");
    trace.meta.options.push((EXTRAPOLATED.to_owned(), "from 4, 9 ranks".to_owned()));
    let told = "predicted for 12 ranks; the largest recorded run: mpiexec -n 9 ./ring";
    assert_eq!(checked(&trace)["run"]["command"], told);
}
