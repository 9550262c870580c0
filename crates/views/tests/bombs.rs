//! Traces of a few bytes that stand for more than anyone can wait for: what can answer from the folded form does, and what
//! cannot says so.

use crate::common;

use common::{call, contiguous, looped, send, split, trace_of};
use refrain_encode::Reader;
use refrain_fold::grammar::{Grammar, Item, Symbol};
use refrain_sites::Binaries;
use refrain_tracefile::Trace;
use refrain_views::loops::{Options, write_events, write_json, write_text};
use refrain_views::{dump, info, stats, verify, written};

/// Three calls, so often.
fn repeated(times: u64) -> Trace {
    let barrier = call("MPI_Barrier").object("MPI_COMM_WORLD");
    let mut trace = trace_of(&[vec![vec![send(1, "MPI_INT"), barrier, send(2, "MPI_INT")]]]);
    for structure in &mut trace.bundle.structures {
        let start = structure.rules().unwrap().rules[0].clone();
        let rules = vec![vec![Item { symbol: Symbol::Rule(1), count: times }], start];
        *structure = Grammar { rules }.into();
    }
    trace
}

#[test]
fn more_calls_than_anyone_can_wait_for() {
    let trace = repeated(1 << 50);
    trace.bundle.validate().unwrap();
    let trace = refrain_tracefile::read(&refrain_tracefile::write(&trace)).unwrap();
    let calls = 3 << 50;
    assert_eq!(info::calls(&trace.bundle), calls);
    let stats = stats::stats(&trace).unwrap();
    assert_eq!(stats.functions.iter().map(|row| row.calls).sum::<u64>(), calls);
    written::write(&trace, &mut std::io::sink()).unwrap();
    let names = Binaries::new(&trace.bundle.sites, &[]);
    let options = Options::default();
    // Loops are read off the rules.
    let mut out = Vec::new();
    write_events(&trace, &options, &mut out).unwrap();
    write_json(&trace, &names, &options, &mut out).unwrap();
    write_text(&trace, &names, &options, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("1,125,899,906,842,624 times"), "{text}");
    let mut out = Vec::new();
    // As many as it takes are gone through.
    let trace = repeated(1000);
    write_text(&trace, &names, &options, &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("1,000"));
}

/// What comes before the calls that are asked for is not gone through: neither the calls nor their numbers.
#[test]
fn the_last_of_many_calls() {
    let steps = 2000;
    let calls = |rank: i64| {
        let mut calls = vec![split(0, 0, &[0, 1])];
        for step in 0..steps {
            calls.push(call("MPI_Barrier").object(if step % 7 < 3 { "#0" } else { "MPI_COMM_WORLD" }));
            calls.push(send(100 + step * step % 11 + rank * step % 5, "MPI_INT"));
            calls.push(contiguous(step % 13, 0, 4 * (step % 13)));
            if step % 10 == 0 {
                calls.push(split(1, 1 + step / 10, &[0, 1][..if step < 50 { 1 } else { 2 }]));
                calls.push(call("MPI_Barrier").object("#1"));
            }
        }
        vec![calls]
    };
    for trace in [trace_of(&[calls(0), calls(1)]), looped(&[calls(0), calls(1)])] {
        let text = |calls: std::ops::Range<u64>| {
            let which = dump::Selection { calls, ..dump::Selection::default() };
            let mut out = Vec::new();
            dump::dump(&trace, &which, dump::Format::Text, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let all = text(0..u64::MAX);
        let (first, second) = all.split_at(all.find("[1]").unwrap());
        let count = first.lines().count();
        for n in [1, 2, 3, 36, count / 3, count / 2, count - 1, count, count + 1] {
            let expected: Vec<&str> =
                first.lines().skip(n).take(30).chain(second.lines().skip(n).take(30)).collect();
            assert_eq!(text(n as u64..n as u64 + 30).lines().collect::<Vec<_>>(), expected, "from {n}");
        }
        let reader = Reader::new(&trace.bundle);
        assert_eq!(reader.calls_from(1, 0, count as u64 - 5).unwrap().count(), 5);
        // Those that make communicators, twice because their groups differ, and one of each other kind.
        let makers = 1 + steps as u64 / 10;
        assert!(reader.events_read() < 2 * makers + 30, "{}", reader.events_read());
    }
}

/// Threads use communicators that others made. For that, only the calls that make some are read again.
#[test]
fn calls_are_read_once_whatever_the_threads() {
    let (threads, calls) = (24, 40);
    let on = |comm: &str| call("MPI_Barrier").object(comm);
    let thread = |thread: i64| {
        let mut own: Vec<_> = (0..calls).map(|_| on("#0")).collect();
        // One thread makes the communicator, the next makes another one from it.
        match thread {
            7 => own.insert(0, split(0, 0, &[0])),
            3 => own.insert(20, call("MPI_Comm_dup").object("#0").comm_as_parent(1, 0)),
            _ => own.push(on("#1")),
        }
        own
    };
    let all: Vec<_> = (0..threads).map(thread).collect();
    for trace in [trace_of(std::slice::from_ref(&all)), looped(std::slice::from_ref(&all))] {
        let reader = Reader::new(&trace.bundle);
        let mut read = 0;
        for thread in reader.threads(0) {
            read += reader.calls(0, thread).unwrap().map(Result::unwrap).count() as u64;
        }
        assert_eq!(read, threads as u64 * (calls + 1));
        // Two of them make communicators; names that hang on those of other threads are looked up twice.
        assert!(reader.events_read() <= read + 6, "{} for {read}", reader.events_read());
        assert!(verify::verify(&trace, &mut |_, _| {}).problems.is_empty());
        let mut out = Vec::new();
        dump::dump(&trace, &dump::Selection::default(), dump::Format::Text, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let count = |what: &str| out.matches(what).count() as u64;
        assert_eq!(count("MPI_Barrier(comm=world.0)"), threads as u64 * calls);
        assert_eq!(count("MPI_Barrier(comm=world.0.0)"), threads as u64 - 2, "{out}");
    }
}
