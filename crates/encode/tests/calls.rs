//! Calls as a program makes them, encoded and decoded again, case by case.

use crate::common;

use std::cell::Cell;
use std::rc::Rc;

use common::*;
use refrain_encode::CommInfo;
use refrain_model::{Address, Area, Value};

fn at<T>(value: &T) -> usize {
    std::ptr::from_ref(value) as usize
}

fn start<T>(values: &[T]) -> usize {
    values.as_ptr() as usize
}

#[test]
fn ranks_are_relative_inside_and_absolute_outside() {
    let mut w = world();
    let (world, int) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"));
    let data = [0u8; 8];
    w.check("MPI_Send", &[start(&data), 3, int, 4, 7, world], "@8 3 INT 4 7 world");
    let first = w.record.clone();
    w.check("MPI_Send", &[start(&data), 3, int, 3, 7, world], "@8 3 INT 3 7 world");
    assert_eq!(first.symbol, w.record.symbol);
    let peers: Vec<i64> = [&first, &w.record].map(|r| r.values[3].1).to_vec();
    assert_eq!(peers, [2, 1]);
    w.check("MPI_Send", &[0, 0, int, PROC_NULL, 7, world], "BOTTOM 0 INT PROC_NULL 7 world");
    let rank = 2i32;
    w.check("MPI_Comm_rank", &[world, at(&rank)], "world 2");
    assert_eq!(w.record.values, [(0, 0)]);
}

/// The numbers in the lanes of a call's displacements, lengths too.
fn of_displacements(w: &World, from: u16) -> Vec<i64> {
    w.record.values.iter().filter(|(lane, _)| (from..from + 2).contains(lane)).map(|(_, v)| *v).collect()
}

#[test]
fn displacements_that_are_sums_of_counts_are_told_by_three_numbers() {
    let mut w = world();
    let (world, int) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"));
    let counts = [3i32, 1, 4, 1, 5];
    let mut check = |displacements: [i32; 5], told: &[i64]| {
        let args = [0, 1, int, 0, start(&counts), start(&displacements), int, world];
        let shown = displacements.map(|d| d.to_string()).join(",");
        w.check("MPI_Allgatherv", &args, &format!("BOTTOM 1 INT BOTTOM [3,1,4,1,5] [{shown}] INT world"));
        assert_eq!(of_displacements(&w, 3), told);
        w.record.symbol.clone()
    };
    let packed = check([0, 3, 4, 8, 9], &[-6, 0, 0, 0]);
    check([7, 10, 11, 15, 16], &[-6, 7, 0, 0]);
    // With gaps, and in bytes.
    check([0, 5, 8, 14, 17], &[-6, 0, 2, 0]);
    check([0, 12, 16, 32, 36], &[-6, 0, 0, 3]);
    let other = check([0, 3, 4, 8, 8], &[5, 0, 3, 4, 8, 8]);
    assert_eq!(packed, other, "whether they are sums is no matter of the symbol");
}

#[test]
fn displacements_of_other_collectives_are_told_so_too() {
    let mut w = world();
    let (world, int) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"));
    let (counts, at_counts) = ([2i32, 0, 1, 1, 3], [0i32, 2, 2, 3, 4]);
    let shown = "[2,0,1,1,3] [0,2,2,3,4] INT";
    let both = [0, start(&counts), start(&at_counts), int, 0, start(&counts), start(&at_counts), int, world];
    w.check("MPI_Alltoallv", &both, &format!("BOTTOM {shown} BOTTOM {shown} world"));
    assert_eq!(w.record.values.len(), 2 * (1 + 5 + 1 + 3));
    let in_place = [IN_PLACE, 0, 0, 0, 0, start(&counts), start(&at_counts), int, world];
    w.check("MPI_Alltoallv", &in_place, &format!("IN_PLACE - - - BOTTOM {shown} world"));
    let (wide, at_wide) =
        ([1i64 << 40, 1, 2, 3, 4], [0i64, 1 << 40, (1 << 40) + 1, (1 << 40) + 3, (1 << 40) + 6]);
    let large = [0, 1, int, 0, start(&wide), start(&at_wide), int, world];
    let numbers = |all: &[i64]| all.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let shown = format!("BOTTOM 1 INT BOTTOM [{}] [{}] INT world", numbers(&wide), numbers(&at_wide));
    w.check("MPI_Allgatherv_c", &large, &shown);
    assert_eq!(of_displacements(&w, 3), [-6, 0, 0, 0]);
}

#[test]
fn garbage_above_an_int_is_not_seen() {
    let mut w = world();
    let (world, int) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"));
    let dirty = 0xdead_beef_0000_0000;
    w.check("MPI_Send", &[0, dirty | 3, int, dirty | 4, dirty | 7, world], "BOTTOM 3 INT 4 7 world");
}

