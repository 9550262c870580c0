//! Dump, verify and info on traces that were recorded, folded and merged for the test.

use crate::common;

use common::{Encoded, alike, alltoall, contiguous, looped, send, split, trace_of};
use refrain_fold::ranks::RankList;
use refrain_model::function;
use refrain_tracefile::Trace;
use refrain_views::dump::{Format, Selection, dump};
use refrain_views::verify::{Problem, damaged_byte, verify};
use refrain_views::{Error, info};

fn lines(trace: &Trace, which: Selection, format: Format) -> Vec<String> {
    let mut out = Vec::new();
    dump(trace, &which, format, &mut out).unwrap();
    String::from_utf8(out).unwrap().lines().map(str::to_string).collect()
}

#[test]
fn every_call_in_order() {
    let trace =
        alike(2, &[contiguous(3, 0, 12), send(5, "#0"), split(0, 0, &[0, 1]), alltoall(1, "MPI_INT", "#0")]);
    assert_eq!(
        lines(&trace, Selection::default(), Format::Text)[4..],
        [
            "[1] 0  MPI_Type_contiguous(count=3, oldtype=MPI_INT, newtype=type#0) = 0 {size=12, lb=0, extent=12}",
            "[1] 1  MPI_Send(buf=-, count=5, datatype=type#0, dest=2, tag=9, comm=world) = 0",
            "[1] 2  MPI_Comm_split(comm=world, color=0, key=0, newcomm=world.0) = 0 {group=[0, 1]}",
            "[1] 3  MPI_Alltoall(sendbuf=-, sendcount=1, sendtype=MPI_INT, recvbuf=-, recvcount=1, \
             recvtype=MPI_INT, comm=world.0) = 0",
        ]
    );
    assert_eq!(
        lines(&trace, Selection::default(), Format::Json)[1],
        r#"{"rank":0,"thread":0,"number":1,"call":"MPI_Send","args":{"buf":null,"count":5,"datatype":"type#0","dest":1,"tag":9,"comm":"world"},"result":0}"#
    );
}

#[test]
fn any_rank_thread_range_or_function() {
    let thread = |n: i64| vec![send(n, "MPI_INT"), contiguous(n, 0, 4 * n), send(n + 1, "MPI_INT")];
    let trace = trace_of(&[vec![thread(10), thread(20)], vec![thread(30)], vec![thread(40)]]);
    let counts = |which: Selection| {
        let count = |line: String| {
            let (place, rest) = line.split_once("  ").unwrap();
            let count = rest.split_once("count=").unwrap().1.split(',').next().unwrap().to_string();
            format!("{place}:{count}")
        };
        lines(&trace, which, Format::Text).into_iter().map(count).collect::<Vec<_>>().join(" ")
    };
    let all = Selection::default();
    let ranks = |text: &str| Some(text.parse().unwrap());
    assert_eq!(
        counts(Selection { ranks: ranks("0,2"), calls: 2..3, ..all.clone() }),
        "[0.0] 2:11 [0.1] 2:21 [2.0] 2:41"
    );
    assert_eq!(counts(Selection { threads: ranks("1"), ..all.clone() }), "[0.1] 0:20 [0.1] 1:20 [0.1] 2:21");
    let only = Some(vec![function("MPI_Type_contiguous").unwrap()]);
    assert_eq!(counts(Selection { ranks: ranks("1-2"), only, ..all.clone() }), "[1.0] 1:30 [2.0] 1:40");
    assert_eq!(counts(Selection { calls: 7..9, ..all.clone() }), "");

    let missing = |which: Selection| match dump(&trace, &which, Format::Text, &mut Vec::new()) {
        Err(Error::NoSuch { what, number, have }) => format!("{what} {number} of {have}"),
        other => panic!("{other:?}"),
    };
    assert_eq!(missing(Selection { ranks: ranks("1-9"), ..all.clone() }), "rank 3 of 0 to 2");
    assert_eq!(missing(Selection { threads: ranks("2"), ..all }), "thread 2 of 0 to 1");
}

#[test]
fn a_reader_that_goes_away() {
    struct Gone;
    impl std::io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error =
        dump(&alike(1, &[send(1, "MPI_INT")]), &Selection::default(), Format::Text, &mut Gone).unwrap_err();
    assert!(error.is_broken_pipe());
}

fn problems(trace: &Trace) -> Vec<String> {
    verify(trace, &mut |_, _| {}).problems.iter().map(Problem::to_string).collect()
}

