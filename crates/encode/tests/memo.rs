//! What the memo recalls is what encoding would have given: two encoders see the same calls, one of them with a memo.

use crate::common;

use std::cell::{Cell, RefCell};

use common::generated::*;
use common::*;
use refrain_encode::{Journal, Memo, Tape, replay};
use refrain_model::{Class, Dir, Kind, function};

/// Two processes that see the same calls; the first may recall them.
struct Pair {
    recalling: World,
    encoding: World,
    memo: Memo,
    tape: Tape,
    journal: Journal,
    written: Vec<u8>,
    /// Of the one that encodes.
    plain: Tape,
    /// With the sites of their calls.
    symbols: Vec<(Vec<u8>, u64)>,
    site: u64,
    recalled: u32,
}

impl Pair {
    fn new() -> Pair {
        Pair::with(false)
    }

    fn with(narrow: bool) -> Pair {
        Pair {
            recalling: world_with(2, narrow),
            encoding: world_with(2, narrow),
            memo: Memo::default(),
            tape: Tape::default(),
            journal: Journal::default(),
            written: Vec::new(),
            plain: Tape::default(),
            symbols: Vec::new(),
            site: 0,
            recalled: 0,
        }
    }

    /// MPI is given these where the program ignores them.
    fn statuses(&mut self, place: usize) {
        self.recalling.before.set_statuses(place);
        self.encoding.before.set_statuses(place);
    }

    fn call(&mut self, name: &str, args: &[usize], mpi: impl FnOnce()) {
        let f = function(name).unwrap();
        let (w, e) = (&mut self.recalling, &mut self.encoding);
        for of in [&mut *w, &mut *e] {
            of.encoder.before(&mut of.host, &mut of.requests, f, args, &mut of.before);
        }
        mpi();
        e.encode(f, args, 0);
        e.record.site = self.site;
        self.plain.push(&e.record, 1);
        let mut room = [0; 1 << 14];
        let (symbol, values) = match w.recall(&mut self.memo, self.site, f, args) {
            Some((symbol, values)) => {
                self.recalled += 1;
                self.tape.push_known(symbol, values, 1);
                let bytes = self.journal.write(&mut room, &self.tape, symbol, values, 1).unwrap();
                self.written.extend_from_slice(&room[..bytes]);
                (self.symbols[symbol as usize].clone(), values.numbers.to_vec())
            }
            None => {
                w.encode(f, args, 0);
                w.record.site = self.site;
                let symbol = self.tape.push(&w.record, 1);
                let bytes = self.journal.write(&mut room, &self.tape, symbol, &w.record.values, 1).unwrap();
                self.written.extend_from_slice(&room[..bytes]);
                if symbol as usize == self.symbols.len() {
                    self.symbols.push((w.record.symbol.clone(), self.site));
                }
                self.memo.remember(&w.encoder, &mut w.host, &w.requests, f, args, &w.record, symbol);
                ((w.record.symbol.clone(), self.site), w.record.values.clone())
            }
        };
        assert_eq!(symbol, (e.record.symbol.clone(), self.site), "{name} {args:x?}");
        assert_eq!(values, e.record.values, "{name} {args:x?}");
    }

    /// What was recalled is folded as what was encoded, and written to the journal as it was.
    fn check(mut self) {
        let bundle = |tape: &mut Tape| Tape::bundle((2, 3), [(0, tape)], |ticks| ticks).unwrap();
        let plain = bundle(&mut self.plain);
        assert_eq!(bundle(&mut self.tape), plain);
        if self.symbols.iter().all(|(_, site)| *site == 0) {
            let mut read = Tape::default();
            replay(&self.written, &mut read).unwrap();
            assert_eq!(bundle(&mut read), plain);
        }
    }
}

fn at<T>(value: &T) -> usize {
    std::ptr::from_ref(value) as usize
}

/// A new kind of request takes the ids that its variable had last, also if that call was recalled.
#[test]
fn ids_follow_the_variable_of_a_recalled_call() {
    let mut p = Pair::new();
    let (world, int, null) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"), handle("MPI_REQUEST_NULL"));
    let request = Cell::new(0usize);
    let receive = |p: &mut Pair, count: usize, handle: usize| {
        p.call("MPI_Irecv", &[0, count, int, 1, 9, world, at(&request)], || request.set(handle));
    };
    let wait = |p: &mut Pair, handle: usize| {
        request.set(handle);
        p.call("MPI_Wait", &[at(&request), STATUS_IGNORE], || request.set(null));
    };
    // The second begins before the first is complete, so it has ids of its own.
    receive(&mut p, 1, 500);
    receive(&mut p, 2, 501);
    wait(&mut p, 500);
    wait(&mut p, 501);
    receive(&mut p, 1, 500);
    wait(&mut p, 500);
    assert!(p.recalled > 0);
    receive(&mut p, 3, 502);
    wait(&mut p, 502);
    p.check();
}

