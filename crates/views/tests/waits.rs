//! Runs that are made to have one wait each: it is found, with its rank, place and length; and none where there is none.

use crate::common;

use std::rc::Rc;

use common::{Encoded, call, open_timed, split, timed_file};
use refrain_fold::bundle::sites::Frame;
use refrain_sites::{Location, Names, Order, Turn};
use refrain_tracefile::Cores;
use refrain_views::length::Told;
use refrain_views::waits::{Pattern, Waits, waits, write_json, write_text};
use refrain_views::{Error, timed::Times};

const MS: i64 = 1_000_000;
const WORLD: &str = "MPI_COMM_WORLD";

type Calls = common::TimedCalls;

/// Calls of a rank in order, on a clock in microseconds.
#[derive(Default, Clone)]
struct Rank {
    calls: Calls,
    now: i64,
}

impl Rank {
    fn new() -> Rank {
        let mut rank = Rank::default();
        rank.then(call("MPI_Init").tagged(0).absent(), 100);
        rank
    }

    fn compute(&mut self, us: i64) -> &mut Rank {
        self.now += us;
        self
    }

    /// A call that takes so long.
    fn then(&mut self, call: Encoded, us: i64) -> &mut Rank {
        self.until(call, self.now + us)
    }

    /// A call that ends then.
    fn until(&mut self, call: Encoded, end: i64) -> &mut Rank {
        self.calls.push((call, self.now * 1000, end * 1000));
        self.now = end;
        self
    }

    fn finish(mut self) -> Vec<Calls> {
        self.then(call("MPI_Finalize"), 0);
        vec![self.calls]
    }
}

fn message(name: &str, peer: i64, tag: i64, comm: &str) -> Encoded {
    call(name).buffer().number(1).object("MPI_INT").tagged(peer).tagged(tag).object(comm)
}

fn send(to: i64) -> Encoded {
    message("MPI_Send", to, 9, WORLD)
}

fn recv(from: i64) -> Encoded {
    message("MPI_Recv", from, 9, WORLD).named("MPI_STATUS_IGNORE")
}

fn isend(to: i64, request: i64) -> Encoded {
    message("MPI_Isend", to, 9, WORLD).tagged(2 * request)
}

fn irecv(from: i64, request: i64) -> Encoded {
    message("MPI_Irecv", from, 9, WORLD).tagged(2 * request)
}

fn waitall(requests: &[i64]) -> Encoded {
    let codes: Vec<i64> = requests.iter().map(|id| 2 * id).collect();
    call("MPI_Waitall").number(codes.len() as i64).elements(&codes).named("MPI_STATUSES_IGNORE")
}

fn barrier(comm: &str) -> Encoded {
    call("MPI_Barrier").object(comm)
}

fn bcast(root: i64) -> Encoded {
    call("MPI_Bcast").buffer().tagged(1).object("MPI_INT").tagged(root).object(WORLD)
}

fn reduce(root: i64) -> Encoded {
    call("MPI_Reduce")
        .buffer()
        .buffer()
        .tagged(1)
        .object("MPI_INT")
        .object("MPI_SUM")
        .tagged(root)
        .object(WORLD)
}

fn allreduce() -> Encoded {
    call("MPI_Allreduce").buffer().buffer().number(1).object("MPI_INT").object("MPI_SUM").object(WORLD)
}

struct Sites;

impl Names for Sites {
    fn places(&self, frame: Frame) -> Rc<[Location]> {
        Rc::new([Location {
            function: Some(format!("f{}", frame.offset)),
            module: "app".into(),
            ..Location::default()
        }])
    }

    fn function(&self, _: Frame) -> Option<u64> {
        None
    }

    fn loops(&self, _: &[Frame]) -> Vec<Turn> {
        Vec::new()
    }

    fn order(&self, _: &[Frame], _: Option<&Turn>) -> Option<Order> {
        None
    }
}

fn found_as(ranks: Vec<Vec<Calls>>, time: &str) -> Waits {
    let (trace, times) = open_timed(timed_file(&ranks, time));
    waits(&trace, &times.unwrap()).unwrap()
}

