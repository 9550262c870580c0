//! What `--lossy` makes of a recording, and that it still reads back as what was kept.

mod common;

use std::cell::Cell;

use common::*;
use refrain_encode::{Averages, Calls, Tags, Tape, lose};
use refrain_fold::bundle::{Bundle, blend};
use refrain_model::{Call, Lossy, Value, function};

fn at<T: ?Sized>(value: &T) -> usize {
    std::ptr::from_ref(value).cast::<u8>() as usize
}

fn words(text: &str) -> Lossy {
    Lossy::read(Some(text)).unwrap()
}

/// One rank's recording under way.
struct Taped {
    rank: u32,
    world: World,
    tape: Tape,
    averages: Option<Averages>,
}

impl Taped {
    fn new(rank: u32) -> Taped {
        Taped { rank, world: world_of(rank as i32), tape: Tape::default(), averages: None }
    }

    fn call(&mut self, name: &str, args: &[usize]) {
        self.world.call(name, args, 0, || {});
        if let Some(averages) = &mut self.averages {
            averages.apply(function(name).unwrap(), &mut self.world.record);
        }
        self.tape.push(&self.world.record, 1);
    }

    fn send(&mut self, count: usize, dest: usize, tag: usize) {
        self.call("MPI_Send", &[0, count, handle("MPI_INT"), dest, tag, handle("MPI_COMM_WORLD")]);
    }

    fn recv(&mut self, source: usize, tag: usize) {
        let comm = handle("MPI_COMM_WORLD");
        self.call("MPI_Recv", &[0, 1, handle("MPI_INT"), source, tag, comm, STATUS_IGNORE]);
    }

    fn bundle(mut self) -> Bundle {
        Tape::bundle(self.rank, [(0, &mut self.tape)], |ticks| ticks).unwrap()
    }
}

/// Its calls, whose digest is the one it has.
fn read(bundle: &Bundle, rank: u32) -> Vec<Call> {
    bundle.validate().unwrap();
    let mut calls = Calls::new(bundle, rank, 0).unwrap();
    let read = (&mut calls).collect::<Result<Vec<Call>, _>>().unwrap();
    assert_eq!(blend(rank, calls.digest()), bundle.cohorts[0].digest);
    read
}

fn shown(bundle: &Bundle, rank: u32) -> Vec<String> {
    read(bundle, rank).iter().map(|call| format!("{} {}", call.function.name, show(call))).collect()
}

/// A parameter of all calls that have it.
fn all(calls: &[Call], name: &str) -> Vec<i64> {
    let of = |call: &Call| {
        let at = call.function.params.iter().position(|p| p.name == name)?;
        match call.args[at] {
            Value::Int(number) => Some(number),
            _ => None,
        }
    };
    calls.iter().filter_map(of).collect()
}

fn drawn(k: usize) -> usize {
    (k * 2_654_435_761 % 4_294_967_296) >> 8
}

#[test]
fn histograms_keep_how_often_each_number_came() {
    let mut taped = Taped::new(2);
    let comm = handle("MPI_COMM_WORLD");
    let requests = [const { Cell::new(0usize) }; 4];
    for k in 0..300 {
        taped.send(drawn(k) % 7, drawn(k + 999) % 5, drawn(k) % 9);
        // How many requests there are decides how a call reads on.
        taped.call("MPI_Waitall", &[drawn(k) % 4, at(&requests), STATUS_IGNORE]);
        taped.call("MPI_Barrier", &[comm]);
    }
    let whole = taped.bundle();
    let mut lost = whole.clone();
    lose(&mut lost, 2, &words("histograms=8"), None).unwrap();
    let (before, after) = (read(&whole, 2), read(&lost, 2));
    let names = |calls: &[Call]| calls.iter().map(|call| call.function.name).collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after));
    let sends =
        |calls: &[Call]| calls.iter().filter(|c| c.function.name == "MPI_Send").cloned().collect::<Vec<_>>();
    for name in ["count", "dest"] {
        let (mut was, is) = (all(&sends(&before), name), all(&sends(&after), name));
        assert_ne!(was, is, "{name}");
        was.sort_unstable();
        assert_eq!(was, is, "{name}");
    }
    let others = |calls: &[Call]| {
        let waits: Vec<Call> = calls.iter().filter(|c| c.function.name == "MPI_Waitall").cloned().collect();
        (all(calls, "tag"), all(&waits, "count"))
    };
    assert_eq!(others(&before), others(&after));
    // What can be told in so many numbers stays.
    let mut same = whole.clone();
    lose(&mut same, 2, &words("histograms=1000"), None).unwrap();
    assert_eq!(same, whole);
    let mut binned = whole.clone();
    lose(&mut binned, 2, &words("histograms=3"), None).unwrap();
    for name in ["count", "dest"] {
        let mut few = all(&sends(&read(&binned, 2)), name);
        assert_eq!(few.len(), 300);
        few.dedup();
        assert!(few.len() <= 3, "{name}: {few:?}");
    }
}