#[test]
fn statuses() {
    let mut w = world();
    let (world, int) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"));
    let s = FakeStatus { source: 4, tag: 7, bytes: 12, error: 99, cancelled: 0 };
    let args = [0, 3, int, ANY_SOURCE, ANY_TAG, world, at(&s)];
    // The error field is whatever was there before, and so no part of the call.
    w.check("MPI_Recv", &args, "BOTTOM 3 INT ANY_SOURCE ANY_TAG world <4 7 12 false>");
    w.check("MPI_Recv", &[0, 3, int, 1, 5, world, STATUS_IGNORE], "BOTTOM 3 INT 1 5 world STATUS_IGNORE");
    let null = FakeStatus { source: PROC_NULL as i32, tag: ANY_TAG as i32, bytes: 0, error: 0, cancelled: 1 };
    let flag = Cell::new(0i32);
    let iprobe = [1, 5, world, at(&flag), at(&null)];
    w.check("MPI_Iprobe", &iprobe, "1 5 world false -");
    let polls = w.record.symbol.clone();
    flag.set(1);
    // Nor is a mark in memory that this was cancelled: nobody can cancel a probe.
    w.check("MPI_Iprobe", &iprobe, "1 5 world true <PROC_NULL ANY_TAG 0 false>");
    assert_eq!(polls, w.record.symbol, "a poll that fails and one that succeeds are one symbol");
}

/// MPI defines nothing else of it, and libraries leave the rest as it was: stack garbage in most programs.
#[test]
fn of_a_file_s_status_only_the_amount_counts() {
    let mut w = world();
    let (int, garbage) =
        (handle("MPI_INT"), FakeStatus { source: 56, tag: 99, bytes: 8, error: 7, cancelled: 1 });
    let shown = "file#0 64 @8 2 INT <- - 8 ->";
    let data = [0i32; 4];
    w.check("MPI_File_write_at", &[900, 64, start(&data), 2, int, at(&garbage)], shown);
}

/// A library may say so of a request that was no message; it is no rank, and the same on all.
#[test]
fn an_undefined_source_is_not_relative() {
    let mut w = world();
    let request = handle("MPI_REQUEST_NULL");
    let status = FakeStatus { source: -32766, tag: 3, bytes: 8, error: 0, cancelled: 0 };
    w.check("MPI_Wait", &[at(&request), at(&status)], "REQUEST_NULL <UNDEFINED 3 8 false>");
}

const RUBBISH: FakeStatus = FakeStatus { source: 77, tag: 66, bytes: 55, error: 44, cancelled: 0 };

/// What each kind of request leaves in a status; the rest is what lay in the program's memory.
#[test]
fn of_a_status_only_what_mpi_defines_is_kept() {
    let mut w = world();
    let (world, int, null) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"), handle("MPI_REQUEST_NULL"));
    let requests = [Cell::new(500usize), Cell::new(501), Cell::new(502), Cell::new(503), Cell::new(504)];
    let [send, receive, barrier, file, persistent] = requests.each_ref().map(at);
    w.call("MPI_Isend", &[0, 1, int, 3, 9, world, send], 0, || {});
    w.call("MPI_Irecv", &[0, 1, int, 3, 9, world, receive], 0, || {});
    w.call("MPI_Ibarrier", &[world, barrier], 0, || {});
    w.call("MPI_File_iwrite", &[900, 0, 1, int, file], 0, || {});
    w.call("MPI_Send_init", &[0, 1, int, 3, 9, world, persistent], 0, || {});
    w.call("MPI_Start", &[persistent], 0, || {});
    let cancelled = FakeStatus { cancelled: 1, ..RUBBISH };
    let (flag, index) = (1i32, Cell::new(4i32));
    w.check("MPI_Request_get_status", &[500, at(&flag), at(&cancelled)], "request#0 true <- - - true>");
    let statuses = [RUBBISH; 5];
    let ids = "5 [request#0,request#1,request#2,request#3,request#4]";
    w.check("MPI_Waitany", &[5, at(&requests), at(&index), at(&RUBBISH)], &format!("{ids} 4 <- - - false>"));
    w.call("MPI_Start", &[persistent], 0, || {});
    index.set(1);
    w.check(
        "MPI_Testany",
        &[5, at(&requests), at(&index), at(&flag), at(&RUBBISH)],
        &format!("{ids} 1 true <77 66 55 false>"),
    );
    // An empty status, which is defined.
    index.set(UNDEFINED);
    let empty = FakeStatus { source: ANY_SOURCE as i32, tag: ANY_TAG as i32, bytes: 0, ..RUBBISH };
    w.check(
        "MPI_Waitany",
        &[5, at(&requests), at(&index), at(&empty)],
        &format!("{ids} UNDEFINED <ANY_SOURCE ANY_TAG 0 false>"),
    );
    let (two, indices) = (2i32, [3i32, 0]);
    w.check(
        "MPI_Waitsome",
        &[5, at(&requests), at(&two), at(&indices), at(&statuses)],
        &format!("{ids} 2 [3,0] [<- - 55 ->,<- - - false>]"),
    );
    let call = w.call("MPI_Waitall", &[5, at(&requests), at(&statuses)], 0, || {
        requests.iter().take(4).for_each(|r| r.set(null));
    });
    let all = "<- - - false>,<77 66 55 false>,-,<- - 55 ->,<- - - false>";
    assert_eq!(show(&call), format!("{ids} [{all}]"));
    // One that nobody saw being made: it may be anything.
    let unseen = 999usize;
    w.check("MPI_Wait", &[at(&unseen), at(&RUBBISH)], "request#5 -");
}

