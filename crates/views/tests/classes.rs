//! Calls and time by size and peer, from what the folded form keeps of them.

use crate::common;

use common::{Encoded, call, contiguous, send, trace_of};
use refrain_tracefile::Trace;
use refrain_views::stats::{By, classes, write_classes_json, write_classes_text};

/// `MPI_Isend` to a peer, relative to the caller.
fn to(count: i64, datatype: &str, peer: i64) -> Encoded {
    let start = call("MPI_Ssend").buffer().number(count).object(datatype);
    start.tagged(peer).tagged(9).object("MPI_COMM_WORLD")
}

/// Written and read again, so that all of it has been in a file.
fn stored(trace: &Trace) -> Trace {
    refrain_tracefile::read(&refrain_tracefile::write(trace)).unwrap()
}

/// `function what calls total min max`, line by line.
#[track_caller]
fn check(trace: &Trace, by: By, expected: &[&str]) {
    let rows = classes(trace, by).unwrap();
    let lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let time = row.time;
            format!(
                "{} {}: {} in {} {}..{}",
                row.function, row.what, row.calls, time.total, time.min, time.max
            )
        })
        .collect();
    assert_eq!(lines, expected);
}

fn exchange() -> Trace {
    // One call site, small and large messages, two peers. All times are such that a file keeps them exactly.
    let rank = |rank: i64| {
        let mut calls = Vec::new();
        for step in 0..6 {
            calls.push(to(1, "MPI_DOUBLE", 1).took(512));
            calls.push(to(1, "MPI_DOUBLE", -1).took(768 + 256 * (step % 2)));
            calls.push(to(1 << 19, "MPI_DOUBLE", 1).took(65_536));
        }
        if rank == 0 {
            calls.push(to((1 << 20) - 1, "MPI_DOUBLE", 1).took(98_304));
        }
        vec![calls]
    };
    trace_of(&(0..4).map(rank).collect::<Vec<_>>())
}

#[test]
fn sizes_and_peers_are_told_apart() {
    for trace in [exchange(), stored(&exchange())] {
        check(
            &trace,
            By::Size,
            &[
                "MPI_Ssend 8 B: 48 in 33792 512..1024",
                "MPI_Ssend 4.00 MiB - 8.00 MiB: 25 in 1671168 65536..98304",
            ],
        );
        check(
            &trace,
            By::Peer,
            &["MPI_Ssend -1: 24 in 21504 768..1024", "MPI_Ssend +1: 49 in 1683456 512..98304"],
        );
    }
}

/// A symbol whose calls are all alike has no classes in a file; its numbers say what they are.
#[test]
fn what_is_alone_is_told_by_its_numbers() {
    let calls = |times: usize| vec![vec![send(10, "MPI_INT"); times]];
    let mut trace = trace_of(&[calls(3), calls(3), calls(5)]);
    assert!(trace.bundle.symbols.iter().all(|symbol| symbol.classes.is_empty()));
    check(&trace, By::Size, &["MPI_Send 32 B - 60 B: 11 in 1100 100..100"]);
    check(&trace, By::Peer, &["MPI_Send +1: 11 in 1100 100..100"]);
    let inline = vec![vec![send(10, "MPI_INT").inline(), send(1000, "MPI_INT").inline()]];
    let inline = trace_of(&[inline]);
    check(
        &inline,
        By::Size,
        &["MPI_Send 32 B - 60 B: 1 in 100 100..100", "MPI_Send 2.00 KiB - 4.00 KiB: 1 in 100 100..100"],
    );
    check(&inline, By::Peer, &["MPI_Send +1: 2 in 200 100..100"]);
    trace.meta.timed = false;
    assert!(classes(&trace, By::Size).unwrap().is_empty());
}

#[test]
fn many_peers_are_one() {
    let calls: Vec<Encoded> =
        (0..17).flat_map(|peer| [to(1, "MPI_CHAR", peer), to(4, "MPI_CHAR", peer)]).collect();
    let trace = stored(&trace_of(&[vec![calls.clone()], vec![calls]]));
    check(&trace, By::Peer, &["MPI_Ssend all: 68 in 6800 100..100"]);
    check(
        &trace,
        By::Size,
        &["MPI_Ssend 1 B: 34 in 3400 100..100", "MPI_Ssend 4 B - 7 B: 34 in 3400 100..100"],
    );
    let alone: Vec<Encoded> = (0..17).map(|peer| to(1, "MPI_CHAR", peer)).collect();
    let trace = stored(&trace_of(&[vec![alone]]));
    check(&trace, By::Peer, &["MPI_Ssend all: 17 in 1700 100..100"]);
    check(&trace, By::Size, &["MPI_Ssend 1 B: 17 in 1700 100..100"]);
}

#[test]
fn types_and_names() {
    let nobody = call("MPI_Send").buffer().number(0).object("MPI_INT").named("MPI_PROC_NULL").tagged(9);
    let bcast =
        |root| call("MPI_Bcast").buffer().tagged(2).object("MPI_INT").tagged(root).object("MPI_COMM_WORLD");
    let barrier = call("MPI_Barrier").object("MPI_COMM_WORLD");
    let calls = vec![
        contiguous(3, 0, 12),
        to(1, "#0", 0),
        to(3, "#7", 0),
        nobody.object("MPI_COMM_WORLD"),
        bcast(0),
        bcast(2),
        barrier,
    ];
    let trace = stored(&trace_of(&[vec![calls]]));
    check(
        &trace,
        By::Size,
        &[
            "MPI_Bcast 8 B - 12 B: 2 in 200 100..100",
            "MPI_Ssend 12 B: 1 in 100 100..100",
            "MPI_Ssend 2 - 3 elements: 1 in 100 100..100",
            "MPI_Send 0 B: 1 in 100 100..100",
        ],
    );
    check(
        &trace,
        By::Peer,
        &["MPI_Ssend itself: 2 in 200 100..100", "MPI_Send MPI_PROC_NULL: 1 in 100 100..100"],
    );
}

#[test]
fn tables() {
    let text = |trace: &Trace, by| {
        let mut out = Vec::new();
        write_classes_text(trace, by, &classes(trace, by).unwrap(), &mut out).unwrap();
        write_classes_json(trace, by, &classes(trace, by).unwrap(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let sizes = text(&exchange(), By::Size);
    for part in ["4.00 MiB - 8.00 MiB", " ~704 ns", "\"max_bytes\":8388600", "\"per\":\"size\""] {
        assert!(sizes.contains(part), "{part}: {sizes}");
    }
    assert!(text(&exchange(), By::Peer).contains("\"peer\":\"-1\",\"relative\":-1,\"calls\":24,"));
    let barrier = call("MPI_Barrier").object("MPI_COMM_WORLD");
    let none = text(&trace_of(&[vec![vec![barrier]]]), By::Peer);
    assert!(none.starts_with("No call that was recorded names a peer."), "{none}");
}

/// As text and back.
#[test]
fn classes_can_be_written_and_read() {
    let many = trace_of(&[vec![(0..20).map(|peer| to(1 + peer, "MPI_CHAR", peer)).collect()]]);
    for trace in [exchange(), many] {
        let mut text = Vec::new();
        refrain_views::written::write(&trace, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("\n  class bits 1 peer "), "{text}");
        let read = refrain_views::written::read(&text).unwrap();
        assert_eq!(read.bundle.symbols, trace.bundle.symbols);
        let stray = text.replacen("symbol 0", "class bits 1 peer 0 calls 1 time 1 1 1\nsymbol 0", 1);
        assert!(refrain_views::written::read(&stray).is_err());
    }
}
