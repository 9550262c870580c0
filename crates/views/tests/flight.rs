//! Calls in flight: what is told of them, and what follows. Runs are made up.

use crate::common;

use common::{Encoded, alike, call, trace_of};
use refrain_fold::bundle::sites::Module;
use refrain_model::{constant, function};
use refrain_sites::Binaries;
use refrain_tracefile::{Arg, CodeAddress, InFlight, Trace, Waited};
use refrain_views::flight::{Picture, modules, outstanding, picture};

const SECOND: u64 = 1_000_000_000;

fn named(name: &str) -> Arg {
    Arg::Constant(constant(name).unwrap().id)
}

/// A rank in a call for so long, by the names of its parameters; others are not known.
fn within(rank: u32, name: &str, args: &[(&str, Arg)], seconds: u64) -> InFlight {
    let function = function(name).unwrap();
    let arg =
        |name: &str| args.iter().find(|(known, _)| *known == name).map_or(Arg::Unknown, |(_, arg)| *arg);
    InFlight {
        rank,
        inside: true,
        function: Some(function.id),
        args: function.params.iter().map(|p| arg(p.name)).collect(),
        ns: Some(seconds * SECOND),
        ..InFlight::default()
    }
}

fn message(rank: u32, name: &str, peer: Arg, tag: Arg) -> InFlight {
    let world = ("comm", named("MPI_COMM_WORLD"));
    within(rank, name, &[("source", peer), ("dest", peer), ("tag", tag), world], 41)
}

fn number(number: i64) -> Arg {
    Arg::Number(number)
}

fn barrier() -> Encoded {
    call("MPI_Barrier").object("MPI_COMM_WORLD")
}

fn of(ranks: usize, flight: Vec<InFlight>) -> (Trace, Picture) {
    let mut trace = alike(ranks, &[barrier()]);
    trace.meta.complete = false;
    trace.meta.flight = flight;
    let names = Binaries::new(&modules(&trace), &[]);
    let picture = picture(&trace, &names);
    (trace, picture)
}

#[track_caller]
fn check(ranks: usize, flight: Vec<InFlight>, lines: &[&str], conclusions: &[&str]) {
    let (trace, picture) = of(ranks, flight);
    assert_eq!(picture.lines(), lines);
    assert_eq!(picture.conclusions, conclusions);
    // It is in the file, and in its text.
    let bytes = refrain_tracefile::write(&trace);
    assert_eq!(refrain_tracefile::read(&bytes).unwrap().meta.flight, trace.meta.flight);
    let mut text = Vec::new();
    refrain_views::written::write(&trace, &mut text).unwrap();
    let again = refrain_views::written::read(std::str::from_utf8(&text).unwrap()).unwrap();
    assert_eq!(again.meta.flight, trace.meta.flight);
}

#[test]
fn who_waits_for_whom() {
    check(
        3,
        vec![message(2, "MPI_Recv", number(1), number(77))],
        &["rank 2: in MPI_Recv(source=1, tag=77, comm=world), for 41.0 s"],
        &["rank 2 waits for rank 1 to send something with tag 77 on world; rank 1 has come to its end"],
    );
    check(
        2,
        vec![message(1, "MPI_Recv", named("MPI_ANY_SOURCE"), number(1))],
        &["rank 1: in MPI_Recv(source=MPI_ANY_SOURCE, tag=1, comm=world), for 41.0 s"],
        &[],
    );
}

#[test]
fn a_circle_of_receives_is_a_deadlock() {
    let receives =
        || vec![message(0, "MPI_Recv", number(1), number(5)), message(1, "MPI_Recv", number(0), number(5))];
    let (_, now) = of(2, receives());
    assert_eq!(
        now.conclusions,
        ["deadlock: rank 0 (in MPI_Recv) waits for rank 1, rank 1 (in MPI_Recv) for rank 0"]
    );
    let mut timeless = receives();
    timeless.iter_mut().for_each(|one| one.ns = None);
    assert!(of(2, timeless).1.conclusions[0].ends_with("unless something was still on its way"));
    // Calls that have just begun are no news.
    let mut just_begun = receives();
    just_begun[1].ns = Some(1000);
    let told = of(2, just_begun).1.conclusions;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("rank 0 waits for rank 1"), "{told:?}");
    // Nor is a message that the other is about to take, whatever it is called there.
    for tag in [number(5), named("MPI_ANY_TAG")] {
        let meets =
            vec![message(0, "MPI_Ssend", number(1), number(5)), message(1, "MPI_Recv", number(0), tag)];
        assert_eq!(of(2, meets).1.conclusions, [""; 0]);
    }
    let misses =
        vec![message(0, "MPI_Ssend", number(1), number(5)), message(1, "MPI_Recv", number(0), number(6))];
    assert!(of(2, misses).1.conclusions[0].starts_with("deadlock: rank 0 (in MPI_Ssend)"));
}

