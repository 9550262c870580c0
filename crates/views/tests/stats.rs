//! Statistics from the folded form are those of the calls.

use crate::common;

use common::{Encoded, alike, alltoall, call, contiguous, send, split, trace_of};
use fastrand::Rng;
use refrain_fold::bundle::classes::Kind;
use refrain_fold::bundle::{Class, Classes, Tally};
use refrain_tracefile::{Cores, Profile, Trace};
use refrain_views::plot;
use refrain_views::stats::{
    Amount, By, Per, Run, Sent, Stats, classes, matrix, stats, write_classes_json, write_classes_text,
    write_json, write_text,
};

fn payload_of(stats: &Stats, function: &str) -> Amount {
    let row = stats.functions.iter().find(|r| r.name == function).unwrap_or_else(|| panic!("no {function}"));
    row.payload.unwrap_or_else(|| panic!("{function} gives no data"))
}

/// The payload of the last call's function over `ranks` ranks, and whether it took reading the calls.
#[track_caller]
fn check(ranks: usize, calls: &[Encoded], function: &str, bytes: u128, walked: bool) {
    let trace = alike(ranks, calls);
    let folded = stats(&trace).unwrap();
    assert_eq!(payload_of(&folded, function), Amount { bytes, exact: true }, "{function}");
    assert_eq!(folded.walked > 0, walked, "{function}: walked");
    let inline: Vec<Encoded> = calls.iter().cloned().map(Encoded::inline).collect();
    let inline = stats(&alike(ranks, &inline)).unwrap();
    assert_eq!(payload_of(&inline, function), Amount { bytes, exact: true }, "{function}, split off");
    assert_eq!(inline.ranks, folded.ranks);
}

#[test]
fn point_to_point() {
    check(1, &[send(10, "MPI_INT")], "MPI_Send", 40, false);
    check(3, &[send(10, "MPI_INT"), send(1, "MPI_DOUBLE")], "MPI_Send", 3 * 48, false);
    let growing: Vec<Encoded> = (0..100).map(|i| send(i, "MPI_CHAR")).collect();
    check(2, &growing, "MPI_Send", 2 * 4950, false);
    let nobody = call("MPI_Send").buffer().number(10).object("MPI_INT").named("MPI_PROC_NULL").tagged(9);
    check(1, &[nobody.object("MPI_COMM_WORLD")], "MPI_Send", 0, false);
    let failed = call("MPI_Send").failed().buffer().number(10).object("MPI_INT").tagged(1).tagged(9);
    check(1, &[failed.object("MPI_COMM_WORLD").number(5)], "MPI_Send", 0, false);
}

#[test]
fn derived_types_by_their_size() {
    check(2, &[contiguous(3, 0, 12), send(5, "#0")], "MPI_Send", 2 * 60, false);
    let loops: Vec<Encoded> = (0..50).flat_map(|_| [contiguous(3, 0, 12), send(5, "#0")]).collect();
    check(2, &loops, "MPI_Send", 2 * 50 * 60, false);
    // The same id, another size: only the order of the calls tells.
    let reused = [contiguous(3, 0, 12), send(5, "#0"), contiguous(4, 0, 16), send(5, "#0")];
    check(2, &reused, "MPI_Send", 2 * (60 + 80), true);
    // Ids and sizes that go together.
    let many: Vec<Encoded> = (0..20).map(|i| contiguous(i, i, 4 * i)).chain([send(1, "#7")]).collect();
    check(1, &many, "MPI_Send", 28, false);
}

/// Promise: the table costs time in the size of the file. What only the calls could tell is a lower bound then.
#[test]
fn runs_too_long_to_read() {
    let mut trace =
        alike(2, &[contiguous(3, 0, 12), send(5, "#0"), contiguous(4, 0, 16), send(5, "MPI_INT")]);
    let mut grammar = trace.bundle.structures[0].rules().unwrap().open().into_owned();
    for item in &mut grammar.rules[0] {
        item.count = 1 << 61;
    }
    trace.bundle.structures[0] = grammar.into();
    let stats = stats(&trace).unwrap();
    assert_eq!(payload_of(&stats, "MPI_Send"), Amount { bytes: (2 * 20) << 61, exact: false });
    assert_eq!((stats.walked, stats.ranks[0].calls), (0, 1 << 63));
}

