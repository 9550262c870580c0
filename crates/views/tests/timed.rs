//! Calls with their times: from anywhere, in one order, in a stretch of time, and where some are missing.

use crate::common;

use std::io::Cursor;

use common::{Encoded, alike, call, open_timed, send, timed_file};
use refrain_fold::bundle::Tally;
use refrain_model::time::Time;
use refrain_tracefile::Trace;
use refrain_tracefile::chunks::{Key, Section};
use refrain_views::Error;
use refrain_views::dump::{Format, How, Selection, dump_as};
use refrain_views::exact::sum_up;
use refrain_views::length::{Length, Told};
use refrain_views::select::between;
use refrain_views::stats;
use refrain_views::timed::Times;

fn barrier() -> Encoded {
    call("MPI_Barrier").object("MPI_COMM_WORLD")
}

/// Lines as `rank.thread number start..end`.
fn shown(trace: &Trace, times: Option<&Times>, which: &Selection, merged: bool) -> Vec<String> {
    let mut out = Vec::new();
    dump_as(trace, which, &How { format: Format::Json, from: None, times, merged }, &mut out).unwrap();
    let field = |line: &str, name: &str| {
        let rest = line.split_once(&format!("\"{name}\":"))?.1;
        Some(rest.split([',', '}']).next().unwrap().to_owned())
    };
    let lines = String::from_utf8(out).unwrap();
    let line = |line: &str| {
        let get = |name: &str| field(line, name).unwrap_or("-".into());
        format!("{}.{} {} {}..{}", get("rank"), get("thread"), get("number"), get("start"), get("end"))
    };
    lines.lines().map(line).collect()
}

const BEGAN: i64 = 7_000_000_000_000;

/// Two ranks, the second with two threads.
fn small() -> Vec<u8> {
    let at = |start: i64, end: i64| (barrier(), BEGAN + start, BEGAN + end);
    let ranks = [
        vec![vec![at(0, 10), at(20, 500), at(600, 700)]],
        vec![
            vec![at(5, 15), at(30, 480), at(610, 690)],
            vec![(send(1, "MPI_INT"), BEGAN + 100, BEGAN + 130)],
        ],
    ];
    timed_file(&ranks, "exact")
}

#[test]
fn each_call_has_its_time() {
    let (trace, times) = open_timed(small());
    let all = Selection::default();
    assert_eq!(
        shown(&trace, times.as_ref(), &all, false),
        [
            "0.0 0 0..10",
            "0.0 1 20..500",
            "0.0 2 600..700",
            "1.0 0 5..15",
            "1.0 1 30..480",
            "1.0 2 610..690",
            "1.1 0 100..130"
        ]
    );
    assert!(!times.unwrap().some_lost());
}

#[test]
fn in_the_order_in_which_they_began() {
    let (trace, times) = open_timed(small());
    let merged = |which: &Selection| shown(&trace, times.as_ref(), which, true);
    assert_eq!(
        merged(&Selection::default()),
        [
            "0.0 0 0..10",
            "1.0 0 5..15",
            "0.0 1 20..500",
            "1.0 1 30..480",
            "1.1 0 100..130",
            "0.0 2 600..700",
            "1.0 2 610..690"
        ]
    );
    let some = Selection { ranks: Some("1".parse().unwrap()), calls: 1..9, ..Selection::default() };
    assert_eq!(merged(&some), ["1.0 1 30..480", "1.0 2 610..690"]);
}

#[test]
fn those_that_overlap_a_stretch() {
    let (trace, times) = open_timed(small());
    let within = |text: &str, merged| {
        let which = Selection { between: Some(between(text).unwrap()), ..Selection::default() };
        shown(&trace, times.as_ref(), &which, merged).join(" ")
    };
    assert_eq!(within("0.00000012..0.00000013", false), "0.0 1 20..500 1.0 1 30..480 1.1 0 100..130");
    assert_eq!(within("0.00000055..", true), "0.0 2 600..700 1.0 2 610..690");
    assert_eq!(within("..0.000000005", true), "0.0 0 0..10 1.0 0 5..15");
    assert_eq!(within("0.00000051..0.00000052", true), "");
}

