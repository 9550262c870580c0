//! A trace as text, and back.

use crate::common;

use common::{Encoded, alltoall, call, contiguous, looped, send, split, trace_of};
use fastrand::Rng;
use refrain_fold::ranks::RankList;
use refrain_tracefile::clocks::{Clock, Clocks, Point};
use refrain_tracefile::{Memory, Trace};
use refrain_views::dump::{Format, Selection, dump};
use refrain_views::written::{WITHOUT_TIMES, read, write};

fn text(trace: &Trace) -> String {
    let mut out = Vec::new();
    write(trace, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn dumped(trace: &Trace) -> Vec<u8> {
    let mut out = Vec::new();
    dump(trace, &Selection::default(), Format::Json, &mut out).unwrap();
    out
}

/// A program: loops within loops of a few calls, some numbers of which depend on the rank, the step or on nothing.
fn add_calls(random: &mut Rng, rank: i64, depth: u64, out: &mut Vec<Encoded>) {
    for place in 0..1 + random.u64(..4) {
        let stack = [100 + depth, 200 + place];
        match random.u64(..if depth < 3 { 7 } else { 5 }) {
            0 => out.push(send(random.u64(..1000) as i64, "MPI_INT").from(&stack)),
            1 => out.push(send(rank * 3, "MPI_DOUBLE").from(&stack)),
            2 => out.push(call("MPI_Barrier").object("MPI_COMM_WORLD").from(&stack)),
            3 => out.push(contiguous(3, random.u64(..3) as i64, 12)),
            4 => out.push(alltoall(rank % 2, "MPI_INT", "MPI_COMM_WORLD")),
            _ => {
                let mut body = Vec::new();
                add_calls(random, rank, depth + 1, &mut body);
                for _ in 0..1 + random.u64(..12) {
                    out.extend(body.iter().cloned());
                }
            }
        }
    }
}

fn random(seed: u64) -> Vec<Vec<Vec<Encoded>>> {
    let ranks = 1 + seed % 5;
    let rank = |rank: u64| {
        // Half of the programs are the same on all ranks but for what they do with it.
        let mut random = Rng::with_seed(if seed.is_multiple_of(2) { seed } else { seed ^ rank << 20 });
        let threads = 1 + seed % 3 / 2;
        let thread = |_| {
            let mut calls = vec![split(0, 0, &[0, 1])];
            add_calls(&mut random, rank as i64, 0, &mut calls);
            calls
        };
        (0..threads).map(thread).collect()
    };
    (0..ranks).map(rank).collect()
}

#[test]
fn what_is_written_is_read() {
    for seed in 0..40 {
        for trace in [trace_of(&random(seed)), looped(&random(seed))] {
            let written = text(&trace);
            let back = read(&written).unwrap_or_else(|error| panic!("{seed}: {error}\n{written}"));
            assert_eq!(back, trace, "{seed}");
            assert_eq!(dumped(&back), dumped(&trace), "{seed}");
        }
    }
}

#[test]
fn every_kind_of_stream_and_every_field() {
    let mut random = Rng::with_seed(7);
    let mut calls = Vec::new();
    for i in 0..4000i64 {
        // Numbers without a shape, nested strides, strides, constants.
        calls.push(send(random.u64(..1 << 40) as i64, "MPI_INT"));
        calls.push(alltoall(i / 10 * 1000 + i % 10, "MPI_INT", "MPI_COMM_WORLD"));
        calls.push(contiguous(i, 0, 4));
    }
    let mut trace = trace_of(&[vec![calls]]);
    trace.meta.hosts = vec![("node \"1\"".into(), [0].into_iter().collect())];
    trace.meta.options = vec![("fold".into(), "loops,exact".into())];
    trace.meta.notes = vec!["rank 0:\tended # early\n".into(), String::new()];
    trace.meta.memory = Some(Memory { min: 1024, mean: 2048, max: 4096, root: 8192 });
    trace.meta.merge_ms = Some(3);
    let point = |at| Point { at, common: at + 7, error: 9 };
    let clock = |ranks: &[u32], counter| Clock {
        ranks: RankList::from_sorted(ranks),
        counter,
        monotonic: !counter,
        wander: 3,
        residual: 4,
        start: point(5),
        end: point(1 << 40),
    };
    trace.meta.clocks = Some(Clocks { clocks: vec![clock(&[0, 2], true), clock(&[1], false)] });
    let written = text(&trace);
    assert!(written.contains("block packed") && written.contains("block running"), "{}", &written[..3000]);
    assert_eq!(read(&written), Ok(trace));
}

/// The first line says that a text has no times of single calls, and what is made of it says so too and keeps none.
#[test]
fn times_of_single_calls_are_not_lost_silently() {
    let mut trace = trace_of(&[vec![vec![send(1, "MPI_INT")]]]);
    for (time, without) in [("exact", true), ("binned", true), ("histogram", false)] {
        trace.meta.options = vec![("time".into(), time.into()), ("fold".into(), "loops,exact".into())];
        let written = text(&trace);
        let first = written.lines().next().unwrap();
        assert_eq!(first.contains("without the times of single calls"), without, "{first}");
        let back = read(&written).unwrap();
        assert_eq!(back.meta.notes.iter().any(|note| note == WITHOUT_TIMES), without, "{time}");
        assert_eq!(back.meta.options.len(), if without { 1 } else { 2 });
        // Again: it says so once.
        assert_eq!(read(&text(&back)), Ok(back));
    }
}

#[test]
fn texts_that_are_no_traces() {
    let whole = text(&looped(&random(4)));
    let why = |text: &str| read(text).unwrap_err().to_string();
    assert!(why("").contains("empty"));
    assert!(why("hello\n").starts_with("line 1: this is no text of a trace"), "{}", why("hello\n"));
    assert!(why("refrain-text 9\n").contains("version 9"));
    assert!(why("refrain-text 1\nranks many\n").starts_with("line 2: `many` is not a number of ranks"));
    assert!(why("refrain-text 1\nnote hello\n").contains("in quotes"));
    assert!(why("refrain-text 1\nranks 2 3\n").contains("`3` is one word too many"));
    assert!(why("refrain-text 1\nlane 0\n").contains("belongs to a cohort"));
    assert!(why("refrain-text 1\nranks 1\ncohort members 0 structure 3 digest 0\n").contains("structure 3"));
    let sum = text(&trace_of(&[0, 1, 2].map(|rank| vec![vec![send(rank * 3, "MPI_INT")]])));
    assert!(sum.contains(" 0=0x3:1:3"), "{sum}");
    let deep = sum.replace("0=0x3:1:3", &"0=1;".repeat(200_000));
    assert!(why(&deep).contains("a sum has two functions"));
    // Lines that are lost or words that are changed are noticed or harmless, never more.
    let lines: Vec<&str> = whole.lines().collect();
    for at in 0..lines.len() {
        let without: String =
            lines.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, line)| format!("{line}\n")).collect();
        let _ = read(&without);
        for other in ["0", "99999999999", "-", "x", "\""] {
            let words: Vec<&str> = lines[at].split(' ').collect();
            for word in 0..words.len() {
                let mut changed = words.clone();
                changed[word] = other;
                let changed = changed.join(" ");
                let line =
                    |(i, line): (usize, &&str)| format!("{}\n", if i == at { &changed } else { *line });
                let _ = read(&lines.iter().enumerate().map(line).collect::<String>());
            }
        }
    }
}
