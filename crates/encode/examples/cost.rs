//! Where the nanoseconds of a traced call go, without MPI: encoding it, recalling it where it was seen before, folding it.
//! `cargo run --release -p refrain-encode --example cost`

#[path = "../tests/common/mod.rs"]
mod common;

use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

use common::{ANY_SOURCE, STATUS_IGNORE, World, handle, world};
use refrain_encode::{Memo, Tape};
use refrain_model::{Function, function};

/// Short rounds: some of them are not interrupted.
const TIMES: u32 = 2_000;
const ROUNDS: u32 = 700;

/// A call, and what the library does in it.
struct Call<'a> {
    f: &'static Function,
    overwrites: bool,
    args: Vec<usize>,
    mpi: Box<dyn Fn() + 'a>,
}

fn call<'a>(name: &str, args: &[usize], mpi: impl Fn() + 'a) -> Call<'a> {
    let f = function(name).expect("the call table has it");
    Call { f, overwrites: f.overwrites(), args: args.to_vec(), mpi: Box::new(mpi) }
}

impl Call<'_> {
    fn run(&self, w: &mut World) {
        if self.overwrites {
            w.encoder.before(&mut w.host, &mut w.requests, self.f, &self.args, &mut w.before);
        }
        (self.mpi)();
    }

    fn encode(&self, w: &mut World) {
        w.encode(self.f, &self.args, 0);
    }
}

/// Nanoseconds: the best of several rounds, since others use the machine too.
fn best(mut each: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..TIMES {
            each();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(TIMES));
    }
    best
}

fn measure(name: &str, calls: &[Call<'_>]) {
    let mut w = world();
    let (mut tape, mut memo) = (Tape::default(), Memo::default());
    let encoding = best(|| {
        for call in calls {
            call.run(&mut w);
            call.encode(&mut w);
            black_box(&w.record);
        }
    });
    let mut known = Vec::new();
    for call in calls {
        call.run(&mut w);
        call.encode(&mut w);
        let symbol = tape.push(&w.record, 1);
        memo.remember(&w.encoder, &mut w.host, &w.requests, call.f, &call.args, &w.record, symbol);
        known.push((symbol, w.record.values.clone()));
    }
    let recalling = best(|| {
        for call in calls {
            call.run(&mut w);
            let recalled = w.recall(&mut memo, 0, call.f, &call.args);
            assert!(black_box(recalled).is_some(), "{name} is not recalled");
        }
    });
    let folding = best(|| {
        for (symbol, values) in &known {
            tape.push_known(*symbol, values, 1);
        }
    });
    println!("{name:<20} {encoding:>9.1} {recalling:>9.1} {folding:>9.1}");
}

fn main() {
    let (comm, int, null) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"), handle("MPI_REQUEST_NULL"));
    let (rank, flag, buffer) = (2i32, 0i32, [0u8; 64]);
    let (rank, flag, buffer) = (&raw const rank as usize, &raw const flag as usize, buffer.as_ptr() as usize);
    let requests = [const { Cell::new(0usize) }; 2];
    let request = |k: usize| requests[k].as_ptr() as usize;
    println!("{:<20} {:>9} {:>9} {:>9}   nanoseconds", "function", "encoding", "recalling", "folding");
    measure("MPI_Comm_rank", &[call("MPI_Comm_rank", &[comm, rank], || {})]);
    measure("MPI_Iprobe", &[call("MPI_Iprobe", &[ANY_SOURCE, 7, comm, flag, STATUS_IGNORE], || {})]);
    let both = [buffer, 1, int, 2, 3, buffer, 1, int, 2, 3, comm, STATUS_IGNORE];
    measure("MPI_Sendrecv", &[call("MPI_Sendrecv", &both, || {})]);
    let isend = call("MPI_Isend", &[buffer, 1, int, 2, 5, comm, request(0)], || requests[0].set(500));
    let irecv = call("MPI_Irecv", &[buffer, 1, int, 2, 5, comm, request(1)], || requests[1].set(501));
    let waitall = call("MPI_Waitall", &[2, request(0), STATUS_IGNORE], || {
        requests.iter().for_each(|request| request.set(null));
    });
    measure("Isend+Irecv+Waitall", &[isend, irecv, waitall]);
}