#[test]
fn averages_of_alltoallv() {
    let mut taped = Taped::new(2);
    taped.averages = Some(Averages::default());
    let (int, comm) = (handle("MPI_INT"), handle("MPI_COMM_WORLD"));
    let (sent, at_sent) = ([1i32, 9, 2, 3, 0], [0i32, 1, 10, 12, 15]);
    let (received, at_received) = ([4i32, 4, 4, 4, 5], [0i32, 10, 20, 30, 40]);
    let args = [0, at(&sent), at(&at_sent), int, 0, at(&received), at(&at_received), int, comm];
    taped.call("MPI_Alltoallv", &args);
    taped.call("MPI_Alltoallv", &[IN_PLACE, 0, 0, 0, 0, at(&received), at(&at_received), int, comm]);
    let request = Cell::new(77usize);
    taped.call("MPI_Ialltoallv", &[&args[..], &[at(&request)]].concat());
    taped.call("MPI_Allgatherv", &[0, 1, int, 0, at(&received), at(&at_received), int, comm]);
    let averages = taped.averages.take().unwrap();
    let met: Vec<String> = averages
        .extremes(2)
        .map(|(of, parameter, met)| format!("{of} {parameter} {:?} {:?}", met.least, met.most))
        .collect();
    assert_eq!(
        met,
        [
            "MPI_Alltoallv recvcounts (4, 0, 2) (5, 4, 2)",
            "MPI_Alltoallv sendcounts (0, 4, 2) (9, 1, 2)",
            "MPI_Ialltoallv recvcounts (4, 0, 2) (5, 4, 2)",
            "MPI_Ialltoallv sendcounts (0, 4, 2) (9, 1, 2)",
        ]
    );
    let calls = shown(&taped.bundle(), 2);
    let mean = "[3,3,3,3,3] [0,3,6,9,12] INT BOTTOM [4,4,4,4,4] [0,4,8,12,16] INT world";
    assert_eq!(calls[0], format!("MPI_Alltoallv BOTTOM {mean}"));
    assert_eq!(calls[1], "MPI_Alltoallv IN_PLACE - - - BOTTOM [4,4,4,4,4] [0,4,8,12,16] INT world");
    assert_eq!(calls[2], format!("MPI_Ialltoallv BOTTOM {mean} request#0"));
    assert!(calls[3].contains("[4,4,4,4,5] [0,10,20,30,40]"), "{}", calls[3]);
}

/// What ranks 0 and 1 do; whether their tags turn out to matter, and are 0 otherwise.
fn tags(zero: impl Fn(&mut Taped), one: impl Fn(&mut Taped), matter: bool) {
    let bundles: Vec<Bundle> = (0..2u32)
        .map(|rank| {
            let mut taped = Taped::new(rank);
            if rank == 0 {
                zero(&mut taped)
            } else {
                one(&mut taped)
            }
            taped.bundle()
        })
        .collect();
    let mut all_tags = Tags::default();
    for (rank, bundle) in (0..).zip(&bundles) {
        let own = Tags::of(bundle, rank).unwrap();
        assert_eq!(Tags::from_text(&own.to_text()), own);
        all_tags.absorb(own);
    }
    assert_eq!(all_tags.matter("world"), matter);
    for (rank, mut bundle) in (0..).zip(bundles) {
        let before = read(&bundle, rank);
        lose(&mut bundle, rank, &words("tags"), Some(&all_tags)).unwrap();
        let after = read(&bundle, rank);
        for name in ["tag", "sendtag", "recvtag"] {
            let (was, is) = (all(&before, name), all(&after, name));
            assert_eq!(is, if matter { was } else { vec![0; was.len()] }, "{name}");
        }
    }
}