#[test]
fn what_is_recalled_is_what_encoding_gives() {
    let mut p = Pair::new();
    let (world, int, null) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"), handle("MPI_REQUEST_NULL"));
    let rank = Cell::new(2i32);
    let flag = Cell::new(0i32);
    let status = Cell::new(FakeStatus { source: 1, tag: 7, bytes: 4, error: 0, cancelled: 0 });
    let requests = [Cell::new(0usize), Cell::new(0), Cell::new(0)];
    let mut random = fastrand::Rng::with_seed(12345);
    let mut below = |n: u64| random.u64(..n);
    let datatype = Cell::new(70usize);
    for step in 0..2000usize {
        // The upper half of an int argument is rubbish, another each time.
        let dirt = step << 32;
        p.call("MPI_Comm_rank", &[world, at(&rank)], || {});
        p.call("MPI_Wtime", &[], || {});
        p.call("MPI_Send", &[0, 3 | dirt, int, 4 | dirt, 7, world], || {});
        flag.set(i32::from(below(3) == 0));
        p.call("MPI_Iprobe", &[ANY_SOURCE, 7, world, at(&flag), at(&status)], || {
            status.set(FakeStatus { source: below(5) as i32, ..status.get() });
        });
        p.call("MPI_Recv", &[0, 3, int, ANY_SOURCE, ANY_TAG, world, at(&status)], || {
            let source = if below(10) == 0 { PROC_NULL as i32 } else { below(5) as i32 };
            status.set(FakeStatus { source, bytes: below(100) as i64, ..status.get() });
        });
        for (k, request) in requests.iter().enumerate() {
            let handle = if below(4) == 0 { 600 } else { 500 + k };
            p.call("MPI_Irecv", &[0, 1, int, k, 9, world, at(request)], || request.set(handle));
        }
        // Statuses of ours, of receives from anybody and others.
        let own = [0, 1, 2].map(|k| FakeStatus {
            source: below(5) as i32,
            tag: k,
            bytes: 3,
            error: 0,
            cancelled: 0,
        });
        p.statuses(at(&own));
        p.call("MPI_Recv", &[0, 3, int, ANY_SOURCE, 7, world, STATUS_IGNORE], || {});
        let wild = [Cell::new(0usize), Cell::new(0), Cell::new(0)];
        for (k, request) in wild.iter().enumerate() {
            let source = if below(3) == 0 { ANY_SOURCE } else { k };
            p.call("MPI_Irecv", &[0, 1, int, source, 9, world, at(request)], || request.set(700 + k));
        }
        p.call("MPI_Waitall", &[3, at(&wild), STATUS_IGNORE], || wild.iter().for_each(|r| r.set(null)));
        p.statuses(0);
        let order = below(3) as usize;
        for k in 0..3 {
            let index = ((k + order) % 3) as i32;
            p.call("MPI_Waitany", &[3, at(&requests), at(&index), STATUS_IGNORE], || {
                requests[index as usize].set(null);
            });
        }
        if below(50) == 0 {
            // Objects come and go: what was remembered may mean something else now.
            p.call("MPI_Type_contiguous", &[2, int, at(&datatype)], || {});
            p.call("MPI_Send", &[0, 1, 70, 3, 7, world], || {});
            p.call("MPI_Type_free", &[at(&datatype)], || datatype.set(handle("MPI_DATATYPE_NULL")));
            datatype.set(70);
        }
        if below(50) == 0 {
            p.recalling.host.places += 1;
        }
        rank.set(if below(100) == 0 { 3 } else { 2 });
    }
    assert!(p.recalled > 10000, "{}", p.recalled);
    p.check();
}

/// Some libraries give one handle to many operations: which of them a call completes goes by the program's variables.
#[test]
fn of_operations_with_one_handle_those_that_are_meant_count() {
    let mut p = Pair::new();
    let (world, int, null) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"), handle("MPI_REQUEST_NULL"));
    let (other, requests) = (Cell::new(0usize), [Cell::new(0usize), Cell::new(0)]);
    let own = [1, 2].map(|source| FakeStatus { source, tag: 9, bytes: 4, error: 0, cancelled: 0 });
    for step in 0..40 {
        // From anybody or not: in all combinations.
        for (k, request) in [&other, &requests[0], &requests[1]].into_iter().enumerate() {
            let source = if step >> k & 1 == 0 { 1 } else { ANY_SOURCE };
            p.call("MPI_Irecv", &[0, 1, int, source, 9, world, at(request)], || request.set(700));
        }
        p.statuses(at(&own));
        p.call("MPI_Waitall", &[2, at(&requests), STATUS_IGNORE], || {
            requests.iter().for_each(|request| request.set(null));
        });
        p.call("MPI_Wait", &[at(&other), STATUS_IGNORE], || other.set(null));
        p.statuses(0);
    }
    assert!(p.recalled > 100, "{}", p.recalled);
    p.check();
}