/// A call that completes an inactive request gives the empty status, all of which is defined. Each call that completes makes
/// inactive what it says, and nothing else.
#[test]
fn of_an_inactive_request_the_status_is_empty() {
    let mut w = world();
    let (world, int) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"));
    let requests = [500usize, 501];
    let [one, other] = requests.each_ref().map(at);
    for request in [one, other] {
        w.call("MPI_Send_init", &[0, 1, int, 3, 9, world, request], 0, || {});
    }
    let empty =
        FakeStatus { source: ANY_SOURCE as i32, tag: ANY_TAG as i32, bytes: 0, error: 44, cancelled: 0 };
    let (inactive, active) = ("<ANY_SOURCE ANY_TAG 0 false>", "<- - - false>");
    let statuses = [empty; 2];
    let (yes, no, second, indices) = (1i32, 0i32, 1i32, [1i32, 0]);
    let both = at(&requests);
    // Asking completes nothing.
    fn ask(w: &mut World, of: [&str; 2], status: &FakeStatus) {
        let yes = 1i32;
        for (k, of) in of.into_iter().enumerate() {
            let args = [500 + k, at(&yes), at(status)];
            w.check("MPI_Request_get_status", &args, &format!("request#{k} true {of}"));
        }
    }
    ask(&mut w, [inactive; 2], &empty);
    for (name, args, left) in [
        ("MPI_Wait", vec![one, at(&empty)], [inactive, active]),
        ("MPI_Test", vec![one, at(&yes), STATUS_IGNORE], [inactive, active]),
        ("MPI_Test", vec![one, at(&no), STATUS_IGNORE], [active; 2]),
        ("MPI_Waitall", vec![2, both, at(&statuses)], [inactive; 2]),
        ("MPI_Testall", vec![2, both, at(&no), at(&statuses)], [active; 2]),
        ("MPI_Testall", vec![2, both, at(&yes), at(&statuses)], [inactive; 2]),
        ("MPI_Waitany", vec![2, both, at(&second), STATUS_IGNORE], [active, inactive]),
        ("MPI_Testany", vec![2, both, at(&second), at(&yes), at(&empty)], [active, inactive]),
        ("MPI_Testany", vec![2, both, at(&UNDEFINED), at(&no), at(&empty)], [active; 2]),
        ("MPI_Waitsome", vec![2, both, at(&second), at(&indices), at(&statuses)], [active, inactive]),
        ("MPI_Testsome", vec![2, both, at(&no), at(&indices), at(&statuses)], [active; 2]),
    ] {
        w.call("MPI_Startall", &[2, both], 0, || {});
        ask(&mut w, [active; 2], &empty);
        w.call(name, &args, 0, || {});
        ask(&mut w, left, &empty);
    }
    w.call("MPI_Start", &[one], 0, || {});
    w.check(
        "MPI_Waitall",
        &[2, both, at(&statuses)],
        &format!("2 [request#0,request#1] [{active},{active}]"),
    );
    w.check(
        "MPI_Waitall",
        &[2, both, at(&statuses)],
        &format!("2 [request#0,request#1] [{inactive},{inactive}]"),
    );
}

/// Of an operation that was cancelled only that is defined, whatever it was, and however often it comes.
#[test]
fn of_what_was_cancelled_only_that_is_kept() {
    let mut w = world();
    let (world, int, null) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"), handle("MPI_REQUEST_NULL"));
    let request = Cell::new(0usize);
    for rubbish in [1, 2, 3] {
        request.set(500);
        w.call("MPI_Irecv", &[0, 1, int, 3, 9, world, at(&request)], 0, || {});
        w.check("MPI_Cancel", &[at(&request)], "request#0");
        let status = FakeStatus { source: rubbish, tag: rubbish, bytes: 4, error: rubbish, cancelled: 1 };
        let call = w.call("MPI_Wait", &[at(&request), at(&status)], 0, || request.set(null));
        assert_eq!(show(&call), "request#0 <- - - true>");
    }
}

