//! Runs that are written down call by call: what the walk over them says of peers, requests, messages and times.

use crate::common;

use std::collections::HashMap;

use common::{Encoded, call, open_timed, split, timed_file, trace_of};
use refrain_tracefile::Trace;
use refrain_views::happenings::{Meaning, Moment, Walk, When, chosen};
use refrain_views::select::Between;
use refrain_views::timed::Times;

const WORLD: &str = "MPI_COMM_WORLD";

fn init() -> Encoded {
    call("MPI_Init").tagged(0).absent()
}

fn message(name: &str, count: i64, peer: i64, tag: i64, comm: &str) -> Encoded {
    call(name).buffer().number(count).object("MPI_INT").tagged(peer).tagged(tag).object(comm)
}

fn send(count: i64, to: i64, tag: i64) -> Encoded {
    message("MPI_Send", count, to, tag, WORLD)
}

fn recv(count: i64, from: i64, tag: i64) -> Encoded {
    message("MPI_Recv", count, from, tag, WORLD).named("MPI_STATUS_IGNORE")
}

fn any(count: i64) -> Encoded {
    call("MPI_Recv").buffer().number(count).object("MPI_INT").named("MPI_ANY_SOURCE").named("MPI_ANY_TAG")
}

fn waitall(requests: &[i64]) -> Encoded {
    let codes: Vec<i64> = requests.iter().map(|id| 2 * id).collect();
    call("MPI_Waitall").number(codes.len() as i64).elements(&codes).named("MPI_STATUSES_IGNORE")
}

fn allreduce(comm: &str) -> Encoded {
    call("MPI_Allreduce").buffer().buffer().number(3).object("MPI_INT").object("MPI_SUM").object(comm)
}

/// Calls that take 5 us each, with 5 us between them; each rank 1 us later than the one before it.
fn timed(ranks: &[Vec<Encoded>]) -> (Trace, Option<Times>) {
    let one = |(rank, calls): (usize, &Vec<Encoded>)| {
        let calls = calls.iter().enumerate().map(|(at, call)| {
            let start = (10 * at + rank) as i64 * 1000;
            (call.clone(), start, start + 5000)
        });
        vec![calls.collect::<Vec<_>>()]
    };
    let ranks: Vec<_> = ranks.iter().enumerate().map(one).collect();
    open_timed(timed_file(&ranks, "exact"))
}

/// `0 Send 1 t9 4B`, and so on, in the order of time.
fn told(trace: &Trace, when: &When, ranks: &[u32]) -> (Vec<String>, HashMap<(bool, u64), u32>) {
    let mut walk = Walk::new(trace, when, ranks, None).unwrap();
    let (mut lines, mut ids) = (Vec::new(), HashMap::new());
    while let Some(moment) = walk.next().unwrap() {
        let (call, meanings) = match &moment {
            Moment::Begins(call) => (call, &call.begins),
            Moment::Ends(call, meanings) => (call, meanings),
        };
        let rank = call.rank;
        for meaning in meanings {
            lines.push(match meaning {
                Meaning::Send(m) | Meaning::Received(m) => {
                    let sent = matches!(meaning, Meaning::Send(_));
                    ids.extend(m.id.map(|id| ((sent, id), rank)));
                    let request = m.request.map_or(String::new(), |request| format!(" r{request}"));
                    let comm =
                        if m.comm.name == "world" { String::new() } else { format!(" {}", m.comm.name) };
                    let what = if sent { "to" } else { "from" };
                    format!("{rank} {what} {} t{} {}B{request}{comm}", m.peer, m.tag, m.bytes)
                }
                Meaning::SendDone { request } => format!("{rank} sent r{request}"),
                Meaning::ReceivePosted { request } => format!("{rank} posted r{request}"),
                Meaning::Cancelled { request } => format!("{rank} cancelled r{request}"),
                Meaning::Tested { request } => format!("{rank} tested r{request}"),
                Meaning::Collective(c) => format!("{rank} comes {}", c.function.name),
                Meaning::CollectiveDone(c) => {
                    format!(
                        "{rank} leaves {} {} {:?} {}/{}B",
                        c.function.name, c.comm.name, c.root, c.sent, c.received
                    )
                }
            });
        }
    }
    (lines, ids)
}

#[track_caller]
fn check(ranks: &[Vec<Encoded>], expected: &[&str]) -> HashMap<(bool, u64), u32> {
    let (trace, times) = timed(ranks);
    let when = When::of(&trace, times.as_ref()).unwrap();
    assert!(!when.is_reconstructed());
    let all: Vec<u32> = (0..trace.meta.ranks).collect();
    let (lines, ids) = told(&trace, &when, &all);
    assert_eq!(lines, expected);
    ids
}

