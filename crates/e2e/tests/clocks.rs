//! Clocks that are wrong by what a test says, in real runs: the trace tells by how much, and times that are read are right
//! to within the error that `info` states. All ranks are on one host here, so what is right is known. Ignored in a plain
//! `cargo test`: needs the MPI libraries and the built command.

use refrain_e2e::json::Json;
use refrain_e2e::run::{self, Traced};
use refrain_e2e::{Library, Program};

/// Of each rank: nanoseconds and millionths. Rank 3 is below rank 2 in the tree. Seconds, since a message may take milliseconds
/// where many run: it would not arrive before it was sent.
const SKEWS: [(i64, i64); 4] = [(0, 0), (20_000_000_000, 0), (-15_000_000_000, 0), (7_000_000_000, 500)];
/// Reading two clocks at once takes time: ticks and nanoseconds of each rank are apart by less than this. A rank may lose its
/// core there.
const READING: i64 = 50_000;

/// A turn and an answer each millisecond. `log` has what the ranks' own clocks said around each call.
fn traced(library: Library, skews: &str, more: &[(&'static str, &str)]) -> (Traced, String) {
    let log = run::folder("clocks").join("spans").to_string_lossy().into_owned();
    let program = Program { args: &["150"], ..Program::unwitnessed("pingpong.c") };
    let skews = [("REFRAIN_TIME", "exact"), ("REFRAIN_TEST_CLOCK_SKEW", skews), ("REFRAIN_TEST_SPANS", &log)];
    let traced = run::traced_with(library, &program, 4, &[&skews, more].concat());
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    (traced, log)
}

fn info(traced: &Traced) -> Json {
    let text = run::refrain(&["info", &traced.trace.to_string_lossy(), "--json"]).stdout;
    Json::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn number(json: &Json, key: &str) -> i64 {
    json.get(key).int().unwrap_or_else(|| panic!("{key} in {json:?}"))
}

/// Start and end of every call of a rank that sends or receives a message, and which of both; corrected, as it is read.
fn corrected(dump: &[Vec<Json>]) -> Vec<Vec<(bool, i64, i64)>> {
    let call = |call: &Json| match call.get("call").text() {
        Some("MPI_Send") => Some((true, number(call, "start"), number(call, "end"))),
        Some("MPI_Recv") => Some((false, number(call, "start"), number(call, "end"))),
        _ => None,
    };
    dump.iter().map(|calls| calls.iter().filter_map(call).collect()).collect()
}

/// The same by each rank's own clock.
fn uncorrected(dump: &[Vec<Json>], log: &str) -> Vec<Vec<(bool, i64, i64)>> {
    let of_rank = |(rank, calls): (usize, &Vec<Json>)| {
        let text = std::fs::read_to_string(format!("{log}.{rank}.0")).unwrap();
        assert_eq!(text.lines().count(), calls.len());
        let call = |(call, line): (&Json, &str)| {
            let (start, end) = line.split_once(' ')?;
            let sends = match call.get("call").text()? {
                "MPI_Send" => true,
                "MPI_Recv" => false,
                _ => return None,
            };
            Some((sends, start.parse().ok()?, end.parse().ok()?))
        };
        calls.iter().zip(text.lines()).filter_map(call).collect()
    };
    dump.iter().enumerate().map(of_rank).collect()
}

/// Messages between rank 0 and each other one, of which the program has one under way at a time: how many there are, how many
/// were received before they were sent, and by how much at most.
fn backwards(ranks: &[Vec<(bool, i64, i64)>]) -> (usize, usize, i64) {
    let others = ranks.len() - 1;
    let (mut all, mut bad, mut most) = (0, 0, 0);
    for other in 1..ranks.len() {
        // Rank 0 goes from one to the next: two calls each.
        let zero = ranks[0].chunks(2).skip(other - 1).step_by(others).flatten();
        for (&(sends, start, end), &(sent, their_start, their_end)) in zero.zip(&ranks[other]) {
            assert_ne!(sends, sent);
            let early = if sends { start - their_end } else { their_start - end };
            (all, bad, most) = (all + 1, bad + usize::from(early > 0), most.max(early));
        }
    }
    (all, bad, most)
}

fn skewed_clocks_are_corrected(library: Library) {
    let words = SKEWS.iter().enumerate().map(|(rank, (offset, drift))| format!("{rank}:{offset}:{drift}"));
    let (traced, log) = traced(library, &words.collect::<Vec<_>>().join(","), &[]);
    let info = info(&traced);
    let clocks = info.get("clocks").get("clocks").list();
    assert_eq!(clocks.len(), 4, "{info:?}");
    for (rank, (clock, (offset, drift))) in clocks.iter().zip(SKEWS).enumerate() {
        let (start, end) = (clock.get("start"), clock.get("end"));
        let lasted = number(end, "at_ns") - number(start, "at_ns");
        for point in [start, end].into_iter().filter(|_| drift == 0) {
            let (told, error) = (number(point, "offset_ns"), number(point, "error_ns"));
            let off = (told + offset).abs();
            println!("{library:?}, rank {rank}: offset {told} ns, off by {off} ns, error told {error} ns");
            assert!(off <= error + 2 * READING, "rank {rank}: {told} instead of {}: {error}", -offset);
        }
        let change = number(end, "offset_ns") - number(start, "offset_ns");
        let expected = -lasted * drift / (1_000_000 + drift);
        let error = number(start, "error_ns") + number(end, "error_ns");
        println!(
            "{library:?}, rank {rank}: {change} ns in {lasted} ns, expected {expected}, error told {error} ns"
        );
        assert!((change - expected).abs() <= error + 2 * READING, "rank {rank}: {change}, not {expected}");
    }
    let dump = traced.dump();
    let (before, after) = (backwards(&uncorrected(&dump, &log)), backwards(&corrected(&dump)));
    println!(
        "{library:?}: messages, received before they were sent, by at most ns: {before:?}, corrected {after:?}"
    );
    assert_eq!((before.0, after.0), (900, 900));
    // Each rank sends one half of its messages and receives the other: one of both is backwards. Only one that takes seconds is not.
    assert!(before.1 >= 400 && before.2 > 10_000_000_000, "{before:?}");
    // What is left is less than the errors of two ranks.
    let error = number(info.get("clocks"), "error_ns");
    assert!(after.2 <= 2 * error, "{after:?}, error told {error}");
}

on_both!(skewed_clocks_are_corrected);

/// Nothing is corrected where all have the same clock, whichever is read.
fn ranks_of_one_host_have_one_clock(library: Library) {
    for clock in ["", "monotonic"] {
        let (traced, log) = traced(library, "", &[("REFRAIN_TEST_CLOCK", clock)]);
        let info = info(&traced);
        let clocks = info.get("clocks").get("clocks").list();
        assert_eq!(clocks.len(), 1, "{info:?}");
        assert_eq!(clocks[0].get("ranks").text(), Some("0-3"));
        assert_eq!((number(info.get("clocks"), "offset_ns"), number(&clocks[0], "drift_ppb")), (0, 0));
        if clock == "monotonic" {
            assert_eq!(clocks[0].get("counter").to_string(), "false");
            assert_eq!(number(clocks[0].get("start"), "error_ns"), 0);
        }
        println!("{library:?}: messages agree to {} ns", number(&clocks[0], "residual_ns"));
        let dump = traced.dump();
        let (raw, read) = (backwards(&uncorrected(&dump, &log)), backwards(&corrected(&dump)));
        assert_eq!(raw, read);
    }
}

on_both!(ranks_of_one_host_have_one_clock);

/// Where no times of calls are kept no clock is compared: the trace has nothing of it.
#[test]
#[ignore = "needs MPI: `make test`"]
fn without_times_of_calls_no_clock_is_compared() {
    let program = Program { args: &["5"], ..Program::unwitnessed("pingpong.c") };
    let traced = run::traced_with(Library::Mpich, &program, 2, &[("REFRAIN_TIME", "mean")]);
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    assert!(!info(&traced).has("clocks"));
}