/// What is set in one call counts for all generalised requests that it completes, and for none of a later call.
#[test]
fn of_generalised_requests_what_was_set_in_the_call_is_kept() {
    let mut w = world();
    let (int, null) = (handle("MPI_INT"), handle("MPI_REQUEST_NULL"));
    let requests = [Cell::new(0usize), Cell::new(0)];
    let f = refrain_model::function("MPI_Waitall").unwrap();
    let statuses = [RUBBISH; 2];
    let set = |w: &mut World, names: &[&str]| {
        for name in names {
            let all = [at(&RUBBISH), int, 3];
            let n = refrain_model::function(name).unwrap().params.len();
            w.call(name, &all[..n], 0, || {});
        }
    };
    let mut wait = |statuses: usize, result: i64, earlier: &[&str], within: &[&str]| {
        for (k, request) in requests.iter().enumerate() {
            request.set(500 + k);
            w.call("MPI_Grequest_start", &[0, 0, 0, 0, at(request)], 0, || {});
        }
        set(&mut w, earlier);
        let args = [2, at(&requests), statuses];
        w.encoder.before(&mut w.host, &mut w.requests, f, &args, &mut w.before);
        let before = std::mem::take(&mut w.before);
        set(&mut w, within);
        requests.iter().for_each(|r| r.set(null));
        w.before = before;
        w.encode(f, &args, result);
        let shown = show(&w.read());
        shown.strip_prefix("2 [request#0,request#1] ").map(String::from).unwrap_or(shown)
    };
    let (elements, cancelled) = ("MPI_Status_set_elements", "MPI_Status_set_cancelled");
    let written = at(&statuses);
    assert_eq!(wait(written, 0, &[], &[]), "[-,-]");
    assert_eq!(wait(written, 0, &[], &[elements, elements]), "[<- - 55 ->,<- - 55 ->]");
    assert_eq!(wait(written, 0, &[], &[]), "[-,-]");
    let both = [cancelled, "MPI_Status_set_elements_x"];
    assert_eq!(wait(written, 0, &[], &both), "[<- - 55 false>,<- - 55 false>]");
    assert_eq!(wait(written, 0, &[elements], &[]), "[-,-]");
    assert_eq!(wait(STATUS_IGNORE, 0, &[], &[elements]), "STATUSES_IGNORE");
    assert_eq!(wait(written, 0, &[], &[]), "[-,-]");
    let peer = ["MPI_Status_set_source", "MPI_Status_set_tag"];
    assert_eq!(wait(written, 0, &[], &peer), "[<77 66 - ->,<77 66 - ->]");
    assert_eq!(wait(written, 0, &[], &peer[..1]), "[-,-]");
    assert!(wait(written, 5, &[], &[elements]).ends_with(" = 5"));
    assert!(wait(written, 0, &[], &[]).ends_with("[-,-]"));
}

/// A status that the program hands in: what the call looks at.
#[test]
fn of_a_status_handed_in_what_the_call_looks_at_is_kept() {
    let mut w = world();
    let (flag, count, rank) = (0i32, 13i32, 7i32);
    let status = at(&RUBBISH);
    w.check("MPI_Test_cancelled", &[status, at(&flag)], "<- - - false> false");
    w.check("MPI_Get_count", &[status, handle("MPI_INT"), at(&count)], "<- - 55 -> INT 13");
    w.check("MPI_Status_get_source", &[status, at(&rank)], "- 7");
}

#[test]
fn requests_keep_their_ids_whatever_order_they_complete_in() {
    let mut w = world();
    let (world, int, null) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"), handle("MPI_REQUEST_NULL"));
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let requests = [Cell::new(0usize), Cell::new(0), Cell::new(0)];
        for (k, request) in requests.iter().enumerate() {
            request.set(500 + k);
            let shown = format!("BOTTOM 1 INT {k} 9 world request#{k}");
            w.check("MPI_Irecv", &[0, 1, int, k, 9, world, at(request)], &shown);
        }
        for done in order {
            let index = done as i32;
            let names: Vec<String> = requests
                .iter()
                .enumerate()
                .map(|(k, r)| if r.get() == null { "REQUEST_NULL".into() } else { format!("request#{k}") })
                .collect();
            let args = [3, start(&requests), at(&index), STATUS_IGNORE];
            let call = w.call("MPI_Waitany", &args, 0, || requests[done].set(null));
            assert_eq!(show(&call), format!("3 [{}] {index} STATUS_IGNORE", names.join(",")));
        }
    }
}

#[test]
fn one_handle_for_many_operations() {
    let mut w = world();
    let (world, int, null) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"), handle("MPI_REQUEST_NULL"));
    let requests = [Cell::new(77usize), Cell::new(77), Cell::new(77)];
    for (k, request) in requests.iter().enumerate() {
        w.check(
            "MPI_Isend",
            &[0, 1, int, k, 9, world, at(request)],
            &format!("BOTTOM 1 INT {k} 9 world request#{k}"),
        );
    }
    let call = w.call("MPI_Wait", &[at(&requests[1]), STATUS_IGNORE], 0, || requests[1].set(null));
    assert_eq!(show(&call), "request#1 STATUS_IGNORE");
    let call = w.call("MPI_Waitall", &[3, start(&requests), STATUS_IGNORE], 0, || {
        requests.iter().for_each(|r| r.set(null));
    });
    assert_eq!(show(&call), "3 [request#0,REQUEST_NULL,request#2] STATUSES_IGNORE");
}

