//! Calls in flight: what is told of them, and what follows. Runs are made up.

use crate::common;

use common::{Encoded, alike, call, trace_of};
use refrain_fold::bundle::sites::{Frame, Module, PYTHON};
use refrain_model::{constant, function};
use refrain_sites::Binaries;
use refrain_tracefile::{Arg, CodeAddress, InFlight, Trace, Waited};
use refrain_views::flight::{CulpritKind, Picture, modules, outstanding, picture, picture_with};

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
        &[
            "Rank 2 waits in vain for rank 1, which has come to its end",
            "rank 2 waits for rank 1 to send something with tag 77 on world",
        ],
    );
    check(
        2,
        vec![message(1, "MPI_Recv", named("MPI_ANY_SOURCE"), number(1))],
        &["rank 1: in MPI_Recv(source=MPI_ANY_SOURCE, tag=1, comm=world), for 41.0 s"],
        &[
            "Rank 1 waits in vain for rank 0, which has come to its end",
            "rank 1 waits for rank 0 to send something with tag 1 on world",
        ],
    );
}

#[test]
fn a_circle_of_receives_is_a_deadlock() {
    let receives =
        || vec![message(0, "MPI_Recv", number(1), number(5)), message(1, "MPI_Recv", number(0), number(5))];
    let (_, now) = of(2, receives());
    assert_eq!(
        now.conclusions,
        [
            "Ranks 0-1 have waited for each other in a circle for 41.0 s: 0 -> 1 -> 0",
            "rank 0 waits for rank 1 to send something with tag 5 on world",
            "rank 1 waits for rank 0 to send something with tag 5 on world",
        ]
    );
    let mut timeless = receives();
    timeless.iter_mut().for_each(|one| one.ns = None);
    assert!(
        of(2, timeless).1.conclusions[0].ends_with(": 0 -> 1 -> 0, unless something is still on its way")
    );
    // Calls that have just begun are no news.
    let mut just_begun = receives();
    just_begun[1].ns = Some(1000);
    let told = of(2, just_begun).1.conclusions;
    assert_eq!(
        told,
        [
            "Rank 0 waits for rank 1, which has just come to MPI_Recv; whom that call waits for is not known",
            "rank 0 waits for rank 1 to send something with tag 5 on world",
        ]
    );
    // Nor is a message that the other is about to take, whatever it is called there.
    for tag in [number(5), named("MPI_ANY_TAG")] {
        let meets =
            vec![message(0, "MPI_Ssend", number(1), number(5)), message(1, "MPI_Recv", number(0), tag)];
        assert_eq!(of(2, meets).1.conclusions, [""; 0]);
    }
    let misses =
        vec![message(0, "MPI_Ssend", number(1), number(5)), message(1, "MPI_Recv", number(0), number(6))];
    // A message that lies there is why.
    assert_eq!(
        of(2, misses).1.conclusions,
        [
            "Rank 1 waits for rank 0 to send something with tag 6 on world; rank 0 is sending it a message with tag 5 on world \
             that it has not asked for",
            "rank 0 waits for rank 1 to receive what it sends with tag 5 on world",
        ]
    );
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
            "The others wait in vain for rank 2, which has come to its end",
            "ranks 0-1 wait for rank 2 in MPI_Allreduce (collective call 2 on world)",
        ]
    );
    let counts = told(vec![reduce(0, 8, "MPI_INT", "MPI_SUM"), reduce(1, 8, "MPI_DOUBLE", "MPI_SUM")]);
    assert_eq!(
        counts[0],
        "The counts of MPI_Allreduce do not match on world: rank 0 has count=8, datatype=MPI_INT; rank 1 has count=8, \
         datatype=MPI_DOUBLE"
    );
    let operations = told(vec![reduce(0, 8, "MPI_INT", "MPI_SUM"), reduce(1, 8, "MPI_INT", "MPI_MAX")]);
    assert!(
        operations[0].starts_with("The operations of MPI_Allreduce do not match on world: "),
        "{operations:?}"
    );
    let functions = told(vec![
        reduce(0, 8, "MPI_INT", "MPI_SUM"),
        within(1, "MPI_Barrier", &[world], 41),
        within(2, "MPI_Barrier", &[world], 41),
    ]);
    assert_eq!(
        functions,
        ["Collective calls do not match on world: rank 0 has MPI_Allreduce; ranks 1-2 have MPI_Barrier"]
    );
}

