//! Simulated traces are real ones: written, read, and decoded to the calls that were made, on every rank.

use crate::rows;

use refrain_encode::Calls;
use refrain_model::{Call, Value};
use refrain_scale::{Options, Paper, Pattern, Rank, Template, simulate};
use rows::as_rows;

/// Every rank's digest, taken while it made its calls, against that of the calls read from the file.
fn verify(name: &str, ranks: u32, steps: u32) {
    let pattern: Pattern = name.parse().unwrap();
    let threads = 1 + ranks % 2;
    let done = simulate(pattern, ranks, steps, &Options { threads, ..Options::default() }).unwrap();
    let trace = refrain_tracefile::read(&done.bytes).unwrap();
    assert_eq!(as_rows(trace.clone()), as_rows(done.trace), "{name} on {ranks} ranks");
    let template = Template::new();
    let mut total = 0;
    for number in 0..ranks {
        let mut rank = Rank::with_digest(&template, number, ranks);
        pattern.run(&mut rank, steps);
        let expected = rank.finish().unwrap();
        let mut calls = Calls::new(&trace.bundle, number, 0).unwrap();
        let count = (&mut calls).inspect(|call| assert!(call.is_ok(), "{call:?}")).count() as u64;
        assert_eq!(count, expected.calls, "{name}, rank {number} of {ranks}");
        assert_eq!(Some(calls.digest()), expected.digest, "{name}, rank {number} of {ranks}");
        total += count;
    }
    assert_eq!(done.report.calls, total);
    let sum: usize = done.report.sections.iter().map(|(_, bytes)| bytes).sum();
    assert!(sum <= done.report.bytes && done.report.bytes == done.bytes.len(), "{:?}", done.report);
}

#[test]
fn stencils_verify() {
    for name in ["stencil1d", "torus1d", "stencil2d", "torus3d", "cart-stencil3d", "cart-torus3d", "torus4d"]
    {
        verify(name, 1, 2);
        verify(name, 16, 5);
        verify(name, 27, 3);
    }
    verify("box3d", 27, 3);
    verify("boxtorus3d", 12, 3);
}

#[test]
fn other_patterns_verify() {
    let names = ["ring", "butterfly", "transpose", "pipeline", "tree", "masterworker", "rowcol", "alltoallv"];
    for name in names.into_iter().chain(["behaviours:5", "values:5", "behaviours:1"]) {
        for ranks in [1, 2, 7, 16] {
            verify(name, ranks, 4);
        }
    }
}

#[test]
fn programs_of_the_papers_verify() {
    for (name, _) in Paper::ALL {
        verify(name, 4, 3);
        verify(name, 16, 5);
    }
}

/// Neighbours along a Morton curve: how many ranks there are is nothing that the file has to say twice.
#[test]
fn grids_along_a_curve_are_flat() {
    for ranks in [8, 32, 100, 128] {
        verify("flash-stirturb", ranks, 3);
        verify("flash-sedov", ranks, 3);
    }
    let size = |name: &str, ranks| {
        simulate(name.parse().unwrap(), ranks, 5, &Options::default()).unwrap().bytes.len()
    };
    for (name, most) in [("flash-stirturb", 200), ("flash-sedov", 550)] {
        let [few, many] = [256, 1024].map(|ranks| size(name, ranks));
        assert!(many < few + 10 && many < most, "{name}: {few} bytes on 256 ranks, {many} on 1024");
    }
}

/// Where land is, which follows no rule, is told once: a rank takes less than three bits.
#[test]
fn an_ocean_takes_little_for_each_rank() {
    verify("pop", 256, 3);
    verify("pop", 250, 2);
    let size = |ranks| simulate("pop".parse().unwrap(), ranks, 5, &Options::default()).unwrap();
    let [few, many] = [256, 1024].map(|ranks| size(ranks).bytes.len());
    assert!(many < few + (1024 - 256) * 3 / 8, "{few} bytes on 256 ranks, {many} on 1024");
}

/// Where two threads share the ranks, the file is the same.
#[test]
fn threads_leave_no_mark() {
    for ranks in [4, 5, 13] {
        let pattern: Pattern = "stencil2d".parse().unwrap();
        let [one, two] = [1, 2].map(|threads| {
            simulate(pattern, ranks, 3, &Options { threads, ..Options::default() }).unwrap().bytes
        });
        assert_eq!(one, two);
    }
}

/// The calls of one rank, one a line, without those that every pattern begins and ends with.
fn calls(name: &str, ranks: u32, steps: u32, rank: u32) -> Vec<String> {
    let done = simulate(name.parse().unwrap(), ranks, steps, &Options::default()).unwrap();
    let calls: Vec<Call> =
        Calls::new(&done.trace.bundle, rank, 0).unwrap().map(|call| call.unwrap()).collect();
    let lines: Vec<String> = calls.iter().map(line).collect();
    let (first, last) = (["Init NULL NULL", &format!("Comm_rank world {rank}")], ["Finalize"]);
    assert_eq!(lines[..2], first);
    assert_eq!(lines[lines.len() - 1..], last);
    lines[3..lines.len() - 1].to_vec()
}