/// The program ignores statuses, and MPI was given some of ours: what receives from anybody matched is kept, beside the
/// arguments as the program passed them. Of other requests nothing is.
#[test]
fn what_was_matched_is_kept_where_statuses_are_ignored() {
    let mut w = world();
    let (world, int, null) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"), handle("MPI_REQUEST_NULL"));
    let status = |source, tag| FakeStatus { source, tag, bytes: 55, error: 9, cancelled: 0 };
    let own = [status(4, 7), status(1, 8), FakeStatus { cancelled: 1, ..status(3, 6) }];
    let recv = [0, 3, int, ANY_SOURCE, ANY_TAG, world, STATUS_IGNORE];
    w.check("MPI_Recv", &recv, "BOTTOM 3 INT ANY_SOURCE ANY_TAG world STATUS_IGNORE");
    let without = w.record.symbol.clone();
    w.before.set_statuses(start(&own));
    let told = "BOTTOM 3 INT ANY_SOURCE ANY_TAG world STATUS_IGNORE {matched <4 7 - false>}";
    w.check("MPI_Recv", &recv, told);
    assert_ne!(without, w.record.symbol);
    // One that names the sender and the tag tells nothing new.
    w.check("MPI_Recv", &[0, 3, int, 1, 5, world, STATUS_IGNORE], "BOTTOM 3 INT 1 5 world STATUS_IGNORE");
    let requests = [Cell::new(70usize), Cell::new(71), Cell::new(72)];
    assert!(!w.encoder.has_wild());
    w.call("MPI_Isend", &[0, 1, int, 3, 9, world, at(&requests[0])], 0, || {});
    w.call("MPI_Irecv", &[0, 1, int, 3, 9, world, at(&requests[1])], 0, || {});
    assert!(!w.encoder.has_wild());
    let two = [2, start(&requests), STATUS_IGNORE];
    w.before.set_statuses(start(&own));
    let call = w.call("MPI_Waitall", &two, 0, || requests[..2].iter().for_each(|r| r.set(null)));
    assert_eq!(show(&call), "2 [request#0,request#1] STATUSES_IGNORE");
    let [a, b, c] = [0, 1, 2].map(|k| at(&requests[k]));
    requests.iter().zip(70..).for_each(|(request, handle)| request.set(handle));
    w.call("MPI_Isend", &[0, 1, int, 3, 9, world, a], 0, || {});
    w.call("MPI_Irecv", &[0, 1, int, ANY_SOURCE, 9, world, b], 0, || {});
    w.call("MPI_Irecv", &[0, 1, int, 3, ANY_TAG, world, c], 0, || {});
    assert!(w.encoder.has_wild());
    for split in [true, false] {
        w.split = split;
        let (flag, index) = (0i32, -32766i32);
        let poll = [3, start(&requests), at(&index), at(&flag), STATUS_IGNORE];
        let call = w.call("MPI_Testany", &poll, 0, || {});
        assert_eq!(show(&call), "3 [request#0,request#2,request#3] UNDEFINED false STATUS_IGNORE");
    }
    w.split = true;
    let call = w.call("MPI_Waitall", &[3, start(&requests), STATUS_IGNORE], 0, || {
        requests.iter().for_each(|r| r.set(null));
    });
    let told = "3 [request#0,request#2,request#3] STATUSES_IGNORE {matched [-,<1 8 - false>,<- - - true>]}";
    assert_eq!(show(&call), told);
}

#[test]
fn persistent_requests_live_until_freed() {
    let mut w = world();
    let (world, int, null) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"), handle("MPI_REQUEST_NULL"));
    let request = Cell::new(60usize);
    w.check("MPI_Send_init", &[0, 1, int, 3, 9, world, at(&request)], "BOTTOM 1 INT 3 9 world request#0");
    for _ in 0..2 {
        w.check("MPI_Start", &[at(&request)], "request#0");
        w.check("MPI_Wait", &[at(&request), STATUS_IGNORE], "request#0 STATUS_IGNORE");
    }
    let call = w.call("MPI_Request_free", &[at(&request)], 0, || request.set(null));
    assert_eq!(show(&call), "request#0");
}