/// Calls are in the order in which they returned; one that ran a callback comes after the callback's.
#[test]
fn a_call_around_others_is_among_those_of_a_stretch() {
    let calls = vec![(barrier(), 0, 10), (barrier(), 200, 210), (barrier(), 50, 300), (barrier(), 400, 410)];
    let (trace, times) = open_timed(timed_file(&[vec![calls]], "exact"));
    let which = Selection { between: Some(between("..0.0000001").unwrap()), ..Selection::default() };
    assert_eq!(shown(&trace, times.as_ref(), &which, false), ["0.0 0 0..10", "0.0 2 50..300"]);
}

/// One damaged block is that of one thread.
#[test]
fn damage_in_one_rank_leaves_the_others_alone() {
    let at = |rank: i64| (0..100).map(|i| (barrier(), 1000 * i + rank, 1000 * i + 500)).collect::<Vec<_>>();
    for time in ["exact", "binned"] {
        let mut file = timed_file(&[vec![at(7)], vec![at(3)]], time);
        let loaded = refrain_tracefile::load(Cursor::new(&file)).unwrap();
        let trace = refrain_tracefile::read(&loaded.bytes).unwrap();
        let chunks = loaded.chunks.unwrap();
        let section = Section::within(Cursor::new(&file), chunks.clone()).unwrap();
        let (end, _) = section.ends(Key { member: 1, lane: 0 }).next().unwrap();
        // The bytes that say when the first call of rank 1 began.
        let (before, _) = section.ends(Key { member: 0, lane: 0 }).next().unwrap();
        for place in [before + 24, end - 1] {
            file[(chunks.start + place) as usize] ^= 0x55;
        }
        let times = Times::open(&trace, Cursor::new(file), Some(chunks)).unwrap();
        let which = Selection { ranks: Some("0".parse().unwrap()), calls: 0..1, ..Selection::default() };
        let lines = shown(&trace, times.as_ref(), &which, false);
        assert!(lines[0].starts_with("0.0 0 0.."), "{lines:?}");
    }
}

/// More than two blocks: a call in the middle is found with its time, without those of earlier blocks.
#[test]
fn from_any_call_on() {
    let calls: Vec<(Encoded, i64, i64)> = (0..80_000i64)
        .map(|i| (if i % 3 == 0 { barrier() } else { send(1, "MPI_INT") }, 100 * i, 100 * i + 7))
        .collect();
    let (trace, times) = open_timed(timed_file(&[vec![calls]], "exact"));
    for first in [0, 1, 32_767, 32_768, 32_769, 65_536, 79_999] {
        let which = Selection { calls: first..first + 2, ..Selection::default() };
        let lines = shown(&trace, times.as_ref(), &which, false);
        assert_eq!(lines[0], format!("0.0 {first} {}..{}", 100 * first, 100 * first + 7));
        assert_eq!(lines.len(), if first == 79_999 { 1 } else { 2 });
    }
}

/// Many threads at once share what one alone would have to itself, and say the same.
#[test]
fn many_threads_at_once() {
    for time in ["exact", "binned"] {
        let thread = |rank: i64| {
            let one = |i: i64| {
                let start = BEGAN + 1000 * i + 7 * rank;
                (if i % 3 == 0 { call("MPI_Wtime") } else { barrier() }, start, start + 100 + i % 5)
            };
            vec![(0..if rank == 3 { 33_000 } else { 40 }).map(one).collect::<Vec<_>>()]
        };
        let (trace, times) = open_timed(timed_file(&(0..70).map(thread).collect::<Vec<_>>(), time));
        let all = Selection::default();
        let mut merged = shown(&trace, times.as_ref(), &all, true);
        let mut one_by_one = shown(&trace, times.as_ref(), &all, false);
        merged.sort();
        one_by_one.sort();
        assert!(merged == one_by_one, "{time}");
        assert_eq!(merged.len(), 69 * 40 + 33_000);
        let some = Selection { calls: 35..33_000, ..Selection::default() };
        assert_eq!(shown(&trace, times.as_ref(), &some, true).len(), 69 * 5 + 32_965);
    }
}