#[test]
fn a_message_has_one_name_on_both_sides() {
    let ranks = [vec![init(), send(2, 1, 9), send(1, 1, 7)], vec![init(), recv(1, -1, 7), recv(5, -1, 9)]];
    let ids = check(&ranks, &["0 to 1 t9 8B", "1 from 0 t7 4B", "0 to 1 t7 4B", "1 from 0 t9 8B"]);
    let sent: HashMap<u64, u32> =
        ids.iter().filter(|(key, _)| key.0).map(|(key, rank)| (key.1, *rank)).collect();
    let received: HashMap<u64, u32> =
        ids.iter().filter(|(key, _)| !key.0).map(|(key, rank)| (key.1, *rank)).collect();
    assert_eq!(sent.len(), 2);
    let mut of_sent: Vec<&u64> = sent.keys().collect();
    let mut of_received: Vec<&u64> = received.keys().collect();
    of_sent.sort_unstable();
    of_received.sort_unstable();
    assert_eq!(of_sent, of_received);
}

#[test]
fn a_receive_from_anybody_is_from_whom_its_status_says() {
    let ranks = [vec![init(), any(9).object(WORLD).status(1, 5, 8)], vec![init(), send(2, -1, 5)]];
    check(&ranks, &["1 to 0 t5 8B", "0 from 1 t5 8B"]);
}

#[test]
fn requests_are_told_when_they_are_complete() {
    let calls = |peer: i64| {
        let isend = message("MPI_Isend", 1, peer, 9, WORLD).tagged(2);
        let irecv = message("MPI_Irecv", 1, peer, 9, WORLD).tagged(4);
        vec![init(), irecv, isend, waitall(&[1, 2])]
    };
    check(
        &[calls(1), calls(-1)],
        &[
            "0 posted r1",
            "1 posted r1",
            "0 to 1 t9 4B r2",
            "1 to 0 t9 4B r2",
            "0 sent r2",
            "0 from 1 t9 4B r1",
            "1 sent r2",
            "1 from 0 t9 4B r1",
        ],
    );
}

#[test]
fn a_persistent_send_is_one_each_time_it_is_started() {
    let make = message("MPI_Send_init", 1, 1, 9, WORLD).tagged(2);
    let start = || call("MPI_Start").tagged(2);
    let wait = || call("MPI_Wait").tagged(2).named("MPI_STATUS_IGNORE");
    let calls = vec![init(), make, start(), wait(), start(), wait()];
    check(
        &[calls, vec![init(), recv(1, -1, 9), recv(1, -1, 9)]],
        &["1 from 0 t9 4B", "0 to 1 t9 4B r1", "1 from 0 t9 4B", "0 sent r1", "0 to 1 t9 4B r2", "0 sent r2"],
    );
}

/// Ranks 0 and 2 of the world are 0 and 1 of the communicator.
#[test]
fn peers_of_a_sub_communicator_are_ranks_of_the_world() {
    let mine = |peer: i64, name: &str| {
        let one = message(name, 1, peer, 9, "#2");
        if name == "MPI_Recv" { one.named("MPI_STATUS_IGNORE") } else { one }
    };
    let ranks = [
        vec![init(), split(2, 0, &[0, 2]), mine(1, "MPI_Send"), allreduce("#2")],
        vec![init(), split(2, 0, &[1])],
        vec![init(), split(2, 0, &[0, 2]), mine(-1, "MPI_Recv"), allreduce("#2")],
    ];
    let (trace, times) = timed(&ranks);
    let when = When::of(&trace, times.as_ref()).unwrap();
    let (lines, ids) = told(&trace, &when, &[0, 1, 2]);
    let messages: Vec<&String> = lines.iter().filter(|line| line.contains("t9")).collect();
    assert_eq!(messages, ["0 to 2 t9 4B world.0", "2 from 0 t9 4B world.0"], "{lines:?}");
    assert_eq!(ids.len(), 2);
    assert!(lines.iter().any(|line| line == "2 leaves MPI_Allreduce world.0 None 12/12B"), "{lines:?}");
}

/// By source and destination: bytes that were sent, and bytes that were received.
fn sums(trace: &Trace, when: &When, ranks: &[u32]) -> [HashMap<(u32, u32), u64>; 2] {
    let mut walk = Walk::new(trace, when, ranks, None).unwrap();
    let [mut sent, mut received] = [HashMap::new(), HashMap::new()];
    while let Some(moment) = walk.next().unwrap() {
        let (call, meanings) = match &moment {
            Moment::Begins(call) => (call, &call.begins),
            Moment::Ends(call, meanings) => (call, meanings),
        };
        for meaning in meanings {
            match meaning {
                Meaning::Send(m) => *sent.entry((call.rank, m.peer)).or_default() += m.bytes,
                Meaning::Received(m) => *received.entry((m.peer, call.rank)).or_default() += m.bytes,
                _ => {}
            }
        }
    }
    assert_eq!((walk.bounded(), walk.lost(), walk.notes().len()), (0, 0, 0));
    [sent, received]
}