#[test]
fn a_type_nobody_saw_being_made() {
    let unseen = stats(&alike(2, &[send(1, "MPI_INT"), send(5, "#9")])).unwrap();
    assert_eq!(payload_of(&unseen, "MPI_Send"), Amount { bytes: 8, exact: false });
}

#[test]
fn types_made_by_another_thread() {
    let threads = vec![vec![contiguous(3, 0, 12)], vec![send(5, "#0")]];
    let stats = stats(&trace_of(&[threads.clone(), threads])).unwrap();
    assert_eq!(payload_of(&stats, "MPI_Send"), Amount { bytes: 120, exact: true });
    assert_eq!(stats.ranks[1].calls, 2);
}

#[test]
fn collectives() {
    check(4, &[alltoall(3, "MPI_INT", "MPI_COMM_WORLD")], "MPI_Alltoall", 4 * 4 * 12, false);
    check(4, &[alltoall(3, "MPI_INT", "MPI_COMM_SELF")], "MPI_Alltoall", 4 * 12, false);
    check(4, &[split(0, 0, &[0, 1, 2]), alltoall(3, "MPI_INT", "#0")], "MPI_Alltoall", 4 * 3 * 12, false);
    // The same id, another size: only the order of the calls tells.
    let small = [split(0, 0, &[0, 1, 2]), alltoall(3, "MPI_INT", "#0")];
    let large = [split(0, 1, &[0, 1, 2, 3]), alltoall(3, "MPI_INT", "#0")];
    check(4, &[small, large].concat(), "MPI_Alltoall", 4 * (3 + 4) * 12, true);
    let in_place = call("MPI_Alltoall").named("MPI_IN_PLACE").absent().absent();
    check(
        4,
        &[in_place.buffer().number(3).object("MPI_INT").object("MPI_COMM_WORLD")],
        "MPI_Alltoall",
        4 * 4 * 12,
        false,
    );
    let bcast = call("MPI_Bcast").buffer().tagged(8).object("MPI_BYTE").tagged(0).object("MPI_COMM_WORLD");
    check(3, &[bcast], "MPI_Bcast", 24, false);
    let block = call("MPI_Reduce_scatter_block").buffer().buffer().number(2).object("MPI_DOUBLE");
    let block = block.object("MPI_SUM").object("MPI_COMM_WORLD");
    check(4, &[block], "MPI_Reduce_scatter_block", 4 * 4 * 16, false);
}

#[test]
fn neighbours() {
    let exchange = |comm: &str| {
        let sent = call("MPI_Neighbor_alltoall").buffer().number(3).object("MPI_INT");
        sent.buffer().number(3).object("MPI_INT").object(comm)
    };
    let cart = call("MPI_Cart_create").object("MPI_COMM_WORLD").number(2).elements(&[2, 2]).elements(&[1, 0]);
    let cart = cart.number(0).comm_as_parent(0, 0);
    check(4, &[cart.clone(), exchange("#0")], "MPI_Neighbor_alltoall", 4 * 4 * 12, true);
    let copy = call("MPI_Comm_dup").object("#0").comm_as_parent(1, 0);
    check(4, &[cart, copy, exchange("#1")], "MPI_Neighbor_alltoall", 4 * 4 * 12, true);
    let graph =
        call("MPI_Dist_graph_create").object("MPI_COMM_WORLD").number(1).elements(&[0]).elements(&[1]);
    let graph =
        graph.list(&[1]).named("MPI_UNWEIGHTED").object("MPI_INFO_NULL").number(0).comm_as_parent(0, 0);
    let unasked = stats(&alike(2, &[graph.clone(), exchange("#0")])).unwrap();
    assert_eq!(payload_of(&unasked, "MPI_Neighbor_alltoall"), Amount { bytes: 0, exact: false });
    let ask = call("MPI_Dist_graph_neighbors_count").object("#0").tagged(1).tagged(5).tagged(0);
    check(2, &[graph, ask, exchange("#0")], "MPI_Neighbor_alltoall", 2 * 5 * 12, true);
}