#[test]
fn yes() {
    let trace = alike(9, &[send(1, "MPI_INT"), send(2, "MPI_INT")]);
    let mut last = (0, 0);
    let report = verify(&trace, &mut |done, all| last = (done, all));
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert_eq!((report.ranks, report.calls, report.cohorts), (9, 18, 1));
    assert_eq!(last, (2, 2));
}

#[test]
fn yes_but_not_everything() {
    let said = |words: &str| {
        let mut trace = alike(3, &[send(1, "MPI_INT")]);
        trace.meta.options.push(("lossy".into(), words.into()));
        let (mut answer, mut screen) = (Vec::new(), Vec::new());
        refrain_views::verify::write_text(&verify(&trace, &mut |_, _| {}), &mut answer).unwrap();
        info::write_text(&trace, &info::File::default(), &mut screen).unwrap();
        (String::from_utf8(answer).unwrap(), String::from_utf8(screen).unwrap())
    };
    let (answer, screen) = said("histograms=9,averages,tags,waits");
    let kept = "what is read back is what was kept of what was recorded with --lossy histograms=9,averages,tags,waits";
    assert!(answer.starts_with("yes: 3 ranks, 3 calls: ") && answer.contains(kept), "{answer}");
    for lost in ["more than 9 numbers", "counts of MPI_Alltoallv", "tags, where", "how many MPI_Waitsome"] {
        assert!(screen.contains("\nlost ") && screen.contains(lost), "{screen}");
    }
    assert!(screen.contains("all arguments and results but those below\n"), "{screen}");
    let (answer, screen) = said("sites=2");
    assert!(answer.contains("what was kept of what was recorded with --lossy sites=2"), "{answer}");
    assert!(screen.contains("differ in fewer than 2 frames"), "{screen}");
}

#[test]
fn no_if_a_digest_differs() {
    let mut trace = alike(3, &[send(1, "MPI_INT"), send(2, "MPI_INT")]);
    trace.bundle.cohorts[0].digest ^= 1;
    assert_eq!(
        problems(&trace),
        [
            "the 2 calls of rank 0, thread 0 (and of 2 ranks that did the same) are not those that were recorded: their \
          digest differs"
        ]
    );
}

/// Ranks with numbers of their own are read one by one, and held against the sum of their digests.
#[test]
fn ranks_with_other_numbers() {
    let rank = |r: i64| vec![vec![send(10 + r, "MPI_INT"), send(2 * r, "MPI_INT")]];
    let mut trace = trace_of(&(0..6).map(rank).collect::<Vec<_>>());
    assert_eq!(trace.bundle.cohorts.len(), 1);
    assert!(!trace.bundle.cohorts[0].is_uniform());
    let report = verify(&trace, &mut |_, _| {});
    assert!(report.problems.is_empty() && report.calls == 12, "{:?}", report.problems);
    trace = refrain_tracefile::read(&refrain_tracefile::write(&trace)).unwrap();
    assert!(problems(&trace).is_empty());
    let stats = refrain_views::stats::stats(&trace).unwrap();
    let payload: Vec<u128> = stats.ranks.iter().map(|r| r.payload.bytes).collect();
    assert_eq!(payload, [40, 52, 64, 76, 88, 100]);
    assert_eq!(stats.functions[0].payload.unwrap().bytes, payload.iter().sum());
    trace.bundle.cohorts[0].digest ^= 1;
    assert_eq!(
        problems(&trace),
        ["the calls of one of ranks 0-5, thread 0 are not those that were recorded: their digest differs"]
    );
}

#[test]
fn no_if_a_value_or_a_symbol_changed() {
    let calls = [send(1, "MPI_INT"), send(2, "MPI_INT"), send(7, "MPI_INT")];
    for stream in 0..alike(1, &calls).bundle.streams.len() {
        let mut trace = alike(1, &calls);
        trace.bundle.streams[stream] = refrain_fold::stream::Stream::constant(3);
        assert_eq!(problems(&trace).len(), 1, "stream {stream}");
    }
    let mut trace = alike(1, &calls);
    let last = trace.bundle.symbols[0].bytes.len() - 1;
    trace.bundle.symbols[0].bytes[last] ^= 0x10;
    assert_eq!(problems(&trace).len(), 1);
}

#[test]
fn no_if_a_rank_is_missing() {
    let mut trace = alike(3, &[send(1, "MPI_INT")]);
    trace.meta.ranks = 6;
    assert_eq!(problems(&trace), ["nothing is recorded of rank 3-5"]);
    trace.meta.complete = false;
    assert!(problems(&trace).is_empty());
}