fn found(ranks: Vec<Rank>) -> Waits {
    found_as(ranks.into_iter().map(Rank::finish).collect(), "exact")
}

/// Each row as pattern, function, its site, and by rank that waited and rank that caused it how often and how long in us.
fn rows(waits: &Waits) -> Vec<String> {
    let mut all = Vec::new();
    for row in &waits.rows {
        let site = row.place.frame.map_or(String::new(), |frame| format!("@{}", frame.offset));
        for waiter in &row.ranks {
            for (cause, sum) in &waiter.causes {
                all.push(format!(
                    "{} {}{site} {}<-{cause} {}x {}",
                    row.pattern.key(),
                    row.place.function,
                    waiter.rank,
                    sum.count,
                    sum.total / 1000
                ));
            }
        }
    }
    all.sort();
    all
}

fn check(ranks: Vec<Rank>, expected: &[&str]) -> Waits {
    let waits = found(ranks);
    assert_eq!(rows(&waits), expected);
    waits
}

/// The longest rank's time, from the start of its `MPI_Init` on; shares are of all.
#[test]
fn a_run_lasts_as_long_as_any_rank() {
    let (mut first, mut late) = (Rank::new(), Rank::default());
    first.compute(400);
    late.compute(50).then(call("MPI_Init").tagged(0).absent(), 150).compute(600);
    // The first one was in MPI_Init for 100 us, the other came 50 us later.
    for ranks in [vec![first.clone(), late.clone()], vec![late, first]] {
        let length = found(ranks).length;
        assert_eq!((length.run, length.all), (Told::exactly(750_000), Told::exactly(1_250_000)));
    }
}

#[test]
fn a_late_sender() {
    let mut ranks = vec![Rank::new(); 4];
    for _ in 0..10 {
        ranks[2].then(recv(1).from(&[40]), 10_005);
        ranks[3].compute(10_000).then(send(-1).from(&[50]), 5);
    }
    let waits = check(ranks, &["late_sender MPI_Recv@40 2<-3 10x 100000"]);
    assert_eq!(waits.rows[0].all.longest, 10 * MS as u64);
    let times = waits.ranks[2];
    assert_eq!((times.waiting, times.communicating, times.setup), (100_000_000, 50_000, 100_000));
    assert_eq!((waits.ranks[3].caused, waits.ranks[3].computing), (100_000_000, 100_000_000));
    assert_eq!(waits.length.run, Told::exactly(100_150_000));
    assert_eq!(waits.left, Default::default());
    let top = waits.path[0];
    assert_eq!((top.rank, top.computing, top.place.function), (3, true, "MPI_Send"));
    assert_eq!(top.time, 100_000_000);
}

#[test]
fn a_wait_for_a_receive_that_was_posted_before() {
    let mut ranks = vec![Rank::new(); 2];
    // The message is sent while rank 1 computes, then while it waits.
    for late in [0, 300] {
        let now = ranks[1].now;
        ranks[1].then(irecv(-1, 0), 1).compute(200).until(waitall(&[0]), now + 210 + late);
        ranks[0].compute(199 + late).then(send(1), 1).compute(10);
        ranks[0].now = ranks[1].now;
    }
    // Both waits began at 201; the first message was sent at 199.
    check(ranks, &["late_sender MPI_Waitall 1<-0 1x 298"]);
}

#[test]
fn late_receivers_only_where_the_send_waits() {
    let mut ranks = vec![Rank::new(); 2];
    // Synchronous: it ends when the receive is there.
    ranks[0].then(message("MPI_Ssend", 1, 9, WORLD), 5_010);
    ranks[1].compute(5_000).then(recv(-1), 10);
    // Eager: it is over long before the receive comes.
    ranks[0].then(send(1), 2);
    ranks[1].compute(5_000).then(recv(-1), 2);
    let waits = check(ranks, &["late_receiver MPI_Ssend 0<-1 1x 5000"]);
    assert_eq!(waits.ranks[1].caused, 5_000_000);
}