#[test]
fn what_is_missing_has_no_time_and_the_rest_has() {
    let calls: Vec<(Encoded, i64, i64)> = (0..40_000i64).map(|i| (barrier(), 100 * i, 100 * i + 7)).collect();
    let file = timed_file(&[vec![calls]], "exact");
    let loaded = refrain_tracefile::load(Cursor::new(&file)).unwrap();
    let trace = refrain_tracefile::read(&loaded.bytes).unwrap();
    let chunks = loaded.chunks.unwrap();
    // The second of two blocks is cut short.
    let section = Section::within(Cursor::new(&file), chunks.clone()).unwrap();
    let (first, _) = section.ends(Key { member: 0, lane: 0 }).next().unwrap();
    let cut = chunks.start + first + 20;
    let file = file[..cut as usize].to_vec();
    let times = Times::open(&trace, Cursor::new(file), Some(chunks.start..cut)).unwrap().unwrap();
    let at = |first| {
        let which = Selection { calls: first..first + 2, ..Selection::default() };
        shown(&trace, Some(&times), &which, true)
    };
    assert_eq!(at(10), ["0.0 10 1000..1007", "0.0 11 1100..1107"]);
    assert!(!times.some_lost());
    assert_eq!(at(32_767), ["0.0 32767 3276700..3276707", "0.0 32768 -..-"]);
    assert!(times.some_lost());
    // Sums stay what they were.
    let mut other = trace.clone();
    assert!(!sum_up(&mut other, &times, &mut |_| ()).unwrap());
    assert_eq!(other.bundle.symbols, trace.bundle.symbols);
    assert_eq!(at(39_999), ["0.0 39999 -..-"]);
    let which = Selection { between: Some(between("1..").unwrap()), ..Selection::default() };
    assert!(shown(&trace, Some(&times), &which, false).is_empty());
}

/// What was summed up while ranks ran is not looked at.
#[test]
fn sums_are_those_of_single_calls() {
    let (mut trace, times) = open_timed(small());
    let times = times.unwrap();
    for symbol in &mut trace.bundle.symbols {
        symbol.tally = Tally { total: 77, min: 77, max: 77 };
    }
    assert!(sum_up(&mut trace, &times, &mut |_| ()).unwrap());
    let stats = stats::stats(&trace).unwrap();
    let mut rows: Vec<_> =
        stats.functions.iter().map(|row| (row.name, row.calls, *row.time.unwrap())).collect();
    rows.sort_by_key(|row| row.0);
    let tally = |total, min, max| Tally { total, min, max };
    // 10 + 480 + 100 + 10 + 450 + 80
    assert_eq!(rows, [("MPI_Barrier", 6, tally(1130, 10, 480)), ("MPI_Send", 1, tally(30, 30, 30))]);
}