/// Every call that completes requests, with whatever may happen in it: nothing, some, all; requests that were null
/// already, that are persistent, that share a handle, that nobody saw being made; statuses that are kept or not.
#[test]
fn completions_are_what_encoding_gives() {
    const MANY: usize = 4;
    let mut p = Pair::new();
    let (world, int, null) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"), handle("MPI_REQUEST_NULL"));
    let requests: [Cell<usize>; MANY] = [const { Cell::new(0) }; MANY];
    let persistent: [Cell<bool>; MANY] = [const { Cell::new(false) }; MANY];
    let status = FakeStatus { source: 1, tag: 7, bytes: 4, error: 0, cancelled: 0 };
    let statuses: [Cell<FakeStatus>; MANY] = std::array::from_fn(|_| Cell::new(status));
    let indices: [Cell<i32>; MANY] = [const { Cell::new(0) }; MANY];
    let (index, flag) = (Cell::new(0i32), Cell::new(0i32));
    let mut completed = 0;
    requests.iter().for_each(|request| request.set(null));
    let random = RefCell::new(fastrand::Rng::with_seed(99));
    let below = |n: usize| random.borrow_mut().usize(..n);
    let over = |k: usize| {
        if !persistent[k].get() {
            requests[k].set(null);
        }
        let source = if below(5) == 0 { PROC_NULL as i32 } else { below(5) as i32 };
        statuses[k].set(FakeStatus { source, tag: below(3) as i32, bytes: below(9) as i64, ..status });
    };
    let some = || {
        let mut done = 0;
        for k in (0..MANY).filter(|_| below(2) == 0) {
            over(k);
            indices[done].set(k as i32);
            done += 1;
        }
        index.set(if below(6) == 0 { UNDEFINED } else { done as i32 });
    };
    let one = || {
        let k = below(MANY);
        over(k);
        index.set(if below(6) == 0 { UNDEFINED } else { k as i32 });
    };
    for step in 0..6000usize {
        for k in (0..MANY).filter(|&k| requests[k].get() == null) {
            let made = [500 + k, 600, 700 + below(9)][below(3)];
            let name = ["MPI_Irecv", "MPI_Isend", "MPI_Recv_init", "MPI_Ssend_init"][below(4)];
            persistent[k].set(name.ends_with("_init"));
            match below(12) {
                0 => requests[k].set(800 + k),
                1 => {}
                _ => p.call(name, &[0, 1, int, k, 9, world, at(&requests[k])], || requests[k].set(made)),
            }
        }
        // Persistent requests do not stay for ever.
        let k = below(MANY);
        if persistent[k].get() && requests[k].get() != null && below(3) == 0 {
            p.call("MPI_Request_free", &[at(&requests[k])], || requests[k].set(null));
        }
        let many = if below(9) == 0 { below(MANY) } else { MANY };
        let count = many | step << 32;
        let (r, s) = (at(&requests), if below(2) == 0 { STATUS_IGNORE } else { at(&statuses) });
        let (i, f) = (at(&index), at(&flag));
        let asked = below(2) == 0;
        flag.set(i32::from(asked));
        let none = || index.set(UNDEFINED);
        let recalled = p.recalled;
        match below(8) {
            0 => p.call("MPI_Wait", &[at(&requests[k]), s], || over(k)),
            1 => p.call("MPI_Waitall", &[count, r, s], || (0..many).for_each(over)),
            2 => p.call("MPI_Waitany", &[count, r, i, s], one),
            3 => p.call("MPI_Waitsome", &[count, r, i, at(&indices), s], some),
            4 => p.call("MPI_Test", &[at(&requests[k]), f, s], || {
                if asked {
                    over(k)
                }
            }),
            5 => p.call("MPI_Testall", &[count, r, f, s], || {
                if asked {
                    (0..many).for_each(over)
                }
            }),
            6 => p.call("MPI_Testany", &[count, r, i, f, s], || if asked { one() } else { none() }),
            _ => p.call("MPI_Testsome", &[count, r, i, at(&indices), s], some),
        }
        completed += p.recalled - recalled;
    }
    // All but the first of each function and shape.
    assert_eq!(completed, 6000 - 16);
    p.check();
}