/// Both sides of the exchange come late at once; the one that is named is the sender.
#[test]
fn exchanges() {
    let sendrecv = |to: i64, from: i64| {
        let sent = call("MPI_Sendrecv").buffer().number(1).object("MPI_INT").tagged(to).tagged(3);
        let received = sent.buffer().number(1).object("MPI_INT").tagged(from).tagged(3);
        received.object(WORLD).named("MPI_STATUS_IGNORE")
    };
    let mut ranks = vec![Rank::new(); 2];
    ranks[0].until(sendrecv(1, 1), 4_110);
    ranks[1].compute(4_000).then(sendrecv(-1, -1), 8);
    ranks[1].now = ranks[0].now;
    ranks[0].then(isend(1, 0), 1).then(irecv(1, 1), 1).until(waitall(&[0, 1]), 8_130);
    ranks[1].compute(4_000).then(isend(-1, 0), 1).then(irecv(-1, 1), 1).then(waitall(&[0, 1]), 10);
    check(ranks, &["late_sender MPI_Sendrecv 0<-1 1x 4000", "late_sender MPI_Waitall 0<-1 1x 3998"]);
}

#[test]
fn any_source_is_told_by_the_status() {
    let mut ranks = vec![Rank::new(); 3];
    let from = |source: i64, tag: i64| {
        let any = call("MPI_Recv").buffer().number(1).object("MPI_INT").named("MPI_ANY_SOURCE");
        any.named("MPI_ANY_TAG").object(WORLD).status(source, tag, 4)
    };
    ranks[0].until(from(2, 7), 3_110).until(from(1, 9), 6_110);
    ranks[1].compute(6_000).then(send(-1), 1);
    ranks[2].compute(3_000).then(message("MPI_Send", -2, 7, WORLD), 1);
    check(ranks, &["late_sender MPI_Recv 0<-1 1x 2990", "late_sender MPI_Recv 0<-2 1x 3000"]);
}

/// Without a status nobody can tell which message it was: nothing is said, and that is said.
#[test]
fn any_source_without_a_status() {
    let mut ranks = vec![Rank::new(); 2];
    let any = call("MPI_Recv").buffer().number(1).object("MPI_INT").named("MPI_ANY_SOURCE").tagged(9);
    ranks[0].until(any.object(WORLD).named("MPI_STATUS_IGNORE"), 3_110);
    ranks[1].compute(3_000).then(send(-1), 1);
    let waits = check(ranks, &[]);
    assert_eq!((waits.left.unclear, waits.left.sends, waits.left.receives), (2, 0, 0));
}

#[test]
fn waitany_and_persistent_requests() {
    let mut ranks = vec![Rank::new(); 3];
    let init = |name: &str, peer: i64, request: i64| message(name, peer, 9, WORLD).tagged(2 * request);
    let start = |request: i64| call("MPI_Start").tagged(2 * request);
    let waitany = |index: i64, null: bool| {
        let second = if null { null_request() } else { 2 };
        call("MPI_Waitany").number(2).elements(&[0, second]).tagged(index).named("MPI_STATUS_IGNORE")
    };
    ranks[0].then(init("MPI_Recv_init", 1, 0), 1).then(init("MPI_Recv_init", 2, 1), 1);
    ranks[1].then(init("MPI_Send_init", -1, 0), 2);
    ranks[2].then(init("MPI_Send_init", -2, 0), 2);
    for _ in 0..2 {
        let now = ranks[0].now;
        ranks[0].then(start(0), 1).then(start(1), 1);
        ranks[0].until(waitany(1, false), now + 1_003).until(waitany(0, true), now + 4_004);
        ranks[1]
            .compute(4_000)
            .then(start(0), 1)
            .then(call("MPI_Wait").tagged(0).named("MPI_STATUS_IGNORE"), 3);
        ranks[2]
            .compute(1_000)
            .then(start(0), 1)
            .then(call("MPI_Wait").tagged(0).named("MPI_STATUS_IGNORE"), 3);
        ranks[2].compute(3_000);
    }
    check(ranks, &["late_sender MPI_Waitany 0<-1 2x 5994", "late_sender MPI_Waitany 0<-2 2x 1996"]);
}

fn null_request() -> i64 {
    2 * i64::from(refrain_model::constant("MPI_REQUEST_NULL").unwrap().id) + 1
}