fn line(call: &Call) -> String {
    let words =
        call.args.iter().map(word).chain(call.facts.iter().map(|(_, fact)| format!("{{{}}}", word(fact))));
    std::iter::once(call.function.name.trim_start_matches("MPI_").to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

fn word(value: &Value) -> String {
    match value {
        Value::Unset => "-".into(),
        Value::Int(n) => n.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::Name(name) => name.trim_start_matches("MPI_").to_owned(),
        Value::Text(text) => text.clone(),
        Value::Comm(name) => name.clone(),
        Value::Object(class, id) => format!("{class:?}#{id}").to_lowercase(),
        Value::Address(a) => format!("{}+{}", a.segment, a.offset),
        Value::Status(s) => format!("<{} {} {}>", word(&s.source), word(&s.tag), s.bytes.unwrap_or(-1)),
        Value::List(list) => format!("[{}]", list.iter().map(word).collect::<Vec<_>>().join(",")),
        other => format!("{other:?}"),
    }
}

#[test]
fn calls_are_what_a_program_would_make() {
    assert_eq!(
        calls("cart-stencil2d", 6, 1, 5),
        [
            "Cart_create world 2 [3,2] [false,false] false world.0 {as world}",
            "Comm_rank world.0 5",
            "Cart_coords world.0 5 2 [2,1]",
            "Cart_shift world.0 0 1 3 PROC_NULL",
            "Cart_shift world.0 1 1 4 PROC_NULL",
            "Irecv 1+0 128 DOUBLE 3 1 world.0 request#0",
            "Irecv 1+1024 128 DOUBLE PROC_NULL 0 world.0 request#1",
            "Irecv 1+2048 128 DOUBLE 4 3 world.0 request#2",
            "Irecv 1+3072 128 DOUBLE PROC_NULL 2 world.0 request#3",
            "Isend 0+0 128 DOUBLE 3 0 world.0 request#4",
            "Isend 0+1024 128 DOUBLE PROC_NULL 1 world.0 request#5",
            "Isend 0+2048 128 DOUBLE 4 2 world.0 request#6",
            "Isend 0+3072 128 DOUBLE PROC_NULL 3 world.0 request#7",
            "Waitall 8 [request#0,request#1,request#2,request#3,request#4,request#5,request#6,request#7] \
             STATUSES_IGNORE",
            "Allreduce 2+0 2+8 1 DOUBLE SUM world.0",
        ]
    );
    assert_eq!(
        calls("rowcol", 6, 1, 3),
        [
            "Comm_split world 1 1 world.0 {[2,3]}",
            "Comm_split world 1 1 world.1 {[1,3,5]}",
            "Allreduce 0+0 1+0 128 DOUBLE SUM world.0",
            "Bcast 0+1024 128 DOUBLE 0 world.1",
            "Reduce 0+2048 - 128 DOUBLE SUM 0 world.0",
            "Comm_free world.0",
            "Comm_free world.1",
        ]
    );
    assert_eq!(
        calls("masterworker", 3, 1, 0),
        [
            "Recv 1+0 128 DOUBLE ANY_SOURCE 29 world <1 29 1024>",
            "Send 0+0 128 DOUBLE 1 31 world",
            "Recv 1+0 128 DOUBLE ANY_SOURCE 29 world <2 29 1024>",
            "Send 0+0 128 DOUBLE 2 31 world",
        ]
    );
    assert_eq!(calls("butterfly", 8, 1, 5).len(), 3);
    assert_eq!(
        calls("transpose", 9, 1, 5)[0],
        "Sendrecv 0+0 128 DOUBLE 7 13 1+0 128 DOUBLE 7 13 world STATUS_IGNORE"
    );
    assert_eq!(calls("box3d", 27, 1, 13).len(), 2 * 26 + 2);
    assert_eq!(calls("tree", 7, 1, 1).iter().filter(|line| line.starts_with("Send ")).count(), 3);
}

/// What one rank says it sends, the other expects.
#[test]
fn counts_of_both_sides_agree() {
    let counts = |rank| {
        let line = calls("alltoallv", 3, 1, rank).pop().unwrap();
        let lists: Vec<Vec<i64>> = line
            .split('[')
            .skip(1)
            .map(|rest| rest.split(']').next().unwrap().split(',').map(|n| n.parse().unwrap()).collect())
            .collect();
        (lists[0].clone(), lists[2].clone())
    };
    let all = [0, 1, 2].map(counts);
    for from in 0..3 {
        for to in 0..3 {
            assert_eq!(all[from].0[to], all[to].1[from]);
        }
    }
}