/// A pointer that is null, or stands for something, makes another symbol.
#[test]
fn completions_of_other_shapes_are_not_taken_for_known_ones() {
    let mut p = Pair::new();
    let null = handle("MPI_REQUEST_NULL");
    let requests = [Cell::new(null), Cell::new(null)];
    let statuses =
        [const { Cell::new(FakeStatus { source: 1, tag: 7, bytes: 4, error: 0, cancelled: 0 }) }; 2];
    let (flag, zero) = (Cell::new(1i32), Cell::new(0i32));
    for _ in 0..3 {
        for s in [STATUS_IGNORE, at(&statuses), 0] {
            for r in [at(&requests), 0] {
                p.call("MPI_Waitall", &[if r == 0 { 0 } else { 2 }, r, s], || {});
                for f in [at(&flag), at(&zero)] {
                    p.call("MPI_Testall", &[if r == 0 { 0 } else { 2 }, r, f, s], || {});
                }
            }
        }
    }
    assert!(p.recalled > 0);
}

#[test]
fn calls_that_differ_in_one_word_are_told_apart() {
    let mut p = Pair::new();
    let (world, int) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"));
    for round in 0..3 {
        for count in 0..300 {
            for tag in 0..3 {
                p.call("MPI_Send", &[0, count, int, 4, tag, world], || {});
            }
        }
        assert!(round == 0 || p.recalled > 0);
    }
    p.check();
}

/// Where two calls would lie in the same place of the memory for calls, which their addresses decide, one is not known: so there are
/// several addresses to try.
#[test]
fn a_call_is_known_at_its_site() {
    let (world, null) = (handle("MPI_COMM_WORLD"), handle("MPI_REQUEST_NULL"));
    let cells = [(); 8].map(|()| (Cell::new(null), Cell::new([0u8; 64])));
    let is_known = |(request, status): &(Cell<_>, Cell<[u8; 64]>)| {
        let mut p = Pair::new();
        let mut all = true;
        for round in 0..20 {
            for site in [0, 7, 8, 7] {
                p.site = site;
                let before = p.recalled;
                p.call("MPI_Barrier", &[world], || {});
                p.call("MPI_Ibarrier", &[world, at(request)], || request.set(77));
                p.call("MPI_Wait", &[at(request), at(status)], || request.set(null));
                all &= round == 0 || p.recalled == before + 3;
            }
        }
        assert_eq!(p.symbols.len(), 9, "three calls at three sites");
        all
    };
    assert!(cells.iter().any(is_known));
}

/// Every function of the call table, with handles of eight bytes and of four, and rubbish in the halves of words that mean
/// nothing: what a call writes changes from one time to the next.
#[test]
fn every_function_is_recalled_as_it_is_encoded() {
    let mut random = fastrand::Rng::with_seed(0x0bad_cafe_dead_beef);
    let (mut recalled, mut functions) = (0, 0);
    for (f, narrow) in refrain_model::functions().iter().flat_map(|f| [(f, false), (f, true)]) {
        if f.silent {
            continue;
        }
        let mut p = Pair::with(narrow);
        let mut calls: Vec<Arguments> = (0..3).map(|_| Arguments::new(&mut random, f, narrow)).collect();
        for _ in 0..30 {
            let call = random.usize(..calls.len());
            let call = &mut calls[call];
            let mut args = call.words.clone();
            for (word, p) in args.iter_mut().zip(f.params) {
                let half = match p.kind {
                    Kind::Handle(class) => narrow || class == Class::Keyval,
                    kind => kind.is_number() && !p.ctype.is_wide(),
                };
                if half && p.dir == Dir::In && p.len.is_empty() {
                    *word = *word & 0xffff_ffff | random.usize(..3) << 32 | random.usize(..2) << 63;
                }
            }
            p.call(f.name, &args, || {
                for (i, p) in f.params.iter().enumerate().filter(|(_, p)| p.dir != Dir::In) {
                    if random.usize(..2) == 0 {
                        call.write(&mut random, p, i, narrow);
                    }
                }
            });
        }
        recalled += p.recalled;
        functions += u32::from(p.recalled > 0);
        p.check();
    }
    assert!(functions > 300 && recalled > 5_000, "{functions} {recalled}");
}

/// The same call over and over, in between others of the same symbol: what comes again is only counted.
#[test]
fn what_comes_again_is_folded_as_if_it_were_told() {
    let mut p = Pair::new();
    let (world, int) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"));
    let flag = Cell::new(0i32);
    for round in 0..300usize {
        for _ in 0..round % 7 {
            p.call("MPI_Send", &[0, 3, int, 4, 7, world], || {});
        }
        for other in 0..round % 3 {
            p.call("MPI_Send", &[0, 3, int, 4, other, world], || {});
        }
        for _ in 0..round % 5 {
            p.call("MPI_Iprobe", &[ANY_SOURCE, 7, world, at(&flag), STATUS_IGNORE], || {});
        }
    }
    assert!(p.recalled > 1000, "{}", p.recalled);
    p.check();
}