#[test]
fn communicators_are_named_by_parent_and_order() {
    let mut w = world();
    let (world, null) = (handle("MPI_COMM_WORLD"), handle("MPI_COMM_NULL"));
    let all = w.host.comms[&(world as u64)].clone();
    w.host.comms.insert(900, all.clone());
    let row = CommInfo { rank: 1, size: 2, remote_size: None, world: vec![0, 2], remote_world: vec![] };
    w.host.comms.insert(901, row);
    let new = Cell::new(900usize);
    w.check("MPI_Comm_dup", &[world, at(&new)], "world world.0 {group 'as world'}");
    new.set(901);
    w.check("MPI_Comm_split", &[900, 0, 5, at(&new)], "world.0 0 5 world.0.0 {group [0,2]}");
    new.set(null);
    let undefined = UNDEFINED as u32 as usize;
    w.check("MPI_Comm_split", &[900, undefined, 5, at(&new)], "world.0 UNDEFINED 5 COMM_NULL");
    // Rank 2 of the world is rank 1 there.
    w.check("MPI_Send", &[0, 1, handle("MPI_INT"), 0, 3, 901], "BOTTOM 1 INT 0 3 world.0.0");
    assert_eq!(w.record.values[1], (1, -1));
    // A freed communicator's id comes back; its name does not.
    let symbol = w.record.symbol.clone();
    new.set(901);
    let call = w.call("MPI_Comm_free", &[at(&new)], 0, || new.set(null));
    assert_eq!(show(&call), "world.0.0");
    new.set(901);
    w.check("MPI_Comm_split", &[900, 0, 5, at(&new)], "world.0 0 5 world.0.2 {group [0,2]}");
    w.check("MPI_Send", &[0, 1, handle("MPI_INT"), 0, 3, 901], "BOTTOM 1 INT 0 3 world.0.2");
    assert_eq!(symbol, w.record.symbol);
}

#[test]
fn inter_communicators_and_their_roots() {
    let mut w = world();
    let (world, int) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"));
    let inter =
        CommInfo { rank: 1, size: 2, remote_size: Some(3), world: vec![0, 2], remote_world: vec![1, 3, 4] };
    w.host.comms.insert(700, inter);
    let new = 700usize;
    let call = w.call("MPI_Intercomm_create", &[world, 0, world, 1, 5, at(&new)], 0, || {});
    let shown = show(&call);
    assert!(shown.starts_with("world 0 - - 5 inter-"), "{shown}");
    assert!(shown.ends_with("{group [0,2]} {remote_group [1,3,4]}"), "{shown}");
    let (counts, displs) = ([1i32, 2, 3], [0i32, 1, 3]);
    let recv = [start(&counts), start(&displs)];
    let gatherv = |root| [0, 4, int, 0, recv[0], recv[1], int, root, new];
    let name = shown.split(' ').find(|word| word.starts_with("inter-")).unwrap().to_owned();
    w.check("MPI_Gatherv", &gatherv(ROOT), &format!("- - - BOTTOM [1,2,3] [0,1,3] INT ROOT {name}"));
    w.check("MPI_Gatherv", &gatherv(PROC_NULL), &format!("- - - - - - - PROC_NULL {name}"));
    w.check("MPI_Gatherv", &gatherv(2), &format!("BOTTOM 4 INT - - - - 2 {name}"));
}

#[test]
fn only_what_is_significant_is_looked_at() {
    let mut w = world();
    let (world, int) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"));
    let (counts, displs) = ([1i32, 2, 3, 4, 5], [0i32, 1, 3, 6, 10]);
    let rubbish = 0xbad0_0000_0001usize;
    w.check(
        "MPI_Gatherv",
        &[0, 4, int, rubbish, rubbish, rubbish, rubbish, 1, world],
        "BOTTOM 4 INT - - - - 1 world",
    );
    w.check(
        "MPI_Gatherv",
        &[IN_PLACE, rubbish, rubbish, 0, start(&counts), start(&displs), int, 2, world],
        "IN_PLACE - - BOTTOM [1,2,3,4,5] [0,1,3,6,10] INT 2 world",
    );
}

#[test]
fn calls_that_fail() {
    let mut w = world();
    let (world, int) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"));
    let new = 0xbad0usize;
    let call = w.call("MPI_Comm_dup", &[0x5555, at(&new)], 5, || {});
    assert_eq!(show(&call), "- - = 5");
    let call = w.call("MPI_Isend", &[0, 1, int, 99, 9, world, at(&new)], 6, || {});
    assert_eq!(show(&call), "BOTTOM 1 INT 99 9 world - = 6");
    let call = w.call("MPI_Recv", &[start(&[0u8; 4]), 1, int, 0, 9, world, STATUS_IGNORE], 15, || {});
    assert_eq!(show(&call), "@8 1 INT 0 9 world - = 15");
    // The length may be why it failed: an array is looked at only as far as there is memory.
    let (group, ranks) = (handle("MPI_GROUP_EMPTY"), [1i32]);
    let call = w.call("MPI_Group_incl", &[group, 1 << 30, start(&ranks), at(&new)], 8, || {});
    assert_eq!(show(&call), "GROUP_EMPTY 1073741824 - - = 8");
    let call = w.call("MPI_Group_incl", &[group, 1, start(&ranks), at(&new)], 8, || {});
    assert_eq!(show(&call), "GROUP_EMPTY 1 [1] - = 8");
    let null = handle("MPI_REQUEST_NULL");
    let requests = [Cell::new(31usize), Cell::new(32)];
    for (k, request) in requests.iter().enumerate() {
        w.check(
            "MPI_Irecv",
            &[0, 1, int, k, 9, world, at(request)],
            &format!("BOTTOM 1 INT {k} 9 world request#{k}"),
        );
    }
    let statuses = [
        FakeStatus { source: 0, tag: 9, bytes: 4, error: 0, cancelled: 0 },
        FakeStatus { source: 1, tag: 9, bytes: 8, error: 15, cancelled: 0 },
    ];
    let call = w.call("MPI_Waitall", &[2, start(&requests), start(&statuses)], 17, || {
        requests.iter().for_each(|r| r.set(null));
    });
    assert_eq!(show(&call), "2 [request#0,request#1] [<0 9 4 false 0>,<- - - - 15>] = 17");
}