fn alltoallw(counts: &[i64], types: &[&str]) -> Encoded {
    let zeros = vec![0; counts.len()];
    let sent = call("MPI_Alltoallw").buffer().list(counts).list(&zeros).types(types);
    sent.buffer().list(counts).list(&zeros).types(types).object("MPI_COMM_WORLD")
}

#[test]
fn counts_in_arrays() {
    let v = |counts: &[i64]| {
        let zeros = vec![0; counts.len()];
        let sent = call("MPI_Alltoallv").buffer().list(counts).list(&zeros).object("MPI_INT");
        sent.buffer().list(counts).list(&zeros).object("MPI_INT").object("MPI_COMM_WORLD")
    };
    check(3, &[v(&[1, 2, 3]), v(&[5, 5, 5])], "MPI_Alltoallv", 3 * 4 * 21, false);
    check(2, &[alltoallw(&[3, 4], &["MPI_INT", "MPI_INT"])], "MPI_Alltoallw", 2 * 28, false);
    let mixed =
        [alltoallw(&[3, 4], &["MPI_INT", "MPI_DOUBLE"]), alltoallw(&[1, 1], &["MPI_CHAR", "MPI_CHAR"])];
    check(2, &mixed, "MPI_Alltoallw", 2 * (12 + 32 + 2), true);
}

/// Random programs: what the folded form says is what a counter beside the program says, on every rank.
#[test]
fn random_programs() {
    let mut random = Rng::with_seed(0x2545_f491_4f6c_dd1d);
    for _ in 0..60 {
        let ranks = 1 + random.u64(..4) as usize;
        let mut expected = vec![(0u64, 0u128); ranks];
        let mut programs = Vec::new();
        for (calls, bytes) in &mut expected {
            let mut sizes = [0u128; 3];
            let mut program = Vec::new();
            for _ in 0..random.u64(..40) {
                let id = random.u64(..3) as usize;
                let count = random.u64(..5) as i64;
                match random.u64(..4) {
                    0 => {
                        sizes[id] = u128::from(4 * random.u64(..3));
                        program.push(contiguous(1, id as i64, sizes[id] as i64));
                    }
                    // A type that was never made has no size to expect.
                    1 if sizes[id] > 0 => {
                        program.push(send(count, &format!("#{id}")));
                        *bytes += count as u128 * sizes[id];
                    }
                    2 => {
                        program.push(alltoall(count, "MPI_INT", "MPI_COMM_WORLD"));
                        *bytes += count as u128 * 4 * ranks as u128;
                    }
                    _ => {
                        program.push(send(count, "MPI_DOUBLE"));
                        *bytes += count as u128 * 8;
                    }
                }
            }
            *calls = program.len() as u64;
            programs.push(vec![program]);
        }
        let stats = stats(&trace_of(&programs)).unwrap();
        let found: Vec<_> = stats.ranks.iter().map(|r| (r.calls, r.payload.bytes)).collect();
        assert_eq!(found, expected);
        assert_eq!(
            stats.functions.iter().map(|f| f.calls).sum::<u64>(),
            expected.iter().map(|e| e.0).sum::<u64>()
        );
        let by_function: u128 = stats.functions.iter().filter_map(|f| f.payload).map(|p| p.bytes).sum();
        assert_eq!(by_function, expected.iter().map(|e| e.1).sum());
    }
}