/// The second thread uses a communicator that the first makes after a long time, and frees at once in made-up time.
#[test]
fn a_thread_waits_for_what_another_makes() {
    let make = || split(2, 0, &[0, 1]).took(100_000);
    let free = || call("MPI_Comm_free").object("#2");
    let first = || vec![init(), allreduce(WORLD).took(900_000), make(), free()];
    let sends = (0..20).map(|_| message("MPI_Send", 2, 1, 9, "#2")).collect();
    let receive = || message("MPI_Recv", 50, -1, 9, "#2").named("MPI_STATUS_IGNORE");
    let trace = trace_of(&[vec![first(), sends], vec![first(), (0..20).map(|_| receive()).collect()]]);
    let when = When::of(&trace, None).unwrap();
    let [sent, received] = sums(&trace, &when, &[0, 1]);
    assert_eq!(sent, HashMap::from([((0, 1), 160)]));
    assert_eq!(received, sent);
}

/// Of three receives the second failed and the third is not complete, which is waited for once more.
#[test]
fn what_did_complete_is_told_although_others_failed() {
    let irecv = |id: i64| message("MPI_Irecv", 9, -1, id, WORLD).tagged(2 * id);
    let some = call("MPI_Waitall").number(3).elements(&[2, 4, 6]).statuses_with_errors(&[
        (-1, 1, 4, 0),
        (0, 0, 0, 15),
        (0, 0, 0, 18),
    ]);
    let receiver = vec![init(), irecv(1), irecv(2), irecv(3), some, waitall(&[3])];
    let sender = vec![init(), send(1, 1, 1), send(1, 1, 2), send(1, 1, 3)];
    let (trace, times) = timed(&[sender, receiver]);
    let when = When::of(&trace, times.as_ref()).unwrap();
    let (lines, _) = told(&trace, &when, &[0, 1]);
    let ends: Vec<&String> =
        lines.iter().filter(|line| line.starts_with("1 from") || line.contains("cancelled")).collect();
    assert_eq!(ends, ["1 from 0 t1 4B r1", "1 cancelled r2", "1 from 0 t3 4B r3"], "{lines:?}");
}

/// A long wait moves what follows; no call loses its length, and a call that waits into the time asked for is in it.
#[test]
fn a_wait_moves_what_follows() {
    let late = vec![init(), allreduce("MPI_COMM_SELF").took(500_000), send(1, 1, 9).took(10)];
    let after = || call("MPI_Barrier").object("MPI_COMM_SELF").took(1000);
    let early = vec![init(), recv(1, -1, 9).took(1000), after(), after(), after()];
    let trace = trace_of(&[vec![late], vec![early]]);
    let when = When::of(&trace, None).unwrap();
    let spans = |between: Option<Between>| {
        let mut walk = Walk::new(&trace, &when, &[0, 1], between).unwrap();
        let mut spans = HashMap::new();
        while let Some(moment) = walk.next().unwrap() {
            if let Moment::Ends(call, _) = moment {
                spans.insert((call.rank, call.number), (call.span.start, call.span.end));
            }
        }
        spans
    };
    let all = spans(None);
    assert!(all.values().all(|(start, end)| end > start), "{all:?}");
    let (from, to) = all[&(1, 1)];
    let middle = (from + to) / 2;
    let some = spans(Some(Between { from: middle, to: middle }));
    assert!(some.contains_key(&(1, 1)), "{all:?} {some:?}");
    assert!(some.values().all(|(start, end)| *start <= middle && *end >= middle), "{some:?}");
    for (key, (start, end)) in &all {
        assert_eq!(some.contains_key(key), *start <= middle && *end >= middle, "{key:?}");
    }
}

#[test]
fn without_the_other_rank_a_message_has_no_name() {
    let (trace, times) = timed(&[vec![init(), send(1, 1, 9)], vec![init(), recv(1, -1, 9)]]);
    let when = When::of(&trace, times.as_ref()).unwrap();
    let (lines, ids) = told(&trace, &when, &[1]);
    assert_eq!((lines, ids.len()), (vec!["1 from 0 t9 4B".to_string()], 0));
}