#[test]
fn tags_in_the_order_of_messages_do_not_matter() {
    let in_order = |taped: &mut Taped| (1..9).for_each(|tag| taped.recv(0, tag));
    let sends = |taped: &mut Taped| (1..9).for_each(|tag| taped.send(1, 1, tag));
    tags(sends, in_order, false);
    // What comes from others is another matter.
    let both = |taped: &mut Taped| (1..9).for_each(|tag| (taped.send(1, 0, 20 - tag), taped.recv(0, tag)).0);
    let back = |taped: &mut Taped| (1..9).for_each(|tag| (taped.send(1, 1, tag), taped.recv(1, 20 - tag)).0);
    tags(back, both, false);
}

#[test]
fn tags_that_choose_among_messages_stay() {
    let sends = |taped: &mut Taped| (1..9).for_each(|tag| taped.send(1, 1, tag));
    let turned = |taped: &mut Taped| (1..9).rev().for_each(|tag| taped.recv(0, tag));
    tags(sends, turned, true);
    let posted = |order: [usize; 2]| {
        move |taped: &mut Taped| {
            let requests = [const { Cell::new(0usize) }; 2];
            for (k, tag) in order.into_iter().enumerate() {
                requests[k].set(40 + k);
                let (int, comm) = (handle("MPI_INT"), handle("MPI_COMM_WORLD"));
                taped.call("MPI_Irecv", &[0, 1, int, 0, tag, comm, at(&requests[k])]);
            }
        }
    };
    let two = |taped: &mut Taped| [3, 5].into_iter().for_each(|tag| taped.send(1, 1, tag));
    tags(two, posted([3, 5]), false);
    tags(two, posted([5, 3]), true);
    // A message that nobody took, and one that nobody sent.
    tags(sends, |taped| (1..8).for_each(|tag| taped.recv(0, tag)), true);
    tags(|_| {}, |taped| (1..3).for_each(|tag| taped.recv(0, tag)), true);
    // The order of what comes from anybody is not that of one sender.
    tags(two, |taped| [3, 5].into_iter().for_each(|tag| taped.recv(ANY_SOURCE, tag)), true);
    tags(two, |taped| [3, ANY_TAG].into_iter().for_each(|tag| taped.recv(0, tag)), true);
    // But one tag is none.
    let one = |taped: &mut Taped| [3, 3].into_iter().for_each(|tag| taped.send(1, 1, tag));
    tags(one, |taped| [3, 3].into_iter().for_each(|tag| taped.recv(ANY_SOURCE, tag)), false);
}

#[test]
fn unknown_tags_stay() {
    assert!(Tags::unknown().matter("world") && Tags::from_text("").matter("world"));
    assert!(Tags::from_text("known\nwrong\n").matter("world"));
    let mut tags = Tags::from_text("known\n0 0 many world\n");
    assert!(!tags.matter("world") && tags.matter("world.0"));
    tags.absorb(Tags::unknown());
    assert!(tags.matter("world"));
}

/// Requests and what calls found done of them.
struct Wait {
    taped: Taped,
    requests: [Cell<usize>; 4],
}

impl Wait {
    fn new(joins: bool) -> Wait {
        let mut taped = Taped::new(2);
        taped.tape.join_waits(joins);
        let mut wait = Wait { taped, requests: [const { Cell::new(0) }; 4] };
        wait.post();
        wait
    }

    fn post(&mut self) {
        for (k, request) in self.requests.iter().enumerate() {
            request.set(500 + k);
            let args = [0, 1, handle("MPI_INT"), k, 9, handle("MPI_COMM_WORLD"), at(request)];
            self.taped.call("MPI_Irecv", &args);
        }
    }