/// Ranks are told together only where they send as many bytes, not just as many messages.
#[test]
fn ranks_that_send_other_amounts_have_runs_of_their_own() {
    let rank = |counts: &[i64]| vec![counts.iter().map(|count| send(*count, "MPI_INT")).collect()];
    let found = matrix(&trace_of(&[rank(&[1]), rank(&[1]), rank(&[5]), rank(&[5, 5]), rank(&[9])])).unwrap();
    let run = |(first, last): (u32, u32), messages, bytes| Run {
        offset: 1,
        first,
        last,
        sent: Sent { messages, bytes },
    };
    assert_eq!(found.runs, [run((0, 1), 1, 4), run((2, 2), 1, 20), run((3, 3), 2, 40)]);
    // The last one sends to a rank that is not there.
    assert_eq!((found.left_out, found.about), (1, false));
}

fn text(trace: &Trace, per: Per) -> String {
    let mut out = Vec::new();
    write_text(trace, &stats(trace).unwrap(), per, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_tables() {
    let calls: Vec<Encoded> = (0..300).map(|_| send(256, "MPI_INT")).chain([contiguous(1, 0, 4)]).collect();
    let mut trace = alike(4, &calls);
    let functions = text(&trace, Per::Function);
    let mut lines = functions.lines();
    assert_eq!(
        lines.next(),
        Some("function             calls   payload     time     mean      min      max    of run")
    );
    assert_eq!(
        lines.next(),
        Some("MPI_Send             1,200  1.17 MiB  ~120 us  ~100 ns  ~100 ns  ~100 ns  ~1997.3%")
    );
    let ranks = text(&trace, Per::Rank);
    assert!(ranks.contains("0-3         4         301       300 KiB\n"), "{ranks}");
    for line in [
        "rank      wall  outside MPI   in MPI  of wall  most of it in\n",
        "0      1.90 us      1.00 us   900 ns    47.4%       MPI_Send  ~912 ns\n",
        "1      1.10 us      1.00 us   100 ns     9.1%       MPI_Send  ~104 ns\n",
        "2     ~1.50 us      1.00 us  ~504 ns   ~33.5%       MPI_Send  ~504 ns\n",
        "mean  ~1.50 us      1.00 us  ~502 ns   ~33.4%\n",
        "Ranks spent 1.00 us to 1.00 us outside MPI: they are 0 ns apart, ~0.0% of the wall time.\n",
    ] {
        assert!(ranks.contains(line), "{line}{ranks}");
    }

    let mut unfinished = alike(4, &[send(1, "MPI_INT"), call("MPI_Finalize")]);
    unfinished.bundle.symbols[1].tally = Tally { total: 0, min: 0, max: 0 };
    let functions = text(&unfinished, Per::Function);
    let row = functions.lines().find(|l| l.starts_with("MPI_Finalize")).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["MPI_Finalize", "4", "-", "-", "-", "-", "-", "-"]
    );
    assert!(functions.contains("MPI_Finalize has no time"), "{functions}");

    trace.meta.timed = false;
    let untimed = text(&trace, Per::Function);
    assert!(untimed.contains("Time was not kept"), "{untimed}");

    let mut out = Vec::new();
    write_json(&trace, &stats(&trace).unwrap(), Per::Both, &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        concat!(
            r#"{"schema":"refrain-stats-1","ranks":4,"run_ns":1900,"all_ranks_ns":6008,"all_ranks_error_ns":16,"#,
            r#""calls":1204,"payload":1228800,"#,
            r#""functions":[{"function":"MPI_Send","calls":1200,"payload":1228800},"#,
            r#"{"function":"MPI_Type_contiguous","calls":4}],"#,
            r#""by_rank":[{"rank":0,"calls":301,"payload":307200,"wall_ns":1900,"outside_ns":1000,"mpi_ns":900,"#,
            r#""functions":[{"function":"MPI_Send","time_ns":912,"time_error_ns":16}]},"#,
            r#"{"rank":1,"calls":301,"payload":307200,"wall_ns":1100,"outside_ns":1000,"mpi_ns":100,"#,
            r#""functions":[{"function":"MPI_Send","time_ns":104,"time_error_ns":8}]},"#,
            r#"{"rank":2,"calls":301,"payload":307200,"wall_ns":1504,"wall_error_ns":8,"outside_ns":1000,"mpi_ns":504,"#,
            r#""mpi_error_ns":8,"functions":[{"function":"MPI_Send","time_ns":504,"time_error_ns":8}]},"#,
            r#"{"rank":3,"calls":301,"payload":307200,"wall_ns":1504,"wall_error_ns":8,"outside_ns":1000,"mpi_ns":504,"#,
            r#""mpi_error_ns":8,"functions":[{"function":"MPI_Send","time_ns":504,"time_error_ns":8}]}],"#,
            r#""verdict":"Ranks spent 1.00 us to 1.00 us outside MPI: they are 0 ns apart, ~0.0% of the wall time.","#,
            r#""mpi_time":{"total_ns":0,"min_ns":100,"min_rank":1,"max_ns":900,"max_rank":0,"#,
            r#""by_rank_least_told_ns":16}}"#,
            "\n"
        )
    );
}

/// A plot has the numbers of the tables: of the same base, with the same marks. Ranks that shared a core are said before one is blamed.
#[test]
fn a_plot_says_what_the_tables_say() {
    let calls: Vec<Encoded> = (0..300).map(|_| send(256, "MPI_INT")).chain([contiguous(1, 0, 4)]).collect();
    let mut trace = alike(4, &calls);
    let words = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let plot = |trace: &Trace| {
        let mut out = Vec::new();
        plot::calls(trace, &plot::Canvas { width: 80, unicode: false }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let plain = plot(&trace);
    for end in [
        "# ~120 us ~1997.3% 1,200 calls",
        "share of it",
        ". 1.00 us 900 ns 47.4%",
        ". 1.00 us ~504 ns ~33.5%",
        "\"of run\" is of the times of all ranks together, ~6.01 us.",
        "~: right to within 3.2% or 0.2% of the wall time.",
    ] {
        assert!(words(&plain).iter().any(|line| line.ends_with(end)), "{end} in {plain}");
    }
    let tables = text(&trace, Per::Both);
    assert!(!plain.contains("shared") && !tables.contains("shared"), "{plain}{tables}");
    let cores = |thousandths| Cores { ranks: (0..4).collect(), each: 1, sharing: 4, thousandths };
    trace.meta.cores = vec![cores(4000)];
    assert_eq!(plot(&trace), plain);
    trace.meta.cores = vec![cores(1000)];
    let said = "\n\n4 ranks shared 1 core: one that seems slow or late may only have waited for a core.\nRanks spent ";
    let (plot, tables) = (plot(&trace), text(&trace, Per::Both));
    assert!(plot.contains(said) && tables.contains(said), "{plot}{tables}");
    let mut json = Vec::new();
    write_json(&trace, &stats(&trace).unwrap(), Per::Both, &mut json).unwrap();
    let json = String::from_utf8(json).unwrap();
    assert!(json.contains(r#""oversubscribed":"4 ranks shared 1 core: one"#), "{json}");
}

/// What a file keeps to 1/32 is marked, and says by how much it may be wrong; a single call has one time, the same in all tables.
#[test]
fn a_single_call_has_one_time() {
    let id = refrain_model::function("MPI_Barrier").unwrap().id;
    let mut trace = alike(1, &[call("MPI_Barrier").object("MPI_COMM_WORLD")]);
    trace.bundle.symbols[0].tally = Tally { total: 49_700_000, min: 49_283_072, max: 49_700_864 };
    let mut profile = Profile::of_rank(0, (514_000_000, 50_300_000), [(id, 49_700_000)]);
    profile.settle();
    trace.meta.profile = Some(profile);
    let both = text(&trace, Per::Both);
    for line in [
        "MPI_Barrier      1        -  ~49.7 ms  ~49.7 ms  ~49.7 ms  ~49.7 ms   ~8.8%\n",
        "0     564 ms       514 ms  50.3 ms     8.9%    MPI_Barrier  ~49.7 ms\n",
    ] {
        assert!(both.contains(line), "{line}{both}");
    }
    let mut json = Vec::new();
    write_json(&trace, &stats(&trace).unwrap(), Per::Both, &mut json).unwrap();
    let json = String::from_utf8(json).unwrap();
    let (time, error) = (49_700_000, 1_553_125);
    let each = ["time", "mean", "min", "max"];
    let each = each.map(|what| format!("\"{what}_ns\":{time},\"{what}_error_ns\":{error}")).join(",");
    assert!(json.contains(&each), "{each} in {json}");
    let by_rank = format!("[{{\"function\":\"MPI_Barrier\",\"time_ns\":{time},\"time_error_ns\":{error}}}]");
    assert!(json.contains(&by_rank), "{by_rank} in {json}");
    // The rank's own times are exact, and so is the run.
    assert!(json.contains("\"run_ns\":564300000,\"all_ranks_ns\":564300000,"), "{json}");
    assert!(json.contains("\"wall_ns\":564300000,\"outside_ns\":514000000,\"mpi_ns\":50300000,"), "{json}");
}

/// Of sizes that are too short to be kept apart only the time of all is known: it stands in a line of its own.
#[test]
fn what_shares_a_tally_is_told_together() {
    let mut trace = alike(2, &[send(1, "MPI_INT"), send(100, "MPI_INT"), send(10_000, "MPI_INT")]);
    let symbol = &mut trace.bundle.symbols[0];
    let tally = |total, min, max| Tally { total, min, max };
    let class = |bits, tally| Class { kind: Kind { bits, value: 1 }, count: 2, tally };
    let (light, heavy) = (tally(300, 100, 200), tally(9000, 4000, 5000));
    symbol.classes = Classes::new(false, [class(1, light), class(7, light), class(14, heavy)]);
    symbol.tally = tally(9600, 100, 5000);
    let rows = classes(&trace, By::Size).unwrap();
    let (mut out, mut json) = (Vec::new(), Vec::new());
    write_classes_text(&trace, By::Size, &rows, &mut out).unwrap();
    write_classes_json(&trace, By::Size, &rows, &mut json).unwrap();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = String::from_utf8(out).unwrap().lines().take(5).map(words).collect();
    for (line, start) in lines[1..].iter().zip([
        "MPI_Send 4 B 2 * * * * *",
        "MPI_Send 256 B - 508 B 2 * * * * *",
        "MPI_Send 32.0 KiB - 64.0 KiB 2 ~9.00 us ~4.50 us ~4.00 us ~5.00 us ~",
        "MPI_Send all with * 4 ~600 ns ~150 ns ~100 ns ~200 ns ~",
    ]) {
        assert!(line.starts_with(start), "{start} in {lines:?}");
    }
    // One of them may have taken no longer than twice the least, or all that both took but that.
    let json = String::from_utf8(json).unwrap();
    assert!(json.contains("\"time_ns\":300,\"time_error_ns\":114,"), "{json}");
    // All in one row: nothing is shared.
    let peers = classes(&trace, By::Peer).unwrap();
    assert_eq!((peers.len(), peers[0].time.together), (1, false));
}

/// What one trace may hold says nothing of another.
#[test]
fn how_long_arrays_may_be_belongs_to_the_trace() {
    let wait = call("MPI_Waitall").number(300).elements(&[0; 300]).named("MPI_STATUSES_IGNORE");
    let mut short = alike(1, &[wait]);
    let long = short.clone();
    short.bundle.most_elements = Some(200);
    let read = |trace: &refrain_tracefile::Trace| {
        refrain_encode::Calls::new(&trace.bundle, 0, 0).unwrap().next().unwrap().is_ok()
    };
    assert_eq!((read(&short), read(&long)), (false, true));
}