#[test]
fn a_stretch_of_time_has_the_calls_that_overlap_it() {
    let (trace, times) = timed(&[vec![init(), send(1, 1, 9), send(1, 1, 9), send(1, 1, 9)], vec![init()]]);
    let when = When::of(&trace, times.as_ref()).unwrap();
    let mut walk = Walk::new(&trace, &when, &[0], Some(Between { from: 12_000, to: 22_000 })).unwrap();
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    while let Some(moment) = walk.next().unwrap() {
        match moment {
            Moment::Begins(call) => begun.push(call.number),
            Moment::Ends(call, _) => ended.push(call.number),
        }
    }
    assert_eq!((begun, ended), (vec![1, 2], vec![1, 2]));
    assert!(chosen(&trace, Some(&"0,2".parse().unwrap())).is_err());
    assert_eq!(chosen(&trace, Some(&"1".parse().unwrap())).unwrap(), [1]);
}

/// Rank 0 is in MPI for 900 ns and rank 1 for 100 ns, both compute for 1000 ns: with sums alone each rank's calls add up to
/// its own, and begin together.
#[test]
fn reconstructed_times_add_up_for_each_rank() {
    let calls = |peer: i64| {
        let mut calls = vec![init().took(100)];
        calls.extend((0..10).map(|_| send(1, peer, 9).took(50)));
        vec![calls]
    };
    let trace = trace_of(&[calls(1), calls(-1)]);
    let when = When::of(&trace, None).unwrap();
    assert!(when.is_reconstructed() && when.note().unwrap().contains("--time mean"));
    for (rank, inside) in [(0u32, 900), (1, 100)] {
        let mut walk = Walk::new(&trace, &when, &[rank], None).unwrap();
        let (mut began, mut last, mut sum) = (None, 0, 0);
        while let Some(moment) = walk.next().unwrap() {
            let Moment::Ends(call, _) = moment else { continue };
            match call.number {
                0 => began = Some(call.span.end),
                _ => {
                    assert!(call.span.start >= last, "calls overlap");
                    sum += call.span.end - call.span.start;
                }
            }
            last = call.span.end;
        }
        assert_eq!(began, Some(100), "rank {rank}");
        assert!((sum - inside).abs() <= 20, "rank {rank}: {sum}");
        assert!((last - 100 - 1000 - inside).abs() <= 40, "rank {rank}: {last}");
    }
}

/// Its sender comes much later, so a receive ends later than its mean says; nobody leaves a collective before the last came.
#[test]
fn reconstructed_calls_wait_for_each_other() {
    let late = vec![vec![init(), send(1, 0, 3).took(50_000), send(1, 1, 9), allreduce(WORLD)]];
    let early = vec![vec![init(), recv(1, -1, 9).took(1), allreduce(WORLD).took(1)]];
    let trace = trace_of(&[late, early]);
    let when = When::of(&trace, None).unwrap();
    let mut walk = Walk::new(&trace, &when, &[0, 1], None).unwrap();
    let (mut sent, mut received, mut came, mut left) = (0, 0, 0, i64::MAX);
    let mut before = i64::MIN;
    while let Some(moment) = walk.next().unwrap() {
        let (call, meanings, at) = match &moment {
            Moment::Begins(call) => (call, &call.begins, call.span.start),
            Moment::Ends(call, meanings) => (call, meanings, call.span.end),
        };
        assert!(at >= before, "out of order");
        before = at;
        for meaning in meanings {
            match meaning {
                Meaning::Send(m) if m.tag == 9 => sent = at,
                Meaning::Received(_) => received = at,
                Meaning::Collective(_) => came = came.max(at),
                Meaning::CollectiveDone(_) => left = left.min(at),
                _ => {}
            }
        }
        let _ = call;
    }
    assert!(sent > 0 && received >= sent, "{received} {sent}");
    assert!(left >= came, "{left} {came}");
}

/// A rank whose messages never come does not stand still.
#[test]
fn what_never_comes_is_not_waited_for() {
    let trace = trace_of(&[vec![vec![init(), recv(1, 1, 9), send(1, 1, 5)]], vec![vec![init()]]]);
    let when = When::of(&trace, None).unwrap();
    let mut walk = Walk::new(&trace, &when, &[0, 1], None).unwrap();
    let mut ended = 0;
    while let Some(moment) = walk.next().unwrap() {
        ended += usize::from(matches!(moment, Moment::Ends(..)));
    }
    assert_eq!(ended, 4);
}

#[test]
fn without_times_a_call_takes_a_microsecond() {
    let mut trace = trace_of(&[vec![vec![init(), send(1, 1, 9), send(1, 1, 9)]], vec![vec![init()]]]);
    trace.meta.timed = false;
    let when = When::of(&trace, None).unwrap();
    assert!(when.note().unwrap().contains("microsecond"));
    let mut walk = Walk::new(&trace, &when, &[0], None).unwrap();
    let mut spans = Vec::new();
    while let Some(moment) = walk.next().unwrap() {
        if let Moment::Ends(call, _) = moment {
            spans.push((call.span.start, call.span.end));
        }
    }
    assert_eq!(spans, [(0, 1000), (1000, 2000), (2000, 3000)]);
}
