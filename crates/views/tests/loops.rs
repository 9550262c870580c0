//! The structure for people, of traces that were folded into loops for the test, with a program that is made up.

use crate::common;

use std::rc::Rc;

use common::{Encoded, call, looped, send, split, trace_of};
use refrain_fold::bundle::sites::Frame;
use refrain_sites::{Location, Names, Order, Source, Turn};
use refrain_tracefile::Trace;
use refrain_views::Error;
use refrain_views::loops::{Options, write_events, write_json, write_text};

/// Address 312 is line 12 of the third function. `step` has a loop from line 10 to 49; `dive` calls itself.
struct Program;

const FUNCTIONS: [&str; 4] = ["start", "main", "step", "dive"];

impl Names for Program {
    fn places(&self, frame: Frame) -> Rc<[Location]> {
        let (function, line) = (frame.offset as usize / 100, frame.offset as u32 % 100);
        let source = Some(Source { file: "/home/me/app.c".into(), line });
        Rc::new([Location { function: Some(FUNCTIONS[function].into()), source, ..Location::default() }])
    }

    fn function(&self, frame: Frame) -> Option<u64> {
        Some(frame.offset / 100)
    }

    fn loops(&self, calls: &[Frame]) -> Vec<Turn> {
        let inside = |call: &Frame| call.offset / 100 == 2 && (10..50).contains(&(call.offset % 100));
        let turn = Turn {
            function: Some("step".into()),
            file: Some("/home/me/app.c".into()),
            lines: Some((10, 49)),
            ..Turn::default()
        };
        if calls.iter().all(inside) { vec![turn] } else { Vec::new() }
    }

    fn order(&self, _: &[Frame], _: Option<&Turn>) -> Option<Order> {
        None
    }
}

fn barrier(line: u64) -> Encoded {
    call("MPI_Barrier").object("MPI_COMM_WORLD").from(&[105, 200 + line])
}

fn sent(count: i64, line: u64) -> Encoded {
    send(count, "MPI_INT").from(&[105, 200 + line])
}