/// A scan needs what lower ranks give, and nothing of higher ones.
#[test]
fn a_scan_waits_for_lower_ranks_alone() {
    let scan = |rank| within(rank, "MPI_Scan", &[("comm", named("MPI_COMM_WORLD"))], 41);
    let told = |flight| of(2, flight).1.conclusions;
    let lower = told(vec![scan(0), message(1, "MPI_Recv", number(0), number(5))]);
    assert_eq!(
        lower,
        [
            "Rank 1 waits for rank 0, which has been in MPI_Scan for 41.0 s; whom that call waits for is not known",
            "rank 1 waits for rank 0 to send something with tag 5 on world",
            "rank 0 is in MPI_Scan (collective call 2 on world); rank 1 has not come to it",
        ]
    );
    let higher = told(vec![message(0, "MPI_Recv", number(1), number(5)), scan(1)]);
    assert_eq!(higher[0], "Ranks 0-1 have waited for each other in a circle for 41.0 s: 0 -> 1 -> 0");
}

/// A receive from anybody may have taken any message with its tag on its communicator.
#[test]
fn who_has_a_receive_from_anybody_may_have_taken_it() {
    let irecv = |comm: &str, wild: bool, tag: Option<i64>| {
        let posted = call("MPI_Irecv").buffer().number(1).object("MPI_INT");
        let posted = if wild { posted.named("MPI_ANY_SOURCE") } else { posted.tagged(0) };
        let posted =
            tag.map_or_else(|| posted.clone().named("MPI_ANY_TAG"), |tag| posted.clone().tagged(tag));
        posted.object(comm).tagged(0)
    };
    let told = |receive: Encoded| {
        let mut trace = trace_of(&[vec![vec![barrier()]], vec![vec![barrier(), receive]]]);
        trace.meta.flight = vec![message(0, "MPI_Ssend", number(1), number(5))];
        picture(&trace, &Binaries::new(&modules(&trace), &[])).conclusions
    };
    let waits = [
        "Rank 0 waits in vain for rank 1, which has come to its end",
        "rank 0 waits for rank 1 to receive what it sends with tag 5 on world",
    ];
    assert_eq!(told(irecv("MPI_COMM_WORLD", true, Some(5))), [""; 0]);
    assert_eq!(told(irecv("MPI_COMM_WORLD", true, None)), [""; 0]);
    assert_eq!(told(irecv("MPI_COMM_WORLD", false, None)), [""; 0]);
    assert_eq!(told(irecv("MPI_COMM_WORLD", true, Some(6))), waits);
    assert_eq!(told(irecv("MPI_COMM_SELF", true, Some(5))), waits);
    assert_eq!(told(irecv("MPI_COMM_WORLD", false, Some(6))), waits);
}

/// A receive from anybody with another tag has not taken the message that this one may find.
#[test]
fn receives_from_anybody_take_messages_of_their_own_tag() {
    let posted = |tag: Option<i64>, id: i64| {
        let posted = call("MPI_Irecv").buffer().number(1).object("MPI_INT").named("MPI_ANY_SOURCE");
        let posted =
            tag.map_or_else(|| posted.clone().named("MPI_ANY_TAG"), |tag| posted.clone().tagged(tag));
        posted.object("MPI_COMM_WORLD").tagged(2 * id)
    };
    let told = |before: &[Option<i64>], wants: Arg| {
        let posts = before.iter().zip(0..).map(|(tag, id)| posted(*tag, id)).collect();
        let waits = message(0, "MPI_Recv", named("MPI_ANY_SOURCE"), wants);
        after(vec![posts, vec![send_to(-1, 5)]], vec![waits, outside(1, 9)]).conclusions
    };
    assert_eq!(told(&[Some(6)], number(5)), [""; 0]);
    assert_eq!(told(&[Some(6)], named("MPI_ANY_TAG")), [""; 0]);
    for took_it in [Some(5), None] {
        assert!(
            told(&[took_it], number(5))[0]
                .starts_with("Rank 0 waits for somebody to send something with tag 5")
        );
    }
}