    fn some(&mut self, name: &str, done: &[i32]) {
        let count = if done.first() == Some(&UNDEFINED) { UNDEFINED } else { done.len() as i32 };
        let status = |&k: &i32| FakeStatus { source: k, tag: 9, bytes: 4, error: 0, cancelled: 0 };
        let mut indices = [0; 4];
        indices[..done.len()].copy_from_slice(done);
        let statuses = indices.each_ref().map(status);
        let null = handle("MPI_REQUEST_NULL");
        let args = [4, at(&self.requests), at(&count), at(&indices), at(&statuses)];
        let requests = &self.requests;
        self.taped.world.call(name, &args, 0, || {
            done.iter().filter(|k| **k >= 0).for_each(|&k| requests[k as usize].set(null));
        });
        self.taped.tape.push(&self.taped.world.record, 1);
    }

    fn barrier(&mut self) {
        self.taped.call("MPI_Barrier", &[handle("MPI_COMM_WORLD")]);
    }

    /// The calls after the first four.
    fn waits(self) -> Vec<String> {
        shown(&self.taped.bundle(), 2).split_off(4)
    }
}

#[test]
fn waits_for_the_same_requests_are_one() {
    let whole = {
        let mut wait = Wait::new(false);
        wait.some("MPI_Waitsome", &[0, 1, 2, 3]);
        wait.barrier();
        wait.waits()
    };
    assert!(whole[0].contains("4 [0,1,2,3] [<0 9 4"), "{whole:?}");
    for parts in [&[&[3, 1][..], &[0, 2]][..], &[&[2], &[1], &[3], &[0]], &[&[0, 1, 2, 3]]] {
        let mut wait = Wait::new(true);
        parts.iter().for_each(|done| wait.some("MPI_Waitsome", done));
        wait.barrier();
        assert_eq!(wait.waits(), whole);
    }
    // Only where it was asked for.
    let mut wait = Wait::new(false);
    wait.some("MPI_Waitsome", &[0, 1]);
    wait.some("MPI_Waitsome", &[2, 3]);
    assert_eq!(wait.waits().len(), 2);
}

#[test]
fn polls_before_joined_tests_are_counted_together() {
    let mut wait = Wait::new(true);
    for done in [&[][..], &[], &[2], &[], &[0, 3], &[], &[1]] {
        wait.some("MPI_Testsome", done);
    }
    let calls = wait.waits();
    // Four that found nothing, and one that found all.
    assert_eq!(calls.len(), 5, "{calls:?}");
    assert!(calls[..4].iter().all(|call| call.ends_with(" 0 [] []")), "{calls:?}");
    assert!(calls[4].contains(" 4 [0,1,2,3] "), "{calls:?}");
}

#[test]
fn other_requests_and_other_calls_are_apart() {
    let mut wait = Wait::new(true);
    wait.some("MPI_Waitsome", &[0]);
    wait.barrier();
    wait.some("MPI_Waitsome", &[1, 2]);
    wait.some("MPI_Waitsome", &[3]);
    // Nothing is left: that is no completion.
    wait.some("MPI_Waitsome", &[UNDEFINED]);
    wait.post();
    wait.some("MPI_Waitsome", &[0, 1, 2, 3]);
    let calls = wait.waits();
    let counts: Vec<&str> = calls.iter().map(|call| call.split(' ').next().unwrap()).collect();
    let expected =
        ["Waitsome", "Barrier", "Waitsome", "Waitsome", "Irecv", "Irecv", "Irecv", "Irecv", "Waitsome"];
    assert_eq!(counts, expected.map(|name| format!("MPI_{name}")));
    assert!(calls[2].contains(" 3 [1,2,3] "), "{}", calls[2]);
}

#[test]
fn a_snapshot_has_the_call_that_was_held() {
    let mut wait = Wait::new(true);
    wait.some("MPI_Waitsome", &[0]);
    let snapshot = wait.taped.tape.snapshot().unwrap();
    wait.some("MPI_Waitsome", &[1, 2, 3]);
    let mut calls = Calls::new(&snapshot, 0, 0).unwrap();
    assert_eq!((&mut calls).count(), 5);
    assert_eq!(wait.waits().len(), 2);
}