#[test]
fn datatypes_say_what_they_are() {
    let mut w = world();
    let new = Cell::new(40usize);
    let int = handle("MPI_INT");
    w.check("MPI_Type_contiguous", &[6, int, at(&new)], "6 INT datatype#0 {size 24} {lb 0} {extent 32}");
    w.check("MPI_Type_commit", &[at(&new)], "datatype#0");
    let lengths = [1i32, 2];
    let displs = [0i64, 8];
    let types = [int, 40];
    let other = 41usize;
    w.check(
        "MPI_Type_create_struct",
        &[2, start(&lengths), start(&displs), start(&types), at(&other)],
        "2 [1,2] [0,8] [INT,datatype#0] datatype#1 {size 24} {lb 0} {extent 32}",
    );
    let call = w.call("MPI_Type_free", &[at(&new)], 0, || new.set(handle("MPI_DATATYPE_NULL")));
    assert_eq!(show(&call), "datatype#0");
}

#[test]
fn strings_numbers_both_ways_and_names() {
    let mut w = world();
    let (world, info) = (handle("MPI_COMM_WORLD"), 12usize);
    w.check("MPI_Info_create", &[at(&info)], "info#0");
    w.check(
        "MPI_Info_set",
        &[info, c"key".as_ptr() as usize, c"value".as_ptr() as usize],
        "info#0 'key' 'value'",
    );
    let dims = [Cell::new(0i32), Cell::new(0)];
    let call = w.call("MPI_Dims_create", &[6, 2, start(&dims)], 0, || {
        dims[0].set(3);
        dims[1].set(2);
    });
    assert_eq!(show(&call), "6 2 [0,0]->[3,2]");
    let level = handle("MPI_THREAD_FUNNELED") as u32;
    let argc = 2i32;
    let argv = [c"app".as_ptr(), c"-x".as_ptr(), std::ptr::null()];
    let pointer = start(&argv);
    let args = [at(&argc), at(&pointer), level as usize, at(&level)];
    w.check("MPI_Init_thread", &args, "2 ['app','-x'] THREAD_FUNNELED THREAD_FUNNELED");
    w.check("MPI_Init", &[0, 0], "NULL NULL");
    let ranks = [4i32, 0];
    let (group, new) = (handle("MPI_GROUP_EMPTY"), 71usize);
    w.check("MPI_Group_incl", &[group, 2, start(&ranks), at(&new)], "GROUP_EMPTY 2 [4,0] group#0");
    w.check("MPI_Op_create", &[0x1234, 1, at(&new)], "'app+0x10' true op#0");
    w.check("MPI_Barrier", &[world], "world");
    let file = 55usize;
    let mode = 1usize << 4 | 1 << 7;
    let name = c"out.dat".as_ptr() as usize;
    w.check(
        "MPI_File_open",
        &[world, name, mode, handle("MPI_INFO_NULL"), at(&file)],
        "world 'out.dat' MODE_CREATE|MODE_RDWR INFO_NULL file#0",
    );
}

#[test]
fn without_pointers_and_without_the_split() {
    let mut w = world();
    w.host.keep_pointers = false;
    w.split = false;
    let (world, int) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"));
    w.check("MPI_Send", &[0x9990, 3, int, 4, 7, world], "- 3 INT 4 7 world");
    assert!(w.record.values.is_empty() && w.record.lanes() == 0);
    let counts = [1i32, 2, 3, 4, 5];
    w.check(
        "MPI_Reduce_scatter",
        &[0x9990, 0x9990, start(&counts), int, handle("MPI_SUM"), world],
        "- - [1,2,3,4,5] INT SUM world",
    );
}