#[test]
fn collective_calls() {
    let world = ("comm", named("MPI_COMM_WORLD"));
    let reduce = |rank, count, datatype, op| {
        let args = [("count", number(count)), ("datatype", named(datatype)), ("op", named(op)), world];
        within(rank, "MPI_Allreduce", &args, 41)
    };
    let told = |flight| of(3, flight).1.conclusions;
    let alike = vec![reduce(0, 8, "MPI_INT", "MPI_SUM"), reduce(1, 4, "MPI_DOUBLE", "MPI_SUM")];
    assert_eq!(
        told(alike),
        [
            "ranks 0-1 are in MPI_Allreduce, which is collective call 2 on world; rank 2 did not get there: rank 2 has come to its end"
        ]
    );
    let counts = told(vec![reduce(0, 8, "MPI_INT", "MPI_SUM"), reduce(1, 8, "MPI_DOUBLE", "MPI_SUM")]);
    assert_eq!(
        counts[0],
        "the counts of MPI_Allreduce do not match on world: rank 0 has count=8, datatype=MPI_INT; rank 1 has count=8, \
         datatype=MPI_DOUBLE"
    );
    let operations = told(vec![reduce(0, 8, "MPI_INT", "MPI_SUM"), reduce(1, 8, "MPI_INT", "MPI_MAX")]);
    assert!(
        operations[0].starts_with("the operations of MPI_Allreduce do not match on world: "),
        "{operations:?}"
    );
    let functions = told(vec![
        reduce(0, 8, "MPI_INT", "MPI_SUM"),
        within(1, "MPI_Barrier", &[world], 41),
        within(2, "MPI_Barrier", &[world], 41),
    ]);
    assert_eq!(
        functions,
        ["collective calls do not match on world: rank 0 has MPI_Allreduce; ranks 1-2 have MPI_Barrier"]
    );
}

/// A scan needs what lower ranks give, and nothing of higher ones.
#[test]
fn a_scan_waits_for_lower_ranks_alone() {
    let scan = |rank| within(rank, "MPI_Scan", &[("comm", named("MPI_COMM_WORLD"))], 41);
    let told = |flight| of(2, flight).1.conclusions;
    let lower = told(vec![scan(0), message(1, "MPI_Recv", number(0), number(5))]);
    assert!(lower.len() == 2 && lower.iter().all(|one| !one.starts_with("deadlock")), "{lower:?}");
    let higher = told(vec![message(0, "MPI_Recv", number(1), number(5)), scan(1)]);
    assert_eq!(higher[0], "deadlock: rank 0 (in MPI_Recv) waits for rank 1, rank 1 (in MPI_Scan) for rank 0");
}

/// A receive from anybody may have taken any message on its communicator.
#[test]
fn who_has_a_receive_from_anybody_may_have_taken_it() {
    let irecv = |comm: &str, wild: bool| {
        let posted = call("MPI_Irecv").buffer().number(1).object("MPI_INT");
        let posted = if wild { posted.named("MPI_ANY_SOURCE") } else { posted.tagged(0) };
        posted.tagged(6).object(comm).tagged(0)
    };
    let told = |receive: Encoded| {
        let mut trace = trace_of(&[vec![vec![barrier()]], vec![vec![barrier(), receive]]]);
        trace.meta.flight = vec![message(0, "MPI_Ssend", number(1), number(5))];
        picture(&trace, &Binaries::new(&modules(&trace), &[])).conclusions
    };
    let waits =
        "rank 0 waits for rank 1 to receive what it sends with tag 5 on world; rank 1 has come to its end";
    assert_eq!(told(irecv("MPI_COMM_WORLD", true)), [""; 0]);
    assert_eq!(told(irecv("MPI_COMM_SELF", true)), [waits]);
    assert_eq!(told(irecv("MPI_COMM_WORLD", false)), [waits]);
}