/// The run, its ranks and what shares are shares of: one length in all views, from single calls.
#[test]
fn ranks_last_as_long_as_their_calls_say() {
    let at = |name: &str, start: i64, end: i64| (call(name), BEGAN + start, BEGAN + end);
    let wait = |start: i64, end: i64| (barrier(), BEGAN + start, BEGAN + end);
    let init = |start: i64| (call("MPI_Init").tagged(0).absent(), BEGAN + start, BEGAN + 105);
    let ranks = [
        vec![vec![at("MPI_Wtime", 0, 3), init(5), wait(300, 400), at("MPI_Finalize", 505, 505)]],
        // A callback's call comes before the one that it is made in.
        vec![vec![init(50), wait(310, 320), wait(300, 400), at("MPI_Finalize", 450, 450)]],
    ];
    let (mut trace, times) = open_timed(timed_file(&ranks, "exact"));
    let times = times.unwrap();
    let waits = refrain_views::waits::waits(&trace, &times).unwrap();
    assert!(sum_up(&mut trace, &times, &mut |_| ()).unwrap());
    let length = Length::of(&trace).unwrap();
    assert_eq!((length.run, length.all), (Told::exactly(500), Told::exactly(900)));
    assert_eq!(waits.length, length);
    let stats = stats::stats(&trace).unwrap();
    let by_rank = stats::Times::of(&trace, &stats).unwrap();
    let told: Vec<_> = by_rank.ranks.iter().map(|one| (one.told_outside(), one.told_inside())).collect();
    let exactly = |outside, inside| (Told::exactly(outside), Told::exactly(inside));
    assert_eq!(told, [exactly(300, 200), exactly(245, 155)]);
    let mut text = Vec::new();
    stats::write_text(&trace, &stats, stats::Per::Both, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains('~') && text.contains("The run took 500 ns;"), "{text}");
    // 210 of 900.
    assert!(text.lines().any(|line| line.starts_with("MPI_Barrier") && line.ends_with("23.3%")), "{text}");
}

/// Messages of one symbol, apart by how long they are.
#[test]
fn classes_are_those_of_single_calls() {
    let long = |count: i64, at: i64, time: i64| (send(count, "MPI_INT"), BEGAN + at, BEGAN + at + time);
    let calls = vec![long(1, 0, 10), long(1000, 100, 300), long(1, 1000, 20), long(1000, 2000, 500)];
    let (mut trace, times) = open_timed(timed_file(&[vec![calls]], "exact"));
    assert!(sum_up(&mut trace, &times.unwrap(), &mut |_| ()).unwrap());
    let rows = stats::classes(&trace, stats::By::Size).unwrap();
    let rows: Vec<_> =
        rows.iter().map(|row| (row.calls, row.time.total, row.time.min, row.time.max)).collect();
    assert_eq!(rows, [(2, 30, 10, 20), (2, 800, 300, 500)]);
}

#[test]
fn a_trace_without_times_says_so() {
    let trace = alike(2, &[barrier()]);
    let times = Times::open(&trace, Cursor::new(Vec::new()), None).unwrap();
    assert!(times.is_none());
    let refused = |which: &Selection, merged| {
        let how = How { format: Format::Text, from: None, times: None, merged };
        match dump_as(&trace, which, &how, &mut Vec::new()) {
            Err(error @ Error::NoTimes) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(&Selection::default(), true).contains("refrain run --time exact"));
    let which = Selection { between: Some(between("..1").unwrap()), ..Selection::default() };
    assert!(refused(&which, false).contains("when each call began"));
}

#[test]
fn a_way_to_keep_time_that_is_not_known() {
    let mut trace = alike(1, &[barrier()]);
    trace.meta.options.push(("time".into(), "sundial".into()));
    let opened = Times::open(&trace, Cursor::new(Vec::new()), None);
    assert!(matches!(&opened, Err(Error::BadTime { why }) if why.contains("sundial")));
    assert_eq!(Time::read("exact").unwrap(), Time::Exact);
}

#[test]
fn what_clocks_return_is_shown() {
    let calls = vec![(call("MPI_Wtime"), 5, 10), (barrier(), 20, 30), (call("MPI_Wtick"), 40, 50)];
    for (time, results) in [("exact", ["0.250000005", "0", "0.25000004"]), ("binned", ["null", "0", "null"])]
    {
        let (trace, times) = open_timed(timed_file(&[vec![calls.clone()]], time));
        let show = |format| {
            let mut out = Vec::new();
            let how = How { format, from: None, times: times.as_ref(), merged: false };
            dump_as(&trace, &Selection::default(), &how, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let json = show(Format::Json);
        let told = json.lines().map(|line| line.split_once("\"result\":").unwrap().1.trim_end_matches('}'));
        assert_eq!(told.collect::<Vec<_>>(), results);
        if time == "exact" {
            assert!(show(Format::Text).lines().next().unwrap().ends_with("MPI_Wtime() = 0.250000005"));
        }
    }
}