fn text(trace: &Trace, options: Options) -> String {
    let mut out = Vec::new();
    write_text(trace, &Program, &options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[track_caller]
fn check(trace: &Trace, options: Options, lines: &[&str]) {
    assert_eq!(text(trace, options), lines.iter().map(|line| format!("{line}\n")).collect::<String>());
}

/// Every third step has a message, on even ranks.
fn steps(rank: u32, steps: i64) -> Vec<Encoded> {
    let mut calls = vec![barrier(3)];
    for step in 0..steps {
        calls.push(barrier(12));
        if step % 3 == 1 && rank.is_multiple_of(2) {
            calls.push(sent(step, 14));
        }
        calls.push(barrier(16));
    }
    calls
}

const STEPS: [&str; 10] = [
    "all 4 ranks",
    "time-step loop: 12 iterations or more at app.c:10 in step, with 104 of 108 calls",
    "as the calls were folded: 12 iterations at app.c:10 in step, with 104 of 108 calls (--folded shows it)",
    "",
    "  MPI_Barrier(comm=world)  at step (app.c:3)",
    "  loop 12 times or more  at app.c:10 in step",
    "    MPI_Barrier(comm=world)  at step (app.c:12)",
    "    MPI_Send(count=1 to 10 by 3, datatype=MPI_INT, dest=rank+1, tag=9,",
    "          comm=world)  in 4 iterations on ranks 0,2  at step (app.c:14)",
    "    MPI_Barrier(comm=world)  at step (app.c:16)",
];

#[test]
fn a_loop_with_its_line_and_its_ranks() {
    let trace = looped(&(0..4).map(|rank| vec![steps(rank, 12)]).collect::<Vec<_>>());
    check(&trace, Options::default(), &STEPS);
    let of_one = text(&trace, Options { ranks: Some("1".parse().unwrap()), ..Options::default() });
    assert!(
        of_one.starts_with("rank 1\ntime-step loop: 12 iterations or more at") && !of_one.contains("Send"),
        "{of_one}"
    );
    let missing = write_text(
        &trace,
        &Program,
        &Options { ranks: Some("4".parse().unwrap()), ..Options::default() },
        &mut Vec::new(),
    );
    assert!(matches!(missing, Err(Error::NoSuch { what: "rank", number: 4, .. })));
}

#[test]
fn as_many_kinds_as_ranks() {
    let trace =
        looped(&(0..30).map(|rank| vec![steps(2 * rank + 1, i64::from(rank) + 2)]).collect::<Vec<_>>());
    let shown = text(&trace, Options::default());
    let steps =
        "time-step loop: 2 to 31 iterations or more, by rank at app.c:10 in step, with 990 of 1,020 calls";
    assert!(
        shown.contains(steps) && shown.contains("  loop 2-31 times or more, by rank  at app.c:10"),
        "{shown}"
    );
    for rank in [0, 17, 29] {
        let of_one =
            text(&trace, Options { ranks: Some(rank.to_string().parse().unwrap()), ..Options::default() });
        assert!(of_one.contains(&format!("  loop {} times or more  at app.c:10", rank + 2)), "{of_one}");
    }
}

#[test]
fn rules_are_folded_into_loops() {
    let trace = trace_of(&vec![vec![steps(0, 12)]; 4]);
    let shown = text(&trace, Options::default());
    assert!(shown.contains("folded by grammar") && shown.contains("the others made the same"), "{shown}");
    assert!(
        shown.contains("time-step loop: 12 iterations or more at app.c:10 in step, with 112 of 116 calls"),
        "{shown}"
    );
}

#[test]
fn steps_outside_the_loop_are_steps_too() {
    // The first step is at the top of a recursion, the others below it.
    let step = |stack: &[u64]| {
        vec![
            call("MPI_Barrier").object("MPI_COMM_WORLD").from(stack),
            send(1, "MPI_INT").from(&[&stack[..stack.len() - 1], &[308]].concat()),
        ]
    };
    let mut calls = step(&[105, 307]);
    (0..9).for_each(|_| calls.extend(step(&[105, 309, 307])));
    let shown = text(&looped(&[vec![calls]]), Options::default());
    let expected =
        "time-step loop: 10 iterations (9 + 1) at app.c:9, where dive calls itself, with 18 of 20 calls";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn what_is_long_is_cut() {
    let mut calls: Vec<Encoded> = (50..80).map(barrier).collect();
    for _ in 0..5 {
        calls.push(barrier(12));
        for _ in 0..3 {
            calls.extend([sent(1, 20), barrier(21)]);
        }
    }
    let trace = looped(&[vec![calls]]);
    let shown = text(&trace, Options { depth: Some(1), folded: true, ..Options::default() });
    assert!(shown.contains("... 20 more calls (--all shows them)"), "{shown}");
    assert!(shown.contains("... 2 calls (--depth 2 shows them)") && !shown.contains("MPI_Send"), "{shown}");
    let whole = text(&trace, Options { all: true, folded: true, ..Options::default() });
    assert!(!whole.contains("..."), "{whole}");
    assert_eq!(whole.matches("MPI_Barrier").count(), 32);
}

/// Of many loops in a row the first, the last and the large ones.
#[test]
fn many_loops_are_cut() {
    let mut calls: Vec<Encoded> = Vec::new();
    for line in 50..=99 {
        for _ in 0..if line == 80 { 2000 } else { 2 } {
            calls.extend([barrier(line), sent(1, line)]);
        }
        calls.push(barrier(line - 50));
    }
    let trace = looped(&[vec![calls]]);
    let folded = Options { folded: true, ..Options::default() };
    let shown = text(&trace, folded.clone());
    assert!(
        shown.contains("  loop 2,000 times") && shown.contains("more loops (--all shows them)"),
        "{shown}"
    );
    let (cut, lines) = (shown.matches("--all shows them").count(), shown.lines().count());
    assert!(cut == 2 && lines < 60, "{lines} lines: {shown}");
    let whole = text(&trace, Options { all: true, ..folded.clone() });
    assert_eq!(whole.matches("  loop 2").count(), 50, "{whole}");
}

/// Nobody asked how deep: as deep as there is room.
#[test]
fn a_long_structure_is_shown_less_deep() {
    let mut calls: Vec<Encoded> = Vec::new();
    for line in 50..=99 {
        for _ in 0..5 {
            (0..12).for_each(|n| calls.push(send(line as i64, "MPI_INT").from(&[105, 200 + line, 300 + n])));
        }
    }
    let trace = looped(&[vec![calls]]);
    let folded = Options { folded: true, ..Options::default() };
    let deep = text(&trace, Options { depth: Some(9), ..folded.clone() });
    let shown = text(&trace, folded.clone());
    assert!(deep.lines().count() > 500 && shown.lines().count() <= 500, "{deep}");
    assert!(shown.contains("(--depth 1 shows them)"), "{shown}");
}

/// The loop over commands has all of the calls, but the time steps are those of one command.
#[test]
fn steps_of_one_command_among_many() {
    let mut calls = Vec::new();
    for command in 0..9 {
        calls.push(barrier(60));
        if command == 5 {
            (0..40).for_each(|_| calls.extend([barrier(12), sent(1, 14)]));
        }
        calls.push(barrier(70));
    }
    let shown = text(&looped(&[vec![calls]]), Options { folded: true, ..Options::default() });
    assert!(
        shown.contains("time-step loop: 40 iterations at app.c:10 in step, with 80 of 98 calls"),
        "{shown}"
    );
    assert!(shown.contains("  loop 40 times, in 1 of 9 iterations  at app.c:10"), "{shown}");
}

/// The mean is that of all turns, not the middle between the fewest and the most.
#[test]
fn what_comes_more_or_less_often_has_a_mean() {
    let turn = |times| std::iter::once(barrier(12)).chain(std::iter::repeat_n(sent(1, 14), times));
    let calls: Vec<Encoded> = [1, 1, 1, 9].into_iter().flat_map(turn).collect();
    let shown = text(&looped(&[vec![calls]]), Options { folded: true, ..Options::default() });
    assert!(shown.contains("1-9 times, mean 3.0"), "{shown}");
}

#[test]
fn what_grows_with_the_ranks_is_flagged() {
    let ranks = 8;
    let folded = Options { folded: true, ..Options::default() };
    let rank = |r: i64| {
        let mut calls = Vec::new();
        for _ in 0..4 {
            for other in (0..ranks).filter(|other| *other != r) {
                let sent = call("MPI_Send").buffer().number(1).object("MPI_INT").tagged(other - r);
                calls.push(sent.tagged(0).object("MPI_COMM_WORLD").from(&[105, 220]));
            }
            calls.push(barrier(30));
        }
        vec![calls]
    };
    let shown = text(&looped(&(0..ranks).map(rank).collect::<Vec<_>>()), folded.clone());
    let flag = "red flag: MPI_Send at step (app.c:20) is made 7 times in a row, one less than there are ranks: consider \
                a collective\n";
    assert!(shown.contains(flag), "{shown}");
    // Seven messages to one neighbour are none.
    let mut calls = vec![sent(1, 20); 7];
    calls.push(barrier(30));
    let shown = text(&looped(&vec![vec![[calls.clone(), calls].concat()]; 8]), folded);
    assert!(shown.contains("7 times") && !shown.contains("red flag"), "{shown}");
}

#[track_caller]
fn events(trace: &Trace, rows: &[&str]) {
    let mut out = Vec::new();
    write_events(trace, &Options::default(), &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        rows.iter().map(|row| format!("{row}\n")).collect::<String>()
    );
}

#[test]
fn figures_1_and_5_of_scalatrace_2() {
    let (e1, e2, e3, e4) = (barrier(12), sent(1, 14), sent(1, 15), barrier(16));
    let figure_1 = [&e1, &e2, &e4, &e1, &e3, &e4].map(Encoded::clone).to_vec();
    events(
        &looped(&[vec![figure_1]]),
        &[
            "Rank  Event",
            "0     MPI_Barrier()(4,2)",
            "0     MPI_Send()(1,1 0)",
            "0     MPI_Send()(1,0 1)",
            "0     MPI_Barrier()",
        ],
    );
    let (send, receive, wait) = (sent(1, 22), barrier(23), barrier(25));
    let (last, got, waited) = (sent(1, 60), barrier(61), barrier(62));
    let mut first: Vec<Encoded> = (0..5).flat_map(|_| [send.clone(), receive.clone()]).collect();
    first.extend([last, got, waited]);
    let second: Vec<Encoded> = (0..6).flat_map(|_| [send.clone(), receive.clone(), wait.clone()]).collect();
    events(
        &looped(&[vec![first], vec![second]]),
        &[
            "Rank  Event",
            "0-1   MPI_Send()(2,5)[0](3,6)[1]",
            "0-1   MPI_Barrier()",
            "1     MPI_Barrier()",
            "0     MPI_Send()",
            "0     MPI_Barrier()",
            "0     MPI_Barrier()",
        ],
    );
}

#[test]
fn json_has_everything() {
    let trace = looped(&(0..4).map(|rank| vec![steps(rank, 12)]).collect::<Vec<_>>());
    let mut out = Vec::new();
    write_json(&trace, &Program, &Options::default(), &mut out).unwrap();
    let json = String::from_utf8(out).unwrap();
    for part in [
        r#"{"schema":"refrain-loops-1","ranks":4,"kinds":[{"thread":0,"ranks":"0-3","folded":"loops","loops":"source","steps":{"most":true,"calls":104,"all_calls":108,"#,
        r#""loops":[{"ranks":"0-3","node":1,"steps":12,"turns":12,"outside":0,"at_least":true,"at":{"kind":"loop","function":"step","#,
        r#""file":"/home/me/app.c","first":10,"last":49}}]"#,
        r#"{"inside":3,"times":[{"ranks":"0-3","reached":1,"runs":12,"low":12,"high":12,"known":"at least","vector":"12"}],"at":"#,
        r#""params":{"count":"1 to 10 by 3","datatype":"MPI_INT","dest":"rank+1","tag":9,"comm":"world"}"#,
        r#""site":[{"function":"main","file":"/home/me/app.c","line":5,"module":"","offset":0},"#,
    ] {
        assert!(json.contains(part), "{part}\nis not in\n{json}");
    }
}

/// What a few bytes of a file may say, and no program does.
#[test]
fn loops_that_are_nested_without_end() {
    const DEPTH: usize = 100_000;
    let nodes: String = (0..DEPTH).map(|outer| format!(" l{}", DEPTH - outer)).collect();
    let clock = "symbol 0 lanes 0 stack - time 1 1 1 bytes 850200";
    let written = format!(
        "refrain-text 1\nranks 1\n{clock}\nstream 0 terms 1 shape t0\nstructure 0 loops{nodes} e0\n\
         cohort members 0 structure 0 digest 0\n{}",
        "lane 0\n".repeat(DEPTH + 1)
    );
    let trace = refrain_views::written::read(&written).unwrap();
    let text = text(&trace, Options { all: true, ..Options::default() });
    assert!(text.contains("... 1 call in more loops than can be shown"), "{text}");
}

#[test]
fn communicators_are_called_as_in_a_dump() {
    let copied = call("MPI_Comm_dup").object("MPI_COMM_WORLD").comm_as_parent(0, 0);
    let to = |rank: i64, comm: &str| {
        call("MPI_Send").buffer().number(1).object("MPI_INT").tagged(-rank).tagged(9).object(comm)
    };
    let rank = |rank: i64| vec![vec![copied.clone(), split(1, 1, &[0, 1]), to(rank, "#0"), to(rank, "#1")]];
    let shown = text(&looped(&[rank(0), rank(1), rank(2)]), Options::default());
    // The copy counts ranks as the world does; who is rank 0 of the other one is not looked up.
    assert!(shown.contains("dest=0, tag=9, comm=world.0)"), "{shown}");
    assert!(
        shown.contains("dest=rank on rank 0, rank-1 on rank 1, rank-2 on rank 2, tag=9, comm=world.1)"),
        "{shown}"
    );
    // An id that is used again is not one communicator.
    let again = call("MPI_Comm_dup").object("MPI_COMM_SELF").comm_as_parent(0, 0);
    let shown = text(&looped(&[vec![vec![copied, again, to(0, "#0")]]]), Options::default());
    assert!(shown.contains("comm=comm#0)"), "{shown}");
}

/// Every function has a loop, and no line.
struct Deep;

impl Names for Deep {
    fn places(&self, frame: Frame) -> Rc<[Location]> {
        let function = Some(format!("f{}", frame.offset / 100));
        Rc::new([Location { function, distance: frame.offset % 100, ..Location::default() }])
    }

    fn function(&self, frame: Frame) -> Option<u64> {
        Some(frame.offset / 100)
    }

    fn loops(&self, calls: &[Frame]) -> Vec<Turn> {
        let begin = calls[0].offset / 100 * 100;
        let code = std::iter::once(begin..begin + 100).collect();
        vec![Turn { code, ..Turn::default() }]
    }

    fn order(&self, _: &[Frame], _: Option<&Turn>) -> Option<Order> {
        None
    }
}

#[test]
fn loops_in_functions_in_loops() {
    let stack: Vec<u64> = (1..=64).map(|function| 100 * function + 5).collect();
    let mut calls = Vec::new();
    for _ in 0..5 {
        calls.push(call("MPI_Barrier").object("MPI_COMM_WORLD").from(&stack));
        calls.push(send(1, "MPI_INT").from(&stack[..3]));
    }
    let mut out = Vec::new();
    write_text(&looped(&[vec![calls]]), &Deep, &Options::default(), &mut out).unwrap();
    let shown = String::from_utf8(out).unwrap();
    assert!(shown.contains("MPI_Barrier(comm=world)") && shown.contains("at f64+0x5"), "{shown}");
    // As they came: the barrier, then the message, though it stands in an outer function.
    assert!(shown.find("MPI_Barrier") < shown.find("MPI_Send"), "{shown}");
}

#[test]
fn time_by_call_site() {
    use refrain_views::stats::{sites, write_sites_json, write_sites_text};
    let rank = |rank: u32| {
        let mut calls = vec![barrier(12); 3];
        // The same place, come to from another one.
        calls.push(call("MPI_Barrier").object("MPI_COMM_WORLD").from(&[107, 212]));
        calls.extend(vec![barrier(14); if rank.is_multiple_of(2) { 2 } else { 0 }]);
        calls.push(send(1, "MPI_INT"));
        vec![calls]
    };
    for trace in [looped(&[rank(0), rank(1), rank(2)]), trace_of(&[rank(0), rank(1), rank(2)])] {
        let rows = sites(&trace, &Program).unwrap();
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.place.as_ref().map(Location::to_string), row.calls, row.ranks.to_string()))
            .collect();
        let at = |line: u32| Some(format!("step (app.c:{line})"));
        assert_eq!(told, [(at(12), 12, "0-2".into()), (at(14), 4, "0,2".into()), (None, 3, "0-2".into())]);
        let time = rows[0].time.unwrap();
        assert_eq!((time.total, time.min, time.max), (1200, 100, 100));
        let (mut text, mut json) = (Vec::new(), Vec::new());
        write_sites_text(&trace, &rows, &mut text).unwrap();
        write_sites_json(&trace, &rows, &mut json).unwrap();
        let text = String::from_utf8(text).unwrap();
        let row: Vec<&str> = text.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(
            row,
            [
                "MPI_Barrier",
                "4",
                "~400",
                "ns",
                "~100",
                "ns",
                "~100",
                "ns",
                "~100",
                "ns",
                "~8.9%",
                "0,2",
                "step",
                "(app.c:14)"
            ]
        );
        let json = String::from_utf8(json).unwrap();
        let part = r#""calls":4,"ranks":"0,2","time_ns":400,"time_error_ns":13,"mean_ns":100,"mean_error_ns":4,"min_ns":100,"min_error_ns":4,"max_ns":100,"max_error_ns":4,"at":{"function":"step","#;
        assert!(json.contains(part), "{json}");
    }
}