#[test]
fn a_slow_rank_at_every_tenth_barrier() {
    let mut ranks = vec![Rank::new(); 4];
    for step in 0..50 {
        let late = if step % 10 == 9 { 2_000 } else { 0 };
        let end = ranks[0].now + 100 + late + 5;
        for (rank, calls) in ranks.iter_mut().enumerate() {
            calls.compute(if rank == 2 { 100 + late } else { 100 }).until(barrier(WORLD).from(&[7]), end);
        }
    }
    let waits = check(
        ranks,
        &[
            "barrier MPI_Barrier@7 0<-2 5x 10000",
            "barrier MPI_Barrier@7 1<-2 5x 10000",
            "barrier MPI_Barrier@7 3<-2 5x 10000",
        ],
    );
    let uneven = &waits.imbalances[0];
    assert_eq!((uneven.all.count, uneven.ranks[0].0, uneven.place.function), (5, 2, "MPI_Barrier"));
    assert_eq!(uneven.all.total, 5 * 1_500_000);
    assert_eq!(waits.ranks[2].caused, 30_000_000);
}

#[test]
fn a_late_root_and_a_root_that_waits() {
    let mut ranks = vec![Rank::new(); 3];
    for (rank, calls) in ranks.iter_mut().enumerate() {
        // Rank 1 gives late, and does not wait itself.
        let end = if rank == 1 { 2_110 } else { 2_115 };
        calls.compute(if rank == 1 { 2_000 } else { 0 }).until(bcast(1).from(&[3]), end);
    }
    // All give to rank 0; rank 2 is the last. Those that only give go on.
    let now = ranks[0].now;
    ranks[0].until(reduce(0), now + 705);
    ranks[1].then(reduce(0), 2);
    ranks[2].compute(700).then(reduce(0), 2);
    let waits = check(
        ranks,
        &[
            "n_to_one MPI_Reduce 0<-2 1x 700",
            "one_to_n MPI_Bcast@3 0<-1 1x 2000",
            "one_to_n MPI_Bcast@3 2<-1 1x 2000",
        ],
    );
    assert_eq!(waits.rows[0].pattern, Pattern::OneToAll);
}

#[test]
fn everybody_for_everybody_and_scans() {
    let mut ranks = vec![Rank::new(); 3];
    let scan =
        || call("MPI_Scan").buffer().buffer().number(1).object("MPI_INT").object("MPI_SUM").object(WORLD);
    for (rank, calls) in ranks.iter_mut().enumerate() {
        calls.compute(if rank == 1 { 900 } else { 0 }).until(allreduce(), 1_003);
    }
    for (rank, calls) in ranks.iter_mut().enumerate() {
        // Rank 0 needs nobody, rank 2 needs rank 1.
        match rank {
            0 => calls.then(scan(), 2),
            1 => calls.compute(400).then(scan(), 2),
            _ => calls.then(scan(), 405),
        };
    }
    check(
        ranks,
        &[
            "n_to_n MPI_Allreduce 0<-1 1x 900",
            "n_to_n MPI_Allreduce 2<-1 1x 900",
            "scan MPI_Scan 2<-1 1x 400",
        ],
    );
}

/// One call makes two communicators of one name: their barriers are not each other's.
#[test]
fn parts_of_the_world() {
    let mut ranks = vec![Rank::new(); 4];
    for (rank, calls) in (0i64..).zip(&mut ranks) {
        let group = [rank % 2, rank % 2 + 2];
        calls.then(split(0, 0, &group), 10);
        let late = if rank == 3 { 1_000 } else { 0 };
        let end = if rank % 2 == 1 { 1_113 } else { 113 };
        calls.compute(late).until(barrier("#0"), end);
        // Rank 1 of its communicator sends to rank 0 of it.
        match rank {
            0 | 1 => calls.then(message("MPI_Recv", 1, 4, "#0").named("MPI_STATUS_IGNORE"), 503),
            _ => calls.compute(500).then(message("MPI_Send", -1, 4, "#0"), 3),
        };
    }
    check(
        ranks,
        &[
            "barrier MPI_Barrier 1<-3 1x 1000",
            "late_sender MPI_Recv 0<-2 1x 500",
            "late_sender MPI_Recv 1<-3 1x 500",
        ],
    );
}