/// MPICH gives back the very handle the outer type was made from.
#[test]
fn an_inner_type_that_is_asked_for_and_freed_lives_on() {
    let mut w = world();
    let int = handle("MPI_INT");
    let null = handle("MPI_DATATYPE_NULL");
    let free = |w: &mut World, handle: usize, shown: &str| {
        let place = Cell::new(handle);
        let call = w.call("MPI_Type_free", &[at(&place)], 0, || place.set(null));
        assert_eq!(show(&call), shown);
    };
    let (first, inner, outer) = (70usize, 71usize, 72usize);
    w.check("MPI_Type_contiguous", &[1, int, at(&first)], "1 INT datatype#0 {size 24} {lb 0} {extent 32}");
    w.check("MPI_Type_contiguous", &[3, int, at(&inner)], "3 INT datatype#1 {size 24} {lb 0} {extent 32}");
    w.check(
        "MPI_Type_contiguous",
        &[2, inner, at(&outer)],
        "2 datatype#1 datatype#2 {size 24} {lb 0} {extent 32}",
    );
    free(&mut w, first, "datatype#0");
    let (integers, types) = ([2i32], [inner]);
    let args = [outer, 1, 0, 1, start(&integers), start(&integers), start(&types)];
    w.check("MPI_Type_get_contents", &args, "datatype#2 1 0 1 [2] [] [datatype#1]");
    free(&mut w, inner, "datatype#1");
    w.check("MPI_Type_commit", &[at(&inner)], "datatype#1");
    let other = 73usize;
    w.check(
        "MPI_Type_contiguous",
        &[5, inner, at(&other)],
        "5 datatype#1 datatype#0 {size 24} {lb 0} {extent 32}",
    );
}

/// It may have been made in a callback, which is not observed. After its end it must not be asked about.
#[test]
fn a_communicator_that_is_seen_for_the_first_time_when_it_is_freed() {
    let mut w = world();
    let null = handle("MPI_COMM_NULL");
    w.host.untouchable = Some(90);
    for _ in 0..2 {
        let comm = Cell::new(90usize);
        let call = w.call("MPI_Comm_free", &[at(&comm)], 0, || comm.set(null));
        assert_eq!(show(&call), "comm#0");
    }
}

/// Afterwards the memory is nobody's, or somebody else's.
#[test]
fn memory_that_a_call_frees_is_located_before_it() {
    let mut w = world();
    for _ in 0..2 {
        w.host.offset = Rc::new(Cell::new(8));
        let offset = w.host.offset.clone();
        let call = w.call("MPI_Free_mem", &[0x7000], 0, || offset.set(99));
        assert_eq!(show(&call), "@8");
    }
}

#[test]
fn buffers_lie_in_every_area() {
    for split in [true, false] {
        let mut w = world();
        w.split = split;
        for area in Area::ALL {
            w.host.area = area;
            w.host.device = if area == Area::Gpu { 3 } else { 0 };
            let call = w.call("MPI_Free_mem", &[0x7000], 0, || ());
            let segment = if area == Area::Number { 0 } else { 7 };
            let expected = Address { area, device: w.host.device, segment, offset: 8 };
            assert_eq!(call.args, [Value::Address(expected)]);
        }
    }
}

/// Ranks that share a node each use another GPU: their symbols are the same.
#[test]
fn the_device_is_a_value() {
    let mut w = world();
    w.host.area = Area::Gpu;
    let mut symbols = Vec::new();
    for device in [0, 1] {
        w.host.device = device;
        w.call("MPI_Free_mem", &[0x7000], 0, || ());
        symbols.push(w.record.symbol.clone());
    }
    assert_eq!(symbols[0], symbols[1]);
}

/// A trace of a few bytes can say that an array has any number of elements, all alike.
#[test]
fn arrays_without_end_are_refused() {
    let mut w = world();
    let requests = [handle("MPI_REQUEST_NULL"); 2];
    w.check(
        "MPI_Waitall",
        &[2, start(&requests), STATUS_IGNORE],
        "2 [REQUEST_NULL,REQUEST_NULL] STATUSES_IGNORE",
    );
    let layout = refrain_encode::Layout::parse(&w.record.symbol).unwrap();
    let code = w.record.values[1].1;
    let mut read = |count: i64| {
        let mut asked = 0u64;
        let call = w.decoder.call(&layout, &mut |lane| {
            asked += 1;
            if lane == 0 { count } else { code }
        });
        (call.is_ok(), asked)
    };
    assert_eq!(read(3), (true, 4));
    // Refused before any element is asked for.
    assert_eq!(read((1 << 24) + 1), (false, 1));
    assert_eq!(read(i64::MAX), (false, 1));
}

/// What MPI only hands back is no buffer: null is not `MPI_BOTTOM` there, nor is one `MPI_IN_PLACE`.
#[test]
fn values_of_the_program_have_no_names() {
    let mut w = world();
    w.host.area = Area::Number;
    let (world, key) = (handle("MPI_COMM_WORLD"), 5);
    w.check("MPI_Comm_set_attr", &[world, key, 0], "world keyval#0 NULL");
    w.host.offset.set(1);
    w.check("MPI_Comm_set_attr", &[world, key, IN_PLACE], "world keyval#0 @1");
    let (none, one, flag) = (0usize, IN_PLACE, 1i32);
    w.check("MPI_Comm_get_attr", &[world, key, at(&none), at(&flag)], "world keyval#0 NULL true");
    w.check("MPI_Comm_get_attr", &[world, key, at(&one), at(&flag)], "world keyval#0 @1 true");
    w.check("MPI_Free_mem", &[0], "NULL");
}
