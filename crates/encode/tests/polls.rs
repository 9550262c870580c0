//! Runs of failed polls, folded into counts and read back one by one.

use crate::common;

use std::cell::Cell;

use common::*;
use refrain_encode::{Calls, Layout, Reader, Tape, calls_of};
use refrain_fold::bundle::{Bundle, blend};

fn at<T>(value: &T) -> usize {
    std::ptr::from_ref(value) as usize
}

/// A recording, and what it should read back as.
struct Taped {
    world: World,
    tape: Tape,
    said: Vec<String>,
}

impl Taped {
    fn new() -> Taped {
        Taped { world: world(), tape: Tape::default(), said: Vec::new() }
    }

    fn call(&mut self, name: &str, args: &[usize]) {
        let call = self.world.call(name, args, 0, || {});
        self.said.push(format!("{name} {}", show(&call)));
        self.tape.push(&self.world.record, 7);
    }

    fn probe(&mut self, tag: usize, found: bool) {
        let status = FakeStatus { source: 1, tag: 5, bytes: 8, error: 0, cancelled: 0 };
        let flag = i32::from(found);
        self.call("MPI_Iprobe", &[ANY_SOURCE, tag, handle("MPI_COMM_WORLD"), at(&flag), at(&status)]);
    }

    /// Everything reads back as it was, and so does its digest.
    fn check(mut self) -> Bundle {
        let bundle = Tape::bundle((2, 3), [(0, &mut self.tape)], |ticks| ticks).unwrap();
        let mut calls = Calls::new(&bundle, 2, 0).unwrap();
        let read: Vec<String> = (&mut calls)
            .map(|call| call.map(|c| format!("{} {}", c.function.name, show(&c))).unwrap())
            .collect();
        assert_eq!(read, self.said);
        assert_eq!(blend(2, calls.digest()), bundle.cohorts[0].digest);
        assert_eq!(calls_of(&bundle, &bundle.cohorts[0], 2), self.said.len() as u64);
        drop(calls);
        let reader = Reader::new(&bundle);
        for n in [0, 1, 2, 3, read.len() / 2, read.len() / 2 + 1, read.len() - 1, read.len(), read.len() + 3]
        {
            let from = reader.calls_from(2, 0, n as u64).unwrap();
            let from: Vec<String> =
                from.map(|call| call.map(|c| format!("{} {}", c.function.name, show(&c))).unwrap()).collect();
            assert_eq!(from, read[n.min(read.len())..], "from {n}");
        }
        let ticks: u64 = bundle.symbols.iter().map(|s| s.tally.total).sum();
        assert_eq!(ticks, 7 * self.said.len() as u64);
        bundle
    }
}

#[test]
fn how_often_a_poll_fails_leaves_no_mark_in_the_structure() {
    let steps = |fails: &dyn Fn(usize) -> usize| {
        let mut taped = Taped::new();
        for step in 0..20 {
            (0..fails(step)).for_each(|_| taped.probe(5, false));
            taped.probe(5, true);
            taped.call("MPI_Barrier", &[handle("MPI_COMM_WORLD")]);
        }
        taped.check()
    };
    let never = steps(&|_| 0);
    for bundle in
        [steps(&|step| step * step % 7), steps(&|_| 3), steps(&|step| usize::from(step == 9) * 1000)]
    {
        assert_eq!(bundle.structures, never.structures);
        // Only the last lane of the poll tells.
        let polls = Layout::parse(&bundle.symbols[0].bytes).unwrap().polls.unwrap();
        for lane in 0..usize::from(polls) {
            let stream = |b: &Bundle| b.stream_of(&b.cohorts[0].lanes[lane], 2).unwrap().into_owned();
            assert_eq!(stream(&bundle), stream(&never), "{lane}");
        }
    }
}

#[test]
fn polls_that_nothing_follows_are_events() {
    for (fails, events) in [(1, 1), (9, 1)] {
        let mut taped = Taped::new();
        (0..fails).for_each(|_| taped.probe(5, false));
        taped.call("MPI_Barrier", &[handle("MPI_COMM_WORLD")]);
        (0..fails).for_each(|_| taped.probe(5, false));
        (0..fails).for_each(|_| taped.probe(6, false));
        taped.probe(6, true);
        (0..fails).for_each(|_| taped.probe(5, false));
        let bundle = taped.check();
        assert_eq!(bundle.structures[0].rules().unwrap().len(), 4 + events);
    }
}

#[test]
fn every_kind_of_poll() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut below = |limit: u64| random.u64(..limit);
    for _ in 0..30 {
        let mut taped = Taped::new();
        let (int, comm) = (handle("MPI_INT"), handle("MPI_COMM_WORLD"));
        let requests = [Cell::new(501usize), Cell::new(502), Cell::new(503)];
        for request in &requests {
            taped.call("MPI_Irecv", &[0, 1, int, 1, 9, comm, at(request)]);
        }
        let statuses =
            [0, 1, 2].map(|source| FakeStatus { source, tag: 9, bytes: 4, error: 0, cancelled: 0 });
        for _ in 0..60 {
            let kind = below(7);
            for _ in 0..below(4) {
                let found = below(3) == 0;
                let (flag, index) = (i32::from(found), if found { 1i32 } else { -32766 });
                let count = if found { 2i32 } else { 0 };
                let indices = [0i32, 2, 0];
                let list = at(&requests);
                match kind {
                    0 => taped.call("MPI_Test", &[at(&requests[0]), at(&flag), at(&statuses)]),
                    1 => taped.call("MPI_Testall", &[3, list, at(&flag), at(&statuses)]),
                    2 => taped.call("MPI_Testany", &[3, list, at(&index), at(&flag), at(&statuses)]),
                    3 => taped.call("MPI_Testsome", &[3, list, at(&count), at(&indices), at(&statuses)]),
                    4 => taped.call("MPI_Test", &[at(&requests[1]), at(&flag), STATUS_IGNORE]),
                    5 => taped.probe(below(2) as usize, found),
                    _ => taped.call("MPI_Barrier", &[comm]),
                }
            }
        }
        taped.check();
    }
}