/// Two threads of a rank wait by themselves, on communicators of their own.
#[test]
fn several_threads() {
    let mut main = vec![Rank::new(); 2];
    for calls in &mut main {
        calls.then(call("MPI_Comm_dup").object(WORLD).comm_as_parent(0, 0), 5);
    }
    let mut other: Vec<Rank> = main.iter().map(|rank| Rank { calls: Vec::new(), now: rank.now }).collect();
    main[0].then(recv(1), 2_003);
    main[1].compute(2_000).then(send(-1), 3);
    other[0].compute(700).then(message("MPI_Send", 1, 9, "#0"), 2);
    other[1].then(message("MPI_Recv", -1, 9, "#0").named("MPI_STATUS_IGNORE"), 703);
    let ranks = main.into_iter().zip(other).map(|(main, other)| vec![main.finish().remove(0), other.calls]);
    let waits = found_as(ranks.collect(), "exact");
    assert_eq!(rows(&waits), ["late_sender MPI_Recv 0<-1 1x 2000", "late_sender MPI_Recv 1<-0 1x 700"]);
}

#[test]
fn nonblocking_collectives_wait_where_they_are_waited_for() {
    let mut ranks = vec![Rank::new(); 2];
    let begin = || call("MPI_Ibarrier").object(WORLD).tagged(0);
    let wait = || call("MPI_Wait").tagged(0).named("MPI_STATUS_IGNORE");
    ranks[0].then(begin(), 1).compute(400).until(wait(), 1_105);
    ranks[1].compute(1_000).then(begin(), 1).then(wait(), 2);
    check(ranks, &["barrier MPI_Wait 0<-1 1x 599"]);
}

/// Rank 0 works alone while the others wait for what it will tell them.
#[test]
fn a_serial_phase_is_on_the_critical_path() {
    let mut ranks = vec![Rank::new(); 4];
    for _ in 0..5 {
        for (rank, calls) in ranks.iter_mut().enumerate() {
            let end = calls.now + 3_010;
            calls.compute(if rank == 0 { 3_000 } else { 10 }).until(bcast(0).from(&[11]), end);
        }
        for (rank, calls) in ranks.iter_mut().enumerate() {
            let end = calls.now + 1_020;
            calls.compute(if rank == 3 { 1_000 } else { 990 }).until(allreduce().from(&[12]), end);
        }
    }
    let waits = found(ranks);
    let path: Vec<String> = waits
        .path
        .iter()
        .map(|step| {
            let what = if step.computing { "before" } else { "in" };
            let site = step.place.frame.map_or(0, |frame| frame.offset);
            format!("{} {what} {}@{site} {}", step.rank, step.place.function, step.time / 1000)
        })
        .collect();
    assert_eq!(path[..2], ["0 before MPI_Bcast@11 15000", "3 before MPI_Allreduce@12 5000"], "{path:?}");
    let length: u64 = waits.path.iter().map(|step| step.time).sum();
    assert_eq!(length + 100_000, waits.length.run.ns);
    let text = shown(&waits);
    assert!(text.contains("computing before MPI_Bcast"), "{text}");
}