#[test]
fn ranks_that_were_not_chosen_are_not_missing() {
    let mut trace = alike(4, &[send(1, "MPI_INT")]);
    trace.meta.ranks = 5;
    assert_eq!(problems(&trace), ["nothing is recorded of rank 4"]);
    trace.meta.options.push(("ranks".into(), "0-3".into()));
    assert!(problems(&trace).is_empty());
    let told = info::recorded(&trace.meta.options).join("\n");
    assert!(told.contains("every call of ranks 0-3, all arguments"), "{told}");
    trace.meta.options.extend([("only".into(), "p2p".into()), ("window".into(), "1s..2s".into())]);
    let told = info::recorded(&trace.meta.options).join("\n");
    assert!(told.contains("only p2p of ranks 0-3, 1s..2s after MPI_Init"), "{told}");
    assert!(told.contains("also MPI_Init"), "{told}");
}

#[test]
fn no_if_the_parts_do_not_fit() {
    let mut trace = alike(3, &[send(1, "MPI_INT")]);
    trace.bundle.cohorts[0].structure = 7;
    assert!(problems(&trace)[0].starts_with("the trace's parts do not fit"));
}

/// Whoever made the file chose these names; they make no line of ours, and give the terminal no orders.
#[test]
fn names_stay_on_their_lines() {
    let evil = "x\nranks        9\u{1b}[2J\u{9b}31m\r";
    let mut trace = alike(2, &[send(1, "MPI_INT")]);
    let plain = screen(&trace);
    let meta = &mut trace.meta;
    meta.command = vec![evil.into()];
    meta.library = evil.into();
    meta.abi = evil.into();
    meta.refrain_version = evil.into();
    meta.hosts = vec![(evil.into(), RankList::from_sorted(&[0, 1]))];
    meta.options = vec![("lossy".into(), evil.into()), (evil.into(), evil.into())];
    meta.notes = vec![evil.into()];
    let text = screen(&trace);
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    assert_eq!(text.lines().filter(|line| line.starts_with("ranks ")).count(), 1, "{text}");
    // What is lost, an option and a note.
    assert_eq!(text.lines().count(), plain.lines().count() + 3, "{text}");
    assert!(text.contains(r"hosts        x\nranks        9\u001b[2J\u009b31m\r"), "{text}");

    let mut out = Vec::new();
    refrain_views::verify::write_text(&verify(&trace, &mut |_, _| {}), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains(r"--lossy x\nranks") && text.lines().count() == 1, "{text}");
}

fn screen(trace: &Trace) -> String {
    let mut out = Vec::new();
    info::write_text(trace, &info::File::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn stacks_that_were_kept() {
    for (options, told) in [
        ("stacks=site recursion=keep", "call stacks: the place that calls MPI"),
        ("stacks=full", "call stacks: all frames, recursions folded"),
        ("stacks=full recursion=keep", "call stacks: all frames, recursions as deep as they are"),
        (
            "stacks=full lossy=sites=3",
            "lost: call stacks as deep as each other that differ in fewer than 3 frames; they are one of them",
        ),
        ("lossy=sites-in=a+0x1-0x2", "lost: which place in a+0x1-0x2 a call was made from"),
    ] {
        let words = options.split(' ').map(|option| option.split_once('=').unwrap());
        let options: Vec<(String, String)> = words.map(|(name, is)| (name.into(), is.into())).collect();
        let lines = info::recorded(&options);
        assert!(lines.iter().any(|line| line == told), "{told:?} in {lines:?}");
    }
}

/// A flipped byte is told from a foreign file, wherever it is; a cut file is not taken for a damaged one.
#[test]
fn flipped_and_foreign() {
    let bytes = refrain_tracefile::write(&alike(3, &[send(1, "MPI_INT"), send(2, "MPI_INT")]));
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let error = refrain_tracefile::read(&flipped).expect_err("a flipped bit goes unseen");
            let looks_foreign = !matches!(
                error,
                refrain_tracefile::Error::Damaged { .. }
                    | refrain_tracefile::Error::Malformed { .. }
                    | refrain_tracefile::Error::Trailing { .. }
            );
            if looks_foreign {
                assert_eq!(damaged_byte(&flipped), Some(at), "bit {bit} of byte {at}: {error}");
            }
        }
    }
    for len in 0..bytes.len() {
        assert_eq!(damaged_byte(&bytes[..len]), None, "cut at {len}");
    }
    assert_eq!(damaged_byte(b"#!/bin/sh\nexit 0\n"), None);
}