/// The call that it has just entered may be the one that the others are in.
#[test]
fn who_has_just_come_is_not_missing() {
    let world = ("comm", named("MPI_COMM_WORLD"));
    let just_there = |name: &str| InFlight { ns: Some(1000), ..within(2, name, &[world], 0) };
    let told = |last| of(3, vec![in_barrier(0), in_barrier(1), last]).1.conclusions;
    assert_eq!(told(just_there("MPI_Barrier")), [""; 0]);
    // A call of another kind is not.
    let elsewhere = InFlight { ns: Some(1000), ..within(2, "MPI_Recv", &[world], 0) };
    assert_eq!(
        told(elsewhere)[0],
        "The others wait for rank 2, which has just come to MPI_Recv; whom that call waits for is not known"
    );
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
    assert!(told[1].starts_with("rank 0 waits for rank 1 in MPI_Reduce (collective call 3"), "{told:?}");
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
            "Ranks 1-2 were ended, which of them first is not known: rank 1 was ended by an error of MPI in MPI_Recv at \
             app+0x123: MPI_ERR_TRUNCATE: Message truncated; 32 is too much; rank 2 was ended by SIGSEGV at app+0x201, after \
             MPI_Send",
            "rank 0 waits for rank 1 to send something with tag 4 on world",
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

/// Outside of MPI for so long; the last call was a barrier.
fn outside(rank: u32, seconds: u64) -> InFlight {
    InFlight { inside: false, ..within(rank, "MPI_Barrier", &[("comm", named("MPI_COMM_WORLD"))], seconds) }
}

fn in_barrier(rank: u32) -> InFlight {
    within(rank, "MPI_Barrier", &[("comm", named("MPI_COMM_WORLD"))], 12)
}

fn irecv_from(peer: i64, tag: i64, request: i64) -> Encoded {
    let posted = call("MPI_Irecv").buffer().number(1).object("MPI_INT").tagged(peer).tagged(tag);
    posted.object("MPI_COMM_WORLD").tagged(2 * request)
}

fn send_to(peer: i64, tag: i64) -> Encoded {
    call("MPI_Send").buffer().number(1).object("MPI_INT").tagged(peer).tagged(tag).object("MPI_COMM_WORLD")
}

/// What is told of ranks that made these calls before.
fn after(calls: Vec<Vec<Encoded>>, flight: Vec<InFlight>) -> Picture {
    let mut trace = trace_of(&calls.into_iter().map(|calls| vec![calls]).collect::<Vec<_>>());
    trace.meta.flight = flight;
    picture(&trace, &Binaries::new(&modules(&trace), &[]))
}

#[test]
fn who_is_outside_is_named_first_with_how_long() {
    let (_, now) = of(4, vec![in_barrier(0), in_barrier(1), outside(2, 13), in_barrier(3)]);
    assert_eq!(
        now.conclusions,
        [
            "Rank 2 holds up the others: it has been outside MPI for 13.0 s, since MPI_Barrier",
            "ranks 0-1,3 wait for rank 2 in MPI_Barrier (collective call 2 on world)",
        ]
    );
    assert!(now.lines().contains(&"rank 2: outside MPI since MPI_Barrier(comm=world), for 13.0 s".into()));
    let culprit = now.culprit.as_ref().unwrap();
    assert_eq!((culprit.kind, culprit.ns), (CulpritKind::Outside, Some(13 * SECOND)));
    assert_eq!((&culprit.ranks[..], &culprit.waiting[..]), (&[2][..], &[0, 1, 3][..]));
    let mut text = Vec::new();
    now.write_text(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with(
        "Rank 2 holds up the others: it has been outside MPI for 13.0 s, since MPI_Barrier.\n  ranks 0-1,3"
    ));
    // Who waits for one that waits for the culprit waits for the culprit.
    let receives = |rank: u32| message(rank, "MPI_Recv", number(rank as i64 + 1), number(5));
    let (_, chain) = of(3, vec![receives(0), receives(1), outside(2, 13)]);
    assert_eq!(
        chain.conclusions[0],
        "Rank 2 holds up the others: it has been outside MPI for 13.0 s, since MPI_Barrier"
    );
}

/// With stacks that were read while the run was looked at: functions with their lines, the innermost first.
fn now(flight: Vec<InFlight>, stacks: &[(u32, &[(&str, u64)])]) -> Picture {
    let mut trace = alike(flight.len(), &[barrier()]);
    trace.meta.flight = flight;
    let mut sites = modules(&trace);
    let mut frame = |(function, line): &(&str, u64)| {
        let module = Module { path: format!("{PYTHON}/home/heat.c:{function}"), build_id: Box::default() };
        sites.add_module(module.clone());
        Frame { module: module.key(), offset: *line }
    };
    let mut frames = |frames: &[(&str, u64)]| frames.iter().map(&mut frame).collect();
    let stacks = stacks.iter().map(|(rank, stack)| ((*rank, 0), frames(stack)));
    let stacks = stacks.collect::<Vec<_>>().into_iter().collect();
    picture_with(&trace, &Binaries::new(&sites, &[]), &stacks)
}

#[test]
fn what_a_rank_is_in_outside_mpi_is_told_with_it() {
    let stack: &[(&str, u64)] = &[("kernel", 41), ("step", 66), ("main", 80), ("__libc_start_main", 3)];
    let held = now(vec![in_barrier(0), in_barrier(1), outside(2, 13)], &[(2, stack), (0, stack)]);
    assert_eq!(
        held.conclusions[0],
        "Rank 2 holds up the others: it has been outside MPI for 13.0 s (now in kernel at heat.c:41), since MPI_Barrier"
    );
    // Nothing of who is inside, and nothing further out than main.
    let expected = [
        "ranks 0-1: in MPI_Barrier(comm=world), for 12.0 s",
        "rank 2: outside MPI since MPI_Barrier(comm=world), for 13.0 s",
        "  now in kernel (heat.c:41), called from step (heat.c:66), main (heat.c:80)",
    ];
    assert_eq!(held.lines(), expected);
    let json = serde_json::to_value(&held).unwrap();
    let row = &json["in_flight"][2]["now"];
    assert_eq!((row[0]["function"].as_str(), row[0]["line"].as_u64()), (Some("kernel"), Some(41)));
    assert_eq!((row.as_array().unwrap().len(), &json["in_flight"][0]["now"]), (3, &serde_json::Value::Null));
}

#[test]
fn ranks_that_are_in_different_functions_have_a_line_each() {
    let ranks = vec![in_barrier(0), outside(1, 13), outside(2, 13), outside(3, 13)];
    let (one, other): (&[_], &[_]) = (&[("kernel", 41), ("main", 80)], &[("kernel", 42), ("main", 80)]);
    let both = now(ranks.clone(), &[(1, one), (2, other), (3, one)]);
    let expected = [
        "ranks 1-3: outside MPI since MPI_Barrier(comm=world), for 13.0 s",
        "  ranks 1,3 now in kernel (heat.c:41), called from main (heat.c:80)",
        "  rank 2 now in kernel (heat.c:42), called from main (heat.c:80)",
    ];
    assert_eq!(both.lines()[1..], expected);
    // No place is that of all.
    assert!(
        both.conclusions[0].contains("outside MPI for 13.0 s, since MPI_Barrier"),
        "{:?}",
        both.conclusions
    );
    let alike = now(ranks, &[(1, one), (2, one), (3, one)]);
    assert!(
        alike.conclusions[0].contains("for 13.0 s (now in kernel at heat.c:41), since"),
        "{:?}",
        alike.conclusions
    );
}

/// MPICH ends all others at once: nobody has waited for long.
#[test]
fn who_crashed_is_named_first_whatever_the_others_did() {
    let mut crashed = outside(1, 0);
    (crashed.fault, crashed.ns) = (Some(11), None);
    let mut waits = message(0, "MPI_Recv", number(1), number(4));
    waits.ns = Some(SECOND / 10);
    let (_, now) = of(2, vec![waits, crashed]);
    assert_eq!(now.conclusions, ["Rank 1 was ended by SIGSEGV, after MPI_Barrier"]);
    assert_eq!(now.culprit.unwrap().kind, CulpritKind::Ended);
}

#[test]
fn other_ends_are_taken_from_the_notes() {
    let told = |note: &str, others: &str| {
        let mut trace = alike(3, &[barrier()]);
        trace.meta.notes = vec![note.into(), others.into()];
        trace.meta.flight = vec![in_barrier(0), outside(1, 1), in_barrier(2)];
        picture(&trace, &Binaries::new(&modules(&trace), &[])).conclusions.swap_remove(0)
    };
    let killed = "ranks 0,2: killed or crashed";
    assert_eq!(
        told("rank 1: exit(3) without MPI_Finalize", killed),
        "Rank 1 called exit(3) without MPI_Finalize, after MPI_Barrier"
    );
    let runs = "ranks 0,2: was still running inside MPI_Barrier";
    assert_eq!(
        told("rank 1: killed or crashed", runs),
        "Rank 1 is gone: it was killed or crashed, after MPI_Barrier"
    );
    // All are dead: nobody knows who was first.
    assert_eq!(
        told("rank 1: killed or crashed", killed),
        "Rank 1 held up the others: it was outside MPI for 1.00 s, since MPI_Barrier, or was killed or crashed before that"
    );
    let mut trace = alike(3, &[barrier()]);
    trace.meta.notes = vec!["rank 1: reached MPI_Finalize, but the trace was not written there".into()];
    trace.meta.flight = vec![in_barrier(0), in_barrier(2)];
    let finished = picture(&trace, &Binaries::new(&modules(&trace), &[]));
    assert_eq!(finished.conclusions[0], "The others wait in vain for rank 1, which reached MPI_Finalize");
}

/// Some launchers end the others at once: none of them has waited for long, or has waited for another one.
#[test]
fn who_left_in_order_but_without_finalize_is_named() {
    let told = |others: &str, flight: Vec<InFlight>| {
        let mut trace = alike(3, &[barrier()]);
        trace.meta.notes = vec!["rank 1: exit(0) without MPI_Finalize".into(), others.into()];
        trace.meta.flight = flight;
        let picture = picture(&trace, &Binaries::new(&modules(&trace), &[]));
        let culprit = picture.culprit.unwrap();
        (culprit.told, culprit.kind, culprit.ranks)
    };
    let just_there = |rank| InFlight { ns: Some(1000), ..in_barrier(rank) };
    let left = ("Rank 1 called exit(0) without MPI_Finalize".to_owned(), CulpritKind::Ended, vec![1]);
    let killed = "ranks 0,2: killed or crashed inside MPI_Barrier";
    assert_eq!(told(killed, vec![just_there(0), just_there(2)]), left);
    assert_eq!(told(killed, vec![message(0, "MPI_Recv", number(2), number(5)), outside(2, 1)]), left);
    // Where the others go on it is the culprit if they wait for it.
    let runs = "ranks 0,2: was still running inside MPI_Barrier";
    let (first, kind, _) = told(runs, vec![in_barrier(0), in_barrier(2)]);
    assert_eq!(first, "The others wait in vain for rank 1, which called exit(0) without MPI_Finalize");
    assert_eq!(kind, CulpritKind::Finished);
    let (first, ..) = told(runs, vec![message(0, "MPI_Recv", number(2), number(5)), outside(2, 1)]);
    assert_eq!(first, "Rank 2 holds up rank 0: it has been outside MPI for 1.00 s, since MPI_Barrier");
}

/// A dead rank is in no call and outside of none.
#[test]
fn who_is_gone_is_told_in_the_past() {
    let told = |note: &str, one: InFlight| {
        let mut trace = alike(2, &[barrier()]);
        trace.meta.notes =
            vec![format!("rank 1: {note}"), "rank 0: was still running inside MPI_Barrier".into()];
        trace.meta.flight = vec![in_barrier(0), one];
        let picture = picture(&trace, &Binaries::new(&modules(&trace), &[]));
        assert_eq!(picture.culprit.as_ref().unwrap().waiting, [0]);
        (picture.conclusions[0].clone(), picture.lines()[0].clone())
    };
    let dead = || InFlight { ns: None, ..outside(1, 0) };
    let line = |text: &str| format!("rank 1: {text}MPI_Barrier(comm=world)");
    assert_eq!(
        told("killed or crashed", dead()),
        (
            "Rank 1 is gone: it was killed or crashed, after MPI_Barrier".into(),
            line("killed or crashed; the last call was ")
        )
    );
    assert_eq!(
        told("exit(3) without MPI_Finalize", outside(1, 12)),
        (
            "Rank 1 called exit(3) without MPI_Finalize, after MPI_Barrier".into(),
            line("called exit(3) without MPI_Finalize; the last call was ")
        )
    );
    // It has called it, and is not dead yet.
    assert_eq!(
        told("exit(0) without MPI_Finalize", outside(1, 12)),
        (
            "Rank 0 waits in vain for rank 1, which called exit(0) without MPI_Finalize".into(),
            line("called exit(0) without MPI_Finalize; the last call was ")
        )
    );
    let in_barrier = InFlight { ns: None, ..in_barrier(1) };
    assert_eq!(told("killed or crashed inside MPI_Barrier", in_barrier).1, line("killed or crashed, in "));
}

/// A poll of this request that has found nothing, or something, after so many that found nothing.
fn test(request: i64, flag: bool, before: i64) -> Encoded {
    let asked = call("MPI_Test").tagged(2 * request).tagged(i64::from(flag));
    if flag { asked.status(0, 7, 4).number(before) } else { asked.no_status().number(before) }
}

/// It is in MPI, time and again.
#[test]
fn who_polls_is_told_with_what_it_polls_for() {
    let asks =
        |inside, nanoseconds| InFlight { inside, ns: Some(nanoseconds), ..within(1, "MPI_Test", &[], 0) };
    let told = |polls: Vec<Encoded>, asks: InFlight| {
        let calls = [vec![barrier(), irecv_from(-1, 13, 0)], polls].concat();
        after(vec![vec![barrier()], calls], vec![in_barrier(0), asks])
    };
    let sentence = "Rank 1 holds up rank 0: it polls with MPI_Test for MPI_Irecv(source=0, tag=13, comm=world), and nothing comes";
    for (inside, nanoseconds) in [(false, 0), (false, SECOND / 1000), (true, 1000)] {
        let polls = if inside { vec![test(0, false, 1 << 24)] } else { vec![test(0, false, 0); 2] };
        let now = told(polls, asks(inside, nanoseconds));
        assert_eq!(now.conclusions[0], sentence);
        assert_eq!(now.lines()[1], "rank 1: polls with MPI_Test for MPI_Irecv(source=0, tag=13, comm=world)");
        assert_eq!(now.culprit.as_ref().unwrap().kind, CulpritKind::Polling);
        assert!(now.doing[1].polls && now.doing[1].ns.is_none());
    }
    // Once is not again and again; nor is it after something came, or a long time ago.
    for polls in [vec![test(0, false, 0)], vec![test(0, true, 7)]] {
        assert!(!told(polls, asks(false, 0)).doing[1].polls);
    }
    let long_ago = told(vec![test(0, false, 7)], asks(false, 10 * SECOND));
    assert!(
        long_ago.conclusions[0]
            .starts_with("Rank 1 holds up rank 0: it has been outside MPI for 10.0 s, since")
    );
    // A message needs no request.
    for name in ["MPI_Iprobe", "MPI_Improbe"] {
        let asked = call(name).named("MPI_ANY_SOURCE").tagged(7).object("MPI_COMM_WORLD").tagged(0);
        let asked = if name == "MPI_Iprobe" { asked } else { asked.named("MPI_MESSAGE_NULL") };
        let looks = InFlight { inside: false, ..within(1, name, &[], 0) };
        let now = told(vec![asked.no_status().number(7)], looks);
        let with = format!("{name}(source=MPI_ANY_SOURCE, tag=7, comm=world)");
        assert_eq!(
            now.conclusions[0],
            format!("Rank 1 holds up rank 0: it polls with {with}, and nothing comes")
        );
    }
}

/// What is not recorded may be anything.
#[test]
fn of_chosen_calls_no_time_outside_is_told() {
    let lines = |option: &str| {
        let mut trace = alike(2, &[barrier()]);
        trace.meta.options.extend([(option.to_owned(), "coll".to_owned())]);
        trace.meta.flight = vec![in_barrier(0), outside(1, 13)];
        let now = picture(&trace, &Binaries::new(&modules(&trace), &[]));
        assert!(now.culprit.is_none());
        assert_eq!(now.doing[1].ns.is_none(), option != "time");
        now.lines()
    };
    for option in ["only", "skip", "window", "pcontrol"] {
        assert_eq!(
            lines(option),
            [
                "rank 0: in MPI_Barrier(comm=world), for 12.0 s",
                "rank 1: in no call that is recorded; the last one was MPI_Barrier(comm=world)",
            ]
        );
    }
    let noted = |note: &str| {
        let mut trace = alike(2, &[barrier()]);
        trace.meta.notes = vec![note.into()];
        trace.meta.flight = vec![in_barrier(0), outside(1, 13)];
        let now = picture(&trace, &Binaries::new(&modules(&trace), &[]));
        (now.lines().swap_remove(1), now.culprit.is_some())
    };
    let stopped = "rank 1: was still running; calls are missing at the end, tracing had stopped";
    let unknown = "rank 1: in no call that is recorded; the last one was MPI_Barrier(comm=world)";
    assert_eq!(noted(stopped), (unknown.into(), false));
    // Times are no calls.
    let known = "rank 1: outside MPI since MPI_Barrier(comm=world), for 13.0 s";
    assert_eq!(noted("the times of calls are missing: no room"), (known.into(), true));
}

/// A file may say anything.
#[test]
fn ranks_that_are_not_there_do_not_end() {
    let mut trace = alike(2, &[barrier()]);
    let too_many = "rank 0-4294967295: exit(3) without MPI_Finalize";
    trace.meta.notes = vec![too_many.into(); 100];
    trace.meta.flight = vec![in_barrier(0), outside(1, 1)];
    let culprit = picture(&trace, &Binaries::new(&modules(&trace), &[])).culprit.unwrap();
    assert_eq!(culprit.ranks, [0, 1]);
}

/// All of its receives are waited for; a send may be over.
#[test]
fn what_waitall_waits_for() {
    let isend = call("MPI_Isend").buffer().number(1).object("MPI_INT").tagged(1).tagged(7);
    let isend = isend.object("MPI_COMM_WORLD").tagged(0);
    let mut waits = within(0, "MPI_Waitall", &[("count", number(3))], 12);
    waits.waits_for = 3;
    waits.requests = (0..3).map(|back| Waited { thread: 0, back }).collect();
    let first = vec![barrier(), isend, irecv_from(1, 8, 1), irecv_from(2, 9, 2)];
    let told = after(
        vec![first, vec![barrier(), send_to(-1, 8)], vec![barrier()]],
        vec![waits, outside(1, 10), outside(2, 11)],
    );
    assert_eq!(
        told.conclusions,
        [
            "Rank 2 holds up rank 0: it has been outside MPI for 11.0 s, since MPI_Barrier",
            "rank 0 waits for rank 2 to send something with tag 9 on world",
        ]
    );
}

#[test]
fn a_persistent_request_waits_for_what_its_last_start_is() {
    let init = call("MPI_Recv_init").buffer().number(1).object("MPI_INT").tagged(1).tagged(9);
    let init = init.object("MPI_COMM_WORLD").tagged(2);
    let start = || call("MPI_Start").tagged(2);
    let wait = || call("MPI_Wait").tagged(2).named("MPI_STATUS_IGNORE");
    let mut waits = within(0, "MPI_Wait", &[], 12);
    (waits.waits_for, waits.requests) = (1, vec![Waited { thread: 0, back: 0 }]);
    let told = |sent: usize| {
        let calls = vec![init.clone(), start(), wait(), start()];
        let flight = vec![waits.clone(), outside(1, 10)];
        after(vec![calls, vec![send_to(-1, 9); sent]], flight).conclusions
    };
    assert_eq!(
        told(1),
        [
            "Rank 1 holds up rank 0: it has been outside MPI for 10.0 s, since MPI_Barrier",
            "rank 0 waits for rank 1 to send something with tag 9 on world",
        ]
    );
    assert_eq!(told(2), [""; 0]);
}

/// Nobody is blamed where what was sent is not what is waited for.
#[test]
fn another_message_than_the_one_that_is_waited_for() {
    let recv = message(0, "MPI_Recv", number(1), number(6));
    let told = after(vec![vec![barrier()], vec![barrier(), send_to(-1, 5)]], vec![recv, outside(1, 10)]);
    assert_eq!(
        told.conclusions[0],
        "Rank 0 waits for rank 1 to send something with tag 6 on world; rank 1 has sent it 1 message with tag 5 on world that \
         it has not asked for"
    );
    assert_eq!(told.culprit.unwrap().kind, CulpritKind::OtherMessage);
}

/// The sender waits for the receiver in its turn: it is a circle, and that is not why.
#[test]
fn another_message_comes_before_the_circle_that_it_makes() {
    let calls = || vec![vec![barrier()], vec![barrier(), send_to(-1, 5)], vec![barrier()]];
    let first = |peer: Arg, flight: Vec<InFlight>| {
        let recv = message(0, "MPI_Recv", peer, number(6));
        let told = after(calls(), std::iter::once(recv).chain(flight).collect());
        assert_eq!(told.culprit.unwrap().kind, CulpritKind::OtherMessage);
        told.conclusions[0].clone()
    };
    let of_one = "Rank 0 waits for rank 1 to send something with tag 6 on world; rank 1 has sent it 1 message with tag 5 on world \
                  that it has not asked for";
    assert_eq!(first(number(1), vec![in_barrier(1), in_barrier(2)]), of_one);
    // Nor if it waits for an answer.
    assert_eq!(first(number(1), vec![message(1, "MPI_Recv", number(0), number(7)), in_barrier(2)]), of_one);
    let of_any = "Rank 0 waits for ranks 1-2 to send something with tag 6 on world (any of them); rank 1 has sent it 1 message \
                  with tag 5 on world that it has not asked for";
    let anybody = named("MPI_ANY_SOURCE");
    assert_eq!(first(anybody, vec![in_barrier(1), in_barrier(2)]), of_any);
    assert_eq!(first(anybody, vec![outside(1, 10), outside(2, 10)]), of_any);
    let finalize = |rank| within(rank, "MPI_Finalize", &[], 12);
    assert_eq!(first(anybody, vec![finalize(1), finalize(2)]), of_any);
    let sends =
        vec![message(0, "MPI_Recv", anybody, number(6)), message(1, "MPI_Ssend", number(0), number(5))];
    assert_eq!(
        of(3, [sends, vec![finalize(2)]].concat()).1.conclusions[0],
        "Rank 0 waits for ranks 1-2 to send something with tag 6 on world (any of them); rank 1 is sending it a message with \
         tag 5 on world that it has not asked for"
    );
    // One that it has asked for is no such message.
    let asked = after(
        vec![vec![barrier(), irecv_from(1, 5, 0)], vec![barrier(), send_to(-1, 5)]],
        vec![message(0, "MPI_Recv", number(1), number(6)), message(1, "MPI_Recv", number(0), number(7))],
    );
    assert_eq!(asked.culprit.unwrap().kind, CulpritKind::Circle);
}

/// However many ranks wait: of each only what came from the peer is looked at.
#[test]
fn other_messages_are_told_of_many_ranks() {
    let pairs = 600;
    let calls = (0..2 * pairs).map(|rank| match rank % 2 {
        0 => vec![barrier()],
        _ => vec![barrier(), send_to(-1, 5)],
    });
    let waits = |rank| {
        let peer = i64::from(rank) + 1;
        [message(rank, "MPI_Recv", number(peer), number(6)), outside(rank + 1, 10)]
    };
    let told = after(calls.collect(), (0..pairs as u32).flat_map(|pair| waits(2 * pair)).collect());
    assert!(
        told.conclusions[0]
            .ends_with("rank 1 has sent it 1 message with tag 5 on world that it has not asked for")
    );
}

/// One of those that may send is enough.
#[test]
fn a_receive_from_anybody_accuses_nobody() {
    let wild = |rank| message(rank, "MPI_Recv", named("MPI_ANY_SOURCE"), number(1));
    let told = |flight| of(3, flight).1.conclusions;
    assert_eq!(
        told(vec![wild(0), outside(1, 10), outside(2, 10)]),
        [
            "Rank 0 waits for somebody to send something with tag 1 on world: ranks 1-2 may still do so",
            "rank 0 waits for ranks 1-2 to send something with tag 1 on world (any of them)",
        ]
    );
    assert_eq!(
        told(vec![wild(0), wild(1), wild(2)])[0],
        "Ranks 0-2 have waited for each other for 41.0 s, and nobody is left who could help"
    );
    // A message that nobody has asked for may be what it finds.
    let sent = vec![vec![barrier()], vec![barrier(), send_to(-1, 1)], vec![barrier()]];
    assert_eq!(after(sent, vec![wild(0), outside(1, 9), outside(2, 9)]).conclusions, [""; 0]);
}

/// A rank of which nothing was recorded may have done anything.
#[test]
fn who_is_not_known_is_not_accused() {
    let mut trace = alike(2, &[barrier()]);
    trace.meta.ranks = 3;
    trace.meta.flight = vec![message(0, "MPI_Recv", number(2), number(5))];
    assert_eq!(picture(&trace, &Binaries::new(&modules(&trace), &[])).conclusions, [""; 0]);
}

/// Of a run with `--stacks full`.
#[test]
fn who_is_outside_has_the_stack_of_the_last_call() {
    let calls = || vec![barrier().from(&[0x10, 0x20]), barrier().from(&[0x10, 0x30])];
    let now = after(vec![calls(), calls()], vec![in_barrier(0), outside(1, 10)]);
    assert_eq!(
        now.lines()[1],
        "rank 1: outside MPI since MPI_Barrier(comm=world), called from app+0x30, app+0x10, for 10.0 s"
    );
    assert_eq!(now.doing[1].stack, ["app+0x30", "app+0x10"]);
    assert!(now.doing[0].stack.is_empty());
}