fn shown(waits: &Waits) -> String {
    let mut out = Vec::new();
    write_text(waits, &Sites, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// As even as real ones are: nothing stands out, and no place is named.
#[test]
fn a_balanced_program() {
    let mut ranks = vec![Rank::new(); 4];
    for step in 0..200i64 {
        let end = ranks[0].now + 1_010;
        for (rank, calls) in (0i64..).zip(&mut ranks) {
            calls.compute(998 + (step * 7 + rank * 3) % 5).until(allreduce(), end);
        }
    }
    let waits = found(ranks);
    let text = shown(&waits);
    assert!(text.starts_with("No place where ranks wait for 1% of the time of all ranks"), "{text}");
    assert!(!text.contains("uneven"), "{text}");
}

#[test]
fn a_rank_that_is_not_there() {
    let mut ranks = vec![Rank::new(); 2];
    // Rank 2 of three was not recorded: nobody knows when it came.
    ranks[0].then(recv(2), 500).then(barrier(WORLD), 500);
    ranks[1].then(send(1), 2).then(barrier(WORLD), 900);
    let ranks: Vec<Vec<Calls>> = ranks.into_iter().map(Rank::finish).chain([vec![]]).collect();
    let waits = found_as(ranks, "exact");
    assert_eq!(rows(&waits), [""; 0]);
    assert_eq!((waits.left.sends, waits.left.receives, waits.left.unknown), (1, 1, 2));
    assert!(shown(&waits).contains("1 send and 1 receive have no other side in the trace."));
}

#[test]
fn what_cannot_be_looked_at_is_said() {
    let ranks: Vec<Vec<Calls>> = vec![Rank::new().finish()];
    let (mut trace, times) = open_timed(timed_file(&ranks, "exact"));
    let times: Times = times.unwrap();
    trace.meta.options.push(("only".into(), "p2p".into()));
    assert!(waits(&trace, &times).unwrap().notes[0].contains("--only p2p"));
    trace.meta.options.push(("window".into(), "1s..".into()));
    assert!(matches!(waits(&trace, &times), Err(Error::Window { .. })));
}

#[test]
fn text_and_json() {
    let mut ranks = vec![Rank::new(); 2];
    ranks[0].then(recv(1).from(&[40]), 10_003);
    ranks[1].compute(10_000).then(send(-1).from(&[50]), 3);
    let waits = found(ranks);
    let text = shown(&waits);
    for part in ["late sender", "MPI_Recv", "10.0 ms", "f40", "critical path", "computing before MPI_Send"] {
        assert!(text.contains(part), "{part:?} in:\n{text}");
    }
    let mut json = Vec::new();
    write_json(&waits, &Sites, &mut json).unwrap();
    let json = String::from_utf8(json).unwrap();
    for part in [
        r#"{"schema":"refrain-waits-1","span_ns":10103000,"all_ranks_ns":20206000,"#,
        r#""waits":[{"pattern":"late_sender","function":"MPI_Recv","at":{"function":"f40","module":"app","offset":0},"count":1,"total_ns":10000000,"longest_ns":10000000,"ranks":[{"rank":0,"#,
        r#""causes":[{"rank":1,"count":1,"#,
        r#""left":{"sends":0,"receives":0,"#,
    ] {
        assert!(json.contains(part), "{part} in {json}");
    }
}

/// Shares are as exact as the times that they are made of; ranks that shared a core are said before one is blamed.
#[test]
fn shares_of_rounded_times_are_marked() {
    let mut ranks = vec![Rank::new(); 3];
    ranks[0].then(recv(1).from(&[40]), 10_003);
    ranks[1].compute(10_000).then(send(-1), 3).then(send(1), 3);
    ranks[2].then(recv(-1).from(&[40]), 10_006);
    let ranks: Vec<Vec<Calls>> = ranks.into_iter().map(Rank::finish).collect();
    let is_share = |word: &&str| word.trim_end_matches([')', ',']).ends_with('%');
    for (time, marked) in [("exact", false), ("binned=1.2", true)] {
        let text = shown(&found_as(ranks.clone(), time));
        let shares: Vec<&str> = text.split_whitespace().filter(is_share).collect();
        assert!(shares.len() >= 4, "{text}");
        let is_marked = |share: &&str| share.trim_start_matches('(').starts_with('~');
        // Of the run, of a row, and of the path.
        assert!(shares.iter().all(|share| is_marked(share) == marked), "{shares:?} in {text}");
        assert!(!text.contains("shared"), "{text}");
    }
    let (mut trace, times) = open_timed(timed_file(&ranks, "exact"));
    trace.meta.cores = vec![Cores { ranks: (0..3).collect(), each: 1, sharing: 3, thousandths: 1000 }];
    let waits = waits(&trace, &times.unwrap()).unwrap();
    let said = "3 ranks shared 1 core: one that seems slow or late may only have waited for a core.";
    assert!(shown(&waits).starts_with(&format!("{said}\n\nwaits ")), "{}", shown(&waits));
    let mut json = Vec::new();
    write_json(&waits, &Sites, &mut json).unwrap();
    assert!(
        String::from_utf8(json).unwrap().contains(&format!("\"oversubscribed\":\"{said}\",\"notes\":[]"))
    );
}

/// Each moment of a rank counts once: what a callback's calls took is not counted again in the call around them.
#[test]
fn calls_within_calls_count_once() {
    let mut rank = Rank::new();
    rank.compute(1_000);
    let outer = rank.now;
    rank.compute(200).then(send(0), 300).compute(100).then(send(0), 50);
    let ends = rank.now + 150;
    rank.calls.push((allreduce(), outer * 1000, ends * 1000));
    rank.now = ends;
    rank.compute(1_000);
    let waits = found(vec![rank]);
    let [times] = &waits.ranks[..] else { panic!() };
    let all = times.computing + times.communicating + times.waiting;
    assert_eq!((all, waits.length.run.ns), (2_800_000, 2_900_000));
    assert_eq!(waits.path.iter().map(|on| on.time).sum::<u64>(), all);
}

/// A file may say anything of when calls began and ended.
#[test]
fn times_from_one_end_to_the_other() {
    for time in ["exact", "binned"] {
        let ends = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
        let calls = |rank: i64| {
            let one = |start: i64| {
                ends.map(move |end| {
                    let call = if (start ^ end) & 1 == 0 { allreduce() } else { send(1 - 2 * rank) };
                    (call, start, end)
                })
            };
            vec![ends.into_iter().flat_map(one).collect::<Calls>()]
        };
        found_as(vec![calls(0), calls(1)], time);
    }
}

#[test]
fn clocks_that_were_not_compared() {
    let ranks: Vec<Vec<Calls>> = vec![Rank::new().finish(), Rank::new().finish()];
    let file = timed_file(&ranks, "exact");
    let (mut trace, _) = open_timed(file.clone());
    let chunks = refrain_tracefile::load(std::io::Cursor::new(&file)).unwrap().chunks;
    let opened = |trace: &refrain_tracefile::Trace| {
        Times::open(trace, std::io::Cursor::new(file.clone()), chunks.clone()).unwrap().unwrap()
    };
    let list = |rank| refrain_fold::ranks::RankList::single(rank);
    trace.meta.hosts = vec![("one".into(), refrain_fold::ranks::RankList::from_sorted(&[0, 1]))];
    assert!(waits(&trace, &opened(&trace)).is_ok());
    trace.meta.hosts = vec![("one".into(), list(0)), ("two".into(), list(1))];
    let times = opened(&trace);
    assert!(times.some_apart() && times.comparable([1]) && !times.comparable([0, 1]));
    assert!(matches!(waits(&trace, &times), Err(Error::NoCommonClock)));
}

/// In bins, a message may seem to be sent after it was received: what is told of both is wrong by more than it took.
#[test]
fn every_wait_is_found_in_bins() {
    let mut ranks = vec![Rank::new(); 2];
    for step in 0..100 {
        // Not the same each time, so that errors go both ways.
        let late = 10_000 + 37 * (step * step % 100);
        let start = ranks[1].now;
        ranks[1].compute(late).then(send(-1), 3);
        let sent = ranks[1].now;
        ranks[0].now = start;
        ranks[0].until(recv(1), sent + 2);
        ranks[1].now = sent + 2;
    }
    let ranks: Vec<Vec<Calls>> = ranks.into_iter().map(Rank::finish).collect();
    for time in ["exact", "binned=1.2"] {
        let waits = found_as(ranks.clone(), time);
        let [row] = &waits.rows[..] else { panic!("{time}: {:?}", rows(&waits)) };
        let real: i64 = (0..100).map(|step| 10_000 + 37 * (step * step % 100)).sum::<i64>() * 1000;
        assert_eq!((row.pattern, row.all.count), (Pattern::LateSender, 100), "{time}");
        assert!((row.all.total as i64 - real).abs() < real / 10, "{time}: {} of {real}", row.all.total);
    }
}