#[test]
fn one_screen() {
    let mut trace = alike(3, &[send(1, "MPI_INT"), send(2, "MPI_INT")]);
    trace.meta.notes = vec!["rank 2: something odd".into()];
    trace.meta.options = vec![("pointers".into(), "off".into())];
    let file = info::File {
        name: "x.rfn",
        bytes: 3,
        sections: &[("meta", 1), ("streams", 2)],
        ..Default::default()
    };
    let mut out = Vec::new();
    info::write_text(&trace, &file, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    for part in [
        "file         x.rfn, 3 bytes, complete\n",
        "command      mpiexec './my app'\n",
        "MPI library  Fake MPI 1.0 (none)\n",
        "started      2000-02-29T00:00:00Z\n",
        "run          1.90 us, from the start of MPI_Init to MPI_Finalize on the longest rank\n",
        "calls        6, 0.500 bytes a call\n",
        "1 symbol, 1 rule in 1 structure",
        "bytes        meta 1, streams 2\n",
        "not kept (--pointers off)",
        "notes        rank 2: something odd\n",
    ] {
        assert!(text.contains(part), "{part:?} in:\n{text}");
    }
    assert!(text.lines().count() <= 24, "more than a screen");
    let mut out = Vec::new();
    info::write_json(&trace, &file, &mut out).unwrap();
    let json = String::from_utf8(out).unwrap();
    for part in [r#""calls":6,"#, r#""sections":{"meta":1,"streams":2}"#, r#""options":{"pointers":"off"}"#] {
        assert!(json.contains(part), "{part} in {json}");
    }
}

/// Of calls that have no times it is said how many.
#[test]
fn calls_without_times_are_counted() {
    let mut trace = alike(3, &[send(1, "MPI_INT"), send(2, "MPI_INT")]);
    trace.meta.options = vec![("time".into(), "exact".into())];
    let told = |timed| {
        let file = info::File { timed, ..info::File::default() };
        let (mut text, mut json) = (Vec::new(), Vec::new());
        info::write_text(&trace, &file, &mut text).unwrap();
        info::write_json(&trace, &file, &mut json).unwrap();
        let (text, json) = (String::from_utf8(text).unwrap(), String::from_utf8(json).unwrap());
        let line = text.lines().find_map(|line| Some(line.split_once("time: when ")?.1.to_owned()));
        (line.unwrap(), json.contains("\"timed_calls\":4,"))
    };
    assert_eq!(told(Some(6)), ("each call began and ended, to the nanosecond".into(), false));
    let some = "each call began and ended, to the nanosecond where kept; 2 of 6 calls have none";
    assert_eq!(told(Some(4)), (some.into(), true));
    assert_eq!(told(Some(0)), ("single calls began and ended: of none of them".into(), false));
}

#[test]
fn loops_of_all_structures_are_counted() {
    let turns: Vec<Encoded> = (0..5).flat_map(|_| [send(1, "MPI_INT"), contiguous(1, 0, 4)]).collect();
    let mut trace = looped(&[vec![turns]]);
    trace.bundle.structures.push(trace.bundle.structures[0].clone());
    let mut out = Vec::new();
    info::write_text(&trace, &info::File::default(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains(" 2 loops in 2 structures"), "{text}");
}

/// A trace of `tests/programs/new_strings.c` as it was written once: strings that are new in every call are in lanes.
#[test]
fn strings_in_lanes_are_read_as_they_were_written() {
    let trace = refrain_tracefile::read(include_bytes!("seeds/strings.rfn")).unwrap();
    let text = lines(&trace, Selection::default(), Format::Text);
    for (rank, step) in [(0, 0), (0, 70), (1, 79)] {
        let wanted = format!(
            r#"MPI_Info_set(info=info#0, key="filename", value="/scratch/rank{rank}/checkpoint.{step:05}")"#
        );
        assert_eq!(text.iter().filter(|line| line.contains(&wanted)).count(), 1, "{wanted}");
    }
    let names =
        text.iter().filter(|line| line.contains(r#"MPI_Comm_set_name(comm=world, comm_name="odd field")"#));
    assert_eq!((text.len(), names.count()), (814, 2 * (0..80).filter(|n| n % 11 != 0 && n % 3 == 0).count()));
}