/// A rank that has come out of a collective call is in the next one: that matches.
#[test]
fn calls_of_another_turn_are_not_compared() {
    let mut trace = trace_of(&[vec![vec![barrier(), barrier()]], vec![vec![barrier()]]]);
    let world = ("comm", named("MPI_COMM_WORLD"));
    let root = ("root", number(0));
    trace.meta.flight =
        vec![within(0, "MPI_Reduce", &[world, root], 41), within(1, "MPI_Barrier", &[world], 41)];
    let told = picture(&trace, &Binaries::new(&modules(&trace), &[])).conclusions;
    assert!(told.iter().all(|one| !one.contains("do not match")), "{told:?}");
    assert!(
        told[0].starts_with("rank 0 is in MPI_Reduce(root=0, comm=world), which is collective call 3"),
        "{told:?}"
    );
}

#[test]
fn ends_are_told_first() {
    let module = Module { path: "/nowhere/app".into(), build_id: Box::from([1, 2]) };
    let place = |offset| Some(CodeAddress { module: module.clone(), offset });
    let mut failed = message(1, "MPI_Recv", number(0), number(5));
    let truncated = constant("MPI_ERR_TRUNCATE").unwrap().id;
    let said = "Message truncated, error stack:\ninternal_Recv(127): MPI_Recv(..) failed\n(unknown)(): 32 is too much\n";
    failed.error = Some((truncated, said.into()));
    failed.place = place(0x123);
    let mut crashed =
        InFlight { rank: 2, inside: false, ns: None, ..message(2, "MPI_Send", number(0), number(1)) };
    crashed.fault = Some(11);
    crashed.fault_place = place(0x200);
    check(
        3,
        vec![message(0, "MPI_Recv", number(1), number(4)), failed, crashed],
        &[
            "rank 1: ended by an error of MPI in MPI_Recv(source=0, tag=5, comm=world) at app+0x123: MPI_ERR_TRUNCATE: \
             Message truncated; 32 is too much",
            "rank 2: ended by SIGSEGV at app+0x201; the last call was MPI_Send(dest=0, tag=1, comm=world)",
            "rank 0: in MPI_Recv(source=1, tag=4, comm=world), for 41.0 s",
        ],
        &[
            "rank 0 waits for rank 1 to send something with tag 4 on world; rank 1 ended by an error of MPI in \
           MPI_Recv(source=0, tag=5, comm=world) at app+0x123: MPI_ERR_TRUNCATE: Message truncated; 32 is too much",
        ],
    );
}

/// Ids come back, and persistent requests stay until they are freed.
#[test]
fn requests_that_are_not_complete() {
    let message = |name: &str, id: i64| {
        let begun = call(name).buffer().number(1).object("MPI_INT").tagged(1).tagged(6);
        begun.object("MPI_COMM_WORLD").tagged(2 * id)
    };
    let wait = |id: i64| call("MPI_Wait").tagged(2 * id).named("MPI_STATUS_IGNORE");
    let any = |ids: &[i64], at: i64| {
        let codes: Vec<i64> = ids.iter().map(|id| 2 * id).collect();
        call("MPI_Waitany").number(2).elements(&codes).tagged(at).named("MPI_STATUS_IGNORE")
    };
    let calls = [
        message("MPI_Send_init", 0),
        message("MPI_Isend", 1),
        message("MPI_Isend", 2),
        wait(1),
        wait(0),
        message("MPI_Isend", 1),
        message("MPI_Irecv", 3),
        any(&[1, 3], 1),
        message("MPI_Send_init", 3),
        call("MPI_Request_free").tagged(2 * 3),
    ];
    let trace = alike(2, &calls);
    assert_eq!(outstanding(&trace, 1, 0).unwrap(), [false, false, true, true, false, true]);
    assert!(outstanding(&trace, 1, 7).unwrap().is_empty());
    // One that is older than many calls is known still, and of more than parts tell of the last ones.
    let mut calls = vec![message("MPI_Isend", 0)];
    calls.extend((0..5000).map(|_| barrier()));
    assert_eq!(outstanding(&alike(1, &calls), 0, 0).unwrap(), [true]);
    calls.extend((1..=70).flat_map(|id| [message("MPI_Isend", id), wait(id)]));
    assert_eq!(outstanding(&alike(1, &calls), 0, 0).unwrap(), [false; 64]);
}

#[test]
fn requests_that_are_not_known_are_counted() {
    let mut waits = within(0, "MPI_Waitall", &[("count", number(9))], 2);
    waits.waits_for = 9;
    waits.requests = vec![Waited { thread: 0, back: 70 }];
    check(1, vec![waits], &["rank 0: in MPI_Waitall for 9 requests, for 2.00 s"], &[]);
}
